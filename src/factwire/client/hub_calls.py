"""What only a Hub has, each address as a function that makes the call: devices, tasks, approvals,
teams.

What an Edge has, a Hub has for each device under the Edge's own addresses, made by `edge_calls`.
"""

from typing import Any, Literal

from factwire.client import edge_calls
from factwire.client.edge_address import path_of, query_of
from factwire.client.edge_connection import (
    EdgeCall,
    EdgeResponse,
    delete,
    encode_body,
    get,
    json_reader,
    post,
    present_fields,
    read_nothing,
)
from factwire.client.errors import DeviceAmbiguous, DeviceUnknown
from factwire.client.hub_sessions import SignInTokens
from factwire.client.resources import (
    AgentTask,
    AgentTeam,
    AgentTeamMember,
    ApprovalWithCard,
    Device,
    DeviceDelivery,
    HubApproval,
    Page,
    RouteRecord,
    Run,
    TaskStatus,
    TeamAssignment,
    TeamRole,
    TeamRun,
    TeamRunState,
)


def renew_session(refresh_token: str) -> EdgeCall[SignInTokens]:
    """The next tokens of a session, in exchange for the refresh token that was got last."""
    return EdgeCall(
        method="POST",
        path=path_of("auth", "refresh"),
        read=json_reader(SignInTokens),
        body=encode_body({"refreshToken": refresh_token}),
    )


def devices(*, cursor: str | None = None, limit: int | None = None) -> EdgeCall[Page[Device]]:
    """The devices of the person and those that are shared with them, newest first."""
    return get(path_of("devices"), json_reader(Page[Device]), query_of(cursor=cursor, limit=limit))


def tasks(
    *,
    device_id: str | None = None,
    status: TaskStatus | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[AgentTask]]:
    """Tasks that the person gave, and those of devices that they may see, newest first."""
    query = query_of(device_id=device_id, status=status, cursor=cursor, limit=limit)
    return get(path_of("agent-tasks"), json_reader(Page[AgentTask]), query)


def create_task(
    prompt: str,
    *,
    device_id: str | None = None,
    target_id: str | None = None,
    agent: str | None = None,
    thread_id: str | None = None,
    project_id: str | None = None,
    work_dir: str | None = None,
    expires_in: int | None = None,
    timeout: int | None = None,
) -> EdgeCall[AgentTask]:
    """Give a task to an agent on one device, or on a target. It waits for that device, for
    `expires_in` seconds at most, and may take `timeout` seconds.
    """
    body = present_fields(
        prompt=prompt,
        deviceId=device_id,
        targetId=target_id,
        agentType=agent,
        threadId=thread_id,
        projectId=project_id,
        workDir=work_dir,
        expiresIn=expires_in,
        timeout=timeout,
    )
    return post(path_of("agent-tasks"), json_reader(AgentTask), body)


def task(task_id: str, *, wait: int | None = None) -> EdgeCall[AgentTask]:
    """One task; as soon as it has ended, or after `wait` seconds as it is then."""
    return get(path_of("agent-tasks", task_id), json_reader(AgentTask), query_of(wait=wait))


def cancel_task(task_id: str) -> EdgeCall[AgentTask]:
    """Cancel a task: at once while its device has not heard of it, else through the device."""
    return post(f"{path_of('agent-tasks', task_id)}:cancel", json_reader(AgentTask))


def cancel_later(run_id: str, *, reason: str | None = None) -> EdgeCall[Run | DeviceDelivery]:
    """Ask a run to stop; where its device is away, leave that for it. At the address of an Edge."""
    call = edge_calls.cancel_run(run_id, reason=reason)

    def read(answer: EdgeResponse) -> Run | DeviceDelivery:
        is_left = "preference-applied" in answer.headers
        return json_reader(DeviceDelivery if is_left else Run)(answer)

    return EdgeCall(
        method=call.method, path=call.path, read=read, body=call.body, key=call.key, may_wait=True
    )


def approvals(
    *,
    status: Literal["waiting", "all"] = "waiting",
    cursor: str | None = None,
    limit: int | None = None,
) -> EdgeCall[Page[HubApproval]]:
    """What agents ask on all devices that the person may see, newest first."""
    query = query_of(status=status, cursor=cursor, limit=limit)
    return get(path_of("approvals"), json_reader(Page[HubApproval]), query)


def approval(approval_id: str) -> EdgeCall[ApprovalWithCard]:
    """An approval with its card: exactly what is to be decided, and the hash to decide it with."""
    return get(path_of("approvals", approval_id), json_reader(ApprovalWithCard))


def decide(
    approval_id: str,
    decision: Literal["allow", "deny"],
    *,
    args_hash: str,
    reason: str | None = None,
) -> EdgeCall[HubApproval]:
    """Decide exactly what was shown; `args_hash` is the hash on its card. The `state` of the answer
    says how far the decision is: the device may get it later.
    """
    body = present_fields(decision=decision, argsHash=args_hash, reason=reason)
    return post(path_of("approvals", approval_id, "decide"), json_reader(HubApproval), body)


def teams(*, cursor: str | None = None, limit: int | None = None) -> EdgeCall[Page[AgentTeam]]:
    """The person's teams with their members, newest first."""
    query = query_of(cursor=cursor, limit=limit)
    return get(path_of("teams"), json_reader(Page[AgentTeam]), query)


def team(team_id: str) -> EdgeCall[AgentTeam]:
    """One team."""
    return get(path_of("teams", team_id), json_reader(AgentTeam))


def create_team(name: str) -> EdgeCall[AgentTeam]:
    """A new team, which has no members yet."""
    return post(path_of("teams"), json_reader(AgentTeam), {"name": name})


def remove_team(team_id: str) -> EdgeCall[None]:
    """Remove a team that has no run under way."""
    return delete(path_of("teams", team_id), read_nothing)


def add_team_member(
    team_id: str,
    name: str,
    role: TeamRole,
    *,
    agent: str | None = None,
    device_ids: list[str] | None = None,
    project_id: str | None = None,
    work_dir: str | None = None,
) -> EdgeCall[AgentTeamMember]:
    """Add an agent to a team, on the device that each run chooses among some; a supervisor who
    decides through this client has no agent.
    """
    body = present_fields(
        name=name,
        role=role,
        agentType=agent,
        deviceIds=device_ids,
        projectId=project_id,
        workDir=work_dir,
    )
    return post(path_of("teams", team_id, "members"), json_reader(AgentTeamMember), body)


def remove_team_member(team_id: str, team_member_id: str) -> EdgeCall[None]:
    """Remove a member from a team; runs that are under way keep it."""
    return delete(path_of("teams", team_id, "members", team_member_id), read_nothing)


def team_runs(
    *, team_id: str | None = None, cursor: str | None = None, limit: int | None = None
) -> EdgeCall[Page[TeamRun]]:
    """Runs of the person's teams, newest first."""
    query = query_of(team_id=team_id, cursor=cursor, limit=limit)
    return get(path_of("team-runs"), json_reader(Page[TeamRun]), query)


def start_team_run(
    team_id: str, goal: str, *, budget_tokens: int | None = None
) -> EdgeCall[TeamRun]:
    """Start a run of a team with the members that it has now."""
    body = present_fields(teamId=team_id, goal=goal, budgetTokens=budget_tokens)
    return post(path_of("team-runs"), json_reader(TeamRun), body)


def team_run(team_run_id: str) -> EdgeCall[TeamRun]:
    """One run of a team."""
    return get(path_of("team-runs", team_run_id), json_reader(TeamRun))


def team_run_state(team_run_id: str) -> EdgeCall[TeamRunState]:
    """Everything that the next decision about a run needs."""
    return get(path_of("team-runs", team_run_id, "state"), json_reader(TeamRunState))


def decide_route(
    team_run_id: str,
    action: Literal["delegate", "review", "approve", "finish"],
    *,
    next_worker: str | None = None,
    instructions: str | None = None,
    reasoning: str | None = None,
    context: Any = None,
    approved: bool | None = None,
    feedback: str | None = None,
    summary: str | None = None,
    blocked_reason: str | None = None,
    subtask_id: str | None = None,
    parent_task_id: str | None = None,
) -> EdgeCall[RouteRecord]:
    """Decide what comes next in a run. A decision that crosses a guardrail raises `EdgeProblem`
    with the guardrail's code.
    """
    body = present_fields(
        action=action,
        next_worker=next_worker,
        instructions=instructions,
        reasoning=reasoning,
        context=context,
        approved=approved,
        feedback=feedback,
        summary=summary,
        blocked_reason=blocked_reason,
        subtask_id=subtask_id,
        parent_task_id=parent_task_id,
    )
    return post(path_of("team-runs", team_run_id, "decisions"), json_reader(RouteRecord), body)


def add_run_member(team_run_id: str, team_member_id: str) -> EdgeCall[TeamRun]:
    """Have a member of the team take part in a run that is under way."""
    body = {"teamMemberId": team_member_id}
    return post(path_of("team-runs", team_run_id, "members"), json_reader(TeamRun), body)


def reassign(team_run_id: str, assignment_id: str, team_member_id: str) -> EdgeCall[RouteRecord]:
    """Give the work of an assignment to another member of the run."""
    path = path_of("team-runs", team_run_id, "assignments", assignment_id)
    body = {"teamMemberId": team_member_id}
    return post(f"{path}:reassign", json_reader(RouteRecord), body)


def merge_assignment(
    team_run_id: str, assignment_id: str, *, into: str | None = None
) -> EdgeCall[TeamAssignment]:
    """Merge what an approved assignment changed into a branch of its repository."""
    path = path_of("team-runs", team_run_id, "assignments", assignment_id)
    return post(f"{path}:merge", json_reader(TeamAssignment), present_fields(into=into))


def pause_team_run(team_run_id: str) -> EdgeCall[TeamRun]:
    """Have a run take no decisions until it is resumed; work that was given goes on."""
    return post(f"{path_of('team-runs', team_run_id)}:pause", json_reader(TeamRun))


def resume_team_run(team_run_id: str) -> EdgeCall[TeamRun]:
    """Let a paused run go on."""
    return post(f"{path_of('team-runs', team_run_id)}:resume", json_reader(TeamRun))


def take_over_team_run(team_run_id: str) -> EdgeCall[TeamRun]:
    """Decide about a run in place of the agent that supervises it."""
    return post(f"{path_of('team-runs', team_run_id)}:takeover", json_reader(TeamRun))


def hand_back_team_run(team_run_id: str) -> EdgeCall[TeamRun]:
    """Have the agent that supervises a run decide about it again."""
    return post(f"{path_of('team-runs', team_run_id)}:handback", json_reader(TeamRun))


def cancel_team_run(team_run_id: str) -> EdgeCall[TeamRun]:
    """Cancel a run, and the tasks of its workers."""
    return post(f"{path_of('team-runs', team_run_id)}:cancel", json_reader(TeamRun))


def team_evidence(team_run_id: str, *, blobs: bool = False) -> EdgeCall[None]:
    """An evidence pack of a run with the threads of all members."""
    path = path_of("team-runs", team_run_id, "evidence")
    return get(path, read_nothing, query_of(blobs=blobs or None))


def choose_device(found: list[Device], wanted: str | None) -> Device:
    """The device of an id or a name, or the only one; raises `DeviceUnknown` or
    `DeviceAmbiguous`.
    """
    meant = [each for each in found if wanted in (None, each.device_id)]
    meant = meant or [each for each in found if each.name == wanted]
    if len(meant) == 1:
        return meant[0]
    if meant:
        named = ", ".join(f"{each.name} ({each.device_id})" for each in meant)
        raise DeviceAmbiguous(f"several devices are meant, name one by its id: {named}")
    if not found:
        raise DeviceUnknown("no device has joined; run `factwire join URL` on one")
    known = ", ".join(sorted(each.name for each in found))
    raise DeviceUnknown(f"no device has the name or id {wanted}; there are: {known}")
