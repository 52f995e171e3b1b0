// Generated from Factwire's types by `factwire schema typescript --name projection`; change those
// instead. The words of facts are in factwire.ts, which belongs beside this file.

import type {
  JsonObject,
  ActionType,
  EventClass,
  EvidenceKind,
  Kind,
  Owner,
  Phase,
  RuntimeEntity,
  Status,
  Surface,
  TaskState,
  ToolState,
  Topology,
} from "./factwire";

export type MessageStatus =
  | "streaming"
  | "final"
  | "interrupted"
  | "stale"
  | "retracted";

export type PartState =
  | "streaming"
  | "final"
  | "interrupted"
  | "stale";

export type HydrationStatus =
  | "idle"
  | "hydrating"
  | "live"
  | "stale"
  | "repairing"
  | "degraded";

export type AttentionKind =
  | "needs_input"
  | "plan_ready"
  | "failed"
  | "running";

/** One request. `requestedBy` names who asks; a delegated one names the subagent. */
export interface Action {
  actionId: string;
  status: string;
  actionType?: ActionType | null;
  severity?: string | null;
  title?: string | null;
  prompt?: string | null;
  shown?: string | null;
  detail?: string | null;
  requestedBy?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  taskId?: string | null;
  turnId?: string | null;
  runId?: string | null;
  toolCallId?: string | null;
  toolName?: string | null;
  command?: unknown;
  cwd?: string | null;
  rule?: string | null;
  diff?: string | null;
  diffRef?: string | null;
  diffTruncated?: boolean | null;
  refs?: string[] | null;
  argsHash?: string | null;
  expiresAt?: string | null;
  options?: unknown[] | null;
  responseSchema?: JsonObject | null;
  decision?: string | null;
  reason?: string | null;
  decidedBy?: Person | string | null;
  applied?: boolean | null;
  response?: unknown;
  requestedAt?: string | null;
  resolvedAt?: string | null;
  sentAt?: string | null;
  appliedAt?: string | null;
  sequence?: number | null;
}

/** Something a subagent did or was told. */
export interface Activity {
  eventId: string;
  eventClass: EventClass;
  subagentId: string;
  status?: string | null;
  message?: string | null;
  refs?: string[] | null;
  createdAt?: string | null;
}

/** A thing that was made, in its place; the thing itself is in `artifacts`. */
export interface ArtifactCardPart {
  type: "artifact-card";
  partId: string;
  messageId: string;
  artifactId: string;
  versionId?: string | null;
}

/**
 * One thing that was made. `kind` is what its facts say, else `unknown`. An inline diff is with
 * its version, and here where its fact names none. `originThreadId` is the thread that a fork
 * has it from.
 */
export interface ArtifactState {
  artifactId: string;
  kind: string;
  status: string;
  versions: ArtifactVersion[];
  title?: string | null;
  owner?: string | null;
  mediaType?: string | null;
  versionId?: string | null;
  path?: string | null;
  contentRef?: string | null;
  previewRef?: string | null;
  diff?: string | null;
  diffRef?: string | null;
  diffTruncated?: boolean | null;
  exportStatus?: string | null;
  exportRef?: string | null;
  refs?: string[] | null;
  source?: string | null;
  message?: string | null;
  failureCategory?: string | null;
  toolCallId?: string | null;
  turnId?: string | null;
  taskId?: string | null;
  subagentId?: string | null;
  originThreadId?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
}

/** One version; what it holds is behind its refs. */
export interface ArtifactVersion {
  versionId: string;
  eventId: string;
  contentRef?: string | null;
  previewRef?: string | null;
  diff?: string | null;
  diffRef?: string | null;
  diffTruncated?: boolean | null;
  createdAt?: string | null;
}

/** One try at a task; earlier ones are kept. */
export interface Attempt {
  attemptId: string;
  status: string;
  number: number;
  runId?: string | null;
  failureCategory?: string | null;
  message?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** What was done to a workspace. */
export interface Coding {
  files: { [key: string]: File };
  patches: { [key: string]: Patch };
  tests: { [key: string]: TestRun };
}

/** One boundary: before it, history is a summary. `endedBy` are classes that told its end. */
export interface Compaction {
  eventId: string;
  status: string;
  compactionId?: string | null;
  turnId?: string | null;
  sequence?: number | null;
  trigger?: string | null;
  summary?: string | null;
  summaryRef?: string | null;
  tokensBefore?: number | null;
  tokensAfter?: number | null;
  failureCategory?: string | null;
  refs?: string[] | null;
  startedAt?: string | null;
  completedAt?: string | null;
  endedBy?: string[] | null;
}

/** The context as its facts tell it. */
export interface Context {
  items: ContextItem[];
  compactions: Compaction[];
  status: string;
  usagePercent?: number | null;
  tokens?: number | null;
  toolCatalog?: unknown[] | null;
}

/** Something that was selected, attached or missing. */
export interface ContextItem {
  eventId: string;
  status: string;
  title: string;
  kind?: string | null;
  message?: string | null;
  failureCategory?: string | null;
  refs?: string[] | null;
  turnId?: string | null;
  createdAt?: string | null;
}

/** A tool call that set a subagent to work. */
export interface DelegationCall {
  toolCallId: string;
  subagentId: string;
  taskId?: string | null;
  turnId?: string | null;
  createdAt?: string | null;
}

/** One remark; `code` is stable, `message` is for people. */
export interface Diagnostic {
  diagnosticId: string;
  code: string;
  severity: string;
  message: string;
  eventId: string;
  sequence?: number | null;
  turnId?: string | null;
  subject?: string | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  rawRef?: string | null;
  refs?: string[] | null;
  createdAt?: string | null;
}

/** A way to a diagnostic; its words are in `diagnostics` and not here. */
export interface DiagnosticRefPart {
  type: "diagnostic-ref";
  partId: string;
  messageId: string;
  diagnosticId: string;
}

/** The newest remarks by id, and how many there have been. */
export interface Diagnostics {
  items: { [key: string]: Diagnostic };
  total: number;
  errors: number;
  warnings: number;
}

/** Evidence, reviews and trials, each by id. */
export interface Evidence {
  items: { [key: string]: EvidenceItem };
  reviews: { [key: string]: Review };
  trials: { [key: string]: Trial };
}

/** A citation in its place; the evidence itself is in `evidence`. */
export interface EvidenceCitationPart {
  type: "evidence-citation";
  partId: string;
  messageId: string;
  evidenceId: string;
  verdict?: string | null;
}

/** One piece of evidence, behind its refs; a verdict is only what a fact says. */
export interface EvidenceItem {
  evidenceId: string;
  kind: EvidenceKind;
  status: string;
  title?: string | null;
  verdict?: string | null;
  summary?: string | null;
  summaryRef?: string | null;
  exportRef?: string | null;
  replayRef?: string | null;
  reviewRef?: string | null;
  packRef?: string | null;
  url?: string | null;
  reviewIds?: string[] | null;
  refs?: string[] | null;
  turnId?: string | null;
  runId?: string | null;
  taskId?: string | null;
  subagentId?: string | null;
  toolCallId?: string | null;
  traceId?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
}

/** One file of the workspace, as far as facts touched it, with the last diff of it. */
export interface File {
  path: string;
  reads: number;
  changes: number;
  addedLines: number;
  removedLines: number;
  change?: string | null;
  diff?: string | null;
  diffRef?: string | null;
  diffTruncated?: boolean | null;
  refs?: string[] | null;
  artifactId?: string | null;
  toolCallId?: string | null;
  turnId?: string | null;
  updatedAt?: string | null;
}

/** Sequences that are missing, both ends included; `threadId` where it is another thread's. */
export interface Gap {
  fromSequence: number;
  toSequence: number;
  threadId?: string | null;
}

/** Nodes and edges by id. */
export interface Graph {
  nodes: { [key: string]: GraphNode };
  edges: { [key: string]: GraphEdge };
}

/** From one node to another, and why. */
export interface GraphEdge {
  edgeId: string;
  source: string;
  target: string;
  kind: string;
}

/** One node; `parentId` is set where a fact says so. */
export interface GraphNode {
  nodeId: string;
  nodeType: string;
  status: string;
  title: string;
  sourceEventIds: string[];
  parentId?: string | null;
  refs?: string[] | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** Work that goes from one agent to another. */
export interface HandoffEvent {
  handoffId: string;
  status: string;
  fromAgent?: string | null;
  toAgent?: string | null;
  reason?: string | null;
  taskId?: string | null;
  subagentId?: string | null;
  turnId?: string | null;
  refs?: string[] | null;
  requestedAt?: string | null;
  completedAt?: string | null;
}

/** One run of a hook. */
export interface Hook {
  hookId: string;
  status: string;
  hookName?: string | null;
  hookEvent?: string | null;
  outcome?: string | null;
  exitCode?: number | null;
  message?: string | null;
  refs?: string[] | null;
  toolCallId?: string | null;
  turnId?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** How whole the state is. `cursor` is the last sequence up to which nothing is missing. */
export interface Hydration {
  status: HydrationStatus;
  cursor: number | null;
  received: number;
  eventCount: number;
  repeated: number;
  late: number;
  dropped: number;
  held: number;
  gaps: Gap[];
  reasons: string[];
  ignored: string[];
  doubtedAt?: number | null;
}

/** Work in many items, counted rather than listed. */
export interface Job {
  jobId: string;
  status: string;
  itemsRunning: number;
  itemsCompleted: number;
  itemsFailed: number;
  runningItemIds: string[];
  title?: string | null;
  taskId?: string | null;
  totalItems?: number | null;
  progress?: number | null;
  message?: string | null;
  failureCategory?: string | null;
  createdAt?: string | null;
  completedAt?: string | null;
}

/** One event of a lane, in order. */
export interface LaneEvent {
  eventId: string;
  lane: string;
  status: string;
  title: string;
  subjectId?: string | null;
  taskId?: string | null;
  subagentId?: string | null;
  verdict?: string | null;
  refs?: string[] | null;
  createdAt?: string | null;
}

/** One limit or quota, as stated last. */
export interface Limit {
  name: string;
  status: string;
  limit?: number | null;
  used?: number | null;
  remaining?: number | null;
  utilization?: number | null;
  resetsAt?: string | null;
  retryAfterMs?: number | null;
  message?: string | null;
  hits?: number | null;
  updatedAt?: string | null;
}

/**
 * One message of the conversation, with its parts in the order of their first facts.
 * `originThreadId` is the thread that a fork has it from, `by` the person who wrote it.
 */
export interface Message {
  messageId: string;
  role: string;
  status: MessageStatus;
  sequence: number | null;
  parts: Part[];
  turnId?: string | null;
  threadId?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  taskId?: string | null;
  optimisticId?: string | null;
  inputRefs?: string[] | null;
  by?: Person | null;
  originThreadId?: string | null;
  createdAt?: string | null;
  completedAt?: string | null;
  settles?: PartState | null;
  aliases?: string[] | null;
}

/** One message at the moment of a read model. */
export interface MessageSnapshot {
  messageId: string;
  role: string;
  status: MessageStatus;
  parts: (TextSnapshot | ReasoningSnapshot | ToolPreviewPart | ArtifactCardPart | EvidenceCitationPart | DiagnosticRefPart)[];
  sequence?: number | null;
  turnId?: string | null;
  threadId?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  taskId?: string | null;
  optimisticId?: string | null;
  inputRefs?: string[] | null;
  originThreadId?: string | null;
  createdAt?: string | null;
  completedAt?: string | null;
}

/** Figures of the thread. */
export interface Metrics {
  usage: Usage;
  limits: { [key: string]: Limit };
  routing: Routing[];
  values: { [key: string]: boolean | number | number | string };
}

/** Somebody: `via` is what they used, such as the workbench or a token. */
export interface NamedPerson {
  name: string;
  via?: string | null;
  userId?: string | null;
  deviceId?: string | null;
}

/** What a worker reports, with ways to its result and transcript. */
export interface Notification {
  eventId: string;
  title: string;
  workerId?: string | null;
  taskId?: string | null;
  status?: string | null;
  message?: string | null;
  resultRef?: string | null;
  transcriptRef?: string | null;
  refs?: string[] | null;
  createdAt?: string | null;
}

/** How the last turn ended, and who cancelled it. */
export interface Outcome {
  status: string;
  turnId?: string | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  cancelledBy?: Person | null;
}

/** One set of changes, applied as a whole or not at all. */
export interface Patch {
  patchId: string;
  status: string;
  paths?: string[] | null;
  diff?: string | null;
  diffRef?: string | null;
  diffTruncated?: boolean | null;
  refs?: string[] | null;
  failureCategory?: string | null;
  message?: string | null;
  toolCallId?: string | null;
  turnId?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** One evaluation, request, grant or denial. */
export interface PermissionEvent {
  eventId: string;
  eventClass: EventClass;
  decision?: string | null;
  mode?: string | null;
  rule?: string | null;
  reasonCode?: string | null;
  message?: string | null;
  toolName?: string | null;
  toolCallId?: string | null;
  actionId?: string | null;
  subagentId?: string | null;
  path?: string | null;
  command?: string | null;
  turnId?: string | null;
  createdAt?: string | null;
}

/** The mode, what was decided lately, what is asked for and not decided, and the sandbox. */
export interface Permissions {
  events: PermissionEvent[];
  pending: PermissionEvent[];
  sandbox: SandboxStatus;
  evaluated: number;
  denied: number;
  mode?: string | null;
  policy?: PolicyTermsPayload | null;
}

/** Somebody who did something; `togetherWith` are others who had to agree. */
export interface Person {
  name: string;
  via?: string | null;
  userId?: string | null;
  deviceId?: string | null;
  togetherWith?: NamedPerson[];
}

/** The plan of one turn; `decision` is what a person said to it, by the action that asked. */
export interface Plan {
  planId: string;
  text: string;
  state: "final" | "stale" | "streaming";
  turnId?: string | null;
  subagentId?: string | null;
  steps?: unknown[] | null;
  actionId?: string | null;
  decision?: string | null;
  aliases?: string[] | null;
}

/** policy.changed: the rule or mode that holds from here on, and who decided it. */
export interface PolicyTermsPayload {
  mode?: string | null;
  rule?: string | null;
  decision?: string | null;
  reasonCode?: string | null;
  message?: string | null;
  toolName?: string | null;
  path?: string | null;
  command?: string | null;
  rules?: string[] | null;
  decidedBy?: Person | string | null;
  standing?: StandingGrant | null;
}

/**
 * One program: a process of the runtime, or a command that a tool ran. Of its `outputBytes`,
 * `stderrBytes` came on stderr.
 */
export interface Process {
  processId: string;
  kind: string;
  status: string;
  output: string;
  outputBytes: number;
  command?: unknown;
  cwd?: string | null;
  exitCode?: number | null;
  signal?: string | number | null;
  truncated?: boolean | null;
  stderrBytes?: number | null;
  outputRef?: string | null;
  refs?: string[] | null;
  failureCategory?: string | null;
  toolCallId?: string | null;
  turnId?: string | null;
  subagentId?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** One piece of work. */
export interface ProjectedTask {
  taskId: string;
  status: TaskState;
  attempts: Attempt[];
  retries: number;
  title?: string | null;
  objective?: string | null;
  role?: string | null;
  assignee?: string | null;
  parentTaskId?: string | null;
  turnId?: string | null;
  currentRunId?: string | null;
  agentId?: string | null;
  subagentIds?: string[] | null;
  remoteTaskId?: string | null;
  completedSteps?: number | null;
  totalSteps?: number | null;
  progress?: number | null;
  dependsOn?: string[] | null;
  dependencies?: { [key: string]: string } | null;
  delegatedTo?: string | null;
  profile?: TaskProfilePayload | null;
  reason?: string | null;
  message?: string | null;
  failureCategory?: string | null;
  artifactRefs?: string[] | null;
  evidenceRefs?: string[] | null;
  outputRefs?: string[] | null;
  runtimeEntity?: RuntimeEntity | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  completedAt?: string | null;
}

/**
 * One turn, and who cancelled it. One that is not the thread's own names who took it: a
 * subagent, a job, a task or a child thread.
 */
export interface ProjectedTurn {
  turnId: string;
  status: string;
  runId?: string | null;
  agentId?: string | null;
  taskId?: string | null;
  subagentId?: string | null;
  workerId?: string | null;
  parentTaskId?: string | null;
  jobId?: string | null;
  threadId?: string | null;
  failureCategory?: string | null;
  message?: string | null;
  recoveryHint?: string | null;
  submittedAt?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
  entity?: "job" | "subagent" | "task" | "thread" | null;
  endedBy?: string | null;
  cancelledBy?: Person | null;
}

/** What waits, in order. */
export interface Queue {
  turns: QueuedTurn[];
  steers: Steer[];
  reason?: string | null;
}

/**
 * One turn that waits. A `held` one was waiting when a person stopped the thread: it starts
 * only when a person releases it.
 */
export interface QueuedTurn {
  queuedTurnId: string;
  prompt?: string | null;
  agentId?: string | null;
  input?: unknown[] | null;
  options?: JsonObject | null;
  status?: string | null;
  mode?: string | null;
  queuedAt?: string | null;
  workspace?: string | null;
  projectId?: string | null;
  retryOf?: string | null;
  attempt?: number | null;
  notBefore?: string | null;
  heldAt?: string | null;
  by?: Person | null;
}

/** That the model reasoned, and the summary it gave; the raw chain of thought is not kept. */
export interface ReasoningPart {
  type: "reasoning";
  partId: string;
  messageId: string;
  summary: string;
  characters: number;
  state: PartState;
  settles?: PartState | null;
  encryptedRef?: string | null;
  aliases?: string[] | null;
}

/** A summary of reasoning, with length and digest as a text has them. */
export interface ReasoningSnapshot {
  type: "reasoning";
  partId: string;
  messageId: string;
  summary: string;
  characters: number;
  state: PartState;
  length?: number | null;
  digest?: string | null;
  encryptedRef?: string | null;
}

/**
 * The read model that a state was restored from or last repaired with, if any.
 *
 * `stale` is set when the last one offered was older than the state, and was left aside.
 * `earlierMessages` is how many messages came before those that it carried, `extensions` what it
 * carried beyond the fields of this version.
 */
export interface RestoredFrom {
  eventCursor?: number | null;
  historyCursor?: string | null;
  status?: string | null;
  stale?: boolean | null;
  earlierMessages?: number | null;
  extensions?: JsonObject | null;
}

/** One review: asked for, and perhaps answered. */
export interface Review {
  reviewId: string;
  status: string;
  verdict?: string | null;
  reviewer?: string | null;
  summary?: string | null;
  summaryRef?: string | null;
  reviewRef?: string | null;
  refs?: string[] | null;
  evidenceIds?: string[] | null;
  turnId?: string | null;
  taskId?: string | null;
  subagentId?: string | null;
  requestedAt?: string | null;
  completedAt?: string | null;
}

/** One member of the team; the rest about it is in `subagents.threads` under the same id. */
export interface RosterNode {
  memberId: string;
  status: string;
  kind: string;
  name?: string | null;
  role?: string | null;
  taskId?: string | null;
  parentId?: string | null;
}

/** One decision about which model to ask. */
export interface Routing {
  eventId: string;
  decision: string;
  model?: string | null;
  provider?: string | null;
  candidates?: unknown[] | null;
  reason?: string | null;
  reasonCode?: string | null;
  turnId?: string | null;
  taskId?: string | null;
  createdAt?: string | null;
}

/**
 * The status of the thread; `status` follows from the rest. `cancellingTurnId` was asked to
 * stop and has not ended.
 */
export interface RuntimeStatus {
  status: string;
  phase: Phase;
  latestEventId: string | null;
  latestSequence: number | null;
  activeTurnId?: string | null;
  activeRunId?: string | null;
  activeTaskId?: string | null;
  agentId?: string | null;
  model?: string | null;
  provider?: string | null;
  message?: string | null;
  latestTurnId?: string | null;
  latestTurnStatus?: string | null;
  cancellingTurnId?: string | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  blockedReason?: string | null;
  runtimeEntity?: RuntimeEntity | null;
  runtimeStatus?: string | null;
  teamPhase?: string | null;
  topology?: Topology | null;
  queueReason?: string | null;
  queuedTurnCount?: number | null;
  activeTurnCount?: number | null;
  parallelLimit?: number | null;
}

/** One bound that a sandbox holds a program to, and by what means. */
export interface SandboxBound {
  value?: number | null;
  by?: string | null;
}

/** Something that was asked of a sandbox and does not hold, and why. */
export interface SandboxLack {
  what?: string | null;
  reason?: string | null;
}

/** What the sandbox allows, as applied last, and how often it had to say no. */
export interface SandboxStatus {
  status: string;
  blocked: number;
  violations: number;
  applied?: SandboxTermsPayload | null;
  latestReasonCode?: string | null;
}

/** sandbox.applied: what a program may reach from here on, and what could not be had. */
export interface SandboxTermsPayload {
  mode?: string | null;
  decision?: string | null;
  reasonCode?: string | null;
  message?: string | null;
  tool?: string | null;
  toolVersion?: string | null;
  network?: boolean | string | null;
  root?: string | null;
  writable?: string[] | null;
  readable?: string[] | null;
  hidden?: string[] | null;
  namespaces?: string[] | null;
  capabilities?: string | null;
  newSession?: boolean | null;
  diesWithParent?: boolean | null;
  nestedNamespaces?: boolean | null;
  systemCallFilter?: boolean | null;
  limits?: { [key: string]: SandboxBound } | null;
  notApplied?: SandboxLack[] | null;
}

/** A rule that was granted for longer than once. */
export interface StandingGrant {
  rule?: string | null;
  lasts?: string | null;
  revoked?: boolean | null;
}

/**
 * Text given to a turn that was already running. One that was delivered is a message, too;
 * `queuedTurnId` is the turn that waited with this text before.
 */
export interface Steer {
  eventId: string;
  steerId?: string | null;
  text?: string | null;
  input?: unknown[] | null;
  status?: string | null;
  turnId?: string | null;
  queuedTurnId?: string | null;
  createdAt?: string | null;
  by?: Person | null;
}

/** One teammate as a thread of its own: where it comes from, how it is, what it left. */
export interface SubagentThread {
  subagentId: string;
  status: string;
  lineage: string;
  name?: string | null;
  role?: string | null;
  title?: string | null;
  agentId?: string | null;
  workerId?: string | null;
  threadId?: string | null;
  sessionId?: string | null;
  parentThreadId?: string | null;
  parentSessionId?: string | null;
  taskId?: string | null;
  parentTaskId?: string | null;
  parentSubagentId?: string | null;
  toolCallId?: string | null;
  turnId?: string | null;
  channelId?: string | null;
  remoteTaskId?: string | null;
  topology?: Topology | null;
  runtimeEntity?: RuntimeEntity | null;
  summary?: string | null;
  message?: string | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  resultRef?: string | null;
  transcriptRef?: string | null;
  artifactRefs?: string[] | null;
  evidenceRefs?: string[] | null;
  startedAt?: string | null;
  updatedAt?: string | null;
  completedAt?: string | null;
}

/** All teammates by id, who set them to work, what they did lately, and who is active. */
export interface Subagents {
  threads: { [key: string]: SubagentThread };
  delegationCalls: { [key: string]: DelegationCall };
  activities: Activity[];
  activeThreadIds: string[];
}

/** task.profile.resolved: with what a task is worked on. */
export interface TaskProfilePayload {
  profile?: string | null;
  model?: string | null;
  provider?: string | null;
  role?: string | null;
  mode?: string | null;
  effort?: string | null;
  reason?: string | null;
}

/** How many steps of how many. */
export interface TaskSteps {
  completedSteps: number;
  totalSteps: number;
}

/** One member: its card, and its thread where one is known. */
export interface TeamMember {
  node: RosterNode;
  thread?: SubagentThread | null;
}

/** The team, its work and what goes between its members. */
export interface TeamWorkbench {
  rosterNodes: { [key: string]: RosterNode };
  workItems: { [key: string]: WorkItem };
  handoffEvents: { [key: string]: HandoffEvent };
  reviewEvents: LaneEvent[];
  laneEvents: LaneEvent[];
  notifications: Notification[];
  teamId?: string | null;
  teamName?: string | null;
  teamPhase?: string | null;
  topology?: Topology | null;
  activeAgent?: string | null;
  policy?: JsonObject | null;
}

/** One run of tests. */
export interface TestRun {
  testRunId: string;
  status: string;
  command?: string | null;
  result?: unknown;
  passed?: number | null;
  failed?: number | null;
  skipped?: number | null;
  refs?: string[] | null;
  toolCallId?: string | null;
  turnId?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** Text to read: the answer, or what the user wrote. */
export interface TextPart {
  type: "text";
  partId: string;
  messageId: string;
  text: string;
  state: PartState;
  settles?: PartState | null;
  aliases?: string[] | null;
}

/**
 * A text, or the first characters of a longer one. `length` and `digest` are those of the
 * whole text as far as it was written; where pieces of it may be missing, there are none.
 */
export interface TextSnapshot {
  type: "text";
  partId: string;
  messageId: string;
  text: string;
  state: PartState;
  length?: number | null;
  digest?: string | null;
}

/** A thread as one line of a session. */
export interface ThreadSummary {
  threadId: string;
  status: string;
  pendingActionCount: number;
  title?: string | null;
  activeTurnId?: string | null;
  eventCursor?: number | null;
}

/** One thing that happened. `sourceEventIds` names its facts, of deltas the first. */
export interface TimelineEntry {
  entryId: string;
  sequence: number | null;
  kind: Kind;
  eventClass: EventClass;
  phase: Phase;
  owner: Owner;
  surface: Surface;
  status: Status;
  title: string;
  sourceEventIds: string[];
  detail?: string | null;
  refs?: string[] | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  degraded?: boolean | null;
  turnId?: string | null;
  subagentId?: string | null;
  createdAt?: string | null;
  completedAt?: string | null;
}

/**
 * One call. `args` and `output` are what a person may see; big output is behind a ref.
 * `originThreadId` is the thread that a fork has it from.
 */
export interface Tool {
  toolCallId: string;
  state: ToolState;
  argsText: string;
  outputText: string;
  outputCharacters: number;
  toolName?: string | null;
  title?: string | null;
  args?: unknown;
  argsTruncated?: boolean | null;
  output?: unknown;
  outputRef?: string | null;
  diff?: string | null;
  diffRef?: string | null;
  outputTruncated?: boolean | null;
  summary?: string | null;
  message?: string | null;
  progress?: number | null;
  total?: number | null;
  exitCode?: number | null;
  durationMs?: number | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  turnId?: string | null;
  messageId?: string | null;
  stepId?: string | null;
  taskId?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  actionId?: string | null;
  artifactIds?: string[] | null;
  refIds?: string[] | null;
  evidenceRefs?: string[] | null;
  unclosed?: boolean | null;
  originThreadId?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** One call, without its input and output; `outputCharacters` is how much output it wrote. */
export interface ToolCallSummary {
  toolCallId: string;
  state: ToolState;
  toolName?: string | null;
  title?: string | null;
  turnId?: string | null;
  subagentId?: string | null;
  outputRef?: string | null;
  failureCategory?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
  outputCharacters?: number;
  summary?: string | null;
  message?: string | null;
  recoveryHint?: string | null;
  exitCode?: number | null;
  durationMs?: number | null;
  messageId?: string | null;
  stepId?: string | null;
  taskId?: string | null;
  agentId?: string | null;
  actionId?: string | null;
  artifactIds?: string[] | null;
  refIds?: string[] | null;
  evidenceRefs?: string[] | null;
  diffRef?: string | null;
  unclosed?: boolean | null;
  originThreadId?: string | null;
}

/** A tool call in its place among the text; the tool itself is in `tools`. */
export interface ToolPreviewPart {
  type: "tool-preview";
  partId: string;
  messageId: string;
  toolCallId: string;
  status: ToolState;
  outputRef?: string | null;
}

/** One trial of a benchmark. */
export interface Trial {
  trialId: string;
  status: string;
  dataset?: string | null;
  task?: string | null;
  configuration?: JsonObject | null;
  reward?: number | null;
  trajectoryRef?: string | null;
  refs?: string[] | null;
  failureCategory?: string | null;
}

/** Sums of what was recorded; estimates are kept apart. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  totalCostUsd: number;
  records: number;
  estimatedCostUsd?: number | null;
  currency?: string | null;
}

/** One card of the work board; the rest about it is in `tasks` under the same id. */
export interface WorkItem {
  taskId: string;
  status: TaskState;
  title?: string | null;
  assignee?: string | null;
  parentTaskId?: string | null;
  blockedBy?: string[] | null;
}

/** One part of a message; narrow it by `type`. */
export type Part = TextPart | ReasoningPart | ToolPreviewPart | ArtifactCardPart | EvidenceCitationPart | DiagnosticRefPart;

/**
 * The roots. `shared` is the application's own state, which `state.delta` patches;
 * `agentSessions` is the name under which each outside agent knows this thread, and
 * `agentSessionUsage` what it had counted there when it last said so.
 */
export interface ProjectionState {
  schemaVersion: string;
  runtime: RuntimeStatus;
  messages: Message[];
  plans: { [key: string]: Plan };
  turns: { [key: string]: ProjectedTurn };
  timeline: TimelineEntry[];
  graph: Graph;
  tools: { [key: string]: Tool };
  actions: { [key: string]: Action };
  artifacts: { [key: string]: ArtifactState };
  evidence: Evidence;
  diagnostics: Diagnostics;
  tasks: { [key: string]: ProjectedTask };
  jobs: { [key: string]: Job };
  queue: Queue;
  context: Context;
  subagents: Subagents;
  teamWorkbench: TeamWorkbench;
  permissions: Permissions;
  metrics: Metrics;
  processes: { [key: string]: Process };
  hooks: { [key: string]: Hook };
  coding: Coding;
  shared: JsonObject;
  hydration: Hydration;
  readModel: RestoredFrom;
  runtimeId?: string | null;
  sessionId?: string | null;
  threadId?: string | null;
  title?: string | null;
  agentSessions?: { [key: string]: string } | null;
  agentSessionUsage?: { [key: string]: JsonObject } | null;
}

/**
 * One thread at `eventCursor`, the sequence of the last fact that it knows of.
 *
 * `messages` are the latest of the conversation, after `earlierMessages` that were left out. A
 * list that is absent says nothing; an empty one says that there is nothing. `doubts` are the
 * reasons for which the thread may lack something: `gapReported` where facts are missing,
 * `stateDeltaFailed` where `shared` may be wrong. `resolvedActions` are requests that are over,
 * so that a second answer is known for one. `extensions` are the fields that a reader of this
 * version does not know.
 */
export interface ThreadReadModel {
  schemaVersion: string;
  runtimeId: string;
  sessionId: string;
  threadId: string;
  status: string;
  pendingActions: Action[];
  toolCalls: ToolCallSummary[];
  queuedTurns: QueuedTurn[];
  incidents: Diagnostic[];
  diagnostics: Diagnostic[];
  activeTurnId?: string | null;
  lastOutcome?: Outcome | null;
  historyCursor?: string | null;
  eventCursor?: number | null;
  blockedReason?: string | null;
  messages?: MessageSnapshot[] | null;
  earlierMessages?: number | null;
  tasks?: ProjectedTask[] | null;
  artifacts?: ArtifactState[] | null;
  evidence?: EvidenceItem[] | null;
  reviews?: Review[] | null;
  subagents?: SubagentThread[] | null;
  shared?: JsonObject | null;
  doubts?: string[] | null;
  extensions?: JsonObject | null;
  resolvedActions?: Action[] | null;
}

/** One task at `eventCursor`. */
export interface TaskSnapshot {
  taskId: string;
  status: TaskState;
  attempts: Attempt[];
  dependencies: { [key: string]: string };
  subagents: string[];
  artifactRefs: string[];
  evidenceRefs: string[];
  outputRefs?: string[] | null;
  objective?: string | null;
  parentTaskId?: string | null;
  currentRunId?: string | null;
  progress?: TaskSteps | null;
  progressShare?: number | null;
  eventCursor?: number | null;
}

/** A session: its threads, and the work and results in all of them. */
export interface SessionSnapshot {
  schemaVersion: string;
  sessionId: string;
  status: string;
  threads: ThreadSummary[];
  tasks: TaskSnapshot[];
  artifacts: ArtifactRef[];
  evidence: EvidenceRef[];
  pendingActionCount: number;
}

/** Where an artifact is, never what it holds. */
export interface ArtifactRef {
  artifactId: string;
  kind: string;
  status: string;
  owner?: string | null;
  title?: string | null;
  versionId?: string | null;
  previewRef?: string | null;
  source?: string | null;
}

/** Where a piece of evidence is, and the run it belongs to. */
export interface EvidenceRef {
  evidenceId: string;
  kind: EvidenceKind;
  status: string;
  runtimeCorrelation: { [key: string]: string };
  title?: string | null;
  summaryRef?: string | null;
  exportRef?: string | null;
}

/** Something that a person should look at, and why. */
export interface Attention {
  kind: AttentionKind;
  subjectId: string;
  title: string;
  severity?: string | null;
  requester?: string | null;
  turnId?: string | null;
  since?: string | null;
}

/** An open action, with the name of who asks. */
export interface PendingAction {
  action: Action;
  requester: string;
  severity: string;
}

/** What is going on now: the phase, and everything that is open in it. */
export interface ActiveProcess {
  status: string;
  phase: Phase;
  tools: Tool[];
  processes: Process[];
  turnId?: string | null;
  message?: string | null;
  plan?: Plan | null;
  compaction?: Compaction | null;
}

/** Some entries of the timeline; `nextAfter` asks for what comes behind them. */
export interface TimelinePage {
  entries: TimelineEntry[];
  total: number;
  nextAfter?: number | null;
}

/** Nodes, parents before children, and the edges between them. */
export interface GraphView {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** A team at work; `board` holds the columns todo, doing, waiting, failed and done. */
export interface TeamView {
  members: TeamMember[];
  board: { [key: string]: WorkItem[] };
  handoffs: HandoffEvent[];
  reviews: LaneEvent[];
  notifications: Notification[];
  delegated: PendingAction[];
  topology?: Topology | null;
  activeAgent?: string | null;
}

/** Puts a value at a place: into an object, or into a list before an index or, with `-`, last. */
export interface WriteOperation {
  op: "add" | "replace";
  path: string;
  value: unknown;
}

/** Takes away what stands at a place. */
export interface RemoveOperation {
  op: "remove";
  path: string;
}

/** Adds text to the end of the text at a place. */
export interface AppendOperation {
  op: "append";
  path: string;
  value: string;
}

/** One operation on the place that the JSON Pointer `path` names. */
export type Operation = WriteOperation | RemoveOperation | AppendOperation;

/** What facts did to a state, as operations to carry out in order, all or none. */
export type Operations = Operation[];
