"""A real Hub's mirror in this process: a socket, mirrors on disk, and whoever has the token."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn

from factwire.edge.hub_upload import HubTarget
from factwire.facts import Person
from factwire.hub.mirror.mirror_app import MirrorApp, Purpose
from factwire.hub.mirror.mirror_store import MirrorStore
from factwire.serving.asgi import Problem, Scope, get_header
from factwire.serving.streams import FactwireHttpProtocol, socket_settings

HUB_TOKEN = "a-hub-token-for-tests-0123456789"
NOW = "2026-11-16T12:00:00.000Z"
WAIT_SECONDS = 60.0


async def authorize(scope: Scope, edge_id: str, purpose: Purpose) -> Person:
    """One person who owns every Edge but `edge_foreign`."""
    if get_header(scope, b"authorization") != f"Bearer {HUB_TOKEN}":
        raise Problem(401, "unauthenticated", "send the token")
    if edge_id == "edge_foreign":
        raise Problem(404, "unknown_edge", "no Edge with this id has joined this Hub")
    return Person(name="ada", device_id="dev_1", via=purpose)


class RunningMirror:
    """Mirrors that are served; `http` sends the token with every request."""

    def __init__(self, store: MirrorStore, port: int, http: httpx.AsyncClient) -> None:
        self.store = store
        self.port = port
        self.http = http

    @property
    def target(self) -> HubTarget:
        return HubTarget(url=f"http://127.0.0.1:{self.port}", token=HUB_TOKEN)

    async def wait_for(self, edge_id: str, seq: int) -> None:
        """Return once the mirror of an Edge has come to a seq."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                answer = await self.http.get(f"/v1/edges/{edge_id}/mirror")
                if answer.status_code == 200 and int(answer.json()["cursor"][-16:]) >= seq:
                    return
                await asyncio.sleep(0.02)


@asynccontextmanager
async def running_mirror(folder: Path, port: int = 0) -> AsyncGenerator[RunningMirror]:
    """The mirrors of a folder; the same folder again is the same Hub after a restart."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        found: int = listening.getsockname()[1]
        async with MirrorStore(folder, lambda: NOW) as store:
            config = uvicorn.Config(
                MirrorApp(store, authorize),
                http=FactwireHttpProtocol,
                loop="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                **socket_settings(),
            )
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve([listening]))
            headers = {"authorization": f"Bearer {HUB_TOKEN}"}
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{found}",
                headers=headers,
                timeout=WAIT_SECONDS,
                trust_env=False,
            ) as http:
                yield RunningMirror(store, found, http)
            server.should_exit = True
            await asyncio.wait_for(serving, WAIT_SECONDS)
