"""What is looked up by class, all of it made from the rows.

Runtime, Edge and UI classes are three lists; where two have the same name, the runtime's row
counts. A name twice in a list, a family that nobody declared, a text that ends without pieces and a
subject that is closed but never opened are mistakes in a row, found when this is imported.
Classifying a fact fills what its source left open from the row, and nothing more.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from factwire.facts.classes import edge_classes, runtime_classes
from factwire.facts.classes.payloads import Payload
from factwire.facts.classes.required_fields import THREAD, TURN, RequiredField
from factwire.facts.classes.specification import (
    SUBJECTS,
    EventClass,
    Family,
    Move,
    TextEnd,
    TextPieces,
    TurnOutcome,
)
from factwire.facts.fact import Fact
from factwire.facts.vocabulary import UNKNOWN, Shape


def join_families(families: Iterable[Family]) -> dict[str, Family]:
    """Families by name; each is declared once."""
    joined: dict[str, Family] = {}
    for family in families:
        if joined.setdefault(family.name, family) is not family:
            raise ValueError(f"{family.name}: this family is declared twice")
    return joined


def join_classes(rows: Iterable[EventClass], families: dict[str, Family]) -> dict[str, EventClass]:
    """One list of classes by name; each stands there once and is of a declared family."""
    joined: dict[str, EventClass] = {}
    for row in rows:
        if joined.setdefault(row.name, row) is not row:
            raise ValueError(f"{row.name}: this class has two rows")
        if row.family not in families:
            raise ValueError(f"{row.name}: no family {row.family!r} is declared")
    return joined


FAMILIES: Final = join_families(
    (*runtime_classes.FAMILIES, *edge_classes.FAMILIES, *edge_classes.UI_FAMILIES)
)
RUNTIME_CLASSES: Final = join_classes(runtime_classes.CLASSES, FAMILIES)
EDGE_CLASSES: Final = join_classes(edge_classes.CLASSES, FAMILIES)
UI_CLASSES: Final = join_classes(edge_classes.UI_CLASSES, FAMILIES)

KNOWN_CLASSES: Final[dict[str, EventClass]] = {**UI_CLASSES, **EDGE_CLASSES, **RUNTIME_CLASSES}
"""Every class with a row; a name that two lists have is the runtime's."""

NO_CLASS: Final = EventClass(
    name="",
    owner=UNKNOWN,
    scope=UNKNOWN,
    phase=UNKNOWN,
    surface=UNKNOWN,
    persistence=UNKNOWN,
)
"""What is known about a class without a row."""

_NO_FAMILY: Final = Family("")

MOVES: Final[dict[str, Move]] = {
    name: row.move for name, row in KNOWN_CLASSES.items() if row.move is not None
}
"""What each class opens, uses or closes."""

TURN_OUTCOMES: Final[dict[str, TurnOutcome]] = {
    name: row.ends_turn for name, row in KNOWN_CLASSES.items() if row.ends_turn is not None
}
"""Each class that ends a turn → how it ended."""

TURN_TERMINALS: Final = tuple(TURN_OUTCOMES)

ACTION_CLOSERS: Final = tuple(
    name for name, move in MOVES.items() if move.subject == "action" and move.does == "close"
)

EXECUTION_FAMILIES: Final = frozenset(
    name for name, family in FAMILIES.items() if family.is_execution
)
EXECUTION_CLASSES: Final = frozenset(
    name for name, row in KNOWN_CLASSES.items() if row.is_execution
)
"""Single classes of other families that may not come after the end of their turn either."""

TEXT_PIECES: Final[dict[str, TextPieces]] = {
    name: row.pieces for name, row in KNOWN_CLASSES.items() if row.pieces is not None
}
TEXT_ENDS: Final[dict[str, TextEnd]] = {
    name: row.ends_text for name, row in KNOWN_CLASSES.items() if row.ends_text is not None
}
GAP_REPAIRS: Final = frozenset(name for name, row in KNOWN_CLASSES.items() if row.settles_gaps)

CLASS_ALIASES: Final = {alias: row.name for row in KNOWN_CLASSES.values() for alias in row.aliases}
"""Names that are replaced when a fact is read."""

PAYLOAD_TYPES: Final[dict[str, type[Payload]]] = {
    name: payload
    for name, row in KNOWN_CLASSES.items()
    if (payload := row.payload or FAMILIES[row.family].payload) is not None
}
"""The payload type of every known class that has one."""

REQUIRED_KEYS: Final = frozenset(
    key
    for declared in (*FAMILIES.values(), *KNOWN_CLASSES.values())
    for field in declared.requires
    for key in field.kept_keys
)
"""Payload keys, besides the ids, by which a requirement is met."""


def _check_rows() -> None:
    for name, end in TEXT_ENDS.items():
        if end.pieces not in TEXT_PIECES:
            raise ValueError(f"{name}: ends a text, but {end.pieces} carries no pieces")
    opened = {move.subject for move in MOVES.values() if move.does == "open"}
    for name, move in MOVES.items():
        if move.subject not in SUBJECTS or move.subject not in opened:
            raise ValueError(f"{name}: nothing opens {move.subject!r}")


_check_rows()


def family_of(event_class: str) -> Family:
    """What is known from the first word of a class, which may be unknown otherwise."""
    return FAMILIES.get(event_class.partition(".")[0], _NO_FAMILY)


_STATUS_OF_SUFFIX: Final = {
    "required": "blocked",
    "started": "running",
    "delta": "running",
    "progress": "running",
    "failed": "failed",
    "result": "completed",
    "completed": "completed",
    "resolved": "completed",
}


def kind_of(event_class: str) -> str:
    """The kind a fact has when its source names only a class."""
    return family_of(event_class).kind


def status_of(event_class: str) -> str:
    """The status a fact has when its source names only a class."""
    outcome = TURN_OUTCOMES.get(event_class)
    return outcome or _STATUS_OF_SUFFIX.get(event_class.rpartition(".")[2], "pending")


@lru_cache(maxsize=4096)
def required_fields_of(event_class: str, shape: Shape = "facts") -> tuple[RequiredField, ...]:
    """What a fact of this class must carry when it comes in this shape."""
    row, family = KNOWN_CLASSES.get(event_class, NO_CLASS), family_of(event_class)
    fields = () if row.family_exempt else family.requires
    if shape == "runtime-event" and family.names_turn:
        fields = (THREAD, TURN, *fields)
    return fields + row.requires


def missing_fields(fact: Fact, shape: Shape = "facts") -> list[RequiredField]:
    """The requirements of its class that a fact does not meet."""
    if fact.event_class is None:
        return []
    return [need for need in required_fields_of(fact.event_class, shape) if not need.is_met(fact)]


_CLASSIFICATION: Final = ("owner", "scope", "phase", "surface", "persistence")


def classify(fact: Fact) -> Fact:
    """The fact with its five classification fields filled."""
    return fill_from_row(fact, KNOWN_CLASSES.get(fact.event_class or "", NO_CLASS))


def fill_from_row(fact: Fact, row: EventClass) -> Fact:
    """The fact with the classification fields it leaves open taken from `row`."""
    missing = {name: getattr(row, name) for name in _CLASSIFICATION if getattr(fact, name) is None}
    return msgspec.structs.replace(fact, **missing) if missing else fact
