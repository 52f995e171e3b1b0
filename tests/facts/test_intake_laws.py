"""Intake: what can be mended is mended, what cannot is refused, and neither leaves a trace."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    Fact,
    FactError,
    Intake,
    InvalidFacts,
    LifecycleError,
    UnreadableInput,
    decode_fact,
    encode_fact,
    intake,
    read_fact,
)
from factwire.facts.limits import PAYLOAD_CHARACTERS
from tests.facts.samples import complete, runtime_event, wire, without

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.requirement("intake.mends")
def test_a_fact_without_fault_is_stored_as_it_is():
    value = complete("tool.started")
    taken = Intake().feed(json.dumps(value))
    assert taken.fact == read_fact(value)
    assert taken.data == encode_fact(taken.fact)
    assert (taken.notes, taken.blobs, taken.violations) == ((), (), ())


@pytest.mark.requirement("intake.mends")
def test_a_big_payload_is_spilled_after_it_was_redacted():
    text = f"{SECRET} " + "word " * PAYLOAD_CHARACTERS
    taken = Intake().feed(complete("tool.progress", payload={"output": text}))
    assert len(taken.data) <= PAYLOAD_CHARACTERS
    assert [note.event_class for note in taken.notes] == ["output.redacted", "output.spilled"]
    (blob,) = taken.blobs
    assert SECRET.encode() not in taken.data + blob.content
    assert all(SECRET.encode() not in encode_fact(note) for note in taken.notes)
    assert blob.content.startswith(b"[redacted] word")


@pytest.mark.requirement("intake.mends")
def test_an_unknown_class_is_taken():
    assert Intake().feed(wire("never.heard")).fact.event_class == "never.heard"


@pytest.mark.requirement("intake.mends")
def test_what_is_stored_can_be_read_again():
    taken = Intake(shape="runtime-event").feed(runtime_event("run.status", payload={"a": 1}))
    assert decode_fact(taken.data, "facts") == taken.fact


@pytest.mark.requirement("intake.refuses")
@pytest.mark.parametrize(
    ("item", "error"),
    [
        ("{", UnreadableInput),
        (without(complete("run.status"), "title"), InvalidFacts),
        (wire("tool.started"), InvalidFacts),
        (wire("turn.done"), InvalidFacts),
        (complete("run.status", refIds=["/etc/passwd"]), InvalidFacts),
        (complete("tool.result"), LifecycleError),
    ],
)
def test_what_cannot_be_mended_is_refused_without_a_trace(item: Any, error: type[FactError]):
    entry = Intake()
    with pytest.raises(error):
        entry.feed(item)
    started = complete("tool.started", 1)
    assert entry.feed(started).data == Intake().feed(started).data


@pytest.mark.requirement("intake.refuses")
def test_collecting_takes_a_violation_and_says_so():
    taken = Intake("collect").feed(complete("tool.result"))
    assert [violation.code for violation in taken.violations] == ["tool_result_without_start"]


PIECES = ["model.delta", "reasoning.delta", "tool.output.delta", "command.output", "text.delta"]


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    """Pieces of texts and what stands between them, most of them alike, some of them faulty."""
    name = draw(st.sampled_from([*PIECES, *PIECES, "tool.started", "turn.completed"]))
    ids = {
        "threadId": "thread_1",
        "turnId": "turn_1",
        "messageId": "message_1",
        "toolCallId": "call_1",
    }
    kept = {key: value for key, value in ids.items() if draw(st.integers(0, 4))}
    text = draw(st.sampled_from(["a", "Hello ", SECRET[:9], SECRET[9:], SECRET, "", None, 7]))
    payload: dict[str, Any] = {"delta": text, **draw(st.sampled_from([{}, {}, {"ref": "r"}]))}
    more = draw(st.sampled_from([{}, {}, {}, {"detail": SECRET}]))
    build = draw(st.sampled_from([wire, wire, runtime_event]))
    return build(name, draw(st.integers(1, 30)), **kept, payload=payload, **more)


def outcomes(stream: list[dict[str, Any]]) -> list[object]:
    entry = Intake("collect")
    found: list[object] = []
    for item in stream:
        try:
            found.append(entry.feed(item))
        except FactError as error:
            found.append((type(error), str(error)))
    return found


def never_grows(_: Fact) -> None:
    """What `delta_pattern_of` gives when there is no short way."""


@pytest.mark.requirement("intake.refuses")
@given(st.lists(items(), max_size=12))
def test_the_short_way_for_growing_text_is_the_long_way(stream: list[dict[str, Any]]):
    short = outcomes(stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "delta_pattern_of", never_grows)
        assert outcomes(stream) == short


@pytest.mark.requirement("intake.refuses")
def test_a_runtime_event_without_its_thread_is_refused_in_the_middle_of_a_text():
    entry = Intake()
    payload = {"messageId": "m1", "delta": "a"}
    entry.feed(runtime_event("model.delta", 1, threadId="t", turnId="u", payload=payload))
    with pytest.raises(InvalidFacts) as caught:
        entry.feed(runtime_event("model.delta", 2, turnId="u", payload=payload))
    assert [issue.path for issue in caught.value.issues] == ["$.threadId"]
