"""Keys from a terminal: bytes become names, and afterwards the terminal is what it was before.

While keys are read, the terminal hands over each one at once and shows none; Ctrl-C still
interrupts, Ctrl-Z does nothing.
"""

import os
import re
import select
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_NAMES: Final = {
    b" ": "space",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
}
_FINALS: Final = {
    b"A": "up",
    b"B": "down",
    b"C": "right",
    b"D": "left",
    b"H": "home",
    b"F": "end",
}
_NUMBERS: Final = {
    b"1": "home",
    b"4": "end",
    b"5": "pageup",
    b"6": "pagedown",
    b"7": "home",
    b"8": "end",
}
"""What terminals send between `ESC [` and `~`."""

_SEQUENCE: Final = re.compile(rb"\x1b(?:\[([0-9;]{0,16})([@-~])|O([@-~]))")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-9;]{0,16}|O)?")
_READ: Final = 1024


class KeyReader:
    """Takes bytes as they come, in pieces of any size, and gives the names of keys."""

    def __init__(self) -> None:
        self._waiting = b""

    @property
    def has_partial_key(self) -> bool:
        """Whether a key has begun that may go on."""
        return bool(self._waiting)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are whole now."""
        self._waiting += data
        keys: list[str] = []
        while self._waiting and not _UNFINISHED.fullmatch(self._waiting):
            keys += self._take()
        return keys

    def flush(self) -> list[str]:
        """Nothing more comes: what has begun was the escape key, or nothing known."""
        alone = self._waiting == b"\x1b"
        self._waiting = b""
        return ["escape"] if alone else []

    def _take(self) -> list[str]:
        found = _SEQUENCE.match(self._waiting)
        if found:
            self._waiting = self._waiting[found.end() :]
            numbers, end, single = found.groups()
            first = (numbers or b"").partition(b";")[0]
            name = _NUMBERS.get(first) if end == b"~" else _FINALS.get(end or single)
            return [name] if name else []
        byte, self._waiting = self._waiting[:1], self._waiting[1:]
        if byte == b"\x1b":
            return ["escape"]
        name = _NAMES.get(byte) or (byte.decode() if b"!" <= byte <= b"~" else None)
        return [name] if name else []


@contextmanager
def open_terminal() -> Generator[int | None]:
    """A terminal to read keys from: standard input, or the controlling terminal where that is not
    one; None where there is none at all.
    """
    try:
        if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
            yield sys.stdin.fileno()
            return
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except (OSError, ValueError):
        yield None
        return
    try:
        yield terminal
    finally:
        os.close(terminal)


@contextmanager
def keys_at_once(terminal: int) -> Generator[None]:
    """Have each key handed over as it is pressed; afterwards all is as it was."""
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        mode = termios.tcgetattr(terminal)
        mode[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def read_keys(terminal: int, seconds: float) -> bytes | None:
    """What was pressed within a time, perhaps nothing; None once the terminal is gone."""
    try:
        ready, _, _ = select.select([terminal], [], [], seconds)
        return (os.read(terminal, _READ) or None) if ready else b""
    except OSError:
        return None
