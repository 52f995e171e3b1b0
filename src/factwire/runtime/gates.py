"""Append gates: what must hold before a fact is written, in this order.

Schema, sequence, tool lifecycle, approval, one active turn. A batch passes whole or not at all: it
is tried on a copy, and one fact that is refused leaves nothing behind. Pieces of text have their
schema checked by the intake behind the gates, which does it for many at once.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from factwire.facts import Fact, class_issues, id_of, is_valid
from factwire.facts.classes.class_tables import (
    EXECUTION_FAMILIES,
    MOVES,
    TEXT_PIECES,
    TURN_TERMINALS,
)
from factwire.facts.classes.specification import Move
from factwire.facts.open_work import AnsweredActions, LastIds, OpenWork, find_subject_id
from factwire.facts.outcomes import (
    QUESTIONS,
    WITHDRAWN,
    answer_of,
    build_answer,
    call_outcome,
    is_allowing,
)
from factwire.projection import ProjectionState
from factwire.projection.actions import Action, is_answered
from factwire.projection.tools import is_open
from factwire.projection.turns import has_plain_turn
from factwire.runtime.errors import GateRefused, TurnAlreadyActive
from factwire.runtime.limits import ANSWERED_ACTIONS, ENDED_TURNS


class _Refusal(msgspec.Struct, frozen=True):
    """What is said to a fact about something that is open already, or is not open."""

    already_open: tuple[str, str]
    not_open: tuple[str, str]


_REFUSALS: Final = {
    "tool": _Refusal(
        already_open=("tool_already_open", "tool {} is open already"),
        not_open=("tool_not_open", "tool {} was not started"),
    ),
    "action": _Refusal(
        already_open=("action_already_open", "this action is open already"),
        not_open=("action_not_open", "this action is not open"),
    ),
}
"""What the gates hold to; patches, commands and tests pass, and the verifier looks at them. An id
is open or not whatever the turn, where the verifier takes each turn by itself.
"""

_GATED: Final = {name: move for name, move in MOVES.items() if move.subject in _REFUSALS}
_EXECUTION: Final = EXECUTION_FAMILIES - {"permission"}
"""What is refused after the end of its turn; the verifier counts permissions too."""

OUTPUT_CLASSES: Final = frozenset({"tool.output.delta", "tool.result"})
_TURN_CLASSES: Final = frozenset([*TURN_TERMINALS, "turn.submitted", "turn.started"])


class Gates:
    """What is open on one thread. `stated` is the last sequence that the agent stated itself."""

    __slots__ = (
        "_answers",
        "_awaiting",
        "_calls",
        "_work",
        "active_turn",
        "denied",
        "stated",
    )

    def __init__(self, work: OpenWork | None = None) -> None:
        self.stated: int | None = None
        self.active_turn: str | None = None
        self.denied: set[str] = set()
        self._work = work or OpenWork(LastIds(ENDED_TURNS))
        self._answers = AnsweredActions(ANSWERED_ACTIONS)
        self._awaiting: dict[str, str] = {}
        self._calls: dict[str, str] = {}

    @classmethod
    def of(cls, state: ProjectionState) -> "Gates":
        """The gates of a thread as its state has it."""
        gates = cls()
        gates.active_turn = state.runtime.active_turn_id
        for action in state.actions.values():
            gates._restore_action(action)
        for tool in state.tools.values():
            if is_open(tool) and tool.turn_id == gates.active_turn:
                gates._work.open(tool.turn_id, "tool", tool.tool_call_id)
                if _is_denied(state.actions.get(tool.action_id or "")):
                    gates.denied.add(tool.tool_call_id)
        for node in state.graph.nodes.values():
            if node.node_type == "turn" and node.status in ("completed", "failed", "canceled"):
                gates._work.remember_end(node.node_id.removeprefix("turn:"))
        for turn in state.turns.values():
            is_beside = turn.entity is not None
            gates._work.begin_turn(turn.turn_id, turn.task_id, turn.worker_id, beside=is_beside)
        gates._work.restore_running(gates.active_turn, has_plain_turn=has_plain_turn(state.turns))
        return gates

    def _restore_action(self, action: Action) -> None:
        if action.status == "pending":
            self._work.open(action.turn_id, "action", action.action_id)
            self._await(action.action_id, action.action_type, action.tool_call_id)
        elif is_answered(action):
            answer = build_answer(action.status, action.decision, action.response)
            self._answers.add(action.action_id, answer)
        elif action.status in ("cancelled", "closed"):
            self._answers.add(action.action_id, WITHDRAWN)

    @property
    def open_tools(self) -> dict[str, str | None]:
        """Each call that is open, and its turn."""
        return {call: turn or None for call, turn in self._work.list_open("tool")}

    @property
    def open_actions(self) -> tuple[str, ...]:
        """Each request that waits for an answer."""
        return tuple(action for action, _ in self._work.list_open("action"))

    def list_requests(self, call: str | None) -> list[str]:
        """The open requests of a call."""
        return [action for action, asking in self._calls.items() if asking == call]

    def is_withdrawn_again(self, fact: Fact) -> bool:
        """Whether a fact withdraws a request that has been withdrawn."""
        if answer_of(fact) != WITHDRAWN:
            return False
        return self._answers.get(find_subject_id(fact, "action") or "") == WITHDRAWN

    def copy(self) -> "Gates":
        twin = Gates(self._work.copy())
        twin.stated = self.stated
        twin.active_turn = self.active_turn
        twin.denied = set(self.denied)
        twin._answers = self._answers.copy()
        twin._awaiting = dict(self._awaiting)
        twin._calls = dict(self._calls)
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
        move = _GATED.get(fact.event_class or "")
        if move is not None:
            self._feed_move(fact, move)
        elif fact.event_class in _TURN_CLASSES:
            self._feed_turn(fact, id_of(fact, "turnId"))
        elif self._work.ended:
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

    def _feed_move(self, fact: Fact, move: Move) -> None:
        subject_id = find_subject_id(fact, move.subject)
        opened_in = self._work.find_turn(move.subject, subject_id)
        self._check_ended(fact)
        if opened_in is None and self.is_withdrawn_again(fact):
            return
        if subject_id is not None and opened_in is None:
            self._check_answer(fact, move, subject_id)
        if subject_id is None or (opened_in is None) != (move.does == "open"):
            refusal = _REFUSALS[move.subject]
            code, message = refusal.not_open if opened_in is None else refusal.already_open
            raise GateRefused(code, message.format(subject_id), fact.id)
        if fact.event_class in OUTPUT_CLASSES:
            self._check_approval(fact, subject_id)
        if move.does == "open":
            self._work.open(id_of(fact, "turnId"), move.subject, subject_id)
        elif move.does == "close":
            self._work.close(opened_in, move.subject, subject_id)
        self._follow_move(fact, move, subject_id)

    def _follow_move(self, fact: Fact, move: Move, subject_id: str) -> None:
        """What a move means for the requests that calls wait for."""
        if move.subject == "tool":
            if move.does == "open":
                self.denied.discard(subject_id)
            elif move.does == "close" and call_outcome(fact) == "canceled":
                self._withdraw(self.list_requests(subject_id))
        elif move.does == "open":
            self._answers.pop(subject_id, None)
            self._await(subject_id, fact.payload.get("actionType"), id_of(fact, "toolCallId"))
        else:
            self._answers.add(subject_id, answer_of(fact))
            self._calls.pop(subject_id, None)
            self._decide(fact, self._awaiting.pop(subject_id, None))

    def _withdraw(self, actions: Iterable[str]) -> None:
        """Nobody answers what a call or a turn asked that is over, as a projection reads it, too.
        Whoever runs the agent writes that down (`ActionRequests`).
        """
        for action_id in actions:
            self._work.close(self._work.find_turn("action", action_id), "action", action_id)
            self._answers.add(action_id, WITHDRAWN)
            self._awaiting.pop(action_id, None)
            self._calls.pop(action_id, None)

    def _check_answer(self, fact: Fact, move: Move, action_id: str) -> None:
        """Refuse another answer than the one that a closed action has."""
        closes = move.subject == "action" and move.does == "close"
        if closes and self._answers.find_conflict(action_id, answer_of(fact)):
            message = f"action {action_id} was answered otherwise before"
            raise GateRefused("action_already_decided", message, fact.id)

    def _check_approval(self, fact: Fact, call: str) -> None:
        if call in self._awaiting.values():
            raise GateRefused("approval_pending", f"tool {call} waits for a decision", fact.id)
        if call in self.denied:
            raise GateRefused("approval_denied", f"tool {call} was not allowed", fact.id)

    def _feed_turn(self, fact: Fact, turn: str | None) -> None:
        if not self._work.is_of_thread(fact):
            self._feed_turn_beside(fact, turn)
            return
        if fact.event_class in TURN_TERMINALS:
            self._check_ended(fact)
            self._end(turn)
            return
        is_start = fact.event_class == "turn.started"
        if is_start and self.active_turn not in (None, turn):
            raise TurnAlreadyActive(fact.thread_id, self.active_turn or "")
        if turn in self._work.ended:
            raise GateRefused("turn_ended", f"turn {turn} has ended", fact.id)
        self._work.open_turn(fact)
        if is_start:
            self.active_turn = turn

    def _feed_turn_beside(self, fact: Fact, turn: str | None) -> None:
        """A turn of a subagent, a job or a task elsewhere: it runs beside that of the thread."""
        if fact.event_class not in TURN_TERMINALS:
            self._work.open_turn(fact)
        elif self._work.is_turn_of(fact):
            self._check_ended(fact)
            self._end(turn)

    def _check_ended(self, fact: Fact) -> None:
        name, turn = fact.event_class or "", id_of(fact, "turnId")
        if turn in self._work.ended and (
            name in TURN_TERMINALS or name.partition(".")[0] in _EXECUTION
        ):
            raise GateRefused("turn_ended", f"{name} after the end of turn {turn}", fact.id)

    def _await(self, action_id: str, action_type: object, call: str | None) -> None:
        """A call that waits for a decision, and that a no ends."""
        if call is not None:
            self._calls[action_id] = call
        if call is not None and action_type not in QUESTIONS:
            self._awaiting[action_id] = call
            self.denied.discard(call)

    def _decide(self, fact: Fact, call: str | None) -> None:
        if call is not None and not is_allowing(answer_of(fact)):
            self.denied.add(call)

    def _end(self, turn: str | None) -> None:
        self._withdraw(self._work.open_ids(turn, "action"))
        self._work.end_turn(turn)
        if self.active_turn == turn:
            self.active_turn = None
            self.stated = None


def _is_denied(action: Action | None) -> bool:
    """Whether the last request of a call was answered, and not by a yes."""
    if action is None or not is_answered(action) or action.action_type in QUESTIONS:
        return False
    return not is_allowing(build_answer(action.status, action.decision, action.response))
