import { expect, test } from "vitest";

import { ruleFor } from "./Always";

const told = {
  approvalId: "a",
  argsHash: "sha256:1",
  rule: "Bash(./x)",
  workspace: "/home/w",
  folder: "/home/w/sub",
  editable: ["/home/w/sub/x"],
  matches: [{ approvalId: "b" }],
  searched: 3,
};

test("a rule is shown for what is on screen, and for nothing else", () => {
  expect(ruleFor(told, "sha256:1")).toEqual({
    rule: "Bash(./x)",
    workspace: "/home/w",
    folder: "/home/w/sub",
    editable: ["/home/w/sub/x"],
    matches: 1,
    searched: 3,
  });
  expect(ruleFor(told, "sha256:2")).toBeNull();
  expect(ruleFor({ approvalId: "a", rule: "Bash(make test)" }, null)).toBeNull();
});

test("without a rule, or without an answer, there is nothing to offer", () => {
  expect(ruleFor({ approvalId: "a", code: "no_standing_rule", reason: "none" }, "sha256:1")).toBeNull();
  expect(ruleFor(undefined, "sha256:1")).toBeNull();
});
