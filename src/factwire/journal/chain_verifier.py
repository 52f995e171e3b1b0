"""Walking the chain: every byte accounted for, and the first one that is not, named.

Snapshots are walked along: each must stand on the commit that it says it was made at.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from factwire.facts.issues import FactError
from factwire.journal.chunks import (
    Chunk,
    Compacted,
    Record,
    Truncated,
    decode_line,
    digest_remains,
    encode_index,
    ensure_sound,
    find_anchor,
    hash_link,
    is_record_intact,
    is_withheld,
    list_links,
)
from factwire.journal.errors import JournalCorrupt
from factwire.journal.filter import list_keys
from factwire.journal.protocol import Damage, StoredSnapshot, VerifyReport

Compactions = Mapping[tuple[int, int], Sequence[Compacted]]
"""First and last seq of a chunk → what was recorded each time that it was thinned out."""


class SnapshotAnchor(msgspec.Struct, frozen=True, gc=False):
    """Where a snapshot says that it stands; `name` is for people."""

    seq: int
    hash: bytes
    name: str


class ChainVerifier:
    """Takes chunks and records in the order of the chain; the first damage ends it.

    `after` and `hash` are where the chain begins to be there: seq 0 and the genesis, or what a
    truncation recorded. `anchors` are those of all snapshots. A mirror may hold a thinned chunk as
    any of its compactions left it, and may lack commits that are withheld: they are passed by the
    hashes that they have in the chain, and counted.
    """

    def __init__(
        self,
        after: int,
        start: bytes,
        records: Iterable[Record] = (),
        anchors: Iterable[SnapshotAnchor] = (),
        *,
        is_mirror: bool = False,
    ) -> None:
        self._is_mirror = is_mirror
        self._withheld = 0
        self.damage: Damage | None = None
        self._anchors = sorted(anchors, key=lambda anchor: anchor.seq)
        self._stray: Damage | None = None
        self._seq = after
        self._hash = start
        self._facts = 0
        self._chunks = 0
        known = tuple(records)
        compactions = collect_compactions(known)
        self._compacted = compactions if is_mirror else _keep_latest(compactions)
        if after and not _is_truncated(known, after, start):
            self.damage = Damage(first=1, last=after, reason="removed without a record")

    def take_chunk(self, chunk: Chunk) -> bool:
        """Take the next chunk; False once there is damage."""
        if self.damage is None:
            reason = self._find_chunk_fault(chunk)
            if reason is None:
                self._seq, self._hash = chunk.last, chunk.hash
                self._facts += chunk.facts
                self._withheld += chunk.last - chunk.first + 1 if is_withheld(chunk) else 0
                self._chunks += 1
                self._stray = self._stray or self._find_stray(chunk)
            else:
                self.fail(reason, chunk.last)
        return self.damage is None

    def take_record(self, record: Record) -> bool:
        """Take the next record; False once there is damage."""
        if self.damage is None:
            if record.prev != self._hash or not is_record_intact(record):
                self.fail("a record of removed facts was changed", self._seq)
            else:
                self._hash = record.hash
        return self.damage is None

    def fail(self, reason: str, last: int) -> None:
        """Note damage from the place reached so far up to `last`."""
        first = self._seq + 1
        self.damage = Damage(first=first, last=max(first, last), reason=reason)

    def finish(self, head: int, head_hash: bytes) -> None:
        """Compare the end of the walk with what the journal says of its end."""
        if self.damage is None and self._seq != head:
            self.fail("facts at the end are missing", head)
        elif self.damage is None and self._hash != head_hash:
            self.fail("the chain does not end at the stored head", head)

    def report(self) -> VerifyReport:
        return VerifyReport(
            facts=self._facts,
            chunks=self._chunks,
            head=self._hash,
            intact=self._seq,
            damage=self.damage or self._stray,
            withheld=self._withheld,
        )

    def _find_stray(self, chunk: Chunk) -> Damage | None:
        """The first snapshot within a chunk that was not made at the commit it names."""
        # Of a thinned chunk only the last link is left.
        if chunk.seqs is not None:
            return None
        first = bisect_left(self._anchors, chunk.first, key=lambda anchor: anchor.seq)
        last = bisect_right(self._anchors, chunk.last, key=lambda anchor: anchor.seq)
        for anchor in self._anchors[first:last]:
            if find_anchor(chunk, anchor.seq) != anchor.hash:
                reason = f"{anchor.name} at {anchor.seq} does not belong to this chain"
                return Damage(first=anchor.seq, last=anchor.seq, reason=reason)
        return None

    def _find_chunk_fault(self, chunk: Chunk) -> str | None:
        if chunk.first != self._seq + 1:
            return f"expected a chunk from {self._seq + 1}, found one from {chunk.first}"
        if chunk.prev != self._hash:
            return "the chunk does not follow the one before it"
        if is_withheld(chunk) and not self._is_mirror:
            return "facts are withheld, which only a mirror may lack"
        try:
            ensure_sound(chunk)
        except JournalCorrupt as error:
            return error.reason
        return find_content_fault(chunk, self._compacted) or _find_index_fault(chunk)


def find_content_fault(chunk: Chunk, compacted: Compactions) -> str | None:
    """What is wrong with the facts of a chunk, by its own hashes or by those of its compaction."""
    if is_withheld(chunk):
        return _find_withheld_fault(chunk)
    if chunk.seqs is not None:
        return _find_compaction_fault(chunk, chunk.seqs, compacted)
    prev, first, start = chunk.prev, chunk.first, 0
    view = memoryview(chunk.data)
    for link in list_links(chunk):
        data = view[start : start + link.size]
        if hash_link(prev, first, link.facts, data) != link.hash:
            return f"the commit at {first} does not match its hash"
        prev, first, start = link.hash, first + link.facts, start + link.size
    whole = prev == chunk.hash and first == chunk.last + 1 and start == len(view)
    return None if whole else "the commits of a chunk do not match the chunk"


def _find_withheld_fault(chunk: Chunk) -> str | None:
    ends = chunk.links[-1].hash == chunk.hash
    facts = sum(link.facts for link in chunk.links)
    whole = ends and facts == chunk.last - chunk.first + 1 and not chunk.data
    return None if whole else "withheld facts do not match their place in the chain"


def _find_compaction_fault(
    chunk: Chunk, seqs: tuple[int, ...], compacted: Compactions
) -> str | None:
    records = compacted.get((chunk.first, chunk.last))
    if not records:
        return "facts are missing, and no compaction was recorded"
    found = (chunk.prev, chunk.hash, digest_remains(seqs, chunk.data))
    if found not in [(each.prev, each.hash, each.digest) for each in records]:
        return "the remaining facts do not match the compaction record"
    return None


def build_anchor(snapshot: StoredSnapshot) -> SnapshotAnchor:
    """The anchor of a snapshot."""
    name = f"the {snapshot.kind} snapshot of {snapshot.thread_id!r}"
    return SnapshotAnchor(snapshot.cursor.seq, snapshot.anchor, name)


def collect_compactions(records: Iterable[Record]) -> Compactions:
    """The compactions that intact records tell of, by what they thinned out, in their order."""
    found: defaultdict[tuple[int, int], list[Compacted]] = defaultdict(list)
    for record in records:
        content = record.content() if is_record_intact(record) else None
        if isinstance(content, Compacted):
            found[content.first, content.last].append(content)
    return found


def _keep_latest(compactions: Compactions) -> Compactions:
    return {place: records[-1:] for place, records in compactions.items()}


def _is_truncated(records: Iterable[Record], floor: int, digest: bytes) -> bool:
    contents = [record.content() for record in records if is_record_intact(record)]
    ends = [(each.floor, each.hash) for each in contents if isinstance(each, Truncated)]
    return (floor, digest) in ends


def _find_index_fault(chunk: Chunk) -> str | None:
    try:
        keys = [list_keys(decode_line(line)) for line in chunk.lines()]
    except FactError as error:
        return f"a line is not a fact: {error}"
    if len(keys) != chunk.facts or encode_index(keys) != chunk.index:
        return "the index does not match the facts"
    return None
