"""Long reads of the SQLite journal: several trips under way, and still one exact sequence."""

from pathlib import Path

import pytest

from factwire.journal import Journal, JournalCorrupt, open_journal
from factwire.journal.sqlite import reader, reader_pool, writer
from factwire.journal.sqlite.handle import SqliteHandle
from factwire.journal.sqlite.schema import connect
from tests.journal.contract import close_after, collect, make_fact

pytestmark = pytest.mark.asyncio

FACTS = 310


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trips and merges of a few facts each."""
    monkeypatch.setattr(reader_pool, "FETCH_BYTES", 2_000)
    monkeypatch.setattr(writer, "LOOSE_CHUNKS", 32)
    monkeypatch.setattr(writer, "LOOSE_ENOUGH", 2)


def store_of(journal: Journal) -> SqliteHandle:
    store = getattr(journal, "_opened")  # noqa: B009
    assert isinstance(store, SqliteHandle)
    return store


async def fill(journal: Journal, first: int, last: int) -> None:
    for number in range(first, last + 1):
        await journal.append([make_fact(number, f"t{number % 3}")])


async def gather(journal: Journal, found: list[int]) -> None:
    async for batch in journal.read():
        found += batch.seqs


@pytest.mark.requirement("journal.read.ahead")
@pytest.mark.usefixtures("small")
async def test_a_long_read_is_exact_while_chunks_are_merged_beneath_it(tmp_path: Path):
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        # The last merge leaves a tail of single facts, which the appends below will merge.
        await fill(journal, 1, FACTS)
        found: list[tuple[int, str]] = []
        added = FACTS
        async for batch in journal.read():
            found += [(seq, fact.id) for seq, fact in batch.facts()]
            await fill(journal, added + 1, added + 4)
            added += 4
        whole = await collect(journal.read())
    assert len(found) >= FACTS
    assert found == whole[: len(found)]


@pytest.mark.requirement("journal.read.ahead")
@pytest.mark.usefixtures("small")
async def test_slow_readers_together_are_only_so_far_ahead(tmp_path: Path):
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        await fill(journal, 1, FACTS)
        pool = store_of(journal).pool
        reads = [journal.read() for _ in range(2 * reader_pool.READERS)]
        for read in reads:
            await anext(read)
        assert pool.ahead == reader_pool.READERS
        whole = [seq for seq, _ in await collect(journal.read())]
        assert whole == list(range(1, FACTS + 1))
        for read in reads:
            async with close_after(read):
                pass
        assert pool.ahead == 0


@pytest.mark.requirement("journal.read.ahead")
@pytest.mark.usefixtures("small")
async def test_damage_ahead_is_not_raised_before_the_facts_before_it_are_read(tmp_path: Path):
    path = tmp_path / "journal.db"
    async with open_journal(f"sqlite:{path}") as journal:
        await fill(journal, 1, FACTS)
    connection = connect(str(path), vfs=None)
    bad: int = connection.execute("SELECT first FROM chunks WHERE last >= 250 LIMIT 1").get
    connection.execute("UPDATE chunks SET data = CAST(upper(data) AS BLOB) WHERE first = ?", (bad,))
    connection.close()
    found: list[int] = []
    async with open_journal(f"sqlite:{path}?mode=ro") as journal:
        with pytest.raises(JournalCorrupt) as refused:
            await gather(journal, found)
    assert found[0] == 1
    assert found == list(range(1, len(found) + 1))
    assert found[-1] < bad
    assert refused.value.first == bad


@pytest.mark.requirement("journal.read.ahead")
@pytest.mark.usefixtures("small")
async def test_without_a_bound_every_slow_reader_would_hold_trips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reader_pool.ReaderPool, "may_look_ahead", lambda _: True)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    async with open_journal(f"sqlite:{tmp_path / 'journal.db'}") as journal:
        await fill(journal, 1, FACTS)
        reads = [journal.read() for _ in range(2 * reader_pool.READERS)]
        for read in reads:
            await anext(read)
        assert store_of(journal).pool.ahead == reader.AHEAD * len(reads)
        for read in reads:
            async with close_after(read):
                pass
