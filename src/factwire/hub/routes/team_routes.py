"""Teams, their runs, and decisions about runs."""

from collections.abc import AsyncIterator
from typing import Annotated, BinaryIO, Final

from litestar import delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.facts.team_resources import (
    AgentTeam,
    AgentTeamMember,
    RouteRecord,
    TeamAssignment,
    TeamRun,
    TeamRunState,
)
from factwire.hub.device_resources import StatePage
from factwire.hub.hub_resources import HubBody, HubResource
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    link_of,
    origin_of,
    services_of,
)
from factwire.hub.teams import (
    assignment_merges,
    route_decisions,
    supervisor_turns,
    team_members,
    team_runs,
)
from factwire.hub.teams.assignment_merges import AssignmentMergeBody
from factwire.hub.teams.guardrails import GUARDRAILS, ProposedRoute
from factwire.hub.teams.team_journal import export_run
from factwire.hub.teams.team_members import TeamBody, TeamMemberBody
from factwire.hub.teams.team_records import find_run, list_decisions
from factwire.hub.teams.team_runs import TeamRunBody
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.serving.limits import PAGE_ITEMS, PAGE_ITEMS_MOST
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit
from factwire.serving.rest import declare_bytes

_PIECE: Final = 256 * 1024


class RunMemberBody(HubBody, frozen=True, kw_only=True):
    """A member of the team, for a run of it."""

    team_member_id: str


class RouteRecordPage(HubResource, frozen=True, kw_only=True):
    """Decisions about a run, oldest first; `next` is the `after` of the page that follows."""

    items: list[RouteRecord]
    next: int | None = None


@get("/v1/teams", tags=["teams"])
async def list_teams(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[AgentTeam]:
    """List your teams with their members, newest first."""
    return await team_members.list_teams(services_of(request), caller_of(request), after, limit)


@post("/v1/teams", status_code=HTTP_201_CREATED, tags=["teams"])
async def create_team(request: HubRequest, data: JSONBody[TeamBody]) -> AgentTeam:
    """Create a team, to which you then add members."""
    hub, team_id = services_of(request), id_from_key(request, "tem")
    return await team_members.create_team(hub, caller_of(request), data, team_id)


@get("/v1/teams/{team_id:str}", tags=["teams"])
async def read_team(request: HubRequest, team_id: FromPath[str]) -> AgentTeam:
    """Get one of your teams."""
    return await team_members.read_team(services_of(request), caller_of(request), clean_id(team_id))


@delete("/v1/teams/{team_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["teams"])
async def remove_team(request: HubRequest, team_id: FromPath[str]) -> None:
    """Remove a team that has no run under way; what its runs did stays."""
    await team_members.remove_team(services_of(request), caller_of(request), clean_id(team_id))


@post("/v1/teams/{team_id:str}/members", status_code=HTTP_201_CREATED, tags=["teams"])
async def add_team_member(
    request: HubRequest, team_id: FromPath[str], data: JSONBody[TeamMemberBody]
) -> AgentTeamMember:
    """Add a member: an agent on devices that you may operate, or a supervisor who decides by
    REST.
    """
    hub, member_id = services_of(request), id_from_key(request, "mbr")
    return await team_members.add_member(
        hub, caller_of(request), clean_id(team_id), data, member_id
    )


@delete(
    "/v1/teams/{team_id:str}/members/{team_member_id:str}",
    status_code=HTTP_204_NO_CONTENT,
    tags=["teams"],
)
async def remove_team_member(
    request: HubRequest, team_id: FromPath[str], team_member_id: FromPath[str]
) -> None:
    """Remove a member; runs that are under way keep it."""
    hub, caller = services_of(request), caller_of(request)
    await team_members.remove_member(hub, caller, clean_id(team_id), clean_id(team_member_id))


@get("/v1/team-runs", tags=["team runs"])
async def list_team_runs(
    request: HubRequest,
    team_id: Annotated[str | None, QueryParameter(name="teamId")] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> StatePage[TeamRun]:
    """List the runs of your teams, newest first."""
    team = None if team_id is None else clean_id(team_id)
    return await team_runs.list_runs(services_of(request), caller_of(request), team, after, limit)


@post("/v1/team-runs", status_code=HTTP_201_CREATED, tags=["team runs"])
async def start_team_run(request: HubRequest, data: JSONBody[TeamRunBody]) -> TeamRun:
    """Start a run of a team, with the members that it has now, each on one of its devices."""
    hub, run_id = services_of(request), id_from_key(request, "tmr")
    return await team_runs.start_run(hub, caller_of(request), data, run_id)


@get("/v1/team-runs/{team_run_id:str}", tags=["team runs"])
async def read_team_run(request: HubRequest, team_run_id: FromPath[str]) -> TeamRun:
    """Get a run of one of your teams."""
    return await team_runs.read_run(services_of(request), caller_of(request), clean_id(team_run_id))


@get("/v1/team-runs/{team_run_id:str}/state", tags=["team runs"])
async def read_team_run_state(request: HubRequest, team_run_id: FromPath[str]) -> TeamRunState:
    """Get everything that the next decision needs: the goal, who is there, what was given to whom,
    what came of it last, and what is left of the budget.
    """
    return await team_runs.read_state(
        services_of(request), caller_of(request), clean_id(team_run_id)
    )


@get("/v1/team-runs/{team_run_id:str}/decisions", tags=["team runs"])
async def list_route_decisions(
    request: HubRequest,
    team_run_id: FromPath[str],
    after_number: Annotated[int, QueryParameter(name="afterNumber", ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MOST)] = PAGE_ITEMS,
) -> RouteRecordPage:
    """List the decisions about a run, refused ones too, oldest first."""
    run_id = clean_id(team_run_id)
    async with services_of(request).database.read() as connection:
        await find_run(connection, caller_of(request).person_id, run_id)
        found = await list_decisions(connection, run_id, after_number, limit + 1)
    following = found[limit - 1].number if len(found) > limit else None
    return RouteRecordPage(items=found[:limit], next=following)


@post("/v1/team-runs/{team_run_id:str}/decisions", status_code=HTTP_200_OK, tags=["team runs"])
async def decide_route(
    request: HubRequest, team_run_id: FromPath[str], data: JSONBody[ProposedRoute]
) -> RouteRecord:
    """Decide what comes next in a run: delegate, review, approve or finish. A decision that crosses
    a guardrail is refused with the guardrail's code, and is on record, too.
    """
    return await route_decisions.decide_route(
        services_of(request),
        caller_of(request),
        clean_id(team_run_id),
        data,
        decision_id=id_from_key(request, "dcn"),
        origin=origin_of(request),
    )


@post(
    "/v1/team-runs/{team_run_id:str}/assignments/{assignment_id:str}/:reassign",
    status_code=HTTP_200_OK,
    tags=["team runs"],
)
async def reassign_assignment(
    request: HubRequest,
    team_run_id: FromPath[str],
    assignment_id: FromPath[str],
    data: JSONBody[RunMemberBody],
) -> RouteRecord:
    """Give the work of an assignment to another member of the run; the assignment is stopped."""
    return await route_decisions.reassign(
        services_of(request),
        caller_of(request),
        clean_id(team_run_id),
        clean_id(assignment_id),
        member_id=clean_id(data.team_member_id),
        decision_id=id_from_key(request, "dcn"),
        origin=origin_of(request),
    )


@post(
    "/v1/team-runs/{team_run_id:str}/assignments/{assignment_id:str}/:merge",
    status_code=HTTP_200_OK,
    tags=["team runs"],
)
async def merge_assignment(
    request: HubRequest,
    team_run_id: FromPath[str],
    assignment_id: FromPath[str],
    data: JSONBody[AssignmentMergeBody],
) -> TeamAssignment:
    """Merge what an approved assignment changed into a branch, on the device where it is. With
    conflicts, nothing is changed, and `merge` names the files.
    """
    return await assignment_merges.merge_assignment(
        services_of(request),
        link_of(request).link,
        caller_of(request),
        clean_id(team_run_id),
        clean_id(assignment_id),
        into=data.into,
        origin=origin_of(request),
    )


@post("/v1/team-runs/{team_run_id:str}/members", status_code=HTTP_200_OK, tags=["team runs"])
async def add_run_member(
    request: HubRequest, team_run_id: FromPath[str], data: JSONBody[RunMemberBody]
) -> TeamRun:
    """Have a member of the team take part in a run that is under way."""
    hub, member_id = services_of(request), clean_id(data.team_member_id)
    return await team_runs.add_run_member(hub, caller_of(request), clean_id(team_run_id), member_id)


@post("/v1/team-runs/{team_run_id:str}/:pause", status_code=HTTP_200_OK, tags=["team runs"])
async def pause_team_run(request: HubRequest, team_run_id: FromPath[str]) -> TeamRun:
    """Pause a run: it takes no decisions until it is resumed. Work that was given goes on."""
    hub, caller = services_of(request), caller_of(request)
    return await team_runs.set_paused(hub, caller, clean_id(team_run_id), paused=True)


@post("/v1/team-runs/{team_run_id:str}/:resume", status_code=HTTP_200_OK, tags=["team runs"])
async def resume_team_run(request: HubRequest, team_run_id: FromPath[str]) -> TeamRun:
    """Let a paused run go on."""
    hub, caller = services_of(request), caller_of(request)
    return await team_runs.set_paused(hub, caller, clean_id(team_run_id), paused=False)


@post("/v1/team-runs/{team_run_id:str}/:takeover", status_code=HTTP_200_OK, tags=["team runs"])
async def take_over_team_run(request: HubRequest, team_run_id: FromPath[str]) -> TeamRun:
    """Decide about a run in place of the agent that supervises it, from now on. The agent's turn is
    stopped, and a paused run goes on.
    """
    hub, caller = services_of(request), caller_of(request)
    return await supervisor_turns.take_over(hub, caller, clean_id(team_run_id))


@post("/v1/team-runs/{team_run_id:str}/:handback", status_code=HTTP_200_OK, tags=["team runs"])
async def hand_back_team_run(request: HubRequest, team_run_id: FromPath[str]) -> TeamRun:
    """Have the supervising agent decide about a run again."""
    hub, caller = services_of(request), caller_of(request)
    return await supervisor_turns.hand_back(hub, caller, clean_id(team_run_id))


@post("/v1/team-runs/{team_run_id:str}/:cancel", status_code=HTTP_200_OK, tags=["team runs"])
async def cancel_team_run(request: HubRequest, team_run_id: FromPath[str]) -> TeamRun:
    """Cancel a run: the turn of its supervising agent first, then the tasks of its workers in the
    order in which they were given.
    """
    return await team_runs.cancel_run(
        services_of(request), caller_of(request), clean_id(team_run_id)
    )


@get("/v1/team-runs/{team_run_id:str}/evidence", tags=["team runs"], opt=declare_bytes())
async def read_team_evidence(
    request: HubRequest,
    team_run_id: FromPath[str],
    blobs: FromQuery[bool] = False,  # noqa: FBT002 - a parameter of an address
) -> Stream:
    """Download an evidence pack of a run with the threads of all members; verify it with
    `factwire evidence verify`. With `blobs`, the content that facts refer to is in it.
    """
    run_id = clean_id(team_run_id)
    services, caller = services_of(request), caller_of(request)
    async with export_run(services, caller, run_id, with_blobs=blobs) as pack:
        file = await run_disk_work(pack.path.open, "rb")
        size = pack.path.stat().st_size
    headers = {
        "content-disposition": f'attachment; filename="{run_id}.factpack.zip"',
        "content-length": str(size),
    }
    return Stream(_read_pack(file), media_type="application/octet-stream", headers=headers)


async def _read_pack(file: BinaryIO) -> AsyncIterator[bytes]:
    """The bytes of a pack. Its folder is gone by now, and what the disk has of it goes with the
    open file, whether or not anybody reads it.
    """
    with file:
        while piece := await run_disk_work(file.read, _PIECE):
            yield piece


GROUP = RouteGroup(
    handlers=[
        list_teams,
        create_team,
        read_team,
        remove_team,
        add_team_member,
        remove_team_member,
        list_team_runs,
        start_team_run,
        read_team_run,
        read_team_run_state,
        list_route_decisions,
        decide_route,
        reassign_assignment,
        merge_assignment,
        add_run_member,
        pause_team_run,
        resume_team_run,
        take_over_team_run,
        hand_back_team_run,
        cancel_team_run,
        read_team_evidence,
    ],
    access={
        "viewer": """
            GET /v1/teams
            GET /v1/teams/{team_id}
            GET /v1/team-runs
            GET /v1/team-runs/{team_run_id}
            GET /v1/team-runs/{team_run_id}/state
            GET /v1/team-runs/{team_run_id}/decisions
            GET /v1/team-runs/{team_run_id}/evidence
        """,
        "member": """
            POST /v1/teams
            DELETE /v1/teams/{team_id}
            POST /v1/teams/{team_id}/members
            DELETE /v1/teams/{team_id}/members/{team_member_id}
            POST /v1/team-runs
            POST /v1/team-runs/{team_run_id}/decisions
            POST /v1/team-runs/{team_run_id}/assignments/{assignment_id}:reassign
            POST /v1/team-runs/{team_run_id}/assignments/{assignment_id}:merge
            POST /v1/team-runs/{team_run_id}/members
            POST /v1/team-runs/{team_run_id}:pause
            POST /v1/team-runs/{team_run_id}:resume
            POST /v1/team-runs/{team_run_id}:takeover
            POST /v1/team-runs/{team_run_id}:handback
            POST /v1/team-runs/{team_run_id}:cancel
        """,
    },
    codes={
        **{each.code: each.detail for each in GUARDRAILS},
        "agent_supervises": "an agent supervises the run, and nobody has taken it over",
        "assignment_ended": "the assignment is completed",
        "member_name_taken": "a member has this name already",
        "member_unavailable": "no device of a member that you may operate offers its agent",
        "mirrors_unavailable": "this Hub has no mirrors of Edges",
        "no_supervising_agent": "no agent supervises the run",
        "team_busy": "a run of the team is not over",
        "team_full": "the team has too many members",
        "team_run_paused": "the run is paused",
        "too_many_team_runs": "too many of your team runs are not over",
        "too_many_teams": "you have too many teams",
        "unknown_assignment": "the run has no assignment with this id",
        "unknown_member": "the team or the run has no member with this id",
        "unknown_team": "no team, or none of yours, has this id",
        "unknown_team_run": "no team run, or none of yours, has this id",
        "work_not_approved": "only the last assignment of a task can be merged, once approved",
    },
    ids={
        "AgentTeam": "teamId",
        "AgentTeamMember": "teamMemberId",
        "TeamRun": "teamRunId",
    },
    listed={
        "AgentTeamPage": "teamId",
        "TeamRunPage": "teamRunId",
    },
)
