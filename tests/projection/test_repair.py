"""Snapshots in the stream: they stand in for what is missing and take nothing else away."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact, read_fact, to_ui_events, write_fact
from factwire.projection import ProjectionState
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


def _as_foreign_ui(*facts: Fact) -> list[dict[str, Any]]:
    """The UI events of facts as another maker has them, who knows nothing of our facts."""
    written = [write_fact(event, "ui") for fact in facts for event in to_ui_events(fact)]
    return [
        {name: value for name, value in event.items() if name != "runtimeFact"} for event in written
    ]


def _project_ui(events: list[dict[str, Any]]) -> ProjectionState:
    return project_facts(*map(read_fact, events))


_PHASES = st.sampled_from([None, "hydrating", "unknown", "completed"])


@pytest.mark.requirement("projection.repair.window-of-ui")
@given(
    gap=st.booleans(),
    is_open=st.booleans(),
    answers=st.lists(st.sampled_from("abcd"), unique=True, min_size=1),
    carried=st.lists(st.sampled_from("abcdxyz"), unique=True),
    phase=_PHASES,
    is_numbered=st.booleans(),
)
def test_a_window_of_another_ui_takes_nothing_back_and_ends_nothing(
    *,
    gap: bool,
    is_open: bool,
    answers: list[str],
    carried: list[str],
    phase: str | None,
    is_numbered: bool,
):
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("tool.started", **TURN, toolCallId="call")]
    tell.next += 2 if gap else 0
    facts += [
        tell("model.completed", **TURN, messageId=name, text=f"said {name}") for name in answers
    ]
    if is_open:
        facts.append(tell("model.delta", **TURN, messageId="open", delta="still"))
    rows = [row(name, f"said {name} in full") for name in carried]
    rows += [row("open", "cut")] if is_open else []
    window = {
        "type": "messages.snapshot",
        "id": "window",
        "threadId": "thread",
        "payload": {"messages": rows},
    }
    window |= {} if phase is None else {"phase": phase}
    window |= {"sequence": tell.next} if is_numbered else {}
    events = _as_foreign_ui(*facts)
    before, after = _project_ui(events), _project_ui([*events, window])
    shown = {message.message_id: as_json(message) for message in after.messages}
    existing = {message.message_id: as_json(message) for message in before.messages}
    assert existing.keys() <= shown.keys()
    # What comes after a gap may be held.
    assert gap or shown.keys() == existing.keys() | set(carried)
    assert [name for name in shown if name in existing] == list(existing)
    for name, message in existing.items():
        if name in carried and phase != "hydrating":
            message["parts"][0]["text"] = f"said {name} in full"
        assert shown[name] == message
    assert after.hydration.status == before.hydration.status
    assert after.hydration.reasons == before.hydration.reasons
    assert after.hydration.gaps == before.hydration.gaps
    assert (after.tools, after.runtime.status) == (before.tools, before.runtime.status)


@pytest.mark.requirement("projection.repair.window-of-ui")
@pytest.mark.parametrize(
    ("carried", "shown"),
    [
        (["x"], ["x", "a", "b", "c"]),
        (["x", "b"], ["a", "x", "b", "c"]),
        (["b", "x"], ["a", "b", "x", "c"]),
        (["x", "a", "y", "c", "z"], ["x", "a", "y", "b", "c", "z"]),
        ([], ["a", "b", "c"]),
    ],
)
def test_messages_of_another_ui_stand_beside_those_that_they_name(
    carried: list[str], shown: list[str]
):
    tell = FactMaker()
    facts = [tell("model.completed", **TURN, messageId=name, text=name) for name in "abc"]
    rows = [row(name, name) for name in carried]
    window = {"type": "messages.snapshot", "threadId": "thread", "payload": {"messages": rows}}
    state = _project_ui([*_as_foreign_ui(*facts), window])
    assert [message.message_id for message in state.messages] == shown


@pytest.mark.requirement("projection.repair.window-of-ui")
@pytest.mark.parametrize("states", [{"phase": "reconciling"}, {"payload": {"toSequence": 2}}])
def test_messages_of_another_ui_that_are_all_there_are_take_absent_ones_back(
    states: dict[str, Any],
):
    tell = FactMaker()
    facts = [tell("model.completed", **TURN, messageId=name, text=name) for name in "ab"]
    payload = {"messages": [row("b", "b")], **states.get("payload", {})}
    whole = {
        "type": "messages.snapshot",
        "threadId": "thread",
        "sequence": 3,
        **states,
        "payload": payload,
    }
    state = _project_ui([*_as_foreign_ui(*facts), whole])
    assert texts(state) == [("assistant", ["b"])]


@pytest.mark.requirement("projection.repair.window-of-ui")
def test_a_fork_that_another_ui_shows_keeps_calls_and_artifacts_of_its_parent():
    tell = FactMaker()
    call = {"toolCallId": "call", "toolName": "read", "state": "output-available"}
    parts = [{"type": "text", "partId": "p", "messageId": "old", "text": "then", "state": "final"}]
    message = {"messageId": "old", "role": "user", "status": "final", "parts": parts}
    window = tell(
        "history.window.loaded",
        originThreadId="parent",
        messages=[message],
        toolCalls=[call],
        artifacts=[{"artifactId": "art"}],
    )
    states = project_facts(window), _project_ui(_as_foreign_ui(window))
    views = [
        msgspec.json.encode((state.messages, state.tools, state.artifacts), enc_hook=str)
        for state in states
    ]
    assert views[0] == views[1]
    assert [list(states[0].tools), texts(states[0])] == [["call"], [("user", ["then"])]]


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
