"""Writing one group of requests: in one round trip where that is safe, and otherwise under a lock.

A process that wrote last knows where the journal ends, prepares the commit on that ground and sends
it whole; the server takes it only if the ground still holds and no id is known. If not, because
another process wrote or a fact is a repeat, the journal is locked, looked at and written. Either
way a commit is one transaction.

A commit whose connection broke may have been written. It has a hash of its own, which is looked for
under the lock before anything is written again.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from factwire.journal.admission import Entry
from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chunk import Chunk
from factwire.journal.errors import JournalUnavailable
from factwire.journal.filter import CLASS_MARK
from factwire.journal.group import Expected
from factwire.journal.postgres.driver import TAKEN, Connection
from factwire.journal.postgres.keys import Keys
from factwire.journal.postgres.ledger import Ledger, touched_threads
from factwire.journal.postgres.rows import Place
from factwire.journal.postgres.settings import THREADS_KEPT
from factwire.journal.postgres.stage import Stage, commit_arguments

_COMMIT: Final = f"SELECT factwire.commit({', '.join(f'${number}' for number in range(1, 20))})"
_LOCK: Final = (
    "SELECT epoch, head, hash, floor FROM factwire.journal WHERE id = $1 FOR NO KEY UPDATE"
)
_LANDED: Final = "SELECT hash FROM factwire.chunk WHERE journal = $1 AND last = $2"

SEND_TURNS: Final = 8
"""Turns of the event loop in which a commit leaves for the server, however large it is. What the
socket does not take at once it takes in later turns, and these must not be full of other work."""

Batch = tuple[list[Entry], Expected | None]


class Attempt(msgspec.Struct):
    """A group until it is written.

    `prepared` was put together while the group before was on its way; `doubtful` may have been
    written already.
    """

    batches: list[Batch]
    prepared: Stage | None = None
    doubtful: Stage | None = None

    def threads(self) -> set[str]:
        names = touched_threads(entries for entries, _ in self.batches)
        return names.union(*(expected or () for _, expected in self.batches))

    def ids(self) -> set[str]:
        return {entry.fact.id for entries, _ in self.batches for entry in entries}

    def staged_on(self, stage: Stage) -> Stage:
        """As many of the batches as make up one commit, from the first on."""
        for entries, expected in self.batches:
            if stage.full:
                break
            stage.take(entries, expected)
        return stage


class Committer:
    """What one process remembers of the journal between its commits, and how it writes."""

    def __init__(self, journal: int, on_flight: Callable[[Stage], None]) -> None:
        self._journal = journal
        self._on_flight = on_flight
        self._keys = Keys(journal)
        self._ledger = Ledger(journal, self._keys)
        self._place: Place | None = None
        self._threads: dict[str, ThreadRecord | None] = {}
        self._classes: set[str] = set()
        self._alone = True
        self._last_head = 0

    def forget(self) -> None:
        """Look again where the journal ends before the next commit."""
        self._place = None
        self._threads = {}

    def ahead_of(self, stage: Stage) -> Stage:
        """A stage for the commit after one that is on its way."""
        return Stage(stage.end(), self._keys, self._threads)

    async def write(self, connection: Connection, attempt: Attempt) -> Stage:
        """Write a group, whatever it takes; may be called again after a lost connection."""
        stage = None
        if attempt.doubtful is None:
            stage = await self._at_once(connection, attempt)
        return stage or await self._locked(connection, attempt)

    def remember(self, stage: Stage) -> None:
        """Build the next commit on this one, which is durable."""
        self._place = stage.end()
        self._last_head = self._place.head
        self._classes.update(name for name in stage.names if name.startswith(CLASS_MARK))

    async def _at_once(self, connection: Connection, attempt: Attempt) -> Stage | None:
        """The commit in one round trip, on what is remembered; None where that may not be."""
        place, self._place = self._place, None
        prepared, attempt.prepared = attempt.prepared, None
        if place is None or not self._alone:
            return None
        if prepared is None or prepared.place != place:
            unread = attempt.threads().difference(self._threads)
            self._threads.update(await self._ledger.threads(connection, unread))
            prepared = attempt.staged_on(Stage(place, self._keys, self._threads))
        chunk = prepared.finish()
        # A refusal may rest on an id that this process does not know.
        if chunk is None or prepared.refuses():
            return None
        try:
            return prepared if await self._commit(connection, attempt, prepared, chunk) else None
        except TAKEN:
            return None

    async def _locked(self, connection: Connection, attempt: Attempt) -> Stage:
        """The commit with the journal locked, on what is really there."""
        async with connection.transaction():
            place = await self._lock(connection)
            doubtful = attempt.doubtful
            if doubtful is not None and await self._landed(connection, doubtful):
                self._threads = {}
                return doubtful
            self._alone = place.head == self._last_head
            self._threads = await self._ledger.threads(connection, attempt.threads())
            known = await self._ledger.known(connection, attempt.ids())
            stage = attempt.staged_on(Stage(place, self._keys, self._threads, known))
            chunk = stage.finish()
            if chunk is not None:
                await self._commit(connection, attempt, stage, chunk)
        return stage

    async def _lock(self, connection: Connection) -> Place:
        row = await connection.fetchrow(_LOCK, self._journal)
        if row is None:
            raise JournalUnavailable("the journal is no longer in the database")
        return Place(epoch=row["epoch"], head=row["head"], hash=row["hash"], floor=row["floor"])

    async def _commit(
        self, connection: Connection, attempt: Attempt, stage: Stage, chunk: Chunk
    ) -> bool:
        arguments = commit_arguments(self._journal, stage, chunk, self._keys, self._classes)
        attempt.doubtful = stage
        # The next commit is put together on this one; if this one fails, so does that, and what is
        # remembered here is looked up anew.
        if len(self._threads) > THREADS_KEPT:
            self._threads = {}
        self._threads.update(stage.touched)
        written = bool(await self._sent(connection.fetchval(_COMMIT, *arguments), stage))
        if not written:
            attempt.doubtful = None
        return written

    async def _sent(self, query: Coroutine[Any, Any, Any], stage: Stage) -> Any:
        """The answer to a query; those who wait for its being sent are called in between."""
        sending = asyncio.ensure_future(query)
        try:
            for _ in range(SEND_TURNS):
                await asyncio.sleep(0)
            self._on_flight(stage)
            return await sending
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait((sending,))

    async def _landed(self, connection: Connection, stage: Stage) -> bool:
        """Whether a commit whose answer was lost is there."""
        chunk = stage.chunk
        if chunk is None:
            return False
        return await connection.fetchval(_LANDED, self._journal, chunk.last) == chunk.hash
