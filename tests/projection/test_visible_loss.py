"""Whatever is lost shows: in the status of the state, in its gaps and reasons, in its counts."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact
from factwire.projection import Projection, ProjectionState, encode_state, project
from tests.projection.fact_maker import THREAD, FactMaker, as_json, codes, texts, watch_facts
from tests.projection.test_ordering import assert_any_order, run_facts

TURN = {"turnId": "turn"}
PART = {**TURN, "messageId": "m", "partId": "p"}

Story = Callable[[], list[Fact]]


def cut_text(*repairs: tuple[str, dict[str, Any]]) -> Story:
    """A text that lost its second piece, and what the source sends as a repair."""

    def tell_story() -> list[Fact]:
        tell = FactMaker()
        facts = [
            tell("turn.started", **TURN),
            tell("model.delta", **PART, delta="one "),
            tell("model.delta", **PART, delta="two "),
            tell("model.delta", **PART, delta="three"),
        ]
        facts += [tell(name, **fields) for name, fields in repairs]
        facts.append(tell("turn.completed", **TURN))
        return [fact for fact in facts if fact.sequence != 3]

    return tell_story


def turn_facts(turn: str, minute: int, first: int = 1, **ids: Any) -> list[Fact]:
    """A turn that counts by itself and names no run."""
    tell = FactMaker(first)
    named = {"turnId": turn, **ids}
    facts = [
        tell("turn.submitted", **named, prompt=f"Ask {turn}"),
        tell("turn.started", **named),
        tell("model.delta", **named, messageId=f"m-{turn}", delta="An"),
        tell("model.delta", **named, messageId=f"m-{turn}", delta="swer"),
        tell("turn.completed", **named),
        tell("snapshot.updated"),
    ]
    return [
        msgspec.structs.replace(
            fact,
            id=f"{turn}-{fact.sequence}",
            created_at=f"2026-06-10T00:{minute:02}:{fact.sequence or 0:02}Z",
        )
        for fact in facts
    ]


def without_head(facts: list[Fact], count: int) -> list[Fact]:
    return facts[count:]


ROWS = [{"messageId": "m", "turnId": "turn", "text": "one two three"}]
CLAIM = {"fromSequence": 3, "toSequence": 3}

LOST: dict[str, tuple[Story, str, dict[str, Any]]] = {
    "a repair that carries nothing": (
        cut_text(("stream.repair.completed", {})),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a snapshot that carries nothing": (
        cut_text(("snapshot.repaired", {})),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a repair that only claims a range": (
        cut_text(("stream.repair.completed", CLAIM)),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a repair of another range": (
        cut_text(("snapshot.repaired", {"toSequence": 2, "messages": ROWS})),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a repair of messages that names no range": (
        cut_text(("snapshot.repaired", {"messages": ROWS})),
        "stale",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a second run without its head": (
        lambda: [*run_facts("a", 1, "one"), *without_head(run_facts("b", 2, "two"), 3)],
        "stale",
        {"reasons": ["starts_late"], "doubtedAt": 3},
    ),
    "a second turn without its head": (
        lambda: [*turn_facts("a", 1), *without_head(turn_facts("b", 2), 2)],
        "stale",
        {"reasons": ["starts_late"], "doubtedAt": 2},
    ),
    "a piece that was lost before another run": (
        lambda: [
            *(fact for fact in run_facts("a", 1, "one") if fact.sequence != 5),
            *run_facts("b", 2, "two"),
        ],
        "degraded",
        {"gaps": [{"fromSequence": 5, "toSequence": 5}]},
    ),
    "a start in the middle of a thread": (
        lambda: [FactMaker(500)("turn.started", **TURN)],
        "stale",
        {"reasons": ["starts_late"], "doubtedAt": 499},
    ),
    "two facts that claim one place": (
        lambda: [
            FactMaker()("turn.started", **TURN),
            FactMaker(2)("model.delta", **PART, delta="one"),
            FactMaker(2)("model.delta", **PART, delta="two", id="rival"),
        ],
        "stale",
        {"reasons": ["sequence_conflict"], "doubtedAt": 2},
    ),
}


def project_live(facts: list[Fact]) -> ProjectionState:
    seen = watch_facts(facts)
    seen.projection.close()
    return seen.state


HEADLESS = frozenset({"a second run without its head", "a second turn without its head"})
"""Live, nothing tells these from facts that claim the places of others."""


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("read", [project_live, project], ids=["live", "complete"])
@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_shows(name: str, read: Callable[[list[Fact]], ProjectionState]):
    tell_story, status, stated = LOST[name]
    if name in HEADLESS and read is project_live:
        stated = {"reasons": ["sequence_conflict"]}
    state = read(tell_story())
    found = as_json(state.hydration)
    assert found["status"] == status
    assert {key: found.get(key) for key in stated} == stated
    answers = [message for message in state.messages if message.role == "assistant"]
    if status == "degraded":
        assert [message.status for message in answers if message.status == "final"] == []


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("facts", [cut_text(("snapshot.repaired", {**CLAIM, "messages": ROWS}))()])
@pytest.mark.parametrize("read", [project_live, project], ids=["live", "complete"])
def test_a_repair_that_carries_what_it_names_is_one(
    facts: list[Fact], read: Callable[[list[Fact]], ProjectionState]
):
    state = read(facts)
    assert (state.hydration.status, state.hydration.gaps) == ("live", [])
    assert texts(state) == [("assistant", ["one two three"])]


@pytest.mark.requirement("projection.order.runs")
@pytest.mark.parametrize("ids", [{}, {"runId": "run"}], ids=["no run", "one run"])
def test_turns_that_count_by_themselves_follow_each_other(ids: dict[str, Any]):
    facts = [*turn_facts("b", 1, **ids), *turn_facts("a", 2, **ids), *turn_facts("c", 3, **ids)]
    state = project(facts)
    assert [found for _, found in texts(state)] == [
        *(["Ask b"], ["Answer"], ["Ask a"], ["Answer"], ["Ask c"], ["Answer"])
    ]
    counts = state.hydration
    assert (counts.status, counts.event_count, counts.dropped, codes(state)) == ("live", 18, 0, [])
    assert_any_order(facts, 30)
    live = Projection(THREAD)
    live.apply_all(facts)
    assert encode_state(live.state) == encode_state(state)
