"""The SQLite journal against bare SQLite, as ratios within one run.

Contenders take turns, and each counts with its best round: what slows a round down is the machine.
Sizes can be cut by a factor for a quick look: `python -m bench.journal_sqlite 0.1`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import Any

import apsw

from bench.measure import Row, show
from factwire.facts.fact import Fact
from factwire.facts.shapes import decode_fact, encode_fact
from factwire.journal import Journal, open_journal

PRODUCERS = 256


def make_fact(number: int, lane: int, sequence: int, fact_id: str | None = None) -> Fact:
    return Fact(
        id=fact_id or f"01J{number:023d}",
        kind="model",
        status="running",
        title="model.delta",
        created_at="2026-01-01T00:00:00.000Z",
        schema_version="1",
        runtime_id="runtime-1",
        sequence=sequence,
        event_class="model.delta",
        session_id=f"session-{lane}",
        thread_id=f"thread-{lane}",
        run_id=f"run-{lane}",
        turn_id=f"turn-{lane}",
        message_id=f"message-{lane}",
        payload={"delta": "some words of an answer, streamed " * 4},
    )


def lanes(count: int, each: int) -> list[list[Fact]]:
    return [
        [make_fact(n * count + lane, lane, n + 1) for n in range(each)] for lane in range(count)
    ]


class BareWriter:
    """Group commit and nothing else: a queue, a thread, a row for each line."""

    def __init__(self, path: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[asyncio.Future[None], bytes] | None] = SimpleQueue()
        self._connection: Any = bare_table(path)
        self._thread = Thread(target=self._run)
        self._thread.start()

    async def append(self, line: bytes) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((future, line))
        await future

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        seq = 0
        while (first := self._queue.get()) is not None:
            group = [first, *self._rest()]
            bare_commit(self._connection, seq, [line for _, line in group])
            seq += len(group)
            self._loop.call_soon_threadsafe(_resolve_futures, [future for future, _ in group])

    def _rest(self) -> Iterator[tuple[asyncio.Future[None], bytes]]:
        try:
            while (item := self._queue.get_nowait()) is not None:
                yield item
            self._queue.put(None)
        except Empty:
            return


def bare_table(path: str) -> Any:
    connection: Any = apsw.Connection(path)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE facts(seq INTEGER PRIMARY KEY, data BLOB)")
    return connection


def bare_commit(connection: Any, seq: int, lines: Sequence[bytes]) -> None:
    rows = [(seq + at, line) for at, line in enumerate(lines, start=1)]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO facts VALUES(?, ?)", rows)
    connection.execute("COMMIT")


def _resolve_futures(futures: Sequence["asyncio.Future[None]"]) -> None:
    for future in futures:
        future.set_result(None)


async def time_awaitable(work: Awaitable[object]) -> float:
    start = perf_counter()
    await work
    return perf_counter() - start


def quick(times: Sequence[float]) -> float:
    """The time that a fifth of the rounds kept below."""
    return quantiles(times, n=5)[0]


@contextmanager
def folder() -> Generator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


async def concurrent_producers(scale: float) -> list[Row]:
    """256 producers, each waiting for its durable answer, against bare writes of the same."""
    each = max(20, int(200 * scale))
    total = PRODUCERS * each
    ours: list[float] = []
    waited: list[float] = []
    alone: list[float] = []
    for _ in range(5):
        work = lanes(PRODUCERS, each)
        encoded = [[encode_fact(fact) for fact in lane] for lane in work]
        with folder() as place:
            bare = BareWriter(str(place / "bare.db"))

            async def bare_lane(lines: list[bytes], to: BareWriter = bare) -> None:
                for line in lines:
                    await to.append(line)

            every = asyncio.gather(*(bare_lane(lines) for lines in encoded))
            waited.append(total / await time_awaitable(every))
            bare.stop()
            flat = [line for lines in zip(*encoded, strict=True) for line in lines]
            alone.append(_bare_loop(str(place / "loop.db"), flat))
            async with open_journal(f"sqlite:{place / 'journal.db'}") as journal:

                async def lane(facts: list[Fact], to: Journal = journal) -> None:
                    for fact in facts:
                        await to.append([fact])

                every = asyncio.gather(*(lane(facts) for facts in work))
                ours.append(total / await time_awaitable(every))
    rate = max(ours)
    return [
        Row(
            name="256 producers, durable answers",
            value=rate,
            unit="facts/s",
            ratio=rate / max(waited),
            baseline="bare writer, same producers",
            goal="≥ 0.6",
        ),
        Row(
            name="256 producers, nobody waiting",
            value=rate,
            unit="facts/s",
            ratio=rate / max(alone),
            baseline="bare loop, no producers",
        ),
    ]


def _bare_loop(path: str, lines: Sequence[bytes]) -> float:
    connection = bare_table(path)
    start = perf_counter()
    for at in range(0, len(lines), PRODUCERS):
        bare_commit(connection, at, lines[at : at + PRODUCERS])
    return len(lines) / (perf_counter() - start)


async def single_producer(scale: float) -> list[Row]:
    """The latency of one append at a time, against one bare commit at a time."""
    count = max(100, int(1_000 * scale))
    ours: list[float] = []
    bare: list[float] = []
    with folder() as place:
        connection = bare_table(str(place / "bare.db"))
        async with open_journal(f"sqlite:{place / 'journal.db'}") as journal:
            for number in range(count):
                fact = make_fact(number, 0, number + 1)
                line = encode_fact(fact)
                start = perf_counter()
                bare_commit(connection, number, [line])
                middle = perf_counter()
                await journal.append([fact])
                bare.append(middle - start)
                ours.append(perf_counter() - middle)
    value = quick(ours)
    return [
        Row(
            name="one producer, latency",
            value=value * 1e6,
            unit="µs",
            ratio=value / quick(bare),
            baseline="bare commit",
            goal="≤ 1.5",
        )
    ]


async def cold_resume(scale: float) -> list[Row]:
    """A journal opened anew, read to socket-ready bytes, against decoding and encoding the same."""
    count = max(2_000, int(100_000 * scale))
    rows: list[Row] = []
    for size, name in ((PRODUCERS, "cold resume"), (1, "cold resume of single-fact commits")):
        facts = [
            make_fact(n, n % 16, n // 16 + 1) for n in range(count if size > 1 else count // 10)
        ]
        with folder() as place:
            url = f"sqlite:{place / 'journal.db'}"
            async with open_journal(url) as journal:
                for at in range(0, len(facts), size):
                    await journal.append(facts[at : at + size])
            ours, decoded = await _best_of(5, url)
        ratio = decoded / ours
        rows.append(
            Row(
                name=name,
                value=len(facts) / ours,
                unit="facts/s",
                ratio=ratio,
                baseline="decode + encode",
                goal="≥ 8",
            )
        )
    return rows


async def _best_of(rounds: int, url: str) -> tuple[float, float]:
    """Seconds to buffers that a socket can take: as stored, and by decoding and encoding."""
    ours: list[float] = []
    decoded: list[float] = []
    for _ in range(rounds):
        async with open_journal(url) as journal:
            start = perf_counter()
            stored = [batch.data async for batch in journal.read()]
            ours.append(perf_counter() - start)
        lines = b"".join(stored).split(b"\n")[:-1]
        start = perf_counter()
        again = [
            b"".join([encode_fact(decode_fact(line, "facts")) + b"\n" for line in group])
            for group in (lines[at : at + PRODUCERS] for at in range(0, len(lines), PRODUCERS))
        ]
        decoded.append(perf_counter() - start)
        assert b"".join(again) == b"".join(stored)
    return min(ours), min(decoded)


async def foreign_ids(scale: float) -> list[Row]:
    """Random ids against ordered ones, by the last tenth of a long run in batches of 256."""
    count = max(40_000, int(600_000 * scale))
    rates: dict[str, float] = {}
    random = Random(1)
    kinds: dict[str, Callable[[int], str]] = {
        "ordered": lambda number: f"01J{number:023d}",
        "random": lambda _: f"{random.getrandbits(128):032x}",
    }
    for kind, name in kinds.items():
        with folder() as place:
            async with open_journal(f"sqlite:{place / 'journal.db'}") as journal:
                rates[kind] = await _fill(journal, count, name)
    ratio = rates["random"] / rates["ordered"]
    return [
        Row(
            name="random foreign ids",
            value=rates["random"],
            unit="facts/s",
            ratio=ratio,
            baseline="ordered ids",
        )
    ]


async def _fill(journal: Journal, count: int, name: Callable[[int], str], start: int = 0) -> float:
    """Append up to `count` facts; the rate over the last tenth."""
    late = start + (count - start) * 9 // 10
    spent = 0.0
    measured = 0
    for at in range(start, count, PRODUCERS):
        numbers = range(at, min(at + PRODUCERS, count))
        batch = [make_fact(n, n % 200, n // 200 + 1, name(n)) for n in numbers]
        before = perf_counter()
        await journal.append(batch)
        if at >= late:
            spent += perf_counter() - before
            measured += len(batch)
    return measured / spent if spent else 0.0


async def growth(scale: float) -> list[Row]:
    """Append and resume at 1k, 100k and 1M facts, against those at 1k."""
    rows: list[Row] = []
    first: tuple[float, float] | None = None
    with folder() as place:
        url = f"sqlite:{place / 'journal.db'}"
        reached = 0
        for full in (1_000, 100_000, 1_000_000):
            size = max(1_000, int(full * scale))
            async with open_journal(url) as journal:
                await _fill(journal, size, lambda n: f"01J{n:023d}", reached)
                appends: list[float] = []
                resumes: list[float] = []
                for extra in range(200):
                    number = size + extra
                    fact = make_fact(number, number % 200, number // 200 + 1)
                    appends.append(await time_awaitable(journal.append([fact])))
                    resumes.append(await time_awaitable(_resume(journal)))
                reached = size + 200
            value = (quick(appends), quick(resumes))
            first = first or value
            for name, now, then in zip(("append", "resume of 256"), value, first, strict=True):
                rows.append(
                    Row(
                        name=f"{name} at {size}",
                        value=now * 1e6,
                        unit="µs",
                        ratio=now / then,
                        baseline="at 1000",
                    )
                )
    return rows


async def _resume(journal: Journal) -> None:
    head = await journal.head()
    after = type(head)(head.epoch, max(0, head.seq - 256))
    async for _ in journal.read(after):
        pass


async def follow(scale: float) -> list[Row]:
    """From the call of append until a follower has the fact, against the append alone."""
    count = max(50, int(500 * scale))
    received: list[float] = []
    appended: list[float] = []
    with folder() as place:
        async with open_journal(f"sqlite:{place / 'journal.db'}") as journal:
            batches = journal.follow()
            waiting = asyncio.ensure_future(anext(batches))
            for number in range(count):
                start = perf_counter()
                await journal.append([make_fact(number, 0, number + 1)])
                appended.append(perf_counter() - start)
                await waiting
                received.append(perf_counter() - start)
                waiting = asyncio.ensure_future(anext(batches))
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    value = quick(received)
    return [
        Row(
            name="append to follower",
            value=value * 1e6,
            unit="µs",
            ratio=value / quick(appended),
            baseline="append alone",
        )
    ]


async def measure(scale: float) -> list[Row]:
    """Every row of this benchmark, with its sizes cut by a factor."""
    found: list[Row] = []
    for part in (concurrent_producers, single_producer, cold_resume, foreign_ids, growth, follow):
        found += await part(scale)
    return found


def rows(scale: float = 1.0) -> list[Row]:
    """The same, for `python -m bench`."""
    return asyncio.run(measure(scale))


if __name__ == "__main__":
    show("SQLite journal", rows(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
