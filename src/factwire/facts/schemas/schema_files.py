"""The facts' files of `schemas/`, to the byte, with the AsyncAPI document of the streams.

AsyncAPI has facts in any of three shapes, one to a message or to a line. Facts have one message a
runtime class, tagged with its family, and one for any other class; the two other shapes are one
message each, whose schema tells the classes apart.
"""

from typing import Any, Final

import msgspec

from factwire.facts.classes.class_tables import RUNTIME_CLASSES
from factwire.facts.schemas.json_schema import (
    NULL,
    Schema,
    json_schemas,
    shape_schema,
    type_schemas,
)
from factwire.facts.schemas.typescript import typescript
from factwire.facts.schemas.wire_types import PAYLOAD_TYPES, PAYLOADS, WIRE_SHAPES, WireShape

_SCHEMAS: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = """\
A stream of facts is NDJSON, one message a line, or a WebSocket, one message a text frame; either \
way a message is one JSON object. Facts of a thread are in the order of their `sequence`. Classes \
and fields beyond those listed are allowed and kept."""


def asyncapi_document() -> dict[str, Any]:
    """The AsyncAPI document."""
    return {
        "asyncapi": "3.0.0",
        "id": "urn:factwire:streams:v1",
        "info": {
            "title": "Factwire streams",
            "version": "1",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
            "tags": [{"name": family} for family in _families()],
        },
        "defaultContentType": "application/json",
        "channels": {wire.slug: _build_channel(wire) for wire in WIRE_SHAPES},
        "operations": {
            f"{action}-{wire.slug}": _build_operation(wire, action)
            for wire in WIRE_SHAPES
            for action in ("send", "receive")
        },
        "components": {"messages": _messages(), "schemas": _schemas()},
    }


def _families() -> list[str]:
    return sorted({row.family for row in RUNTIME_CLASSES.values()})


def _message_names(wire: WireShape) -> list[str]:
    return [*(RUNTIME_CLASSES if wire.shape == "facts" else ()), wire.title]


def _build_channel(wire: WireShape) -> dict[str, Any]:
    return {
        # Which address serves a stream is up to the server that does.
        "address": None,
        "title": wire.title,
        "description": wire.description,
        "messages": {
            name: {"$ref": f"#/components/messages/{name}"} for name in _message_names(wire)
        },
        "bindings": {"ws": {"bindingVersion": "0.1.0"}},
    }


def _build_operation(wire: WireShape, action: str) -> dict[str, Any]:
    return {"action": action, "channel": {"$ref": f"#/channels/{wire.slug}"}}


def _messages() -> dict[str, Any]:
    whole = {
        wire.title: {
            "name": wire.title,
            "summary": f"A {wire.title} of any class, known or not.",
            "payload": _ref(wire.title),
        }
        for wire in WIRE_SHAPES
    }
    return {name: _build_message(name) for name in RUNTIME_CLASSES} | whole


def _build_message(event_class: str) -> dict[str, Any]:
    payload = PAYLOADS.get(event_class)
    fields: Schema = {"eventClass": {"const": event_class}}
    if payload:
        fields["payload"] = {"anyOf": [_ref(payload.__name__), NULL]}
    return {
        "name": event_class,
        "tags": [{"name": RUNTIME_CLASSES[event_class].family}],
        "payload": {"allOf": [_ref("Fact"), {"properties": fields, "required": ["eventClass"]}]},
    }


def _schemas() -> dict[str, Schema]:
    shapes = {wire.title: shape_schema(wire, _SCHEMAS) for wire in WIRE_SHAPES}
    return shapes | type_schemas(PAYLOAD_TYPES, _SCHEMAS)


def _ref(name: str) -> Schema:
    return {"$ref": _SCHEMAS.format(name=name)}


def schema_files() -> dict[str, str]:
    """Every file about facts: its name and its text."""
    documents = json_schemas() | {"asyncapi.json": asyncapi_document()}
    files = {name: document_text(document) for name, document in documents.items()}
    return files | {"factwire.d.ts": typescript()}


def document_text(document: dict[str, Any]) -> str:
    """A document as it stands in its file."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
