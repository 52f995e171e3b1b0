"""An Edge as a process of its own: it can be killed, and started again on the same port."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Self

from tests.runtime.trusted_files import write_trusted

PATIENCE = 60.0
TOKEN = "a-client-token-for-tests-0123456789"
COMMAND = [sys.executable, "-c", "from factwire.cli import main; main()"]
AGENTS = '[agents.demo]\nkind = "demo"\n[agents.demo.options]\npace = 0\n'


class EdgeProcess:
    """`kill` is kill -9; `start` brings the same Edge back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        write_trusted(self.work / "factwire.toml", AGENTS, {"HOME": str(folder / "home")})
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.output = b""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        own = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "HOME": "home"}
        paths = {name: str(self.folder / value) for name, value in own.items()}
        return {**os.environ, **paths, "FACTWIRE_TOKEN": TOKEN, "NO_COLOR": "1"}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "edge", "--port", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.work,
            env=self.environment,
        )
        self._until(b"Ctrl-C to stop")

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(PATIENCE)
            assert self.process.stdout
            self.output += self.process.stdout.read()
            self.process.stdout.close()
            self.process = None

    def _until(self, expected: bytes) -> None:
        assert self.process
        assert self.process.stdout
        seen, end = b"", monotonic() + PATIENCE
        while expected not in seen:
            ready, _, _ = select.select([self.process.stdout], [], [], end - monotonic())
            piece = os.read(self.process.stdout.fileno(), 65_536) if ready else b""
            assert piece, seen
            seen += piece
        self.output += seen


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def problem(status: int, code: str, **members: object) -> tuple[int, bytes]:
    """A refusal as an Edge words it."""
    document = {"type": f"urn:factwire:problem:{code}", "title": "No", "status": status}
    document |= {"code": code, "detail": f"{code} happened", "traceId": "t-1", **members}
    return status, json.dumps(document).encode()
