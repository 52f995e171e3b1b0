"""Credentials: what a request offers to be let in, and the places where it may stand.

A header, or for streams the list of subprotocols, carries the token; an address only ever carries a
ticket. A token in an address is refused even when it is right, so that nobody gets used to it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from factwire.edge.problems import Problem

SUBPROTOCOL: Final = "factwire.v1"
"""What the server answers to a client that offers the token as a subprotocol."""

TOKEN_SUBPROTOCOL: Final = "factwire.token."  # noqa: S105 - the prefix, not a token
"""Begins the subprotocol that carries the token."""

_IN_ADDRESS: Final = ("access_token", "api_key", "auth", "authorization", "key", "token")


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """At most one of the two is used; a header comes first."""

    token: str | None = None
    ticket: str | None = None


def offered(scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Offered:
    """What a request offers; raises `Problem` for a token in its address."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    for name in _IN_ADDRESS:
        if name in query:
            raise Problem(
                400,
                "token_in_url",
                "a token may not stand in an address; send it as 'Authorization: Bearer …', or "
                "get a ticket from POST /v1/tickets for a stream",
            )
    bearer = _bearer(headers.get(b"authorization"))
    if bearer is not None:
        return Offered(token=bearer)
    subprotocols: Iterable[str] = scope.get("subprotocols", ())
    for name in subprotocols:
        if name.startswith(TOKEN_SUBPROTOCOL):
            return Offered(token=name.removeprefix(TOKEN_SUBPROTOCOL))
    tickets = query.get("ticket")
    return Offered(ticket=tickets[0] if tickets else None)


def _bearer(header: bytes | None) -> str | None:
    scheme, _, value = (header or b"").decode("latin-1").partition(" ")
    return value.strip() if scheme.lower() == "bearer" and value.strip() else None
