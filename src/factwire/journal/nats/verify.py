"""Verifying a journal: every page fetched anew from the server and walked along the chain."""

from collections.abc import Iterator
from typing import Final

from factwire.journal.chain import Record
from factwire.journal.errors import JournalCorrupt
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.mirror import Mirror
from factwire.journal.protocol import VerifyReport
from factwire.journal.walk import Walk

_BATCH: Final = 64


async def verify(mirror: Mirror) -> VerifyReport:
    """What a walk over the chain as it is now finds."""
    state = mirror.state
    head, end, records = state.head, state.hash, state.records()
    walk = Walk(state.base, state.base_hash, records)
    ahead = _Records(records)
    ahead.walk(walk, state.base)
    after = state.base
    while after < head and walk.damage is None:
        segments = state.directory.after(after, head, _BATCH)
        await _take(mirror, walk, ahead, segments)
        after = segments[-1].last
    walk.end(head, end)
    return walk.report()


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
