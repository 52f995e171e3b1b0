import { expect, test } from "vitest";

import type { FactRow } from "../../state/moments";
import { placeByKey } from "./steps";

const CLASSES = ["thread.started", "turn.submitted", "text.delta", "turn.completed", "text.delta"];
const rows = CLASSES.map((eventClass, index) => ({ index, eventClass }) as unknown as FactRow);

test("keys lead one fact on, to the ends of turns, to the first fact, and back to now", () => {
  const by = (key: string, place: number, shift = false) => placeByKey(key, shift, rows, place);
  expect([by("ArrowLeft", 5), by("ArrowLeft", 0), by("ArrowRight", 4), by("ArrowRight", 5)]).toEqual([4, 0, 5, 5]);
  expect([by("ArrowLeft", 5, true), by("ArrowLeft", 3, true), by("ArrowLeft", 1, true)]).toEqual([3, 1, 0]);
  expect([by("ArrowRight", 0, true), by("ArrowRight", 1, true), by("ArrowRight", 3, true)]).toEqual([1, 3, 5]);
  expect([by("Home", 3), by("End", 3), by("Escape", 3), by("a", 3), by("constructor", 3)]).toEqual([0, 5, 5, undefined, undefined]);
});
