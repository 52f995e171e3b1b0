"""What an Edge keeps of what its Hub sent: ids for ever, answers within bounds."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from factwire.edge import link_store
from factwire.edge.limits import LINK_ANSWERS_SECONDS
from factwire.edge.link_store import LINK_FILE, LinkStore, StoredFrame
from tests.hub.hubs import SteppedClock

pytestmark = pytest.mark.asyncio

REQUEST = StoredFrame(type="relay.command.created", payload=b"")
LASTING = StoredFrame(type="relay.command.acknowledged", payload=b"{}")


def answer_of(size: int) -> StoredFrame:
    return StoredFrame(type=LASTING.type, payload=b"x" * size)


async def add_answer(store: LinkStore, delivery_id: str, size: int) -> None:
    await store.add_delivery(delivery_id, REQUEST, request=b"digest")
    await store.finish_delivery(delivery_id, LASTING, answer=answer_of(size))


async def read_replies(store: LinkStore, count: int) -> list[StoredFrame | None]:
    found = [await store.find_delivery(f"dlv_{number}") for number in range(count)]
    assert all(each is not None and each.request == b"digest" for each in found)
    return [None if each is None else each.reply for each in found]


@pytest.mark.requirement("link.answers-bounded")
async def test_of_answers_the_newest_are_kept_and_of_all_others_what_came_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(link_store, "LINK_ANSWERS_BYTES", 5_000)
    clock = SteppedClock()
    async with LinkStore(tmp_path, clock=clock) as store:
        for number in range(20):
            clock.advance(1)
            await add_answer(store, f"dlv_{number}", 1_000)
        expected = [LASTING] * 17 + [answer_of(1_000)] * 3
        assert await read_replies(store, 20) == expected
    async with LinkStore(tmp_path, clock=clock) as store:
        assert await read_replies(store, 20) == expected


@pytest.mark.requirement("link.answers-bounded")
async def test_an_answer_is_kept_for_a_time(tmp_path: Path):
    clock = SteppedClock()
    async with LinkStore(tmp_path, clock=clock) as store:
        await add_answer(store, "dlv_0", 10)
        clock.advance(LINK_ANSWERS_SECONDS - 1)
        await add_answer(store, "dlv_1", 10)
        assert await read_replies(store, 2) == [answer_of(10)] * 2
        clock.advance(1)
        await add_answer(store, "dlv_2", 10)
        assert await read_replies(store, 3) == [LASTING, answer_of(10), answer_of(10)]
    clock.advance(LINK_ANSWERS_SECONDS)
    async with LinkStore(tmp_path, clock=clock) as store:
        assert await read_replies(store, 3) == [LASTING] * 3


@pytest.mark.requirement("link.answers-bounded")
async def test_a_file_does_not_grow_with_what_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(link_store, "LINK_ANSWERS_BYTES", 100_000)

    def count_pages() -> int:
        connection: Any = apsw.Connection(str(tmp_path / LINK_FILE))
        with closing(connection) as database:
            return int(database.pragma("page_count"))

    async with LinkStore(tmp_path) as store:
        for number in range(20):
            await add_answer(store, f"dlv_{number}", 20_000)
    before = count_pages()
    async with LinkStore(tmp_path) as store:
        for number in range(20, 60):
            await add_answer(store, f"dlv_{number}", 20_000)
    assert count_pages() <= before + 2


@pytest.mark.requirement("link.answers-bounded")
async def test_a_file_of_the_version_before_is_read(tmp_path: Path):
    connection: Any = apsw.Connection(str(tmp_path / LINK_FILE))
    with closing(connection) as database:
        database.execute(link_store._MIGRATIONS[0])
        database.execute(
            "INSERT INTO deliveries VALUES('dlv_old', 'agent.cancel', NULL, NULL, ?)",
            (b'{"type":"delivery.ack","payload":"e30="}',),
        )
    for _ in range(2):
        async with LinkStore(tmp_path) as store:
            found = await store.find_delivery("dlv_old")
            assert found is not None
            assert found.reply == StoredFrame(type="delivery.ack", payload=b"{}")
