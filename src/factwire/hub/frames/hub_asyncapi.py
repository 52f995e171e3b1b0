"""The AsyncAPI document of `/client/ws`, made from the table of frames alone."""

from typing import Any, Final

from factwire.facts.schemas.json_schema import Schema, type_schemas
from factwire.facts.schemas.schema_files import document_text
from factwire.hub.frames.frame_types import FRAMES, REQUESTS, Direction, FramePayload

_SCHEMAS: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = (
    "One WebSocket carries everything that a Hub tells a client, one frame per text message. "
    "`seq_id` counts the frames of the connection. An event has a `cursor`: connect again with "
    "`?cursor=` to go on exactly after it. A cursor that cannot be resumed from is answered with "
    "`error` and `snapshotRequired`, and the socket is closed."
)
_QUERY: Final[dict[str, Schema]] = {
    "cursor": {"type": "string", "description": "Send the events after this cursor first."},
    "access_token": {
        "type": "string",
        "description": "A ticket of `POST /client/ws-ticket`, where no header can be set.",
    },
}
_SUMMARIES: Final[dict[Direction, str]] = {
    "hub_to_client": "What the Hub tells people.",
    "client_to_hub": "What people's clients tell the Hub.",
    "hub_to_edge": "What the Hub tells a device.",
    "edge_to_hub": "What a device tells the Hub.",
}


def build_asyncapi() -> dict[str, Any]:
    """The AsyncAPI document of every Hub."""
    return {
        "asyncapi": "3.0.0",
        "id": "urn:factwire:hub:v1",
        "info": {
            "title": "Factwire Hub frames",
            "version": "1",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {"client": _build_channel()},
        "operations": {each: _build_operation(each) for each in _SUMMARIES},
        "components": {"messages": _build_messages(), "schemas": _build_schemas()},
    }


def hub_files() -> dict[str, str]:
    """Every file about the frames of a Hub: its name and its text."""
    return {"hub-asyncapi.json": document_text(build_asyncapi())}


def list_frames(direction: Direction) -> dict[str, type[FramePayload]]:
    """The frames that travel in a direction: type → payload."""
    if direction == "client_to_hub":
        return REQUESTS
    return {row.name: row.payload for row in FRAMES.values() if direction in row.directions}


def _message_names(direction: Direction) -> dict[str, str]:
    """Type → the name of its message; what clients ask for may be told with another payload."""
    prefix = "request." if direction == "client_to_hub" else ""
    return {name: f"{prefix}{name}" for name in list_frames(direction)}


def _build_channel() -> dict[str, Any]:
    names = [name for each in _SUMMARIES for name in _message_names(each).values()]
    query = {"type": "object", "properties": _QUERY}
    return {
        "address": "/client/ws",
        "description": "The socket of a client: a person's screen, or a device that has joined.",
        "messages": {
            name: {"$ref": f"#/components/messages/{name}"} for name in dict.fromkeys(names)
        },
        "bindings": {"ws": {"method": "GET", "query": query, "bindingVersion": "0.1.0"}},
    }


def _build_operation(direction: Direction) -> dict[str, Any]:
    return {
        "action": "send" if direction.startswith("hub") else "receive",
        "summary": _SUMMARIES[direction],
        "channel": {"$ref": "#/channels/client"},
        "messages": [
            {"$ref": f"#/channels/client/messages/{name}"}
            for name in _message_names(direction).values()
        ],
    }


def _build_messages() -> dict[str, Any]:
    return {
        name: {"name": type_, "payload": _frame_schema(type_, list_frames(each)[type_], each)}
        for each in _SUMMARIES
        for type_, name in _message_names(each).items()
    }


def _frame_schema(type_: str, payload: type[FramePayload], direction: Direction) -> Schema:
    fields: dict[str, Schema] = {"type": {"const": type_}}
    required = ["type", "payload"]
    if direction.startswith("hub"):
        fields["seq_id"] = {"type": "integer", "minimum": 1}
        required.append("seq_id")
        if FRAMES[type_].logged:
            fields["cursor"] = {"type": "string"}
    fields["payload"] = {"$ref": _SCHEMAS.format(name=payload.__name__)}
    return {"type": "object", "properties": fields, "required": required}


def _build_schemas() -> dict[str, Schema]:
    payloads = [payload for each in _SUMMARIES for payload in list_frames(each).values()]
    return type_schemas(dict.fromkeys(payloads), _SCHEMAS, {})
