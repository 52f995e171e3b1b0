"""S14: each bound of the Edge is crossed once, and says so with a stable code."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from factwire.edge import limits as edge_limits
from factwire.facts.limits import NESTING_DEPTH
from factwire.serving import limits
from factwire.serving.access_control import AccessLimiter, Caller, Tickets
from factwire.serving.asgi import Problem
from factwire.serving.idempotency import IdempotencyMiddleware
from factwire.serving.streams import FactwireHttpProtocol
from tests.edge.edges import TOKEN, WAIT_SECONDS, RunningEdge, running_edge
from tests.edge.raw_http import RawAnswer, answers_in, exchange, head, send_and_collect

JSON = "content-type: application/json"


def _status(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadlines of a connection, a hundred times shorter."""
    monkeypatch.setattr(FactwireHttpProtocol, "header_seconds", 0.1)
    monkeypatch.setattr("factwire.serving.guard.BODY_SECONDS", 0.1)


def _floods(edge: RunningEdge, floods: AccessLimiter) -> None:
    """Count by other numbers from now on."""
    for part in _parts(edge.edge.application):
        if hasattr(part, "_access"):
            part._access = msgspec.structs.replace(part._access, limiter=floods)


def _parts(part: Any) -> list[Any]:
    found: list[Any] = []
    while part is not None:
        found.append(part)
        part = getattr(part, "_application", None)
    return found


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.streams")
async def test_only_so_many_streams_are_open_and_a_place_is_given_back(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        _floods(edge, AccessLimiter(open_streams=2))
        headers = {"authorization": f"Bearer {TOKEN}"}
        url = f"{edge.socket_url}/v1/events"
        async with (
            connect(url, additional_headers=headers),
            connect(url, additional_headers=headers),
        ):
            with pytest.raises(InvalidStatus) as refused:
                await connect(url, additional_headers=headers)
            assert refused.value.response.status_code == 429
            accept = {"accept": "text/event-stream"}
            answer = await edge.http.get("/v1/facts", headers=accept)
            assert _status(answer) == (429, "too_many_streams")
            assert answer.headers["retry-after"] == "5"
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                try:
                    async with connect(url, additional_headers=headers):
                        return
                except InvalidStatus:
                    continue


@pytest.mark.requirement("edge.floods.streams")
def test_streams_may_come_only_so_fast():
    now = 0.0
    floods = AccessLimiter(connects_per_second=3, clock=lambda: now)
    for _ in range(3):
        floods.enter_stream()
    with pytest.raises(Problem) as refused:
        floods.enter_stream()
    assert (refused.value.status, refused.value.code) == (429, "connecting_too_fast")
    now = 1.0
    floods.enter_stream()


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.credentials")
async def test_whoever_guesses_too_often_waits_but_keeps_nobody_out(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        wrong = {"authorization": "Bearer wrong"}
        bodies = ({"renewable": True}, {"renewable": False})
        tickets = [await edge.post("/v1/tickets", body, status=201) for body in bodies]
        for _ in range(limits.REFUSALS_PER_MINUTE):
            assert (await edge.http.get("/v1/runs", headers=wrong)).status_code == 401
        answer = await edge.http.get("/v1/runs", headers=wrong)
        assert _status(answer) == (429, "too_many_refusals")
        assert (await edge.http.get("/v1/runs")).status_code == 200
        for ticket in tickets:
            async with connect(f"{edge.socket_url}/v1/facts?ticket={ticket['ticket']}") as stream:
                assert json.loads(await stream.recv())["seq"] == 1
        guess = await edge.http.get(
            "/v1/facts?ticket=tkt_wrong", headers={"accept": "text/event-stream", **wrong}
        )
        assert _status(guess) == (429, "too_many_refusals")


@pytest.mark.requirement("edge.floods.credentials")
def test_guesses_are_forgotten_after_a_minute_and_of_many_addresses_the_oldest():
    now = 0.0
    floods = AccessLimiter(refusals_per_minute=1, clock=lambda: now)
    floods.note_refusal("one")
    with pytest.raises(Problem):
        floods.ensure_may_try("one")
    now = 60.0
    floods.ensure_may_try("one")
    floods.note_refusal("two")
    for index in range(limits.REFUSED_ADDRESSES):
        floods.note_refusal(f"address-{index}")
    floods.ensure_may_try("two")


@pytest.mark.requirement("edge.floods.credentials")
def test_only_so_many_tickets_are_out():
    now = 0.0
    tickets = Tickets(lambda: now)
    for _ in range(limits.OPEN_TICKETS):
        tickets.issue(Caller())
    with pytest.raises(Problem) as refused:
        tickets.issue(Caller())
    assert (refused.value.status, refused.value.code) == (429, "too_many_tickets")
    now = limits.TICKET_SECONDS
    tickets.issue(Caller())


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.bodies")
async def test_a_body_is_bounded_whether_it_says_its_length_or_not(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        declared = head("POST", "/v1/threads", JSON, f"content-length: {limits.BODY_BYTES + 1}")
        answer = await exchange(edge.port, declared)
        assert (answer.status, answer.code) == (413, "body_too_large")
        piece = b"%x\r\n%s\r\n" % (65536, b" " * 65536)
        chunked = head("POST", "/v1/threads", JSON, "transfer-encoding: chunked")
        pieces = [piece] * (limits.BODY_BYTES // 65536 + 1)
        answer = await exchange(edge.port, chunked, *pieces)
        assert (answer.status, answer.code) == (413, "body_too_large")
        under_a_key = head(
            "POST", "/v1/threads", JSON, "transfer-encoding: chunked", "idempotency-key: k"
        )
        answer = await exchange(edge.port, under_a_key, *pieces)
        assert (answer.status, answer.code) == (413, "body_too_large")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.bodies")
async def test_a_body_whose_sender_hung_up_is_none_even_if_it_could_be_read():
    requests: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        del receive, send
        requests.append(scope["path"])

    messages: list[dict[str, Any]] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b"{}", "more_body": True},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop()

    async def send(message: Any) -> None:
        raise AssertionError(message)

    headers = [(b"idempotency-key", b"k")]
    scope = {"type": "http", "method": "POST", "path": "/v1/threads", "headers": headers}
    await IdempotencyMiddleware(application)(scope, receive, send)
    assert requests == []


@pytest.mark.asyncio
@pytest.mark.usefixtures("soon")
@pytest.mark.requirement("edge.floods.slow")
async def test_a_body_that_trickles_is_given_up_with_its_connection(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        start = head("POST", "/v1/threads", JSON, "content-length: 100")
        answer = await exchange(edge.port, start + b"{")
        assert (answer.status, answer.code) == (408, "body_too_slow")
        assert answer.headers["connection"] == "close"


@pytest.mark.asyncio
@pytest.mark.usefixtures("soon")
@pytest.mark.requirement("edge.floods.slow")
@pytest.mark.parametrize(
    "sent", [b"", b"GET /v1/", b"GET /v1/health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ", b"\r\n\r\n"]
)
async def test_headers_that_trickle_hold_no_connection(tmp_path: Path, sent: bytes):
    async with running_edge(tmp_path) as edge:
        answer = await exchange(edge.port, sent)
        assert (answer.status, answer.code) == (408, "headers_too_slow")


@pytest.mark.fault
@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.slow")
async def test_without_that_deadline_such_a_connection_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(FactwireHttpProtocol, "header_seconds", 3600.0)
    async with running_edge(tmp_path) as edge:
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        writer.write(b"GET /v1/")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.5)
        writer.close()


@pytest.mark.asyncio
@pytest.mark.usefixtures("soon")
@pytest.mark.requirement("edge.floods.slow")
async def test_empty_lines_between_requests_keep_no_connection_alive(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        async with asyncio.timeout(WAIT_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
            writer.write(head("GET", "/v1/health"))
            first = await reader.readuntil(b"}")
            writer.write(b"\r\n")
            [_, late] = answers_in(first + await reader.read())
            writer.close()
        assert (late.status, late.code) == (408, "headers_too_slow")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.slow")
async def test_an_idle_connection_is_closed(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        edge.server.config.timeout_keep_alive = 0.1  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue]
        answers = await send_and_collect(edge.port, head("GET", "/v1/health"))
        assert [answer.status for answer in answers] == [200]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.slow")
async def test_what_is_answered_before_it_came_whole_is_not_waited_for(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        start = head("PUT", "/v1/threads", JSON, "content-length: 1000")
        answer = await exchange(edge.port, start + b"{")
        assert (answer.status, answer.code) == (405, "method_not_allowed")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.headers")
@pytest.mark.parametrize("pieces", [1, 40])
async def test_headers_are_bounded_all_at_once_and_in_pieces(tmp_path: Path, pieces: int):
    async with running_edge(tmp_path) as edge:
        padding = [f"x-{index}: {'y' * 1000}" for index in range(40)]
        whole = head("GET", "/v1/threads", *padding)
        size = len(whole) // pieces
        parts = [whole[at : at + size] for at in range(0, len(whole), size)]
        answer = await exchange(edge.port, *parts)
        assert (answer.status, answer.code) == (431, "headers_too_long")
        one = f"x: {'y' * 40_000}"
        answer = await exchange(edge.port, head("GET", "/v1/threads", one)[:-2])
        assert (answer.status, answer.code) == (431, "headers_too_long")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.headers")
async def test_an_address_is_bounded(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for path in ("/v1/threads/" + "x" * 9_000, "/v1/threads?cursor=" + "x" * 9_000):
            answer = await exchange(edge.port, head("GET", path))
            assert (answer.status, answer.code) == (414, "address_too_long")
        long = await edge.http.get(f"/v1/threads/{'x' * 7_000}")
        assert _status(long) == (404, "unknown_thread")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.headers")
async def test_what_comes_behind_a_body_is_no_header_and_is_bounded_too(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        request = (
            b"POST /v1/threads HTTP/1.1\r\nhost: evil.example\r\ntransfer-encoding: chunked\r\n"
            b"content-type: application/json\r\n\r\n2\r\n{}\r\n0\r\n"
            b"host: 127.0.0.1\r\nauthorization: Bearer %s\r\n\r\n" % TOKEN.encode()
        )
        answer = await exchange(edge.port, request)
        assert (answer.status, answer.code) == (421, "host_not_allowed")
        endless = head("POST", "/v1/threads", JSON, "transfer-encoding: chunked") + b"1\r\n \r\n"
        answers = await send_and_collect(edge.port, endless, b"0\r\nx: ", *[b"y" * 10_000] * 100)
        assert [(each.status, each.code) for each in answers] == [(431, "headers_too_long")]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.headers")
@pytest.mark.parametrize("name", ["host", "authorization", "origin", "content-type"])
async def test_a_header_that_decides_something_is_given_once(tmp_path: Path, name: str):
    async with running_edge(tmp_path) as edge:
        request = head("GET", "/v1/threads", f"{name}: 127.0.0.1", f"{name}: 127.0.0.1")
        answer = await exchange(edge.port, request)
        assert (answer.status, answer.code) == (400, "repeated_header")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.connections")
async def test_only_so_many_connections_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with running_edge(tmp_path) as edge:
        monkeypatch.setattr(FactwireHttpProtocol, "open_connections", 3)
        held = [await asyncio.open_connection("127.0.0.1", edge.port) for _ in range(3)]
        answer = await exchange(edge.port, b"")
        assert (answer.status, answer.code) == (503, "too_many_connections")
        for _, writer in held:
            writer.close()


NOT_JSON = {
    "nan": b'{"title":NaN}',
    "infinity": b'{"title":-Infinity}',
    "beyond floats": b'{"title":1e999}',
    "an integer of five thousand digits": b'{"title":' + b"1" * 5_000 + b"}",
    "not utf-8": b'{"title":"\xff"}',
    "utf-16": '{"title":"x"}'.encode("utf-16"),
    "half a character": b'{"title":"\\ud800"}',
    "two halves the wrong way round": b'{"title":"\\udc00\\ud800"}',
    "deep": b'{"title":' + b"[" * (NESTING_DEPTH + 1) + b"]" * (NESTING_DEPTH + 1) + b"}",
    "very deep": b'{"title":' + b"[" * 1_000_000,
    "cut off": b'{"title":"x',
    "two of them": b"{}{}",
    "nothing": b" ",
}


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.json")
async def test_json_that_could_be_read_in_two_ways_or_in_none_is_refused(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        headers = {"content-type": "application/json"}
        for name, body in NOT_JSON.items():
            answer = await edge.http.post("/v1/threads", content=body, headers=headers)
            assert _status(answer) == (400, "unreadable_json"), name
        twice = b'{"title":"one","title":"two"}'
        last = await edge.http.post("/v1/threads", content=twice, headers=headers)
        assert last.json()["title"] == "two"


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.json")
async def test_a_number_that_no_machine_word_holds_is_kept_as_it_is(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        huge = 10**60
        run = await edge.start("help", options={"number": huge})
        assert (await edge.run_until(run["runId"]))["status"] == "finished"
        page = await edge.get("/v1/facts", runId=run["runId"], limit=1000)
        assert page["items"]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.counts")
async def test_counts_and_lengths_of_what_is_asked_are_bounded(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        many: dict[str, Any] = {"facts": [{}] * (edge_limits.FACTS_IN_A_BATCH + 1)}
        assert _status(await edge.http.post("/v1/facts", json=many)) == (413, "batch_size")
        assert _status(await edge.http.post("/v1/facts", json={"facts": []})) == (400, "batch_size")
        key = {"idempotency-key": "k" * (limits.KEY_CHARACTERS + 1)}
        answer = await edge.http.post("/v1/threads", json={}, headers=key)
        assert _status(answer) == (400, "invalid_idempotency_key")
        for query in ("limit=1&limit=2", "cursor=a&cursor=b"):
            answer = await edge.http.get(f"/v1/threads?{query}")
            assert _status(answer) == (400, "repeated_parameter")
        query = "&".join(f"p{index}=1" for index in range(1_000))
        assert _status(await edge.http.get(f"/v1/threads?{query}")) == (400, "unknown_parameter")
        title = "x" * (edge_limits.NAME_CHARACTERS + 1)
        answer = await edge.http.post("/v1/threads", json={"title": title})
        assert _status(answer) == (400, "invalid_request")
        prompt = "x" * (edge_limits.PROMPT_CHARACTERS + 1)
        answer = await edge.http.post("/v1/runs", json={"agentId": "demo", "prompt": prompt})
        assert _status(answer) == (400, "invalid_request")
        for path in ("/v1/threads", "/v1/facts", "/v1/events"):
            assert _status(await edge.http.get(path, params={"limit": 10**9})) == (
                400,
                "invalid_request",
            )


@pytest.mark.asyncio
@pytest.mark.requirement("edge.floods.counts")
async def test_requests_that_are_sent_without_waiting_are_answered_in_turn(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        last = head("GET", "/v1/threads", "connection: close")
        whole = head("GET", "/v1/health") * 200 + last
        answers: list[RawAnswer] = await send_and_collect(edge.port, whole)
        assert [answer.status for answer in answers] == [200] * 201


def test_answers_are_told_apart_in_the_bytes_of_a_connection():
    one = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na"
    two = b"HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n"
    assert [(answer.status, answer.body) for answer in answers_in(one + two)] == [
        (200, b"a"),
        (404, b"b"),
    ]
