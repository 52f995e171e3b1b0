/** Where an arrow key leads on the canvas: along descent sideways, to what is nearest up and down. */

import type { Places } from "./places";
import type { Row } from "./rows";

export type Direction = "left" | "right" | "up" | "down";

export function neighbourOf(id: string, direction: Direction, rows: Row[], places: Places): string | null {
  if (direction === "left") return rows.find(({ item }) => item.id === id)?.item.parentId ?? null;
  if (direction === "right") return firstChild(id, rows, places);
  return nearest(id, direction === "up" ? -1 : 1, rows, places);
}

function firstChild(id: string, rows: Row[], places: Places): string | null {
  return leastBy(rows.filter(({ item }) => item.parentId === id), (row) => places.get(row.item.id)?.line ?? Infinity);
}

/** A box of the same column first; where a column ends, the nearest line of any. */
function nearest(id: string, step: -1 | 1, rows: Row[], places: Places): string | null {
  const from = places.get(id);
  if (from === undefined) return null;
  const beyond = rows.filter(({ item }) => step * ((places.get(item.id)?.line ?? from.line) - from.line) > 0);
  const column = beyond.filter(({ depth }) => depth === from.column);
  const distance = (row: Row) => Math.abs((places.get(row.item.id)?.line ?? 0) - from.line);
  return leastBy(column, distance) ?? leastBy(beyond, distance);
}

function leastBy(rows: Row[], measure: (row: Row) => number): string | null {
  let least: { id: string; measured: number } | null = null;
  for (const row of rows) {
    const measured = measure(row);
    if (least === null || measured < least.measured) least = { id: row.item.id, measured };
  }
  return least?.id ?? null;
}
