"""Blobs under faults; each protection is also taken away once, and the same test must then fail."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from factwire.journal.blobs import (
    BlobCorrupt,
    BlobMissing,
    BlobStore,
    BlobUnreadable,
    BlobUnwritable,
    FileBlobs,
)
from factwire.journal.blobs.blob_store import BLOCK, BlobSeal
from tests.journal.blob_stores import GRACE, REFRESH, STORES, Opened, in_pieces, refs, whole

PROGRAMS = Path(__file__).with_name("blob_faults.py")
CONTENT = Random(7).randbytes(3 * BLOCK + 12_345)


def program(*arguments: object) -> list[str]:
    return [sys.executable, str(PROGRAMS), *map(str, arguments)]


def run(*arguments: object) -> str:
    done = subprocess.run(
        program(*arguments), check=True, capture_output=True, text=True, timeout=280
    )
    return done.stdout


def blobs_in(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("??/??/*")]


def left_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def kill_after(steps: int, *arguments: object) -> list[str]:
    """Kill a program with signal 9 at its nth step; the hashes it had acknowledged by then."""
    with subprocess.Popen(program(*arguments), stdout=subprocess.PIPE) as process:
        assert process.stdout
        seen = b""
        while seen.count(b".") < steps:
            seen += process.stdout.read(1)
        process.kill()
        seen += process.stdout.read()
    return [part[:64].decode() for part in seen.split(b"=")[1:] if len(part) >= 64]


async def damaged_blobs(folder: Path) -> list[str]:
    store = FileBlobs(folder)
    found: list[str] = []
    for digest in blobs_in(folder):
        try:
            await whole(store, f"output:sha256:{digest}")
        except BlobCorrupt:
            found.append(digest)
    return found


def kill_rounds(folder: Path, rounds: int, protection: str) -> tuple[int, list[str], list[str]]:
    """Acknowledged blobs, those of them that are missing, and partial ones, over all rounds."""
    source = Random(3)
    acknowledged: list[str] = []
    for number in range(rounds):
        steps = source.randrange(1, 60)
        acknowledged += kill_after(steps, "put_for_ever", folder, number, protection)
    there = set(blobs_in(folder))
    missing = [digest for digest in acknowledged if digest not in there]
    return len(acknowledged), missing, asyncio.run(damaged_blobs(folder))


@pytest.mark.fault
@pytest.mark.requirement("journal.blobs.whole")
def test_a_killed_put_leaves_no_partial_blob(tmp_path: Path):
    acknowledged, missing, damaged = kill_rounds(tmp_path / "blobs", 30, "on")
    assert acknowledged > 10
    assert (missing, damaged) == ([], [])
    swept = asyncio.run(FileBlobs(tmp_path / "blobs").collect_garbage(refs(), grace=-60))
    assert swept.leftovers > 5
    assert left_in(tmp_path) == []


@pytest.mark.fault
def test_a_put_that_does_not_rename_would_leave_partial_blobs(tmp_path: Path):
    assert kill_rounds(tmp_path / "blobs", 10, "off")[2]


@pytest.mark.fault
@pytest.mark.requirement("journal.blobs.stream")
@pytest.mark.parametrize("store", ["files", "objects"])
def test_two_hundred_megabytes_take_no_more_memory_than_twenty(tmp_path: Path, store: str):
    before, after = map(int, run("stream", tmp_path / "blobs", store, 200, "no").split())
    assert after < 1.3 * before


@pytest.mark.fault
def test_the_measurement_of_memory_sees_a_hoard(tmp_path: Path):
    before, after = map(int, run("stream", tmp_path / "blobs", "files", 200, "yes").split())
    assert after > 2 * before


@pytest.mark.fault
@pytest.mark.requirement("journal.blobs.dedupe")
def test_processes_that_put_the_same_content_do_not_disturb_each_other(tmp_path: Path):
    """Four processes put the same blobs in the same order, and all are killed on the way."""
    folder = tmp_path / "blobs"
    with_seed = [program("put_for_ever", folder, 1, "on") for _ in range(4)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in with_seed]
    acknowledged: set[str] = set()
    for process in running:
        assert process.stdout
        seen = b""
        while seen.count(b"=") < 12:
            seen += process.stdout.read(1)
        acknowledged |= {part[:64].decode() for part in seen.split(b"=")[1:-1]}
    for process in running:
        process.kill()
        process.communicate()
    assert acknowledged <= set(blobs_in(folder))
    assert asyncio.run(damaged_blobs(folder)) == []


@pytest.mark.requirement("journal.blobs.full")
def test_a_full_disk_is_an_error_that_leaves_nothing_and_passes(tmp_path: Path):
    assert run("fill_disk", tmp_path / "blobs", 1_000_000) == "blob_unwritable 0 1000"


@pytest.mark.requirement("journal.blobs.full")
@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["memory", "objects"])
async def test_a_full_object_store_is_an_error_that_passes(tmp_path: Path, name: str):
    opened = Opened(name, tmp_path, capacity=100_000)
    with pytest.raises(BlobUnwritable) as raised:
        await opened.store.put(CONTENT, kind="output")
    assert raised.value.code == "blob_unwritable"
    assert opened.stored_bytes() == {}
    assert await whole(opened.store, await opened.store.put(b"small", kind="output")) == b"small"


@pytest.mark.requirement("journal.blobs.full")
@pytest.mark.asyncio
@pytest.mark.parametrize("call", ["open", "write", "fsync", "utime"])
async def test_a_failing_call_of_the_system_is_an_error_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
):
    store = FileBlobs(tmp_path)

    def raise_disk_full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, raise_disk_full)
        with pytest.raises(BlobUnwritable, match="No space left on device"):
            await store.put(in_pieces(CONTENT, 1000), kind="output")
    assert left_in(tmp_path) == []
    assert await whole(store, await store.put(CONTENT, kind="output")) == CONTENT


@pytest.mark.asyncio
async def test_a_disk_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = FileBlobs(tmp_path)
    ref = await store.put(CONTENT, kind="output")

    def raise_read_error(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", raise_read_error)
    with pytest.raises(BlobUnreadable) as raised:
        await whole(store, ref)
    assert raised.value.code == "blob_unreadable"


async def read_blob(store: BlobStore, ref: Any, **span: int) -> tuple[bytes, bool]:
    """What was handed out, and whether it ended in `BlobCorrupt`."""
    content = b""
    try:
        async for piece in store.get(ref, **span):
            content += piece
    except BlobCorrupt:
        return content, True
    return content, False


async def flip_bits(opened: Opened, flips: int) -> tuple[int, int]:
    """Flip one bit at a time; how often that was missed, and how often wrong bytes came out."""
    source = Random(11)
    ref = await opened.store.put(CONTENT, kind="output")
    [(digest, sound)] = opened.stored_bytes().items()
    missed = wrong = 0
    for _ in range(flips):
        at = source.randrange(len(sound))
        changed = bytes([sound[at] ^ (1 << source.randrange(8))])
        opened.overwrite(digest, sound[:at] + changed + sound[at + 1 :])
        content, caught = await read_blob(opened.store, ref)
        missed += not caught
        start, end = max(0, at - 100), at + 100
        part, caught_in_range = await read_blob(opened.store, ref, start=start, end=end)
        missed += not caught_in_range
        wrong += not CONTENT.startswith(content) or not CONTENT[start:end].startswith(part)
        other = (at + 2 * BLOCK) % len(CONTENT)
        elsewhere, caught = await read_blob(opened.store, ref, start=other, end=other + 10)
        wrong += not caught and elsewhere != CONTENT[other : other + 10]
        opened.overwrite(digest, sound)
    assert await whole(opened.store, ref) == CONTENT
    return missed, wrong


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.blobs.corrupt")
@pytest.mark.parametrize("name", STORES)
async def test_a_flipped_bit_is_found_and_never_served(tmp_path: Path, name: str):
    assert await flip_bits(Opened(name, tmp_path), 100) == (0, 0)


@pytest.mark.fault
@pytest.mark.asyncio
async def test_without_block_hashes_flipped_bits_would_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def trust(*_: object) -> bool:
        return True

    monkeypatch.setattr(BlobSeal, "fits", trust)
    missed, wrong = await flip_bits(Opened("files", tmp_path), 100)
    assert missed
    assert wrong


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.blobs.corrupt")
@pytest.mark.parametrize("name", STORES)
async def test_a_blob_of_another_length_is_found_and_never_served(tmp_path: Path, name: str):
    opened = Opened(name, tmp_path)
    source = Random(12)
    ref = await opened.store.put(CONTENT, kind="output")
    [(digest, sound)] = opened.stored_bytes().items()
    cuts = [0, 1, len(sound) - 1, *(source.randrange(len(sound)) for _ in range(50))]
    for changed in (*(sound[:cut] for cut in cuts), sound + b"\0", sound + sound):
        opened.overwrite(digest, changed)
        content, caught = await read_blob(opened.store, ref)
        assert caught
        assert content == b""


class Ledger:
    """Refs as a journal has them: appended some time after their put, forgotten by retention.

    Its clock moves only as far as every open put may wait for its append.
    """

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.appended: set[str] = set()
        self.lost: list[str] = []
        self._open: dict[object, float] = {}

    def advance(self, seconds: float) -> None:
        limit = min(self._open.values(), default=self.opened.now + seconds) + GRACE - REFRESH - 1
        self.opened.now = max(self.opened.now, min(self.opened.now + seconds, limit))

    async def put_and_append(self, content: bytes, source: Random) -> None:
        key = object()
        self._open[key] = self.opened.now
        ref = (await self.opened.store.put(content, kind="output")).ref
        for _ in range(source.randrange(4)):
            await asyncio.sleep(0)
        self.appended.add(ref)
        del self._open[key]
        await self.check(ref)

    async def check(self, ref: str) -> None:
        try:
            await whole(self.opened.store, ref)
        except BlobMissing:
            self.lost.append(ref)

    async def references(self) -> AsyncIterator[str]:
        for ref in tuple(self.appended):
            yield ref
        for _ in range(len(self.appended) % 5):
            await asyncio.to_thread(int)


async def race(opened: Opened, seed: int, rounds: int) -> tuple[int, list[str]]:
    """Writers, retention and collections, interleaved; how much was collected and what was lost."""
    source = Random(seed)
    ledger = Ledger(opened)
    contents = [source.randbytes(50) for _ in range(8)]
    collected = 0
    for _ in range(rounds):
        ledger.advance(source.choice([0, 1, GRACE]))
        for ref in sorted(ledger.appended):
            if source.random() < 0.4:
                ledger.appended.discard(ref)
        writers = [
            ledger.put_and_append(source.choice(contents), source)
            for _ in range(source.randrange(4))
        ]
        collecting = opened.store.collect_garbage(ledger.references, grace=GRACE)
        writing = asyncio.gather(*writers)
        collected += len((await collecting).removed)
        await writing
    for ref in ledger.appended:
        await ledger.check(ref)
    return collected, ledger.lost


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("journal.blobs.garbage")
@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("seed", range(5))
async def test_collections_that_race_with_puts_lose_nothing(tmp_path: Path, name: str, seed: int):
    collected, lost = await race(Opened(name, tmp_path), seed, 150)
    assert collected > 20
    assert lost == []


@pytest.mark.fault
@pytest.mark.asyncio
async def test_a_collection_that_does_not_look_again_would_lose_blobs(tmp_path: Path):
    opened = Opened("files", tmp_path)
    store = opened.store
    assert isinstance(store, FileBlobs)

    class Unlooking(dict[str, int]):
        """Claims that nothing has changed since the files were listed."""

        def items(self) -> Any:
            return {
                path.name: path.stat().st_mtime_ns
                for path in tmp_path.glob("??/??/*")
                if path.name in self
            }.items()

    sweep = store._sweep
    store._sweep = lambda unreferenced, before: sweep(Unlooking(unreferenced), before)
    assert any([(await race(opened, seed, 150))[1] for seed in range(5)])


@pytest.mark.asyncio
async def test_an_object_store_that_deletes_any_version_would_lose_blobs(tmp_path: Path):
    opened = Opened("objects", tmp_path)
    ref = await opened.store.put(CONTENT, kind="output")
    opened.now += GRACE
    delete = opened.client.delete

    async def delete_any(key: str, version: str) -> bool:
        head = await opened.client.head(key)
        return await delete(key, head.version if head else version)

    async def put_during_listing() -> AsyncIterator[str]:
        await opened.store.put(CONTENT, kind="output")
        for other in ():
            yield other

    opened.client.delete = delete_any
    await opened.store.collect_garbage(put_during_listing, grace=GRACE)
    assert not await opened.store.exists(ref)
