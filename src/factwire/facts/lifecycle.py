"""What is open in a turn: the verifier of which fact may follow which, and the resume contract.

The verifier reports violations, never incompleteness: a stream that simply stops is not wrong.
What is open is `OpenWork`'s to know, per turn and in bounded windows, so that memory does not grow
with the stream; here are the codes. A resume answers every open action of its turn at once, each
exactly once; otherwise nothing is applied, because half an answer would let a tool run that nobody
decided on.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any, Final, Literal, Self

import msgspec

from factwire.facts.classes.class_tables import (
    EXECUTION_CLASSES,
    EXECUTION_FAMILIES,
    MOVES,
    TURN_TERMINALS,
)
from factwire.facts.classes.specification import SUBJECTS, Move
from factwire.facts.fact import Fact, entity_of, id_of
from factwire.facts.issues import FactError
from factwire.facts.json_values import text_at
from factwire.facts.limits import IDENTITY_WINDOW
from factwire.facts.open_work import (
    NO_TURN,
    AnsweredActions,
    LastIds,
    OpenWork,
    RecentIds,
    SavedWork,
    find_subject_id,
)
from factwire.facts.outcomes import (
    QUESTIONS,
    WITHDRAWN,
    ActionClosing,
    answer_of,
    bad_end,
    is_allowing,
)
from factwire.facts.shapes import is_derived_id

VerifierMode = Literal["fail-closed", "collect", "off"]

VERIFIER_MODES: Final[tuple[VerifierMode, ...]] = ("fail-closed", "collect", "off")


class Violation(msgspec.Struct, frozen=True):
    """One fact that cannot stand where it stands; `subject` is the id that it concerns."""

    code: str
    fact_id: str
    subject: str
    message: str


class LifecycleError(FactError):
    """The first violation that a verifier failing closed met; the fact is not taken."""

    code = "sequence_violation"

    def __init__(self, violation: Violation) -> None:
        self.violation = violation
        super().__init__(f"{violation.code}: {violation.message}")


VIOLATION_CODES: Final = tuple(
    dict.fromkeys(
        (
            "duplicate_event_id",
            *(
                move.violation
                for subject in SUBJECTS
                for move in MOVES.values()
                if move.subject == subject and move.violation is not None
            ),
            *(subject.unclosed for subject in SUBJECTS.values()),
            "execution_after_turn_terminal",
            "turn_terminal_repeated",
            "action_already_decided",
            "tool_result_after_denial",
        )
    )
)


class SavedLifecycle(msgspec.Struct, frozen=True, array_like=True):
    """What a verifier remembers, but the ids of the facts that it was fed."""

    work: SavedWork
    answers: dict[str, ActionClosing]
    asking: dict[str, str]
    denied: list[str]
    running: str | None


class LifecycleVerifier:
    """Feed it facts in order; it answers with the violations that each one commits.

    A fact whose id came before is reported and has no effect. An id that was derived from what an
    event says is no identity: two equal events are two events.
    """

    def __init__(
        self, mode: VerifierMode = "fail-closed", *, window: int = IDENTITY_WINDOW
    ) -> None:
        self.mode: VerifierMode = mode
        self._work = OpenWork(RecentIds(window), limit=window)
        self._ids = RecentIds(window)
        self._answers = AnsweredActions(window)
        self._asking: dict[str, str] = {}
        self._denied = LastIds(window)
        self._running: str | None = None

    def feed(self, fact: Fact) -> list[Violation]:
        """Take one fact. Failing closed, the first violation is raised and the fact not taken."""
        if self.mode == "off":
            return []
        event_class = fact.event_class or ""
        if event_class not in _ACTING and fact.turn_id == self._running and self._running:
            if not self._ids.add(fact.id) or is_derived_id(fact.id):
                return []
        elif not self._is_of_ended_turn(fact):
            self._running = fact.turn_id
        violations = self._violations(fact, event_class)
        if violations and self.mode == "fail-closed":
            raise LifecycleError(violations[0])
        if not self._is_repeated(fact):
            self._take(fact, event_class)
        return violations

    def copy(self) -> Self:
        """A verifier that goes on from here by itself."""
        twin = copy(self)
        changing = ("_work", "_ids", "_answers", "_asking", "_denied")
        vars(twin).update({name: vars(self)[name].copy() for name in changing})
        return twin

    def save(self) -> SavedLifecycle:
        """What is open, over and answered, to be taken up by `restore`."""
        return SavedLifecycle(
            self._work.save(), {**self._answers}, {**self._asking}, [*self._denied], self._running
        )

    def restore(self, saved: SavedLifecycle) -> None:
        """Go on from what another verifier saved."""
        self._work.restore(saved.work)
        self._answers.update(saved.answers)
        self._asking.update(saved.asking)
        self._denied.update(dict.fromkeys(saved.denied))
        self._running = saved.running

    def has_ended(self, turn_id: str | None) -> bool:
        """Whether the end of a turn came."""
        return turn_id is not None and turn_id in self._work.ended

    def add_open(self, turn_id: str | None, family: str, subject: str) -> None:
        """Something that was opened before the first fact, as a read model lists it."""
        self._work.open(turn_id, family, subject)

    def expects(self, fact: Fact) -> bool:
        """Whether this fact, of a class that moves nothing, will be taken without a violation."""
        return fact.turn_id == self._running and fact.id not in self._ids

    def take_expected(self, fact: Fact) -> None:
        """Take a fact of which `expects` has just said yes."""
        self._ids.add(fact.id)

    def open_ids(self, turn_id: str | None, family: str) -> tuple[str, ...]:
        """What is open in a turn, in the order in which it was opened."""
        return self._work.open_ids(turn_id, family)

    def _is_of_ended_turn(self, fact: Fact) -> bool:
        turn = fact.turn_id or id_of(fact, "turnId")
        return turn is not None and turn in self._work.ended

    def _is_repeated(self, fact: Fact) -> bool:
        return fact.id in self._ids and not is_derived_id(fact.id)

    def _violations(self, fact: Fact, event_class: str) -> list[Violation]:
        if self._is_repeated(fact):
            return [Violation("duplicate_event_id", fact.id, fact.id, "this id came before")]
        if event_class in TURN_TERMINALS and not self._work.is_turn_of(fact):
            return []
        if self._is_of_ended_turn(fact):
            return _violations_after_end(fact, event_class)
        if event_class in TURN_TERMINALS:
            return self._unclosed_violations(fact)
        move = MOVES.get(event_class)
        if move is None or move.violation is None:
            return []
        return self._move_violations(fact, move, move.violation)

    def _move_violations(self, fact: Fact, move: Move, code: str) -> list[Violation]:
        subject_id = find_subject_id(fact, move.subject)
        if subject_id is None:
            return []
        is_open = self._work.is_open(id_of(fact, "turnId"), move.subject, subject_id)
        if is_open != (move.does == "open"):
            return self._denial_violations(fact, subject_id) if is_open else []
        if move.subject == "action" and move.does == "close":
            is_conflict = self._answers.find_conflict(_turn_key(fact, subject_id), answer_of(fact))
            if is_conflict is not None:
                message = f"action {subject_id} was answered otherwise before"
                decided = Violation("action_already_decided", fact.id, subject_id, message)
                return [decided] if is_conflict else []
        state = "is open already" if is_open else "was never opened, or is closed already"
        message = f"{move.subject} {subject_id} {state}"
        return [Violation(code, fact.id, subject_id, message)]

    def _denial_violations(self, fact: Fact, call: str) -> list[Violation]:
        is_success = fact.event_class == "tool.result" and bad_end(fact) is None
        if not is_success or _turn_key(fact, call) not in self._denied:
            return []
        message = f"tool {call} has a result, though it was not allowed"
        return [Violation("tool_result_after_denial", fact.id, call, message)]

    def _unclosed_violations(self, fact: Fact) -> list[Violation]:
        turn = id_of(fact, "turnId")
        return [
            Violation(
                kind.unclosed, fact.id, open_id, f"{subject} {open_id} is open at the end of {turn}"
            )
            for subject, kind in SUBJECTS.items()
            for open_id in self._work.open_ids(turn, subject)
        ]

    def _take(self, fact: Fact, event_class: str) -> None:
        self._ids.add(fact.id)
        if event_class in _TURN_STARTS:
            self._work.begin_turn(id_of(fact, "turnId"), beside=entity_of(fact) is not None)
        if event_class in TURN_TERMINALS:
            if self._work.is_turn_of(fact):
                self._work.end_turn(id_of(fact, "turnId"))
                ended = _turn_key(fact, "")
                self._asking = {k: v for k, v in self._asking.items() if not k.startswith(ended)}
                self._running = None
            return
        move = MOVES.get(event_class)
        if move is None or move.does == "use" or self._is_of_ended_turn(fact):
            return
        subject_id = find_subject_id(fact, move.subject)
        if subject_id is not None:
            self._work.apply(move, id_of(fact, "turnId"), subject_id)
            if move.subject == "action":
                self._remember_answer(fact, move, _turn_key(fact, subject_id))
            elif move.subject == "tool":
                self._denied.pop(_turn_key(fact, subject_id), None)

    def _remember_answer(self, fact: Fact, move: Move, key: str) -> None:
        if move.does == "open":
            self._answers.pop(key, None)
            call = id_of(fact, "toolCallId")
            if call is not None and text_at(fact.payload, "actionType") not in QUESTIONS:
                self._asking[key] = call
            return
        answer = answer_of(fact)
        self._answers.add(key, answer)
        call = self._asking.pop(key, None)
        # A request that is withdrawn was answered elsewhere, or by nobody; that is no denial.
        if call is not None and answer != WITHDRAWN and not is_allowing(answer):
            self._denied.add(_turn_key(fact, call))


def _turn_key(fact: Fact, subject: str) -> str:
    """Each turn is taken by itself."""
    return f"{id_of(fact, 'turnId') or NO_TURN}\n{subject}"


_TURN_STARTS: Final = frozenset({"turn.submitted", "turn.started"})

_ACTING: Final = frozenset(
    [*TURN_TERMINALS, *(name for name, move in MOVES.items() if move.violation is not None)]
)
"""The classes that the verifier looks at; any other only shows its id in the turn that runs."""


def verify(facts: Iterable[Fact], mode: VerifierMode = "collect") -> list[Violation]:
    """All violations of a finished stream, in order."""
    verifier = LifecycleVerifier(mode)
    return [violation for fact in facts for violation in verifier.feed(fact)]


def _violations_after_end(fact: Fact, event_class: str) -> list[Violation]:
    turn = id_of(fact, "turnId") or ""
    if event_class in TURN_TERMINALS:
        message = f"turn {turn} has ended already"
        return [Violation("turn_terminal_repeated", fact.id, turn, message)]
    family = event_class.partition(".")[0]
    if family in EXECUTION_FAMILIES or event_class in EXECUTION_CLASSES:
        message = f"{event_class} after the end of turn {turn}"
        return [Violation("execution_after_turn_terminal", fact.id, turn, message)]
    return []


ResumeCode = Literal[
    "resume_action_uncovered",
    "resume_action_unknown",
    "resume_action_repeated",
    "resume_action_expired",
]

RESUME_CODES: Final[dict[ResumeCode, str]] = {
    "resume_action_uncovered": "an open action has no answer",
    "resume_action_unknown": "an answer names an action that is not open",
    "resume_action_repeated": "an action is answered twice",
    "resume_action_expired": "an answer came after the action's time ran out",
}


class OpenAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An action that waits for a person."""

    action_id: str
    turn_id: str | None = None
    tool_call_id: str | None = None
    action_type: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None


class ResumeAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to one open action."""

    action_id: str
    status: Literal["resolved", "cancelled"] = "resolved"
    payload: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class ResumeIssue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """One reason why a resume is refused."""

    code: ResumeCode
    action_id: str
    message: str


class OpenActions:
    """The actions that are open after the facts seen so far, in the order they were asked."""

    def __init__(self) -> None:
        self._open: dict[str, OpenAction] = {}

    def feed(self, fact: Fact) -> None:
        """Take one fact; only action facts with an id change anything."""
        action = id_of(fact, "actionId")
        if action is None:
            return
        move = MOVES.get(fact.event_class or "")
        if move is None or move.subject != "action":
            return
        if move.does == "open":
            self._open[action] = _to_open_action(action, fact)
        elif move.does == "close":
            self._open.pop(action, None)

    def of_turn(self, turn_id: str | None) -> tuple[OpenAction, ...]:
        """What a resume of this turn must cover."""
        return tuple(action for action in self._open.values() if action.turn_id == turn_id)

    def all(self) -> tuple[OpenAction, ...]:
        """Every open action."""
        return tuple(self._open.values())


def resume_issues(
    required: tuple[OpenAction, ...],
    answers: tuple[ResumeAnswer, ...],
    expired: frozenset[str] = frozenset(),
) -> list[ResumeIssue]:
    """Why these answers cannot resume; `expired` names actions whose time the caller saw end."""
    open_ids = {action.action_id for action in required}
    answered_ids: set[str] = set()
    issues: list[ResumeIssue] = []
    for answer in answers:
        code = _answer_code(answer.action_id, open_ids, answered_ids, expired)
        if code:
            issues.append(ResumeIssue(code, answer.action_id, RESUME_CODES[code]))
        answered_ids.add(answer.action_id)
    issues += [
        ResumeIssue("resume_action_uncovered", action.action_id, _UNCOVERED)
        for action in required
        if action.action_id not in answered_ids
    ]
    return issues


_UNCOVERED: Final = RESUME_CODES["resume_action_uncovered"]


def _answer_code(
    action: str, open_ids: set[str], answered_ids: set[str], expired: frozenset[str]
) -> ResumeCode | None:
    if action in answered_ids:
        return "resume_action_repeated"
    if action not in open_ids:
        return "resume_action_unknown"
    return "resume_action_expired" if action in expired else None


def _to_open_action(action: str, fact: Fact) -> OpenAction:
    payload = fact.payload
    return OpenAction(
        action_id=action,
        turn_id=id_of(fact, "turnId"),
        tool_call_id=id_of(fact, "toolCallId"),
        action_type=_text(payload.get("actionType")),
        args_hash=_text(payload.get("argsHash")),
        expires_at=_text(payload.get("expiresAt")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
