"""The guardrails of a team run: what a decision of its supervisor must not cross, as one table.

They are looked at in the order of the table, and the first that is crossed refuses the decision
with its code. Whoever asks holds the lock on the run, so that two decisions at once are looked at
one after the other. Nothing here reads a database or a clock.

A decision that gives nobody work (a finish, an approval) crosses only the first four: a run whose
budget is spent can still be finished.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_args

import msgspec

from factwire.facts.classes.payloads import RouteAction, RouteDecision
from factwire.facts.team_resources import TEAM_RUN_ENDS, RosterMember, TeamRole, TeamRunStatus
from factwire.hub.limits import (
    BUDGET_SHARE,
    ROUTE_CONTEXT_BYTES,
    ROUTE_TEXT_CHARACTERS,
    SAME_ROUTES,
    TASK_NAME_CHARACTERS,
    TEAM_TASK_DEPTH,
    TEAM_TASKS,
    TEAM_TASKS_ACTIVE,
)

_Text = Annotated[str, msgspec.Meta(max_length=ROUTE_TEXT_CHARACTERS)]
_Name = Annotated[str, msgspec.Meta(max_length=TASK_NAME_CHARACTERS)]


class ProposedRoute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `CoordinatorRouteDecision` before anything is known of it: its action may be any text."""

    action: _Name
    next_worker: _Name | None = None
    instructions: _Text | None = None
    reasoning: _Text | None = None
    context: Any = None
    approved: bool | None = None
    feedback: _Text | None = None
    summary: _Text | None = None
    blocked_reason: _Text | None = None
    subtask_id: _Name | None = None
    parent_task_id: _Name | None = None
    correlation_id: _Name | None = None

    def __post_init__(self) -> None:
        if len(msgspec.json.encode(self.context)) > ROUTE_CONTEXT_BYTES:
            raise ValueError(f"context must have at most {ROUTE_CONTEXT_BYTES} bytes")

    @classmethod
    def of(cls, decision: RouteDecision) -> "ProposedRoute":
        """A decision of an agent; raises `msgspec.ValidationError` for one that is too long."""
        return msgspec.convert(msgspec.structs.asdict(decision), cls)

    @property
    def assigns(self) -> bool:
        """Whether it gives somebody work: what is not approved goes back to be done again."""
        return self.action in _WORKERS and not (self.action == "approve" and self.approved)


class RouteSituation(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, with all that the guardrails look at.

    `worker` is who is meant by it, `instructions` what they are to do, and `work_id` the task that
    a review or an approval is about; `is_completed` says whether its last assignment is completed.
    `deadlines` are when the active assignments expire, in milliseconds like `now`. `parents` has
    for the name of each task the name of the one that it belongs to; `task_name` is that of the
    task which the decision is for, `parent_name` what it is to belong to.
    """

    decision: ProposedRoute
    status: TeamRunStatus
    now: int
    roster: tuple[RosterMember, ...]
    worker: RosterMember | None = None
    instructions: str | None = None
    work_id: str | None = None
    is_completed: bool = False
    deadlines: tuple[int, ...] = ()
    same_routes: int = 0
    assignments: int = 0
    used_tokens: int = 0
    budget_tokens: int
    parents: Mapping[str, str | None] = {}
    task_name: str | None = None
    parent_name: str | None = None


class Guardrail(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a decision must not cross, and what to say about it."""

    code: str
    is_crossed: Callable[[RouteSituation], bool]
    detail: str
    assigning: bool = True
    """Whether it is about decisions that give somebody work, and no others."""


_WORKERS: Final[dict[str, TeamRole]] = {
    "delegate": "executor",
    "review": "reviewer",
    "approve": "executor",
}
"""Action → the role of a member who is given work by it."""


def _is_incomplete(at: RouteSituation) -> bool:
    decision = at.decision
    if decision.action == "approve" and (decision.approved is None or at.work_id is None):
        return True
    if decision.action == "approve" and decision.approved and not at.is_completed:
        return True
    has_worker = at.worker is not None or bool(decision.next_worker)
    return decision.assigns and not (has_worker and (at.instructions or "").strip())


def _is_no_worker(at: RouteSituation) -> bool:
    return at.worker is None or at.worker.role != _WORKERS[at.decision.action]


def list_ancestors(at: RouteSituation) -> list[str]:
    """The names of the tasks that the decision's task would belong to, the nearest first; a cycle
    ends the list where it closes.
    """
    found: list[str] = []
    name = at.parent_name
    while name is not None and name not in found:
        found.append(name)
        if name == at.task_name:
            break
        name = at.parents.get(name)
    return found


GUARDRAILS: Final = (
    Guardrail(
        code="team_run_ended",
        is_crossed=lambda at: at.status in TEAM_RUN_ENDS,
        detail="the run is over; start another one",
        assigning=False,
    ),
    Guardrail(
        code="route_action_unknown",
        is_crossed=lambda at: at.decision.action not in get_args(RouteAction),
        detail="the action must be delegate, review, approve or finish",
        assigning=False,
    ),
    Guardrail(
        code="route_incomplete",
        is_crossed=_is_incomplete,
        detail="name a worker and instructions; an approval says whether and what was approved, "
        "which is work whose last assignment is completed",
        assigning=False,
    ),
    Guardrail(
        code="supervisor_missing",
        is_crossed=lambda at: all(each.role != "supervisor" for each in at.roster),
        detail="the run has no supervisor; add one to it",
        assigning=False,
    ),
    Guardrail(
        code="worker_unknown",
        is_crossed=_is_no_worker,
        detail="no member of the run with this name may do that: executors work, reviewers review",
    ),
    Guardrail(
        code="assignment_timed_out",
        is_crossed=lambda at: any(each <= at.now for each in at.deadlines),
        detail="an assignment took too long and is being stopped; wait for its end or reassign it",
    ),
    Guardrail(
        code="route_repeated",
        is_crossed=lambda at: at.same_routes >= SAME_ROUTES,
        detail=f"the same member was given the same work {SAME_ROUTES} times; decide otherwise",
    ),
    Guardrail(
        code="budget_spent",
        is_crossed=lambda at: at.used_tokens >= at.budget_tokens * BUDGET_SHARE,
        detail=f"{BUDGET_SHARE:.0%} of the run's tokens are used; finish the run",
    ),
    Guardrail(
        code="too_many_tasks",
        is_crossed=lambda at: at.assignments >= TEAM_TASKS,
        detail=f"the run has had {TEAM_TASKS} assignments; finish it",
    ),
    Guardrail(
        code="too_many_active",
        is_crossed=lambda at: len(at.deadlines) >= TEAM_TASKS_ACTIVE,
        detail=f"{TEAM_TASKS_ACTIVE} assignments are being worked on; wait for one to end",
    ),
    Guardrail(
        code="task_too_deep",
        is_crossed=lambda at: len(list_ancestors(at)) + 1 > TEAM_TASK_DEPTH,
        detail=f"tasks are nested at most {TEAM_TASK_DEPTH} deep",
    ),
    Guardrail(
        code="task_cycle",
        is_crossed=lambda at: at.task_name is not None and at.task_name in list_ancestors(at),
        detail="a task cannot belong to itself, nor to one that belongs to it",
    ),
)
"""The guardrails, in the order in which they are looked at."""


def find_crossed(at: RouteSituation) -> Guardrail | None:
    """The first guardrail that a decision crosses."""
    return next(
        (
            each
            for each in GUARDRAILS
            if (at.decision.assigns or not each.assigning) and each.is_crossed(at)
        ),
        None,
    )
