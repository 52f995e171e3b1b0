"""A Hub in this process whose clock stands still, and people who use it over HTTP."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import httpx
from argon2 import PasswordHasher

from factwire.hub.approvals.approval_resources import ApprovalLinks
from factwire.hub.chats.chat_links import ChatLinks
from factwire.hub.hub_startup import DATABASE_FILE, OpenHub, open_hub
from factwire.hub.people.passwords import Passwords
from factwire.hub.records.hub_database import open_database
from factwire.journal.atomic_files import make_private_folder
from factwire.journal.cursor import new_epoch
from factwire.runtime.configuration import HubSettings

URL = "http://127.0.0.1:8788"
PASSWORD = "correct horse battery staple"
START = 1_790_000_000.0


class SteppedClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def quick_passwords() -> Passwords:
    """Argon2id with parameters for which no test has to wait."""
    return Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


class HubPerson:
    """Somebody who is signed in."""

    def __init__(self, http: httpx.AsyncClient, signed_in: dict[str, Any]) -> None:
        self._http = http
        self.signed_in = signed_in

    @property
    def person_id(self) -> str:
        return self.signed_in["person"]["personId"]

    @property
    def session_id(self) -> str:
        return self.signed_in["sessionId"]

    async def request(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> httpx.Response:
        bearer = {"authorization": f"Bearer {self.signed_in['accessToken']}"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._http.request(method, path, json=body, headers={**bearer, **named})

    async def get(self, path: str, status: int = 200) -> Any:
        answer = await self.request("GET", path)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, status: int = 201, **headers: str) -> Any:
        answer = await self.request("POST", path, body, **headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None


class HubDevice:
    """A machine that has joined."""

    def __init__(self, http: httpx.AsyncClient, joined: dict[str, Any]) -> None:
        self._http = http
        self.joined = joined

    @property
    def device_id(self) -> str:
        return self.joined["deviceId"]

    async def exchange(self) -> httpx.Response:
        return await self._http.post(
            "/v1/auth/device", json={"deviceToken": self.joined["deviceToken"]}
        )

    async def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        access = (await self.exchange()).json()["accessToken"]
        headers = {"authorization": f"Bearer {access}"}
        return await self._http.request(method, path, json=body, headers=headers)

    async def begin_upload(self, edge_id: str | None = None) -> httpx.Response:
        path = f"/v1/edges/{edge_id or self.joined['edgeId']}/mirror/sessions"
        return await self.request("POST", path, {"epoch": "0123456789abcdef", "runtimeId": "rt_1"})


class RunningHub:
    """A Hub that answers; each request comes from an address of its own unless it names one."""

    def __init__(self, hub: OpenHub, http: httpx.AsyncClient, clock: SteppedClock) -> None:
        self.hub = hub
        self.http = http
        self.clock = clock

    @property
    def first_token(self) -> str:
        assert self.hub.first_admin is not None
        return self.hub.first_admin.token

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(path, json=body, headers=named)

    async def register(self, token: str, name: str, **headers: str) -> httpx.Response:
        body = {"token": token, "name": name, "password": PASSWORD}
        return await self.post("/v1/auth/register", body, **headers)

    async def login(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return await self.post("/v1/auth/login", {"name": name, "password": password})

    async def refresh(self, token: str) -> httpx.Response:
        return await self.post("/v1/auth/refresh", {"refreshToken": token})

    async def first_admin(self, name: str = "Ada") -> HubPerson:
        return self.person(await self.register(self.first_token, name))

    async def join(self, admin: HubPerson, name: str, role: str = "member") -> HubPerson:
        made = await admin.post("/v1/invitations", {"role": role})
        return self.person(await self.register(made["token"], name))

    async def sign_in(self, name: str) -> HubPerson:
        return self.person(await self.login(name))

    async def ask_to_join(self, edge_id: str | None = "edge_1", **more: Any) -> dict[str, Any]:
        """The codes of a machine or, without an id, of a terminal."""
        named = {} if edge_id is None else {"edgeId": edge_id}
        body = {"name": "laptop", "agents": ["demo"], **named, **more}
        answer = await self.post("/v1/device-authorizations", body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def collect(self, code: str, what: str = "device") -> httpx.Response:
        return await self.post(f"/v1/auth/{what}-token", {"deviceCode": code})

    async def join_device(self, owner: HubPerson, edge_id: str = "edge_1") -> HubDevice:
        codes = await self.ask_to_join(edge_id)
        path = f"/v1/device-authorizations/{codes['user_code']}/decision"
        await owner.post(path, {"decision": "confirm"}, status=200)
        joined = await self.collect(codes["device_code"])
        assert joined.status_code == 200, joined.text
        return HubDevice(self.http, joined.json())

    def person(self, answer: httpx.Response) -> HubPerson:
        assert answer.status_code in (200, 201), answer.text
        return HubPerson(self.http, answer.json())


class _EachFromElsewhere(httpx.AsyncBaseTransport):
    """Requests to an application, each from another address: limits have tests of their own."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._count = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._count += 1
        elsewhere = str(IPv4Address(0x0A000000 + self._count))
        address = request.headers.get("x-from") or elsewhere
        inner = httpx.ASGITransport(
            self._application, client=(address, 1), raise_app_exceptions=False
        )
        return await inner.handle_async_request(request)


_EMPTY: dict[str, bytes] = {}


async def put_empty_database(data: Path) -> None:
    """Have a new Hub find an empty database of the newest schema: to make one takes longer than
    most tests.
    """
    path = data / DATABASE_FILE
    if path.exists():
        return
    if not _EMPTY:
        with TemporaryDirectory() as folder:
            first = Path(folder) / DATABASE_FILE
            async with open_database(f"sqlite:{first}"):
                pass
            _EMPTY["database"] = first.read_bytes()
    make_private_folder(data)
    path.touch(0o600)
    path.write_bytes(_EMPTY["database"])
    with closing(sqlite3.connect(path)) as connection, connection:
        # No two Hubs have the same log.
        connection.execute("UPDATE event_counter SET epoch = ?", (new_epoch(),))


@asynccontextmanager
async def running_hub(
    folder: Path,
    clock: SteppedClock | None = None,
    *,
    url: str = URL,
    approvals: ApprovalLinks | None = None,
    chat_links: ChatLinks | None = None,
    **settings: Any,
) -> AsyncGenerator[RunningHub]:
    time = clock or SteppedClock()
    if "database" not in settings:
        await put_empty_database(folder / "hub")
    async with open_hub(
        folder / "hub",
        HubSettings(**settings),
        url=url,
        passwords=quick_passwords(),
        clock=time,
        timer=time,
        approvals=approvals,
        chat_links=chat_links,
    ) as hub:
        transport = _EachFromElsewhere(cast("Any", hub.application))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            yield RunningHub(hub, http, time)
