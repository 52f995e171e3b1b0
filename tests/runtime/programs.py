"""A folder to run programs in, and small programs that do one thing each."""

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from factwire.journal.blobs import BlobStore
from factwire.runtime.processes import (
    Exit,
    OutputPiece,
    Processes,
    ProcessSpec,
    RunningProcess,
    StopEscalation,
    Stream,
)
from factwire.runtime.sandbox import SandboxPolicy

BOUND = 60.0
"""Seconds after which any wait of a test has failed."""

QUICK = StopEscalation(interrupt=0.05, terminate=0.05, kill=BOUND, linger=0.05)
"""For programs that will not listen anyway."""

PATIENT = StopEscalation(interrupt=BOUND, terminate=BOUND, kill=BOUND, linger=BOUND)
"""For programs that must be given the time they need."""

PYTHON = (sys.base_prefix, sys.prefix)
"""Where Python itself is, which may be in the home that a sandbox hides."""


class World:
    """A workspace, a data folder and a home, all made up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.data = folder / "data"
        self.home = folder / "home"
        for made in (self.workspace, self.data, self.home):
            made.mkdir()

    def processes(self, *, blobs: BlobStore | None = None, **options: Any) -> Processes:
        options.setdefault("workspaces", [self.workspace])
        options.setdefault("environment", {"PATH": os.environ["PATH"], "HOME": str(self.home)})
        options.setdefault("ladder", PATIENT)
        return Processes(self.data, blobs=blobs, home=self.home, **options)

    def python(self, code: str, *arguments: str, **options: Any) -> ProcessSpec:
        options.setdefault("cwd", str(self.workspace))
        argv = (sys.executable, "-I", "-S", "-u", "-c", code, *arguments)
        return ProcessSpec(argv=argv, **options)

    def shell(self, code: str, *arguments: str, **options: Any) -> ProcessSpec:
        """A program that is itself a shell; nothing in between reads `code`."""
        options.setdefault("cwd", str(self.workspace))
        return ProcessSpec(argv=("/bin/sh", "-c", code, "sh", *arguments), **options)


class Ran(msgspec.Struct, kw_only=True):
    exit: Exit
    pieces: list[OutputPiece]

    def text(self, stream: Stream = "stdout") -> str:
        return "".join(piece.text for piece in self.pieces if piece.stream == stream)


async def run(processes: Processes, spec: ProcessSpec, **options: Any) -> Ran:
    async with asyncio.timeout(BOUND), processes.start(spec, **options) as process:
        pieces = [piece async for piece in process.output()]
        return Ran(exit=await process.wait(), pieces=pieces)


async def heard(process: RunningProcess, text: str) -> str:
    """What a program says up to and with `text`."""
    return await read_until(process.output(), text)


async def read_until(pieces: AsyncIterator[OutputPiece], text: str) -> str:
    """The same of pieces that are read on afterwards."""
    so_far = ""
    async with asyncio.timeout(BOUND):
        async for piece in pieces:
            so_far += piece.text
            if text in so_far:
                return so_far
    raise AssertionError(f"expected {text!r}, the program said {so_far!r}")


def strict(**options: Any) -> SandboxPolicy:
    """A sandbox that must be there and in which Python can be found."""
    return SandboxPolicy(mode="require", readable=PYTHON, **options)


class Watched:
    """A process that is held by a handle, so that its end can be waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)

    def ends(self, seconds: float = BOUND) -> bool:
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    @property
    def is_alive(self) -> bool:
        return not self.ends(0)

    def close(self) -> None:
        os.close(self._handle)


def open_files() -> set[str]:
    """Files of this process, without the one that lists them."""
    found: set[str] = set()
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(f"{file.name} {file.readlink()}")
    return found


def children() -> set[int]:
    """Our child processes, zombies too."""
    tasks = Path("/proc/self/task")
    found = (task / "children" for task in tasks.iterdir())
    return {int(pid) for path in found for pid in path.read_text().split()}


def contiguous(pieces: Iterable[OutputPiece], stream: Stream) -> bool:
    at = 0
    for piece in pieces:
        if piece.stream == stream:
            if piece.offset != at:
                return False
            at += len(piece.text.encode())
    return True
