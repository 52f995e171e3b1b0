"""One commit in the making: what a refused request leaves behind, and what keys facts get."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts.fact import Fact
from factwire.journal import AppendRefused, AppendResult, ConflictingFact
from factwire.journal import filter as filters
from factwire.journal.admission import ExistingFact, prepare_facts
from factwire.journal.commit_group import CommitGroup
from factwire.journal.filter import list_keys_and_thread
from tests.journal.contract import make_fact


class Stored:
    """A journal that has one fact, `fact-0` of thread `t`."""

    def __init__(self) -> None:
        self.fact = make_fact(0, sequence=7)
        (entry,) = prepare_facts([self.fact])
        self._known = ExistingFact(1, 7, entry.line)

    def find_existing(self, fact_id: str) -> ExistingFact | None:
        return self._known if fact_id == self.fact.id else None

    def last_sequence(self, thread_id: str) -> int | None:
        return 7 if thread_id == "t" else None


def new_group() -> CommitGroup:
    return CommitGroup(Stored(), epoch="e", first=2, doubtful=["fact-0", "fact-1"])


def admit_or_refuse(group: CommitGroup, batch: Sequence[Fact]) -> AppendResult | None:
    try:
        return group.admit(prepare_facts(batch))
    except AppendRefused:
        return None


facts = st.builds(
    make_fact,
    st.integers(0, 4),
    st.sampled_from(["t", "u", None]),
    sequence=st.sampled_from([None, 1, 7, 8, 9]),
    title=st.sampled_from(["a", "b"]),
)


@given(st.lists(st.lists(facts, min_size=1, max_size=3), max_size=6))
@pytest.mark.requirement("journal.append.group")
def test_a_commit_is_the_same_with_refused_requests_and_without(requests: list[list[Fact]]):
    group, again = new_group(), new_group()
    answers = [admit_or_refuse(group, batch) for batch in requests]
    kept = [batch for batch, answer in zip(requests, answers, strict=True) if answer is not None]
    assert [admit_or_refuse(again, batch) for batch in kept] == [each for each in answers if each]
    assert list(again.list_placed()) == list(group.list_placed())
    assert again.lasts == group.lasts


@pytest.mark.requirement("journal.append.group")
def test_an_id_that_was_doubtful_is_looked_up_after_its_request_was_refused():
    group = new_group()
    assert admit_or_refuse(group, [make_fact(1), make_fact(2, sequence=99)]) is None
    assert admit_or_refuse(group, [make_fact(1)]) == AppendResult("e", (2,), (8,), (False,))
    with pytest.raises(ConflictingFact):
        group.admit(prepare_facts([make_fact(0, sequence=7, title="other")]))


@given(
    st.dictionaries(
        st.sampled_from(["project_id", "session_id", "thread_id", "run_id", "turn_id", "task_id"]),
        st.sampled_from(["", "x", "y"]),
    ),
    st.dictionaries(
        st.sampled_from(["projectId", "thread_id", "turnId", "delta"]), st.sampled_from(["x", "z"])
    ),
)
@pytest.mark.requirement("journal.read.filter")
def test_keys_are_the_same_whether_they_were_put_together_before_or_not(
    ids: dict[str, str], payload: dict[str, str]
):
    fact = make_fact(1, ids.get("thread_id"), payload=payload, **ids)
    filters.KEYS_OF_IDS.clear()
    fresh = list_keys_and_thread(fact)
    assert list_keys_and_thread(fact) == fresh
    (entry,) = prepare_facts([fact])
    assert (entry.keys, entry.thread) == fresh
    assert entry.thread == filters.find_thread_id(fact)


def test_remembered_keys_are_bounded_in_number_and_in_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(filters, "_REMEMBERED", 16)
    filters.KEYS_OF_IDS.clear()
    for number in range(100):
        prepare_facts([make_fact(number, f"thread-{number}", sequence=1)])
        prepare_facts([make_fact(number, "long" * 1_000 + str(number), sequence=1)])
    assert 0 < len(filters.KEYS_OF_IDS) <= 16
    assert all(len(thread or "") < 100 for _, thread in filters.KEYS_OF_IDS.values())
