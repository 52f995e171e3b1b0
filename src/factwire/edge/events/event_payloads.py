"""Payloads of the Edge's events: what an agent does, where a run is, and what an Edge keeps."""

from typing import Any, Literal

import msgspec

from factwire.serving.envelopes import EventPayload

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


class RunEvent(EventPayload, frozen=True):
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


class RunErrorEvent(EventPayload, frozen=True):
    """Why a run failed: one of a few codes, and in `details` what the facts say exactly."""

    code: RunErrorCode
    message: str
    details: dict[str, Any] | None = None


class RunFailure(EventPayload, frozen=True):
    """A run that failed."""

    run_id: str
    status: Literal["failed"]
    error: RunErrorEvent
    finished_at: str | None = None


class RunStatusChange(EventPayload, frozen=True):
    """From where to where a run went; `from` is unknown where the fact alone cannot know it."""

    run_id: str
    from_: Literal["queued", "running", "unknown"] = msgspec.field(name="from")
    to: RunStatus
    error: RunErrorEvent | None = None


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


class ProjectEvent(EventPayload, frozen=True):
    """A folder of work on this machine."""

    project_id: str
    name: str | None = None
    work_dir: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class ProjectGone(EventPayload, frozen=True):
    """A project that is no more."""

    project_id: str


class ConversationEvent(EventPayload, frozen=True):
    """A place where people and agents talk."""

    conversation_id: str
    project_id: str | None = None
    title: str | None = None
    created_at: str | None = None


class Member(EventPayload, frozen=True):
    """Somebody who joined a conversation; `member_type` is user, agent or another word."""

    conversation_id: str
    member_id: str
    member_type: str


class ThreadEvent(EventPayload, frozen=True):
    """A thread, or what changed about it; `status` is active or archived."""

    thread_id: str
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    status: str | None = None
    agent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class ThreadGone(EventPayload, frozen=True):
    """A thread that was deleted."""

    thread_id: str


class ThreadFork(EventPayload, frozen=True):
    """A thread that begins where another one stood."""

    thread_id: str
    parent_thread_id: str
    from_item_id: str | None = None
    project_id: str | None = None
    title: str | None = None


class ItemContent(EventPayload, frozen=True):
    """What an item holds, by its type. `text` of an agent's message replaces what was streamed;
    `input_delta` is the next piece of a call's input; `refs` name what is elsewhere.
    """

    text: str | None = None
    tool_name: str | None = None
    input: Any = None
    input_delta: str | None = None
    output: Any = None
    output_ref: str | None = None
    is_error: bool | None = None
    exit_code: int | None = None
    failure_category: str | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    refs: list[str] | None = None


class Item(EventPayload, frozen=True):
    """One thing in a thread. `type` is user_message, agent_message, tool, run or another word; a
    `subagent_id` says that it is not the main agent's.
    """

    item_id: str
    type: str
    status: str
    project_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    role: str | None = None
    content: ItemContent | None = None
    subagent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class Runner(EventPayload, frozen=True):
    """Where runs happen, under the name that older clients know."""

    runner_id: str


class ArtifactEvent(EventPayload, frozen=True):
    """A thing that a run made; its content is behind refs. `status` is what its facts say."""

    artifact_id: str
    status: str
    run_id: str | None = None
    kind: str | None = None
    title: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    content_ref: str | None = None
    preview_ref: str | None = None
    diff_ref: str | None = None
    export_ref: str | None = None
    message: str | None = None
    failure_category: str | None = None


class PreviewEvent(EventPayload, frozen=True):
    """A look at what a run made: a server with a `url`, or an artifact's preview behind `ref`."""

    preview_id: str
    status: Literal["ready", "stopped"]
    run_id: str | None = None
    artifact_id: str | None = None
    url: str | None = None
    ref: str | None = None


class SessionInit(EventPayload, frozen=True):
    """What an agent works with, as it says when its session begins."""

    model: str | None = None
    tools: list[str] | None = None
    mcp_servers: list[Any] | None = None
    permission_mode: str | None = None
    version: str | None = None
    session_id: str | None = None
    cwd: str | None = None


class AgentText(EventPayload, frozen=True):
    """Text of an answer: a delta is the next piece, a block the whole text so far."""

    message_id: str
    content: str
    part_id: str | None = None
    subagent_id: str | None = None


class AgentThinking(EventPayload, frozen=True):
    """Reasoning that may be shown folded; `form` says if `content` is a piece, a summary or all."""

    message_id: str
    content: str
    form: Literal["delta", "summary", "whole"]
    part_id: str | None = None
    subagent_id: str | None = None


class ToolCall(EventPayload, frozen=True):
    """A call of a tool: pending until its input is whole, in progress once it tells how far."""

    call_id: str
    status: Literal["pending", "started", "in_progress"]
    tool_name: str | None = None
    input: Any = None
    input_delta: str | None = None
    elapsed: float | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    subagent_id: str | None = None


class ToolResult(EventPayload, frozen=True):
    """How a call ended; what is too long for `content` is behind `ref`."""

    call_id: str
    is_error: bool
    tool_name: str | None = None
    content: Any = None
    ref: str | None = None
    exit_code: int | None = None
    failure_category: str | None = None
    duration_ms: float | None = None
    subagent_id: str | None = None


class FileChange(EventPayload, frozen=True):
    """A file that changed, by its path in the workspace."""

    path: str
    kind: Literal["created", "modified", "deleted", "unknown"]
    diff: str | None = None
    diff_ref: str | None = None
    added_lines: int | None = None
    removed_lines: int | None = None
    call_id: str | None = None


class AgentResult(EventPayload, frozen=True):
    """What a run came to, after its end."""

    success: bool
    duration_ms: float | None = None
    turns: int | None = None
    usage: dict[str, Any] | None = None
    total_cost_usd: float | None = None
    stop_reason: str | None = None
    errors: list[Any] | None = None
    structured_output: Any = None


class CoordinatorRouteDecision(EventPayload, frozen=True, rename=None):
    """Whom a coordinator gives the work to next; its fields are spelt as the Hub spells them."""

    action: Literal["delegate", "review", "approve", "finish"]
    next_worker: str | None = None
    instructions: str | None = None
    reasoning: str | None = None
    context: Any = None
    approved: bool | None = None
    feedback: str | None = None
    summary: str | None = None
    blocked_reason: str | None = None
    subtask_id: str | None = None
    parent_task_id: str | None = None
    correlation_id: str | None = None


class CompactBoundary(EventPayload, frozen=True):
    """Before this point, history is a summary."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    summary: str | None = None


class ContextUsage(EventPayload, frozen=True):
    """How full the context is."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    usage_percent: float | None = None
    threshold: float | None = None


class ContextWarning(EventPayload, frozen=True):
    """The context is nearly full."""

    usage_percent: float
    threshold: float | None = None


class ContextCompaction(EventPayload, frozen=True):
    """Context is being folded, was, or could not be."""

    status: Literal["started", "completed", "failed"]
    usage_percent: float | None = None
    tokens_used: int | None = None
    tokens_remaining: int | None = None
    threshold: float | None = None
    message: str | None = None


class ApiRetry(EventPayload, frozen=True):
    """A model is asked again."""

    attempt: int
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    error: str | None = None


class RateLimit(EventPayload, frozen=True):
    """A limit: known, hit, low or blocked."""

    status: str
    name: str | None = None
    utilization: float | None = None
    resets_at: str | None = None
    retry_after_ms: float | None = None
    message: str | None = None


class AuthStatus(EventPayload, frozen=True):
    """Whether the agent is signing in."""

    is_authenticating: bool
    output: str | None = None
    error: str | None = None


class TaskStarted(EventPayload, frozen=True):
    """A task has begun."""

    task_id: str
    call_id: str | None = None
    description: str | None = None
    task_type: str | None = None
    parent_id: str | None = None


class TaskDispatched(EventPayload, frozen=True):
    """A task was given to another agent; `parent_id` is the task that it is part of."""

    agent_id: str
    task_id: str | None = None
    task: str | None = None
    role: str | None = None
    parent_id: str | None = None
    call_id: str | None = None


class TaskProgress(EventPayload, frozen=True):
    """How far a task is."""

    task_id: str
    description: str | None = None
    last_tool_name: str | None = None
    usage: dict[str, Any] | None = None
    completed_steps: int | None = None
    total_steps: int | None = None
    agent_id: str | None = None


class TaskNotification(EventPayload, frozen=True):
    """How a task ended, or what its worker has to say."""

    task_id: str
    status: str
    summary: str | None = None
    usage: dict[str, Any] | None = None
    ref: str | None = None
    agent_id: str | None = None


class SubAgentsComplete(EventPayload, frozen=True):
    """All agents under one parent are done."""

    parent_id: str
    child_count: int
    all_complete: bool


class SessionState(EventPayload, frozen=True):
    """What the agent's session is doing."""

    state: Literal["idle", "running", "requires_action"]


class StatusChange(EventPayload, frozen=True):
    """Where the agent is, in its own words, and under which permission mode."""

    status: str | None = None
    permission_mode: str | None = None
    phase: str | None = None
    message: str | None = None


class SessionMetrics(EventPayload, frozen=True):
    """What was used: by one call of a model, or by the session until now."""

    of: Literal["call", "session"]
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    total_cost_usd: float | None = None
    model: str | None = None


class HookStarted(EventPayload, frozen=True):
    """A hook has begun."""

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None


class HookProgress(EventPayload, frozen=True):
    """What a hook says while it runs."""

    hook_id: str
    hook_name: str | None = None
    hook_event: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    message: str | None = None


class HookResponse(EventPayload, frozen=True):
    """How a hook ended."""

    hook_id: str
    outcome: str
    hook_name: str | None = None
    hook_event: str | None = None
    exit_code: int | None = None
    message: str | None = None


class ToolUseSummary(EventPayload, frozen=True):
    """Several calls in one sentence."""

    summary: str
    tool_use_ids: list[str]


class PermissionRequest(EventPayload, frozen=True):
    """The agent may not go on until somebody decides; `input` is what was shown to them."""

    request_id: str
    risk_level: str
    tool_name: str | None = None
    call_id: str | None = None
    input: Any = None
    kind: str | None = None
    summary: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None


class PermissionDecision(EventPayload, frozen=True):
    """What was decided, and whether the agent has acted upon it."""

    request_id: str
    decision: str
    applied: bool
    tool_name: str | None = None
    call_id: str | None = None
    reason: str | None = None
    decided_by: str | None = None


class UnknownFact(EventPayload, frozen=True):
    """A fact without a class, or with one that would pass for a word it has no right to."""

    event_class: str | None = None
    payload: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
