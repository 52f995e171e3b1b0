/** What waits for a decision, the same whether a state or the Edge's list tells of it. */

import type { Action, Person } from "../api/generated/projection";
import type { Approval } from "../api/generated/rest";
import { ownId } from "../api/ids";
import { formOf, type Form } from "./form";

export interface ApprovalRequest {
  requestId: string;
  runId: string | null;
  status: string;
  /** What kind of decision it is, in the projection's words. */
  kind: string;
  title: string;
  shown: string | null;
  /** What would be changed, as far as the request states it. */
  diff: string | null;
  /** A diff that is kept behind a ref; also where the one at hand was cut. */
  diffRef: string | null;
  severity: string | null;
  requester: string | null;
  toolName: string | null;
  cwd: string | null;
  /** The rule by which it was asked. */
  rule: string | null;
  /** Only commands can be allowed for longer; whether this one can, and by which rule, the Edge says. */
  isCommand: boolean;
  argsHash: string | null;
  expiresAt: string | null;
  /** What is to be filled in; `unread` where the list does not tell and the state was not read yet. */
  form: Form | null | "unread";
  /** Ways to say yes or no that the agent offers beside the plain ones. */
  ways: OfferedWay[];
  decision: string | null;
  decidedBy: string | null;
  reason: string | null;
  applied: boolean | null;
  decidedAt: string | null;
  /** When the decision was sent to the agent. */
  sentAt: string | null;
  /** When the agent acted upon it. */
  appliedAt: string | null;
}

export interface OfferedWay {
  id: string;
  label: string;
  decision: "allow" | "deny";
}

const NAMELESS = "A decision is needed";

/** Kinds of ways by the Agent Client Protocol; a plain yes and a plain no have their own buttons. */
const WAYS: Record<string, OfferedWay["decision"]> = { allow_always: "allow", reject_always: "deny" };

/** `teammate` is the name of the subagent that asks, where one does. */
export function requestOfAction(action: Action, threadId: string, teammate: string | null): ApprovalRequest {
  const kind = action.actionType ?? "unknown";
  return {
    requestId: ownId(threadId, action.actionId),
    runId: action.runId == null ? null : ownId(threadId, action.runId),
    status: action.status,
    kind,
    title: action.prompt ?? action.title ?? NAMELESS,
    shown: action.shown ?? null,
    diff: action.diff ?? null,
    diffRef: action.diff != null && action.diffTruncated !== true ? null : (action.diffRef ?? null),
    severity: action.severity ?? null,
    requester: teammate ?? action.requestedBy ?? null,
    toolName: action.toolName ?? null,
    cwd: action.cwd ?? null,
    rule: action.rule ?? null,
    isCommand: action.command != null,
    argsHash: action.argsHash ?? null,
    expiresAt: action.expiresAt ?? null,
    form: formOf(kind, action.responseSchema ?? null, action.options ?? null),
    ways: waysOf(action.options ?? []),
    decision: action.decision ?? null,
    decidedBy: personText(action.decidedBy),
    reason: action.reason ?? null,
    applied: action.applied ?? null,
    decidedAt: action.resolvedAt ?? null,
    sentAt: action.sentAt ?? null,
    appliedAt: action.appliedAt ?? null,
  };
}

/** The same request as the state of its thread has it; `unknown` where that does not hold it. */
export type Details = Action | "unread" | "unknown";

export function requestOfApproval(row: Approval, details: Details): ApprovalRequest {
  const whole = typeof details === "string" ? null : requestOfAction(details, row.threadId ?? "", null);
  return {
    requestId: row.threadId == null ? row.approvalId : ownId(row.threadId, row.approvalId),
    runId: row.threadId == null || row.runId == null ? (row.runId ?? null) : ownId(row.threadId, row.runId),
    status: row.status,
    kind: row.kind,
    title: row.summary ?? NAMELESS,
    shown: row.shown ?? null,
    diff: whole?.diff ?? null,
    diffRef: whole?.diffRef ?? null,
    severity: row.riskLevel,
    requester: row.subagentId == null ? (row.requestedBy ?? null) : `teammate ${row.subagentId}`,
    toolName: row.toolName ?? null,
    cwd: row.cwd ?? null,
    rule: row.rule ?? null,
    isCommand: whole?.isCommand ?? false,
    argsHash: row.argsHash ?? null,
    expiresAt: row.expiresAt ?? null,
    form: details === "unread" ? "unread" : (whole?.form ?? formOf(row.kind, null, null)),
    ways: whole?.ways ?? [],
    decision: row.decision ?? null,
    decidedBy: personText(row.decidedBy),
    reason: row.reason ?? null,
    applied: row.applied ?? null,
    decidedAt: row.decidedAt ?? null,
    sentAt: row.sentAt ?? null,
    appliedAt: row.appliedAt ?? null,
  };
}

/** Who did something, and by what means: "Ada via workbench". Older facts have only a name. */
export function personText(who: Person | string | null | undefined): string | null {
  if (who == null || typeof who === "string") return who ?? null;
  return who.via == null ? who.name : `${who.name} via ${who.via}`;
}

function waysOf(options: unknown[]): OfferedWay[] {
  return options.flatMap((option) => {
    const { id, label, kind } = (option ?? {}) as Record<string, unknown>;
    const decision = typeof kind === "string" && Object.hasOwn(WAYS, kind) ? WAYS[kind] : undefined;
    if (decision === undefined || typeof id !== "string") return [];
    return [{ id, label: typeof label === "string" ? label : id, decision }];
  });
}
