"""Turns: a writer that keeps losing the race for the end of the stream asks the others to wait.

Nothing depends on it but fairness. Who is asked holds its next commit back until it sees the item
of the one who asked, or for a moment at most, should that one be gone.
"""

import asyncio
from typing import Final

from factwire.journal.nats.link import Link, Lost, Msg

TURN: Final = 0.25
"""Seconds for which a writer holds back at most."""


class Turns:
    """The turn of another writer, if one asked for it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._subject = f"factwire.turn.{link.place.name}"
        self._asked = ""
        self._until = 0.0
        self._free = asyncio.Event()
        self._free.set()

    async def listen(self) -> None:
        """Hear of those who ask."""
        await self._link.listen(self._subject, self._hear)

    async def ask(self, name: str) -> None:
        """Have the others wait until the item of this name is written."""
        try:
            await self._link.send(self._subject, name.encode(), {})
        except Lost:
            # The write that asks will find out by itself, and its answer is the one that counts.
            return

    def over(self, name: str) -> None:
        """An item of this name was written."""
        if name == self._asked:
            self._free.set()

    async def wait(self) -> None:
        """Return when nobody else has the turn."""
        if self._free.is_set():
            return
        try:
            async with asyncio.timeout_at(self._until):
                await self._free.wait()
        except TimeoutError:
            self._free.set()

    async def _hear(self, msg: Msg) -> None:
        self._asked = msg.data.decode(errors="replace")
        self._until = asyncio.get_running_loop().time() + TURN
        self._free.clear()
