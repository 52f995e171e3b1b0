"""The Hub that an Edge has joined: where that is written down, and the tokens it is spoken to with.

`hub.json` in the data folder has the address of the Hub and the token of this device; only its user
may read it. The token opens nothing but `POST /v1/auth/device`, which gives access tokens for some
minutes; `HubAccess` has the current one and gets the next in time. `HubFollower` runs what an Edge
does for its Hub, and begins and ends it when the file comes, changes or goes, without a restart.
`hub-link.json` says what is wrong with the link of the Edge that runs, for `factwire doctor`.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from factwire import __version__
from factwire.edge.limits import HUB_FILE_SECONDS, HUB_TOKEN_SPARE_SECONDS
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.serving.access_control import InsecureStart, read_private_file
from factwire.serving.logs import hide_secret, logger

if TYPE_CHECKING:
    import httpx

HUB_FILE: Final = "hub.json"
LINK_STATE_FILE: Final = "hub-link.json"

_log: Final = logger("factwire.edge.hub")


class HubTarget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The Hub that an Edge has joined, and the token of this device."""

    url: str
    token: str
    device_id: str = ""


class HubRefused(Exception):
    """The Hub answered with a problem; `code` is the stable one."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        self.status = status
        self.code = code
        super().__init__(f"{code}: {detail}")


class HubUnreachable(Exception):
    """The Hub did not answer, not to the end, or something before it answered in its place."""


class _AccessGrant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the token of a device is exchanged for."""

    access_token: str
    expires_in: float


class UploadUnsupported(Exception):
    """The journal of this Edge cannot be uploaded."""

    code = "hub_upload_unsupported"


class HubFileUnusable(Exception):
    """What is written down of the Hub cannot be used."""

    code = "hub_file_unusable"


def read_target(data: Path) -> HubTarget | None:
    """The Hub that the Edge of a data folder has joined; raises `HubFileUnusable`."""
    path = data / HUB_FILE
    try:
        content = read_private_file(path)
        return None if content is None else msgspec.json.decode(content, type=HubTarget)
    except InsecureStart as error:
        raise HubFileUnusable(str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HubFileUnusable(f"{path} is damaged; join again") from error


def write_target(data: Path, target: HubTarget) -> None:
    """Write down the Hub that was joined, for this user alone."""
    replace_file(data / HUB_FILE, msgspec.json.encode(target))


def remove_target(data: Path) -> None:
    """Forget the Hub."""
    (data / HUB_FILE).unlink(missing_ok=True)


class LinkTrouble(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wrong with the link of an Edge, and the process that says so."""

    pid: int
    trouble: str


def read_link_trouble(data: Path) -> LinkTrouble | None:
    """What the Edge of a data folder last noted as wrong with its link."""
    try:
        return msgspec.json.decode((data / LINK_STATE_FILE).read_bytes(), type=LinkTrouble)
    except (OSError, msgspec.MsgspecError):
        return None


def write_link_trouble(data: Path, trouble: str | None) -> None:
    """Note what is wrong with the link of this process, or that nothing is."""
    path = data / LINK_STATE_FILE
    if trouble is None:
        path.unlink(missing_ok=True)
    else:
        replace_file(path, msgspec.json.encode(LinkTrouble(pid=os.getpid(), trouble=trouble)))


class HubAccess:
    """Access tokens of a device, each used until shortly before it expires; `agents` is what the
    device offers, and told with each exchange.
    """

    def __init__(
        self,
        target: HubTarget,
        agents: tuple[str, ...] = (),
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.target = target
        self._agents = agents
        self._clock = clock
        self._token: str | None = None
        self._ends = 0.0
        self._renewing = asyncio.Lock()

    async def token(self, http: "httpx.AsyncClient") -> str:
        """A token that is valid; raises `HubRefused` or `HubUnreachable`."""
        async with self._renewing:
            if self._token is None or self._clock() >= self._ends:
                await self._renew(http)
            assert self._token is not None  # noqa: S101 - for the type checker
            return self._token

    def forget(self, token: str) -> None:
        """Have a token replaced that the Hub no longer takes."""
        if token == self._token:
            self._token = None

    async def _renew(self, http: "httpx.AsyncClient") -> None:
        body = {
            "deviceToken": self.target.token,
            "version": __version__,
            "agents": list(self._agents),
        }
        answer = await send_request(http, "POST", "/v1/auth/device", json=body)
        try:
            found = msgspec.json.decode(answer.content, type=_AccessGrant)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HubUnreachable(f"no Hub answers like this: {error}") from error
        self._token = found.access_token
        spare = min(HUB_TOKEN_SPARE_SECONDS, found.expires_in / 2)
        self._ends = self._clock() + found.expires_in - spare


async def send_request(
    http: "httpx.AsyncClient", method: str, path: str, **content: Any
) -> "httpx.Response":
    """A request that the Hub answered with success; raises `HubRefused` or `HubUnreachable`."""
    import httpx  # noqa: PLC0415 - an Edge without a Hub should not load it

    try:
        answer = await http.request(method, path, **content)
    except httpx.HTTPError as error:
        raise HubUnreachable(str(error) or type(error).__name__) from error
    if not answer.is_success:
        raise build_refusal(answer)
    return answer


def build_refusal(answer: "httpx.Response") -> HubRefused:
    """What a Hub, or something before it, refused a request with."""
    try:
        problem: dict[str, Any] = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        problem = {}
    code = str(problem.get("code", f"http_{answer.status_code}"))
    return HubRefused(answer.status_code, code, str(problem.get("detail", "")))


HubWork = Callable[[HubTarget], AbstractAsyncContextManager[None]]
"""What an Edge does for its Hub, for as long as the block lasts."""


class HubFollower:
    """Does the work for the Hub that `hub.json` names, whichever that is at the moment; an async
    context manager. An Edge without a Hub looks for the file now and then, and does nothing else.
    """

    def __init__(self, data: Path, work: HubWork) -> None:
        self._data = data
        self._work = work
        self._current = AsyncExitStack()
        self._seen = _stamp(data)
        self._timer: asyncio.TimerHandle | None = None
        self._restarting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await _begin(self._current, self._data, self._work)
        self._schedule()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._restarting is not None:
            await asyncio.gather(self._restarting, return_exceptions=True)
        await self._current.aclose()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(HUB_FILE_SECONDS, self._look)

    def _look(self) -> None:
        self._schedule()
        stamp = _stamp(self._data)
        if stamp != self._seen and (self._restarting is None or self._restarting.done()):
            self._seen = stamp
            self._restarting = asyncio.create_task(self._restart(), name="factwire-hub-restart")

    async def _restart(self) -> None:
        await self._current.aclose()
        await _begin(self._current, self._data, self._work)


async def _begin(current: AsyncExitStack, data: Path, work: HubWork) -> None:
    try:
        target = await run_disk_work(read_target, data)
    except HubFileUnusable as error:
        _log.warning("hub_file_unusable", detail=str(error))
        return
    if target is None:
        return
    current.callback(hide_secret(target.token))
    try:
        await current.enter_async_context(work(target))
    except UploadUnsupported as error:
        _log.warning(error.code, detail=str(error))
    else:
        _log.info("hub_joined", hub=target.url, device_id=target.device_id)


def _stamp(data: Path) -> tuple[int, int] | None:
    """What is different once the file has been written anew."""
    try:
        about = (data / HUB_FILE).stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns
