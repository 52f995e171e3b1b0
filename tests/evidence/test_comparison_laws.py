"""Laws of comparing: a run is like itself, sides can be exchanged, one edit is one difference."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from factwire.evidence.benchmark_trials import compare_trials, read_trials
from factwire.evidence.run_comparison import Comparison
from factwire.evidence.run_diff import (
    AlignmentKeys,
    ComparedText,
    align,
    compare,
    diff_texts,
    walk_steps,
)
from factwire.evidence.schemas import comparison_files, comparison_schemas
from factwire.facts import Fact
from tests.evidence.compared_runs import (
    NAMES,
    STREAMS,
    Call,
    TurnSpec,
    facts_of,
    mint_again,
    mirror_comparison,
    sort_comparison,
    stream,
)
from tests.facts.strategies import facts as any_facts

ROOT = STREAMS.parents[1]


@pytest.mark.requirement("comparison.volatile")
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_stream_is_the_same_as_itself_and_as_itself_minted_anew(name: str):
    facts = stream(name)
    again = mint_again(facts)
    assert {fact.id for fact in facts}.isdisjoint(fact.id for fact in again)
    for other in (facts, again):
        comparison = compare(facts, other)
        assert comparison.outside == []
        assert [turn.differences for turn in comparison.turns if turn.status != "same"] == []
        assert comparison.same


@pytest.mark.requirement("comparison.mirrored")
@pytest.mark.parametrize("apart", [1, 7, 23])
def test_exchanging_the_sides_exchanges_the_differences_and_nothing_else(apart: int):
    for place, name in enumerate(NAMES):
        a, b = stream(name), stream(NAMES[(place + apart) % len(NAMES)])
        assert sort_comparison(mirror_comparison(compare(a, b))) == sort_comparison(
            compare(b, a)
        ), name


WORDS = st.sampled_from(["read", "write", "search", "list", "stop"])
CALLS = st.builds(
    Call, WORDS, st.dictionaries(WORDS, WORDS | st.integers(0, 3), max_size=2), output=WORDS
)
TURNS = st.builds(
    TurnSpec,
    prompt=st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
    answer=st.lists(WORDS, min_size=1, max_size=4).map("\n".join),
    calls=st.lists(CALLS, max_size=4),
)
RUNS = st.lists(TURNS, max_size=6)


@pytest.mark.requirement("comparison.mirrored")
@settings(max_examples=60, deadline=None)
@given(RUNS, RUNS)
def test_any_two_runs_compare_the_same_from_either_side(a: list[TurnSpec], b: list[TurnSpec]):
    one, other = facts_of(a), facts_of(b, "b")
    assert sort_comparison(mirror_comparison(compare(one, other))) == sort_comparison(
        compare(other, one)
    )


@pytest.mark.requirement("comparison.planted")
@settings(max_examples=60, deadline=None)
@given(RUNS, TURNS, st.data())
def test_one_turn_put_in_anywhere_is_all_that_differs(
    run: list[TurnSpec], new: TurnSpec, data: Any
):
    place = data.draw(st.integers(0, len(run)))
    comparison = compare(facts_of(run), facts_of([*run[:place], new, *run[place:]], "b"))
    statuses = [turn.status for turn in comparison.turns]
    assert sorted(statuses) == ["only_b", *["same"] * len(run)]


@pytest.mark.requirement("comparison.planted")
@settings(max_examples=60, deadline=None)
@given(RUNS.filter(bool), CALLS, st.data())
def test_one_call_put_in_anywhere_is_all_that_differs(run: list[TurnSpec], new: Call, data: Any):
    turn: int = data.draw(st.integers(0, len(run) - 1))
    place: int = data.draw(st.integers(0, len(run[turn].calls)))
    after = msgspec.convert(msgspec.to_builtins(run), list[TurnSpec])
    after[turn].calls.insert(place, new)
    comparison = compare(facts_of(run), facts_of(after, "b"))
    found = [each for each in comparison.turns if each.status != "same"]
    assert [each.status for each in found] == ["differs"]
    [difference] = found[0].differences
    assert (difference.aspect, difference.kind, difference.subject) == ("tools", "added", new.name)


@st.composite
def any_run(draw: st.DrawFn) -> list[Fact]:
    """Facts of any class with any payload, on one thread, in a few turns."""
    found = draw(st.lists(any_facts(), max_size=12))
    return [
        msgspec.structs.replace(
            fact,
            id=f"evt_{place}",
            sequence=place,
            thread_id="t",
            turn_id=draw(st.sampled_from("xy")),
        )
        for place, fact in enumerate(found)
    ]


@pytest.mark.fuzz
@pytest.mark.requirement("comparison.mirrored")
@settings(max_examples=100, deadline=None)
@given(any_run(), any_run())
def test_whatever_facts_say_they_can_be_compared_from_either_side(a: list[Fact], b: list[Fact]):
    assert compare(a, a).same
    comparison = compare(a, b)
    assert sort_comparison(mirror_comparison(comparison)) == sort_comparison(compare(b, a))
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison
    assert compare_trials(read_trials(a), read_trials(a)).same


def places(lists: list[str], taken: list[int | None]) -> list[str]:
    return [lists[place] for place in taken if place is not None]


KEYS = st.lists(st.sampled_from("abcdef"), max_size=30)


@pytest.mark.requirement("comparison.bounded")
@settings(max_examples=200, deadline=None)
@given(KEYS, KEYS)
def test_steps_walk_through_both_lists_whole_and_pair_only_what_fits(a: list[str], b: list[str]):
    found = align(AlignmentKeys(a, a), AlignmentKeys(b, b), lambda i, j: int(a[i] == b[j]))
    walk = list(walk_steps(len(a), len(b), found))
    assert places(a, [at_a for at_a, _ in walk]) == a
    assert places(b, [at_b for _, at_b in walk]) == b
    assert all(a[i] == b[j] for i, j in found)


@pytest.mark.requirement("comparison.bounded")
@pytest.mark.parametrize("common", [0, 3, 50])
def test_the_work_of_aligning_grows_with_the_lists_and_not_with_their_product(common: int):
    def work(length: int) -> int:
        calls = 0

        def score(i: int, j: int) -> int:
            nonlocal calls
            calls += 1
            return int(a[i] == b[j])

        a = [f"same {i}" if common and i % 100 < common else "x" for i in range(length)]
        b = [f"same {i}" if common and i % 100 < common else "y" for i in range(length)]
        align(AlignmentKeys(a, a), AlignmentKeys(b, b), score)
        return calls

    long = work(16_000)
    assert long <= 100 * 16_000
    assert long <= 5 * max(work(4_000), 1)


@pytest.mark.requirement("comparison.bounded")
def test_a_diff_of_endless_texts_holds_a_bounded_number_of_lines():
    a = ComparedText("a\n" * 20_000, "a\n" * 20_000)
    b = ComparedText("b\n" * 20_000, "b\n" * 20_000)
    change = diff_texts(a, b)
    assert (change.removed_lines, change.added_lines) == (20_000, 20_000)
    assert (len(change.lines), change.left_out) == (400, 39_601)


@pytest.mark.requirement("comparison.contract")
@pytest.mark.parametrize("name", comparison_files())
def test_the_committed_schema_is_the_generated_one(name: str):
    assert (ROOT / "schemas" / name).read_text("utf-8") == comparison_files()[name]


@pytest.mark.requirement("comparison.contract")
@pytest.mark.parametrize("apart", [1, 5])
def test_every_comparison_fits_its_schema(apart: int):
    schema = comparison_schemas()["comparison.schema.json"]
    validator: Any = Draft202012Validator(schema)
    for place, name in enumerate(NAMES):
        comparison = compare(stream(name), stream(NAMES[(place + apart) % len(NAMES)]))
        validator.validate(msgspec.json.decode(msgspec.json.encode(comparison)))
