"""`Journal`: what every backend promises.

An acknowledged append is durable. Seqs are gap-free and rise. An id is taken once, for ever. A read
or a follow is exact from its cursor on, or raises before it has handed out anything.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.catalogue import Thread, ThreadPage, ThreadRecord, ThreadStatus
from factwire.journal.chain_point import ChainPoint
from factwire.journal.chunk import Stretch
from factwire.journal.cursor import Cursor
from factwire.journal.filter import Filter
from factwire.journal.policy import Compaction, Removal, Retention
from factwire.journal.removed import Removed
from factwire.journal.restore import Restoration


class Appended(msgspec.Struct, frozen=True, gc=False):
    """A place for each fact of the batch, in the batch's order."""

    epoch: str
    seqs: tuple[int, ...]
    sequences: tuple[int | None, ...]
    repeated: tuple[bool, ...]

    @property
    def cursor(self) -> Cursor:
        """The furthest place in the answer; 0 for an empty batch."""
        return Cursor(self.epoch, max(self.seqs, default=0))


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Derived state as of `cursor`; `anchor` is the chain's hash of the commit it ends in."""

    thread_id: str
    kind: str
    cursor: Cursor
    data: bytes
    anchor: bytes


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """The first place that does not verify."""

    first: int
    last: int
    reason: str


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk over the whole chain found; `intact` is the last seq before any damage."""

    facts: int
    chunks: int
    head: bytes
    intact: int
    damage: Damage | None = None

    @property
    def ok(self) -> bool:
        return self.damage is None


class FollowerStats(msgspec.Struct, frozen=True, kw_only=True):
    """A live follower: the seq it has come to, and how many behind the head that is."""

    name: str
    position: int
    lag: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures about a journal."""

    bytes: int
    facts: int
    threads: int
    head: Cursor
    floor: Cursor
    followers: tuple[FollowerStats, ...]


class Journal(Protocol):
    """A durable, ordered, resumable log of facts; an async context manager."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> Appended:
        """Write a batch whole or not at all; returns when it is durable.

        `expected` maps a thread to the last sequence it is believed to have, None for no thread.
        """
        ...

    def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[Stretch]:
        """What is there now, after a cursor, its text or a fact id; None is the oldest kept.

        A filtered read ends with an empty stretch where its last facts did not pass.
        """
        ...

    def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[Stretch]:
        """What `read` gives, then whatever is appended, without end."""
        ...

    async def head(self) -> Cursor: ...

    async def position(self, fact_id: str) -> Cursor:
        """Where a fact stands; raises `UnknownFact`."""
        ...

    async def threads(
        self,
        *,
        project: str | None = None,
        status: ThreadStatus | None = None,
        after: Cursor | str | None = None,
        limit: int = 100,
    ) -> ThreadPage: ...

    async def thread(self, thread_id: str) -> Thread | None: ...

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> Snapshot: ...

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> Snapshot | None:
        """The newest snapshot of a thread, at or before `at`."""
        ...

    async def retain(self, policy: Retention) -> Removal: ...

    async def compact(self, policy: Compaction | None = None) -> Removal: ...

    async def verify(self) -> VerifyReport: ...

    async def chain_point(self, seq: int) -> ChainPoint:
        """The first place from `seq` on at which the chain's hash is known; raises
        `CursorFromFuture` past the head. Where facts were removed, that may be a later place.
        """
        ...

    def removed(self) -> AsyncIterator[Removed]:
        """What is left of each fact that was removed, by seq."""
        ...

    def records(self) -> AsyncIterator[ThreadRecord]:
        """Everything that is kept of each thread, in no order."""
        ...

    async def restore(self, given: Restoration) -> Cursor:
        """Become the journal that is given, with its seqs; only an empty journal may.

        The epoch stays this journal's own. One that was cut short is to be thrown away.
        """
        ...

    async def stats(self) -> Stats: ...
