"""Interrupts: the first one asks, the second one means it.

Ctrl-C, SIGTERM and a terminal that hangs up are the same. Whoever ignores the first is left where
it stands by the second: the process ends within a moment, and the next one finds the turn.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from factwire.cli.failures import INTERRUPTED

_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")

_MOMENT: Final = 1.0
"""Seconds in which a process that is told twice ends by itself, before it is ended."""


class Interrupts:
    """`first` is called for an interrupt, `second` for another one before `settled`."""

    def __init__(self, first: Callable[[], None], second: Callable[[], None]) -> None:
        self._first = first
        self._second = second
        self._asked = False

    def settled(self) -> None:
        """What the first interrupt asked for is done; the next one is a first again."""
        self._asked = False

    def interrupt(self) -> None:
        if self._asked:
            self._second()
        else:
            self._asked = True
            self._first()

    def ask(self) -> None:
        """As a first interrupt, if there was none; never as a second."""
        if not self._asked:
            self.interrupt()

    @contextmanager
    def heard(self) -> Generator[None]:
        """Hear signals for as long as the context lasts."""
        loop = asyncio.get_running_loop()
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        for number in numbers:
            loop.add_signal_handler(number, self.interrupt)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def end_soon() -> None:
    """See to it that the process ends, whatever keeps it."""
    timer = threading.Timer(_MOMENT, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(INTERRUPTED)
