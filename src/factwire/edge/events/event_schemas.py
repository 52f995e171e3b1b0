"""The Edge's stream contracts for readers in other languages, derived from the list of types.

Nothing is stated here that is not emitted. An envelope's `type` decides what its payload is; a type
that the list does not have is a class of facts, and its payload any object. In the AsyncAPI
document facts and states are objects whose schema is named, so that it stays about the streams.
"""

from typing import Any, Final, get_args

import msgspec

from factwire.edge.events.event_types import EVENT_TYPES
from factwire.edge.events.run_events import RunErrorCode, RunStatus
from factwire.facts.schemas.json_schema import Schema, schema_documents, type_schemas
from factwire.facts.schemas.schema_files import document_text
from factwire.facts.schemas.typescript import (
    Glossary,
    nested_structs,
    write_alias,
    write_closed_list,
    write_comment,
    write_interface,
)
from factwire.serving.envelopes import (
    Checkpoint,
    Envelope,
    ErrorEvent,
    EventPayload,
    FactFrame,
    ProjectionDelta,
    ProjectionSnapshot,
    Scope,
)

_SCHEMAS: Final = "#/components/schemas/{name}"
_DESCRIPTION: Final = (
    "Each stream is a WebSocket, with one message per text frame, or Server-Sent Events at the "
    "same address, with the cursor as `id`, the type as `event` and the message as `data`. "
    "Every message carries a cursor from which the stream can be resumed exactly, with any "
    "filter. A stream that cannot be resumed sends one `error` and closes."
)
_OWN_CLASS: Final = "own-class"
_CURSOR: Final[Schema] = {
    "type": "string",
    "description": "Resume after this cursor or event id; `Last-Event-ID` has the same effect.",
}
_RESUME: Final[dict[str, Schema]] = {
    "cursor": _CURSOR,
    "since": {"const": "now", "description": "Start with the next event."},
}
_FILTERS: Final[dict[str, Schema]] = {
    "projectId": {"type": "string"},
    "threadId": {"type": "string"},
    "runId": {"type": "string"},
    "types": {"type": "string", "description": "Types or prefixes of types, separated by commas."},
}
_VIEW: Final[dict[str, Schema]] = {
    "view": {"enum": ["runtime", "conversation"], "default": "runtime"}
}


def build_asyncapi() -> dict[str, Any]:
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
        "channels": _build_channels(),
        "operations": {
            f"send-{name}": {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}
            for name in _build_channels()
        },
        "components": {"messages": _build_messages(), "schemas": _build_schemas()},
    }


def _build_channels() -> dict[str, Any]:
    events = [name for name in EVENT_TYPES if name != "error"]
    return {
        "events": _build_channel(
            "/v1/events",
            "Facts as the Edge's events, in one of two views.",
            [*events, _OWN_CLASS, "checkpoint", "error"],
            _RESUME | _FILTERS | _VIEW,
        ),
        "facts": _build_channel(
            "/v1/facts",
            "The facts themselves, as they are stored.",
            ["fact", "checkpoint", "error"],
            _RESUME | _FILTERS,
        ),
        "projection": _build_channel(
            "/v1/threads/{threadId}/projection/stream",
            "The state of one thread: a snapshot, then its changes.",
            ["projection.snapshot", "projection.delta", "error"],
            {"cursor": _CURSOR},
        )
        | {"parameters": {"threadId": {"description": "The thread."}}},
    }


def _build_channel(
    address: str, description: str, messages: list[str], query: dict[str, Schema]
) -> dict[str, Any]:
    parameters = {"type": "object", "properties": query}
    return {
        "address": address,
        "description": description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"ws": {"method": "GET", "query": parameters, "bindingVersion": "0.1.0"}},
    }


def _build_messages() -> dict[str, Any]:
    listed = {
        name: _build_message(name, kind.sentence, _envelope_schema(name, kind.payload.__name__))
        for name, kind in EVENT_TYPES.items()
        if name != "error"
    }
    return {
        **listed,
        _OWN_CLASS: _build_message(
            _OWN_CLASS,
            "A fact whose class has no event type; the type is its class.",
            _schema_ref("Envelope"),
        ),
        "checkpoint": _build_message(
            "checkpoint", _describe(Checkpoint), _schema_ref("Checkpoint")
        ),
        "error": _build_message("error", _describe(ErrorEvent), _schema_ref("ErrorEvent")),
        "fact": _build_message(
            "fact", "A fact as it is stored, with its position.", _schema_ref("FactFrame")
        ),
        "projection.snapshot": _build_message(
            "projection.snapshot",
            "The complete state of a thread.",
            _schema_ref("ProjectionSnapshot"),
        ),
        "projection.delta": _build_message(
            "projection.delta",
            "What changed since the previous frame.",
            _schema_ref("ProjectionDelta"),
        ),
    }


def _build_message(name: str, summary: str, payload: Schema) -> dict[str, Any]:
    return {"name": name, "summary": summary, "payload": payload}


def _describe(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _envelope_schema(name: str, payload: str) -> Schema:
    own = {"type": {"const": name}, "payload": _schema_ref(payload)}
    return {"allOf": [_schema_ref("Envelope"), {"properties": own}]}


def _build_schemas() -> dict[str, Schema]:
    payloads = dict.fromkeys(kind.payload for kind in EVENT_TYPES.values())
    types = type_schemas([Envelope, Checkpoint, ErrorEvent, *payloads], _SCHEMAS, {})
    types["Envelope"]["properties"]["payload"] = {"type": "object"}
    return types | {
        "FactFrame": _frame_schema(
            cursor={"type": "string"}, seq={"type": "integer"}, fact=_document_schema("fact")
        ),
        "ProjectionSnapshot": _frame_schema(
            type={"const": "projection.snapshot"},
            threadId={"type": "string"},
            cursor={"type": "string"},
            state=_document_schema("projection"),
        ),
        "ProjectionDelta": _frame_schema(
            type={"const": "projection.delta"},
            threadId={"type": "string"},
            cursor={"type": "string"},
            operations={"type": "array", "items": {"type": "object"}}
            | {"description": "As defined by urn:factwire:schema:projection-changes:v1."},
        ),
    }


def _frame_schema(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _document_schema(name: str) -> Schema:
    return {"type": "object", "description": f"As defined by urn:factwire:schema:{name}:v1."}


def _schema_ref(name: str) -> Schema:
    return {"$ref": _SCHEMAS.format(name=name)}


_ENVELOPED: Final = {name: kind.payload for name, kind in EVENT_TYPES.items() if name != "error"}
_PAYLOADS: Final = tuple(dict.fromkeys(kind.payload for kind in EVENT_TYPES.values()))
_CLOSED: Final = {"RunStatus": get_args(RunStatus), "RunErrorCode": get_args(RunErrorCode)}
_GLOSSARY: Final = Glossary({}, _CLOSED, {})
_FRAMES: Final = (Checkpoint, ErrorEvent, FactFrame, ProjectionSnapshot, ProjectionDelta)
_ELSEWHERE: Final = ("factwire.facts", "factwire.projection")

_PRELUDE: Final = """\
// Generated from Factwire's types by `factwire schema typescript --name edge`; change those
// instead. Facts and states are in factwire.d.ts and projection.d.ts, beside this file.

import type { Fact, JsonObject, Person } from "./factwire.js";
import type { Operation, ProjectionState } from "./projection.js";
"""
_ENVELOPES: Final = """\
/** An envelope of type `T`, with the payload of that type. */
export type EnvelopeOf<T extends EventType> = Omit<Envelope, "type" | "payload"> & {
  type: T;
  payload: PayloadByType[T];
};

/** An envelope of any listed type; narrow it by `type`. */
export type KnownEnvelope = { [T in EventType]: EnvelopeOf<T> }[EventType];
"""


def edge_files() -> dict[str, str]:
    """Every file about the Edge's streams: its name and its text."""
    documents = schema_documents({"edge-events": event_schema()})
    documents["edge-asyncapi.json"] = build_asyncapi()
    files = {name: document_text(document) for name, document in documents.items()}
    return files | {"edge.d.ts": edge_typescript()}


def event_schema() -> Schema:
    """The schema of an envelope; it applies the payload of each type that is listed."""
    types = type_schemas([Envelope, *dict.fromkeys(_ENVELOPED.values())], vocabularies={})
    envelope = types.pop(Envelope.__name__)
    envelope["properties"]["payload"] = {"type": "object"}
    envelope["properties"]["type"]["examples"] = list(_ENVELOPED)
    return envelope | {
        "allOf": [_payload_rule(payload) for payload in dict.fromkeys(_ENVELOPED.values())],
        "$defs": types,
    }


def _payload_rule(payload: type[EventPayload]) -> Schema:
    names = [name for name, kind in _ENVELOPED.items() if kind is payload]
    return {
        "if": {"properties": {"type": {"enum": names}}, "required": ["type"]},
        "then": {"properties": {"payload": {"$ref": f"#/$defs/{payload.__name__}"}}},
    }


def edge_typescript() -> str:
    """The text of `edge.d.ts`."""
    inner = (kind for kind in nested_structs((*_PAYLOADS, *_FRAMES)) if _is_own(kind))
    sections = [
        _PRELUDE,
        *(write_closed_list(name, words) for name, words in _CLOSED.items()),
        *(write_interface(kind, _GLOSSARY) for kind in inner if kind not in (Scope, *_PAYLOADS)),
        *(write_interface(payload, _GLOSSARY) for payload in _PAYLOADS),
        _declare_payload_map(),
        "export type EventType = keyof PayloadByType;\n",
        write_interface(Scope, _GLOSSARY),
        write_interface(Envelope, _GLOSSARY),
        _ENVELOPES,
        *(write_interface(frame, _GLOSSARY) for frame in _FRAMES),
        write_alias("EventFrame", "What a stream of events sends.", _EVENT_FRAMES),
        write_alias("FactsFrame", "What a stream of facts sends.", _FACT_FRAMES),
        write_alias("ProjectionFrame", "What a stream of a thread's state sends.", _STATE_FRAMES),
    ]
    return "\n".join(sections)


_EVENT_FRAMES: Final = ("Envelope", "Checkpoint", "ErrorEvent")
_FACT_FRAMES: Final = ("FactFrame", "Checkpoint", "ErrorEvent")
_STATE_FRAMES: Final = ("ProjectionSnapshot", "ProjectionDelta", "ErrorEvent")


def _is_own(kind: type[msgspec.Struct]) -> bool:
    return issubclass(kind, EventPayload) or not kind.__module__.startswith(_ELSEWHERE)


def _declare_payload_map() -> str:
    lines = "".join(f'  "{name}": {kind.__name__};\n' for name, kind in _ENVELOPED.items())
    doc = "The payload of each listed type; other types are fact classes and carry any object."
    return f"{write_comment(doc)}export interface PayloadByType {{\n{lines}}}\n"


def type_rows() -> list[tuple[str, str, str, str, str]]:
    """The list as a table of a page: type, payload, views, classes, sentence."""
    return [
        (
            f"`{name}`",
            f"`{kind.payload.__name__}`",
            " ".join(kind.views),
            " ".join(f"`{known}`" for known in kind.classes) or "—",
            kind.sentence,
        )
        for name, kind in EVENT_TYPES.items()
    ]


def payload_rows() -> list[tuple[str, str]]:
    """The payloads as a table of a page: name and fields, `?` behind those that may be absent."""
    return [(f"`{kind.__name__}`", _list_fields(kind)) for kind in _PAYLOADS]


def _list_fields(kind: type[Any]) -> str:
    return " ".join(
        f"`{field.encode_name}{'' if field.required else '?'}`"
        for field in msgspec.structs.fields(kind)
    )
