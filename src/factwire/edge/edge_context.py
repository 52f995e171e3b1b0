"""`EdgeContext`: what every part of an Edge works with, and how it writes facts of its own.

Facts about a thread go the way of that thread's other facts, so that they share its sequence; facts
about no thread go straight to the journal. Whoever changed something answers only when the lists
show it. How far an evidence pack is while it is made is known here too, in memory only.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from factwire.edge.limits import EXPORTS_FOLLOWED, SETTLE_SECONDS
from factwire.edge.preview_server import PreviewRegistry
from factwire.edge.records import Records, RecordStore
from factwire.edge.records.thread_records import find_row
from factwire.facts import Fact, Person, redact_fact
from factwire.facts.resources import ExportProgress, RetentionRun, Run, Thread
from factwire.journal import (
    Cursor,
    Journal,
    JournalError,
    JournalUnavailable,
    JournalUnwritable,
)
from factwire.journal.blobs import BlobStore
from factwire.runtime import FactScope, Mint, Runtime
from factwire.runtime.agents import AgentRegistry
from factwire.serving.asgi import Problem
from factwire.serving.envelopes import ThreadPlace
from factwire.serving.streams import FeedStopped, JournalFeed

if TYPE_CHECKING:
    from factwire.edge.operations.outside_intakes import OutsideIntakes

SERVER_NAME: Final = "Edge"
"""What an Edge calls itself where it refuses somebody."""

ExportState = Literal["idle", "making", "unknown"]


class ExportInProgress:
    """One pack on its way."""

    def __init__(self, thread_id: str, total: int | None) -> None:
        self.thread_id = thread_id
        self._total = total
        self._facts = 0

    def advance(self, facts: int) -> None:
        """So many more facts are in it."""
        self._facts += facts

    def progress(self) -> ExportProgress:
        """A thread may have gone on after it was counted, so there are never fewer than are in."""
        total = None if self._total is None else max(self._total, self._facts)
        return ExportProgress(state="making", facts=self._facts, total=total)


class Exports:
    """The packs that are being made now, oldest first."""

    def __init__(self) -> None:
        self._followed: list[ExportInProgress] = []
        self._others = 0

    @contextmanager
    def track(self, thread_id: str, total: int | None) -> Generator[ExportInProgress]:
        """Follow a pack until it is made or refused, unless many are already."""
        export = ExportInProgress(thread_id, total)
        if len(self._followed) >= EXPORTS_FOLLOWED:
            self._others += 1
            try:
                yield export
            finally:
                self._others -= 1
            return
        self._followed.append(export)
        try:
            yield export
        finally:
            self._followed.remove(export)

    def progress_of(self, thread_id: str) -> ExportProgress:
        """How far the pack of a thread is; of several, the one that was begun last."""
        for export in reversed(self._followed):
            if export.thread_id == thread_id:
                return export.progress()
        return ExportProgress(state="unknown" if self._others else "idle")


class RetentionLog(msgspec.Struct, kw_only=True):
    """What retention has done since the start, and when it is due again."""

    runs: int = 0
    failures: int = 0
    removed_facts: int = 0
    freed_bytes: int = 0
    removed_blobs: int = 0
    is_running: bool = False
    last: RetentionRun | None = None
    next_at: str | None = None
    error: str | None = None

    def add(self, run: RetentionRun) -> None:
        """Take in a run that has ended."""
        self.last, self.error = run, None
        self.runs += 1
        self.removed_facts += run.facts + run.deltas
        self.freed_bytes += run.freed_bytes
        self.removed_blobs += run.blobs


class HubState(msgspec.Struct, kw_only=True):
    """What is wrong with the link to the Hub, if anything is."""

    trouble: str | None = None


class JournalWrites:
    """Whether the journal takes facts, by the last write that was tried."""

    def __init__(self) -> None:
        self.refusal: JournalError | None = None
        self.refused = asyncio.Event()

    def record_refusal(self, error: BaseException | None) -> None:
        """Take note of a write that failed; only what may go over by itself counts."""
        if isinstance(error, JournalUnwritable | JournalUnavailable):
            self.refusal = error
            self.refused.set()

    def record_success(self) -> None:
        """The journal takes facts again."""
        self.refusal = None
        self.refused.clear()


def _with_person(payload: dict[str, Any], by: Person | None) -> dict[str, Any]:
    return payload if by is None else {**payload, "by": msgspec.to_builtins(by)}


class EdgeContext(msgspec.Struct, frozen=True, kw_only=True):
    """One Edge at work; `worktrees` is where runs get theirs, `own_worktree` whether they do where
    they do not say. `user` is the name of the one person whose Edge this is. `merging` is held
    while a worktree is merged.
    """

    edge_id: str
    journal: Journal
    blobs: BlobStore
    runtime: Runtime
    registered: AgentRegistry
    feed: JournalFeed
    record_store: RecordStore
    data: Path
    previews: PreviewRegistry
    worktrees: Path
    intakes: "OutsideIntakes"
    own_worktree: bool = False
    user: str = "unknown"
    untrusted_project: str | None = None
    exports: Exports = msgspec.field(default_factory=Exports)
    writes: JournalWrites = msgspec.field(default_factory=JournalWrites)
    retention: RetentionLog = msgspec.field(default_factory=RetentionLog)
    hub: HubState = msgspec.field(default_factory=HubState)
    merging: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    @property
    def records(self) -> Records:
        return self.record_store.records

    @property
    def mint(self) -> Mint:
        return self.runtime.mint

    @property
    def cursor(self) -> Cursor:
        """What the records are true as of."""
        return Cursor(self.feed.cursor.epoch, self.records.seq)

    def place_of(self, thread_id: str) -> ThreadPlace | None:
        """The project and the conversation of a thread, also of one that was deleted."""
        return self.records.place_of(thread_id)

    def threads_of(self, project_id: str) -> list[str]:
        """The threads whose project this is, also those that were deleted."""
        found = self.records.places.newest_by_key(project_id=project_id)
        return [place.key for place, _ in found]

    def build_fact(
        self,
        event_class: str,
        payload: dict[str, Any],
        trace_id: str,
        *,
        by: Person | None = None,
        **ids: Any,
    ) -> Fact:
        """A fact of the Edge's own about no thread; `by` is whose request it records."""
        scope, fields = FactScope(trace_id=trace_id), _with_person(payload, by)
        return self.mint.fact(scope, event_class, fields, edge_id=self.edge_id, **ids)

    async def append(self, *batch: Fact) -> Records:
        """Write facts that belong to no thread, redacted; the records that hold them."""
        appended = await self.journal.append([redact_fact(fact).fact for fact in batch])
        return await self.wait_for_records(appended.cursor.seq)

    async def write(
        self,
        thread_id: str,
        *entries: tuple[str, dict[str, Any]],
        trace_id: str,
        by: Person | None = None,
        **ids: Any,
    ) -> Records:
        """Write facts of the Edge's own about a thread, in the thread's sequence; `by` is whose
        request the first of them records.
        """
        log = (await self.runtime.current(thread_id)).log
        session = log.projection.state.session_id or self.mint.ids("ses")
        scope = FactScope(thread_id=thread_id, session_id=session, trace_id=trace_id)
        batch = [
            self.mint.fact(
                scope,
                event_class,
                payload if index else _with_person(payload, by),
                edge_id=self.edge_id,
                **ids,
            )
            for index, (event_class, payload) in enumerate(entries)
        ]
        await log.write(*batch)
        return await self.wait_until_settled()

    async def wait_until_settled(self) -> Records:
        """The records, once they hold all that is durable now."""
        return await self.wait_for_records((await self.journal.head()).seq)

    async def wait_for_records(self, seq: int) -> Records:
        """The records once they hold everything up to `seq`; raises `Problem` if that takes long,
        as while the journal cannot be followed. What was written stays written.
        """
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                return await self.record_store.wait_for(seq)
        except (TimeoutError, FeedStopped) as error:
            raise Problem(
                503,
                "lists_behind",
                "the request was recorded, but the lists are not up to date yet; try again in "
                "a moment",
                headers={"retry-after": "1"},
            ) from error

    def find_thread(self, thread_id: str) -> Thread:
        """A thread that is known; raises `Problem`."""
        row = self.records.threads.get(thread_id)
        if row is None:
            raise Problem(404, "unknown_thread", "no thread has this id")
        return row

    def find_run(self, run_id: str) -> Run:
        """A run that is known; raises `Problem`."""
        row = find_row(self.records.runs, run_id)
        if row is None:
            raise Problem(404, "unknown_run", "no run has this id")
        return row

    def find_own_thread(self, thread_id: str) -> Thread:
        """A thread that this Edge writes itself; raises `Problem`."""
        row = self.find_thread(thread_id)
        if row.runtime_id != self.mint.runtime_id:
            raise Problem(
                409,
                "thread_owned_elsewhere",
                "this thread belongs to another runtime; only that runtime can change it",
            )
        return row
