"""A recorder that writes to a running Edge, and what a person decides there."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from examples.edge_loop import restart
from factwire.client import AsyncClient, Client, EdgeProblem
from factwire.facts import Fact
from factwire.projection import conversation
from factwire.runtime import GateRefused
from factwire.runtime.recording import BlockingRecorder, Recorder
from tests.client.edge_processes import TOKEN as CLIENT_TOKEN
from tests.client.edge_processes import EdgeProcess as CommandEdge
from tests.edge.edges import TOKEN, RunningEdge, running_edge
from tests.runtime.test_recording import record_everything

pytestmark = pytest.mark.asyncio


async def stored_facts(edge: RunningEdge, thread_id: str) -> list[dict[str, Any]]:
    page = await edge.get("/v1/facts", threadId=thread_id, limit=1000)
    return [item["fact"] for item in page["items"]]


async def wait_for_request(edge: RunningEdge) -> dict[str, Any]:
    while True:
        seen = edge.machine.feed.cursor.seq
        page = await edge.get("/v1/approvals", status="pending")
        if page["items"]:
            return page["items"][0]
        await edge.machine.feed.wait_for(seen + 1)


@pytest.mark.requirement("runtime.recording.edge")
async def test_a_turn_recorded_to_an_edge_is_what_the_edge_shows(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        async with Recorder(edge.url, token=TOKEN, thread_id="mine") as recorder:
            await record_everything(recorder)
            own = recorder.state
        state = await edge.get("/v1/threads/mine/projection")
        facts = await stored_facts(edge, "mine")
        assert [fact["sequence"] for fact in facts] == list(range(1, len(facts) + 1))
        assert state["state"]["runtime"]["status"] == own.runtime.status == "completed"
        artifact = (await edge.get("/v1/artifacts"))["items"][0]
        content = await edge.http.get(f"/v1/artifacts/{artifact['artifactId']}/content")
        assert content.content == b"# Notes, again"
        async with Recorder(edge.url, token=TOKEN, thread_id="mine") as again:
            assert conversation(again.state) == conversation(own)
            async with again.turn("More") as turn:
                turn.say("More.")
            await again.flush()
            assert len(await stored_facts(edge, "mine")) == len(facts) + 4


@pytest.mark.requirement("runtime.recording.edge")
async def test_an_edge_that_refuses_says_why_where_it_is_recorded(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        thread = (await edge.post("/v1/threads", {}, status=201))["threadId"]
        with pytest.raises(GateRefused) as refused:
            await record_turn(Recorder(edge.url, token=TOKEN, thread_id=thread))
        assert refused.value.code == "thread_owned_elsewhere"
        with pytest.raises(EdgeProblem) as unknown:
            await record_turn(Recorder(edge.url, token="x" * 32))
        assert unknown.value.status == 401


async def record_turn(recorder: Recorder) -> None:
    async with recorder, recorder.turn("Mine?") as turn:
        turn.say("No.")


@pytest.mark.parametrize(("decision", "result"), [("allow", "restarted"), ("deny", None)])
@pytest.mark.requirement("edge.rest.outside-approvals")
async def test_what_a_recorder_asks_is_decided_at_the_edge(
    tmp_path: Path, decision: str, result: str | None
):
    async with running_edge(tmp_path) as edge:
        looping = asyncio.create_task(restart(edge.url, TOKEN, "report"))
        row = await wait_for_request(edge)
        assert (row["summary"], row["status"]) == ("Restart report?", "pending")
        pending = await edge.get(f"/v1/approvals/{row['approvalId']}", wait=0)
        assert pending["status"] == "pending"
        changed = await edge.decide(row, decision, argsHash="sha256:other")
        assert (changed.status_code, changed.json()["code"]) == (409, "approval_changed")
        decided = (await edge.decide(row, decision, reason="I looked")).json()
        again = (await edge.decide(row, decision)).json()
        assert again["status"] == decided["status"] == ("approved" if result else "denied")
        other = await edge.decide(row, "deny" if result else "allow")
        assert (other.status_code, other.json()["code"]) == (409, "approval_decided")
        assert await looping == (result is not None)
        state = (await edge.get(f"/v1/threads/{row['threadId']}/projection"))["state"]
        [action] = state["actions"].values()
        [tool] = state["tools"].values()
        assert (action["status"], action["reason"]) == ("resolved", "I looked")
        assert tool["state"] == ("output-available" if result else "output-error")
        run = await edge.get(f"/v1/runs/{row['runId']}", wait=60)
        assert run["status"] == "finished"
        row = await edge.get(f"/v1/approvals/{row['approvalId']}")
        assert row["applied"] is True
        assert row["createdAt"] <= row["decidedAt"] <= row["appliedAt"]


async def read_decisions(edge: RunningEdge, thread_id: str) -> list[dict[str, Any]]:
    """The scope of the first decision in a thread, as every way to read events has it."""
    wanted = {"threadId": thread_id, "view": "conversation", "types": "approval.decided"}
    # The recorder states the decision too, once it has it.
    row, *_ = (await edge.get("/v1/events", **wanted))["items"]
    async with AsyncClient(edge.url, token=TOKEN) as client:
        types = ("approval.decided",)
        async with client.events(thread_id=thread_id, view="conversation", types=types) as events:
            socket = msgspec.to_builtins((await anext(events)).scope)
    accept = {"accept": "text/event-stream"}
    async with edge.http.stream("GET", "/v1/events", params=wanted, headers=accept) as answer:
        lines = (line async for line in answer.aiter_lines() if '"approval.decided"' in line)
        streamed = json.loads((await anext(lines)).removeprefix("data:"))
    return [row["scope"], socket, streamed["scope"]]


@pytest.mark.requirement("edge.rest.outside-approvals")
async def test_the_decision_on_a_recorders_request_is_found_by_its_thread(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        looping = asyncio.create_task(restart(edge.url, TOKEN, "report"))
        row = await wait_for_request(edge)
        await edge.decide(row, "allow")
        seen = await read_decisions(edge, row["threadId"])
        assert {(scope["threadId"], scope["runId"]) for scope in seen} == {
            (row["threadId"], row["runId"])
        }
        assert await looping


def make_fact(number: int, name: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": name,
        "id": f"own-{number}",
        "runtimeId": "my-agent",
        "sessionId": "s",
        "threadId": "own",
        "turnId": "trn_own",
        "toolCallId": "c",
        "actionId": "act",
        "createdAt": "2026-01-01T00:00:00Z",
        "payload": payload,
    }


@pytest.mark.requirement("edge.rest.outside-approvals")
async def test_a_decision_comes_back_by_long_poll_and_by_stream(tmp_path: Path):
    request = {"actionType": "tool_approval", "prompt": "Go?", "argsHash": "sha256:1"}
    rows: list[tuple[str, dict[str, Any]]] = [
        ("turn.started", {}),
        ("tool.started", {"toolName": "go"}),
        ("action.required", request),
    ]
    async with running_edge(tmp_path) as edge, AsyncClient(edge.url, token=TOKEN) as client:
        await client.post_facts([make_fact(n, *row) for n, row in enumerate(rows, 1)])
        polling = asyncio.create_task(client.approval("act", wait=20))
        types = ("approval.decided",)
        async with client.events(since="now", view="conversation", types=types) as events:
            early = make_fact(4, "tool.result", {"output": "went"})
            with pytest.raises(EdgeProblem) as refused:
                await client.post_facts([early])
            assert refused.value.members["issues"][0]["code"] == "approval_pending"
            await client.decide(
                "run_own", "act", "allow", args_hash="sha256:1", response={"speed": 3}
            )
            event = await anext(events)
        assert (event.payload["approvalId"], event.payload["decision"]) == ("act", "allow")
        assert event.scope.run_id == "run_own"
        row = await polling
        assert (row.status, row.response, row.applied) == ("approved", {"speed": 3}, False)
        with pytest.raises(EdgeProblem) as other:
            await client.post_facts([make_fact(5, "action.resolved", {"decision": "denied"})])
        assert other.value.members["issues"][0]["code"] == "action_already_decided"
        seen = await edge.get("/v1/facts", threadId="own", classes="action.resolved")
        [decided] = [item["fact"] for item in seen["items"]]
        assert (decided["payload"]["decision"], decided.get("sequence")) == ("approved", None)
        page = await edge.get(
            "/v1/events", threadId="own", view="conversation", types="approval.decided"
        )
        assert [item["scope"]["threadId"] for item in page["items"]] == ["own"]
        state = (await edge.get("/v1/threads/own/projection"))["state"]
        assert state["actions"]["act"]["status"] == "resolved"
        assert state["hydration"]["status"] == "live"
        await client.post_facts([make_fact(6, "action.resolved", {"decision": "approved"}), early])
        forged = make_fact(7, "action.resolved", {"decision": "denied", "besideThreadId": "x"})
        with pytest.raises(EdgeProblem, match="class_reserved"):
            await client.post_facts([forged])
        with pytest.raises(EdgeProblem, match="unknown_approval"):
            await client.approval("none")


@pytest.mark.requirement("edge.rest.outside-approvals")
async def test_an_outside_approval_that_expired_cannot_be_decided(tmp_path: Path):
    request = {"actionType": "tool_approval", "prompt": "?", "expiresAt": "2026-01-01T00:00:01Z"}
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", [make_fact(1, "action.required", request)])
        [row] = (await edge.get("/v1/approvals"))["items"]
        late = await edge.decide(row, "allow")
        assert (late.status_code, late.json()["code"]) == (410, "approval_expired")


@pytest.mark.requirement("client.wait")
async def test_both_clients_wait_for_the_end_of_a_run(tmp_path: Path):
    async with running_edge(tmp_path) as edge, AsyncClient(edge.url, token=TOKEN) as client:
        run = await client.start_run("demo", "approve")
        with pytest.raises(TimeoutError, match=run.run_id):
            await client.wait(run, seconds=0.1)

        def wait() -> str:
            with Client(edge.url, token=TOKEN) as blocking:
                return blocking.wait(run.run_id, seconds=60).status

        waiting = asyncio.create_task(asyncio.to_thread(wait))
        await edge.allow_all(run.run_id)
        assert (await client.wait(run, seconds=60)).status == await waiting == "finished"


@pytest.mark.requirement("client.facts")
async def test_facts_are_posted_as_objects_or_as_mappings(tmp_path: Path):
    fact = Fact(
        id="made",
        kind="state",
        status="running",
        title="run.status",
        created_at="2026-01-01T00:00:00Z",
        schema_version="factwire-fact/v1",
        runtime_id="my-agent",
        thread_id="own",
        event_class="run.status",
        payload={"status": "running"},
    )
    async with running_edge(tmp_path) as edge, AsyncClient(edge.url, token=TOKEN) as client:
        mapping = make_fact(1, "run.status", {"status": "running"})
        accepted = await client.post_facts([fact, mapping])
        assert (accepted.accepted, accepted.sequences) == (2, (1, 2))


@pytest.mark.fault
@pytest.mark.requirement("runtime.recording.edge")
@pytest.mark.requirement("client.wait")
async def test_a_recorder_and_a_decision_outlive_an_edge_that_is_killed(tmp_path: Path):
    def record(url: str) -> bool:
        recorder = BlockingRecorder(url, token=CLIENT_TOKEN, thread_id="mine")
        with recorder, recorder.turn("Go") as turn:
            turn.text("my")
            turn.text(" key")
            with turn.tool("go", {}) as call:
                return recorder.ask("Go?", call=call).allowed

    with CommandEdge(tmp_path) as edge:
        recording = asyncio.create_task(asyncio.to_thread(record, edge.url))
        async with AsyncClient(edge.url, token=CLIENT_TOKEN) as client:
            rows: list[Any] = []
            while not rows:
                rows = [row async for row in client.approvals(status="pending")]
            [row] = rows
            waiting = asyncio.create_task(client.wait(row.run_id))
            await asyncio.to_thread(edge.kill)
            await asyncio.to_thread(edge.start)
            await client.decide(row.run_id, row.approval_id, "allow", args_hash=row.args_hash)
            assert await recording
            assert (await waiting).status == "finished"
            facts = [placed.fact async for placed in client.past_facts(thread_id="mine")]
        texts = [fact.payload["text"] for fact in facts if fact.event_class == "model.completed"]
        assert texts == ["my key"]
