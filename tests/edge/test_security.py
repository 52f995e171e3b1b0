"""Who may talk to an Edge: the attacks S1 to S3, S7, S8 and S15, each with what stops it."""

import asyncio
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from factwire.edge.edge_app import build_openapi
from factwire.edge.startup import TOKEN_FILE, EdgeSettings, ensure_secure
from factwire.facts import EDGE_CLASSES
from factwire.serving.access_control import (
    Caller,
    HostPolicy,
    InsecureStart,
    Tickets,
    check_token,
    load_token,
)
from factwire.serving.guard import OPEN, SUBPROTOCOL, TOKEN_SUBPROTOCOL
from tests.edge.edges import TOKEN, running_edge

STREAMS = ("/v1/events", "/v1/facts", "/v1/threads/x/projection/stream")
METHODS = ("get", "post", "patch", "delete")


def _routes() -> list[tuple[str, str]]:
    return [
        (method.upper(), re.sub(r"\{\w+\}", "x", path))
        for path, operations in build_openapi()["paths"].items()
        for method in METHODS
        if method in operations
    ] + [("GET", "/openapi.json"), ("GET", "/asyncapi.json")]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.default-deny")
async def test_every_route_refuses_whoever_has_no_token(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        async with httpx.AsyncClient(base_url=edge.url, trust_env=False) as nobody:
            for method, path in _routes():
                answer = await nobody.request(method, path, json={} if method != "GET" else None)
                expected = 200 if (method, path) in OPEN else 401
                assert answer.status_code == expected, (method, path, answer.text)
            for path in STREAMS:
                headers = {"accept": "text/event-stream"}
                assert (await nobody.get(path, headers=headers)).status_code == 401
            assert (await nobody.get("/nowhere")).status_code == 401
        for path in STREAMS:
            with pytest.raises(InvalidStatus) as refused:
                await connect(edge.socket_url + path)
            assert refused.value.response.status_code == 401


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.default-deny")
async def test_every_handler_of_the_application_is_walked_by_that_test(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        app: Any = edge.edge.application
        rest = app._application._application._rest._application
        known = {path for path, _ in ((p, m) for m, p in _routes())}
        for route in rest.routes:
            path = re.sub(r"\{\w+:str\}", "x", route.path_format.replace("/:", ":"))
            path = re.sub(r"\{\w+\}", "x", path)
            # The framework answers below its document with 404.
            assert path in known or path == "/openapi.json/x", path


HOSTILE_HOSTS = [
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "127.0.0.1@evil.example",
    "127.0.0.2",
    "0.0.0.0",
    "localhost:",
    "localhost:99999999",
    "[::1",
    "",
    "localhost, evil.example",
    "2130706433",
    "0x7f000001",
]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.hosts")
async def test_a_host_that_the_edge_does_not_know_is_not_answered(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for host in HOSTILE_HOSTS:
            answer = await edge.http.get("/v1/threads", headers={"host": host})
            assert answer.status_code in (400, 421), host


HOSTILE_ORIGINS = [
    "http://evil.example",
    "https://127.0.0.1",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost.evil.example",
    "null",
    "file://",
    "chrome-extension://abc",
    "http://user@127.0.0.1",
    "http://127.0.0.1:{port}.evil.example",
    "http://127.0.0.1:{port}/path",
    "http://127.0.0.1:{port}?",
    "http://127.0.0.1:{port}#",
]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.origins")
async def test_a_page_of_another_origin_may_not_talk_even_with_the_token(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for hostile in HOSTILE_ORIGINS:
            origin = hostile.replace("{port}", str(edge.port))
            answer = await edge.http.post("/v1/threads", json={}, headers={"origin": origin})
            assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")
            with pytest.raises(InvalidStatus) as refused:
                await connect(
                    edge.socket_url + "/v1/events",
                    origin=origin,  # pyright: ignore[reportArgumentType]
                    additional_headers={"authorization": f"Bearer {TOKEN}"},
                )
            assert refused.value.response.status_code == 403
        own = await edge.http.get("/v1/threads", headers={"origin": edge.url})
        assert own.status_code == 200


OWN = "http://127.0.0.1:8787"
ADDITIONS = ("", "?", "#", "/", "?x", "#x", "/?", "/#", ";", "%00", "\t", "%2f", "\\", ":", ".")
"""What a URL parser drops or takes for another part of an address, and a browser never sends."""


def origins_that_mean_the_same() -> list[str]:
    """What a lenient reader takes for the own origin."""
    places = range(len(OWN) + 1)
    inserted = [OWN[:at] + more + OWN[at:] for at in places for more in ADDITIONS if more]
    return [*inserted, *(f"{OWN}{one}{two}" for one in ADDITIONS for two in ADDITIONS if one + two)]


@pytest.mark.requirement("edge.security.origins")
def test_only_the_exact_origin_of_a_page_is_its_own():
    policy = HostPolicy.build("127.0.0.1", (), ())
    host = OWN.removeprefix("http://")
    assert policy.allows_origin(OWN, host, "http")
    corpus = origins_that_mean_the_same()
    assert len(corpus) > 400
    assert [each for each in corpus if policy.allows_origin(each, host, "http")] == []


def sites_that_are_not_own() -> list[str]:
    """Every name of a site in every spelling that is not exactly `none` or `same-origin`."""
    names = ("cross-site", "same-site", "same-origin", "none", "other", "")
    changed = [
        spelling
        for name in names
        for spelling in (name, name.upper(), name.title(), f"{name},none", f"x{name}")
    ]
    return sorted({*changed} - {"none", "same-origin"})


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.origins")
async def test_a_request_that_another_site_made_is_refused(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for site in sites_that_are_not_own():
            answer = await edge.http.post("/v1/threads", json={}, headers={"sec-fetch-site": site})
            assert answer.json()["code"] == "cross_site_request"
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = await edge.http.post(
                "/v1/threads", content=b'{"title":"x"}', headers={"content-type": kind}
            )
            assert (answer.status_code, answer.json()["code"]) == (415, "json_only")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.origins")
async def test_an_origin_that_was_allowed_by_name_may_talk(tmp_path: Path):
    settings = EdgeSettings(token=TOKEN, origins=("https://app.example",), hosts=("edge.example",))
    async with running_edge(tmp_path, settings=settings) as edge:
        headers = {"origin": "https://app.example", "host": "edge.example"}
        assert (await edge.http.get("/v1/threads", headers=headers)).status_code == 200


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.tickets")
async def test_a_ticket_opens_one_stream_and_fifty_at_once_open_one(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        ticket = (await edge.post("/v1/tickets", status=201))["ticket"]

        async def attempt() -> int:
            try:
                async with connect(f"{edge.socket_url}/v1/events?ticket={ticket}"):
                    return 101
            except InvalidStatus as refused:
                return refused.response.status_code

        results = await asyncio.gather(*(attempt() for _ in range(50)))
        assert sorted(results) == [101, *[401] * 49]


@pytest.mark.requirement("edge.security.tickets")
def test_a_ticket_runs_out_and_only_so_many_are_out():
    now = 0.0
    tickets = Tickets(lambda: now)
    old = tickets.issue(Caller())
    now = 31.0
    assert not tickets.redeem(old)
    fresh = tickets.issue(Caller())
    assert tickets.redeem(fresh)
    assert not tickets.redeem(fresh)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.tickets")
async def test_a_ticket_changes_nothing_and_a_token_in_an_address_is_refused(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        ticket = (await edge.post("/v1/tickets", status=201))["ticket"]
        async with httpx.AsyncClient(base_url=edge.url, trust_env=False) as nobody:
            answer = await nobody.post(f"/v1/threads?ticket={ticket}", json={})
            assert answer.status_code == 401
            for name in ("token", "access_token", "api_key"):
                answer = await nobody.get(f"/v1/threads?{name}={TOKEN}")
                assert (answer.status_code, answer.json()["code"]) == (400, "token_in_url")


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.tickets")
async def test_a_socket_may_carry_the_token_as_a_subprotocol(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        offered: Any = [SUBPROTOCOL, TOKEN_SUBPROTOCOL + TOKEN]
        async with connect(edge.socket_url + "/v1/events", subprotocols=offered) as socket:
            assert socket.subprotocol == SUBPROTOCOL
        wrong: Any = [SUBPROTOCOL, TOKEN_SUBPROTOCOL + "x" * 30]
        with pytest.raises(InvalidStatus):
            await connect(edge.socket_url + "/v1/events", subprotocols=wrong)


@pytest.mark.requirement("edge.security.no-secret-kept")
def test_no_secret_is_found_in_database_data_or_log(tmp_path: Path):
    command = [sys.executable, "-c", _SERVE, str(tmp_path)]
    environment = {**os.environ, "FACTWIRE_TOKEN": TOKEN}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
        )
        with server:
            try:
                assert server.stdout is not None
                secrets = asyncio.run(_use(server.stdout.readline().strip()))
            finally:
                server.terminate()
                server.wait(20)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for secret in secrets:
                assert secret.encode() not in content, path.name


async def _use(url: str) -> list[str]:
    """Use an Edge in all ways that carry secrets; the secrets."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    wrong = "a-wrong-token-that-nobody-may-keep-42"
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http:
        ticket = (await http.post("/v1/tickets")).json()["ticket"]
        await http.get(f"/v1/threads?token={TOKEN}")
        await http.get("/v1/threads", headers={"authorization": f"Bearer {wrong}"})
        await http.get(f"/v1/nothing?ticket={ticket}")
        run = (await http.post("/v1/runs", json={"agentId": "demo", "prompt": "help"})).json()
        await http.get(f"/v1/runs/{run['runId']}")
        socket = url.replace("http", "ws")
        async with connect(f"{socket}/v1/events?ticket={ticket}"):
            pass
    return [TOKEN, ticket, wrong]


_SERVE = """
import asyncio, sys
from pathlib import Path
from factwire.serving.logs import set_up_logs
from factwire.edge.startup import EdgeSettings, serve
from tests.edge.edges import configuration_in, TOKEN
set_up_logs("debug")
folder = Path(sys.argv[1])
conf = configuration_in(folder)
def ready(edge, url):
    print(url, flush=True)
asyncio.run(serve(conf, Path(conf.workspaces[0]), EdgeSettings(port=0, token=TOKEN), ready))
"""


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.identity")
async def test_what_a_client_says_of_itself_and_of_numbers_is_not_believed(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for field in ("runtimeId", "seq", "decidedBy", "threadId", "createdAt"):
            answer = await edge.http.post("/v1/threads", json={field: "mine"})
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        answer = await edge.decide(approval, "allow", decidedBy="the owner")
        assert answer.status_code == 400
        decided = (await edge.decide(approval, "allow")).json()
        assert decided["decidedBy"] == {"name": edge.machine.user, "via": "api"}


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.approvals")
async def test_an_approval_is_no_ones_but_its_runs_and_is_closed_with_it(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        one = await edge.start("approve")
        two = await edge.start("approve")
        first, second = (
            await edge.wait_for_approval(one["runId"]),
            await edge.wait_for_approval(two["runId"]),
        )
        crossed = await edge.decide({**first, "approvalId": second["approvalId"]}, "allow")
        assert (crossed.status_code, crossed.json()["code"]) == (404, "unknown_approval")
        await edge.post(f"/v1/runs/{one['runId']}:cancel", status=202)
        await edge.run_until(one["runId"])
        late = await edge.decide(first, "allow")
        assert (late.status_code, late.json()["code"]) == (409, "approval_decided")
        answers = await asyncio.gather(*(edge.decide(second, "allow") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        page = await edge.get("/v1/facts", classes="action.resolved", limit=1000)
        about = [row for row in page["items"] if row["fact"]["actionId"] == second["approvalId"]]
        assert len(about) == 1


@pytest.mark.requirement("edge.security.insecure-start")
@pytest.mark.parametrize(
    ("host", "token", "code"),
    [
        ("0.0.0.0", None, "token_required"),
        ("192.0.2.1", None, "token_required"),
        ("::", None, "token_required"),
        ("127.0.0.1", "short", "token_too_short"),
        ("127.0.0.1", "x" * 40, "token_guessable"),
        ("127.0.0.1", "changemechangemechangeme", "token_guessable"),
        ("127.0.0.1", "secretsecretsecretsecret-123", "token_guessable"),
        ("127.0.0.1", "with a space and more than enough", "token_unusable"),
    ],
)
def test_an_edge_that_would_not_be_safe_does_not_start(host: str, token: str | None, code: str):
    with pytest.raises(InsecureStart) as refused:
        ensure_secure(EdgeSettings(host=host, token=token))
    assert refused.value.code == code


@pytest.mark.requirement("edge.security.insecure-start")
def test_a_made_token_is_kept_for_its_owner_alone_and_not_read_once_it_is_exposed(tmp_path: Path):
    made = load_token(tmp_path, TOKEN_FILE)
    assert made.made
    path = tmp_path / "edge-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_token(tmp_path, TOKEN_FILE).token == made.token
    assert made.token.value not in repr(made)
    path.chmod(0o644)
    with pytest.raises(InsecureStart) as refused:
        load_token(tmp_path, TOKEN_FILE)
    assert refused.value.code == "token_exposed"


@pytest.mark.requirement("edge.security.insecure-start")
def test_a_good_token_is_one_that_fits_and_no_other():
    token = check_token(TOKEN)
    assert token.matches(TOKEN)
    assert not token.matches(TOKEN + "x")
    assert not token.matches("")
    assert not token.matches("\udcff")


@pytest.mark.requirement("edge.security.hosts")
def test_hosts_are_loopback_what_is_bound_and_what_was_named():
    places = HostPolicy.build("192.0.2.7", ("edge.example",), ())
    known = ("localhost", "localhost:80", "127.0.0.1:1", "[::1]:9", "192.0.2.7", "EDGE.example:1")
    assert all(places.allows_host(host) for host in known)
    assert not any(places.allows_host(host) for host in HOSTILE_HOSTS)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.tickets")
async def test_a_ticket_reads_no_list_and_opens_an_event_stream(tmp_path: Path):
    async with (
        running_edge(tmp_path) as edge,
        httpx.AsyncClient(base_url=edge.url, trust_env=False) as nobody,
    ):
        ticket = (await edge.post("/v1/tickets", status=201))["ticket"]
        for path in ("/v1/threads", "/v1/runs", "/v1/metrics", "/v1/events"):
            assert (await nobody.get(f"{path}?ticket={ticket}")).status_code == 401
        address = f"/v1/events?ticket={ticket}&since=now"
        headers = {"accept": "text/event-stream"}
        async with nobody.stream("GET", address, headers=headers) as answer:
            assert answer.status_code == 200


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.origins")
async def test_a_page_of_an_allowed_origin_is_told_what_it_may_do(tmp_path: Path):
    page = "https://app.example"
    settings = EdgeSettings(token=TOKEN, origins=(page,))
    async with running_edge(tmp_path, settings=settings) as edge:
        requests = {"origin": page, "access-control-request-method": "POST"}
        async with httpx.AsyncClient(base_url=edge.url, trust_env=False) as browser:
            messages = await browser.options("/v1/runs", headers=requests)
            assert (messages.status_code, messages.headers["access-control-allow-origin"]) == (
                204,
                page,
            )
            assert "authorization" in messages.headers["access-control-allow-headers"]
            other = {**requests, "origin": "https://other.example"}
            refused = await browser.options("/v1/runs", headers=other)
            assert "access-control-allow-origin" not in refused.headers
        answer = await edge.http.get("/v1/threads", headers={"origin": page})
        assert answer.headers["access-control-allow-origin"] == page
        own = await edge.http.get("/v1/threads", headers={"origin": edge.url})
        assert "access-control-allow-origin" not in own.headers


@pytest.mark.asyncio
@pytest.mark.requirement("edge.security.identity")
async def test_facts_from_outside_cannot_speak_for_the_edge_or_for_its_runs(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        for event_class in EDGE_CLASSES:
            answer = await edge.http.post("/v1/facts", json={"facts": [_forge_fact(event_class)]})
            assert (answer.status_code, answer.json()["code"]) == (422, "class_reserved")
        ids = {"runId": run["runId"], "turnId": run["turnId"], "actionId": approval["approvalId"]}
        for event_class in _FORGED:
            fact = _forge_fact(event_class) | ids
            await edge.post("/v1/facts", {"facts": [fact]})
        assert await edge.get(f"/v1/runs/{run['runId']}") == await edge.run_until(
            run["runId"], "waiting"
        )
        assert (await edge.wait_for_approval(run["runId"])) == approval
        assert (await edge.allow_all(run["runId"]))["status"] == "finished"


_FORGED = ("action.required", "action.resolved", "turn.completed")


def _forge_fact(event_class: str) -> dict[str, Any]:
    return {
        "id": f"forged-{event_class}",
        "kind": "state",
        "status": "completed",
        "title": event_class,
        "createdAt": "2026-01-01T00:00:00Z",
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "elsewhere",
        "eventClass": event_class,
        "sequence": _FORGED.index(event_class) + 1 if event_class in _FORGED else 1,
        "threadId": "forged",
        "projectId": "p",
        "conversationId": "c",
        "itemId": "i",
        "messageId": "m",
        "runId": "r",
        "payload": {
            "previewId": "v",
            "runnerId": "r",
            "memberId": "m",
            "memberType": "user",
            "parentThreadId": "t",
            "decision": "approved",
            "error": "e",
        },
    }
