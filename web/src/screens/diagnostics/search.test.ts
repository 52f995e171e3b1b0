import { expect, test } from "vitest";

import type { Fact } from "../../api/generated/factwire";
import { FACT_PAGE } from "../../api/limits";
import type { FactRow } from "../../state/moments";
import { gapWords } from "./gaps";
import { factRate, median, toolTimes, turnTimes } from "./latency";
import { holds, matching, pagesOf } from "./search";

const COUNT = 2_500;
const rows = Array.from({ length: COUNT }, (_, index) => row(index, index % 500 === 0 ? "tool.started" : "text.delta", index));

function row(index: number, eventClass: string, time: number, turnId: string | null = null): FactRow {
  return { index, id: `f${index}`, eventClass, time, turnId, toolCallId: null } as unknown as FactRow;
}

function source() {
  const asked: [number, number][] = [];
  const facts = (from: number, count: number) => {
    asked.push([from, count]);
    return Promise.resolve(rows.slice(from, from + count).map(({ id }) => ({ id }) as Fact));
  };
  return { asked, facts };
}

test("facts are found by class and id in the list, without asking for anything", () => {
  expect(matching(rows, { eventClass: "TOOL", id: "" })).toHaveLength(5);
  expect(matching(rows, { eventClass: "", id: "f2499" }).map(({ index }) => index)).toEqual([2_499]);
  expect(matching(rows, { eventClass: "", id: "" })).toBe(rows);
});

test("rows are read in as few pages as hold them, and every one comes once", async () => {
  const { asked, facts } = source();
  const read: string[] = [];
  for await (const { found } of pagesOf({ facts }, rows, new AbortController().signal)) read.push(...found.map(({ fact }) => fact.id));
  expect(read).toEqual(rows.map(({ id }) => id));
  expect(asked).toEqual([
    [0, FACT_PAGE],
    [1_000, FACT_PAGE],
    [2_000, 500],
  ]);
  asked.length = 0;
  const some = matching(rows, { eventClass: "tool", id: "" });
  for await (const { found } of pagesOf({ facts }, some, new AbortController().signal)) expect(found.every(({ row: { eventClass } }) => eventClass === "tool.started")).toBe(true);
  expect(asked).toEqual([
    [0, 501],
    [1_000, 501],
    [2_000, 1],
  ]);
});

test("words are found in any value, however deep, as they read and not as JSON escapes them", () => {
  const fact = { payload: { args: [{ command: 'say "Hi"\nthere' }], count: 42 } };
  expect(["hi", 'say "hi"', '"hi"\nthere', "42", "command", "bye"].map((words) => holds(fact, words))).toEqual([true, true, true, true, true, false]);
});

test("times of turns are those of their own facts, and what is not told is unknown", () => {
  const told = [
    row(0, "turn.submitted", 100, "a"),
    row(1, "turn.started", 150, "a"),
    row(2, "turn.submitted", 200, "b"),
    row(3, "text.delta", 400, "a"),
    row(4, "text.delta", 900, "a"),
    row(5, "turn.started", 190, "b"),
    row(6, "text.final", NaN, "b"),
    row(7, "text.final", 5, "never submitted"),
  ];
  expect(turnTimes(told)).toMatchObject([
    { turnId: "a", number: 1, toStatus: 50, toText: 300 },
    { turnId: "b", number: 2, toStatus: null, toText: null },
  ]);
});

test("tools that have not ended have no time, and the rate counts each fact once", () => {
  const tool = (toolCallId: string, startedAt: string | null, completedAt: string | null) => ({ toolCallId, startedAt, completedAt, toolName: "t" }) as never;
  const times = toolTimes({ a: tool("a", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"), b: tool("b", "2026-01-01T00:00:00Z", null), c: tool("c", "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z") });
  expect(times.map(({ toolCallId, took }) => [toolCallId, took])).toEqual([
    ["c", 9_000],
    ["a", 1_000],
  ]);
  expect(factRate(rows, 10)?.counts.reduce((sum, count) => sum + count)).toBe(COUNT);
  expect(factRate([], 10)).toBeNull();
  expect([median([]), median([3, 1, 2]), median([1, 2])]).toEqual([null, 2, 1.5]);
});

test("what is missing is told by number, and whose it is where that is another thread", () => {
  const gaps = [{ fromSequence: 5, toSequence: 5 }, { fromSequence: 7, toSequence: 9, threadId: null }, { fromSequence: 1, toSequence: 2, threadId: "other" }];
  expect(gaps.map(gapWords)).toEqual(["fact 5", "facts 7 to 9", "facts 1 to 2 of other"]);
});
