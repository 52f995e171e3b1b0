"""The demo agent in a team: a whole run of three demo members, and what a supervisor decides."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from factwire.facts.schemas.json_schema import route_decision_schema
from factwire.runtime import Runtime, TurnFailed
from factwire.runtime.agents import DemoAgent, DemoOptions
from factwire.runtime.agents.demo_agent import STRANGER, decide_route
from tests.runtime.agents import decide_shown, facts_of
from tests.runtime.toolboxes import Kept, assert_sound

MEMBERS = [
    {"name": "lead", "role": "supervisor", "agentType": "demo"},
    {"name": "ann", "role": "executor", "agentType": "demo"},
    {"name": "rex", "role": "reviewer", "agentType": "demo"},
]


class TeamOfDemos:
    """Three demo members in one runtime, with the rows that a Hub would keep of their run."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.state: dict[str, Any] = {"goal": "Greet", "runId": "tmr_1", "members": MEMBERS}
        self.state |= {"tasks": [], "assignments": [], "lastRefusal": None}
        self.routes: list[dict[str, Any]] = []
        self.approvals = 0

    async def run(self) -> None:
        while not self.routes or self.routes[-1]["action"] != "finish":
            self.routes.append(route := await self._decide())
            self.state["lastRefusal"] = None
            if route.get("next_worker") == STRANGER:
                refusal = {"code": "worker_unknown", "detail": "no such member", "decision": route}
                self.state["lastRefusal"] = refusal
            elif route["action"] == "approve" and route["approved"]:
                self.state["tasks"][0]["approved"] = True
            elif route["action"] != "finish":
                await self._assign(route)

    async def _decide(self) -> dict[str, Any]:
        options = {"outputSchema": route_decision_schema(), "teamState": self.state}
        turn = await self.runtime.submit("lead", "demo", "Decide.", options=options)
        assert await (await self.runtime.thread("lead")).wait_for(turn.turn_id) == "completed"
        facts = await facts_of(self.runtime, "lead")
        facts = [fact for fact in facts if fact.turn_id == turn.turn_id]
        [decided] = [fact for fact in facts if fact.event_class == "routing.decided"]
        return decided.payload

    async def _assign(self, route: dict[str, Any]) -> None:
        worker = route.get("next_worker", "ann")
        prompt = route.get("instructions") or route["feedback"]
        turn = await self.runtime.submit(worker, "demo", prompt)
        ended = asyncio.create_task((await self.runtime.thread(worker)).wait_for(turn.turn_id))
        while not ended.done():
            pending = (await self.runtime.state(worker)).actions.values()
            for action in [each for each in pending if each.status == "pending"]:
                self.approvals += 1
                await decide_shown(self.runtime, worker, action.action_id, "approve", by="lena")
            await asyncio.wait({ended}, timeout=0.01)
        self.state["tasks"] += [] if self.state["tasks"] else [{"approved": None}]
        self.state["assignments"].append({"worker": worker, "status": await ended})


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.agents.demo.supervisor")
@pytest.mark.requirement("runtime.agents.demo.workers")
async def test_three_demo_members_go_from_a_refused_route_to_an_approved_result(tmp_path: Path):
    kept = Kept(tmp_path)
    async with kept.run_agents({"demo": DemoAgent(DemoOptions(pace=0))}) as runtime:
        team = TeamOfDemos(runtime)
        async with asyncio.timeout(120):
            await team.run()
        for thread in ("lead", "ann", "rex"):
            assert_sound(await facts_of(runtime, thread))
    steps = [(route["action"], route.get("next_worker")) for route in team.routes]
    assert steps == [
        *(("delegate", STRANGER), ("delegate", "ann"), ("review", "rex"), ("approve", None)),
        *(("review", "rex"), ("approve", None), ("finish", None)),
    ]
    assert [route.get("approved") for route in team.routes if route["action"] == "approve"] == [
        *(False, True),
    ]
    assert team.approvals == 1
    [greeting] = (kept.workspace / "factwire-demo").iterdir()
    assert "welcome to everybody" in greeting.read_text()


def state_of(*worked: tuple[str, str], **changes: Any) -> dict[str, Any]:
    assignments = [{"worker": worker, "status": status} for worker, status in worked]
    return {"goal": "Greet", "members": MEMBERS, "assignments": assignments, **changes}


@pytest.mark.requirement("runtime.agents.demo.supervisor")
@pytest.mark.parametrize(
    ("state", "action", "blocked"),
    [
        (state_of(("ann", "failed")), "delegate", None),
        (state_of(("ann", "failed"), ("ann", "cancelled")), "finish", "the work failed twice"),
        (state_of(members=MEMBERS[:1]), "finish", "the team has no executor"),
        (state_of(("ann", "completed"), members=MEMBERS[:2]), "approve", None),
        (
            state_of(
                ("ann", "completed"),
                lastRefusal={"code": "budget_spent", "detail": "no tokens", "decision": {}},
            ),
            "finish",
            "a route was refused: budget_spent: no tokens",
        ),
    ],
)
def test_a_demo_supervisor_tries_again_and_gives_up_with_a_reason(
    state: dict[str, Any], action: str, blocked: str | None
):
    route = decide_route(state, mistake=False)
    assert (route.action, route.blocked_reason) == (action, blocked)


@pytest.mark.requirement("runtime.agents.demo.supervisor")
def test_what_is_no_state_of_a_team_is_refused():
    with pytest.raises(TurnFailed, match="teamState") as refused:
        decide_route({"goal": "Greet"})
    assert refused.value.code == "invalid_options"
