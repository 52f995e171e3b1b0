/** Which threads a person should look at first; the Edge's own words, only chosen and sorted. */

import type { Approval, Thread } from "../api/generated/rest";

export type Attention = "needs_input" | "plan_ready" | "failed" | "running" | "none";

export const ATTENTION_ORDER: Attention[] = ["needs_input", "plan_ready", "failed", "running", "none"];

const PLAN_DECISIONS = new Set(["plan_decision", "teammate_plan_decision"]);

export function attentionOf(thread: Thread, kindOf: ReadonlyMap<string, string>): Attention {
  const open = thread.openApprovals ?? [];
  if (open.length > 0) {
    const plansOnly = open.every((id) => PLAN_DECISIONS.has(kindOf.get(id) ?? ""));
    return plansOnly ? "plan_ready" : "needs_input";
  }
  if (thread.activity === "waiting") return "needs_input";
  if (thread.activity === "failed") return "failed";
  return thread.activity === "running" ? "running" : "none";
}

export interface AttentionGroup {
  attention: Attention;
  threads: Thread[];
}

/** Threads by what they need, the most urgent first; within a group as the Edge lists them. */
export function groupedByAttention(threads: Thread[], approvals: Approval[]): AttentionGroup[] {
  const kindOf = new Map(approvals.map((approval) => [approval.approvalId, approval.kind]));
  const groups = ATTENTION_ORDER.map((attention) => ({ attention, threads: [] as Thread[] }));
  for (const thread of threads) {
    const attention = attentionOf(thread, kindOf);
    groups.find((group) => group.attention === attention)?.threads.push(thread);
  }
  return groups.filter((group) => group.threads.length > 0);
}
