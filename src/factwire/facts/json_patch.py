"""JSON Pointer (RFC 6901) and JSON Patch (RFC 6902) on plain JSON, in place, whole or not at all.

An operation costs what it changes, not the size of the document. Each one leaves a way back, so
that a patch which fails half-way is undone. `append`, which adds to the end of a text, is ours:
without it a growing answer would be sent again with every piece.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, Final, cast

WIRE_NAMES: dict[str, str] = {}
"""Fields whose wire spelling has been asked for."""


def escape_key(key: str) -> str:
    """One key as it stands in a pointer."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def steps_of(path: str) -> list[str]:
    """The keys of a pointer, from the root on; raises `ValueError` for what is no pointer."""
    if path == "":
        return []
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no pointer: it must be empty or begin with a slash")
    return [key.replace("~1", "/").replace("~0", "~") for key in path[1:].split("/")]


def wire_spelling_of_field(field: str) -> str:
    """The wire spelling of a field."""
    spelling = WIRE_NAMES.get(field)
    if spelling is None:
        head, *rest = field.split("_")
        spelling = WIRE_NAMES[field] = head + "".join(word.capitalize() for word in rest)
    return spelling


OPERATIONS: Final = ("add", "replace", "remove", "test", "move", "copy", "append")

_Undo = Callable[[], object]


class InvalidPatch(ValueError):
    """An operation that cannot be carried out; nothing has changed."""


class JsonDocument:
    """A JSON document that patches change; `root` is what it holds now."""

    def __init__(self, root: object) -> None:
        self.root: Any = root

    def patch(self, operations: Iterable[Mapping[str, Any]]) -> None:
        """Carry out all operations in order, or raise `PatchFailed` and change nothing."""
        undo: list[_Undo] = []
        try:
            for operation in operations:
                self._apply_operation(operation, undo)
        except InvalidPatch:
            for step in reversed(undo):
                step()
            raise

    def at(self, path: str) -> Any:
        """What stands at a place."""
        value = self.root
        for step in _steps(path):
            value = _child(value, step)
        return value

    def _apply_operation(self, operation: Mapping[str, Any], undo: list[_Undo]) -> None:
        name, path = operation.get("op"), operation.get("path")
        if name not in OPERATIONS or not isinstance(path, str):
            raise InvalidPatch(f"expected one of {', '.join(OPERATIONS)} and a path")
        if name in ("move", "copy"):
            self._move_or_copy(operation, path, undo, take=name == "move")
        elif name == "remove":
            self._remove(path, undo)
        elif "value" not in operation:
            raise InvalidPatch(f"{name} {path} needs a value")
        else:
            self._write(name, path, operation["value"], undo)

    def _write(self, name: str, path: str, value: object, undo: list[_Undo]) -> None:
        if name == "test":
            if not same(self.at(path), value):
                raise InvalidPatch(f"what stands at {path} is not what the patch expects")
        elif name == "append":
            self._append(path, value, undo)
        else:
            self._put(path, deepcopy(value), undo, replace=name == "replace")

    def _move_or_copy(
        self, operation: Mapping[str, Any], path: str, undo: list[_Undo], *, take: bool
    ) -> None:
        source = operation.get("from")
        if not isinstance(source, str):
            raise InvalidPatch(f"{operation['op']} {path} needs a place to take from")
        value = self.at(source)
        if take and path.startswith(f"{source}/"):
            raise InvalidPatch(f"{source} cannot be moved into itself")
        if take:
            self._remove(source, undo)
        self._put(path, value if take else deepcopy(value), undo, replace=False)

    def _put(self, path: str, value: object, undo: list[_Undo], *, replace: bool) -> None:
        steps = _steps(path)
        if not steps:
            undo.append(lambda root=self.root: setattr(self, "root", root))
            self.root = value
            return
        holder, step = self._holder(steps), steps[-1]
        if replace:
            _child(holder, step)
        if isinstance(holder, list):
            _put_item(cast("list[object]", holder), step, value, undo, replace=replace)
        else:
            _put_member(_members(holder, step), step, value, undo)

    def _append(self, path: str, value: object, undo: list[_Undo]) -> None:
        text = self.at(path)
        if not isinstance(text, str) or not isinstance(value, str):
            raise InvalidPatch(f"only text can be appended, and only to text, at {path}")
        self._put(path, text + value, undo, replace=True)

    def _remove(self, path: str, undo: list[_Undo]) -> None:
        steps = _steps(path)
        if not steps:
            raise InvalidPatch("the whole document cannot be removed")
        holder, step = self._holder(steps), steps[-1]
        if isinstance(holder, list):
            items = cast("list[object]", holder)
            at = _index(step, len(items))
            value = items.pop(at)
            undo.append(lambda: items.insert(at, value))
        else:
            members = _members(holder, step)
            _child(members, step)
            before = dict(members)
            del members[step]
            undo.append(lambda: _restore(members, before))

    def _holder(self, steps: list[str]) -> object:
        value = self.root
        for step in steps[:-1]:
            value = _child(value, step)
        return value


def _put_item(
    items: list[object], step: str, value: object, undo: list[_Undo], *, replace: bool
) -> None:
    at = len(items) if step == "-" else _index(step, len(items) + (not replace))
    if replace:
        undo.append(lambda before=items[at]: items.__setitem__(at, before))
        items[at] = value
    else:
        undo.append(lambda: items.pop(at))
        items.insert(at, value)


def _put_member(members: dict[str, object], step: str, value: object, undo: list[_Undo]) -> None:
    if step in members:
        undo.append(lambda before=members[step]: members.__setitem__(step, before))
    else:
        undo.append(lambda: members.pop(step))
    members[step] = value


def _restore(members: dict[str, object], before: dict[str, object]) -> None:
    members.clear()
    members.update(before)


def _steps(path: str) -> list[str]:
    if path.count("~") != path.count("~0") + path.count("~1"):
        raise InvalidPatch(f"{path!r} is no pointer: a tilde is written ~0, a slash in a key ~1")
    try:
        return steps_of(path)
    except ValueError as error:
        raise InvalidPatch(str(error)) from error


def _child(value: object, step: str) -> object:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return items[_index(step, len(items))]
    members = _members(value, step)
    if step not in members:
        raise InvalidPatch(f"there is no {step!r}")
    return members[step]


def _members(value: object, step: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidPatch(f"{step!r} is looked for in what is neither a list nor an object")
    return cast("dict[str, object]", value)


def _index(step: str, length: int) -> int:
    plain = step.isascii() and step.isdecimal() and (step == "0" or not step.startswith("0"))
    if not plain or len(step) > len(str(length)) or int(step) >= length:
        raise InvalidPatch(f"{step!r} is no place in a list of {length}")
    return int(step)


def same(left: object, right: object) -> bool:
    """Equality of JSON: true is not 1, at any depth."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        pairs = cast("tuple[list[object], list[object]]", (left, right))
        return len(pairs[0]) == len(pairs[1]) and all(map(same, *pairs))
    if isinstance(left, dict) and isinstance(right, dict):
        mine, yours = cast("tuple[dict[str, object], dict[str, object]]", (left, right))
        return mine.keys() == yours.keys() and all(same(mine[key], yours[key]) for key in mine)
    return left == right
