import { describe, expect, it } from "vitest";

import { changesOf, compared, MOST_CHANGES } from "./compare";
import { unifiedLines, type DiffLine } from "./lines";

const told = (lines: DiffLine[]) => lines.map(({ sign, text }) => sign + text);

/** One of the two texts that a diff stands for. */
const side = (lines: DiffLine[], own: "-" | "+") => lines.filter(({ sign }) => sign === " " || sign === own).map(({ text }) => text);

describe("a comparison", () => {
  it("shows what was taken away and added, with the lines around it", () => {
    const before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    expect(told(compared(before, before.replace("5", "five")))).toEqual(["@1 unchanged line", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8", "@1 unchanged line"]);
  });

  it("numbers lines on both sides", () => {
    expect(compared("a\nb\n", "a\nx\nb\n").map(({ before, after }) => [before, after])).toEqual([[1, 1], [null, 2], [2, 3]]);
  });

  it("has both texts in it, whatever they are", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    for (let round = 0; round < 300; round += 1) {
      const some = () => Array.from({ length: random(9) }, () => "abc".charAt(random(3)));
      const [before, after] = [some(), some()];
      const lines = changesOf(before, after);
      expect([side(lines, "-"), side(lines, "+")]).toEqual([before, after]);
    }
  });

  it("does not look for ever for what two long texts share", () => {
    const many = (word: string) => Array.from({ length: MOST_CHANGES }, (_, at) => `${word} ${at}`).join("\n");
    const lines = compared(many("old"), many("new"));
    expect(lines.filter(({ sign }) => sign === "-")).toHaveLength(MOST_CHANGES);
    expect(lines.filter(({ sign }) => sign === "+")).toHaveLength(MOST_CHANGES);
  });
});

describe("a unified diff", () => {
  it("is told line by line, and what names files is no change", () => {
    const text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n--- two\n+++ two\n\\ No newline at end of file\n";
    expect(unifiedLines(text).map(({ sign, before, after }) => [sign, before, after])).toEqual([
      ["@", null, null],
      ["@", null, null],
      ["@", null, null],
      ["@", null, null],
      [" ", 1, 1],
      ["-", 2, null],
      ["+", null, 2],
      ["@", null, null],
    ]);
  });
});
