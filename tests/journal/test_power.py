"""Power goes out at any write: everything acknowledged by then is on disk."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from factwire.journal import open_journal
from factwire.journal.sqlite import SqliteJournal, handle, writer
from factwire.journal.sqlite.schema import connect
from tests.journal.contract import collect, make_fact
from tests.journal.disks import PowerCut

SEEDS = 300


async def cut_power(
    folder: Path, seed: int, *, synchronous: str
) -> tuple[set[str], dict[str, bytes]]:
    """Append until power goes out; what was acknowledged by then, and what the disk holds."""
    random = Random(seed)
    acknowledged: set[str] = set()
    safe: set[str] = set()
    images: dict[str, bytes] = {}

    def power_goes() -> None:
        safe.update(acknowledged)
        images.update(disk.after_cut(random))

    async def produce(lane: int) -> None:
        for number in range(12):
            batch = [make_fact(f"{lane}-{number}-{part}", f"t{lane}") for part in range(2)]
            await journal.append(batch)
            acknowledged.update(fact.id for fact in batch)

    disk = PowerCut(random.randrange(30, 120), power_goes)
    path = folder / f"before-{seed}.db"
    journal = SqliteJournal(str(path), vfs=disk.name)
    async with journal:
        journal._handle.require_writer().state.connection.pragma("synchronous", synchronous)
        await asyncio.gather(*(produce(lane) for lane in range(3)))
    if not images:
        power_goes()
    disk.unregister()
    return safe, {name.replace("before", "after"): data for name, data in images.items()}


async def survivors(folder: Path, seed: int, images: dict[str, bytes]) -> set[str]:
    for name, data in images.items():
        (folder / name).write_bytes(data)
    path = folder / f"after-{seed}.db"
    connection = connect(str(path), vfs=None)
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    async with open_journal(f"sqlite:{path}") as journal:
        found = await collect(journal.read())
        assert [seq for seq, _ in found] == list(range(1, len(found) + 1))
        assert len(found) % 2 == 0
        assert (await journal.verify()).ok
    return {fact_id for _, fact_id in found}


@pytest.fixture(autouse=True)
def busy_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges, seals and checkpoints happen amid the appends, so that power can go out in them."""
    monkeypatch.setattr(handle, "CHECKPOINT_PAGES", 8)
    monkeypatch.setattr(handle, "RUN_IDS", 16)
    monkeypatch.setattr(writer, "LOOSE_CHUNKS", 4)
    monkeypatch.setattr(writer, "LOOSE_ENOUGH", 2)


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.power")
async def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path):
    for seed in range(SEEDS):
        safe, images = await cut_power(tmp_path, seed, synchronous="full")
        assert safe <= await survivors(tmp_path, seed, images)


@pytest.mark.fault
@pytest.mark.asyncio
async def test_without_a_sync_for_each_commit_power_takes_facts(tmp_path: Path):
    for seed in range(SEEDS):
        safe, images = await cut_power(tmp_path, seed, synchronous="normal")
        if not safe <= await survivors(tmp_path, seed, images):
            return
    pytest.fail("synchronous=normal lost nothing, so the test above proves nothing")
