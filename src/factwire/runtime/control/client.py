"""The other end of the control channel: asks the runtimes of a data folder, one after the other."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

from factwire.runtime.control.errors import NoAnswer, NobodyRunning
from factwire.runtime.control.folder import remove, short, sockets
from factwire.runtime.control.limits import CLIENT_SECONDS, LINE_BYTES, READ_SECONDS
from factwire.runtime.control.messages import (
    Answer,
    Malformed,
    Refused,
    Request,
    Running,
    Status,
    decode_answer,
    encode,
)

_ELSEWHERE = ("unknown_action", "unknown_turn")
"""Refusals after which another runtime may know better."""


async def ask(data: str | Path, request: Request, *, seconds: float = CLIENT_SECONDS) -> Answer:
    """The answer of the runtime that knows what a request is about.

    Raises `NobodyRunning` where no runtime listens, and `NoAnswer` where one does not answer.
    """
    refused: Answer | None = None
    for path in sockets(Path(data)):
        said = await _asked(path, request, seconds)
        if isinstance(said, Refused) and said.code in _ELSEWHERE:
            refused = said
        elif said is not None:
            return said
    if refused is None:
        raise NobodyRunning(f"no runtime is running in {data}")
    return refused


async def running(data: str | Path, *, seconds: float = READ_SECONDS) -> list[Running]:
    """What every runtime of a data folder is doing; one that does not answer is left out."""
    found: list[Running] = []
    for path in sockets(Path(data)):
        with suppress(NoAnswer):
            said = await _asked(path, Status(), seconds)
            if isinstance(said, Running):
                found.append(said)
    return found


async def sweep(data: Path) -> None:
    """Remove the sockets on which nobody listens any more."""
    for path in sockets(data):
        with suppress(OSError):
            connected = await _connected(path)
            if connected is not None:
                connected.close()


async def _asked(path: Path, request: Request, seconds: float) -> Answer | None:
    """The answer at one socket; None where nobody listens."""
    try:
        async with asyncio.timeout(seconds):
            connected = await _connected(path)
            if connected is None:
                return None
            return await _answer(connected, request)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise NoAnswer(f"the runtime at {path.name} does not answer: {error}") from error
    except Malformed as error:
        raise NoAnswer(f"the runtime at {path.name} answers in another form: {error}") from error


async def _answer(connected: socket.socket, request: Request) -> Answer:
    reader, writer = await asyncio.open_connection(sock=connected, limit=LINE_BYTES)
    try:
        writer.write(encode(request))
        await writer.drain()
        return decode_answer(await reader.readuntil())
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _connected(path: Path) -> socket.socket | None:
    """A connection; None, and the socket is gone, where nobody listens."""
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connecting.settimeout(0)
    try:
        with short(path) as address:
            await asyncio.get_running_loop().sock_connect(connecting, address)
    except (ConnectionRefusedError, FileNotFoundError):
        connecting.close()
        remove(path)
        return None
    except BaseException:
        connecting.close()
        raise
    return connecting
