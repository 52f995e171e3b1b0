"""Private threads stay on their Edge: a mirror passes them by hash, verifies, and counts them."""

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.hub.mirror.mirror_store import EdgeMirror, MirrorStore
from factwire.journal import MirrorBroken
from factwire.journal.chunks import ChainBatch, is_withheld
from factwire.journal.sqlite import snapshots
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.journal.sqlite.schema import Database, connect
from tests.cli.cli_commands import run as run_command
from tests.edge.edges import running_edge
from tests.hub.mirrors import NOW, running_mirror
from tests.hub.test_mirror_store import EDGE, Uploader, make_turn, read_lines
from tests.hub.test_mirror_upload import settings_for
from tests.journal.contract import make_fact

PRIVATE = "thread-1"
SECRET = "what-nobody-else-may-read"

requirement = pytest.mark.requirement("mirror.private")


async def ensure_private(journal: SqliteJournal, mirror: EdgeMirror, private: set[int]) -> None:
    """The mirror has all but the private facts, ends like the journal, and says what it lacks."""
    mine, theirs = await read_lines(journal), await read_lines(mirror.journal)
    assert theirs == {seq: line for seq, line in mine.items() if seq not in private}
    original, mirrored = await journal.verify(), await mirror.journal.verify()
    assert original.ok, original
    assert mirrored.ok, mirrored
    assert (mirrored.head, mirrored.intact) == (original.head, original.intact)
    assert mirrored.withheld == (await mirror.status()).withheld == len(private)


class PrivateStory:
    """A journal in which turns of several threads are committed together, and its mirror."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.private: set[int] = set()
        self.is_marked = False
        self._numbers = count()

    async def run(self, steps: list[tuple[str, int]], size: int) -> None:
        async with (
            SqliteJournal(str(self.folder / "edge.db")) as journal,
            MirrorStore(self.folder / "hub", lambda: NOW) as store,
            store.use(EDGE, create=True) as mirror,
        ):
            uploader = Uploader(journal, mirror)
            await uploader.begin()
            for name, amount in steps:
                if name == "mark":
                    await journal.mark_private(PRIVATE)
                    self.is_marked = True
                elif name == "turns":
                    await self._append_together(journal, amount)
                else:
                    await uploader.send_next(size)
            await uploader.send_all(size)
            await ensure_private(journal, mirror, self.private)
            await uploader.begin()
            for batch in uploader.sent:
                await uploader.send(batch)
            await ensure_private(journal, mirror, self.private)

    async def _append_together(self, journal: SqliteJournal, amount: int) -> None:
        batches = [make_turn(next(self._numbers), number % 4) for number in range(amount)]
        results = await asyncio.gather(*map(journal.append, batches))
        for batch, result in zip(batches, results, strict=True):
            for fact, seq in zip(batch, result.seqs, strict=True):
                if self.is_marked and fact.thread_id == PRIVATE:
                    self.private.add(seq)


@requirement
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("turns"), st.integers(1, 40)),
            st.tuples(st.sampled_from(["mark", "send"]), st.just(0)),
        ),
        max_size=12,
    ),
    size=st.sampled_from([1, 700, 100_000]),
)
def test_a_mirror_lacks_exactly_the_private_facts(steps: list[tuple[str, int]], size: int):
    with TemporaryDirectory() as folder:
        asyncio.run(PrivateStory(Path(folder)).run(steps, size))


@requirement
@pytest.mark.asyncio
async def test_threads_below_a_private_one_are_private(tmp_path: Path):
    async with SqliteJournal(str(tmp_path / "edge.db")) as journal:
        await journal.mark_private(PRIVATE)
        child = make_fact("c1", "child", parent_thread_id=PRIVATE)
        await journal.append([make_fact("a1", "thread-2"), child, make_fact("b1", PRIVATE)])
        named = make_fact("g1", "grandchild", payload={"parentThreadId": "child"})
        await journal.append([named, make_fact("c2", "child"), make_fact("a2", "thread-2")])
        shown = await upload(journal, tmp_path / "hub")
    assert shown == ["fact-a1", "fact-a2"]
    async with SqliteJournal(str(tmp_path / "edge.db")) as journal:
        await journal.append([make_fact("g2", "grandchild"), make_fact("a3", "thread-2")])
        assert await upload(journal, tmp_path / "hub-2") == ["fact-a1", "fact-a2", "fact-a3"]


async def upload(journal: SqliteJournal, folder: Path) -> list[str]:
    """The ids that a new mirror has in the end."""
    async with MirrorStore(folder, lambda: NOW) as store, store.use(EDGE, create=True) as mirror:
        uploader = Uploader(journal, mirror)
        await uploader.begin()
        await uploader.send_all()
        return [
            msgspec.json.decode(line, type=dict)["id"]
            for line in (await read_lines(mirror.journal)).values()
        ]


@requirement
@pytest.mark.asyncio
async def test_of_a_thinned_chunk_with_private_facts_nothing_is_sent(tmp_path: Path):
    async with SqliteJournal(str(tmp_path / "edge.db")) as journal:
        await journal.append([*make_turn(1, 3), *make_turn(2, 3)])
        await journal.mark_private(PRIVATE, after=0)
        await journal.compact()
        assert await upload(journal, tmp_path / "hub") == []


@requirement
@pytest.mark.asyncio
async def test_only_a_mirror_may_lack_facts_and_only_where_the_chain_says_so(tmp_path: Path):
    async with SqliteJournal(str(tmp_path / "edge.db")) as journal:
        await journal.mark_private(PRIVATE)
        await journal.append([*make_turn(1, 3), *make_turn(2, 3)])
        async with (
            MirrorStore(tmp_path / "hub", lambda: NOW) as store,
            store.use(EDGE, create=True) as mirror,
        ):
            uploader = Uploader(journal, mirror)
            await uploader.begin()
            batch = await uploader.read(100_000)
            withheld = batch.chunks[0]
            assert is_withheld(withheld)
            assert withheld.data == b""
            for change in ({"last": withheld.last + 1}, {"hash": b"\0" * 32}, {"data": b"{}\n"}):
                forged = msgspec.structs.replace(withheld, **change)
                with pytest.raises(MirrorBroken):
                    await uploader.send(
                        ChainBatch(
                            start=batch.start, records=(), chunks=(forged, *batch.chunks[1:])
                        )
                    )
            await uploader.send(batch)
            file = mirror.folder / mirror.file
            await mirror.close()
            pretend_original(file)
            async with SqliteJournal(f"{file}") as opened:
                report = await opened.verify()
            assert report.damage is not None
            assert report.damage.reason == "facts are withheld, which only a mirror may lack"


def pretend_original(path: Path) -> None:
    connection = connect(str(path), vfs=None)
    connection.execute("DELETE FROM meta WHERE name = 'mirror'")
    connection.close()


def find_no_private_threads(_: Database) -> dict[str, int]:
    return {}


@requirement
@pytest.mark.asyncio
@pytest.mark.parametrize("protects", [True, False])
async def test_nothing_of_a_private_thread_reaches_the_hub(tmp_path: Path, protects: bool):
    """Neither the thread, its forks, its evidence, its output nor what was removed of it; without
    the protection, the same search finds it.
    """
    off = patch.object(snapshots, "load_private_threads", find_no_private_threads)
    folder = tmp_path / "edge"
    folder.mkdir()
    async with running_mirror(tmp_path / "hub") as hub:
        if not protects:
            off.start()
        try:
            async with running_edge(folder, settings=settings_for(hub.target)) as edge:
                body = {"title": SECRET, "private": True}
                thread = await edge.post("/v1/threads", body, status=201)
                assert thread["private"]
                run = await edge.start(SECRET, threadId=thread["threadId"])
                await edge.allow_all(run["runId"])
                path = f"/v1/threads/{thread['threadId']}"
                fork = await edge.post(f"{path}:fork", {}, status=201)
                assert fork["private"]
                await edge.post("/v1/evidence", {"threadId": thread["threadId"]}, status=201)
                public = await edge.start("in the open")
                await edge.allow_all(public["runId"])
                await edge.http.delete(path)
                head = (await edge.machine.journal.head()).seq
                await hub.wait_for(edge.machine.edge_id, head)
                threads = await hub.http.get(f"/v1/edges/{edge.machine.edge_id}/threads")
                status = (await hub.http.get(f"/v1/edges/{edge.machine.edge_id}/mirror")).json()
        finally:
            off.stop()
    found = [
        path
        for path in (tmp_path / "hub").rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    listed = [row["threadId"] for row in threads.json()["items"]]
    assert public["threadId"] in listed
    assert bool(found) is not protects
    assert (thread["threadId"] in listed or fork["threadId"] in listed) is not protects
    assert (status["withheld"] > 0) is protects


@requirement
@pytest.mark.asyncio
async def test_an_import_knows_again_which_threads_are_private(tmp_path: Path):
    created = make_fact(
        "p1", PRIVATE, event_class="thread.created", payload={"title": "x", "private": True}
    )
    async with SqliteJournal(str(tmp_path / "edge.db")) as journal:
        await journal.mark_private(PRIVATE)
        child = make_fact("c1", "child", parent_thread_id=PRIVATE)
        await journal.append([make_fact("a1", "thread-2"), created, child])
    exported = str(tmp_path / "export.ndjson")
    assert run_command("journal", "export", str(tmp_path / "edge.db"), exported).code == 0
    assert run_command("journal", "import", exported, str(tmp_path / "new.db")).code == 0
    async with SqliteJournal(str(tmp_path / "new.db")) as journal:
        assert set(await journal.private_threads()) == {PRIVATE, "child"}
        assert await upload(journal, tmp_path / "hub") == []
        await journal.append([make_fact("a2", "thread-2"), make_fact("p2", PRIVATE)])
        assert await upload(journal, tmp_path / "hub-2") == ["fact-a2"]
