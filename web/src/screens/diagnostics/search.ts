/**
 * Finding facts. Class and ids are in the list already; for words the facts themselves are read,
 * page by page, and what does not match is let go of at once, so that a search holds no more than a
 * page however long the thread is.
 */

import type { Fact } from "../../api/generated/factwire";
import { FACT_PAGE } from "../../api/limits";
import type { FactLog, FactRow } from "../../state/moments";

export interface Wanted {
  eventClass: string;
  id: string;
}

export interface Found {
  row: FactRow;
  fact: Fact;
}

export function matching(rows: readonly FactRow[], { eventClass, id }: Wanted): readonly FactRow[] {
  const wantedClass = eventClass.trim().toLowerCase();
  const wantedId = id.trim();
  if (wantedClass === "" && wantedId === "") return rows;
  return rows.filter(
    (row) =>
      row.eventClass.toLowerCase().includes(wantedClass) &&
      (wantedId === "" || [row.id, row.turnId, row.toolCallId].some((each) => each?.includes(wantedId))),
  );
}

/** Whether some value or name inside of a fact has these words, in any case. */
export function holds(value: unknown, lowered: string): boolean {
  if (typeof value === "string") return value.toLowerCase().includes(lowered);
  if (Array.isArray(value)) return value.some((each) => holds(each, lowered));
  if (typeof value === "object" && value !== null) return Object.entries(value).some(([name, each]) => holds(name, lowered) || holds(each, lowered));
  return value != null && String(value).includes(lowered);
}

type Source = Pick<FactLog, "facts">;

/** The facts of some rows, in pages; each says how many of the rows are done with. */
export async function* pagesOf(source: Source, rows: readonly FactRow[], signal: AbortSignal): AsyncGenerator<{ found: Found[]; done: number }> {
  for (let at = 0; at < rows.length; ) {
    const from = (rows[at] as FactRow).index;
    const end = endOfPage(rows, at, from + FACT_PAGE);
    const last = (rows[end - 1] as FactRow).index;
    const facts = await source.facts(from, last - from + 1, signal);
    const found = rows.slice(at, end).flatMap((row) => {
      const fact = facts[row.index - from];
      return fact?.id === row.id ? [{ row, fact }] : [];
    });
    at = end;
    yield { found, done: at };
  }
}

/** The first row, behind this one, that stands at the place or behind it. */
function endOfPage(rows: readonly FactRow[], at: number, place: number): number {
  let end = at + 1;
  while (end < rows.length && (rows[end] as FactRow).index < place) end += 1;
  return end;
}
