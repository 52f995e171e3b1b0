"""Making an agent of what a kind names: a callable that makes one, an agent itself, or an object
of an SDK that a wrapper knows.

Whatever a module does while it is imported or called is its own; here it only means that there is
no agent, and why. The runtime knows no SDK: wrappers are entry points, and are asked in the order
of their names.
"""

from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint
from inspect import isclass, isroutine, signature
from typing import Any, Final, cast

from factwire.facts import CapabilityManifest, is_valid, manifest_issues
from factwire.runtime.agents.errors import (
    AgentError,
    BrokenEntryPoint,
    InvalidAgent,
    MissingExtra,
)
from factwire.runtime.configuration import Agent
from factwire.runtime.provider import Provider

Make = Callable[[Agent], Provider]

Wrap = Callable[[object, Agent], Provider | None]
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
    "modules are looked for among the installed ones, and in the current folder for an agent that "
    "a command line names"
)


def made(settings: Agent, kind: Make | EntryPoint, wrappers: Wrappers) -> Provider:
    """The agent of a kind; raises `AgentError`."""
    loaded = _loaded(kind) if isinstance(kind, EntryPoint) else kind
    if not (isroutine(loaded) or isclass(loaded)):
        found = _agent_of(loaded, settings, wrappers)
        if found is not None:
            return _sound(settings.kind, found)
    if not callable(loaded):
        raise _not_an_agent(settings.kind, loaded, wrappers)
    result = _called(cast("Make", loaded), settings)
    found = _agent_of(result, settings, wrappers)
    if found is None:
        message = f"expected {settings.kind} to make an agent with a manifest, got {result!r}"
        raise InvalidAgent(message)
    return _sound(settings.kind, found)


def _agent_of(there: Any, settings: Agent, wrappers: Wrappers) -> Provider | None:
    """What is an agent, or what a wrapper makes one of."""
    if isinstance(getattr(there, "manifest", None), CapabilityManifest):
        return there if hasattr(there, "start_turn") else None
    if there is None:
        return None
    for point in wrappers():
        try:
            wrap = cast("Wrap", _loaded(point))
        except AgentError:
            # One that is broken stands in no other's way; if nobody knows the object, it is told.
            continue
        wrapped = _guarded(settings.kind, partial(wrap, there, settings))
        if wrapped is not None:
            return wrapped
    return None


def _called(make: Make, settings: Agent) -> Any:
    try:
        return _guarded(settings.kind, partial(make, settings))
    except BrokenEntryPoint as error:
        if _takes_settings(make):
            raise
        more = "it is called with the settings of the agent: def make(settings)"
        raise BrokenEntryPoint(f"{error}; {more}") from error.__cause__


def _guarded(kind: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except AgentError:
        raise
    except ImportError as error:
        raise _missing(kind, error) from error
    except (Exception, SystemExit) as error:
        message = f"{kind} failed to make an agent: {type(error).__name__}: {error}"
        raise BrokenEntryPoint(message) from error


def _takes_settings(make: Make) -> bool:
    try:
        signature(make).bind(Agent(kind=""))
    except TypeError:
        return False
    except ValueError:
        # What is written in C need not say what it takes.
        return True
    return True


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except ImportError as error:
        if _root(error.name or "") == _root(point.module):
            raise BrokenEntryPoint(f"{point.value} is not there: {error}; {_WHERE}") from error
        raise _missing(point.value, error) from error
    except (Exception, SystemExit) as error:
        message = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
        raise BrokenEntryPoint(message) from error


def _missing(kind: str, error: ImportError) -> AgentError:
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return BrokenEntryPoint(f"{kind} cannot be loaded: {error}")
    return MissingExtra(kind, error.name, _EXTRAS.get(_root(error.name)))


def _root(module: str) -> str:
    return module.partition(".")[0]


def _not_an_agent(kind: str, loaded: object, wrappers: Wrappers) -> AgentError:
    known = ", ".join(map(_named, wrappers()))
    objects = f" or an object of {known}" if known else ""
    return BrokenEntryPoint(
        f"expected {kind} to be an agent, a callable that makes one{objects}, got {loaded!r}"
    )


def _named(wrapper: EntryPoint) -> str:
    try:
        _loaded(wrapper)
    except AgentError as error:
        return f"{wrapper.name} ({error})"
    return wrapper.name


def _sound(kind: str, agent: Provider) -> Provider:
    issues = manifest_issues(agent.manifest)
    if not is_valid(issues):
        said = "; ".join(f"{issue.path}: {issue.message}" for issue in issues)
        raise InvalidAgent(f"the manifest of {kind} is unsound: {said}")
    return agent
