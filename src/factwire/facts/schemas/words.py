"""Which field speaks which vocabulary, and how a text names a field.

Vocabularies are open, so a schema offers their words without insisting on them.
"""

import re
from collections.abc import Mapping
from typing import Final

from factwire.facts.capabilities import INPUT_KINDS
from factwire.facts.classification import KNOWN_CLASSES
from factwire.facts.edge_classes import EDGE_CLASSES
from factwire.facts.runtime_classes import RUNTIME_CLASSES
from factwire.facts.ui_classes import UI_CLASSES
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

Spoken = Mapping[str, Mapping[str, str]]
"""The vocabulary that a field takes its words from, by its type and its name on the wire."""

SPOKEN: Final[Spoken] = {
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
    "ActionRequest": {"actionType": "ActionType"},
    "Evidence": {"kind": "EvidenceKind"},
    "Task": {"status": "TaskState"},
    "Teammate": {"topology": "Topology"},
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


def vocabulary_of(spoken: Spoken, type_name: str, field: str) -> str | None:
    """The name of the vocabulary that a field takes its words from."""
    return spoken.get(type_name, {}).get(field)


def words_of(spoken: Spoken, type_name: str, field: str) -> tuple[str, ...]:
    """The words that Factwire knows for a field; empty where it takes any text."""
    name = vocabulary_of(spoken, type_name, field) or ""
    return VOCABULARIES.get(name) or CLASSES.get(name, ())


def wire_spelling(doc: str) -> str:
    """A docstring for readers of the wire: fields in code marks have their names there."""
    return _FIELD.sub(lambda found: f"`{_camel(found[1])}`", doc)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
