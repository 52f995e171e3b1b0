/**
 * Follows the state of one thread: snapshots begin anew, deltas are carried out in order, one that
 * came before is left aside, and one that does not fit is answered by asking for a snapshot. Frames
 * are gathered and carried out together, once per picture.
 */

import { CURSORS_REMEMBERED } from "../api/limits";
import type { ConnectionStatus, Follower } from "../api/connection";
import type { ProjectionDelta, ProjectionFrame, ProjectionSnapshot } from "../api/generated/edge";
import type { ProjectionState } from "../api/generated/projection";
import { PatchFailed, patched } from "./patch";

export interface Shown {
  state: ProjectionState | null;
  cursor: string | null;
  status: ConnectionStatus;
}

export interface Outlet {
  show(change: Partial<Shown>): void;
  /** Call back before the next picture. */
  nextFrame(what: () => void): void;
  /** What came does not fit: a snapshot is needed. */
  misfit(): void;
}

export class ThreadFollower implements Follower {
  #threadId: string;
  #outlet: Outlet;
  #state: ProjectionState | null = null;
  #cursor: string | null = null;
  #waiting: ProjectionDelta[] = [];
  #frameAsked = false;
  #known = new Set<string>();

  constructor(threadId: string, outlet: Outlet) {
    this.#threadId = threadId;
    this.#outlet = outlet;
  }

  address(): string {
    return `/v1/threads/${encodeURIComponent(this.#threadId)}/projection/stream`;
  }

  cursor(): string | null {
    this.#carryOut();
    return this.#cursor;
  }

  forget(): void {
    this.#waiting = [];
    this.#cursor = null;
    this.#known.clear();
  }

  status(status: ConnectionStatus): void {
    this.#outlet.show({ status });
  }

  take(message: unknown): boolean {
    const frame = message as ProjectionFrame;
    if (frame.type === "projection.snapshot") return this.#begin(frame);
    if (frame.type === "projection.delta") return this.#wait(frame);
    // An `error` says that the cursor is no place; the close behind it says the same.
    return false;
  }

  #begin(snapshot: ProjectionSnapshot): boolean {
    this.forget();
    this.#state = snapshot.state;
    this.#remember(snapshot.cursor);
    this.#outlet.show({ state: snapshot.state, cursor: snapshot.cursor });
    return true;
  }

  #wait(delta: ProjectionDelta): boolean {
    if (this.#state === null || this.#cursor === null) return false;
    if (this.#known.has(delta.cursor)) return true;
    this.#known.add(delta.cursor);
    this.#waiting.push(delta);
    if (!this.#frameAsked) {
      this.#frameAsked = true;
      this.#outlet.nextFrame(() => this.#frame());
    }
    return true;
  }

  #frame(): void {
    this.#frameAsked = false;
    if (!this.#carryOut()) this.#outlet.misfit();
  }

  #carryOut(): boolean {
    const deltas = this.#waiting;
    const last = deltas.at(-1);
    if (last === undefined || this.#state === null) return true;
    this.#waiting = [];
    try {
      this.#state = patched(this.#state, operationsOf(deltas));
    } catch (error) {
      if (!(error instanceof PatchFailed)) throw error;
      this.#cursor = null;
      return false;
    }
    this.#remember(last.cursor);
    this.#outlet.show({ state: this.#state, cursor: last.cursor });
    return true;
  }

  #remember(cursor: string): void {
    this.#cursor = cursor;
    this.#known.add(cursor);
    for (const oldest of this.#known) {
      if (this.#known.size <= CURSORS_REMEMBERED) break;
      this.#known.delete(oldest);
    }
  }
}

function* operationsOf(deltas: ProjectionDelta[]) {
  for (const delta of deltas) yield* delta.operations;
}
