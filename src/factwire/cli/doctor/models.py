"""Agents that talk to a model: which, where, and whether the key is there. Nobody is asked."""

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Final

from factwire.cli.doctor.findings import Finding, ok, warn
from factwire.runtime.agents import AgentError
from factwire.runtime.agents.openai import EXTRA, Endpoint, endpoint_of
from factwire.runtime.configuration import Configuration
from factwire.runtime.errors import TurnFailed

KIND: Final = "openai"
_INSTALL: Final = f"pip install 'factwire[{EXTRA}]'"


def openai(given: Configuration, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """A line for each agent of the kind `openai`, or one that says how to have one."""
    configured = {name: each for name, each in given.agents.items() if each.kind == KIND}
    if find_spec("pydantic_ai") is None or find_spec("openai") is None:
        yield (
            warn(KIND, "a library is missing that configured agents need", _INSTALL)
            if configured
            else ok(KIND, f"not installed; to have it: {_INSTALL}")
        )
        return
    if not configured:
        yield ok(KIND, "not set up; to have it, set agents.openai.model, or give --model to a run")
    for name, settings in configured.items():
        try:
            yield _finding(f"model of {name}", endpoint_of(settings), environment)
        except AgentError:
            # Told as an agent that cannot be had.
            continue


def _finding(name: str, endpoint: Endpoint, environment: Mapping[str, str]) -> Finding:
    where = f"{endpoint.model} at {endpoint.host} ({endpoint.place})"
    try:
        key = endpoint.key(environment)
    except TurnFailed as missing:
        return warn(name, f"{where}; {missing}", missing.hint or "")
    if endpoint.exposes_key:
        return warn(name, f"{where}; the key travels unencrypted", "use an https URL")
    return ok(name, f"{where}, " + ("no key" if key is None else f"key in {endpoint.key_variable}"))
