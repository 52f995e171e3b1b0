"""A program that speaks JSON, a line a message, on its pipes.

It runs under the runtime's own process table: whatever happens to the turn, its group is killed,
and what a killed runtime leaves behind is ended at the next start. It has the user's own rights,
because an agent needs its own settings, its own network and its own sandbox; what it may do is
asked by the agent itself. Of what it says beside the protocol only the end is kept, for the reason
of a failure.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from factwire.facts import redact_text
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import Exit, OutputPiece, Process, ProcessError, ProcessSpec
from factwire.runtime.provider import Host
from factwire.runtime.sandbox import SandboxPolicy
from factwire.sources.framing import Item, Unreadable, read_items
from factwire.sources.live.limits import LINE_BYTES, STDERR_CHARACTERS

_NO_PROCESSES: Final = "Give the runtime a data folder and a workspace to run programs in."


class JsonPipe:
    """Both directions of one program."""

    def __init__(self, process: Process) -> None:
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
                self._note(piece)
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

    async def ended(self) -> Exit:
        return await self._process.wait()

    async def stop(self) -> None:
        """End the program: the polite way first."""
        await self._process.stop("stopped")

    def why(self, code: Exit) -> str:
        """How the program ended, with the last of what it said about it."""
        how = f"signal {code.signal}" if code.signal else f"exit code {code.exit_code}"
        said = redact_text("".join(self._errors).strip()[-STDERR_CHARACTERS:])[0]
        return f"{how}: {said}" if said else how

    def _note(self, piece: OutputPiece) -> None:
        self._errors.append(piece.text)
        self._kept += len(piece.text)
        while self._kept > 2 * STDERR_CHARACTERS and len(self._errors) > 1:
            self._kept -= len(self._errors.popleft())


@asynccontextmanager
async def opened_pipe(
    host: Host,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    own_env_names: frozenset[str] = frozenset(),
) -> AsyncGenerator[JsonPipe]:
    """A program in the workspace of a turn, for as long as the context lasts; raises `TurnFailed`
    when it cannot be started.
    """
    if host.means.processes is None:
        raise TurnFailed("processes_unavailable", "this runtime runs no programs", _NO_PROCESSES)
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
        async with host.means.processes.start(spec) as process:
            yield JsonPipe(process)
    except ProcessError as error:
        raise TurnFailed(error.code, str(error), "Look at what factwire doctor says.") from error
