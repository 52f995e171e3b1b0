"""How far Claude Code is, by what it says of itself.

A result ends an answer, and another may follow: to what came back from the background, or to what a
person said meanwhile. It says itself when it is idle; what it was told and has not taken up yet is
still owed an answer. One that tells no states is done with its result.
"""

from typing import Any, Final

from factwire.projection.reading import table, word
from factwire.sources.claude_code.session import Session

_HOLDS: Final = ("hooks_applied", "hook_on_failure_supported")
"""What it says of itself where nothing is done without the word of the host's hook."""


class Progress:
    """Of one process. `is_ready` means that it has begun to listen, `is_held` that it does nothing
    before the policy has spoken.
    """

    def __init__(self, session: Session) -> None:
        self.is_ready = False
        self.is_held = False
        self.refused: str | None = None
        self.session_id: str | None = None
        self._session = session
        self._first_request: str | None = None
        self._state: str | None = None
        self._has_answered = False
        self._owed: set[str] = set()
        self._confirms = False

    def greeted(self, line: dict[str, Any]) -> None:
        """It was asked to begin."""
        self._first_request = line["request_id"]

    def said(self, line: dict[str, Any]) -> None:
        """It was told something."""
        self._owed.add(line["uuid"])

    @property
    def has_answered(self) -> bool:
        return self._has_answered

    @property
    def is_idle(self) -> bool:
        """Whether no further answer is to be expected, but for what runs in the background."""
        if self._state is None:
            return self._has_answered and not self._session.background
        owes = self._confirms and self._owed
        return self._has_answered and self._state == "idle" and not owes

    @property
    def is_over(self) -> bool:
        return self.is_idle and not self._session.shells

    def is_lost(self, item: Any) -> bool:
        """Whether this says that there is no such conversation to go on with: a failure before
        anything was begun.
        """
        said = table(item) or {}
        failed = word(said, "type") == "result" and said.get("is_error") is True
        return failed and not self.is_ready

    def note(self, item: dict[str, Any]) -> None:
        kind, subtype = word(item, "type"), word(item, "subtype")
        if kind == "result":
            self._has_answered = True
        elif kind == "control_response":
            self._note_response(table(item.get("response")) or {})
        elif kind == "command_lifecycle":
            self._confirms = True
            if word(item, "state") != "queued":
                self._owed.discard(word(item, "command_uuid") or "")
        elif kind == "system" and subtype == "session_state_changed":
            self._state = word(item, "state")
        elif kind == "system" and subtype == "init":
            self.is_ready = True
            self.session_id = word(item, "session_id")

    def _note_response(self, response: dict[str, Any]) -> None:
        if word(response, "request_id") == self._first_request:
            said = table(response.get("response")) or {}
            self.is_ready = True
            self.is_held = all(said.get(name) is True for name in _HOLDS)
            self.refused = word(response, "error")
