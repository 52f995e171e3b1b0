"""Where a model is served, and the key to it: named here, read for a turn, kept nowhere.

The attack: a key that goes to a host it was not meant for. The variable that everybody's OpenAI key
stands in is read for OpenAI alone; any other endpoint gets the key that its own configuration
names, or none.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from factwire.runtime.agents.errors import InvalidAgent
from factwire.runtime.configuration import Agent
from factwire.runtime.errors import TurnFailed

OPENAI_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY: Final = "OPENAI_API_KEY"

Place = Literal["loopback", "private", "public"]

_NEAR: Final = (".local", ".internal", ".lan", ".home.arpa")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`key_variable` is the name of a variable; without one, no key is sent."""

    base_url: str
    model: str
    key_variable: str | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def place(self) -> Place:
        """How far away it is, as far as its name tells; nothing is looked up."""
        return _place(self.host)

    @property
    def provider(self) -> str:
        return "openai" if self.base_url == OPENAI_URL else "openai-compatible"

    @property
    def exposes_key(self) -> bool:
        """Whether the key would travel in the clear over other people's wires."""
        plain = urlsplit(self.base_url).scheme == "http"
        return plain and self.place == "public" and self.key_variable is not None

    def key(self, environment: Mapping[str, str]) -> str | None:
        """The key; raises `TurnFailed` where one is named and absent."""
        if self.key_variable is None:
            return None
        found = environment.get(self.key_variable, "").strip()
        if not found or not found.isascii() or not found.isprintable():
            state = "holds no key" if not found else "holds what cannot be a key"
            raise TurnFailed(
                "key_missing",
                f"the environment variable {self.key_variable} {state}",
                f"Put the key into {self.key_variable}, or name another variable in api_key_env.",
            )
        return found


def endpoint_of(settings: Agent) -> Endpoint:
    """The endpoint that a configuration names; raises `InvalidAgent` where it names no model."""
    if settings.model is None:
        raise InvalidAgent("an openai agent needs a model; set agents.NAME.model, or give --model")
    own = settings.base_url is None
    return Endpoint(
        base_url=(settings.base_url or OPENAI_URL).rstrip("/"),
        model=settings.model,
        key_variable=settings.api_key_env or (OPENAI_KEY if own else None),
    )


def _place(host: str) -> Place:
    try:
        address = ip_address(host)
    except ValueError:
        if host == "localhost" or host.endswith(".localhost"):
            return "loopback"
        return "private" if "." not in host or host.endswith(_NEAR) else "public"
    if address.is_loopback:
        return "loopback"
    return "private" if address.is_private else "public"
