"""The scenarios that come with Factwire: one JSON document each, beside this module."""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from factwire.conformance.case import Case
from factwire.conformance.scenarios.scenario import Scenario, case_of

_FOLDER: Final = "factwire.conformance.scenarios"


def scenarios() -> tuple[Case, ...]:
    """Every scenario as a case, by name."""
    return tuple(case_of(scenario(name)) for name in scenario_names())


@cache
def scenario(name: str) -> Scenario:
    """The scenario of this name; `KeyError` lists those that there are."""
    if name not in scenario_names():
        raise KeyError(f"expected one of {', '.join(scenario_names())}, got {name!r}")
    text = files(_FOLDER).joinpath(f"{name}.json").read_bytes()
    return msgspec.json.decode(text, type=Scenario)


@cache
def scenario_names() -> tuple[str, ...]:
    """The names of all scenarios, in order."""
    found = (path.name for path in files(_FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in found if name.endswith(".json")))
