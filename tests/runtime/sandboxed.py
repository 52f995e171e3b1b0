"""A Factwire that runs a program in a sandbox, says what it says, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from factwire.runtime.processes import Processes, ProcessSpec
from factwire.runtime.sandbox import SandboxPolicy

LOCKS = """
import fcntl, signal
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("ready", flush=True)
while True: signal.pause()
"""


async def main(folder: Path) -> None:
    processes = Processes(folder / "data", workspaces=[folder / "workspace"])
    spec = ProcessSpec(
        argv=(sys.executable, "-I", "-S", "-c", LOCKS),
        cwd=str(folder / "workspace"),
        sandbox=SandboxPolicy(mode="require", readable=(sys.base_prefix, sys.prefix)),
    )
    async with processes.start(spec) as process:
        async for piece in process.output():
            sys.stdout.write(piece.text)
            sys.stdout.flush()


asyncio.run(main(Path(sys.argv[1])))
