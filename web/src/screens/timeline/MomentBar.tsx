import { useId, useState } from "react";

import { momentWords } from "../../facts/clock";
import { useMachine, type TimeMachine } from "../../state/moments";
import { Button, EmptyState, Icon, Spinner, toast } from "../../ui";
import { ForkDialog } from "./ForkDialog";
import styles from "./MomentBar.module.css";
import { Strip } from "./Strip";
import { Transport } from "./Transport";

/** Said over every panel of the past, with the ways to move on, to share it and to leave it. */
export function MomentBar({ compact }: { compact: boolean }) {
  const machine = useMachine();
  const [forking, setForking] = useState(false);
  const words = useId();
  return (
    <section className={styles.bar} aria-labelledby={words}>
      <div className={styles.line}>
        <Icon name="clock" />
        <p id={words} className={styles.words}>
          {/* Told once: while somebody plays or pulls, what follows changes many times a second. */}
          <span role="status">Viewing</span> <MomentWords machine={machine} />
        </p>
        <span className={styles.wait}>{machine.busy && <Spinner label="Loading moment" />}</span>
        <div className={styles.ways}>
          <Button size="small" icon="copy" onClick={() => void copyLink(machine)}>
            Copy link
          </Button>
          <Button size="small" icon="branch" disabled={machine.at === null} onClick={() => setForking(true)}>
            Fork from here
          </Button>
          <Button size="small" kind="primary" onClick={machine.goLive}>
            Back to live
          </Button>
        </div>
      </div>
      {machine.error !== null && (
        <p className={styles.error} role="alert">
          {machine.error}{" "}
          <Button size="small" icon="retry" onClick={machine.again}>
            Try again
          </Button>
        </p>
      )}
      {!compact && (
        <div className={styles.travel}>
          <Transport machine={machine} />
          <Strip machine={machine} />
        </div>
      )}
      {forking && <ForkDialog machine={machine} onClose={() => setForking(false)} />}
    </section>
  );
}

function MomentWords({ machine: { index, facts } }: { machine: TimeMachine }) {
  const row = index === null ? undefined : facts.rows[index];
  if (row === undefined) return <>a fact that has not loaded yet.</>;
  return (
    <>
      fact <strong>{row.sequence}</strong>
      {facts.complete && ` of ${facts.rows.at(-1)?.sequence}`},{" "}
      <time dateTime={row.createdAt}>{momentWords(row.time)}</time>
      , <code>{row.eventClass}</code>
    </>
  );
}

async function copyLink({ threadId, index, facts, at }: TimeMachine): Promise<void> {
  const row = index === null ? undefined : facts.rows[index];
  const name = row === undefined ? at : facts.log.nameOf(row);
  const link = new URL(`/threads/${encodeURIComponent(threadId)}`, location.href);
  link.search = String(new URLSearchParams({ ...tabOf(location.search), at: name ?? "" }));
  try {
    await navigator.clipboard.writeText(String(link));
    toast("Link to this moment copied", "good");
  } catch {
    toast(`Your browser blocked copying. The link is ${link}`);
  }
}

function tabOf(query: string): Record<string, string> {
  const tab = new URLSearchParams(query).get("tab");
  return tab === null ? {} : { tab };
}

/** An address that names no moment of this thread. */
export function MomentMissing({ machine }: { machine: TimeMachine }) {
  return (
    <EmptyState icon="clock" title="This moment cannot be shown">
      <p>{machine.error}</p>
      <Button onClick={machine.goLive}>Back to live</Button>
    </EmptyState>
  );
}
