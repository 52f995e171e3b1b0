"""The registry: agents by configuration and by entry point, each with a sound manifest.

An agent is made when it is first asked for, so that what is installed and not used costs nothing.
One that cannot be had stands in nobody's way: what is wrong with it is kept under its name and told
when it is asked for. The built-in kinds are always there; an entry point cannot take their place.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import msgspec

from factwire.facts import CapabilityManifest
from factwire.runtime.agents.demo import DemoAgent, DemoOptions
from factwire.runtime.agents.errors import AgentError, InvalidAgent, NameTaken, UnknownKind
from factwire.runtime.agents.making import Make, made
from factwire.runtime.agents.openai import openai_agent
from factwire.runtime.agents.shell import ShellAgent
from factwire.runtime.configuration import Agent, Configuration
from factwire.runtime.errors import UnknownAgent
from factwire.runtime.provider import Provider

GROUP: Final = "factwire.agents"
"""Entry points of this group are agents: name → a callable that takes `Agent` settings."""

WRAPPERS: Final = "factwire.wrappers"
"""Entry points of this group make agents of objects: name → a callable that takes the object and
the settings, and returns an agent, or None if the object is not one that it knows."""


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

Kinds = Mapping[str, Make | EntryPoint]


class Registered(Mapping[str, Provider]):
    """Agents by name, as far as they can be had; to walk through all of them makes all of them."""

    def __init__(
        self,
        wanted: Mapping[str, Agent],
        kinds: Kinds,
        wrappers: Iterable[EntryPoint] | None,
        problems: Mapping[str, AgentError],
    ) -> None:
        self._wanted = wanted
        self._kinds = kinds
        self._given = wrappers
        self._problems = dict(problems)
        self._made: dict[str, Provider] = {}

    @property
    def agents(self) -> Mapping[str, Provider]:
        """Those that can be used."""
        return self

    @property
    def problems(self) -> dict[str, AgentError]:
        """What is wrong with the others."""
        self._make_all()
        return dict(self._problems)

    @property
    def manifests(self) -> dict[str, CapabilityManifest]:
        return {name: agent.manifest for name, agent in self.items()}

    def agent(self, name: str) -> Provider:
        """The agent of a name; raises what is wrong with it, or `UnknownAgent`."""
        if name in self:
            return self[name]
        raise self._problems.get(name) or UnknownAgent(name, list(self))

    def __getitem__(self, name: str) -> Provider:
        self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        self._make_all()
        return (name for name in self._wanted if name in self._made)

    def __len__(self) -> int:
        self._make_all()
        return len(self._made)

    def _make_all(self) -> None:
        for name in self._wanted:
            self._make(name)

    def _make(self, name: str) -> None:
        settings = self._wanted.get(name)
        if settings is None or name in self._made or name in self._problems:
            return
        try:
            self._made[name] = made(settings, self._kind(name, settings), lambda: self._wrappers)
        except AgentError as error:
            self._problems[name] = error

    @cached_property
    def _wrappers(self) -> tuple[EntryPoint, ...]:
        """Looked up when an object has to be wrapped, for that takes longer than all the rest."""
        known = entry_points(group=WRAPPERS) if self._given is None else self._given
        return tuple(sorted(set(known), key=lambda point: point.name))

    def _kind(self, name: str, settings: Agent) -> Make | EntryPoint:
        kind = self._kinds.get(settings.kind)
        if kind is not None:
            return kind
        if ":" not in settings.kind:
            raise UnknownKind(settings.kind, list(self._kinds))
        return EntryPoint(name=name, group=GROUP, value=settings.kind)


def register(
    configuration: Configuration,
    installed: Iterable[EntryPoint] | None = None,
    wrappers: Iterable[EntryPoint] | None = None,
) -> Registered:
    """Every agent that is configured, installed or built in; a configured one goes first."""
    kinds, problems = _kinds(entry_points(group=GROUP) if installed is None else installed)
    wanted = {name: Agent(kind=name) for name in kinds} | configuration.agents
    return Registered(wanted, kinds, wrappers, problems)


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
