"""Whatever is lost shows: in the status of the state, in its gaps and reasons, in its counts."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.facts import Fact
from factwire.projection import (
    Projection,
    ProjectionState,
    ThreadReadModel,
    encode_state,
    project,
    read_thread_model,
    thread_read_model,
)
from tests.projection.fact_maker import THREAD, FactMaker, as_json, codes, texts, watch_facts
from tests.projection.generated_streams import duplicate_facts
from tests.projection.test_late_facts import assert_adds_up
from tests.projection.test_ordering import INPUTS, assert_any_order, run_facts

TURN = {"turnId": "turn"}
PART = {**TURN, "messageId": "m", "partId": "p"}

Story = Callable[[], list[Fact]]


def cut_text(*repairs: tuple[str, dict[str, Any]]) -> Story:
    """A text that lost its second piece, and what the source sends as a repair."""

    def tell_story() -> list[Fact]:
        tell = FactMaker()
        facts = [
            tell("turn.started", **TURN),
            tell("model.delta", **PART, delta="one "),
            tell("model.delta", **PART, delta="two "),
            tell("model.delta", **PART, delta="three"),
        ]
        facts += [tell(name, **fields) for name, fields in repairs]
        facts.append(tell("turn.completed", **TURN))
        return [fact for fact in facts if fact.sequence != 3]

    return tell_story


def turn_facts(turn: str, minute: int, first: int = 1, **ids: Any) -> list[Fact]:
    """A turn that counts by itself and names no run."""
    tell = FactMaker(first)
    named = {"turnId": turn, **ids}
    facts = [
        tell("turn.submitted", **named, prompt=f"Ask {turn}"),
        tell("turn.started", **named),
        tell("model.delta", **named, messageId=f"m-{turn}", delta="An"),
        tell("model.delta", **named, messageId=f"m-{turn}", delta="swer"),
        tell("turn.completed", **named),
        tell("snapshot.updated"),
    ]
    return [
        msgspec.structs.replace(
            fact,
            id=f"{turn}-{fact.sequence}",
            created_at=f"2026-06-10T00:{minute:02}:{fact.sequence or 0:02}Z",
        )
        for fact in facts
    ]


def without_head(facts: list[Fact], count: int) -> list[Fact]:
    return facts[count:]


ROWS = [{"messageId": "m", "turnId": "turn", "text": "one two three"}]
CLAIM = {"fromSequence": 3, "toSequence": 3}

LOST: dict[str, tuple[Story, str, dict[str, Any]]] = {
    "a repair that carries nothing": (
        cut_text(("stream.repair.completed", {})),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a snapshot that carries nothing": (
        cut_text(("snapshot.repaired", {})),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a repair that only claims a range": (
        cut_text(("stream.repair.completed", CLAIM)),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a repair of another range": (
        cut_text(("snapshot.repaired", {"toSequence": 2, "messages": ROWS})),
        "degraded",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a repair of messages that names no range": (
        cut_text(("snapshot.repaired", {"messages": ROWS})),
        "stale",
        {"gaps": [{"fromSequence": 3, "toSequence": 3}]},
    ),
    "a second run without its head": (
        lambda: [*run_facts("a", 1, "one"), *without_head(run_facts("b", 2, "two"), 3)],
        "stale",
        {"reasons": ["starts_late"], "doubtedAt": 3},
    ),
    "a second turn without its head": (
        lambda: [*turn_facts("a", 1), *without_head(turn_facts("b", 2), 2)],
        "stale",
        {"reasons": ["starts_late"], "doubtedAt": 2},
    ),
    "a piece that was lost before another run": (
        lambda: [
            *(fact for fact in run_facts("a", 1, "one") if fact.sequence != 5),
            *run_facts("b", 2, "two"),
        ],
        "degraded",
        {"gaps": [{"fromSequence": 5, "toSequence": 5}]},
    ),
    "a start in the middle of a thread": (
        lambda: [FactMaker(500)("turn.started", **TURN)],
        "stale",
        {"reasons": ["starts_late"], "doubtedAt": 499},
    ),
    "two facts that claim one place": (
        lambda: [
            FactMaker()("turn.started", **TURN),
            FactMaker(2)("model.delta", **PART, delta="one"),
            FactMaker(2)("model.delta", **PART, delta="two", id="rival"),
        ],
        "stale",
        {"reasons": ["sequence_conflict"], "doubtedAt": 2},
    ),
}


def project_live(facts: list[Fact]) -> ProjectionState:
    seen = watch_facts(facts)
    seen.projection.close()
    return seen.state


HEADLESS = frozenset({"a second run without its head", "a second turn without its head"})
"""Live, nothing tells these from facts that claim the places of others."""


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("read", [project_live, project], ids=["live", "complete"])
@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_shows(name: str, read: Callable[[list[Fact]], ProjectionState]):
    tell_story, status, stated = LOST[name]
    if name in HEADLESS and read is project_live:
        stated = {"reasons": ["sequence_conflict"]}
    state = read(tell_story())
    found = as_json(state.hydration)
    assert found["status"] == status
    assert {key: found.get(key) for key in stated} == stated
    answers = [message for message in state.messages if message.role == "assistant"]
    if status == "degraded":
        assert [message.status for message in answers if message.status == "final"] == []


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("facts", [cut_text(("snapshot.repaired", {**CLAIM, "messages": ROWS}))()])
@pytest.mark.parametrize("read", [project_live, project], ids=["live", "complete"])
def test_a_repair_that_carries_what_it_names_is_one(
    facts: list[Fact], read: Callable[[list[Fact]], ProjectionState]
):
    state = read(facts)
    assert (state.hydration.status, state.hydration.gaps) == ("live", [])
    assert texts(state) == [("assistant", ["one two three"])]


@pytest.mark.requirement("projection.order.runs")
@pytest.mark.parametrize("ids", [{}, {"runId": "run"}], ids=["no run", "one run"])
def test_turns_that_count_by_themselves_follow_each_other(ids: dict[str, Any]):
    facts = [*turn_facts("b", 1, **ids), *turn_facts("a", 2, **ids), *turn_facts("c", 3, **ids)]
    state = project(facts)
    assert [found for _, found in texts(state)] == [
        *(["Ask b"], ["Answer"], ["Ask a"], ["Answer"], ["Ask c"], ["Answer"])
    ]
    counts = state.hydration
    assert (counts.status, counts.event_count, counts.dropped, codes(state)) == ("live", 18, 0, [])
    assert_any_order(facts, 30)
    live = Projection(THREAD)
    live.apply_all(facts)
    assert encode_state(live.state) == encode_state(state)


# Snapshots of messages.

PROMPT = {"messageId": "turn:user", "role": "user", "turnId": "turn"}
ANSWER = {"messageId": "m", "turnId": "turn"}


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("name", ["messages.snapshot", "snapshot.updated", "history.reconstructed"])
@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        ([{**PROMPT, "text": "Count."}, {**ANSWER, "text": "one two"}], None),
        ([{**PROMPT, "text": "Count."}, {**ANSWER, "text": "one two three"}], None),
        ([{**ANSWER, "text": "one two"}], "turn:user"),
        ([{**PROMPT, "text": "Count."}, {**ANSWER, "text": "one"}], "m"),
        ([], "turn:user, m"),
    ],
    ids=["the same", "more", "no prompt", "less text", "nothing"],
)
def test_text_that_a_snapshot_takes_away_is_remarked(
    name: str, rows: list[dict[str, Any]], lost: str | None
):
    tell = FactMaker()
    facts = [
        tell("turn.submitted", **TURN, prompt="Count."),
        tell("model.completed", **PART, text="one two"),
        tell(name, messages=rows),
    ]
    state = project_live(facts)
    assert encode_state(project(facts)) == encode_state(state)
    remarks = [item.message for item in state.diagnostics.items.values()]
    assert codes(state) == ([] if lost is None else ["snapshot_lacks_text"])
    assert all(message.endswith(f": {lost}") for message in remarks)
    assert [found for _, found in texts(state)] == [[row["text"]] for row in rows]


# Read models.


def send(state: ProjectionState) -> ThreadReadModel:
    """The read model of a state, as it comes over a wire."""
    return read_thread_model(msgspec.json.encode(thread_read_model(state)))


@pytest.mark.requirement("projection.loss.restored")
def test_a_stream_that_was_joined_in_the_middle_of_a_text_is_in_doubt_when_restored():
    tell = FactMaker(5)
    state = project_live([tell("model.delta", **PART, delta="the rest")])
    restored = Projection.from_read_model(send(state)).state
    assert (restored.hydration.status, restored.hydration.reasons) == ("stale", ["starts_late"])
    assert [message.status for message in restored.messages] == ["stale"]


@pytest.mark.requirement("projection.loss.restored")
def test_a_read_model_mends_a_stream_that_was_joined_in_the_middle_of_a_text():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), *(tell("model.delta", **PART, delta=d) for d in "abcd")]
    joined = Projection(THREAD)
    joined.apply_all(facts[3:])
    joined.repair(send(project(facts)))
    assert (joined.state.hydration.status, texts(joined.state)) == (
        "live",
        [("assistant", ["abcd"])],
    )


@pytest.mark.requirement("projection.loss.restored")
def test_a_childs_thread_that_goes_on_after_a_restore_puts_no_doubt_on_the_thread():
    tell, child = FactMaker(), FactMaker(thread="child")
    worker = {"subagentId": "s", "taskId": "t", "parentThreadId": THREAD, "turnId": "inner"}
    facts = [
        tell("turn.started", **TURN),
        tell(
            "subagent.spawned", **{**TURN, "subagentId": "s", "taskId": "t"}, childThreadId="child"
        ),
        child("turn.submitted", **worker),
        child("turn.started", **worker),
    ]
    restored = Projection.from_read_model(send(project_live(facts)))
    restored.apply(child("model.delta", **worker, messageId="c", delta="On."))
    assert restored.state.hydration.reasons == ["child_starts_late"]
    assert send(restored.state).doubts is None
    joined = project_live([tell("turn.started", sequence=1, **TURN), facts[1], facts[3]])
    assert (joined.hydration.reasons, send(joined).doubts) == (["child_starts_late"],) * 2


@pytest.mark.requirement("projection.loss.restored")
def test_messages_that_a_repair_brings_go_before_those_that_follow_them():
    tell = FactMaker()
    facts = [
        fact
        for number in range(4)
        for fact in (
            tell("turn.submitted", turnId=f"t{number}", prompt=f"Ask {number}"),
            tell("model.completed", turnId=f"t{number}", messageId=f"m{number}", text=f"{number}"),
            tell("turn.completed", turnId=f"t{number}"),
        )
    ]
    whole = project(facts)
    for first, last in ((0, 3), (3, 6), (4, 7), (0, 9)):
        cut = Projection(THREAD)
        cut.apply_all([*facts[:first], *facts[last:]])
        cut.close()
        tail = tell("run.status", sequence=len(facts) + 1)
        cut.repair(send(project([*facts, tail])))
        assert [m.message_id for m in cut.state.messages] == [m.message_id for m in whole.messages]


@pytest.mark.requirement("projection.loss.restored")
def test_a_read_model_without_messages_leaves_the_texts_that_were_missed_in_doubt():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("model.delta", **PART, delta="one ")]
    facts += [tell("model.completed", **PART, text="one two"), tell("turn.completed", **TURN)]
    model = send(project(facts))
    outline = msgspec.structs.replace(model, messages=None)
    cut = Projection(THREAD)
    cut.apply_all(facts[:2])
    cut.repair(outline)
    assert (cut.state.hydration.status, cut.state.hydration.reasons) == (
        "stale",
        ["messages_missing"],
    )
    cut.repair(model)
    assert (cut.state.hydration.status, texts(cut.state)) == (
        "live",
        [("assistant", ["one two"])],
    )


@pytest.mark.requirement("projection.loss.restored")
def test_failures_of_turns_that_share_an_id_are_told_apart_and_survive_a_restore():
    tell = FactMaker()
    reason = {"failureCategory": "timeout"}
    child = {"turnId": "turn", "subagentId": "s", "taskId": "t"}
    facts = [
        tell("turn.failed", **child, **reason),
        tell("turn.started", **TURN),
        tell("turn.failed", **TURN, failureCategory="refused"),
    ]
    names = [
        [each.diagnostic_id for each in send(project(facts[:count])).incidents] for count in (1, 3)
    ]
    assert names[0] == ["turn_failed:turn:subagent:s"]
    assert sorted(names[1]) == ["turn_failed:turn", "turn_failed:turn:subagent:s"]
    model = send(project(facts))
    again = send(Projection.from_read_model(model).state)
    assert {each.diagnostic_id: each.code for each in again.incidents} == {
        "turn_failed:turn": "refused",
        "turn_failed:turn:subagent:s": "timeout",
    }


@pytest.mark.requirement("projection.loss.restored")
def test_actions_that_are_over_come_back_and_keep_their_first_answer():
    tell = FactMaker()
    action = {**TURN, "actionId": "a"}
    facts = [
        tell("turn.started", **TURN),
        tell("action.required", **action, actionType="tool_approval"),
        tell("action.resolved", **action, decision="denied"),
    ]
    whole = project(facts)
    restored = Projection.from_read_model(send(whole))
    assert as_json(restored.state.actions) == as_json(whole.actions)
    restored.apply(tell("action.resolved", **action, decision="approved"))
    assert restored.state.actions["a"].decision == "denied"
    assert codes(restored.state) == ["action_already_decided"]
    cut = Projection(THREAD)
    cut.apply_all(facts[:2])
    cut.repair(send(whole))
    shown = cut.state.actions["a"]
    entry = next(each for each in cut.state.timeline if each.entry_id == "action:a")
    node = cut.state.graph.nodes["action:a"]
    assert (shown.status, shown.decision) == ("resolved", "denied")
    assert (entry.status, node.status) == ("completed", "resolved")


@pytest.mark.requirement("projection.loss.visible")
def test_a_replay_of_a_compacted_child_thread_is_whole():
    tell, child = FactMaker(), FactMaker(7, thread="child")
    worker = {"subagentId": "s", "taskId": "t", "parentThreadId": THREAD, "turnId": "inner"}
    projection = Projection()
    for fact in (
        tell("run.status", sequence=4),
        child("model.delta", **worker, messageId="c", delta="On."),
        child("model.delta", sequence=11, **worker, messageId="c", delta="On."),
    ):
        projection.replay(fact)
    assert (projection.state.hydration.status, projection.state.hydration.reasons) == ("live", [])


# Every input of the project, cut, mixed and doubled, with and without snapshots.

EMPTY: list[dict[str, Any]] = [{}, {"toSequence": 10**6}, {"messages": []}]
CARRIED: dict[str, Any] = {"messages": [], "fromSequence": 1, "toSequence": 3}
UPDATES = ("snapshot.updated", "messages.snapshot", "state.snapshot")
REPAIRS = ("snapshot.repaired", "stream.repair.completed")
SNAPSHOTS: list[tuple[str, dict[str, Any]] | None] = [
    None,
    *((name, payload) for name in UPDATES for payload in (*EMPTY, CARRIED)),
    *((name, payload) for name in REPAIRS for payload in EMPTY),
]


def read_plain_inputs() -> dict[str, list[Fact]]:
    """Inputs of one thread with each fact once, and without repairs that stand in for facts."""
    found: dict[str, list[Fact]] = {}
    for name, read in INPUTS.items():
        facts = read()
        repaired = any(".repair" in (fact.event_class or "") for fact in facts)
        counts = Counter(fact.id for fact in facts)
        threads = {fact.thread_id for fact in facts}
        is_plain = not repaired and len(threads) == 1 and max(counts.values()) == 1
        if is_plain and 4 <= len(facts) <= 80 and project(facts).hydration.status == "live":
            found[name] = facts
    return found


PLAIN = read_plain_inputs()


def add_snapshot(facts: list[Fact], place: int, name: str, payload: dict[str, Any]) -> list[Fact]:
    """The facts with a snapshot behind the one at a place, numbered anew."""
    before = facts[place]
    snapshot = msgspec.structs.replace(
        FactMaker(thread=before.thread_id or "")(name, sequence=(before.sequence or 0) + 1),
        id="snapshot",
        created_at=before.created_at,
        payload=payload,
    )
    after = [msgspec.structs.replace(f, sequence=(f.sequence or 0) + 1) for f in facts[place + 1 :]]
    return [*facts[: place + 1], snapshot, *after]


@pytest.mark.requirement("projection.loss.visible")
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(PLAIN)), st.sampled_from(SNAPSHOTS), st.randoms(use_true_random=False)
)
def test_no_input_loses_a_fact_in_silence(
    name: str, snapshot: tuple[str, dict[str, Any]] | None, source: random.Random
):
    facts, thread = PLAIN[name], PLAIN[name][0].thread_id
    if snapshot is not None:
        facts = add_snapshot(facts, source.randrange(len(facts)), *snapshot)
    expected = encode_state(project(facts, thread))
    lost = source.choice([fact for fact in facts[1:-1] if fact.id != "snapshot"])
    for is_cut in (False, True):
        mixed = [fact for fact in facts if not is_cut or fact is not lost]
        source.shuffle(mixed)
        mixed = duplicate_facts(source, mixed)
        live = Projection(thread)
        for fact in mixed:
            live.apply(fact)
            live = Projection.restore(live.checkpoint()) if source.random() < 0.1 else live
        live.close()
        states = [live.state, project(mixed, thread)]
        for state in states:
            assert_adds_up(state.hydration, len(mixed))
            assert not is_cut or state.hydration.status != "live", lost.event_class
        if not is_cut:
            unrepeated = [msgspec.json.decode(encode_state(state)) for state in states]
            for document in (*unrepeated, wanted := msgspec.json.decode(expected)):
                for count in ("received", "repeated"):
                    del document["hydration"][count]
            assert unrepeated == [wanted, wanted]


# Texts of which a part may be missing.


def joined_text(*ends: tuple[str, dict[str, Any]]) -> list[Fact]:
    """A text of two pieces, of which a reader sees the second and what ends it."""
    tell = FactMaker()
    tell("turn.started", **TURN)
    tell("model.delta", **PART, delta="one ")
    return [tell("model.delta", **PART, delta="two"), *(tell(name, **ids) for name, ids in ends)]


def text_rows(state: ProjectionState) -> tuple[str, str, str]:
    """A text by its message, its part and its timeline entry."""
    message = state.messages[-1]
    (part,) = (row for row in as_json(message.parts) if row["type"] == "text")
    entry = next(row for row in state.timeline if row.entry_id.startswith("text:"))
    return message.status, part["state"], entry.status


JOINED_ENDS: list[tuple[str, dict[str, Any], tuple[str, str, str]]] = [
    ("turn.completed", TURN, ("stale", "stale", "stale")),
    ("turn.failed", TURN, ("stale", "stale", "stale")),
    ("turn.canceled", TURN, ("stale", "stale", "stale")),
    ("model.completed", PART, ("streaming", "stale", "completed")),
    ("model.completed", {**PART, "text": "one two"}, ("final", "final", "completed")),
    ("model.completed", {**TURN, "text": "one two"}, ("final", "final", "completed")),
    ("model.completed", {**TURN, "messageId": "m", "text": "!"}, ("final", "final", "completed")),
]


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize(("end", "ids", "rows"), JOINED_ENDS)
def test_a_text_that_was_joined_in_the_middle_is_good_only_once_it_came_whole(
    end: str, ids: dict[str, Any], rows: tuple[str, str, str]
):
    facts = joined_text((end, ids))
    assert text_rows(project_live(facts)) == rows
    assert text_rows(project(facts)) == rows


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("missing", [0, 1])
def test_a_text_that_was_joined_in_the_middle_is_final_once_the_facts_before_it_came(missing: int):
    tell = FactMaker()
    before = [tell("turn.started", **TURN), tell("model.delta", **PART, delta="one ")]
    facts = [*before, *joined_text(("turn.completed", TURN))]
    joined = Projection(THREAD)
    joined.apply_all([*facts[2:], facts[missing], facts[1 - missing]])
    assert joined.snapshot() == encode_state(project(facts))
    assert text_rows(joined.state) == ("final", "final", "completed")


@pytest.mark.requirement("projection.loss.visible")
def test_a_text_of_a_turn_that_began_after_the_stream_was_joined_is_whole():
    tell = FactMaker(7)
    later = {"turnId": "later"}
    state = project_live(
        [
            tell("tool.progress", **TURN, toolCallId="c"),
            tell("turn.started", **later),
            tell("model.delta", **later, messageId="n", delta="all"),
            tell("turn.completed", **later),
        ]
    )
    assert text_rows(state) == ("final", "final", "completed")


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize("end", ["turn.completed", "turn.failed", "turn.canceled"])
@pytest.mark.parametrize("last", [{}, {"text": "one two three"}])
def test_a_text_with_a_hole_is_stale_after_its_turn(end: str, last: dict[str, Any]):
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        *(tell("model.delta", **PART, delta=piece) for piece in ("one ", "two ", "three")),
        tell("model.completed", **PART, **last),
        tell(end, **TURN),
    ]
    state = project([fact for fact in facts if fact.sequence != 3])
    assert (state.hydration.status, text_rows(state)[:2]) == ("degraded", ("stale", "stale"))
    assert text_rows(state)[2] in ("completed", "stale")
    assert text_rows(project(facts))[1] == "final"


# Doubts of one thread and of its children.


_CHILD = {"subagentId": "s", "taskId": "t", "parentThreadId": THREAD, "turnId": "inner"}
_MESSAGES: dict[str, Any] = {"fromSequence": 1, "toSequence": 9, "messages": []}

DOUBTS: list[tuple[str, dict[str, Any]]] = [
    ("starts_late", {}),
    ("gap_reported", {"name": "stream.gap.detected"}),
    ("repair_started", {"name": "stream.repair.started"}),
]


@pytest.mark.requirement("projection.loss.visible")
@pytest.mark.parametrize(("reason", "opener"), DOUBTS)
@pytest.mark.parametrize("doubted", ["main", "child"])
@pytest.mark.parametrize("repaired", ["main", "child"])
def test_a_repair_settles_the_doubts_of_its_own_thread_alone(
    reason: str, opener: dict[str, Any], doubted: str, repaired: str
):
    late = reason == "starts_late"
    tell = FactMaker(3 if late and doubted == "main" else 1)
    child = FactMaker(3 if late and doubted == "child" else 1, thread="child")
    facts = [tell("turn.started", **TURN), child("turn.started", **_CHILD)]
    if not late:
        facts.append((tell if doubted == "main" else child)(opener["name"]))
    shown = reason if doubted == "main" else f"child_{reason}"
    joined = Projection(THREAD)
    joined.apply_all(facts)
    assert joined.state.hydration.reasons == [shown]
    teller, ids = (tell, {}) if repaired == "main" else (child, _CHILD)
    joined.apply(teller("stream.repair.completed", sequence=10, **{**ids, **_MESSAGES}))
    joined.close()
    assert (shown in joined.state.hydration.reasons) is (doubted != repaired)


@pytest.mark.requirement("projection.loss.visible")
def test_the_repair_of_one_child_leaves_the_doubt_about_another():
    tell, joined = FactMaker(), Projection(THREAD)
    children = [FactMaker(3, thread=name) for name in ("one", "two")]
    joined.apply(tell("turn.started", **TURN))
    for child in children:
        ids = {**_CHILD, "subagentId": child.thread, "turnId": f"in-{child.thread}"}
        joined.apply(child("turn.started", **ids))
    reasons: list[list[str]] = []
    for child in children:
        joined.apply(child("snapshot.repaired", **_CHILD, **_MESSAGES))
        reasons.append([*joined.state.hydration.reasons])
    assert reasons == [["child_starts_late"], []]
