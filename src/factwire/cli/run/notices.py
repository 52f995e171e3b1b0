"""Notices: what goes wrong while a turn goes on, without ending it.

Whoever watches a turn would otherwise see it succeed without its tools or its past, or wait for an
agent that asks its model again and again. Nothing is said twice, and an agent that warns without
end is not listened to for ever.
"""

from typing import Final

from rich.text import Text

from factwire.cli.sections.lines import LINE
from factwire.cli.terminal_text import harmless
from factwire.facts import Fact

_MOST: Final = 20
"""Notices of one command; what comes after them is in the diagnostics of the thread."""


class Notices:
    """Gathers them from facts, until they are taken."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._waiting: list[Text] = []

    def note(self, fact: Fact) -> None:
        message = _message(fact)
        if message is None or message in self._said or len(self._said) >= _MOST:
            return
        self._said.add(message)
        self._waiting.append(Text(f"! {message}", style="yellow"))

    def take(self) -> list[Text]:
        """Those that nobody has taken yet."""
        waiting, self._waiting = self._waiting, []
        return waiting


def _message(fact: Fact) -> str | None:
    """A warning, or that something is tried again."""
    told = fact.event_class == "runtime.warning" or (
        fact.event_class == "run.status" and fact.payload.get("status") == "retrying"
    )
    message = fact.payload.get("message") if told else None
    return harmless(message, 2 * LINE) if isinstance(message, str) else None
