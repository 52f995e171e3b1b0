import type { KeyboardEvent } from "react";

import type { ProjectionState } from "../../api/generated/projection";
import type { AgentRow } from "../../api/generated/rest";
import { call } from "../../api/client";
import { ownId } from "../../api/ids";
import { wordsOf } from "../../api/refusal";
import { AttachButton, Chips, partsOf, takesFiles, useAttachments } from "../../attachments";
import { readDraft, useDraft } from "../../state/drafts";
import { useAgents, useOtherWriter, useThread } from "../../state/queries";
import { Button, Icon, toast } from "../../ui";
import styles from "./Composer.module.css";
import { useSending, type Mode } from "./useSending";
import { Waiting } from "./Waiting";

const FAILED = new Set(["failed", "cancelled", "canceled", "interrupted", "timed_out"]);

const MOST_ROWS = 10;

/** Where one says something, unless the thread is another runtime's, which alone can be told. */
export function Composer({ threadId, state }: { threadId: string; state: ProjectionState }) {
  const writer = useOtherWriter(threadId);
  if (writer === null) return <Own threadId={threadId} state={state} />;
  return (
    <div className={styles.composer}>
      <Waiting threadId={threadId} state={state} canSteer={false} />
      <p className={styles.foreign}>
        <Icon name="info" size={14} />
        <span>
          The runtime <code dir="auto">{writer}</code> owns this thread and sends its facts here. You can watch it here; to send messages or stop it, use that runtime.
        </span>
      </p>
    </div>
  );
}

/** Sent, queued behind what runs, or told to it. */
function Own({ threadId, state }: { threadId: string; state: ProjectionState }) {
  const [text, setText] = useDraft(threadId);
  const files = useAttachments(threadId);
  const { send, busy, error } = useSending(threadId);
  const agent = useAgents().data?.items.find((one) => one.agentId === state.runtime.agentId);
  const active = state.runtime.activeTurnId != null;
  const stopping = active && state.runtime.cancellingTurnId === state.runtime.activeTurnId;
  const canSteer = active && !stopping && agent?.manifest?.steer === "yes";
  const input = partsOf(files.attachments);
  const empty = files.storing || (text.trim() === "" && input.length === 0);
  const submit = async (mode: Mode) => {
    if (empty || busy || !(await send(text, input, mode))) return;
    // What was typed while it was on its way belongs to the next message.
    const now = readDraft("text", threadId) ?? "";
    setText(now.startsWith(text) ? now.slice(text.length) : now);
    files.sent(input);
  };
  // What is being written stays, before the message that comes back.
  const edit = (message: string) => {
    const now = readDraft("text", threadId) ?? "";
    setText(now.trim() === "" ? message : `${now}\n${message}`);
  };
  return (
    <div className={styles.composer}>
      <Waiting threadId={threadId} state={state} canSteer={canSteer} onEdit={edit} />
      <div className={styles.box} {...takesFiles(files.add)}>
        <textarea
          className={styles.input}
          // For browsers that do not size a field by its content.
          rows={Math.min(text.split("\n").length, MOST_ROWS)}
          dir="auto"
          aria-label="Message"
          placeholder={active ? "Write a message for when it is done" : "Write a message"}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => isSend(event) && (event.preventDefault(), void submit("queue"))}
        />
        <div className={styles.files}>
          <Chips attachments={files.attachments} onRemove={files.remove} />
        </div>
        <div className={styles.row}>
          <AttachButton size="small" onFiles={files.add} />
          <span className={styles.hint} role={error === null ? undefined : "alert"}>
            {error === null ? <span className={styles.keys}>{hintOf(active, agent)}</span> : <span className={styles.error}>{error} Your text has been kept.</span>}
          </span>
          {active && <Stop runId={state.runtime.activeRunId == null ? null : ownId(threadId, state.runtime.activeRunId)} stopping={stopping} />}
          {!active && FAILED.has(state.runtime.latestTurnStatus ?? "") && <Retry threadId={threadId} />}
          {canSteer && (
            <Button size="small" icon="steer" disabled={empty || busy} onClick={() => void submit("steer")}>
              Steer
            </Button>
          )}
          <Button size="small" kind="primary" icon={active ? "queue" : "send"} busy={busy} disabled={empty} onClick={() => void submit("queue")}>
            {active ? "Queue" : "Send"}
          </Button>
        </div>
      </div>
    </div>
  );
}

/** Enter that ends the composing of a character is no Enter; 229 is how some browsers say so. */
function isSend(event: KeyboardEvent): boolean {
  return event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && event.nativeEvent.keyCode !== 229;
}

function hintOf(active: boolean, agent: AgentRow | undefined): string {
  if (!active) return "Enter to send, Shift+Enter for a new line";
  return agent?.manifest?.steer === "yes" ? "Enter to queue, Steer to send it to the current run" : "Enter to queue after the current run";
}

function Stop({ runId, stopping }: { runId: string | null; stopping: boolean }) {
  const stop = () => {
    if (runId !== null) call("cancelRun", { path: { runId }, body: {} }).catch((error: unknown) => toast(wordsOf(error)));
  };
  return (
    <Button size="small" kind="danger" icon="stop" busy={stopping} disabled={runId === null || stopping} onClick={stop}>
      {stopping ? "Stopping" : "Stop"}
    </Button>
  );
}

function Retry({ threadId }: { threadId: string }) {
  const runId = useThread(threadId).data?.latestRunId;
  if (runId == null) return null;
  return (
    <Button size="small" icon="retry" onClick={() => void call("retryRun", { path: { runId } }).catch((error: unknown) => toast(wordsOf(error)))}>
      Retry
    </Button>
  );
}
