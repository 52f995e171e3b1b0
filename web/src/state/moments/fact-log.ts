/**
 * The facts of one thread, read page by page in the order in which they were stored. Each page goes
 * on where the one before ended, so nothing is read twice and nothing is left out; one that failed
 * is asked for again from the same place.
 */

import type { Fact } from "../../api/generated/factwire";
import type { FactFramePage } from "../../api/generated/rest";
import { FACT_PAGE, FACTS_LISTED } from "../../api/limits";
import { wordsOf } from "../../api/refusal";
import { rowOf, type FactRow } from "./rows";

export interface LogShown {
  rows: readonly FactRow[];
  /** Whether all that was stored when it was last asked is listed. */
  complete: boolean;
  /** More is stored than is listed. */
  cut: boolean;
  error: string | null;
}

export type ReadPage = (after: string | null, limit: number, signal: AbortSignal) => Promise<FactFramePage>;

export const NOTHING_READ: LogShown = { rows: [], complete: false, cut: false, error: null };

const SEQUENCE = /^\d{1,15}$/;

export class FactLog {
  #read: ReadPage;
  #show: (shown: LogShown) => void;
  #shown = NOTHING_READ;
  #cursor: string | null = null;
  #reading = false;
  #again = false;
  #stop = new AbortController();
  #bySequence = new Map<number, number>();
  #byId = new Map<string, number>();
  #byCursor = new Map<string, number>();

  constructor(read: ReadPage, show: (shown: LogShown) => void) {
    this.#read = read;
    this.#show = show;
  }

  /** Read whatever there is by now; many calls are one. */
  async readOn(): Promise<void> {
    this.#again = true;
    if (this.#reading || this.#shown.cut) return;
    this.#reading = true;
    try {
      while (this.#again && !this.#stop.signal.aborted) await this.#readAll();
    } catch (error) {
      this.#again = false;
      if (!this.#stop.signal.aborted) this.#tell({ error: wordsOf(error) });
    } finally {
      this.#reading = false;
    }
  }

  close(): void {
    this.#stop.abort();
  }

  /** The place of a moment that is named by the number, the id or the cursor of a fact. */
  indexOf(at: string): number | undefined {
    if (isSequence(at)) return this.#bySequence.get(Number(at));
    return this.#byId.get(at) ?? this.#byCursor.get(at);
  }

  /** How a link names a fact: by its number, unless another one has the same. */
  nameOf(row: FactRow): string {
    return this.#bySequence.get(row.sequence) === row.index ? String(row.sequence) : row.id;
  }

  /** Facts with all that is in them, from one place on. */
  async facts(from: number, count: number, signal: AbortSignal): Promise<Fact[]> {
    const after = from === 0 ? null : (this.#shown.rows[from - 1]?.cursor ?? null);
    const page = await this.#read(after, Math.min(count, FACT_PAGE), signal);
    return page.items.map(({ fact }) => fact);
  }

  async #readAll(): Promise<void> {
    this.#again = false;
    for (let more = true; more && !this.#stop.signal.aborted; ) more = await this.#readPage();
  }

  async #readPage(): Promise<boolean> {
    const page = await this.#read(this.#cursor, FACT_PAGE, this.#stop.signal);
    const room = FACTS_LISTED - this.#shown.rows.length;
    const added = page.items.slice(0, room).map((frame, at) => rowOf(frame, this.#shown.rows.length + at));
    for (const row of added) this.#remember(row);
    this.#cursor = page.asOf;
    const cut = this.#shown.cut || page.items.length > room;
    const more = page.next != null && !cut;
    const rows = added.length === 0 ? this.#shown.rows : [...this.#shown.rows, ...added];
    this.#tell({ rows, complete: !more, cut, error: null });
    return more;
  }

  #remember({ sequence, id, cursor, index }: FactRow): void {
    if (!this.#bySequence.has(sequence)) this.#bySequence.set(sequence, index);
    this.#byId.set(id, index);
    this.#byCursor.set(cursor, index);
  }

  #tell(change: Partial<LogShown>): void {
    this.#shown = { ...this.#shown, ...change };
    this.#show(this.#shown);
  }
}

/** Whether a moment is named by the number of a fact in its thread. */
export function isSequence(at: string): boolean {
  return SEQUENCE.test(at);
}
