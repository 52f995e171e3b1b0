"""Acceptance scenarios: recorded facts with exact expectations of the state that they come to."""

from factwire.conformance.scenarios.collection import scenario, scenario_names, scenarios
from factwire.conformance.scenarios.scenario import (
    SCENARIO_VERSION,
    Expectation,
    Scenario,
    case_of,
    scenario_findings,
    scenario_issues,
)

__all__ = [
    "SCENARIO_VERSION",
    "Expectation",
    "Scenario",
    "case_of",
    "scenario",
    "scenario_findings",
    "scenario_issues",
    "scenario_names",
    "scenarios",
]
