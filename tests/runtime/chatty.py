"""A Factwire that runs a chatty program and prints how much memory that took at its peak."""

import asyncio
import resource
import sys
from pathlib import Path

from factwire.journal.blobs import FileBlobs
from factwire.runtime.processes import OutputMode, Processes, ProcessSpec, RunningProcess

CAP = 1024 * 1024

CHATTER = """
import os, sys
lines = "all work and no play \\u20ac\\n".encode() * 2500
left = int(sys.argv[1])
while left > 0:
    left -= os.write(1, lines[:left])
"""


async def main(folder: Path, size: int, output: OutputMode) -> None:
    processes = Processes(folder / "data", workspaces=[folder], blobs=FileBlobs(folder / "blobs"))
    argv = (sys.executable, "-I", "-S", "-c", CHATTER, str(size))
    async with processes.start(ProcessSpec(argv=argv, cwd=str(folder), output=output)) as process:
        await (check_log(process, size) if output == "log" else check_protocol(process, size))
        assert (await process.wait()).exit_code == 0


async def check_log(process: RunningProcess, size: int) -> None:
    await process.wait()
    assert process._feed.pending_bytes <= CAP
    pieces = [piece async for piece in process.output()]
    assert sum(len(piece.text.encode()) for piece in pieces) <= CAP
    ref = pieces[-1].ref
    assert ref is not None
    assert (pieces[-1].bytes_written, ref.bytes) == (size, size)
    assert len(await process.read_log("stdout", size - 10, 100)) == 10


async def check_protocol(process: RunningProcess, size: int) -> None:
    got = 0
    async for piece in process.output():
        got += len(piece.text.encode())
        assert process._feed.pending_bytes <= CAP
    assert got == size


work = Path(sys.argv[1])
work.mkdir()
asyncio.run(main(work, int(sys.argv[2]), "log" if sys.argv[3] == "log" else "protocol"))
sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}\n")
