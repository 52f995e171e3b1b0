/**
 * The text of a request has one form: a field begins a line, and each line of a long value stands
 * behind a bar, so no value can pass for a field. Colour is all that is added to it.
 */

import { unifiedLines, type DiffLine } from "../diff/lines";

export type LineTone = "added" | "removed" | "place";

export interface TonedLine {
  line: string;
  tone: LineTone | null;
}

const BAR = /^\|( |$)/;
const TONES: Record<DiffLine["sign"], LineTone | null> = { "+": "added", "-": "removed", "@": "place", " ": null };

export function tonedLines(shown: string): TonedLine[] {
  const lines = shown.split("\n");
  const from = lines.indexOf("diff:") + 1;
  if (from === 0) return lines.map(plain);
  const behind = lines.findIndex((line, at) => at >= from && !BAR.test(line));
  const to = behind === -1 ? lines.length : behind;
  return [...lines.slice(0, from).map(plain), ...tonedDiff(lines.slice(from, to)), ...lines.slice(to).map(plain)];
}

function plain(line: string): TonedLine {
  return { line, tone: null };
}

function tonedDiff(lines: string[]): TonedLine[] {
  // One more line break, since the last one is taken for the end of the diff.
  const diff = unifiedLines(`${lines.map((line) => line.slice(2)).join("\n")}\n`);
  return lines.map((line, at) => ({ line, tone: TONES[diff[at]?.sign ?? " "] }));
}
