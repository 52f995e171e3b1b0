"""A journal in NATS JetStream, which several processes may append to.

Facts travel in chunks, one message each, in a stream of the journal's name. Every process derives
the same state from it and publishes on the condition that the stream ends where it believes, so
that seqs are gap-free whoever writes. A batch that needs several messages is one atomic batch of
the server. Processes hint at what they write and say where their readers stand.

What an ack means here: a majority of the stream's replicas have taken the facts in. They are
flushed to disk only where the server is set to `sync_interval: always`; its default is two minutes,
and a loss of power within them loses acknowledged facts. `NatsJournal.promise` says what holds, and
opening warns (`DurabilityWarning`) where that is not known to be enough.

When the server is gone, calls wait for the patience of the URL and then raise `JournalUnavailable`;
`outage` gives the reason meanwhile. Followers stay, and go on where they were once it is back.
"""

import asyncio
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from copy import deepcopy
from itertools import count
from types import TracebackType
from typing import Final, Self

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.admission import prepare_facts
from factwire.journal.chunks import ChainPoint, FactBatch
from factwire.journal.cursor import Cursor, require_fact_cursor, resolve_page_start
from factwire.journal.errors import JournalClosed, JournalError
from factwire.journal.filter import Filter
from factwire.journal.followers import CommitSignal, ReaderRegistry
from factwire.journal.nats import retention
from factwire.journal.nats.reader import NatsReader
from factwire.journal.nats.retention import Facts, NatsRemover
from factwire.journal.nats.server_connection import (
    AckPromise,
    DurabilityWarning,
    Lost,
    NatsConnection,
    NatsMessage,
    find_promise,
    log,
    parse_address,
)
from factwire.journal.nats.snapshots import find_snapshot, load_chain_point, save_snapshot, verify
from factwire.journal.nats.stream_log import StreamLog, set_up
from factwire.journal.nats.stream_view import StateCheckpoint, StreamView
from factwire.journal.nats.writer import NatsWriter
from factwire.journal.protocol import AppendResult, JournalStats, StoredSnapshot, VerifyReport
from factwire.journal.retention import (
    CompactionPolicy,
    Holds,
    RemovalPlan,
    RemovalResult,
    RemovedFact,
    Restoration,
    RetentionPolicy,
    plan_compaction,
    plan_retention,
)
from factwire.journal.thread_catalogue import (
    CatalogueRecord,
    CatalogueThread,
    ThreadPage,
    ThreadStatus,
    build_page,
)

POLL: Final = 5.0
"""Seconds after which a process looks for itself."""

ASK_OTHERS: Final = 0.25
"""Seconds that other processes have to say where their readers stand, before facts are removed."""


class OtherProcesses:
    """Keeps the state of one process level with what the others do."""

    def __init__(self, link: NatsConnection, mirror: StreamView, readers: ReaderRegistry) -> None:
        self._link = link
        self._mirror = mirror
        self._readers = readers
        self._look = asyncio.Event()
        self._holds = f"factwire.holds.{link.place.name}"

    async def listen(self, hints: str) -> None:
        await self._link.listen(hints, self._on_hint)
        await self._link.listen(self._holds, self._answer_positions)
        await self._mirror.turns.listen()

    def note_reconnect(self) -> None:
        """Hints may have been lost, and more than hints."""
        self._mirror.check_end = True
        self._look.set()

    async def follow(self) -> None:
        """Take in what others write, without end."""
        while True:
            overdue = await self._wait()
            try:
                async with self._mirror.lock:
                    # A hint of what this process wrote itself is old news by now.
                    behind = self._mirror.tip > self._mirror.state.at
                    if overdue or behind or self._mirror.check_end:
                        await self._mirror.catch_up()
            except JournalError as error:
                log.warning("%s: %s", self._link.place.shown, error)

    async def positions(self) -> dict[str, int]:
        """Where the readers of the others stand; one that stays silent is not waited for."""
        found: dict[str, int] = {}
        processes = count(1)

        def take(msg: NatsMessage) -> bool:
            if not msg.data:
                return False
            process = next(processes)
            positions = msgspec.json.decode(msg.data, type=dict[str, int])
            found.update((f"{name} of process {process}", at) for name, at in positions.items())
            return True

        try:
            await self._link.collect(self._holds, {}, take, ASK_OTHERS)
        except Lost:
            return found
        return found

    async def _wait(self) -> bool:
        """Wait for a hint; True where none came for a while."""
        try:
            async with asyncio.timeout(POLL):
                await self._look.wait()
        except TimeoutError:
            return True
        self._look.clear()
        return False

    async def _on_hint(self, msg: NatsMessage) -> None:
        at = int((msg.headers or {}).get("Nats-Sequence", "0"))
        if at > self._mirror.state.at:
            self._mirror.tip = max(self._mirror.tip, at)
            self._look.set()

    async def _answer_positions(self, msg: NatsMessage) -> None:
        await self._link.answer(msg, msgspec.json.encode(self._readers.positions()))


class _Open(msgspec.Struct):
    """What there is while a journal is open."""

    link: NatsConnection
    mirror: StreamView
    writer: NatsWriter
    checkpoint: StateCheckpoint
    remover: NatsRemover
    neighbours: OtherProcesses
    following: asyncio.Task[None]
    promise: AckPromise


class NatsJournal:
    """Implements `Journal`; see the module for what an acknowledgement means."""

    def __init__(self, url: str) -> None:
        self._place = parse_address(url)
        self._bell = CommitSignal()
        self._readers = ReaderRegistry()
        self._open: _Open | None = None

    async def __aenter__(self) -> Self:
        if self._open is not None:
            raise JournalClosed("the journal is already open; open a second one with its URL")
        link = NatsConnection(self._place, self._on_up)
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
        opened = self._require_open()
        try:
            await opened.writer.close()
            await opened.checkpoint.close()
        finally:
            self._open = None
            opened.following.cancel()
            await asyncio.wait((opened.following,))
            self._bell.notify()
            await opened.link.close()

    @property
    def promise(self) -> AckPromise:
        """What an acknowledgement means on this server."""
        return self._require_open().promise

    @property
    def outage(self) -> str | None:
        """What is wrong with the connection; None while all is well."""
        return self._require_open().link.outage

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> AppendResult:
        opened = self._require_open()
        return await opened.writer.append(prepare_facts(batch), expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        reading = NatsReader(self._require_open().mirror, self._readers, filter)
        async with reading.start(after, follows=False) as reader:
            async for batch in reading.replay(reader, limit):
                yield batch
                self._require_open()

    async def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[FactBatch]:
        reading = NatsReader(self._require_open().mirror, self._readers, filter)
        async with reading.start(after, follows=True) as reader:
            async for batch in reading.replay(reader, None):
                yield batch
                self._require_open()
            covered = reader.position
            while True:
                seen = self._bell.count
                self._require_open()
                before = reader.position
                batch = await reading.next_live(reader, covered)
                if batch is not None:
                    yield batch
                    covered = batch.last
                elif reader.position == before:
                    await self._bell.wait(seen)

    async def head(self) -> Cursor:
        state = (await self._refresh()).mirror.state
        return Cursor(state.epoch, state.head)

    async def position(self, fact_id: str) -> Cursor:
        mirror = (await self._refresh()).mirror
        known = (await mirror.find_existing([fact_id])).get(fact_id)
        return require_fact_cursor(fact_id, known and known.seq, mirror.state.bounds())

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage:
        state = (await self._refresh()).mirror.state
        below = resolve_page_start(after, state.bounds())
        rows = [
            record.to_thread()
            for record in state.threads.values()
            if record.last_seq < below
            and project in (None, record.project_id)
            and status in (None, record.status)
        ]
        rows.sort(key=lambda row: -row.last_seq)
        return build_page(rows, limit, state.epoch)

    async def thread(self, thread_id: str) -> CatalogueThread | None:
        state = (await self._refresh()).mirror.state
        record = state.threads.get(thread_id)
        return record and record.to_thread()

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> StoredSnapshot:
        mirror = (await self._refresh()).mirror
        return await save_snapshot(mirror, thread_id, cursor, data, kind)

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> StoredSnapshot | None:
        mirror = (await self._refresh()).mirror
        return await find_snapshot(mirror, thread_id, kind, at)

    async def retain(self, policy: RetentionPolicy) -> RemovalResult:
        def plan(facts: Facts, holds: Holds, head: int, floor: int) -> RemovalPlan:
            return plan_retention(policy, facts, holds, head=head, floor=floor)

        return await self._require_open().remover.run(plan)

    async def compact(self, policy: CompactionPolicy | None = None) -> RemovalResult:
        """Drop increments that their final fact made redundant, and merge small chunks."""

        def plan(facts: Facts, holds: Holds, head: int, floor: int) -> RemovalPlan:
            return plan_compaction(
                policy or CompactionPolicy(), facts, holds, head=head, floor=floor
            )

        remover = self._require_open().remover
        removal = await remover.run(plan)
        await remover.merge()
        return removal

    async def verify(self) -> VerifyReport:
        return await verify((await self._refresh()).mirror)

    async def chain_point(self, seq: int) -> ChainPoint:
        return await load_chain_point((await self._refresh()).mirror, seq)

    async def read_removed(self) -> AsyncIterator[RemovedFact]:
        mirror = (await self._refresh()).mirror
        async for each in retention.stream_removed(mirror):
            yield each

    async def records(self) -> AsyncIterator[CatalogueRecord]:
        state = (await self._refresh()).mirror.state
        for record in tuple(state.threads.values()):
            yield deepcopy(record)

    async def restore(self, restoration: Restoration) -> Cursor:
        mirror = (await self._refresh()).mirror
        return await retention.restore(mirror, restoration)

    async def stats(self) -> JournalStats:
        state = (await self._refresh()).mirror.state
        return JournalStats(
            bytes=state.directory.size,
            facts=state.directory.facts,
            threads=len(state.threads),
            head=Cursor(state.epoch, state.head),
            floor=Cursor(state.epoch, state.floor),
            followers=self._readers.stats(state.head),
        )

    def _require_open(self) -> _Open:
        if self._open is None:
            raise JournalClosed("the journal is not open; use `async with`")
        return self._open

    async def _refresh(self) -> _Open:
        """The open journal, no older than this call."""
        opened = self._require_open()
        await opened.mirror.refresh()
        return opened

    async def _start(self, link: NatsConnection) -> _Open:
        name, replicas = self._place.name, self._place.replicas
        stream = StreamLog(link, name, f"factwire.log.{name}")
        hints = f"factwire.live.{name}"
        config = await set_up(link, stream, replicas, hints)
        promise = await find_promise(self._place, link.server, int(config["num_replicas"]))
        store = StreamLog(link, f"{name}~checkpoint", f"factwire.checkpoint.{name}")
        await set_up(link, store, replicas)
        mirror = StreamView(link, stream, self._bell)
        neighbours = OtherProcesses(link, mirror, self._readers)
        await neighbours.listen(hints)
        checkpoint = StateCheckpoint(mirror, store)
        went_back = await checkpoint.restore()
        await mirror.begin()
        if went_back:
            async with mirror.lock:
                await mirror.renew_epoch(mirror.state.epoch)
            await checkpoint.save()
        return _Open(
            link=link,
            mirror=mirror,
            writer=NatsWriter(mirror, checkpoint.save_when_due),
            checkpoint=checkpoint,
            remover=NatsRemover(mirror, self._readers.positions, neighbours.positions),
            neighbours=neighbours,
            following=asyncio.create_task(neighbours.follow(), name="factwire-nats-neighbours"),
            promise=promise,
        )

    def _on_up(self) -> None:
        if self._open is not None:
            self._open.neighbours.note_reconnect()
