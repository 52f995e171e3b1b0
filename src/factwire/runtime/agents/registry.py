"""The registry: agents by configuration and by entry point, each with a sound manifest.

An agent that cannot be had stands in nobody's way: what is wrong with it is kept under its name and
told when it is asked for. The built-in kinds are always there; an entry point cannot take their
place.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, is_valid, manifest_issues
from factwire.runtime.agents.demo import DemoAgent, DemoOptions
from factwire.runtime.agents.errors import (
    AgentError,
    BrokenEntryPoint,
    InvalidAgent,
    MissingExtra,
    NameTaken,
    UnknownKind,
)
from factwire.runtime.agents.openai import openai_agent
from factwire.runtime.agents.shell import ShellAgent
from factwire.runtime.configuration import Agent, Configuration
from factwire.runtime.errors import UnknownAgent
from factwire.runtime.provider import Provider

GROUP: Final = "factwire.agents"
"""Entry points of this group are agents: name → a callable that takes `Agent` settings."""

Make = Callable[[Agent], Provider]

_EXTRAS: Final = {
    "acp": "acp",
    "agents": "openai-agents",
    "claude_agent_sdk": "claude-code",
    "langchain_openai": "langgraph",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "openai_codex": "codex",
    "pydantic_ai": "pydantic-ai",
}
"""Module → the extra of Factwire's that brings it."""


def _demo(settings: Agent) -> Provider:
    try:
        options = msgspec.convert(settings.options, DemoOptions)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of a demo: {error}") from error
    return DemoAgent(options)


def _shell(settings: Agent) -> Provider:
    if settings.options:
        raise InvalidAgent(f"a shell takes no options, got {', '.join(settings.options)}")
    return ShellAgent()


BUILT_INS: Final[dict[str, Make]] = {"demo": _demo, "openai": openai_agent, "shell": _shell}


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """Agents that can be used, and what is wrong with the others, both by name."""

    agents: dict[str, Provider]
    problems: dict[str, AgentError]

    @property
    def manifests(self) -> dict[str, CapabilityManifest]:
        return {name: agent.manifest for name, agent in self.agents.items()}

    def agent(self, name: str) -> Provider:
        """The agent of a name; raises what is wrong with it, or `UnknownAgent`."""
        if name in self.agents:
            return self.agents[name]
        raise self.problems.get(name) or UnknownAgent(name, list(self.agents))


def register(
    configuration: Configuration, installed: Iterable[EntryPoint] | None = None
) -> Registered:
    """Every agent that is configured, installed or built in; a configured one goes first."""
    found = entry_points(group=GROUP) if installed is None else installed
    kinds, problems = _kinds(found)
    wanted = {name: Agent(kind=name) for name in kinds} | configuration.agents
    agents: dict[str, Provider] = {}
    for name, settings in wanted.items():
        try:
            agents[name] = _made(name, settings, kinds)
        except AgentError as error:
            problems[name] = error
    return Registered(agents=agents, problems=problems)


def _kinds(
    installed: Iterable[EntryPoint],
) -> tuple[dict[str, Make | EntryPoint], dict[str, AgentError]]:
    kinds: dict[str, Make | EntryPoint] = dict(BUILT_INS)
    problems: dict[str, AgentError] = {}
    for point in installed:
        known = kinds.setdefault(point.name, point)
        # One that is found twice, as an editable install may be, is still one.
        if not isinstance(known, EntryPoint) or known.value != point.value:
            error = NameTaken(f"{point.value} wants the name {point.name!r}, which is taken")
            problems[f"{point.name} ({point.value})"] = error
    return kinds, problems


def _made(name: str, settings: Agent, kinds: dict[str, Make | EntryPoint]) -> Provider:
    kind = kinds.get(settings.kind)
    if kind is None and ":" in settings.kind:
        kind = EntryPoint(name=name, group=GROUP, value=settings.kind)
    if kind is None:
        raise UnknownKind(settings.kind, list(kinds))
    make = _loaded(kind) if isinstance(kind, EntryPoint) else kind
    try:
        agent = make(settings)
    except AgentError:
        raise
    except ImportError as error:
        raise _missing(settings.kind, error) from error
    except (Exception, SystemExit) as error:
        message = f"{settings.kind} failed to make an agent: {type(error).__name__}: {error}"
        if not _takes_settings(make):
            message += "; it is called with the settings of the agent: def make(settings)"
        raise BrokenEntryPoint(message) from error
    return _sound(settings.kind, agent)


def _takes_settings(make: Make) -> bool:
    try:
        signature(make).bind(Agent(kind=""))
    except TypeError:
        return False
    except ValueError:
        # What is written in C need not say what it takes.
        return True
    return True


def _loaded(point: EntryPoint) -> Make:
    try:
        loaded: Any = point.load()
    except ImportError as error:
        if _root(error.name or "") == _root(point.module):
            raise BrokenEntryPoint(f"{point.value} is not there: {error}") from error
        raise _missing(point.value, error) from error
    except (Exception, SystemExit) as error:
        # Whatever a module does while it is imported is its own; here it only means: no agent.
        message = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
        raise BrokenEntryPoint(message) from error
    if not callable(loaded):
        raise BrokenEntryPoint(f"expected {point.value} to be callable, got {loaded!r}")
    return cast("Make", loaded)


def _missing(kind: str, error: ImportError) -> AgentError:
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return BrokenEntryPoint(f"{kind} cannot be loaded: {error}")
    return MissingExtra(kind, error.name, _EXTRAS.get(_root(error.name)))


def _root(module: str) -> str:
    return module.partition(".")[0]


def _sound(kind: str, agent: Any) -> Provider:
    manifest = getattr(agent, "manifest", None)
    if not isinstance(manifest, CapabilityManifest) or not hasattr(agent, "start_turn"):
        raise InvalidAgent(f"expected {kind} to make an agent with a manifest, got {agent!r}")
    issues = manifest_issues(manifest)
    if not is_valid(issues):
        said = "; ".join(f"{issue.path}: {issue.message}" for issue in issues)
        raise InvalidAgent(f"the manifest of {kind} is unsound: {said}")
    return agent
