import { expect, test } from "vitest";

import { shareOf } from "./pack-progress";

test("what is in a pack is told beside what is to be in it", () => {
  expect(shareOf({ state: "making", facts: 12_000, total: 50_000 })).toEqual({
    facts: 12_000,
    total: 50_000,
    words: `${(12_000).toLocaleString()} of ${(50_000).toLocaleString()} facts`,
  });
  expect(shareOf({ state: "making", total: 7 })?.facts).toBe(0);
});

test("without a total, a pack or an answer there is no share to show", () => {
  expect(shareOf({ state: "making", facts: 3 })).toBeNull();
  expect(shareOf({ state: "idle" })).toBeNull();
  expect(shareOf({ state: "unknown" })).toBeNull();
  expect(shareOf(undefined)).toBeNull();
});
