// Generated from Factwire's types by `factwire schema typescript`; change those instead.

/** Any JSON object. */
export type JsonObject = { [field: string]: unknown };

/** A type together with the fields that Factwire does not know and keeps. */
export type Open<T> = T & { [field: string]: unknown };

/** A known word, or any other: every vocabulary is open. */
export type OpenWord<Known extends string> = Known | (string & {});

export type RuntimeClass =
  | "session.created"
  | "session.updated"
  | "thread.started"
  | "thread.updated"
  | "turn.submitted"
  | "turn.started"
  | "turn.completed"
  | "turn.failed"
  | "turn.canceled"
  | "run.status"
  | "model.requested"
  | "model.delta"
  | "model.completed"
  | "model.failed"
  | "reasoning.started"
  | "reasoning.delta"
  | "reasoning.summary"
  | "reasoning.completed"
  | "plan.delta"
  | "plan.final"
  | "messages.snapshot"
  | "tool.catalog.resolved"
  | "tool.started"
  | "tool.args"
  | "tool.args.delta"
  | "tool.progress"
  | "tool.output.delta"
  | "tool.result"
  | "tool.failed"
  | "action.required"
  | "action.updated"
  | "action.resolved"
  | "action.cancelled"
  | "action.canceled"
  | "action.expired"
  | "permission.evaluated"
  | "permission.requested"
  | "permission.resolved"
  | "permission.denied"
  | "sandbox.applied"
  | "sandbox.blocked"
  | "sandbox.violation"
  | "policy.changed"
  | "hook.started"
  | "hook.progress"
  | "hook.completed"
  | "hook.failed"
  | "queue.changed"
  | "context.resolved"
  | "context.attached"
  | "context.failed"
  | "context.compaction.started"
  | "context.compaction.completed"
  | "context.compaction.failed"
  | "history.compacted"
  | "history.window.loaded"
  | "history.reconstructed"
  | "history.rollback.started"
  | "history.rollback.completed"
  | "artifact.changed"
  | "artifact.created"
  | "artifact.updated"
  | "artifact.versioned"
  | "artifact.preview.ready"
  | "artifact.diff.ready"
  | "artifact.export.started"
  | "artifact.export.completed"
  | "artifact.exported"
  | "artifact.failed"
  | "artifact.deleted"
  | "evidence.changed"
  | "evidence.exported"
  | "review.requested"
  | "review.verdict"
  | "review.completed"
  | "task.created"
  | "task.accepted"
  | "task.queued"
  | "task.started"
  | "task.updated"
  | "task.progress"
  | "task.waiting"
  | "task.blocked"
  | "task.paused"
  | "task.resumed"
  | "task.retrying"
  | "task.cancel_requested"
  | "task.cancelled"
  | "task.timed_out"
  | "task.failed"
  | "task.lost"
  | "task.completed"
  | "task.archived"
  | "task.profile.resolved"
  | "task.delegated"
  | "task.dependency.updated"
  | "task.attempt.started"
  | "task.attempt.completed"
  | "task.attempt.failed"
  | "job.created"
  | "job.queued"
  | "job.started"
  | "job.progress"
  | "job.item.started"
  | "job.item.completed"
  | "job.item.failed"
  | "job.completed"
  | "job.failed"
  | "job.cancelled"
  | "subagent.spawned"
  | "subagent.started"
  | "subagent.status"
  | "subagent.progress"
  | "subagent.input"
  | "subagent.completed"
  | "subagent.failed"
  | "subagent.closed"
  | "worker.started"
  | "worker.completed"
  | "worker.notification"
  | "agent.changed"
  | "agent.spawned"
  | "agent.completed"
  | "agent.handoff"
  | "handoff.requested"
  | "handoff.accepted"
  | "handoff.rejected"
  | "handoff.completed"
  | "team.changed"
  | "channel.connected"
  | "channel.disconnected"
  | "channel.resumed"
  | "channel.message"
  | "channel.permission_forwarded"
  | "channel.permission_returned"
  | "process.started"
  | "process.output"
  | "process.input"
  | "process.completed"
  | "process.failed"
  | "process.terminated"
  | "command.started"
  | "command.output"
  | "command.exited"
  | "file.read"
  | "file.changed"
  | "patch.started"
  | "patch.applied"
  | "patch.failed"
  | "test.started"
  | "test.completed"
  | "routing.candidates.resolved"
  | "routing.decided"
  | "routing.fallback.applied"
  | "routing.not_possible"
  | "routing.single_candidate"
  | "limit.changed"
  | "cost.estimated"
  | "cost.recorded"
  | "rate_limit.hit"
  | "quota.low"
  | "quota.blocked"
  | "output.spilled"
  | "output.truncated"
  | "output.redacted"
  | "output.expired"
  | "state.delta"
  | "snapshot.updated"
  | "snapshot.repaired"
  | "stream.gap.detected"
  | "stream.repair.started"
  | "stream.repair.completed"
  | "benchmark.dataset.resolved"
  | "benchmark.configuration.resolved"
  | "benchmark.trial.started"
  | "benchmark.trial.completed"
  | "benchmark.trial.failed"
  | "benchmark.reward.recorded"
  | "benchmark.comparison.completed"
  | "runtime.warning"
  | "runtime.error"
  | "metrics.changed";

export type EdgeClass =
  | "project.created"
  | "project.updated"
  | "project.deleted"
  | "conversation.created"
  | "conversation.member.added"
  | "thread.created"
  | "thread.deleted"
  | "thread.forked"
  | "message.created"
  | "item.created"
  | "item.updated"
  | "runner.online"
  | "runner.offline"
  | "run.persistence_error"
  | "preview.ready"
  | "preview.stopped"
  | "history.removed"
  | "retention.completed";

export type UiClass =
  | "session.opened"
  | "session.hydrated"
  | "session.updated"
  | "session.closed"
  | "run.started"
  | "run.status"
  | "run.finished"
  | "run.failed"
  | "plan.delta"
  | "plan.final"
  | "text.delta"
  | "text.final"
  | "reasoning.delta"
  | "reasoning.summary"
  | "tool.started"
  | "tool.args"
  | "tool.args.delta"
  | "tool.progress"
  | "tool.output.delta"
  | "tool.result"
  | "tool.failed"
  | "action.required"
  | "action.resolved"
  | "queue.changed"
  | "task.changed"
  | "agent.changed"
  | "agent.spawned"
  | "agent.completed"
  | "agent.handoff"
  | "context.changed"
  | "context.compaction.started"
  | "context.compaction.completed"
  | "permission.changed"
  | "artifact.created"
  | "artifact.updated"
  | "artifact.preview.ready"
  | "artifact.version.created"
  | "artifact.diff.ready"
  | "artifact.export.started"
  | "artifact.export.completed"
  | "artifact.failed"
  | "artifact.deleted"
  | "artifact.changed"
  | "evidence.changed"
  | "state.snapshot"
  | "state.delta"
  | "messages.snapshot"
  | "diagnostic.changed"
  | "metric.changed"
  | "team.changed"
  | "worker.notification"
  | "review.requested"
  | "review.completed";

export type KnownClass = RuntimeClass | EdgeClass | UiClass;

export type EventClass = OpenWord<KnownClass>;

export type Kind = OpenWord<
  | "context"
  | "source"
  | "skill"
  | "tool"
  | "permission"
  | "sandbox"
  | "state"
  | "model"
  | "draft"
  | "handoff"
  | "action"
  | "evidence"
  | "note"
>;

export type Status = OpenWord<
  | "pending"
  | "running"
  | "completed"
  | "blocked"
  | "canceled"
  | "failed"
>;

export type Owner = OpenWord<
  | "runtime"
  | "model"
  | "tool"
  | "action"
  | "artifact"
  | "evidence"
  | "context"
  | "policy"
  | "task"
  | "session"
  | "diagnostics"
  | "ui_projection"
  | "agent"
  | "team"
  | "unknown"
>;

export type Scope = OpenWord<
  | "application"
  | "workspace"
  | "team"
  | "session"
  | "thread"
  | "run"
  | "turn"
  | "message"
  | "part"
  | "task"
  | "agent"
  | "tool_call"
  | "action_request"
  | "artifact"
  | "evidence"
  | "unknown"
>;

export type Phase = OpenWord<
  | "draft"
  | "submitted"
  | "accepted"
  | "routing"
  | "preparing"
  | "planning"
  | "reasoning"
  | "acting"
  | "waiting"
  | "reviewing"
  | "producing"
  | "reconciling"
  | "completed"
  | "failed"
  | "cancelled"
  | "interrupted"
  | "archived"
  | "hydrating"
  | "unknown"
>;

export type Surface = OpenWord<
  | "composer"
  | "conversation"
  | "inline_process"
  | "runtime_status"
  | "tool_ui"
  | "hitl"
  | "task_capsule"
  | "artifact_workspace"
  | "timeline_evidence"
  | "session_tabs"
  | "diagnostics"
  | "team_roster"
  | "work_board"
  | "delegation_graph"
  | "handoff_lane"
  | "worker_notifications"
  | "review_lane"
  | "teammate_transcript"
  | "background_teammate"
  | "remote_teammate"
  | "team_policy"
  | "custom"
  | "unknown"
>;

export type Persistence = OpenWord<
  | "ephemeral_live"
  | "transcript"
  | "snapshot"
  | "archive"
  | "artifact_store"
  | "evidence_pack"
  | "diagnostics_log"
  | "ui_local"
  | "unknown"
>;

export type Control = OpenWord<
  | "send"
  | "queue"
  | "steer"
  | "interrupt"
  | "delegate"
  | "assign"
  | "continue_agent"
  | "wait"
  | "stop"
  | "close"
  | "request_review"
  | "approve"
  | "reject"
  | "answer"
  | "edit"
  | "retry"
  | "rollback"
  | "export"
  | "open_detail"
  | "remove"
  | "none"
>;

export type Topology = OpenWord<
  | "solo_run"
  | "coordinator_team"
  | "parallel_workers"
  | "specialist_handoff"
  | "review_team"
  | "human_agent_board"
  | "background_teammate"
  | "remote_teammate"
  | "unknown"
>;

export type RuntimeEntity = OpenWord<
  | "agent_turn"
  | "subagent_turn"
  | "automation_job"
  | "external_task"
  | "work_item"
  | "unknown"
>;

export type ActionType = OpenWord<
  | "tool_approval"
  | "plan_decision"
  | "teammate_plan_decision"
  | "structured_input"
  | "clarification"
  | "permission_grant"
  | "delegated_permission"
  | "credential_request"
  | "artifact_review"
  | "cost_confirmation"
  | "policy_waiver"
>;

export type ToolState = OpenWord<
  | "input-streaming"
  | "input-available"
  | "running"
  | "progress"
  | "output-available"
  | "output-error"
  | "cancelled"
>;

export type TaskState = OpenWord<
  | "draft"
  | "accepted"
  | "queued"
  | "preparing"
  | "running"
  | "waiting_input"
  | "waiting_permission"
  | "waiting_resource"
  | "blocked"
  | "paused"
  | "retrying"
  | "cancelling"
  | "cancelled"
  | "timed_out"
  | "failed"
  | "lost"
  | "completed"
  | "archived"
  | "stale"
  | "unknown"
>;

export type EvidenceKind = OpenWord<
  | "trace"
  | "replay"
  | "review"
  | "verification"
  | "audit"
  | "benchmark"
>;

export type InputKind = OpenWord<
  | "text"
  | "image"
  | "audio"
  | "video"
  | "document"
  | "workspace"
  | "capability"
>;

/** The root of the payload types; unknown fields are allowed in all of them. */
export interface Payload {
  [field: string]: unknown;
}

/** How far a task is. */
export interface ProgressPayload extends Payload {
  completedSteps?: number | null;
  totalSteps?: number | null;
}

/** One bound that a sandbox holds a program to, and by what means. */
export interface SandboxBound extends Payload {
  value?: number | null;
  by?: string | null;
}

/** Something that was asked of a sandbox and does not hold, and why. */
export interface SandboxLack extends Payload {
  what?: string | null;
  reason?: string | null;
}

/** A rule that was granted for longer than once. */
export interface StandingGrant extends Payload {
  rule?: string | null;
  lasts?: string | null;
  revoked?: boolean | null;
}

/**
 * action.resolved and the other closers: what was decided, by whom, and whether it took. An
 * action.updated after a decision adds when it was sent to the agent and when it was applied.
 */
export interface ActionDecisionPayload extends Payload {
  decision?: string | null;
  reason?: string | null;
  decidedBy?: Person | string | null;
  applied?: boolean | null;
  requestedAt?: string | null;
  decidedAt?: string | null;
  sentAt?: string | null;
  response?: unknown;
}

/** action.required, action.updated: what a person must decide, and until when. */
export interface ActionRequestPayload extends Payload {
  actionType?: ActionType | null;
  severity?: string | null;
  prompt?: string | null;
  argsHash?: string | null;
  expiresAt?: string | null;
  requestedBy?: string | null;
  toolCallId?: string | null;
  options?: unknown[] | null;
  responseSchema?: JsonObject | null;
  diff?: string | null;
  diffRef?: string | Ref | null;
}

/**
 * artifact.*: one version of a thing that the agent made. A bare `ref` is what its class is
 * about: the export, the preview, the diff, or else the content.
 */
export interface ArtifactPayload extends Payload {
  kind?: string | null;
  title?: string | null;
  status?: string | null;
  versionId?: string | null;
  mediaType?: string | null;
  previewRef?: string | Ref | null;
  contentRef?: string | Ref | null;
  diff?: string | null;
  diffRef?: string | Ref | null;
  exportRef?: string | Ref | null;
  ref?: string | Ref | null;
  source?: string | null;
  message?: string | null;
  failureCategory?: string | null;
}

/** benchmark.*: a trial, its configuration and its reward. */
export interface BenchmarkPayload extends Payload {
  trialId?: string | null;
  dataset?: string | null;
  task?: string | null;
  configuration?: JsonObject | null;
  reward?: number | null;
  trajectoryRef?: string | Ref | null;
  failureCategory?: string | null;
}

/** context.*, history.*: what the model was given, and what was folded away. */
export interface ContextPayload extends Payload {
  compactionId?: string | null;
  trigger?: string | null;
  summary?: string | null;
  summaryRef?: string | Ref | null;
  message?: string | null;
  tokensBefore?: number | null;
  tokensAfter?: number | null;
  usagePercent?: number | null;
  failureCategory?: string | null;
}

/** conversation.created: a place where people and agents talk. */
export interface ConversationPayload extends Payload {
  conversationId?: string | null;
  projectId?: string | null;
  title?: string | null;
  createdAt?: string | null;
  by?: Person | string | null;
}

/** cost.*, limit.changed, rate_limit.hit, quota.*, metrics.changed: what was used of what. */
export interface CostPayload extends Payload {
  model?: string | null;
  inputTokens?: number | null;
  outputTokens?: number | null;
  totalTokens?: number | null;
  cacheReadTokens?: number | null;
  cacheWriteTokens?: number | null;
  totalCostUsd?: number | null;
  agentSessionUsage?: JsonObject | null;
  currency?: string | null;
  limit?: number | null;
  used?: number | null;
  remaining?: number | null;
  utilization?: number | null;
  resetsAt?: string | null;
  retryAfterMs?: number | null;
  message?: string | null;
}

/** runtime.warning, runtime.error: something a person may want to look into. */
export interface DiagnosticPayload extends Payload {
  code?: string | null;
  severity?: string | null;
  message?: string | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  rawRef?: string | Ref | null;
}

/** evidence.*, review.*: a citation, a trace, a verdict. */
export interface EvidencePayload extends Payload {
  kind?: EvidenceKind | null;
  title?: string | null;
  status?: string | null;
  verdict?: string | null;
  reviewId?: string | null;
  reviewer?: string | null;
  summary?: string | null;
  summaryRef?: string | Ref | null;
  exportRef?: string | Ref | null;
  replayRef?: string | Ref | null;
  reviewRef?: string | Ref | null;
  packRef?: string | Ref | null;
  url?: string | null;
}

/** *.failed: a stable category, a sentence for people, and what could help. */
export interface FailurePayload extends Payload {
  failureCategory?: string | null;
  message?: string | null;
  recoveryHint?: string | null;
  retryable?: boolean | null;
}

/** file.*: a file that was read or changed, by its path in the workspace. */
export interface FileChangePayload extends Payload {
  path?: string | null;
  change?: string | null;
  diff?: string | null;
  diffRef?: string | Ref | null;
  addedLines?: number | null;
  removedLines?: number | null;
}

/** handoff.*: who gives work to whom. */
export interface HandoffPayload extends Payload {
  handoffId?: string | null;
  fromAgent?: string | null;
  toAgent?: string | null;
  reason?: string | null;
  status?: string | null;
}

/**
 * history.removed: an Edge removes the facts of a thread up to the seq `through`. `removal` is
 * what the thread's row says about it, `thread` that row as it was listed then.
 */
export interface HistoryRemovalPayload extends Payload {
  aboutThread?: string | null;
  through?: number | null;
  removal?: JsonObject | null;
  thread?: JsonObject | null;
}

/** hook.*: a hook's run and its outcome. */
export interface HookPayload extends Payload {
  hookId?: string | null;
  hookName?: string | null;
  hookEvent?: string | null;
  outcome?: string | null;
  exitCode?: number | null;
  message?: string | null;
}

/** message.created, item.*: one thing in a thread; `content` is an object. */
export interface ItemPayload extends Payload {
  itemId?: string | null;
  projectId?: string | null;
  threadId?: string | null;
  runId?: string | null;
  type?: string | null;
  role?: string | null;
  status?: string | null;
  content?: JsonObject | null;
  createdAt?: string | null;
  updatedAt?: string | null;
}

/** conversation.member.added: who joined. */
export interface MemberPayload extends Payload {
  conversationId?: string | null;
  memberId?: string | null;
  memberType?: string | null;
  by?: Person | string | null;
}

/** model.requested: which model was asked. */
export interface ModelRequestPayload extends Payload {
  model?: string | null;
  provider?: string | null;
  messageId?: string | null;
}

/** output.*: what was moved, cut, hidden or let go, and why. */
export interface OutputPayload extends Payload {
  eventId?: string | null;
  spilled?: JsonObject[] | null;
  redacted?: JsonObject[] | null;
  ref?: string | Ref | null;
  reason?: string | null;
  bytes?: number | null;
}

/** patch.*: a set of changes that is applied as one. */
export interface PatchPayload extends Payload {
  patchId?: string | null;
  paths?: string[] | null;
  diff?: string | null;
  diffRef?: string | Ref | null;
  failureCategory?: string | null;
  message?: string | null;
}

/** permission.*, sandbox.*, policy.changed: which rule said what. */
export interface PermissionPayload extends Payload {
  mode?: string | null;
  rule?: string | null;
  decision?: string | null;
  reasonCode?: string | null;
  message?: string | null;
  toolName?: string | null;
  path?: string | null;
  command?: string | null;
}

/** run.persistence_error: the journal refused facts of a run. */
export interface PersistenceFailurePayload extends Payload {
  runId?: string | null;
  error?: string | null;
}

/** policy.changed: the rule or mode that holds from here on, and who decided it. */
export interface PolicyTermsPayload extends Payload {
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

/** preview.*: a server of what a run made, on an origin of its own. */
export interface PreviewPayload extends Payload {
  previewId?: string | null;
  runId?: string | null;
  artifactId?: string | null;
  url?: string | null;
  status?: string | null;
  by?: Person | string | null;
}

/** process.*, command.*: a program that runs; offsets count bytes of one stream. */
export interface ProcessPayload extends Payload {
  commandId?: string | null;
  command?: string | string[] | null;
  cwd?: string | null;
  stream?: string | null;
  offset?: number | null;
  text?: string | null;
  exitCode?: number | null;
  signal?: string | number | null;
  status?: string | null;
  truncated?: boolean | null;
  maxBytes?: number | null;
  bytesWritten?: number | null;
  outputRef?: string | Ref | null;
  failureCategory?: string | null;
}

/** project.*: a folder of work; `workDir` is where its runs happen. */
export interface ProjectPayload extends Payload {
  projectId?: string | null;
  name?: string | null;
  workDir?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | string | null;
}

/** queue.changed: the turns that wait, in order. */
export interface QueuePayload extends Payload {
  queuedTurns?: JsonObject[] | null;
  queuedTurnCount?: number | null;
  reason?: string | null;
  by?: Person | string | null;
}

/**
 * retention.completed: what one run of an Edge's retention removed, and for whom. `pending`
 * names the threads of which a part is still to go.
 */
export interface RetentionPayload extends Payload {
  run?: JsonObject | null;
  pending?: string[] | null;
}

/** routing.*: which model was chosen among which. */
export interface RoutingPayload extends Payload {
  model?: string | null;
  provider?: string | null;
  candidates?: unknown[] | null;
  reason?: string | null;
  reasonCode?: string | null;
}

/** run.status: where the run is. */
export interface RunStatusPayload extends Payload {
  status?: string | null;
  phase?: string | null;
  message?: string | null;
}

/** runner.online, runner.offline: a place where runs happen. */
export interface RunnerPayload extends Payload {
  runnerId?: string | null;
}

/** sandbox.applied: what a program may reach from here on, and what could not be had. */
export interface SandboxTermsPayload extends Payload {
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

/** snapshot.*, stream.*: how much of a thread a snapshot covers, or what is missing. */
export interface SnapshotPayload extends Payload {
  status?: string | null;
  fromSequence?: number | null;
  toSequence?: number | null;
  expected?: number | null;
  got?: number | null;
  reason?: string | null;
}

/** state.delta: RFC 6902 operations on the roots that may be patched. */
export interface StateDeltaPayload extends Payload {
  patch?: JsonObject[] | null;
  operations?: JsonObject[] | null;
}

/** task.*, job.*: a piece of work, its state, its attempts. */
export interface TaskPayload extends Payload {
  title?: string | null;
  objective?: string | null;
  status?: TaskState | null;
  role?: string | null;
  assignee?: string | null;
  progress?: ProgressPayload | number | null;
  dependsOn?: string[] | null;
  attempt?: number | null;
  reason?: string | null;
  message?: string | null;
  failureCategory?: string | null;
}

/** task.profile.resolved: with what a task is worked on. */
export interface TaskProfilePayload extends Payload {
  profile?: string | null;
  model?: string | null;
  provider?: string | null;
  role?: string | null;
  mode?: string | null;
  effort?: string | null;
  reason?: string | null;
}

/** subagent.*, worker.*, agent.*, channel.*: another agent at work. */
export interface TeammatePayload extends Payload {
  role?: string | null;
  title?: string | null;
  name?: string | null;
  status?: string | null;
  parentTaskId?: string | null;
  summary?: string | null;
  message?: string | null;
  topology?: Topology | null;
  resultRef?: string | Ref | null;
  transcriptRef?: string | Ref | null;
  failureCategory?: string | null;
}

/** test.*: a run of tests and its result. */
export interface TestRunPayload extends Payload {
  testRunId?: string | null;
  command?: string | null;
  result?: unknown;
  status?: string | null;
  passed?: number | null;
  failed?: number | null;
  skipped?: number | null;
}

/** model.*, reasoning.*, plan.*: `delta` is the increment, `text` the whole text so far. */
export interface TextPayload extends Payload {
  messageId?: string | null;
  partId?: string | null;
  delta?: string | null;
  text?: string | null;
  summary?: string | null;
  encryptedRef?: string | null;
  model?: string | null;
  finishReason?: string | null;
}

/** thread.forked: a thread that begins where another one stood. */
export interface ThreadForkPayload extends Payload {
  threadId?: string | null;
  parentThreadId?: string | null;
  fromItemId?: string | null;
  projectId?: string | null;
  title?: string | null;
  by?: Person | string | null;
}

/**
 * thread.created, thread.updated, thread.deleted: a thread; `status` is active or archived. The
 * facts of a private thread stay on its Edge.
 */
export interface ThreadPayload extends Payload {
  threadId?: string | null;
  projectId?: string | null;
  conversationId?: string | null;
  title?: string | null;
  status?: string | null;
  agentId?: string | null;
  private?: boolean | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  by?: Person | string | null;
}

/** tool.*: `args` is the whole input, `delta` a piece of input or output text. */
export interface ToolCallPayload extends Payload {
  toolName?: string | null;
  title?: string | null;
  args?: unknown;
  delta?: string | null;
  stream?: string | null;
  message?: string | null;
  progress?: number | null;
  total?: number | null;
  summary?: string | null;
  output?: unknown;
  outputRef?: string | Ref | null;
  diff?: string | null;
  diffRef?: string | Ref | null;
  exitCode?: number | null;
  durationMs?: number | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
}

/** turn.completed, turn.failed, turn.canceled: how it ended, with a stable category. */
export interface TurnEndPayload extends Payload {
  failureCategory?: string | null;
  recoveryHint?: string | null;
  message?: string | null;
  reason?: string | null;
  durationMs?: number | null;
  by?: Person | string | null;
}

/** turn.submitted, turn.started: what was asked. */
export interface TurnStartPayload extends Payload {
  prompt?: string | null;
  input?: JsonObject[] | null;
  agentId?: string | null;
  by?: Person | string | null;
}

/** The payload of each known class; classes without a type of their own carry any object. */
export interface PayloadByClass {
  "action.canceled": ActionDecisionPayload;
  "action.cancelled": ActionDecisionPayload;
  "action.expired": ActionDecisionPayload;
  "action.required": ActionRequestPayload;
  "action.resolved": ActionDecisionPayload;
  "action.updated": ActionRequestPayload;
  "agent.changed": TeammatePayload;
  "agent.completed": TeammatePayload;
  "agent.handoff": TeammatePayload;
  "agent.spawned": TeammatePayload;
  "artifact.changed": ArtifactPayload;
  "artifact.created": ArtifactPayload;
  "artifact.deleted": ArtifactPayload;
  "artifact.diff.ready": ArtifactPayload;
  "artifact.export.completed": ArtifactPayload;
  "artifact.export.started": ArtifactPayload;
  "artifact.exported": ArtifactPayload;
  "artifact.failed": ArtifactPayload;
  "artifact.preview.ready": ArtifactPayload;
  "artifact.updated": ArtifactPayload;
  "artifact.version.created": ArtifactPayload;
  "artifact.versioned": ArtifactPayload;
  "benchmark.comparison.completed": BenchmarkPayload;
  "benchmark.configuration.resolved": BenchmarkPayload;
  "benchmark.dataset.resolved": BenchmarkPayload;
  "benchmark.reward.recorded": BenchmarkPayload;
  "benchmark.trial.completed": BenchmarkPayload;
  "benchmark.trial.failed": BenchmarkPayload;
  "benchmark.trial.started": BenchmarkPayload;
  "channel.connected": TeammatePayload;
  "channel.disconnected": TeammatePayload;
  "channel.message": TeammatePayload;
  "channel.permission_forwarded": TeammatePayload;
  "channel.permission_returned": TeammatePayload;
  "channel.resumed": TeammatePayload;
  "command.exited": ProcessPayload;
  "command.output": ProcessPayload;
  "command.started": ProcessPayload;
  "context.attached": ContextPayload;
  "context.changed": ContextPayload;
  "context.compaction.completed": ContextPayload;
  "context.compaction.failed": ContextPayload;
  "context.compaction.started": ContextPayload;
  "context.failed": ContextPayload;
  "context.resolved": ContextPayload;
  "conversation.created": ConversationPayload;
  "conversation.member.added": MemberPayload;
  "cost.estimated": CostPayload;
  "cost.recorded": CostPayload;
  "diagnostic.changed": JsonObject;
  "evidence.changed": EvidencePayload;
  "evidence.exported": EvidencePayload;
  "file.changed": FileChangePayload;
  "file.read": FileChangePayload;
  "handoff.accepted": HandoffPayload;
  "handoff.completed": HandoffPayload;
  "handoff.rejected": HandoffPayload;
  "handoff.requested": HandoffPayload;
  "history.compacted": ContextPayload;
  "history.reconstructed": ContextPayload;
  "history.removed": HistoryRemovalPayload;
  "history.rollback.completed": ContextPayload;
  "history.rollback.started": ContextPayload;
  "history.window.loaded": ContextPayload;
  "hook.completed": HookPayload;
  "hook.failed": HookPayload;
  "hook.progress": HookPayload;
  "hook.started": HookPayload;
  "item.created": ItemPayload;
  "item.updated": ItemPayload;
  "job.cancelled": TaskPayload;
  "job.completed": TaskPayload;
  "job.created": TaskPayload;
  "job.failed": TaskPayload;
  "job.item.completed": TaskPayload;
  "job.item.failed": TaskPayload;
  "job.item.started": TaskPayload;
  "job.progress": TaskPayload;
  "job.queued": TaskPayload;
  "job.started": TaskPayload;
  "limit.changed": CostPayload;
  "message.created": ItemPayload;
  "messages.snapshot": JsonObject;
  "metric.changed": JsonObject;
  "metrics.changed": CostPayload;
  "model.completed": TextPayload;
  "model.delta": TextPayload;
  "model.failed": FailurePayload;
  "model.requested": ModelRequestPayload;
  "output.expired": OutputPayload;
  "output.redacted": OutputPayload;
  "output.spilled": OutputPayload;
  "output.truncated": OutputPayload;
  "patch.applied": PatchPayload;
  "patch.failed": PatchPayload;
  "patch.started": PatchPayload;
  "permission.changed": PermissionPayload;
  "permission.denied": PermissionPayload;
  "permission.evaluated": PermissionPayload;
  "permission.requested": PermissionPayload;
  "permission.resolved": PermissionPayload;
  "plan.delta": TextPayload;
  "plan.final": TextPayload;
  "policy.changed": PolicyTermsPayload;
  "preview.ready": PreviewPayload;
  "preview.stopped": PreviewPayload;
  "process.completed": ProcessPayload;
  "process.failed": ProcessPayload;
  "process.input": ProcessPayload;
  "process.output": ProcessPayload;
  "process.started": ProcessPayload;
  "process.terminated": ProcessPayload;
  "project.created": ProjectPayload;
  "project.deleted": ProjectPayload;
  "project.updated": ProjectPayload;
  "queue.changed": QueuePayload;
  "quota.blocked": CostPayload;
  "quota.low": CostPayload;
  "rate_limit.hit": CostPayload;
  "reasoning.completed": TextPayload;
  "reasoning.delta": TextPayload;
  "reasoning.started": TextPayload;
  "reasoning.summary": TextPayload;
  "retention.completed": RetentionPayload;
  "review.completed": EvidencePayload;
  "review.requested": EvidencePayload;
  "review.verdict": EvidencePayload;
  "routing.candidates.resolved": RoutingPayload;
  "routing.decided": RoutingPayload;
  "routing.fallback.applied": RoutingPayload;
  "routing.not_possible": RoutingPayload;
  "routing.single_candidate": RoutingPayload;
  "run.failed": JsonObject;
  "run.finished": JsonObject;
  "run.persistence_error": PersistenceFailurePayload;
  "run.started": JsonObject;
  "run.status": RunStatusPayload;
  "runner.offline": RunnerPayload;
  "runner.online": RunnerPayload;
  "runtime.error": DiagnosticPayload;
  "runtime.warning": DiagnosticPayload;
  "sandbox.applied": SandboxTermsPayload;
  "sandbox.blocked": PermissionPayload;
  "sandbox.violation": PermissionPayload;
  "session.closed": JsonObject;
  "session.created": JsonObject;
  "session.hydrated": JsonObject;
  "session.opened": JsonObject;
  "session.updated": JsonObject;
  "snapshot.repaired": SnapshotPayload;
  "snapshot.updated": SnapshotPayload;
  "state.delta": StateDeltaPayload;
  "state.snapshot": JsonObject;
  "stream.gap.detected": SnapshotPayload;
  "stream.repair.completed": SnapshotPayload;
  "stream.repair.started": SnapshotPayload;
  "subagent.closed": TeammatePayload;
  "subagent.completed": TeammatePayload;
  "subagent.failed": TeammatePayload;
  "subagent.input": TeammatePayload;
  "subagent.progress": TeammatePayload;
  "subagent.spawned": TeammatePayload;
  "subagent.started": TeammatePayload;
  "subagent.status": TeammatePayload;
  "task.accepted": TaskPayload;
  "task.archived": TaskPayload;
  "task.attempt.completed": TaskPayload;
  "task.attempt.failed": TaskPayload;
  "task.attempt.started": TaskPayload;
  "task.blocked": TaskPayload;
  "task.cancel_requested": TaskPayload;
  "task.cancelled": TaskPayload;
  "task.changed": TaskPayload;
  "task.completed": TaskPayload;
  "task.created": TaskPayload;
  "task.delegated": TaskPayload;
  "task.dependency.updated": TaskPayload;
  "task.failed": TaskPayload;
  "task.lost": TaskPayload;
  "task.paused": TaskPayload;
  "task.profile.resolved": TaskProfilePayload;
  "task.progress": TaskPayload;
  "task.queued": TaskPayload;
  "task.resumed": TaskPayload;
  "task.retrying": TaskPayload;
  "task.started": TaskPayload;
  "task.timed_out": TaskPayload;
  "task.updated": TaskPayload;
  "task.waiting": TaskPayload;
  "team.changed": JsonObject;
  "test.completed": TestRunPayload;
  "test.started": TestRunPayload;
  "text.delta": TextPayload;
  "text.final": TextPayload;
  "thread.created": ThreadPayload;
  "thread.deleted": ThreadPayload;
  "thread.forked": ThreadForkPayload;
  "thread.started": JsonObject;
  "thread.updated": ThreadPayload;
  "tool.args": ToolCallPayload;
  "tool.args.delta": ToolCallPayload;
  "tool.catalog.resolved": ToolCallPayload;
  "tool.failed": ToolCallPayload;
  "tool.output.delta": ToolCallPayload;
  "tool.progress": ToolCallPayload;
  "tool.result": ToolCallPayload;
  "tool.started": ToolCallPayload;
  "turn.canceled": TurnEndPayload;
  "turn.completed": TurnEndPayload;
  "turn.failed": TurnEndPayload;
  "turn.started": TurnStartPayload;
  "turn.submitted": TurnStartPayload;
  "worker.completed": TeammatePayload;
  "worker.notification": TeammatePayload;
  "worker.started": TeammatePayload;
}

/** One fact. `sequence` orders the facts of a thread; absent until a runtime assigns it. */
export interface Fact {
  id: string;
  kind: Kind;
  status: Status;
  title: string;
  createdAt: string;
  schemaVersion: string;
  runtimeId: string;
  sequence: number;
  eventClass?: EventClass | null;
  sessionId?: string | null;
  threadId?: string | null;
  runId?: string | null;
  turnId?: string | null;
  stepId?: string | null;
  attemptId?: string | null;
  messageId?: string | null;
  partId?: string | null;
  taskId?: string | null;
  parentTaskId?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  workerId?: string | null;
  parentSessionId?: string | null;
  parentThreadId?: string | null;
  remoteTaskId?: string | null;
  queuedTurnId?: string | null;
  toolCallId?: string | null;
  actionId?: string | null;
  artifactId?: string | null;
  evidenceId?: string | null;
  handoffId?: string | null;
  reviewId?: string | null;
  channelId?: string | null;
  processId?: string | null;
  jobId?: string | null;
  jobItemId?: string | null;
  traceId?: string | null;
  spanId?: string | null;
  projectId?: string | null;
  conversationId?: string | null;
  edgeId?: string | null;
  itemId?: string | null;
  teamId?: string | null;
  owner?: Owner | null;
  scope?: Scope | null;
  phase?: Phase | null;
  surface?: Surface | null;
  persistence?: Persistence | null;
  control?: Control | null;
  topology?: Topology | null;
  runtimeEntity?: RuntimeEntity | null;
  runtimeStatus?: string | null;
  latestTurnStatus?: string | null;
  teamPhase?: string | null;
  teamName?: string | null;
  detail?: string | null;
  payload?: JsonObject | null;
  refIds?: string[] | null;
  artifactRefs?: string[] | null;
  evidenceRefs?: string[] | null;
  completedAt?: string | null;
}

/** A Fact of class `C`, with the payload of that class. */
export type FactOf<C extends KnownClass> = Omit<Fact, "eventClass" | "payload"> & {
  eventClass: C;
  payload?: PayloadByClass[C] | null;
};

/** A Fact of any known class; narrow it by `eventClass`. */
export type KnownFact = { [C in KnownClass]: FactOf<C> }[KnownClass];

/** One fact as providers emit it; kind, status and title follow from `type` when absent. */
export interface RuntimeEvent {
  schemaVersion: string;
  runtimeId: string;
  sessionId: string;
  eventId: string;
  timestamp: string;
  sequence: number;
  type: EventClass;
  payload: JsonObject;
  kind?: Kind | null;
  status?: Status | null;
  title?: string | null;
  threadId?: string | null;
  runId?: string | null;
  turnId?: string | null;
  stepId?: string | null;
  attemptId?: string | null;
  messageId?: string | null;
  partId?: string | null;
  taskId?: string | null;
  parentTaskId?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  workerId?: string | null;
  parentSessionId?: string | null;
  parentThreadId?: string | null;
  remoteTaskId?: string | null;
  queuedTurnId?: string | null;
  toolCallId?: string | null;
  actionId?: string | null;
  artifactId?: string | null;
  evidenceId?: string | null;
  handoffId?: string | null;
  reviewId?: string | null;
  channelId?: string | null;
  processId?: string | null;
  jobId?: string | null;
  jobItemId?: string | null;
  traceId?: string | null;
  spanId?: string | null;
  projectId?: string | null;
  conversationId?: string | null;
  edgeId?: string | null;
  itemId?: string | null;
  teamId?: string | null;
  owner?: Owner | null;
  scope?: Scope | null;
  phase?: Phase | null;
  surface?: Surface | null;
  persistence?: Persistence | null;
  control?: Control | null;
  topology?: Topology | null;
  runtimeEntity?: RuntimeEntity | null;
  runtimeStatus?: string | null;
  latestTurnStatus?: string | null;
  teamPhase?: string | null;
  teamName?: string | null;
  detail?: string | null;
  refIds?: string[] | null;
  artifactRefs?: string[] | null;
  evidenceRefs?: string[] | null;
  completedAt?: string | null;
}

/** A RuntimeEvent of class `C`, with the payload of that class. */
export type RuntimeEventOf<C extends RuntimeClass> = Omit<RuntimeEvent, "type" | "payload"> & {
  type: C;
  payload: PayloadByClass[C];
};

/** A RuntimeEvent of any known class; narrow it by `type`. */
export type KnownRuntimeEvent = { [C in RuntimeClass]: RuntimeEventOf<C> }[RuntimeClass];

/** One fact as UI clients exchange it; everything but `type` may be unknown and absent. */
export interface UiEvent {
  type: EventClass;
  id?: string | null;
  kind?: Kind | null;
  status?: Status | null;
  title?: string | null;
  createdAt?: string | null;
  schemaVersion?: string | null;
  runtimeId?: string | null;
  sequence?: number | null;
  sessionId?: string | null;
  threadId?: string | null;
  runId?: string | null;
  turnId?: string | null;
  stepId?: string | null;
  attemptId?: string | null;
  messageId?: string | null;
  partId?: string | null;
  taskId?: string | null;
  parentTaskId?: string | null;
  agentId?: string | null;
  subagentId?: string | null;
  workerId?: string | null;
  parentSessionId?: string | null;
  parentThreadId?: string | null;
  remoteTaskId?: string | null;
  queuedTurnId?: string | null;
  toolCallId?: string | null;
  actionId?: string | null;
  artifactId?: string | null;
  evidenceId?: string | null;
  handoffId?: string | null;
  reviewId?: string | null;
  channelId?: string | null;
  processId?: string | null;
  jobId?: string | null;
  jobItemId?: string | null;
  traceId?: string | null;
  spanId?: string | null;
  projectId?: string | null;
  conversationId?: string | null;
  edgeId?: string | null;
  itemId?: string | null;
  teamId?: string | null;
  owner?: Owner | null;
  scope?: Scope | null;
  phase?: Phase | null;
  surface?: Surface | null;
  persistence?: Persistence | null;
  control?: Control | null;
  topology?: Topology | null;
  runtimeEntity?: RuntimeEntity | null;
  runtimeStatus?: string | null;
  latestTurnStatus?: string | null;
  teamPhase?: string | null;
  teamName?: string | null;
  detail?: string | null;
  payload?: JsonObject | null;
  refIds?: string[] | null;
  artifactRefs?: string[] | null;
  evidenceRefs?: string[] | null;
  completedAt?: string | null;
}

/** A UiEvent of class `C`, with the payload of that class. */
export type UiEventOf<C extends UiClass> = Omit<UiEvent, "type" | "payload"> & {
  type: C;
  payload?: PayloadByClass[C] | null;
};

/** A UiEvent of any known class; narrow it by `type`. */
export type KnownUiEvent = { [C in UiClass]: UiEventOf<C> }[UiClass];

export type RefKind =
  | "output"
  | "artifact"
  | "evidence"
  | "diagnostic"
  | "trace"
  | "raw";

export type IssueCode =
  | "schema_mismatch"
  | "missing_scope_id"
  | "sequence_gap"
  | "sequence_violation"
  | "secret_leak_risk"
  | "large_payload_inline"
  | "unknown_event_type"
  | "outcome_mismatch";

export type AssetKind =
  | "image"
  | "audio"
  | "video"
  | "document";

export type Answer =
  | "yes"
  | "no"
  | "unknown";

export type ApprovalStyle =
  | "none"
  | "inline"
  | "interrupt"
  | "unknown";

export type ResumeCode =
  | "resume_action_uncovered"
  | "resume_action_unknown"
  | "resume_action_repeated"
  | "resume_action_expired";

/** A content-addressed ref with what a reader wants to know before fetching it. */
export interface Ref {
  ref: string;
  kind: RefKind;
  bytes: number;
  mediaType?: string;
  preview?: string | null;
}

/** Somebody: `via` is what they used, such as the workbench or a token. */
export interface NamedPerson {
  name: string;
  via?: string | null;
  userId?: string | null;
  deviceId?: string | null;
}

/** Somebody who did something; `togetherWith` are others who had to agree. */
export interface Person {
  name: string;
  via?: string | null;
  userId?: string | null;
  deviceId?: string | null;
  togetherWith?: NamedPerson[];
}

/** One finding: a stable code, a path such as `$.events[2].toolCallId`, a sentence. */
export interface Issue {
  code: IssueCode;
  path: string;
  message: string;
}

/**
 * What a validation found. No issue of valid facts is more than information; issues beyond a
 * limit are only counted.
 */
export interface IssueReport {
  valid: boolean;
  issues: Issue[];
  facts: number;
  issuesOmitted?: number;
  error?: ReportError | null;
}

/** Why the input could not be read to its end; lines count from 1 where there are lines. */
export interface ReportError {
  code: string;
  message: string;
  line?: number | null;
}

/** A recorded stream and its expectations; `events` stay as they are on the wire. */
export interface Fixture {
  id: string;
  schemaVersion: string;
  title: string;
  events: JsonObject[];
  expected: Expected;
  initialReadModel?: JsonObject | null;
  finalReadModel?: JsonObject | null;
}

/** What a projection of the fixture must show; counts are exact. */
export interface Expected {
  status: string;
  messagePartCount?: number | null;
  timelineEntryCount?: number | null;
  graphNodeCount?: number | null;
  pendingActionCount?: number | null;
  artifactCount?: number | null;
  evidenceCount?: number | null;
  coding?: JsonObject | null;
  subagents?: JsonObject | null;
  diagnostics?: string[] | null;
}

/** Words, as they were written. */
export interface TextInput {
  type: "text";
  text: string;
}

/** An uploaded image, sound, film or document, by ref. */
export interface AssetInput {
  type: "asset";
  kind: AssetKind;
  ref: string;
  mediaType?: string | null;
  name?: string | null;
  bytes?: number | null;
}

/** An object of the application (a product, a ticket, a file of the workspace), by ref. */
export interface WorkspaceInput {
  type: "workspace";
  ref: string;
  objectType?: string | null;
  title?: string | null;
}

/** A sensitive attachment: the right to use it, never its content or place. */
export interface CapabilityInput {
  type: "capability";
  ref: string;
  purpose?: string | null;
  expiresAt?: string | null;
}

/**
 * What one agent offers. `approvals` tells whether a decision is awaited in the stream
 * (`inline`) or ends it and resumes from saved state (`interrupt`); `structuredOutput`, whether
 * a turn can be asked for JSON by a schema.
 */
export interface CapabilityManifest {
  agentId: string;
  title: string;
  schemaVersion?: string;
  version?: string | null;
  inputs?: InputKind[];
  streaming?: Streaming;
  approvals?: ApprovalStyle;
  actionTypes?: ActionType[];
  controls?: Control[];
  topologies?: Topology[];
  eventClasses?: EventClass[];
  cancel?: Answer;
  steer?: Answer;
  queue?: Answer;
  resume?: Answer;
  subagents?: Answer;
  artifacts?: Answer;
  evidence?: Answer;
  sandbox?: Answer;
  cost?: Answer;
  structuredOutput?: Answer;
  maxInputCharacters?: number | null;
}

/** Which of its outputs arrive piece by piece. */
export interface Streaming {
  text?: Answer;
  reasoning?: Answer;
  toolArgs?: Answer;
  toolOutput?: Answer;
}

/** An action that waits for a person. */
export interface OpenAction {
  actionId: string;
  turnId?: string | null;
  toolCallId?: string | null;
  actionType?: ActionType | null;
  argsHash?: string | null;
  expiresAt?: string | null;
}

/** The answer to one open action. */
export interface ResumeAnswer {
  actionId: string;
  status?: "cancelled" | "resolved";
  payload?: JsonObject;
}

/** One reason why a resume is refused. */
export interface ResumeIssue {
  code: ResumeCode;
  actionId: string;
  message: string;
}

/** One part of an input. */
export type InputPart = TextInput | AssetInput | WorkspaceInput | CapabilityInput;
