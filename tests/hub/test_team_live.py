"""A team on a real Edge, whose supervisor decides by REST or is an agent there: every event of a
run on a socket, and the same from Python and from the command line.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from factwire.client import EdgeProblem, HubClient
from factwire.hub.request_rates import RequestRates
from tests.cli.cli_commands import CommandOutput, Factwire
from tests.cli.conftest import factwire as factwire_fixture
from tests.edge.edges import running_edge
from tests.hub import test_hub_client
from tests.hub.served_hubs import WAIT, served_hub
from tests.hub.served_hubs import HubClient as Screen
from tests.hub.supervising_agents import STEPS, configuration_with_lead
from tests.hub.test_hub_client import LinkedThread, spend_nothing
from tests.hub.test_link_live import LinkedEdge
from tests.runtime.hostile_repository import git, repository

factwire = factwire_fixture
at = test_hub_client.at
hub = test_hub_client.hub

MEMBERS = {"lead": "supervisor", "ann": "executor", "ben": "executor", "rex": "reviewer"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def linked(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[LinkedEdge]:
    folder: Path = tmp_path_factory.mktemp("team")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestRates, "spend", spend_nothing)
        conf = configuration_with_lead(folder)
        async with served_hub(folder) as served, running_edge(folder, configuration=conf) as edge:
            ada = await served.first_admin()
            linked = LinkedEdge(served, edge, ada, ada)
            await linked.join()
            yield linked


class LiveRun:
    """A run of a team whose members are on a real device, and a screen that shows it."""

    def __init__(self, linked: LinkedEdge, screen: Screen) -> None:
        self.linked = linked
        self.screen = screen
        self.path = ""

    async def start(self) -> str:
        ada = self.linked.ada
        team_id = (await ada.post("/v1/teams", {"name": "builders"}))["teamId"]
        await self.screen.next("team.updated")
        for name, role in MEMBERS.items():
            agent = {"agentType": "demo", "deviceIds": [self.linked.device_id]}
            body = {"name": name, "role": role, **({} if role == "supervisor" else agent)}
            await ada.post(f"/v1/teams/{team_id}/members", body)
        run = await ada.post("/v1/team-runs", {"teamId": team_id, "goal": "Show everything"})
        self.path = f"/v1/team-runs/{run['teamRunId']}"
        event = (await self.screen.next("team.run.updated"))["payload"]
        assert (event["change"], event["run"]) == ("started", run)
        return team_id

    async def decide(self, action: str, status: int = 200, **fields: Any) -> dict[str, Any]:
        body = {"action": action, **fields}
        return await self.linked.ada.post(f"{self.path}/decisions", body, status)

    async def wait_for(self, type_: str, record: dict[str, Any]) -> dict[str, Any]:
        """What is told of an assignment."""
        while True:
            found = (await self.screen.next(type_))["payload"]
            if found["assignment_id"] == record["assignmentId"]:
                return found["assignment"]

    async def wait_for_approval(self, record: dict[str, Any]) -> dict[str, Any]:
        """What the agent of an assignment asks."""
        state = await self.linked.ada.get(f"{self.path}/state")
        run_id = next(
            each["edgeRunId"]
            for each in state["assignments"]
            if each["assignmentId"] == record["assignmentId"]
        )
        async with asyncio.timeout(WAIT):
            while True:
                rows = (await self.linked.ada.get("/v1/approvals"))["items"]
                found = [row for row in rows if row["runId"] == run_id]
                if found:
                    return found[0]
                await asyncio.sleep(0.05)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.requirement("teams.live")
@pytest.mark.requirement("teams.approvals")
@pytest.mark.requirement("hub.socket.frames")
async def test_a_team_on_a_real_device_delegates_reviews_approves_and_finishes(
    linked: LinkedEdge,
):
    async with linked.hub.screen(linked.ada) as screen:
        live = LiveRun(linked, screen)
        team_id = await live.start()
        # Delegate.
        written = await live.decide("delegate", next_worker="ann", instructions="help")
        decided = (await screen.next("team.route.decided"))["payload"]
        assert decided["decision_id"] == written["decisionId"]
        await screen.next("team.task.created")
        await live.wait_for("assignment.created", written)
        await live.wait_for("assignment.dispatched", written)
        done = await live.wait_for("assignment.completed", written)
        assert done["resultSummary"]
        assert done["tokens"] > 0
        run = await linked.edge.get(f"/v1/runs/{done['edgeRunId']}")
        assert (run["threadId"], run["prompt"]) == (done["threadId"], "help")
        # A route that is refused.
        refused = await live.decide("delegate", 400, next_worker="rex", instructions="help")
        rejected = (await screen.next("team.route.rejected"))["payload"]
        assert refused["code"] == rejected["reason"] == "worker_unknown"
        # A review, which sends the work back.
        review = await live.decide("review", next_worker="rex", instructions="help me check")
        assert (await live.wait_for("assignment.completed", review))["action"] == "review"
        back = await live.decide("approve", approved=False, feedback="approve")
        assert (await screen.next("team.task.updated"))["payload"]["task"]["approved"] is False
        again = await live.wait_for("assignment.dispatched", back)
        assert (back["teamTaskId"], again["threadId"]) == (written["teamTaskId"], done["threadId"])
        # What the agent asks now is decided by a person.
        approval = await live.wait_for_approval(back)
        body = {"decision": "allow", "argsHash": approval["argsHash"]}
        await linked.ada.post(f"/v1/approvals/{approval['approvalId']}/decide", body, 200)
        event = (await screen.next("team.approval.decided"))["payload"]
        check_approval(linked, event, approval, back)
        await linked.edge.allow_all(again["edgeRunId"])
        await live.wait_for("assignment.completed", back)
        await live.decide("approve", approved=True)
        # Work that fails, and work that is stopped with the run.
        failing = await live.decide("delegate", next_worker="ben", instructions="fail")
        begun = await live.wait_for("assignment.dispatched", failing)
        await linked.edge.allow_all(begun["edgeRunId"])
        assert (await live.wait_for("assignment.failed", failing))["error"]["code"]
        waiting = await live.decide("delegate", next_worker="ben", instructions="approve")
        await live.wait_for("assignment.dispatched", waiting)
        await live.wait_for_approval(waiting)
        await live.decide("finish", summary="everything was shown")
        await live.wait_for("assignment.cancelled", waiting)
        await linked.ada.request("DELETE", f"/v1/teams/{team_id}")
        assert (await screen.next("team.removed"))["payload"] == {"team_id": team_id}
    await check_end(linked, live.path)


async def check_end(linked: LinkedEdge, path: str) -> None:
    """What is there to read of the run, and of its facts."""
    state = await linked.ada.get(f"{path}/state")
    assert (state["run"]["status"], state["run"]["summary"]) == ("finished", "everything was shown")
    assert [each["status"] for each in state["assignments"]] == [
        *("completed", "completed", "completed", "failed", "cancelled")
    ]
    used = sum(each.get("tokens", 0) for each in state["assignments"])
    assert state["budget"]["usedTokens"] == used > 0
    await linked.hub.hub.teams.write_facts()
    shown = await linked.ada.get(
        f"/v1/edges/hub.teams/threads/{state['run']['teamRunId']}/projection"
    )
    board = shown["state"]["teamWorkbench"]["workItems"]
    assert [each["status"] for each in board.values()] == [
        *("completed", "completed", "failed", "cancelled")
    ]


def check_approval(
    linked: LinkedEdge, event: dict[str, Any], approval: dict[str, Any], record: dict[str, Any]
) -> None:
    """What is told of a decision is about exactly what was asked."""
    assert event["assignment_id"] == record["assignmentId"]
    assert (event["approval_id"], event["decision"]) == (approval["approvalId"], "allow")
    assert event["edge_run_id"] == approval["runId"] == event["edge_control"]["runId"]
    assert event["decided_by"]["userId"] == linked.ada.person_id
    assert event["edge_control"]["requestId"] == approval["requestId"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.requirement("teams.supervisors")
async def test_an_agent_on_a_real_device_leads_a_run_to_its_end(linked: LinkedEdge):
    ada, device_ids = linked.ada, [linked.device_id]
    team_id = (await ada.post("/v1/teams", {"name": "led"}))["teamId"]
    for name, role in {"ann": "executor", "rex": "reviewer", "lead": "supervisor"}.items():
        agent = "lead" if role == "supervisor" else "demo"
        body = {"name": name, "role": role, "agentType": agent, "deviceIds": device_ids}
        await ada.post(f"/v1/teams/{team_id}/members", body)
    async with linked.hub.screen(ada) as screen:
        run = await ada.post("/v1/team-runs", {"teamId": team_id, "goal": "Help"})
        path, changes = f"/v1/team-runs/{run['teamRunId']}", list[str]()
        while changes.count("supervisor_answered") < len(STEPS):
            changes.append((await screen.next("team.run.updated"))["payload"]["change"])
    turn = ["supervisor_asked", "supervisor_answered"]
    assert changes == ["started", *turn * (len(STEPS) - 1), turn[0], "ended", turn[1]]
    state = await ada.get(f"{path}/state")
    found = state["run"]["supervision"]
    assert (state["run"]["status"], state["run"]["summary"]) == ("finished", "helped")
    assert (found["turn"], found["tokens"]) == (len(STEPS), 3 * len(STEPS))
    records = (await ada.get(f"{path}/decisions"))["items"]
    assert [each["decision"]["action"] for each in records] == STEPS
    assert [each.get("reason") for each in records] == ["worker_unknown", *[None] * 5]
    # All turns are one thread, in which each decision is structured output.
    own: dict[str, Any] = {"threadId": found["threadId"], "limit": 1_000}
    assert len((await linked.edge.get("/v1/runs", **{**own, "limit": 100}))["items"]) == len(STEPS)
    facts = (await linked.edge.get("/v1/facts", **own))["items"]
    routes = [each["fact"] for each in facts if each["fact"]["eventClass"] == "routing.decided"]
    assert [each["payload"]["action"] for each in routes] == STEPS


@pytest.mark.requirement("teams.command")
def test_a_team_is_used_from_python(hub: HubClient):
    device = hub.find_device()
    team = hub.create_team("builders")
    hub.add_team_member(team.team_id, "me", "supervisor")
    places: dict[str, Any] = {"agent": "demo", "device_ids": [device.device_id]}
    ann = hub.add_team_member(team.team_id, "ann", "executor", **places)
    spare = hub.add_team_member(team.team_id, "spare", "executor", **places)
    hub.remove_team_member(team.team_id, spare.team_member_id)
    assert [each.name for each in hub.team(team.team_id).members] == ["me", "ann"]
    run = hub.start_team_run(team.team_id, "Help", budget_tokens=1_000)
    record = hub.decide_route(run.team_run_id, "delegate", next_worker="ann", instructions="help")
    with hub.events(cursor=hub.team_run_state(run.team_run_id).as_of) as events:
        while hub.team_run_state(run.team_run_id).assignments[0].status != "completed":
            next(events)
    state = hub.team_run_state(run.team_run_id)
    assert state.last_outcome is not None
    assert state.last_outcome.assignment_id == record.assignment_id
    with pytest.raises(EdgeProblem, match="worker_unknown"):
        hub.decide_route(run.team_run_id, "delegate", next_worker="spare", instructions="help")
    ben = hub.add_team_member(team.team_id, "ben", "executor", **places)
    hub.add_run_member(run.team_run_id, ben.team_member_id)
    waiting = hub.decide_route(
        run.team_run_id, "delegate", next_worker="ann", instructions="approve"
    )
    assert waiting.assignment_id is not None
    moved = hub.reassign(run.team_run_id, waiting.assignment_id, ben.team_member_id)
    assert moved.team_task_id == waiting.team_task_id
    assert hub.pause_team_run(run.team_run_id).status == "paused"
    assert hub.resume_team_run(run.team_run_id).status == "running"
    with pytest.raises(EdgeProblem, match="no_supervising_agent"):
        hub.take_over_team_run(run.team_run_id)
    with pytest.raises(EdgeProblem, match="no_supervising_agent"):
        hub.hand_back_team_run(run.team_run_id)
    assert hub.cancel_team_run(run.team_run_id).status == "cancelled"
    assert hub.team_run(run.team_run_id).status == "cancelled"
    assert [each.team_run_id for each in hub.team_runs(team_id=team.team_id)] == [run.team_run_id]
    assert team.team_id in [each.team_id for each in hub.teams()]
    hub.remove_team(team.team_id)
    assert ann.role == "executor"


@pytest.mark.requirement("teams.command")
def test_a_team_is_used_from_the_command_line(
    at: LinkedThread, hub: HubClient, factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FACTWIRE_DATA", str(at.data))

    def call(*arguments: str) -> CommandOutput:
        return factwire("team", *arguments, "--hub", at.url)

    def made(*arguments: str) -> str:
        done = call(*arguments)
        assert done.code == 0, done.err
        return done.out.strip()

    wrong = call("create", "builders", "--member", "ann=boss:demo@laptop")
    assert (wrong.code, "member_invalid" in wrong.err) == (2, True)
    unknown = call("create", "builders", "--member", "ann=executor:demo@nowhere")
    assert (unknown.code, "unknown_device" in unknown.err) == (2, True)
    members = ("--member", "ann=executor:demo@laptop", "--member", "rex=reviewer:demo@laptop")
    team_id = made("create", "builders", *members)
    assert (
        "supervisor (supervisor), ann (executor), rex (reviewer)"
        in call().out.split(team_id)[1].splitlines()[0]
    )
    assert team_id in {each["teamId"] for each in json.loads(made("--json"))["items"]}
    run_id = made("run", team_id, "Help people", "--budget", "100000")
    assignment_id = made("decide", run_id, "delegate", "--worker", "ann", "--instructions", "help")
    wait_for_end(hub, run_id)
    refused = call("decide", run_id, "delegate", "--worker", "zoe", "--instructions", "help")
    assert (refused.code, "worker_unknown: " in refused.err) == (1, True)
    approved = json.loads(made("decide", run_id, "approve", "--approved", "--json"))
    assert approved["decision"] == {"action": "approve", "approved": True}
    assert made("decide", run_id, "finish", "--summary", "helped")
    watched = call("watch", run_id)
    assert watched.code == 0
    first, second = watched.out.splitlines()
    assert first.split("  ")[:2] == [run_id, "finished"]
    assert second.split("  ")[1:4] == [assignment_id, "ann", "completed"]
    # A run that is watched while it goes on.
    other = made("run", team_id, "Wait")
    made("decide", other, "delegate", "--worker", "ann", "--instructions", "approve")
    following = asyncio.run_coroutine_threadsafe(stop_when_begun(at, other), at.loop)
    stopped = call("watch", other, "--json")
    following.result(WAIT)
    lines = [json.loads(line) for line in stopped.out.splitlines()]
    assert stopped.code == 1
    assert lines[0]["run"]["teamRunId"] == other
    assert {each["type"] for each in lines[1:]} >= {"team.run.updated", "assignment.cancelled"}
    third = made("run", team_id, "Stop")
    assert call("stop", third).code == 0
    assert call("watch", third).code == 1
    # A run that an agent supervises is taken over, and handed back.
    led = made("create", "led", "--member", "boss=supervisor:demo@laptop", *members)
    fourth = made("run", led, "Help")
    refused = call("decide", fourth, "finish")
    assert (refused.code, "agent_supervises: " in refused.err) == (1, True)
    for _ in range(2):
        assert call("takeover", fourth).code == 0
        assert call("handback", fourth).code == 0
    assert call("takeover", fourth).code == 0
    made("decide", fourth, "finish", "--summary", "helped")
    assert call("watch", fourth).code == 0
    missing = call("stop", "tmr_none")
    assert (missing.code, "unknown_team_run" in missing.err) == (1, True)


def wait_for_end(hub: HubClient, run_id: str) -> None:
    """Return once the assignments of a run have ended."""
    state = hub.team_run_state(run_id)
    with hub.events(cursor=state.as_of) as events:
        while any(each.ended_at is None for each in hub.team_run_state(run_id).assignments):
            next(events)


async def stop_when_begun(at: LinkedThread, run_id: str) -> None:
    """Cancel a run once its worker waits for an approval."""
    ada = at.linked.ada
    async with asyncio.timeout(WAIT):
        while True:
            state = await ada.get(f"/v1/team-runs/{run_id}/state")
            if "edgeRunId" in state["assignments"][0]:
                break
            await asyncio.sleep(0.05)
    await ada.post(f"/v1/team-runs/{run_id}:cancel", None, 200)


@pytest.mark.requirement("teams.command")
@pytest.mark.requirement("teams.merge")
def test_work_is_merged_discarded_and_exported_from_the_command_line(
    at: LinkedThread,
    hub: HubClient,
    factwire: Factwire,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    monkeypatch.setenv("FACTWIRE_DATA", str(at.data))
    edge = at.linked.edge
    workspace = repository(edge.machine.runtime.workspace, {"a.txt": "1\n"})
    device = hub.find_device()
    team = hub.create_team("files")
    hub.add_team_member(team.team_id, "me", "supervisor")
    hub.add_team_member(
        team.team_id, "ann", "executor", agent="shell", device_ids=[device.device_id]
    )
    run_id = hub.start_team_run(team.team_id, "Change a file").team_run_id

    def call(*arguments: str) -> CommandOutput:
        return factwire("team", *arguments, "--hub", at.url)

    def work(command: str) -> str:
        record = hub.decide_route(run_id, "delegate", next_worker="ann", instructions=command)
        with hub.events(cursor=hub.team_run_state(run_id).as_of) as events:
            while (row := hub.team_run_state(run_id).assignments[-1]).edge_run_id is None:
                next(events)
        at.run(edge.allow_all(row.edge_run_id))
        wait_for_end(hub, run_id)
        return record.assignment_id or ""

    first = work("echo 2 >> a.txt")
    early = call("merge", run_id, first)
    assert (early.code, "work_not_approved" in early.err) == (1, True)
    hub.decide_route(run_id, "approve", approved=True)
    merged = call("merge", run_id, first)
    assert merged.code == 0, merged.err
    assert merged.out.split() == [git(workspace, "rev-parse", "HEAD").strip(), "main"]
    assert (workspace / "a.txt").read_text() == "1\n2\n"
    second = work("echo 3 >> a.txt")
    hub.decide_route(run_id, "approve", approved=True)
    (workspace / "a.txt").write_text("1\n4\n")
    git(workspace, "commit", "-aqm", "other")
    conflicts = call("merge", run_id, second)
    assert (conflicts.code, conflicts.out) == (1, "a.txt\n")
    assert call("discard", run_id, second).code == 0
    gone = call("merge", run_id, second, "--into", "main")
    assert (gone.code, "worktree_removed" in gone.err) == (1, True)
    hub.decide_route(run_id, "finish", summary="changed")
    watched = call("watch", run_id)
    assert [line.split("  ")[-1] for line in watched.out.splitlines()[1:]] == ["1 file +1 −0"] * 2
    file = tmp_path / "run.factpack.zip"
    assert call("export", run_id, str(file)).code == 0
    assert call("export", run_id, str(file)).code == 2
    verified = factwire("evidence", "verify", str(file))
    assert (verified.code, "intact" in verified.out) == (0, True), verified.err
