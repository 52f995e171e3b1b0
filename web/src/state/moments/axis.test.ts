import { expect, test } from "vitest";

import { axisOf, densityOf, showing, zoomed } from "./axis";
import { stepAfter } from "./playing";
import type { FactRow, Mark } from "./rows";

function rowsAt(times: number[], marks: Mark[] = []): FactRow[] {
  return times.map((time, index) => ({ index, time, marks, sequence: index + 1 }) as unknown as FactRow);
}

test("by number each fact has its place, by time facts at the same time share one", () => {
  const rows = rowsAt([0, 10, 10, 5, 100, NaN]);
  const byNumber = axisOf(rows, "facts");
  expect(rows.map(({ index }) => byNumber.indexAt(byNumber.placeOf(index)))).toEqual([0, 1, 2, 3, 4, 5]);
  const byTime = axisOf(rows, "time");
  expect(rows.map(({ index }) => byTime.placeOf(index))).toEqual([0, 10, 10, 10, 100, 100]);
  expect([-5, 4, 6, 54, 56, 1_000].map((place) => byTime.indexAt(place))).toEqual([0, 0, 1, 3, 4, 5]);
});

test("every fact in sight is counted once, whatever part is shown", () => {
  const rows = rowsAt(
    Array.from({ length: 1_000 }, (_, at) => at * 7),
    ["tool"],
  );
  for (const scale of ["facts", "time"] as const) {
    const axis = axisOf(rows, scale);
    const whole = densityOf(rows, axis, { from: 0, to: axis.length }, 90);
    expect(whole.counts.reduce((sum, count) => sum + count)).toBe(1_000);
    expect(whole.marks.tool).not.toContain(false);
    const part = densityOf(rows, axis, { from: axis.placeOf(100), to: axis.placeOf(199) }, 90);
    expect(part.counts.reduce((sum, count) => sum + count)).toBe(100);
  }
});

test("zoom keeps its place where it is, and stays inside; what is off the strip is brought back", () => {
  const axis = axisOf(rowsAt(new Array<number>(1_001).fill(0)), "facts");
  expect(zoomed(axis, { from: 0, to: 1_000 }, 500, 0.5)).toEqual({ from: 250, to: 750 });
  expect(zoomed(axis, { from: 250, to: 750 }, 500, 100)).toEqual({ from: 0, to: 1_000 });
  expect(zoomed(axis, { from: 0, to: 40 }, 0, 0.01)).toEqual({ from: 0, to: 20 });
  expect(showing(axis, { from: 0, to: 100 }, 500)).toEqual({ from: 450, to: 550 });
  expect(showing(axis, { from: 0, to: 100 }, 990)).toEqual({ from: 900, to: 1_000 });
});

test("playing keeps the facts' own pauses, cuts long ones, and ends at the last", () => {
  const rows = rowsAt([0, 1_000, 1_010, 1_020, 900_000, 800_000]);
  expect(stepAfter(rows, 0, "1")).toEqual({ index: 1, wait: 1_000 });
  expect(stepAfter(rows, 0, "4")).toEqual({ index: 1, wait: 250 });
  expect(stepAfter(rows, 1, "1")).toEqual({ index: 4, wait: 2_020 });
  expect(stepAfter(rows, 4, "16")).toEqual({ index: 5, wait: 100 });
  expect(stepAfter(rows, 1, "facts")).toEqual({ index: 2, wait: 200 });
  expect(stepAfter(rows, 5, "facts")).toBeNull();
});
