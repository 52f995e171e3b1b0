"""Runs: an agent, a recorded stream, or Factwire itself, tried and reported on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from factwire.conformance.bounded import TookTooLong, in_time
from factwire.conformance.case import Case, Finding, Level, Projector, factwire_projector
from factwire.conformance.errors import EmptyStream
from factwire.conformance.fixtures import fixture_cases, fixture_findings
from factwire.conformance.limits import CASE_SECONDS, TRIAL_SECONDS
from factwire.conformance.loading import prompts_of
from factwire.conformance.reducers import factwire_reducer
from factwire.conformance.report import Report, Subject, report_of
from factwire.conformance.results import Result, result
from factwire.conformance.scenarios import scenarios
from factwire.conformance.screens import screened
from factwire.conformance.streams import Stream, judged
from factwire.conformance.trials import Make, provider_results
from factwire.facts import Fixture, id_of, read_item
from factwire.runtime.agents import DemoAgent, DemoOptions

_DEMO_PROMPTS: Final = {
    "text": "demo: help",
    "tool": "demo: long",
    "approval": "demo: approve",
    "failure": "demo: fail",
    "cancel": "demo: slow",
}
_ENDED: Final = frozenset({"completed", "failed", "canceled"})


def try_provider(
    make: Make,
    *,
    name: str,
    prompts: Mapping[str, str] | None = None,
    seconds: float = TRIAL_SECONDS,
    level: Level = "runtime",
) -> Report:
    """An agent, driven through a real runtime. Prompts that are given here go before its own."""
    provider = make()
    chosen = prompts_of(provider, prompts or {})
    results = provider_results(provider, make, chosen, seconds)
    return report_of(Subject(kind="provider", name=name), results, level)


def try_facts(
    items: Sequence[object],
    *,
    name: str,
    level: Level = "runtime",
    gaps_declared: bool = False,
) -> Report:
    """A recorded stream: facts in any form and shape, in the order in which they were recorded.
    Where gaps are declared, what is missing between them was removed on purpose.
    """
    results = _stream_results(Stream(items=items, gaps_declared=gaps_declared), name)
    return report_of(Subject(kind="facts", name=name), results, level)


def try_fixture(value: Mapping[str, Any], *, name: str, level: Level = "runtime") -> Report:
    """A fixture: its facts as a recorded stream, and what it expects of a screen."""
    fixture = msgspec.convert(value, Fixture)
    stream = Stream(
        items=fixture.events,
        excused=frozenset() if fixture.expected.status in _ENDED else _turns(fixture),
        gaps_declared=True,
    )
    found = list(fixture_findings(fixture, factwire_reducer))
    expected = result(
        "screen.expected",
        "What the fixture expects",
        "projection",
        ("screen.expected",),
        [finding for finding in found if finding.requirement == "screen.expected"],
    )
    results = [*_stream_results(stream, name), expected]
    return report_of(Subject(kind="facts", name=name), results, level)


def try_factwire(level: Level = "runtime") -> Report:
    """Factwire itself: its fixtures, its scenarios and its demo agent."""
    results = case_results((*fixture_cases(), *scenarios()))
    if level == "runtime":
        demo = provider_results(_demo(), _demo, _DEMO_PROMPTS)
        results += [msgspec.structs.replace(each, id=f"demo.{each.id}") for each in demo]
    return report_of(Subject(kind="factwire", name="Factwire"), results, level)


def _demo() -> DemoAgent:
    return DemoAgent(DemoOptions(pace=0))


def case_results(
    cases: Iterable[Case],
    projector: Projector = factwire_projector,
    seconds: float = CASE_SECONDS,
) -> list[Result]:
    """What comes of cases, one after the other."""
    return [_case_result(case, projector, seconds) for case in cases]


def _case_result(case: Case, projector: Projector, seconds: float) -> Result:
    try:
        findings = in_time(lambda: list(case.run(projector)), seconds)
    except TookTooLong as error:
        findings = [_failed(case, str(error))]
    except Exception as error:  # noqa: BLE001 - what a projector raises is what is wrong with it
        findings = [_failed(case, f"{type(error).__name__}: {error}")]
    return result(case.id, case.title, case.level, case.requirements, findings, source=case.source)


def _failed(case: Case, message: str) -> Finding:
    return Finding(requirement=case.requirements[0], message=message, level=case.level)


def _stream_results(stream: Stream, name: str) -> list[Result]:
    if not stream.items:
        raise EmptyStream(f"{name} holds no facts; there is nothing to judge")
    results, [read] = judged([stream])
    return [*results, *screened(read.facts)]


def _turns(fixture: Fixture) -> frozenset[str]:
    """The turns of a fixture, which may show something that still runs."""
    facts = (read_item(event).fact for event in fixture.events)
    turns = (None if fact is None else id_of(fact, "turnId") for fact in facts)
    return frozenset(turn for turn in turns if turn is not None)
