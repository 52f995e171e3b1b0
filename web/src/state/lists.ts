/**
 * Keeps lists live. Events only say which list may have changed; what it holds now is asked of the
 * Edge, so a row on screen is never put together from events.
 */

import { Connection, type ConnectionStatus, type Follower } from "../api/connection";
import type { EventFrame } from "../api/generated/edge";
import { LIST_PAUSE_MS } from "../api/limits";
import { browser } from "../api/world";
import { report } from "./connections";
import { queries } from "./queries";

const STREAM = "lists";
const TYPES = "thread,project,approval,message.created,run.queued,run.status.changed,retention";

/** Which lists an event of a type may change, by the first word of the type. */
const TOUCHED: Record<string, string[]> = {
  project: ["projects"],
  approval: ["approvals", "threads"],
  thread: ["threads"],
  message: ["threads"],
  run: ["threads"],
  retention: ["threads"],
};

class ListFollower implements Follower {
  #cursor: string | null = null;
  #touched = new Set<string>();

  /** Without a cursor it begins now: lists are read afresh once now is known. */
  address(): string {
    const begin = this.#cursor === null ? "&since=now" : "";
    return `/v1/events?view=conversation&types=${TYPES}${begin}`;
  }

  cursor(): string | null {
    return this.#cursor;
  }

  forget(): void {
    this.#cursor = null;
  }

  status(status: ConnectionStatus): void {
    report(STREAM, status);
  }

  take(message: unknown): boolean {
    const frame = message as EventFrame;
    if (!("cursor" in frame)) return false;
    const begins = this.#cursor === null;
    this.#cursor = frame.cursor;
    for (const list of begins ? ["threads", "approvals", "projects", "agents"] : touchedBy(frame.type)) this.#touch(list);
    return true;
  }

  #touch(list: string): void {
    if (this.#touched.size === 0) setTimeout(() => this.#readAgain(), LIST_PAUSE_MS);
    this.#touched.add(list);
  }

  #readAgain(): void {
    const lists = [...this.#touched];
    this.#touched.clear();
    for (const list of lists) void queries.invalidateQueries({ queryKey: [list] }, { cancelRefetch: false });
  }
}

function touchedBy(type: string): string[] {
  return TOUCHED[type.split(".", 1)[0] ?? ""] ?? [];
}

/** Follow until the answer is called; `hurry` comes again at once. */
export function followLists(): { stop(): void; hurry(): void } {
  const connection = new Connection(browser, new ListFollower());
  connection.start();
  return {
    stop: () => {
      connection.stop();
      report(STREAM, null);
    },
    hurry: () => connection.hurry(),
  };
}
