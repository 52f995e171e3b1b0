"""Streams over real sockets: what is told, to whom, from where, and what is refused."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect

from factwire.edge.events import event_id_of
from factwire.edge.streams import FactwireSocketProtocol, Selection, Teller, page
from factwire.facts import Fact
from factwire.journal import (
    Cursor,
    CursorFromFuture,
    Filter,
    Journal,
    Retention,
    open_journal,
)
from tests.edge.streaming import EDGE, Served, closing, message, messages, refusal, serving, until
from tests.journal.contract import make_fact

pytestmark = pytest.mark.asyncio

STRANGE = "0123456789abcdef"


@pytest_asyncio.fixture
async def journal() -> AsyncGenerator[Journal]:
    async with open_journal("memory:") as opened:
        yield opened


@pytest_asyncio.fixture
async def served(journal: Journal) -> AsyncGenerator[Served]:
    async with serving(journal) as running:
        yield running


def some(first: int, last: int, **fields: Any) -> list[Fact]:
    return [make_fact(number, **fields) for number in range(first, last + 1)]


async def seqs(served: Served, count: int, path: str = "/v1/facts", **query: str) -> list[int]:
    async with served.socket(path, **query) as client:
        return [told["seq"] for told in await messages(client, count)]


@pytest.mark.requirement("edge.stream.order")
async def test_a_reader_gets_what_is_kept_and_then_what_comes(journal: Journal, served: Served):
    await journal.append(some(1, 3))
    async with served.socket() as client:
        kept = await messages(client, 3)
        await journal.append(some(4, 5))
        live = await messages(client, 2)
    told = [*kept, *live]
    assert [each["seq"] for each in told] == [1, 2, 3, 4, 5]
    assert [each["fact"]["id"] for each in told] == [f"fact-{number}" for number in range(1, 6)]


@pytest.mark.requirement("edge.stream.bytes")
async def test_a_fact_is_told_with_its_stored_bytes(journal: Journal, served: Served):
    said = {"delta": "é\u2028 \n", "n": 1.0, "unknown": [None]}
    appended = await journal.append([make_fact(1, payload=said)])
    stored = [stretch.data async for stretch in journal.read()]
    async with served.socket() as client:
        text = await client.recv(decode=False)
    cursor = str(appended.cursor).encode()
    assert text == b'{"cursor":"%s","seq":1,"fact":%s}' % (cursor, stored[0].rstrip(b"\n"))
    assert json.loads(text)["fact"]["payload"] == said


@pytest.mark.requirement("edge.stream.cursor")
@pytest.mark.parametrize("path", ["/v1/facts", "/v1/events"])
async def test_a_cursor_an_event_id_or_a_fact_id_is_resumed_after(
    journal: Journal, served: Served, path: str
):
    appended = await journal.append(some(1, 5))
    for place in (str(Cursor(appended.epoch, 3)), event_id_of("fact-3"), "fact-3"):
        assert await seqs(served, 2, path, cursor=place) == [4, 5]


@pytest.mark.requirement("edge.stream.cursor")
async def test_one_cursor_serves_both_faces_both_views_and_every_filter(
    journal: Journal, served: Served
):
    await journal.append(some(1, 6))
    async with served.socket("/v1/events", view="conversation") as client:
        place = (await messages(client, 3))[-1]["cursor"]
    assert await seqs(served, 3, "/v1/facts", cursor=place) == [4, 5, 6]
    assert await seqs(served, 3, "/v1/events", cursor=place, view="runtime") == [4, 5, 6]
    assert await seqs(served, 3, "/v1/facts", cursor=place, threadId="t") == [4, 5, 6]


@pytest.mark.requirement("edge.stream.now")
async def test_a_stream_from_now_says_where_now_is(journal: Journal, served: Served):
    appended = await journal.append(some(1, 3))
    await served.feed.reached(3)
    async with served.socket(since="now") as client:
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
    journal: Journal, served: Served, path: str, cursor: str, ending: tuple[str, int]
):
    code, close = ending
    head = (await journal.append(some(1, 40))).cursor
    await served.feed.reached(40)
    assert (await journal.retain(Retention(keep_facts=10))).removed == 30
    places = {"future": str(Cursor(head.epoch, 99)), "expired": str(Cursor(head.epoch, 5))}
    async with served.socket(path, cursor=places.get(cursor, cursor), threadId="t") as client:
        told = await message(client)
        assert await closing(client) == (close, client.close_reason)
    details = told["payload"].pop("details")
    assert told["type"] == "error"
    assert told["payload"]["code"] == code
    assert told["payload"]["traceId"] == told["traceId"]
    assert details == {
        "snapshotRequired": True,
        "snapshotUrl": "/v1/threads/t/projection",
        "asOfCursor": str(head),
    }


@pytest.mark.requirement("edge.stream.cursor")
async def test_a_cursor_ahead_of_the_feed_is_waited_for(
    journal: Journal, served: Served, monkeypatch: pytest.MonkeyPatch
):
    await journal.append(some(1, 2))
    await served.feed.reached(2)
    held: list[Any] = []
    hand_out = served.feed._hand_out
    monkeypatch.setattr(served.feed, "_hand_out", held.append)
    ahead = await journal.append(some(3, 4))
    async with served.socket(cursor=str(Cursor(ahead.epoch, 3))) as client:
        await until(lambda: bool(held) and served.streams.stats().catching_up == 1)
        monkeypatch.undo()
        for stretch in held:
            hand_out(stretch)
        assert (await message(client))["seq"] == 4
        await journal.append(some(5, 5))
        assert (await message(client))["seq"] == 5


@pytest.mark.requirement("edge.stream.filters")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"threadId": "a"}, [1, 4, 6]),
        ({"projectId": "p"}, [2, 4]),
        ({"runId": "r"}, [3, 4]),
        ({"threadId": "a", "projectId": "p"}, [4]),
        ({"classes": "tool"}, [5, 6]),
        ({"classes": "tool.started,model"}, [1, 2, 3, 4, 5]),
        ({"classes": "tool.", "threadId": "a"}, [6]),
    ],
)
@pytest.mark.parametrize("live", [False, True])
async def test_only_facts_of_what_is_named_are_told(
    journal: Journal, served: Served, query: dict[str, str], expected: list[int], live: bool
):
    batch = [
        make_fact(1, "a"),
        make_fact(2, "b", project_id="p"),
        make_fact(3, "b", run_id="r"),
        make_fact(4, "a", project_id="p", run_id="r"),
        make_fact(5, "b", event_class="tool.started", tool_call_id="c"),
        make_fact(6, "a", event_class="tool.result", tool_call_id="c"),
        make_fact(7, "b", event_class="toolbox.opened"),
    ]
    if not live:
        await journal.append(batch)
    async with served.socket(**query) as client:
        if live:
            await until(lambda: served.streams.stats().readers == 1)
            await journal.append(batch)
        assert [told["seq"] for told in await messages(client, len(expected))] == expected
        if expected[-1] < 7:
            assert (await message(client))["type"] == "checkpoint"


@pytest.mark.requirement("edge.stream.shared")
async def test_readers_of_one_stream_are_written_one_and_the_same_buffer(
    journal: Journal, served: Served
):
    async with (
        served.socket(threadId="t", since="now") as one,
        served.socket(threadId="t", since="now") as other,
        served.socket(since="now") as third,
    ):
        for client in (one, other, third):
            assert (await message(client))["type"] == "checkpoint"
        await until(lambda: served.streams.stats().readers == 3)
        assert served.streams.stats().broadcasts == 2
        written: list[bytes] = []
        for connection in served.server.server_state.connections:
            writer = cast("FactwireSocketProtocol", connection)._writer
            assert writer
            writer.write = spying(writer.write, written)
        await journal.append(some(1, 3))
        for client in (one, other, third):
            assert [told["seq"] for told in await messages(client, 3)] == [1, 2, 3]
    assert len(written) == 3
    assert len({id(buffer) for buffer in written}) == 2


def spying(write: Callable[[bytes], None], written: list[bytes]) -> Callable[[bytes], None]:
    def spied(frames: bytes) -> None:
        written.append(frames)
        write(frames)

    return spied


@pytest.mark.requirement("edge.stream.types")
async def test_types_are_those_of_the_envelope_in_its_view(journal: Journal, served: Served):
    said: dict[str, Any] = {
        "payload": {"delta": "a"},
        "message_id": "m",
        "run_id": "r",
        "turn_id": "u",
    }
    await journal.append(
        [
            make_fact(1, "t", **said),
            make_fact(2, event_class="tool.started", tool_call_id="c", run_id="r"),
            make_fact(3, "t", **said),
        ]
    )
    for query in (
        {"types": "run.agent.text_delta"},
        {"types": "run.agent.text_delta", "view": "runtime"},
        {"types": "message.delta", "view": "conversation"},
        {"types": "message", "view": "conversation"},
        {"types": "approval,message.", "view": "conversation"},
    ):
        async with served.socket("/v1/events", **query) as client:
            told = await messages(client, 2)
        assert [each["seq"] for each in told] == [1, 3]
        assert {each["type"] for each in told} == {
            "message.delta" if query.get("view") == "conversation" else "run.agent.text_delta"
        }
    async with served.socket("/v1/events", types="message") as client:
        assert await message(client) == {
            "type": "checkpoint",
            "cursor": str(await journal.head()),
            "seq": 3,
        }


@pytest.mark.requirement("edge.stream.checkpoints")
async def test_facts_passed_over_advance_the_reader_in_few_frames(journal: Journal, served: Served):
    async with served.socket(threadId="mine", since="now") as client:
        assert (await message(client))["seq"] == 0
        for number in range(1, 201):
            await journal.append([make_fact(number, "other")])
        told: list[dict[str, Any]] = []
        while not told or told[-1]["seq"] < 200:
            told.append(await message(client))
        assert {each["type"] for each in told} == {"checkpoint"}
        assert len(told) < 50
        await journal.append([make_fact(201, "mine")])
        assert (await messages(client, 1))[0]["seq"] == 201
    assert await seqs(served, 1, cursor=told[-1]["cursor"], threadId="mine") == [201]


@pytest.mark.requirement("edge.stream.query")
@pytest.mark.parametrize("over", ["socket", "events"])
@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("/v1/facts", "threadid=t", "unknown_parameter"),
        ("/v1/facts", "types=a", "unknown_parameter"),
        ("/v1/events", "classes=a", "unknown_parameter"),
        ("/v1/events", "view=mine", "invalid_parameter"),
        ("/v1/events", "threadId=", "invalid_parameter"),
        ("/v1/events", "threadId=a&threadId=b", "repeated_parameter"),
        ("/v1/events", "since=yesterday", "invalid_parameter"),
        ("/v1/events", "since=now&cursor=fw1.x", "conflicting_parameters"),
        ("/v1/events", "types=a,,b", "invalid_parameter"),
        ("/v1/events", "types=" + ",".join(f"t{n}" for n in range(65)), "invalid_parameter"),
        ("/v1/events", "cursor=" + "x" * 513, "invalid_parameter"),
        ("/v1/events", "limit=0", "invalid_parameter"),
        ("/v1/events", "cursor=%ff", "invalid_query"),
        ("/v1/events", "&".join(["types=a"] * 200), "invalid_query"),
        ("/v1/threads/t/projection/stream", "since=now", "unknown_parameter"),
    ],
)
async def test_a_query_that_is_not_understood_is_refused_before_the_stream(
    served: Served, over: str, path: str, query: str, code: str
):
    status, problem = await refusal(served, over, f"{path}?{query}")
    assert (status, problem["code"]) == (400, code)
    assert problem["status"] == 400
    assert problem["traceId"]


@pytest.mark.requirement("edge.stream.methods")
@pytest.mark.parametrize("over", ["socket", "events"])
async def test_an_unknown_thread_or_address_is_not_found(served: Served, over: str):
    unknown = await refusal(served, over, "/v1/threads/nobody/projection/stream")
    assert (unknown[0], unknown[1]["code"]) == (404, "unknown_thread")
    nothing = await refusal(served, over, "/v1/nothing")
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
    served: Served, method: str, accept: str, status: int
):
    async with httpx.AsyncClient() as client:
        url = served.url("/v1/threads/t/projection/stream", scheme="http")
        answer = await client.request(method, url, headers={"accept": accept})
    assert answer.status_code == status
    assert (answer.headers.get("allow") == "GET") is (status == 405)
    assert (answer.content == b"") is (method == "HEAD")


@pytest.mark.requirement("edge.stream.methods")
async def test_a_plain_read_of_a_face_is_not_for_the_streams(served: Served):
    def scope(kind: str, path: str, **extra: Any) -> dict[str, Any]:
        return {"type": kind, "path": path, "headers": [], "query_string": b"", **extra}

    accept = [(b"accept", b"text/event-stream")]
    owns = served.streams.owns
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
    told: list[list[str | bytes]] = []
    for settings in ({}, {"ws": "websockets-sansio", "ws_per_message_deflate": True}):
        async with (
            serving(journal, settings=settings) as served,
            connect(served.url("/v1/events")) as client,
        ):
            found = [await client.recv() for _ in range(3)]
            told.append(found)
            await client.send("hello")
            assert (await closing(client))[0] == 1008
    assert told[0] == told[1]


@pytest.mark.requirement("edge.stream.any-server")
async def test_compression_asked_for_takes_the_slow_way(journal: Journal):
    await journal.append(some(1, 3))
    settings = {"ws_per_message_deflate": True}
    async with (
        serving(journal, settings=settings) as served,
        connect(served.url("/v1/facts"), compression="deflate") as client,
    ):
        assert client.response
        assert "permessage-deflate" in client.response.headers["sec-websocket-extensions"]
        assert [told["seq"] for told in await messages(client, 3)] == [1, 2, 3]


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
    journal: Journal, served: Served, selection: Selection
):
    kinds = ("model.delta", "tool.started", "hook.started")
    batch = [make_fact(n, "ab"[n % 2], event_class=kinds[n % 3]) for n in range(1, 20)]
    await journal.append(batch)
    teller, after, found = Teller(selection, edge_id=EDGE), None, list[bytes]()
    while True:
        taken = await page(journal, teller, after, 4)
        body = json.loads(taken.body())
        assert body["cursor"] == str(taken.cursor)
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
    async with served.socket(f"/v1/{selection.face}", **query) as client:
        for text in found:
            assert await client.recv(decode=False) == text
    assert taken.cursor.seq == 19
    assert (await page(journal, teller, taken.cursor, 4)).texts == []


@pytest.mark.requirement("edge.stream.page")
async def test_a_page_from_a_cursor_that_is_no_place_is_refused(journal: Journal):
    head = (await journal.append(some(1, 3))).cursor
    teller = Teller(Selection(face="facts"), edge_id=EDGE)
    with pytest.raises(CursorFromFuture):
        await page(journal, teller, Cursor(head.epoch, 9), 10)
