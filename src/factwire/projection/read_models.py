"""Read models: a thread, a task or a session at one moment, small enough for a first screen.

They are built from a state and say nothing that it does not. A state can be restored from one and
then be repaired by the stream. Fields that this version does not know are kept as `extensions`.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

from factwire.facts.classes.payloads import Person
from factwire.projection.actions import Action
from factwire.projection.artifacts import ArtifactState, EvidenceItem, Review
from factwire.projection.diagnostics import Diagnostic
from factwire.projection.read_model_rows import (
    MessageSnapshot,
    copy_fields,
    has_lost_facts,
    latest_messages,
    take_snapshot,
)
from factwire.projection.state import ProjectionState
from factwire.projection.subagents import SubagentThread
from factwire.projection.tasks import Attempt, ProjectedTask
from factwire.projection.thread_status import QueuedTurn
from factwire.projection.turns import ProjectedTurn
from factwire.projection.views import View

READ_MODEL_VERSION: Final = "factwire-read-model/v1"

_DIAGNOSTICS_SHOWN: Final = 20


class InvalidReadModel(ValueError):
    """Something that is no read model; what is wrong is in the message."""

    code = "invalid_read_model"


class ToolCallSummary(View):
    """One call, without its input and output; `output_characters` is how much output it wrote."""

    tool_call_id: str
    state: str
    tool_name: str | None = None
    title: str | None = None
    turn_id: str | None = None
    subagent_id: str | None = None
    output_ref: str | None = None
    failure_category: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    output_characters: int = 0
    summary: str | None = None
    message: str | None = None
    recovery_hint: str | None = None
    exit_code: int | None = None
    duration_ms: float | None = None
    message_id: str | None = None
    step_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None
    action_id: str | None = None
    artifact_ids: list[str] | None = None
    ref_ids: list[str] | None = None
    evidence_refs: list[str] | None = None
    diff_ref: str | None = None
    unclosed: bool | None = None
    origin_thread_id: str | None = None


class Outcome(View):
    """How the last turn ended, and who cancelled it."""

    status: str
    turn_id: str | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None
    cancelled_by: Person | None = None


class ThreadReadModel(View):
    """One thread at `event_cursor`, the sequence of the last fact that it knows of.

    `messages` are the latest of the conversation, after `earlier_messages` that were left out. A
    list that is absent says nothing; an empty one says that there is nothing. `doubts` are the
    reasons for which the thread may lack something: `gap_reported` where facts are missing,
    `state_delta_failed` where `shared` may be wrong. `resolved_actions` are requests that are over,
    so that a second answer is known for one. `extensions` are the fields that a reader of this
    version does not know.
    """

    schema_version: str
    runtime_id: str
    session_id: str
    thread_id: str
    status: str
    pending_actions: list[Action]
    tool_calls: list[ToolCallSummary]
    queued_turns: list[QueuedTurn]
    incidents: list[Diagnostic]
    diagnostics: list[Diagnostic]
    active_turn_id: str | None = None
    last_outcome: Outcome | None = None
    history_cursor: str | None = None
    event_cursor: int | None = None
    blocked_reason: str | None = None
    messages: list[MessageSnapshot] | None = None
    earlier_messages: int | None = None
    tasks: list[ProjectedTask] | None = None
    artifacts: list[ArtifactState] | None = None
    evidence: list[EvidenceItem] | None = None
    reviews: list[Review] | None = None
    subagents: list[SubagentThread] | None = None
    shared: dict[str, Any] | None = None
    doubts: list[str] | None = None
    extensions: dict[str, Any] | None = None
    resolved_actions: list[Action] | None = None


class TaskSteps(View):
    """How many steps of how many."""

    completed_steps: int
    total_steps: int


class TaskSnapshot(View):
    """One task at `event_cursor`."""

    task_id: str
    status: str
    attempts: list[Attempt]
    dependencies: dict[str, str]
    subagents: list[str]
    artifact_refs: list[str]
    evidence_refs: list[str]
    output_refs: list[str] | None = None
    objective: str | None = None
    parent_task_id: str | None = None
    current_run_id: str | None = None
    progress: TaskSteps | None = None
    progress_share: float | None = None
    event_cursor: int | None = None


class ArtifactRef(View):
    """Where an artifact is, never what it holds."""

    artifact_id: str
    kind: str
    status: str
    owner: str | None = None
    title: str | None = None
    version_id: str | None = None
    preview_ref: str | None = None
    source: str | None = None


class EvidenceRef(View):
    """Where a piece of evidence is, and the run it belongs to."""

    evidence_id: str
    kind: str
    status: str
    runtime_correlation: dict[str, str]
    title: str | None = None
    summary_ref: str | None = None
    export_ref: str | None = None


class ThreadSummary(View):
    """A thread as one line of a session."""

    thread_id: str
    status: str
    pending_action_count: int
    title: str | None = None
    active_turn_id: str | None = None
    event_cursor: int | None = None


class SessionSnapshot(View):
    """A session: its threads, and the work and results in all of them."""

    schema_version: str
    session_id: str
    status: str
    threads: list[ThreadSummary]
    tasks: list[TaskSnapshot]
    artifacts: list[ArtifactRef]
    evidence: list[EvidenceRef]
    pending_action_count: int


def thread_read_model(state: ProjectionState) -> ThreadReadModel:
    """The thread as the state has it, with all that a first screen shows; an id that no fact gave
    reads `unknown`. Later facts do not change it.
    """
    shown = latest_messages(state.messages)
    model = thread_outline(state)
    model.messages = [take_snapshot(message, state.hydration) for message in shown]
    earlier = len(state.messages) - len(shown) + (state.read_model.earlier_messages or 0)
    model.earlier_messages = earlier or None
    model.resolved_actions = [a for a in state.actions.values() if a.status != "pending"]
    model.tasks = list(state.tasks.values())
    model.artifacts = list(state.artifacts.values())
    model.evidence = list(state.evidence.items.values())
    model.reviews = list(state.evidence.reviews.values())
    model.subagents = list(state.subagents.threads.values())
    model.shared = state.shared or None
    return deepcopy(model)


def thread_outline(state: ProjectionState) -> ThreadReadModel:
    """The thread without its conversation and the results of its work."""
    remarks = list(state.diagnostics.items.values())
    return ThreadReadModel(
        schema_version=READ_MODEL_VERSION,
        runtime_id=state.runtime_id or "unknown",
        session_id=state.session_id or "unknown",
        thread_id=state.thread_id or "unknown",
        status=state.runtime.status,
        active_turn_id=state.runtime.active_turn_id,
        pending_actions=[a for a in state.actions.values() if a.status == "pending"],
        tool_calls=[copy_fields(tool, ToolCallSummary) for tool in state.tools.values()],
        queued_turns=state.queue.turns,
        incidents=_list_incidents(state, remarks),
        diagnostics=remarks[-_DIAGNOSTICS_SHOWN:],
        last_outcome=_last_outcome(state),
        history_cursor=state.read_model.history_cursor,
        event_cursor=state.hydration.cursor,
        blocked_reason=state.runtime.blocked_reason,
        doubts=_list_doubts(state) or None,
        extensions=state.read_model.extensions,
    )


FAILED_TURN: Final = "turn_failed:"
"""How the id of an incident begins that is the failure of a turn."""


def incident_id(turn: ProjectedTurn) -> str:
    """What the failure of a turn goes by. Turns of others name who took them, because theirs may
    have the id of one of the thread's own.
    """
    own = f"{FAILED_TURN}{turn.turn_id}"
    return own if turn.entity is None else f"{own}:{turn.entity}:{_subject_of(turn)}"


def _list_incidents(state: ProjectionState, remarks: list[Diagnostic]) -> list[Diagnostic]:
    """Remarks that are errors, and the failure of each turn once."""
    failures = [_to_incident(turn) for turn in state.turns.values() if turn.status == "failed"]
    names = {failure.diagnostic_id for failure in failures}
    errors = [
        each for each in remarks if each.severity == "error" and each.diagnostic_id not in names
    ]
    return [*errors, *failures]


def _to_incident(turn: ProjectedTurn) -> Diagnostic:
    """Why a turn failed: of every turn, not only of the latest."""
    category = turn.failure_category or "unknown"
    return Diagnostic(
        diagnostic_id=incident_id(turn),
        code=category,
        severity="error",
        message=turn.message or category,
        event_id=turn.ended_by or turn.turn_id,
        turn_id=turn.turn_id,
        subject=_subject_of(turn),
        failure_category=turn.failure_category,
        recovery_hint=turn.recovery_hint,
        created_at=turn.completed_at,
    )


def _subject_of(turn: ProjectedTurn) -> str | None:
    """Who took a turn that is not the thread's own."""
    if turn.entity is None:
        return None
    named = turn.subagent_id or turn.job_id or turn.task_id or turn.thread_id
    return named or turn.entity


def task_snapshot(state: ProjectionState, task_id: str) -> TaskSnapshot:
    """One task; raises `KeyError` for one that the state does not have."""
    return _to_task_snapshot(state, state.tasks[task_id])


def artifact_ref(artifact: ArtifactState) -> ArtifactRef:
    return ArtifactRef(
        artifact_id=artifact.artifact_id,
        kind=artifact.kind,
        status=artifact.status,
        owner=artifact.owner,
        title=artifact.title,
        version_id=artifact.version_id,
        preview_ref=artifact.preview_ref,
        source=artifact.source,
    )


def evidence_ref(item: EvidenceItem) -> EvidenceRef:
    ids = {
        "turnId": item.turn_id,
        "runId": item.run_id,
        "taskId": item.task_id,
        "subagentId": item.subagent_id,
        "toolCallId": item.tool_call_id,
        "traceId": item.trace_id,
    }
    return EvidenceRef(
        evidence_id=item.evidence_id,
        kind=item.kind,
        status=item.status,
        runtime_correlation={name: value for name, value in ids.items() if value is not None},
        title=item.title,
        summary_ref=item.summary_ref,
        export_ref=item.export_ref,
    )


def session_snapshot(session_id: str, states: Iterable[ProjectionState]) -> SessionSnapshot:
    """A session from the states of its threads."""
    existing = list(states)
    threads = [_summarize_thread(state) for state in existing]
    return SessionSnapshot(
        schema_version=READ_MODEL_VERSION,
        session_id=session_id,
        status=_strongest_status(thread.status for thread in threads),
        threads=threads,
        tasks=[_to_task_snapshot(s, task) for s in existing for task in s.tasks.values()],
        artifacts=[artifact_ref(a) for s in existing for a in s.artifacts.values()],
        evidence=[evidence_ref(item) for s in existing for item in s.evidence.items.values()],
        pending_action_count=sum(thread.pending_action_count for thread in threads),
    )


def read_thread_model(value: Mapping[str, Any] | bytes) -> ThreadReadModel:
    """A read model as somebody sent it; fields that this version does not know are its
    `extensions`.
    """
    try:
        fields = msgspec.json.decode(value) if isinstance(value, bytes) else value
        model = msgspec.convert(fields, ThreadReadModel)
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidReadModel(f"expected a ThreadReadModel: {error}") from error
    unknown = {name: value for name, value in fields.items() if name not in _WIRE_FIELDS}
    if unknown:
        model.extensions = {**unknown, **(model.extensions or {})}
    return model


_WIRE_FIELDS: Final = frozenset(
    field.encode_name for field in msgspec.structs.fields(ThreadReadModel)
)


_STRENGTH: Final = ("failed", "waiting", "blocked", "running", "completed", "canceled", "idle")


def _strongest_status(statuses: Iterable[str]) -> str:
    found = set(statuses)
    return next((status for status in _STRENGTH if status in found), "idle")


def _list_doubts(state: ProjectionState) -> list[str]:
    """What a state that is restored from here has to doubt, too."""
    is_restored = state.read_model.event_cursor is not None
    passing = {"repair_started", "child_repair_started"}
    if is_restored:
        # Where a child's thread was when the read model was made, nobody knows; it does not show
        # that facts of it are missing.
        passing.add("child_starts_late")
    reasons = [reason for reason in state.hydration.reasons if reason not in passing]
    is_missing = "gap_reported" not in reasons and has_lost_facts(state.hydration)
    return ["gap_reported", *reasons] if is_missing else reasons


def _last_outcome(state: ProjectionState) -> Outcome | None:
    runtime = state.runtime
    if runtime.latest_turn_status not in ("completed", "failed", "canceled"):
        return None
    turn = state.turns.get(runtime.latest_turn_id or "")
    return Outcome(
        status=runtime.latest_turn_status,
        turn_id=runtime.latest_turn_id,
        failure_category=runtime.failure_category,
        recovery_hint=runtime.recovery_hint,
        cancelled_by=turn.cancelled_by if turn else None,
    )


def _to_task_snapshot(state: ProjectionState, task: ProjectedTask) -> TaskSnapshot:
    steps = None
    if task.completed_steps is not None and task.total_steps is not None:
        steps = TaskSteps(completed_steps=task.completed_steps, total_steps=task.total_steps)
    waiting_for = dict.fromkeys(task.depends_on or (), "unknown")
    return TaskSnapshot(
        task_id=task.task_id,
        status=task.status,
        attempts=task.attempts,
        dependencies={**waiting_for, **(task.dependencies or {})},
        subagents=task.subagent_ids or [],
        artifact_refs=task.artifact_refs or [],
        evidence_refs=task.evidence_refs or [],
        output_refs=task.output_refs,
        objective=task.objective,
        parent_task_id=task.parent_task_id,
        current_run_id=task.current_run_id,
        progress=steps,
        progress_share=task.progress,
        event_cursor=state.hydration.cursor,
    )


def _summarize_thread(state: ProjectionState) -> ThreadSummary:
    pending = sum(action.status == "pending" for action in state.actions.values())
    return ThreadSummary(
        thread_id=state.thread_id or "unknown",
        status=state.runtime.status,
        pending_action_count=pending,
        title=state.title,
        active_turn_id=state.runtime.active_turn_id,
        event_cursor=state.hydration.cursor,
    )
