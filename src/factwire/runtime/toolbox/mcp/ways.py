"""The way to one server: what is needed to reach it, made out of its settings when it is wanted."""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from factwire.runtime.configuration.settings import McpServer
from factwire.runtime.means import Means
from factwire.runtime.processes import InvalidSpec, Processes, ProcessSpec
from factwire.runtime.provider import Host
from factwire.runtime.toolbox.mcp.failures import refusal
from factwire.runtime.toolbox.mcp.limits import WARNINGS
from factwire.runtime.toolbox.mcp.references import (
    MissingVariable,
    Veil,
    resolved,
    variables_of,
)


class Way:
    """Made for one turn; raises `ToolRefused` where something is missing."""

    def __init__(
        self,
        name: str,
        settings: McpServer,
        host: Host,
        means: Means,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = name
        self.settings = settings
        self.host = host
        self._means = means
        self._warnings = 0
        try:
            self.headers = resolved(settings.headers, environment)
            self._variables = resolved(settings.env, environment)
        except MissingVariable as missing:
            raise refusal("server_unavailable", f"{name}: {missing}") from missing
        self.veil = Veil(_secrets(settings, environment))

    @property
    def processes(self) -> Processes:
        if self._means.processes is None:
            message = f"{self.name} is a program, and this runtime runs none"
            raise refusal("server_unavailable", message)
        return self._means.processes

    @property
    def spec(self) -> ProcessSpec:
        """The program, in the workspace, with the sandbox of the turn and what it may besides."""
        given, wanted = self._means.sandbox, self.settings
        sandbox = msgspec.structs.replace(
            given,
            network=given.network if wanted.network is None else wanted.network,
            readable=(*given.readable, *wanted.readable),
            writable=(*given.writable, *wanted.writable),
        )
        try:
            return ProcessSpec(
                argv=wanted.command,
                cwd=str(self.host.workspace),
                env=self._variables,
                own_env_names=frozenset(self._variables),
                stdin="pipe",
                output="protocol",
                time_limit=None,
                sandbox=sandbox,
            )
        except InvalidSpec as error:
            raise refusal("server_unavailable", f"{self.name}: {error}") from error

    def warn(self, code: str, text: str) -> None:
        """Tell what a person may want to look into, without secrets and not without end."""
        self._warnings += 1
        if self._warnings > WARNINGS:
            return
        message = f"{self.name}: {self.veil.short(text)}"
        said = {"code": code, "severity": "warning", "message": message}
        self.host.emit(self.host.mint.fact(self.host.scope, "runtime.warning", said))


def _secrets(settings: McpServer, environment: Mapping[str, str]) -> list[str]:
    names = (*variables_of(settings.env), *variables_of(settings.headers))
    return [environment.get(name, "") for name in names]


def is_near(url: str) -> bool:
    """Whether a URL leads to this machine, as far as its name tells; nothing is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
