"""What is read from an Edge is read the same from its mirror, also while the Edge is off."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from factwire.edge.edge_app import build_openapi
from factwire.edge.hub_frames import MIRRORED_ROUTES
from factwire.edge.startup import EdgeSettings
from tests.edge.edges import TOKEN, RunningEdge, running_edge
from tests.hub.mirrors import HUB_TOKEN, WAIT_SECONDS, RunningMirror, running_mirror

OPERATIONS = sorted(
    (method.upper(), re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found[1].lower()}", path))
    for path, methods in build_openapi()["paths"].items()
    for method in methods
    if method in ("get", "post", "patch", "delete", "put")
)
PLACE = re.compile(r"\{(\w+)\}")
# Where the id of a path comes from: the list, the member of its rows, and what else names one.
LISTS = {
    "project_id": ("projects", "projectId"),
    "conversation_id": ("conversations", "conversationId"),
    "thread_id": ("threads", "threadId"),
    "run_id": ("runs", "runId"),
    "approval_id": ("approvals", "approvalId"),
    "artifact_id": ("artifacts", "artifactId"),
    "task_id": ("tasks", "taskId"),
    "evidence_id": ("evidence", "evidenceId"),
    "preview_id": ("previews", "previewId"),
}


@asynccontextmanager
async def busy_edge(folder: Path) -> AsyncGenerator[tuple[RunningEdge, RunningMirror]]:
    """An Edge that has done a bit of everything, and a Hub that has all of it."""
    async with (
        running_mirror(folder / "hub") as hub,
        running_edge(folder, settings=EdgeSettings(token=TOKEN, hub=hub.target)) as edge,
    ):
        project = await edge.post("/v1/projects", {"name": "reports"}, status=201)
        conversation = {"projectId": project["projectId"], "title": "talk"}
        await edge.post("/v1/conversations", conversation, status=201)
        for prompt in ("first", "second"):
            run = await edge.start(prompt)
            await edge.allow_all(run["runId"])
        waiting = await edge.start("third")
        await edge.wait_for_approval(waiting["runId"])
        await edge.start("queued", threadId=waiting["threadId"])
        shell = await edge.start("echo hello; seq 20000", "shell")
        await edge.allow_all(shell["runId"])
        pack = {"threadId": run["threadId"]}
        await edge.post("/v1/evidence", pack, status=201)
        gone = await edge.post("/v1/threads", {"title": "gone"}, status=201)
        assert (await edge.http.delete(f"/v1/threads/{gone['threadId']}")).status_code == 204
        await hub.wait_for(edge.machine.edge_id, (await edge.machine.journal.head()).seq)
        yield edge, hub


async def fill_path(edge: RunningEdge, template: str) -> list[str]:
    """The addresses of a template for things that the Edge has, or for none of its own."""
    names = PLACE.findall(template)
    if not names:
        return [template]
    known: list[dict[str, str]] = []
    if names[0] == "ref":
        rows = (await edge.get("/v1/evidence"))["items"]
        known = [{"ref": row["exportRef"]} for row in rows]
    else:
        path, member = LISTS.get(names[0], ("tokens", "tokenId"))
        rows = (await edge.get(f"/v1/{path}"))["items"]
        known = [{names[0]: row[member]} for row in rows]
    if names[1:] == ["item_id"]:
        thread = known[0]["thread_id"]
        items = (await edge.get(f"/v1/threads/{thread}/items"))["items"]
        known = [{"thread_id": thread, "item_id": item["itemId"]} for item in items]
    known.append(dict.fromkeys(names, "nothing"))
    return [PLACE.sub(lambda found, ids=ids: ids.get(found[1], "x"), template) for ids in known]


def describe(answer: httpx.Response) -> tuple[int, Any, Any]:
    """What an answer says, but for the trace of the request."""
    as_of = answer.headers.get("x-as-of")
    if answer.is_success:
        return answer.status_code, as_of, answer.content
    problem = answer.json()
    return answer.status_code, as_of, {**problem, "traceId": ""}


@pytest.mark.requirement("mirror.reading")
@pytest.mark.requirement("mirror.device")
@pytest.mark.asyncio
async def test_every_route_reads_the_same_or_says_that_it_needs_the_device(tmp_path: Path):
    async with busy_edge(tmp_path) as (edge, hub):
        base, seen = f"/v1/edges/{edge.machine.edge_id}", set[str]()
        for method, template in OPERATIONS:
            for path in await fill_path(edge, template):
                mirrored = f"{base}{path.removeprefix('/v1')}"
                answer = await hub.http.request(method, mirrored)
                if method == "GET" and template in MIRRORED_ROUTES:
                    original = await edge.http.get(path)
                    assert describe(answer) == describe(original), path
                    seen |= {template} if original.is_success else set()
                elif not template.startswith("/v1/"):
                    assert answer.status_code == 404
                else:
                    problem = answer.json()
                    assert (answer.status_code, problem["code"]) == (409, "device_required"), path
        missing = seen ^ MIRRORED_ROUTES
        # The demo agent makes no previews.
        assert missing <= {"/v1/previews/{preview_id}"}


@pytest.mark.requirement("mirror.reading")
@pytest.mark.asyncio
async def test_moments_pages_and_streams_take_the_cursors_of_the_edge(tmp_path: Path):
    async with busy_edge(tmp_path) as (edge, hub):
        base = f"/v1/edges/{edge.machine.edge_id}"
        events = (await edge.get("/v1/events", limit=500))["items"]
        cursors = [event["cursor"] for event in events][:: max(1, len(events) // 12)]
        thread = (await edge.get("/v1/runs"))["items"][-1]["threadId"]
        for cursor in cursors:
            for path, name in (
                ("events", "cursor"),
                ("facts", "cursor"),
                (f"threads/{thread}/projection", "at"),
                (f"threads/{thread}/read-model", "at"),
            ):
                original = await edge.http.get(f"/v1/{path}", params={name: cursor})
                answer = await hub.http.get(f"{base}/{path}", params={name: cursor})
                assert describe(answer) == describe(original), path
        for at in (0, len(cursors) // 2, -1):
            address = f"/events?cursor={cursors[at]}"
            left = await read_socket(f"{edge.socket_url}/v1{address}", TOKEN, 40)
            hub_url = f"ws://127.0.0.1:{hub.port}{base}"
            assert await read_socket(f"{hub_url}{address}", HUB_TOKEN, 40) == left
            left = await read_events(edge.http, f"/v1{address}", len(left))
            assert await read_events(hub.http, f"{base}{address}", len(left)) == left
        state = f"/threads/{thread}/projection/stream"
        left = await read_socket(f"{edge.socket_url}/v1{state}", TOKEN, 1)
        assert await read_socket(f"ws://127.0.0.1:{hub.port}{base}{state}", HUB_TOKEN, 1) == left


async def read_socket(url: str, token: str, most: int) -> list[Any]:
    """The first messages of a stream, up to one that says that it is live."""
    headers = {"authorization": f"Bearer {token}"}
    found: list[Any] = []
    async with asyncio.timeout(WAIT_SECONDS), connect(url, additional_headers=headers) as stream:
        while len(found) < most:
            message = json.loads(await stream.recv())
            found.append(message)
            if message.get("type") == "checkpoint":
                break
    return found


async def read_events(http: httpx.AsyncClient, path: str, most: int) -> list[str]:
    headers = {"accept": "text/event-stream"}
    found: list[str] = []
    async with asyncio.timeout(WAIT_SECONDS), http.stream("GET", path, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data:"):
                found.append(line)
            if len(found) == most:
                break
    return found


@pytest.mark.requirement("mirror.reading")
@pytest.mark.asyncio
async def test_a_stream_of_a_mirror_goes_on_with_what_the_edge_does(tmp_path: Path):
    async with (
        running_mirror(tmp_path / "hub") as hub,
        running_edge(tmp_path, settings=EdgeSettings(token=TOKEN, hub=hub.target)) as edge,
    ):
        await hub.wait_for(edge.machine.edge_id, (await edge.machine.journal.head()).seq)
        url = f"ws://127.0.0.1:{hub.port}/v1/edges/{edge.machine.edge_id}/facts"
        headers = {"authorization": f"Bearer {HUB_TOKEN}"}
        async with (
            asyncio.timeout(WAIT_SECONDS),
            connect(url, additional_headers=headers) as stream,
        ):
            run = await edge.start("live")
            await edge.allow_all(run["runId"])
            head = (await edge.machine.journal.head()).seq
            seqs: list[int] = []
            while not seqs or seqs[-1] < head:
                message = json.loads(await stream.recv())
                if "fact" in message:
                    seqs.append(message["seq"])
        assert seqs == list(range(1, head + 1))


@pytest.mark.requirement("mirror.reading")
@pytest.mark.asyncio
async def test_all_is_read_while_the_edge_is_off_and_after_a_restart_of_the_hub(tmp_path: Path):
    async with busy_edge(tmp_path) as (edge, hub):
        edge_id = edge.machine.edge_id
        paths = ("threads", "runs", "approvals", "evidence", "events", "facts")
        before = {path: describe(await edge.http.get(f"/v1/{path}")) for path in paths}
        through = describe(await hub.http.get(f"/v1/edges/{edge_id}/threads"))
        assert through == before["threads"]
    async with running_mirror(tmp_path / "hub") as back:
        for path in paths:
            answer = await back.http.get(f"/v1/edges/{edge_id}/{path}")
            assert describe(answer) == before[path]
