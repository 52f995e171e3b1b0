"""How something ended, read from a fact: by its class, its stated status and its payload.

A class says how a thing is; the status of a fact may say more (a result that failed), less (the
`pending` that a source writes when it has nothing to say) or the opposite. The rules are here once,
as tables, for every reader: an outcome is never better than the worse of class and status, a status
that a class rules out is an issue (`outcome_mismatch`), and the first answer to an action counts.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.facts.classes.class_tables import (
    ACTION_CLOSERS,
    KNOWN_CLASSES,
    TURN_OUTCOMES,
    status_of,
)
from factwire.facts.classes.specification import EventClass
from factwire.facts.fact import Fact
from factwire.facts.issues import Issue
from factwire.facts.vocabulary import STATUSES, UNKNOWN

OPEN_STATUSES: Final = frozenset({"pending", "running", "blocked"})
"""What reads as going on or waiting."""

ENDED_STATUSES: Final = frozenset({"completed", "failed", "canceled"})

_STATUS_OF_SUFFIX: Final = {
    "required": "blocked",
    "started": "running",
    "delta": "running",
    "progress": "running",
    "output": "running",
    "input": "running",
    "args": "running",
    "failed": "failed",
    "result": "completed",
    "completed": "completed",
    "resolved": "completed",
    "final": "completed",
    "finished": "completed",
}
_STATUS_OF_PHASE: Final = {"completed": "completed", "failed": "failed", "cancelled": "canceled"}
_STATUS_OF_CLASS: Final = {
    "turn.submitted": "pending",
    "permission.requested": "blocked",
    "channel.permission_forwarded": "blocked",
    "task.created": "pending",
    "task.accepted": "pending",
    "task.queued": "pending",
    "task.waiting": "blocked",
    "task.blocked": "blocked",
    "task.paused": "blocked",
    "task.resumed": "running",
    "task.retrying": "running",
    "task.cancel_requested": "running",
    "task.lost": "failed",
    "job.created": "pending",
    "job.queued": "pending",
    "subagent.spawned": "pending",
    "subagent.closed": "completed",
    "agent.spawned": "pending",
    "handoff.requested": "pending",
    "handoff.accepted": "running",
    "review.requested": "pending",
}
"""Classes whose last word does not tell."""

_SILENT_CLASSES: Final = frozenset({"subagent.input", "thread.started", "state.delta"})
"""Classes whose last word is about something other than their subject."""


def _status_of_row(row: EventClass) -> str | None:
    name = row.name
    if name in _SILENT_CLASSES:
        return None
    return (
        TURN_OUTCOMES.get(name)
        or _STATUS_OF_CLASS.get(name)
        or _STATUS_OF_SUFFIX.get(name.rpartition(".")[2])
        or _STATUS_OF_PHASE.get(row.phase)
    )


CLASS_STATUSES: Final[dict[str, str | None]] = {
    name: _status_of_row(row) for name, row in KNOWN_CLASSES.items()
}
"""What each known class says about its subject; None where it says nothing."""

LASTING_FAMILIES: Final = frozenset(
    {"turn", "run", "tool", "action", "task", "job", "subagent", "worker", "agent", "handoff"}
    | {"review", "process", "command", "patch", "test", "hook"}
)
"""Families of things that begin and end. Any other fact is over once it has happened."""

_STATUS_OF_WORD: Final = {
    **{status: status for status in STATUSES},
    "cancelled": "canceled",
    "interrupted": "canceled",
    "terminated": "canceled",
    "aborted": "canceled",
    "error": "failed",
    "denied": "failed",
    "rejected": "failed",
    "refused": "failed",
    "errored": "failed",
    "timed_out": "failed",
    "lost": "failed",
    "passed": "completed",
    "draft": "pending",
    "accepted": "pending",
    "queued": "pending",
    "preparing": "running",
    "retrying": "running",
    "cancelling": "running",
    "waiting": "blocked",
    "waiting_input": "blocked",
    "waiting_permission": "blocked",
    "waiting_resource": "blocked",
    "paused": "blocked",
}
"""What agents write in a payload, or as a status of their own → the status that it means."""

ENDING_CLASSES: Final = frozenset(
    {"tool.result", "model.completed", "text.final", "reasoning.completed", "plan.final"}
    | {"turn.completed", "run.finished", "task.completed", "task.attempt.completed"}
    | {"job.completed", "subagent.completed", "worker.completed", "agent.completed"}
    | {"hook.completed", "process.completed", "patch.applied", "context.compaction.completed"}
)
"""Classes of an end in whose payload `status` is about that end; in others it may be a verdict."""

_WORD_KEYS: Final = {
    "command.exited": ("status",),
    "test.completed": ("result", "status"),
    "run.status": ("status",),
    "task.updated": ("status",),
    "task.changed": ("status",),
    "subagent.status": ("status",),
    "agent.changed": ("status",),
    **dict.fromkeys(ENDING_CLASSES, ("status",)),
}
"""Classes whose payload says how their subject is, and under which keys."""

_PAYLOAD_CLASSES: Final = frozenset({"tool.result", "tool.failed", *_WORD_KEYS})

_CANCEL_CATEGORIES: Final = ("cancelled", "canceled", "user_cancelled", "user_canceled")
_ERROR_FLAGS: Final = ("isError", "is_error")


def status_shown(fact: Fact) -> str | None:
    """The status to show for the subject of a fact; None where the fact says nothing about it."""
    name = fact.event_class or ""
    word = _payload_status(fact) if name in _PAYLOAD_CLASSES else None
    return _combine_status(name, fact.status, word)


@lru_cache(maxsize=4_096)
def _combine_status(name: str, status: str, word: str | None) -> str | None:
    """The status by class, by what the fact states and by what its payload says."""
    if name not in CLASS_STATUSES:
        return UNKNOWN if status == "pending" else status
    meaning, stated = CLASS_STATUSES[name], _spell(status)
    if meaning in ENDED_STATUSES:
        return _worse(name, meaning or "", stated, word)
    is_default = stated == status_of(name)
    if meaning is not None:
        return meaning if is_default or stated in ENDED_STATUSES else stated
    if is_default or (name in _SILENT_CLASSES and name.partition(".")[0] in LASTING_FAMILIES):
        return word
    return word or stated


def status_of_silent(fact: Fact) -> str:
    """The status to show for a subject whose first fact says nothing about it."""
    family = (fact.event_class or "").partition(".")[0]
    return UNKNOWN if family in LASTING_FAMILIES else "completed"


def call_outcome(fact: Fact) -> str:
    """How a tool call ended, by the fact that ends it; a status of another's own vocabulary counts
    as what it means.
    """
    return meaning_of_status(status_shown(fact) or UNKNOWN)


def meaning_of_status(status: str) -> str:
    """The status that another's own word for one means; one that is not known stays itself."""
    return _STATUS_OF_WORD.get(status, status)


def bad_end(fact: Fact) -> str | None:
    """The failure or cancellation that a fact states, whatever its class says; as the words of
    states have it.
    """
    return _BAD_ENDS.get(call_outcome(fact))


_BAD_ENDS: Final = {"failed": "failed", "canceled": "cancelled"}


def _worse(name: str, meaning: str, stated: str, word: str | None) -> str:
    """Failed or canceled beats completed, whoever says so; a status of its own is kept."""
    if stated not in STATUSES:
        return stated
    if meaning != "completed":
        may_be_stopped = "canceled" in STATED_STATUSES.get(name, ())
        return "canceled" if may_be_stopped and "canceled" in (stated, word) else meaning
    return next((status for status in (stated, word) if status in ("failed", "canceled")), meaning)


def _payload_status(fact: Fact) -> str | None:
    """What the payload says about the subject, for classes where it is known to."""
    name, payload = fact.event_class or "", fact.payload
    if name == "tool.result" and _error_flag(payload):
        return "failed"
    if name == "tool.failed":
        category = payload.get("failureCategory")
        return "canceled" if category in _CANCEL_CATEGORIES else None
    if name == "command.exited":
        code = payload.get("exitCode", payload.get("exit_code"))
        if type(code) is int and code:
            return "failed"
    words = (payload.get(key) for key in _WORD_KEYS.get(name, ()))
    found = [_STATUS_OF_WORD.get(word) for word in words if isinstance(word, str)]
    return next((status for status in found if status in ("failed", "canceled")), None) or (
        found[0] if found else None
    )


def _error_flag(payload: dict[str, Any]) -> str | None:
    for key in _ERROR_FLAGS:
        if payload.get(key) is True:
            return key
    return None


def _spell(status: str) -> str:
    return "canceled" if status == "cancelled" else status


def _statuses_of(name: str) -> frozenset[str] | None:
    """The statuses that a class may state; None where it may state any."""
    if name in _STATUSES_OF_CLASS:
        return _STATUSES_OF_CLASS[name]
    return _STATUSES_OF_SUFFIX.get(name.rpartition(".")[2])


_STATUSES_OF_SUFFIX: Final = {
    "completed": frozenset({"completed"}),
    "result": frozenset({"completed"}),
    "failed": frozenset({"failed", "canceled"}),
}
_STATUSES_OF_CLASS: Final[dict[str, frozenset[str] | None]] = {
    "thread.started": None,
    "job.item.started": None,
    "job.item.completed": None,
    "job.item.failed": None,
    "turn.failed": frozenset({"failed"}),
    "turn.canceled": frozenset({"canceled"}),
    "run.finished": frozenset({"completed", "canceled", "pending"}),
    "run.failed": frozenset({"failed"}),
    "action.resolved": ENDED_STATUSES,
    "action.cancelled": ENDED_STATUSES | {"pending"},
    "action.canceled": ENDED_STATUSES | {"pending"},
    "action.expired": ENDED_STATUSES | {"pending"},
    "patch.applied": frozenset({"completed", "pending"}),
    "command.exited": ENDED_STATUSES | {"pending"},
    "test.completed": ENDED_STATUSES,
    "review.completed": ENDED_STATUSES,
    "task.cancelled": frozenset({"canceled", "pending"}),
    "job.cancelled": frozenset({"canceled", "pending"}),
    "process.terminated": frozenset({"canceled", "failed", "pending"}),
    "benchmark.trial.completed": ENDED_STATUSES,
}
"""Classes for which the last word does not decide; a fact about an item states the status of its
job. `pending` is what a source states that derives the status from such a class.
"""

STATED_STATUSES: Final = {
    name: statuses | OPEN_STATUSES
    for name in KNOWN_CLASSES
    if (statuses := _statuses_of(name)) is not None
}
"""Class → the statuses that do not contradict it. A status that is no end contradicts none, since
the class says more, and neither does one outside the vocabulary.
"""


def outcome_issue(fact: Fact, statuses: frozenset[str]) -> Issue | None:
    """What is wrong with a fact whose status or payload contradicts its class."""
    status, name = _spell(fact.status), fact.event_class
    if status not in statuses and status in STATUSES:
        ends = " or ".join(sorted(statuses & ENDED_STATUSES)) or "no end"
        message = f"{name} with status {fact.status}; expected {ends}"
        return Issue("outcome_mismatch", "$.status", message)
    if name == "tool.result" and (flag := _error_flag(fact.payload)):
        message = f"tool.result with {flag}; a call that failed ends with tool.failed"
        return Issue("outcome_mismatch", f"$.payload.{flag}", message)
    if name in ENDING_CLASSES and _payload_status(fact) in ("failed", "canceled"):
        message = f"{name} with payload.status {fact.payload['status']}"
        return Issue("outcome_mismatch", "$.payload.status", message)
    return None


class ActionClosing(msgspec.Struct, frozen=True):
    """How an action was closed, so that two closings can be compared."""

    closing: str
    decision: str | None = None
    response: bytes | None = None


WITHDRAWN: Final = ActionClosing("cancelled")
"""How an action ends that nobody waits for any more."""

_CLOSINGS: Final = {
    "action.resolved": "resolved",
    "action.cancelled": "cancelled",
    "action.canceled": "cancelled",
    "action.expired": "expired",
}

DENIALS: Final = frozenset({"deny", "denied", "reject", "rejected"})
"""Decisions that forbid."""

_APPROVALS: Final = frozenset({"approve", "approved", "allow", "allowed", "accept", "accepted"})


QUESTIONS: Final = frozenset({"structured_input", "clarification"})
"""Requests by which a call asks for words: it goes on without them, and nobody forbids it."""


def is_allowing(answer: ActionClosing | None) -> bool:
    """Whether an answer lets the call that asked go on."""
    return answer is not None and answer.closing == "resolved" and answer.decision != "deny"


def answer_of(fact: Fact) -> ActionClosing | None:
    """The answer that a fact gives to its action; None where its class closes none."""
    name, decision = fact.event_class or "", fact.payload.get("decision")
    if name not in ACTION_CLOSERS:
        return None
    closing = _CLOSINGS[name]
    if closing == "resolved" and decision is None and fact.phase in ("cancelled", "interrupted"):
        closing = (
            "cancelled"  # UI clients have one class for every end, and say which by the phase.
        )
    return build_answer(closing, decision, fact.payload.get("response"))


def build_answer(closing: str, decision: object, response: object = None) -> ActionClosing:
    """An answer; spellings of one decision are the same, and only a resolved action has one."""
    if closing != "resolved":
        return ActionClosing(closing)
    word = decision if isinstance(decision, str) else None
    word = "deny" if word in DENIALS else "approve" if word in _APPROVALS else word
    content = None if response is None else msgspec.json.encode(response, order="deterministic")
    return ActionClosing(closing, word, content)
