"""The contract of blobs, over every store."""

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.facts.refs import InvalidRef, Ref, content_ref
from factwire.journal.blobs import BlobCorrupt, BlobMissing, FileBlobs, MemoryBlobs, ObjectBlobs
from factwire.journal.blobs.blob_store import BLOCK, run_disk_work
from tests.journal.blob_stores import GRACE, STORES, Opened, in_pieces, refs, whole

pytestmark = pytest.mark.asyncio

BIG = Random(1).randbytes(2 * BLOCK + 1000)
SIZES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK]


@pytest.fixture(params=STORES)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    return Opened(request.param, tmp_path / "blobs")


@pytest.mark.requirement("journal.blobs.roundtrip")
@pytest.mark.parametrize("size", SIZES)
async def test_what_was_put_is_what_is_read(backend: Opened, size: int):
    content = Random(size).randbytes(size)
    ref = await backend.store.put(content, kind="output")
    assert ref == Ref(ref=content_ref("output", content), kind="output", bytes=size)
    assert await whole(backend.store, ref) == content
    assert await whole(backend.store, ref.ref) == content
    assert await backend.store.exists(ref)
    found = await backend.store.stat(ref)
    assert (found.bytes, found.stored_at) == (size, backend.now)


@pytest.mark.requirement("journal.blobs.roundtrip")
@pytest.mark.parametrize("piece", [1000, BLOCK, BLOCK + 1, 10 * BLOCK])
async def test_a_stream_in_pieces_of_any_size_is_the_same_blob(backend: Opened, piece: int):
    streamed = await backend.store.put(in_pieces(BIG, piece), kind="artifact")
    assert streamed.ref == content_ref("artifact", BIG)
    assert await whole(backend.store, streamed) == BIG


@pytest.mark.requirement("journal.blobs.range")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.data())
async def test_a_range_is_that_slice_of_the_content(backend: Opened, data: st.DataObject):
    ref = await backend.store.put(BIG, kind="raw")
    start = data.draw(st.integers(0, len(BIG) + 10))
    end = data.draw(st.one_of(st.none(), st.integers(start, len(BIG) + 10)))
    assert await whole(backend.store, ref, start=start, end=end) == BIG[start:end]


@pytest.mark.requirement("journal.blobs.range")
@pytest.mark.parametrize(("start", "end"), [(-1, None), (0, -1), (5, 4)])
async def test_a_range_that_runs_backwards_is_refused(backend: Opened, start: int, end: int | None):
    ref = await backend.store.put(b"content", kind="raw")
    with pytest.raises(ValueError, match="start <= end"):
        await whole(backend.store, ref, start=start, end=end)


@pytest.mark.requirement("journal.blobs.dedupe")
async def test_the_same_content_is_stored_once_whatever_its_kind(backend: Opened):
    kept = [
        await backend.store.put(BIG, kind="output"),
        await backend.store.put(in_pieces(BIG, 999), kind="evidence"),
        await backend.store.put(BIG, kind="output"),
    ]
    assert [ref.kind for ref in kept] == ["output", "evidence", "output"]
    assert list(backend.stored_bytes()) == [sha256(BIG).hexdigest()]
    assert [await whole(backend.store, ref) for ref in kept] == [BIG] * 3


@pytest.mark.requirement("journal.blobs.dedupe")
async def test_concurrent_puts_of_the_same_content_all_succeed(backend: Opened):
    puts = [backend.store.put(in_pieces(BIG, 70_000), kind="output") for _ in range(20)]
    assert {ref.ref for ref in await asyncio.gather(*puts)} == {content_ref("output", BIG)}
    assert len(backend.stored_bytes()) == 1
    assert await whole(backend.store, content_ref("output", BIG)) == BIG


@pytest.mark.requirement("journal.blobs.missing")
async def test_a_blob_that_is_not_there_is_missing(backend: Opened):
    ref = content_ref("output", b"never put")
    assert not await backend.store.exists(ref)
    for asking in (whole(backend.store, ref), backend.store.stat(ref)):
        with pytest.raises(BlobMissing) as raised:
            await asking
        assert raised.value.code == "blob_missing"
    await backend.store.put(b"other", kind="output")
    with pytest.raises(BlobMissing):
        await whole(backend.store, ref)


@pytest.mark.requirement("journal.blobs.missing")
@pytest.mark.parametrize(
    "ref", ["../../etc/passwd", "output:sha256:../../x", "output:sha256:AB", "asset:1", ""]
)
async def test_a_ref_is_a_hash_and_never_a_path(backend: Opened, ref: str):
    for asking in (whole(backend.store, ref), backend.store.stat(ref), backend.store.exists(ref)):
        with pytest.raises(InvalidRef):
            await asking


@pytest.mark.requirement("journal.blobs.whole")
async def test_a_source_that_fails_leaves_nothing(backend: Opened):
    async def failing_source() -> AsyncIterator[bytes]:
        yield BIG
        raise ConnectionResetError("the source is gone")

    with pytest.raises(ConnectionResetError):
        await backend.store.put(failing_source(), kind="output")
    assert backend.stored_bytes() == {}
    assert list(backend.folder.rglob("incoming/*")) == []


@pytest.mark.requirement("journal.blobs.whole")
async def test_a_canceled_put_leaves_nothing(backend: Opened):
    arrived = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield BIG
        arrived.set()
        await asyncio.Event().wait()

    putting = asyncio.create_task(backend.store.put(stuck(), kind="output"))
    await asyncio.wait_for(arrived.wait(), 30)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert backend.stored_bytes() == {}
    assert list(backend.folder.rglob("incoming/*")) == []


async def test_a_cancellation_waits_for_the_disk():
    begun, go = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(30)

    writing = asyncio.create_task(run_disk_work(work))
    assert await asyncio.to_thread(begun.wait, 30)
    writing.cancel()
    await asyncio.to_thread(int)
    assert not writing.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await writing


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_collection_removes_what_is_old_and_unreferenced(backend: Opened):
    store = backend.store
    used = await store.put(b"used", kind="output")
    unused = await store.put(b"unused", kind="output")
    backend.now += GRACE
    young = await store.put(b"young", kind="output")

    done = await store.collect_garbage(refs([used.ref]), grace=GRACE)
    assert (done.removed, done.freed) == ((sha256(b"unused").hexdigest(),), len(b"unused"))
    assert [await store.exists(ref) for ref in (used, unused, young)] == [True, False, True]
    again = await store.collect_garbage(lambda: refs([used.ref]), grace=GRACE)
    assert again.removed == ()


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_reference_of_any_kind_keeps_a_blob(backend: Opened):
    await backend.store.put(b"content", kind="output")
    backend.now += GRACE
    kept = refs([content_ref("evidence", b"content")])
    assert (await backend.store.collect_garbage(kept, grace=GRACE)).removed == ()


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_repeated_put_makes_a_blob_young_again(backend: Opened):
    ref = await backend.store.put(b"content", kind="output")
    backend.now += GRACE
    await backend.store.put(b"content", kind="output")
    assert (await backend.store.collect_garbage(refs(), grace=GRACE)).removed == ()
    assert await whole(backend.store, ref) == b"content"


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_put_during_a_collection_is_safe(backend: Opened):
    """Put after the old blobs were listed, and appended too late for the collection to hear."""
    store = backend.store
    ref = await store.put(BIG, kind="output")
    backend.now += GRACE

    async def put_during_listing() -> AsyncIterator[str]:
        await store.put(in_pieces(BIG, BLOCK), kind="output")
        for other in ():
            yield other

    assert (await store.collect_garbage(put_during_listing, grace=GRACE)).removed == ()
    assert await whole(store, ref) == BIG


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_collection_whose_references_fail_removes_nothing(backend: Opened):
    ref = await backend.store.put(b"content", kind="output")
    backend.now += GRACE

    async def failing_references() -> AsyncIterator[str]:
        yield content_ref("output", b"other")
        raise ConnectionResetError("the journal is gone")

    with pytest.raises(ConnectionResetError):
        await backend.store.collect_garbage(failing_references, grace=GRACE)
    with pytest.raises(InvalidRef):
        await backend.store.collect_garbage(refs(["not a ref"]), grace=GRACE)
    assert await backend.store.exists(ref)


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_collection_of_nothing_is_quiet_and_leaves_strangers_alone(backend: Opened):
    assert (await backend.store.collect_garbage(refs(), grace=GRACE)).removed == ()
    await backend.store.put(b"content", kind="output")
    backend.client.objects["blobs/readme"] = b"not a blob"
    stranger = backend.folder / "00" / "11" / "readme"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("not a blob")
    backend.now += GRACE
    assert len((await backend.store.collect_garbage(refs(), grace=GRACE)).removed) == 1
    assert stranger.exists()


@pytest.mark.requirement("journal.blobs.corrupt")
async def test_a_blob_under_another_blobs_name_is_not_served(backend: Opened):
    one = await backend.store.put(b"one", kind="output")
    two = await backend.store.put(b"two", kind="output")
    stored = backend.stored_bytes()
    backend.overwrite(one.ref[-64:], stored[two.ref[-64:]])
    with pytest.raises(BlobCorrupt) as raised:
        await whole(backend.store, one)
    assert raised.value.code == "blob_corrupt"


@pytest.mark.requirement("journal.blobs.durable")
async def test_file_and_folders_are_synced_before_a_put_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls: list[tuple[str, Path]] = []
    fsync, replace = os.fsync, Path.replace

    def record_sync(file: int) -> None:
        calls.append(("sync", Path(f"/proc/self/fd/{file}").readlink()))
        fsync(file)

    def record_rename(path: Path, target: Path) -> Path:
        calls.append(("rename", path))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "replace", record_rename)
    root = tmp_path / "new" / "blobs"
    ref = await FileBlobs(root).put(BIG, kind="output")
    digest = ref.ref[-64:]
    leaf = root / digest[:2] / digest[2:4]
    at = [name for name, _ in calls].index("rename")
    assert ("sync", calls[at][1]) in calls[:at]
    assert calls[-1] == ("sync", leaf)
    assert {tmp_path, root.parent, root, leaf.parent, leaf} <= {path for _, path in calls}

    calls.clear()
    await FileBlobs(root).put(BIG, kind="output")
    assert calls[-1] == ("sync", leaf)
    assert {root.parent, root, leaf.parent} <= {path for _, path in calls}


async def test_a_folder_and_its_files_belong_to_their_owner_alone(tmp_path: Path):
    store = FileBlobs(tmp_path / "deep" / "blobs")
    mask = os.umask(0)
    try:
        await store.put(BIG, kind="output")
    finally:
        os.umask(mask)
    paths = [tmp_path / "deep" / "blobs", *(tmp_path / "deep" / "blobs").rglob("*")]
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert modes == {True: 0o700, False: 0o600}


@pytest.mark.requirement("journal.blobs.heal")
async def test_putting_a_damaged_blob_again_mends_it(tmp_path: Path):
    opened = Opened("files", tmp_path)
    ref = await opened.store.put(BIG, kind="output")
    [(digest, data)] = opened.stored_bytes().items()
    changed_end, changed_start = bytes([data[-1] ^ 1]), bytes([data[0] ^ 1])
    for damaged in (data[:100], data[:-1] + changed_end, changed_start + data[1:]):
        opened.overwrite(digest, damaged)
        with pytest.raises(BlobCorrupt):
            await whole(opened.store, ref)
        await opened.store.put(BIG, kind="output")
        assert await whole(opened.store, ref) == BIG


async def test_a_link_in_the_place_of_a_blob_is_not_followed(tmp_path: Path):
    opened = Opened("files", tmp_path / "blobs")
    ref = await opened.store.put(b"content", kind="output")
    digest = ref.ref[-64:]
    path = opened.folder / digest[:2] / digest[2:4] / digest
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="could not be read") as raised:
        await whole(opened.store, ref)
    assert getattr(raised.value, "code", None) == "blob_unreadable"


@pytest.mark.requirement("journal.blobs.garbage")
async def test_a_collection_removes_what_killed_puts_left_but_not_running_ones(tmp_path: Path):
    opened = Opened("files", tmp_path / "blobs")
    arrived, go = asyncio.Event(), asyncio.Event()

    async def wait_midway() -> AsyncIterator[bytes]:
        yield BIG
        arrived.set()
        await go.wait()

    running = asyncio.create_task(opened.store.put(wait_midway(), kind="output"))
    await asyncio.wait_for(arrived.wait(), 30)
    abandoned = tmp_path / "blobs" / "incoming" / "abandoned"
    abandoned.write_bytes(b"part of a bl")
    for path in abandoned.parent.iterdir():
        os.utime(path, (0, 0))
    done = await opened.store.collect_garbage(refs(), grace=GRACE)
    assert (done.removed, done.leftovers, abandoned.exists()) == ((), 1, False)
    go.set()
    assert await whole(opened.store, await running) == BIG


async def test_an_object_store_needs_a_grace_above_its_refresh():
    with pytest.raises(ValueError, match="grace"):
        await ObjectBlobs(MemoryBlobs()._client).collect_garbage(refs(), grace=1)


async def test_an_object_that_comes_and_goes_ends_in_an_error(tmp_path: Path):
    opened = Opened("objects", tmp_path)

    async def never(*_: object, **__: object) -> bool:
        return False

    opened.client.put_object = never  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(Exception, match="the object keeps being removed and rewritten") as raised:
        await opened.store.put(b"content", kind="output")
    assert getattr(raised.value, "code", None) == "blob_unwritable"
