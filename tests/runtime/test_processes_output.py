"""What a program says arrives whole, in order, by bytes, in bounded memory, and stays readable."""

import asyncio
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.journal.blobs import FileBlobs, MemoryBlobs
from factwire.runtime.processes import Exit, LogFolder, LogUnavailable, OutputPiece, Stream
from factwire.runtime.processes.process_output import ProcessFeed, ProcessLog
from factwire.runtime.processes.process_spec import Batch, Batches, Utf8Text, whole_characters
from tests.runtime.programs import BOUND, World, contiguous, heard, open_files, read_until, run

KIB = 1024


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def cut_bytes(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


chunkings = st.lists(st.integers(min_value=0))
bytes_with_text = st.lists(
    st.one_of(st.binary(max_size=6), st.text(max_size=6).map(lambda text: text.encode()))
).map(b"".join)


@pytest.mark.requirement("runtime.process.output.utf8")
@given(bytes_with_text, chunkings)
def test_text_does_not_depend_on_how_its_bytes_were_cut(data: bytes, places: list[int]):
    text = Utf8Text()
    pieces = [text.feed(piece) for piece in cut_bytes(data, places)]
    assert "".join([*pieces, text.end()]) == data.decode("utf-8", "replace")


@pytest.mark.requirement("runtime.process.output.utf8")
@given(st.text(), chunkings)
def test_a_character_is_never_split_and_never_replaced(text: str, places: list[int]):
    reader = Utf8Text()
    pieces = [reader.feed(piece) for piece in cut_bytes(text.encode(), places)]
    assert "".join(pieces) == text
    assert reader.end() == ""


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_a_cut_is_the_last_one_between_characters(text: str, limit: int):
    data = text.encode()
    end = whole_characters(data, limit)
    assert data[:end].decode() == text[: len(data[:end].decode())]
    assert end == len(data) or limit - 4 < end <= limit


words = st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(min_size=1, max_size=20))


@pytest.mark.requirement("runtime.process.output.batches")
@given(st.lists(words), st.integers(min_value=4, max_value=32))
def test_batches_lose_nothing_and_are_contiguous_and_bounded(
    said_words: list[tuple[Stream, str]], size: int
):
    batches = Batches(seconds=1, size=size)
    out = [batch for s, text in said_words for batch in batches.add(s, text.encode(), 0.0)]
    out += batches.flush()
    assert batches.due is None
    for stream in ("stdout", "stderr"):
        mine = [batch for batch in out if batch.stream == stream]
        assert "".join(b.text for b in mine) == "".join(t for s, t in said_words if s == stream)
        assert contiguous(
            [OutputPiece(stream=b.stream, offset=b.offset, text=b.text) for b in mine], stream
        )
        assert all(0 < len(b.text.encode()) <= size for b in mine)


@pytest.mark.requirement("runtime.process.output.batches")
def test_text_waits_for_its_time_or_its_size_whichever_is_first():
    batches = Batches(seconds=0.05, size=8)
    assert batches.add("stdout", b"one", now=10.0) == []
    assert batches.due == 10.05
    assert batches.add("stderr", b"two", now=10.03) == []
    assert batches.due == 10.05
    assert batches.add("stderr", b"three!", now=10.04) == [
        Batch("stdout", 0, "one"),
        Batch("stderr", 0, "twothree"),
        Batch("stderr", 8, "!"),
    ]
    assert batches.due is None


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.output.batches")
async def test_many_small_writes_become_few_pieces(world: World):
    code = "import sys\nfor n in range(1000): sys.stdout.write('word\\n'); sys.stdout.flush()"
    ran = await run(world.processes(batch_seconds=BOUND), world.python(code))
    assert ran.text() == "word\n" * 1000
    assert len(ran.pieces) == 1


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.output.batches")
async def test_output_does_not_wait_for_a_full_batch(world: World):
    spec = world.python("import sys; print('ready'); sys.stdin.read()", stdin="pipe")
    async with asyncio.timeout(BOUND), world.processes().start(spec) as process:
        assert await heard(process, "\n") == "ready\n"
        assert not process.has_ended
        await process.close_input()
        assert await process.wait() == Exit(exit_code=0)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.output.utf8")
async def test_a_program_that_writes_byte_by_byte_is_read_in_characters(world: World):
    code = (
        "import os\n"
        "for byte in 'aé€😀'.encode() + b'\\xff' + '😀'.encode()[:2]:\n"
        "    os.write(1, bytes([byte]))"
    )
    ran = await run(world.processes(batch_seconds=0.0, batch_bytes=1), world.python(code))
    assert ran.text() == "aé€😀\ufffd\ufffd"
    assert contiguous(ran.pieces, "stdout")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.output.offsets")
async def test_offsets_count_bytes_without_a_hole_for_each_stream(world: World):
    code = (
        "import sys\n"
        "for n in range(2000):\n"
        "    sys.stdout.write('é€' * 9)\n"
        "    sys.stderr.write('😀')"
    )
    ran = await run(world.processes(), world.python(code))
    assert ran.text("stdout") == "é€" * 18_000
    assert ran.text("stderr") == "😀" * 2000
    assert contiguous(ran.pieces, "stdout")
    assert contiguous(ran.pieces, "stderr")
    assert max(len(piece.text.encode()) for piece in ran.pieces) <= 8 * KIB


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.log")
async def test_a_log_is_read_by_bytes_while_it_grows_and_afterwards(world: World):
    code = (
        "import sys; print('abcdef'); print('err', file=sys.stderr); sys.stdin.read(); print('end')"
    )
    processes = world.processes()
    async with asyncio.timeout(BOUND), processes.start(world.python(code, stdin="pipe")) as process:
        pieces = process.output()
        await read_until(pieces, "abcdef\n")
        assert await process.read_log("stdout", 2, 3) == b"cde"
        await process.close_input()
        await read_until(pieces, "end\n")
        await process.wait()
        assert await process.read_log("stdout", 5, 100) == b"f\nend\n"
        assert await process.read_log("stdout", 100, 5) == b""
    assert await process.read_log("stderr", 0, 100) == b"err\n"
    again = LogFolder(world.data / "logs")
    assert await again.read(process.process_id, "stdout", 0, 6) == b"abcdef"
    again.remove(process.process_id)
    with pytest.raises(LogUnavailable):
        await again.read(process.process_id, "stdout", 0, 6)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.log")
@pytest.mark.parametrize("name", ["..", "../data", "a/b", "", "a\0", "x" * 200])
async def test_an_id_never_leads_out_of_the_folder_of_logs(world: World, name: str):
    with pytest.raises(LogUnavailable, match="is not the id"):
        await LogFolder(world.data / "logs").read(name, "stdout", 0, 1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("stream", "offset", "length"), [("stdin", 0, 1), ("stdout", -1, 1), ("stdout", 0, -1)]
)
async def test_a_range_without_sense_is_refused(
    world: World, stream: Stream, offset: int, length: int
):
    with pytest.raises(LogUnavailable, match="expected a stream"):
        await LogFolder(world.data / "logs").read("p", stream, offset, length)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.output.cap")
async def test_past_the_cap_facts_end_and_the_log_goes_on_in_a_blob(world: World):
    text = "€" * 1000
    code = (
        f"import sys; sys.stdout.write({text!r}); sys.stdout.flush()\n"
        "sys.stdin.readline(); print('x', file=sys.stderr)"
    )
    blobs = FileBlobs(world.folder / "blobs")
    processes = world.processes(blobs=blobs)
    spec = world.python(code, max_output=100, stdin="pipe")
    pieces: list[OutputPiece] = []
    async with asyncio.timeout(BOUND), processes.start(spec, process_id="proc_1") as process:
        async for piece in process.output():
            pieces.append(piece)
            if piece.truncated and piece.stream == "stdout" and piece.bytes_written is None:
                await process.write(b"\n")
    assert "".join(piece.text for piece in pieces) == "€" * 33
    assert contiguous(pieces, "stdout")
    last = {piece.stream: piece for piece in pieces}
    ref = last["stdout"].ref
    assert ref is not None
    assert last["stdout"] == OutputPiece(
        stream="stdout", offset=99, text="", truncated=True, bytes_written=3000, ref=ref
    )
    assert (last["stderr"].truncated, last["stderr"].bytes_written) == (True, 2)
    assert b"".join([piece async for piece in blobs.get(ref)]) == text.encode()
    assert await processes.logs.read("proc_1", "stdout", 99, 6) == "€€".encode()
    assert not (world.data / "logs" / "proc_1" / "stdout").exists()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.output.cap")
async def test_a_store_that_takes_nothing_leaves_the_log_where_it_is(world: World):
    ran = await run(
        world.processes(blobs=MemoryBlobs(capacity=10)),
        world.python("print('x' * 1000)", max_output=10),
        process_id="proc_1",
    )
    assert ran.pieces[-1].ref is None
    assert ran.pieces[-1].bytes_written == 1001
    assert ran.exit.log_error is not None
    assert len(await LogFolder(world.data / "logs").read("proc_1", "stdout", 0, 5000)) == 1001


@pytest.mark.asyncio
async def test_without_a_store_a_long_log_stays_a_file(world: World):
    ran = await run(
        world.processes(), world.python("print('x' * 100)", max_output=10), process_id="p"
    )
    assert (ran.pieces[-1].truncated, ran.pieces[-1].ref) == (True, None)
    assert len(await LogFolder(world.data / "logs").read("p", "stdout", 0, 5000)) == 101


@pytest.mark.asyncio
async def test_a_log_in_a_blob_needs_the_store(world: World):
    await run(
        world.processes(blobs=MemoryBlobs()),
        world.python("print('x' * 100)", max_output=10),
        process_id="p",
    )
    with pytest.raises(LogUnavailable, match="no blob store"):
        await LogFolder(world.data / "logs").read("p", "stdout", 0, 1)


@pytest.mark.asyncio
async def test_a_disk_that_is_full_ends_the_log_and_not_the_program(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def full(_file: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("factwire.runtime.processes.process_output._write_all", full)
    ran = await run(world.processes(), world.python("print('x' * 100_000)"))
    assert ran.text() == "x" * 100_000 + "\n"
    assert ran.exit == Exit(exit_code=0, log_error="No space left on device")


CHATTY = Path(__file__).with_name("chatty.py")


def peak(folder: Path, size: int, output: str) -> int:
    done = subprocess.run(
        [sys.executable, str(CHATTY), str(folder / f"run-{size}"), str(size), output],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.fault
@pytest.mark.requirement("runtime.process.output.constant-memory")
@pytest.mark.parametrize("output", ["log", "protocol"])
def test_two_hundred_megabytes_take_the_memory_of_two(world: World, output: str):
    """Bites: kept in memory, the big one would take four times the small one and more."""
    # A whole number of lines, so that no character is cut at the end.
    small, big = 100_000 * 25, 8_000_000 * 25
    assert peak(world.folder, big, output) < 1.5 * peak(world.folder, small, output)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.protocol")
async def test_a_protocol_is_complete_unchanged_and_not_kept(world: World):
    secret = "ghp_" + "a1B2" * 9
    code = f"print('{secret}' * 3 + 'x' * 3_000_000)"
    spec = world.python(code, output="protocol", max_output=10)
    async with asyncio.timeout(BOUND), world.processes().start(spec) as process:
        text = "".join([piece.text async for piece in process.output()])
        assert text == secret * 3 + "x" * 3_000_000 + "\n"
        with pytest.raises(LogUnavailable):
            await process.read_log("stdout", 0, 1)
    assert not (world.data / "logs").exists()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.protocol")
async def test_a_program_waits_for_the_reader_of_its_protocol(world: World):
    code = "import os\nwhile True: os.write(1, b'x' * 65536)"
    spec = world.python(code, output="protocol")
    async with asyncio.timeout(BOUND), world.processes().start(spec) as process:
        pieces = process.output()
        await read_until(pieces, "x")
        await process._feed.wait_for_room()
        assert process._feed.pending_bytes < 1024 * KIB
        assert (await process.stop()).signal == "SIGTERM"


@pytest.mark.asyncio
async def test_a_feed_that_is_abandoned_keeps_nothing_and_holds_nobody():
    feed = ProcessFeed[str](limit=1)
    feed.put("a", 1)
    waiting = asyncio.ensure_future(feed.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    feed.abandon()
    async with asyncio.timeout(BOUND):
        await waiting
    feed.put("b", 1)
    assert [event async for event in feed.read()] == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.log.redacted")
async def test_no_secret_reaches_pieces_log_or_blob_even_in_two_halves(world: World):
    """Bites: the same program as a protocol shows it."""
    secret = "ghp_" + "a1B2" * 9
    code = (
        "import os, sys\n"
        f"os.write(1, b'token {secret[:11]}')\n"
        "sys.stdin.readline()\n"
        f"os.write(1, b'{secret[11:]} end\\n' + b'filler ' * 100)"
    )
    blobs = FileBlobs(world.folder / "blobs")
    processes = world.processes(blobs=blobs, batch_seconds=0.0)
    for mode in ("log", "protocol"):
        spec = world.python(code, stdin="pipe", output=mode, max_output=50)
        async with asyncio.timeout(BOUND), processes.start(spec) as process:
            pieces = process.output()
            first = await read_until(pieces, "token ")
            await process.write(b"\n")
            text = first + "".join([piece.text async for piece in pieces])
            assert (secret in text) == (mode == "protocol")
            if mode == "log":
                log = await process.read_log("stdout", 0, 10_000)
                assert log.startswith(b"token [redacted] end\n")
    kept = [path.read_bytes() for path in world.folder.rglob("*") if path.is_file()]
    assert len(kept) > 1
    assert not any(secret[4:20].encode() in content for content in kept)


def test_a_log_that_is_closed_has_no_files_open(tmp_path: Path):
    before = open_files()
    log = ProcessLog(tmp_path, None)
    log.close()
    log.close()
    assert open_files() == before
