"""Rows of teams as people read them, and what everybody who may see a team is told of them.

A team and its runs are their owner's, in every query; what is somebody else's is not found. Events
go to the audience of the team. They have whole rows, so that a state and the events after it are a
later state; and they are all that the facts of a run are made from.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Select, func, select
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import TaskChanges
from factwire.facts.team_resources import (
    AgentTeam,
    AgentTeamMember,
    AssignmentMerge,
    RosterMember,
    RouteRecord,
    Supervision,
    TeamAssignment,
    TeamRun,
    TeamTask,
)
from factwire.hub.frames.event_log import HubChange, audience_of
from factwire.hub.frames.frame_types import AssignmentUpdated, TeamTaskUpdated
from factwire.hub.records.people_records import format_optional_time, format_time
from factwire.hub.records.team_tables import (
    route_decisions,
    team_assignments,
    team_members,
    team_runs,
    team_tasks,
    teams,
)
from factwire.serving.asgi import Problem

T = TypeVar("T")

TEAM: Final = "team"
"""The kind of audience that those who may see a team are."""

TEAM_JOURNAL: Final = "hub.teams"
"""The id under which the journal of a Hub's own facts is read; no Edge can join with it."""

_ROSTER: Final = msgspec.json.Decoder(tuple[RosterMember, ...])


_CHANGES: Final = msgspec.json.Decoder(TaskChanges)
_MERGE: Final = msgspec.json.Decoder(AssignmentMerge)


def _read_optional(decoder: msgspec.json.Decoder[T], text: str | None) -> T | None:
    return None if text is None else decoder.decode(text)


def audience_of_team(team_id: str) -> str:
    return audience_of(TEAM, team_id)


def unknown_team() -> Problem:
    return Problem(404, "unknown_team", "none of your teams has this id")


def unknown_run() -> Problem:
    return Problem(404, "unknown_team_run", "none of your team runs has this id")


def select_teams(person_id: str) -> Select[Any]:
    return select(teams).where(teams.c.person_id == person_id, teams.c.removed_at.is_(None))


def select_runs(person_id: str) -> Select[Any]:
    return select(team_runs).where(team_runs.c.person_id == person_id)


async def find_team(
    connection: AsyncConnection, person_id: str, team_id: str, *, lock: bool = False
) -> RowMapping:
    """One of somebody's teams; raises `Problem`. With `lock`, nobody else changes it meanwhile."""
    query = select_teams(person_id).where(teams.c.team_id == team_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).mappings().first()
    if row is None:
        raise unknown_team()
    return row


async def find_run(
    connection: AsyncConnection, person_id: str, run_id: str, *, lock: bool = False
) -> RowMapping:
    """A run of one of somebody's teams; raises `Problem`. With `lock`, nobody else decides
    anything about it until the transaction ends.
    """
    query = select_runs(person_id).where(team_runs.c.team_run_id == run_id)
    row = (await connection.execute(query.with_for_update() if lock else query)).mappings().first()
    if row is None:
        raise unknown_run()
    return row


async def list_run_ids(connection: AsyncConnection, person_id: str) -> frozenset[str]:
    """The runs that somebody may see: the threads of theirs in the journal of teams."""
    query = select(team_runs.c.team_run_id).where(team_runs.c.person_id == person_id)
    return frozenset((await connection.execute(query)).scalars())


async def list_members(connection: AsyncConnection, team_ids: Iterable[str]) -> list[RowMapping]:
    """The members of some teams, those who came first first."""
    query = (
        select(team_members)
        .where(team_members.c.team_id.in_(list(team_ids)), team_members.c.removed_at.is_(None))
        .order_by(team_members.c.team_id, team_members.c.number)
    )
    return list((await connection.execute(query)).mappings())


async def list_rows(
    connection: AsyncConnection, table: Any, run_id: str, after: int = 0, limit: int | None = None
) -> list[RowMapping]:
    """Rows of a run in order: of its tasks, its assignments or the decisions about it."""
    query = (
        select(table)
        .where(table.c.team_run_id == run_id, table.c.number > after)
        .order_by(table.c.number)
        .limit(limit)
    )
    return list((await connection.execute(query)).mappings())


async def next_number(
    connection: AsyncConnection, table: Any, key: str, *, by: str = "team_run_id"
) -> int:
    """The number of the next row of a run, or of a team, whose lock the caller holds."""
    query = select(func.max(table.c.number)).where(table.c[by] == key)
    return ((await connection.execute(query)).scalar_one() or 0) + 1


def read_roster(row: RowMapping) -> tuple[RosterMember, ...]:
    return _ROSTER.decode(row["roster"])


def read_supervision(row: RowMapping) -> Supervision | None:
    """The agent that supervises a run; None where only people and programs decide."""
    text = row["supervision"]
    return None if text is None else msgspec.json.decode(text, type=Supervision)


def encode_supervision(supervision: Supervision) -> str:
    return msgspec.json.encode(supervision).decode()


def to_member(row: RowMapping) -> AgentTeamMember:
    return AgentTeamMember(
        **_pick(row, "team_member_id", "name", "role", "agent_type", "project_id", "work_dir"),
        device_ids=msgspec.json.decode(row["device_ids"], type=list[str]),
        created_at=format_time(row["created_at"]),
    )


def to_team(row: RowMapping, members: Iterable[RowMapping]) -> AgentTeam:
    own = [to_member(each) for each in members if each["team_id"] == row["team_id"]]
    return AgentTeam(
        **_pick(row, "team_id", "person_id", "name"),
        members=own,
        created_at=format_time(row["created_at"]),
    )


def to_run(row: RowMapping) -> TeamRun:
    names = ("team_run_id", "team_id", "person_id", "goal", "status", "budget_tokens")
    return TeamRun(
        **_pick(row, *names, "summary", "reason"),
        roster=list(read_roster(row)),
        supervision=read_supervision(row),
        edge_id=TEAM_JOURNAL,
        thread_id=row["team_run_id"],
        created_at=format_time(row["created_at"]),
        updated_at=format_time(row["updated_at"]),
        ended_at=format_optional_time(row["ended_at"]),
    )


def to_task(row: RowMapping) -> TeamTask:
    names = ("team_task_id", "team_run_id", "number", "kind", "title", "instructions")
    more = ("subtask_id", "parent_task_id", "reviews", "feedback")
    verdict = ("approved", "approved_assignment_id")
    return TeamTask(
        **_pick(row, *names, *more, *verdict),
        created_at=format_time(row["created_at"]),
        updated_at=format_time(row["updated_at"]),
    )


_ASSIGNMENT_FIELDS: Final = (
    *("assignment_id", "team_run_id", "team_task_id", "team_member_id", "number", "device_id"),
    *("agent_task_id", "action", "instructions", "status", "tokens", "replaces", "edge_run_id"),
    *("thread_id", "result_summary"),
)


def to_assignment(row: RowMapping) -> TeamAssignment:
    return TeamAssignment(
        **_pick(row, *_ASSIGNMENT_FIELDS),
        error=None if row["error"] is None else msgspec.json.decode(row["error"]),
        created_at=format_time(row["created_at"]),
        expires_at=format_time(row["expires_at"]),
        changes=_read_optional(_CHANGES, row["changes"]),
        merge=_read_optional(_MERGE, row["merge"]),
        dispatched_at=format_optional_time(row["dispatched_at"]),
        ended_at=format_optional_time(row["ended_at"]),
    )


def to_record(row: RowMapping) -> RouteRecord:
    names = ("decision_id", "team_run_id", "number", "reason", "detail")
    return RouteRecord(
        **_pick(row, *names, "team_task_id", "assignment_id"),
        decision=msgspec.json.decode(row["decision"]),
        decided_by=msgspec.json.decode(row["decided_by"]),
        created_at=format_time(row["created_at"]),
    )


def _pick(row: RowMapping, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def emit_task(change: HubChange, team_id: str, type_: str, task: TeamTask) -> None:
    """Tell of a task of a run."""
    payload = TeamTaskUpdated(
        team_id=team_id,
        team_run_id=task.team_run_id,
        team_task_id=task.team_task_id,
        task=msgspec.to_builtins(task),
    )
    change.emit(audience_of_team(team_id), type_, payload)


def emit_assignment(change: HubChange, team_id: str, type_: str, found: TeamAssignment) -> None:
    """Tell of an assignment of a run."""
    payload = AssignmentUpdated(
        team_id=team_id,
        team_run_id=found.team_run_id,
        team_task_id=found.team_task_id,
        assignment_id=found.assignment_id,
        agent_task_id=found.agent_task_id,
        assignment=msgspec.to_builtins(found),
    )
    change.emit(audience_of_team(team_id), type_, payload)


async def read_run_rows(
    connection: AsyncConnection, run_id: str
) -> tuple[list[TeamTask], list[TeamAssignment]]:
    """The tasks and the assignments of a run, in order."""
    tasks = [to_task(row) for row in await list_rows(connection, team_tasks, run_id)]
    rows = await list_rows(connection, team_assignments, run_id)
    return tasks, [to_assignment(row) for row in rows]


async def list_decisions(
    connection: AsyncConnection, run_id: str, after: int, limit: int
) -> list[RouteRecord]:
    rows = await list_rows(connection, route_decisions, run_id, after, limit)
    return [to_record(row) for row in rows]


def count_tokens(usage: Mapping[str, Any] | None) -> int:
    """The tokens of a task's usage, as its Edge states them."""
    found = usage or {}

    def read(*names: str) -> int:
        values = (found.get(name) for name in names)
        return next((value for value in values if type(value) is int and value > 0), 0)

    both = read("inputTokens", "input_tokens") + read("outputTokens", "output_tokens")
    return max(read("totalTokens", "total_tokens"), both)
