"""The declarations compile strictly, take every right use and refuse the wrong ones."""

from pathlib import Path

import pytest

from factwire.facts.schemas import typescript
from tests.typescript import compile_strictly

pytestmark = pytest.mark.requirement("schemas.typescript")

DECLARATIONS = {"factwire.d.ts": typescript()}

USES = """\
import type {
  CapabilityManifest, Fact, FactOf, Fixture, InputPart, Issue, KnownFact, KnownRuntimeEvent,
  KnownUiEvent, IssueReport, Open, PayloadByClass, ResumeAnswer, RuntimeEvent, UiEvent,
} from "./factwire";

const identity = {
  id: "f1", title: "Search", createdAt: "2026-01-01T00:00:00Z", schemaVersion: "1",
  runtimeId: "r1", sequence: 1,
};

export const fact: Fact = { ...identity, kind: "tool", status: "a status of tomorrow" };
export const unclassified: Fact = { ...fact, eventClass: "acme.reindexed", payload: { any: 1 } };
// @ts-expect-error a fact needs an id
export const anonymous: Fact = { kind: "tool", status: "running", title: "", createdAt: "",
  schemaVersion: "", runtimeId: "", sequence: 1 };
// @ts-expect-error a sequence is a number
export const unordered: Fact = { ...fact, sequence: "1" };
// @ts-expect-error a sequence cannot be null, though optional fields can
export const unassigned: Fact = { ...fact, threadId: null, sequence: null };

export const call: FactOf<"tool.started"> = {
  ...fact, eventClass: "tool.started", payload: { toolName: "search", custom: true },
};
export const general: Fact = call;
// @ts-expect-error the payload of tool.started has a text for a name
export const misnamed: FactOf<"tool.started"> = { ...call, payload: { toolName: 7 } };
// @ts-expect-error there is no such class
export type Unheard = FactOf<"tool.pondered">;

export function summary(known: KnownFact): string | null | undefined {
  switch (known.eventClass) {
    case "model.delta":
      // @ts-expect-error a piece of text has no exit code that could be told apart from unknown
      return known.payload?.exitCode;
    case "tool.result":
      return known.payload?.exitCode?.toFixed(0);
    case "task.progress":
      return typeof known.payload?.progress === "object"
        ? known.payload.progress?.completedSteps?.toFixed(0)
        : null;
    default:
      return known.title;
  }
}

export const event: RuntimeEvent = {
  schemaVersion: "1", runtimeId: "r1", sessionId: "s1", eventId: "e1", timestamp: "", sequence: 0,
  type: "turn.started", payload: {},
};
// @ts-expect-error a runtime event is not a fact
export const confused: Fact = event;
export const prompt = (known: KnownRuntimeEvent): string | null | undefined =>
  known.type === "turn.started" ? known.payload.prompt : undefined;
export const ui: UiEvent = { type: "text.delta" };
export const delta = (known: KnownUiEvent): string | null | undefined =>
  known.type === "text.delta" ? known.payload?.delta : undefined;

export const other: unknown = (fact as Open<Fact>).someFieldOfTomorrow;
export const cost: PayloadByClass["cost.recorded"] = { totalTokens: 3, totalCostUsd: null };
export const issue: Issue = { code: "sequence_gap", path: "$[1].sequence", message: "3 after 1" };
// @ts-expect-error codes are a closed list
export const uncoded: Issue = { ...issue, code: "bad" };
export const report: IssueReport = { valid: false, issues: [issue], facts: 2 };
export const fixture: Fixture = {
  id: "x", schemaVersion: "agent-ui-fixture/v0.1", title: "One", events: [{ ...fact }],
  expected: { status: "completed", artifactCount: 0 },
};
export const parts: InputPart[] = [
  { type: "text", text: "look" }, { type: "asset", kind: "image", ref: "artifact:1" },
];
// @ts-expect-error an asset is passed by ref
export const inline: InputPart = { type: "asset", kind: "image", data: "AAAA" };
export const manifest: CapabilityManifest = {
  agentId: "a", title: "A", approvals: "inline", controls: ["stop", "teleport"], cancel: "yes",
};
// @ts-expect-error an answer of the manifest is yes, no or unknown
export const vague: CapabilityManifest = { ...manifest, steer: "maybe" };
export const answer: ResumeAnswer = { actionId: "a1", payload: { decision: "approve" } };
"""


def test_right_uses_compile_and_wrong_ones_do_not(tmp_path: Path):
    assert compile_strictly(tmp_path, DECLARATIONS, USES) == []


def test_the_compiler_is_asked_in_earnest(tmp_path: Path):
    wrong = 'import type { Fact } from "./factwire";\nexport const fact: Fact = {};\n'
    assert "error TS2740" in compile_strictly(tmp_path, DECLARATIONS, wrong)[0]


def test_declarations_are_the_same_every_time():
    assert typescript() == typescript()
