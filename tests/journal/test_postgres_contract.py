"""The contract and the model, held against PostgreSQL."""

from collections.abc import Generator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from factwire.journal import Journal, open_journal
from factwire.journal.postgres import writer
from tests.journal import postgres_server
from tests.journal.contract import JournalContract
from tests.journal.model import check_model
from tests.journal.postgres_server import PostgresServer
from tests.journal.restore_contract import RestoreContract

postgres = postgres_server.postgres


class PostgresBackend:
    """A journal of its own on a server that many tests share."""

    def __init__(self, server: PostgresServer, **options: str) -> None:
        self._url = server.url(uuid4().hex, **options)

    def open(self) -> Journal:
        return open_journal(self._url)

    def reopen(self) -> Journal:
        return open_journal(self._url)


class TestPostgres(JournalContract, RestoreContract):
    @pytest.fixture
    def backend(self, postgres: PostgresServer) -> PostgresBackend:
        return PostgresBackend(postgres)


@pytest.mark.fault
@pytest.mark.timeout(900)
@pytest.mark.requirement("journal.model")
def test_postgres_equals_the_model(monkeypatch: pytest.MonkeyPatch):
    # Even a few requests at once are split, so that one commit is put together on another.
    monkeypatch.setattr(writer, "_HALVED", 1)

    @contextmanager
    def place() -> Generator[PostgresBackend]:
        yield PostgresBackend(server, durable="no")

    # What a crash leaves is tested elsewhere; here only the answers count, and there are many.
    with PostgresServer({"fsync": "off", "synchronous_commit": "off"}) as server:
        check_model(place)
