"""Layers: each source of values, read key by key. Pure: files and variables come as they are.

A key that nobody knows and a value of the wrong type are problems, each with its place. A layer
with problems is still read to its end, so that all of them are told at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from factwire.runtime.configuration.errors import Problem, described
from factwire.runtime.configuration.keys import (
    OTHER_VARIABLES,
    PREFIX,
    VARIABLES,
    hint_for,
    is_group,
    setting_of,
    variable_hint,
)
from factwire.runtime.configuration.lines import key_lines
from factwire.runtime.configuration.values import Base, Wrong

SourceKind = Literal["flag", "environment", "project", "user", "default"]

PRECEDENCE: Final[tuple[SourceKind, ...]] = ("flag", "environment", "project", "user", "default")
"""Strongest first."""


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: a kind of source, and the place in it."""

    source: SourceKind
    where: str | None = None


class Given(msgspec.Struct, frozen=True):
    """A value that one source gives, already read."""

    key: str
    value: Any
    origin: Origin


class Layer(msgspec.Struct, frozen=True):
    """All that one source gives, and what is wrong with it."""

    given: tuple[Given, ...] = ()
    problems: tuple[Problem, ...] = ()


def file_layer(
    source: SourceKind, name: str, content: str, table: Mapping[str, Any], base: Base
) -> Layer:
    """A file: its name as it is told, its text for the lines, and what TOML makes of it."""
    lines = key_lines(content)

    def where(key: str) -> str:
        line = lines.get(key)
        return name if line is None else f"{name}:{line}"

    return _read([(key, value, Origin(source, where(key))) for key, value in _flat(table)], base)


def environment_layer(environment: Mapping[str, str], base: Base) -> Layer:
    """The variables that begin with `FACTWIRE_`; an empty one counts as absent."""
    named = {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and value and name not in OTHER_VARIABLES
    }
    unknown = tuple(
        Problem(
            code="unknown_key",
            where=name,
            expected="a variable of a setting",
            got="one that there is not",
            hint=variable_hint(name),
        )
        for name in named
        if name not in VARIABLES
    )
    rows = [
        (VARIABLES[name], value, Origin("environment", name))
        for name, value in named.items()
        if name in VARIABLES
    ]
    read = _read(rows, base)
    return Layer(read.given, unknown + read.problems)


def flag_layer(flags: Sequence[tuple[str, str]], base: Base) -> Layer:
    """Flags as keys and texts; the last one of a key counts."""
    rows = [(key, value, Origin("flag", f"--set {key}")) for key, value in dict(flags).items()]
    return _read(rows, base)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{before}{name}"
        if isinstance(value, dict) and setting_of(key) is None and is_group(key):
            yield from _flat(cast("dict[str, Any]", value), f"{key}.")
        else:
            yield key, value


def _read(rows: list[tuple[str, Any, Origin]], base: Base) -> Layer:
    given: list[Given] = []
    problems: list[Problem] = []
    for key, value, origin in rows:
        setting = setting_of(key)
        if setting is None:
            problems.append(_unknown(key, value, origin))
            continue
        try:
            given.append(Given(key, setting.read(value, base), origin))
        except Wrong as wrong:
            problems.append(_wrong(key, value, origin, wrong))
    return Layer(tuple(given), tuple(problems))


def _unknown(key: str, value: Any, origin: Origin) -> Problem:
    group = is_group(key)
    return Problem(
        code="wrong_type" if group else "unknown_key",
        where=origin.where or origin.source,
        key=key,
        expected="a table" if group else "a setting",
        got=described(key, value) if group else "a key that there is not",
        hint=None if group else hint_for(key),
    )


def _wrong(key: str, value: Any, origin: Origin, wrong: Wrong) -> Problem:
    return Problem(
        code="wrong_type" if wrong.is_type else "wrong_value",
        where=origin.where or origin.source,
        key=key,
        expected=wrong.expected,
        got=described(key, value),
        hint=wrong.hint,
    )
