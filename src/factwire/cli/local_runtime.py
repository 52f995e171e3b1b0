"""A runtime in this process, on the journal of a command, and the thread that a command watches.

Others reach the runtime by its control channel. A session draws, asks and interrupts; what that
does to a turn is decided by its `WatchedThread`: here, or on an Edge (`over_edge`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NoReturn, Protocol

from factwire.cli.command_context import CommandContext
from factwire.cli.targets import open_for_writing
from factwire.cli.terminal import CliError, print_note, terminal_safe
from factwire.facts import Fact, Person
from factwire.journal import Journal, JournalBusy
from factwire.journal.atomic_files import make_private_folder
from factwire.projection import Changes, ProjectionState
from factwire.runtime import (
    Identity,
    LiveThread,
    Provider,
    Runtime,
    RuntimeRefused,
    build_turn_resources,
    build_turn_settings,
    open_blob_store,
    open_identity,
)
from factwire.runtime.agents import register
from factwire.runtime.control import (
    CancelRequest,
    Controls,
    ControlServer,
    ControlUnavailable,
    RuntimeControls,
    terminal_person,
)


@asynccontextmanager
async def open_runtime(context: CommandContext, *, create: bool = True) -> AsyncGenerator[Runtime]:
    """A runtime that others can reach. What was left behind in the journal is left to the caller,
    who knows which threads it is about; programs that were left running are ended.
    """
    async with open_journal_of(context, create=create) as journal:
        agents = register(context.configuration).agents
        runtime = build_runtime(journal, context, agents, identity=_take_identity(context))
        if runtime.resources.processes is not None:
            await runtime.resources.processes.reap()
        async with AsyncExitStack() as stack:
            stack.callback(runtime.identity.release)
            stack.push_async_exit(runtime)
            try:
                by = terminal_person(context.configuration.user)
                await stack.enter_async_context(
                    ControlServer(runtime, context.configuration.data, by=by)
                )
            except ControlUnavailable as error:
                print_note(
                    f"{error.code}: {error}; approvals can only be answered in this terminal"
                )
            yield runtime


@asynccontextmanager
async def open_without_agents(context: CommandContext) -> AsyncGenerator[Runtime]:
    """A runtime that runs nothing: decisions and cancellations are only written down."""
    async with open_journal_of(context, create=False) as journal:
        identity = _take_identity(context)
        try:
            yield build_runtime(journal, context, {}, identity=identity)
        finally:
            identity.release()


def _take_identity(context: CommandContext) -> Identity:
    try:
        return open_identity(context.configuration.data)
    except OSError as error:
        folder = terminal_safe(context.configuration.data)
        raise CliError(
            f"data_folder_unusable: cannot write to {folder}: {error.strerror}"
        ) from error


def build_runtime(
    journal: Journal, context: CommandContext, agents: Mapping[str, Provider], *, identity: Identity
) -> Runtime:
    configuration = context.configuration
    blobs = open_blob_store(context.configuration)
    return Runtime(
        journal,
        blobs,
        agents,
        workspace=context.workspace,
        resources=build_turn_resources(configuration, blobs),
        settings=build_turn_settings(configuration),
        workspaces=configuration.workspaces,
        identity=identity,
        exclusive=configuration.journal.startswith("sqlite:"),
    )


@asynccontextmanager
async def open_journal_of(context: CommandContext, *, create: bool) -> AsyncGenerator[Journal]:
    """The journal of a place, for writing."""
    await asyncio.to_thread(_make_data_folder, context)
    try:
        async with open_for_writing(context.configuration.journal, create=create) as journal:
            yield journal
    except JournalBusy as error:
        raise CliError(
            f"{error.code}: {terminal_safe(str(error))} to read it. To run at the same time, "
            "use another --journal, or let factwire edge own this one and use --edge"
        ) from error
    except RuntimeRefused as error:
        raise_refusal(error)


def raise_refusal(error: RuntimeRefused) -> NoReturn:
    """What a runtime refuses, in one line with its code."""
    raise CliError(f"{error.code}: {terminal_safe(str(error))}") from error


def require_agent(runtime: Runtime, context: CommandContext, name: str) -> None:
    """Raise what keeps an agent from being used."""
    if name not in runtime.agents:
        register(context.configuration).agent(name)


def _make_data_folder(context: CommandContext) -> None:
    folder = Path(context.configuration.data)
    try:
        repair = make_private_folder(folder)
    except OSError as error:
        raise CliError(
            f"data_folder_unusable: {terminal_safe(str(folder))} cannot be used: "
            f"{error.strerror}; set FACTWIRE_DATA to a writable folder of your own"
        ) from error
    if repair is not None:
        print_note(repair)


FactListener = Callable[[Fact, Changes], None]
"""Hears of a fact that is durable, once the state has it."""


class WatchedThread(Protocol):
    """One thread, as it goes on."""

    @property
    def thread_id(self) -> str: ...

    @property
    def state(self) -> ProjectionState: ...

    @property
    def controls(self) -> Controls:
        """By which its actions are decided."""
        ...

    def watch(self, listener: FactListener) -> Callable[[], None]:
        """Tell `noted` of every fact, until what is returned is called."""
        ...

    async def wait_for_end(self, turn_id: str | None) -> str:
        """Wait for the end of a turn, or of whatever runs; how it ended."""
        ...

    async def cancel(self, turn_id: str | None) -> bool:
        """Stop a turn, or whatever runs; true where it never began and no fact tells its end."""
        ...


class LocalThread:
    """A thread of a runtime in this process."""

    def __init__(self, runtime: Runtime, thread: LiveThread, by: Person) -> None:
        self._thread = thread
        self.controls: Controls = RuntimeControls(runtime, by=by)

    @property
    def thread_id(self) -> str:
        return self._thread.thread_id

    @property
    def state(self) -> ProjectionState:
        return self._thread.projection.state

    def watch(self, listener: FactListener) -> Callable[[], None]:
        return self._thread.log.watch(listener)

    async def wait_for_end(self, turn_id: str | None) -> str:
        if turn_id is not None:
            return await self._thread.wait_settled(turn_id)
        await self._thread.wait_idle()
        return self.state.runtime.latest_turn_status or "completed"

    async def cancel(self, turn_id: str | None) -> bool:
        running = self._thread.turn
        target = turn_id or (running.turn_id if running is not None else None)
        if target is None:
            return False
        # What is refused has ended by itself meanwhile.
        await self.controls.cancel(CancelRequest(target=target, reason="interrupted"))
        return target == turn_id and self._thread.outcome(target) is None
