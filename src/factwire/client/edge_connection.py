"""What both clients share of talking to an Edge: calls as values, settings, retries; no I/O.

A POST carries a fresh Idempotency-Key from the moment it is made, so that however often it is sent,
it is done once. What failed for want of an answer is tried again, not what was refused; pauses grow
and are of random length, so that many who lost the same Edge do not return as one.
"""

from collections.abc import Callable, Mapping
from math import ceil
from random import random
from time import monotonic
from typing import Any, Final, Generic, Self, TypeVar

import msgspec
from ulid import ULID

from factwire import __version__
from factwire.client.edge_address import Address, EdgeToken, Query
from factwire.client.errors import EdgeProblem, EdgeUnreachable, Server, UnreadableAnswer
from factwire.client.hub_sessions import HubSessions
from factwire.client.libraries import InvalidStatus, httpx, socket_log
from factwire.client.limits import (
    CLOSE_SECONDS,
    CONNECT_SECONDS,
    FIRST_PAUSE,
    HUB_REQUEST_SECONDS,
    LONGEST_PAUSE,
    MESSAGE_BYTES,
    QUEUED_MESSAGES,
    REQUEST_SECONDS,
    WAIT_SECONDS,
)
from factwire.facts import FactError

UNAUTHENTICATED: Final = 401

GATEWAY_TIMEOUT: Final = 504
BUSY: Final = (429, 503)
"""Statuses by which an Edge asks to be tried again."""

_DOUBLINGS: Final = 16


class RetryBudget:
    """The tries of one request, or of one stream. They end `seconds` after the first that failed,
    and begin anew when one did not.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._failed = 0

    def next_pause(self, requested: float | None = None) -> float | None:
        """Seconds to wait before the next try; None where there is no time for one.

        `requested` is how long the Edge asks clients to wait.
        """
        now = monotonic()
        self._ends = now + self._seconds if self._ends is None else self._ends
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failed, _DOUBLINGS))
        self._failed += 1
        # Not a secret: it only spreads those who come again.
        pause = longest * (0.5 + random() / 2) if requested is None else requested  # noqa: S311
        return pause if now + pause <= self._ends else None

    def mark_connected(self, seconds: float) -> None:
        """A connection stands; once it is cut, there are so many seconds for the next one."""
        self._seconds = seconds
        self._ends = None

    def mark_served(self) -> None:
        """Something came, so that the next pause is a short one again."""
        self._failed = 0


class EndWait:
    """How long to wait for the end of something: for `seconds`, and no longer than an Edge may be
    out of reach.
    """

    def __init__(self, what: str, seconds: float | None, reconnect_seconds: float) -> None:
        self._what = what
        self._ends = None if seconds is None else monotonic() + seconds
        self._reconnect_seconds = reconnect_seconds
        self._budget = RetryBudget(reconnect_seconds)

    def next_wait(self) -> int:
        """Whole seconds that the next request may wait; raises `TimeoutError`."""
        self._budget = RetryBudget(self._reconnect_seconds)
        return self._seconds_left()

    def next_pause(self, error: EdgeUnreachable) -> float:
        """Seconds before the next try, after one that failed; raises what there is no time for."""
        self._seconds_left()
        pause = self._budget.next_pause()
        if pause is None:
            raise error
        return pause

    def _seconds_left(self) -> int:
        left = WAIT_SECONDS if self._ends is None else self._ends - monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._what} has not ended in time")
        return min(WAIT_SECONDS, ceil(left))


def requested_pause(headers: Mapping[str, str]) -> float | None:
    """How long an answer asks to wait, where it says so in seconds."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


T = TypeVar("T")

_SAFE: Final = ("GET", "HEAD")


class EdgeResponse(msgspec.Struct, frozen=True):
    """What came back; names of headers are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class EdgeCall(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What to send and how to read what comes; `accepts` are statuses that are no refusals. What
    may wait is left at a Hub for a device that is away.
    """

    method: str
    path: str
    read: Callable[[EdgeResponse], T]
    query: Query = ()
    body: bytes | None = None
    key: str | None = None
    accepts: tuple[int, ...] = ()
    may_wait: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method in _SAFE or self.key is not None

    @property
    def headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.may_wait:
            headers["Prefer"] = "respond-async"
        return headers if self.key is None else {**headers, "Idempotency-Key": self.key}

    def after(self, cursor: str) -> Self:
        """The same question about what follows."""
        others = tuple(pair for pair in self.query if pair[0] not in ("cursor", "since"))
        return msgspec.structs.replace(self, query=(*others, ("cursor", cursor)))

    def result(self, answer: EdgeResponse) -> T:
        """What an answer says; raises `EdgeProblem` or `UnreadableAnswer`."""
        if answer.status in self.accepts or 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP
            try:
                return self.read(answer)
            except (msgspec.DecodeError, FactError, KeyError, ValueError) as error:
                raise UnreadableAnswer(
                    f"{self.method} {self.path}: unexpected response ({error}); the Edge may be a "
                    "different version"
                ) from error
        raise to_problem(answer)


def get(path: str, read: Callable[[EdgeResponse], T], query: Query = ()) -> EdgeCall[T]:
    return EdgeCall(method="GET", path=path, read=read, query=query)


def post(
    path: str, read: Callable[[EdgeResponse], T], body: Mapping[str, Any] | None = None
) -> EdgeCall[T]:
    encoded = None if body is None else encode_body(body)
    return EdgeCall(method="POST", path=path, read=read, body=encoded, key=str(ULID()))


def patch(path: str, read: Callable[[EdgeResponse], T], body: Mapping[str, Any]) -> EdgeCall[T]:
    return EdgeCall(method="PATCH", path=path, read=read, body=encode_body(body))


def delete(path: str, read: Callable[[EdgeResponse], T]) -> EdgeCall[T]:
    return EdgeCall(method="DELETE", path=path, read=read)


def present_fields(**values: Any) -> dict[str, Any]:
    """A body without what was not given."""
    return {name: value for name, value in values.items() if value is not None}


def encode_body(body: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(body)


def json_reader(kind: type[T]) -> Callable[[EdgeResponse], T]:
    """Reads an answer as this type."""
    decoder = msgspec.json.Decoder(kind)
    return lambda answer: decoder.decode(answer.body)


def read_nothing(_: EdgeResponse) -> None:
    """There is nothing to read."""


def to_problem(answer: EdgeResponse) -> EdgeProblem:
    """What a refusal says, whoever refused."""
    try:
        document = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        document = {}
    standard_members = ("type", "title", "status", "code", "detail", "traceId")
    return EdgeProblem(
        answer.status,
        str(document.get("code") or f"http_{answer.status}"),
        str(document.get("detail") or document.get("title") or "no reason was given"),
        trace_id=document.get("traceId") or answer.headers.get("x-trace-id"),
        members={name: value for name, value in document.items() if name not in standard_members},
    )


_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Failures after which an Edge cannot have seen the request."""


class EdgeConnection(msgspec.Struct, frozen=True, kw_only=True):
    """One Edge or Hub, and how long to keep trying; `product` is what it hears of who uses it. The
    token is `token`, or that of the session at the Hub among `sessions`. `device_seconds` is how
    long a device has to answer what the Hub passes on to it.
    """

    address: Address
    token: EdgeToken | None
    retry_seconds: float
    reconnect_seconds: float
    product: str = "factwire"
    sessions: HubSessions | None = None
    server: Server = "Edge"
    device_seconds: float = 0.0

    def require_sessions(self) -> HubSessions:
        """Where the session is kept by which requests are sent that have no token."""
        assert self.sessions is not None  # noqa: S101 - one or the other is set
        return self.sessions

    @property
    def user_agent(self) -> str:
        return f"{self.product}/{__version__}"

    def http_settings(self) -> dict[str, Any]:
        """How the HTTP library is set up. Settings of the machine, like proxies, do not count: they
        would be shown the token.
        """
        return {
            "headers": {"User-Agent": self.user_agent, "Accept-Encoding": "identity"},
            "timeout": httpx.Timeout(
                HUB_REQUEST_SECONDS if self.server == "Hub" else REQUEST_SECONDS,
                connect=CONNECT_SECONDS,
            ),
            "trust_env": False,
            "follow_redirects": False,
        }

    def socket_settings(self, token: EdgeToken) -> dict[str, Any]:
        """The same for sockets."""
        return {
            "additional_headers": token.headers,
            "user_agent_header": self.user_agent,
            "compression": None,
            "proxy": None,
            "open_timeout": CONNECT_SECONDS,
            "close_timeout": CLOSE_SECONDS,
            "max_size": MESSAGE_BYTES,
            "max_queue": QUEUED_MESSAGES,
            "logger": socket_log,
        }

    def is_token_refused(self, error: Exception) -> bool:
        """Whether a session must be renewed before a stream is asked for again."""
        refused = isinstance(error, InvalidStatus) and error.response.status_code == UNAUTHENTICATED
        return refused and self.sessions is not None

    def socket_url(self, path: str, query: Query) -> str:
        return self.address.socket(path, query)

    def pause_after_answer(
        self,
        budget: RetryBudget,
        device_budget: RetryBudget,
        call: EdgeCall[Any],
        answer: "httpx.Response",
    ) -> float | None:
        """Seconds after which a call is sent again although it was answered; None if it is not. One
        that a Hub could not get an answer to is sent again for as long as its device may take.
        """
        if answer.status_code == GATEWAY_TIMEOUT and call.is_repeatable:
            return device_budget.next_pause()
        if answer.status_code not in BUSY or answer.status_code in call.accepts:
            return None
        return (
            budget.next_pause(requested_pause(lower_header_names(answer.headers)))
            if call.is_repeatable
            else None
        )

    def pause_after_failure(
        self, budget: RetryBudget, call: EdgeCall[Any], error: "httpx.RequestError"
    ) -> float:
        """Seconds after which a call is sent again that was not answered; raises
        `EdgeUnreachable`.
        """
        repeatable = call.is_repeatable or isinstance(error, _UNSENT)
        pause = budget.next_pause() if repeatable else None
        if pause is None:
            raise self.to_unreachable(error) from error
        return pause

    def pause_after_refusal(self, budget: RetryBudget, error: Exception) -> float:
        """Seconds after which a stream is asked for again that was not opened; raises
        `EdgeProblem` or `EdgeUnreachable`.
        """
        if isinstance(error, InvalidStatus):
            problem, headers = _read_refusal(error)
            pause = budget.next_pause(requested_pause(headers)) if problem.status in BUSY else None
            if pause is None:
                raise problem from error
            return pause
        pause = budget.next_pause()
        if pause is None:
            raise self.to_unreachable(error) from error
        return pause

    def to_unreachable(self, error: Exception) -> EdgeUnreachable:
        return EdgeUnreachable(self.address.url, str(error) or type(error).__name__, self.server)


def lower_header_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _read_refusal(error: InvalidStatus) -> tuple[EdgeProblem, dict[str, str]]:
    response = error.response
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    answer = EdgeResponse(response.status_code, headers, bytes(response.body or b""))
    return to_problem(answer), headers
