"""JSON from outside: decoded so that every way in which it can be unreadable has a name.

Bytes that are not UTF-8, text that is not JSON, and values nested so deep that a recursive
reader would fail all end as `UnreadableInput`, before anything looks at what they say.

What was decoded is then read with `text_at`, `number_at`, `object_at` and their like: a value of
another type counts as absent, and none of them raises.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, cast

import msgspec

from factwire.facts.issues import UnreadableInput
from factwire.facts.limits import NESTING_DEPTH

_FLAT_BYTES: Final = 2 * NESTING_DEPTH
"""JSON that is not longer than this cannot be nested too deep."""

_TYPES: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    type(None): "null",
}

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def decode_json(data: bytes | str) -> object:
    """Decode any JSON; raises `UnreadableInput` and nothing else."""
    try:
        value: object = _decoder.decode(data)
    except UnicodeError as error:
        raise UnreadableInput(_unicode_failure(data)) from error
    except RecursionError as error:
        raise UnreadableInput(f"nested deeper than {NESTING_DEPTH} levels") from error
    except msgspec.DecodeError as error:
        raise UnreadableInput(f"not JSON: {error}") from error
    if _count_openings(data) > NESTING_DEPTH and is_too_deep(value):
        raise UnreadableInput(f"nested deeper than {NESTING_DEPTH} levels")
    return value


def _count_openings(data: bytes | str) -> int:
    """How often something may begin in a text; it is nested no deeper than that."""
    if isinstance(data, str):
        return data.count("{") + data.count("[")
    return data.count(b"{") + data.count(b"[")


def unwritable_reason(value: object) -> str | None:
    """Why an object that did not come from JSON cannot become it, if it cannot."""
    if is_too_deep(value):
        return f"nested deeper than {NESTING_DEPTH} levels"
    try:
        _encoder.encode(dict(value) if isinstance(value, Mapping) else value)  # pyright: ignore[reportUnknownArgumentType]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"cannot be written as JSON: {error}"
    return None


def is_too_deep(value: object) -> bool:
    """Whether lists and objects are nested deeper than `NESTING_DEPTH`."""
    level: list[object] = [value]
    for _ in range(NESTING_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def is_nested_too_deep(fields: dict[str, Any], data: bytes | str) -> bool:
    """The same for an object that was decoded from `data`, asking the cheap questions first."""
    if len(data) <= _FLAT_BYTES:
        return False
    for value in fields.values():
        if value.__class__ is dict or value.__class__ is list:
            return is_too_deep([fields])
    return False


def _unicode_failure(data: bytes | str) -> str:
    """Where text stops being Unicode; the decoder counts from the start of a string in it."""
    try:
        data.decode() if isinstance(data, bytes) else data.encode()
    except UnicodeError as error:
        unit = "byte" if isinstance(data, bytes) else "character"
        return f"not UTF-8 at {unit} {error.start}"  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    return "not UTF-8"


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        values: list[Any] = list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    elif isinstance(value, list):
        values = value  # pyright: ignore[reportUnknownVariableType]
    else:
        return []
    return [child for child in values if isinstance(child, dict | list)]


def json_type(value: object) -> str:
    """What JSON calls the type of a value."""
    return _TYPES.get(type(value), "number")


def text_at(payload: dict[str, Any], *names: str) -> str | None:
    """The first of these fields that is a text with something in it."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def texts_of(value: object) -> list[str]:
    """The texts of a list, or of one text; anything else is none."""
    if isinstance(value, str):
        return [value] if value else []
    items: list[object] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [item for item in items if isinstance(item, str) and item]


def list_at(value: object) -> list[Any] | None:
    """A value that is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def object_at(value: object) -> dict[str, Any] | None:
    """A value that is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list that have something in them; anything else is none."""
    return [row for row in map(object_at, list_at(value) or ()) if row]


def number_at(payload: dict[str, Any], *names: str) -> float | None:
    """The first of these fields that is a number."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


def finite_number_at(payload: dict[str, Any], *names: str) -> float | None:
    """The first of these fields that is a number which a float can hold."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                continue
            if isfinite(number):
                return number
    return None


def whole_number_at(payload: dict[str, Any], *names: str) -> int | None:
    """The first of these fields that is a whole number."""
    found = (payload.get(name) for name in names)
    return next((value for value in found if type(value) is int), None)
