"""The settings of an outside agent, read into the options that it takes."""

from typing import Any, Literal, TypeVar, get_args, get_origin

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
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise InvalidAgent(
            f"the options of {settings.kind}: {error}{_values(kind, str(error))}; there are {known}"
        ) from error


def _values(kind: type[msgspec.Struct], problem: str) -> str:
    """What an option may be, if the problem is that it is one of a few words."""
    for field in msgspec.structs.fields(kind):
        words = _words(field.type)
        if words and f"`$.{field.encode_name}`" in problem:
            return f" (one of {', '.join(words)})"
    return ""


def _words(kind: Any) -> list[str]:
    """The words of a literal, or of one that may be missing."""
    inside = get_args(kind)
    if get_origin(kind) is Literal:
        return [str(word) for word in inside]
    return [word for each in inside for word in _words(each)]


def names_of(settings: Agent, *names: str) -> frozenset[str]:
    """Variables that are the agent's own, with the one that holds its key."""
    key = settings.api_key_env
    return frozenset(names if key is None else (*names, key))
