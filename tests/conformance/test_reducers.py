"""Facts given against facts shown: Factwire passes, and each broken reducer fails exactly one."""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from factwire.conformance import (
    REQUIREMENTS,
    LinesReducer,
    fixture,
    fixtures,
    load_reducer,
    reducer_cases,
    scenarios,
    try_reducer,
)
from factwire.conformance.account_checks import ACCOUNT_REQUIREMENTS, find_differences
from factwire.conformance.case import Case, ConformanceError, Reducer
from factwire.conformance.delivery_checks import DELIVERY_CHECKS, delivery_cases
from factwire.conformance.delivery_streams import fixture_streams
from factwire.conformance.fact_account import build_account
from factwire.conformance.fixture_checks import fixture_cases
from factwire.conformance.reducers import BrokenReducer, call_reducer, factwire_reducer
from factwire.conformance.runner import case_results
from factwire.conformance.ui_checks import UiMapping, factwire_mapping, mapping_cases
from tests.conformance.broken_reducers import BROKEN_MAPPINGS, BROKEN_REDUCERS

ROOT = Path(__file__).resolve().parents[2]
JUDGED = (
    *("text-basic", "tool-success", "hitl-action", "approval-denied", "artifact-evidence"),
    *("parallel-subagents", "turn-failed", "out-of-order"),
)
SECONDS = 120.0


@cache
def judging_cases() -> tuple[Case, ...]:
    """What broken reducers are judged by: everything, over fewer fixtures."""
    chosen = [fixture(name) for name in JUDGED]
    screens = [case for case in fixture_cases() if case.id.split(".")[1] in JUDGED]
    return (*screens, *scenarios(), *delivery_cases(fixture_streams(chosen)))


def find_broken(reduce: Reducer, cases: tuple[Case, ...] | None = None) -> set[str]:
    results = case_results(cases or judging_cases(), reduce, SECONDS)
    return {name for result in results for name in result.broken}


@pytest.mark.requirement("screen.facts-shown")
@pytest.mark.requirement("screen.outcomes")
@pytest.mark.requirement("screen.edges")
@pytest.mark.requirement("screen.times")
@pytest.mark.requirement("screen.nothing-left-open")
@pytest.mark.requirement("screen.first-answer")
@pytest.mark.requirement("screen.prompts")
@pytest.mark.requirement("screen.order")
@pytest.mark.requirement("screen.early-snapshots")
@pytest.mark.requirement("screen.late-facts")
@pytest.mark.requirement("screen.counts")
@pytest.mark.requirement("screen.recovery")
@pytest.mark.requirement("screen.child-turns")
@pytest.mark.requirement("screen.one-part")
@pytest.mark.requirement("screen.cancelled-work")
@pytest.mark.requirement("screen.lenient")
@pytest.mark.requirement("screen.empty-repairs")
@pytest.mark.requirement("screen.restarts")
@pytest.mark.requirement("screen.lost-text")
@pytest.mark.requirement("screen.restored-doubts")
@pytest.mark.parametrize("case", reducer_cases(), ids=lambda case: case.id)
def test_factwire_passes_every_case_of_reducers(case: Case):
    [result] = case_results([case], factwire_reducer, SECONDS)
    assert [finding.message for finding in result.findings] == []


@pytest.mark.requirement("conformance.reducers")
@pytest.mark.parametrize("name", BROKEN_REDUCERS)
def test_a_broken_reducer_fails_exactly_what_it_breaks(name: str):
    reduce, requirement = BROKEN_REDUCERS[name]
    assert find_broken(reduce) == {requirement}


@pytest.mark.requirement("conformance.reducers")
def test_there_is_a_broken_reducer_or_mapping_for_every_requirement_of_screens():
    shown = {name for _, name in (*BROKEN_REDUCERS.values(), *BROKEN_MAPPINGS.values())}
    judged = {check.requirement for check in DELIVERY_CHECKS} | set(ACCOUNT_REQUIREMENTS)
    # No stream here ends with a call under way. That none is completed by guessing is shown with
    # the fixtures and with recorded streams.
    judged.discard("screen.nothing-guessed")
    assert judged | {"screen.ui-round-trip", "screen.ui-repeats"} == shown


@pytest.mark.requirement("screen.ui-round-trip")
@pytest.mark.requirement("screen.ui-repeats")
def test_factwires_mapping_passes():
    assert find_broken_mapping(factwire_mapping) == {}


@pytest.mark.requirement("conformance.reducers")
@pytest.mark.parametrize("name", BROKEN_MAPPINGS)
def test_a_broken_mapping_fails_exactly_what_it_breaks(name: str):
    mapping, requirement = BROKEN_MAPPINGS[name]
    assert set(find_broken_mapping(mapping)) == {requirement}


def find_broken_mapping(mapping: UiMapping) -> dict[str, list[str]]:
    results = case_results(mapping_cases(fixture_streams(fixtures()), mapping), seconds=SECONDS)
    return {
        result.id.replace("mapping.", "screen."): [each.message for each in result.findings]
        for result in results
        if result.findings
    }


def facts_of(name: str) -> list[dict[str, Any]]:
    return fixture(name).events


def test_the_account_states_what_the_facts_of_a_fixture_state():
    account = build_account(list(reversed(facts_of("hitl-action"))))
    assert account.texts is not None
    texts = [text.text for rows in account.texts.values() for text in rows]
    assert (len(texts), account.last_turn) == (1, ("trn_1", "completed"))
    assert {name: call.outcome for name, call in account.calls.items()} == {
        "call_1": "output-available"
    }
    requests = {name: (each.outcome, each.decision) for name, each in account.requests.items()}
    assert requests == {"act_1": ("resolved", "approved")}
    assert account.edges == {("tool:call_1", "action:act_1")}


@pytest.mark.requirement("screen.facts-shown")
@pytest.mark.parametrize("kept", fixtures(), ids=lambda kept: kept.id)
def test_a_state_of_other_facts_falls_short_of_the_account(kept: Any):
    """Whichever fact is lost, the account of all shows it, unless it is a piece of a text that
    became final.
    """
    if kept.initial_read_model is not None:
        return
    for place, lost in enumerate(kept.events):
        if lost["eventClass"].endswith((".delta", ".progress", ".output")):
            continue
        others = [*kept.events[:place], *kept.events[place + 1 :]]
        document = factwire_reducer(others, None)
        assert list(find_differences(kept.events, document)), lost["eventClass"]


@pytest.mark.requirement("conformance.reducers")
def test_a_report_about_a_reducer_names_what_it_is_judged_by_and_nothing_of_agents():
    report = try_reducer(lambda _events, _model: {}, name="empty", seconds=SECONDS)
    assert (report.conformant, report.level, report.subject.kind) == (False, None, "reducer")
    areas = {row.id.partition(".")[0] for row in report.requirements}
    assert areas.isdisjoint({"stream", "provider"})
    [coverage] = report.coverage
    assert coverage.total == coverage.judged + sum(row.count for row in coverage.not_judged)
    unjudged = {row.id for row in report.requirements if row.status == "not-tried"}
    assert unjudged == {
        *("screen.final-text", "screen.stable-ids", "screen.repair"),
        *("screen.ui-round-trip", "screen.ui-repeats"),
    }
    assert all(row.reason for row in report.requirements if row.status == "not-tried")


LINES = """
import json, sys
from factwire.conformance.reducers import factwire_reducer
for line in sys.stdin:
    request = json.loads(line)
    state = factwire_reducer(
        request["events"], request["readModel"], request["repair"], complete=request["complete"]
    )
    print(json.dumps(state), flush=True)
"""


@pytest.mark.requirement("conformance.reducers")
def test_a_program_that_speaks_json_lines_answers_as_the_function_does():
    events = facts_of("tool-success")
    with LinesReducer([sys.executable, "-c", LINES]) as reduce:
        assert reduce(events, None) == factwire_reducer(events, None)
        mixed = list(reversed(events))
        assert reduce(mixed, None, complete=True) == factwire_reducer(mixed, None, complete=True)


@pytest.mark.requirement("conformance.reducers")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit('no such fact')", "it exited: no such fact"),
        ("input(); print('hello')", "state document on standard output"),
        ("input(); print('[]')", "got list"),
        ("import threading; threading.Event().wait()", "to answer within 0.5 s"),
    ],
)
def test_a_program_that_gives_no_state_is_an_error_and_can_be_asked_again(
    program: str, message: str
):
    seconds = 0.5 if "Event" in program else 60.0
    with LinesReducer([sys.executable, "-c", program], seconds) as reduce:
        for _ in range(2):
            with pytest.raises(BrokenReducer) as caught:
                reduce([], None)
            assert message in str(caught.value)
            reduce.stop()


@pytest.mark.requirement("conformance.reducers")
def test_a_program_that_cannot_be_started_is_an_error():
    reduce = LinesReducer(["no-such-program-anywhere"])
    with reduce, pytest.raises(BrokenReducer, match="to start"):
        reduce([], None)


@pytest.mark.requirement("conformance.subjects")
@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("no colon", "unknown_factory"),
        ("there.is.none:reduce", "unknown_module"),
        ("tests.conformance.broken_reducers:nothing", "unknown_factory"),
        ("tests.conformance.broken_reducers:BROKEN_MAPPINGS", "not_a_reducer"),
    ],
)
def test_a_reducer_that_cannot_be_had_is_an_error_with_a_code(where: str, code: str):
    with pytest.raises(ConformanceError) as error:
        load_reducer(where)
    assert error.value.code == code


def test_a_reducer_is_given_only_what_it_has_parameters_for():
    calls: list[tuple[Any, ...]] = []

    def plain(events: Any, model: Any) -> dict[str, Any]:
        calls.append((events, model))
        return {}

    def able(events: Any, model: Any, complete: bool = False) -> dict[str, Any]:
        calls.append((events, model, complete))
        return {}

    call_reducer(plain, [], None, complete=True)
    call_reducer(able, [], None, complete=True)
    with pytest.raises(BrokenReducer, match="third parameter"):
        call_reducer(able, [], None, {})
    assert calls == [([], None), ([], None, True)]


def test_every_case_of_reducers_names_requirements_that_are_claimed():
    assert {name for case in reducer_cases() for name in case.requirements} <= set(REQUIREMENTS)
    ids = [case.id for case in reducer_cases()]
    assert len(ids) == len(set(ids))
