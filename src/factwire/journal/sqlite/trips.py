"""The trips of a long read, of which several are under way at once.

Half of a trip is SQLite's, half is checking bytes, and neither holds the interpreter, so that two
trips on two threads take little longer than one. They come back in order. A trip that was begun
from a place where the one before it did not end, as after a merge, is dropped. All readers together
may only be so far ahead: a slow one must not fill the memory.
"""

import asyncio
from collections import deque
from functools import partial
from typing import Final

from factwire.journal.filter import Filter
from factwire.journal.sqlite.reader import Fetched, fetch
from factwire.journal.sqlite.store import Store

AHEAD: Final = 2
"""Trips of one read that may be under way while what came before them is handed out."""

_Trip = asyncio.Future[Fetched]


class Trips:
    """The trips of one read up to `upto`."""

    def __init__(self, store: Store, upto: int, wanted: Filter | None) -> None:
        self._store = store
        self._upto = upto
        self._wanted = wanted
        self._cuts: deque[int] = deque()
        self._begun: deque[tuple[int, _Trip]] = deque()

    async def next(self, after: int, limit: int | None) -> Fetched:
        """What lies past `after`, at most `limit` facts, as much as one trip brings."""
        if self._begun and self._begun[0][0] != after:
            self.abandon()
        if self._begun:
            fetched = await self._begun[0][1]
            self._leave()
        else:
            fetched = await begin(self._store, after, self._upto, self._wanted, limit)
            self._cuts = deque((fetched.reached, *fetched.cuts))
        if limit is None:
            self._look_ahead()
        return fetched

    def abandon(self) -> None:
        """Let go of what is under way; what becomes of it is of no interest."""
        self._cuts.clear()
        while self._begun:
            trip = self._begun[0][1]
            if not trip.cancel() and not trip.cancelled():
                trip.exception()
            self._leave()

    def _look_ahead(self) -> None:
        pool = self._store.pool
        while len(self._cuts) > 1 and len(self._begun) < AHEAD and pool.may_look_ahead():
            after = self._cuts.popleft()
            pool.ahead += 1
            self._begun.append((after, begin(self._store, after, self._cuts[0], self._wanted)))

    def _leave(self) -> None:
        self._begun.popleft()
        self._store.pool.ahead -= 1


def begin(
    store: Store, after: int, upto: int, wanted: Filter | None, limit: int | None = None
) -> _Trip:
    """Begin a trip."""
    return store.pool.run(
        partial(
            fetch,
            epoch=store.epoch,
            after=after,
            upto=upto,
            wanted=wanted,
            limit=limit,
            segments=store.segments,
        )
    )
