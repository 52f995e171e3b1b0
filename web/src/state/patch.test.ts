import { describe, expect, test } from "vitest";

import type { Operation } from "../api/generated/projection";
import { PatchFailed, patched } from "./patch";

const before = () => ({
  messages: [{ id: "a", text: "Hel" }, { id: "b", text: "x" }],
  tools: { one: { state: "running" }, two: { state: "running" } } as Record<string, unknown>,
});

describe("patched", () => {
  test("carries out operations in order", () => {
    const operations: Operation[] = [
      { op: "append", path: "/messages/0/text", value: "lo" },
      { op: "add", path: "/messages/-", value: { id: "c", text: "" } },
      { op: "append", path: "/messages/2/text", value: "new" },
      { op: "add", path: "/messages/0", value: { id: "first", text: "" } },
      { op: "replace", path: "/tools/one/state", value: "done" },
      { op: "remove", path: "/tools/two" },
      { op: "remove", path: "/messages/2" },
    ];
    expect(patched(before(), operations)).toEqual({
      messages: [{ id: "first", text: "" }, { id: "a", text: "Hello" }, { id: "c", text: "new" }],
      tools: { one: { state: "done" } },
    });
  });

  test("shares what no operation touched, and leaves the state before alone", () => {
    const state = before();
    const after = patched(state, [{ op: "append", path: "/messages/0/text", value: "lo" }]);
    expect(after.tools).toBe(state.tools);
    expect(after.messages[1]).toBe(state.messages[1]);
    expect(after.messages[0]).not.toBe(state.messages[0]);
    expect(state).toEqual(before());
  });

  test("reads escaped keys, and takes hostile ones for what they are", () => {
    const after = patched(before(), [
      { op: "add", path: "/tools/a~1b~0c", value: 1 },
      { op: "add", path: "/tools/__proto__", value: { polluted: true } },
      { op: "add", path: "/tools/__proto__/more", value: 2 },
    ]);
    expect(after.tools["a/b~c"]).toBe(1);
    expect(Object.hasOwn(after.tools, "__proto__")).toBe(true);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(after.tools["polluted"]).toBeUndefined();
  });

  test.each<[string, Operation]>([
    ["a member that is not there", { op: "replace", path: "/tools/three", value: 1 }],
    ["a member of the prototype", { op: "remove", path: "/tools/toString" }],
    ["an index behind the end", { op: "add", path: "/messages/3", value: 1 }],
    ["an index that is none", { op: "replace", path: "/messages/01", value: 1 }],
    ["text at an object", { op: "append", path: "/tools/one", value: "x" }],
    ["a way through text", { op: "add", path: "/messages/0/text/x", value: 1 }],
    ["a path that is none", { op: "remove", path: "tools" }],
    ["a word that is no operation", { op: "merge", path: "/tools", value: 1 } as unknown as Operation],
  ])("refuses %s, and changes nothing", (_, operation) => {
    const state = before();
    const first: Operation = { op: "append", path: "/messages/0/text", value: "lo" };
    expect(() => patched(state, [first, operation])).toThrow(PatchFailed);
    expect(state).toEqual(before());
  });
});
