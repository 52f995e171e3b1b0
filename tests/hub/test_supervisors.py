"""Agents that supervise runs: when they are asked, what they are shown, what comes of answers."""

import asyncio
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import func, select

from factwire.edge.hub_frames import AgentDone, AgentFailed
from factwire.evidence import BundleDocument, LeftOut
from factwire.facts.classes.payloads import RouteDecision
from factwire.facts.team_resources import SupervisorContext
from factwire.hub.limits import (
    ROUTE_TEXT_CHARACTERS,
    SUPERVISOR_ATTEMPTS,
    SUPERVISOR_CONTEXT_BYTES,
    SUPERVISOR_SECONDS,
    TEAM_GOAL_CHARACTERS,
)
from factwire.hub.people.accounts import new_id
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.team_tables import supervisor_turns
from factwire.hub.teams import supervisor_turns as turns
from tests.hub.hubs import RunningHub, running_hub
from tests.hub.served_hubs import WAIT
from tests.hub.team_desks import USED, SupervisedDesk, TeamDesk
from tests.hub.test_hub_records import create_postgres_database
from tests.hub.test_teams import TeamScreen, check_law
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio

WORK = {"next_worker": "ann", "instructions": "write"}


@pytest_asyncio.fixture
async def hub(tmp_path: Path) -> AsyncGenerator[RunningHub]:
    async with running_hub(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def desk(hub: RunningHub) -> SupervisedDesk:
    return await open_supervised(hub)


async def open_supervised(hub: RunningHub) -> SupervisedDesk:
    person = await hub.first_admin()
    desk = SupervisedDesk(hub, person, await hub.join_device(person))
    await desk.open()
    return desk


def picked(found: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(found.get(name) for name in names)


@pytest.mark.requirement("teams.supervisors")
async def test_an_agent_is_asked_after_each_outcome_until_it_finishes(desk: SupervisedDesk):
    question = await desk.read_question()
    assert picked(await desk.supervision(), "turn", "status", "tokens") == (1, "asked", None)
    assert (question.agent_type, question.team_member_role) == ("demo", "supervisor")
    assert question.thread_id is msgspec.UNSET
    options = question.model_params
    assert isinstance(options, dict)
    schema = options["outputSchema"]
    assert set(schema["properties"]) == set(RouteDecision.__struct_fields__)
    context = msgspec.convert(options["teamState"], SupervisorContext)
    assert (context.goal, context.run_id, context.assignments) == ("Build it", desk.run_id, [])
    assert msgspec.json.encode(options["teamState"]).decode() in question.prompt
    # Somebody works: it is asked again when there is an outcome.
    assert (await desk.answer("delegate", **WORK, subtask_id="impl"))["status"] == "decided"
    await desk.complete((await desk.last_assignment())["assignmentId"], "wrote a.txt")
    assert (await desk.supervision())["turn"] == 2
    shown = await desk.read_context()
    assert picked(shown["lastOutcome"], "worker", "status", "resultSummary") == (
        *("ann", "completed", "wrote a.txt"),
    )
    assert (await desk.read_question()).thread_id == f"thr_{question.task_id}"
    assert (await desk.answer("review", next_worker="rex", instructions="look"))["turn"] == 2
    await desk.complete((await desk.last_assignment())["assignmentId"], "a word is missing")
    await desk.answer("approve", approved=False, feedback="add it", subtask_id="impl")
    await desk.complete((await desk.last_assignment())["assignmentId"], "added")
    # Nobody works after this one, so that it is asked at once.
    assert picked(await desk.answer("approve", approved=True), "turn", "status") == (5, "asked")
    assert (await desk.read_context())["tasks"][0]["approved"] is True
    ended = await desk.answer("finish", summary="a.txt is there")
    state = await desk.state()
    assert picked(state["run"], "status", "summary") == ("finished", "a.txt is there")
    assert picked(ended, "turn", "status", "tokens") == (5, "decided", 5 * USED["totalTokens"])
    assert state["budget"]["usedTokens"] == 8 * USED["totalTokens"]
    records = (await desk.person.get(f"{desk.path}/decisions"))["items"]
    assert {each["decidedBy"]["teamMemberId"] for each in records} == {desk.members["lead"]}


class SupervisorContract:
    """What holds for turns in both databases."""

    @pytest_asyncio.fixture
    async def desk(self, tmp_path: Path, url: str | None) -> AsyncGenerator[SupervisedDesk]:
        settings: dict[str, Any] = {} if url is None else {"database": url}
        async with running_hub(tmp_path, **settings) as hub:
            yield await open_supervised(hub)

    @pytest.mark.requirement("teams.supervisors")
    async def test_a_turn_is_asked_and_its_answer_taken_once_by_whoever_looks(
        self, desk: SupervisedDesk
    ):
        await asyncio.gather(*(desk.lead() for _ in range(4)))
        task_id = (await desk.supervision())["agentTaskId"]
        await desk.begin_task(task_id)
        route = {"action": "delegate", **WORK}
        done = AgentDone(task_id=task_id, result_summary="", usage={}, route_decision=route)
        await asyncio.gather(*(desk.take_frame("agent.done", done) for _ in range(3)))
        await asyncio.gather(*(desk.lead() for _ in range(4)))
        assert len((await desk.state())["assignments"]) == 1
        first = (await desk.last_assignment())["assignmentId"]
        await desk.complete(first)
        await asyncio.gather(*(desk.lead() for _ in range(4)))
        count = select(func.count()).select_from(supervisor_turns)
        async with desk.hub.hub.services.database.read() as connection:
            assert (await connection.execute(count)).scalar_one() == 2
        records = (await desk.person.get(f"{desk.path}/decisions"))["items"]
        assert [each.get("reason") for each in records] == [None]


class TestSupervisorsOnSqlite(SupervisorContract):
    @pytest.fixture
    def url(self) -> None:
        return None


class TestSupervisorsOnPostgres(SupervisorContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)


@pytest.mark.requirement("teams.supervisors")
async def test_an_answer_whose_decision_has_another_id_each_time_would_be_taken_twice(
    desk: SupervisedDesk, monkeypatch: pytest.MonkeyPatch
):
    def name_anew(_: str) -> str:
        return new_id("dcn")

    monkeypatch.setattr(turns, "_name_decision", name_anew)
    await desk.answer("delegate", **WORK)
    async with desk.hub.hub.services.database.write() as connection:
        await connection.exec_driver_sql("UPDATE supervisor_turns SET settled_at = NULL")
    await desk.lead()
    assert len((await desk.state())["assignments"]) == 2


@pytest.mark.requirement("teams.supervisors")
async def test_a_turn_that_is_settled_again_after_a_kill_is_the_same_decision(
    desk: SupervisedDesk,
):
    await desk.answer("delegate", **WORK)
    async with desk.hub.hub.services.database.write() as connection:
        await connection.exec_driver_sql("UPDATE supervisor_turns SET settled_at = NULL")
    await desk.lead()
    assert len((await desk.state())["assignments"]) == 1


@pytest.mark.requirement("teams.supervisors.astray")
async def test_a_supervisor_that_lies_about_workers_is_told_so_and_then_stopped(
    desk: SupervisedDesk,
):
    lie = {"next_worker": "zoe", "instructions": "write"}
    found = await desk.answer("delegate", **lie)
    assert picked(found, "turn", "status", "attempts") == (2, "asked", 1)
    shown = await desk.read_context()
    assert picked(shown["lastRefusal"], "code", "decision") == (
        *("worker_unknown", {"action": "delegate", **lie}),
    )
    assert "worker_unknown" in (await desk.read_question()).prompt
    # It says of work that nobody did that it is done.
    await desk.answer("approve", approved=True, subtask_id="never")
    assert (await desk.read_context())["lastRefusal"]["code"] == "route_incomplete"
    await desk.answer("review", next_worker="ann", instructions="look")
    run = (await desk.state())["run"]
    assert (run["status"], run["supervision"]["attempts"]) == ("paused", SUPERVISOR_ATTEMPTS)
    assert "worker_unknown" in run["reason"]
    # A person looks, and lets it try again.
    resumed = await desk.person.post(f"{desk.path}:resume", None, 200)
    assert picked(resumed, "status", "reason") == ("running", None)
    await desk.lead()
    assert (await desk.read_context())["lastRefusal"]["code"] == "worker_unknown"
    assert picked(await desk.answer("delegate", **WORK), "status", "attempts") == ("decided", None)
    assert (await desk.last_assignment())["status"] == "created"


@pytest.mark.requirement("teams.supervisors.astray")
async def test_a_supervisor_that_repeats_itself_is_refused_and_then_stopped(desk: SupervisedDesk):
    for _ in range(3):
        await desk.answer("delegate", **WORK)
        await desk.complete((await desk.last_assignment())["assignmentId"])
    for _ in range(SUPERVISOR_ATTEMPTS):
        await desk.answer("delegate", **WORK)
    run = (await desk.state())["run"]
    assert (run["status"], "route_repeated" in run["reason"]) == ("paused", True)
    assert len((await desk.state())["assignments"]) == 3


@pytest.mark.requirement("teams.supervisors.astray")
async def test_a_supervisor_that_only_approves_is_stopped(
    desk: SupervisedDesk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(turns, "SUPERVISOR_TURNS", 6)
    await desk.answer("delegate", **WORK)
    await desk.complete((await desk.last_assignment())["assignmentId"])
    for _ in range(5):
        await desk.answer("approve", approved=True)
    run = (await desk.state())["run"]
    assert picked(run, "status", "reason") == ("paused", "the supervisor has had 6 turns")


@pytest.mark.requirement("teams.supervisors.astray")
async def test_prose_is_no_decision(desk: SupervisedDesk):
    found = await desk.answer()
    assert picked(found, "turn", "status", "attempts") == (2, "asked", 1)
    assert "structured output" in (await desk.read_context())["remark"]
    assert "was not a decision" in (await desk.read_question()).prompt
    # Nor is what nobody could carry out.
    await desk.answer("delegate", next_worker="ann", instructions="x" * (ROUTE_TEXT_CHARACTERS + 1))
    assert "instructions" in (await desk.read_context())["remark"]
    await desk.answer()
    assert (await desk.state())["run"]["status"] == "paused"
    assert (await desk.person.get(f"{desk.path}/decisions"))["items"] == []
    # Why it was paused is no reason why it was cancelled.
    assert "reason" not in await desk.person.post(f"{desk.path}:cancel", None, 200)


@pytest.mark.requirement("teams.supervisors.astray")
async def test_a_supervisor_that_never_answers_is_stopped_and_asked_again(desk: SupervisedDesk):
    first = (await desk.supervision())["agentTaskId"]
    await desk.begin_task(first)
    await desk.pass_time(SUPERVISOR_SECONDS - 1)
    assert (await desk.supervision())["agentTaskId"] == first
    await desk.pass_time(2)
    # Its device is told to stop it, and says that it has; it had used something by then.
    error = {"code": "timed_out", "message": "too late"}
    failed = AgentFailed(task_id=first, error=error, usage=USED)
    await desk.take_frame("agent.failed", failed)
    await desk.lead()
    found = await desk.supervision()
    assert picked(found, "turn", "attempts", "tokens") == (2, 1, USED["totalTokens"])
    # A device that is never there gets nothing.
    for _ in range(SUPERVISOR_ATTEMPTS - 1):
        await desk.pass_time(SUPERVISOR_SECONDS + 1)
    run = (await desk.state())["run"]
    assert (run["status"], "expired" in run["reason"]) == ("paused", True)


@pytest.mark.requirement("teams.supervisors.astray")
async def test_a_supervisor_whose_device_is_gone_leaves_the_run_to_a_person(
    desk: SupervisedDesk,
):
    await desk.answer("delegate", **WORK)
    assignment_id = (await desk.last_assignment())["assignmentId"]
    await desk.begin(assignment_id)
    async with desk.hub.hub.services.database.write() as connection:
        await connection.exec_driver_sql("UPDATE devices SET agents = '[]'")
    await desk.complete(assignment_id)
    run = (await desk.state())["run"]
    assert (run["status"], "agent_not_offered" in run["reason"]) == ("paused", True)


@pytest.mark.requirement("teams.supervisors.astray")
async def test_a_decision_that_no_device_can_take_now_is_a_refusal(desk: SupervisedDesk):
    async with desk.hub.hub.services.database.write() as connection:
        await connection.exec_driver_sql("UPDATE devices SET agents = '[]'")
    await desk.answer("delegate", **WORK)
    records = (await desk.person.get(f"{desk.path}/decisions"))["items"]
    assert [each["reason"] for each in records] == ["agent_not_offered"]
    assert (await desk.state())["assignments"] == []


@pytest.mark.requirement("teams.takeover")
async def test_a_person_takes_over_decides_and_hands_back(desk: SupervisedDesk):
    ada = desk.person
    refused = await desk.send("delegate", **WORK)
    assert (refused.status_code, refused.json()["code"]) == (409, "agent_supervises")
    first = (await desk.supervision())["agentTaskId"]
    await desk.begin_task(first)
    taken = await ada.post(f"{desk.path}:takeover", None, 200)
    assert taken["supervision"]["takenOverBy"]["name"] == "Ada"
    assert await ada.post(f"{desk.path}:takeover", None, 200) == taken
    # What the agent says now does not count, but for what it used.
    route = {"action": "finish"}
    late = AgentDone(task_id=first, result_summary="", usage=USED, route_decision=route)
    await desk.take_frame("agent.done", late)
    await desk.lead()
    found = await desk.supervision()
    assert picked(found, "turn", "status", "tokens") == (1, "dropped", USED["totalTokens"])
    await desk.complete(await desk.delegate("ben"))
    assert (await desk.supervision())["turn"] == 1
    back = await ada.post(f"{desk.path}:handback", None, 200)
    assert "takenOverBy" not in back["supervision"]
    assert await ada.post(f"{desk.path}:handback", None, 200) == back
    await desk.lead()
    assert (await desk.read_context())["lastOutcome"]["worker"] == "ben"
    assert (await desk.answer("finish"))["status"] == "decided"
    late_takeover = await ada.request("POST", f"{desk.path}:takeover")
    assert (late_takeover.status_code, late_takeover.json()["code"]) == (409, "team_run_ended")


@pytest.mark.requirement("teams.takeover")
async def test_only_a_run_that_an_agent_supervises_is_taken_over(hub: RunningHub):
    person = await hub.first_admin()
    desk = SupervisedDesk(hub, person, await hub.join_device(person))
    await desk.create_team(lead="supervisor", ann="executor")
    await desk.start()
    refused = await person.request("POST", f"{desk.path}:takeover")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_supervising_agent")
    # An agent that joins in the middle begins at once.
    places = {"agentType": "demo", "deviceIds": [desk.device.device_id]}
    member_id = await desk.add_member("chief", "supervisor", **places)
    await person.post(f"{desk.path}/members", {"teamMemberId": member_id}, 200)
    await desk.lead()
    assert (await desk.supervision())["status"] == "asked"


@pytest.mark.requirement("teams.supervisors")
async def test_a_paused_run_keeps_the_answer_until_it_goes_on(desk: SupervisedDesk):
    await desk.person.post(f"{desk.path}:pause", None, 200)
    await desk.answer("delegate", **WORK)
    assert (await desk.state())["assignments"] == []
    await desk.person.post(f"{desk.path}:resume", None, 200)
    await desk.lead()
    assert len((await desk.state())["assignments"]) == 1


@pytest.mark.requirement("teams.control")
async def test_a_cancelled_run_stops_its_supervisor_first(desk: SupervisedDesk):
    await desk.answer("delegate", **WORK)
    first = (await desk.last_assignment())["assignmentId"]
    await desk.complete(first)
    # Work is moved to somebody else while the supervisor thinks, so that both are under way.
    await desk.answer("delegate", next_worker="ann", instructions="more")
    second = (await desk.last_assignment())["assignmentId"]
    await desk.person.post(f"{desk.path}:takeover", None, 200)
    await desk.person.post(f"{desk.path}:handback", None, 200)
    await desk.lead()
    await desk.begin(second)
    turn = (await desk.supervision())["agentTaskId"]
    await desk.begin_task(turn)
    await desk.person.post(f"{desk.path}:cancel", None, 200)
    stops = "SELECT task_id FROM deliveries WHERE kind = 'cancel' ORDER BY position"
    async with desk.hub.hub.services.database.read() as connection:
        stopped = list((await connection.exec_driver_sql(stops)).scalars())
    assert stopped == [turn, (await desk.assignment(second))["agentTaskId"]]
    error = {"code": "cancelled", "message": "stopped"}
    await desk.take_frame("agent.failed", AgentFailed(task_id=turn, error=error))
    await desk.lead()
    assert (await desk.supervision())["status"] == "dropped"
    # It has not answered: the run is over.
    assert (await desk.read_events())[-1][1]["change"] == "supervisor_dropped"
    assert (await desk.read_facts())[-1]["eventClass"] == "agent.changed"


@pytest.mark.requirement("teams.pack")
async def test_a_pack_names_the_thread_of_the_supervisor_once(desk: SupervisedDesk, tmp_path: Path):
    await desk.answer()
    await desk.answer("finish", summary="nothing to do")
    thread_id = (await desk.supervision())["threadId"]
    path = tmp_path / "run.factpack.zip"
    answer = await desk.person.request("GET", f"{desk.path}/evidence")
    path.write_bytes(answer.content)
    with zipfile.ZipFile(path) as archive:
        document = msgspec.json.decode(archive.read("bundle.json"), type=BundleDocument)
    left = LeftOut(source="edge_1", thread_id=thread_id, reason="private_or_not_uploaded")
    assert document.left_out == (left,)


@pytest.mark.requirement("teams.outcomes")
async def test_what_failed_tasks_and_the_supervisor_used_counts_towards_the_budget(
    hub: RunningHub,
):
    person = await hub.first_admin()
    desk = SupervisedDesk(hub, person, await hub.join_device(person))
    await desk.open(budgetTokens=20)
    await desk.answer("delegate", **WORK)
    await desk.fail((await desk.last_assignment())["assignmentId"], totalTokens=9)
    await desk.lead()
    state = await desk.state()
    assert (state["assignments"][0]["tokens"], state["budget"]["usedTokens"]) == (9, 19)
    assert (await desk.read_context())["budget"] == {"tokens": 20, "usedTokens": 19}
    await desk.answer("delegate", next_worker="ben", instructions="again")
    assert (await desk.read_context())["lastRefusal"]["code"] == "budget_spent"
    assert (await desk.answer("finish", blocked_reason="no tokens"))["status"] == "decided"


@pytest.mark.requirement("teams.supervisors")
async def test_what_a_supervisor_is_shown_stays_within_its_bound(hub: RunningHub):
    person = await hub.first_admin()
    desk = SupervisedDesk(hub, person, await hub.join_device(person))
    await desk.open(goal="\N{GRINNING FACE}" * TEAM_GOAL_CHARACTERS)
    for number in range(4):
        long = f"{number} " + "\N{GRINNING FACE}" * (ROUTE_TEXT_CHARACTERS - 9)
        await desk.answer("delegate", next_worker="ann", instructions=long)
        await desk.complete((await desk.last_assignment())["assignmentId"], "é" * 8_000)
    shown = await desk.read_context()
    assert len(msgspec.json.encode(shown)) <= SUPERVISOR_CONTEXT_BYTES
    assert len(shown["assignments"]) == 4


@pytest.mark.requirement("teams.law")
async def test_a_state_and_the_events_after_it_say_how_far_the_supervisor_is(
    desk: SupervisedDesk,
):
    screen = TeamScreen(await desk.state())
    await desk.answer("delegate", **WORK)
    await desk.complete((await desk.last_assignment())["assignmentId"])
    await desk.answer("delegate", next_worker="zoe", instructions="write")
    await check_law(desk, screen, "refused")
    await desk.person.post(f"{desk.path}:takeover", None, 200)
    await desk.person.post(f"{desk.path}:handback", None, 200)
    await check_law(desk, screen, "handed back")
    await desk.person.post(f"{desk.path}:cancel", None, 200)
    await desk.lead()
    await check_law(desk, screen, "cancelled")


@pytest.mark.requirement("teams.facts")
async def test_turns_of_a_supervisor_are_facts_of_the_run(desk: SupervisedDesk):
    await desk.answer("delegate", **WORK)
    await desk.complete((await desk.last_assignment())["assignmentId"])
    await desk.answer("delegate", next_worker="zoe", instructions="write")
    await desk.answer("finish", summary="built")
    facts = await desk.read_facts()
    own = [
        each["eventClass"]
        for each in facts
        if each.get("workerId") == desk.members["lead"] and each["eventClass"] != "agent.spawned"
    ]
    start, done = "worker.started", "worker.completed"
    assert own == [start, done, start, "agent.changed", "worker.notification", start, done]
    path = f"/v1/edges/hub.teams/threads/{desk.run_id}/projection"
    team = (await desk.person.get(path))["state"]["teamWorkbench"]
    lead = team["rosterNodes"][desk.members["lead"]]
    assert picked(lead, "name", "role", "status") == ("lead", "supervisor", "completed")


@pytest.mark.requirement("teams.supervisors")
@pytest.mark.parametrize("error", [RuntimeError("no"), RecordsUnavailable("no")])
async def test_a_run_that_raises_waits_before_it_is_tried_again_and_holds_up_no_other(
    hub: RunningHub,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
):
    person = await hub.first_admin()
    # Nothing leads these runs but the Hub itself, at its commits and as time passes.
    desk = TeamDesk(hub, person, await hub.join_device(person))
    await desk.create_team(ann="executor")
    places = {"agentType": "demo", "deviceIds": [desk.device.device_id]}
    await desk.add_member("lead", "supervisor", **places)
    began, build_prompt = hub.clock.now, turns.build_prompt
    attempts = asyncio.Queue[float]()

    def fail(context: SupervisorContext) -> str:
        if context.goal != "break":
            return build_prompt(context)
        attempts.put_nowait(hub.clock.now - began)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(turns, "build_prompt", fail)
        broken = await desk.start(goal="break")
        for tried_at, pause in ((0, 2), (2, 4)):
            hub.clock.now = began + tried_at
            async with asyncio.timeout(WAIT):
                assert await attempts.get() == tried_at
            for later in (0, pause - 0.5):
                hub.clock.now = began + tried_at + later
                await wait_for_question(desk, await desk.start())
                assert attempts.empty()
    messages = [each.getMessage() for each in caplog.records]
    failures = [each for each in messages if "team_run_failed" in each]
    assert [broken["teamRunId"] in each for each in failures] == [True, True]
    hub.clock.advance(0.5)
    await wait_for_question(desk, broken)


async def wait_for_question(desk: TeamDesk, run: dict[str, Any]) -> None:
    """Return once the agent that supervises a run is asked."""
    async with asyncio.timeout(WAIT):
        while True:
            found = await desk.person.get(f"/v1/team-runs/{run['teamRunId']}")
            if found["supervision"].get("status") == "asked":
                return
            await asyncio.sleep(0.01)
