"""`ControlServer`: lets other processes of the same user decide and cancel in this one.

The attack: a process that is not this user's, one that talks without end, and one that says
nothing. A client has one line and a few seconds, and there are only so many at once.
"""

import asyncio
import getpass
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from factwire.runtime.control import folder
from factwire.runtime.control.answering import answer
from factwire.runtime.control.client import sweep
from factwire.runtime.control.limits import CONNECTIONS, LINE_BYTES, READ_SECONDS, WORK_SECONDS
from factwire.runtime.control.messages import (
    Answer,
    Malformed,
    decode_request,
    encode,
    refusal,
)
from factwire.runtime.runtime import Runtime


class ControlServer:
    """Listens in a data folder for as long as the context lasts."""

    def __init__(
        self, runtime: Runtime, data: str | Path, *, read_seconds: float = READ_SECONDS
    ) -> None:
        self._runtime = runtime
        self._data = Path(data)
        self._read_seconds = read_seconds
        self.clients = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.path: Path | None = None

    async def __aenter__(self) -> Self:
        await sweep(self._data)
        listening, self.path = folder.listen(self._data)
        self._server = await asyncio.start_server(self._serve, sock=listening, limit=LINE_BYTES)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.path is not None:
            folder.remove(self.path)
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self.clients += 1
        try:
            await self._say(writer, await self._answered(reader, writer))
        finally:
            self.clients -= 1
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
        user = folder.peer_user(writer.get_extra_info("socket"))
        if user is not None and user != os.geteuid():
            return refusal("not_allowed")
        if self.clients > CONNECTIONS:
            return refusal("too_many")
        try:
            async with asyncio.timeout(self._read_seconds):
                line = await reader.readuntil()
        except TimeoutError:
            return refusal("too_slow")
        except asyncio.LimitOverrunError:
            return refusal("too_large")
        except (asyncio.IncompleteReadError, OSError):
            return refusal("malformed", "expected a line, got the end of the stream")
        return await self._done(line)

    async def _done(self, line: bytes) -> Answer:
        try:
            request = decode_request(line)
        except Malformed as error:
            return refusal("malformed", str(error))
        try:
            async with asyncio.timeout(WORK_SECONDS):
                return await answer(self._runtime, request, by=_user())
        except TimeoutError:
            return refusal("too_slow")
        except Exception as error:  # noqa: BLE001 - a client hears of it, the runtime goes on
            return refusal("failed", f"{type(error).__name__}: {error}")

    async def _say(self, writer: asyncio.StreamWriter, said: Answer) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._read_seconds):
                writer.write(encode(said))
                await writer.drain()


def _user() -> str:
    """Who decides: both ends belong to the same user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"user {os.geteuid()}"
