"""The Edge itself: whether it is well, who can be asked, tickets for streams."""

from typing import Any

from factwire.client.address import path_of
from factwire.client.call import Call, get, json, post
from factwire.client.resources import Agents, Health, Ticket

_DEGRADED = 503


def health() -> Call[Health]:
    """Whether the Edge is well; needs no token."""
    return Call(method="GET", path=path_of("health"), read=json(Health), accepts=(_DEGRADED,))


def agents() -> Call[Agents]:
    """Who can be asked to do something, with what each can do."""
    return get(path_of("agents"), json(Agents))


def create_ticket() -> Call[Ticket]:
    """A ticket for one stream, for programs that cannot send a header."""
    return post(path_of("tickets"), json(Ticket))


def openapi() -> Call[dict[str, Any]]:
    """The Edge's own description of its requests, as an OpenAPI document."""
    return get("/openapi.json", json(dict[str, Any]))


def asyncapi() -> Call[dict[str, Any]]:
    """The Edge's own description of its streams, as an AsyncAPI document."""
    return get("/asyncapi.json", json(dict[str, Any]))
