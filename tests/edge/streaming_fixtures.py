"""A journal in memory and the streams of it, as fixtures, and facts to fill it with."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest_asyncio

from factwire.facts import Fact
from factwire.journal import Journal, open_journal
from tests.edge.streaming import Served, messages, serve_streams
from tests.journal.contract import make_fact


@pytest_asyncio.fixture
async def journal() -> AsyncGenerator[Journal]:
    async with open_journal("memory:") as opened:
        yield opened


@pytest_asyncio.fixture
async def server(journal: Journal) -> AsyncGenerator[Served]:
    async with serve_streams(journal) as running:
        yield running


def some(first: int, last: int, **fields: Any) -> list[Fact]:
    return [make_fact(number, **fields) for number in range(first, last + 1)]


async def seqs(server: Served, count: int, path: str = "/v1/facts", **query: str) -> list[int]:
    async with server.socket(path, **query) as client:
        return [frame["seq"] for frame in await messages(client, count)]
