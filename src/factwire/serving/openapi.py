"""The OpenAPI document, made from the handlers and the types that they take and give.

Nothing is written twice: addresses, parameters, bodies and answers are what the handlers declare,
their sentences are the descriptions, and the schemas are those by which bodies are read, each
under a short name. Statuses are exact: an operation answers with one of those it lists, and every
refusal has the same form. Links are derived: an answer that is a row leads to every operation
whose address has the row's id.
"""

import re
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Any, Final, Union, cast, get_args, get_origin

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter, QueryParameter
from litestar.typing import FieldDefinition

from factwire import __version__
from factwire.facts.schemas.json_schema import type_schemas
from factwire.serving.asgi import PROBLEM_MEDIA_TYPE, ProblemDocument
from factwire.serving.guard import OPEN, OpenRoutes
from factwire.serving.rest import ALSO, ANSWERS, BODY, CONTENT

Schema = dict[str, Any]

TEMPLATE: Final = "#/components/schemas/{name}"


class WireTypes:
    """The schemas of everything that handlers take and give, under short names."""

    def __init__(self, handlers: Sequence[HTTPRouteHandler]) -> None:
        self._kinds = list(_handler_types(handlers))
        self._schemas, found = msgspec.json.schema_components(
            self._kinds, schema_hook=_text_schema, ref_template=TEMPLATE
        )
        self._names = {name: _short_name(name) for name in found}

    def schema_of(self, kind: Any) -> Schema:
        """The schema of one of them, or of a plain type."""
        if kind in self._kinds:
            return self._rename_refs(self._schemas[self._kinds.index(kind)])
        return msgspec.json.schema(kind)

    def components(self) -> Schema:
        schemas = {
            self._names[name]: {**self._rename_refs(schema), "title": self._names[name]}
            for name, schema in type_schemas(self._kinds, TEMPLATE, {}).items()
        }
        return {name: schemas[name] for name in sorted(schemas)}

    def _rename_refs(self, value: Any) -> Any:
        """The same with the short names in all refs."""
        if isinstance(value, dict):
            plain = cast("dict[str, Any]", value)
            return {key: self._rename_member(key, inner) for key, inner in plain.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self._rename_refs(item) for item in items]
        return value

    def _rename_member(self, key: str, value: Any) -> Any:
        if key != "$ref":
            return self._rename_refs(value)
        return TEMPLATE.format(name=self._names[str(value).rpartition("/")[2]])


def _handler_types(handlers: Sequence[HTTPRouteHandler]) -> Iterator[Any]:
    for handler in handlers:
        if handler.parsed_data_field is not None:
            yield handler.parsed_data_field.annotation
        yield from (kind for kind, _ in handler.opt.get(BODY, {}).values())
        kind = answer_type(handler)
        if kind is not None and CONTENT not in handler.opt:
            yield kind
    yield ProblemDocument


def _text_schema(_: type) -> Schema:
    return {"type": "string"}


def _short_name(name: str) -> str:
    """A short name; a part of a state keeps apart from the row of the same name, and a page is
    named for what it lists.
    """
    last = re.split(r"[_.]", name.rstrip("_"))[-1]
    if name.endswith("_"):
        generic = name.partition("_")[0]
        return f"{last}Page" if generic.endswith("Page") else generic
    return f"{last}State" if name.startswith("factwire.projection") else last


def answer_type(handler: HTTPRouteHandler) -> Any:
    """What a handler answers with, None for nothing."""
    declared = handler.opt.get(ANSWERS)
    annotation: Any = handler.parsed_fn_signature.return_type.annotation
    if get_origin(annotation) is Response:
        [annotation] = get_args(annotation)
    kind = declared or annotation
    return None if kind is type(None) else kind


Document = dict[str, Any]


class ApiDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says that no handler declares, and by which ids its answers lead on.

    `ids` has the component of a row → the member that is its id, which is also the name of that
    id in addresses; `listed` the same of the first row of a page; `links` a component → links of
    its own, by the operation that each leads to.
    """

    title: str
    description: str
    ids: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    listed: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    links: dict[str, Document] = msgspec.field(default_factory=dict[str, Document])
    open_routes: OpenRoutes = OPEN
    has_cursors: bool = True
    """Whether answers to reads say the cursor that they are true as of."""
    is_limited: bool = False
    """Whether requests to open routes are limited, too."""


def add_links(document: Document, api: ApiDescription) -> Document:
    """The document with links at every answer that makes or finds something."""
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    for method, path, operation in operations:
        for status, response in operation["responses"].items():
            links = _build_links(_component_name(response), operations, api)
            if links and status.startswith("2") and _gives_new_id(method, path, operation):
                response["links"] = links
    return document


def _gives_new_id(method: str, path: str, operation: Document) -> bool:
    """Whether an operation gives an id that its address did not have, as far as rows tell."""
    return method == "post" or (method == "get" and "{" not in path and bool(operation))


def _component_name(response: Document) -> str:
    content = response.get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]


def _build_links(
    component: str, operations: list[tuple[str, str, Document]], api: ApiDescription
) -> Document:
    if component in api.ids:
        name, place = api.ids[component], f"$response.body#/{api.ids[component]}"
    elif component in api.listed:
        name, place = api.listed[component], f"$response.body#/items/0/{api.listed[component]}"
    else:
        return {}
    named = {
        operation["operationId"]: {
            "operationId": operation["operationId"],
            "parameters": {name: place},
        }
        for _, path, operation in operations
        if f"{{{name}}}" in path
    }
    return {**named, **api.links.get(component, {})}


REFUSED: Final = {"$ref": "#/components/responses/Problem"}

_ALWAYS: Final = (400, 401, 403, 414, 421, 429, 431, 503)
_CHANGING: Final = (404, 408, 409, 410, 413, 415)
_OPEN_REFUSALS: Final = (400, 403, 414, 421, 431)
_JSON: Final = "application/json"
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request that is repeated with the same key is executed once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    "example": "order-4711",
}


_TRACE: Final = {
    "description": "The id of this request in logs and traces.",
    "schema": {"type": "string"},
    "example": "4bf92f3577b34da6a3ce929d0e0e4736",
}
_AS_OF: Final = {
    "description": "The cursor that the answer is true as of; streams continue from there.",
    "schema": {"type": "string"},
    "example": "fw1.2k5n.0000000000000812",
}
_REPLAYED: Final = {
    "description": "true where this is the stored answer to an earlier request with the same key.",
    "schema": {"type": "string", "const": "true"},
    "example": "true",
}
_RETRY: Final = {
    "description": "Seconds after which to try again; with statuses 429 and 503.",
    "schema": {"type": "integer", "minimum": 0},
    "example": 1,
}


def _answer_headers(method: str, api: ApiDescription) -> Schema:
    """The headers of every answer to a method."""
    own = {
        "GET": {"X-As-Of": _AS_OF} if api.has_cursors else {},
        "POST": {"Idempotency-Replayed": _REPLAYED},
    }
    return {"X-Trace-Id": _TRACE, **own.get(method, {})}


_EXAMPLE_TEXTS: Final = {
    "At": "2026-01-31T12:00:00.000Z",
    "Id": "id_01J9ZK3V7Q4W8N2X5Y6T0R1S2P",
    "cursor": "fw1.2k5n.0000000000000812",
    "asOf": "fw1.2k5n.0000000000000812",
}
_EXAMPLE_DEPTH: Final = 5


def build_example(schema: Schema, components: Schema, name: str = "", depth: int = 0) -> Any:
    """A value that a schema allows: the fields that must be there, and what they hold."""
    if "$ref" in schema:
        inner = components[str(schema["$ref"]).rpartition("/")[2]]
        return build_example(inner, components, name, depth + 1)
    for word in ("const", "default"):
        if schema.get(word) is not None:
            return schema[word]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return build_example(schema["anyOf"][0], components, name, depth)
    return _plain_example(schema, components, name, depth)


def _plain_example(schema: Schema, components: Schema, name: str, depth: int) -> Any:
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {
                each: build_example(fields[each], components, each, depth + 1)
                for each in schema.get("required", ())
            }
        case "array" if depth < _EXAMPLE_DEPTH and "items" in schema:
            return [build_example(schema["items"], components, name, depth + 1)]
        case "string":
            found = (text for ending, text in _EXAMPLE_TEXTS.items() if name.endswith(ending))
            return "" if schema.get("contentEncoding") else next(found, name or "text")
        case kind:
            plain: Schema = {"array": [], "integer": 1, "number": 1, "boolean": True}
            return schema.get("minimum", plain.get(str(kind)))


def _add_examples(document: Schema) -> Schema:
    """The document with an example at every JSON body and answer."""
    components = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            bodies = (operation.get("requestBody", {}), *operation["responses"].values())
            for body in bodies:
                content = body.get("content", {}).get(_JSON)
                if content is not None and "example" not in content:
                    content["example"] = build_example(content["schema"], components)
    return document


def build_document(handlers: Sequence[HTTPRouteHandler], api: ApiDescription) -> Schema:
    """The document of these handlers, which an application has taken in."""
    types = WireTypes(handlers)
    paths: dict[str, Schema] = {}
    for handler in handlers:
        [path], [method] = handler.paths, handler.http_methods
        paths.setdefault(public_path(path), {})[method.lower()] = _build_operation(
            handler, path, types, api
        )
    document = add_links(
        {
            "openapi": "3.1.0",
            "info": {
                "title": api.title,
                "version": __version__,
                "description": api.description,
            },
            "servers": [{"url": "/"}],
            "security": [{"token": []}],
            "paths": {path: paths[path] for path in sorted(paths)},
            "components": _build_components(types),
        },
        api,
    )
    plain: Schema = msgspec.json.decode(msgspec.json.encode(document))
    return _add_examples(plain)


def public_path(path: str) -> str:
    """An address as clients write it: a verb stands behind a colon, names are camelCase."""
    shown = re.sub(r"\{(\w+):str\}", lambda found: f"{{{to_camel(found[1])}}}", path)
    return shown.replace("/:", ":")


def to_camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _build_operation(
    handler: HTTPRouteHandler, path: str, types: WireTypes, api: ApiDescription
) -> Schema:
    sentence = " ".join((handler.fn.__doc__ or "").split())
    operation: Schema = {
        "operationId": to_camel(handler.handler_name),
        "summary": re.split(r"[.:;](?: |$)", sentence)[0],
        "description": sentence,
        "tags": list(handler.tags or ()),
        "parameters": list(_list_parameters(handler, types)),
    }
    body = handler.parsed_data_field
    if body is not None:
        operation["requestBody"] = {
            "required": not body.is_optional,
            "content": {_JSON: {"schema": types.schema_of(body.annotation)}},
        }
    if BODY in handler.opt:
        content = {
            media: {"schema": types.schema_of(kind), "examples": examples}
            for media, (kind, examples) in handler.opt[BODY].items()
        }
        operation["requestBody"] = {"required": True, "content": content}
    operation["responses"] = _build_responses(handler, path, types, api)
    if _method_and_path(handler, path) in api.open_routes:
        operation["security"] = []
    return operation


def _list_parameters(handler: HTTPRouteHandler, types: WireTypes) -> Iterator[Schema]:
    for name, field in handler.parsed_fn_signature.parameters.items():
        kind = field.kwarg_definition
        if isinstance(kind, PathParameter):
            schema: Schema = {"type": "string", "minLength": 1}
            yield {"name": to_camel(name), "in": "path", "required": True, "schema": schema}
        elif isinstance(kind, QueryParameter):
            yield _build_query_parameter(kind.name or name, field, kind, types)
    if handler.http_methods == {"POST"}:
        yield _KEY


def _build_query_parameter(
    name: str, field: FieldDefinition, kind: QueryParameter, types: WireTypes
) -> Schema:
    schema = dict(types.schema_of(_without_null(field.annotation)))
    bounds = {"minimum": kind.ge, "maximum": kind.le}
    schema |= {word: int(bound) for word, bound in bounds.items() if bound is not None}
    if field.default is not None and field.has_default:
        schema["default"] = field.default
    parameter: Schema = {"name": name, "in": "query", "required": False, "schema": schema}
    return parameter | ({"description": kind.description} if kind.description else {})


def _build_responses(
    handler: HTTPRouteHandler, path: str, types: WireTypes, api: ApiDescription
) -> Schema:
    content = _build_content(handler, types)
    status = str(handler.status_code)
    [method] = handler.http_methods
    headers = _answer_headers(str(method), api)
    responses: Schema = {status: {"description": "Success.", "headers": headers, **content}}
    for refused in _refusal_statuses(handler, path, api):
        responses[str(refused)] = REFUSED
    for other in handler.opt.get(ALSO, ()):
        responses[str(other)] = {"description": "Not ready; the body gives details.", **content}
    return {number: responses[number] for number in sorted(responses)}


def _build_content(handler: HTTPRouteHandler, types: WireTypes) -> Schema:
    if CONTENT in handler.opt:
        return {"content": {handler.opt[CONTENT]: {"schema": {"type": "string"}}}}
    kind = answer_type(handler)
    return {} if kind is None else {"content": {_JSON: {"schema": types.schema_of(kind)}}}


def _refusal_statuses(handler: HTTPRouteHandler, path: str, api: ApiDescription) -> set[int]:
    """The statuses with which an operation may be refused."""
    method = _method_and_path(handler, path)
    if method[0] == "GET" and method in api.open_routes:
        return {*_OPEN_REFUSALS, *((429,) if api.is_limited else ())}
    refusals = {*_ALWAYS}
    if method[0] != "GET":
        refusals |= {*_CHANGING}
    if method[0] == "POST":
        refusals |= {422}
    if "{" in path:
        refusals |= {404}
    parameters = handler.parsed_fn_signature.parameters
    if any(_is_required_query(field) for field in parameters.values()):
        # Such a parameter names what is looked for.
        refusals |= {404}
    if "cursor" in parameters or "at" in parameters:
        refusals |= {410}
    return refusals


def _is_required_query(field: FieldDefinition) -> bool:
    return isinstance(field.kwarg_definition, QueryParameter) and not field.has_default


def _method_and_path(handler: HTTPRouteHandler, path: str) -> tuple[str, str]:
    [method] = handler.http_methods
    return str(method), path


def _without_null(annotation: Any) -> Any:
    """A type without the null that stands for an absent parameter."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    [present] = [kind for kind in get_args(annotation) if kind is not type(None)]
    return present


def _build_components(types: WireTypes) -> Schema:
    problem = {PROBLEM_MEDIA_TYPE: {"schema": types.schema_of(ProblemDocument)}}
    return {
        "schemas": types.components(),
        "responses": {
            "Problem": {
                "description": "Why the request was refused, with a stable code.",
                "headers": {"X-Trace-Id": _TRACE, "Retry-After": _RETRY},
                "content": problem,
            }
        },
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
