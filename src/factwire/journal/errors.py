"""What a journal refuses, and how it says so.

    JournalError
    ├── AppendRefused          the batch changed nothing
    │   ├── ConflictingFact    the id is known with another body
    │   ├── SequenceConflict   a thread's next sequence is another one
    │   └── UnstorableFact     the fact has no JSON form
    ├── CursorError            nothing was replayed; carries `nearest` and `head`
    │   ├── CursorMalformed    not the text of a cursor
    │   ├── CursorUnknownEpoch of another journal, or from before a restore
    │   ├── CursorExpired      older than what retention kept
    │   ├── CursorFromFuture   past the head
    │   └── UnknownFact        no fact has this id
    ├── JournalBusy            another process holds the journal for writing
    ├── JournalClosed          used before it was opened or after it was closed
    ├── JournalCorrupt         stored bytes do not match their hash
    ├── JournalReadOnly        a write through a read-only handle
    ├── JournalUnavailable     the file or server behind the journal cannot be reached
    ├── JournalUnwritable      the disk took nothing; reads go on, the next append may work
    ├── JournalUrlError        the URL names no journal, or one whose extra is not installed
    ├── MirrorRefused          a mirror took nothing of what came
    │   ├── MirrorGap          facts before it have not come yet; carries `expected`
    │   ├── MirrorConflict     other bytes than those held at the same place
    │   └── MirrorBroken       the chain does not verify
    ├── ChainPointUnknown      the chain does not, or no longer, pass this point
    └── RestoreRefused         not an empty journal, or not what a journal can have been

Codes are stable; messages may change.
"""

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from factwire.journal.cursor import Cursor


class JournalError(Exception):
    """The root of every error that `factwire.journal` raises; `code` is stable."""

    code: str = "journal_error"

    def __copy__(self) -> Self:
        """The same once more, for another who waits; made anew it would say its words twice."""
        twin = type(self).__new__(type(self), *self.args)
        twin.__dict__.update(self.__dict__)
        return twin


class AppendRefused(JournalError):
    """A batch that broke a rule; not one fact of it was written."""

    code = "append_refused"


class ConflictingFact(AppendRefused):
    """The same id with another body; `seq` is where the first body stands."""

    code = "conflicting_fact"

    def __init__(self, fact_id: str, seq: int) -> None:
        self.fact_id = fact_id
        self.seq = seq
        super().__init__(
            f"fact {fact_id!r} is already stored at {seq} with different content; use a new id"
        )


class SequenceConflict(AppendRefused):
    """A thread does not stand where the writer thinks it stands."""

    code = "sequence_conflict"

    def __init__(self, thread_id: str, *, expected: int | None, got: int | None) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.got = got
        super().__init__(
            f"thread {thread_id!r}: expected {_sequence(expected)}, got {_sequence(got)}; "
            "read the thread again and append after its last fact"
        )


class UnstorableFact(AppendRefused):
    """A fact that cannot be written as JSON."""

    code = "unstorable_fact"

    def __init__(self, fact_id: str, reason: str) -> None:
        self.fact_id = fact_id
        super().__init__(f"fact {fact_id!r} cannot be written as JSON: {reason}")


class CursorError(JournalError):
    """A place that cannot be resumed from; `nearest` is the newest snapshot, `head` the end."""

    code = "cursor_error"

    def __init__(
        self, message: str, *, nearest: "Cursor | None" = None, head: "Cursor | None" = None
    ) -> None:
        self.nearest = nearest
        self.head = head
        super().__init__(message)


class CursorMalformed(CursorError):
    code = "cursor_malformed"


class CursorUnknownEpoch(CursorError):
    code = "cursor_unknown_epoch"


class CursorExpired(CursorError):
    code = "cursor_expired"


class CursorFromFuture(CursorError):
    code = "cursor_from_future"


class UnknownFact(CursorError):
    code = "unknown_fact"


class JournalBusy(JournalError):
    """Another process writes to this journal; `pid` is its process id where it is known."""

    code = "journal_busy"

    def __init__(self, where: str, pid: int | None) -> None:
        self.pid = pid
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{where} is open for writing in {holder}; open it with ?mode=ro")


class JournalClosed(JournalError):
    code = "journal_closed"


class JournalCorrupt(JournalError):
    """Stored bytes are not the bytes that were written; `first` and `last` say where."""

    code = "journal_corrupt"

    def __init__(self, reason: str, *, first: int | None = None, last: int | None = None) -> None:
        self.reason = reason
        self.first = first
        self.last = last
        place = "" if first is None else f" at {first}" + ("" if last is None else f"–{last}")
        super().__init__(f"the journal is damaged{place}: {reason}; run `factwire journal verify`")


class JournalReadOnly(JournalError):
    code = "journal_read_only"


class JournalUnavailable(JournalError):
    code = "journal_unavailable"


class JournalUnwritable(JournalError):
    """Nothing of the batch was written; the same append may be tried again as it is."""

    code = "journal_unwritable"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"the journal could not be written: {reason}; free some space and append again"
        )


class JournalUrlError(JournalError):
    code = "journal_url"


class RestoreRefused(JournalError):
    code = "restore_refused"


class MirrorRefused(JournalError):
    """A mirror took nothing of what came."""

    code = "mirror_refused"


class MirrorGap(MirrorRefused):
    """Facts before those that came are missing; `expected` is the seq that comes next."""

    code = "mirror_gap"

    def __init__(self, *, expected: int, got: int) -> None:
        self.expected = expected
        super().__init__(f"expected the facts from {expected} on, got those from {got} on")


class MirrorConflict(MirrorRefused):
    """Other bytes than those that the mirror holds at `first`–`last`."""

    code = "mirror_conflict"

    def __init__(self, *, first: int, last: int) -> None:
        self.first = first
        self.last = last
        super().__init__(f"the mirror holds other facts at {first}–{last}; they stay as they are")


class MirrorBroken(MirrorRefused):
    """What came does not continue the chain, or does not match its own hashes."""

    code = "mirror_broken"


class ChainPointUnknown(JournalError):
    """The chain does not pass a point, or what was there has been removed since."""

    code = "chain_point_unknown"


def _sequence(value: int | None) -> str:
    return "no thread yet" if value is None else f"sequence {value}"
