"""What is wrong with a configuration: all of it at once, each with its place.

A value that may be a secret is never repeated, not even where it is wrong.
"""

from typing import Any, Final, Literal

import msgspec

from factwire.facts import redact_text
from factwire.facts.secrets import secret_name

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


class Problem(msgspec.Struct, frozen=True, kw_only=True):
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

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


def described(key: str, value: Any) -> str:
    """A value that was not expected: its type, and itself where that is harmless."""
    kind = next((name for known, name in _KINDS.items() if type(value) is known), "something else")
    if isinstance(value, dict | list):
        return kind
    if key.endswith("api_key_env") or any(map(secret_name, key.split("."))):
        return f"{kind} that is not repeated here"
    text, _ = redact_text(str(value)[:_READ])
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{kind} {shown!r}" if isinstance(value, str) else f"{kind} {shown}"
