"""Facts told one after the other, and what a projection shows of them.

Whatever is shown here has been checked on the way: after every fact the changes bring a copy of the
last snapshot to the next one, the snapshot decodes, and a checkpoint can be taken of it.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from factwire.facts import Fact, decode_fact, kind_of, status_of
from factwire.facts.json_patch import JsonDocument
from factwire.projection import (
    Changes,
    Projection,
    ProjectionState,
    advance,
    decode_state,
    encode_state,
)

THREAD = "thread"

_TOP_LEVEL = frozenset(
    field.encode_name for field in msgspec.structs.fields(Fact) if field.encode_name
)


class FactMaker:
    """Makes facts of one thread, numbered as they are told.

    Fields of a fact go to its top level, all others into its payload.
    """

    def __init__(self, first: int = 1, thread: str = THREAD) -> None:
        self.next = first
        self.thread = thread

    def __call__(self, event_class: str, /, **fields: Any) -> Fact:
        sequence = fields.pop("sequence", self.next)
        self.next = sequence + 1 if sequence is not None else self.next
        payload = {name: fields.pop(name) for name in [*fields] if name not in _TOP_LEVEL}
        wire = {
            "id": f"{self.thread}-{sequence}",
            "kind": kind_of(event_class),
            "status": status_of(event_class),
            "title": event_class,
            "createdAt": f"2026-06-10T00:00:{sequence or 0:02}Z",
            "schemaVersion": "factwire-event/v0.1",
            "runtimeId": "runtime",
            "sessionId": "session",
            "threadId": self.thread,
            "eventClass": event_class,
            "sequence": sequence,
            **fields,
            "payload": {**payload, **fields.get("payload", {})},
        }
        return msgspec.convert(wire, Fact)


class WatchedProjection:
    """A projection with a copy of its state that only its changes keep up to date."""

    def __init__(self, projection: Projection | None = None) -> None:
        self.projection = projection or Projection(THREAD)
        self.copy = JsonDocument(msgspec.json.decode(self.projection.snapshot()))

    @property
    def state(self) -> ProjectionState:
        return self.projection.state

    def apply(self, fact: Fact) -> Changes:
        changes = self.projection.apply(fact)
        advance(self.copy, changes)
        self.check()
        return changes

    def check(self) -> None:
        snapshot = self.projection.snapshot()
        assert as_text(self.copy.root) == as_text(msgspec.json.decode(snapshot))
        assert encode_state(decode_state(snapshot)) == snapshot
        self.projection.checkpoint()


def as_text(value: object) -> bytes:
    """A value as JSON that is equal exactly when the value is: 1 is neither true nor 1.0."""
    return msgspec.json.encode(value, order="sorted")


def watch_facts(facts: Iterable[Fact], *, first: int | None = None) -> WatchedProjection:
    """A watched projection of these facts."""
    found = WatchedProjection(Projection(THREAD, first=first))
    for fact in facts:
        found.apply(fact)
    return found


def project_facts(*facts: Fact, first: int | None = None) -> ProjectionState:
    """The state that facts come to."""
    return watch_facts(facts, first=first).state


def codes(state: ProjectionState) -> list[str]:
    """The codes of all diagnostics, in order."""
    return [item.code for item in state.diagnostics.items.values()]


def texts(state: ProjectionState) -> list[tuple[str, list[str]]]:
    """Role and texts of every message: what a conversation reads."""
    return [
        (row["role"], [part["text"] for part in row["parts"] if part["type"] == "text"])
        for row in as_json(state.messages)
    ]


def part_type(part: Any) -> str:
    """The wire name of a part's type."""
    return msgspec.to_builtins(part, enc_hook=str)["type"]


def as_json(value: object) -> Any:
    """A part of a state as a client sees it."""
    return msgspec.to_builtins(value, enc_hook=str)


def copy_fact(fact: Fact) -> Fact:
    """The same fact, as it comes a second time over a wire."""
    return decode_fact(msgspec.json.encode(fact))
