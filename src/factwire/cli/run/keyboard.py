"""Keys while a turn runs: each is handed over as it is pressed, and counts only for a question.

A key that was pressed before a question was asked does not answer it.
"""

import asyncio
import os
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from factwire.cli.play.keys import KeyReader, keys_at_once

_READ: Final = 1024


class Keyboard:
    """The terminal that is standard input."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._reader = KeyReader()
        self._pressed: asyncio.Queue[str] = asyncio.Queue()
        self.gone = False

    @contextmanager
    def listening(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        with keys_at_once(self._terminal):
            loop.add_reader(self._terminal, self._read)
            try:
                yield
            finally:
                loop.remove_reader(self._terminal)

    def forget(self) -> None:
        """Drop what was pressed so far."""
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)
        self._pressed = asyncio.Queue()

    async def key(self) -> str:
        """The next key."""
        return await self._pressed.get()

    def _read(self) -> None:
        try:
            data = os.read(self._terminal, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.gone = True
            asyncio.get_running_loop().remove_reader(self._terminal)
            return
        for key in self._reader.feed(data):
            self._pressed.put_nowait(key)


def keyboard() -> Keyboard | None:
    """The keyboard, where somebody sits at a terminal."""
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            return Keyboard(sys.stdin.fileno())
    except (AttributeError, OSError, ValueError):
        pass
    return None
