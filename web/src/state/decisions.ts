/**
 * Decisions on their way. A button that was pressed is not a decision that was taken: until a fact
 * says so the card reads as sent, and a refusal puts it back as it was.
 */

import { create } from "zustand";

import { call, newKey } from "../api/client";
import { Refusal, wordsOf } from "../api/refusal";
import { queries } from "./queries";

export interface Subject {
  runId: string;
  requestId: string;
  argsHash: string;
}

export interface Verdict {
  decision: "allow" | "deny";
  reason?: string;
  always?: "thread" | "workspace";
  /** Seconds for which `always` holds. */
  expiresIn?: number;
  response?: unknown;
}

export interface OnItsWay {
  decision: Verdict["decision"];
  phase: "sending" | "sent" | "refused" | "confirmed";
  message?: string;
}

const useDecisions = create<Record<string, OnItsWay>>(() => ({}));

export function useDecision(requestId: string): OnItsWay | undefined {
  return useDecisions((decisions) => decisions[requestId]);
}

/** A fact came: what was sent is no longer on its way, and stands in nobody's way if it is asked anew. */
export function confirm(requestId: string): void {
  useDecisions.setState((decisions) => {
    const way = decisions[requestId];
    return way?.phase === "sent" ? { [requestId]: { ...way, phase: "confirmed" } } : decisions;
  });
}

/** Send a decision, bound to the hash of what was shown. */
export async function decide(subject: Subject, verdict: Verdict): Promise<void> {
  const { decision } = verdict;
  const set = (change: OnItsWay) => useDecisions.setState({ [subject.requestId]: change });
  set({ decision, phase: "sending" });
  try {
    await call("decidePermission", { body: { ...subject, ...verdict }, idempotencyKey: newKey() });
    set({ decision, phase: "sent" });
  } catch (error) {
    set({ decision, phase: "refused", message: refusalWords(error) });
    // Whoever is refused has seen something old: what the lists hold now is asked for at once.
    if (error instanceof Refusal && error.status === 409) void queries.invalidateQueries({ queryKey: ["approvals"] });
  }
}

const REFUSALS: Record<string, string> = {
  approval_changed: "The request has changed since you decided. Read it again, then decide.",
  approval_not_shown: "The exact text of the request is gone, so it can only be denied.",
  approval_decided: "Someone else decided first.",
  approval_expired: "The request expired, so it counts as denied.",
  thread_owned_elsewhere: "This request comes from another runtime and must be decided there.",
};

function refusalWords(error: unknown): string {
  const known = error instanceof Refusal && Object.hasOwn(REFUSALS, error.code) ? REFUSALS[error.code] : undefined;
  return known ?? wordsOf(error);
}
