"""The page's types are written from the contracts, and compile."""

from pathlib import Path

import pytest

from tests.typescript import compile_strictly
from tools import web_types

USES = """
import type { ProjectionFrame } from "./edge";
import type { Fact } from "./factwire";
import type { ProjectionState } from "./projection";
import { OPERATIONS, type Operations, type ProblemDocument } from "./rest";

type Answer<Name extends keyof Operations> = Operations[Name]["answer"];

export function shown(frame: ProjectionFrame): ProjectionState | null {
  return frame.type === "projection.snapshot" ? frame.state : null;
}
export const path: "/v1/threads" = OPERATIONS.listThreads.path;
export const page: Answer<"listThreads"> = { items: [], asOf: "" };
export const state = (answer: Answer<"readProjection">): ProjectionState => answer.state;
export const facts = (answer: Answer<"readFacts">): Fact[] => answer.items.map((row) => row.fact);
export const code = (problem: ProblemDocument): string => problem.code;
// @ts-expect-error a decision is allow or deny
export const maybe: Operations["decidePermission"]["body"]["decision"] = "perhaps";
// @ts-expect-error no operation is called so
export const nothing: Answer<"listNothing"> = null;
"""


@pytest.mark.requirement("workbench.types")
def test_the_types_compile_and_know_what_each_operation_takes_and_answers(tmp_path: Path):
    assert compile_strictly(tmp_path, web_types.modules(), USES) == []


@pytest.mark.requirement("workbench.types")
def test_the_types_that_the_page_is_built_with_are_those_of_the_code():
    kept = {path.name: path.read_text("utf-8") for path in web_types.FOLDER.glob("*.ts")}
    assert kept == web_types.modules(), "run `make schemas`"
