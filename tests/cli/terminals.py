"""A real, if pretended, terminal for a command to run on."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from tests.cli.cli_commands import COMMAND

PATIENCE = 60.0
STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A process and the terminal that it runs on."""

    def __init__(self, process: "subprocess.Popen[bytes]", ours: int, theirs: int) -> None:
        self.process = process
        self._ours = ours
        self._theirs = theirs
        self._before = termios.tcgetattr(theirs)
        self.seen = ""

    def press(self, keys: bytes, expected: str) -> str:
        """Press keys, and wait until the terminal shows something anew."""
        self.seen = ""
        self.write(keys)
        return self.until(expected)

    def write(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def until(self, expected: str) -> str:
        return self.until_any(expected)

    def until_any(self, *expected: str) -> str:
        """Wait until the terminal shows one of these."""
        end = monotonic() + PATIENCE
        while not any(each in STYLE.sub("", self.seen) for each in expected):
            came = self._read(end - monotonic())
            assert came, f"{expected!r} did not come: {self.seen[-2000:]!r}"
        return STYLE.sub("", self.seen)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> int:
        """Wait until the process ends; what it wrote last is in `seen`."""
        end = monotonic() + PATIENCE
        while self.process.poll() is None:
            assert monotonic() < end, "the process does not end"
            self._read(0.05)
        while self._read(0.0):
            pass
        return self.process.returncode

    @property
    def restored(self) -> bool:
        return termios.tcgetattr(self._theirs) == self._before

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, seconds))
        if not ready:
            return False
        self.seen += os.read(self._ours, 65_536).decode("utf-8", "replace")
        return True


@contextmanager
def terminal(
    *arguments: str | Path, columns: int = 60, rows: int = 24, **options: Any
) -> Generator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    quiet = ("COLUMNS", "LINES", "CI", "FORCE_COLOR", "TTY_COMPATIBLE")
    environment = {name: value for name, value in os.environ.items() if name not in quiet}

    def take_terminal() -> None:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=options.get("stdin", theirs),
        stdout=theirs,
        stderr=theirs,
        cwd=options.get("folder"),
        env={
            **environment,
            "TERM": options.get("kind", "xterm"),
            "PYTHONUTF8": "1",
            **options.get("environment", {}),
        },
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509
    )
    try:
        yield Terminal(process, ours, theirs)
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)
        os.close(theirs)
