"""The other processes that have a journal open: what they write, and where their readers stand.

The server hints at every message it stored. A hint only says that it is time to look; one that is
lost costs a few seconds, because a process also looks by itself.
"""

import asyncio
from itertools import count
from typing import Final

import msgspec

from factwire.journal.errors import JournalError
from factwire.journal.live import Readers
from factwire.journal.nats.link import Link, Lost, Msg, log
from factwire.journal.nats.mirror import Mirror

POLL: Final = 5.0
"""Seconds after which a process looks for itself."""

ASK_OTHERS: Final = 0.25
"""Seconds that other processes have to say where their readers stand, before facts are removed."""


class Neighbours:
    """Keeps the state of one process level with what the others do."""

    def __init__(self, link: Link, mirror: Mirror, readers: Readers) -> None:
        self._link = link
        self._mirror = mirror
        self._readers = readers
        self._look = asyncio.Event()
        self._holds = f"factwire.holds.{link.place.name}"

    async def listen(self, hints: str) -> None:
        await self._link.listen(hints, self._hint)
        await self._link.listen(self._holds, self._tell)
        await self._mirror.turns.listen()

    def reconnected(self) -> None:
        """Hints may have been lost, and more than hints."""
        self._mirror.check_end = True
        self._look.set()

    async def follow(self) -> None:
        """Take in what others write, without end."""
        while True:
            overdue = await self._wait()
            try:
                async with self._mirror.lock:
                    # A hint of what this process wrote itself is old news by now.
                    behind = self._mirror.tip > self._mirror.state.at
                    if overdue or behind or self._mirror.check_end:
                        await self._mirror.catch_up()
            except JournalError as error:
                log.warning("%s: %s", self._link.place.shown, error)

    async def positions(self) -> dict[str, int]:
        """Where the readers of the others stand; one that stays silent is not waited for."""
        found: dict[str, int] = {}
        processes = count(1)

        def take(msg: Msg) -> bool:
            if not msg.data:
                return False
            process = next(processes)
            positions = msgspec.json.decode(msg.data, type=dict[str, int])
            found.update((f"{name} of process {process}", at) for name, at in positions.items())
            return True

        try:
            await self._link.collect(self._holds, {}, take, ASK_OTHERS)
        except Lost:
            return found
        return found

    async def _wait(self) -> bool:
        """Wait for a hint; True where none came for a while."""
        try:
            async with asyncio.timeout(POLL):
                await self._look.wait()
        except TimeoutError:
            return True
        self._look.clear()
        return False

    async def _hint(self, msg: Msg) -> None:
        at = int((msg.headers or {}).get("Nats-Sequence", "0"))
        if at > self._mirror.state.at:
            self._mirror.tip = max(self._mirror.tip, at)
            self._look.set()

    async def _tell(self, msg: Msg) -> None:
        await self._link.answer(msg, msgspec.json.encode(self._readers.positions()))
