"""Who may talk to an Edge: a token, known hosts, no foreign pages, and bounds on all of it."""

from factwire.edge.security.credentials import SUBPROTOCOL, TOKEN_SUBPROTOCOL
from factwire.edge.security.floods import Floods
from factwire.edge.security.guard import OPEN, Access, Guard
from factwire.edge.security.places import Places, is_loopback
from factwire.edge.security.tickets import Tickets
from factwire.edge.security.tokens import (
    FILE_NAME,
    FoundToken,
    InsecureStart,
    Token,
    given_token,
    kept_token,
)

__all__ = [
    "FILE_NAME",
    "OPEN",
    "SUBPROTOCOL",
    "TOKEN_SUBPROTOCOL",
    "Access",
    "Floods",
    "FoundToken",
    "Guard",
    "InsecureStart",
    "Places",
    "Tickets",
    "Token",
    "given_token",
    "is_loopback",
    "kept_token",
]
