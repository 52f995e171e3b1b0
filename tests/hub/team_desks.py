"""A team of somebody's on one device, and what the device says of the tasks that it gets."""

from typing import Any

import httpx
import msgspec
from sqlalchemy import select

from factwire.edge.hub_frames import (
    AgentDispatch,
    AgentDone,
    AgentFailed,
    DeliveryAck,
    FramePayload,
)
from factwire.hub.frames.event_log import read_events
from factwire.hub.frames.hub_connections import find_edge_device
from factwire.hub.records.link_tables import agent_tasks, deliveries
from factwire.hub.teams.supervisor_turns import RunLeader
from factwire.hub.teams.team_runs import stop_due_tasks
from tests.hub.hubs import HubDevice, HubPerson, RunningHub

MEMBERS = {"lead": "supervisor", "ann": "executor", "ben": "executor", "rex": "reviewer"}
"""Name → role; who leads decides by REST."""

USED = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10, "records": 1}


class TeamDesk:
    """One run of a team, as whoever supervises it sees it."""

    def __init__(self, hub: RunningHub, person: HubPerson, device: HubDevice) -> None:
        self.hub = hub
        self.person = person
        self.device = device
        self.team_id = ""
        self.run_id = ""
        self.members: dict[str, str] = {}

    @property
    def path(self) -> str:
        return f"/v1/team-runs/{self.run_id}"

    async def create_team(self, **roles: str) -> None:
        team = await self.person.post("/v1/teams", {"name": "builders"})
        self.team_id = team["teamId"]
        for name, role in (roles or MEMBERS).items():
            await self.add_member(name, role)

    async def add_member(self, name: str, role: str, **more: Any) -> str:
        body: dict[str, Any] = {"name": name, "role": role, **more}
        if role != "supervisor":
            body = {"agentType": "demo", "deviceIds": [self.device.device_id], **body}
        made = await self.person.post(f"/v1/teams/{self.team_id}/members", body)
        self.members[name] = made["teamMemberId"]
        return made["teamMemberId"]

    async def start(self, **more: Any) -> dict[str, Any]:
        body = {"teamId": self.team_id, "goal": "Build it", **more}
        run = await self.person.post("/v1/team-runs", body)
        self.run_id = run["teamRunId"]
        return run

    async def send(self, action: str, **fields: Any) -> httpx.Response:
        key = {"idempotency_key": fields.pop("key")} if "key" in fields else {}
        body = {"action": action, **fields}
        return await self.person.request("POST", f"{self.path}/decisions", body, **key)

    async def decide(self, action: str, **fields: Any) -> dict[str, Any]:
        answer = await self.send(action, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def delegate(self, worker: str = "ann", what: str = "write", **more: Any) -> str:
        """The id of an assignment."""
        decided = await self.decide("delegate", next_worker=worker, instructions=what, **more)
        return decided["assignmentId"]

    async def refusal(self, action: str, **fields: Any) -> str:
        """The code with which a decision is refused."""
        answer = await self.send(action, **fields)
        assert answer.status_code == 400, answer.text
        return answer.json()["code"]

    async def state(self) -> dict[str, Any]:
        return await self.person.get(f"{self.path}/state")

    async def assignment(self, assignment_id: str) -> dict[str, Any]:
        found = (await self.state())["assignments"]
        return next(each for each in found if each["assignmentId"] == assignment_id)

    async def take_frame(self, type_: str, payload: FramePayload) -> None:
        """Have the Hub hear something from the device."""
        services, person_id = self.hub.hub.services, self.person.person_id
        async with services.database.read() as connection:
            device = await find_edge_device(connection, self.device.device_id, person_id)
        assert device is not None
        await self.hub.hub.links.link.take_frame(device, type_, payload)

    async def begin(self, assignment_id: str) -> str:
        """The device begins the task of an assignment; the task's id."""
        task_id: str = (await self.assignment(assignment_id))["agentTaskId"]
        await self.begin_task(task_id)
        return task_id

    async def begin_task(self, task_id: str) -> None:
        dispatch = await self.read_dispatch(task_id)
        thread_id = dispatch.thread_id
        ack = DeliveryAck(
            delivery_id=dispatch.delivery_id,
            edge_run_id=f"run_{task_id}",
            thread_id=f"thr_{task_id}" if isinstance(thread_id, msgspec.UnsetType) else thread_id,
        )
        await self.take_frame("delivery.ack", ack)

    async def read_dispatch(self, task_id: str) -> AgentDispatch:
        """What the device is sent for a task."""
        query = select(deliveries.c.payload).where(
            deliveries.c.task_id == task_id, deliveries.c.kind == "dispatch"
        )
        async with self.hub.hub.services.database.read() as connection:
            text = (await connection.execute(query)).scalar_one()
        return msgspec.json.decode(text, type=AgentDispatch)

    async def complete(self, assignment_id: str, summary: str = "done", **usage: int) -> None:
        """The device does the task of an assignment."""
        task_id = await self.begin(assignment_id)
        done = AgentDone(task_id=task_id, result_summary=summary, usage=usage or USED)
        await self.take_frame("agent.done", done)

    async def fail(self, assignment_id: str, code: str = "agent_failed", **usage: int) -> None:
        task_id = await self.begin(assignment_id)
        error = {"code": code, "message": "it went wrong"}
        failed = AgentFailed(task_id=task_id, error=error, usage=usage)
        await self.take_frame("agent.failed", failed)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and whatever is due then be done; nobody stays signed in for that long."""
        self.hub.clock.advance(seconds)
        name = self.person.signed_in["person"]["name"]
        self.person.signed_in = (await self.hub.login(name)).json()
        await stop_due_tasks(self.hub.hub.services)
        await self.hub.hub.links.link.tick()

    async def read_events(self) -> list[tuple[str, dict[str, Any]]]:
        """What the person was told of teams."""
        async with self.hub.hub.services.database.read() as connection:
            found = await read_events(connection, self.person.person_id, 0, 100_000)
        return [
            (each.type, msgspec.json.decode(each.payload))
            for each in found
            if each.type.startswith(("team.", "assignment."))
        ]

    async def read_task(self, assignment_id: str) -> dict[str, Any]:
        task_id = (await self.assignment(assignment_id))["agentTaskId"]
        query = select(agent_tasks).where(agent_tasks.c.task_id == task_id)
        async with self.hub.hub.services.database.read() as connection:
            return dict((await connection.execute(query)).mappings().one())

    async def read_facts(self) -> list[dict[str, Any]]:
        """The facts of the run, once all are written."""
        await self.hub.hub.teams.write_facts()
        path = f"/v1/edges/hub.teams/facts?threadId={self.run_id}&limit=1000"
        return [each["fact"] for each in (await self.person.get(path))["items"]]


class SupervisedDesk(TeamDesk):
    """One run of a team that an agent supervises, and what the agent answers."""

    async def open(self, **more: Any) -> None:
        await self.create_team(ann="executor", ben="executor", rex="reviewer")
        places = {"agentType": "demo", "deviceIds": [self.device.device_id]}
        await self.add_member("lead", "supervisor", **places)
        await self.start(**more)

    async def start(self, **more: Any) -> dict[str, Any]:
        run = await super().start(**more)
        await self.lead()
        return run

    async def lead(self) -> None:
        """Have the Hub do what is next."""
        await RunLeader(self.hub.hub.services).lead_runs()

    async def supervision(self) -> dict[str, Any]:
        return (await self.state())["run"]["supervision"]

    async def read_question(self) -> AgentDispatch:
        """What the agent was asked last."""
        return await self.read_dispatch((await self.supervision())["agentTaskId"])

    async def read_context(self) -> dict[str, Any]:
        options = (await self.read_question()).model_params
        assert isinstance(options, dict)
        return options["teamState"]

    async def answer(self, action: str | None = None, **fields: Any) -> dict[str, Any]:
        """The agent ends its turn, with prose alone where it names no action; what is known of it
        then.
        """
        task_id = (await self.supervision())["agentTaskId"]
        await self.begin_task(task_id)
        route = msgspec.UNSET if action is None else {"action": action, **fields}
        done = AgentDone(
            task_id=task_id, result_summary="Well...", usage=USED, route_decision=route
        )
        await self.take_frame("agent.done", done)
        await self.lead()
        return await self.supervision()

    async def complete(self, assignment_id: str, summary: str = "done", **usage: int) -> None:
        await super().complete(assignment_id, summary, **usage)
        await self.lead()

    async def pass_time(self, seconds: float) -> None:
        await super().pass_time(seconds)
        await self.lead()

    async def last_assignment(self) -> dict[str, Any]:
        return (await self.state())["assignments"][-1]


async def open_desk(hub: RunningHub, person: HubPerson, edge_id: str = "edge_1") -> TeamDesk:
    """A run that has just begun."""
    desk = TeamDesk(hub, person, await hub.join_device(person, edge_id))
    await desk.create_team()
    await desk.start()
    return desk
