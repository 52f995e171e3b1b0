"""References to variables: `${NAME}` in a server's environment and headers.

A secret stands in the environment of whoever runs Factwire, never in a file. It is looked up when
the server is started, and taken out again of whatever the server says.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from factwire.facts import redact_text
from factwire.runtime.toolbox.mcp.limits import MESSAGE_CHARACTERS

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST: Final = 6
"""Characters of a value that is taken out of texts; a shorter one is a word of everyday."""


class MissingVariable(Exception):
    """A variable that is referred to and not set."""

    code = "missing_variable"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"expected the variable {name}, which is not set")


class Veil:
    """Takes known values, and whatever looks like a secret, out of texts."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        long = {value for value in values if len(value) >= _SHORTEST}
        self._values = sorted(long, key=len, reverse=True)

    def over(self, text: str) -> str:
        """The text without the known values."""
        for value in self._values:
            text = text.replace(value, "[redacted]")
        return text

    def short(self, text: str, most: int = MESSAGE_CHARACTERS) -> str:
        """One line of bounded length, without secrets of any kind."""
        clean, _ = redact_text(self.over(" ".join(text[: most * 4].split())))
        return clean if len(clean) <= most else f"{clean[:most]}…"


def variables_of(values: Mapping[str, str]) -> list[str]:
    """The variables that values refer to, each once."""
    return list(dict.fromkeys(name for value in values.values() for name in _names(value)))


def resolved(values: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The values with what they refer to; raises `MissingVariable`."""
    for name in variables_of(values):
        if not environment.get(name):
            raise MissingVariable(name)
    return {
        key: _REFERENCE.sub(lambda found: environment[found[1]], value)
        for key, value in values.items()
    }


def _names(value: str) -> list[str]:
    return _REFERENCE.findall(value)
