"""A journal in NATS JetStream, which several processes may append to.

Facts travel in chunks, one message each, in a stream of the journal's name. Every process derives
the same state from it and publishes on the condition that the stream ends where it believes, so
that seqs are gap-free whoever writes. A batch that needs several messages is one atomic batch of
the server.

What an ack means here: a majority of the stream's replicas have taken the facts in. They are
flushed to disk only where the server is set to `sync_interval: always`; its default is two minutes,
and a loss of power within them loses acknowledged facts. `NatsJournal.promise` says what holds, and
opening warns (`DurabilityWarning`) where that is not known to be enough.

When the server is gone, calls wait for the patience of the URL and then raise `JournalUnavailable`;
`degraded` says so meanwhile. Followers stay, and go on where they were once it is back.
"""

import asyncio
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from copy import deepcopy
from types import TracebackType
from typing import Self

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.admission import prepare
from factwire.journal.catalogue import Thread, ThreadPage, ThreadRecord, ThreadStatus, page_of
from factwire.journal.chain_point import ChainPoint
from factwire.journal.chunk import Stretch
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalClosed
from factwire.journal.filter import Filter
from factwire.journal.live import Bell, Readers
from factwire.journal.nats import restoring
from factwire.journal.nats.checkpoint import Checkpoint
from factwire.journal.nats.link import Link, log
from factwire.journal.nats.log import Log
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.neighbours import Neighbours
from factwire.journal.nats.reading import Reading
from factwire.journal.nats.removal import Facts, Remover
from factwire.journal.nats.setup import set_up
from factwire.journal.nats.snapshots import chain_point, find_snapshot, save_snapshot
from factwire.journal.nats.url import AckPromise, DurabilityWarning, parse_place, promise_of
from factwire.journal.nats.verify import verify
from factwire.journal.nats.writer import Writer
from factwire.journal.policy import Compaction, Removal, Retention
from factwire.journal.protocol import Appended, Snapshot, Stats, VerifyReport
from factwire.journal.removal import Holds, Plan, plan_compaction, plan_retention
from factwire.journal.removed import Removed
from factwire.journal.restore import Restoration
from factwire.journal.resume import fact_cursor, page_start


class _Open(msgspec.Struct):
    """What there is while a journal is open."""

    link: Link
    mirror: Mirror
    writer: Writer
    checkpoint: Checkpoint
    remover: Remover
    neighbours: Neighbours
    following: asyncio.Task[None]
    promise: AckPromise


class NatsJournal:
    """Implements `Journal`; see the module for what an acknowledgement means."""

    def __init__(self, url: str) -> None:
        self._place = parse_place(url)
        self._bell = Bell()
        self._readers = Readers()
        self._open: _Open | None = None

    async def __aenter__(self) -> Self:
        if self._open is not None:
            raise JournalClosed("the journal is open already; open another one with its URL")
        link = Link(self._place, self._on_up)
        await link.open()
        try:
            self._open = await self._start(link)
        except BaseException:
            await link.close()
            raise
        promise = self._open.promise
        log.info("%s: %s", self._place.shown, promise)
        if not promise.survives_power_loss:
            message = f"{self._place.shown}: {promise}"
            warnings.warn(message, DurabilityWarning, stacklevel=2)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        opened = self._now()
        try:
            await opened.writer.close()
            await opened.checkpoint.close()
        finally:
            self._open = None
            opened.following.cancel()
            await asyncio.wait((opened.following,))
            self._bell.ring()
            await opened.link.close()

    @property
    def promise(self) -> AckPromise:
        """What an acknowledgement means on this server."""
        return self._now().promise

    @property
    def degraded(self) -> str | None:
        """What is wrong with the connection; None while all is well."""
        return self._now().link.degraded

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> Appended:
        opened = self._now()
        return await opened.writer.append(prepare(batch), expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[Stretch]:
        reading = Reading(self._now().mirror, self._readers, filter)
        async with reading.start(after, follows=False) as reader:
            async for stretch in reading.replay(reader, limit):
                yield stretch
                self._now()

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[Stretch]:
        reading = Reading(self._now().mirror, self._readers, filter)
        async with reading.start(after, follows=True) as reader:
            async for stretch in reading.replay(reader, None):
                yield stretch
                self._now()
            covered = reader.position
            while True:
                seen = self._bell.count
                self._now()
                before = reader.position
                stretch = await reading.live(reader, covered)
                if stretch is not None:
                    yield stretch
                    covered = stretch.last
                elif reader.position == before:
                    await self._bell.wait(seen)

    async def head(self) -> Cursor:
        state = (await self._level()).mirror.state
        return Cursor(state.epoch, state.head)

    async def position(self, fact_id: str) -> Cursor:
        mirror = (await self._level()).mirror
        known = (await mirror.known([fact_id])).get(fact_id)
        return fact_cursor(fact_id, known and known.seq, mirror.state.bounds())

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        state = (await self._level()).mirror.state
        below = page_start(after, state.bounds())
        rows = [
            record.row()
            for record in state.threads.values()
            if record.last_seq < below
            and project in (None, record.project_id)
            and status in (None, record.status)
        ]
        rows.sort(key=lambda row: -row.last_seq)
        return page_of(rows, limit, state.epoch)

    async def thread(self, thread_id: str) -> Thread | None:
        state = (await self._level()).mirror.state
        record = state.threads.get(thread_id)
        return record and record.row()

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> Snapshot:
        mirror = (await self._level()).mirror
        return await save_snapshot(mirror, thread_id, cursor, data, kind)

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> Snapshot | None:
        mirror = (await self._level()).mirror
        return await find_snapshot(mirror, thread_id, kind, at)

    async def retain(self, policy: Retention) -> Removal:
        def plan(facts: Facts, holds: Holds, head: int, floor: int) -> Plan:
            return plan_retention(policy, facts, holds, head=head, floor=floor)

        return await self._now().remover.run(plan)

    async def compact(self, policy: Compaction | None = None) -> Removal:
        """Drop increments that their final fact made redundant, and merge small chunks."""

        def plan(facts: Facts, holds: Holds, head: int, floor: int) -> Plan:
            return plan_compaction(policy or Compaction(), facts, holds, head=head, floor=floor)

        remover = self._now().remover
        removal = await remover.run(plan)
        await remover.merge()
        return removal

    async def verify(self) -> VerifyReport:
        return await verify((await self._level()).mirror)

    async def chain_point(self, seq: int) -> ChainPoint:
        return await chain_point((await self._level()).mirror, seq)

    async def removed(self) -> AsyncIterator[Removed]:
        mirror = (await self._level()).mirror
        async for each in restoring.removed(mirror):
            yield each

    async def records(self) -> AsyncIterator[ThreadRecord]:
        state = (await self._level()).mirror.state
        for record in tuple(state.threads.values()):
            yield deepcopy(record)

    async def restore(self, given: Restoration) -> Cursor:
        mirror = (await self._level()).mirror
        return await restoring.restore(mirror, given)

    async def stats(self) -> Stats:
        state = (await self._level()).mirror.state
        return Stats(
            bytes=state.directory.size,
            facts=state.directory.facts,
            threads=len(state.threads),
            head=Cursor(state.epoch, state.head),
            floor=Cursor(state.epoch, state.floor),
            followers=self._readers.stats(state.head),
        )

    def _now(self) -> _Open:
        if self._open is None:
            raise JournalClosed("the journal is not open; use `async with`")
        return self._open

    async def _level(self) -> _Open:
        """The open journal, no older than this call."""
        opened = self._now()
        await opened.mirror.refresh()
        return opened

    async def _start(self, link: Link) -> _Open:
        name, replicas = self._place.name, self._place.replicas
        stream = Log(link, name, f"factwire.log.{name}")
        hints = f"factwire.live.{name}"
        config = await set_up(link, stream, replicas, hints)
        promise = await promise_of(self._place, link.server, int(config["num_replicas"]))
        store = Log(link, f"{name}~checkpoint", f"factwire.checkpoint.{name}")
        await set_up(link, store, replicas)
        mirror = Mirror(link, stream, self._bell)
        neighbours = Neighbours(link, mirror, self._readers)
        await neighbours.listen(hints)
        checkpoint = Checkpoint(mirror, store)
        went_back = await checkpoint.restore()
        await mirror.begin()
        if went_back:
            async with mirror.lock:
                await mirror.renew_epoch(mirror.state.epoch)
            await checkpoint.save()
        return _Open(
            link=link,
            mirror=mirror,
            writer=Writer(mirror, checkpoint.maybe),
            checkpoint=checkpoint,
            remover=Remover(mirror, self._readers.positions, neighbours.positions),
            neighbours=neighbours,
            following=asyncio.create_task(neighbours.follow(), name="factwire-nats-neighbours"),
            promise=promise,
        )

    def _on_up(self) -> None:
        if self._open is not None:
            self._open.neighbours.reconnected()
