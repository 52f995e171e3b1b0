"""How reducers read a fact: typed, never trusting, never raising.

A payload field of the wrong type is treated as absent, because a projection must show what it can
of any stream; validation is where such a field is reported.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import id_in_payload
from factwire.facts.payloads import Payload
from factwire.facts.refs import Ref
from factwire.projection.limits import DETAIL_CHARACTERS

Read = TypeVar("Read", bound=Payload)

_OUTCOMES: Final = {
    "turn.completed": "completed",
    "turn.failed": "failed",
    "turn.canceled": "canceled",
    "run.finished": "completed",
    "run.failed": "failed",
}


def read(fact: Fact, kind: type[Read]) -> Read:
    """The payload as its type; fields of another type are left out."""
    try:
        return msgspec.convert(fact.payload, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_sound(fact.payload, kind), kind)


def word(payload: dict[str, Any], *names: str) -> str | None:
    """The first of these fields that is a text with something in it."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def words(value: object) -> list[str]:
    """The texts of a list, or of one text; anything else is none."""
    if isinstance(value, str):
        return [value] if value else []
    items: list[object] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [item for item in items if isinstance(item, str) and item]


def listed(value: object) -> list[Any] | None:
    """A value that is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def table(value: object) -> dict[str, Any] | None:
    """A value that is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def number(payload: dict[str, Any], *names: str) -> float | None:
    """The first of these fields that is a number."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


def ref_text(value: object) -> str | None:
    """A ref as text, whether it came as text or as an object."""
    if isinstance(value, str):
        return value or None
    return value.ref if isinstance(value, Ref) else None


def detail_of(text: str | None) -> str | None:
    """A line short enough for a list."""
    if text is None or len(text) <= DETAIL_CHARACTERS:
        return text or None
    return text[: DETAIL_CHARACTERS - 1] + "…"


def other_id(fact: Fact, name: str, attribute: str) -> str | None:
    """The id called `name`, which the fact has as `attribute` or in its payload."""
    value: str | None = getattr(fact, attribute)
    return value or id_in_payload(fact.payload, name)


def turn_of(fact: Fact) -> str | None:
    return fact.turn_id or _in(fact.payload, "turnId", "turn_id")


def tool_of(fact: Fact) -> str | None:
    return fact.tool_call_id or other_id(fact, "toolCallId", "tool_call_id")


def task_of(fact: Fact) -> str | None:
    return fact.task_id or _in(fact.payload, "taskId", "task_id")


def subagent_of(fact: Fact) -> str | None:
    return fact.subagent_id or _in(fact.payload, "subagentId", "subagent_id")


def _in(payload: dict[str, Any], name: str, other: str) -> str | None:
    value = payload.get(name)
    if type(value) is str and value:
        return value
    value = payload.get(other)
    return value if type(value) is str and value else None


def joined(known: list[str] | None, more: Iterable[str]) -> list[str] | None:
    """What is known and what is new, each once, in the order in which it came."""
    return list(dict.fromkeys((*(known or ()), *more))) or None


def outcome_of(fact: Fact) -> str:
    """How a turn ended, by the fact that ends it; a UI event says no more than that it finished."""
    status = _OUTCOMES[fact.event_class or ""]
    stopped = fact.status in ("canceled", "cancelled") or fact.phase in ("cancelled", "interrupted")
    return "canceled" if stopped and status == "completed" else status


def refs_of(fact: Fact) -> list[str]:
    """Every ref that a fact carries, once, in its order."""
    if not (fact.ref_ids or fact.artifact_refs or fact.evidence_refs):
        return []
    return list(dict.fromkeys((*fact.ref_ids, *fact.artifact_refs, *fact.evidence_refs)))


def _sound(payload: dict[str, Any], kind: type[Payload]) -> dict[str, Any]:
    sound: dict[str, Any] = {}
    for name, declared in _fields(kind):
        if name in payload:
            try:
                msgspec.convert(payload[name], declared)
            except msgspec.ValidationError:
                continue
            sound[name] = payload[name]
    return sound


@lru_cache(maxsize=64)
def _fields(kind: type[Payload]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.encode_name, field.type) for field in msgspec.structs.fields(kind))
