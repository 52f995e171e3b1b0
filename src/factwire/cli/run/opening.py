"""Opening a runtime on the journal of a place, with the channel by which others reach it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NoReturn

from factwire.cli.failures import CliError
from factwire.cli.journal.access import writing
from factwire.cli.recording import note
from factwire.cli.run.place import Place
from factwire.cli.terminal_text import harmless
from factwire.journal import Journal, JournalBusy
from factwire.runtime import (
    Identity,
    Provider,
    Runtime,
    RuntimeRefused,
    blobs_of,
    identity_of,
    means_of,
    settings_of,
)
from factwire.runtime.agents import register
from factwire.runtime.control import ControlServer, ControlUnavailable

_PRIVATE = 0o700


@asynccontextmanager
async def opened(place: Place, *, create: bool = True) -> AsyncGenerator[Runtime]:
    """A runtime that others can reach. What was left behind in the journal is left to the caller,
    who knows which threads it is about; programs that were left running are ended.
    """
    async with journal_of(place, create=create) as journal:
        agents = register(place.configuration).agents
        runtime = runtime_on(journal, place, agents, identity=_identity(place))
        if runtime.means.processes is not None:
            await runtime.means.processes.reap()
        async with AsyncExitStack() as stack:
            stack.callback(runtime.identity.release)
            stack.push_async_exit(runtime)
            try:
                await stack.enter_async_context(ControlServer(runtime, place.configuration.data))
            except ControlUnavailable as error:
                note(f"{error.code}: {error}; approvals can be answered only here")
            yield runtime


@asynccontextmanager
async def resting(place: Place) -> AsyncGenerator[Runtime]:
    """A runtime that runs nothing: decisions and cancellations are only written down."""
    async with journal_of(place, create=False) as journal:
        identity = _identity(place)
        try:
            yield runtime_on(journal, place, {}, identity=identity)
        finally:
            identity.release()


def _identity(place: Place) -> Identity:
    try:
        return identity_of(place.configuration.data)
    except OSError as error:
        folder = harmless(place.configuration.data)
        raise CliError(
            f"data_folder_unusable: {folder} cannot be written to: {error.strerror}"
        ) from error


def runtime_on(
    journal: Journal, place: Place, agents: Mapping[str, Provider], *, identity: Identity
) -> Runtime:
    configuration = place.configuration
    blobs = blobs_of(place.configuration)
    return Runtime(
        journal,
        blobs,
        agents,
        workspace=place.workspace,
        means=means_of(configuration, blobs),
        settings=settings_of(configuration),
        workspaces=configuration.workspaces,
        identity=identity,
        exclusive=configuration.journal.startswith("sqlite:"),
    )


@asynccontextmanager
async def journal_of(place: Place, *, create: bool) -> AsyncGenerator[Journal]:
    """The journal of a place, for writing."""
    await asyncio.to_thread(_make_data_folder, place)
    try:
        async with writing(place.configuration.journal, create=create) as journal:
            yield journal
    except JournalBusy as error:
        raise CliError(
            f"{error.code}: {harmless(str(error))} to read it. To run beside it, give another "
            "--journal, or let factwire edge hold this one and use --edge"
        ) from error
    except RuntimeRefused as error:
        refused(error)


def refused(error: RuntimeRefused) -> NoReturn:
    """What a runtime refuses, in one line with its code."""
    raise CliError(f"{error.code}: {harmless(str(error))}") from error


def ensure_agent(runtime: Runtime, place: Place, name: str) -> None:
    """Raise what keeps an agent from being used."""
    if name not in runtime.agents:
        register(place.configuration).agent(name)


def _make_data_folder(place: Place) -> None:
    folder = Path(place.configuration.data)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    except OSError as error:
        raise CliError(
            f"data_folder_unusable: {harmless(str(folder))} cannot be made: {error.strerror}; "
            "set FACTWIRE_DATA to a folder that can"
        ) from error
