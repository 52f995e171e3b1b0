"""Turns of outside agents, from a program on a pipe to the journal, whatever the program does."""

from pathlib import Path
from typing import Any

import pytest

from factwire.facts import Fact, inspect_stream
from factwire.journal.blobs import BlobStore
from factwire.projection import ProjectionState
from factwire.projection.messages import TextPart
from factwire.runtime import Runtime
from factwire.sources.codex.exec_convert import CodexExec
from tests.runtime.agents import (
    classes,
    decide_shown,
    facts_of,
    open_action,
    open_tool,
    wait_for_end,
)
from tests.sources.live.played import WAIT, Player, runtime_with, script

pytestmark = pytest.mark.asyncio

STARTED = {"type": "thread.started", "thread_id": "t"}
SAID = {"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "Done."}}
ENDED = {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 4}}
UNKNOWN = {"type": "odd.thing", "api_key": "sk-proj-abcdefghijklmnopqrstuvwx0123456789"}


def command(status: str, **more: Any) -> dict[str, Any]:
    kind = "item.started" if status == "in_progress" else "item.completed"
    item = {"id": "c", "type": "command_execution", "command": "ls", "status": status, **more}
    return {"type": kind, "item": item}


RAN = (
    command("in_progress"),
    command("completed", aggregated_output="a\n", exit_code=0),
)
ASKED = {
    "type": "control_request",
    "request_id": "7",
    "request": {
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "tool_use_id": "call_1",
        "input": {"command": "make deploy"},
    },
}
RESULT: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "ok",
    "usage": {},
}


async def facts_from(runtime: Runtime) -> tuple[list[Fact], ProjectionState]:
    return await facts_of(runtime), await runtime.state("thread")


async def read(blobs: BlobStore, ref: str) -> bytes:
    return b"".join([piece async for piece in blobs.get(ref)])


@pytest.mark.requirement("sources.live.same-facts")
async def test_what_a_program_says_becomes_the_facts_of_its_turn(tmp_path: Path):
    player = Player("codex-exec", script(tmp_path, STARTED, *RAN, SAID, ENDED))
    async with runtime_with(player, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts, state = await facts_from(runtime)

    assert inspect_stream(facts) == []
    assert {fact.turn_id for fact in facts if fact.event_class != "thread.created"} <= {"turn"}
    assert classes(facts).count("turn.started") == classes(facts).count("turn.completed") == 1
    assert [tool.state for tool in state.tools.values()] == ["output-available"]
    [part] = state.messages[-1].parts
    assert isinstance(part, TextPart)
    assert str(part.text) == "Done."


@pytest.mark.requirement("sources.live.names")
async def test_names_that_come_again_are_new_on_the_thread_and_the_session_is_known(
    tmp_path: Path,
):
    player = Player("codex-exec", script(tmp_path, STARTED, *RAN, SAID, ENDED))
    async with runtime_with(player, tmp_path) as (runtime, _):
        for turn in ("one", "two"):
            await runtime.submit("thread", "agent", "list", turn_id=turn)
            assert await wait_for_end(runtime, turn) == "completed"
        facts, state = await facts_from(runtime)

    assert inspect_stream(facts) == []
    assert [tool.turn_id for tool in state.tools.values()] == ["one", "two"]
    assert [each.message_id for each in state.messages if each.message_id[0] == "m"] == [
        "m",
        "m:two",
    ]
    assert player.known_as == [None, "session-1"]


@pytest.mark.requirement("sources.live.decisions")
@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_decision_reaches_the_agent_under_its_own_name(tmp_path: Path, decision: str):
    player = Player("claude-code", script(tmp_path, ASKED, WAIT, RESULT))
    async with runtime_with(player, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        action = await open_action(runtime)
        question = (await runtime.state("thread")).actions[action]
        await decide_shown(runtime, "thread", action, decision, by="lena", reason="because")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts, state = await facts_from(runtime)

    assert action != "7"
    assert "make deploy" in (question.shown or "")
    assert player.answers == [("7", decision == "approve", "because")]
    assert state.actions[action].applied is True
    assert inspect_stream(facts) == []


@pytest.mark.requirement("sources.live.cut")
async def test_a_program_that_dies_fails_its_turn_with_its_last_words(tmp_path: Path):
    dies = script(tmp_path, STARTED, command("in_progress"), "DIE out of luck")
    async with runtime_with(Player("codex-exec", dies), tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        facts, state = await facts_from(runtime)

    failed = next(fact for fact in facts if fact.event_class == "turn.failed")
    assert failed.payload["failureCategory"] == "agent_died"
    assert failed.payload["message"] == "exit code 1: out of luck"
    assert [tool.state for tool in state.tools.values()] == ["output-error"]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("sources.live.cut")
async def test_a_program_that_ends_without_an_end_was_cut_off(tmp_path: Path):
    async with runtime_with(
        Player("codex-exec", script(tmp_path, STARTED, command("in_progress"))), tmp_path
    ) as (runtime, _):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        facts, _ = await facts_from(runtime)

    failed = next(fact for fact in facts if fact.event_class == "turn.failed")
    assert failed.payload["failureCategory"] == "stream_interrupted"


@pytest.mark.requirement("sources.live.cancel")
async def test_a_turn_that_is_cancelled_ends_its_program_and_closes_its_tools(tmp_path: Path):
    waits = script(tmp_path, STARTED, command("in_progress"), WAIT, ENDED)
    async with runtime_with(Player("codex-exec", waits), tmp_path) as (runtime, means):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        await open_tool(runtime)
        await runtime.cancel("thread", "turn")
        assert await wait_for_end(runtime, "turn") == "canceled"
        facts, state = await facts_from(runtime)
        assert means.processes is not None
        assert await means.processes.reap() == []

    assert [tool.state for tool in state.tools.values()] == ["cancelled"]
    assert inspect_stream(facts) == []


@pytest.mark.requirement("sources.live.raw")
@pytest.mark.parametrize("keep", [True, False])
async def test_what_is_not_known_is_named_and_on_request_kept_without_secrets(
    tmp_path: Path, keep: bool
):
    odd = script(tmp_path, STARTED, UNKNOWN, "{garbage", SAID, ENDED)
    player = Player("codex-exec", odd, keep_raw=keep)
    async with runtime_with(player, tmp_path) as (runtime, means):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts, _ = await facts_from(runtime)
        warnings = [fact for fact in facts if fact.event_class == "runtime.warning"]
        refs = [ref for fact in warnings for ref in fact.ref_ids or ()]
        kept = [await read(means.blobs, ref) for ref in refs if await means.blobs.exists(ref)]

    assert [fact.payload["code"] for fact in warnings] == [
        "unknown_source_item",
        "unreadable_source_item",
    ]
    assert len(kept) == (2 if keep else 0)
    assert b"sk-proj" not in b"".join(kept)


@pytest.mark.requirement("sources.live.big")
async def test_what_is_too_big_for_a_fact_leaves_the_agent_as_a_ref(tmp_path: Path):
    secret, size = "sk-proj-abcdefghijklmnopqrstuvwx0123456789", 100_000
    big = command("completed", aggregated_output="x" * size + f" {secret}", exit_code=0)
    player = Player("codex-exec", script(tmp_path, STARTED, RAN[0], big, SAID, ENDED))
    async with runtime_with(player, tmp_path) as (runtime, means):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"
        facts, state = await facts_from(runtime)
        [tool] = state.tools.values()
        kept = await read(means.blobs, tool.output_ref or "")

    assert classes(facts).count("output.spilled") == 1
    assert len(kept) > size
    assert secret.encode() not in kept


@pytest.mark.requirement("sources.live.cut")
async def test_an_adapter_that_stumbles_at_the_end_fails_its_turn_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def stumble(_: object) -> None:
        raise LookupError("no such thing")

    player = Player("codex-exec", script(tmp_path, STARTED, command("in_progress")))
    monkeypatch.setattr(CodexExec, "finish", stumble)
    async with runtime_with(player, tmp_path) as (runtime, _):
        await runtime.submit("thread", "agent", "list", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "failed"
        facts, _ = await facts_from(runtime)

    failed = next(fact for fact in facts if fact.event_class == "turn.failed")
    assert failed.payload["failureCategory"] == "provider_error"
    assert "no such thing" in failed.payload["message"]
