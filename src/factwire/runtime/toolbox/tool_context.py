"""Work: what a tool is about to do, known in full before anybody is asked about it.

A tool only looks while it makes its work ready. The request is what the policy judges, what a
person is shown, and what the answer is bound to; `perform` does that and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from factwire.runtime.policy import PolicyRequest
from factwire.runtime.processes import RunningProcess
from factwire.runtime.toolbox.tool_calls import ActiveCall, CallResult, ToolRefused
from factwire.runtime.toolbox.workspace_files import WorkspaceFiles
from factwire.runtime.turn_resources import TurnResources

Answer = TypeVar("Answer")


class PreparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """`reads` are paths whose content the request shows, so that a rule about reading counts."""

    request: PolicyRequest
    prompt: str
    perform: Callable[[ActiveCall], Awaitable[CallResult]]
    reads: tuple[str, ...] = ()


class ToolContext:
    """What the tools of one turn share: its files and means, and how to stop what runs."""

    def __init__(self, files: WorkspaceFiles, resources: TurnResources) -> None:
        self.files = files
        self.resources = resources
        self.stopping = asyncio.Event()
        self.running: set[RunningProcess] = set()
        self.warned = False

    @property
    def workspace(self) -> str:
        return str(self.files.root)

    async def unless_stopped(self, waiting: Coroutine[Any, Any, Answer]) -> Answer | None:
        """What comes of it; None where the turn is told to stop first, which cancels it."""
        answer = asyncio.ensure_future(waiting)
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({answer, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            answer.cancel()
            stopping.cancel()
            await asyncio.gather(answer, stopping, return_exceptions=True)

    async def stop(self) -> None:
        self.stopping.set()
        await asyncio.gather(*(process.stop("cancelled") for process in list(self.running)))


Prepare = Callable[[ToolContext, dict[str, Any]], Awaitable[PreparedCall]]


def text_argument(args: dict[str, Any], name: str, default: str | None = None) -> str:
    value = args.get(name, default)
    if not isinstance(value, str):
        raise ToolRefused("invalid_arguments", f"expected text for {name!r}, got {value!r}")
    return value


def count_argument(args: dict[str, Any], name: str, default: int) -> int:
    value = args.get(name, default)
    if type(value) is not int or value < 1:
        raise ToolRefused("invalid_arguments", f"expected a count for {name!r}, got {value!r}")
    return value


def check_names(args: dict[str, Any], *known: str) -> None:
    """Refuse arguments that would be ignored: whoever gave them expects that they count."""
    unknown = sorted(set(args) - set(known))
    if unknown:
        message = f"expected the arguments {', '.join(known)}, got {', '.join(unknown)}"
        raise ToolRefused("invalid_arguments", message)
