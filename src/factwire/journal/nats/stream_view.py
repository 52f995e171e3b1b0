"""The state of a journal, kept level with its stream, and checkpoints of it.

One lock orders everything that reads from or writes to the end of the stream. A write says where it
believes the stream to end. When it ends elsewhere, or no answer comes, what came is read first: the
writer then finds its own item, or builds it anew on what the others wrote. A writer that keeps
losing this race asks the others to hold back for a moment; nothing depends on that but fairness.

A checkpoint is the derived state as of one item, so that opening reads only what came after. It is
never the truth: one that is missing, damaged or of another journal costs time and nothing else. One
that is ahead of the stream says that the stream was put back to an older copy; the journal then
begins a new epoch.
"""

import asyncio
import sys
from array import array
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from itertools import count
from secrets import token_hex
from typing import Final

import msgspec

from factwire.journal.admission import ExistingFact
from factwire.journal.chunks import Record
from factwire.journal.cursor import new_epoch
from factwire.journal.errors import JournalCorrupt, JournalError
from factwire.journal.followers import CommitSignal
from factwire.journal.nats.journal_state import (
    ChunkContents,
    PlacedRecord,
    StreamState,
    compute_fingerprints,
)
from factwire.journal.nats.segments import PageCache, SegmentPage, StreamSegment, find_existing_in
from factwire.journal.nats.server_connection import (
    RECONNECT,
    Lost,
    NatsConnection,
    NatsMessage,
    log,
)
from factwire.journal.nats.stream_log import (
    EpochStart,
    ItemBody,
    StreamConflict,
    StreamItem,
    StreamLog,
    decode_item,
    encode_item,
)
from factwire.journal.thread_catalogue import CatalogueRecord

HOLD_BACK_SECONDS: Final = 0.25
"""Seconds for which a writer holds back at most."""


class WriteTurns:
    """The turn of another writer, if one asked for it."""

    def __init__(self, link: NatsConnection) -> None:
        self._link = link
        self._subject = f"factwire.turn.{link.place.name}"
        self._requester = ""
        self._until = 0.0
        self._free = asyncio.Event()
        self._free.set()

    async def listen(self) -> None:
        """Hear of those who ask."""
        await self._link.listen(self._subject, self._on_request)

    async def ask(self, name: str) -> None:
        """Have the others wait until the item of this name is written."""
        try:
            await self._link.send(self._subject, name.encode(), {})
        except Lost:
            # The write that asks will find out by itself, and its answer is the one that counts.
            return

    def end(self, name: str) -> None:
        """An item of this name was written."""
        if name == self._requester:
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

    async def _on_request(self, msg: NatsMessage) -> None:
        self._requester = msg.data.decode(errors="replace")
        self._until = asyncio.get_running_loop().time() + HOLD_BACK_SECONDS
        self._free.clear()


PATIENT_CONFLICTS: Final = 3
"""Lost races after which a writer asks the others for a turn."""

SEND_TURNS: Final = 4
"""Turns of the event loop after which a message is on its way."""

Build = Callable[[], Awaitable[Sequence[ItemBody]]]
"""What to write on the state as it is now; an empty answer means: nothing any more."""


class StreamView:
    """The state, its pages and the way to write; `tip` is how far the stream is known to go."""

    def __init__(self, link: NatsConnection, log: StreamLog, bell: CommitSignal) -> None:
        self.link = link
        self.log = log
        self.turns = WriteTurns(link)
        self.state = StreamState()
        self.pages = PageCache(log)
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

        async def build() -> Sequence[ItemBody]:
            return [EpochStart(epoch=new_epoch())] if self.state.epoch == old else ()

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
        contents: Callable[[], ChunkContents] | None = None,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
    ) -> bool:
        """Write what `build` says, once; False where it says nothing. The lock is held.

        `meanwhile` is awaited while the server is at work.
        """
        name = f"{self._writer}-{next(self._numbers)}"
        self.state.await_item(name)
        deadline = self.link.deadline()
        conflicts = 0
        while item_bodies := await build():
            mine = self._begin()
            bodies = [encode_item(each) for each in item_bodies]
            try:
                await self.link.wait_until_up(deadline)
                items = await self._publish(bodies, name, meanwhile)
            except StreamConflict as conflict:
                conflicts += 1
                if conflicts % PATIENT_CONFLICTS == 0:
                    await self.turns.ask(name)
                await self._yield_to_others(conflict, deadline)
            except Lost:
                await self.link.pause(deadline)
                await self.catch_up()
            else:
                for each, item in zip(item_bodies, items, strict=True):
                    self.state.take(each, item, contents() if contents else None)
                    self.pages.put(item.at, each)
                self._fresh = mine
                self._bell.notify()
                return True
            if self.state.arrived:
                return True
        return False

    async def _publish(
        self,
        bodies: list[tuple[str, bytes]],
        name: str,
        meanwhile: Callable[[], Awaitable[None]] | None,
    ) -> list[StreamItem]:
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

    async def load_pages(
        self, segments: Sequence[StreamSegment], *, locked: bool = False
    ) -> list[SegmentPage]:
        """The pages of segments, in their order, as they are kept now."""
        found = await self.pages.get(segments)
        if any(each.at not in found for each in segments):
            # Another process may just have put something shorter in their place.
            await (self.catch_up() if locked else self.refresh())
            segments = [self.state.directory.find_holding(each.first) for each in segments]
            found = await self.pages.get(segments)
        for each in segments:
            if each.at not in found:
                raise JournalCorrupt("the stream lost facts", first=each.first, last=each.last)
        return [found[each.at] for each in segments]

    async def find_existing(
        self, ids: Sequence[str], marks: Sequence[int] | None = None, *, locked: bool = False
    ) -> dict[str, ExistingFact]:
        """Those of the ids that are taken, with what they are taken by."""
        if marks is None:
            marks = compute_fingerprints(ids)
        hits = self.state.ids.find_taken(marks)
        if not hits:
            return {}
        seqs = {seq for _, seq in hits}
        wanted = {ids[place] for place, _ in hits}
        directory = self.state.directory
        segments = {each.first: each for each in map(directory.find_holding, sorted(seqs))}
        known: dict[str, ExistingFact] = {}
        for page in await self.load_pages(list(segments.values()), locked=locked):
            known.update(find_existing_in(page, seqs, wanted))
        return known

    async def _take_in(self, *, beyond: bool) -> None:
        before = self.state.at
        async for item in self.log.items(before + 1, self.tip, beyond=beyond):
            self.pages.put(item.at, self.state.apply(item))
            self.turns.end(item.name)
        if self.state.at != before:
            self._bell.notify()

    async def _yield_to_others(self, conflict: StreamConflict, deadline: float) -> None:
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
                raise JournalCorrupt(
                    f"the messages after message {before} are missing from the stream"
                )
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
                    f"the stream ends at {last}, but {self.state.at} was acknowledged; the server "
                    "was restored from an older copy or did not flush to disk; open the journal "
                    "again"
                )
                raise JournalCorrupt(self.state.broken)
            await asyncio.sleep(RECONNECT)
        self.check_end = False


EVERY: Final = 50_000
"""Facts between two checkpoints of a small journal."""

SHARE: Final = 16
"""In a large one, a checkpoint for each such part of it: the cost per fact stays the same."""

ON_CLOSE: Final = 1_000
"""Facts that make a checkpoint worth its while when the journal is closed."""

PAGE: Final = 32_768
"""Fingerprints in a page; a full page is written once."""

_DIGEST: Final = 32


class StateImage(msgspec.Struct, frozen=True, kw_only=True):
    """A state as bytes; `pages` are places of fingerprints, `rest` those after the last page."""

    order: str
    at: int
    epoch: str
    epoch_at: int
    hash: bytes
    floor: int
    base: int
    base_hash: bytes
    head: int
    columns: tuple[bytes, ...]
    keys: dict[str, bytes]
    threads: list[CatalogueRecord]
    links: list[tuple[int, Record]]
    snapshots: list[tuple[str, str, dict[int, tuple[int, int]]]]
    pages: list[tuple[int, int]]
    rest: bytes
    replaced_chunks: bytes = b""
    replaced_snapshots: bytes = b""


_decoder: Final = msgspec.msgpack.Decoder(StateImage)


class StateCheckpoint:
    """The newest checkpoint of a journal, and when to write the next."""

    def __init__(self, mirror: StreamView, store: StreamLog) -> None:
        self._mirror = mirror
        self._store = store
        self._end = 0
        self._head = 0
        self._pages: list[tuple[int, int]] = []
        self._saving: asyncio.Task[None] | None = None

    async def restore(self) -> bool:
        """Begin from the newest checkpoint; True where the stream is older than it."""
        self._end = await self._store.last()
        image = await self._load()
        if image is None or not await self._is_of_this_journal(image):
            return False
        if await self._mirror.log.last() < image.at:
            return True
        pages = await self._store.fetch(image.pages)
        if len(pages) < len(image.pages):
            return False
        bodies = [pages[at].body for at, _ in image.pages]
        self._mirror.state = await asyncio.to_thread(_build_state, image, bodies)
        self._adopt(image)
        return False

    def save_when_due(self) -> None:
        """Write one in the background if it is time."""
        head = self._mirror.state.head
        due = head - self._head >= max(EVERY, head // SHARE)
        if due and (self._saving is None or self._saving.done()):
            self._head = head
            self._saving = asyncio.create_task(self.save(), name="factwire-nats-checkpoint")

    async def close(self) -> None:
        """Wait for one that is being written, or write a last one."""
        if self._saving is not None:
            await self._saving
        if self._mirror.state.head - self._head >= ON_CLOSE:
            await self.save()

    async def save(self) -> None:
        """Write a checkpoint; one that cannot be written is reported and tried again later."""
        state = self._mirror.state
        if state.damage() is not None or not state.epoch:
            return
        try:
            await self._save(state)
        except (JournalError, Lost) as error:
            log.warning("%s: no checkpoint: %s", self._mirror.link.place.shown, error)

    async def _save(self, state: StreamState) -> None:
        full = len(state.ids.prints) // PAGE
        prints = [_cut_print_page(state, page) for page in range(len(self._pages), full)]
        at = self._end + 1
        places: list[tuple[int, int]] = []
        for page in prints:
            places.append((at, self._store.parts(page)))
            at += places[-1][1]
        image = _build_image(
            state, [*self._pages, *places], state.ids.prints[full * PAGE :].tobytes()
        )
        body = msgspec.msgpack.encode(image)
        items = [("ids", page) for page in prints]
        items.append(("image", sha256(body).digest() + body))
        name = f"{image.epoch}-{image.at}"
        try:
            written = await self._store.publish(items, name=name, expected=self._end)
        except StreamConflict:
            # Another process wrote one: build on that the next time.
            self._end = await self._store.last()
            newer = await self._load()
            if newer is not None and newer.epoch == state.epoch:
                self._adopt(newer)
            return
        self._end = written[-1].end
        self._adopt(image)
        await self._store.purge("image", written[-1].at)

    async def _load(self) -> StateImage | None:
        item = await self._store.newest("image")
        return None if item is None else _read_image(item)

    def _adopt(self, image: StateImage) -> None:
        self._pages, self._head = image.pages, image.head

    async def _is_of_this_journal(self, image: StateImage) -> bool:
        found = await self._mirror.log.fetch([(image.epoch_at, 1)])
        item = found.get(image.epoch_at)
        item_body = item and decode_item(item.kind, item.body)
        return isinstance(item_body, EpochStart) and item_body.epoch == image.epoch


def _read_image(item: StreamItem) -> StateImage | None:
    body = item.body[_DIGEST:]
    if sha256(body).digest() != item.body[:_DIGEST]:
        return None
    try:
        image = _decoder.decode(body)
    except msgspec.DecodeError:
        return None
    return image if image.order == sys.byteorder else None


def _cut_print_page(state: StreamState, page: int) -> bytes:
    return state.ids.prints[page * PAGE : (page + 1) * PAGE].tobytes()


def _build_image(state: StreamState, pages: list[tuple[int, int]], rest: bytes) -> StateImage:
    head, columns = state.directory.image()
    return StateImage(
        order=sys.byteorder,
        at=state.at,
        epoch=state.epoch,
        epoch_at=state.epoch_at,
        hash=state.hash,
        floor=state.floor,
        base=state.base,
        base_hash=state.base_hash,
        head=head,
        columns=columns,
        keys=state.keys.image(),
        threads=list(state.threads.values()),
        links=[(link.at, link.record) for link in state.links],
        snapshots=[(*name, places) for name, places in state.snapshots.items()],
        pages=pages,
        rest=rest,
        replaced_chunks=state.replaced_chunks.tobytes(),
        replaced_snapshots=state.replaced_snapshots.tobytes(),
    )


def _build_state(image: StateImage, pages: list[bytes]) -> StreamState:
    state = StreamState()
    state.at, state.epoch, state.epoch_at = image.at, image.epoch, image.epoch_at
    state.hash, state.floor = image.hash, image.floor
    state.base, state.base_hash = image.base, image.base_hash
    state.directory.restore(image.head, image.columns)
    state.keys.restore(image.keys)
    state.threads = {record.thread_id: record for record in image.threads}
    state.thread_floors = {each.thread_id: each.floor for each in image.threads if each.floor}
    state.links = [PlacedRecord(at, record) for at, record in image.links]
    state.snapshots = {(thread, kind): places for thread, kind, places in image.snapshots}
    state.replaced_chunks.frombytes(image.replaced_chunks)
    state.replaced_snapshots.frombytes(image.replaced_snapshots)
    for page in (*pages, image.rest):
        state.ids.extend(array("Q", page))
    return state
