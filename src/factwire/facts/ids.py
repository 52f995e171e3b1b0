"""Correlation ids: the names that tie facts to each other.

A fact may carry an id at its top level or in its payload, in camel or snake case; the top level
wins. Nothing else is ever read as an id, least of all text.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from factwire.facts.fact import Fact

CORRELATION_IDS: Final = (
    "sessionId",
    "threadId",
    "runId",
    "turnId",
    "stepId",
    "attemptId",
    "messageId",
    "partId",
    "taskId",
    "parentTaskId",
    "agentId",
    "subagentId",
    "workerId",
    "parentSessionId",
    "parentThreadId",
    "remoteTaskId",
    "queuedTurnId",
    "toolCallId",
    "actionId",
    "artifactId",
    "evidenceId",
    "handoffId",
    "reviewId",
    "channelId",
    "processId",
    "jobId",
    "jobItemId",
    "traceId",
    "spanId",
    "runtimeId",
    "projectId",
    "conversationId",
    "edgeId",
    "itemId",
    "teamId",
)

_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "toolCallId": ("callId", "call_id"),
    "actionId": ("requestId", "request_id"),
}


def snake_case(name: str) -> str:
    """The Python spelling of a wire name."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


ATTRIBUTES: Final[Mapping[str, str]] = {name: snake_case(name) for name in CORRELATION_IDS}
"""Wire name of each correlation id → attribute of `Fact`."""

PAYLOAD_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    name: (name, ATTRIBUTES[name], *_OTHER_NAMES.get(name, ())) for name in CORRELATION_IDS
}
"""Wire name of each correlation id → the payload keys it is read from, best first."""


def id_in_payload(payload: Mapping[str, object], name: str) -> str | None:
    """The id called `name` in a payload, whichever way it is spelled there."""
    for key in PAYLOAD_NAMES[name]:
        value = payload.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def id_of(fact: "Fact", name: str) -> str | None:
    """The correlation id called `name` (its wire name) of a fact, from top level or payload."""
    value: str | None = getattr(fact, ATTRIBUTES[name])
    return value or id_in_payload(fact.payload, name)
