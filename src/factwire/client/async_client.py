"""`AsyncClient`: an Edge as an object whose methods are its addresses, for programs that await; and
`AsyncHubClient`, by which the Edges of a person's devices are such objects, too.

The signature of a method is that of the function in `edge_calls` it is made of. Streams come back
by themselves, exactly where they were cut; content is never held whole. `tools/blocking_client.py`
writes the blocking client from this module word by word, so whatever the two cannot have in common
is in `libraries`, under two names.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import wraps
from time import monotonic
from typing import Any, Final, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload
from weakref import WeakSet

import msgspec

from factwire.client import edge_calls, hub_calls
from factwire.client.edge_address import (
    Address,
    EdgeToken,
    find_token,
    read_address,
    require_secure,
)
from factwire.client.edge_calls import View
from factwire.client.edge_connection import (
    UNAUTHENTICATED,
    EdgeCall,
    EdgeConnection,
    EdgeResponse,
    EndWait,
    RetryBudget,
    lower_header_names,
)
from factwire.client.edge_streams import (
    FramePosition,
    StreamPosition,
    filter_names,
    position_in_events,
    position_in_facts,
    position_in_projection,
)
from factwire.client.errors import EdgeProblem, EdgeUnreachable, NotSignedIn, SessionsUnusable
from factwire.client.hub_sessions import HubSession, HubSessions, SignInTokens
from factwire.client.libraries import (
    AsyncLock,
    AsyncSocket,
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    connect_async,
    httpx,
)
from factwire.client.limits import (
    DEVICE_SECONDS,
    LOCK_PAUSE,
    LOCK_SECONDS,
    PIECE_BYTES,
    RECONNECT_SECONDS,
    RETRY_SECONDS,
)
from factwire.client.resources import (
    RUN_ENDS,
    TASK_ENDS,
    AgentTask,
    Device,
    DeviceDelivery,
    Event,
    HubApproval,
    HubFrame,
    Page,
    PlacedFact,
    Run,
    ThreadDelta,
    ThreadSnapshot,
)

__all__ = [
    "AsyncClient",
    "AsyncContent",
    "AsyncDeviceClient",
    "AsyncHubClient",
    "AsyncPages",
    "AsyncStream",
]

T = TypeVar("T")


async def lock_sessions(sessions: HubSessions) -> int:
    """Wait until no other program changes the sessions; raises `SessionsUnusable`."""
    until = monotonic() + LOCK_SECONDS
    while True:
        lock = sessions.try_lock()
        if lock is not None:
            return lock
        if monotonic() >= until:
            raise SessionsUnusable("another program holds the sessions for too long")
        await asyncio.sleep(LOCK_PAUSE)


class AsyncSender:
    """One pool of connections, and the token for them."""

    def __init__(self, connection: EdgeConnection) -> None:
        self.connection = connection
        self._http = httpx.AsyncClient(**connection.http_settings())
        self._session: HubSession | None = None
        self._renewing = AsyncLock()

    async def send(self, call: EdgeCall[T]) -> T:
        """What the Edge answers; raises `ClientError`."""
        response = await self._send_with_retries(call, stream=False)
        answer = EdgeResponse(
            response.status_code, lower_header_names(response.headers), response.content
        )
        return call.result(answer)

    async def open(self, call: EdgeCall[Any]) -> "httpx.Response":
        """An answer whose body is still to be read; raises `ClientError`."""
        response = await self._send_with_retries(call, stream=True)
        if not response.is_success:
            body = await response.aread()
            call.result(
                EdgeResponse(response.status_code, lower_header_names(response.headers), body)
            )
        return response

    async def close(self) -> None:
        await self._http.aclose()

    async def find_token(self, refused: EdgeToken | None = None) -> EdgeToken:
        """A token that is not the one that was refused. That of a session is renewed when it must
        be, by the program that finds it first; raises `NotSignedIn`.
        """
        if self.connection.token is not None:
            return self.connection.token
        async with self._renewing:
            session = self._session
            if session is None or not session.is_fresh or session.token == refused:
                session = await self._renew_session(refused)
                self._session = session
            return session.token

    async def _renew_session(self, refused: EdgeToken | None) -> HubSession:
        url, sessions = self.connection.address.url, self.connection.require_sessions()
        lock = await lock_sessions(sessions)
        try:
            session = sessions.find(url)
            # Another program may have renewed it meanwhile.
            if session.is_fresh and session.token != refused:
                return session
            session = (await self._exchange(session.refresh_token)).to_session(url)
            sessions.keep(url, session)
            return session
        finally:
            sessions.unlock(lock)

    async def _exchange(self, refresh_token: str) -> SignInTokens:
        call = hub_calls.renew_session(refresh_token)
        hub = Address(self.connection.address.url)
        response = await self._try_until_answered(call, hub, None, stream=False)
        answer = EdgeResponse(
            response.status_code, lower_header_names(response.headers), response.content
        )
        try:
            return call.result(answer)
        except EdgeProblem as problem:
            if problem.status == UNAUTHENTICATED:
                raise NotSignedIn(hub.url, problem.detail) from problem
            raise

    async def _send_with_retries(self, call: EdgeCall[Any], *, stream: bool) -> "httpx.Response":
        address = self.connection.address
        token = await self.find_token()
        response = await self._try_until_answered(call, address, token, stream=stream)
        if response.status_code != UNAUTHENTICATED or self.connection.sessions is None:
            return response
        await response.aclose()
        token = await self.find_token(refused=token)
        return await self._try_until_answered(call, address, token, stream=stream)

    async def _try_until_answered(
        self, call: EdgeCall[Any], address: Address, token: EdgeToken | None, *, stream: bool
    ) -> "httpx.Response":
        budget = RetryBudget(self.connection.retry_seconds)
        device_budget = RetryBudget(self.connection.device_seconds)
        url = address.http(call.path, call.query)
        headers = call.headers if token is None else {**call.headers, **token.headers}
        while True:
            request = self._http.build_request(call.method, url, content=call.body, headers=headers)
            try:
                response = await self._http.send(request, stream=stream)
            except httpx.RequestError as error:
                pause = self.connection.pause_after_failure(budget, call, error)
            else:
                requested = self.connection.pause_after_answer(
                    budget, device_budget, call, response
                )
                if requested is None:
                    return response
                await response.aclose()
                pause = requested
            await asyncio.sleep(pause)


class AsyncPages(Generic[T]):
    """`async for` goes through everything; `page` is the first page alone, with its cursor."""

    def __init__(self, sender: AsyncSender, call: EdgeCall[Page[T]]) -> None:
        self._sender = sender
        self._call = call

    async def __aiter__(self) -> AsyncIterator[T]:
        call: EdgeCall[Page[T]] | None = self._call
        while call is not None:
            page = await self._sender.send(call)
            for item in page.items:
                yield item
            call = None if page.next is None else call.after(page.next)

    async def page(self) -> Page[T]:
        return await self._sender.send(self._call)


class AsyncContent:
    """Opened by `async with`; `async for` brings its pieces."""

    def __init__(self, sender: AsyncSender, call: EdgeCall[Any]) -> None:
        self._sender = sender
        self._call = call
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> Self:
        self._response = await self._sender.open(self._call)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            await self._response.aclose()

    @property
    def length(self) -> int | None:
        """Bytes of the whole, where the Edge says so."""
        text = "" if self._response is None else self._response.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response is None:
            raise RuntimeError("open the content with 'async with' before reading it")
        try:
            async for piece in self._response.aiter_bytes(PIECE_BYTES):
                yield piece
        except httpx.RequestError as error:
            raise self._sender.connection.to_unreachable(error) from error

    async def read(self) -> bytes:
        """All of it at once, for what is known to be small."""
        return b"".join([piece async for piece in self])


APPROVAL_LISTS: Final[tuple[Literal["waiting", "all"], ...]] = ("waiting", "all")
_ABNORMAL: Final = 1006
FAILURES: Final = (OSError, TimeoutError, EOFError, InvalidHandshake, EdgeUnreachable)
"""What keeps a connection from being made."""


class _NoRedirectSocket(AsyncSocket):
    """Goes nowhere else, whatever the answer says: the token is for one place."""

    async def handshake(self, *args: Any, **kwargs: Any) -> None:
        try:
            await super().handshake(*args, **kwargs)
        except InvalidStatus as refused:
            refused.response.headers.pop("Location", None)
            raise


class AsyncStream(Generic[T]):
    """`async for` brings what comes, for as long as its reader stays.

    With `async with`, it stands before the block begins, so that nothing which the block sets off
    is missed by a stream that begins now; and its connection ends with the block.
    """

    def __init__(
        self,
        sender: AsyncSender,
        position: StreamPosition[T],
        streams: "WeakSet[AsyncStream[Any]]",
    ) -> None:
        self._sender = sender
        self._connection = connection = sender.connection
        self._position = position
        self._streams = streams
        self._socket: AsyncSocket | None = None
        self._budget = RetryBudget(connection.retry_seconds)
        self._closed = False
        self._first: T | None = None

    @property
    def cursor(self) -> str | None:
        """Where a new stream would go on behind everything that this one has brought."""
        return self._position.cursor

    async def __aenter__(self) -> Self:
        if self._socket is None:
            await self._connect()
        while self._position.is_awaiting_start and self._first is None:
            self._first = await self._next_message()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        item, self._first = self._first, None
        while item is None:
            if self._closed:
                raise StopAsyncIteration
            item = await self._next_message()
        return item

    async def aclose(self) -> None:
        """End the stream; whoever reads it hears of no more."""
        self._closed = True
        await self._disconnect()

    async def _next_message(self) -> T | None:
        try:
            socket = self._socket or await self._connect()
            message = await socket.recv()
            item = self._position.take(message)
        except ConnectionClosed as closed:
            await self._handle_cut(closed)
            return None
        except Exception:
            await self.aclose()
            raise
        self._budget.mark_served()
        return item

    async def _handle_cut(self, closed: ConnectionClosed) -> None:
        await self._disconnect()
        end = closed.rcvd
        try:
            self._position.handle_close(
                *((_ABNORMAL, "") if end is None else (end.code, end.reason))
            )
            if not self._closed:
                await asyncio.sleep(self._connection.pause_after_refusal(self._budget, closed))
        except Exception:
            self._closed = True
            raise

    async def _connect(self) -> AsyncSocket:
        token, refused = None, None
        while True:
            url = self._connection.socket_url(self._position.path, self._position.query)
            try:
                token = await self._sender.find_token(refused)
                settings = self._connection.socket_settings(token)
                socket = await connect_async(url, create_connection=_NoRedirectSocket, **settings)
            except FAILURES as error:
                if refused is None and self._connection.is_token_refused(error):
                    refused = token
                    continue
                await asyncio.sleep(self._connection.pause_after_refusal(self._budget, error))
            else:
                self._budget.mark_connected(self._connection.reconnect_seconds)
                # Before anybody knows the stream, so that whoever closes it closes the socket too.
                self._socket = socket
                self._streams.add(self)
                return socket

    async def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()


P = ParamSpec("P")


class AsyncHasSender(Protocol):
    """Whoever has a sender."""

    @property
    def sender(self) -> AsyncSender: ...


class AsyncCallMethod(Generic[P, T]):
    """Sends one call."""

    def __init__(self, make: Callable[P, EdgeCall[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, client: AsyncHasSender, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, client: AsyncHasSender | None, owner: type
    ) -> "Self | Callable[P, Coroutine[Any, Any, T]]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        async def send(*args: P.args, **kwargs: P.kwargs) -> T:
            return await sender.send(make(*args, **kwargs))

        return send


class AsyncListMethod(Generic[P, T]):
    """Goes through a list."""

    def __init__(self, make: Callable[P, EdgeCall[Page[T]]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: AsyncHasSender, owner: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(
        self, client: AsyncHasSender | None, owner: type
    ) -> "Self | Callable[P, AsyncPages[T]]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def pages(*args: P.args, **kwargs: P.kwargs) -> AsyncPages[T]:
            return AsyncPages(sender, make(*args, **kwargs))

        return pages


class AsyncContentMethod(Generic[P]):
    """Opens content."""

    def __init__(self, make: Callable[P, EdgeCall[None]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: AsyncHasSender, owner: type) -> Callable[P, AsyncContent]: ...
    def __get__(
        self, client: AsyncHasSender | None, owner: type
    ) -> "Self | Callable[P, AsyncContent]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def content(*args: P.args, **kwargs: P.kwargs) -> AsyncContent:
            return AsyncContent(sender, make(*args, **kwargs))

        return content


class AsyncServerClient:
    """Connections to one server, and the streams that are open there."""

    def __init__(self, connection: EdgeConnection) -> None:
        self.sender = AsyncSender(connection)
        self._connection = connection
        self._streams: WeakSet[AsyncStream[Any]] = WeakSet()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        return self._connection.address.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every stream and every connection."""
        for stream in tuple(self._streams):
            await stream.aclose()
        await self.sender.close()


class AsyncClient(AsyncServerClient):
    """A client for one Edge; close it, or use it with `async with`.

    The token is `token`, or the one that an Edge on this machine keeps in its folder `data`, or
    FACTWIRE_TOKEN. What is safe to send again is tried for `retry_seconds`; a stream that was cut
    comes back for `reconnect_seconds` before its reader hears of it.
    """

    health = AsyncCallMethod(edge_calls.health)
    agents = AsyncCallMethod(edge_calls.agents)
    create_ticket = AsyncCallMethod(edge_calls.create_ticket)
    tokens = AsyncListMethod(edge_calls.tokens)
    create_token = AsyncCallMethod(edge_calls.create_token)
    revoke_token = AsyncCallMethod(edge_calls.revoke_token)
    retention = AsyncCallMethod(edge_calls.retention)
    run_retention = AsyncCallMethod(edge_calls.run_retention)
    metrics = AsyncCallMethod(edge_calls.metrics)
    openapi = AsyncCallMethod(edge_calls.openapi)
    asyncapi = AsyncCallMethod(edge_calls.asyncapi)

    projects = AsyncListMethod(edge_calls.projects)
    create_project = AsyncCallMethod(edge_calls.create_project)
    project = AsyncCallMethod(edge_calls.project)
    change_project = AsyncCallMethod(edge_calls.change_project)
    delete_project = AsyncCallMethod(edge_calls.delete_project)
    conversations = AsyncListMethod(edge_calls.conversations)
    conversation = AsyncCallMethod(edge_calls.conversation)
    create_conversation = AsyncCallMethod(edge_calls.create_conversation)
    add_member = AsyncCallMethod(edge_calls.add_member)

    threads = AsyncListMethod(edge_calls.threads)
    create_thread = AsyncCallMethod(edge_calls.create_thread)
    thread = AsyncCallMethod(edge_calls.thread)
    change_thread = AsyncCallMethod(edge_calls.change_thread)
    delete_thread = AsyncCallMethod(edge_calls.delete_thread)
    archive_thread = AsyncCallMethod(edge_calls.archive_thread)
    fork_thread = AsyncCallMethod(edge_calls.fork_thread)
    items = AsyncListMethod(edge_calls.items)
    item = AsyncCallMethod(edge_calls.item)
    state = AsyncCallMethod(edge_calls.state)
    read_model = AsyncCallMethod(edge_calls.read_model)
    send_message = AsyncCallMethod(edge_calls.send_message)
    steer = AsyncCallMethod(edge_calls.steer)
    queue = AsyncCallMethod(edge_calls.queue)
    promote = AsyncCallMethod(edge_calls.promote)
    continue_queue = AsyncCallMethod(edge_calls.continue_queue)
    continue_queued = AsyncCallMethod(edge_calls.continue_queued)
    steer_queued = AsyncCallMethod(edge_calls.steer_queued)
    remove_queued = AsyncCallMethod(edge_calls.remove_queued)

    runs = AsyncListMethod(edge_calls.runs)
    start_run = AsyncCallMethod(edge_calls.start_run)
    run = AsyncCallMethod(edge_calls.run)
    cancel_run = AsyncCallMethod(edge_calls.cancel_run)
    retry_run = AsyncCallMethod(edge_calls.retry_run)
    merge_run = AsyncCallMethod(edge_calls.merge_run)
    log = AsyncCallMethod(edge_calls.log)
    processes = AsyncListMethod(edge_calls.processes)
    diff = AsyncCallMethod(edge_calls.diff)
    delete_worktree = AsyncCallMethod(edge_calls.delete_worktree)
    approvals = AsyncListMethod(edge_calls.approvals)
    approval = AsyncCallMethod(edge_calls.approval)
    decision_card = AsyncCallMethod(edge_calls.decision_card)
    standing_rule = AsyncCallMethod(edge_calls.standing_rule)
    standing_rules = AsyncListMethod(edge_calls.standing_rules)
    revoke_standing_rule = AsyncCallMethod(edge_calls.revoke_standing_rule)
    decide = AsyncCallMethod(edge_calls.decide)

    artifacts = AsyncListMethod(edge_calls.artifacts)
    artifact = AsyncCallMethod(edge_calls.artifact)
    artifact_content = AsyncContentMethod(edge_calls.artifact_content)
    blob = AsyncContentMethod(edge_calls.blob)
    upload = AsyncCallMethod(edge_calls.upload)
    previews = AsyncListMethod(edge_calls.previews)
    create_preview = AsyncCallMethod(edge_calls.create_preview)
    preview = AsyncCallMethod(edge_calls.preview)
    stop_preview = AsyncCallMethod(edge_calls.stop_preview)
    tasks = AsyncListMethod(edge_calls.tasks)
    task = AsyncCallMethod(edge_calls.task)
    evidence = AsyncListMethod(edge_calls.evidence)
    export_evidence = AsyncCallMethod(edge_calls.export_evidence)
    evidence_progress = AsyncCallMethod(edge_calls.evidence_progress)
    evidence_pack = AsyncCallMethod(edge_calls.evidence_pack)
    evidence_content = AsyncContentMethod(edge_calls.evidence_content)
    verify_evidence = AsyncCallMethod(edge_calls.verify_evidence)

    past_events = AsyncListMethod(edge_calls.past_events)
    run_events = AsyncListMethod(edge_calls.run_events)
    past_facts = AsyncListMethod(edge_calls.past_facts)
    post_facts = AsyncCallMethod(edge_calls.post_facts)

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        data: str | os.PathLike[str] | None = None,
        retry_seconds: float = RETRY_SECONDS,
        reconnect_seconds: float = RECONNECT_SECONDS,
        product: str = "factwire",
    ) -> None:
        super().__init__(
            EdgeConnection(
                address=read_address(url),
                token=find_token(token, data),
                retry_seconds=retry_seconds,
                reconnect_seconds=reconnect_seconds,
                product=product,
            )
        )

    async def wait(self, run: Run | str, *, seconds: float | None = None) -> Run:
        """A run once it has ended, whatever happens to the connection meanwhile.

        Raises `TimeoutError` after so many seconds, and `EdgeUnreachable` when the Edge was out
        of reach for `reconnect_seconds`.
        """
        run_id = run if isinstance(run, str) else run.run_id
        waiting = EndWait(f"run {run_id}", seconds, self._connection.reconnect_seconds)
        while True:
            wait = waiting.next_wait()
            row = None
            while row is None:
                try:
                    row = await self.sender.send(edge_calls.run(run_id, wait=wait))
                except EdgeUnreachable as error:
                    await asyncio.sleep(waiting.next_pause(error))
            if row.status in RUN_ENDS:
                return row

    def events(
        self,
        *,
        cursor: str | None = None,
        since: Literal["now"] | None = None,
        view: View = "runtime",
        types: Iterable[str] | None = None,
        project_id: str | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> AsyncStream[Event]:
        """Events as they come: after a cursor, from now on, or, with neither, from the first.

        A stream that cannot go on exactly raises `CursorLost`.
        """
        position = position_in_events(
            cursor=cursor,
            now=since == "now",
            view=view,
            types=filter_names(types),
            project_id=project_id,
            thread_id=thread_id,
            run_id=run_id,
        )
        return AsyncStream(self.sender, position, self._streams)

    def facts(
        self,
        *,
        cursor: str | None = None,
        since: Literal["now"] | None = None,
        classes: Iterable[str] | None = None,
        project_id: str | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> AsyncStream[PlacedFact]:
        """Facts as they come, each with its place; as for `events`."""
        position = position_in_facts(
            cursor=cursor,
            now=since == "now",
            classes=filter_names(classes),
            project_id=project_id,
            thread_id=thread_id,
            run_id=run_id,
        )
        return AsyncStream(self.sender, position, self._streams)

    def projection(
        self, thread_id: str, *, cursor: str | None = None
    ) -> AsyncStream[ThreadSnapshot | ThreadDelta]:
        """The state of a thread and then its changes; a `ThreadDocument` keeps both together.

        After a cut, or with a cursor, only changes come where that is exact, else a new state.
        """
        return AsyncStream(
            self.sender, position_in_projection(thread_id, cursor=cursor), self._streams
        )


class AsyncDeviceClient(AsyncClient):
    """A client for the Edge of a device, by way of a Hub: what the Edge has written is read at the
    Hub, also while the device is away, and commands are passed on to the device. What is to wait
    for a device that is away is left at its `hub`.
    """

    def __init__(self, connection: EdgeConnection, device: Device, hub: "AsyncHubClient") -> None:
        AsyncServerClient.__init__(self, connection)
        self.device = device
        self.hub = hub

    async def cancel_later(self, run_id: str, *, reason: str | None = None) -> Run | DeviceDelivery:
        """Ask a run to stop, also while the device is away: the run, or what waits for the device
        at the Hub, for an hour at most.
        """
        return await self.sender.send(hub_calls.cancel_later(run_id, reason=reason))


class AsyncHubClient(AsyncServerClient):
    """A client for one Hub; close it, or use it with `async with`.

    Who asks is whoever signed in with `factwire login`, whose session is kept in the folder `data`
    and renewed there when it must be, or the person of an access token. A device has
    `device_seconds` to answer what is passed on to it. Otherwise as for an Edge.
    """

    devices = AsyncListMethod(hub_calls.devices)
    tasks = AsyncListMethod(hub_calls.tasks)
    create_task = AsyncCallMethod(hub_calls.create_task)
    task = AsyncCallMethod(hub_calls.task)
    cancel_task = AsyncCallMethod(hub_calls.cancel_task)
    approvals = AsyncListMethod(hub_calls.approvals)
    approval = AsyncCallMethod(hub_calls.approval)
    decide = AsyncCallMethod(hub_calls.decide)

    teams = AsyncListMethod(hub_calls.teams)
    team = AsyncCallMethod(hub_calls.team)
    create_team = AsyncCallMethod(hub_calls.create_team)
    remove_team = AsyncCallMethod(hub_calls.remove_team)
    add_team_member = AsyncCallMethod(hub_calls.add_team_member)
    remove_team_member = AsyncCallMethod(hub_calls.remove_team_member)
    team_runs = AsyncListMethod(hub_calls.team_runs)
    start_team_run = AsyncCallMethod(hub_calls.start_team_run)
    team_run = AsyncCallMethod(hub_calls.team_run)
    team_run_state = AsyncCallMethod(hub_calls.team_run_state)
    decide_route = AsyncCallMethod(hub_calls.decide_route)
    add_run_member = AsyncCallMethod(hub_calls.add_run_member)
    reassign = AsyncCallMethod(hub_calls.reassign)
    merge_assignment = AsyncCallMethod(hub_calls.merge_assignment)
    pause_team_run = AsyncCallMethod(hub_calls.pause_team_run)
    resume_team_run = AsyncCallMethod(hub_calls.resume_team_run)
    take_over_team_run = AsyncCallMethod(hub_calls.take_over_team_run)
    hand_back_team_run = AsyncCallMethod(hub_calls.hand_back_team_run)
    cancel_team_run = AsyncCallMethod(hub_calls.cancel_team_run)
    team_evidence = AsyncContentMethod(hub_calls.team_evidence)

    def __init__(
        self,
        url: str,
        *,
        data: str | os.PathLike[str] | None = None,
        token: str | None = None,
        retry_seconds: float = RETRY_SECONDS,
        reconnect_seconds: float = RECONNECT_SECONDS,
        device_seconds: float = DEVICE_SECONDS,
        product: str = "factwire",
    ) -> None:
        super().__init__(
            EdgeConnection(
                address=require_secure(read_address(url)),
                token=find_token(token) if token is not None or data is None else None,
                retry_seconds=retry_seconds,
                reconnect_seconds=reconnect_seconds,
                product=product,
                sessions=HubSessions(data) if token is None and data is not None else None,
                server="Hub",
                device_seconds=device_seconds,
            )
        )

    async def find_device(self, device: str | None = None) -> Device:
        """A device by its id or its name, or the only one that there is; raises `DeviceUnknown` or
        `DeviceAmbiguous`.
        """
        return hub_calls.choose_device([each async for each in self.devices(limit=100)], device)

    async def edge(self, device: Device | str | None = None) -> AsyncDeviceClient:
        """A client for the Edge of a device, to be closed like this one."""
        found = device if isinstance(device, Device) else await self.find_device(device)
        address = Address(self.url, found.edge_id)
        connection = msgspec.structs.replace(self._connection, address=address)
        return AsyncDeviceClient(connection, found, self)

    async def find_approval(self, device: Device, request_id: str) -> HubApproval | None:
        """The approval of what the Edge of a device asks, by the id that the Edge has for it; None
        where the Hub has none.
        """
        # Most likely, it still waits.
        for status in APPROVAL_LISTS:
            async for approval in self.approvals(status=status, limit=100):
                if (approval.edge_id, approval.request_id) == (device.edge_id, request_id):
                    return approval
        return None

    async def wait(self, task: AgentTask | str, *, seconds: float | None = None) -> AgentTask:
        """A task once it has ended, whatever happens to the connection meanwhile; as for runs."""
        task_id = task if isinstance(task, str) else task.task_id
        waiting = EndWait(f"task {task_id}", seconds, self._connection.reconnect_seconds)
        while True:
            wait = waiting.next_wait()
            row = None
            while row is None:
                try:
                    row = await self.sender.send(hub_calls.task(task_id, wait=wait))
                except EdgeUnreachable as error:
                    await asyncio.sleep(waiting.next_pause(error))
            if row.status in TASK_ENDS:
                return row

    def events(self, *, cursor: str | None = None) -> AsyncStream[HubFrame]:
        """What the Hub tells the person, as it comes: after a cursor, or from now on.

        A stream that cannot go on exactly raises `CursorLost`.
        """
        return AsyncStream(self.sender, FramePosition(cursor=cursor), self._streams)
