"""What a converter of the Codex app server remembers between two lines.

Lines of both sides stand in one recording and do not say who wrote them. Requests of the server
and of the client count their ids apart, so that an answer is told by what was asked and, where
both asked under one id, by its form. The first thread is the one that is told; any other is a
subagent's, with a turn of its own that the main one does not end.
"""

from typing import Any

from factwire.projection.reading import listed, table, word
from factwire.sources.moments import moment_of_seconds
from factwire.sources.telling import Telling


class Session:
    """One connection, as far as its lines tell."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.thread_id: str | None = None
        self.prompts: list[str] = []
        self.pending: str | None = None
        self.prompted = self.greeted = False
        self.compacted = False
        self.sent: dict[str, str] = {}
        self.asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self.reasoned: set[str] = set()
        self.diffs: dict[str, str] = {}
        self.turns: dict[str, int] = {}
        self.used: dict[str, dict[str, int]] = {}
        self.total: dict[str, dict[str, int]] = {}
        self.resumed: set[str] = set()
        self.begun = False

    def speaker(self, params: dict[str, Any]) -> str | None:
        """The subagent whose thread this is of, or none for the main one."""
        thread = word(params, "threadId", "conversationId")
        if self.thread_id is None:
            self.thread_id = thread
        if thread is None or thread == self.thread_id:
            self.settle()
            return None
        self.open_agent(thread)
        return thread

    def open_agent(self, thread: str, **about: Any) -> None:
        """A subagent begins to work; each time it does, in another turn of its own."""
        if thread in self.tell.subagents or thread == self.thread_id:
            return
        self.turns[thread] = self.turns.get(thread, 0) + 1
        own = f"{thread}:turn-{self.turns[thread]}"
        self.tell.subagent(thread, task_id=thread, turn_id=own, **about)

    def settle(self, prompt: str | None = None) -> None:
        """A turn that was announced begins, with the prompt that is known by now."""
        if self.pending is None:
            return
        turn, self.pending = self.pending, None
        given = self.prompts.pop(0) if self.prompts else prompt
        self.tell.begin(given, turn_id=turn)
        self.prompted, self.greeted = given is not None, prompt is not None
        self.compacted = False
        self.reasoned.clear()
        self.diffs.clear()

    def tick(self, item: dict[str, Any]) -> None:
        """The time that a notification was sent at."""
        sent = item.get("emittedAtMs")
        if type(sent) is int:
            self.tell.at = moment_of_seconds(sent / 1_000) or self.tell.at


def input_text(content: Any) -> str | None:
    """The texts of what a person gave."""
    rows = map(table, listed(content) or ())
    return "\n".join(text for row in rows if row and (text := word(row, "text"))) or None


def named(value: Any) -> str | None:
    """A word, or the one key of an object: how the protocol writes its variants."""
    if isinstance(value, str):
        return value or None
    return next(iter(table(value) or ()), None)


def whole(value: Any) -> int | None:
    return value if type(value) is int else None
