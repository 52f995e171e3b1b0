"""The first screen: what a read model must bring back before a single fact has been read again.

Status, the turn that runs, what waits for a person, the calls, the queue, and how the last turn
ended. A read model carries no text; the stream brings it. Calls that the reader knows as open are
left out of the comparison: whether a read model may end one is the projection's own rule.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from factwire.conformance.case import Finding, Level, broken
from factwire.conformance.screens.differences import difference
from factwire.conformance.screens.replaying import cuts
from factwire.facts import Fact
from factwire.projection import (
    Projection,
    ProjectionState,
    ThreadReadModel,
    project,
    read_thread_model,
    thread_read_model,
)

_SHOWN: Final = (
    *("sessionId", "threadId", "status", "activeTurnId", "pendingActions", "toolCalls"),
    *("queuedTurns", "lastOutcome"),
)

_REPAIRED: Final = {
    "toolCalls": ("toolCallId", "state", "outputRef", "failureCategory"),
    "pendingActions": ("actionId", "status"),
}
"""List → the id of its rows, and what else a repair must bring."""


def first_screen(state: ProjectionState) -> dict[str, Any]:
    """What a first screen shows of a state."""
    model = msgspec.to_builtins(thread_read_model(state))
    if state.hydration.event_count == 0 and state.read_model.status is not None:
        # Before the first fact, a screen shows the status that the read model states.
        model["status"] = state.read_model.status
    return {name: model.get(name) for name in _SHOWN}


def restores(facts: Sequence[Fact], thread: str | None = None) -> Iterator[Finding]:
    """Places at which a read model alone shows something else than the facts, or from which the
    rest of the stream leads elsewhere.
    """
    whole = project(facts, thread)
    projection = Projection(thread)
    places = cuts(len(facts)) | {len(facts)}
    for place, fact in enumerate(facts, 1):
        projection.apply(fact)
        if place not in places:
            continue
        model = sent(projection.state)
        restored = Projection.from_read_model(model)
        shown, expected = first_screen(restored.state), first_screen(projection.state)
        yield from _compared("screen.first-screen", shown, expected, f"at {fact.id}", fact)
        restored.apply_all(_rest(facts, place, model.event_cursor, projection.state.thread_id))
        went_on = f"from the read model at {fact.id} on"
        shown = first_screen(restored.state)
        yield from _compared("screen.first-screen", shown, first_screen(whole), went_on, fact)


def repairs(
    facts: Sequence[Fact],
    model: ThreadReadModel,
    thread: str | None = None,
    requirement: str = "screen.repair",
    level: Level = "projection",
) -> Iterator[Finding]:
    """Places at which the stream was cut and that the read model of its end does not repair."""
    whole = first_screen(project(facts, thread))
    for place in sorted(cuts(len(facts))):
        cut = Projection(thread)
        cut.apply_all(facts[:place])
        known = frozenset([*cut.state.tools, *cut.state.actions])
        cut.repair(model)
        where = f"cut after {facts[place - 1].id} and repaired"
        shown, expected = _settled(first_screen(cut.state), known), _settled(whole, known)
        for each in _compared(requirement, shown, expected, where, facts[place - 1]):
            yield msgspec.structs.replace(each, level=level)


def _settled(screen: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """A first screen with what a repair brings: of calls and requests that a reader knew already
    only that they are there, of others what matters about them.
    """
    return screen | {
        name: [
            {key: row.get(key) for key in (keys if row[keys[0]] not in known else keys[:1])}
            for row in screen[name]
        ]
        for name, keys in _REPAIRED.items()
    }


def _rest(
    facts: Sequence[Fact], place: int, cursor: int | None, thread: str | None
) -> Iterator[Fact]:
    """What a reader gets that takes up after the cursor: all that is newer, whenever it came."""
    for index, fact in enumerate(facts):
        own = fact.thread_id in (None, thread) and fact.sequence is not None
        newer = own and cursor is not None and (fact.sequence or 0) > cursor
        if newer or (index >= place and not own):
            yield fact


def sent(state: ProjectionState) -> ThreadReadModel:
    """The read model of a state, as it arrives on the other side of a wire."""
    return read_thread_model(msgspec.json.encode(thread_read_model(state)))


def _compared(
    requirement: str,
    shown: dict[str, Any],
    expected: dict[str, Any],
    where: str,
    fact: Fact,
) -> Iterator[Finding]:
    differs = difference(shown, expected)
    if differs is not None:
        yield broken(requirement, f"{where}: {differs}", level="projection", fact=fact)
