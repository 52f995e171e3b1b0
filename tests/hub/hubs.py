"""A Hub in this process whose clock stands still, and people who use it over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import httpx
from argon2 import PasswordHasher

from factwire.hub.hub_startup import OpenHub, open_hub
from factwire.hub.people.passwords import Passwords
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


@asynccontextmanager
async def running_hub(
    folder: Path, clock: SteppedClock | None = None, *, url: str = URL, **settings: Any
) -> AsyncGenerator[RunningHub]:
    time = clock or SteppedClock()
    async with open_hub(
        folder / "hub",
        HubSettings(**settings),
        url=url,
        passwords=quick_passwords(),
        clock=time,
        timer=time,
    ) as hub:
        transport = _EachFromElsewhere(cast("Any", hub.application))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            yield RunningHub(hub, http, time)
