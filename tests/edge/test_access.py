"""Who did something is on every row, event and screen of it; what a token may do is a table."""

import asyncio
import json
import re
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from factwire.edge.edge_app import ROUTE_SCOPES, build_openapi
from factwire.edge.startup import TICKETS_FILE, TOKENS_FILE, EdgeSettings
from factwire.facts.resources import TokenScope
from factwire.serving import access_control
from factwire.serving.access_control import (
    AccessToken,
    Caller,
    InsecureStart,
    Tickets,
    TokenStore,
)
from tests.edge.edges import TOKEN, WAIT_SECONDS, RunningEdge, configuration_in, running_edge

GRANTED = Path("examples/streams/approval_granted.ndjson").read_text("utf-8")
WORKBENCH = {"sec-fetch-site": "same-origin"}
ADA = {"name": "Ada", "via": "api"}
SCOPES: tuple[TokenScope, ...] = ("read", "decide", "run", "admin")


@asynccontextmanager
async def edge_of_ada(folder: Path) -> AsyncGenerator[RunningEdge]:
    configuration = msgspec.structs.replace(configuration_in(folder), user="Ada")
    async with running_edge(folder, configuration=configuration) as edge:
        yield edge


async def events_of(edge: RunningEdge, run_id: str, view: str) -> dict[str, dict[str, Any]]:
    page = await edge.get(f"/v1/runs/{run_id}/events", view=view)
    return {event["type"]: event["payload"] for event in page["items"]}


async def create_token(edge: RunningEdge, name: str, *scopes: TokenScope) -> dict[str, Any]:
    return await edge.post("/v1/tokens", {"name": name, "scopes": scopes}, status=201)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.who")
@pytest.mark.parametrize("way", ["api", "workbench", "client", "terminal", "phone"])
async def test_a_decision_names_who_made_it_on_row_event_and_screen(tmp_path: Path, way: str):
    async with edge_of_ada(tmp_path) as edge:
        token = await create_token(edge, "phone", "read", "run", "decide")
        headers: dict[str, Any] = {
            "api": {},
            "workbench": WORKBENCH,
            "client": {"user-agent": "factwire/1.0"},
            "terminal": {"user-agent": "factwire-cli/1.0"},
            "phone": {**bearer(token["token"]), **WORKBENCH},
        }[way]
        who = {"name": "Ada", "via": way}
        if way == "phone":
            who["deviceId"] = token["tokenId"]
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        body = {
            "runId": run["runId"],
            "requestId": approval["approvalId"],
            "decision": "deny",
            "argsHash": approval["argsHash"],
        }
        row = await edge.post("/v1/permissions/decide", body, **headers)
        page = await edge.get("/v1/approvals", runId=run["runId"])
        state = await edge.get(f"/v1/threads/{run['threadId']}/projection")
        action = state["state"]["actions"][approval["approvalId"]]
        runtime = await events_of(edge, run["runId"], "runtime")
        conversation = await events_of(edge, run["runId"], "conversation")
        assert [
            row["decidedBy"],
            next(
                each["decidedBy"]
                for each in page["items"]
                if each["approvalId"] == approval["approvalId"]
            ),
            action["decidedBy"],
            runtime["run.agent.permission_decided"]["decidedBy"],
            conversation["approval.decided"]["decidedBy"],
        ] == [who] * 5


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.who")
async def test_messages_changes_forks_and_cancellations_name_who_did_it(tmp_path: Path):
    async with edge_of_ada(tmp_path) as edge:
        run = await edge.start("approve")
        thread, by = run["threadId"], WORKBENCH
        queued = await edge.post(
            f"/v1/threads/{thread}/messages", {"text": "later"}, status=202, **by
        )
        workbench = {"name": "Ada", "via": "workbench"}
        await edge.wait_for_approval(run["runId"])
        queue = await edge.get(f"/v1/threads/{thread}/queue")
        assert [row["by"] for row in queue["items"]] == [workbench]
        gone = queued["run"]["runId"]
        await edge.http.delete(f"/v1/threads/{thread}/queue/{gone}", headers=by)
        await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202, **by)
        ended = await edge.run_until(run["runId"], "cancelled")
        fork = await edge.post(f"/v1/threads/{thread}:fork", {}, status=201, **by)
        await edge.http.patch(f"/v1/threads/{thread}", json={"title": "Renamed"}, headers=by)
        removed = await edge.get(f"/v1/runs/{gone}")
        items = (await edge.get(f"/v1/threads/{thread}/items"))["items"]
        row = await edge.get(f"/v1/threads/{thread}")
        turns = (await edge.get(f"/v1/threads/{thread}/projection"))["state"]["turns"]
        assert {
            "run": ended["by"],
            "cancelled": ended["cancelledBy"],
            "queued": removed["by"],
            "removed": removed["cancelledBy"],
            "message": [item["by"] for item in items if item.get("role") == "user"],
            "thread": row["by"],
            "fork": fork["by"],
            "turn": turns[run["turnId"]]["cancelledBy"],
        } == {
            "run": ADA,
            "cancelled": workbench,
            "turn": workbench,
            "queued": workbench,
            "removed": workbench,
            "message": [ADA],
            "thread": ADA,
            "fork": workbench,
        }
        events = await events_of(edge, run["runId"], "runtime")
        page = await edge.get(f"/v1/runs/{run['runId']}/events", view="conversation")
        written = [
            event["payload"]["by"]
            for event in page["items"]
            if event["type"] == "message.created" and event["payload"]["role"] == "user"
        ]
        forks = await edge.get("/v1/events", types="thread.forked")
        renamed = await edge.get("/v1/events", types="thread.updated")
        assert [
            events["run.queued"]["by"],
            events["run.cancelled"]["by"],
            written,
            forks["items"][0]["payload"]["by"],
            renamed["items"][-1]["payload"]["by"],
        ] == [ADA, workbench, [ADA], workbench, workbench]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.who")
async def test_every_change_by_a_request_names_who_sent_it(tmp_path: Path):
    async with edge_of_ada(tmp_path) as edge:
        made = await create_token(edge, "phone", "admin")
        phone = {"name": "Ada", "via": "phone", "deviceId": made["tokenId"]}
        named = bearer(made["token"])
        (tmp_path / "workspace" / "site").mkdir(parents=True)
        seen: dict[str, dict[str, Any]] = {}

        async def send(line: str, body: dict[str, Any] | None = None) -> Any:
            """A request of the phone; what it changed is in `seen`, by type."""
            start = (await edge.get("/v1/events", since="now"))["asOf"]
            method, _, path = line.partition(" ")
            answer = await edge.http.request(method, path, json=body, headers=named)
            assert answer.is_success, answer.text
            page = await edge.get("/v1/events", cursor=start, limit=500)
            seen.update({event["type"]: event["payload"] for event in page["items"]})
            return answer.json() if answer.content else None

        project = await send("POST /v1/projects", {"name": "Site"})
        project_path = f"/v1/projects/{project['projectId']}"
        await send(f"PATCH {project_path}", {"name": "Other"})
        talk = await send("POST /v1/conversations", {"title": "Talk"})
        members = f"/v1/conversations/{talk['conversationId']}/members"
        await send(f"POST {members}", {"memberId": "bob", "memberType": "user"})
        thread = await send("POST /v1/threads", {"projectId": project["projectId"]})
        thread_path = f"/v1/threads/{thread['threadId']}"
        run = await edge.start("help", threadId=thread["threadId"])
        await edge.run_until(run["runId"])
        await send(f"PATCH {thread_path}", {"title": "Renamed"})
        await send(f"POST {thread_path}:fork", {})
        preview = await send("POST /v1/previews", {"runId": run["runId"], "path": "site"})
        await send(f"POST /v1/previews/{preview['previewId']}:stop")
        pack = await send("POST /v1/evidence", {"threadId": thread["threadId"]})
        await send(f"DELETE {thread_path}")
        for row in (await edge.get("/v1/threads"))["items"]:
            await edge.http.delete(f"/v1/threads/{row['threadId']}")
        await send(f"DELETE {project_path}")
        types = """project.created project.updated project.deleted conversation.created
            conversation.member.added thread.created thread.updated thread.forked thread.deleted
            preview.ready preview.stopped evidence.exported"""
        assert {name: seen[name].get("by") for name in types.split()} == dict.fromkeys(
            types.split(), phone
        )
        rows = (project, talk, thread, preview, pack)
        assert [row["by"] for row in rows] == [phone] * len(rows)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.who")
async def test_a_queued_run_names_who_moved_it_and_who_sent_it_to_the_running_one(tmp_path: Path):
    async with edge_of_ada(tmp_path) as edge:
        run = await edge.start("approve")
        thread = run["threadId"]
        await edge.wait_for_approval(run["runId"])
        moved, sent = [
            (await edge.start(prompt, threadId=thread))["runId"] for prompt in ("help", "hurry")
        ]
        queue = f"/v1/threads/{thread}/queue"
        for path in (f"{queue}/{moved}:promote", f"{queue}/{sent}:steer"):
            assert (await edge.http.post(path, headers=WORKBENCH)).is_success
        assert (await edge.allow_all(run["runId"]))["status"] == "finished"
        workbench = {"name": "Ada", "via": "workbench"}
        queued = await edge.get(f"/v1/runs/{moved}/events", limit=500)
        shown = [
            (each["payload"]["by"], each["payload"].get("changedBy"))
            for each in queued["items"]
            if each["type"] == "run.queued"
        ]
        assert shown[:2] == [(ADA, None), (ADA, workbench)]
        events, row = await events_of(edge, sent, "runtime"), await edge.get(f"/v1/runs/{sent}")
        assert (
            events["queue.changed"]["by"],
            events["queue.changed"]["changedBy"],
            events["run.cancelled"]["by"],
            row["by"],
            row["cancelledBy"],
            row["steeredInto"],
        ) == (ADA, workbench, workbench, ADA, workbench, run["runId"])


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.who")
async def test_a_steer_names_who_sent_it_and_keeps_it_as_a_message(tmp_path: Path):
    async with edge_of_ada(tmp_path) as edge:
        run = await edge.start("approve")
        thread = run["threadId"]
        await edge.wait_for_approval(run["runId"])
        body = {"text": "and hurry", "mode": "steer"}
        await edge.post(f"/v1/threads/{thread}/messages", body, status=202, **WORKBENCH)
        state = (await edge.get(f"/v1/threads/{thread}/projection"))["state"]
        assert [steer["by"] for steer in state["queue"]["steers"]] == [
            {"name": "Ada", "via": "workbench"}
        ]
        await edge.allow_all(run["runId"])
        state = (await edge.get(f"/v1/threads/{thread}/projection"))["state"]
        written = {
            "".join(part["text"] for part in message["parts"]): message["by"]["via"]
            for message in state["messages"]
            if message["role"] == "user"
        }
        assert written == {"approve": "api", "and hurry": "workbench"}


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.who")
async def test_a_decision_that_has_only_a_name_reads_as_that_name(tmp_path: Path):
    facts = [json.loads(line) for line in GRANTED.splitlines()]
    name = next(f["payload"]["decidedBy"] for f in facts if "decidedBy" in f.get("payload", {}))
    async with edge_of_ada(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": facts})
        [row] = (await edge.get("/v1/approvals"))["items"]
        state = (await edge.get(f"/v1/threads/{row['threadId']}/projection"))["state"]
        [action] = state["actions"].values()
        assert (row["decidedBy"], action["decidedBy"]) == ({"name": name}, name)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.scopes")
async def test_every_route_needs_the_scope_of_the_table_and_no_other(tmp_path: Path):
    """Every route of the interface, as every kind of token; a refusal says what is missing."""
    routes = {
        f"{method.upper()} {path}"
        for path, operations in build_openapi()["paths"].items()
        for method in operations
    }
    templates = {_camel_route(route): scope for route, scope in ROUTE_SCOPES.items()}
    assert templates.keys() == routes
    async with running_edge(tmp_path) as edge:
        tokens = {scope: (await create_token(edge, scope, scope))["token"] for scope in SCOPES}
        for route, needed in templates.items():
            method, path = route.split()
            for scope, token in tokens.items():
                answer = await edge.http.request(
                    method,
                    re.sub(r"\{\w+\}", "x", path),
                    headers=bearer(token),
                    json=None if method in ("GET", "DELETE") else {"nothing": 1},
                )
                refused = answer.status_code == 403
                expected = route != "GET /v1/health" and scope not in (needed, "admin")
                assert refused is expected, (route, scope, answer.text)
                if refused:
                    assert answer.json()["code"] == "insufficient_scope"
        nowhere = [
            (await edge.http.get("/v1/nowhere", headers=bearer(tokens[scope]))).status_code
            for scope in SCOPES
        ]
        assert nowhere == [403, 403, 403, 404]


def _camel_route(route: str) -> str:
    def camel(found: re.Match[str]) -> str:
        first, *others = found[1].split("_")
        return "{" + first + "".join(map(str.capitalize, others)) + "}"

    return re.sub(r"\{(\w+)\}", camel, route)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.scopes")
async def test_an_encoded_verb_or_slash_never_lowers_the_scope_of_a_route(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        reader = bearer((await create_token(edge, "reader", "read"))["token"])
        thread = (await edge.post("/v1/threads", {"title": "kept"}, status=201))["threadId"]
        for method, path in [
            ("DELETE", f"/v1/threads/{thread}%3Afork"),
            ("DELETE", f"/v1/threads//{thread}"),
            ("DELETE", f"/v1/threads/{thread}/"),
            ("POST", f"/v1/threads/{thread}%2Fmessages"),
            ("POST", f"/v1/threads/{thread}:archive"),
            ("PATCH", f"/v1/threads/{thread}"),
            ("POST", "/v1/tokens/"),
            ("GET", "//v1/tokens"),
        ]:
            answer = await edge.http.request(method, path, headers=reader, json={})
            assert answer.status_code == 403, (method, path, answer.text)
        assert (await edge.get(f"/v1/threads/{thread}"))["status"] == "active"


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.tokens")
async def test_a_token_is_shown_once_listed_without_its_secret_and_outlives_a_restart(
    tmp_path: Path,
):
    async with running_edge(tmp_path) as edge:
        made = await create_token(edge, "phone", "read", "decide")
        again = await edge.http.post("/v1/tokens", json={"name": "phone", "scopes": ["read"]})
        assert (again.status_code, again.json()["code"]) == (409, "token_exists")
    secret = made.pop("token")
    file = tmp_path / "data" / TOKENS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret.encode() not in file.read_bytes()
    async with running_edge(tmp_path) as edge:
        page = await edge.get("/v1/tokens")
        assert page["items"] == [made]
        answer = await edge.http.get("/v1/threads", headers=bearer(secret))
        assert answer.status_code == 200
        [row] = (await edge.get("/v1/tokens"))["items"]
        assert secret not in json.dumps(row)
        assert {**made, "lastUsedAt": row["lastUsedAt"]} == row
        await edge.http.delete(f"/v1/tokens/{row['tokenId']}")
        assert (await edge.get("/v1/tokens"))["items"] == []
        refused = await edge.http.get("/v1/threads", headers=bearer(secret))
        assert refused.status_code == 401
        gone = await edge.http.delete(f"/v1/tokens/{row['tokenId']}")
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown_token")
    async with running_edge(tmp_path) as edge:
        assert (await edge.http.get("/v1/threads", headers=bearer(secret))).status_code == 401


@pytest.mark.requirement("edge.access.tokens")
def test_a_file_of_tokens_that_others_can_read_or_that_is_damaged_stops_the_start(tmp_path: Path):
    path = tmp_path / "tokens"
    TokenStore(path).create("tok_1", "phone", ("read",))
    path.chmod(0o640)
    with pytest.raises(InsecureStart) as exposed:
        TokenStore(path)
    path.chmod(0o600)
    path.write_bytes(b"[{")
    with pytest.raises(InsecureStart) as damaged:
        TokenStore(path)
    assert [exposed.value.code, damaged.value.code] == ["token_exposed", "tokens_unreadable"]


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.tokens")
async def test_revoking_a_token_closes_its_streams_and_tickets_and_no_others(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        made = await create_token(edge, "phone", "read")
        ticket = await edge.post(
            "/v1/tickets", {"renewable": True}, status=201, **bearer(made["token"])
        )
        own = connect(f"{edge.socket_url}/v1/events", additional_headers=bearer(TOKEN))
        theirs = connect(f"{edge.socket_url}/v1/facts", additional_headers=bearer(made["token"]))
        by_ticket = f"{edge.socket_url}/v1/events?ticket={ticket['ticket']}"
        async with own as mine, theirs as first, connect(by_ticket) as second:
            await edge.http.delete(f"/v1/tokens/{made['tokenId']}")
            async with asyncio.timeout(WAIT_SECONDS):
                codes = [await _close_code(first), await _close_code(second)]
            assert codes == [4401, 4401]
            await edge.post("/v1/projects", {"name": "seen"}, status=201)
            async with asyncio.timeout(WAIT_SECONDS):
                while json.loads(await mine.recv()).get("type") != "project.created":
                    pass
        refused = await edge.http.get(
            f"/v1/events?ticket={ticket['ticket']}",
            headers={"accept": "text/event-stream", "authorization": ""},
        )
        assert (refused.status_code, refused.json()["code"]) == (401, "ticket_invalid")


async def _close_code(socket: Any) -> int:
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 0


@pytest.mark.requirement("edge.access.stream-tickets")
def test_a_renewable_ticket_lasts_while_its_stream_is_open_and_a_while_after():
    now = 0.0
    tickets, phone = Tickets(lambda: now), Caller(token_id="tok_1", scopes=("read",))
    ticket = tickets.issue(phone, renewable=True)
    now = 299.0
    assert tickets.redeem(ticket) == phone
    with tickets.keep_open(ticket):
        now = 9_000.0
        assert tickets.redeem(ticket) == phone
    now += 299.0
    assert tickets.renew(ticket, phone)
    assert not tickets.renew(ticket, Caller())
    now += 299.0
    assert tickets.redeem(ticket) == phone
    now += 2.0
    assert tickets.redeem(ticket) is None
    assert not tickets.renew(ticket, phone)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.stream-tickets")
async def test_a_renewable_ticket_opens_streams_again_and_can_do_nothing_else(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        made = await edge.post("/v1/tickets", {"renewable": True}, status=201)
        assert (made["renewable"], made["expiresIn"]) == (True, 300.0)
        url = f"{edge.socket_url}/v1/events?since=now&ticket={made['ticket']}"
        for _ in range(3):
            async with connect(url):
                pass
        renewed = await edge.post("/v1/tickets", {"renew": made["ticket"]}, status=201)
        assert renewed == made
        runner = await create_token(edge, "runner", "read", "run")
        foreign = await edge.http.post(
            "/v1/tickets", json={"renew": made["ticket"]}, headers=bearer(runner["token"])
        )
        assert (foreign.status_code, foreign.json()["code"]) == (404, "ticket_invalid")
        async with httpx.AsyncClient(base_url=edge.url, trust_env=False) as nobody:
            answer = await nobody.get(f"/v1/threads?ticket={made['ticket']}")
            assert answer.status_code == 401


async def _follow_by_ticket(edge: RunningEdge, ticket: str, cursor: str) -> list[str]:
    """The names of the projects that a stream has after a cursor, or the code of its refusal."""
    headers = {"accept": "text/event-stream", "last-event-id": cursor}
    query = {"ticket": ticket, "types": "project"}
    async with (
        httpx.AsyncClient(base_url=edge.url, trust_env=False, timeout=WAIT_SECONDS) as browser,
        browser.stream("GET", "/v1/events", params=query, headers=headers) as answer,
    ):
        if answer.status_code != 200:
            return [json.loads(await answer.aread())["code"]]
        async for line in answer.aiter_lines():
            if line.startswith("data:") and "project.created" in line:
                return [json.loads(line.removeprefix("data:"))["payload"]["name"]]
        return []


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.stream-tickets")
async def test_a_renewable_ticket_outlives_a_restart_and_nothing_else_does(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        start = (await edge.get("/v1/events"))["asOf"]
        await edge.post("/v1/projects", {"name": "before"}, status=201)
        named = {name: await create_token(edge, name, "read") for name in ("kept", "revoked")}
        tickets = {
            name: (
                await edge.post(
                    "/v1/tickets", {"renewable": True}, status=201, **bearer(made["token"])
                )
            )["ticket"]
            for name, made in {**named, "first": {"token": TOKEN}}.items()
        }
        tickets["single"] = (await edge.post("/v1/tickets", {}, status=201))["ticket"]
        assert await _follow_by_ticket(edge, tickets["first"], start) == ["before"]
        await edge.http.delete(f"/v1/tokens/{named['revoked']['tokenId']}")
    expected = {
        "kept": ["before"],
        "first": ["before"],
        "revoked": ["ticket_invalid"],
        "single": ["ticket_invalid"],
    }
    for _ in range(2):
        async with running_edge(tmp_path) as edge:
            shown = {
                name: await _follow_by_ticket(edge, ticket, start)
                for name, ticket in tickets.items()
            }
            assert shown == expected
    other = EdgeSettings(token=f"{TOKEN}-changed")
    async with running_edge(tmp_path, settings=other) as edge:
        assert await _follow_by_ticket(edge, tickets["kept"], start) == ["ticket_invalid"]
    (tmp_path / "data" / TICKETS_FILE).write_bytes(b"{")
    async with running_edge(tmp_path) as edge:
        assert await _follow_by_ticket(edge, tickets["kept"], start) == ["ticket_invalid"]


@pytest.mark.requirement("edge.access.stream-tickets")
def test_a_saved_ticket_ends_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    day = 1_000.0
    monkeypatch.setattr(access_control, "time", lambda: day)
    path, token = tmp_path / "tickets", AccessToken(TOKEN)
    store = TokenStore(tmp_path / "tokens")
    first = Tickets(lambda: 0.0)
    ticket = first.issue(Caller(), renewable=True)
    first.save(path, token)
    saved = path.read_bytes()
    assert (stat.S_IMODE(path.stat().st_mode), ticket.encode() in saved) == (0o600, False)
    for later, caller in ((299.0, Caller()), (301.0, None), (-9_000.0, Caller())):
        path.write_bytes(saved)
        day, second = 1_000.0 + later, Tickets(lambda: 0.0)
        second.restore(path, token, store)
        assert (second.redeem(ticket), path.exists()) == (caller, False)


LISTS = """
    /v1/agents /v1/tokens /v1/projects /v1/conversations /v1/threads /v1/threads/{thread}/items
    /v1/threads/{thread}/queue /v1/runs /v1/runs/{run}/events /v1/runs/{run}/processes /v1/approvals
    /v1/events /v1/facts /v1/artifacts /v1/tasks /v1/evidence /v1/previews /v1/standing-rules
"""


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.lists")
async def test_every_list_has_one_shape_and_pages_lead_through_all_of_it(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("echo hello", agent="shell")
        await edge.allow_all(run["runId"])
        names = {"thread": run["threadId"], "run": run["runId"]}
        for path in LISTS.format(**names).split():
            page = await edge.get(path)
            assert page.keys() - {"next", "default"} == {"items", "asOf"}, path
            assert page["asOf"].startswith("fw1."), path
        listed = build_openapi()["paths"].items()
        lists = {
            path for path, operations in listed if _answers_with_items(operations.get("get", {}))
        }
        shown = {
            path.replace("thread}", "threadId}").replace("run}", "runId}") for path in LISTS.split()
        }
        assert lists == shown
        whole = (await edge.get("/v1/events", limit=1_000))["items"]
        found: list[Any] = []
        page = await edge.get("/v1/events", limit=3)
        while True:
            found += page["items"]
            if "next" not in page:
                break
            page = await edge.get("/v1/events", limit=3, cursor=page["next"])
        assert found[: len(whole)] == whole


def _answers_with_items(operation: dict[str, Any]) -> bool:
    content = operation.get("responses", {}).get("200", {}).get("content", {})
    return "items" in (content.get("application/json", {}).get("example") or ())


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.lists")
async def test_what_a_list_has_can_be_read_by_its_id(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("echo hello", agent="shell")
        await edge.allow_all(run["runId"])
        thread = run["threadId"]
        talk = await edge.post("/v1/conversations", {"title": "t"}, status=201)
        [approval] = (await edge.get("/v1/approvals"))["items"]
        items = (await edge.get(f"/v1/threads/{thread}/items"))["items"]
        one = [await edge.get(f"/v1/threads/{thread}/items/{item['itemId']}") for item in items]
        assert one == items
        assert await edge.get(f"/v1/approvals/{approval['approvalId']}") == approval
        assert await edge.get(f"/v1/conversations/{talk['conversationId']}") == talk
        processes = (await edge.get(f"/v1/runs/{run['runId']}/processes"))["items"]
        assert [(each["runId"], each["status"], each["exitCode"]) for each in processes] == [
            (run["runId"], "completed", 0)
        ]
        for path, code in {
            "/v1/approvals/x": "unknown_approval",
            "/v1/conversations/x": "unknown_conversation",
            f"/v1/threads/{thread}/items/x": "unknown_item",
            "/v1/threads/x/items/x": "unknown_thread",
            "/v1/runs/x/processes": "unknown_run",
        }.items():
            answer = await edge.http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, code)


@pytest.mark.asyncio
@pytest.mark.requirement("edge.access.types")
@pytest.mark.parametrize(
    ("view", "types", "code"),
    [
        ("runtime", "run.agent", None),
        ("runtime", "run.agent.text_delta,project", None),
        ("runtime", "runtime.warning", None),
        ("conversation", "approval.decided", None),
        ("runtime", "approval.decided", "unknown_type"),
        ("conversation", "run.agent.permission_decided", "unknown_type"),
        ("runtime", "run.agents", "unknown_type"),
        ("runtime", "run.started,run.startd", "unknown_type"),
    ],
)
async def test_types_that_a_view_does_not_have_are_refused_with_those_it_has(
    tmp_path: Path, view: str, types: str, code: str | None
):
    async with running_edge(tmp_path) as edge:
        query = {"view": view, "types": types}
        page = await edge.http.get("/v1/events", params=query)
        stream = edge.http.stream(
            "GET", "/v1/events", params=query, headers={"accept": "text/event-stream"}
        )
        async with stream as opened:
            assert opened.status_code == page.status_code == (200 if code is None else 400)
        if code is not None:
            problem = page.json()
            assert problem["code"] == code
            assert "project.created" in problem["types"]
            assert not {"run.agents", "run.startd"} & set(problem["types"])
