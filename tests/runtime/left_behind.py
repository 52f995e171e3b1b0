"""A Factwire that starts a family of programs, says so, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from factwire.runtime.processes import Processes, ProcessSpec

FAMILY = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
if os.fork() == 0 and os.fork() == 0:
    os.setsid()
print(os.getpid(), flush=True)
while True: signal.pause()
"""

FAMILY_SIZE = 3


async def main(folder: Path) -> None:
    processes = Processes(folder / "data", workspaces=[folder / "workspace"])
    spec = ProcessSpec(
        argv=(sys.executable, "-I", "-S", "-c", FAMILY), cwd=str(folder / "workspace")
    )
    async with processes.start(spec, process_id="proc_left") as process:
        output = ""
        async for piece in process.output():
            output += piece.text
            if output.count("\n") == FAMILY_SIZE:
                sys.stdout.write(output.replace("\n", " ") + "\n")
                sys.stdout.flush()


asyncio.run(main(Path(sys.argv[1])))
