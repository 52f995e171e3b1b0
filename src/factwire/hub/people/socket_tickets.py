"""Tickets: what stands in the address of a socket, where a token must not.

A ticket opens one socket, for a few seconds, while the session is open that asked for it. The
records have its digest, and whoever removes that has the ticket: of many uses at once, in whatever
process, one succeeds.
"""

import secrets
from typing import Final

from sqlalchemy import delete, insert

from factwire.hub.hub_resources import SocketTicket
from factwire.hub.limits import SOCKET_TICKET_SECONDS
from factwire.hub.people.accounts import HubCaller, HubServices, find_caller
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.records.hub_tables import socket_tickets

_PREFIX: Final = "tkt_"
_MILLISECONDS: Final = 1_000


async def issue_ticket(hub: HubServices, caller: HubCaller) -> SocketTicket:
    """A fresh ticket for the session that asks."""
    ticket = f"{_PREFIX}{secrets.token_urlsafe(32)}"
    now = hub.now()
    async with hub.database.write() as connection:
        await connection.execute(delete(socket_tickets).where(socket_tickets.c.expires_at <= now))
        await connection.execute(
            insert(socket_tickets).values(
                ticket_digest=digest_of(ticket),
                person_id=caller.person_id,
                session_id=caller.session_id,
                expires_at=now + SOCKET_TICKET_SECONDS * _MILLISECONDS,
            )
        )
    return SocketTicket(ticket=ticket, expires_in=SOCKET_TICKET_SECONDS)


def is_ticket(text: str) -> bool:
    """Whether a text has the form of a ticket."""
    return text.startswith(_PREFIX)


async def redeem_ticket(hub: HubServices, ticket: str) -> HubCaller | None:
    """Whose ticket it is, for one that is good; it is spent by this."""
    if not is_ticket(ticket):
        return None
    now = hub.now()
    spend = (
        delete(socket_tickets)
        .where(
            socket_tickets.c.ticket_digest == digest_of(ticket), socket_tickets.c.expires_at > now
        )
        .returning(socket_tickets.c.person_id, socket_tickets.c.session_id)
    )
    async with hub.database.write() as connection:
        row = (await connection.execute(spend)).one_or_none()
        return None if row is None else await find_caller(connection, row[0], row[1], now)
