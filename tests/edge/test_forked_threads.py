"""Forks by REST: the calls and artifacts of the parent come along, as the parent's."""

import base64
from pathlib import Path
from typing import Any

import pytest

from factwire.edge.limits import FORKED_TEXT_CHARACTERS
from tests.edge.edges import running_edge
from tests.workbench.seeding import fact

pytestmark = pytest.mark.asyncio

PARENT = "parent"
TURN = {"turnId": "turn"}


def parent_facts(output: str, content: str) -> list[dict[str, Any]]:
    """Two calls and two artifacts, each behind a text of its own."""
    rows: list[tuple[str, dict[str, Any], dict[str, str]]] = [
        ("thread.started", {"title": "Parent"}, {}),
        ("turn.started", {}, TURN),
        ("model.completed", {"text": "First."}, {**TURN, "messageId": "m1"}),
        ("tool.started", {"toolName": "build"}, {**TURN, "toolCallId": "c1", "messageId": "m1"}),
        ("tool.result", {"outputRef": output}, {**TURN, "toolCallId": "c1", "messageId": "m1"}),
        (
            "artifact.created",
            {"kind": "report", "title": "One", "contentRef": content, "versionId": "v1"},
            {**TURN, "artifactId": "a1", "messageId": "m1"},
        ),
        ("model.completed", {"text": "Second."}, {**TURN, "messageId": "m2"}),
        ("tool.started", {"toolName": "deploy"}, {**TURN, "toolCallId": "c2", "messageId": "m2"}),
        ("artifact.created", {"kind": "code"}, {**TURN, "artifactId": "a2", "messageId": "m2"}),
    ]
    return [
        fact(PARENT, number, name, payload, **ids)
        for number, (name, payload, ids) in enumerate(rows, 1)
    ]


@pytest.mark.requirement("edge.rest.fork-work")
async def test_a_fork_shows_the_calls_and_artifacts_up_to_its_place_as_the_parents(tmp_path: Path):
    async with running_edge(tmp_path) as edge:

        async def store(text: str) -> str:
            body = {"content": base64.b64encode(text.encode()).decode()}
            return (await edge.post("/v1/blobs", body, status=201))["ref"]

        output, content = await store("built"), await store("the report")
        await edge.post("/v1/facts", {"facts": parent_facts(output, content)})
        fork = await edge.post(f"/v1/threads/{PARENT}:fork", {"fromItemId": "m1"}, status=201)
        thread = fork["threadId"]
        state = (await edge.get(f"/v1/threads/{thread}/projection"))["state"]
        model = (await edge.get(f"/v1/threads/{thread}/read-model"))["readModel"]
        listed = (await edge.get("/v1/artifacts", threadId=thread))["items"]
        address = f"/v1/artifacts/{listed[0]['artifactId']}"
        found = (await edge.http.get(f"{address}/content")).content
        version = (await edge.http.get(f"{address}/content", params={"versionId": "v1"})).content
        built = (await edge.http.get(f"/v1/blobs/{output}")).content

        whole = await edge.post(f"/v1/threads/{PARENT}:fork", {}, status=201)
        everything = (await edge.get(f"/v1/threads/{whole['threadId']}/projection"))["state"]
        again = await edge.post(f"/v1/threads/{whole['threadId']}:fork", {}, status=201)
        copied = (await edge.get(f"/v1/threads/{again['threadId']}/projection"))["state"]

    [call] = state["tools"].values()
    assert (call["toolCallId"], call["state"]) == ("c1", "output-available")
    assert (call["outputRef"], call["originThreadId"]) == (output, PARENT)
    [artifact] = state["artifacts"].values()
    assert (artifact["artifactId"], artifact["originThreadId"]) == ("a1", PARENT)
    assert (artifact["contentRef"], [each["versionId"] for each in artifact["versions"]]) == (
        content,
        ["v1"],
    )
    [message] = state["messages"]
    assert [part["type"] for part in message["parts"]] == ["text", "tool-preview", "artifact-card"]
    assert (message["status"], message["originThreadId"]) == ("final", PARENT)
    assert [row["toolCallId"] for row in model["toolCalls"]] == ["c1"]
    assert [row["artifactId"] for row in model["artifacts"]] == ["a1"]
    assert (found, version, built) == (b"the report", b"the report", b"built")
    assert state["runtime"]["status"] == "idle"

    assert list(everything["tools"]) == ["c1", "c2"]
    assert list(everything["artifacts"]) == ["a1", "a2"]
    assert [each["messageId"] for each in everything["messages"]] == ["m1", "m2"]
    stopped = everything["tools"]["c2"]
    assert (stopped["state"], stopped["unclosed"]) == ("stale", True)
    assert everything["messages"][1]["parts"][1]["status"] == "stale"
    for surface in ("tools", "artifacts", "messages"):
        shown = str(copied[surface]).replace(again["threadId"], whole["threadId"])
        assert shown == str(everything[surface]), surface


@pytest.mark.requirement("edge.rest.fork-work")
async def test_a_message_that_is_too_long_for_a_fork_is_not_shown_as_whole(tmp_path: Path):
    text = "x" * (FORKED_TEXT_CHARACTERS + 1)
    facts = [
        fact(PARENT, 1, "thread.started", {"title": "Parent"}),
        fact(PARENT, 2, "turn.started", {}, **TURN),
        fact(PARENT, 3, "model.completed", {"text": text}, **TURN, messageId="m1"),
    ]
    async with running_edge(tmp_path) as edge:
        await edge.post("/v1/facts", {"facts": facts})
        fork = await edge.post(f"/v1/threads/{PARENT}:fork", {}, status=201)
        state = (await edge.get(f"/v1/threads/{fork['threadId']}/projection"))["state"]
    [message] = state["messages"]
    [part] = message["parts"]
    assert (message["status"], part["state"], part["text"]) == ("stale", "stale", text[:-1])
