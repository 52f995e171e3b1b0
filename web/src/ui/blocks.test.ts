import { expect, test } from "vitest";

import { blocksOf } from "./blocks";
import { piecesOf } from "./verbatim";

test.each([
  ["paragraphs are cut apart", "one\n\ntwo", ["one\n", "two"]],
  ["a fence is kept whole", "```\na\n\nb\n```\n\nend", ["```\na\n\nb\n```\n", "end"]],
  ["a fence that is still open is kept whole", "x\n\n~~~\na\n\nb", ["x\n", "~~~\na\n\nb"]],
  ["a longer fence holds a shorter one", "````\n```\n\nx\n````", ["````\n```\n\nx\n````"]],
  ["a list with gaps is kept whole", "1. a\n\n2. b\n\n   more", ["1. a\n\n2. b\n\n   more"]],
  ["text with definitions is not cut", "see [x]\n\n[x]: https://example.com", ["see [x]\n\n[x]: https://example.com"]],
])("%s", (_, given, wanted) => {
  expect(blocksOf(given)).toEqual(wanted);
  expect(blocksOf(given).join("\n")).toBe(given);
});

test("characters that hide or reorder are shown by number, others as they are", () => {
  const shown = (text: string) => piecesOf(text).map(({ text: words }) => words).join("|");
  expect(shown("rm \u202Etxt\u200B")).toBe("rm |U+202E|txt|U+200B");
  expect(shown("\u001b[31mred")).toBe("U+001B|[31mred");
  expect(shown("tab\tline\nعربي 日本")).toBe("tab\tline\nعربي 日本");
});
