"""AsyncAPI 3.0 of the streams: facts in any of three shapes, one to a message or to a line.

Facts have one message a runtime class, tagged with its family, and one for any other class. The two
other shapes carry the same facts under other names; each is one message, whose schema tells the
classes apart.
"""

from typing import Any, Final

from factwire.facts.runtime_classes import RUNTIME_CLASSES
from factwire.facts.schemas.json_schema import NULL, Schema, shape_schema, type_schemas
from factwire.facts.schemas.wire_types import PAYLOAD_TYPES, PAYLOADS, WIRE_SHAPES, WireShape

_SCHEMAS: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = """\
A stream of facts is NDJSON, one message a line, or a WebSocket, one message a text frame; either \
way a message is one JSON object. Facts of a thread are in the order of their `sequence`. Classes \
and fields beyond those listed are allowed and kept."""


def asyncapi() -> dict[str, Any]:
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
        "channels": {wire.slug: _channel(wire) for wire in WIRE_SHAPES},
        "operations": {
            f"{action}-{wire.slug}": _operation(wire, action)
            for wire in WIRE_SHAPES
            for action in ("send", "receive")
        },
        "components": {"messages": _messages(), "schemas": _schemas()},
    }


def _families() -> list[str]:
    return sorted({row.family for row in RUNTIME_CLASSES.values()})


def _message_names(wire: WireShape) -> list[str]:
    return [*(RUNTIME_CLASSES if wire.shape == "facts" else ()), wire.title]


def _channel(wire: WireShape) -> dict[str, Any]:
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


def _operation(wire: WireShape, action: str) -> dict[str, Any]:
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
    return {name: _message(name) for name in RUNTIME_CLASSES} | whole


def _message(event_class: str) -> dict[str, Any]:
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
