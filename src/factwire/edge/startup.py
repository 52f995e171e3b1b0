"""Starting an Edge: journal, blobs, runtime, lists and streams, in the order in which they need
each other; closed the other way round.

Nothing is served before what a former run left behind has been brought to an end. A run whose facts
the journal refused is closed as soon as the journal takes facts again, and a fact says that what it
did since its last one was not recorded. While the journal refuses facts, the Edge tries again and
again to write one, which then tells of the outage. A stop first tells every reader what is durable,
then leaves running turns where the next start finds them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec

import msgspec
from opentelemetry.trace import TracerProvider

from factwire import __version__
from factwire.edge.edge_app import build_application
from factwire.edge.edge_context import SERVER_NAME, EdgeContext, JournalWrites
from factwire.edge.edge_metrics import EdgeObserver, count_recovered, unfinished_runs
from factwire.edge.events import build_envelope
from factwire.edge.events.event_types import types_of_view
from factwire.edge.hub_access import HubAccess, HubFollower, HubTarget
from factwire.edge.limits import STOP_RUN_SECONDS
from factwire.edge.operations import (
    preview_operations,
    run_changes,
    thread_operations,
    worktree_operations,
)
from factwire.edge.operations.outside_intakes import OutsideIntakes
from factwire.edge.operations.retention_operations import EdgeRetention
from factwire.edge.preview_server import PreviewRegistry
from factwire.edge.records import RecordStore, read_records
from factwire.edge.run_spans import follow_runs
from factwire.facts.delta_redaction import compile_openings
from factwire.journal import Journal, JournalError, open_journal
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.runtime import (
    Identity,
    LiveThread,
    Runtime,
    RuntimeRefused,
    build_turn_resources,
    build_turn_settings,
    open_blob_store,
    open_identity,
)
from factwire.runtime.agents import AgentRegistry, register
from factwire.runtime.configuration import Configuration
from factwire.runtime.control import (
    ControlServer,
    ControlUnavailable,
    terminal_person,
    user_name,
)
from factwire.serving.access_control import (
    AccessLimiter,
    AccessToken,
    HostPolicy,
    InsecureStart,
    Tickets,
    TokenStore,
    check_token,
    is_loopback,
    load_token,
)
from factwire.serving.asgi import Application, Problem, new_trace_id
from factwire.serving.envelopes import Scope
from factwire.serving.guard import Access
from factwire.serving.http_server import (
    DataUnusable,
    HttpServer,
    build_server_config,
    ensure_data_folder,
    open_listening_socket,
    serve_until_stopped,
)
from factwire.serving.limits import RETRY_SECONDS, STOP_SECONDS
from factwire.serving.logs import hide_secret, logger
from factwire.serving.request_observing import Tracing
from factwire.serving.streams import FeedStopped, JournalFeed, Streams

PERSISTENCE_ERROR_CLASS: Final = "run.persistence_error"
TOKEN_FILE: Final = "edge-token"  # noqa: S105 - a name, not a token
TOKENS_FILE: Final = "edge-tokens"
TICKETS_FILE: Final = "edge-tickets"

_log: Final = logger("factwire.edge")


class UnsettledThread(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread is owed: to be read again and, where a run was under way, a fact about it."""

    thread_id: str
    run_id: str | None
    error: str


class PersistenceFailures:
    """Hears from a runtime of threads that failed, and settles them."""

    def __init__(self, writes: JournalWrites | None = None) -> None:
        self.writes = writes or JournalWrites()
        self._unsettled: deque[UnsettledThread] = deque()
        self._came = asyncio.Event()
        self._pause = 0.0

    @property
    def unsettled_threads(self) -> tuple[UnsettledThread, ...]:
        """What could not be told yet."""
        return tuple(self._unsettled)

    def record_failure(self, thread: LiveThread) -> None:
        """Take in a thread that failed; one that failed of anything else is none of ours."""
        if not thread.log.has_failed:
            return
        self.writes.record_refusal(thread.failure)
        owed = UnsettledThread(
            thread_id=thread.thread_id,
            run_id=thread.projection.state.runtime.active_run_id,
            error=_describe_failure(thread.failure),
        )
        known = {(each.thread_id, each.run_id) for each in self._unsettled}
        if (owed.thread_id, owed.run_id) not in known:
            _log.warning("facts_refused", thread_id=owed.thread_id, detail=owed.error)
            self._unsettled.append(owed)
        self._came.set()

    @asynccontextmanager
    async def settle_failures(self, edge: EdgeContext) -> AsyncGenerator[None]:
        """Settle what is owed for as long as the block lasts."""
        tasks = (
            asyncio.create_task(self._settle(edge), name="factwire-persistence"),
            asyncio.create_task(self._probe(edge), name="factwire-journal-probe"),
        )
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe(self, edge: EdgeContext) -> None:
        """After a refused write, write a fact about the outage as soon as the journal takes it."""
        while True:
            await self.writes.refused.wait()
            message = f"the journal refused facts: {self.writes.refusal}"
            payload = {"code": "journal_recovered", "message": message}
            fact, pause = edge.build_fact("runtime.warning", payload, new_trace_id()), 0.0
            while self.writes.refusal is not None:
                try:
                    await edge.journal.append([fact])
                except JournalError as error:
                    self.writes.record_refusal(error)
                    pause = min(RETRY_SECONDS, 2 * pause or RETRY_SECONDS / 32)
                    # Whatever somebody else could write shows that there is no need to wait.
                    with suppress(TimeoutError, FeedStopped):
                        async with asyncio.timeout(pause):
                            await edge.feed.wait_for(edge.feed.cursor.seq + 1)
                else:
                    self.writes.record_success()

    async def _settle(self, edge: EdgeContext) -> None:
        while True:
            await self._came.wait()
            try:
                await self._settle_first(edge, self._unsettled[0])
            except JournalError:
                self._pause = min(RETRY_SECONDS, 2 * self._pause or RETRY_SECONDS / 32)
                await asyncio.sleep(self._pause)
                continue
            except (RuntimeRefused, Problem) as error:
                _log.warning("facts_refused_untold", code=error.code, detail=str(error))
            self._pause = 0.0
            self._unsettled.popleft()
            if not self._unsettled:
                self._came.clear()

    async def _settle_first(self, edge: EdgeContext, owed: UnsettledThread) -> None:
        await edge.runtime.current(owed.thread_id)
        if owed.run_id is None:
            return
        payload: dict[str, Any] = {"runId": owed.run_id, "error": owed.error}
        await edge.write(
            owed.thread_id,
            (PERSISTENCE_ERROR_CLASS, payload),
            trace_id=new_trace_id(),
            run_id=owed.run_id,
        )


def _describe_failure(failure: Exception | None) -> str:
    code = getattr(failure, "code", None) or type(failure).__name__
    return f"{code}: {failure}"


class EdgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where an Edge listens and whom it answers; without a token, one is made and kept."""

    host: str = "127.0.0.1"
    port: int = 8787
    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    untrusted_project: str | None = None
    """Which project's settings were ignored, in words; shown to whoever has the token."""
    hub: HubTarget | None = None
    """The Hub of this Edge; without one, that of the file `hub.json` in the data folder."""


class OpenEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An Edge that is ready to serve; `fresh_token` must be shown once, `kept_token` says that the
    data folder has it.
    """

    context: EdgeContext
    streams: Streams
    application: Application
    token: AccessToken
    fresh_token: bool
    kept_token: bool


@asynccontextmanager
async def open_edge(
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
    await run_disk_work(ensure_data_folder, data)
    trees = worktree_operations.worktree_root(data)
    if configuration.workspaces:
        allowed = (*configuration.workspaces, str(trees))
        configuration = msgspec.structs.replace(configuration, workspaces=allowed)
    host_policy = HostPolicy.build(settings.host, settings.hosts, settings.origins)
    token, fresh = _choose_token(settings, data)
    tokens = TokenStore(data / TOKENS_FILE)
    tracing = Tracing("factwire.edge", tracer_provider)
    async with AsyncExitStack() as stack:
        stack.callback(hide_secret(token.value))
        stack.push_async_callback(_try_to_stop, _close_tokens, tokens)
        identity = await run_disk_work(_open_identity, data)
        stack.callback(identity.release)
        journal = await stack.enter_async_context(open_journal(configuration.journal))
        registered = register(configuration)
        if configuration.agent is not None:
            registered.agent(configuration.agent)
        persistence = PersistenceFailures()
        records, cursor = await read_records(journal, data)
        runtime = _build_runtime(
            configuration,
            workspace,
            journal,
            registered,
            identity,
            on_failure=persistence.record_failure,
            describe_thread=partial(thread_operations.describe_thread, records),
        )
        feed = JournalFeed(journal, after=cursor)
        kept = RecordStore(records, feed)
        stack.push_async_callback(_try_to_stop, kept.close)
        stack.callback(follow_runs(tracing, records, feed))
        left = unfinished_runs(records)
        await stack.enter_async_context(feed)
        # What is pushed here is done after everything else that writes has stopped.
        parting = await stack.enter_async_context(AsyncExitStack())
        await stack.enter_async_context(runtime)
        stack.push_async_callback(runtime.close, STOP_RUN_SECONDS)
        await _serve_control(stack, runtime, configuration)
        intakes = OutsideIntakes(journal, data)
        stack.push_async_callback(intakes.close)
        edge = EdgeContext(
            edge_id=edge_id_of(identity),
            journal=journal,
            blobs=runtime.blobs,
            runtime=runtime,
            registered=registered,
            feed=feed,
            record_store=kept,
            data=data,
            previews=PreviewRegistry(settings.host, host_policy),
            worktrees=trees,
            intakes=intakes,
            own_worktree=configuration.worktree,
            writes=persistence.writes,
            user=user_name(configuration.user),
            untrusted_project=settings.untrusted_project,
        )
        await stack.enter_async_context(persistence.settle_failures(edge))
        await _settle_folders(edge)
        stack.push_async_callback(_try_to_stop, preview_operations.stop_all_previews, edge)
        await _log_recovery(edge, left)
        streams = Streams(
            feed,
            server_name=SERVER_NAME,
            log_name="factwire.edge.streams",
            scope=Scope(edge_id=edge.edge_id),
            envelope_of=partial(build_envelope, edge_id=edge.edge_id, place_of=edge.place_of),
            place_of=edge.place_of,
            threads_of=edge.threads_of,
            types_of=types_of_view,
        )
        access = _open_access(stack, data, token, tokens, host_policy)
        observer = stack.enter_context(EdgeObserver(edge, streams, tracing))
        await _write_runner_fact(edge, "runner.online")
        parting.push_async_callback(_try_to_stop, _write_runner_fact, edge, "runner.offline")
        application: asyncio.Future[Application] = asyncio.get_running_loop().create_future()
        await _serve_hub(stack, edge, application, settings.hub)
        retention = await _start_retention(stack, edge, streams, configuration)
        application.set_result(
            build_application(
                edge,
                streams,
                access,
                observer,
                retention,
                default_agent=configuration.agent,
                bind=settings.host,
            )
        )
        yield OpenEdge(
            context=edge,
            streams=streams,
            application=application.result(),
            token=token,
            fresh_token=fresh,
            kept_token=settings.token is None,
        )


Ready = Callable[[OpenEdge, str], None]
"""Called with the address once requests are answered."""


async def serve(
    configuration: Configuration, workspace: Path, settings: EdgeSettings, ready: Ready
) -> None:
    """Serve until told to stop; raises `InsecureStart`, `AddressUnusable` or a journal's error."""
    ensure_secure(settings)
    with open_listening_socket(settings.host, settings.port) as listening:
        async with open_edge(configuration, workspace, settings) as edge:

            def greet(address: str) -> None:
                _log.info(
                    "edge_started",
                    address=address,
                    edge_id=edge.context.edge_id,
                    version=__version__,
                    head=edge.context.feed.cursor.seq,
                )
                ready(edge, address)

            compile_openings()
            await serve_until_stopped(build_server(edge), listening, settings.host, greet)
    _log.info("edge_stopped")


def build_server(edge: OpenEdge) -> HttpServer:
    """The server of an Edge, which closes its streams first."""

    async def close_streams() -> None:
        _log.info("edge_stopping", streams=edge.streams.stats().readers)
        await edge.streams.close(STOP_SECONDS / 2)

    return HttpServer(build_server_config(edge.application), close_streams)


def _open_access(
    stack: AsyncExitStack,
    data: Path,
    token: AccessToken,
    tokens: TokenStore,
    host_policy: HostPolicy,
) -> Access:
    """Who may come in, with the tickets that a former process left."""
    access = Access(
        token=token,
        tokens=tokens,
        host_policy=host_policy,
        tickets=Tickets(),
        limiter=AccessLimiter(),
    )
    access.tickets.restore(data / TICKETS_FILE, token, tokens)
    stack.push_async_callback(_try_to_stop, _save_tickets, access, data / TICKETS_FILE)
    return access


async def _start_retention(
    stack: AsyncExitStack, edge: EdgeContext, streams: Streams, configuration: Configuration
) -> EdgeRetention:
    retention = EdgeRetention(edge, streams.readers.projections, configuration.retention)
    await stack.enter_async_context(retention.run_scheduled())
    return retention


async def _serve_hub(
    stack: AsyncExitStack,
    edge: EdgeContext,
    application: "asyncio.Future[Application]",
    target: HubTarget | None,
) -> None:
    """Do what the Hub of this Edge is there for; before retention begins, which waits for what the
    Hub has. Without a target, it is the Hub that was joined, at any time.
    """
    work = partial(_open_hub_work, edge, application)
    if target is None:
        await stack.enter_async_context(HubFollower(edge.data, work))
    else:
        stack.callback(hide_secret(target.token))
        await stack.enter_async_context(work(target))


@asynccontextmanager
async def _open_hub_work(
    edge: EdgeContext, application: "asyncio.Future[Application]", target: HubTarget
) -> AsyncGenerator[None]:
    """What an Edge does for its Hub for as long as the block lasts."""
    # Here, because an Edge without a Hub should not load it.
    from factwire.edge.hub_upload import HubUpload  # noqa: PLC0415
    from factwire.edge.link_work import link_to_hub  # noqa: PLC0415

    access = HubAccess(target, tuple(sorted(edge.registered.agents)))
    upload = HubUpload(edge, access)
    async with upload.run(), link_to_hub(edge, application, access, upload):
        yield


async def _close_tokens(tokens: TokenStore) -> None:
    await run_disk_work(tokens.close)


async def _save_tickets(access: Access, path: Path) -> None:
    await run_disk_work(access.tickets.save, path, access.token)


def ensure_secure(settings: EdgeSettings) -> None:
    """Raise `InsecureStart` for settings with which nobody should serve."""
    if settings.token is not None:
        check_token(settings.token)
    elif not is_loopback(settings.host):
        raise InsecureStart(
            "token_required",
            f"{settings.host} is reachable from other machines; set a token with --token or "
            "FACTWIRE_TOKEN, or listen on 127.0.0.1",
        )


def _choose_token(settings: EdgeSettings, data: Path) -> tuple[AccessToken, bool]:
    """The token to ask for; raises `InsecureStart`."""
    ensure_secure(settings)
    if settings.token is not None:
        return check_token(settings.token), False
    found = load_token(data, TOKEN_FILE)
    return found.token, found.made


def _open_identity(data: Path) -> Identity:
    try:
        return open_identity(data)
    except OSError as error:
        raise DataUnusable(data, error.strerror or str(error)) from error


def _build_runtime(
    configuration: Configuration,
    workspace: Path,
    journal: Journal,
    registered: AgentRegistry,
    identity: Identity,
    *,
    on_failure: Callable[[LiveThread], None],
    describe_thread: Callable[[str], dict[str, Any]],
) -> Runtime:
    blobs = open_blob_store(configuration)
    resources = msgspec.structs.replace(
        build_turn_resources(configuration, blobs), describe_thread=describe_thread
    )
    return Runtime(
        journal,
        blobs,
        registered.agents,
        workspace=workspace,
        workspaces=configuration.workspaces,
        resources=resources,
        settings=build_turn_settings(configuration),
        identity=identity,
        exclusive=configuration.journal.startswith("sqlite:"),
        on_failure=on_failure,
    )


async def _settle_folders(edge: EdgeContext) -> None:
    """Bring previews and worktrees that a former process left to an end."""
    await preview_operations.settle_previews(edge)
    await worktree_operations.settle_worktrees(edge)
    await run_changes.settle_merges(edge)


async def _serve_control(
    stack: AsyncExitStack, runtime: Runtime, configuration: Configuration
) -> None:
    """Let commands in other terminals reach the runtime, where this machine can."""
    by = terminal_person(configuration.user)
    try:
        await stack.enter_async_context(ControlServer(runtime, configuration.data, by=by))
    except ControlUnavailable as error:
        _log.warning("control_unavailable", code=error.code, detail=str(error))


async def _log_recovery(edge: EdgeContext, left: frozenset[str]) -> None:
    """Say what became of what a former process left; a journal that is slow now is no reason not
    to serve.
    """
    with suppress(Problem):
        _log.info("edge_recovered", **count_recovered(await edge.wait_until_settled(), left))


def edge_id_of(identity: Identity) -> str:
    """The id of the Edge of a data folder."""
    name, _, _ = (identity.instance or "").partition(":")
    return f"edge_{name.removeprefix('rt_')}"


async def _write_runner_fact(edge: EdgeContext, event_class: str) -> None:
    payload: dict[str, Any] = {"runnerId": edge.edge_id}
    await edge.journal.append([edge.build_fact(event_class, payload, "")])


_Parting = ParamSpec("_Parting")


async def _try_to_stop(
    part: Callable[_Parting, Awaitable[None]], *args: _Parting.args, **named: _Parting.kwargs
) -> None:
    """Do a part of stopping; a disk or a server that is gone keeps no Edge from its end, and the
    next start makes up for it.
    """
    try:
        await part(*args, **named)
    except (JournalError, OSError, Problem) as error:
        _log.warning("stop_incomplete", part=getattr(part, "__name__", ""), detail=str(error))
