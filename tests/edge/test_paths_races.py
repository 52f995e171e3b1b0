"""Folders that are swapped for links between a look and its use, and what previews never serve."""

import asyncio
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest

from factwire.edge import preview_site as folder_module
from factwire.edge.preview_site import PathMissing, PathRefused, ServedFolder
from factwire.runtime import runtime as runtime_module
from tests.edge.edges import RunningEdge, configuration_in, running_edge
from tests.edge.test_paths import NAMES, RAW
from tests.edge.test_previews import fill, open_preview, parts_of

pytestmark = pytest.mark.asyncio

real_located = folder_module.resolve_inside


def careless(root: int, parts: Any, flags: int) -> int:
    """What most servers do: look first, then open by name and follow what is there now."""
    return os.open("/".join(parts) or ".", flags & ~os.O_NOFOLLOW, dir_fd=root)


class Swapped:
    """A folder of a site that can become a link to a folder outside, and one again."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "workspace" / "dist" / "swap"
        self.outside = folder / "outside"
        self.kept = folder / "workspace" / "dist" / "kept"
        for where, text in ((self.outside, "OUTSIDE"), (self.place, "INSIDE")):
            where.mkdir()
            (where / "file.txt").write_text(text)

    def out(self) -> None:
        self.place.rename(self.kept)
        self.place.symlink_to(self.outside)

    def back(self) -> None:
        self.place.unlink()
        self.kept.rename(self.place)


@pytest.mark.fault
@pytest.mark.requirement("edge.paths.races")
@pytest.mark.parametrize("protected", [True, False])
async def test_a_folder_that_becomes_a_link_after_the_look_is_not_followed(
    tmp_path: Path, protected: bool
):
    async with open_preview(tmp_path) as (_, _, http):
        swapped = Swapped(tmp_path)

        def looked_at(root: Path, path: str) -> tuple[str, ...]:
            parts = real_located(root, path)
            swapped.out()
            return parts

        assert (await http.get("swap/file.txt")).text == "INSIDE"
        with patch.object(folder_module, "resolve_inside", looked_at):
            if protected:
                assert (await http.get("swap/file.txt")).status_code == 404
            else:
                with patch.object(folder_module, "_open_path", careless):
                    assert (await http.get("swap/file.txt")).text == "OUTSIDE"


@pytest.mark.fault
@pytest.mark.requirement("edge.paths.races")
async def test_a_race_for_a_link_never_shows_what_is_outside(tmp_path: Path):
    async with open_preview(tmp_path) as (_, _, http):
        swapped = Swapped(tmp_path)
        with keep_swapping(swapped):
            seen = [await http.get("swap/file.txt") for _ in range(300)]
        texts = {answer.text for answer in seen if answer.status_code == 200}
        assert texts <= {"INSIDE"}
        assert {answer.status_code for answer in seen} <= {200, 404}


@contextmanager
def keep_swapping(swapped: Swapped) -> Generator[None]:
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            swapped.out()
            swapped.back()

    worker = threading.Thread(target=swap)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.join(10)


@pytest.mark.fault
@pytest.mark.requirement("edge.paths.races")
@pytest.mark.parametrize("protected", [True, False])
async def test_a_folder_that_is_swapped_while_its_preview_starts_is_not_served(
    tmp_path: Path, protected: bool
):
    fill(tmp_path)
    swapped = Swapped(tmp_path)

    def looked_at(root: Path, path: str) -> tuple[str, ...]:
        parts = real_located(root, path)
        swapped.out()
        return parts

    workspace = tmp_path / "workspace"
    with patch.object(folder_module, "resolve_inside", looked_at):
        if protected:
            with pytest.raises(PathMissing):
                ServedFolder.open(str(workspace), "dist/swap", [workspace], ())
            return
        with patch.object(folder_module, "_open_path", careless):
            served = ServedFolder.open(str(workspace), "dist/swap", [workspace], ())
    # The second line of defence: the folder is not where the run works, whenever it is looked at.
    with pytest.raises(PathRefused):
        served.find("file.txt")
    served.close()


@pytest.mark.fault
@pytest.mark.requirement("edge.paths.races")
@pytest.mark.parametrize("protected", [True, False])
async def test_a_folder_that_is_moved_out_of_the_workspace_is_served_no_longer(
    tmp_path: Path, protected: bool
):
    async with open_preview(tmp_path) as (_, _, http):
        assert (await http.get("about/")).status_code == 200
        (tmp_path / "workspace" / "dist").rename(tmp_path / "moved")
        if protected:
            assert (await http.get("about/")).status_code == 404
        else:
            moved = tmp_path / "moved"
            with patch.object(ServedFolder, "_current_root", return_value=moved):
                assert (await http.get("about/")).status_code == 200


@pytest.mark.fault
@pytest.mark.requirement("edge.paths.races")
@pytest.mark.parametrize("protected", [True, False])
async def test_a_run_does_not_start_in_a_folder_that_became_a_link_while_it_waited(
    tmp_path: Path, protected: bool
):
    async with running_edge(tmp_path) as edge:
        place, outside = tmp_path / "workspace" / "sub", tmp_path / "outside"
        place.mkdir()
        outside.mkdir()
        first = await edge.start("approve")
        approval = await edge.wait_for_approval(first["runId"])
        second = await edge.start("help", threadId=first["threadId"], workDir=str(place))
        place.rmdir()
        place.symlink_to(outside)
        if protected:
            ended = await _cancel_and_wait(edge, approval, second)
            assert ended["status"] == "failed"
            assert ended["error"]["failureCategory"] == "workspace_not_allowed"
        else:
            with patch.object(runtime_module.Workspaces, "resolve", trust_folder):
                assert (await _cancel_and_wait(edge, approval, second))["status"] == "finished"


def trust_folder(_: object, folder: str) -> Path:
    """A folder as it was named, wherever it leads now."""
    return Path(folder)


async def _cancel_and_wait(
    edge: RunningEdge, approval: dict[str, Any], second: dict[str, Any]
) -> dict[str, Any]:
    cancelled = await edge.http.post(f"/v1/runs/{approval['runId']}:cancel")
    assert cancelled.status_code == 202
    await edge.run_until(approval["runId"])
    continued = await edge.http.post(f"/v1/threads/{second['threadId']}/queue:continue")
    assert continued.status_code == 200
    return await edge.run_until(second["runId"])


@pytest.mark.requirement("edge.preview.paths")
async def test_links_that_stay_inside_are_followed_and_others_are_not(tmp_path: Path):
    async with open_preview(tmp_path) as (_, _, http):
        site = tmp_path / "workspace" / "dist"
        (site / "latest").symlink_to("about")
        (site / "up").symlink_to("../outside.txt")
        (site / "abs").symlink_to(tmp_path / "workspace" / "outside.txt")
        (site / "root").symlink_to("/")
        (site / "loop").symlink_to("loop")
        (site / "env").symlink_to(".env")
        os.mkfifo(site / "pipe")
        (site / ".well-known").mkdir()
        (site / ".well-known" / "x.json").write_text("{}")
        found = {
            path: (await http.get(path)).status_code
            for path in (
                *("latest/", "up", "abs", "root/etc/passwd", "loop", "env", ".env", "pipe"),
                *(".git/config", ".well-known/x.json"),
            )
        }
        assert found == {
            "latest/": 200,
            ".well-known/x.json": 200,
            **dict.fromkeys(
                ("up", "abs", "root/etc/passwd", "loop", "env", ".env", "pipe", ".git/config"), 404
            ),
        }


@pytest.mark.fuzz
@pytest.mark.requirement("edge.preview.paths")
async def test_no_hostile_path_leads_out_of_a_preview(tmp_path: Path):
    (tmp_path / "canary.txt").write_text("OUTSIDE")
    async with open_preview(tmp_path) as (_, preview, _):
        parts = parts_of(preview)
        for value in [*NAMES, *RAW, "x/../../outside.txt", "%2e%2e/outside.txt", "assets//app.js"]:
            for start in (parts.path, "/"):
                target = (start + value).encode().replace(b" ", b"%20").replace(b"\r\n", b"%0d%0a")
                data = await _raw(parts.port or 0, target)
                status = int(data.split(b" ", 2)[1])
                assert status in (200, 400, 404), (value[:80], data[:200])
                assert b"OUTSIDE" not in data, value[:80]
                assert b"root:" not in data, value[:80]
                if status == 200:
                    assert value in ("*", "%", "?"), value[:80]


async def _raw(port: int, target: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n" % target)
    async with asyncio.timeout(60):
        data = await reader.read()
    writer.close()
    await writer.wait_closed()
    return data


@pytest.mark.fault
@pytest.mark.requirement("edge.preview.paths")
@pytest.mark.parametrize("protected", [True, False])
async def test_what_belongs_to_the_edge_is_never_served_wherever_it_lies(
    tmp_path: Path, protected: bool
):
    workspace = tmp_path / "workspace"
    configuration = configuration_in(
        tmp_path, data=str(workspace / "state"), journal=f"sqlite:{workspace}/runs.db"
    )
    (workspace / "index.html").write_text("home")
    async with running_edge(tmp_path, configuration=configuration) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        (workspace / "state" / "evidence-key.pem").write_text("KEY")
        body = {"runId": run["runId"], "path": "state"}
        refused = await edge.http.post("/v1/previews", json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "preview_path_not_allowed")
        preview = await edge.post("/v1/previews", {**body, "path": "."}, status=201)
        async with httpx.AsyncClient(base_url=preview["url"], trust_env=False) as http:
            if not protected:
                with patch.object(folder_module, "_ensure_servable"):
                    assert (await http.get("state/evidence-key.pem")).text == "KEY"
                return
            assert (await http.get("")).text == "home"
            for path in ("state/evidence-key.pem", "runs.db", "runs.db-wal", "state/"):
                assert (await http.get(path)).status_code == 404, path
