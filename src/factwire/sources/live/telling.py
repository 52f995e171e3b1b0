"""`LiveTelling`: the bookkeeper of a turn that the runtime runs.

The runtime has begun the turn and writes its end; ids of facts and their times are its own. What a
source calls its things need not be new on the thread (`call_1` is in every conversation of some
models), and answers go by the id of a question, so questions get ids of ours and everything else
that was there before this turn gets a name that was not.
"""

from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.facts.vocabulary import ACTION_CLOSERS
from factwire.projection import ProjectionState
from factwire.runtime.minting import Scope
from factwire.runtime.provider import StartTurn
from factwire.sources.telling import Keep, Telling, name_raw

_TERMINALS: Final = frozenset({"turn.completed", "turn.failed", "turn.canceled"})
_NAMED: Final = ("message_id", "part_id", "tool_call_id")


class LiveTelling(Telling):
    """Makes the facts of one turn. `terminal` is how the turn ended, once the source has said so;
    it is held back, because what goes on beside the turn may have more to say.
    """

    def __init__(
        self, source: str, turn: StartTurn, *, keep: Keep = name_raw, keeps_unknown: bool = False
    ) -> None:
        scope, mint = turn.host.scope, turn.host.mint
        super().__init__(source, thread_id=turn.thread_id, at=mint.clock(), keep=keep)
        self.turn_id = turn.turn_id
        self.terminal: Fact | None = None
        self._scope = scope
        self._mint = mint
        self._keeps_unknown = keeps_unknown
        self._told_before = _names(turn.history)
        self._names: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._about: dict[str, dict[str, Any]] = {}
        self._decided: set[str] = set()
        self._alone: set[str] = set()
        self.own_ids: dict[str, Any] = {}

    @property
    def is_alone(self) -> bool:
        """Whether something that outlives the answer still works."""
        return any(name in self.subagents for name in self._alone)

    def question(self, action_id: str) -> str | None:
        """What the source calls a question of ours."""
        return next((theirs for theirs, ours in self._asked.items() if ours == action_id), None)

    def decided(self, action_id: str) -> None:
        """The runtime has told what was decided; that the source hears of it is no news."""
        self._decided.add(action_id)

    def show(self, question: str, **about: Any) -> None:
        """What the next question of this name of the source's is shown with."""
        self._about[question] = about

    def session(self, name: str) -> None:
        """What the source calls this thread; the next turn goes on with it."""
        self.fact("session.updated", {"agentSessionId": name})

    def begin(self, prompt: str | None = None, *, turn_id: str | None = None, **said: Any) -> None:
        """The turn has begun already; a source that answers again takes back the end it told."""
        del prompt, turn_id, said
        self.terminal = None

    def close(self) -> None:
        """Nothing more comes, of what works beside the turn either."""
        self._close_all("interrupted", "the agent ended first", everything=True)

    def known(self, **ids: Any) -> None:
        """Whose facts these are, the runtime says; what the source calls itself is noted."""
        self.own_ids.update(ids)

    def warn(self, code: str, message: str, item: Any) -> None:
        """An item that is not known is named, and kept only where that is wanted."""
        data = item if isinstance(item, bytes) else msgspec.json.encode(item)
        ref = self.keep(data) if self._keeps_unknown else name_raw(data)
        self.fact("runtime.warning", {"code": code, "message": message}, ref_ids=(ref,))

    def drain(self) -> list[Fact]:
        told = super().drain()
        for fact in told:
            if fact.event_class in _TERMINALS:
                self.terminal = fact
        return [fact for fact in told if fact.event_class not in _TERMINALS]

    def _over(self, status: str) -> None:
        """What follows the end is the runtime's to tell."""

    def _beside(self, scope: Scope, turn_id: str | None) -> Scope:
        if turn_id is not None:
            self._alone.add(scope.subagent_id or "")
        return scope

    def _ends_with_turn(self, scope: Scope) -> bool:
        return scope.subagent_id not in self._alone

    def _say(self, scope: Scope, event_class: str, said: dict[str, Any], **fields: Any) -> None:
        if fields.get("control") == "steer":
            # What a person says into a turn, the runtime has told already.
            return
        for field in _NAMED:
            if fields.get(field) is not None:
                fields[field] = self._name(fields[field])
        if fields.get("action_id") is not None:
            asked = self._action(event_class, fields["action_id"])
            if event_class in ACTION_CLOSERS and asked in self._decided:
                return
            if event_class == "action.required":
                said = {**_question(said), **self._about.pop(fields["action_id"], {})}
            fields["action_id"] = asked
        super()._say(scope, event_class, said, **fields)

    def _action(self, event_class: str, given: str) -> str:
        """Our id of a question; a source may use the name of one that was answered again."""
        if event_class == "action.required" or given not in self._asked:
            self._asked[given] = self._mint.ids("act")
        return self._asked[given]

    def _name(self, given: str) -> str:
        known = self._names.get(given)
        if known is None:
            known = given if given not in self._told_before else f"{given}:{self.turn_id}"
            self._names[given] = known
        return known


def _question(said: dict[str, Any]) -> dict[str, Any]:
    """What is asked, in words; a source that has none asks about its tool."""
    tool = said.get("toolName")
    if said.get("prompt") is not None or not isinstance(tool, str):
        return said
    return {**said, "prompt": f"Run {tool}?"}


def _names(history: ProjectionState | None) -> frozenset[str]:
    """What the thread's calls, messages and parts are called already."""
    if history is None:
        return frozenset()
    messages = {message.message_id for message in history.messages}
    parts = {part.part_id for message in history.messages for part in message.parts}
    return frozenset({*history.tools, *messages, *parts})
