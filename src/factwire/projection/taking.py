"""What a view takes over from a payload: a table made from the two types.

Every field that payload and view have in common is taken, if its value has the type that the
payload declares; anything else is left alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from factwire.facts.payloads import Payload
from factwire.facts.refs import Ref
from factwire.projection.reading import ref_text
from factwire.projection.views import View

Check = Callable[[Any], Any]
Taking = Mapping[str, tuple[str, Check]]
"""Wire name in the payload → field of the view, and what makes a value of it or None."""


def takes(view: type[View], payload: type[Payload]) -> Taking:
    """The table for a view and the payload that describes it."""
    fields = {field.name for field in msgspec.structs.fields(view)}
    return {
        field.encode_name: (field.name, _check(field.type))
        for field in msgspec.structs.fields(payload)
        if field.name in fields
    }


def _check(declared: Any) -> Check:
    if declared is Any:
        return _anything
    kinds = tuple(kind for kind in get_args(declared) or (declared,) if kind is not type(None))
    if Ref in kinds:
        return _ref
    if kinds == (str,):
        return _text
    if kinds == (float,):
        return _number

    def check(value: object) -> object:
        try:
            return msgspec.convert(value, declared)
        except msgspec.ValidationError:
            return None

    return check


def _anything(value: object) -> object:
    return value


def _text(value: object) -> object:
    return value if type(value) is str else None


def _number(value: object) -> float | None:
    if type(value) not in (int, float):
        return None
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except OverflowError:
        return None


def _ref(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    try:
        return ref_text(msgspec.convert(value, Ref))
    except msgspec.ValidationError:
        return None
