"""What a program that is run by a mapping is told on its standard input: one object a line.

The table `[stdin]` says how each line is built, with the same values that rules have; what they
take their parts from is not an item of the program's but what there is to say.
"""

from typing import Any, Final

import msgspec

from factwire.sources.mapped.paths import Value
from factwire.sources.mapped.problems import Problems, inside
from factwire.sources.mapped.values import ValueReader

_LINES: Final = ("answer", "prompt", "stop")


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a program knows: what is asked of it, what was decided, and that it is to
    stop.
    """

    answer: Value | None = None
    prompt: Value | None = None
    stop: Value | None = None

    @property
    def stays_open(self) -> bool:
        """Whether there may be more to say after the prompt."""
        return self.answer is not None or self.stop is not None


def read_inputs(table: dict[str, Any], problems: Problems) -> Inputs:
    if "stdin" not in table:
        return Inputs()
    reader = ValueReader(problems)
    given = reader.table(table["stdin"], "stdin")
    problems.unknown_keys("stdin", given, _LINES)
    return Inputs(
        **{name: _line(given[name], name, reader) for name in _LINES if name in given},
    )


def _line(given: Any, name: str, reader: ValueReader) -> Value:
    """An object: a line that is anything else is none of a protocol."""
    place = inside("stdin", name)
    if not isinstance(given, dict) or "fields" not in given:
        reader.problems.wrong_value(place, "an object, written { fields = { … } }", given)
    return reader.read(given, place)
