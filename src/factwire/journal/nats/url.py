"""`nats://host:port/NAME`, and what an acknowledgement from that server is worth.

JetStream acknowledges a message once a majority of its replicas have taken it in. Whether they have
then flushed it to disk is the server's `sync_interval`, two minutes unless it is set: only
`sync_interval: always` makes an acknowledged fact survive the loss of power. A client cannot see
that setting, so the URL says it (`?sync=always`), or names the server's monitoring address
(`?monitor=host:8222`) where it is looked up. With neither, opening warns.
"""

import asyncio
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from urllib.request import urlopen

import msgspec

from factwire.journal.errors import JournalUnavailable, JournalUrlError

PATIENCE: Final = 10.0
"""Seconds for which a call waits for a server that is gone."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPTIONS: Final = ("replicas", "sync", "monitor", "patience")
_REPLICAS: Final = (1, 3, 5)
_FORM: Final = "nats://host:port/NAME[?replicas=3&sync=always&monitor=host:port&patience=10]"


class DurabilityWarning(UserWarning):
    """An acknowledged fact may be lost with the server's power."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
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
        held = f"{majority} of {self.replicas} replicas" if self.replicas > 1 else "the one replica"
        return f"an ack means that {held} took the facts in, {_FLUSHED[self.flushed]}"


_FLUSHED: Final = {
    True: "flushed to disk (sync_interval: always)",
    False: "not flushed to disk: set sync_interval: always in the server's jetstream block",
    None: (
        "flushed to disk only if the server has sync_interval: always; "
        "say so with ?sync=always or let it be looked up with ?monitor=host:port"
    ),
}


def parse_place(url: str) -> Place:
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
    return Place(
        servers=tuple(prefix + host for host in hosts.split(",")),
        shown=f"nats://{hosts}/{name}",
        name=name,
        replicas=_replicas(options.get("replicas")),
        sync=_sync(options.get("sync", "unknown")),
        monitor=options.get("monitor"),
        patience=_patience(options.get("patience", str(PATIENCE))),
    )


async def promise_of(place: Place, server: str, replicas: int) -> AckPromise:
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
        raise JournalUnavailable(f"the monitoring address {monitor} gave no answer") from error
    config: dict[str, Any] = found.get("config") or {}
    return bool(config.get("sync_always"))


def _replicas(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) not in _REPLICAS:
        raise JournalUrlError(f"expected replicas=1, 3 or 5, got {text!r}")
    return int(text)


def _sync(text: str) -> str:
    if text not in ("always", "unknown"):
        raise JournalUrlError(f"expected sync=always or no such option, got {text!r}")
    return text


def _patience(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:  # noqa: PLR2004
        raise JournalUrlError(f"expected patience in seconds above 0, got {text!r}")
    return seconds
