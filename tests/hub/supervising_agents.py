"""An agent that supervises by what it is shown, on a real Edge.

`lead` remembers nothing: it delegates to somebody who is not in the team, corrects itself, has the
work reviewed, sends it back, approves it and finishes.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from factwire.edge.startup import EdgeSettings, open_edge
from factwire.facts import Fact
from factwire.runtime import StartTurn
from factwire.runtime.configuration import AgentSettings, Configuration
from tests.edge.edges import TOKEN, configuration_in
from tests.hub.killed_link import Ready
from tests.runtime.agents import Agent, make_fact

AGENTS = ["demo", "lead"]


def configuration_with_lead(folder: Path) -> Configuration:
    plain = configuration_in(folder)
    agent = AgentSettings(kind="tests.hub.supervising_agents:lead")
    return configuration_in(folder, agents={**plain.agents, "lead": agent})


def lead(_: AgentSettings) -> Agent:
    return Agent(_lead)


async def _lead(turn: StartTurn) -> AsyncIterator[Fact]:
    host, route = turn.host, decide(turn.options["teamState"])
    text = {"text": f"Next: {route['action']}."}
    yield make_fact(host, "model.completed", text, message_id=f"a-{turn.turn_id}")
    cost = {"model": "lead", "inputTokens": 2, "outputTokens": 1, "totalTokens": 3}
    yield make_fact(host, "cost.recorded", cost)
    yield make_fact(host, "turn.completed", {"structuredOutput": route})


def decide(state: dict[str, Any]) -> dict[str, Any]:
    done = [each for each in state["assignments"] if each["status"] == "completed"]
    match len(done):
        case 0:
            worker = "nobody" if state["lastRefusal"] is None else "ann"
            work = {"next_worker": worker, "instructions": "help", "subtask_id": "a"}
            return {"action": "delegate", **work}
        case 1:
            return {"action": "review", "next_worker": "rex", "instructions": "help review"}
        case 2:
            return {"action": "approve", "approved": False, "feedback": "help again"}
        case _ if not any(each.get("approved") for each in state["tasks"]):
            return {"action": "approve", "approved": True, "subtask_id": "a"}
        case _:
            return {"action": "finish", "summary": "helped"}


STEPS = ["delegate", "delegate", "review", "approve", "approve", "finish"]
"""What it decides in a run; the first is refused."""


async def run_led_edge(ready: Ready, folder: Path) -> None:
    """An Edge that offers it, in a process of its own."""
    conf = configuration_with_lead(folder)
    async with open_edge(conf, Path(conf.workspaces[0]), EdgeSettings(token=TOKEN)) as edge:
        ready(edge.context.edge_id)
        await asyncio.Event().wait()
