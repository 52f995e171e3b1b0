"""The settings of an outside agent, read into the options that it takes."""

from typing import TypeVar

import msgspec

from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import Agent

Options = TypeVar("Options", bound=msgspec.Struct)


def options_of(settings: Agent, kind: type[Options]) -> Options:
    """The options; raises `InvalidAgent` for what the agent does not take."""
    if settings.base_url is not None:
        raise InvalidAgent(
            f"{settings.kind} takes no base_url: where its model is, its own settings say"
        )
    try:
        return msgspec.convert(settings.options, kind)
    except msgspec.ValidationError as error:
        raise InvalidAgent(f"the options of {settings.kind}: {error}") from error


def names_of(settings: Agent, *names: str) -> frozenset[str]:
    """Variables that are the agent's own, with the one that holds its key."""
    key = settings.api_key_env
    return frozenset(names if key is None else (*names, key))
