"""A hundred runs of a team at once on one Hub, each supervised by an agent that gives its workers
all the work that a run may have.

The agents answer at once and do nothing, so that only the Hub is measured: asking, guardrails,
assignments, ends and facts, with records on SQLite. The devices are in this process and have no
sockets. A run that is long must cost no more per step than one that is short.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.hub_growth import FilledHub, open_filled_hub
from bench.measure import Row
from factwire.edge.hub_frames import AgentDispatch, AgentDone, DeliveryAck, FramePayload
from factwire.hub.limits import TEAM_TASKS

_RUNS: Final = 100
_WAIT: Final = 1_800
_MEMBERS: Final = {
    "lead": "supervisor",
    "ann": "executor",
    "ben": "executor",
    "cy": "executor",
    "rex": "reviewer",
}
_WORKERS: Final = ("ann", "ben", "cy")
_TENTH: Final = TEAM_TASKS // 10


class _Device(msgspec.Struct, frozen=True, kw_only=True):
    device_id: str
    edge_id: str


class _Devices:
    """Devices whose agents are done as soon as they are asked."""

    def __init__(self, hub: FilledHub) -> None:
        self._hub = hub
        self._queues = {f"dev_{n}": asyncio.Queue[AgentDispatch]() for n in range(len(_MEMBERS))}
        self._known: set[str] = set()
        self._decided_at: dict[tuple[str, int], float] = {}
        self.latencies: dict[int, list[float]] = {}
        self.routes = 0

    def is_connected(self, device_id: str) -> bool:
        return device_id in self._queues

    def send_to_device(self, device_id: str, type_: str, payload: FramePayload) -> bool:
        if type_ == "agent.dispatch" and isinstance(payload, AgentDispatch):
            self._queues[device_id].put_nowait(payload)
        return True

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Answer for as long as the block lasts."""
        connections = self._hub.hub.services.connections
        connections.is_connected = self.is_connected
        connections.send_to_device = self.send_to_device
        async with asyncio.TaskGroup() as group:
            working = [group.create_task(self._work(name)) for name in self._queues]
            yield
            for each in working:
                each.cancel()

    async def _work(self, device_id: str) -> None:
        link = self._hub.hub.links.link
        device = _Device(device_id=device_id, edge_id=f"edge_{device_id}")
        await link.note_connected(device)
        while True:
            dispatch = await self._queues[device_id].get()
            if dispatch.delivery_id in self._known:
                continue
            self._known.add(dispatch.delivery_id)
            ack = DeliveryAck(
                delivery_id=dispatch.delivery_id,
                edge_run_id=f"run_{dispatch.task_id}",
                thread_id=f"thr_{dispatch.team_run_id}",
            )
            await link.take_frame(device, "delivery.ack", ack)
            await link.take_frame(device, "agent.done", self._answer(dispatch))

    def _answer(self, dispatch: AgentDispatch) -> AgentDone:
        done = AgentDone(task_id=dispatch.task_id, result_summary="done", usage={"totalTokens": 1})
        run_id = str(dispatch.team_run_id)
        if not isinstance(dispatch.model_params, dict):
            number = int(dispatch.prompt.rpartition(" ")[2])
            begun = self._decided_at.pop((run_id, number))
            self.latencies.setdefault(number, []).append(time.perf_counter() - begun)
            return done
        number = len(dispatch.model_params["teamState"]["assignments"]) + 1
        self.routes += 1
        self._decided_at[run_id, number] = time.perf_counter()
        return msgspec.structs.replace(done, route_decision=_decide(number))


def _decide(number: int) -> dict[str, Any]:
    if number > TEAM_TASKS:
        return {"action": "finish", "summary": "done"}
    worker = _WORKERS[number % len(_WORKERS)]
    return {"action": "delegate", "next_worker": worker, "instructions": f"part {number}"}


async def _create_team(hub: FilledHub) -> str:
    team = await hub.request("POST", "/v1/teams", {"name": "fast"})
    for number, (name, role) in enumerate(_MEMBERS.items()):
        place = {"agentType": "demo", "deviceIds": [f"dev_{number}"]}
        path = f"/v1/teams/{team['teamId']}/members"
        await hub.request("POST", path, {"name": name, "role": role, **place})
    return team["teamId"]


async def _wait_for_ends(hub: FilledHub) -> None:
    async with asyncio.timeout(_WAIT):
        while True:
            runs = (await hub.request("GET", "/v1/team-runs?limit=100"))["items"]
            if all(run["status"] == "finished" for run in runs):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await hub.hub.services.events.changed.wait()


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_filled_hub(Path(folder), 1) as hub:
            devices, team_id = _Devices(hub), await _create_team(hub)
            async with devices.run():
                start = time.perf_counter()
                for number in range(_RUNS):
                    body = {"teamId": team_id, "goal": f"goal {number}"}
                    await hub.request("POST", "/v1/team-runs", body)
                await _wait_for_ends(hub)
                seconds = time.perf_counter() - start
    by_step = [devices.latencies[number] for number in range(1, TEAM_TASKS + 1)]
    first, last = list(chain(*by_step[:_TENTH])), list(chain(*by_step[-_TENTH:]))
    every = sorted(chain(*by_step))
    return [
        Row(
            name="decisions of supervising agents", value=devices.routes / seconds, unit="routes/s"
        ),
        Row(
            name="from a decision to its worker, median",
            value=statistics.median(every) * 1_000,
            unit="ms",
        ),
        Row(
            name="from a decision to its worker, p99",
            value=every[int(len(every) * 0.99)] * 1_000,
            unit="ms",
        ),
        Row(
            name="last tenth of a run, median",
            value=statistics.median(last) * 1_000,
            unit="ms",
            ratio=statistics.median(last) / statistics.median(first),
            baseline="first tenth",
            goal="≤ 1.3×",
        ),
    ]


def rows() -> list[Row]:
    """What runs of teams cost."""
    return asyncio.run(_measure())
