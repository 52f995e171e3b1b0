"""Load for an Edge under faults: producers and readers that come again, and what they were told.

A producer that got no answer sends the same batch again; a reader that lost its stream resumes from
its cursor. So whatever is missing, doubled or out of order in the end was the Edge's doing.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.edge.edge_process import HEADERS, Client
from tests.edge.edges import WAIT_SECONDS

PRODUCERS = 8
BATCH = 3


def batch_of(lane: int, number: int) -> list[dict[str, Any]]:
    """Facts of a thread that belong together; their ids say so."""
    return [
        {
            "id": f"{lane}-{number}.{part}",
            "kind": "state",
            "status": "running",
            "title": "run.status",
            "createdAt": "2026-01-01T00:00:00Z",
            "schemaVersion": "factwire-fact/v1",
            "runtimeId": "elsewhere",
            "eventClass": "run.status",
            "sequence": number * BATCH + part + 1,
            "threadId": f"lane-{lane}",
            "payload": {"status": "running"},
        }
        for part in range(BATCH)
    ]


@asynccontextmanager
async def _to_their_end(*works: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Let work go on beside a block, and wait for its end, unless the block fails."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class Producers:
    """What was acknowledged, batch by batch, with the seqs that were told."""

    def __init__(self, client: Client) -> None:
        self.acknowledged: dict[str, list[int]] = {}
        self.refused: list[httpx.Response] = []
        self._client = client
        self._next = [0] * PRODUCERS
        self._moved = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what producers were told, but not for ever."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():
                assert not self.refused, self.refused[0].text
                self._moved.clear()
                await self._moved.wait()

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Every lane sends until its Edge answers no more, which must come to pass in the block."""
        async with _to_their_end(*(self._produce(lane) for lane in range(PRODUCERS))):
            yield

    async def _produce(self, lane: int) -> None:
        while True:
            number = self._next[lane]
            body = {"facts": batch_of(lane, number)}
            try:
                answer = await self._client.http.post(
                    f"{self._client.edge.url}/v1/facts", json=body
                )
            except httpx.TransportError:
                return
            if answer.status_code != 200:
                self.refused.append(answer)
                self._moved.set()
                return
            self.acknowledged[f"{lane}-{number}"] = answer.json()["seqs"]
            self._next[lane] += 1
            self._moved.set()


class Subscriber:
    """Reads a stream for as long as it lasts; `seen` is all it got, over all its streams."""

    def __init__(self, client: Client, path: str, **query: str) -> None:
        self.seen: list[tuple[int, str]] = []
        self.codes: list[int] = []
        self.seq = 0
        self._client = client
        self._path = path
        self._query = query
        self._cursor: str | None = None
        self._moved = asyncio.Event()

    @asynccontextmanager
    async def keep_reading(self) -> AsyncGenerator[None]:
        """Read from where it was on, until the stream ends, which must come to pass."""
        opened = asyncio.Event()
        async with _to_their_end(self._read(opened)):
            async with asyncio.timeout(WAIT_SECONDS):
                await opened.wait()
            yield

    async def wait_for_seq(self, seq: int) -> None:
        """Wait, but not for ever."""
        async with asyncio.timeout(WAIT_SECONDS):
            while self.seq < seq:
                self._moved.clear()
                await self._moved.wait()

    async def _read(self, opened: asyncio.Event) -> None:
        query = self._query | ({"cursor": self._cursor} if self._cursor else {})
        url = f"{self._client.edge.socket_url}{self._path}?{urlencode(query)}"
        try:
            async with connect(
                url, additional_headers=HEADERS, compression=None, ping_interval=None, max_size=None
            ) as socket:
                opened.set()
                while True:
                    self._take(json.loads(await socket.recv()))
        except ConnectionClosed as closed:
            self.codes.append(closed.rcvd.code if closed.rcvd else 1006)
        except (OSError, InvalidHandshake, EOFError):
            self.codes.append(1006)
        finally:
            opened.set()

    def _take(self, message: dict[str, Any]) -> None:
        self._cursor, self.seq = message["cursor"], message["seq"]
        if message.get("type") != "checkpoint":
            fact = message.get("fact", message)
            self.seen.append((message["seq"], fact["id"]))
        self._moved.set()


class Ledger:
    """Reads the journal on through an Edge, and checks every fact on the way."""

    def __init__(self, client: Client) -> None:
        self.facts: list[tuple[int, dict[str, Any]]] = []
        self._client = client
        self._cursor: str | None = None

    @property
    def ids(self) -> list[tuple[int, str]]:
        return [(seq, fact["id"]) for seq, fact in self.facts]

    async def read_on(self) -> None:
        """Everything since the last time."""
        while True:
            query = {"cursor": self._cursor} if self._cursor else {}
            page = await self._client.get("/v1/facts", limit=1000, **query)
            self.facts += [(item["seq"], item["fact"]) for item in page["items"]]
            self._cursor = page["asOf"]
            if "next" not in page:
                return

    def check(self, acknowledged: dict[str, list[int]]) -> None:
        """Seqs are contiguous, no id is there twice, batches are whole, and what was acknowledged
        is where it was said to be.
        """
        ids = [fact["id"] for _, fact in self.facts]
        assert [seq for seq, _ in self.facts] == list(range(1, len(ids) + 1))
        assert len(set(ids)) == len(ids)
        firsts = [at for at, name in enumerate(ids) if name.endswith(".0")]
        for at in firsts:
            name = ids[at].removesuffix(".0")
            assert ids[at : at + BATCH] == [f"{name}.{part}" for part in range(BATCH)]
        parts = sum(name.partition(".")[2].isdigit() for name in ids)
        assert parts == BATCH * len(firsts)
        places = {name: seq for seq, name in self.ids}
        for name, seqs in acknowledged.items():
            found = [places.get(f"{name}.{part}") for part in range(BATCH)]
            assert found == seqs, f"{name} was acknowledged at {seqs} and is at {found}"
