"""Cursors: the one way to say how far a reader has come, and whether it may resume from there.

A cursor names the last fact that was taken in, by epoch and seq. Its text has a fixed width, so
that the cursors of one epoch sort as text. An epoch is minted when a journal is created, imported
or found to be an older copy; a cursor of another epoch can therefore never match by accident.
A reader resumes exactly, or not at all.
"""

import re
from collections.abc import Callable
from secrets import token_hex
from typing import Final

import msgspec

from factwire.journal.errors import (
    CursorError,
    CursorExpired,
    CursorFromFuture,
    CursorMalformed,
    CursorUnknownEpoch,
    UnknownFact,
)

MARK: Final = "fw1."
"""How every cursor's text begins; other text handed to `read` is taken for a fact id."""

_TEXT: Final = re.compile(r"fw1\.([0-9a-f]{16})\.([0-9]{16})")


class Cursor(msgspec.Struct, frozen=True, order=True):
    """Everything up to and including `seq` has been seen; seq 0 is the place before all facts."""

    epoch: str
    seq: int

    def __str__(self) -> str:
        return f"{MARK}{self.epoch}.{self.seq:016d}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """The cursor that `str(cursor)` wrote; anything else raises `CursorMalformed`."""
        match = _TEXT.fullmatch(text)
        if match is None or not text.isascii():
            shown = text if len(text) <= 80 else text[:80] + "…"  # noqa: PLR2004
            raise CursorMalformed(f"expected {MARK}<16 hex>.<16 digits>, got {shown!r}")
        return cls(match[1], int(match[2]))


def new_epoch() -> str:
    """A name that no other journal, and no other life of this one, has."""
    return token_hex(8)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What of a journal can be read: after `floor`, up to `head`; `oldest` is where None starts."""

    epoch: str
    head: int
    floor: int
    oldest: int
    nearest: Cursor | None = None

    def error(self, kind: type[CursorError], message: str) -> CursorError:
        return kind(message, nearest=self.nearest, head=Cursor(self.epoch, self.head))


def resolve_start(
    after: Cursor | str | None, bounds: Bounds, find: Callable[[str], int | None]
) -> int:
    """The seq to resume after; `find` tells the seq of a fact id."""
    if after is None:
        return bounds.oldest
    if isinstance(after, Cursor):
        return check_cursor(after, bounds)
    if after.startswith(MARK):
        return check_cursor(parse_cursor(after, bounds), bounds)
    return check_cursor(require_fact_cursor(after, find(after), bounds), bounds)


def require_fact_cursor(fact_id: str, seq: int | None, bounds: Bounds) -> Cursor:
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
        message = (
            f"the cursor belongs to epoch {cursor.epoch}, but the journal is at epoch "
            f"{bounds.epoch}"
        )
        raise bounds.error(CursorUnknownEpoch, f"{message}; start again from a snapshot")
    if cursor.seq > bounds.head:
        message = f"the cursor is at {cursor.seq}, but the journal ends at {bounds.head}"
        raise bounds.error(CursorFromFuture, message)
    if cursor.seq < bounds.floor:
        message = f"the cursor is at {cursor.seq}, but facts up to {bounds.floor} have been removed"
        raise bounds.error(CursorExpired, f"{message}; start from the nearest snapshot")
    return cursor.seq


def resolve_page_start(after: Cursor | str | None, bounds: Bounds) -> int:
    """Threads below this seq of last activity belong to the page after `after`."""
    if after is None:
        return bounds.head + 1
    cursor = parse_cursor(after, bounds) if isinstance(after, str) else after
    return check_cursor(cursor, msgspec.structs.replace(bounds, floor=0))
