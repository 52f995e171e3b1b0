"""What a server offers, under names that are safe: `mcp__SERVER__TOOL`.

The attack: a tool whose name reads like another's, so that a rule or a person means the one and
gets the other. A name that had to be changed ends with a hash of what it was, and a name that is
there already is not offered again. What a server says about its tools is shown as it is and decides
nothing; its hints, such as `readOnlyHint`, are not even looked at.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from factwire.runtime.configuration.settings import McpServer
from factwire.runtime.toolbox.mcp.limits import (
    DESCRIPTION_CHARACTERS,
    NAME_CHARACTERS,
    SCHEMA_CHARACTERS,
    TOOLS,
)

PREFIX: Final = "mcp__"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH: Final = 8


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server lists it."""

    name: str
    description: str = ""
    schema: dict[str, Any]


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as an agent may call it; `tool` is what its `server` calls it."""

    name: str
    server: str
    tool: str
    description: str
    schema: dict[str, Any]


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a server by their names, and what was left out, in sentences."""

    tools: dict[str, Offered]
    remarks: tuple[str, ...] = ()


def server_of(name: str) -> str | None:
    """The server that a tool's name is about; None for a name that is no server's."""
    server, parted, tool = name.removeprefix(PREFIX).partition("__")
    return server if name.startswith(PREFIX) and parted and tool else None


def tool_name(server: str, tool: str) -> str:
    """The name under which a server's tool is offered."""
    start = f"{PREFIX}{server}__"
    room = NAME_CHARACTERS - len(start)
    if _PLAIN.fullmatch(tool) and len(tool) <= room:
        return start + tool
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:_HASH]
    return f"{start}{_OTHER.sub('_', tool)[: room - _HASH - 1]}_{digest}"


def catalog(server: str, settings: McpServer, listed: Iterable[Listed]) -> Catalog:
    """What of a server's list is offered."""
    tools: dict[str, Offered] = {}
    remarks: list[str] = []
    for each in listed:
        if not is_wanted(settings, each.name):
            continue
        name = tool_name(server, each.name)
        problem = _problem(each, name, tools)
        if problem is None:
            tools[name] = _offered(name, server, each)
        else:
            remarks.append(f"{name}: {problem}")
    return Catalog(tools=tools, remarks=tuple(remarks))


def is_wanted(settings: McpServer, tool: str) -> bool:
    """Whether the lists of the configuration let a tool through; what is denied stays denied."""
    allowed = any(fnmatchcase(tool, each) for each in settings.allow_tools)
    return allowed and not any(fnmatchcase(tool, each) for each in settings.deny_tools)


def _problem(each: Listed, name: str, tools: dict[str, Offered]) -> str | None:
    if name in tools:
        return "the server lists it twice; the first one counts"
    if len(tools) >= TOOLS:
        return f"one of more than {TOOLS} tools"
    if len(json.dumps(each.schema)) > SCHEMA_CHARACTERS:
        return f"its schema has more than {SCHEMA_CHARACTERS} characters"
    return None


def _offered(name: str, server: str, each: Listed) -> Offered:
    text = each.description
    shown = text if len(text) <= DESCRIPTION_CHARACTERS else f"{text[:DESCRIPTION_CHARACTERS]}…"
    return Offered(name=name, server=server, tool=each.name, description=shown, schema=each.schema)
