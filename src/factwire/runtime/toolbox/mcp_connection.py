"""A connection to one server, for one turn: opened when it is needed, gone when the turn ends.

One call at a time, so that a question or a step of progress is certain to belong to the call that
runs. A server that dies or stays silent costs that call; the next one opens a new connection. The
library checks results against schemas that the server itself sent; that is switched off, because a
hostile pattern would hold up everything else in the process.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, cast

import mcp_types as types
import msgspec
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from pydantic import ValidationError

from factwire import __version__
from factwire.journal import JournalError
from factwire.runtime.errors import RuntimeRefused
from factwire.runtime.provider import Decision
from factwire.runtime.toolbox.limits import CLOSE_SECONDS, PAGES, PROGRESS_FACTS, QUESTIONS
from factwire.runtime.toolbox.mcp_content import (
    Elicitation,
    ListedTool,
    build_reply,
    build_tool_refusal,
)
from factwire.runtime.toolbox.mcp_servers import McpServerAccess
from factwire.runtime.toolbox.mcp_transports import McpServerProgram, http_streams
from factwire.runtime.toolbox.tool_calls import ActiveCall, ToolRefused

Ask = Callable[[Elicitation, ActiveCall], Awaitable[Decision | None]]

_BROKEN: Final = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)
_LOUD: Final = frozenset({"warning", "error", "critical", "alert", "emergency"})
_US: Final = types.Implementation(name="factwire", version=__version__)


class _Active:
    """The call that runs now."""

    def __init__(self, call: ActiveCall, deadline: asyncio.Timeout, seconds: float) -> None:
        self.call = call
        self.steps = 0
        self.questions = 0
        self.is_over = False
        self._deadline = deadline
        self._seconds = seconds
        self._waiting = 0

    @asynccontextmanager
    async def pause_deadline(self) -> AsyncGenerator[None]:
        """While a person thinks, the server's time stands still."""
        self._waiting += 1
        self._deadline.reschedule(None)
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting and not self.is_over:
                now = asyncio.get_running_loop().time()
                self._deadline.reschedule(now + self._seconds)


class McpConnection:
    """One server. `stale` is whether its list of tools may be another one by now."""

    def __init__(self, access: McpServerAccess, ask: Ask) -> None:
        self.stale = True
        self._access = access
        self._ask = ask
        self._program: McpServerProgram | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._turn = asyncio.Lock()
        self._active: _Active | None = None
        self._client: asyncio.Future[Client] | None = None

    @property
    def is_open(self) -> bool:
        return self._task is not None and not self._task.done() and not self._over.is_set()

    async def tools(self) -> list[ListedTool]:
        """What the server lists now; raises `ToolRefused`."""
        async with self._turn:
            client = await self._open_client()
            self.stale = False
            try:
                return await self._call_guarded(
                    partial(_list_tools, client), self._access.settings.seconds
                )
            except BaseException:
                self.stale = True
                raise

    async def call(self, call: ActiveCall, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        """The result of a call, as the protocol writes it; raises `ToolRefused`."""
        seconds = self._access.settings.seconds
        async with self._turn:
            client = await self._open_client()

            async def work() -> dict[str, Any]:
                async with asyncio.timeout(seconds) as deadline:
                    active = self._active = _Active(call, deadline, seconds)
                    try:
                        result = await client.call_tool(
                            tool, args, progress_callback=self._progress(active)
                        )
                    finally:
                        self._active = None
                        active.is_over = True
                return result.model_dump(mode="json", by_alias=True, exclude_none=True)

            return await self._call_guarded(work, None)

    async def close(self) -> None:
        """End it; safe to call again."""
        self._over.set()
        task, self._task = self._task, None
        if task is None:
            return
        if self._client is not None and not self._client.done():
            # It is still being opened, and would not hear that it is over.
            task.cancel()
        _, late = await asyncio.wait({task}, timeout=CLOSE_SECONDS)
        for each in late:
            each.cancel()
        [error] = await asyncio.gather(task, return_exceptions=True)
        if isinstance(error, Exception) and self._was_opened:
            self._access.warn("mcp_connection_failed", _innermost(error))

    @property
    def _was_opened(self) -> bool:
        client = self._client
        return client is not None and client.done() and client.exception() is None

    async def _call_guarded(self, work: Callable[[], Awaitable[Any]], seconds: float | None) -> Any:
        """Do it, and say in our words what went wrong; a broken connection is let go."""
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except ToolRefused:
            raise
        except TimeoutError as error:
            message = f"the server {self._access.name} did not answer in time"
            # Whether it would ever answer again, nobody knows; the next call begins anew.
            await self.close()
            raise build_tool_refusal("timeout", message) from error
        except MCPError as error:
            raise await self._to_refusal(error) from error
        except (RuntimeRefused, JournalError):
            raise
        except Exception as error:
            # The library stumbles in many ways over an answer of no shape that it knows.
            if not self.is_open or self._is_gone:
                raise await self._death_refusal() from error
            reason = self._access.mask.short(_innermost(error))
            raise build_tool_refusal(
                "protocol_error", f"{self._access.name} answered wrongly: {reason}"
            ) from error

    async def _to_refusal(self, error: MCPError) -> ToolRefused:
        if error.code in _BROKEN or self._is_gone:
            return await self._death_refusal()
        await self._start_over()
        reason = self._access.mask.short(error.message)
        return build_tool_refusal(
            "protocol_error", f"{self._access.name} refused: {reason} ({error.code})"
        )

    async def _death_refusal(self) -> ToolRefused:
        await self.close()
        return build_tool_refusal(
            "server_died",
            f"the connection to the server {self._access.name} was lost{self._death_reason()}",
        )

    @property
    def _is_gone(self) -> bool:
        return self._program is not None and self._program.gone.is_set()

    async def _start_over(self) -> None:
        """By HTTP nobody knows whether the session is still there, and a new one is cheap."""
        if self._access.settings.url is not None:
            await self.close()

    def _death_reason(self) -> str:
        last_output = self._access.mask.short(self._program.last_words) if self._program else ""
        return f": {last_output}" if last_output else ""

    async def _open_client(self) -> Client:
        """The client of an open connection; raises `ToolRefused`."""
        if not self.is_open or self._client is None:
            await self.close()
            self._over.clear()
            self.stale = True
            self._client = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._hold(self._client))
            self._task.add_done_callback(self._on_end)
        try:
            async with asyncio.timeout(self._access.settings.start_seconds):
                return await asyncio.shield(self._client)
        except TimeoutError as error:
            await self.close()
            seconds = self._access.settings.start_seconds
            message = (
                f"{self._access.name} was not ready after {seconds:g} seconds{self._death_reason()}"
            )
            raise build_tool_refusal("server_unavailable", message) from error

    def _on_end(self, task: "asyncio.Task[None]") -> None:
        """Whoever still waits for the client hears why there is none."""
        error = None if task.cancelled() else task.exception()
        client = self._client
        if client is None or client.done():
            return
        reason = self._death_reason() or (
            f": {self._access.mask.short(_innermost(error))}" if error else ""
        )
        client.set_exception(
            build_tool_refusal(
                "server_unavailable", f"{self._access.name} could not be reached{reason}"
            )
        )
        # Heard even where nobody waits any more.
        client.exception()

    async def _hold(self, client: "asyncio.Future[Client]") -> None:
        """Be connected until it is over; enters and leaves everything in one task."""
        async with self._connect() as connected:
            if not client.done():
                client.set_result(connected)
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listen(connected))
                await self._until_over()
                listening.cancel()

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Client]:
        access, settings = self._access, self._access.settings
        if settings.url is None:
            program = self._program = McpServerProgram(
                access.processes, access.spec, access.host, access.warn
            )
            streams = program.streams()
        else:
            streams = http_streams(settings.url, access.headers)
        async with Client(
            streams,
            client_info=_US,
            cache=None,
            log_level="warning",
            logging_callback=self._log,
            message_handler=self._hear,
            elicitation_callback=self._question,
            list_roots_callback=self._roots if settings.url is None else None,
        ) as client:
            client.session.validate_tool_result = _skip_result_check
            yield client

    async def _until_over(self) -> None:
        waits = [asyncio.ensure_future(self._over.wait())]
        if self._program is not None:
            waits.append(asyncio.ensure_future(self._program.gone.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _listen(self, client: Client) -> None:
        """Changes of the list, where a server of the newer protocol tells them by a stream."""
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, ValidationError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self.stale = True

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.stale = True

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        if params.level in _LOUD:
            text = params.data if isinstance(params.data, str) else _json(params.data)
            self._access.warn(f"mcp_server_{params.level}", text)

    def _progress(self, active: _Active) -> Any:
        async def step(progress: float, total: float | None, message: str | None) -> None:
            active.steps += 1
            if self._active is not active or active.steps > PROGRESS_FACTS:
                return
            payload = {
                "progress": progress if math.isfinite(progress) else None,
                "total": total if total is not None and math.isfinite(total) else None,
                "message": self._access.mask.short(message) if message else None,
                "elapsedSeconds": active.call.elapsed_ms() / 1_000,
            }
            active.call.put("tool.progress", payload)

        return step

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        del context
        folder = self._access.host.workspace
        root = types.Root.model_validate({"uri": folder.as_uri(), "name": folder.name})
        return types.ListRootsResult(roots=[root])

    async def _question(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        active = self._active
        question = _to_elicitation(self._access.name, params)
        problem = question.problem
        if active is None or active.questions >= QUESTIONS:
            problem = "questions are allowed only during a call, and only a limited number per call"
        if active is None or problem is not None:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(problem))
        active.questions += 1
        async with active.pause_deadline():
            decision = await self._ask(question, active.call)
        action, content = build_reply(question, decision)
        return types.ElicitResult(action=action, content=content)


async def _skip_result_check(name: str, result: types.CallToolResult) -> None:
    """In place of the check of a result against the schema that came with it."""


async def _list_tools(client: Client) -> list[ListedTool]:
    found: list[ListedTool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        found += map(_to_listed_tool, page.tools)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _to_listed_tool(tool: types.Tool) -> ListedTool:
    return ListedTool(
        name=tool.name, description=tool.description or "", schema=dict(tool.input_schema)
    )


def _to_elicitation(server: str, params: types.ElicitRequestParams) -> Elicitation:
    if isinstance(params, types.ElicitRequestURLParams):
        return Elicitation(server=server, message=params.message, url=params.url)
    payload = params.model_dump(mode="json", by_alias=True, exclude_none=True)
    return Elicitation(server=server, message=params.message, schema=payload["requestedSchema"])


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return str(value)


def _innermost(error: BaseException) -> str:
    """The first sentence inside whatever groups an error came in."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    return str(error) or type(error).__name__
