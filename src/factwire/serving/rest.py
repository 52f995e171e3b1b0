"""REST: the web framework with one model system, and requests, addresses and refusals by one rule.

Where pydantic happens to be installed, Litestar loads both of its generations at every start, to be
able to read models that no handler here has. That is more work than all else a start does. A body
is read by our own rules, and a query that an address does not know is refused. A verb stands behind
a colon in an address (`/v1/runs/R:cancel`); inside it is a path of its own. Whatever a handler
raises is answered as a problem.
"""

import errno
import re
from collections.abc import Callable, Iterable, MutableMapping
from functools import cache, partial
from typing import Any, Final, cast, get_args
from urllib.parse import parse_qsl, quote, unquote

import msgspec
from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.params import QueryParameter
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from structlog.stdlib import BoundLogger

from factwire.facts import UnreadableInput, decode_json
from factwire.journal import CursorError, CursorExpired, JournalCorrupt, JournalError
from factwire.journal.blobs import BlobCorrupt, BlobMissing
from factwire.serving.asgi import PROBLEM_MEDIA_TYPE, Problem, Scope, to_document
from factwire.serving.idempotency import check_key, derive_id
from factwire.serving.streams.stream_query import check_length

ANSWERS: Final = "answers"
"""Key of `opt`: the type of what a handler answers, where its bytes are made elsewhere."""

CONTENT: Final = "content"
"""Key of `opt`: the media type of an answer that is bytes of somebody else's."""

BODY: Final = "body"
"""Key of `opt`: media type → type and examples of a body that a handler reads itself."""

ALSO: Final = "also"
"""Key of `opt`: other statuses that carry the same type."""

TICKET: Final = "ticket"
"""May stand in the query of every address; the guard has looked at it."""

SLASH: Final = "\ue000"
"""Stands for a slash in an id while a path is taken apart."""

_SLASH: Final = re.compile("%2f", re.IGNORECASE)
_SHOWN: Final = 80
_STORAGE_ERRORS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}
)
"""A disk that is full, read-only or broken, and no more files to open."""


class MsgspecLitestar(Litestar):
    """Litestar for handlers whose bodies and answers are msgspec's."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def declare_answer(kind: type[Any]) -> dict[str, Any]:
    """The `opt` of a handler whose bytes are a `kind`."""
    return {ANSWERS: kind}


def declare_body(**bodies: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
    """The `opt` of a handler that reads its body itself; `ndjson` stands for its media type."""
    return {BODY: {_MEDIA_TYPES[name]: body for name, body in bodies.items()}}


FORM_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
_FORM_FIELDS: Final = 20
_MEDIA_TYPES: Final = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "form": FORM_MEDIA_TYPE,
}


def declare_bytes(media_type: str = "application/octet-stream") -> dict[str, Any]:
    """The `opt` of a handler that answers with content."""
    return {CONTENT: media_type}


class JsonRequest(Request[Any, Any, State]):
    """A request whose JSON is read by our own rules: no depth that a reader could fall over, and
    no value taken for one of another type. Of a name that is given twice, the last counts.
    """

    async def json(self) -> Any:
        expected = self.route_handler.parsed_data_field
        value = _decode_body(await self.body() or b"null")
        return value if expected is None else _convert_body(value, expected.annotation)


def _convert_body(value: object, expected: Any) -> Any:
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        raise _to_type_problem(error) from None


def decode_raw_body(body: bytes, expected: Any) -> Any:
    """A body with parts that are left as they came; raises `Problem`."""
    try:
        return _raw_decoder(expected).decode(body)
    except msgspec.ValidationError as error:
        raise _to_type_problem(error) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # In the words that every other body gets.
        return _convert_body(_decode_body(body), expected)


def decode_form(body: bytes, expected: Any) -> Any:
    """A form, each name once; what `expected` does not name is ignored. Raises `Problem`."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_FORM_FIELDS,
        )
    except ValueError as error:
        raise build_invalid_request([{"path": "$.body", "message": str(error)}]) from None
    if len(fields := dict(pairs)) != len(pairs):
        message = "expected each name at most once"
        raise build_invalid_request([{"path": "$.body", "message": message}])
    return _convert_body(fields, expected)


@cache
def _raw_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


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
    detail = "the request does not match what this address expects"
    return Problem(400, "invalid_request", detail, issues=issues)


def trace_of(request: JsonRequest) -> str:
    return cast("str", request.scope["state"]["trace_id"])  # pyright: ignore[reportTypedDictNotRequiredAccess]


def derive_new_id(request: JsonRequest, prefix: str) -> str | None:
    """The id that follows from a request's Idempotency-Key; None where it has no key."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    return derive_id(prefix, f"{request.method} {request.url.path}\0{check_key(key)}")


async def prepare_request(request: JsonRequest) -> None:
    """What is done for every request before its handler is asked; raises `Problem`."""
    ensure_known_query(request)
    parts: dict[str, Any] = dict(request.path_params)
    request.scope["path_params"] = {
        name: str(part).replace(SLASH, "/") for name, part in parts.items()
    }


def ensure_known_query(request: JsonRequest) -> None:
    """Refuse names that an address does not know and names given twice: a filter with a slip of
    the pen would otherwise show everything.
    """
    known = query_names(request.route_handler)
    parameters = list(request.query_params.multi_items())
    for name, value in parameters:
        if name not in known:
            there = ", ".join(sorted(known.keys() - {TICKET})) or "none"
            detail = f"unknown query parameter {name[:_SHOWN]!r}; supported: {there}"
            raise Problem(400, "unknown_parameter", detail)
        check_length(name, value)
        if not known[name] and value.lower() == "null":
            # The framework would take the word for an absent value.
            raise build_invalid_request(
                [{"path": f"$.query.{name}", "message": "null is not allowed"}]
            )
    if len({name for name, _ in parameters}) < len(parameters):
        raise Problem(400, "repeated_parameter", "a query parameter can be used only once")


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


def compile_verbs(verbs: Iterable[str]) -> re.Pattern[str]:
    """What finds one of these verbs at the end of a path."""
    return re.compile(rf"(/.*[^/]):({'|'.join(verbs)})")


def to_routable_scope(scope: Scope, verbs: re.Pattern[str]) -> Scope:
    """The scope with a path that routes: a verb is a part of its own. What is percent-encoded
    belongs to an id, be it a slash or the colon of a verb.
    """
    raw: bytes = scope.get("raw_path") or quote(scope["path"], safe="/:").encode()
    path = raw.decode("ascii", "replace")
    found = verbs.fullmatch(path)
    if found is not None:
        path = f"{found[1]}/:{found[2]}"
    path = unquote(_SLASH.sub(quote(SLASH), path))
    changed: MutableMapping[str, Any] = {**scope, "path": path, "raw_path": path.encode()}
    return changed


def to_response(request: JsonRequest, problem: Problem) -> Response[dict[str, Any]]:
    """A problem as the framework answers it."""
    return Response(
        to_document(problem, trace_of(request)),
        status_code=problem.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers=problem.headers,
    )


def _answer_http_error(request: JsonRequest, error: HTTPException) -> Response[dict[str, Any]]:
    codes = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
    if isinstance(error, ValidationException):
        extra: Any = error.extra
        return to_response(request, build_invalid_request(list(extra or [])))
    code = codes.get(error.status_code, "invalid_request")
    return to_response(
        request, Problem(error.status_code, code, error.detail, headers=error.headers)
    )


def _answer_journal_error(
    log: BoundLogger, request: JsonRequest, error: JournalError
) -> Response[dict[str, Any]]:
    if isinstance(error, CursorError):
        gone = isinstance(error, CursorExpired)
        code = "cursor_expired" if gone else "cursor_invalid"
        return to_response(request, Problem(410 if gone else 400, code, str(error)))
    if isinstance(error, JournalCorrupt | BlobCorrupt | BlobMissing):
        log.error("journal_damaged", code=error.code, detail=str(error))
        # A journal that lost its facts, as on a server that was wiped, is not this server's fault.
        status = 503 if isinstance(error, JournalCorrupt) else 500
        return to_response(request, Problem(status, error.code, "stored data is damaged"))
    log.warning("journal_refused", code=error.code, detail=str(error))
    headers = {"retry-after": "1"}
    return to_response(request, Problem(503, error.code, str(error), headers=headers))


def _answer_system_error(
    log: BoundLogger, request: JsonRequest, error: OSError
) -> Response[dict[str, Any]]:
    """A disk that takes no more is a state of this machine, and no fault of the request or ours."""
    if error.errno not in _STORAGE_ERRORS:
        return _answer_unexpected_error(log, request, error)
    log.warning("storage_unavailable", detail=str(error))
    detail = f"this machine cannot store that now: {error.strerror}"
    headers = {"retry-after": "1"}
    return to_response(request, Problem(503, "storage_unavailable", detail, headers=headers))


def _answer_unexpected_error(
    log: BoundLogger, request: JsonRequest, error: Exception
) -> Response[dict[str, Any]]:
    route = request.state.get("route")
    log.error("request_failed", trace_id=trace_of(request), route=route, exc_info=error)
    problem = Problem(500, "internal_error", "internal error; look up the trace id in the log")
    return to_response(request, problem)


def problem_handlers(log: BoundLogger) -> dict[type[Exception], Callable[..., Response[Any]]]:
    """Exception → how it is answered; what should not have happened is told to `log`."""
    return {
        Problem: to_response,
        HTTPException: _answer_http_error,
        JournalError: partial(_answer_journal_error, log),
        OSError: partial(_answer_system_error, log),
        Exception: partial(_answer_unexpected_error, log),
    }
