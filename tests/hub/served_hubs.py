"""A Hub on a real port of this process, and clients of its sockets.

Every request and every socket comes from an address of its own, by the header of a trusted proxy,
because limits have tests of their own.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
import uvicorn
from sqlalchemy import insert
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from factwire.hub.frames.event_log import audience_of
from factwire.hub.frames.frame_types import (
    FRAMES,
    Direction,
    FramePayload,
    NotificationNew,
    SessionDissolved,
)
from factwire.hub.hub_startup import OpenHub, open_hub
from factwire.hub.people.accounts import new_id
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.records.device_tables import devices
from factwire.hub.records.hub_tables import sessions
from factwire.runtime.configuration import HubSettings
from factwire.serving.http_server import build_server_config
from tests.hub.hubs import HubPerson, RunningHub, SteppedClock, put_empty_database, quick_passwords

WAIT = 60
"""Seconds after which a wait in these tests counts as lost."""

PATH = "/client/ws"
DAY = 24 * 3_600_000
_ADDRESSES = count(0x0A000001)


def elsewhere() -> dict[str, str]:
    """The header of a request that comes from an address of its own."""
    return {"x-forwarded-for": str(IPv4Address(next(_ADDRESSES)))}


class HubClient:
    """One socket, and what it was told; `frames` has all of it."""

    def __init__(self, connection: ClientConnection, direction: Direction) -> None:
        self.connection = connection
        self.direction: Direction = direction
        self.frames: list[dict[str, Any]] = []

    async def next(self, type_: str | None = None) -> dict[str, Any]:
        """The next frame, or the next of a type."""
        async with asyncio.timeout(WAIT):
            while True:
                text = await self.connection.recv()
                assert isinstance(text, str)
                frame = json.loads(text)
                self.frames.append(frame)
                self._check(frame)
                if type_ in (None, frame["type"]):
                    return frame

    def _check(self, frame: dict[str, Any]) -> None:
        """A frame is one of the table, for this reader, and the next of its connection."""
        row = FRAMES[frame["type"]]
        assert self.direction in row.directions, frame
        assert frame.keys() - {"cursor"} == {"type", "seq_id", "payload"}, frame
        assert frame["seq_id"] == len(self.frames)
        payload = msgspec.convert(frame["payload"], row.payload)
        assert msgspec.to_builtins(payload) == frame["payload"]
        if self.direction == "hub_to_client":
            assert ("cursor" in frame) == row.logged, frame

    async def take(self, type_: str, number: int) -> list[dict[str, Any]]:
        """The next frames of a type."""
        return [await self.next(type_) for _ in range(number)]

    async def send(self, type_: str, **payload: Any) -> None:
        await self.connection.send(json.dumps({"type": type_, "payload": payload}))

    async def ask(self, type_: str, **payload: Any) -> dict[str, Any]:
        await self.send(type_, **payload)
        return await self.next()

    async def close_code(self) -> int:
        """How it was ended, having read it to its end."""
        async with asyncio.timeout(WAIT):
            try:
                while True:
                    await self.next()
            except ConnectionClosed:
                return self.connection.close_code or 0

    @property
    def cursor(self) -> str:
        """Where it goes on."""
        known = [frame["cursor"] for frame in self.frames if "cursor" in frame]
        return known[-1] if known else self.frames[0]["payload"]["cursor"]


class HubDevice:
    """A device that has joined, as its records say."""

    def __init__(self, device_id: str, edge_id: str, token: str, session_id: str) -> None:
        self.device_id = device_id
        self.edge_id = edge_id
        self.token = token
        self.session_id = session_id


class ServedHub(RunningHub):
    """A Hub that listens."""

    def __init__(
        self, hub: OpenHub, http: httpx.AsyncClient, clock: SteppedClock, server: uvicorn.Server
    ) -> None:
        super().__init__(hub, http, clock)
        self.server = server
        self.port: int = http.base_url.port or 0

    @asynccontextmanager
    async def open(
        self,
        token: str | None,
        *,
        headers: Mapping[str, str] | None = None,
        path: str = PATH,
        direction: Direction = "hub_to_client",
        **query: str,
    ) -> AsyncGenerator[HubClient]:
        bearer = {} if token is None else {"authorization": f"Bearer {token}"}
        text = f"?{urlencode(query)}" if query else ""
        async with connect(
            f"ws://127.0.0.1:{self.port}{path}{text}",
            additional_headers={**elsewhere(), **bearer, **(headers or {})},
            compression=None,
            ping_interval=None,
            max_size=None,
            open_timeout=WAIT,
        ) as connection:
            yield HubClient(connection, direction)

    async def refusal(self, token: str | None, **options: Any) -> tuple[int, str]:
        """The status and the code with which a socket is refused."""
        with pytest.raises(InvalidStatus) as refused:
            await self.open(token, **options).__aenter__()
        response = refused.value.response
        assert response.headers["content-type"] == "application/problem+json"
        return response.status_code, json.loads(response.body or b"")["code"]

    @asynccontextmanager
    async def screen(self, person: HubPerson, **query: Any) -> AsyncGenerator[HubClient]:
        """A screen of somebody that was greeted."""
        async with self.open(person.signed_in["accessToken"], **query) as client:
            greeting = await client.next()
            assert greeting["type"] == "auth.ok", greeting
            yield client

    @asynccontextmanager
    async def edge(self, device: HubDevice) -> AsyncGenerator[HubClient]:
        """The socket of a device that was greeted."""
        async with self.open(device.token, direction="hub_to_edge") as client:
            assert (await client.next())["type"] == "auth.ok"
            yield client

    async def tell(self, person: HubPerson, *numbers: int) -> None:
        """Tell somebody something, each in a transaction of its own."""
        for number in numbers:
            async with self.hub.services.events.change() as change:
                change.tell(person.person_id, "notification.new", notification(number))

    async def emit(self, audience: str, type_: str, payload: FramePayload) -> None:
        async with self.hub.services.events.change() as change:
            change.emit(audience, type_, payload)

    async def join_audience(self, audience: str, *people: HubPerson) -> None:
        async with self.hub.services.events.change() as change:
            for person in people:
                change.join(audience, person.person_id)

    async def leave_audience(self, audience: str, *people: HubPerson) -> None:
        async with self.hub.services.events.change() as change:
            for person in people:
                change.leave(audience, person.person_id)

    async def add_device(self, person: HubPerson) -> HubDevice:
        """A device of somebody's, as joining writes it."""
        device_id, session_id = new_id("dev"), new_id("ses")
        hub, edge_id = self.hub.services, new_id("edge")
        now = hub.now()
        async with hub.events.change() as change:
            await change.connection.execute(
                insert(sessions).values(
                    session_id=session_id,
                    person_id=person.person_id,
                    created_at=now,
                    last_used_at=now,
                    expires_at=now + DAY,
                    token_digest=digest_of(session_id),
                    rotated_at=now,
                    address="",
                    user_agent="",
                    device_id=device_id,
                )
            )
            await change.connection.execute(
                insert(devices).values(
                    device_id=device_id,
                    person_id=person.person_id,
                    session_id=session_id,
                    kind="edge",
                    name="laptop",
                    edge_id=edge_id,
                    platform="linux",
                    version="1",
                    agents="[]",
                    created_at=now,
                    last_seen_at=now,
                    online=False,
                )
            )
            change.join(audience_of("device", device_id), person.person_id)
        token = hub.tokens.issue_access(person.person_id, session_id, device_id)
        return HubDevice(device_id, edge_id, token, session_id)


def notification(number: int) -> NotificationNew:
    return NotificationNew(notification_id=f"ntf_{number}", type="test", payload={"n": number})


def dissolved(number: int) -> SessionDissolved:
    return SessionDissolved(session_id=f"ses_{number}")


def numbers_of(frames: list[dict[str, Any]]) -> list[int]:
    """The numbers of what `tell` told."""
    notifications = [each for each in frames if each["type"] == "notification.new"]
    return [each["payload"]["payload"]["n"] for each in notifications]


class _Server(uvicorn.Server):
    """Stops when it is told to, not at the next tenth of a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        self.ready.set()
        await self.stop.wait()


@asynccontextmanager
async def served_hub(
    folder: Path, clock: SteppedClock | None = None, *, name: str = "127.0.0.1", **settings: Any
) -> AsyncGenerator[ServedHub]:
    """A Hub on a free port, closed like one that is stopped; people open it by a name."""
    time, chosen = clock or SteppedClock(), dict[str, Any](proxies=("127.0.0.1",)) | settings
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    url = f"http://{name}:{listener.getsockname()[1]}"
    if "database" not in settings:
        await put_empty_database(folder / "hub")
    async with open_hub(
        folder / "hub",
        HubSettings(**chosen),
        url=url,
        passwords=quick_passwords(),
        clock=time,
        timer=time,
    ) as hub:
        server = _Server(build_server_config(hub.application))
        running = asyncio.create_task(server.serve([listener]))
        await asyncio.wait_for(server.ready.wait(), WAIT)

        async def from_elsewhere(request: httpx.Request) -> None:
            request.headers.update(elsewhere())

        try:
            async with httpx.AsyncClient(
                base_url=url, event_hooks={"request": [from_elsewhere]}, timeout=WAIT
            ) as http:
                yield ServedHub(hub, http, time, server)
        finally:
            await hub.services.connections.close()
            server.stop.set()
            await asyncio.wait_for(running, WAIT)
