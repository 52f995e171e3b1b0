"""Conformance: what Factwire promises and asks of others, as data, and runs that try it."""

from factwire.conformance.case import LEVELS, Case, Finding, Level, Projector
from factwire.conformance.errors import (
    BrokenFactory,
    ConformanceError,
    EmptyStream,
    NotAProvider,
    UnknownFactory,
    UnknownMinimum,
    UnknownModule,
)
from factwire.conformance.fixtures import fixture, fixtures
from factwire.conformance.html_report import html_report
from factwire.conformance.loading import load_factory
from factwire.conformance.reducers import BrokenReducer, Reducer, program_reducer
from factwire.conformance.report import (
    REPORT_VERSION,
    Report,
    Standings,
    Subject,
    encode_report,
    report_schema,
)
from factwire.conformance.requirement import Requirement
from factwire.conformance.requirements import KNOWN_GAPS, REQUIREMENTS
from factwire.conformance.results import Result
from factwire.conformance.runner import (
    case_results,
    try_facts,
    try_factwire,
    try_fixture,
    try_provider,
)
from factwire.conformance.scenarios import scenarios

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
    "NotAProvider",
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
    "program_reducer",
    "report_schema",
    "scenarios",
    "try_facts",
    "try_factwire",
    "try_fixture",
    "try_provider",
]
