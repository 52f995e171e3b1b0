"""What handlers of an Edge share: the Edge behind them, the states of its threads, who asks, ids
from keys, and what was attached to a prompt.
"""

from typing import Any, Final, cast

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.operations.retention_operations import EdgeRetention
from factwire.edge.private_threads import IsPrivate, read_privacy
from factwire.facts import InputPart, InvalidFacts, Person, read_input
from factwire.runtime.thread_states import ThreadStates
from factwire.serving.access_control import Caller
from factwire.serving.asgi import Problem
from factwire.serving.guard import RELAYED, RelayedCaller
from factwire.serving.rest import JsonRequest, derive_new_id

_ISSUES: Final = 100


class EdgeRequest(JsonRequest):
    """A request to an Edge."""


def edge_of(request: EdgeRequest) -> EdgeContext:
    return cast("EdgeContext", request.app.state["machine"])


def states_of(request: EdgeRequest) -> ThreadStates:
    return retention_of(request).states


def retention_of(request: EdgeRequest) -> EdgeRetention:
    return cast("EdgeRetention", request.app.state["retention"])


def caller_of(request: EdgeRequest) -> Caller:
    return cast("Caller", request.scope["state"]["caller"])  # pyright: ignore[reportTypedDictNotRequiredAccess]


def person_of(request: EdgeRequest) -> Person:
    """Who asks: the person whose Edge this is, by way of a named token or of a program; or somebody
    whose request a Hub passed on.
    """
    state = request.scope["state"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    if RELAYED in state:
        return cast("RelayedCaller", state[RELAYED]).person
    device = caller_of(request).token_id
    return Person(name=edge_of(request).user, device_id=device, via=str(state["via"]))


async def read_hidden(request: EdgeRequest) -> IsPrivate:
    """What tells which threads whoever asks must not see."""
    state = request.scope["state"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    return await read_privacy(edge_of(request)) if RELAYED in state else lambda _: False


def new_id(request: EdgeRequest, prefix: str) -> str:
    """The id of what a request creates: it follows from an Idempotency-Key, where there is one."""
    return derive_new_id(request, prefix) or edge_of(request).mint.ids(prefix)


def read_parts(parts: list[dict[str, Any]] | None) -> tuple[InputPart, ...]:
    """What was attached; raises `Problem`."""
    try:
        return read_input(list(parts or []))
    except InvalidFacts as error:
        first = error.issues[0]
        issues = [msgspec.to_builtins(issue) for issue in error.issues[:_ISSUES]]
        detail = f"{first.path}: {first.message}"
        raise Problem(400, "invalid_input", detail, issues=issues) from None
