"""One contract for the records, on SQLite and on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
import pytest_asyncio
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import IntegrityError

from factwire.hub.chats.message_search import find_messages, parse_search
from factwire.hub.records.approval_tables import approvals, edge_rules
from factwire.hub.records.chat_tables import chat_messages, chats
from factwire.hub.records.device_tables import devices, edges, follower_positions
from factwire.hub.records.hub_database import (
    HubDatabase,
    RecordsNewer,
    RecordsUnavailable,
    RecordsUrlError,
    _create_engine,
    open_database,
)
from factwire.hub.records.hub_tables import METADATA, people
from factwire.hub.records.link_tables import agent_tasks
from factwire.hub.records.notification_tables import notifications
from tests.hub.hubs import PASSWORD, running_hub
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.records.contract")]


def person(number: int) -> dict[str, object]:
    return {
        "person_id": f"usr_{number}",
        "name": f"Name {number}",
        "name_key": f"name{number}",
        "role": "member",
        "password_hash": "-",
        "created_at": number,
    }


OLDER_FTS5 = (
    f"INSERT INTO message_search(rowid, chat, body) VALUES (1, '{'1' * 26}', 'hello wide world')"
)
OLDER_TSVECTOR = (
    "INSERT INTO message_search(number, document) "
    f"VALUES (1, CAST('#{'1' * 26} hello:1 wide:2 world:3' AS tsvector))"
)
"""A message as the index had it before its words began with their chat."""


OLDER_TASK = (
    "(task_id, person_id, device_id, agent_instance_id, agent_type, prompt, stream_seq, "
    "timeout_seconds, created_at, expires_at, updated_at, status, closing, edge_run_id, "
    "streamed_at, ended_at) VALUES "
)
OLDER_TASKS = tuple(
    f"('{name}', 'usr_1', 'dev_1', 'agent', 'demo', 'go', 0, 1, 1, 1, 7, {rest})"
    for name, rest in (
        ("closing", "'running', 'cancel', 'run_1', NULL, NULL"),
        ("ended", "'done', NULL, 'run_2', NULL, 9"),
        ("queued", "'queued', NULL, NULL, NULL, NULL"),
        ("streamed", "'done', NULL, 'run_3', 8, 9"),
    )
)
"""Tasks as they were before it was known until when a run is followed."""


def describe_device(device_id: str) -> dict[str, Any]:
    return {
        "device_id": device_id,
        "person_id": "usr_1",
        "session_id": f"ses_{device_id}",
        "kind": "edge",
        "name": device_id,
        "edge_id": f"edge_{device_id}",
        "platform": "linux",
        "version": "1",
        "agents": '["demo"]',
        "created_at": 1,
        "last_seen_at": 1,
        "online": False,
    }


def describe_edge(device_id: str) -> dict[str, Any]:
    return {
        "edge_id": f"edge_{device_id}",
        "person_id": "usr_1",
        "device_id": device_id,
        "created_at": 1,
    }


def chat_of(chat_id: str) -> dict[str, object]:
    return {
        "session_id": chat_id,
        "type": "group",
        "name": "Chat",
        "description": "",
        "owner_id": "usr_1",
        "last_seq": 1,
        "created_at": 1,
    }


def message_of(chat_id: str) -> dict[str, object]:
    return {
        "number": 1,
        "message_id": "msg_1",
        "session_id": chat_id,
        "seq_id": 1,
        "client_msg_id": "m",
        "request_digest": "",
        "sender_id": "usr_1",
        "sender_type": "user",
        "content": '{"text":"Hello wide world"}',
        "content_type": "text",
        "created_at": 1,
    }


async def create_postgres_database(server: PostgresServer) -> str:
    name = f"hub_{uuid4().hex}"
    connection = await cast("Any", asyncpg).connect(server.dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return f"postgres://postgres@/{name}?host={server.folder}"


def is_of_the_code(name: str | None, kind: str, _: object) -> bool:
    """The index for search is of another kind on each database, and tested by what it finds."""
    return kind != "table" or not str(name).startswith("message_search")


class RecordsContract:
    """What holds on every backend."""

    @pytest_asyncio.fixture
    async def database(self, url: str) -> AsyncGenerator[HubDatabase]:
        async with open_database(url) as database:
            yield database

    async def test_migrations_make_exactly_the_tables_of_the_code(self, database: HubDatabase):
        def differences(connection: Connection) -> list[object]:
            options = {"compare_type": True, "include_name": is_of_the_code}
            context = MigrationContext.configure(connection, opts=options)
            return compare_metadata(context, METADATA)

        async with database.read() as connection:
            assert {devices, chats, approvals, notifications, follower_positions} <= set(
                METADATA.tables.values()
            )
            assert await connection.run_sync(differences) == []

    async def test_a_second_start_changes_nothing_and_keeps_rows(self, url: str):
        async with open_database(url) as database, database.write() as connection:
            await connection.execute(insert(people).values(person(1)))
        async with open_database(url) as database, database.read() as connection:
            assert (await connection.execute(select(people.c.name))).scalars().all() == ["Name 1"]

    async def test_a_text_with_a_nul_is_kept_without_it(self, url: str):
        async with open_database(url) as database:
            async with database.write() as connection:
                await connection.execute(insert(people).values({**person(1), "name": "a\0b"}))
                await connection.execute(insert(people), [{**person(2), "name": "c\0"}])
            async with database.read() as connection:
                names = (await connection.execute(select(people.c.name))).scalars().all()
                unknown = select(people.c.name).where(people.c.person_id == "usr_\0")
                assert (await connection.execute(unknown)).first() is None
        assert sorted(names) == ["a\ufffdb", "c\ufffd"]

    async def test_a_database_of_the_first_version_is_brought_up_to_date(self, url: str):
        first = HubDatabase(_create_engine(url, "TRUNCATE"))
        await first.migrate("0001")
        async with first.write() as connection:
            await connection.execute(
                text(
                    "INSERT INTO people(person_id, name, name_key, role, password_hash, created_at)"
                    " VALUES ('usr_1', 'Name 1', 'name1', 'member', '-', 1)"
                )
            )
        await first.close()
        async with open_database(url) as database, database.read() as connection:
            assert (await connection.execute(select(people.c.name))).scalars().all() == ["Name 1"]

    async def test_messages_of_an_older_index_are_found_by_the_words_of_their_chat(self, url: str):
        chat_id, other = f"ses_{'1' * 26}", f"ses_{'2' * 26}"
        older = HubDatabase(_create_engine(url, "TRUNCATE"))
        await older.migrate("0009")
        async with older.write() as connection:
            await connection.execute(insert(people).values(person(1)))
            await connection.execute(insert(chats).values(chat_of(chat_id)))
            await connection.execute(insert(chat_messages).values(message_of(chat_id)))
            is_sqlite = connection.dialect.name == "sqlite"
            await connection.execute(text(OLDER_FTS5 if is_sqlite else OLDER_TSVECTOR))
        await older.close()

        async with open_database(url) as database, database.read() as connection:

            async def find(query: str, chat: str) -> list[int]:
                terms = parse_search(query)
                found = await find_messages(
                    connection, select(chat_messages), terms, [chat], before=None, limit=5
                )
                return [row["number"] for row in found]

            assert await find("hello wide-wor", chat_id) == [1]
            assert await find("hello-world", chat_id) == await find("wide", other) == []

    async def test_what_was_under_way_in_an_older_version_still_is(self, url: str):
        older = HubDatabase(_create_engine(url, "TRUNCATE"))
        await older.migrate("0011")
        async with older.write() as connection:
            await connection.execute(insert(people).values(person(1)))
            for number in (1, 2):
                device = {**describe_device(f"dev_{number}"), "edge_id": "edge_1"}
                await connection.execute(insert(devices).values(device))
                rule = f"INSERT INTO approval_rules VALUES ('dev_{number}', {4 - number})"
                await connection.execute(text(rule))
            edge = {**describe_edge("dev_2"), "edge_id": "edge_1"}
            await connection.execute(insert(edges).values(edge))
            for values in OLDER_TASKS:
                await connection.execute(text(f"INSERT INTO agent_tasks{OLDER_TASK}{values}"))
        await older.close()
        async with open_database(url) as database, database.read() as connection:
            columns = agent_tasks.c.task_id, agent_tasks.c.stream_until, agent_tasks.c.closing_at
            found = (await connection.execute(select(*columns).order_by(columns[0]))).all()
            rules = (await connection.execute(select(edge_rules))).all()
        assert [tuple(row) for row in found] == [
            ("closing", 2**53, 7),
            ("ended", 9 + 604_800_000, None),
            ("queued", None, None),
            ("streamed", 60_008, None),
        ]
        # No rule is weaker than it was.
        assert [tuple(row) for row in rules] == [("edge_1", 3)]

    async def test_starts_at_the_same_time_migrate_once(self, url: str):
        async def start() -> None:
            async with open_database(url):
                pass

        await asyncio.gather(*(start() for _ in range(4)))
        async with open_database(url) as database, database.read() as connection:
            found = await connection.execute(text("SELECT version_num FROM alembic_version"))
            assert len(found.all()) == 1

    async def test_a_newer_schema_is_refused_and_left_alone(self, url: str):
        async with open_database(url) as database, database.write() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(RecordsNewer, match="schema 9999") as raised:
            async with open_database(url):
                pass
        assert raised.value.code == "records_newer"

    async def test_a_block_that_fails_writes_nothing(self, database: HubDatabase):
        async def fail() -> None:
            async with database.write() as connection:
                await connection.execute(insert(people).values(person(1)))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with database.read() as connection:
            assert (await connection.execute(select(people))).all() == []

    @pytest.mark.parametrize(
        "change", [{"name_key": "name1"}, {"role": "owner"}, {"name": None}, {"person_id": "usr_1"}]
    )
    async def test_rows_that_break_a_rule_are_refused(
        self, database: HubDatabase, change: dict[str, object]
    ):
        async with database.write() as connection:
            await connection.execute(insert(people).values(person(1)))
        with pytest.raises(IntegrityError):
            async with database.write() as connection:
                await connection.execute(insert(people).values(person(2) | change))

    async def test_a_row_needs_the_person_that_it_names(self, database: HubDatabase):
        with pytest.raises(IntegrityError):
            async with database.write() as connection:
                await connection.execute(
                    text(
                        "INSERT INTO audit_log(at, action, actor_id, via, address, details) "
                        "VALUES (1, 'a', 'usr_nobody', 'api', '', '{}')"
                    )
                )

    async def test_many_writers_at_once_all_succeed(self, database: HubDatabase):
        async def write(number: int) -> None:
            async with database.write() as connection:
                count = len((await connection.execute(select(people))).all())
                await connection.execute(insert(people).values(person(number)))
                assert count <= 40

        await asyncio.gather(*(write(number) for number in range(40)))
        async with database.read() as connection:
            assert len((await connection.execute(select(people))).all()) == 40

    async def test_a_hub_runs_on_it(self, url: str, tmp_path: Path):
        async with running_hub(tmp_path, database=url) as hub:
            admin = await hub.first_admin("Ada")
            bo = await hub.join(admin, "Bo")
            tokens = [bo.signed_in["refreshToken"]]
            for _ in range(3):
                tokens.append((await hub.refresh(tokens[-1])).json()["refreshToken"])
            pair = await asyncio.gather(*(hub.refresh(tokens[-1]) for _ in range(4)))
            assert len({each.json()["refreshToken"] for each in pair}) == 1
            assert (await hub.login("Bo", "wrong" + PASSWORD)).status_code == 401
            page = await admin.get("/v1/audit?limit=2")
            seen = [row["seq"] for row in page["items"]]
            while "next" in page:
                page = await admin.get(f"/v1/audit?limit=2&cursor={page['next']}")
                seen += [row["seq"] for row in page["items"]]
            assert seen == sorted(set(seen), reverse=True)
            for wrong in ("%00", "é", "x" * 500, "'--"):
                answer = await admin.request("GET", f"/v1/people/{wrong}")
                assert answer.status_code == 404, answer.text
            nul = {"name": "\0", "password": "\0"}
            assert (await hub.post("/v1/auth/login", nul)).status_code == 401


class TestSqlite(RecordsContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'records.db'}"

    async def test_commits_are_synced_without_a_write_ahead_log(self, database: HubDatabase):
        async with database.read() as connection:
            found = [
                (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
        assert found == ["truncate", 2, 1]

    @pytest.mark.usefixtures("database")
    async def test_nobody_else_can_read_the_file(self, tmp_path: Path):
        assert (tmp_path / "records.db").stat().st_mode & 0o777 == 0o600

    async def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path):
        with pytest.raises(RecordsUnavailable, match="No such file"):
            async with open_database(f"sqlite:{tmp_path}/nowhere/records.db"):
                pass

    async def test_a_file_that_is_no_database_is_refused(self, tmp_path: Path, url: str):
        (tmp_path / "records.db").write_bytes(b"not a database" * 100)
        with pytest.raises(RecordsUnavailable):
            async with open_database(url):
                pass


class TestPostgres(RecordsContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)

    async def test_a_server_that_is_gone_is_a_documented_state(self, tmp_path: Path):
        with PostgresServer() as server:
            url = await create_postgres_database(server)
            async with running_hub(tmp_path, database=url) as hub:
                admin = await hub.first_admin()
                server.kill()
                down = await admin.request("GET", "/v1/me")
                assert (down.status_code, down.json()["code"]) == (503, "records_unavailable")
                health = await hub.http.get("/v1/health")
                assert (health.status_code, health.json()["status"]) == (503, "degraded")
                login = await hub.login("Ada")
                assert (login.status_code, login.json()["code"]) == (503, "records_unavailable")
                server.start()
                assert (await admin.get("/v1/me"))["name"] == "Ada"


@pytest.mark.parametrize(
    "url",
    [
        *("", "sqlite:", "mysql://a/b", "postgres:x", "nats://a", "hub.db"),
        *("sqlite::memory:", "sqlite:file::memory:"),
    ],
)
async def test_an_address_that_names_no_database_is_refused_without_repeating_it(url: str):
    with pytest.raises(RecordsUrlError) as raised:
        async with open_database(url):
            pass
    assert raised.value.code == "records_url"
    assert "a/b" not in str(raised.value)
