"""The resume contract: which open actions an answer must cover before a turn may go on.

A resume answers every open action of its turn at once, each exactly once, none that is unknown or
expired. Otherwise nothing is applied: half an answer would let a tool run that nobody decided on.
"""

from typing import Any, Final, Literal

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import id_of
from factwire.facts.vocabulary import ACTION_CLOSERS

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
            self._open[action] = _open_action(action, fact)
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
    answered: set[str] = set()
    issues: list[ResumeIssue] = []
    for answer in answers:
        code = _answer_code(answer.action_id, open_ids, answered, expired)
        if code:
            issues.append(ResumeIssue(code, answer.action_id, RESUME_CODES[code]))
        answered.add(answer.action_id)
    issues += [
        ResumeIssue("resume_action_uncovered", action.action_id, _UNCOVERED)
        for action in required
        if action.action_id not in answered
    ]
    return issues


_UNCOVERED: Final = RESUME_CODES["resume_action_uncovered"]


def _answer_code(
    action: str, open_ids: set[str], answered: set[str], expired: frozenset[str]
) -> ResumeCode | None:
    if action in answered:
        return "resume_action_repeated"
    if action not in open_ids:
        return "resume_action_unknown"
    return "resume_action_expired" if action in expired else None


def _open_action(action: str, fact: Fact) -> OpenAction:
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
