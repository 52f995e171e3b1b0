"""The log of events: one order, exact membership, the same on SQLite and PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import insert

from factwire.hub.frames.event_log import (
    EventLog,
    HubEvent,
    read_all_events,
    read_bounds,
    read_cursor,
    read_events,
    read_membership_changes,
    read_memberships,
    remove_old_events,
)
from factwire.hub.frames.frame_types import DeviceKicked, NotificationNew, SessionDissolved
from factwire.hub.records.hub_database import HubDatabase, open_database
from factwire.hub.records.hub_tables import people
from factwire.journal import Cursor
from tests.hub.test_hub_records import create_postgres_database, person
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.events.log")]

CHAT = "chat:ses_1"


def dissolved(number: int) -> SessionDissolved:
    return SessionDissolved(session_id=f"ses_{number}")


def seqs(found: list[HubEvent]) -> list[int]:
    return [event.seq for event in found]


class EventLogContract:
    @pytest_asyncio.fixture
    async def database(self, url: str) -> AsyncGenerator[HubDatabase]:
        async with open_database(url) as database:
            async with database.write() as connection:
                await connection.execute(insert(people), [person(1), person(2)])
            yield database

    @pytest_asyncio.fixture
    async def log(self, database: HubDatabase) -> EventLog:
        return EventLog(database, lambda: 1_790_000_000.0)

    async def read(self, database: HubDatabase, number: int, after: int = 0) -> list[int]:
        async with database.read() as connection:
            return seqs(await read_events(connection, f"usr_{number}", after, 100))

    async def test_a_member_reads_what_came_between_joining_and_leaving(
        self, database: HubDatabase, log: EventLog
    ):
        async with log.change() as change:
            change.emit(CHAT, "session.dissolved", dissolved(1))
            change.join(CHAT, "usr_1")
            change.emit(CHAT, "session.dissolved", dissolved(2))
            change.tell("usr_2", "session.dissolved", dissolved(3))
        async with log.change() as change:
            change.leave(CHAT, "usr_1")
            change.emit(CHAT, "session.dissolved", dissolved(4))
        async with log.change() as change:
            change.join(CHAT, "usr_1")
            change.emit(CHAT, "session.dissolved", dissolved(5))
        assert await self.read(database, 1) == [3, 8]
        assert await self.read(database, 1, after=3) == [8]
        assert await self.read(database, 2) == [4]

    async def test_joining_twice_is_joining_once(self, database: HubDatabase, log: EventLog):
        async with log.change() as change:
            change.join(CHAT, "usr_1")
            change.join(CHAT, "usr_1")
            change.emit(CHAT, "session.dissolved", dissolved(1))
        assert await self.read(database, 1) == [3]

    async def test_a_change_that_fails_leaves_no_number_behind(
        self, database: HubDatabase, log: EventLog
    ):
        async def fail() -> None:
            async with log.change() as change:
                change.tell("usr_1", "session.dissolved", dissolved(1))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with log.change() as change:
            change.tell("usr_1", "session.dissolved", dissolved(2))
        assert await self.read(database, 1) == [1]

    async def test_a_list_is_true_as_of_the_cursor_read_with_it(
        self, database: HubDatabase, log: EventLog
    ):
        async with database.read() as connection:
            before = await read_cursor(connection)
            async with asyncio.timeout(60):
                # On SQLite a reader with a rollback journal would keep the writer waiting.
                if not database._is_sqlite:
                    async with log.change() as change:
                        change.tell("usr_1", "session.dissolved", dissolved(1))
            assert await read_cursor(connection) == before
            assert await read_events(connection, "usr_1", Cursor.parse(before).seq, 10) == []

    async def test_numbers_follow_the_order_of_commits(self, database: HubDatabase, log: EventLog):
        async def write(number: int) -> None:
            async with log.change() as change:
                change.tell("usr_1", "session.dissolved", dissolved(number))

        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(write(number))
        async with database.read() as connection:
            bounds = await read_bounds(connection)
            found = await read_all_events(connection, 0, bounds.head, 100)
        assert seqs(found) == list(range(1, 21))
        assert bounds.head == 20

    async def test_changes_of_membership_are_found_by_where_they_happened(
        self, database: HubDatabase, log: EventLog
    ):
        async with log.change() as change:
            change.join(CHAT, "usr_1")
        async with log.change() as change:
            change.leave(CHAT, "usr_1")
        async with database.read() as connection:
            joined = await read_membership_changes(connection, 0, 1)
            left = await read_membership_changes(connection, 1, 2)
            now = await read_memberships(connection, "usr_1")
        assert joined == left
        assert [(each.from_seq, each.until_seq) for each in left] == [(1, 2)]
        assert now == []

    @pytest.mark.requirement("hub.events.retention")
    async def test_old_events_are_removed_from_the_oldest_on(self, database: HubDatabase):
        moments = iter([100.0, 200.0, 300.0])
        log = EventLog(database, lambda: next(moments))
        async with log.change() as change:
            change.join(CHAT, "usr_1")
            change.tell("usr_1", "session.dissolved", dissolved(1))
            change.tell("usr_1", "session.dissolved", dissolved(2))
        async with log.change() as change:
            change.leave(CHAT, "usr_1")
            change.tell("usr_1", "session.dissolved", dissolved(3))
            change.join(CHAT, "usr_1")
        async with log.change() as change:
            change.emit(CHAT, "session.dissolved", dissolved(4))
        assert await remove_old_events(database, 100_000, 10) == 0
        assert await remove_old_events(database, 250_000, 1) == 1
        assert await self.read(database, 1) == [3, 5, 7]
        assert await remove_old_events(database, 250_000, 10) == 2
        assert await self.read(database, 1) == [7]
        async with database.read() as connection:
            bounds = await read_bounds(connection)
            left = await read_membership_changes(connection, 0, 10)
        assert (bounds.floor, bounds.head) == (5, 7)
        assert [(each.from_seq, each.until_seq) for each in left] == [(6, None)]

    async def test_only_events_of_the_table_are_written(self, log: EventLog):
        kicked = DeviceKicked(device_id="dev_1", reason="other")
        with pytest.raises(TypeError):
            async with log.change() as change:
                change.tell("usr_1", "message.new", kicked)
        with pytest.raises(KeyError):
            async with log.change() as change:
                change.tell("usr_1", "no.such.frame", kicked)

    async def test_a_payload_is_stored_as_it_travels(self, database: HubDatabase, log: EventLog):
        news = NotificationNew(notification_id="ntf_1", type="approval", payload={"a": [1, "ü"]})
        async with log.change() as change:
            change.tell("usr_1", "notification.new", news)
        async with database.read() as connection:
            found = await read_events(connection, "usr_1", 0, 10)
        assert found[0].payload == (
            '{"notification_id":"ntf_1","type":"approval","payload":{"a":[1,"ü"]}}'.encode()
        )


class TestOnSqlite(EventLogContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'hub.db'}"


class TestOnPostgres(EventLogContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)
