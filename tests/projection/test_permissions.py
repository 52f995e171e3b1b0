"""Permissions and sandbox: which rule said what."""

import pytest

from tests.projection.telling import Telling, codes, shown

TURN = {"turnId": "turn"}


@pytest.mark.requirement("projection.permission.events")
def test_decisions_are_listed_and_counted():
    tell = Telling()
    state = shown(
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
    tell = Telling()
    state = shown(
        tell("turn.started", **TURN),
        tell("sandbox.applied", **TURN, network=False),
        tell("sandbox.blocked", **TURN, reasonCode="network_denied"),
        tell("sandbox.violation", **TURN, reasonCode="write_outside"),
    )
    sandbox = state.permissions.sandbox
    assert (sandbox.status, sandbox.blocked, sandbox.violations) == ("applied", 1, 1)
    assert sandbox.applied == {"network": False}
    assert (state.runtime.status, state.runtime.blocked_reason) == ("blocked", "write_outside")
    assert codes(state) == ["network_denied", "write_outside"]


@pytest.mark.requirement("projection.permission.policy")
def test_a_policy_is_kept_as_stated():
    state = shown(Telling()("policy.changed", payload={"mode": "auto", "rules": ["a"]}))
    assert state.permissions.policy == {"mode": "auto", "rules": ["a"]}
    assert state.permissions.mode == "auto"


@pytest.mark.requirement("projection.permission.events")
def test_a_permission_that_was_forwarded_names_who_asks():
    state = shown(
        Telling()("channel.permission_forwarded", **TURN, channelId="far", subagentId="s")
    )
    assert [event.subagent_id for event in state.permissions.events] == ["s"]
