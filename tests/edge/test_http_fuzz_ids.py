"""S6, S7 and idempotency, walked by the OpenAPI document: every address under ids that nobody has
and under ids of something else, and every POST fifty times at once under one key.
"""

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from factwire.edge.edge_app import build_openapi
from tests.edge.edges import RunningEdge, running_edge
from tests.edge.test_paths_worktrees import run_change, with_repository
from tests.edge.things import made_things, outside_facts

pytestmark = pytest.mark.asyncio

DOCUMENT = build_openapi()
OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
UNKNOWN = ("thr_nobody", "a/b", "...", "%00", "\\u0000", "é", "x" * 500, "run_1:cancel", "*", "'--")

BODIES: dict[str, Any] = {
    "addMember": {"memberId": "m", "memberType": "user"},
    "postMessage": {"text": "help"},
    "changeProject": {"name": "x"},
    "changeThread": {"title": "x"},
    "forkThread": {},
}
NAMED_IN_A_BODY: dict[str, dict[str, Any]] = {
    "createConversation": {"projectId": "nobody"},
    "createThread": {"projectId": "nobody"},
    "createRun": {"agentId": "demo", "threadId": "nobody"},
    "createPreview": {"runId": "nobody"},
    "exportEvidence": {"threadId": "nobody"},
    "decidePermission": {
        "runId": "nobody",
        "requestId": "nobody",
        "decision": "allow",
        "argsHash": "none",
    },
}
"""Operation → a body that names something that is not there."""


async def _require_refusal(
    edge: RunningEdge, method: str, path: str, operation: dict[str, Any]
) -> Any:
    """The problem with which an operation is refused."""
    body = BODIES.get(operation["operationId"], {}) if "requestBody" in operation else None
    answer = await edge.http.request(method, path, json=body)
    assert answer.headers["content-type"] == "application/problem+json", (method, path, answer.text)
    problem = answer.json()
    assert problem["status"] == answer.status_code
    return problem


@pytest.mark.requirement("edge.ids.unknown")
async def test_an_id_that_nobody_has_is_not_found_at_any_address(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for method, path, operation in OPERATIONS:
            for unknown in UNKNOWN if "{" in path else ():
                named = re.sub(r"\{\w+\}", quote(unknown, safe=""), path)
                problem = await _require_refusal(edge, method, named, operation)
                assert problem["status"] == 404, (method, named, problem)
        for name, body in NAMED_IN_A_BODY.items():
            [(method, path)] = [
                (method, path) for method, path, op in OPERATIONS if op["operationId"] == name
            ]
            answer = await edge.http.request(method, path, json=body)
            assert answer.status_code == 404, (name, answer.text)


@pytest.mark.requirement("edge.ids.crossed")
async def test_an_id_of_another_kind_or_of_another_thread_is_not_found(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        things = await asyncio.to_thread(made_things, edge.url)
        for method, path, operation in OPERATIONS:
            names = re.findall(r"\{(\w+)\}", path)
            for name in names:
                for kind, known in things.ids.items():
                    if kind == name or not known:
                        continue
                    values = {other: things.ids[other][0] for other in names} | {name: known[0]}
                    problem = await _require_refusal(edge, method, path.format(**values), operation)
                    assert problem["status"] in (404, 409), (method, path, values, problem)
        thread, other = things.ids["threadId"][:2]
        waiting = [await edge.start("help", threadId=other) for _ in range(2)]
        verbs = (("POST", ":continue"), ("POST", ":promote"), ("POST", ":steer"), ("DELETE", ""))
        for verb, suffix in verbs:
            path = f"/v1/threads/{thread}/queue/{waiting[1]['runId']}{suffix}"
            answer = await edge.http.request(verb, path)
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown_run")
        items = (await edge.get(f"/v1/threads/{thread}/items"))["items"]
        answer = await edge.http.post(
            f"/v1/threads/{other}:fork", json={"fromItemId": items[0]["itemId"]}
        )
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_item")
        pending = await edge.get("/v1/approvals", status="pending")
        approval = pending["items"][0] | {"runId": things.ids["runId"][0]}
        crossed = await edge.decide(approval, "allow")
        assert (crossed.status_code, crossed.json()["code"]) == (404, "unknown_approval")


@pytest.mark.requirement("edge.ids.declared")
async def test_no_body_may_say_who_somebody_is_or_what_an_id_or_number_is(tmp_path: Path):
    claims: dict[str, Any] = {
        "runtimeId": "x",
        "edgeId": "x",
        "seq": 1,
        "sequence": 1,
        "createdAt": "2026-01-01T00:00:00Z",
        "decidedBy": "the owner",
        "actor": "the owner",
        "traceId": "0" * 32,
        "turnId": "trn_mine",
        "__proto__": {},
    }
    async with running_edge(tmp_path) as edge:
        for method, path, operation in OPERATIONS:
            if "requestBody" not in operation:
                continue
            for name, value in claims.items():
                answer = await edge.http.request(
                    method, re.sub(r"\{\w+\}", "x", path), json={name: value}
                )
                assert answer.status_code == 400, (method, path, name, answer.text)
                assert answer.json()["code"] == "invalid_request"


@pytest.mark.requirement("edge.ids.slashes")
async def test_a_thread_of_an_outside_runtime_is_found_whatever_its_id_is(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        for thread_id in ("a/b", "a b", "ü", "x:fork", "%2f", "a?b#c", "...", "line\nline"):
            await edge.post("/v1/facts", {"facts": outside_facts(thread_id)})
            found = await edge.get(f"/v1/threads/{quote(thread_id, safe='')}")
            assert found["threadId"] == thread_id


POSTS: dict[str, dict[str, Any]] = {
    "/v1/blobs": {"content": "aGk="},
    "/v1/projects": {"name": "One"},
    "/v1/conversations": {"title": "One"},
    "/v1/conversations/{conversationId}/members": {"memberId": "m", "memberType": "user"},
    "/v1/threads": {"title": "One"},
    "/v1/threads/{threadId}:archive": {},
    "/v1/threads/{threadId}:fork": {"title": "One"},
    "/v1/threads/{threadId}/messages": {"text": "help", "agentId": "demo"},
    "/v1/runs": {"agentId": "demo", "prompt": "help"},
    "/v1/runs/{runId}:retry": {},
    "/v1/runs/{runId}:cancel": {"reason": "enough"},
    "/v1/runs/{runId}:merge": {"message": "One"},
    "/v1/permissions/decide": {"decision": "allow"},
    "/v1/previews": {"path": "."},
    "/v1/previews/{previewId}:stop": {},
    "/v1/evidence": {},
    "/v1/retention/runs": {"compact": True, "dryRun": True},
    "/v1/facts": {"facts": outside_facts("repeated")},
    "/v1/tickets": {},
    "/v1/tokens": {"name": "One", "scopes": ["read"]},
    "/v1/threads/{threadId}/queue:continue": {},
    "/v1/threads/{threadId}/queue/{runId}:continue": {},
    "/v1/threads/{threadId}/queue/{runId}:promote": {},
    "/v1/threads/{threadId}/queue/{runId}:steer": {},
}
EFFECTS = {
    "/v1/threads/{threadId}:archive": ("thread.updated", 1),
    "/v1/threads/{threadId}:fork": ("thread.forked", 1),
    "/v1/threads/{threadId}/messages": ("turn.submitted", 1),
    "/v1/runs": ("turn.submitted", 1),
    "/v1/projects": ("project.created", 1),
    "/v1/conversations": ("conversation.created", 1),
    "/v1/conversations/{conversationId}/members": ("conversation.member.added", 1),
    "/v1/threads": ("thread.created", 1),
    "/v1/previews": ("preview.ready", 1),
    "/v1/previews/{previewId}:stop": ("preview.stopped", 1),
    "/v1/evidence": ("evidence.exported", 1),
    "/v1/facts": ("task.created", 1),
    "/v1/permissions/decide": ("action.resolved", 1),
    "/v1/runs/{runId}:retry": ("turn.submitted", 1),
    "/v1/threads/{threadId}/queue:continue": ("queue.changed", 2),
    "/v1/threads/{threadId}/queue/{runId}:continue": ("queue.changed", 1),
}
"""Address → the class of fact that it writes, and how often under one key."""


async def test_every_post_is_among_those_that_are_repeated():
    assert {path for method, path, _ in OPERATIONS if method == "POST"} == POSTS.keys()


@pytest.mark.requirement("edge.ids.repeated")
@pytest.mark.parametrize("path", POSTS)
async def test_fifty_at_once_under_one_key_are_one(tmp_path: Path, path: str):
    configuration = with_repository(tmp_path) if path.endswith(":merge") else None
    async with running_edge(tmp_path, configuration=configuration) as edge:
        address, body = await _prepare_request(edge, path)
        since = await edge.machine.journal.head()
        headers = {"idempotency-key": "one"}

        async def attempt() -> tuple[int, bytes]:
            answer = await edge.http.post(address, json=body, headers=headers)
            return answer.status_code, answer.content

        answers = await asyncio.gather(*(attempt() for _ in range(50)))
        assert len(set(answers)) == 1, set(answers)
        assert answers[0][0] < 300, answers[0]
        other = await edge.http.post(address, json={"title": "Another"}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
        if path in EFFECTS:
            written, count = EFFECTS[path]
            page = await edge.get("/v1/facts", cursor=str(since), classes=written, limit=1000)
            assert len(page["items"]) == count


async def _prepare_request(edge: RunningEdge, path: str) -> tuple[str, Any]:
    """An address and a body that do something."""
    body = POSTS[path]
    if path.endswith(":merge"):
        return path.format(**await run_change(edge, worktree=True)), body
    if "queue" in path:
        first = await edge.start("approve")
        await edge.run_until(first["runId"], "waiting")
        waiting = [await edge.start("help", threadId=first["threadId"]) for _ in range(2)]
        if path.endswith(":continue"):
            await edge.post(f"/v1/runs/{first['runId']}:cancel", status=202)
            await edge.run_until(first["runId"])
        return path.format(threadId=first["threadId"], runId=waiting[1]["runId"]), body
    if path in ("/v1/permissions/decide", "/v1/runs/{runId}:cancel"):
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        named = {"runId": run["runId"], "requestId": approval["approvalId"]}
        body = body | {"argsHash": approval["argsHash"]} if "{" not in path else body
        return path.format(**named), body if "{" in path else body | named
    if path in ("/v1/evidence", "/v1/previews") or "{" in path:
        things = await asyncio.to_thread(made_things, edge.url)
        ids = {name: known[0] for name, known in things.ids.items() if known}
        more = {
            "/v1/evidence": {"threadId": ids["threadId"]},
            "/v1/previews": {"runId": ids["runId"]},
        }
        return path.format(**ids), body | more.get(path, {})
    return path, body
