"""Starting an Edge where something is in the way: it says what, with exit code 2, or mends it."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factwire.serving.rest import MsgspecLitestar
from tests.cli.cli_commands import COMMAND, CommandOutput, Factwire
from tests.edge.edge_process import EdgeProcess
from tests.edge.edges import TOKEN, WAIT_SECONDS, running_edge
from tests.edge.fault_load import batch_of

pytestmark = [pytest.mark.fault]

Spoil = Callable[[Path], dict[str, str]]


@pytest.fixture
def factwire(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Factwire:
    for name, value in {"NO_COLOR": "1", "COLUMNS": "200", "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FACTWIRE_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return Factwire(capsys, monkeypatch, tmp_path)


def flags(folder: Path, **changes: str) -> list[str]:
    values = {
        "port": "0",
        "data": str(folder / "data"),
        "journal": f"sqlite:{folder}/journal.db",
        "workspace": str(folder),
    }
    return [part for name, value in (values | changes).items() for part in (f"--{name}", value)]


def start(factwire: Factwire, folder: Path, **changes: str) -> CommandOutput:
    return factwire("edge", *flags(folder, **changes))


def odd_journal(folder: Path) -> dict[str, str]:
    return {"journal": f"sqlite:{folder}/journal.db?mode=odd"}


def absent_server(folder: Path) -> dict[str, str]:
    return {"journal": f"postgres://me@/x?host={folder}&patience=0.1"}


def read_only_journal(folder: Path) -> dict[str, str]:
    shutil.rmtree(folder / "data", ignore_errors=True)
    with EdgeOnce(folder):
        pass
    return {"journal": f"sqlite:{folder}/journal.db?mode=ro"}


def file_for_a_folder(folder: Path) -> dict[str, str]:
    (folder / "file").write_text("")
    return {"data": str(folder / "file" / "data")}


def exposed_token(folder: Path) -> dict[str, str]:
    (folder / "data").mkdir()
    (folder / "data" / "edge-token").write_text(TOKEN)
    (folder / "data" / "edge-token").chmod(0o644)
    return {}


def damaged_journal(folder: Path) -> dict[str, str]:
    (folder / "journal.db").write_bytes(b"this is no journal" * 1_000)
    return {}


class EdgeOnce:
    """An Edge that has been there."""

    def __init__(self, folder: Path) -> None:
        self._edge = EdgeProcess.start(folder)

    def __enter__(self) -> EdgeProcess:
        return self._edge

    def __exit__(self, *_: object) -> None:
        self._edge.terminate()
        assert self._edge.wait() == 0


@pytest.mark.requirement("edge.faults.start")
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (odd_journal, "journal_url"),
        (absent_server, "journal_unavailable"),
        (read_only_journal, "journal_read_only"),
        (file_for_a_folder, "data_unusable"),
        (exposed_token, "token_exposed"),
        (damaged_journal, "journal_corrupt"),
    ],
)
def test_an_edge_that_cannot_start_says_why(
    factwire: Factwire, tmp_path: Path, spoil: Spoil, code: str
):
    done = start(factwire, tmp_path, **spoil(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith(f"error: {code}: ")
    assert "Traceback" not in done.err


@pytest.mark.requirement("edge.faults.start")
def test_a_journal_of_no_known_kind_is_named(factwire: Factwire, tmp_path: Path):
    done = start(factwire, tmp_path, journal="oracle://nowhere")
    assert done.code == 2
    assert done.err.startswith("error: oracle:// is not a kind of journal")


@pytest.mark.requirement("edge.faults.start")
def test_a_port_that_is_taken_is_named(factwire: Factwire, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = start(factwire, tmp_path, port=port)
    assert (done.code, done.err.startswith(f"error: address_unusable: 127.0.0.1:{port}")) == (
        2,
        True,
    )


@pytest.mark.requirement("edge.faults.start")
def test_a_second_edge_on_the_same_data_is_refused_and_harms_nothing(
    factwire: Factwire, tmp_path: Path
):
    with EdgeOnce(tmp_path) as edge:
        done = start(factwire, tmp_path)
        assert (done.code, done.out) == (2, "")
        last = done.err.splitlines()[-1]
        assert last.startswith("error: journal_busy: ")
        assert str(edge.pid) in last


@pytest.mark.requirement("edge.faults.start")
def test_an_interrupt_while_it_starts_ends_it_at_once(tmp_path: Path):
    """It waits for a database that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(WAIT_SECONDS)
        port = silent.getsockname()[1]
        journal = f"postgres://me@127.0.0.1:{port}/x?patience=600"
        starting = subprocess.Popen(
            [*COMMAND, "edge", *flags(tmp_path, journal=journal)],
            env={**os.environ, "HOME": str(tmp_path)},
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
        try:
            connection, _ = silent.accept()
            with connection:
                starting.send_signal(signal.SIGINT)
                _, payload = starting.communicate(timeout=WAIT_SECONDS)
        finally:
            starting.kill()
            starting.wait()
    assert (starting.returncode, b"Traceback" in payload) == (130, False)


async def lists(folder: Path, number: int) -> tuple[Any, Any]:
    """What an Edge lists, having taken one batch more."""
    async with running_edge(folder) as edge:
        await edge.post("/v1/facts", {"facts": batch_of(number, 0)})
        if number == 0:
            run = await edge.start("help")
            await edge.run_until(run["runId"])
        threads = (await edge.get("/v1/threads"))["items"]
        return {row["threadId"] for row in threads}, (await edge.get("/v1/runs"))["items"]


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garble_file(path: Path) -> None:
    path.write_bytes(b"\xff" * 100)


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def remove_file(path: Path) -> None:
    path.unlink()


def remove_journal(folder: Path) -> None:
    for path in folder.glob("journal.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.asyncio
@pytest.mark.requirement("edge.faults.start")
@pytest.mark.parametrize("spoil", [torn, garble_file, empty_file, remove_file])
async def test_lists_whose_file_is_damaged_are_made_anew(
    tmp_path: Path, spoil: Callable[[Path], None]
):
    threads, runs = await lists(tmp_path, 0)
    spoil(tmp_path / "data" / "edge-records.db")
    assert await lists(tmp_path, 1) == (threads | {"lane-1"}, runs)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.faults.start")
async def test_lists_that_know_more_than_the_journal_are_made_anew(tmp_path: Path):
    """As after a backup of the journal was put back."""
    threads, runs = await lists(tmp_path, 0)
    shutil.copy(tmp_path / "journal.db", tmp_path / "backup.db")
    await lists(tmp_path, 1)
    shutil.copy(tmp_path / "backup.db", tmp_path / "journal.db")
    assert await lists(tmp_path, 2) == (threads | {"lane-2"}, runs)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.faults.start")
async def test_lists_of_another_journal_are_made_anew(tmp_path: Path):
    await lists(tmp_path, 0)
    remove_journal(tmp_path)
    threads, runs = await asyncio.wait_for(lists(tmp_path, 1), WAIT_SECONDS)
    assert (threads, runs) == ({"lane-1"}, [])


def test_a_start_loads_no_model_system_that_no_handler_uses():
    loaded = {type(plugin).__module__ for plugin in MsgspecLitestar([]).plugins}
    assert not [module for module in loaded if "pydantic" in module or "attrs" in module]
