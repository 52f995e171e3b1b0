"""Previews: one folder of a run on an origin of its own, for whoever has its address."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import SplitResult, urlsplit

import httpx
import pytest

from factwire.edge import limits
from factwire.edge import preview_server as previews_module
from factwire.edge import preview_site as site_module
from factwire.edge.preview_site import PreviewSite, RangeUnsatisfiable, parse_range
from tests.edge.edges import TOKEN, WAIT_SECONDS, RunningEdge, running_edge

pytestmark = pytest.mark.asyncio

PAGE = "<!doctype html><script type=module src=/assets/app.js></script>"


def fill(folder: Path) -> Path:
    """The workspace of a test's Edge, with something built in it."""
    site = folder / "workspace" / "dist"
    (site / "assets").mkdir(parents=True)
    (site / "about").mkdir()
    (site / "empty").mkdir()
    (site / "index.html").write_text(PAGE)
    (site / "about" / "index.html").write_text("about")
    (site / "assets" / "app.js").write_text("export {}")
    (site / "movie.mp4").write_bytes(bytes(range(256)) * 4096)
    (site / ".env").write_text("SECRET=1")
    (folder / "workspace" / "outside.txt").write_text("OUTSIDE")
    return site


@asynccontextmanager
async def open_preview(
    folder: Path, path: str = "dist"
) -> AsyncGenerator[tuple[RunningEdge, dict[str, Any], httpx.AsyncClient]]:
    """An Edge with a preview, and a client that knows only its address."""
    fill(folder)
    async with running_edge(folder) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        body = {"runId": run["runId"], "path": path}
        preview = await edge.post("/v1/previews", body, status=201)
        async with browser(preview) as http:
            yield edge, preview, http


@asynccontextmanager
async def browser(preview: dict[str, Any]) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=preview["url"], timeout=WAIT_SECONDS, trust_env=False
    ) as http:
        yield http


def parts_of(preview: dict[str, Any]) -> SplitResult:
    return urlsplit(str(preview["url"]))


@pytest.mark.requirement("edge.preview.served")
async def test_a_folder_of_a_run_is_served_with_its_types_and_indexes(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, http):
        seen = {
            path: await http.get(path)
            for path in ("", "about/", "assets/app.js", "movie.mp4", "empty/", "nothing")
        }
        kinds = {
            path: (answer.status_code, answer.headers["content-type"])
            for path, answer in seen.items()
        }
        assert kinds == {
            "": (200, "text/html; charset=utf-8"),
            "about/": (200, "text/html; charset=utf-8"),
            "assets/app.js": (200, "text/javascript; charset=utf-8"),
            "movie.mp4": (200, "video/mp4"),
            "empty/": (404, "application/problem+json"),
            "nothing": (404, "application/problem+json"),
        }
        assert seen[""].text == PAGE
        assert seen["movie.mp4"].content == bytes(range(256)) * 4096
        moved = await http.get("about")
        assert (moved.status_code, moved.headers["location"]) == (308, "./about/")
        head = await http.head("movie.mp4")
        assert (head.headers["content-length"], head.content) == (str(1 << 20), b"")
        assert parts_of(preview).port != edge.port
        assert TOKEN not in preview["url"]
        assert len(parts_of(preview).path.strip("/")) >= 43


@pytest.mark.requirement("edge.preview.facts")
async def test_a_preview_is_told_listed_and_stopped_once(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, http):
        page = await edge.get("/v1/previews", runId=preview["runId"], status="ready")
        assert page["items"] == [preview]
        assert await edge.get(f"/v1/previews/{preview['previewId']}") == preview
        for _ in range(2):
            stopped = await edge.post(f"/v1/previews/{preview['previewId']}:stop")
            assert (stopped["status"], "url" in stopped) == ("stopped", False)
        with pytest.raises(httpx.ConnectError):
            await http.get("")
        assert (await edge.get("/v1/previews", status="ready"))["items"] == []
        events = (await edge.get("/v1/events", types="preview.", threadId=preview["threadId"]))[
            "items"
        ]
        messages = [(event["type"], event["payload"]) for event in events]
        ids = {"previewId": preview["previewId"], "runId": preview["runId"]}
        shown = {**ids, "url": preview["url"], "by": preview["by"]}
        assert messages == [
            ("preview.ready", {**shown, "status": "ready"}),
            ("preview.stopped", {**shown, "status": "stopped"}),
        ]


@pytest.mark.requirement("edge.preview.facts")
async def test_one_key_makes_one_preview(tmp_path: Path):
    fill(tmp_path)
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        body = {"runId": run["runId"], "path": "dist"}
        first = await edge.post("/v1/previews", body, status=201, **{"idempotency-key": "a"})
        again = await edge.post("/v1/previews", body, status=201, **{"idempotency-key": "a"})
        assert first == again
        assert len((await edge.get("/v1/previews"))["items"]) == 1


@pytest.mark.requirement("edge.preview.stops")
async def test_a_preview_ends_with_its_edge_and_is_told_as_stopped(tmp_path: Path):
    async with open_preview(tmp_path) as (_, preview, http):
        assert (await http.get("")).status_code == 200
    async with running_edge(tmp_path) as edge:
        row = await edge.get(f"/v1/previews/{preview['previewId']}")
        assert (row["status"], "url" in row) == ("stopped", False)
        assert await reasons(edge) == ["edge_stopped"]
        stopped = await edge.post(f"/v1/previews/{preview['previewId']}:stop")
        assert stopped["status"] == "stopped"


@pytest.mark.fault
@pytest.mark.requirement("edge.preview.stops")
async def test_what_a_killed_edge_left_as_ready_is_told_as_stopped_at_the_next_start(
    tmp_path: Path,
):
    async def forgotten(*_: object) -> None:
        """A process that is killed stops nothing and tells nothing."""

    with patch("factwire.edge.startup.preview_operations.stop_all_previews", forgotten):
        async with open_preview(tmp_path) as (edge, preview, _):
            served = edge.machine.previews
    await served.stop(preview["previewId"])
    async with running_edge(tmp_path) as edge:
        assert (await edge.get(f"/v1/previews/{preview['previewId']}"))["status"] == "stopped"
        assert await reasons(edge) == ["edge_restarted"]


async def reasons(edge: RunningEdge) -> list[str]:
    found: list[str] = []
    async for batch in edge.machine.journal.read():
        found += [
            fact.payload["reason"]
            for _, fact in batch.facts()
            if fact.event_class == "preview.stopped"
        ]
    return found


@pytest.mark.requirement("edge.preview.stops")
async def test_a_preview_that_nobody_looks_at_stops_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        previews_module.PreviewRegistry.__init__,
        "__kwdefaults__",
        {"most": 10, "idle_seconds": 0.2},
    )
    async with open_preview(tmp_path) as (edge, preview, _):
        async with asyncio.timeout(WAIT_SECONDS):
            seen = edge.machine.feed.cursor.seq
            while (await edge.get(f"/v1/previews/{preview['previewId']}"))["status"] == "ready":
                await edge.machine.feed.wait_for(seen + 1)
                seen = edge.machine.feed.cursor.seq
        assert await reasons(edge) == ["idle"]
        assert edge.machine.previews.preview_ids == ()


@pytest.mark.requirement("edge.preview.stops")
async def test_a_deleted_thread_takes_its_previews_with_it(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, http):
        gone = await edge.http.delete(f"/v1/threads/{preview['threadId']}")
        assert gone.status_code == 204
        with pytest.raises(httpx.ConnectError):
            await http.get("")
        assert await reasons(edge) == ["thread_deleted"]


@pytest.mark.requirement("edge.preview.limits")
async def test_no_more_previews_than_may_be_are_served(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, _):
        body = {"runId": preview["runId"], "path": "dist"}
        for _ in range(limits.PREVIEWS - 1):
            await edge.post("/v1/previews", body, status=201)
        refused = await edge.http.post("/v1/previews", json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_previews")
        await edge.post(f"/v1/previews/{preview['previewId']}:stop")
        await edge.post("/v1/previews", body, status=201)


@pytest.mark.requirement("edge.preview.paths")
async def test_what_cannot_be_previewed_is_refused_by_a_code(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, _):
        run = preview["runId"]
        (tmp_path / "workspace" / "away").symlink_to(tmp_path)
        (tmp_path / "workspace" / ".git").mkdir()
        cases = {
            ("run_none", "dist"): (404, "unknown_run"),
            (run, "none"): (404, "preview_path_not_found"),
            (run, "dist/index.html"): (404, "preview_path_not_found"),
            (run, "../data"): (403, "preview_path_not_allowed"),
            (run, str(tmp_path)): (403, "preview_path_not_allowed"),
            (run, "away"): (403, "preview_path_not_allowed"),
            (run, "away/workspace/dist"): (201, None),
            (run, ".git"): (403, "preview_path_not_allowed"),
            (run, "a\0b"): (403, "preview_path_not_allowed"),
            (run, "x" * 5_000): (404, "preview_path_not_found"),
        }
        for (run_id, path), expected in cases.items():
            answer = await edge.http.post("/v1/previews", json={"runId": run_id, "path": path})
            assert (answer.status_code, answer.json().get("code")) == expected, path
        unknown = await edge.http.post("/v1/previews/prv_none:stop")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_preview")


@pytest.mark.requirement("edge.preview.address")
async def test_only_the_address_opens_a_preview(tmp_path: Path):
    async with open_preview(tmp_path) as (_, preview, http):
        parts = parts_of(preview)
        origin = f"http://{parts.netloc}"
        key = parts.path.strip("/")
        wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
        token = {"authorization": f"Bearer {TOKEN}"}
        for path in ("/", "/index.html", f"/{wrong}/", f"/{wrong}/index.html", f"//{key}/"):
            answer = await http.get(origin + path, headers=token)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        bare = await http.get(f"{origin}/{key}")
        assert (bare.status_code, bare.headers["location"]) == (308, f"./{key}/")


@pytest.mark.requirement("edge.preview.address")
async def test_a_page_reaches_its_files_from_the_root_by_a_cookie_for_its_own_origin(
    tmp_path: Path,
):
    async with open_preview(tmp_path) as (_, preview, http):
        root = f"http://{parts_of(preview).netloc}/assets/app.js"
        assert (await http.get(root)).status_code == 404
        page = await http.get("")
        cookie = page.headers["set-cookie"]
        assert "HttpOnly; SameSite=Strict" in cookie
        assert parts_of(preview).path.strip("/") not in cookie
        for site, status in (("same-origin", 200), ("same-site", 404), ("cross-site", 404)):
            answer = await http.get(root, headers={"sec-fetch-site": site})
            assert answer.status_code == status, site
        assert "set-cookie" not in (await http.get(root)).headers
        http.cookies.clear()
        name = cookie.partition("=")[0]
        assert (await http.get(root, headers={"cookie": f"{name}=x"})).status_code == 404


@pytest.mark.requirement("edge.preview.address")
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example"])
async def test_a_name_that_somebody_points_here_is_not_answered(tmp_path: Path, host: str):
    async with open_preview(tmp_path) as (_, _, http):
        answer = await http.get("", headers={"host": host})
        assert (answer.status_code, answer.json()["code"]) == (421, "host_not_allowed")


@pytest.mark.requirement("edge.preview.browser")
async def test_a_page_is_kept_to_its_own_folder_and_from_everything_else(tmp_path: Path):
    async with open_preview(tmp_path) as (_, _, http):
        answer = await http.get("")
        payload = [part.split() for part in answer.headers["content-security-policy"].split(";")]
        policy = {name: sources for name, *sources in payload}
        assert policy["default-src"] == ["'none'"]
        for name in ("script-src", "connect-src", "img-src", "form-action", "frame-src"):
            sources = set(policy[name])
            assert sources <= {
                *("'self'", "data:", "blob:"),
                *("'unsafe-inline'", "'unsafe-eval'", "'wasm-unsafe-eval'"),
            }, name
        assert "allow-popups" not in policy["sandbox"]
        assert "allow-top-navigation" not in policy["sandbox"]
        assert "http://127.0.0.1:*" in policy["frame-ancestors"]
        assert {
            name: answer.headers[name]
            for name in (
                "x-content-type-options",
                "referrer-policy",
                "cross-origin-resource-policy",
                "cross-origin-opener-policy",
                "cache-control",
            )
        } == {
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-resource-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "cache-control": "no-store",
        }
        assert "access-control-allow-origin" not in answer.headers
        worker = await http.get("assets/app.js", headers={"service-worker": "script"})
        assert (worker.status_code, worker.json()["code"]) == (403, "service_worker_refused")


@pytest.mark.fault
@pytest.mark.requirement("edge.preview.address")
async def test_each_attack_on_the_address_would_succeed_without_its_protection(tmp_path: Path):
    async with open_preview(tmp_path) as (_, preview, http):
        origin = f"http://{parts_of(preview).netloc}"
        await http.get("")
        near = {"sec-fetch-site": "same-site"}
        with patch.object(site_module, "_OWN_PAGES", (b"same-site",)):
            assert (await http.get(f"{origin}/assets/app.js", headers=near)).status_code == 200
        http.cookies.clear()
        with patch.object(PreviewSite, "_has_pass", return_value=True):
            assert (await http.get(f"{origin}/assets/app.js")).status_code == 200
        with patch.object(site_module.secrets, "compare_digest", return_value=True):
            assert (await http.get(f"{origin}/guessed/assets/app.js")).status_code == 200
        with patch.object(PreviewSite, "_ensure_allowed"):
            rebound = await http.get("", headers={"host": "evil.example"})
            worker = await http.get("assets/app.js", headers={"service-worker": "script"})
            assert (rebound.status_code, worker.status_code) == (200, 200)


@pytest.mark.requirement("edge.preview.facts")
async def test_a_runtime_outside_cannot_tell_this_edge_s_preview_as_stopped(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, http):
        forged = {
            "id": "evt_forged",
            "kind": "state",
            "status": "completed",
            "title": "Preview stopped",
            "createdAt": "2026-06-10T09:00:01.000Z",
            "schemaVersion": "factwire-fact/v1",
            "runtimeId": "elsewhere",
            "sequence": 1,
            "eventClass": "preview.stopped",
            "sessionId": "ses_elsewhere",
            "threadId": "thr_elsewhere",
            "runId": preview["runId"],
            "payload": {"previewId": preview["previewId"], "status": "stopped"},
        }
        refused = await edge.http.post("/v1/facts", json={"facts": [forged]})
        assert refused.json()["code"] == "class_reserved"
        assert await edge.get(f"/v1/previews/{preview['previewId']}") == preview
        assert (await http.get("")).status_code == 200


@pytest.mark.requirement("edge.preview.browser")
async def test_a_preview_is_only_read(tmp_path: Path):
    async with open_preview(tmp_path) as (_, _, http):
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer = await http.request(method, "")
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), method


@pytest.mark.requirement("edge.preview.browser")
async def test_two_previews_are_two_origins(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, _):
        body = {"runId": preview["runId"], "path": "dist/about"}
        other = await edge.post("/v1/previews", body, status=201)
        assert parts_of(other).netloc != parts_of(preview).netloc
        async with browser(other) as http:
            assert (await http.get("")).text == "about"


@pytest.mark.requirement("edge.preview.ranges")
async def test_a_part_of_a_file_can_be_asked_for(tmp_path: Path):
    async with open_preview(tmp_path) as (_, _, http):
        whole = await http.get("movie.mp4")
        part = await http.get("movie.mp4", headers={"range": "bytes=1000-1999"})
        assert (part.status_code, part.content) == (206, whole.content[1000:2000])
        assert part.headers["content-range"] == f"bytes 1000-1999/{1 << 20}"
        past = await http.get("movie.mp4", headers={"range": "bytes=9999999-"})
        assert (past.status_code, past.headers["content-range"]) == (416, f"bytes */{1 << 20}")
        same = {"range": "bytes=0-9", "if-range": whole.headers["etag"]}
        assert (await http.get("movie.mp4", headers=same)).status_code == 206
        other = {**same, "if-range": '"of-another-version"'}
        assert (await http.get("movie.mp4", headers=other)).status_code == 200


RANGES: list[tuple[str | None, int, tuple[int, int] | None]] = [
    (None, 10, None),
    ("bytes=0-0", 10, (0, 1)),
    ("bytes=5-", 10, (5, 10)),
    ("bytes=-3", 10, (7, 10)),
    ("bytes=-30", 10, (0, 10)),
    ("bytes=2-99", 10, (2, 10)),
    ("bytes=5-2", 10, None),
    ("bytes=0-1,4-5", 10, None),
    ("bytes=-", 10, None),
    ("lines=0-1", 10, None),
    ("bytes=" + "9" * 40 + "-", 10, None),
    ("bytes=٣-", 10, None),
]


@pytest.mark.requirement("edge.preview.ranges")
@pytest.mark.parametrize(("header", "size", "expected"), RANGES)
async def test_a_range_is_read_or_ignored(
    header: str | None, size: int, expected: tuple[int, int] | None
):
    assert parse_range(header, size) == expected


@pytest.mark.requirement("edge.preview.ranges")
@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=-1", 0)])
async def test_a_range_outside_of_a_file_is_refused(header: str, size: int):
    with pytest.raises(RangeUnsatisfiable):
        parse_range(header, size)


@pytest.mark.fault
@pytest.mark.requirement("edge.preview.ranges")
async def test_a_file_that_shrinks_while_it_is_sent_is_never_taken_for_whole(tmp_path: Path):
    big = tmp_path / "workspace" / "dist" / "big.bin"
    async with open_preview(tmp_path) as (_, _, http):
        with big.open("wb") as file:
            file.truncate(64 * 1024 * 1024)
        with pytest.raises(httpx.RemoteProtocolError):
            await cut_short(http, big)
        assert (await http.get("big.bin")).content == b"short"


async def cut_short(http: httpx.AsyncClient, big: Path) -> None:
    async with http.stream("GET", "big.bin") as answer:
        pieces = answer.aiter_bytes(1024)
        await anext(pieces)
        await asyncio.to_thread(big.write_bytes, b"short")
        async for _ in pieces:
            pass


@pytest.mark.requirement("edge.preview.stops")
async def test_a_transfer_under_way_does_not_keep_an_edge_from_stopping(tmp_path: Path):
    async with open_preview(tmp_path) as (edge, preview, http):
        with (tmp_path / "workspace" / "dist" / "big.bin").open("wb") as file:
            file.truncate(256 * 1024 * 1024)
        async with http.stream("GET", "big.bin") as answer:
            await anext(answer.aiter_bytes(1024))
            async with asyncio.timeout(WAIT_SECONDS):
                await edge.post(f"/v1/previews/{preview['previewId']}:stop")
