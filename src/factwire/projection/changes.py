"""Changes: what one fact did to a state, as operations that bring any copy of it along.

The operations are JSON Patch with `append` for text. Applied to the last snapshot they give the
next one exactly; several facts' changes may be sent as one, with repeated work folded.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from factwire.facts.json_patch import JsonDocument


class Operation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation on the place `path`."""

    op: Literal["add", "replace", "remove", "append"]
    path: str
    value: Any = msgspec.UNSET


class Changes(msgspec.Struct, frozen=True, gc=False):
    """The changes of one call, and how far the state has come with it.

    `event_id` is the last fact that was taken; without one, no fact was. `received` counts every
    fact that came, taken or not; 0 means that it did not change.
    """

    ops: list[Operation]
    event_id: str | None = None
    sequence: int | None = None
    cursor: int | None = None
    event_count: int = 0
    received: int = 0

    def __bool__(self) -> bool:
        return self.event_id is not None or bool(self.ops)

    def operations(self) -> list[Operation]:
        """Every operation, with those for how far the state has come."""
        return [*self.ops, *_position_operations(self, self.received)]


def fold_changes(changes: Iterable[Changes]) -> list[Operation]:
    """The operations of several changes as one list: text joined, only the last head kept."""
    found: list[Operation] = []
    last: Changes | None = None
    received = 0
    for change in changes:
        last = change if change.event_id is not None else last
        received = change.received or received
        for operation in change.ops:
            _fold_operation(found, operation)
    return [*found, *_position_operations(last, received)]


def advance(document: JsonDocument, changes: Changes | Iterable[Operation]) -> None:
    """Bring a copy of a state, as plain JSON, along with its changes."""
    operations = changes.operations() if isinstance(changes, Changes) else changes
    document.patch(msgspec.structs.asdict(operation) for operation in operations)


def _fold_operation(found: list[Operation], operation: Operation) -> None:
    last = found[-1] if found else None
    if last and last.op == operation.op and last.path == operation.path:
        if operation.op == "append":
            found[-1] = Operation("append", operation.path, last.value + operation.value)
            return
        if operation.op == "replace":
            found[-1] = operation
            return
    found.append(operation)


def _position_operations(changes: Changes | None, received: int) -> list[Operation]:
    """Where every fact moves the state; these places are always written, known or not."""
    counted = [Operation("replace", "/hydration/received", received)] if received else []
    if changes is None or changes.event_id is None:
        return counted
    return [
        Operation("replace", "/runtime/latestEventId", changes.event_id),
        Operation("replace", "/runtime/latestSequence", changes.sequence),
        Operation("replace", "/hydration/cursor", changes.cursor),
        Operation("replace", "/hydration/eventCount", changes.event_count),
        *counted,
    ]
