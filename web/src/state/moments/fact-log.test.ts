import { expect, test } from "vitest";

import type { FactFrame } from "../../api/generated/edge";
import { FACT_PAGE } from "../../api/limits";
import { FactLog, NOTHING_READ, type LogShown, type ReadPage } from "./fact-log";

function frame(place: number, changes: object = {}): FactFrame {
  const fact = { id: `f${place}`, kind: "state", status: "running", title: "t", createdAt: "2026-01-01T00:00:00Z", schemaVersion: "v", runtimeId: "r", sequence: place, eventClass: "text.delta", ...changes };
  return { cursor: `c${place}`, seq: place, fact: fact as FactFrame["fact"] };
}

const pageOf = (items: FactFrame[], asOf: string, more: boolean) => ({ items, asOf, next: more ? asOf : null });

function stored(frames: FactFrame[]) {
  const asked: (string | null)[] = [];
  const read: ReadPage = (after, limit) => {
    asked.push(after);
    const from = after === null ? 0 : frames.findIndex(({ cursor }) => cursor === after) + 1;
    const items = frames.slice(from, from + limit);
    return Promise.resolve(pageOf(items, items.at(-1)?.cursor ?? after ?? "c0", from + limit < frames.length));
  };
  return { asked, read };
}

function logOf(frames: FactFrame[]) {
  const { asked, read } = stored(frames);
  const seen = { shown: NOTHING_READ };
  const log = new FactLog(read, (shown: LogShown) => (seen.shown = shown));
  return { log, asked, seen };
}

const many = (count: number) => Array.from({ length: count }, (_, at) => frame(at + 1));

test("all pages are read, each from where the one before ended, and later facts from there", async () => {
  const frames = many(FACT_PAGE + 5);
  const { log, asked, seen } = logOf(frames);
  await Promise.all([log.readOn(), log.readOn()]);
  expect(seen.shown.rows.map(({ id }) => id)).toEqual(frames.map(({ fact }) => fact.id));
  expect(seen.shown.complete).toBe(true);
  frames.push(frame(FACT_PAGE + 6));
  await log.readOn();
  expect(seen.shown.rows.at(-1)?.index).toBe(FACT_PAGE + 5);
  expect(asked.filter((after) => after === null)).toHaveLength(1);
});

test("a fact is found by its number, its id and its cursor, and a link names it so that it is found", async () => {
  const { log, seen } = logOf([frame(1), frame(2), frame(3, { sequence: 2 })]);
  await log.readOn();
  expect(["2", "f2", "c2", "9", "nobody"].map((at) => log.indexOf(at))).toEqual([1, 1, 1, undefined, undefined]);
  expect(seen.shown.rows.map((row) => log.nameOf(row))).toEqual(["1", "2", "f3"]);
  expect(seen.shown.rows.map((row) => log.indexOf(log.nameOf(row)))).toEqual([0, 1, 2]);
});

test("facts are marked by class and status", async () => {
  const { log, seen } = logOf([
    frame(1, { eventClass: "turn.failed" }),
    frame(2, { eventClass: "action.required" }),
    frame(3, { eventClass: "tool.progress", status: "failed" }),
    frame(4, { eventClass: "constructor" }),
  ]);
  await log.readOn();
  expect(seen.shown.rows.map(({ marks }) => marks)).toEqual([["turn", "failure"], ["approval"], ["tool", "failure"], []]);
});

test("a page that fails is told, and asked for again from the same place", async () => {
  const { read } = stored(many(3));
  let fails = true;
  let shown: LogShown = NOTHING_READ;
  const log = new FactLog(
    (...wanted) => (fails ? Promise.reject(new Error("away")) : read(...wanted)),
    (now) => (shown = now),
  );
  await log.readOn();
  expect(shown).toMatchObject({ error: "away", complete: false });
  fails = false;
  await log.readOn();
  expect(shown).toMatchObject({ error: null, complete: true });
  expect(shown.rows).toHaveLength(3);
});

test("the whole of a fact is read by the cursor before it", async () => {
  const { log, asked } = logOf(many(4));
  await log.readOn();
  const facts = await log.facts(2, 1, new AbortController().signal);
  expect(facts.map(({ id }) => id)).toEqual(["f3"]);
  expect(asked.at(-1)).toBe("c2");
});
