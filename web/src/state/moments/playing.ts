/** Playing a thread: which fact comes next, and after how long. */

import { LONGEST_PAUSE_MS, PLAY_FACT_MS, PLAY_STEP_MS } from "../../api/limits";
import type { FactRow } from "./rows";

export type Pace = "1" | "4" | "16" | "facts";

/** How a pace is called, and how much faster than the facts' own times it is; null, one by one. */
export const PACES: Record<Pace, { words: string; speed: number | null }> = {
  "1": { words: "1×", speed: 1 },
  "4": { words: "4×", speed: 4 },
  "16": { words: "16×", speed: 16 },
  facts: { words: "By fact", speed: null },
};

export interface Step {
  index: number;
  wait: number;
}

/** The step behind a fact; null at the end. Pauses are cut, and what is close together is one step. */
export function stepAfter(rows: readonly FactRow[], index: number, pace: Pace): Step | null {
  const { speed } = PACES[pace];
  const last = rows.length - 1;
  if (index >= last) return null;
  if (speed === null) return { index: index + 1, wait: PLAY_FACT_MS };
  let wait = 0;
  for (let at = index; at < last; ) {
    wait += pauseBetween(rows[at], rows[at + 1]) / speed;
    at += 1;
    if (wait >= PLAY_STEP_MS || at === last) return { index: at, wait: Math.max(wait, PLAY_STEP_MS) };
  }
  return null;
}

/** Times order nothing: one that lies before the last counts as no pause. */
function pauseBetween(before: FactRow | undefined, after: FactRow | undefined): number {
  const pause = (after?.time ?? NaN) - (before?.time ?? NaN);
  return Number.isNaN(pause) ? 0 : Math.min(Math.max(pause, 0), LONGEST_PAUSE_MS);
}
