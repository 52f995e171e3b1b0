"""Who may come in: known hosts and origins, the token, tickets for streams, and how often.

A name that points here is not enough: a page of somebody else's can make one (DNS rebinding), so
hosts and origins are known by name. The token is always there, never weak and never in a place
that others read. A ticket stands in an address where a token must not: it is good once, for a few
seconds, and is kept only as a hash. Counters have a fixed size, so that counting an attack costs
no more than the attack.
"""

import hmac
import ipaddress
import os
import re
import secrets
import stat
from collections import OrderedDict, deque
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from factwire.serving.asgi import Problem
from factwire.serving.limits import (
    CONNECTS_PER_SECOND,
    OPEN_STREAMS,
    OPEN_TICKETS,
    REFUSALS_PER_MINUTE,
    REFUSED_ADDRESSES,
    TICKET_SECONDS,
    TOKEN_CHARACTERS,
)

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS: Final = {"http": 80, "https": 443}


class HostPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts` are names as in a Host header, without a port; `origins` as in an Origin header."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()

    @classmethod
    def build(cls, bind: str, hosts: tuple[str, ...], origins: tuple[str, ...]) -> Self:
        """Loopback, what is bound, and what was named besides."""
        named = {host.lower() for host in (*LOOPBACK_NAMES, *hosts)}
        if not is_any_address(bind):
            named.add(f"[{bind}]" if ":" in bind else bind.lower())
        return cls(hosts=frozenset(named), origins=frozenset(map(str.lower, origins)))

    def allows_host(self, header: str | None) -> bool:
        parts = _HOST.fullmatch(header or "")
        return parts is not None and parts["name"].lower() in self.hosts

    def allows_origin(self, header: str, host: str | None, scheme: str) -> bool:
        """Whether a page may talk to this server: one that it served, or one allowed by name."""
        origin = header.lower()
        if origin in self.origins:
            return True
        parts = urlsplit(origin)
        if parts.scheme not in _PORTS or parts.path or parts.query or parts.username is not None:
            return False
        return host is not None and _is_same_origin(
            parts.netloc, parts.scheme, host.lower(), scheme
        )


def is_loopback(bind: str) -> bool:
    """Whether only this machine can reach an address."""
    if bind == "localhost":
        return True
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return False


def is_any_address(bind: str) -> bool:
    try:
        return ipaddress.ip_address(bind).is_unspecified
    except ValueError:
        return False


def _is_same_origin(netloc: str, scheme: str, host: str, own_scheme: str) -> bool:
    page = "https" if own_scheme in ("https", "wss") else "http"
    return scheme == page and _with_port(netloc, scheme) == _with_port(host, page)


def _with_port(netloc: str, scheme: str) -> str | None:
    parts = _HOST.fullmatch(netloc)
    return None if parts is None else f"{parts['name']}:{parts['port'] or _PORTS[scheme]}"


_MINUTE = 60.0


class AccessLimiter:
    """Counts what comes in."""

    def __init__(
        self,
        *,
        open_streams: int = OPEN_STREAMS,
        connects_per_second: int = CONNECTS_PER_SECOND,
        refusals_per_minute: int = REFUSALS_PER_MINUTE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.streams = 0
        self._open_streams = open_streams
        self._refusals_per_minute = refusals_per_minute
        self._clock = clock
        self._connects: deque[float] = deque(maxlen=connects_per_second)
        self._refused: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def enter_stream(self) -> None:
        """Take a place for a stream, or raise `Problem`; `leave_stream` gives it back."""
        now = self._clock()
        if self.streams >= self._open_streams:
            raise _too_busy("too_many_streams", f"too many open streams ({self.streams})", 5)
        full = len(self._connects) == self._connects.maxlen
        if full and now - self._connects[0] < 1.0:
            raise _too_busy("connecting_too_fast", "too many streams opened in one second", 1)
        self._connects.append(now)
        self.streams += 1

    def leave_stream(self) -> None:
        self.streams -= 1

    def ensure_may_try(self, address: str) -> None:
        """Raise `Problem` for an address that guessed too often in this minute."""
        since, count = self._refused.get(address, (0.0, 0))
        if count >= self._refusals_per_minute and self._clock() - since < _MINUTE:
            raise _too_busy("too_many_refusals", "too many failed sign-ins from this address", 60)

    def note_refusal(self, address: str) -> None:
        now = self._clock()
        since, count = self._refused.pop(address, (now, 0))
        self._refused[address] = (now, 1) if now - since >= _MINUTE else (since, count + 1)
        if len(self._refused) > REFUSED_ADDRESSES:
            self._refused.popitem(last=False)


def _too_busy(code: str, what: str, seconds: int) -> Problem:
    headers = {"retry-after": str(seconds)}
    return Problem(429, code, f"{what}; try again in {seconds} s", headers=headers)


class Tickets:
    """The tickets that are out."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._ends: dict[bytes, float] = {}

    def issue(self) -> str:
        """A fresh ticket; raises `Problem` while too many are out."""
        self._forget_old()
        if len(self._ends) >= OPEN_TICKETS:
            raise Problem(
                429,
                "too_many_tickets",
                f"{OPEN_TICKETS} tickets are unused; use one, or wait until they expire",
                headers={"retry-after": str(int(TICKET_SECONDS))},
            )
        ticket = f"tkt_{secrets.token_urlsafe(24)}"
        self._ends[_hash(ticket)] = self._clock() + TICKET_SECONDS
        return ticket

    def redeem(self, ticket: str) -> bool:
        """Whether a ticket is good; from now on it is not."""
        ends = self._ends.pop(_hash(ticket), None)
        return ends is not None and self._clock() < ends

    def _forget_old(self) -> None:
        now = self._clock()
        # Issued in order, so the oldest stand first.
        for ticket, ends in list(self._ends.items()):
            if ends > now:
                break
            del self._ends[ticket]


def _hash(ticket: str) -> bytes:
    return sha256(ticket.encode("utf-8", "surrogateescape")).digest()


_EXAMPLES: Final = ("changeme", "change-me", "default", "example", "password", "secret", "token")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_MODE: Final = 0o600
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FEW_CHARACTERS: Final = 6


class InsecureStart(Exception):
    """A server that would not be safe does not start; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class AccessToken(msgspec.Struct, frozen=True):
    """A secret that can be compared, and that nothing prints by accident."""

    value: str

    def __repr__(self) -> str:
        return "Token(…)"

    def matches(self, offered: str) -> bool:
        """Whether somebody offers this token; takes the same time for every wrong one."""
        ours = sha256(self.value.encode()).digest()
        theirs = sha256(offered.encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(ours, theirs)


class LoadedToken(msgspec.Struct, frozen=True, kw_only=True):
    """`made` is true for one that did not exist before, and which must be shown once."""

    token: AccessToken
    made: bool


def check_token(text: str) -> AccessToken:
    """A token that somebody chose; raises `InsecureStart` for one that could be guessed."""
    if not set(text) <= _PLAIN:
        raise InsecureStart(
            "token_unusable",
            "a token can contain only letters, digits and - . _ ~",
        )
    if len(text) < TOKEN_CHARACTERS:
        raise InsecureStart(
            "token_too_short",
            f"the token has {len(text)} characters; use at least {TOKEN_CHARACTERS}, or omit it "
            "to have one generated",
        )
    plain = text.lower().strip("0123456789-_.~")
    repeated = len(set(text)) < _FEW_CHARACTERS
    if repeated or any(plain == word * (len(plain) // len(word) or 1) for word in _EXAMPLES):
        raise InsecureStart(
            "token_guessable", "the token is easy to guess; omit it to have one generated"
        )
    return AccessToken(text)


def load_token(folder: Path, file_name: str) -> LoadedToken:
    """The token that a file of a data folder holds, made if there is none yet."""
    path = folder / file_name
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, _MODE)
    except FileExistsError:
        return LoadedToken(token=_read_token(path), made=False)
    # The first letters are what redaction knows it by, wherever it turns up.
    value = f"fwt_{secrets.token_urlsafe(32)}"
    with os.fdopen(file, "w", encoding="ascii") as handle:
        handle.write(value + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    return LoadedToken(token=AccessToken(value), made=True)


def _read_token(path: Path) -> AccessToken:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(file, encoding="ascii", errors="replace") as handle:
        if os.fstat(handle.fileno()).st_mode & _OTHERS:
            raise InsecureStart(
                "token_exposed",
                f"{path.name} in the data folder can be read by other users; set its mode to "
                "600, or delete it to have a new one generated",
            )
        return check_token(handle.read().strip())
