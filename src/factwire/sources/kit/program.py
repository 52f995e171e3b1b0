"""Programs as agents: where one is found, its pipe, and JSON-RPC over it.

What is not installed is said with how to get it; nothing is fetched. A program runs in the
workspace of a turn for as long as the turn lasts, with the user's own rights, because an agent
needs its own settings, network and sandbox. It is ended with its turn, politely first, and what
a killed runtime leaves behind is ended at the next start. In JSON-RPC both sides ask under ids
of their own; ours begin where no agent's count arrives. A program that ends while something is
awaited of it fails whoever waits, with what it said last.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts import redact_text
from factwire.facts.json_values import object_at, text_at
from factwire.runtime.agents import AgentError
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import (
    Exit,
    InputClosed,
    OutputPiece,
    ProcessError,
    ProcessSpec,
    RunningProcess,
)
from factwire.runtime.program_lookup import find_own_program
from factwire.runtime.provider import Host
from factwire.runtime.sandbox import SandboxPolicy, describe_unenforced_rules
from factwire.sources.kit.limits import FAREWELL_SECONDS, LINE_BYTES, STDERR_CHARACTERS
from factwire.sources.kit.live_agent import LiveTurn
from factwire.sources.kit.stream_framing import Item, Unreadable, read_items


class NotInstalled(AgentError):
    """`install` is what to type to have it."""

    code = "agent_not_installed"

    def __init__(self, title: str, install: str) -> None:
        self.install = install
        super().__init__(f"{title} is not installed; install it with: {install}")


class AgentProgram(msgspec.Struct, frozen=True, kw_only=True):
    """One program. `packaged` looks for it in installed packages; `install` says how to get it."""

    title: str
    name: str
    install: str
    packaged: Callable[[], Path | None] = lambda: None

    def require_path(self, wanted: str | None = None) -> str:
        """The program to run; raises `NotInstalled`."""
        there = self.find_path(wanted)
        if there is None:
            raise NotInstalled(self.title if wanted is None else wanted, self.install)
        return there

    def find_path(self, wanted: str | None = None) -> str | None:
        """Where it is, if it is there."""
        there = find_own_program(wanted or self.name)
        if there is None and wanted is None and (inside := self.packaged()) is not None:
            return str(inside)
        return there


_NO_PROCESSES: Final = (
    "Configure the runtime with a data folder and a workspace to run programs in."
)


class JsonPipe:
    """Both directions of one program."""

    def __init__(self, process: RunningProcess) -> None:
        self._process = process
        self._errors: deque[str] = deque()
        self._kept = 0

    async def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; raises `InputClosed` when the program hears nothing any more."""
        await self.write(msgspec.json.encode(message) + b"\n")

    async def write(self, data: bytes) -> None:
        """Write what is no message; raises `InputClosed`."""
        await self._process.write(data)

    async def close_input(self) -> None:
        await self._process.close_input()

    async def items(self) -> AsyncIterator[Item]:
        """What the program says, until it ends; a line that is no message is told as such."""
        rest: list[bytes] = []
        size = 0
        async for piece in self._process.output():
            if piece.stream == "stderr":
                self._keep_stderr(piece)
                continue
            *lines, last = piece.text.encode().split(b"\n")
            for line in lines:
                whole = b"".join([*rest, line])
                rest, size = [], 0
                for item in read_items([whole], "lines"):
                    yield item
            if last:
                rest.append(last)
                size += len(last)
            if size > LINE_BYTES:
                yield Unreadable(b"".join(rest)[:1024], f"a line of more than {LINE_BYTES} bytes")
                rest, size = [], 0
        for item in read_items([b"".join(rest)], "lines"):
            yield item

    async def wait_for_exit(self) -> Exit:
        return await self._process.wait()

    async def stop(self) -> None:
        """End the program: the polite way first."""
        await self._process.stop("stopped")

    def describe_exit(self, code: Exit) -> str:
        """How the program ended, with the last of what it said about it."""
        how = f"signal {code.signal}" if code.signal else f"exit code {code.exit_code}"
        stderr = redact_text("".join(self._errors).strip()[-STDERR_CHARACTERS:])[0]
        return f"{how}: {stderr}" if stderr else how

    def _keep_stderr(self, piece: OutputPiece) -> None:
        self._errors.append(piece.text)
        self._kept += len(piece.text)
        while self._kept > 2 * STDERR_CHARACTERS and len(self._errors) > 1:
            self._kept -= len(self._errors.popleft())


@asynccontextmanager
async def open_pipe(
    host: Host,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    own_env_names: frozenset[str] = frozenset(),
) -> AsyncGenerator[JsonPipe]:
    """A program in the workspace of a turn, for as long as the context lasts; raises `TurnFailed`
    when it cannot be started.
    """
    if host.resources.processes is None:
        raise TurnFailed("processes_unavailable", "this runtime cannot run programs", _NO_PROCESSES)
    spec = ProcessSpec(
        argv=tuple(argv),
        cwd=str(host.workspace),
        env=dict(env),
        own_env_names=own_env_names,
        stdin="pipe",
        output="protocol",
        time_limit=None,
        sandbox=SandboxPolicy(mode="off"),
    )
    try:
        async with host.resources.processes.start(spec) as process:
            if rules := host.resources.policy.denied_paths:
                message = describe_unenforced_rules(rules)
                payload = {"code": "path_rules_not_enforced", "message": message}
                host.emit(host.mint.fact(host.scope, "runtime.warning", payload))
            yield JsonPipe(process)
    except ProcessError as error:
        raise TurnFailed(
            error.code, str(error), "Run `factwire doctor` to find out why."
        ) from error


Message = dict[str, Any]
Hear = Callable[[Item], Awaitable[None]]

NO_SUCH_METHOD: Final = -32601
_FIRST: Final = 1_000_000
_HINT: Final = "Check its output, then retry the turn."


class RpcRefused(Exception):
    """The program answered with an error; `number` is the protocol's code of it."""

    def __init__(self, method: str, error: Message) -> None:
        self.number = error.get("code")
        self.reason = text_at(error, "message") or "no reason was given"
        super().__init__(f"{method}: {self.reason}")


class JsonRpc:
    """Our side of a conversation; `title` is who is on the other, `head` what each message has."""

    def __init__(
        self, pipe: JsonPipe, live: LiveTurn, title: str, head: Mapping[str, Any] | None = None
    ) -> None:
        self._pipe = pipe
        self._live = live
        self._title = title
        self._head = dict(head or {})
        self._ids = count(_FIRST)
        self._awaited: dict[int, tuple[asyncio.Future[Message], bool]] = {}
        self._listening: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listen(self, hear: Hear) -> AsyncGenerator["JsonRpc"]:
        """Listen for as long as the context lasts; whatever is no answer to us goes to `hear`."""
        self._listening = asyncio.create_task(self._read_messages(hear))
        try:
            yield self
            await self._close()
        finally:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def call(self, method: str, params: Message, *, recorded: bool = True) -> Message:
        """Send a request and wait for the answer; raises `RpcRefused`. Unless it is `recorded`, the
        converter sees neither the request nor the answer.
        """
        number = next(self._ids)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._awaited[number] = answer, recorded
        with suppress(InputClosed):
            # A program that hears no more has ended, or soon will; that tells more.
            await self._send({"id": number, "method": method, "params": params}, recorded=recorded)
        await self._wait_first(answer)
        error = object_at(answer.result().get("error"))
        if error is not None:
            raise RpcRefused(method, error)
        return object_at(answer.result().get("result")) or {}

    async def notify(self, method: str, params: Message | None = None) -> None:
        extra = {} if params is None else {"params": params}
        await self._send({"method": method, **extra}, recorded=True)

    async def answer(self, number: Any, result: Any, *, recorded: bool = True) -> None:
        """Answer a request of the program's."""
        await self._send({"id": number, "result": result}, recorded=recorded)

    async def refuse(
        self, number: Any, message: str, code: int = NO_SUCH_METHOD, **more: Any
    ) -> None:
        """Answer a request with an error; `more` are its further fields."""
        error = {"code": code, "message": message, **more}
        await self._send({"id": number, "error": error}, recorded=True)

    async def wait_until(self, done: asyncio.Event) -> None:
        """Wait for something that the program's messages bring about."""
        waiting = asyncio.ensure_future(done.wait())
        try:
            await self._wait_first(waiting)
        finally:
            waiting.cancel()

    async def _wait_first(self, awaited: "asyncio.Future[Any]") -> None:
        """Wait for this; raises `TurnFailed` when the program ends before."""
        assert self._listening is not None, "it listens"  # noqa: S101 - narrows the type
        await asyncio.wait({awaited, self._listening}, return_when=asyncio.FIRST_COMPLETED)
        if awaited.done():
            return
        self._listening.result()
        how = self._pipe.describe_exit(await self._pipe.wait_for_exit())
        message = f"{self._title} ended before the turn did: {how}"
        raise TurnFailed("stream_interrupted", message, _HINT)

    async def _read_messages(self, hear: Hear) -> None:
        async for item in self._pipe.items():
            awaited = self._take_awaited(item)
            if awaited is None:
                await hear(item)
                continue
            answer, recorded = awaited
            if recorded:
                await self._live.hear(item)
            if not answer.done() and isinstance(item, dict):
                answer.set_result(item)

    def _take_awaited(self, item: Item) -> tuple["asyncio.Future[Message]", bool] | None:
        """Who waits for an item, if it is an answer."""
        if not isinstance(item, dict) or "method" in item or type(item.get("id")) is not int:
            return None
        return self._awaited.pop(item["id"], None)

    async def _send(self, message: Message, *, recorded: bool) -> None:
        line = {**self._head, **message}
        if recorded:
            # Before it is written: what comes of it must not be heard first.
            self._live.take(msgspec.json.decode(msgspec.json.encode(line)))
        await self._pipe.send(line)

    async def _close(self) -> None:
        """Let the program end by itself for a moment: it may have something to save."""
        await self._pipe.close_input()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._pipe.wait_for_exit()
