/** What was filled in and not sent, by request: a card that is scrolled away must not lose it. */

import { create } from "zustand";

import type { Entries, Entry } from "./answer";

const useAll = create<Record<string, Entries>>(() => ({}));
const NONE: Entries = {};

export function useEntries(requestId: string): [Entries, (name: string, entry: Entry) => void] {
  const entries = useAll((all) => all[requestId] ?? NONE);
  const write = (name: string, entry: Entry) =>
    useAll.setState((all) => ({ [requestId]: { ...(all[requestId] ?? NONE), [name]: entry } }));
  return [entries, write];
}
