import { memo, useState } from "react";

import type { Action, Process, ProjectionState, Tool } from "../../api/generated/projection";
import { ApprovalCard } from "../../approval/ApprovalCard";
import { personText, requestOfAction } from "../../approval/request";
import { Button, CodeBlock, durationWords, Icon, lookOf, StatusBadge, StatusIcon, Time, Verbatim } from "../../ui";
import styles from "./Conversation.module.css";
import { useFold } from "./folds";
import { OutputDialog } from "./OutputDialog";
import { hasEnded, inputLine, inputText, outputText, programOf } from "./toolstate";

/** What is drawn of a live output; all of it is a click away. */
const TAIL_CHARACTERS = 4_000;

export interface ToolRowProps {
  toolCallId: string;
  /** The status that the message gives, for a call of which no more is known. */
  status: string;
  state: ProjectionState;
  live: boolean;
}

export function ToolRow({ toolCallId, status, state, live }: ToolRowProps) {
  const tool = state.tools[toolCallId];
  if (tool === undefined) return <UnknownTool status={status} />;
  const action = tool.actionId == null ? undefined : state.actions[tool.actionId];
  const asker = action?.subagentId == null ? null : (state.subagents.threads[action.subagentId]?.name ?? action.subagentId);
  const runId = tool.turnId === state.runtime.activeTurnId ? (state.runtime.activeRunId ?? null) : null;
  return <KnownTool tool={tool} program={programOf(state, toolCallId)} runId={runId} threadId={state.threadId ?? ""} action={action} asker={asker} live={live} />;
}

function UnknownTool({ status }: { status: string }) {
  return (
    <p className={styles.fold}>
      <StatusIcon status={status} />A call with no recorded details
    </p>
  );
}

interface Call {
  tool: Tool;
  program: Process | undefined;
  /** The run that it is part of, while that is under way. */
  runId: string | null;
}

interface KnownToolProps extends Call {
  threadId: string;
  action: Action | undefined;
  asker: string | null;
  live: boolean;
}

const KnownTool = memo(function KnownTool({ tool, program, runId, threadId, action, asker, live }: KnownToolProps) {
  const waits = action?.status === "pending";
  const [open, toggle] = useFold(tool.toolCallId, !hasEnded(tool) && !waits);
  return (
    <div>
      <button type="button" className={styles.fold} aria-expanded={open} onClick={toggle}>
        <Icon name="chevron" size={14} className={styles.chevron} />
        <StatusIcon status={shownStatus(tool, program, waits)} />
        <span className={styles.name}>{tool.toolName ?? "unknown tool"}</span>
        <span className={`${styles.line} ${styles.mono}`} dir="auto">
          <Verbatim text={inputLine(tool)} line />
        </span>
        {action?.decision === "denied" && <StatusBadge status="denied" />}
        <Measures tool={tool} program={program} />
      </button>
      {open && <ToolBody tool={tool} program={program} runId={runId} />}
      {open && action !== undefined && !waits && <Decision action={action} />}
      {waits && <ApprovalCard request={requestOfAction(action, threadId, asker)} live={live} />}
    </div>
  );
});

/** Who decided that this may be done or not, why, and when that was decided, sent and applied. */
function Decision({ action }: { action: Action }) {
  const times: [string, string | null | undefined][] = [
    ["decided", action.resolvedAt],
    ["sent to the agent", action.sentAt],
    ["applied", action.appliedAt],
  ];
  return (
    <p className={`${styles.caption} ${styles.body}`} dir="auto">
      {`${lookOf(action.decision ?? action.status).words} by ${personText(action.decidedBy) ?? "unknown"}`}
      {action.reason != null && `: ${action.reason}`}
      {times.map(([words, at]) => at != null && (
        <span key={words}>
          {`, ${words} `}
          <Time at={at} />
        </span>
      ))}
    </p>
  );
}

function shownStatus(tool: Tool, program: Process | undefined, waits: boolean): string {
  if (waits) return "waiting";
  return hasEnded(tool) ? tool.state : (program?.status ?? tool.state);
}

function Measures({ tool, program }: Omit<Call, "runId">) {
  const exitCode = tool.exitCode ?? program?.exitCode;
  return (
    <>
      {exitCode != null && <span className={`${styles.measure} ${exitCode === 0 ? "" : styles.bad}`}>exit {exitCode}</span>}
      {tool.durationMs != null && <span className={styles.measure}>{durationWords(tool.durationMs)}</span>}
    </>
  );
}

export function ToolBody({ tool, program, runId }: Call) {
  const input = inputText(tool);
  const failure = tool.failureCategory ?? program?.failureCategory;
  return (
    <div className={styles.body}>
      {input !== "" && (
        <CodeBlock text={input} label="Input" wrap>
          <Verbatim text={input} />
        </CodeBlock>
      )}
      {tool.argsTruncated && <p className={styles.caption}>Input truncated; the rest is not kept in the state.</p>}
      {tool.progress != null && !hasEnded(tool) && <progress className={styles.progress} aria-label="Progress" value={tool.progress} max={tool.total ?? 1} />}
      {tool.message != null && <p dir="auto">{tool.message}</p>}
      {failure != null && <p className={styles.bad}>{failure.replaceAll("_", " ")}</p>}
      {tool.recoveryHint != null && <p dir="auto">{tool.recoveryHint}</p>}
      <Output tool={tool} program={program} runId={runId} />
    </div>
  );
}

function Output({ tool, program, runId }: Call) {
  const [whole, setWhole] = useState(false);
  const text = outputText(tool, program);
  const ref = tool.outputRef ?? program?.outputRef ?? null;
  const log = runId !== null && program !== undefined ? { runId, processId: program.processId } : null;
  const cut = text.length > TAIL_CHARACTERS || tool.outputTruncated === true || program?.truncated === true;
  if (text === "" && ref === null) return <p className={styles.caption}>{hasEnded(tool) ? "No output." : "No output yet."}</p>;
  return (
    <>
      {text !== "" && <CodeBlock text={text} label="Output">{text.slice(-TAIL_CHARACTERS)}</CodeBlock>}
      {(cut || (ref !== null && text === "")) && (
        <div>
          <Button size="small" onClick={() => setWhole(true)}>
            Show full output
          </Button>
        </div>
      )}
      {whole && <OutputDialog name={tool.toolName ?? "unknown tool"} place={{ outputRef: ref, log, shown: text }} onClose={() => setWhole(false)} />}
    </>
  );
}
