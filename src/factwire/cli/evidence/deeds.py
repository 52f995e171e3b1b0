"""What was asked and done in a pack, from its own facts, for the rows that a person is shown.

The summary names calls and decisions; what was asked, and with which command or path a tool was
called, stands in the facts. Each of them is verified before it is read, and of a long run only the
beginning is read, so that showing a pack takes no longer for years than for a day.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, cast

from factwire.cli.sections.lines import shown
from factwire.facts import Fact, id_of

READ: Final = 20_000
"""Facts that are read before a pack is shown: a fraction of a second."""

_TELLING: Final = ("command", "argv", "path", "file_path", "url", "query", "pattern")
"""Arguments that say what a call is about, the most telling first."""


class Deeds:
    """Prompts by turn, and by call what it was about."""

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        self._calls: dict[str, str] = {}

    def about(self, call: str | None) -> str | None:
        """What a call was about, where its facts say so."""
        return None if call is None else self._calls.get(call)

    def note(self, fact: Fact) -> None:
        turn, call = id_of(fact, "turnId"), id_of(fact, "toolCallId")
        prompt = fact.payload.get("prompt")
        if turn is not None and isinstance(prompt, str) and prompt:
            self.prompts.setdefault(turn, prompt)
        about = _about(fact.payload.get("args"))
        if call is not None and about is not None:
            self._calls[call] = about


def deeds_of(facts: Iterable[Fact]) -> Deeds:
    """What the first facts of a pack say was asked and done."""
    found = Deeds()
    for fact in islice(facts, READ):
        found.note(fact)
    return found


def _about(args: object) -> str | None:
    if not isinstance(args, dict):
        return None
    known = cast("dict[str, Any]", args)
    told = (known[name] for name in _TELLING if known.get(name))
    first = next(told, None)
    return None if first is None else shown(first)
