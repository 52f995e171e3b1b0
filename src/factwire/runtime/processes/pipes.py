"""Our ends of a program's pipes: read and written without a thread and without blocking."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from factwire.runtime.processes import limits
from factwire.runtime.processes.errors import InputClosed

_CLOSED: Final = -1


class ReadPipe:
    """Gives what there is; an empty read is the end."""

    def __init__(self, file: int) -> None:
        os.set_blocking(file, False)
        self._file = file
        self._ready: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether a reader waits for a program to write, rather than the other way round."""
        return self._ready is not None

    async def read(self) -> bytes:
        while self._file != _CLOSED:
            try:
                return os.read(self._file, limits.READ_BYTES)
            except BlockingIOError:
                await self._readable()
        return b""

    def close(self) -> None:
        """End it, for a reader that waits as well."""
        if self._file == _CLOSED:
            return
        file, self._file = self._file, _CLOSED
        if self._ready is not None:
            _wake(self._ready)
            asyncio.get_running_loop().remove_reader(file)
        os.close(file)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        file, self._ready = self._file, loop.create_future()
        loop.add_reader(file, _wake, self._ready)
        try:
            await self._ready
        finally:
            self._ready = None
            if self._file != _CLOSED:
                loop.remove_reader(file)


class WritePipe:
    """Takes input, one writer after the other; waits while the program does not read."""

    def __init__(self, file: int) -> None:
        os.set_blocking(file, False)
        self._file = file
        self._turn = asyncio.Lock()
        self._ready: asyncio.Future[None] | None = None

    async def write(self, data: bytes, *, written: Callable[[], None] = lambda: None) -> None:
        """Write all of it; `written` is called before the next writer may start."""
        async with self._turn:
            view = memoryview(data)
            while view:
                view = view[await self._some(view) :]
            written()

    def close(self) -> None:
        if self._file == _CLOSED:
            return
        file, self._file = self._file, _CLOSED
        if self._ready is not None:
            _wake(self._ready)
            asyncio.get_running_loop().remove_writer(file)
        os.close(file)

    async def finish(self) -> None:
        """Close after what is being written."""
        async with self._turn:
            self.close()

    async def _some(self, view: memoryview) -> int:
        while self._file != _CLOSED:
            try:
                return os.write(self._file, view)
            except BlockingIOError:
                await self._writable()
            except BrokenPipeError:
                break
        raise InputClosed("the program does not take input any more")

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        file, self._ready = self._file, loop.create_future()
        loop.add_writer(file, _wake, self._ready)
        try:
            await self._ready
        finally:
            self._ready = None
            if self._file != _CLOSED:
                loop.remove_writer(file)


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
