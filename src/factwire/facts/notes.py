"""Notes: bookkeeping facts about another fact, such as that something in it was hidden or moved."""

from typing import Any

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.vocabulary import kind_of, status_of


def note_about(
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
