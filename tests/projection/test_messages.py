"""Messages: parts that are never doubled, never mixed up and never left open."""

from typing import Any

import pytest

from factwire.projection import ProjectionState
from tests.projection.fact_maker import FactMaker, as_json, part_type, project_facts, texts

TURN = {"turnId": "turn"}
MESSAGE = {"turnId": "turn", "messageId": "m"}
PART = {**MESSAGE, "partId": "p"}


def states(state: ProjectionState) -> list[tuple[str, list[str]]]:
    """The status of every message, and the states of its parts."""
    rows: list[dict[str, Any]] = as_json(state.messages)
    return [(row["status"], [part.get("state", "") for part in row["parts"]]) for row in rows]


@pytest.mark.requirement("projection.message.key")
def test_the_same_message_and_part_ids_in_two_turns_are_two_parts():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **PART, delta="one"),
        tell("model.delta", **{**PART, "turnId": "other"}, delta="two"),
        tell("model.completed", **PART, text="one!"),
    )
    assert texts(state) == [("assistant", ["one!"]), ("assistant", ["two"])]


@pytest.mark.requirement("projection.message.key")
@pytest.mark.parametrize(
    "spelling", [("turnId", "messageId", "partId"), ("turn_id", "message_id", "part_id")]
)
def test_ids_count_in_a_payload_as_they_do_at_the_top(spelling: tuple[str, str, str]):
    tell = FactMaker()
    payload = [("one", "a"), ("two", "b"), ("one", "c")]
    facts = [
        tell(
            "model.delta",
            payload={**dict(zip(spelling, (turn, "m", "p"), strict=True)), "delta": text},
        )
        for turn, text in payload
    ]
    assert texts(project_facts(*facts)) == [("assistant", ["ac"]), ("assistant", ["b"])]


@pytest.mark.requirement("projection.message.key")
def test_parts_that_are_streamed_side_by_side_are_not_mixed_up():
    tell = FactMaker()
    facts = [
        tell("model.delta", **MESSAGE, partId=part, delta=text)
        for part, text in [("p", "a"), ("q", "1"), ("p", "b"), ("q", "2")]
    ]
    assert texts(project_facts(*facts)) == [("assistant", ["ab", "12"])]


@pytest.mark.requirement("projection.message.parts")
def test_parts_stand_in_the_order_of_their_first_facts():
    tell = FactMaker()
    state = project_facts(
        tell("reasoning.delta", **MESSAGE, partId="r", delta="x"),
        tell("model.delta", **PART, delta="text"),
        tell("tool.started", **MESSAGE, toolCallId="c"),
        tell("artifact.created", **MESSAGE, artifactId="a"),
        tell("evidence.changed", **MESSAGE, evidenceId="e"),
        tell("runtime.error", **MESSAGE, code="broken", message="It broke."),
        tell("model.delta", **MESSAGE, partId="q", delta="more"),
    )
    assert [part_type(part) for part in state.messages[0].parts] == [
        "reasoning",
        "text",
        "tool-preview",
        "artifact-card",
        "evidence-citation",
        "diagnostic-ref",
        "text",
    ]


COLLIDING: dict[str, tuple[str, dict[str, Any]]] = {
    "tool:x": ("tool.started", {"toolCallId": "x"}),
    "artifact:x": ("artifact.created", {"artifactId": "x", "versionId": "v1"}),
    "evidence:x": ("evidence.changed", {"evidenceId": "x", "verdict": "pass"}),
    "diagnostic:x": ("runtime.error", {"id": "x", "code": "c"}),
    "m:reasoning": ("reasoning.summary", {"summary": "s"}),
    "p": ("reasoning.summary", {"partId": "p", "summary": "s"}),
}


@pytest.mark.requirement("projection.message.collision")
@pytest.mark.parametrize("part_id", COLLIDING)
@pytest.mark.parametrize("text_first", [True, False])
def test_a_part_id_that_another_kind_of_part_has_takes_nothing_over(part_id: str, text_first: bool):
    tell = FactMaker()
    name, fields = COLLIDING[part_id]

    def text():
        return tell("model.delta", **MESSAGE, partId=part_id, delta="text")

    def other():
        return tell(name, **{**MESSAGE, **fields})

    facts = [text(), other()] if text_first else [other(), text()]
    ends = [tell("tool.result", **MESSAGE, toolCallId="x")] if name == "tool.started" else []
    state = project_facts(
        *facts, *ends, tell("model.completed", **MESSAGE, partId=part_id, text="whole")
    )
    assert texts(state) == [("assistant", ["whole"])]
    assert len(state.messages[0].parts) == 2


@pytest.mark.requirement("projection.message.reopened")
def test_text_behind_a_final_text_is_the_messages_next_text():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **MESSAGE, delta="one"),
        tell("model.completed", **MESSAGE, text="one."),
        tell("model.delta", **MESSAGE, delta="two"),
        tell("model.completed", **MESSAGE, text="two."),
    )
    assert texts(state) == [("assistant", ["one.", "two."])]
    assert states(state) == [("final", ["final", "final"])]


@pytest.mark.requirement("projection.message.reopened")
def test_a_new_part_opens_a_message_again_that_was_final():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **PART, text="one"),
        tell("model.delta", **MESSAGE, partId="q", delta="two"),
    )
    assert states(state) == [("streaming", ["final", "streaming"])]


@pytest.mark.requirement("projection.message.turn-end")
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("turn.completed", "final"),
        ("run.finished", "final"),
        ("turn.failed", "interrupted"),
        ("run.failed", "interrupted"),
        ("turn.canceled", "interrupted"),
    ],
)
def test_the_end_of_a_turn_closes_what_it_left_open(end: str, expected: str):
    tell = FactMaker()
    state = project_facts(tell("model.delta", **PART, delta="cut"), tell(end, **TURN))
    assert states(state) == [(expected, [expected])]


@pytest.mark.requirement("projection.message.turn-end")
def test_a_second_part_that_was_open_is_closed_by_the_end_of_the_turn_too():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **PART, text="one"),
        tell("model.delta", **MESSAGE, partId="q", delta="cut"),
        tell("turn.canceled", **TURN),
    )
    assert states(state) == [("interrupted", ["final", "interrupted"])]


@pytest.mark.requirement("projection.message.turn-end")
def test_the_end_of_another_turn_closes_nothing():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **PART, delta="on"), tell("turn.completed", turnId="other")
    )
    assert states(state) == [("streaming", ["streaming"])]


@pytest.mark.requirement("projection.message.user")
@pytest.mark.parametrize(
    "payload",
    [{"prompt": "Hello"}, {"text": "Hello"}, {"input": [{"type": "text", "text": "Hello"}]}],
)
def test_what_the_user_asked_is_a_message_of_theirs(payload: dict[str, Any]):
    tell = FactMaker()
    state = project_facts(
        tell("turn.submitted", **TURN, payload=payload), tell("turn.started", **TURN)
    )
    assert texts(state) == [("user", ["Hello"])]
    assert states(state) == [("final", ["final"])]


@pytest.mark.requirement("projection.message.user")
def test_what_the_user_attached_is_kept_as_refs():
    asset = {"type": "asset", "ref": "blob:1", "bytes": "SECRETBYTES"}
    state = project_facts(
        FactMaker()("turn.submitted", **TURN, input=[asset, {"type": "text", "text": "x"}])
    )
    assert state.messages[0].input_refs == ["blob:1"]
    assert "SECRETBYTES" not in str(as_json(state.messages))


@pytest.mark.requirement("projection.message.optimistic")
def test_a_clients_own_id_is_replaced_by_the_runtimes():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", messageId="tmp", role="user", text="Hi"),
        tell("turn.submitted", **TURN, prompt="Hi", optimisticId="tmp", payload={"messageId": "m"}),
    )
    assert [(row.message_id, row.optimistic_id) for row in state.messages] == [("m", "tmp")]
    assert texts(state) == [("user", ["Hi"])]


@pytest.mark.requirement("projection.message.optimistic")
def test_a_clients_own_id_finds_the_message_that_replaced_it():
    tell = FactMaker()
    state = project_facts(
        tell("turn.submitted", **TURN, prompt="Hi", optimisticId="tmp", payload={"messageId": "m"}),
        tell("model.completed", **TURN, messageId="tmp", role="user", text="Hi"),
    )
    assert texts(state) == [("user", ["Hi"])]


@pytest.mark.requirement("projection.message.superseded")
def test_a_message_that_another_supersedes_is_taken_back():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **PART, text="first try"),
        tell("model.completed", **TURN, messageId="n", text="second try", supersedes=["m"]),
    )
    assert texts(state) == [("assistant", []), ("assistant", ["second try"])]
    assert [message.status for message in state.messages] == ["retracted", "final"]


@pytest.mark.requirement("projection.message.whole")
def test_a_delta_may_tell_the_whole_text_so_far():
    tell = FactMaker()
    facts = [tell("model.delta", **PART, text=text) for text in ("He", "Hello", "Help")]
    assert texts(project_facts(*facts)) == [("assistant", ["Help"])]


@pytest.mark.requirement("projection.message.whole")
def test_the_ui_names_of_text_mean_the_same():
    tell = FactMaker()
    state = project_facts(
        tell("text.delta", **PART, delta="He"), tell("text.final", **PART, text="Hello")
    )
    assert texts(state) == [("assistant", ["Hello"])]


@pytest.mark.requirement("projection.plan")
def test_a_plan_is_no_text_of_the_conversation():
    tell = FactMaker()
    action = {**TURN, "actionId": "a"}
    state = project_facts(
        tell("plan.delta", **TURN, delta="1. do"),
        tell("plan.final", **TURN, text="1. do it", steps=["do it"]),
        tell("action.required", **action, actionType="plan_decision"),
        tell("action.resolved", **action, decision="approve"),
    )
    assert state.messages == []
    assert as_json(state.plans["turn:plan"]) == {
        "planId": "turn:plan",
        "text": "1. do it",
        "state": "final",
        "turnId": "turn",
        "steps": ["do it"],
        "actionId": "a",
        "decision": "approve",
    }


@pytest.mark.requirement("projection.reasoning")
def test_reasoning_begins_anew_after_it_was_completed():
    tell = FactMaker()
    facts = [
        tell(f"reasoning.{name}", **MESSAGE, **fields)
        for name, fields in (
            ("delta", {"delta": "abc"}),
            ("completed", {"summary": "first"}),
            ("delta", {"delta": "de"}),
            ("summary", {"summary": "second"}),
        )
    ]
    parts: list[Any] = as_json(project_facts(*facts).messages[0].parts)
    found = [(part["summary"], part["characters"], part["state"]) for part in parts]
    assert found == [("first", 3, "final"), ("second", 2, "streaming")]


@pytest.mark.requirement("projection.reasoning")
def test_a_summary_may_be_streamed():
    tell = FactMaker()
    facts = [
        tell("reasoning.delta", **PART, payload={"delta": text, "kind": "summary"})
        for text in ("It ", "thought.")
    ]
    part: Any = project_facts(*facts).messages[0].parts[0]
    assert (str(part.summary), part.characters) == ("It thought.", 0)
