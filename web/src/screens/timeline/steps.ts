/** Where keys lead on a strip. Places are those of facts; the one behind the last is now. */

import type { FactRow } from "../../state/moments";

const TURN_ENDS = new Set(["turn.submitted", "turn.started", "turn.completed", "turn.failed", "turn.canceled", "turn.cancelled"]);

/** The next place, in a direction, where a turn begins or ends; else the first fact, or now. */
export function turnFrom(rows: readonly FactRow[], place: number, direction: 1 | -1): number {
  for (let at = place + direction; at >= 0 && at < rows.length; at += direction) {
    if (TURN_ENDS.has(rows[at]?.eventClass ?? "")) return at;
  }
  return direction === 1 ? rows.length : 0;
}

/** The place that a key leads to; undefined for a key that leads nowhere. */
export function placeByKey(key: string, shift: boolean, rows: readonly FactRow[], place: number): number | undefined {
  const keys: Record<string, () => number> = {
    ArrowLeft: () => (shift ? turnFrom(rows, place, -1) : Math.max(place - 1, 0)),
    ArrowRight: () => (shift ? turnFrom(rows, place, 1) : Math.min(place + 1, rows.length)),
    PageUp: () => Math.max(place - tenth(rows), 0),
    PageDown: () => Math.min(place + tenth(rows), rows.length),
    Home: () => 0,
    End: () => rows.length,
    Escape: () => rows.length,
  };
  return Object.hasOwn(keys, key) ? keys[key]?.() : undefined;
}

function tenth(rows: readonly FactRow[]): number {
  return Math.max(1, Math.round(rows.length / 10));
}
