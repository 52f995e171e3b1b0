"""A cursor: the one way to say how far a reader has come.

It names the last fact that was taken in, by epoch and seq. Its text has a fixed width, so that the
cursors of one epoch sort as text. An epoch is minted when a journal is created, imported or found
to be an older copy; a cursor of another epoch can therefore never match by accident.
"""

import re
from secrets import token_hex
from typing import Final

import msgspec

from factwire.journal.errors import CursorMalformed

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
