import { expect, it } from "vitest";

import { tonedLines } from "./tones";

it("colours a diff within what is shown, and changes no letter of it", () => {
  const shown = ["tool: patch", "diff:", "| --- a/x", "| +++ b/x", "| @@ -1,2 +1,2 @@", "|  one", "| --- two", "| +++ two", "|", "args: {}"].join("\n");
  const lines = tonedLines(shown);
  expect(lines.map(({ line }) => line).join("\n")).toBe(shown);
  expect(lines.map(({ tone }) => tone)).toEqual([null, null, "place", "place", "place", null, "removed", "added", "place", null]);
});

it("colours nothing of a command that looks like a diff", () => {
  expect(tonedLines("command:\n| +1\n| diff:\n| -1").every(({ tone }) => tone === null)).toBe(true);
});
