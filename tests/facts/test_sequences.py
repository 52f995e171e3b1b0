"""The order of a thread: where it starts, what is a gap, and what settles one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Issue, SequenceTracker, inspect_stream, inspection, limits
from tests.facts.samples import fact, wire, without

Step = (
    tuple[int | None, str | None]
    | tuple[int | None, str | None, str]
    | tuple[int | None, str | None, str, dict[str, Any]]
)
CARRIED: dict[str, Any] = {"toSequence": 99, "messages": []}


def gaps(*facts: Step) -> list[str]:
    """Where facts of (sequence, thread, class, payload) leave gaps."""
    tracker = SequenceTracker()
    for index, (sequence, thread, *rest) in enumerate(facts):
        name = str(rest[0]) if rest else "run.status"
        payload = rest[1] if len(rest) > 1 else {}
        item = fact(name)
        item = msgspec.structs.replace(item, sequence=sequence, thread_id=thread, payload=payload)
        tracker.feed(item, f"$[{index}]")
    return [issue.path for issue in tracker.gaps()]


@pytest.mark.requirement("sequences.start-anywhere")
@pytest.mark.parametrize("start", [-7, 0, 1, 10**15])
def test_a_thread_starts_anywhere_and_rises_by_one(start: int):
    assert gaps(*((start + step, "a") for step in range(5))) == []


@pytest.mark.requirement("sequences.beside-threads")
def test_an_edges_own_facts_stand_in_no_thread_and_need_no_sequence():
    own = without(wire("runner.online", 1, payload={"runnerId": "r"}), "sequence", "threadId")
    assert inspect_stream([own]) == []
    for other in (without(wire("run.status", 1), "sequence"), {**own, "threadId": "a"}):
        assert [issue.path for issue in inspect_stream([other])] == ["$[0].sequence"]


@pytest.mark.requirement("validation.sequence_gap")
@pytest.mark.parametrize("second", [3, 1, 0, -1, 100])
def test_what_does_not_follow_is_a_gap(second: int):
    stream = [wire("run.status", 1, threadId="a"), {**wire("run.status", second), "id": "x"}]
    assert inspect_stream(stream) == [
        Issue("sequence_gap", "$[1].sequence", f"expected sequence 2, got {second}")
    ]


@pytest.mark.requirement("validation.sequence_gap")
def test_after_a_gap_the_count_goes_on_from_there():
    assert gaps((1, "a"), (5, "a"), (6, "a"), (9, "a")) == ["$[1].sequence", "$[3].sequence"]


@pytest.mark.requirement("sequences.per-thread")
def test_threads_are_counted_apart():
    assert gaps((1, "a"), (7, "b"), (2, "a"), (8, "b"), (3, "a")) == []
    assert gaps((1, "a"), (7, "b"), (3, "a"), (9, "b")) == ["$[2].sequence", "$[3].sequence"]


@pytest.mark.requirement("sequences.per-thread")
def test_subagents_share_the_order_of_their_thread():
    facts = [
        wire("run.status", 1, threadId="a"),
        wire("subagent.started", 2, threadId="a", subagentId="s", taskId="t"),
        wire("run.status", 3, threadId="a"),
    ]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("sequences.per-thread")
def test_a_thread_may_be_named_in_the_payload():
    facts = [
        wire("run.status", 1, threadId="a"),
        wire("run.status", 9, payload={"thread_id": "b"}),
        wire("run.status", 2, payload={"threadId": "a"}),
    ]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("sequences.unnamed-thread")
def test_a_fact_without_a_thread_belongs_to_the_one_before_it():
    assert gaps((1, "a"), (2, None), (3, "a")) == []
    assert gaps((1, "a"), (7, "b"), (8, None), (2, "a")) == []


@pytest.mark.requirement("sequences.unnamed-thread")
def test_facts_before_the_first_thread_belong_to_it():
    assert gaps((1, None), (2, None), (3, "a"), (4, "a")) == []
    assert gaps((1, None), (3, None), (5, "a")) == ["$[1].sequence", "$[2].sequence"]
    assert gaps((1, None), (3, None), (4, "a", "snapshot.repaired", CARRIED)) == []


@pytest.mark.requirement("sequences.unassigned")
def test_a_fact_without_a_sequence_waits_for_one():
    assert gaps((1, "a"), (None, "a"), (2, "a")) == []


@pytest.mark.requirement("sequences.repaired")
@pytest.mark.parametrize("repair", ["stream.repair.completed", "snapshot.repaired"])
def test_a_repair_settles_the_gaps_before_it(repair: str):
    assert gaps((1, "a"), (5, "a"), (6, "a", repair, CARRIED)) == []
    assert gaps((1, "a"), (5, "a", repair, CARRIED)) == []


@pytest.mark.requirement("sequences.repaired")
@pytest.mark.parametrize("repair", ["stream.repair.completed", "snapshot.repaired"])
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"messages": []},
        {"toSequence": 5},
        {"toSequence": 3, "messages": []},
        {"fromSequence": 3, "toSequence": 5, "messages": []},
    ],
    ids=str,
)
def test_a_repair_settles_no_gap_that_it_does_not_carry(repair: str, payload: dict[str, Any]):
    found = gaps((1, "a"), (5, "a"), (6, "a", repair, payload))
    assert found == ["$[1].sequence"]


@pytest.mark.requirement("sequences.repaired")
@pytest.mark.parametrize(("late", "settled"), [((2, 3, 4), True), ((2, 4), False), ((), False)])
def test_a_repair_that_carries_nothing_settles_what_came_after_all(
    late: tuple[int, ...], settled: bool
):
    stream: list[Step] = [(1, "a"), (5, "a"), *((place, "a") for place in late)]
    stated = {"fromSequence": 1, "toSequence": 5}
    found = gaps(*stream, (6, "a", "stream.repair.completed", stated))
    assert (found == []) is settled


@pytest.mark.requirement("sequences.repaired")
def test_a_repair_settles_nothing_after_it_and_nothing_elsewhere():
    repair = "stream.repair.completed"
    assert gaps((1, "a"), (2, "a", repair, CARRIED), (5, "a")) == ["$[2].sequence"]
    assert gaps((1, "a"), (5, "a"), (1, "b"), (2, "b", repair, CARRIED)) == ["$[1].sequence"]


@pytest.mark.requirement("sequences.repaired")
def test_a_repair_without_a_sequence_settles_too():
    assert gaps((1, "a"), (5, "a"), (None, "a", "stream.repair.completed", CARRIED)) == []


@pytest.mark.requirement("sequences.repaired")
@pytest.mark.parametrize("name", ["stream.gap.detected", "stream.repair.started"])
def test_a_gap_that_is_only_noticed_is_still_a_gap(name: str):
    assert gaps((1, "a"), (5, "a"), (6, "a", name)) == ["$[1].sequence"]


@pytest.mark.requirement("sequences.invalid-facts")
def test_a_fact_that_is_refused_holds_its_place():
    stream: list[Any] = [
        wire("run.status", 1, threadId="a"),
        without(wire("run.status", 2, threadId="a"), "title"),
        msgspec.json.encode(without(wire("run.status", 3), "kind")),
        wire("run.status", 4, threadId="a"),
    ]
    assert [issue.path for issue in inspect_stream(stream)] == ["$[1].title", "$[2].kind"]


@pytest.mark.requirement("sequences.invalid-facts")
@pytest.mark.parametrize(
    "value", [[], None, {"sequence": "2"}, {"threadId": 7}, {"sequence": True}]
)
def test_what_states_no_place_holds_none(value: object):
    tracker = SequenceTracker()
    tracker.feed(fact("run.status", 1), "$[0]")
    tracker.feed_refused(value, "$[1]")
    tracker.feed(fact("run.status", 2), "$[2]")
    assert tracker.gaps() == []


@pytest.mark.requirement("sequences.bounded")
def test_threads_and_gaps_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inspection, "IDENTITY_WINDOW", 10)
    monkeypatch.setattr(inspection, "ISSUES_KEPT", 10)
    tracker = SequenceTracker()
    for number in range(100):
        tracker.feed(fact("run.status", 3 * number, threadId=f"t{number}"), "$")
        tracker.feed(fact("run.status", 3 * number + 2, threadId=f"t{number}"), "$")
    assert len(tracker._last) <= 10
    assert len(tracker.gaps()) == 10
    assert limits.ISSUES_KEPT == 10_000


@pytest.mark.requirement("sequences.bounded")
def test_settled_gaps_make_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inspection, "ISSUES_KEPT", 1)
    repair: Step = (6, "a", "snapshot.repaired", CARRIED)
    assert gaps((1, "a"), (5, "a"), repair, (9, "a")) == ["$[3].sequence"]


@pytest.mark.requirement("validation.sequence_gap")
@given(st.lists(st.integers(-3, 3), max_size=12))
def test_gaps_are_exactly_the_places_that_do_not_follow(numbers: list[int]):
    expected = [
        f"$[{index}].sequence"
        for index in range(1, len(numbers))
        if numbers[index] != numbers[index - 1] + 1
    ]
    assert gaps(*((number, "a") for number in numbers)) == expected
