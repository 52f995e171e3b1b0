"""`Link`: what both clients know of their Edge, and how they settle what went wrong; no I/O."""

from collections.abc import Mapping
from typing import Any

import msgspec

from factwire import __version__
from factwire.client.address import Address, Query
from factwire.client.call import Answer, Call, problem_of
from factwire.client.errors import EdgeProblem, EdgeUnreachable
from factwire.client.libraries import InvalidStatus, httpx, socket_log
from factwire.client.limits import (
    CLOSE_SECONDS,
    CONNECT_SECONDS,
    MESSAGE_BYTES,
    QUEUED_MESSAGES,
    REQUEST_SECONDS,
)
from factwire.client.retrying import BUSY, Tries, asked_pause
from factwire.client.tokens import Token

AGENT = f"factwire/{__version__}"

_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Failures after which an Edge cannot have seen the request."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One Edge, the token for it, and how long to keep trying."""

    address: Address
    token: Token
    retry_seconds: float
    reconnect_seconds: float

    def http_settings(self) -> dict[str, Any]:
        """How the HTTP library is set up. Settings of the machine, like proxies, do not count: they
        would be shown the token.
        """
        return {
            "headers": {**self.token.headers, "User-Agent": AGENT, "Accept-Encoding": "identity"},
            "timeout": httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS),
            "trust_env": False,
            "follow_redirects": False,
        }

    def socket_settings(self) -> dict[str, Any]:
        """The same for sockets."""
        return {
            "additional_headers": self.token.headers,
            "user_agent_header": AGENT,
            "compression": None,
            "proxy": None,
            "open_timeout": CONNECT_SECONDS,
            "close_timeout": CLOSE_SECONDS,
            "max_size": MESSAGE_BYTES,
            "max_queue": QUEUED_MESSAGES,
            "logger": socket_log,
        }

    def socket_url(self, path: str, query: Query) -> str:
        return self.address.socket(path, query)

    def after_answer(self, tries: Tries, call: Call[Any], answer: "httpx.Response") -> float | None:
        """Seconds after which a call is sent again although it was answered; None if it is not."""
        if answer.status_code not in BUSY or answer.status_code in call.accepts:
            return None
        return tries.pause(asked_pause(lower(answer.headers))) if call.is_repeatable else None

    def after_failure(self, tries: Tries, call: Call[Any], error: "httpx.RequestError") -> float:
        """Seconds after which a call is sent again that was not answered; raises
        `EdgeUnreachable`.
        """
        repeatable = call.is_repeatable or isinstance(error, _UNSENT)
        pause = tries.pause() if repeatable else None
        if pause is None:
            raise self.unreachable(error) from error
        return pause

    def after_refusal(self, tries: Tries, error: Exception) -> float:
        """Seconds after which a stream is asked for again that was not opened; raises
        `EdgeProblem` or `EdgeUnreachable`.
        """
        if isinstance(error, InvalidStatus):
            problem, headers = _refused(error)
            pause = tries.pause(asked_pause(headers)) if problem.status in BUSY else None
            if pause is None:
                raise problem from error
            return pause
        pause = tries.pause()
        if pause is None:
            raise self.unreachable(error) from error
        return pause

    def unreachable(self, error: Exception) -> EdgeUnreachable:
        return EdgeUnreachable(self.address.url, str(error) or type(error).__name__)


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _refused(error: InvalidStatus) -> tuple[EdgeProblem, dict[str, str]]:
    response = error.response
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    answer = Answer(response.status_code, headers, bytes(response.body or b""))
    return problem_of(answer), headers
