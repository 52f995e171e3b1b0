"""No request keeps the event loop to itself: what is much takes turns, what is long runs beside."""

import asyncio
import gc
import threading
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.workload import events
from factwire.edge.limits import INTAKE_TURN_BYTES, INTAKE_TURN_FACTS
from factwire.edge.operations import outside_facts, outside_intakes
from factwire.edge.records import Records
from factwire.edge.routes import thread_routes
from factwire.edge.startup import EdgeSettings, OpenEdge, serve
from factwire.evidence.pack_writer import PackWriter
from factwire.facts import Intake
from factwire.journal import open_journal
from factwire.journal.blobs import blob_store
from factwire.projection import Projection
from factwire.runtime import thread_states
from factwire.serving import http_server
from factwire.serving.http_server import FullCollections
from factwire.serving.limits import (
    PIECE_FACTS,
    REST_SECONDS,
    YOUNG_COLLECTIONS,
    YOUNG_COLLECTIONS_MOST,
)
from tests.edge.edges import TOKEN, RunningEdge, configuration_in, running_edge
from tests.edge.streaming import WAIT, serve_streams
from tests.edge.test_streams_projection import FACTS, PATH, Copy, state_of

THREADS = 5 * INTAKE_TURN_FACTS
OBJECTS_OF_A_THREAD = 45
"""Objects that a collection goes through for each thread of a request, at most."""

THREAD = FACTS[0].thread_id or ""


@asynccontextmanager
async def counted_turns() -> AsyncGenerator[Callable[[], int]]:
    """How often the event loop has turned."""
    loop, count = asyncio.get_running_loop(), 0

    def turn() -> None:
        nonlocal count, handle
        count += 1
        handle = loop.call_soon(turn)

    handle = loop.call_soon(turn)
    try:
        yield lambda: count
    finally:
        handle.cancel()


def _watch(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, note: Callable[[], None]
) -> None:
    """Note each call of a function."""
    work = getattr(owner, name)

    def noted(*values: Any, **named: Any) -> Any:
        note()
        return work(*values, **named)

    monkeypatch.setattr(owner, name, noted)


def _start_fact(thread_id: str) -> dict[str, Any]:
    [event] = events(1)
    return {**event, "id": f"evt-{thread_id}", "threadId": thread_id, "runtimeId": "outside"}


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.turns")
@pytest.mark.parametrize(
    ("owner", "name", "most"),
    [
        (outside_facts, "_ensure_foreign_thread", INTAKE_TURN_FACTS),
        (outside_intakes.OutsideIntakes, "_load", INTAKE_TURN_FACTS),
        (outside_intakes.ThreadTrial, "__init__", INTAKE_TURN_FACTS),
        (outside_intakes.ThreadTrial, "take", INTAKE_TURN_FACTS),
        (outside_intakes.ThreadTrial, "save", INTAKE_TURN_FACTS),
        (outside_intakes.ThreadTrial, "join", INTAKE_TURN_FACTS),
        (Records, "apply", PIECE_FACTS),
    ],
)
async def test_a_request_of_many_threads_takes_turns_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, most: int
):
    seen = Counter[int]()
    facts = [_start_fact(f"thread-{number}") for number in range(THREADS)]
    if name == "save":
        # A secret, so that something of each thread has to be on disk.
        facts = [{**fact, "payload": {"prompt": "password=abcdefgh12345678"}} for fact in facts]
    async with running_edge(tmp_path) as edge, counted_turns() as turns:

        def note() -> None:
            seen[turns()] += 1

        _watch(monkeypatch, owner, name, note)
        accepted = await edge.post("/v1/facts", {"facts": facts})
    assert accepted["accepted"] == THREADS <= seen.total()
    assert max(seen.values()) <= most


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.turns")
async def test_a_replay_lets_others_go_on_whenever_its_time_is_up(monkeypatch: pytest.MonkeyPatch):
    seen, whole = Counter[int](), state_of(FACTS)
    monkeypatch.setattr(thread_states, "REPLAY_SECONDS", 0.0)
    async with open_journal("memory:") as journal, counted_turns() as turns:
        await journal.append(FACTS)

        def note() -> None:
            seen[turns()] += 1

        _watch(monkeypatch, Projection, "replay", note)
        found = await thread_states.ThreadStates(journal).now(THREAD)
    assert msgspec.json.decode(found.projection.snapshot()) == whole
    assert (seen.total(), max(seen.values())) == (len(FACTS), 1)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.turns")
async def test_a_request_of_many_threads_leaves_little_to_the_garbage_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counts = list[int]()
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": [_start_fact("first")]})
        intakes = outside_intakes.OutsideIntakes
        for name in ("hold", "start_append"):
            _watch(monkeypatch, intakes, name, lambda: counts.append(len(gc.get_objects())))
        facts = [_start_fact(f"thread-{number}") for number in range(THREADS)]
        gc.collect()
        gc.disable()
        try:
            await edge.post("/v1/facts", {"facts": facts})
        finally:
            gc.enable()
    before, after = counts
    assert (after - before) / THREADS <= OBJECTS_OF_A_THREAD


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.turns")
async def test_what_a_process_needs_to_its_end_is_kept_out_of_garbage_collections(tmp_path: Path):
    frozen = list[int]()
    async with _serve_edge(tmp_path):
        frozen.append(gc.get_freeze_count())
    assert frozen[0] > gc.get_freeze_count()


@asynccontextmanager
async def _serve_edge(folder: Path) -> AsyncGenerator[None]:
    """A whole server in this process, as the command starts it."""
    configuration, listening = configuration_in(folder), asyncio.Event()
    settings = EdgeSettings(port=0, token=TOKEN)

    def note(edge: OpenEdge, address: str) -> None:
        del edge, address
        listening.set()

    workspace = Path(configuration.workspaces[0])
    serving = asyncio.ensure_future(serve(configuration, workspace, settings, note))
    await asyncio.wait_for(listening.wait(), WAIT)
    try:
        yield
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(serving, WAIT)


BUSY = REST_SECONDS / 2


@pytest.mark.requirement("edge.loop.collections")
@pytest.mark.parametrize(
    ("young_collections", "work", "is_due"),
    [
        pytest.param(YOUNG_COLLECTIONS, 0.0, True, id="at-rest"),
        pytest.param(YOUNG_COLLECTIONS - 1, 0.0, False, id="little-to-collect"),
        pytest.param(YOUNG_COLLECTIONS_MOST - 1, BUSY, False, id="at-work"),
        pytest.param(YOUNG_COLLECTIONS_MOST, BUSY, True, id="never-at-rest"),
    ],
)
def test_a_full_garbage_collection_waits_until_the_process_rests(
    young_collections: int, work: float, is_due: bool
):
    assert FullCollections(7.0).is_due(young_collections, 7.0 + work) is is_due


@pytest.mark.requirement("edge.loop.collections")
def test_full_garbage_collections_are_a_small_share_of_the_time():
    collections, processor, collected = FullCollections(0.0), 0.0, 0
    for _ in range(100):
        if collections.is_due(YOUNG_COLLECTIONS, processor):
            processor += REST_SECONDS
            collections.note_end(processor)
            collected += 1
    assert collected == 1


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.collections")
async def test_a_server_collects_old_garbage_at_rest_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Ring:
        me: Any

    monkeypatch.setattr(http_server, "REST_SECONDS", 0.01)
    is_resting = False

    def is_due(collections: FullCollections, young_collections: int, processor: float) -> bool:
        del collections, young_collections, processor
        return is_resting

    monkeypatch.setattr(FullCollections, "is_due", is_due)
    before = gc.get_threshold()
    async with _serve_edge(tmp_path):
        assert gc.get_threshold()[:2] == before[:2]
        ring = Ring()
        ring.me, left = ring, weakref.ref(ring)
        for generation in (0, 1, 1):
            gc.collect(generation)
        del ring
        kept = [[at] for at in range(20 * before[0] * before[1])]
        assert left() is not None
        del kept
        is_resting = True
        async with asyncio.timeout(WAIT):
            while left() is not None:  # noqa: ASYNC110 - a collection tells nobody
                await asyncio.sleep(0.01)
    assert gc.get_threshold() == before


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.turns")
async def test_the_end_of_an_append_is_looked_for_once_however_many_threads_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    looked = list[int]()

    class Counted(tuple[int, ...]):
        __slots__ = ()

        def __iter__(self) -> Any:
            looked.append(len(self))
            return super().__iter__()

    async with running_edge(tmp_path) as edge:
        append = edge.machine.journal.append

        async def append_counted(*values: Any, **named: Any) -> Any:
            done = await append(*values, **named)
            return msgspec.structs.replace(done, seqs=Counted(done.seqs))

        monkeypatch.setattr(edge.machine.journal, "append", append_counted)
        facts = [_start_fact(f"thread-{number}") for number in range(THREADS)]
        await edge.post("/v1/facts", {"facts": facts})
    assert len(looked) <= 3


async def _read_projection(edge: RunningEdge) -> None:
    await edge.get(f"/v1/threads/{THREAD}/projection")


async def _read_moment(edge: RunningEdge) -> None:
    await edge.get(f"/v1/threads/{THREAD}/projection", at=FACTS[200].id)


async def _read_model(edge: RunningEdge) -> None:
    await edge.get(f"/v1/threads/{THREAD}/read-model")


async def _read_items(edge: RunningEdge) -> None:
    [*_, item] = (await edge.get(f"/v1/threads/{THREAD}/items"))["items"]
    await edge.get(f"/v1/threads/{THREAD}/items/{item['itemId']}")


async def _view(edge: RunningEdge) -> None:
    headers = {"accept": "text/event-stream"}
    async with edge.http.stream("GET", PATH, headers=headers) as answer, asyncio.timeout(WAIT):
        await anext(answer.aiter_bytes())


async def _export(edge: RunningEdge) -> None:
    await edge.post("/v1/evidence", {"threadId": THREAD}, status=201)


async def _send_big_fact(edge: RunningEdge) -> None:
    fact = _start_fact("big") | {"payload": {"prompt": "word " * INTAKE_TURN_BYTES}}
    await edge.post("/v1/facts", {"facts": [fact]})


async def _collect_refs(edge: RunningEdge) -> None:
    """What a removal does once a blob is old enough."""
    async for _ in blob_store.find_referenced_blobs(edge.machine.journal):
        pass


BESIDE: list[tuple[str, Callable[[RunningEdge], Any], Any, str]] = [
    ("state", _read_projection, Projection, "snapshot"),
    ("moment", _read_moment, Projection, "snapshot"),
    ("anchor", _read_moment, Projection, "checkpoint"),
    ("checkpoint", _read_projection, Projection, "checkpoint"),
    ("read model", _read_model, thread_routes, "thread_read_model"),
    ("items", _read_items, thread_routes, "items_of"),
    ("view", _view, Projection, "snapshot"),
    ("facts of a pack", _export, PackWriter, "take"),
    ("end of the facts", _export, PackWriter, "end_facts"),
    ("end of a pack", _export, PackWriter, "finish"),
    ("big fact", _send_big_fact, Intake, "read"),
    ("refs", _collect_refs, blob_store, "find_refs"),
]
"""What is asked, and what must not be done for it in the thread of the event loop."""


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.beside")
@pytest.mark.parametrize(
    ("request_edge", "owner", "name"),
    [row[1:] for row in BESIDE],
    ids=[row[0] for row in BESIDE],
)
async def test_what_grows_with_a_thread_runs_beside_the_event_loop(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_edge: Callable[[RunningEdge], Any],
    owner: Any,
    name: str,
):
    # So that a short thread is as long as one that has checkpoints and anchors.
    monkeypatch.setattr(thread_states, "REPLAY_FACTS", 50)
    monkeypatch.setattr(thread_states, "ANCHOR_FACTS", 50)
    threads = set[int]()
    async with running_edge(tmp_path) as edge:
        await edge.machine.journal.append(FACTS)
        await edge.machine.wait_for_records(len(FACTS))
        _watch(monkeypatch, owner, name, lambda: threads.add(threading.get_ident()))
        await request_edge(edge)
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.asyncio
@pytest.mark.requirement("edge.loop.beside")
async def test_a_saved_state_is_restored_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    threads = set[int]()
    restore = Projection.restore

    def restore_noted(data: bytes) -> Projection:
        threads.add(threading.get_ident())
        return restore(data)

    monkeypatch.setattr(Projection, "restore", restore_noted)
    async with running_edge(tmp_path) as edge:
        done = await edge.machine.journal.append(FACTS)
        saved = Projection(THREAD)
        saved.apply_all(FACTS)
        await edge.machine.journal.save_snapshot(THREAD, done.cursor, saved.checkpoint())
        await edge.machine.wait_for_records(len(FACTS))
        await _read_projection(edge)
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.asyncio
@pytest.mark.requirement("edge.stream.projection")
async def test_what_comes_while_a_snapshot_is_made_follows_it_once_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
):
    begun, goes_on = threading.Event(), threading.Event()
    snapshot = Projection.snapshot

    def snapshot_slowly(projection: Projection) -> bytes:
        begun.set()
        assert goes_on.wait(WAIT)
        return snapshot(projection)

    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        await journal.append(FACTS[:100])
        async with served.socket(PATH) as first, served.socket(PATH) as second:
            early, late = Copy(first), Copy(second)
            await early.take()
            await late.take()
            await journal.append(FACTS[100:110])
            await early.wait_for_seq(110)
            monkeypatch.setattr(Projection, "snapshot", snapshot_slowly)
            async with served.socket(PATH) as third, served.socket(PATH) as fourth:
                assert await asyncio.to_thread(begun.wait, WAIT)
                for at in range(110, 200, 5):
                    await journal.append(FACTS[at : at + 5])
                    await served.feed.wait_for(at + 5)
                goes_on.set()
                copies = [early, late, Copy(third), Copy(fourth)]
                for copy in copies:
                    await copy.wait_for_seq(200)
                    assert copy.document.root == state_of(FACTS[:200])
                    assert copy.kinds.count("snapshot") == 1
                assert copies[2].texts == copies[3].texts


@pytest.mark.asyncio
@pytest.mark.requirement("edge.stream.projection")
async def test_a_fault_in_what_waited_for_a_snapshot_ends_the_views(
    monkeypatch: pytest.MonkeyPatch,
):
    begun, goes_on = threading.Event(), threading.Event()
    snapshot = Projection.snapshot

    def snapshot_slowly(projection: Projection) -> bytes:
        begun.set()
        assert goes_on.wait(WAIT)
        return snapshot(projection)

    def fail(*_: Any) -> Any:
        raise ArithmeticError("a fault of the reducer")

    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        await journal.append(FACTS[:100])
        monkeypatch.setattr(Projection, "snapshot", snapshot_slowly)
        failures = list[Any]()
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failures.append(context["exception"])
        )
        async with served.socket(PATH) as client:
            assert await asyncio.to_thread(begun.wait, WAIT)
            monkeypatch.setattr(Projection, "replay", fail)
            await journal.append(FACTS[100:101])
            await served.feed.wait_for(101)
            goes_on.set()
            async with asyncio.timeout(WAIT):
                await client.wait_closed()
            assert client.close_code == 1011
