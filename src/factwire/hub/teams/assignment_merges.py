"""Merging what a worker changed: only what was approved, on the device where it is, once.

The request goes through the link as one that is relayed, by the Hub itself. What the device answers
is written into the assignment in the transaction in which the delivery ends, also where nobody
waits for it any more. The Edge knows what it has merged, so that asking again, after a kill of
either side, is told what was done and does nothing twice.
"""

import asyncio
from typing import Any, Final

import msgspec
from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping

from factwire.edge.hub_frames import RelayAnswer, RelayCommandCreated
from factwire.facts.json_values import text_at
from factwire.facts.resources import RunMerge
from factwire.facts.team_resources import AssignmentMerge, TeamAssignment
from factwire.hub.frames.event_log import HubChange
from factwire.hub.hub_resources import HubBody
from factwire.hub.limits import RELAY_SECONDS
from factwire.hub.link.agent_tasks import find_device
from factwire.hub.link.deliveries import MILLISECONDS, NewDelivery, add_delivery
from factwire.hub.link.edge_link import EdgeLink
from factwire.hub.link.relay import device_offline
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records.device_records import find_current_device, select_edge_id
from factwire.hub.records.grant_records import NeededRight
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.link_tables import OPEN_STATES, deliveries
from factwire.hub.records.people_records import format_time
from factwire.hub.records.team_tables import team_assignments, team_tasks
from factwire.hub.teams.team_records import emit_assignment, find_run, list_rows, to_assignment
from factwire.hub.teams.team_runs import describe_caller
from factwire.serving.asgi import Problem

MERGED: Final = "assignment.merge_updated"
_MESSAGE_CHARACTERS: Final = 120


class AssignmentMergeBody(HubBody, frozen=True, kw_only=True):
    """The branch to merge into; without it, the one that is checked out in the repository."""

    into: str | None = None


async def merge_assignment(
    hub: HubServices,
    link: EdgeLink,
    caller: HubCaller,
    run_id: str,
    assignment_id: str,
    *,
    into: str | None,
    origin: ActionOrigin,
) -> TeamAssignment:
    """Merge what an assignment changed; one that was merged is told again. Raises `Problem`."""
    async with hub.events.change() as change:
        await find_run(change.connection, caller.person_id, run_id, lock=True)
        found = await _find_approved(change, run_id, assignment_id)
        if found.merge is not None and found.merge.status == "merged":
            return found
        delivery_id = await _find_open(change, found)
        if delivery_id is None:
            delivery_id = await _ask_device(hub, change, caller, found, into)
            by = await describe_caller(change, caller)
            request = AssignmentMerge(status="asked", by=by, asked_at=format_time(change.now))
            await _save(change, found.agent_task_id, request)
            await add_audit_entry(
                change.connection, change.now, "team.merge", origin, assignment_id
            )
    until = asyncio.get_running_loop().time() + RELAY_SECONDS
    await link.wait_for_answer(delivery_id, until)
    async with hub.database.read() as connection:
        query = select(team_assignments).where(team_assignments.c.assignment_id == assignment_id)
        merged = to_assignment((await connection.execute(query)).mappings().one())
    return _ensure_answered(merged)


async def _find_approved(change: HubChange, run_id: str, assignment_id: str) -> TeamAssignment:
    """An assignment whose work may be merged; raises `Problem`."""
    rows = await list_rows(change.connection, team_assignments, run_id)
    own = [to_assignment(row) for row in rows]
    found = next((each for each in own if each.assignment_id == assignment_id), None)
    if found is None:
        raise Problem(404, "unknown_assignment", "the run has no assignment with this id")
    newest = [each for each in own if each.team_task_id == found.team_task_id][-1]
    query = select(team_tasks).where(team_tasks.c.team_task_id == found.team_task_id)
    task = (await change.connection.execute(query)).mappings().one()
    is_approved = task["approved"] is True and task["approved_assignment_id"] == assignment_id
    if found.status != "completed" or newest != found or not is_approved:
        detail = "only the last assignment of a task can be merged, once approved"
        raise Problem(409, "work_not_approved", detail)
    if found.changes is None or not found.changes.available or found.edge_run_id is None:
        raise Problem(409, "no_worktree", "the work was not done in a worktree of its own")
    return found


async def _find_open(change: HubChange, found: TeamAssignment) -> str | None:
    """The request of a merge that is under way."""
    query = select(deliveries.c.delivery_id).where(
        deliveries.c.task_id == found.agent_task_id,
        deliveries.c.kind == "relay",
        deliveries.c.state.in_(OPEN_STATES),
    )
    return (await change.connection.execute(query)).scalars().first()


async def _ask_device(
    hub: HubServices, change: HubChange, caller: HubCaller, found: TeamAssignment, into: str | None
) -> str:
    """Queue the request for the device where the work is; the id of the delivery."""
    current = await find_current_device(change.connection, select_edge_id(found.device_id))
    device_id: str = found.device_id if current is None else current["device_id"]
    device = await find_device(change.connection, caller.person_id, device_id, "operator")
    if not (device["online"] or hub.connections.is_connected(device_id)):
        raise device_offline()
    delivery_id = new_id("dlv")
    subject = found.instructions.strip().splitlines()[0][:_MESSAGE_CHARACTERS]
    tree = None if found.changes is None else found.changes.tree
    wanted = {"message": subject, "into": into, "tree": tree}
    command = RelayCommandCreated(
        command_id=delivery_id,
        delivery_id=delivery_id,
        method="POST",
        path=f"/v1/runs/{found.edge_run_id}:merge",
        person=await describe_caller(change, caller),
        scopes=["read", "decide", "run"],
        body={name: value for name, value in wanted.items() if value is not None},
    )
    await add_delivery(
        change,
        NewDelivery(
            delivery_id=delivery_id,
            device_id=device_id,
            person_id=caller.person_id,
            kind="relay",
            payload=command,
            expires_at=change.now + RELAY_SECONDS * MILLISECONDS,
            right=NeededRight(role="operator"),
            task_id=found.agent_task_id,
            request=command.digest().hex(),
        ),
    )
    return delivery_id


def _ensure_answered(found: TeamAssignment) -> TeamAssignment:
    merge = found.merge
    if merge is None or merge.status == "asked":
        detail = "the device did not answer in time and may have done it; ask again"
        raise Problem(504, "relay_timeout", detail)
    if merge.status == "refused":
        raise Problem(409, merge.code or "merge_unavailable", merge.message or "")
    return found


async def note_merge(change: HubChange, row: RowMapping, answer: RelayAnswer) -> None:
    """Write down what a device answered, if it was asked to merge something."""
    if row["task_id"] is None:
        return
    query = select(team_assignments).where(team_assignments.c.agent_task_id == row["task_id"])
    found = (await change.connection.execute(query)).mappings().first()
    if found is None or found["merge"] is None:
        return
    request = msgspec.json.decode(found["merge"], type=AssignmentMerge)
    if request.status != "merged":
        outcome = {**_read_outcome(answer), "ended_at": format_time(change.now)}
        await _save(change, row["task_id"], msgspec.structs.replace(request, **outcome))


def _read_outcome(answer: RelayAnswer) -> dict[str, Any]:
    """What an answer says; the delivery ends with one that nobody can read, too."""
    try:
        if answer.status == 200:  # noqa: PLR2004 - what a route answers that has done its work
            merged = msgspec.json.decode(answer.content, type=RunMerge)
            names = ("status", "branch", "commit", "files")
            return {name: getattr(merged, name) for name in names}
        problem = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        message = f"the device's answer cannot be read: {error}"
        return {"status": "refused", "code": "merge_unavailable", "message": message}
    code, detail = text_at(problem, "code"), text_at(problem, "detail")
    return {"status": "refused", "code": code or "merge_unavailable", "message": detail}


async def _save(change: HubChange, task_id: str, merge: AssignmentMerge) -> None:
    statement = (
        update(team_assignments)
        .where(team_assignments.c.agent_task_id == task_id)
        .values(merge=msgspec.json.encode(merge).decode())
        .returning(team_assignments)
    )
    row = (await change.connection.execute(statement)).mappings().one()
    emit_assignment(change, row["team_id"], MERGED, to_assignment(row))
