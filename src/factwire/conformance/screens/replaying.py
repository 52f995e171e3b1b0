"""Replay: however often and in whatever pieces facts come, the screen is the same.

A reader that reconnects sees facts again; a tab that was asleep takes up from what it saved; a copy
follows by changes alone. None of them may show anything twice, or anything else.
"""

from collections.abc import Iterator, Sequence

import msgspec

from factwire.conformance.case import Finding, Projector, broken
from factwire.conformance.limits import CUT_FACTS, CUTS, FEW_CUTS
from factwire.conformance.screens.differences import difference, plain
from factwire.facts import Fact
from factwire.projection import Document, Projection, advance

REQUIREMENT = "screen.replay"


def replays(
    facts: Sequence[Fact], projector: Projector, thread: str | None = None
) -> Iterator[Finding]:
    """Every way of replaying the facts that comes to another screen."""
    whole = plain(projector(facts, None))
    ways = {
        "each fact twice": [fact for fact in facts for _ in range(2)],
        "all facts again after the last": [*facts, *facts],
    }
    for way, repeated in ways.items():
        yield from _compared(plain(projector(repeated, None)), whole, way, facts)
    yield from _pieces(facts, thread)


def _pieces(facts: Sequence[Fact], thread: str | None) -> Iterator[Finding]:
    """Factwire's own: saved and restored at many places, and followed by changes alone."""
    straight, saved = Projection(thread), Projection(thread)
    copy = Document(msgspec.json.decode(straight.snapshot()))
    places = cuts(len(facts))
    for place, fact in enumerate(facts):
        advance(copy, straight.apply(fact))
        if place in places:
            saved = Projection.restore(saved.checkpoint())
        saved.apply(fact)
    whole = plain(straight.state)
    yield from _compared(plain(saved.state), whole, "saved and restored on the way", facts)
    yield from _compared(copy.root, whole, "a copy that follows the changes", facts)


def cuts(length: int) -> frozenset[int]:
    """Places in a stream at which to cut it: all of a short one, some of a long one."""
    places = max(FEW_CUTS, min(CUTS, CUT_FACTS // max(length, 1)))
    return frozenset(range(1, length, max(1, -(-length // places))))


def _compared(
    found: object, expected: object, way: str, facts: Sequence[Fact]
) -> Iterator[Finding]:
    differs = difference(found, expected)
    if differs is not None:
        last = facts[-1] if facts else None
        yield broken(REQUIREMENT, f"{way}: {differs}", level="projection", fact=last)
