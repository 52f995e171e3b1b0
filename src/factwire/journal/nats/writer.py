"""Group commit: whatever callers bring while one commit is on its way makes up the next.

Each caller's batch is admitted on its own, so that a refusal touches nobody else; all that is new
goes to the server as one chunk, which is there whole or not at all. One commit is on its way at a
time; the next is made ready meanwhile, and made anew if the journal then is not what was foreseen.
Callers are answered after their commit is durable, and after the next, if one is ready, was sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec

from factwire.journal.admission import ExistingFact, PreparedFact
from factwire.journal.chunks import Chunk, build_chunk, group_by_keys
from factwire.journal.commit_group import CommitGroup, Expected
from factwire.journal.errors import AppendRefused, JournalClosed
from factwire.journal.filter import Groups
from factwire.journal.nats.journal_state import (
    ChunkContents,
    StreamState,
    compute_fingerprints,
    list_keys_in,
)
from factwire.journal.nats.stream_log import ItemBody
from factwire.journal.nats.stream_view import StreamView
from factwire.journal.protocol import AppendResult

GROUP_BYTES: Final = 256 * 1024
"""Lines after which a commit takes no further batch in; a single batch may be larger."""

HALVED: Final = 128
"""Batches past which a commit takes only half of those waiting, so that while they are on their way
there are others to make ready."""

_UNSET_LINE: Final = 512
"""A guess at the length of a line that is written once its sequence is known."""

_RESUME_TURNS: Final = 2
"""Turns of the event loop in which those who were answered bring what they have next."""

_LONGEST_HOLD: Final = 0.005
"""Seconds for which an answer waits for the next commit to be sent, should the server be gone."""


class NatsAppend(msgspec.Struct, gc=False):
    """A batch that waits for its commit."""

    entries: Sequence[PreparedFact]
    expected: Expected | None
    done: asyncio.Future[AppendResult]


class NatsWriter:
    """The one task of a process that appends."""

    def __init__(self, mirror: StreamView, on_commit: Callable[[], None]) -> None:
        self._mirror = mirror
        self._on_commit = on_commit
        self._waiting: list[NatsAppend] = []
        self._ready: _Commit | None = None
        self._wake = asyncio.Event()
        self._closed = False
        self._held: _Commit | None = None
        self._hold: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run(), name="factwire-nats-writer")

    def append(
        self, entries: Sequence[PreparedFact], expected: Expected | None
    ) -> asyncio.Future[AppendResult]:
        """A future that is done when the batch is durable or refused."""
        if self._closed:
            raise JournalClosed("the journal is closing")
        done: asyncio.Future[AppendResult] = self._loop.create_future()
        self._waiting.append(NatsAppend(entries, expected, done))
        self._wake.set()
        return done

    async def close(self) -> None:
        """Commit what waits, and end."""
        self._closed = True
        self._wake.set()
        await self._task

    async def _run(self) -> None:
        while not (self._closed and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            while self._waiting or self._ready is not None:
                commit, self._ready = self._ready or _Commit(self._mirror, self._take()), None
                await self._mirror.turns.wait()
                try:
                    async with self._mirror.lock:
                        await commit.run(self._make_ready)
                except Exception as error:  # noqa: BLE001 - it is the callers', not this task's
                    self._answer_held()
                    commit.fail(error)
                else:
                    self._answer_held()
                    self._answer_soon(commit)
                self._on_commit()

    def _answer_soon(self, commit: "_Commit") -> None:
        """Answer now, or once the next commit has been sent: the server then works meanwhile."""
        self._held = commit
        if self._ready is None:
            self._answer_held()
        else:
            self._hold = self._loop.call_later(_LONGEST_HOLD, self._answer_held)

    def _answer_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.answer()
        if self._hold is not None:
            self._hold.cancel()

    async def _make_ready(self, current: "_Commit") -> None:
        """Admit the next group on what the current one will have changed, if that is simple."""
        self._answer_held()
        for _ in range(_RESUME_TURNS):
            await asyncio.sleep(0)
        if self._waiting and self._ready is None:
            waiting = self._waiting
            commit = _Commit(self._mirror, self._take())
            if commit.foresee(current):
                self._ready = commit
            else:
                self._waiting = waiting

    def _take(self) -> list[NatsAppend]:
        most = max(HALVED, len(self._waiting) // 2)
        number = size = 0
        for request in self._waiting[:most]:
            if size >= GROUP_BYTES:
                break
            for entry in request.entries:
                size += len(entry.line) or _UNSET_LINE
            number += 1
        group, self._waiting = self._waiting[:number], self._waiting[number:]
        return group


class _Commit:
    """One group on its way; also what admission looks things up in."""

    def __init__(self, mirror: StreamView, group: list[NatsAppend]) -> None:
        self._mirror = mirror
        self._group = group
        self._ids = [entry.fact.id for request in group for entry in request.entries]
        self._marks = compute_fingerprints(self._ids)
        self._known: Mapping[str, ExistingFact] = {}
        self._before: _Commit | None = None
        self._placed = CommitGroup(self, epoch="", first=1)
        self._answers: list[AppendResult | AppendRefused] = []
        self._refuses = False
        self._keys: Groups = {}
        self._chunk: Chunk | None = None
        self._level = False

    async def run(self, make_ready: Callable[["_Commit"], Awaitable[None]]) -> None:
        """Commit, calling `make_ready` while the server is at work."""
        await self._mirror.write(self._build, self._contents, lambda: make_ready(self))

    def answer(self) -> None:
        """Tell the callers of a commit that is durable."""
        epoch = self._state.epoch
        for request, answer in zip(self._group, self._answers, strict=True):
            if request.done.done():
                continue
            if isinstance(answer, AppendRefused):
                request.done.set_exception(answer)
            elif answer.epoch == epoch:
                request.done.set_result(answer)
            else:
                # Another process began a new life of the journal since this group was admitted.
                request.done.set_result(msgspec.structs.replace(answer, epoch=epoch))

    def list_ids(self) -> Sequence[str]:
        """The ids of all facts of the group."""
        return self._ids

    def fail(self, error: Exception) -> None:
        for request in self._group:
            if not request.done.done():
                request.done.set_exception(error)

    def foresee(self, current: "_Commit") -> bool:
        """Admit on top of a commit that is on its way; False where that takes a closer look."""
        before = current._chunk  # noqa: SLF001
        if before is None or self._state.ids.find_taken(self._marks):
            return False
        self._before = current
        self._admit(before.last + 1)
        if not self._refuses:
            self._make_chunk(before.hash)
        self._before = None
        return self._chunk is not None

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        if self._before is not None:
            return self._before._placed.find_existing(fact_id)  # noqa: SLF001
        return self._known.get(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        if self._before is not None:
            return self._before._placed.last_sequence(thread_id)  # noqa: SLF001
        return self._state.last_sequence(thread_id)

    @property
    def _state(self) -> StreamState:
        return self._mirror.state

    def _contents(self) -> ChunkContents:
        placed = self._placed
        marks = self._marks
        if len(placed.entries) < len(marks):
            marks = compute_fingerprints([entry.fact.id for entry in placed.entries])
        facts = [
            (entry.thread, entry.fact, seq, sequence)
            for seq, entry, _, sequence in placed.list_placed()
        ]
        return ChunkContents(facts, marks, list_keys_in(self._keys))

    async def _build(self) -> Sequence[ItemBody]:
        damage = self._state.damage()
        if damage is not None:
            raise damage
        if self._chunk is None or self._chunk.prev != self._state.hash:
            await self._admit_level()
            self._make_chunk(self._state.hash)
        return () if self._chunk is None else [self._chunk]

    async def _admit_level(self) -> None:
        self._known = await self._mirror.find_existing(self._ids, self._marks, locked=True)
        self._admit(self._state.head + 1)
        if self._refuses and not self._level:
            # A thread may have moved on in another process: refuse only what the stream refuses.
            self._level = True
            await self._mirror.catch_up()
            await self._admit_level()

    def _admit(self, first: int) -> None:
        doubtful = self._before.list_ids() if self._before else self._known
        self._placed = CommitGroup(self, epoch=self._state.epoch, first=first, doubtful=doubtful)
        self._answers, self._refuses = [], False
        for request in self._group:
            try:
                self._answers.append(self._placed.admit(request.entries, request.expected))
            except AppendRefused as error:
                self._answers.append(error)
                self._refuses = True

    def _make_chunk(self, prev: bytes) -> None:
        placed, self._chunk = self._placed, None
        if placed.lines:
            self._keys = group_by_keys([entry.keys for entry in placed.entries])
            self._chunk = build_chunk(prev, placed.first, placed.lines, self._keys)
