"""What an Edge counts, under which names, and that nobody makes it count more."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from factwire import __version__
from factwire.journal import open_journal
from factwire.serving.request_observing import UNMATCHED, LoopLag, RouteTemplates
from factwire.serving.streams import CLOSE_REASONS
from factwire.serving.streams.stream_sinks import CLOSE_NAMES
from tests.edge.edges import RunningEdge, running_edge
from tests.edge.streaming import WAIT, Served, read_close, serve_streams, until
from tests.edge.streaming_clients import Raw
from tests.journal.contract import make_fact

pytestmark = pytest.mark.asyncio

ROOM = 4_096
"""Bytes that the kernel keeps on either side of a reader that does not read."""

Series = tuple[str, frozenset[tuple[str, str]]]


async def scrape_metrics(edge: RunningEdge) -> dict[Series, float]:
    """Every series, by name and labels."""
    answer = await edge.http.get("/v1/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def series(name: str, **labels: str) -> Series:
    return f"factwire_edge_{name}", frozenset(labels.items())


@pytest.mark.requirement("edge.observing.metrics")
async def test_requests_are_counted_by_method_template_and_status(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        await edge.http.get("/v1/runs/none")
        await edge.http.post("/v1/runs/none:cancel", json={})
        await edge.http.get("/v1/runs/none", headers={"authorization": "Bearer wrong"})
        figures = await scrape_metrics(edge)
    route = "/v1/runs/{run_id}"
    assert figures[series("requests_total", method="POST", route="/v1/runs", status="202")] == 1
    assert figures[series("requests_total", method="GET", route=route, status="404")] == 1
    assert figures[series("requests_total", method="GET", route=route, status="401")] == 1
    cancelled = {"method": "POST", "route": f"{route}:cancel", "status": "404"}
    assert figures[series("requests_total", **cancelled)] == 1
    assert figures[series("request_seconds_count", method="POST", route="/v1/runs")] == 1
    assert (
        figures[series("request_seconds_bucket", method="POST", route="/v1/runs", le="+Inf")] == 1
    )


@pytest.mark.requirement("edge.observing.metrics")
async def test_runs_approvals_journal_and_process_are_told(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        waiting = await edge.start("approve")
        await edge.wait_for_approval(waiting["runId"])
        queued = {"agentId": "demo", "prompt": "help", "threadId": waiting["threadId"]}
        await edge.post("/v1/runs", queued, status=202)
        figures = await scrape_metrics(edge)
        head = (await edge.machine.journal.head()).seq
        assert figures[series("runs", status="waiting")] == 1
        assert figures[series("runs", status="queued")] == 1
        assert figures[series("runs", status="failed")] == 0
        assert figures[series("runs_active")] == 1
        assert figures[series("approvals_pending")] == 1
        assert figures[series("approvals_oldest_pending_seconds")] >= 0
        assert figures[series("previews")] == 0
        assert figures[series("journal_head")] == head
        assert figures[series("feed_lag_facts")] == 0
        assert 0 < figures[series("facts_total")] <= head
        assert figures[series("feed_state", state="live")] == 1
        assert figures[series("feed_state", state="degraded")] == 0
        assert figures[series("streams_closed_total", reason="slow")] == 0
        assert figures[series("streams_closed_total", reason="cursor_expired")] == 0
        build = series("build_info", version=__version__, edge_id=edge.machine.edge_id)
        assert figures[build] == 1
    names = {name for name, _ in figures}
    assert {"process_resident_memory_bytes", "python_gc_collections_total", "python_info"} <= names
    assert not any(name.endswith("_created") for name in names)


@pytest.mark.requirement("edge.observing.metrics")
async def test_the_figures_of_a_journal_that_is_away_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_edge(tmp_path) as edge:
        monkeypatch.setattr(edge.machine.feed, "_trouble", "away")
        figures = await scrape_metrics(edge)
        assert figures[series("feed_state", state="degraded")] == 1
        assert series("journal_head") not in figures
        assert series("feed_lag_facts") not in figures


@pytest.mark.requirement("edge.observing.metrics")
async def test_strangers_get_no_figures_and_two_edges_share_none(tmp_path: Path):
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    async with running_edge(folders[0]) as one, running_edge(folders[1]) as two:
        refused = await asyncio.to_thread(httpx.get, f"{one.url}/v1/metrics")
        assert refused.status_code == 401
        for _ in range(3):
            await one.get("/v1/agents")
        requests = series("requests_total", method="GET", route="/v1/agents", status="200")
        assert (await scrape_metrics(one))[requests] == 3
        assert requests not in await scrape_metrics(two)


@pytest.mark.requirement("edge.observing.bounded")
async def test_a_thousand_ids_paths_and_methods_make_no_series(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        requests = [
            ("GET", "/v1/runs/{}"),
            ("GET", "/v1/threads/{}/projection/stream"),
            ("POST", "/v1/runs/{}:cancel"),
            ("GET", "/v1/{}/nothing"),
            ("GET", "/{}"),
            ("GET", "/v1/runs/x:{}"),
            ("PURGE", "/v1/runs/{}"),
        ]
        for number in ("first", "second"):
            await _ask(edge, requests, number)
        await scrape_metrics(edge)
        before = set(await scrape_metrics(edge))
        for number in range(1_000 // len(requests) + 1):
            await _ask(edge, requests, f"ID{number}")
        assert set(await scrape_metrics(edge)) == before


async def _ask(edge: RunningEdge, requests: list[tuple[str, str]], name: str) -> None:
    for method, path in requests:
        await edge.http.request(method, path.format(name))


@pytest.mark.requirement("edge.observing.bounded")
@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/v1/runs", "/v1/runs"),
        ("/v1/runs/", "/v1/runs"),
        ("/v1//runs/a//", "/v1/runs/{run_id}"),
        ("/v1/runs/a", "/v1/runs/{run_id}"),
        ("/v1/runs/a:cancel", "/v1/runs/{run_id}:cancel"),
        ("/v1/runs/a:b:cancel", "/v1/runs/{run_id}:cancel"),
        ("/v1/runs/a:other", "/v1/runs/{run_id}"),
        ("/v1/runs/:cancel", "/v1/runs/{run_id}"),
        ("/v1/runs/a/b", UNMATCHED),
        ("/v1/runs:cancel", "/v1/runs/{run_id}"),
        ("/v1/{}", UNMATCHED),
        ("/v1", UNMATCHED),
        ("/", UNMATCHED),
        ("", UNMATCHED),
        ("*", UNMATCHED),
    ],
)
async def test_a_path_has_the_template_of_what_answers_it(path: str, template: str):
    templates = RouteTemplates(["/v1/runs", "/v1/runs/{run_id}", "/v1/runs/{run_id}/:cancel"])
    assert templates.match(path) == template


@pytest.mark.requirement("edge.observing.bounded")
@pytest.mark.parametrize("path", ["/", "", "//"])
async def test_the_root_has_its_own_template_where_it_is_served(path: str):
    assert RouteTemplates(["/", "/v1/runs"]).match(path) == "/"


@pytest.mark.requirement("edge.observing.metrics")
async def test_why_streams_end_is_counted():
    async with open_journal("memory:") as journal:
        async with serve_streams(journal) as served:
            async with served.socket(since="now"):
                await until(lambda: served.streams.stats().readers == 1)
            async with served.socket(cursor="fw1.0000000000000000.0000000000000009") as client:
                assert (await read_close(client))[0] == 4400
            await _left_behind(served, journal)
            async with served.socket(since="now") as client:
                await until(lambda: served.streams.stats().readers == 1)
                await served.streams.close(WAIT)
                assert (await read_close(client))[0] == 1012
            await until(lambda: sum(served.streams.stats().closed.values()) == 4)
            stats = served.streams.stats()
        assert stats.opened == 4
        ended = {reason: count for reason, count in stats.closed.items() if count}
        assert ended == {"left": 1, "cursor_invalid": 1, "slow": 1, "restart": 1}


async def _left_behind(served: Served, journal: Any) -> None:
    """A reader that takes nothing until it is closed for it."""
    for listener in served.server.servers[0].sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
    lazy = await Raw.connect(served.port, "/v1/facts?since=now", room=ROOM)
    lazy.transport.pause_reading()
    await until(lambda: served.streams.stats().readers == 1)
    for number in range(50):
        await journal.append([make_fact(number, payload={"delta": "x" * 40_000})])
    await until(lambda: served.streams.stats().readers == 0)
    lazy.transport.resume_reading()
    await lazy.until(lazy.ended.is_set)


@pytest.mark.requirement("edge.observing.metrics")
async def test_every_way_to_end_a_stream_has_a_word():
    assert set(CLOSE_NAMES) == {*CLOSE_REASONS, None}
    assert len(set(CLOSE_NAMES.values())) == len(CLOSE_NAMES)


@pytest.mark.requirement("edge.observing.metrics")
async def test_a_stream_counts_when_it_opens_and_has_no_duration(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        headers = {"accept": "text/event-stream"}
        async with edge.http.stream("GET", "/v1/events?since=now", headers=headers):
            figures = await scrape_metrics(edge)
            requests = {"method": "GET", "route": "/v1/events"}
            assert figures[series("requests_total", **requests, status="200")] == 1
            assert series("request_seconds_count", **requests) not in figures
            assert figures[series("streams")] + figures[series("streams_catching_up")] == 1
            assert figures[series("streams_opened_total")] == 1


@pytest.mark.requirement("edge.observing.metrics")
async def test_a_loop_that_is_held_up_shows():
    lag = LoopLag(every=0.001)
    lag.start()
    for _ in _until(lambda: lag.durations.buckets()[-1][1] >= 3):
        await asyncio.sleep(0)
    lag.stop()
    seen = lag.durations.buckets()[-1][1]
    lag.durations.observe(0.3)
    buckets = dict(lag.durations.buckets())
    assert buckets["+Inf"] == seen + 1
    assert buckets["0.5"] - buckets["0.25"] >= 1
    [family] = lag.families("factwire_edge_")
    assert family.name == "factwire_edge_loop_lag_seconds"


def _until(condition: Any) -> Iterator[None]:
    ends = asyncio.get_running_loop().time() + WAIT
    while not condition():
        assert asyncio.get_running_loop().time() < ends
        yield
