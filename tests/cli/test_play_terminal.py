"""`factwire play` on a real, if pretended, terminal: keys, sizes, and what it leaves behind."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.cli.commands import COMMAND, lines
from tests.cli.runs import HOSTILE, turn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

PATIENCE = 60.0
STYLE = re.compile(r"\x1b\[[0-9;]*m")
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


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
        os.write(self._ours, keys)
        return self.until(expected)

    def until(self, expected: str) -> str:
        end = monotonic() + PATIENCE
        while expected not in STYLE.sub("", self.seen):
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
        [*COMMAND, "play", *map(str, arguments)],
        stdin=options.get("stdin", theirs),
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": options.get("kind", "xterm"), "PYTHONUTF8": "1"},
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "facts.ndjson"
    file.write_text(lines(*turn()))
    return file


@pytest.mark.requirement("cli.play.keys")
@pytest.mark.requirement("cli.play.view")
@pytest.mark.requirement("cli.play.terminal")
def test_keys_go_through_a_run_and_quitting_restores_the_terminal(path: Path):
    with terminal(path, "--at", "7") as shown:
        first = shown.until("‖ 7/11")
        assert ENTER in first
        assert "? Run the tests?  high" in first
        for keys, expected in (
            (b"\x1b[C", "‖ 8/11"),
            (b"\x1b[D\x1b[D", "‖ 6/11"),
            (b"\x1b[B", "‖ 11/11"),
            (b"\x1b[A", "‖ 1/11"),
            (b"\x1b[F", "‖ 11/11"),
            (b"\x1b[H", "‖ 0/11"),
            (b"\x1b[6~", "‖ 1/11"),
            (b"g", "go to sequence ▌"),
            (b"5", "go to sequence 5▌"),
            (b"\r", "‖ 5/11"),
            (b"+", "2×"),
            (b"?", "this help"),
            (b"x", "‖ 5/11"),
            (b" ", "▶ 5/11"),
            (b" ", "‖ "),
            (b"\x1a", ""),
            (b"\x1b[F", "‖ 11/11"),
        ):
            shown.press(keys, expected)
        assert not shown.restored
        shown.press(b"q", LEAVE)
        assert (shown.end(), shown.restored) == (0, True)
        assert "\x1b[?25h" in shown.seen


@pytest.mark.requirement("cli.play.pace")
@pytest.mark.requirement("cli.play.terminal")
@pytest.mark.parametrize("speed", ["max", "100"])
def test_a_run_plays_to_its_end_by_itself(path: Path, speed: str):
    with terminal(path, "--speed", speed) as shown:
        assert "completed" in shown.until("‖ 11/11")
        shown.press(b"q", LEAVE)
        assert (shown.end(), shown.restored) == (0, True)


@pytest.mark.requirement("cli.play.terminal")
def test_being_interrupted_restores_the_terminal(path: Path):
    with terminal(path, "--at", "3") as shown:
        shown.until("‖ 3/11")
        shown.press(b"\x03", LEAVE)
        assert (shown.end(), shown.restored) == (130, True)
        assert "Traceback" not in shown.seen


@pytest.mark.requirement("cli.play.terminal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_restores_the_terminal(path: Path, number: signal.Signals):
    with terminal(path, "--at", "3") as shown:
        shown.until("‖ 3/11")
        shown.process.send_signal(number)
        shown.until(LEAVE)
        assert (shown.end(), shown.restored) == (128 + number, True)


@pytest.mark.requirement("cli.play.sizes")
def test_a_terminal_that_changes_its_size_is_filled_again(path: Path):
    with terminal(path, "--at", "7") as shown:
        assert "╮╭" not in shown.until("‖ 7/11")
        shown.seen = ""
        shown.resize(120, 40)
        assert "Process" in shown.until("╮╭")
        shown.seen = ""
        shown.resize(40, 10)
        assert "╮╭" not in shown.until("‖ 7/11")
        shown.press(b"q", LEAVE)
        assert shown.end() == 0


@pytest.mark.requirement("cli.play.keys")
def test_facts_from_a_pipe_leave_the_keys_to_the_terminal(path: Path):
    with path.open("rb") as given, terminal("-", "--at", "7", stdin=given) as shown:
        shown.until("‖ 7/11")
        shown.press(b"\x1b[C", "‖ 8/11")
        shown.press(b"q", LEAVE)
        assert (shown.end(), shown.restored) == (0, True)


@pytest.mark.requirement("cli.play.harmless")
def test_hostile_facts_do_not_reach_the_terminal(tmp_path: Path):
    path = tmp_path / "facts.ndjson"
    path.write_text(lines(*turn(say=HOSTILE, title=HOSTILE)))
    with terminal(path, "--at", "11", columns=120) as shown:
        seen = shown.until("‖ 11/11")
        assert "\\x1b[2J" in seen
        assert all(piece not in seen for piece in ("\x1b]0;", "\u202e", "\x07"))
        shown.press(b"q", LEAVE)
        assert shown.end() == 0


@pytest.mark.requirement("cli.play.plain")
def test_a_terminal_that_cannot_be_drawn_on_gets_text(path: Path):
    with terminal(path, kind="dumb") as shown:
        assert (shown.end(), shown.restored) == (0, True)
        assert "Conversation" in shown.seen
        assert "11/11" in shown.seen
        assert "\x1b" not in shown.seen
