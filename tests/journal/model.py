"""A model of a journal, and a machine that holds a real one against it, step by step.

The model is three dictionaries and a list. A backend joins with `check_model(open)`, where `open`
makes a place (see `contract.Backend`) for each example.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

from factwire.facts.fact import Fact
from factwire.journal import (
    ConflictingFact,
    Cursor,
    FactBatch,
    Filter,
    JournalError,
    SequenceConflict,
)
from tests.journal.contract import WAIT, Backend, collect, make_fact

THREADS = [None, "a", "b", "c"]
CLASSES = ["model.delta", "tool.started", "tool.result", "turn.started", "turn.completed"]
IDS = st.integers(0, 60)


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    return make_fact(
        draw(IDS),
        draw(st.sampled_from(THREADS)),
        event_class=draw(st.sampled_from(CLASSES)),
        sequence=draw(st.one_of(st.none(), st.none(), st.integers(1, 6))),
        turn_id=draw(st.sampled_from([None, "u", "v"])),
    )


FILTERS = st.one_of(
    st.none(),
    st.builds(Filter, thread=st.sampled_from(["a", "b", "nobody"])),
    st.builds(Filter, classes=st.sampled_from([("tool",), ("turn.", "model.delta")])),
    st.builds(Filter, turn=st.just("u"), classes=st.just(("tool",))),
)


class Follower:
    """A follower of the real journal, and how much of the model it has been given."""

    def __init__(
        self, batches: AsyncIterator[FactBatch], after: int, wanted: Filter | None
    ) -> None:
        self.stretches = batches
        self.after = after
        self.wanted = wanted


class JournalMachine(RuleBasedStateMachine):
    places: Callable[[], AbstractContextManager[Backend]]

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.place = self.places()
        self.backend = self.place.__enter__()
        self.log: list[Fact] = []
        self.seqs: dict[str, int] = {}
        self.lasts: dict[str, int] = {}
        self.snapshots: dict[str, dict[int, bytes]] = {}
        self.followers: list[Follower] = []
        self.journal = self.backend.open()
        self.run(self.journal.__aenter__())
        self.epoch = self.run(self.journal.head()).epoch

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            report = self.run(self.journal.verify())
            assert (report.ok, report.facts) == (True, len(self.log))
            self.leave()
            self.place.__exit__(None, None, None)
            self.runner.close()

    def run(self, work: Any) -> Any:
        async def run_bounded() -> Any:
            return await asyncio.wait_for(work, WAIT)

        return self.runner.run(run_bounded())

    def leave(self) -> None:
        for follower in self.followers:
            self.run(cast("Any", follower.stretches).aclose())
        self.followers.clear()
        self.run(self.journal.__aexit__(None, None, None))

    @rule(batch=st.lists(facts(), min_size=1, max_size=5))
    def append(self, batch: list[Fact]) -> None:
        expected = self.predict(batch)
        if isinstance(expected, tuple):
            assert self.run(self.journal.append(batch)).seqs == expected
        else:
            with pytest.raises(expected):
                self.run(self.journal.append(batch))

    @rule(batches=st.lists(st.lists(facts(), min_size=1, max_size=2), min_size=2, max_size=6))
    def append_at_once(self, batches: list[list[Fact]]) -> None:
        async def together() -> list[Any]:
            work = [self.journal.append(batch) for batch in batches]
            return await asyncio.gather(*work, return_exceptions=True)

        answers = self.run(together())
        for batch, answer in zip(batches, answers, strict=True):
            expected = self.predict(batch)
            found = type(answer) if isinstance(answer, JournalError) else answer.seqs
            assert found == expected

    @precondition(lambda self: self.log)
    @rule(data=st.data(), other=st.booleans())
    def repeat(self, data: st.DataObject, other: bool) -> None:
        fact = data.draw(st.sampled_from(self.log))
        if other:
            fact = make_fact(fact.id.removeprefix("fact-"), fact.thread_id, title="another body")
        self.append([fact])

    @rule(data=st.data(), wanted=FILTERS, limit=st.one_of(st.none(), st.integers(1, 5)))
    def read(self, data: st.DataObject, wanted: Filter | None, limit: int | None) -> None:
        after = data.draw(st.integers(0, len(self.log)))
        cursor = None if after == 0 else Cursor(self.epoch, after)
        found = self.run(collect(self.journal.read(cursor, filter=wanted, limit=limit)))
        assert found == self.expected_facts(after, wanted)[:limit]

    @precondition(lambda self: len(self.followers) < 3)
    @rule(data=st.data(), wanted=FILTERS)
    def follow(self, data: st.DataObject, wanted: Filter | None) -> None:
        after = data.draw(st.integers(0, len(self.log)))
        batches = self.journal.follow(Cursor(self.epoch, after), filter=wanted)
        self.followers.append(Follower(batches, after, wanted))

    @precondition(lambda self: self.followers)
    @rule(data=st.data())
    def catch_up(self, data: st.DataObject) -> None:
        follower = data.draw(st.sampled_from(self.followers))
        expected = self.expected_facts(follower.after, follower.wanted)
        found: list[tuple[int, str]] = []
        while len(found) < len(expected):
            batch: FactBatch = self.run(anext(follower.stretches))
            assert batch.first == follower.after + 1
            follower.after = batch.last
            found += [(seq, fact.id) for seq, fact in batch.facts()]
        assert found == expected

    @rule(data=st.data(), thread=st.sampled_from(["a", "b"]))
    def snapshot(self, data: st.DataObject, thread: str) -> None:
        seq = data.draw(st.integers(0, len(self.log)))
        state = b"state at %d" % seq
        self.run(self.journal.save_snapshot(thread, Cursor(self.epoch, seq), state))
        self.snapshots.setdefault(thread, {})[seq] = state

    @rule(data=st.data(), thread=st.sampled_from(["a", "b"]))
    def find_snapshot(self, data: st.DataObject, thread: str) -> None:
        top = data.draw(st.integers(0, len(self.log)))
        known = {seq: each for seq, each in self.snapshots.get(thread, {}).items() if seq <= top}
        found = self.run(self.journal.snapshot(thread, at=Cursor(self.epoch, top)))
        assert (found.data if found else None) == (known[max(known)] if known else None)

    @rule()
    def list_threads(self) -> None:
        last: dict[str, int] = {}
        for seq, fact in enumerate(self.log, start=1):
            if fact.thread_id:
                last[fact.thread_id] = seq
        rows = self.run(self.journal.threads()).threads
        newest = sorted(last, key=lambda thread: -last[thread])
        assert [row.thread_id for row in rows] == newest
        assert {row.thread_id: row.last_sequence for row in rows} == self.lasts

    @rule()
    def restart(self) -> None:
        self.leave()
        self.journal = self.backend.reopen()
        self.run(self.journal.__aenter__())
        assert self.run(self.journal.head()) == Cursor(self.epoch, len(self.log))

    def predict(self, batch: list[Fact]) -> tuple[int, ...] | type[JournalError]:
        """What the journal must answer; the model takes in what it must take in."""
        log, seqs, lasts = list(self.log), dict(self.seqs), dict(self.lasts)
        answer: list[int] = []
        for fact in batch:
            if fact.id in seqs:
                if not same_body(log[seqs[fact.id] - 1], fact):
                    return ConflictingFact
            else:
                thread, sequence = fact.thread_id, fact.sequence
                if thread is not None:
                    last = lasts.get(thread)
                    if last is not None and sequence not in (None, last + 1):
                        return SequenceConflict
                    lasts[thread] = sequence or (1 if last is None else last + 1)
                    fact = with_sequence(fact, lasts[thread])  # noqa: PLW2901
                log.append(fact)
                seqs[fact.id] = len(log)
            answer.append(seqs[fact.id])
        self.log, self.seqs, self.lasts = log, seqs, lasts
        return tuple(answer)

    def expected_facts(self, after: int, wanted: Filter | None) -> list[tuple[int, str]]:
        """What a reader must be given past a seq, by looking at every fact."""
        return [
            (seq, fact.id)
            for seq, fact in enumerate(self.log, start=1)
            if seq > after and (wanted is None or passes(fact, wanted))
        ]


def with_sequence(fact: Fact, sequence: int | None) -> Fact:
    return msgspec.structs.replace(fact, sequence=sequence)


def same_body(stored: Fact, fact: Fact) -> bool:
    return stored in (fact, with_sequence(fact, stored.sequence) if fact.sequence is None else fact)


def passes(fact: Fact, wanted: Filter) -> bool:
    named = [(wanted.thread, fact.thread_id), (wanted.turn, fact.turn_id)]
    of_class = [
        f"{fact.event_class}.".startswith(f"{name.rstrip('.')}.") for name in wanted.classes
    ]
    return all(want in (None, has) for want, has in named) and (not of_class or any(of_class))


def check_model(places: Callable[[], AbstractContextManager[Backend]], examples: int = 500) -> None:
    """Run the machine: that many examples of 50 steps in CI, fewer while writing."""
    thorough = settings.default is not None and settings.default.max_examples >= 200
    machine = type("Machine", (JournalMachine,), {"places": staticmethod(places)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples if thorough else min(examples, 40),
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
