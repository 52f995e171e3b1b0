"""`ObservedTelling`: the bookkeeper of a run in somebody else's process.

Nobody here knows what is on the thread already, so turns, facts and questions have ids of their
own, and what a source calls its calls and messages is told apart by the turn.
"""

from typing import Any, Final

from factwire.runtime.minting import Mint, new_id
from factwire.sources.telling import Telling

_NAMED: Final = ("message_id", "part_id", "tool_call_id")


class ObservedTelling(Telling):
    """Makes the facts of one run. `now` is when what is being told happened."""

    def __init__(
        self, source: str, *, thread_id: str, runtime_id: str, parent: str | None, shared: bool
    ) -> None:
        super().__init__(source, thread_id=thread_id)
        self.now = self.at
        self._shared = shared
        self._asked: dict[str, str] = {}
        self._scope = self._scope.within(parent_thread_id=parent)
        self._mint = Mint(runtime_id, clock=lambda: self.now)

    def begin(self, prompt: str | None = None, *, turn_id: str | None = None, **said: Any) -> None:
        super().begin(prompt, turn_id=turn_id or new_id("trn"), **said)

    def _say(self, scope: Any, event_class: str, said: dict[str, Any], **fields: Any) -> None:
        if self._shared:
            for field in _NAMED:
                if fields.get(field) is not None:
                    fields[field] = f"{fields[field]}:{scope.turn_id}"
        action = fields.get("action_id")
        if action is not None:
            # A source may give the next question the name of one that was answered.
            if event_class == "action.required" or action not in self._asked:
                self._asked[action] = new_id("act")
            fields["action_id"] = self._asked[action]
        super()._say(scope, event_class, said, **fields)
