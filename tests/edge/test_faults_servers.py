"""PostgreSQL and NATS killed and started again under an Edge: it says so, and goes on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import httpx
import pytest

from tests.edge.edge_process import Client
from tests.edge.edges import WAIT_SECONDS, RunningEdge, configuration_in, running_edge
from tests.edge.fault_load import BATCH, PRODUCERS, Ledger, Subscriber, batch_of
from tests.edge.streaming import until
from tests.journal.nats_server import running_server
from tests.journal.postgres_server import PostgresServer

pytestmark = [pytest.mark.fault, pytest.mark.asyncio]

ROUNDS = 3
_PATIENCE = "0.3"
"""Seconds that a request waits for a server that went away."""


class Server(Protocol):
    """What a journal needs, and a test takes from it."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


class Load:
    """Producers that send a batch again until it is acknowledged."""

    def __init__(self, edge: RunningEdge) -> None:
        self.acknowledged: dict[str, list[int]] = {}
        self.refusals: list[httpx.Response] = []
        self._edge = edge
        self._going = True

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        lanes = [asyncio.create_task(self._produce(lane)) for lane in range(PRODUCERS)]
        try:
            yield
            self._going = False
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()

    async def _produce(self, lane: int) -> None:
        number = 0
        while self._going:
            body = {"facts": batch_of(lane, number)}
            answer = await self._edge.http.post("/v1/facts", json=body)
            if answer.status_code == 200:
                self.acknowledged[f"{lane}-{number}"] = answer.json()["seqs"]
                number += 1
            else:
                self.refusals.append(answer)
                await asyncio.sleep(0.02)


async def until_health(edge: RunningEdge, wanted: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            answer = await edge.http.get("/v1/health")
            if answer.json()["status"] == wanted:
                return
            await asyncio.sleep(0.02)


async def crash(edge: RunningEdge, load: Load, server: Server) -> None:
    """Kill the server amid the load, see that the Edge says so, and bring it back."""
    enough = len(load.acknowledged) + 24
    await until(lambda: len(load.acknowledged) >= enough)
    await asyncio.to_thread(server.kill)
    await until_health(edge, "degraded")
    known = len(load.refusals)
    await until(lambda: len(load.refusals) > known)
    await asyncio.to_thread(server.start)
    await until_health(edge, "ok")


async def survive(folder: Path, url: str, server: Server) -> None:
    """Crash a server again and again; nothing that was acknowledged may be missing."""
    configuration = configuration_in(folder, journal=url)
    async with running_edge(folder, configuration=configuration) as edge:
        load, here = Load(edge), Client(edge.http, edge)
        reader = Subscriber(here, "/v1/facts")
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(reader.keep_reading())
            async with load.at_work():
                for _ in range(ROUNDS):
                    await crash(edge, load, server)
            ledger = Ledger(here)
            await ledger.read_on()
            ledger.check(load.acknowledged)
            await reader.wait_for_seq(ledger.facts[-1][0])
            run = await edge.start("help")
            assert (await edge.run_until(run["runId"]))["status"] == "finished"
            assert reader.seen[: len(ledger.ids)] == ledger.ids
            edge.server.should_exit = True
        assert reader.codes == [1012]
        assert len(load.acknowledged) * BATCH >= 24 * ROUNDS
        for refused in load.refusals:
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["code"] in ("journal_unavailable", "lists_behind")


@pytest.mark.requirement("edge.faults.servers")
async def test_an_edge_on_postgres_goes_on_exactly_when_the_server_is_back(tmp_path: Path):
    with PostgresServer() as server:
        url = server.url(poll="0.2", patience=_PATIENCE)
        await survive(tmp_path, url, server)


@pytest.mark.requirement("edge.faults.servers")
async def test_an_edge_on_nats_goes_on_exactly_when_the_server_is_back(tmp_path: Path):
    with running_server() as server:
        url = server.url(options=f"sync=always&patience={_PATIENCE}")
        await survive(tmp_path, url, server)
