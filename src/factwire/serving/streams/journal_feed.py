"""`JournalFeed`: the one live follower of a journal in a process.

Whoever needs new facts subscribes here and gets each batch once, in order, as the same object as
everybody else. Lines, decoded facts and the places of each key are made when the first subscriber
asks, and shared by the rest. When the journal cannot be reached the feed says so and goes on
exactly where it was.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import cached_property
from typing import Literal, Self, cast

import msgspec

from factwire.facts import Fact
from factwire.journal import Cursor, FactBatch, Filter, Journal, JournalError, JournalUnavailable
from factwire.journal.chunks import decode_line, group_by_keys
from factwire.journal.filter import Groups, list_keys
from factwire.serving.envelopes import PlaceOf, ScopeIds, scope_ids_of
from factwire.serving.limits import PIECE_BYTES, PIECE_FACTS, RETRY_SECONDS


class DecodedBatch:
    """One batch of the journal, handed to every subscriber of a feed."""

    def __init__(self, raw: FactBatch) -> None:
        self.raw = raw
        self._scopes: list[ScopeIds] | None = None

    @property
    def cursor(self) -> Cursor:
        return self.raw.cursor

    @cached_property
    def lines(self) -> list[bytes]:
        """The stored bytes of each fact."""
        return self.raw.lines()

    @cached_property
    def facts(self) -> list[Fact]:
        """Each fact, in the order of `batch.seqs`."""
        return [decode_line(line) for line in self.lines]

    def list_scopes(self, place_of: PlaceOf) -> list[ScopeIds]:
        """What the envelope of each fact is about; made for the first who asks, like the facts."""
        if self._scopes is None:
            places = zip(self.raw.seqs, self.facts, strict=True)
            self._scopes = [scope_ids_of(seq, fact, place_of) for seq, fact in places]
        return self._scopes

    @cached_property
    def _groups(self) -> Groups:
        return group_by_keys(map(list_keys, self.facts))

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(key for keys in self._groups for key in keys)

    def select(self, wanted: Filter | None) -> "list[int] | range":
        """Positions of the facts that a filter lets through."""
        if wanted is None:
            return range(len(self.raw.seqs))
        # Most channels of a busy server watch threads that this batch says nothing of.
        if not self._keys.issuperset(wanted.keys()):
            return []
        return wanted.select(self._groups)


OnBatch = Callable[[DecodedBatch], None]
OnLost = Callable[[Exception], None]


class FeedStopped(Exception):
    """There will be no more facts from this feed; `__cause__` says why, if anything is wrong."""

    code = "feed_stopped"


class FeedHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the feed is; `lag` is None while the journal's end cannot be asked for. `code` is the
    stable one of what is wrong.
    """

    state: Literal["live", "degraded", "stopped"]
    cursor: Cursor
    lag: int | None
    reason: str | None = None
    code: str = JournalUnavailable.code


class _Subscriber(msgspec.Struct, eq=False):
    take: OnBatch
    lost: OnLost


class JournalFeed:
    """Follows a journal from `after` on, or from its end; an async context manager.

    A subscriber is called in the event loop and must not wait. One that raises is taken off the
    feed and told through its `lost`; so are all when the feed itself can go on no longer.
    """

    def __init__(self, journal: Journal, *, after: Cursor | None = None) -> None:
        self.journal = journal
        self._after = after
        self._cursor: Cursor | None = after
        self._subscribers: dict[_Subscriber, None] = {}
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._task: asyncio.Task[None] | None = None
        self._trouble: str | None = None
        self._pause = 0.0
        self._failure: FeedStopped | None = None

    async def __aenter__(self) -> Self:
        self._cursor = self._after or await self.journal.head()
        self._task = asyncio.create_task(self._follow(), name="factwire-feed")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def cursor(self) -> Cursor:
        """Everything up to here has been handed out."""
        if self._cursor is None:
            raise FeedStopped("the feed has not been started; use `async with`")
        return self._cursor

    @property
    def failure(self) -> FeedStopped | None:
        """Why there will be no more facts; None while there may be."""
        return self._failure

    @property
    def trouble(self) -> str | None:
        """What keeps the journal from answering; None while all is well."""
        return self._trouble or getattr(self.journal, "outage", None)

    def subscribe(self, take: OnBatch, lost: OnLost) -> Callable[[], None]:
        """Be handed everything after `cursor` as it is now; returns how to stop it."""
        if self._failure is not None:
            raise self._failure
        subscriber = _Subscriber(take, lost)
        self._subscribers[subscriber] = None
        return lambda: self._subscribers.pop(subscriber, None)

    async def wait_for(self, seq: int) -> None:
        """Return once everything up to `seq` has been handed out; raises `FeedStopped`."""
        if self.cursor.seq >= seq:
            return
        if self._failure is not None:
            raise self._failure
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = seq
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)

    async def health(self) -> FeedHealth:
        """How the feed is now, and how many facts it is behind the journal."""
        if self._failure is not None:
            return FeedHealth(
                state="stopped", cursor=self.cursor, lag=None, reason=str(self._failure)
            )
        trouble = self.trouble
        if trouble is not None:
            return FeedHealth(state="degraded", cursor=self.cursor, lag=None, reason=trouble)
        try:
            head = await self.journal.head()
        except JournalError as error:
            return FeedHealth(
                state="degraded",
                cursor=self.cursor,
                lag=None,
                reason=str(error),
                code=error.code,
            )
        return FeedHealth(state="live", cursor=self.cursor, lag=max(0, head.seq - self.cursor.seq))

    async def close(self) -> None:
        """Stop following; those who subscribed or wait are told."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait((task,))
        self._stop(FeedStopped("the feed was closed"))

    async def _follow(self) -> None:
        while True:
            try:
                await self._follow_once()
            except JournalUnavailable as error:
                self._trouble = str(error)
                self._pause = min(RETRY_SECONDS, 2 * self._pause or RETRY_SECONDS / 32)
                await asyncio.sleep(self._pause)
            except JournalError as error:
                failure = FeedStopped(f"can no longer follow the journal: {error}")
                failure.__cause__ = error
                self._stop(failure)
                return

    async def _follow_once(self) -> None:
        if self._trouble is not None:
            # An idle journal that is back must not look absent until somebody writes.
            await self.journal.head()
            self._trouble = None
        follower = cast("AsyncGenerator[FactBatch]", self.journal.follow(self.cursor))
        async with aclosing(follower) as batches:
            async for batch in batches:
                self._pause = 0.0
                for piece in split_batch(batch, PIECE_BYTES, PIECE_FACTS):
                    self._hand_out(piece)
                    # A journal that always has more would otherwise never let the loop turn.
                    await asyncio.sleep(0)

    def _hand_out(self, fact_batch: FactBatch) -> None:
        batch = DecodedBatch(fact_batch)
        self._cursor = fact_batch.cursor
        for subscriber in tuple(self._subscribers):
            try:
                subscriber.take(batch)
            except Exception as error:  # noqa: BLE001 - one subscriber's fault is not the others'
                self._subscribers.pop(subscriber, None)
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a subscriber of the feed failed", "exception": error}
                )
                subscriber.lost(error)
        if self._waiting:
            self._wake(fact_batch.last)

    def _wake(self, seq: int) -> None:
        for waiter, wanted in tuple(self._waiting.items()):
            if wanted <= seq and not waiter.done():
                waiter.set_result(None)

    def _stop(self, failure: FeedStopped) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        for waiter in tuple(self._waiting):
            if not waiter.done():
                waiter.set_exception(failure)
        subscribers, self._subscribers = self._subscribers, {}
        for subscriber in subscribers:
            subscriber.lost(failure)


def split_batch(batch: FactBatch, size: int, count: int = sys.maxsize) -> Iterator[FactBatch]:
    """A batch in parts of about `size` bytes and at most `count` facts; one that is small enough as
    it is.
    """
    if len(batch.data) <= size and len(batch.seqs) <= count:
        yield batch
        return
    lines, first, start = batch.lines(), batch.first, 0
    while start < len(lines):
        end, taken, most = start, 0, min(len(lines), start + count)
        while end < most and (end == start or taken + len(lines[end]) < size):
            taken += len(lines[end]) + 1
            end += 1
        last = batch.last if end == len(lines) else batch.seqs[end - 1]
        yield FactBatch(
            epoch=batch.epoch,
            first=first,
            last=last,
            seqs=batch.seqs[start:end],
            data=b"\n".join((*lines[start:end], b"")),
        )
        first, start = last + 1, end
