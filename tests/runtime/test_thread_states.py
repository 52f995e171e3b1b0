"""Moments of a thread: the same state whichever way one comes to them."""

from typing import Any

import pytest

from factwire.facts import Fact
from factwire.journal import Cursor, Filter, Journal, open_journal
from factwire.projection import Projection, encode_state
from factwire.runtime.limits import ANCHOR_FACTS, PAST_STATES
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.thread_states import ThreadStates

pytestmark = pytest.mark.asyncio

LENGTH = 3 * ANCHOR_FACTS


class Counting:
    """A journal that counts the facts that are read of it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.facts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def read(self, *args: Any, **how: Any) -> Any:
        async for stretch in self._journal.read(*args, **how):
            if how.get("filter") is not None:
                self.facts += sum(1 for _ in stretch.facts())
            yield stretch


async def write_facts(journal: Journal, thread: str) -> list[Fact]:
    mint = Mint("elsewhere")
    scope = FactScope(thread_id=thread, turn_id=f"{thread}-turn", session_id="session")
    facts = [mint.fact(scope, name) for name in ("turn.submitted", "turn.started")]
    facts += [
        mint.fact(scope, "model.delta", {"delta": f"{n} "}, message_id="m") for n in range(LENGTH)
    ]
    for at in range(0, len(facts), 64):
        await journal.append(facts[at : at + 64])
    return facts


def state_after(thread: str, facts: list[Fact]) -> bytes:
    projection = Projection(thread)
    for fact in facts:
        projection.replay(fact)
    return encode_state(projection.state)


@pytest.mark.requirement("workbench.moment")
async def test_a_moment_is_the_same_from_every_side_and_steps_back_are_short():
    async with open_journal("memory:") as opened:
        facts = await write_facts(opened, "thread")
        journal: Any = Counting(opened)
        states, epoch = ThreadStates(journal), (await opened.head()).epoch
        far = LENGTH - 10
        stored = [
            fact
            async for stretch in opened.read(filter=Filter(thread="thread"))
            for _, fact in stretch.facts()
        ]
        assert len(stored) == len(facts)
        for seq in (far, far - 1, far - 2, far + 3, 7, far):
            seen = await states.at("thread", Cursor(epoch, seq))
            assert encode_state(seen.projection.state) == state_after("thread", stored[:seq])
        journal.facts = 0
        await states.at("thread", Cursor(epoch, far - 1))
        assert journal.facts < LENGTH / 2


@pytest.mark.requirement("workbench.moment")
async def test_moments_of_few_threads_are_kept():
    async with open_journal("memory:") as journal:
        names = [f"thread-{n}" for n in range(PAST_STATES + 2)]
        for name in names:
            await write_facts(journal, name)
        states, head = ThreadStates(journal), await journal.head()
        for name in names:
            await states.at(name, head)
        assert len(states._past) == len(states._anchors) == PAST_STATES


async def test_each_load_gives_a_projection_of_its_own_with_all_facts():
    async with open_journal("memory:") as journal:
        await write_facts(journal, "thread")
        states, head = ThreadStates(journal), await journal.head()
        shared, first, second = (
            await states.now("thread"),
            await states.load("thread"),
            await states.load("thread"),
        )
        assert len({id(each.projection) for each in (shared, first, second)}) == 3
        assert encode_state(first.projection.state) == encode_state(shared.projection.state)
        assert encode_state(second.projection.state) == encode_state(shared.projection.state)
        assert shared.cursor == first.cursor == second.cursor == head


async def test_a_load_goes_on_from_a_checkpoint_and_without_one_that_can_be_read():
    async with open_journal("memory:") as opened:
        await write_facts(opened, "thread")
        whole = await ThreadStates(opened).load("thread")
        await opened.save_snapshot("thread", whole.cursor, whole.projection.checkpoint())
        journal: Any = Counting(opened)
        restored = await ThreadStates(journal).load("thread")
        assert journal.facts == 0
        await opened.save_snapshot("thread", whole.cursor, b"of another version")
        replayed = await ThreadStates(journal).load("thread")
        assert journal.facts == LENGTH + 2
        for each in (restored, replayed):
            assert each.cursor == whole.cursor
            assert encode_state(each.projection.state) == encode_state(whole.projection.state)


async def test_a_load_reads_what_is_written_while_it_reads():
    async with open_journal("memory:") as opened:
        await write_facts(opened, "thread")
        scope = FactScope(thread_id="thread", turn_id="thread-turn", session_id="session")
        late = Mint("elsewhere").fact(scope, "model.delta", {"delta": "late"}, message_id="m")

        class Growing(Counting):
            async def read(self, *args: Any, **how: Any) -> Any:
                await opened.append([late])
                async for batch in opened.read(*args, **how):
                    yield batch

        journal: Any = Growing(opened)
        loaded = await ThreadStates(journal).load("thread")
        assert loaded.projection.state.hydration.event_count == LENGTH + 3
        assert loaded.cursor == await opened.head()


@pytest.mark.requirement("workbench.moment")
async def test_a_long_way_is_gone_once_and_later_moments_begin_near_their_place(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("factwire.runtime.thread_states.REPLAY_FACTS", 100)
    async with open_journal("memory:") as opened:
        facts = await write_facts(opened, "thread")
        whole = await ThreadStates(opened).load("thread")
        journal: Any = Counting(opened)
        states, epoch = ThreadStates(journal), (await opened.head()).epoch
        assert encode_state((await states.now("thread")).projection.state) == encode_state(
            whole.projection.state
        )
        assert journal.facts < LENGTH / 2
        stored = [fact async for batch in opened.read() for _, fact in batch.facts()]
        for seq in (20, len(facts) - 5, 40, len(facts) - 3):
            seen = await states.at("thread", Cursor(epoch, seq))
            assert encode_state(seen.projection.state) == state_after("thread", stored[:seq])
