"""Durable appends to PostgreSQL against the best raw asyncpg loops that write the same bytes.

Producers wait for each of their facts to be durable; the journal makes commits of what they bring.
The raw loops get their batches ready-made, keep no index beside the key of a row, and check
nothing.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from itertools import count, islice

from bench.measure import Row, rates
from bench.workload import facts
from factwire.facts import Fact
from factwire.journal.chunks import decode_line
from factwire.journal.postgres import PostgresJournal
from factwire.journal.postgres.server_connection import PostgresConnection, connect
from tests.journal.postgres_server import PostgresServer

_PRODUCERS = 1_024
_ROUND = 16_384
_ROUNDS = 5
_BATCH = 256

_RAW = """
CREATE TABLE raw_chunk (last bigint PRIMARY KEY, data bytea STORAGE EXTERNAL NOT NULL);
CREATE TABLE raw_fact (seq bigint PRIMARY KEY, data bytea STORAGE EXTERNAL NOT NULL);
"""


class _Raw:
    """Loops over one connection, without a journal."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._numbers = count(1)

    async def chunks(self, lines: list[bytes]) -> int:
        """One row of joined lines a commit."""
        for start in range(0, len(lines), _BATCH):
            data = b"\n".join(lines[start : start + _BATCH]) + b"\n"
            await self._connection.execute(
                "INSERT INTO raw_chunk VALUES ($1, $2)", next(self._numbers), data
            )
        return len(lines)

    async def copies(self, lines: list[bytes]) -> int:
        """One COPY of rows a commit."""
        for start in range(0, len(lines), _BATCH):
            rows = [(next(self._numbers), line) for line in lines[start : start + _BATCH]]
            await self._connection.copy_records_to_table("raw_fact", records=rows)
        return len(lines)


async def _produce(journal: PostgresJournal, source: Iterator[Fact], size: int) -> None:
    while batch := list(islice(source, size)):
        await journal.append(batch)


async def _journal(journal: PostgresJournal, facts: list[Fact], producers: int, size: int) -> int:
    before = (await journal.head()).seq
    source = iter(facts)
    await asyncio.gather(*(_produce(journal, source, size) for _ in range(producers)))
    assert (await journal.head()).seq == before + len(facts)
    return len(facts)


async def _bare_commits(
    connection: PostgresConnection, lines: list[bytes], numbers: Iterator[int]
) -> int:
    for line in lines:
        await connection.execute("INSERT INTO raw_fact VALUES ($1, $2)", -next(numbers), line)
    return len(lines)


def rows() -> list[Row]:
    """Facts per second, durable."""
    with PostgresServer() as server, asyncio.Runner() as runner:
        journal = PostgresJournal(server.url())
        connection = runner.run(connect(server.dsn, within=30, settings={}))
        runner.run(connection.execute(_RAW))
        runner.run(journal.__aenter__())
        try:
            return _measure_journal(runner, journal, connection)
        finally:
            runner.run(journal.__aexit__(None, None, None))
            runner.run(connection.close(timeout=5))


def _measure_journal(
    runner: asyncio.Runner, journal: PostgresJournal, connection: PostgresConnection
) -> list[Row]:
    lines = facts((2 * _ROUND + 200) * _ROUNDS)
    mine, same, also = iter([decode_line(line) for line in lines]), iter(lines), iter(lines)
    # The facts are what producers would have brought; they are not the journal's to collect.
    gc.freeze()
    raw, numbers = _Raw(connection), count(1)
    singles = 200
    contenders: dict[str, Callable[[], int]] = {
        "singles": lambda: runner.run(_journal(journal, list(islice(mine, _ROUND)), _PRODUCERS, 1)),
        "batches": lambda: runner.run(
            _journal(journal, list(islice(mine, _ROUND)), _PRODUCERS // 8, 8)
        ),
        "raw chunks": lambda: runner.run(raw.chunks(list(islice(same, _ROUND)))),
        "raw COPY": lambda: runner.run(raw.copies(list(islice(also, _ROUND)))),
        "one": lambda: runner.run(_journal(journal, list(islice(mine, singles)), 1, 1)),
        "bare": lambda: runner.run(_bare_commits(connection, lines[:singles], numbers)),
    }
    seen = rates(contenders, rounds=_ROUNDS)
    best = max("raw chunks", "raw COPY", key=lambda name: seen[name])
    return [
        *(
            Row(
                name=f"append, {producers} producers awaiting acks of {size}",
                value=seen[name],
                unit="facts/s",
                ratio=seen[name] / seen[best],
                baseline=f"{best} of {_BATCH}",
                goal="≥ 0.6×",
            )
            for name, producers, size in (
                ("singles", _PRODUCERS, "1 fact"),
                ("batches", _PRODUCERS // 8, "8 facts"),
            )
        ),
        Row(name="raw asyncpg, one row of 256 facts", value=seen["raw chunks"], unit="facts/s"),
        Row(name="raw asyncpg, COPY of 256 rows", value=seen["raw COPY"], unit="facts/s"),
        Row(
            name="append, one producer",
            value=seen["one"],
            unit="facts/s",
            ratio=seen["one"] / seen["bare"],
            baseline="bare commit of one row",
        ),
    ]
