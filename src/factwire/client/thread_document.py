"""`ThreadDocument`: the state of a thread, kept up to date by what a projection stream brings.

Changes are JSON Patch (RFC 6902) with `append` for text. Each costs what it changes, and a delta is
carried out whole or not at all: whoever catches `PatchFailed` still has a state that was true.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from factwire.client.errors import PatchFailed
from factwire.client.resources import ThreadDelta, ThreadSnapshot

_Undo = Callable[[], object]


class ThreadDocument:
    """`state` is plain JSON, true as of `cursor`; None before the first snapshot."""

    def __init__(self) -> None:
        self.state: dict[str, Any] | None = None
        self.cursor: str | None = None

    def take(self, change: ThreadSnapshot | ThreadDelta) -> None:
        """Take what a stream brought; raises `PatchFailed`, having changed nothing."""
        if isinstance(change, ThreadSnapshot):
            self.state = change.state
        elif self.state is None:
            raise PatchFailed("received changes before a state; start the stream without a cursor")
        else:
            _apply_patch(self.state, change.operations)
        self.cursor = change.cursor


def _apply_patch(state: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    undo: list[_Undo] = []
    try:
        for operation in operations:
            _apply_operation(state, operation, undo)
    except PatchFailed:
        for step in reversed(undo):
            step()
        raise


def _apply_operation(
    state: dict[str, Any], operation: Mapping[str, Any], undo: list[_Undo]
) -> None:
    name, path = operation.get("op"), operation.get("path")
    change = _CHANGES.get(str(name))
    if change is None or not isinstance(path, str) or not path.startswith("/"):
        raise PatchFailed(
            f"expected one of {', '.join(_CHANGES)} and a path, got {name!r} {path!r}"
        )
    if name != "remove" and "value" not in operation:
        raise PatchFailed(f"{name} {path} needs a value")
    *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))
    holder: object = state
    for step in parents:
        holder = _child(holder, step)
    change(holder, last, operation.get("value"), undo)


def _add(holder: object, step: str, value: object, undo: list[_Undo]) -> None:
    if isinstance(holder, list):
        items = cast("list[object]", holder)
        at = len(items) if step == "-" else _index(step, len(items) + 1)
        items.insert(at, value)
        undo.append(lambda: items.pop(at))
    else:
        _put(_members(holder, step), step, value, undo)


def _replace(holder: object, step: str, value: object, undo: list[_Undo]) -> None:
    before = _child(holder, step)
    if isinstance(holder, list):
        items, at = cast("list[object]", holder), int(step)
        items[at] = value
        undo.append(lambda: items.__setitem__(at, before))
    else:
        _put(_members(holder, step), step, value, undo)


def _remove(holder: object, step: str, _: object, undo: list[_Undo]) -> None:
    value = _child(holder, step)
    if isinstance(holder, list):
        items, at = cast("list[object]", holder), int(step)
        del items[at]
        undo.append(lambda: items.insert(at, value))
        return
    members = _members(holder, step)
    before = dict(members)
    del members[step]
    undo.append(lambda: _restore(members, before))


def _append(holder: object, step: str, value: object, undo: list[_Undo]) -> None:
    text = _child(holder, step)
    if not isinstance(text, str) or not isinstance(value, str):
        raise PatchFailed(f"only text can be appended, and only to text, at {step!r}")
    _replace(holder, step, text + value, undo)


_CHANGES: dict[str, Callable[[object, str, object, list[_Undo]], None]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "append": _append,
}
"""Operation → how it is done; an Edge sends no others."""


def _put(members: dict[str, object], step: str, value: object, undo: list[_Undo]) -> None:
    if step in members:
        undo.append(lambda before=members[step]: members.__setitem__(step, before))
    else:
        undo.append(lambda: members.pop(step))
    members[step] = value


def _restore(members: dict[str, object], before: dict[str, object]) -> None:
    members.clear()
    members.update(before)


def _child(holder: object, step: str) -> object:
    if isinstance(holder, list):
        items = cast("list[object]", holder)
        return items[_index(step, len(items))]
    members = _members(holder, step)
    if step not in members:
        raise PatchFailed(f"there is no {step!r}")
    return members[step]


def _members(holder: object, step: str) -> dict[str, object]:
    if not isinstance(holder, dict):
        raise PatchFailed(
            f"cannot look up {step!r} in a value that is neither a list nor an object"
        )
    return cast("dict[str, object]", holder)


def _index(step: str, length: int) -> int:
    plain = step.isascii() and step.isdecimal() and (step == "0" or not step.startswith("0"))
    if not plain or len(step) > len(str(length)) or int(step) >= length:
        raise PatchFailed(f"{step!r} is not a position in a list of {length}")
    return int(step)
