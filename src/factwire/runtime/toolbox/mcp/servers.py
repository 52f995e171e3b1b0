"""The servers of one turn: none runs before a tool of theirs is wanted, all end with the turn.

A call is made ready like any other: first it is known what would be done, then the policy and maybe
a person judge it, then it is done. Nothing that a server says about its tools takes part in that.
"""

import asyncio
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from factwire.runtime.policy import Request, visible
from factwire.runtime.provider import Decision, Host
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.mcp.contents import Contents
from factwire.runtime.toolbox.mcp.failures import refusal
from factwire.runtime.toolbox.mcp.names import Catalog, Offered, catalog, is_wanted, server_of
from factwire.runtime.toolbox.mcp.questions import Question, asked
from factwire.runtime.toolbox.mcp.ways import Way
from factwire.runtime.toolbox.outcomes import Done, ToolRefused
from factwire.runtime.toolbox.works import Bench, Work

if TYPE_CHECKING:
    from factwire.runtime.toolbox.mcp.connection import Connection

EXTRA: Final = "mcp"
_CONNECTION: Final = "factwire.runtime.toolbox.mcp.connection"


def is_installed() -> bool:
    """Whether the library is there that speaks the protocol."""
    return find_spec("mcp") is not None


class _Server:
    """One server: the way to it, the connection, and what it offers as far as is known."""

    def __init__(self, way: Way, connection: "Connection") -> None:
        self.way = way
        self.connection = connection
        self.catalog = Catalog(tools={})


class Servers:
    """Made with a toolbox; starts nothing by itself."""

    def __init__(
        self, host: Host, bench: Bench, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._host = host
        self._bench = bench
        self._environment = environment
        self._settings = bench.means.mcp
        self._servers: dict[str, _Server] = {}
        self._failed: dict[str, str] = {}

    async def offered(self) -> tuple[Offered, ...]:
        """The tools of all servers. One that cannot be had is told once and left out."""
        names = [name for name in self._settings if name not in self._failed]
        found = await asyncio.gather(*map(self._catalog_if_any, names))
        return tuple(tool for each in found for tool in each.tools.values())

    async def ready(self, name: str, args: dict[str, Any]) -> Work:
        """The work of a call; raises `ToolRefused`."""
        tool = await self._tool(name)

        async def perform(call: Call) -> Done:
            # Before the call is sent: if we are killed now, nobody takes the approval for unused.
            await call.acted()
            return await self._performed(call, tool, args)

        request = Request(tool=name, workspace=self._bench.workspace, args=args)
        prompt = f"Call {visible(tool.tool)} of {tool.server}?"
        return Work(request=request, prompt=prompt, perform=perform)

    async def close(self) -> None:
        """End every server; safe to call again."""
        servers, self._servers = list(self._servers.values()), {}
        await asyncio.gather(*(each.connection.close() for each in servers))

    def knows(self, name: str) -> bool:
        """Whether a tool's name is that of a server that is configured."""
        return server_of(name) in self._settings

    async def _tool(self, name: str) -> Offered:
        server = server_of(name) or ""
        if server not in self._settings:
            raise refusal("unknown_tool", f"no server {server!r} is configured")
        try:
            known = (await self._catalog(server)).tools
        except ToolRefused:
            known = self._known(server)
            if name not in known:
                raise
        if name not in known:
            raise refusal("unknown_tool", f"{server} offers no {name}")
        return known[name]

    def _known(self, server: str) -> dict[str, Offered]:
        found = self._servers.get(server)
        return {} if found is None else found.catalog.tools

    async def _catalog_if_any(self, name: str) -> Catalog:
        try:
            return await self._catalog(name)
        except ToolRefused as error:
            self._failed[name] = error.category
            said = {"code": error.category, "severity": "warning", "message": str(error)}
            if error.hint is not None:
                said["recoveryHint"] = error.hint
            self._emit("runtime.warning", said)
            return Catalog(tools={})

    async def _catalog(self, name: str) -> Catalog:
        """What a server offers; asked for again only where that may have changed."""
        server = await self._server(name)
        if server.connection.stale:
            listed = await server.connection.tools()
            self._learn(server, catalog(name, server.way.settings, listed))
        return server.catalog

    def _learn(self, server: _Server, found: Catalog) -> None:
        self._failed.pop(server.way.name, None)
        if found == server.catalog:
            return
        server.catalog = found
        names = list(found.tools)
        message = f"{server.way.name} offers {len(names)} tool{'s' if len(names) != 1 else ''}"
        said = {"source": f"mcp:{server.way.name}", "tools": names, "message": message}
        self._emit("tool.catalog.resolved", said)
        for remark in found.remarks:
            server.way.warn("mcp_tool_left_out", remark)

    async def _server(self, name: str) -> _Server:
        if name in self._servers:
            return self._servers[name]
        if not is_installed():
            message = f"the server {name} needs the module mcp, which is not here; "
            raise refusal("missing_extra", f"{message}install 'factwire[{EXTRA}]'")
        module = await asyncio.to_thread(import_module, _CONNECTION)
        connect = cast("type[Connection]", module.Connection)
        way = Way(name, self._settings[name], self._host, self._bench.means, self._environment)
        # Another call may have made it while this one waited.
        return self._servers.setdefault(name, _Server(way, connect(way, self._asked)))

    async def _performed(self, call: Call, tool: Offered, args: dict[str, Any]) -> Done:
        server = await self._server(tool.server)
        if not is_wanted(server.way.settings, tool.tool):
            raise refusal("unknown_tool", f"{tool.server} offers no {tool.name}")
        result = await self._bench.unless_stopped(server.connection.call(call, tool.tool, args))
        if result is None:
            raise ToolRefused("cancelled", "the call was told to stop")
        return await Contents(call, tool.server, server.way.veil).done(result)

    async def _asked(self, question: Question, call: Call) -> Decision | None:
        """What a person says; None where the turn is told to stop first."""
        means = self._bench.means
        asking = asked(question, call, self._bench.workspace, means.approval_seconds)
        decision = await self._bench.unless_stopped(self._host.ask(asking))
        if decision is not None and decision.decided_by is not None:
            await self._host.applied(decision)
        return decision

    def _emit(self, event_class: str, payload: dict[str, Any]) -> None:
        self._host.emit(self._host.mint.fact(self._host.scope, event_class, payload))
