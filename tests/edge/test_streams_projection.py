"""The live state of a thread: a snapshot, then changes, the same bytes for everybody."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from bench.workload import facts
from factwire.facts import Fact, decode_fact
from factwire.facts.json_patch import JsonDocument
from factwire.journal import Cursor, FactBatch, Journal, open_journal
from factwire.projection import Projection
from factwire.serving.limits import PIECE_BYTES, UNSENT_BYTES
from factwire.serving.streams.live_projection import LiveProjection, LiveProjections
from tests.edge.streaming import WAIT, Served, message, serve_streams, until
from tests.edge.streaming_clients import Raw
from tests.edge.streaming_loops import on_both_loops
from tests.journal.contract import make_fact

FACTS = [decode_fact(line) for line in facts(240)]
THREAD = FACTS[0].thread_id or ""
PATH = f"/v1/threads/{THREAD}/projection/stream"


@asynccontextmanager
async def memory_streams() -> AsyncGenerator[tuple[Journal, Served]]:
    async with open_journal("memory:") as journal, serve_streams(journal) as served:
        yield journal, served


class Copy:
    """A state far away, brought along by what a stream sends."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self.document = JsonDocument({})
        self.cursor = ""
        self.kinds: list[str] = []
        self.texts: list[str] = []

    async def take(self) -> None:
        async with asyncio.timeout(WAIT):
            text = await self._client.recv()
        assert isinstance(text, str)
        messages: dict[str, Any] = json.loads(text)
        self.texts.append(text)
        self.kinds.append(messages["type"].removeprefix("projection."))
        assert messages["threadId"] == THREAD
        self.cursor = messages["cursor"]
        if self.kinds[-1] == "snapshot":
            self.document = JsonDocument(messages["state"])
        else:
            self.document.patch(messages["operations"])

    async def wait_for_seq(self, seq: int) -> None:
        while not self.cursor or Cursor.parse(self.cursor).seq < seq:
            await self.take()


def state_of(known: list[Fact]) -> Any:
    projection = Projection(THREAD)
    for fact in known:
        projection.replay(fact)
    return json.loads(projection.snapshot())


@pytest.mark.requirement("edge.stream.projection")
@on_both_loops
async def test_a_snapshot_and_its_changes_give_the_state_at_every_step():
    async with memory_streams() as (journal, served):
        await journal.append(FACTS[:40])
        async with served.socket(PATH) as client:
            copy = Copy(client)
            await copy.wait_for_seq(40)
            at = 40
            while at < len(FACTS):
                size = 1 + at % 7
                await journal.append([*FACTS[at : at + size], make_fact(at, "another thread")])
                at += size
                head = (await journal.head()).seq
                await copy.wait_for_seq(head)
                assert copy.document.root == state_of(FACTS[:at])
        assert copy.kinds[0] == "snapshot"
        assert set(copy.kinds[1:]) == {"delta"}


@pytest.mark.requirement("edge.stream.projection")
@on_both_loops
async def test_a_thread_is_opened_from_its_checkpoint_and_the_facts_since():
    async with memory_streams() as (journal, served):
        half = Projection(THREAD)
        half.apply_all(FACTS[:100])
        appended = await journal.append(FACTS[:100])
        await journal.save_snapshot(THREAD, appended.cursor, half.checkpoint())
        await journal.append(FACTS[100:150])
        async with served.socket(PATH) as client:
            copy = Copy(client)
            await copy.take()
            assert copy.document.root == state_of(FACTS[:150])
        await journal.save_snapshot(THREAD, appended.cursor, b"of another version")
    async with open_journal("memory:") as journal:
        appended = await journal.append(FACTS[:50])
        await journal.save_snapshot(THREAD, appended.cursor, b"of another version")
        async with serve_streams(journal) as served, served.socket(PATH) as client:
            copy = Copy(client)
            await copy.take()
            assert copy.document.root == state_of(FACTS[:50])


def arriving_late(monkeypatch: pytest.MonkeyPatch, journal: Journal, served: Served) -> None:
    """Have facts arrive before a thread is read, and again when all of it has been read."""
    read = journal.read

    async def read_late(*values: Any, **named: Any) -> AsyncGenerator[FactBatch]:
        await journal.append(FACTS[50:60])
        await served.feed.wait_for(60)
        async for batch in read(*values, **named):
            yield batch
        await journal.append(FACTS[60:70])
        await served.feed.wait_for(70)

    monkeypatch.setattr(journal, "read", read_late)


async def opened_under_writers(
    monkeypatch: pytest.MonkeyPatch, journal: Journal, served: Served
) -> Any:
    """The state that a viewer has who came while facts were written."""
    await journal.append(FACTS[:50])
    arriving_late(monkeypatch, journal, served)
    async with served.socket(PATH) as client:
        copy = Copy(client)
        await copy.wait_for_seq(70)
        await journal.append(FACTS[70:80])
        await copy.wait_for_seq(80)
    return copy.document.root


@pytest.mark.requirement("edge.stream.projection")
@on_both_loops
async def test_facts_that_arrive_while_a_thread_is_opened_are_neither_lost_nor_doubled(
    monkeypatch: pytest.MonkeyPatch,
):
    async with memory_streams() as (journal, served):
        state = await opened_under_writers(monkeypatch, journal, served)
    assert state == state_of(FACTS[:80])


@on_both_loops
async def test_without_what_came_meanwhile_the_state_is_another(monkeypatch: pytest.MonkeyPatch):
    take_early = LiveProjection._take_early

    async def forget_early(self: LiveProjection) -> None:
        self._early = deque()
        self.cursor = Cursor(self.cursor.epoch, 70)
        await take_early(self)

    monkeypatch.setattr(LiveProjection, "_take_early", forget_early)
    async with memory_streams() as (journal, served):
        state = await opened_under_writers(monkeypatch, journal, served)
    assert state != state_of(FACTS[:80])


@pytest.mark.requirement("edge.stream.projection-shared")
@on_both_loops
async def test_viewers_of_a_thread_are_sent_identical_bytes():
    async with memory_streams() as (journal, served):
        await journal.append(FACTS[:10])
        async with served.socket(PATH) as one, served.socket(PATH) as other:
            copies = [Copy(one), Copy(other)]
            for copy in copies:
                await copy.take()
            for start in range(10, 100, 10):
                await journal.append(FACTS[start : start + 10])
                for copy in copies:
                    await copy.wait_for_seq(start + 10)
            assert copies[0].texts == copies[1].texts
            assert served.streams.stats().watched_threads == 1


@pytest.mark.requirement("edge.stream.projection-resume")
@on_both_loops
async def test_a_viewer_that_was_cut_goes_on_with_the_changes_alone():
    async with memory_streams() as (journal, served):
        await journal.append(FACTS[:10])
        async with served.socket(PATH) as client:
            copy = Copy(client)
            await copy.take()
        for start in range(10, 200, 10):
            await journal.append(FACTS[start : start + 10])
            async with served.socket(PATH, cursor=copy.cursor) as client:
                copy._client = client
                await copy.wait_for_seq(start + 10)
            assert copy.document.root == state_of(FACTS[: start + 10])
        assert copy.kinds.count("snapshot") == 1


@pytest.mark.requirement("edge.stream.projection-resume")
@on_both_loops
async def test_where_the_changes_are_not_all_there_a_viewer_gets_a_new_snapshot(
    monkeypatch: pytest.MonkeyPatch,
):
    async with memory_streams() as (journal, served):
        monkeypatch.setattr(LiveProjection.__init__, "__kwdefaults__", {"ring": 4_000})
        epoch = (await journal.append(FACTS[:10])).epoch
        async with served.socket(PATH) as client:
            await Copy(client).take()
            await journal.append(FACTS[10:100])
            await journal.append(FACTS[100:110])
            await until(lambda: served.feed.cursor.seq == 110)
            places = [
                Cursor(epoch, 5),
                Cursor(epoch, 10),
                Cursor(epoch, 105),
                Cursor(epoch, 999),
                Cursor("0" * 16, 110),
            ]
            for place in places:
                async with served.socket(PATH, cursor=str(place)) as again:
                    copy = Copy(again)
                    await copy.take()
                    assert copy.kinds == ["snapshot"]
                    assert copy.document.root == state_of(FACTS[:110])
        async with served.socket(PATH, cursor="fw1.nonsense") as client:
            assert (await message(client))["payload"]["code"] == "cursor_invalid"


@pytest.mark.requirement("edge.stream.projection-resume")
@on_both_loops
async def test_a_thread_is_let_go_a_while_after_its_last_viewer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LiveProjections.__init__, "__kwdefaults__", {"linger": 0.01})
    async with memory_streams() as (journal, served):
        await journal.append(FACTS[:10])
        async with served.socket(PATH) as client:
            copy = Copy(client)
            await copy.take()
            assert served.streams.stats().watched_threads == 1
        await until(lambda: served.streams.stats().watched_threads == 0)
        await journal.append(FACTS[10:20])
        async with served.socket(PATH, cursor=copy.cursor) as client:
            again = Copy(client)
            await again.take()
        assert again.kinds == ["snapshot"]
        assert again.document.root == state_of(FACTS[:20])


@pytest.mark.requirement("edge.stream.projection")
@on_both_loops
async def test_a_big_snapshot_goes_out_in_parts_that_are_one_message():
    async with memory_streams() as (journal, served):
        text = "word " * (PIECE_BYTES // 4)
        payload = {"messageId": "m", "text": text}
        await journal.append(
            [make_fact(1, THREAD, turn_id="u", event_class="model.completed", payload=payload)]
        )
        for settings in ({}, {"ws": "websockets-sansio"}):
            async with (
                serve_streams(journal, settings=settings) as other,
                other.socket(PATH) as client,
            ):
                copy = Copy(client)
                await copy.take()
            assert len(copy.texts[0]) > PIECE_BYTES
        assert served.streams.stats().readers == 0


@pytest.mark.fault
@pytest.mark.requirement("edge.stream.projection-slow")
@on_both_loops
async def test_a_slow_viewer_is_closed_and_the_others_go_on():
    async with memory_streams() as (journal, served):
        await journal.append(FACTS[:1])
        lazy = await Raw.connect(served.port, PATH, room=4_096)
        async with served.socket(PATH) as client:
            copy = Copy(client)
            await copy.take()
            await until(lambda: served.streams.stats().readers == 2)
            lazy.transport.pause_reading()
            held = 0
            for number in range(400):
                payload = {"messageId": f"m{number}", "delta": "x" * 40_000}
                await journal.append([make_fact(number, THREAD, turn_id="u", payload=payload)])
                await copy.wait_for_seq(number + 2)
                held = max(held, served.streams.stats().held_bytes)
                if served.streams.stats().readers == 1:
                    break
            assert served.streams.stats().readers == 1
            assert held <= UNSENT_BYTES + PIECE_BYTES
        lazy.transport.abort()
