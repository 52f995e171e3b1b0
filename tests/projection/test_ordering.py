"""The order of complete inputs: whatever order the facts are in, the state is the same."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.conformance.fixture_checks import fixtures
from factwire.facts import Fact, Intake, decode_fact, read_fact, write_fact
from factwire.facts.fact import id_of
from factwire.projection import Projection, ProjectionState, encode_state, order_facts, project
from factwire.projection.limits import HELD_FACTS
from tests.projection.fact_maker import THREAD, FactMaker, as_json, codes, texts
from tests.projection.generated_streams import (
    StreamBuilder,
    build_stream,
    duplicate_facts,
    other_body,
)
from tests.sources import recordings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Reader = Callable[[], list[Fact]]


def read_lines(path: Path) -> list[Fact]:
    return [decode_fact(line) for line in path.read_bytes().splitlines() if line.strip()]


def _list_inputs() -> dict[str, Reader]:
    """Every complete input that the project holds, by name."""
    found: dict[str, Reader] = {}
    for path in sorted([*EXAMPLES.glob("*.ndjson"), *EXAMPLES.glob("streams/*.ndjson")]):
        found[f"{path.parent.name}/{path.stem}"] = lambda path=path: read_lines(path)
    for fixture in fixtures():
        found[f"fixtures/{fixture.id}"] = lambda fixture=fixture: [
            decode_fact(msgspec.json.encode(event)) for event in fixture.events
        ]
    for path in recordings.RECORDINGS:
        found[recordings.name_of(path)] = lambda path=path: recordings.facts_of(path)
    return found


INPUTS = _list_inputs()
every_input = pytest.mark.parametrize("name", INPUTS)


def assert_any_order(facts: Sequence[Fact], shuffles: int, thread: str | None = None) -> None:
    expected = encode_state(project(facts, thread))
    for seed in range(shuffles):
        mixed = list(facts)
        random.Random(seed).shuffle(mixed)
        assert encode_state(project(mixed, thread)) == expected, seed


@every_input
@pytest.mark.requirement("projection.order.complete")
def test_every_input_comes_to_the_same_state_in_any_order(name: str):
    facts = INPUTS[name]()
    assert all(fact.sequence is not None for fact in facts)
    assert_any_order(facts, 20 if len(facts) < 200 else 3)


@pytest.mark.fault
@pytest.mark.nightly
@pytest.mark.timeout(900)
@every_input
@pytest.mark.requirement("projection.order.complete")
def test_every_input_comes_to_the_same_state_in_five_hundred_orders(name: str):
    assert_any_order(INPUTS[name](), 500)


@pytest.mark.requirement("projection.order.complete")
@pytest.mark.parametrize("seed", range(12))
def test_repeats_conflicts_and_child_threads_come_to_the_same_state_in_any_order(seed: int):
    source = random.Random(seed)
    facts = duplicate_facts(source, build_stream(seed, turns=2, hostile=seed % 2 == 1))
    facts += [other_body(facts[10]), msgspec.structs.replace(facts[20], id="rival")]
    assert_any_order(facts, 4, "thread")


@every_input
@pytest.mark.requirement("projection.order.complete")
def test_an_input_in_order_is_projected_as_it_stands(name: str):
    """The order that the rules give is the order in which the facts were recorded."""
    facts = INPUTS[name]()
    if not name.endswith(("out_of_order", "out-of-order")):
        assert order_facts(facts) == facts


TURN = {"turnId": "turn"}
PART = {"turnId": "turn", "messageId": "m", "partId": "p"}


def run_facts(run: str, minute: int, prompt: str, first: int = 1) -> list[Fact]:
    """A run that counts by itself."""
    tell = FactMaker(first)
    ids = {"runId": run, "turnId": f"turn-{run}"}
    part = {**ids, "messageId": f"m-{run}"}
    facts = [
        tell("turn.submitted", **ids, prompt=prompt),
        tell("turn.started", **ids),
        tell("tool.started", **part, toolCallId=f"call-{run}"),
        tell("tool.result", **part, toolCallId=f"call-{run}"),
        tell("model.delta", **part, delta=f"{prompt}, "),
        tell("model.delta", **part, delta="answered"),
        tell("turn.completed", **ids),
    ]
    return [
        msgspec.structs.replace(
            fact, id=f"{run}-{fact.sequence}", created_at=f"2026-06-10T00:{minute:02}:00Z"
        )
        for fact in facts
    ]


@pytest.mark.requirement("projection.order.runs")
@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 3), (5, 1), (0, 1)])
def test_runs_that_count_by_themselves_follow_each_other(first: int, second: int):
    facts = [*run_facts("run-2", 1, "one", first), *run_facts("run-10", 2, "two", second)]
    state = project(facts, THREAD)
    assert texts(state) == [
        ("user", ["one"]),
        ("assistant", ["one, answered"]),
        ("user", ["two"]),
        ("assistant", ["two, answered"]),
    ]
    assert [tool.state for tool in state.tools.values()] == ["output-available"] * 2
    hydration = state.hydration
    assert (hydration.status, hydration.event_count, hydration.gaps) == ("live", 14, [])
    assert_any_order(facts, 40, THREAD)


@pytest.mark.requirement("projection.order.runs")
def test_runs_that_began_at_the_same_time_follow_each_other_by_number():
    facts = [fact for run in (10, 9, 2) for fact in run_facts(f"run-{run}", 1, f"{run}")]
    prompts = [found for role, found in texts(project(facts, THREAD)) if role == "user"]
    assert prompts == [["2"], ["9"], ["10"]]


@pytest.mark.requirement("projection.order.runs")
def test_a_hole_in_one_run_stays_listed_in_the_next():
    facts = [*run_facts("a", 1, "one"), *run_facts("b", 2, "two")]
    state = project([fact for fact in facts if fact.id != "a-3"], THREAD)
    assert (state.hydration.status, state.hydration.event_count) == ("degraded", 13)
    assert as_json(state.hydration.gaps) == [{"fromSequence": 3, "toSequence": 3}]


@pytest.mark.requirement("projection.order.runs")
def test_a_live_stream_goes_on_with_a_run_that_counts_by_itself():
    projection = Projection(THREAD)
    projection.apply_all([*run_facts("a", 1, "one"), *run_facts("b", 2, "two")])
    assert projection.state.hydration.status == "live"
    assert [found for _, found in texts(projection.state)][-1] == ["two, answered"]


@pytest.mark.requirement("projection.order.complete")
@pytest.mark.parametrize("distance", [1, HELD_FACTS + 200, 5_000])
def test_a_fact_is_taken_however_late_it_comes(distance: int):
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("tool.started", **TURN, toolCallId="call")]
    facts += [tell("model.delta", **PART, delta="x") for _ in range(distance)]
    for late in (0, 1):
        mixed = [fact for place, fact in enumerate(facts) if place != late]
        mixed.append(facts[late])
        assert encode_state(project(mixed)) == encode_state(project(facts))
    assert project(facts).hydration.status == "live"


@pytest.mark.requirement("projection.order.complete")
def test_child_threads_come_after_the_facts_that_name_them_with_their_edges():
    tell, child, below = FactMaker(), FactMaker(thread="child"), FactMaker(thread="below")
    worker = {"subagentId": "s", "taskId": "t", "turnId": "turn"}
    inner = {"subagentId": "s", "taskId": "t", "turnId": "inner", "parentThreadId": THREAD}
    deep = {"subagentId": "d", "taskId": "t", "turnId": "deep", "parentThreadId": "child"}
    facts = [
        tell("turn.started", **TURN),
        tell("task.created", **TURN, taskId="t"),
        tell("subagent.spawned", **worker, childThreadId="child"),
        child("turn.started", sequence=1, **inner),
        child("subagent.spawned", **{**deep, "turnId": "inner"}, parentSubagentId="s"),
        below("model.delta", sequence=1, **deep, messageId="b", delta="deep"),
        child("model.delta", **inner, messageId="c", delta="inner"),
        tell("subagent.completed", **worker),
        tell("turn.completed", **TURN),
    ]
    # Clocks of the children that are wrong: they still do not come before their parents.
    facts = [
        msgspec.structs.replace(fact, created_at="2020-01-01T00:00:00Z")
        if fact.thread_id != THREAD
        else fact
        for fact in facts
    ]
    state = project(reversed(facts))
    assert state.thread_id == THREAD
    assert state.hydration.dropped == 0
    kinds = {(edge.source, edge.target) for edge in state.graph.edges.values()}
    assert {("task:t", "subagent:s"), ("subagent:s", "subagent:d")} <= kinds
    assert_any_order(facts, 60)


@pytest.mark.requirement("projection.order.complete")
def test_threads_that_name_each_other_as_parents_are_all_taken_out():
    one, two = FactMaker(thread="one"), FactMaker(thread="two")
    facts = [one("run.status", parentThreadId="two"), two("run.status", parentThreadId="one")]
    assert sorted(fact.id for fact in order_facts(facts)) == ["one-1", "two-1"]
    assert_any_order(facts, 4)


@pytest.mark.requirement("projection.order.complete")
def test_what_follows_a_real_hole_is_shown_and_the_hole_is_listed():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("tool.started", **TURN, toolCallId="lost")]
    facts += [tell("model.delta", **PART, delta="shown"), tell("turn.completed", **TURN)]
    state = project([facts[3], facts[0], facts[2]])
    assert texts(state) == [("assistant", ["shown"])]
    assert state.runtime.latest_turn_status == "completed"
    assert as_json(state.hydration) == {
        "status": "degraded",
        "cursor": 4,
        "received": 3,
        "eventCount": 3,
        "repeated": 0,
        "late": 0,
        "dropped": 0,
        "held": 0,
        "gaps": [{"fromSequence": 2, "toSequence": 2}],
        "reasons": [],
        "ignored": [],
    }
    assert codes(state) == ["window_overflow"]


@pytest.mark.requirement("projection.order.complete")
def test_facts_without_a_sequence_stay_behind_the_fact_they_follow():
    tell = FactMaker()
    first, second = tell("turn.started", **TURN), tell("run.status")
    loose = [tell("run.status", sequence=None, id=name) for name in "abc"]
    mixed = [loose[0], second, loose[1], first, loose[2]]
    assert [fact.id for fact in order_facts(mixed)] == ["a", "thread-1", "c", "thread-2", "b"]
    assert order_facts(loose) == loose


@pytest.mark.requirement("projection.order.complete")
def test_of_facts_that_claim_one_place_the_earliest_counts_whatever_comes_first():
    tell = FactMaker()
    start = tell("turn.started", **TURN)
    claim = tell("model.delta", **PART, delta="second", createdAt="2026-06-10T00:00:09Z")
    rivals: list[dict[str, Any]] = [
        {"id": "rival", "created_at": "2026-06-10T02:00:01+02:00", "payload": {"delta": "first"}},
        {"created_at": "2026-06-10T00:00:08Z", "payload": {"delta": "other body"}},
    ]
    facts = [start, claim, *(msgspec.structs.replace(claim, **fields) for fields in rivals)]
    state = project(facts)
    assert texts(state) == [("assistant", ["first"])]
    assert (state.hydration.event_count, state.hydration.dropped) == (2, 2)
    assert_any_order(facts, 24)


LAUGH = {
    "type": "text.delta",
    "threadId": THREAD,
    "turnId": "turn",
    "messageId": "m",
    "partId": "p",
    "payload": {"delta": "ha"},
}


@pytest.mark.requirement("facts.shapes.repeated-events")
@pytest.mark.parametrize("times", [1, 2, 5])
def test_events_without_ids_that_say_the_same_are_as_many_as_they_are(times: int):
    events = [msgspec.json.encode(LAUGH)] * times
    in_a_batch = project([read_fact(LAUGH) for _ in range(times)])
    assert texts(in_a_batch) == [("assistant", ["ha" * times])]

    def take_in() -> list[Fact]:
        intake = Intake("off", "ui")
        return [intake.feed(event).fact for event in events]

    straight, restored = Projection(THREAD), Projection(THREAD)
    for _ in range(times):
        straight.apply(read_fact(LAUGH))
        restored = Projection.restore(restored.checkpoint())
        restored.apply(read_fact(LAUGH))
    assert straight.snapshot() == restored.snapshot() == encode_state(in_a_batch)
    live = Projection(THREAD)
    live.apply_all(take_in())
    assert texts(live.state) == [("assistant", ["ha" * times])]
    live.apply_all(take_in())
    assert texts(live.state) == [("assistant", ["ha" * times])]
    assert (live.state.hydration.event_count, live.state.hydration.repeated) == (times, times)
    written = [{**write_fact(fact, "ui"), "id": None} for fact in take_in()]
    assert written == [{**LAUGH, "id": None}] * times


@st.composite
def numbered_threads(draw: st.DrawFn) -> list[Fact]:
    """Facts of a thread and a child, of runs or not, with repeats, rivals and holes."""
    found: list[Fact] = []
    for number in range(draw(st.integers(1, 14))):
        thread = draw(st.sampled_from([THREAD, THREAD, "child"]))
        fields: dict[str, Any] = {} if thread == THREAD else {"parentThreadId": THREAD}
        run = draw(st.sampled_from([None, "r1", "r2"]))
        fields |= {} if run is None else {"runId": run, "turnId": f"turn-{run}"}
        name = draw(st.sampled_from(["turn.started", "run.status", "model.delta", "tool.started"]))
        fact = FactMaker(thread=thread)(
            name,
            sequence=draw(st.integers(1, 8)),
            id=f"fact-{draw(st.integers(0, number))}",
            createdAt=f"2026-06-10T00:00:{draw(st.integers(0, 3)):02}Z",
            toolCallId="call",
            delta=draw(st.sampled_from("ab")),
            **fields,
        )
        found.append(fact)
    return found


@pytest.mark.requirement("projection.order.complete")
@settings(max_examples=120, deadline=None)
@given(numbered_threads(), st.randoms(use_true_random=False))
def test_any_facts_with_sequences_come_to_the_same_state_in_any_order(
    facts: list[Fact], source: random.Random
):
    mixed = list(facts)
    source.shuffle(mixed)
    assert encode_state(project(mixed, THREAD)) == encode_state(project(facts, THREAD))


THREAD_CLASSES = ("session.updated", "thread.updated", "context.changed", "run.status")


def add_thread_facts(facts: list[Fact], source: random.Random) -> list[Fact]:
    """A stream with facts of its threads, which are of no run, at any places; times follow."""
    mixed: list[Fact] = []
    for number, fact in enumerate(facts):
        mixed.append(fact)
        for each in range(source.choice((0, 0, 0, 1, 2))):
            name = source.choice(THREAD_CLASSES)
            mixed.append(
                msgspec.structs.replace(
                    FactMaker(thread=fact.thread_id or "")(name, summary=name),
                    id=f"of-thread-{number}-{each}",
                    parent_thread_id=fact.parent_thread_id,
                )
            )
    return [
        msgspec.structs.replace(fact, created_at=f"2026-06-10T00:00:00.{number:06}Z")
        for number, fact in enumerate(mixed)
    ]


def count_by(facts: list[Fact], name: str | None = None) -> list[Fact]:
    """The facts, numbered from 1 in each thread, for each value of an id; `resets` is one count in
    each thread that starts again with each turn.
    """
    numbers: Counter[tuple[str | None, ...]] = Counter()
    turns: dict[str | None, str | None] = {}
    counted: list[Fact] = []
    for fact in facts:
        value = None if name in (None, "resets") else id_of(fact, name)
        if name == "resets":
            value = turns[fact.thread_id] = fact.turn_id or turns.get(fact.thread_id)
        numbers[fact.thread_id, value] += 1
        number = numbers[fact.thread_id, value]
        counted.append(msgspec.structs.replace(fact, sequence=number))
    return counted


def without_numbers(state: ProjectionState) -> Any:
    """A state without what shows how its facts were numbered."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value).items()
            return {key: strip(each) for key, each in fields if key not in NUMBERS}
        return (
            [strip(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
        )

    return strip(msgspec.json.decode(encode_state(state)))


NUMBERED_BY_ONE_COUNT = {"messages.snapshot"}
"""Classes that reach as far back as a place in one count, which means little in several."""

NUMBERS = {"sequence", "latestSequence", "cursor"}


@pytest.mark.requirement("projection.order.beside-runs")
@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 3),
    st.sampled_from(["runId", "turnId", "resets"]),
    st.booleans(),
)
def test_facts_of_a_thread_that_are_of_no_run_are_taken_in_their_places_however_runs_count(
    seed: int, turns: int, counted: str, children: bool
):
    source = random.Random(seed)
    built = StreamBuilder(seed, children=children).build(turns, busy=2)
    whole = add_thread_facts(
        [
            msgspec.structs.replace(fact, run_id=None if counted == "turnId" else fact.turn_id)
            for fact in built
            if fact.event_class not in NUMBERED_BY_ONE_COUNT
        ],
        source,
    )
    expected = project(count_by(whole))
    assert expected.hydration.status == "live"
    facts = count_by(whole, counted)
    mixed = source.sample(facts, len(facts))
    assert without_numbers(project(mixed)) == without_numbers(expected)
    live = Projection(expected.thread_id)
    for fact in facts:
        live.apply(fact)
        if source.random() < 0.05:
            live = Projection.restore(live.checkpoint())
    assert without_numbers(live.state) == without_numbers(expected)
    for fact in facts[-200:]:
        live.apply(fact)
    assert live.state.hydration.repeated == len(facts[-200:])
    assert live.state.hydration.event_count == len(facts)
