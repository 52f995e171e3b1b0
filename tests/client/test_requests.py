"""What a client sends, when it sends it again, and what it makes of refusals."""

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from factwire.client import (
    AddressInvalid,
    AsyncClient,
    AsyncHubClient,
    Client,
    ClientError,
    Device,
    EdgeProblem,
    EdgeUnreachable,
    TokenUnusable,
    UnreadableAnswer,
)
from tests.client.edge_processes import TOKEN, free_port, problem
from tests.client.scripted_edges import CUT, Reply, scripted_edge

pytestmark = pytest.mark.asyncio

ROW: dict[str, Any] = {"seq": 1, "createdAt": "t", "updatedAt": "t"}
KNOWN = {"threadId": "thr_1", "status": "active", "activity": "idle"}
THREAD = json.dumps({**ROW, **KNOWN, "somethingNew": {"deep": [1]}}).encode()
BUSY = Reply(503, problem(503, "lists_behind")[1], (("Retry-After", "0"),))
FLOODED = Reply(429, problem(429, "too_many_runs")[1], (("Retry-After", "0"),))


LAPTOP = Device(
    device_id="dev_1",
    owner_id="usr_1",
    kind="edge",
    name="laptop",
    edge_id="edge_1",
    platform="linux",
    version="1",
    agents=[],
    created_at="t",
    last_seen_at="t",
    online=True,
)


def client(url: str, **more: Any) -> AsyncClient:
    return AsyncClient(url, token=TOKEN, **more)


@pytest.mark.requirement("client.retries")
@pytest.mark.requirement("client.idempotency")
@pytest.mark.parametrize("first", [BUSY, FLOODED, CUT])
async def test_a_post_is_tried_again_under_the_same_key(first: Reply):
    async with scripted_edge(first, Reply(201, THREAD), Reply(201, THREAD)) as edge:
        async with client(edge.url) as asking:
            assert (await asking.create_thread(title="x")).thread_id == "thr_1"
            await asking.create_thread(title="x")
        again, another = edge.requests[:2], edge.requests[2]
        keys = [request.headers["idempotency-key"] for request in again]
        assert keys[0] == keys[1] != another.headers["idempotency-key"]
        assert again[0].body == again[1].body == b'{"title":"x"}'


@pytest.mark.requirement("client.retries")
@pytest.mark.parametrize("first", [BUSY, FLOODED, CUT])
async def test_the_client_that_waits_tries_again_too(first: Reply):
    async with scripted_edge(first, Reply(200, THREAD)) as edge:

        def ask() -> str:
            with Client(edge.url, token=TOKEN) as asking:
                return asking.thread("thr_1").thread_id

        assert await asyncio.to_thread(ask) == "thr_1"


@pytest.mark.requirement("client.hub.patience")
@pytest.mark.parametrize(("patience", "tries"), [(60.0, 3), (0.0, 1)])
async def test_a_device_that_sleeps_is_asked_again_under_the_same_key(patience: float, tries: int):
    asleep = Reply(504, problem(504, "relay_timeout")[1])
    async with scripted_edge(asleep, asleep, Reply(201, THREAD)) as hub:
        asking = AsyncHubClient(hub.url, token=TOKEN, device_seconds=patience)
        async with asking, await asking.edge(LAPTOP) as edge:
            if patience:
                assert (await edge.create_thread(title="x")).thread_id == "thr_1"
            else:
                with pytest.raises(EdgeProblem) as refused:
                    await edge.create_thread(title="x")
                assert refused.value.code == "relay_timeout"
        keys = [request.headers["idempotency-key"] for request in hub.requests]
        assert (len(keys), len(set(keys))) == (tries, 1)


@pytest.mark.requirement("client.retries")
@pytest.mark.parametrize("method", ["change", "delete"])
async def test_what_has_no_key_is_sent_once(method: str):
    async with scripted_edge(BUSY, CUT) as edge, client(edge.url) as asking:
        calls = {
            "change": lambda: asking.change_thread("thr_1", title="x"),
            "delete": lambda: asking.delete_thread("thr_1"),
        }
        with pytest.raises(EdgeProblem, match="lists_behind"):
            await calls[method]()
        with pytest.raises(EdgeUnreachable):
            await calls[method]()
        assert len(edge.requests) == 2


@pytest.mark.requirement("client.retries")
async def test_an_edge_that_asks_for_more_patience_than_there_is_gets_none():
    late = Reply(503, problem(503, "edge_stopping")[1], (("Retry-After", "3600"),))
    async with scripted_edge(late) as edge, client(edge.url) as asking:
        with pytest.raises(EdgeProblem) as refused:
            await asking.thread("thr_1")
        assert (refused.value.status, refused.value.code) == (503, "edge_stopping")


@pytest.mark.requirement("client.retries")
async def test_health_is_told_even_if_it_is_bad():
    sick = Reply(503, b'{"status":"degraded","version":"1"}')
    async with scripted_edge(sick) as edge, client(edge.url) as asking:
        assert (await asking.health()).status == "degraded"


@pytest.mark.requirement("client.tolerance")
async def test_fields_that_are_not_known_are_passed_over():
    async with scripted_edge(Reply(200, THREAD)) as edge, client(edge.url) as asking:
        assert (await asking.thread("thr_1")).thread_id == "thr_1"


@pytest.mark.requirement("client.problems")
@pytest.mark.parametrize(
    ("status", "body", "code", "detail"),
    [
        (404, problem(404, "unknown_thread")[1], "unknown_thread", "unknown_thread happened"),
        (409, problem(409, "approval_decided")[1], "approval_decided", "approval_decided happened"),
        (422, b'{"code":"invalid_facts","detail":"2 issues"}', "invalid_facts", "2 issues"),
        (502, b"<html>a proxy</html>", "http_502", "no reason was given"),
        (500, b"[1,2]", "http_500", "no reason was given"),
        (418, b"", "http_418", "no reason was given"),
    ],
)
async def test_a_refusal_is_raised_as_it_was_told(status: int, body: bytes, code: str, detail: str):
    reply = Reply(status, body, (("X-Trace-Id", "t-2"),))
    async with scripted_edge(reply) as edge, client(edge.url) as asking:
        with pytest.raises(EdgeProblem) as refused:
            await asking.thread("thr_1")
    error = refused.value
    assert (error.status, error.code, error.detail) == (status, code, detail)
    assert error.trace_id in ("t-1", "t-2")


@pytest.mark.requirement("client.problems")
async def test_a_refusal_keeps_what_else_was_said():
    reply = Reply(*problem(400, "invalid_request", issues=[{"path": "$.x"}]))
    async with scripted_edge(reply) as edge, client(edge.url) as asking:
        with pytest.raises(EdgeProblem) as refused:
            await asking.agents()
    assert refused.value.members == {"issues": [{"path": "$.x"}]}


@pytest.mark.requirement("client.problems")
@pytest.mark.parametrize("body", [b"hello", b"{}", b'{"seq":"one"}', b"\xff"])
async def test_an_answer_in_another_language_is_said_to_be(body: bytes):
    async with scripted_edge(Reply(200, body)) as edge, client(edge.url) as asking:
        with pytest.raises(
            UnreadableAnswer, match=r"unexpected response .*; the Edge may be a different version"
        ):
            await asking.thread("thr_1")


@pytest.mark.requirement("client.unreachable")
async def test_where_nobody_answers_the_error_says_what_to_do():
    url = f"http://127.0.0.1:{free_port()}"
    async with client(url, retry_seconds=0) as asking:
        with pytest.raises(EdgeUnreachable, match="factwire edge") as nobody:
            await asking.create_thread()
        assert nobody.value.url == url
        with pytest.raises(EdgeUnreachable):
            await anext(asking.events())


@pytest.mark.requirement("client.one-place")
async def test_a_redirect_is_followed_by_neither_request_nor_stream():
    async with scripted_edge() as elsewhere:
        away = Reply(302, b"", (("Location", f"{elsewhere.url}/v1/threads/thr_1"),))
        async with scripted_edge(away, away, away) as edge:
            async with client(edge.url) as asking:
                with pytest.raises(EdgeProblem, match="http_302"):
                    await asking.thread("thr_1")
                with pytest.raises(EdgeProblem, match="http_302"):
                    await anext(asking.events())

            def stream() -> None:
                with Client(edge.url, token=TOKEN) as waiting:
                    next(waiting.events())

            with pytest.raises(EdgeProblem, match="http_302"):
                await asyncio.to_thread(stream)
            assert len(edge.requests) == 3
        assert elsewhere.requests == []


@pytest.mark.requirement("client.one-place")
async def test_a_proxy_of_the_machine_is_not_shown_the_token(monkeypatch: pytest.MonkeyPatch):
    async with scripted_edge() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "ws_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        replies = Reply(200, THREAD), Reply(403)
        async with scripted_edge(*replies) as edge, client(edge.url) as asking:
            await asking.thread("thr_1")
            with pytest.raises(EdgeProblem):
                await anext(asking.events())
        assert proxy.requests == []


@pytest.mark.requirement("client.token")
@pytest.mark.parametrize("failing", [Reply(401, problem(401, "unauthenticated")[1]), CUT])
async def test_the_token_is_in_one_header_and_nowhere_else(
    failing: Reply, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logging.root, "level", logging.DEBUG)
    logging.getLogger("factwire.client.streams").setLevel(logging.DEBUG)
    texts: list[str] = []
    async with scripted_edge(failing, failing) as edge:
        asking = client(edge.url, retry_seconds=0)
        for ask in (lambda: asking.thread("thr_1"), lambda: anext(asking.events())):
            with pytest.raises(ClientError) as refused:
                await ask()
            texts += [str(refused.value), repr(refused.value), repr(refused.value.__cause__)]
        texts += [repr(asking), repr(asking.sender), repr(vars(asking)), str(asking.url)]
        await asking.aclose()
    assert [request.headers["authorization"] for request in edge.requests] == [
        f"Bearer {TOKEN}"
    ] * 2
    texts += [request.line for request in edge.requests]
    texts += [record.getMessage() for record in caplog.records]
    assert caplog.records
    assert [text for text in texts if TOKEN in text] == []


@pytest.mark.requirement("client.token")
async def test_a_token_is_given_or_kept_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("FACTWIRE_TOKEN", raising=False)
    url = "http://127.0.0.1:1"
    with pytest.raises(TokenUnusable, match="FACTWIRE_TOKEN"):
        Client(url)
    with pytest.raises(TokenUnusable, match="edge-token"):
        Client(url, data=tmp_path)
    monkeypatch.setenv("FACTWIRE_TOKEN", "from-the-environment")
    (tmp_path / "edge-token").write_text("from-the-folder\n")
    sent: list[str] = []
    async with scripted_edge(*[Reply(200, THREAD)] * 3) as edge:
        found: list[dict[str, Any]] = [{"token": "given"}, {"data": tmp_path}, {}]
        for options in found:
            async with AsyncClient(edge.url, **options) as asking:
                await asking.thread("thr_1")
        sent = [request.headers["authorization"] for request in edge.requests]
    assert sent == ["Bearer given", "Bearer from-the-folder", "Bearer from-the-environment"]


@pytest.mark.requirement("client.token")
@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ümlaut", "nul\0"])
async def test_a_token_that_fits_into_no_header_is_refused_unseen(token: str):
    with pytest.raises(TokenUnusable) as refused:
        Client("http://127.0.0.1:1", token=token)
    assert not token or token not in str(refused.value)


@pytest.mark.requirement("client.token")
@pytest.mark.parametrize(
    "url",
    [
        *("", "edge", "ftp://host", "http://", "http://[", "http://h:99999999"),
        *("http://user:secret@host", "http://host?token=secret", "http://host#secret"),
    ],
)
async def test_an_address_with_a_secret_or_without_a_host_is_refused(url: str):
    with pytest.raises(AddressInvalid) as refused:
        Client(url, token=TOKEN)
    assert "secret" not in str(refused.value)


async def test_ids_are_taken_literally():
    reply = Reply(404, problem(404, "unknown_run")[1])
    async with scripted_edge(reply) as edge, client(f"{edge.url}/behind/") as asking:
        with pytest.raises(EdgeProblem):
            await asking.cancel_run("../x?y#z:stop")
        assert edge.requests[0].line == "POST /behind/v1/runs/..%2Fx%3Fy%23z%3Astop:cancel HTTP/1.1"


@pytest.mark.requirement("client.extra")
@pytest.mark.parametrize("library", ["httpx", "websockets"])
async def test_without_its_libraries_the_client_names_the_extra(library: str):
    code = f"import sys; sys.modules['{library}'] = None; import factwire.client"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"needs {library}, which is not installed; install 'factwire[client]'" in done.stderr
