"""`Client`: an Edge as an object whose methods are its addresses, for programs that wait.

The asynchronous client has the same classes and methods in the same order, with `Async` before
their names. The signature of a method is that of the function in `edge_calls` it is made of.
Streams come back by themselves, exactly where they were cut; content is never held whole.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import wraps
from time import sleep
from typing import Any, Final, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload
from weakref import WeakSet

from factwire.client import edge_calls
from factwire.client.edge_address import find_token, read_address
from factwire.client.edge_calls import View
from factwire.client.edge_connection import (
    EdgeCall,
    EdgeConnection,
    EdgeResponse,
    RetryBudget,
    lower_header_names,
)
from factwire.client.edge_streams import (
    StreamPosition,
    filter_names,
    position_in_events,
    position_in_facts,
    position_in_projection,
)
from factwire.client.libraries import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    Socket,
    connect_sync,
    httpx,
)
from factwire.client.limits import PIECE_BYTES, RECONNECT_SECONDS, RETRY_SECONDS
from factwire.client.resources import Event, Page, PlacedFact, ThreadDelta, ThreadSnapshot

__all__ = ["Client", "Content", "Pages", "Stream"]

T = TypeVar("T")

_Send = Callable[["httpx.Request"], "httpx.Response"]


class Sender:
    """One pool of connections."""

    def __init__(self, connection: EdgeConnection) -> None:
        self.connection = connection
        self._http = httpx.Client(**connection.http_settings())

    def send(self, call: EdgeCall[T]) -> T:
        """What the Edge answers; raises `ClientError`."""
        response = self._send_with_retries(call, self._http.send)
        answer = EdgeResponse(
            response.status_code, lower_header_names(response.headers), response.content
        )
        return call.result(answer)

    def open(self, call: EdgeCall[Any]) -> "httpx.Response":
        """An answer whose body is still to be read; raises `ClientError`."""
        response = self._send_with_retries(
            call, lambda request: self._http.send(request, stream=True)
        )
        if not response.is_success:
            body = response.read()
            call.result(
                EdgeResponse(response.status_code, lower_header_names(response.headers), body)
            )
        return response

    def close(self) -> None:
        self._http.close()

    def _send_with_retries(self, call: EdgeCall[Any], send: _Send) -> "httpx.Response":
        budget = RetryBudget(self.connection.retry_seconds)
        url = self.connection.address.http(call.path, call.query)
        while True:
            request = self._http.build_request(
                call.method, url, content=call.body, headers=call.headers
            )
            try:
                response = send(request)
            except httpx.RequestError as error:
                pause = self.connection.pause_after_failure(budget, call, error)
            else:
                requested = self.connection.pause_after_answer(budget, call, response)
                if requested is None:
                    return response
                response.close()
                pause = requested
            sleep(pause)


class Pages(Generic[T]):
    """`for` goes through everything; `page` is the first page alone, with its cursor."""

    def __init__(self, sender: Sender, call: EdgeCall[Page[T]]) -> None:
        self._sender = sender
        self._call = call

    def __iter__(self) -> Iterator[T]:
        call: EdgeCall[Page[T]] | None = self._call
        while call is not None:
            page = self._sender.send(call)
            yield from page.items
            call = None if page.next is None else call.after(page.next)

    def page(self) -> Page[T]:
        return self._sender.send(self._call)


class Content:
    """Opened by `with`; `for` brings its pieces."""

    def __init__(self, sender: Sender, call: EdgeCall[Any]) -> None:
        self._sender = sender
        self._call = call
        self._response: httpx.Response | None = None

    def __enter__(self) -> Self:
        self._response = self._sender.open(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()

    @property
    def length(self) -> int | None:
        """Bytes of the whole, where the Edge says so."""
        text = "" if self._response is None else self._response.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    def __iter__(self) -> Iterator[bytes]:
        if self._response is None:
            raise RuntimeError("content is opened by 'with' before it is read")
        try:
            yield from self._response.iter_bytes(PIECE_BYTES)
        except httpx.RequestError as error:
            raise self._sender.connection.to_unreachable(error) from error

    def read(self) -> bytes:
        """All of it at once, for what is known to be small."""
        return b"".join(self)


_ABNORMAL: Final = 1006
FAILURES: Final = (OSError, TimeoutError, EOFError, InvalidHandshake)
"""What keeps a connection from being made."""


class _NoRedirectSocket(Socket):
    """Goes nowhere else, whatever the answer says: the token is for one place."""

    def handshake(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().handshake(*args, **kwargs)
        except InvalidStatus as refused:
            refused.response.headers.pop("Location", None)
            raise


class Stream(Generic[T]):
    """`for` brings what comes, for as long as its reader stays.

    With `with`, it stands before the block begins, so that nothing which the block sets off
    is missed by a stream that begins now; and its connection ends with the block.
    """

    def __init__(
        self,
        connection: EdgeConnection,
        position: StreamPosition[T],
        streams: "WeakSet[Stream[Any]]",
    ) -> None:
        self._connection = connection
        self._position = position
        self._streams = streams
        self._socket: Socket | None = None
        self._open = ExitStack()
        self._budget = RetryBudget(connection.retry_seconds)
        self._closed = False
        self._first: T | None = None

    @property
    def cursor(self) -> str | None:
        """Where a new stream would go on behind everything that this one has brought."""
        return self._position.cursor

    def __enter__(self) -> Self:
        self._socket = self._socket or self._connect()
        while self._position.is_awaiting_start and self._first is None:
            self._first = self._next_message()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        item, self._first = self._first, None
        while item is None:
            if self._closed:
                raise StopIteration
            item = self._next_message()
        return item

    def close(self) -> None:
        """End the stream; whoever reads it hears of no more."""
        self._closed = True
        self._disconnect()

    def _next_message(self) -> T | None:
        try:
            self._socket = self._socket or self._connect()
            message = self._socket.recv()
            item = self._position.take(message)
        except ConnectionClosed as closed:
            self._handle_cut(closed)
            return None
        except Exception:
            self.close()
            raise
        self._budget.mark_served()
        return item

    def _handle_cut(self, closed: ConnectionClosed) -> None:
        self._disconnect()
        end = closed.rcvd
        try:
            self._position.handle_close(
                *((_ABNORMAL, "") if end is None else (end.code, end.reason))
            )
            if not self._closed:
                sleep(self._connection.pause_after_refusal(self._budget, closed))
        except Exception:
            self._closed = True
            raise

    def _connect(self) -> Socket:
        while True:
            url = self._connection.socket_url(self._position.path, self._position.query)
            try:
                socket = connect_sync(
                    url, create_connection=_NoRedirectSocket, **self._connection.socket_settings()
                )
            except FAILURES as error:
                sleep(self._connection.pause_after_refusal(self._budget, error))
            else:
                self._budget.mark_connected(self._connection.reconnect_seconds)
                self._streams.add(self)
                self._open.enter_context(socket)
                return socket

    def _disconnect(self) -> None:
        self._socket = None
        self._open.close()


P = ParamSpec("P")


class HasSender(Protocol):
    """Whoever has a sender."""

    @property
    def sender(self) -> Sender: ...


class CallMethod(Generic[P, T]):
    """Gives one answer."""

    def __init__(self, make: Callable[P, EdgeCall[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: HasSender, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: HasSender | None, owner: type) -> "Self | Callable[P, T]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def send(*args: P.args, **kwargs: P.kwargs) -> T:
            return sender.send(make(*args, **kwargs))

        return send


class ListMethod(Generic[P, T]):
    """Goes through a list."""

    def __init__(self, make: Callable[P, EdgeCall[Page[T]]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: HasSender, owner: type) -> Callable[P, Pages[T]]: ...
    def __get__(self, client: HasSender | None, owner: type) -> "Self | Callable[P, Pages[T]]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def pages(*args: P.args, **kwargs: P.kwargs) -> Pages[T]:
            return Pages(sender, make(*args, **kwargs))

        return pages


class ContentMethod(Generic[P]):
    """Opens content."""

    def __init__(self, make: Callable[P, EdgeCall[None]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: HasSender, owner: type) -> Callable[P, Content]: ...
    def __get__(self, client: HasSender | None, owner: type) -> "Self | Callable[P, Content]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def content(*args: P.args, **kwargs: P.kwargs) -> Content:
            return Content(sender, make(*args, **kwargs))

        return content


class Client:
    """A client for one Edge; close it, or use it with `with`.

    The token is `token`, or the one that an Edge on this machine keeps in its folder `data`, or
    FACTWIRE_TOKEN. What is safe to send again is tried for `retry_seconds`; a stream that was cut
    comes back for `reconnect_seconds` before its reader hears of it.
    """

    health = CallMethod(edge_calls.health)
    agents = CallMethod(edge_calls.agents)
    create_ticket = CallMethod(edge_calls.create_ticket)
    metrics = CallMethod(edge_calls.metrics)
    openapi = CallMethod(edge_calls.openapi)
    asyncapi = CallMethod(edge_calls.asyncapi)

    projects = ListMethod(edge_calls.projects)
    create_project = CallMethod(edge_calls.create_project)
    project = CallMethod(edge_calls.project)
    change_project = CallMethod(edge_calls.change_project)
    delete_project = CallMethod(edge_calls.delete_project)
    conversations = ListMethod(edge_calls.conversations)
    create_conversation = CallMethod(edge_calls.create_conversation)
    add_member = CallMethod(edge_calls.add_member)

    threads = ListMethod(edge_calls.threads)
    create_thread = CallMethod(edge_calls.create_thread)
    thread = CallMethod(edge_calls.thread)
    change_thread = CallMethod(edge_calls.change_thread)
    delete_thread = CallMethod(edge_calls.delete_thread)
    archive_thread = CallMethod(edge_calls.archive_thread)
    fork_thread = CallMethod(edge_calls.fork_thread)
    items = ListMethod(edge_calls.items)
    state = CallMethod(edge_calls.state)
    read_model = CallMethod(edge_calls.read_model)
    send_message = CallMethod(edge_calls.send_message)
    steer = CallMethod(edge_calls.steer)
    queue = CallMethod(edge_calls.queue)
    promote = CallMethod(edge_calls.promote)
    steer_queued = CallMethod(edge_calls.steer_queued)
    remove_queued = CallMethod(edge_calls.remove_queued)

    runs = ListMethod(edge_calls.runs)
    start_run = CallMethod(edge_calls.start_run)
    run = CallMethod(edge_calls.run)
    cancel_run = CallMethod(edge_calls.cancel_run)
    retry_run = CallMethod(edge_calls.retry_run)
    log = CallMethod(edge_calls.log)
    diff = CallMethod(edge_calls.diff)
    delete_worktree = CallMethod(edge_calls.delete_worktree)
    approvals = ListMethod(edge_calls.approvals)
    standing_rule = CallMethod(edge_calls.standing_rule)
    decide = CallMethod(edge_calls.decide)

    artifacts = ListMethod(edge_calls.artifacts)
    artifact = CallMethod(edge_calls.artifact)
    artifact_content = ContentMethod(edge_calls.artifact_content)
    blob = ContentMethod(edge_calls.blob)
    upload = CallMethod(edge_calls.upload)
    previews = ListMethod(edge_calls.previews)
    create_preview = CallMethod(edge_calls.create_preview)
    preview = CallMethod(edge_calls.preview)
    stop_preview = CallMethod(edge_calls.stop_preview)
    tasks = ListMethod(edge_calls.tasks)
    task = CallMethod(edge_calls.task)
    evidence = ListMethod(edge_calls.evidence)
    export_evidence = CallMethod(edge_calls.export_evidence)
    evidence_progress = CallMethod(edge_calls.evidence_progress)
    evidence_pack = CallMethod(edge_calls.evidence_pack)
    evidence_content = ContentMethod(edge_calls.evidence_content)
    verify_evidence = CallMethod(edge_calls.verify_evidence)

    past_events = ListMethod(edge_calls.past_events)
    run_events = ListMethod(edge_calls.run_events)
    past_facts = ListMethod(edge_calls.past_facts)
    post_facts = CallMethod(edge_calls.post_facts)

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        data: str | os.PathLike[str] | None = None,
        retry_seconds: float = RETRY_SECONDS,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._connection = EdgeConnection(
            address=read_address(url),
            token=find_token(token, data),
            retry_seconds=retry_seconds,
            reconnect_seconds=reconnect_seconds,
        )
        self.sender = Sender(self._connection)
        self._streams: WeakSet[Stream[Any]] = WeakSet()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        return self._connection.address.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every stream and every connection."""
        for stream in tuple(self._streams):
            stream.close()
        self.sender.close()

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
    ) -> Stream[Event]:
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
        return Stream(self._connection, position, self._streams)

    def facts(
        self,
        *,
        cursor: str | None = None,
        since: Literal["now"] | None = None,
        classes: Iterable[str] | None = None,
        project_id: str | None = None,
        thread_id: str | None = None,
        run_id: str | None = None,
    ) -> Stream[PlacedFact]:
        """Facts as they come, each with its place; as for `events`."""
        position = position_in_facts(
            cursor=cursor,
            now=since == "now",
            classes=filter_names(classes),
            project_id=project_id,
            thread_id=thread_id,
            run_id=run_id,
        )
        return Stream(self._connection, position, self._streams)

    def projection(
        self, thread_id: str, *, cursor: str | None = None
    ) -> Stream[ThreadSnapshot | ThreadDelta]:
        """The state of a thread and then its changes; a `ThreadDocument` keeps both together.

        After a cut, or with a cursor, only changes come where that is exact, else a new state.
        """
        return Stream(
            self._connection, position_in_projection(thread_id, cursor=cursor), self._streams
        )
