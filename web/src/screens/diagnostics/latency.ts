/**
 * How long things took, by the facts' own times. Whoever wrote the facts set those clocks; they are
 * shown as what they are, and a time that is missing or runs backwards gives no figure.
 */

import type { Tool } from "../../api/generated/projection";
import type { FactRow } from "../../state/moments";

export interface TurnTimes {
  turnId: string;
  number: number;
  /** From `turn.submitted` to the first fact of the turn that tells how it stands. */
  toStatus: number | null;
  /** From `turn.submitted` to the first text. */
  toText: number | null;
}

const STATUSES = new Set(["turn.started", "run.status", "turn.failed", "turn.completed", "turn.canceled"]);
const TEXTS = new Set(["model.delta", "model.completed", "text.delta", "text.final", "message.delta", "message.completed"]);

/** What had come by a moment; all of it, where it is live. */
export function upTo(rows: readonly FactRow[], until: number | null): readonly FactRow[] {
  return until === null ? rows : rows.slice(0, until + 1);
}

export function turnTimes(rows: readonly FactRow[]): TurnTimes[] {
  const turns = new Map<string, TurnTimes & { since: number }>();
  for (const { turnId, eventClass, time } of rows) {
    if (turnId === null) continue;
    const turn = turns.get(turnId);
    if (turn === undefined) {
      if (eventClass === "turn.submitted") turns.set(turnId, { turnId, number: turns.size + 1, toStatus: null, toText: null, since: time });
      continue;
    }
    if (STATUSES.has(eventClass)) turn.toStatus ??= elapsed(turn.since, time);
    if (TEXTS.has(eventClass)) turn.toText ??= elapsed(turn.since, time);
  }
  return [...turns.values()];
}

function elapsed(since: number, until: number): number | null {
  const took = until - since;
  return Number.isNaN(took) || took < 0 ? null : took;
}

export interface ToolTime {
  toolCallId: string;
  name: string;
  took: number;
}

/** Calls that have ended, slowest first. */
export function toolTimes(tools: { [id: string]: Tool }): ToolTime[] {
  return Object.values(tools)
    .flatMap(({ toolCallId, toolName, title, startedAt, completedAt }) => {
      const took = elapsed(Date.parse(startedAt ?? ""), Date.parse(completedAt ?? ""));
      return took === null ? [] : [{ toolCallId, name: toolName ?? title ?? toolCallId, took }];
    })
    .sort((one, other) => other.took - one.took);
}

export interface Rate {
  begin: number;
  /** Milliseconds of each column. */
  width: number;
  counts: number[];
}

/** Facts in each of so many equal stretches of the time that they took. */
export function factRate(rows: readonly FactRow[], columns: number): Rate | null {
  const times = rows.map(({ time }) => time).filter((time) => !Number.isNaN(time));
  if (times.length === 0) return null;
  const begin = times.reduce((least, time) => Math.min(least, time));
  const end = times.reduce((most, time) => Math.max(most, time));
  const width = Math.max((end - begin) / columns, 1);
  const counts = new Array<number>(columns).fill(0);
  for (const time of times) {
    const column = Math.min(Math.floor((time - begin) / width), columns - 1);
    counts[column] = (counts[column] ?? 0) + 1;
  }
  return { begin, width, counts };
}

/** The value in the middle, in order of size; null of none. */
export function median(values: number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  if (sorted.length === 0) return null;
  return sorted.length % 2 === 1 ? (sorted[half] ?? null) : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}
