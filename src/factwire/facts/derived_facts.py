"""Facts made from another fact: bookkeeping notes about it, and the Agent UI events that it is.

A note says that something in a fact was hidden or moved. The class rows say which UI events a
runtime fact becomes; a fact that lacks what the UI class requires is not promoted to it: work in
a process becomes run status, anything else a diagnostic. Every event carries its fact along.
"""

from typing import Any, Final

import msgspec

from factwire.facts.classes.class_tables import (
    EDGE_CLASSES,
    RUNTIME_CLASSES,
    UI_CLASSES,
    family_of,
    fill_from_row,
    kind_of,
    missing_fields,
    status_of,
)
from factwire.facts.classes.specification import EventClass
from factwire.facts.fact import Fact, id_of
from factwire.facts.shapes import carry_origin, is_derived_id, origin_of


def build_note(
    fact: Fact, event_class: str, payload: dict[str, Any], ref_ids: tuple[str, ...] = ()
) -> Fact:
    """A fact about another one: in the same place, without a sequence until one is assigned."""
    return msgspec.structs.replace(
        fact,
        id=f"{fact.id}#{event_class}",
        kind=kind_of(event_class),
        status=status_of(event_class),
        title=event_class,
        event_class=event_class,
        sequence=None,
        detail=None,
        payload={"eventId": fact.id, **payload},
        ref_ids=ref_ids,
        artifact_refs=(),
        evidence_refs=(),
        owner=None,
        scope=None,
        phase=None,
        surface=None,
        persistence=None,
        extra={},
    )


_DIAGNOSTIC: Final = "diagnostic.changed"


def to_ui_events(fact: Fact) -> tuple[Fact, ...]:
    """The UI events of a fact, first the main one; an event that already is one stays itself.

    Read again, each of them is the fact. Only the main one has the fact's id and its sequence.
    """
    if fact.event_class in UI_CLASSES and origin_of(fact.extra) is not None:
        return (fact,)
    names_id = is_derived_id(fact.id)
    return tuple(carry_origin(fact, event, names_id=names_id) for event in _build_events(fact))


def _build_events(fact: Fact) -> tuple[Fact, ...]:
    event_class = fact.event_class or ""
    row = RUNTIME_CLASSES.get(event_class) or EDGE_CLASSES.get(event_class)
    if row is None:
        return (_build_event(fact, event_class if event_class in UI_CLASSES else _DIAGNOSTIC),)
    main, *others = (*row.ui, *_artifact_classes(fact))
    return _promote(fact, main, row), *(
        msgspec.structs.replace(_promote(fact, name), id=f"{fact.id}#{name}", sequence=None)
        for name in others
    )


def _artifact_classes(fact: Fact) -> tuple[str, ...]:
    is_tool = (fact.event_class or "").startswith("tool.")
    has_artifact = is_tool and (fact.artifact_refs or id_of(fact, "artifactId"))
    return ("artifact.changed",) if has_artifact else ()


def _promote(fact: Fact, name: str, row: EventClass | None = None) -> Fact:
    event = _build_event(fact, name, row)
    if not missing_fields(event, "ui"):
        return event
    return _build_event(fact, family_of(fact.event_class or "").ui_fallback)


def _build_event(fact: Fact, name: str, row: EventClass | None = None) -> Fact:
    return fill_from_row(msgspec.structs.replace(fact, event_class=name), row or UI_CLASSES[name])
