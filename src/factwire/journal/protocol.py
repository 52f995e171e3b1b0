"""`Journal`: what every backend promises, and the way from a URL to a journal.

A backend is imported only when a URL asks for it.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import Final, Protocol, Self, cast

import msgspec

from factwire.facts.fact import Fact
from factwire.journal.chunks import ChainPoint, FactBatch
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalUrlError
from factwire.journal.filter import Filter
from factwire.journal.retention import (
    CompactionPolicy,
    RemovalResult,
    RemovedFact,
    Restoration,
    RetentionPolicy,
)
from factwire.journal.thread_catalogue import (
    CatalogueRecord,
    CatalogueThread,
    ThreadPage,
    ThreadStatus,
)


class AppendResult(msgspec.Struct, frozen=True, gc=False):
    """A place for each fact of the batch, in the batch's order."""

    epoch: str
    seqs: tuple[int, ...]
    sequences: tuple[int | None, ...]
    repeated: tuple[bool, ...]

    @property
    def cursor(self) -> Cursor:
        """The furthest place in the answer; 0 for an empty batch."""
        return Cursor(self.epoch, max(self.seqs, default=0))


class StoredSnapshot(msgspec.Struct, frozen=True, kw_only=True):
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
    """What a walk over the whole chain found; `intact` is the last seq before any damage, and
    `withheld` how many facts of private threads a mirror was not given.
    """

    facts: int
    chunks: int
    head: bytes
    intact: int
    damage: Damage | None = None
    withheld: int = 0

    @property
    def ok(self) -> bool:
        return self.damage is None


class FollowerStats(msgspec.Struct, frozen=True, kw_only=True):
    """A live follower: the seq it has come to, and how many behind the head that is."""

    name: str
    position: int
    lag: int


class JournalStats(msgspec.Struct, frozen=True, kw_only=True):
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
    ) -> AppendResult:
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
    ) -> AsyncIterator[FactBatch]:
        """What is there now, after a cursor, its text or a fact id; None is the oldest kept.

        A filtered read ends with an empty batch where its last facts did not pass.
        """
        ...

    def follow(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
    ) -> AsyncIterator[FactBatch]:
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

    async def thread(self, thread_id: str) -> CatalogueThread | None: ...

    async def save_snapshot(
        self, thread_id: str, cursor: Cursor, data: bytes, kind: str = "projection"
    ) -> StoredSnapshot: ...

    async def snapshot(
        self, thread_id: str, kind: str = "projection", at: Cursor | None = None
    ) -> StoredSnapshot | None:
        """The newest snapshot of a thread, at or before `at`."""
        ...

    async def retain(self, policy: RetentionPolicy) -> RemovalResult: ...

    async def compact(self, policy: CompactionPolicy | None = None) -> RemovalResult: ...

    async def verify(self) -> VerifyReport: ...

    async def chain_point(self, seq: int) -> ChainPoint:
        """The first place from `seq` on at which the chain's hash is known; raises
        `CursorFromFuture` past the head. Where facts were removed, that may be a later place.
        """
        ...

    def read_removed(self) -> AsyncIterator[RemovedFact]:
        """What is left of each fact that was removed, by seq."""
        ...

    def records(self) -> AsyncIterator[CatalogueRecord]:
        """Everything that is kept of each thread, in no order."""
        ...

    async def restore(self, restoration: Restoration) -> Cursor:
        """Become the journal that is given, with its seqs; only an empty journal may.

        The epoch stays this journal's own. One that was cut short is to be thrown away.
        """
        ...

    async def stats(self) -> JournalStats: ...


_BACKENDS: Final = {
    "sqlite": ("factwire.journal.sqlite", "open_sqlite", None),
    "postgres": ("factwire.journal.postgres", "PostgresJournal", "postgres"),
    "postgresql": ("factwire.journal.postgres", "PostgresJournal", "postgres"),
    "nats": ("factwire.journal.nats", "NatsJournal", "nats"),
    "memory": ("factwire.journal.memory_journal", "open_memory", None),
}
"""Scheme → module, what to call with the URL, and the extra that the module needs."""

JOURNAL_SCHEMES: Final = tuple(_BACKENDS)
"""What a journal's URL may begin with."""


def open_journal(url: str) -> Journal:
    """The journal at a URL, to be opened with `async with`.

    `sqlite:PATH` (`?mode=ro` beside a writer), `postgres://…`, `nats://…` or `memory:`.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in _BACKENDS:
        schemes = ", ".join(f"{name}:" for name in JOURNAL_SCHEMES)
        raise JournalUrlError(f"expected a URL that begins with one of {schemes}, got {url!r}")
    module, name, extra = _BACKENDS[scheme]
    try:
        backend = import_module(module)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("factwire"):
            raise
        message = f"{scheme}: needs {error.name}; install factwire[{extra}]"
        raise JournalUrlError(message) from error
    open_backend = cast("Callable[[str], Journal]", getattr(backend, name))
    return open_backend(url)
