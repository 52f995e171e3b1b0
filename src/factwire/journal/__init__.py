"""The journal: facts appended once, durable, ordered, resumable and provably unchanged."""

from factwire.journal.catalogue import Thread, ThreadPage, ThreadStatus
from factwire.journal.chunk import Stretch
from factwire.journal.cursor import Cursor
from factwire.journal.errors import (
    AppendRefused,
    ConflictingFact,
    CursorError,
    CursorExpired,
    CursorFromFuture,
    CursorMalformed,
    CursorUnknownEpoch,
    JournalBusy,
    JournalClosed,
    JournalCorrupt,
    JournalError,
    JournalReadOnly,
    JournalUnavailable,
    JournalUnwritable,
    JournalUrlError,
    SequenceConflict,
    UnknownFact,
    UnstorableFact,
)
from factwire.journal.filter import Filter
from factwire.journal.opening import open_journal
from factwire.journal.policy import Compaction, Removal, Retention, Superseding
from factwire.journal.protocol import (
    Appended,
    Damage,
    FollowerStats,
    Journal,
    Snapshot,
    Stats,
    VerifyReport,
)

__all__ = [
    "AppendRefused",
    "Appended",
    "Compaction",
    "ConflictingFact",
    "Cursor",
    "CursorError",
    "CursorExpired",
    "CursorFromFuture",
    "CursorMalformed",
    "CursorUnknownEpoch",
    "Damage",
    "Filter",
    "FollowerStats",
    "Journal",
    "JournalBusy",
    "JournalClosed",
    "JournalCorrupt",
    "JournalError",
    "JournalReadOnly",
    "JournalUnavailable",
    "JournalUnwritable",
    "JournalUrlError",
    "Removal",
    "Retention",
    "SequenceConflict",
    "Snapshot",
    "Stats",
    "Stretch",
    "Superseding",
    "Thread",
    "ThreadPage",
    "ThreadStatus",
    "UnknownFact",
    "UnstorableFact",
    "VerifyReport",
    "open_journal",
]
