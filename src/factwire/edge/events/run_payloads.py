"""Payloads about a run: where it is, how it ended, what it put out, what it asks of people."""

from typing import Any, Literal

import msgspec

from factwire.edge.events.payload import EventPayload

RunStatus = Literal["queued", "running", "finished", "failed", "cancelled"]
RunErrorCode = Literal[
    "BINARY_NOT_FOUND",
    "TIMEOUT",
    "NONZERO_EXIT",
    "CANCELLED",
    "PERMISSION_DENIED",
    "EDGE_RESTARTED",
    "UNKNOWN",
]


class Run(EventPayload, frozen=True):
    """A run that was asked for; `retry_of` names the run that it repeats."""

    run_id: str
    status: RunStatus
    project_id: str | None = None
    thread_id: str | None = None
    agent_id: str | None = None
    retry_of: str | None = None
    attempt: int | None = None
    created_at: str | None = None


class RunChange(EventPayload, frozen=True):
    """A run that started or ended; of its three times, those that this fact knows."""

    run_id: str
    status: RunStatus
    project_id: str | None = None
    thread_id: str | None = None
    reason: str | None = None
    created_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class RunError(EventPayload, frozen=True):
    """Why a run failed: one of a few codes, and in `details` what the facts say exactly."""

    code: RunErrorCode
    message: str
    details: dict[str, Any] | None = None


class RunFailure(EventPayload, frozen=True):
    """A run that failed."""

    run_id: str
    status: Literal["failed"]
    error: RunError
    finished_at: str | None = None


class RunStatusChange(EventPayload, frozen=True):
    """From where to where a run went; `from` is unknown where the fact alone cannot know it."""

    run_id: str
    from_: Literal["queued", "running", "unknown"] = msgspec.field(name="from")
    to: RunStatus
    error: RunError | None = None


class OutputChunk(EventPayload, frozen=True):
    """A piece of output; `offset` counts the bytes before it in its stream."""

    text: str
    offset: int | None = None


class RunOutput(EventPayload, frozen=True):
    """Output of a program. Offsets count bytes of one stream of one process; past `max_bytes` the
    rest is behind `ref`.
    """

    run_id: str
    stream: str
    text: str | None = None
    offset: int | None = None
    process_id: str | None = None
    call_id: str | None = None
    truncated: bool | None = None
    max_bytes: int | None = None
    bytes_written: int | None = None
    ref: str | None = None


class RunOutputBatch(EventPayload, frozen=True):
    """Several pieces of output of one stream, in order."""

    run_id: str
    stream: str
    chunks: list[OutputChunk]
    process_id: str | None = None
    call_id: str | None = None
    truncated: bool | None = None
    max_bytes: int | None = None
    bytes_written: int | None = None
    ref: str | None = None


class PersistenceError(EventPayload, frozen=True):
    """The journal refused facts of a run: what it did from here on is not on record."""

    run_id: str
    error: str


class MessageDelta(EventPayload, frozen=True):
    """The next piece of an item's text."""

    item_id: str
    delta: str
    thread_id: str | None = None
    run_id: str | None = None
    subagent_id: str | None = None


class ApprovalRequest(EventPayload, frozen=True):
    """What a person must decide; the answer is bound to `args_hash`."""

    approval_id: str
    kind: str
    risk_level: str
    run_id: str | None = None
    summary: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    requested_by: str | None = None
    call_id: str | None = None
    tool_name: str | None = None
    options: list[Any] | None = None
    response_schema: dict[str, Any] | None = None


class ApprovalDecision(EventPayload, frozen=True):
    """What was decided, and whether it took effect: the same decision comes again as applied."""

    approval_id: str
    decision: str
    applied: bool
    run_id: str | None = None
    decided_by: str | None = None
    reason: str | None = None
