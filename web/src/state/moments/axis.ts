/**
 * Where facts stand on a strip: by their number, or by their own times. Order is always that of the
 * journal; a time that lies before an earlier one is drawn at the earlier one's place.
 */

import type { FactRow, Mark } from "./rows";

export type Scale = "facts" | "time";

export interface Axis {
  /** Places go from 0 to this. */
  length: number;
  placeOf(index: number): number;
  /** The fact that stands nearest to a place. */
  indexAt(place: number): number;
}

/** The part of an axis that is on screen. */
export interface Range {
  from: number;
  to: number;
}

export function axisOf(rows: readonly FactRow[], scale: Scale): Axis {
  return scale === "facts" ? axisOfFacts(rows.length) : axisOfTime(rows);
}

function axisOfFacts(count: number): Axis {
  const last = Math.max(count - 1, 0);
  return { length: Math.max(last, 1), placeOf: (index) => index, indexAt: (place) => clamp(Math.round(place), 0, last) };
}

function axisOfTime(rows: readonly FactRow[]): Axis {
  const places = new Float64Array(rows.length);
  const begin = rows.find(({ time }) => !Number.isNaN(time))?.time ?? 0;
  let latest = 0;
  rows.forEach(({ time }, index) => {
    if (!Number.isNaN(time)) latest = Math.max(latest, time - begin);
    places[index] = latest;
  });
  return {
    length: Math.max(latest, 1),
    placeOf: (index) => places[index] ?? latest,
    indexAt: (place) => nearest(places, place),
  };
}

function nearest(places: Float64Array, place: number): number {
  const behind = firstNotBefore(places, place);
  const before = Math.max(behind - 1, 0);
  if (behind >= places.length) return Math.max(places.length - 1, 0);
  return place - (places[before] ?? 0) <= (places[behind] ?? 0) - place ? before : behind;
}

function firstNotBefore(places: Float64Array, place: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many facts fall into each column of a strip, and which columns carry which marks. */
export interface Density {
  counts: number[];
  most: number;
  marks: Record<Mark, boolean[]>;
}

export function densityOf(rows: readonly FactRow[], axis: Axis, range: Range, columns: number): Density {
  const empty = () => new Array<boolean>(columns).fill(false);
  const marks: Density["marks"] = { turn: empty(), tool: empty(), approval: empty(), failure: empty() };
  const counts = new Array<number>(columns).fill(0);
  const span = range.to - range.from;
  for (let index = Math.max(axis.indexAt(range.from) - 1, 0); index < rows.length; index += 1) {
    const share = (axis.placeOf(index) - range.from) / span;
    if (share > 1) break;
    const column = share < 0 ? -1 : Math.min(Math.floor(share * columns), columns - 1);
    if (column < 0) continue;
    counts[column] = (counts[column] ?? 0) + 1;
    for (const mark of rows[index]?.marks ?? []) marks[mark][column] = true;
  }
  return { counts, most: Math.max(1, ...counts), marks };
}

/** A range around a place, a factor larger or smaller, inside of the axis. */
export function zoomed(axis: Axis, range: Range, place: number, factor: number): Range {
  const span = clamp((range.to - range.from) * factor, Math.min(SMALLEST_SPAN, axis.length), axis.length);
  const share = clamp((place - range.from) / (range.to - range.from), 0, 1);
  return slid(axis, { from: place - share * span, to: place + (1 - share) * span });
}

/** A range that shows a place: itself where it does, else as wide and with the place in its middle. */
export function showing(axis: Axis, range: Range, place: number): Range {
  if (place >= range.from && place <= range.to) return range;
  const half = (range.to - range.from) / 2;
  return slid(axis, { from: place - half, to: place + half });
}

function slid(axis: Axis, { from, to }: Range): Range {
  const span = Math.min(to - from, axis.length);
  const begin = clamp(from, 0, axis.length - span);
  return { from: begin, to: begin + span };
}

/** A strip shows no less than this many facts, or milliseconds. */
const SMALLEST_SPAN = 20;

export function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
