"""R9: whatever is connected, cut, replaced, killed and started again, in whatever order, a task is
done once by its own device, or it expires, or it becomes a dead letter; and that is told once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import apsw
import msgspec
import pytest
from sqlalchemy import select, update
from websockets.asyncio.server import ServerConnection, serve

from factwire.edge.hub_access import HubTarget
from factwire.edge.hub_frames import AgentDispatch, AgentDone
from factwire.edge.hub_link import HubLink, LinkedRun, LinkSocket, RunEnd
from factwire.edge.limits import LINK_HEARTBEAT_SECONDS
from factwire.edge.link_store import LinkStore, StoredTask
from factwire.facts.resources import TASK_ENDS
from factwire.hub.limits import (
    DELIVERY_ATTEMPTS,
    DELIVERY_RETRY_SECONDS_MOST,
)
from factwire.hub.link import edge_link
from factwire.hub.link.deliveries import find_due, note_sending
from factwire.hub.records.link_tables import deliveries
from factwire.journal import JournalUnavailable
from tests.hub.linked_devices import (
    OWNER,
    REST_SECONDS,
    EdgeSide,
    LinkedHub,
    PlainWork,
    Wire,
    linked_hub,
)
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(TRIAL_SECONDS)]

SCHEDULES = count_trials(full=2_000, share=25)
CUTS = count_trials(full=38 * 3600 // 90, share=60)
STEPS = 24
DEAF = 0.1
"""The share of schedules in which a device that is connected does not answer for long."""

LONGEST_WAIT = 86_400

IN_ONE_HUB = 50
"""Schedules after which there is a new Hub, because a full one is slower."""


class Schedule:
    """One order of events, chosen by a seed."""

    def __init__(self, hub: LinkedHub, seed: int) -> None:
        self._hub = hub
        self._chance = Random(seed)

    async def run(self) -> None:
        hub, chance = self._hub, self._chance
        await hub.add_devices(chance.choice((2, 2, 3)))
        actions = {
            self._create: 5,
            self._connect: 5,
            self._cut: 2,
            self._replace: 1,
            self._join_again: 1,
            self._kill_edge: 2,
            self._kill_edge_at_work: 3,
            self._kill_hub: 1,
            self._wait: 3,
            self._pass: 8,
            self._finish: 3,
            self._cancel: 1,
        }
        names, weights = list(actions), list(actions.values())
        acts = chance.choices(names, weights, k=STEPS)
        if chance.random() < DEAF:
            acts.insert(chance.randint(0, STEPS), self._stay_deaf)
        for act in acts:
            await act(chance.choice(hub.sides))
            await hub.link.tick()
        await self._end()

    async def _end(self) -> None:
        """Everything comes back, every run ends, and all that was to be said is said."""
        hub = self._hub
        await hub.bring_back()
        for side in hub.sides:
            for run_id, how in list(side.work.runs.items()):
                if how is None:
                    side.work.finish(run_id)
        await hub.settle()
        hub.clock.advance(31)
        await hub.settle()
        # Nobody sends a dead letter again, so that its task expires.
        hub.clock.advance(LONGEST_WAIT)
        await hub.settle()

    async def _create(self, side: EdgeSide) -> None:
        await self._hub.create(side, wait_seconds=self._chance.choice((20, 600, LONGEST_WAIT)))

    async def _connect(self, side: EdgeSide) -> None:
        if side.is_up and side.wire is None:
            await self._hub.connect(side)

    async def _cut(self, side: EdgeSide) -> None:
        await self._hub.disconnect(side)

    async def _replace(self, side: EdgeSide) -> None:
        if side.is_up:
            await self._hub.connect(side)

    async def _join_again(self, side: EdgeSide) -> None:
        await self._hub.join_again(side)

    async def _kill_edge(self, side: EdgeSide) -> None:
        await self._hub.kill_edge(side) if side.is_up else await side.start()

    async def _kill_edge_at_work(self, side: EdgeSide) -> None:
        """Kill an Edge some steps after a frame came, wherever it is then."""
        if side.is_up and await self._hub.pass_to_edge(side):
            await side.take_steps(self._chance.randint(0, 12))
            await self._hub.kill_edge(side)
            await side.start()

    async def _kill_hub(self, _: EdgeSide) -> None:
        self._hub.kill()

    async def _wait(self, _: EdgeSide) -> None:
        self._hub.clock.advance(self._chance.choice((0.5, 3, 30, 100)))

    async def _stay_deaf(self, side: EdgeSide) -> None:
        """A socket stays open, and nothing arrives, until there are dead letters."""
        await self._connect(side)
        if side.wire is not None:
            await self._hub.create(side, wait_seconds=LONGEST_WAIT)
            for _ in range(DELIVERY_ATTEMPTS + 1):
                self._hub.clock.advance(DELIVERY_RETRY_SECONDS_MOST)
                await self._hub.link.tick()

    async def _pass(self, side: EdgeSide) -> None:
        for _ in range(self._chance.randint(1, 3)):
            await self._hub.pass_to_edge(side)
        await side.come_to_rest()
        for _ in range(self._chance.randint(0, 3)):
            await self._hub.pass_to_hub(side)

    async def _finish(self, side: EdgeSide) -> None:
        unfinished = [run_id for run_id, how in side.work.runs.items() if how is None]
        if unfinished:
            side.work.finish(self._chance.choice(unfinished))
            if side.is_up:
                await side.come_to_rest()

    async def _cancel(self, _: EdgeSide) -> None:
        if self._hub.created:
            await self._hub.cancel(self._chance.choice(self._hub.created)[0])


async def check(hub: LinkedHub) -> None:
    """What must hold of a schedule that has ended."""
    starts = Counter[str]()
    for side in hub.sides:
        assert set(side.dispatched) <= set(hub.created), "another device got the task"
        assert set(side.work.started) <= {task_id for task_id, _ in side.dispatched}
        starts.update(side.work.started)
    rows, ends = await hub.read_tasks(), Counter(await hub.read_ends())
    for task_id, _ in hub.created:
        status = rows[task_id]["status"]
        assert starts[task_id] <= 1, f"{task_id} was done {starts[task_id]} times"
        assert status in TASK_ENDS, f"{task_id} is {status} in the end"
        assert (starts[task_id] == 1) == (rows[task_id]["edge_run_id"] is not None), status
        is_refused = status == "failed"
        assert ends[task_id] == starts[task_id] + is_refused, f"{ends[task_id]} ends were told"
        if starts[task_id]:
            assert status in ("done", "cancelled")
        elif is_refused:
            # Its Edge has joined again meanwhile.
            error = msgspec.json.decode(rows[task_id]["error"])
            assert error["code"] in ("device_revoked", "wrong_device")
        else:
            assert status in ("expired", "cancelled")


async def run_schedules(folder: Path, number: int) -> int:
    """Run so many schedules, some of them in one Hub; returns how many dead letters there were."""
    letters = 0
    for first in range(0, number, IN_ONE_HUB):
        place = folder / str(first)
        place.mkdir()
        async with linked_hub(place) as hub:
            for seed in range(first, min(first + IN_ONE_HUB, number)):
                await Schedule(hub, seed).run()
                await check(hub)
                await hub.close_devices()
                hub.kill()
            letters += await hub.count_letters()
    return letters


@pytest.mark.nightly
@pytest.mark.requirement("link.exact-device")
async def test_every_task_is_done_once_by_its_own_device_or_expires(tmp_path: Path):
    assert await run_schedules(tmp_path, SCHEDULES) > 0


async def run_until_it_fails(folder: Path) -> None:
    with pytest.raises(AssertionError):
        await run_schedules(folder, 60)


def forget_deliveries(patch: pytest.MonkeyPatch) -> None:
    """Have a device not know what it had."""

    async def find_nothing(*_: Any) -> None:
        return None

    patch.setattr(LinkStore, "find_delivery", find_nothing)

    def name_anew(*_: object) -> str:
        return f"run_{uuid4().hex}"

    patch.setattr(PlainWork, "name_run", name_anew)


async def test_the_same_schedules_find_a_device_that_does_not_know_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    forget_deliveries(monkeypatch)
    await run_until_it_fails(tmp_path)


async def test_the_same_schedules_find_a_queue_that_is_not_one_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def find_all_due(connection: Any, _: str, now: int) -> list[Any]:
        query = select(deliveries).where(
            deliveries.c.state == "pending", deliveries.c.next_at <= now
        )
        return list((await connection.execute(query)).mappings())

    monkeypatch.setattr(edge_link, "find_due", find_all_due)

    def take_all(*_: object) -> bool:
        return True

    monkeypatch.setattr(HubLink, "_is_meant", take_all)
    await run_until_it_fails(tmp_path)


def send_without_outbox(patch: pytest.MonkeyPatch) -> None:
    """Have a Hub take for done what it has sent."""

    async def note_as_done(connection: Any, due: list[Any], now: int) -> list[Any]:
        noted = await note_sending(connection, due, now)
        for row in noted:
            own = deliveries.c.position == row["position"]
            await connection.execute(update(deliveries).where(own).values(state="acked"))
        return noted

    patch.setattr(edge_link, "note_sending", note_as_done)


async def test_the_same_schedules_find_a_hub_that_sends_without_an_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    send_without_outbox(monkeypatch)
    await run_until_it_fails(tmp_path)


@pytest.mark.nightly
@pytest.mark.requirement("link.cuts")
async def test_a_link_that_is_cut_every_ninety_seconds_loses_and_doubles_nothing(tmp_path: Path):
    await cut_link(tmp_path, CUTS)


@pytest.mark.parametrize("switch_off", [forget_deliveries, send_without_outbox])
async def test_the_same_cuts_find_what_is_lost_or_done_twice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    switch_off: Callable[[pytest.MonkeyPatch], None],
):
    switch_off(monkeypatch)
    with pytest.raises(AssertionError):
        await cut_link(tmp_path, 60)


async def test_the_same_cuts_find_a_device_that_tells_an_end_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def send_nothing(_: HubLink) -> None:
        pass

    monkeypatch.setattr(HubLink, "send_ends", send_nothing)
    with pytest.raises(AssertionError):
        await cut_link(tmp_path, 20)


async def cut_link(folder: Path, cuts: int) -> None:
    """Give tasks by a link that lasts ninety seconds each time, and check what came of them."""
    async with linked_hub(folder) as hub:
        await hub.add_devices(2)
        chance = Random(9)
        for number in range(cuts):
            for side in hub.sides:
                await hub.connect(side)
            if number % 3 == 0:
                await hub.create(chance.choice(hub.sides))
            for _ in range(3):
                await hub.link.tick()
                for side in hub.sides:
                    await let_pass(hub, side, chance)
                hub.clock.advance(30)
            for side in hub.sides:
                await hub.disconnect(side)
        await Schedule(hub, 0)._end()
        await check(hub)
        assert await hub.count_letters() == 0
        assert {row["status"] for row in (await hub.read_tasks()).values()} == {"done"}


async def let_pass(hub: LinkedHub, side: EdgeSide, chance: Random) -> None:
    """Let some frames arrive, each way, and sometimes the oldest run end."""
    for _ in range(chance.randint(0, 3)):
        await hub.pass_to_edge(side)
    await side.come_to_rest()
    unfinished = [run_id for run_id, how in side.work.runs.items() if how is None]
    if unfinished and chance.random() < 0.2:
        side.work.finish(unfinished[0])
        await side.come_to_rest()
    for _ in range(chance.randint(0, 3)):
        await hub.pass_to_hub(side)


async def test_what_is_due_is_found_for_one_device_alone(tmp_path: Path):
    async with linked_hub(tmp_path) as hub:
        await hub.add_devices(2)
        mine, other = hub.sides
        task_id = await hub.create(mine)
        async with hub.database.read() as connection:
            now = hub.link._now()
            assert await find_due(connection, other.device.device_id, now) == []
            due = await find_due(connection, mine.device.device_id, now)
        assert [row["task_id"] for row in due] == [task_id]


@pytest.mark.requirement("link.ends")
async def test_ends_are_told_although_reading_or_storing_them_failed_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    side, wire, tasks = EdgeSide(tmp_path / "edge", "dev_1"), Wire(), ("tsk_1", "tsk_2")
    await side.start()
    assert side.link is not None
    await side.link.connect(wire.send, "dev_1")
    for task_id in tasks:
        dispatch = AgentDispatch(
            task_id=task_id,
            delivery_id=f"dlv_{task_id}",
            agent_instance_id="agt_1",
            agent_type="demo",
            session_id="",
            prompt="go on",
            trigger_message_id="",
            trigger_user_id=OWNER,
            display_name="Ada",
            edge_device_id="dev_1",
            person={},
        )
        side.link.take_frame("agent.dispatch", msgspec.json.encode(dispatch))
    await side.come_to_rest()
    faults = iter([*[JournalUnavailable("gone")] * 6, apsw.FullError("disk full")])
    read_end = side.work.read_end

    async def fail_at_first(run: LinkedRun) -> RunEnd | None:
        if side.work.task_of[run.run_id] == tasks[0]:
            for fault in faults:
                raise fault
        return await read_end(run)

    monkeypatch.setattr(side.work, "read_end", fail_at_first)
    wire.to_hub.clear()
    for run_id in side.work.runs:
        side.work.finish(run_id)
    await side.come_to_rest()
    await side.kill()
    assert side.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    # What failed for one task did not keep back the other.
    ends = [msgspec.json.decode(payload, type=AgentDone) for _, payload in wire.to_hub]
    assert [end.task_id for end in ends] == [*reversed(tasks)]


class OddTokens:
    """Tokens that something before the Hub answers for at first."""

    def __init__(self) -> None:
        self._faults = iter([KeyError("accessToken")])

    async def token(self) -> str:
        for fault in self._faults:
            raise fault
        return "token"

    def forget(self, token: str) -> None:
        raise NotImplementedError(token)


@pytest.mark.requirement("link.retries")
async def test_a_socket_outlives_answers_and_frames_that_are_none_of_a_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first_frames = iter(["<html>", '{"type":"end.ack","payload":{}}'])
    pauses, heard, is_over = list[float](), list[str](), asyncio.Event()
    list_open_tasks, disk_faults = LinkStore.list_open_tasks, iter([apsw.FullError("disk full")])

    async def answer(connection: ServerConnection) -> None:
        for frame in first_frames:
            await connection.send(frame)
            await connection.wait_closed()
            return
        await connection.send('{"type":"auth.ok","payload":{"device_id":"dev_1"}}')
        async for message in connection:
            heard.append(str(message))
            if len(heard) == 2:
                is_over.set()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 5:
            await asyncio.Event().wait()

    async def fail_once(store: LinkStore) -> list[StoredTask]:
        if heard:
            for fault in disk_faults:
                raise fault
        return await list_open_tasks(store)

    monkeypatch.setattr(LinkStore, "list_open_tasks", fail_once)
    side = EdgeSide(tmp_path / "edge", "dev_1")
    await side.start()
    async with serve(answer, "127.0.0.1", 0) as server, asyncio.timeout(REST_SECONDS):
        port: int = next(iter(server.sockets)).getsockname()[1]
        target = HubTarget(url=f"http://127.0.0.1:{port}", token="token")
        assert side.link is not None
        link_socket = LinkSocket(side.link, target, OddTokens(), sleep=sleep, chance=lambda: 1.0)
        async with link_socket.run():
            await is_over.wait()
    await side.kill()
    assert all("edge.heartbeat" in frame for frame in heard)
    # A heartbeat that failed is followed by the next.
    assert pauses[:5] == [0.5, 1.0, 2.0, *[LINK_HEARTBEAT_SECONDS] * 2]
