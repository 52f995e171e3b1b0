"""A real Edge in this process: a socket, a journal on disk, the built-in agents."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from factwire.edge.startup import EdgeSettings, OpenEdge, build_server, open_edge
from factwire.runtime.configuration import AgentSettings, Configuration, Limits, PolicySettings
from factwire.serving.http_server import HttpServer, open_listening_socket

TOKEN = "an-edge-token-for-tests-0123456789"
WAIT_SECONDS = 60.0
ENDED = ("finished", "failed", "cancelled")


class RunningEdge:
    """An Edge that answers; `http` sends the token with every request."""

    def __init__(
        self, edge: OpenEdge, server: HttpServer, port: int, http: httpx.AsyncClient
    ) -> None:
        self.edge = edge
        self.machine = edge.context
        self.server = server
        self.port = port
        self.http = http

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.http.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        answer = await self.http.post(path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def start(self, prompt: str, agent: str = "demo", **more: Any) -> dict[str, Any]:
        return await self.post("/v1/runs", {"agentId": agent, "prompt": prompt, **more}, status=202)

    async def run_until(self, run_id: str, *statuses: str) -> dict[str, Any]:
        """A run once it has come to one of these, or to its end."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                seen = self.machine.feed.cursor.seq
                run = await self.get(f"/v1/runs/{run_id}")
                if run["status"] in (*statuses, *ENDED):
                    return run
                await self.machine.feed.wait_for(seen + 1)

    async def wait_for_approval(self, run_id: str) -> dict[str, Any]:
        """The open approval of a run."""
        await self.run_until(run_id, "waiting")
        page = await self.get("/v1/approvals", runId=run_id, status="pending")
        return page["items"][0]

    async def allow_all(self, run_id: str) -> dict[str, Any]:
        """A run that was allowed whatever it asked for, once it has ended."""
        while (run := await self.run_until(run_id, "waiting"))["status"] == "waiting":
            await self.decide(await self.wait_for_approval(run_id), "allow")
        return run

    async def decide(self, approval: dict[str, Any], decision: str, **more: Any) -> httpx.Response:
        body = {
            "runId": approval["runId"],
            "requestId": approval["approvalId"],
            "decision": decision,
            "argsHash": approval.get("argsHash"),
            **more,
        }
        return await self.http.post("/v1/permissions/decide", json=body)


def configuration_in(folder: Path, **changes: Any) -> Configuration:
    """A configuration whose journal, data and workspace lie in a folder of a test's own."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    plain = Configuration(
        journal=f"sqlite:{folder}/journal.db",
        data=str(folder / "data"),
        workspaces=(str(workspace),),
        agent="demo",
        agents={
            "demo": AgentSettings(kind="demo", options={"pace": 0}),
            "shell": AgentSettings(kind="shell"),
        },
        policy=PolicySettings(),
        limits=Limits(),
    )
    return msgspec.structs.replace(plain, **changes)


@asynccontextmanager
async def running_edge(
    folder: Path,
    *,
    configuration: Configuration | None = None,
    settings: EdgeSettings | None = None,
    **opening: Any,
) -> AsyncGenerator[RunningEdge]:
    """An Edge of a folder; the same folder again is the same Edge after a restart."""
    conf = configuration or configuration_in(folder)
    wanted = settings or EdgeSettings(token=TOKEN)
    with open_listening_socket("127.0.0.1", 0) as listening:
        port: int = listening.getsockname()[1]
        async with open_edge(conf, Path(conf.workspaces[0]), wanted, **opening) as edge:
            server = build_server(edge)
            serving = asyncio.create_task(server.serve([listening]))
            await asyncio.wait_for(server.listening.wait(), WAIT_SECONDS)
            headers = {"authorization": f"Bearer {edge.token.value}"}
            base = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(
                base_url=base, headers=headers, timeout=WAIT_SECONDS, trust_env=False
            ) as http:
                yield RunningEdge(edge, server, port, http)
            server.should_exit = True
            await asyncio.wait_for(serving, WAIT_SECONDS)
