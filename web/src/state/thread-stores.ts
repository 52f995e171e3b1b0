/**
 * The states of the threads that are on screen, one stream each, however many panels look at it.
 * A thread that was just left is followed a little longer, so that coming back shows it at once.
 */

import { useEffect, useMemo } from "react";
import { createStore, useStore, type StoreApi } from "zustand";

import { Connection } from "../api/connection";
import { browser } from "../api/world";
import { report } from "./connections";
import { nextFrame } from "./frames";
import { ThreadFollower, type Shown } from "./thread-follower";

const KEPT_AFTER_LEAVING_MS = 5_000;

interface Entry {
  store: StoreApi<Shown>;
  connection: Connection;
  viewers: number;
  started: boolean;
}

const entries = new Map<string, Entry>();

/** What is known of a thread, live for as long as the component is mounted. */
export function useThreadStream(threadId: string): Shown {
  const entry = useMemo(() => entryOf(threadId), [threadId]);
  useEffect(() => watch(threadId), [threadId]);
  return useStore(entry.store);
}

/** Try again at once, for every stream that waits. */
export function hurryAll(): void {
  for (const { connection } of entries.values()) connection.hurry();
}

function entryOf(threadId: string): Entry {
  const known = entries.get(threadId);
  if (known !== undefined) return known;
  const made = entryFor(threadId);
  entries.set(threadId, made);
  return made;
}

function entryFor(threadId: string): Entry {
  const store = createStore<Shown>(() => ({ state: null, cursor: null, status: "connecting" }));
  const follower = new ThreadFollower(threadId, {
    show: (change) => {
      store.setState(change);
      if (change.status !== undefined) report(threadId, change.status);
    },
    nextFrame,
    misfit: () => connection.repair(),
  });
  const connection: Connection = new Connection(browser, follower);
  return { store, connection, viewers: 0, started: false };
}

function watch(threadId: string): () => void {
  const entry = entryOf(threadId);
  entry.viewers += 1;
  if (!entry.started) entry.connection.start();
  entry.started = true;
  return () => {
    entry.viewers -= 1;
    setTimeout(() => leave(threadId, entry), KEPT_AFTER_LEAVING_MS);
  };
}

function leave(threadId: string, entry: Entry): void {
  if (entry.viewers > 0 || entries.get(threadId) !== entry) return;
  entry.connection.stop();
  entries.delete(threadId);
  report(threadId, null);
}
