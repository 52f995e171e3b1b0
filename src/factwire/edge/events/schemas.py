"""The Edge's contracts for readers in other languages, derived from the list of types.

Nothing is stated here that is not emitted. An envelope's `type` decides what its payload is; a type
that the list does not have is a class of facts, and its payload any object.
"""

from typing import Any, Final, get_args

import msgspec

from factwire.edge.events.asyncapi import asyncapi
from factwire.edge.events.envelope import Envelope, Scope
from factwire.edge.events.frames import (
    Checkpoint,
    ErrorEvent,
    FactFrame,
    ProjectionDelta,
    ProjectionSnapshot,
)
from factwire.edge.events.payload import EventPayload
from factwire.edge.events.run_payloads import RunErrorCode, RunStatus
from factwire.edge.events.types import EVENT_TYPES
from factwire.facts.schemas.declarations import (
    Glossary,
    alias,
    closed_list,
    comment,
    contained,
    interface,
)
from factwire.facts.schemas.files import document_text
from factwire.facts.schemas.json_schema import Schema, schema_documents, type_schemas

_ENVELOPED: Final = {name: kind.payload for name, kind in EVENT_TYPES.items() if name != "error"}
_PAYLOADS: Final = tuple(dict.fromkeys(kind.payload for kind in EVENT_TYPES.values()))
_CLOSED: Final = {"RunStatus": get_args(RunStatus), "RunErrorCode": get_args(RunErrorCode)}
_GLOSSARY: Final = Glossary({}, _CLOSED, {})
_FRAMES: Final = (Checkpoint, ErrorEvent, FactFrame, ProjectionSnapshot, ProjectionDelta)
_ELSEWHERE: Final = ("factwire.facts", "factwire.projection")

_PRELUDE: Final = """\
// Generated from Factwire's types by `factwire schema typescript --name edge`; change those
// instead. Facts and states are in factwire.d.ts and projection.d.ts, beside this file.

import type { Fact, JsonObject } from "./factwire.js";
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
    documents["edge-asyncapi.json"] = asyncapi()
    files = {name: document_text(document) for name, document in documents.items()}
    return files | {"edge.d.ts": edge_typescript()}


def event_schema() -> Schema:
    """The schema of an envelope; it applies the payload of each type that is listed."""
    types = type_schemas([Envelope, *dict.fromkeys(_ENVELOPED.values())], spoken={})
    envelope = types.pop(Envelope.__name__)
    envelope["properties"]["payload"] = {"type": "object"}
    envelope["properties"]["type"]["examples"] = list(_ENVELOPED)
    return envelope | {
        "allOf": [_rule(payload) for payload in dict.fromkeys(_ENVELOPED.values())],
        "$defs": types,
    }


def _rule(payload: type[EventPayload]) -> Schema:
    names = [name for name, kind in _ENVELOPED.items() if kind is payload]
    return {
        "if": {"properties": {"type": {"enum": names}}, "required": ["type"]},
        "then": {"properties": {"payload": {"$ref": f"#/$defs/{payload.__name__}"}}},
    }


def edge_typescript() -> str:
    """The text of `edge.d.ts`."""
    inner = (kind for kind in contained((*_PAYLOADS, *_FRAMES)) if _is_own(kind))
    sections = [
        _PRELUDE,
        *(closed_list(name, words) for name, words in _CLOSED.items()),
        *(interface(kind, _GLOSSARY) for kind in inner if kind not in (Scope, *_PAYLOADS)),
        *(interface(payload, _GLOSSARY) for payload in _PAYLOADS),
        _payload_map(),
        "export type EventType = keyof PayloadByType;\n",
        interface(Scope, _GLOSSARY),
        interface(Envelope, _GLOSSARY),
        _ENVELOPES,
        *(interface(frame, _GLOSSARY) for frame in _FRAMES),
        alias("EventFrame", "What a stream of events sends.", _EVENT_FRAMES),
        alias("FactsFrame", "What a stream of facts sends.", _FACT_FRAMES),
        alias("ProjectionFrame", "What a stream of a thread's state sends.", _STATE_FRAMES),
    ]
    return "\n".join(sections)


_EVENT_FRAMES: Final = ("Envelope", "Checkpoint", "ErrorEvent")
_FACT_FRAMES: Final = ("FactFrame", "Checkpoint", "ErrorEvent")
_STATE_FRAMES: Final = ("ProjectionSnapshot", "ProjectionDelta", "ErrorEvent")


def _is_own(kind: type[msgspec.Struct]) -> bool:
    return not kind.__module__.startswith(_ELSEWHERE)


def _payload_map() -> str:
    lines = "".join(f'  "{name}": {kind.__name__};\n' for name, kind in _ENVELOPED.items())
    doc = "The payload of each listed type; other types are classes of facts and carry any object."
    return f"{comment(doc)}export interface PayloadByType {{\n{lines}}}\n"


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
    return [(f"`{kind.__name__}`", _fields(kind)) for kind in _PAYLOADS]


def _fields(kind: type[Any]) -> str:
    return " ".join(
        f"`{field.encode_name}{'' if field.required else '?'}`"
        for field in msgspec.structs.fields(kind)
    )
