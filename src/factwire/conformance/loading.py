"""Loading an agent by `module:factory`: what it names is called, and what comes back is checked.

A factory takes nothing. Something that is a provider already is taken as it is. Whatever goes wrong
on the way is an error with a code, never a traceback out of somebody else's module.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from factwire.conformance.errors import (
    BrokenFactory,
    NotAProvider,
    UnknownFactory,
    UnknownMinimum,
    UnknownModule,
)
from factwire.conformance.trials import PROMPTS, Make
from factwire.facts import CapabilityManifest
from factwire.runtime import Provider
from factwire.runtime.agent_streams import not_a_stream

_METHODS: Final = ("start_turn", "cancel_turn", "respond_action", "read_thread")


def load_factory(where: str) -> Make:
    """A callable that makes the provider that `module:factory` names, checked each time."""
    module_name, colon, path = where.partition(":")
    if not colon or not module_name or not path:
        raise UnknownFactory(f"expected module:factory, got {where!r}")
    found = _attribute(_module(module_name), path, where)
    return lambda: _made(found, where)


def prompts_of(provider: Provider, given: Mapping[str, str]) -> dict[str, str]:
    """The prompts of an agent: its own, and before them those that are given."""
    own: Any = getattr(provider, "conformance_prompts", {})
    if not isinstance(own, Mapping):
        raise NotAProvider(f"expected conformance_prompts to be a mapping, got {own!r}")
    chosen = {**cast("Mapping[str, str]", own), **given}
    for name, prompt in chosen.items():
        if name not in PROMPTS:
            raise UnknownMinimum(f"no prompt is called {name!r}; there are {', '.join(PROMPTS)}")
        if not isinstance(prompt, str) or not prompt:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownMinimum(f"expected a text as the prompt {name!r}, got {prompt!r}")
    return chosen


def _module(name: str) -> Any:
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


def _attribute(module: Any, path: str, where: str) -> Any:
    found = module
    for name in path.split("."):
        if not hasattr(found, name):
            raise UnknownFactory(f"there is no {path} in {where.partition(':')[0]}")
        found = getattr(found, name)
    return found


def _made(found: Any, where: str) -> Provider:
    if not isinstance(found, type) and _lacks(found) is None:
        return cast("Provider", found)
    if not callable(found):
        raise NotAProvider(f"expected {where} to be a factory or a provider, got {_kind(found)}")
    try:
        made = cast("Callable[[], Any]", found)()
    except (Exception, SystemExit) as error:
        raise BrokenFactory(f"{where} raised {type(error).__name__}: {error}") from error
    lack = _lacks(made)
    if lack is not None:
        raise NotAProvider(f"expected {where} to make a provider; {_kind(made)} {lack}")
    return cast("Provider", made)


def _lacks(value: Any) -> str | None:
    """What keeps a value from being a provider, all of it."""
    missing = [name for name in _METHODS if not callable(getattr(value, name, None))]
    if not isinstance(getattr(value, "manifest", None), CapabilityManifest):
        missing.insert(0, "CapabilityManifest as its manifest")
    if missing:
        return f"has no {', no '.join(missing)}"
    if inspect.iscoroutinefunction(value.start_turn):
        return f"cannot run a turn: {not_a_stream('a coroutine')}"
    return None


def _kind(value: Any) -> str:
    """A value by its kind: where it lies in memory says nothing to anybody."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"a value of type {type(value).__name__}"
