"""A real Hub's mirror in this process: a socket, mirrors on disk, and whoever has the token."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn

from factwire.edge.hub_access import HubTarget
from factwire.hub.mirror.mirror_app import MirrorAccess, MirrorApp, Purpose
from factwire.hub.mirror.mirror_store import MirrorStore
from factwire.serving.asgi import Problem, Receive, Scope, Send, get_header
from factwire.serving.streams import FactwireHttpProtocol, socket_settings

HUB_TOKEN = "a-hub-token-for-tests-0123456789"
NOW = "2026-11-16T12:00:00.000Z"
WAIT_SECONDS = 60.0


@asynccontextmanager
async def authorize(scope: Scope, edge_id: str, _: Purpose) -> AsyncGenerator[MirrorAccess]:
    """One person who owns every Edge but `edge_foreign`."""
    if get_header(scope, b"authorization") != f"Bearer {HUB_TOKEN}":
        raise Problem(401, "unauthenticated", "send the token")
    if edge_id == "edge_foreign":
        raise Problem(404, "unknown_edge", "no Edge with this id has joined this Hub")
    yield MirrorAccess(stream_key="ses_1")


class MirrorWithTokens:
    """Mirrors, and an exchange that gives every device the one token."""

    def __init__(self, store: MirrorStore) -> None:
        self._mirrors = MirrorApp(store, authorize)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/v1/auth/device":
            await self._mirrors(scope, receive, send)
            return
        body = b'{"accessToken":"%s","expiresIn":900}' % HUB_TOKEN.encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


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
                MirrorWithTokens(store),
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
