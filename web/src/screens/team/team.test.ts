import { expect, it } from "vitest";

import type { RosterNode } from "../../api/generated/projection";
import { boardOf } from "./columns";
import { membersOf } from "./members";

const member = (memberId: string, parentId: string | null = null): RosterNode => ({ memberId, status: "running", kind: "subagent", parentId });

it("lists members below those they work for, and everybody once", () => {
  const members = membersOf([member("a"), member("b", "c"), member("c", "b"), member("d", "a"), member("e", "gone"), member("f", "f")]);
  expect(members.map(({ node, depth }) => `${node.memberId}${depth}`)).toEqual(["a0", "d1", "e0", "f0", "b0", "c1"]);
});

it("puts work of an unknown state where work goes on", () => {
  const board = boardOf([
    { taskId: "1", status: "toString" },
    { taskId: "2", status: "lost" },
  ]);
  expect([board.doing.length, board.failed.length]).toEqual([1, 1]);
});
