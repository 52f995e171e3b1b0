"""Hostile ids and paths, on every address that takes one: refused by a code, and never a file."""

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from litestar import get
from litestar.params import FromPath

from factwire.edge import edge_app
from factwire.edge.edge_app import build_openapi
from factwire.serving.asgi import Problem
from tests.edge.edges import TOKEN, RunningEdge, running_edge

pytestmark = pytest.mark.asyncio

CANARY = "the-canary-that-nobody-may-see"

NAMES = [
    "..",
    ".",
    "../" * 8 + "etc/passwd",
    "..\\..\\canary.txt",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "C:\\Windows\\win.ini",
    "\\\\server\\share",
    "....//....//canary.txt",
    "..;/canary.txt",
    "~root",
    "canary.txt\0.html",
    "\0",
    "a\r\nx-injected: 1",
    "\u2025/\u2025/canary.txt",
    "\uff0e\uff0e\uff0fcanary.txt",
    "\u202e\u2066txt.yranac",
    "ru\u0301n",
    "$(id)",
    "`id`",
    "| id",
    "--upload-pack=id",
    "-rf",
    "*",
    "%",
    "%2e%2e%2fcanary.txt",
    "x" * 8_000,
    "sha256:" + "0" * 64,
    "blob:sha256:../../canary.txt",
    "CON",
    "' OR 1=1 --",
    "{{7*7}}",
    "__proto__",
]
"""What somebody may send in the place of an id."""

RAW = [
    "..%2f..%2fcanary.txt",
    "%2e%2e/%2e%2e/canary.txt",
    "../../canary.txt",
    "..%5c..%5ccanary.txt",
    "%252e%252e%252fcanary.txt",
    "%c0%ae%c0%ae%c0%afcanary.txt",
    "%ff%fe",
    "%",
    "%zz",
    "%00",
    "a%2f..%2fb",
    "./x",
    "x/./y",
]
"""The same once more, as it may stand in an address without a client that cleans it up."""

BODIES: dict[str, Any] = {
    "/v1/conversations/{}/members": {"memberId": "m", "memberType": "person"},
    "/v1/projects/{}": {"name": "x"},
    "/v1/threads/{}": {"title": "x"},
    "/v1/threads/{}:fork": {},
    "/v1/threads/{}/messages": {"text": "x"},
}
"""Bodies with which nothing but the id is wrong."""


async def answer_to(
    edge: RunningEdge, method: str, target: bytes, body: Any = None
) -> tuple[int, bytes]:
    """The status and all bytes of an answer to a request whose address is sent as it is."""
    content = b"" if body is None else msgspec.json.encode(body)
    kind = b"content-type: application/json\r\n" if content else b""
    reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
    writer.write(
        b"%s %s HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\nconnection: close\r\n%s"
        b"content-length: %d\r\n\r\n%s"
        % (method.encode(), target, TOKEN.encode(), kind, len(content), content)
    )
    async with asyncio.timeout(60):
        data = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(data.split(b" ", 2)[1]), data


def taking_ids() -> list[tuple[str, str]]:
    return [
        (method.upper(), re.sub(r"\{[^}]*\}", "{}", path))
        for path, operations in build_openapi()["paths"].items()
        for method in operations
        if "{" in path
    ]


async def taken_in(
    edge: RunningEdge, addresses: list[tuple[str, str]]
) -> list[tuple[str, str, str, bytes]]:
    """Every answer to a hostile id that is not a refusal by a code, or shows what it must not."""
    found: list[tuple[str, str, str, bytes]] = []
    for method, path in addresses:
        body = BODIES.get(path) if method != "GET" else None
        for value in [*(quote(name, safe="") for name in NAMES), *RAW]:
            target = path.replace("{}", value).encode()
            status, data = await answer_to(edge, method, target, body)
            is_problem = b"application/problem+json" in data and b'"code":' in data
            refused = is_problem or b"Invalid HTTP request" in data
            shown = any(word in data for word in (CANARY.encode(), b"root:", b"\r\nx-injected"))
            if not 400 <= status < 500 or not refused or shown:
                found.append((method, path, value[:80], data))
    return found


def with_canaries(folder: Path) -> None:
    (folder / "workspace").mkdir()
    for place in (folder, folder / "workspace"):
        (place / "canary.txt").write_text(CANARY)


async def test_the_walk_finds_the_addresses_that_take_an_id():
    found = taking_ids()
    assert len(found) >= 25
    assert ("GET", "/v1/blobs/{}") in found
    assert ("POST", "/v1/previews/{}:stop") in found
    assert ("GET", "/v1/runs/{}/diff") in found


@pytest.mark.fuzz
@pytest.mark.requirement("edge.paths.ids")
async def test_no_address_takes_a_hostile_id_for_one_of_its_own(tmp_path: Path):
    with_canaries(tmp_path)
    async with running_edge(tmp_path) as edge:
        assert await taken_in(edge, taking_ids()) == []


@pytest.mark.fault
@pytest.mark.requirement("edge.paths.ids")
async def test_an_address_that_takes_an_id_for_a_path_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with_canaries(tmp_path)
    place = tmp_path / "workspace" / "deep"
    place.mkdir()

    @get("/v1/careless/{name:str}")
    async def careless(name: FromPath[str]) -> str:
        """A file by its name."""
        try:
            return (place / name.replace("\\", "/")).read_text()
        except (OSError, ValueError) as error:
            raise Problem(404, "not_found", str(error)) from error

    monkeypatch.setattr(edge_app, "ROUTES", [*edge_app.ROUTES, careless])
    async with running_edge(tmp_path) as edge:
        addresses = [each for each in taking_ids() if "careless" in each[1]]
        found = await taken_in(edge, addresses)
        assert any(CANARY.encode() in data for _, _, _, data in found), addresses


DECISION = {"decision": "allow", "argsHash": "sha256:1"}
IDS_IN_BODIES: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/runs", {"agentId": "demo", "prompt": "x"}, "threadId"),
    ("/v1/runs", {"agentId": "demo", "prompt": "x"}, "projectId"),
    ("/v1/runs", {"prompt": "x"}, "agentId"),
    ("/v1/threads", {}, "projectId"),
    ("/v1/threads", {}, "agentId"),
    ("/v1/previews", {}, "runId"),
    ("/v1/evidence", {}, "threadId"),
    ("/v1/permissions/decide", {"requestId": "act_1", **DECISION}, "runId"),
    ("/v1/permissions/decide", {"runId": "run_1", **DECISION}, "requestId"),
]
PATHS_IN_BODIES: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/runs", {"agentId": "demo", "prompt": "x"}, "workDir"),
    ("/v1/projects", {"name": "x"}, "workDir"),
    ("/v1/previews", {"runId": "RUN"}, "path"),
]


@pytest.mark.fuzz
@pytest.mark.requirement("edge.paths.ids")
async def test_no_body_takes_a_hostile_id_or_folder(tmp_path: Path):
    (tmp_path / "canary.txt").write_text(CANARY)
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        (tmp_path / "workspace" / "out").symlink_to(tmp_path)
        (tmp_path / "workspace" / "loop").symlink_to("loop")
        folders = [name for name in NAMES if name != "."]
        folders += ["out", "loop", "out/data", str(tmp_path), "/", "/proc/self/root", "/dev/fd"]
        for path, body, field in IDS_IN_BODIES + PATHS_IN_BODIES:
            known = {**body, "runId": run["runId"]} if body.get("runId") == "RUN" else body
            for value in folders if (path, body, field) in PATHS_IN_BODIES else NAMES:
                answer = await edge.http.post(path, json={**known, field: value})
                payload = (path, field, value[:80], answer.text[:200])
                assert 400 <= answer.status_code < 500, payload
                assert answer.headers["content-type"] == "application/problem+json", payload
                assert answer.json()["code"], payload
                assert CANARY not in answer.text, payload
        assert edge.machine.previews.preview_ids == ()


@pytest.mark.fuzz
@pytest.mark.requirement("edge.paths.ids")
async def test_no_filter_takes_a_hostile_value_for_more_than_no_match(tmp_path: Path):
    (tmp_path / "canary.txt").write_text(CANARY)
    async with running_edge(tmp_path) as edge:
        run = await edge.start("help")
        await edge.run_until(run["runId"])
        places = [
            ("/v1/runs", "threadId"),
            ("/v1/approvals", "runId"),
            ("/v1/artifacts", "runId"),
            ("/v1/previews", "runId"),
            ("/v1/tasks", "threadId"),
            ("/v1/evidence", "threadId"),
            ("/v1/events", "threadId"),
            ("/v1/facts", "runId"),
            ("/v1/runs", "cursor"),
            ("/v1/events", "cursor"),
            (f"/v1/runs/{run['runId']}/logs", "processId"),
            (f"/v1/threads/{run['threadId']}/projection", "at"),
        ]
        for path, name in places:
            for value in NAMES:
                answer = await edge.http.get(path, params={name: value})
                payload = (path, name, value[:80], answer.text[:200])
                assert answer.status_code < 500, payload
                assert CANARY not in answer.text, payload
                if answer.status_code == 200:
                    assert answer.json()["items"] == [], payload
                else:
                    assert answer.headers["content-type"] == "application/problem+json", payload
