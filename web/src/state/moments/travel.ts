/**
 * The time machine of a thread: which moment somebody looks at. The address names it, so that it can
 * be linked to and gone back to; while it moves (a drag, a key held down, playing) the wish runs
 * ahead of the address, which follows when it rests.
 */

import { createStore, type StoreApi } from "zustand";

import { call } from "../../api/client";
import { MomentLoader, NO_MOMENT, type MomentShown } from "./loader";
import type { Pace } from "./playing";
import type { FactRow } from "./rows";

export interface Travelling extends MomentShown {
  /** Where somebody is going, ahead of the address; null, where the address says. */
  aim: FactRow | null;
  playing: Pace | null;
  /** On the way back to now; the address still names a moment. */
  leaving: boolean;
}

export class Travel {
  readonly store: StoreApi<Travelling> = createStore<Travelling>(() => ({ ...NO_MOMENT, aim: null, playing: null, leaving: false }));
  readonly loader: MomentLoader;
  /** Which moments to fetch ahead; whoever knows the facts says so. */
  neighbours: (at: string) => string[] = () => [];

  constructor(threadId: string) {
    this.loader = new MomentLoader({
      read: async (at, signal) => (await call("readProjection", { path: { threadId }, query: { at }, signal })).state,
      show: (shown) => this.store.setState(shown),
      neighbours: (at) => this.neighbours(at),
      now: () => performance.now(),
    });
  }

  /** Go to a fact. A person's own step ends playing; playing's own steps do not. */
  goTo(row: FactRow, playing: Pace | null = null): void {
    this.store.setState({ aim: row, playing, leaving: false });
  }

  /** The address has taken over: there is nothing ahead of it. */
  rest(): void {
    this.store.setState({ aim: null });
  }

  pause(): void {
    this.store.setState({ playing: null });
  }

  /** Somebody has gone elsewhere by an address. */
  halt(): void {
    this.store.setState({ aim: null, playing: null, leaving: false });
  }

  leave(): void {
    this.store.setState({ aim: null, playing: null, leaving: true });
  }

  close(): void {
    this.loader.close();
    this.halt();
  }
}

/**
 * The addresses that the time machine wrote itself, from the one it is at. They arrive late: while an
 * earlier one does, a later one may be written already, and neither is somebody going elsewhere.
 */
export class OwnAddresses {
  private names: (string | undefined)[];

  constructor(at: string | undefined) {
    this.names = [at];
  }

  write(name: string): void {
    this.names.push(name);
  }

  /** Whether an address that has arrived is one of them. */
  arrive(at: string | undefined): boolean {
    const place = this.names.lastIndexOf(at);
    this.names = place < 0 ? [at] : this.names.slice(place);
    return place >= 0;
  }
}
