"""The OpenAPI document: made from the handlers and their types, finished where they cannot say it.

Every operation may be refused, always in the same form; every one but those of `OPEN` needs the
token; a verb stands behind a colon.
"""

from typing import Any, Final

import msgspec
from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin

from factwire.edge.problems import MEDIA_TYPE, ProblemDocument
from factwire.edge.security import OPEN

_SECURITY: Final = {"type": "http", "scheme": "bearer"}
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request under the same key is done once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
_METHODS: Final = ("get", "post", "patch", "delete")


def finished(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what handlers cannot say."""
    schema = msgspec.json.schema(ProblemDocument)["$defs"]["ProblemDocument"]
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = {**schema, "additionalProperties": True}
    components.setdefault("securitySchemes", {})["token"] = _SECURITY
    components.setdefault("responses", {})["Problem"] = {
        "description": "Why the request was refused, with a stable code.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    document["security"] = [{"token": []}]
    document["paths"] = {
        path.replace("/:", ":"): _path(path, operations)
        for path, operations in sorted(document["paths"].items())
    }
    return document


def _path(path: str, operations: dict[str, Any]) -> dict[str, Any]:
    for method in _METHODS:
        operation = operations.get(method)
        if operation is None:
            continue
        responses = operation["responses"]
        if "400" in responses:
            del responses["400"]
        responses["default"] = {"$ref": "#/components/responses/Problem"}
        if (method.upper(), path) in OPEN:
            operation["security"] = []
        if method == "post":
            operation.setdefault("parameters", []).append(_KEY)
    return operations


class DocumentPlugin(JsonRenderPlugin):
    """Serves the finished document."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document as JSON."""
        del request
        return msgspec.json.encode(finished(openapi_schema))
