"""The registry: agents by configuration and by entry point, each with a sound manifest.

A kind names a factory, an agent itself, or an object that a wrapper knows. A factory is a function
or a class that takes the settings; nothing else is called, because to call an agent of an SDK that
no wrapper knows would set it to work. An agent that cannot be made is a problem with a stable code
and never keeps the others from running.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from inspect import (
    Parameter,
    isasyncgenfunction,
    isclass,
    iscoroutinefunction,
    isgeneratorfunction,
    isroutine,
    signature,
)
from typing import Any, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, is_valid, manifest_issues
from factwire.runtime.agents.demo_agent import DemoAgent, DemoOptions
from factwire.runtime.agents.openai_agent import openai_agent
from factwire.runtime.agents.shell_agent import ShellAgent
from factwire.runtime.configuration import AgentSettings, Configuration
from factwire.runtime.errors import (
    AgentError,
    BrokenEntryPoint,
    InvalidAgent,
    MissingAgentExtra,
    NameTaken,
    UnknownAgent,
    UnknownKind,
)
from factwire.runtime.provider import Provider

Make = Callable[[AgentSettings], Provider]

Wrap = Callable[[object, AgentSettings], Provider | None]
"""Makes an agent of an object; None for an object of somebody else's."""

Wrappers = Callable[[], Iterable[EntryPoint]]

_EXTRAS: Final = {
    "acp": "acp",
    "agents": "openai-agents",
    "claude_agent_sdk": "claude-code",
    "httpx": "client",
    "langchain_openai": "langgraph",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "openai_codex": "codex",
    "pydantic_ai": "pydantic-ai",
}
"""Module → the extra of Factwire's that brings it."""

_WHERE: Final = (
    "modules are imported from installed packages, and from the current folder for an agent named "
    "on the command line"
)


def make_agent(settings: AgentSettings, kind: Make | EntryPoint, wrappers: Wrappers) -> Provider:
    """The agent of a kind; raises `AgentError`."""
    loaded = _load_entry_point(kind) if isinstance(kind, EntryPoint) else kind
    if not _is_definition(loaded):
        found = _agent_of(loaded, settings, wrappers)
        if found is not None:
            return _require_sound_agent(settings.kind, found)
        raise _not_an_agent_error(settings.kind, loaded, wrappers)
    result = _call_factory(_require_factory(settings.kind, loaded), settings)
    found = _agent_of(result, settings, wrappers)
    if found is None:
        message = f"expected {settings.kind} to create an agent with a manifest, got {result!r}"
        raise InvalidAgent(message)
    return _require_sound_agent(settings.kind, found)


def _agent_of(there: Any, settings: AgentSettings, wrappers: Wrappers) -> Provider | None:
    """What is an agent, or what a wrapper makes one of."""
    if isinstance(getattr(there, "manifest", None), CapabilityManifest):
        return there if hasattr(there, "start_turn") else None
    if there is None:
        return None
    for point in wrappers():
        try:
            wrap = cast("Wrap", _load_entry_point(point))
        except AgentError:
            # One that is broken stands in no other's way; if nobody knows the object, it is told.
            continue
        wrapped = _call_guarded(settings.kind, partial(wrap, there, settings))
        if wrapped is not None:
            return wrapped
    return None


def _is_definition(loaded: object) -> bool:
    """Whether this is a function or a class, perhaps with some of its arguments."""
    while isinstance(loaded, partial):
        loaded = loaded.func
    return isroutine(loaded) or isclass(loaded)


_WORKS_WHEN_AWAITED: Final = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)


def _require_factory(kind: str, loaded: Any) -> Make:
    """A function or class that can be called with settings; raises `BrokenEntryPoint` for one that
    says that it takes something else.
    """
    if any(check(loaded) for check in _WORKS_WHEN_AWAITED) or not _may_take_settings(loaded):
        message = f"expected {kind} to be a factory, def make(settings: AgentSettings), got"
        raise BrokenEntryPoint(f"{message} {loaded!r}, which was not called")
    return loaded


def _may_take_settings(make: Any) -> bool:
    """Whether the first parameter is not one of another type."""
    try:
        first = next(iter(signature(make).parameters.values()), None)
    except (TypeError, ValueError):
        # What is written in C need not say what it takes.
        return True
    if first is None or first.annotation is Parameter.empty:
        return True
    stated = first.annotation
    name = stated if isinstance(stated, str) else getattr(stated, "__name__", str(stated))
    return name.rpartition(".")[2] in _SETTINGS_NAMES


_SETTINGS_NAMES: Final = frozenset({AgentSettings.__name__, "Any", "object"})


def _call_factory(make: Make, settings: AgentSettings) -> Any:
    try:
        return _call_guarded(settings.kind, partial(make, settings))
    except BrokenEntryPoint as error:
        if _takes_settings(make):
            raise
        more = "it is called with the settings of the agent: def make(settings)"
        raise BrokenEntryPoint(f"{error}; {more}") from error.__cause__


def _call_guarded(kind: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except AgentError:
        raise
    except ImportError as error:
        raise _missing_extra_error(kind, error) from error
    except (Exception, SystemExit) as error:
        message = f"{kind} failed to create an agent: {type(error).__name__}: {error}"
        raise BrokenEntryPoint(message) from error


def _takes_settings(make: Make) -> bool:
    try:
        signature(make).bind(AgentSettings(kind=""))
    except TypeError:
        return False
    except ValueError:
        # What is written in C need not say what it takes.
        return True
    return True


def _load_entry_point(point: EntryPoint) -> Any:
    try:
        return point.load()
    except ImportError as error:
        if _root(error.name or "") == _root(point.module):
            raise BrokenEntryPoint(f"{point.value} not found: {error}; {_WHERE}") from error
        raise _missing_extra_error(point.value, error) from error
    except (Exception, SystemExit) as error:
        message = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
        raise BrokenEntryPoint(message) from error


def _missing_extra_error(kind: str, error: ImportError) -> AgentError:
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return BrokenEntryPoint(f"{kind} cannot be loaded: {error}")
    return MissingAgentExtra(kind, error.name, _EXTRAS.get(_root(error.name)))


def _root(module: str) -> str:
    return module.partition(".")[0]


def _not_an_agent_error(kind: str, loaded: object, wrappers: Wrappers) -> AgentError:
    known = ", ".join(map(_wrapper_name, wrappers()))
    objects = f" or an object of {known}" if known else ""
    return BrokenEntryPoint(
        f"expected {kind} to be an agent, a function or class that creates one{objects}, got "
        f"{loaded!r}"
    )


def _wrapper_name(wrapper: EntryPoint) -> str:
    try:
        _load_entry_point(wrapper)
    except AgentError as error:
        return f"{wrapper.name} ({error})"
    return wrapper.name


def _require_sound_agent(kind: str, agent: Provider) -> Provider:
    issues = manifest_issues(agent.manifest)
    if not is_valid(issues):
        problems = "; ".join(f"{issue.path}: {issue.message}" for issue in issues)
        raise InvalidAgent(f"the manifest of {kind} is invalid: {problems}")
    return agent


GROUP: Final = "factwire.agents"
"""Entry points of this group are agents: name → a callable that takes `Agent` settings."""

WRAPPERS: Final = "factwire.wrappers"
"""Entry points of this group make agents of objects: name → a callable that takes the object and
the settings, and returns an agent, or None if the object is not one that it knows."""


def _demo(settings: AgentSettings) -> Provider:
    try:
        options = msgspec.convert(settings.options, DemoOptions)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of a demo: {error}") from error
    return DemoAgent(options)


def _shell(settings: AgentSettings) -> Provider:
    if settings.options:
        raise InvalidAgent(f"a shell agent accepts no options, got {', '.join(settings.options)}")
    return ShellAgent()


BUILT_INS: Final[dict[str, Make]] = {"demo": _demo, "openai": openai_agent, "shell": _shell}

Kinds = Mapping[str, Make | EntryPoint]


class AgentRegistry(Mapping[str, Provider]):
    """Agents by name, as far as they can be had; to walk through all of them makes all of them."""

    def __init__(
        self,
        wanted: Mapping[str, AgentSettings],
        kinds: Kinds,
        wrappers: Iterable[EntryPoint] | None,
        problems: Mapping[str, AgentError],
    ) -> None:
        self._wanted = wanted
        self._kinds = kinds
        self._own_wrappers = wrappers
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
            self._made[name] = make_agent(
                settings, self._kind(name, settings), lambda: self._wrappers
            )
        except AgentError as error:
            self._problems[name] = error

    @cached_property
    def _wrappers(self) -> tuple[EntryPoint, ...]:
        """Looked up when an object has to be wrapped, for that takes longer than all the rest."""
        known = entry_points(group=WRAPPERS) if self._own_wrappers is None else self._own_wrappers
        return tuple(sorted(set(known), key=lambda point: point.name))

    def _kind(self, name: str, settings: AgentSettings) -> Make | EntryPoint:
        if name in self._kinds and settings.kind != name:
            raise NameTaken(
                f"the name {name!r} belongs to an agent that Factwire knows, and cannot stand for "
                f"{settings.kind!r}; choose another name"
            )
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
) -> AgentRegistry:
    """Every agent that is configured, installed or built in; a configured one goes first."""
    kinds, problems = _kinds(entry_points(group=GROUP) if installed is None else installed)
    wanted = {name: AgentSettings(kind=name) for name in kinds} | configuration.agents
    return AgentRegistry(wanted, kinds, wrappers, problems)


def _kinds(
    installed: Iterable[EntryPoint],
) -> tuple[dict[str, Make | EntryPoint], dict[str, AgentError]]:
    kinds: dict[str, Make | EntryPoint] = dict(BUILT_INS)
    problems: dict[str, AgentError] = {}
    for point in installed:
        known = kinds.setdefault(point.name, point)
        # One that is found twice, as an editable install may be, is still one.
        if not isinstance(known, EntryPoint) or known.value != point.value:
            error = NameTaken(f"{point.value}: the name {point.name!r} is already taken")
            problems[f"{point.name} ({point.value})"] = error
    return kinds, problems
