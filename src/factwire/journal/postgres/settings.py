"""What the URL of a PostgreSQL journal says, and the numbers that bound how it is used."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from factwire.journal.errors import JournalUrlError

PATIENCE: Final = 30.0
"""Seconds that a call waits for a server that went away, before it raises `JournalUnavailable`."""

POLL: Final = 1.0
"""Seconds after which a follower looks for facts although no notification came."""

READ_SESSIONS: Final = 4
"""Connections for reads, so that one slow read does not hold up the next."""

GROUP_FACTS: Final = 4_096
"""Facts in a commit, past which it takes no further batch."""

GROUP_BYTES: Final = 1024 * 1024
"""Bytes of lines in a commit, past which it takes no further batch; a chunk is read whole."""

PAGE_CHUNKS: Final = 256
"""Chunks fetched at once."""

PAGE_BYTES: Final = 2 * 1024 * 1024
"""Bytes of chunks fetched at once, so that a reader's memory does not depend on its journal."""

TAIL_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the newest chunks kept for followers; one that falls behind them reads the server."""

THREADS_KEPT: Final = 4_096
"""Thread records that a writer remembers between two commits."""

STALLED: Final = 10_000
"""Milliseconds after which the server ends the transaction of a process that has stopped, so that
it does not hold up the others."""

_OWN: Final = ("journal", "patience", "poll", "durable")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,63}")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One journal in one database; `dsn` is what the driver gets."""

    dsn: str
    journal: str = "main"
    patience: float = PATIENCE
    poll: float = POLL
    durable: bool = True
    shown: str = ""
    """The URL without its password, for messages."""


def read_settings(url: str) -> Settings:
    """The settings in `postgres://…?journal=NAME&patience=S&poll=S&durable=no`."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    own = {name: given.pop(name) for name in _OWN if name in given}
    shown = _without_password(url)
    name = own.get("journal", "main")
    if _NAME.fullmatch(name) is None:
        raise JournalUrlError(f"journal= takes 1–63 of A–Z a–z 0–9 _ . -, got {name!r} in {shown}")
    return Settings(
        dsn=urlunsplit(parts._replace(query=urlencode(given))),
        journal=name,
        patience=_seconds(own, "patience", PATIENCE, shown),
        poll=_seconds(own, "poll", POLL, shown),
        durable=_durable(own.get("durable", "yes"), shown),
        shown=shown,
    )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    given.pop("password", None)
    netloc = user.partition(":")[0] + at + place
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(given, safe="/")))


def _seconds(own: dict[str, str], name: str, default: float, shown: str) -> float:
    try:
        value = float(own.get(name, default))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise JournalUrlError(f"{name}= takes seconds above 0, got {own[name]!r} in {shown}")
    return value


def _durable(text: str, shown: str) -> bool:
    if text not in ("yes", "no"):
        raise JournalUrlError(f"durable= takes yes or no, got {text!r} in {shown}")
    return text == "yes"
