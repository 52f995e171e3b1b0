"""What `codex exec` prints, beyond its recordings."""

from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, verify
from factwire.sources import convert_recording, find_source

TURN: dict[str, Any] = {"type": "turn.started"}
FAILED: dict[str, Any] = {"type": "turn.failed", "error": {"message": "so"}}
COMPLETED: dict[str, Any] = {"type": "turn.completed", "usage": {}}
AFTER_AN_ERROR: list[tuple[list[dict[str, Any]], tuple[str, str | None]]] = [
    ([], ("turn.failed", "broken")),
    ([FAILED], ("turn.failed", "so")),
    ([COMPLETED], ("turn.completed", None)),
]


def facts_from(*lines: dict[str, Any]) -> list[Fact]:
    encoded = [msgspec.json.encode(line) + b"\n" for line in lines]
    facts = list(convert_recording(find_source("codex-exec"), encoded, thread_id="t"))
    assert verify(facts) == []
    return facts


def ends(facts: list[Fact]) -> list[tuple[str | None, Any]]:
    names = ("turn.completed", "turn.failed")
    found = [fact for fact in facts if fact.event_class in names]
    return [(fact.event_class, fact.payload.get("message")) for fact in found]


@pytest.mark.requirement("sources.codex-exec.errors")
@pytest.mark.parametrize(("after", "expected"), AFTER_AN_ERROR)
def test_an_error_ends_the_turn_only_where_nothing_else_does(
    after: list[dict[str, Any]], expected: tuple[str, str | None]
):
    facts = facts_from(TURN, {"type": "error", "message": "broken"}, *after)
    assert ends(facts) == [expected]
    assert any(fact.event_class == "runtime.error" for fact in facts)


@pytest.mark.requirement("sources.codex-exec.usage")
def test_a_turn_is_told_what_it_used_and_not_what_the_thread_has():
    sums = [{"type": "turn.completed", "usage": {"input_tokens": count}} for count in (10, 25)]
    facts = facts_from(TURN, sums[0], TURN, sums[1])
    used = [f.payload["inputTokens"] for f in facts if f.event_class == "turn.completed"]
    assert used == [10, 15]


@pytest.mark.requirement("sources.codex-exec.agents")
def test_agents_that_a_call_names_begin_and_end():
    def call(item_id: str, tool: str, **fields: Any) -> dict[str, Any]:
        whole = {"id": item_id, "type": "collab_tool_call", "tool": tool, "status": "completed"}
        return {"type": "item.completed", "item": {**whole, **fields}}

    states = {"a": {"status": "completed", "message": "one file"}}
    facts = facts_from(
        TURN,
        call("i1", "spawn_agent", receiver_thread_ids=["a"], prompt="count"),
        call("i2", "wait", agents_states=states),
        COMPLETED,
    )
    names = [f.event_class for f in facts if (f.event_class or "").startswith("subagent.")]
    assert names == ["subagent.started", "subagent.completed"]
