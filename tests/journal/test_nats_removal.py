"""Retention and compaction on a stream, held against the journal in memory."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factwire.facts.fact import Fact
from factwire.journal import (
    CompactionPolicy,
    CursorExpired,
    Filter,
    Journal,
    RetentionPolicy,
    open_journal,
)
from factwire.journal.memory_journal import MemoryJournal
from factwire.journal.nats import NatsJournal, retention
from factwire.journal.nats.journal import OtherProcesses
from factwire.journal.nats.stream_log import API
from factwire.journal.nats.stream_view import StreamView
from tests.journal.contract import WAIT, close_after, collect, make_fact, take
from tests.journal.nats_server import NatsServer, nats_server

__all__ = ["nats_server"]

THREADS = ["a", "b", None]
CLASSES = ["model.delta", "model.delta", "model.completed", "turn.completed", "action.required"]


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    text: dict[str, Any] = {"messageId": draw(st.sampled_from(["m", "n"])), "text": "whole"}
    return make_fact(
        draw(st.integers(0, 80)),
        draw(st.sampled_from(THREADS)),
        event_class=draw(st.sampled_from(CLASSES)),
        turn_id=draw(st.sampled_from(["u", "v"])),
        action_id=draw(st.sampled_from([None, None, "x"])),
        payload=text,
    )


STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(facts(), min_size=1, max_size=12)),
    st.tuples(st.just("append"), st.lists(facts(), min_size=1, max_size=12)),
    st.tuples(
        st.just("retain"),
        st.builds(
            RetentionPolicy,
            keep_facts=st.one_of(st.none(), st.integers(1, 20)),
            keep_per_thread=st.one_of(st.none(), st.integers(1, 10)),
            max_age=st.one_of(st.none(), st.integers(1, 30)),
        ),
    ),
    st.tuples(st.just("compact"), st.builds(CompactionPolicy, spare=st.integers(0, 5))),
    st.tuples(st.just("reopen"), st.none()),
)


async def act(journal: Journal, step: tuple[str, Any]) -> Any:
    kind, what = step
    try:
        if kind == "append":
            answer = await journal.append(what)
            return answer.seqs, answer.sequences, answer.repeated
        if kind == "retain":
            removal = await journal.retain(what)
        else:
            removal = await journal.compact(what)
    except Exception as error:  # noqa: BLE001 - the two must fail alike
        return type(error)
    return removal.removed, removal.freed, removal.floor.seq, removal.held_by


async def observe_journal(journal: Journal) -> Any:
    """Everything that can be seen of a journal, without its epoch."""
    head = await journal.head()
    stats = await journal.stats()
    whole = [(each.first, each.last, each.seqs, each.data) async for each in journal.read()]
    of_a = [row async for each in journal.read(filter=Filter(thread="a")) for row in each.seqs]
    done = [
        row async for each in journal.read(filter=Filter(classes=("model",))) for row in each.seqs
    ]
    page = await journal.threads()
    counted = (stats.facts, stats.floor.seq, stats.threads, head.seq)
    return (
        counted,
        [tuple(each[2]) for each in whole],
        b"".join(each[3] for each in whole),
        of_a,
        done,
        page.threads,
    )


async def compare(url: str, steps: list[tuple[str, Any]]) -> None:
    journal = open_journal(url)
    await journal.__aenter__()
    async with MemoryJournal() as model, NatsJournal(url) as beside:
        for step in steps:
            if step[0] == "reopen":
                await journal.__aexit__(None, None, None)
                journal = open_journal(url)
                await journal.__aenter__()
            else:
                assert await act(journal, step) == await act(model, step)
            assert await observe_journal(journal) == await observe_journal(model)
        assert await observe_journal(beside) == await observe_journal(model)
        for each in (journal, beside):
            report = await each.verify()
            assert report.damage is None
            assert report.facts == (await model.stats()).facts
    await journal.__aexit__(None, None, None)


@pytest.mark.requirement("journal.nats.removal")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, max_size=12))
def test_removal_leaves_what_it_leaves_in_memory(
    nats_server: NatsServer, steps: list[tuple[str, Any]]
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("factwire.journal.nats.journal.ASK_OTHERS", 0.01)
        asyncio.run(compare(nats_server.url(), steps))


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.removal")
async def test_a_removed_fact_is_a_repeat_for_ever_and_its_messages_are_gone(
    nats_server: NatsServer,
):
    url = nats_server.url()
    batch = [make_fact(number, payload={"text": "x" * 500}) for number in range(200)]
    async with NatsJournal(url) as journal:
        for fact in batch:
            await journal.append([fact])
        before = await stream_bytes(journal)
        removal = await journal.retain(RetentionPolicy(keep_facts=10))
        assert (removal.removed, removal.floor.seq) == (190, 190)
        assert await stream_bytes(journal) < before / 2
    async with NatsJournal(url) as journal:
        again = await journal.append(batch)
        assert again.seqs == tuple(range(1, 201))
        assert all(again.repeated)
        assert (await journal.verify()).ok


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.holds")
async def test_a_follower_in_another_process_holds_retention_back(nats_server: NatsServer):
    url = nats_server.url()
    async with NatsJournal(url) as here, NatsJournal(url) as elsewhere:
        await here.append([make_fact(number) for number in range(10)])
        async with close_after(elsewhere.follow()) as batches, asyncio.timeout(WAIT):
            opened = asyncio.ensure_future(anext(batches))
            await opened
            await here.append([make_fact(number) for number in range(10, 20)])
            removal = await here.retain(RetentionPolicy(keep_facts=1))
            assert removal.floor.seq == 10
            assert removal.held_by == ("reader follow-1 of process 1",)
            assert (await anext(batches)).last == 20


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.holds")
async def test_a_reader_that_nobody_asked_is_refused_and_gets_no_hole(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    async def silence(*_: object) -> dict[str, int]:
        return {}

    monkeypatch.setattr(OtherProcesses, "positions", silence)
    url = nats_server.url()
    async with NatsJournal(url) as here, NatsJournal(url) as elsewhere:
        for number in range(200):
            await here.append([make_fact(number)])
        async with close_after(elsewhere.read()) as batches, asyncio.timeout(WAIT):
            await anext(batches)
            await here.retain(RetentionPolicy(keep_facts=1))
            await elsewhere.head()
            with pytest.raises(CursorExpired):
                [batch async for batch in batches]


async def stream_bytes(journal: NatsJournal) -> int:
    info = await journal._require_open().mirror.log.info()
    assert info is not None
    return int(info["state"]["bytes"])


async def segments_of(journal: NatsJournal) -> int:
    return len(journal._require_open().mirror.state.directory)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.merged")
async def test_compaction_merges_what_was_written_fact_by_fact(nats_server: NatsServer):
    url = nats_server.url()
    async with NatsJournal(url) as journal, NatsJournal(url) as beside:
        for number in range(200):
            await journal.append([make_fact(number, f"t{number % 3}")])
        before = await collect(journal.read())
        lines = [line async for part in journal.read() for line in part.lines()]
        threads = (await journal.threads()).threads
        one = Filter(thread="t1")
        of_one = await collect(journal.read(filter=one))
        async with close_after(beside.follow(filter=one)) as batches:
            assert await take(batches, 1) == of_one[:1]
            await journal.compact()
            assert await segments_of(journal) <= 2
            await journal.append([make_fact("new", "t1")])
            rest = await take(batches, len(of_one))
            assert rest == [*of_one[1:], (201, "fact-new")]
        info = await journal._require_open().mirror.log.info()
        assert info is not None
        assert info["state"]["messages"] < 10
        assert (await journal.verify()).ok
        assert (await beside.verify()).ok
    async with NatsJournal(url) as journal:
        assert (await collect(journal.read()))[:200] == before
        assert [line async for part in journal.read() for line in part.lines()][:200] == lines
        assert await collect(journal.read(filter=one)) == [*of_one, (201, "fact-new")]
        found = {row.thread_id: row for row in (await journal.threads()).threads}
        assert [found[row.thread_id] for row in threads if row.thread_id != "t1"] == [
            row for row in threads if row.thread_id != "t1"
        ]
        assert (await journal.append([make_fact(7, "t1")])).repeated == (True,)
        assert (await journal.verify()).ok


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.merged")
async def test_a_merge_that_was_cut_short_leaves_the_journal_whole(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    url = nats_server.url()

    async def abort_merge(*_: object) -> None:
        raise ConnectionAbortedError

    async with NatsJournal(url) as journal:
        for number in range(40):
            await journal.append([make_fact(number)])
        before = await collect(journal.read())
        with monkeypatch.context() as patch:
            patch.setattr(retention, "_delete_replaced", abort_merge)
            with pytest.raises(ConnectionAbortedError):
                await journal.compact()
    async with NatsJournal(url) as journal:
        assert await collect(journal.read()) == before
        assert (await journal.verify()).ok
        assert (await journal.append([make_fact(40)])).seqs == (41,)
        threads = (await journal.threads()).threads
        assert [(row.thread_id, row.fact_count) for row in threads] == [("t", 41)]


CUTS: dict[str, RetentionPolicy | CompactionPolicy] = {
    "all before": RetentionPolicy(keep_facts=20),
    "one thread": RetentionPolicy(threads={"gone": 1_000}),
    "superseded": CompactionPolicy(spare=0),
}


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.removal")
@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("has_checkpoint", [False, True])
async def test_what_a_removal_that_was_cut_short_left_goes_with_the_next(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch, name: str, *, has_checkpoint: bool
):
    """A process ends before it has deleted anything of what it replaced. After the next removal,
    the stream holds nothing but what the journal consists of.
    """

    async def remove(journal: NatsJournal) -> None:
        policy = CUTS[name]
        if isinstance(policy, RetentionPolicy):
            await journal.retain(policy)
        else:
            await journal.compact(policy)

    async def end_process(mirror: StreamView) -> None:
        if mirror.state.replaced_chunks:
            raise ConnectionAbortedError

    url = nats_server.url()
    async with NatsJournal(url) as journal:
        for number in range(60):
            await journal.append([make_delta(number, "gone"), make_delta(number, "kept")])
        for _ in range(2):
            await journal.save_snapshot("gone", await journal.head(), b"state", kind="view")
        await journal.append([make_delta(60, "gone", event_class="model.completed")])
        with monkeypatch.context() as patch:
            patch.setattr(retention, "_delete_replaced", end_process)
            with pytest.raises(ConnectionAbortedError):
                await remove(journal)
        whole = await collect(journal.read())
        if has_checkpoint:
            await journal._require_open().checkpoint.save()
    async with NatsJournal(url) as journal:
        assert await collect(journal.read()) == whole
        await remove(journal)
        assert (await journal.verify()).ok
        state = journal._require_open().mirror.state
        held = await count_messages(journal)
        assert held["chunk"] + held["kept"] == len(state.directory.places())
        assert held["snapshot"] == sum(map(len, state.snapshots.values()))


def make_delta(number: int, thread: str, event_class: str = "model.delta") -> Fact:
    return make_fact(
        f"{thread}-{number}",
        thread,
        event_class=event_class,
        turn_id="u",
        message_id="m",
        payload={"text": "whole", "delta": "part"},
    )


async def count_messages(journal: NatsJournal) -> Counter[str]:
    """How many messages of each kind the stream holds."""
    opened = journal._require_open()
    path = f"{API}.STREAM.INFO.{opened.mirror.log.stream}"
    info = await opened.link.ask(path, {"subjects_filter": ">"})
    subjects: dict[str, int] = info["state"]["subjects"]
    return Counter({name.rpartition(".")[2]: count for name, count in subjects.items()})
