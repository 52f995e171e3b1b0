"""Kinds of values: how each is read from a file and from text, and what is said when it is not.

Files have types, variables and flags are text. A reader gets either and returns the value, or
raises `Wrong` with what was expected. Nothing is converted that a file states with another type.
"""

import json
import os
import posixpath
import re
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from factwire.runtime.configuration.settings import SANDBOX_MODES
from factwire.runtime.limits import RETRY_ATTEMPTS
from factwire.runtime.policy import MODES, RuleError, parse_rule
from factwire.runtime.retry_policy import RetryPolicy

SCHEMES: Final = ("sqlite", "postgres", "postgresql", "nats", "memory")
"""What a journal's URL may begin with."""

_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off")
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]*|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_CATEGORY: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_LARGEST_FACTOR: Final = 100
_HTTP: Final = re.compile(r"https?://[^\s/@]+(/\S*)?")
_MOST: Final = 10**9


class Wrong(Exception):
    """A value that cannot be read: what was expected, and whether the type was right."""

    def __init__(self, expected: str, *, hint: str | None = None, is_type: bool = False) -> None:
        self.expected = expected
        self.hint = hint
        self.is_type = is_type
        super().__init__(expected)


class Base(msgspec.Struct, frozen=True):
    """What a value may be relative to; `textual` marks variables and flags, which have no types."""

    folder: str
    home: str
    textual: bool = False


Reader = Callable[[Any, Base], Any]


def text(value: Any, base: Base) -> str:
    del base
    if not isinstance(value, str):
        raise Wrong("text", is_type=True)
    if not value.strip() or not value.isprintable():
        raise Wrong("text of printable characters that is not empty")
    return value


def path(value: Any, base: Base) -> str:
    """An absolute path; a relative one starts where the value was written down."""
    given = text(value, base)
    if given == "~" or given.startswith("~/"):
        given = base.home + given[1:]
    return posixpath.normpath(posixpath.join(base.folder, given))


def paths(value: Any, base: Base) -> tuple[str, ...]:
    items = value.split(os.pathsep) if base.textual and isinstance(value, str) else value
    return tuple(path(item, base) for item in _list(items, "a list of folders"))


def journal(value: Any, base: Base) -> str:
    given = text(value, base)
    scheme, colon, rest = given.partition(":")
    if not colon or scheme not in SCHEMES:
        known = ", ".join(f"{name}:" for name in SCHEMES)
        raise Wrong(f"a URL that begins with one of {known}")
    if scheme != "sqlite":
        return given
    file, mark, options = rest.partition("?")
    return f"sqlite:{path(file, base)}{mark}{options}"


def rules(value: Any, base: Base) -> tuple[str, ...]:
    """Rules as text; a variable holds one rule, or a JSON list of them."""
    found = listed(value, base, "a list of rules")
    for item in found:
        try:
            parse_rule(text(item, base))
        except RuleError as error:
            raise Wrong("rules such as 'Bash(git status *)'", hint=str(error)) from error
    return tuple(found)


def listed(value: Any, base: Base, expected: str) -> list[Any]:
    """A list; a variable or a flag holds one item, or a JSON list of them."""
    items = value
    if base.textual and isinstance(value, str):
        items = _json_list(value) if value.lstrip().startswith("[") else [value]
    return _list(items, expected)


def boolean(value: Any, base: Base) -> bool:
    if isinstance(value, bool):
        return value
    if base.textual and isinstance(value, str) and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    raise Wrong("true or false", is_type=True)


def whole(value: Any, base: Base) -> int:
    """A whole number of at least 1."""
    number = _number(value, base)
    if isinstance(number, float) or not 1 <= number <= _MOST:
        raise Wrong(f"a whole number from 1 to {_MOST}", is_type=isinstance(number, float))
    return number


def seconds(value: Any, base: Base) -> float:
    number = _number(value, base)
    if not 0 < number <= _MOST:
        raise Wrong(f"a number of seconds above 0, at most {_MOST}")
    return float(number)


def attempts(value: Any, base: Base) -> int:
    number = _number(value, base)
    if isinstance(number, float) or not 1 <= number <= RETRY_ATTEMPTS:
        wanted = f"a whole number from 1 to {RETRY_ATTEMPTS}"
        raise Wrong(wanted, is_type=isinstance(number, float))
    return number


def factor(value: Any, base: Base) -> float:
    number = _number(value, base)
    if not 1 <= number <= _LARGEST_FACTOR:
        raise Wrong(f"a number from 1 to {_LARGEST_FACTOR}")
    return float(number)


def categories(value: Any, base: Base) -> tuple[str, ...]:
    """Failure categories; a variable holds them with commas in between."""
    given = value.split(",") if base.textual and isinstance(value, str) else value
    found = _list(given, "a list of failure categories")
    names = tuple(text(item, base).strip() for item in found)
    if not all(map(_CATEGORY.fullmatch, names)):
        raise Wrong("failure categories such as 'rate_limited'")
    return names


def retry(value: Any, base: Base) -> RetryPolicy:
    """A table with the keys that `retry` has."""
    table, read = options(value, base), _RETRY
    unknown = sorted(set(table) - set(read))
    if unknown:
        raise Wrong(f"a table of {', '.join(read)}; not {', '.join(unknown)}")
    typed = msgspec.structs.replace(base, textual=False)
    return RetryPolicy(**{name: read[name](given, typed) for name, given in table.items()})


def kind(value: Any, base: Base) -> str:
    if not _KIND.fullmatch(text(value, base)):
        raise Wrong("a kind such as 'claude-code', or an entry point 'module:name'")
    return value


def variable(value: Any, base: Base) -> str:
    """The name of a variable; what looks like a key itself is refused without being repeated."""
    if not _VARIABLE.fullmatch(text(value, base)):
        raise Wrong("the name of an environment variable, in capitals; not the key itself")
    return value


def http_url(value: Any, base: Base) -> str:
    if not _HTTP.fullmatch(text(value, base)):
        raise Wrong("an http or https URL without a password in it")
    return value


def options(value: Any, base: Base) -> dict[str, Any]:
    found = _json(value, "a table") if base.textual and isinstance(value, str) else value
    if not isinstance(found, dict):
        raise Wrong("a table", is_type=True)
    return cast("dict[str, Any]", found)


def one_of(*choices: str) -> Reader:
    """A reader of a word among some."""

    def read(value: Any, base: Base) -> str:
        if text(value, base) not in choices:
            raise Wrong(f"one of {', '.join(choices)}")
        return value

    return read


_RETRY: Final[dict[str, Reader]] = {
    "attempts": attempts,
    "delay_seconds": seconds,
    "factor": factor,
    "categories": categories,
    "repeat_effects": boolean,
}
"""What a policy of retries is made of."""

mode = one_of(*MODES)
sandbox_mode = one_of(*SANDBOX_MODES)


def _number(value: Any, base: Base) -> int | float:
    if base.textual and isinstance(value, str):
        for convert in (int, float):
            try:
                return convert(value)
            except ValueError:
                continue
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong("a number", is_type=True)
    return value


def _list(value: Any, expected: str) -> list[Any]:
    if not isinstance(value, list):
        raise Wrong(expected, is_type=True)
    return cast("list[Any]", value)


def _json_list(value: str) -> list[Any]:
    return _list(_json(value, "a JSON list"), "a JSON list")


def _json(value: str, expected: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"{expected} as JSON") from error
