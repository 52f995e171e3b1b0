import { expect, test } from "vitest";

import type { Tool } from "../../api/generated/projection";
import { inputLine } from "./toolstate";

const lineOf = (args: unknown) => inputLine({ args, argsText: "" } as unknown as Tool);

test("a list of changes is told by the files that it is about, each once", () => {
  expect(lineOf({ edits: [{ path: "a.md", old: "x", new: "y" }, { path: "a.md" }, { path: "b.md" }] })).toBe("a.md b.md");
});

test("changes that do not all name a file are told whole", () => {
  expect(lineOf({ edits: [{ path: "a.md" }, { line: 3 }] })).toBe('{"edits":[{"path":"a.md"},{"line":3}]}');
  expect(lineOf({ edits: [null] })).toBe('{"edits":[null]}');
  expect(lineOf({ edits: [] })).toBe('{"edits":[]}');
});
