"""The queue and the context: what waits, and what the model was given."""

from typing import Any

import pytest

from tests.projection.fact_maker import FactMaker, as_json, project_facts, texts

TURN = {"turnId": "turn"}


def waiting_turns(*facts: Any) -> list[tuple[str, str | None]]:
    state = project_facts(*facts)
    assert state.runtime.queued_turn_count == len(state.queue.turns)
    return [(turn.queued_turn_id, turn.prompt) for turn in state.queue.turns]


@pytest.mark.requirement("projection.queue")
def test_turns_come_go_and_move_one_by_one():
    tell = FactMaker()

    def change(key: str, **fields: Any):
        return tell("queue.changed", queuedTurnId=key, payload=fields)

    facts = [
        change("a", prompt="A"),
        change("b", prompt="B"),
        change("b", prompt="B", change="promoted"),
        change("a", prompt="A2"),
        change("b", change="removed"),
    ]
    assert waiting_turns(*facts[:2]) == [("a", "A"), ("b", "B")]
    assert waiting_turns(*facts[:3]) == [("b", "B"), ("a", "A")]
    assert waiting_turns(*facts[:4]) == [("b", "B"), ("a", "A2")]
    assert waiting_turns(*facts) == [("a", "A2")]


@pytest.mark.requirement("projection.queue")
def test_a_whole_list_replaces_the_one_before():
    tell = FactMaker()
    rows = [{"queuedTurnId": "x", "prompt": "X"}, {"id": "y", "text": "Y"}]
    facts = [
        tell("queue.changed", queuedTurnId="a", prompt="A"),
        tell("queue.changed", queuedTurns=rows),
    ]
    assert waiting_turns(*facts) == [("x", "X"), ("y", "Y")]
    assert waiting_turns(*facts, tell("queue.changed", queuedTurns=[])) == []


@pytest.mark.requirement("projection.queue")
@pytest.mark.parametrize("name", ["turn.submitted", "turn.started"])
def test_a_turn_that_starts_waits_no_longer(name: str):
    tell = FactMaker()
    facts = [
        tell("queue.changed", queuedTurnId="a", prompt="A"),
        tell("queue.changed", queuedTurnId="b", prompt="B"),
        tell(name, turnId="turn", queuedTurnId="a", payload={"prompt": "A"}),
    ]
    assert waiting_turns(*facts) == [("b", "B")]


@pytest.mark.requirement("projection.queue")
def test_text_for_the_running_turn_is_kept_as_such():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("queue.changed", **TURN, control="steer", text="to the left"),
    )
    assert [steer.text for steer in state.queue.steers] == ["to the left"]
    assert state.messages == []


@pytest.mark.requirement("projection.context.items")
def test_what_was_given_to_the_model_is_listed():
    tell = FactMaker()
    state = project_facts(
        tell("context.resolved", **TURN, payload={"kind": "files", "usagePercent": 12.5}),
        tell("context.failed", **TURN, failureCategory="missing", message="No such file"),
    )
    found = [(item.status, item.kind, item.failure_category) for item in state.context.items]
    assert found == [("resolved", "files", None), ("failed", None, "missing")]
    assert (state.context.status, state.context.usage_percent) == ("failed", 12.5)


@pytest.mark.requirement("projection.context.compaction")
def test_a_compaction_is_one_boundary_from_start_to_end():
    tell = FactMaker()
    state = project_facts(
        tell("context.compaction.started", **TURN, trigger="auto"),
        tell(
            "context.compaction.completed", **TURN, summary="Short.", tokensBefore=9, tokensAfter=1
        ),
        tell("history.compacted", **TURN, summary="Shorter."),
    )
    found = [(row.status, row.trigger, row.summary) for row in state.context.compactions]
    assert found == [("completed", "auto", "Shorter.")]
    assert state.context.tokens == 1
    assert len(state.timeline) == 1


STARTED, ENDED = "context.compaction.started", "context.compaction.completed"
FOLDED = "history.compacted"


@pytest.mark.requirement("projection.context.compaction")
@pytest.mark.parametrize(
    ("classes", "boundaries"),
    [
        ([ENDED, FOLDED], 1),
        ([FOLDED, ENDED], 1),
        ([STARTED, FOLDED, ENDED], 1),
        ([ENDED, FOLDED, ENDED, FOLDED], 2),
        ([ENDED, ENDED], 2),
        ([FOLDED, FOLDED], 2),
        ([STARTED, ENDED, STARTED, FOLDED], 2),
    ],
)
def test_two_classes_that_tell_the_same_end_are_one_boundary(classes: list[str], boundaries: int):
    tell = FactMaker()
    state = project_facts(*(tell(name, **TURN) for name in classes))
    assert len(state.context.compactions) == len(state.timeline) == boundaries


@pytest.mark.requirement("projection.context.compaction")
def test_compactions_with_ids_are_told_apart_by_them():
    tell = FactMaker()
    first = [tell(name, **TURN, compactionId="one") for name in (ENDED, FOLDED, FOLDED)]
    state = project_facts(*first, tell(FOLDED, **TURN, compactionId="two"))
    assert [row.compaction_id for row in state.context.compactions] == ["one", "two"]


@pytest.mark.requirement("projection.context.compaction")
def test_a_history_that_was_folded_in_another_turn_is_another_boundary():
    tell = FactMaker()
    state = project_facts(tell(ENDED, **TURN), tell(FOLDED, turnId="next"))
    assert len(state.context.compactions) == 2


@pytest.mark.requirement("projection.context.compaction")
def test_a_compaction_that_fails_says_so():
    tell = FactMaker()
    state = project_facts(
        tell("context.compaction.started", **TURN),
        tell("context.compaction.failed", **TURN, failureCategory="model"),
    )
    assert as_json(state.context.compactions)[0]["status"] == "failed"
    assert texts(state) == []
