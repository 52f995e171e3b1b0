"""`MirrorFollowers`: what a Hub makes of the facts of its Edges, each fact once.

A follower gets the facts of every mirror in order, in a transaction that also stores up to where it
has read. So after a crash it goes on exactly where its last commit was: nothing is left out and
nothing is taken twice. A mirror that began again in a new file is read from the beginning of that
file; a follower knows what it has seen before by its ids.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts import Fact
from factwire.hub.frames.event_log import EventLog, HubChange
from factwire.hub.limits import FOLLOWED_FACTS, FOLLOWER_PAUSE_SECONDS
from factwire.hub.mirror.mirror_store import EdgeMirror, MirrorStore, UnknownEdge
from factwire.hub.records.device_tables import devices, edges, follower_positions
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.journal import Cursor, Filter, JournalError
from factwire.serving.logs import logger

_log: Final = logger("factwire.hub.followers")


class FollowedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Whose facts are read: the Edge, its device, and the person that the device belongs to."""

    edge_id: str
    device_id: str
    device_name: str
    owner_id: str


class MirrorFollower(Protocol):
    """Something that reads mirrors; `classes` are those of the facts that it wants, as a filter
    takes them.
    """

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    async def take_facts(
        self, change: HubChange, edge: FollowedEdge, facts: Sequence[tuple[int, Fact]]
    ) -> None:
        """Write what follows from some facts, with their seqs, in one transaction."""
        ...


class _Position(msgspec.Struct, frozen=True):
    file: str
    seq: int


class MirrorFollowers:
    """Reads all mirrors for all followers, for as long as `run` lasts."""

    def __init__(
        self,
        store: MirrorStore,
        database: HubDatabase,
        events: EventLog,
        followers: Sequence[MirrorFollower],
    ) -> None:
        self._store = store
        self._database = database
        self._events = events
        self._followers = tuple(followers)
        self._waiting: set[str] = set()
        self._wake = asyncio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Read what is there, and then what is uploaded."""
        for edge_id in await self._store.edges():
            self.note_upload(edge_id)
        task = asyncio.create_task(self._run(), name="factwire-hub-followers")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def note_upload(self, edge_id: str) -> None:
        """Have a mirror read that has grown."""
        self._waiting.add(edge_id)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, set()
            for edge_id in sorted(waiting):
                try:
                    await self.catch_up(edge_id)
                except (RecordsUnavailable, JournalError, OSError) as error:
                    _log.warning("mirror_not_followed", edge=edge_id, detail=str(error))
                    self.note_upload(edge_id)
                    await asyncio.sleep(FOLLOWER_PAUSE_SECONDS)
                except UnknownEdge:
                    continue
                except Exception:  # noqa: BLE001 - the other Edges are followed all the same
                    _log.exception("mirror_follower_failed", edge=edge_id)

    async def catch_up(self, edge_id: str) -> None:
        """Read a mirror to its end for every follower."""
        async with self._store.use(edge_id) as mirror:
            for follower in self._followers:
                while await self._advance(mirror, follower):
                    pass

    async def _advance(self, mirror: EdgeMirror, follower: MirrorFollower) -> bool:
        """Take the next facts of a mirror; whether there may be more."""
        async with self._database.read() as connection:
            edge = await _find_edge(connection, mirror.edge_id)
            stored = await _find_position(connection, follower.name, mirror.edge_id)
        if edge is None:
            return False
        file = mirror.file
        after = stored.seq if stored is not None and stored.file == file else 0
        facts: list[tuple[int, Fact]] = []
        last = after
        journal = mirror.journal
        start = Cursor((await journal.head()).epoch, after) if after else None
        wanted = Filter(classes=follower.classes)
        async for batch in journal.read(start, filter=wanted):
            facts += batch.facts()
            last = max(last, batch.last)
            if len(facts) >= FOLLOWED_FACTS:
                break
        if last == after:
            return False
        async with self._events.change() as change:
            found = await _find_position(change.connection, follower.name, edge.edge_id, lock=True)
            if found != stored:
                # Another process was faster.
                return True
            if facts:
                await follower.take_facts(change, edge, facts)
            place = _Position(file, last)
            await _save_position(change.connection, follower.name, edge.edge_id, stored, place)
        return len(facts) >= FOLLOWED_FACTS


async def _find_edge(connection: AsyncConnection, edge_id: str) -> FollowedEdge | None:
    query = (
        select(edges.c.device_id, devices.c.name, edges.c.person_id)
        .join(devices, devices.c.device_id == edges.c.device_id)
        .where(edges.c.edge_id == edge_id)
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    return FollowedEdge(edge_id=edge_id, device_id=row[0], device_name=row[1], owner_id=row[2])


async def _find_position(
    connection: AsyncConnection, follower: str, edge_id: str, *, lock: bool = False
) -> _Position | None:
    query = select(follower_positions.c.file, follower_positions.c.seq).where(
        follower_positions.c.follower == follower, follower_positions.c.edge_id == edge_id
    )
    if lock:
        query = query.with_for_update()
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else _Position(row[0], row[1])


async def _save_position(
    connection: AsyncConnection,
    follower: str,
    edge_id: str,
    stored: _Position | None,
    place: _Position,
) -> None:
    values = {"file": place.file, "seq": place.seq}
    key = {"follower": follower, "edge_id": edge_id}
    if stored is None:
        await connection.execute(insert(follower_positions).values(**key, **values))
        return
    await connection.execute(
        update(follower_positions)
        .where(follower_positions.c.follower == follower, follower_positions.c.edge_id == edge_id)
        .values(**values)
    )
