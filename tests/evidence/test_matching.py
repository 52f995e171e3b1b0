"""A pack against journals: the one it came from, later, compacted, copied, rewritten or another."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from factwire.evidence import JournalMatch, match_journal, open_pack
from factwire.facts import Fact
from factwire.journal import (
    ChainPoint,
    CompactionPolicy,
    CursorFromFuture,
    Journal,
    RetentionPolicy,
    open_journal,
)
from factwire.journal.memory_journal import MemoryJournal
from tests.evidence.sample_packs import (
    export_to,
    fill,
    new_journal,
    pack_facts,
    pack_journal,
    run_facts,
)
from tests.projection.fact_maker import FactMaker

Change = Callable[[MemoryJournal], Awaitable[object]]

TURN = {"turnId": "u1"}


def streamed_facts() -> list[Fact]:
    tell = FactMaker()
    return [
        tell("turn.started", **TURN),
        *(tell("model.delta", messageId="m", delta="x", **TURN) for _ in range(20)),
        tell("model.completed", messageId="m", text="x" * 20, **TURN),
        tell("turn.completed", **TURN),
    ]


def match_changed(path: Path, facts: list[Fact], change: Change) -> JournalMatch:
    """Export, then change the journal, then compare."""

    async def work() -> JournalMatch:
        async with new_journal() as journal:
            await fill(journal, facts)
            await export_to(path, journal)
            await change(journal)
            with open_pack(path) as pack:
                return await match_journal(pack, journal)

    return asyncio.run(work())


def match_other_facts(path: Path, journal_facts: list[Fact], batch: int = 4) -> JournalMatch:
    """The pack of the run against a new journal of the same epoch with other facts."""

    async def work() -> JournalMatch:
        async with new_journal() as journal:
            await fill(journal, run_facts())
            await export_to(path, journal)
        async with new_journal() as other:
            await fill(other, journal_facts, batch)
            with open_pack(path) as pack:
                return await match_journal(pack, other)

    return asyncio.run(work())


async def leave_journal(journal: MemoryJournal) -> None: ...


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return tmp_path / "run.factpack.zip"


@pytest.mark.requirement("evidence.match")
def test_a_pack_matches_the_journal_it_came_from(pack: Path):
    match = match_changed(pack, run_facts(), leave_journal)
    assert (match.state, match.ok, match.facts, match.anchors) == ("matches", True, 26, 7)


@pytest.mark.requirement("evidence.match")
def test_a_journal_that_went_on_still_matches(pack: Path):
    more = [*run_facts("other"), *(FactMaker(27)("turn.started", turnId="u2") for _ in range(1))]
    match = match_changed(pack, run_facts(), lambda journal: fill(journal, more))
    assert (match.state, match.facts, match.removed) == ("matches", 26, 0)


@pytest.mark.requirement("evidence.match.compacted")
def test_a_compacted_journal_still_vouches_for_what_it_removed(pack: Path):
    match = match_changed(
        pack, streamed_facts(), lambda journal: journal.compact(CompactionPolicy())
    )
    assert (match.state, match.ok) == ("compacted", True)
    assert match.removed == 19
    assert match.facts == len(streamed_facts()) - 19


@pytest.mark.requirement("evidence.match.compacted")
def test_a_journal_that_forgot_the_beginning_still_vouches_for_it(pack: Path):
    facts = [*run_facts("old"), *run_facts()]
    match = match_changed(
        pack, facts, lambda journal: journal.retain(RetentionPolicy(keep_facts=10))
    )
    assert (match.state, match.ok) == ("compacted", True)
    assert match.removed > 0
    assert match.incomparable > 0


@pytest.mark.requirement("evidence.match.copy")
def test_a_copy_of_the_journal_has_equal_facts_and_a_chain_of_its_own(pack: Path):
    async def change_epoch(journal: MemoryJournal) -> None:
        journal._epoch = "f" * 16

    match = match_changed(pack, run_facts(), change_epoch)
    assert (match.state, match.ok, match.anchors) == ("copy", True, 0)


@pytest.mark.requirement("evidence.match.differs")
def test_another_journal_is_named_as_such_before_anything_else(pack: Path):
    pack_journal(pack)

    async def work() -> JournalMatch:
        async with new_journal() as journal:
            journal._epoch = "f" * 16
            await fill(journal, [*run_facts("other"), *run_facts("thread")])
            with open_pack(pack) as opened:
                return await match_journal(opened, journal)

    match = asyncio.run(work())
    first = match.differences[0]
    assert (match.state, first.code) == ("differs", "other_journal")
    assert first.message == (
        f"this is a different journal: its epoch is {'f' * 16}, "
        "but the pack is from 0123456789abcdef"
    )
    assert {each.code for each in match.differences[1:]} == {"fact_missing"}
    assert len(match.differences) - 1 + match.more == len(run_facts())


def codes(match: JournalMatch) -> list[tuple[str, int]]:
    return [(each.code, each.seq) for each in match.differences]


@pytest.mark.requirement("evidence.match.differs")
def test_a_fact_that_differs_is_named_and_so_is_where_the_chain_parts(pack: Path):
    facts = run_facts()
    facts[13] = msgspec.structs.replace(facts[13], payload={"decision": "rejected"})
    match = match_other_facts(pack, facts)
    assert match.state == "differs"
    assert codes(match) == [
        ("fact_differs", 14),
        *(("anchor_differs", n) for n in (16, 20, 24, 26)),
    ]


@pytest.mark.requirement("evidence.match.differs")
def test_a_fact_of_another_thread_that_differs_shows_in_the_chain_alone(pack: Path):
    async def work() -> JournalMatch:
        mixed = [run_facts("other")[0], *run_facts()]
        async with new_journal() as journal:
            await fill(journal, mixed)
            await export_to(pack, journal)
        mixed[0] = msgspec.structs.replace(mixed[0], title="something else")
        async with new_journal() as other:
            await fill(other, mixed)
            with open_pack(pack) as opened:
                return await match_journal(opened, other)

    match = asyncio.run(work())
    assert {code for code, _ in codes(match)} == {"anchor_differs"}
    assert codes(match)[0] == ("anchor_differs", 4)


@pytest.mark.requirement("evidence.match.differs")
def test_a_journal_that_is_shorter_or_has_more_in_between_differs(pack: Path):
    short = match_other_facts(pack, run_facts()[:20])
    assert codes(short)[0] == ("fact_missing", 21)
    assert ("journal_shorter", 26) in codes(short)
    facts = run_facts()
    more = [*facts[:5], *facts[6:], facts[5]]
    shifted = [msgspec.structs.replace(fact, sequence=at) for at, fact in enumerate(more, 1)]
    assert codes(match_other_facts(pack, shifted))[0] == ("fact_differs", 6)


@pytest.mark.requirement("evidence.match.differs")
def test_a_fact_that_a_pack_left_out_is_found(pack: Path):
    """The journal has a fact of the thread where the pack, made from an older copy, has none."""

    async def work() -> JournalMatch:
        facts = run_facts()
        async with new_journal() as journal:
            await fill(journal, [*facts[:12], run_facts("other")[0], *facts[12:]])
            await export_to(pack, journal)
        async with new_journal() as whole:
            await fill(whole, facts)
            with open_pack(pack) as opened:
                return await match_journal(opened, whole)

    assert codes(asyncio.run(work()))[0] == ("fact_extra", 13)


@pytest.mark.requirement("evidence.match.differs")
def test_a_damaged_journal_proves_nothing(pack: Path):
    async def damage_chunk(journal: MemoryJournal) -> None:
        chunk = journal._chunks[1]
        data = chunk.data.replace(b"tool", b"fool")
        journal._chunks[1] = msgspec.structs.replace(chunk, data=data)

    match = match_changed(pack, run_facts(), damage_chunk)
    assert codes(match) == [("journal_corrupt", 5)]


@pytest.mark.requirement("evidence.match.differs")
def test_differences_are_listed_up_to_a_bound(pack: Path):
    other = [msgspec.structs.replace(fact, title="other") for fact in run_facts()]
    assert len(match_other_facts(pack, other).differences) == 20


@pytest.mark.requirement("evidence.match")
def test_a_pack_of_a_file_has_no_journal(pack: Path):
    pack_facts(pack, run_facts())

    async def work() -> JournalMatch:
        async with new_journal() as journal:
            with open_pack(pack) as opened:
                return await match_journal(opened, journal)

    match = asyncio.run(work())
    assert (match.state, match.ok) == ("not_from_journal", True)


async def points(journal: Journal, seqs: list[int]) -> list[int]:
    found = [await journal.chain_point(seq) for seq in seqs]
    assert all(len(point.hash) == 32 for point in found)
    return [point.seq for point in found]


@pytest.mark.requirement("evidence.chain-points")
def test_a_chain_point_is_the_end_of_a_commit(tmp_path: Path):
    async def work() -> None:
        async with open_journal(f"sqlite:{tmp_path / 'j.db'}") as journal:
            await fill(journal, streamed_facts(), batch=5)
            assert await points(journal, [1, 5, 6, 23]) == [5, 5, 10, 23]
            before = [await journal.chain_point(seq) for seq in (5, 23)]
            with pytest.raises(CursorFromFuture):
                await journal.chain_point(24)
            await journal.compact()
            # Of a thinned chunk only the end is left.
            after = [await journal.chain_point(seq) for seq in (5, 23)]
            assert after[1] == before[1]
            assert isinstance(after[0], ChainPoint)
        async with open_journal(f"sqlite:{tmp_path / 'j.db'}?mode=ro") as journal:
            assert await journal.chain_point(23) == before[1]

    asyncio.run(work())
