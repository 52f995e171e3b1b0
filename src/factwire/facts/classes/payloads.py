"""The payload types of the event classes; which class carries which is in its row or its family.

Every field is optional and fields beyond the declared ones are kept: a type says what a field is,
never that it is there.
"""

from typing import Annotated, Any, Literal

import msgspec

from factwire.facts.refs import Ref


class Payload(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The root of the payload types; unknown fields are allowed in all of them."""


class NamedPerson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Somebody: `via` is what they used, such as the workbench or a token."""

    name: str
    via: str | None = None
    user_id: str | None = None
    device_id: str | None = None

    def __str__(self) -> str:
        return self.name if self.via is None else f"{self.name} via {self.via}"


class Person(NamedPerson, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Somebody who did something; `together_with` are others who had to agree."""

    together_with: tuple[NamedPerson, ...] = ()


def to_person(value: object) -> Person | None:
    """Who is meant; older facts and other runtimes have only a name."""
    if isinstance(value, Person):
        return value
    try:
        return Person(name=value) if isinstance(value, str) else msgspec.convert(value, Person)
    except msgspec.ValidationError:
        return None


class TurnStartPayload(Payload):
    """turn.submitted, turn.started: what was asked."""

    prompt: str | None = None
    input: list[dict[str, Any]] | None = None
    agent_id: str | None = None
    by: Person | str | None = None


class TurnEndPayload(Payload):
    """turn.completed, turn.failed, turn.canceled: how it ended, with a stable category."""

    failure_category: str | None = None
    recovery_hint: str | None = None
    message: str | None = None
    reason: str | None = None
    duration_ms: float | None = None
    by: Person | str | None = None


class RunStatusPayload(Payload):
    """run.status: where the run is."""

    status: str | None = None
    phase: str | None = None
    message: str | None = None


class ModelRequestPayload(Payload):
    """model.requested: which model was asked."""

    model: str | None = None
    provider: str | None = None
    message_id: str | None = None


class TextPayload(Payload):
    """model.*, reasoning.*, plan.*: `delta` is the increment, `text` the whole text so far."""

    message_id: str | None = None
    part_id: str | None = None
    delta: str | None = None
    text: str | None = None
    summary: str | None = None
    encrypted_ref: str | None = None
    model: str | None = None
    finish_reason: str | None = None


class FailurePayload(Payload):
    """*.failed: a stable category, a sentence for people, and what could help."""

    failure_category: str | None = None
    message: str | None = None
    recovery_hint: str | None = None
    retryable: bool | None = None


class ToolCallPayload(Payload):
    """tool.*: `args` is the whole input, `delta` a piece of input or output text."""

    tool_name: str | None = None
    title: str | None = None
    args: Any = None
    delta: str | None = None
    stream: str | None = None
    message: str | None = None
    progress: float | None = None
    total: float | None = None
    summary: str | None = None
    output: Any = None
    output_ref: str | Ref | None = None
    diff: str | None = None
    diff_ref: str | Ref | None = None
    exit_code: int | None = None
    duration_ms: float | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None


class ActionRequestPayload(Payload):
    """action.required, action.updated: what a person must decide, and until when."""

    action_type: str | None = None
    severity: str | None = None
    prompt: str | None = None
    args_hash: str | None = None
    expires_at: str | None = None
    requested_by: str | None = None
    tool_call_id: str | None = None
    options: list[Any] | None = None
    response_schema: dict[str, Any] | None = None
    diff: str | None = None
    diff_ref: str | Ref | None = None


class ActionDecisionPayload(Payload):
    """action.resolved and the other closers: what was decided, by whom, and whether it took. An
    action.updated after a decision adds when it was sent to the agent and when it was applied.
    """

    decision: str | None = None
    reason: str | None = None
    decided_by: Person | str | None = None
    applied: bool | None = None
    requested_at: str | None = None
    decided_at: str | None = None
    sent_at: str | None = None
    response: Any = None


class PermissionPayload(Payload):
    """permission.*, sandbox.*, policy.changed: which rule said what."""

    mode: str | None = None
    rule: str | None = None
    decision: str | None = None
    reason_code: str | None = None
    message: str | None = None
    tool_name: str | None = None
    path: str | None = None
    command: str | None = None


class HookPayload(Payload):
    """hook.*: a hook's run and its outcome."""

    hook_id: str | None = None
    hook_name: str | None = None
    hook_event: str | None = None
    outcome: str | None = None
    exit_code: int | None = None
    message: str | None = None


class QueuePayload(Payload):
    """queue.changed: the turns that wait, in order."""

    queued_turns: list[dict[str, Any]] | None = None
    queued_turn_count: int | None = None
    reason: str | None = None
    by: Person | str | None = None


class ContextPayload(Payload):
    """context.*, history.*: what the model was given, and what was folded away."""

    compaction_id: str | None = None
    trigger: str | None = None
    summary: str | None = None
    summary_ref: str | Ref | None = None
    message: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    usage_percent: float | None = None
    failure_category: str | None = None


class ArtifactPayload(Payload):
    """artifact.*: one version of a thing that the agent made. A bare `ref` is what its class is
    about: the export, the preview, the diff, or else the content.
    """

    kind: str | None = None
    title: str | None = None
    status: str | None = None
    version_id: str | None = None
    media_type: str | None = None
    preview_ref: str | Ref | None = None
    content_ref: str | Ref | None = None
    diff: str | None = None
    diff_ref: str | Ref | None = None
    export_ref: str | Ref | None = None
    ref: str | Ref | None = None
    source: str | None = None
    message: str | None = None
    failure_category: str | None = None


class EvidencePayload(Payload):
    """evidence.*, review.*: a citation, a trace, a verdict."""

    kind: str | None = None
    title: str | None = None
    status: str | None = None
    verdict: str | None = None
    review_id: str | None = None
    reviewer: str | None = None
    summary: str | None = None
    summary_ref: str | Ref | None = None
    export_ref: str | Ref | None = None
    replay_ref: str | Ref | None = None
    review_ref: str | Ref | None = None
    pack_ref: str | Ref | None = None
    url: str | None = None


class ProgressPayload(Payload):
    """How far a task is."""

    completed_steps: int | None = None
    total_steps: int | None = None


class TaskPayload(Payload):
    """task.*, job.*: a piece of work, its state, its attempts."""

    title: str | None = None
    objective: str | None = None
    status: str | None = None
    role: str | None = None
    assignee: str | None = None
    progress: ProgressPayload | float | None = None
    depends_on: list[str] | None = None
    attempt: int | None = None
    reason: str | None = None
    message: str | None = None
    failure_category: str | None = None


class TeammatePayload(Payload):
    """subagent.*, worker.*, agent.*, channel.*: another agent at work."""

    role: str | None = None
    title: str | None = None
    name: str | None = None
    status: str | None = None
    parent_task_id: str | None = None
    summary: str | None = None
    message: str | None = None
    topology: str | None = None
    result_ref: str | Ref | None = None
    transcript_ref: str | Ref | None = None
    failure_category: str | None = None


class HandoffPayload(Payload):
    """handoff.*: who gives work to whom."""

    handoff_id: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None
    reason: str | None = None
    status: str | None = None


class ProcessPayload(Payload):
    """process.*, command.*: a program that runs; offsets count bytes of one stream."""

    command_id: str | None = None
    command: str | list[str] | None = None
    cwd: str | None = None
    stream: str | None = None
    offset: int | None = None
    text: str | None = None
    exit_code: int | None = None
    signal: str | int | None = None
    status: str | None = None
    truncated: bool | None = None
    max_bytes: int | None = None
    bytes_written: int | None = None
    output_ref: str | Ref | None = None
    failure_category: str | None = None


class FileChangePayload(Payload):
    """file.*: a file that was read or changed, by its path in the workspace."""

    path: str | None = None
    change: str | None = None
    diff: str | None = None
    diff_ref: str | Ref | None = None
    added_lines: int | None = None
    removed_lines: int | None = None


class PatchPayload(Payload):
    """patch.*: a set of changes that is applied as one."""

    patch_id: str | None = None
    paths: list[str] | None = None
    diff: str | None = None
    diff_ref: str | Ref | None = None
    failure_category: str | None = None
    message: str | None = None


class TestRunPayload(Payload):
    """test.*: a run of tests and its result."""

    test_run_id: str | None = None
    command: str | None = None
    result: Any = None
    status: str | None = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None


def _describe(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


RouteAction = Literal["delegate", "review", "approve", "finish"]


class RouteDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator decides, as its structured output says it."""

    action: Annotated[
        RouteAction,
        _describe(
            "delegate gives work to an executor, review has a reviewer look at work, approve says "
            "whether work is accepted, finish ends the run."
        ),
    ]
    next_worker: Annotated[str | None, _describe("The name of the member who is to do it.")] = None
    instructions: Annotated[str | None, _describe("What the member is to do.")] = None
    reasoning: Annotated[str | None, _describe("Why, in a sentence.")] = None
    context: Annotated[Any, _describe("JSON that the member gets with the instructions.")] = None
    approved: Annotated[
        bool | None, _describe("For approve: true accepts the work, false sends it back.")
    ] = None
    feedback: Annotated[str | None, _describe("What is missing in work that goes back.")] = None
    summary: Annotated[str | None, _describe("For finish: what was achieved.")] = None
    blocked_reason: Annotated[
        str | None, _describe("For finish: why the goal cannot be reached.")
    ] = None
    subtask_id: Annotated[
        str | None,
        _describe("A name of your choice for a piece of work; the same name means the same work."),
    ] = None
    parent_task_id: Annotated[str | None, _describe("The work that this is a part of.")] = None
    correlation_id: Annotated[str | None, _describe("An id of yours, which is kept.")] = None


class RoutingPayload(Payload):
    """routing.*: which model was chosen among which."""

    model: str | None = None
    provider: str | None = None
    candidates: list[Any] | None = None
    reason: str | None = None
    reason_code: str | None = None


class CostPayload(Payload):
    """cost.*, limit.changed, rate_limit.hit, quota.*, metrics.changed: what was used of what."""

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    total_cost_usd: float | None = None
    agent_session_usage: dict[str, Any] | None = None
    currency: str | None = None
    limit: float | None = None
    used: float | None = None
    remaining: float | None = None
    utilization: float | None = None
    resets_at: str | None = None
    retry_after_ms: float | None = None
    message: str | None = None


class OutputPayload(Payload):
    """output.*: what was moved, cut, hidden or let go, and why."""

    event_id: str | None = None
    spilled: list[dict[str, Any]] | None = None
    redacted: list[dict[str, Any]] | None = None
    ref: str | Ref | None = None
    reason: str | None = None
    bytes: int | None = None


class StateDeltaPayload(Payload):
    """state.delta: RFC 6902 operations on the roots that may be patched."""

    patch: list[dict[str, Any]] | None = None
    operations: list[dict[str, Any]] | None = None


class SnapshotPayload(Payload):
    """snapshot.*, stream.*: how much of a thread a snapshot covers, or what is missing."""

    status: str | None = None
    from_sequence: int | None = None
    to_sequence: int | None = None
    expected: int | None = None
    got: int | None = None
    reason: str | None = None


class BenchmarkPayload(Payload):
    """benchmark.*: a trial, its configuration and its reward."""

    trial_id: str | None = None
    dataset: str | None = None
    task: str | None = None
    configuration: dict[str, Any] | None = None
    reward: float | None = None
    trajectory_ref: str | Ref | None = None
    failure_category: str | None = None


class DiagnosticPayload(Payload):
    """runtime.warning, runtime.error: something a person may want to look into."""

    code: str | None = None
    severity: str | None = None
    message: str | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None
    raw_ref: str | Ref | None = None


class SandboxBound(Payload):
    """One bound that a sandbox holds a program to, and by what means."""

    value: float | None = None
    by: str | None = None


class SandboxLack(Payload):
    """Something that was asked of a sandbox and does not hold, and why."""

    what: str | None = None
    reason: str | None = None


class SandboxTermsPayload(Payload):
    """sandbox.applied: what a program may reach from here on, and what could not be had."""

    mode: str | None = None
    decision: str | None = None
    reason_code: str | None = None
    message: str | None = None
    tool: str | None = None
    tool_version: str | None = None
    network: bool | str | None = None
    root: str | None = None
    writable: list[str] | None = None
    readable: list[str] | None = None
    hidden: list[str] | None = None
    namespaces: list[str] | None = None
    capabilities: str | None = None
    new_session: bool | None = None
    dies_with_parent: bool | None = None
    nested_namespaces: bool | None = None
    system_call_filter: bool | None = None
    limits: dict[str, SandboxBound] | None = None
    not_applied: list[SandboxLack] | None = None


class StandingGrant(Payload):
    """A rule that was granted for longer than once."""

    rule: str | None = None
    lasts: str | None = None
    revoked: bool | None = None


class PolicyTermsPayload(PermissionPayload):
    """policy.changed: the rule or mode that holds from here on, and who decided it."""

    rules: list[str] | None = None
    decided_by: Person | str | None = None
    standing: StandingGrant | None = None


class TaskProfilePayload(Payload):
    """task.profile.resolved: with what a task is worked on."""

    profile: str | None = None
    model: str | None = None
    provider: str | None = None
    role: str | None = None
    mode: str | None = None
    effort: str | None = None
    reason: str | None = None


class ProjectPayload(Payload):
    """project.*: a folder of work; `work_dir` is where its runs happen."""

    project_id: str | None = None
    name: str | None = None
    work_dir: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    by: Person | str | None = None


class ConversationPayload(Payload):
    """conversation.created: a place where people and agents talk."""

    conversation_id: str | None = None
    project_id: str | None = None
    title: str | None = None
    created_at: str | None = None
    by: Person | str | None = None


class MemberPayload(Payload):
    """conversation.member.added: who joined."""

    conversation_id: str | None = None
    member_id: str | None = None
    member_type: str | None = None
    by: Person | str | None = None


class ThreadPayload(Payload):
    """thread.created, thread.updated, thread.deleted: a thread; `status` is active or archived. The
    facts of a private thread stay on its Edge.
    """

    thread_id: str | None = None
    project_id: str | None = None
    conversation_id: str | None = None
    title: str | None = None
    status: str | None = None
    agent_id: str | None = None
    private: bool | None = None
    created_at: str | None = None
    updated_at: str | None = None
    by: Person | str | None = None


class ThreadForkPayload(Payload):
    """thread.forked: a thread that begins where another one stood."""

    thread_id: str | None = None
    parent_thread_id: str | None = None
    from_item_id: str | None = None
    project_id: str | None = None
    title: str | None = None
    by: Person | str | None = None


class ItemPayload(Payload):
    """message.created, item.*: one thing in a thread; `content` is an object."""

    item_id: str | None = None
    project_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    type: str | None = None
    role: str | None = None
    status: str | None = None
    content: dict[str, Any] | None = None
    created_at: str | None = None
    updated_at: str | None = None


class RunnerPayload(Payload):
    """runner.online, runner.offline: a place where runs happen."""

    runner_id: str | None = None


class HistoryRemovalPayload(Payload):
    """history.removed: an Edge removes the facts of a thread up to the seq `through`. `removal` is
    what the thread's row says about it, `thread` that row as it was listed then.
    """

    about_thread: str | None = None
    through: int | None = None
    removal: dict[str, Any] | None = None
    thread: dict[str, Any] | None = None


class RetentionPayload(Payload):
    """retention.completed: what one run of an Edge's retention removed, and for whom. `pending`
    names the threads of which a part is still to go.
    """

    run: dict[str, Any] | None = None
    pending: list[str] | None = None


class PersistenceFailurePayload(Payload):
    """run.persistence_error: the journal refused facts of a run."""

    run_id: str | None = None
    error: str | None = None


class PreviewPayload(Payload):
    """preview.*: a server of what a run made, on an origin of its own."""

    preview_id: str | None = None
    run_id: str | None = None
    artifact_id: str | None = None
    url: str | None = None
    status: str | None = None
    by: Person | str | None = None
