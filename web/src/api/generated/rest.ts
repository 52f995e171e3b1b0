// Generated from the Edge's OpenAPI document by `make schemas`; change its handlers instead.

import type { Envelope, FactFrame } from "./edge";
import type { Action, ArtifactState, Attempt, Diagnostic, ProjectionState, QueuedTurn } from "./projection";

/** Where the facts of a batch stand; `repeated` counts those that were there already. */
export interface Accepted {
  accepted: number;
  repeated: number;
  cursor: string;
  seqs: number[];
  sequences: (number | null)[];
}

/** An agent that can be asked, or why it cannot. */
export interface AgentRow {
  agentId: string;
  available: boolean;
  manifest?: CapabilityManifest | null;
  code?: string | null;
  message?: string | null;
}

/** Every agent; `default` is the one to use where none is named. */
export interface Agents {
  items: AgentRow[];
  asOf: string;
  next?: string | null;
  default?: string | null;
}

/**
 * What a person must decide, or has; the answer is bound to `argsHash`. It was asked for at
 * `createdAt` and decided at `decidedAt`; the decision was sent to the agent at `sentAt`, and at
 * `appliedAt` the agent acted upon it.
 */
export interface Approval {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId?: string | null;
  approvalId: string;
  status: "approved" | "cancelled" | "denied" | "expired" | "pending";
  kind: string;
  riskLevel: string;
  projectId?: string | null;
  runId?: string | null;
  summary?: string | null;
  shown?: string | null;
  cwd?: string | null;
  rule?: string | null;
  argsHash?: string | null;
  expiresAt?: string | null;
  requestedBy?: string | null;
  subagentId?: string | null;
  toolCallId?: string | null;
  toolName?: string | null;
  decision?: string | null;
  decidedBy?: Person | null;
  reason?: string | null;
  applied?: boolean | null;
  response?: unknown;
  decidedAt?: string | null;
  sentAt?: string | null;
  appliedAt?: string | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface ApprovalPage {
  items: Approval[];
  asOf: string;
  next?: string | null;
}

/** A thing that a run made; its content is behind a ref. */
export interface Artifact {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId?: string | null;
  artifactId: string;
  status: string;
  projectId?: string | null;
  runId?: string | null;
  kind?: string;
  title?: string | null;
  versionId?: string | null;
  mediaType?: string | null;
  contentRef?: string | null;
}

/** An artifact, with its versions as the projection of its thread has them. */
export interface ArtifactAnswer {
  artifact: Artifact;
  asOf: string;
  details?: ArtifactState | null;
}

/** A thing that was made, in its place; the thing itself is in `artifacts`. */
export interface ArtifactCardPart {
  type: "artifact-card";
  partId: string;
  messageId: string;
  artifactId: string;
  versionId?: string | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface ArtifactPage {
  items: Artifact[];
  asOf: string;
  next?: string | null;
}

/** An attachment, in base64, because an Edge accepts only JSON. */
export interface BlobBody {
  content: string;
}

export interface CancelBody {
  reason?: string | null;
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
  inputs?: string[];
  streaming?: Streaming;
  approvals?: "inline" | "interrupt" | "none" | "unknown";
  actionTypes?: string[];
  controls?: string[];
  topologies?: string[];
  eventClasses?: string[];
  cancel?: "no" | "unknown" | "yes";
  steer?: "no" | "unknown" | "yes";
  queue?: "no" | "unknown" | "yes";
  resume?: "no" | "unknown" | "yes";
  subagents?: "no" | "unknown" | "yes";
  artifacts?: "no" | "unknown" | "yes";
  evidence?: "no" | "unknown" | "yes";
  sandbox?: "no" | "unknown" | "yes";
  cost?: "no" | "unknown" | "yes";
  structuredOutput?: "no" | "unknown" | "yes";
  maxInputCharacters?: number | null;
}

/** One file. `diff` is absent for binary files and past the bound; lines for binary files. */
export interface ChangedFile {
  path: string;
  change: "created" | "deleted" | "modified";
  addedLines?: number | null;
  removedLines?: number | null;
  diff?: string | null;
}

/** A place where people and agents talk; `members` by id, with their type. `by` is who made it. */
export interface Conversation {
  seq: number;
  createdAt: string;
  updatedAt: string;
  conversationId: string;
  title?: string | null;
  projectId?: string | null;
  members?: { [key: string]: string };
  by?: Person | null;
}

export interface ConversationBody {
  title?: string | null;
  projectId?: string | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface ConversationPage {
  items: Conversation[];
  asOf: string;
  next?: string | null;
}

/** A token that was just created; its secret `token` cannot be read again. */
export interface CreatedToken {
  tokenId: string;
  name: string;
  scopes: ("admin" | "decide" | "read" | "run")[];
  createdAt: string;
  lastUsedAt?: string | null;
  token: string;
}

/**
 * `argsHash` is the hash on the card that was shown; `always` makes an approval permanent, or
 * lets it hold for `expiresIn` seconds.
 */
export interface DecisionBody {
  runId: string;
  requestId: string;
  decision: "allow" | "deny";
  argsHash: string;
  reason?: string | null;
  always?: "thread" | "workspace" | null;
  expiresIn?: number | null;
  response?: unknown;
}

/**
 * Exactly what a person decides about, from the memory of the runtime that asks, where facts and
 * rows are redacted. `masks` counts the secrets that are masked in the text, each within one
 * word; `hasOpenSecret` says that one had to be shown, because a mask could have hidden what
 * runs. Where the exact text is gone there is only a `reason`, and the request can only be
 * denied. A decision is bound to `argsHash`.
 */
export interface DecisionCard {
  requestId: string;
  argsHash?: string | null;
  prompt?: string | null;
  shown?: string | null;
  masks?: number;
  hasOpenSecret?: boolean;
  reason?: string | null;
}

/** A way to a diagnostic; its words are in `diagnostics` and not here. */
export interface DiagnosticRefPart {
  type: "diagnostic-ref";
  partId: string;
  messageId: string;
  diagnosticId: string;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface EnvelopePage {
  items: Envelope[];
  asOf: string;
  next?: string | null;
}

export interface EvidenceBody {
  threadId: string;
  withBlobs?: boolean;
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
  kind: string;
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

/** A pack that was made of a thread, and `by` whom. */
export interface EvidenceRow {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId?: string | null;
  evidenceId: string;
  status: string;
  projectId?: string | null;
  exportRef?: string | null;
  by?: Person | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface EvidenceRowPage {
  items: EvidenceRow[];
  asOf: string;
  next?: string | null;
}

/**
 * Facts of a thread that are in the pack being made, of how many; `total` is missing where the
 * journal has removed facts, since it counts those as well.
 */
export interface ExportProgress {
  state: "idle" | "making" | "unknown";
  facts?: number;
  total?: number | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface FactFramePage {
  items: FactFrame[];
  asOf: string;
  next?: string | null;
}

/** A batch of facts, unparsed: each is decoded once, by the rules of its class. */
export interface FactsBody {
  facts: { [key: string]: unknown }[];
}

/** Where to fork: after an item, or at a cursor; with neither, now. */
export interface ForkBody {
  fromItemId?: string | null;
  at?: string | null;
  title?: string | null;
}

/**
 * A rule that a person granted and that holds: for commands in `folder`, on the thread or in the
 * `workspace`, until `expiresAt` or until it is revoked.
 */
export interface GrantedRule {
  ruleId: string;
  rule: string;
  lasts: string;
  folder: string;
  threadId: string;
  workspace?: string | null;
  expiresAt?: string | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface GrantedRulePage {
  items: GrantedRule[];
  asOf: string;
  next?: string | null;
}

/**
 * What anybody may know; `status` is degraded while the journal cannot be reached or refuses
 * facts, and `code` is a stable word for why. `details` are for whoever shows the token.
 */
export interface Health {
  status: "degraded" | "ok" | "stopping";
  version: string;
  code?: string | null;
  details?: HealthDetails | null;
}

/**
 * What whoever shows the token may know; `reason` is what ails the journal, `journalHead` and
 * `feedLag` are absent while it cannot be asked. `runtimeId` writes the Edge's own threads.
 * `untrustedProject` says which project's file this Edge ignores, and what to do; `hubTrouble`,
 * why there is no link to the Hub that it has joined.
 */
export interface HealthDetails {
  edgeId: string;
  runtimeId: string;
  uptimeSeconds: number;
  feed: "degraded" | "live" | "stopped";
  feedCursor: string;
  journalHead?: number | null;
  feedLag?: number | null;
  reason?: string | null;
  runsActive: number;
  runsQueued: number;
  approvalsPending: number;
  streams: number;
  untrustedProject?: string | null;
  hubTrouble?: string | null;
}

/**
 * That retention removed the beginning of a thread: when, for whom, and what it was. `before` is
 * the end of the last run that was removed; the other figures are of all that ever were.
 */
export interface HistoryRemoval {
  at: string;
  before: string;
  facts: number;
  runs: number;
  by: Person;
  totalCostUsd?: number | null;
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

/** Some rows, and where the next page begins; without `next` there is none. */
export interface ItemPage {
  items: Item[];
  asOf: string;
  next?: string | null;
}

/**
 * What a comparison found. `removed` counts facts that the journal no longer holds; `anchors`
 * counts points of the chain that were compared, `incomparable` those that a removal took away.
 * Of very many differences the first are listed, and `more` counts the others.
 */
export interface JournalMatch {
  state: "compacted" | "copy" | "differs" | "matches" | "not_from_journal";
  facts: number;
  removed: number;
  anchors: number;
  incomparable: number;
  differences: MatchDifference[];
  more?: number;
}

/**
 * One difference. Codes: `otherJournal`, `factDiffers`, `factMissing`, `factExtra`,
 * `anchorDiffers`, `journalShorter`, `journalCorrupt`.
 */
export interface MatchDifference {
  code: string;
  seq: number;
  message: string;
}

export interface MemberBody {
  memberId: string;
  memberType: string;
}

/**
 * A branch to merge into, else the one that is checked out; the subject of the commit; and the
 * `tree` of the diff that was looked at, if nothing else is to be merged.
 */
export interface MergeBody {
  into?: string | null;
  message?: string | null;
  tree?: string | null;
}

/** The run that a message started, or the result of steering with it. */
export interface MessageAnswer {
  run?: Run | null;
  steered?: SteerAnswer | null;
}

/** `mode` decides what happens while a run is active: queue, steer or refuse the message. */
export interface MessageBody {
  text?: string;
  input?: { [key: string]: unknown }[] | null;
  agentId?: string | null;
  options?: { [key: string]: unknown } | null;
  mode?: "queue" | "refuse" | "steer";
}

/** One message at the moment of a read model. */
export interface MessageSnapshot {
  messageId: string;
  role: string;
  status: "final" | "interrupted" | "retracted" | "stale" | "streaming";
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

/** Somebody: `via` is what they used, such as the workbench or a token. */
export interface NamedPerson {
  name: string;
  via?: string | null;
  userId?: string | null;
  deviceId?: string | null;
}

/** How the last turn ended, and who cancelled it. */
export interface Outcome {
  status: string;
  turnId?: string | null;
  failureCategory?: string | null;
  recoveryHint?: string | null;
  cancelledBy?: Person | null;
}

/** What a check of a pack found; `journal` is missing where the pack itself is not right. */
export interface PackCheck {
  report: PackReport;
  journal?: JournalMatch | null;
}

/**
 * What a verification found. `digest` is the SHA-256 of the manifest; `derivedAgain` is whether
 * what was derived could be compared: another version may derive otherwise.
 */
export interface PackReport {
  ok: boolean;
  findings: VerificationFinding[];
  signer: Signer;
  container: "as_written" | "changed" | "repacked";
  facts: number;
  digest: string;
  producer: string;
  derivedAgain: boolean;
  containerOffset?: number | null;
  createdAt?: string | null;
}

/** Somebody who did something; `togetherWith` are others who had to agree. */
export interface Person {
  name: string;
  via?: string | null;
  userId?: string | null;
  deviceId?: string | null;
  togetherWith?: NamedPerson[];
}

/**
 * A folder of a run that is served on an origin of its own, by the Edge `edgeId`; `by` is who
 * started it.
 */
export interface Preview {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId?: string | null;
  previewId: string;
  status: "ready" | "stopped";
  projectId?: string | null;
  runId?: string | null;
  edgeId?: string | null;
  url?: string | null;
  by?: Person | null;
}

export interface PreviewBody {
  runId: string;
  path?: string;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface PreviewPage {
  items: Preview[];
  asOf: string;
  next?: string | null;
}

/** What a client reads when it was refused. */
export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  traceId: string;
}

/** A folder of work on this machine; `by` is who made it. */
export interface Project {
  seq: number;
  createdAt: string;
  updatedAt: string;
  projectId: string;
  name: string;
  workDir?: string | null;
  by?: Person | null;
}

export interface ProjectBody {
  name: string;
  workDir?: string | null;
}

export interface ProjectChange {
  name?: string;
  workDir?: string;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface ProjectPage {
  items: Project[];
  asOf: string;
  next?: string | null;
}

/** One piece of work. */
export interface ProjectedTask {
  taskId: string;
  status: string;
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
  runtimeEntity?: string | null;
  createdAt?: string | null;
  updatedAt?: string | null;
  completedAt?: string | null;
}

/**
 * A run that has not started. A `held` one does not start by itself: it waited when a person
 * stopped the thread, at `heldAt`.
 */
export interface QueuedRun {
  runId: string;
  prompt?: string | null;
  agentId?: string | null;
  status?: "held" | "queued";
  heldAt?: string | null;
  by?: Person | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface QueuedRunPage {
  items: QueuedRun[];
  asOf: string;
  next?: string | null;
}

/** A summary of reasoning, with length and digest as a text has them. */
export interface ReasoningSnapshot {
  type: "reasoning";
  partId: string;
  messageId: string;
  summary: string;
  characters: number;
  state: "final" | "interrupted" | "stale" | "streaming";
  length?: number | null;
  digest?: string | null;
  encryptedRef?: string | null;
}

/** What to remove now; with no rule at all, what the settings say. */
export interface RetentionBody {
  keepDays?: number | null;
  keepFacts?: number | null;
  compact?: boolean;
  dryRun?: boolean;
}

/**
 * What retention removes: runs that ended more than `keepDays` days ago, the oldest runs while
 * there are more than `keepFacts` facts, and with `compact` the deltas of complete texts.
 */
export interface RetentionRules {
  keepDays?: number | null;
  keepFacts?: number | null;
  compact?: boolean;
}

/**
 * What one run of retention removed or, with `dryRun`, would have removed. `threads` and `runs`
 * lost their facts, `deltas` were complete texts' and are missed by nobody; `heldBy` names what
 * kept more from being removed.
 */
export interface RetentionRun {
  startedAt: string;
  finishedAt: string;
  trigger: "request" | "schedule";
  by: Person;
  rules: RetentionRules;
  dryRun?: boolean;
  threads?: number;
  runs?: number;
  facts?: number;
  deltas?: number;
  freedBytes?: number;
  blobs?: number;
  heldBy?: string[];
}

/**
 * What retention does by itself, and what it did last. Without rules, nothing is scheduled;
 * `pendingThreads` wait for readers of what is to be removed.
 */
export interface RetentionState {
  rules?: RetentionRules | null;
  everySeconds?: number | null;
  isRunning?: boolean;
  last?: RetentionRun | null;
  nextAt?: string | null;
  error?: string | null;
  pendingThreads?: number;
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

/** An earlier request that a rule would have answered. */
export interface RuleMatch {
  approvalId: string;
  createdAt?: string | null;
  threadId?: string | null;
  summary?: string | null;
}

/**
 * One turn of an agent. A `held` one waits until a person goes on after a stop; a `cancelling`
 * one was asked to stop and has not ended. `reason` is why it was cancelled; one that was
 * cancelled as `steered` never ran, because the run `steeredInto` took its prompt. `by` is who
 * asked for it, `cancelledBy` who stopped it; `under` is a task or a worker that its first fact
 * names above it.
 */
export interface Run {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId?: string | null;
  runId: string;
  turnId: string;
  status: "cancelled" | "cancelling" | "failed" | "finished" | "held" | "queued" | "running" | "waiting";
  projectId?: string | null;
  agentId?: string | null;
  prompt?: string | null;
  retryOf?: string | null;
  attempt?: number | null;
  workDir?: string | null;
  worktree?: RunWorktree | null;
  startedAt?: string | null;
  finishedAt?: string | null;
  error?: RunError | null;
  reason?: string | null;
  steeredInto?: string | null;
  by?: Person | null;
  cancelledBy?: Person | null;
  under?: string | null;
}

/**
 * A run on a thread, or without `threadId` on a fresh one. With `worktree` it works in a fresh
 * git worktree of its folder's repository; where it is absent, the configuration decides.
 */
export interface RunBody {
  agentId: string;
  prompt?: string;
  input?: { [key: string]: unknown }[] | null;
  threadId?: string | null;
  projectId?: string | null;
  title?: string | null;
  workDir?: string | null;
  worktree?: boolean | null;
  options?: { [key: string]: unknown } | null;
  whenBusy?: "queue" | "refuse";
}

/**
 * `available` says whether git could tell; `reason` is a stable word where it could not. `tree`
 * is git's id of all that was compared with `base`. Of scope `run` is what was changed in the
 * worktree of the run, by it and by runs that tried it again. Of scope `workspace` is whatever
 * is in the folder and not in its last commit, which others may have changed, before the run or
 * after it.
 */
export interface RunDiff {
  runId: string;
  scope: "run" | "workspace";
  available: boolean;
  files?: ChangedFile[];
  truncated?: boolean;
  reason?: string | null;
  base?: string | null;
  tree?: string | null;
}

/** Why a run failed; the code is one of the Edge's, the category the runtime's own. */
export interface RunError {
  code: string;
  message: string;
  failureCategory?: string | null;
  recoveryHint?: string | null;
}

/**
 * What came of merging what a run changed into `branch`. With `conflicts`, both sides changed
 * `files`, and nothing was changed; else `commit` is where the branch is now.
 */
export interface RunMerge {
  runId: string;
  status: "conflicts" | "merged";
  branch: string;
  commit?: string | null;
  files?: string[];
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface RunPage {
  items: Run[];
  asOf: string;
  next?: string | null;
}

/** A program of a run: a process of the runtime, or a command that a tool ran. */
export interface RunProcess {
  processId: string;
  runId: string;
  kind: string;
  status: string;
  command?: unknown;
  cwd?: string | null;
  exitCode?: number | null;
  signal?: string | number | null;
  outputBytes?: number;
  outputRef?: string | null;
  toolCallId?: string | null;
  startedAt?: string | null;
  completedAt?: string | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface RunProcessPage {
  items: RunProcess[];
  asOf: string;
  next?: string | null;
}

/** The git worktree of a run: where it is, of which repository, and as which commit it began. */
export interface RunWorktree {
  path: string;
  repository: string;
  base: string;
}

/** Which key signed, by its fingerprint; `name` is what the reader's trust list calls it. */
export interface Signer {
  state: "invalid" | "trusted" | "unknown" | "unsigned";
  keyId?: string | null;
  name?: string | null;
}

/**
 * The rule that `always` would grant for what has this `argsHash`, in its thread or in this
 * workspace, for commands in `folder` alone. `editable` are the files it names that the agent
 * may change; `matches` are those of the newest `searched` requests that it would have answered.
 * Where there is no rule, `code` is a stable word for why, and `reason` explains it.
 */
export interface StandingRule {
  approvalId: string;
  argsHash?: string | null;
  rule?: string | null;
  workspace?: string | null;
  folder?: string | null;
  editable?: string[];
  matches?: RuleMatch[];
  searched?: number;
  code?: string | null;
  reason?: string | null;
}

/**
 * What became of words for a run that is under way. They wait for it (`pending`), were taken
 * (`delivered`), or are a run of their own, which was `started` or is `queued`.
 */
export interface SteerAnswer {
  steerId: string;
  threadId: string;
  turnId: string;
  status: "delivered" | "pending" | "queued" | "started";
}

/** Content that was stored, by the ref under which a message can attach it. */
export interface StoredBlob {
  ref: string;
  bytes: number;
}

/** Which of its outputs arrive piece by piece. */
export interface Streaming {
  text?: "no" | "unknown" | "yes";
  reasoning?: "no" | "unknown" | "yes";
  toolArgs?: "no" | "unknown" | "yes";
  toolOutput?: "no" | "unknown" | "yes";
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
  topology?: string | null;
  runtimeEntity?: string | null;
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

/** A piece of work; the whole of it is in the projection of its thread. */
export interface Task {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId?: string | null;
  taskId: string;
  status: string;
  projectId?: string | null;
  runId?: string | null;
  title?: string | null;
  parentTaskId?: string | null;
  subagentId?: string | null;
}

/** A task, with its attempts and dependencies as the projection of its thread has them. */
export interface TaskAnswer {
  task: Task;
  asOf: string;
  snapshot?: TaskSnapshot | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface TaskPage {
  items: Task[];
  asOf: string;
  next?: string | null;
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

/** One task at `eventCursor`. */
export interface TaskSnapshot {
  taskId: string;
  status: string;
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

/** How many steps of how many. */
export interface TaskSteps {
  completedSteps: number;
  totalSteps: number;
}

/**
 * A text, or the first characters of a longer one. `length` and `digest` are those of the whole
 * text as far as it was written; where pieces of it may be missing, there are none.
 */
export interface TextSnapshot {
  type: "text";
  partId: string;
  messageId: string;
  text: string;
  state: "final" | "interrupted" | "stale" | "streaming";
  length?: number | null;
  digest?: string | null;
}

/**
 * `activity` is what its turns are at; `runtimeId` is who writes it, `by` who created it.
 * `historyRemoved` says that its beginning was removed. Facts of a `private` thread stay on its
 * Edge: no Hub gets them.
 */
export interface Thread {
  seq: number;
  createdAt: string;
  updatedAt: string;
  threadId: string;
  status: "active" | "archived";
  activity: "canceled" | "completed" | "failed" | "idle" | "running" | "waiting";
  projectId?: string | null;
  conversationId?: string | null;
  title?: string | null;
  agentId?: string | null;
  runtimeId?: string | null;
  latestRunId?: string | null;
  parentThreadId?: string | null;
  fromItemId?: string | null;
  queuedRuns?: string[];
  openApprovals?: string[];
  by?: Person | null;
  historyRemoved?: HistoryRemoval | null;
  private?: boolean;
}

export interface ThreadBody {
  title?: string | null;
  projectId?: string | null;
  conversationId?: string | null;
  agentId?: string | null;
  private?: boolean;
}

/** A thread can become private, and stays so. */
export interface ThreadChange {
  title?: string;
  status?: "active" | "archived";
  private?: true;
}

/** What a first screen of a thread needs, at a cursor. */
export interface ThreadOverview {
  asOf: string;
  readModel: ThreadReadModel;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface ThreadPage {
  items: Thread[];
  asOf: string;
  next?: string | null;
}

/**
 * One thread at `eventCursor`, the sequence of the last fact that it knows of. `messages` are
 * the latest of the conversation, after `earlierMessages` that were left out. A list that is
 * absent says nothing; an empty one says that there is nothing. `doubts` are the reasons for
 * which the thread may lack something: `gapReported` where facts are missing, `stateDeltaFailed`
 * where `shared` may be wrong. `resolvedActions` are requests that are over, so that a second
 * answer is known for one. `extensions` are the fields that a reader of this version does not
 * know.
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
  shared?: { [key: string]: unknown } | null;
  doubts?: string[] | null;
  extensions?: { [key: string]: unknown } | null;
  resolvedActions?: Action[] | null;
}

/** The projection of a thread at a cursor; its stream of changes goes on from there. */
export interface ThreadState {
  threadId: string;
  asOf: string;
  state: ProjectionState;
}

/**
 * Opens streams, as `?ticket=`, within `expiresIn` seconds: one, or, if it is `renewable`, any
 * number. A renewable one also lasts while a stream is open by it.
 */
export interface Ticket {
  ticket: string;
  expiresIn: number;
  renewable?: boolean;
}

/**
 * `renewable` asks for a ticket that opens streams again and again; `renew` names one that is to
 * last anew.
 */
export interface TicketBody {
  renewable?: boolean;
  renew?: string | null;
}

/** A token for somebody or something, and what it may do. */
export interface TokenBody {
  name: string;
  scopes: ("admin" | "decide" | "read" | "run")[];
}

/** A named token, without its secret; `admin` includes all other scopes. */
export interface TokenRow {
  tokenId: string;
  name: string;
  scopes: ("admin" | "decide" | "read" | "run")[];
  createdAt: string;
  lastUsedAt?: string | null;
}

/** Some rows, and where the next page begins; without `next` there is none. */
export interface TokenRowPage {
  items: TokenRow[];
  asOf: string;
  next?: string | null;
}

/** One call, without its input and output; `outputCharacters` is how much output it wrote. */
export interface ToolCallSummary {
  toolCallId: string;
  state: string;
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
  status: string;
  outputRef?: string | null;
}

/** `first` and `last` are bytes of the entry, counted from 0 and both included. */
export interface VerificationFinding {
  code: string;
  message: string;
  entry?: string | null;
  first?: number | null;
  last?: number | null;
}

/**
 * What each operation takes and answers: `path` fills its address, `query` stands behind it. An
 * answer that is no JSON is a `Blob`.
 */
export interface Operations {
  /** Add a member to a conversation */
  addMember: {
    path: { conversationId: string };
    query: Record<never, never>;
    body: MemberBody;
    answer: Conversation;
  };
  /** Archive a thread */
  archiveThread: {
    path: { threadId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Thread;
  };
  /** Cancel a run */
  cancelRun: {
    path: { runId: string };
    query: Record<never, never>;
    body: CancelBody | null;
    answer: Run;
  };
  /** Rename a project or change its folder */
  changeProject: {
    path: { projectId: string };
    query: Record<never, never>;
    body: ProjectChange;
    answer: Project;
  };
  /** Rename, archive or restore a thread, or make it private */
  changeThread: {
    path: { threadId: string };
    query: Record<never, never>;
    body: ThreadChange;
    answer: Thread;
  };
  /** Continue after a stop */
  continueQueue: {
    path: { threadId: string };
    query: Record<never, never>;
    body: undefined;
    answer: QueuedRunPage;
  };
  /** Start a held run as soon as the thread is free */
  continueQueued: {
    path: { threadId: string; runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: QueuedRunPage;
  };
  /** Store an attachment for a message, which refers to it by its ref */
  createBlob: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: BlobBody;
    answer: StoredBlob;
  };
  /** Create a conversation, which can have threads and members */
  createConversation: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: ConversationBody;
    answer: Conversation;
  };
  /** Serve a folder of a run on its own origin */
  createPreview: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: PreviewBody;
    answer: Preview;
  };
  /** Create a project */
  createProject: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: ProjectBody;
    answer: Project;
  };
  /** Start a run, or queue it behind the active run of its thread */
  createRun: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: RunBody;
    answer: Run;
  };
  /** Create a thread */
  createThread: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: ThreadBody;
    answer: Thread;
  };
  /** Create a ticket for clients that cannot send headers */
  createTicket: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: TicketBody | null;
    answer: Ticket;
  };
  /** Create a named token with limited scopes */
  createToken: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: TokenBody;
    answer: CreatedToken;
  };
  /** Decide an approval */
  decidePermission: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: DecisionBody;
    answer: Approval;
  };
  /** Remove a project */
  deleteProject: {
    path: { projectId: string };
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** Delete a thread from all lists */
  deleteThread: {
    path: { threadId: string };
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** Remove the worktree of an ended run, with everything in it */
  deleteWorktree: {
    path: { runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** Create a signed evidence pack of a thread */
  exportEvidence: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: EvidenceBody;
    answer: EvidenceRow;
  };
  /** Fork a thread */
  forkThread: {
    path: { threadId: string };
    query: Record<never, never>;
    body: ForkBody;
    answer: Thread;
  };
  /** List the agents and their capabilities */
  listAgents: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Agents;
  };
  /** List approvals, pending and decided */
  listApprovals: {
    path: Record<never, never>;
    query: { status?: "approved" | "cancelled" | "denied" | "expired" | "pending"; threadId?: string; runId?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: ApprovalPage;
  };
  /** List artifacts, newest first */
  listArtifacts: {
    path: Record<never, never>;
    query: { threadId?: string; runId?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: ArtifactPage;
  };
  /** List conversations, newest first */
  listConversations: {
    path: Record<never, never>;
    query: { cursor?: string; limit?: number };
    body: undefined;
    answer: ConversationPage;
  };
  /** List evidence packs, newest first */
  listEvidence: {
    path: Record<never, never>;
    query: { threadId?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: EvidenceRowPage;
  };
  /** List the items of a thread, oldest first, as of the cursor `asOf` */
  listItems: {
    path: { threadId: string };
    query: { cursor?: string; limit?: number };
    body: undefined;
    answer: ItemPage;
  };
  /** List previews, newest first */
  listPreviews: {
    path: Record<never, never>;
    query: { threadId?: string; runId?: string; status?: "ready" | "stopped"; cursor?: string; limit?: number };
    body: undefined;
    answer: PreviewPage;
  };
  /** List the programs of a run in the order in which they started */
  listProcesses: {
    path: { runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: RunProcessPage;
  };
  /** List projects, newest first */
  listProjects: {
    path: Record<never, never>;
    query: { cursor?: string; limit?: number };
    body: undefined;
    answer: ProjectPage;
  };
  /** List runs, newest first */
  listRuns: {
    path: Record<never, never>;
    query: { threadId?: string; projectId?: string; status?: "cancelled" | "cancelling" | "failed" | "finished" | "held" | "queued" | "running" | "waiting"; cursor?: string; limit?: number };
    body: undefined;
    answer: RunPage;
  };
  /** List the rules that were granted and hold */
  listStandingRules: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: GrantedRulePage;
  };
  /** List the tasks of all threads, newest first */
  listTasks: {
    path: Record<never, never>;
    query: { threadId?: string; status?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: TaskPage;
  };
  /** List threads, newest first */
  listThreads: {
    path: Record<never, never>;
    query: { projectId?: string; status?: "active" | "archived"; activity?: "canceled" | "completed" | "failed" | "idle" | "running" | "waiting"; search?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: ThreadPage;
  };
  /** List the named tokens with their scopes and last use, newest first */
  listTokens: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: TokenRowPage;
  };
  /**
   * Merge what an ended run changed in its worktree into a branch of its repository, and remove
   * the worktree
   */
  mergeRun: {
    path: { runId: string };
    query: Record<never, never>;
    body: MergeBody;
    answer: RunMerge;
  };
  /** Add facts of an outside runtime */
  postFacts: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: { [key: string]: unknown }[] | FactsBody;
    answer: Accepted;
  };
  /** Send a message to an agent */
  postMessage: {
    path: { threadId: string };
    query: Record<never, never>;
    body: MessageBody;
    answer: MessageAnswer;
  };
  /** Move a queued run to the front */
  promoteQueued: {
    path: { threadId: string; runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: QueuedRunPage;
  };
  /** Get an approval */
  readApproval: {
    path: { approvalId: string };
    query: { wait?: number };
    body: undefined;
    answer: Approval;
  };
  /** Get an artifact with its versions, from the projection of its thread */
  readArtifact: {
    path: { artifactId: string };
    query: Record<never, never>;
    body: undefined;
    answer: ArtifactAnswer;
  };
  /** Download the content of an artifact */
  readArtifactContent: {
    path: { artifactId: string };
    query: { versionId?: string };
    body: undefined;
    answer: Blob;
  };
  /** Get the streams of this Edge as an AsyncAPI document */
  readAsyncapi: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: { [key: string]: unknown };
  };
  /** Download the content behind a ref */
  readBlob: {
    path: { ref: string };
    query: Record<never, never>;
    body: undefined;
    answer: Blob;
  };
  /** Get a conversation and its members */
  readConversation: {
    path: { conversationId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Conversation;
  };
  /** Get exactly what an approval is about, with the hash that a decision is bound to */
  readDecisionCard: {
    path: { approvalId: string };
    query: Record<never, never>;
    body: undefined;
    answer: DecisionCard;
  };
  /** Get the diff of a run, as git reports it */
  readDiff: {
    path: { runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: RunDiff;
  };
  /** List events after a cursor, oldest first */
  readEvents: {
    path: Record<never, never>;
    query: { cursor?: string; since?: "now"; view?: "conversation" | "runtime"; projectId?: string; threadId?: string; runId?: string; types?: string; limit?: number };
    body: undefined;
    answer: EnvelopePage;
  };
  /** Get an evidence pack */
  readEvidence: {
    path: { evidenceId: string };
    query: Record<never, never>;
    body: undefined;
    answer: EvidenceRow;
  };
  /** Get the progress of the evidence pack being created for a thread */
  readEvidenceProgress: {
    path: { threadId: string };
    query: Record<never, never>;
    body: undefined;
    answer: ExportProgress;
  };
  /** List facts after a cursor, oldest first */
  readFacts: {
    path: Record<never, never>;
    query: { cursor?: string; since?: "now"; projectId?: string; threadId?: string; runId?: string; classes?: string; limit?: number };
    body: undefined;
    answer: FactFramePage;
  };
  /** Get the health of this Edge */
  readHealth: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Health;
  };
  /** Get an item of a thread */
  readItem: {
    path: { threadId: string; itemId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Item;
  };
  /** Read the output of a program of a run */
  readLogs: {
    path: { runId: string };
    query: { stream?: "stderr" | "stdout"; offset?: number; limit?: number; processId?: string };
    body: undefined;
    answer: Blob;
  };
  /** Get metrics in the Prometheus text format */
  readMetrics: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: Blob;
  };
  /** Get this API as an OpenAPI document */
  readOpenapi: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: { [key: string]: unknown };
  };
  /** Download an evidence pack */
  readPack: {
    path: { evidenceId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Blob;
  };
  /** Get a preview, with its address while it is served */
  readPreview: {
    path: { previewId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Preview;
  };
  /** Get a project */
  readProject: {
    path: { projectId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Project;
  };
  /** Get the state of a thread, now or at an earlier point */
  readProjection: {
    path: { threadId: string };
    query: { at?: string };
    body: undefined;
    answer: ThreadState;
  };
  /** List the queued runs of a thread, next one first */
  readQueue: {
    path: { threadId: string };
    query: Record<never, never>;
    body: undefined;
    answer: QueuedRunPage;
  };
  /** Get what retention removes by itself, what its last run removed, and when the next one is */
  readRetention: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: undefined;
    answer: RetentionState;
  };
  /** Get a run and its status */
  readRun: {
    path: { runId: string };
    query: { wait?: number };
    body: undefined;
    answer: Run;
  };
  /** List the events of a run, oldest first */
  readRunEvents: {
    path: { runId: string };
    query: { cursor?: string; view?: "conversation" | "runtime"; limit?: number };
    body: undefined;
    answer: EnvelopePage;
  };
  /** Get the rule that `always` would grant for an approval, or why there is none */
  readStandingRule: {
    path: { approvalId: string };
    query: Record<never, never>;
    body: undefined;
    answer: StandingRule;
  };
  /** Get a task with its attempts, dependencies and progress */
  readTask: {
    path: { taskId: string };
    query: Record<never, never>;
    body: undefined;
    answer: TaskAnswer;
  };
  /** Get a thread and its activity */
  readThread: {
    path: { threadId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Thread;
  };
  /** Get what the first screen of a thread needs, as of the cursor `asOf` */
  readThreadModel: {
    path: { threadId: string };
    query: { at?: string };
    body: undefined;
    answer: ThreadOverview;
  };
  /** Remove a run from the queue */
  removeQueued: {
    path: { threadId: string; runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: QueuedRunPage;
  };
  /** Retry an ended run as a new run */
  retryRun: {
    path: { runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Run;
  };
  /** Revoke a rule */
  revokeStandingRule: {
    path: { ruleId: string };
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** Revoke a token */
  revokeToken: {
    path: { tokenId: string };
    query: Record<never, never>;
    body: undefined;
    answer: undefined;
  };
  /** Remove old runs and compact complete texts now, by these rules or by the settings */
  runRetention: {
    path: Record<never, never>;
    query: Record<never, never>;
    body: RetentionBody | null;
    answer: RetentionRun;
  };
  /** Send the prompt of a queued run to the active run instead */
  steerQueued: {
    path: { threadId: string; runId: string };
    query: Record<never, never>;
    body: undefined;
    answer: QueuedRunPage;
  };
  /** Stop a preview */
  stopPreview: {
    path: { previewId: string };
    query: Record<never, never>;
    body: undefined;
    answer: Preview;
  };
  /** Verify every byte of a pack and its signature, and compare it with the journal */
  verifyEvidence: {
    path: { evidenceId: string };
    query: Record<never, never>;
    body: undefined;
    answer: PackCheck;
  };
}

/** Where each operation is; `{…}` in an address stands for a field of `path`. */
export const OPERATIONS = {
  addMember: { method: "POST", path: "/v1/conversations/{conversationId}/members" },
  archiveThread: { method: "POST", path: "/v1/threads/{threadId}:archive" },
  cancelRun: { method: "POST", path: "/v1/runs/{runId}:cancel" },
  changeProject: { method: "PATCH", path: "/v1/projects/{projectId}" },
  changeThread: { method: "PATCH", path: "/v1/threads/{threadId}" },
  continueQueue: { method: "POST", path: "/v1/threads/{threadId}/queue:continue" },
  continueQueued: { method: "POST", path: "/v1/threads/{threadId}/queue/{runId}:continue" },
  createBlob: { method: "POST", path: "/v1/blobs" },
  createConversation: { method: "POST", path: "/v1/conversations" },
  createPreview: { method: "POST", path: "/v1/previews" },
  createProject: { method: "POST", path: "/v1/projects" },
  createRun: { method: "POST", path: "/v1/runs" },
  createThread: { method: "POST", path: "/v1/threads" },
  createTicket: { method: "POST", path: "/v1/tickets" },
  createToken: { method: "POST", path: "/v1/tokens" },
  decidePermission: { method: "POST", path: "/v1/permissions/decide" },
  deleteProject: { method: "DELETE", path: "/v1/projects/{projectId}" },
  deleteThread: { method: "DELETE", path: "/v1/threads/{threadId}" },
  deleteWorktree: { method: "DELETE", path: "/v1/runs/{runId}/worktree" },
  exportEvidence: { method: "POST", path: "/v1/evidence" },
  forkThread: { method: "POST", path: "/v1/threads/{threadId}:fork" },
  listAgents: { method: "GET", path: "/v1/agents" },
  listApprovals: { method: "GET", path: "/v1/approvals" },
  listArtifacts: { method: "GET", path: "/v1/artifacts" },
  listConversations: { method: "GET", path: "/v1/conversations" },
  listEvidence: { method: "GET", path: "/v1/evidence" },
  listItems: { method: "GET", path: "/v1/threads/{threadId}/items" },
  listPreviews: { method: "GET", path: "/v1/previews" },
  listProcesses: { method: "GET", path: "/v1/runs/{runId}/processes" },
  listProjects: { method: "GET", path: "/v1/projects" },
  listRuns: { method: "GET", path: "/v1/runs" },
  listStandingRules: { method: "GET", path: "/v1/standing-rules" },
  listTasks: { method: "GET", path: "/v1/tasks" },
  listThreads: { method: "GET", path: "/v1/threads" },
  listTokens: { method: "GET", path: "/v1/tokens" },
  mergeRun: { method: "POST", path: "/v1/runs/{runId}:merge" },
  postFacts: { method: "POST", path: "/v1/facts" },
  postMessage: { method: "POST", path: "/v1/threads/{threadId}/messages" },
  promoteQueued: { method: "POST", path: "/v1/threads/{threadId}/queue/{runId}:promote" },
  readApproval: { method: "GET", path: "/v1/approvals/{approvalId}" },
  readArtifact: { method: "GET", path: "/v1/artifacts/{artifactId}" },
  readArtifactContent: { method: "GET", path: "/v1/artifacts/{artifactId}/content" },
  readAsyncapi: { method: "GET", path: "/asyncapi.json" },
  readBlob: { method: "GET", path: "/v1/blobs/{ref}" },
  readConversation: { method: "GET", path: "/v1/conversations/{conversationId}" },
  readDecisionCard: { method: "GET", path: "/v1/approvals/{approvalId}/card" },
  readDiff: { method: "GET", path: "/v1/runs/{runId}/diff" },
  readEvents: { method: "GET", path: "/v1/events" },
  readEvidence: { method: "GET", path: "/v1/evidence/{evidenceId}" },
  readEvidenceProgress: { method: "GET", path: "/v1/threads/{threadId}/evidence-progress" },
  readFacts: { method: "GET", path: "/v1/facts" },
  readHealth: { method: "GET", path: "/v1/health" },
  readItem: { method: "GET", path: "/v1/threads/{threadId}/items/{itemId}" },
  readLogs: { method: "GET", path: "/v1/runs/{runId}/logs" },
  readMetrics: { method: "GET", path: "/v1/metrics" },
  readOpenapi: { method: "GET", path: "/openapi.json" },
  readPack: { method: "GET", path: "/v1/evidence/{evidenceId}/content" },
  readPreview: { method: "GET", path: "/v1/previews/{previewId}" },
  readProject: { method: "GET", path: "/v1/projects/{projectId}" },
  readProjection: { method: "GET", path: "/v1/threads/{threadId}/projection" },
  readQueue: { method: "GET", path: "/v1/threads/{threadId}/queue" },
  readRetention: { method: "GET", path: "/v1/retention" },
  readRun: { method: "GET", path: "/v1/runs/{runId}" },
  readRunEvents: { method: "GET", path: "/v1/runs/{runId}/events" },
  readStandingRule: { method: "GET", path: "/v1/approvals/{approvalId}/standing-rule" },
  readTask: { method: "GET", path: "/v1/tasks/{taskId}" },
  readThread: { method: "GET", path: "/v1/threads/{threadId}" },
  readThreadModel: { method: "GET", path: "/v1/threads/{threadId}/read-model" },
  removeQueued: { method: "DELETE", path: "/v1/threads/{threadId}/queue/{runId}" },
  retryRun: { method: "POST", path: "/v1/runs/{runId}:retry" },
  revokeStandingRule: { method: "DELETE", path: "/v1/standing-rules/{ruleId}" },
  revokeToken: { method: "DELETE", path: "/v1/tokens/{tokenId}" },
  runRetention: { method: "POST", path: "/v1/retention/runs" },
  steerQueued: { method: "POST", path: "/v1/threads/{threadId}/queue/{runId}:steer" },
  stopPreview: { method: "POST", path: "/v1/previews/{previewId}:stop" },
  verifyEvidence: { method: "GET", path: "/v1/evidence/{evidenceId}/verification" },
} as const satisfies { [name in keyof Operations]: { method: string; path: string } };
