"""A home of its own for each test: a folder to work in, a state folder, and agents to run."""

import os
import re
import select
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from tests.cli.cli_commands import COMMAND, CommandOutput
from tests.cli.turn_agents import CONFIGURATION, ROOT
from tests.runtime.trusted_files import write_trusted

PATIENCE = 60.0
ACTION = re.compile(r"act_[0-9A-Z]{26}")
THREAD = re.compile(r"thr_[0-9A-Z]{26}")


class Background:
    """A command that runs while the test goes on."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.seen = ""

    def until(self, expected: str) -> str:
        end = monotonic() + PATIENCE
        while expected not in self.seen:
            assert self._read(end - monotonic()), f"{expected!r} did not come: {self.seen!r}"
        return self.seen

    def end(self) -> int:
        end = monotonic() + PATIENCE
        while self._read(end - monotonic()):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, seconds: float) -> bool:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], max(seconds, 0.0))
        data = os.read(self.process.stdout.fileno(), 65_536) if ready else b""
        self.seen += data.decode("utf-8", "replace")
        return bool(data)


class Home:
    """Where commands work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.state = folder / "state" / "factwire"
        self.environment = {
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        self.configure(CONFIGURATION)

    def configure(self, text: str) -> Path:
        """A project's file with this text, trusted."""
        return write_trusted(self.folder / "factwire.toml", text, self.environment)

    def run(self, *arguments: str) -> CommandOutput:
        """The command as a process of its own, without a terminal."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            timeout=PATIENCE,
            check=False,
        )
        return CommandOutput(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def background(self, *arguments: str) -> Generator[Background]:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env={**os.environ, **self.environment},
        )
        try:
            yield Background(process)
        finally:
            process.kill()
            process.wait(PATIENCE)
            if process.stdout:
                process.stdout.close()

    def threads(self) -> list[dict[str, Any]]:
        done = self.run("threads", "--json")
        assert done.code == 0, done.err
        found: dict[str, Any] = msgspec.json.decode(done.out)
        return found["threads"]


def action_in(text: str) -> str:
    found = ACTION.search(text)
    assert found, text
    return found[0]


def thread_in(text: str) -> str:
    found = THREAD.search(text)
    assert found, text
    return found[0]
