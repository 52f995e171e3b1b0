import { useId, useState } from "react";

import type { ArtifactState, ArtifactVersion, ProjectionState } from "../../api/generated/projection";
import { ContentView } from "../../content/ContentView";
import { DownloadButton } from "../../content/DownloadButton";
import { Badge, Icon, lookOf, StatusBadge, Tabs, type Tab } from "../../ui";
import { About } from "./About";
import styles from "./Artifacts.module.css";
import { Changes } from "./Changes";
import { hasDiff, nameOf, versionsOf, versionWords } from "./naming";
import { canPreview, Preview } from "./Preview";

type Mode = "content" | "changes" | "preview" | "about";

export interface ViewerProps {
  threadId: string;
  artifact: ArtifactState;
  state: ProjectionState;
  live: boolean;
}

/** One artifact: a version of it, what changed since another, how it looks, and what is known of it. */
export function Viewer({ threadId, artifact, state, live }: ViewerProps) {
  const [mode, setMode] = useState<Mode | null>(null);
  const [wanted, setWanted] = useState<string | null>(null);
  const panelId = useId();
  const versions = versionsOf(artifact);
  const at = placeOf(versions, wanted ?? artifact.versionId ?? null);
  const version = versions[at] as ArtifactVersion;
  const tabs = tabsOf(artifact, live);
  const shown = mode !== null && tabs.some(({ id }) => id === mode) ? mode : firstMode(version);
  return (
    <article className={styles.viewer} aria-label={nameOf(artifact)}>
      <Head artifact={artifact} />
      <Fate artifact={artifact} />
      <div className={styles.bar}>
        <VersionChoice versions={versions} at={at} onChoose={setWanted} />
        {version.contentRef != null && <DownloadButton what={{ ref: version.contentRef }} name={nameOf(artifact)} />}
      </div>
      <Tabs label="Artifact views" tabs={tabs} chosen={shown} panelId={panelId} onChoose={(id) => setMode(id as Mode)} />
      <div id={panelId} role="tabpanel" aria-labelledby={`${panelId}-${shown}`} className={styles.panel}>
        {shown === "content" && <Held artifact={artifact} version={version} />}
        {shown === "changes" && <Changes key={version.versionId} versions={versions} at={at} />}
        {shown === "preview" && <Preview threadId={threadId} artifact={artifact} />}
        {shown === "about" && <About artifact={artifact} version={version} state={state} />}
      </div>
    </article>
  );
}

function tabsOf(artifact: ArtifactState, live: boolean): Tab[] {
  return [
    { id: "content", title: "Content" },
    { id: "changes", title: "Changes" },
    ...(live && canPreview(artifact) ? [{ id: "preview", title: "Preview" }] : []),
    { id: "about", title: "About" },
  ];
}

/** Of most changed files only the diff is known. */
function firstMode(version: ArtifactVersion): Mode {
  return version.contentRef == null && hasDiff(version) ? "changes" : "content";
}

function placeOf(versions: ArtifactVersion[], versionId: string | null): number {
  const found = versions.findIndex((version) => version.versionId === versionId);
  return found === -1 ? versions.length - 1 : found;
}

function Head({ artifact }: { artifact: ArtifactState }) {
  return (
    <header className={styles.head}>
      <h2 className={styles.title} dir="auto">
        {nameOf(artifact)}
      </h2>
      <Badge>{artifact.kind}</Badge>
      <StatusBadge status={artifact.status} />
      {artifact.exportStatus != null && <Badge>{`export: ${lookOf(artifact.exportStatus).words.toLowerCase()}`}</Badge>}
    </header>
  );
}

const FATES: Record<string, string> = {
  deleted: "This artifact was deleted. You are seeing its last content.",
  failed: "This artifact could not be created. Any content shown is from an earlier version.",
};

function Fate({ artifact }: { artifact: ArtifactState }) {
  const words = Object.hasOwn(FATES, artifact.status) ? FATES[artifact.status] : undefined;
  if (words === undefined) return null;
  return (
    <p className={styles.fate} role="status">
      <Icon name="alert" />
      <span dir="auto">
        {words}
        {artifact.failureCategory != null && ` ${artifact.failureCategory.replaceAll("_", " ")}.`}
        {artifact.message != null && ` ${artifact.message}`}
      </span>
    </p>
  );
}

function VersionChoice({ versions, at, onChoose }: { versions: ArtifactVersion[]; at: number; onChoose: (versionId: string) => void }) {
  if (versions.length === 1) return <span className={styles.soft}>{versionWords(versions[0] as ArtifactVersion, 0)}</span>;
  return (
    <span className={styles.version}>
      <select aria-label="Version" value={versions[at]?.versionId} onChange={(event) => onChoose(event.target.value)}>
        {versions.map((version, place) => (
          <option key={version.versionId} value={version.versionId}>
            {versionWords(version, place)}
          </option>
        ))}
      </select>
    </span>
  );
}

function Held({ artifact, version }: { artifact: ArtifactState; version: ArtifactVersion }) {
  if (version.contentRef == null) return <p className={styles.soft}>The content of this version was not kept.</p>;
  return <ContentView contentRef={version.contentRef} mediaType={artifact.mediaType ?? null} kind={artifact.kind} name={nameOf(artifact)} />;
}
