"""Chunks of the hash chain: committed facts as joined lines beside a light index.

A chunk is immutable bytes. Reading takes slices of them and never decodes a fact; a chunk whose
bytes do not match its checksums is not served. Each commit is a link that hashes its lines and the
link before it; what retention and compaction remove leaves a record in the same chain. A chain
point lets somebody outside tell whether a journal is still the one that it was.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Final
from zlib import crc32

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.shapes import decode_object, decode_plain, read_checked_fact
from factwire.journal.cursor import Bounds, Cursor, check_cursor
from factwire.journal.errors import ChainPointUnknown, JournalCorrupt
from factwire.journal.filter import Filter, Groups, Keys, list_keys

GENESIS: Final = sha256(b"factwire journal").digest()
"""What the first link follows."""


class ChainLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit inside a chunk into which several were merged."""

    facts: int
    size: int
    hash: bytes


class Compacted(msgspec.Struct, frozen=True, kw_only=True, tag="compacted"):
    """The facts of `first`–`last` were thinned out; what is left hashes to `digest`."""

    first: int
    last: int
    prev: bytes
    hash: bytes
    digest: bytes
    dropped: int


class Truncated(msgspec.Struct, frozen=True, kw_only=True, tag="truncated"):
    """Everything up to `floor` was removed; the chain stood at `hash` there."""

    floor: int
    hash: bytes
    dropped: int


RecordBody = Compacted | Truncated


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A link without facts, standing after the fact at `after`."""

    after: int
    prev: bytes
    hash: bytes
    body: bytes

    def content(self) -> RecordBody:
        return _decoder.decode(self.body)


_decoder: Final = msgspec.msgpack.Decoder[RecordBody](RecordBody)


def hash_link(prev: bytes, first: int, facts: int, data: bytes | memoryview) -> bytes:
    """The hash of a commit of `facts` facts from `first` on, whose lines are `data`."""
    digest = sha256(prev)
    digest.update(b"link %d %d %d\n" % (first, facts, len(data)))
    digest.update(data)
    return digest.digest()


def build_record(after: int, prev: bytes, content: RecordBody) -> Record:
    """The record that says `content`, to be appended after `prev`."""
    body = msgspec.msgpack.encode(content)
    return Record(after=after, prev=prev, hash=_hash_record(prev, after, body), body=body)


def is_record_intact(record: Record) -> bool:
    """Whether a record's hash is the one its content has."""
    return record.hash == _hash_record(record.prev, record.after, record.body)


def digest_remains(seqs: tuple[int, ...], data: bytes) -> bytes:
    """The digest of what a compaction left."""
    digest = sha256(b"remains %d %d\n" % (len(seqs), len(data)))
    digest.update(msgspec.msgpack.encode(seqs))
    digest.update(data)
    return digest.digest()


def _hash_record(prev: bytes, after: int, body: bytes) -> bytes:
    return sha256(prev + b"record %d %d\n" % (after, len(body)) + body).digest()


_GroupRows = tuple[tuple[Keys, list[int]], ...]
_index_decoder: Final = msgspec.msgpack.Decoder[_GroupRows](_GroupRows)
_encoder: Final = msgspec.msgpack.Encoder()


class FactBatch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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
        """Resume after this batch."""
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
    links: tuple[ChainLink, ...] = ()
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


def group_by_keys(keys: Iterable[Keys]) -> Groups:
    """The positions of facts with these keys."""
    found: defaultdict[Keys, list[int]] = defaultdict(list)
    for position, names in enumerate(keys):
        found[names].append(position)
    return found


def encode_index(keys: Iterable[Keys]) -> bytes:
    """The encoded index of facts with these keys."""
    return _encoder.encode(tuple(group_by_keys(keys).items()))


def build_chunk(prev: bytes, first: int, lines: Sequence[bytes], groups: Groups) -> Chunk:
    """The chunk of freshly committed lines (without line ends), with their keys."""
    data = b"\n".join((*lines, b""))
    index = _encoder.encode(tuple(groups.items()))
    digest = hash_link(prev, first, len(lines), data)
    chunk = Chunk(
        first=first,
        last=first + len(lines) - 1,
        data=data,
        index=index,
        prev=prev,
        hash=digest,
        check=b"",
        body=sum_data(data),
    )
    return msgspec.structs.replace(chunk, check=_sum_chunk_outline(chunk))


def merge_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Adjacent whole chunks as one that still holds each of their links."""
    data = b"".join(chunk.data for chunk in chunks)
    index = _merge_indexes(chunks)
    links = tuple(link for chunk in chunks for link in list_links(chunk))
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
        body=sum_data(data),
    )
    return msgspec.structs.replace(whole, check=_sum_chunk_outline(whole))


def thin_chunk(chunk: Chunk, keep: Callable[[int], bool]) -> tuple[Chunk, Compacted]:
    """The chunk with only those facts whose seq `keep` accepts, and what the chain must record."""
    lines = zip(chunk.places(), chunk.lines(), strict=True)
    kept = [(seq, line) for seq, line in lines if keep(seq)]
    return _rewrite_chunk(chunk, kept, chunk.facts - len(kept))


def build_gapped_chunk(
    prev: bytes, first: int, last: int, kept: Sequence[tuple[int, bytes]]
) -> tuple[Chunk, Compacted]:
    """The chunk of `first`–`last`, of which only some facts ever were in this journal."""
    digest = hash_link(prev, first, len(kept), b"".join(line + b"\n" for _, line in kept))
    outline = Chunk(first=first, last=last, data=b"", index=b"", prev=prev, hash=digest, check=b"")
    return _rewrite_chunk(outline, kept, last - first + 1 - len(kept))


def _rewrite_chunk(
    chunk: Chunk, kept: Sequence[tuple[int, bytes]], dropped: int
) -> tuple[Chunk, Compacted]:
    """What is left of a chunk, and the record that says so."""
    seqs = tuple(seq for seq, _ in kept)
    data = b"".join(line + b"\n" for _, line in kept)
    rewritten = Chunk(
        first=chunk.first,
        last=chunk.last,
        data=data,
        index=encode_index([list_keys(decode_line(line)) for _, line in kept]),
        prev=chunk.prev,
        hash=chunk.hash,
        check=b"",
        seqs=seqs,
        body=sum_data(data),
    )
    rewritten = msgspec.structs.replace(rewritten, check=_sum_chunk_outline(rewritten))
    return rewritten, Compacted(
        first=chunk.first,
        last=chunk.last,
        prev=chunk.prev,
        hash=chunk.hash,
        digest=digest_remains(seqs, data),
        dropped=dropped,
    )


def is_withheld(chunk: "Chunk | MirroredChunk") -> bool:
    """Whether a mirror was given the place of a chunk in the chain and none of its facts."""
    return chunk.seqs == () and bool(chunk.links)


def list_links(chunk: Chunk) -> tuple[ChainLink, ...]:
    """The commits that a whole chunk is made of."""
    return chunk.links or (ChainLink(chunk.facts, len(chunk.data), chunk.hash),)


def ensure_sound(chunk: Chunk) -> Chunk:
    """The chunk itself; raises `JournalCorrupt` when its bytes are not those that were written."""
    if sum_data(chunk.data) != chunk.body:
        raise JournalCorrupt(
            "the bytes do not match their checksum", first=chunk.first, last=chunk.last
        )
    return ensure_outline(chunk)


def ensure_outline(chunk: Chunk) -> Chunk:
    """The chunk itself, of which all but the data has been checked."""
    if chunk.check != _sum_chunk_outline(chunk):
        raise JournalCorrupt(
            "the index does not match its checksum", first=chunk.first, last=chunk.last
        )
    return chunk


def select_batch(
    chunk: Chunk,
    epoch: str,
    *,
    after: int = 0,
    wanted: Filter | None = None,
    limit: int | None = None,
    groups: Groups | None = None,
) -> FactBatch:
    """What a chunk has past `after` that a filter lets through, at most `limit` facts.

    `groups` spares decoding the chunk's index where it is at hand.
    """
    first = max(chunk.first, after + 1)
    places = chunk.places()
    if wanted is None and first == chunk.first and (limit is None or limit >= len(places)):
        return FactBatch(epoch=epoch, first=first, last=chunk.last, seqs=places, data=chunk.data)
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
    return FactBatch(
        epoch=epoch,
        first=first,
        last=last,
        seqs=tuple(places[position] for position in picked),
        data=b"".join(lines[position] + b"\n" for position in picked),
    )


def join_batches(batches: Sequence[FactBatch]) -> FactBatch:
    """Adjacent batches as one, so that a waiting socket gets one write."""
    if len(batches) == 1:
        return batches[0]
    return FactBatch(
        epoch=batches[0].epoch,
        first=batches[0].first,
        last=batches[-1].last,
        seqs=tuple(seq for batch in batches for seq in batch.seqs),
        data=b"".join(batch.data for batch in batches),
    )


def widen_batch(batch: FactBatch, first: int) -> FactBatch:
    """The batch with what was passed over before it, from `first` on."""
    return batch if batch.first == first else msgspec.structs.replace(batch, first=first)


def empty_batch(epoch: str, first: int, last: int) -> FactBatch:
    """A batch of which a filter let nothing through."""
    return FactBatch(epoch=epoch, first=first, last=last, seqs=(), data=b"")


def find_anchor(chunk: Chunk, seq: int) -> bytes:
    """The hash of the commit that a seq of the chunk belongs to."""
    if chunk.seqs is not None:
        return chunk.hash
    end = chunk.first - 1
    for link in list_links(chunk):
        end += link.facts
        if seq <= end:
            return link.hash
    return chunk.hash


def _merge_indexes(chunks: Sequence[Chunk]) -> bytes:
    found: defaultdict[Keys, list[int]] = defaultdict(list)
    start = 0
    for chunk in chunks:
        for keys, places in chunk.groups().items():
            found[keys] += [start + place for place in places]
        start += chunk.facts
    return _encoder.encode(tuple(found.items()))


def sum_outline(header: tuple[object, ...], index: bytes) -> bytes:
    """The checksum of all but the data: first, last, prev, hash, links, seqs, body, and index."""
    return sha256(_encoder.encode(header) + index).digest()


def sum_data(data: bytes) -> bytes:
    """The checksum of the data."""
    return crc32(data).to_bytes(4)


def _sum_chunk_outline(chunk: Chunk) -> bytes:
    header = (chunk.first, chunk.last, chunk.prev, chunk.hash, chunk.links, chunk.seqs, chunk.body)
    return sum_outline(header, chunk.index)


class ChainPoint(msgspec.Struct, frozen=True):
    """The chain has `hash` behind the commit whose last fact is, or was, at `seq`."""

    seq: int
    hash: bytes


def find_chain_point(chunk: Chunk, seq: int) -> ChainPoint:
    """The end of the commit that a seq of the chunk belongs to; of a thinned chunk, its own end."""
    if chunk.seqs is None:
        end = chunk.first - 1
        for link in list_links(chunk):
            end += link.facts
            if seq <= end:
                return ChainPoint(end, link.hash)
    return ChainPoint(chunk.last, chunk.hash)


class MirroredChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A chunk on its way to a mirror, which makes the index and the checksums anew."""

    first: int
    last: int
    data: bytes
    prev: bytes
    hash: bytes
    seqs: tuple[int, ...] | None = None
    links: tuple[ChainLink, ...] = ()


class ChainStart(msgspec.Struct, frozen=True):
    """Where a chain begins to be there: everything up to `base` was removed, and the chain has
    `hash` behind it. Readers begin after `floor`.
    """

    base: int
    hash: bytes
    floor: int


class ChainBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The chunks that follow a point of a chain, and records of the same chain that the reader has
    not had yet, in their order. Records come as early as they can, because they vouch for chunks
    before them.
    """

    start: ChainStart
    records: tuple[Record, ...]
    chunks: tuple[MirroredChunk, ...]

    def has_gaps(self, after: int) -> bool:
        """Whether facts past `after` were removed, so that they alone do not say all that the
        journal keeps of its threads and ids.
        """
        skipped = self.start.base > 0 and after == 0
        return skipped or any(
            chunk.seqs is not None and not is_withheld(chunk) for chunk in self.chunks
        )


def to_mirrored(chunk: Chunk, after: int) -> MirroredChunk:
    """What a mirror that ends at `after` lacks of a chunk. Raises `ChainPointUnknown` where no
    commit ends there.
    """
    links, first, start, prev = chunk.links, chunk.first, 0, chunk.prev
    if first <= after:
        left = list(list_links(chunk)) if chunk.seqs is None or is_withheld(chunk) else []
        while left and first <= after:
            link = left.pop(0)
            first, start, prev = first + link.facts, start + link.size, link.hash
        if not left or first != after + 1:
            raise ChainPointUnknown(f"no commit of the chain ends at {after}")
        links = tuple(left)
    return MirroredChunk(
        first=first,
        last=chunk.last,
        data=chunk.data[start:] if start else chunk.data,
        prev=prev,
        hash=chunk.hash,
        seqs=chunk.seqs,
        links=links,
    )


def withhold_facts(part: MirroredChunk, private: Collection[int]) -> list[MirroredChunk]:
    """The chunk without the commits that have facts at private seqs, cut where those are. Of a
    chunk that was thinned out nothing can be left out, so that all of it is.
    """
    if part.seqs is not None:
        return [_withhold(part.first, part.last, part.prev, part.hash)] if private else [part]
    whole = ChainLink(part.last - part.first + 1, len(part.data), part.hash)
    own: Sequence[ChainLink] = part.links or (whole,)
    cut: list[MirroredChunk] = []
    first, start, prev = part.first, 0, part.prev
    for is_private, run in groupby(
        _place_links(part.first, own),
        key=lambda placed: any(seq in private for seq in placed[0]),
    ):
        links = [link for _, link in run]
        last = first + sum(link.facts for link in links) - 1
        end = start + sum(link.size for link in links)
        if is_private:
            cut.append(_withhold(first, last, prev, links[-1].hash))
        else:
            cut.append(
                MirroredChunk(
                    first=first,
                    last=last,
                    data=part.data[start:end],
                    prev=prev,
                    hash=links[-1].hash,
                    links=tuple(links) if len(links) > 1 else (),
                )
            )
        first, start, prev = last + 1, end, links[-1].hash
    return cut


def _place_links(first: int, links: Sequence[ChainLink]) -> Iterator[tuple[range, ChainLink]]:
    """Each commit, with the seqs of its facts."""
    for link in links:
        yield range(first, first + link.facts), link
        first += link.facts


def _withhold(first: int, last: int, prev: bytes, digest: bytes) -> MirroredChunk:
    """The outline of some commits as one: not even their number and sizes are told."""
    link = ChainLink(last - first + 1, 0, digest)
    return MirroredChunk(
        first=first, last=last, data=b"", prev=prev, hash=digest, seqs=(), links=(link,)
    )


def rebuild_chunk(part: MirroredChunk, keys: Iterable[Keys]) -> Chunk:
    """The chunk that a mirror stores, whose facts have these keys."""
    chunk = Chunk(
        first=part.first,
        last=part.last,
        data=part.data,
        index=encode_index(keys),
        prev=part.prev,
        hash=part.hash,
        check=b"",
        seqs=part.seqs,
        links=part.links,
        body=sum_data(part.data),
    )
    return msgspec.structs.replace(chunk, check=_sum_chunk_outline(chunk))


def ensure_reached(seq: int, bounds: Bounds) -> int:
    """The seq; raises `CursorFromFuture` for one past the head."""
    return check_cursor(Cursor(bounds.epoch, seq), msgspec.structs.replace(bounds, floor=0))
