"""The types that travel over REST, as schemas of the OpenAPI document, each under a short name."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast, get_args, get_origin

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler

from factwire.edge.problems import ProblemDocument
from factwire.edge.routes.answers import ANSWERS, CONTENT
from factwire.facts.schemas.json_schema import type_schemas

Schema = dict[str, Any]

TEMPLATE: Final = "#/components/schemas/{name}"


class WireTypes:
    """The schemas of everything that handlers take and give, under short names."""

    def __init__(self, handlers: Sequence[HTTPRouteHandler]) -> None:
        self._kinds = list(_kinds(handlers))
        self._schemas, found = msgspec.json.schema_components(
            self._kinds, schema_hook=_as_text, ref_template=TEMPLATE
        )
        self._names = {name: _short(name) for name in found}

    def of(self, kind: Any) -> Schema:
        """The schema of one of them, or of a plain type."""
        if kind in self._kinds:
            return self._renamed(self._schemas[self._kinds.index(kind)])
        return msgspec.json.schema(kind)

    def components(self) -> Schema:
        schemas = {
            self._names[name]: {**self._renamed(schema), "title": self._names[name]}
            for name, schema in type_schemas(self._kinds, TEMPLATE, {}).items()
        }
        return {name: schemas[name] for name in sorted(schemas)}

    def _renamed(self, value: Any) -> Any:
        """The same with the short names in all refs."""
        if isinstance(value, dict):
            plain = cast("dict[str, Any]", value)
            return {key: self._member(key, inner) for key, inner in plain.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self._renamed(item) for item in items]
        return value

    def _member(self, key: str, value: Any) -> Any:
        if key != "$ref":
            return self._renamed(value)
        return TEMPLATE.format(name=self._names[str(value).rpartition("/")[2]])


def _kinds(handlers: Sequence[HTTPRouteHandler]) -> Iterator[Any]:
    for handler in handlers:
        if handler.parsed_data_field is not None:
            yield handler.parsed_data_field.annotation
        kind = answer_type(handler)
        if kind is not None and CONTENT not in handler.opt:
            yield kind
    yield ProblemDocument


def _as_text(_: type) -> Schema:
    return {"type": "string"}


def _short(name: str) -> str:
    """A short name; a part of a state keeps apart from the row of the same name."""
    last = re.split(r"[_.]", name.rstrip("_"))[-1]
    if name.startswith("Page_"):
        return f"{last}Page"
    return f"{last}State" if name.startswith("factwire.projection") else last


def answer_type(handler: HTTPRouteHandler) -> Any:
    """What a handler answers with, None for nothing."""
    declared = handler.opt.get(ANSWERS)
    annotation: Any = handler.parsed_fn_signature.return_type.annotation
    if get_origin(annotation) is Response:
        [annotation] = get_args(annotation)
    kind = declared or annotation
    return None if kind is type(None) else kind
