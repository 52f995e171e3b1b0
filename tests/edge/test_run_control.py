"""Stopping, holding, steering and deciding over HTTP: row, event and queue tell the same story."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from factwire.journal import FactBatch
from factwire.runtime.configuration import AgentSettings, SandboxSettings
from factwire.runtime.configuration.configuration import SandboxMode
from tests.edge.edges import TOKEN, RunningEdge, configuration_in, running_edge
from tests.runtime.fake_model import FakeModel, calls, text
from tests.sources.live.scripted import program

pytestmark = pytest.mark.asyncio

_SLEEP = "sleep 300"


async def _events(edge: RunningEdge, **wanted: str) -> list[dict[str, Any]]:
    """Every event of a selection, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await edge.get("/v1/events", limit=500, **wanted, **cursor)
        found += page["items"]
        if "next" not in page:
            return found
        cursor = {"cursor": page["next"]}


async def _statuses(edge: RunningEdge, run_id: str) -> list[str]:
    """What a run came through, as its own events have it."""
    found = await _events(edge, runId=run_id, types="run")
    return [
        each["payload"].get("to") or each["payload"]["status"]
        for each in found
        if each["type"].startswith("run.")
        and each["type"].count(".") < 3
        and ("status" in each["payload"] or "to" in each["payload"])
        and not each["type"].startswith("run.agent.")
    ]


@pytest.mark.requirement("edge.run.times")
async def test_every_event_of_a_run_has_the_times_of_what_has_happened_to_it(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await _start_working(edge)
        (waiting,) = await _queue(edge, run["threadId"], "echo one")
        await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        await edge.run_until(run["runId"], "cancelled")
        await edge.post(f"/v1/threads/{run['threadId']}/queue/{waiting}:continue")
        await edge.allow_all(waiting)
        for run_id in (run["runId"], waiting):
            row = await edge.get(f"/v1/runs/{run_id}")
            for view in ("runtime", "conversation"):
                happened = dict[str, str]()
                for event in await _events(edge, runId=run_id, types="run", view=view):
                    payload = event["payload"]
                    if event["type"] not in _RUN_TYPES:
                        continue
                    happened["createdAt"] = row["createdAt"]
                    if "running" in (payload.get("status"), payload.get("to")):
                        happened["startedAt"] = row["startedAt"]
                    if event["type"] != "run.queued" and (
                        payload.get("status") or payload["to"]
                    ) in ("finished", "cancelled"):
                        happened["finishedAt"] = row["finishedAt"]
                    times = {name: payload.get(name) for name in happened}
                    assert times == happened, event


_RUN_TYPES = [
    "run.queued",
    "run.started",
    "run.finished",
    "run.failed",
    "run.cancelled",
    "run.status.changed",
]


async def _start_working(edge: RunningEdge, prompt: str = _SLEEP, agent: str = "shell") -> Any:
    """A run whose command is under way."""
    run = await edge.start(prompt, agent)
    await edge.run_until(run["runId"], "waiting")
    await edge.decide(await edge.wait_for_approval(run["runId"]), "allow")
    await _wait_for_event(edge, run["runId"], "process.started")
    return run


async def _wait_for_event(edge: RunningEdge, run_id: str, name: str) -> None:
    async with asyncio.timeout(60):
        while True:
            seen = edge.machine.feed.cursor.seq
            if await _events(edge, runId=run_id, types=name):
                return
            await edge.machine.feed.wait_for(seen + 1)


async def _queue(edge: RunningEdge, thread_id: str, *prompts: str) -> list[str]:
    runs = [await edge.start(prompt, "shell", threadId=thread_id, options={}) for prompt in prompts]
    return [run["runId"] for run in runs]


@pytest.mark.requirement("edge.stop.holds")
async def test_what_waited_when_a_run_was_stopped_starts_only_by_hand(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await _start_working(edge)
        thread = run["threadId"]
        one, two, three = await _queue(edge, thread, "echo one", "echo two", "echo three")
        stopping = await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        assert stopping["status"] in ("cancelling", "cancelled")
        ended = await edge.run_until(run["runId"])
        assert (ended["status"], ended["reason"]) == ("cancelled", "requested")
        queue = (await edge.get(f"/v1/threads/{thread}/queue"))["items"]
        assert [(each["runId"], each["status"]) for each in queue] == [
            (one, "held"),
            (two, "held"),
            (three, "held"),
        ]
        assert all(each["heldAt"] for each in queue)
        assert [(await edge.get(f"/v1/runs/{each}"))["status"] for each in (one, two, three)] == [
            "held"
        ] * 3
    async with running_edge(tmp_path) as edge:
        # A restart starts nothing either, and a message of its own is not held by the others.
        fresh = await edge.start("help", "demo", threadId=thread)
        assert (await edge.run_until(fresh["runId"]))["status"] == "finished"
        assert (await edge.get(f"/v1/runs/{one}"))["status"] == "held"
        left = (await edge.post(f"/v1/threads/{thread}/queue/{two}:continue"))["items"]
        assert {each["runId"] for each in left if each.get("status") == "held"} == {one, three}
        await edge.allow_all(two)
        discarded = await edge.http.delete(f"/v1/threads/{thread}/queue/{three}")
        assert [each["runId"] for each in discarded.json()["items"]] == [one]
        await edge.post(f"/v1/threads/{thread}/queue:continue")
        await edge.allow_all(one)
        again = await edge.post(f"/v1/threads/{thread}/queue:continue")
        assert again["items"] == []
        assert await _statuses(edge, run["runId"]) == [
            "queued",
            "running",
            "cancelling",
            "cancelled",
        ]
        assert await _statuses(edge, one) == [
            "queued",
            "held",
            "queued",
            "queued",
            "running",
            "finished",
        ]
        assert await _statuses(edge, three) == ["queued", "held", "cancelled"]
        missing = await edge.http.post(f"/v1/threads/{thread}/queue/{three}:continue")
        assert (missing.status_code, missing.json()["code"]) == (404, "unknown_run")


@pytest.mark.requirement("edge.stop.cancelling")
async def test_a_run_that_was_asked_to_stop_is_cancelling_until_it_has_ended(tmp_path: Path):
    stubborn = "trap '' INT TERM; echo ready; while :; do sleep 0.1; done"
    async with running_edge(tmp_path) as edge:
        run = await _start_working(edge, stubborn)
        (waiting,) = await _queue(edge, run["threadId"], "echo later")
        await _wait_for_event(edge, run["runId"], "run.output")
        answer = await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        assert answer["status"] == "cancelling"
        state = (await edge.get(f"/v1/threads/{run['threadId']}/projection"))["state"]
        assert state["runtime"]["cancellingTurnId"] == run["turnId"]
        assert state["runtime"]["runtimeStatus"] == "cancelling"
        assert [turn["status"] for turn in state["queue"]["turns"]] == ["held"]
        listed = await edge.get("/v1/runs", status="cancelling")
        assert [row["runId"] for row in listed["items"]] == [run["runId"]]
        # Words for a run that stops have nobody to hear them.
        late = await edge.http.post(
            f"/v1/threads/{run['threadId']}/messages", json={"text": "more", "mode": "steer"}
        )
        assert (late.status_code, late.json()["code"]) == (409, "run_not_active")
        await edge.machine.runtime.close(0)
    async with running_edge(tmp_path) as edge:
        # The process ended before the run did; what was asked of it still holds.
        ended = await edge.run_until(run["runId"])
        assert ended["status"] == "cancelled"
        assert (await edge.get(f"/v1/runs/{waiting}"))["status"] == "held"
        state = (await edge.get(f"/v1/threads/{run['threadId']}/projection"))["state"]
        assert "cancellingTurnId" not in state["runtime"]


@pytest.mark.requirement("edge.steer.queued")
async def test_a_queued_run_that_is_steered_waits_until_the_running_one_has_taken_it(
    tmp_path: Path,
):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        thread = run["threadId"]
        await edge.run_until(run["runId"], "waiting")
        queued = await edge.start("to the left", threadId=thread)
        left = await edge.post(f"/v1/threads/{thread}/queue/{queued['runId']}:steer")
        assert left["items"] == []
        assert (await edge.get(f"/v1/runs/{queued['runId']}"))["status"] == "queued"
        assert (await edge.allow_all(run["runId"]))["status"] == "finished"
        row = await edge.get(f"/v1/runs/{queued['runId']}")
        assert (row["status"], row["reason"], row["steeredInto"]) == (
            "cancelled",
            "steered",
            run["runId"],
        )
        assert "queuedRuns" not in await edge.get(f"/v1/threads/{thread}")
        assert await _statuses(edge, run["runId"]) == ["queued", "running", "finished"]
        assert await _statuses(edge, queued["runId"]) == ["queued", "cancelled"]
        (ended,) = await _events(edge, runId=queued["runId"], types="run.cancelled")
        assert (ended["payload"]["reason"], ended["payload"]["steeredInto"]) == (
            "steered",
            run["runId"],
        )
        items = (await edge.get(f"/v1/threads/{thread}/items"))["items"]
        texts = [item["content"].get("text") for item in items if item.get("role") == "user"]
        assert texts == ["approve", "to the left"]


@pytest.mark.requirement("edge.steer.queued")
async def test_a_steered_run_that_nobody_took_waits_on_and_is_held_by_a_stop(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        thread = run["threadId"]
        await edge.run_until(run["runId"], "waiting")
        submitted_run = await edge.start("echo to the left", "shell", threadId=thread)
        queued = submitted_run["runId"]
        await edge.post(f"/v1/threads/{thread}/queue/{queued}:steer")
        await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        await edge.run_until(run["runId"])
        left = (await edge.get(f"/v1/threads/{thread}/queue"))["items"]
        # It is what it was: for its own agent, and asked for when it was.
        assert [(each["runId"], each["agentId"], each["status"]) for each in left] == [
            (queued, "shell", "held")
        ]
        row = await edge.get(f"/v1/runs/{queued}")
        assert (row["status"], row["agentId"]) == ("held", "shell")
        entered = await _events(edge, runId=queued, types="run.queued")
        times = {event["payload"]["createdAt"] for event in entered}
        assert times == {submitted_run["createdAt"], row["createdAt"]}
        await edge.post(f"/v1/threads/{thread}/queue/{queued}:continue")
        assert (await edge.allow_all(queued))["status"] == "finished"
        assert "cancelled" not in await _statuses(edge, queued)


def _with_openai(folder: Path, url: str) -> Any:
    agents = {
        "demo": AgentSettings(kind="demo", options={"pace": 0}),
        "shell": AgentSettings(kind="shell"),
        "openai": AgentSettings(kind="openai", model="fake", base_url=url),
    }
    return configuration_in(folder, agents=agents)


@pytest.mark.requirement("edge.approval.times")
@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_an_approval_has_the_times_of_its_request_decision_sending_and_effect(
    tmp_path: Path, decision: str
):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        decided = (await edge.decide(approval, decision)).json()
        assert decided["decidedAt"] >= decided["createdAt"]
        await edge.allow_all(run["runId"])
    async with running_edge(tmp_path) as edge:
        rows = (await edge.get("/v1/approvals", runId=run["runId"]))["items"]
        row = next(each for each in rows if each["approvalId"] == approval["approvalId"])
        assert row["applied"] is True
        times = [row[name] for name in ("createdAt", "decidedAt", "sentAt", "appliedAt")]
        assert times == sorted(times)
        state = (await edge.get(f"/v1/threads/{run['threadId']}/projection"))["state"]
        action = state["actions"][approval["approvalId"]]
        names = ("requestedAt", "resolvedAt", "sentAt", "appliedAt")
        assert [action[name] for name in names] == times
        for view, name, key in (
            ("conversation", "approval.decided", "approvalId"),
            ("runtime", "run.agent.permission_decided", "requestId"),
        ):
            events = [
                each["payload"]
                for each in await _events(edge, runId=run["runId"], types=name, view=view)
                if each["payload"][key] == approval["approvalId"]
            ]
            last = events[-1]
            assert [each["applied"] for each in events] == [False, True]
            assert events[0]["decidedAt"] == times[1]
            assert [
                last["requestedAt"],
                *(last[each] for each in ("decidedAt", "sentAt", "appliedAt")),
            ] == times


@pytest.mark.requirement("edge.events.scope")
async def test_a_filter_returns_exactly_the_events_that_name_what_it_asks_for(tmp_path: Path):
    async with FakeModel(calls(("run", {"command": "echo hi"})), text("done")) as model:
        configuration = _with_openai(tmp_path, model.url)
        async with running_edge(tmp_path, configuration=configuration) as edge:
            await _make_some_of_everything(edge)
            every = await _events(edge)
            for view in ("runtime", "conversation"):
                events = await _events(edge, view=view)
                assert [each["seq"] for each in events] == [each["seq"] for each in every]
                await _check_filters(edge, events, view)
            _check_threads_have_places(every)
    async with running_edge(tmp_path, configuration=configuration) as edge:
        # The same again from an Edge that has to find the places of threads anew.
        assert (await _events(edge))[: len(every)] == every
        (tmp_path / "data" / "edge-records.db").unlink(missing_ok=True)
    (tmp_path / "data" / "edge-records.db").unlink(missing_ok=True)
    async with running_edge(tmp_path, configuration=configuration) as edge:
        assert (await _events(edge))[: len(every)] == every


@pytest.mark.requirement("edge.events.rows")
async def test_a_title_that_an_agent_gives_its_thread_comes_with_the_whole_row(tmp_path: Path):
    codex = AgentSettings(
        kind="codex", options={"command": program("codex_program.py", tmp_path), "args": ()}
    )
    configuration = configuration_in(tmp_path, agents={"codex": codex}, agent="codex")
    async with running_edge(tmp_path, configuration=configuration) as edge:
        project = await edge.post("/v1/projects", {"name": "p"}, status=201)
        body = {"projectId": project["projectId"], "title": "Untitled"}
        thread = await edge.post("/v1/threads", body, status=201)
        run = await edge.start("it names", "codex", threadId=thread["threadId"])
        assert (await edge.run_until(run["runId"]))["status"] == "finished"
        (event,) = await _events(edge, types="thread.updated")
        (fact,) = (await edge.get("/v1/facts", classes="thread.updated"))["items"]
        row = await edge.get(f"/v1/threads/{thread['threadId']}")
        assert event["payload"] == {
            "threadId": thread["threadId"],
            "projectId": project["projectId"],
            "title": "Three files",
            "status": "active",
            "agentId": "codex",
            "createdAt": thread["createdAt"],
            "updatedAt": fact["fact"]["createdAt"],
        }
        assert row["title"] == "Three files"


@pytest.mark.requirement("edge.events.cost")
@pytest.mark.parametrize("field", ["runId", "projectId"])
async def test_a_filtered_read_takes_from_the_journal_what_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
):
    async with running_edge(tmp_path) as edge:
        project = await edge.post("/v1/projects", {"name": "p"}, status=201)
        thread = await edge.post("/v1/threads", {"projectId": project["projectId"]}, status=201)
        run = await edge.start("help", threadId=thread["threadId"])
        await edge.run_until(run["runId"])
        for number in range(5):
            other = await edge.start("help")
            await edge.run_until(other["runId"])
            facts = [
                {"type": "run.status", "id": f"{number}.{index}", "threadId": f"t{number}"}
                | {"payload": {"status": "running"}, "runtimeId": "elsewhere"}
                for index in range(500)
            ]
            await edge.post("/v1/facts", {"facts": facts})
        journal, taken = edge.machine.journal, list[int]()
        read = journal.read

        async def count(*args: Any, **named: Any) -> AsyncIterator[FactBatch]:
            async for batch in read(*args, **named):
                taken.extend(batch.seqs)
                yield batch

        value = {"runId": run["runId"], "projectId": project["projectId"]}[field]
        monkeypatch.setattr(journal, "read", count)
        returned = [each["seq"] for each in await _events(edge, **{field: value})]
        assert taken == returned
        taken.clear()
        url = f"{edge.socket_url}/v1/facts?{field}={value}"
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with connect(url, additional_headers=headers) as stream, asyncio.timeout(60):
            sent = [json.loads(await stream.recv())["seq"] for _ in returned]
        assert (sent, taken) == (returned, returned)


async def _make_some_of_everything(edge: RunningEdge) -> None:
    """Two projects, runs that end in every way, one in the queue, a pack, a thread that is gone."""
    for name in ("a", "b"):
        project = await edge.post("/v1/projects", {"name": name}, status=201)
        thread = await edge.post(
            "/v1/threads", {"projectId": project["projectId"], "title": name}, status=201
        )
        place = {"threadId": thread["threadId"]}
        for prompt, agent in (
            ("approve", "demo"),
            ("team", "demo"),
            ("fail", "demo"),
            ("x", "openai"),
        ):
            await edge.allow_all((await edge.start(prompt, agent, **place))["runId"])
        working = await edge.start(_SLEEP, "shell", **place)
        queued = await edge.start("echo later", "shell", **place)
        removed = await edge.start("echo never", "shell", **place)
        await edge.http.delete(f"/v1/threads/{thread['threadId']}/queue/{removed['runId']}")
        await edge.post(f"/v1/runs/{working['runId']}:cancel", status=202)
        await edge.run_until(working["runId"])
        await edge.post(f"/v1/threads/{thread['threadId']}/queue/{queued['runId']}:continue")
        await edge.allow_all(queued["runId"])
        await edge.post("/v1/evidence", {"threadId": thread["threadId"]}, status=201)
        gone = await edge.post("/v1/threads", {"projectId": project["projectId"]}, status=201)
        await edge.allow_all((await edge.start("help", threadId=gone["threadId"]))["runId"])
        await edge.http.delete(f"/v1/threads/{gone['threadId']}")


_FILTERS = {"projectId": "projectId", "threadId": "threadId", "runId": "runId"}


async def _check_filters(edge: RunningEdge, events: list[dict[str, Any]], view: str) -> None:
    for name, field in _FILTERS.items():
        values = {each["scope"][field] for each in events if field in each["scope"]}
        assert values
        for value in values:
            expected = [each for each in events if each["scope"].get(field) == value]
            assert await _events(edge, view=view, **{name: value}) == expected
            facts = await edge.get("/v1/facts", limit=500, **{name: value})
            assert [each["seq"] for each in facts["items"]] == [each["seq"] for each in expected][
                :500
            ]


def _check_threads_have_places(events: list[dict[str, Any]]) -> None:
    """Every event of a thread in a project names the project, and of a run's approvals the run."""
    projects = {
        each["scope"]["threadId"]: each["scope"]["projectId"]
        for each in events
        if each["type"] == "thread.created"
    }
    of_threads = [each for each in events if each["scope"].get("threadId") in projects]
    assert {each["type"] for each in of_threads} >= {
        "run.agent.permission_decided",
        "evidence.exported",
        "run.status.changed",
        "thread.deleted",
    }
    for each in of_threads:
        assert each["scope"]["projectId"] == projects[each["scope"]["threadId"]], each
        if each["type"].startswith("run."):
            assert "runId" in each["scope"], each


@pytest.mark.requirement("edge.events.loop")
@pytest.mark.parametrize("way", ["finished", "failed", "cancelled", "removed", "steered"])
async def test_who_follows_a_run_sees_its_end_however_it_ends(tmp_path: Path, way: str):
    async with running_edge(tmp_path) as edge:
        first = await edge.start("approve")
        thread = first["threadId"]
        await edge.run_until(first["runId"], "waiting")
        run = await edge.start("fail" if way == "failed" else "help", threadId=thread)
        following = asyncio.create_task(_follow_to_end(edge, run["runId"]))
        queued = f"/v1/threads/{thread}/queue/{run['runId']}"
        if way == "removed":
            await edge.http.delete(queued)
        elif way == "cancelled":
            await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        elif way == "steered":
            await edge.post(f"{queued}:steer")
        await edge.allow_all(first["runId"])
        ended = await edge.allow_all(run["runId"])
        assert ended["status"] == (way if way in ("finished", "failed") else "cancelled")
        assert await asyncio.wait_for(following, 60) == f"run.{ended['status']}"


async def _follow_to_end(edge: RunningEdge, run_id: str) -> str:
    """The loop of the documentation: follow the events of a run until it has ended."""
    async with edge.http.stream(
        "GET", f"/v1/events?runId={run_id}", headers={"accept": "text/event-stream"}
    ) as answer:
        return await _read_end(answer)


async def _read_end(answer: httpx.Response) -> str:
    async for line in answer.aiter_lines():
        name = line.removeprefix("event: ")
        if line.startswith("event: ") and name in ("run.finished", "run.failed", "run.cancelled"):
            return name
    raise AssertionError("the stream ended before the run did")


_CHILD = """
import signal, sys, time

def tidy_up(*_):
    time.sleep(0.5)
    open("tidied", "w").write("yes")
    sys.exit(0)

signal.signal(signal.SIGTERM, tidy_up)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.requirement("runtime.process.stop.sandbox")
@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("off", "python3 child.py & wait"),
        ("require", "python3 child.py & wait"),
        ("require", "python3 child.py; echo next >> after"),
        ("require", "setsid python3 child.py & wait"),
    ],
)
async def test_a_cancel_gives_the_children_of_a_command_time_to_tidy_up(
    tmp_path: Path, mode: SandboxMode, line: str
):
    configuration = configuration_in(tmp_path, sandbox=SandboxSettings(mode=mode))
    workspace = tmp_path / "workspace"
    (workspace / "child.py").write_text(_CHILD)
    async with running_edge(tmp_path, configuration=configuration) as edge:
        run = await _start_working(edge, line)
        await _wait_for_event(edge, run["runId"], "run.output")
        await edge.post(f"/v1/runs/{run['runId']}:cancel", status=202)
        assert (await edge.run_until(run["runId"]))["status"] == "cancelled"
        applied = await _events(edge, runId=run["runId"], types="sandbox.applied")
        assert bool(applied) is (mode == "require")
    assert (workspace / "tidied").read_text() == "yes"
    assert not (workspace / "after").exists()
