"""Mirrors hold to the chain of the journal that they mirror, whatever way it comes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factwire.edge.hub_upload import UploadSession, UploadStart
from factwire.facts.fact import Fact
from factwire.hub.mirror import mirror_store
from factwire.hub.mirror.mirror_store import EdgeMirror, MirrorStore, UnknownEdge, UploadFenced
from factwire.journal import (
    ChainPointUnknown,
    Cursor,
    JournalReadOnly,
    MirrorBroken,
    MirrorConflict,
    MirrorGap,
    MirrorRefused,
    RemovedFact,
    Restoration,
    RetentionPolicy,
)
from factwire.journal.atomic_files import replace_file
from factwire.journal.chunks import ChainBatch
from factwire.journal.sqlite import handle, retention
from factwire.journal.sqlite.journal import SqliteJournal
from tests.hub.mirrors import NOW
from tests.journal.contract import WAIT, make_fact

EDGE = "edge_1"


def make_turn(number: int, size: int) -> list[Fact]:
    """A turn whose deltas a compaction removes, except the first."""
    turn = {"turn_id": f"turn-{number}", "message_id": f"m-{number}"}
    thread = f"thread-{number % 3}"
    deltas = [make_fact(f"{number}-{at}", thread, **turn) for at in range(size)]
    done = {"event_class": "model.completed", "payload": {"text": "whole"}}
    end = make_fact(f"{number}-end", thread, event_class="turn.completed", **turn)
    return [*deltas, make_fact(f"{number}-done", thread, **turn, **done), end]


async def read_lines(journal: SqliteJournal) -> dict[int, bytes]:
    return {
        seq: line
        async for batch in journal.read()
        for seq, line in zip(batch.seqs, batch.lines(), strict=True)
    }


class Uploader:
    """What an Edge does: it asks where the mirror is, and sends what follows there."""

    def __init__(self, journal: SqliteJournal, mirror: EdgeMirror) -> None:
        self.journal = journal
        self.mirror = mirror
        self.sent: list[ChainBatch] = []
        self.session = UploadSession(session=0, acked_seq=0, acked_hash="", record="")

    async def begin(self, *, restart: bool = False) -> None:
        start = UploadStart(
            epoch=(await self.journal.head()).epoch, runtime_id="runtime", restart=restart
        )
        self.session = await self.mirror.begin_session(start)

    async def read(self, size: int) -> ChainBatch:
        end = self.session
        return await self.journal.read_chain(end.point, bytes.fromhex(end.record), size)

    async def send(self, batch: ChainBatch) -> None:
        body = msgspec.msgpack.encode(batch)
        came = msgspec.msgpack.decode(body, type=ChainBatch)
        self.session = await self.mirror.take_chain(self.session.session, came, body)

    async def send_next(self, size: int) -> bool:
        batch = await self.read(size)
        if not batch.chunks and not batch.records:
            return False
        if batch.has_gaps(self.session.acked_seq):
            removed = [each async for each in self.journal.read_removed()]
            threads = [each async for each in self.journal.records()]
            await self.mirror.take_removed(self.session.session, removed, threads)
        await self.send(batch)
        self.sent.append(batch)
        return True

    async def send_all(self, size: int = 4_000) -> None:
        while await self.send_next(size):
            pass


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.integers(1, 40)),
        st.tuples(st.just("send"), st.integers(1, 6_000)),
        st.tuples(st.just("again"), st.integers(0, 50)),
        st.tuples(st.just("ahead"), st.integers(1, 2_000)),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("retain"), st.integers(5, 60)),
    ),
    max_size=30,
)


class Story:
    """An Edge's journal and its mirror, taken through generated steps."""

    def __init__(self, folder: Path, *, held: bool) -> None:
        self.folder = folder
        self.held = held
        self.written: dict[int, bytes] = {}
        self.turns = 0

    async def run(self, steps: Sequence[tuple[str, int]]) -> None:
        async with (
            SqliteJournal(str(self.folder / "edge.db")) as journal,
            MirrorStore(self.folder / "hub", lambda: NOW) as store,
        ):
            with journal.hold_chain("upload", 0 if self.held else 10**9) as hold:
                async with store.use(EDGE, create=True) as mirror:
                    uploader = Uploader(journal, mirror)
                    await uploader.begin()
                    for name, size in steps:
                        await getattr(self, name)(uploader, size)
                        if self.held:
                            hold.position = uploader.session.acked_seq
                    await self.send(uploader, 3_000, everything=True)
                    await self.compare(uploader)

    async def turn(self, uploader: Uploader, size: int) -> None:
        self.turns += 1
        facts = make_turn(self.turns, size)
        for at in range(0, len(facts), 7):
            await uploader.journal.append(facts[at : at + 7])
        self.written |= await read_lines(uploader.journal)

    async def send(self, uploader: Uploader, size: int, *, everything: bool = False) -> None:
        try:
            while await uploader.send_next(size) and everything:
                pass
        except ChainPointUnknown:
            assert not self.held
            await uploader.begin(restart=True)
            await uploader.send_all()

    async def again(self, uploader: Uploader, size: int) -> None:
        """A part that was acknowledged comes again and changes nothing."""
        for batch in uploader.sent[size % (len(uploader.sent) or 1) :][:1]:
            before = await uploader.mirror.status()
            end = uploader.session
            try:
                await uploader.send(batch)
            except MirrorRefused:
                # After a restart the mirror no longer begins where this part does, and what
                # contradicts it is kept aside.
                assert not self.held
            after = msgspec.structs.replace(await uploader.mirror.status(), refused=before.refused)
            assert (uploader.session, after) == (end, before)

    async def ahead(self, uploader: Uploader, size: int) -> None:
        """A part that comes before the one it follows is refused with the seq that is expected."""
        try:
            batch = await uploader.read(size)
        except ChainPointUnknown:
            return
        end = uploader.session
        if len(batch.chunks) > 1 and end.acked_seq:
            later = msgspec.structs.replace(batch, chunks=batch.chunks[1:])
            with pytest.raises(MirrorGap) as refused:
                await uploader.send(later)
            assert refused.value.expected == end.acked_seq + 1
            assert uploader.session == end

    async def reopen(self, uploader: Uploader, _: int) -> None:
        await uploader.mirror.close()
        await uploader.mirror.open()
        await uploader.begin()

    async def begin(self, uploader: Uploader, _: int) -> None:
        await uploader.begin()

    async def compact(self, uploader: Uploader, _: int) -> None:
        await uploader.journal.compact()

    async def retain(self, uploader: Uploader, size: int) -> None:
        if self.turns:
            await uploader.journal.retain(RetentionPolicy(keep_facts=size))

    async def compare(self, uploader: Uploader) -> None:
        """The mirror has the chain and, where it was waited for, every fact that ever was."""
        original, mirrored = await uploader.journal.verify(), await uploader.mirror.journal.verify()
        assert (mirrored.damage, original.damage) == (None, None)
        assert (mirrored.head, mirrored.intact) == (original.head, original.intact)
        kept, held = await read_lines(uploader.journal), await read_lines(uploader.mirror.journal)
        assert {seq: held[seq] for seq in kept} == kept
        assert held == self.written if self.held else held.items() <= self.written.items()
        assert await uploader.mirror.journal.head() == await uploader.journal.head()
        assert await uploader.mirror.journal.threads() == await uploader.journal.threads()


@pytest.mark.requirement("mirror.same-chain")
@settings(max_examples=60, deadline=None)
@given(STEPS)
@example([("turn", 40), ("send", 1), ("compact", 0), ("send", 1), ("retain", 5)])
def test_any_cut_and_repetition_of_uploads_gives_the_same_journal(steps: list[tuple[str, int]]):
    with TemporaryDirectory() as folder:
        asyncio.run(Story(Path(folder), held=True).run(steps))


@pytest.mark.requirement("mirror.keeps")
@settings(max_examples=40, deadline=None)
@given(STEPS)
@example([("turn", 33), ("send", 1), ("compact", 0), ("send", 1), ("again", 0)])
@example([("turn", 4), ("retain", 5), ("send", 1), ("compact", 0)])
def test_a_mirror_stays_verifiable_when_the_edge_removes_what_it_has_not_sent(
    steps: list[tuple[str, int]],
):
    with TemporaryDirectory() as folder:
        asyncio.run(Story(Path(folder), held=False).run(steps))


@pytest.mark.requirement("mirror.same-chain")
@pytest.mark.asyncio
async def test_an_upload_that_comes_while_the_one_before_is_sealed_is_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sealing, made, insert_segment = Event(), Event(), handle.insert_segment

    def insert_later(*args: Any) -> None:
        sealing.set()
        assert made.wait(WAIT)
        insert_segment(*args)

    class NotedIntake(retention.MirrorIntake):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            if sealing.is_set():
                made.set()

    async with (
        SqliteJournal(str(tmp_path / "a.db")) as journal,
        SqliteJournal(str(tmp_path / "b.db")) as mirror,
        asyncio.timeout(WAIT),
    ):
        await journal.append(make_turn(1, 6))
        await journal.append(make_turn(2, 2))
        first = await journal.read_chain(await journal.chain_point(0), size=1)
        second = await journal.read_chain(await journal.chain_point(8), size=1)
        monkeypatch.setattr(handle, "RUN_IDS", 8)
        monkeypatch.setattr(retention, "RUN_IDS", 1)
        monkeypatch.setattr(handle, "insert_segment", insert_later)
        monkeypatch.setattr(retention, "MirrorIntake", NotedIntake)
        await mirror.become_mirror((await journal.head()).epoch)
        taking = asyncio.create_task(mirror.take_chain(first))
        assert await asyncio.to_thread(sealing.wait, WAIT)
        assert (await mirror.take_chain(second)).point == await journal.chain_point(12)
        await taking
        assert await read_lines(mirror) == await read_lines(journal)
        assert (await mirror.verify()).ok


@pytest.mark.requirement("mirror.conflict")
@pytest.mark.asyncio
async def test_other_bytes_at_a_place_that_is_held_are_refused_and_kept_aside(tmp_path: Path):
    async with (
        SqliteJournal(str(tmp_path / "a.db")) as journal,
        SqliteJournal(str(tmp_path / "b.db")) as other,
        MirrorStore(tmp_path / "hub", lambda: NOW) as store,
        store.use(EDGE, create=True) as mirror,
    ):
        await journal.append(make_turn(1, 3))
        await other.append(make_turn(2, 3))
        uploader = Uploader(journal, mirror)
        await uploader.begin()
        await uploader.send_all()
        before = await mirror.status()
        batch = await Uploader(other, mirror).read(4_000)
        for _ in range(2):
            with pytest.raises(MirrorConflict):
                await uploader.send(batch)
        status = await mirror.status()
        kept = [(each.at, each.first, each.last) for each in status.refused]
        assert kept == [(NOW, 1, 5)]
        assert msgspec.structs.replace(status, refused=()) == before
        stored = (mirror.folder / status.refused[0].file).read_bytes()
        assert msgspec.msgpack.decode(stored, type=ChainBatch) == batch


@pytest.mark.requirement("mirror.fenced")
@pytest.mark.asyncio
async def test_a_newer_session_fences_all_before_it_also_after_a_restart(tmp_path: Path):
    async with SqliteJournal(str(tmp_path / "a.db")) as journal:
        async with (
            MirrorStore(tmp_path / "hub", lambda: NOW) as store,
            store.use(EDGE, create=True) as mirror,
        ):
            await journal.append(make_turn(1, 3))
            old = Uploader(journal, mirror)
            await old.begin()
            new = Uploader(journal, mirror)
            await new.begin()
            with pytest.raises(UploadFenced):
                await old.send_all()
            await new.send_all()
        async with MirrorStore(tmp_path / "hub", lambda: NOW) as store, store.use(EDGE) as mirror:
            old.mirror = mirror
            with pytest.raises(UploadFenced):
                await old.send(new.sent[0])


@pytest.mark.requirement("mirror.fenced")
@pytest.mark.asyncio
async def test_readers_see_a_journal_with_its_own_name_while_another_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with (
        SqliteJournal(str(tmp_path / "a.db")) as journal,
        MirrorStore(tmp_path / "hub", lambda: NOW) as store,
        store.use(EDGE, create=True) as mirror,
    ):
        seen: list[tuple[SqliteJournal | None, tuple[str, ...]]] = []

        def replace_and_look(path: Path, content: bytes) -> None:
            replace_file(path, content)
            seen.append((mirror._journal, mirror._state.files))

        monkeypatch.setattr(mirror_store, "replace_file", replace_and_look)
        uploader = Uploader(journal, mirror)
        await uploader.begin()
        first = (mirror.journal, (mirror.file,))
        await uploader.begin(restart=True)
        assert seen == [(None, ()), first]
        assert mirror.journal is not first[0]
        assert mirror.file not in first[1]


@pytest.mark.requirement("mirror.verified")
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_changed_byte_never_gets_into_a_mirror(data: st.DataObject):
    with TemporaryDirectory() as folder:
        asyncio.run(_change_a_byte(Path(folder), data))


async def _change_a_byte(folder: Path, data: st.DataObject) -> None:
    async with (
        SqliteJournal(str(folder / "a.db")) as journal,
        MirrorStore(folder / "hub", lambda: NOW) as store,
        store.use(EDGE, create=True) as mirror,
    ):
        for number in range(3):
            await journal.append(make_turn(number, 4))
        await journal.compact()
        await journal.append(make_turn(9, 2))
        uploader = Uploader(journal, mirror)
        await uploader.begin()
        batch = await uploader.read(100_000)
        at = data.draw(st.integers(0, len(batch.chunks) - 1))
        name = data.draw(st.sampled_from(("data", "prev", "hash")))
        value: bytes = getattr(batch.chunks[at], name)
        place = data.draw(st.integers(0, len(value) - 1))
        flipped = bytes([value[place] ^ (1 << data.draw(st.integers(0, 7)))])
        changed = msgspec.structs.replace(
            batch.chunks[at], **{name: value[:place] + flipped + value[place + 1 :]}
        )
        chunks = (*batch.chunks[:at], changed, *batch.chunks[at + 1 :])
        with pytest.raises(MirrorBroken):
            await uploader.send(msgspec.structs.replace(batch, chunks=chunks))
        assert (await mirror.status()).facts == 0
        await uploader.send_all()
        assert await read_lines(mirror.journal) == await read_lines(journal)


@pytest.mark.requirement("mirror.verified")
@pytest.mark.asyncio
async def test_an_id_that_stands_elsewhere_is_not_taken_as_that_of_a_removed_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(retention, "RUN_IDS", 1)
    async with (
        SqliteJournal(str(tmp_path / "a.db")) as journal,
        SqliteJournal(str(tmp_path / "b.db")) as mirror,
        asyncio.timeout(WAIT),
    ):
        await journal.append(make_turn(1, 3))
        await journal.append(make_turn(2, 3))
        first = await journal.read_chain(await journal.chain_point(0), size=1)
        second = await journal.read_chain(await journal.chain_point(5), size=1)
        await mirror.become_mirror((await journal.head()).epoch)
        removed = RemovedFact(100, "fact-removed", 1, b"digest")
        await mirror.take_removed([removed], [])
        twice = [RemovedFact(seq, "fact-new", 1, b"digest") for seq in (101, 102)]
        for batch in (first, second):
            await mirror.take_chain(batch)
            for known in ("fact-removed", "fact-1-0"):
                with pytest.raises(MirrorBroken):
                    await mirror.take_removed([RemovedFact(103, known, 1, b"digest")], [])
            with pytest.raises(MirrorBroken):
                await mirror.take_removed(twice, [])
        await mirror.take_removed([removed], [])
        assert (await mirror.verify()).ok


@pytest.mark.requirement("mirror.read-only")
@pytest.mark.asyncio
async def test_a_mirror_makes_no_facts_of_its_own(tmp_path: Path):
    async with (
        SqliteJournal(str(tmp_path / "a.db")) as journal,
        MirrorStore(tmp_path / "hub", lambda: NOW) as store,
        store.use(EDGE, create=True) as mirror,
    ):
        await journal.append(make_turn(1, 3))
        uploader = Uploader(journal, mirror)
        await uploader.begin()
        await uploader.send_all()
        attempts = (
            lambda: mirror.journal.append([make_fact("own")]),
            lambda: mirror.journal.retain(RetentionPolicy(keep_facts=1)),
            mirror.journal.compact,
            lambda: mirror.journal.restore(Restoration(floor=0, entries=(), threads=())),
        )
        for attempt in attempts:
            with pytest.raises(JournalReadOnly):
                await attempt()
        with pytest.raises(MirrorBroken):
            await journal.become_mirror("0" * 16)
        with pytest.raises(MirrorBroken):
            await journal.take_chain(uploader.sent[0])


@pytest.mark.asyncio
async def test_another_epoch_gets_a_file_of_its_own_and_idle_mirrors_are_closed(tmp_path: Path):
    async with MirrorStore(tmp_path / "hub", lambda: NOW, open_mirrors=2) as store:
        for number in range(5):
            async with (
                SqliteJournal(str(tmp_path / f"{number}.db")) as journal,
                store.use(f"edge_{number % 4}", create=True) as mirror,
            ):
                await journal.append(make_turn(number, 3))
                uploader = Uploader(journal, mirror)
                await uploader.begin()
                await uploader.send_all()
                former = (await mirror.status()).former
                assert len(former) == number // 4
                assert await read_lines(mirror.journal) == await read_lines(journal)
        assert await store.edges() == [f"edge_{number}" for number in range(4)]
        for unknown in ("edge_9", "../hub", "a/b", "", "x" * 65):
            with pytest.raises(UnknownEdge):
                async with store.use(unknown):
                    raise AssertionError


@pytest.mark.requirement("mirror.same-chain")
@pytest.mark.asyncio
async def test_an_older_copy_of_a_mirror_is_only_behind(tmp_path: Path):
    async with SqliteJournal(str(tmp_path / "a.db")) as journal:
        for number in range(2):
            await journal.append(make_turn(number, 20))
            async with (
                MirrorStore(tmp_path / "hub", lambda: NOW) as store,
                store.use(EDGE, create=True) as mirror,
            ):
                uploader = Uploader(journal, mirror)
                await uploader.begin()
                await uploader.send_all()
            if number == 0:
                copytree(tmp_path / "hub", tmp_path / "backup")
        rmtree(tmp_path / "hub")
        copytree(tmp_path / "backup", tmp_path / "hub")
        async with MirrorStore(tmp_path / "hub", lambda: NOW) as store, store.use(EDGE) as mirror:
            assert await mirror.journal.head() == Cursor((await journal.head()).epoch, 22)
            uploader = Uploader(journal, mirror)
            await uploader.begin()
            await uploader.send_all()
            assert await read_lines(mirror.journal) == await read_lines(journal)
            assert await mirror.journal.head() == await journal.head()
            assert (await mirror.status()).former == ()
