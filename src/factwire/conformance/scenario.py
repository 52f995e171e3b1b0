"""A scenario: facts that arrive, and what exactly a state document must show, by JSON pointer.

Scenarios are data: those that come with Factwire are one JSON document each in the folder
`scenarios`. Anything that can turn facts into a state document can be held to them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, UnsetType

from factwire.conformance.case import Case, Finding, Reducer, Wire
from factwire.conformance.reducers import NoRepair, call_reducer
from factwire.facts import inspect_stream
from factwire.facts.json_patch import InvalidPatch, JsonDocument

SCENARIO_VERSION: Final = "factwire-scenario/v1"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What stands at a pointer: exactly one of the other fields says it.

    `after` is how many of the events have arrived; without it, all have. `lacks` is a text that is
    nowhere beneath the pointer, neither as a name nor within a value.
    """

    at: str
    equals: Any = UNSET
    count: int | UnsetType = UNSET
    keys: list[str] | UnsetType = UNSET
    lacks: str | UnsetType = UNSET
    absent: bool | UnsetType = UNSET
    after: int | UnsetType = UNSET


class Scenario(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`issues` are the validator's codes for defects that the stream has on purpose; `repair` is a
    newer read model that arrives when all events have. Where `complete`, the events are a whole
    file, in whatever order; otherwise they arrive one by one.
    """

    id: str
    schema_version: str
    title: str
    source: str
    requirement: str
    events: list[dict[str, Any]]
    expectations: list[Expectation]
    read_model: dict[str, Any] | None = None
    repair: dict[str, Any] | None = None
    issues: list[str] = []
    complete: bool = False


def to_case(scenario: Scenario) -> Case:
    """The scenario as something that can be run against a projector."""
    return Case(
        id=f"scenario.{scenario.id}",
        title=scenario.title,
        source=scenario.source,
        requirements=(scenario.requirement,),
        level="projection",
        run=partial(scenario_findings, scenario),
    )


def scenario_findings(scenario: Scenario, reduce: Reducer) -> Iterator[Finding]:
    """Everything in which a reducer's states differ from what the scenario expects."""
    state = _state_after(scenario, reduce)
    for expectation in scenario.expectations:
        after = len(scenario.events) if expectation.after is UNSET else expectation.after
        try:
            problem = find_mismatch(expectation, state(after))
        except NoRepair as error:
            problem = str(error)
        if problem is not None:
            yield _scenario_finding(scenario, expectation, after, problem)


def scenario_issues(scenario: Scenario) -> list[str]:
    """The codes of what a validator finds in the events, each once, in order."""
    issues = inspect_stream(scenario.events, "facts", read_model=scenario.read_model)
    return sorted({issue.code for issue in issues})


def find_mismatch(expectation: Expectation, document: Wire) -> str | None:
    """How a document differs from an expectation, if it does."""
    name, wanted = _expected_value(expectation)
    try:
        found = JsonDocument(document).at(expectation.at)
    except InvalidPatch:
        found = UNSET
    if name == "absent":
        return None if found in (UNSET, None) else f"expected nothing, got {_excerpt(found)}"
    if found is UNSET:
        return f"expected {_excerpt(wanted)}, got nothing"
    if name == "lacks":
        return f"expected no {wanted!r} in it" if _contains(found, str(wanted)) else None
    got = _LOOKS[name](found)
    return None if _is_same(got, wanted) else f"expected {_excerpt(wanted)}, got {_excerpt(got)}"


def _expected_value(expectation: Expectation) -> tuple[str, Any]:
    for name in ("equals", "count", "keys", "lacks", "absent"):
        value = getattr(expectation, name)
        if value is not UNSET:
            return name, value
    raise ValueError(f"expected one of equals, count, keys, lacks, absent at {expectation.at!r}")


def _length_of(value: object) -> int | None:
    return len(cast("list[object]", value)) if isinstance(value, list | Mapping) else None


def _keys_of(value: object) -> list[str] | None:
    return sorted(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else None


def _identity(value: object) -> object:
    return value


_LOOKS: Final[Mapping[str, Callable[[object], object]]] = {
    "equals": _identity,
    "count": _length_of,
    "keys": _keys_of,
}


def _is_same(first: object, second: object) -> bool:
    """Equal as JSON: true is not 1."""
    return _encode_sorted(first) == _encode_sorted(second)


def _encode_sorted(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _contains(value: object, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return any(text in key or _contains(member, text) for key, member in members.items())
    return isinstance(value, list) and any(
        _contains(item, text) for item in cast("list[object]", value)
    )


def _excerpt(value: object) -> str:
    text = _encode_sorted(value).decode()
    return text if len(text) <= 200 else f"{text[:199]}…"  # noqa: PLR2004


def _state_after(scenario: Scenario, reduce: Reducer) -> Callable[[int], Wire]:
    @cache
    def state(after: int) -> Wire:
        everything = after >= len(scenario.events)
        return call_reducer(
            reduce,
            scenario.events[:after],
            scenario.read_model,
            scenario.repair if everything else None,
            complete=scenario.complete and everything,
        )

    return state


def _scenario_finding(
    scenario: Scenario, expectation: Expectation, after: int, problem: str
) -> Finding:
    last = scenario.events[after - 1] if after else None
    return Finding(
        requirement=scenario.requirement,
        message=f"{scenario.id}, after {after} facts, at {expectation.at or '/'}: {problem}",
        level="projection",
        fact_id=None if last is None else str(last.get("id")),
        fact=last,
        path=expectation.at,
    )


_SCENARIO_FOLDER: Final = files("factwire.conformance") / "scenarios"


def scenarios() -> tuple[Case, ...]:
    """Every scenario as a case, by name."""
    return tuple(to_case(scenario(name)) for name in scenario_names())


@cache
def scenario(name: str) -> Scenario:
    """The scenario of this name; `KeyError` lists those that there are."""
    if name not in scenario_names():
        raise KeyError(f"expected one of {', '.join(scenario_names())}, got {name!r}")
    text = _SCENARIO_FOLDER.joinpath(f"{name}.json").read_bytes()
    return msgspec.json.decode(text, type=Scenario)


@cache
def scenario_names() -> tuple[str, ...]:
    """The names of all scenarios, in order."""
    found = (path.name for path in _SCENARIO_FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in found if name.endswith(".json")))
