"""Group commit: whatever callers bring while one commit is on its way makes up the next.

Each caller's batch is admitted on its own, so that a refusal touches nobody else; all that is new
goes to the server as one chunk, which is there whole or not at all. One commit is on its way at a
time; the next is made ready meanwhile, and made anew if the journal then is not what was foreseen.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from factwire.journal.admission import Admitted, Entry, Known, Placed, admit
from factwire.journal.chunk import Chunk, new_chunk
from factwire.journal.errors import AppendRefused, JournalClosed
from factwire.journal.nats.ids import fingerprint
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.state import Contents, State, placed_facts
from factwire.journal.nats.wire import Said
from factwire.journal.protocol import Appended

GROUP_BYTES: Final = 256 * 1024
"""Lines after which a commit takes no further batch in; a single batch may be larger."""

_UNSET_LINE: Final = 512
"""A guess at the length of a line that is written once its sequence is known."""


class Request(msgspec.Struct):
    """A batch that waits for its commit."""

    entries: Sequence[Entry]
    expected: Mapping[str, int | None] | None
    done: asyncio.Future[Appended]
    size: int


class Writer:
    """The one task of a process that appends."""

    def __init__(self, mirror: Mirror, committed: Callable[[], None]) -> None:
        self._mirror = mirror
        self._committed = committed
        self._waiting: list[Request] = []
        self._ready: _Commit | None = None
        self._wake = asyncio.Event()
        self._closed = False
        self._task = asyncio.create_task(self._run(), name="factwire-nats-writer")

    async def append(
        self, entries: Sequence[Entry], expected: Mapping[str, int | None] | None
    ) -> Appended:
        """Have a batch committed."""
        if self._closed:
            raise JournalClosed("the journal is being closed")
        done = asyncio.get_running_loop().create_future()
        size = sum(len(entry.line or b"") or _UNSET_LINE for entry in entries)
        self._waiting.append(Request(entries, expected, done, size))
        self._wake.set()
        return await done

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
                    commit.fail(error)
                self._committed()

    def _make_ready(self, current: "_Commit") -> None:
        """Admit the next group on what the current one will have changed, if that is simple."""
        if self._waiting and self._ready is None:
            waiting = self._waiting
            commit = _Commit(self._mirror, self._take())
            if commit.foresee(current):
                self._ready = commit
            else:
                self._waiting = waiting

    def _take(self) -> list[Request]:
        number = size = 0
        while number < len(self._waiting) and (not number or size < GROUP_BYTES):
            size += self._waiting[number].size
            number += 1
        group, self._waiting = self._waiting[:number], self._waiting[number:]
        return group


class _Commit:
    """One group on its way; also what admission looks things up in."""

    def __init__(self, mirror: Mirror, group: list[Request]) -> None:
        self._mirror = mirror
        self._group = group
        self._ids = [entry.fact.id for request in group for entry in request.entries]
        self._marks = [fingerprint(each) for each in self._ids]
        self._known: Mapping[str, Known] = {}
        self._before: _Commit | None = None
        self._staged: dict[str, Placed] = {}
        self._lasts: dict[str, int] = {}
        self._placed: list[Placed] = []
        self._answers: list[tuple[Request, Admitted]] = []
        self._refused: list[tuple[Request, AppendRefused]] = []
        self._chunk: Chunk | None = None
        self._level = False

    async def run(self, make_ready: Callable[["_Commit"], None]) -> None:
        """Commit, calling `make_ready` while the server is at work."""
        await self._mirror.write(self._build, self._contents, lambda: make_ready(self))
        epoch = self._state.epoch
        for request, answer in self._answers:
            if not request.done.done():
                places = (tuple(answer.seqs), tuple(answer.sequences), tuple(answer.repeated))
                request.done.set_result(Appended(epoch, *places))
        for request, error in self._refused:
            if not request.done.done():
                request.done.set_exception(error)

    def fail(self, error: Exception) -> None:
        for request in self._group:
            if not request.done.done():
                request.done.set_exception(error)

    def foresee(self, current: "_Commit") -> bool:
        """Admit on top of a commit that is on its way; False where that takes a closer look."""
        before = current._chunk  # noqa: SLF001
        if before is None or self._state.ids.taken(self._marks):
            return False
        self._before = current
        self._admit(before.last + 1)
        if not self._refused:
            self._make_chunk(before.hash, before.last + 1)
        self._before = None
        return self._chunk is not None

    def known(self, fact_id: str) -> Known | None:
        placed = self._staged.get(fact_id)
        if placed is None and self._before is not None:
            placed = self._before._staged.get(fact_id)  # noqa: SLF001
        if placed is not None:
            return Known(placed.seq, placed.sequence, placed.line)
        return self._known.get(fact_id)

    def last_sequence(self, thread_id: str) -> int | None:
        last = self._lasts.get(thread_id)
        if last is None and self._before is not None:
            last = self._before._lasts.get(thread_id)  # noqa: SLF001
        return self._state.last_sequence(thread_id) if last is None else last

    @property
    def _state(self) -> State:
        return self._mirror.state

    def _contents(self) -> Contents:
        whole = len(self._placed) == len(self._marks)
        marks = self._marks if whole else [fingerprint(each.entry.fact.id) for each in self._placed]
        return Contents(placed_facts(self._placed), marks)

    async def _build(self) -> Sequence[Said]:
        damage = self._state.damage()
        if damage is not None:
            raise damage
        if self._chunk is None or self._chunk.prev != self._state.hash:
            await self._admit_level()
            self._make_chunk(self._state.hash, self._state.head + 1)
        return () if self._chunk is None else [self._chunk]

    async def _admit_level(self) -> None:
        self._known = await self._mirror.known(self._ids, self._marks, locked=True)
        self._admit(self._state.head + 1)
        if self._refused and not self._level:
            # A thread may have moved on in another process: refuse only what the stream refuses.
            self._level = True
            await self._mirror.catch_up()
            await self._admit_level()

    def _admit(self, first: int) -> None:
        self._staged, self._lasts, self._placed = {}, {}, []
        self._answers, self._refused = [], []
        for request in self._group:
            try:
                next_seq = first + len(self._placed)
                answer = admit(request.entries, self, next_seq, request.expected)
            except AppendRefused as error:
                self._refused.append((request, error))
                continue
            self._answers.append((request, answer))
            self._placed += answer.new
            self._lasts.update(answer.last_sequences)
            self._staged.update([(each.entry.fact.id, each) for each in answer.new])

    def _make_chunk(self, prev: bytes, first: int) -> None:
        lines = [placed.line for placed in self._placed]
        keys = (placed.entry.keys for placed in self._placed)
        self._chunk = new_chunk(prev, first, lines, keys) if lines else None
