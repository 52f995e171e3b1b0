"""What a supervising agent is shown of its run, within a bound.

The same JSON is the option `teamState` of its turn, which a program reads, and the end of its
prompt, which a model reads. Nothing here reads a database.
"""

from typing import Any, Final

import msgspec

from factwire.facts.schemas.json_schema import route_decision_schema
from factwire.facts.team_resources import (
    ASSIGNMENT_ENDS,
    ContextAssignment,
    ContextMember,
    ContextTask,
    RosterMember,
    RouteRecord,
    RouteRefusal,
    Supervision,
    SupervisorContext,
    SupervisorLimits,
    TeamAssignment,
    TeamBudget,
    TeamTask,
)
from factwire.hub.limits import (
    SAME_ROUTES,
    SUPERVISOR_CONTEXT_BYTES,
    TEAM_TASK_DEPTH,
    TEAM_TASKS,
    TEAM_TASKS_ACTIVE,
)
from factwire.hub.teams.team_runs import count_used_tokens, find_last_outcome

_CLIPS: Final = ((4_000, TEAM_TASKS), (1_000, TEAM_TASKS), (250, TEAM_TASKS), (60, 5))
"""How long texts may be and how many rows are shown, most first: what fits is shown."""

_GOAL_CHARACTERS: Final = 2_000
_MEMBERS_SHOWN: Final = 20

_JOB: Final = """\
You supervise a team of agents that works on a goal. Decide the next step, and answer with one \
CoordinatorRouteDecision as your structured output. Do not do the work yourself.

- delegate: give work to an executor (next_worker, instructions). A new subtask_id is a new task.
- review: have a reviewer look at work that has ended (next_worker, instructions, subtask_id).
- approve: approve completed work (approved: true), or send it back (approved: false, feedback).
- finish: end the run (summary); with blocked_reason, as failed.

You are asked again when work that you gave has ended. Leave fields that you do not need null."""


class RunRows(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its rows have it."""

    run_id: str
    goal: str
    budget_tokens: int
    roster: tuple[RosterMember, ...]
    supervision: Supervision
    tasks: list[TeamTask]
    assignments: list[TeamAssignment]
    refusal: RouteRecord | None = None


def build_context(rows: RunRows) -> SupervisorContext:
    """What there is to show, with texts as long as there is room for."""
    for characters, most in _CLIPS:
        context = _build(rows, characters, most)
        if len(msgspec.json.encode(context)) <= SUPERVISOR_CONTEXT_BYTES:
            return context
    return msgspec.structs.replace(
        _build(rows, *_CLIPS[-1]),
        goal=rows.goal[:_GOAL_CHARACTERS],
        members=[_show_member(each) for each in rows.roster[:_MEMBERS_SHOWN]],
        last_refusal=None,
    )


def build_prompt(context: SupervisorContext) -> str:
    """What a supervising agent is told: its job, what was wrong with its last answer, the state."""
    parts = [_JOB]
    if context.last_refusal is not None:
        refusal = context.last_refusal
        parts.append(f"Your last decision was refused: {refusal.code}: {refusal.detail}.")
    if context.remark is not None:
        parts.append(f"Your last answer was not a decision: {context.remark}")
    parts.append(f"The state of the run:\n{msgspec.json.encode(context).decode()}")
    return "\n\n".join(parts)


def build_options(context: SupervisorContext) -> dict[str, Any]:
    """The options of a supervising agent's turn."""
    return {"outputSchema": route_decision_schema(), "teamState": msgspec.to_builtins(context)}


def _build(rows: RunRows, characters: int, most: int) -> SupervisorContext:
    names = {each.team_member_id: each.name for each in rows.roster}
    used = count_used_tokens(rows.supervision, rows.assignments)
    last = find_last_outcome(rows.assignments)
    refusal = rows.refusal

    def show(found: TeamAssignment) -> ContextAssignment:
        return ContextAssignment(
            assignment_id=found.assignment_id,
            team_task_id=found.team_task_id,
            worker=names.get(found.team_member_id, found.team_member_id),
            action=found.action,
            instructions=_clip(found.instructions, characters),
            status=found.status,
            result_summary=_clip_optional(found.result_summary, characters),
            error=_clip_values(found.error, characters),
            changes=_describe_changes(found),
        )

    return SupervisorContext(
        goal=rows.goal,
        run_id=rows.run_id,
        turn=rows.supervision.turn + 1,
        members=[_show_member(each) for each in rows.roster],
        tasks=[_show_task(each, characters) for each in rows.tasks[-most:]],
        assignments=[show(each) for each in rows.assignments[-most:]],
        active=[
            each.assignment_id for each in rows.assignments if each.status not in ASSIGNMENT_ENDS
        ],
        last_outcome=None if last is None else show(last),
        last_refusal=None
        if refusal is None
        else RouteRefusal(
            code=refusal.reason or "",
            detail=refusal.detail or "",
            decision=_clip_values(refusal.decision, characters) or {},
        ),
        remark=_clip_optional(rows.supervision.remark, characters),
        budget=TeamBudget(tokens=rows.budget_tokens, used_tokens=used),
        limits=SupervisorLimits(
            assignments_left=max(TEAM_TASKS - len(rows.assignments), 0),
            active_most=TEAM_TASKS_ACTIVE,
            depth_most=TEAM_TASK_DEPTH,
            same_routes_most=SAME_ROUTES,
        ),
    )


def _describe_changes(found: TeamAssignment) -> str | None:
    changes = found.changes
    return None if changes is None or not changes.available else changes.describe_size()


def _show_member(member: RosterMember) -> ContextMember:
    return ContextMember(name=member.name, role=member.role, agent_type=member.agent_type)


def _show_task(task: TeamTask, characters: int) -> ContextTask:
    return ContextTask(
        team_task_id=task.team_task_id,
        kind=task.kind,
        title=_clip(task.title, characters),
        subtask_id=task.subtask_id,
        parent_task_id=task.parent_task_id,
        reviews=task.reviews,
        approved=task.approved,
        feedback=_clip_optional(task.feedback, characters),
    )


def _clip(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _clip_optional(text: str | None, characters: int) -> str | None:
    return None if text is None else _clip(text, characters)


def _clip_values(found: dict[str, Any] | None, characters: int) -> dict[str, Any] | None:
    """An object whose texts are short; what is no text is shown as one where it is long."""
    if found is None:
        return None
    return {key: _clip_value(value, characters) for key, value in found.items()}


def _clip_value(value: Any, characters: int) -> Any:
    if isinstance(value, str):
        return _clip(value, characters)
    text = msgspec.json.encode(value).decode()
    return value if len(text) <= characters else _clip(text, characters)
