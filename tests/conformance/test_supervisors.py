"""The level of supervisors: a good one reaches it, each broken one fails exactly what it breaks."""

from collections.abc import Callable

import msgspec
import pytest

from factwire.conformance import provider_trial, try_provider
from factwire.conformance.html_report import html_report
from factwire.conformance.pytest import conformance_suite
from factwire.conformance.supervisor_checks import RULES, supervisor_results
from factwire.runtime import Provider
from factwire.runtime.agents import DemoAgent, DemoOptions, ShellAgent
from tests.conformance.broken_supervisors import BROKEN_SUPERVISORS, Hangs, Supervises

SECONDS = 20.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that has to be cut off is cut off at once."""
    monkeypatch.setattr(provider_trial, "INTERRUPT_SECONDS", 0.2)


def broken_rules(make: Callable[[], Provider], seconds: float = SECONDS) -> set[str]:
    return {name for each in supervisor_results(make, seconds) for name in each.broken}


@pytest.mark.requirement("conformance.supervisor")
def test_a_supervisor_that_keeps_every_rule_reaches_the_level():
    report = try_provider(Supervises, name="agent", seconds=SECONDS, level="supervisor")
    assert report.failed == set()
    assert (report.conformant, report.level) == (True, "supervisor")
    passed = {row.id for row in report.requirements if row.status == "passed"}
    assert set(RULES) <= passed
    assert "What the agent decides about a team." in html_report(report)


@pytest.mark.requirement("conformance.supervisor")
@pytest.mark.requirement("supervisor.ends")
@pytest.mark.requirement("supervisor.structured")
@pytest.mark.requirement("supervisor.one-decision")
@pytest.mark.requirement("supervisor.schema")
@pytest.mark.requirement("supervisor.complete")
@pytest.mark.requirement("supervisor.roster")
@pytest.mark.requirement("supervisor.ids")
@pytest.mark.requirement("supervisor.refusal")
@pytest.mark.requirement("supervisor.limits")
@pytest.mark.requirement("supervisor.finish")
@pytest.mark.requirement("supervisor.restart")
@pytest.mark.parametrize("make", BROKEN_SUPERVISORS, ids=lambda make: make.__name__)
def test_a_broken_supervisor_fails_exactly_what_it_breaks(make: type[Supervises]):
    seconds = 2.0 if make is Hangs else SECONDS
    assert broken_rules(make, seconds) == BROKEN_SUPERVISORS[make]


def test_there_is_a_broken_supervisor_for_every_rule():
    assert {name for names in BROKEN_SUPERVISORS.values() for name in names} == set(RULES)


@pytest.mark.requirement("runtime.agents.demo.supervisor")
@pytest.mark.parametrize("mistake", [False, True])
def test_the_demo_agent_supervises_but_for_the_mistake_that_it_makes_on_purpose(*, mistake: bool):
    options = DemoOptions(pace=0, mistake=mistake)
    broken = {"supervisor.roster"} if mistake else set[str]()
    assert broken_rules(lambda: DemoAgent(options)) == broken


@pytest.mark.requirement("conformance.not-applicable")
def test_an_agent_without_structured_output_is_not_judged_as_a_supervisor():
    results = supervisor_results(ShellAgent, SECONDS)
    assert {each.status for each in results} == {"not-applicable"}
    assert {each.reason for each in results} == {"the manifest says structuredOutput: no"}


@pytest.mark.requirement("conformance.levels")
def test_a_report_up_to_a_lower_level_says_that_supervisors_were_not_judged():
    report = try_provider(Supervises, name="agent", seconds=SECONDS, level="facts")
    rows = {row.id: row.reason for row in report.requirements}
    assert rows["supervisor.ends"] == "beyond the level that was asked for, facts"
    assert not set(RULES) & {name for each in report.results for name in each.requirements}


@pytest.mark.requirement("conformance.pytest")
def test_a_suite_has_a_test_for_each_rule_of_supervisors_only_if_it_is_asked_to():
    def cases(suite: Callable[..., None]) -> set[str]:
        [mark] = suite.pytestmark  # pyright: ignore[reportFunctionMemberAccess]
        return set(mark.args[1])

    whole = cases(conformance_suite(Supervises, level="supervisor"))
    assert whole - cases(conformance_suite(Supervises)) == set(RULES)


@pytest.mark.requirement("conformance.supervisor")
def test_a_finding_shows_the_end_of_the_turn_that_was_wrong():
    class Shouts(Supervises):
        def decide(self, state: dict[str, object]) -> object:
            return {**super().decide(state), "action": "SHOUT"}

    results = {each.id: each for each in supervisor_results(Shouts, SECONDS)}
    [finding, *_] = results["supervisor.schema"].findings
    assert finding.message.startswith("begin: $.action: 'SHOUT' is not one of")
    assert finding.fact is not None
    assert finding.fact["payload"]["structuredOutput"]["action"] == "SHOUT"
    assert msgspec.json.encode(finding)
