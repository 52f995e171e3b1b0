"""Rules of the seeds that no other test is about: what a state keeps, and what it keeps apart."""

from typing import Any, get_args

import msgspec
import pytest

from factwire.facts import CORRELATION_IDS, KNOWN_CLASSES, Fact, required_fields_of
from factwire.facts.classes.class_tables import REQUIRED_KEYS
from factwire.projection import evidence_ref
from factwire.projection.artifacts import EvidenceItem
from factwire.projection.messages import Part
from tests.projection.fact_maker import FactMaker, as_json, codes, project_facts, watch_facts

TURN = {"turnId": "turn"}
MEMBER = {**TURN, "subagentId": "sub", "taskId": "task"}
ELSEWHERE = {"threadId", "turnId", "sessionId", "runtimeId"}
EVERY_ID = {**dict.fromkeys(set(CORRELATION_IDS) - ELSEWHERE, "some"), **TURN}
NEEDED = {
    **dict.fromkeys(REQUIRED_KEYS - {"artifactRefs", "artifact_refs", "evidenceRefs"}, "some"),
    "exitCode": 0,
    "result": "passed",
    "hookId": "hook",
    "evidence_refs": ["some"],
}


def tell_all(event_class: str, **fields: Any) -> Fact:
    """One fact of any class, with everything that a class may need."""
    return FactMaker()(event_class, **EVERY_ID, refIds=["ref"], **NEEDED, **fields)


@pytest.mark.requirement("seed.turn.end-refs")
def test_the_end_of_a_turn_keeps_its_time_and_its_evidence():
    tell = FactMaker()
    at = "2026-06-10T00:01:00Z"
    state = project_facts(
        tell("turn.started", **TURN),
        tell("turn.completed", **TURN, completedAt=at, evidenceRefs=["pack"]),
    )
    (entry,), node = state.timeline, state.graph.nodes["turn:turn"]
    assert (entry.completed_at, entry.refs) == (at, ["pack"])
    assert (node.completed_at, node.refs) == (at, ["pack"])


@pytest.mark.requirement("seed.team.lanes")
def test_handoffs_reviews_and_notifications_are_events_of_lanes_in_order():
    tell = FactMaker()
    state = project_facts(
        tell("handoff.requested", **TURN, handoffId="h", fromAgent="a", toAgent="b"),
        tell("review.requested", **TURN, reviewId="r", evidenceRefs=["e"]),
        tell("worker.notification", **TURN, workerId="w", message="Done."),
        tell("review.verdict", **TURN, reviewId="r", evidenceRefs=["e"], verdict="passed"),
    )
    team = state.team_workbench
    lanes = [(event.lane, event.subject_id, event.status) for event in team.lane_events]
    assert lanes == [
        ("handoff", "h", "requested"),
        ("review", "r", "requested"),
        ("notification", "w", "received"),
        ("review", "r", "completed"),
    ]
    assert [(event.verdict, event.refs) for event in team.review_events] == [
        (None, ["e"]),
        ("passed", ["e"]),
    ]


@pytest.mark.requirement("seed.snapshot.refs")
def test_the_refs_of_a_snapshot_are_kept_with_it():
    state = project_facts(
        FactMaker()("snapshot.updated", refIds=["raw:snapshot"], evidenceRefs=["pack"])
    )
    assert state.timeline[0].refs == ["raw:snapshot", "pack"]


@pytest.mark.requirement("seed.raw.kept-out")
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_payload_fields_that_nobody_knows_do_not_reach_the_state(name: str):
    fact = tell_all(name, rawResponse="RAW-BODY", providerPayload={"choices": ["RAW-BODY"]})
    assert b"RAW-BODY" not in watch_facts([fact]).projection.snapshot()


SPEAKING = {
    *("model.delta", "model.completed", "text.delta", "text.final"),
    *("turn.submitted", "turn.started"),
}
"""Classes that put words into a conversation: the model's answer and the user's question."""


@pytest.mark.requirement("seed.surfaces.text")
@pytest.mark.parametrize("name", sorted(KNOWN_CLASSES))
def test_only_text_facts_put_words_into_the_conversation(name: str):
    fields = ("text", "delta", "message", "summary", "prompt", "reason", "output", "content")
    words = dict.fromkeys(fields, "WORDS")
    state = project_facts(tell_all(name, **words, title="WORDS", detail="WORDS"))
    found = [
        part["text"]
        for message in as_json(state.messages)
        for part in message["parts"]
        if part["type"] == "text"
    ]
    assert found == (["WORDS"] if name in SPEAKING else [])


@pytest.mark.requirement("seed.evidence.correlation")
def test_a_ref_to_evidence_names_the_run_it_belongs_to():
    ids = {**MEMBER, "runId": "run", "toolCallId": "call", "traceId": "trace"}
    fact = FactMaker()("evidence.changed", **ids, evidenceId="evd", kind="trace")
    item: EvidenceItem = project_facts(fact).evidence.items["evd"]
    assert evidence_ref(item).runtime_correlation == {
        "turnId": "turn",
        "runId": "run",
        "taskId": "task",
        "subagentId": "sub",
        "toolCallId": "call",
        "traceId": "trace",
    }


@pytest.mark.requirement("seed.subagent.correlation")
def test_what_a_subagent_made_names_the_subagent_and_its_task():
    tell = FactMaker()
    state = project_facts(
        tell("subagent.started", **MEMBER),
        tell("artifact.changed", **MEMBER, artifactId="art"),
        tell("evidence.changed", **MEMBER, evidenceId="evd"),
        tell("subagent.completed", **MEMBER, artifactRefs=["art"], evidenceRefs=["evd"]),
    )
    made, cited = state.artifacts["art"], state.evidence.items["evd"]
    assert (made.subagent_id, made.task_id) == ("sub", "task")
    assert (cited.subagent_id, cited.task_id) == ("sub", "task")
    thread = state.subagents.threads["sub"]
    assert (thread.artifact_refs, thread.evidence_refs) == (["art"], ["evd"])


@pytest.mark.requirement("seed.runtime.shape")
def test_the_shape_of_a_run_is_kept_as_stated():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN, runtimeEntity="agent_turn", topology="coordinator_team"),
        tell(
            "run.status",
            **TURN,
            runId="run",
            runtimeStatus="admitted",
            teamPhase="reviewing",
            payload={"status": "running", "queuedTurnCount": 3, "queueReason": "provider_busy"},
        ),
        tell("run.status", **TURN, payload={"activeTurnCount": 2, "parallelLimit": 4}),
    )
    run = as_json(state.runtime)
    assert run["runtimeEntity"] == "agent_turn"
    assert run["topology"] == "coordinator_team"
    assert run["runtimeStatus"] == "admitted"
    assert run["teamPhase"] == "reviewing"
    assert run["latestTurnStatus"] == "running"
    assert (run["queuedTurnCount"], run["queueReason"]) == (3, "provider_busy")
    assert (run["activeTurnCount"], run["parallelLimit"]) == (2, 4)


@pytest.mark.requirement("seed.runtime.entities")
@pytest.mark.parametrize("entity", ["automation_job", "external_task", "work_item", "odd_new_one"])
def test_the_entity_of_a_task_is_kept_and_makes_no_category_of_ours(entity: str):
    state = project_facts(FactMaker()("task.started", **TURN, taskId="task", runtimeEntity=entity))
    assert state.tasks["task"].runtime_entity == entity


@pytest.mark.requirement("seed.runtime.entities")
def test_a_teammates_turn_is_not_the_turn_of_the_thread():
    tell = FactMaker()
    own = {"turnId": "child", "subagentId": "sub", "taskId": "task"}
    own |= {"runtimeEntity": "subagent_turn"}
    state = project_facts(
        tell("turn.started", **TURN, runtimeEntity="agent_turn"),
        tell("turn.started", **own),
        tell("turn.failed", **own, failureCategory="odd"),
    )
    run = state.runtime
    assert (run.status, run.active_turn_id, run.failure_category) == ("running", "turn", None)


@pytest.mark.requirement("seed.missing.evidence")
@pytest.mark.parametrize("name", ["evidence.changed", "evidence.exported", "review.verdict"])
def test_a_fact_without_an_evidence_id_makes_no_evidence(name: str):
    state = project_facts(
        FactMaker()(name, **TURN, verdict="passed", status="completed", summary="Proven.")
    )
    assert (state.evidence.items, state.evidence.reviews) == ({}, {})
    assert [(entry.degraded, entry.status) for entry in state.timeline] == [(True, "unknown")]
    assert codes(state) == ["missing_scope_id"]


@pytest.mark.requirement("seed.missing.control")
@pytest.mark.parametrize("name", ["action.resolved", "action.cancelled", "action.expired"])
def test_a_broken_answer_leaves_a_request_open_for_people(name: str):
    tell = FactMaker()
    request = tell("action.required", **TURN, actionId="a", prompt="May I?")
    broken = tell(name, **TURN, decision="approved")
    state = project_facts(request, broken)
    assert (state.actions["a"].status, state.runtime.status) == ("pending", "waiting")
    answer = tell("action.resolved", **TURN, actionId="a", decision="denied")
    assert project_facts(request, broken, answer).actions["a"].decision == "denied"


PARTS = {
    "text": {"text", "state", "settles", "aliases"},
    "reasoning": {"summary", "characters", "state", "settles", "encryptedRef", "aliases"},
    "tool-preview": {"toolCallId", "status", "outputRef"},
    "artifact-card": {"artifactId", "versionId"},
    "evidence-citation": {"evidenceId", "verdict"},
    "diagnostic-ref": {"diagnosticId"},
}
"""What each type of part has besides its own id and its message's: words, or a way to an owner.
`settles` is an end that cannot be called one yet; `characters` counts what is not shown.
"""


@pytest.mark.requirement("seed.parts.exact")
def test_parts_have_the_fields_of_their_type_and_no_place_for_anything_else():
    found = {
        str(kind.__struct_config__.tag): {
            field.encode_name for field in msgspec.structs.fields(kind)
        }
        - {"partId", "messageId"}
        for kind in get_args(Part)
    }
    assert found == PARTS


def test_the_facts_that_these_tests_tell_have_what_their_classes_need():
    lacking = [
        name
        for name in KNOWN_CLASSES
        if not all(n.is_met(tell_all(name)) for n in required_fields_of(name))
    ]
    assert lacking == []
