"""Replay, then live: from the server page by page, then from the tail in memory.

A reader is a position. Wherever its next facts come from, they are those right after it, so neither
a lost connection nor a lost notification can make a hole or a repeat. Each page says whether the
journal is still the same one and still has what lies after the position; if not, reading ends.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from factwire.journal.chunk import Chunk, Stretch, joined, nothing, spanning, stretch_of
from factwire.journal.cursor import MARK, Cursor
from factwire.journal.filter import Filter
from factwire.journal.live import Bell, Reader, Readers
from factwire.journal.postgres.driver import Connection
from factwire.journal.postgres.ledger import Ledger
from factwire.journal.postgres.pages import Page, Pages
from factwire.journal.postgres.presence import Presence
from factwire.journal.postgres.rows import Place
from factwire.journal.postgres.session import Session, Sessions
from factwire.journal.postgres.tail import Tail
from factwire.journal.resume import Bounds, check_cursor, resume_after


class Reading:
    """Every read and follow of one open journal."""

    def __init__(
        self, sessions: Sessions, pages: Pages, ledger: Ledger, place: Place, readers: Readers
    ) -> None:
        self.bell = Bell()
        self.readers = readers
        self.gate = asyncio.Lock()
        """Held while a reader finds its place, and while a removal of this process ends."""
        self.epoch = place.epoch
        self.tail = Tail(place.head)
        self._trouble: Exception | None = None
        self._sessions = sessions
        self._pages = pages
        self._ledger = ledger

    def heard_from(self) -> int:
        return self.tail.head

    def hear(self, page: Page) -> None:
        """Take in what another process committed."""
        place, before = page.place, self.tail.head
        self._trouble = None
        if place.epoch != self.epoch:
            self.epoch = place.epoch
            self.tail.restart(place.head)
            self.bell.ring()
            return
        for chunk in page.chunks:
            self.tail.add(chunk)
        # More than a page behind: followers read it from the server themselves.
        if self.tail.head < place.head:
            self.tail.restart(place.head)
        if self.tail.head != before:
            self.bell.ring()

    def hear_of_trouble(self, error: Exception) -> None:
        """Let followers raise what keeps this process from hearing of new facts."""
        self._trouble = error
        self.bell.ring()

    def committed(self, place: Place, chunk: Chunk) -> None:
        """Take in what this process committed."""
        if place.epoch != self.epoch:
            self.epoch = place.epoch
            self.tail.restart(place.head)
        self.tail.add(chunk)
        self.bell.ring()

    async def bounds(self, thread: str | None = None) -> Bounds:
        return await self._sessions.run(lambda link: self._pages.bounds(link, thread))

    async def open(
        self, reader: "Opening", presence: Presence, watching: Session
    ) -> tuple[Bounds, Reader]:
        """The place of a new reader, held against removals from here on."""
        async with self.gate:
            bounds, start = await self._resume(reader)
            place = reader.stack(self.readers, start)
        if not presence.covers(start):
            await watching.run(lambda link: presence.publish(link, start))
            # A removal may have ended before the position was published.
            bounds, place.position = await self._resume(reader)
        return bounds, place

    async def replay(
        self, bounds: Bounds, reader: Reader, wanted: Filter | None, limit: int | None
    ) -> AsyncIterator[Stretch]:
        """Everything up to the head that the bounds name."""
        covered, left = reader.position, limit
        while reader.position < bounds.head and left != 0:
            page = await self._page(bounds, reader.position, wanted)
            for chunk in page.chunks:
                if chunk.first > bounds.head or left == 0:
                    break
                after = reader.position
                stretch = stretch_of(chunk, bounds.epoch, after=after, wanted=wanted, limit=left)
                reader.position = stretch.last
                left = left and left - len(stretch.seqs)
                if stretch.seqs:
                    yield spanning(stretch, covered + 1)
                    covered = stretch.last
            if left != 0 and (not page.chunks or page.chunks[-1].last >= bounds.head):
                reader.position = max(reader.position, bounds.head)
        if covered < reader.position:
            yield nothing(bounds.epoch, covered + 1, reader.position)

    async def live(
        self, bounds: Bounds, reader: Reader, wanted: Filter | None, ensure_open: Callable[[], None]
    ) -> AsyncIterator[Stretch]:
        """Everything after the reader's position, as it comes."""
        covered = reader.position
        while True:
            seen = self.bell.count
            ensure_open()
            if self._trouble is not None:
                raise self._trouble
            chunks, top = await self._newer(bounds, reader.position, wanted)
            stretches = [
                stretch_of(chunk, bounds.epoch, after=reader.position, wanted=wanted)
                for chunk in chunks
            ]
            idle = top <= reader.position
            reader.position = max(reader.position, top)
            if any(stretch.seqs for stretch in stretches):
                yield spanning(joined(stretches), covered + 1)
                covered = stretches[-1].last
            elif idle:
                await self.bell.wait(seen)

    async def _newer(
        self, bounds: Bounds, position: int, wanted: Filter | None
    ) -> tuple[list[Chunk], int]:
        if self.epoch != bounds.epoch:
            _ensure_same(msgspec.structs.replace(bounds, epoch=self.epoch), bounds, position)
        chunks = self.tail.since(position)
        if chunks is not None:
            return chunks, self.tail.head
        page = await self._page(bounds, position, wanted)
        if page.chunks:
            return list(page.chunks), page.chunks[-1].last
        return [], page.place.head

    async def _page(self, bounds: Bounds, position: int, wanted: Filter | None) -> Page:
        page = await self._sessions.run(lambda link: self._pages.after(link, position, wanted))
        place = page.place
        now = msgspec.structs.replace(
            bounds, epoch=place.epoch, head=max(place.head, position), floor=place.floor
        )
        _ensure_same(now, bounds, position)
        return page

    async def _resume(self, opening: "Opening") -> tuple[Bounds, int]:
        async def work(link: Connection) -> tuple[Bounds, int | None]:
            thread = opening.wanted.thread if opening.wanted else None
            bounds = await self._pages.bounds(link, thread)
            after = opening.after
            if isinstance(after, str) and not after.startswith(MARK):
                seqs = await self._ledger.seqs(link, [after])
                return bounds, seqs.get(after)
            return bounds, None

        bounds, seq = await self._sessions.run(work)
        return bounds, resume_after(opening.after, bounds, lambda _: seq)


class Opening(msgspec.Struct):
    """A reader that is about to be opened; `stack` registers it."""

    after: Cursor | str | None
    wanted: Filter | None
    stack: Callable[[Readers, int], Reader]


def _ensure_same(now: Bounds, then: Bounds, position: int) -> None:
    check_cursor(Cursor(then.epoch, position), now)
