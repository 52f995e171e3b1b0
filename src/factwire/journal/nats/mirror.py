"""The state of a journal, kept level with its stream.

One lock orders everything that reads from or writes to the end of the stream. A write says where it
believes the stream to end. When it ends elsewhere, or no answer comes, what came is read first: the
writer then finds its own item, or builds it anew on what the others wrote.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from secrets import token_hex
from typing import Final

from factwire.journal.admission import Known
from factwire.journal.cursor import new_epoch
from factwire.journal.errors import JournalCorrupt
from factwire.journal.live import Bell
from factwire.journal.nats.directory import Segment
from factwire.journal.nats.ids import fingerprints
from factwire.journal.nats.link import RECONNECT, Link, Lost
from factwire.journal.nats.log import Conflict, Item, Log
from factwire.journal.nats.pages import Page, Pages, known_in
from factwire.journal.nats.state import Contents, State
from factwire.journal.nats.turns import Turns
from factwire.journal.nats.wire import Epoch, Said, encode

PATIENT_CONFLICTS: Final = 3
"""Lost races after which a writer asks the others for a turn."""

SEND_TURNS: Final = 4
"""Turns of the event loop after which a message is on its way."""

Build = Callable[[], Awaitable[Sequence[Said]]]
"""What to write on the state as it is now; an empty answer means: nothing any more."""


class Mirror:
    """The state, its pages and the way to write; `tip` is how far the stream is known to go."""

    def __init__(self, link: Link, log: Log, bell: Bell) -> None:
        self.link = link
        self.log = log
        self.turns = Turns(link)
        self.state = State()
        self.pages = Pages(log)
        self.lock = asyncio.Lock()
        self.tip = 0
        self.check_end = False
        self._bell = bell
        self._writer = token_hex(8)
        self._numbers = count(1)
        self._begun = 0
        self._fresh = 0

    async def begin(self) -> None:
        """Take in the stream, and begin the journal's life where nobody has yet."""
        async with self.lock:
            await self.catch_up()
            if not self.state.epoch:
                await self.renew_epoch(self.state.epoch)

    async def renew_epoch(self, old: str) -> None:
        """Begin a new life, unless another process was quicker; the lock is held."""

        async def build() -> Sequence[Said]:
            return [Epoch(epoch=new_epoch())] if self.state.epoch == old else ()

        await self.write(build)

    def ticket(self) -> int:
        """A moment, for `level`."""
        return self._begun

    async def level(self, since: int) -> None:
        """Be no older than a moment; the lock is held."""
        if self._fresh <= since:
            await self.catch_up()

    async def refresh(self) -> None:
        """Take in what was written before this call by whatever process."""
        since = self.ticket()
        async with self.lock:
            await self.level(since)

    async def catch_up(self) -> None:
        """Take in all that the stream has now; the lock is held."""
        mine = self._begin()
        if self.check_end:
            await self._ensure_whole()
        await self._take_in(beyond=True)
        self._fresh = mine

    async def write(
        self,
        build: Build,
        contents: Callable[[], Contents] | None = None,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
    ) -> bool:
        """Write what `build` says, once; False where it says nothing. The lock is held.

        `meanwhile` is awaited while the server is at work.
        """
        name = f"{self._writer}-{next(self._numbers)}"
        self.state.await_item(name)
        deadline = self.link.deadline()
        conflicts = 0
        while said := await build():
            mine = self._begin()
            bodies = [encode(each) for each in said]
            try:
                await self.link.until_up(deadline)
                items = await self._publish(bodies, name, meanwhile)
            except Conflict as conflict:
                conflicts += 1
                if conflicts % PATIENT_CONFLICTS == 0:
                    await self.turns.ask(name)
                await self._yield_to_others(conflict, deadline)
            except Lost:
                await self.link.pause(deadline)
                await self.catch_up()
            else:
                for each, item in zip(said, items, strict=True):
                    self.state.take(each, item, contents() if contents else None)
                    self.pages.put(item.at, each)
                self._fresh = mine
                self._bell.ring()
                return True
            if self.state.arrived:
                return True
        return False

    async def _publish(
        self,
        bodies: list[tuple[str, bytes]],
        name: str,
        meanwhile: Callable[[], Awaitable[None]] | None,
    ) -> list[Item]:
        publishing = self.log.publish(bodies, name=name, expected=self.state.at)
        if meanwhile is None:
            return await publishing
        under_way = asyncio.ensure_future(publishing)
        try:
            for _ in range(SEND_TURNS):
                await asyncio.sleep(0)
            await meanwhile()
            return await under_way
        finally:
            under_way.cancel()

    async def pages_of(self, segments: Sequence[Segment], *, locked: bool = False) -> list[Page]:
        """The pages of segments, in their order, as they are kept now."""
        found = await self.pages.get(segments)
        if any(each.at not in found for each in segments):
            # Another process may just have put something shorter in their place.
            await (self.catch_up() if locked else self.refresh())
            segments = [self.state.directory.holding(each.first) for each in segments]
            found = await self.pages.get(segments)
        for each in segments:
            if each.at not in found:
                raise JournalCorrupt("the stream lost facts", first=each.first, last=each.last)
        return [found[each.at] for each in segments]

    async def known(
        self, ids: Sequence[str], marks: Sequence[int] | None = None, *, locked: bool = False
    ) -> dict[str, Known]:
        """Those of the ids that are taken, with what they are taken by."""
        if marks is None:
            marks = fingerprints(ids)
        hits = self.state.ids.taken(marks)
        if not hits:
            return {}
        seqs = {seq for _, seq in hits}
        wanted = {ids[place] for place, _ in hits}
        directory = self.state.directory
        segments = {each.first: each for each in map(directory.holding, sorted(seqs))}
        known: dict[str, Known] = {}
        for page in await self.pages_of(list(segments.values()), locked=locked):
            known.update(known_in(page, seqs, wanted))
        return known

    async def _take_in(self, *, beyond: bool) -> None:
        before = self.state.at
        async for item in self.log.items(before + 1, self.tip, beyond=beyond):
            self.pages.put(item.at, self.state.apply(item))
            self.turns.over(item.name)
        if self.state.at != before:
            self._bell.ring()

    async def _yield_to_others(self, conflict: Conflict, deadline: float) -> None:
        """Take in what others wrote, as quickly as can be: they may be about to write more."""
        before = self.state.at
        if conflict.last is not None and conflict.last > before:
            self.tip = max(self.tip, conflict.last)
            await self._take_in(beyond=False)
        else:
            self.check_end = True
            await self.catch_up()
        if self.state.at == before and not self.state.arrived:
            if asyncio.get_running_loop().time() >= deadline:
                raise JournalCorrupt(f"what follows message {before} of the stream is not there")
            await self.link.pause(deadline)

    def _begin(self) -> int:
        self._begun += 1
        return self._begun

    async def _ensure_whole(self) -> None:
        """After a reconnect: a server that lost what it had acknowledged must not be believed.

        A new leader may take a moment to know all that the old one acknowledged.
        """
        deadline = self.link.deadline()
        while (last := await self.log.last()) < self.state.at:
            if asyncio.get_running_loop().time() >= deadline:
                self.state.broken = (
                    f"the stream ends at {last}, {self.state.at} had been acknowledged; the server "
                    "was restored from an older copy or did not flush: open the journal again"
                )
                raise JournalCorrupt(self.state.broken)
            await asyncio.sleep(RECONNECT)
        self.check_end = False
