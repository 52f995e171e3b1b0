"""R16 for teams: kills of a real Hub at any point of runs that a supervisor leads through, be it a
program that decides by REST or an agent on a real Edge.
"""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from factwire.hub.hub_startup import open_services
from factwire.hub.records.event_tables import events
from factwire.hub.records.link_tables import agent_tasks
from factwire.hub.records.team_tables import supervisor_turns, team_assignments, team_runs
from factwire.hub.teams import team_journal
from factwire.hub.teams.team_facts import find_place
from factwire.journal.sqlite.journal import SqliteJournal
from tests.hub.hubs import quick_passwords
from tests.hub.killed_link import KilledProcess
from tests.hub.supervising_agents import AGENTS, STEPS, run_led_edge
from tests.hub.test_link_faults import WAIT, Client, join, run_edge, run_hub
from tests.hub.test_mirror_faults import choose_port
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.fault

ROUNDS = count_trials(full=50, share=5)


class Supervisor:
    """A program that supervises: it knows nothing but the state of its run."""

    def __init__(self, client: Client, team_id: str) -> None:
        self._client = client
        self._team_id = team_id

    async def lead(self, name: str) -> str:
        """Take a run to its end; its id."""
        body = {"teamId": self._team_id, "goal": "help"}
        run_id = (await self._client.ask("POST", "/v1/team-runs", body, name))["teamRunId"]
        async with asyncio.timeout(WAIT):
            while True:
                state = await self._client.ask("GET", f"/v1/team-runs/{run_id}/state")
                if state["run"]["status"] == "finished":
                    return run_id
                await self._decide(run_id, name, state)
                await asyncio.sleep(0.02)

    async def _decide(self, run_id: str, name: str, state: dict[str, Any]) -> None:
        """The next step: two pieces of work, a review that sends the first back, and the end."""
        assignments = state["assignments"]
        if any("endedAt" not in each for each in assignments):
            return
        work = {"next_worker": "ann", "instructions": "help"}
        match len(assignments):
            case 0:
                route: dict[str, Any] = {"action": "delegate", "subtask_id": "a", **work}
            case 1:
                route = {"action": "review", "next_worker": "rex", "instructions": "help review"}
            case 2:
                route = {"action": "approve", "approved": False, "feedback": "help again"}
            case _:
                route = {"action": "finish", "summary": "helped"}
        key = f"{name}-{len(assignments)}"
        await self._client.ask("POST", f"/v1/team-runs/{run_id}/decisions", route, key)


class Starter:
    """Somebody who starts runs that an agent supervises, and waits."""

    def __init__(self, client: Client, team_id: str) -> None:
        self._client = client
        self._team_id = team_id

    async def lead(self, name: str) -> str:
        """Take a run to its end; its id."""
        body = {"teamId": self._team_id, "goal": "help"}
        run_id = (await self._client.ask("POST", "/v1/team-runs", body, name))["teamRunId"]
        async with asyncio.timeout(WAIT):
            while True:
                run = await self._client.ask("GET", f"/v1/team-runs/{run_id}")
                assert run["status"] in ("running", "finished"), run
                if run["status"] == "finished" and run["supervision"]["status"] != "turn_rows":
                    return run_id
                await asyncio.sleep(0.02)


async def create_team(client: Client, device_id: str, leader: str | None = None) -> str:
    team = await client.ask("POST", "/v1/teams", {"name": "helpers"}, "team")
    path = f"/v1/teams/{team['teamId']}/members"
    agent = {"agentType": "demo", "deviceIds": [device_id]}
    for name, role in (("lead", "supervisor"), ("ann", "executor"), ("rex", "reviewer")):
        led = {} if leader is None else {**agent, "agentType": leader}
        body = {"name": name, "role": role, **(led if role == "supervisor" else agent)}
        await client.ask("POST", path, body, name)
    return team["teamId"]


async def kill_rounds(folder: Path, rounds: int, *, by_agent: bool = False) -> list[str]:
    """Kill the Hub at a random moment, again and again, while runs are led to their ends; the ids
    of the runs.
    """
    serve_edge = run_led_edge if by_agent else run_edge
    chance, port = Random(23), choose_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "edge").mkdir()
    edge = KilledProcess(serve_edge, folder / "edge")
    edge_id = edge.name
    edge.kill()
    device_id = await join(folder, url, edge_id, AGENTS)
    hub = KilledProcess(run_hub, folder / "hub", port)
    edge = KilledProcess(serve_edge, folder / "edge")
    client, run_ids = Client(url), list[str]()
    try:
        team_id = await create_team(client, device_id, "lead" if by_agent else None)
        supervisor = (Starter if by_agent else Supervisor)(client, team_id)
        for number in range(rounds):
            leading = asyncio.create_task(supervisor.lead(f"run-{number}"))
            await asyncio.sleep(chance.random() * 2)
            hub.kill()
            hub = KilledProcess(run_hub, folder / "hub", port)
            run_ids.append(await leading)
        await wait_for_facts(client, run_ids)
    finally:
        hub.kill()
        edge.kill()
        await client.close()
    return run_ids


async def wait_for_facts(client: Client, run_ids: list[str]) -> None:
    """Return once the journal has the end of each run."""
    async with asyncio.timeout(WAIT):
        for run_id in run_ids:
            phase = ""
            while phase != "finished":
                path = f"/v1/edges/hub.teams/threads/{run_id}/projection"
                state = (await client.ask("GET", path))["state"]
                phase = state["teamWorkbench"].get("teamPhase", "")
                await asyncio.sleep(0.02)


async def check_runs(
    folder: Path, run_ids: list[str], *, turns: int = 0, verdicts: int = 1
) -> None:
    """Each step of each run was done once, told once, and is in the journal once, in order."""
    team = ("team.run.updated", "team.route.decided", "team.route.rejected")
    team = (*team, "team.task.created", "team.task.updated")
    ends = ("assignment.created", "assignment.dispatched", "assignment.completed")
    async with (
        open_services(folder / "hub", None, "http://127.0.0.1", passwords=quick_passwords()) as hub,
        hub.database.read() as connection,
    ):
        runs = (await connection.execute(select(team_runs))).mappings().all()
        assignments = (await connection.execute(select(team_assignments))).mappings().all()
        tasks = (await connection.execute(select(agent_tasks))).mappings().all()
        turn_rows = (await connection.execute(select(supervisor_turns))).mappings().all()
        query = select(events).where(events.c.type.in_((*team, *ends))).order_by(events.c.seq)
        rows = (await connection.execute(query)).mappings().all()
    assert {row["team_run_id"] for row in runs} == set(run_ids)
    assert {row["status"] for row in runs} == {"finished"}
    assert Counter(row["team_run_id"] for row in assignments) == dict.fromkeys(run_ids, 3)
    counted = Counter(row["team_run_id"] for row in turn_rows)
    assert counted == (dict.fromkeys(run_ids, turns) if turns else {})
    assert {row["task_id"] for row in tasks} == {
        row["agent_task_id"] for row in (*assignments, *turn_rows)
    }
    assert len({row["thread_id"] for row in turn_rows}) == len(
        {row["team_run_id"] for row in turn_rows}
    )
    assert len({row["edge_run_id"] for row in tasks}) == len(tasks)
    for run_id in run_ids:
        own = [row for row in rows if msgspec.json.decode(row["payload"])["team_run_id"] == run_id]
        steps = Counter(row["type"] for row in own)
        assert steps == {
            "team.run.updated": 2 + 2 * turns,
            "team.route.decided": 3 + verdicts,
            **({"team.route.rejected": 1} if turns else {}),
            "team.task.created": 2,
            "team.task.updated": verdicts,
            **dict.fromkeys(ends, 3),
        }
    await check_journal(folder, run_ids, [(row["seq"], row["payload"]) for row in rows])


async def check_journal(folder: Path, run_ids: list[str], rows: list[tuple[int, str]]) -> None:
    path = folder / "hub" / "teams" / team_journal.JOURNAL_FILE
    async with SqliteJournal(str(path), read_only=True) as journal:
        assert (await journal.verify()).ok
        facts = [fact async for batch in journal.read() for _, fact in batch.facts()]
    places = [place for fact in facts if (place := find_place(fact.id)) is not None]
    assert len({fact.id for fact in facts}) == len(facts) == len(places), "a fact is there twice"
    assert [seq for _, seq in places] == sorted(seq for _, seq in places), "facts are not in order"
    assert {seq for _, seq in places} == {seq for seq, _ in rows}, "facts are missing"
    for run_id in run_ids:
        sequences = [fact.sequence for fact in facts if fact.thread_id == run_id]
        assert sequences == list(range(1, len(sequences) + 1))


@pytest.mark.nightly
@pytest.mark.requirement("teams.killed")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_a_hub_that_is_killed_at_any_point_of_a_run_goes_on_exactly_once(tmp_path: Path):
    run_ids = await kill_rounds(tmp_path, ROUNDS)
    await check_runs(tmp_path, run_ids)


@pytest.mark.nightly
@pytest.mark.requirement("teams.killed")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_a_run_that_an_agent_supervises_goes_on_exactly_once_after_each_kill(tmp_path: Path):
    run_ids = await kill_rounds(tmp_path, ROUNDS, by_agent=True)
    await check_runs(tmp_path, run_ids, turns=len(STEPS), verdicts=2)
