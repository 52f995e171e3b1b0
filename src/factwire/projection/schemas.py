"""The projection's contracts for readers in other languages.

Nothing is stated here that Python does not enforce. Views share names with payloads (`Task`,
`Artifact`, `Plan` …), so their declarations are a module of their own, which takes only words from
the facts'.
"""

from typing import Any, Final, get_args

import msgspec

from factwire.facts.schemas.json_schema import (
    Schema,
    catalogue,
    schema_documents,
    struct_schema,
    type_schemas,
)
from factwire.facts.schemas.schema_files import document_text
from factwire.facts.schemas.typescript import (
    Glossary,
    nested_structs,
    write_alias,
    write_closed_list,
    write_interface,
)
from factwire.facts.schemas.wire_types import FieldVocabularies
from factwire.projection.changes import Operation
from factwire.projection.hydration import HydrationStatus
from factwire.projection.messages import MessageStatus, Part, PartState
from factwire.projection.read_models import (
    ArtifactRef,
    EvidenceRef,
    SessionSnapshot,
    TaskSnapshot,
    ThreadReadModel,
)
from factwire.projection.selectors import (
    ActiveProcess,
    Attention,
    AttentionKind,
    GraphView,
    PendingAction,
    TeamView,
    TimelinePage,
)
from factwire.projection.state import ProjectionState

READ_MODELS: Final = (ThreadReadModel, TaskSnapshot, SessionSnapshot, ArtifactRef, EvidenceRef)
SELECTIONS: Final = (Attention, PendingAction, ActiveProcess, TimelinePage, GraphView, TeamView)
"""What selectors give, one of it or a list."""

SPOKEN: Final[FieldVocabularies] = {
    "Action": {"actionType": "ActionType"},
    "ActiveProcess": {"phase": "Phase"},
    "Activity": {"eventClass": "EventClass"},
    "EvidenceItem": {"kind": "EvidenceKind"},
    "EvidenceRef": {"kind": "EvidenceKind"},
    "PermissionEvent": {"eventClass": "EventClass"},
    "RuntimeStatus": {"phase": "Phase", "runtimeEntity": "RuntimeEntity", "topology": "Topology"},
    "SubagentThread": {"runtimeEntity": "RuntimeEntity", "topology": "Topology"},
    "ProjectedTask": {"status": "TaskState", "runtimeEntity": "RuntimeEntity"},
    "TaskSnapshot": {"status": "TaskState"},
    "TeamView": {"topology": "Topology"},
    "TeamWorkbench": {"topology": "Topology"},
    "TimelineEntry": {
        "kind": "Kind",
        "eventClass": "EventClass",
        "phase": "Phase",
        "owner": "Owner",
        "surface": "Surface",
        "status": "Status",
    },
    "Tool": {"state": "ToolState"},
    "ToolCallSummary": {"state": "ToolState"},
    "ToolPreviewPart": {"status": "ToolState"},
    "WorkItem": {"status": "TaskState"},
}
"""Where views speak the words of facts; other words of theirs are not a list."""

_CLOSED: Final = {
    "MessageStatus": get_args(MessageStatus),
    "PartState": get_args(PartState),
    "HydrationStatus": get_args(HydrationStatus),
    "AttentionKind": get_args(AttentionKind),
}
_PARTS: Final[tuple[type[msgspec.Struct], ...]] = get_args(Part)
_GLOSSARY: Final = Glossary(SPOKEN, _CLOSED, {"Part": _PARTS})

_CHANGES: Final = "What facts did to a state, as operations to carry out in order, all or none."
_IMPORTED: Final = (
    "JsonObject",
    *sorted({word for row in SPOKEN.values() for word in row.values()}),
)
_PRELUDE: Final = f"""\
// Generated from Factwire's types by `factwire schema typescript --name projection`; change those
// instead. The words of facts are in factwire.d.ts, which belongs beside this file.

import type {{
{"".join(f"  {name},{chr(10)}" for name in _IMPORTED)}}} from "./factwire.js";
"""
_OPERATIONS: Final = """\
/** Puts a value at a place: into an object, or into a list before an index or, with `-`, last. */
export interface WriteOperation {
  op: "add" | "replace";
  path: string;
  value: unknown;
}

/** Takes away what stands at a place. */
export interface RemoveOperation {
  op: "remove";
  path: string;
}

/** Adds text to the end of the text at a place. */
export interface AppendOperation {
  op: "append";
  path: string;
  value: string;
}

/** One operation on the place that the JSON Pointer `path` names. */
export type Operation = WriteOperation | RemoveOperation | AppendOperation;
"""


def projection_files() -> dict[str, str]:
    """Every file about projections: its name and its text."""
    files = {name: document_text(document) for name, document in projection_schemas().items()}
    return files | {"projection.d.ts": projection_typescript()}


def projection_schemas() -> dict[str, Schema]:
    """Every JSON Schema document, by its file name."""
    return schema_documents(
        {
            "projection": struct_schema(ProjectionState, SPOKEN),
            "projection-changes": _changes_schema(),
            "read-models": catalogue(
                "ReadModels",
                "Read models by name: the schema of each is its property here.",
                _by_name(READ_MODELS),
                SPOKEN,
            ),
            "selectors": catalogue(
                "Selectors",
                "What selectors give, by name: the schema of one of each is its property here.",
                _by_name(SELECTIONS),
                SPOKEN,
            ),
        }
    )


def projection_typescript() -> str:
    """The text of `projection.d.ts`."""
    roots = (ProjectionState, *READ_MODELS, *SELECTIONS)
    sections = [
        _PRELUDE,
        *(write_closed_list(name, words) for name, words in _CLOSED.items()),
        *(write_interface(view, _GLOSSARY) for view in nested_structs(roots)),
        write_alias("Part", "One part of a message; narrow it by `type`.", _by_name(_PARTS)),
        *(write_interface(root, _GLOSSARY) for root in roots),
        _OPERATIONS,
        write_alias("Operations", _CHANGES, ["Operation[]"]),
    ]
    return "\n".join(sections)


def _by_name(kinds: tuple[type[msgspec.Struct], ...]) -> dict[str, type[msgspec.Struct]]:
    return {kind.__name__: kind for kind in kinds}


def _changes_schema() -> Schema:
    [operation] = type_schemas([Operation]).values()
    operation["properties"]["path"]["pattern"] = "^(/|$)"
    operation["allOf"] = [
        _schema_where(["add", "replace", "append"], {"required": ["value"]}),
        _schema_where(["append"], {"properties": {"value": {"type": "string"}}}),
        _schema_where(["remove"], {"properties": {"path": {"minLength": 1}}}),
    ]
    return {
        "title": "Operations",
        "description": _CHANGES,
        "type": "array",
        "items": {"$ref": "#/$defs/Operation"},
        "$defs": {"Operation": operation},
    }


def _schema_where(names: list[str], rule: dict[str, Any]) -> Schema:
    return {"if": {"properties": {"op": {"enum": names}}, "required": ["op"]}, "then": rule}
