"""Chunks as they lie in their rows: checked without being decoded.

Most reads hand out whole chunks. For those neither the index nor the links of a chunk are looked
into; their bytes, as stored, are what the chunk's checksum was made of.
"""

from typing import Final

import msgspec

from factwire.journal.chain import Link
from factwire.journal.chunk import Chunk, Stretch, data_sum, outline_sum
from factwire.journal.errors import JournalCorrupt

_TYPES: Final = (int, int, bytes, bytes, bytes, bytes, bytes, bytes)

_seqs: Final = msgspec.msgpack.Decoder[tuple[int, ...]](tuple[int, ...])
_links: Final = msgspec.msgpack.Decoder[tuple[Link, ...]](tuple[Link, ...])


class Extent(msgspec.Struct, frozen=True, gc=False):
    """The columns of a row, in the order of `OUTLINE`; `data` is empty where it was not asked for.

    `seqs` and `links` are encoded, or None as in `Chunk`.
    """

    first: int
    last: int
    prev: bytes
    hash: bytes
    check: bytes
    seqs: bytes | None
    links: bytes | None
    body: bytes
    index: bytes
    data: bytes = b""

    def chunk(self) -> Chunk:
        """The same, decoded; raises `JournalCorrupt` where a value is not of its column's type."""
        kinds = (self.first, self.last, self.prev, self.hash, self.check)
        if (*map(type, (*kinds, self.body, self.index, self.data)),) != _TYPES:
            raise JournalCorrupt("a stored value is not of its type")
        return Chunk(
            first=self.first,
            last=self.last,
            data=self.data,
            index=self.index,
            prev=self.prev,
            hash=self.hash,
            check=self.check,
            seqs=None if self.seqs is None else _seqs.decode(self.seqs),
            links=() if self.links is None else _links.decode(self.links),
            body=self.body,
        )

    def stretch(self, epoch: str) -> Stretch:
        """Everything that the chunk holds."""
        seqs = range(self.first, self.last + 1) if self.seqs is None else _seqs.decode(self.seqs)
        return Stretch(epoch=epoch, first=self.first, last=self.last, seqs=seqs, data=self.data)


def ensure_extent(extent: Extent) -> Extent:
    """The extent itself; raises `JournalCorrupt` when its bytes are not those that were written."""
    if data_sum(extent.data) != extent.body:
        raise JournalCorrupt("bytes and checksum differ", first=extent.first, last=extent.last)
    return ensure_outline(extent)


def ensure_outline(extent: Extent) -> Extent:
    """The extent itself, of which all but the data has been checked."""
    links = () if extent.links is None else msgspec.Raw(extent.links)
    seqs = None if extent.seqs is None else msgspec.Raw(extent.seqs)
    header = (extent.first, extent.last, extent.prev, extent.hash, links, seqs, extent.body)
    if outline_sum(header, extent.index) != extent.check:
        raise JournalCorrupt("index and checksum differ", first=extent.first, last=extent.last)
    return extent
