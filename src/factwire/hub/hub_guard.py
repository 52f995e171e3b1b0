"""The door of a Hub: how often an address may ask, and who is signed in.

Requests are counted before anything about them is believed, in one token bucket for each address
and kind of request. A client behind a proxy that the operator named is counted by the address that
this proxy reports; whatever else a client says about its address is ignored. Every route needs a
role, which is looked up with each request: whoever is signed out, disabled or demoted is it now.
"""

import hmac
import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from factwire.hub.limits import COUNTED_ADDRESSES, USER_AGENT_CHARACTERS
from factwire.hub.people.accounts import HubServices, authenticate
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.hub_tables import Role
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.serving.access_control import HostPolicy
from factwire.serving.asgi import Application, Problem, Receive, Scope, Send, refuse
from factwire.serving.guard import Guard, OpenRoutes, read_credentials
from factwire.serving.idempotency import CALLER_ID

SERVER_NAME: Final = "Hub"
CALLER: Final = "caller"
ORIGIN: Final = "origin"

_MINUTE: Final = 60.0
_NETWORK_BITS: Final = 64
"""Of an IPv6 address, what one subscriber has; they can choose the rest freely."""


class Rate(msgspec.Struct, frozen=True):
    """So many requests of a kind in a minute, from one address."""

    kind: str
    per_minute: int


class RequestRates:
    """Token buckets of a fixed number of addresses."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def spend(self, rate: Rate, address: str) -> None:
        """Take one token; raises `Problem` where none is left."""
        now, key = self._clock(), (rate.kind, address)
        filled, at = self._buckets.pop(key, (float(rate.per_minute), now))
        tokens = min(rate.per_minute, filled + max(0.0, now - at) * rate.per_minute / _MINUTE)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > COUNTED_ADDRESSES:
            self._buckets.popitem(last=False)
        if not allowed:
            seconds = math.ceil((1 - tokens) * _MINUTE / rate.per_minute)
            raise Problem(
                429,
                "too_many_requests",
                f"more than {rate.per_minute} requests of this kind came from your address in a "
                f"minute; try again in {seconds} s",
                headers={"retry-after": str(seconds)},
            )


def client_address(scope: Scope, proxies: frozenset[str]) -> str:
    """Where a request comes from: the last address that no trusted proxy could have made up."""
    peer = str((scope.get("client") or ("", 0))[0])
    if peer not in proxies:
        return peer
    named = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    hops = b",".join(named).decode("latin-1").split(",")
    for hop in reversed([each.strip() for each in hops]):
        if not _is_address(hop):
            break
        if hop not in proxies:
            return hop
    return peer


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def counted_network(address: str) -> str:
    """What requests are counted by."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _NETWORK_BITS), strict=False))


class RateMiddleware:
    """An ASGI application around the guard: it counts, and notes where a request comes from."""

    def __init__(
        self,
        application: Application,
        rates: RequestRates,
        rates_of: Callable[[Scope], tuple[Rate, ...]],
        proxies: frozenset[str],
    ) -> None:
        self._application = application
        self._rates = rates
        self._rates_of = rates_of
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        address = client_address(scope, self._proxies)
        state = scope.setdefault("state", {})
        state[ORIGIN] = ActionOrigin(via="api", address=address, user_agent=_user_agent(scope))
        # Until somebody is known, keys for idempotency are those of an address.
        state[CALLER_ID] = address
        try:
            for rate in self._rates_of(scope):
                self._rates.spend(rate, counted_network(address))
        except Problem as problem:
            await refuse(scope, receive, send, problem)
            return
        await self._application(scope, receive, send)


def _user_agent(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"user-agent":
            text = value.decode("latin-1")
            return "".join(filter(str.isprintable, text))[:USER_AGENT_CHARACTERS]
    return ""


class HubGuard(Guard):
    """A guard that asks for an access token; `role_of` is the role that a request needs, None for
    figures, which also the token of the operator's monitoring may read.
    """

    def __init__(
        self,
        application: Application,
        hub: HubServices,
        host_policy: HostPolicy,
        is_page: Callable[[Scope], bool],
        *,
        open_routes: OpenRoutes,
        body_bytes: int,
        role_of: Callable[[Scope], Role | None],
        metrics_token: str,
    ) -> None:
        super().__init__(
            application,
            host_policy,
            is_page,
            server_name=SERVER_NAME,
            open_routes=open_routes,
            body_bytes=body_bytes,
        )
        self._hub = hub
        self._role_of = role_of
        self._metrics_token = metrics_token.encode()

    async def ensure_credentials(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Require somebody who is signed in and has the role that a request needs."""
        token, role = read_credentials(scope, headers).token, self._role_of(scope)
        if token is None:
            raise _unauthenticated()
        if role is None and hmac.compare_digest(
            token.encode("utf-8", "surrogateescape"), self._metrics_token
        ):
            return
        try:
            caller = await authenticate(self._hub, token)
        except RecordsUnavailable as error:
            raise Problem(
                503, error.code, "the database does not answer", headers={"retry-after": "1"}
            ) from error
        if caller is None:
            raise _unauthenticated()
        if not caller.may(role or "admin"):
            raise Problem(
                403, "insufficient_role", f"this needs the role {role}; yours is {caller.role}"
            )
        state = scope["state"]
        state[CALLER], state[CALLER_ID] = caller, caller.person_id
        state[ORIGIN] = msgspec.structs.replace(state[ORIGIN], actor_id=caller.person_id)


def _unauthenticated() -> Problem:
    return Problem(
        401,
        "unauthenticated",
        "sign in, and send the access token as 'Authorization: Bearer …'; one that has expired "
        "is replaced by POST /v1/auth/refresh",
        headers={"www-authenticate": 'Bearer realm="factwire-hub"'},
    )
