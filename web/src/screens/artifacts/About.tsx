import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { ArtifactState, ArtifactVersion, ProjectionState } from "../../api/generated/projection";
import { DownloadButton } from "../../content/DownloadButton";
import { Ref, Time } from "../../ui";
import styles from "./Artifacts.module.css";

/** All that facts say about an artifact, with refs that can be copied and fetched. */
export function About({ artifact, version, state }: { artifact: ArtifactState; version: ArtifactVersion; state: ProjectionState }) {
  const maker = artifact.toolCallId == null ? undefined : state.tools[artifact.toolCallId];
  const rows: [string, ReactNode][] = [
    ["Artifact", <Ref value={artifact.artifactId} name="id" />],
    ["Version", version.versionId === "" ? null : <Ref value={version.versionId} name="version" />],
    ["Media type", artifact.mediaType ?? "unknown"],
    ["Path", artifact.path],
    ["Made by", maker?.toolName ?? artifact.owner ?? "unknown"],
    ["Source", artifact.source],
    ["Created", <Time at={artifact.createdAt} />],
    ["Changed", <Time at={artifact.updatedAt} />],
    ["Recorded in fact", version.eventId === "" ? null : <FactLink eventId={version.eventId} threadId={state.threadId} />],
    ["Content", <Kept value={version.contentRef} name="content" />],
    ["Diff", version.diff != null && version.diffRef == null ? "inline, see Changes" : <Kept value={version.diffRef} name="diff" />],
    ["Preview", <Kept value={version.previewRef ?? artifact.previewRef} name="preview" />],
    ["Export", <Kept value={artifact.exportRef} name="export" />],
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

function Kept({ value, name }: { value: string | null | undefined; name: string }) {
  if (value == null) return <span className={styles.soft}>none</span>;
  return (
    <span className={styles.kept}>
      <Ref value={value} name={`${name} ref`} />
      <DownloadButton what={{ ref: value }} name={name} />
    </span>
  );
}

function FactLink({ eventId, threadId }: { eventId: string; threadId: string | null | undefined }) {
  if (threadId == null) return <Ref value={eventId} name="fact" />;
  return (
    <Link to="/threads/$threadId" params={{ threadId }} search={(before) => ({ ...before, at: eventId })}>
      View the thread at this point
    </Link>
  );
}
