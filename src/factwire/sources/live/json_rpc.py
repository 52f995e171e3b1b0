"""`JsonRpc`: requests, answers and notifications with a program, one message a line.

Both sides ask under ids of their own. Ours begin where no agent's count arrives, so that an answer
is never taken for that of the other side's request. A program that ends while something is awaited
of it fails whoever waits, with what it said last.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final

import msgspec

from factwire.projection.reading import table, word
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.sources.framing import Item
from factwire.sources.live.limits import FAREWELL_SECONDS
from factwire.sources.live.pipe import JsonPipe
from factwire.sources.live.turn import LiveTurn

Message = dict[str, Any]
Hear = Callable[[Item], Awaitable[None]]

NO_SUCH_METHOD: Final = -32601
_FIRST: Final = 1_000_000
_HINT: Final = "Look at what it said, then retry the turn."


class Refused(Exception):
    """The program answered with an error; `number` is the protocol's code of it."""

    def __init__(self, method: str, error: Message) -> None:
        self.number = error.get("code")
        self.reason = word(error, "message") or "no reason was given"
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
    async def listening(self, hear: Hear) -> AsyncGenerator["JsonRpc"]:
        """Listen for as long as the context lasts; whatever is no answer to us goes to `hear`."""
        self._listening = asyncio.create_task(self._listen(hear))
        try:
            yield self
            await self._part()
        finally:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def call(self, method: str, params: Message, *, told: bool = True) -> Message:
        """Ask for something and wait; raises `Refused`. Without `told` the converter hears neither
        the request nor the answer.
        """
        number = next(self._ids)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._awaited[number] = answer, told
        with suppress(InputClosed):
            # A program that hears no more has ended, or soon will; that tells more.
            await self._send({"id": number, "method": method, "params": params}, told=told)
        await self._first(answer)
        error = table(answer.result().get("error"))
        if error is not None:
            raise Refused(method, error)
        return table(answer.result().get("result")) or {}

    async def notify(self, method: str, params: Message | None = None) -> None:
        given = {} if params is None else {"params": params}
        await self._send({"method": method, **given}, told=True)

    async def answer(self, number: Any, result: Any, *, told: bool = True) -> None:
        """Answer a request of the program's."""
        await self._send({"id": number, "result": result}, told=told)

    async def refuse(
        self, number: Any, message: str, code: int = NO_SUCH_METHOD, *, told: bool = True
    ) -> None:
        await self._send({"id": number, "error": {"code": code, "message": message}}, told=told)

    async def until(self, done: asyncio.Event) -> None:
        """Wait for something that the program's messages bring about."""
        waiting = asyncio.ensure_future(done.wait())
        try:
            await self._first(waiting)
        finally:
            waiting.cancel()

    async def _first(self, awaited: "asyncio.Future[Any]") -> None:
        """Wait for this; raises `TurnFailed` when the program ends before."""
        assert self._listening is not None, "it listens"  # noqa: S101 - narrows the type
        await asyncio.wait({awaited, self._listening}, return_when=asyncio.FIRST_COMPLETED)
        if awaited.done():
            return
        self._listening.result()
        how = self._pipe.why(await self._pipe.ended())
        message = f"{self._title} ended before the turn did: {how}"
        raise TurnFailed("stream_interrupted", message, _HINT)

    async def _listen(self, hear: Hear) -> None:
        async for item in self._pipe.items():
            awaited = self._ours(item)
            if awaited is None:
                await hear(item)
                continue
            answer, told = awaited
            if told:
                await self._live.hear(item)
            if not answer.done() and isinstance(item, dict):
                answer.set_result(item)

    def _ours(self, item: Item) -> tuple["asyncio.Future[Message]", bool] | None:
        """Who waits for an item, if it is an answer."""
        if not isinstance(item, dict) or "method" in item or type(item.get("id")) is not int:
            return None
        return self._awaited.pop(item["id"], None)

    async def _send(self, message: Message, *, told: bool) -> None:
        line = {**self._head, **message}
        if told:
            # Before it is written: what comes of it must not be heard first.
            self._live.take(msgspec.json.decode(msgspec.json.encode(line)))
        await self._pipe.send(line)

    async def _part(self) -> None:
        """Let the program end by itself for a moment: it may have something to save."""
        await self._pipe.close_input()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._pipe.ended()
