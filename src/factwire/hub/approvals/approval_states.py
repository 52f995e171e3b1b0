"""The life of an approval at the Hub, as one table.

    asked → delivered → seen → decided → sent → applied
                                  or expired, refused, withdrawn

*Decided* is what people did at the Hub; *sent* means that the device has the decision on disk;
*applied* is said by a fact of the device, and by nothing else. What happens comes from three sides:
screens, people, and the device with its facts, in any order and more than once. What the table does
not have changes nothing. Two ends are the Hub's own: that a decision was lost on the way, and that
the time to decide has passed. What the device says later counts more than either.
"""

from typing import Final, Literal

from factwire.facts.resources import ApprovalState

ApprovalStep = Literal[
    "ask",
    "change",
    "deliver",
    "see",
    "decide",
    "send",
    "refuse",
    "resolve",
    "contradict",
    "retry",
    "apply",
    "expire",
    "withdraw",
]
"""What happens: the device asks or changes what it asks; a screen is delivered to or seen; people
decide; the device takes the decision or refuses it, or it is sent again after it was lost; the
device's facts resolve the request as people decided (or before they did), contradict them, apply
it, or say that it expired or was withdrawn."""

WAITING: Final[tuple[ApprovalState, ...]] = ("asked", "delivered", "seen")
"""States in which people can decide."""

DECIDED: Final[tuple[ApprovalState, ...]] = ("decided", "sent", "applied")
"""States in which a decision holds."""

ENDED: Final[tuple[ApprovalState, ...]] = ("applied", "expired", "refused", "withdrawn")
"""States after which nothing comes, unless the device asks again, or never had the decision."""

LOST: Final[dict[str, ApprovalState]] = {
    "not_acknowledged": "refused",
    "delivery_expired": "expired",
    "device_revoked": "refused",
    "right_ended": "refused",
}
"""Why the Hub gave up carrying a decision to its device → how the approval ends by that. The device
may ask still, and people decide again; it may also have the decision and not have said so."""

OVERDUE: Final = "overdue"
"""The code of an approval that expired by the clock of the Hub: its device has not said so yet, and
may say otherwise."""

EXPIRING: Final[tuple[ApprovalState, ...]] = (*WAITING, "decided")
"""States in which an approval expires by the clock of the Hub; it also does after its decision was
lost. What a device has on disk is that device's to say."""

_ASKED_ANEW: Final[dict[ApprovalStep, ApprovalState]] = {"ask": "asked"}
_WAITING: Final[dict[ApprovalStep, ApprovalState]] = {
    "change": "asked",
    "decide": "decided",
    # Somebody decided at the device itself, which therefore has the decision.
    "resolve": "sent",
    "expire": "expired",
    "withdraw": "withdrawn",
}

TRANSITIONS: Final[dict[ApprovalState, dict[ApprovalStep, ApprovalState]]] = {
    "asked": {**_WAITING, "deliver": "delivered", "see": "seen"},
    "delivered": {**_WAITING, "see": "seen"},
    "seen": _WAITING,
    "decided": {
        # The device asks something else by now, which nobody has decided.
        "change": "asked",
        "send": "sent",
        "resolve": "sent",
        "refuse": "refused",
        "contradict": "refused",
        "expire": "expired",
        "withdraw": "withdrawn",
    },
    "sent": {
        "apply": "applied",
        "refuse": "refused",
        "contradict": "refused",
        "expire": "expired",
        "withdraw": "withdrawn",
    },
    "applied": _ASKED_ANEW,
    "expired": _ASKED_ANEW,
    "refused": _ASKED_ANEW,
    "withdrawn": _ASKED_ANEW,
}
"""State → what can happen in it → the state after that."""

_AFTER_OVERDUE: Final[dict[ApprovalStep, ApprovalState]] = {
    **TRANSITIONS["decided"],
    **_ASKED_ANEW,
}
"""What a device can still say of an approval that expired by the clock of the Hub."""

_AFTER_LOSS: Final[dict[ApprovalStep, ApprovalState]] = {
    **_AFTER_OVERDUE,
    "decide": "decided",
    "retry": "decided",
}
"""What can still happen to an approval whose decision was lost on the way."""

STATE_TIMES: Final[dict[ApprovalState, str]] = {
    "delivered": "delivered_at",
    "seen": "seen_at",
    "decided": "decided_at",
    "sent": "sent_at",
    "applied": "applied_at",
}
"""State → the column with the time at which it was first reached."""


def is_lost(state: ApprovalState, code: str | None) -> bool:
    """Whether an approval ended because its decision did not reach the device."""
    return code is not None and LOST.get(code) == state


def is_overdue(state: ApprovalState, code: str | None) -> bool:
    """Whether an approval expired by the clock of the Hub alone."""
    return state == "expired" and code == OVERDUE


def can_decide(state: ApprovalState, code: str | None) -> bool:
    """Whether people can decide, for the first time or again."""
    return state in WAITING or is_lost(state, code)


def find_next_state(
    state: ApprovalState, step: ApprovalStep, code: str | None = None
) -> ApprovalState | None:
    """The state after a step, by the table and the code that the approval has; None where the step
    changes nothing.
    """
    if is_lost(state, code):
        return _AFTER_LOSS.get(step)
    return (_AFTER_OVERDUE if is_overdue(state, code) else TRANSITIONS[state]).get(step)
