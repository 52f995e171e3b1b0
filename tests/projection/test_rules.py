"""The thirteen rules of the projection, one after the other."""

from typing import Any

import msgspec
import pytest

from factwire.facts import KNOWN_CLASSES, Fact
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.projection import Projection, ProjectionState, thread_read_model
from factwire.projection.limits import HELD_FACTS
from tests.facts.samples import EXTRA_IDS
from tests.projection.fact_maker import (
    THREAD,
    FactMaker,
    WatchedProjection,
    as_json,
    codes,
    copy_fact,
    part_type,
    project_facts,
    texts,
    watch_facts,
)

TURN = {"turnId": "turn"}
PART = {"turnId": "turn", "messageId": "m", "partId": "p"}
CALL = {"turnId": "turn", "toolCallId": "call"}
ACTION = {"turnId": "turn", "actionId": "action"}
WORKER = {"turnId": "turn", "subagentId": "worker", "taskId": "task"}


# Rule 1: identity.


@pytest.mark.requirement("projection.repeat")
def test_a_fact_that_comes_twice_changes_nothing():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("model.delta", **PART, delta="once ")]
    seen = watch_facts(facts)
    before = drop_repeats(seen)
    for fact in facts:
        seen.apply(copy_fact(fact))
    assert drop_repeats(seen) == before
    assert (seen.state.hydration.received, seen.state.hydration.repeated) == (4, 2)


@pytest.mark.requirement("projection.repeat")
def test_a_fact_without_a_sequence_that_comes_twice_changes_nothing():
    fact = msgspec.structs.replace(FactMaker()("model.delta", **PART, delta="once"), sequence=None)
    assert texts(project_facts(fact, msgspec.structs.replace(fact))) == [("assistant", ["once"])]


@pytest.mark.requirement("projection.repeat")
def test_a_fact_that_came_too_late_and_comes_again_changes_nothing_more():
    tell = FactMaker()
    late = tell("run.status", sequence=3)
    seen = watch_facts([tell("turn.started", sequence=5, **TURN), late], first=5)
    before = drop_repeats(seen)
    seen.apply(copy_fact(late))
    assert drop_repeats(seen) == before
    assert (seen.state.hydration.late, seen.state.hydration.repeated) == (1, 1)


def drop_repeats(seen: WatchedProjection) -> Any:
    """A state without the counts that a repeat changes."""
    plain = as_json(seen.state)
    del plain["hydration"]["received"], plain["hydration"]["repeated"]
    return plain


@pytest.mark.requirement("projection.conflict")
def test_another_body_under_a_known_id_is_remarked_on_once_and_the_first_one_counts():
    tell = FactMaker()
    first = tell("model.delta", **PART, delta="first")
    other = msgspec.structs.replace(first, payload={"delta": "other"})
    state = project_facts(first, other, other)
    assert texts(state) == [("assistant", ["first"])]
    assert codes(state) == ["conflicting_fact"]
    assert state.hydration.event_count == 1


@pytest.mark.requirement("projection.conflict")
@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), (0.0, -0.0)])
def test_values_that_python_takes_for_equal_are_other_bodies(one: object, other: object):
    first = FactMaker()("run.status", value=one)
    state = project_facts(first, msgspec.structs.replace(first, payload={"value": other}))
    assert codes(state) == ["conflicting_fact"]


@pytest.mark.requirement("projection.conflict")
def test_the_order_of_keys_makes_no_other_body():
    first = FactMaker()("run.status", a=1, b=2)
    state = project_facts(first, msgspec.structs.replace(first, payload={"b": 2, "a": 1}))
    assert codes(state) == []


@pytest.mark.requirement("projection.conflict")
def test_two_facts_for_one_place_are_remarked_on_and_the_first_one_counts():
    tell = FactMaker()
    facts = [tell("turn.started", **TURN), tell("model.delta", **PART, delta="a")]
    rival = msgspec.structs.replace(facts[1], id="rival", payload={"delta": "b"})
    state = project_facts(*facts, rival)
    assert texts(state) == [("assistant", ["a"])]
    assert codes(state) == ["sequence_conflict"]


# Rule 2: order.


def facts_with_gaps(missing: set[int], count: int = 5) -> tuple[list[Fact], list[Fact]]:
    """A text in pieces, and the same with some of its facts missing."""
    tell = FactMaker()
    facts = [tell("model.delta", **PART, delta=f"{number} ") for number in range(1, count + 1)]
    return facts, [fact for fact in facts if fact.sequence not in missing]


@pytest.mark.requirement("projection.order.hole")
def test_what_comes_after_a_hole_waits_and_the_state_is_stale():
    _, kept = facts_with_gaps({3})
    state = project_facts(*kept)
    assert texts(state) == [("assistant", ["1 2 "])]
    assert as_json(state.hydration) == {
        "status": "stale",
        "cursor": 2,
        "received": 4,
        "eventCount": 2,
        "repeated": 0,
        "late": 0,
        "dropped": 0,
        "held": 2,
        "gaps": [{"fromSequence": 3, "toSequence": 3}],
        "reasons": [],
        "ignored": [],
    }


@pytest.mark.requirement("projection.order.hole")
@pytest.mark.parametrize("first", [1, 0, -3])
def test_a_filled_hole_gives_the_state_of_the_right_order(first: int):
    tell = FactMaker(first)
    facts = [tell("model.delta", **PART, delta=f"{number} ") for number in range(4)]
    straight = watch_facts(facts, first=first)
    mixed = watch_facts([facts[2], facts[3], facts[1], facts[0]], first=first)
    assert mixed.projection.snapshot() == straight.projection.snapshot()
    assert mixed.state.hydration.status == "live"


@pytest.mark.requirement("projection.order.hole")
@pytest.mark.parametrize("first", [0, -3])
def test_a_hole_at_or_below_zero_is_a_hole_too(first: int):
    tell = FactMaker(first)
    facts = [tell("run.status") for _ in range(3)]
    state = project_facts(facts[1], facts[2], first=first)
    assert (state.hydration.status, state.hydration.event_count) == ("stale", 0)


@pytest.mark.requirement("projection.order.hole")
def test_a_thread_starts_with_whatever_comes_first():
    state = project_facts(FactMaker(41)("turn.submitted", **TURN))
    assert (state.hydration.status, state.hydration.cursor) == ("live", 41)


@pytest.mark.requirement("projection.order.hole")
def test_a_fact_from_before_the_start_is_counted_and_puts_the_state_in_doubt():
    tell = FactMaker()
    facts = [tell("turn.started", sequence=5, **TURN), tell("run.status", sequence=4)]
    state = project_facts(*facts, first=5)
    assert (state.hydration.status, state.hydration.late) == ("stale", 1)


@pytest.mark.requirement("projection.order.rebuilt")
def test_a_fact_from_before_the_start_is_taken_in_its_place():
    tell = FactMaker(3)
    facts = [tell("turn.started", **TURN), *(tell("model.delta", **PART, delta=d) for d in "abc")]
    mixed = watch_facts([facts[2], facts[3], facts[1], facts[0]])
    assert mixed.projection.snapshot() == watch_facts(facts).projection.snapshot()


@pytest.mark.requirement("projection.order.starts-late")
def test_a_stream_that_starts_in_the_middle_says_so():
    state = project_facts(FactMaker(41)("model.delta", **PART, delta="x"))
    assert (state.hydration.status, state.hydration.reasons) == ("stale", ["starts_late"])
    assert texts(state) == [("assistant", ["x"])]


@pytest.mark.requirement("projection.order.covered")
@pytest.mark.parametrize(
    ("name", "stated", "status", "gaps"),
    [
        ("messages.snapshot", {}, "stale", [(2, 3)]),
        ("snapshot.repaired", {}, "stale", [(2, 3)]),
        ("snapshot.repaired", {"toSequence": 2}, "degraded", [(2, 3)]),
        ("snapshot.repaired", {"fromSequence": 3, "toSequence": 4}, "degraded", [(2, 3)]),
        ("snapshot.repaired", {"toSequence": 4}, "live", []),
        ("history.reconstructed", {"fromSequence": 2, "toSequence": 3}, "live", []),
    ],
)
def test_a_snapshot_covers_what_it_carries_of_a_hole(
    name: str, stated: dict[str, int], status: str, gaps: list[tuple[int, int]]
):
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("model.delta", sequence=4, **PART, delta="late"),
        tell(name, messages=[{"messageId": "m", "text": "whole"}], **stated),
    ]
    projection = Projection(THREAD)
    projection.apply_all(facts)
    projection.close()
    state = projection.state
    assert (state.hydration.status, state.hydration.cursor) == (status, 5)
    assert [(gap.from_sequence, gap.to_sequence) for gap in state.hydration.gaps] == gaps
    assert texts(state) == [("assistant", ["whole"])]


@pytest.mark.requirement("projection.order.covered")
def test_a_snapshot_covers_nothing_that_comes_after_it():
    tell = FactMaker()
    start = tell("turn.started", **TURN)
    snapshot = tell("messages.snapshot", messages=[], toSequence=900)
    state = project_facts(start, snapshot, tell("run.status", sequence=5))
    assert (state.hydration.status, state.hydration.cursor) == ("stale", 2)


@pytest.mark.requirement("projection.order.covered")
def test_a_fact_that_comes_after_a_snapshot_covered_it_is_no_conflict():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("run.status"),
        tell("messages.snapshot", messages=[]),
    ]
    state = project_facts(facts[0], facts[2], facts[1])
    assert codes(state) == []
    assert state.hydration.status == "live"


@pytest.mark.requirement("projection.order.given-up")
def test_past_the_window_a_hole_is_given_up_and_what_waited_is_shown():
    _, kept = facts_with_gaps({2}, HELD_FACTS + 3)
    projection = Projection(THREAD)
    projection.apply_all(kept)
    state = projection.state
    assert state.hydration.status == "degraded"
    assert [as_json(gap) for gap in state.hydration.gaps] == [{"fromSequence": 2, "toSequence": 2}]
    assert codes(state) == ["window_overflow"]
    assert state.hydration.event_count == HELD_FACTS + 2


@pytest.mark.requirement("projection.order.given-up")
def test_a_repeat_among_what_waited_is_not_taken_twice():
    _, kept = facts_with_gaps({2}, HELD_FACTS + 2)
    twin = msgspec.structs.replace(kept[5], sequence=HELD_FACTS + 3)
    projection = Projection(THREAD)
    projection.apply_all([*kept, twin])
    assert projection.state.hydration.event_count == HELD_FACTS + 1


@pytest.mark.requirement("projection.order.given-up")
def test_nothing_is_final_while_facts_are_lost_and_all_is_once_they_are_covered():
    _, kept = facts_with_gaps({2}, HELD_FACTS + 3)
    tell = FactMaker(HELD_FACTS + 4)
    projection = Projection(THREAD)
    projection.apply_all([*kept, tell("model.completed", **PART, text="whole")])
    part: Any = projection.state.messages[0].parts[0]
    assert (str(part.text), part.state) == ("whole", "streaming")
    projection.apply(tell("stream.repair.completed"))
    assert projection.state.hydration.status == "degraded"
    projection.apply(tell("stream.repair.completed", toSequence=HELD_FACTS, messages=[]))
    assert projection.state.hydration.status == "live"
    part = projection.state.messages[0].parts[0]
    assert (str(part.text), part.state) == ("whole", "final")


@pytest.mark.requirement("projection.order.threads")
def test_facts_of_another_thread_are_left_out_with_one_remark():
    other = FactMaker(thread="other")
    state = project_facts(
        other("model.delta", **PART, delta="x"), other("model.delta", **PART, delta="y")
    )
    assert state.messages == []
    assert codes(state) == ["foreign_thread"]


# Rule 3: text.


@pytest.mark.requirement("projection.text.exact")
def test_deltas_concatenate_exactly():
    tell = FactMaker()
    pieces = ["a", "a", " ", " ", "", "\n", "b\r\n", "é", "e\u0301", "🙂", "a"]
    state = project_facts(*(tell("model.delta", **PART, delta=piece) for piece in pieces))
    assert texts(state) == [("assistant", ["".join(pieces)])]


@pytest.mark.requirement("projection.text.final")
@pytest.mark.parametrize("final", ["streamed", "streamed and more", "other", ""])
def test_the_final_text_replaces_the_streamed_one_in_the_same_part(final: str):
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **PART, delta="strea"),
        tell("model.delta", **PART, delta="med"),
        tell("model.completed", **PART, text=final),
    )
    assert texts(state) == [("assistant", [final])]
    part: Any = state.messages[0].parts[0]
    assert part.state == "final"


@pytest.mark.requirement("projection.text.final")
def test_a_final_text_without_ids_finds_the_streamed_part():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **TURN, delta="stre"), tell("model.completed", **TURN, text="streamed")
    )
    assert texts(state) == [("assistant", ["streamed"])]


@pytest.mark.requirement("projection.text.final")
def test_a_final_text_that_comes_again_under_another_id_opens_no_second_part():
    tell = FactMaker()
    state = project_facts(*(tell("model.completed", **PART, text="whole") for _ in range(3)))
    assert texts(state) == [("assistant", ["whole"])]


@pytest.mark.requirement("projection.text.final")
def test_a_snapshot_in_the_middle_of_a_text_opens_no_second_part():
    tell = FactMaker()
    ids = {"turnId": "turn", "messageId": "m"}
    state = project_facts(
        tell("model.delta", **ids, delta="Hello"),
        tell("messages.snapshot", messages=[{"messageId": "m", "text": "Hello"}]),
        tell("model.delta", **ids, delta=" world"),
        tell("model.completed", **ids, text="Hello world"),
    )
    assert texts(state) == [("assistant", ["Hello world"])]


@pytest.mark.requirement("projection.text.final")
def test_a_text_that_a_snapshot_tells_without_part_ids_is_the_text_that_is_there():
    tell = FactMaker()
    state = project_facts(
        tell("model.delta", **PART, delta="Hel"),
        tell("messages.snapshot", messages=[{"messageId": "m", "text": "Hello"}]),
        tell("model.completed", **PART, text="Hello world"),
    )
    assert texts(state) == [("assistant", ["Hello world"])]


# Rule 4 is the law of replay, in test_laws.py.


# Rule 5: snapshots.


def open_turn() -> tuple[FactMaker, WatchedProjection]:
    """A turn with an open action, an open tool and a failed one."""
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("tool.started", **CALL),
        tell("tool.started", turnId="turn", toolCallId="broken"),
        tell("tool.failed", turnId="turn", toolCallId="broken", failureCategory="timeout"),
        tell("action.required", **ACTION, actionType="tool_approval"),
        tell("model.completed", **PART, text="new"),
    ]
    return tell, watch_facts(facts)


@pytest.mark.requirement("projection.snapshot.keeps")
@pytest.mark.parametrize(
    "name",
    ["snapshot.updated", "snapshot.repaired", "state.snapshot", "messages.snapshot"],
)
def test_a_snapshot_completes_and_erases_neither_tool_nor_action(name: str):
    tell, seen = open_turn()
    before = as_json([seen.state.tools, seen.state.actions])
    seen.apply(tell(name, messages=[], shared={}, status="completed", tools={}, actions={}))
    assert as_json([seen.state.tools, seen.state.actions]) == before
    assert seen.state.runtime.status == "waiting"


@pytest.mark.requirement("projection.snapshot.older")
def test_a_snapshot_that_is_older_than_the_state_is_left_aside():
    tell, seen = open_turn()
    row = {"messageId": "m", "parts": [{"partId": "p", "text": "old"}]}
    seen.apply(tell("messages.snapshot", messages=[row], toSequence=3))
    assert texts(seen.state)[1:] == [("assistant", ["new"])]
    assert codes(seen.state) == ["timeout", "snapshot_outdated"]


@pytest.mark.requirement("projection.snapshot.older")
def test_shared_state_of_an_older_snapshot_is_left_aside():
    tell, seen = open_turn()
    seen.apply(tell("state.snapshot", shared={"n": 2}))
    seen.apply(tell("state.snapshot", shared={"n": 1}, toSequence=3))
    assert seen.state.shared == {"n": 2}


@pytest.mark.requirement("projection.snapshot.older")
def test_a_read_model_that_is_older_than_the_state_is_only_marked():
    tell, seen = open_turn()
    model = thread_read_model(seen.state)
    seen.apply(tell("action.resolved", **ACTION, decision="approve"))
    before = as_json(seen.state.actions)
    seen.projection.repair(model)
    assert as_json(seen.state.actions) == before
    assert seen.state.read_model.stale is True


# Rule 6: actions.


@pytest.mark.requirement("projection.action.closers")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("action.resolved", "resolved"),
        ("action.cancelled", "cancelled"),
        ("action.canceled", "cancelled"),
        ("action.expired", "expired"),
    ],
)
def test_only_a_closing_fact_closes_an_action(name: str, status: str):
    tell, seen = open_turn()
    seen.apply(tell(name, **ACTION))
    assert seen.state.actions["action"].status == status
    assert seen.state.runtime.status == "running"


@pytest.mark.requirement("projection.action.closers")
@pytest.mark.parametrize(
    "name",
    sorted(
        set(KNOWN_CLASSES)
        - {f"action.{end}" for end in ("resolved", "cancelled", "canceled")}
        - {"action.expired", *TURN_TERMINALS, "run.finished", "run.failed"}
    ),
)
def test_no_other_class_closes_an_action(name: str):
    tell, seen = open_turn()
    ids = {**EXTRA_IDS, "actionId": "action", "threadId": THREAD, "turnId": "turn"}
    payload = {"decision": "approve", "status": "completed", "path": "x", "reasonCode": "x"}
    seen.apply(tell(name, **ids, control="approve", refIds=["blob:1"], payload=payload))
    assert seen.state.actions["action"].status == "pending"


@pytest.mark.requirement("projection.action.absent")
def test_an_action_that_a_newer_read_model_does_not_list_is_closed_and_nobody_says_how():
    tell, seen = open_turn()
    later = WatchedProjection()
    for fact in [tell("turn.started", **TURN), tell("run.status")]:
        later.apply(fact)
    model = thread_read_model(later.state)
    seen.projection.repair(model)
    action = seen.state.actions["action"]
    assert (action.status, action.decision) == ("closed", "unknown")
    assert seen.state.runtime.status != "waiting"


@pytest.mark.requirement("projection.action.absent")
def test_one_read_model_may_restore_two_projections():
    tell, seen = open_turn()
    model = thread_read_model(seen.state)
    one, other = Projection.from_read_model(model), Projection.from_read_model(model)
    before = other.snapshot()
    one.apply(tell("action.resolved", **ACTION, decision="deny"))
    assert one.state.actions["action"].status == "resolved"
    assert other.snapshot() == before


# Rule 7: needs.

NEEDING: dict[str, dict[str, Any]] = {
    "tool.result": {},
    "action.required": {},
    "action.resolved": {},
    "artifact.created": {},
    "evidence.changed": {},
    "review.completed": {"evidenceId": "e"},
    "file.read": {},
    "file.changed": {"path": "x"},
    "patch.applied": {},
    "patch.failed": {"patchId": "x"},
    "command.exited": {"commandId": "x"},
    "test.completed": {"testRunId": "x"},
    "sandbox.blocked": {},
    "permission.denied": {},
    "task.completed": {},
    "task.attempt.completed": {"taskId": "t"},
    "subagent.completed": {"subagentId": "s"},
    "subagent.failed": {"taskId": "t"},
    "handoff.completed": {},
    "command.output": {"commandId": "x", "text": "out"},
}


@pytest.mark.requirement("projection.needs.degraded")
@pytest.mark.parametrize("name", NEEDING)
def test_a_fact_without_what_its_class_needs_is_degraded_and_never_completed(name: str):
    fact = FactMaker()(name, **TURN, **NEEDING[name], status="completed")
    state = project_facts(fact)
    entry = state.timeline[0]
    assert (entry.degraded, entry.status, entry.completed_at) == (True, "unknown", None)
    assert codes(state) == ["missing_scope_id"]
    assert state.graph.nodes == {}
    assert [*state.tools, *state.actions, *state.artifacts, *state.tasks] == []
    assert state.subagents.threads == {}


# Rule 8: surfaces.


@pytest.mark.requirement("projection.surface.text")
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_only_model_text_and_user_input_become_text_of_the_conversation(name: str):
    speaks = {"model.delta", "model.completed", "text.delta", "text.final"}
    speaks |= {"turn.submitted", "turn.started"}
    fact = FactMaker()(
        name,
        **{**EXTRA_IDS, "threadId": THREAD, "turnId": "turn"},
        refIds=["blob:1"],
        text="SPOKEN",
        delta="SPOKEN",
        prompt="SPOKEN",
        message="SPOKEN",
        summary="SPOKEN",
        output="SPOKEN",
        path="x",
        reasonCode="x",
        exitCode=0,
        payload={"status": "x", "failureCategory": "x"},
    )
    spoken = [text for _, found in texts(project_facts(fact)) for text in found if text]
    assert spoken == (["SPOKEN"] if name in speaks else [])


@pytest.mark.requirement("projection.surface.reasoning")
@pytest.mark.parametrize("name", ["reasoning.started", "reasoning.delta", "reasoning.completed"])
def test_a_raw_chain_of_thought_is_nowhere_in_a_state(name: str):
    tell = FactMaker()
    fact = tell(name, **PART, delta="RAW", text="RAW", content="RAW", thinking="RAW")
    seen = watch_facts([fact])
    assert b"RAW" not in seen.projection.snapshot()
    assert b"RAW" not in msgspec.json.encode(seen.copy.root)


@pytest.mark.requirement("projection.surface.reasoning")
def test_reasoning_becomes_a_part_of_its_own_with_the_summary_alone():
    tell = FactMaker()
    state = project_facts(
        tell("reasoning.delta", **PART, delta="RAW"),
        tell("reasoning.summary", **PART, summary="It thought."),
        tell("reasoning.completed", **PART),
        tell("model.completed", turnId="turn", messageId="m", partId="q", text="Answer."),
    )
    assert texts(state) == [("assistant", ["Answer."])]
    part: Any = state.messages[0].parts[0]
    assert (part_type(part), str(part.summary), part.characters) == ("reasoning", "It thought.", 3)


# Rule 9: notifications.


@pytest.mark.requirement("projection.notification")
def test_a_worker_notification_is_no_message_even_from_a_user_role_channel():
    tell = FactMaker()
    state = project_facts(
        tell(
            "worker.notification",
            **WORKER,
            channelId="user",
            role="user",
            text="I am done.",
            resultRef="blob:result",
            transcriptRef="blob:transcript",
        )
    )
    assert state.messages == []
    note = state.team_workbench.notifications[0]
    assert (note.worker_id, note.task_id, note.message) == ("worker", "task", "I am done.")
    assert (note.result_ref, note.transcript_ref) == ("blob:result", "blob:transcript")


# Rule 10: teammates.


@pytest.mark.requirement("projection.teammate")
def test_a_subagents_text_is_a_message_of_its_own():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("model.delta", **TURN, delta="main "),
        tell("model.delta", **WORKER, delta="other "),
        tell("model.delta", **TURN, delta="text"),
        tell("model.completed", **WORKER, text="other text"),
    )
    found = [
        (message.subagent_id, text)
        for message, (_, text) in zip(state.messages, texts(state), strict=True)
    ]
    assert found == [(None, ["main text"]), ("worker", ["other text"])]


@pytest.mark.requirement("projection.teammate")
def test_a_childs_turn_is_not_the_turn_of_the_thread():
    tell, child = FactMaker(), FactMaker(thread="child")
    ids = {"parentThreadId": THREAD, "turnId": "inner", "subagentId": "s", "taskId": "t"}
    facts = [
        tell("turn.started", **TURN),
        tell("model.requested", **TURN, model="large"),
        child("turn.started", **ids),
        child("thread.updated", **ids, payload={"title": "A child"}),
        child("model.requested", **ids, model="small"),
        child("turn.failed", **ids, failureCategory="quota"),
    ]
    runtime = project_facts(*facts).runtime
    found = (runtime.status, runtime.active_turn_id, runtime.model, runtime.failure_category)
    assert found == ("running", "turn", "large", None)
    assert project_facts(*facts).title is None


@pytest.mark.requirement("projection.teammate")
def test_a_snapshot_that_names_no_speaker_does_not_make_a_subagents_message_the_assistants():
    tell = FactMaker()
    row = {"messageId": "m", "text": "whole"}
    state = project_facts(
        tell("model.delta", **WORKER, messageId="m", delta="who"),
        tell("messages.snapshot", messages=[row]),
    )
    assert [message.subagent_id for message in state.messages] == ["worker"]


@pytest.mark.requirement("projection.teammate")
def test_a_handoff_adds_nothing_to_the_conversation():
    tell = FactMaker()
    ids = {"turnId": "turn", "handoffId": "h"}
    state = project_facts(
        tell("handoff.requested", **ids, fromAgent="a", toAgent="b", reason="it knows more"),
        tell("handoff.accepted", **ids),
        tell("handoff.completed", **ids),
    )
    assert state.messages == []
    assert state.team_workbench.active_agent == "b"
    assert state.team_workbench.handoff_events["h"].status == "completed"


# Rule 11: shared state.


@pytest.mark.requirement("projection.state-delta")
def test_a_patch_of_the_shared_state_is_applied():
    tell = FactMaker()
    state = project_facts(
        tell("state.snapshot", shared={"list": [1], "gone": 1}),
        tell(
            "state.delta",
            patch=[
                {"op": "test", "path": "/shared/list", "value": [1]},
                {"op": "add", "path": "/shared/list/-", "value": 2},
                {"op": "replace", "path": "/shared/list/0", "value": None},
                {"op": "copy", "from": "/shared/list", "path": "/shared/twin"},
                {"op": "move", "from": "/shared/gone", "path": "/shared/a~1b"},
                {"op": "remove", "path": "/shared/list/1"},
            ],
        ),
    )
    assert state.shared == {"list": [None], "twin": [None, 2], "a/b": 1}
    assert state.hydration.status == "live"


BAD_PATCHES: dict[str, Any] = {
    "no list": {"op": "add"},
    "no patch": None,
    "no operation": [5],
    "unknown operation": [{"op": "merge", "path": "/shared/a", "value": 1}],
    "append": [{"op": "append", "path": "/shared/text", "value": "x"}],
    "another root": [{"op": "add", "path": "/messages/-", "value": {}}],
    "the whole document": [{"op": "replace", "path": "", "value": {}}],
    "a root that only begins so": [{"op": "add", "path": "/sharedX", "value": 1}],
    "from another root": [{"op": "copy", "path": "/shared/a", "from": "/runtime"}],
    "no value": [{"op": "add", "path": "/shared/a"}],
    "failed test": [{"op": "test", "path": "/shared/n", "value": True}],
    "missing member": [{"op": "remove", "path": "/shared/none"}],
    "past the end": [{"op": "add", "path": "/shared/list/5", "value": 1}],
    "the root removed": [{"op": "remove", "path": "/shared"}],
    "the root no object": [{"op": "replace", "path": "/shared", "value": []}],
    "the root moved": [{"op": "move", "path": "/shared/n", "from": "/shared"}],
    "into itself": [{"op": "move", "from": "/shared/list", "path": "/shared/list/0"}],
    "no pointer": [{"op": "add", "path": "/shared/~2", "value": 1}],
    "half of it": [
        {"op": "add", "path": "/shared/new", "value": 1},
        {"op": "remove", "path": "/shared/list/0"},
        {"op": "test", "path": "/shared/n", "value": 2},
    ],
}


@pytest.mark.requirement("projection.state-delta.failed")
@pytest.mark.parametrize("name", BAD_PATCHES)
def test_a_patch_that_fails_changes_nothing_and_leaves_the_state_stale(name: str):
    tell = FactMaker()
    before = {"n": 1, "list": [1, 2], "text": "t"}
    state = project_facts(
        tell("state.snapshot", shared=before), tell("state.delta", patch=BAD_PATCHES[name])
    )
    assert list(state.shared.items()) == list(before.items())
    assert (state.hydration.status, codes(state)) == ("stale", ["state_delta_failed"])
    assert state.hydration.reasons == ["state_delta_failed"]


@pytest.mark.requirement("projection.state-delta.failed")
def test_what_is_said_about_a_failed_patch_is_short_however_long_the_patch_is():
    patch = [{"op": "add", "path": "/other/" + "x" * 30_000, "value": 1}]
    state = project_facts(FactMaker()("state.delta", patch=patch))
    assert all(len(item.message) <= 512 for item in state.diagnostics.items.values())


@pytest.mark.requirement("projection.state-delta.failed")
def test_a_whole_shared_state_settles_a_failed_patch():
    tell = FactMaker()
    state = project_facts(tell("state.delta", patch=None), tell("state.snapshot", shared={"n": 1}))
    assert (state.shared, state.hydration.status) == ({"n": 1}, "live")


@pytest.mark.requirement("projection.state-delta.bounded")
def test_copies_cannot_make_the_shared_state_grow_without_bound():
    tell = FactMaker()
    double = {"op": "copy", "from": "/shared", "path": "/shared/twin"}
    facts = [tell("state.snapshot", shared={"text": "x" * 1_000})]
    facts += [tell("state.delta", patch=[double]) for _ in range(40)]
    state = project_facts(*facts)
    assert codes(state)[-1] == "state_delta_failed"
    assert len(msgspec.json.encode(state.shared)) < 100_000


@pytest.mark.requirement("projection.state-delta.bounded")
def test_patches_cannot_nest_the_shared_state_deeper_than_anybody_reads():
    tell = FactMaker()
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"a": deep}
    facts = [
        tell("state.delta", patch=[{"op": "add", "path": "/shared" + "/a" * at, "value": deep}])
        for at in range(1, 1_200, 149)
    ]
    assert codes(project_facts(*facts))[0] == "state_delta_failed"


# Rule 12: unknown classes.


@pytest.mark.requirement("projection.unknown-class")
@pytest.mark.parametrize("name", ["vendor.special", "tool.imagined", "x"])
def test_an_unknown_class_is_an_entry_and_a_diagnostic_and_nothing_else(name: str):
    fact = FactMaker()(name, **TURN, toolCallId="c", text="SPOKEN", status="completed")
    state = project_facts(fact)
    assert [(entry.event_class, entry.owner) for entry in state.timeline] == [(name, "unknown")]
    assert codes(state) == ["unknown_event_type"]
    assert (state.messages, state.tools, state.graph.nodes) == ([], {}, {})


@pytest.mark.requirement("projection.unknown-class")
def test_a_fact_without_a_class_is_unknown_too():
    fact = msgspec.structs.replace(FactMaker()("x"), event_class=None)
    state = project_facts(fact)
    assert (state.timeline[0].event_class, codes(state)) == ("unknown", ["unknown_event_type"])


# Rule 13: what is missing.


def seen_of(name: str, **fields: Any) -> ProjectionState:
    return project_facts(FactMaker()(name, **TURN, **fields))


@pytest.mark.requirement("projection.missing")
def test_what_no_fact_says_reads_unknown():
    artifact = seen_of("tool.result", toolCallId="c", artifactId="a").artifacts["a"]
    assert (artifact.kind, artifact.status, artifact.title) == ("unknown", "unknown", None)
    evidence = seen_of("evidence.changed", evidenceId="e").evidence.items["e"]
    assert (evidence.kind, evidence.verdict) == ("unknown", None)
    task = seen_of("task.updated", taskId="t").tasks["t"]
    assert task.status == "unknown"
    action = seen_of("action.updated", actionId="a").actions["a"]
    assert action.status == "unknown"
    assert seen_of("turn.failed").runtime.failure_category == "unknown"
    assert seen_of("subagent.status", subagentId="s", taskId="t").subagents.threads["s"].status == (
        "unknown"
    )
    command = seen_of("command.exited", commandId="c", payload={"status": "odd"})
    assert command.processes["c"].status == "odd"


@pytest.mark.requirement("projection.missing")
def test_a_state_of_no_facts_is_idle_and_unknown():
    state = Projection(THREAD).state
    assert (state.runtime.status, state.runtime.phase) == ("idle", "unknown")
    assert (state.hydration.status, state.hydration.cursor) == ("idle", None)
    assert state.context.status == "unknown"
    assert state.permissions.sandbox.status == "unknown"


@pytest.mark.requirement("projection.missing")
def test_an_open_tool_reads_unknown_when_its_turn_completes_because_nobody_knows_how_it_ended():
    tell = FactMaker()
    state = project_facts(tell("tool.started", **CALL), tell("turn.completed", **TURN))
    assert state.tools["call"].state == "unknown"
    assert state.tools["call"].completed_at is None
    assert codes(state) == ["tool_unclosed_at_turn_end"]


@pytest.mark.requirement("projection.runtime.phase")
def test_what_ends_inside_a_turn_does_not_end_the_run():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", turnId="turn"),
        tell("model.delta", turnId="turn", messageId="m", delta="x"),
        tell("model.completed", turnId="turn", messageId="m", text="x"),
        tell("tool.started", turnId="turn", toolCallId="c"),
        tell("tool.result", turnId="turn", toolCallId="c"),
    )
    assert (state.runtime.status, state.runtime.phase) == ("running", "acting")
