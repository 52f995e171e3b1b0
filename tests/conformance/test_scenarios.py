"""The scenarios: complete, exact, kept by Factwire, and open to programs in any language."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from factwire.conformance.reducers import (
    BrokenReducer,
    factwire_reducer,
    program_reducer,
)
from factwire.conformance.requirements import REQUIREMENTS
from factwire.conformance.scenario import (
    Expectation,
    find_mismatch,
    scenario,
    scenario_findings,
    scenario_issues,
    scenario_names,
    scenarios,
)

MINIMUMS = [
    pytest.param("provider-text", marks=pytest.mark.requirement("seed.provider.text")),
    pytest.param("provider-tool", marks=pytest.mark.requirement("seed.provider.tool")),
    pytest.param("provider-approval", marks=pytest.mark.requirement("seed.provider.approval")),
    pytest.param("provider-failure", marks=pytest.mark.requirement("seed.provider.failure")),
    pytest.param("provider-repair", marks=pytest.mark.requirement("seed.provider.repair")),
    pytest.param("provider-retry", marks=pytest.mark.requirement("seed.provider.retry")),
]

every_scenario = pytest.mark.parametrize("name", scenario_names())


@every_scenario
def test_factwire_shows_what_a_scenario_expects(name: str):
    assert list(scenario_findings(scenario(name), factwire_reducer)) == []


@pytest.mark.parametrize("name", MINIMUMS)
def test_a_recorded_minimum_is_met(name: str):
    assert list(scenario_findings(scenario(name), factwire_reducer)) == []


@every_scenario
def test_a_scenario_has_exactly_the_defects_that_it_names(name: str):
    assert scenario_issues(scenario(name)) == scenario(name).issues


@pytest.mark.requirement("seed.scenarios.complete")
def test_every_acceptance_scenario_and_every_minimum_is_there_once():
    sources = [scenario(name).source for name in scenario_names()]
    for number in range(1, 13):
        assert sources.count(f"seed 002, acceptance scenarios, {number}") == 1
    for number in range(1, 7):
        assert sum(f"provider minimums, {number};" in source for source in sources) == 1


@every_scenario
def test_a_scenario_names_a_requirement_that_is_claimed(name: str):
    assert scenario(name).requirement in REQUIREMENTS


def test_scenarios_are_cases_that_factwire_passes():
    cases = scenarios()
    assert [case.id for case in cases] == [f"scenario.{name}" for name in scenario_names()]
    assert [finding for case in cases for finding in case.run(factwire_reducer)] == []


def test_a_scenario_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(KeyError, match="provider-text"):
        scenario("no-such-thing")


@every_scenario
@pytest.mark.requirement("seed.scenarios.exact")
def test_every_expectation_states_one_thing_about_a_place(name: str):
    for expectation in scenario(name).expectations:
        fields = ("equals", "count", "keys", "lacks", "absent")
        assert sum(getattr(expectation, field) is not UNSET for field in fields) == 1
        if expectation.after is not UNSET:
            assert expectation.after < len(scenario(name).events)


@every_scenario
@pytest.mark.requirement("seed.scenarios.exact")
def test_an_empty_state_falls_short_of_every_scenario(name: str):
    findings = list(scenario_findings(scenario(name), lambda _events, _model: {}))
    assert findings
    assert {finding.requirement for finding in findings} == {scenario(name).requirement}


@every_scenario
@pytest.mark.requirement("seed.scenarios.exact")
def test_a_reducer_that_passes_over_facts_falls_short_of_every_scenario(name: str):
    """Every scenario needs its facts: without the last that matters, something differs."""
    kept = scenario(name)
    without = [
        list(scenario_findings(kept, _passing_over(place))) for place in range(len(kept.events))
    ]
    assert any(without)


def _passing_over(place: int) -> Any:
    def reduce(events: list[dict[str, Any]], model: Any) -> dict[str, Any]:
        passed = [{**event, "eventClass": "session.updated"} for event in events[place : place + 1]]
        return factwire_reducer([*events[:place], *passed, *events[place + 1 :]], model)

    return reduce


def appends_the_final_text(state: dict[str, Any]) -> None:
    for message in state["messages"]:
        finals = [part for part in message["parts"] if part.get("state") == "final"]
        message["parts"] += finals if message["role"] == "assistant" else []


def flattens_subagents(state: dict[str, Any]) -> None:
    for message in state["messages"]:
        message.pop("subagentId", None)


def takes_notifications_for_messages(state: dict[str, Any]) -> None:
    for note in state["teamWorkbench"]["notifications"]:
        part = {"type": "text", "text": note["message"]}
        state["messages"].append({"role": "user", "parts": [part]})


def forgets_who_asks(state: dict[str, Any]) -> None:
    for action in state["actions"].values():
        action.pop("requestedBy", None)


def names_artifacts_by_prose(state: dict[str, Any]) -> None:
    for artifact in state["artifacts"].values():
        artifact["kind"] = "spreadsheet"


def answers_by_a_click(state: dict[str, Any]) -> None:
    for action in state["actions"].values():
        action["status"] = "resolved"


def says_all_is_well(state: dict[str, Any]) -> None:
    state["hydration"] |= {"status": "live", "gaps": []}


@pytest.mark.requirement("seed.scenarios.exact")
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (appends_the_final_text, "final-reconciles"),
        (flattens_subagents, "subagent-apart"),
        (takes_notifications_for_messages, "notification-apart"),
        (forgets_who_asks, "delegated-approval"),
        (names_artifacts_by_prose, "unknown-artifact"),
        (answers_by_a_click, "provider-approval"),
        (answers_by_a_click, "snapshot-completes-nothing"),
        (says_all_is_well, "hole-filled"),
    ],
)
def test_a_reducer_with_one_fault_falls_short_of_the_scenario_about_it(
    fault: Callable[[dict[str, Any]], None], name: str
):
    def reduce(events: Any, model: Any) -> dict[str, Any]:
        state = factwire_reducer(events, model)
        fault(state)
        return state

    assert list(scenario_findings(scenario(name), reduce))


STATE: dict[str, Any] = {
    "runtime": {"status": "running", "late": None},
    "messages": [{"text": "one two"}],
    "flags": {"on": True, "number": 1},
}


@pytest.mark.requirement("seed.scenarios.exact")
@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        (Expectation(at="/runtime/status", equals="running"), None),
        (Expectation(at="/runtime/status", equals="failed"), 'expected "failed", got "running"'),
        (Expectation(at="/flags/on", equals=1), "expected 1, got true"),
        (Expectation(at="/runtime/nothing", equals=1), "expected 1, got nothing"),
        (Expectation(at="/messages", count=1), None),
        (Expectation(at="/messages", count=2), "expected 2, got 1"),
        (Expectation(at="/runtime/status", count=7), "expected 7, got null"),
        (Expectation(at="/flags", keys=["number", "on"]), None),
        (Expectation(at="/flags", keys=["on"]), 'expected ["on"], got ["number","on"]'),
        (Expectation(at="/messages", keys=["on"]), 'expected ["on"], got null'),
        (Expectation(at="/messages", lacks="three"), None),
        (Expectation(at="", lacks="two"), "expected no 'two' in it"),
        (Expectation(at="/flags", lacks="num"), "expected no 'num' in it"),
        (Expectation(at="/runtime/nothing", absent=True), None),
        (Expectation(at="/runtime/late", absent=True), None),
        (Expectation(at="/flags/number", absent=True), "expected nothing, got 1"),
    ],
)
def test_a_difference_is_told_with_what_was_expected_and_what_came(
    expectation: Expectation, problem: str | None
):
    assert find_mismatch(expectation, STATE) == problem


def test_a_long_difference_is_cut():
    problem = find_mismatch(Expectation(at="", equals="x" * 500), STATE)
    assert problem is not None
    assert len(problem) < 500


def test_an_expectation_that_states_nothing_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        find_mismatch(Expectation(at="/runtime"), STATE)


OWN = """
import json, sys
from factwire.conformance.reducers import factwire_reducer
given = json.load(sys.stdin)
json.dump(factwire_reducer(given["events"], given["readModel"]), sys.stdout)
"""


@pytest.mark.requirement("seed.reducers.program")
def test_a_program_that_reduces_facts_is_held_to_the_same_data():
    reduce = program_reducer([sys.executable, "-c", OWN])
    assert list(scenario_findings(scenario("tool-artifact"), reduce)) == []


REPAIRED = OWN.replace('given["readModel"])', 'given["readModel"], given["repair"])')


@pytest.mark.requirement("seed.reducers.program")
def test_a_program_that_can_be_repaired_is_given_the_newer_read_model():
    kept = scenario("cut-repaired")
    assert kept.repair is not None
    reduce = program_reducer([sys.executable, "-c", REPAIRED])
    assert list(scenario_findings(kept, reduce)) == []
    forgetful = program_reducer([sys.executable, "-c", OWN])
    assert list(scenario_findings(kept, forgetful))


@pytest.mark.requirement("seed.scenarios.exact")
def test_a_reducer_that_cannot_be_repaired_falls_short_and_is_told_what_it_lacks():
    findings = list(scenario_findings(scenario("cut-repaired"), lambda _events, _model: {}))
    assert {finding.requirement for finding in findings} == {"projection.repair.read-model"}
    assert all("third parameter" in finding.message for finding in findings)


@pytest.mark.requirement("seed.reducers.program")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit('no such fact')", "no such fact"),
        ("print('hello')", "state document on standard output"),
        ("print('[]')", "got list"),
    ],
)
def test_a_program_that_gives_no_state_is_an_error_that_says_why(program: str, message: str):
    reduce = program_reducer([sys.executable, "-c", program])
    with pytest.raises(BrokenReducer, match=message) as caught:
        reduce([], None)
    assert caught.value.code == "broken_reducer"


@pytest.mark.requirement("seed.reducers.program")
def test_a_program_that_is_not_there_or_never_answers_is_an_error():
    with pytest.raises(BrokenReducer, match="to answer"):
        program_reducer(["no-such-program-anywhere"])([], None)
    waits = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    with pytest.raises(BrokenReducer, match="timed out"):
        program_reducer(waits, seconds=0.2)([], None)
