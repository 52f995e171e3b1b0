/** What waits for a decision, the same whether a state or the Edge's list tells of it. */

import type { Action } from "../api/generated/projection";
import type { Approval } from "../api/generated/rest";

export interface ApprovalRequest {
  requestId: string;
  runId: string | null;
  status: string;
  title: string;
  shown: string | null;
  severity: string | null;
  requester: string | null;
  toolName: string | null;
  cwd: string | null;
  /** The rule by which it was asked. */
  rule: string | null;
  /** Only commands can be allowed for longer; whether this one can, the Edge says when asked. */
  isCommand: boolean;
  argsHash: string | null;
  expiresAt: string | null;
  decision: string | null;
  decidedBy: string | null;
  reason: string | null;
  applied: boolean | null;
}

/** `teammate` is the name of the subagent that asks, where one does. */
export function requestOfAction(action: Action, teammate: string | null): ApprovalRequest {
  return {
    requestId: action.actionId,
    runId: action.runId ?? null,
    status: action.status,
    title: action.title ?? action.prompt ?? "Something waits for a decision",
    shown: action.shown ?? null,
    severity: action.severity ?? null,
    requester: teammate ?? action.requestedBy ?? null,
    toolName: action.toolName ?? null,
    cwd: action.cwd ?? null,
    rule: action.rule ?? null,
    isCommand: action.command != null,
    argsHash: action.argsHash ?? null,
    expiresAt: action.expiresAt ?? null,
    decision: action.decision ?? null,
    decidedBy: action.decidedBy ?? null,
    reason: action.reason ?? null,
    applied: action.applied ?? null,
  };
}

export function requestOfApproval(row: Approval): ApprovalRequest {
  return {
    requestId: row.approvalId,
    runId: row.runId ?? null,
    status: row.status,
    title: row.summary ?? "Something waits for a decision",
    shown: row.shown ?? null,
    severity: row.riskLevel,
    requester: row.subagentId ?? row.requestedBy ?? null,
    toolName: row.toolName ?? null,
    cwd: row.cwd ?? null,
    rule: row.rule ?? null,
    // The list carries no command; only commands have a folder to run in.
    isCommand: row.cwd != null,
    argsHash: row.argsHash ?? null,
    expiresAt: row.expiresAt ?? null,
    decision: row.decision ?? null,
    decidedBy: row.decidedBy ?? null,
    reason: row.reason ?? null,
    applied: row.applied ?? null,
  };
}
