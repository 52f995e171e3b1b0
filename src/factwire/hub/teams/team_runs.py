"""Runs of teams: started, paused, resumed, cancelled and read.

Whatever changes a run holds its row until the commit. A run that is over gives no more work; the
tasks of its assignments are stopped after that, in order, by `stop_due_tasks`: what is to be
stopped follows from rows alone, so that a kill leaves nothing running that should not.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from sqlalchemy import and_, exists, func, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import TASK_ENDS, TaskClosing
from factwire.facts.team_resources import (
    ASSIGNMENT_ENDS,
    TEAM_RUN_ENDS,
    RosterMember,
    Supervision,
    TeamAssignment,
    TeamBudget,
    TeamRun,
    TeamRunState,
    TeamRunStatus,
)
from factwire.hub.device_resources import StatePage
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.frames.frame_types import TeamRunChange, TeamRunUpdated
from factwire.hub.hub_resources import HubBody
from factwire.hub.limits import (
    TEAM_GOAL_CHARACTERS,
    TEAM_RUNS_OPEN,
    TEAM_TOKENS,
    TEAM_TOKENS_MOST,
)
from factwire.hub.link.agent_tasks import describe_person, stop_task
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.link_tables import agent_tasks
from factwire.hub.records.people_records import fetch_page
from factwire.hub.records.team_tables import supervisor_turns, team_assignments, team_runs
from factwire.hub.teams.team_members import choose_device, unknown_member
from factwire.hub.teams.team_records import (
    audience_of_team,
    encode_supervision,
    find_run,
    find_team,
    list_members,
    read_roster,
    read_run_rows,
    read_supervision,
    select_runs,
    to_run,
)
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger

_log: Final = logger("factwire.hub.teams")


class TeamRunBody(HubBody, frozen=True, kw_only=True):
    """A goal for a team, and how many tokens may be used for it."""

    team_id: str
    goal: Annotated[str, msgspec.Meta(min_length=1, max_length=TEAM_GOAL_CHARACTERS)]
    budget_tokens: Annotated[int, msgspec.Meta(ge=1, le=TEAM_TOKENS_MOST)] = TEAM_TOKENS


async def start_run(
    hub: HubServices, caller: HubCaller, body: TeamRunBody, run_id: str | None
) -> TeamRun:
    """Start a run with the members that the team has, each on a device; one with this id already is
    the one that was asked for.
    """
    chosen = run_id or new_id("tmr")
    async with hub.events.change() as change:
        known = select_runs(caller.person_id).where(team_runs.c.team_run_id == chosen)
        row = (await change.connection.execute(known)).mappings().first()
        if row is not None:
            return to_run(row)
        team = await find_team(change.connection, caller.person_id, body.team_id, lock=True)
        await _ensure_room(change, caller)
        rows = await list_members(change.connection, [team["team_id"]])
        roster = [await choose_device(change, caller.person_id, row) for row in rows]
        await change.connection.execute(
            insert(team_runs).values(
                team_run_id=chosen,
                team_id=team["team_id"],
                person_id=caller.person_id,
                goal=body.goal,
                status="running",
                budget_tokens=body.budget_tokens,
                roster=_encode_roster(roster),
                **begin_supervision(roster),
                created_at=change.now,
                updated_at=change.now,
            )
        )
        return await tell_run(change, chosen, "started", await describe_caller(change, caller))


async def _ensure_room(change: HubChange, caller: HubCaller) -> None:
    open_runs = select_runs(caller.person_id).where(team_runs.c.status.not_in(TEAM_RUN_ENDS))
    count = select(func.count()).select_from(open_runs.subquery())
    if (await change.connection.execute(count)).scalar_one() >= TEAM_RUNS_OPEN:
        raise Problem(409, "too_many_team_runs", f"{TEAM_RUNS_OPEN} of your team runs are not over")


def begin_supervision(roster: list[RosterMember]) -> dict[str, Any]:
    """What the row of a run has of the agent that supervises it, if there is one: the first."""
    agents = (each for each in roster if each.role == "supervisor" and each.agent_type is not None)
    leading = next(agents, None)
    if leading is None:
        return {}
    supervision = Supervision(team_member_id=leading.team_member_id)
    return {"supervision": encode_supervision(supervision), "leads": True, "asks": True}


def _encode_roster(roster: list[RosterMember]) -> str:
    return msgspec.json.encode(roster).decode()


async def describe_caller(change: HubChange, caller: HubCaller) -> dict[str, Any]:
    """Who asks, as facts name them."""
    return await describe_person(change.connection, caller.person_id, caller.session_id)


async def tell_run(
    change: HubChange,
    run_id: str,
    what: TeamRunChange,
    by: dict[str, Any],
    member_id: str | None = None,
) -> TeamRun:
    """Tell those who may see a run how it is now."""
    query = select(team_runs).where(team_runs.c.team_run_id == run_id)
    run = to_run((await change.connection.execute(query)).mappings().one())
    payload = TeamRunUpdated(
        team_id=run.team_id,
        team_run_id=run_id,
        change=what,
        by=by,
        run=msgspec.to_builtins(run),
        team_member_id=member_id or msgspec.UNSET,
    )
    change.emit(audience_of_team(run.team_id), "team.run.updated", payload)
    return run


async def save_run(
    change: HubChange, run_id: str, what: TeamRunChange, by: dict[str, Any], **values: Any
) -> TeamRun:
    """Change the row of a run, whose lock the caller holds, and tell it."""
    member_id = values.pop("member_id", None)
    await change.connection.execute(
        update(team_runs)
        .where(team_runs.c.team_run_id == run_id)
        .values(updated_at=change.now, **values)
    )
    return await tell_run(change, run_id, what, by, member_id)


async def add_run_member(
    hub: HubServices, caller: HubCaller, run_id: str, member_id: str
) -> TeamRun:
    """Have a member of the team take part in a run that is under way; twice is once."""
    async with hub.events.change() as change:
        row = await lock_open_run(change, caller, run_id)
        roster = list(read_roster(row))
        if any(each.team_member_id == member_id for each in roster):
            return to_run(row)
        members = await list_members(change.connection, [row["team_id"]])
        found = next((each for each in members if each["team_member_id"] == member_id), None)
        if found is None:
            raise unknown_member()
        if any(each.name == found["name"] for each in roster):
            raise Problem(409, "member_name_taken", "another member of the run has this name")
        roster.append(await choose_device(change, caller.person_id, found))
        more = {} if row["supervision"] is not None else begin_supervision(roster)
        return await save_run(
            change,
            run_id,
            "member_added",
            await describe_caller(change, caller),
            roster=_encode_roster(roster),
            member_id=member_id,
            **more,
        )


async def lock_open_run(change: HubChange, caller: HubCaller, run_id: str) -> RowMapping:
    """A run that is not over, locked; raises `Problem`."""
    row = await find_run(change.connection, caller.person_id, run_id, lock=True)
    if row["status"] in TEAM_RUN_ENDS:
        raise _ended(row["status"])
    return row


def _ended(status: TeamRunStatus) -> Problem:
    return Problem(409, "team_run_ended", f"the run is already {status}")


async def set_paused(hub: HubServices, caller: HubCaller, run_id: str, *, paused: bool) -> TeamRun:
    """Pause a run, or let it go on; twice is once. Work that was given before goes on."""
    status = "paused" if paused else "running"
    async with hub.events.change() as change:
        row = await lock_open_run(change, caller, run_id)
        if row["status"] == status:
            return to_run(row)
        by = await describe_caller(change, caller)
        what: TeamRunChange = "paused" if paused else "resumed"
        return await save_run(change, run_id, what, by, status=status, **restart_attempts(row))


def restart_attempts(row: RowMapping) -> dict[str, Any]:
    """What the row of a run has once a person has looked: the reason why it was paused is gone, and
    its supervising agent has all its attempts again.
    """
    supervision = read_supervision(row)
    if supervision is None:
        return {}
    fresh = msgspec.structs.replace(supervision, attempts=0)
    return {"supervision": encode_supervision(fresh), "reason": None}


async def cancel_run(hub: HubServices, caller: HubCaller, run_id: str) -> TeamRun:
    """Cancel a run, and with it the tasks of its supervising agent and its workers; twice is
    once.
    """
    async with hub.events.change() as change:
        row = await find_run(change.connection, caller.person_id, run_id, lock=True)
        if row["status"] == "cancelled":
            return to_run(row)
        if row["status"] in TEAM_RUN_ENDS:
            raise _ended(row["status"])
        by = await describe_caller(change, caller)
        ended = {"status": "cancelled", "reason": None, "ended_at": change.now}
        run = await save_run(change, run_id, "ended", by, **ended)
    await stop_due_tasks(hub)
    return run


async def list_runs(
    hub: HubServices, caller: HubCaller, team_id: str | None, cursor: str | None, limit: int
) -> StatePage[TeamRun]:
    query = select_runs(caller.person_id)
    if team_id is not None:
        query = query.where(team_runs.c.team_id == team_id)
    async with hub.database.read() as connection:
        order = (team_runs.c.created_at, team_runs.c.team_run_id)
        rows, following = await fetch_page(connection, query, order, cursor, limit)
        as_of = await read_cursor(connection)
    return StatePage(items=[to_run(row) for row in rows], next=following, as_of=as_of)


async def read_run(hub: HubServices, caller: HubCaller, run_id: str) -> TeamRun:
    async with hub.database.read() as connection:
        return to_run(await find_run(connection, caller.person_id, run_id))


async def read_state(hub: HubServices, caller: HubCaller, run_id: str) -> TeamRunState:
    """Everything about a run, as of one moment."""
    async with hub.database.read() as connection:
        run = to_run(await find_run(connection, caller.person_id, run_id))
        tasks, assignments = await read_run_rows(connection, run_id)
        as_of = await read_cursor(connection)
    used = count_used_tokens(run.supervision, assignments)
    return TeamRunState(
        run=run,
        tasks=tasks,
        assignments=assignments,
        last_outcome=find_last_outcome(assignments),
        budget=TeamBudget(tokens=run.budget_tokens, used_tokens=used),
        as_of=as_of,
    )


def count_used_tokens(supervision: Supervision | None, assignments: list[TeamAssignment]) -> int:
    """The tokens that a run has used so far."""
    led = 0 if supervision is None else supervision.tokens
    return led + sum(each.tokens for each in assignments)


def find_last_outcome(assignments: list[TeamAssignment]) -> TeamAssignment | None:
    """The assignment that ended last."""
    ended = [each for each in assignments if each.status in ASSIGNMENT_ENDS]
    return max(ended, key=lambda each: (each.ended_at or "", each.number), default=None)


_later: Final = team_assignments.alias("later")
IS_REPLACED: Final = exists(
    select(_later.c.assignment_id).where(_later.c.replaces == team_assignments.c.assignment_id)
)
_STOPS: Final[tuple[tuple[TaskClosing, Callable[[int], Any]], ...]] = (
    ("cancel", lambda _: or_(team_runs.c.status.in_(TEAM_RUN_ENDS), IS_REPLACED)),
    ("timeout", lambda now: team_assignments.c.expires_at <= now),
)
"""Why the task of an assignment is to be stopped, and which are by now."""


_STOPPED_TURNS: Final[tuple[tuple[TaskClosing, Callable[[int], Any]], ...]] = (
    (
        "cancel",
        lambda _: or_(team_runs.c.status.in_(TEAM_RUN_ENDS), supervisor_turns.c.status != "asked"),
    ),
    ("timeout", lambda now: supervisor_turns.c.expires_at <= now),
)
"""Why the task of a supervising agent is to be stopped, and which are by now."""


async def find_due_tasks(connection: AsyncConnection, now: int) -> list[tuple[str, TaskClosing]]:
    """The tasks of supervising agents and of assignments that are to be stopped, and why: those who
    give work first, then what they gave, in order.
    """
    found: list[tuple[str, TaskClosing]] = []
    for why, is_due in _STOPPED_TURNS:
        query = (
            select(supervisor_turns.c.agent_task_id)
            .join(team_runs, team_runs.c.team_run_id == supervisor_turns.c.team_run_id)
            .join(agent_tasks, agent_tasks.c.task_id == supervisor_turns.c.agent_task_id)
            .where(
                supervisor_turns.c.settled_at.is_(None),
                supervisor_turns.c.ended_at.is_(None),
                agent_tasks.c.closing.is_(None),
                is_due(now),
            )
            .order_by(supervisor_turns.c.team_run_id)
        )
        found.extend((task_id, why) for task_id in (await connection.execute(query)).scalars())
    for why, is_due in _STOPS:
        query = (
            select(team_assignments.c.agent_task_id)
            .join(team_runs, team_runs.c.team_run_id == team_assignments.c.team_run_id)
            .join(agent_tasks, agent_tasks.c.task_id == team_assignments.c.agent_task_id)
            .where(
                team_assignments.c.status.in_(("created", "dispatched")),
                agent_tasks.c.closing.is_(None),
                is_due(now),
            )
            .order_by(team_assignments.c.team_run_id, team_assignments.c.number)
        )
        found.extend((task_id, why) for task_id in (await connection.execute(query)).scalars())
    return found


async def stop_due_tasks(hub: HubServices) -> None:
    """Stop what is to be stopped by now, each in a transaction of its own. What made it due is
    committed, so nothing is raised: what fails is logged, and the next look does it.
    """
    try:
        async with hub.database.read() as connection:
            due = await find_due_tasks(connection, hub.now())
    except RecordsUnavailable as error:
        _log.warning("teams_unavailable", detail=str(error))
        return
    for task_id, why in due:
        try:
            await _stop(hub, task_id, why)
        except Exception:  # noqa: BLE001 - logged; the others are stopped, and this one later
            _log.exception("team_task_not_stopped", task_id=task_id)


async def _stop(hub: HubServices, task_id: str, why: TaskClosing) -> None:
    async with hub.events.change() as change:
        query = select(agent_tasks).where(
            and_(agent_tasks.c.task_id == task_id, agent_tasks.c.closing.is_(None))
        )
        locked = await change.connection.execute(query.with_for_update())
        row = locked.mappings().first()
        if row is not None and row["status"] not in TASK_ENDS:
            by = await describe_person(change.connection, row["person_id"])
            await stop_task(change, row, why, by if why == "cancel" else None)
