"""Guardrails: each crossed by itself, in its order, and over REST with what comes of it."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from factwire.edge.events.session_events import CoordinatorRouteDecision
from factwire.facts.team_resources import RosterMember
from factwire.hub.teams import guardrails
from factwire.hub.teams.guardrails import (
    GUARDRAILS,
    ProposedRoute,
    RouteSituation,
    find_crossed,
    list_ancestors,
)
from tests.hub.hubs import running_hub
from tests.hub.team_desks import TeamDesk, open_desk

pytestmark = pytest.mark.requirement("teams.guardrails")

LEAD = RosterMember(team_member_id="mbr_1", name="lead", role="supervisor")
ANN = RosterMember(team_member_id="mbr_2", name="ann", role="executor", device_id="dev_1")

ORDER = (
    "team_run_ended",
    "route_action_unknown",
    "route_incomplete",
    "supervisor_missing",
    "worker_unknown",
    "assignment_timed_out",
    "route_repeated",
    "budget_spent",
    "too_many_tasks",
    "too_many_active",
    "task_too_deep",
    "task_cycle",
)

DELEGATE = ProposedRoute(action="delegate", next_worker="ann", instructions="write")
FINE: dict[str, Any] = {
    "decision": DELEGATE,
    "status": "running",
    "now": 1_000,
    "roster": (LEAD, ANN),
    "worker": ANN,
    "instructions": "write",
    "budget_tokens": 100,
}
CROSSING: dict[str, dict[str, Any]] = {
    "team_run_ended": {"status": "cancelled"},
    "route_action_unknown": {"decision": ProposedRoute(action="dance", next_worker="ann")},
    "route_incomplete": {"instructions": " "},
    "supervisor_missing": {"roster": (ANN,)},
    "worker_unknown": {"worker": LEAD},
    "assignment_timed_out": {"deadlines": (5_000, 1_000)},
    "route_repeated": {"same_routes": 3},
    "budget_spent": {"used_tokens": 95},
    "too_many_tasks": {"assignments": 20},
    "too_many_active": {"deadlines": (5_000,) * 5},
    "task_too_deep": {"parent_name": "c", "parents": {"c": "b", "b": "a"}},
    "task_cycle": {"parent_name": "b", "parents": {"b": "t"}, "task_name": "t"},
}
"""Guardrail → what crosses it, and it alone."""

STILL_FINE: dict[str, dict[str, Any]] = {
    "assignment_timed_out": {"deadlines": (1_001,)},
    "route_repeated": {"same_routes": 2},
    "budget_spent": {"used_tokens": 94},
    "too_many_tasks": {"assignments": 19},
    "too_many_active": {"deadlines": (5_000,) * 4},
    "task_too_deep": {"parent_name": "b", "parents": {"b": "a"}},
    "task_cycle": {"parent_name": "b", "parents": {"b": "a"}, "task_name": "t"},
}
"""Guardrail → as far as one may go."""


def code_of(**changes: Any) -> str | None:
    crossed = find_crossed(RouteSituation(**{**FINE, **changes}))
    return None if crossed is None else crossed.code


def test_the_order_is_that_of_the_contract():
    assert tuple(each.code for each in GUARDRAILS) == ORDER == tuple(CROSSING)


@pytest.mark.parametrize("code", ORDER)
def test_each_guardrail_is_crossed_by_itself_and_before_all_that_follow(code: str):
    assert code_of() is None
    assert code_of(**CROSSING[code]) == code
    assert code_of(**STILL_FINE.get(code, {})) is None
    # Whatever else is crossed later in the order, this one is named.
    later = ORDER[ORDER.index(code) :]
    merged: dict[str, Any] = {}
    for each in reversed(later):
        merged |= CROSSING[each]
    if "assignment_timed_out" in later and "too_many_active" in later:
        merged["deadlines"] = (1_000,) * 5
    assert code_of(**merged) == code


@given(st.dictionaries(st.sampled_from("abcd"), st.none() | st.sampled_from("abcd")))
def test_ancestors_end_however_tasks_belong_to_each_other(parents: dict[str, str | None]):
    nested: dict[str, Any] = {"parents": parents, "parent_name": "a", "task_name": "t"}
    at = RouteSituation(**{**FINE, **nested})
    found = list_ancestors(at)
    assert len(found) == len(set(found)) <= 5


@pytest.mark.parametrize(
    "decision",
    [
        ProposedRoute(action="finish"),
        ProposedRoute(action="approve", approved=True),
    ],
)
def test_what_gives_nobody_work_is_stopped_by_the_first_four_alone(decision: ProposedRoute):
    crossed = {"used_tokens": 100, "assignments": 20, "deadlines": (0,) * 5, "worker": None}
    done: dict[str, Any] = {"decision": decision, "work_id": "ttk_1", "is_completed": True}
    assert code_of(**done, instructions=None, **crossed) is None
    assert code_of(**done, roster=(ANN,)) == "supervisor_missing"


@pytest.mark.parametrize(
    ("decision", "more"),
    [
        (ProposedRoute(action="approve"), {"work_id": "ttk_1"}),
        (ProposedRoute(action="approve", approved=True), {"work_id": None}),
        (ProposedRoute(action="approve", approved=True), {"is_completed": False}),
        (ProposedRoute(action="approve", approved=False), {"instructions": None}),
        (ProposedRoute(action="delegate", instructions="x"), {"worker": None}),
        (ProposedRoute(action="review", next_worker="rex"), {"instructions": ""}),
    ],
)
def test_what_a_decision_needs_must_be_there(decision: ProposedRoute, more: dict[str, Any]):
    known: dict[str, Any] = {"decision": decision, "work_id": "ttk_1", "is_completed": True}
    assert code_of(**{**known, **more}) == "route_incomplete"


def test_an_agents_decision_is_a_proposal_with_the_same_fields():
    decision = CoordinatorRouteDecision(action="delegate", next_worker="ann", instructions="go")
    assert ProposedRoute.of(decision) == ProposedRoute(
        action="delegate", next_worker="ann", instructions="go"
    )
    assert ProposedRoute.__struct_fields__ == CoordinatorRouteDecision.__struct_fields__
    with pytest.raises(msgspec.ValidationError):
        ProposedRoute.of(msgspec.structs.replace(decision, instructions="x" * 20_001))
    with pytest.raises(msgspec.ValidationError):
        ProposedRoute.of(msgspec.structs.replace(decision, context="x" * 9_000))


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[TeamDesk]:
    async with running_hub(tmp_path) as hub:
        yield await open_desk(hub, await hub.first_admin())


async def count_rows(desk: TeamDesk) -> tuple[int, int, int]:
    state = await desk.state()
    listed = await desk.person.get("/v1/agent-tasks?limit=100")
    return len(state["tasks"]), len(state["assignments"]), len(listed["items"])


async def check_refused(desk: TeamDesk, code: str, action: str, **fields: Any) -> None:
    """A decision is refused with a code, told and on record, and nothing else is written."""
    before = await count_rows(desk)
    answer = await desk.send(action, **fields)
    assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text
    assert await count_rows(desk) == before
    decision = {"action": action, **fields}
    events = await desk.read_events()
    assert events[-1][0] == "team.route.rejected"
    event = events[-1][1]
    assert (event["decision"], event["reason"]) == (decision, code)
    record = (await desk.person.get(f"{desk.path}/decisions?limit=100"))["items"][-1]
    assert (record["decisionId"], record["reason"]) == (answer.json()["decisionId"], code)
    assert record["decision"] == decision
    assert "assignmentId" not in record


ANN_WRITES = {"next_worker": "ann", "instructions": "write"}


@pytest.mark.asyncio
async def test_a_run_that_is_over_takes_no_decision(desk: TeamDesk):
    await desk.decide("finish", summary="all done")
    await check_refused(desk, "team_run_ended", "dance")


@pytest.mark.asyncio
async def test_decisions_that_say_too_little_or_nonsense_are_refused(desk: TeamDesk):
    await check_refused(desk, "route_action_unknown", "dance", **ANN_WRITES)
    await check_refused(desk, "route_incomplete", "delegate", instructions="write")
    await check_refused(desk, "route_incomplete", "review", next_worker="rex")
    await check_refused(desk, "route_incomplete", "approve", approved=True)
    for worker in ("zoe", "lead", "rex", desk.members["rex"]):
        await check_refused(
            desk, "worker_unknown", "delegate", next_worker=worker, instructions="write"
        )
    await check_refused(desk, "worker_unknown", "review", **ANN_WRITES)
    unreadable = await desk.send("delegate", approved="perhaps")
    assert (unreadable.status_code, unreadable.json()["code"]) == (400, "invalid_request")


@pytest.mark.asyncio
async def test_a_run_without_a_supervisor_takes_no_decision_until_it_has_one(desk: TeamDesk):
    await desk.create_team(ann="executor")
    await desk.start()
    await check_refused(desk, "supervisor_missing", "delegate", **ANN_WRITES)
    lead = await desk.add_member("boss", "supervisor")
    await desk.person.post(f"{desk.path}/members", {"teamMemberId": lead}, 200)
    await desk.delegate()


@pytest.mark.asyncio
async def test_an_assignment_that_took_too_long_is_stopped_and_holds_up_the_run(desk: TeamDesk):
    slow = await desk.delegate()
    task_id = await desk.begin(slow)
    await desk.pass_time(30 * 60 - 1)
    quick = await desk.delegate("ben")
    await desk.complete(quick)
    await desk.pass_time(1)
    assert (await desk.read_task(slow))["closing"] == "timeout"
    assert (await desk.assignment(slow))["status"] == "dispatched"
    await check_refused(desk, "assignment_timed_out", "delegate", **ANN_WRITES)
    await desk.decide("approve", approved=True)
    await desk.fail(slow, "timed_out")
    ended = await desk.assignment(slow)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "timed_out")
    assert ended["agentTaskId"] == task_id
    await desk.delegate()


@pytest.mark.asyncio
async def test_an_assignment_that_no_device_has_heard_of_ends_by_itself(desk: TeamDesk):
    waiting = await desk.delegate()
    await desk.pass_time(30 * 60)
    assert (await desk.assignment(waiting))["status"] == "failed"
    assert [name for name, _ in await desk.read_events()][-1] == "assignment.failed"
    await desk.delegate()


@pytest.mark.asyncio
async def test_the_same_work_for_the_same_member_is_given_three_times(desk: TeamDesk):
    for number in range(3):
        await desk.complete(await desk.delegate(what=f"  Write\n it{' ' * number}"))
    again = {"next_worker": "ann", "instructions": "write IT"}
    await check_refused(desk, "route_repeated", "delegate", **again)
    await check_refused(desk, "route_repeated", "delegate", **again, subtask_id="another")
    await desk.complete(await desk.delegate("ben", "write it"))
    await desk.delegate(what="write that")


@pytest.mark.asyncio
async def test_the_budget_is_that_of_real_usage(desk: TeamDesk):
    await desk.start(budgetTokens=100)
    await desk.complete(await desk.delegate(), totalTokens=90)
    await desk.complete(await desk.delegate("ben"), inputTokens=3, outputTokens=1)
    assert (await desk.state())["budget"] == {"tokens": 100, "usedTokens": 94}
    await desk.complete(await desk.delegate("ben", "more"), input_tokens=1, output_tokens=0)
    await check_refused(desk, "budget_spent", "delegate", **ANN_WRITES)
    await desk.decide("approve", approved=True)
    await desk.decide("finish", summary="as far as it went")


@pytest.mark.asyncio
async def test_a_run_has_so_many_assignments_and_so_many_at_a_time(
    desk: TeamDesk, monkeypatch: pytest.MonkeyPatch
):
    assignment_ids = [await desk.delegate(what=f"part {number}") for number in range(5)]
    await check_refused(desk, "too_many_active", "delegate", **ANN_WRITES)
    for each in assignment_ids:
        await desk.complete(each)
    monkeypatch.setattr(guardrails, "TEAM_TASKS", 6)
    await desk.delegate("ben")
    await check_refused(desk, "too_many_tasks", "delegate", **ANN_WRITES)


@pytest.mark.asyncio
async def test_tasks_are_nested_three_deep_and_in_no_circle(desk: TeamDesk):
    await desk.complete(await desk.delegate(subtask_id="a"))
    await desk.complete(await desk.delegate(what="2", subtask_id="b", parent_task_id="a"))
    await check_refused(
        desk, "task_cycle", "delegate", **ANN_WRITES, subtask_id="a", parent_task_id="b"
    )
    await check_refused(
        desk, "task_cycle", "delegate", **ANN_WRITES, subtask_id="n", parent_task_id="n"
    )
    # A task is known by its id as well as by what the supervisor calls it.
    named = {each["subtaskId"]: each["teamTaskId"] for each in (await desk.state())["tasks"]}
    third = await desk.decide(
        "delegate",
        next_worker="ann",
        instructions="3",
        subtask_id="c",
        parent_task_id=named["b"],
    )
    await desk.complete(third["assignmentId"])
    await check_refused(
        desk, "task_too_deep", "delegate", **ANN_WRITES, subtask_id="d", parent_task_id="c"
    )
    await check_refused(
        desk,
        "task_too_deep",
        "delegate",
        **ANN_WRITES,
        subtask_id="d",
        parent_task_id=third["teamTaskId"],
    )
    # A review of the deepest task is no deeper than the task.
    review = await desk.decide("review", next_worker="rex", instructions="look", subtask_id="c")
    await desk.complete(review["assignmentId"])
    # What belongs to a task that is still to come makes no circle with it either.
    await desk.complete(await desk.delegate("ben", "early", subtask_id="e", parent_task_id="f"))
    await check_refused(
        desk, "task_cycle", "delegate", **ANN_WRITES, subtask_id="f", parent_task_id="e"
    )
