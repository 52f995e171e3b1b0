"""The `Controls` of a command: those of an Edge, else of this machine.

On this machine the runtimes that run are asked by their control channel. What none of them knows
is written into the journal, and the turn goes on from it when somebody resumes it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from factwire.cli.command_context import CommandContext, load_context
from factwire.cli.local_runtime import open_without_agents
from factwire.cli.targets import EdgeTarget, edge_client
from factwire.cli.terminal import CliError, terminal_safe
from factwire.journal import JournalBusy
from factwire.runtime import Runtime
from factwire.runtime.control import (
    CancelReply,
    CancelRequest,
    CardReply,
    CardRequest,
    ControlError,
    ControlRefusal,
    ControlReply,
    Controls,
    DecideReply,
    DecideRequest,
    NobodyRunning,
    QueueReply,
    QueueRequest,
    RulesReply,
    RulesRequest,
    RuntimeControls,
    SocketControls,
    StatusReply,
    SteerReply,
    SteerRequest,
    terminal_person,
)
from factwire.runtime.recovery import find_abandoned_turn

_Reply = TypeVar("_Reply")


class CommandControls(Controls, Protocol):
    """`Controls` that also know what a person has to do next."""

    def is_abandoned(self, reply: ControlReply) -> bool:
        """Whether a decision was only written down, because nobody runs its turn."""
        ...


@asynccontextmanager
async def choose_controls(
    edge: EdgeTarget | None, journal: str | None, workspace: Path | None
) -> AsyncGenerator[CommandControls]:
    """The controls that a command's options name; that nobody answers ends the command."""
    try:
        if edge is not None:
            async with edge_client(edge) as client:
                from factwire.cli.edge_controls import build_controls

                yield build_controls(client)
        else:
            context = await asyncio.to_thread(load_context, journal=journal, workspace=workspace)
            running = SocketControls(context.configuration.data)
            yield LocalControls(running, OfflineControls(context))
    except ControlError as error:
        raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


class OfflineControls:
    """`Controls` of a journal that nobody runs: what is asked for is only written down."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._abandoned: set[str] = set()

    def _controls_of(self, runtime: Runtime) -> RuntimeControls:
        return RuntimeControls(runtime, by=terminal_person(self._context.configuration.user))

    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal:
        async with open_without_agents(self._context) as runtime:
            reply = await self._controls_of(runtime).decide(request)
            if isinstance(reply, DecideReply):
                thread = await runtime.thread(reply.thread_id)
                if find_abandoned_turn(thread) is not None:
                    self._abandoned.add(reply.action_id)
            return reply

    async def card(self, request: CardRequest) -> CardReply | ControlRefusal:
        async with open_without_agents(self._context) as runtime:
            return await self._controls_of(runtime).card(request)

    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal:
        async with open_without_agents(self._context) as runtime:
            return await self._controls_of(runtime).cancel(request)

    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal:
        """Nobody is there who could hear it."""
        message = (
            f"no turn is running on thread {request.thread_id}; start the next one with "
            "factwire resume"
        )
        return ControlRefusal(code="turn_not_active", message=message)

    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal:
        async with open_without_agents(self._context) as runtime:
            return await self._controls_of(runtime).queue(request)

    async def rules(self, request: RulesRequest) -> RulesReply | ControlRefusal:
        async with open_without_agents(self._context) as runtime:
            return await self._controls_of(runtime).rules(request)

    async def status(self) -> tuple[StatusReply, ...]:
        return ()

    def is_abandoned(self, reply: ControlReply) -> bool:
        return isinstance(reply, DecideReply) and reply.action_id in self._abandoned


class LocalControls:
    """`Controls` of this machine: of whoever runs, and of the journal for what they do not know."""

    def __init__(self, running: Controls, offline: OfflineControls) -> None:
        self._running = running
        self._offline = offline

    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal:
        return await self._ask(lambda controls: controls.decide(request))

    async def card(self, request: CardRequest) -> CardReply | ControlRefusal:
        return await self._ask(lambda controls: controls.card(request))

    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal:
        return await self._ask(lambda controls: controls.cancel(request))

    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal:
        try:
            return await self._running.steer(request)
        except NobodyRunning:
            return await self._offline.steer(request)

    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal:
        return await self._ask(lambda controls: controls.queue(request))

    async def rules(self, request: RulesRequest) -> RulesReply | ControlRefusal:
        return await self._ask(lambda controls: controls.rules(request))

    async def status(self) -> tuple[StatusReply, ...]:
        return await self._running.status()

    def is_abandoned(self, reply: ControlReply) -> bool:
        return self._offline.is_abandoned(reply)

    async def _ask(
        self, ask: Callable[[Controls], Awaitable[_Reply | ControlRefusal]]
    ) -> _Reply | ControlRefusal:
        refusal: ControlRefusal | None = None
        try:
            reply = await ask(self._running)
            if not isinstance(reply, ControlRefusal) or not reply.code.startswith("unknown_"):
                return reply
            refusal = reply
        except NobodyRunning:
            pass
        try:
            return await ask(self._offline)
        except CliError as error:
            # The one that holds the journal has said that it does not know.
            if refusal is not None and isinstance(error.__cause__, JournalBusy):
                return refusal
            raise
