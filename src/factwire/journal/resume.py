"""Whether a reader may resume from where it says: exactly, or not at all."""

from collections.abc import Callable

import msgspec

from factwire.journal.cursor import MARK, Cursor
from factwire.journal.errors import (
    CursorError,
    CursorExpired,
    CursorFromFuture,
    CursorMalformed,
    CursorUnknownEpoch,
    UnknownFact,
)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What of a journal can be read: after `floor`, up to `head`; `oldest` is where None starts."""

    epoch: str
    head: int
    floor: int
    oldest: int
    nearest: Cursor | None = None

    def error(self, kind: type[CursorError], message: str) -> CursorError:
        return kind(message, nearest=self.nearest, head=Cursor(self.epoch, self.head))


def resume_after(
    after: Cursor | str | None, bounds: Bounds, find: Callable[[str], int | None]
) -> int:
    """The seq to resume after; `find` tells the seq of a fact id."""
    if after is None:
        return bounds.oldest
    if isinstance(after, Cursor):
        return check_cursor(after, bounds)
    if after.startswith(MARK):
        return check_cursor(parse_cursor(after, bounds), bounds)
    return check_cursor(fact_cursor(after, find(after), bounds), bounds)


def fact_cursor(fact_id: str, seq: int | None, bounds: Bounds) -> Cursor:
    """The cursor of a fact that was looked up; raises `UnknownFact` where nothing was found."""
    if seq is None:
        raise bounds.error(UnknownFact, f"no fact has the id {fact_id!r}; resume from a cursor")
    return Cursor(bounds.epoch, seq)


def parse_cursor(text: str, bounds: Bounds) -> Cursor:
    """The cursor of a text, its error completed with what the journal knows."""
    try:
        return Cursor.parse(text)
    except CursorMalformed as error:
        raise bounds.error(CursorMalformed, str(error)) from None


def check_cursor(cursor: Cursor, bounds: Bounds) -> int:
    """The seq of a cursor that the journal can resume from exactly."""
    if cursor.epoch != bounds.epoch:
        message = f"the cursor is of epoch {cursor.epoch}, the journal of {bounds.epoch}"
        raise bounds.error(CursorUnknownEpoch, f"{message}; start again from a snapshot")
    if cursor.seq > bounds.head:
        message = f"the cursor is at {cursor.seq}, the journal ends at {bounds.head}"
        raise bounds.error(CursorFromFuture, message)
    if cursor.seq < bounds.floor:
        message = f"the cursor is at {cursor.seq}, facts up to {bounds.floor} are gone"
        raise bounds.error(CursorExpired, f"{message}; start from the nearest snapshot")
    return cursor.seq


def page_start(after: Cursor | str | None, bounds: Bounds) -> int:
    """Threads below this seq of last activity belong to the page after `after`."""
    if after is None:
        return bounds.head + 1
    cursor = parse_cursor(after, bounds) if isinstance(after, str) else after
    return check_cursor(cursor, msgspec.structs.replace(bounds, floor=0))
