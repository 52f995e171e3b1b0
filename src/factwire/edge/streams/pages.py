"""Pages: a plain read of a face, with the bytes that its stream would have sent.

A page ends where its cursor says. Reading or streaming on from there gives what follows, under the
same filter or another.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import msgspec

from factwire.edge.limits import CATCH_UP_FACTS
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.messages import Teller
from factwire.journal import Cursor, Journal, Stretch


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages; `cursor` is where the next page begins, `more` whether there is one now."""

    texts: list[bytes]
    cursor: Cursor
    more: bool

    def body(self) -> bytes:
        """The page as JSON, its messages byte for byte."""
        more = b"true" if self.more else b"false"
        cursor = str(self.cursor).encode()
        return b'{"items":[%s],"cursor":"%s","more":%s}' % (b",".join(self.texts), cursor, more)


async def page(journal: Journal, teller: Teller, after: Cursor | None, limit: int) -> Page:
    """At most `limit` messages after a cursor; raises `CursorError`, having read nothing."""
    head = await journal.head()
    texts: list[bytes] = []
    # At least once: only a read knows whether a cursor is one. It may be newer than the head was.
    reached = await _read_piece(journal, teller, after, texts, limit) or max(head, after or head)
    while reached.seq < head.seq and len(texts) < limit:
        reached = await _read_piece(journal, teller, reached, texts, limit) or head
    return Page(texts=texts, cursor=reached, more=reached.seq < head.seq)


async def _read_piece(
    journal: Journal, teller: Teller, after: Cursor | None, texts: list[bytes], limit: int
) -> Cursor | None:
    """Add messages up to the limit; the place that was reached, None where nothing was left."""
    reached = None
    reading = journal.read(after, filter=teller.selection.filter, limit=CATCH_UP_FACTS)
    async with aclosing(cast("AsyncGenerator[Stretch]", reading)) as stretches:
        async for stretch in stretches:
            reached = stretch.cursor
            for message in teller.messages(Arrival(stretch), range(len(stretch.seqs))):
                texts.append(message.text)
                if len(texts) == limit:
                    return Cursor(stretch.epoch, message.seq)
    return reached
