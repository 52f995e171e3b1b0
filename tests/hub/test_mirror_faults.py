"""Kills of an Edge, of a Hub and of both under load: the mirror is the original in the end."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from factwire.edge import hub_upload
from factwire.edge.hub_access import HubAccess, HubUnreachable, send_request
from factwire.edge.hub_upload import HubUpload, UploadSession, UploadStart
from factwire.hub.mirror.mirror_store import EdgeMirror, MirrorStore
from factwire.journal.chunks import ChainBatch
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.journal.sqlite.retention import MirroredPart, MirrorIntake
from tests.edge.edges import running_edge
from tests.hub.killed_link import (
    KilledProcess,
    killed_after,
    read_acked,
    run_edge,
    serve_mirrors,
)
from tests.hub.mirrors import NOW, WAIT_SECONDS, running_mirror
from tests.hub.test_mirror_store import read_lines
from tests.journal.contract import make_fact
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.fault

ROUNDS = count_trials(full=150, share=3)
"""Kills of one run."""

CUTS = count_trials(full=38 * 3600 // 90, share=40)


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
    hub = KilledProcess(serve_mirrors, hub_folder, port, *hub_options)
    edge = KilledProcess(run_edge, edge_folder, port, "start")
    edge_id = edge.name
    try:
        for number in range(rounds):
            wait_for_acked(edge_folder, read_acked(edge_folder) + chance.randint(1, 400))
            which = ("hub", "edge", "both")[number % 3]
            if which != "edge":
                hub.kill()
                acked = read_acked(edge_folder)
                assert await read_head(hub_folder, edge_id) >= acked
                hub = KilledProcess(serve_mirrors, hub_folder, port, *hub_options)
            if which != "hub":
                edge.kill()
                edge = KilledProcess(run_edge, edge_folder, port, str(number))
    finally:
        edge.kill()
        hub.kill()
    with (
        killed_after(serve_mirrors, hub_folder, port),
        killed_after(run_edge, edge_folder, port, "end", "rest"),
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


class CutConnection:
    """Loses requests, or the answers to them, of an Edge's upload; one whenever it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.cut = asyncio.Event()
        self._loses: str | None = None
        patch.setattr(hub_upload, "send_request", self._send)

    async def lose(self, what: str) -> None:
        """Return once a request or an answer was lost."""
        self.cut.clear()
        self._loses = what
        async with asyncio.timeout(WAIT_SECONDS):
            await self.cut.wait()

    async def _send(self, *args: Any, **kwargs: Any) -> Any:
        loses, self._loses = self._loses, None
        if loses != "request":
            answer = await send_request(*args, **kwargs)
            if loses is None:
                return answer
        self.cut.set()
        raise HubUnreachable("the connection was cut")


async def pause_not(_: float) -> None:
    """In the place of a pause."""
    await asyncio.sleep(0)


async def cut_upload(folder: Path, patch: pytest.MonkeyPatch, cuts: int) -> None:
    """Lose a request or an answer again and again, and compare the mirror with the original."""
    chance, connection = Random(8), CutConnection(patch)
    async with running_mirror(folder / "hub") as hub, running_edge(folder) as edge:
        journal = edge.machine.journal
        assert isinstance(journal, SqliteJournal)
        async with HubUpload(edge.machine, HubAccess(hub.target), sleep=pause_not).run():
            for number in range(cuts):
                losing = asyncio.create_task(connection.lose(chance.choice(("request", "answer"))))
                lane = f"lane-{number % 3}"
                for part in range(chance.randint(1, 3)):
                    await journal.append([make_fact(f"{number}-{part}", lane)])
                await losing
            # What comes after the last cut shows an Edge that does not go back for what was lost.
            await journal.append([make_fact("last", "lane-0")])
            await hub.wait_for(edge.machine.edge_id, (await journal.head()).seq)
        async with hub.store.use(edge.machine.edge_id) as mirror:
            original, mirrored = await journal.verify(), await mirror.journal.verify()
            assert (mirrored.ok, mirrored.head) == (True, original.head)
            assert await read_lines(mirror.journal) == await read_lines(journal)
            status = await mirror.status()
        assert (status.former, status.refused) == ((), ())


@pytest.mark.nightly
@pytest.mark.requirement("link.cuts")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_an_upload_that_is_cut_every_ninety_seconds_is_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await cut_upload(tmp_path, monkeypatch, CUTS)


def take_sent_for_stored(patch: pytest.MonkeyPatch) -> None:
    """Have an Edge go on after what it has sent, and a mirror take what follows a gap."""
    post, add_part = HubUpload._post, MirrorIntake._add_part

    async def post_and_go_on(self: HubUpload, http: Any, path: str, *args: Any) -> UploadSession:
        try:
            return await post(self, http, path, *args)
        except HubUnreachable:
            if not path.startswith("/chain"):
                raise
            session, batch = int(path.rpartition("=")[2]), args[0]
            last = msgspec.msgpack.decode(batch, type=ChainBatch).chunks[-1]
            return UploadSession(
                session=session, acked_seq=last.last, acked_hash=last.hash.hex(), record=""
            )

    def add_after_gap(self: MirrorIntake, part: MirroredPart, compacted: Any) -> None:
        chunk, place = part.chunk, self._place
        if chunk.first > place.head + 1:
            self._place = replace(place, head=chunk.first - 1, hash=chunk.prev)
        add_part(self, part, compacted)

    patch.setattr(HubUpload, "_post", post_and_go_on)
    patch.setattr(MirrorIntake, "_add_part", add_after_gap)


def forget_what_came(patch: pytest.MonkeyPatch) -> None:
    """Have a mirror begin anew with each session, so that an Edge sends all of it again."""
    begin_session = EdgeMirror.begin_session

    async def begin_anew(self: EdgeMirror, start: UploadStart) -> UploadSession:
        return await begin_session(self, replace(start, restart=True))

    patch.setattr(EdgeMirror, "begin_session", begin_anew)


@pytest.mark.parametrize("switch_off", [take_sent_for_stored, forget_what_came])
@pytest.mark.asyncio
async def test_the_same_cuts_find_an_upload_that_has_gaps_or_begins_anew(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    switch_off: Callable[[pytest.MonkeyPatch], None],
):
    switch_off(monkeypatch)
    with pytest.raises(AssertionError):
        await cut_upload(tmp_path, monkeypatch, 12)


@pytest.mark.asyncio
async def test_the_same_test_finds_a_hub_that_acknowledges_too_early(tmp_path: Path):
    with pytest.raises(AssertionError):
        await kill_rounds(tmp_path, 3, "eager")
