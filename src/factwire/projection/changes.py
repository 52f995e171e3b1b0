"""Changes: what one fact did to a state, as operations that bring any copy of it along.

The operations are JSON Patch with `append` for text. Applied to the last snapshot they give the
next one exactly; several facts' changes may be sent as one, with repeated work folded.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from factwire.projection.json_patch import Document


class Operation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation on the place `path`."""

    op: Literal["add", "replace", "remove", "append"]
    path: str
    value: Any = msgspec.UNSET


class Head(msgspec.Struct, frozen=True, gc=False):
    """How far the state has come: what every fact that is taken moves."""

    event_id: str
    sequence: int | None
    cursor: int | None
    event_count: int


class Changes(msgspec.Struct, frozen=True, gc=False):
    """The changes of one call; without operations and head, nothing changed."""

    ops: list[Operation]
    head: Head | None = None

    def __bool__(self) -> bool:
        return self.head is not None or bool(self.ops)

    def operations(self) -> list[Operation]:
        """Every operation, the head's included."""
        return self.ops if self.head is None else [*self.ops, *_head_operations(self.head)]


def folded(changes: Iterable[Changes]) -> list[Operation]:
    """The operations of several changes as one list: text joined, only the last head kept."""
    found: list[Operation] = []
    head: Head | None = None
    for change in changes:
        head = change.head or head
        for operation in change.ops:
            _fold(found, operation)
    return [*found, *_head_operations(head)] if head else found


def advance(document: Document, changes: Changes | Iterable[Operation]) -> None:
    """Bring a copy of a state, as plain JSON, along with its changes."""
    operations = changes.operations() if isinstance(changes, Changes) else changes
    document.patch(msgspec.structs.asdict(operation) for operation in operations)


def _fold(found: list[Operation], operation: Operation) -> None:
    last = found[-1] if found else None
    if last and last.op == operation.op and last.path == operation.path:
        if operation.op == "append":
            found[-1] = Operation("append", operation.path, last.value + operation.value)
            return
        if operation.op == "replace":
            found[-1] = operation
            return
    found.append(operation)


def _head_operations(head: Head) -> tuple[Operation, ...]:
    return (
        _settled("/runtime/latestEventId", head.event_id),
        _settled("/runtime/latestSequence", head.sequence),
        _settled("/hydration/cursor", head.cursor),
        Operation("replace", "/hydration/eventCount", head.event_count),
    )


def _settled(path: str, value: object) -> Operation:
    """These are written even when nobody knows them, so that a place to replace is there."""
    return Operation("replace", path, value)
