/** Messages that the Edge has taken and the state does not show yet, matched by id and never by text. */

import { create } from "zustand";

import type { ProjectionState } from "../api/generated/projection";

export interface Sent {
  text: string;
  refs: string[];
  turnId: string;
  steerId: string | null;
}

const useOutbox = create<Record<string, Sent[]>>(() => ({}));
const NONE: Sent[] = [];

export function noteSent(threadId: string, sent: Sent): void {
  useOutbox.setState((all) => ({ [threadId]: [...(all[threadId] ?? NONE), sent] }));
}

/** Those that are still to appear in a state. */
export function useUnconfirmed(threadId: string, state: ProjectionState): Sent[] {
  const sent = useOutbox((all) => all[threadId] ?? NONE);
  return sent.length === 0 ? NONE : sent.filter((one) => !appears(one, state));
}

function appears({ turnId, steerId }: Sent, state: ProjectionState): boolean {
  if (steerId !== null && state.queue.steers.some((steer) => steer.steerId === steerId)) return true;
  if (steerId === null && state.queue.turns.some((turn) => turn.queuedTurnId === turnId)) return true;
  return steerId === null && state.messages.some((message) => message.turnId === turnId);
}
