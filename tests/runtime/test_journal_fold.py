"""What is gathered from a whole journal is saved, and read on from where that was."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from factwire.facts import Fact
from factwire.journal import Cursor, Filter, Journal, open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import FactScope, Mint, Runtime
from factwire.runtime.recovery import WaitingTurns
from factwire.runtime.thread_states import JournalFold

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("runtime.threads.start")]

MINT = Mint("factwire")


def queue(thread: str, turn: str, **payload: Any) -> Fact:
    scope = FactScope(thread_id=thread, session_id="ses")
    return MINT.fact(scope, "queue.changed", payload, queued_turn_id=turn)


def other(thread: str, event_class: str = "model.delta", **ids: Any) -> Fact:
    scope = FactScope(thread_id=thread, session_id="ses", turn_id=ids.pop("turn", None))
    return MINT.fact(scope, event_class, {"delta": "a"}, **ids)


@pytest_asyncio.fixture
async def journal(tmp_path: Path) -> AsyncGenerator[Journal]:
    async with open_journal(f"sqlite:{tmp_path}/j.db") as opened:
        yield opened


async def refresh(journal: Journal) -> WaitingTurns:
    turns = WaitingTurns()
    await JournalFold(journal, "queues", WaitingTurns.CLASSES, turns).refresh()
    return turns


async def test_a_fold_that_was_saved_goes_on_like_one_that_reads_everything(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.runtime.thread_states.FOLD_SAVE_FACTS", 2)
    await journal.append([queue("a", "one", change="queued"), queue("b", "two", change="queued")])
    assert list((await refresh(journal)).waiting) == [("a", "one"), ("b", "two")]
    await journal.append([queue("a", "one", change="removed"), other("b")])
    saved = await journal.snapshot("factwire.runtime", kind="queues")
    assert saved is not None
    read_from: list[Cursor | str | None] = []
    read = journal.read

    def watch(after: Cursor | str | None = None, **named: Any) -> Any:
        read_from.append(after)
        return read(after, **named)

    monkeypatch.setattr(journal, "read", watch)
    assert list((await refresh(journal)).waiting) == [("b", "two")]
    await journal.append([other("b", "turn.submitted", turn="two")])
    assert not (await refresh(journal)).waiting
    assert None not in read_from


async def test_a_runtime_saves_while_it_works_what_its_next_start_would_read(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("factwire.runtime.thread_states.FOLD_SAVE_FACTS", 2)
    monkeypatch.setattr("factwire.runtime.recovery.FOLD_SECONDS", 0)
    async with Runtime(journal, MemoryBlobs(), {}, workspace=Path()):
        written = await journal.append([queue("a", "one", change="queued"), other("b")])
        async with asyncio.timeout(60):
            while True:
                saved = await journal.snapshot("factwire.runtime", kind="queues")
                if saved is not None and saved.cursor == written.cursor:
                    break


async def test_a_fold_of_another_version_is_read_anew(journal: Journal):
    result = await journal.append([queue("a", "one", change="queued")])
    await journal.save_snapshot("factwire.runtime", result.cursor, b'{"of": "old"}', kind="queues")
    assert list((await refresh(journal)).waiting) == [("a", "one")]


async def test_a_thread_is_read_between_its_first_and_its_last_fact(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    from factwire.journal.sqlite import indexes

    loaded: Counter[int] = Counter()
    load = indexes.load_segment

    def count(connection: Any, first: int) -> Any:
        loaded[first] += 1
        return load(connection, first)

    monkeypatch.setattr(indexes, "load_segment", count)
    for number in range(200):
        await journal.append([other(f"thread-{number}") for _ in range(200)])
    monkeypatch.setattr(indexes, "CACHED", 0)
    loaded.clear()
    wanted = Filter(thread="thread-7")
    found = [seq async for batch in journal.read(filter=wanted) for seq in batch.seqs]
    assert found == list(range(1_401, 1_601))
    assert sum(loaded.values()) <= 2
    nothing = [
        seq async for batch in journal.read(filter=Filter(thread="no")) for seq in batch.seqs
    ]
    assert nothing == []
