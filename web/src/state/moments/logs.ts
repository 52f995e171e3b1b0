/** The lists of facts of the threads that are on screen; one for all panels that look at it. */

import { useEffect, useMemo } from "react";
import { createStore, useStore, type StoreApi } from "zustand";

import { call } from "../../api/client";
import { FACTS_PAUSE_MS } from "../../api/limits";
import { FactLog, NOTHING_READ, type LogShown, type ReadPage } from "./fact-log";

interface Entry {
  log: FactLog;
  store: StoreApi<LogShown>;
  /** Panels that may look at it; it lasts as long as there is one. */
  holders: number;
  /** Those that do: only for them it is kept up to date. */
  viewers: number;
}

const KEPT_AFTER_LEAVING_MS = 5_000;
const entries = new Map<string, Entry>();

export interface Facts extends LogShown {
  log: FactLog;
}

/** The facts of a thread, read while the component is mounted and `wanted` holds. */
export function useFacts(threadId: string, wanted = true): Facts {
  const entry = useMemo(() => entryOf(threadId), [threadId]);
  useEffect(() => hold(threadId, entry), [threadId, entry]);
  useEffect(() => (wanted ? watch(entry) : undefined), [entry, wanted]);
  const shown = useStore(entry.store);
  return useMemo(() => ({ ...shown, log: entry.log }), [shown, entry]);
}

/** Read on whenever the state of a thread has moved, as far as somebody looks at its facts. */
export function useNewFacts(threadId: string, cursor: string | null): void {
  useEffect(() => {
    const timer = setTimeout(() => {
      const entry = entries.get(threadId);
      if (entry !== undefined && entry.viewers > 0) void entry.log.readOn();
    }, FACTS_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [threadId, cursor]);
}

function entryOf(threadId: string): Entry {
  const known = entries.get(threadId);
  if (known !== undefined) return known;
  const store = createStore<LogShown>(() => NOTHING_READ);
  const log = new FactLog(pagesOf(threadId), (shown) => store.setState(shown));
  const made: Entry = { log, store, holders: 0, viewers: 0 };
  entries.set(threadId, made);
  return made;
}

function pagesOf(threadId: string): ReadPage {
  return (after, limit, signal) => call("readFacts", { query: { threadId, limit, ...(after === null ? {} : { cursor: after }) }, signal });
}

function hold(threadId: string, entry: Entry): () => void {
  entry.holders += 1;
  return () => {
    entry.holders -= 1;
    setTimeout(() => leave(threadId, entry), KEPT_AFTER_LEAVING_MS);
  };
}

function watch(entry: Entry): () => void {
  entry.viewers += 1;
  void entry.log.readOn();
  return () => {
    entry.viewers -= 1;
  };
}

function leave(threadId: string, entry: Entry): void {
  if (entry.holders > 0 || entries.get(threadId) !== entry) return;
  entry.log.close();
  entries.delete(threadId);
}
