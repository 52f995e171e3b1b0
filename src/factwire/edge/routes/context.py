"""What handlers share: the machine behind them, the trace they belong to, ids from keys."""

from typing import Any, TypeVar, cast

import msgspec
from litestar import Request
from litestar.datastructures import State

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.states import States
from factwire.edge.work.keys import checked_key, id_from
from factwire.facts import (
    InputPart,
    UnreadableInput,
    decode_json,
    input_issues,
    is_valid,
    read_input,
)

Body = TypeVar("Body", bound=msgspec.Struct)


class EdgeRequest(Request[Any, Any, State]):
    """A request whose JSON is read by our own rules: no depth that a reader could fall over."""

    async def json(self) -> Any:
        try:
            return decode_json(await self.body() or b"null")
        except UnreadableInput as error:
            raise Problem(400, "unreadable_json", str(error)) from None


def machine_of(request: EdgeRequest) -> Machine:
    return cast("Machine", request.app.state["machine"])


def states_of(request: EdgeRequest) -> States:
    return cast("States", request.app.state["states"])


def trace_of(request: EdgeRequest) -> str:
    return cast("str", request.scope["state"]["trace_id"])  # pyright: ignore[reportTypedDictNotRequiredAccess]


def new_id(request: EdgeRequest, prefix: str) -> str:
    """The id of what a request creates: it follows from an Idempotency-Key, where there is one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return machine_of(request).mint.ids(prefix)
    return id_from(prefix, f"{request.method} {request.url.path}\0{checked_key(key)}")


def read_parts(given: list[dict[str, Any]] | None) -> tuple[InputPart, ...]:
    """What was attached; raises `Problem`."""
    parts: list[Any] = list(given or [])
    issues = input_issues(parts, "$.input")
    if not is_valid(issues):
        first = issues[0]
        raise Problem(400, "invalid_input", f"{first.path}: {first.message}")
    return read_input(parts)
