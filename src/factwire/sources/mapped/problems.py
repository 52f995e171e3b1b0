"""What is wrong with a mapping: all of it at once, each with its place in the file.

Codes are those of configuration files: `unreadable`, `unknown_key`, `missing_key`, `wrong_type`,
`wrong_value`.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from factwire.runtime.configuration import Problem
from factwire.runtime.configuration.errors import ProblemCode, described


class MappingError(Exception):
    """A mapping that cannot be used, with every problem in it."""

    code = "mapping_invalid"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class Problems:
    """Collects what is wrong while a mapping is read; reading goes on."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[Problem] = []

    def add(
        self, code: ProblemCode, key: str, expected: str, got: str, hint: str | None = None
    ) -> None:
        self.found.append(
            Problem(code=code, where=self.where, key=key, expected=expected, got=got, hint=hint)
        )

    def wrong_type(self, key: str, expected: str, value: Any) -> None:
        self.add("wrong_type", key, expected, described(key, value))

    def wrong_value(self, key: str, expected: str, value: Any) -> None:
        self.add("wrong_value", key, expected, described(key, value))

    def missing(self, key: str, expected: str) -> None:
        self.add("missing_key", key, expected, "nothing")

    def unknown(self, key: str, name: str, known: Iterable[str]) -> None:
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
                self.unknown(inside(place, name), name, allowed)

    def raise_any(self) -> None:
        if self.found:
            raise MappingError(tuple(self.found))


def inside(place: str, name: str) -> str:
    """The place of a key in a table."""
    return f"{place}.{name}" if place else name
