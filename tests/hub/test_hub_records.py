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

from factwire.hub.records.hub_database import (
    HubDatabase,
    RecordsNewer,
    RecordsUnavailable,
    RecordsUrlError,
    _create_engine,
    open_database,
)
from factwire.hub.records.hub_tables import METADATA, people
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


async def create_postgres_database(server: PostgresServer) -> str:
    name = f"hub_{uuid4().hex}"
    connection = await cast("Any", asyncpg).connect(server.dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return f"postgres://postgres@/{name}?host={server.folder}"


class RecordsContract:
    """What holds on every backend."""

    @pytest_asyncio.fixture
    async def database(self, url: str) -> AsyncGenerator[HubDatabase]:
        async with open_database(url) as database:
            yield database

    async def test_migrations_make_exactly_the_tables_of_the_code(self, database: HubDatabase):
        def differences(connection: Connection) -> list[object]:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            return compare_metadata(context, METADATA)

        async with database.read() as connection:
            assert await connection.run_sync(differences) == []

    async def test_a_second_start_changes_nothing_and_keeps_rows(self, url: str):
        async with open_database(url) as database, database.write() as connection:
            await connection.execute(insert(people).values(person(1)))
        async with open_database(url) as database, database.read() as connection:
            assert (await connection.execute(select(people.c.name))).scalars().all() == ["Name 1"]

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


@pytest.mark.parametrize("url", ["", "sqlite:", "mysql://a/b", "postgres:x", "nats://a", "hub.db"])
async def test_an_address_that_names_no_database_is_refused_without_repeating_it(url: str):
    with pytest.raises(RecordsUrlError) as raised:
        async with open_database(url):
            pass
    assert raised.value.code == "records_url"
    assert "a/b" not in str(raised.value)
