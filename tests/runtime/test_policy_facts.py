"""What the policy said, as facts that are valid in every shape."""

import msgspec
import pytest

from factwire.facts import Fact, Shape, inspect_fact, write_fact
from factwire.projection import project
from factwire.runtime import FactScope, Mint
from factwire.runtime.policy import (
    PolicyRequest,
    build_denial_fact,
    build_evaluation_fact,
    evaluate,
    hash_request,
)
from tests.runtime.policy_cases import fetch, policy, run, use

SCOPE = FactScope(session_id="s", thread_id="t", turn_id="u")


def mint() -> Mint:
    return Mint("test", clock=lambda: "2026-01-01T00:00:00Z", ids=lambda prefix: f"{prefix}_1")


def place_fact(fact: Fact, sequence: int = 1) -> Fact:
    return msgspec.structs.replace(fact, sequence=sequence)


@pytest.mark.requirement("runtime.policy.facts")
def test_an_evaluation_is_a_fact():
    request = run("rm x")
    evaluation = evaluate(policy("!Bash(rm *)"), request)
    fact = build_evaluation_fact(mint(), SCOPE, request, evaluation, tool_call_id="c")
    assert (fact.event_class, fact.kind, fact.tool_call_id) == (
        "permission.evaluated",
        "permission",
        "c",
    )
    assert (fact.thread_id, fact.turn_id) == ("t", "u")
    assert fact.payload == {
        "decision": "deny",
        "mode": "default",
        "rule": "Bash(rm *)",
        "reasonCode": "rule_deny",
        "message": "rm x: a rule denies it",
        "toolName": "Bash",
        "command": "rm x",
        "riskLevel": "high",
        "argsHash": hash_request(request),
    }
    denied = build_denial_fact(mint(), SCOPE, request, evaluation)
    assert (denied.event_class, denied.payload) == ("permission.denied", fact.payload)


@pytest.mark.requirement("runtime.policy.facts")
def test_only_a_denial_is_told_as_one():
    request = run("ls")
    with pytest.raises(ValueError, match="expected a denial, got the decision 'ask'"):
        build_denial_fact(mint(), SCOPE, request, evaluate(policy(), request))


@pytest.mark.requirement("runtime.policy.facts")
@pytest.mark.parametrize("shape", ["facts", "runtime-event"])
@pytest.mark.parametrize(
    "request_",
    [
        use("Read", "src/a.py"),
        use("Edit", "src/a\u202e.py"),
        run("git status"),
        run(("git", "status")),
        run("curl -H 'Authorization: Bearer abcdefghijklmnop0123456789' https://example.org"),
        run("export OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"),
        run("x" * 100_000),
        run("\u202e" * 10_000),
        fetch("https://user:password1@example.org/"),
        use("deploy"),
        use("x" * 50_000),
    ],
)
def test_the_facts_are_valid_whatever_was_asked(request_: PolicyRequest, shape: Shape):
    for rules in ("", "+*", "!*"):
        evaluation = evaluate(policy(rules), request_)
        facts = [build_evaluation_fact(mint(), SCOPE, request_, evaluation)]
        if evaluation.decision == "deny":
            facts.append(build_denial_fact(mint(), SCOPE, request_, evaluation))
        for fact in facts:
            assert inspect_fact(write_fact(place_fact(fact), shape), shape) == []


@pytest.mark.requirement("runtime.policy.facts")
def test_a_projection_shows_what_was_decided():
    request = run("rm x")
    evaluation = evaluate(policy("", "dontAsk"), request)
    facts = [
        place_fact(build_evaluation_fact(mint(), SCOPE, request, evaluation), 1),
        msgspec.structs.replace(
            place_fact(build_denial_fact(mint(), SCOPE, request, evaluation), 2), id="evt_2"
        ),
    ]
    permissions = project(facts).permissions
    assert (permissions.mode, permissions.evaluated) == ("dontAsk", 1)
    assert [event.reason_code for event in permissions.events] == ["dont_ask", "dont_ask"]
