"""What handlers share: the Edge behind them, the trace they belong to, ids from keys, and lists
that are asked for and answered the same everywhere.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final, TypeVar, cast, get_args

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.params import QueryParameter

from factwire.edge.edge_context import EdgeContext
from factwire.edge.records import Page, RowTable, select_rows
from factwire.edge.records.edge_rows import Row
from factwire.edge.routes.api_types import FactsBody
from factwire.facts import InputPart, InvalidFacts, UnreadableInput, decode_json, read_input
from factwire.runtime.thread_states import ThreadStates
from factwire.serving.asgi import Problem
from factwire.serving.idempotency import check_key, derive_id
from factwire.serving.limits import LIST_ITEMS, LIST_ITEMS_MOST

Body = TypeVar("Body", bound=msgspec.Struct)

TICKET: Final = "ticket"
"""May stand in the query of every address; the guard has looked at it."""

SLASH: Final = "\ue000"
"""Stands for a slash in an id while a path is taken apart."""

_facts_decoder: Final = msgspec.json.Decoder(FactsBody)
_ISSUES: Final = 100
_SHOWN: Final = 80


class EdgeRequest(Request[Any, Any, State]):
    """A request whose JSON is read by our own rules: no depth that a reader could fall over, and
    no value taken for one of another type. Of a name that is given twice, the last counts.
    """

    async def json(self) -> Any:
        expected = self.route_handler.parsed_data_field
        body = await self.body() or b"null"
        if expected is not None and expected.annotation is FactsBody:
            return _decode_facts_body(body)
        value = _decode_body(body)
        return value if expected is None else _convert_body(value, expected.annotation)


def _convert_body(value: object, expected: Any) -> Any:
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        raise _to_type_problem(error) from None


def _decode_facts_body(body: bytes) -> FactsBody:
    """A batch of facts, none of which has been looked into; each is read once, where it is taken
    in, and not twice.
    """
    try:
        return _facts_decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _to_type_problem(error) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # In the words that every other body gets.
        return cast("FactsBody", _convert_body(_decode_body(body), FactsBody))


def _decode_body(body: bytes) -> object:
    try:
        return decode_json(body)
    except UnreadableInput as error:
        raise Problem(400, "unreadable_json", str(error)) from None


def _to_type_problem(error: msgspec.ValidationError) -> Problem:
    reason, _, path = str(error).partition(" - at `$")
    return build_invalid_request([{"path": f"$.body{path.rstrip('`')}", "message": reason}])


def build_invalid_request(issues: list[Any]) -> Problem:
    """What a request is told whose form is wrong."""
    detail = "the request is not of the form that this address takes"
    return Problem(400, "invalid_request", detail, issues=issues)


async def prepare_request(request: EdgeRequest) -> None:
    """What is done for every request before its handler is asked; raises `Problem`."""
    ensure_known_query(request)
    parts: dict[str, Any] = dict(request.path_params)
    request.scope["path_params"] = {
        name: str(part).replace(SLASH, "/") for name, part in parts.items()
    }


def ensure_known_query(request: EdgeRequest) -> None:
    """Refuse names that an address does not know and names given twice: a filter with a slip of
    the pen would otherwise show everything.
    """
    known = query_names(request.route_handler)
    parameters = list(request.query_params.multi_items())
    for name, value in parameters:
        if name not in known:
            there = ", ".join(sorted(known.keys() - {TICKET})) or "none"
            detail = f"no query parameter is called {name[:_SHOWN]!r}; there are {there}"
            raise Problem(400, "unknown_parameter", detail)
        if not known[name] and value.lower() == "null":
            # The framework would take the word for an absent value.
            raise build_invalid_request(
                [{"path": f"$.query.{name}", "message": "null is no value"}]
            )
    if len({name for name, _ in parameters}) < len(parameters):
        raise Problem(400, "repeated_parameter", "a query parameter is given once")


@cache
def query_names(handler: BaseRouteHandler) -> dict[str, bool]:
    """What may stand in the query of a handler's address, and whether it may be any text."""
    fields = handler.parsed_fn_signature.parameters.items()
    names = {
        field.kwarg_definition.name or name: str in (field.annotation, *get_args(field.annotation))
        for name, field in fields
        if isinstance(field.kwarg_definition, QueryParameter)
    }
    return {**names, TICKET: True}


def edge_of(request: EdgeRequest) -> EdgeContext:
    return cast("EdgeContext", request.app.state["machine"])


def states_of(request: EdgeRequest) -> ThreadStates:
    return cast("ThreadStates", request.app.state["states"])


def trace_of(request: EdgeRequest) -> str:
    return cast("str", request.scope["state"]["trace_id"])  # pyright: ignore[reportTypedDictNotRequiredAccess]


def new_id(request: EdgeRequest, prefix: str) -> str:
    """The id of what a request creates: it follows from an Idempotency-Key, where there is one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return edge_of(request).mint.ids(prefix)
    return derive_id(prefix, f"{request.method} {request.url.path}\0{check_key(key)}")


def read_parts(parts: list[dict[str, Any]] | None) -> tuple[InputPart, ...]:
    """What was attached; raises `Problem`."""
    try:
        return read_input(list(parts or []))
    except InvalidFacts as error:
        first = error.issues[0]
        issues = [msgspec.to_builtins(issue) for issue in error.issues[:_ISSUES]]
        detail = f"{first.path}: {first.message}"
        raise Problem(400, "invalid_input", detail, issues=issues) from None


R = TypeVar("R", bound=Row)

Limit = Annotated[
    int, QueryParameter(ge=1, le=LIST_ITEMS_MOST, description="Rows of one page, newest first.")
]
After = Annotated[
    str | None,
    QueryParameter(name="cursor", description="`next` of the page before; absent for the first."),
]
DEFAULT_LIMIT = LIST_ITEMS


def build_page(
    edge: EdgeContext,
    table: RowTable[R],
    after: str | None,
    limit: int,
    wanted: Callable[[R], bool] = lambda _: True,
) -> Page[R]:
    """One page of a table."""
    rows, before = select_rows(table, wanted, _parse_place(after), limit)
    return Page(
        items=rows,
        as_of=str(edge.cursor),
        next=None if before is None else f"before-{before}",
    )


def _parse_place(after: str | None) -> int | None:
    if after is None:
        return None
    digits = after.removeprefix("before-")
    if digits == after or not (digits.isascii() and digits.isdigit()) or len(digits) > 16:  # noqa: PLR2004
        raise Problem(400, "cursor_invalid", "expected `next` of the page before, as it was given")
    return int(digits)
