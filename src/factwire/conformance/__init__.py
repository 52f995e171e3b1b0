"""Conformance: what Factwire promises and asks of others, as data, and runs that try it."""

from factwire.conformance.case import (
    LEVELS,
    BrokenFactory,
    Case,
    ConformanceError,
    EmptyStream,
    Finding,
    Level,
    NotAProvider,
    NotAReducer,
    Projector,
    Reducer,
    Result,
    UnknownFactory,
    UnknownMinimum,
    UnknownModule,
)
from factwire.conformance.fixture_checks import fixture, fixtures
from factwire.conformance.html_report import html_report
from factwire.conformance.reducers import BrokenReducer, LinesReducer, program_reducer
from factwire.conformance.report import (
    REPORT_VERSION,
    Report,
    Standings,
    Subject,
    encode_report,
    report_schema,
)
from factwire.conformance.requirements import KNOWN_GAPS, REQUIREMENTS
from factwire.conformance.runner import (
    case_results,
    load_factory,
    load_reducer,
    reducer_cases,
    try_facts,
    try_factwire,
    try_fixture,
    try_provider,
    try_reducer,
)
from factwire.conformance.scenario import scenarios
from factwire.conformance.suite_requirements import Requirement

__all__ = [
    "KNOWN_GAPS",
    "LEVELS",
    "REPORT_VERSION",
    "REQUIREMENTS",
    "BrokenFactory",
    "BrokenReducer",
    "Case",
    "ConformanceError",
    "EmptyStream",
    "Finding",
    "Level",
    "LinesReducer",
    "NotAProvider",
    "NotAReducer",
    "Projector",
    "Reducer",
    "Report",
    "Requirement",
    "Result",
    "Standings",
    "Subject",
    "UnknownFactory",
    "UnknownMinimum",
    "UnknownModule",
    "case_results",
    "encode_report",
    "fixture",
    "fixtures",
    "html_report",
    "load_factory",
    "load_reducer",
    "program_reducer",
    "reducer_cases",
    "report_schema",
    "scenarios",
    "try_facts",
    "try_factwire",
    "try_fixture",
    "try_provider",
    "try_reducer",
]
