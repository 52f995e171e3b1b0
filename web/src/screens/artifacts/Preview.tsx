import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import type { ArtifactState } from "../../api/generated/projection";
import { ownId } from "../../api/ids";
import { wordsOf } from "../../api/refusal";
import { Button, Spinner, toast } from "../../ui";
import styles from "./Artifacts.module.css";

const PAGE = /\.html?$/i;

/** A page that lies in the folder of a run can be served from there; nothing else is ever a page. */
export function canPreview({ path, status }: ArtifactState): boolean {
  return path != null && PAGE.test(path) && !path.startsWith("/") && status !== "deleted";
}

interface Served {
  previewId: string;
  address: string;
}

/** The page on an origin of its own. It is served once somebody asks for it, and until that ends. */
export function Preview({ threadId, artifact }: { threadId: string; artifact: ArtifactState }) {
  const [served, setServed] = useState<Served | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const row = useQuery({ queryKey: ["artifact", threadId, artifact.artifactId], queryFn: ({ signal }) => call("readArtifact", { path: { artifactId: ownId(threadId, artifact.artifactId) }, signal }) });
  const runId = row.data?.artifact.threadId === threadId ? (row.data.artifact.runId ?? null) : null;
  const start = async (run: string) => {
    setBusy(true);
    setError(null);
    try {
      setServed(await serve(run, artifact.path ?? ""));
    } catch (reason) {
      setError(wordsOf(reason));
    } finally {
      setBusy(false);
    }
  };
  if (row.isPending) return <Spinner label="Looking up the run" />;
  if (runId === null) return <p className={styles.soft}>The run that created this artifact is unknown, so its folder cannot be served.</p>;
  if (served !== null) return <Frame served={served} onStop={() => setServed(null)} />;
  return (
    <div className={styles.changes}>
      <p className={styles.soft}>
        The page is served from the run's folder, with the files as they are now, on its own origin. It cannot reach anything else, and the address expires after half an hour without use.
      </p>
      {error !== null && <p role="alert">{error}</p>}
      <div>
        <Button kind="primary" icon="play" busy={busy} onClick={() => void start(runId)}>
          Start preview
        </Button>
      </div>
    </div>
  );
}

async function serve(runId: string, path: string): Promise<Served> {
  const parts = path.split("/");
  const file = parts.pop() ?? "";
  const { previewId, url } = await call("createPreview", { body: { runId, path: parts.join("/") || "." } });
  if (url == null) throw new Error("The preview has already ended.");
  return { previewId, address: new URL(encodeURIComponent(file), url).href };
}

function Frame({ served, onStop }: { served: Served; onStop: () => void }) {
  const stop = () => {
    onStop();
    call("stopPreview", { path: { previewId: served.previewId } }).catch((error: unknown) => toast(wordsOf(error)));
  };
  return (
    <div className={styles.preview}>
      <div className={styles.bar}>
        <a href={served.address} target="_blank" rel="noopener noreferrer">
          Open in a new tab
        </a>
        <Button size="small" icon="stop" onClick={stop}>
          Stop preview
        </Button>
      </div>
      {/* Its origin is another port than the Edge's, so being of its own origin lets it reach nothing here. */}
      <iframe className={styles.frame} title="Preview" src={served.address} sandbox="allow-scripts allow-same-origin allow-forms" referrerPolicy="no-referrer" />
    </div>
  );
}
