"""Reading the payload of a fact: typed, never trusting, never raising.

A field of the wrong type is treated as absent, because a projection must show what it can of any
stream; validation is where such a field is reported. A view takes over every field that it has in
common with its payload, by a table that is made from the two types.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args

import msgspec

from factwire.facts.classes.payloads import Payload
from factwire.facts.fact import Fact, id_in_payload
from factwire.facts.json_values import list_at, object_at, objects_of, text_at
from factwire.facts.outcomes import (
    CLASS_STATUSES,
    ENDED_STATUSES,
    bad_end,
    call_outcome,
    status_shown,
)
from factwire.facts.refs import Ref
from factwire.facts.vocabulary import UNKNOWN
from factwire.projection.limits import DETAIL_CHARACTERS
from factwire.projection.views import View

Read = TypeVar("Read", bound=Payload)


def read_payload(fact: Fact, kind: type[Read]) -> Read:
    """The payload as its type; fields of another type are left out."""
    try:
        return msgspec.convert(fact.payload, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_valid_fields(fact.payload, kind), kind)


def ref_text(value: object) -> str | None:
    """A ref as text, whether it came as text or as an object."""
    if isinstance(value, str):
        return value or None
    return value.ref if isinstance(value, Ref) else None


def shorten_detail(text: str | None) -> str | None:
    """A line short enough for a list."""
    if text is None or len(text) <= DETAIL_CHARACTERS:
        return text or None
    return text[: DETAIL_CHARACTERS - 1] + "…"


def other_id(fact: Fact, name: str, attribute: str) -> str | None:
    """The id called `name`, which the fact has as `attribute` or in its payload."""
    value: str | None = getattr(fact, attribute)
    return value or id_in_payload(fact.payload, name)


def drop_placeholder_time(fact: Fact) -> Fact:
    """The fact without a time where that is a placeholder, so that nothing is shown with one."""
    if fact.created_at != UNKNOWN:
        return fact
    return msgspec.structs.replace(fact, created_at=None)


def turn_of(fact: Fact) -> str | None:
    return fact.turn_id or _id_in(fact.payload, "turnId", "turn_id")


def queued_turn_of(fact: Fact) -> str | None:
    return fact.queued_turn_id or _id_in(fact.payload, "queuedTurnId", "queued_turn_id")


def tool_of(fact: Fact) -> str | None:
    return fact.tool_call_id or other_id(fact, "toolCallId", "tool_call_id")


def task_of(fact: Fact) -> str | None:
    return fact.task_id or _id_in(fact.payload, "taskId", "task_id")


def subagent_of(fact: Fact) -> str | None:
    return fact.subagent_id or _id_in(fact.payload, "subagentId", "subagent_id")


def _id_in(payload: dict[str, Any], name: str, other: str) -> str | None:
    value = payload.get(name)
    if type(value) is str and value:
        return value
    value = payload.get(other)
    return value if type(value) is str and value else None


def join_texts(existing: list[str] | None, more: Iterable[str]) -> list[str] | None:
    """What is known and what is new, each once, in the order in which it came."""
    return list(dict.fromkeys((*(existing or ()), *more))) or None


def outcome_of(fact: Fact) -> str:
    """How a turn ended, by the fact that ends it; a UI event says no more than that it finished."""
    outcome = call_outcome(fact)
    if outcome == "completed" and fact.phase in ("cancelled", "interrupted"):
        return "canceled"
    return outcome if outcome in ENDED_STATUSES else CLASS_STATUSES[fact.event_class or ""] or ""


def adjust_state(fact: Fact, state: str, *, blocked: str) -> str:
    """The state that a class means, as the status of the fact puts it: what failed or was cancelled
    did not complete, what runs is past waiting for that, and what is blocked does not run.
    """
    if state in ("completed", "failed", "closed"):
        return bad_end(fact) or state
    states = {"running": "running", "blocked": blocked}
    return states.get(status_shown(fact) or "", state) if state in _EARLY_STATES else state


_EARLY_STATES: Final = frozenset({"draft", "queued", "accepted", "spawned", "running"})
"""States of which a status may say that more is the case."""


def stated_state(fact: Fact, *, blocked: str) -> str | None:
    """The state that the status of a fact alone means, where its class says nothing about it."""
    states = {"canceled": "cancelled", "blocked": blocked, "pending": None, UNKNOWN: None}
    status = status_shown(fact)
    return states.get(status, status) if status else None


def _valid_fields(payload: dict[str, Any], kind: type[Payload]) -> dict[str, Any]:
    sound: dict[str, Any] = {}
    for name, declared in _payload_fields(kind):
        if name in payload:
            try:
                msgspec.convert(payload[name], declared)
            except msgspec.ValidationError:
                continue
            sound[name] = payload[name]
    return sound


@lru_cache(maxsize=64)
def _payload_fields(kind: type[Payload]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.encode_name, field.type) for field in msgspec.structs.fields(kind))


Check = Callable[[Any], Any]
FieldChecks = Mapping[str, tuple[str, Check]]
"""Wire name in the payload → field of the view, and what makes a value of it or None."""


def build_field_checks(view: type[View], payload: type[Payload]) -> FieldChecks:
    """The table for a view and the payload that describes it."""
    fields = {field.name for field in msgspec.structs.fields(view)}
    return {
        field.encode_name: (field.name, _choose_check(field.type))
        for field in msgspec.structs.fields(payload)
        if field.name in fields
    }


def _choose_check(declared: Any) -> Check:
    if declared is Any:
        return _check_anything
    kinds = tuple(kind for kind in get_args(declared) or (declared,) if kind is not type(None))
    if Ref in kinds:
        return _check_ref
    if kinds == (str,):
        return _check_text
    if kinds == (float,):
        return _check_number

    def check(value: object) -> object:
        try:
            return msgspec.convert(value, declared)
        except msgspec.ValidationError:
            return None

    return check


def _check_anything(value: object) -> object:
    return value


def _check_text(value: object) -> object:
    return value if type(value) is str else None


def _check_number(value: object) -> float | None:
    if type(value) not in (int, float):
        return None
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except OverflowError:
        return None


def _check_ref(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    try:
        return ref_text(msgspec.convert(value, Ref))
    except msgspec.ValidationError:
        return None


def user_texts(payload: dict[str, Any]) -> list[str]:
    """Every text that a payload asks with: its prompt, and what its `input` holds beside that."""
    prompt, items = text_at(payload, "prompt", "text"), payload.get("input")
    texts = _input_texts(items) if items else []
    if not prompt and items:
        prompt = text_at(object_at(items) or {}, "text")
    if not texts:
        return [prompt] if prompt else []
    if not prompt or prompt in texts:
        return texts
    is_joined = any(prompt == between.join(texts) for between in _JOINTS)
    return [prompt] if is_joined else [prompt, *texts]


_JOINTS: Final = ("", " ", "\n", "\n\n")
"""What stands between the texts of an input where a prompt repeats them in one."""


def _input_texts(items: object) -> list[str]:
    found = (row if isinstance(row, str) else _input_text(row) for row in _input_rows(items))
    return [text for text in found if text]


def _input_rows(items: object) -> list[Any]:
    """The rows of an input: a list of them, a text by itself, or an object that has them in
    `parts`.
    """
    fields = object_at(items)
    if fields is not None:
        return _input_rows(fields.get("parts", fields.get("content")))
    return [items] if isinstance(items, str) else list_at(items) or []


def _input_text(row: object) -> str | None:
    fields = object_at(row)
    return None if fields is None else text_at(fields, "text", "content")


def input_refs(items: object) -> list[str]:
    """The refs that an input holds."""
    if not items:
        return []
    rows = objects_of(_input_rows(items))
    found = (text_at(item, "ref", "assetRef", "uri", "capabilityRef") for item in rows)
    return [ref for ref in found if ref]
