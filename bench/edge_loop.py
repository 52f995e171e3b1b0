"""How long anything that is asked of an Edge holds its event loop, against the idle loop.

    python -m bench loop

The Edge is the command itself with one more task in its loop, which wakes every two milliseconds
and notes the longest time between two beats: by the clock, and as processor time of the loop's own
thread. The second is what the Edge answers for; the first has the waiting of a busy machine in it.
Both are written to a file that this process maps. A history of a long thread and a million facts is
written to the journal before the Edge starts.
"""

import asyncio
import mmap
import os
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from bench.edge_path import TOKEN, Target, start_edge
from bench.measure import Row
from bench.workload import events
from factwire.cli import main
from factwire.journal import open_journal
from factwire.journal.chunks import decode_line
from factwire.serving import http_server

BEAT_SECONDS: Final = 0.002
GOAL_MILLISECONDS: Final = 100
LONG_THREAD: Final = 200_000
HISTORY: Final = 1_000_000
BATCH: Final = 5_000
VARIABLE: Final = "BENCH_HEARTBEAT"
"""Where the child finds the file for its beats."""

_GAPS: Final = struct.Struct("dd")
_CHILD: Final = "from bench.edge_loop import serve_with_heartbeat; serve_with_heartbeat()"


def serve_with_heartbeat() -> None:
    """The command, with a heartbeat in the loop of the server."""
    serve = http_server.run

    async def serve_and_beat(work: Coroutine[Any, Any, None]) -> None:
        beating = asyncio.create_task(_beat())
        try:
            await work
        finally:
            beating.cancel()

    http_server.run = lambda work: serve(serve_and_beat(work))
    main()


async def _beat() -> None:
    with _map_gaps(Path(os.environ[VARIABLE])) as gaps:
        while True:
            wall, processor = time.perf_counter(), time.thread_time()
            await asyncio.sleep(BEAT_SECONDS)
            longest = _GAPS.unpack_from(gaps)
            found = (
                1_000 * (time.perf_counter() - wall - BEAT_SECONDS),
                1_000 * (time.thread_time() - processor),
            )
            if found[0] > longest[0] or found[1] > longest[1]:
                _GAPS.pack_into(gaps, 0, *map(max, found, longest))


def _map_gaps(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


class Heartbeat:
    """The longest gaps of a loop since the last look, in milliseconds."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_GAPS.size))
        self._gaps = _map_gaps(path)

    def take(self) -> tuple[float, float]:
        found = _GAPS.unpack_from(self._gaps)
        _GAPS.pack_into(self._gaps, 0, 0.0, 0.0)
        return found

    def close(self) -> None:
        self._gaps.close()


async def _write_history(url: str, total: int = HISTORY) -> None:
    """One long thread, and others of a thousand facts each until there are enough."""
    template = [decode_line(msgspec.json.encode(event)) for event in events(LONG_THREAD)]
    short = template[:1_000]
    async with open_journal(url) as journal:
        for at in range(0, LONG_THREAD, BATCH):
            await journal.append(template[at : at + BATCH])
        for number in range((total - LONG_THREAD) // len(short)):
            thread = f"thr_history_{number}"
            await journal.append(
                [
                    msgspec.structs.replace(fact, id=f"{fact.id}-{number}", thread_id=thread)
                    for fact in short
                ]
            )


def _deltas(count: int, thread: str, text: str) -> list[dict[str, Any]]:
    [event] = events(1)
    start = {**event, "id": f"{thread}-0", "threadId": thread, "runtimeId": "bench"}
    shared = {**start, "eventClass": "model.delta", "title": "delta", "kind": "model"}
    return [start] + [
        {
            **shared,
            "id": f"{thread}-{number}",
            "sequence": number + 1,
            "payload": {"messageId": "m", "delta": text},
        }
        for number in range(1, count)
    ]


class Scenes:
    """What is asked of an Edge; each scene is one coroutine."""

    def __init__(self, target: Target, client: httpx.AsyncClient, thread: str) -> None:
        self._target = target
        self._client = client
        self._thread = thread

    async def _post(self, facts: list[dict[str, Any]]) -> None:
        body = msgspec.json.encode({"facts": facts})
        headers = {"content-type": "application/json"}
        answer = await self._client.post("/v1/facts", content=body, headers=headers)
        assert answer.status_code == 200, answer.text[:500]

    async def _get(self, path: str) -> Any:
        answer = await self._client.get(path)
        assert answer.status_code == 200, answer.text[:500]
        return answer.json()

    async def idle(self) -> None:
        await asyncio.sleep(2)

    async def suspicious_deltas(self) -> None:
        await self._post(_deltas(10_000, "thr_suspicious", "pass"))

    async def one_big_fact(self) -> None:
        await self._post(_deltas(2, "thr_big", "the agent says that " * 390_000)[1:])

    async def one_deep_fact(self) -> None:
        """As many values as fit into a body."""
        [start, fact] = _deltas(2, "thr_deep", "x")
        values = [{"name": "value", "number": number} for number in range(180_000)]
        await self._post([start, {**fact, "eventClass": "run.status", "payload": {"all": values}}])

    async def many_threads(self) -> None:
        facts = [fact for at in range(5_000) for fact in _deltas(1, f"thr_many_{at}", "x")]
        await self._post(facts)

    async def many_facts(self) -> None:
        facts = [
            {**event, "id": f"{event['id']}m", "threadId": "thr_facts", "runtimeId": "bench"}
            for event in events(10_000)
        ]
        await self._post(facts)

    async def viewers(self) -> None:
        path = f"/v1/threads/{self._thread}/projection/stream"
        await asyncio.gather(*(self._read_stream(path, 1_000_000) for _ in range(20)))

    async def projection(self) -> None:
        await self._get(f"/v1/threads/{self._thread}/projection")

    async def moments(self) -> None:
        made = events(LONG_THREAD)
        for part in (0.2, 0.9, 0.5):
            fact_id = made[int(part * LONG_THREAD)]["id"]
            await self._get(f"/v1/threads/{self._thread}/projection?at={fact_id}")

    async def read_model(self) -> None:
        await self._get(f"/v1/threads/{self._thread}/read-model")

    async def items(self) -> None:
        await self._get(f"/v1/threads/{self._thread}/items?limit=500")

    async def evidence(self) -> None:
        body = {"threadId": self._thread}
        answer = await self._client.post("/v1/evidence", json=body)
        assert answer.status_code == 201, answer.text[:500]

    async def search(self) -> None:
        await self._get("/v1/threads?search=decides")

    async def lists(self) -> None:
        for name in ("threads", "runs", "approvals", "artifacts", "tasks"):
            page = await self._get(f"/v1/{name}?limit=500")
            if page.get("next"):
                await self._get(f"/v1/{name}?limit=500&cursor={page['next']}")

    async def pages(self) -> None:
        await self._get("/v1/facts?limit=1000")
        await self._get("/v1/events?limit=1000")
        await self._get(f"/v1/events?limit=1000&threadId={self._thread}&types=artifact")

    async def catch_up(self) -> None:
        await self._read_stream("/v1/facts", HISTORY * 400)

    async def catch_up_events(self) -> None:
        await self._read_stream("/v1/events?view=conversation", 50_000_000)

    async def retention(self) -> None:
        body = {"keepFacts": HISTORY // 2, "compact": True}
        answer = await self._client.post("/v1/retention/runs", json=body)
        assert answer.status_code == 200, answer.text[:500]

    async def _read_stream(self, path: str, size: int) -> None:
        """Read server-sent events until there were so many bytes, or nothing came for a while."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target.ports[1])
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        done = 0
        try:
            while done < size:
                async with asyncio.timeout(20):
                    part = await reader.read(1 << 20)
                if not part:
                    return
                done += len(part)
        except TimeoutError:
            return
        finally:
            writer.close()


SCENES: Final[dict[str, Callable[[Scenes], Awaitable[None]]]] = {
    "nothing": Scenes.idle,
    "10,000 short suspicious deltas in one request": Scenes.suspicious_deltas,
    "10,000 facts of turns in one request": Scenes.many_facts,
    "a fact of 7.8 MB": Scenes.one_big_fact,
    "a fact of 180,000 objects": Scenes.one_deep_fact,
    "5,000 threads in one request": Scenes.many_threads,
    "20 viewers of a thread of 200,000 facts": Scenes.viewers,
    "the state of that thread": Scenes.projection,
    "its state at three moments": Scenes.moments,
    "its read model": Scenes.read_model,
    "its items": Scenes.items,
    "its evidence pack": Scenes.evidence,
    "a search of the threads": Scenes.search,
    "all lists": Scenes.lists,
    "pages of facts and events": Scenes.pages,
    "a reader that catches up with a million facts": Scenes.catch_up,
    "a reader that catches up with events": Scenes.catch_up_events,
    "a removal of half the facts": Scenes.retention,
}
"""What is asked, in order; the last one takes the history away."""


async def _measure(target: Target, heartbeat: Heartbeat) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    thread = events(1)[0]["threadId"]
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{target.ports[0]}",
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=600,
        trust_env=False,
    ) as client:
        scenes = Scenes(target, client, thread)
        await scenes.idle()
        for name, scene in SCENES.items():
            heartbeat.take()
            await scene(scenes)
            found[name] = heartbeat.take()
    return found


def rows() -> list[Row]:
    """All rows of the group."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_write_history(f"sqlite:{folder}/edge.db"))
        beats = Path(folder, "heartbeat")
        heartbeat = Heartbeat(beats)
        with start_edge(folder, _CHILD, {VARIABLE: str(beats)}) as target:
            found = asyncio.run(_measure(target, heartbeat))
        heartbeat.close()
    return list(_list_rows(found))


def _list_rows(found: dict[str, tuple[float, float]]) -> Iterator[Row]:
    idle = found["nothing"]
    for name, gaps in found.items():
        for at, kind in enumerate(("by the clock", "of its processor")):
            yield Row(
                name=f"longest hold, {name}, {kind}",
                value=gaps[at],
                unit="ms",
                ratio=gaps[at] / idle[at] if idle[at] else None,
                baseline="the idle loop",
                goal=f"≤ {GOAL_MILLISECONDS} ms" if at else "",
            )


if __name__ == "__main__":
    from bench.measure import show

    show("Edge: how long the event loop is held", rows())
