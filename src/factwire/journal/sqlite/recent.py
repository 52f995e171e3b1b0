"""The newest facts, whose ids and keys are not indexed on disk yet.

Whoever seals them finds here all that the index needs, and reads no fact back.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from factwire.journal.filter import Keys


class Recent(msgspec.Struct):
    """Ids with their seqs, the digest of each in the same order, and the keys of each commit.

    `keys` begin with the first seq of their commit; commits may have been merged since.
    """

    seqs: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    digests: list[bytes] = msgspec.field(default_factory=list[bytes])
    keys: list[tuple[int, Iterable[Keys]]] = msgspec.field(
        default_factory=list[tuple[int, Iterable[Keys]]]
    )

    def add(self, ids: Iterable[str], digests: Iterable[bytes], seqs: Iterable[int]) -> None:
        """Take in facts in their order."""
        self.seqs.update(zip(ids, seqs, strict=True))
        self.digests += digests

    def and_then(self, later: "Recent") -> "Recent":
        return Recent(
            {**self.seqs, **later.seqs}, self.digests + later.digests, self.keys + later.keys
        )

    def keys_of_chunks(self, firsts: Sequence[int]) -> Iterator[tuple[int, Iterable[Keys]]]:
        """The keys of the chunks that begin at these seqs."""
        found: list[dict[Keys, None]] = [{} for _ in firsts]
        for first, keys in self.keys:
            found[bisect_right(firsts, first) - 1].update(dict.fromkeys(keys))
        return zip(firsts, found, strict=True)
