/**
 * Moments of a thread, one request at a time. An Edge works a moment out even if nobody waits for
 * it any more, so a drag across a thousand facts must not ask for a thousand states: while one is
 * on its way only the latest wish is remembered, and what comes on the way is shown in passing.
 */

import { replaceEqualDeep } from "@tanstack/react-query";

import type { ProjectionState } from "../../api/generated/projection";
import { MOMENTS_KEPT, PREFETCH_WITHIN_MS } from "../../api/limits";
import { wordsOf } from "../../api/refusal";

export interface Moment {
  /** The cursor or id that was asked for. */
  at: string;
  state: ProjectionState;
}

export interface MomentShown {
  moment: Moment | null;
  busy: boolean;
  error: string | null;
}

export interface MomentWorld {
  read(at: string, signal: AbortSignal): Promise<ProjectionState>;
  show(shown: MomentShown): void;
  /** Which moments are likely to be asked for next. */
  neighbours(at: string): string[];
  /** Milliseconds of any clock. */
  now(): number;
}

export const NO_MOMENT: MomentShown = { moment: null, busy: false, error: null };

export class MomentLoader {
  #world: MomentWorld;
  #kept = new Map<string, ProjectionState>();
  #wanted: string | null = null;
  #shown = NO_MOMENT;
  #flight: { at: string; ahead: boolean; stop: AbortController } | null = null;

  constructor(world: MomentWorld) {
    this.#world = world;
  }

  /** Show this moment as soon as it is there; null, none. */
  want(at: string | null): void {
    if (at === this.#wanted && this.#shown.error === null) return;
    this.#wanted = at;
    if (at === null) return this.close();
    const known = this.#kept.get(at);
    if (known === undefined) this.#tell({ busy: true, error: null });
    else this.#arrive(at, known);
    if (this.#flight?.ahead && this.#flight.at !== at) this.#drop();
    this.#next();
  }

  close(): void {
    this.#wanted = null;
    this.#drop();
    this.#shown = NO_MOMENT;
    this.#world.show(NO_MOMENT);
  }

  #next(): void {
    if (this.#flight !== null || this.#wanted === null || this.#shown.error !== null) return;
    if (!this.#kept.has(this.#wanted)) return void this.#fly(this.#wanted, false);
    const ahead = this.#world.neighbours(this.#wanted).find((at) => !this.#kept.has(at));
    if (ahead !== undefined && this.#fast) void this.#fly(ahead, true);
  }

  #fast = true;

  async #fly(at: string, ahead: boolean): Promise<void> {
    const flight = { at, ahead, stop: new AbortController() };
    this.#flight = flight;
    const since = this.#world.now();
    try {
      const state = await this.#world.read(at, flight.stop.signal);
      if (this.#flight !== flight) return;
      this.#fast = this.#world.now() - since <= PREFETCH_WITHIN_MS;
      this.#keep(at, state);
      this.#flight = null;
      if (!ahead || at === this.#wanted) this.#arrive(at, state);
    } catch (error) {
      if (this.#flight !== flight) return;
      this.#flight = null;
      if (at === this.#wanted) this.#tell({ busy: false, error: wordsOf(error) });
      else if (ahead) return;
    }
    this.#next();
  }

  #arrive(at: string, state: ProjectionState): void {
    // What did not change stays the same object, so that only what did is drawn again.
    const shared = replaceEqualDeep(this.#shown.moment?.state, state);
    this.#keep(at, shared);
    this.#tell({ moment: { at, state: shared }, busy: at !== this.#wanted, error: null });
  }

  #keep(at: string, state: ProjectionState): void {
    this.#kept.delete(at);
    this.#kept.set(at, state);
    const oldest = this.#kept.keys().next().value;
    if (this.#kept.size > MOMENTS_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }

  #drop(): void {
    this.#flight?.stop.abort();
    this.#flight = null;
  }

  #tell(change: Partial<MomentShown>): void {
    this.#shown = { ...this.#shown, ...change };
    this.#world.show(this.#shown);
  }
}
