"""What is open: the machine itself, and where the verifier and the gates differ on purpose."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, verify
from factwire.facts.open_work import LastIds, OpenWork, RecentIds
from factwire.runtime import GateRefused, Gates
from tests.facts.samples import fact

Step = tuple[str, str, dict[str, Any]]
"""Class, turn and other fields."""


def step(event_class: str, turn: str = "t1", **fields: Any) -> Step:
    return event_class, turn, fields


def judge(steps: list[Step]) -> tuple[list[str], list[str]]:
    """The codes of the verifier and those of the gates, for the same facts."""
    facts = [
        fact(name, number, threadId="thread_1", turnId=turn, **fields)
        for number, (name, turn, fields) in enumerate(steps, 1)
    ]
    return [violation.code for violation in verify(facts)], list(refusals(facts))


def refusals(facts: list[Fact]) -> Iterator[str]:
    gates = Gates()
    for one in facts:
        try:
            gates.feed(msgspec.structs.replace(one, sequence=None))
        except GateRefused as error:
            yield error.code


def test_what_is_opened_stays_open_until_it_is_closed_in_its_turn():
    work = OpenWork(RecentIds(8))
    work.open("t1", "tool", "a")
    work.open("t2", "tool", "a")
    work.close("t1", "tool", "a")
    assert not work.is_open("t1", "tool", "a")
    assert work.find_turn("tool", "a") == "t2"
    assert list(work.list_open("tool")) == [("a", "t2")]


def test_the_end_of_a_turn_leaves_nothing_open_in_it():
    work = OpenWork(LastIds(8))
    work.open("t1", "tool", "a")
    work.open("t1", "action", "b")
    work.open("t2", "action", "c")
    work.end_turn("t1")
    assert (work.open_ids("t1", "tool"), work.open_ids("t1", "action")) == ((), ())
    assert work.open_ids("t2", "action") == ("c",)
    assert "t1" in work.ended


def test_a_copy_goes_its_own_way():
    work = OpenWork(LastIds(8))
    work.open("t1", "tool", "a")
    before = repr(work)
    twin = work.copy()
    twin.open("t1", "tool", "b")
    twin.end_turn("t1")
    assert repr(work) == before
    assert work.open_ids("t1", "tool") == ("a",)


def test_memory_is_bounded():
    work = OpenWork(RecentIds(2), limit=3)
    for number in range(100):
        work.open(f"t{number}", "tool", f"a{number}")
        work.remember_end(f"t{number}")
    assert [call for call, _ in work.list_open("tool")] == ["a97", "a98", "a99"]
    assert len(work.ended) <= 4


def test_exactly_the_last_ids_are_remembered():
    last = LastIds(2)
    assert [last.add(name) for name in ("a", "b", "a", "c")] == [False, False, True, False]
    assert list(last) == ["b", "c"]


@pytest.mark.parametrize(
    ("steps", "violations", "refused"),
    [
        pytest.param(
            [step("tool.started", toolCallId="a"), step("tool.result", "t2", toolCallId="a")],
            ["tool_result_without_start"],
            [],
            id="closed from another turn",
        ),
        pytest.param(
            [step("tool.started", toolCallId="a"), step("tool.started", "t2", toolCallId="a")],
            [],
            ["tool_already_open"],
            id="opened in two turns",
        ),
        pytest.param(
            [
                step("action.required", actionId="a"),
                step("turn.completed"),
                step("action.resolved", "t2", actionId="a"),
            ],
            ["action_unresolved_at_turn_end", "action_resolved_without_request"],
            ["action_already_decided"],
            id="a request ends with its turn",
        ),
        pytest.param(
            [step("turn.completed"), step("permission.evaluated")],
            ["execution_after_turn_terminal"],
            [],
            id="a permission after the end",
        ),
        pytest.param(
            [step("turn.completed"), step("context.resolved")],
            ["execution_after_turn_terminal"],
            [],
            id="a context after the end",
        ),
        pytest.param(
            [step("tool.output.delta", toolCallId="a")],
            [],
            ["tool_not_open"],
            id="output of a tool that was not started",
        ),
        pytest.param(
            [step("patch.applied", payload={"patchId": "a"})],
            ["patch_terminal_without_start"],
            [],
            id="a patch that was not started",
        ),
    ],
)
def test_the_verifier_and_the_gates_differ_where_they_should(
    steps: list[Step], violations: list[str], refused: list[str]
):
    assert judge(steps) == (violations, refused)
