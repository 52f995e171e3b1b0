"""R16 for workers' files: kills of a real Edge between the end of work and its report, and of
either side during a merge.
"""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from factwire.edge.startup import EdgeSettings, open_edge
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.runtime.configuration import Configuration, PolicySettings
from tests.edge.edges import TOKEN, configuration_in
from tests.hub.killed_link import KilledProcess, Ready
from tests.hub.test_link_faults import WAIT, Client, join, run_hub
from tests.hub.test_mirror_faults import choose_port
from tests.runtime.hostile_repository import git, repository
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.fault

ROUNDS = count_trials(full=30, share=2)
COMMAND = "sh work.sh"


def configure(folder: Path) -> Configuration:
    return configuration_in(folder, policy=PolicySettings(allow=(f"Bash({COMMAND})",)))


async def run_worker(ready: Ready, folder: Path) -> None:
    conf = configure(folder)
    async with open_edge(conf, Path(conf.workspaces[0]), EdgeSettings(token=TOKEN)) as edge:
        ready(edge.context.edge_id)
        await asyncio.Event().wait()


class KilledTeam:
    """A Hub, an Edge with a repository, and a person who gets through whatever is killed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.client = Client(f"http://127.0.0.1:{port}")
        self.hub = KilledProcess(run_hub, folder / "hub", port)
        self.edge = KilledProcess(run_worker, folder / "edge")
        self.team_id = ""

    def restart(self, side: str) -> None:
        if side in ("edge", "both"):
            self.edge.kill()
        if side in ("hub", "both"):
            self.hub.kill()
            self.hub = KilledProcess(run_hub, self.folder / "hub", self.port)
        if side in ("edge", "both"):
            self.edge = KilledProcess(run_worker, self.folder / "edge")

    async def create(self, device_id: str) -> None:
        async with asyncio.timeout(WAIT):
            agents: list[str] = []
            while "shell" not in agents:
                await asyncio.sleep(0.1)
                agents = (await self.client.ask("GET", "/v1/devices"))["items"][0]["agents"]
        team = await self.client.ask("POST", "/v1/teams", {"name": "files"}, "team")
        self.team_id = team["teamId"]
        path = f"/v1/teams/{self.team_id}/members"
        await self.client.ask("POST", path, {"name": "lead", "role": "supervisor"}, "lead")
        ann = {"name": "ann", "role": "executor", "agentType": "shell", "deviceIds": [device_id]}
        await self.client.ask("POST", path, ann, "ann")

    async def do_round(self, name: str, chance: Random) -> dict[str, Any]:
        """Work that is killed, and a merge that is; the assignment after it."""
        path, done = await self.work(name, chance.random() * 3)
        if done["status"] != "completed":
            # The agent itself was killed in the middle, which is classes as a failure.
            path, done = await self.work(f"{name}-again", None)
        approval = {"action": "approve", "approved": True}
        await self.client.ask("POST", f"{path}/decisions", approval, f"{name}-approve")
        merging = asyncio.create_task(
            self.merge(f"{path}/assignments/{done['assignmentId']}:merge")
        )
        await asyncio.sleep(chance.random())
        self.restart(chance.choice(("edge", "hub", "both")))
        return await merging

    async def work(self, name: str, killed_after: float | None) -> tuple[str, dict[str, Any]]:
        """A run in which somebody works, and their assignment once it has ended."""
        body = {"teamId": self.team_id, "goal": "files"}
        run_id = (await self.client.ask("POST", "/v1/team-runs", body, name))["teamRunId"]
        path = f"/v1/team-runs/{run_id}"
        work = {"action": "delegate", "next_worker": "ann", "instructions": COMMAND}
        await self.client.ask("POST", f"{path}/decisions", work, f"{name}-work")
        if killed_after is not None:
            await asyncio.sleep(killed_after)
            self.restart("edge")
        return path, await self.wait_for_end(path)

    async def wait_for_end(self, path: str) -> dict[str, Any]:
        async with asyncio.timeout(WAIT):
            while True:
                found = (await self.client.ask("GET", f"{path}/state"))["assignments"][0]
                if "endedAt" in found:
                    return found
                await asyncio.sleep(0.05)

    async def merge(self, path: str) -> dict[str, Any]:
        """The answer to a merge, asked for until there is one."""
        async with asyncio.timeout(WAIT):
            while True:
                try:
                    return await self.client.ask("POST", path, {})
                except AssertionError as refused:
                    if "device_offline" not in str(refused):
                        raise
                    await asyncio.sleep(0.1)

    async def close(self) -> None:
        self.hub.kill()
        self.edge.kill()
        await self.client.close()


@pytest.mark.nightly
@pytest.mark.requirement("teams.files_killed")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_work_is_reported_and_merged_once_whatever_is_killed(tmp_path: Path):
    chance, port = Random(7), choose_port()
    (tmp_path / "edge").mkdir()
    files = {"when.txt": "never\n", "work.sh": "date +%s%N > when.txt\n"}
    workspace = repository(tmp_path / "edge" / "workspace", files)
    first = KilledProcess(run_worker, tmp_path / "edge")
    edge_id = first.name
    first.kill()
    device_id = await join(tmp_path, f"http://127.0.0.1:{port}", edge_id)
    team = KilledTeam(tmp_path, port)
    try:
        await team.create(device_id)
        merged = [await team.do_round(f"round-{number}", chance) for number in range(ROUNDS)]
    finally:
        await team.close()
    assert [each["merge"]["status"] for each in merged] == ["merged"] * ROUNDS
    commits = git(workspace, "log", "--format=%H").split()
    assert [each["merge"]["commit"] for each in merged] == commits[-2::-1]
    assert git(workspace, "status", "--porcelain") == ""
    kept = git(workspace, "worktree", "list")
    assert not [each for each in merged if each["changes"]["worktree"] in kept]
    assert [each["changes"]["fileCount"] for each in merged] == [1] * ROUNDS
    async with SqliteJournal(str(tmp_path / "edge" / "journal.db"), read_only=True) as journal:
        facts = [fact async for batch in journal.read() for _, fact in batch.facts()]
    classes = Counter((fact.artifact_id, fact.event_class) for fact in facts if fact.artifact_id)
    for each in merged:
        artifact = f"changes_{each['edgeRunId']}"
        assert classes[artifact, "artifact.diff.ready"] == 1
        assert classes[artifact, "artifact.updated"] == 1
