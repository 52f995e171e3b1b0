"""What every backend must do with a whole journal that is restored into it, or taken out of it.

The journal that is carried over has gaps of every kind: a floor, facts dropped from one thread, and
increments that a final text replaced.
"""

from collections.abc import Iterable

import msgspec
import pytest

from factwire.facts.fact import Fact
from factwire.journal import (
    CatalogueRecord,
    CompactionPolicy,
    ConflictingFact,
    Cursor,
    CursorExpired,
    Filter,
    Journal,
    PresentFact,
    RemovedFact,
    Restoration,
    RestoreRefused,
    RetentionPolicy,
)
from factwire.journal.memory_journal import MemoryJournal
from tests.journal.contract import Backend, collect, make_fact


class Image(msgspec.Struct):
    """All that one can say of a journal, but for its epoch."""

    facts: list[tuple[int, bytes]]
    removed: list[RemovedFact]
    records: list[CatalogueRecord]
    threads: tuple[object, ...]
    figures: tuple[int, ...]

    def restoration(self) -> Restoration:
        entries: list[PresentFact | RemovedFact] = [
            PresentFact(seq, line) for seq, line in self.facts
        ]
        entries += self.removed
        return Restoration(
            floor=self.figures[2],
            entries=sorted(entries, key=lambda entry: entry.seq),
            threads=self.records,
        )


async def image_of(journal: Journal) -> Image:
    batches = [batch async for batch in journal.read()]
    lines = [zip(each.seqs, each.lines(), strict=True) for each in batches]
    stats = await journal.stats()
    records = [record async for record in journal.records()]
    return Image(
        facts=[pair for pairs in lines for pair in pairs],
        removed=[each async for each in journal.read_removed()],
        records=sorted(records, key=lambda record: record.thread_id),
        threads=(await journal.threads()).threads,
        figures=(stats.facts, stats.head.seq, stats.floor.seq, stats.threads),
    )


def delta(turn: int, number: int) -> Fact:
    ids = {"turn_id": f"turn-{turn}", "message_id": f"message-{turn}"}
    return make_fact(f"{turn}-{number}", "talk", payload={"delta": "x"}, **ids)


def facts() -> Iterable[list[Fact]]:
    """Batches of a few turns, of a thread that grows, and of one that waits for an answer."""
    for turn in range(6):
        named = {"turn_id": f"turn-{turn}", "message_id": f"message-{turn}"}
        yield [
            make_fact(f"start-{turn}", "talk", event_class="turn.started", turn_id=f"turn-{turn}")
        ]
        yield [delta(turn, number) for number in range(5)]
        final = {"event_class": "model.completed", "payload": {"text": "xxxxx"}}
        yield [make_fact(f"final-{turn}", "talk", **final, **named)]
        ending = {"event_class": "turn.completed", "turn_id": f"turn-{turn}"}
        yield [make_fact(f"end-{turn}", "talk", **ending)]
        yield [make_fact(f"note-{turn}-{number}", "notes") for number in range(3)]
        yield [make_fact(f"alone-{turn}", None)]
    yield [make_fact("ask", "asking", event_class="action.required", action_id="a")]


async def fill(journal: Journal) -> Image:
    """Everything that is later to be carried over."""
    for batch in facts():
        await journal.append(batch)
    await journal.retain(RetentionPolicy(max_age=60))
    await journal.compact(CompactionPolicy())
    await journal.retain(RetentionPolicy(keep_per_thread=14))
    return await image_of(journal)


async def memory_image() -> Image:
    async with MemoryJournal() as journal:
        return await fill(journal)


@pytest.mark.asyncio
class RestoreContract:
    @pytest.mark.requirement("journal.restore.same")
    async def test_a_restored_journal_is_the_one_it_was_made_from(self, backend: Backend):
        image = await memory_image()
        assert image.figures[2] > 0
        assert len(image.removed) + image.figures[0] == image.figures[1]
        async with backend.open() as journal:
            cursor = await journal.restore(image.restoration())
            assert cursor == await journal.head()
            assert await image_of(journal) == image
            assert (await journal.verify()).ok
        async with backend.reopen() as journal:
            assert await image_of(journal) == image
            assert (await journal.verify()).ok
            talk = Filter(thread="talk")
            lines = [line for _, line in image.facts if b'"threadId":"talk"' in line]
            found = [line async for part in journal.read(filter=talk) for line in part.lines()]
            assert found == lines

    @pytest.mark.requirement("journal.restore.same")
    async def test_what_a_journal_says_of_itself_is_enough_to_restore_it(self, backend: Backend):
        async with backend.open() as journal:
            image = await fill(journal)
            assert image == await memory_image()
        async with MemoryJournal() as other:
            await other.restore(image.restoration())
            assert await image_of(other) == image
            assert (await other.verify()).ok

    @pytest.mark.requirement("journal.restore.ids")
    async def test_ids_that_were_removed_before_a_restore_stay_taken(self, backend: Backend):
        image = await memory_image()
        gone = {each.id: each for each in image.removed}
        below = [each for each in image.removed if each.seq <= image.figures[2]]
        assert below
        assert "fact-4-2" in gone
        async with backend.open() as journal:
            await journal.restore(image.restoration())
        async with backend.reopen() as journal:
            for number in (2, 3):
                answer = await journal.append([delta(4, number)])
                assert answer.seqs == (gone[f"fact-4-{number}"].seq,)
                assert answer.repeated == (True,)
            other = msgspec.structs.replace(delta(4, 2), payload={"delta": "y"})
            with pytest.raises(ConflictingFact):
                await journal.append([other])
            with pytest.raises(ConflictingFact):
                await journal.append([make_fact(below[0].id.removeprefix("fact-"), "elsewhere")])
            assert (await journal.position("fact-4-2")).seq == gone["fact-4-2"].seq

    @pytest.mark.requirement("journal.restore.goes_on")
    async def test_a_restored_journal_goes_on_like_any_other(self, backend: Backend):
        image = await memory_image()
        head, floor = image.figures[1], image.figures[2]
        async with backend.open() as journal:
            await journal.restore(image.restoration())
            last = {record.thread_id: record.last_sequence for record in image.records}
            answer = await journal.append([make_fact("new", "talk"), make_fact("newer", "other")])
            assert answer.seqs == (head + 1, head + 2)
            assert answer.sequences == (last["talk"] + 1, 1)
            with pytest.raises(CursorExpired):
                await collect(journal.read(Cursor(answer.epoch, floor - 1)))
            saved = await journal.save_snapshot("talk", answer.cursor, b"state")
            assert await journal.snapshot("talk") == saved
            answered = {"event_class": "action.resolved", "action_id": "a"}
            await journal.append([make_fact("answer", "asking", **answered)])
            await journal.retain(RetentionPolicy(keep_facts=8))
            await journal.append([make_fact(number) for number in range(3)])
            assert (await journal.verify()).ok
            seqs = [seq for seq, _ in await collect(journal.read())]
        async with backend.reopen() as journal:
            assert (await journal.verify()).ok
            assert [seq for seq, _ in await collect(journal.read())] == seqs

    @pytest.mark.requirement("journal.restore.refused")
    async def test_only_an_empty_journal_is_restored_into(self, backend: Backend):
        image = await memory_image()
        async with backend.open() as journal:
            await journal.append([make_fact(1)])
            with pytest.raises(RestoreRefused):
                await journal.restore(image.restoration())
            assert await collect(journal.read()) == [(1, "fact-1")]

    @pytest.mark.requirement("journal.restore.refused")
    async def test_a_journal_that_cannot_have_been_is_not_restored(self, backend: Backend):
        image = await memory_image()
        twice = [PresentFact(1, image.facts[0][1]), PresentFact(2, image.facts[0][1])]
        async with backend.open() as journal:
            with pytest.raises(RestoreRefused):
                await journal.restore(Restoration(floor=0, entries=twice, threads=()))

    @pytest.mark.requirement("journal.restore.same")
    async def test_a_seq_of_which_nothing_is_known_stays_a_gap(self, backend: Backend):
        image = await memory_image()
        entries = [PresentFact(seq, line) for seq, line in image.facts]
        floor = image.figures[2]
        restoration = Restoration(floor=floor, entries=entries, threads=image.records)
        async with backend.open() as journal:
            await journal.restore(restoration)
            assert (await image_of(journal)) == msgspec.structs.replace(image, removed=[])
            assert (await journal.verify()).ok
