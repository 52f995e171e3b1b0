"""The Edge itself: whether it is well, who can be asked, tickets for streams."""

from typing import Any

from factwire.client.address import path_of
from factwire.client.call import Answer, Call, get, json, post
from factwire.client.resources import Agents, Health, Ticket

_DEGRADED = 503


def health() -> Call[Health]:
    """Whether the Edge is well, and how it is at work."""
    return Call(method="GET", path=path_of("health"), read=json(Health), accepts=(_DEGRADED,))


def agents() -> Call[Agents]:
    """Who can be asked to do something, with what each can do."""
    return get(path_of("agents"), json(Agents))


def create_ticket() -> Call[Ticket]:
    """A ticket for one stream, for programs that cannot send a header."""
    return post(path_of("tickets"), json(Ticket))


def metrics() -> Call[str]:
    """What the Edge counts, in Prometheus' text form."""
    return get(path_of("metrics"), _text)


def openapi() -> Call[dict[str, Any]]:
    """The Edge's own description of its requests, as an OpenAPI document."""
    return get("/openapi.json", json(dict[str, Any]))


def asyncapi() -> Call[dict[str, Any]]:
    """The Edge's own description of its streams, as an AsyncAPI document."""
    return get("/asyncapi.json", json(dict[str, Any]))


def _text(answer: Answer) -> str:
    return answer.body.decode()
