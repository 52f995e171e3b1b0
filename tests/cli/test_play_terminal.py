"""`factwire play` on a real, if pretended, terminal: keys, sizes, and what it leaves behind."""

import signal
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_commands import lines
from tests.cli.cli_recordings import HOSTILE, turn
from tests.cli.terminals import Terminal
from tests.cli.terminals import terminal as on_terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def terminal(*arguments: str | Path, **options: Any) -> AbstractContextManager[Terminal]:
    return on_terminal("play", *arguments, **options)


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
    with path.open("rb") as stdin, terminal("-", "--at", "7", stdin=stdin) as shown:
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
