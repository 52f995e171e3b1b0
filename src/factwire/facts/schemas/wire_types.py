"""What travels: three shapes of a fact, the types around them, the vocabulary of each field.

The shapes are one type, `Fact`, under other names; which field is called what and which must be
there is `factwire.facts.shapes`' to say. Vocabularies are open, so a schema offers their words
without insisting on them.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, get_args

import msgspec

from factwire.facts.capabilities import (
    INPUT_KINDS,
    Answer,
    ApprovalStyle,
    CapabilityManifest,
    Streaming,
)
from factwire.facts.classes import class_tables
from factwire.facts.classes.class_tables import (
    CLASS_ALIASES,
    EDGE_CLASSES,
    KNOWN_CLASSES,
    RUNTIME_CLASSES,
    UI_CLASSES,
)
from factwire.facts.classes.payloads import NamedPerson, Payload, Person
from factwire.facts.fact import Fact
from factwire.facts.inputs import AssetInput, AssetKind, CapabilityInput, TextInput, WorkspaceInput
from factwire.facts.inspection import Expected, Fixture
from factwire.facts.issues import Issue, IssueCode
from factwire.facts.lifecycle import OpenAction, ResumeAnswer, ResumeCode, ResumeIssue
from factwire.facts.refs import Ref, RefKind
from factwire.facts.shapes import REQUIRED_FIELDS, wire_name
from factwire.facts.vocabulary import (
    ACTION_TYPES,
    CONTROLS,
    EVIDENCE_KINDS,
    KINDS,
    OWNERS,
    PERSISTENCE,
    PHASES,
    RUNTIME_ENTITIES,
    SCOPES,
    STATUSES,
    SURFACES,
    TASK_STATES,
    TOOL_STATES,
    TOPOLOGIES,
    Shape,
)

CLASSES: Final[dict[str, tuple[str, ...]]] = {
    "RuntimeClass": tuple(RUNTIME_CLASSES),
    "EdgeClass": tuple(EDGE_CLASSES),
    "UiClass": tuple(UI_CLASSES),
    "EventClass": tuple(sorted(KNOWN_CLASSES)),
}

VOCABULARIES: Final[dict[str, tuple[str, ...]]] = {
    "Kind": KINDS,
    "Status": STATUSES,
    "Owner": OWNERS,
    "Scope": SCOPES,
    "Phase": PHASES,
    "Surface": SURFACES,
    "Persistence": PERSISTENCE,
    "Control": CONTROLS,
    "Topology": TOPOLOGIES,
    "RuntimeEntity": RUNTIME_ENTITIES,
    "ActionType": ACTION_TYPES,
    "ToolState": TOOL_STATES,
    "TaskState": TASK_STATES,
    "EvidenceKind": EVIDENCE_KINDS,
    "InputKind": INPUT_KINDS,
}

FieldVocabularies = Mapping[str, Mapping[str, str]]
"""The vocabulary that a field takes its words from, by its type and its name on the wire."""

FIELD_VOCABULARIES: Final[FieldVocabularies] = {
    "Fact": {
        "kind": "Kind",
        "status": "Status",
        "eventClass": "EventClass",
        "owner": "Owner",
        "scope": "Scope",
        "phase": "Phase",
        "surface": "Surface",
        "persistence": "Persistence",
        "control": "Control",
        "topology": "Topology",
        "runtimeEntity": "RuntimeEntity",
    },
    "ActionRequestPayload": {"actionType": "ActionType"},
    "EvidencePayload": {"kind": "EvidenceKind"},
    "TaskPayload": {"status": "TaskState"},
    "TeammatePayload": {"topology": "Topology"},
    "OpenAction": {"actionType": "ActionType"},
    "CapabilityManifest": {
        "inputs": "InputKind",
        "actionTypes": "ActionType",
        "controls": "Control",
        "topologies": "Topology",
        "eventClasses": "EventClass",
    },
}

_FIELD: Final = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")


def vocabulary_of(vocabularies: FieldVocabularies, type_name: str, field: str) -> str | None:
    """The name of the vocabulary that a field takes its words from."""
    return vocabularies.get(type_name, {}).get(field)


def words_of(vocabularies: FieldVocabularies, type_name: str, field: str) -> tuple[str, ...]:
    """The words that Factwire knows for a field; empty where it takes any text."""
    name = vocabulary_of(vocabularies, type_name, field) or ""
    return VOCABULARIES.get(name) or CLASSES.get(name, ())


def wire_spelling(doc: str) -> str:
    """A docstring for readers of the wire: fields in code marks have their names there."""
    return _FIELD.sub(lambda found: f"`{_camel(found[1])}`", doc)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class ReportError(msgspec.Struct, frozen=True, kw_only=True):
    """Why the input could not be read to its end; lines count from 1 where there are lines."""

    code: str
    message: str
    line: int | None = None


class IssueReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a validation found. No issue of valid facts is more than information; issues beyond a
    limit are only counted.
    """

    valid: bool
    issues: list[Issue]
    facts: int
    issues_omitted: int = 0
    error: ReportError | None = None


class WireShape(NamedTuple):
    """One shape as a type of its own; `classes` names the list its classes come from."""

    shape: Shape
    title: str
    slug: str
    classes: str
    description: str


class WireField(NamedTuple):
    """A field of a shape: its name on the wire and what it is to `Fact`."""

    name: str
    required: bool
    of_fact: msgspec.structs.FieldInfo


WIRE_SHAPES: Final = (
    WireShape("facts", "Fact", "fact", "EventClass", " ".join((Fact.__doc__ or "").split())),
    WireShape(
        "runtime-event",
        "RuntimeEvent",
        "runtime-event",
        "RuntimeClass",
        "One fact as providers emit it; kind, status and title follow from `type` when absent.",
    ),
    WireShape(
        "ui",
        "UiEvent",
        "ui-event",
        "UiClass",
        "One fact as UI clients exchange it; everything but `type` may be unknown and absent.",
    ),
)

PAYLOADS: Final[dict[str, type[Payload]]] = dict(sorted(class_tables.PAYLOAD_TYPES.items()))
"""The payload type of every known class that has one, by name."""

ALIASED_PAYLOADS: Final[dict[str, type[Payload]]] = {
    alias: PAYLOADS[name] for alias, name in CLASS_ALIASES.items() if name in PAYLOADS
}
"""The same for the names that are replaced when a fact is read."""

PAYLOAD_TYPES: Final[tuple[type[Payload], ...]] = tuple(
    sorted(set(PAYLOADS.values()), key=lambda payload: payload.__name__)
)

CLOSED_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "RefKind": get_args(RefKind),
    "IssueCode": get_args(IssueCode),
    "AssetKind": get_args(AssetKind),
    "Answer": get_args(Answer),
    "ApprovalStyle": get_args(ApprovalStyle),
    "ResumeCode": get_args(ResumeCode),
}
"""The lists that are not open: another word is refused."""

INPUT_TYPES: Final = (TextInput, AssetInput, WorkspaceInput, CapabilityInput)

OTHER_TYPES: Final[tuple[type[msgspec.Struct], ...]] = (
    Ref,
    NamedPerson,
    Person,
    Issue,
    IssueReport,
    ReportError,
    Fixture,
    Expected,
    *INPUT_TYPES,
    CapabilityManifest,
    Streaming,
    OpenAction,
    ResumeAnswer,
    ResumeIssue,
)


def wire_fields(shape: Shape) -> list[WireField]:
    """The fields of a shape: what it requires first, then the rest in the order of `Fact`."""
    required = REQUIRED_FIELDS[shape]
    fields = {
        name: WireField(name, name in required, field)
        for field in msgspec.structs.fields(Fact)
        if (name := wire_name(shape, field.encode_name))
    }
    return [fields[name] for name in dict.fromkeys((*required, *fields))]
