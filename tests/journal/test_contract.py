"""The contract, held against the backends that need no server."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from factwire.facts.fact import Fact
from factwire.journal import AppendResult, Cursor, FactBatch, Filter, Journal, open_journal
from factwire.journal.memory_journal import MemoryJournal
from tests.journal.contract import JournalContract
from tests.journal.restore_contract import RestoreContract


class MemoryBackend:
    def __init__(self) -> None:
        self._journal = MemoryJournal()

    def open(self) -> Journal:
        return self._journal

    def reopen(self) -> Journal:
        return self._journal


class SqliteBackend:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "journal.db"

    def open(self) -> Journal:
        return open_journal(f"sqlite:{self._path}")

    def reopen(self) -> Journal:
        return open_journal(f"sqlite:{self._path}")


class ClockedJournal(MemoryJournal):
    """A journal that believes the clock: facts are read in the order of the time they came at."""

    def __init__(self) -> None:
        super().__init__()
        self._times: dict[str, float] = {}

    async def append(
        self, batch: Sequence[Fact], *, expected: Mapping[str, int | None] | None = None
    ) -> AppendResult:
        self._times.update((fact.id, time.time()) for fact in batch)
        return await super().append(batch, expected=expected)

    async def read(
        self,
        after: Cursor | str | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
    ) -> AsyncIterator[FactBatch]:
        found = [each async for each in super().read(after, filter=filter, limit=limit)]
        lines = [(line, fact) for each in found for line, (_, fact) in _lines(each)]
        lines.sort(key=lambda pair: self._times[pair[1].id])
        data = b"".join(line + b"\n" for line, _ in lines)
        seqs = [seq for each in found for seq in each.seqs]
        first, last = found[0].first, found[-1].last
        yield FactBatch(epoch=found[0].epoch, first=first, last=last, seqs=seqs, data=data)


def _lines(batch: FactBatch) -> Iterator[tuple[bytes, tuple[int, Fact]]]:
    return zip(batch.lines(), batch.facts(), strict=True)


class ClockedBackend(MemoryBackend):
    def __init__(self) -> None:
        self._journal = ClockedJournal()


@pytest.mark.asyncio
@pytest.mark.parametrize("jump", [-3600, -1, 1, 60, 3600])
async def test_a_journal_that_believes_the_clock_fails_the_same_test(
    jump: int, monkeypatch: pytest.MonkeyPatch
):
    check = JournalContract().test_clock_jumps_leave_the_order_alone
    with pytest.raises(AssertionError):
        await check(ClockedBackend(), jump, monkeypatch)


class TestMemory(JournalContract, RestoreContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


class TestSqlite(JournalContract, RestoreContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path)
