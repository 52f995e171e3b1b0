"""One connection to NATS that knows whether it is up, and what its acknowledgements are worth.

Every wait has an end. A request whose answer does not come may have been carried out: `attempt`
says so by raising and leaves it to the caller; `ask` is for requests that may be repeated, and
repeats them until the server answers or the patience of the URL is over.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qsl, urlsplit
from urllib.request import urlopen

import msgspec
from nats.aio.client import Client
from nats.errors import Error as ClientError
from nats.errors import NoRespondersError

from factwire.journal.errors import JournalUnavailable, JournalUrlError

PATIENCE: Final = 10.0
"""Seconds for which a call waits for a server that is gone."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPTIONS: Final = ("replicas", "sync", "monitor", "patience")
_REPLICAS: Final = (1, 3, 5)
_FORM: Final = "nats://host:port/NAME[?replicas=3&sync=always&monitor=host:port&patience=10]"


class DurabilityWarning(UserWarning):
    """An acknowledged fact may be lost with the server's power."""


class NatsAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Which journal on which servers; `servers` may hold a password and is never shown."""

    servers: tuple[str, ...]
    shown: str
    name: str
    replicas: int | None = None
    sync: str = "unknown"
    monitor: str | None = None
    patience: float = PATIENCE


class AckPromise(msgspec.Struct, frozen=True, kw_only=True):
    """What holds when `append` returns; `flushed` is None where nothing is known about it."""

    server: str
    replicas: int
    flushed: bool | None

    @property
    def survives_power_loss(self) -> bool:
        return self.flushed is True

    def __str__(self) -> str:
        majority = self.replicas // 2 + 1
        held = (
            f"{majority} of {self.replicas} replicas" if self.replicas > 1 else "the only replica"
        )
        return f"an acknowledgement means that {held} stored the facts, {_FLUSHED[self.flushed]}"


_FLUSHED: Final = {
    True: "flushed to disk (sync_interval: always)",
    False: "not flushed to disk: set sync_interval: always in the server's jetstream block",
    None: (
        "flushed to disk only if the server has sync_interval: always; confirm it with "
        "?sync=always, or have it checked with ?monitor=host:port"
    ),
}


def parse_address(url: str) -> NatsAddress:
    """The place a URL names; raises `JournalUrlError`."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError as error:
        raise JournalUrlError(f"expected {_FORM}: {error}") from error
    login, _, hosts = parts.netloc.rpartition("@")
    name = parts.path.removeprefix("/")
    if not hosts or not _NAME.fullmatch(name):
        raise JournalUrlError(f"expected {_FORM} with a NAME of letters, digits, _ and -")
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown:
        raise JournalUrlError(f"expected options among {', '.join(_OPTIONS)}, got {unknown[0]!r}")
    prefix = f"nats://{login}@" if login else "nats://"
    return NatsAddress(
        servers=tuple(prefix + host for host in hosts.split(",")),
        shown=f"nats://{hosts}/{name}",
        name=name,
        replicas=_parse_replicas(options.get("replicas")),
        sync=_parse_sync(options.get("sync", "unknown")),
        monitor=options.get("monitor"),
        patience=_parse_patience(options.get("patience", str(PATIENCE))),
    )


async def find_promise(place: NatsAddress, server: str, replicas: int) -> AckPromise:
    """What an ack of this server means, looked up where the URL says how."""
    flushed = True if place.sync == "always" else None
    if place.monitor is not None:
        flushed = await asyncio.to_thread(_syncs_always, place.monitor)
    return AckPromise(server=server, replicas=replicas, flushed=flushed)


def _syncs_always(monitor: str) -> bool:
    try:
        with urlopen(f"http://{monitor}/jsz?config=true", timeout=5) as answer:
            found: dict[str, Any] = msgspec.json.decode(answer.read())
    except (OSError, ValueError) as error:
        raise JournalUnavailable(f"no answer from the monitoring address {monitor}") from error
    config: dict[str, Any] = found.get("config") or {}
    return bool(config.get("sync_always"))


def _parse_replicas(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) not in _REPLICAS:
        raise JournalUrlError(f"expected replicas=1, 3 or 5, got {text!r}")
    return int(text)


def _parse_sync(text: str) -> str:
    if text not in ("always", "unknown"):
        raise JournalUrlError(f"expected sync=always or no sync option, got {text!r}")
    return text


def _parse_patience(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:  # noqa: PLR2004
        raise JournalUrlError(f"expected a patience above 0 seconds, got {text!r}")
    return seconds


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


class RequestRefused(Exception):
    """The server answered with an error of its JetStream interface."""

    def __init__(self, code: int, number: int, description: str) -> None:
        self.code = code
        self.number = number
        self.description = description
        super().__init__(f"{description} ({number})")


class NatsMessage(Protocol):
    """What is used of a message."""

    subject: str
    reply: str
    data: bytes
    headers: dict[str, str] | None


class NatsSubscription(Protocol):
    """What is used of a subscription."""

    async def next_msg(self, timeout: float | None = ...) -> NatsMessage: ...  # noqa: ASYNC109
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
    ) -> NatsMessage: ...
    async def subscribe(
        self, subject: str, *, cb: Callable[[NatsMessage], Awaitable[None]] | None = ...
    ) -> NatsSubscription: ...


class NatsConnection:
    """The connection; `degraded` is None while it is up and says what is wrong while it is not."""

    def __init__(self, place: NatsAddress, on_up: Callable[[], None]) -> None:
        self.place = place
        self.outage: str | None = "not connected yet"
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
        self._mark_up()
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
        why = self.outage or "it does not answer"
        return JournalUnavailable(
            f"{self.place.shown} was not reached within {self.place.patience:g} s: {why}; an "
            "append that was in progress may have been written, so append it again with the same "
            "ids"
        )

    async def wait_until_up(self, deadline: float) -> None:
        """Wait for the connection; raises `JournalUnavailable` at the deadline."""
        if not self._up.is_set() or not self._client.is_connected:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._up.wait()
            except TimeoutError:
                raise self.unavailable() from None

    async def attempt(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> NatsMessage:
        """One request and its answer, or `Lost`; a connection that breaks ends the wait at once."""
        wait = min(ATTEMPT, self.place.patience)
        try:
            return await self._wait_unless_down(
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

    async def answer(self, msg: NatsMessage, payload: bytes) -> None:
        """Reply to a request of another process."""
        await self._client.publish(msg.reply, payload)

    async def ask(self, subject: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request that may be repeated; raises `RequestRefused` on an error."""
        deadline = self.deadline()
        payload = msgspec.json.encode(request)
        while True:
            await self.wait_until_up(deadline)
            try:
                found = read_answer(await self.attempt(subject, payload))
            except Lost:
                pass
            except RequestRefused as error:
                if error.code != _BUSY:
                    raise
            else:
                return found
            await self.pause(deadline)

    async def collect(
        self,
        subject: str,
        request: Mapping[str, Any],
        take: Callable[[NatsMessage], bool],
        wait: float,
    ) -> None:
        """Give every answer to `take` until it says False; raises `Lost` when none comes."""
        inbox = self._client.new_inbox()
        try:
            inbound = await self._client.subscribe(inbox)
            try:
                await self._client.publish(subject, msgspec.json.encode(request), reply=inbox)
                while take(await self._wait_unless_down(inbound.next_msg(timeout=wait))):
                    pass
            finally:
                if not self._client.is_closed:
                    await inbound.unsubscribe()
        except (TimeoutError, OSError, ClientError) as error:
            raise Lost(str(error) or type(error).__name__) from error

    async def listen(
        self, subject: str, on_message: Callable[[NatsMessage], Awaitable[None]]
    ) -> None:
        """Call `heard` for every message on a subject, also after a reconnect."""
        await self._client.subscribe(subject, cb=on_message)

    async def pause(self, deadline: float) -> None:
        """Wait a little before trying again; raises `JournalUnavailable` at the deadline."""
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            raise self.unavailable()
        await asyncio.sleep(min(RECONNECT / 4, max(0.0, deadline - loop.time())))

    async def _wait_unless_down(self, coming: Coroutine[Any, Any, NatsMessage]) -> NatsMessage:
        work = asyncio.ensure_future(coming)
        work.add_done_callback(_drop_result)
        try:
            await asyncio.wait((work, self._down), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Lost("the connection was lost")
            return work.result()
        finally:
            work.cancel()

    def _mark_up(self) -> None:
        self.outage = None
        if self._down.done():
            self._down = asyncio.get_running_loop().create_future()
        self._up.set()

    async def _on_down(self) -> None:
        self.outage = "the connection to the server was lost; reconnecting"
        self._up.clear()
        if not self._down.done():
            self._down.set_result(None)
        if not self._closing:
            log.warning("%s: %s", self.place.shown, self.outage)

    async def _on_reconnected(self) -> None:
        self._mark_up()
        log.info("%s: connected again", self.place.shown)
        self._on_up()

    async def _on_error(self, error: Exception) -> None:
        log.debug("%s: %s", self.place.shown, type(error).__name__)

    def _ensure_new_enough(self) -> None:
        version = self._client.connected_server_version
        if (version.major, version.minor) < OLDEST:
            wanted = ".".join(map(str, OLDEST))
            raise JournalUnavailable(
                f"{self.place.shown} runs nats-server {self.server}, but {wanted} or newer is "
                "required: a batch of several messages must be written atomically"
            )


def _drop_result(work: asyncio.Future[NatsMessage]) -> None:
    """Take note of how a request ended that nobody waits for any more."""
    if not work.cancelled():
        work.exception()


def read_answer(msg: NatsMessage) -> dict[str, Any]:
    """The object of an answer; raises `RequestRefused` where it carries an error."""
    found: dict[str, Any] = msgspec.json.decode(msg.data)
    error: dict[str, Any] | None = found.get("error")
    if error is not None:
        raise RequestRefused(
            int(error.get("code", 0)), int(error.get("err_code", 0)), str(error.get("description"))
        )
    return found
