"""Anchors: points of the journal's chain that a pack's facts hang on.

One is enough to vouch for everything before it. Some more, spread over the facts, say where two
histories part; their number is bounded, however many facts there are.
"""

from factwire.evidence.limits import ANCHORS
from factwire.evidence.summary import ChainAnchor
from factwire.journal import Journal


class Places:
    """Seqs spread over all that went by: first every one, then every second, fourth, eighth …"""

    def __init__(self) -> None:
        self.first = 0
        self.last = 0
        self._kept: list[int] = []
        self._step = 1
        self._count = 0

    def note(self, seq: int) -> None:
        self.first = self.first or seq
        self.last = seq
        if self._count % self._step == 0:
            self._kept.append(seq)
            if len(self._kept) >= ANCHORS:
                self._kept = self._kept[::2]
                self._step *= 2
        self._count += 1

    def all(self) -> list[int]:
        """The places, the last one always among them."""
        return sorted({*self._kept, self.last}) if self._count else []


async def anchors_at(journal: Journal, places: list[int]) -> list[ChainAnchor]:
    """The chain's hash behind the commit of each place, once for each commit."""
    found: dict[int, str] = {}
    for seq in places:
        if not any(seq <= known for known in reversed(found)):
            point = await journal.chain_point(seq)
            found[point.seq] = point.hash.hex()
    return [ChainAnchor(seq=seq, hash=digest) for seq, digest in found.items()]
