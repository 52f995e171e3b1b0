"""One connection to NATS that knows whether it is up, and whose every wait has an end.

A request whose answer does not come may have been carried out. `attempt` says so by raising `Lost`
and leaves it to the caller; `ask` is for requests that may be repeated, and repeats them until the
server answers or the patience of the URL is over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, cast

import msgspec
from nats.aio.client import Client
from nats.errors import Error as ClientError
from nats.errors import NoRespondersError

from factwire.journal.errors import JournalUnavailable
from factwire.journal.nats.url import Place

log: Final = logging.getLogger("factwire.journal.nats")

ATTEMPT: Final = 2.0
"""Seconds until one request without an answer counts as lost."""

RECONNECT: Final = 0.1
"""Seconds between attempts to reconnect."""

OLDEST: Final = (2, 12)
"""The first nats-server that takes several messages as one atomic batch."""

_BUSY: Final = 503


class Lost(Exception):
    """No answer came; whether the request was carried out is not known."""


class Refused(Exception):
    """The server answered with an error of its JetStream interface."""

    def __init__(self, code: int, number: int, description: str) -> None:
        self.code = code
        self.number = number
        self.description = description
        super().__init__(f"{description} ({number})")


class Msg(Protocol):
    """What is used of a message."""

    subject: str
    reply: str
    data: bytes
    headers: dict[str, str] | None


class Subscription(Protocol):
    """What is used of a subscription."""

    async def next_msg(self, timeout: float | None = ...) -> Msg: ...  # noqa: ASYNC109
    async def unsubscribe(self, limit: int = ...) -> None: ...


class _Client(Protocol):
    max_payload: int
    is_connected: bool
    is_closed: bool
    connected_server_version: Any

    async def connect(self, servers: list[str], **options: Any) -> None: ...
    async def close(self) -> None: ...
    def new_inbox(self) -> str: ...
    async def publish(
        self,
        subject: str,
        payload: bytes,
        reply: str = ...,
        headers: Mapping[str, str] | None = ...,
    ) -> None: ...
    async def request(
        self,
        subject: str,
        payload: bytes,
        timeout: float,  # noqa: ASYNC109
        *,
        headers: Mapping[str, str] | None = ...,
    ) -> Msg: ...
    async def subscribe(
        self, subject: str, *, cb: Callable[[Msg], Awaitable[None]] | None = ...
    ) -> Subscription: ...


class Link:
    """The connection; `degraded` is None while it is up and says what is wrong while it is not."""

    def __init__(self, place: Place, on_up: Callable[[], None]) -> None:
        self.place = place
        self.degraded: str | None = "not connected yet"
        self._on_up = on_up
        self._closing = False
        self._client = cast("_Client", Client())
        self._up = asyncio.Event()
        self._down: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Connect within the patience of the URL."""
        options = {
            "name": f"factwire journal {self.place.name}",
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RECONNECT,
            "connect_timeout": min(ATTEMPT, self.place.patience),
            "ping_interval": 10,
            # Asking the others must not be answered by oneself, nor seem to have an audience.
            "no_echo": True,
            "error_cb": self._on_error,
            "disconnected_cb": self._on_down,
            "reconnected_cb": self._on_reconnected,
        }
        try:
            async with asyncio.timeout(self.place.patience):
                await self._client.connect(list(self.place.servers), **options)
        except (TimeoutError, OSError, ClientError) as error:
            await self._client.close()
            raise self.unavailable() from error
        self._set_up()
        self._ensure_new_enough()

    async def close(self) -> None:
        self._closing = True
        await self._client.close()

    @property
    def max_payload(self) -> int:
        return self._client.max_payload

    @property
    def server(self) -> str:
        """The version of the server, as text."""
        version = self._client.connected_server_version
        return f"{version.major}.{version.minor}.{version.patch}"

    def deadline(self) -> float:
        """The moment at which a call that begins now gives up."""
        return asyncio.get_running_loop().time() + self.place.patience

    def unavailable(self) -> JournalUnavailable:
        why = self.degraded or "it does not answer"
        return JournalUnavailable(
            f"{self.place.shown} was not reached within {self.place.patience:g} s: {why}; "
            "an append that was under way may have been written, append it again with the same ids"
        )

    async def until_up(self, deadline: float) -> None:
        """Wait for the connection; raises `JournalUnavailable` at the deadline."""
        if not self._up.is_set() or not self._client.is_connected:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._up.wait()
            except TimeoutError:
                raise self.unavailable() from None

    async def attempt(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> Msg:
        """One request and its answer, or `Lost`; a connection that breaks ends the wait at once."""
        wait = min(ATTEMPT, self.place.patience)
        try:
            return await self._unless_down(
                self._client.request(subject, payload, wait, headers=headers)
            )
        except NoRespondersError:
            raise Lost("JetStream is not ready") from None
        except (TimeoutError, OSError, ClientError) as error:
            raise Lost(str(error) or type(error).__name__) from error

    async def send(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> None:
        """Send a message of a batch that a later request completes."""
        try:
            await self._client.publish(subject, payload, headers=headers)
        except (OSError, ClientError) as error:
            raise Lost(str(error)) from error

    async def answer(self, msg: Msg, payload: bytes) -> None:
        """Reply to a request of another process."""
        await self._client.publish(msg.reply, payload)

    async def ask(self, subject: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request that may be repeated; raises `Refused` where it is an error."""
        deadline = self.deadline()
        payload = msgspec.json.encode(request)
        while True:
            await self.until_up(deadline)
            try:
                found = read_answer(await self.attempt(subject, payload))
            except Lost:
                pass
            except Refused as error:
                if error.code != _BUSY:
                    raise
            else:
                return found
            await self.pause(deadline)

    async def collect(
        self, subject: str, request: Mapping[str, Any], take: Callable[[Msg], bool], wait: float
    ) -> None:
        """Give every answer to `take` until it says False; raises `Lost` when none comes."""
        inbox = self._client.new_inbox()
        try:
            inbound = await self._client.subscribe(inbox)
            try:
                await self._client.publish(subject, msgspec.json.encode(request), reply=inbox)
                while take(await self._unless_down(inbound.next_msg(timeout=wait))):
                    pass
            finally:
                if not self._client.is_closed:
                    await inbound.unsubscribe()
        except (TimeoutError, OSError, ClientError) as error:
            raise Lost(str(error) or type(error).__name__) from error

    async def listen(self, subject: str, heard: Callable[[Msg], Awaitable[None]]) -> None:
        """Call `heard` for every message on a subject, also after a reconnect."""
        await self._client.subscribe(subject, cb=heard)

    async def pause(self, deadline: float) -> None:
        """Wait a little before trying again; raises `JournalUnavailable` at the deadline."""
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            raise self.unavailable()
        await asyncio.sleep(min(RECONNECT / 4, max(0.0, deadline - loop.time())))

    async def _unless_down(self, coming: Coroutine[Any, Any, Msg]) -> Msg:
        work = asyncio.ensure_future(coming)
        work.add_done_callback(_retrieve)
        try:
            await asyncio.wait((work, self._down), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Lost("the connection broke")
            return work.result()
        finally:
            work.cancel()

    def _set_up(self) -> None:
        self.degraded = None
        if self._down.done():
            self._down = asyncio.get_running_loop().create_future()
        self._up.set()

    async def _on_down(self) -> None:
        self.degraded = "the connection to the server is broken, reconnecting"
        self._up.clear()
        if not self._down.done():
            self._down.set_result(None)
        if not self._closing:
            log.warning("%s: %s", self.place.shown, self.degraded)

    async def _on_reconnected(self) -> None:
        self._set_up()
        log.info("%s: connected again", self.place.shown)
        self._on_up()

    async def _on_error(self, error: Exception) -> None:
        log.debug("%s: %s", self.place.shown, type(error).__name__)

    def _ensure_new_enough(self) -> None:
        version = self._client.connected_server_version
        if (version.major, version.minor) < OLDEST:
            wanted = ".".join(map(str, OLDEST))
            raise JournalUnavailable(
                f"{self.place.shown} is a nats-server {self.server}; {wanted} or newer is needed, "
                "because a batch of several messages must be written whole"
            )


def _retrieve(work: asyncio.Future[Msg]) -> None:
    """Take note of how a request ended that nobody waits for any more."""
    if not work.cancelled():
        work.exception()


def read_answer(msg: Msg) -> dict[str, Any]:
    """The object of an answer; raises `Refused` where it carries an error."""
    found: dict[str, Any] = msgspec.json.decode(msg.data)
    error: dict[str, Any] | None = found.get("error")
    if error is not None:
        raise Refused(
            int(error.get("code", 0)), int(error.get("err_code", 0)), str(error.get("description"))
        )
    return found
