"""The Edge hands out the workbench: to anybody who may reach it, and nothing else with it."""

import gzip
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from factwire.edge import edge_app
from factwire.edge.workbench import content_policy, read_bundle
from factwire.serving.access_control import HostPolicy
from tests.edge.edges import TOKEN, running_edge
from tests.workbench.bundles import INDEX, SCRIPT, SECRET, small_build

pytestmark = pytest.mark.asyncio

PAGE = {"accept": "text/html,application/xhtml+xml"}
ASSET = "/assets/index-Ab3_x9Zq.js"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; frame-src http://127.0.0.1:*; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types factwire-files"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@pytest_asyncio.fixture
async def anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[httpx.AsyncClient]:
    """Asks an Edge with a small build, and shows no token."""
    build = small_build(tmp_path)
    monkeypatch.setattr(edge_app, "load_built_bundle", lambda: read_bundle(build))
    async with running_edge(tmp_path) as edge, _client(edge.url) as http:
        yield http


def _client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, trust_env=False, timeout=280)


@pytest.mark.requirement("workbench.page")
@pytest.mark.requirement("workbench.policy")
async def test_the_page_is_at_all_its_addresses_with_a_strict_policy(anybody: httpx.AsyncClient):
    for path in ("/", "/inbox", "/sign-in", "/threads/thr_1/graph", "/threads/%2e%2e/x"):
        answer = await anybody.get(path, headers=PAGE)
        assert (answer.status_code, answer.content) == (200, INDEX), path
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert "camera=()" in answer.headers["permissions-policy"]
        assert "x-as-of" not in answer.headers


@pytest.mark.requirement("workbench.files")
async def test_a_file_is_kept_as_long_as_its_name_says(anybody: httpx.AsyncClient):
    script = await anybody.get(ASSET)
    assert script.content == SCRIPT
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    mark = await anybody.get("/mark.svg")
    assert (mark.headers["content-type"], mark.headers["cache-control"]) == (
        "image/svg+xml",
        "no-cache",
    )
    again = await anybody.get("/", headers={"if-none-match": 'W/"x", ' + await _tag(anybody, "/")})
    assert (again.status_code, again.content) == (304, b"")
    head = await anybody.head("/", headers=PAGE)
    assert (head.status_code, head.content, head.headers["content-length"]) == (
        200,
        b"",
        str(len(INDEX)),
    )


def _whole(http: httpx.AsyncClient, path: str) -> str:
    """A whole address: two slashes at its start would else be taken for a host."""
    return f"{http.base_url!s}".rstrip("/") + path


async def _tag(http: httpx.AsyncClient, path: str) -> str:
    return (await http.get(path)).headers["etag"]


@pytest.mark.requirement("workbench.files")
async def test_what_compresses_is_sent_compressed_to_whoever_takes_it(anybody: httpx.AsyncClient):
    async def fetch_raw(path: str, accepted: str) -> tuple[str | None, bytes, str]:
        async with anybody.stream("GET", path, headers={"accept-encoding": accepted}) as answer:
            raw = b"".join([piece async for piece in answer.aiter_raw()])
            return answer.headers.get("content-encoding"), raw, answer.headers["etag"]

    encoding, packed, tag = await fetch_raw(ASSET, "br, gzip")
    assert (encoding, gzip.decompress(packed)) == ("gzip", SCRIPT)
    plain = await fetch_raw(ASSET, "gzip;q=0, identity")
    assert plain[:2] == (None, SCRIPT)
    assert plain[2] != tag
    assert (await fetch_raw("/assets/font-Cd4_y8Wp.woff2", "gzip"))[0] is None


@pytest.mark.requirement("workbench.bounds")
async def test_no_address_leads_elsewhere(anybody: httpx.AsyncClient):
    hostile = (
        "/assets/../secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/..%5c..%5csecret.txt",
        "//etc/passwd",
        "/assets//etc/passwd",
        "/.hidden",
        "/assets/%00",
    )
    for path in hostile:
        answer = await anybody.get(_whole(anybody, path), headers=PAGE)
        assert SECRET not in answer.content
        assert answer.content == INDEX or answer.status_code == 404, path
    assert (await anybody.get("/assets/old-12345678.js")).status_code == 404


@pytest.mark.requirement("workbench.bounds")
async def test_what_is_not_the_page_needs_a_token_as_before(anybody: httpx.AsyncClient):
    requests: list[tuple[str, str, dict[str, str]]] = [
        ("GET", "/v1/threads", PAGE),
        ("GET", "/v1/nothing", PAGE),
        ("GET", "//v1/threads", PAGE),
        ("GET", "/openapi.json", PAGE),
        ("GET", "/inbox", {"accept": "application/json"}),
        ("POST", "/", PAGE),
        ("DELETE", "/inbox", PAGE),
        ("OPTIONS", "/", PAGE),
    ]
    for method, path, headers in requests:
        answer = await anybody.request(method, _whole(anybody, path), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path


@pytest.mark.requirement("workbench.guard")
@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/", {"host": "rebound.example"}, 421, "host_not_allowed"),
        ("/", {"origin": "https://elsewhere.example"}, 403, "origin_not_allowed"),
        (ASSET, {"sec-fetch-site": "cross-site"}, 403, "cross_site_request"),
        (
            "/",
            {
                "sec-fetch-site": "cross-site",
                "sec-fetch-mode": "navigate",
                "sec-fetch-dest": "iframe",
            },
            403,
            "cross_site_request",
        ),
        (f"/?token={TOKEN}", {}, 400, "token_in_url"),
    ],
)
async def test_the_guard_stands_before_the_page_too(
    anybody: httpx.AsyncClient, path: str, headers: dict[str, str], status: int, code: str
):
    answer = await anybody.get(path, headers={**PAGE, **headers})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.requirement("workbench.guard")
async def test_a_link_on_any_site_opens_the_page_but_nothing_behind_it(anybody: httpx.AsyncClient):
    followed = {
        **PAGE,
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    assert (await anybody.get("/threads/thr_1", headers=followed)).status_code == 200
    behind = await anybody.get("/v1/health", headers=followed)
    assert (behind.status_code, behind.json()["code"]) == (403, "cross_site_request")


@pytest.mark.requirement("workbench.unbuilt")
async def test_without_built_files_a_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(edge_app, "load_built_bundle", lambda: read_bundle(tmp_path / "nowhere"))
    async with running_edge(tmp_path) as edge, _client(edge.url) as http:
        answer = await http.get("/threads/thr_1", headers=PAGE)
        assert answer.status_code == 404
        assert "make web" in answer.text
        assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.requirement("workbench.policy")
@pytest.mark.parametrize(
    ("bind", "hosts", "frames"),
    [
        ("127.0.0.1", (), "http://127.0.0.1:*"),
        ("localhost", (), "http://localhost:*"),
        ("::1", (), "'none'"),
        ("0.0.0.0", ("box.lan",), "http://127.0.0.1:* http://box.lan:* http://localhost:*"),
    ],
)
async def test_frames_show_what_previews_are_served_from(
    bind: str, hosts: tuple[str, ...], frames: str
):
    policy = content_policy(bind, HostPolicy.build(bind, hosts, ()))
    parts: dict[str, Any] = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["frame-src"] == frames
