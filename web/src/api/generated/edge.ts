// Generated from Factwire's types by `factwire schema typescript --name edge`; change those
// instead. Facts and states are in factwire.ts and projection.ts, beside this file.

import type { Fact, JsonObject, Person } from "./factwire";
import type { Operation, ProjectionState } from "./projection";

export type RunStatus =
  | "queued"
  | "held"
  | "running"
  | "waiting"
  | "cancelling"
  | "finished"
  | "failed"
  | "cancelled";

export type RunErrorCode =
  | "BINARY_NOT_FOUND"
  | "TIMEOUT"
  | "NONZERO_EXIT"
  | "CANCELLED"
  | "PERMISSION_DENIED"
  | "EDGE_RESTARTED"
  | "UNKNOWN";

/** What to do about an error: take the snapshot at `snapshotUrl`, resume at `asOfCursor`. */
export interface ErrorDetails {
  snapshotRequired?: boolean | null;
  snapshotUrl?: string | null;
  asOfCursor?: string | null;
}

/**
 * What an item holds, by its type. `text` of an agent's message replaces what was streamed;
 * `inputDelta` is the next piece of a call's input; `refs` name what is elsewhere.
 */
export interface ItemContent {
  text?: string | null;
  toolName?: string | null;
  input?: unknown;
  inputDelta?: string | null;
  output?: unknown;
  outputRef?: string | null;
  isError?: boolean | null;
  exitCode?: number | null;
  failureCategory?: string | null;
  progress?: number | null;
  total?: number | null;
  message?: string | null;
  refs?: string[] | null;
}

/** A piece of output; `offset` counts the bytes before it in its stream. */
export interface OutputChunk {
  text: string;
  offset?: number | null;
}

/** Why a run failed: one of a few codes, and in `details` what the facts say exactly. */
export interface RunErrorEvent {
  code: RunErrorCode;
  message: string;
  details?: JsonObject | null;
}

/** A folder of work on this machine; `by` is who made or changed it. */
export interface ProjectEvent {
  projectId: string;
  name?: string | null;
  workDir?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | null;
}

/** A project that is no more; `by` is who removed it. */
export interface ProjectGone {
  projectId: string;
  by?: Person | null;
}

/** A place where people and agents talk; `by` is who made it. */
export interface ConversationEvent {
  conversationId: string;
  projectId?: string | null;
  title?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | null;
}

/**
 * Somebody who joined a conversation; `memberType` is user, agent or another word, and `by` is
 * who added them.
 */
export interface Member {
  conversationId: string;
  memberId: string;
  memberType: string;
  by?: Person | null;
}

/**
 * A thread, or what changed about it; `status` is active or archived, `by` is who did it. The
 * facts of a `private` thread stay on its Edge.
 */
export interface ThreadEvent {
  threadId: string;
  projectId?: string | null;
  conversationId?: string | null;
  title?: string | null;
  status?: string | null;
  agentId?: string | null;
  private?: boolean | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | null;
}

/** A thread that was deleted, and `by` whom. */
export interface ThreadGone {
  threadId: string;
  by?: Person | null;
}

/** A thread that begins where another one stood. */
export interface ThreadFork {
  threadId: string;
  parentThreadId: string;
  fromItemId?: string | null;
  projectId?: string | null;
  title?: string | null;
  status?: string | null;
  agentId?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | null;
}

/**
 * One thing in a thread. `type` is user_message, agent_message, tool, run or another word; a
 * `subagentId` says that it is not the main agent's, `by` who wrote a message.
 */
export interface Item {
  itemId: string;
  type: string;
  status: string;
  projectId?: string | null;
  threadId?: string | null;
  runId?: string | null;
  role?: string | null;
  content?: ItemContent | null;
  subagentId?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | null;
}

/** The next piece of an item's text. */
export interface MessageDelta {
  itemId: string;
  delta: string;
  threadId?: string | null;
  runId?: string | null;
  subagentId?: string | null;
}

/** Where runs happen, under the name that older clients know. */
export interface Runner {
  runnerId: string;
}

/**
 * A run that was asked for, `by` whom; `retryOf` names the run that it repeats, and
 * `changedBy` is who moved it to the front of the queue.
 */
export interface RunEvent {
  runId: string;
  status: RunStatus;
  projectId?: string | null;
  threadId?: string | null;
  agentId?: string | null;
  retryOf?: string | null;
  attempt?: number | null;
  createdAt?: string | null;
  by?: Person | null;
  changedBy?: Person | null;
}

/**
 * A run that started or ended, with the times of what has happened to it. One that was
 * cancelled as `steered` never ran: the run `steeredInto` took its prompt. `by` is who
 * cancelled it.
 */
export interface RunChange {
  runId: string;
  status: RunStatus;
  projectId?: string | null;
  threadId?: string | null;
  reason?: string | null;
  createdAt?: string | null;
  startedAt?: string | null;
  finishedAt?: string | null;
  steeredInto?: string | null;
  by?: Person | null;
}

/** A run that failed. */
export interface RunFailure {
  runId: string;
  status: "failed";
  error: RunErrorEvent;
  projectId?: string | null;
  threadId?: string | null;
  createdAt?: string | null;
  startedAt?: string | null;
  finishedAt?: string | null;
}

/**
 * From where to where a run went, and its times; `from` is absent where an outside runtime did
 * not report it.
 */
export interface RunStatusChange {
  runId: string;
  to: RunStatus;
  from?: RunStatus | null;
  reason?: string | null;
  by?: Person | null;
  error?: RunErrorEvent | null;
  createdAt?: string | null;
  startedAt?: string | null;
  finishedAt?: string | null;
}

/**
 * Output of a program. Offsets count bytes of one stream of one process; past `maxBytes` the
 * rest is behind `ref`.
 */
export interface RunOutput {
  runId: string;
  stream: string;
  text?: string | null;
  offset?: number | null;
  processId?: string | null;
  callId?: string | null;
  truncated?: boolean | null;
  maxBytes?: number | null;
  bytesWritten?: number | null;
  ref?: string | null;
}

/** Several pieces of output of one stream, in order. */
export interface RunOutputBatch {
  runId: string;
  stream: string;
  chunks: OutputChunk[];
  processId?: string | null;
  callId?: string | null;
  truncated?: boolean | null;
  maxBytes?: number | null;
  bytesWritten?: number | null;
  ref?: string | null;
}

/** The journal refused facts of a run: what it did from here on is not on record. */
export interface PersistenceError {
  runId: string;
  error: string;
}

/** What a person must decide; the answer is bound to `argsHash`. */
export interface ApprovalRequest {
  approvalId: string;
  kind: string;
  riskLevel: string;
  runId?: string | null;
  summary?: string | null;
  argsHash?: string | null;
  expiresAt?: string | null;
  requestedBy?: string | null;
  callId?: string | null;
  toolName?: string | null;
  options?: unknown[] | null;
  responseSchema?: JsonObject | null;
  requestedAt?: string | null;
}

/**
 * What was decided, and whether it took effect: the same decision comes again when it is sent
 * to the agent and when it is applied.
 */
export interface ApprovalDecision {
  approvalId: string;
  decision: string;
  applied: boolean;
  runId?: string | null;
  decidedBy?: Person | null;
  reason?: string | null;
  requestedAt?: string | null;
  decidedAt?: string | null;
  sentAt?: string | null;
  appliedAt?: string | null;
}

/** A thing that a run made; its content is behind refs. `status` is what its facts say. */
export interface ArtifactEvent {
  artifactId: string;
  status: string;
  runId?: string | null;
  kind?: string | null;
  title?: string | null;
  versionId?: string | null;
  mediaType?: string | null;
  contentRef?: string | null;
  previewRef?: string | null;
  diffRef?: string | null;
  exportRef?: string | null;
  message?: string | null;
  failureCategory?: string | null;
}

/**
 * A look at what a run made: a server with a `url`, or an artifact's preview behind `ref`; `by`
 * is who started or stopped it, if it was a person.
 */
export interface PreviewEvent {
  previewId: string;
  status: "ready" | "stopped";
  runId?: string | null;
  artifactId?: string | null;
  url?: string | null;
  ref?: string | null;
  by?: Person | null;
}

/** What an agent works with, as it says when its session begins. */
export interface SessionInit {
  model?: string | null;
  tools?: string[] | null;
  mcpServers?: unknown[] | null;
  permissionMode?: string | null;
  version?: string | null;
  sessionId?: string | null;
  cwd?: string | null;
}

/** Text of an answer: a delta is the next piece, a block the whole text so far. */
export interface AgentText {
  messageId: string;
  content: string;
  partId?: string | null;
  subagentId?: string | null;
}

/** Reasoning that may be shown folded; `form` says if `content` is a piece, a summary or all. */
export interface AgentThinking {
  messageId: string;
  content: string;
  form: "delta" | "summary" | "whole";
  partId?: string | null;
  subagentId?: string | null;
}

/** A call of a tool: pending until its input is whole, in progress once it tells how far. */
export interface ToolCall {
  callId: string;
  status: "in_progress" | "pending" | "started";
  toolName?: string | null;
  input?: unknown;
  inputDelta?: string | null;
  elapsed?: number | null;
  progress?: number | null;
  total?: number | null;
  message?: string | null;
  subagentId?: string | null;
}

/** How a call ended; what is too long for `content` is behind `ref`. */
export interface ToolResult {
  callId: string;
  isError: boolean;
  toolName?: string | null;
  content?: unknown;
  ref?: string | null;
  exitCode?: number | null;
  failureCategory?: string | null;
  durationMs?: number | null;
  subagentId?: string | null;
}

/** A file that changed, by its path in the workspace. */
export interface FileChange {
  path: string;
  kind: "created" | "deleted" | "modified" | "unknown";
  diff?: string | null;
  diffRef?: string | null;
  addedLines?: number | null;
  removedLines?: number | null;
  callId?: string | null;
}

/** What a run came to, after its end. */
export interface AgentResult {
  success: boolean;
  durationMs?: number | null;
  turns?: number | null;
  usage?: JsonObject | null;
  totalCostUsd?: number | null;
  stopReason?: string | null;
  errors?: unknown[] | null;
  structuredOutput?: unknown;
}

/** Whom a coordinator gives the work to next; its fields are spelt as the Hub spells them. */
export interface CoordinatorRouteDecision {
  action: "approve" | "delegate" | "finish" | "review";
  next_worker?: string | null;
  instructions?: string | null;
  reasoning?: string | null;
  context?: unknown;
  approved?: boolean | null;
  feedback?: string | null;
  summary?: string | null;
  blocked_reason?: string | null;
  subtask_id?: string | null;
  parent_task_id?: string | null;
  correlation_id?: string | null;
}

/** Before this point, history is a summary. */
export interface CompactBoundary {
  trigger?: string | null;
  preTokens?: number | null;
  postTokens?: number | null;
  summary?: string | null;
}

/** How full the context is. */
export interface ContextUsage {
  inputTokens?: number | null;
  outputTokens?: number | null;
  totalTokens?: number | null;
  usagePercent?: number | null;
  threshold?: number | null;
}

/** The context is nearly full. */
export interface ContextWarning {
  usagePercent: number;
  threshold?: number | null;
}

/** Context is being folded, was, or could not be. */
export interface ContextCompaction {
  status: "completed" | "failed" | "started";
  usagePercent?: number | null;
  tokensUsed?: number | null;
  tokensRemaining?: number | null;
  threshold?: number | null;
  message?: string | null;
}

/** A model is asked again. */
export interface ApiRetry {
  attempt: number;
  maxRetries?: number | null;
  retryDelayMs?: number | null;
  error?: string | null;
}

/** A limit: known, hit, low or blocked. */
export interface RateLimit {
  status: string;
  name?: string | null;
  utilization?: number | null;
  resetsAt?: string | null;
  retryAfterMs?: number | null;
  message?: string | null;
}

/** Whether the agent is signing in. */
export interface AuthStatus {
  isAuthenticating: boolean;
  output?: string | null;
  error?: string | null;
}

/** A task has begun. */
export interface TaskStarted {
  taskId: string;
  callId?: string | null;
  description?: string | null;
  taskType?: string | null;
  parentId?: string | null;
}

/** A task was given to another agent; `parentId` is the task that it is part of. */
export interface TaskDispatched {
  agentId: string;
  taskId?: string | null;
  task?: string | null;
  role?: string | null;
  parentId?: string | null;
  callId?: string | null;
}

/** How far a task is. */
export interface TaskProgress {
  taskId: string;
  description?: string | null;
  lastToolName?: string | null;
  usage?: JsonObject | null;
  completedSteps?: number | null;
  totalSteps?: number | null;
  agentId?: string | null;
}

/** How a task ended, or what its worker has to say. */
export interface TaskNotification {
  taskId: string;
  status: string;
  summary?: string | null;
  usage?: JsonObject | null;
  ref?: string | null;
  agentId?: string | null;
}

/** All agents under one parent are done. */
export interface SubAgentsComplete {
  parentId: string;
  childCount: number;
  allComplete: boolean;
}

/** What the agent's session is doing. */
export interface SessionState {
  state: "idle" | "requires_action" | "running";
}

/** Where the agent is, in its own words, and under which permission mode. */
export interface StatusChange {
  status?: string | null;
  permissionMode?: string | null;
  phase?: string | null;
  message?: string | null;
}

/** What was used: by one call of a model, or by the session until now. */
export interface SessionMetrics {
  of: "call" | "session";
  inputTokens?: number | null;
  outputTokens?: number | null;
  totalTokens?: number | null;
  totalCostUsd?: number | null;
  model?: string | null;
}

/** A hook has begun. */
export interface HookStarted {
  hookId: string;
  hookName?: string | null;
  hookEvent?: string | null;
}

/** What a hook says while it runs. */
export interface HookProgress {
  hookId: string;
  hookName?: string | null;
  hookEvent?: string | null;
  stdout?: string | null;
  stderr?: string | null;
  message?: string | null;
}

/** How a hook ended. */
export interface HookResponse {
  hookId: string;
  outcome: string;
  hookName?: string | null;
  hookEvent?: string | null;
  exitCode?: number | null;
  stdout?: string | null;
  stderr?: string | null;
  message?: string | null;
}

/** Several calls in one sentence. */
export interface ToolUseSummary {
  summary: string;
  toolUseIds: string[];
}

/** The agent may not go on until somebody decides; `input` are the arguments of the call. */
export interface PermissionRequest {
  requestId: string;
  riskLevel: string;
  toolName?: string | null;
  callId?: string | null;
  input?: unknown;
  kind?: string | null;
  summary?: string | null;
  argsHash?: string | null;
  expiresAt?: string | null;
  requestedAt?: string | null;
}

/** What was decided, and whether the agent has acted upon it. */
export interface PermissionDecision {
  requestId: string;
  decision: string;
  applied: boolean;
  toolName?: string | null;
  callId?: string | null;
  reason?: string | null;
  decidedBy?: Person | null;
  requestedAt?: string | null;
  decidedAt?: string | null;
  sentAt?: string | null;
  appliedAt?: string | null;
}

/** Why a stream cannot go on; `code` is stable, `message` is for people. */
export interface ErrorPayload {
  code: string;
  message: string;
  traceId: string;
  details?: ErrorDetails | null;
}

/** A fact without a class, or with one that would pass for a word it has no right to. */
export interface UnknownFactEvent {
  eventClass?: string | null;
  payload?: JsonObject;
}

/** The payload of each listed type; other types are fact classes and carry any object. */
export interface PayloadByType {
  "project.created": ProjectEvent;
  "project.updated": ProjectEvent;
  "project.deleted": ProjectGone;
  "conversation.created": ConversationEvent;
  "conversation.member.added": Member;
  "thread.created": ThreadEvent;
  "thread.updated": ThreadEvent;
  "thread.deleted": ThreadGone;
  "thread.forked": ThreadFork;
  "message.created": Item;
  "message.delta": MessageDelta;
  "item.created": Item;
  "item.updated": Item;
  "runner.online": Runner;
  "runner.offline": Runner;
  "run.queued": RunEvent;
  "run.started": RunChange;
  "run.finished": RunChange;
  "run.cancelled": RunChange;
  "run.failed": RunFailure;
  "run.status.changed": RunStatusChange;
  "run.output": RunOutput;
  "run.output.batch": RunOutputBatch;
  "run.persistence_error": PersistenceError;
  "approval.requested": ApprovalRequest;
  "approval.decided": ApprovalDecision;
  "artifact.created": ArtifactEvent;
  "artifact.updated": ArtifactEvent;
  "preview.ready": PreviewEvent;
  "preview.stopped": PreviewEvent;
  "run.agent.session_init": SessionInit;
  "run.agent.text_delta": AgentText;
  "run.agent.text_block": AgentText;
  "run.agent.thinking": AgentThinking;
  "run.agent.tool_call": ToolCall;
  "run.agent.tool_result": ToolResult;
  "run.agent.file_change": FileChange;
  "run.agent.result": AgentResult;
  "run.agent.route_decision": CoordinatorRouteDecision;
  "run.agent.compact_boundary": CompactBoundary;
  "run.agent.context_usage": ContextUsage;
  "run.agent.context_warning": ContextWarning;
  "run.agent.context_compaction": ContextCompaction;
  "run.agent.api_retry": ApiRetry;
  "run.agent.rate_limit": RateLimit;
  "run.agent.auth_status": AuthStatus;
  "run.agent.task_started": TaskStarted;
  "run.agent.task_dispatched": TaskDispatched;
  "run.agent.task_progress": TaskProgress;
  "run.agent.task_notification": TaskNotification;
  "run.agent.sub_agents_complete": SubAgentsComplete;
  "run.agent.session_state_changed": SessionState;
  "run.agent.status_change": StatusChange;
  "run.agent.session_metrics": SessionMetrics;
  "run.agent.hook_started": HookStarted;
  "run.agent.hook_progress": HookProgress;
  "run.agent.hook_response": HookResponse;
  "run.agent.tool_use_summary": ToolUseSummary;
  "run.agent.permission_requested": PermissionRequest;
  "run.agent.permission_decided": PermissionDecision;
  "unknown": UnknownFactEvent;
}

export type EventType = keyof PayloadByType;

/** What an event is about; ids that its fact does not have are absent. */
export interface Scope {
  projectId?: string | null;
  conversationId?: string | null;
  threadId?: string | null;
  runId?: string | null;
  edgeId?: string | null;
  itemId?: string | null;
}

/**
 * One event. `id` leads to its fact, `seq` is the fact's, `cursor` is where to resume after it;
 * `type` decides what `payload` is. `sentAt` is the fact's own time, which orders nothing.
 */
export interface Envelope {
  version: "v1";
  id: string;
  seq: number;
  type: string;
  scope: Scope;
  traceId: string;
  sentAt: string;
  payload: unknown;
  cursor: string;
}

/** An envelope of type `T`, with the payload of that type. */
export type EnvelopeOf<T extends EventType> = Omit<Envelope, "type" | "payload"> & {
  type: T;
  payload: PayloadByType[T];
};

/** An envelope of any listed type; narrow it by `type`. */
export type KnownEnvelope = { [T in EventType]: EnvelopeOf<T> }[EventType];

/** Nothing of interest until here: a filtered stream may be resumed from this cursor. */
export interface Checkpoint {
  type: "checkpoint";
  cursor: string;
  seq: number;
}

/**
 * An error, as an envelope of its own: no fact has its `id`, and `seq` is the last one of the
 * journal when it was sent. It has no cursor to resume from; the stream ends.
 */
export interface ErrorEvent {
  type: "error";
  version: "v1";
  id: string;
  seq: number;
  scope: Scope;
  traceId: string;
  sentAt: string;
  payload: ErrorPayload;
}

/** A fact as it is stored, with its place. */
export interface FactFrame {
  cursor: string;
  seq: number;
  fact: Fact;
}

/** The whole state of a thread. */
export interface ProjectionSnapshot {
  type: "projection.snapshot";
  threadId: string;
  cursor: string;
  state: ProjectionState;
}

/** What changed in the state since the frame before, to be carried out in order. */
export interface ProjectionDelta {
  type: "projection.delta";
  threadId: string;
  cursor: string;
  operations: Operation[];
}

/** What a stream of events sends. */
export type EventFrame = Envelope | Checkpoint | ErrorEvent;

/** What a stream of facts sends. */
export type FactsFrame = FactFrame | Checkpoint | ErrorEvent;

/** What a stream of a thread's state sends. */
export type ProjectionFrame = ProjectionSnapshot | ProjectionDelta | ErrorEvent;
