"""A team whose workers have a git repository on a real Edge, and a reviewer on another one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.edge.edges import configuration_in, running_edge
from tests.hub.served_hubs import WAIT, served_hub
from tests.hub.test_link_live import LinkedEdge
from tests.runtime.hostile_repository import repository

FILES = {"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n", "b.txt": "1\n"}


class FileTeam:
    """Workers `ann` and `ben` and a reviewer `near` on one device, a reviewer `rex` on another."""

    def __init__(self, near: LinkedEdge, far: LinkedEdge, workspace: Path) -> None:
        self.near = near
        self.far = far
        self.workspace = workspace
        self.team_id = ""
        self.path = ""

    async def create(self) -> None:
        ada = self.near.ada
        self.team_id = (await ada.post("/v1/teams", {"name": "builders"}))["teamId"]
        members: list[tuple[str, str, str, LinkedEdge | None]] = [
            ("lead", "supervisor", "", None),
            ("ann", "executor", "shell", self.near),
            ("ben", "executor", "shell", self.near),
            ("near", "reviewer", "demo", self.near),
            ("rex", "reviewer", "demo", self.far),
        ]
        for name, role, agent, edge in members:
            body: dict[str, Any] = {"name": name, "role": role}
            if edge is not None:
                body |= {"agentType": agent, "deviceIds": [edge.device_id]}
            await ada.post(f"/v1/teams/{self.team_id}/members", body)

    async def start(self) -> str:
        """The id of a new run."""
        body = {"teamId": self.team_id, "goal": "Change files"}
        run = await self.near.ada.post("/v1/team-runs", body)
        self.path = f"/v1/team-runs/{run['teamRunId']}"
        return run["teamRunId"]

    async def decide(self, action: str, **fields: Any) -> dict[str, Any]:
        body = {"action": action, **fields}
        return await self.near.ada.post(f"{self.path}/decisions", body, 200)

    async def work(self, worker: str, command: str, **more: Any) -> dict[str, Any]:
        """The assignment in which a worker has run a command."""
        return await self.end(
            await self.decide("delegate", next_worker=worker, instructions=command, **more)
        )

    async def end(self, record: dict[str, Any]) -> dict[str, Any]:
        """An assignment once it has ended."""
        async with asyncio.timeout(WAIT):
            while True:
                found = await self.assignment(record["assignmentId"])
                if "endedAt" in found:
                    return found
                if "edgeRunId" in found:
                    edge = self.near if found["deviceId"] == self.near.device_id else self.far
                    await edge.edge.allow_all(found["edgeRunId"])
                await asyncio.sleep(0.05)

    async def assignment(self, assignment_id: str) -> dict[str, Any]:
        state = await self.near.ada.get(f"{self.path}/state")
        return next(each for each in state["assignments"] if each["assignmentId"] == assignment_id)

    async def merge(self, assignment: dict[str, Any], **body: Any) -> httpx.Response:
        path = f"{self.path}/assignments/{assignment['assignmentId']}:merge"
        return await self.near.ada.request("POST", path, body)


@asynccontextmanager
async def open_file_team(folder: Path) -> AsyncGenerator[FileTeam]:
    for name in ("near", "far"):
        (folder / name).mkdir()
    near_conf = configuration_in(folder / "near")
    workspace = folder / "near" / "workspace"
    repository(workspace, FILES)
    async with (
        served_hub(folder) as served,
        running_edge(folder / "near", configuration=near_conf) as near_edge,
        running_edge(folder / "far") as far_edge,
    ):
        ada = await served.first_admin()
        near = LinkedEdge(served, near_edge, ada, ada)
        far = LinkedEdge(served, far_edge, ada, ada)
        await near.join()
        await far.join()
        team = FileTeam(near, far, workspace)
        await team.create()
        yield team
