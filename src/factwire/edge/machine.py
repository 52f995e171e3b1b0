"""`Machine`: what every part of an Edge works with, and how it writes facts of its own.

Facts about a thread go the way of that thread's other facts, so that they share its sequence; facts
about no thread go straight to the journal. Whoever changed something answers only when the lists
show it.
"""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from factwire.edge.exports import Exports
from factwire.edge.limits import SETTLE_SECONDS
from factwire.edge.previews import Previews
from factwire.edge.problems import Problem
from factwire.edge.records import KeptRecords, Records
from factwire.edge.records.rows import Run, Thread
from factwire.edge.streams import Feed, FeedStopped
from factwire.facts import Fact
from factwire.journal import Cursor, Journal
from factwire.journal.blobs import BlobStore
from factwire.runtime import Mint, Runtime, Scope
from factwire.runtime.agents import Registered


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One Edge at work; `worktrees` is where runs get theirs, `own_worktree` whether they do where
    they do not say.
    """

    edge_id: str
    journal: Journal
    blobs: BlobStore
    runtime: Runtime
    registered: Registered
    feed: Feed
    kept: KeptRecords
    data: Path
    previews: Previews
    worktrees: Path
    own_worktree: bool = False
    exports: Exports = msgspec.field(default_factory=Exports)

    @property
    def records(self) -> Records:
        return self.kept.records

    @property
    def mint(self) -> Mint:
        return self.runtime.mint

    @property
    def cursor(self) -> Cursor:
        """What the records are true as of."""
        return Cursor(self.feed.cursor.epoch, self.records.seq)

    def fact(self, event_class: str, payload: dict[str, Any], trace_id: str, **ids: Any) -> Fact:
        """A fact of the Edge's own about no thread."""
        scope = Scope(trace_id=trace_id)
        return self.mint.fact(scope, event_class, payload, edge_id=self.edge_id, **ids)

    async def append(self, *batch: Fact) -> Records:
        """Write facts that belong to no thread; the records that hold them."""
        appended = await self.journal.append(batch)
        return await self.reached(appended.cursor.seq)

    async def write(
        self, thread_id: str, *said: tuple[str, dict[str, Any]], trace_id: str, **ids: Any
    ) -> Records:
        """Write facts of the Edge's own about a thread, in the thread's sequence."""
        log = (await self.runtime.current(thread_id)).log
        session = log.projection.state.session_id or self.mint.ids("ses")
        scope = Scope(thread_id=thread_id, session_id=session, trace_id=trace_id)
        batch = [
            self.mint.fact(scope, event_class, payload, edge_id=self.edge_id, **ids)
            for event_class, payload in said
        ]
        await log.write(*batch)
        return await self.settled()

    async def settled(self) -> Records:
        """The records, once they hold all that is durable now."""
        return await self.reached((await self.journal.head()).seq)

    async def reached(self, seq: int) -> Records:
        """The records once they hold everything up to `seq`; raises `Problem` if that takes long,
        as while the journal cannot be followed. What was written stays written.
        """
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                return await self.kept.reached(seq)
        except (TimeoutError, FeedStopped) as error:
            raise Problem(
                503,
                "lists_behind",
                "it is written, but the lists cannot show it yet; ask again in a moment",
                headers={"retry-after": "1"},
            ) from error

    def thread(self, thread_id: str) -> Thread:
        """A thread that is known; raises `Problem`."""
        row = self.records.threads.get(thread_id)
        if row is None:
            raise Problem(404, "unknown_thread", "no thread has this id")
        return row

    def run(self, run_id: str) -> Run:
        """A run that is known; raises `Problem`."""
        row = self.records.runs.get(run_id)
        if row is None:
            raise Problem(404, "unknown_run", "no run has this id")
        return row

    def own_thread(self, thread_id: str) -> Thread:
        """A thread that this Edge writes itself; raises `Problem`."""
        row = self.thread(thread_id)
        if row.runtime_id != self.mint.runtime_id:
            raise Problem(
                409,
                "thread_owned_elsewhere",
                "another runtime writes this thread and sends its facts here; only it can change "
                "the thread",
            )
        return row
