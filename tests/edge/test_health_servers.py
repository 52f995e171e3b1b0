"""The health of an Edge on servers that take no facts: real PostgreSQL and real NATS.

Reads go on where the server can still answer them; what it cannot answer is a documented problem.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from factwire.journal.postgres.server_connection import connect
from tests.edge.edges import WAIT_SECONDS, RunningEdge, configuration_in, running_edge
from tests.journal.nats_server import running_server
from tests.journal.postgres_server import PostgresServer

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("edge.observing.health.writes")]

PATIENCE = "0.3"
"""Seconds that a request waits for a server that went away."""


async def run_once(edge: RunningEdge) -> tuple[str, str, str]:
    """Have something to read; the addresses of lists, of facts and of a state."""
    run = await edge.start("help")
    assert (await edge.run_until(run["runId"]))["status"] == "finished"
    return "/v1/runs", "/v1/facts", f"/v1/threads/{run['threadId']}/projection"


async def write(edge: RunningEdge) -> tuple[int, str | None]:
    answer = await edge.http.post("/v1/threads", json={"title": "Not now"})
    return answer.status_code, answer.json().get("code")


async def until_refused(edge: RunningEdge, refusal: tuple[int, str]) -> None:
    """Write until the server has heard that it is to refuse."""
    async with asyncio.timeout(WAIT_SECONDS):
        while await write(edge) != refusal:
            pass


async def read(edge: RunningEdge, paths: tuple[str, ...]) -> list[tuple[int, str | None]]:
    answers = [await edge.http.get(path) for path in paths]
    return [(answer.status_code, answer.json().get("code")) for answer in answers]


async def read_health(edge: RunningEdge) -> tuple[int, str, str | None, str | None]:
    answer = await edge.http.get("/v1/health")
    health: dict[str, Any] = answer.json()
    reason = health["details"].get("reason")
    return answer.status_code, health["status"], health.get("code"), reason


async def until_well(edge: RunningEdge) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while (await read_health(edge))[1] != "ok":
            pass
    await edge.post("/v1/threads", {"title": "Well again"}, status=201)


async def test_an_edge_on_a_read_only_or_stopped_postgresql_says_so(tmp_path: Path):
    with PostgresServer() as server:
        configuration = configuration_in(tmp_path, journal=server.url(patience=PATIENCE))
        async with running_edge(tmp_path, configuration=configuration) as edge:
            paths = await run_once(edge)
            sql = await connect(server.dsn, within=WAIT_SECONDS, settings={})
            await sql.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            await sql.execute("SELECT pg_reload_conf()")
            await until_refused(edge, (503, "journal_unavailable"))
            status, word, code, reason = await read_health(edge)
            assert (status, word, code) == (503, "degraded", "journal_unavailable")
            assert "read-only" in (reason or "").lower()
            assert await read(edge, paths) == [(200, None)] * 3
            removal = await edge.http.post("/v1/retention/runs", json={"compact": True})
            assert (removal.status_code, removal.json()["code"]) == (503, "journal_unavailable")
            await sql.execute("SET default_transaction_read_only = off")
            await sql.execute("ALTER SYSTEM RESET default_transaction_read_only")
            await sql.execute("SELECT pg_reload_conf()")
            await sql.close()
            await until_well(edge)

            server.kill()
            assert await write(edge) == (503, "journal_unavailable")
            assert (await read_health(edge))[:3] == (503, "degraded", "journal_unavailable")
            away = (503, "journal_unavailable")
            assert await read(edge, paths) == [(200, None), away, away]
            server.start()
            await until_well(edge)
            assert await read(edge, paths) == [(200, None)] * 3


async def test_an_edge_on_a_stopped_or_wiped_nats_says_so(tmp_path: Path):
    with running_server() as server:
        url = server.url("edge", options=f"sync=always&patience={PATIENCE}")
        configuration = configuration_in(tmp_path, journal=url)
        async with running_edge(tmp_path, configuration=configuration) as edge:
            paths = await run_once(edge)
            server.kill()
            assert await write(edge) == (503, "journal_unavailable")
            assert (await read_health(edge))[:3] == (503, "degraded", "journal_unavailable")
            away = (503, "journal_unavailable")
            assert await read(edge, paths) == [(200, None), away, away]
            server.start()
            await until_well(edge)
            assert await read(edge, paths) == [(200, None)] * 3

            server.kill()
            shutil.rmtree(server.folder / "data")
            server.start()
            lost = (503, "journal_corrupt")
            await until_refused(edge, lost)
            status, word, code, reason = await read_health(edge)
            assert (status, word, code) == (503, "degraded", "journal_corrupt")
            assert "damaged" in (reason or "")
            assert await read(edge, paths) == [(200, None), lost, lost]
