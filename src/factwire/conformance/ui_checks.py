"""The UI mapping: facts that become UI events and facts again must show the same.

A mapping is two functions: facts to UI events, and UI events to facts, each of a whole stream as
JSON. It is judged by the account of the facts that it started from, so that a mapping and its way
back cannot lose the same thing unnoticed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from factwire.conformance.account_checks import SHOWN, find_differences, texts_by_speaker
from factwire.conformance.case import Case, Finding, Reducer, Wire
from factwire.conformance.delivery_streams import DeliveredStream
from factwire.conformance.reducers import call_reducer
from factwire.facts import read_fact, read_item, to_ui_events, write_fact
from factwire.facts.shapes import RepeatNumbers

ROUND_TRIP: Final = "screen.ui-round-trip"
REPEATS: Final = "screen.ui-repeats"


class UiMapping(msgspec.Struct, frozen=True, kw_only=True):
    """Both directions: facts in shape A to UI events, and UI events to facts in shape A."""

    to_ui: Callable[[Sequence[Wire]], list[Wire]]
    from_ui: Callable[[Sequence[Wire]], list[Wire]]


def _to_ui(events: Sequence[Wire]) -> list[Wire]:
    facts = [read_fact(event, "facts") for event in events]
    return [write_fact(event, "ui") for fact in facts for event in to_ui_events(fact)]


def _from_ui(events: Sequence[Wire]) -> list[Wire]:
    repeats = RepeatNumbers()
    readings = [read_item(event, "ui") for event in events]
    facts = [found.fact for found in readings if found.fact is not None and not found.is_repeat]
    return [write_fact(repeats.number(fact), "facts") for fact in facts]


factwire_mapping: Final = UiMapping(to_ui=_to_ui, from_ui=_from_ui)
"""Factwire's own mapping."""


def mapping_cases(
    streams: Sequence[DeliveredStream], mapping: UiMapping = factwire_mapping
) -> tuple[Case, ...]:
    """What a mapping is judged by; the reducer shows what came back."""
    rows: tuple[tuple[str, str, Callable[..., Iterator[str]]], ...] = (
        (ROUND_TRIP, "Facts to UI events and back", partial(_check_round_trips, streams)),
        (REPEATS, "Two UI events without ids", _check_repeats),
    )
    return tuple(
        Case(
            id=f"mapping.{requirement.partition('.')[2]}",
            title=title,
            source="facts.md §1, §2; seed 002",
            requirements=(requirement,),
            level="projection",
            run=partial(_run_check, requirement, check, mapping),
        )
        for requirement, title, check in rows
    )


def _run_check(
    requirement: str, check: Callable[..., Iterator[str]], mapping: UiMapping, reduce: Reducer
) -> Iterator[Finding]:
    for problem in check(mapping, reduce):
        yield Finding(requirement=requirement, message=problem, level="projection")


def _check_round_trips(
    streams: Sequence[DeliveredStream], mapping: UiMapping, reduce: Reducer
) -> Iterator[str]:
    for stream in streams:
        for problem in check_round_trip(stream, mapping, reduce):
            yield f"{stream.name}: {problem}"


def check_round_trip(stream: DeliveredStream, mapping: UiMapping, reduce: Reducer) -> Iterator[str]:
    """What facts state and is not shown after they were UI events. Events may have ids of their
    own, so the ids in the timeline are not compared.
    """
    events = _send(mapping.to_ui(stream.events))
    yield from _not_unique(events)
    returned = _send(mapping.from_ui(events))
    straight = call_reducer(reduce, stream.events, None)
    document = call_reducer(reduce, returned, None)
    known = {difference.message for difference in find_differences(stream.events, straight)}
    for difference in find_differences(stream.events, document):
        is_id = difference.requirement == SHOWN and difference.fact_id is not None
        if not is_id and difference.message not in known:
            yield difference.message
    for root, field in _COMPARED:
        wanted, got = _fields(straight, root, field), _fields(document, root, field)
        if wanted != got:
            yield f"{root} read {got}, and {wanted} without the mapping"


_COMPARED: Final = (
    ("tools", "state"),
    ("actions", "status"),
    ("tasks", "status"),
    ("artifacts", "status"),
    ("runtime", None),
)


def _fields(document: Wire, root: str, field: str | None) -> Any:
    found: Any = document.get(root) or {}
    if field is None:
        return found.get("status")
    return {name: row.get(field) for name, row in found.items()}


def _not_unique(events: Sequence[Wire]) -> Iterator[str]:
    for name in ("id", "sequence"):
        counts = Counter(
            (event.get("threadId") if name == "sequence" else None, event.get(name))
            for event in events
            if event.get(name) is not None
        )
        for (_, value), count in counts.items():
            if count > 1:
                yield f"{count} UI events share the {name} {value}"


def _check_repeats(mapping: UiMapping, reduce: Reducer) -> Iterator[str]:
    ids = {"threadId": "thr_1", "turnId": "trn_1", "messageId": "msg_1"}
    piece = {"type": "text.delta", **ids, "payload": {"delta": "ha"}}
    returned = _send(mapping.from_ui([piece, dict(piece)]))
    shown = texts_by_speaker(call_reducer(reduce, returned, None))
    texts = [text for rows in shown.values() for text, _ in rows]
    if texts != ["haha"]:
        yield f"two events of 'ha' without ids read {texts}"


def _send(events: list[Wire]) -> list[Wire]:
    """The events as they arrive on the other side of a wire."""
    return msgspec.json.decode(msgspec.json.encode(events))
