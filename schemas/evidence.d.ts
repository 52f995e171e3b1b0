// Generated from Factwire's types by `factwire schema typescript --name evidence`; change those
// instead. projection.d.ts and factwire.d.ts belong beside this file.

import type {
  ArtifactRef,
  EvidenceRef,
  TaskSnapshot,
  ThreadReadModel,
  TimelineEntry,
  ToolCallSummary,
} from "./projection.js";
import type {
  EventClass,
  JsonObject,
  Status,
} from "./factwire.js";

/** What the assistant said in a turn, or in any, holds this text. */
export interface AnswerContains {
  assert: "answer.contains";
  text: string;
  turnId?: string | null;
  threadId?: string | null;
}

/** What the assistant said in a turn, or in the last one, is this text. */
export interface AnswerEquals {
  assert: "answer.equals";
  text: string;
  turnId?: string | null;
  threadId?: string | null;
}

/** The action, or some action, was decided so. */
export interface ApprovalDecided {
  assert: "approval.decision";
  decision: string;
  actionId?: string | null;
  threadId?: string | null;
}

/** There is an artifact with this id, title or kind, and it was not deleted. */
export interface ArtifactExists {
  assert: "artifact.exists";
  artifactId?: string | null;
  title?: string | null;
  kind?: string | null;
  threadId?: string | null;
}

/**
 * A blob that facts refer to: `included`, `present` in the store, `missing` from it, `corrupt`
 * there, `withheld` because it holds a secret, or `oversized`.
 */
export interface BlobNote {
  ref: string;
  state: string;
  bytes?: number | null;
  rules?: string[] | null;
}

/** The journal's chain at a commit that holds facts of the pack: up to `seq` it had `hash`. */
export interface ChainAnchor {
  seq: number;
  hash: string;
}

/** Context that was given to a model, behind its refs. */
export interface ContextNote {
  factId: string;
  eventClass: EventClass;
  status: Status;
  title: string;
  refs: string[];
  sequence?: number | null;
  turnId?: string | null;
  createdAt?: string | null;
}

/** A fact about permission, sandbox, routing or a limit, as it was. */
export interface DecisionNote {
  factId: string;
  eventClass: EventClass;
  status: Status;
  title: string;
  payload: JsonObject;
  sequence?: number | null;
  threadId?: string | null;
  turnId?: string | null;
  toolCallId?: string | null;
  actionId?: string | null;
  createdAt?: string | null;
}

/**
 * `blocks` are the SHA-256 of each block of `blockBytes`, joined; only where there are two or
 * more. The last block is what remains.
 */
export interface Entry {
  name: string;
  bytes: number;
  sha256: string;
  blocks?: string;
  blockBytes?: number;
}

/** So many facts are of the class or of one below it. */
export interface FactCount {
  assert: "count";
  eventClass: string;
  equals?: number | null;
  atLeast?: number | null;
  atMost?: number | null;
  threadId?: string | null;
}

/** The file was changed, in this way where one is given. */
export interface FileChanged {
  assert: "file.changed";
  path: string;
  change?: string | null;
  threadId?: string | null;
}

/**
 * What a reader needs to check the pack against the journal that it came from.
 *
 * `firstSeq` and `lastSeq` are of the pack's own facts; `until` is where an export was told to
 * stop. Each anchor vouches for everything before it, of all threads. `removed` counts, by thread,
 * the facts that the journal had removed on purpose.
 */
export interface JournalAnchors {
  epoch: string;
  firstSeq: number;
  lastSeq: number;
  anchors: ChainAnchor[];
  removed: { [key: string]: number };
  threads?: string[] | null;
  until?: number | null;
}

/** Something that applies to this run and is not there. `code` is stable. */
export interface KnownGap {
  code: string;
  message: string;
  subject?: string | null;
  factId?: string | null;
  sequence?: number | null;
  threadId?: string | null;
  turnId?: string | null;
}

/** The projected state has this value at a JSON Pointer. */
export interface ProjectionEquals {
  assert: "projection";
  pointer: string;
  equals: unknown;
  threadId?: string | null;
}

/** One fact of a review: asked for, or answered. */
export interface ReviewRecord {
  factId: string;
  reviewId: string;
  status: string;
  evidenceIds: string[];
  sequence?: number | null;
  verdict?: string | null;
  reviewer?: string | null;
  summary?: string | null;
  createdAt?: string | null;
}

/** The run as figures. `status` is the strongest that a thread ended in. */
export interface RuntimeSummary {
  status: string;
  facts: number;
  turns: number;
  turnsCompleted: number;
  turnsFailed: number;
  turnsCanceled: number;
  toolCalls: number;
  toolFailures: number;
  actions: number;
  inputTokens: number;
  outputTokens: number;
  models: string[];
  runtimeIds: string[];
  classes: { [key: string]: number };
  cost?: number | null;
  startedAt?: string | null;
  endedAt?: string | null;
}

/** Which key signed, by its fingerprint; `name` is what the reader's trust list calls it. */
export interface Signer {
  state: "invalid" | "trusted" | "unknown" | "unsigned";
  keyId?: string | null;
  name?: string | null;
}

/** The tool was called; each of `args`, where given, with this value. `times` counts calls. */
export interface ToolCalled {
  assert: "tool.called";
  toolName: string;
  args?: JsonObject | null;
  times?: number | null;
  threadId?: string | null;
}

/** The call, or every call of the tool, is in this state. */
export interface ToolStatus {
  assert: "tool.status";
  state: string;
  toolCallId?: string | null;
  toolName?: string | null;
  threadId?: string | null;
}

/** The turn, or the last one, ended so: completed, failed or canceled. */
export interface TurnOutcome {
  assert: "turn.outcome";
  outcome: string;
  turnId?: string | null;
  threadId?: string | null;
}

/** The outcome of a check: a test run, a benchmark's trial or evidence of that kind. */
export interface Verification {
  factId: string;
  eventClass: EventClass;
  outcome: string;
  subject: string;
  title: string;
  sequence?: number | null;
  turnId?: string | null;
  toolCallId?: string | null;
  summary?: string | null;
  createdAt?: string | null;
}

/** `first` and `last` are bytes of the entry, counted from 0 and both included. */
export interface VerificationFinding {
  code: string;
  message: string;
  entry?: string | null;
  first?: number | null;
  last?: number | null;
}

/** One assertion; narrow it by `assert`. */
export type AnyAssertion = TurnOutcome | AnswerEquals | AnswerContains | ToolCalled | ToolStatus | ApprovalDecided | FileChanged | ArtifactExists | FactCount | ProjectionEquals;

/** The summary of a pack; `totals` says how many rows each section has. */
export interface EvidencePack {
  schemaVersion: string;
  runtime: RuntimeSummary;
  totals: { [key: string]: number };
  threads: ThreadReadModel[];
  timeline: TimelineEntry[];
  toolCalls: ToolCallSummary[];
  toolFailures: ToolCallSummary[];
  artifacts: ArtifactRef[];
  context: ContextNote[];
  decisions: DecisionNote[];
  verifications: Verification[];
  reviews: ReviewRecord[];
  evidence: EvidenceRef[];
  tasks: TaskSnapshot[];
  knownGaps: KnownGap[];
  runtimeCorrelation: { [key: string]: string[] };
  blobs: BlobNote[];
  journal?: JournalAnchors | null;
}

/**
 * What a pack holds. `producer` is the version of Factwire whose rules derived the rest from
 * the facts; `createdAt` is when the last of them was created, because a pack knows no clock.
 */
export interface Manifest {
  format: string;
  producer: string;
  source: "file" | "journal";
  facts: number;
  entries: Entry[];
  createdAt?: string | null;
  stored?: boolean;
}

/** Who signed: the key itself. Whose key that is says a trust list, never the pack. */
export interface Signature {
  format: string;
  algorithm: string;
  publicKey: string;
  signature: string;
}

/**
 * What a verification found. `digest` is the SHA-256 of the manifest; `derivedAgain` is
 * whether what was derived could be compared: another version may derive otherwise.
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

/** A named list of assertions; `factId` is the fact that carried it, where one did. */
export interface ReplayCase {
  name: string;
  assertions: AnyAssertion[];
  factId?: string | null;
}
