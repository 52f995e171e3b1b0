"""The other end of the control channel: finds the sockets of a data folder and asks the
runtimes behind them, one after the other. `SocketControls` is how others use it.

The folder `control/` and each socket in it are for their user alone.
"""

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final, TypeVar

from factwire.runtime.control.control_messages import (
    ANSWER_BYTES,
    CLIENT_SECONDS,
    CONNECTIONS,
    READ_SECONDS,
    SOCKET_PATH_BYTES,
    CancelReply,
    CancelRequest,
    CardReply,
    CardRequest,
    ControlRefusal,
    ControlReply,
    ControlRequest,
    ControlUnavailable,
    DecideReply,
    DecideRequest,
    Malformed,
    NoAnswer,
    NobodyRunning,
    QueueReply,
    QueueRequest,
    RulesReply,
    RulesRequest,
    StatusReply,
    StatusRequest,
    SteerReply,
    SteerRequest,
    decode_answer,
    encode,
)

FOLDER: Final = "control"
_SUFFIX: Final = ".sock"
_FOLDER_MODE: Final = 0o700
_SOCKET_MODE: Final = 0o600
_OPEN_FILES: Final = Path("/proc/self/fd")
_CREDENTIALS: Final = struct.Struct("iII")
"""Process, user and group, as Linux tells them."""


def listen(data: Path) -> tuple[socket.socket, Path]:
    """A socket that listens in a data folder, and its place there."""
    folder = _make_private(data / FOLDER)
    name = token_hex(8)
    unnamed, named = folder / f".{name}", folder / f"{name}{_SUFFIX}"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with shorten_path(unnamed) as path:
            listening.bind(path)
        unnamed.chmod(_SOCKET_MODE)
        listening.listen(CONNECTIONS)
        listening.settimeout(0)
        unnamed.rename(named)
    except OSError as error:
        listening.close()
        unnamed.unlink(missing_ok=True)
        raise ControlUnavailable(f"cannot create a socket in {folder}: {error}") from error
    return listening, named


def list_sockets(data: Path) -> list[Path]:
    """The sockets of a data folder, the newest first."""
    found: list[tuple[int, Path]] = []
    with suppress(OSError):
        for path in (data / FOLDER).iterdir():
            if path.name.endswith(_SUFFIX):
                about = path.lstat()
                if stat.S_ISSOCK(about.st_mode) and about.st_uid == os.geteuid():
                    found.append((about.st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def remove_socket(path: Path) -> None:
    """Take a socket away; somebody else may have done so."""
    path.unlink(missing_ok=True)


@contextmanager
def shorten_path(path: Path) -> Generator[str]:
    """A path that fits a socket's address: the path itself, or one by way of an open folder."""
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        yield str(path)
        return
    if not _OPEN_FILES.is_dir():
        raise ControlUnavailable(
            f"the path {path} is too long for a socket; use another data folder"
        )
    opened = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(_OPEN_FILES / str(opened) / path.name)
    finally:
        os.close(opened)


def peer_user(connected: socket.socket) -> int | None:
    """The user at the other end, where the system tells; elsewhere the modes alone hold."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return user


def _make_private(folder: Path) -> Path:
    """The folder, made or made private; raises unless it is a folder of this user."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        with suppress(FileExistsError):
            folder.mkdir(mode=_FOLDER_MODE)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            raise ControlUnavailable(f"{folder} is not a folder that this user owns; remove it")
        folder.chmod(_FOLDER_MODE)
    except OSError as error:
        raise ControlUnavailable(f"the folder {folder} cannot be used: {error}") from error
    return folder


_ELSEWHERE = ("unknown_action", "unknown_turn")
"""Refusals after which another runtime may know better."""


async def send_request(
    data: str | Path, request: ControlRequest, *, seconds: float = CLIENT_SECONDS
) -> ControlReply:
    """The answer of the runtime that knows what a request is about.

    Raises `NobodyRunning` where no runtime listens, and `NoAnswer` where one does not answer.
    """
    refused: ControlReply | None = None
    for path in list_sockets(Path(data)):
        answer = await _ask_socket(path, request, seconds)
        if isinstance(answer, ControlRefusal) and answer.code in _ELSEWHERE:
            refused = answer
        elif answer is not None:
            return answer
    if refused is None:
        raise NobodyRunning(f"no runtime is running in {data}")
    return refused


async def list_running(data: str | Path, *, seconds: float = READ_SECONDS) -> list[StatusReply]:
    """What every runtime of a data folder is doing; one that does not answer is left out."""
    found: list[StatusReply] = []
    for path in list_sockets(Path(data)):
        with suppress(NoAnswer):
            answer = await _ask_socket(path, StatusRequest(), seconds)
            if isinstance(answer, StatusReply):
                found.append(answer)
    return found


_Reply = TypeVar("_Reply")


class SocketControls:
    """`Controls` of the runtimes that listen in a data folder: the one that knows replies."""

    def __init__(self, data: str | Path, *, seconds: float = CLIENT_SECONDS) -> None:
        self._data = data
        self._seconds = seconds

    async def decide(self, request: DecideRequest) -> DecideReply | ControlRefusal:
        return await self._send(request, DecideReply)

    async def card(self, request: CardRequest) -> CardReply | ControlRefusal:
        return await self._send(request, CardReply)

    async def cancel(self, request: CancelRequest) -> CancelReply | ControlRefusal:
        return await self._send(request, CancelReply)

    async def steer(self, request: SteerRequest) -> SteerReply | ControlRefusal:
        return await self._send(request, SteerReply)

    async def queue(self, request: QueueRequest) -> QueueReply | ControlRefusal:
        return await self._send(request, QueueReply)

    async def rules(self, request: RulesRequest) -> RulesReply | ControlRefusal:
        return await self._send(request, RulesReply)

    async def status(self) -> tuple[StatusReply, ...]:
        return tuple(await list_running(self._data))

    async def _send(
        self, request: ControlRequest, expected: type[_Reply]
    ) -> _Reply | ControlRefusal:
        reply = await send_request(self._data, request, seconds=self._seconds)
        if isinstance(reply, expected | ControlRefusal):
            return reply
        raise NoAnswer(
            f"unexpected reply from the runtime in {self._data}: expected {expected.__name__}, got "
            f"{type(reply).__name__}"
        )


async def remove_dead_sockets(data: Path) -> None:
    """Remove the sockets on which nobody listens any more."""
    for path in list_sockets(data):
        with suppress(OSError):
            connected = await _connect(path)
            if connected is not None:
                connected.close()


async def _ask_socket(path: Path, request: ControlRequest, seconds: float) -> ControlReply | None:
    """The answer at one socket; None where nobody listens."""
    try:
        async with asyncio.timeout(seconds):
            connected = await _connect(path)
            if connected is None:
                return None
            return await _exchange(connected, request)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise NoAnswer(f"the runtime at {path.name} does not answer: {error}") from error
    except Malformed as error:
        raise NoAnswer(f"unexpected reply from the runtime at {path.name}: {error}") from error


async def _exchange(connected: socket.socket, request: ControlRequest) -> ControlReply:
    reader, writer = await asyncio.open_connection(sock=connected, limit=ANSWER_BYTES)
    try:
        writer.write(encode(request))
        await writer.drain()
        return decode_answer(await reader.readuntil())
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _connect(path: Path) -> socket.socket | None:
    """A connection; None, and the socket is gone, where nobody listens."""
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connecting.settimeout(0)
    try:
        with shorten_path(path) as address:
            await asyncio.get_running_loop().sock_connect(connecting, address)
    except (ConnectionRefusedError, FileNotFoundError):
        connecting.close()
        remove_socket(path)
        return None
    except BaseException:
        connecting.close()
        raise
    return connecting
