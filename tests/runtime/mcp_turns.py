"""Turns that use tools of MCP servers, and the servers to use."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

from factwire.facts import Fact
from factwire.runtime import Runtime, StartTurn
from factwire.runtime.configuration import McpServer
from factwire.runtime.policy import Policy
from factwire.runtime.toolbox import Toolbox, ToolOutcome
from tests.runtime.agents import Agent, decide_shown, facts_of, make_fact, open_action, wait_for_end
from tests.runtime.programs import PYTHON
from tests.runtime.toolboxes import Kept, Used, assert_sound

HERE = Path(__file__).parent
READABLE = (*PYTHON, str(HERE))
"""What the sandbox of a server shows of this machine, wherever the tests lie."""

FREELY = Policy.of("default", allow=["mcp__*"])
"""Tools of servers are allowed; whoever tests the asking says otherwise."""

Call = tuple[str, dict[str, Any]]
Step = Callable[[Toolbox], Awaitable[Any]]


def raw(how: str = "plain", **settings: Any) -> McpServer:
    """A server that misbehaves in a way of `mcp_raw_server`."""
    program = (sys.executable, "-I", "-S", str(HERE / "mcp_raw_server.py"), how)
    return McpServer(command=program, readable=READABLE, **settings)


def library(**settings: Any) -> McpServer:
    """The server of `mcp_library_server`, as a program."""
    program = (sys.executable, "-P", str(HERE / "mcp_library_server.py"))
    return McpServer(command=program, readable=READABLE, **settings)


@asynccontextmanager
async def serve_http(server: MCPServer, port: int = 0) -> AsyncGenerator[str]:
    """A server by HTTP on loopback; the address is its URL."""
    app = server.streamable_http_app()
    config = uvicorn.Config(
        app, port=port, log_level="critical", lifespan="on", ws="none", timeout_graceful_shutdown=0
    )
    web = _Web(config)
    task = asyncio.create_task(web.serve())
    try:
        async with asyncio.timeout(60):
            await web.ready.wait()
        port = web.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        web.should_exit = True
        await task


class _Web(uvicorn.Server):
    """Says when it can be asked."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def make_kept(folder: Path, policy: Policy = FREELY, **servers: McpServer) -> Kept:
    return Kept(folder, policy, mcp=servers)


async def turn(
    means: Kept,
    *steps: Call | Step,
    meanwhile: Callable[[Runtime], Awaitable[Any]] | None = None,
) -> Used:
    """A turn that calls tools, or does what steps do; its facts are sound."""
    outcomes: list[ToolOutcome] = []

    async def script(start: StartTurn) -> AsyncIterator[Fact]:
        async with Toolbox(start.host) as toolbox:
            for step in steps:
                done = await (step(toolbox) if callable(step) else toolbox.call(*step))
                if isinstance(done, ToolOutcome):
                    outcomes.append(done)
        yield make_fact(start.host, "turn.completed")

    async with means.run_agents({"agent": Agent(script)}) as runtime:
        await runtime.submit("thread", "agent", "go", turn_id="turn")
        if meanwhile is not None:
            await meanwhile(runtime)
        assert await wait_for_end(runtime, "turn") == "completed"
        used = Used(outcomes, await facts_of(runtime), await runtime.state("thread"))
    assert_sound(used.facts)
    return used


def answer_with(*decisions: str, **how: Any) -> Callable[[Runtime], Awaitable[None]]:
    """A person who decides what is asked, one after the other."""

    async def meanwhile(runtime: Runtime) -> None:
        for decision in decisions:
            action = await open_action(runtime)
            fields = how if decision == "answer" else {}
            await decide_shown(runtime, "thread", action, decision, by="lena", **fields)

    return meanwhile
