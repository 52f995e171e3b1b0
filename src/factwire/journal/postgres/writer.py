"""Group commit: what callers bring while one commit is on its way makes up the next.

A process that wrote last knows where the journal ends, prepares the commit on that ground and sends
it whole; the server takes it only if the ground still holds and no id is known. If not, because
another process wrote or a fact is a repeat, the journal is locked, looked at and written. Either
way a commit is one transaction, and a request that breaks a rule is refused alone. A commit whose
connection broke may have been written: its hash is looked for under the lock before anything is
written again.

Callers are answered after their commit is durable, and after the next, if there is one, was sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.admission import ExistingFact, PreparedFact
from factwire.journal.chunks import Chunk, build_chunk, group_by_keys
from factwire.journal.commit_group import CommitGroup, Expected
from factwire.journal.errors import AppendRefused, JournalClosed, JournalUnavailable
from factwire.journal.filter import CLASS_MARK
from factwire.journal.postgres.schema import (
    FactLookup,
    JournalTip,
    KeyEncoder,
    encode_thread,
    list_touched_threads,
)
from factwire.journal.postgres.server_connection import (
    GROUP_BYTES,
    GROUP_FACTS,
    TAKEN,
    THREADS_KEPT,
    PostgresConnection,
    PostgresSession,
)
from factwire.journal.protocol import AppendResult
from factwire.journal.thread_catalogue import CatalogueRecord, build_catalogue_record

AppendAnswer = AppendResult | AppendRefused


class StagedCommit:
    """Implements `AdmissionLookup` over what the journal has.

    `known` must have every id of the requests that the journal knows, `threads` every thread they
    touch, None for one that is new. Records are copied before they are changed.
    """

    def __init__(
        self,
        place: JournalTip,
        keys: KeyEncoder,
        threads: Mapping[str, CatalogueRecord | None],
        known: Mapping[str, ExistingFact] | None = None,
    ) -> None:
        self.place = place
        self.answers: list[AppendAnswer] = []
        self.touched: dict[str, CatalogueRecord] = {}
        self.chunk: Chunk | None = None
        self.fact_keys: list[bytes] = []
        self.new_threads = 0
        self.names: set[str] = set()
        """Every filter key of the commit, once it is finished."""
        self._keys = keys
        self._threads = threads
        self._known = known or {}
        self._refuses = False
        self._size = 0
        first = place.head + 1
        self.group = CommitGroup(self, epoch=place.epoch, first=first, doubtful=self._known)

    def take(self, entries: Sequence[PreparedFact], expected: Expected | None) -> None:
        """Admit or refuse the next request."""
        start = len(self.group.lines)
        try:
            self.answers.append(self.group.admit(entries, expected))
        except AppendRefused as refusal:
            self.answers.append(refusal)
            self._refuses = True
        # There is time for this now, while the commit before is on its way.
        self._add_from(start)

    def finish(self) -> Chunk | None:
        """The chunk to be written; None where nothing in the requests was new."""
        group = self.group
        if group.lines:
            keys = group_by_keys([entry.keys for entry in group.entries])
            self.chunk = build_chunk(self.place.hash, group.first, group.lines, keys)
            self.names = {name for names in keys for name in names}
        return self.chunk

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        return self._known.get(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        record = self._threads.get(thread_id)
        return record and record.last_sequence

    @property
    def full(self) -> bool:
        """Whether a further batch is better left to the next commit."""
        return self._size > GROUP_BYTES or len(self.group.lines) > GROUP_FACTS

    def has_threads_of(self, entries: Sequence[PreparedFact]) -> bool:
        """Whether every thread of a request has been looked up."""
        threads = self._threads
        for entry in entries:
            if entry.thread is not None and entry.thread not in threads:
                return False
        return True

    def has_refusals(self) -> bool:
        """Whether any request broke a rule."""
        return self._refuses

    def compute_tip(self) -> JournalTip:
        """Where the journal stands after the commit."""
        if self.chunk is None:
            return self.place
        return msgspec.structs.replace(self.place, head=self.chunk.last, hash=self.chunk.hash)

    def _add_from(self, start: int) -> None:
        group, touched = self.group, self.touched
        entries = group.entries[start:]
        self._size += sum(map(len, group.lines[start:]))
        self.fact_keys += self._keys.encode_fact_ids([entry.fact.id for entry in entries])
        for place, entry in enumerate(entries, start):
            thread, sequence = entry.thread, group.sequences[place]
            if thread is not None and sequence is not None:
                record = touched.get(thread)
                if record is None:
                    self._touch(thread, entry.fact, group.first + place, sequence)
                else:
                    record.note(entry.fact, group.first + place, sequence)

    def _touch(self, thread: str, fact: Fact, seq: int, sequence: int) -> None:
        """Note the first fact that this commit has of a thread."""
        before = self._threads.get(thread)
        if before is None:
            self.touched[thread] = build_catalogue_record(thread, fact, seq, sequence)
            self.new_threads += 1
        else:
            record = msgspec.structs.replace(before, open=dict(before.open))
            record.note(fact, seq, sequence)
            self.touched[thread] = record


def build_commit_arguments(
    journal: int, stage: StagedCommit, chunk: Chunk, keys: KeyEncoder, classes: Iterable[str]
) -> tuple[object, ...]:
    """What `factwire.commit` takes; `classes` are those that are noted already."""
    marked = {name for name in stage.names if name.startswith(CLASS_MARK)}
    touched = stage.touched.values()
    return (
        journal,
        stage.place.head,
        stage.place.hash,
        chunk.last,
        chunk.data,
        chunk.index,
        chunk.hash,
        chunk.check,
        chunk.body,
        b"".join(stage.fact_keys),
        list({keys.encode_posting(name) for name in stage.names}),
        [name.encode("utf-8", "surrogatepass") for name in sorted(marked.difference(classes))],
        [keys.encode_name(record.thread_id) for record in touched],
        [record.last_seq for record in touched],
        [record.project_id and keys.encode_name(record.project_id) for record in touched],
        [record.status for record in touched],
        [min(record.open.values(), default=None) for record in touched],
        [encode_thread(record) for record in touched],
        stage.new_threads,
    )


_COMMIT: Final = f"SELECT factwire.commit({', '.join(f'${number}' for number in range(1, 20))})"
_LOCK: Final = (
    "SELECT epoch, head, hash, floor FROM factwire.journal WHERE id = $1 FOR NO KEY UPDATE"
)
_LANDED: Final = "SELECT hash FROM factwire.chunk WHERE journal = $1 AND last = $2"

SEND_TURNS: Final = 8
"""Turns of the event loop in which a commit leaves for the server, however large it is. What the
socket does not take at once it takes in later turns, and these must not be full of other work."""

Batch = tuple[list[PreparedFact], Expected | None]


class CommitAttempt(msgspec.Struct):
    """A group until it is written.

    `prepared` was put together while the group before was on its way; `doubtful` may have been
    written already.
    """

    batches: list[Batch]
    prepared: StagedCommit | None = None
    doubtful: StagedCommit | None = None

    def list_threads(self) -> set[str]:
        names = list_touched_threads(entries for entries, _ in self.batches)
        return names.union(*(expected or () for _, expected in self.batches))

    def list_ids(self) -> set[str]:
        return {entry.fact.id for entries, _ in self.batches for entry in entries}

    def stage_on(self, stage: StagedCommit) -> StagedCommit:
        """As many of the batches as make up one commit, from the first on."""
        for entries, expected in self.batches:
            if stage.full:
                break
            stage.take(entries, expected)
        return stage


class Committer:
    """What one process remembers of the journal between its commits, and how it writes."""

    def __init__(self, journal: int, on_flight: Callable[[StagedCommit], None]) -> None:
        self._journal = journal
        self._on_flight = on_flight
        self._keys = KeyEncoder(journal)
        self._ledger = FactLookup(journal, self._keys)
        self._place: JournalTip | None = None
        self._threads: dict[str, CatalogueRecord | None] = {}
        self._classes: set[str] = set()
        self._alone = True
        self._last_head = 0

    def forget(self) -> None:
        """Look again where the journal ends before the next commit."""
        self._place = None
        self._threads = {}

    def stage_after(self, stage: StagedCommit) -> StagedCommit:
        """A stage for the commit after one that is on its way."""
        return StagedCommit(stage.compute_tip(), self._keys, self._threads)

    async def write(self, connection: PostgresConnection, attempt: CommitAttempt) -> StagedCommit:
        """Write a group, whatever it takes; may be called again after a lost connection."""
        stage = None
        if attempt.doubtful is None:
            stage = await self._write_at_once(connection, attempt)
        return stage or await self._write_locked(connection, attempt)

    def remember(self, stage: StagedCommit) -> None:
        """Build the next commit on this one, which is durable."""
        self._place = stage.compute_tip()
        self._last_head = self._place.head
        self._classes.update(name for name in stage.names if name.startswith(CLASS_MARK))

    async def _write_at_once(
        self, connection: PostgresConnection, attempt: CommitAttempt
    ) -> StagedCommit | None:
        """The commit in one round trip, on what is remembered; None where that may not be."""
        place, self._place = self._place, None
        prepared, attempt.prepared = attempt.prepared, None
        if place is None or not self._alone:
            return None
        if prepared is None or prepared.place != place:
            unread = attempt.list_threads().difference(self._threads)
            self._threads.update(await self._ledger.load_threads(connection, unread))
            prepared = attempt.stage_on(StagedCommit(place, self._keys, self._threads))
        chunk = prepared.finish()
        # A refusal may rest on an id that this process does not know.
        if chunk is None or prepared.has_refusals():
            return None
        try:
            return prepared if await self._commit(connection, attempt, prepared, chunk) else None
        except TAKEN:
            return None

    async def _write_locked(
        self, connection: PostgresConnection, attempt: CommitAttempt
    ) -> StagedCommit:
        """The commit with the journal locked, on what is really there."""
        async with connection.transaction():
            place = await self._lock(connection)
            doubtful = attempt.doubtful
            if doubtful is not None and await self._has_landed(connection, doubtful):
                self._threads = {}
                return doubtful
            self._alone = place.head == self._last_head
            self._threads = await self._ledger.load_threads(connection, attempt.list_threads())
            existing = await self._ledger.find_existing(connection, attempt.list_ids())
            stage = attempt.stage_on(StagedCommit(place, self._keys, self._threads, existing))
            chunk = stage.finish()
            if chunk is not None:
                await self._commit(connection, attempt, stage, chunk)
        return stage

    async def _lock(self, connection: PostgresConnection) -> JournalTip:
        row = await connection.fetchrow(_LOCK, self._journal)
        if row is None:
            raise JournalUnavailable("the journal is no longer in the database")
        return JournalTip(
            epoch=row["epoch"], head=row["head"], hash=row["hash"], floor=row["floor"]
        )

    async def _commit(
        self,
        connection: PostgresConnection,
        attempt: CommitAttempt,
        stage: StagedCommit,
        chunk: Chunk,
    ) -> bool:
        arguments = build_commit_arguments(self._journal, stage, chunk, self._keys, self._classes)
        attempt.doubtful = stage
        # The next commit is put together on this one; if this one fails, so does that, and what is
        # remembered here is looked up anew.
        if len(self._threads) > THREADS_KEPT:
            self._threads = {}
        self._threads.update(stage.touched)
        written = bool(await self._send(connection.fetchval(_COMMIT, *arguments), stage))
        if not written:
            attempt.doubtful = None
        return written

    async def _send(self, query: Coroutine[Any, Any, Any], stage: StagedCommit) -> Any:
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

    async def _has_landed(self, connection: PostgresConnection, stage: StagedCommit) -> bool:
        """Whether a commit whose answer was lost is there."""
        chunk = stage.chunk
        if chunk is None:
            return False
        return await connection.fetchval(_LANDED, self._journal, chunk.last) == chunk.hash


_HALVED: Final = 256
"""Facts past which only half of those waiting are taken, so that while they are on their way there
are others to put together."""

_LONGEST_HOLD: Final = 0.005
"""Seconds for which an answer waits for the next commit to be sent, should the server be gone."""


class PostgresAppend(msgspec.Struct, gc=False):
    """A batch and the one who waits for it."""

    entries: list[PreparedFact]
    expected: Expected | None
    done: asyncio.Future[AppendResult]
    due: float


class NextCommit(msgspec.Struct):
    """The commit after the one that is on its way."""

    stage: StagedCommit
    group: list[PostgresAppend]

    def try_take(self, request: PostgresAppend) -> bool:
        """Put a request in, if there is room and all is known that admission asks for."""
        stage = self.stage
        if stage.full or request.expected or not stage.has_threads_of(request.entries):
            return False
        stage.take(request.entries, None)
        self.group.append(request)
        return True


class PostgresWriter:
    """Takes requests from any number of callers on one event loop."""

    def __init__(
        self,
        session: PostgresSession,
        journal: int,
        *,
        patience: float,
        on_commit: Callable[[JournalTip, Chunk], None],
    ) -> None:
        self._session = session
        self._patience = patience
        self._on_commit = on_commit
        self._committer = Committer(journal, self._note_flight)
        self._waiting: deque[PostgresAppend] = deque()
        self._ahead: NextCommit | None = None
        self._brought = asyncio.Event()
        self._closing = False
        self._held: tuple[list[PostgresAppend], Sequence[AppendAnswer]] | None = None
        """Callers whose commit is durable and who are answered as soon as the next has been sent:
        what they do then takes the time that the server needs for it."""
        self._hold: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._work())

    def append(
        self, entries: list[PreparedFact], expected: Expected | None
    ) -> asyncio.Future[AppendResult]:
        """A future that is done when the batch is durable or refused."""
        if self._closing:
            raise JournalClosed("the journal is closed")
        loop = self._loop
        done: asyncio.Future[AppendResult] = loop.create_future()
        request = PostgresAppend(entries, expected, done, loop.time() + self._patience)
        # Those who wait already come first.
        if self._waiting or self._ahead is None or not self._ahead.try_take(request):
            self._waiting.append(request)
        self._brought.set()
        return done

    async def close(self) -> None:
        """Write what callers wait for, then end."""
        self._closing = True
        self._brought.set()
        await self._task

    def forget(self) -> None:
        """Look again where the journal ends before the next commit."""
        self._committer.forget()

    async def _work(self) -> None:
        while True:
            ahead, self._ahead = self._ahead, None
            if ahead is not None and ahead.group:
                await self._write(ahead.group, ahead.stage)
            elif self._waiting:
                await self._write(self._next_group(), None)
            elif self._closing:
                return
            else:
                self._brought.clear()
                await self._brought.wait()

    async def _write(self, group: list[PostgresAppend], prepared: StagedCommit | None) -> None:
        attempt = CommitAttempt([(each.entries, each.expected) for each in group], prepared)
        try:
            stage = await self._session.run(
                lambda link: self._committer.write(link, attempt), due=group[0].due
            )
        except Exception as error:  # noqa: BLE001 - it is the callers' to handle
            self._committer.forget()
            self._answer_held()
            _fail(group, error)
            return
        self._answer_held()
        self._committer.remember(stage)
        if stage.chunk is not None:
            self._on_commit(stage.compute_tip(), stage.chunk)
        answered = len(stage.answers)
        if answered < len(group):
            self._put_back(group[answered:])
        self._held = (group[:answered], stage.answers)
        if self._ahead is None or not self._ahead.group:
            self._answer_held()
        else:
            self._hold = self._loop.call_later(_LONGEST_HOLD, self._answer_held)

    def _answer_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            _answer(*held)
        if self._hold is not None:
            self._hold.cancel()

    def _put_back(self, rest: list[PostgresAppend]) -> None:
        """Requests that no longer fitted in their commit; all others came after them."""
        ahead, self._ahead = self._ahead, None
        later = ahead.group if ahead else []
        self._waiting.extendleft(reversed([*rest, *later]))

    def _note_flight(self, stage: StagedCommit) -> None:
        """A commit is on its way: answer those of the one before, and begin the next."""
        self._answer_held()
        # What stood on an earlier attempt at this commit has lost its ground.
        self._put_back([])
        self._ahead = NextCommit(self._committer.stage_after(stage), [])
        while self._waiting and self._ahead.try_take(self._waiting[0]):
            self._waiting.popleft()

    def _next_group(self) -> list[PostgresAppend]:
        facts = sum(len(request.entries) for request in self._waiting)
        most = max(_HALVED, facts // 2)
        group: list[PostgresAppend] = []
        while self._waiting and most > 0:
            group.append(self._waiting.popleft())
            most -= len(group[-1].entries)
        return group


def _answer(group: list[PostgresAppend], answers: Sequence[AppendAnswer]) -> None:
    for request, answer in zip(group, answers, strict=True):
        if request.done.done():
            continue
        if isinstance(answer, AppendResult):
            request.done.set_result(answer)
        else:
            request.done.set_exception(answer)


def _fail(group: list[PostgresAppend], error: Exception) -> None:
    for request in group:
        if not request.done.done():
            request.done.set_exception(error)
