"""Resolution: flags before environment before project file before user file before defaults.

Each key takes its value from the strongest source that gives one, and remembers which. Lists that
ask or deny add up over all sources, so that a project cannot take back what its user forbids.
"""

from typing import Any, Final

import msgspec

from factwire.runtime.configuration.errors import ConfigurationError, Problem
from factwire.runtime.configuration.keys import SETTINGS, setting_of
from factwire.runtime.configuration.layers import PRECEDENCE, Given, Layer, Origin
from factwire.runtime.configuration.settings import (
    Agent,
    Configuration,
    Limits,
    McpServer,
    PolicySettings,
    SandboxSettings,
)
from factwire.runtime.retry_policy import RetryPolicy

_GROUPS: Final[dict[str, type[msgspec.Struct]]] = {
    "policy": PolicySettings,
    "sandbox": SandboxSettings,
    "limits": Limits,
    "retry": RetryPolicy,
}


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, and where each of its values came from, by key."""

    configuration: Configuration
    origins: dict[str, Origin]


def resolve(layers: tuple[Layer, ...], state_folder: str) -> Resolved:
    """One configuration out of all layers, in any order; raises `ConfigurationError`.

    `state_folder` is where Factwire keeps things when nobody says otherwise.
    """
    given = sorted(
        (each for layer in layers for each in layer.given),
        key=lambda each: PRECEDENCE.index(each.origin.source),
    )
    chosen = _chosen(given)
    problems = [problem for layer in layers for problem in layer.problems]
    problems += [*_incomplete_agents(chosen), *_unclear_servers(chosen)]
    if problems:
        raise ConfigurationError(tuple(problems))
    configuration = _built(chosen, state_folder)
    origins = {key: Origin("default") for key in SETTINGS}
    origins |= {key: each.origin for key, each in chosen.items()}
    return Resolved(configuration=configuration, origins=origins)


def _chosen(given: list[Given]) -> dict[str, Given]:
    chosen: dict[str, Given] = {}
    for each in given:
        setting = setting_of(each.key)
        if each.key not in chosen:
            chosen[each.key] = each
        elif setting is not None and setting.gathers:
            chosen[each.key] = _gathered(chosen[each.key], each)
    return chosen


def _gathered(stronger: Given, weaker: Given) -> Given:
    value = tuple(dict.fromkeys((*stronger.value, *weaker.value)))
    places = filter(None, (stronger.origin.where, weaker.origin.where))
    return Given(stronger.key, value, Origin(stronger.origin.source, ", ".join(places)))


def _incomplete_agents(chosen: dict[str, Given]) -> list[Problem]:
    names = {key.split(".")[1]: each for key, each in chosen.items() if key.startswith("agents.")}
    return [
        Problem(
            code="missing_key",
            where=each.origin.where or each.origin.source,
            key=f"agents.{name}.kind",
            expected="a kind such as 'claude-code', or an entry point 'module:name'",
            got="nothing",
        )
        for name, each in names.items()
        if f"agents.{name}.kind" not in chosen
    ]


def _unclear_servers(chosen: dict[str, Given]) -> list[Problem]:
    """A server is a program or has a URL, and nobody guesses which."""
    names = {key.split(".")[1]: each for key, each in chosen.items() if key.startswith("mcp.")}
    return [
        Problem(
            code="missing_key" if not both else "wrong_value",
            where=each.origin.where or each.origin.source,
            key=f"mcp.{name}.command",
            expected="a command or a url",
            got="both" if both else "neither",
        )
        for name, each in names.items()
        if (both := f"mcp.{name}.command" in chosen) == (f"mcp.{name}.url" in chosen)
    ]


def _built(chosen: dict[str, Given], state_folder: str) -> Configuration:
    values = {key: each.value for key, each in chosen.items()}
    data = values.get("data", state_folder)
    top: dict[str, Any] = {
        "data": data,
        "journal": values.get("journal", f"sqlite:{data}/journal.db"),
        "agents": {name: Agent(**fields) for name, fields in _named("agents", values).items()},
        "mcp": {name: McpServer(**fields) for name, fields in _named("mcp", values).items()},
        **{key: values[key] for key in ("workspaces", "worktree", "agent") if key in values},
        **{name: group(**_below(name, values)) for name, group in _GROUPS.items()},
    }
    return Configuration(**top)


def _named(table: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Name → what is given of it, for the things of a table that have names."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in _below(table, values).items():
        name, _, field = key.partition(".")
        found.setdefault(name, {})[field] = value
    return found


def _below(name: str, values: dict[str, Any]) -> dict[str, Any]:
    start = f"{name}."
    return {key[len(start) :]: value for key, value in values.items() if key.startswith(start)}
