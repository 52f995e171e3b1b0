"""Does a pack still match the journal that it came from?

Facts are compared byte by byte and place by place; for a fact that the journal removed on purpose,
with the digest that it keeps for ever. Then the chain: where both know its hash, it has to be the
same, which vouches for everything before, of all threads.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final, Literal, cast

import msgspec

from factwire.evidence.manifest import Wire
from factwire.evidence.reading import Pack, decoded
from factwire.evidence.selection import Stored, selected
from factwire.evidence.summary import ChainAnchor, JournalAnchors
from factwire.journal import Journal, Removed
from factwire.journal.admission import body_digest

MatchState = Literal["matches", "compacted", "copy", "differs", "not_from_journal"]
"""`compacted`: all that is left is equal, and what is gone was removed on purpose. `copy`: facts
are equal in a journal of another epoch, whose chain is its own."""

_LISTED: Final = 20


class MatchDifference(Wire, frozen=True):
    """One difference. Codes: `other_journal`, `fact_differs`, `fact_missing`, `fact_extra`,
    `anchor_differs`, `journal_shorter`, `journal_corrupt`.
    """

    code: str
    seq: int
    message: str


class JournalMatch(Wire, frozen=True):
    """What a comparison found. `removed` counts facts that the journal no longer holds; `anchors`
    counts points of the chain that were compared, `incomparable` those that a removal took away. Of
    very many differences the first are listed, and `more` counts the others.
    """

    state: MatchState
    facts: int
    removed: int
    anchors: int
    incomparable: int
    differences: tuple[MatchDifference, ...]
    more: int = 0

    @property
    def ok(self) -> bool:
        return not self.differences


class _Tally(msgspec.Struct):
    facts: int = 0
    removed: int = 0
    anchors: int = 0
    incomparable: int = 0
    more: int = 0


async def match_journal(pack: Pack, journal: Journal) -> JournalMatch:
    """Compare a pack with a journal, whose own chain is walked as well."""
    origin = pack.summary.journal
    if origin is None:
        return _match(_Tally(), "not_from_journal", [])
    tally, found = _Tally(), list[MatchDifference]()
    epoch = (await journal.head()).epoch
    same_epoch = epoch == origin.epoch
    differences = _differences(pack, journal, origin, tally, same_epoch=same_epoch)
    async with aclosing(differences):
        async for difference in differences:
            if len(found) < _LISTED:
                found.append(difference)
            else:
                tally.more += 1
    if found and not same_epoch:
        found.insert(0, _other_journal(epoch, origin))
    return _match(tally, _state(tally, found, same_epoch=same_epoch), found)


def _match(tally: _Tally, state: MatchState, found: list[MatchDifference]) -> JournalMatch:
    return JournalMatch(
        state=state,
        facts=tally.facts,
        removed=tally.removed,
        anchors=tally.anchors,
        incomparable=tally.incomparable,
        differences=tuple(found),
        more=tally.more,
    )


def _other_journal(epoch: str, origin: JournalAnchors) -> MatchDifference:
    """A copy has another epoch and the same facts; with other facts it is no copy."""
    message = f"this is another journal: its epoch is {epoch}, the pack is from {origin.epoch}"
    return MatchDifference(code="other_journal", seq=origin.first_seq, message=message)


def _state(tally: _Tally, found: list[MatchDifference], *, same_epoch: bool) -> MatchState:
    if found:
        return "differs"
    if not same_epoch:
        return "copy"
    return "compacted" if tally.removed else "matches"


async def _differences(
    pack: Pack, journal: Journal, origin: JournalAnchors, tally: _Tally, *, same_epoch: bool
) -> AsyncGenerator[MatchDifference]:
    report = await journal.verify()
    if report.damage is not None:
        message = f"the journal itself is damaged: {report.damage.reason}"
        yield MatchDifference(code="journal_corrupt", seq=report.damage.first, message=message)
        return
    async with aclosing(_fact_differences(pack, journal, origin, tally)) as differences:
        async for difference in differences:
            yield difference
    if same_epoch:
        for anchor in origin.anchors:
            difference = await _anchor_difference(journal, anchor, tally)
            if difference is not None:
                yield difference


async def _fact_differences(
    pack: Pack, journal: Journal, origin: JournalAnchors, tally: _Tally
) -> AsyncGenerator[MatchDifference]:
    """Both in the order of their seqs, one fact of each held at a time."""
    here = _placed(pack)
    gone = _Gone(cast("AsyncGenerator[Removed]", journal.removed()))
    chosen = selected(journal, origin.threads, origin.last_seq)
    async with aclosing(gone.rows), aclosing(chosen) as there:
        mine, theirs = next(here, None), await anext(there, None)
        while mine is not None or theirs is not None:
            if mine is not None and (theirs is None or mine.seq < theirs.seq):
                difference = await gone.explain(mine, tally)
                mine = next(here, None)
            elif theirs is not None and (mine is None or theirs.seq < mine.seq):
                difference = _extra(theirs)
                theirs = await anext(there, None)
            else:
                difference = _compared(mine, theirs, tally)
                mine, theirs = next(here, None), await anext(there, None)
            if difference is not None:
                yield difference


def _extra(theirs: Stored) -> MatchDifference:
    message = f"the journal has fact {theirs.fact.id!r} there, the pack has none"
    return MatchDifference(code="fact_extra", seq=theirs.seq, message=message)


def _placed(pack: Pack) -> Iterator[Stored]:
    lines = enumerate(pack.fact_lines(), 1)
    for (number, line), seq in zip(lines, pack.seqs(), strict=True):
        yield Stored(seq, line, decoded(line, number))


def _compared(mine: Stored | None, theirs: Stored | None, tally: _Tally) -> MatchDifference | None:
    if mine is None or theirs is None:
        return None
    tally.facts += 1
    if mine.line == theirs.line:
        return None
    message = f"the pack has {mine.fact.id!r} there, the journal {theirs.fact.id!r}, and not equal"
    return MatchDifference(code="fact_differs", seq=mine.seq, message=message)


class _Gone:
    """What a journal keeps of removed facts, read along in the order of seqs."""

    def __init__(self, rows: AsyncGenerator[Removed]) -> None:
        self.rows = rows
        self._next: Removed | None = None
        self._began = False

    async def explain(self, mine: Stored, tally: _Tally) -> MatchDifference | None:
        """Nothing where the journal had exactly this fact there and removed it."""
        kept = await self._at(mine.seq)
        if kept is None:
            message = f"the journal has no fact there, and never removed {mine.fact.id!r}"
            return MatchDifference(code="fact_missing", seq=mine.seq, message=message)
        tally.removed += 1
        if (kept.id, kept.digest) == (mine.fact.id, body_digest(mine.line)):
            return None
        message = f"the journal removed another fact there than {mine.fact.id!r}"
        return MatchDifference(code="fact_differs", seq=mine.seq, message=message)

    async def _at(self, seq: int) -> Removed | None:
        while not self._began or (self._next is not None and self._next.seq < seq):
            self._began = True
            self._next = await anext(self.rows, None)
        return self._next if self._next is not None and self._next.seq == seq else None


async def _anchor_difference(
    journal: Journal, anchor: ChainAnchor, tally: _Tally
) -> MatchDifference | None:
    stats = await journal.stats()
    if anchor.seq > stats.head.seq:
        message = f"the pack knows the chain up to here, the journal ends at {stats.head.seq}"
        return MatchDifference(code="journal_shorter", seq=anchor.seq, message=message)
    point = await journal.chain_point(anchor.seq)
    if point.seq != anchor.seq or anchor.seq <= stats.floor.seq:
        tally.incomparable += 1
        return None
    tally.anchors += 1
    if point.hash.hex() == anchor.hash:
        return None
    message = "the chain has another hash here: up to this place, some fact of some thread differs"
    return MatchDifference(code="anchor_differs", seq=anchor.seq, message=message)
