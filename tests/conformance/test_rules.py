"""The rules of facts and the laws of the projection: kept by Factwire, and noticed when broken."""

from collections.abc import Callable
from typing import Any

import pytest

from factwire.conformance import REQUIREMENTS, fixtures, law_checks, rule_checks
from factwire.conformance.case import Case
from factwire.conformance.delivery_streams import fixture_streams
from factwire.conformance.law_checks import law_cases
from factwire.conformance.reducers import factwire_reducer
from factwire.conformance.rule_checks import RULES, rule_cases
from factwire.conformance.runner import case_results

CASES = (*rule_cases(), *law_cases(fixture_streams(fixtures())[:6]))


@pytest.mark.requirement("conformance.own")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_factwire_keeps_every_rule_and_law(case: Case):
    [result] = case_results([case], factwire_reducer)
    assert [finding.message for finding in result.findings] == []
    assert set(case.requirements) <= set(REQUIREMENTS)


def find_nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def change_nothing(value: Any, *_: Any, **__: Any) -> Any:
    return value, ()


def return_none(*_: Any, **__: Any) -> None:
    return None


def answer_unknown(*_: Any, **__: Any) -> str:
    return "unknown"


FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "verify": (find_nothing, "lifecycle.tool_result_without_start"),
    "inspect_fact": (find_nothing, "needs.tool"),
    "inspect_stream": (find_nothing, "validation.sequence_gap"),
    "redact_value": (change_nothing, "redaction.nested"),
    "ref_issue": (return_none, "refs.no-paths"),
    "read_input": (find_nothing, "inputs.refused"),
    "resume_issues": (find_nothing, "resume.codes"),
    "shape_of": (answer_unknown, "facts.shapes.detection"),
    "id_of": (answer_unknown, "facts.ids.lookup"),
    "content_ref": (answer_unknown, "refs.content-addressed"),
}
"""Function → what stands in for it, and a rule that must notice."""


@pytest.mark.requirement("conformance.own")
@pytest.mark.parametrize("name", FAULTS)
def test_a_function_that_does_not_do_its_work_breaks_its_rules(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    fault, rule = FAULTS[name]
    monkeypatch.setattr(rule_checks, name, fault)
    [result] = case_results([case for case in rule_cases() if case.id == f"rule.{rule}"])
    assert result.broken == {rule}


@pytest.mark.requirement("conformance.own")
def test_every_rule_of_the_lifecycle_and_of_ids_notices_a_verifier_that_finds_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(rule_checks, "verify", find_nothing)
    monkeypatch.setattr(rule_checks, "inspect_fact", find_nothing)
    quiet = {"lifecycle.reopen", "lifecycle.after-terminal", "lifecycle.incompleteness"}
    quiet |= {"lifecycle.per-turn", "lifecycle.subjects", "lifecycle.modes"}
    for case in rule_cases():
        [rule] = case.requirements
        if rule.startswith(("lifecycle.", "needs.")) and rule not in quiet:
            [result] = case_results([case])
            assert result.broken == {rule}, rule


@pytest.mark.requirement("conformance.own")
def test_a_projection_whose_changes_are_lost_breaks_the_law_of_changes(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(law_checks, "advance", return_none)
    broken = {name for each in case_results(CASES[len(RULES) :]) for name in each.broken}
    assert broken == {"projection.law.changes", "projection.changes.folded"}
