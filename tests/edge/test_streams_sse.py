"""The same streams as server-sent events: for browsers, curl, and whatever speaks only HTTP."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from factwire.journal import Journal, open_journal
from factwire.serving.envelopes import event_id_of
from factwire.serving.streams import stream_app, stream_sinks
from factwire.serving.streams.channel import Channel
from tests.edge.streaming import WAIT, Served, message, serve_streams, until
from tests.edge.streaming_loops import on_both_loops
from tests.journal.contract import make_fact

Event = dict[str, str]


class Events:
    """The events of one response, as a browser would read them; comments are counted."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.comments = 0
        self._lines: AsyncIterator[str] = response.aiter_lines()

    async def next(self) -> Event | None:
        """The next event; None at the end."""
        event: Event = {}
        async with asyncio.timeout(WAIT):
            async for line in self._lines:
                if not line and event:
                    return event
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    assert name not in event
                    event[name] = value
        return None

    async def take(self, count: int) -> list[Event]:
        found = [await self.next() for _ in range(count)]
        return [event for event in found if event is not None]


@asynccontextmanager
async def events(
    served: Served, path: str = "/v1/facts", last: str | None = None, **query: str
) -> AsyncGenerator[Events]:
    headers = {"accept": "text/event-stream"} | ({"last-event-id": last} if last else {})
    async with (
        httpx.AsyncClient(timeout=WAIT) as client,
        client.stream("GET", served.url(path, query, "http"), headers=headers) as response,
    ):
        assert response.status_code == 200
        yield Events(response)


@asynccontextmanager
async def memory_streams() -> AsyncGenerator[tuple[Journal, Served]]:
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        yield journal, served


@pytest.mark.requirement("edge.stream.sse")
@on_both_loops
async def test_events_carry_the_messages_of_the_socket_with_their_cursor_as_id():
    async with memory_streams() as (journal, served):
        await journal.append([make_fact(1), make_fact(2)])
        for path in ("/v1/facts", "/v1/events"):
            async with events(served, path) as stream, served.socket(path) as client:
                kept = await stream.take(2)
                number = (await journal.head()).seq + 1
                await journal.append([make_fact(number)])
                messages = [*kept, *await stream.take(number - 2)]
                same = [await message(client) for _ in messages]
            assert stream.response.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert [json.loads(each["data"]) for each in messages] == same
            assert [each["id"] for each in messages] == [each["cursor"] for each in same]
            names = [each.get("type", "fact") for each in same]
            assert [each["event"] for each in messages] == names


@pytest.mark.requirement("edge.stream.sse")
@on_both_loops
async def test_the_last_event_id_counts_more_than_the_url():
    async with memory_streams() as (journal, served):
        await journal.append([make_fact(number) for number in range(1, 6)])
        async with events(served) as stream:
            first, second, third = await stream.take(3)
        async with events(served, last=third["id"], cursor=first["id"]) as stream:
            assert [json.loads(each["data"])["seq"] for each in await stream.take(2)] == [4, 5]
        async with events(served, last=event_id_of("fact-4"), since="now") as stream:
            assert json.loads((await stream.take(1))[0]["data"])["seq"] == 5
        async with events(served, cursor=second["id"], stream="sse") as stream:
            assert json.loads((await stream.take(1))[0]["data"])["seq"] == 3


@pytest.mark.requirement("edge.stream.sse")
@on_both_loops
async def test_a_cut_event_stream_resumes_after_every_event():
    async with memory_streams() as (journal, served):
        await journal.append([make_fact(number) for number in range(1, 41)])
        last, seen = None, list[int]()
        while len(seen) < 40:
            async with events(served, last=last) as stream:
                (event,) = await stream.take(1)
            last = event["id"]
            seen.append(json.loads(event["data"])["seq"])
        assert seen == list(range(1, 41))


@pytest.mark.requirement("edge.stream.sse")
@on_both_loops
async def test_checkpoints_errors_and_the_end_are_events_too():
    async with memory_streams() as (journal, served):
        await journal.append([make_fact(1, "other")])
        async with events(served, threadId="mine") as stream:
            (event,) = await stream.take(1)
            assert (event["event"], event["id"]) == ("checkpoint", str(await journal.head()))
            await served.streams.close()
            assert await stream.next() is None
    async with memory_streams() as (_, served), events(served, cursor="nobody") as stream:
        (event,) = await stream.take(1)
        assert event["event"] == "stream.error"
        assert "id" not in event
        assert json.loads(event["data"])["payload"]["code"] == "cursor_invalid"
        assert await stream.next() is None


@pytest.mark.requirement("edge.stream.sse")
@on_both_loops
async def test_an_idle_event_stream_is_kept_alive_by_comments(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream_app, "PING_SECONDS", 0.01)
    async with memory_streams() as (journal, served), events(served) as stream:
        for number in range(3):
            seen = stream.comments
            waiting = asyncio.create_task(stream.next())
            await until(lambda seen=seen: stream.comments > seen)
            await journal.append([make_fact(number)])
            event = await waiting
            assert event
            assert json.loads(event["data"])["seq"] == number + 1


@pytest.mark.fault
@pytest.mark.requirement("edge.stream.slow")
@on_both_loops
async def test_a_stopped_reader_of_events_is_cut_at_its_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream_sinks, "CLOSE_SECONDS", 0.05)
    async with memory_streams() as (journal, served):
        with await open_stalled_reader(served):
            held = await held_for(journal, served)
            await until(lambda: served.streams.stats().readers == 0)
            await until(lambda: not served.server.server_state.connections)
        assert 0 < held < 1_100_000


@pytest.mark.fault
@on_both_loops
async def test_without_the_rule_a_stopped_reader_of_events_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream_sinks, "CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(Channel, "_drop_the_slow", nobody_is_slow)
    async with memory_streams() as (journal, served):
        with await open_stalled_reader(served):
            assert await held_for(journal, served) > 2_000_000


def nobody_is_slow(_: Channel) -> None:
    """The rule, off."""


async def held_for(journal: Journal, served: Served) -> int:
    """The most that is held for a reader while four million bytes are written."""
    held = 0
    for number in range(100):
        appended = await journal.append([make_fact(number, payload={"delta": "x" * 40_000})])
        await served.feed.wait_for(appended.cursor.seq)
        held = max(held, served.streams.stats().held_bytes)
    return held


async def open_stalled_reader(served: Served) -> socket.socket:
    """A reader that asks for events and never looks at the answer."""
    for listener in served.server.servers[0].sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(raw, ("127.0.0.1", served.port))
    await loop.sock_sendall(raw, b"GET /v1/facts?stream=sse HTTP/1.1\r\nHost: a\r\n\r\n")
    await until(lambda: served.streams.stats().readers == 1)
    return raw
