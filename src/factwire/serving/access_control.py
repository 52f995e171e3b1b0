"""Who may come in: known hosts and origins, tokens, tickets for streams, and how often.

A name that points here is not enough: a page of somebody else's can make one (DNS rebinding), so
hosts and origins are known by name. The token is always there, never weak and never in a place
that others read. Further tokens have a name and scopes, and are stored as hashes. A ticket stands
in an address where a token must not, and opens streams alone; it is kept only as a hash, also over
a restart, and does what the token it was made with may do for as long as that token exists.
Counters have a fixed size, so that counting an attack costs no more than the attack.
"""

import errno
import hmac
import ipaddress
import os
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic, time
from typing import Final, Self

import msgspec

from factwire.facts.resources import TokenRow, TokenScope
from factwire.journal.atomic_files import (
    create_file,
    find_exposure,
    read_regular_file,
    replace_file,
)
from factwire.serving.asgi import Problem
from factwire.serving.limits import (
    CONNECTS_PER_SECOND,
    NAMED_TOKENS,
    OPEN_STREAMS,
    OPEN_TICKETS,
    REFUSALS_PER_MINUTE,
    REFUSED_ADDRESSES,
    STREAM_TICKET_SECONDS,
    TICKET_SECONDS,
    TOKEN_CHARACTERS,
    TOKEN_USE_SECONDS,
)
from factwire.serving.logs import logger

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS: Final = {"http": 80, "https": 443}


_log: Final = logger("factwire.access")


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
        # A browser sends a scheme and a host, nothing else; a URL that means the same is no origin.
        own, separator, netloc = origin.partition("://")
        if not separator or own not in _PORTS or host is None:
            return False
        return _is_same_origin(netloc, own, host.lower(), scheme)


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


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whose request it is, by the token that came with it; the first token has no id and no name,
    and may do everything.
    """

    token_id: str | None = None
    token_name: str | None = None
    scopes: tuple[TokenScope, ...] = ("admin",)

    def may(self, scope: TokenScope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class _Ticket(msgspec.Struct, kw_only=True):
    """`streams` counts those that are open by it; one that is not `renewable` opens one."""

    caller: Caller
    ends: float
    renewable: bool
    streams: int = 0


class _SavedTicket(msgspec.Struct, kw_only=True):
    """A ticket beyond its process: `ends` is a time of day."""

    digest: str
    caller: Caller
    ends: float


class _SavedTickets(msgspec.Struct, kw_only=True):
    token: str
    tickets: list[_SavedTicket]


class Tickets:
    """The tickets that are out. One for a single stream is spent by it. A renewable one opens
    streams again and again: it lasts while one is open, and for a while after that or after it was
    renewed.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._tickets: dict[bytes, _Ticket] = {}

    def issue(self, caller: Caller, *, renewable: bool = False) -> str:
        """A fresh ticket; raises `Problem` while too many are out."""
        self._forget_old()
        if len(self._tickets) >= OPEN_TICKETS:
            raise Problem(
                429,
                "too_many_tickets",
                f"{OPEN_TICKETS} tickets are unused; use one, or wait until they expire",
                headers={"retry-after": str(int(TICKET_SECONDS))},
            )
        ticket = f"tkt_{secrets.token_urlsafe(24)}"
        life = STREAM_TICKET_SECONDS if renewable else TICKET_SECONDS
        self._tickets[_hash(ticket)] = _Ticket(
            caller=caller, ends=self._clock() + life, renewable=renewable
        )
        return ticket

    def redeem(self, ticket: str) -> Caller | None:
        """Whose ticket it is, for one that is good; one for a single stream is spent by this."""
        found = self._find_live(ticket)
        if found is not None and not found.renewable:
            del self._tickets[_hash(ticket)]
        return None if found is None else found.caller

    def renew(self, ticket: str, caller: Caller) -> bool:
        """Let a renewable ticket of this caller's last anew; false where there is none."""
        found = self._find_live(ticket)
        if found is None or not found.renewable or found.caller != caller:
            return False
        found.ends = self._clock() + STREAM_TICKET_SECONDS
        return True

    @contextmanager
    def keep_open(self, ticket: str) -> Generator[None]:
        """A renewable ticket lasts while a stream is open by it, and begins its time anew then."""
        found = self._tickets.get(_hash(ticket))
        if found is None:
            yield
            return
        found.streams += 1
        try:
            yield
        finally:
            found.streams -= 1
            found.ends = max(found.ends, self._clock() + STREAM_TICKET_SECONDS)

    def revoke(self, token_id: str) -> None:
        """End every ticket that was made with a token."""
        kept = {
            key: each for key, each in self._tickets.items() if each.caller.token_id != token_id
        }
        self._tickets = kept

    def save(self, path: Path, token: "AccessToken") -> None:
        """Keep the renewable tickets for the next start of this server."""
        now = self._clock()
        kept = [
            _SavedTicket(
                digest=key.hex(),
                caller=each.caller,
                ends=time() + (STREAM_TICKET_SECONDS if each.streams else each.ends - now),
            )
            for key, each in self._tickets.items()
            if each.renewable and not self._is_over(each)
        ]
        if kept:
            saved = _SavedTickets(token=_hash(token.value).hex(), tickets=kept)
            replace_file(path, msgspec.json.encode(saved))

    def restore(self, path: Path, token: "AccessToken", tokens: "TokenStore") -> None:
        """Take in what was saved, once. A ticket ends with its time, with its named token, and with
        the first token, as when that one was changed; a file that cannot be read holds none.
        """
        try:
            data = path.read_bytes()
            path.unlink()
            saved = msgspec.json.decode(data, type=_SavedTickets)
            digests = [bytes.fromhex(each.digest) for each in saved.tickets]
        except (OSError, ValueError, msgspec.DecodeError):
            return
        callers = {None: Caller(), **{each.token_id: each for each in tokens.callers()}}
        if saved.token != _hash(token.value).hex():
            return
        for digest, each in zip(digests, saved.tickets, strict=True):
            left = min(each.ends - time(), STREAM_TICKET_SECONDS)
            if left > 0 and callers.get(each.caller.token_id) == each.caller:
                self._tickets[digest] = _Ticket(
                    caller=each.caller, ends=self._clock() + left, renewable=True
                )

    def _find_live(self, ticket: str) -> _Ticket | None:
        found = self._tickets.get(_hash(ticket))
        return None if found is None or self._is_over(found) else found

    def _is_over(self, ticket: _Ticket) -> bool:
        return ticket.streams == 0 and ticket.ends <= self._clock()

    def _forget_old(self) -> None:
        for key in [key for key, each in self._tickets.items() if self._is_over(each)]:
            del self._tickets[key]


def _hash(ticket: str) -> bytes:
    return sha256(ticket.encode("utf-8", "surrogateescape")).digest()


_EXAMPLES: Final = ("changeme", "change-me", "default", "example", "password", "secret", "token")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_GENERATED: Final = "fwt_"
"""How a generated token begins: redaction knows it by that, wherever it turns up."""

_GENERATED_CHARACTERS: Final = len(_GENERATED) + 43
_LARGEST_FILE: Final = 16 * 1024 * 1024
"""Bytes of a file of tokens that are read; the largest that this program writes is far smaller."""

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
    stored = read_private_file(path)
    if stored is not None and stored.strip():
        return LoadedToken(token=_parse_stored_token(path, stored.strip()), made=False)
    value = f"{_GENERATED}{secrets.token_urlsafe(32)}"
    try:
        if stored is not None:
            # An empty file holds no token that anybody could have.
            path.unlink(missing_ok=True)
        create_file(path, f"{value}\n".encode())
    except FileExistsError:
        # Another process was faster.
        return load_token(folder, file_name)
    except OSError as error:
        raise _unusable_file(path, error) from error
    return LoadedToken(token=AccessToken(value), made=True)


def _parse_stored_token(path: Path, stored: bytes) -> AccessToken:
    text, remedy = stored.decode("ascii", "replace"), "delete the file to have a new one generated"
    if text.startswith(_GENERATED) and len(text) != _GENERATED_CHARACTERS:
        raise InsecureStart("token_unusable", f"{path}: the token is incomplete; {remedy}")
    try:
        return check_token(text)
    except InsecureStart as error:
        raise InsecureStart(error.code, f"{path}: {error}; {remedy}") from error


def read_private_file(path: Path) -> bytes | None:
    """What a file of a data folder holds, None where there is none; raises `InsecureStart` for one
    that cannot be read, that is no file, or that is not private to this user.
    """
    try:
        data, about = read_regular_file(path, _LARGEST_FILE, follow_links=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable_file(path, error) from error
    _ensure_private(path, about)
    return data


def _unusable_file(path: Path, error: OSError) -> InsecureStart:
    reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
    return InsecureStart("file_unusable", f"cannot use {path}: {reason}")


class _StoredToken(msgspec.Struct, kw_only=True):
    row: TokenRow
    digest: str


class TokenStore:
    """The named tokens of a server, in a file that only its user can read and that holds no secret.

    When a token was used last is written now and then, and whenever the file is written anyway.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._clock = clock
        self._tokens = {each.digest: each for each in _read_stored_tokens(path)}
        self._saved = clock()

    def rows(self) -> list[TokenRow]:
        """Every token, the newest first."""
        return [each.row for each in reversed(self._tokens.values())]

    def create(
        self, token_id: str, name: str, scopes: tuple[TokenScope, ...]
    ) -> tuple[TokenRow, str]:
        """A token and its secret, which nobody can look up later; raises `Problem`."""
        taken = {each.row.token_id for each in self._tokens.values()}
        names = {each.row.name for each in self._tokens.values()}
        if token_id in taken or name in names:
            raise Problem(409, "token_exists", "there is a token with this name; revoke it first")
        if len(self._tokens) >= NAMED_TOKENS:
            detail = f"there are {NAMED_TOKENS} tokens, the maximum; revoke one first"
            raise Problem(409, "too_many_tokens", detail)
        secret = f"{_GENERATED}{secrets.token_urlsafe(32)}"
        row = TokenRow(token_id=token_id, name=name, scopes=scopes, created_at=_now())
        digest = _hash(secret).hex()
        self._replace({**self._tokens, digest: _StoredToken(row=row, digest=digest)})
        return row, secret

    def revoke(self, token_id: str) -> None:
        """Let a token open nothing any more; raises `Problem` where there is none."""
        for digest, each in self._tokens.items():
            if each.row.token_id == token_id:
                self._replace({key: it for key, it in self._tokens.items() if key != digest})
                return
        raise Problem(404, "unknown_token", "no token has this id")

    def find(self, secret: str) -> Caller | None:
        """Whose token somebody offers; a match is by hash, so that its time tells nothing."""
        found = self._tokens.get(_hash(secret).hex())
        if found is None:
            return None
        found.row = msgspec.structs.replace(found.row, last_used_at=_now())
        if self._clock() - self._saved >= TOKEN_USE_SECONDS:
            self._save_last_use()
        return _to_caller(found.row)

    def callers(self) -> list[Caller]:
        """Who comes with each token."""
        return [_to_caller(row) for row in self.rows()]

    def close(self) -> None:
        """Write down when tokens were used last."""
        if self._tokens:
            self.save()

    def save(self) -> None:
        """Replace the file whole, durably."""
        self._replace(self._tokens)

    def _replace(self, tokens: dict[str, _StoredToken]) -> None:
        """Count tokens once they are on disk: a restart must neither lose nor revive one."""
        replace_file(self._path, msgspec.json.encode(list(tokens.values())))
        self._tokens = tokens
        self._saved = self._clock()

    def _save_last_use(self) -> None:
        """A disk that takes no more keeps nobody out; the time is written later."""
        try:
            self.save()
        except OSError as error:
            self._saved = self._clock()
            _log.warning("token_use_unsaved", detail=error.strerror)


def _to_caller(row: TokenRow) -> Caller:
    return Caller(token_id=row.token_id, token_name=row.name, scopes=row.scopes)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read_stored_tokens(path: Path) -> list[_StoredToken]:
    stored = read_private_file(path)
    if stored is None:
        return []
    try:
        return msgspec.json.decode(stored, type=list[_StoredToken])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InsecureStart(
            "tokens_unreadable",
            f"{path} cannot be read ({error}); delete it to revoke all named tokens",
        ) from error


def _ensure_private(path: Path, about: os.stat_result) -> None:
    exposure = find_exposure(about)
    if exposure is not None:
        raise InsecureStart(
            "token_exposed",
            f"{path} {exposure}; make it yours alone with chmod 600, or delete it to have a new "
            "one generated",
        )
