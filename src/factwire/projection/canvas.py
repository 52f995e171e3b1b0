"""`Canvas`: the state while one fact is drawn onto it.

Whatever a reducer changes goes through here, so that state and changes cannot differ: the same call
sets the value and records the operation. Absent values are not written down, so that setting one
to None removes it.
"""

from typing import Any, Final, TypeVar

import msgspec

from factwire.projection.changes import Operation
from factwire.projection.json_patch import same
from factwire.projection.memory import Memory
from factwire.projection.parts import PartHandle
from factwire.projection.pointers import WIRE_NAMES, escaped, wire_name
from factwire.projection.state import ProjectionState
from factwire.projection.taking import Taking
from factwire.projection.text import Text

Node = TypeVar("Node")

_SCALARS: Final = frozenset({str, int, float, bool})


def plain(value: object) -> Any:
    """A value as JSON that nobody else holds."""
    return msgspec.to_builtins(value, enc_hook=str)


class Canvas:
    """A state, what the reducers remember beside it, and the operations of the fact under way."""

    __slots__ = ("memory", "opened", "ops", "part", "state")

    def __init__(self, state: ProjectionState, memory: Memory) -> None:
        self.state = state
        self.memory = memory
        self.ops: list[Operation] = []
        self.opened = False
        self.part: PartHandle | None = None

    def begin(self) -> None:
        """A new fact: nothing is new in the state yet, and no part is spoken of."""
        self.opened = False
        self.part = None

    def put(self, node: msgspec.Struct, path: str, field: str, value: object) -> None:
        """Set one field, to None too."""
        before = getattr(node, field)
        if before is value:
            return
        kind = type(value)
        if kind is type(before) and (before == value if kind in _SCALARS else same(before, value)):
            return
        setattr(node, field, value)
        place = f"{path}/{WIRE_NAMES.get(field) or wire_name(field)}"
        if value is None:
            self.ops.append(Operation("remove", place))
        else:
            own = value if kind in _SCALARS else plain(value)
            self.ops.append(Operation("add" if before is None else "replace", place, own))

    def take(self, node: msgspec.Struct, path: str, payload: dict[str, Any], known: Taking) -> None:
        """Set the fields that a payload states, by a table of those that count."""
        for name, value in payload.items():
            rule = known.get(name)
            if rule is not None:
                field, checked = rule
                found = checked(value)
                if found is not None:
                    self.put(node, path, field, found)

    def fill(self, node: msgspec.Struct, path: str, /, **fields: object) -> None:
        """Set the fields that are known; an unknown one stays as it was."""
        for field, value in fields.items():
            if value is not None:
                self.put(node, path, field, value)

    def create(self, table: dict[str, Node], path: str, key: str, node: Node) -> Node:
        """Put a new node into a table."""
        table[key] = node
        self.opened = True
        self.ops.append(Operation("add", f"{path}/{escaped(key)}", plain(node)))
        return node

    def remove(self, table: dict[str, Any], path: str, key: str) -> None:
        """Take a node out of a table."""
        del table[key]
        self.ops.append(Operation("remove", f"{path}/{escaped(key)}"))

    def push(self, items: list[Any], path: str, item: object, keep: int | None = None) -> None:
        """Add to the end of a list; past `keep`, the oldest makes room."""
        items.append(item)
        self.opened = True
        self.ops.append(Operation("add", f"{path}/-", plain(item)))
        if keep is not None and len(items) > keep:
            del items[0]
            self.ops.append(Operation("remove", f"{path}/0"))

    def grow(self, text: Text, path: str, piece: str) -> None:
        """Add a piece to a text."""
        text.append(piece)
        self.ops.append(Operation("append", path, piece))

    def rewrite(self, node: msgspec.Struct, path: str, field: str, text: str) -> None:
        """Give a text another wording; where it only grew, only the growth is sent."""
        before: Text = getattr(node, field)
        old, place = str(before), f"{path}/{wire_name(field)}"
        if text.startswith(old):
            if len(text) > len(old):
                self.grow(before, place, text[len(old) :])
            return
        setattr(node, field, Text(text))
        self.ops.append(Operation("replace", place, text))

    def count(self, node: msgspec.Struct, path: str, field: str, by: int = 1) -> None:
        """Move a counter."""
        if by:
            self.put(node, path, field, getattr(node, field) + by)
