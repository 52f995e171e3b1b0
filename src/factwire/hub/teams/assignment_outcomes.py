"""What happens to the agent task of an assignment happens to the assignment, in one transaction.
The same goes for the turn of a supervising agent.

`note_task` is called wherever the status of a task changes, with the row of the task locked by that
change, and `note_route` before a task that has decided something ends. Neither touches the run: it
goes on from here when its own row is locked. `note_approval` is called where somebody decides what
an agent asks. `describe_changes` is what whoever reviews an outcome is told of the files that were
changed.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import EdgeControl
from factwire.facts.resources import TASK_ENDS, AgentTask, TaskChanges, TaskFile, TaskStatus
from factwire.facts.team_resources import AssignmentStatus, TeamAssignment
from factwire.hub.frames.event_log import HubChange
from factwire.hub.frames.frame_types import TeamApprovalDecided
from factwire.hub.records.device_tables import devices
from factwire.hub.records.link_tables import agent_tasks
from factwire.hub.records.team_tables import supervisor_turns, team_assignments
from factwire.hub.teams.team_records import (
    audience_of_team,
    count_tokens,
    emit_assignment,
    to_assignment,
)

_ENDED_AS: Final[dict[TaskStatus, AssignmentStatus]] = {
    "done": "completed",
    "failed": "failed",
    "timed_out": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
}
"""How a task ends → how its assignment does."""


async def note_task(change: HubChange, row: RowMapping, task: AgentTask) -> None:
    """Have the assignment of a task follow it; `row` is the task as it was before."""
    if row["team"] is None:
        return
    own = team_assignments.c.agent_task_id == task.task_id
    found = (await change.connection.execute(select(team_assignments).where(own))).mappings()
    assignment = found.first()
    if assignment is None:
        await _note_turn(change, task)
        return
    ids = {"edge_run_id": task.edge_run_id, "thread_id": task.thread_id}
    is_there = task.delivered_at is not None or task.edge_run_id is not None
    if assignment["status"] == "created" and is_there:
        values = {"status": "dispatched", "dispatched_at": change.now, **ids}
        await _change(change, own, "assignment.dispatched", values)
    if task.status in TASK_ENDS:
        ended = _ENDED_AS[task.status]
        values = {"status": ended, "ended_at": change.now, **ids}
        values |= {"result_summary": task.result_summary, "tokens": count_tokens(task.usage)}
        values["error"] = _describe_error(task)
        if task.changes is not None:
            values["changes"] = msgspec.json.encode(task.changes).decode()
        await _change(change, own, f"assignment.{ended}", values)


async def note_route(change: HubChange, task_id: str, route: dict[str, Any]) -> None:
    """Keep what a supervising agent decided with the turn that it is about to end."""
    own = supervisor_turns.c.agent_task_id == task_id, supervisor_turns.c.ended_at.is_(None)
    kept = update(supervisor_turns).where(*own).values(route=msgspec.json.encode(route).decode())
    await change.connection.execute(kept)


async def _note_turn(change: HubChange, task: AgentTask) -> None:
    """Have the turn of a supervising agent end with its task; what is said after that is late."""
    if task.status not in TASK_ENDS:
        return
    own = supervisor_turns.c.agent_task_id == task.task_id, supervisor_turns.c.ended_at.is_(None)
    ended = update(supervisor_turns).where(*own)
    await change.connection.execute(
        ended.values(
            ended_at=change.now,
            error=_describe_error(task),
            tokens=count_tokens(task.usage),
            edge_run_id=task.edge_run_id,
            thread_id=task.thread_id,
        )
    )


async def _change(change: HubChange, own: Any, type_: str, values: dict[str, Any]) -> None:
    statement = update(team_assignments).where(own).values(**values).returning(team_assignments)
    row = (await change.connection.execute(statement)).mappings().one()
    emit_assignment(change, row["team_id"], type_, to_assignment(row))


def _describe_error(task: AgentTask) -> str | None:
    if task.status == "done":
        return None
    error = task.error or {"code": task.status, "message": f"the task is {task.status}"}
    return msgspec.json.encode(error).decode()


async def note_approval(
    change: HubChange, device_id: str, approval_id: str, control: EdgeControl
) -> None:
    """Tell those who see a run what was decided of what its workers ask."""
    query = select(team_assignments).where(
        team_assignments.c.device_id == device_id,
        team_assignments.c.edge_run_id == control.run_id,
    )
    row = (await change.connection.execute(query)).mappings().first()
    if row is None:
        return
    names = ("team_id", "team_run_id", "team_task_id", "assignment_id", "agent_task_id")
    payload = TeamApprovalDecided(
        **{name: row[name] for name in names},
        approval_id=approval_id,
        edge_run_id=control.run_id,
        decision=control.decision,
        decided_by=msgspec.to_builtins(control)["decidedBy"],
        edge_control=msgspec.to_builtins(control),
    )
    change.emit(audience_of_team(row["team_id"]), "team.approval.decided", payload)


_FILES_CHARACTERS: Final = 4_000
_MARK_CHARACTERS: Final = 400


async def describe_changes(
    connection: AsyncConnection, assignment: TeamAssignment, room: int
) -> str:
    """The files that an assignment changed and the diff, in so many characters; of what is longer,
    the beginning, and where the whole is.
    """
    changes = assignment.changes
    if changes is None or room < _MARK_CHARACTERS:
        return ""
    if not changes.available:
        note = f"\n\nChanges: unknown, because {changes.describe_absence()}."
        return note[:room]
    query = (
        select(agent_tasks.c.diff, devices.c.edge_id)
        .join(devices, devices.c.device_id == agent_tasks.c.device_id)
        .where(agent_tasks.c.task_id == assignment.agent_task_id)
    )
    row = (await connection.execute(query)).one()
    where = f"GET /v1/edges/{row.edge_id}/blobs/{changes.diff_ref} at the Hub"
    where += f", or the folder {changes.worktree} on device {assignment.device_id}"
    head = f"\n\nChanges: {changes.describe_size()}\n{_list_files(changes)}"
    if not changes.file_count:
        return head[:room]
    return head + _cut_diff(row.diff or "", changes, where, room - len(head))


def _list_files(changes: TaskChanges) -> str:
    lines: list[str] = []
    room = _FILES_CHARACTERS
    for file in changes.files:
        line = _describe_file(file)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    left = changes.file_count - len(lines)
    return "\n".join([*lines, f"- and {left} more"] if left else lines)


def _describe_file(file: TaskFile) -> str:
    lines = "" if file.added_lines is None else f" +{file.added_lines} −{file.removed_lines}"
    return f"- {file.path} ({file.change}{lines})"


def _cut_diff(diff: str, changes: TaskChanges, where: str, room: int) -> str:
    """As much of a diff as there is room for, and what was left out."""
    is_whole = len(diff.encode()) >= changes.diff_bytes
    if is_whole and len(diff) + len("\n\nDiff:\n") <= room:
        return f"\n\nDiff:\n{diff}"
    note = f"\n\nThe diff has {changes.diff_bytes} bytes and is cut here. All of it: {where}.\n"
    kept = room - len(note) - len("\n\nDiff:\n")
    if kept <= 0:
        return note[: max(room, 0)]
    lines = diff[:kept].rpartition("\n")[0] or diff[:kept]
    return f"\n\nDiff:\n{lines}{note}"
