"""Paths: where in an item a value stands.

`a.b.0` goes by keys and places in lists; `/a.b/0` is a JSON pointer, for keys with dots; `.` is the
item itself. `@` is the element that a rule with `each` is at, and `@.a` goes into it. A path that
leads nowhere gives nothing, whatever stands in its way.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from factwire.sources.mapped.limits import PATH_STEPS

Value = Callable[[Any, Any], Any]
"""Takes a value out of an item and the element that is looked at; `None` is nothing."""

ITEM: Final = "."
ELEMENT: Final = "@"

PATH: Final = "a path such as item.text, /item/text or @.text"

_DIGITS: Final = 9
"""Digits of a place in a list."""


def is_of_element(text: str) -> bool:
    """Whether a path begins at the element that is looked at."""
    return text.startswith(ELEMENT)


def path_value(text: str) -> Value | None:
    """The value at a path; `None` where the text is no path."""
    rest = text.removeprefix(ELEMENT) if is_of_element(text) else text
    steps = _steps(rest, is_of_element(text))
    if steps is None or len(steps) > PATH_STEPS:
        return None
    keys = tuple((step, _place(step)) for step in steps)
    if is_of_element(text):
        return lambda _, element: _walk(element, keys)
    if len(keys) == 1:
        key = steps[0]
        return lambda item, _: item.get(key)
    return lambda item, _: _walk(item, keys)


def _steps(rest: str, of_element: bool) -> list[str] | None:  # noqa: FBT001 - an answer, passed on
    if rest == ("" if of_element else ITEM):
        return []
    if rest.startswith("/"):
        return [step.replace("~1", "/").replace("~0", "~") for step in rest[1:].split("/")]
    if of_element:
        if not rest.startswith("."):
            return None
        rest = rest[1:]
    steps = rest.split(".")
    return steps if all(steps) else None


def _place(step: str) -> int | None:
    is_place = step.isascii() and step.isdigit() and len(step) <= _DIGITS
    return int(step) if is_place else None


def _walk(value: Any, keys: tuple[tuple[str, int | None], ...]) -> Any:
    for key, place in keys:
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(key)
        elif isinstance(value, list) and place is not None:
            items = cast("list[Any]", value)
            value = items[place] if place < len(items) else None
        else:
            return None
    return value
