"""Values of an MCP server: its command, what it is given, and which of its tools count.

A secret never stands in a file: what looks like one, or has a name that says so, has to be a
reference to a variable, `${NAME}`.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from factwire.facts.secrets import find_secrets, secret_name
from factwire.runtime.configuration.values import Base, Wrong, listed, options, text

SERVER_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
"""What a server may be called: its name is part of its tools' names."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_HINT: Final = "put it into an environment variable, and write ${NAME} for it"


def command(value: Any, base: Base) -> tuple[str, ...]:
    """A program and its arguments; which all the world can see while it runs."""
    words = tuple(text(item, base) for item in listed(value, base, "a list of a program's words"))
    if not words:
        raise Wrong("a program, and then its arguments")
    if any(map(find_secrets, words)):
        raise Wrong("a command without a secret in it", hint=f"{_HINT} in env")
    return words


def globs(value: Any, base: Base) -> tuple[str, ...]:
    """Names of tools as their server writes them; `*` is any characters."""
    return tuple(text(item, base) for item in listed(value, base, "a list of names of tools"))


def environment(value: Any, base: Base) -> dict[str, str]:
    return _given(value, base, _VARIABLE.fullmatch, "names of variables")


def headers(value: Any, base: Base) -> dict[str, str]:
    return _given(value, base, _HEADER.fullmatch, "names of headers")


def _given(value: Any, base: Base, is_name: Callable[[str], object], names: str) -> dict[str, str]:
    table = options(value, base)
    typed = msgspec.structs.replace(base, textual=False)
    if not all(map(is_name, table)):
        raise Wrong(f"a table of {names} and texts")
    given = {name: text(each, typed) for name, each in table.items()}
    for name, each in given.items():
        if _is_plain_secret(name, each):
            raise Wrong(f"a reference as {name}, not the secret itself", hint=_HINT)
    return given


def _is_plain_secret(name: str, value: str) -> bool:
    rest = _REFERENCE.sub("", value)
    if find_secrets(rest):
        return True
    return secret_name(name) is not None and rest == value
