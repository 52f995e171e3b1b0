"""`TeamKeeper`: has runs go on that agents supervise, stops what took too long, and writes the
facts of team runs into a journal of the Hub's own.

The log of events is the outbox. Facts are appended in its order, those of one event or all of none,
and where the journal ends says which event comes next: so whenever the Hub is killed, each event is
in the journal once, in its place. The journal is read by the code that reads mirrors of Edges; who
may see a run may see its thread.

`export_run` makes a pack of a run: its thread here, and the threads of all members from the mirrors
of their devices, in one file that verifies as one. Only what whoever asks may see goes in. A thread
that is not in its mirror, because it is private or was not uploaded yet, is named as left out, and
so is what they may no longer see.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.evidence import (
    BundleDocument,
    EvidenceError,
    ExportOptions,
    KeyProblem,
    LeftOut,
    PackFile,
    create_key,
    export_journal,
    load_key,
    write_bundle,
)
from factwire.facts import Blob, Fact, Intake
from factwire.hub.frames.event_log import HubEvent, audience_of, read_bounds
from factwire.hub.limits import TEAM_EVENTS_AT_ONCE, TEAM_TICK_SECONDS
from factwire.hub.link.deliveries import MILLISECONDS
from factwire.hub.mirror.mirror_store import EdgeMirror, MirrorState, MirrorStore, UnknownEdge
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.device_tables import devices
from factwire.hub.records.event_tables import events
from factwire.hub.records.grant_records import find_reach
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.hub.records.team_tables import supervisor_turns, team_assignments
from factwire.hub.teams.supervisor_turns import RunLeader
from factwire.hub.teams.team_facts import RUN_EVENTS, build_facts, find_place
from factwire.hub.teams.team_records import TEAM, TEAM_JOURNAL, find_run, read_roster
from factwire.hub.teams.team_runs import stop_due_tasks
from factwire.journal import Cursor, Journal, JournalBusy, JournalError
from factwire.journal.atomic_files import make_private_folder
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.serving.asgi import Problem
from factwire.serving.logs import logger

TEAMS_FOLDER: Final = "teams"
JOURNAL_FILE: Final = "journal.db"

_log: Final = logger("factwire.hub.teams")


class HubJournal(EdgeMirror):
    """The journal of a Hub's own facts. It is read like a mirror; nobody uploads to it.
    `write_facts` writes what is missing in it.
    """

    def __init__(self, folder: Path, write_facts: Callable[[], Awaitable[None]]) -> None:
        super().__init__(TEAM_JOURNAL, folder, str)
        self.write_facts = write_facts

    async def open(self) -> None:
        """Open the journal, or begin it; raises `JournalError`."""
        await run_disk_work(make_private_folder, self.folder)
        self._journal = await self._open_journal(JOURNAL_FILE)
        epoch = (await self._journal.head()).epoch
        self._state = MirrorState(epoch=epoch, runtime_id=TEAM_JOURNAL, files=(JOURNAL_FILE,))


class TeamKeeper:
    """Keeps the journal of team runs and their times, for as long as `run` lasts. Where another
    process has the journal of this folder open, that one writes it.
    """

    def __init__(self, hub: HubServices, store: MirrorStore, data: Path) -> None:
        self._hub = hub
        self._leader = RunLeader(hub)
        self._store = store
        self._mirror = HubJournal(data / TEAMS_FOLDER, self.write_facts)
        self._is_open = False
        self._is_placed = False
        self._after: tuple[str, int] | None = None
        self._next_look = 0
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Write what is missing first, and then what comes."""
        self._hub.events.on_commit.append(self._wake.set)
        await self._tick()
        ticking = asyncio.create_task(self._run_ticks(), name="factwire-hub-teams")
        try:
            yield
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)
            self._hub.events.on_commit.remove(self._wake.set)

    async def _run_ticks(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TEAM_TICK_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            await self._tick()

    async def _tick(self) -> None:
        try:
            if self._hub.now() >= self._next_look:
                # Whoever stops something does so at once; here is what is late, or was left.
                self._next_look = self._hub.now() + MILLISECONDS
                await stop_due_tasks(self._hub)
            await self._leader.lead_runs()
            await self.write_facts()
        except (RecordsUnavailable, JournalError, OSError) as error:
            _log.warning("teams_unavailable", detail=str(error))
        except Exception:  # noqa: BLE001 - logged; the next look does what is missing
            _log.exception("teams_failed")

    async def write_facts(self) -> None:
        """Write all facts that are missing; raises `JournalError`."""
        async with self._writing:
            if not self._is_open and not await self._open():
                return
            if not self._is_placed:
                self._after = await _find_last_event(self._mirror.journal)
            # An append that is interrupted may have been written.
            self._is_placed = False
            while await self._write_some():
                pass
            self._is_placed = True

    async def _open(self) -> bool:
        try:
            await self._mirror.open()
        except JournalBusy:
            return False
        self._is_open = True
        self._store.keep(self._mirror)
        return True

    async def _write_some(self) -> bool:
        """Write the facts of the next events; whether there may be more."""
        async with self._hub.database.read() as connection:
            bounds = await read_bounds(connection)
            after = 0
            if self._after is not None and self._after[0] == bounds.epoch:
                after = self._after[1]
            query = (
                select(*(events.c[name] for name in HubEvent.__struct_fields__))
                .where(
                    events.c.seq > after,
                    events.c.audience.like(f"{audience_of(TEAM, '')}%"),
                    events.c.type.in_(RUN_EVENTS),
                )
                .order_by(events.c.seq)
                .limit(TEAM_EVENTS_AT_ONCE)
            )
            rows = (await connection.execute(query)).mappings().all()
        found = [HubEvent(**{**row, "payload": row["payload"].encode()}) for row in rows]
        if found:
            await self._append(bounds.epoch, found)
        reached = found[-1].seq if len(found) == TEAM_EVENTS_AT_ONCE else bounds.head
        self._after = bounds.epoch, reached
        return len(found) == TEAM_EVENTS_AT_ONCE

    async def _append(self, epoch: str, found: list[HubEvent]) -> None:
        journal, batch = self._mirror.journal, list[Fact]()
        sequences: dict[str, int] = {}
        for fact in (each for event in found for each in build_facts(epoch, event)):
            thread_id = fact.thread_id or ""
            if thread_id not in sequences:
                known = await journal.thread(thread_id)
                sequences[thread_id] = 0 if known is None else known.last_sequence
            # Each fact by itself: what it comes to depends on nothing that came before.
            taken = Intake("off", "facts").take(fact)
            await self._store_blobs(taken.blobs)
            for each in (taken.fact, *taken.notes):
                sequences[thread_id] += 1
                numbered = {"sequence": sequences[thread_id], "thread_id": thread_id}
                batch.append(msgspec.structs.replace(each, **numbered))
        await journal.append(batch)

    async def _store_blobs(self, blobs: tuple[Blob, ...]) -> None:
        for blob in blobs:
            await self._mirror.blobs.put(blob.content, kind=blob.ref.kind)


async def _find_last_event(journal: SqliteJournal) -> tuple[str, int] | None:
    """The event that the last fact of the journal was made from."""
    head = await journal.head()
    start = Cursor(head.epoch, head.seq - 1) if head.seq > 1 else None
    last: str | None = None
    async for batch in journal.read(start):
        for _, fact in batch.facts():
            last = fact.id
    return None if last is None else find_place(last)


KEY_FILE: Final = "evidence-key.pem"


class TeamPack(msgspec.Struct, frozen=True, kw_only=True):
    """A pack of a run, as a file that is there while the block lasts."""

    path: Path
    document: BundleDocument


@asynccontextmanager
async def export_run(
    hub: HubServices, caller: HubCaller, run_id: str, *, with_blobs: bool
) -> AsyncGenerator[TeamPack]:
    """Make a pack of a run; raises `Problem`."""
    if hub.mirrors is None:
        raise Problem(503, "mirrors_unavailable", "this Hub has no mirrors")
    wanted, left_out = await _find_threads(hub, caller, run_id)
    with TemporaryDirectory(prefix="factwire-team-") as folder:
        exporter = _RunExporter(hub.mirrors.store, Path(folder), with_blobs=with_blobs)
        try:
            await exporter.open_journal()
            packs: list[PackFile] = []
            for source, threads in {TEAM_JOURNAL: {run_id}, **wanted}.items():
                packs += await exporter.export(source, threads, left_out)
            path = Path(folder, "run.zip")
            title = f"Team run {run_id}"
            document = await run_disk_work(exporter.write, path, title, packs, left_out)
        except KeyProblem as error:
            # What it says has paths of this machine.
            _log.warning("evidence_key_unusable", code=error.code, detail=str(error))
            detail = "the signing key of this Hub cannot be used; its log says why"
            raise Problem(503, error.code, detail) from error
        except EvidenceError as error:
            raise Problem(409, error.code, str(error)) from error
        yield TeamPack(path=path, document=document)


async def _find_threads(
    hub: HubServices, caller: HubCaller, run_id: str
) -> tuple[dict[str, set[str]], list[LeftOut]]:
    """The threads of a run's members, who work or supervise, by their Edges, and those that may not
    be seen.
    """
    wanted: dict[str, set[str]] = {}
    left_out: list[LeftOut] = []
    async with hub.database.read() as connection:
        run = await find_run(connection, caller.person_id, run_id)
        for edge_id, thread_id in await _list_threads(connection, run):
            reach = await find_reach(connection, caller.person_id, edge_id)
            if reach is not None and (reach.is_whole or thread_id in reach.threads):
                wanted.setdefault(edge_id, set()).add(thread_id)
            else:
                left_out.append(LeftOut(source=edge_id, thread_id=thread_id, reason="not_shared"))
    return wanted, left_out


async def _list_threads(connection: AsyncConnection, run: RowMapping) -> list[tuple[str, str]]:
    """The Edge and the id of each thread of a run, once: of who supervises, then of who works."""
    placed = {each.team_member_id: each.device_id for each in read_roster(run)}
    found: list[tuple[str | None, str]] = []
    for table in (supervisor_turns, team_assignments):
        query = (
            select(table)
            .where(table.c.team_run_id == run["team_run_id"], table.c.thread_id.is_not(None))
            .order_by(table.c.number)
        )
        for row in (await connection.execute(query)).mappings():
            device_id = row.get("device_id", placed.get(row["team_member_id"]))
            found.append((device_id, row["thread_id"]))
    named = select(devices.c.device_id, devices.c.edge_id).where(
        devices.c.device_id.in_({device_id for device_id, _ in found})
    )
    edges = {row.device_id: row.edge_id for row in (await connection.execute(named))}
    return list(dict.fromkeys((edges[device_id], thread_id) for device_id, thread_id in found))


class _RunExporter:
    """Writes the packs of one run."""

    def __init__(self, store: MirrorStore, folder: Path, *, with_blobs: bool) -> None:
        self._store = store
        self._folder = folder
        self._options = ExportOptions(with_blobs=with_blobs)

    async def open_journal(self) -> None:
        """Have all facts of runs written, and sign with the key of this Hub, made the first time;
        raises `Problem`.
        """
        try:
            async with self._store.use(TEAM_JOURNAL) as mirror:
                if isinstance(mirror, HubJournal):
                    await mirror.write_facts()
                key = await run_disk_work(_load_key, mirror.folder / KEY_FILE)
        except (UnknownEdge, JournalError) as error:
            detail = f"the journal of team runs cannot be used here now: {error}"
            raise Problem(503, "mirrors_unavailable", detail) from error
        self._options = msgspec.structs.replace(self._options, key=key)

    async def export(
        self, source: str, threads: set[str], left_out: list[LeftOut]
    ) -> list[PackFile]:
        """The pack of one journal; none where it has none of the threads."""
        try:
            async with self._store.use(source) as mirror:
                return await self._export(mirror, source, threads, left_out)
        except UnknownEdge:
            left_out += _leave_out(source, threads)
            return []

    async def _export(
        self, mirror: EdgeMirror, source: str, threads: set[str], left_out: list[LeftOut]
    ) -> list[PackFile]:
        held = await _find_held(mirror.journal, threads)
        left_out += _leave_out(source, threads - held)
        if not held:
            return []
        path = self._folder / f"{len(list(self._folder.iterdir())):03d}.zip"
        options = msgspec.structs.replace(self._options, blobs=mirror.blobs)
        with path.open("wb") as file:
            await export_journal(mirror.journal, file, threads=sorted(held), options=options)
        return [PackFile(source=source, threads=tuple(sorted(held)), path=path)]

    def write(
        self, path: Path, title: str, packs: list[PackFile], left_out: list[LeftOut]
    ) -> BundleDocument:
        with path.open("wb") as file:
            return write_bundle(file, title, packs, left_out, self._options.key)


async def _find_held(journal: Journal, threads: set[str]) -> set[str]:
    return {thread for thread in threads if await journal.thread(thread) is not None}


def _leave_out(source: str, threads: set[str]) -> list[LeftOut]:
    reason = "missing" if source == TEAM_JOURNAL else "private_or_not_uploaded"
    return [LeftOut(source=source, thread_id=each, reason=reason) for each in sorted(threads)]


def _load_key(path: Path) -> Ed25519PrivateKey:
    if not path.exists():
        try:
            return create_key(path)
        except KeyProblem as problem:
            # Another export has made it meanwhile.
            if problem.code != "key_exists":
                raise
    return load_key(path)
