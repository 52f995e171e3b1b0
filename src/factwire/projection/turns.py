"""Turns: every turn of the thread, and of those who work beside it, with how each one ended.

One rule decides whose a turn, a failure or an end is. What carries a subagent, a job, a task that
is worked on elsewhere or a child thread begins and ends that, and leaves the thread's own run as it
is, even where both go by the same turn id. Why a turn failed is kept on the turn, so that a later
one does not hide it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from factwire.facts.classes.payloads import Person, TurnEndPayload, TurnStartPayload, to_person
from factwire.facts.fact import (
    EntityKind,
    Fact,
    RunEntity,
    entity_by_lineage,
    entity_of,
    has_lineage,
    id_of,
    is_of_thread,
    loose_entity_of,
    names_nobody,
)
from factwire.facts.json_patch import escape_key
from factwire.facts.open_work import TURN_OPENERS
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.payload_fields import (
    drop_placeholder_time,
    outcome_of,
    read_payload,
    shorten_detail,
    subagent_of,
    task_of,
    turn_of,
)
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft
    from factwire.projection.subagents import SubagentThread

TURNS_PATH: Final = "/turns"

ENDED_TURNS: Final = frozenset({"completed", "failed", "canceled"})


class ProjectedTurn(View):
    """One turn, and who cancelled it. One that is not the thread's own names who took it: a
    subagent, a job, a task or a child thread.
    """

    turn_id: str
    status: str
    run_id: str | None = None
    agent_id: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    worker_id: str | None = None
    parent_task_id: str | None = None
    job_id: str | None = None
    thread_id: str | None = None
    failure_category: str | None = None
    message: str | None = None
    recovery_hint: str | None = None
    submitted_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    entity: EntityKind | None = None
    ended_by: str | None = None
    cancelled_by: Person | None = None


def is_own_run(draft: "StateDraft", fact: Fact) -> bool:
    """Whether a fact is about this thread's own run; worked out once for all of its reducers."""
    if draft.owned_fact is not fact:
        state = draft.state
        is_plain = fact.thread_id in (None, state.thread_id) and names_nobody(fact)
        draft.is_own = is_plain or (
            (
                is_of_thread(fact, state.thread_id, state.session_id)
                or _is_opened_by_thread(draft, fact)
            )
            and not _descends_from_teammate(draft, fact)
        )
        draft.owned_fact = fact
    return draft.is_own


def _is_opened_by_thread(draft: "StateDraft", fact: Fact) -> bool:
    """Whether a turn that only a worker or a task above it marks as a child's is the thread's own
    after all, as its opening shows (`OpenWork.is_of_thread` has the same rule).
    """
    turns, turn_id = draft.state.turns, turn_of(fact)
    is_elsewhere = fact.thread_id not in (None, draft.state.thread_id)
    entity = loose_entity_of(fact)
    if turn_id is None or is_elsewhere or entity is None:
        return False
    if draft.memory.has_turns_beside and any(
        turn.turn_id == turn_id and turn.entity is not None for turn in turns.values()
    ):
        return False
    turn = turns.get(turn_id)
    if fact.event_class in TURN_OPENERS:
        is_free = draft.state.runtime.active_turn_id is None
        return is_free and (turn is not None or not has_plain_turn(turns))
    return turn is not None and entity.id in (None, turn.task_id, turn.worker_id)


def has_plain_turn(turns: Mapping[str, ProjectedTurn]) -> bool:
    """Whether a thread ever began a turn without naming a worker or a task above."""
    return any(
        turn.entity is None and turn.worker_id is None and turn.parent_task_id is None
        for turn in turns.values()
    )


def _descends_from_teammate(draft: "StateDraft", fact: Fact) -> bool:
    """Whether a fact names the thread or the session of a teammate as the one above."""
    teammates = draft.memory.subagents_by_lineage
    above = {id_of(fact, "parentThreadId"), id_of(fact, "parentSessionId")} - {None}
    return any(
        teammates[field].find(value) is not None
        for value in above
        for field in ("thread_id", "session_id")
    )


def find_entity(draft: "StateDraft", fact: Fact) -> RunEntity | None:
    """Who beside the thread a fact is about, by the id that the state has for it: of a child thread
    the subagent that works on it, of a remote task the task, of an item the job that it runs in.
    """
    if is_own_run(draft, fact):
        return None
    state, memory, entity = draft.state, draft.memory, entity_of(fact)
    child = fact.thread_id if fact.thread_id != state.thread_id else None
    if entity is None or (entity.kind == "thread" and entity.id is None):
        entity = RunEntity("thread", child)
    key: str | None = None
    if entity.kind == "thread" or entity == entity_by_lineage(fact):
        key = _find_teammate(draft, fact, entity)
        return entity if key is None else RunEntity("subagent", key)
    if entity.kind == "task" and entity.id not in state.tasks:
        key = memory.tasks_by_remote_id.find(entity.id)
    elif entity.kind == "job" and entity.id is None:
        key = memory.jobs_by_item.find(id_of(fact, "jobItemId"))
    return entity if key is None else RunEntity(entity.kind, key)


def _find_teammate(draft: "StateDraft", fact: Fact, entity: RunEntity) -> str | None:
    """The teammate who takes the turn of a child that a fact marks by its thread or by lineage: by
    the thread, the session or the task, else the only one at work whose thread nobody has named.
    """
    state, session, task = draft.state, fact.session_id, task_of(fact)
    rows, lookups = state.subagents.threads, draft.memory.subagents_by_lineage
    child = entity.id if entity.kind == "thread" else None
    turn = state.turns.get(turn_of(fact) or "")
    if child is not None:
        found = [*lookups["thread_id"].find_all(child)]
    elif turn is not None and turn.entity == "subagent":
        found = [turn.subagent_id] if turn.subagent_id else []
    else:
        found = []
    if not found and session is not None and session != state.session_id:
        found = [*lookups["session_id"].find_all(session)]
    if not found and task is not None:
        found = [*lookups["task_id"].find_all(task)]
    if not found and task is None:
        found = [
            key
            for key in state.subagents.active_thread_ids
            if rows[key].thread_id is None and _is_below(rows[key], fact)
        ]
    return found[0] if len(found) == 1 else None


def _is_below(row: "SubagentThread", fact: Fact) -> bool:
    """Whether nothing contradicts that a teammate has the parents which a fact names."""
    return all(
        above is None or own in (None, above)
        for above, own in (
            (id_of(fact, "parentThreadId"), row.parent_thread_id),
            (id_of(fact, "parentSessionId"), row.parent_session_id),
            (id_of(fact, "parentTaskId"), row.parent_task_id),
        )
    )


_UNNAMED_FAMILIES: Final = frozenset(
    {"subagent", "worker", "agent", "channel", "task", "job", "handoff", "review", "team"}
    | {"session", "thread", "snapshot", "stream", "state", "messages", "history", "queue"}
)
"""Families whose facts are about the team, the thread or the stream, and not done by anybody."""


def complete_fact(draft: "StateDraft", fact: Fact, *, is_main: bool) -> Fact:
    """The fact with the subagent whose doing it is, and without a time that is a placeholder."""
    if fact.created_at == UNKNOWN:
        fact = drop_placeholder_time(fact)
    is_plain = is_main and not draft.memory.has_turns_beside and not has_lineage(fact)
    return fact if is_plain or fact.subagent_id is not None else _name_doer(draft, fact)


def _name_doer(draft: "StateDraft", fact: Fact) -> Fact:
    """The fact with the subagent whose doing it is, where only its thread, its lineage or the turn
    that it belongs to shows that. A child that nobody has named goes by its thread.
    """
    family = (fact.event_class or "").partition(".")[0]
    if family in _UNNAMED_FAMILIES or subagent_of(fact) is not None:
        return fact
    entity, is_run = find_entity(draft, fact), family in ("turn", "run")
    if entity is None and not is_run:
        turn = draft.state.turns.get(turn_of(fact) or "")
        if turn is not None and turn.entity is not None:
            entity = RunEntity(turn.entity, _entity_id(turn))
    if entity is None or entity.kind == "job" or (is_run and entity.kind != "subagent"):
        return fact
    return msgspec.structs.replace(fact, subagent_id=entity.id or UNKNOWN)


def turn_key(draft: "StateDraft", fact: Fact) -> str | None:
    """What a turn goes by in every list. It is the turn's id, unless the thread's own turn, or that
    of another of the same kind, goes by that already.
    """
    turn = turn_of(fact)
    entity = find_entity(draft, fact) if turn is not None else None
    if turn is None or entity is None:
        return turn
    existing = draft.state.turns.get(turn)
    if existing is None or _is_by(existing, entity):
        return turn
    return qualify_id(turn, entity)


def run_key(draft: "StateDraft", fact: Fact, run: str) -> str:
    """What a run goes by: its id, and behind it whose it is where it is not the thread's own."""
    entity = find_entity(draft, fact)
    return run if entity is None else qualify_id(run, entity)


def qualify_id(name: str, entity: RunEntity) -> str:
    """The id of a turn or run together with who takes it."""
    return f"{name}:{entity.kind}:{entity.id or UNKNOWN}"


def _is_by(turn: ProjectedTurn, entity: RunEntity) -> bool:
    if turn.entity != entity.kind:
        return turn.entity is not None
    return _entity_id(turn) in (None, entity.id) or entity.id is None


def _entity_id(turn: ProjectedTurn) -> str | None:
    by_kind = {"subagent": turn.subagent_id, "job": turn.job_id, "task": turn.task_id}
    return by_kind.get(turn.entity or "", turn.thread_id)


def is_in_ended_turn(
    draft: "StateDraft", fact: Fact, turn_id: str | None, subagent_id: str | None
) -> bool:
    """Whether something of a turn ends with the turn that a fact ends: in a turn that the thread
    and others share, others end only what is theirs.
    """
    turn = turn_of(fact)
    if turn_id != turn:
        return False
    entity = find_entity(draft, fact)
    if entity is None:
        return True
    own = draft.state.turns.get(turn or "")
    is_shared = own is not None and own.entity is None
    return not is_shared or (entity.kind != "job" and subagent_id == (entity.id or UNKNOWN))


def submit_turn(draft: "StateDraft", fact: Fact) -> None:
    _update_turn(draft, fact, "submitted")


def start_turn(draft: "StateDraft", fact: Fact) -> None:
    _update_turn(draft, fact, "running")


def end_turn(draft: "StateDraft", fact: Fact) -> None:
    _update_turn(draft, fact, outcome_of(fact))


def restore_turn(
    draft: "StateDraft",
    turn_id: str,
    status: str,
    *,
    category: str | None = None,
    message: str | None = None,
    hint: str | None = None,
    at: str | None = None,
    ended_by: str | None = None,
    cancelled_by: Person | None = None,
) -> None:
    """A turn of the thread as a read model states it."""
    turn, path = _ensure_turn(draft, turn_id, turn_id)
    draft.put(turn, path, "status", status)
    draft.put(turn, path, "failure_category", category)
    draft.put(turn, path, "recovery_hint", hint)
    draft.fill(
        turn,
        path,
        message=message,
        completed_at=at,
        ended_by=ended_by,
        cancelled_by=cancelled_by,
    )


def _update_turn(draft: "StateDraft", fact: Fact, status: str) -> None:
    key, turn_id = turn_key(draft, fact), turn_of(fact)
    if key is None or turn_id is None:
        return
    entity = find_entity(draft, fact)
    if entity is None:
        _give_way(draft, key)
    turn, path = _ensure_turn(draft, key, turn_id)
    if turn.status in ENDED_TURNS and status == "submitted":
        status = turn.status
    draft.put(turn, path, "status", status)
    draft.put(turn, path, "entity", entity.kind if entity else None)
    draft.memory.has_turns_beside |= entity is not None
    start = read_payload(fact, TurnStartPayload)
    child = fact.thread_id if fact.thread_id != draft.state.thread_id else None
    is_first = turn.submitted_at is None and turn.started_at is None
    is_below = is_first and loose_entity_of(fact) is not None
    draft.fill(
        turn,
        path,
        run_id=id_of(fact, "runId"),
        agent_id=fact.agent_id or start.agent_id,
        task_id=task_of(fact),
        worker_id=id_of(fact, "workerId") if status in ("submitted", "running") else None,
        parent_task_id=id_of(fact, "parentTaskId") if is_below else None,
        subagent_id=entity.id if entity and entity.kind == "subagent" else None,
        job_id=entity.id if entity and entity.kind == "job" else None,
        thread_id=(entity.id if entity and entity.kind == "thread" else None) or child,
        submitted_at=fact.created_at if status == "submitted" else None,
        started_at=fact.created_at if status == "running" else None,
    )
    ended = status in ENDED_TURNS
    draft.put(turn, path, "completed_at", (fact.completed_at or fact.created_at) if ended else None)
    draft.put(turn, path, "ended_by", fact.id if ended else None)
    person = to_person(fact.payload.get("by")) if status == "canceled" else None
    draft.put(turn, path, "cancelled_by", person)
    _set_failure(draft, turn, path, fact if status == "failed" else None)


def _give_way(draft: "StateDraft", key: str) -> None:
    """The thread's own turn goes by its id; one of somebody else that came before moves."""
    turns = draft.state.turns
    other = turns.get(key)
    if other is not None and other.entity is not None:
        draft.remove(turns, TURNS_PATH, key)
        kind: EntityKind = other.entity
        draft.create(turns, TURNS_PATH, qualify_id(key, RunEntity(kind, _entity_id(other))), other)


def _set_failure(draft: "StateDraft", turn: ProjectedTurn, path: str, fact: Fact | None) -> None:
    if fact is None:
        for field in ("failure_category", "message", "recovery_hint"):
            draft.put(turn, path, field, None)
        return
    end = read_payload(fact, TurnEndPayload)
    draft.put(turn, path, "failure_category", end.failure_category or UNKNOWN)
    draft.put(turn, path, "message", shorten_detail(end.message or end.reason or fact.detail))
    draft.put(turn, path, "recovery_hint", end.recovery_hint)


def _ensure_turn(draft: "StateDraft", key: str, turn_id: str) -> tuple[ProjectedTurn, str]:
    turns = draft.state.turns
    if key not in turns:
        draft.create(turns, TURNS_PATH, key, ProjectedTurn(turn_id=turn_id, status=UNKNOWN))
    return turns[key], f"{TURNS_PATH}/{escape_key(key)}"
