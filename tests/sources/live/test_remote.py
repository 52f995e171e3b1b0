"""Remote agents over HTTP: heard, answered, stopped, refused; with nothing secret in any fact."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.vercel_ai import VercelAIAdapter

from factwire.facts import Fact, encode_fact, inspect_stream, is_valid
from factwire.runtime import Runtime
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.sources import Unreadable
from factwire.sources.a2a import live as a2a
from factwire.sources.ag_ui import live as ag_ui
from factwire.sources.ai_sdk import live as ai_sdk
from factwire.sources.kit.limits import LINE_BYTES, REFUSAL_CHARACTERS
from factwire.sources.kit.live_agent import LiveAgent
from factwire.sources.kit.stream_framing import EventReader
from tests.runtime.agents import WAIT, decide_shown, facts_of, open_action, wait_for_end
from tests.sources.live.played import runtime_with
from tests.sources.live.remote_servers import Answer, Heard, Refusal, Script, events, serve_script

pytestmark = pytest.mark.asyncio

MAKE = {"a2a": a2a.agent, "ag-ui": ag_ui.agent, "ai-sdk": ai_sdk.agent}
TOKEN = "made-up-token-0123456789"

FINISH: dict[str, Any] = {"type": "finish", "finishReason": "stop"}
CALL: dict[str, Any] = {
    "type": "tool-input-available",
    "toolCallId": "c",
    "toolName": "deploy",
    "input": {"to": "prod"},
}


def chunks(text: str, *more: dict[str, Any]) -> list[dict[str, Any]]:
    payloads = {"type": "text-delta", "id": "t", "delta": text}
    return [{"type": "start", "messageId": "m"}, {"type": "text-start", "id": "t"}, payloads, *more]


def run(*inside: dict[str, Any], **outcome: Any) -> list[dict[str, Any]]:
    ids = {"threadId": "thread", "runId": "r"}
    end = {"type": "RUN_FINISHED", **ids, "outcome": outcome or {"type": "success"}}
    return [{"type": "RUN_STARTED", **ids}, *inside, end]


def task(state: str, text: str | None = None) -> dict[str, Any]:
    message = {"message": {"messageId": f"m-{state}", "parts": [{"text": text}]}} if text else {}
    status = {"state": f"TASK_STATE_{state}", **message}
    update = {"taskId": "task-1", "contextId": "context-1", "status": status}
    return {"jsonrpc": "2.0", "id": 1, "result": {"statusUpdate": update}}


SAYS_HELLO: dict[str, list[dict[str, Any]]] = {
    "a2a": [task("WORKING"), task("COMPLETED", "Hello.")],
    "ag-ui": run({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Hello."}),
    "ai-sdk": chunks("Hello.", FINISH),
}


def settings(kind: str, url: str, **more: Any) -> AgentSettings:
    return AgentSettings(kind=kind, options={"url": url, **more})


async def facts_from(runtime: Runtime) -> list[Fact]:
    facts = await facts_of(runtime)
    assert is_valid(inspect_stream([encode_fact(fact) for fact in facts]))
    return facts


def spoken(facts: list[Fact]) -> str:
    return "".join(fact.payload["text"] for fact in facts if fact.event_class == "model.completed")


def script(*answers: Answer) -> Script:
    """One answer after the other."""
    rest = list(answers)

    def answer(_: Heard) -> Answer:
        return rest.pop(0)

    return answer


def agent(kind: str, url: str, **more: Any) -> LiveAgent:
    return MAKE[kind](settings(kind, url, **more))


@pytest.mark.requirement("sources.remote.turns")
@pytest.mark.parametrize("kind", MAKE)
async def test_a_remote_agent_is_heard_and_goes_on_with_the_conversation(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("REMOTE_TOKEN", TOKEN)
    headers = {"Authorization": "Bearer ${REMOTE_TOKEN}"}
    hello = SAYS_HELLO[kind]
    async with serve_script(script(events(*hello), events(*hello))) as server:
        remote = agent(kind, server.url, headers=headers)
        async with runtime_with(remote, tmp_path) as (runtime, _):
            for turn in ("one", "two"):
                await runtime.submit("thread", "agent", f"Do {turn}.", turn_id=turn)
                assert await wait_for_end(runtime, turn) == "completed"
            facts = await facts_from(runtime)

    assert spoken(facts) == "Hello.Hello."
    assert [heard.headers["authorization"] for heard in server.heard] == [f"Bearer {TOKEN}"] * 2
    assert TOKEN not in str(facts)
    second = str(server.heard[1].body)
    assert "Do two." in second
    assert ("context-1" if kind == "a2a" else "Hello.") in second


@pytest.mark.requirement("sources.remote.answers")
@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_an_interrupt_of_ag_ui_is_resumed_with_what_was_decided(
    decision: str, tmp_path: Path
):
    call = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "deploy"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"to":"prod"}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    interrupt = {"id": "i", "reason": "tool_approval", "message": "Deploy?", "toolCallId": "c"}
    result = {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": "ok"}
    payloads = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Done."}
    first = events(*run(*call, type="interrupt", interrupts=[interrupt]))
    approved = decision == "approve"
    async with (
        serve_script(script(first, events(*run(result, payloads)))) as server,
        runtime_with(agent("ag-ui", server.url), tmp_path) as (runtime, _),
    ):
        await runtime.submit("thread", "agent", "Deploy.", turn_id="turn")
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, decision, by="lena", reason="because")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts = await facts_from(runtime)

    body = server.heard[1].body
    payload = {"approved": approved, "reason": "because"}
    assert body["resume"] == [{"interruptId": "i", "status": "resolved", "payload": payload}]
    assert body["runId"] == "turn:run-2"
    [question] = [row["toolCalls"] for row in body["messages"] if "toolCalls" in row]
    assert question[0]["function"] == {"name": "deploy", "arguments": '{"to":"prod"}'}
    assert spoken(facts) == "Done."
    # What an agent says of a call that was denied is a result in this protocol, and none to us.
    ends = [
        fact.event_class for fact in facts if fact.event_class in ("tool.result", "tool.failed")
    ]
    assert ends == ["tool.result" if approved else "tool.failed"]
    closed = [fact.payload["decision"] for fact in facts if fact.event_class == "action.resolved"]
    assert closed[:1] == ["approved" if approved else "denied"]


@pytest.mark.requirement("sources.remote.answers")
@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_an_approval_of_the_ai_sdk_is_sent_back_in_its_message(decision: str, tmp_path: Path):
    ask = {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c"}
    approved = decision == "approve"
    end = (
        {"type": "tool-output-available", "toolCallId": "c", "output": "ok"}
        if approved
        else {"type": "tool-output-denied", "toolCallId": "c"}
    )
    first, second = chunks("Shall I?", CALL, ask, FINISH), [{"type": "start"}, end, FINISH]
    async with (
        serve_script(script(events(*first), events(*second))) as server,
        runtime_with(agent("ai-sdk", server.url), tmp_path) as (runtime, _),
    ):
        await runtime.submit("thread", "agent", "Deploy.", turn_id="turn")
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, decision, by="lena")
        assert await wait_for_end(runtime, "turn") == "completed"
        await facts_from(runtime)
        state = await runtime.state("thread")

    [question, answer] = server.heard[1].body["messages"]
    assert question["parts"] == [{"type": "text", "text": "Deploy."}]
    assert answer["parts"][1] == {
        "type": "tool-deploy",
        "toolCallId": "c",
        "state": "approval-responded",
        "input": {"to": "prod"},
        "approval": {"id": "p", "approved": approved},
    }
    [tool] = state.tools.values()
    assert tool.state == ("output-available" if approved else "output-error")


@pytest.mark.requirement("sources.remote.answers")
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_task_of_a2a_goes_on_with_an_answer_and_is_cancelled_without(
    allowed: bool, tmp_path: Path
):
    first = events(task("WORKING"), task("INPUT_REQUIRED", "Which one?"))
    canceled = {
        "id": "task-1",
        "contextId": "context-1",
        "status": {"state": "TASK_STATE_CANCELED"},
    }
    cancel = events({"jsonrpc": "2.0", "id": 2, "result": canceled})
    goes_on = events(task("WORKING"), task("COMPLETED", "This one."))
    async with (
        serve_script(script(first, goes_on if allowed else cancel)) as server,
        runtime_with(agent("a2a", server.url), tmp_path) as (runtime, _),
    ):
        await runtime.submit("thread", "agent", "Pick.", turn_id="turn")
        action = await open_action(runtime)
        word = "answer" if allowed else "deny"
        await decide_shown(runtime, "thread", action, word, by="lena", response="The left one")
        assert await wait_for_end(runtime, "turn") == ("completed" if allowed else "canceled")
        await facts_from(runtime)

    second = server.heard[1].body
    assert server.heard[1].headers["a2a-version"] == "1.0"
    if allowed:
        message = second["params"]["message"]
        assert (second["method"], message["taskId"]) == ("SendStreamingMessage", "task-1")
        assert message["parts"] == [{"text": "The left one"}]
    else:
        assert (second["method"], second["params"]) == ("CancelTask", {"id": "task-1"})


def pydantic_ai_endpoint() -> Script:
    """A real endpoint: an agent of pydantic-ai whose tool has to be approved."""
    deployer = pydantic_ai.Agent(
        TestModel(custom_output_text="It is deployed."),
        output_type=[str, pydantic_ai.DeferredToolRequests],
    )

    @deployer.tool_plain(requires_approval=True)
    def deploy(to: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return f"deployed to {to}"

    async def answer(heard: Heard) -> AsyncIterator[bytes]:
        arguments = VercelAIAdapter.build_run_input(json.dumps(heard.body).encode())
        adapter = VercelAIAdapter(agent=deployer, run_input=arguments, sdk_version=7)
        async for event in adapter.encode_stream(adapter.run_stream()):
            yield event.encode()

    return answer


@pytest.mark.requirement("sources.remote.answers")
@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_real_endpoint_of_pydantic_ai_is_approved_and_denied(decision: str, tmp_path: Path):
    async with (
        serve_script(pydantic_ai_endpoint()) as server,
        runtime_with(agent("ai-sdk", server.url), tmp_path) as (runtime, _),
    ):
        await runtime.submit("thread", "agent", "Deploy.", turn_id="turn")
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, decision, by="lena", reason="because")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts = await facts_from(runtime)
        [tool] = (await runtime.state("thread")).tools.values()
    assert spoken(facts) == "It is deployed."
    assert tool.tool_name == "deploy"
    assert tool.state == ("output-available" if decision == "approve" else "output-error")


@pytest.mark.requirement("sources.remote.cancel")
@pytest.mark.parametrize("kind", MAKE)
async def test_a_turn_that_is_cancelled_hangs_up_and_leaves_nothing_open(kind: str, tmp_path: Path):
    never = asyncio.Event()
    begun = SAYS_HELLO[kind][:-1]
    refused = Refusal(500, "no")
    async with (
        serve_script(script(events(*begun, never), refused)) as server,
        runtime_with(agent(kind, server.url), tmp_path) as (runtime, _),
    ):
        await runtime.submit("thread", "agent", "Go.", turn_id="turn")
        async with asyncio.timeout(WAIT):
            await server.request_seen.wait()
        await runtime.cancel("thread", "turn")
        assert await wait_for_end(runtime, "turn") == "canceled"
        await facts_from(runtime)
        async with asyncio.timeout(WAIT):
            await server.hung_up.wait()


@pytest.mark.fault
@pytest.mark.requirement("sources.remote.failures")
@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize(
    ("answer", "category"),
    [
        (Refusal(401, f"no such token {TOKEN}"), "unauthorized"),
        (Refusal(429, "slow down"), "rate_limited"),
        (Refusal(302, "elsewhere"), "provider_error"),
        (Refusal(200, f"<html>Sign in with {TOKEN}</html>"), "invalid_response"),
        (Refusal(500, "x" * 1_000_000), "provider_error"),
        (None, "stream_interrupted"),
    ],
)
async def test_a_refusal_or_a_cut_fails_the_turn_and_says_why(
    kind: str,
    answer: Refusal | None,
    category: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("REMOTE_TOKEN", TOKEN)
    cut: AsyncIterator[bytes] = events(*SAYS_HELLO[kind][:-1])
    async with serve_script(script(answer or cut)) as server:
        remote = agent(kind, server.url, headers={"X-Key": "${REMOTE_TOKEN}"})
        async with runtime_with(remote, tmp_path) as (runtime, _):
            await runtime.submit("thread", "agent", "Go.", turn_id="turn")
            assert await wait_for_end(runtime, "turn") == "failed"
            facts = await facts_from(runtime)
    [end] = [fact for fact in facts if fact.event_class == "turn.failed"]
    assert end.payload["failureCategory"] == category
    assert len(end.payload["message"]) < 2 * REFUSAL_CHARACTERS
    assert TOKEN not in str(facts)


@pytest.mark.requirement("sources.remote.settings")
async def test_a_secret_that_is_not_set_fails_the_turn_before_anything_is_sent(tmp_path: Path):
    async with serve_script(script()) as server:
        remote = agent("ag-ui", server.url, headers={"X-Key": "${NOT_SET_ANYWHERE}"})
        async with runtime_with(remote, tmp_path) as (runtime, _):
            await runtime.submit("thread", "agent", "Go.", turn_id="turn")
            assert await wait_for_end(runtime, "turn") == "failed"
    assert server.heard == []


@pytest.mark.requirement("sources.remote.settings")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "needs the option url"),
        ({"url": "ftp://example.org"}, "needs the option url"),
        ({"url": "https://me:secret@example.org"}, "a URL cannot contain a password"),
        ({"url": "https://example.org", "headers": {"authorization": "Bearer x"}}, "is a secret"),
        (
            {"url": "https://example.org", "odd": 1},
            "unknown field `odd`; available options: url, headers",
        ),
    ],
)
async def test_settings_that_cannot_be_right_are_refused(options: dict[str, Any], problem: str):
    for kind, make in MAKE.items():
        with pytest.raises(InvalidAgent, match=problem):
            make(AgentSettings(kind=kind, options=options))


@pytest.mark.requirement("sources.remote.events")
async def test_events_are_read_however_they_are_cut():
    stream = (
        b': hello\n\ndata: {"a": "\xe2\x80\xa8"}\r\n\r\nevent: x\ndata: {"b":\ndata: 2}\n\n'
        b"data: [DONE]\n\ndata: {broken\n\ndata: 3"
    )
    for size in (1, 2, 7, len(stream)):
        reader = EventReader()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        items = [item for piece in pieces for item in reader.feed(piece)] + reader.finish()
        assert items[:2] == [{"a": "\u2028"}, {"b": 2}]
        assert [type(item) for item in items[2:]] == [Unreadable, Unreadable]


@pytest.mark.requirement("sources.remote.events")
async def test_an_event_without_end_is_refused_and_not_kept():
    reader = EventReader()
    piece = b"x" * (1024 * 1024)
    items = [item for _ in range(LINE_BYTES // len(piece) + 1) for item in reader.feed(piece)]
    [refused] = items
    assert isinstance(refused, Unreadable)
    assert len(refused.data) <= 1024
