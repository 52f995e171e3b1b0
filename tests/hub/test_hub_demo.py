"""`make hub`: the demo with two people and two machines, started as its users start it."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tools.hub_demo import sign_in

REPO = Path(__file__).parents[2]
WAIT_SECONDS = 600
"""Only a bound: seven processes are started, one after the other, and a team reaches its goal."""


async def list_machines(url: str, name: str, password: str) -> list[tuple[str, bool]]:
    async with sign_in(url, name, password) as person:
        page = (await person.get("/v1/devices")).raise_for_status().json()
    return [(each["name"], each["online"]) for each in page["items"]]


async def run_team(url: str, password: str, team_id: str) -> list[str]:
    """Have the team reach a goal, and allow whatever its agents ask; what was decided."""
    async with sign_in(url, "ada", password) as person:
        body = {"teamId": team_id, "goal": "Greet everybody"}
        run = (await person.post("/v1/team-runs", json=body)).raise_for_status().json()
        path = f"/v1/team-runs/{run['teamRunId']}"
        while run["status"] == "running":
            waiting = (await person.get("/v1/approvals?status=waiting")).raise_for_status().json()
            for each in waiting["items"]:
                allowed = {"decision": "allow", "argsHash": each["argsHash"]}
                await person.post(f"/v1/approvals/{each['approvalId']}/decide", json=allowed)
            await asyncio.sleep(1)
            run = (await person.get(path)).raise_for_status().json()
        assert run["status"] == "finished", run
        records = (await person.get(f"{path}/decisions")).raise_for_status().json()["items"]
    return [each.get("reason", each["decision"]["action"]) for each in records]


@pytest.mark.asyncio
@pytest.mark.timeout(WAIT_SECONDS)
@pytest.mark.requirement("hub.start")
@pytest.mark.requirement("teams.demo")
async def test_the_demo_has_machines_and_a_team_and_stops_when_asked(tmp_path: Path):
    (tmp_path / ".run" / "hub-demo" / "workspace-1").mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(REPO), "HOME": str(tmp_path)}
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.hub_demo"),
        cwd=tmp_path,
        env=environment,
        stdout=PIPE,
        stderr=STDOUT,
    )
    assert demo.stdout is not None
    printed = ""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while "Press Ctrl-C" not in printed:
                line = await demo.stdout.readline()
                assert line, printed
                printed += line.decode()
            url = re.findall(r"The Hub: (\S+)/", printed)[0]
            passwords = dict(re.findall(r"sign in as (\w+) with (\S+)", printed))
            machines = {
                name: await list_machines(url, name, password)
                for name, password in passwords.items()
            }
            shared = ("machine-2", True)
            assert {name: sorted(each) for name, each in machines.items()} == {
                "ada": [("machine-1", True), shared],
                "grace": [shared],
            }
            team_id = re.findall(r"team run (\S+)", printed)[0]
            assert await run_team(url, passwords["ada"], team_id) == [
                *("worker_unknown", "delegate", "review", "approve"),
                *("review", "approve", "finish"),
            ]
            demo.send_signal(signal.SIGINT)
            assert await demo.wait() == 0
    finally:
        if demo.returncode is None:
            demo.terminate()
            await demo.wait()
