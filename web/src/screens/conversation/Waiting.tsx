import { call } from "../../api/client";
import type { ProjectionState, Steer } from "../../api/generated/projection";
import type { QueuedRun } from "../../api/generated/rest";
import { wordsOf } from "../../api/refusal";
import { useQueue } from "../../state/queries";
import { Button, Icon, IconButton, toast } from "../../ui";
import styles from "./Composer.module.css";

interface WaitingProps {
  threadId: string;
  state: ProjectionState;
  canSteer: boolean;
  /** Puts a message that is taken out of the queue where it can be written anew. */
  onEdit?: (text: string) => void;
}

/** What was said and has not been taken up: turns in the queue, those that a stop has held, and steers on their way. */
export function Waiting({ threadId, state, canSteer, onEdit }: WaitingProps) {
  const steers = state.queue.steers.filter((steer) => steer.status === "pending");
  const { turns } = state.queue;
  const queue = useQueue(threadId, state.runtime.activeTurnId ?? null, turns.map(({ status }) => status ?? "queued")).data?.items ?? [];
  // What waits in another runtime is not in this Edge's queue: it can be told, and not be moved.
  const elsewhere = queue.length > 0 ? [] : turns;
  if (turns.length === 0 && steers.length === 0) return null;
  const held = turns.length === 0 ? [] : queue.filter(({ status }) => status === "held");
  const next = turns.length === 0 ? [] : queue.filter(({ status }) => status !== "held");
  const withFiles = new Set(turns.flatMap(({ queuedTurnId, input }) => (input == null ? [] : [runOf(queuedTurnId)])));
  return (
    <>
      {held.length > 0 && <Held threadId={threadId} runs={held} withFiles={withFiles} onEdit={onEdit} />}
      {steers.length + elsewhere.length + next.length > 0 && (
        <ul className={styles.queue} aria-label="Waiting">
          {steers.map((steer) => (
            <SteerRow key={steer.eventId} steer={steer} />
          ))}
          {elsewhere.map(({ queuedTurnId, prompt, status }) => (
            <li key={queuedTurnId} className={styles.queued}>
              <Icon name={status === "held" ? "pause" : "queue"} size={14} label={status === "held" ? "Held" : "Queued"} />
              <span dir="auto">{prompt ?? "unknown"}</span>
            </li>
          ))}
          {next.map(({ runId, prompt }, at) => (
            <li key={runId} className={styles.queued}>
              <Icon name="queue" size={14} label="Queued" />
              <span dir="auto">{prompt ?? "unknown"}</span>
              {at > 0 && <IconButton icon="send" label="Move to front" size="small" onClick={() => act(call("promoteQueued", { path: { threadId, runId } }))} />}
              {canSteer && <IconButton icon="steer" label="Send to the current run" size="small" onClick={() => act(call("steerQueued", { path: { threadId, runId } }))} />}
              <IconButton icon="close" label="Remove from queue" size="small" onClick={() => act(call("removeQueued", { path: { threadId, runId } }))} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface HeldProps {
  threadId: string;
  runs: QueuedRun[];
  withFiles: Set<string>;
  onEdit: ((text: string) => void) | undefined;
}

/** What waited when the run was stopped. Nothing of it starts by itself. */
function Held({ threadId, runs, withFiles, onEdit }: HeldProps) {
  const remove = (runId: string) => call("removeQueued", { path: { threadId, runId } });
  return (
    <section className={styles.held} aria-label="Held messages">
      <p className={styles.heldHead}>
        <Icon name="pause" size={14} />
        <span>{runs.length === 1 ? "You stopped the run. This message is held." : `You stopped the run. These ${runs.length} messages are held.`}</span>
        {runs.length > 1 && (
          <Button size="small" icon="play" onClick={() => act(call("continueQueue", { path: { threadId } }))}>
            Continue all
          </Button>
        )}
      </p>
      <ul className={styles.queue}>
        {runs.map(({ runId, prompt }) => (
          <li key={runId} className={styles.heldRow}>
            <span dir="auto">{prompt ?? "unknown"}</span>
            <Button size="small" kind="primary" icon="play" onClick={() => act(call("continueQueued", { path: { threadId, runId } }))}>
              Continue
            </Button>
            {onEdit !== undefined && prompt != null && !withFiles.has(runId) && (
              <Button size="small" onClick={() => act(remove(runId).then(() => onEdit(prompt)))}>
                Edit
              </Button>
            )}
            <Button size="small" icon="close" onClick={() => act(remove(runId))}>
              Discard
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The run of a turn, by the Edge's rule. */
function runOf(turnId: string): string {
  return `run_${turnId.replace(/^trn_/, "")}`;
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
