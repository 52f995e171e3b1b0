"""Conditions: which items a rule is about, by what stands at paths of theirs.

All conditions of a rule must hold. A text, number or truth value must stand there exactly, or one
of a list of them; `{ exists = true }` asks whether anything does, `{ not = … }` is the opposite of
what it holds.
"""

from collections.abc import Callable
from typing import Any, cast

from factwire.sources.mapped.problems import Problems, inside
from factwire.sources.mapped.values import ValueReader

Condition = Callable[[Any, Any], bool]
"""Whether a rule is about an item and the element that is looked at."""

_ANSWERS = "text, a number, true, false, a list of them, { exists = … } or { not = … }"


def read_conditions(
    given: Any, place: str, reader: ValueReader
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """The conditions of a rule: those on the item, and those on its elements."""
    table = reader.table(given, place)
    if not table and isinstance(given, dict):
        reader.problems.wrong_value(place, "at least one condition", given)
    on_item: list[Condition] = []
    on_element: list[Condition] = []
    for path, wanted in table.items():
        at = inside(place, path)
        value, holds = reader.path(path, at), _test(wanted, at, reader.problems)
        into = on_element if path.startswith("@") else on_item
        into.append(lambda item, element, value=value, holds=holds: holds(value(item, element)))
    return tuple(on_item), tuple(on_element)


def _test(wanted: Any, place: str, problems: Problems) -> Callable[[Any], bool]:
    if not isinstance(wanted, dict):
        return _one_of(wanted, place, problems)
    table = cast("dict[str, Any]", wanted)
    problems.unknown_keys(place, table, ("exists", "not"))
    if len(table) != 1:
        problems.add("wrong_value", place, "exists or not", f"{len(table)} keys")
    elif "exists" in table:
        return _exists(table["exists"], inside(place, "exists"), problems)
    elif "not" in table:
        holds = _one_of(table["not"], inside(place, "not"), problems)
        return lambda value: not holds(value)
    return _never


def _exists(wanted: Any, place: str, problems: Problems) -> Callable[[Any], bool]:
    if not isinstance(wanted, bool):
        problems.wrong_type(place, "true or false", wanted)
    return lambda value: (value is not None) is wanted


def _one_of(wanted: Any, place: str, problems: Problems) -> Callable[[Any], bool]:
    answers = cast("list[Any]", wanted) if isinstance(wanted, list) else [wanted]
    if not answers or not all(isinstance(each, str | int | float) for each in answers):
        problems.wrong_type(place, _ANSWERS, wanted)
        return _never
    return lambda value: any(_same(value, each) for each in answers)


def _same(value: Any, wanted: Any) -> bool:
    """Equal, and a truth value only to a truth value: in Python, true is 1."""
    return isinstance(value, bool) is isinstance(wanted, bool) and value == wanted


def _never(value: Any) -> bool:
    del value
    return False
