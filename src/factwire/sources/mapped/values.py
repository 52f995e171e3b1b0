"""Values: what a field of a fact is made of.

A text is a path into the item, a list is the first of several that is there, and a table says one
thing to do: look a word up, join texts, build an object. There is no way to search in prose.
"""

import math
from collections.abc import Callable
from typing import Any, Final, cast

from factwire.projection.reading import listed
from factwire.sources.mapped.limits import VALUE_DEPTH
from factwire.sources.mapped.paths import PATH, Value, is_of_element, path_value
from factwire.sources.mapped.problems import Problems, inside
from factwire.sources.recorded_runs import parsed

_FORMS: Final = {
    "path": {"path", "map", "else"},
    "const": {"const"},
    "join": {"join", "with"},
    "fields": {"fields"},
    "json": {"json"},
    "text": {"text"},
    "lines": {"lines", "take", "with"},
}
"""What a table can do → the keys that go with it."""


class ValueReader:
    """Reads the values of one rule; `has_element` says whether there is an `@` in it."""

    def __init__(self, problems: Problems, *, has_element: bool = False) -> None:
        self.problems = problems
        self.has_element = has_element
        self.depth = 0

    def read(self, given: Any, place: str) -> Value:
        """The value; where it cannot be read, a problem is noted and nothing is taken."""
        if self.depth >= VALUE_DEPTH:
            self.problems.add(
                "wrong_value", place, f"at most {VALUE_DEPTH} values in each other", "more"
            )
            return nothing
        self.depth += 1
        try:
            return self._read(given, place)
        finally:
            self.depth -= 1

    def path(self, given: Any, place: str) -> Value:
        """The value at a path."""
        if not isinstance(given, str):
            self.problems.wrong_type(place, PATH, given)
            return nothing
        if is_of_element(given) and not self.has_element:
            self.problems.wrong_value(place, "a path into the item, or each beside it", given)
            return nothing
        value = path_value(given)
        if value is None:
            self.problems.wrong_value(place, PATH, given)
        return value or nothing

    def table(self, given: Any, place: str) -> dict[str, Any]:
        """A table; anything else is a problem."""
        if isinstance(given, dict):
            return cast("dict[str, Any]", given)
        self.problems.wrong_type(place, "a table", given)
        return {}

    def _read(self, given: Any, place: str) -> Value:
        if isinstance(given, str):
            return self.path(given, place)
        if isinstance(given, list):
            return self._first(cast("list[Any]", given), place)
        if isinstance(given, dict):
            return self._form(cast("dict[str, Any]", given), place)
        self.problems.add(
            "wrong_type",
            place,
            "a path, a list of values or a table",
            f"a bare {type(given).__name__}",
            "a constant is written { const = … }",
        )
        return nothing

    def _first(self, given: list[Any], place: str) -> Value:
        if not given:
            self.problems.wrong_value(place, "at least one value", given)
        values = self.several(given, place)

        def first(item: Any, element: Any) -> Any:
            for value in values:
                found = value(item, element)
                if found is not None and found != "":
                    return found
            return None

        return first

    def several(self, given: list[Any], place: str) -> tuple[Value, ...]:
        return tuple(self.read(each, f"{place}[{at}]") for at, each in enumerate(given, 1))

    def _form(self, given: dict[str, Any], place: str) -> Value:
        named = [name for name in _FORMS if name in given]
        if len(named) != 1:
            expected = "exactly one of " + ", ".join(_FORMS)
            self.problems.add("wrong_value", place, expected, ", ".join(named) or "none of them")
            return nothing
        self.problems.unknown_keys(place, given, _FORMS[named[0]])
        return _READERS[named[0]](self, given, place)


def _looked_up(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    value = reader.path(given["path"], inside(place, "path"))
    otherwise = _constant_of(reader, given.get("else"), inside(place, "else"))
    if "map" not in given:
        return lambda item, element: _or(value(item, element), otherwise)
    words = reader.table(given["map"], inside(place, "map"))
    for name, word in words.items():
        _constant_of(reader, word, inside(place, f"map.{name}"))

    def look_up(item: Any, element: Any) -> Any:
        return words.get(as_text(value(item, element)) or "", otherwise)

    return look_up


def _constant(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    constant = _constant_of(reader, given["const"], inside(place, "const"))
    return lambda _, __: constant


def _joined(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    parts = listed(given["join"])
    if not parts:
        reader.problems.wrong_type(inside(place, "join"), "a list of values", given["join"])
        return nothing
    values = reader.several(parts, inside(place, "join"))
    between = _text_of(reader, given.get("with", ""), inside(place, "with"))

    def join(item: Any, element: Any) -> str | None:
        texts = [as_text(value(item, element)) for value in values]
        found = [text for text in texts if text is not None]
        return between.join(found) if len(found) == len(texts) else None

    return join


def _object(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    place = inside(place, "fields")
    table = reader.table(given["fields"], place)
    values = {name: reader.read(each, inside(place, name)) for name, each in table.items()}

    def build(item: Any, element: Any) -> dict[str, Any]:
        return {name: value(item, element) for name, value in values.items()}

    return build


def _from_json(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    value = reader.path(given["json"], inside(place, "json"))
    return lambda item, element: parsed(value(item, element))


def _as_text(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    value = reader.path(given["text"], inside(place, "text"))
    return lambda item, element: as_text(value(item, element))


def _lines(reader: ValueReader, given: dict[str, Any], place: str) -> Value:
    """A text of a list: what `take` says of each element, between line breaks."""
    items = reader.path(given["lines"], inside(place, "lines"))
    between = _text_of(reader, given.get("with", "\n"), inside(place, "with"))
    inner = ValueReader(reader.problems, has_element=True)
    inner.depth = reader.depth
    take = inner.read(given.get("take", "@"), inside(place, "take"))

    def lines(item: Any, element: Any) -> str | None:
        found = listed(items(item, element))
        if found is None:
            return None
        texts = (as_text(take(item, each)) for each in found)
        return between.join(text for text in texts if text is not None)

    return lines


def _constant_of(reader: ValueReader, value: Any, place: str) -> Any:
    if value is not None and not is_plain(value):
        reader.problems.wrong_type(place, "text, a number, true, false, or lists of them", value)
    return value


def _text_of(reader: ValueReader, value: Any, place: str) -> str:
    if isinstance(value, str):
        return value
    reader.problems.wrong_type(place, "text", value)
    return ""


def nothing(item: Any, element: Any) -> None:
    """No value."""
    del item, element


def is_plain(value: Any) -> bool:
    """Whether a value of TOML is one of JSON: no dates, nothing infinite."""
    if isinstance(value, dict):
        return all(map(is_plain, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return all(map(is_plain, cast("list[Any]", value)))
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int)


def as_text(value: Any) -> str | None:
    """A text, a number or a truth value as text; anything else is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


_READERS: Final[dict[str, Callable[[ValueReader, dict[str, Any], str], Value]]] = {
    "path": _looked_up,
    "const": _constant,
    "join": _joined,
    "fields": _object,
    "json": _from_json,
    "text": _as_text,
    "lines": _lines,
}
