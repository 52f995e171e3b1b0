"""Permissions and sandbox: which rule said what."""

import pytest

from tests.projection.fact_maker import FactMaker, as_json, codes, project_facts

TURN = {"turnId": "turn"}


@pytest.mark.requirement("projection.permission.events")
def test_decisions_are_listed_and_counted():
    tell = FactMaker()
    state = project_facts(
        tell("permission.evaluated", **TURN, toolCallId="c", payload={"mode": "ask", "rule": "r"}),
        tell("permission.evaluated", **TURN, payload={"decision": "deny"}),
        tell("permission.denied", **TURN, reasonCode="policy"),
    )
    permissions = state.permissions
    assert (permissions.mode, permissions.evaluated, permissions.denied) == ("ask", 2, 2)
    found = [(event.event_class, event.rule, event.reason_code) for event in permissions.events]
    assert found == [
        ("permission.evaluated", "r", None),
        ("permission.evaluated", None, None),
        ("permission.denied", None, "policy"),
    ]
    assert state.messages == []


@pytest.mark.requirement("projection.permission.sandbox")
def test_what_the_sandbox_stopped_blocks_the_run_until_it_goes_on():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("sandbox.applied", **TURN, network=False),
        tell("sandbox.blocked", **TURN, reasonCode="network_denied"),
        tell("sandbox.violation", **TURN, reasonCode="write_outside"),
    )
    sandbox = state.permissions.sandbox
    assert (sandbox.status, sandbox.blocked, sandbox.violations) == ("applied", 1, 1)
    assert as_json(sandbox.applied) == {"network": False}
    assert (state.runtime.status, state.runtime.blocked_reason) == ("blocked", "write_outside")
    assert codes(state) == ["network_denied", "write_outside"]


@pytest.mark.requirement("projection.permission.policy")
def test_of_a_policy_the_known_fields_are_kept():
    payload = {"mode": "auto", "rules": ["a"], "standing": {"lasts": "thread", "place": "/home"}}
    state = project_facts(FactMaker()("policy.changed", payload={**payload, "raw": {"body": "x"}}))
    assert as_json(state.permissions.policy) == {
        "mode": "auto",
        "rules": ["a"],
        "standing": {"lasts": "thread"},
    }
    assert state.permissions.mode == "auto"


@pytest.mark.requirement("projection.permission.policy")
def test_of_a_sandbox_and_of_a_profile_the_known_fields_are_kept():
    tell = FactMaker()
    terms = {
        "mode": "require",
        "network": "none",
        "writable": ["src"],
        "limits": {"processes": {"value": 64, "by": "cgroup", "raw": "x"}},
        "notApplied": [{"what": "memoryBytes", "reason": "no cgroup", "raw": "x"}],
    }
    state = project_facts(
        tell("sandbox.applied", **TURN, payload={**terms, "hidden": 5, "raw": "x"}),
        tell("task.profile.resolved", taskId="k", profile="careful", model="large", raw="x"),
    )
    kept = as_json(state.permissions.sandbox.applied)
    assert kept == {
        **terms,
        "limits": {"processes": {"value": 64.0, "by": "cgroup"}},
        "notApplied": [{"what": "memoryBytes", "reason": "no cgroup"}],
    }
    assert as_json(state.tasks["k"].profile) == {"profile": "careful", "model": "large"}


ASKED = {**TURN, "toolCallId": "c"}


@pytest.mark.requirement("projection.permission.pending")
@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("permission.resolved", {"toolCallId": "c"}),
        ("permission.resolved", {}),
        ("action.resolved", {"actionId": "a"}),
        ("turn.completed", {}),
    ],
)
def test_a_permission_that_is_asked_for_blocks_until_it_is_settled(name: str, ids: dict[str, str]):
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("permission.requested", **ASKED, toolName="shell"),
    ]
    state = project_facts(*facts)
    assert (state.runtime.status, state.runtime.blocked_reason) == (
        "blocked",
        "permission_requested",
    )
    assert [row.tool_name for row in state.permissions.pending] == ["shell"]
    assert state.actions == {}
    facts.append(tell("action.required", **ASKED, actionId="a"))
    assert project_facts(*facts).runtime.status == "waiting"
    state = project_facts(*facts, tell(name, **TURN, **ids))
    assert state.permissions.pending == []
    assert state.runtime.blocked_reason is None


@pytest.mark.requirement("projection.permission.pending")
def test_an_answer_to_another_request_leaves_this_one_pending():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("permission.requested", **ASKED),
        tell("permission.resolved", **TURN, toolCallId="other", decision="allow"),
    )
    assert [row.tool_call_id for row in state.permissions.pending] == ["c"]
    assert state.runtime.status == "blocked"


@pytest.mark.requirement("projection.permission.denied")
def test_a_denial_is_a_diagnostic_and_blocks_until_the_run_goes_on():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("permission.requested", **ASKED),
        tell("permission.denied", **ASKED, reasonCode="denied_by_user", message="Not today."),
    ]
    state = project_facts(*facts)
    assert (state.runtime.status, state.runtime.blocked_reason) == ("blocked", "denied_by_user")
    assert state.permissions.pending == []
    (remark,) = state.diagnostics.items.values()
    assert (remark.code, remark.severity, remark.subject) == ("denied_by_user", "warning", "c")
    assert project_facts(*facts, tell("model.requested", **TURN)).runtime.status == "running"


@pytest.mark.requirement("projection.permission.denied")
def test_what_a_subagent_is_denied_does_not_block_the_thread():
    tell = FactMaker()
    state = project_facts(
        tell("turn.started", **TURN),
        tell("permission.requested", **ASKED, subagentId="s"),
        tell("permission.denied", **ASKED, subagentId="s", reasonCode="policy"),
    )
    assert state.runtime.status == "running"
    assert codes(state) == ["policy"]


@pytest.mark.requirement("projection.permission.events")
def test_a_permission_that_was_forwarded_names_who_asks():
    state = project_facts(
        FactMaker()("channel.permission_forwarded", **TURN, channelId="far", subagentId="s")
    )
    assert [event.subagent_id for event in state.permissions.events] == ["s"]
