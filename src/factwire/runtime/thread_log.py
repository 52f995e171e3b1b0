"""`ThreadLog`: the one way by which a runtime writes facts of a thread.

Every fact passes the gates and the intake, gets the next sequence, is appended in order, and only
then reaches the live state and those who watch it. Facts that come while an append is under way
make up the next one, so that a fast agent is not slowed to one commit a fact. When an append
fails, nothing more is written: what was accepted but is not durable is refused to its writer.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from factwire.facts import Blob, Fact, Intake, InvalidFacts
from factwire.journal import Cursor, Journal
from factwire.journal.blobs import BlobStore
from factwire.projection import Changes, Projection
from factwire.runtime.errors import GateRefused
from factwire.runtime.gates import Gates
from factwire.runtime.limits import CHECKPOINT_FACTS, UNWRITTEN_FACTS

Watcher = Callable[[Fact, Changes], None]
"""Called for every fact once it is durable, with what it changed."""


class ThreadLog:
    """Writes one thread's facts; there is one for each thread that is live."""

    def __init__(
        self, journal: Journal, blobs: BlobStore, projection: Projection, thread_id: str
    ) -> None:
        self.thread_id = thread_id
        self.projection = projection
        self.gates = Gates.of(projection.state)
        self._sequence = (projection.state.hydration.cursor or 0) + 1
        self._journal = journal
        self._blobs = blobs
        self._intake = Intake("collect", "facts")
        self._waiting: list[Fact] = []
        self._content: list[Blob] = []
        self._watchers: list[Watcher] = []
        self._writer: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._cursor: Cursor | None = None
        self._saved = projection.state.hydration.event_count

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Have every durable fact told; returns how to stop it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def put(self, *batch: Fact) -> None:
        """Accept facts, all or none, to be written soon; `flush` waits until they are."""
        if self._failure is not None:
            raise self._failure
        if len(batch) == 1:
            self.gates.feed(batch[0])
        else:
            self.gates = self.gates.passed(batch)
        for fact in batch:
            self._accept(fact)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_waiting())

    async def write(self, *batch: Fact) -> None:
        """Accept facts and return when they are durable."""
        self.put(*batch)
        await self.flush()

    async def flush(self) -> None:
        """Wait until everything accepted is durable; raises what kept it from being so."""
        while self._writer is not None:
            await asyncio.shield(self._writer)
        if self._failure is not None:
            raise self._failure

    async def settle(self) -> None:
        """Wait until nothing is being written, whatever came of it; its writers hear of that."""
        while self._writer is not None:
            await asyncio.wait({self._writer})

    async def save_checkpoint(self) -> None:
        """Keep the projection in the journal, once enough was written that reading it all again
        would cost more; a growing state is so saved ever more rarely.
        """
        count = self.projection.state.hydration.event_count
        if self._cursor is None or count - self._saved < max(CHECKPOINT_FACTS, count // 8):
            return
        await self._journal.save_snapshot(
            self.thread_id, self._cursor, self.projection.checkpoint()
        )
        self._saved = count

    async def make_room(self) -> None:
        """Wait while too much is unwritten, so that a fast agent cannot fill the memory."""
        if len(self._waiting) > UNWRITTEN_FACTS:
            await self.flush()

    def _accept(self, fact: Fact) -> None:
        try:
            taken = self._intake.feed(fact)
        except InvalidFacts as error:
            first = error.issues[0]
            raise GateRefused(first.code, f"{first.path}: {first.message}", fact.id) from error
        for accepted in (taken.fact, *taken.notes):
            self._waiting.append(
                msgspec.structs.replace(accepted, sequence=self._sequence, thread_id=self.thread_id)
            )
            self._sequence += 1
        self._content += taken.blobs

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                content, self._content = self._content, []
                for blob in content:
                    await self._blobs.put(blob.content, kind=blob.ref.kind)
                self._cursor = (await self._journal.append(batch)).cursor
                self._tell(batch)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._writer = None

    def _tell(self, batch: Sequence[Fact]) -> None:
        apply, watchers = self.projection.apply, self._watchers
        for fact in batch:
            changes = apply(fact)
            for watcher in tuple(watchers):
                watcher(fact, changes)
