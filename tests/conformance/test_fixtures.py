"""The conformance fixtures: current, valid, and kept by Factwire's own projection."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.conformance.case import Reducer
from factwire.conformance.fixture_checks import (
    check_expected,
    check_facts,
    check_first_screen,
    check_nothing_guessed,
    check_refs,
    check_replay,
    fixture,
    fixture_cases,
    fixture_findings,
    fixture_names,
    fixtures,
    read_figures,
)
from factwire.conformance.reducers import factwire_reducer
from factwire.conformance.requirements import REQUIREMENTS
from factwire.conformance.scenario import scenario, scenario_names
from factwire.facts import Fixture, read_fact
from factwire.projection import Projection, read_thread_model, thread_read_model
from tools.conformance.record import documents

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "factwire" / "conformance"
NAMED = {
    *("text-basic", "tool-success", "tool-failure", "hitl-action"),
    *("artifact-evidence", "stream-repair", "subagent-handoff"),
}
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

Wire = dict[str, Any]

every_fixture = pytest.mark.parametrize("kept", fixtures(), ids=lambda kept: kept.id)


@pytest.mark.requirement("seed.fixtures.named")
def test_the_seven_named_fixtures_are_there_and_more_than_fifteen_others():
    assert set(fixture_names()) >= NAMED
    assert len(set(fixture_names()) - NAMED) >= 15
    assert [kept.id for kept in fixtures()] == list(fixture_names())
    assert fixture("text-basic").id == "text-basic"


def test_a_fixture_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(KeyError, match="text-basic"):
        fixture("no-such-thing")


@pytest.mark.requirement("seed.fixtures.current")
def test_the_documents_are_what_the_scripts_tell_and_nothing_else():
    paths = [*PACKAGE.glob("fixtures/*.json"), *PACKAGE.glob("scenarios/*.json")]
    kept = {path.relative_to(PACKAGE).as_posix(): path.read_bytes() for path in paths}
    assert kept == documents()


@pytest.mark.requirement("seed.fixtures.current")
def test_the_program_writes_the_documents(tmp_path: Path):
    command = [sys.executable, "-m", "tools.conformance.record", tmp_path]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    found = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in written}
    assert found == documents()


@every_fixture
@pytest.mark.requirement("seed.fixtures.valid")
def test_the_facts_of_a_fixture_are_valid(kept: Fixture):
    assert list(check_facts(kept)) == []


@every_fixture
@pytest.mark.requirement("seed.fixtures.expected")
def test_a_state_shows_exactly_what_the_fixture_expects(kept: Fixture):
    assert list(check_expected(kept, factwire_reducer)) == []


@every_fixture
@pytest.mark.requirement("seed.fixtures.first-screen")
def test_the_read_model_restores_the_first_screen(kept: Fixture):
    assert kept.final_read_model is not None
    assert list(check_first_screen(kept, factwire_reducer)) == []


@every_fixture
@pytest.mark.requirement("seed.fixtures.replay")
def test_facts_that_come_again_change_nothing(kept: Fixture):
    assert list(check_replay(kept, factwire_reducer)) == []


@every_fixture
@pytest.mark.requirement("seed.fixtures.refs")
def test_every_ref_of_a_fact_is_in_the_state(kept: Fixture):
    assert list(check_refs(kept, factwire_reducer)) == []


@every_fixture
@pytest.mark.requirement("seed.prose.reworded")
def test_other_words_in_the_same_facts_change_no_state(kept: Fixture):
    assert list(check_nothing_guessed(kept, factwire_reducer)) == []


@every_fixture
@pytest.mark.requirement("seed.fixtures.first-screen")
def test_the_read_model_of_the_state_is_the_one_that_the_script_tells(kept: Fixture):
    projection = Projection()
    if kept.initial_read_model is not None:
        projection = Projection.from_read_model(read_thread_model(kept.initial_read_model))
    projection.apply_all(read_fact(event, "facts") for event in kept.events)
    stated = kept.final_read_model or {}
    if projection.state.hydration.cursor != stated["eventCursor"]:
        projection.repair(read_thread_model(stated))
    model: Wire = msgspec.to_builtins(thread_read_model(projection.state), enc_hook=str)
    assert keep_stated(model, stated) == keep_stated(stated, stated)
    unstated = {name for name in ("activeTurnId", "lastOutcome") if name not in stated}
    assert unstated.isdisjoint(model)


def keep_stated(value: Any, stated: Any) -> Any:
    """What a script states of a read model, row by row and field by field; the words of remarks are
    nobody's.
    """
    if isinstance(stated, list):
        rows: list[Any] = [*value]
        wanted: list[Any] = [*stated, *[{}] * len(rows)]
        return [keep_stated(row, wanted[place]) for place, row in enumerate(rows)]
    if not isinstance(stated, dict):
        return value
    fields: Wire = {**stated}
    if "diagnosticId" in fields:
        fields.pop("message", None)
    return {name: keep_stated(value.get(name), field) for name, field in fields.items()}


@every_fixture
@pytest.mark.requirement("seed.timestamps")
def test_facts_carry_fixed_iso_times_and_wire_names(kept: Fixture):
    for event in kept.events:
        assert ISO.fullmatch(event["createdAt"])
        assert [name for name in event if "_" in name] == []
        assert [name for name in event.get("payload", {}) if "_" in name] == []


def test_no_fact_of_one_fixture_has_the_id_of_a_fact_of_another():
    ids = [event["id"] for kept in fixtures() for event in kept.events]
    assert len(ids) == len(set(ids))


def test_every_count_is_stated_by_every_fixture():
    for kept in fixtures():
        counts = (
            kept.expected.message_part_count,
            kept.expected.timeline_entry_count,
            kept.expected.graph_node_count,
            kept.expected.pending_action_count,
            kept.expected.artifact_count,
            kept.expected.evidence_count,
        )
        assert None not in counts, kept.id


def test_every_fixture_is_two_cases_that_factwire_passes():
    cases = fixture_cases()
    assert len(cases) == 2 * len(fixtures())
    assert len({case.id for case in cases}) == len(cases)
    assert {name for case in cases for name in case.requirements} <= set(REQUIREMENTS)
    assert [finding for case in cases for finding in case.run(factwire_reducer)] == []


def find_broken(reduce: Reducer) -> set[str]:
    """The requirements that some fixture finds broken."""
    return {
        finding.requirement for kept in fixtures() for finding in fixture_findings(kept, reduce)
    }


def doubles(events: Any, model: Any) -> Wire:
    """A reducer that takes every fact that comes for a new one."""
    numbered = [
        {**event, "id": f"{event['id']}#{place}", "sequence": place}
        for place, event in enumerate(events)
    ]
    return factwire_reducer(numbered, model)


def loses_refs(events: Any, model: Any) -> Wire:
    return factwire_reducer([{**event, "refIds": []} for event in events], model)


def reads_titles(events: Any, model: Any) -> Wire:
    """A reducer that believes what titles say."""
    state = factwire_reducer(events, model)
    titles = " ".join(event["title"] for event in events)
    for action in state["actions"].values():
        if "approved by the user" in titles.lower():
            action["status"] = "resolved"
    return state


def forgets_read_models(events: Any, _: Any) -> Wire:
    return factwire_reducer(events, None)


def counts_one_more(events: Any, model: Any) -> Wire:
    state = factwire_reducer(events, model)
    state["timeline"].append({})
    return state


@pytest.mark.requirement("seed.fixtures.bite")
@pytest.mark.parametrize(
    ("reduce", "requirement"),
    [
        (doubles, "screen.replay"),
        (loses_refs, "screen.refs"),
        (reads_titles, "screen.nothing-guessed"),
        (forgets_read_models, "screen.first-screen"),
        (counts_one_more, "screen.expected"),
    ],
)
def test_a_projection_with_one_fault_is_found_by_that_fault(reduce: Reducer, requirement: str):
    assert requirement in find_broken(reduce)


def test_a_fixture_with_a_broken_fact_is_found():
    kept = fixture("tool-success")
    broken = [{**event, "toolCallId": None} for event in kept.events]
    changed = msgspec.structs.replace(kept, events=broken)
    assert {finding.requirement for finding in check_facts(changed)} == {"stream.schema"}


def test_a_document_without_roots_counts_nothing():
    counted = read_figures({})
    assert counted["status"] is None
    assert (counted["messagePartCount"], counted["graphNodeCount"]) == (0, 0)


def test_cases_are_named_after_their_fixture():
    ids = [case.id for case in fixture_cases()]
    assert {"fixture.text-basic.facts", "fixture.text-basic.screen"} <= set(ids)


def test_the_page_about_fixtures_and_scenarios_lists_all_with_their_figures():
    page = (ROOT / "docs" / "conformance-fixtures.md").read_text("utf-8")
    for kept in fixtures():
        shown = kept.expected
        counts = (
            shown.message_part_count,
            shown.timeline_entry_count,
            shown.graph_node_count,
            shown.pending_action_count,
        )
        figures_told = " | ".join(map(str, (shown.status, *counts)))
        assert f"| `{kept.id}` | {kept.title} | {figures_told} |" in page
    for name in scenario_names():
        assert f"| `{name}` | {scenario(name).title} | {scenario(name).source} |" in page
