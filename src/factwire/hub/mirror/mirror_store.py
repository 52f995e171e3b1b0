"""`MirrorStore`: the journals of joined Edges, one ordinary journal for each.

A mirror has the seqs, the epoch and the chain of the Edge's own journal, so that a cursor of the
Edge is one of the mirror. Uploads are idempotent: what is there already is acknowledged again, a
gap names the seq that is expected, and other bytes at a place that is held are refused and kept
aside for people to look at. An upload belongs to a session; the newest session of an Edge fences
all before it, so that two copies of an Edge never write by turns.

A journal with another epoch, or one whose chain no longer passes the end of its mirror, gets a
new file. The file before it stays as it is.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec

from factwire.edge.hub_upload import UploadSession, UploadStart
from factwire.journal import CatalogueRecord, MirrorConflict, RemovedFact
from factwire.journal.atomic_files import make_private_folder, replace_file
from factwire.journal.blobs import FileBlobs
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.chunks import ChainBatch
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.journal.sqlite.retention import MirrorEnd

STATE_FILE: Final = "mirror.json"
CONFLICTS_KEPT: Final = 16
"""Refused uploads of one Edge that are kept; an Edge that goes on sending them fills no disk."""

OPEN_MIRRORS: Final = 64
"""Mirrors that are kept open while nobody uses them; each has a few threads and files."""

_EDGE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

Clock = Callable[[], str]
"""The time, as facts write it."""


class UploadRefused(Exception):
    """The root of what a store of mirrors refuses by itself; `code` is stable."""

    code: str


class UploadFenced(UploadRefused):
    """A newer session uploads for this Edge; `session` is that one."""

    code = "upload_fenced"

    def __init__(self, session: int) -> None:
        self.session = session
        super().__init__(f"session {session} uploads for this Edge now; begin a new one")


class UnknownEdge(UploadRefused):
    """No Edge of this id has uploaded anything."""

    code = "unknown_edge"


class RefusedUpload(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An upload with other bytes at `first`–`last` than the mirror holds, kept in `file`."""

    at: str
    first: int
    last: int
    file: str


class MirrorStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a mirror holds: everything up to `cursor` and after `floor`, but for `withheld` facts,
    which belong to private threads. `former` are the files of journals that the Edge had before.
    """

    edge_id: str
    runtime_id: str
    epoch: str
    cursor: str
    floor: int
    facts: int
    withheld: int
    session: int
    former: tuple[str, ...]
    refused: tuple[RefusedUpload, ...]


class MirrorState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is written down of a mirror: its newest session, and its files, the last one in use."""

    session: int = 0
    epoch: str = ""
    runtime_id: str = ""
    files: tuple[str, ...] = ()
    refused: tuple[RefusedUpload, ...] = ()


class MirrorReader(Protocol):
    """What reads an open mirror and must let go of it before it closes."""

    async def close(self) -> None: ...


class EdgeMirror:
    """The mirror of one Edge, open."""

    def __init__(self, edge_id: str, folder: Path, clock: Clock) -> None:
        self.edge_id = edge_id
        self.folder = folder
        self.blobs = FileBlobs(folder / "blobs")
        self.reader: MirrorReader | None = None
        self.users = 0
        self.lock = asyncio.Lock()
        """Held while a reader is opened or the journal is replaced."""
        self._clock = clock
        self._state = MirrorState()
        self._journal: SqliteJournal | None = None
        self._intake = asyncio.Lock()

    @property
    def journal(self) -> SqliteJournal:
        """The journal in use; raises `UnknownEdge` before the first session."""
        if self._journal is None:
            raise UnknownEdge(f"no Edge {self.edge_id} has joined this Hub")
        return self._journal

    @property
    def file(self) -> str:
        """The name of the journal's file, which another journal of the Edge never has."""
        return self._state.files[-1]

    @property
    def epoch(self) -> str:
        """The epoch of the journal in use."""
        return self._state.epoch

    @property
    def runtime_id(self) -> str:
        """The id of the Edge's runtime, which its own threads have."""
        return self._state.runtime_id

    async def open(self) -> None:
        """Open what is there of the mirror; an Edge that never began a session has nothing."""
        content = await run_disk_work(_read_state, self.folder / STATE_FILE)
        if content is not None:
            self._journal = await self._open_journal(content.files[-1])
            self._state = content

    async def close(self) -> None:
        """Close the journal and whoever reads it."""
        async with self.lock:
            await self._close_journal()

    async def begin_session(self, start: UploadStart) -> UploadSession:
        """Fence all sessions before; with another epoch, or to restart, in a new file."""
        async with self._intake:
            state = msgspec.structs.replace(
                self._state, session=self._state.session + 1, runtime_id=start.runtime_id
            )
            if start.epoch != state.epoch or start.restart:
                await self._begin_file(state, start.epoch)
            else:
                await self._save(state)
            return self._describe_session(await self.journal.mirror_end())

    async def take_chain(self, session: int, batch: ChainBatch, body: bytes) -> UploadSession:
        """Take in the next part of the chain; `body` is kept where it contradicts what is held.
        Raises `UploadFenced` or `MirrorRefused`.
        """
        async with self._intake:
            self.ensure_newest(session)
            try:
                return self._describe_session(await self.journal.take_chain(batch))
            except MirrorConflict as error:
                await self._keep_refused(error, body)
                raise

    async def take_removed(
        self, session: int, removed: Sequence[RemovedFact], threads: Sequence[CatalogueRecord]
    ) -> None:
        """Take in what the Edge keeps of facts that it removed before the mirror had them."""
        async with self._intake:
            self.ensure_newest(session)
            await self.journal.take_removed(removed, threads)

    async def status(self) -> MirrorStatus:
        """What the mirror holds, and what it refused."""
        stats = await self.journal.stats()
        return MirrorStatus(
            edge_id=self.edge_id,
            runtime_id=self.runtime_id,
            epoch=stats.head.epoch,
            cursor=str(stats.head),
            floor=stats.floor.seq,
            facts=stats.facts,
            withheld=await self.journal.withheld(),
            session=self._state.session,
            former=self._state.files[:-1],
            refused=self._state.refused,
        )

    def ensure_newest(self, session: int) -> None:
        """Raise `UploadFenced` for a session that is not the newest."""
        if session != self._state.session:
            raise UploadFenced(self._state.session)

    def _describe_session(self, end: MirrorEnd) -> UploadSession:
        return UploadSession(
            session=self._state.session,
            acked_seq=end.point.seq,
            acked_hash=end.point.hash.hex(),
            record=end.record.hex(),
        )

    async def _begin_file(self, state: MirrorState, epoch: str) -> None:
        """Replace the journal. Readers see the old one with its name or the new one with its own:
        a position in one means nothing in the other.
        """
        name = f"{epoch}-{len(state.files) + 1}.db"
        state = msgspec.structs.replace(state, epoch=epoch, files=(*state.files, name), refused=())
        await run_disk_work(make_private_folder, self.folder)
        journal = await self._open_journal(name)
        try:
            await journal.become_mirror(epoch)
            await self._write(state)
        except BaseException:
            await journal.__aexit__(None, None, None)
            raise
        async with self.lock:
            await self._close_journal()
            self._journal, self._state = journal, state

    async def _open_journal(self, name: str) -> SqliteJournal:
        return await SqliteJournal(str(self.folder / name)).__aenter__()

    async def _close_journal(self) -> None:
        reader, self.reader = self.reader, None
        if reader is not None:
            await reader.close()
        journal, self._journal = self._journal, None
        if journal is not None:
            await journal.__aexit__(None, None, None)

    async def _keep_refused(self, error: MirrorConflict, body: bytes) -> None:
        state, name = self._state, f"refused-{sha256(body).hexdigest()[:16]}.msgpack"
        if len(state.refused) >= CONFLICTS_KEPT or any(each.file == name for each in state.refused):
            return
        await run_disk_work(replace_file, self.folder / name, body)
        row = RefusedUpload(at=self._clock(), first=error.first, last=error.last, file=name)
        await self._save(msgspec.structs.replace(state, refused=(*state.refused, row)))

    async def _save(self, state: MirrorState) -> None:
        await self._write(state)
        self._state = state

    async def _write(self, state: MirrorState) -> None:
        content = msgspec.json.encode(state)
        await run_disk_work(replace_file, self.folder / STATE_FILE, content)


def _read_state(path: Path) -> MirrorState | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=MirrorState)
    except FileNotFoundError:
        return None


class MirrorStore:
    """The mirrors of a Hub, in a folder for each Edge; an async context manager."""

    def __init__(self, root: Path, clock: Clock, *, open_mirrors: int = OPEN_MIRRORS) -> None:
        self._root = root
        self._clock = clock
        self._most = open_mirrors
        self._open: OrderedDict[str, EdgeMirror] = OrderedDict()
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await run_disk_work(make_private_folder, self._root)
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._opening:
            mirrors = list(self._open.values())
            self._open.clear()
            for mirror in mirrors:
                await mirror.close()

    async def edges(self) -> list[str]:
        """The ids of all Edges that have a mirror."""
        return await run_disk_work(_list_mirrors, self._root)

    def keep(self, mirror: EdgeMirror) -> None:
        """Have a journal read here that is opened elsewhere; it is closed with the others."""
        mirror.users += 1
        self._open[mirror.edge_id] = mirror

    @asynccontextmanager
    async def use(self, edge_id: str, *, create: bool = False) -> AsyncGenerator[EdgeMirror]:
        """The mirror of an Edge, open for as long as the block lasts; raises `UnknownEdge` where
        there is none, unless one is to be made.
        """
        mirror = await self._acquire(edge_id, create=create)
        try:
            yield mirror
        finally:
            mirror.users -= 1

    async def _acquire(self, edge_id: str, *, create: bool) -> EdgeMirror:
        folder = self._root / edge_id
        async with self._opening:
            mirror = self._open.get(edge_id)
            if mirror is None:
                is_there = _EDGE_ID.fullmatch(edge_id) and (
                    create or await run_disk_work((folder / STATE_FILE).exists)
                )
                if not is_there:
                    raise UnknownEdge("no Edge with this id has joined this Hub")
                mirror = EdgeMirror(edge_id, folder, self._clock)
                await mirror.open()
                self._open[edge_id] = mirror
            self._open.move_to_end(edge_id)
            mirror.users += 1
            idle = [each for each in self._open.values() if not each.users]
            for each in idle[: max(0, len(self._open) - self._most)]:
                del self._open[each.edge_id]
                await each.close()
            return mirror


def _list_mirrors(root: Path) -> list[str]:
    return sorted(path.parent.name for path in root.glob(f"*/{STATE_FILE}"))
