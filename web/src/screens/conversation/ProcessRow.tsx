import type { ProjectionState, ReasoningPart } from "../../api/generated/projection";
import { durationWords, Icon, Markdown, StatusIcon } from "../../ui";
import styles from "./Conversation.module.css";
import { useFold } from "./folds";
import type { ProcessPart } from "./rows";
import { ToolRow } from "./ToolRow";
import { hasEnded } from "./toolstate";

export interface ProcessRowProps {
  id: string;
  parts: ProcessPart[];
  state: ProjectionState;
  live: boolean;
}

/** What was done between two texts: open while it goes on, one line once it is done. */
export function ProcessRow({ id, parts, state, live }: ProcessRowProps) {
  const going = parts.some((part) => isGoing(part, state));
  const [open, toggle] = useFold(id, going);
  const only = parts[0];
  if (parts.length === 1 && only !== undefined) return <Step part={only} state={state} live={live} />;
  return (
    <div>
      <button type="button" className={styles.fold} aria-expanded={open} onClick={toggle}>
        <Icon name="chevron" size={14} className={styles.chevron} />
        <Summary parts={parts} state={state} going={going} />
      </button>
      {open && (
        <div className={`${styles.steps} ${styles.inside}`}>
          {parts.map((part) => (
            <Step key={part.partId} part={part} state={state} live={live} />
          ))}
        </div>
      )}
    </div>
  );
}

function Step({ part, state, live }: { part: ProcessPart; state: ProjectionState; live: boolean }) {
  if (part.type === "reasoning") return <ReasoningRow part={part} />;
  return <ToolRow toolCallId={part.toolCallId} status={part.status} state={state} live={live} />;
}

function isGoing(part: ProcessPart, state: ProjectionState): boolean {
  if (part.type === "reasoning") return part.state === "streaming";
  return !hasEnded(state.tools[part.toolCallId]);
}

function Summary({ parts, state, going }: { parts: ProcessPart[]; state: ProjectionState; going: boolean }) {
  const tools = parts.flatMap((part) => (part.type === "tool-preview" ? (state.tools[part.toolCallId] ?? []) : []));
  const failed = tools.filter((tool) => tool.state === "output-error").length;
  const names = [...new Set(tools.map((tool) => tool.toolName ?? "unknown tool"))].join(", ");
  const spent = tools.reduce((sum, tool) => sum + (tool.durationMs ?? 0), 0);
  return (
    <>
      <StatusIcon status={going ? "running" : failed > 0 ? "failed" : "completed"} />
      <span className={styles.line}>
        {parts.length} steps{names !== "" && `: ${names}`}
        {failed > 0 && <span className={styles.bad}>{`, ${failed} failed`}</span>}
      </span>
      {spent > 0 && <span className={styles.measure}>{durationWords(spent)}</span>}
    </>
  );
}

/** That the model reasoned, folded; only the summary that it gave is kept, and never raw thoughts. */
function ReasoningRow({ part }: { part: ReasoningPart }) {
  const [open, toggle] = useFold(part.partId, false);
  return (
    <div>
      <button type="button" className={styles.fold} aria-expanded={open} onClick={toggle}>
        <Icon name="chevron" size={14} className={styles.chevron} />
        <Icon name="thought" size={14} />
        <span className={styles.line}>{part.state === "streaming" ? "Thinking…" : "Thought"}</span>
      </button>
      {open && <div className={styles.reasoning}>{part.summary === "" ? "No summary." : <Markdown text={part.summary} />}</div>}
    </div>
  );
}
