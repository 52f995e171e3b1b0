"""Whatever is done to a journal, in whatever order: it answers as the model does."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from factwire.journal.sqlite import handle, reader_pool, writer
from tests.journal.model import check_model
from tests.journal.test_contract import MemoryBackend, SqliteBackend


@contextmanager
def in_memory() -> Generator[MemoryBackend]:
    yield MemoryBackend()


@contextmanager
def on_disk() -> Generator[SqliteBackend]:
    with TemporaryDirectory() as folder:
        yield SqliteBackend(Path(folder))


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.model")
def test_memory_equals_the_model():
    check_model(in_memory)


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.model")
def test_sqlite_equals_the_model():
    check_model(on_disk)


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.requirement("journal.model")
def test_sqlite_equals_the_model_while_it_merges_and_seals_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(writer, "LOOSE_CHUNKS", 4)
    monkeypatch.setattr(writer, "LOOSE_FACTS", 4)
    monkeypatch.setattr(writer, "LOOSE_ENOUGH", 2)
    monkeypatch.setattr(writer, "CHUNK_FACTS", 3)
    monkeypatch.setattr(handle, "RUN_IDS", 5)
    monkeypatch.setattr(handle, "CHECKPOINT_PAGES", 4)
    monkeypatch.setattr(reader_pool, "RING_BYTES", 600)
    monkeypatch.setattr(reader_pool, "FETCH_BYTES", 600)
    check_model(on_disk, examples=100)
