import { expect, test } from "vitest";

import type { ProjectionState } from "../../api/generated/projection";
import { rowsOf } from "./rows";

/** A state with only the roots that rows are made from. */
function state(roots: object): ProjectionState {
  return { messages: [], plans: {}, actions: {}, timeline: [], graph: { nodes: {}, edges: {} }, context: { compactions: [] }, ...roots } as unknown as ProjectionState;
}

const text = (partId: string, words: string) => ({ type: "text", partId, text: words, state: "final" });
const tool = (id: string) => ({ type: "tool-preview", partId: `tool:${id}`, toolCallId: id, status: "running" });
const reasoning = (partId: string) => ({ type: "reasoning", partId, summary: "", state: "final" });
const message = (messageId: string, sequence: number, role: string, parts: object[], more: object = {}) => ({ messageId, sequence, role, parts, turnId: "t1", status: "final", ...more });
const kinds = (found: ProjectionState) => rowsOf(found).map((row) => row.kind);

test("steps that follow each other are one process, across messages of a turn", () => {
  const found = rowsOf(state({ messages: [message("u", 1, "user", [text("u:t", "hi")]), message("a", 2, "assistant", [reasoning("r")]), message("b", 3, "assistant", [tool("c1"), tool("c2"), text("b:t", "done"), tool("c3")])] }));
  expect(found.map((row) => (row.kind === "process" ? row.parts.map((part) => part.partId) : row.kind))).toEqual(["user", ["r", "tool:c1", "tool:c2"], "text", ["tool:c3"]]);
});

test("words of subagents, retracted messages and empty texts are no rows", () => {
  expect(kinds(state({ messages: [message("s", 1, "assistant", [text("s:t", "x")], { subagentId: "sub" }), message("r", 2, "assistant", [text("r:t", "x")], { status: "retracted" }), message("e", 3, "assistant", [text("e:t", "")])] }))).toEqual([]);
});

test("a second message of the user in a turn was said while it ran", () => {
  const found = rowsOf(state({ messages: [message("u", 1, "user", [text("u:t", "go")]), message("s", 5, "user", [text("s:t", "faster")])] }));
  expect(found.map((row) => row.kind === "user" && row.steered)).toEqual([false, true]);
});

test("a plan stands before the call that came after it, though both are within one message", () => {
  const found = state({
    messages: [message("a", 2, "assistant", [text("a:t", "I have a plan"), tool("c1")])],
    plans: { p: { planId: "p", turnId: "t1", text: "", state: "final" } },
    timeline: [
      { entryId: "plan:t1", eventClass: "plan.final", turnId: "t1", sequence: 4 },
      { entryId: "tool:c1", eventClass: "tool.started", turnId: "t1", sequence: 6 },
    ],
  });
  expect(kinds(found)).toEqual(["text", "plan", "process"]);
});

test("a request of a call on screen stands with it, and a teammate's on its own", () => {
  const found = state({
    messages: [message("a", 2, "assistant", [tool("c1")]), message("b", 9, "assistant", [text("b:t", "x")])],
    actions: { mine: { actionId: "mine", toolCallId: "c1", sequence: 3 }, theirs: { actionId: "theirs", toolCallId: "c9", subagentId: "sub", sequence: 5 } },
  });
  expect(rowsOf(found).map((row) => row.key)).toEqual(["process:tool:c1", "action:theirs", "b:t"]);
});

test("a boundary stands where context was folded, and a turn that failed says so at its end", () => {
  const found = state({
    messages: [message("a", 2, "assistant", [text("a:t", "x")]), message("u", 8, "user", [text("u:t", "y")], { turnId: "t2" })],
    context: { compactions: [{ eventId: "e", sequence: 7, status: "completed" }] },
    graph: { nodes: { "turn:t1": { status: "failed" }, "turn:t2": { status: "completed" } }, edges: {} },
  });
  expect(kinds(found)).toEqual(["text", "boundary", "outcome", "user"]);
});
