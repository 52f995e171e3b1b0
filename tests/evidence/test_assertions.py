"""Assertions over a run: what passes, what fails and by which fact, and what is no assertion."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.evidence import (
    AssertionResult,
    CaseProblem,
    check_cases,
    open_pack,
    parse_case,
    read_cases,
)
from factwire.facts import Fact
from tests.evidence.sample_packs import CASE, pack_facts, pack_journal, run_facts
from tests.projection.fact_maker import FactMaker


def evaluate_assertions(
    *assertions: dict[str, Any], facts: list[Fact] | None = None
) -> list[AssertionResult]:
    data = msgspec.json.encode({"name": "case", "assertions": assertions})
    return check_cases(facts or run_facts(), [parse_case(data, "case.json")], kept=True)


HOLD: list[tuple[dict[str, Any], str | None]] = [
    ({"assert": "turn.outcome", "outcome": "completed"}, "thread-22"),
    ({"assert": "turn.outcome", "outcome": "completed", "turnId": "u1"}, "thread-22"),
    ({"assert": "answer.equals", "text": "It works now."}, "thread-20"),
    ({"assert": "answer.contains", "text": "works"}, "thread-20"),
    ({"assert": "answer.contains", "text": "works", "turnId": "u1"}, "thread-20"),
    ({"assert": "tool.called", "toolName": "shell"}, "thread-16"),
    ({"assert": "tool.called", "toolName": "shell", "args": {"cwd": "."}, "times": 1}, "thread-16"),
    ({"assert": "tool.called", "toolName": "browser", "times": 0}, None),
    ({"assert": "tool.status", "toolCallId": "c1", "state": "output-error"}, "thread-9"),
    ({"assert": "tool.status", "toolName": "shell", "state": "output-available"}, "thread-16"),
    ({"assert": "approval.decision", "decision": "approved"}, "thread-14"),
    ({"assert": "approval.decision", "decision": "approved", "actionId": "a1"}, "thread-14"),
    ({"assert": "file.changed", "path": "report.py", "change": "changed"}, "thread-17"),
    ({"assert": "artifact.exists", "artifactId": "art1"}, "thread-17"),
    ({"assert": "count", "eventClass": "tool.failed", "equals": 1}, "thread-9"),
    ({"assert": "count", "eventClass": "tool", "atLeast": 5, "atMost": 5}, "thread-16"),
    ({"assert": "count", "eventClass": "command.", "equals": 0}, None),
    ({"assert": "projection", "pointer": "/runtime/status", "equals": "completed"}, None),
    ({"assert": "projection", "pointer": "/tools/c2/args/cwd", "equals": "."}, None),
    ({"assert": "turn.outcome", "outcome": "completed", "threadId": "thread"}, "thread-22"),
]

FAIL: list[dict[str, Any]] = [
    {"assert": "turn.outcome", "outcome": "failed"},
    {"assert": "turn.outcome", "outcome": "completed", "turnId": "u9"},
    {"assert": "turn.outcome", "outcome": "completed", "threadId": "elsewhere"},
    {"assert": "answer.equals", "text": "It works"},
    {"assert": "answer.contains", "text": "broken"},
    {"assert": "answer.contains", "text": "works", "turnId": "u9"},
    {"assert": "tool.called", "toolName": "browser"},
    {"assert": "tool.called", "toolName": "shell", "args": {"cwd": "/"}},
    {"assert": "tool.called", "toolName": "read", "args": {"path": "x"}},
    {"assert": "tool.called", "toolName": "shell", "times": 2},
    {"assert": "tool.status", "toolCallId": "c9", "state": "output-error"},
    {"assert": "tool.status", "toolName": "read", "state": "output-available"},
    {"assert": "approval.decision", "decision": "rejected"},
    {"assert": "approval.decision", "decision": "approved", "actionId": "a9"},
    {"assert": "file.changed", "path": "other.py"},
    {"assert": "file.changed", "path": "report.py", "change": "created"},
    {"assert": "artifact.exists", "title": "nothing"},
    {"assert": "count", "eventClass": "tool.failed", "atMost": 0},
    {"assert": "count", "eventClass": "tool", "equals": 4},
    {"assert": "projection", "pointer": "/runtime/status", "equals": "failed"},
    {"assert": "projection", "pointer": "/no/such/place", "equals": None},
]


@pytest.mark.requirement("evidence.check")
@pytest.mark.parametrize(("assertion", "fact"), HOLD, ids=lambda v: str(v)[:60])
def test_an_assertion_that_holds_names_the_fact_that_shows_it(
    assertion: dict[str, Any], fact: str | None
):
    [result] = evaluate_assertions(assertion)
    assert (result.passed, result.fact_id) == (True, fact), result


@pytest.mark.requirement("evidence.check")
@pytest.mark.parametrize("assertion", FAIL, ids=lambda v: str(v)[:60])
def test_an_assertion_that_does_not_hold_says_what_was_found(assertion: dict[str, Any]):
    [result] = evaluate_assertions(assertion)
    assert not result.passed
    assert result.found


@pytest.mark.requirement("evidence.check")
@pytest.mark.parametrize(
    ("assertion", "found"),
    [
        ({"assert": "tool.called", "toolName": "x", "threadId": "zz"}, "there is no thread zz"),
        (
            {"assert": "tool.called", "toolName": "x", "threadId": "zz", "times": 0},
            "there is no thread zz",
        ),
        ({"assert": "turn.outcome", "outcome": "failed", "turnId": "u9"}, "there is no turn u9"),
        ({"assert": "answer.equals", "text": "", "turnId": "u9"}, "there is no turn u9"),
        ({"assert": "answer.contains", "text": "x", "turnId": "u9"}, "there is no turn u9"),
        (
            {"assert": "count", "eventClass": "tol", "equals": 0},
            "no fact has the class tol, and no such class exists",
        ),
    ],
    ids=lambda v: str(v)[:60],
)
def test_what_nothing_is_known_of_never_passes_and_is_named(assertion: dict[str, Any], found: str):
    [result] = evaluate_assertions(assertion)
    assert (result.passed, result.found) == (False, found)


@pytest.mark.requirement("evidence.check")
def test_facts_of_a_class_that_factwire_does_not_know_can_be_counted():
    facts = [*run_facts(), FactMaker(27)("acme.seen")]
    [result] = evaluate_assertions(
        {"assert": "count", "eventClass": "acme", "equals": 1}, facts=facts
    )
    assert (result.passed, result.found) == (True, "1 fact of acme")


@pytest.mark.requirement("evidence.cases.malformed")
@pytest.mark.parametrize(
    ("assertion", "words"),
    [
        (b'{"assert":"nope"}', "unknown assertion 'nope'; choose from turn.outcome, answer.eq"),
        (
            b'{"assert":"turn.outcome","outcome":"complete"}',
            "outcome cannot be 'complete'; expected one of completed, failed, canceled",
        ),
        (
            b'{"assert":"tool.status","toolName":"x","state":"done"}',
            "state cannot be 'done'; expected one of running, input-streaming",
        ),
    ],
)
def test_a_word_that_is_none_is_answered_with_those_there_are(assertion: bytes, words: str):
    with pytest.raises(CaseProblem) as refused:
        parse_case(case_with(assertion), "case.json")
    assert refused.value.code == "assertion_malformed"
    assert words in str(refused.value)


@pytest.mark.requirement("evidence.check")
def test_a_deleted_artifact_does_not_exist():
    facts = [*run_facts(), FactMaker(27)("artifact.deleted", artifactId="art1")]
    [result] = evaluate_assertions({"assert": "artifact.exists", "artifactId": "art1"}, facts=facts)
    assert not result.passed


@pytest.mark.requirement("evidence.cases")
def test_cases_come_from_facts_and_from_the_export(tmp_path: Path):
    path = tmp_path / "p.zip"
    added = parse_case(
        b'{"name":"added","assertions":[{"assert":"count","eventClass":"turn","equals":3}]}', "f"
    )
    pack_journal(path, cases=(added,))
    with open_pack(path) as pack:
        cases = read_cases(pack)
        results = check_cases(pack.facts(), cases, kept=True)
    assert [(case.name, len(case.assertions)) for case in cases] == [
        ("case-1", len(CASE)),
        ("added", 1),
    ]
    assert cases[0].fact_id == "thread-26"
    assert [result.passed for result in results] == [True] * 6


@pytest.mark.requirement("evidence.cases")
def test_a_later_fact_replaces_a_case(tmp_path: Path):
    path = tmp_path / "p.zip"
    changed = {"kind": "replay", "assertions": CASE[:1]}
    pack_facts(
        path,
        [*run_facts(), FactMaker(27)("evidence.changed", evidenceId="case-1", payload=changed)],
    )
    with open_pack(path) as pack:
        [case] = read_cases(pack)
    assert (case.fact_id, len(case.assertions)) == ("thread-27", 1)


def case_with(assertions: bytes) -> bytes:
    return b'{"name":"n","assertions":[' + assertions + b"]}"


MALFORMED: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "case_malformed"),
    "no object": (b"[]", "case_malformed"),
    "no name": (b'{"assertions":[]}', "case_malformed"),
    "an unknown field": (b'{"name":"n","assertions":[],"x":1}', "case_malformed"),
    "too deep": (b'{"name":"n","assertions":[' + b"[" * 100_000, "case_malformed"),
    "no text": (b"\xff", "case_malformed"),
    "no assertion": (case_with(b"1"), "assertion_malformed"),
    "no kind": (case_with(b"{}"), "assertion_malformed"),
    "an unknown kind": (case_with(b'{"assert":"answer.rhymes"}'), "assertion_malformed"),
    "a field too many": (
        case_with(b'{"assert":"turn.outcome","outcome":"x","y":1}'),
        "assertion_malformed",
    ),
    "a field too few": (case_with(b'{"assert":"turn.outcome"}'), "assertion_malformed"),
    "a wrong type": (
        case_with(b'{"assert":"count","eventClass":"a","equals":"1"}'),
        "assertion_malformed",
    ),
    "no bound": (case_with(b'{"assert":"count","eventClass":"a"}'), "assertion_malformed"),
    "no tool": (case_with(b'{"assert":"tool.status","state":"a"}'), "assertion_malformed"),
    "no artifact": (case_with(b'{"assert":"artifact.exists"}'), "assertion_malformed"),
    "no pointer": (
        case_with(b'{"assert":"projection","pointer":"x","equals":1}'),
        "assertion_malformed",
    ),
    "too many": (case_with(b"1," * 10_000 + b"1"), "case_malformed"),
}


@pytest.mark.requirement("evidence.cases.malformed")
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_case_is_refused_by_code(name: str):
    data, code = MALFORMED[name]
    with pytest.raises(CaseProblem) as refused:
        parse_case(data, "case.json")
    assert refused.value.code == code
    assert "case.json" in str(refused.value)


@pytest.mark.requirement("evidence.cases.malformed")
@pytest.mark.parametrize(
    ("value", "code"),
    [("no list", "case_malformed"), ([{"assert": "x"}], "assertion_malformed")],
)
def test_a_malformed_case_in_a_fact_names_the_fact(value: Any, code: str, tmp_path: Path):
    path = tmp_path / "p.zip"
    wrong = {"kind": "replay", "assertions": value}
    pack_facts(
        path, [*run_facts(), FactMaker(27)("evidence.changed", evidenceId="w", payload=wrong)]
    )
    with open_pack(path) as pack, pytest.raises(CaseProblem) as refused:
        read_cases(pack)
    assert refused.value.code == code
    assert "thread-27" in str(refused.value)
