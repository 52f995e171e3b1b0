"""A checkpoint: the derived state as of one item, so that opening reads only what came after.

It lives in a stream of its own and is never the truth: one that is missing, damaged or of another
journal costs time and nothing else. A checkpoint that is ahead of the stream says that the stream
was put back to an older copy; the journal then begins a new epoch.
"""

import asyncio
import sys
from array import array
from hashlib import sha256
from typing import Final

import msgspec

from factwire.journal.catalogue import ThreadRecord
from factwire.journal.chain import Record
from factwire.journal.errors import JournalError
from factwire.journal.nats.link import Lost, log
from factwire.journal.nats.log import Conflict, Item, Log
from factwire.journal.nats.mirror import Mirror
from factwire.journal.nats.state import Link, State
from factwire.journal.nats.wire import Epoch, decode

EVERY: Final = 50_000
"""Facts between two checkpoints of a small journal."""

SHARE: Final = 16
"""In a large one, a checkpoint for each such part of it: the cost per fact stays the same."""

ON_CLOSE: Final = 1_000
"""Facts that make a checkpoint worth its while when the journal is closed."""

PAGE: Final = 32_768
"""Fingerprints in a page; a full page is written once."""

_DIGEST: Final = 32


class Image(msgspec.Struct, frozen=True, kw_only=True):
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
    threads: list[ThreadRecord]
    links: list[tuple[int, Record]]
    snapshots: list[tuple[str, str, dict[int, tuple[int, int]]]]
    pages: list[tuple[int, int]]
    rest: bytes


_decoder: Final = msgspec.msgpack.Decoder(Image)


class Checkpoint:
    """The newest checkpoint of a journal, and when to write the next."""

    def __init__(self, mirror: Mirror, store: Log) -> None:
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
        self._mirror.state = await asyncio.to_thread(_state_of, image, bodies)
        self._adopt(image)
        return False

    def maybe(self) -> None:
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

    async def _save(self, state: State) -> None:
        full = len(state.ids.prints) // PAGE
        prints = [_print_page(state, page) for page in range(len(self._pages), full)]
        at = self._end + 1
        places: list[tuple[int, int]] = []
        for page in prints:
            places.append((at, self._store.parts(page)))
            at += places[-1][1]
        image = _image_of(state, [*self._pages, *places], state.ids.prints[full * PAGE :].tobytes())
        body = msgspec.msgpack.encode(image)
        items = [("ids", page) for page in prints]
        items.append(("image", sha256(body).digest() + body))
        name = f"{image.epoch}-{image.at}"
        try:
            written = await self._store.publish(items, name=name, expected=self._end)
        except Conflict:
            # Another process wrote one: build on that the next time.
            self._end = await self._store.last()
            newer = await self._load()
            if newer is not None and newer.epoch == state.epoch:
                self._adopt(newer)
            return
        self._end = written[-1].end
        self._adopt(image)
        await self._store.purge("image", written[-1].at)

    async def _load(self) -> Image | None:
        item = await self._store.newest("image")
        return None if item is None else _read_image(item)

    def _adopt(self, image: Image) -> None:
        self._pages, self._head = image.pages, image.head

    async def _is_of_this_journal(self, image: Image) -> bool:
        found = await self._mirror.log.fetch([(image.epoch_at, 1)])
        item = found.get(image.epoch_at)
        said = item and decode(item.kind, item.body)
        return isinstance(said, Epoch) and said.epoch == image.epoch


def _read_image(item: Item) -> Image | None:
    body = item.body[_DIGEST:]
    if sha256(body).digest() != item.body[:_DIGEST]:
        return None
    try:
        image = _decoder.decode(body)
    except msgspec.DecodeError:
        return None
    return image if image.order == sys.byteorder else None


def _print_page(state: State, page: int) -> bytes:
    return state.ids.prints[page * PAGE : (page + 1) * PAGE].tobytes()


def _image_of(state: State, pages: list[tuple[int, int]], rest: bytes) -> Image:
    head, columns = state.directory.image()
    return Image(
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
    )


def _state_of(image: Image, pages: list[bytes]) -> State:
    state = State()
    state.at, state.epoch, state.epoch_at = image.at, image.epoch, image.epoch_at
    state.hash, state.floor = image.hash, image.floor
    state.base, state.base_hash = image.base, image.base_hash
    state.directory.restore(image.head, image.columns)
    state.keys.restore(image.keys)
    state.threads = {record.thread_id: record for record in image.threads}
    state.thread_floors = {each.thread_id: each.floor for each in image.threads if each.floor}
    state.links = [Link(at, record) for at, record in image.links]
    state.snapshots = {(thread, kind): places for thread, kind, places in image.snapshots}
    for page in (*pages, image.rest):
        state.ids.extend(array("Q", page))
    return state
