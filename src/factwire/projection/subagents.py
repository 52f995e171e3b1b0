"""Subagents: other agents at work for this thread, each with its own line of descent.

A subagent is never folded into the assistant. Where a fact does not say whose child it is, that is
shown as unavailable; no parent is made up.
"""

from typing import TYPE_CHECKING, Final

from factwire.facts.classes.payloads import TeammatePayload
from factwire.facts.fact import Fact, id_of
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import text_at
from factwire.facts.outcomes import bad_end
from factwire.facts.refs import artifact_refs_of, evidence_refs_of, ref_at, refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import tasks
from factwire.projection.diagnostics import add_remark
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.payload_fields import (
    adjust_state,
    other_id,
    read_payload,
    shorten_detail,
    stated_state,
    subagent_of,
    task_of,
    tool_of,
    turn_of,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

SUBAGENTS_PATH: Final = "/subagents"
SUBAGENT_THREADS_PATH: Final = "/subagents/threads"
DELEGATION_CALLS_PATH: Final = "/subagents/delegationCalls"

SUBAGENT_STATES: Final = {
    "subagent.spawned": "spawned",
    "subagent.started": "running",
    "subagent.progress": "running",
    "subagent.completed": "completed",
    "subagent.failed": "failed",
    "subagent.closed": "closed",
    "worker.started": "running",
    "worker.completed": "completed",
    "agent.spawned": "spawned",
    "agent.completed": "completed",
    "channel.connected": "connected",
    "channel.resumed": "connected",
    "channel.disconnected": "disconnected",
}
_STARTING_CLASSES: Final = frozenset(
    {"subagent.spawned", "subagent.started", "worker.started", "agent.spawned"}
)
"""Classes that say when a teammate began."""

_STATED: Final = ("subagent.status", "agent.changed")
"""Classes whose payload says how the teammate is; in others, `status` is about something else."""

_STATES_OF_PHASE: Final = {
    "preparing": "spawned",
    "acting": "running",
    "waiting": "waiting",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "closed",
    "archived": "closed",
}
"""The state that a UI event states by its phase, since its class says less than a runtime's."""

_ENDED: Final = frozenset({"completed", "failed", "cancelled", "closed"})
ACTIVE_STATES: Final = frozenset({"spawned", "running", "connected", "waiting"})
REMOTE_TOPOLOGIES: Final = ("remote_teammate", "background_teammate")


class SubagentThread(View):
    """One teammate as a thread of its own: where it comes from, how it is, what it left."""

    subagent_id: str
    status: str
    lineage: str
    name: str | None = None
    role: str | None = None
    title: str | None = None
    agent_id: str | None = None
    worker_id: str | None = None
    thread_id: str | None = None
    session_id: str | None = None
    parent_thread_id: str | None = None
    parent_session_id: str | None = None
    task_id: str | None = None
    parent_task_id: str | None = None
    parent_subagent_id: str | None = None
    tool_call_id: str | None = None
    turn_id: str | None = None
    channel_id: str | None = None
    remote_task_id: str | None = None
    topology: str | None = None
    runtime_entity: str | None = None
    summary: str | None = None
    message: str | None = None
    failure_category: str | None = None
    recovery_hint: str | None = None
    result_ref: str | None = None
    transcript_ref: str | None = None
    artifact_refs: list[str] | None = None
    evidence_refs: list[str] | None = None
    started_at: str | None = None
    updated_at: str | None = None
    completed_at: str | None = None


class DelegationCall(View):
    """A tool call that set a subagent to work."""

    tool_call_id: str
    subagent_id: str
    task_id: str | None = None
    turn_id: str | None = None
    created_at: str | None = None


class Activity(View):
    """Something a subagent did or was told."""

    event_id: str
    event_class: str
    subagent_id: str
    status: str | None = None
    message: str | None = None
    refs: list[str] | None = None
    created_at: str | None = None


class Subagents(View):
    """All teammates by id, who set them to work, what they did lately, and who is active."""

    threads: dict[str, SubagentThread]
    delegation_calls: dict[str, DelegationCall]
    activities: list[Activity]
    active_thread_ids: list[str]


def empty_subagents() -> Subagents:
    return Subagents(threads={}, delegation_calls={}, activities=[], active_thread_ids=[])


def update_subagent(draft: "StateDraft", fact: Fact) -> None:
    """subagent.*, worker.*, agent.* and channel.*: one teammate's state."""
    key = teammate_of(fact)
    if key is not None and _is_main_agent(draft, fact, key):
        return
    if key is None:
        add_remark(draft, fact, "teammate_unnamed", "the fact names no subagent, worker or agent")
        return
    thread, path = _ensure_thread(draft, fact, key)
    payload = read_payload(fact, TeammatePayload)
    if _closes_failed(fact, thread):
        draft.overruled = fact.id
    _enter_state(draft, fact, thread, path, _next_state(fact, thread, payload))
    if thread.started_at is None and fact.event_class in _STARTING_CLASSES:
        draft.put(thread, path, "started_at", fact.created_at)
    if thread.status in ACTIVE_STATES:
        draft.fill(thread, path, turn_id=turn_of(fact))
    _describe_thread(draft, thread, path, fact, payload)
    _set_lineage(draft, thread, path, fact)
    _record_delegation(draft, fact, thread)
    _add_activity(draft, fact, key, payload)


def apply_turn(draft: "StateDraft", fact: Fact, key: str, state: str) -> None:
    """A turn of a subagent: it works while the turn runs and ends as the turn ends, unless a fact
    of its own has ended it before.
    """
    thread, path = _ensure_thread(draft, fact, key)
    has_ended = thread.status in _ENDED and state in _ENDED
    _enter_state(draft, fact, thread, path, None if has_ended else state)
    payload = read_payload(fact, TeammatePayload)
    _describe_thread(draft, thread, path, fact, payload)
    _set_lineage(draft, thread, path, fact)
    if state in _ENDED:
        _add_activity(draft, fact, key, payload)


def end_thread(draft: "StateDraft", fact: Fact, key: str, status: str) -> None:
    """A teammate whose turn is over; of one that was not cancelled nobody knows how it ended."""
    thread, path = draft.state.subagents.threads[key], _thread_path(key)
    draft.put(thread, path, "status", status)
    draft.put(thread, path, "completed_at", fact.created_at if status in _ENDED else None)
    _mark_active(draft, key, active=False)


def _thread_path(key: str) -> str:
    return f"{SUBAGENT_THREADS_PATH}/{escape_key(key)}"


def note_message(draft: "StateDraft", key: str, message: str | None) -> None:
    """What the run of a subagent reports of itself."""
    thread = draft.state.subagents.threads.get(key)
    if thread is not None:
        draft.fill(thread, _thread_path(key), message=shorten_detail(message))


def _enter_state(
    draft: "StateDraft", fact: Fact, thread: SubagentThread, path: str, state: str | None
) -> None:
    if state not in (None, thread.status, "closed"):
        for field in ("message", "failure_category", "recovery_hint"):
            draft.put(thread, path, field, None)
    if state is not None:
        draft.put(thread, path, "status", state)
        draft.put(thread, path, "completed_at", fact.created_at if state in _ENDED else None)
        _mark_active(draft, thread.subagent_id, active=state in ACTIVE_STATES)


def _next_state(fact: Fact, thread: SubagentThread, payload: TeammatePayload) -> str | None:
    """The state that a fact puts a teammate into; a channel says nothing of one that is done, and
    closing one does not hide that it failed.
    """
    name = fact.event_class or ""
    if _closes_failed(fact, thread) or (_has_channel(fact) and thread.status in _ENDED):
        return None
    if name == "agent.completed":
        return bad_end(fact) or _STATES_OF_PHASE.get(fact.phase or "", "completed")
    if name in _STATED and payload.status is None:
        phase = fact.phase if name == "agent.changed" else None
        return _STATES_OF_PHASE.get(phase or "") or stated_state(fact, blocked="waiting")
    state = SUBAGENT_STATES.get(name) or (payload.status if name in _STATED else None)
    return None if state is None else adjust_state(fact, state, blocked="waiting")


def _closes_failed(fact: Fact, thread: SubagentThread) -> bool:
    return fact.event_class == "subagent.closed" and thread.status in ("failed", "cancelled")


def _is_main_agent(draft: "StateDraft", fact: Fact, key: str) -> bool:
    """Whether an agent fact is about the agent that runs the thread, who is no teammate."""
    is_agent = (fact.event_class or "").startswith("agent.")
    return is_agent and subagent_of(fact) is None and key == draft.state.runtime.agent_id


def teammate_of(fact: Fact) -> str | None:
    """Who a fact is about: a subagent, else a worker, else, in agent facts, the agent."""
    found = subagent_of(fact) or fact.worker_id or other_id(fact, "workerId", "worker_id")
    name = fact.event_class or ""
    if found is None and name.startswith(("agent.", "worker.")):
        found = fact.agent_id or other_id(fact, "agentId", "agent_id")
    if found is None and name.startswith("channel."):
        found = fact.channel_id or other_id(fact, "channelId", "channel_id")
    return found


def _ensure_thread(draft: "StateDraft", fact: Fact, key: str) -> tuple[SubagentThread, str]:
    path = _thread_path(key)
    existing = draft.state.subagents.threads.get(key)
    if existing is not None:
        return existing, path
    thread = SubagentThread(
        subagent_id=key,
        status=UNKNOWN,
        lineage=UNKNOWN,
        turn_id=turn_of(fact),
    )
    return draft.create(draft.state.subagents.threads, SUBAGENT_THREADS_PATH, key, thread), path


def _describe_thread(
    draft: "StateDraft", thread: SubagentThread, path: str, fact: Fact, payload: TeammatePayload
) -> None:
    state = draft.state
    own_thread = fact.thread_id if fact.thread_id != state.thread_id else None
    own_session = fact.session_id if fact.session_id != state.session_id else None
    draft.fill(
        thread,
        path,
        name=payload.name,
        role=payload.role,
        title=payload.title,
        agent_id=fact.agent_id,
        worker_id=fact.worker_id,
        thread_id=text_at(fact.payload, "subagentThreadId", "childThreadId") or own_thread,
        session_id=own_session,
        parent_thread_id=id_of(fact, "parentThreadId"),
        parent_session_id=id_of(fact, "parentSessionId"),
        task_id=task_of(fact),
        parent_task_id=id_of(fact, "parentTaskId"),
        parent_subagent_id=_find_parent(draft, fact, thread.subagent_id),
        tool_call_id=tool_of(fact),
        channel_id=fact.channel_id or other_id(fact, "channelId", "channel_id"),
        remote_task_id=fact.remote_task_id or other_id(fact, "remoteTaskId", "remote_task_id"),
        topology=payload.topology or fact.topology or _topology_of(fact),
        runtime_entity=fact.runtime_entity,
        summary=shorten_detail(payload.summary),
        message=shorten_detail(payload.message),
        failure_category=payload.failure_category,
        recovery_hint=text_at(fact.payload, "recoveryHint", "recovery_hint"),
        result_ref=ref_at(fact.payload, "resultRef"),
        transcript_ref=ref_at(fact.payload, "transcriptRef"),
        updated_at=fact.created_at,
    )
    draft.extend(thread, path, "artifact_refs", artifact_refs_of(fact))
    draft.extend(thread, path, "evidence_refs", evidence_refs_of(fact))


def stated_parent_of(fact: Fact) -> str | None:
    """The subagent or agent that a fact names as the parent of the one that it is about."""
    return text_at(fact.payload, *_PARENT_KEYS)


_PARENT_KEYS: Final = ("parentSubagentId", "parent_subagent_id", "parentAgentId", "parent_agent_id")


def _find_parent(draft: "StateDraft", fact: Fact, key: str) -> str | None:
    """The parent that a fact names, or whoever works on the thread, in the session or on the task
    that it names as the one above. Of several on one task nobody knows which it is.
    """
    named = stated_parent_of(fact)
    if named is not None:
        return named
    threads = draft.state.subagents.threads
    for wire, field in _LINEAGE_FIELDS:
        above = id_of(fact, wire)
        if above is None:
            continue
        others = draft.memory.subagents_by_lineage[field].find_all(above)
        found = (other for other in others if key not in (other, threads[other].parent_subagent_id))
        first = next(found, None)
        if first is not None and next(found, None) is None:
            return first
    return None


_LINEAGE_FIELDS: Final = (
    ("parentThreadId", "thread_id"),
    ("parentSessionId", "session_id"),
    ("parentTaskId", "task_id"),
)


def _topology_of(fact: Fact) -> str | None:
    if fact.surface in REMOTE_TOPOLOGIES:
        return fact.surface
    return "remote_teammate" if (fact.event_class or "").startswith("channel.") else None


def _set_lineage(draft: "StateDraft", thread: SubagentThread, path: str, fact: Fact) -> None:
    if thread.task_id is not None:
        draft.put(thread, path, "lineage", "known")
        tasks.add_subagent(draft, fact, thread.task_id, thread.subagent_id)
        if task_of(fact) == thread.task_id:
            tasks.set_parent(draft, thread.task_id, thread.parent_task_id)
    elif thread.lineage != "unavailable" and not _has_channel(fact):
        draft.put(thread, path, "lineage", "unavailable")
        message = f"nothing says which task {thread.subagent_id} works on"
        add_remark(draft, fact, "lineage_missing", message, subject=thread.subagent_id)


def _has_channel(fact: Fact) -> bool:
    return (fact.event_class or "").startswith("channel.")


def _record_delegation(draft: "StateDraft", fact: Fact, thread: SubagentThread) -> None:
    call = tool_of(fact)
    if call is None or call in draft.state.subagents.delegation_calls:
        return
    if fact.event_class not in ("subagent.spawned", "subagent.started", "agent.spawned"):
        return
    made = DelegationCall(
        tool_call_id=call,
        subagent_id=thread.subagent_id,
        task_id=thread.task_id,
        turn_id=turn_of(fact),
        created_at=fact.created_at,
    )
    draft.create(draft.state.subagents.delegation_calls, DELEGATION_CALLS_PATH, call, made)


def _add_activity(draft: "StateDraft", fact: Fact, key: str, payload: TeammatePayload) -> None:
    activity = Activity(
        event_id=fact.id,
        event_class=fact.event_class or "",
        subagent_id=key,
        status=payload.status,
        message=shorten_detail(payload.message or payload.summary or fact.detail),
        refs=refs_of(fact) or None,
        created_at=fact.created_at,
    )
    path = f"{SUBAGENTS_PATH}/activities"
    draft.push(draft.state.subagents.activities, path, activity, LANE_EVENTS_KEPT)


def _mark_active(draft: "StateDraft", key: str, *, active: bool) -> None:
    ids, path = draft.state.subagents.active_thread_ids, f"{SUBAGENTS_PATH}/activeThreadIds"
    draft.list_text(ids, path, key, listed=active)
