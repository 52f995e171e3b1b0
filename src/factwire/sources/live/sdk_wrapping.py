"""Objects of an SDK, known by the names of their types, so that no SDK is imported to look.

A name can lie; but whoever names an object in a configuration runs its module anyway.
"""

from typing import TypeVar

import msgspec

from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import Agent

T = TypeVar("T")


def is_of(loaded: object, package: str, *names: str) -> bool:
    """Whether an object is of one of these types of a package, or of one beneath them."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package
        for kind in type(loaded).__mro__
    )


def options_of(settings: Agent, shape: type[T], title: str) -> T:
    """The options of a configured agent; raises `InvalidAgent`."""
    for name in ("model", "base_url", "api_key_env"):
        if getattr(settings, name) is not None:
            raise InvalidAgent(f"{name}: an agent of {title} has its model from its own code")
    try:
        return msgspec.convert(settings.options, shape)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of an agent of {title}: {error}") from error
