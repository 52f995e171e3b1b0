"""The laws of a projection, over streams that are whole and over streams that went wrong.

All streams follow from seeds, so that a failure names the stream it happened on.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact
from factwire.facts.json_patch import JsonDocument
from factwire.journal import Journal, open_journal
from factwire.projection import (
    Changes,
    Projection,
    advance,
    decode_state,
    encode_state,
    fold_changes,
    order_facts,
    project,
)
from factwire.projection.limits import HELD_FACTS, REMEMBERED_FACTS, REMEMBERED_IDS
from tests.facts.strategies import facts as any_facts
from tests.projection.fact_maker import FactMaker, WatchedProjection, as_text
from tests.projection.generated_streams import (
    THREAD,
    build_random_facts,
    build_stream,
    chunks,
    duplicate_facts,
    other_body,
    shuffle_facts,
    spoil_facts,
)

SEEDS = range(24)
WILD_THREAD = "main"


def project_facts(
    facts: Iterable[Fact], thread: str = THREAD, first: int | None = None
) -> Projection:
    projection = Projection(thread, first=first)
    projection.apply_all(facts)
    return projection


RECEIVED = "/hydration/received"
REPEAT_COUNTS = [{RECEIVED, "/hydration/repeated"}, {RECEIVED, "/hydration/dropped"}]
"""What a fact that came before changes: one that was left out before is left out again."""


def drop_repeats(snapshot: bytes) -> Any:
    """A snapshot without the counts that a repeat changes."""
    plain = msgspec.json.decode(snapshot)
    for name in ("received", "repeated", "dropped"):
        del plain["hydration"][name]
    return plain


def snapshot_of(facts: Iterable[Fact], thread: str = THREAD) -> bytes:
    return project_facts(facts, thread).snapshot()


def stopped_and_restored(
    source: random.Random, facts: Sequence[Fact], thread: str
) -> tuple[Projection, list[Changes]]:
    """A projection that was saved and restored every few facts, and what it sent."""
    projection, sent = Projection(thread), list[Changes]()
    for chunk in chunks(source, facts):
        projection = Projection.restore(projection.checkpoint())
        sent += [projection.apply(fact) for fact in chunk]
    return projection, sent


def assert_replays(facts: Sequence[Fact], seed: int, thread: str = THREAD) -> None:
    """One by one, in chunks, and with a restore at any point: all the same. In the order of a
    complete input, the batch as well.
    """
    straight = Projection(thread)
    sent = [straight.apply(fact) for fact in facts]
    ordered = Projection(thread)
    for fact in order_facts(facts, thread):
        ordered.apply_ordered(fact)
    ordered.close()
    batch = encode_state(project(facts, thread))
    assert batch == ordered.snapshot()
    if order_facts(facts, thread) == list(facts) and not straight.state.hydration.gaps:
        assert batch == straight.snapshot()
    restored, sent_again = stopped_and_restored(random.Random(seed), facts, thread)
    assert restored.snapshot() == straight.snapshot()
    assert sent_again == sent


@pytest.mark.requirement("projection.law.replay")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_restore_at_any_point_changes_neither_the_state_nor_what_is_sent(seed: int):
    assert_replays(build_stream(seed, hostile=seed % 2 == 1), seed)


@pytest.mark.requirement("projection.law.replay")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_restore_in_the_middle_of_disorder_changes_nothing_either(seed: int):
    source = random.Random(seed)
    facts = duplicate_facts(source, shuffle_facts(source, build_stream(seed), window=9))
    facts[20] = other_body(facts[18])
    del facts[source.randrange(30, 60)]
    assert_replays(facts, seed)


@pytest.mark.requirement("projection.law.replay")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_restore_changes_nothing_whatever_the_facts_are(seed: int):
    assert_replays(build_random_facts(seed), seed, WILD_THREAD)


@pytest.mark.requirement("projection.law.changes")
@pytest.mark.parametrize("seed", SEEDS)
def test_changes_applied_to_the_last_snapshot_give_the_next(seed: int):
    watched = WatchedProjection(Projection(THREAD))
    for fact in build_stream(seed, turns=2, hostile=seed % 2 == 1):
        watched.apply(fact)


@pytest.mark.requirement("projection.law.changes")
@pytest.mark.requirement("projection.state.decodes")
@pytest.mark.parametrize("seed", SEEDS)
def test_changes_and_snapshots_agree_whatever_the_facts_are(seed: int):
    watched = WatchedProjection(Projection(WILD_THREAD))
    for fact in build_random_facts(seed):
        watched.apply(fact)


@pytest.mark.requirement("projection.law.changes")
@pytest.mark.parametrize("seed", SEEDS)
def test_changes_are_kept_through_disorder_and_repair(seed: int):
    source = random.Random(seed)
    facts = duplicate_facts(source, shuffle_facts(source, build_stream(seed, turns=2), window=7))
    facts[10] = other_body(facts[8])
    watched = WatchedProjection(Projection(THREAD))
    for fact in facts:
        watched.apply(fact)


@pytest.mark.requirement("projection.changes.folded")
@pytest.mark.parametrize("seed", SEEDS)
def test_folded_changes_lead_to_the_same_state(seed: int):
    source = random.Random(seed)
    facts = (
        duplicate_facts(source, build_stream(seed, hostile=True))
        if seed % 2
        else build_random_facts(seed)
    )
    projection = Projection(THREAD if seed % 2 else WILD_THREAD)
    copy = JsonDocument(msgspec.json.decode(projection.snapshot()))
    for chunk in chunks(source, facts):
        advance(copy, fold_changes([projection.apply(fact) for fact in chunk]))
        assert as_text(copy.root) == as_text(msgspec.json.decode(projection.snapshot()))


@pytest.mark.requirement("projection.law.duplicates")
@pytest.mark.parametrize("seed", SEEDS)
def test_duplicates_change_nothing(seed: int):
    facts = build_stream(seed, hostile=seed % 2 == 1)
    repeated = duplicate_facts(random.Random(seed), facts)
    assert drop_repeats(snapshot_of(repeated)) == drop_repeats(snapshot_of(facts))


@pytest.mark.requirement("projection.law.duplicates")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fact_that_comes_at_once_again_sends_nothing_but_its_count(seed: int):
    projection = Projection(WILD_THREAD)
    for fact in build_random_facts(seed):
        projection.apply(fact)
        before = drop_repeats(projection.snapshot())
        sent = {operation.path for operation in projection.apply(fact).operations()}
        assert sent in REPEAT_COUNTS
        assert drop_repeats(projection.snapshot()) == before


@pytest.mark.requirement("projection.law.duplicates")
def test_an_old_fact_that_comes_again_after_much_on_other_threads_changes_nothing():
    tell, child = FactMaker(thread=THREAD), FactMaker(thread="child")
    projection = Projection(THREAD)
    facts = [tell("run.status") for _ in range(10)]
    projection.apply_all(facts)
    for _ in range(2 * REMEMBERED_IDS + REMEMBERED_FACTS):
        projection.apply(child("run.status", parentThreadId=THREAD))
    before = drop_repeats(projection.snapshot())
    projection.apply(facts[4])
    assert drop_repeats(projection.snapshot()) == before


@pytest.mark.requirement("projection.law.order")
@pytest.mark.parametrize("first", [1, 0, -30])
@pytest.mark.parametrize("seed", SEEDS[:8])
def test_any_order_without_a_hole_gives_the_state_of_the_right_order(seed: int, first: int):
    facts = in_one_thread(seed, first)
    window = random.Random(seed).choice([2, 10, 100, HELD_FACTS])
    mixed = shuffle_facts(random.Random(seed), facts, window)
    straight = project_facts(facts, first=first).snapshot()
    assert project_facts(mixed, first=first).snapshot() == straight


def in_one_thread(seed: int, first: int = 1) -> list[Fact]:
    """A whole stream without threads beside it, and without snapshots that stand in for facts."""
    facts = build_stream(seed, first=first, children=False, hostile=True)
    facts = [fact for fact in facts if fact.event_class != "messages.snapshot"]
    return [
        msgspec.structs.replace(fact, sequence=place)
        for place, fact in enumerate(facts, start=first)
    ]


@pytest.mark.requirement("projection.law.order")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_hole_shows_as_stale_until_the_missing_facts_come(seed: int):
    source, facts = random.Random(seed), in_one_thread(seed)
    missing = sorted(source.sample(range(1, len(facts) - 1), 3))
    holed = project_facts(fact for place, fact in enumerate(facts) if place not in missing)
    before = project_facts(facts[: missing[0]])
    assert holed.state.hydration.status == "stale"
    assert holed.state.messages == before.state.messages
    assert holed.state.hydration.cursor == before.state.hydration.cursor
    for place in source.sample(missing, 3):
        holed.apply(facts[place])
    assert holed.snapshot() == snapshot_of(facts)


@pytest.mark.requirement("projection.law.order")
def test_order_within_a_childs_thread_is_its_own():
    parent, child = FactMaker(thread=THREAD), FactMaker(thread="child")
    ids = {"subagentId": "s", "taskId": "t", "parentThreadId": THREAD, "turnId": "inner"}
    start = parent("turn.started", turnId="turn")
    inner = [child("model.delta", **ids, messageId="m", delta=text) for text in ("one", "two")]
    end = parent("turn.completed", turnId="turn")
    opening = child("turn.started", sequence=0, **ids)
    projection = Projection(THREAD, first=1)
    projection.apply_all([start, opening, inner[1], end, inner[0]])
    straight = Projection(THREAD, first=1)
    straight.apply_all([start, opening, *inner, end])
    assert projection.state.messages[0].parts == straight.state.messages[0].parts
    assert projection.state.hydration.status == "live"


@pytest.mark.requirement("projection.law.garbage")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_that_was_spoilt_is_projected_all_the_same(seed: int):
    projection = Projection(THREAD)
    for fact in spoil_facts(random.Random(seed), build_stream(seed, hostile=True)):
        projection.apply(fact)
    snapshot = projection.snapshot()
    assert encode_state(decode_state(snapshot)) == snapshot


@pytest.mark.fuzz
@pytest.mark.requirement("projection.law.garbage")
@given(st.lists(any_facts(), max_size=6))
def test_every_fact_that_a_decoder_lets_through_can_be_projected(facts: list[Fact]):
    watched = WatchedProjection(Projection())
    for fact in facts:
        watched.apply(fact)


@pytest.mark.fault
@pytest.mark.requirement("projection.law.volume")
@pytest.mark.parametrize("part", range(6))
def test_disorder_among_very_many_facts_leaves_no_trace(part: int):
    """Over 100,000 facts in all: repeated, mixed, lost and told later, saved and restored."""
    events, seed = 0, part * 1_000
    while events < 17_000:
        facts, source = in_one_thread(seed), random.Random(seed)
        events += len(facts)
        straight = project_facts(facts, first=1)
        mixed = duplicate_facts(source, shuffle_facts(source, facts, source.choice([3, 50, 1_000])))
        held = project_facts(mixed[: len(mixed) // 2], first=1)
        held = Projection.restore(held.checkpoint())
        held.apply_all(mixed[len(mixed) // 2 :])
        assert drop_repeats(held.snapshot()) == drop_repeats(straight.snapshot()), seed
        seed += 1
        events += count_of_wild(seed)


def count_of_wild(seed: int) -> int:
    """Project facts without sense, and check that what comes of them is sound."""
    facts = build_random_facts(seed, 100)
    snapshot = snapshot_of(facts, WILD_THREAD)
    assert encode_state(decode_state(snapshot)) == snapshot
    return len(facts)


def test_the_law_of_order_bites():
    """Without an order, the same streams come to another state."""
    facts = [msgspec.structs.replace(fact, sequence=None) for fact in in_one_thread(1)]
    mixed = shuffle_facts(random.Random(1), facts, 10)
    assert snapshot_of(mixed) != snapshot_of(facts)


def test_the_law_of_duplicates_bites():
    """With ids of their own, the same repeats do change the state."""
    facts = duplicate_facts(random.Random(1), in_one_thread(1))
    renamed = [
        msgspec.structs.replace(fact, id=f"other-{place}", sequence=None)
        for place, fact in enumerate(facts)
    ]
    assert len(project(renamed, THREAD).timeline) > len(project(facts, THREAD).timeline)


async def compact_facts(facts: Sequence[Fact]) -> list[Fact]:
    """What a journal has left of facts after it was compacted by its own rules."""
    async with open_journal("memory:") as journal:
        await journal.append(facts)
        await journal.compact()
        return [fact async for fact in _read_remaining(journal)]


async def _read_remaining(journal: Journal) -> AsyncIterator[Fact]:
    async for batch in journal.read():
        for _, fact in batch.facts():
            yield fact


def replay_facts(facts: Iterable[Fact]) -> bytes:
    """The state that a journal's facts come to, with holes where it took something out."""
    projection = Projection(THREAD)
    for fact in facts:
        projection.replay(fact)
    return projection.snapshot()


def drop_counts(state: bytes) -> Any:
    """A snapshot without what only counts facts or names the facts that something came from.

    Left out: how many facts there were, and which of them an entry or a node is made of.
    """
    plain = msgspec.json.decode(state)
    plain["hydration"]["eventCount"] = plain["hydration"]["received"] = 0
    for entry in (*plain["timeline"], *plain["graph"]["nodes"].values()):
        entry["sourceEventIds"] = []
    return plain


@pytest.mark.requirement("projection.law.compaction")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_compacted_log_projects_as_the_whole_one(seed: int):
    facts = build_stream(seed, hostile=seed % 2 == 1)
    left = asyncio.run(compact_facts(facts))
    assert len(left) < len(facts)
    assert drop_counts(replay_facts(left)) == drop_counts(snapshot_of(facts))


@pytest.mark.requirement("projection.law.compaction")
def test_only_a_replay_takes_what_was_removed_for_no_hole():
    facts = in_one_thread(3)
    left = asyncio.run(compact_facts(facts))
    assert project_facts(left).state.hydration.status == "stale"


TURN_IDS = {"turnId": "turn"}


@pytest.mark.requirement("projection.law.compaction")
def test_compaction_takes_no_output_away_that_a_state_shows():
    tell, call = FactMaker(thread=THREAD), {**TURN_IDS, "toolCallId": "c"}
    facts = [tell("tool.started", **call)]
    facts += [tell("tool.output.delta", **call, delta=text) for text in ("a", "b")]
    facts += [tell("tool.result", **call, output="ab"), tell("turn.completed", **TURN_IDS)]
    left = [
        msgspec.structs.replace(fact, sequence=None) for fact in asyncio.run(compact_facts(facts))
    ]
    assert str(project(left, THREAD).tools["c"].output_text) == "ab"


@pytest.mark.requirement("projection.law.compaction")
def test_compaction_does_not_take_a_subagents_text_for_the_assistants():
    tell, worker = FactMaker(thread=THREAD), {**TURN_IDS, "subagentId": "s", "taskId": "k"}
    facts = [tell("model.delta", **TURN_IDS, delta="main")]
    facts += [tell("model.delta", **worker, delta=text) for text in ("a", "b", "c")]
    facts += [tell("model.completed", **TURN_IDS, text="main"), tell("turn.completed", **TURN_IDS)]
    assert [fact.id for fact in asyncio.run(compact_facts(facts))] == [fact.id for fact in facts]


@pytest.mark.requirement("projection.law.compaction")
def test_compaction_does_not_take_one_plan_for_another():
    tell = FactMaker(thread=THREAD)
    facts = [tell("plan.delta", **TURN_IDS, planId="one", delta=text) for text in ("a", "b")]
    facts += [tell("plan.delta", **TURN_IDS, planId="two", delta="c")]
    facts += [
        tell("plan.final", **TURN_IDS, planId="two", text="c"),
        tell("turn.completed", **TURN_IDS),
    ]
    assert [fact.id for fact in asyncio.run(compact_facts(facts))] == [fact.id for fact in facts]


class Calls:
    """How many Python functions are called, which a busy machine does not change."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.count += event in ("call", "c_call")


def calls_of(work: Callable[[], object]) -> int:
    calls = Calls()
    sys.setprofile(calls)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls.count


INCREMENTS: dict[str, dict[str, Any]] = {
    "model.delta": {"messageId": "m", "partId": "p", "delta": "x"},
    "reasoning.delta": {"messageId": "m", "partId": "r", "delta": "x"},
    "plan.delta": {"delta": "x"},
    "tool.args.delta": {"toolCallId": "c", "delta": "x"},
    "tool.output.delta": {"toolCallId": "c", "delta": "x"},
    "tool.progress": {"toolCallId": "c", "progress": 1},
    "process.output": {"processId": "p", "text": "x"},
    "command.output": {"commandId": "c", "text": "x", "refIds": ["blob:1"]},
}


def cost_of(projection: Projection, facts: Iterable[Fact]) -> tuple[int, int]:
    """The least calls and operations that one of these facts takes."""
    sent: list[Changes] = []
    calls = [calls_of(lambda fact=fact: sent.append(projection.apply(fact))) for fact in facts]
    return min(calls), min(len(changes.ops) for changes in sent)


@pytest.mark.requirement("projection.cost.constant")
@pytest.mark.parametrize("name", INCREMENTS)
def test_an_increment_costs_the_same_after_a_long_history(name: str):
    costs: list[tuple[int, int]] = []
    for turns, before in ((1, 1), (40, 3_000)):
        facts = build_stream(5, turns, children=False)
        projection, tell = project_facts(facts), FactMaker(len(facts) + 1, THREAD)
        more = [tell(name, turnId="late", **INCREMENTS[name]) for _ in range(before + 5)]
        projection.apply_all(more[:before])
        costs.append(cost_of(projection, more[before:]))
    assert costs[0] == costs[1]


@pytest.mark.requirement("projection.cost.constant")
def test_a_new_message_costs_the_same_after_a_long_history():
    costs: list[tuple[int, int]] = []
    for turns in (1, 40):
        facts = build_stream(5, turns, children=False)
        projection, tell = project_facts(facts), FactMaker(len(facts) + 1, THREAD)
        more = [tell("model.delta", turnId="late", messageId=f"m{n}", delta="x") for n in range(6)]
        projection.apply(more[0])
        costs.append(cost_of(projection, more[1:]))
    assert costs[0] == costs[1]


@pytest.mark.requirement("projection.cost.constant")
def test_facts_after_many_lost_ones_cost_no_more_than_after_few():
    costs: list[int] = []
    for rounds in (1, 3):
        tell = FactMaker(thread=THREAD)
        projection = project_facts([tell("turn.started", turnId="t")])
        for place in range(3, 3 + 2 * (HELD_FACTS + 1) * rounds, 2):
            projection.apply(tell("run.status", sequence=place))
        assert projection.state.hydration.status == "degraded"
        more = [tell("run.status") for _ in range(5)]
        costs.append(cost_of(projection, more)[0])
    assert costs[1] <= costs[0] * 1.1
