"""The journal: facts appended once, durable, ordered, resumable and provably unchanged."""

from factwire.journal.catalogue import Thread, ThreadPage, ThreadRecord, ThreadStatus
from factwire.journal.chain_point import ChainPoint
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
    RestoreRefused,
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
from factwire.journal.removed import Removed
from factwire.journal.restore import Present, Restoration

__all__ = [
    "AppendRefused",
    "Appended",
    "ChainPoint",
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
    "Present",
    "Removal",
    "Removed",
    "Restoration",
    "RestoreRefused",
    "Retention",
    "SequenceConflict",
    "Snapshot",
    "Stats",
    "Stretch",
    "Superseding",
    "Thread",
    "ThreadPage",
    "ThreadRecord",
    "ThreadStatus",
    "UnknownFact",
    "UnstorableFact",
    "VerifyReport",
    "open_journal",
]
