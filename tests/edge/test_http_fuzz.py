"""R11 at the socket and at the decoder: whatever comes, an answer that is documented, no traceback,
and a process that goes on.
"""

import asyncio
import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from factwire.edge.operations import outside_facts
from factwire.edge.operations.outside_facts import SentFacts
from factwire.serving.asgi import Problem
from tests.edge.edges import TOKEN, WAIT_SECONDS, running_edge
from tests.edge.raw_http import answers_in, head
from tests.edge.served_edges import ServedEdge, served_edge
from tests.edge.things import outside_facts as sample_facts
from tests.trials import TRIAL_SECONDS, count_trials

INPUTS = count_trials(full=200_000, share=2_500)
AT_ONCE = 100
FACTS = 20_000
SECONDS = 0.2
DOCUMENTED = {
    *(200, 201, 202, 204, 206, 304),
    *(400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 414, 415, 421, 422, 426, 429, 431, 503),
}

JSON = "content-type: application/json"
HANDSHAKE = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "sec-websocket-protocol": "a",
    "sec-websocket-extensions": "b",
}
SEEDS: tuple[bytes, ...] = (
    head("GET", "/v1/health"),
    head("GET", "/v1/threads?limit=3"),
    head("GET", "/v1/threads/thr_1/items?cursor=x"),
    head("GET", "/v1/blobs/output:sha256:00"),
    head("GET", "/v1/facts?limit=1", "accept: application/json"),
    head("POST", "/v1/threads", JSON, "content-length: 13") + b'{"title":"x"}',
    head("POST", "/v1/threads", JSON, "transfer-encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    head("POST", "/v1/runs/run_1:cancel", JSON, "content-length: 0", "idempotency-key: k"),
    head("PATCH", "/v1/threads/thr_1", JSON, "content-length: 2", "expect: 100-continue") + b"{}",
    head("DELETE", "/v1/projects/prj_1"),
    head("OPTIONS", "/v1/threads", "origin: http://evil.example"),
    head("GET", "/v1/events", *(f"{name}: {HANDSHAKE[name]}" for name in list(HANDSHAKE)[:4])),
)  # fmt: skip
SPLICES: tuple[bytes, ...] = (
    b"\r\n",
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b" ",
    b":",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"content-length: 18446744073709551616\r\n",
    b"content-length: -1\r\n",
    b"content-length: 5\r\n",
    b"host: evil.example\r\n",
    b"upgrade: h2c\r\nconnection: upgrade\r\n",
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"http://127.0.0.1/v1/threads",
    b"*",
    b"../..",
    b"%2e%2e%2f",
    b"%00",
    b"%ff",
    b"?" * 50,
    b"ffffffffffffffff\r\n",
    b"GET / HTTP/1.1\r\n",
    b"x: " + b"y" * 3_000 + b"\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)


def mutate_request(chance: random.Random) -> bytes:
    """A request with a few things wrong."""
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.randint(1, 12))
        step = chance.randrange(6)
        if step == 0:
            data[at:at] = chance.choice(SPLICES)
        elif step == 1:
            del data[at:end]
        elif step == 2:
            data[at:end] = chance.randbytes(end - at)
        elif step == 3:
            data[at:at] = data[at:end] * chance.randint(1, 20)
        elif step == 4:
            data += chance.choice(SEEDS)
        else:
            line = data.find(b"\r\n") + 2
            data[line:line] = chance.choice(SPLICES)
    return bytes(data)


async def _send_data(address: tuple[str, int], data: bytes) -> list[int]:
    """The statuses that a connection gives; nothing more is sent, so its deadlines end it."""
    reader, writer = await asyncio.open_connection(*address)
    received = b""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            writer.write(data)
            while piece := await reader.read(65536):
                received += piece
                if b"HTTP/1.1 101 " in received or b"text/event-stream" in received:
                    break
    except TimeoutError:
        raise AssertionError(f"held open after {received!r} by {data!r}") from None
    except ConnectionError:
        # What came before the server hung up is an answer all the same.
        pass
    finally:
        writer.close()
    received = received.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    # What follows an upgrade is frames.
    before, _, _ = received.partition(b"HTTP/1.1 101 ")
    return [answer.status for answer in answers_in(before)]


async def _attack(edge: ServedEdge, count: int, seed: int) -> set[int]:
    chance = random.Random(seed)
    statuses: set[int] = set()

    async def one_after_the_other() -> None:
        for _ in range(count // AT_ONCE):
            data = mutate_request(chance)
            found = await _send_data(edge.address, data)
            assert set(found) <= DOCUMENTED, (found, data)
            statuses.update(found)

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
    return statuses


def _is_well(edge: ServedEdge) -> None:
    answer = httpx.get(
        f"{edge.url}/v1/threads", headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False
    )
    assert answer.status_code == 200
    assert edge.is_alive
    assert edge.failures() == []


@pytest.mark.asyncio
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("edge.http.malformed")
async def test_malformed_http_gets_documented_answers_and_leaves_no_trace(tmp_path: Path):
    with served_edge(tmp_path, seconds=SECONDS) as edge:
        statuses = await _attack(edge, INPUTS, seed=11)
        assert {200, 201, 400, 401, 404, 415, 421} <= statuses
        for name in HANDSHAKE:
            fields = (f"{each}: {value}" for each, value in {**HANDSHAKE, name: "\xf6"}.items())
            found = await _send_data(edge.address, head("GET", "/v1/events", *fields))
            assert found
            assert set(found) <= DOCUMENTED
        _is_well(edge)


WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**30, "", "x" * 300, "\x00", "\ud7ff", "unknown"),
    *([], {}, [None], {"": None}, [[[[]]]], {"threadId": "outside"}, "2026-13-45T99:99:99Z"),
    *("factwire-fact/v2", "../../etc/passwd", "sk-ant-" + "a" * 40, "data:text/html,x"),
)


CLASSES = ("run.status", "task.created", "artifact.created", "action.required", "model.delta")


def _wrong_fact(chance: random.Random, number: int) -> Any:
    """A fact with a few things wrong, at its top or in its payload."""
    fact: Any = msgspec.json.decode(msgspec.json.encode(sample_facts(f"thread-{number}")[0]))
    fact["id"] = f"fuzz-{number}"
    fact["eventClass"] = chance.choice(CLASSES)
    for _ in range(chance.randint(1, 3)):
        inside = type(fact.get("payload")) is dict and chance.random() < 0.3
        place: dict[str, Any] = fact["payload"] if inside else fact
        name = chance.choice([*place, "seq", "payload", "runId", "turnId", "traceId", "x"])
        if chance.random() < 0.2:
            place.pop(name, None)
        else:
            place[name] = deepcopy(chance.choice(WRONG))
    return chance.choice(WRONG) if chance.random() < 0.01 else fact


@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.requirement("edge.http.facts")
async def test_mutated_facts_are_taken_whole_or_refused_by_name(tmp_path: Path):
    chance = random.Random(7)
    refusals: dict[str, int] = {}
    async with running_edge(tmp_path) as edge:
        before = (await edge.machine.journal.head()).seq
        taken = 0
        for start in range(0, FACTS, 2):
            wrong = [_wrong_fact(chance, start + index) for index in range(2)]
            sent = SentFacts.of_lines("\n".join(map(json.dumps, wrong)).encode(), f"req-{start}")
            try:
                taken += (await outside_facts.take_facts(edge.machine, sent)).accepted
            except Problem as problem:
                refusals[problem.code] = problem.status
        after = await edge.get("/v1/facts", limit=1)
        assert after["items"]
        assert (await edge.machine.journal.head()).seq >= before + taken
    assert refusals["invalid_facts"] == 422
    assert all(400 <= status < 500 for status in refusals.values()), refusals
    assert taken
