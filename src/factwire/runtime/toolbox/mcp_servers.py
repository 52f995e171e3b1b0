"""The MCP servers of one turn: none runs before a tool of theirs is wanted, all end with the
turn.

Imported without the protocol's library: that is loaded with the first connection.
"""

import asyncio
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from factwire.runtime.configuration.configuration import McpServer
from factwire.runtime.policy import PolicyRequest, make_visible
from factwire.runtime.processes import InvalidSpec, Processes, ProcessSpec
from factwire.runtime.program_lookup import find_own_program
from factwire.runtime.provider import Decision, Host
from factwire.runtime.toolbox.limits import WARNINGS
from factwire.runtime.toolbox.mcp_content import (
    Catalog,
    Elicitation,
    McpResultBuilder,
    MissingVariable,
    OfferedTool,
    SecretMask,
    build_catalog,
    build_tool_refusal,
    is_wanted,
    list_variables,
    parse_server_name,
    resolve_references,
    to_action_request,
)
from factwire.runtime.toolbox.tool_calls import ActiveCall, CallResult, ToolRefused
from factwire.runtime.toolbox.tool_context import PreparedCall, ToolContext
from factwire.runtime.turn_resources import TurnResources

if TYPE_CHECKING:
    from factwire.runtime.toolbox.mcp_connection import McpConnection


class McpServerAccess:
    """Made for one turn; raises `ToolRefused` where something is missing."""

    def __init__(
        self,
        name: str,
        settings: McpServer,
        host: Host,
        resources: TurnResources,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = name
        self.settings = settings
        self.host = host
        self._resources = resources
        self._warnings = 0
        try:
            self.headers = resolve_references(settings.headers, environment)
            self._variables = resolve_references(settings.env, environment)
        except MissingVariable as missing:
            raise build_tool_refusal("server_unavailable", f"{name}: {missing}") from missing
        self.mask = SecretMask(_secrets(settings, environment))

    @property
    def processes(self) -> Processes:
        if self._resources.processes is None:
            message = f"{self.name} is a program, but this runtime cannot run programs"
            raise build_tool_refusal("server_unavailable", message)
        return self._resources.processes

    @property
    def spec(self) -> ProcessSpec:
        """The program, in the workspace, with the sandbox of the turn and what it may besides."""
        variables, wanted = self._resources.sandbox, self.settings
        sandbox = msgspec.structs.replace(
            variables,
            network=variables.network if wanted.network is None else wanted.network,
            readable=(*variables.readable, *wanted.readable),
            writable=(*variables.writable, *wanted.writable),
            deny=self._resources.policy.denied_paths,
        )
        try:
            return ProcessSpec(
                argv=self._find_argv(),
                cwd=str(self.host.workspace),
                env=self._variables,
                own_env_names=frozenset(self._variables),
                stdin="pipe",
                output="protocol",
                time_limit=None,
                sandbox=sandbox,
            )
        except InvalidSpec as error:
            raise build_tool_refusal("server_unavailable", f"{self.name}: {error}") from error

    def _find_argv(self) -> tuple[str, ...]:
        """The command, of whose name no agent can have written the file."""
        name, *rest = self.settings.command
        program = name if "/" in name else find_own_program(name, self._variables.get("PATH"))
        if program is None:
            message = f"{self.name}: program {name!r} not found on PATH outside of workspaces"
            raise build_tool_refusal("server_unavailable", message)
        return program, *rest

    def warn(self, code: str, text: str) -> None:
        """Tell what a person may want to look into, without secrets and not without end."""
        self._warnings += 1
        if self._warnings > WARNINGS:
            return
        message = f"{self.name}: {self.mask.short(text)}"
        payload = {"code": code, "severity": "warning", "message": message}
        self.host.emit(self.host.mint.fact(self.host.scope, "runtime.warning", payload))


def _secrets(settings: McpServer, environment: Mapping[str, str]) -> list[str]:
    names = (*list_variables(settings.env), *list_variables(settings.headers))
    return [environment.get(name, "") for name in names]


def is_near(url: str) -> bool:
    """Whether a URL leads to this machine, as far as its name tells; nothing is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


MCP_EXTRA: Final = "mcp"
_CONNECTION: Final = "factwire.runtime.toolbox.mcp_connection"


def is_installed() -> bool:
    """Whether the library is there that speaks the protocol."""
    return find_spec("mcp") is not None


class _Server:
    """One server: the way to it, the connection, and what it offers as far as is known."""

    def __init__(self, access: McpServerAccess, connection: "McpConnection") -> None:
        self.access = access
        self.connection = connection
        self.catalog = Catalog(tools={})


class McpServers:
    """Made with a toolbox; starts nothing by itself."""

    def __init__(
        self, host: Host, context: ToolContext, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._host = host
        self._context = context
        self._environment = environment
        self._settings = context.resources.mcp
        self._servers: dict[str, _Server] = {}
        self._failed: dict[str, str] = {}

    async def list_tools(self) -> tuple[OfferedTool, ...]:
        """The tools of all servers. One that cannot be had is told once and left out."""
        names = [name for name in self._settings if name not in self._failed]
        found = await asyncio.gather(*map(self._catalog_if_any, names))
        return tuple(tool for each in found for tool in each.tools.values())

    async def prepare(self, name: str, args: dict[str, Any]) -> PreparedCall:
        """The work of a call; raises `ToolRefused`."""
        tool = await self._tool(name)

        async def perform(call: ActiveCall) -> CallResult:
            # Before the call is sent: if we are killed now, nobody takes the approval for unused.
            await call.mark_applied()
            return await self._perform(call, tool, args)

        request = PolicyRequest(tool=name, workspace=self._context.workspace, args=args)
        prompt = f"Call {make_visible(tool.tool)} of {tool.server}?"
        return PreparedCall(request=request, prompt=prompt, perform=perform)

    async def close(self) -> None:
        """End every server; safe to call again."""
        servers, self._servers = list(self._servers.values()), {}
        await asyncio.gather(*(each.connection.close() for each in servers))

    def knows(self, name: str) -> bool:
        """Whether a tool's name is that of a server that is configured."""
        return parse_server_name(name) in self._settings

    async def _tool(self, name: str) -> OfferedTool:
        server = parse_server_name(name) or ""
        if server not in self._settings:
            raise build_tool_refusal("unknown_tool", f"no server {server!r} is configured")
        try:
            known = (await self._catalog(server)).tools
        except ToolRefused:
            known = self._known_tools(server)
            if name not in known:
                raise
        if name not in known:
            raise build_tool_refusal("unknown_tool", f"{server} offers no {name}")
        return known[name]

    def _known_tools(self, server: str) -> dict[str, OfferedTool]:
        found = self._servers.get(server)
        return {} if found is None else found.catalog.tools

    async def _catalog_if_any(self, name: str) -> Catalog:
        try:
            return await self._catalog(name)
        except ToolRefused as error:
            self._failed[name] = error.category
            payload = {"code": error.category, "severity": "warning", "message": str(error)}
            if error.hint is not None:
                payload["recoveryHint"] = error.hint
            self._emit("runtime.warning", payload)
            return Catalog(tools={})

    async def _catalog(self, name: str) -> Catalog:
        """What a server offers; asked for again only where that may have changed."""
        server = await self._server(name)
        if server.connection.stale:
            listed = await server.connection.tools()
            self._learn(server, build_catalog(name, server.access.settings, listed))
        return server.catalog

    def _learn(self, server: _Server, found: Catalog) -> None:
        self._failed.pop(server.access.name, None)
        if found == server.catalog:
            return
        server.catalog = found
        names = list(found.tools)
        message = f"{server.access.name} offers {len(names)} tool{'s' if len(names) != 1 else ''}"
        payload = {"source": f"mcp:{server.access.name}", "tools": names, "message": message}
        self._emit("tool.catalog.resolved", payload)
        for remark in found.remarks:
            server.access.warn("mcp_tool_left_out", remark)

    async def _server(self, name: str) -> _Server:
        if name in self._servers:
            return self._servers[name]
        if not is_installed():
            message = f"the server {name} needs the module mcp, which is not installed; "
            raise build_tool_refusal("missing_extra", f"{message}install 'factwire[{MCP_EXTRA}]'")
        module = await asyncio.to_thread(import_module, _CONNECTION)
        connect = cast("type[McpConnection]", module.McpConnection)
        access = McpServerAccess(
            name, self._settings[name], self._host, self._context.resources, self._environment
        )
        # Another call may have made it while this one waited.
        return self._servers.setdefault(name, _Server(access, connect(access, self._ask_person)))

    async def _perform(
        self, call: ActiveCall, tool: OfferedTool, args: dict[str, Any]
    ) -> CallResult:
        server = await self._server(tool.server)
        if not is_wanted(server.access.settings, tool.tool):
            raise build_tool_refusal("unknown_tool", f"{tool.server} offers no {tool.name}")
        result = await self._context.unless_stopped(server.connection.call(call, tool.tool, args))
        if result is None:
            raise ToolRefused("cancelled", "the call was cancelled")
        return await McpResultBuilder(call, tool.server, server.access.mask).build_result(result)

    async def _ask_person(self, question: Elicitation, call: ActiveCall) -> Decision | None:
        """What a person says; None where the turn is told to stop first."""
        resources = self._context.resources
        asking = to_action_request(
            question, call, self._context.workspace, resources.approval_seconds
        )
        decision = await self._context.unless_stopped(self._host.ask(asking))
        if decision is not None and decision.decided_by is not None:
            await self._host.mark_applied(decision)
        return decision

    def _emit(self, event_class: str, payload: dict[str, Any]) -> None:
        self._host.emit(self._host.mint.fact(self._host.scope, event_class, payload))
