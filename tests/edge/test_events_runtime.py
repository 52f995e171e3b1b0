"""What the runtime really writes, in the Edge's words: whole runs, in both views."""

import asyncio
from pathlib import Path

import pytest

from factwire.edge.events import EVENT_TYPES, build_envelope
from factwire.facts import Fact
from factwire.runtime import Provider, Runtime
from factwire.runtime.agents import DemoAgent, ShellAgent
from factwire.serving.envelopes import VIEWS, Envelope, View
from tests.edge.event_samples import EDGE, EPOCH
from tests.runtime.agents import decide_shown, facts_of, open_action, wait_for_end
from tests.runtime.toolboxes import Kept

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("edge.events.one-envelope")]


async def _at_once(_: float) -> None:
    """The pace of a demo that nobody watches."""


async def _approve(runtime: Runtime) -> None:
    while True:
        action = await open_action(runtime)
        await decide_shown(runtime, "thread", action, "approve", by="ann")


async def play_turn(folder: Path, agent: str, prompt: str) -> list[Fact]:
    """The facts of one turn."""
    agents: dict[str, Provider] = {"demo": DemoAgent(sleep=_at_once), "shell": ShellAgent()}
    async with Kept(folder).run_agents(agents) as runtime, asyncio.timeout(60):
        await runtime.submit("thread", agent, prompt, turn_id="trn_1", project_id="prj_1")
        approving = asyncio.ensure_future(_approve(runtime))
        await wait_for_end(runtime, "trn_1")
        approving.cancel()
        await asyncio.gather(approving, return_exceptions=True)
        return await facts_of(runtime)


def to_envelopes(facts: list[Fact], view: View) -> list[Envelope]:
    return [
        build_envelope(seq, fact, view, epoch=EPOCH, edge_id=EDGE)
        for seq, fact in enumerate(facts, 1)
    ]


async def test_a_tour_is_told_from_the_queue_to_the_result(tmp_path: Path):
    facts = await play_turn(tmp_path, "demo", "show me")
    types = [envelope.type for envelope in to_envelopes(facts, "runtime")]
    assert [name for name in types if name.startswith("run.") and name.count(".") == 1] == [
        *("run.queued", "run.started"),
        *("run.output" for name in types if name == "run.output"),
        "run.finished",
    ]
    assert types[-1] == "run.agent.result"
    assert {
        *("run.agent.text_delta", "run.agent.text_block", "run.agent.tool_call"),
        *("run.agent.tool_result", "run.agent.permission_requested", "run.agent.file_change"),
        *("run.agent.permission_decided", "run.agent.session_state_changed"),
        *("artifact.created", "run.agent.session_metrics"),
    } <= set(types)


async def test_a_conversation_reads_the_same_run_as_messages_items_and_approvals(tmp_path: Path):
    facts = await play_turn(tmp_path, "demo", "show me")
    envelopes = to_envelopes(facts, "conversation")
    types = [envelope.type for envelope in envelopes]
    assert types[0] == "message.created"
    assert envelopes[0].payload.content.text == "show me"
    changes = [e.payload.to for e in envelopes if e.type == "run.status.changed"]
    assert changes == ["running", "waiting", "running", "finished"]
    assert {"message.delta", "item.created", "approval.requested", "approval.decided"} <= set(types)
    applied = [e.payload.applied for e in envelopes if e.type == "approval.decided"]
    assert applied == [False, True]


async def test_what_was_streamed_is_what_the_message_says_in_the_end(tmp_path: Path):
    facts = await play_turn(tmp_path, "demo", "show me")
    streamed: dict[str, str] = {}
    whole: dict[str, str] = {}
    for envelope in to_envelopes(facts, "conversation"):
        payload = envelope.payload
        if envelope.type == "message.delta":
            streamed[payload.item_id] += payload.delta
        elif envelope.type == "item.created" and payload.type == "agent_message":
            streamed[payload.item_id] = payload.content.text
        elif envelope.type == "message.created" and payload.type == "agent_message":
            whole[payload.item_id] = payload.content.text
    assert whole == streamed != {}


async def test_every_envelope_of_a_run_names_the_run_and_its_place(tmp_path: Path):
    facts = await play_turn(tmp_path, "demo", "demo: team")
    for view in VIEWS:
        envelopes = to_envelopes(facts, view)
        assert {envelope.scope.thread_id for envelope in envelopes} == {"thread"}
        assert len({envelope.scope.run_id for envelope in envelopes}) == 1
        assert len({envelope.trace_id for envelope in envelopes}) == 1
        assert [envelope.id for envelope in envelopes] == [fact.id for fact in facts]
        for envelope in envelopes:
            kind = EVENT_TYPES.get(envelope.type)
            assert kind is None or type(envelope.payload) is kind.payload


async def test_a_team_is_told_as_tasks(tmp_path: Path):
    facts = await play_turn(tmp_path, "demo", "demo: team")
    types = {envelope.type for envelope in to_envelopes(facts, "runtime")}
    assert {
        *("run.agent.task_started", "run.agent.task_dispatched"),
        "run.agent.task_notification",
    } <= types


async def test_a_command_that_fails_is_a_run_with_a_code(tmp_path: Path):
    facts = await play_turn(tmp_path, "shell", "echo out; exit 3")
    envelopes = to_envelopes(facts, "runtime")
    [output] = [e.payload for e in envelopes if e.type == "run.output"]
    assert (output.stream, output.offset, output.text) == ("stdout", 0, "out\n")
    [failed] = [e.payload for e in envelopes if e.type == "run.failed"]
    assert failed.error.code == "NONZERO_EXIT"
    assert envelopes[-1].payload.success is False
