import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";

import type { Project, Thread } from "../api/generated/rest";
import { SEARCH_PAUSE_MS } from "../api/limits";
import { wordsOf } from "../api/refusal";
import { groupedByAttention, type Attention } from "../state/attention";
import { useApprovals, useProjects, useThreads } from "../state/queries";
import { Button, buttonClass, Icon, StatusIcon, Time, Tooltip } from "../ui";
import buttonStyles from "../ui/Button.module.css";
import styles from "./Sidebar.module.css";

export const SEARCH_ID = "search-threads";

const GROUP_TITLES: Record<Exclude<Attention, "none">, string> = {
  needs_input: "Needs you",
  plan_ready: "Plan ready",
  failed: "Failed",
  running: "Running",
};

/** All threads: those that need somebody first, the others under their projects. */
export function Sidebar() {
  const [wanted, setWanted] = useState("");
  return (
    <nav className={styles.sidebar} aria-label="Threads">
      <div className={styles.head}>
        <Link to="/" className={styles.brand}>
          <Icon name="timeline" />
          Factwire
        </Link>
        <Tooltip text="New thread">
          <Link to="/" aria-label="New thread" className={buttonClass("ghost", "normal", buttonStyles.square)}>
            <Icon name="plus" />
          </Link>
        </Tooltip>
      </div>
      <div className={styles.search}>
        <Icon name="search" size={14} />
        <input id={SEARCH_ID} type="search" placeholder="Search threads" aria-label="Search threads" value={wanted} onChange={(event) => setWanted(event.target.value)} />
      </div>
      <ThreadList wanted={useSettled(wanted.trim())} />
    </nav>
  );
}

function ThreadList({ wanted }: { wanted: string }) {
  const threads = useThreads(wanted);
  const groups = useGroups(threads.data);
  if (threads.error && !threads.data) return <p className={styles.note}>{wordsOf(threads.error)}</p>;
  return (
    <div className={styles.list}>
      {groups.map((group) => (
        <ThreadGroup key={group.key} group={group} />
      ))}
      {threads.data?.length === 0 && <p className={styles.note}>{wanted === "" ? "No threads yet." : "No thread titles match."}</p>}
      {threads.hasNextPage && (
        <Button size="small" className={styles.more} busy={threads.isFetchingNextPage} onClick={() => void threads.fetchNextPage()}>
          Show older threads
        </Button>
      )}
    </div>
  );
}

/** What failed stays so for ever; a few of them tell, and all of them would hide what runs now. */
const FAILED_SHOWN = 5;

function ThreadGroup({ group: { title, rows, attention } }: { group: Group }) {
  const [all, setAll] = useState(false);
  const shown = all || attention !== "failed" ? rows : rows.slice(0, FAILED_SHOWN);
  return (
    <section aria-label={title}>
      <h2 className={styles.group} dir="auto">
        {title}
      </h2>
      <ul>
        {shown.map((thread) => (
          <ThreadLink key={thread.threadId} thread={thread} attention={attention} />
        ))}
      </ul>
      {shown.length < rows.length && (
        <Button size="small" kind="ghost" className={styles.more} onClick={() => setAll(true)}>
          {rows.length - shown.length} more that failed
        </Button>
      )}
    </section>
  );
}

function ThreadLink({ thread, attention }: { thread: Thread; attention: Attention }) {
  return (
    <li>
      <Link to="/threads/$threadId" params={{ threadId: thread.threadId }} className={styles.thread} activeOptions={{ includeSearch: false }}>
        <StatusIcon status={attention === "none" ? thread.activity : attention} />
        <span className={styles.title} dir="auto">
          {thread.title ?? thread.threadId}
        </span>
        <span className={styles.when}>
          <Time at={thread.updatedAt} />
        </span>
      </Link>
    </li>
  );
}

interface Group {
  key: string;
  title: string;
  rows: Thread[];
  attention: Attention;
}

function useGroups(threads: Thread[] | undefined): Group[] {
  const approvals = useApprovals("pending").data;
  const projects = useProjects().data;
  return useMemo(() => {
    return groupedByAttention(threads ?? [], approvals ?? []).flatMap(({ attention, threads: rows }) =>
      attention === "none" ? byProject(rows, projects ?? []) : [{ key: attention, title: GROUP_TITLES[attention], rows, attention }],
    );
  }, [threads, approvals, projects]);
}

function byProject(rows: Thread[], projects: Project[]): Group[] {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    const project = projects.find((one) => one.projectId === row.projectId);
    const key = project?.projectId ?? "";
    const group = groups.get(key) ?? { key: `project:${key}`, title: project?.name ?? "Threads", rows: [], attention: "none" };
    group.rows.push(row);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** What was typed, once nobody types any more; an empty field counts at once. */
function useSettled(wanted: string): string {
  const [settled, setSettled] = useState(wanted);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(wanted), SEARCH_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [wanted]);
  return wanted === "" ? "" : settled;
}
