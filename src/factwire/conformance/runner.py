"""Runs: an agent named by `module:factory`, a recorded stream, or Factwire itself, tried.

What a name stands for is called, and what comes back is checked before it is tried.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from factwire.conformance.case import (
    BrokenFactory,
    Case,
    EmptyStream,
    Finding,
    Level,
    NotAProvider,
    NotAReducer,
    Reducer,
    Result,
    UnknownFactory,
    UnknownMinimum,
    UnknownModule,
    build_result,
)
from factwire.conformance.delivery_checks import delivery_cases
from factwire.conformance.delivery_streams import fixture_streams
from factwire.conformance.fixture_checks import fixture_cases, fixture_findings, fixtures
from factwire.conformance.law_checks import law_cases
from factwire.conformance.limits import CASE_SECONDS, TRIAL_SECONDS
from factwire.conformance.provider_checks import Make, TookTooLong, provider_results, run_in_time
from factwire.conformance.provider_minimums import PROMPTS
from factwire.conformance.reducers import factwire_reducer
from factwire.conformance.report import Report, Subject, build_report
from factwire.conformance.rule_checks import rule_cases
from factwire.conformance.scenario import scenarios
from factwire.conformance.screen_checks import check_screens
from factwire.conformance.stream_checks import JudgedStream, check_streams
from factwire.conformance.supervisor_checks import supervisor_results
from factwire.conformance.ui_checks import mapping_cases
from factwire.facts import CapabilityManifest, Fixture, id_of, read_item
from factwire.runtime import Provider
from factwire.runtime.agents import DemoAgent, DemoOptions
from factwire.runtime.turn_execution import describe_non_stream

_METHODS: Final = ("start_turn", "cancel_turn", "respond_action", "read_thread")


def load_factory(where: str) -> Make:
    """A callable that makes the provider that `module:factory` names, checked each time."""
    module_name, colon, path = where.partition(":")
    if not colon or not module_name or not path:
        raise UnknownFactory(f"expected module:factory, got {where!r}")
    found = _find_attribute(_import_module(module_name), path, where)
    return lambda: _make_provider(found, where)


def load_reducer(where: str) -> Reducer:
    """The function that `module:function` names."""
    module_name, colon, path = where.partition(":")
    if not colon or not module_name or not path:
        raise UnknownFactory(f"expected module:function, got {where!r}")
    found = _find_attribute(_import_module(module_name), path, where)
    if not callable(found):
        raise NotAReducer(f"expected {where} to be a function, got {_type_name(found)}")
    return cast("Reducer", found)


def collect_prompts(provider: Provider, prompts: Mapping[str, str]) -> dict[str, str]:
    """The prompts of an agent: its own, and before them those that are given."""
    own: Any = getattr(provider, "conformance_prompts", {})
    if not isinstance(own, Mapping):
        raise NotAProvider(f"expected conformance_prompts to be a mapping, got {own!r}")
    chosen = {**cast("Mapping[str, str]", own), **prompts}
    for name, prompt in chosen.items():
        if name not in PROMPTS:
            raise UnknownMinimum(f"no prompt is called {name!r}; there are {', '.join(PROMPTS)}")
        if not isinstance(prompt, str) or not prompt:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownMinimum(f"expected a text as the prompt {name!r}, got {prompt!r}")
    return chosen


def _import_module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        # As `python -m` does: what stands in the folder can be named.
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        # Whatever a module does while it is imported is its own; here it only means: no agent.
        message = f"module {name} cannot be loaded: {type(error).__name__}: {error}"
        raise UnknownModule(message) from error


def _find_attribute(module: Any, path: str, where: str) -> Any:
    found = module
    for name in path.split("."):
        if not hasattr(found, name):
            raise UnknownFactory(f"there is no {path} in {where.partition(':')[0]}")
        found = getattr(found, name)
    return found


def _make_provider(found: Any, where: str) -> Provider:
    if not isinstance(found, type) and _missing_methods(found) is None:
        return cast("Provider", found)
    if not callable(found):
        raise NotAProvider(
            f"expected {where} to be a factory or a provider, got {_type_name(found)}"
        )
    try:
        made = cast("Callable[[], Any]", found)()
    except (Exception, SystemExit) as error:
        raise BrokenFactory(f"{where} raised {type(error).__name__}: {error}") from error
    lack = _missing_methods(made)
    if lack is not None:
        raise NotAProvider(f"expected {where} to make a provider; {_type_name(made)} {lack}")
    return cast("Provider", made)


def _missing_methods(value: Any) -> str | None:
    """What keeps a value from being a provider, all of it."""
    missing = [name for name in _METHODS if not callable(getattr(value, name, None))]
    if not isinstance(getattr(value, "manifest", None), CapabilityManifest):
        missing.insert(0, "CapabilityManifest as its manifest")
    if missing:
        return f"has no {', no '.join(missing)}"
    if inspect.iscoroutinefunction(value.start_turn):
        return f"cannot run a turn: {describe_non_stream('a coroutine')}"
    return None


def _type_name(value: Any) -> str:
    """A value by its kind: where it lies in memory says nothing to anybody."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


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
    chosen = collect_prompts(provider, prompts or {})
    results = provider_results(provider, make, chosen, seconds)
    if level == "supervisor":
        results += supervisor_results(make, seconds)
    return build_report(Subject(kind="provider", name=name), results, level)


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
    results = _stream_results(JudgedStream(items=items, gaps_declared=gaps_declared), name)
    return build_report(Subject(kind="facts", name=name), results, level)


def try_fixture(value: Mapping[str, Any], *, name: str, level: Level = "runtime") -> Report:
    """A fixture: its facts as a recorded stream, and what it expects of a screen."""
    fixture = msgspec.convert(value, Fixture)
    stream = JudgedStream(
        items=fixture.events,
        excused=frozenset() if fixture.expected.status in _ENDED else _turns_in(fixture),
        gaps_declared=True,
    )
    found = list(fixture_findings(fixture, factwire_reducer))
    expected = build_result(
        "screen.expected",
        "What the fixture expects",
        "projection",
        ("screen.expected",),
        [finding for finding in found if finding.requirement == "screen.expected"],
    )
    results = [*_stream_results(stream, name), expected]
    return build_report(Subject(kind="facts", name=name), results, level)


def reducer_cases() -> tuple[Case, ...]:
    """Everything that a reducer is judged by: fixtures, scenarios and deliveries."""
    return (*fixture_cases(), *scenarios(), *delivery_cases(fixture_streams(fixtures())))


def try_reducer(
    reduce: Reducer, *, name: str, level: Level = "projection", seconds: float = CASE_SECONDS
) -> Report:
    """A reducer of anybody's: a function of facts and a read model that returns a state document,
    or a program (`LinesReducer`). The facts are Factwire's own, so nothing is said of them.
    """
    cases = [case for case in reducer_cases() if case.level == "projection"]
    results = case_results(cases, reduce, seconds)
    return build_report(Subject(kind="reducer", name=name), results, level)


def try_factwire(level: Level = "runtime") -> Report:
    """Factwire itself: fixtures, scenarios, deliveries, rules, laws, UI mapping and demo agent."""
    streams = fixture_streams(fixtures())
    own = (*rule_cases(), *law_cases(streams), *mapping_cases(streams))
    results = case_results((*reducer_cases(), *own))
    if level in ("runtime", "supervisor"):
        demo = provider_results(_try_demo(), _try_demo, _DEMO_PROMPTS)
        if level == "supervisor":
            demo += supervisor_results(_try_demo, TRIAL_SECONDS)
        results += [msgspec.structs.replace(each, id=f"demo.{each.id}") for each in demo]
    return build_report(Subject(kind="factwire", name="Factwire"), results, level)


def _try_demo() -> DemoAgent:
    return DemoAgent(DemoOptions(pace=0, mistake=False))


def case_results(
    cases: Iterable[Case],
    reduce: Reducer = factwire_reducer,
    seconds: float = CASE_SECONDS,
) -> list[Result]:
    """The results of judging a reducer by cases, one after the other."""
    return [_case_result(case, reduce, seconds) for case in cases]


def _case_result(case: Case, reduce: Reducer, seconds: float) -> Result:
    try:
        findings = run_in_time(lambda: list(case.run(reduce)), seconds)
    except TookTooLong as error:
        findings = [_failed_result(case, str(error))]
    except Exception as error:  # noqa: BLE001 - what a reducer raises is what is wrong with it
        findings = [_failed_result(case, f"{type(error).__name__}: {error}")]
    return build_result(
        case.id, case.title, case.level, case.requirements, findings, source=case.source
    )


def _failed_result(case: Case, message: str) -> Finding:
    return Finding(requirement=case.requirements[0], message=message, level=case.level)


def _stream_results(stream: JudgedStream, name: str) -> list[Result]:
    if not stream.items:
        raise EmptyStream(f"{name} holds no facts; there is nothing to judge")
    results, [read] = check_streams([stream])
    return [*results, *check_screens(read.facts)]


def _turns_in(fixture: Fixture) -> frozenset[str]:
    """The turns of a fixture, which may show something that still runs."""
    facts = (read_item(event).fact for event in fixture.events)
    turns = (None if fact is None else id_of(fact, "turnId") for fact in facts)
    return frozenset(turn for turn in turns if turn is not None)
