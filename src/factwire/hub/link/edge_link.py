"""`EdgeLink`: sends devices what their queues hold, and takes in what Edges say of it.

A queue is sent to the socket of its own device and to no other. Whatever an Edge says counts for
its own deliveries and tasks alone, also for those from before it joined again, and the same again
changes nothing. A task of which its Edge says nothing for a while is unknown until the Edge speaks
again. `tick` does everything that is due at a time, as `overdue` lists it; nothing here reads
another clock than the one that was given.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol

import msgspec
from sqlalchemy import Select, and_, not_, or_, select, update
from sqlalchemy.engine import RowMapping

from factwire.edge.hub_frames import (
    UNSET,
    AgentDone,
    AgentFailed,
    DeliveryAck,
    EdgeHeartbeat,
    EndAck,
    FramePayload,
    RelayAnswer,
    RelayCommandAcknowledged,
    SyncAck,
    SyncUploaded,
)
from factwire.hub.frames.event_log import EventLog, HubChange
from factwire.hub.frames.frame_types import FRAMES
from factwire.hub.limits import (
    DELIVERY_ATTEMPTS,
    LINK_TICK_SECONDS,
    RELAY_ANSWERS_SECONDS,
    STOP_SECONDS,
    TASK_SILENCE_SECONDS,
)
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.link.deliveries import (
    FRAME_OF_KIND,
    MILLISECONDS,
    RIGHT_ENDED,
    defer_delivery,
    end_delivery,
    find_delivery,
    find_due,
    has_stop,
    may_send,
    move_delivery,
    note_sending,
    requeue_stops,
    retry_dispatches,
    retry_now,
)
from factwire.hub.people.devices import note_seen
from factwire.hub.records.device_records import (
    find_current_device,
    is_of_edge,
    select_edge_id,
)
from factwire.hub.records.device_tables import devices
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.hub.records.link_tables import OPEN_STATES, STOPS, agent_tasks, deliveries
from factwire.serving.logs import logger

_BATCH: Final = 100
"""Rows of one kind that one look of the scheduler changes, each look in one transaction."""

_log: Final = logger("factwire.hub.link")


class LinkedDevice(Protocol):
    """A device with an open socket."""

    @property
    def device_id(self) -> str: ...

    @property
    def edge_id(self) -> str: ...


class DeviceSockets(Protocol):
    """The open sockets of devices, in this process."""

    on_edge_frame: list[Any]
    on_edge_connected: list[Any]
    on_edge_gone: list[Any]

    def is_connected(self, device_id: str) -> bool: ...

    def send_to_device(self, device_id: str, type_: str, payload: FramePayload) -> bool: ...


class RunFollower(Protocol):
    """Tells what the runs of an Edge's tasks do, read off its mirror."""

    def follow(self, edge_id: str) -> None:
        """Look for what there is to tell of an Edge's tasks, now and as the mirror grows."""
        ...

    async def read_end(self, edge_id: str) -> int:
        """The last seq that the mirror of an Edge has on disk."""
        ...


DecisionListener = Callable[[HubChange, RowMapping, DeliveryAck], Awaitable[None]]
"""Told in its transaction what an Edge answered to a decision, with the row of its delivery."""


LossListener = Callable[[HubChange, RowMapping, str], Awaitable[None]]
"""Told in its transaction that a decision did not reach its device, and the code for why."""


AnswerListener = Callable[[HubChange, RowMapping, RelayAnswer], Awaitable[None]]
"""Told in its transaction what an Edge answered to a request, with the row of its delivery."""


BegunListener = Callable[[HubChange, RowMapping, str], Awaitable[None]]
"""Told in its transaction that the run of a task is known, with the row of the task before that."""


class Overdue(msgspec.Struct, frozen=True):
    """Rows that something is to be done about at a time, and what. An index leads to them, so that
    it costs nothing how long the past is.
    """

    select: Callable[[int], Select[Any]]
    settle: Callable[[HubChange, RowMapping], Awaitable[object]]


class EdgeLink:
    """The link of a Hub with the devices that are connected to this process."""

    def __init__(
        self,
        database: HubDatabase,
        events: EventLog,
        sockets: DeviceSockets,
        *,
        clock: Callable[[], float],
        follower: RunFollower,
        messages: tasks.AgentMessages | None = None,
    ) -> None:
        self.on_decision: list[DecisionListener] = []
        self.on_decision_lost: list[LossListener] = []
        self.on_begun: list[BegunListener] = []
        self.on_answer: list[AnswerListener] = []
        self._database = database
        self._events = events
        self._sockets = sockets
        self._clock = clock
        self._follower = follower
        self._messages = messages
        self.overdue: list[Overdue] = [
            Overdue(_wait_too_long, _expire_task),
            Overdue(_take_too_long, _time_task_out),
            Overdue(_are_silent, _mark_unknown),
            Overdue(_are_not_stopped, _mark_unknown),
            Overdue(_are_unconfirmed, _close_task),
            Overdue(_have_waiting_end, _emit_end),
            Overdue(_have_expired, self._expire_delivery),
            Overdue(_are_of_revoked_device, self._drain_revoked_device),
            Overdue(_are_not_allowed, self._expire_unauthorized),
            Overdue(_have_old_answer, _remove_answer),
        ]
        self._next_look = 0
        self._connected: dict[str, LinkedDevice] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._wake = asyncio.Event()
        self._answered = asyncio.Event()
        self._handlers: dict[str, Callable[[LinkedDevice, Any], Awaitable[None]]] = {
            "edge.heartbeat": self._take_heartbeat,
            "delivery.ack": self._take_ack,
            "relay.command.acknowledged": self._take_relayed,
            "agent.done": self._take_end,
            "agent.failed": self._take_end,
            "sync.event.uploaded": self._take_uploaded,
        }

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Send and take in for as long as the block lasts."""
        self._sockets.on_edge_frame.append(self.take_frame)
        self._sockets.on_edge_connected.append(self.note_connected)
        self._sockets.on_edge_gone.append(self.note_gone)
        self._events.on_commit.append(self._wake.set)
        ticking = asyncio.create_task(self._run_ticks(), name="factwire-hub-link")
        try:
            yield
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)
            self._events.on_commit.remove(self._wake.set)
            self._sockets.on_edge_gone.remove(self.note_gone)
            self._sockets.on_edge_connected.remove(self.note_connected)
            self._sockets.on_edge_frame.remove(self.take_frame)

    async def _run_ticks(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.tick()
            except RecordsUnavailable as error:
                _log.warning("link_unavailable", detail=str(error))
            except Exception:  # noqa: BLE001 - logged; what is due for others must go on
                _log.exception("link_failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(LINK_TICK_SECONDS):
                    await self._wake.wait()

    async def tick(self) -> None:
        """Do what is due by now."""
        await self._settle_overdue()
        for device_id in await self._find_devices_with_work():
            await self._send_queue(device_id)

    def _now(self) -> int:
        return math.floor(self._clock() * MILLISECONDS)

    async def note_connected(self, device: LinkedDevice) -> None:
        """Send a device that has come whatever it has not acknowledged, in order."""
        self._connected[device.device_id] = device
        now, own = self._now(), deliveries.c.device_id == device.device_id
        async with self._database.write() as connection:
            await requeue_stops(connection, now, own)
            await retry_now(connection, device.device_id, now)
        await self._send_queue(device.device_id)
        self._follow(device)

    async def note_gone(self, device: LinkedDevice) -> None:
        """Keep what there is for a device until it is back."""
        # A socket that a newer one of the same device ended is gone after that one came.
        if not self._sockets.is_connected(device.device_id):
            self._connected.pop(device.device_id, None)

    def _follow(self, device: LinkedDevice) -> None:
        self._follower.follow(device.edge_id)

    async def _find_devices_with_work(self) -> list[str]:
        if not self._connected:
            return []
        query = (
            select(deliveries.c.device_id)
            .where(
                deliveries.c.device_id.in_(list(self._connected)),
                deliveries.c.state.in_(OPEN_STATES),
                deliveries.c.next_at <= self._now(),
            )
            .distinct()
        )
        async with self._database.read() as connection:
            return list((await connection.execute(query)).scalars())

    async def _send_queue(self, device_id: str) -> None:
        """Send what a device is to be sent now, each as noted before it is sent."""
        async with self._locks.setdefault(device_id, asyncio.Lock()):
            now = self._now()
            async with self._database.read() as connection:
                if not await find_due(connection, device_id, now):
                    return
            async with self._events.change() as change:
                due = await find_due(change.connection, device_id, now)
                noted = await note_sending(change.connection, due, now)
                for row in due:
                    if row["attempts"] >= DELIVERY_ATTEMPTS:
                        await self._dead_letter(change, row)
            for row in noted:
                if not self._send(device_id, row):
                    break

    def _send(self, device_id: str, row: RowMapping) -> bool:
        name = FRAME_OF_KIND[row["kind"]]
        payload = msgspec.json.decode(row["payload"], type=FRAMES[name].payload)
        return self._sockets.send_to_device(device_id, name, payload)

    async def _dead_letter(self, change: HubChange, row: RowMapping) -> None:
        """Make a dead letter of a delivery that a connected device does not acknowledge."""
        await end_delivery(change.connection, row, "dead", change.now, code="not_acknowledged")
        _log.warning("delivery_dead", device_id=row["device_id"], kind=row["kind"])
        await self._report_loss(change, row, "not_acknowledged")
        task = await _lock_task(change, row["task_id"])
        if task is not None and row["kind"] == "dispatch":
            await tasks.move_task(change, task, "dead")

    async def _report_loss(self, change: HubChange, row: RowMapping, code: str) -> None:
        if row["kind"] == "control":
            for listener in self.on_decision_lost:
                await listener(change, row, code)

    async def _settle_overdue(self) -> None:
        """Close what waited too long, stop what takes too long, doubt what is silent, and so on."""
        now = self._now()
        if now < self._next_look:
            return
        self._next_look = now + MILLISECONDS
        if not await self._find_overdue(now):
            return
        async with self._events.change() as change:
            for each in self.overdue:
                found = await change.connection.execute(each.select(now).limit(_BATCH))
                for row in found.mappings().all():
                    await each.settle(change, row)

    async def _find_overdue(self, now: int) -> bool:
        """Whether anything is due, by reads alone, which wait for nobody."""
        async with self._database.read() as connection:
            for each in self.overdue:
                if (await connection.execute(each.select(now).limit(1))).first() is not None:
                    return True
        return False

    async def _expire_delivery(self, change: HubChange, row: RowMapping) -> None:
        await end_delivery(change.connection, row, "expired", change.now, code="expired")
        await self._report_loss(change, row, "delivery_expired")

    async def _drain_revoked_device(self, change: HubChange, row: RowMapping) -> None:
        """Take from the queue of a device that was revoked. Where its Edge has joined again, that
        gets what is not about the device, and says whether it has begun a task.
        """
        current = await find_current_device(change.connection, select_edge_id(row["device_id"]))
        if current is not None and row["kind"] in (*STOPS, "control"):
            await move_delivery(change.connection, row, current["device_id"], change.now)
            return
        code = "device_revoked"
        await end_delivery(change.connection, row, "expired", change.now, code=code)
        await self._report_loss(change, row, code)
        task = await _lock_task(change, row["task_id"])
        if task is None:
            return
        if row["kind"] in STOPS:
            await tasks.close_unconfirmed(change, task, code)
        elif row["kind"] == "dispatch" and row["attempts"] > 0 and current is not None:
            await tasks.move_task(change, task, "unknown")
        elif row["kind"] == "dispatch":
            await tasks.fail_task(change, task, code, "the device can no longer be reached")

    async def _expire_unauthorized(self, change: HubChange, row: RowMapping) -> None:
        """Close what waits for a device and is from somebody who may no longer do it. A task that
        its device may have heard of is stopped there.
        """
        await end_delivery(change.connection, row, "expired", change.now, code=RIGHT_ENDED)
        await self._report_loss(change, row, RIGHT_ENDED)
        task = await _lock_task(change, row["task_id"])
        if task is None or row["kind"] != "dispatch":
            return
        if row["attempts"] == 0:
            message = "who gave this task may no longer do so"
            await tasks.fail_task(change, task, RIGHT_ENDED, message)
        elif task["closing"] is None:
            await tasks.stop_task(change, task, "cancel")

    async def take_frame(self, device: LinkedDevice, type_: str, payload: FramePayload) -> None:
        """Take in what an Edge says."""
        handle = self._handlers.get(type_)
        if handle is not None:
            await handle(device, payload)

    async def _take_heartbeat(self, device: LinkedDevice, frame: EdgeHeartbeat) -> None:
        async with self._events.change() as change:
            await note_seen(change, device.device_id, version=frame.version, agents=frame.agents)
            named = agent_tasks.c.task_id.in_(frame.tasks)
            own = is_of_edge(agent_tasks.c.device_id, device.device_id)
            heard = update(agent_tasks).where(named, own).values(heard_at=change.now)
            found = await change.connection.execute(heard.returning(agent_tasks))
            for row in found.mappings().all():
                if row["status"] in ("delivered", "unknown") and row["delivered_at"] is not None:
                    await tasks.move_task(change, row, "running")
                elif tasks.is_unconfirmed(row) and not await has_stop(
                    change.connection, row["task_id"]
                ):
                    # It goes on with what nobody waits for any more.
                    await tasks.send_stop(change, row, row["closing"] or "cancel")
        self._follow(device)

    async def _take_ack(self, device: LinkedDevice, ack: DeliveryAck) -> None:
        async with self._events.change() as change:
            row = await find_delivery(change.connection, ack.delivery_id, device.device_id)
            if row is None or row["state"] in ("acked", "refused"):
                return
            if ack.later is True:
                await defer_delivery(change.connection, row)
                return
            is_refused = ack.refused is not UNSET
            await end_delivery(
                change.connection,
                row,
                "refused" if is_refused else "acked",
                change.now,
                code=None if ack.refused is UNSET else ack.refused,
                answer=ack,
            )
            task = await _lock_task(change, row["task_id"])
            if row["kind"] == "control":
                for listener in self.on_decision:
                    await listener(change, row, ack)
            elif task is not None and row["kind"] == "dispatch":
                await _take_dispatch_ack(change, task, ack)
                if isinstance(ack.edge_run_id, str):
                    for listener in self.on_begun:
                        await listener(change, task, ack.edge_run_id)
            elif task is not None and is_refused:
                await tasks.close_unbegun(change, task, str(ack.refused))
        self._answered.set()
        self._follow(device)

    async def _take_relayed(self, device: LinkedDevice, frame: RelayCommandAcknowledged) -> None:
        if frame.uploaded:
            # The answer itself came before, by `take_answer`.
            return
        content = b"" if frame.body is None else msgspec.json.encode(frame.body)
        head = {"status": frame.status, "headers": frame.headers}
        await self._end_relay(
            device.device_id, frame.command_id, head, None if frame.expired else content
        )

    async def take_answer(self, device_id: str, delivery_id: str, answer: RelayAnswer) -> bool:
        """Keep an Edge's answer to a relayed request for whoever waits; whether it has asked."""
        head = {"status": answer.status, "headers": answer.headers}
        return await self._end_relay(device_id, delivery_id, head, answer.content)

    async def _end_relay(
        self, device_id: str, delivery_id: str, head: dict[str, Any], content: bytes | None
    ) -> bool:
        async with self._events.change() as change:
            row = await find_delivery(change.connection, delivery_id, device_id)
            if row is None or row["kind"] != "relay":
                return False
            if row["state"] not in ("acked", "refused"):
                await end_delivery(
                    change.connection, row, "acked", change.now, answer=head, content=content
                )
                if content is not None:
                    answer = RelayAnswer(**head, content=content)
                    for listener in self.on_answer:
                        await listener(change, row, answer)
        self._answered.set()
        return True

    async def wait_for_answer(self, delivery_id: str, until: float) -> RowMapping:
        """A delivery once it is answered or given up, or as it is at a time of the loop's clock."""
        loop = asyncio.get_running_loop()
        query = select(deliveries).where(deliveries.c.delivery_id == delivery_id)
        while True:
            self._answered.clear()
            async with self._database.read() as connection:
                row = (await connection.execute(query)).mappings().one()
            if row["state"] not in OPEN_STATES or loop.time() >= until:
                return row
            with suppress(TimeoutError):
                # The answer may come to another process.
                async with asyncio.timeout(min(LINK_TICK_SECONDS, until - loop.time())):
                    await self._answered.wait()

    async def _take_end(self, device: LinkedDevice, end: AgentDone | AgentFailed) -> None:
        has_mirror = await self._follower.read_end(device.edge_id) > 0
        async with self._events.change() as change:
            task = await tasks.take_end(change, device.device_id, end, has_mirror=has_mirror)
            await retry_dispatches(change.connection, device.device_id, change.now)
            if task is not None and task.session_id is not None and self._messages is not None:
                await self._messages(change, task, _describe_end(task), True)  # noqa: FBT003
        self._sockets.send_to_device(device.device_id, "end.ack", EndAck(task_id=end.task_id))
        self._follow(device)

    async def _take_uploaded(self, device: LinkedDevice, frame: SyncUploaded) -> None:
        end = await self._follower.read_end(device.edge_id)
        acked = SyncAck(acked_seq=min(end, frame.to_seq))
        self._sockets.send_to_device(device.device_id, "sync.ack", acked)
        self._follow(device)


def _describe_end(task: tasks.AgentTask) -> str:
    if task.result_summary is not None:
        return task.result_summary
    return str((task.error or {}).get("message") or task.status)


async def _take_dispatch_ack(change: HubChange, task: RowMapping, ack: DeliveryAck) -> None:
    if ack.refused is not UNSET:
        if task["closing"] is not None:
            await tasks.close_unbegun(change, task, ack.refused)
        else:
            message = "the device refused the task" if ack.message is UNSET else ack.message
            await tasks.fail_task(change, task, ack.refused, message)
        return
    await tasks.move_task(
        change,
        task,
        "delivered",
        edge_run_id=None if ack.edge_run_id is UNSET else ack.edge_run_id,
        thread_id=task["thread_id"] if ack.thread_id is UNSET else ack.thread_id,
        delivered_at=change.now,
        heard_at=change.now,
        deadline_at=change.now + task["timeout_seconds"] * MILLISECONDS,
    )


async def _lock_task(change: HubChange, task_id: str | None) -> RowMapping | None:
    query = select(agent_tasks).where(agent_tasks.c.task_id == task_id).with_for_update()
    return (await change.connection.execute(query)).mappings().first()


async def _expire_task(change: HubChange, row: RowMapping) -> None:
    await tasks.stop_task(change, row, "expire")


async def _time_task_out(change: HubChange, row: RowMapping) -> None:
    await tasks.stop_task(change, row, "timeout")


async def _mark_unknown(change: HubChange, row: RowMapping) -> None:
    await tasks.move_task(change, row, "unknown")


async def _close_task(change: HubChange, row: RowMapping) -> None:
    await tasks.close_unconfirmed(change, row, "stop_unconfirmed")


async def _emit_end(change: HubChange, row: RowMapping) -> None:
    await tasks.emit_end(change, row["task_id"])


async def _remove_answer(change: HubChange, row: RowMapping) -> None:
    own = deliveries.c.position == row["position"]
    await change.connection.execute(update(deliveries).where(own).values(content=None))


def _wait_too_long(now: int) -> Select[Any]:
    return select(agent_tasks).where(
        agent_tasks.c.status.in_(("queued", "dead", "unknown")),
        agent_tasks.c.expires_at <= now,
        agent_tasks.c.delivered_at.is_(None),
        agent_tasks.c.closing.is_(None),
    )


def _take_too_long(now: int) -> Select[Any]:
    return select(agent_tasks).where(
        agent_tasks.c.status.in_(("delivered", "running", "unknown")),
        agent_tasks.c.deadline_at <= now,
        agent_tasks.c.closing.is_(None),
    )


def _are_silent(now: int) -> Select[Any]:
    return select(agent_tasks).where(
        agent_tasks.c.status.in_(("delivered", "running")),
        agent_tasks.c.heard_at <= now - TASK_SILENCE_SECONDS * MILLISECONDS,
    )


def _are_not_stopped(now: int) -> Select[Any]:
    return select(agent_tasks).where(
        agent_tasks.c.status.in_(("queued", "dead")),
        agent_tasks.c.closing_at <= now - TASK_SILENCE_SECONDS * MILLISECONDS,
    )


def _are_unconfirmed(now: int) -> Select[Any]:
    return select(agent_tasks).where(
        agent_tasks.c.status.in_(("queued", "dead", "delivered", "running", "unknown")),
        agent_tasks.c.closing_at <= now - STOP_SECONDS * MILLISECONDS,
    )


def _have_waiting_end(now: int) -> Select[Any]:
    return select(agent_tasks).where(agent_tasks.c.end_due_at <= now)


def _have_expired(now: int) -> Select[Any]:
    return select(deliveries).where(
        deliveries.c.state.in_((*OPEN_STATES, "dead")), deliveries.c.expires_at <= now
    )


def _are_of_revoked_device(_: int) -> Select[Any]:
    is_open = deliveries.c.state.in_(OPEN_STATES)
    is_dead_stop = and_(deliveries.c.state == "dead", deliveries.c.kind.in_(STOPS))
    return (
        select(deliveries)
        .join(devices, devices.c.device_id == deliveries.c.device_id)
        .where(or_(is_open, is_dead_stop), devices.c.revoked_at.is_not(None))
    )


def _are_not_allowed(_: int) -> Select[Any]:
    is_open = deliveries.c.state.in_(OPEN_STATES)
    return select(deliveries).where(is_open, not_(may_send()))


def _have_old_answer(now: int) -> Select[Any]:
    return select(deliveries).where(
        deliveries.c.content.is_not(None),
        deliveries.c.ended_at <= now - RELAY_ANSWERS_SECONDS * MILLISECONDS,
    )
