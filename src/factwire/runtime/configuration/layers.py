"""Layers: each source of values, read key by key, with every problem in it and the place of
each.

Pure: files and variables come as they are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from factwire.facts import redact_text
from factwire.facts.secret_key_names import secret_name
from factwire.runtime.configuration.configuration import (
    OTHER_VARIABLES,
    PREFIX,
    VARIABLES,
    InvalidValue,
    ValueBase,
    find_setting,
    hint_for,
    is_group,
    variable_hint,
)

ProblemCode = Literal["unreadable", "unknown_key", "wrong_type", "wrong_value", "missing_key"]

_SHOWN: Final = 80
"""Characters of a wrong value that are repeated."""

_READ: Final = 10_000
"""Characters of a wrong value that are looked at."""

_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}


class ConfigurationProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `where` is a file with its line, a variable or a flag."""

    code: ProblemCode
    where: str
    key: str | None = None
    expected: str
    got: str
    hint: str | None = None

    def __str__(self) -> str:
        key = f" {self.key}" if self.key else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.where}:{key} expected {self.expected}, got {self.got}{hint}"


class ConfigurationError(Exception):
    """A configuration that cannot be used, with every problem in it."""

    code = "configuration_invalid"

    def __init__(self, problems: tuple[ConfigurationProblem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


def describe_value(key: str, value: Any) -> str:
    """A value that was not expected: its type, and itself where that is harmless."""
    kind = next((name for known, name in _KINDS.items() if type(value) is known), "something else")
    if isinstance(value, dict | list):
        return kind
    if key.endswith(("api_key_env", "client_secret_env")) or any(map(secret_name, key.split("."))):
        return f"{kind} that is not shown here"
    text, _ = redact_text(str(value)[:_READ])
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{kind} {shown!r}" if isinstance(value, str) else f"{kind} {shown}"


_TABLE: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?")
_KEY: Final = re.compile(
    r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART: Final = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def key_lines(content: str) -> dict[str, int]:
    """Key → the first line that gives it a value, or opens its table."""
    lines: dict[str, int] = {}
    before = ""
    for number, line in enumerate(content.splitlines(), 1):
        if table := _TABLE.fullmatch(line):
            before = _key(table[1])
            lines.setdefault(before, number)
        elif found := _KEY.match(line):
            key = _key(found[1])
            lines.setdefault(f"{before}.{key}" if before else key, number)
    return lines


def _key(text: str) -> str:
    return ".".join(part.strip("\"'") for part in _PART.findall(text))


SourceKind = Literal["flag", "environment", "project", "user", "default"]

PRECEDENCE: Final[tuple[SourceKind, ...]] = ("flag", "environment", "project", "user", "default")
"""Strongest first."""


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: a kind of source, and the place in it."""

    source: SourceKind
    where: str | None = None


class LayerValue(msgspec.Struct, frozen=True):
    """A value that one source gives, already read."""

    key: str
    value: Any
    origin: Origin


class Layer(msgspec.Struct, frozen=True):
    """All that one source gives, and what is wrong with it."""

    values: tuple[LayerValue, ...] = ()
    problems: tuple[ConfigurationProblem, ...] = ()


def file_layer(
    source: SourceKind, name: str, content: str, table: Mapping[str, Any], base: ValueBase
) -> Layer:
    """A file: its name as it is told, its text for the lines, and what TOML makes of it."""
    lines = key_lines(content)

    def where(key: str) -> str:
        line = lines.get(key)
        return name if line is None else f"{name}:{line}"

    return _read_rows(
        [(key, value, Origin(source, where(key))) for key, value in _flatten(table)], base
    )


def environment_layer(environment: Mapping[str, str], base: ValueBase) -> Layer:
    """The variables that begin with `FACTWIRE_`; an empty one counts as absent."""
    named = {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and value and name not in OTHER_VARIABLES
    }
    unknown = tuple(
        ConfigurationProblem(
            code="unknown_key",
            where=name,
            expected="the variable of a setting",
            got="an unknown variable",
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
    read = _read_rows(rows, base)
    return Layer(read.values, unknown + read.problems)


def flag_layer(flags: Sequence[tuple[str, str]], base: ValueBase) -> Layer:
    """Flags as keys and texts; the last one of a key counts."""
    rows = [(key, value, Origin("flag", f"--set {key}")) for key, value in dict(flags).items()]
    return _read_rows(rows, base)


def _flatten(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{before}{name}"
        if isinstance(value, dict) and find_setting(key) is None and is_group(key):
            yield from _flatten(cast("dict[str, Any]", value), f"{key}.")
        else:
            yield key, value


def _read_rows(rows: list[tuple[str, Any, Origin]], base: ValueBase) -> Layer:
    values: list[LayerValue] = []
    problems: list[ConfigurationProblem] = []
    for key, value, origin in rows:
        setting = find_setting(key)
        if setting is None:
            problems.append(_unknown_key(key, value, origin))
            continue
        try:
            values.append(LayerValue(key, setting.read(value, base), origin))
        except InvalidValue as wrong:
            problems.append(_invalid_value(key, value, origin, wrong))
    return Layer(tuple(values), tuple(problems))


def _unknown_key(key: str, value: Any, origin: Origin) -> ConfigurationProblem:
    group = is_group(key)
    return ConfigurationProblem(
        code="wrong_type" if group else "unknown_key",
        where=origin.where or origin.source,
        key=key,
        expected="a table" if group else "a setting",
        got=describe_value(key, value) if group else "an unknown key",
        hint=None if group else hint_for(key),
    )


def _invalid_value(
    key: str, value: Any, origin: Origin, wrong: InvalidValue
) -> ConfigurationProblem:
    if wrong.member is not None:
        name, value = wrong.member
        key = f"{key}.{name}"
    return ConfigurationProblem(
        code="wrong_type" if wrong.is_type else "wrong_value",
        where=origin.where or origin.source,
        key=key,
        expected=wrong.expected,
        got=describe_value(key, value),
        hint=wrong.hint,
    )
