"""Turns of the `openai` agent with a fake model, in a real runtime."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from factwire.facts import Fact
from factwire.journal import Journal
from factwire.projection import ProjectionState
from factwire.projection.messages import TextPart
from factwire.runtime import Runtime
from factwire.runtime.agents.openai_agent import Endpoint, OpenAIAgent, OpenAIOptions
from factwire.runtime.policy import Policy
from tests.runtime.agents import facts_of, wait_for_end
from tests.runtime.fake_model import FakeModel, Reply
from tests.runtime.toolboxes import FREE, Kept, assert_sound

KEY = "made-up-key-0123456789abcdef"
"""Of no shape that redaction knows: nothing but care keeps it out of facts."""

VARIABLE = "TINY_MODEL_KEY"

Meanwhile = Callable[[Runtime, FakeModel], Awaitable[Any]]


class Talk:
    """What came of the turns of one thread."""

    def __init__(self, status: str, facts: list[Fact], state: ProjectionState) -> None:
        self.status = status
        self.facts = facts
        self.state = state

    def facts_of_class(self, event_class: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.event_class == event_class]

    def payloads_of(self, event_class: str) -> list[dict[str, Any]]:
        return [fact.payload for fact in self.facts_of_class(event_class)]

    @property
    def answers(self) -> list[str]:
        """The texts of the assistant's messages that have one."""
        found = [
            "".join(str(part.text) for part in message.parts if isinstance(part, TextPart))
            for message in self.state.messages
            if message.role == "assistant"
        ]
        return [text for text in found if text]

    @property
    def failure(self) -> dict[str, Any]:
        [only] = self.payloads_of("turn.failed")
        return only


def agent(
    model: FakeModel,
    *,
    key: bool = False,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> OpenAIAgent:
    """An agent for a fake model, which waits for nothing longer than it must."""
    settings: dict[str, Any] = {"silence_seconds": 20.0, "retries": 0, **options}
    endpoint = Endpoint(base_url=model.url, model="tiny", key_variable=VARIABLE if key else None)
    variables = {VARIABLE: KEY} if environment is None else environment
    return OpenAIAgent(endpoint, OpenAIOptions(**settings), environment=variables)


@asynccontextmanager
async def run_model_agent(
    kept: Kept, model: FakeModel, journal: Journal | None = None, **how: Any
) -> AsyncGenerator[Runtime]:
    async with kept.run_agents({"openai": agent(model, **how)}, journal) as runtime:
        yield runtime


async def talk(
    folder: Path,
    *replies: Reply,
    prompt: str | tuple[str, ...] = "go",
    policy: Policy = FREE,
    kept: Kept | None = None,
    meanwhile: Meanwhile | None = None,
    turn: dict[str, Any] | None = None,
    **how: Any,
) -> tuple[Talk, FakeModel]:
    """Hold turns on one thread, a prompt each; their facts are sound, and hold no key."""
    kept = kept or Kept(folder, policy)
    prompts = (prompt,) if isinstance(prompt, str) else prompt
    async with FakeModel(*replies) as model, run_model_agent(kept, model, **how) as runtime:
        status = ""
        for number, each in enumerate(prompts, 1):
            await runtime.submit("thread", "openai", each, turn_id=f"turn-{number}", **turn or {})
            if meanwhile is not None:
                await meanwhile(runtime, model)
            status = await wait_for_end(runtime, f"turn-{number}")
        done = Talk(status, await facts_of(runtime), await runtime.state("thread"))
    assert_sound(done.facts)
    assert KEY not in str(done.facts)
    return done, model
