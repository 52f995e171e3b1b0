"""What is particular to the backend on JetStream: processes, acks, messages, checkpoints."""

import asyncio
import json
import sys
import warnings
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from factwire.facts.fact import Fact
from factwire.journal import (
    Cursor,
    CursorUnknownEpoch,
    Damage,
    Filter,
    JournalCorrupt,
    JournalError,
    JournalUnavailable,
    JournalUnwritable,
    JournalUrlError,
    SequenceConflict,
    open_journal,
)
from factwire.journal.nats import NatsJournal, stream_log, stream_view
from factwire.journal.nats.journal_state import FingerprintTable, StreamState, compute_fingerprints
from factwire.journal.nats.server_connection import DurabilityWarning, Lost, parse_address
from factwire.journal.nats.stream_log import API, ItemBody, SavedSnapshot
from tests.journal.contract import WAIT, close_after, collect, ids, make_fact, take
from tests.journal.nats_server import NatsServer, nats_server, running_server

__all__ = ["nats_server"]

ROOT = Path(__file__).parents[2]


@pytest.mark.asyncio
@pytest.mark.fault
@pytest.mark.requirement("journal.nats.writers")
async def test_processes_that_append_at_once_leave_no_gap_and_lose_nothing(
    nats_server: NatsServer,
):
    url = nats_server.url()
    async with NatsJournal(url) as journal:
        started = [start_appender(url, name) for name in ("p", "q")]
        processes = await asyncio.gather(*started)
        async with close_after(journal.follow()) as batches, asyncio.timeout(120):
            outputs = await asyncio.gather(*(process.communicate() for process in processes))
            assert [process.returncode for process in processes] == [0, 0]
            acked = [json.loads(line) for output, _ in outputs for line in output.splitlines()]
            total = sum(len(each["seqs"]) for each in acked)
            assert len(acked) == 240
            followed = await take(batches, total)
        assert sorted(seq for each in acked for seq in each["seqs"]) == list(range(1, total + 1))
        assert [seq for seq, _ in followed] == list(range(1, total + 1))
        places = dict(followed)
        for each in acked:
            names = [f"{each['batch']}-{at}" for at in range(len(each["seqs"]))]
            assert [places[seq] for seq in each["seqs"]] == names
            first = each["seqs"][0]
            assert each["seqs"] == list(range(first, first + len(names)))
        row = await journal.thread("shared")
        assert row is not None
        assert (row.last_sequence, row.fact_count) == (total, total)
        assert (await journal.verify()).ok


async def start_appender(url: str, name: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.journal.nats_appender", url, name, "120"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )


async def race(url: str) -> None:
    """Two handles that append at once; raises when they disturb each other."""
    async with NatsJournal(url) as one, NatsJournal(url) as two:
        work = [
            journal.append([make_fact(f"{name}-{number}", name)])
            for number in range(20)
            for name, journal in (("one", one), ("two", two))
        ]
        answers = await asyncio.gather(*work)
        assert sorted(answer.seqs[0] for answer in answers) == list(range(1, 41))
        assert len(await collect(two.read())) == 40
        assert (await one.verify()).ok


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.writers")
async def test_two_writers_in_turn_and_at_once(nats_server: NatsServer):
    await race(nats_server.url())


@pytest.mark.asyncio
@pytest.mark.fault
async def test_without_the_expected_sequence_two_writers_do_break_the_journal(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream_log, "_EXPECTED", "Factwire-Expected-Nothing")
    with pytest.raises((JournalError, AssertionError)):
        await race(nats_server.url())


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.turns")
async def test_a_slow_writer_gets_its_turn_beside_a_busy_one(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    url = nats_server.url()
    async with NatsJournal(url) as busy, NatsJournal(url) as slow, asyncio.timeout(WAIT):
        done = asyncio.Event()

        async def produce(lane: int) -> None:
            for number in count(1):
                await busy.append([make_fact(f"{lane}-{number}", f"lane-{lane}")])
                if done.is_set():
                    return

        producing = [asyncio.create_task(produce(lane)) for lane in range(4)]
        delay_publishing(slow, monkeypatch, 0.02)
        for number in range(3):
            await slow.append([make_fact(number)])
        done.set()
        await asyncio.gather(*producing)
        assert (await slow.verify()).ok


def delay_publishing(journal: NatsJournal, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """As if the server were far away: whoever is near always writes first."""
    link = journal._require_open().link
    attempt = link.attempt

    async def attempt_late(subject: str, *rest: Any) -> Any:
        await asyncio.sleep(seconds)
        return await attempt(subject, *rest)

    monkeypatch.setattr(link, "attempt", attempt_late)


@pytest.mark.asyncio
@pytest.mark.fault
async def test_without_turns_a_slow_writer_does_starve(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream_view, "PATIENT_CONFLICTS", 1 << 30)
    url = nats_server.url()
    async with NatsJournal(url) as busy, NatsJournal(url) as slow:
        delay_publishing(slow, monkeypatch, 0.02)
        starving = asyncio.create_task(slow.append([make_fact("slow")]))
        for number in range(200):
            await busy.append([make_fact(number, "busy")])
        assert not starving.done()
        assert (await starving).seqs == (201,)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.level")
async def test_a_call_sees_what_another_process_wrote_before_it(nats_server: NatsServer):
    url = nats_server.url()
    async with NatsJournal(url) as one, NatsJournal(url) as two:
        answer = await one.append([make_fact(1)])
        assert await two.head() == answer.cursor
        assert await collect(two.read(answer.cursor)) == []
        await one.append([make_fact(2), make_fact(3)])
        await two.append([make_fact(4, sequence=4)])
        with pytest.raises(SequenceConflict):
            await one.append([make_fact(5, sequence=4)])
        assert await collect(two.read("fact-2")) == ids(3, 4, start=3)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.follow")
async def test_a_follower_is_woken_by_what_another_process_writes(nats_server: NatsServer):
    url = nats_server.url()
    async with (
        NatsJournal(url) as one,
        NatsJournal(url) as two,
        close_after(two.follow(filter=Filter(thread="t"))) as batches,
    ):
        waiting = asyncio.ensure_future(take(batches, 2))
        await one.append([make_fact(1)])
        await one.append([make_fact(2, "other"), make_fact(3)])
        assert await waiting == [(1, "fact-1"), (3, "fact-3")]


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.lost-ack")
async def test_an_append_whose_ack_is_lost_is_written_once(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    async with NatsJournal(nats_server.url()) as journal:
        lose_acks(journal, monkeypatch)
        for number in range(1, 7):
            answer = await journal.append([make_fact(number)])
            assert (answer.seqs, answer.repeated) == ((number,), (False,))
        assert await collect(journal.read()) == ids(1, 2, 3, 4, 5, 6)
        assert (await journal.verify()).ok


@pytest.mark.asyncio
@pytest.mark.fault
async def test_a_writer_that_does_not_know_its_own_item_does_answer_wrongly(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(StreamState, "await_item", forget)
    async with NatsJournal(nats_server.url()) as journal:
        lose_acks(journal, monkeypatch)
        answers = [await journal.append([make_fact(number)]) for number in range(1, 7)]
        assert any(any(answer.repeated) for answer in answers)


def forget(_: StreamState, __: str) -> None:
    """Stands in for `State.await_item`."""


def lose_acks(journal: NatsJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on every other answer to what is published gets lost."""
    link = journal._require_open().link
    attempt = link.attempt
    numbers = count(1)

    async def attempt_and_lose(subject: str, *rest: Any) -> Any:
        answer = await attempt(subject, *rest)
        if subject.startswith("factwire.log") and next(numbers) % 2:
            raise Lost("the answer was lost on the way")
        return answer

    monkeypatch.setattr(link, "attempt", attempt_and_lose)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.large")
async def test_a_batch_larger_than_a_message_is_written_whole(nats_server: NatsServer):
    url = nats_server.url()
    text = "x" * 2_500_000
    async with NatsJournal(url) as journal:
        answer = await journal.append([make_fact(1, payload={"text": text}), make_fact(2)])
        assert answer.seqs == (1, 2)
    async with NatsJournal(url) as journal:
        batches = [batch async for batch in journal.read()]
        facts = [fact for batch in batches for _, fact in batch.facts()]
        assert [len(fact.payload.get("text", "")) for fact in facts] == [2_500_000, 0]
        assert (await journal.verify()).ok


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.large")
async def test_a_batch_that_no_atomic_batch_can_hold_is_refused_and_leaves_nothing(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    async with NatsJournal(nats_server.url()) as journal:
        monkeypatch.setattr(stream_log, "BATCH_MESSAGES", 2)
        with pytest.raises(JournalUnwritable, match="append fewer facts"):
            await journal.append([make_fact(1, payload={"text": "x" * 2_500_000})])
        assert (await journal.append([make_fact(2)])).seqs == (1,)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.full")
async def test_a_server_without_room_refuses_reads_on_and_recovers():
    with running_server(limits="max_file_store: 4MB") as server:
        async with NatsJournal(server.url()) as journal:
            link = journal._require_open().link
            filler = {"name": "filler", "subjects": ["filler"]}
            await link.ask(f"{API}.STREAM.CREATE.filler", filler)
            await link.ask("filler", {"text": "x" * 900_000})
            batch = [make_fact(number, payload={"text": "x" * 500_000}) for number in range(20)]
            with pytest.raises(JournalUnwritable):
                await append_each(journal, batch)
            head = (await journal.head()).seq
            assert len(await collect(journal.read())) == head >= 2
            await link.ask(f"{API}.STREAM.DELETE.filler", {})
            assert (await journal.append([batch[head]])).seqs == (head + 1,)
            assert (await journal.verify()).ok


async def append_each(journal: NatsJournal, batch: list[Fact]) -> None:
    for fact in batch:
        await journal.append([fact])


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.checkpoint")
async def test_opening_reads_only_what_came_after_the_checkpoint(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stream_view, "PAGE", 16)
    url = nats_server.url()
    async with NatsJournal(url) as journal:
        await journal.append([make_fact(number) for number in range(100)])
        await journal._require_open().checkpoint.save()
        await journal.append([make_fact(number) for number in range(100, 110)])
    applied: list[str] = []
    apply = StreamState.apply

    def note(state: StreamState, item: stream_log.StreamItem) -> Any:
        applied.append(item.kind)
        return apply(state, item)

    monkeypatch.setattr(StreamState, "apply", note)
    async with NatsJournal(url) as journal:
        assert applied == ["chunk"]
        again = await journal.append([make_fact(number) for number in range(110)])
        assert again.seqs == tuple(range(1, 111))
        assert (await journal.verify()).ok


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.checkpoint")
async def test_a_damaged_checkpoint_costs_nothing_but_time(nats_server: NatsServer):
    url = nats_server.url()
    async with NatsJournal(url) as journal:
        await journal.append([make_fact(number) for number in range(20)])
        checkpoint = journal._require_open().checkpoint
        await checkpoint.save()
        await checkpoint._store.publish(
            [("image", b"\0" * 200)], name="damage", expected=checkpoint._end
        )
    async with NatsJournal(url) as journal:
        assert len(await collect(journal.read())) == 20


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.epoch")
async def test_a_stream_put_back_to_an_older_copy_begins_a_new_epoch(nats_server: NatsServer):
    url = nats_server.url(options="sync=always&patience=0.5")
    async with NatsJournal(url) as journal:
        early = (await journal.append([make_fact(1), make_fact(2)])).cursor
        late = (await journal.append([make_fact(3)])).cursor
        await journal._require_open().checkpoint.save()
        await cut_stream(journal, 2)
        with pytest.raises(JournalCorrupt, match="older copy"):
            await journal.append([make_fact(4)])
    async with NatsJournal(url) as journal:
        assert (await journal.head()).seq == 2
        for cursor in (early, late):
            with pytest.raises(CursorUnknownEpoch):
                await collect(journal.read(cursor))
        epoch = (await journal.head()).epoch
        await journal.append([make_fact(5)])
    async with NatsJournal(url) as journal:
        assert await journal.head() == Cursor(epoch, 3)


async def cut_stream(journal: NatsJournal, keep: int) -> None:
    """Put the stream in the place of itself, with only its first messages."""
    opened = journal._require_open()
    log, link = opened.mirror.log, opened.link
    items = [item async for item in log.items(1)]
    info = await log.info()
    assert info is not None
    await link.ask(f"{API}.STREAM.DELETE.{log.stream}", {})
    await link.ask(f"{API}.STREAM.CREATE.{log.stream}", info["config"])
    for number, item in enumerate(items[:keep]):
        await log.publish([(item.kind, item.body)], name=item.name, expected=number)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.damage")
async def test_facts_that_the_stream_lost_are_named_and_never_passed_over(nats_server: NatsServer):
    url = nats_server.url()
    async with NatsJournal(url) as journal:
        for number in range(0, 9, 3):
            await journal.append([make_fact(number + at) for at in range(3)])
        await journal._require_open().mirror.log.delete(3, 1)
        report = await journal.verify()
        assert report.damage is not None
        assert (report.damage.first, report.damage.last, report.intact) == (4, 6, 3)
    async with NatsJournal(url) as journal:
        for wanted in (None, Filter(thread="t")):
            with pytest.raises(JournalCorrupt) as caught:
                await collect(journal.read(filter=wanted))
            assert (caught.value.first, caught.value.last) == (4, 6)
        with pytest.raises(JournalCorrupt):
            await journal.append([make_fact(20)])
        assert (await journal.verify()).intact == 3
        cursor = Cursor((await journal.head()).epoch, 6)
        assert await collect(journal.read(cursor)) == ids(6, 7, 8, start=7)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.verify.snapshots")
async def test_a_snapshot_that_stands_on_another_chain_is_named(nats_server: NatsServer):
    async with NatsJournal(nats_server.url()) as journal:
        appended = await journal.append([make_fact(1), make_fact(2)])
        saved = await journal.save_snapshot("t", appended.cursor, b"state")
        assert (await journal.verify()).ok
        opened = journal._require_open().mirror

        async def forge_snapshot() -> list[ItemBody]:
            place = saved.cursor.seq
            return [
                SavedSnapshot(
                    thread_id="t", kind=saved.kind, seq=place, data=b"", anchor=bytes(32)
                ),
            ]

        async with opened.lock:
            await opened.write(forge_snapshot)
        reason = "the projection snapshot of 't' at 2 does not belong to this chain"
        assert (await journal.verify()).damage == Damage(first=2, last=2, reason=reason)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.verify.snapshots")
async def test_a_snapshot_that_the_stream_lost_is_named(nats_server: NatsServer):
    async with NatsJournal(nats_server.url()) as journal:
        appended = await journal.append([make_fact(1), make_fact(2)])
        await journal.save_snapshot("t", appended.cursor, b"state")
        opened = journal._require_open().mirror
        await opened.log.delete(*opened.state.snapshots["t", "projection"][2])
        damage = (await journal.verify()).damage
        assert damage is not None
        assert (damage.first, damage.last) == (2, 2)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.damage")
async def test_a_message_with_other_bytes_is_never_served(nats_server: NatsServer):
    url = nats_server.url()
    async with NatsJournal(url) as journal:
        await journal.append([make_fact(1)])
        await journal.append([make_fact(2)])
        log = journal._require_open().mirror.log
        item = [item async for item in log.items(1)][-1]
        await log.delete(item.at, 1)
        body = item.body.replace(b"fact-2", b"fact-9")
        await log.publish([("chunk", body)], name="forged", expected=item.at)
    with pytest.raises(JournalCorrupt):
        async with NatsJournal(url):
            pass


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.ack")
async def test_opening_warns_when_nothing_says_that_an_ack_is_on_disk(nats_server: NatsServer):
    journal = NatsJournal(nats_server.url(options=""))
    with pytest.warns(DurabilityWarning, match="only if the server has sync_interval: always"):
        await journal.__aenter__()
    assert not journal.promise.survives_power_loss
    assert journal.promise.flushed is None
    await journal.__aexit__(None, None, None)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.ack")
@pytest.mark.parametrize("sync", ["always", "2m"])
async def test_the_servers_monitor_tells_what_an_ack_means(sync: str):
    with running_server(sync=sync) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", DurabilityWarning)
        # What the server says counts, whatever the URL claims.
        options = f"sync=always&monitor=127.0.0.1:{server.monitor}"
        async with NatsJournal(server.url(options=options)) as journal:
            assert journal.promise.survives_power_loss is (sync == "always")
            assert journal.promise.replicas == 1


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.url")
async def test_a_stream_that_is_no_journal_is_left_alone(nats_server: NatsServer):
    async with NatsJournal(nats_server.url()) as journal:
        link = journal._require_open().link
        config = {"name": "orders", "subjects": ["orders"]}
        await link.ask(f"{API}.STREAM.CREATE.orders", config)
    with pytest.raises(JournalUrlError, match="is not a journal"):
        async with NatsJournal(nats_server.url("orders")):
            pass


@pytest.mark.requirement("journal.nats.url")
@pytest.mark.parametrize(
    "url",
    [
        "nats://127.0.0.1:4222",
        "nats:///name",
        "nats://127.0.0.1:4222/a.b",
        "nats://127.0.0.1:4222/name?replicas=2",
        "nats://127.0.0.1:4222/name?sync=maybe",
        "nats://127.0.0.1:4222/name?patience=soon",
        "nats://127.0.0.1:4222/name?color=red",
        "nats://127.0.0.1:4222/name?replicas",
    ],
)
def test_a_url_that_names_no_journal_is_refused(url: str):
    with pytest.raises(JournalUrlError):
        open_journal(url)


@pytest.mark.requirement("journal.nats.url")
def test_a_password_in_the_url_is_used_and_never_shown():
    place = parse_address("nats://ann:hunter2@a:1,b:2/name?replicas=3")
    assert place.servers == ("nats://ann:hunter2@a:1", "nats://ann:hunter2@b:2")
    assert (place.shown, place.replicas) == ("nats://a:1,b:2/name", 3)


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.unavailable")
async def test_a_server_that_is_not_there_is_named(nats_server: NatsServer):
    url = nats_server.url(options="sync=always&patience=0.5").replace(str(nats_server.port), "1")
    with pytest.raises(JournalUnavailable, match=r"127\.0\.0\.1:1"):
        async with NatsJournal(url):
            pass


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.url")
async def test_replicas_that_the_server_cannot_give_are_refused(nats_server: NatsServer):
    with pytest.raises(JournalUnavailable, match="replicas"):
        async with NatsJournal(nats_server.url(options="sync=always&replicas=3")):
            pass


@pytest.mark.requirement("journal.nats.ids")
def test_every_id_is_found_and_costs_few_bytes():
    known = FingerprintTable()
    marks = compute_fingerprints(f"fact-{number}" for number in range(50_000))
    known.extend(marks)
    assert all(known.find(mark) == [seq] for seq, mark in enumerate(marks, 1))
    assert not known.find_taken(compute_fingerprints(f"other-{number}" for number in range(1000)))
    tables = sum(table.itemsize * len(table) for table in known._tables)
    assert (tables + 8 * len(known.prints)) / len(marks) < 40


def always_seven(ids: Iterable[str]) -> list[int]:
    return [7 for _ in ids]


@pytest.mark.asyncio
@pytest.mark.requirement("journal.nats.ids")
async def test_ids_with_one_fingerprint_are_told_apart(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
):
    for module in ("stream_view", "journal_state", "writer"):
        monkeypatch.setattr(f"factwire.journal.nats.{module}.compute_fingerprints", always_seven)
    async with NatsJournal(nats_server.url()) as journal:
        await journal.append([make_fact(1), make_fact(2)])
        await journal.append([make_fact(3)])
        again = await journal.append([make_fact(3), make_fact(4), make_fact(1)])
        assert (again.seqs, again.repeated) == ((3, 4, 1), (True, False, True))
        assert (await journal.position("fact-2")).seq == 2


@pytest.mark.asyncio
async def test_a_caller_that_gave_up_holds_nobody_up(nats_server: NatsServer):
    async with NatsJournal(nats_server.url()) as journal, asyncio.timeout(WAIT):
        first = asyncio.ensure_future(journal.append([make_fact(1)]))
        second = asyncio.ensure_future(journal.append([make_fact(2)]))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).seqs == (2,)
        assert await collect(journal.read()) == ids(1, 2)
