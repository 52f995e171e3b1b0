/**
 * Decisions on their way. A button that was pressed is not a decision that was taken: until a fact
 * says so the card reads as sent, and a refusal puts it back as it was.
 */

import { create } from "zustand";

import { call, newKey } from "../api/client";
import { wordsOf } from "../api/refusal";

export interface Subject {
  runId: string;
  requestId: string;
  argsHash?: string | null;
}

export interface Verdict {
  decision: "allow" | "deny";
  reason?: string;
  always?: "thread" | "workspace";
  response?: unknown;
}

export interface OnItsWay {
  decision: Verdict["decision"];
  phase: "sending" | "sent" | "refused";
  message?: string;
}

const useDecisions = create<Record<string, OnItsWay>>(() => ({}));

export function useDecision(requestId: string): OnItsWay | undefined {
  return useDecisions((decisions) => decisions[requestId]);
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
    set({ decision, phase: "refused", message: wordsOf(error) });
  }
}
