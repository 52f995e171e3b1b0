"""`LinkStore`: what an Edge has heard from its Hub, and what the Hub has not heard yet.

A delivery is here before anything is done about it and with what came of it before that is
acknowledged. Its id is kept for ever, so that the same delivery, however late it comes again, is
only acknowledged again. The whole answer to a relayed request is kept for a while, and only so many
bytes of answers are; after that, `reply` says what came of it in short. The end of a task stays
here until the Hub has it. Every change is synced before it counts.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self, TypeVar, cast

import apsw
import msgspec

from factwire.edge.limits import LINK_ANSWERS_BYTES, LINK_ANSWERS_SECONDS
from factwire.journal.atomic_files import PRIVATE_MODE
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.sqlite.schema import Database, roll_back

LINK_FILE: Final = "hub-link.db"

_MIGRATIONS: Final = (
    """
    CREATE TABLE IF NOT EXISTS deliveries(
        delivery_id TEXT PRIMARY KEY, type TEXT NOT NULL, task_id TEXT, payload BLOB, reply BLOB)
        WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS deliveries_open ON deliveries(type) WHERE reply IS NULL;
    CREATE INDEX IF NOT EXISTS deliveries_of_task ON deliveries(task_id);
    CREATE TABLE IF NOT EXISTS tasks(
        task_id TEXT PRIMARY KEY, run_id TEXT, thread_id TEXT, closing TEXT,
        ended INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS tasks_open ON tasks(ended) WHERE ended = 0;
    CREATE TABLE IF NOT EXISTS ends(
        task_id TEXT PRIMARY KEY, type TEXT NOT NULL, payload BLOB NOT NULL) WITHOUT ROWID;
    """,
    """
    ALTER TABLE deliveries ADD COLUMN request BLOB;
    ALTER TABLE deliveries ADD COLUMN answer BLOB;
    ALTER TABLE deliveries ADD COLUMN answered_at INTEGER;
    CREATE INDEX deliveries_answered ON deliveries(answered_at, length(answer))
        WHERE answer IS NOT NULL;
    """,
    "ALTER TABLE tasks ADD COLUMN worktree INTEGER NOT NULL DEFAULT 0;",
)
"""Each version of the tables, from the one before it."""


class StoredFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame as it is kept: its type, and its payload as JSON."""

    type: str
    payload: bytes


class StoredDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the Hub sent; `reply` is the frame that answers it, once it is done, and
    `request` the digest of a relayed request.
    """

    delivery_id: str
    frame: StoredFrame
    reply: StoredFrame | None
    request: bytes | None = None


class StoredTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its run; one without a run was stopped before it came. `closing` is the code under
    which a run that was stopped ends. `worktree` says whether it was to have one of its own, so
    that its end tells what it changed.
    """

    task_id: str
    run_id: str | None
    thread_id: str | None
    closing: str | None
    ended: bool
    worktree: bool = False


T = TypeVar("T")


class LinkStore:
    """The file of one Edge; an async context manager. One piece of work uses it at a time."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = folder / LINK_FILE
        self._clock = clock
        self._lock = asyncio.Lock()
        self._database: Database | None = None

    async def __aenter__(self) -> Self:
        self._database = await run_disk_work(_open, self._path)
        await self._run(lambda database: _drop_answers(database, self._now()))
        return self

    def _now(self) -> int:
        return int(self._clock())

    async def __aexit__(self, *_: object) -> None:
        async with self._lock:
            database, self._database = self._database, None
            if database is not None:
                await run_disk_work(database.close)

    async def _run(self, work: Callable[[Database], T]) -> T:
        async with self._lock:
            database = self._database
            if database is None:
                raise RuntimeError("the store is closed")
            return await run_disk_work(_commit, database, work)

    async def find_delivery(self, delivery_id: str) -> StoredDelivery | None:
        query = f"SELECT {_DELIVERY} FROM deliveries WHERE delivery_id = ?"  # noqa: S608 - a constant

        def find(database: Database) -> StoredDelivery | None:
            for row in database.execute(query, (delivery_id,)):
                return _to_delivery(row)
            return None

        return await self._run(find)

    async def add_delivery(
        self,
        delivery_id: str,
        frame: StoredFrame,
        task_id: str | None = None,
        request: bytes | None = None,
    ) -> None:
        """Keep something that is to be done."""
        values = (delivery_id, frame.type, task_id, frame.payload, request)
        insert = (
            "INSERT OR IGNORE INTO deliveries(delivery_id, type, task_id, payload, request) "
            "VALUES(?, ?, ?, ?, ?)"
        )
        await self._run(lambda database: _execute(database, insert, values))

    async def remove_delivery(self, delivery_id: str) -> None:
        """Forget something of which nothing was done."""
        remove = "DELETE FROM deliveries WHERE delivery_id = ?"
        await self._run(lambda database: _execute(database, remove, (delivery_id,)))

    async def finish_delivery(
        self,
        delivery_id: str,
        reply: StoredFrame,
        task: StoredTask | None = None,
        answer: StoredFrame | None = None,
    ) -> None:
        """Keep what came of a delivery, and of its task; what it asked for is needed no more.
        `answer` replies in the place of `reply` for as long as it is kept.
        """
        now = self._now()
        kept = None if answer is None else msgspec.json.encode(answer)

        def finish(database: Database) -> None:
            _execute(
                database,
                "UPDATE deliveries SET reply = ?, payload = NULL, answer = ?, answered_at = ? "
                "WHERE delivery_id = ?",
                (msgspec.json.encode(reply), kept, now, delivery_id),
            )
            if kept is not None:
                _drop_answers(database, now)
            if task is not None:
                _execute(
                    database,
                    "INSERT INTO tasks(task_id, run_id, thread_id, closing, ended, worktree) "
                    "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(task_id) DO UPDATE SET "
                    "closing = coalesce(excluded.closing, closing)",
                    (
                        *(task.task_id, task.run_id, task.thread_id, task.closing),
                        *(int(task.ended), int(task.worktree)),
                    ),
                )

        await self._run(finish)

    async def list_unfinished(self, type_: str) -> list[StoredDelivery]:
        """Deliveries of a type that were begun and not finished, as after a kill."""
        query = (
            f"SELECT {_DELIVERY} FROM deliveries "  # noqa: S608 - a constant
            "WHERE reply IS NULL AND type = ?"
        )

        def find(database: Database) -> list[StoredDelivery]:
            return [_to_delivery(row) for row in database.execute(query, (type_,))]

        return await self._run(find)

    async def find_unfinished(self, type_: str, task_id: str) -> StoredDelivery | None:
        """The delivery of a type for a task that was begun and not finished."""
        query = (
            f"SELECT {_DELIVERY} FROM deliveries "  # noqa: S608 - a constant
            "WHERE reply IS NULL AND type = ? AND task_id = ?"
        )

        def find(database: Database) -> StoredDelivery | None:
            for row in database.execute(query, (type_, task_id)):
                return _to_delivery(row)
            return None

        return await self._run(find)

    async def find_task(self, task_id: str) -> StoredTask | None:
        query = f"SELECT {_TASK} FROM tasks WHERE task_id = ?"  # noqa: S608 - a constant

        def find(database: Database) -> StoredTask | None:
            for row in database.execute(query, (task_id,)):
                return _to_task(row)
            return None

        return await self._run(find)

    async def list_open_tasks(self) -> list[StoredTask]:
        """Tasks whose runs have not ended, as far as this store knows."""
        query = f"SELECT {_TASK} FROM tasks WHERE ended = 0"  # noqa: S608 - a constant
        return await self._run(lambda database: [_to_task(row) for row in database.execute(query)])

    async def list_open_replies(self, type_: str) -> list[StoredFrame]:
        """How deliveries of a type were answered whose tasks have not ended."""
        query = (
            "SELECT delivery.reply FROM tasks JOIN deliveries AS delivery USING (task_id) "
            "WHERE tasks.ended = 0 AND delivery.type = ? AND delivery.reply IS NOT NULL"
        )

        def find(database: Database) -> list[StoredFrame]:
            rows = cast("list[tuple[bytes]]", list(database.execute(query, (type_,))))
            return [msgspec.json.decode(reply, type=StoredFrame) for (reply,) in rows]

        return await self._run(find)

    async def add_end(self, task_id: str, frame: StoredFrame) -> None:
        """Keep how a task ended until the Hub has it."""

        def add(database: Database) -> None:
            _execute(database, "UPDATE tasks SET ended = 1 WHERE task_id = ?", (task_id,))
            _execute(
                database,
                "INSERT OR IGNORE INTO ends VALUES(?, ?, ?)",
                (task_id, frame.type, frame.payload),
            )

        await self._run(add)

    async def list_ends(self) -> list[StoredFrame]:
        """Ends that the Hub has not acknowledged."""
        query = "SELECT type, payload FROM ends ORDER BY task_id"

        def find(database: Database) -> list[StoredFrame]:
            rows = cast("list[tuple[str, bytes]]", list(database.execute(query)))
            return [StoredFrame(type=type_, payload=payload) for type_, payload in rows]

        return await self._run(find)

    async def remove_end(self, task_id: str) -> None:
        """The Hub has the end of a task."""
        await self._run(
            lambda database: _execute(database, "DELETE FROM ends WHERE task_id = ?", (task_id,))
        )


_DELIVERY: Final = "delivery_id, type, payload, coalesce(answer, reply), request"
_TASK: Final = "task_id, run_id, thread_id, closing, ended, worktree"


def _open(path: Path) -> Database:
    path.touch(PRIVATE_MODE)
    database = cast("Database", apsw.Connection(str(path)))
    database.set_busy_timeout(10_000)
    database.pragma("journal_mode", "wal")
    database.pragma("synchronous", "full")
    for version in range(database.pragma("user_version"), len(_MIGRATIONS)):
        _commit(database, lambda _, version=version: _migrate(database, version))
    return database


def _migrate(database: Database, version: int) -> None:
    database.execute(_MIGRATIONS[version])
    database.pragma("user_version", version + 1)


def _drop_answers(database: Database, now: int) -> None:
    """Keep no answer for too long, and of all together the newest that fit."""
    _execute(
        database,
        "UPDATE deliveries SET answer = NULL WHERE answer IS NOT NULL AND answered_at <= ?",
        (now - LINK_ANSWERS_SECONDS,),
    )
    _execute(
        database,
        "UPDATE deliveries SET answer = NULL WHERE delivery_id IN ("
        "SELECT delivery_id FROM (SELECT delivery_id, sum(length(answer)) OVER ("
        "ORDER BY answered_at DESC, delivery_id) AS bytes FROM deliveries "
        "WHERE answer IS NOT NULL) WHERE bytes > ?)",
        (LINK_ANSWERS_BYTES,),
    )


def _commit(database: Database, work: Callable[[Database], T]) -> T:
    database.execute("BEGIN IMMEDIATE")
    try:
        result = work(database)
        database.execute("COMMIT")
    except BaseException:
        roll_back(database)
        raise
    return result


def _execute(
    database: Database, statement: str, values: tuple[str | int | bytes | None, ...]
) -> None:
    database.execute(statement, values)


def _to_delivery(row: object) -> StoredDelivery:
    delivery_id, type_, payload, reply, request = cast(
        "tuple[str, str, bytes | None, bytes | None, bytes | None]", row
    )
    return StoredDelivery(
        delivery_id=delivery_id,
        frame=StoredFrame(type=type_, payload=payload or b""),
        reply=None if reply is None else msgspec.json.decode(reply, type=StoredFrame),
        request=request,
    )


def _to_task(row: object) -> StoredTask:
    task_id, run_id, thread_id, closing, ended, worktree = cast(
        "tuple[str, str | None, str | None, str | None, int, int]", row
    )
    return StoredTask(
        task_id=task_id,
        run_id=run_id,
        thread_id=thread_id,
        closing=closing,
        ended=bool(ended),
        worktree=bool(worktree),
    )
