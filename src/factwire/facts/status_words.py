"""How people read what the Hub calls a status: the same words on its pages and on a command line.

A word is short enough for a list. A sentence says what follows from a status; `{device}` stands for
the name of the device that it is about. It begins in lower case and has no full stop, so that it
can follow something else.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from factwire.facts.resources import Activity, ApprovalState, TaskStatus

DeviceStatus = Literal["online", "offline"]

DEVICE_WORDS: Final[dict[DeviceStatus, str]] = {"online": "online", "offline": "offline"}

TASK_WORDS: Final[dict[TaskStatus, str]] = {
    "queued": "queued",
    "delivered": "delivered",
    "running": "running",
    "unknown": "not heard from",
    "dead": "not acknowledged",
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "timed out",
    "expired": "expired",
}

APPROVAL_WORDS: Final[dict[ApprovalState, str]] = {
    "asked": "waiting",
    "delivered": "waiting",
    "seen": "waiting",
    "decided": "decided",
    "sent": "received",
    "applied": "applied",
    "expired": "expired",
    "refused": "refused",
    "withdrawn": "withdrawn",
}

THREAD_WORDS: Final[dict[Activity, str]] = {
    "idle": "idle",
    "running": "running",
    "waiting": "waiting",
    "completed": "completed",
    "failed": "failed",
    "canceled": "cancelled",
}

ITEM_WORDS: Final = {
    "pending": "starting",
    "started": "running",
    "in_progress": "running",
    "completed": "completed",
    "failed": "failed",
    "canceled": "cancelled",
}
"""What a thread consists of; a status that is not here is shown as it is."""

APPROVAL_STEPS: Final[dict[ApprovalState, str]] = {
    "asked": "asked",
    "delivered": "delivered to a screen",
    "seen": "seen",
    "decided": "decided",
    "sent": "received by the device",
    "applied": "applied by the agent",
}
"""How far an approval is: each step, in order."""

TASK_SENTENCES: Final = {
    "queued_online": "on its way to {device}",
    "queued_offline": "{device} is offline; the task waits for it, and for no other device",
    "unknown": "{device} has not been heard from; what it did meanwhile shows when it is back",
    "dead": "{device} did not acknowledge the task",
    "expired": "{device} did not come back in time; the task was never begun",
    "stopping": "{device} has been asked to stop it",
    "stopping_offline": "it will be stopped when {device} is back; without an answer, it is closed "
    "after a day",
    "run_stopping_offline": "{device} is offline or does not answer; it is stopped when {device} "
    "is back, if that is by {time}",
}
"""What follows from the status of a task, where that is not clear by itself."""

APPROVAL_SENTENCES: Final = {
    "decided_online": "decided; on its way to {device}",
    "decided_offline": "decided; will be sent when {device} is back",
    "sent": "received by {device}; the agent has not acted on it yet",
    "applied": "applied by the agent",
    "expired": "expired; nothing was decided in time",
    "refused": "{device} did not take the decision",
    "withdrawn": "the agent no longer asks this",
    "lost": "the decision did not reach {device}; it can be decided again",
    "late": "the decision did not reach {device} in time",
    "votes": "{votes} of the {required} people needed have allowed it",
}
"""The same for approvals; `lost` is for a decision of which the Hub has given up the delivery."""

STATUS_WORDS: Final = {
    "device": DEVICE_WORDS,
    "task": TASK_WORDS,
    "approval": APPROVAL_WORDS,
    "thread": THREAD_WORDS,
    "item": ITEM_WORDS,
    "approvalSteps": APPROVAL_STEPS,
    "taskSentences": TASK_SENTENCES,
    "approvalSentences": APPROVAL_SENTENCES,
}
"""All of it, as the pages of a Hub have it."""


def word_of(words: Mapping[Any, str], status: str) -> str:
    """How a status reads that may be one of a newer version."""
    return words.get(status, status)
