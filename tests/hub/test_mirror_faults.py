"""Kills of an Edge, of a Hub and of both under load: the mirror is the original in the end."""

import socket
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest

from factwire.hub.mirror.mirror_store import MirrorStore
from factwire.journal.sqlite.journal import SqliteJournal
from tests.hub.killed_link import KilledProcess, killed_after, read_acked
from tests.hub.mirrors import NOW, WAIT_SECONDS
from tests.hub.test_mirror_store import read_lines
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.fault

ROUNDS = count_trials(full=50, share=3)
"""Kills of one run."""


def wait_for_acked(folder: Path, seq: int) -> None:
    end = monotonic() + WAIT_SECONDS
    while read_acked(folder) < seq:
        assert monotonic() < end, f"expected {seq} to be acknowledged, got {read_acked(folder)}"
        sleep(0.01)


async def read_head(folder: Path, edge_id: str) -> int:
    """How far the mirror of an Edge has come, as its files have it."""
    async with MirrorStore(folder, lambda: NOW) as store, store.use(edge_id) as mirror:
        return (await mirror.journal.head()).seq


def choose_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


async def kill_rounds(folder: Path, rounds: int, *hub_options: str) -> None:
    """Kill one end or both, again and again, and compare what is left each time."""
    chance, port = Random(7), choose_port()
    edge_folder, hub_folder = folder / "edge", folder / "hub"
    edge_folder.mkdir()
    hub = KilledProcess("hub", hub_folder, port, *hub_options)
    edge = KilledProcess("edge", edge_folder, port, "start")
    edge_id = edge.name
    try:
        for number in range(rounds):
            wait_for_acked(edge_folder, read_acked(edge_folder) + chance.randint(1, 400))
            which = ("hub", "edge", "both")[number % 3]
            if which != "edge":
                hub.kill()
                acked = read_acked(edge_folder)
                assert await read_head(hub_folder, edge_id) >= acked
                hub = KilledProcess("hub", hub_folder, port, *hub_options)
            if which != "hub":
                edge.kill()
                edge = KilledProcess("edge", edge_folder, port, str(number))
    finally:
        edge.kill()
        hub.kill()
    with (
        killed_after("hub", hub_folder, port),
        killed_after("edge", edge_folder, port, "end", "rest"),
    ):
        async with SqliteJournal(f"{edge_folder}/journal.db", read_only=True) as journal:
            wait_for_acked(edge_folder, (await journal.head()).seq)
    async with (
        SqliteJournal(f"{edge_folder}/journal.db") as journal,
        MirrorStore(hub_folder, lambda: NOW) as store,
        store.use(edge_id) as mirror,
    ):
        original, mirrored = await journal.verify(), await mirror.journal.verify()
        assert (mirrored.ok, mirrored.head) == (original.ok, original.head) == (True, original.head)
        assert await read_lines(mirror.journal) == await read_lines(journal)
        status = await mirror.status()
        assert (status.former, status.refused) == ((), ())


@pytest.mark.nightly
@pytest.mark.requirement("mirror.killed")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_kills_of_either_end_under_load_lose_and_change_nothing(tmp_path: Path):
    await kill_rounds(tmp_path, ROUNDS)


@pytest.mark.asyncio
async def test_the_same_test_finds_a_hub_that_acknowledges_too_early(tmp_path: Path):
    with pytest.raises(AssertionError):
        await kill_rounds(tmp_path, 3, "eager")
