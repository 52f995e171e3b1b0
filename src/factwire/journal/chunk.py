"""Chunks: committed facts as joined lines beside a light index, hashed and handed out as they are.

A chunk is immutable bytes. Reading takes slices of them and never decodes a fact; a chunk whose
bytes do not match its hash is not served.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final
from zlib import crc32

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.shapes import decode_object, decode_plain, read_checked_fact
from factwire.journal.chain import Compacted, Link, link_hash, remains_digest
from factwire.journal.cursor import Cursor
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import Filter, Groups, Keys, keys_of

_GroupRows = tuple[tuple[Keys, list[int]], ...]
_index_decoder: Final = msgspec.msgpack.Decoder[_GroupRows](_GroupRows)
_encoder: Final = msgspec.msgpack.Encoder()


class Stretch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Facts from one contiguous range of seqs: all of them, or those a filter let through.

    `first` and `last` are what was looked at, so that a reader may resume after `last` even where
    the filter let nothing through.
    """

    epoch: str
    first: int
    last: int
    seqs: Sequence[int]
    data: bytes

    @property
    def cursor(self) -> Cursor:
        """Resume after this stretch."""
        return Cursor(self.epoch, self.last)

    def lines(self) -> list[bytes]:
        """The stored bytes of each fact, without the line end."""
        return self.data.split(b"\n")[:-1]

    def facts(self) -> Iterator[tuple[int, Fact]]:
        """Each fact with its seq."""
        return zip(self.seqs, map(decode_line, self.lines()), strict=True)


class Chunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The facts of `first`–`last` as stored; `seqs` is None where none of them is missing.

    Readers check two sums: `body`, a CRC-32 of the data, and `check`, a SHA-256 of all the rest.
    That finds whatever a disk does to the bytes, at a fraction of the cost of the chain's own
    hashes, which a walk recomputes.
    """

    first: int
    last: int
    data: bytes
    index: bytes
    prev: bytes
    hash: bytes
    check: bytes
    seqs: tuple[int, ...] | None = None
    links: tuple[Link, ...] = ()
    body: bytes = b""

    @property
    def facts(self) -> int:
        return self.last - self.first + 1 if self.seqs is None else len(self.seqs)

    def places(self) -> Sequence[int]:
        """The seq of each line."""
        return range(self.first, self.last + 1) if self.seqs is None else self.seqs

    def lines(self) -> list[bytes]:
        return self.data.split(b"\n")[:-1]

    def groups(self) -> Groups:
        """Keys → positions of the facts that have exactly these."""
        return dict(_index_decoder.decode(self.index))

    def positions(self) -> dict[str, list[int]]:
        """Key → positions of the facts that have it among others."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for keys, places in self.groups().items():
            for key in keys:
                found[key] += places
        return {key: sorted(places) for key, places in found.items()}


def decode_line(line: bytes) -> Fact:
    """The fact of a stored line."""
    return decode_plain(line) or read_checked_fact(decode_object(line), "facts")


def grouped(keys: Iterable[Keys]) -> Groups:
    """The positions of facts with these keys."""
    found: defaultdict[Keys, list[int]] = defaultdict(list)
    for position, names in enumerate(keys):
        found[names].append(position)
    return found


def index_of(keys: Iterable[Keys]) -> bytes:
    """The encoded index of facts with these keys."""
    return _encoder.encode(tuple(grouped(keys).items()))


def new_chunk(prev: bytes, first: int, lines: Sequence[bytes], groups: Groups) -> Chunk:
    """The chunk of freshly committed lines (without line ends), with their keys."""
    data = b"\n".join((*lines, b""))
    index = _encoder.encode(tuple(groups.items()))
    digest = link_hash(prev, first, len(lines), data)
    chunk = Chunk(
        first=first,
        last=first + len(lines) - 1,
        data=data,
        index=index,
        prev=prev,
        hash=digest,
        check=b"",
        body=data_sum(data),
    )
    return msgspec.structs.replace(chunk, check=_outline_check(chunk))


def merged(chunks: Sequence[Chunk]) -> Chunk:
    """Adjacent whole chunks as one that still holds each of their links."""
    data = b"".join(chunk.data for chunk in chunks)
    index = _merged_index(chunks)
    links = tuple(link for chunk in chunks for link in links_of(chunk))
    head = chunks[0]
    last = chunks[-1]
    whole = Chunk(
        first=head.first,
        last=last.last,
        data=data,
        index=index,
        prev=head.prev,
        hash=last.hash,
        check=b"",
        links=links,
        body=data_sum(data),
    )
    return msgspec.structs.replace(whole, check=_outline_check(whole))


def thinned(chunk: Chunk, keep: Callable[[int], bool]) -> tuple[Chunk, Compacted]:
    """The chunk with only those facts whose seq `keep` accepts, and what the chain must record."""
    lines = zip(chunk.places(), chunk.lines(), strict=True)
    kept = [(seq, line) for seq, line in lines if keep(seq)]
    return _left(chunk, kept, chunk.facts - len(kept))


def gapped_chunk(
    prev: bytes, first: int, last: int, kept: Sequence[tuple[int, bytes]]
) -> tuple[Chunk, Compacted]:
    """The chunk of `first`–`last`, of which only some facts ever were in this journal."""
    digest = link_hash(prev, first, len(kept), b"".join(line + b"\n" for _, line in kept))
    outline = Chunk(first=first, last=last, data=b"", index=b"", prev=prev, hash=digest, check=b"")
    return _left(outline, kept, last - first + 1 - len(kept))


def _left(chunk: Chunk, kept: Sequence[tuple[int, bytes]], dropped: int) -> tuple[Chunk, Compacted]:
    """What is left of a chunk, and the record that says so."""
    seqs = tuple(seq for seq, _ in kept)
    data = b"".join(line + b"\n" for _, line in kept)
    rewritten = Chunk(
        first=chunk.first,
        last=chunk.last,
        data=data,
        index=index_of([keys_of(decode_line(line)) for _, line in kept]),
        prev=chunk.prev,
        hash=chunk.hash,
        check=b"",
        seqs=seqs,
        body=data_sum(data),
    )
    rewritten = msgspec.structs.replace(rewritten, check=_outline_check(rewritten))
    return rewritten, Compacted(
        first=chunk.first,
        last=chunk.last,
        prev=chunk.prev,
        hash=chunk.hash,
        digest=remains_digest(seqs, data),
        dropped=dropped,
    )


def links_of(chunk: Chunk) -> tuple[Link, ...]:
    """The commits that a whole chunk is made of."""
    return chunk.links or (Link(chunk.facts, len(chunk.data), chunk.hash),)


def ensure_sound(chunk: Chunk) -> Chunk:
    """The chunk itself; raises `JournalCorrupt` when its bytes are not those that were written."""
    if data_sum(chunk.data) != chunk.body:
        raise JournalCorrupt("bytes and checksum differ", first=chunk.first, last=chunk.last)
    return ensure_outline(chunk)


def ensure_outline(chunk: Chunk) -> Chunk:
    """The chunk itself, of which all but the data has been checked."""
    if chunk.check != _outline_check(chunk):
        raise JournalCorrupt("index and checksum differ", first=chunk.first, last=chunk.last)
    return chunk


def stretch_of(
    chunk: Chunk,
    epoch: str,
    *,
    after: int = 0,
    wanted: Filter | None = None,
    limit: int | None = None,
    groups: Groups | None = None,
) -> Stretch:
    """What a chunk has past `after` that a filter lets through, at most `limit` facts.

    `groups` spares decoding the chunk's index where it is at hand.
    """
    first = max(chunk.first, after + 1)
    places = chunk.places()
    if wanted is None and first == chunk.first and (limit is None or limit >= len(places)):
        return Stretch(epoch=epoch, first=first, last=chunk.last, seqs=places, data=chunk.data)
    if wanted is None:
        chosen: Sequence[int] = range(len(places))
    else:
        chosen = wanted.select(chunk.groups() if groups is None else groups)
    picked = [position for position in chosen if places[position] > after]
    last = chunk.last
    if limit is not None and len(picked) >= limit:
        picked = picked[:limit]
        last = places[picked[-1]] if picked else after
    lines = chunk.lines()
    return Stretch(
        epoch=epoch,
        first=first,
        last=last,
        seqs=tuple(places[position] for position in picked),
        data=b"".join(lines[position] + b"\n" for position in picked),
    )


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """Adjacent stretches as one, so that a waiting socket gets one write."""
    if len(stretches) == 1:
        return stretches[0]
    return Stretch(
        epoch=stretches[0].epoch,
        first=stretches[0].first,
        last=stretches[-1].last,
        seqs=tuple(seq for stretch in stretches for seq in stretch.seqs),
        data=b"".join(stretch.data for stretch in stretches),
    )


def spanning(stretch: Stretch, first: int) -> Stretch:
    """The stretch with what was passed over before it, from `first` on."""
    return stretch if stretch.first == first else msgspec.structs.replace(stretch, first=first)


def nothing(epoch: str, first: int, last: int) -> Stretch:
    """A stretch of which a filter let nothing through."""
    return Stretch(epoch=epoch, first=first, last=last, seqs=(), data=b"")


def anchor_in(chunk: Chunk, seq: int) -> bytes:
    """The hash of the commit that a seq of the chunk belongs to."""
    if chunk.seqs is not None:
        return chunk.hash
    end = chunk.first - 1
    for link in links_of(chunk):
        end += link.facts
        if seq <= end:
            return link.hash
    return chunk.hash


def _merged_index(chunks: Sequence[Chunk]) -> bytes:
    found: defaultdict[Keys, list[int]] = defaultdict(list)
    start = 0
    for chunk in chunks:
        for keys, places in chunk.groups().items():
            found[keys] += [start + place for place in places]
        start += chunk.facts
    return _encoder.encode(tuple(found.items()))


def outline_sum(header: tuple[object, ...], index: bytes) -> bytes:
    """The checksum of all but the data: first, last, prev, hash, links, seqs, body, and index."""
    return sha256(_encoder.encode(header) + index).digest()


def data_sum(data: bytes) -> bytes:
    """The checksum of the data."""
    return crc32(data).to_bytes(4)


def _outline_check(chunk: Chunk) -> bytes:
    header = (chunk.first, chunk.last, chunk.prev, chunk.hash, chunk.links, chunk.seqs, chunk.body)
    return outline_sum(header, chunk.index)
