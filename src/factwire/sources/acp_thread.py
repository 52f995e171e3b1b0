"""`AcpThread`: one session out of an Agent Client Protocol connection.

Chunks carry no end: a stretch of text or thought ends where something else begins, and each stretch
is a part of its own. Usage and cost count from the beginning of the session; a turn is told its own
share. Of a second session on the same connection only one remark is made.
"""

from typing import Any, Final

import msgspec

from factwire.projection.reading import number, table, word
from factwire.sources.telling import Telling

_MOST_COUNTED: Final = 2**53
_PLACES: Final = 9
"""Decimals of a cost; beyond them is what subtracting floats leaves behind."""
_COUNTED: Final = ("inputTokens", "outputTokens", "totalTokens")


class Stretch(msgspec.Struct, frozen=True):
    """Text or thought that is being written."""

    kind: str
    message_id: str
    part_id: str


class AcpThread:
    """The books of one session."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.session: str | None = None
        self.others: set[str] = set()
        self.loading: list[dict[str, Any]] | None = None
        self.stretch: Stretch | None = None
        self.stretches = 0
        self.titles: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.closed: set[str] = set()
        self.denied: set[str] = set()
        self.commands: dict[str, str] = {}
        self.exits: dict[str, dict[str, Any]] = {}
        self.used: dict[str, int] | None = {}
        self.cost: float | None = 0.0

    def follows(self, params: dict[str, Any], item: dict[str, Any]) -> bool:
        """Whether something is of the session that this thread is; the first named one is."""
        session = word(params, "sessionId")
        if session is None or session == self.session:
            return True
        if self.session is None:
            self.session = session
            self.tell.known(session_id=session)
            return True
        if session not in self.others:
            self.others.add(session)
            self.tell.warn("other_session", "a second session is on the stream; left out", item)
        return False

    # Turns

    def begin(self, prompt: str | None) -> None:
        """A prompt; one that is unanswered still was left without an end."""
        self._close()
        self.recalled()
        self.tell.begin(prompt)
        self.closed.clear()
        self.denied.clear()
        self.outputs.clear()
        self.titles.clear()
        self.stretches = 0

    def end(self, stop_reason: str | None) -> None:
        """A prompt is answered."""
        self._close()
        category, message = _STOPS.get(stop_reason or "", (None, ""))
        if stop_reason == "cancelled":
            self.tell.cancel("requested")
        elif category is not None:
            self.tell.fail(category, message, stopReason=stop_reason)
        else:
            self.tell.complete(stopReason=stop_reason)

    def fail(self, category: str, message: str, **said: Any) -> None:
        self._close()
        self.tell.fail(category, message, **said)

    def recall(self) -> None:
        """A session is taken up again; what it has used before is not known."""
        self.loading, self.used, self.cost = [], None, None

    def goes_on(self, session: str) -> None:
        """A session is taken up again whose history is known."""
        self.session, self.used, self.cost = session, None, None

    def recalled(self) -> None:
        """The history of a session that was taken up again is whole."""
        rows, self.loading = self.loading, None
        if rows:
            self.tell.fact("history.window.loaded", {"messages": rows})

    def close_commands(self) -> None:
        """Commands that run in a terminal of the client end with their turn, as far as is known."""
        for command_id in list(self.commands):
            self.exited(command_id, {"status": "interrupted"})

    def exited(self, command_id: str, said: dict[str, Any]) -> None:
        """A command has ended: as was said before, or as is said now."""
        known = self.exits.pop(command_id, said)
        if self.commands.pop(command_id, None) is not None:
            self.tell.fact("command.exited", {"commandId": command_id, **known})

    def _close(self) -> None:
        if self.tell.is_open:
            self.end_stretch()
            self.close_commands()

    # Text

    def write(self, kind: str, message_id: str | None, delta: str) -> None:
        """The next piece of text or thought."""
        known = self.stretch
        if known is None or known.kind != kind or message_id not in (None, known.message_id):
            self.end_stretch()
            self.stretches += 1
            named = message_id or f"{kind}-{self.stretches}"
            self.stretch = known = Stretch(kind, named, f"{named}:{self.stretches}")
        tell = self.tell.text if kind == "text" else self.tell.reasoning
        tell(known.message_id, delta, part_id=known.part_id)

    def end_stretch(self) -> None:
        """Something else begins."""
        known, self.stretch = self.stretch, None
        if known is None:
            return
        if known.kind == "text":
            self.tell.text_end(known.message_id, part_id=known.part_id)
        else:
            ids = {"message_id": known.message_id, "part_id": known.part_id}
            self.tell.fact("reasoning.completed", {}, **ids)

    # Costs

    def note_usage(self, usage: dict[str, Any]) -> None:
        """Tokens of the session so far; a sum that is smaller than before is no sum of all, and
        of one that counts from before this stream the share is not known.
        """
        sums = {name: value for name in _COUNTED if (value := count(usage, name)) is not None}
        if not sums:
            return
        before, self.used = self.used, sums
        if before is None:
            return
        if any(value < before.get(name, 0) for name, value in sums.items()):
            before = {}
        said = {name: value - before.get(name, 0) for name, value in sums.items()}
        self.tell.usage.update(said)
        self.tell.fact("cost.recorded", said)

    def note_cost(self, cost: dict[str, Any]) -> None:
        """What the session has cost so far, in dollars or not at all."""
        amount = number(cost, "amount")
        if amount is None or word(cost, "currency") != "USD" or not 0 <= amount <= _MOST_COUNTED:
            return
        before, self.cost = self.cost, amount
        if self.tell.is_open and before is not None and amount >= before:
            spent = self.tell.usage.get("totalCostUsd", 0) + amount - before
            self.tell.usage["totalCostUsd"] = round(spent, _PLACES)


def count(holder: dict[str, Any], name: str) -> int | None:
    """A whole number that can count something."""
    value = holder.get(name)
    return value if type(value) is int and 0 <= value <= _MOST_COUNTED else None


def text_of(block: Any) -> str | None:
    """The text of a content block, if it is one of text."""
    holder = table(block) or {}
    return word(holder, "text") if word(holder, "type") == "text" else None


_STOPS: Final = {
    "max_tokens": ("output_too_long", "the model reached its limit of tokens"),
    "max_turn_requests": ("turn_limit_reached", "the agent reached its limit of requests"),
    "refusal": ("refused", "the agent refused to go on"),
}
