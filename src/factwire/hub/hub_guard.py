"""The door of a Hub: how often an address may ask, and who is signed in.

Requests are counted before anything about them is believed, in one window for each address and
kind of request. A client behind a proxy that the operator named is counted by the address that
this proxy reports; whatever else a client says about its address is ignored. Every route needs a
role, which is looked up with each request: whoever is signed out, disabled or demoted is it now. A
socket may come with a ticket in its address, where a browser can put nothing else.
"""

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from factwire.hub.limits import USER_AGENT_CHARACTERS
from factwire.hub.people.accounts import HubCaller, HubServices, authenticate
from factwire.hub.people.socket_tickets import is_ticket, redeem_ticket
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.hub_tables import Role
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.request_rates import Rate, RequestRates
from factwire.serving.access_control import HostPolicy
from factwire.serving.asgi import Application, Problem, Receive, Scope, Send, refuse
from factwire.serving.guard import BodyRule, Credentials, Guard, OpenRoutes, read_credentials
from factwire.serving.idempotency import CALLER_ID

SERVER_NAME: Final = "Hub"
CALLER: Final = "caller"
ORIGIN: Final = "origin"

SOCKET_TOKEN: Final = "access_token"  # noqa: S105 - a name, not a token
"""The parameter of a socket's address that holds a ticket."""

RouteAccess = Role | Literal["device", "both"]
"""Who may use a route: people of a role or above, a device for what is its own, or anybody of the
two.
"""

_NO_TICKET: Final = ""
"""The name of a parameter that no address has."""

_NETWORK_BITS: Final = 64
"""Of an IPv6 address, what one subscriber has; they can choose the rest freely."""


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
    """A guard that asks for an access token; `access_of` is who may send a request, None for
    figures, which also the token of the operator's monitoring may read. `takes_ticket` is true for
    a socket that may have a ticket in its address; `token_in_url` lets that be an access token.
    """

    def __init__(
        self,
        application: Application,
        hub: HubServices,
        host_policy: HostPolicy,
        is_page: Callable[[Scope], bool],
        *,
        open_routes: OpenRoutes,
        body_rule_of: Callable[[Scope], BodyRule],
        access_of: Callable[[Scope], RouteAccess | None],
        takes_ticket: Callable[[Scope], bool],
        metrics_token: str,
        token_in_url: bool,
    ) -> None:
        super().__init__(
            application,
            host_policy,
            is_page,
            server_name=SERVER_NAME,
            open_routes=open_routes,
            body_rule_of=body_rule_of,
        )
        self._hub = hub
        self._access_of = access_of
        self._takes_ticket = takes_ticket
        self._metrics_token = metrics_token.encode()
        self._token_in_url = token_in_url

    async def ensure_credentials(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Require somebody who is signed in and may send a request."""
        takes_ticket, access = self._takes_ticket(scope), self._access_of(scope)
        name = SOCKET_TOKEN if takes_ticket else _NO_TICKET
        credentials = read_credentials(scope, headers, ticket_name=name)
        if access is None and hmac.compare_digest(
            (credentials.token or "").encode("utf-8", "surrogateescape"), self._metrics_token
        ):
            return
        try:
            caller = await self._identify(credentials)
        except RecordsUnavailable as error:
            raise Problem(
                503, error.code, "the database does not answer", headers={"retry-after": "1"}
            ) from error
        if caller is None:
            raise _unauthenticated()
        _ensure_access(caller, access or "admin")
        state = scope["state"]
        state[CALLER], state[CALLER_ID] = caller, caller.person_id
        state[ORIGIN] = msgspec.structs.replace(state[ORIGIN], actor_id=caller.person_id)

    async def _identify(self, credentials: Credentials) -> HubCaller | None:
        if credentials.token is not None:
            return await authenticate(self._hub, credentials.token)
        if credentials.ticket is None:
            return None
        caller = await redeem_ticket(self._hub, credentials.ticket)
        if caller is None and not is_ticket(credentials.ticket):
            if not self._token_in_url:
                raise Problem(
                    400,
                    "token_in_url",
                    "this Hub takes no access token in an address; send it as 'Authorization: "
                    "Bearer …', or get a ticket from POST /client/ws-ticket",
                )
            caller = await authenticate(self._hub, credentials.ticket)
        if caller is None:
            raise Problem(
                401,
                "ticket_invalid",
                "the ticket is unknown, used or expired; get one from POST /client/ws-ticket",
            )
        return caller


def _ensure_access(caller: HubCaller, access: RouteAccess) -> None:
    if access == "both":
        return
    if access == "device":
        if caller.device_id is None:
            raise Problem(403, "device_only", "only a device that has joined may do this")
    elif caller.device_id is not None:
        raise Problem(403, "people_only", "this needs a person who is signed in, not a device")
    elif not caller.may(access):
        raise Problem(
            403, "insufficient_role", f"this needs the role {access}; yours is {caller.role}"
        )


def _unauthenticated() -> Problem:
    return Problem(
        401,
        "unauthenticated",
        "sign in, and send the access token as 'Authorization: Bearer …'; one that has expired "
        "is replaced by POST /v1/auth/refresh",
        headers={"www-authenticate": 'Bearer realm="factwire-hub"'},
    )
