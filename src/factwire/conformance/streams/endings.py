"""Endings: turns that end once and say how, and facts that claim no end that is none."""

from collections.abc import Iterator
from typing import Final

from factwire.conformance.case import Finding, broken
from factwire.conformance.streams.stream import Read
from factwire.facts import Fact, OpenActions, id_of
from factwire.facts.vocabulary import TURN_TERMINALS

_ENDED: Final = frozenset({"completed", "failed", "canceled"})
_BEGINNINGS: Final = frozenset(
    {"submitted", "started", "requested", "required", "args", "delta", "progress"}
)
"""Last words of classes that end nothing."""

_BEGUN: Final = frozenset(
    {"turn", "model", "reasoning", "tool", "action", "task", "subagent", "command", "patch", "test"}
)
"""Families of things that begin and end; other facts are over with themselves."""

_ENDS: Final = {
    "turn.completed": frozenset({"completed"}),
    "turn.failed": frozenset({"failed"}),
    "turn.canceled": frozenset({"canceled"}),
    "model.completed": frozenset({"completed"}),
    "model.failed": frozenset({"failed", "canceled"}),
    "tool.result": frozenset({"completed"}),
    "tool.failed": frozenset({"failed", "canceled"}),
    "task.completed": frozenset({"completed"}),
    "task.failed": frozenset({"failed"}),
    "subagent.completed": frozenset({"completed"}),
    "subagent.failed": frozenset({"failed"}),
}
"""Class that ends something → the statuses that say the same."""

_WORK: Final = frozenset({"model", "reasoning", "tool", "command", "patch", "test", "file"})


def turn_ends(read: Read) -> Iterator[Finding]:
    """A turn that was begun ends, or waits for a person."""
    last: dict[str, Fact] = {}
    begun = dict.fromkeys(read.stream.begun)
    ended: set[str | None] = set()
    actions = OpenActions()
    for fact in read.facts:
        actions.feed(fact)
        turn = id_of(fact, "turnId")
        if turn is not None:
            last[turn] = fact
        if fact.event_class == "turn.started" and turn is not None and not read.stream.begun:
            begun[turn] = None
        elif fact.event_class in TURN_TERMINALS:
            ended.add(turn)
    for turn in begun:
        if turn in ended or turn in read.stream.excused or actions.of_turn(turn):
            continue
        message = f"{read.stream.prefix}turn {turn} has no turn.completed, failed or canceled"
        yield broken("stream.terminal", message, level="facts", fact=last.get(turn))


def one_turn(read: Read) -> Iterator[Finding]:
    """No turn starts on a thread while another one is active there; subagents have their own."""
    active: dict[str | None, str | None] = {}
    for fact in read.facts:
        thread, turn = id_of(fact, "threadId"), id_of(fact, "turnId")
        if fact.subagent_id is not None or fact.runtime_entity == "subagent_turn":
            continue
        if fact.event_class == "turn.started":
            if active.get(thread) not in (None, turn):
                message = f"{read.stream.prefix}turn {turn} starts while {active[thread]} runs"
                yield broken("stream.one-turn", message, level="facts", fact=fact)
            active[thread] = turn
        elif fact.event_class in TURN_TERMINALS and active.get(thread) == turn:
            active[thread] = None


def failures(read: Read) -> Iterator[Finding]:
    """A failed turn tells machines which kind of failure it was, and people what to do."""
    for fact in read.facts:
        if fact.event_class != "turn.failed":
            continue
        for name in ("failureCategory", "recoveryHint"):
            if not isinstance(fact.payload.get(name), str) or not fact.payload[name]:
                message = f"{read.stream.prefix}a failed turn needs payload.{name}"
                path = f"$.payload.{name}"
                yield broken("stream.failure", message, level="facts", fact=fact, path=path)


def statuses(read: Read) -> Iterator[Finding]:
    """The status of a fact is that of its class, and a run is not over while it goes on."""
    for fact in read.facts:
        name = fact.event_class or ""
        words = name.split(".")
        begins = words[0] in _BEGUN and words[-1] in _BEGINNINGS
        if (begins and fact.status in _ENDED) or fact.status not in _ENDS.get(name, (fact.status,)):
            message = f"{read.stream.prefix}{name} cannot have the status {fact.status}"
            yield broken("stream.status", message, level="facts", fact=fact, path="$.status")
    yield from _over_too_early(read)


def _over_too_early(read: Read) -> Iterator[Finding]:
    claimed: dict[str | None, Fact] = {}
    for fact in read.facts:
        turn, family = id_of(fact, "turnId"), (fact.event_class or "").partition(".")[0]
        if fact.event_class == "run.status" and fact.payload.get("status") in _ENDED:
            claimed.setdefault(turn, fact)
        elif family in _WORK and turn in claimed:
            said = claimed.pop(turn)
            message = (
                f"{read.stream.prefix}run.status says {said.payload['status']}, "
                f"and {fact.event_class} follows"
            )
            path = "$.payload.status"
            yield broken("stream.status", message, level="facts", fact=said, path=path)
