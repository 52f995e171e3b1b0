/**
 * One stream that is always being followed: it takes a ticket, opens a socket, and when the socket
 * is lost comes again with the cursor of the last message that was dealt with. What must never
 * happen is a state that looks live and is not; so every way of losing the socket ends in
 * `reconnecting`, and after a while in `stale`.
 */

import { waitBefore } from "./backoff";
import { STALE_AFTER_MS } from "./limits";

export type ConnectionStatus = "connecting" | "live" | "reconnecting" | "stale" | "repairing";

/** What a connection needs of the world; tests give their own. */
export interface World {
  ticket(): Promise<string>;
  open(address: string, socket: SocketListener): { close(): void };
  after(milliseconds: number, what: () => void): () => void;
}

export interface SocketListener {
  opened(): void;
  message(text: string): void;
  closed(code: number): void;
}

/** Who deals with the messages. */
export interface Follower {
  /** The address without its cursor, and the cursor to go on from; null asks for a snapshot. */
  address(): string;
  cursor(): string | null;
  /** Deal with one message; `false` says that it does not fit, and a snapshot is needed. */
  take(message: unknown): boolean;
  /** The cursor is no place any more: forget it. */
  forget(): void;
  status(status: ConnectionStatus): void;
}

const CURSOR_LOST = new Set([4400, 4410]);

export class Connection {
  #world: World;
  #follower: Follower;
  #socket: { close(): void } | null = null;
  #cancelWait: (() => void) | null = null;
  #cancelStale: (() => void) | null = null;
  #failures = 0;
  #repairing = false;
  #round = 0;
  #stopped = false;

  constructor(world: World, follower: Follower) {
    this.#world = world;
    this.#follower = follower;
  }

  start(): void {
    this.#follower.status("connecting");
    void this.#connect();
  }

  stop(): void {
    this.#stopped = true;
    this.#drop();
    this.#settle();
  }

  /** Come again at once: the network is back, or a person asks. */
  hurry(): void {
    if (this.#stopped || this.#cancelWait === null) return;
    this.#failures = 0;
    void this.#connect();
  }

  /** Begin anew from a snapshot. A second failure to do so waits like any other loss. */
  repair(): void {
    if (this.#stopped) return;
    this.#follower.forget();
    this.#follower.status("repairing");
    if (this.#repairing) return this.#lost();
    this.#repairing = true;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    this.#drop();
    const round = this.#round;
    let ticket: string;
    try {
      ticket = await this.#world.ticket();
    } catch {
      if (round === this.#round) this.#lost();
      return;
    }
    if (round !== this.#round || this.#stopped) return;
    this.#socket = this.#world.open(this.#addressWith(ticket), this.#listener(round));
  }

  /** Messages of a socket that was given up may still come; they belong to a round that is over. */
  #listener(round: number): SocketListener {
    const current = (what: () => void) => {
      if (round === this.#round && !this.#stopped) what();
    };
    return {
      opened: () => current(() => this.#opened()),
      message: (text) => current(() => this.#message(text)),
      closed: (code) => current(() => this.#closed(code)),
    };
  }

  #addressWith(ticket: string): string {
    const address = this.#follower.address();
    const query = new URLSearchParams({ ticket });
    const cursor = this.#follower.cursor();
    if (cursor !== null) query.set("cursor", cursor);
    return `${address}${address.includes("?") ? "&" : "?"}${query}`;
  }

  #opened(): void {
    // Without a cursor nothing is known until the snapshot has come.
    if (this.#follower.cursor() !== null) this.#live();
  }

  #message(text: string): void {
    if (this.#follower.take(JSON.parse(text))) this.#live();
    else this.repair();
  }

  #closed(code: number): void {
    if (CURSOR_LOST.has(code)) this.repair();
    else this.#lost();
  }

  #live(): void {
    this.#failures = 0;
    this.#repairing = false;
    this.#settle();
    this.#follower.status("live");
  }

  #lost(): void {
    if (this.#stopped) return;
    this.#drop();
    this.#sayLost();
    this.#cancelWait = this.#world.after(waitBefore(this.#failures), () => void this.#connect());
    this.#failures += 1;
  }

  #sayLost(): void {
    if (this.#cancelStale !== null) return;
    this.#follower.status(this.#repairing ? "repairing" : "reconnecting");
    this.#cancelStale = this.#world.after(STALE_AFTER_MS, () => this.#follower.status("stale"));
  }

  #drop(): void {
    this.#round += 1;
    this.#cancelWait?.();
    this.#cancelWait = null;
    this.#socket?.close();
    this.#socket = null;
  }

  #settle(): void {
    this.#cancelStale?.();
    this.#cancelStale = null;
  }
}
