"""Known: what a read model says of a thread, for a stream that goes on behind it.

Read models are made elsewhere. Only their names on the wire are read here, and rows that are not as
they should be say nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from factwire.facts.fact import Fact

_ENDED: Final = frozenset({"output-available", "output-error", "cancelled"})
"""States of calls that need no further fact."""


class Known:
    """A read model as a validator needs it."""

    def __init__(self, read_model: Mapping[str, Any]) -> None:
        self._model = read_model
        self._thread = _text(read_model.get("threadId"))
        cursor: object = read_model.get("eventCursor")
        self._cursor = cursor if type(cursor) is int else None

    def covers(self, fact: Fact) -> bool:
        """Whether a fact is one that the read model was made from."""
        if self._cursor is None or fact.sequence is None or fact.sequence > self._cursor:
            return False
        return fact.thread_id in (None, self._thread)

    def open(self) -> Iterator[tuple[str | None, str, str]]:
        """Turn, family and id of every call and request that is under way."""
        active = _text(self._model.get("activeTurnId"))
        for row in _rows(self._model.get("toolCalls")):
            call, over = _text(row.get("toolCallId")), _text(row.get("completedAt"))
            if call is not None and over is None and row.get("state") not in _ENDED:
                yield _text(row.get("turnId")) or active, "tool", call
        for row in _rows(self._model.get("pendingActions")):
            action = _text(row.get("actionId"))
            if action is not None:
                yield _text(row.get("turnId")) or active, "action", action


def _rows(value: object) -> list[Mapping[str, Any]]:
    rows = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
