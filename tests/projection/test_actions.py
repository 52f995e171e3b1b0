"""Actions: who asks, what for, and what was decided."""

import pytest

from tests.projection.fact_maker import FactMaker, as_json, project_facts

ACTION = {"turnId": "turn", "actionId": "a/1~2"}


@pytest.mark.requirement("projection.action.request")
def test_a_request_shows_what_it_is_about():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", turnId="turn"),
        tell("tool.started", turnId="turn", toolCallId="call"),
        tell(
            "action.required",
            **ACTION,
            toolCallId="call",
            subagentId="s",
            actionType="tool_approval",
            severity="high",
            prompt="Delete it?",
            options=["yes", "no"],
            argsHash="h",
            expiresAt="later",
            command=["rm", "x"],
            title="Approve",
        ),
    )
    assert as_json(state.actions["a/1~2"]) == {
        "actionId": "a/1~2",
        "status": "pending",
        "actionType": "tool_approval",
        "severity": "high",
        "title": "Approve",
        "prompt": "Delete it?",
        "requestedBy": "s",
        "subagentId": "s",
        "turnId": "turn",
        "toolCallId": "call",
        "command": ["rm", "x"],
        "argsHash": "h",
        "expiresAt": "later",
        "options": ["yes", "no"],
        "requestedAt": "2026-06-10T00:00:03Z",
        "sequence": 3,
    }
    assert state.tools["call"].action_id == "a/1~2"
    assert state.runtime.status == "waiting"


@pytest.mark.requirement("projection.action.decision")
def test_a_decision_and_its_application_are_two_things():
    tell = FactMaker()
    facts = [
        tell("action.required", **ACTION),
        tell("action.resolved", **ACTION, decision="approve", decidedBy="user", reason="fine"),
    ]
    action = project_facts(*facts).actions["a/1~2"]
    assert (action.status, action.decision, action.applied) == ("resolved", "approve", None)
    action = project_facts(*facts, tell("action.updated", **ACTION, applied=True)).actions["a/1~2"]
    assert (action.status, action.applied) == ("resolved", True)


@pytest.mark.requirement("projection.action.decision")
def test_an_action_that_was_closed_may_be_asked_anew_without_its_old_decision():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", turnId="turn"),
        tell("action.required", **ACTION),
        tell("action.resolved", **ACTION, decision="deny"),
        tell("action.required", **ACTION),
    )
    action = state.actions["a/1~2"]
    assert (action.status, action.decision, action.resolved_at) == ("pending", None, None)
    assert state.runtime.status == "waiting"


@pytest.mark.requirement("projection.action.decision")
def test_an_update_neither_opens_nor_closes():
    tell = FactMaker()
    state = project_facts(
        tell("action.updated", **ACTION, payload={"severity": "low", "decision": "deny"})
    )
    assert state.actions["a/1~2"].status == "unknown"
    assert state.runtime.status != "waiting"


@pytest.mark.requirement("projection.action.waiting")
def test_a_thread_waits_until_its_last_open_action_is_closed():
    tell = FactMaker()
    facts = [
        tell("turn.started", turnId="turn"),
        tell("action.required", turnId="turn", actionId="one"),
        tell("action.required", turnId="turn", actionId="two"),
        tell("action.expired", turnId="turn", actionId="one"),
        tell("action.resolved", turnId="turn", actionId="two"),
    ]
    found = [project_facts(*facts[:count]).runtime.status for count in range(1, 6)]
    assert found == ["running", "waiting", "waiting", "waiting", "running"]


@pytest.mark.requirement("projection.runtime.status")
def test_of_all_that_holds_at_once_the_strongest_shows():
    tell = FactMaker()
    ids = {"turnId": "turn"}
    facts = [
        tell("session.created"),
        tell("turn.started", **ids),
        tell("sandbox.blocked", **ids, reasonCode="network"),
        tell("action.required", **ids, actionId="a"),
        tell("turn.failed", **ids, failureCategory="provider", recoveryHint="retry"),
        tell("turn.started", turnId="next"),
        tell("action.resolved", **ids, actionId="a"),
        tell("turn.canceled", turnId="next"),
    ]
    found = [project_facts(*facts[:count]).runtime.status for count in range(1, 9)]
    assert found == [
        "idle",
        "running",
        "blocked",
        "waiting",
        "failed",
        "running",
        "running",
        "canceled",
    ]


@pytest.mark.requirement("projection.runtime.status")
def test_the_next_sign_of_work_lifts_a_block():
    tell = FactMaker()
    ids = {"turnId": "turn"}
    state = project_facts(
        tell("turn.started", **ids),
        tell("sandbox.blocked", **ids, reasonCode="network"),
        tell("model.delta", **ids, delta="on"),
    )
    assert (state.runtime.status, state.runtime.blocked_reason) == ("running", None)


@pytest.mark.requirement("projection.runtime.turns")
def test_the_end_of_another_turn_leaves_the_active_one():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", turnId="one"),
        tell("turn.failed", turnId="other", failureCategory="x"),
    )
    assert (state.runtime.active_turn_id, state.runtime.status) == ("one", "running")


@pytest.mark.requirement("projection.runtime.turns")
def test_a_turn_that_was_only_submitted_is_not_active():
    state = project_facts(FactMaker()("turn.submitted", turnId="one", prompt="x"))
    assert (state.runtime.active_turn_id, state.runtime.latest_turn_status) == (None, "submitted")


@pytest.mark.requirement("projection.runtime.submitted")
def test_a_thread_with_a_submitted_turn_is_neither_idle_nor_still_completed():
    """Of the statuses that there are, only `running` says that an answer is to come; the phase
    says that nobody has started on it.
    """
    tell = FactMaker()
    first = [tell(name, turnId="one") for name in ("turn.started", "turn.completed")]
    state = project_facts(*first, tell("turn.submitted", turnId="two", prompt="x"))
    assert (state.runtime.status, state.runtime.phase) == ("running", "submitted")
    started = project_facts(*first, tell("turn.started", sequence=3, turnId="two"))
    assert (started.runtime.status, started.runtime.phase) == ("running", "accepted")


@pytest.mark.requirement("projection.runtime.status")
@pytest.mark.parametrize(
    "end", ["action.resolved", "action.cancelled", "action.canceled", "action.expired"]
)
def test_a_run_no_longer_waits_once_the_last_request_is_closed(end: str):
    tell = FactMaker()
    facts = [
        tell("turn.started", turnId="t"),
        tell("action.required", turnId="t", actionId="a"),
        tell("action.required", turnId="t", actionId="b"),
        tell(end, turnId="t", actionId="a", decision="approved"),
        tell(end, turnId="t", actionId="b", decision="approved"),
    ]
    shown = [project_facts(*facts[:count]).runtime for count in (3, 4, 5)]
    assert [(run.status, run.phase) for run in shown] == [
        ("waiting", "waiting"),
        ("waiting", "waiting"),
        ("running", "acting"),
    ]
