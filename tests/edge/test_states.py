"""Moments of a thread: the same state whichever way one comes to them."""

from typing import Any

import pytest

from factwire.facts import Fact
from factwire.journal import Cursor, Filter, Journal, open_journal
from factwire.projection import Projection, encode_state
from factwire.runtime.mint import FactScope, Mint
from factwire.serving.limits import ANCHOR_FACTS, PAST_STATES
from factwire.serving.streams.thread_states import ThreadStates

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


async def told(journal: Journal, thread: str) -> list[Fact]:
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
        facts = await told(opened, "thread")
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
            await told(journal, name)
        states, head = ThreadStates(journal), await journal.head()
        for name in names:
            await states.at(name, head)
        assert len(states._past) == len(states._anchors) == PAST_STATES
