"""Agents that supervise runs: when one is asked, and what becomes of its answer.

A turn of a supervising agent is a task on its device like any other, in one thread for the whole
run. It is asked when the run begins, when work that it gave has ended, and at once where its answer
brought nobody work. Its decision goes the way of all decisions, under an id that follows from its
task. An answer that is refused or is no decision leads to another turn; after some of these in a
row the run is paused with the reason, and waits for a person.

What is to be done next follows from rows alone, and is done under the lock of the run: so a Hub
that is killed at any point, or a second process, goes on with each step once.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import exists, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.team_resources import (
    ASSIGNMENT_ENDS,
    TEAM_RUN_ENDS,
    RosterMember,
    RouteRecord,
    Supervision,
    SupervisorTurnStatus,
    TeamRun,
)
from factwire.hub.frames.event_log import HubChange
from factwire.hub.frames.frame_types import TeamRunChange
from factwire.hub.limits import SUPERVISOR_ATTEMPTS, SUPERVISOR_SECONDS, SUPERVISOR_TURNS
from factwire.hub.link.agent_tasks import NewTask, create_task
from factwire.hub.link.deliveries import MILLISECONDS, pause_after
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.records.team_tables import (
    route_decisions,
    supervisor_turns,
    team_assignments,
    team_runs,
)
from factwire.hub.teams.guardrails import ProposedRoute
from factwire.hub.teams.route_decisions import NewRoute, reject_decision, take_decision
from factwire.hub.teams.supervisor_context import (
    RunRows,
    build_context,
    build_options,
    build_prompt,
)
from factwire.hub.teams.team_records import (
    encode_supervision,
    read_roster,
    read_run_rows,
    read_supervision,
    to_record,
    to_run,
)
from factwire.hub.teams.team_runs import (
    IS_REPLACED,
    describe_caller,
    lock_open_run,
    save_run,
    stop_due_tasks,
)
from factwire.serving.asgi import Problem
from factwire.serving.idempotency import derive_id
from factwire.serving.logs import logger

_log: Final = logger("factwire.hub.teams")

_HUB: Final[dict[str, Any]] = {"name": "Hub", "via": "hub"}
_ORIGIN: Final = ActionOrigin(via="team", address="")
_BUSY: Final = 429

_open = supervisor_turns.alias("open")
_HAS_OPEN_TURN: Final = exists(
    select(_open.c.agent_task_id).where(
        _open.c.team_run_id == team_runs.c.team_run_id, _open.c.settled_at.is_(None)
    )
)
_HAS_NEWS: Final = exists(
    select(team_assignments.c.assignment_id).where(
        team_assignments.c.team_run_id == team_runs.c.team_run_id,
        team_assignments.c.status.in_(ASSIGNMENT_ENDS),
        team_assignments.c.is_told.is_(False),
        ~IS_REPLACED,
    )
)
_IS_TO_BE_ASKED: Final = (
    team_runs.c.leads.is_(True),
    team_runs.c.status == "running",
    or_(team_runs.c.asks.is_(True), _HAS_NEWS),
    ~_HAS_OPEN_TURN,
)
"""When the agent that leads a run is to be asked."""


async def find_led_runs(connection: AsyncConnection) -> tuple[list[str], list[str]]:
    """The runs that go on by themselves now: those with an answer, and those with a question."""
    answered = (
        select(supervisor_turns.c.team_run_id)
        .join(team_runs, team_runs.c.team_run_id == supervisor_turns.c.team_run_id)
        .where(
            supervisor_turns.c.settled_at.is_(None),
            supervisor_turns.c.ended_at.is_not(None),
            or_(team_runs.c.status != "paused", supervisor_turns.c.status == "dropped"),
        )
    )
    asking = select(team_runs.c.team_run_id).where(*_IS_TO_BE_ASKED)
    found = [list((await connection.execute(each)).scalars()) for each in (answered, asking)]
    return found[0], found[1]


class RunLeader:
    """Does what is next in all runs that agents supervise. A run that raises waits before it is
    tried again, twice as long each time up to a limit, and no other run waits with it.
    """

    def __init__(self, hub: HubServices) -> None:
        self._hub = hub
        # Run → how often it raised in a row, and when it is tried again.
        self._failures: dict[str, tuple[int, int]] = {}

    async def lead_runs(self) -> None:
        async with self._hub.database.read() as connection:
            answered, asking = await find_led_runs(connection)
        due = [*answered, *asking]
        # A run that ended, or that a person has paused, begins anew.
        self._failures = {key: self._failures[key] for key in due if key in self._failures}
        for run_id in due:
            attempts, retry_at = self._failures.get(run_id, (0, 0))
            if self._hub.now() >= retry_at:
                await self._lead_run(run_id, attempts + 1, has_answer=run_id in answered)

    async def _lead_run(self, run_id: str, attempt: int, *, has_answer: bool) -> None:
        try:
            if has_answer:
                await _settle(self._hub, run_id)
            await _ask(self._hub, run_id)
        except Exception:  # noqa: BLE001 - logged; other runs go on, and this one is tried again
            self._failures[run_id] = attempt, self._hub.now() + pause_after(attempt)
            _log.exception("team_run_failed", team_run_id=run_id, attempt=attempt)
        else:
            self._failures.pop(run_id, None)


async def _lock_run(change: HubChange, run_id: str) -> RowMapping:
    query = select(team_runs).where(team_runs.c.team_run_id == run_id).with_for_update()
    return (await change.connection.execute(query)).mappings().one()


def _find_supervisor(run: RowMapping) -> tuple[Supervision, RosterMember]:
    supervision = read_supervision(run)
    if supervision is None:
        raise AssertionError("no agent supervises the run")
    roster = read_roster(run)
    found = (each for each in roster if each.team_member_id == supervision.team_member_id)
    return supervision, next(found)


def _describe_agent(member: RosterMember) -> dict[str, Any]:
    """A supervising agent, as facts name who did something."""
    return {
        "name": member.name,
        "via": "agent",
        "teamMemberId": member.team_member_id,
        "agentType": member.agent_type,
        "deviceId": member.device_id,
    }


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a turn."""

    status: SupervisorTurnStatus
    record: RouteRecord | None = None
    remark: str | None = None


async def _settle(hub: HubServices, run_id: str) -> None:
    """Have a run go on from the answer of its supervising agent, if one is there."""
    try:
        async with hub.events.change() as change:
            answer = await _take_answer(change, run_id, None)
    except Problem as problem:
        # The worker's device takes no task now: the agent is told as of any refusal.
        async with hub.events.change() as change:
            answer = await _take_answer(change, run_id, problem)
    record = None if answer is None else answer.record
    if record is not None and record.decision["action"] == "finish":
        await stop_due_tasks(hub)


async def _take_answer(change: HubChange, run_id: str, problem: Problem | None) -> _Answer | None:
    run = await _lock_run(change, run_id)
    query = select(supervisor_turns).where(
        supervisor_turns.c.team_run_id == run_id,
        supervisor_turns.c.settled_at.is_(None),
        supervisor_turns.c.ended_at.is_not(None),
    )
    turn = (await change.connection.execute(query)).mappings().first()
    if turn is None:
        return None
    if run["status"] in TEAM_RUN_ENDS or turn["status"] == "dropped":
        answer = _Answer(status="dropped")
    elif run["status"] == "paused":
        return None
    else:
        answer = await _decide(change, run, turn, problem)
    await _save_answer(change, run, turn, answer)
    return answer


async def _decide(
    change: HubChange, run: RowMapping, turn: RowMapping, problem: Problem | None
) -> _Answer:
    """Take the decision that a turn ended with."""
    if turn["route"] is None:
        return _Answer(status="undecided", remark=_describe_silence(turn))
    try:
        route = msgspec.json.decode(turn["route"], type=ProposedRoute)
    except msgspec.ValidationError as error:
        return _Answer(status="undecided", remark=str(error))
    new = NewRoute(
        person_id=run["person_id"],
        team_run_id=run["team_run_id"],
        decision_id=_name_decision(turn["agent_task_id"]),
        route=route,
        decided_by=_describe_agent(_find_supervisor(run)[1]),
        origin=_ORIGIN,
        by_agent=True,
    )
    if problem is None:
        record = await take_decision(change, new)
    else:
        record = await reject_decision(change, new, problem)
    return _Answer(status="decided" if record.reason is None else "refused", record=record)


def _name_decision(task_id: str) -> str:
    """The id of the decision of a turn: the same turn never decides twice."""
    return derive_id("dcn", task_id)


def _describe_silence(turn: RowMapping) -> str:
    if turn["error"] is None:
        return "the turn ended without structured output that is a CoordinatorRouteDecision"
    error: dict[str, Any] = msgspec.json.decode(turn["error"])
    return f"the turn failed: {error.get('code')}: {error.get('message')}"


async def _save_answer(
    change: HubChange, run: RowMapping, turn: RowMapping, answer: _Answer
) -> None:
    own = supervisor_turns.c.agent_task_id == turn["agent_task_id"]
    settled = update(supervisor_turns).where(own)
    await change.connection.execute(settled.values(status=answer.status, settled_at=change.now))
    supervision, member = _find_supervisor(run)
    attempts = {"decided": 0, "dropped": supervision.attempts}
    supervision = msgspec.structs.replace(
        supervision,
        status=answer.status,
        attempts=attempts.get(answer.status, supervision.attempts + 1),
        tokens=supervision.tokens + turn["tokens"],
        edge_run_id=turn["edge_run_id"],
        thread_id=turn["thread_id"] or supervision.thread_id,
        remark=answer.remark,
    )
    run_id, by = run["team_run_id"], _describe_agent(member)
    asks = await _is_idle(change.connection, run_id) if answer.status == "decided" else True
    values = {"supervision": encode_supervision(supervision), "asks": asks}
    what: TeamRunChange = "supervisor_answered"
    if answer.status == "dropped":
        what = "supervisor_dropped"
    await save_run(change, run_id, what, by, **values)
    if answer.status in ("refused", "undecided") and supervision.attempts >= SUPERVISOR_ATTEMPTS:
        why = answer.remark
        if answer.record is not None:
            why = f"{answer.record.reason}: {answer.record.detail}"
        turns = f"{SUPERVISOR_ATTEMPTS} turns in a row brought no decision that was accepted"
        await _pause(change, run_id, f"{turns}; the last one: {why}")


async def _is_idle(connection: AsyncConnection, run_id: str) -> bool:
    """Whether nobody works on anything, so that no outcome will come."""
    query = select(team_assignments.c.assignment_id).where(
        team_assignments.c.team_run_id == run_id,
        team_assignments.c.status.not_in(ASSIGNMENT_ENDS),
    )
    return (await connection.execute(query)).first() is None


async def _pause(change: HubChange, run_id: str, reason: str) -> None:
    """Have a run wait for a person, and say why."""
    await save_run(change, run_id, "paused", _HUB, status="paused", reason=reason)


async def _ask(hub: HubServices, run_id: str) -> None:
    """Ask the agent that supervises a run, if that is due."""
    try:
        async with hub.events.change() as change:
            run = await _lock_due_run(change, run_id)
            if run is not None:
                await _create_turn(change, run)
    except Problem as problem:
        if problem.status == _BUSY:
            # Its device has too much to do; the next look asks again.
            return
        async with hub.events.change() as change:
            if await _lock_due_run(change, run_id) is not None:
                await _pause(change, run_id, f"the supervisor cannot be asked: {problem}")


async def _lock_due_run(change: HubChange, run_id: str) -> RowMapping | None:
    """The locked row of a run whose supervising agent is to be asked."""
    await _lock_run(change, run_id)
    due = select(team_runs).where(team_runs.c.team_run_id == run_id, *_IS_TO_BE_ASKED)
    return (await change.connection.execute(due)).mappings().first()


async def _create_turn(change: HubChange, run: RowMapping) -> None:
    run_id, (supervision, member) = run["team_run_id"], _find_supervisor(run)
    if supervision.turn >= SUPERVISOR_TURNS:
        await _pause(change, run_id, f"the supervisor has had {SUPERVISOR_TURNS} turns")
        return
    if member.device_id is None:
        raise AssertionError("a supervising agent has a device")
    rows = await _read_rows(change.connection, run, supervision)
    context = build_context(rows)
    team = {
        "team_id": run["team_id"],
        "team_run_id": run_id,
        "team_member_id": member.team_member_id,
        "team_member_role": member.role,
    }
    task = await create_task(
        change,
        NewTask(
            person_id=run["person_id"],
            device_id=member.device_id,
            agent_type=member.agent_type,
            project_id=member.project_id,
            work_dir=member.work_dir,
            prompt=build_prompt(context),
            model_params=build_options(context),
            thread_id=supervision.thread_id,
            display_name=member.name,
            wait_seconds=SUPERVISOR_SECONDS,
            timeout_seconds=SUPERVISOR_SECONDS,
            team=team,
        ),
        _ORIGIN,
    )
    await change.connection.execute(
        insert(supervisor_turns).values(
            agent_task_id=task.task_id,
            team_run_id=run_id,
            number=context.turn,
            team_member_id=member.team_member_id,
            status="asked",
            tokens=0,
            created_at=change.now,
            expires_at=change.now + SUPERVISOR_SECONDS * MILLISECONDS,
        )
    )
    ended = [each.assignment_id for each in rows.assignments if each.status in ASSIGNMENT_ENDS]
    outcomes = update(team_assignments).where(team_assignments.c.assignment_id.in_(ended))
    await change.connection.execute(outcomes.values(is_told=True))
    following = msgspec.structs.replace(
        supervision, turn=context.turn, status="asked", agent_task_id=task.task_id, edge_run_id=None
    )
    values = {"supervision": encode_supervision(following), "asks": False}
    await save_run(change, run_id, "supervisor_asked", _describe_agent(member), **values)


async def _read_rows(
    connection: AsyncConnection, run: RowMapping, supervision: Supervision
) -> RunRows:
    tasks, assignments = await read_run_rows(connection, run["team_run_id"])
    refusal: RouteRecord | None = None
    if supervision.status == "refused" and supervision.agent_task_id is not None:
        decision_id = _name_decision(supervision.agent_task_id)
        query = select(route_decisions).where(route_decisions.c.decision_id == decision_id)
        refusal = to_record((await connection.execute(query)).mappings().one())
    return RunRows(
        run_id=run["team_run_id"],
        goal=run["goal"],
        budget_tokens=run["budget_tokens"],
        roster=read_roster(run),
        supervision=supervision,
        tasks=tasks,
        assignments=assignments,
        refusal=refusal,
    )


async def take_over(hub: HubServices, caller: HubCaller, run_id: str) -> TeamRun:
    """Have a person decide about a run in place of the agent that supervises it; twice is once. The
    agent's turn is stopped, its answer does not count, and a paused run goes on.
    """
    async with hub.events.change() as change:
        row, supervision = await _lock_supervised(change, caller, run_id)
        if supervision.taken_over_by is not None:
            return to_run(row)
        dropped = update(supervisor_turns).where(
            supervisor_turns.c.team_run_id == run_id, supervisor_turns.c.settled_at.is_(None)
        )
        done = await change.connection.execute(dropped.values(status="dropped"))
        by = await describe_caller(change, caller)
        status = "dropped" if done.rowcount else supervision.status
        taken = msgspec.structs.replace(supervision, taken_over_by=by, status=status)
        values = {"supervision": encode_supervision(taken), "leads": False, "status": "running"}
        run = await save_run(change, run_id, "taken_over", by, reason=None, **values)
    await stop_due_tasks(hub)
    return run


async def hand_back(hub: HubServices, caller: HubCaller, run_id: str) -> TeamRun:
    """Have the supervising agent decide about a run again, beginning now; twice is once."""
    async with hub.events.change() as change:
        row, supervision = await _lock_supervised(change, caller, run_id)
        if supervision.taken_over_by is None:
            return to_run(row)
        by = await describe_caller(change, caller)
        handed = msgspec.structs.replace(supervision, taken_over_by=None, attempts=0)
        values = {"supervision": encode_supervision(handed), "leads": True, "asks": True}
        return await save_run(change, run_id, "handed_back", by, **values)


async def _lock_supervised(
    change: HubChange, caller: HubCaller, run_id: str
) -> tuple[RowMapping, Supervision]:
    row = await lock_open_run(change, caller, run_id)
    supervision = read_supervision(row)
    if supervision is None:
        raise Problem(409, "no_supervising_agent", "no agent supervises the run; just decide")
    return row, supervision
