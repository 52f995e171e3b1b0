"""How a UI event carries the fact that it was made from.

The UI vocabulary is smaller than the runtime's, and one fact may be several UI events. The first
of them has the fact's id and its sequence; the others have ids of their own and no sequence, so
that no number is used twice. Each event carries, in the field `runtimeFact`, the fields in which
the fact differs from it, with null for a field that the fact does not have. A UI client may ignore
that field; a reader gets the fact back from it, exactly, and recognises the events that only repeat
a fact. An event without the field is a fact as it stands.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from factwire.facts.fact import Fact

ORIGIN: Final = "runtimeFact"
"""The field of a UI event that says how to get its fact back."""

_ATTRIBUTES: Final = {
    field.encode_name: field.name
    for field in msgspec.structs.fields(Fact)
    if field.encode_name != ""
}
_HIDDEN_NAMES: Final = frozenset({ORIGIN, "type"})
"""Unknown fields of a fact whose names mean something else in a UI event."""


def carry_origin(fact: Fact, event: Fact, *, names_id: bool = False) -> Fact:
    """The event with all that a reader needs to make `fact` of it again. `names_id`: the id will
    not be written, since it is derived from what the event says.
    """
    origin = {
        name: msgspec.to_builtins(value)
        for name, attribute in _ATTRIBUTES.items()
        if (value := getattr(fact, attribute)) != getattr(event, attribute)
    }
    origin |= {name: value for name, value in fact.extra.items() if name in _HIDDEN_NAMES}
    if not origin:
        return event
    if names_id:
        origin["id"] = fact.id
    return msgspec.structs.replace(event, extra={**event.extra, ORIGIN: origin})


def origin_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a UI event carries of its fact; None for an event of another maker."""
    origin = value.get(ORIGIN)
    return cast("Mapping[str, Any]", origin) if isinstance(origin, dict) else None


def repeats_fact(value: Mapping[str, Any]) -> bool:
    """Whether a UI event is one of several of a fact, and not the first of them."""
    origin = origin_of(value)
    return origin is not None and value.get("id") not in (None, origin.get("id", value.get("id")))


def restore_fields(
    fields: dict[str, Any], unknown: dict[str, Any], origin: Mapping[str, Any]
) -> None:
    """Put back, in place, the known and the unknown fields of the fact that an event was made
    from.
    """
    del unknown[ORIGIN]
    for name, value in origin.items():
        if name not in _ATTRIBUTES:
            unknown[name] = value
        elif value is None:
            fields.pop(name, None)
        else:
            fields[name] = value
