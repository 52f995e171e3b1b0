"""Whatever a client sends, a stream ends in a documented code and nothing else happens."""

import asyncio
import logging
import random
from collections.abc import Generator

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from factwire.journal import open_journal
from factwire.serving.limits import CLIENT_FRAME_BYTES
from factwire.serving.streams import CLOSE_REASONS, FactwireSocketProtocol
from tests.edge.streaming import Served, read_close, serve_streams, until
from tests.edge.streaming_clients import Raw, mask_frame
from tests.edge.streaming_loops import on_both_loops, on_the_edges_loop
from tests.journal.contract import make_fact
from tests.trials import TRIAL_SECONDS, count_trials

FRAMES = 16
INPUTS = count_trials(full=200_000, share=20_000)
TOGETHER = 40

ECHOED = {0, 1000, 1001, *range(3000, 5000)}
"""What a reader may say when it leaves, by chance too; 0 is a close frame without a code."""

DOCUMENTED = {each.code for each in CLOSE_REASONS}


def frame(dice: random.Random) -> bytes:
    """A frame that may be right, nearly right, or nothing of the kind."""
    if dice.random() < 0.7:
        return mask_frame(dice.choice((9, 10)), dice.randbytes(dice.randrange(20)))
    if dice.random() < 0.1:
        return dice.randbytes(dice.randrange(1, 24))
    kind = dice.choice((0, 0, 1, 2, 8, 9, 9, 10, 10, 10, 3, 11, 15))
    content = _content(dice, kind)
    first = kind | (0x80 if dice.random() < 0.85 else 0) | dice.choice((0, 0, 0, 0, 0x40, 0x10))
    size = len(content) + dice.choice((0, 0, 0, 0, 0, 1, -1))
    return bytes((first, *_size(dice, max(size, 0)))) + content


def _content(dice: random.Random, kind: int) -> bytes:
    content = dice.randbytes(dice.choice((0, 0, 1, 2, 5, 125, 126, 300)))
    if kind == 8 and dice.random() < 0.7:
        code = dice.choice((1000, 1001, 1005, 1006, 1016, 2999, 3000, 4999, 0, 65535))
        content = code.to_bytes(2, "big") + dice.choice((b"", b"why", b"\xff\xfe"))
    key = dice.randbytes(4)
    return key + bytes(byte ^ key[at % 4] for at, byte in enumerate(content))


def _size(dice: random.Random, size: int) -> bytes:
    size = max(0, size - 4)
    mask = 0x80 if dice.random() < 0.95 else 0
    if dice.random() < 0.03:
        return bytes((mask | 127,)) + dice.choice((1 << 63, (1 << 63) - 1, 1 << 40)).to_bytes(
            8, "big"
        )
    if size < 126 and dice.random() < 0.95:
        return bytes((mask | size,))
    return bytes((mask | 126,)) + size.to_bytes(2, "big")


@pytest.fixture
def complaints() -> Generator[list[logging.LogRecord]]:
    """Everything that a server or the event loop complains about."""
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    handler = Keep(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio", "websockets")]
    for logger in loggers:
        logger.addHandler(handler)
    yield found
    for logger in loggers:
        logger.removeHandler(handler)


async def attack(served: Served, seed: int) -> tuple[int | None, int]:
    """Send frames until the stream has ended; the code that it ended with, and how many."""
    dice, sent = random.Random(seed), 0
    client = await Raw.connect(served.port, "/v1/facts?since=now")
    while sent < FRAMES and not client.transport.is_closing() and client.code is None:
        client.transport.write(frame(dice))
        sent += 1
        await asyncio.sleep(0)
    client.fall_silent()
    await client.until(client.ended.is_set)
    client.transport.abort()
    return client.code, sent


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("edge.stream.malformed")
@on_the_edges_loop
async def test_malformed_frames_end_in_documented_codes(complaints: list[logging.LogRecord]):
    settings = {"log_level": "warning", "log_config": None}
    ends: list[tuple[int | None, int]] = []
    async with (
        open_journal("memory:") as journal,
        serve_streams(journal, settings=settings) as served,
    ):
        witness = await Raw.connect(served.port, "/v1/facts")
        while sum(sent for _, sent in ends) < INPUTS:
            seeds = range(len(ends), len(ends) + TOGETHER)
            ends += await asyncio.gather(*(attack(served, seed) for seed in seeds))
            await journal.append([make_fact(len(ends))])
        await witness.wait_for_seq(len(ends) // TOGETHER)
        witness.transport.abort()
    codes = {code for code, _ in ends}
    assert codes - {None} - ECHOED <= DOCUMENTED
    assert {1002, 1008} <= codes
    assert [record.getMessage() for record in complaints] == []


async def ended_with(served: Served, *frames: bytes) -> int | None:
    client = await Raw.connect(served.port, "/v1/facts")
    await until(lambda: served.streams.stats().readers == 1)
    for each in frames:
        client.transport.write(each)
    await client.until(client.ended.is_set)
    return client.code


@pytest.mark.requirement("edge.stream.malformed")
@pytest.mark.requirement("edge.stream.unasked")
@on_both_loops
async def test_each_fault_has_its_code(complaints: list[logging.LogRecord]):
    big = bytes((0x81, 0xFF)) + (CLIENT_FRAME_BYTES + 1).to_bytes(8, "big") + bytes(4)
    half = bytes((0x01, 0xFE)) + (40_000).to_bytes(2, "big") + bytes(4 + 40_000)
    more = bytes((0x80, 0xFE)) + (40_000).to_bytes(2, "big") + bytes(4 + 40_000)
    cases = {
        "text": ([mask_frame(1, b"hello")], 1008),
        "binary": ([mask_frame(2, b"\x00")], 1008),
        "text in parts": ([b"\x01\x81\0\0\0\0a", b"\x80\x81\0\0\0\0b"], 1008),
        "no UTF-8": ([mask_frame(1, b"\xff")], 1007),
        "too big": ([big], 1009),
        "too big in parts": ([half, more], 1009),
        "not masked": ([b"\x81\x01a"], 1002),
        "reserved bit": ([b"\xc1\x81\0\0\0\0a"], 1002),
        "unknown kind": ([b"\x83\x80\0\0\0\0"], 1002),
        "ping in parts": ([b"\x09\x80\0\0\0\0"], 1002),
        "part of nothing": ([b"\x80\x81\0\0\0\0a"], 1002),
        "close of one byte": ([mask_frame(8, b"\x03")], 1002),
        "close with a code of nobody": ([mask_frame(8, (1016).to_bytes(2, "big"))], 1002),
        "close": ([mask_frame(8, (1000).to_bytes(2, "big"))], 1000),
    }
    settings = {"log_level": "warning", "log_config": None}
    async with (
        open_journal("memory:") as journal,
        serve_streams(journal, settings=settings) as served,
    ):
        got = {name: await ended_with(served, *frames) for name, (frames, _) in cases.items()}
    assert got == {name: code for name, (_, code) in cases.items()}
    assert [record.getMessage() for record in complaints] == []


@on_both_loops
async def test_without_our_check_text_that_is_none_leaves_a_trace(
    monkeypatch: pytest.MonkeyPatch, complaints: list[logging.LogRecord]
):
    theirs = WebSocketsSansIOProtocol.send_receive_event_to_app
    monkeypatch.setattr(FactwireSocketProtocol, "send_receive_event_to_app", theirs)
    settings = {"log_level": "warning", "log_config": None}
    async with (
        open_journal("memory:") as journal,
        serve_streams(journal, settings=settings) as served,
    ):
        await ended_with(served, mask_frame(1, b"\xff"))
    assert any(record.exc_info for record in complaints)


@pytest.mark.requirement("edge.stream.unasked")
@on_both_loops
async def test_a_message_during_catching_up_ends_the_stream_after_it():
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        await journal.append([make_fact(number) for number in range(1_000)])
        async with served.socket() as client:
            await client.send("hello")
            assert await read_close(client) == (1008, "streams take no messages")
