"""Live streams: early snapshots, facts that come late, and counts that add up."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact
from factwire.facts.json_patch import JsonDocument
from factwire.projection import (
    Changes,
    Projection,
    ProjectionState,
    advance,
    fold_changes,
    project,
    thread_read_model,
)
from factwire.projection.hydration import Hydration
from factwire.projection.limits import HELD_FACTS, REMEMBERED_FACTS
from factwire.projection.ordering import find_main_thread
from tests.projection.fact_maker import THREAD, FactMaker, WatchedProjection, as_json
from tests.projection.generated_streams import (
    build_random_facts,
    build_stream,
    chunks,
    duplicate_facts,
    other_body,
    shuffle_facts,
)
from tests.projection.test_ordering import INPUTS, run_facts

SEEDS = range(12)
KINDS = ("snapshot.updated", "snapshot.repaired", "messages.snapshot", "stream.repair.completed")
TURN = {"turnId": "turn"}


def build_work(source: random.Random, turns: int = 4) -> list[Fact]:
    """Turns with tools, approvals, artifacts, texts and ends of every kind."""
    tell = FactMaker()
    facts: list[Fact] = []
    for number in range(turns):
        ids = {"turnId": f"turn-{number}"}
        call, action = f"call-{number}", f"action-{number}"
        part = {**ids, "messageId": f"m-{number}", "partId": "p"}
        facts += [
            tell("turn.submitted", **ids, prompt=f"prompt {number}"),
            tell("turn.started", **ids),
            tell("tool.started", **ids, toolCallId=call),
            tell("action.required", **ids, actionId=action, actionType="tool_approval"),
            tell("action.resolved", **ids, actionId=action, decision="approve"),
            tell(source.choice(["tool.result", "tool.failed"]), **ids, toolCallId=call),
            tell("artifact.created", **ids, artifactId=f"artifact-{number}"),
            *(tell("model.delta", **part, delta=piece) for piece in "abc"),
            tell(source.choice(["turn.completed", "turn.failed", "turn.canceled"]), **ids),
        ]
    return facts


def insert_snapshot(facts: Sequence[Fact], place: int, fields: dict[str, Any]) -> list[Fact]:
    """The facts with a snapshot among them, numbered anew."""
    snapshot = FactMaker()(fields.pop("name"), sequence=place + 1, id="snapshot", **fields)
    after = [msgspec.structs.replace(f, sequence=(f.sequence or 0) + 1) for f in facts[place:]]
    return [*facts[:place], snapshot, *after]


def assert_shown(state: ProjectionState, facts: Sequence[Fact]) -> None:
    """All that arrived is in the state, or the state does not call itself live."""
    if state.hydration.status != "live":
        return
    for fact in facts:
        if fact.tool_call_id is not None:
            tool = state.tools[fact.tool_call_id]
            if fact.event_class in ("tool.result", "tool.failed"):
                assert tool.state in ("output-available", "output-error")
        if fact.action_id is not None:
            action = state.actions[fact.action_id]
            assert fact.event_class == "action.required" or action.status == "resolved"
        if fact.artifact_id is not None:
            assert fact.artifact_id in state.artifacts
        if fact.event_class in ("turn.completed", "turn.failed", "turn.canceled"):
            status = fact.event_class.removeprefix("turn.")
            assert state.graph.nodes[f"turn:{fact.turn_id}"].status == status


def early(facts: list[Fact], source: random.Random) -> list[Fact]:
    """The facts with their snapshot before some that it claims to cover."""
    place = next(index for index, fact in enumerate(facts) if fact.id == "snapshot")
    snapshot = facts.pop(place)
    facts.insert(source.randint(0, place), snapshot)
    return facts


@pytest.mark.requirement("projection.order.early-snapshot")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("carries", ["nothing", "messages", "a claim"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_snapshot_that_comes_early_hides_nothing(kind: str, carries: str, seed: int):
    source = random.Random(f"{kind} {carries} {seed}")
    work = build_work(source)
    place = source.randint(1, len(work))
    fields: dict[str, Any] = {"name": kind}
    if carries == "messages":
        fields["messages"] = [{"messageId": "m-0", "role": "assistant", "text": "abc"}]
    elif carries == "a claim":
        fields["toSequence"] = place
    ordered = insert_snapshot(work, place, fields)
    mixed = early(list(ordered), source)
    if seed % 3 == 0:
        mixed = shuffle_facts(source, mixed, 6)
    watched = WatchedProjection(Projection(THREAD))
    for count, fact in enumerate(mixed, 1):
        watched.apply(fact)
        assert_shown(watched.state, mixed[:count])
    straight = Projection(THREAD)
    straight.apply_all(ordered)
    assert watched.projection.snapshot() == straight.snapshot()


@pytest.mark.requirement("projection.order.early-snapshot")
@pytest.mark.parametrize("kind", ["snapshot.repaired", "stream.repair.completed"])
def test_what_comes_too_late_after_a_repair_is_counted_and_leaves_the_state_in_doubt(kind: str):
    tell = FactMaker()
    start, failed = tell("turn.started", **TURN), tell("turn.failed", **TURN)
    projection = Projection(THREAD)
    projection.apply_all([start, tell(kind, toSequence=2, messages=[])])
    projection.apply_all([tell("run.status") for _ in range(2 * REMEMBERED_FACTS)])
    assert projection.state.hydration.status == "live"
    projection.apply(failed)
    hydration = projection.state.hydration
    assert (hydration.status, hydration.late, hydration.reasons) == ("stale", 1, ["late_facts"])
    projection.apply(tell("stream.repair.completed", toSequence=failed.sequence))
    assert (hydration.status, hydration.late, hydration.reasons) == ("stale", 1, ["late_facts"])
    projection.apply(tell("stream.repair.completed", toSequence=failed.sequence, messages=[]))
    assert (hydration.status, hydration.late, hydration.reasons) == ("live", 1, [])


@pytest.mark.requirement("projection.order.starts-late")
@pytest.mark.parametrize("name", ["turn.submitted", "session.created", "thread.started"])
def test_a_stream_may_start_anywhere_with_what_begins_something(name: str):
    projection = Projection(THREAD)
    projection.apply(FactMaker(41)(name, **TURN))
    assert projection.state.hydration.status == "live"


@pytest.mark.requirement("projection.order.rebuilt")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_that_starts_in_the_middle_is_whole_once_the_rest_has_come(seed: int):
    source = random.Random(seed)
    facts = build_work(source)
    start = source.randint(1, len(facts) - 1)
    before = facts[:start]
    source.shuffle(before)
    projection = Projection(THREAD)
    projection.apply_all(facts[start:])
    for fact in before:
        projection = Projection.restore(projection.checkpoint())
        projection.apply(fact)
    straight = Projection(THREAD)
    straight.apply_all(facts)
    assert projection.snapshot() == straight.snapshot()


@pytest.mark.requirement("projection.order.rebuilt")
@pytest.mark.parametrize("seed", range(24))
def test_facts_in_reverse_order_come_to_the_same_together_and_one_by_one(seed: int):
    source = random.Random(seed)
    facts = disturb(seed)
    if seed % 3:
        work = build_work(source)
        name, place = source.choice(KINDS), source.randint(1, len(work))
        facts = insert_snapshot(work, place, {"name": name, "toSequence": place})
    first, last = sorted(source.sample(range(len(facts) + 1), 2))
    mixed = [*facts[last:], *reversed(facts[first:last]), *reversed(facts[:first])]
    mixed = mixed if seed % 4 else facts[::-1]
    thread = find_main_thread(facts)
    together, alone = Projection(thread), Projection(thread)
    for chunk in chunks(source, mixed) if seed % 2 else [mixed]:
        together.apply_all(chunk)
    for fact in mixed:
        alone.apply(fact)
    assert together.checkpoint() == alone.checkpoint()


@pytest.mark.requirement("projection.order.rebuilt")
def test_facts_in_reverse_order_are_reduced_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
):
    stream = build_stream(7, turns=8)
    thread = find_main_thread(stream)
    facts = [fact for fact in stream if fact.thread_id == thread]
    reduced, take = list[str](), Projection._take

    def take_counted(projection: Projection, lane: Any, fact: Fact) -> None:
        reduced.append(fact.id)
        take(projection, lane, fact)

    monkeypatch.setattr(Projection, "_take", take_counted)
    projection, straight = Projection(thread), Projection(thread)
    projection.apply_all(reversed(facts))
    assert len(facts) > 200
    # Once more on each side of a snapshot, which is taken by itself; one by one it is a square.
    assert len(reduced) <= 3 * len(facts)
    straight.apply_all(facts)
    assert projection.snapshot() == straight.snapshot()


@pytest.mark.requirement("projection.order.rebuilt")
def test_a_fact_from_before_the_start_that_comes_too_late_is_counted():
    tell = FactMaker(10)
    projection = Projection(THREAD)
    projection.apply_all(tell("run.status") for _ in range(3 * REMEMBERED_FACTS))
    projection.apply(tell("turn.started", **TURN, sequence=9))
    hydration = projection.state.hydration
    assert (hydration.status, hydration.late, hydration.reasons) == ("stale", 1, ["starts_late"])


def assert_adds_up(hydration: Hydration, received: int) -> None:
    parts = (hydration.event_count, hydration.repeated, hydration.late, hydration.dropped)
    assert (hydration.received, sum(parts) + hydration.held) == (received, received)


@pytest.mark.requirement("projection.hydration.counts")
@pytest.mark.parametrize("name", INPUTS)
def test_the_counts_of_every_input_add_up(name: str):
    facts = INPUTS[name]()
    assert_adds_up(project(facts).hydration, len(facts))
    source = random.Random(name)
    mixed = duplicate_facts(source, shuffle_facts(source, facts, 30))
    projection = Projection()
    projection.apply_all(mixed)
    assert_adds_up(projection.state.hydration, len(mixed))


def disturb(seed: int) -> list[Fact]:
    """A stream with repeats, other bodies, rivals, foreign threads, disorder and holes."""
    source = random.Random(seed)
    facts = build_stream(seed, turns=2, hostile=True)
    if seed % 4 == 1:
        facts = build_random_facts(seed)
    elif seed % 4 == 2:
        facts = [*run_facts("a", 1, "one"), *run_facts("b", 2, "two"), *facts]
    facts = duplicate_facts(source, shuffle_facts(source, facts, source.choice([1, 8, 40])))
    for place in sorted(source.sample(range(len(facts)), 8), reverse=True):
        fact = facts[place]
        odd = source.choice(
            [
                other_body(fact),
                msgspec.structs.replace(fact, id=f"rival-{place}"),
                msgspec.structs.replace(fact, id=f"x-{place}", thread_id="foreign"),
                msgspec.structs.replace(fact, id=f"y-{place}", sequence=None),
                msgspec.structs.replace(fact, id=f"z-{place}", sequence=-place),
            ]
        )
        facts.insert(source.randint(0, len(facts)), odd)
        if source.random() < 0.3:
            del facts[place]
    return facts


@pytest.mark.requirement("projection.hydration.counts")
@pytest.mark.parametrize("seed", range(24))
def test_the_counts_of_a_disturbed_stream_add_up_after_every_fact(seed: int):
    facts, source = disturb(seed), random.Random(seed)
    thread = "main" if seed % 4 == 1 else THREAD
    projection = Projection(thread)
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    count = 0
    for chunk in chunks(source, facts):
        sent: list[Changes] = []
        for fact in chunk:
            count += 1
            sent.append(projection.apply(fact))
            assert_adds_up(projection.state.hydration, count)
        advance(copy, fold_changes(sent))
        assert copy.root["hydration"] == as_json(projection.state.hydration)
        projection = Projection.restore(projection.checkpoint())
        assert_adds_up(projection.state.hydration, count)


@pytest.mark.requirement("projection.hydration.counts")
def test_the_counts_add_up_when_a_hole_is_given_up_and_when_a_read_model_covers_one():
    tell = FactMaker()
    facts = [tell("run.status") for _ in range(HELD_FACTS + 40)]
    projection = Projection(THREAD)
    projection.apply_all([facts[0], *facts[2:]])
    assert_adds_up(projection.state.hydration, len(facts) - 1)
    cut = Projection(THREAD)
    cut.apply_all([facts[0], *facts[4:9], *facts[12:20]])
    cut.repair(thread_read_model(project(facts[:11])))
    hydration = cut.state.hydration
    assert_adds_up(hydration, 14)
    assert (hydration.event_count, hydration.held, hydration.status) == (6, 8, "stale")
