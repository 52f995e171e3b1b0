"""The OpenAPI document, made from the handlers and the types that they take and give.

Nothing is written twice: addresses, parameters, bodies and answers are what the handlers declare,
their sentences are the descriptions, and the schemas are those by which bodies are read. Statuses
are exact: an operation answers with one of those it lists, and every refusal has the same form.
"""

import re
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter, QueryParameter
from litestar.typing import FieldDefinition

from factwire import __version__
from factwire.edge.openapi_links import with_links
from factwire.edge.openapi_types import Schema, WireTypes, answer_type
from factwire.edge.problems import MEDIA_TYPE, ProblemDocument
from factwire.edge.routes.answers import ALSO, CONTENT
from factwire.edge.security import OPEN

REFUSED: Final = {"$ref": "#/components/responses/Problem"}

_ALWAYS: Final = (400, 401, 403, 414, 421, 429, 431, 503)
_CHANGING: Final = (404, 408, 409, 410, 413, 415)
_OPEN: Final = (400, 403, 414, 421, 431)
_JSON: Final = "application/json"
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request under the same key is done once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
}
_ABOUT: Final = """\
One machine's threads, runs, approvals and artifacts. Every refusal is a problem document with a \
stable `code`. Lists are read a page at a time, newest first; what a list or a state is true as of \
is its cursor `asOf`, from which the streams of the AsyncAPI document go on."""


def document_of_routes(handlers: Sequence[HTTPRouteHandler]) -> Schema:
    """The document of these handlers, which an application has taken in."""
    types = WireTypes(handlers)
    paths: dict[str, Schema] = {}
    for handler in handlers:
        [path], [method] = handler.paths, handler.http_methods
        paths.setdefault(spelled(path), {})[method.lower()] = _operation(handler, path, types)
    document = with_links(
        {
            "openapi": "3.1.0",
            "info": {"title": "Factwire Edge", "version": __version__, "description": _ABOUT},
            "servers": [{"url": "/"}],
            "security": [{"token": []}],
            "paths": {path: paths[path] for path in sorted(paths)},
            "components": _components(types),
        }
    )
    plain: Schema = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def spelled(path: str) -> str:
    """An address as clients write it: a verb stands behind a colon, names are camelCase."""
    shown = re.sub(r"\{(\w+):str\}", lambda found: f"{{{camel(found[1])}}}", path)
    return shown.replace("/:", ":")


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _operation(handler: HTTPRouteHandler, path: str, types: WireTypes) -> Schema:
    sentence = " ".join((handler.fn.__doc__ or "").split())
    operation: Schema = {
        "operationId": camel(handler.handler_name),
        "summary": re.split(r"[.:;](?: |$)", sentence)[0],
        "description": sentence,
        "tags": list(handler.tags or ()),
        "parameters": list(_parameters(handler, types)),
    }
    body = handler.parsed_data_field
    if body is not None:
        operation["requestBody"] = {
            "required": not body.is_optional,
            "content": {_JSON: {"schema": types.of(body.annotation)}},
        }
    operation["responses"] = _responses(handler, path, types)
    if _method(handler, path) in OPEN:
        operation["security"] = []
    return operation


def _parameters(handler: HTTPRouteHandler, types: WireTypes) -> Iterator[Schema]:
    for name, field in handler.parsed_fn_signature.parameters.items():
        kind = field.kwarg_definition
        if isinstance(kind, PathParameter):
            schema: Schema = {"type": "string", "minLength": 1}
            yield {"name": camel(name), "in": "path", "required": True, "schema": schema}
        elif isinstance(kind, QueryParameter):
            yield _query_parameter(kind.name or name, field, kind, types)
    if handler.http_methods == {"POST"}:
        yield _KEY


def _query_parameter(
    name: str, field: FieldDefinition, kind: QueryParameter, types: WireTypes
) -> Schema:
    schema = dict(types.of(_present(field.annotation)))
    bounds = {"minimum": kind.ge, "maximum": kind.le}
    schema |= {word: int(bound) for word, bound in bounds.items() if bound is not None}
    if field.default is not None and field.has_default:
        schema["default"] = field.default
    parameter: Schema = {"name": name, "in": "query", "required": False, "schema": schema}
    return parameter | ({"description": kind.description} if kind.description else {})


def _responses(handler: HTTPRouteHandler, path: str, types: WireTypes) -> Schema:
    content = _content(handler, types)
    status = str(handler.status_code)
    responses: Schema = {status: {"description": "As asked.", **content}}
    for refused in _refusals(handler, path):
        responses[str(refused)] = REFUSED
    for other in handler.opt.get(ALSO, ()):
        responses[str(other)] = {"description": "As asked, but not well.", **content}
    return {number: responses[number] for number in sorted(responses)}


def _content(handler: HTTPRouteHandler, types: WireTypes) -> Schema:
    if CONTENT in handler.opt:
        return {"content": {handler.opt[CONTENT]: {"schema": {"type": "string"}}}}
    kind = answer_type(handler)
    return {} if kind is None else {"content": {_JSON: {"schema": types.of(kind)}}}


def _refusals(handler: HTTPRouteHandler, path: str) -> set[int]:
    """The statuses with which an operation may be refused."""
    method = _method(handler, path)
    if method in OPEN:
        return set(_OPEN)
    refusals = {*_ALWAYS}
    if method[0] != "GET":
        refusals |= {*_CHANGING}
    if method[0] == "POST":
        refusals |= {422}
    if "{" in path:
        refusals |= {404}
    asked = handler.parsed_fn_signature.parameters
    if "cursor" in asked or "at" in asked:
        refusals |= {410}
    return refusals


def _method(handler: HTTPRouteHandler, path: str) -> tuple[str, str]:
    [method] = handler.http_methods
    return str(method), path


def _present(annotation: Any) -> Any:
    """A type without the null that stands for an absent parameter."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    [present] = [kind for kind in get_args(annotation) if kind is not type(None)]
    return present


def _components(types: WireTypes) -> Schema:
    problem = {MEDIA_TYPE: {"schema": types.of(ProblemDocument)}}
    return {
        "schemas": types.components(),
        "responses": {
            "Problem": {
                "description": "Why the request was refused, with a stable code.",
                "content": problem,
            }
        },
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
