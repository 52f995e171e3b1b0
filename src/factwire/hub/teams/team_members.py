"""Teams and who is in them.

A member is an agent on a device, or on any of some devices; who adds it must be allowed to operate
all of them. A run chooses one of the devices for each member when it starts, and keeps it. A
supervisor may also be nobody's agent: then whoever has the team decides by REST.
"""

from typing import Annotated

import msgspec
from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import RowMapping

from factwire.facts.team_resources import (
    TEAM_RUN_ENDS,
    AgentTeam,
    AgentTeamMember,
    RosterMember,
    TeamRole,
)
from factwire.hub.device_resources import StatePage
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.frames.frame_types import TeamRemoved, TeamUpdated
from factwire.hub.hub_resources import HubBody
from factwire.hub.limits import (
    TASK_NAME_CHARACTERS,
    TASK_PATH_CHARACTERS,
    TEAM_DEVICES,
    TEAM_MEMBERS,
    TEAMS_PER_PERSON,
)
from factwire.hub.link.agent_tasks import find_device
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records.people_records import fetch_page
from factwire.hub.records.team_tables import team_members, team_runs, teams
from factwire.hub.teams.team_records import (
    audience_of_team,
    find_team,
    list_members,
    next_number,
    select_teams,
    to_member,
    to_team,
)
from factwire.serving.asgi import Problem

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=TASK_NAME_CHARACTERS)]
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=TASK_PATH_CHARACTERS)]


class TeamBody(HubBody, frozen=True, kw_only=True):
    name: _Name


class TeamMemberBody(HubBody, frozen=True, kw_only=True):
    """A member: an agent, and the devices of which each run chooses one. A supervisor who decides
    by REST has neither.
    """

    name: _Name
    role: TeamRole
    agent_type: _Name | None = None
    device_ids: Annotated[list[_Name], msgspec.Meta(max_length=TEAM_DEVICES)] = msgspec.field(
        default_factory=list[str]
    )
    project_id: _Name | None = None
    work_dir: _Path | None = None

    def __post_init__(self) -> None:
        is_agent = self.agent_type is not None
        if is_agent != bool(self.device_ids) or not (is_agent or self.role == "supervisor"):
            raise ValueError("name agentType and deviceIds; only a supervisor can have neither")


async def list_teams(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> StatePage[AgentTeam]:
    async with hub.database.read() as connection:
        order = (teams.c.created_at, teams.c.team_id)
        query = select_teams(caller.person_id)
        rows, following = await fetch_page(connection, query, order, cursor, limit)
        members = await list_members(connection, [row["team_id"] for row in rows])
        as_of = await read_cursor(connection)
    items = [to_team(row, members) for row in rows]
    return StatePage(items=items, next=following, as_of=as_of)


async def read_team(hub: HubServices, caller: HubCaller, team_id: str) -> AgentTeam:
    async with hub.database.read() as connection:
        row = await find_team(connection, caller.person_id, team_id)
        return to_team(row, await list_members(connection, [team_id]))


async def create_team(
    hub: HubServices, caller: HubCaller, body: TeamBody, team_id: str | None
) -> AgentTeam:
    """Create a team without members; one with this id already is the one that was asked for."""
    chosen = team_id or new_id("tem")
    async with hub.events.change() as change:
        known = select_teams(caller.person_id).where(teams.c.team_id == chosen)
        if (await change.connection.execute(known)).first() is None:
            await _ensure_room(change, caller)
            await change.connection.execute(
                insert(teams).values(
                    team_id=chosen,
                    person_id=caller.person_id,
                    name=body.name,
                    created_at=change.now,
                )
            )
            change.join(audience_of_team(chosen), caller.person_id)
            return await _tell_team(change, caller, chosen)
        row = await find_team(change.connection, caller.person_id, chosen)
        return to_team(row, await list_members(change.connection, [chosen]))


async def _ensure_room(change: HubChange, caller: HubCaller) -> None:
    count = select(func.count()).select_from(select_teams(caller.person_id).subquery())
    if (await change.connection.execute(count)).scalar_one() >= TEAMS_PER_PERSON:
        raise Problem(409, "too_many_teams", f"you have {TEAMS_PER_PERSON} teams; remove one first")


async def _tell_team(change: HubChange, caller: HubCaller, team_id: str) -> AgentTeam:
    row = await find_team(change.connection, caller.person_id, team_id)
    team = to_team(row, await list_members(change.connection, [team_id]))
    updated = TeamUpdated(team_id=team_id, team=msgspec.to_builtins(team))
    change.emit(audience_of_team(team_id), "team.updated", updated)
    return team


async def remove_team(hub: HubServices, caller: HubCaller, team_id: str) -> None:
    """Remove a team that has no run under way; what its runs did stays."""
    async with hub.events.change() as change:
        await find_team(change.connection, caller.person_id, team_id, lock=True)
        busy = select(team_runs.c.team_run_id).where(
            team_runs.c.team_id == team_id, team_runs.c.status.not_in(TEAM_RUN_ENDS)
        )
        if (await change.connection.execute(busy)).first() is not None:
            raise Problem(409, "team_busy", "a run of this team is not over; stop it first")
        gone = update(teams).where(teams.c.team_id == team_id).values(removed_at=change.now)
        await change.connection.execute(gone)
        change.emit(audience_of_team(team_id), "team.removed", TeamRemoved(team_id=team_id))


async def add_member(
    hub: HubServices,
    caller: HubCaller,
    team_id: str,
    body: TeamMemberBody,
    member_id: str | None,
) -> AgentTeamMember:
    """Add a member to a team; raises `Problem` for a device that the caller may not operate."""
    chosen = member_id or new_id("mbr")
    async with hub.events.change() as change:
        await find_team(change.connection, caller.person_id, team_id, lock=True)
        members = await list_members(change.connection, [team_id])
        known = next((row for row in members if row["team_member_id"] == chosen), None)
        if known is not None:
            return to_member(known)
        if len(members) >= TEAM_MEMBERS:
            raise Problem(409, "team_full", f"a team has at most {TEAM_MEMBERS} members")
        if any(row["name"] == body.name for row in members):
            raise Problem(409, "member_name_taken", f"a member is called {body.name!r} already")
        for device_id in body.device_ids:
            await find_device(change.connection, caller.person_id, device_id, "operator")
        await change.connection.execute(
            insert(team_members).values(
                team_member_id=chosen,
                team_id=team_id,
                number=await next_number(change.connection, team_members, team_id, by="team_id"),
                name=body.name,
                role=body.role,
                agent_type=body.agent_type,
                device_ids=msgspec.json.encode(body.device_ids).decode(),
                project_id=body.project_id,
                work_dir=body.work_dir,
                created_at=change.now,
            )
        )
        team = await _tell_team(change, caller, team_id)
        return next(each for each in team.members if each.team_member_id == chosen)


async def remove_member(hub: HubServices, caller: HubCaller, team_id: str, member_id: str) -> None:
    """Remove a member from a team; runs that are under way keep it."""
    async with hub.events.change() as change:
        await find_team(change.connection, caller.person_id, team_id, lock=True)
        gone = await change.connection.execute(
            update(team_members)
            .where(
                team_members.c.team_id == team_id,
                team_members.c.team_member_id == member_id,
                team_members.c.removed_at.is_(None),
            )
            .values(removed_at=change.now)
        )
        if gone.rowcount == 0:
            raise unknown_member()
        await _tell_team(change, caller, team_id)


def unknown_member() -> Problem:
    return Problem(404, "unknown_member", "the team has no member with this id")


async def choose_device(change: HubChange, person_id: str, row: RowMapping) -> RosterMember:
    """A member for a run, on one of its devices: the first that is connected and offers the agent,
    else the first that offers it. Raises `Problem` where there is none.
    """
    member = to_member(row)
    fields = ("team_member_id", "name", "role", "agent_type", "project_id", "work_dir")
    common = {name: getattr(member, name) for name in fields}
    if member.agent_type is None:
        return RosterMember(**common)
    offering: list[RowMapping] = []
    for device_id in member.device_ids:
        try:
            device = await find_device(change.connection, person_id, device_id, "operator")
        except Problem:
            # Revoked, or no longer shared: another one of the set may do.
            continue
        if member.agent_type in msgspec.json.decode(device["agents"], type=list[str]):
            offering.append(device)
    if not offering:
        raise Problem(
            409,
            "member_unavailable",
            f"no device of {member.name!r} that you may operate offers {member.agent_type!r}",
        )
    online = next((device for device in offering if device["online"]), offering[0])
    return RosterMember(**common, device_id=online["device_id"])
