"""Streams: what comes, in order and once, however often the Edge or the connection goes away."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from factwire.client import (
    AsyncClient,
    AsyncStream,
    Client,
    CursorLost,
    EdgeUnreachable,
    Event,
    PlacedFact,
    StreamEnded,
    ThreadDocument,
    ThreadSnapshot,
)
from factwire.client.edge_streams import StreamPosition, position_in_events
from factwire.facts.resources import Run
from tests.client.edge_processes import TOKEN, EdgeProcess
from tests.edge.edges import TOKEN as EDGE_TOKEN
from tests.edge.edges import RunningEdge, running_edge

pytestmark = pytest.mark.asyncio

PATIENCE = 60.0


def client(edge: RunningEdge, **more: Any) -> AsyncClient:
    return AsyncClient(edge.url, token=EDGE_TOKEN, **more)


async def run_to_end(asking: AsyncClient, prompt: str = "help", **more: Any) -> Run:
    """A run that has come to its end."""
    async with asking.events(since="now", types=["run"]) as events:
        run = await asking.start_run("demo", prompt, **more)
        async with asyncio.timeout(PATIENCE):
            async for event in events:
                if event.type == "run.finished" and event.scope.run_id == run.run_id:
                    return await asking.run(run.run_id)
    pytest.fail("the run did not finish")


async def read_past_events(asking: AsyncClient, **wanted: Any) -> list[Event]:
    return [event async for event in asking.past_events(**wanted)]


@pytest.mark.requirement("client.now")
async def test_a_stream_that_begins_now_misses_nothing_that_its_block_sets_off(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        await run_to_end(asking)
        async with asking.events(since="now") as events:
            start = events.cursor
            run = await asking.start_run("demo", "help")
            seen = [await anext(events)]
            while seen[-1].type != "run.finished":
                seen.append(await anext(events))
        assert seen[0].type == "thread.created"
        assert {event.scope.thread_id for event in seen} == {run.thread_id}
        past = await read_past_events(asking, cursor=start)
        assert past[: len(seen)] == seen


@pytest.mark.requirement("client.resume")
async def test_a_filtered_stream_moves_its_cursor_past_what_it_does_not_show(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        async with asking.events(since="now", types=["project"]) as events:
            await run_to_end(asking)
            made = await asking.create_project("one")
            event = await anext(events)
            assert (event.type, event.payload["projectId"]) == ("project.created", made.project_id)
            assert events.cursor == event.cursor
        async with asking.events(cursor=event.cursor, types="project") as rest:
            await asking.create_project("two")
            assert (await anext(rest)).payload["name"] == "two"


@pytest.mark.requirement("client.resume")
async def test_facts_come_typed_and_with_their_place(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        run = await run_to_end(asking)
        async with asking.facts(thread_id=run.thread_id, classes=["turn"]) as facts:
            seen: list[PlacedFact] = []
            while not seen or seen[-1].fact.event_class != "turn.completed":
                seen.append(await anext(facts))
        past = asking.past_facts(thread_id=run.thread_id, classes=["turn"], limit=1)
        assert seen == [placed async for placed in past]
        assert {placed.fact.turn_id for placed in seen} == {run.turn_id}


@pytest.mark.requirement("client.document")
async def test_a_document_is_the_state_that_the_edge_has(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        thread = await asking.create_thread(title="watched")
        document = ThreadDocument()
        async with asking.projection(thread.thread_id) as changes:
            await run_to_end(asking, thread_id=thread.thread_id)
            last = await asking.state(thread.thread_id)
            async with asyncio.timeout(PATIENCE):
                async for change in changes:
                    document.take(change)
                    if document.state == last.state:
                        break
        assert document.cursor is not None
        async with asking.projection(thread.thread_id, cursor=document.cursor) as rest:
            await asking.change_thread(thread.thread_id, title="renamed")
            change = await anext(rest)
            assert not isinstance(change, ThreadSnapshot)
            document.take(change)
        assert document.state == (await asking.state(thread.thread_id)).state


@pytest.mark.requirement("client.resume")
async def test_a_restart_in_between_repeats_and_omits_nothing(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        await run_to_end(asking)
        async with aclosing(asking.events()) as events:
            seen = [await anext(events) for _ in range(5)]
            # Every socket is closed with "service restart"; the Edge itself goes on.
            edge.edge.streams.readers.close()
            past = await read_past_events(asking)
            while len(seen) < len(past):
                seen.append(await asyncio.wait_for(anext(events), PATIENCE))
        assert seen == past


@pytest.mark.requirement("client.resume")
async def test_two_clients_in_parallel_see_the_same(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as one, client(edge) as two:

        async def collect_events(asking: AsyncClient) -> list[Event]:
            found: list[Event] = []
            async with asking.events(types=["run"]) as events:
                async for event in events:
                    found.append(event)
                    if sum(each.type == "run.finished" for each in found) == 4:
                        return found
            return found

        reading = [asyncio.create_task(collect_events(each)) for each in (one, two)]
        await asyncio.gather(*(run_to_end(each) for each in (one, two) for _ in range(2)))
        first, second = await asyncio.wait_for(asyncio.gather(*reading), PATIENCE)
        assert first == second


@pytest.mark.requirement("client.resume")
async def test_the_client_that_waits_streams_too(tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        run = await run_to_end(asking)
        past = await read_past_events(asking)
        loop = asyncio.get_running_loop()

        def read() -> tuple[list[Event], list[PlacedFact], ThreadDocument]:
            document = ThreadDocument()
            with Client(edge.url, token=EDGE_TOKEN) as waiting:
                with waiting.events() as stream:
                    events = [next(stream) for _ in past[:5]]
                    loop.call_soon_threadsafe(edge.edge.streams.readers.close)
                    events += [next(stream) for _ in past[5:]]
                with waiting.facts(thread_id=run.thread_id, classes=["turn"]) as stream:
                    facts = [next(stream), next(stream)]
                with waiting.projection(run.thread_id or "") as stream:
                    document.take(next(stream))
                with waiting.events(since="now") as stream:
                    waiting.create_project("made while a stream stood")
                    assert next(stream).type == "project.created"
                assert list(waiting.past_events(limit=7))[: len(past)] == past
            return events, facts, document

        events, facts, document = await asyncio.to_thread(read)
        assert events == past
        assert [placed.fact.event_class for placed in facts] == ["turn.submitted", "turn.started"]
        assert document.state == (await asking.state(run.thread_id or "")).state


@pytest.mark.requirement("client.cursor-lost")
@pytest.mark.parametrize(
    ("cursor", "code"),
    [
        ("nonsense", "cursor_invalid"),
        ("fw1.0123456789abcdef.0000000000000001", "cursor_invalid"),
        ("evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "cursor_invalid"),
    ],
)
async def test_a_cursor_of_no_use_says_where_to_begin_anew(cursor: str, code: str, tmp_path: Path):
    async with running_edge(tmp_path) as edge, client(edge) as asking:
        thread = await asking.create_thread()
        with pytest.raises(CursorLost) as lost:
            await anext(asking.events(cursor=cursor, thread_id=thread.thread_id))
        assert lost.value.code == code
        assert lost.value.snapshot_url == f"/v1/threads/{thread.thread_id}/projection"
        events = asking.events(cursor=lost.value.as_of_cursor)
        async with events:
            await asking.create_project("after")
            assert (await anext(events)).type == "project.created"


@pytest.mark.requirement("client.resume")
@pytest.mark.parametrize("code", [1000, 1001, 1006, 1011, 1012, 1013])
async def test_these_closes_mean_to_come_again(code: int):
    _course().handle_close(code, "because")


@pytest.mark.requirement("client.cursor-lost")
@pytest.mark.parametrize(
    ("code", "error"),
    [(4400, CursorLost), (4410, CursorLost), (1008, StreamEnded), (4401, StreamEnded)],
)
async def test_these_closes_mean_not_to(code: int, error: type[Exception]):
    with pytest.raises(error):
        _course().handle_close(code, "because")


def _course() -> StreamPosition[Event]:
    return position_in_events(cursor=None, now=False)


async def test_closing_the_client_ends_its_streams(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        asking = client(edge)
        events = asking.events(since="now")
        async with events:
            reading = asyncio.create_task(anext(events, None))
            await asyncio.sleep(0)
            await asking.aclose()
            assert await asyncio.wait_for(reading, PATIENCE) is None


@pytest.mark.fault
@pytest.mark.requirement("client.resume")
@pytest.mark.timeout(600)
async def test_resume_across_kills_repeats_and_omits_nothing(tmp_path: Path):
    with EdgeProcess(tmp_path) as edge:
        events, facts = await _through_kills(edge, kills=5)
        async with AsyncClient(edge.url, token=TOKEN) as asking:
            past = await read_past_events(asking, limit=1_000)
            stored = [placed async for placed in asking.past_facts(limit=1_000)]
    assert events == past[: len(events)]
    assert facts == stored[: len(facts)]
    assert len(events) > 5
    assert len({event.id for event in events}) == len(events)


@pytest.mark.fault
@pytest.mark.requirement("client.resume")
@pytest.mark.timeout(600)
async def test_without_the_cursor_the_same_kills_repeat_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(StreamPosition, "query", property(lambda course: course._query))
    with EdgeProcess(tmp_path) as edge:
        events, _ = await _through_kills(edge, kills=1)
    assert len({event.id for event in events}) < len(events)


PATIENT: dict[str, Any] = {"token": TOKEN, "retry_seconds": 60, "reconnect_seconds": 60}


async def _through_kills(edge: EdgeProcess, kills: int) -> tuple[list[Event], list[PlacedFact]]:
    """What readers of both faces saw while an Edge was killed, until they have seen the last run;
    one waits and one awaits.
    """
    events: list[Event] = []
    facts: list[PlacedFact] = []
    seen: dict[str, asyncio.Event] = {}
    loop = asyncio.get_running_loop()

    async def read_events() -> None:
        async with AsyncClient(edge.url, **PATIENT) as reading, reading.events() as stream:
            async for event in stream:
                events.append(event)
                if event.type == "project.created":
                    seen.setdefault(event.payload["name"], asyncio.Event()).set()

    def read_facts() -> None:
        with Client(edge.url, **PATIENT) as reading, reading.facts() as stream:
            for placed in stream:
                facts.append(placed)
                if placed.fact.payload.get("name") == "last":
                    return

    readers = asyncio.create_task(read_events()), loop.run_in_executor(None, read_facts)
    async with asyncio.timeout(PATIENCE * 2), AsyncClient(edge.url, **PATIENT) as asking:
        for number in range(kills):
            await asking.create_project(f"before {number}")
            await seen.setdefault(f"before {number}", asyncio.Event()).wait()
            await asking.start_run("demo", "help")
            # Somewhere in the middle of the run's facts, or of their way to the readers.
            await asyncio.to_thread(edge.kill)
            await asyncio.to_thread(edge.start)
        await asking.create_project("last")
        await seen.setdefault("last", asyncio.Event()).wait()
        await readers[1]
    readers[0].cancel()
    await asyncio.gather(readers[0], return_exceptions=True)
    return events, facts


@pytest.mark.requirement("client.unreachable")
async def test_a_stream_whose_edge_stays_away_says_so(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        asking = client(edge, reconnect_seconds=0.2)
        events = asking.events(since="now")
        await events.__aenter__()
    with pytest.raises(EdgeUnreachable):
        await asyncio.wait_for(_drain(events), PATIENCE)
    await asking.aclose()


async def _drain(events: AsyncStream[Event]) -> list[Event]:
    return [event async for event in events]
