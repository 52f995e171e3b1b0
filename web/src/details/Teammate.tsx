import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";

import type { Activity, ProjectionState, SubagentThread } from "../api/generated/projection";
import { Icon, StatusBadge, Tabs, Time, type Tab } from "../ui";
import styles from "./Details.module.css";
import { nameOf, plainWords, taskName } from "./names";
import { Pairs, Refs } from "./Pairs";
import { Transcript, type TranscriptProps } from "./Transcript";

const TABS: Tab[] = [
  { id: "transcript", title: "Transcript", icon: "message" },
  { id: "about", title: "About", icon: "info" },
];

/** Activities that are listed; earlier ones are on the timeline. */
const ACTIVITIES_SHOWN = 100;

/** One teammate: who it is and what it does, and its transcript. */
export function Teammate({ teammate, state, live }: TranscriptProps) {
  const [chosen, setChosen] = useState("transcript");
  const panelId = useId();
  const thread = state.subagents.threads[teammate];
  return (
    <>
      <p className={styles.line}>
        <StatusBadge status={thread?.status} />
        {thread?.role != null && thread.role !== thread.name && <span dir="auto">{thread.role}</span>}
        {thread?.taskId != null && (
          <span dir="auto">
            <Icon name="plan" size={12} /> {taskName(thread.taskId, state)}
          </span>
        )}
      </p>
      <Tabs label="About this teammate" tabs={TABS} chosen={chosen} onChoose={setChosen} panelId={panelId} />
      <div id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${chosen}`} className={styles.body} tabIndex={chosen === "about" ? 0 : undefined}>
        {chosen === "transcript" ? <Transcript teammate={teammate} state={state} live={live} /> : <About teammate={teammate} thread={thread} state={state} />}
      </div>
    </>
  );
}

function About({ teammate, thread, state }: { teammate: string; thread: SubagentThread | undefined; state: ProjectionState }) {
  if (thread === undefined) return <p className={styles.text}>Nothing is known about this teammate except its name.</p>;
  const activities = state.subagents.activities.filter(({ subagentId }) => subagentId === teammate).slice(-ACTIVITIES_SHOWN);
  return (
    <div className={styles.text}>
      <Pairs
        rows={[
          ["Id", <code>{teammate}</code>],
          ["Task", thread.taskId == null ? lineageWords(thread) : taskName(thread.taskId, state)],
          ["Reports to", thread.parentSubagentId == null ? null : nameOf(thread.parentSubagentId, state)],
          ["Started by", thread.toolCallId == null ? null : (state.tools[thread.toolCallId]?.toolName ?? thread.toolCallId)],
          ["Kind", plainWords(thread.topology)],
          ["Remote task", thread.remoteTaskId],
          ["Own thread", thread.threadId == null ? null : <OwnThread threadId={thread.threadId} />],
          ["Message", thread.message],
          ["Failure", plainWords(thread.failureCategory)],
          ["Result", thread.summary],
          ["Started", thread.startedAt == null ? null : <Time at={thread.startedAt} />],
          ["Ended", thread.completedAt == null ? null : <Time at={thread.completedAt} />],
        ]}
      />
      <Refs refs={[thread.resultRef, thread.transcriptRef, ...(thread.artifactRefs ?? []), ...(thread.evidenceRefs ?? [])]} />
      {activities.length > 0 && <Activities activities={activities} />}
    </div>
  );
}

function lineageWords({ lineage }: SubagentThread): string {
  return lineage === "unavailable" ? "not recorded" : lineage;
}

function OwnThread({ threadId }: { threadId: string }) {
  return (
    <Link to="/threads/$threadId" params={{ threadId }}>
      {threadId}
    </Link>
  );
}

function Activities({ activities }: { activities: Activity[] }) {
  return (
    <section aria-label="Activity">
      <h3 className={styles.heading}>Activity</h3>
      <ol className={styles.list}>
        {activities.map((activity) => (
          <li key={activity.eventId}>
            <span className={styles.faint}>
              {activity.eventClass} · <Time at={activity.createdAt} />
            </span>
            {activity.message != null && <span dir="auto">{activity.message}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
