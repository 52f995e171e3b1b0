"""What is open in a turn: the verifier of which fact may follow which, and the resume contract.

The verifier reports violations, never incompleteness: a stream that simply stops is not wrong.
What opens and what closes is a table. State is kept per turn and in bounded windows, so that
memory does not grow with the stream. A resume answers every open action of its turn at once,
each exactly once; otherwise nothing is applied, because half an answer would let a tool run that
nobody decided on.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from factwire.facts.fact import Fact, id_of
from factwire.facts.issues import FactError
from factwire.facts.limits import IDENTITY_WINDOW
from factwire.facts.shapes import is_derived_id
from factwire.facts.vocabulary import ACTION_CLOSERS, TURN_TERMINALS

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


class _Move(msgspec.Struct, frozen=True, gc=False):
    """What a class does to one family of open things; `code` is the violation if it cannot."""

    family: str
    does: Literal["open", "close", "use"]
    code: str


_MOVES: Final = {
    "tool.started": _Move("tool", "open", "tool_started_already_active"),
    "tool.result": _Move("tool", "close", "tool_result_without_start"),
    "tool.failed": _Move("tool", "close", "tool_failed_without_start"),
    "patch.started": _Move("patch", "open", "patch_started_already_active"),
    "patch.applied": _Move("patch", "close", "patch_terminal_without_start"),
    "patch.failed": _Move("patch", "close", "patch_terminal_without_start"),
    "command.started": _Move("command", "open", "command_started_already_active"),
    "command.output": _Move("command", "use", "command_output_without_start"),
    "command.exited": _Move("command", "close", "command_exited_without_start"),
    "test.started": _Move("test", "open", "test_started_already_active"),
    "test.completed": _Move("test", "close", "test_completed_without_start"),
    "action.required": _Move("action", "open", "action_required_already_active"),
    "action.resolved": _Move("action", "close", "action_resolved_without_request"),
    "action.cancelled": _Move("action", "close", "action_resolved_without_request"),
    "action.canceled": _Move("action", "close", "action_resolved_without_request"),
    "action.expired": _Move("action", "close", "action_resolved_without_request"),
}

_UNCLOSED: Final = {
    "tool": "tool_unclosed_at_turn_end",
    "patch": "patch_unclosed_at_turn_end",
    "command": "command_unclosed_at_turn_end",
    "test": "test_unclosed_at_turn_end",
    "action": "action_unresolved_at_turn_end",
}

_OWN_IDS: Final = {
    "patch": ("patchId", "patch_id"),
    "command": ("commandId", "command_id"),
    "test": ("testRunId", "test_run_id"),
}

_EXECUTION: Final = frozenset(
    [
        "tool",
        "file",
        "patch",
        "command",
        "test",
        "action",
        "model",
        "reasoning",
        "permission",
        "sandbox",
    ]
)

VIOLATION_CODES: Final = tuple(
    dict.fromkeys(
        (
            "duplicate_event_id",
            *(move.code for move in _MOVES.values()),
            *_UNCLOSED.values(),
            "execution_after_turn_terminal",
            "turn_terminal_repeated",
        )
    )
)


class RecentIds:
    """Membership in the last `window` to 2 × `window` added names, in bounded memory."""

    def __init__(self, window: int = IDENTITY_WINDOW) -> None:
        self._window = window
        self._young: set[str] = set()
        self._old: set[str] = set()

    def add(self, name: str) -> bool:
        """Remember `name`; whether it was known already."""
        if name in self._young or name in self._old:
            return True
        self._young.add(name)
        if len(self._young) >= self._window:
            self._old, self._young = self._young, set()
        return False

    def __contains__(self, name: str) -> bool:
        return name in self._young or name in self._old


class LifecycleVerifier:
    """Feed it facts in order; it answers with the violations that each one commits.

    A fact whose id came before is reported and has no effect. An id that was derived from what an
    event says is no identity: two equal events are two events.
    """

    def __init__(
        self, mode: VerifierMode = "fail-closed", *, window: int = IDENTITY_WINDOW
    ) -> None:
        self.mode: VerifierMode = mode
        self._open: dict[str, dict[str, dict[str, None]]] = {}
        self._open_count = 0
        self._open_limit = window
        self._ids = RecentIds(window)
        self._ended = RecentIds(window)
        self._running: str | None = None

    def feed(self, fact: Fact) -> list[Violation]:
        """Take one fact. Failing closed, the first violation is raised and the fact not taken."""
        if self.mode == "off":
            return []
        event_class = fact.event_class or ""
        if event_class in _QUIET and fact.turn_id == self._running and self._running:
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

    def add_open(self, turn_id: str | None, family: str, subject: str) -> None:
        """Something that was opened before the first fact, as a read model lists it."""
        self._open_subject(turn_id or "", family, subject)

    def expects(self, fact: Fact) -> bool:
        """Whether this fact, of a class that moves nothing, will be taken without a violation."""
        return fact.turn_id == self._running and fact.id not in self._ids

    def take_expected(self, fact: Fact) -> None:
        """Take a fact of which `expects` has just said yes."""
        self._ids.add(fact.id)

    def open_ids(self, turn_id: str | None, family: str) -> tuple[str, ...]:
        """What is open in a turn, in the order in which it was opened."""
        return tuple(self._open.get(turn_id or "", {}).get(family, ()))

    def _is_of_ended_turn(self, fact: Fact) -> bool:
        turn = fact.turn_id or id_of(fact, "turnId")
        return turn is not None and turn in self._ended

    def _is_repeated(self, fact: Fact) -> bool:
        return fact.id in self._ids and not is_derived_id(fact.id)

    def _violations(self, fact: Fact, event_class: str) -> list[Violation]:
        if self._is_repeated(fact):
            return [Violation("duplicate_event_id", fact.id, fact.id, "this id came before")]
        if self._is_of_ended_turn(fact):
            return _violations_after_end(fact, event_class)
        if event_class in TURN_TERMINALS:
            return self._unclosed_violations(fact)
        move = _MOVES.get(event_class)
        subject = _subject(fact, move.family) if move else None
        if move is None or subject is None:
            return []
        is_open = subject in self._open_in_family(fact, move.family)
        if is_open != (move.does == "open"):
            return []
        state = "is open already" if is_open else "was never opened, or is closed already"
        return [Violation(move.code, fact.id, subject, f"{move.family} {subject} {state}")]

    def _unclosed_violations(self, fact: Fact) -> list[Violation]:
        turn = id_of(fact, "turnId")
        families = self._open.get(turn or "", {})
        return [
            Violation(code, fact.id, subject, f"{family} {subject} is open at the end of {turn}")
            for family, code in _UNCLOSED.items()
            for subject in families.get(family, ())
        ]

    def _open_in_family(self, fact: Fact, family: str) -> dict[str, None]:
        turn = id_of(fact, "turnId") or ""
        return self._open.get(turn, {}).get(family, {})

    def _take(self, fact: Fact, event_class: str) -> None:
        self._ids.add(fact.id)
        turn = id_of(fact, "turnId") or ""
        if event_class in TURN_TERMINALS:
            self._open_count -= sum(map(len, self._open.pop(turn, {}).values()))
            self._running = None
            if turn:
                self._ended.add(turn)
            return
        move = _MOVES.get(event_class)
        subject = _subject(fact, move.family) if move else None
        if move is None or subject is None or self._is_of_ended_turn(fact):
            return
        if move.does == "open":
            self._open_subject(turn, move.family, subject)
        elif move.does == "close":
            self._close_subject(turn, move.family, subject)

    def _open_subject(self, turn: str, family: str, subject: str) -> None:
        subjects = self._open.setdefault(turn, {}).setdefault(family, {})
        self._open_count += subject not in subjects
        subjects[subject] = None
        if self._open_count > self._open_limit:
            oldest, families = next(iter(self._open.items()))
            first, open_there = next(iter(families.items()))
            self._close_subject(oldest, first, next(iter(open_there)))

    def _close_subject(self, turn: str, family: str, subject: str) -> None:
        families = self._open.get(turn, {})
        subjects = families.get(family, {})
        if subject in subjects:
            del subjects[subject]
            self._open_count -= 1
            if not subjects:
                del families[family]
            if not families:
                del self._open[turn]


_QUIET: Final = frozenset(
    [
        "model.delta",
        "reasoning.delta",
        "plan.delta",
        "tool.args.delta",
        "tool.output.delta",
        "tool.progress",
    ]
)
"""The classes that make up most of a stream and move nothing: a short way through."""


def verify(facts: Iterable[Fact], mode: VerifierMode = "collect") -> list[Violation]:
    """All violations of a finished stream, in order."""
    verifier = LifecycleVerifier(mode)
    return [violation for fact in facts for violation in verifier.feed(fact)]


def _subject(fact: Fact, family: str) -> str | None:
    if family == "action":
        return id_of(fact, "actionId")
    for name in _OWN_IDS.get(family, ()):
        own = fact.payload.get(name)
        if isinstance(own, str) and own:
            return own
    return id_of(fact, "toolCallId")


def _violations_after_end(fact: Fact, event_class: str) -> list[Violation]:
    turn = id_of(fact, "turnId") or ""
    if event_class in TURN_TERMINALS:
        message = f"turn {turn} has ended already"
        return [Violation("turn_terminal_repeated", fact.id, turn, message)]
    family = event_class.partition(".")[0]
    if family in _EXECUTION or event_class == "context.resolved":
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
        if fact.event_class == "action.required":
            self._open[action] = _to_open_action(action, fact)
        elif fact.event_class in ACTION_CLOSERS:
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
