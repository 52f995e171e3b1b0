"""The contract, held against the backends that need no server."""

from pathlib import Path

import pytest

from factwire.journal import Journal, open_journal
from factwire.journal.memory import MemoryJournal
from tests.journal.contract import JournalContract


class MemoryBackend:
    def __init__(self) -> None:
        self._journal = MemoryJournal()

    def open(self) -> Journal:
        return self._journal

    def reopen(self) -> Journal:
        return self._journal


class SqliteBackend:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "journal.db"

    def open(self) -> Journal:
        return open_journal(f"sqlite:{self._path}")

    def reopen(self) -> Journal:
        return open_journal(f"sqlite:{self._path}")


class TestMemory(JournalContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


class TestSqlite(JournalContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path)
