"""The whole way of a fact: read, check, verify, redact, spill, encode."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import factwire.facts.intake as intake_module
from factwire.facts import (
    Intake,
    InvalidFacts,
    LifecycleError,
    UnreadableInput,
    decode_fact,
    inspect_stream,
    is_valid,
    status_of,
)

SECRET = "ghp_" + "a1B2" * 9


def event(number: int, event_class: str = "model.delta", **fields: Any) -> dict[str, Any]:
    return {
        "id": f"evt_{number}",
        "kind": "model",
        "status": status_of(event_class),
        "title": "Answer",
        "createdAt": "2026-06-10T00:00:00Z",
        "schemaVersion": "v",
        "runtimeId": "r",
        "sequence": number,
        "eventClass": event_class,
        "threadId": "thr_1",
        "turnId": "trn_1",
        **fields,
    }


def delta(number: int, text: str, **payload: Any) -> dict[str, Any]:
    return event(number, payload={"messageId": "msg_1", "delta": text, **payload})


def test_what_was_taken_is_what_is_stored():
    taken = Intake().feed(delta(1, "Hello"))
    assert decode_fact(taken.data) == taken.fact
    assert taken.notes == ()
    assert taken.blobs == ()


def test_a_secret_is_mended_and_not_refused():
    taken = Intake().feed(event(1, "tool.args", toolCallId="c", payload={"args": {"k": SECRET}}))
    assert SECRET.encode() not in taken.data
    assert [note.event_class for note in taken.notes] == ["output.redacted"]


def test_a_big_payload_is_mended_and_not_refused():
    intake = Intake()
    taken = intake.feed(
        event(1, "tool.started", toolCallId="c", payload={"toolName": "t", "log": "x" * 90_000})
    )
    assert len(taken.data) < 32_000
    assert [note.event_class for note in taken.notes] == ["output.spilled"]
    assert taken.blobs[0].content == b"x" * 90_000


def test_a_big_value_with_a_secret_is_redacted_before_it_is_spilled():
    intake = Intake()
    log = "x" * 50_000 + " " + SECRET + " " + "y" * 50_000
    taken = intake.feed(event(1, "tool.started", toolCallId="c", payload={"log": log}))
    assert SECRET.encode() not in taken.blobs[0].content
    assert [note.event_class for note in taken.notes] == ["output.redacted", "output.spilled"]


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (b"{", UnreadableInput),
        (b"\xff", UnreadableInput),
        (b"[]", InvalidFacts),
        (event(1, "tool.started"), InvalidFacts),
        (event(1, "turn.done"), InvalidFacts),
        (event(1, "tool.result", toolCallId="c"), LifecycleError),
        (event(1, refIds=["/etc/passwd"]), InvalidFacts),
    ],
)
def test_a_refused_fact_raises_a_documented_error(item: Any, error: type[Exception]):
    with pytest.raises(error):
        Intake().feed(item)


def test_a_refused_fact_leaves_no_trace():
    intake = Intake()
    intake.feed(delta(1, "Hello"))
    with pytest.raises(LifecycleError):
        intake.feed(delta(1, "Hello"))
    with pytest.raises(InvalidFacts):
        intake.feed(event(2, "tool.started"))
    assert intake.feed(delta(2, " world")).fact.payload["delta"] == " world"


def test_collecting_takes_a_violation_and_names_it():
    intake = Intake("collect")
    taken = intake.feed(event(1, "tool.result", toolCallId="c"))
    assert [violation.code for violation in taken.violations] == ["tool_result_without_start"]


@pytest.mark.requirement("redaction.split-deltas")
def test_a_secret_split_over_the_pieces_of_a_growing_text_is_hidden():
    intake = Intake()
    texts = ["One ", "two ", "three ", SECRET[:6], SECRET[6:20], SECRET[20:], " four"]
    taken = [intake.feed(delta(number, text)) for number, text in enumerate(texts, start=1)]
    end = intake.feed(event(8, "model.completed", payload={"messageId": "msg_1"}))
    shown = "".join(item.fact.payload["delta"] for item in taken)
    assert shown + end.fact.payload.get("delta", "") == "One two three [redacted] four"


def test_a_growing_text_that_changes_in_anything_else_is_looked_at_anew():
    intake = Intake()
    intake.feed(delta(1, "One "))
    intake.feed(delta(2, "two "))
    titled = intake.feed({**delta(3, "three "), "title": f"with {SECRET}"})
    assert titled.fact.title == "with [redacted]"
    keyed = intake.feed(delta(4, "four ", apiKey="k-4f7d1c"))
    assert keyed.fact.payload["apiKey"] == "[redacted]"
    with pytest.raises(InvalidFacts):
        intake.feed(event(5, payload={"messageId": "msg_1", "delta": 5}))
    with pytest.raises(LifecycleError):
        intake.feed(delta(2, "again "))


words = st.text(alphabet="ab sk-_ghp:=@/.'\nA1", max_size=12)


@given(st.lists(st.tuples(words, st.sampled_from(["msg_1", "msg_2"])), max_size=30))
def test_intake_fact_by_fact_shows_what_two_intakes_show(pieces: list[tuple[str, str]]):
    """The short way of growing texts must not show anything that the long way hides."""
    events = [
        event(number, payload={"messageId": message, "delta": text})
        for number, (text, message) in enumerate(pieces, start=1)
    ]
    short, long = Intake(), Intake()
    for item in events:
        via_growth = short.feed(msgspec.json.encode(item))
        long._pattern = None
        assert via_growth.data == long.feed(item).data


def test_what_intake_takes_is_valid():
    intake = Intake()
    taken = [intake.feed(delta(n, f"piece {n} {SECRET if n == 3 else ''}")) for n in range(1, 6)]
    assert is_valid(inspect_stream([item.data for item in taken]))


def test_a_piece_in_another_thread_is_looked_at_anew():
    intake = Intake(shape="runtime-event")
    piece = {
        "schemaVersion": "v",
        "runtimeId": "r",
        "sessionId": "s",
        "timestamp": "2026-06-10T00:00:00Z",
        "type": "model.delta",
        "turnId": "trn_1",
        "payload": {"messageId": "msg_1", "delta": "x "},
    }
    for number in (1, 2):
        intake.feed({**piece, "threadId": "thr_1", "eventId": f"e{number}", "sequence": number})
    with pytest.raises(InvalidFacts):
        intake.feed({**piece, "eventId": "e3", "sequence": 3})


def test_events_without_ids_are_told_apart_in_bounded_memory(monkeypatch: pytest.MonkeyPatch):
    """After as many different events as are remembered the count begins anew; no id comes twice,
    and the same stream gets the same ids.
    """
    monkeypatch.setattr(intake_module, "IDENTITY_WINDOW", 3)
    texts = ["ha", "ha", "b", "c", "ha", "d", "ha", "ha", "b"]
    values = [
        {"type": "runtime.warning", "message": text, "createdAt": "2026-06-10T00:00:00Z"}
        for text in texts
    ]
    runs = [[intake.feed(value).fact.id for value in values] for intake in (Intake(), Intake())]
    rounds = [":1", ":2", ":1", ":1", ":3", ":2:1", ":2:1", ":2:2", ":2:1"]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(texts)
    bare = [name.partition(":")[0] for name in runs[0]]
    assert [name[len(own) :] for name, own in zip(runs[0], bare, strict=True)] == rounds
