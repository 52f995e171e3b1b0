"""Verifying a journal: every page fetched anew from the server and walked along the chain."""

from collections.abc import Iterator
from typing import Final

import msgspec

from factwire.journal.chain import Record
from factwire.journal.errors import JournalCorrupt
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.snapshots import saved_anchors
from factwire.journal.protocol import Damage, VerifyReport
from factwire.journal.walk import Anchor, Walk

_BATCH: Final = 64


async def verify(mirror: Mirror) -> VerifyReport:
    """What a walk over the chain as it is now finds."""
    state = mirror.state
    head, end, records = state.head, state.hash, state.records()
    anchors, lost = await _anchors(mirror)
    walk = Walk(state.base, state.base_hash, records, anchors)
    ahead = _Records(records)
    ahead.walk(walk, state.base)
    after = state.base
    while after < head and walk.damage is None:
        segments = state.directory.after(after, head, _BATCH)
        await _take(mirror, walk, ahead, segments)
        after = segments[-1].last
    walk.end(head, end)
    report = walk.report()
    return report if report.damage else msgspec.structs.replace(report, damage=lost)


async def _anchors(mirror: Mirror) -> tuple[list[Anchor], Damage | None]:
    """The anchors of all snapshots, or what is wrong with one of them."""
    try:
        return await saved_anchors(mirror), None
    except JournalCorrupt as error:
        seq = error.first or mirror.state.head
        return [], Damage(first=seq, last=seq, reason=error.reason)


async def _take(mirror: Mirror, walk: Walk, ahead: "_Records", segments: list[Segment]) -> None:
    for segment in segments:
        try:
            found = await mirror.pages.get([segment], fresh=True)
        except JournalCorrupt as error:
            walk.fail(error.reason, segment.last)
            return
        page = found.get(segment.at)
        if page is None or page.chunk is None:
            walk.fail("the stream lost facts", segment.last)
            return
        walk.chunk(page.chunk)
        ahead.walk(walk, segment.last)


class _Records:
    """Records in the order of the chain, each to be walked after the fact it follows."""

    def __init__(self, records: list[Record]) -> None:
        self._left: Iterator[Record] = iter(records)
        self._next = next(self._left, None)

    def walk(self, walk: Walk, seq: int) -> None:
        while self._next is not None and self._next.after <= seq:
            walk.record(self._next)
            self._next = next(self._left, None)
