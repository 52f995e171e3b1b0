"""Resources of teams: what a Hub answers about teams, their runs and what members were given to do,
declared once for the Hub and its clients.
"""

from typing import Any, Final, Literal

from factwire.facts.resources import Resource, TaskChanges

TeamRole = Literal["supervisor", "executor", "reviewer"]
TeamTaskKind = Literal["work", "review"]
TeamRunStatus = Literal["running", "paused", "finished", "failed", "cancelled"]
TEAM_RUN_ENDS: Final[tuple[TeamRunStatus, ...]] = ("finished", "failed", "cancelled")
AssignmentStatus = Literal["created", "dispatched", "completed", "failed", "cancelled"]
ASSIGNMENT_ENDS: Final[tuple[AssignmentStatus, ...]] = ("completed", "failed", "cancelled")
SupervisorTurnStatus = Literal["asked", "decided", "refused", "undecided", "dropped"]


class AgentTeamMember(Resource, frozen=True, kw_only=True):
    """Somebody in a team: an agent on one of some devices or, for a supervisor, whoever decides by
    REST.
    """

    team_member_id: str
    name: str
    role: TeamRole
    device_ids: list[str]
    created_at: str
    agent_type: str | None = None
    project_id: str | None = None
    work_dir: str | None = None


class AgentTeam(Resource, frozen=True, kw_only=True):
    """Agents that work together, and who they belong to."""

    team_id: str
    person_id: str
    name: str
    members: list[AgentTeamMember]
    created_at: str


class RosterMember(Resource, frozen=True, kw_only=True):
    """A member in one run; `deviceId` is the device that was chosen for the whole run."""

    team_member_id: str
    name: str
    role: TeamRole
    agent_type: str | None = None
    device_id: str | None = None
    project_id: str | None = None
    work_dir: str | None = None


class Supervision(Resource, frozen=True, kw_only=True):
    """The agent that supervises a run, and how far it is. `turn` counts its turns and `status` is
    that of the last one: `asked` until the answer is there, and then `decided` or, where a
    guardrail refused the decision, `refused`; `undecided` without a decision (`remark` says why),
    and `dropped` where nobody waits for the answer any more. `attempts` are turns in a row without
    an accepted decision, `tokens` what all turns used. While somebody has taken over
    (`takenOverBy`), the agent is not asked.
    """

    team_member_id: str
    turn: int = 0
    status: SupervisorTurnStatus | None = None
    attempts: int = 0
    tokens: int = 0
    agent_task_id: str | None = None
    edge_run_id: str | None = None
    thread_id: str | None = None
    remark: str | None = None
    taken_over_by: dict[str, Any] | None = None


class TeamRun(Resource, frozen=True, kw_only=True):
    """A goal that a team works on. Its facts are the thread `threadId` of the journal `edgeId`,
    which is read like that of an Edge.
    """

    team_run_id: str
    team_id: str
    person_id: str
    goal: str
    status: TeamRunStatus
    budget_tokens: int
    roster: list[RosterMember]
    edge_id: str
    thread_id: str
    created_at: str
    updated_at: str
    summary: str | None = None
    reason: str | None = None
    ended_at: str | None = None
    supervision: Supervision | None = None


class TeamTask(Resource, frozen=True, kw_only=True):
    """A piece of work of a run, or the review of one (`reviews`). `approved` is what the supervisor
    said of it last, of the assignment `approvedAssignmentId` and none after it; the work that was
    not approved goes back with `feedback`.
    """

    team_task_id: str
    team_run_id: str
    number: int
    kind: TeamTaskKind
    title: str
    instructions: str
    created_at: str
    updated_at: str
    subtask_id: str | None = None
    parent_task_id: str | None = None
    reviews: str | None = None
    approved: bool | None = None
    approved_assignment_id: str | None = None
    feedback: str | None = None


class AssignmentMerge(Resource, frozen=True, kw_only=True):
    """The newest merge of what an assignment changed. One that is `asked` is with the device, which
    may have done it; `merged` has the `commit` where `branch` is now, `conflicts` the `files` that
    both sides changed, and `refused` a `code`. `by` is who asked.
    """

    status: Literal["asked", "merged", "conflicts", "refused"]
    by: dict[str, Any]
    asked_at: str
    branch: str | None = None
    commit: str | None = None
    files: tuple[str, ...] = ()
    code: str | None = None
    message: str | None = None
    ended_at: str | None = None


class TeamAssignment(Resource, frozen=True, kw_only=True):
    """A team task in the hands of one member, and what came of it. `agentTaskId` is the task on the
    member's device, `tokens` what it used.
    """

    assignment_id: str
    team_run_id: str
    team_task_id: str
    team_member_id: str
    number: int
    device_id: str
    agent_task_id: str
    action: str
    instructions: str
    status: AssignmentStatus
    created_at: str
    expires_at: str
    tokens: int = 0
    replaces: str | None = None
    edge_run_id: str | None = None
    thread_id: str | None = None
    result_summary: str | None = None
    error: dict[str, Any] | None = None
    changes: TaskChanges | None = None
    merge: AssignmentMerge | None = None
    dispatched_at: str | None = None
    ended_at: str | None = None


class TeamBudget(Resource, frozen=True, kw_only=True):
    """How many tokens a run may use, and how many its assignments and its supervising agent have
    used.
    """

    tokens: int
    used_tokens: int


class TeamRunState(Resource, frozen=True, kw_only=True):
    """Everything that whoever supervises a run needs for the next decision. With the events after
    `asOf`, it is what a later state shows.
    """

    run: TeamRun
    tasks: list[TeamTask]
    assignments: list[TeamAssignment]
    budget: TeamBudget
    as_of: str
    last_outcome: TeamAssignment | None = None


class RouteRecord(Resource, frozen=True, kw_only=True):
    """A decision of whoever supervises a run, by whom it was made, and what came of it; `reason` is
    the code of the guardrail that refused it.
    """

    decision_id: str
    team_run_id: str
    number: int
    decision: dict[str, Any]
    decided_by: dict[str, Any]
    created_at: str
    reason: str | None = None
    detail: str | None = None
    team_task_id: str | None = None
    assignment_id: str | None = None


class ContextMember(Resource, frozen=True, kw_only=True):
    """A member of a run, as its supervisor is shown them."""

    name: str
    role: TeamRole
    agent_type: str | None = None


class ContextTask(Resource, frozen=True, kw_only=True):
    """A task of a run, as its supervisor is shown it; `parentTaskId` and `reviews` are names or ids
    of other tasks.
    """

    team_task_id: str
    kind: TeamTaskKind
    title: str
    subtask_id: str | None = None
    parent_task_id: str | None = None
    reviews: str | None = None
    approved: bool | None = None
    feedback: str | None = None


class ContextAssignment(Resource, frozen=True, kw_only=True):
    """An assignment of a run, as its supervisor is shown it; `changes` says how much of the files
    it changed.
    """

    assignment_id: str
    team_task_id: str
    worker: str
    action: str
    instructions: str
    status: AssignmentStatus
    result_summary: str | None = None
    error: dict[str, Any] | None = None
    changes: str | None = None


class RouteRefusal(Resource, frozen=True, kw_only=True):
    """A decision that was refused, and the code and the words of the guardrail."""

    code: str
    detail: str
    decision: dict[str, Any]


class SupervisorLimits(Resource, frozen=True, kw_only=True):
    """What the guardrails of a run leave a supervisor."""

    assignments_left: int
    active_most: int
    depth_most: int
    same_routes_most: int


class SupervisorContext(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """What a supervising agent is shown in each of its turns: as the option `teamState`, and as
    JSON in its prompt. `active` are the assignments that are being worked on, `remark` says what
    was wrong with an answer that held no decision.
    """

    goal: str
    run_id: str
    turn: int
    members: list[ContextMember]
    tasks: list[ContextTask]
    assignments: list[ContextAssignment]
    active: list[str]
    budget: TeamBudget
    limits: SupervisorLimits
    last_outcome: ContextAssignment | None = None
    last_refusal: RouteRefusal | None = None
    remark: str | None = None
