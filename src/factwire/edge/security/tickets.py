"""Tickets: how a browser opens a stream without a long-lived token in an address.

A page cannot set headers on a socket, and addresses end up in logs. A ticket stands in an address
instead: it is good once, for a few seconds, and is kept only as a hash.
"""

import secrets
from collections.abc import Callable
from hashlib import sha256
from time import monotonic

from factwire.edge.limits import OPEN_TICKETS, TICKET_SECONDS
from factwire.edge.problems import Problem


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
                f"{OPEN_TICKETS} tickets are unused; use one, or wait until they have run out",
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
