"""Snapshots in the stream: they stand in for what is missing and take nothing else away."""

from typing import Any

import pytest

from tests.projection.fact_maker import FactMaker, as_json, part_type, project_facts, texts

TURN = {"turnId": "turn"}
PART = {"turnId": "turn", "messageId": "m", "partId": "p"}


def row(message_id: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"messageId": message_id, "role": "assistant", "text": text, **fields}


@pytest.mark.requirement("projection.repair.messages")
def test_a_snapshot_of_messages_replaces_named_ones_and_takes_absent_ones_back():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **TURN, messageId="a", text="old a"),
        tell("model.completed", **TURN, messageId="b", text="old b"),
        tell("messages.snapshot", messages=[row("a", "new a"), row("c", "new c", role="user")]),
    )
    assert texts(state) == [("assistant", ["new a"]), ("user", ["new c"])]


@pytest.mark.requirement("projection.repair.messages")
def test_messages_that_are_newer_than_a_snapshot_stay():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("model.completed", sequence=3, **TURN, messageId="early", text="early"),
        tell("model.completed", **TURN, messageId="late", text="late"),
        tell("messages.snapshot", messages=[row("a", "a")], toSequence=3),
    )
    assert texts(state) == [("assistant", ["a"]), ("assistant", ["late"])]


@pytest.mark.requirement("projection.repair.messages")
def test_tools_and_cards_of_a_message_stay_in_their_places():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **PART, text="before"),
        tell("tool.started", **TURN, messageId="m", toolCallId="c"),
        tell("model.completed", **{**PART, "partId": "q"}, text="after"),
        tell(
            "messages.snapshot",
            messages=[
                {
                    "messageId": "m",
                    "parts": [{"partId": "p", "text": "BEFORE"}, {"partId": "q", "text": "AFTER"}],
                }
            ],
        ),
        tell("tool.result", **TURN, messageId="m", toolCallId="c"),
    )
    parts = state.messages[0].parts
    assert [part_type(part) for part in parts] == ["text", "tool-preview", "text"]
    assert texts(state) == [("assistant", ["BEFORE", "AFTER"])]
    assert as_json(parts[1])["status"] == "output-available"


@pytest.mark.requirement("projection.repair.messages")
def test_a_message_that_the_snapshot_calls_open_goes_on():
    tell = FactMaker()
    ids = {"turnId": "turn", "messageId": "m"}
    state = project_facts(
        tell("turn.started", **TURN),
        tell(
            "messages.snapshot",
            sequence=5,
            messages=[row("m", "Hello", turnId="turn", status="streaming")],
        ),
        tell("model.delta", **ids, delta=" world"),
        tell("model.completed", **ids, text="Hello world"),
    )
    assert texts(state) == [("assistant", ["Hello world"])]
    assert state.messages[0].status == "final"


@pytest.mark.requirement("projection.repair.messages")
def test_rows_that_name_the_same_message_are_one_message():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **TURN, messageId="m", toolCallId="c"),
        tell("messages.snapshot", messages=[row("m", "one"), row("m", "two")]),
        tell("tool.result", **TURN, messageId="m", toolCallId="c"),
    )
    assert texts(state) == [("assistant", ["two"])]


@pytest.mark.requirement("projection.repair.messages")
def test_rows_that_name_no_message_are_messages_of_their_own():
    rows = [{"role": "user", "text": "one"}, {"text": "two"}]
    state = project_facts(FactMaker()("messages.snapshot", messages=rows))
    assert texts(state) == [("user", ["one"]), ("assistant", ["two"])]


@pytest.mark.requirement("projection.repair.window")
def test_older_messages_that_were_loaded_go_before_those_that_are_there():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **PART, delta="now"),
        tell("history.window.loaded", messages=[row("old", "then"), row("m", "ignored")]),
        tell("model.delta", **PART, delta=" on"),
    )
    assert texts(state) == [("assistant", ["then"]), ("assistant", ["now on"])]


@pytest.mark.requirement("projection.repair.rollback")
def test_a_rollback_takes_back_what_was_said_after_its_place():
    tell = FactMaker()
    state = project_facts(
        tell("model.completed", **TURN, messageId="a", text="stays"),
        tell("model.completed", **TURN, messageId="b", text="goes"),
        tell("history.rollback.completed", toSequence=1),
    )
    assert [message.status for message in state.messages] == ["final", "retracted"]
    assert texts(state) == [("assistant", ["stays"]), ("assistant", [])]


@pytest.mark.requirement("projection.repair.changes")
@pytest.mark.parametrize(
    "name", ["history.window.loaded", "messages.snapshot", "history.rollback.completed"]
)
def test_what_waits_for_a_repair_is_found_again_when_messages_moved(name: str):
    tell = FactMaker()
    project_facts(
        tell("stream.gap.detected"),
        tell("model.completed", **PART, text="one"),
        tell("model.completed", **TURN, messageId="n", partId="p", text="two"),
        tell(name, messages=[row("old", "old")], retractedMessageIds=["m"]),
        tell("stream.repair.completed"),
    )


@pytest.mark.requirement("projection.repair.changes")
def test_what_waits_for_a_repair_may_be_taken_back_meanwhile():
    tell = FactMaker()
    state = project_facts(
        tell("stream.gap.detected"),
        tell("model.completed", **PART, text="one"),
        tell("history.rollback.completed", retractedMessageIds=["m"]),
        tell("stream.repair.completed"),
    )
    assert texts(state) == [("assistant", [])]


@pytest.mark.requirement("projection.repair.messages")
@pytest.mark.parametrize(
    "rows",
    [
        None,
        5,
        "text",
        {},
        [None, 5, "x"],
        [{}],
        [{"messageId": 5}],
        [{"parts": 5}],
        [{"parts": [{"type": "image", "text": "x"}, {"text": 5}, None]}],
    ],
    ids=repr,
)
def test_rows_that_say_nothing_are_left_out(rows: Any):
    tell = FactMaker()
    state = project_facts(tell("turn.started", **TURN), tell("messages.snapshot", messages=rows))
    assert [text for _, found in texts(state) for text in found] == []


@pytest.mark.requirement("projection.repair.messages")
@pytest.mark.parametrize(
    ("end", "row", "status"),
    [
        ("turn.canceled", {}, "interrupted"),
        ("turn.failed", {}, "interrupted"),
        ("turn.canceled", {"status": "final"}, "final"),
        ("turn.completed", {}, "final"),
    ],
)
def test_a_snapshot_that_repeats_a_text_that_was_cut_off_does_not_make_it_whole(
    end: str, row: dict[str, Any], status: str
):
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", turnId="t"),
        tell("model.delta", turnId="t", messageId="m", delta="Half"),
        tell(end, turnId="t"),
        tell("messages.snapshot", messages=[{"messageId": "m", "text": "Half", **row}]),
    )
    assert state.messages[0].status == status
