"""`OpenCodeThread`: one conversation out of the events of a whole OpenCode server.

A server sends the events of all its sessions down one stream. The first that does something is the
thread; sessions below it are its subagents; of any other only one remark is made. A turn is a
message of the user's, begun when its words are there, and ended when its session is idle.
What OpenCode repeats about a message after that end (it does, after an abort) changes nothing.
"""

from datetime import UTC, datetime
from typing import Any, Final

from factwire.projection.reading import number, table, word
from factwire.sources.telling import Telling

_CATEGORIES: Final = {
    "ProviderAuthError": "unauthorized",
    "MessageOutputLengthError": "output_too_long",
    "StructuredOutputError": "invalid_output",
    "ContextOverflowError": "context_overflow",
    "ContentFilterError": "content_filtered",
}
_STATUSES: Final[dict[float, str]] = {
    400: "invalid_request",
    401: "unauthorized",
    403: "unauthorized",
    429: "rate_limited",
}
"""What a model's server answered → what that means."""

_SERVER_ERRORS: Final = 500


class OpenCodeThread:
    """The books of one conversation; what one turn needs goes with its end."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.moment = 0.0
        self.root: str | None = None
        self.folder: str | None = None
        self.titles: dict[str, str | None] = {}
        self.others: set[str] = set()
        self.style: str | None = None
        self.users: set[str] = set()
        self.waiting: str | None = None
        self.begun = False
        self.held: list[dict[str, Any]] = []
        self.messages: dict[str, str | None] = {}
        self.over: dict[str | None, set[str]] = {}
        self.parts: dict[str, list[str]] = {}
        self.errors: dict[str | None, dict[str, Any]] = {}
        self.said: dict[str | None, str] = {}
        self.finish: str | None = None
        self.compaction: str | None = None
        self.summaries: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        """Drop what only one turn needs."""
        self.kinds: dict[str, tuple[str, str]] = {}
        self.closed: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.reasoned: dict[str, int] = {}
        self.calls: dict[str, str] = {}
        self.denied: set[str] = set()
        self.finish = None
        self.retrying = False

    # Sessions

    def follows(self, session: str | None, item: dict[str, Any]) -> bool:
        """Whether a session is part of this conversation."""
        if session is None or session == self.root or session in self.titles:
            return True
        if self.root is None:
            self.root = session
            self.tell.known(session_id=session)
            return True
        if session not in self.others:
            self.others.add(session)
            self.tell.warn("other_session", "a second session is on the stream; left out", item)
        return False

    def note_session(self, info: dict[str, Any]) -> None:
        """A session below this one is a subagent."""
        self.folder = word(info, "directory") or self.folder
        session, parent = word(info, "id"), word(info, "parentID")
        if session is None or parent is None or session in (self.root, *self.titles):
            return
        if self.root is None:
            self.root = parent
            self.tell.known(session_id=parent)
        if parent == self.root or parent in self.titles:
            self.child(session, parent, word(info, "title"))

    def child(self, session: str, parent: str, title: str | None) -> None:
        """A subagent starts to work."""
        self.ensure()
        self.titles[session] = title or self.titles.get(session)
        above = f"{parent}:task" if parent in self.tell.subagents else None
        self.tell.subagent(session, title=self.titles[session], parentTaskId=above)

    def speaker(self, session: str | None) -> str | None:
        """The subagent that a session is, if it is one."""
        return session if session in self.titles else None

    # Turns

    def asked(self, session: str | None, message_id: str) -> None:
        """A message of the user's, or of whoever sends a subagent off."""
        if message_id in self.users:
            return
        self.users.add(message_id)
        if session is not None and session in self.titles:
            self.child(session, self.root or "", None)
        elif not self.begun:
            self.waiting = message_id

    def ensure(self, prompt: str | None = None) -> None:
        """Everything is done in a turn: that of the message that waits, or one without."""
        if self.begun:
            return
        self.begun = True
        self.tell.begin(prompt, turn_id=self.waiting)
        self.waiting = None
        held, self.held = self.held, []
        for part in held:
            self.attach(part)

    def attach(self, part: dict[str, Any]) -> None:
        """What came with a message of the user's."""
        said = {
            "kind": word(part, "type"),
            "title": word(part, "filename", "name", "description"),
            "mediaType": word(part, "mime"),
        }
        self.tell.fact("context.attached", said)

    def answers(self, message_id: str, session: str | None) -> bool:
        """Whether a message is of a turn that goes on; one that is new is."""
        if message_id in self.over.get(session, ()):
            return False
        self.ensure()
        self.messages.setdefault(message_id, session)
        return True

    def end(self, session: str | None) -> None:
        """A session has nothing more to do."""
        error = self.errors.pop(session, None)
        ended = {each for each, of in self.messages.items() if of == session}
        if ended:
            self.over[session] = ended
            self.messages = {m: s for m, s in self.messages.items() if m not in ended}
        if session is not None and session in self.titles:
            self._end_child(session, error)
        elif self.begun or self.waiting is not None:
            self.ensure()
            self._end_turn(error)

    def _end_child(self, session: str, error: dict[str, Any] | None) -> None:
        output = self.said.pop(session, None)
        if error is None:
            self.tell.subagent_end(session, "subagent.completed", output=output)
            return
        category, message = failure_of(error)
        self.tell.subagent_end(
            session, "subagent.failed", failureCategory=category, message=message
        )

    def _end_turn(self, error: dict[str, Any] | None) -> None:
        if self.compaction is not None:
            said = {"compactionId": self.compaction, "failureCategory": "interrupted"}
            self.tell.fact("context.compaction.failed", said)
            self.compaction = None
        if error is None:
            self.tell.complete(stopReason=self.finish)
        elif word(error, "name") == "MessageAbortedError":
            self.tell.cancel("aborted")
        else:
            category, message = failure_of(error)
            self.tell.fail(category, message, code=word(error, "name"))
        self.begun = False
        self.said.clear()
        self._forget()

    def tick(self, properties: dict[str, Any]) -> None:
        """The time that an event tells; it never goes back."""
        moment = number(properties, "time", "timestamp")
        if moment is None:
            times = table((table(properties.get("info")) or {}).get("time")) or {}
            moment = number(times, "completed", "updated", "created")
        if moment is not None and moment > self.moment:
            at = rfc3339(moment)
            if at is not None:
                self.moment, self.tell.at = moment, at


def failure_of(error: dict[str, Any]) -> tuple[str, str]:
    """The category of a named error, and its words."""
    name, data = word(error, "name") or "", table(error.get("data")) or {}
    message = word(data, "message") or name or "OpenCode failed"
    status = number(data, "statusCode")
    known = _CATEGORIES.get(name) or _STATUSES.get(status or 0)
    if known is None and status is not None and status >= _SERVER_ERRORS:
        known = "provider_unavailable"
    return known or "provider_error", message


def rfc3339(milliseconds: float) -> str | None:
    """A moment as facts state it; none, if there is no such moment."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
