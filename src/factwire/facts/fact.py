"""`Fact`: one typed thing that an agent did, in the one form Factwire keeps, and its ids.

Its wire form is shape A. A missing id or classification is absent, never invented; fields that
Factwire does not know are kept in `extra` and written back at the top level. Correlation ids tie
facts to each other: a fact carries them at its top level or in its payload, in camel or snake
case; the top level wins, and nothing is ever read as an id from text.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec


class Fact(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    gc=False,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """One fact. `sequence` orders the facts of a thread; absent until a runtime assigns it."""

    id: str
    kind: str
    status: str
    title: str
    created_at: str
    schema_version: str
    runtime_id: str
    sequence: int | None = None
    event_class: str | None = None

    session_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    turn_id: str | None = None
    step_id: str | None = None
    attempt_id: str | None = None
    message_id: str | None = None
    part_id: str | None = None
    task_id: str | None = None
    parent_task_id: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    worker_id: str | None = None
    parent_session_id: str | None = None
    parent_thread_id: str | None = None
    remote_task_id: str | None = None
    queued_turn_id: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    artifact_id: str | None = None
    evidence_id: str | None = None
    handoff_id: str | None = None
    review_id: str | None = None
    channel_id: str | None = None
    process_id: str | None = None
    job_id: str | None = None
    job_item_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    project_id: str | None = None
    conversation_id: str | None = None
    edge_id: str | None = None
    item_id: str | None = None
    team_id: str | None = None

    owner: str | None = None
    scope: str | None = None
    phase: str | None = None
    surface: str | None = None
    persistence: str | None = None
    control: str | None = None
    topology: str | None = None
    runtime_entity: str | None = None
    runtime_status: str | None = None
    latest_turn_status: str | None = None
    team_phase: str | None = None
    team_name: str | None = None

    detail: str | None = None
    # A plain `dict` as the factory is what `omit_defaults` recognises.
    payload: dict[str, Any] = msgspec.field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    ref_ids: tuple[str, ...] = ()
    artifact_refs: tuple[str, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    completed_at: str | None = None

    # The empty wire name keeps `extra` out of reach of any sensible input; the codec treats a
    # field that really is called "" as one more unknown field, and an empty object under that
    # name is refused here so that the codec sees it.
    extra: Annotated[dict[str, Any], msgspec.Meta(min_length=1)] = msgspec.field(  # pyright: ignore[reportUnknownVariableType]
        default_factory=dict, name=""
    )


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


EntityKind = Literal["subagent", "job", "task", "thread"]


class RunEntity(NamedTuple):
    """Who takes a turn beside the thread's own agent: a subagent, a job, a task that is worked on
    elsewhere, or a child thread. Without an id, the fact states the kind and not which one.
    """

    kind: EntityKind
    id: str | None


_TASK_ENTITIES: Final = frozenset({"external_task", "work_item"})
_CHILD_THREAD_KEYS: Final = ("childThreadId", "child_thread_id", "subagentThreadId")

LINEAGE_KEYS: Final = frozenset(
    PAYLOAD_NAMES["parentThreadId"]
    + PAYLOAD_NAMES["parentSessionId"]
    + PAYLOAD_NAMES["parentTaskId"]
)

_ENTITY_KEYS: Final = LINEAGE_KEYS | {
    *(PAYLOAD_NAMES["subagentId"] + PAYLOAD_NAMES["jobId"] + PAYLOAD_NAMES["jobItemId"]),
    *PAYLOAD_NAMES["workerId"],
    *(*PAYLOAD_NAMES["remoteTaskId"], "runtimeEntity", "runtime_entity", *_CHILD_THREAD_KEYS),
}
"""Payload fields that can name who takes a turn."""


def has_lineage(fact: Fact) -> bool:
    """Whether a fact names a thread, a session or a task above the one that it is about."""
    stated = fact.parent_thread_id or fact.parent_session_id or fact.parent_task_id
    return bool(stated) or not LINEAGE_KEYS.isdisjoint(fact.payload)


def names_nobody(fact: Fact) -> bool:
    """Whether a fact names neither an entity nor a parent, as most facts do; this is asked several
    times of each one.
    """
    return not (
        fact.subagent_id
        or fact.worker_id
        or fact.job_id
        or fact.job_item_id
        or fact.remote_task_id
        or fact.runtime_entity
        or fact.parent_thread_id
        or fact.parent_session_id
        or fact.parent_task_id
    ) and _ENTITY_KEYS.isdisjoint(fact.payload)


def entity_of(fact: Fact) -> RunEntity | None:
    """Whose turn, failure or end a fact reports; None where it is the thread's own.

    An id of a subagent, a job or a remote task decides, then that of a worker; a task id does only
    where `runtimeEntity` states that the task is what runs, since an agent's own turn may work on a
    task, too. Where none of these is stated, lineage decides: what has a parent on its own thread
    is a child's.
    """
    if names_nobody(fact):
        return None
    subagent = fact.subagent_id or id_in_payload(fact.payload, "subagentId")
    if subagent is not None:
        return RunEntity("subagent", subagent)
    stated = _stated_entity(fact)
    if stated == "agent_turn":
        return None
    return _named_entity(fact, stated) or _worker_of(fact) or entity_by_lineage(fact)


def loose_entity_of(fact: Fact) -> RunEntity | None:
    """Who takes a turn by nothing but a worker or a task above it. An agent's own turn may carry
    these, too: whoever follows the thread lets the opening of the turn decide.
    """
    if names_nobody(fact) or fact.subagent_id or id_in_payload(fact.payload, "subagentId"):
        return None
    stated = _stated_entity(fact)
    if stated == "agent_turn" or _named_entity(fact, stated) is not None:
        return None
    lineage = entity_by_lineage(fact)
    if lineage is not None and lineage.kind == "thread":
        return None
    return _worker_of(fact) or lineage


def _worker_of(fact: Fact) -> RunEntity | None:
    is_run = (fact.event_class or "").startswith(_RUN_CLASSES)
    worker = id_of(fact, "workerId") if is_run else None
    return RunEntity("subagent", worker) if worker is not None else None


def _stated_entity(fact: Fact) -> object:
    payload = fact.payload
    return fact.runtime_entity or payload.get("runtimeEntity") or payload.get("runtime_entity")


def _named_entity(fact: Fact, stated: object) -> RunEntity | None:
    return _job_of(fact, stated) or _task_of(fact, stated) or _child_of(fact, stated)


def _job_of(fact: Fact, stated: object) -> RunEntity | None:
    job, task = id_of(fact, "jobId"), id_of(fact, "taskId")
    if stated == "automation_job" and job is None and task is not None:
        return RunEntity("task", task)
    is_job = job is not None or stated == "automation_job" or id_of(fact, "jobItemId") is not None
    return RunEntity("job", job) if is_job else None


def _task_of(fact: Fact, stated: object) -> RunEntity | None:
    remote = id_of(fact, "remoteTaskId")
    if remote is None and stated not in _TASK_ENTITIES:
        return None
    return RunEntity("task", id_of(fact, "taskId") or remote)


def _child_of(fact: Fact, stated: object) -> RunEntity | None:
    if stated == "subagent_turn":
        worker, task = id_of(fact, "workerId"), id_of(fact, "taskId")
        return RunEntity("task", task) if worker is None and task else RunEntity("subagent", worker)
    if (fact.event_class or "").startswith(_RUN_CLASSES):
        for key in _CHILD_THREAD_KEYS:
            child = fact.payload.get(key)
            if isinstance(child, str) and child:
                return RunEntity("thread", child)
    return None


_RUN_CLASSES: Final = ("turn.", "run.")
"""Classes in which a child thread is who the fact is about; a tool call only names one."""


def entity_by_lineage(fact: Fact) -> RunEntity | None:
    """The child that a fact marks by what is above it. A parent other than the fact's own thread or
    session is the parent of that thread, whose own agent is meant.
    """
    for wire, own in (("parentThreadId", fact.thread_id), ("parentSessionId", fact.session_id)):
        parent = id_of(fact, wire)
        if parent is not None:
            return RunEntity("thread", None) if own in (None, parent) else None
    is_run = (fact.event_class or "").startswith(_RUN_CLASSES)
    if not is_run or id_of(fact, "parentTaskId") is None:
        return None
    return RunEntity("task", id_of(fact, "taskId"))


def is_of_thread(fact: Fact, thread_id: str | None, session_id: str | None = None) -> bool:
    """Whether a fact is about the thread's own run, and not about an entity beside it.

    On a thread that has a parent, the subagent that its facts name is its own agent.
    """
    if fact.thread_id is not None and fact.thread_id != thread_id:
        return False
    if names_nobody(fact):
        return True
    entity = entity_of(fact)
    if not has_lineage(fact):
        return entity is None
    parent = id_of(fact, "parentThreadId")
    if parent is not None:
        is_child = parent == thread_id or fact.thread_id is None
        return not is_child and (entity is None or entity.kind == "subagent")
    session = id_of(fact, "parentSessionId")
    return entity is None and (session is None or session != session_id)
