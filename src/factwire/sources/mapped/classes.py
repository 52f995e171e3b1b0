"""Which names the rule of a class may use, and what stands under them.

A field that a class knows holds what its type says, or it is left out. Ids go under `ids`, and refs
are made where content is kept: no mapping writes them. A class that opens or closes something is
told by its verb or not at all.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.facts import KNOWN_CLASSES, RUNTIME_CLASSES, Fact, missing_needs
from factwire.facts.ids import ATTRIBUTES, CORRELATION_IDS, PAYLOAD_NAMES
from factwire.facts.rules import PAYLOAD_TYPES
from factwire.sources.mapped.verbs import VERBS

Fits = Callable[[Any], bool]

_KEPT: Final = frozenset({"action", "command", "patch", "subagent", "test", "tool", "turn"})
"""Families whose facts open and close each other."""

_FREE: Final = frozenset({"tool.catalog.resolved"})

_OURS: Final = frozenset({"threadId", "runId", "turnId", "stepId", "runtimeId", "agentId"})
"""Ids that a telling gives."""

_BESIDE: Final = {
    "subagent": ("task.created", "task.completed", "task.failed"),
    "turn": ("turn.submitted", "metrics.changed"),
}
"""Family of a verb → other classes that carry what its rule says."""

ID_NAMES: Final = frozenset(name for names in PAYLOAD_NAMES.values() for name in names)
"""Every way to spell an id in a payload."""

CLASSES: Final = frozenset(
    name
    for name in RUNTIME_CLASSES
    if name in VERBS or name in _FREE or name.partition(".")[0] not in _KEPT
)
"""The classes that an item can become."""

_PROBE: Final = Fact(
    id="probe", kind="", status="", title="", created_at="", schema_version="", runtime_id=""
)
_SAMPLES: Final[tuple[Any, ...]] = ("x", 1, ["x"])


def is_class(name: str) -> bool:
    """Whether facts have this class, whether or not a mapping may tell it."""
    return name in KNOWN_CLASSES


def ids_of(becomes: str) -> tuple[str, ...]:
    """The ids that a rule may give."""
    verb = VERBS.get(becomes)
    return verb.ids if verb else tuple(name for name in CORRELATION_IDS if name not in _OURS)


def fields_of(becomes: str) -> dict[str, Fits]:
    """The fields that a rule may give, with what fits into each."""
    verb = VERBS.get(becomes)
    known = _payload_fields("metrics.changed" if becomes == "usage" else becomes)
    if verb is None:
        return known
    return {name: known.get(name, _is_text) for name in verb.fields}


def typed_names(becomes: str) -> frozenset[str]:
    """Names whose type is known in a fact that this becomes, or in one that is told beside it."""
    beside = _BESIDE.get(becomes.partition(".")[0], ())
    kinds = [PAYLOAD_TYPES[name] for name in (becomes, *beside) if name in PAYLOAD_TYPES]
    return frozenset(field.encode_name for kind in kinds for field in msgspec.structs.fields(kind))


def lacking(event_class: str, ids: dict[str, str], payload: dict[str, Any]) -> str | None:
    """What a fact of this class needs and has not, if anything."""
    given: dict[str, Any] = {ATTRIBUTES[name]: value for name, value in ids.items()}
    probe = msgspec.structs.replace(_PROBE, event_class=event_class, payload=payload, **given)
    missing = missing_needs(probe)
    return missing[0].wanted if missing else None


def never_met(event_class: str, ids: set[str], fields: set[str]) -> str | None:
    """What a class needs that no value of these names can give."""
    found = [
        lacking(event_class, dict.fromkeys(ids, "x"), dict.fromkeys(fields, sample))
        for sample in _SAMPLES
    ]
    return found[0] if all(found) else None


@lru_cache(maxsize=256)
def _payload_fields(event_class: str) -> dict[str, Fits]:
    payload = PAYLOAD_TYPES.get(event_class)
    fields = msgspec.structs.fields(payload) if payload else ()
    return {
        field.encode_name: _fits(field.type)
        for field in fields
        if field.encode_name not in ID_NAMES and not is_ref(field.encode_name)
    }


def is_ref(name: str) -> bool:
    """Whether a field holds refs."""
    return name in ("ref", "refId", "refIds") or name.endswith(("Ref", "Refs", "_ref", "_refs"))


def _fits(kind: Any) -> Fits:
    if kind is Any:
        return _anything
    if kind == str | None:
        return _is_text

    def fits(value: Any) -> bool:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return False
        return True

    return fits


def _anything(value: Any) -> bool:
    del value
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
