"""The declarations of a projection compile strictly, take right uses and refuse wrong ones."""

import inspect
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from factwire.facts.schemas import typescript
from factwire.projection import Operation, read_models, selectors
from factwire.projection.schemas import projection_typescript
from factwire.projection.views import View
from tests.typescript import compile_strictly

pytestmark = pytest.mark.requirement("projection.schemas.typescript")

DECLARATIONS = {"factwire.d.ts": typescript(), "projection.d.ts": projection_typescript()}

USES = """\
import type { ArtifactPayload, TaskPayload } from "./factwire";
import type {
  ActiveProcess, ArtifactRef, ArtifactState, Attention, EvidenceRef, GraphView, Message, Operation,
  Operations, Part, PendingAction, ProjectedTask, ProjectionState, SessionSnapshot, TaskSnapshot,
  TeamView, ThreadReadModel, TimelinePage, Tool,
} from "./projection";

export function read(part: Part, state: ProjectionState): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "reasoning":
      // @ts-expect-error the raw chain of thought is not kept: there is a summary
      void part.text;
      return `${part.summary} (${part.characters.toFixed(0)})`;
    case "tool-preview": {
      const tool: Tool | undefined = state.tools[part.toolCallId];
      return tool?.toolName ?? part.status;
    }
    case "artifact-card":
      return state.artifacts[part.artifactId]?.title ?? part.artifactId;
    case "evidence-citation":
      return part.verdict ?? part.evidenceId;
    case "diagnostic-ref":
      return state.diagnostics.items[part.diagnosticId]?.message ?? "";
    default: {
      const nothing: never = part;
      return nothing;
    }
  }
}

export const conversation = (state: ProjectionState): Message[] =>
  state.messages.filter((message) => message.status !== "retracted");
// @ts-expect-error a message has one of four statuses
export const lost = (state: ProjectionState) => state.messages.filter((m) => m.status === "lost");
// @ts-expect-error a cursor may be unknown
export const next = (state: ProjectionState): number => state.hydration.cursor + 1;

export function output(tool: Tool): string {
  // @ts-expect-error output is any JSON and must be looked at first
  void tool.output.length;
  const ended = tool.state === "output-available" || tool.state === "a state of tomorrow";
  return ended && typeof tool.output === "string" ? tool.output : tool.outputText;
}

type Json = { [key: string]: unknown };

export function apply(state: ProjectionState, operations: Operations): void {
  for (const operation of operations) {
    const steps = operation.path.split("/").slice(1);
    const key = steps.pop() ?? "";
    const holder = steps.reduce<Json>((at, step) => at[step] as Json, { ...state });
    switch (operation.op) {
      case "append":
        holder[key] = `${String(holder[key])}${operation.value.normalize()}`;
        break;
      case "remove":
        // @ts-expect-error nothing is put where something is taken away
        void operation.value;
        delete holder[key];
        break;
      default:
        holder[key] = operation.value;
    }
  }
}

export const operations: Operations = [
  { op: "add", path: "/messages/-", value: { any: 1 } },
  { op: "replace", path: "/hydration/cursor", value: null },
  { op: "append", path: "/messages/0/parts/0/text", value: "lo" },
  { op: "remove", path: "/messages/0/turnId" },
];
// @ts-expect-error only text is appended
export const unwritten: Operation = { op: "append", path: "/title", value: 7 };
// @ts-expect-error what is added has a value
export const hollow: Operation = { op: "add", path: "/title" };
// @ts-expect-error changes never move
export const moved: Operation = { op: "move", path: "/title", from: "/threadId" };

export const artifact = (made: ArtifactPayload, shown: ArtifactState): boolean =>
  made.title === shown.title && shown.versions.every((version) => version.eventId !== "");
// @ts-expect-error a payload is not a view, though both are of a task
export const task = (payload: TaskPayload): ProjectedTask => payload;

export const model: ThreadReadModel = {
  schemaVersion: "v", runtimeId: "r", sessionId: "s", threadId: "t", status: "idle",
  pendingActions: [], toolCalls: [{ toolCallId: "c", state: "running" }], queuedTurns: [],
  incidents: [], diagnostics: [], eventCursor: null,
};
// @ts-expect-error a call of a read model has no input
export const given: unknown = model.toolCalls[0]?.args;
export const steps = (snapshot: TaskSnapshot): number => snapshot.progress?.totalSteps ?? 0;
export const first = (session: SessionSnapshot): ArtifactRef | EvidenceRef | undefined =>
  session.artifacts[0] ?? session.evidence[0];

export const urgent = (found: Attention[]): Attention[] =>
  found.filter(({ kind }) => kind === "needs_input");
// @ts-expect-error there is no such kind of attention
export const bored = (found: Attention): boolean => found.kind === "bored";
export const asked = ({ action }: PendingAction): string => action.prompt ?? action.actionId;
export const busy = (now: ActiveProcess): boolean => now.tools.length + now.processes.length > 0;
export const cards = (team: TeamView): string[] => (team.board["doing"] ?? []).map((c) => c.taskId);
export const shown = (page: TimelinePage, graph: GraphView): number =>
  page.entries.length + graph.nodes.length + (page.nextAfter ?? 0);
"""


def test_right_uses_compile_and_wrong_ones_do_not(tmp_path: Path):
    assert compile_strictly(tmp_path, DECLARATIONS, USES) == []


def test_what_the_docs_show_compiles(tmp_path: Path):
    page = Path(__file__).resolve().parents[2] / "docs" / "schemas.md"
    shown = re.findall(
        r"^```typescript\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    used = "".join(shown) + "export { typed, words };\n"
    assert compile_strictly(tmp_path, DECLARATIONS, used) == []


def test_the_compiler_is_asked_in_earnest(tmp_path: Path):
    wrong = 'import type { Tool } from "./projection";\nexport const tool: Tool = 7;\n'
    assert "error TS2322" in compile_strictly(tmp_path, DECLARATIONS, wrong)[0]


def test_every_operation_of_a_change_is_declared():
    [op] = [field for field in msgspec.structs.fields(Operation) if field.name == "op"]
    facts = re.findall(r"^  op: (.+);$", DECLARATIONS["projection.d.ts"], re.MULTILINE)
    assert {word.strip('"') for line in facts for word in line.split(" | ")} == {*get_args(op.type)}


def test_every_read_model_and_selection_is_declared():
    declared = re.findall(r"^export interface (\w+)", DECLARATIONS["projection.d.ts"], re.MULTILINE)
    views = {
        name
        for module in (read_models, selectors)
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, View) and value is not View
    }
    assert views - set(declared) == set()
    assert len(declared) == len(set(declared))
