"""The real link of a Hub and the real links of some Edges, in one process, with a clock and a
network of the test's own.

Frames wait in two queues of a connection until the test lets one of them arrive. A connection that
is cut loses what is in its queues. An Edge that is killed forgets all but its files and its
journal, of which here is nothing but which runs there are; a Hub that is killed forgets all but its
database.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import msgspec
import pytest
from sqlalchemy import event, func, insert, select, update

from factwire.edge import link_store
from factwire.edge.hub_frames import (
    AgentControl,
    AgentDispatch,
    FramePayload,
    RelayAnswer,
    RelayCommandCreated,
)
from factwire.edge.hub_link import HubLink, LinkedRun, RunEnd
from factwire.edge.link_store import LinkStore
from factwire.facts import Person
from factwire.hub.frames.event_log import EventLog
from factwire.hub.frames.frame_types import FRAMES
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.link.agent_tasks import NewTask
from factwire.hub.link.edge_link import EdgeLink
from factwire.hub.records.device_records import bind_edge
from factwire.hub.records.device_tables import devices, edges
from factwire.hub.records.event_tables import events
from factwire.hub.records.hub_database import HubDatabase, open_database
from factwire.hub.records.hub_tables import people
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.records.link_tables import agent_tasks
from factwire.serving.idempotency import derive_id
from tests.hub.hubs import SteppedClock
from tests.hub.test_hub_records import describe_device, describe_edge, person

OWNER = "usr_1"
ORIGIN = ActionOrigin(via="test", address="")
REST_SECONDS = 120
"""Seconds after which something that is under way counts as stuck."""


class PlainWork:
    """The runs of an Edge as its journal has them; `started` has each start that was no repeat."""

    edge_id = "edge_1"

    def __init__(self) -> None:
        self.runs: dict[str, str | None] = {}
        self.task_of: dict[str, str] = {}
        self.started: list[str] = []
        self.changed = asyncio.Event()
        self.is_watched = False

    def list_agents(self) -> list[str]:
        return ["demo"]

    def name_run(self, delivery_id: str) -> str:
        return derive_id("run", delivery_id)

    async def start(self, dispatch: AgentDispatch, by: Person) -> LinkedRun:
        assert by.via == "hub"
        run_id = self.name_run(dispatch.delivery_id)
        await asyncio.sleep(0)
        if run_id not in self.runs:
            self.runs[run_id] = None
            self.task_of[run_id] = dispatch.task_id
            self.started.append(dispatch.task_id)
        await asyncio.sleep(0)
        return LinkedRun(run_id=run_id, thread_id=f"thr_{run_id}")

    def find(self, delivery_id: str) -> LinkedRun | None:
        run_id = self.name_run(delivery_id)
        return LinkedRun(run_id=run_id, thread_id=f"thr_{run_id}") if run_id in self.runs else None

    async def stop(self, run_id: str, reason: str, by: Person) -> None:
        assert (reason, by.via) in {("cancelled", "hub"), ("timed_out", "hub")}
        await asyncio.sleep(0)
        if self.runs[run_id] is None:
            self.finish(run_id, "cancelled")

    def finish(self, run_id: str, how: str = "finished") -> None:
        self.runs[run_id] = how
        self.changed.set()

    async def decide(self, control: AgentControl, by: Person) -> None:
        raise NotImplementedError

    async def relay(self, command: RelayCommandCreated, by: Person) -> RelayAnswer:
        raise NotImplementedError

    async def read_end(self, run: LinkedRun) -> RunEnd | None:
        how = self.runs[run.run_id]
        if how is None:
            return None
        error = None if how == "finished" else {"code": how, "message": how}
        return RunEnd(summary=run.run_id, usage={}, error=error)

    async def follow_ends(self) -> AsyncIterator[None]:
        while True:
            self.changed.clear()
            yield None
            self.is_watched = True
            await self.changed.wait()
            self.is_watched = False


class Wire:
    """A connection: frames on their way, each way."""

    def __init__(self) -> None:
        self.to_edge: deque[tuple[str, bytes]] = deque()
        self.to_hub: deque[tuple[str, bytes]] = deque()

    async def send(self, type_: str, payload: FramePayload) -> None:
        self.to_hub.append((type_, msgspec.json.encode(payload)))


class Device(msgspec.Struct, frozen=True, kw_only=True):
    device_id: str
    edge_id: str = "edge_1"


class WiredSockets:
    """The sockets of a Hub; a newer one of a device ends the one before."""

    def __init__(self) -> None:
        self.on_edge_frame: list[Any] = []
        self.on_edge_connected: list[Any] = []
        self.on_edge_gone: list[Any] = []
        self.wires: dict[str, Wire] = {}

    def is_connected(self, device_id: str) -> bool:
        return device_id in self.wires

    def send_to_device(self, device_id: str, type_: str, payload: FramePayload) -> bool:
        wire = self.wires.get(device_id)
        if wire is None:
            return False
        wire.to_edge.append((type_, msgspec.json.encode(payload)))
        return True


class NoStreams:
    """Follows no mirror: here are none."""

    def follow(self, edge_id: str) -> None:
        assert edge_id

    async def read_end(self, edge_id: str) -> int:
        assert edge_id
        return 0


class EdgeSide:
    """An Edge that is up or down, and its connection, if it has one. `dispatched` has the tasks of
    its frames, each with the device that the Edge was then.
    """

    def __init__(self, folder: Path, device_id: str) -> None:
        self.device = Device(device_id=device_id, edge_id=f"edge_{device_id}")
        self.dispatched: list[tuple[str, str]] = []
        self.work = PlainWork()
        self.wire: Wire | None = None
        self.link: HubLink | None = None
        self.pauses: list[float] = []
        self._folder = folder
        self._stack = AsyncExitStack()
        folder.mkdir()

    @property
    def is_up(self) -> bool:
        return self.link is not None

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        store = await self._stack.enter_async_context(LinkStore(self._folder))
        # Nothing here loses power, and a test has no time for a disk.
        assert store._database is not None
        store._database.pragma("synchronous", "off")

        async def upload(delivery_id: str, answer: RelayAnswer) -> None:
            raise NotImplementedError

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)
            await asyncio.sleep(0)

        self.link = HubLink(self.work, store, upload, sleep=sleep)
        await self._stack.enter_async_context(self.link.run())

    async def kill(self) -> None:
        self.link, self.wire = None, None
        await self._stack.aclose()
        self.work.is_watched = False

    @property
    def is_at_rest(self) -> bool:
        """Whether the Edge waits for something to happen."""
        if self.link is None:
            return True
        is_watching = self.work.is_watched and not self.work.changed.is_set()
        return is_watching and len(self.link._tasks) == 1

    async def come_to_rest(self) -> None:
        """Let what the Edge does go on until it waits."""
        async with asyncio.timeout(REST_SECONDS):
            while not self.is_at_rest:  # noqa: ASYNC110 - it has no event for that
                await asyncio.sleep(0)

    async def take_steps(self, number: int) -> None:
        """Let what the Edge does go on for so many steps."""
        for _ in range(number):
            await asyncio.sleep(0)


class LinkedHub:
    """A Hub that is up or down, with its devices."""

    def __init__(self, database: HubDatabase, clock: SteppedClock, folder: Path) -> None:
        self.database = database
        self.clock = clock
        self.events = EventLog(database, clock)
        self.sides: list[EdgeSide] = []
        self.created: list[tuple[str, str]] = []
        self._folder = folder
        self._number = 0
        self.start()

    def start(self) -> None:
        self.sockets = WiredSockets()
        self.link = EdgeLink(
            self.database, self.events, self.sockets, clock=self.clock, follower=NoStreams()
        )

    def kill(self) -> None:
        """Forget everything but the database; every connection is cut."""
        for side in self.sides:
            self._drop(side)
        self.start()

    async def add_devices(self, number: int) -> None:
        """Fresh devices for one schedule."""
        self.sides = []
        self.created = []
        for _ in range(number):
            self._number += 1
            device_id = f"dev_{self._number}"
            async with self.database.write() as connection:
                await connection.execute(insert(devices).values(describe_device(device_id)))
                await connection.execute(insert(edges).values(describe_edge(device_id)))
            side = EdgeSide(self._folder / device_id, device_id)
            await side.start()
            self.sides.append(side)

    async def join_again(self, side: EdgeSide) -> None:
        """Have an Edge be another device, as after it has joined again."""
        await self.disconnect(side)
        self._number += 1
        former, device_id = side.device, f"dev_{self._number}"
        side.device = Device(device_id=device_id, edge_id=former.edge_id)
        values = {**describe_device(device_id), "edge_id": former.edge_id}
        async with self.events.change() as change:
            await change.connection.execute(insert(devices).values(values))
            await change.connection.execute(_revoke(former, change.now))
            await bind_edge(change.connection, former.edge_id, OWNER, device_id, change.now)

    async def revoke(self, side: EdgeSide) -> None:
        await self.disconnect(side)
        async with self.events.change() as change:
            await change.connection.execute(_revoke(side.device, change.now))

    async def connect(self, side: EdgeSide) -> None:
        """A socket of a device, in the place of any that it has."""
        assert side.link is not None
        device_id = side.device.device_id
        earlier = side.wire
        side.wire = self.sockets.wires[device_id] = Wire()
        await self.link.note_connected(side.device)
        if earlier is not None:
            side.link.disconnect(earlier.send)
            await self.link.note_gone(side.device)
        await side.link.connect(side.wire.send, device_id)

    def _drop(self, side: EdgeSide) -> None:
        if side.wire is not None and side.link is not None:
            side.link.disconnect(side.wire.send)
        side.wire = None
        self.sockets.wires.pop(side.device.device_id, None)

    async def disconnect(self, side: EdgeSide) -> None:
        self._drop(side)
        await self.link.note_gone(side.device)

    async def kill_edge(self, side: EdgeSide) -> None:
        await self.disconnect(side)
        await side.kill()

    async def create(self, side: EdgeSide, **more: Any) -> str:
        device_id = side.device.device_id
        new = NewTask(
            person_id=OWNER, device_id=device_id, agent_type="demo", prompt="go on", **more
        )
        async with self.events.change() as change:
            task = await tasks.create_task(change, new, ORIGIN)
        self.created.append((task.task_id, device_id))
        await self.link.tick()
        return task.task_id

    async def cancel(self, task_id: str) -> None:
        async with self.events.change() as change:
            row = await tasks.find_task(change.connection, OWNER, task_id)
            if row["status"] not in tasks.TASK_ENDS:
                await tasks.cancel_task(change, OWNER, task_id, ORIGIN)
        await self.link.tick()

    async def pass_to_edge(self, side: EdgeSide) -> bool:
        """Let the next frame for an Edge arrive."""
        if side.wire is None or side.link is None or not side.wire.to_edge:
            return False
        type_, payload = side.wire.to_edge.popleft()
        if type_ == "agent.dispatch":
            task_id = msgspec.json.decode(payload, type=AgentDispatch).task_id
            side.dispatched.append((task_id, side.device.device_id))
        side.link.take_frame(type_, payload)
        return True

    async def pass_to_hub(self, side: EdgeSide) -> bool:
        """Let the next frame of an Edge arrive."""
        if side.wire is None or not side.wire.to_hub:
            return False
        type_, payload = side.wire.to_hub.popleft()
        decoded = msgspec.json.decode(payload, type=FRAMES[type_].payload)
        await self.link.take_frame(side.device, type_, decoded)
        return True

    async def settle(self) -> None:
        """Let everything arrive that is on its way, and all that follows from it."""
        moved = True
        while moved:
            moved = False
            await self.link.tick()
            for side in self.sides:
                while await self.pass_to_edge(side):
                    moved = True
                await side.come_to_rest()
                while await self.pass_to_hub(side):
                    moved = True

    async def bring_back(self) -> None:
        """Everything up, connected, and at rest."""
        for side in self.sides:
            if not side.is_up:
                await side.start()
            if side.wire is None:
                await self.connect(side)
        await self.settle()

    async def close_devices(self) -> None:
        for side in self.sides:
            await self.kill_edge(side)

    async def read_tasks(self) -> dict[str, Any]:
        query = select(agent_tasks).where(
            agent_tasks.c.task_id.in_([task_id for task_id, _ in self.created])
        )
        async with self.database.read() as connection:
            rows = (await connection.execute(query)).mappings()
            return {row["task_id"]: row for row in rows}

    async def count_letters(self) -> int:
        """How many deliveries became dead letters, whatever became of them then."""
        query = select(func.count()).where(
            events.c.type == "agent.stream", events.c.payload.like('%"status":"dead"%')
        )
        async with self.database.read() as connection:
            return (await connection.execute(query)).scalar_one()

    async def read_ends(self) -> list[str]:
        """The tasks of this schedule whose ends were told, each as often as it was."""
        query = select(events.c.payload).where(events.c.type.in_(("agent.done", "agent.failed")))
        own = {task_id for task_id, _ in self.created}
        async with self.database.read() as connection:
            found = (await connection.execute(query)).scalars()
            ends = [msgspec.json.decode(payload)["task_id"] for payload in found]
        return [task_id for task_id in ends if task_id in own]


def _revoke(device: Device, now: int) -> Any:
    own = devices.c.device_id == device.device_id
    return update(devices).where(own).values(revoked_at=now)


async def _execute_here(
    connection: aiosqlite.Connection, work: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    assert connection._running
    await asyncio.sleep(0)
    return work(*args, **kwargs)


async def _run_here(work: Callable[..., Any], *args: Any) -> Any:
    await asyncio.sleep(0)
    return work(*args)


@contextmanager
def _without_threads() -> Generator[None]:
    """Have databases do their work in the thread of the loop, each statement after a turn of it:
    one thing is done after another here, and most of the time would be spent on changing threads.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiosqlite.Connection, "_execute", _execute_here)
        patch.setattr(link_store, "run_disk_work", _run_here)
        yield


@asynccontextmanager
async def linked_hub(folder: Path) -> AsyncGenerator[LinkedHub]:
    with _without_threads():
        async with _open_linked_hub(folder) as hub:
            yield hub


@asynccontextmanager
async def _open_linked_hub(folder: Path) -> AsyncGenerator[LinkedHub]:
    async with open_database(f"sqlite:{folder / 'hub.db'}") as database:

        def hurry(connection: Any, _: object) -> None:
            connection.execute("PRAGMA synchronous = OFF")

        event.listen(database._engine.sync_engine, "connect", hurry)
        await database._engine.dispose()
        async with database.write() as connection:
            await connection.execute(insert(people).values(person(1)))
        hub = LinkedHub(database, SteppedClock(), folder)
        try:
            yield hub
        finally:
            await hub.close_devices()
