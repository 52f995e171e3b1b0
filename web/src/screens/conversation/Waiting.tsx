import type { ProjectionState, Steer } from "../../api/generated/projection";
import { call } from "../../api/client";
import { wordsOf } from "../../api/refusal";
import { useQueue } from "../../state/queries";
import { Icon, IconButton, toast } from "../../ui";
import styles from "./Composer.module.css";

/** What was said and has not been taken up: turns in the queue, and steers on their way. */
export function Waiting({ threadId, state, canSteer }: { threadId: string; state: ProjectionState; canSteer: boolean }) {
  const steers = state.queue.steers.filter((steer) => steer.status === "pending");
  const waiting = state.queue.turns.length;
  const queue = useQueue(threadId, state.runtime.activeTurnId ?? null, waiting).data?.items ?? [];
  // What waits in another runtime is not in this Edge's queue: it can be told, and not be moved.
  const elsewhere = queue.length > 0 ? [] : state.queue.turns;
  if (waiting === 0 && steers.length === 0) return null;
  return (
    <ul className={styles.queue} aria-label="Waiting">
      {steers.map((steer) => (
        <SteerRow key={steer.eventId} steer={steer} />
      ))}
      {elsewhere.map(({ queuedTurnId, prompt }) => (
        <li key={queuedTurnId} className={styles.queued}>
          <Icon name="queue" size={14} label="Queued" />
          <span dir="auto">{prompt ?? "unknown"}</span>
        </li>
      ))}
      {waiting > 0 && queue.map(({ runId, prompt }, at) => (
        <li key={runId} className={styles.queued}>
          <Icon name="queue" size={14} label="Queued" />
          <span dir="auto">{prompt ?? "unknown"}</span>
          {at > 0 && <IconButton icon="send" label="Move to front" size="small" onClick={() => act(call("promoteQueued", { path: { threadId, runId } }))} />}
          {canSteer && <IconButton icon="steer" label="Send to the current run" size="small" onClick={() => act(call("steerQueued", { path: { threadId, runId } }))} />}
          <IconButton icon="close" label="Remove from queue" size="small" onClick={() => act(call("removeQueued", { path: { threadId, runId } }))} />
        </li>
      ))}
    </ul>
  );
}

function SteerRow({ steer }: { steer: Steer }) {
  return (
    <li className={styles.queued}>
      <Icon name="steer" size={14} label="Steer" />
      <span dir="auto">{steer.text ?? "unknown"}</span>
      <em>not yet picked up</em>
    </li>
  );
}

function act(doing: Promise<unknown>): void {
  doing.catch((error: unknown) => toast(wordsOf(error)));
}
