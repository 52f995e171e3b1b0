"""SIGTERM under load: what was answered is durable, readers are told to come again, and it ends."""

import asyncio
import os
import signal
from pathlib import Path
from random import Random

import pytest
from websockets.asyncio.client import connect

from factwire.edge.records.edge_records import RECORDS_FILE, RECORDS_VERSION
from factwire.journal import Cursor
from factwire.serving.paging import RowDatabase
from tests.edge.edge_process import HEADERS, Client, EdgeProcess, new_client
from tests.edge.edges import TOKEN
from tests.edge.fault_story import SETTINGS, Story, UnderWay

ROUNDS = 50
RUNS_EVERY = 25
"""Rounds between two in which a run is at work that does not end by itself."""

STOP_SECONDS = 5.0
"""Seconds in which a stop is over, by the guarantee R14."""

pytestmark = [pytest.mark.fault, pytest.mark.asyncio]


def saved_seq(folder: Path, cursor: Cursor) -> int:
    """As of which fact the lists were saved."""
    path = folder / "data" / RECORDS_FILE
    database = RowDatabase(path, str(RECORDS_VERSION), cursor.epoch)
    try:
        return database.read_seq()
    finally:
        database.close()


@pytest.mark.timeout(600)
@pytest.mark.requirement("edge.faults.stop")
async def test_a_stop_under_load_loses_nothing_and_tells_readers_to_come_again(tmp_path: Path):
    random = Random(3)
    async with new_client() as http:
        story = Story(Client(http), tmp_path)
        seq = 0
        for number in range(ROUNDS):
            await story.start()
            facts = [fact["eventClass"] for at, fact in story.ledger.facts if at > seq]
            assert number == 0 or "runner.offline" in facts
            seq = story.ledger.facts[-1][0]
            end = story.edge.terminate
            await story.end_amid(random.randrange(1, 40), end, runs=number % RUNS_EVERY == 0)
            assert await story.edge.wait_for_end(STOP_SECONDS) == 0
            assert [reader.codes[-1] for reader in story.readers] == [1012, 1012, 1012]
        await story.start()
        epoch = Cursor.parse((await story.client.get("/v1/threads"))["asOf"])
        await story.check_readers()
        assert saved_seq(tmp_path, epoch) >= seq


@pytest.mark.requirement("edge.faults.stop")
async def test_a_stop_waits_for_no_reader_no_sender_and_no_run_that_does_not_end(tmp_path: Path):
    async with new_client() as http:
        client = Client(http)
        edge = await asyncio.to_thread(EdgeProcess.start, tmp_path, **SETTINGS)
        client.turn_to(edge)
        await UnderWay(client, tmp_path).begin()
        url = f"{edge.socket_url}/v1/facts"
        async with connect(
            url, additional_headers=HEADERS, max_queue=1, ping_interval=None, close_timeout=0.1
        ):
            _, sender = await asyncio.open_connection("127.0.0.1", edge.port)
            sender.write(
                b"POST /v1/facts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
                b"Content-Type: application/json\r\nAuthorization: Bearer %s\r\n\r\n{"
                % TOKEN.encode()
            )
            await sender.drain()
            edge.terminate()
            assert await edge.wait_for_end(STOP_SECONDS) == 0
            sender.close()


@pytest.mark.requirement("edge.faults.stop")
async def test_an_interrupt_stops_an_edge_that_serves_like_a_signal_to_end(tmp_path: Path):
    edge = await asyncio.to_thread(EdgeProcess.start, tmp_path)
    os.kill(edge.pid, signal.SIGINT)
    assert await edge.wait_for_end(STOP_SECONDS) == 0
