"""Opening an Edge: journal, blobs, runtime, lists and streams, in the order in which they need each
other; closed the other way round.

Nothing is served before what a former run left behind has been brought to an end. A stop first
tells every reader what is durable, then leaves running turns where the next start finds them.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec

import msgspec
from opentelemetry.trace import TracerProvider

from factwire.edge.app import application
from factwire.edge.limits import STOP_RUN_SECONDS
from factwire.edge.logs import hide, logger
from factwire.edge.machine import Machine
from factwire.edge.observing import Observing, Tracing, follow_runs, recovered, unfinished
from factwire.edge.persistence import Persistence
from factwire.edge.previews import Previews
from factwire.edge.problems import Problem
from factwire.edge.records import KeptRecords, read_records
from factwire.edge.security import (
    Access,
    Floods,
    InsecureStart,
    Places,
    Tickets,
    Token,
    given_token,
    is_loopback,
    kept_token,
)
from factwire.edge.security.guard import Application
from factwire.edge.streams import Feed, Streams
from factwire.edge.work import previews, worktrees
from factwire.journal import Journal, JournalError, open_journal
from factwire.journal.blobs.disk import on_disk
from factwire.runtime import (
    Identity,
    LiveThread,
    Runtime,
    blobs_of,
    identity_of,
    means_of,
    settings_of,
)
from factwire.runtime.agents import Registered, register
from factwire.runtime.configuration import Configuration
from factwire.runtime.control import ControlServer, ControlUnavailable

_log = logger("factwire.edge")


class EdgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where an Edge listens and whom it answers; without a token, one is made and kept."""

    host: str = "127.0.0.1"
    port: int = 8787
    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class DataUnusable(Exception):
    """The folder that an Edge keeps its things in cannot be used."""

    code = "data_unusable"

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder}: {reason}; choose another --data, or mend this one")


class OpenEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An Edge that is ready to serve; `fresh_token` must be shown once, `kept_token` says that the
    data folder has it.
    """

    machine: Machine
    streams: Streams
    application: Application
    token: Token
    fresh_token: bool
    kept_token: bool


@asynccontextmanager
async def opened_edge(
    configuration: Configuration,
    workspace: Path,
    settings: EdgeSettings,
    *,
    tracer_provider: TracerProvider | None = None,
) -> AsyncGenerator[OpenEdge]:
    """An Edge on the journal of a configuration; spans go to `tracer_provider`, else to the one
    of the process.
    """
    data = Path(configuration.data)
    await on_disk(_made, data)
    trees = worktrees.worktree_root(data)
    if configuration.workspaces:
        allowed = (*configuration.workspaces, str(trees))
        configuration = msgspec.structs.replace(configuration, workspaces=allowed)
    places = Places.of(settings.host, settings.hosts, settings.origins)
    token, fresh = _token(settings, data)
    tracing = Tracing(tracer_provider)
    async with AsyncExitStack() as stack:
        stack.callback(hide(token.value))
        identity = identity_of(data)
        stack.callback(identity.release)
        journal = await stack.enter_async_context(open_journal(configuration.journal))
        registered = register(configuration)
        if configuration.agent is not None:
            registered.agent(configuration.agent)
        persistence = Persistence()
        runtime = _runtime(
            configuration, workspace, journal, registered, identity, on_failure=persistence.note
        )
        records, cursor = await read_records(journal, data)
        feed = Feed(journal, after=cursor)
        kept = KeptRecords(records, feed)
        stack.push_async_callback(_if_it_can, kept.save, data)
        stack.callback(follow_runs(tracing, records, feed))
        left = unfinished(records)
        await stack.enter_async_context(feed)
        await stack.enter_async_context(runtime)
        stack.push_async_callback(runtime.close, STOP_RUN_SECONDS)
        await _reachable(stack, runtime, configuration.data)
        machine = Machine(
            edge_id=_edge_id(identity),
            journal=journal,
            blobs=runtime.blobs,
            runtime=runtime,
            registered=registered,
            feed=feed,
            kept=kept,
            data=data,
            previews=Previews(settings.host, places),
            worktrees=trees,
            own_worktree=configuration.worktree,
        )
        await stack.enter_async_context(persistence.telling(machine))
        await previews.settle(machine)
        await worktrees.settle(machine)
        stack.push_async_callback(_if_it_can, previews.stop_all, machine)
        await _tell_recovery(machine, left)
        streams = Streams(feed, edge_id=machine.edge_id)
        access = Access(
            token=token,
            places=places,
            tickets=Tickets(),
            floods=Floods(),
        )
        observing = stack.enter_context(Observing(machine, streams, tracing))
        await _say(machine, "runner.online")
        stack.push_async_callback(_if_it_can, _say, machine, "runner.offline")
        yield OpenEdge(
            machine=machine,
            streams=streams,
            application=application(
                machine,
                streams,
                access,
                observing,
                default_agent=configuration.agent,
                bind=settings.host,
            ),
            token=token,
            fresh_token=fresh,
            kept_token=settings.token is None,
        )


def ensure_secure(settings: EdgeSettings) -> None:
    """Raise `InsecureStart` for settings with which nobody should serve."""
    if settings.token is not None:
        given_token(settings.token)
    elif not is_loopback(settings.host):
        raise InsecureStart(
            "token_required",
            f"{settings.host} can be reached by other machines; give a token with --token or "
            "FACTWIRE_TOKEN, or listen on 127.0.0.1",
        )


def _token(settings: EdgeSettings, data: Path) -> tuple[Token, bool]:
    """The token to ask for; raises `InsecureStart`."""
    ensure_secure(settings)
    if settings.token is not None:
        return given_token(settings.token), False
    found = kept_token(data)
    return found.token, found.made


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DataUnusable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataUnusable(folder, "it cannot be written to")


def _runtime(
    configuration: Configuration,
    workspace: Path,
    journal: Journal,
    registered: Registered,
    identity: Identity,
    *,
    on_failure: Callable[[LiveThread], None],
) -> Runtime:
    blobs = blobs_of(configuration)
    return Runtime(
        journal,
        blobs,
        registered.agents,
        workspace=workspace,
        workspaces=configuration.workspaces,
        means=means_of(configuration, blobs),
        settings=settings_of(configuration),
        identity=identity,
        exclusive=configuration.journal.startswith("sqlite:"),
        on_failure=on_failure,
    )


async def _reachable(stack: AsyncExitStack, runtime: Runtime, data: str) -> None:
    """Let commands in other terminals reach the runtime, where this machine can."""
    try:
        await stack.enter_async_context(ControlServer(runtime, data))
    except ControlUnavailable as error:
        _log.warning("control_unavailable", code=error.code, detail=str(error))


async def _tell_recovery(machine: Machine, left: frozenset[str]) -> None:
    """Say what became of what a former process left; a journal that is slow now is no reason not
    to serve.
    """
    with suppress(Problem):
        _log.info("edge_recovered", **recovered(await machine.settled(), left))


def _edge_id(identity: Identity) -> str:
    name, _, _ = (identity.instance or "").partition(":")
    return f"edge_{name.removeprefix('rt_')}"


async def _say(machine: Machine, event_class: str) -> None:
    payload: dict[str, Any] = {"runnerId": machine.edge_id}
    await machine.journal.append([machine.fact(event_class, payload, "")])


_Parting = ParamSpec("_Parting")


async def _if_it_can(
    part: Callable[_Parting, Awaitable[None]], *given: _Parting.args, **named: _Parting.kwargs
) -> None:
    """Do a part of stopping; a disk or a server that is gone keeps no Edge from its end, and the
    next start makes up for it.
    """
    try:
        await part(*given, **named)
    except (JournalError, OSError, Problem) as error:
        _log.warning("stop_incomplete", part=getattr(part, "__name__", ""), detail=str(error))
