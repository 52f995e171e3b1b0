"""Decisions of whoever supervises a run: a person, a program or an agent.

`take_decision` is the one way to a decision, whoever made it. Under the lock of the run it looks at
the guardrails. An accepted decision, the team task, the assignment, the agent task and its delivery
are one transaction; a refused one is written with the code that refused it. The same decision
again, by its id, is the first one.
"""

from hashlib import sha256
from typing import Any, Final

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.engine import RowMapping

from factwire.edge.hub_frames import UNSET, DispatchWorktree
from factwire.facts.team_resources import (
    ASSIGNMENT_ENDS,
    RosterMember,
    RouteRecord,
    TeamAssignment,
    TeamTask,
    TeamTaskKind,
)
from factwire.hub.frames.event_log import HubChange
from factwire.hub.frames.frame_types import TeamRouteDecided, TeamRouteRejected
from factwire.hub.limits import ASSIGNMENT_SECONDS, TASK_PROMPT_CHARACTERS
from factwire.hub.link.agent_tasks import NewTask, create_task
from factwire.hub.link.deliveries import MILLISECONDS
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.records.team_tables import route_decisions, team_assignments, team_tasks
from factwire.hub.teams.assignment_outcomes import describe_changes
from factwire.hub.teams.guardrails import ProposedRoute, RouteSituation, find_crossed
from factwire.hub.teams.team_records import (
    audience_of_team,
    emit_assignment,
    emit_task,
    find_run,
    list_rows,
    next_number,
    read_roster,
    read_supervision,
    to_assignment,
    to_record,
    to_task,
)
from factwire.hub.teams.team_runs import (
    count_used_tokens,
    describe_caller,
    find_last_outcome,
    save_run,
    stop_due_tasks,
)
from factwire.serving.asgi import Problem

TITLE_CHARACTERS: Final = 120


class NewRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a run of somebody's, and who made it, as facts name them. `replaces` is an
    assignment that another takes the place of.
    """

    person_id: str
    team_run_id: str
    decision_id: str
    route: ProposedRoute
    decided_by: dict[str, Any]
    origin: ActionOrigin
    replaces: str | None = None
    by_agent: bool = False
    """Whether the agent that supervises the run decides."""


class _RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run under its lock, with all its rows."""

    run: RowMapping
    roster: tuple[RosterMember, ...]
    tasks: list[TeamTask]
    assignments: list[TeamAssignment]
    route_keys: list[str]
    deadlines: dict[str, int]

    def find_member(self, name: str | None) -> RosterMember | None:
        """A member by its id or its name."""
        named = [each for each in self.roster if name in (each.team_member_id, each.name)]
        return next(
            (each for each in named if each.team_member_id == name), next(iter(named), None)
        )

    def find_task(self, name: str | None) -> TeamTask | None:
        """A task by its id, or by what the supervisor calls it."""
        known = (each for each in self.tasks if name in (each.team_task_id, each.subtask_id))
        return None if name is None else next(known, None)

    def find_assignment(self, task: TeamTask | None) -> TeamAssignment | None:
        """The newest assignment of a task."""
        own = [each for each in self.assignments if task and each.team_task_id == task.team_task_id]
        return own[-1] if own else None

    def is_active(self, assignment: TeamAssignment, replaced: str | None) -> bool:
        """Whether an assignment is worked on, and not one in whose place another is."""
        gone = {each.replaces for each in self.assignments} | {replaced}
        return assignment.status not in ASSIGNMENT_ENDS and assignment.assignment_id not in gone


class _Route(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision means in its run."""

    decision: ProposedRoute
    work: TeamTask | None
    """What is reviewed or approved."""
    task: TeamTask | None
    """The task that is given again; None for a new one."""
    worker: RosterMember | None
    instructions: str | None
    parent: str | None

    @property
    def key(self) -> str:
        """The same for the same work for the same member."""
        worker = "" if self.worker is None else self.worker.team_member_id
        words = " ".join((self.instructions or "").split()).casefold()
        return sha256(f"{self.decision.action}\0{worker}\0{words}".encode()).hexdigest()


async def decide_route(
    hub: HubServices,
    caller: HubCaller,
    run_id: str,
    route: ProposedRoute,
    *,
    decision_id: str | None,
    origin: ActionOrigin,
) -> RouteRecord:
    """Take a decision of a person or their program; raises `Problem` where it is refused."""
    async with hub.events.change() as change:
        decided_by = await describe_caller(change, caller)
        new = NewRoute(
            person_id=caller.person_id,
            team_run_id=run_id,
            decision_id=decision_id or new_id("dcn"),
            route=route,
            decided_by=decided_by,
            origin=origin,
        )
        record = await take_decision(change, new)
    if record.reason is None and route.action == "finish":
        await stop_due_tasks(hub)
    return ensure_accepted(record)


async def reassign(
    hub: HubServices,
    caller: HubCaller,
    run_id: str,
    assignment_id: str,
    *,
    member_id: str,
    decision_id: str | None,
    origin: ActionOrigin,
) -> RouteRecord:
    """Give the work of an assignment to another member. The assignment that it had is stopped, and
    the guardrails hold as for any decision.
    """
    async with hub.events.change() as change:
        run = await find_run(change.connection, caller.person_id, run_id, lock=True)
        view = await _read_view(change, run)
        found = [each for each in view.assignments if each.assignment_id == assignment_id]
        if not found:
            raise Problem(404, "unknown_assignment", "the run has no assignment with this id")
        if view.find_member(member_id) is None:
            raise Problem(404, "unknown_member", "the run has no member with this id")
        if found[0].status == "completed":
            raise Problem(409, "assignment_ended", "the assignment is completed")
        route = ProposedRoute(
            action=found[0].action,
            approved=False if found[0].action == "approve" else None,
            next_worker=member_id,
            instructions=found[0].instructions,
            subtask_id=found[0].team_task_id,
        )
        new = NewRoute(
            person_id=caller.person_id,
            team_run_id=run_id,
            decision_id=decision_id or new_id("dcn"),
            route=route,
            decided_by=await describe_caller(change, caller),
            replaces=assignment_id,
            origin=origin,
        )
        record = await take_decision(change, new)
    await stop_due_tasks(hub)
    return ensure_accepted(record)


def ensure_accepted(record: RouteRecord) -> RouteRecord:
    """Raise `Problem` for a decision that was refused."""
    if record.reason is not None:
        raise Problem(400, record.reason, record.detail or "", decisionId=record.decision_id)
    return record


async def take_decision(change: HubChange, new: NewRoute) -> RouteRecord:
    """Take a decision about a run, whoever made it: a record that says what came of it. Raises
    `Problem` for a run that is paused, or where the worker's device takes no task now; nothing is
    written then.
    """
    run = await find_run(change.connection, new.person_id, new.team_run_id, lock=True)
    known = select(route_decisions).where(
        route_decisions.c.decision_id == new.decision_id,
        route_decisions.c.team_run_id == new.team_run_id,
    )
    repeated = (await change.connection.execute(known)).mappings().first()
    if repeated is not None:
        return to_record(repeated)
    if run["status"] == "paused":
        raise Problem(409, "team_run_paused", "the run is paused; resume it first")
    is_led = run["status"] == "running" and run["leads"]
    if is_led and not new.by_agent and new.replaces is None:
        raise Problem(409, "agent_supervises", "an agent supervises the run; take it over first")
    view = await _read_view(change, run)
    route = _read_route(view, new)
    crossed = find_crossed(_describe_situation(change, view, route, new))
    if crossed is not None:
        return await _reject(change, view, new, crossed.code, crossed.detail)
    return await _accept(change, view, route, new)


async def reject_decision(change: HubChange, new: NewRoute, problem: Problem) -> RouteRecord:
    """Record a decision that could not be carried out as refused, with the code that says why."""
    run = await find_run(change.connection, new.person_id, new.team_run_id, lock=True)
    view = await _read_view(change, run)
    return await _reject(change, view, new, problem.code, str(problem))


async def _read_view(change: HubChange, run: RowMapping) -> _RunView:
    run_id, connection = run["team_run_id"], change.connection
    rows = await list_rows(connection, team_assignments, run_id)
    return _RunView(
        run=run,
        roster=read_roster(run),
        tasks=[to_task(row) for row in await list_rows(connection, team_tasks, run_id)],
        assignments=[to_assignment(row) for row in rows],
        route_keys=[row["route_key"] for row in rows],
        deadlines={row["assignment_id"]: row["expires_at"] for row in rows},
    )


def _read_route(view: _RunView, new: NewRoute) -> _Route:
    decision = new.route
    named = view.find_task(decision.subtask_id)
    work = None if decision.action == "delegate" else _find_work(view, decision)
    task = work if decision.action == "approve" else named
    if decision.action == "review" and new.replaces is None:
        task = None
    worker, instructions = view.find_member(decision.next_worker), decision.instructions
    if decision.action == "approve":
        former = view.find_assignment(work)
        instructions = instructions or decision.feedback
        if decision.next_worker is None and former is not None:
            worker = view.find_member(former.team_member_id)
    parent = task.parent_task_id if task is not None else None
    if decision.action == "delegate" and decision.parent_task_id is not None:
        parent = _name_of(view, decision.parent_task_id)
    elif task is None and work is not None:
        parent = work.parent_task_id
    return _Route(
        decision=decision,
        work=work,
        task=task,
        worker=worker,
        instructions=instructions,
        parent=parent,
    )


def _find_work(view: _RunView, decision: ProposedRoute) -> TeamTask | None:
    """What a review or an approval is about: the task that it names, else that of the last outcome;
    of a review, the task that was reviewed.
    """
    name = decision.subtask_id or decision.parent_task_id
    found = view.find_task(name)
    if name is None:
        last = find_last_outcome(view.assignments)
        found = None if last is None else view.find_task(last.team_task_id)
    return view.find_task(found.reviews) if found is not None and found.reviews else found


def _name_of(view: _RunView, name: str | None) -> str | None:
    """The id of a task; the name itself while there is no task with it."""
    task = view.find_task(name)
    return name if task is None else task.team_task_id


def _describe_situation(
    change: HubChange, view: _RunView, route: _Route, new: NewRoute
) -> RouteSituation:
    active = [each for each in view.assignments if view.is_active(each, new.replaces)]
    done = view.find_assignment(route.work)
    return RouteSituation(
        decision=route.decision,
        status=view.run["status"],
        now=change.now,
        roster=view.roster,
        worker=route.worker,
        instructions=route.instructions,
        work_id=None if route.work is None else route.work.team_task_id,
        is_completed=done is not None and done.status == "completed",
        deadlines=tuple(view.deadlines[each.assignment_id] for each in active),
        same_routes=view.route_keys.count(route.key),
        assignments=len(view.assignments),
        used_tokens=count_used_tokens(read_supervision(view.run), view.assignments),
        budget_tokens=view.run["budget_tokens"],
        parents={each.team_task_id: _name_of(view, each.parent_task_id) for each in view.tasks},
        task_name=None
        if route.decision.action == "review"
        else _name_of(view, route.decision.subtask_id),
        parent_name=_name_of(view, route.parent),
    )


async def _reject(
    change: HubChange, view: _RunView, new: NewRoute, code: str, detail: str
) -> RouteRecord:
    rejected = TeamRouteRejected(
        team_id=view.run["team_id"],
        team_run_id=new.team_run_id,
        decision_id=new.decision_id,
        decided_by=new.decided_by,
        decision=msgspec.to_builtins(new.route),
        reason=code,
        detail=detail,
    )
    change.emit(audience_of_team(view.run["team_id"]), "team.route.rejected", rejected)
    return await _save_record(change, new, reason=code, detail=detail)


async def _save_record(change: HubChange, new: NewRoute, **values: Any) -> RouteRecord:
    number = await next_number(change.connection, route_decisions, new.team_run_id)
    statement = insert(route_decisions).values(
        decision_id=new.decision_id,
        team_run_id=new.team_run_id,
        number=number,
        decision=_to_json(new.route),
        decided_by=_to_json(new.decided_by),
        created_at=change.now,
        **values,
    )
    row = (await change.connection.execute(statement.returning(route_decisions))).mappings().one()
    return to_record(row)


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def _accept(change: HubChange, view: _RunView, route: _Route, new: NewRoute) -> RouteRecord:
    team_id: str = view.run["team_id"]
    decided = TeamRouteDecided(
        team_id=team_id,
        team_run_id=new.team_run_id,
        decision_id=new.decision_id,
        decided_by=new.decided_by,
        **msgspec.to_builtins(new.route),
    )
    change.emit(audience_of_team(team_id), "team.route.decided", decided)
    if route.decision.action == "finish":
        await _finish(change, new)
    if route.decision.action == "approve" and route.work is not None:
        await _save_verdict(change, view, route.work, route.decision)
    if not route.decision.assigns or route.worker is None or route.instructions is None:
        work_id = None if route.work is None else route.work.team_task_id
        return await _save_record(change, new, team_task_id=work_id)
    task_id = route.task.team_task_id if route.task is not None else new_id("ttk")
    found = await _assign(change, view, route, new, task_id)
    return await _save_record(change, new, team_task_id=task_id, assignment_id=found.assignment_id)


async def _finish(change: HubChange, new: NewRoute) -> None:
    """End a run: as failed where the supervisor says what kept it from its goal."""
    blocked = new.route.blocked_reason
    await save_run(
        change,
        new.team_run_id,
        "ended",
        new.decided_by,
        status="failed" if blocked else "finished",
        summary=new.route.summary,
        reason=blocked,
        ended_at=change.now,
    )


async def _save_verdict(
    change: HubChange, view: _RunView, work: TeamTask, decision: ProposedRoute
) -> None:
    """Write down what was said of some work; an approval is that of its last assignment alone."""
    approved = view.find_assignment(work) if decision.approved else None
    statement = (
        update(team_tasks)
        .where(team_tasks.c.team_task_id == work.team_task_id)
        .values(
            approved=decision.approved,
            approved_assignment_id=None if approved is None else approved.assignment_id,
            feedback=decision.feedback,
            updated_at=change.now,
        )
        .returning(team_tasks)
    )
    row = (await change.connection.execute(statement)).mappings().one()
    emit_task(change, view.run["team_id"], "team.task.updated", to_task(row))


async def _assign(
    change: HubChange,
    view: _RunView,
    route: _Route,
    new: NewRoute,
    task_id: str,
) -> TeamAssignment:
    """Give work to a member: the assignment, its team task where that is new, and the task on the
    member's device.
    """
    run, worker, connection = view.run, route.worker, change.connection
    if worker is None or worker.device_id is None:
        raise AssertionError("a worker has a device")
    if route.task is None:
        await _insert_task(change, route, run, task_id)
    assignment_id = new_id("asg")
    task = await create_task(
        change,
        NewTask(
            person_id=run["person_id"],
            device_id=worker.device_id,
            agent_type=worker.agent_type,
            project_id=worker.project_id,
            work_dir=worker.work_dir,
            prompt=await _build_prompt(change, view, route),
            thread_id=_find_thread(view, route, worker),
            worktree=_choose_worktree(view, route, new, worker),
            display_name=worker.name,
            wait_seconds=ASSIGNMENT_SECONDS,
            timeout_seconds=ASSIGNMENT_SECONDS,
            team={
                "team_id": run["team_id"],
                "team_run_id": run["team_run_id"],
                "team_member_id": worker.team_member_id,
                "team_member_role": worker.role,
            },
        ),
        new.origin,
    )
    statement = insert(team_assignments).values(
        assignment_id=assignment_id,
        team_id=run["team_id"],
        team_run_id=run["team_run_id"],
        team_task_id=task_id,
        team_member_id=worker.team_member_id,
        number=await next_number(connection, team_assignments, run["team_run_id"]),
        device_id=worker.device_id,
        agent_task_id=task.task_id,
        action=route.decision.action,
        instructions=route.instructions,
        route_key=route.key,
        status="created",
        replaces=new.replaces,
        tokens=0,
        created_at=change.now,
        expires_at=change.now + ASSIGNMENT_SECONDS * MILLISECONDS,
    )
    row = (await connection.execute(statement.returning(team_assignments))).mappings().one()
    found = to_assignment(row)
    emit_assignment(change, run["team_id"], "assignment.created", found)
    return found


async def _insert_task(change: HubChange, route: _Route, run: RowMapping, task_id: str) -> None:
    is_review = route.decision.action == "review"
    kind: TeamTaskKind = "review" if is_review else "work"
    instructions = route.instructions or ""
    statement = insert(team_tasks).values(
        team_task_id=task_id,
        team_run_id=run["team_run_id"],
        number=await next_number(change.connection, team_tasks, run["team_run_id"]),
        kind=kind,
        title=instructions.strip().splitlines()[0][:TITLE_CHARACTERS],
        instructions=instructions,
        subtask_id=None if is_review else route.decision.subtask_id,
        parent_task_id=route.parent,
        reviews=None if route.work is None else route.work.team_task_id,
        created_at=change.now,
        updated_at=change.now,
    )
    row = (await change.connection.execute(statement.returning(team_tasks))).mappings().one()
    emit_task(change, run["team_id"], "team.task.created", to_task(row))


def _find_thread(view: _RunView, route: _Route, worker: RosterMember) -> str | None:
    """The thread in which a worker goes on with work that comes back to them."""
    former = view.find_assignment(route.task)
    if former is None or former.status not in ASSIGNMENT_ENDS:
        return None
    is_same = former.team_member_id == worker.team_member_id
    return former.thread_id if is_same and former.device_id == worker.device_id else None


def _choose_worktree(
    view: _RunView, route: _Route, new: NewRoute, worker: RosterMember
) -> DispatchWorktree | None:
    """The worktree of an executor: a new one, or that in which work that comes back was done."""
    if route.decision.action == "review":
        return None
    former = view.find_assignment(route.task)
    if former is None or new.replaces is not None or _find_thread(view, route, worker) is None:
        return DispatchWorktree()
    return DispatchWorktree(edge_run_id=former.edge_run_id or UNSET)


async def _build_prompt(change: HubChange, view: _RunView, route: _Route) -> str:
    """What a worker is told: the instructions, and below them what they are about."""
    decision, done = route.decision, None
    parts = [route.instructions or ""]
    if decision.feedback and decision.feedback != route.instructions:
        parts.append(f"Feedback: {decision.feedback}")
    if decision.action == "review" and route.work is not None:
        done = view.find_assignment(route.work)
        parts.append(f"To be reviewed: {route.work.instructions}")
        if done is not None:
            names = f"device {done.device_id}, thread {done.thread_id}, run {done.edge_run_id}"
            parts.append(f"Result ({names}): {done.result_summary or done.status}")
    if decision.context is not None:
        parts.append(f"Context: {_to_json(decision.context)}")
    text = "\n\n".join(parts)[:TASK_PROMPT_CHARACTERS]
    if done is not None:
        text += await describe_changes(change.connection, done, TASK_PROMPT_CHARACTERS - len(text))
    return text
