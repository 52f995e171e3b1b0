"""Carrying out what retention and compaction decided, in one transaction.

Everything slow comes first and holds up nobody: reading, deciding, rewriting chunks that others do
not see yet. Only then is the end of the journal locked, for as long as it takes to append the
records of what was removed. A reader that turned up meanwhile and needs what was removed makes the
removal start again.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chain import Record, RecordBody, Truncated, record_of
from factwire.journal.chunk import Chunk, decode_line, thinned
from factwire.journal.cursor import Cursor
from factwire.journal.live import Readers
from factwire.journal.policy import Removal
from factwire.journal.postgres.driver import Connection, Row
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.pages import Pages, found
from factwire.journal.postgres.presence import Presence, close_gate, remove_alone
from factwire.journal.postgres.rows import chunk_size, chunk_values, thread_of_row
from factwire.journal.removal import Holds, Plan
from factwire.journal.removed import Removed, removed_of

Facts = Iterable[tuple[int, Fact]]
Planner = Callable[[Facts, Holds, int, int], Plan]
"""Facts, holds, head and floor → what to remove."""

_PLACE: Final = "SELECT epoch, head, hash, floor, base FROM factwire.journal WHERE id = $1"
_ACTIONS: Final = """
SELECT opened, floor, record FROM factwire.thread WHERE journal = $1 AND opened IS NOT NULL
"""
NOTE: Final = """
INSERT INTO factwire.removed (journal, seq, id, sequence, digest)
SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bytea[])
"""
_REWRITE: Final = """
UPDATE factwire.chunk SET first = $2, data = $4, index = $5, prev = $6, hash = $7, proof = $8,
    seqs = $9, links = $10, body = $11, facts = $12, size = $13
WHERE journal = $1 AND last = $3
"""
_UNLIST: Final = "DELETE FROM factwire.posting WHERE last = $1 AND key = ANY($2::bigint[])"
_RECORD: Final = (
    "INSERT INTO factwire.record (journal, after, prev, hash, body) VALUES ($1, $2, $3, $4, $5)"
)
_END: Final = """
UPDATE factwire.journal SET hash = $2, floor = $3, base = $4, base_hash = $5,
    gap = greatest(gap, $6), facts = facts - $7, bytes = bytes - $8
WHERE id = $1
"""


class Overtaken(Exception):
    """A reader turned up that needs what this removal was about to take."""


class Outcome(msgspec.Struct, kw_only=True):
    """What becomes of one chunk."""

    old: Chunk
    new: Chunk | None
    content: RecordBody | None
    removed: list[Removed]


class Tally(msgspec.Struct):
    """What a removal adds up to."""

    base: int
    removed: int = 0
    freed: int = 0
    shrunk: int = 0
    truncated: int = 0
    highest: int = 0
    base_hash: bytes | None = None
    contents: list[RecordBody] = msgspec.field(default_factory=list[RecordBody])


class Remover:
    """Removals from one journal."""

    def __init__(
        self,
        journal: int,
        *,
        pages: Pages,
        keys: Keys,
        presence: Presence,
        readers: Readers,
        gate: AbstractAsyncContextManager[object],
    ) -> None:
        self._journal = journal
        self._pages = pages
        self._keys = keys
        self._presence = presence
        self._readers = readers
        self._gate = gate

    async def run(self, connection: Connection, planner: Planner) -> Removal:
        """Plan and carry out; safe to repeat, because all of it is one transaction."""
        while True:
            transaction = connection.transaction()
            await transaction.start()
            try:
                await remove_alone(connection, self._journal)
                plan, row = await self._plan(connection, planner)
                tally = await self._carry_out(connection, plan, row["base"])
                async with self._gate:
                    removal = await self._finish(connection, plan, tally)
                    await transaction.commit()
                    return removal
            except BaseException as error:
                if not connection.is_closed():
                    await transaction.rollback()
                if not isinstance(error, Overtaken):
                    raise

    async def _plan(self, connection: Connection, planner: Planner) -> tuple[Plan, Row]:
        row = found(await connection.fetchrow(_PLACE, self._journal))
        actions = {
            thread_of_row(action).thread_id: int(action["opened"])
            for action in await connection.fetch(_ACTIONS, self._journal)
        }
        holds = Holds(readers=await self._positions(connection), actions=actions)
        head, floor = int(row["head"]), int(row["floor"])
        stream = _Facts(self._pages, connection, int(row["base"]), head)
        return await stream.through(lambda facts: planner(facts, holds, head, floor)), row

    async def _positions(self, connection: Connection) -> dict[str, int]:
        return {**await self._presence.others(connection), **self._readers.positions()}

    async def _carry_out(self, connection: Connection, plan: Plan, base: int) -> Tally:
        tally = Tally(base)
        top = max(plan.floor, max(plan.drop, default=0))
        position = base
        while position < top:
            page = await self._pages.after(connection, position, None)
            if not page.chunks:
                break
            outcomes = await asyncio.to_thread(_outcomes, page.chunks, plan)
            for outcome in outcomes:
                await self._write(connection, outcome, tally)
            position = page.chunks[-1].last
        for thread, floor in plan.thread_floors.items():
            await connection.execute(
                "UPDATE factwire.thread SET floor = $2 WHERE key = $1",
                self._keys.name(thread),
                floor,
            )
        return tally

    async def _write(self, connection: Connection, outcome: Outcome, tally: Tally) -> None:
        old, new = outcome.old, outcome.new
        if new is None:
            await connection.execute(
                "DELETE FROM factwire.chunk WHERE journal = $1 AND last = $2",
                self._journal,
                old.last,
            )
            tally.base, tally.base_hash = old.last, old.hash
            tally.truncated += old.facts
        else:
            values = (*chunk_values(new), new.facts, chunk_size(new))
            await connection.execute(_REWRITE, self._journal, *values)
        stale = set(old.positions()).difference(new.positions() if new else ())
        await connection.execute(_UNLIST, old.last, [self._keys.posting(name) for name in stale])
        await connection.execute(NOTE, self._journal, *removed_columns(outcome.removed))
        tally.removed += len(outcome.removed)
        tally.highest = old.last if new is None else outcome.removed[-1].seq
        tally.freed += len(old.data) - (len(new.data) if new else 0)
        tally.shrunk += chunk_size(old) - (chunk_size(new) if new else 0)
        if outcome.content is not None:
            tally.contents.append(outcome.content)

    async def _finish(self, connection: Connection, plan: Plan, tally: Tally) -> Removal:
        await close_gate(connection, self._journal)
        positions = (await self._positions(connection)).values()
        if any(position < tally.highest for position in positions):
            raise Overtaken
        row = found(await connection.fetchrow(f"{_PLACE} FOR NO KEY UPDATE", self._journal))
        base_hash = await self._base_hash(connection, tally)
        if tally.base_hash is not None:
            content = Truncated(floor=tally.base, hash=base_hash, dropped=tally.truncated)
            tally.contents.append(content)
            await connection.execute(
                "DELETE FROM factwire.record WHERE journal = $1 AND after <= $2",
                self._journal,
                tally.base,
            )
        chain = _records(tally.contents, row["head"], row["hash"])
        for record in chain:
            values = (record.after, record.prev, record.hash, record.body)
            await connection.execute(_RECORD, self._journal, *values)
        end = chain[-1].hash if chain else row["hash"]
        gap = max(plan.thread_floors.values(), default=0)
        figures = (gap, tally.removed, tally.shrunk)
        places = (end, plan.floor, tally.base, base_hash)
        await connection.execute(_END, self._journal, *places, *figures)
        return Removal(
            removed=tally.removed,
            freed=tally.freed,
            floor=Cursor(row["epoch"], plan.floor),
            held_by=plan.held_by,
        )

    async def _base_hash(self, connection: Connection, tally: Tally) -> bytes:
        """Where the chain begins to be there: past the records that stood after the last removed.

        The newest fact is never removed, so there always is a chunk to begin with.
        """
        stored = "SELECT base_hash FROM factwire.journal WHERE id = $1"
        if tally.base_hash is None:
            return bytes(await connection.fetchval(stored, self._journal))
        following = await connection.fetchval(
            "SELECT prev FROM factwire.chunk WHERE journal = $1 AND last > $2"
            " ORDER BY last LIMIT 1",
            self._journal,
            tally.base,
        )
        return tally.base_hash if following is None else bytes(following)


class _Facts:
    """Facts for a planner that runs in a thread, while the event loop fetches them."""

    def __init__(self, pages: Pages, connection: Connection, after: int, head: int) -> None:
        self._pages = pages
        self._connection = connection
        self._position = after
        self._head = head
        self._loop = asyncio.get_running_loop()
        self._stopped = False

    async def through(self, plan: Callable[[Facts], Plan]) -> Plan:
        work = asyncio.create_task(asyncio.to_thread(lambda: plan(self._each())))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # The connection is in use until the thread has noticed.
            self._stopped = True
            await asyncio.wait([work])
            raise

    def _each(self) -> Iterator[tuple[int, Fact]]:
        while self._position < self._head and not self._stopped:
            fetch = self._pages.after(self._connection, self._position, None)
            chunks = asyncio.run_coroutine_threadsafe(fetch, self._loop).result().chunks
            for chunk in chunks:
                if chunk.first <= self._head:
                    yield from zip(chunk.places(), map(decode_line, chunk.lines()), strict=True)
            self._position = chunks[-1].last if chunks else self._head


def _outcomes(chunks: Sequence[Chunk], plan: Plan) -> list[Outcome]:
    return [outcome for chunk in chunks if (outcome := _outcome(chunk, plan)) is not None]


def _outcome(chunk: Chunk, plan: Plan) -> Outcome | None:
    """What a plan makes of a chunk; None where it leaves it alone."""
    gone = removed_of(chunk, plan.keeps)
    whole = chunk.last <= plan.floor
    if not gone and not whole:
        return None
    new, content = (None, None) if whole else thinned(chunk, plan.keeps)
    return Outcome(old=chunk, new=new, content=content, removed=gone)


def removed_columns(removed: Iterable[Removed]) -> tuple[list[Any], ...]:
    """What stays of removed facts, as the columns that `NOTE` takes."""
    given = list(removed)
    return (
        [each.seq for each in given],
        [each.id.encode("utf-8", "surrogatepass") for each in given],
        [each.sequence for each in given],
        [each.digest for each in given],
    )


def _records(contents: Sequence[RecordBody], after: int, prev: bytes) -> list[Record]:
    records: list[Record] = []
    for content in contents:
        record = record_of(after, prev, content)
        records.append(record)
        prev = record.hash
    return records
