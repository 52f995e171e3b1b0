"""Values of a mapping: what a rule takes out of an item, and every problem with saying so.

A path walks objects and lists and never raises; a form (a constant, a join, a lookup, JSON in a
text) is read once, when the file is, and is a function after that. All problems of a file are
collected, each with the place where it stands.
"""

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Final, cast

from factwire.facts.json_values import list_at
from factwire.runtime.configuration import ConfigurationProblem
from factwire.runtime.configuration.layers import ProblemCode, describe_value
from factwire.sources.kit.recorded_runs import parse_arguments

FILE_BYTES: Final = 256 * 1024
"""Bytes of a mapping file; no person writes more."""

RULES: Final = 1_000
"""Rules of a mapping; each item is held against those of its type."""

PATH_STEPS: Final = 32
"""Steps of a path into an item."""

VALUE_DEPTH: Final = 16
"""How deep a value may be put together from other values."""

SHOWN_TYPE: Final = 80
"""Characters of an unknown type that a warning repeats."""


class MappingError(Exception):
    """A mapping that cannot be used, with every problem in it."""

    code = "mapping_invalid"

    def __init__(self, problems: tuple[ConfigurationProblem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class MappingProblems:
    """Collects what is wrong while a mapping is read; reading goes on."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[ConfigurationProblem] = []

    def add(
        self, code: ProblemCode, key: str, expected: str, got: str, hint: str | None = None
    ) -> None:
        self.found.append(
            ConfigurationProblem(
                code=code, where=self.where, key=key, expected=expected, got=got, hint=hint
            )
        )

    def wrong_type(self, key: str, expected: str, value: Any) -> None:
        self.add("wrong_type", key, expected, describe_value(key, value))

    def wrong_value(self, key: str, expected: str, value: Any) -> None:
        self.add("wrong_value", key, expected, describe_value(key, value))

    def add_missing(self, key: str, expected: str) -> None:
        self.add("missing_key", key, expected, "nothing")

    def add_unknown(self, key: str, name: str, known: Iterable[str]) -> None:
        """A name that is none of those that may stand there."""
        names = sorted(known)
        close = get_close_matches(name, names, 1)
        expected = "one of " + ", ".join(names) if names else "nothing here"
        hint = f"did you mean {close[0]}?" if close else None
        self.add("unknown_key", key, expected, repr(name), hint)

    def unknown_keys(self, place: str, table: dict[str, Any], known: Iterable[str]) -> None:
        allowed = frozenset(known)
        for name in table:
            if name not in allowed:
                self.add_unknown(join_place(place, name), name, allowed)

    def raise_any(self) -> None:
        if self.found:
            raise MappingError(tuple(self.found))


def join_place(place: str, name: str) -> str:
    """The place of a key in a table."""
    return f"{place}.{name}" if place else name


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


def make_path_value(text: str) -> Value | None:
    """The value at a path; `None` where the text is no path."""
    rest = text.removeprefix(ELEMENT) if is_of_element(text) else text
    steps = _parse_steps(rest, is_of_element(text))
    if steps is None or len(steps) > PATH_STEPS:
        return None
    keys = tuple((step, _parse_index(step)) for step in steps)
    if is_of_element(text):
        return lambda _, element: _walk_path(element, keys)
    if len(keys) == 1:
        key = steps[0]
        return lambda item, _: item.get(key)
    return lambda item, _: _walk_path(item, keys)


def _parse_steps(rest: str, of_element: bool) -> list[str] | None:  # noqa: FBT001 - an answer, passed on
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


def _parse_index(step: str) -> int | None:
    is_place = step.isascii() and step.isdigit() and len(step) <= _DIGITS
    return int(step) if is_place else None


def _walk_path(value: Any, keys: tuple[tuple[str, int | None], ...]) -> Any:
    for key, place in keys:
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(key)
        elif isinstance(value, list) and place is not None:
            items = cast("list[Any]", value)
            value = items[place] if place < len(items) else None
        else:
            return None
    return value


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

    def __init__(self, problems: MappingProblems, *, has_element: bool = False) -> None:
        self.problems = problems
        self.has_element = has_element
        self.depth = 0

    def read(self, value: Any, place: str) -> Value:
        """The value; where it cannot be read, a problem is noted and nothing is taken."""
        if self.depth >= VALUE_DEPTH:
            self.problems.add("wrong_value", place, f"at most {VALUE_DEPTH} nested values", "more")
            return read_nothing
        self.depth += 1
        try:
            return self._read(value, place)
        finally:
            self.depth -= 1

    def read_path(self, content: Any, place: str) -> Value:
        """The value at a path."""
        if not isinstance(content, str):
            self.problems.wrong_type(place, PATH, content)
            return read_nothing
        if is_of_element(content) and not self.has_element:
            self.problems.wrong_value(place, "a path into the item, or each beside it", content)
            return read_nothing
        value = make_path_value(content)
        if value is None:
            self.problems.wrong_value(place, PATH, content)
        return value or read_nothing

    def read_table(self, value: Any, place: str) -> dict[str, Any]:
        """A table; anything else is a problem."""
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        self.problems.wrong_type(place, "a table", value)
        return {}

    def _read(self, value: Any, place: str) -> Value:
        if isinstance(value, str):
            return self.read_path(value, place)
        if isinstance(value, list):
            return self._read_first(cast("list[Any]", value), place)
        if isinstance(value, dict):
            return self._read_form(cast("dict[str, Any]", value), place)
        self.problems.add(
            "wrong_type",
            place,
            "a path, a list of values or a table",
            f"a bare {type(value).__name__}",
            "a constant is written { const = … }",
        )
        return read_nothing

    def _read_first(self, content: list[Any], place: str) -> Value:
        if not content:
            self.problems.wrong_value(place, "at least one value", content)
        values = self.read_several(content, place)

        def first(item: Any, element: Any) -> Any:
            for value in values:
                found = value(item, element)
                if found is not None and found != "":
                    return found
            return None

        return first

    def read_several(self, value: list[Any], place: str) -> tuple[Value, ...]:
        return tuple(self.read(each, f"{place}[{at}]") for at, each in enumerate(value, 1))

    def _read_form(self, value: dict[str, Any], place: str) -> Value:
        named = [name for name in _FORMS if name in value]
        if len(named) != 1:
            expected = "exactly one of " + ", ".join(_FORMS)
            self.problems.add("wrong_value", place, expected, ", ".join(named) or "none of them")
            return read_nothing
        self.problems.unknown_keys(place, value, _FORMS[named[0]])
        return _READERS[named[0]](self, value, place)


def _read_lookup(reader: ValueReader, fields: dict[str, Any], place: str) -> Value:
    value = reader.read_path(fields["path"], join_place(place, "path"))
    otherwise = _constant_of(reader, fields.get("else"), join_place(place, "else"))
    if "map" not in fields:
        return lambda item, element: _or_default(value(item, element), otherwise)
    words = reader.read_table(fields["map"], join_place(place, "map"))
    for name, word in words.items():
        _constant_of(reader, word, join_place(place, f"map.{name}"))

    def look_up(item: Any, element: Any) -> Any:
        return words.get(as_text(value(item, element)) or "", otherwise)

    return look_up


def _read_constant(reader: ValueReader, value: dict[str, Any], place: str) -> Value:
    constant = _constant_of(reader, value["const"], join_place(place, "const"))
    return lambda _, __: constant


def _read_join(reader: ValueReader, fields: dict[str, Any], place: str) -> Value:
    parts = list_at(fields["join"])
    if not parts:
        reader.problems.wrong_type(join_place(place, "join"), "a list of values", fields["join"])
        return read_nothing
    values = reader.read_several(parts, join_place(place, "join"))
    between = _text_of(reader, fields.get("with", ""), join_place(place, "with"))

    def join(item: Any, element: Any) -> str | None:
        texts = [as_text(value(item, element)) for value in values]
        found = [text for text in texts if text is not None]
        return between.join(found) if len(found) == len(texts) else None

    return join


def _read_object(reader: ValueReader, fields: dict[str, Any], place: str) -> Value:
    place = join_place(place, "fields")
    table = reader.read_table(fields["fields"], place)
    values = {name: reader.read(each, join_place(place, name)) for name, each in table.items()}

    def build(item: Any, element: Any) -> dict[str, Any]:
        return {name: value(item, element) for name, value in values.items()}

    return build


def _read_json(reader: ValueReader, fields: dict[str, Any], place: str) -> Value:
    value = reader.read_path(fields["json"], join_place(place, "json"))
    return lambda item, element: parse_arguments(value(item, element))


def _read_as_text(reader: ValueReader, fields: dict[str, Any], place: str) -> Value:
    value = reader.read_path(fields["text"], join_place(place, "text"))
    return lambda item, element: as_text(value(item, element))


def _read_lines(reader: ValueReader, value: dict[str, Any], place: str) -> Value:
    """A text of a list: what `take` says of each element, between line breaks."""
    items = reader.read_path(value["lines"], join_place(place, "lines"))
    between = _text_of(reader, value.get("with", "\n"), join_place(place, "with"))
    inner = ValueReader(reader.problems, has_element=True)
    inner.depth = reader.depth
    take = inner.read(value.get("take", "@"), join_place(place, "take"))

    def lines(item: Any, element: Any) -> str | None:
        found = list_at(items(item, element))
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


def read_nothing(item: Any, element: Any) -> None:
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


def _or_default(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


_READERS: Final[dict[str, Callable[[ValueReader, dict[str, Any], str], Value]]] = {
    "path": _read_lookup,
    "const": _read_constant,
    "join": _read_join,
    "fields": _read_object,
    "json": _read_json,
    "text": _read_as_text,
    "lines": _read_lines,
}
