"""Every file that an Edge keeps, damaged in every way: an answer, and a start afterwards."""

import asyncio
import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from factwire.edge.records import Records
from factwire.edge.records.edge_records import RECORDS_FILE, RECORDS_VERSION
from factwire.edge.startup import EdgeSettings, open_edge
from factwire.edge.workbench import write_entrance
from factwire.journal import atomic_files
from factwire.runtime.errors import RuntimeRefused
from factwire.serving.access_control import InsecureStart
from factwire.serving.http_server import DataUnusable
from factwire.serving.paging import RowDatabase
from tests.cli.cli_commands import COMMAND
from tests.edge.edges import WAIT_SECONDS, configuration_in, running_edge
from tests.edge.fault_load import batch_of
from tests.edge.streaming import until

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("edge.files.damaged")]

Spoil = Callable[[Path], None]


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00\xfe" * 100)


def wrong_type(path: Path) -> None:
    path.write_bytes(b'{"name": 7, "key": []}')


def nested(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def writable_by_others(path: Path) -> None:
    path.chmod(0o666)


SPOILS: Final = (
    empty,
    truncated,
    garbage,
    wrong_type,
    nested,
    folder,
    pipe,
    dangling_link,
    writable_by_others,
)
STARTS: Final = "starts"

ANSWERS: Final[dict[str, dict[Spoil, str]]] = {
    "edge-token": {
        empty: STARTS,
        truncated: "token_unusable",
        garbage: "token_unusable",
        wrong_type: "token_unusable",
        nested: "token_unusable",
        folder: "file_unusable",
        pipe: "file_unusable",
        dangling_link: "file_unusable",
        writable_by_others: "token_exposed",
    },
    "edge-tokens": {
        **dict.fromkeys((empty, truncated, garbage, wrong_type, nested), "tokens_unreadable"),
        **dict.fromkeys((folder, pipe, dangling_link), "file_unusable"),
        writable_by_others: "token_exposed",
    },
    "identity.json": {
        **dict.fromkeys(SPOILS, "identity_unusable"),
        # Nothing is there, so that one is made; the link goes nowhere and stays.
        dangling_link: "identity_unusable",
    },
    "edge-records.db": dict.fromkeys(SPOILS, STARTS),
    "workbench.html": dict.fromkeys(SPOILS, STARTS),
    "evidence-key.pem": dict.fromkeys(SPOILS, STARTS),
}
"""File × damage → the code of the refusal, or that the Edge starts."""


async def try_to_start(place: Path) -> str:
    """The code with which an Edge refuses to start, or that it starts, twice."""
    configuration = configuration_in(place)
    try:
        for _ in range(2):
            settings = EdgeSettings()
            async with open_edge(configuration, place / "workspace", settings) as edge:
                assert edge.kept_token
    except (InsecureStart, RuntimeRefused, DataUnusable) as error:
        return error.code if str(place / "data") in str(error) else f"without a path: {error}"
    return STARTS


@pytest.fixture(scope="module")
def stopped_edge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an Edge leaves that has used every file."""
    place = tmp_path_factory.mktemp("edge")

    async def use() -> None:
        async with running_edge(place, settings=EdgeSettings()) as edge:
            await edge.post("/v1/tokens", {"name": "x", "scopes": ["read"]}, status=201)
            run = await edge.start("help")
            await edge.run_until(run["runId"])
            await edge.post("/v1/evidence", {"threadId": run["threadId"]}, status=201)
            write_entrance(edge.machine.data, "http://x/#token=y")

    asyncio.run(use())
    assert set(ANSWERS) <= {path.name for path in (place / "data").iterdir()}
    return place


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("name", ANSWERS)
async def test_a_damaged_file_has_its_answer_and_can_be_taken_away(
    stopped_edge: Path, tmp_path: Path, name: str, spoil: Spoil
):
    place = tmp_path / "edge"
    shutil.copytree(stopped_edge, place)
    spoil(place / "data" / name)
    assert await try_to_start(place) == ANSWERS[name][spoil]
    path = place / "data" / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    assert await try_to_start(place) == STARTS


KEY_ANSWERS: Final[dict[Spoil, tuple[int, str | None]]] = {
    empty: (201, None),
    **dict.fromkeys((truncated, garbage, wrong_type, nested), (409, "key_malformed")),
    folder: (409, "key_unreadable"),
    dangling_link: (409, "key_missing"),
    writable_by_others: (409, "key_exposed"),
}


@pytest.mark.parametrize("spoil", KEY_ANSWERS, ids=lambda spoil: spoil.__name__)
async def test_a_damaged_key_is_an_answer_of_the_export_and_not_a_failure_of_the_edge(
    tmp_path: Path, spoil: Spoil
):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        body = {"threadId": run["threadId"]}
        await edge.post("/v1/evidence", body, status=201)
        spoil(tmp_path / "data" / "evidence-key.pem")
        answer = await edge.http.post("/v1/evidence", json=body)
        assert (answer.status_code, answer.json().get("code")) == KEY_ANSWERS[spoil]


async def test_a_full_disk_neither_revokes_a_token_by_half_nor_keeps_its_owner_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("factwire.serving.access_control.TOKEN_USE_SECONDS", 0)
    async with running_edge(tmp_path) as edge:
        body = {"name": "x", "scopes": ["read"]}
        made = await edge.post("/v1/tokens", body, status=201)
        own = {"authorization": f"Bearer {made['token']}"}
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", refuse)
            answer = await edge.http.delete(f"/v1/tokens/{made['tokenId']}")
            assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
            assert (await edge.http.get("/v1/threads", headers=own)).status_code == 200
        gone = await edge.http.delete(f"/v1/tokens/{made['tokenId']}")
        assert gone.is_success
        assert (await edge.http.get("/v1/threads", headers=own)).status_code == 401
    async with running_edge(tmp_path) as edge:
        assert (await edge.http.get("/v1/threads", headers=own)).status_code == 401


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
async def test_a_full_disk_is_an_answer_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        before = sorted(path.name for path in (tmp_path / "data").iterdir())
        posts = {
            "/v1/evidence": {"threadId": run["threadId"]},
            "/v1/tokens": {"name": "x", "scopes": ["read"]},
        }
        for path, body in posts.items():
            with monkeypatch.context() as patch:
                patch.setattr(atomic_files.os, "link", refuse)
                patch.setattr(Path, "replace", refuse)
                answer = await edge.http.post(path, json=body)
            found = (answer.status_code, answer.json()["code"], answer.headers["retry-after"])
            assert found == (503, "storage_unavailable", "1")
            assert sorted(each.name for each in (tmp_path / "data").iterdir()) == before
            assert (await edge.http.post(path, json=body)).status_code == 201
            before = sorted(path.name for path in (tmp_path / "data").iterdir())


async def test_a_temporary_folder_that_takes_no_more_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    operations = "factwire.edge.operations.evidence_operations"
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        body = {"threadId": run["threadId"]}
        with monkeypatch.context() as patch:
            patch.setattr(f"{operations}.TemporaryFile", refuse)
            answer = await edge.http.post("/v1/evidence", json=body)
            assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
        made = await edge.post("/v1/evidence", body, status=201)
        with monkeypatch.context() as patch:
            patch.setattr(f"{operations}.TemporaryDirectory", refuse)
            answer = await edge.http.get(f"/v1/evidence/{made['evidenceId']}/verification")
            assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")


REFUSALS: Final = ("file_unusable", "data_unusable", "journal_unwritable", "journal_unavailable")


def start_with_a_full_disk(place: Path, largest: int) -> "subprocess.CompletedProcess[bytes]":
    """Start an Edge that may write no file longer than so many bytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    flags = ["--port", "0", "--data", str(place / "data"), "--workspace", str(place)]
    return subprocess.run(
        [*COMMAND, "edge", *flags],
        env={**os.environ, "HOME": str(place), "NO_COLOR": "1", "FACTWIRE_TOKEN": ""},
        cwd=place,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("largest", [0, 10, 60, 150])
async def test_a_disk_that_is_full_at_the_first_start_is_told_and_the_next_start_works(
    tmp_path: Path, largest: int
):
    done = start_with_a_full_disk(tmp_path, largest)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False), done.stderr
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("error: "), last
    assert last.split(": ")[1] in REFUSALS, last
    assert await try_to_start(tmp_path) == STARTS


async def test_a_token_that_is_not_stored_is_never_used(tmp_path: Path):
    """As an older version left it on a full disk."""
    place = tmp_path
    configuration_in(place)
    (place / "data").mkdir(mode=0o700)
    (place / "data" / "edge-token").touch(0o600)
    configuration = configuration_in(place)
    async with open_edge(configuration, place / "workspace", EdgeSettings()) as edge:
        assert edge.fresh_token
        stored = (place / "data" / "edge-token").read_text().strip()
        assert stored == edge.token.value
    async with open_edge(configuration, place / "workspace", EdgeSettings()) as again:
        assert (again.fresh_token, again.token.value) == (False, stored)


@pytest.mark.requirement("edge.files.private")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722, 0o755, 0o750, 0o700])
async def test_a_data_folder_that_others_may_write_to_is_closed_to_them(tmp_path: Path, mode: int):
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    assert await try_to_start(tmp_path) == STARTS
    assert data.stat().st_mode & 0o777 == (0o700 if mode & 0o022 else mode)


@pytest.mark.requirement("edge.files.private")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "data_unusable"),
        ("edge-token", "token_exposed"),
        ("edge-tokens", "token_exposed"),
        ("identity.json", "identity_unusable"),
    ],
)
async def test_what_belongs_to_another_user_is_refused(
    stopped_edge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str
):
    place = tmp_path / "edge"
    shutil.copytree(stopped_edge, place)
    path = place / "data" / name if name else place / "data"
    found, is_foreign = path.stat().st_ino, atomic_files.is_foreign

    def is_found(about: os.stat_result) -> bool:
        return about.st_ino == found or is_foreign(about)

    monkeypatch.setattr(atomic_files, "is_foreign", is_found)
    assert await try_to_start(place) == code


@pytest.mark.requirement("edge.files.saved")
async def test_lists_are_saved_while_an_edge_runs(tmp_path: Path):
    """A kill finds lists on disk that soon lack nothing of what was answered."""
    async with running_edge(tmp_path) as edge:
        for number in range(12):
            await edge.post("/v1/facts", {"facts": batch_of(number, 0)})
        listed = await edge.get("/v1/threads")
        saved_lists, head = edge.machine.records.database, edge.machine.feed.cursor.seq
        await until(lambda: saved_lists.read_seq() == head)
        killed = tmp_path / "killed"
        shutil.copytree(tmp_path / "data", killed, ignore=shutil.ignore_patterns("control"))
        found = Records(
            RowDatabase(killed / RECORDS_FILE, str(RECORDS_VERSION), edge.machine.feed.cursor.epoch)
        )
        assert found.seq == edge.machine.feed.cursor.seq
        saved = [row.thread_id for row in found.threads.newest()]
        assert saved == [row["threadId"] for row in listed["items"]]
