"""Keeping records: read once from the journal, then along with the feed, saved when it ends.

What is saved is a file in the data folder and only spares work: without it, or with one of another
journal, the lists are made anew from the facts.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from factwire.edge.records.records import CLASSES, Records
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.feed import Feed
from factwire.facts import Fact
from factwire.journal import Cursor, CursorError, Filter, Journal
from factwire.journal.blobs.disk import on_disk
from factwire.journal.blobs.references import every_thread

FILE_NAME: Final = "edge-records"
_MODE: Final = 0o600


class KeptRecords:
    """Records that follow a feed; made before the feed starts, so that they miss nothing."""

    def __init__(self, records: Records, feed: Feed) -> None:
        self.records = records
        self.failure: Exception | None = None
        self._feed = feed
        self._stop: Callable[[], None] = feed.subscribe(self._take, self._lost)

    async def reached(self, seq: int) -> Records:
        """The records once they hold everything up to `seq`."""
        await self._feed.reached(seq)
        if self.failure is not None:
            raise self.failure
        return self.records

    async def save(self, folder: Path) -> None:
        """Stop following, and keep what is there for the next start."""
        self._stop()
        data = self.records.save(self._feed.cursor.epoch)
        await on_disk(_write, folder / FILE_NAME, data)

    def _take(self, arrival: Arrival) -> None:
        for seq, fact in zip(arrival.stretch.seqs, arrival.facts, strict=True):
            self.records.note(seq, fact)
        self.records.seq = arrival.stretch.last

    def _lost(self, error: Exception) -> None:
        self.failure = error


async def read_records(journal: Journal, folder: Path) -> tuple[Records, Cursor]:
    """Records up to the end of a journal, and where that is."""
    epoch = (await journal.head()).epoch
    data = await on_disk(_read, folder / FILE_NAME)
    records = (Records.restore(data, epoch) if data else None) or Records()
    try:
        await _catch_up(records, journal, epoch)
    except CursorError:
        # Retention has gone past what was saved, or it was saved of a later state.
        records = Records()
        await _catch_up(records, journal, epoch)
    return records, Cursor(epoch, records.seq)


async def _catch_up(records: Records, journal: Journal, epoch: str) -> None:
    """Take in what lists are made of, in the order of the journal. A thread may begin with a fact
    that no list is made of; it is known from that one on.
    """
    start = records.seq
    after = Cursor(epoch, start) if start else None
    firsts = deque(await _firsts(records, journal))
    async for stretch in journal.read(after, filter=Filter(classes=CLASSES)):
        for seq, fact in stretch.facts():
            while firsts and firsts[0][0] < seq:
                records.note(*firsts.popleft())
            if firsts and firsts[0][0] == seq:
                firsts.popleft()
            records.note(seq, fact)
        records.seq = stretch.last
    end = max(records.seq, start)
    for seq, fact in firsts:
        records.note(seq, fact)
    records.seq = max(end, records.seq)


async def _firsts(records: Records, journal: Journal) -> list[tuple[int, Fact]]:
    """The first fact of each thread that is not known yet, in order."""
    found = [
        each
        async for thread in every_thread(journal)
        if thread not in records.threads.rows and thread not in records.deleted
        for each in await _first(journal, thread)
    ]
    return sorted((each for each in found if each[0] > records.seq), key=lambda each: each[0])


async def _first(journal: Journal, thread_id: str) -> list[tuple[int, Fact]]:
    async for stretch in journal.read(filter=Filter(thread=thread_id), limit=1):
        return list(stretch.facts())
    return []


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    """Replace the file whole; half a file is never read."""
    fresh = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    file = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    with os.fdopen(file, "wb") as handle:
        handle.write(data)
    fresh.replace(path)
