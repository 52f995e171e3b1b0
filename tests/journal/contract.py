"""What every backend must do, as tests that a backend joins by giving a `backend` fixture.

    class TestMine(JournalContract):
        @pytest.fixture
        def backend(self, tmp_path):
            return MyBackend(tmp_path)

A backend has `open()`, which gives a new and empty journal, and `reopen()`, which gives the same
one again after it was closed. Both answer with a journal that is not entered yet.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol, cast

import msgspec
import pytest

from factwire.facts.fact import Fact
from factwire.facts.shapes import encode_fact
from factwire.journal import (
    CompactionPolicy,
    ConflictingFact,
    Cursor,
    CursorExpired,
    CursorFromFuture,
    CursorMalformed,
    CursorUnknownEpoch,
    FactBatch,
    Filter,
    Journal,
    JournalClosed,
    RetentionPolicy,
    SequenceConflict,
    UnknownFact,
    UnstorableFact,
)
from factwire.journal.filter import id_key, list_keys

WAIT = 60
"""Seconds after which a wait in these tests counts as lost."""


class Backend(Protocol):
    """Where a journal under test lives."""

    def open(self) -> Journal: ...

    def reopen(self) -> Journal: ...


def make_fact(number: int | str, thread: str | None = "t", **fields: Any) -> Fact:
    """A fact with an id of its own; everything else may be said by name."""
    event_class: str = fields.get("event_class", "model.delta")
    known: dict[str, Any] = {
        "id": f"fact-{number}",
        "kind": "model",
        "status": "running",
        "title": event_class,
        "created_at": "2026-01-01T00:00:00Z",
        "schema_version": "1",
        "runtime_id": "runtime",
        "event_class": event_class,
        "thread_id": thread,
    }
    return Fact(**(known | fields))


async def collect(batches: AsyncIterator[FactBatch]) -> list[tuple[int, str]]:
    """Seq and id of everything that a read gives, having checked that its ranges join up."""
    found: list[tuple[int, str]] = []
    last = None
    async for batch in batches:
        assert last is None or batch.first == last + 1
        assert all(batch.first <= seq <= batch.last for seq in batch.seqs)
        last = batch.last
        found += [(seq, fact.id) for seq, fact in batch.facts()]
    return found


async def take(batches: AsyncIterator[FactBatch], count: int) -> list[tuple[int, str]]:
    """The first `count` facts of something that may go on for ever."""
    found: list[tuple[int, str]] = []
    async with asyncio.timeout(WAIT):
        async for batch in batches:
            found += [(seq, fact.id) for seq, fact in batch.facts()]
            if len(found) >= count:
                break
    return found


def close_after(batches: AsyncIterator[FactBatch]) -> "aclosing[AsyncGenerator[FactBatch]]":
    """Ends a follower with the block, not with the garbage collector."""
    return aclosing(cast("AsyncGenerator[FactBatch]", batches))


def ids(*numbers: int | str, start: int = 1) -> list[tuple[int, str]]:
    """Seqs from `start` on, with the ids of `make_fact`."""
    return [(start + at, f"fact-{number}") for at, number in enumerate(numbers)]


@pytest.mark.asyncio
class JournalContract:
    @pytest.mark.requirement("journal.append.places")
    async def test_facts_get_gap_free_places_from_one_on(self, backend: Backend):
        async with backend.open() as journal:
            first = await journal.append([make_fact(1), make_fact(2)])
            second = await journal.append([make_fact(3)])
            assert (first.seqs, second.seqs) == ((1, 2), (3,))
            assert (await journal.head()).seq == 3
            assert second.cursor == await journal.head()

    async def test_an_empty_batch_changes_nothing(self, backend: Backend):
        async with backend.open() as journal:
            assert (await journal.append([])).seqs == ()
            assert (await journal.head()).seq == 0

    @pytest.mark.requirement("journal.append.repeat")
    async def test_a_repeat_answers_with_the_first_place_and_writes_nothing(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1), make_fact(2)])
            again = await journal.append([make_fact(2), make_fact(3), make_fact(3), make_fact(1)])
            assert again.seqs == (2, 3, 3, 1)
            assert again.repeated == (True, False, True, True)
            assert again.sequences == (2, 3, 3, 1)
            assert (await journal.head()).seq == 3

    @pytest.mark.requirement("journal.append.repeat")
    async def test_a_repeat_is_known_after_a_restart(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)])
        async with backend.reopen() as journal:
            again = await journal.append([make_fact(1)])
            assert (again.seqs, again.repeated) == ((1,), (True,))

    async def test_the_order_of_payload_keys_makes_no_other_body(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1, payload={"a": 1, "b": 2})])
            again = await journal.append([make_fact(1, payload={"b": 2, "a": 1}, sequence=1)])
            assert again.repeated == (True,)

    @pytest.mark.requirement("journal.append.conflict")
    async def test_the_same_id_with_another_body_refuses_the_whole_batch(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)])
            with pytest.raises(ConflictingFact) as refused:
                await journal.append([make_fact(2), make_fact(1, title="other")])
            assert (refused.value.code, refused.value.seq) == ("conflicting_fact", 1)
            assert await collect(journal.read()) == ids(1)

    async def test_two_bodies_for_one_id_in_one_batch_are_a_conflict(self, backend: Backend):
        async with backend.open() as journal:
            with pytest.raises(ConflictingFact):
                await journal.append([make_fact(1), make_fact(1, title="other")])
            assert (await journal.head()).seq == 0

    async def test_true_and_one_are_different_bodies(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1, payload={"flag": True})])
            with pytest.raises(ConflictingFact):
                await journal.append([make_fact(1, payload={"flag": 1})])

    @pytest.mark.requirement("journal.append.sequence")
    async def test_a_sequence_starts_anywhere_and_then_rises_by_one(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1, sequence=41), make_fact(2, sequence=42)])
            with pytest.raises(SequenceConflict) as refused:
                await journal.append([make_fact(3, sequence=44)])
            assert refused.value.code == "sequence_conflict"
            assert (refused.value.expected, refused.value.got) == (43, 44)
            await journal.append([make_fact(3, sequence=43)])

    @pytest.mark.requirement("journal.append.sequence")
    async def test_a_missing_sequence_is_assigned_at_commit(self, backend: Backend):
        async with backend.open() as journal:
            answer = await journal.append([make_fact(1), make_fact(2, "other", sequence=7)])
            more = await journal.append([make_fact(3, "other"), make_fact(4)])
            assert (answer.sequences, more.sequences) == ((1, 7), (8, 2))
            read = [fact async for each in journal.read() for _, fact in each.facts()]
            assert [fact.sequence for fact in read] == [1, 7, 8, 2]

    async def test_facts_of_no_thread_have_no_sequence_to_keep(self, backend: Backend):
        async with backend.open() as journal:
            batch = [make_fact(1, None, sequence=9), make_fact(2, None, sequence=9)]
            assert (await journal.append([*batch, make_fact(3, None)])).seqs == (1, 2, 3)
            read = [fact async for each in journal.read() for _, fact in each.facts()]
            assert read[-1] == make_fact(3, None)

    async def test_a_thread_named_in_the_payload_counts(self, backend: Backend):
        async with backend.open() as journal:
            named = make_fact(1, None, payload={"thread_id": "t"})
            assert (await journal.append([named, make_fact(2)])).sequences == (1, 2)
            found = await collect(journal.read(filter=Filter(thread="t")))
            assert found == ids(1, 2)

    @pytest.mark.requirement("journal.append.expected")
    async def test_an_expectation_that_fails_refuses_the_batch(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)], expected={"t": None})
            for believed in (None, 2):
                with pytest.raises(SequenceConflict):
                    await journal.append([make_fact(2)], expected={"t": believed})
            assert (await journal.append([make_fact(2)], expected={"t": 1})).seqs == (2,)

    async def test_a_retry_is_not_held_to_its_old_expectation(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)], expected={"t": None})
            assert (await journal.append([make_fact(1)], expected={"t": None})).seqs == (1,)

    @pytest.mark.requirement("journal.append.group")
    async def test_one_refusal_in_a_group_does_not_hurt_the_others(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact("seen")])
            batches = [[make_fact(n, f"thread-{n}")] for n in range(40)]
            batches[13] = [make_fact("seen", title="other")]
            batches[27] = [make_fact("gap", "t", sequence=99)]
            answers = await asyncio.gather(
                *(journal.append(batch) for batch in batches), return_exceptions=True
            )
            refused = [type(answer) for answer in answers if isinstance(answer, Exception)]
            assert refused == [ConflictingFact, SequenceConflict]
            assert [seq for seq, _ in await collect(journal.read())] == list(range(1, 40))

    async def test_concurrent_appends_to_one_thread_stay_in_order(self, backend: Backend):
        async with backend.open() as journal:
            answers = await asyncio.gather(*(journal.append([make_fact(n)]) for n in range(50)))
            places = sorted((answer.seqs[0], answer.sequences[0]) for answer in answers)
            assert places == [(n, n) for n in range(1, 51)]

    async def test_a_fact_that_is_not_json_is_refused(self, backend: Backend):
        async with backend.open() as journal:
            for payload in ({"text": "\ud800"}, {"x": object()}):
                with pytest.raises(UnstorableFact):
                    await journal.append([make_fact(1), make_fact(2, payload=payload)])
            assert (await journal.head()).seq == 0

    @pytest.mark.requirement("journal.read.bytes")
    async def test_what_is_read_is_what_was_encoded(self, backend: Backend):
        async with backend.open() as journal:
            odd: dict[str, Any] = {
                "text": "line\nend \u2028 \x00 é 🙂",
                "n": [1, 2.5, None, True, {"": {}}],
            }
            facts = [make_fact(n, sequence=n, payload=odd, extra={"x": n}) for n in range(1, 4)]
            await journal.append(facts)
            data = b"".join([batch.data async for batch in journal.read()])
            assert data == b"".join(encode_fact(fact) + b"\n" for fact in facts)
            read = [fact async for each in journal.read() for _, fact in each.facts()]
            assert read == facts

    @pytest.mark.requirement("journal.read.resume")
    async def test_a_read_resumes_exactly_after_any_cursor_or_fact(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 4)])
            for number in range(4, 9):
                await journal.append([make_fact(number)])
            head = await journal.head()
            for seq in range(9):
                rest = ids(*range(seq + 1, 9), start=seq + 1)
                cursor = Cursor(head.epoch, seq)
                assert await collect(journal.read(cursor)) == rest
                assert await collect(journal.read(str(cursor))) == rest
                if seq:
                    assert await collect(journal.read(f"fact-{seq}")) == rest

    async def test_a_limit_cuts_at_a_fact_and_the_cursor_goes_on_from_there(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n, f"t{n % 2}") for n in range(1, 10)])
            for wanted in (None, Filter(thread="t1")):
                whole = await collect(journal.read(filter=wanted))
                found: list[tuple[int, str]] = []
                cursor: Cursor | None = None
                while len(found) < len(whole):
                    async for batch in journal.read(cursor, filter=wanted, limit=2):
                        found += [(seq, fact.id) for seq, fact in batch.facts()]
                        cursor = batch.cursor
                assert found == whole

    async def test_a_limit_of_nothing_gives_nothing(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)])
            assert await collect(journal.read(limit=0)) == []

    @pytest.mark.requirement("journal.read.filter")
    async def test_filters_pick_by_every_id_and_by_class_prefix(self, backend: Backend):
        async with backend.open() as journal:
            fields = ("project", "session", "run", "turn", "task")
            keys = dict[int, tuple[str, ...]]()
            for number in range(1, 13):
                own = {f"{name}_id": f"{name}-{number % 3}" for name in fields}
                event_class = ("tool.started", "tool.result", "toolbox.opened")[number % 3]
                thread = f"thread-{number % 2}"
                fact = make_fact(number, thread, event_class=event_class, **own)
                keys[number] = list_keys(fact)
                await journal.append([fact])
            every = range(1, 13)
            for name in fields:
                wanted = msgspec.convert({name: f"{name}-1"}, Filter)
                found = await collect(journal.read(filter=wanted))
                assert [seq for seq, _ in found] == [n for n in every if n % 3 == 1]
            for prefix in ("tool", "tool."):
                found = await collect(journal.read(filter=Filter(classes=(prefix,))))
                assert [seq for seq, _ in found] == [n for n in every if n % 3 != 2]
            both = Filter(thread="thread-1", classes=("toolbox", "tool.result"))
            found = await collect(journal.read(filter=both))
            assert [seq for seq, _ in found] == [n for n in every if n % 2 and n % 3]
            assert await collect(journal.read(filter=Filter(thread="nobody"))) == []
            some = frozenset({id_key("run", "run-1"), id_key("run", "none"), "c:toolbox.opened"})
            for wanted, chosen in (
                (Filter(any_keys=some), [n for n in every if n % 3]),
                (Filter(any_keys=some, thread="thread-1"), [n for n in every if n % 3 and n % 2]),
                (Filter(any_keys=some, classes=("tool",)), [n for n in every if n % 3 == 1]),
                (Filter(any_keys=frozenset({id_key("thread", "nobody")})), []),
            ):
                found = await collect(journal.read(filter=wanted))
                assert [seq for seq, _ in found] == chosen
                assert chosen == [n for n in every if wanted.lets_through(keys[n])]

    async def test_a_filtered_read_covers_what_it_passed_over(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n, f"t{n}") for n in range(1, 6)])
            covered = [
                (batch.first, batch.last, tuple(batch.seqs))
                async for batch in journal.read(filter=Filter(thread="t2"))
            ]
            assert covered[0][0] == 1
            assert covered[-1][1] == 5
            assert [seq for _, _, seqs in covered for seq in seqs] == [2]

    @pytest.mark.requirement("journal.cursor.malformed")
    async def test_a_malformed_cursor_is_refused(self, backend: Backend):
        async with backend.open() as journal:
            with pytest.raises(CursorMalformed) as refused:
                await collect(journal.read("fw1.nonsense"))
            assert refused.value.code == "cursor_malformed"
            assert refused.value.head == await journal.head()

    @pytest.mark.requirement("journal.cursor.epoch")
    async def test_a_cursor_of_another_epoch_is_refused(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)])
            with pytest.raises(CursorUnknownEpoch) as refused:
                await collect(journal.read(Cursor("0" * 16, 1)))
            assert refused.value.code == "cursor_unknown_epoch"

    @pytest.mark.requirement("journal.cursor.future")
    async def test_a_cursor_past_the_head_is_refused_with_the_nearest_snapshot(
        self, backend: Backend
    ):
        async with backend.open() as journal:
            await journal.append([make_fact(1), make_fact(2)])
            head = await journal.head()
            snapshot = await journal.save_snapshot("t", Cursor(head.epoch, 1), b"state")
            for batches in (journal.read, journal.follow):
                with pytest.raises(CursorFromFuture) as refused:
                    await take(batches(Cursor(head.epoch, 3)), 1)
                assert refused.value.code == "cursor_from_future"
                assert (refused.value.head, refused.value.nearest) == (head, snapshot.cursor)

    async def test_an_unknown_fact_is_no_place_to_resume_from(self, backend: Backend):
        async with backend.open() as journal:
            for ask in (collect(journal.read("nobody")), journal.position("nobody")):
                with pytest.raises(UnknownFact) as refused:
                    await ask
                assert refused.value.code == "unknown_fact"

    async def test_a_fact_is_found_by_its_id(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1), make_fact(2)])
            assert await journal.position("fact-2") == Cursor((await journal.head()).epoch, 2)

    @pytest.mark.requirement("journal.follow.exact")
    async def test_a_follower_gets_the_past_and_then_the_present(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 4)])
            async with close_after(journal.follow("fact-1")) as batches:
                assert await take(batches, 2) == ids(2, 3, start=2)
                await journal.append([make_fact(4)])
                assert await take(batches, 1) == ids(4, start=4)

    @pytest.mark.requirement("journal.follow.exact")
    async def test_followers_that_begin_amid_appends_miss_and_repeat_nothing(
        self, backend: Backend
    ):
        async with backend.open() as journal:
            total = 120

            async def produce(lane: int) -> None:
                for number in range(lane, total, 4):
                    await journal.append([make_fact(number, f"t{lane}")])

            async def follow(wanted: Filter | None, count: int) -> list[tuple[int, str]]:
                async with close_after(journal.follow(filter=wanted)) as batches:
                    return await take(batches, count)

            lanes = [asyncio.create_task(produce(lane)) for lane in range(4)]
            followers: list[asyncio.Task[list[tuple[int, str]]]] = []
            for turn in range(12):
                wanted = Filter(thread=f"t{turn % 4}") if turn % 2 else None
                count = total // 4 if wanted else total
                followers.append(asyncio.create_task(follow(wanted, count)))
                await journal.append([make_fact(f"extra-{turn}", None)])
            await asyncio.gather(*lanes)
            whole = await collect(journal.read())
            for turn, follower in enumerate(followers):
                found = await follower
                wanted = Filter(thread=f"t{turn % 4}") if turn % 2 else None
                expected = await collect(journal.read(filter=wanted)) if wanted else whole
                assert found[: len(expected)] == expected[: len(found)]
                assert [seq for seq, _ in found] == sorted({seq for seq, _ in found})

    async def test_a_follower_resumes_elsewhere_from_the_cursor_it_has(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 6)])
            async with close_after(journal.follow()) as batches:
                seen = await anext(batches)
            await journal.append([make_fact(6)])
            async with close_after(journal.follow(str(seen.cursor))) as batches:
                rest = 6 - seen.last
                assert len(await take(batches, rest)) == rest

    async def test_closing_the_journal_ends_its_followers(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1)])
            batches = journal.follow()
            await anext(batches)
            waiting = asyncio.ensure_future(anext(batches))
            await asyncio.sleep(0)
        with pytest.raises(JournalClosed):
            async with asyncio.timeout(WAIT):
                await waiting
        with pytest.raises(JournalClosed):
            await journal.append([make_fact(2)])

    @pytest.mark.requirement("journal.restart")
    async def test_everything_is_there_after_a_restart(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n, f"t{n % 3}") for n in range(1, 10)])
            head = await journal.head()
            await journal.save_snapshot("t1", head, b"state")
            threads = await journal.threads()
        async with backend.reopen() as journal:
            assert await journal.head() == head
            assert await collect(journal.read()) == ids(*range(1, 10))
            assert await journal.threads() == threads
            kept = await journal.snapshot("t1")
            assert kept is not None
            assert kept.data == b"state"
            assert (await journal.append([make_fact(10)])).seqs == (10,)
            assert (await journal.verify()).ok

    @pytest.mark.requirement("journal.threads.list")
    async def test_threads_are_listed_by_last_activity_in_pages(self, backend: Backend):
        async with backend.open() as journal:
            for number in range(10):
                project = f"p{number % 2}"
                await journal.append([make_fact(number, f"t{number}", project_id=project)])
            await journal.append([make_fact("late", "t3")])
            page = await journal.threads(limit=4)
            assert [row.thread_id for row in page.threads] == ["t3", "t9", "t8", "t7"]
            assert page.after is not None
            rest = await journal.threads(limit=6, after=str(page.after))
            names = [row.thread_id for row in rest.threads]
            assert names == ["t6", "t5", "t4", "t2", "t1", "t0"]
            assert rest.after is None
            odd = await journal.threads(project="p1")
            assert [row.thread_id for row in odd.threads] == ["t3", "t9", "t7", "t5", "t1"]

    @pytest.mark.requirement("journal.threads.status")
    async def test_a_threads_status_follows_its_turns_and_actions(self, backend: Backend):
        steps: list[tuple[str, dict[str, str], str]] = [
            ("session.created", {}, "idle"),
            ("turn.submitted", {}, "running"),
            ("action.required", {"action_id": "a"}, "waiting"),
            ("action.resolved", {"action_id": "a"}, "running"),
            ("turn.completed", {}, "completed"),
            ("turn.started", {}, "running"),
            ("turn.failed", {}, "failed"),
            ("turn.started", {}, "running"),
            ("turn.canceled", {}, "canceled"),
        ]
        async with backend.open() as journal:
            for number, (event_class, fields, status) in enumerate(steps):
                await journal.append([make_fact(number, event_class=event_class, **fields)])
                row = await journal.thread("t")
                assert row is not None
                assert row.status == status
            assert len((await journal.threads(status="canceled")).threads) == 1
            assert (await journal.threads(status="idle")).threads == ()

    async def test_a_catalogue_row_says_what_is_known_of_a_thread(self, backend: Backend):
        async with backend.open() as journal:
            assert await journal.thread("t") is None
            await journal.append(
                [
                    make_fact(1, sequence=5, session_id="s", event_class="thread.started"),
                    make_fact(2, project_id="p", created_at="2025-01-01T00:00:00Z"),
                    make_fact(3, event_class="thread.updated", payload={"title": "Name"}),
                    make_fact(4, event_class="action.required", action_id="a"),
                ]
            )
            row = await journal.thread("t")
            assert row is not None
            assert (row.session_id, row.project_id, row.title) == ("s", "p", "Name")
            assert (row.first_seq, row.last_seq, row.last_sequence) == (1, 4, 8)
            assert (row.fact_count, row.open_actions) == (4, ("a",))

    @pytest.mark.requirement("journal.snapshot.newest")
    async def test_the_newest_snapshot_at_or_before_a_cursor_is_found(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 10)])
            epoch = (await journal.head()).epoch
            for seq in (2, 8, 5):
                await journal.save_snapshot("t", Cursor(epoch, seq), b"at %d" % seq)
            await journal.save_snapshot("t", Cursor(epoch, 9), b"other", kind="other")
            assert await journal.snapshot("u") is None
            for at, expected in ((None, b"at 8"), (7, b"at 5"), (5, b"at 5"), (1, None)):
                cursor = None if at is None else Cursor(epoch, at)
                found = await journal.snapshot("t", at=cursor)
                assert (found.data if found else None) == expected

    async def test_a_snapshot_of_a_place_that_is_not_there_is_refused(self, backend: Backend):
        async with backend.open() as journal:
            with pytest.raises(CursorFromFuture):
                await journal.save_snapshot("t", Cursor((await journal.head()).epoch, 1), b"")

    @pytest.mark.requirement("journal.retain.floor")
    async def test_retention_removes_the_oldest_and_expires_their_cursors(self, backend: Backend):
        async with backend.open() as journal:
            for number in range(1, 21):
                await journal.append([make_fact(number)])
            done = await journal.retain(RetentionPolicy(max_age=8))
            head = await journal.head()
            assert (done.removed, done.floor.seq, done.held_by) == (12, 12, ())
            assert await collect(journal.read()) == ids(*range(13, 21), start=13)
            for after in (Cursor(head.epoch, 11), "fact-3", Cursor(head.epoch, 0)):
                with pytest.raises(CursorExpired) as refused:
                    await collect(journal.read(after))
                assert refused.value.code == "cursor_expired"
            assert await collect(journal.read("fact-12")) == ids(*range(13, 21), start=13)
            assert (await journal.verify()).ok

    @pytest.mark.requirement("journal.retain.ids")
    async def test_ids_of_removed_facts_stay_taken(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 11)])
            await journal.retain(RetentionPolicy(keep_facts=3))
        async with backend.reopen() as journal:
            again = await journal.append([make_fact(2)])
            assert (again.seqs, again.repeated) == ((2,), (True,))
            with pytest.raises(ConflictingFact):
                await journal.append([make_fact(2, title="other")])
            assert (await journal.append([make_fact(11)])).sequences == (11,)
            assert (await journal.verify()).ok

    async def test_retention_keeps_the_newest_facts_of_each_thread(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n, f"t{n % 2}") for n in range(1, 11)])
            await journal.append([make_fact("rare", "rare")])
            done = await journal.retain(RetentionPolicy(keep_per_thread=2))
            kept = [seq for seq, _ in await collect(journal.read())]
            assert (done.removed, kept) == (6, [7, 8, 9, 10, 11])
            epoch = (await journal.head()).epoch
            with pytest.raises(CursorExpired):
                await collect(journal.read(Cursor(epoch, 5)))
            rare = await collect(journal.read(Cursor(epoch, 5), filter=Filter(thread="rare")))
            assert [seq for seq, _ in rare] == [11]
            assert (await journal.verify()).ok

    @pytest.mark.requirement("journal.retain.threads")
    async def test_retention_ends_threads_where_it_is_told_and_drops_their_snapshots(
        self, backend: Backend
    ):
        rule = {"event_class": "policy.changed"}
        async with backend.open() as journal:
            facts = [make_fact(n, f"t{n % 2}", **(rule if n == 3 else {})) for n in range(1, 11)]
            await journal.append(facts)
            await journal.append([make_fact("last", None)])
            head = await journal.head()
            for thread in ("t0", "t1"):
                await journal.save_snapshot(thread, Cursor(head.epoch, 9), thread.encode())
            policy = RetentionPolicy(
                threads={"t1": 7, "gone": 9}, keep_classes=frozenset({"policy.changed"})
            )
            done = await journal.retain(policy)
            assert (done.removed, done.floor.seq, done.held_by) == (3, 0, ())
            assert (await journal.retain(policy)).removed == 0
        async with backend.reopen() as journal:
            kept = [seq for seq, _ in await collect(journal.read())]
            assert kept == [2, 3, 4, 6, 8, 9, 10, 11]
            ended, other = await journal.snapshot("t1"), await journal.snapshot("t0")
            assert (ended, other and other.data) == (None, b"t0")
            for wanted in (None, Filter(thread="t1")):
                with pytest.raises(CursorExpired):
                    await collect(journal.read(Cursor(head.epoch, 6), filter=wanted))
            rest = await collect(journal.read(Cursor(head.epoch, 7), filter=Filter(thread="t1")))
            whole = await collect(journal.read(Cursor(head.epoch, 1), filter=Filter(thread="t0")))
            assert ([seq for seq, _ in rest], [seq for seq, _ in whole]) == ([9], [2, 4, 6, 8, 10])
            await journal.save_snapshot("t1", head, b"later")
            await journal.compact()
        async with backend.reopen() as journal:
            later = await journal.snapshot("t1")
            assert (later and later.data, (await journal.verify()).ok) == (b"later", True)

    @pytest.mark.requirement("journal.retain.holds")
    async def test_a_follower_holds_retention_back(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 5)])
            async with close_after(journal.follow()) as batches:
                first = await anext(batches)
                await journal.append([make_fact(n) for n in range(5, 11)])
                done = await journal.retain(RetentionPolicy(max_age=1))
                assert done.floor.seq == first.last
                assert done.held_by
                assert len(await take(batches, 10 - first.last)) == 10 - first.last

    @pytest.mark.requirement("journal.retain.holds")
    async def test_an_open_action_holds_retention_back(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n) for n in range(1, 4)])
            await journal.append([make_fact(4, event_class="action.required", action_id="a")])
            await journal.append([make_fact(n) for n in range(5, 11)])
            assert (await journal.retain(RetentionPolicy(max_age=1))).floor.seq == 3
            await journal.append([make_fact(11, event_class="action.resolved", action_id="a")])
            assert (await journal.retain(RetentionPolicy(max_age=1))).floor.seq == 10

    @pytest.mark.requirement("journal.compact.increments")
    async def test_compaction_drops_increments_that_a_final_text_replaced(self, backend: Backend):
        def part(number: int | str, event_class: str, turn: str, **payload: str) -> Fact:
            ends = event_class.startswith("turn.")
            message = None if ends else f"message-{turn}"
            return make_fact(
                number, event_class=event_class, turn_id=turn, message_id=message, payload=payload
            )

        async with backend.open() as journal:
            for turn in ("done", "open", "mute"):
                await journal.append([part(f"start-{turn}", "turn.started", turn)])
                await journal.append(
                    [part(f"{turn}-{n}", "model.delta", turn, delta="x") for n in range(5)]
                )
                text = {} if turn == "mute" else {"text": "xxxxx"}
                await journal.append([part(f"final-{turn}", "model.completed", turn, **text)])
                if turn != "open":
                    await journal.append([part(f"end-{turn}", "turn.completed", turn)])
            before = await collect(journal.read())
            done = await journal.compact()
            after = await collect(journal.read())
            gone = {f"fact-done-{n}" for n in range(1, 5)}
            assert done.removed == 4
            assert after == [each for each in before if each[1] not in gone]
            assert await collect(journal.read("fact-done-2")) == [e for e in after if e[0] > 4]
            assert (await journal.compact(CompactionPolicy())).removed == 0
            assert (await journal.append([part("done-2", "model.delta", "done", delta="x")])).seqs
            assert (await journal.verify()).ok

    async def test_verify_counts_what_is_there(self, backend: Backend):
        async with backend.open() as journal:
            assert (await journal.verify()).ok
            for number in range(1, 8):
                await journal.append([make_fact(number)])
            report = await journal.verify()
            assert (report.ok, report.facts, report.intact) == (True, 7, 7)

    @pytest.mark.requirement("journal.stats")
    async def test_stats_tell_size_and_lag(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(n, f"t{n}") for n in range(1, 4)])
            async with close_after(journal.follow()) as batches:
                await anext(batches)
                await journal.append([make_fact(4, "t4"), make_fact(5, "t4")])
                stats = await journal.stats()
                assert (stats.facts, stats.threads, stats.head.seq) == (5, 4, 5)
                assert stats.bytes > 0
                assert [(each.position, each.lag) for each in stats.followers] == [(3, 2)]

    @pytest.mark.requirement("evidence.chain-points")
    async def test_a_chain_point_is_the_end_of_a_commit_and_stays(self, backend: Backend):
        async with backend.open() as journal:
            await journal.append([make_fact(1), make_fact(2), make_fact(3)])
            await journal.append([make_fact(4), make_fact(5)])
            first, same, last = [await journal.chain_point(seq) for seq in (1, 3, 4)]
            assert (first.seq, last.seq, len(first.hash)) == (3, 5, 32)
            assert (first, first.hash != last.hash) == (same, True)
            assert last.hash == (await journal.verify()).head
            with pytest.raises(CursorFromFuture):
                await journal.chain_point(6)
            await journal.append([make_fact(6)])
        async with backend.reopen() as journal:
            await journal.compact()
            assert [await journal.chain_point(seq) for seq in (3, 5)] == [first, last]
            await journal.retain(RetentionPolicy(keep_facts=1))
            assert (await journal.chain_point(1)).seq in (3, 5)
            assert (await journal.chain_point(6)).seq == 6

    @pytest.mark.requirement("journal.clock")
    @pytest.mark.parametrize("jump", [-3600, -1, 0, 1, 60, 3600])
    async def test_clock_jumps_leave_the_order_alone(
        self, backend: Backend, jump: int, monkeypatch: pytest.MonkeyPatch
    ):
        import time

        real = time.time
        async with backend.open() as journal:
            await journal.append([make_fact(1, "a", created_at="2026-06-01T12:00:00Z")])
            monkeypatch.setattr(time, "time", lambda: real() + jump)
            hour = 12 + (jump > 0) - (jump < 0)
            await journal.append([make_fact(2, "b", created_at=f"2026-06-01T{hour}:00:00Z")])
            monkeypatch.undo()
            await journal.append([make_fact(3, "a", created_at="2026-06-01T12:00:01Z")])
            assert await collect(journal.read()) == ids(1, 2, 3)
            rows = (await journal.threads()).threads
            assert [row.thread_id for row in rows] == ["a", "b"]
        async with backend.reopen() as journal:
            assert await collect(journal.read()) == ids(1, 2, 3)
