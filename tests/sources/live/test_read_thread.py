"""Every bundled agent answers for its thread: what its facts come to, under its own session."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from factwire.projection import Projection, ThreadReadModel, thread_read_model
from factwire.runtime import Provider, ReadThread, Runtime
from factwire.runtime.agents import DemoAgent, ShellAgent
from factwire.runtime.agents.registry import BUILT_INS
from factwire.sources.kit.live_agent import LiveAgent
from factwire.sources.kit.stream_framing import Unreadable, read_items
from factwire.sources.source_registry import OUTSIDE_AGENTS, SOURCE_NAMES, find_source
from tests.projection.fact_maker import as_json
from tests.runtime.agents import wait_for_end
from tests.runtime.fake_model import FakeModel, text
from tests.runtime.fake_model_runs import agent as model_agent
from tests.runtime.toolboxes import FREE, Kept
from tests.sources.live.played import Player, runtime_with, script
from tests.sources.recordings import RECORDINGS

RUN_LIVE = [agent.name for agent in OUTSIDE_AGENTS if agent.live is not None]


def recording_of(source: str) -> Path:
    """A recorded turn of a source that ended well without a question."""
    for path in RECORDINGS:
        screen = path.with_suffix(".screen.json")
        if path.parent.name == source and screen.exists():
            seen = json.loads(screen.read_bytes())
            if seen["status"] == "completed" and not seen["actions"]:
                return path
    raise LookupError(source)


async def read_after_turn(runtime: Runtime, agent: str, prompt: str = "go") -> ThreadReadModel:
    """What an agent answers for a thread on which a turn of its own has ended."""
    await runtime.submit("thread", agent, prompt, turn_id="turn")
    assert await wait_for_end(runtime, "turn") == "completed"
    state = await runtime.state("thread")
    read = ReadThread(thread_id="thread", agent_id=agent, state=state)
    answer = await runtime.agent(agent).read_thread(read)
    assert answer is not None
    assert (
        answer == await runtime.read_thread("thread") == await runtime.read_thread("thread", agent)
    )
    expected = as_json(thread_read_model(state))
    assert as_json(answer) == {**expected, "sessionId": answer.session_id}
    screen = Projection.from_read_model(answer).state
    assert as_json(screen.messages) == as_json(state.messages)
    return answer


@pytest.mark.asyncio
@pytest.mark.requirement("sources.live.read-thread")
@pytest.mark.parametrize("source", SOURCE_NAMES)
async def test_an_outside_agent_answers_for_its_thread_under_its_own_session(
    tmp_path: Path, source: str
):
    path = recording_of(source)
    found = read_items(path.read_bytes().splitlines(keepends=True), find_source(source).framing)
    items = [item for item in found if not isinstance(item, Unreadable)]
    player = Player(source, script(tmp_path, *items))
    async with runtime_with(player, tmp_path) as (runtime, _):
        answer = await read_after_turn(runtime, "agent")
    assert (answer.session_id, answer.status) == ("session-1", "completed")


@pytest.mark.requirement("sources.live.read-thread")
@pytest.mark.parametrize("name", RUN_LIVE)
def test_what_a_registered_agent_answers_is_what_every_live_agent_answers(name: str):
    row = next(agent for agent in OUTSIDE_AGENTS if agent.name == name)
    module = import_module(row.module(row.live or ""))
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, LiveAgent) and kind is not LiveAgent
    ]
    assert kinds
    assert [kind for kind in kinds if kind.read_thread is not LiveAgent.read_thread] == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.read-thread")
@pytest.mark.parametrize("name", BUILT_INS)
async def test_a_built_in_agent_answers_for_its_thread(tmp_path: Path, name: str):
    async with FakeModel(text("Good morning.")) as model:
        agents: dict[str, tuple[Provider, str]] = {
            "demo": (DemoAgent(), "help"),
            "openai": (model_agent(model), "Greet me"),
            "shell": (ShellAgent(), "true"),
        }
        agent, prompt = agents[name]
        async with Kept(tmp_path, FREE).run_agents({name: agent}) as runtime:
            answer = await read_after_turn(runtime, name, prompt)
            state = await runtime.state("thread")
    assert answer.session_id == state.session_id


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.read-thread")
async def test_a_thread_whose_agent_is_gone_is_read_from_its_facts(tmp_path: Path):
    kept = Kept(tmp_path, FREE)
    async with kept.run_agents({"shell": ShellAgent()}) as runtime:
        await read_after_turn(runtime, "shell", "true")
        runtime.agents = {}
        model = await runtime.read_thread("thread")
        assert model == thread_read_model(await runtime.state("thread"))
