"""AsyncAPI 3.0 of the Edge's streams: events, facts and projections, and what each may send.

Facts and states have schemas of their own (`fact`, `projection`, `projection-changes`); here they
are objects whose schema is named, so that this document stays about the streams.
"""

from typing import Any, Final

from factwire.edge.events.envelope import Envelope
from factwire.edge.events.frames import Checkpoint, ErrorEvent
from factwire.edge.events.types import EVENT_TYPES
from factwire.facts.schemas.json_schema import Schema, type_schemas

_SCHEMAS: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = """\
Each stream is a WebSocket, one message a text frame, or Server-Sent Events at the same address, \
with the cursor as `id`, the type as `event` and the message as `data`. Every message carries a \
cursor from which the stream can be resumed exactly, under any filter. A stream that cannot be \
resumed says so with one `error` and is closed."""
_OWN_CLASS: Final = "own-class"
_CURSOR: Final[Schema] = {
    "type": "string",
    "description": "Resume after this cursor or event id; `Last-Event-ID` says the same.",
}
_RESUME: Final[dict[str, Schema]] = {
    "cursor": _CURSOR,
    "since": {"const": "now", "description": "Start with what comes next."},
}
_FILTERS: Final[dict[str, Schema]] = {
    "projectId": {"type": "string"},
    "threadId": {"type": "string"},
    "runId": {"type": "string"},
    "types": {"type": "string", "description": "Types, or beginnings of them, with commas."},
}
_VIEW: Final[dict[str, Schema]] = {
    "view": {"enum": ["runtime", "conversation"], "default": "runtime"}
}


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI document of an Edge."""
    return {
        "asyncapi": "3.0.0",
        "id": "urn:factwire:edge:v1",
        "info": {
            "title": "Factwire Edge streams",
            "version": "1",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": _channels(),
        "operations": {
            f"send-{name}": {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}
            for name in _channels()
        },
        "components": {"messages": _messages(), "schemas": _schemas()},
    }


def _channels() -> dict[str, Any]:
    events = [name for name in EVENT_TYPES if name != "error"]
    return {
        "events": _channel(
            "/v1/events",
            "Facts in the Edge's words, in one of two views.",
            [*events, _OWN_CLASS, "checkpoint", "error"],
            _RESUME | _FILTERS | _VIEW,
        ),
        "facts": _channel(
            "/v1/facts",
            "The facts themselves, as they are stored.",
            ["fact", "checkpoint", "error"],
            _RESUME | _FILTERS,
        ),
        "projection": _channel(
            "/v1/threads/{threadId}/projection/stream",
            "The state of one thread: a snapshot, then what changes.",
            ["projection.snapshot", "projection.delta", "error"],
            {"cursor": _CURSOR},
        )
        | {"parameters": {"threadId": {"description": "The thread."}}},
    }


def _channel(
    address: str, description: str, messages: list[str], query: dict[str, Schema]
) -> dict[str, Any]:
    asked = {"type": "object", "properties": query}
    return {
        "address": address,
        "description": description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"ws": {"method": "GET", "query": asked, "bindingVersion": "0.1.0"}},
    }


def _messages() -> dict[str, Any]:
    listed = {
        name: _message(name, kind.sentence, _enveloped(name, kind.payload.__name__))
        for name, kind in EVENT_TYPES.items()
        if name != "error"
    }
    return {
        **listed,
        _OWN_CLASS: _message(
            _OWN_CLASS, "A fact whose class has no word: its class is the type.", _ref("Envelope")
        ),
        "checkpoint": _message("checkpoint", _about(Checkpoint), _ref("Checkpoint")),
        "error": _message("error", _about(ErrorEvent), _ref("ErrorEvent")),
        "fact": _message("fact", "A fact as it is stored, with its place.", _ref("FactFrame")),
        "projection.snapshot": _message(
            "projection.snapshot", "The whole state of a thread.", _ref("ProjectionSnapshot")
        ),
        "projection.delta": _message(
            "projection.delta", "What changed since the frame before.", _ref("ProjectionDelta")
        ),
    }


def _message(name: str, summary: str, payload: Schema) -> dict[str, Any]:
    return {"name": name, "summary": summary, "payload": payload}


def _about(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _enveloped(name: str, payload: str) -> Schema:
    own = {"type": {"const": name}, "payload": _ref(payload)}
    return {"allOf": [_ref("Envelope"), {"properties": own}]}


def _schemas() -> dict[str, Schema]:
    payloads = dict.fromkeys(kind.payload for kind in EVENT_TYPES.values())
    types = type_schemas([Envelope, Checkpoint, ErrorEvent, *payloads], _SCHEMAS, {})
    types["Envelope"]["properties"]["payload"] = {"type": "object"}
    return types | {
        "FactFrame": _frame(
            cursor={"type": "string"}, seq={"type": "integer"}, fact=_document("fact")
        ),
        "ProjectionSnapshot": _frame(
            type={"const": "projection.snapshot"},
            threadId={"type": "string"},
            cursor={"type": "string"},
            state=_document("projection"),
        ),
        "ProjectionDelta": _frame(
            type={"const": "projection.delta"},
            threadId={"type": "string"},
            cursor={"type": "string"},
            operations={"type": "array", "items": {"type": "object"}}
            | {"description": "As urn:factwire:schema:projection-changes:v1 has them."},
        ),
    }


def _frame(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _document(name: str) -> Schema:
    return {"type": "object", "description": f"As urn:factwire:schema:{name}:v1 has it."}


def _ref(name: str) -> Schema:
    return {"$ref": _SCHEMAS.format(name=name)}
