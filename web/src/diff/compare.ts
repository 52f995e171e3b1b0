/**
 * Which lines differ between two texts: Myers' greedy algorithm, after what is equal at both ends
 * was set aside. Texts that share next to nothing are told as one replaced by the other, since
 * looking for what they share would cost the square of it.
 */

import { place, withoutLastBreak, type DiffLine } from "./lines";

/** Changed lines up to which the shortest way is looked for; it takes the square of them in memory. */
export const MOST_CHANGES = 2_000;

/** Lines that are shown around a change. */
const AROUND = 3;

export function compared(before: string, after: string): DiffLine[] {
  return folded(changesOf(withoutLastBreak(before), withoutLastBreak(after)));
}

/** Every line of both, in order. */
export function changesOf(a: string[], b: string[]): DiffLine[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const signs = signsOf(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return numbered([..." ".repeat(start), ...signs, ..." ".repeat(end)], a, b);
}

function numbered(signs: string[], a: string[], b: string[]): DiffLine[] {
  let at = 0;
  let to = 0;
  return signs.map((sign) => {
    if (sign === "+") return { sign, text: b[to] ?? "", before: null, after: ++to };
    if (sign === "-") return { sign, text: a[at] ?? "", before: ++at, after: null };
    return { sign: " ", text: a[at] ?? "", before: ++at, after: ++to };
  });
}

/** One sign for each line that is taken away, added or kept, in order. */
function signsOf(a: string[], b: string[]): string[] {
  const most = Math.min(a.length + b.length, MOST_CHANGES);
  const furthest = new Int32Array(2 * most + 3);
  const steps: Int32Array[] = [];
  for (let changes = 0; changes <= most; changes += 1) {
    steps.push(furthest.slice(most - changes, most + changes + 3));
    for (let lane = -changes; lane <= changes; lane += 2) {
      const at = advanced(furthest, most + 1, lane, changes, a, b);
      if (at >= a.length && at - lane >= b.length) return wayBack(steps, a, b);
    }
  }
  return [..."-".repeat(a.length), ..."+".repeat(b.length)];
}

/** How far into `a` a lane leads: one change from its better neighbour, then along equal lines. */
function advanced(furthest: Int32Array, zero: number, lane: number, changes: number, a: string[], b: string[]): number {
  let at = startOf(furthest, zero, lane, changes);
  while (at < a.length && at - lane < b.length && a[at] === b[at - lane]) at += 1;
  furthest[zero + lane] = at;
  return at;
}

function startOf(furthest: Int32Array, zero: number, lane: number, changes: number): number {
  const below = furthest[zero + lane + 1] ?? 0;
  const above = furthest[zero + lane - 1] ?? 0;
  return isAddition(lane, changes, below, above) ? below : above + 1;
}

function isAddition(lane: number, changes: number, below: number, above: number): boolean {
  return lane === -changes || (lane !== changes && above < below);
}

function wayBack(steps: Int32Array[], a: string[], b: string[]): string[] {
  const signs: string[] = [];
  let at = a.length;
  let lane = a.length - b.length;
  for (let changes = steps.length - 1; changes > 0; changes -= 1) {
    const furthest = steps[changes] as Int32Array;
    const zero = changes + 1;
    const below = furthest[zero + lane + 1] ?? 0;
    const above = furthest[zero + lane - 1] ?? 0;
    const added = isAddition(lane, changes, below, above);
    const start = added ? below : above + 1;
    for (; at > start; at -= 1) signs.push(" ");
    signs.push(added ? "+" : "-");
    at = added ? start : start - 1;
    lane += added ? 1 : -1;
  }
  for (; at > 0; at -= 1) signs.push(" ");
  return signs.reverse();
}

/** Long stretches of equal lines give way to a word about how long they are. */
function folded(lines: DiffLine[]): DiffLine[] {
  const kept = new Uint8Array(lines.length);
  lines.forEach(({ sign }, at) => {
    if (sign !== " ") kept.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const rows: DiffLine[] = [];
  for (let at = 0; at < lines.length; ) {
    const from = at;
    while (at < lines.length && kept[at] === 0) at += 1;
    if (at > from) rows.push(place(at - from === 1 ? "1 unchanged line" : `${at - from} unchanged lines`));
    for (; at < lines.length && kept[at] === 1; at += 1) rows.push(lines[at] as DiffLine);
  }
  return rows;
}
