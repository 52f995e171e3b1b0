"""The team workbench: roster, work board, handoffs, reviews and notifications.

It is another view of the same facts that tasks, subagents and evidence are made from; nothing here
is known that they do not say. A worker's notification is shown here even when it came by a channel
on which users speak.
"""

from typing import TYPE_CHECKING, Any, Final

from factwire.facts.classes.payloads import EvidencePayload, HandoffPayload, TeammatePayload
from factwire.facts.fact import Fact
from factwire.facts.json_patch import escape_key
from factwire.facts.json_values import object_at, text_at
from factwire.facts.outcomes import bad_end
from factwire.facts.refs import ref_at, refs_of
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection import subagents, tasks
from factwire.projection.artifacts import evidence_ids
from factwire.projection.limits import LANE_EVENTS_KEPT
from factwire.projection.payload_fields import (
    other_id,
    outcome_of,
    read_payload,
    shorten_detail,
    subagent_of,
    task_of,
    turn_of,
)
from factwire.projection.subagents import teammate_of
from factwire.projection.tasks import dependency_of
from factwire.projection.turns import find_entity
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft

TEAM_PATH: Final = "/teamWorkbench"

_HANDOFF_STATUS: Final = {
    "handoff.requested": "requested",
    "handoff.accepted": "accepted",
    "handoff.rejected": "rejected",
    "handoff.completed": "completed",
    "agent.handoff": "requested",
}


_ENDED_HANDOFFS: Final = ("completed", "rejected", "failed", "cancelled")


class RosterNode(View):
    """One member of the team; the rest about it is in `subagents.threads` under the same id."""

    member_id: str
    status: str
    kind: str
    name: str | None = None
    role: str | None = None
    task_id: str | None = None
    parent_id: str | None = None


class WorkItem(View):
    """One card of the work board; the rest about it is in `tasks` under the same id."""

    task_id: str
    status: str
    title: str | None = None
    assignee: str | None = None
    parent_task_id: str | None = None
    blocked_by: list[str] | None = None


class HandoffEvent(View):
    """Work that goes from one agent to another."""

    handoff_id: str
    status: str
    from_agent: str | None = None
    to_agent: str | None = None
    reason: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    turn_id: str | None = None
    refs: list[str] | None = None
    requested_at: str | None = None
    completed_at: str | None = None


class LaneEvent(View):
    """One event of a lane, in order."""

    event_id: str
    lane: str
    status: str
    title: str
    subject_id: str | None = None
    task_id: str | None = None
    subagent_id: str | None = None
    verdict: str | None = None
    refs: list[str] | None = None
    created_at: str | None = None


class Notification(View):
    """What a worker reports, with ways to its result and transcript."""

    event_id: str
    title: str
    worker_id: str | None = None
    task_id: str | None = None
    status: str | None = None
    message: str | None = None
    result_ref: str | None = None
    transcript_ref: str | None = None
    refs: list[str] | None = None
    created_at: str | None = None


class TeamWorkbench(View):
    """The team, its work and what goes between its members."""

    roster_nodes: dict[str, RosterNode]
    work_items: dict[str, WorkItem]
    handoff_events: dict[str, HandoffEvent]
    review_events: list[LaneEvent]
    lane_events: list[LaneEvent]
    notifications: list[Notification]
    team_id: str | None = None
    team_name: str | None = None
    team_phase: str | None = None
    topology: str | None = None
    active_agent: str | None = None
    policy: dict[str, Any] | None = None


def empty_team() -> TeamWorkbench:
    return TeamWorkbench(
        roster_nodes={},
        work_items={},
        handoff_events={},
        review_events=[],
        lane_events=[],
        notifications=[],
    )


def follow_turn(draft: "StateDraft", fact: Fact) -> None:
    """A turn that somebody beside the thread takes begins and ends that subagent, task or job."""
    entity = find_entity(draft, fact)
    if entity is None or entity.id is None:
        return
    name = fact.event_class or ""
    state = "running" if name in _TURN_STARTS else outcome_of(fact)
    state = "cancelled" if state == "canceled" else state
    if entity.kind == "subagent":
        subagents.apply_turn(draft, fact, entity.id, state)
        update_member(draft, fact, entity.id)
    elif entity.kind == "task":
        tasks.apply_turn(draft, fact, entity.id, state)
        update_work_item(draft, fact, entity.id)
    elif entity.kind == "job":
        tasks.apply_job_turn(draft, fact, entity.id, state)


_TURN_STARTS: Final = ("turn.started", "run.started")


def note_run_status(draft: "StateDraft", fact: Fact) -> None:
    """run.status and model.failed of a subagent: what its run reports."""
    entity = find_entity(draft, fact)
    if entity is not None and entity.kind == "subagent" and entity.id is not None:
        subagents.note_message(draft, entity.id, text_at(fact.payload, "message"))


def update_member(draft: "StateDraft", fact: Fact, key: str | None = None) -> None:
    """Bring the roster in line with what `subagents` now says of a teammate."""
    key = key or teammate_of(fact)
    thread = draft.state.subagents.threads.get(key or "")
    if key is None or thread is None:
        return
    roster, path = (
        draft.state.team_workbench.roster_nodes,
        f"{TEAM_PATH}/rosterNodes/{escape_key(key)}",
    )
    if key not in roster:
        node = RosterNode(member_id=key, status=UNKNOWN, kind=_member_kind(fact))
        draft.create(roster, f"{TEAM_PATH}/rosterNodes", key, node)
    draft.fill(
        roster[key],
        path,
        status=thread.status,
        name=thread.name or thread.title,
        role=thread.role,
        task_id=thread.task_id,
        parent_id=thread.parent_subagent_id,
    )


def _member_kind(fact: Fact) -> str:
    name = fact.event_class or ""
    if name.startswith("channel.") or fact.surface == "remote_teammate":
        return "remote_teammate"
    if fact.surface == "background_teammate" or fact.topology == "background_teammate":
        return "background_teammate"
    return "worker" if name.startswith("worker.") else "subagent"


def update_work_item(draft: "StateDraft", fact: Fact, key: str | None = None) -> None:
    """Bring the board in line with what `tasks` now says of a task."""
    key = key or task_of(fact)
    task = draft.state.tasks.get(key or "")
    if key is None or task is None:
        return
    items, path = draft.state.team_workbench.work_items, f"{TEAM_PATH}/workItems/{escape_key(key)}"
    if key not in items:
        waits_for = [other for other, at in (task.dependencies or {}).items() if at != "completed"]
        item = WorkItem(task_id=key, status=UNKNOWN, blocked_by=waits_for or None)
        draft.create(items, f"{TEAM_PATH}/workItems", key, item)
    draft.fill(
        items[key],
        path,
        status=task.status,
        title=task.title or task.objective,
        assignee=task.assignee or task.delegated_to,
        parent_task_id=task.parent_task_id,
    )
    other = dependency_of(fact) if fact.event_class == "task.dependency.updated" else None
    if other is not None:
        _set_blocker(draft, items[key], path, other, (task.dependencies or {}).get(other))


def _set_blocker(
    draft: "StateDraft", item: WorkItem, path: str, other: str, status: str | None
) -> None:
    """Whether one task keeps another from going on, by how it is now."""
    if item.blocked_by is None:
        draft.put(item, path, "blocked_by", None if status == "completed" else [other])
        return
    draft.list_text(item.blocked_by, f"{path}/blockedBy", other, listed=status != "completed")
    if not item.blocked_by:
        draft.put(item, path, "blocked_by", None)


def record_handoff(draft: "StateDraft", fact: Fact) -> None:
    payload, name = read_payload(fact, HandoffPayload), fact.event_class or ""
    key = fact.handoff_id or other_id(fact, "handoffId", "handoff_id") or fact.id
    events, path = (
        draft.state.team_workbench.handoff_events,
        f"{TEAM_PATH}/handoffEvents/{escape_key(key)}",
    )
    if key not in events:
        event = HandoffEvent(handoff_id=key, status=UNKNOWN, turn_id=turn_of(fact))
        draft.create(events, f"{TEAM_PATH}/handoffEvents", key, event)
    status = payload.status if name == "agent.handoff" and payload.status else _HANDOFF_STATUS[name]
    if status == "completed":
        status = bad_end(fact) or status
    draft.put(events[key], path, "status", status)
    draft.fill(
        events[key],
        path,
        requested_at=fact.created_at if status == "requested" else None,
        from_agent=payload.from_agent,
        to_agent=payload.to_agent,
        reason=payload.reason,
        task_id=task_of(fact),
        subagent_id=subagent_of(fact),
        completed_at=fact.created_at if status in _ENDED_HANDOFFS else None,
    )
    draft.extend(events[key], path, "refs", refs_of(fact))
    if status in ("accepted", "completed"):
        draft.fill(draft.state.team_workbench, TEAM_PATH, active_agent=events[key].to_agent)
    _add_lane_event(draft, fact, "handoff", status, subject=key)


def record_review_event(draft: "StateDraft", fact: Fact) -> None:
    payload = read_payload(fact, EvidencePayload)
    key = fact.review_id or other_id(fact, "reviewId", "review_id")
    status = "requested" if fact.event_class == "review.requested" else "completed"
    event = _add_lane_event(draft, fact, "review", status, subject=key, verdict=payload.verdict)
    path = f"{TEAM_PATH}/reviewEvents"
    draft.push(draft.state.team_workbench.review_events, path, event, LANE_EVENTS_KEPT)


def record_notification(draft: "StateDraft", fact: Fact) -> None:
    payload = read_payload(fact, TeammatePayload)
    worker = teammate_of(fact)
    notification = Notification(
        event_id=fact.id,
        title=fact.title,
        worker_id=worker,
        task_id=task_of(fact),
        status=payload.status,
        message=shorten_detail(payload.message or payload.summary or text_at(fact.payload, "text")),
        result_ref=ref_at(fact.payload, "resultRef"),
        transcript_ref=ref_at(fact.payload, "transcriptRef"),
        refs=refs_of(fact) or None,
        created_at=fact.created_at,
    )
    path = f"{TEAM_PATH}/notifications"
    draft.push(draft.state.team_workbench.notifications, path, notification, LANE_EVENTS_KEPT)
    _add_lane_event(draft, fact, "notification", payload.status or "received", subject=worker)


def update_team(draft: "StateDraft", fact: Fact) -> None:
    """team.changed: the team itself."""
    team = draft.state.team_workbench
    draft.fill(
        team,
        TEAM_PATH,
        team_id=fact.team_id or other_id(fact, "teamId", "team_id"),
        team_name=fact.team_name or text_at(fact.payload, "teamName", "name"),
        team_phase=fact.team_phase or text_at(fact.payload, "teamPhase", "phase"),
        topology=fact.topology or text_at(fact.payload, "topology"),
        active_agent=text_at(fact.payload, "activeAgent", "activeOwner"),
        policy=object_at(fact.payload.get("policy")),
    )


def _add_lane_event(
    draft: "StateDraft",
    fact: Fact,
    lane: str,
    status: str,
    *,
    subject: str | None,
    verdict: str | None = None,
) -> LaneEvent:
    evidence = evidence_ids(fact) if lane == "review" else []
    event = LaneEvent(
        event_id=fact.id,
        lane=lane,
        status=status,
        title=fact.title,
        subject_id=subject,
        task_id=task_of(fact),
        subagent_id=subagent_of(fact),
        verdict=verdict,
        refs=list(dict.fromkeys((*evidence, *refs_of(fact)))) or None,
        created_at=fact.created_at,
    )
    path = f"{TEAM_PATH}/laneEvents"
    draft.push(draft.state.team_workbench.lane_events, path, event, LANE_EVENTS_KEPT)
    return event
