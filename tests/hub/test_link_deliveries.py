"""Deliveries and tasks over time, the same on SQLite and PostgreSQL: retries, dead letters, expiry,
silence, timeouts, and what a device may say.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import insert, select

from factwire.edge.hub_frames import (
    AgentDispatch,
    AgentDone,
    AgentFailed,
    DeliveryAck,
    EdgeHeartbeat,
    RelayCommandCreated,
)
from factwire.edge.hub_link import LinkedRun
from factwire.edge.link_store import LinkStore
from factwire.facts import Person
from factwire.hub.limits import (
    DELIVERY_ATTEMPTS,
    STOP_SECONDS,
    STOP_SECONDS_MOST,
    TASK_WAIT_SECONDS,
)
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.link import deliveries as delivery_queue
from factwire.hub.link import edge_link
from factwire.hub.link.deliveries import NewDelivery
from factwire.hub.records.grant_records import NeededRight
from factwire.hub.records.hub_database import open_database
from factwire.hub.records.hub_tables import people
from factwire.hub.records.link_tables import OPEN_STATES, deliveries
from factwire.serving.asgi import Problem
from tests.hub.hubs import SteppedClock
from tests.hub.linked_devices import ORIGIN, OWNER, EdgeSide, LinkedHub
from tests.hub.test_hub_records import create_postgres_database, person
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio


class LinkContract:
    """What holds on every database."""

    @pytest_asyncio.fixture
    async def hub(self, url: str, tmp_path: Path) -> AsyncGenerator[LinkedHub]:
        async with open_database(url) as database:
            async with database.write() as connection:
                await connection.execute(insert(people).values(person(1)))
            hub = LinkedHub(database, SteppedClock(), tmp_path)
            await hub.add_devices(2)
            yield hub
            await hub.close_devices()

    async def status(self, hub: LinkedHub, task_id: str) -> str:
        return (await hub.read_tasks())[task_id]["status"]

    async def delivery(self, hub: LinkedHub, task_id: str, kind: str = "dispatch") -> Any:
        query = select(deliveries).where(deliveries.c.task_id == task_id, deliveries.c.kind == kind)
        async with hub.database.read() as connection:
            return (await connection.execute(query)).mappings().one()

    async def start(self, hub: LinkedHub) -> tuple[EdgeSide, str]:
        """A task that its device has begun."""
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side)
        await hub.settle()
        return side, task_id

    @pytest.mark.requirement("link.retries")
    async def test_a_device_that_does_not_answer_gets_it_again_and_then_a_dead_letter(
        self, hub: LinkedHub
    ):
        side = hub.sides[0]
        await hub.connect(side)
        assert side.wire is not None
        task_id = await hub.create(side)
        for pause in (2, 4, 8, 16, *[30] * 15):
            side.wire.to_edge.clear()
            hub.clock.advance(pause - 1)
            await hub.link.tick()
            assert not side.wire.to_edge
            hub.clock.advance(1)
            await hub.link.tick()
            assert len(side.wire.to_edge) == 1
        assert await self.status(hub, task_id) == "queued"
        hub.clock.advance(30)
        await hub.link.tick()
        dead = await self.delivery(hub, task_id)
        assert (dead["state"], dead["attempts"], dead["code"]) == ("dead", 20, "not_acknowledged")
        # What comes of it all the same counts.
        ack = DeliveryAck(delivery_id=dead["delivery_id"], edge_run_id="run_1", thread_id="thr_1")
        await hub.link.take_frame(side.device, "delivery.ack", ack)
        assert await self.status(hub, task_id) == "delivered"

    @pytest.mark.requirement("link.retries")
    async def test_a_link_that_is_cut_again_and_again_makes_no_dead_letter(self, hub: LinkedHub):
        side = hub.sides[0]
        task_id = await hub.create(side)
        for _ in range(DELIVERY_ATTEMPTS + 2):
            await hub.connect(side)
            await hub.disconnect(side)
        assert await self.status(hub, task_id) == "queued"
        # It may have been heard, so that the Hub cannot take it back alone.
        assert (await self.delivery(hub, task_id))["attempts"] > 0
        await hub.connect(side)
        await hub.settle()
        assert await self.status(hub, task_id) == "running"

    async def make_dead_letter(self, hub: LinkedHub, patch: pytest.MonkeyPatch) -> None:
        """Have a device that is connected not answer until what it was sent is a dead letter."""
        for module in (edge_link, delivery_queue):
            patch.setattr(module, "DELIVERY_ATTEMPTS", 2)
        for _ in range(3):
            hub.clock.advance(30)
            await hub.link.tick()

    async def retry(self, hub: LinkedHub, delivery_id: str, device: str) -> None:
        async with hub.events.change() as change:
            row = await delivery_queue.find_delivery(change.connection, delivery_id, device)
            assert row is not None
            assert row["state"] == "dead"
            await delivery_queue.retry_delivery(change, row)
            await tasks.requeue_task(change, row["task_id"])

    @pytest.mark.requirement("link.retries")
    async def test_a_dead_letter_that_is_sent_again_may_have_been_heard_before(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side)
        await hub.pass_to_edge(side)
        await side.come_to_rest()
        assert side.work.started == [task_id]
        await self.make_dead_letter(hub, monkeypatch)
        await hub.disconnect(side)
        letter = await self.delivery(hub, task_id)
        await self.retry(hub, letter["delivery_id"], side.device.device_id)
        await hub.cancel(task_id)
        # Only the device knows whether there is something to stop.
        assert await self.status(hub, task_id) == "queued"
        await hub.connect(side)
        await hub.settle()
        assert await self.status(hub, task_id) == "cancelled"
        assert await hub.read_ends() == [task_id]

    @pytest.mark.requirement("link.retries")
    async def test_a_relayed_request_that_is_sent_again_is_whole(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        side = hub.sides[0]
        await hub.connect(side)
        command = RelayCommandCreated(
            command_id="dlv_1",
            delivery_id="dlv_1",
            method="GET",
            path="/v1/agents",
            person={},
            scopes=[],
        )
        new = NewDelivery(
            delivery_id="dlv_1",
            device_id=side.device.device_id,
            person_id=OWNER,
            kind="relay",
            payload=command,
            right=NeededRight(role="viewer"),
            expires_at=hub.link._now() + 3_600_000,
        )
        async with hub.events.change() as change:
            await delivery_queue.add_delivery(change, new)
        await self.make_dead_letter(hub, monkeypatch)
        assert side.wire is not None
        side.wire.to_edge.clear()
        await self.retry(hub, "dlv_1", side.device.device_id)
        await hub.link.tick()
        [(type_, payload)] = side.wire.to_edge
        assert type_ == "relay.command.created"
        assert msgspec.json.decode(payload, type=RelayCommandCreated) == command

    @pytest.mark.requirement("link.dispatch")
    async def test_a_run_that_ends_before_it_is_stored_as_that_of_a_task_is_told(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        side, finish_delivery = hub.sides[0], LinkStore.finish_delivery

        async def end_before(store: LinkStore, *args: Any) -> None:
            side.work.finish(next(iter(side.work.runs)))
            while side.work.changed.is_set() or not side.work.is_watched:  # noqa: ASYNC110
                await asyncio.sleep(0)
            await finish_delivery(store, *args)

        monkeypatch.setattr(LinkStore, "finish_delivery", end_before)
        _, task_id = await self.start(hub)
        assert await self.status(hub, task_id) == "done"

    @pytest.mark.requirement("link.expiry")
    async def test_a_task_whose_device_never_heard_of_it_expires_and_is_not_sent(
        self, hub: LinkedHub
    ):
        side = hub.sides[0]
        task_id = await hub.create(side, wait_seconds=60)
        hub.clock.advance(61)
        await hub.link.tick()
        assert await self.status(hub, task_id) == "expired"
        await hub.connect(side)
        await hub.settle()
        assert side.work.started == []

    @pytest.mark.requirement("link.expiry")
    async def test_a_task_that_may_have_been_heard_expires_by_the_word_of_its_device(
        self, hub: LinkedHub
    ):
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side, wait_seconds=60)
        await hub.disconnect(side)
        hub.clock.advance(61)
        await hub.link.tick()
        assert await self.status(hub, task_id) == "queued"
        await hub.connect(side)
        await hub.settle()
        assert (await self.status(hub, task_id), side.work.started) == ("expired", [])

    @pytest.mark.requirement("link.silence")
    async def test_a_task_of_a_silent_device_is_unknown_until_the_device_speaks(
        self, hub: LinkedHub
    ):
        side, task_id = await self.start(hub)
        assert await self.status(hub, task_id) == "running"
        hub.clock.advance(91)
        await hub.link.tick()
        assert await self.status(hub, task_id) == "unknown"
        assert side.link is not None
        await side.link.send_heartbeat()
        await hub.settle()
        assert await self.status(hub, task_id) == "running"

    @pytest.mark.requirement("link.timeout")
    async def test_a_task_that_takes_too_long_is_stopped_by_its_device(self, hub: LinkedHub):
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side, timeout_seconds=100)
        await hub.settle()
        hub.clock.advance(101)
        await hub.settle()
        assert await self.status(hub, task_id) == "timed_out"
        assert list(side.work.runs.values()) == ["cancelled"]

    async def read(self, hub: LinkedHub, task_id: str) -> dict[str, Any]:
        """A task as somebody reads it."""
        return msgspec.to_builtins(tasks.to_task((await hub.read_tasks())[task_id]))

    @pytest.mark.requirement("link.stops")
    @pytest.mark.parametrize(("why", "status"), [("cancel", "cancelled"), ("timeout", "timed_out")])
    async def test_a_task_whose_device_takes_the_stop_and_never_returns_is_closed_with_the_reason(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch, why: str, status: str
    ):
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side, timeout_seconds=100)
        await hub.settle()

        async def stop_later(*_: Any) -> None:
            assert side.work.runs

        monkeypatch.setattr(side.work, "stop", stop_later)
        if why == "cancel":
            await hub.cancel(task_id)
        else:
            hub.clock.advance(101)
        await hub.settle()
        assert (await self.delivery(hub, task_id, why))["state"] == "acked"
        await hub.kill_edge(side)
        hub.clock.advance(STOP_SECONDS - 1)
        await hub.link.tick()
        waiting = await self.read(hub, task_id)
        assert (waiting["status"], waiting["closing"]) == ("unknown", why)
        hub.clock.advance(1)
        await hub.link.tick()
        closed = await self.read(hub, task_id)
        assert (closed["status"], closed["error"]["code"]) == (status, "stop_unconfirmed")
        # What the device says when it is back all the same is what happened.
        await side.start()
        await hub.connect(side)
        side.work.finish(next(iter(side.work.runs)))
        await hub.settle()
        corrected = await self.read(hub, task_id)
        assert (corrected["status"], corrected.get("error")) == ("done", None)
        assert await hub.read_ends() == [task_id]

    @pytest.mark.requirement("link.stops")
    async def test_a_stop_that_became_a_dead_letter_is_sent_again_when_the_device_reconnects(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        side, task_id = await self.start(hub)
        await hub.cancel(task_id)
        await self.make_dead_letter(hub, monkeypatch)
        assert (await self.delivery(hub, task_id, "cancel"))["state"] == "dead"
        await hub.disconnect(side)
        await hub.connect(side)
        await hub.settle()
        assert await self.status(hub, task_id) == "cancelled"
        assert list(side.work.runs.values()) == ["cancelled"]

    @pytest.mark.requirement("link.stops")
    async def test_who_cancels_what_a_deaf_device_may_have_begun_does_not_see_it_queued_for_long(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side)
        await hub.cancel(task_id)
        await self.make_dead_letter(hub, monkeypatch)
        assert (await self.delivery(hub, task_id, "cancel"))["state"] == "dead"
        shown = await self.read(hub, task_id)
        assert (shown["status"], shown["closing"]) == ("unknown", "cancel")
        # Whoever presses it again has it sent again.
        await hub.cancel(task_id)
        assert (await self.delivery(hub, task_id, "cancel"))["state"] == "sent"
        hub.clock.advance(STOP_SECONDS)
        await hub.link.tick()
        closed = await self.read(hub, task_id)
        assert (closed["status"], closed["error"]["code"]) == ("cancelled", "stop_unconfirmed")
        # It is asked of the device for longer, which has nothing of it.
        await hub.disconnect(side)
        await hub.connect(side)
        await hub.settle()
        closed = await self.read(hub, task_id)
        assert (closed["status"], closed["error"]["code"]) == ("cancelled", "unknown_task")
        assert side.work.started == []

    @pytest.mark.requirement("link.stops")
    async def test_a_device_that_returns_late_is_told_again_to_stop_what_was_closed(
        self, hub: LinkedHub
    ):
        side, task_id = await self.start(hub)
        await hub.disconnect(side)
        await hub.cancel(task_id)
        hub.clock.advance(STOP_SECONDS_MOST + 1)
        await hub.link.tick()
        assert (await self.delivery(hub, task_id, "cancel"))["state"] == "expired"
        assert await self.status(hub, task_id) == "cancelled"
        await hub.connect(side)
        await hub.settle()
        assert list(side.work.runs.values()) == ["cancelled"]
        assert (await self.read(hub, task_id))["error"]["code"] == "cancelled"

    @pytest.mark.requirement("link.joined-again")
    async def test_an_edge_that_joined_again_ends_what_its_former_device_was_given(
        self, hub: LinkedHub
    ):
        side, task_id = await self.start(hub)
        former = side.device.device_id
        await hub.join_again(side)
        await hub.connect(side)
        await hub.settle()
        assert await self.status(hub, task_id) == "running"
        side.work.finish(next(iter(side.work.runs)))
        await hub.settle()
        row = (await hub.read_tasks())[task_id]
        assert (row["status"], row["device_id"], await hub.read_ends()) == (
            "done",
            former,
            [task_id],
        )

    @pytest.mark.requirement("link.joined-again")
    async def test_what_stops_a_task_reaches_the_edge_as_the_device_that_it_is_now(
        self, hub: LinkedHub
    ):
        side, before = await self.start(hub)
        after = await hub.create(side)
        await hub.settle()
        await hub.disconnect(side)
        # One waits for the former device, one is asked for when there is the new one.
        await hub.cancel(before)
        await hub.join_again(side)
        await hub.cancel(after)
        await hub.connect(side)
        hub.clock.advance(1)
        await hub.settle()
        statuses = [await self.status(hub, each) for each in (before, after)]
        assert statuses == ["cancelled", "cancelled"]
        assert list(side.work.runs.values()) == ["cancelled", "cancelled"]

    @pytest.mark.requirement("link.joined-again")
    @pytest.mark.requirement("link.exact-device")
    async def test_a_task_that_the_former_device_never_got_is_not_given_to_the_new_one(
        self, hub: LinkedHub
    ):
        side = hub.sides[0]
        await hub.connect(side)
        lost = await hub.create(side)
        # Of what is on its way when the socket goes, nobody knows whether it came.
        await hub.disconnect(side)
        unsent = await hub.create(side)
        await hub.join_again(side)
        await hub.connect(side)
        hub.clock.advance(1)
        await hub.settle()
        failed = await self.read(hub, unsent)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "device_revoked")
        assert await self.status(hub, lost) == "unknown"
        hub.clock.advance(TASK_WAIT_SECONDS)
        await hub.settle()
        expired = await self.read(hub, lost)
        assert (expired["status"], expired["error"]["code"]) == ("expired", "unknown_task")
        assert (side.dispatched, side.work.started) == ([], [])

    @pytest.mark.requirement("link.joined-again")
    async def test_a_task_that_was_begun_and_not_acknowledged_is_known_once_the_edge_is_back(
        self, hub: LinkedHub
    ):
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side, timeout_seconds=100)
        await hub.pass_to_edge(side)
        await side.come_to_rest()
        await hub.join_again(side)
        hub.clock.advance(1)
        await hub.link.tick()
        assert await self.status(hub, task_id) == "unknown"
        await hub.connect(side)
        await hub.settle()
        row = (await hub.read_tasks())[task_id]
        assert (row["status"], row["edge_run_id"]) == ("running", next(iter(side.work.runs)))
        hub.clock.advance(101)
        await hub.settle()
        assert await self.status(hub, task_id) == "timed_out"

    @pytest.mark.requirement("link.joined-again")
    @pytest.mark.requirement("link.own-words")
    async def test_a_device_that_was_replaced_speaks_for_none_of_the_new_ones_tasks(
        self, hub: LinkedHub
    ):
        side, former = hub.sides[0], hub.sides[0].device
        await hub.join_again(side)
        _, task_id = await self.start(hub)
        before = (await hub.read_tasks())[task_id]
        end = AgentDone(task_id=task_id, result_summary="forged", usage={})
        await hub.link.take_frame(former, "agent.done", end)
        assert (await hub.read_tasks())[task_id] == before

    @pytest.mark.requirement("link.stops")
    async def test_a_task_of_a_device_that_was_revoked_is_closed_at_once_when_it_is_cancelled(
        self, hub: LinkedHub
    ):
        side, task_id = await self.start(hub)
        await hub.revoke(side)
        await hub.cancel(task_id)
        hub.clock.advance(1)
        await hub.link.tick()
        closed = await self.read(hub, task_id)
        assert (closed["status"], closed["error"]["code"]) == ("cancelled", "device_revoked")
        # The Edge has not been told: it is, once it has joined again.
        await hub.join_again(side)
        await hub.connect(side)
        await hub.settle()
        assert list(side.work.runs.values()) == ["cancelled"]

    @pytest.mark.requirement("link.ends")
    async def test_an_end_that_comes_twice_is_told_once_and_acknowledged_twice(
        self, hub: LinkedHub
    ):
        side, task_id = await self.start(hub)
        assert side.wire is not None
        end = AgentDone(task_id=task_id, result_summary="done", usage={"records": 1})
        for _ in range(2):
            await hub.link.take_frame(side.device, "agent.done", end)
        late = AgentFailed(task_id=task_id, error={"code": "late", "message": ""})
        await hub.link.take_frame(side.device, "agent.failed", late)
        assert [type_ for type_, _ in side.wire.to_edge] == ["end.ack"] * 3
        assert (await hub.read_ends(), await self.status(hub, task_id)) == ([task_id], "done")

    @pytest.mark.requirement("link.own-words")
    async def test_a_device_speaks_for_its_own_tasks_alone(self, hub: LinkedHub):
        _, task_id = await self.start(hub)
        other = hub.sides[1]
        before = (await hub.read_tasks())[task_id]
        delivery = await self.delivery(hub, task_id)
        end = AgentDone(task_id=task_id, result_summary="forged", usage={})
        beat = EdgeHeartbeat(
            edge_id="edge_1", device_id="dev_1", version="1", agents=["demo"], tasks=[task_id]
        )
        ack = DeliveryAck(delivery_id=delivery["delivery_id"], refused="forged")
        hub.clock.advance(5)
        for type_, payload in (
            ("agent.done", end),
            ("edge.heartbeat", beat),
            ("delivery.ack", ack),
        ):
            await hub.link.take_frame(other.device, type_, payload)
        assert (await hub.read_tasks())[task_id] == before
        assert await self.delivery(hub, task_id) == delivery

    @pytest.mark.requirement("link.retries")
    async def test_tasks_that_a_busy_device_has_no_room_for_wait_and_hold_up_nothing_else(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(delivery_queue, "DISPATCHES_IN_FLIGHT", 2)
        side, room = hub.sides[0], 1
        start = side.work.start

        async def start_if_room(dispatch: AgentDispatch, by: Person) -> LinkedRun:
            if len(side.work.started) >= room:
                raise Problem(429, "too_many_runs", "no room")
            return await start(dispatch, by)

        monkeypatch.setattr(side.work, "start", start_if_room)
        await hub.connect(side)
        first, second, third, fourth = [await hub.create(side) for _ in range(4)]
        for _ in range(DELIVERY_ATTEMPTS + 2):
            hub.clock.advance(31)
            await hub.settle()
        statuses = [await self.status(hub, each) for each in (second, third, fourth)]
        assert (side.work.started, statuses) == ([first], ["queued"] * 3)
        await hub.cancel(second)
        await hub.settle()
        assert await self.status(hub, second) == "cancelled"
        room = 2
        [run_id] = side.work.runs
        side.work.finish(run_id)
        await hub.settle()
        assert side.work.started == [first, third]

    @pytest.mark.requirement("link.refusals")
    async def test_requests_that_wait_hold_up_neither_tasks_nor_what_stops_them(
        self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(delivery_queue, "RELAYS_OPEN", 1)
        side, task_id = await self.start(hub)
        command = RelayCommandCreated(
            command_id="x", delivery_id="x", method="GET", path="/v1/agents", person={}, scopes=[]
        )
        request = NewDelivery(
            delivery_id="dlv_1",
            device_id=side.device.device_id,
            person_id=OWNER,
            kind="relay",
            payload=command,
            right=NeededRight(role="viewer"),
            expires_at=hub.link._now() + 3_600_000,
        )
        async with hub.events.change() as change:
            await delivery_queue.add_delivery(change, request)
        again = msgspec.structs.replace(request, delivery_id="dlv_2")
        with pytest.raises(Problem, match="wait for this device"):
            async with hub.events.change() as change:
                await delivery_queue.add_delivery(change, again)
        await hub.cancel(task_id)
        assert (await self.delivery(hub, task_id, "cancel"))["state"] in OPEN_STATES

    @pytest.mark.requirement("link.refusals")
    async def test_a_queue_has_a_bound(self, hub: LinkedHub, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(tasks, "TASKS_QUEUED", 2)
        for _ in range(2):
            await hub.create(hub.sides[0])
        with pytest.raises(Problem) as refused:
            await hub.create(hub.sides[0])
        assert (refused.value.status, refused.value.code) == (429, "device_queue_full")
        await hub.create(hub.sides[1])

    @pytest.mark.requirement("link.cancel")
    async def test_a_task_that_nobody_heard_of_is_cancelled_at_once(self, hub: LinkedHub):
        task_id = await hub.create(hub.sides[0])
        async with hub.events.change() as change:
            task = await tasks.cancel_task(change, OWNER, task_id, ORIGIN)
        assert task.status == "cancelled"
        assert (await self.delivery(hub, task_id))["state"] == "expired"


class TestOnSqlite(LinkContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'hub.db'}"


class TestOnPostgres(LinkContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)
