"""Every event type as a stream sends it, emitted by an agent at work or by a request."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from factwire.edge.events import EVENT_TYPES
from factwire.facts import KNOWN_CLASSES
from factwire.facts.vocabulary import UNKNOWN
from factwire.journal import JournalUnwritable
from factwire.runtime.configuration import (
    AgentSettings,
    Configuration,
    PolicySettings,
    SandboxSettings,
)
from factwire.runtime.recording import Recorder
from tests.edge.edges import TOKEN, WAIT_SECONDS, RunningEdge, configuration_in, running_edge
from tests.edge.event_spec import SPECIFIED
from tests.edge.live_types import (
    EMITTERS,
    Shown,
    assert_shows,
    read_events,
    read_shown,
    types_of,
)
from tests.edge.streaming import until
from tests.runtime.fake_model import FakeModel, calls, refusal, text
from tests.runtime.mcp_turns import library

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("edge.events.live")]


def allow_commands(folder: Path) -> Configuration:
    """A configuration whose shell runs commands without asking."""
    shell = PolicySettings(allow=("Bash",))
    return configuration_in(folder, policy=shell, sandbox=SandboxSettings(mode="off"))


def payloads(shown: Shown, name: str) -> list[dict[str, Any]]:
    return [envelope["payload"] for envelope in shown[name]]


async def test_each_listed_type_has_a_scene_that_shows_it():
    shown = [name for scene in EMITTERS for name in types_of(scene)]
    assert sorted(shown) == sorted(set(EVENT_TYPES) - {UNKNOWN})
    assert set(SPECIFIED) <= set(shown)


async def test_resources_are_reported_as_whole_rows_and_the_runner_leaves_last(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        rows = await _touch_resources(edge)
    async with running_edge(tmp_path) as edge:
        shown = await read_shown(edge)
        assert_shows(shown, types_of("resources"))
        for name in ("project", "thread"):
            [created, updated] = [shown[f"{name}.{change}"][0] for change in ("created", "updated")]
            assert set(created["payload"]) <= set(updated["payload"])
            assert created["payload"]["createdAt"] == updated["payload"]["createdAt"]
            assert created["payload"]["createdAt"] == created["payload"]["updatedAt"]
            assert updated["payload"]["updatedAt"] == updated["sentAt"]
        assert payloads(shown, "thread.updated")[0]["title"] == "Renamed"
        assert payloads(shown, "project.updated")[0] == {
            **payloads(shown, "project.created")[0],
            "name": "Better",
            "updatedAt": rows["project"]["updatedAt"],
        }
        left = shown["runner.offline"][0]["seq"]
        [back] = {envelope["seq"] for envelope in shown["runner.online"][1::2]} - {1}
        assert back == left + 1


async def test_a_run_that_outlives_its_edge_keeps_its_times(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = (await edge.start("approve"))["runId"]
        await edge.wait_for_approval(run)
    async with running_edge(tmp_path) as edge:
        await edge.post(f"/v1/runs/{run}:cancel", status=202)
        row = await edge.run_until(run)
        shown = await read_shown(edge)
    times = {name: row[name] for name in ("createdAt", "startedAt", "finishedAt")}
    [cancelled] = payloads(shown, "run.cancelled")
    assert {name: cancelled[name] for name in times} == times
    changes = [(each["from"], each["to"]) for each in payloads(shown, "run.status.changed")]
    # The runtime view has types of their own for all changes but `cancelling`.
    assert changes == [
        ("waiting", "cancelling"),
        ("queued", "running"),
        ("running", "waiting"),
        ("waiting", "cancelling"),
        ("cancelling", "cancelled"),
    ]


async def _touch_resources(edge: RunningEdge) -> dict[str, Any]:
    """One of everything that is made and changed over REST, while a run is under way."""
    folder = str(edge.machine.runtime.workspace)
    project = await edge.post("/v1/projects", {"name": "Site", "workDir": folder}, status=201)
    at = f"/v1/projects/{project['projectId']}"
    project = (await edge.http.patch(at, json={"name": "Better"})).json()
    talk = await edge.post("/v1/conversations", {"title": "Talk"}, status=201)
    member = {"memberId": "ann", "memberType": "user"}
    await edge.post(f"/v1/conversations/{talk['conversationId']}/members", member, status=201)
    new = {"title": "Work", "projectId": project["projectId"]}
    thread = await edge.post("/v1/threads", new, status=201)
    at = f"/v1/threads/{thread['threadId']}"
    run = await edge.start("files", threadId=thread["threadId"])
    await edge.allow_all(run["runId"])
    await edge.http.patch(at, json={"title": "Renamed"})
    items = (await edge.get(f"{at}/items"))["items"]
    fork = await edge.post(f"{at}:fork", {"fromItemId": items[0]["itemId"]}, status=201)
    await edge.http.delete(f"/v1/threads/{fork['threadId']}")
    preview = await edge.post("/v1/previews", {"runId": run["runId"]}, status=201)
    await edge.post(f"/v1/previews/{preview['previewId']}:stop")
    spare = await edge.post("/v1/projects", {"name": "Spare"}, status=201)
    await edge.http.delete(f"/v1/projects/{spare['projectId']}")
    await edge.wait_for_approval((await edge.start("approve"))["runId"])
    return {"project": project, "thread": thread}


async def test_a_tour_of_the_demo_agent_shows_what_agents_do(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        project = await edge.post("/v1/projects", {"name": "Site"}, status=201)
        run = await edge.start("show me", projectId=project["projectId"])
        await edge.allow_all(run["runId"])
        row = await edge.get(f"/v1/runs/{run['runId']}")
        shown = await read_shown(edge)
    assert_shows(shown, types_of("demo tour"))
    times = {name: row[name] for name in ("createdAt", "startedAt", "finishedAt")}
    [finished] = payloads(shown, "run.finished")
    assert {name: finished[name] for name in times} == times
    [started] = payloads(shown, "run.started")
    assert {**times, **started} == {**started, "finishedAt": times["finishedAt"]}
    _check_states(shown)
    requests = payloads(shown, "run.agent.permission_requested")
    decided = payloads(shown, "run.agent.permission_decided")
    assert {each["toolName"] for each in requests} == {each["toolName"] for each in decided}
    inputs = {
        each["callId"]: each["input"]
        for each in payloads(shown, "run.agent.tool_call")
        if "input" in each
    }
    assert [each["input"] for each in requests] == [inputs[each["callId"]] for each in requests]
    _check_team(shown)
    _check_messages(shown)


@pytest.mark.requirement("edge.rest.items")
async def test_the_events_of_a_conversation_come_to_the_items_that_are_listed(tmp_path: Path):
    """With calls that had a result, were denied and were stopped, a steer, and a recorder."""
    async with running_edge(tmp_path, configuration=allow_commands(tmp_path)) as edge:
        threads = [(await edge.start("show me"))["threadId"]]
        await edge.allow_all((await edge.get("/v1/runs"))["items"][0]["runId"])
        denied = await edge.start("approve")
        await edge.decide(await edge.wait_for_approval(denied["runId"]), "deny")
        await edge.allow_all(denied["runId"])
        steered = await edge.start("approve")
        request = await edge.wait_for_approval(steered["runId"])
        message = {"text": "that is enough", "mode": "steer"}
        await edge.post(f"/v1/threads/{steered['threadId']}/messages", message, status=202)
        await edge.decide(request, "allow")
        await edge.allow_all(steered["runId"])
        stopped = await edge.start("approve")
        await edge.wait_for_approval(stopped["runId"])
        await edge.post(f"/v1/runs/{stopped['runId']}:cancel", status=202)
        failed = await edge.start("exit 3", "shell")
        for run in (denied, steered, stopped, failed):
            await edge.run_until(run["runId"])
            threads.append(run["threadId"])
        recorder = Recorder(edge.url, token=TOKEN, thread_id="mine")
        async with recorder, recorder.turn("Look") as turn:
            turn.text("I will ")
            turn.text("look.")
            async with turn.tool("look", {"at": "it"}) as call:
                call.progress("half of it", 1, 2)
                call.result(summary="seen")
        head = (await edge.machine.journal.head()).seq
        events = await read_events(edge.http, "conversation", head)
        for thread_id in (*threads, "mine"):
            listed = (await edge.get(f"/v1/threads/{thread_id}/items", limit=500))["items"]
            own = [each for each in events if each["scope"].get("threadId") == thread_id]
            assert _without_times(_gather_items(own)) == _without_times(
                {item["itemId"]: item for item in listed}
            )


def _gather_items(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The items that a reader has who does what the page about events says."""
    items: dict[str, dict[str, Any]] = {}
    for event in events:
        payload = event["payload"]
        if event["type"] in ("item.created", "message.created", "item.updated"):
            item = items.setdefault(payload["itemId"], {})
            content = {**item.get("content", {}), **payload.get("content", {})}
            item.update({**payload, "content": content})
        elif event["type"] == "message.delta":
            items[payload["itemId"]]["content"]["text"] += payload["delta"]
    return items


def _without_times(items: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Without times, too, what a call reported before its end, and refs that `outputRef` names."""
    kept = {key: {**item, "content": {**item["content"]}} for key, item in items.items()}
    for item in kept.values():
        for name in ("createdAt", "updatedAt"):
            item.pop(name, None)
        for name in ("message", "refs"):
            item["content"].pop(name, None)
    return kept


def _check_states(shown: Shown) -> None:
    """Each change begins where the one before it ended, and waits for a person in between."""
    changes = [(each["from"], each["to"]) for each in payloads(shown, "run.status.changed")]
    assert [before for before, _ in changes] == ["queued", *[to for _, to in changes[:-1]]]
    assert changes[-1] == ("running", "finished")
    waits = changes.count(("running", "waiting"))
    assert waits == len(payloads(shown, "approval.requested")) > 0
    states = [envelope["payload"]["state"] for envelope in shown["run.agent.session_state_changed"]]
    assert states[: 2 * waits + 2] == ["running", *["requires_action", "running"] * waits, "idle"]


def _check_team(shown: Shown) -> None:
    """Each task starts once and ends once; the team is done when both are."""
    for name in ("run.agent.task_started", "run.agent.task_notification"):
        tasks = [each["taskId"] for each in payloads(shown, name)][::2]
        assert len(tasks) == len(set(tasks)) == 3
    [team, _] = payloads(shown, "run.agent.sub_agents_complete")
    assert (team["childCount"], team["allComplete"]) == (2, True)


def _check_messages(shown: Shown) -> None:
    """Each message of the agent begins as an item, grows, and is created whole."""
    grown = {
        each["itemId"]: each["content"]["text"]
        for each in payloads(shown, "item.created")
        if each["type"] == "agent_message"
    }
    for each in payloads(shown, "message.delta"):
        grown[each["itemId"]] += each["delta"]
    whole = {
        each["itemId"]: each["content"]["text"]
        for each in payloads(shown, "message.created")
        if each["role"] == "assistant"
    }
    assert whole == grown


async def test_what_people_say_to_a_run_is_an_item_and_then_a_message(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        run = await edge.start("approve")
        approval = await edge.wait_for_approval(run["runId"])
        message = {"text": "enough", "mode": "steer"}
        await edge.post(f"/v1/threads/{run['threadId']}/messages", message, status=202)
        await edge.decide(approval, "allow")
        await edge.run_until(run["runId"])
        shown = await read_shown(edge)
    items = [
        (envelope["type"], envelope["payload"]["status"], envelope["scope"]["itemId"])
        for name in ("item.created", "message.created")
        for envelope in shown[name]
        if envelope["payload"].get("content", {}).get("text") == "enough"
    ]
    item = items[0][2]
    assert items == [("item.created", "pending", item), ("message.created", "completed", item)]


async def test_a_command_shows_its_output_alone_and_in_batches(tmp_path: Path):
    async with running_edge(tmp_path, configuration=allow_commands(tmp_path)) as edge:
        run = await edge.start("printf 'Grüße\\nzwei\\n'; exit 3", "shell")
        await edge.run_until(run["runId"])
        shown = await read_shown(edge)
    assert_shows(shown, types_of("shell"))
    whole = "".join(each.get("text", "") for each in payloads(shown, "run.output"))
    chunks = [chunk for each in payloads(shown, "run.output.batch") for chunk in each["chunks"]]
    assert whole == "".join(chunk["text"] for chunk in chunks) == "Grüße\nzwei\n"
    assert [(chunk["offset"], chunk["text"]) for chunk in chunks] == [(0, "Grüße\n"), (8, "zwei\n")]
    [failed] = payloads(shown, "run.failed")
    assert {"createdAt", "startedAt", "finishedAt", "threadId"} <= set(failed)


async def test_a_run_that_is_stopped_says_from_where_it_came(tmp_path: Path):
    async with running_edge(tmp_path, configuration=allow_commands(tmp_path)) as edge:
        project = await edge.post("/v1/projects", {"name": "Site"}, status=201)
        first = await edge.start("sleep 600", "shell", projectId=project["projectId"])
        await edge.run_until(first["runId"], "running")
        queued = await edge.start("echo never", "shell", threadId=first["threadId"])
        await edge.post(f"/v1/runs/{queued['runId']}:cancel", status=202)
        await edge.run_until(queued["runId"])
        await edge.post(f"/v1/runs/{first['runId']}:cancel", status=202)
        await edge.run_until(first["runId"])
        shown = await read_shown(edge)
    assert_shows(shown, types_of("stop"))
    changes = {
        (each["runId"], each["from"], each["to"]) for each in payloads(shown, "run.status.changed")
    }
    assert changes == {
        (queued["runId"], "queued", "cancelled"),
        (first["runId"], "queued", "running"),
        (first["runId"], "running", "cancelling"),
        (first["runId"], "cancelling", "cancelled"),
    }
    assert all("createdAt" in each for each in payloads(shown, "run.cancelled"))


async def test_a_run_whose_facts_are_refused_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_edge(tmp_path, configuration=allow_commands(tmp_path)) as edge:
        run = await edge.start("cat", "shell")
        await edge.run_until(run["runId"], "running")
        thread = await edge.machine.runtime.thread(run["threadId"])

        async def refuse(_: object) -> None:
            raise JournalUnwritable("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(edge.machine.journal, "append", refuse)
            cancelling = asyncio.create_task(edge.http.post(f"/v1/runs/{run['runId']}:cancel"))
            await until(lambda: thread.failure is not None)
            await cancelling
        async with asyncio.timeout(WAIT_SECONDS):
            seen = edge.machine.feed.cursor.seq
            while not (await edge.get("/v1/facts", classes="run.persistence_error"))["items"]:
                await edge.machine.feed.wait_for(seen + 1)
                seen = edge.machine.feed.cursor.seq
        shown = await read_shown(edge)
    assert_shows(shown, types_of("full disk"))


async def test_the_openai_agent_reports_its_session_its_context_and_what_is_refused(tmp_path: Path):
    full = {"prompt_tokens": 850, "completion_tokens": 50, "total_tokens": 900}
    replies = (
        text("Hello."),
        refusal(429, "slow down", retry_after_ms="1"),
        text("Nearly full.", usage=full),
        refusal(401, "no such key"),
    )
    async with FakeModel(*replies) as model:
        settings = AgentSettings(
            kind="openai", base_url=model.url, model="tiny", options={"context_window": 1_000}
        )
        conf = configuration_in(tmp_path, agents={"openai": settings}, agent="openai")
        async with running_edge(tmp_path, configuration=conf) as edge:
            for prompt in ("Hello", "More", "Again"):
                run = await edge.start(prompt, "openai")
                await edge.run_until(run["runId"])
            shown = await read_shown(edge)
    assert_shows(shown, types_of("openai"))
    [session, *_] = payloads(shown, "run.agent.session_init")
    assert (session["model"], session["tools"]) == (
        "tiny",
        ["patch", "read", "run", "search", "write"],
    )
    assert payloads(shown, "run.agent.context_usage")[0] == {
        "inputTokens": 11,
        "outputTokens": 7,
        "totalTokens": 18,
        "usagePercent": 1.8,
    }
    assert payloads(shown, "run.agent.context_warning")[0] == {
        "usagePercent": 90.0,
        "threshold": 80.0,
    }
    [retry, _] = payloads(shown, "run.agent.api_retry")
    assert (retry["attempt"], retry["maxRetries"], retry["error"]) == (1, 2, "HTTP 429")
    [signing, _] = payloads(shown, "run.agent.auth_status")
    assert signing["isAuthenticating"] is False
    results = payloads(shown, "run.agent.result")[:3]
    assert [result["success"] for result in results] == [True, True, False]
    assert (results[0]["turns"], results[0]["stopReason"]) == (1, "stop")
    assert results[0]["usage"] == {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}


async def test_a_call_that_reports_progress_says_how_many_seconds_it_has_run(tmp_path: Path):
    replies = (calls(("mcp__lib__steps", {"count": 2})), text("Done."))
    async with FakeModel(*replies) as model:
        settings = AgentSettings(kind="openai", base_url=model.url, model="tiny")
        conf = configuration_in(
            tmp_path,
            agents={"openai": settings},
            agent="openai",
            mcp={"lib": library()},
            policy=PolicySettings(allow=("mcp__lib__steps",)),
        )
        async with running_edge(tmp_path, configuration=conf) as edge:
            run = await edge.start("Step", "openai")
            await edge.run_until(run["runId"])
            shown = await read_shown(edge)
    steps = [each for each in payloads(shown, "run.agent.tool_call") if "progress" in each]
    assert [each["progress"] for each in steps] == [1.0, 2.0]
    assert [type(each["elapsed"]) for each in steps] == [float, float]


async def test_a_stream_that_cannot_go_on_ends_with_an_envelope_of_its_own(tmp_path: Path):
    async with running_edge(tmp_path) as edge:
        headers = {"authorization": f"Bearer {TOKEN}"}
        url = f"{edge.socket_url}/v1/events?cursor=evt_nowhere"
        async with (
            asyncio.timeout(WAIT_SECONDS),
            connect(url, additional_headers=headers) as stream,
        ):
            error = json.loads(await stream.recv())
            with pytest.raises(ConnectionClosed):
                await stream.recv()
        head = (await edge.machine.journal.head()).seq
        edge_id = edge.machine.edge_id
    assert_shows({"error": [error]}, types_of("bad cursor"))
    assert set(error) == {
        *("version", "id", "seq", "type", "scope", "traceId", "sentAt", "payload"),
    }
    assert (error["seq"], error["scope"]) == (head, {"edgeId": edge_id})
    assert error["id"].startswith("evt_")
    assert error["id"] not in KNOWN_CLASSES
