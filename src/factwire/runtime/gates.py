"""Append gates: what must hold before a fact is written, in this order.

Schema, sequence, tool lifecycle, approval, one active turn. A batch passes whole or not at all: it
is tried on a copy, and one fact that is refused leaves nothing behind. Pieces of text have their
schema checked by the intake behind the gates, which does it for many at once.
"""

from collections.abc import Sequence
from typing import Final

from factwire.facts import Fact, class_issues, id_of, is_valid
from factwire.facts.delta_fast_path import TEXT_PIECES
from factwire.facts.vocabulary import ACTION_CLOSERS, TURN_TERMINALS
from factwire.projection import ProjectionState
from factwire.runtime.errors import GateRefused, TurnAlreadyActive
from factwire.runtime.limits import ENDED_TURNS

_NEEDS_OPEN_TOOL: Final = frozenset(
    {
        "tool.args",
        "tool.args.delta",
        "tool.output.delta",
        "tool.progress",
        "tool.result",
        "tool.failed",
    }
)
_GIVES_OUTPUT: Final = frozenset({"tool.output.delta", "tool.result"})
_TERMINALS: Final = frozenset(TURN_TERMINALS)
_EXECUTION: Final = frozenset(
    {"tool", "file", "patch", "command", "test", "action", "model", "reasoning", "sandbox"}
)
_CLOSERS: Final = frozenset(ACTION_CLOSERS)
_DENIALS: Final = frozenset({"deny", "denied", "reject", "rejected"})
_QUESTIONS: Final = frozenset({"structured_input", "clarification"})
"""Requests by which a call asks for words: it goes on without them, and nobody forbids it."""

_ACTING: Final = frozenset(
    [
        *_NEEDS_OPEN_TOOL,
        *_TERMINALS,
        *_CLOSERS,
        "tool.started",
        "action.required",
        "turn.submitted",
        "turn.started",
    ]
)
"""The classes that a gate looks at or that move one; any other passes after the schema."""


class Gates:
    """What is open on one thread. `stated` is the last sequence that the agent stated itself."""

    __slots__ = ("active_turn", "denied", "ended", "open_actions", "open_tools", "stated")

    def __init__(self) -> None:
        self.stated: int | None = None
        self.active_turn: str | None = None
        self.ended: dict[str, None] = {}
        self.open_tools: dict[str, str | None] = {}
        self.open_actions: dict[str, str | None] = {}
        self.denied: set[str] = set()

    @classmethod
    def of(cls, state: ProjectionState) -> "Gates":
        """The gates of a thread as its state has it."""
        gates = cls()
        gates.active_turn = state.runtime.active_turn_id
        for action in state.actions.values():
            if action.status == "pending":
                held = _call_awaiting(action.action_type, action.tool_call_id)
                gates.open_actions[action.action_id] = held
        for tool in state.tools.values():
            if tool.completed_at is None and tool.turn_id == gates.active_turn:
                gates.open_tools[tool.tool_call_id] = tool.turn_id
        for node in state.graph.nodes.values():
            if node.node_type == "turn" and node.status in ("completed", "failed", "canceled"):
                gates._remember(node.node_id.removeprefix("turn:"))
        return gates

    def copy(self) -> "Gates":
        twin = Gates()
        twin.stated = self.stated
        twin.active_turn = self.active_turn
        twin.ended = dict(self.ended)
        twin.open_tools = dict(self.open_tools)
        twin.open_actions = dict(self.open_actions)
        twin.denied = set(self.denied)
        return twin

    def after_batch(self, batch: Sequence[Fact]) -> "Gates":
        """The gates after a batch, if all of it passes; these stay as they are."""
        trial = self.copy()
        for fact in batch:
            self._check_schema(fact)
            trial.feed(fact)
        return trial

    def feed(self, fact: Fact) -> None:
        """Let one fact through, or raise and change nothing."""
        if fact.event_class not in TEXT_PIECES:
            self._check_schema(fact)
        self._check_sequence(fact)
        if fact.event_class in _ACTING:
            self._check_tool(fact)
            self._check_approval(fact)
            self._check_turn(fact)
            self._move(fact)
        elif self.ended:
            self._check_ended(fact)
        self.stated = fact.sequence if fact.sequence is not None else self.stated

    def _check_schema(self, fact: Fact) -> None:
        issues = class_issues(fact)
        if issues and not is_valid(issues):
            first = next(issue for issue in issues if not is_valid([issue]))
            raise GateRefused(first.code, f"{first.path}: {first.message}", fact.id)

    def _check_sequence(self, fact: Fact) -> None:
        if None not in (fact.sequence, self.stated) and fact.sequence != (self.stated or 0) + 1:
            message = f"expected sequence {(self.stated or 0) + 1}, got {fact.sequence}"
            raise GateRefused("sequence_gap", message, fact.id)

    def _check_tool(self, fact: Fact) -> None:
        name, call = fact.event_class, id_of(fact, "toolCallId")
        if name == "tool.started" and call in self.open_tools:
            raise GateRefused("tool_already_open", f"tool {call} is open already", fact.id)
        if name in _NEEDS_OPEN_TOOL and call not in self.open_tools:
            raise GateRefused("tool_not_open", f"tool {call} was not started", fact.id)

    def _check_approval(self, fact: Fact) -> None:
        name, call = fact.event_class, id_of(fact, "toolCallId")
        if name == "action.required" and id_of(fact, "actionId") in self.open_actions:
            raise GateRefused("action_already_open", "this action is open already", fact.id)
        if name in _CLOSERS and id_of(fact, "actionId") not in self.open_actions:
            raise GateRefused("action_not_open", "this action is not open", fact.id)
        if name in _GIVES_OUTPUT and call is not None:
            if call in self.open_actions.values():
                raise GateRefused("approval_pending", f"tool {call} waits for a decision", fact.id)
            if call in self.denied:
                raise GateRefused("approval_denied", f"tool {call} was not allowed", fact.id)

    def _check_turn(self, fact: Fact) -> None:
        name, turn = fact.event_class, id_of(fact, "turnId")
        if name in ("turn.submitted", "turn.started"):
            if self.active_turn not in (None, turn) and name == "turn.started":
                raise TurnAlreadyActive(fact.thread_id, self.active_turn or "")
            if turn in self.ended:
                raise GateRefused("turn_ended", f"turn {turn} has ended", fact.id)
        else:
            self._check_ended(fact)

    def _check_ended(self, fact: Fact) -> None:
        name, turn = fact.event_class or "", id_of(fact, "turnId")
        if turn in self.ended and (name in _TERMINALS or name.partition(".")[0] in _EXECUTION):
            raise GateRefused("turn_ended", f"{name} after the end of turn {turn}", fact.id)

    def _move(self, fact: Fact) -> None:
        name = fact.event_class or ""
        call, action = id_of(fact, "toolCallId"), id_of(fact, "actionId") or ""
        turn = id_of(fact, "turnId")
        if name == "tool.started" and call is not None:
            self.open_tools[call] = turn
            self.denied.discard(call)
        elif name in ("tool.result", "tool.failed") and call is not None:
            self.open_tools.pop(call, None)
        elif name == "action.required":
            self.open_actions[action] = _call_awaiting(fact.payload.get("actionType"), call)
        elif name in _CLOSERS:
            self._decide(fact, self.open_actions.pop(action, None))
        elif name == "turn.started":
            self.active_turn = turn
        elif name in _TERMINALS:
            self._end(turn)

    def _decide(self, fact: Fact, call: str | None) -> None:
        decision = fact.payload.get("decision")
        allowed = fact.event_class == "action.resolved" and decision not in _DENIALS
        if call is not None and not allowed:
            self.denied.add(call)

    def _end(self, turn: str | None) -> None:
        if turn is not None:
            self._remember(turn)
        if self.active_turn == turn:
            self.active_turn = None
            self.stated = None
        self.open_tools = {call: of for call, of in self.open_tools.items() if of != turn}

    def _remember(self, turn: str) -> None:
        self.ended[turn] = None
        if len(self.ended) > ENDED_TURNS:
            del self.ended[next(iter(self.ended))]


def _call_awaiting(action_type: object, call: str | None) -> str | None:
    """The call that waits for a decision, and that a no ends."""
    return None if action_type in _QUESTIONS else call
