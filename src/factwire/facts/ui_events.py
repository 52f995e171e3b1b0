"""From a runtime fact to the Agent UI events that it is.

The tables say which; two things depend on the fact itself. A tool fact that names an artifact also
is an artifact event, so that the card appears. And a fact that lacks what the UI class needs is not
promoted to it: work in a process becomes run status, anything else a diagnostic. The main event
keeps what the runtime class knew; the others, and one that was not promoted, show where their own
class shows.
"""

from typing import Final

import msgspec

from factwire.facts.class_rows import ClassRow
from factwire.facts.classification import filled_from
from factwire.facts.edge_classes import EDGE_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.ids import id_of
from factwire.facts.needs import missing_needs
from factwire.facts.runtime_classes import RUNTIME_CLASSES
from factwire.facts.ui_classes import UI_CLASSES

_DIAGNOSTIC: Final = "diagnostic.changed"
_STATUS: Final = "run.status"
_PROCESS_FAMILIES: Final = frozenset({"process", "command", "patch", "test", "file"})


def ui_events(fact: Fact) -> tuple[Fact, ...]:
    """The UI events of a fact, first the main one; an event that already is one stays itself."""
    event_class = fact.event_class or ""
    row = RUNTIME_CLASSES.get(event_class) or EDGE_CLASSES.get(event_class)
    if row is None:
        return (_event(fact, event_class if event_class in UI_CLASSES else _DIAGNOSTIC),)
    main, *others = (*row.ui, *_artifact_event(fact))
    return _promoted(fact, main, row), *(
        msgspec.structs.replace(_promoted(fact, name), id=f"{fact.id}#{name}") for name in others
    )


def _artifact_event(fact: Fact) -> tuple[str, ...]:
    is_tool = (fact.event_class or "").startswith("tool.")
    named = is_tool and (fact.artifact_refs or id_of(fact, "artifactId"))
    return ("artifact.changed",) if named else ()


def _promoted(fact: Fact, name: str, row: ClassRow | None = None) -> Fact:
    event = _event(fact, name, row)
    if not missing_needs(event, "ui"):
        return event
    family = (fact.event_class or "").partition(".")[0]
    return _event(fact, _STATUS if family in _PROCESS_FAMILIES else _DIAGNOSTIC)


def _event(fact: Fact, name: str, row: ClassRow | None = None) -> Fact:
    return filled_from(msgspec.structs.replace(fact, event_class=name), row or UI_CLASSES[name])
