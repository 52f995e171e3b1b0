"""The facts of a team run: what each event of it says in the classes that projections know.

Roster, board, handoffs and reviews of a run are shown by the projection of any thread; a run is a
thread, and has no class of its own. A fact's id follows from the place of its event in the log and
its content from the event alone, so that the same event makes the same facts whenever that is done.
Ids of members, tasks, devices, threads and runs on devices are kept, so that what the members did
can be found from here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.facts.json_values import text_at
from factwire.hub.frames.event_log import HubEvent
from factwire.hub.records.people_records import format_time
from factwire.hub.teams.team_records import TEAM_JOURNAL
from factwire.runtime import FactScope, Mint

_ID: Final = re.compile(r"tev_([0-9a-z]+)_(\d+)_\d+")
_TITLE_CHARACTERS: Final = 200

_Json = dict[str, Any]
_NewFact = tuple[str, _Json, _Json]
"""A class, a payload, and ids of the fact itself."""


def find_place(fact_id: str) -> tuple[str, int] | None:
    """The epoch and the number of the event that a fact, or a note about it, was made from."""
    found = _ID.match(fact_id)
    return None if found is None else (found[1], int(found[2]))


def build_facts(epoch: str, event: HubEvent) -> list[Fact]:
    """The facts of an event, in order, without sequences; none where it is not about a run."""
    build = _BUILDERS.get(event.type)
    if build is None:
        return []
    payload: _Json = msgspec.json.decode(event.payload)
    run_id = payload["team_run_id"]
    scope = FactScope(thread_id=run_id, session_id=run_id)
    at = format_time(event.created_at)
    facts: list[Fact] = []
    for number, (name, content, ids) in enumerate(build(payload)):
        mint = Mint(
            TEAM_JOURNAL,
            clock=lambda: at,
            ids=lambda _, number=number: f"tev_{epoch}_{event.seq:016d}_{number}",
        )
        kept = {key: value for key, value in content.items() if value is not None}
        known = {key: value for key, value in ids.items() if value is not None}
        facts.append(mint.fact(scope, name, kept, team_id=payload["team_id"], **known))
    return facts


def _build_run(event: _Json) -> Iterator[_NewFact]:
    run = event["run"]
    if event["change"] == "started":
        title = run["goal"][:_TITLE_CHARACTERS]
        yield "thread.started", {"title": title, "by": event["by"]}, {}
    if event["change"] in _TURN_CHANGES:
        yield from _build_turn(run, event["change"])
    elif event["change"] != "member_added":
        names = ("goal", "status", "summary", "reason", "budgetTokens")
        content = {"by": event["by"], **{name: run.get(name) for name in names}}
        yield "team.changed", content, {"team_phase": run["status"], "topology": "coordinator_team"}
    for member in run["roster"]:
        if event["change"] == "started" or member["teamMemberId"] == event.get("team_member_id"):
            names = ("name", "role", "agentType", "deviceId", "projectId", "workDir")
            content = {name: member.get(name) for name in names}
            yield "agent.spawned", content, {"worker_id": member["teamMemberId"]}


_TURN_CHANGES: Final = ("supervisor_asked", "supervisor_answered", "supervisor_dropped")


def _build_turn(run: _Json, change: str) -> Iterator[_NewFact]:
    """A turn of the agent that supervises: it works, and then it has decided or has not."""
    found: _Json = run["supervision"]
    ids = {"worker_id": found["teamMemberId"]}
    names = ("turn", "agentTaskId", "edgeRunId", "attempts", "tokens")
    content = {name: found.get(name) for name in names} | {"childThreadId": found.get("threadId")}
    if change == "supervisor_asked":
        yield "worker.started", content, ids
        return
    status: str = found["status"]
    content |= {"decision": status, "message": found.get("remark")}
    if status == "decided":
        yield "worker.completed", content, ids
    else:
        yield "agent.changed", {**content, "status": status}, ids
    if change == "supervisor_answered" and status != "decided":
        yield "worker.notification", {**content, "status": status}, ids


def _build_decided(event: _Json) -> Iterator[_NewFact]:
    yield "routing.decided", {**event, "reason": event.get("reasoning")}, {}


def _build_rejected(event: _Json) -> Iterator[_NewFact]:
    content = {**event, "reasonCode": event["reason"], "reason": event["detail"]}
    yield "routing.not_possible", content, {}


def _build_task(event: _Json) -> Iterator[_NewFact]:
    task = event["task"]
    ids = {"task_id": task["teamTaskId"], "parent_task_id": task.get("parentTaskId")}
    content = {
        "title": task["title"],
        "objective": task["instructions"],
        "kind": task["kind"],
        "subtaskId": task.get("subtaskId"),
        "reviews": task.get("reviews"),
    }
    yield "task.created", content, ids


def _build_verdict(event: _Json) -> Iterator[_NewFact]:
    """What the supervisor outcome_fields of some work; what is not approved is to be done again."""
    task, task_id = event["task"], event["team_task_id"]
    verdict = "approved" if task.get("approved") else "changes_requested"
    review = {"review_id": f"{task_id}.verdict", "evidence_id": task_id, "task_id": task_id}
    yield "review.verdict", {"verdict": verdict, "summary": task.get("feedback")}, review
    name = "task.updated" if task.get("approved") else "task.retrying"
    yield name, {"reason": task.get("feedback")}, {"task_id": task_id}


def _ids_of(event: _Json) -> tuple[_Json, _Json]:
    """What an assignment is about: ids of facts, and ids that lead to the member's device."""
    found = event["assignment"]
    ids = {"task_id": event["team_task_id"], "handoff_id": event["assignment_id"]}
    elsewhere = {
        "assignmentId": event["assignment_id"],
        "agentTaskId": event["agent_task_id"],
        "deviceId": found["deviceId"],
        "edgeRunId": found.get("edgeRunId"),
        "childThreadId": found.get("threadId"),
    }
    return ids, elsewhere


def _review_of(event: _Json, ids: _Json) -> _Json | None:
    """The ids of a review, where the assignment is one."""
    if event["assignment"]["action"] != "review":
        return None
    key = event["assignment_id"]
    return {"review_id": key, "evidence_id": key, "task_id": ids["task_id"]}


def _build_assigned(event: _Json) -> Iterator[_NewFact]:
    found, (ids, elsewhere) = event["assignment"], _ids_of(event)
    member = found["teamMemberId"]
    delegated = {"delegatedTo": member, "assignee": member, **elsewhere}
    yield "task.delegated", delegated, {"task_id": ids["task_id"]}
    handoff = {"toAgent": member, "reason": found["instructions"], "action": found["action"]}
    yield "handoff.requested", {**handoff, **elsewhere}, ids
    review = _review_of(event, ids)
    if review is not None:
        yield "review.requested", {"reviewer": member, "summary": found["instructions"]}, review


def _build_dispatched(event: _Json) -> Iterator[_NewFact]:
    found, (ids, elsewhere) = event["assignment"], _ids_of(event)
    member = found["teamMemberId"]
    yield "handoff.accepted", {"toAgent": member, **elsewhere}, ids
    yield "task.started", elsewhere, {"task_id": ids["task_id"]}
    yield "worker.started", elsewhere, {"worker_id": member, "task_id": ids["task_id"]}


def _build_ended(event: _Json, outcome: str) -> Iterator[_NewFact]:
    found, (ids, elsewhere) = event["assignment"], _ids_of(event)
    member: str = found["teamMemberId"]
    error: _Json = found.get("error") or {}
    outcome_fields = {
        "summary": found.get("resultSummary"),
        "message": found.get("resultSummary") or text_at(error, "message"),
        "failureCategory": text_at(error, "code"),
        "tokens": found.get("tokens", 0),
    }
    worker = {"worker_id": member, "task_id": ids["task_id"]}
    is_done = outcome == "completed"
    status = {"completed": "completed", "failed": "failed", "cancelled": "canceled"}[outcome]
    closed = {"toAgent": member, "status": outcome, "changes": found.get("changes"), **elsewhere}
    yield "handoff.completed" if is_done else "handoff.rejected", closed, ids
    yield f"task.{outcome}", {**outcome_fields, **elsewhere}, {"task_id": ids["task_id"]}
    if is_done:
        yield "worker.completed", {**outcome_fields, **elsewhere}, worker
    else:
        yield "agent.changed", {**outcome_fields, "status": outcome, **elsewhere}, worker
    yield "worker.notification", {**outcome_fields, "status": outcome, **elsewhere}, worker
    review = _review_of(event, ids)
    if review is not None:
        content = {"reviewer": member, "summary": outcome_fields["summary"], "status": outcome}
        yield "review.completed", content, {**review, "status": status}


def _build_merge(event: _Json) -> Iterator[_NewFact]:
    """What came of a merge; that it was asked for is not told."""
    merge, (ids, elsewhere) = event["assignment"]["merge"], _ids_of(event)
    if merge["status"] != "asked":
        yield "task.updated", {"merge": merge, **elsewhere}, {"task_id": ids["task_id"]}


def _end_as(outcome: str) -> Callable[[_Json], Iterator[_NewFact]]:
    return lambda event: _build_ended(event, outcome)


def _build_approval(event: _Json) -> Iterator[_NewFact]:
    names = ("approval_id", "agent_task_id", "edge_run_id", "decision", "decided_by")
    content = {"approval": {name: event[name] for name in names}}
    yield "task.updated", content, {"task_id": event["team_task_id"]}


_BUILDERS: Final[dict[str, Callable[[_Json], Iterator[_NewFact]]]] = {
    "team.run.updated": _build_run,
    "team.route.decided": _build_decided,
    "team.route.rejected": _build_rejected,
    "team.task.created": _build_task,
    "team.task.updated": _build_verdict,
    "team.approval.decided": _build_approval,
    "assignment.created": _build_assigned,
    "assignment.dispatched": _build_dispatched,
    "assignment.completed": _end_as("completed"),
    "assignment.failed": _end_as("failed"),
    "assignment.cancelled": _end_as("cancelled"),
    "assignment.merge_updated": _build_merge,
}
"""Event → the facts that it makes."""

RUN_EVENTS: Final = tuple(_BUILDERS)
"""The events that make facts."""
