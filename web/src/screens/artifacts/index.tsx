import { useNavigate, useSearch } from "@tanstack/react-router";

import type { ArtifactState } from "../../api/generated/projection";
import type { ScreenProps } from "../../app/screens";
import { Badge, Button, classes, EmptyState, Icon, StatusBadge, Time } from "../../ui";
import styles from "./Artifacts.module.css";
import { nameOf } from "./naming";
import { Viewer } from "./Viewer";

/** Everything that was made on a thread, and a place to look at one of them. */
export default function Artifacts({ threadId, state, live }: ScreenProps) {
  const [item, choose] = useItem(threadId);
  // A state holds them in the order of their first facts.
  const rows = Object.values(state.artifacts).reverse();
  // Where there is room for both, the newest is open until somebody chooses; a phone shows the list.
  const chosen = (item === undefined ? rows[0] : state.artifacts[item]) ?? null;
  if (rows.length === 0) return <Nothing />;
  return (
    <div className={classes(styles.screen, item !== undefined && chosen !== null && styles.chosen)}>
      <nav className={styles.list} aria-label="Artifacts">
        <ul>
          {rows.map((artifact) => (
            <li key={artifact.artifactId}>
              <Row artifact={artifact} chosen={artifact === chosen} onChoose={() => choose(artifact.artifactId)} />
            </li>
          ))}
        </ul>
      </nav>
      <div className={styles.place}>
        {chosen === null ? (
          <EmptyState icon="artifact" title="This artifact does not exist at this moment" />
        ) : (
          <>
            <Button size="small" kind="ghost" icon="back" className={styles.back} onClick={() => choose(undefined)}>
              All artifacts
            </Button>
            <Viewer key={chosen.artifactId} threadId={threadId} artifact={chosen} state={state} live={live} />
          </>
        )}
      </div>
    </div>
  );
}

function Nothing() {
  return (
    <EmptyState icon="artifact" title="No artifacts yet">
      <p>Files changed and documents created in this thread appear here, with all their versions.</p>
    </EmptyState>
  );
}

function Row({ artifact, chosen, onChoose }: { artifact: ArtifactState; chosen: boolean; onChoose: () => void }) {
  return (
    <button type="button" className={styles.row} aria-current={chosen ? "true" : undefined} onClick={onChoose}>
      <Icon name="artifact" size={14} />
      <span className={styles.name} dir="auto" title={nameOf(artifact)}>
        {nameOf(artifact)}
      </span>
      <span className={styles.about}>
        <Badge>{artifact.kind}</Badge>
        <StatusBadge status={artifact.status} />
        {artifact.versions.length > 1 && `${artifact.versions.length} versions`}
        <Time at={artifact.updatedAt ?? artifact.createdAt} />
      </span>
    </button>
  );
}

function useItem(threadId: string): [string | undefined, (item: string | undefined) => void] {
  const navigate = useNavigate();
  const { item } = useSearch({ from: "/shell/threads/$threadId" });
  const choose = (next: string | undefined) =>
    void navigate({ to: "/threads/$threadId", params: { threadId }, search: ({ item: _, ...rest }) => (next === undefined ? rest : { ...rest, item: next }) });
  return [item, choose];
}
