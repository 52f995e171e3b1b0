"""Teams, their runs and what comes of decisions, on SQLite and on a real PostgreSQL."""

import asyncio
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping

from factwire.edge.hub_frames import RelayAnswer
from factwire.evidence import BundleDocument, LeftOut, verify_file
from factwire.facts.limits import PAYLOAD_CHARACTERS
from factwire.facts.resources import AgentTask, TaskChanges
from factwire.hub.frames.event_log import HubChange, read_events
from factwire.hub.link.agent_tasks import stop_task
from factwire.hub.records.device_tables import devices
from factwire.hub.records.link_tables import OPEN_STATES, deliveries
from factwire.hub.records.team_tables import team_assignments
from factwire.hub.teams import assignment_outcomes, team_journal, team_runs
from factwire.hub.teams.team_facts import find_place
from factwire.journal import ConflictingFact, Cursor
from factwire.journal.sqlite.journal import SqliteJournal
from tests.hub.hubs import HubPerson, RunningHub, SteppedClock, running_hub
from tests.hub.served_hubs import WAIT
from tests.hub.team_desks import USED, TeamDesk, open_desk
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer
from tests.trials import TRIAL_SECONDS, count_trials

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def hub(tmp_path: Path) -> AsyncGenerator[RunningHub]:
    async with running_hub(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def desk(hub: RunningHub) -> TeamDesk:
    return await open_desk(hub, await hub.first_admin())


@pytest.mark.requirement("teams.members")
async def test_members_are_agents_on_devices_that_one_may_operate(desk: TeamDesk):
    hub, ada = desk.hub, desk.person
    bo = await hub.join(ada, "Bo")
    own = TeamDesk(hub, bo, desk.device)
    own.team_id = (await bo.post("/v1/teams", {"name": "others"}))["teamId"]
    path, device_id = f"/v1/teams/{own.team_id}/members", desk.device.device_id
    body = {"name": "ann", "role": "executor", "agentType": "demo", "deviceIds": [device_id]}

    async def refused(body: dict[str, Any]) -> tuple[int, str]:
        answer = await bo.request("POST", path, body)
        return answer.status_code, answer.json()["code"]

    assert await refused(body) == (404, "unknown_device")
    grant = {"person": "Bo", "role": "viewer", "deviceId": device_id}
    await ada.post("/v1/grants", grant)
    assert await refused(body) == (404, "unknown_device")
    await ada.post("/v1/grants", {**grant, "role": "operator"})
    await bo.post(path, body)
    assert await refused(body) == (409, "member_name_taken")
    assert await refused({"name": "x", "role": "executor"}) == (400, "invalid_request")
    assert await refused({**body, "name": "x", "deviceIds": []}) == (400, "invalid_request")
    run = await own.start()
    assert run["roster"][0]["deviceId"] == device_id
    # What is no longer shared is no longer given work.
    await own.add_member("lead", "supervisor")
    await bo.post(f"{own.path}/members", {"teamMemberId": own.members["lead"]}, 200)
    grants = (await ada.get("/v1/grants"))["items"]
    await ada.request("DELETE", f"/v1/grants/{grants[0]['grantId']}")
    gone = await own.send("delegate", next_worker="ann", instructions="write")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_device")
    assert (await own.state())["assignments"] == []
    late = await bo.request("POST", "/v1/team-runs", {"teamId": own.team_id, "goal": "again"})
    assert (late.status_code, late.json()["code"]) == (409, "member_unavailable")


@pytest.mark.requirement("teams.members")
async def test_a_run_chooses_one_of_several_devices_for_each_member_and_keeps_it(
    desk: TeamDesk,
):
    other = await desk.hub.join_device(desk.person, "edge_2")
    both = [desk.device.device_id, other.device_id]
    await desk.add_member("any", "executor", deviceIds=both)

    async def chosen() -> str:
        roster = (await desk.start())["roster"]
        return next(each["deviceId"] for each in roster if each["name"] == "any")

    assert await chosen() == both[0]
    former = desk.run_id
    services = desk.hub.hub.services
    async with services.database.write() as connection:
        await connection.exec_driver_sql(
            f"UPDATE devices SET online = true WHERE device_id = '{both[1]}'"
        )
    assert await chosen() == both[1]
    assert (await desk.assignment(await desk.delegate("any")))["deviceId"] == both[1]
    run = await desk.person.get(f"/v1/team-runs/{former}")
    assert run["roster"][-1]["deviceId"] == both[0]
    await desk.person.request("DELETE", f"/v1/devices/{both[1]}")
    assert await chosen() == both[0]


@pytest.mark.requirement("teams.members")
async def test_teams_and_runs_are_their_owners_alone(desk: TeamDesk):
    eve = await desk.hub.join(desk.person, "Eve", "admin")
    assert (await eve.get("/v1/teams"))["items"] == []
    assert (await eve.get("/v1/team-runs"))["items"] == []
    for path in (desk.path, f"{desk.path}/state", f"{desk.path}/decisions"):
        assert (await eve.get(path, 404))["code"] == "unknown_team_run"
    thread = f"/v1/edges/hub.teams/threads/{desk.run_id}"
    assert (await eve.get(thread, 404))["code"] == "unknown_edge"
    await open_desk(desk.hub, eve, "edge_eve")
    assert (await eve.get(thread, 404))["code"] == "not_found"
    async with desk.hub.hub.services.database.read() as connection:
        found = await read_events(connection, eve.person_id, 0, 1_000)
    assert all(desk.run_id.encode() not in each.payload for each in found)


@pytest.mark.requirement("teams.members")
async def test_a_team_is_removed_once_nothing_runs(desk: TeamDesk):
    ada, path = desk.person, f"/v1/teams/{desk.team_id}"
    busy = await ada.request("DELETE", path)
    assert (busy.status_code, busy.json()["code"]) == (409, "team_busy")
    await ada.request("DELETE", f"{path}/members/{desk.members['ben']}")
    gone = await ada.request("DELETE", f"{path}/members/{desk.members['ben']}")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_member")
    # The run that began with it keeps it.
    await desk.complete(await desk.delegate("ben"))
    await desk.decide("finish")
    assert (await ada.request("DELETE", path)).status_code == 204
    assert (await ada.get(path, 404))["code"] == "unknown_team"
    assert (await ada.get("/v1/teams"))["items"] == []
    assert (await desk.state())["run"]["status"] == "finished"


class DecisionContract:
    """What holds for decisions in both databases."""

    @pytest_asyncio.fixture
    async def desk(self, tmp_path: Path, url: str | None) -> AsyncGenerator[TeamDesk]:
        settings: dict[str, Any] = {} if url is None else {"database": url}
        async with running_hub(tmp_path, **settings) as hub:
            yield await open_desk(hub, await hub.first_admin())

    @pytest.mark.requirement("teams.lock")
    async def test_decisions_at_once_are_taken_one_after_the_other(self, desk: TeamDesk):
        answers = await asyncio.gather(
            *(
                desk.send("delegate", next_worker="ann", instructions=f"part {number}")
                for number in range(9)
            )
        )
        codes = sorted(answer.json().get("code", "") for answer in answers)
        assert codes == [""] * 5 + ["too_many_active"] * 4
        state = await desk.state()
        assert [each["number"] for each in state["assignments"]] == [1, 2, 3, 4, 5]
        records = (await desk.person.get(f"{desk.path}/decisions"))["items"]
        assert [each["number"] for each in records] == list(range(1, 10))

    @pytest.mark.requirement("teams.lock")
    async def test_decisions_ends_and_a_cancellation_at_once_leave_nothing_open(
        self, desk: TeamDesk
    ):
        assignment_ids = [await desk.delegate(what=f"part {number}") for number in range(4)]
        for each in assignment_ids[:2]:
            await desk.begin(each)
        await asyncio.gather(
            desk.complete(assignment_ids[0]),
            desk.complete(assignment_ids[1]),
            desk.person.post(f"{desk.path}:cancel", None, 200),
            desk.send("delegate", next_worker="ben", instructions="late"),
        )
        statuses = [each["status"] for each in (await desk.state())["assignments"]]
        assert set(statuses) <= {"completed", "cancelled"}
        assert await desk.refusal("finish") == "team_run_ended"

    @pytest.mark.requirement("teams.decisions")
    async def test_an_accepted_decision_is_one_transaction_with_the_task_on_the_device(
        self, desk: TeamDesk
    ):
        before = len(await desk.read_events())
        route = {"next_worker": "ann", "instructions": "write", "subtask_id": "impl"}
        record = await desk.decide("delegate", **route, reasoning="she knows how", key="one")
        again = await desk.decide("delegate", **route, reasoning="she knows how", key="one")
        assert again == record
        events = (await desk.read_events())[before:]
        assert [name for name, _ in events] == [
            "team.route.decided",
            "team.task.created",
            "assignment.created",
        ]
        ids = {"team_id": desk.team_id, "team_run_id": desk.run_id}
        decided, task, created = (payload for _, payload in events)
        assert decided == {
            **ids,
            **route,
            "action": "delegate",
            "reasoning": "she knows how",
            "decision_id": record["decisionId"],
            "decided_by": record["decidedBy"],
        }
        state = await desk.state()
        assert ([task["task"]], [created["assignment"]]) == (state["tasks"], state["assignments"])
        row = await desk.read_task(record["assignmentId"])
        assert (row["prompt"], row["status"]) == ("write", "queued")
        assert msgspec.json.decode(row["team"]) == {
            **ids,
            "team_member_id": desk.members["ann"],
            "team_member_role": "executor",
        }
        await desk.begin(record["assignmentId"])
        name, event = (await desk.read_events())[-1]
        assert name == "assignment.dispatched"
        assert {key: event[key] for key in ("assignment_id", "team_task_id", "agent_task_id")} == {
            "assignment_id": record["assignmentId"],
            "team_task_id": record["teamTaskId"],
            "agent_task_id": row["task_id"],
        }

    @pytest.mark.requirement("teams.outcomes")
    async def test_the_end_of_a_task_is_that_of_its_assignment(self, desk: TeamDesk):
        done, failed = await desk.delegate(), await desk.delegate("ben")
        await desk.complete(done, "all of it")
        await desk.fail(failed)
        state = await desk.state()
        first, second = state["assignments"]
        assert (first["status"], first["resultSummary"], first["tokens"]) == (
            "completed",
            "all of it",
            USED["totalTokens"],
        )
        assert (second["status"], second["error"]["code"]) == ("failed", "agent_failed")
        assert state["lastOutcome"] == second
        assert [name for name, _ in await desk.read_events()][-2:] == [
            "assignment.dispatched",
            "assignment.failed",
        ]


class TestDecisionsOnSqlite(DecisionContract):
    @pytest.fixture
    def url(self) -> None:
        return None


class TestDecisionsOnPostgres(DecisionContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)


@pytest.mark.requirement("teams.outcomes")
async def test_a_task_and_its_assignment_end_together_or_not_at_all(
    desk: TeamDesk, monkeypatch: pytest.MonkeyPatch
):
    assignment_id = await desk.delegate()
    await desk.begin(assignment_id)

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(assignment_outcomes, "emit_assignment", fail)
        with pytest.raises(RuntimeError):
            await desk.complete(assignment_id)
    assert (await desk.read_task(assignment_id))["status"] == "delivered"
    assert (await desk.assignment(assignment_id))["status"] == "dispatched"
    await desk.complete(assignment_id)
    # The same end again changes nothing.
    before = await desk.read_events()
    await desk.complete(assignment_id)
    assert await desk.read_events() == before


@pytest.mark.requirement("teams.decisions")
async def test_work_is_reviewed_sent_back_approved_and_the_run_finished(desk: TeamDesk):
    first = await desk.decide(
        "delegate", next_worker="ann", instructions="write", context={"file": "a.txt"}
    )
    assert (await desk.read_task(first["assignmentId"]))["prompt"] == (
        'write\n\nContext: {"file":"a.txt"}'
    )
    await desk.complete(first["assignmentId"], "wrote a.txt")
    review = await desk.decide("review", next_worker="rex", instructions="is it right?")
    prompt = (await desk.read_task(review["assignmentId"]))["prompt"]
    assert prompt.startswith("is it right?\n\nTo be reviewed: write\n\nResult (device dev_")
    assert prompt.endswith("wrote a.txt")
    await desk.complete(review["assignmentId"], "a word is missing")
    back = await desk.decide("approve", approved=False, feedback="add the word")
    assert back["teamTaskId"] == first["teamTaskId"]
    redone = await desk.read_task(back["assignmentId"])
    earlier = (await desk.assignment(first["assignmentId"]))["threadId"]
    assert (redone["prompt"], redone["thread_id"]) == ("add the word", earlier)
    task = (await desk.state())["tasks"][0]
    assert (task["approved"], task["feedback"]) == (False, "add the word")
    await desk.complete(back["assignmentId"], "added")
    await desk.decide("approve", approved=True)
    assert (await desk.state())["tasks"][0]["approved"] is True
    await desk.decide("finish", summary="a.txt is there")
    run = (await desk.state())["run"]
    assert (run["status"], run["summary"]) == ("finished", "a.txt is there")
    assert "reason" not in run
    await desk.start()
    await desk.decide("finish", blocked_reason="no disk")
    assert (await desk.state())["run"] | {"status": "failed", "reason": "no disk"} == (
        await desk.state()
    )["run"]


@pytest.mark.requirement("teams.merge")
async def test_only_the_assignment_that_was_approved_can_be_merged(desk: TeamDesk):
    async def merge_code(assignment_id: str) -> str:
        path = f"{desk.path}/assignments/{assignment_id}:merge"
        return (await desk.person.request("POST", path, {})).json()["code"]

    # What is still being done is not approved ahead of its end.
    first = await desk.delegate(subtask_id="one")
    approval = {"approved": True, "subtask_id": "one"}
    assert await desk.refusal("approve", **approval) == "route_incomplete"
    await desk.complete(first)
    assert await merge_code(first) == "work_not_approved"
    await desk.decide("approve", **approval)
    assert (await desk.state())["tasks"][0]["approvedAssignmentId"] == first
    # It was done outside of any repository: nothing else keeps it from being merged.
    assert await merge_code(first) == "no_worktree"
    # What is done after an approval is not what was approved.
    second = await desk.delegate(what="write more", subtask_id="one")
    await desk.complete(second)
    assert await merge_code(second) == "work_not_approved"
    assert await merge_code(first) == "work_not_approved"
    await desk.decide("approve", **approval)
    assert await merge_code(second) == "no_worktree"


@pytest.mark.requirement("teams.control")
async def test_a_run_is_paused_resumed_and_cancelled_with_its_workers_in_order(desk: TeamDesk):
    ada = desk.person
    first, second = await desk.delegate(), await desk.delegate("ben")
    await desk.begin(first)
    paused = await ada.post(f"{desk.path}:pause", None, 200)
    assert (paused["status"], await ada.post(f"{desk.path}:pause", None, 200)) == ("paused", paused)
    refused = await desk.send("delegate", next_worker="ann", instructions="more")
    assert (refused.status_code, refused.json()["code"]) == (409, "team_run_paused")
    # What was given before goes on.
    await desk.complete(first)
    assert (await ada.post(f"{desk.path}:resume", None, 200))["status"] == "running"
    third = await desk.delegate()
    await desk.begin(third)
    cancelled = await ada.post(f"{desk.path}:cancel", None, 200)
    assert cancelled["status"] == "cancelled"
    assert (await desk.assignment(second))["status"] == "cancelled"
    # The device has begun this one, so that it is asked to stop it, and says when it has.
    assert (await desk.assignment(third))["status"] == "dispatched"
    assert (await desk.read_task(third))["closing"] == "cancel"
    await desk.fail(third, "cancelled")
    assert [
        payload["assignment_id"]
        for name, payload in await desk.read_events()
        if name == "assignment.cancelled"
    ] == [second, third]
    assert await ada.post(f"{desk.path}:cancel", None, 200) == cancelled
    ended = await ada.request("POST", f"{desk.path}:pause")
    assert (ended.status_code, ended.json()["code"]) == (409, "team_run_ended")


@pytest.mark.requirement("teams.control")
async def test_work_is_given_to_another_member_who_came_in_the_middle(desk: TeamDesk):
    ada = desk.person
    stuck = await desk.delegate(what="write", subtask_id="impl")
    await desk.begin(stuck)
    path = f"{desk.path}/assignments/{stuck}:reassign"
    cy = await desk.add_member("cy", "executor")
    unknown = await ada.request("POST", path, {"teamMemberId": cy})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_member")
    joined = await ada.post(f"{desk.path}/members", {"teamMemberId": cy}, 200)
    assert [each["name"] for each in joined["roster"]] == ["lead", "ann", "ben", "rex", "cy"]
    assert await ada.post(f"{desk.path}/members", {"teamMemberId": cy}, 200) == joined
    wrong = await ada.request("POST", path, {"teamMemberId": desk.members["rex"]})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "worker_unknown")
    moved = await ada.post(path, {"teamMemberId": cy}, 200)
    assert (await desk.read_task(stuck))["closing"] == "cancel"
    assignment = await desk.assignment(moved["assignmentId"])
    assert (assignment["replaces"], assignment["teamMemberId"]) == (stuck, cy)
    assert (assignment["instructions"], assignment["teamTaskId"]) == ("write", moved["teamTaskId"])
    assert len((await desk.state())["tasks"]) == 1
    await desk.complete(moved["assignmentId"])
    late = await ada.request(
        "POST", f"{desk.path}/assignments/{moved['assignmentId']}:reassign", {"teamMemberId": cy}
    )
    assert (late.status_code, late.json()["code"]) == (409, "assignment_ended")
    none = await ada.request(
        "POST", f"{desk.path}/assignments/asg_none:reassign", {"teamMemberId": cy}
    )
    assert (none.status_code, none.json()["code"]) == (404, "unknown_assignment")


@pytest.mark.requirement("teams.control")
async def test_reassigning_frees_a_run_from_an_assignment_that_took_too_long(desk: TeamDesk):
    slow = await desk.delegate()
    await desk.begin(slow)
    await desk.pass_time(30 * 60)
    assert await desk.refusal("delegate", next_worker="ben", instructions="x") == (
        "assignment_timed_out"
    )
    path = f"{desk.path}/assignments/{slow}:reassign"
    await desk.person.post(path, {"teamMemberId": desk.members["ben"]}, 200)
    await desk.delegate(what="something else")


class TeamScreen:
    """A state of a run that is read once and kept current by events alone."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.as_of = Cursor.parse(state["asOf"]).seq
        self.run = state["run"]
        self.tasks = {each["teamTaskId"]: each for each in state["tasks"]}
        self.assignments = {each["assignmentId"]: each for each in state["assignments"]}

    def apply(self, kind: str, payload: dict[str, Any]) -> None:
        if payload.get("team_run_id") != self.run["teamRunId"]:
            return
        if kind == "team.run.updated":
            self.run = payload["run"]
        elif kind.startswith("team.task."):
            self.tasks[payload["team_task_id"]] = payload["task"]
        elif kind.startswith("assignment."):
            self.assignments[payload["assignment_id"]] = payload["assignment"]

    def shown(self) -> dict[str, Any]:
        assignments = sorted(self.assignments.values(), key=lambda each: each["number"])
        ended = [each for each in assignments if "endedAt" in each]
        last = max(ended, key=lambda each: (each["endedAt"], each["number"]), default=None)
        used = sum(each.get("tokens", 0) for each in assignments)
        used += self.run.get("supervision", {}).get("tokens", 0)
        return {
            "run": self.run,
            "tasks": sorted(self.tasks.values(), key=lambda each: each["number"]),
            "assignments": assignments,
            "budget": {"tokens": self.run["budgetTokens"], "usedTokens": used},
            **({} if last is None else {"lastOutcome": last}),
        }


async def step(desk: TeamDesk, random: Random) -> None:
    """Something that may happen to a run."""
    state = await desk.state()
    assignments = [each["assignmentId"] for each in state["assignments"]]
    opened = [each["assignmentId"] for each in state["assignments"] if "endedAt" not in each]
    worker, word = random.choice(("ann", "ben", "zoe")), random.choice("abcd")
    match random.choice(
        ("delegate",) * 3 + ("end",) * 4 + ("review", "approve", "move", "control")
    ):
        case "delegate":
            parent = random.choice((None, *"abc"))
            named = {} if parent is None else {"parent_task_id": parent, "subtask_id": word}
            await desk.send("delegate", next_worker=worker, instructions=word, **named)
        case "review":
            await desk.send("review", next_worker="rex", instructions=word)
        case "approve":
            approved = random.random() < 0.5
            await desk.send("approve", approved=approved, feedback=word)
        case "end" if opened:
            deed = random.choice((desk.complete, desk.fail, desk.begin))
            await deed(random.choice(opened))
        case "move" if assignments:
            path = f"{desk.path}/assignments/{random.choice(assignments)}:reassign"
            member = desk.members[random.choice(("ann", "ben", "rex"))]
            await desk.person.request("POST", path, {"teamMemberId": member})
        case "control":
            verb = random.choice(("pause", "resume", "resume", "resume"))
            await desk.person.request("POST", f"{desk.path}:{verb}")
        case _:
            await desk.pass_time(random.choice((1, 60, 31 * 60)))


async def hold_law(desk: TeamDesk, schedules: int, seed: int) -> None:
    random = Random(seed)
    for schedule in range(schedules):
        await desk.start(budgetTokens=random.choice((60, 1_000)))
        screen = TeamScreen(await desk.state())
        for number in range(random.randint(4, 25)):
            await step(desk, random)
            if random.random() < 0.3 or number > 20:
                await check_law(desk, screen, f"seed {seed}, schedule {schedule}, step {number}")
                screen = TeamScreen(await desk.state())
        verb = random.choice(("cancel", "finish"))
        if verb == "cancel":
            await desk.person.post(f"{desk.path}:cancel", None, 200)
        else:
            await desk.send("finish", summary="all")
        await check_law(desk, screen, f"seed {seed}, schedule {schedule}, end")


async def check_law(desk: TeamDesk, screen: TeamScreen, where: str) -> None:
    fresh = await desk.state()
    upto = Cursor.parse(fresh.pop("asOf")).seq
    async with desk.hub.hub.services.database.read() as connection:
        found = await read_events(connection, desk.person.person_id, screen.as_of, 100_000)
    for event in found:
        if event.seq <= upto:
            screen.apply(event.type, msgspec.json.decode(event.payload))
    assert screen.shown() == fresh, where


@pytest.mark.requirement("teams.law")
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
async def test_an_old_state_and_later_events_are_a_new_state(desk: TeamDesk):
    await hold_law(desk, count_trials(full=200, share=4), 5)


@pytest.mark.requirement("teams.law")
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
async def test_the_law_of_states_holds_on_postgres(tmp_path: Path, postgres: PostgresServer):
    url = await create_postgres_database(postgres)
    async with running_hub(tmp_path, database=url) as hub:
        desk = await open_desk(hub, await hub.first_admin())
        await hold_law(desk, count_trials(full=50, share=2), 6)


@pytest.mark.requirement("teams.law")
async def test_the_law_of_states_notices_what_is_not_told(
    desk: TeamDesk, monkeypatch: pytest.MonkeyPatch
):
    apply = TeamScreen.apply

    def forget(self: TeamScreen, kind: str, payload: dict[str, Any]) -> None:
        if kind != "assignment.dispatched":
            apply(self, kind, payload)

    monkeypatch.setattr(TeamScreen, "apply", forget)
    screen = TeamScreen(await desk.state())
    await desk.begin(await desk.delegate())
    with pytest.raises(AssertionError):
        await check_law(desk, screen, "")


@pytest.mark.requirement("teams.law")
async def test_lists_of_teams_and_runs_are_kept_current_by_events(desk: TeamDesk):
    ada = desk.person
    before = {name: await ada.get(f"/v1/{name}") for name in ("teams", "team-runs")}
    rows = {
        "teams": {each["teamId"]: each for each in before["teams"]["items"]},
        "team-runs": {each["teamRunId"]: each for each in before["team-runs"]["items"]},
    }
    await desk.add_member("cy", "executor")
    await desk.decide("finish")
    await desk.create_team()
    await desk.start()
    await ada.request("DELETE", f"/v1/teams/{before['teams']['items'][0]['teamId']}")
    async with desk.hub.hub.services.database.read() as connection:
        after = Cursor.parse(before["teams"]["asOf"]).seq
        found = await read_events(connection, ada.person_id, after, 1_000)
    for event in found:
        payload = msgspec.json.decode(event.payload)
        match event.type:
            case "team.updated":
                rows["teams"][payload["team_id"]] = payload["team"]
            case "team.removed":
                del rows["teams"][payload["team_id"]]
            case "team.run.updated":
                rows["team-runs"][payload["team_run_id"]] = payload["run"]
            case _:
                assert event.type not in rows
    for name, key in (("teams", "teamId"), ("team-runs", "teamRunId")):
        fresh = (await ada.get(f"/v1/{name}"))["items"]
        assert rows[name] == {each[key]: each for each in fresh}
    only = (await ada.get(f"/v1/team-runs?teamId={desk.team_id}"))["items"]
    assert [each["teamRunId"] for each in only] == [desk.run_id]


async def play_run(desk: TeamDesk) -> None:
    """A run with all that there is in one."""
    await desk.complete(await desk.delegate(subtask_id="impl"))
    review = await desk.decide("review", next_worker="rex", instructions="look")
    await desk.complete(review["assignmentId"], "not yet")
    await desk.refusal("delegate", next_worker="zoe", instructions="write")
    back = await desk.decide("approve", approved=False, feedback="again")
    await desk.fail(back["assignmentId"])
    await desk.complete(await desk.delegate("ben", subtask_id="impl"))
    await desk.decide("approve", approved=True)
    await desk.delegate("ben", "left over", parent_task_id="impl")
    await desk.decide("finish", summary="built")


@pytest.mark.requirement("teams.facts")
async def test_the_facts_of_a_run_are_its_thread_with_roster_board_handoffs_and_reviews(
    desk: TeamDesk,
):
    await play_run(desk)
    facts = await desk.read_facts()
    assert [each["sequence"] for each in facts] == list(range(1, len(facts) + 1))
    state = await desk.state()
    thread = f"/v1/edges/hub.teams/threads/{desk.run_id}"
    assert (await desk.person.get(thread))["title"] == "Build it"
    shown = (await desk.person.get(f"{thread}/projection"))["state"]
    team = shown["teamWorkbench"]
    assert (team["teamId"], team["teamPhase"]) == (desk.team_id, "finished")
    assert {
        each["name"]: (each["role"], each["status"]) for each in team["rosterNodes"].values()
    } == {
        "lead": ("supervisor", "spawned"),
        "ann": ("executor", "failed"),
        "ben": ("executor", "cancelled"),
        "rex": ("reviewer", "completed"),
    }
    tasks = {each["teamTaskId"]: each for each in state["tasks"]}
    board = team["workItems"]
    assert {key: each["title"] for key, each in board.items()} == {
        key: each["title"] for key, each in tasks.items()
    }
    assert [each["status"] for each in board.values()] == ["completed", "completed", "cancelled"]
    impl, _, left = board
    assert board[left]["parentTaskId"] == impl
    assert [each["status"] for each in team["handoffEvents"].values()] == [
        "completed",
        "completed",
        "rejected",
        "completed",
        "rejected",
    ]
    assert list(team["handoffEvents"]) == [each["assignmentId"] for each in state["assignments"]]
    verdicts = [each.get("verdict") for each in team["reviewEvents"]]
    assert verdicts == [None, None, "changes_requested", "approved"]
    routes = [each["payload"] for each in facts if each["eventClass"] == "routing.not_possible"]
    assert [each["reasonCode"] for each in routes] == ["worker_unknown"]
    assert shown["diagnostics"].get("remarks", []) == []
    # What a member did can be found from the facts of the run.
    ended = next(each for each in facts if each["eventClass"] == "task.completed")
    assert ended["payload"]["agentTaskId"] == state["assignments"][0]["agentTaskId"]
    assert ended["payload"]["childThreadId"] == state["assignments"][0]["threadId"]


@pytest.mark.requirement("teams.facts")
async def test_secrets_and_long_texts_do_not_travel_in_facts(desk: TeamDesk):
    secret = "sk-ant-api03-" + "a1B2" * 20
    await desk.delegate(what=f"use {secret}" + "\n" * 19_000 + ".")
    facts = await desk.read_facts()
    text = msgspec.json.encode(facts).decode()
    assert secret not in text
    created = next(each for each in facts if each["eventClass"] == "task.created")
    assert len(msgspec.json.encode(created)) < PAYLOAD_CHARACTERS
    assert {"output.redacted", "output.spilled"} <= {each["eventClass"] for each in facts}
    await desk.hub.hub.teams.write_facts()
    await desk.delegate("ben")
    again = await desk.read_facts()
    assert [each["sequence"] for each in again] == list(range(1, len(again) + 1))


@pytest.mark.requirement("teams.facts")
async def test_events_become_facts_once_wherever_a_hub_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The journal is cut off before and after an append, and read by a Hub that starts again."""
    clock, append = SteppedClock(), SqliteJournal.append
    broken: list[str] = []

    async def append_and_fail(self: SqliteJournal, *args: Any, **more: Any) -> Any:
        if not broken:
            return await append(self, *args, **more)
        if broken[0] == "after":
            await append(self, *args, **more)
        raise OSError("the power is off")

    monkeypatch.setattr(SqliteJournal, "append", append_and_fail)
    desk: TeamDesk | None = None
    for how in ("before", "after", ""):
        async with running_hub(tmp_path, clock) as hub:
            broken.clear()
            await hub.hub.teams.write_facts()
            if desk is None:
                desk = await open_desk(hub, await hub.first_admin())
            else:
                desk = restore_desk(hub, await hub.sign_in("Ada"), desk)
            broken[:] = [how] if how else []
            await desk.complete(await desk.delegate(what=f"part {how}"))
            # In this process, too, the next look finds what is missing.
            if how:
                with pytest.raises(OSError, match="power"):
                    await hub.hub.teams.write_facts()
                broken.clear()
                if how == "after":
                    await hub.hub.teams.write_facts()
                broken.append("before")
    assert desk is not None
    async with running_hub(tmp_path, clock) as hub:
        desk = restore_desk(hub, await hub.sign_in("Ada"), desk)
        broken.clear()
        facts = await desk.read_facts()
        names = [name for name, _ in await desk.read_events() if name != "team.updated"]
    places = [find_place(each["id"]) for each in facts]
    assert len({each["id"] for each in facts}) == len(facts)
    assert [each["sequence"] for each in facts] == list(range(1, len(facts) + 1))
    assert len(set(places)) == len(names)
    assert places == sorted(places, key=lambda place: place or ("", 0))
    async with SqliteJournal(
        str(tmp_path / "hub" / "teams" / team_journal.JOURNAL_FILE)
    ) as journal:
        assert (await journal.verify()).ok


def restore_desk(hub: RunningHub, person: HubPerson, former: TeamDesk) -> TeamDesk:
    """The same run, after a restart of its Hub."""
    desk = TeamDesk(hub, person, former.device)
    desk.team_id, desk.run_id, desk.members = former.team_id, former.run_id, former.members
    return desk


@pytest.mark.requirement("teams.facts")
async def test_a_hub_that_does_not_look_where_its_journal_ends_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def forget(_: SqliteJournal) -> None:
        return None

    clock = SteppedClock()
    async with running_hub(tmp_path, clock) as hub:
        desk = await open_desk(hub, await hub.first_admin())
        await desk.read_facts()
        await desk.delegate()
    monkeypatch.setattr(team_journal, "_find_last_event", forget)
    async with running_hub(tmp_path, clock) as hub:
        with pytest.raises(ConflictingFact):
            await hub.hub.teams.write_facts()


@pytest.mark.requirement("teams.facts")
async def test_a_second_process_leaves_the_journal_to_the_first(
    tmp_path: Path, postgres: PostgresServer
):
    url = await create_postgres_database(postgres)
    clock = SteppedClock()
    async with running_hub(tmp_path, clock, database=url) as first:
        desk = await open_desk(first, await first.first_admin())
        async with running_hub(tmp_path, clock, database=url) as second:
            other = restore_desk(second, await second.sign_in("Ada"), desk)
            await other.delegate()
            await second.hub.teams.write_facts()
        assert [each["eventClass"] for each in await desk.read_facts()][-1] == "handoff.requested"


@pytest.mark.requirement("teams.members")
async def test_no_device_can_take_the_place_of_the_journal_of_teams(hub: RunningHub):
    await hub.first_admin()
    body = {"name": "laptop", "agents": ["demo"], "edgeId": "hub.teams"}
    answer = await hub.post("/v1/device-authorizations", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


@pytest.mark.requirement("teams.merge")
async def test_an_answer_that_cannot_be_read_ends_a_merge_as_refused(desk: TeamDesk):
    done = await desk.delegate()
    await desk.complete(done)
    await desk.decide("approve", approved=True)
    services, link = desk.hub.hub.services, desk.hub.hub.links.link
    async with services.database.write() as connection:
        changes = msgspec.json.encode(TaskChanges(available=True)).decode()
        await connection.execute(update(team_assignments).values(changes=changes))
        await connection.execute(update(devices).values(online=True))
    path = f"{desk.path}/assignments/{done}:merge"
    for status, content in ((200, b"<html>"), (502, b"[]"), (409, b"\xff")):
        asking = asyncio.create_task(desk.person.request("POST", path, {}))
        query = select(deliveries.c.delivery_id).where(
            deliveries.c.kind == "relay", deliveries.c.state.in_(OPEN_STATES)
        )
        async with asyncio.timeout(WAIT):
            while True:
                async with services.database.read() as connection:
                    delivery_id = (await connection.execute(query)).scalars().first()
                if delivery_id is not None:
                    break
        answer = RelayAnswer(status=status, headers={}, content=content)
        assert await link.take_answer(desk.device.device_id, delivery_id, answer)
        refused = await asking
        assert (refused.status_code, refused.json()["code"]) == (409, "merge_unavailable")


@pytest.mark.requirement("teams.control")
async def test_a_task_that_cannot_be_stopped_keeps_no_other_from_it(
    desk: TeamDesk, monkeypatch: pytest.MonkeyPatch
):
    stuck, other = await desk.delegate(), await desk.delegate("ben")
    for each in (stuck, other):
        await desk.begin(each)
    stuck_id = (await desk.assignment(stuck))["agentTaskId"]

    async def fail(change: HubChange, row: RowMapping, *more: Any) -> AgentTask:
        if row["task_id"] == stuck_id:
            raise RuntimeError("no")
        return await stop_task(change, row, *more)

    with monkeypatch.context() as patch:
        patch.setattr(team_runs, "stop_task", fail)
        cancelled = await desk.person.post(f"{desk.path}:cancel", None, 200)
    assert cancelled["status"] == "cancelled"
    assert (await desk.read_task(other))["closing"] == "cancel"
    assert (await desk.read_task(stuck))["closing"] is None
    await team_runs.stop_due_tasks(desk.hub.hub.services)
    assert (await desk.read_task(stuck))["closing"] == "cancel"


@pytest.mark.requirement("teams.pack")
async def test_a_pack_names_the_threads_that_are_not_in_it(desk: TeamDesk, tmp_path: Path):
    done = await desk.delegate()
    await desk.complete(done)
    thread_id = (await desk.assignment(done))["threadId"]
    # Of two first ones at once, one makes the key; both wait for what is not written yet.
    requests = (desk.person.request("GET", f"{desk.path}/evidence") for _ in range(2))
    answer, other = await asyncio.gather(*requests)
    assert (answer.status_code, other.status_code) == (200, 200), other.text
    path = tmp_path / "run.factpack.zip"
    path.write_bytes(answer.content)
    with zipfile.ZipFile(path) as archive:
        document = msgspec.json.decode(archive.read("bundle.json"), type=BundleDocument)
    left = LeftOut(source="edge_1", thread_id=thread_id, reason="private_or_not_uploaded")
    assert document.left_out == (left,)
    assert [pack.threads for pack in document.packs] == [(desk.run_id,)]
    assert verify_file(path).ok
    bo = await desk.hub.join(desk.person, "Bo")
    assert (await bo.request("GET", f"{desk.path}/evidence")).status_code == 404
