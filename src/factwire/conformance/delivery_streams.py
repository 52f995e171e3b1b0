"""The streams that deliveries are made of: the fixtures, and two that are too long to be one.

A stream can be changed by facts that are put between its own; its sequences are then counted anew.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from factwire.conformance.case import Wire
from factwire.conformance.fact_account import class_of, id_in
from factwire.facts import Fixture

LATE_FACTS: Final = 1_250
"""How many facts come before one that is late: more than any window of a live projection."""

_UNPLAIN: Final = (
    *("stream.", "snapshot.", "messages.", "history.", "state.", "thread.", "queue."),
    *("output.", "channel.", "worker."),
)


class DeliveredStream(msgspec.Struct, frozen=True, kw_only=True):
    """A complete stream of facts of one screen, in the order in which they happened. A plain one
    has no holes, no snapshots and nothing else that depends on how it is delivered.
    """

    name: str
    events: list[Wire]
    is_plain: bool
    thread_id: str | None = None


def fixture_streams(fixtures: Iterable[Fixture]) -> tuple[DeliveredStream, ...]:
    """The fixtures that begin at the beginning."""
    return tuple(
        to_stream(fixture.id, fixture.events)
        for fixture in fixtures
        if fixture.initial_read_model is None
    )


def to_stream(name: str, events: Sequence[Wire]) -> DeliveredStream:
    """Facts as a stream. The snapshot that ends a turn carries nothing, and is left out."""
    kept = [event for event in events if not _is_empty_snapshot(event)]
    thread = next((id_in(event, "threadId") for event in kept), None)
    return DeliveredStream(
        name=name, events=kept, is_plain=_is_plain(kept, thread), thread_id=thread
    )


def _is_empty_snapshot(event: Wire) -> bool:
    return class_of(event) == "snapshot.updated" and not event.get("payload")


def _is_plain(events: Sequence[Wire], thread: str | None) -> bool:
    sequences: list[Any] = [event.get("sequence") for event in events]
    whole = sequences == list(range(1, len(events) + 1))
    own = all(id_in(event, "threadId") == thread for event in events)
    return whole and own and not any(class_of(event).startswith(_UNPLAIN) for event in events)


def insert_after(
    events: Sequence[Wire], place: int, event_class: str, payload: Wire, **ids: Any
) -> tuple[list[Wire], Wire]:
    """The stream with a fact behind the one at a place, counted anew, and that fact."""
    before = events[place]
    made = {
        "id": f"{before['id']}-{event_class}-{place}",
        "kind": "state",
        "status": _STATUSES.get(event_class.rpartition(".")[2], "pending"),
        "title": event_class,
        "createdAt": before["createdAt"],
        "schemaVersion": before.get("schemaVersion"),
        "runtimeId": before.get("runtimeId"),
        "sequence": 0,
        "eventClass": event_class,
        "sessionId": before.get("sessionId"),
        "threadId": before.get("threadId"),
        "turnId": "trn_child" if event_class.startswith("turn.") else None,
        **ids,
        "payload": payload,
    }
    made = {key: value for key, value in made.items() if value is not None}
    numbered = renumber([*events[: place + 1], made, *events[place + 1 :]])
    return numbered, numbered[place + 1]


_STATUSES: Final = {
    "started": "running",
    "completed": "completed",
    "failed": "failed",
    "canceled": "canceled",
    "resolved": "completed",
}


def renumber(events: Sequence[Wire]) -> list[Wire]:
    """The same facts with sequences that rise by one in each thread, from one on."""
    last: dict[str | None, int] = {}
    numbered: list[Wire] = []
    for event in events:
        thread = id_in(event, "threadId")
        last[thread] = last.get(thread, 0) + 1
        numbered.append({**event, "sequence": last[thread]})
    return numbered


def _build_event(place: int, event_class: str, status: str, **fields: Any) -> Wire:
    return {
        "id": f"long-{place:05}",
        "kind": "model" if event_class.startswith("model.") else "state",
        "status": status,
        "title": event_class,
        "createdAt": f"2026-06-10T09:{place // 60 % 60:02}:{place % 60:02}.000Z",
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "edge-local",
        "sequence": place,
        "eventClass": event_class,
        "sessionId": "ses_long",
        "threadId": "thr_long",
        "turnId": "trn_1",
        **fields,
    }


def _build_turn(first: int, turn: str, run: str, pieces: int) -> list[Wire]:
    ids = {"turnId": turn, "runId": run}
    texts = [f"{number} " for number in range(pieces)]
    message = {**ids, "messageId": f"msg_{turn}"}
    rows: list[tuple[str, str, Wire]] = [
        ("turn.submitted", "pending", {**ids, "payload": {"prompt": f"Count, {turn}."}}),
        ("turn.started", "running", ids),
        *(("model.delta", "running", {**message, "payload": {"delta": text}}) for text in texts),
        ("model.completed", "completed", {**message, "payload": {"text": "".join(texts)}}),
        ("turn.completed", "completed", ids),
    ]
    return [
        _build_event(first + place, name, status, **fields)
        for place, (name, status, fields) in enumerate(rows)
    ]


def build_late_stream() -> DeliveredStream:
    """A turn so long that its first fact, if it comes last, is late by more than a window."""
    events = _build_turn(1, "trn_1", "run_1", LATE_FACTS)
    return DeliveredStream(name="long", events=events, is_plain=True, thread_id="thr_long")


def insert_beside_runs(events: Sequence[Wire]) -> list[Wire]:
    """The stream with facts of its thread behind some of its own, which are of no run and count
    from one on by themselves.
    """
    changed: list[Wire] = []
    count = 0
    for place, event in enumerate(events):
        changed.append(event)
        if place % 3 == 0:
            count += 1
            artifact = {"artifactId": f"art_{count}", "payload": {"title": f"Artifact {count}"}}
            made = _build_event(count, "artifact.created", "completed", kind="draft", **artifact)
            at = event["createdAt"].replace(".000Z", ".500Z")
            changed.append({**made, "id": f"beside-{count}", "createdAt": at})
            del changed[-1]["turnId"]
    return changed


def build_two_runs() -> DeliveredStream:
    """Two runs of a thread, each of which counts its facts from one on."""
    second = [
        {
            **event,
            "id": f"second-{event['id']}",
            "createdAt": f"2026-06-11{event['createdAt'][10:]}",
        }
        for event in _build_turn(1, "trn_2", "run_2", 3)
    ]
    events = [*_build_turn(1, "trn_1", "run_1", 3), *second]
    return DeliveredStream(name="two runs", events=events, is_plain=False, thread_id="thr_long")
