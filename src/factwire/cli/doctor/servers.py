"""MCP servers that are configured: whether what they need is there. None is started or asked."""

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from factwire.cli.doctor.findings import Finding, ok, warn
from factwire.cli.terminal_text import counted
from factwire.runtime.configuration import Configuration, McpServer
from factwire.runtime.toolbox.mcp import EXTRA, is_installed, is_near, variables_of

_INSTALL: Final = f"pip install 'factwire[{EXTRA}]'"


def servers(given: Configuration, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """A line for each server; none where none is configured."""
    if given.mcp and not is_installed():
        count = counted(len(given.mcp), "server")
        yield warn("mcp", f"{count} configured, and the library is missing", _INSTALL)
        return
    for name, settings in given.mcp.items():
        yield _finding(f"mcp {name}", settings, environment)


def _finding(name: str, settings: McpServer, environment: Mapping[str, str]) -> Finding:
    wanted = dict.fromkeys((*variables_of(settings.env), *variables_of(settings.headers)))
    missing = [each for each in wanted if not environment.get(each)]
    if missing:
        message = f"not set: {', '.join(missing)}"
        return warn(name, message, "set them where factwire runs, or take them out of the file")
    if settings.url is not None:
        return _by_url(name, settings.url, secret=bool(wanted))
    return _by_command(name, settings.command[0], environment)


def _by_url(name: str, url: str, *, secret: bool) -> Finding:
    parts = urlsplit(url)
    if secret and parts.scheme == "http" and not is_near(url):
        return warn(name, f"at {parts.netloc}; its secrets travel unencrypted", "use an https URL")
    return ok(name, f"at {parts.netloc}; not asked")


def _by_command(name: str, program: str, environment: Mapping[str, str]) -> Finding:
    found = shutil.which(program, path=environment.get("PATH"))
    if found is None:
        return warn(name, f"there is no program {program}", "install it, or mend the command")
    return ok(name, f"{found}; not started")
