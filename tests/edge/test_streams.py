"""Streams over real sockets: what is told, to whom, from where, and what is refused."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import httpx
import pytest
from websockets.asyncio.client import connect

from factwire.edge.events import build_envelope
from factwire.journal import (
    Cursor,
    CursorFromFuture,
    Filter,
    Journal,
    RetentionPolicy,
)
from factwire.serving.envelopes import event_id_of
from factwire.serving.streams import (
    FactwireSocketProtocol,
    FrameEncoder,
    Selection,
    read_message_page,
)
from tests.edge import streaming_fixtures
from tests.edge.streaming import (
    EDGE,
    Served,
    message,
    messages,
    read_close,
    refusal,
    serve_streams,
    until,
)
from tests.edge.streaming_fixtures import seqs, some
from tests.journal.contract import make_fact

pytestmark = pytest.mark.asyncio

STRANGE = "0123456789abcdef"


journal, server = streaming_fixtures.journal, streaming_fixtures.server


@pytest.mark.requirement("edge.stream.order")
async def test_a_reader_gets_what_is_kept_and_then_what_comes(journal: Journal, server: Served):
    await journal.append(some(1, 3))
    async with server.socket() as client:
        kept = await messages(client, 3)
        await journal.append(some(4, 5))
        live = await messages(client, 2)
    events = [*kept, *live]
    assert [each["seq"] for each in events] == [1, 2, 3, 4, 5]
    assert [each["fact"]["id"] for each in events] == [f"fact-{number}" for number in range(1, 6)]


@pytest.mark.requirement("edge.stream.bytes")
async def test_a_fact_is_told_with_its_stored_bytes(journal: Journal, server: Served):
    payload = {"delta": "é\u2028 \n", "n": 1.0, "unknown": [None]}
    appended = await journal.append([make_fact(1, payload=payload)])
    stored = [batch.data async for batch in journal.read()]
    async with server.socket() as client:
        text = await client.recv(decode=False)
    cursor = str(appended.cursor).encode()
    assert text == b'{"cursor":"%s","seq":1,"fact":%s}' % (cursor, stored[0].rstrip(b"\n"))
    assert json.loads(text)["fact"]["payload"] == payload


@pytest.mark.requirement("edge.stream.cursor")
@pytest.mark.parametrize("path", ["/v1/facts", "/v1/events"])
async def test_a_cursor_an_event_id_or_a_fact_id_is_resumed_after(
    journal: Journal, server: Served, path: str
):
    appended = await journal.append(some(1, 5))
    for place in (str(Cursor(appended.epoch, 3)), event_id_of("fact-3"), "fact-3"):
        assert await seqs(server, 2, path, cursor=place) == [4, 5]


@pytest.mark.requirement("edge.stream.cursor")
async def test_one_cursor_serves_both_faces_both_views_and_every_filter(
    journal: Journal, server: Served
):
    await journal.append(some(1, 6))
    async with server.socket("/v1/events", view="conversation") as client:
        place = (await messages(client, 3))[-1]["cursor"]
    assert await seqs(server, 3, "/v1/facts", cursor=place) == [4, 5, 6]
    assert await seqs(server, 3, "/v1/events", cursor=place, view="runtime") == [4, 5, 6]
    assert await seqs(server, 3, "/v1/facts", cursor=place, threadId="t") == [4, 5, 6]


@pytest.mark.requirement("edge.stream.now")
async def test_a_stream_from_now_says_where_now_is(journal: Journal, server: Served):
    appended = await journal.append(some(1, 3))
    await server.feed.wait_for(3)
    async with server.socket(since="now") as client:
        first = await message(client)
        await journal.append(some(4, 4))
        assert (await message(client))["seq"] == 4
    assert first == {"type": "checkpoint", "cursor": str(appended.cursor), "seq": 3}


@pytest.mark.requirement("edge.stream.cursor-refused")
@pytest.mark.parametrize("path", ["/v1/facts", "/v1/events"])
@pytest.mark.parametrize(
    ("cursor", "ending"),
    [
        ("fw1.nonsense", ("cursor_invalid", 4400)),
        (f"fw1.{STRANGE}.{1:016d}", ("cursor_invalid", 4400)),
        ("future", ("cursor_invalid", 4400)),
        ("evt_~!", ("cursor_invalid", 4400)),
        ("no-such-fact", ("cursor_invalid", 4400)),
        ("expired", ("cursor_expired", 4410)),
    ],
)
async def test_a_cursor_that_is_no_place_gets_one_error_and_a_reconnectable_close(
    journal: Journal, server: Served, path: str, cursor: str, ending: tuple[str, int]
):
    code, close = ending
    head = (await journal.append(some(1, 40))).cursor
    await server.feed.wait_for(40)
    assert (await journal.retain(RetentionPolicy(keep_facts=10))).removed == 30
    places = {"future": str(Cursor(head.epoch, 99)), "expired": str(Cursor(head.epoch, 5))}
    async with server.socket(path, cursor=places.get(cursor, cursor), threadId="t") as client:
        events = await message(client)
        assert await read_close(client) == (close, client.close_reason)
    details = events["payload"].pop("details")
    assert events["type"] == "error"
    assert events["payload"]["code"] == code
    assert events["payload"]["traceId"] == events["traceId"]
    assert details == {
        "snapshotRequired": True,
        "snapshotUrl": "/v1/threads/t/projection",
        "asOfCursor": str(head),
    }


@pytest.mark.requirement("edge.stream.cursor")
async def test_a_cursor_ahead_of_the_feed_is_waited_for(
    journal: Journal, server: Served, monkeypatch: pytest.MonkeyPatch
):
    await journal.append(some(1, 2))
    await server.feed.wait_for(2)
    held: list[Any] = []
    hand_out = server.feed._hand_out
    monkeypatch.setattr(server.feed, "_hand_out", held.append)
    ahead = await journal.append(some(3, 4))
    async with server.socket(cursor=str(Cursor(ahead.epoch, 3))) as client:
        await until(lambda: bool(held) and server.streams.stats().catching_up == 1)
        async with server.socket(cursor=str(Cursor(ahead.epoch, 3))):
            await until(lambda: server.streams.stats().catching_up == 2)
        await until(lambda: server.streams.stats().catching_up == 1)
        monkeypatch.undo()
        for batch in held:
            hand_out(batch)
        assert (await message(client))["seq"] == 4
        await journal.append(some(5, 5))
        assert (await message(client))["seq"] == 5


@pytest.mark.requirement("edge.stream.shared")
async def test_readers_of_one_stream_are_written_one_and_the_same_buffer(
    journal: Journal, server: Served
):
    async with (
        server.socket(threadId="t", since="now") as one,
        server.socket(threadId="t", since="now") as other,
        server.socket(since="now") as third,
    ):
        for client in (one, other, third):
            assert (await message(client))["type"] == "checkpoint"
        await until(lambda: server.streams.stats().readers == 3)
        assert server.streams.stats().broadcasts == 2
        written: list[bytes] = []
        for connection in server.server.server_state.connections:
            writer = cast("FactwireSocketProtocol", connection)._writer
            assert writer
            writer.write = spy_on(writer.write, written)
        await journal.append(some(1, 3))
        for client in (one, other, third):
            assert [events["seq"] for events in await messages(client, 3)] == [1, 2, 3]
    assert len(written) == 3
    assert len({id(buffer) for buffer in written}) == 2


def spy_on(write: Callable[[bytes], None], written: list[bytes]) -> Callable[[bytes], None]:
    def record_frames(frames: bytes) -> None:
        written.append(frames)
        write(frames)

    return record_frames


@pytest.mark.requirement("edge.stream.methods")
@pytest.mark.parametrize("over", ["socket", "events"])
async def test_an_unknown_thread_or_address_is_not_found(server: Served, over: str):
    unknown = await refusal(server, over, "/v1/threads/nobody/projection/stream")
    assert (unknown[0], unknown[1]["code"]) == (404, "unknown_thread")
    nothing = await refusal(server, over, "/v1/nothing")
    assert (nothing[0], nothing[1]["code"]) == (404, "not_found")


@pytest.mark.requirement("edge.stream.methods")
@pytest.mark.parametrize(
    ("method", "accept", "status"),
    [
        ("POST", "text/event-stream", 405),
        ("HEAD", "text/event-stream", 405),
        ("DELETE", "*/*", 405),
        ("GET", "application/json", 406),
    ],
)
async def test_a_stream_is_read_with_get_as_events(
    server: Served, method: str, accept: str, status: int
):
    async with httpx.AsyncClient() as client:
        url = server.url("/v1/threads/t/projection/stream", scheme="http")
        answer = await client.request(method, url, headers={"accept": accept})
    assert answer.status_code == status
    assert (answer.headers.get("allow") == "GET") is (status == 405)
    assert (answer.content == b"") is (method == "HEAD")


@pytest.mark.requirement("edge.stream.methods")
async def test_a_plain_read_of_a_face_is_not_for_the_streams(server: Served):
    def scope(kind: str, path: str, **extra: Any) -> dict[str, Any]:
        return {"type": kind, "path": path, "headers": [], "query_string": b"", **extra}

    accept = [(b"accept", b"text/event-stream")]
    owns = server.streams.owns
    assert owns(scope("websocket", "/v1/events"))
    assert owns(scope("http", "/v1/facts", method="GET", headers=accept))
    assert owns(scope("http", "/v1/facts", method="GET", query_string=b"stream=sse"))
    assert owns(scope("http", "/v1/threads/a/projection/stream", method="GET"))
    assert not owns(scope("http", "/v1/facts", method="GET"))
    assert not owns(scope("http", "/v1/facts", method="POST", headers=accept))
    assert not owns(scope("http", "/v1/threads", method="GET", headers=accept))


@pytest.mark.requirement("edge.stream.any-server")
async def test_any_server_sends_the_same_messages(journal: Journal):
    await journal.append(some(1, 3))
    events: list[list[str | bytes]] = []
    for settings in ({}, {"ws": "websockets-sansio", "ws_per_message_deflate": True}):
        async with (
            serve_streams(journal, settings=settings) as served,
            connect(served.url("/v1/events")) as client,
        ):
            found = [await client.recv() for _ in range(3)]
            events.append(found)
            await client.send("hello")
            assert (await read_close(client))[0] == 1008
    assert events[0] == events[1]


@pytest.mark.requirement("edge.stream.any-server")
async def test_compression_asked_for_takes_the_slow_way(journal: Journal):
    await journal.append(some(1, 3))
    settings = {"ws_per_message_deflate": True}
    async with (
        serve_streams(journal, settings=settings) as served,
        connect(served.url("/v1/facts"), compression="deflate") as client,
    ):
        assert client.response
        assert "permessage-deflate" in client.response.headers["sec-websocket-extensions"]
        assert [events["seq"] for events in await messages(client, 3)] == [1, 2, 3]


@pytest.mark.requirement("edge.stream.page")
@pytest.mark.parametrize(
    "selection",
    [
        Selection(face="facts"),
        Selection(face="events", view="conversation"),
        Selection(face="facts", filter=Filter(thread="a")),
        Selection(face="events", types=("run.agent.tool_call", "tool.started")),
    ],
)
async def test_pages_have_the_bytes_of_the_stream(
    journal: Journal, server: Served, selection: Selection
):
    kinds = ("model.delta", "tool.started", "hook.started")
    batch = [make_fact(n, "ab"[n % 2], event_class=kinds[n % 3]) for n in range(1, 20)]
    await journal.append(batch)
    teller, after, found = (
        FrameEncoder(selection, envelope_of=partial(build_envelope, edge_id=EDGE)),
        None,
        list[bytes](),
    )
    while True:
        taken = await read_message_page(journal, teller, after, 4)
        body = json.loads(taken.to_json())
        assert body["asOf"] == str(taken.cursor)
        assert len(body["items"]) == len(taken.texts) <= 4
        after = taken.cursor
        found += taken.texts
        if not taken.more:
            break
    query = {"view": selection.view} if selection.face == "events" else {}
    if selection.filter:
        query["threadId"] = "a"
    if selection.types:
        query["types"] = ",".join(selection.types)
    async with server.socket(f"/v1/{selection.face}", **query) as client:
        for text in found:
            assert await client.recv(decode=False) == text
    assert taken.cursor.seq == 19
    assert (await read_message_page(journal, teller, taken.cursor, 4)).texts == []


@pytest.mark.requirement("edge.stream.page")
async def test_a_page_from_a_cursor_that_is_no_place_is_refused(journal: Journal):
    head = (await journal.append(some(1, 3))).cursor
    teller = FrameEncoder(
        Selection(face="facts"), envelope_of=partial(build_envelope, edge_id=EDGE)
    )
    with pytest.raises(CursorFromFuture):
        await read_message_page(journal, teller, Cursor(head.epoch, 9), 10)
