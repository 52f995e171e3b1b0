import { useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState, type ReactNode } from "react";

import type { EvidenceItem, ProjectionState } from "../../api/generated/projection";
import { ContentView } from "../../content/ContentView";
import { DownloadButton } from "../../content/DownloadButton";
import { Badge, Button, Card, Icon, Ref, StatusBadge, Time, type IconName } from "../../ui";
import styles from "./Evidence.module.css";
import { Verdict } from "./Verdict";

const KIND_ICONS: Record<string, IconName> = { verification: "check", review: "team", replay: "retry", trace: "timeline", audit: "evidence", benchmark: "diagnostics" };
const WEB = /^https?:/i;

export function Items({ items, state }: { items: EvidenceItem[]; state: ProjectionState }) {
  if (items.length === 0) return null;
  return (
    <section className={styles.section} aria-label="Evidence">
      <h2 className={styles.heading}>Evidence</h2>
      {items.map((item) => (
        <Item key={item.evidenceId} item={item} state={state} />
      ))}
    </section>
  );
}

function Item({ item, state }: { item: EvidenceItem; state: ProjectionState }) {
  const place = useRef<HTMLDivElement>(null);
  const { item: wanted } = useSearch({ from: "/shell/threads/$threadId" });
  const chosen = wanted === item.evidenceId;
  useEffect(() => {
    if (chosen) place.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <div ref={place}>
      <Card className={styles.card} aria-label={item.title ?? item.evidenceId} aria-current={chosen || undefined}>
        <header className={styles.head}>
          <Icon name={(Object.hasOwn(KIND_ICONS, item.kind) ? KIND_ICONS[item.kind] : undefined) ?? "unknown"} />
          <h3 className={styles.title} dir="auto">
            {item.title ?? item.evidenceId}
          </h3>
          <Badge>{item.kind}</Badge>
          <StatusBadge status={item.status} />
          <Verdict verdict={item.verdict ?? null} />
        </header>
        {item.summary != null && <p dir="auto">{item.summary}</p>}
        <Facts item={item} state={state} />
        {item.summaryRef != null && <Report reportRef={item.summaryRef} />}
      </Card>
    </div>
  );
}

function Facts({ item, state }: { item: EvidenceItem; state: ProjectionState }) {
  const tool = item.toolCallId == null ? undefined : state.tools[item.toolCallId];
  const packRef = item.packRef ?? item.exportRef;
  const rows: [string, ReactNode][] = [
    ["Cites", item.url == null ? null : <Cited url={item.url} />],
    ["From", tool?.toolName ?? null],
    ["When", <Time at={item.updatedAt ?? item.createdAt} />],
    ["Reviews", item.reviewIds?.join(", ") ?? null],
    ["Trace", item.traceId == null ? null : <Ref value={item.traceId} name="trace id" />],
    ["Replay", item.replayRef == null ? null : <Ref value={item.replayRef} name="replay ref" />],
    ["Review", item.reviewRef == null ? null : <Ref value={item.reviewRef} name="review ref" />],
    ["Pack", packRef == null ? null : <Ref value={packRef} name="pack ref" />],
    ["Refs", item.refs == null || item.refs.length === 0 ? null : <Refs refs={item.refs} />],
  ];
  return (
    <dl className={styles.facts}>
      {rows.map(([name, value]) => (value == null || value === "" ? null : <Row key={name} name={name} value={value} />))}
    </dl>
  );
}

function Row({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd dir="auto">{value}</dd>
    </>
  );
}

/** Addresses come from agents: only those of the web lead anywhere, and where to is to be read first. */
function Cited({ url }: { url: string }) {
  if (!WEB.test(url)) return <code>{url}</code>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow">
      {url}
    </a>
  );
}

function Refs({ refs }: { refs: string[] }) {
  return (
    <ul>
      {refs.map((ref) => (
        <li key={ref}>
          <Ref value={ref} name="ref" />
        </li>
      ))}
    </ul>
  );
}

/** What was kept of a check, read once somebody wants to see it. */
function Report({ reportRef }: { reportRef: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <div className={styles.actions}>
        <Button size="small" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide report" : "Show report"}
        </Button>
        <DownloadButton what={{ ref: reportRef }} name="report.txt" />
      </div>
      {open && <ContentView contentRef={reportRef} mediaType="text/plain" kind="report" name="Report" />}
    </>
  );
}
