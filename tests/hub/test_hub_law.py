"""R17 for everything but chats: what a screen showed of devices, grants, tasks, approvals,
notifications and runners, with the events since then, is what a new screen shows.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pytest
from sqlalchemy import select

from factwire.edge.hub_frames import AgentDone, AgentFailed, DeliveryAck, EdgeHeartbeat
from factwire.hub.device_resources import DeviceAuthorizationBody
from factwire.hub.frames.event_log import read_events
from factwire.hub.frames.frame_types import FRAMES
from factwire.hub.frames.hub_connections import EdgeDevice, HubConnections, OpenSocket
from factwire.hub.link import runner_records
from factwire.hub.people.accounts import HubCaller
from factwire.hub.records.device_tables import devices
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.records.link_tables import deliveries
from factwire.hub.records.people_records import format_time
from factwire.journal import Cursor
from factwire.runtime.configuration import HubSettings
from tests.hub.asking_devices import AskingDevice
from tests.hub.chat_people import read_all
from tests.hub.device_screen import DeviceScreen, load_device_screen
from tests.hub.hubs import HubDevice, HubPerson, RunningHub, running_hub
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer
from tests.trials import TRIAL_SECONDS, count_trials

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio

NAMES: Final = ("Ada", "Bo", "Cy")
EDGES: Final = ("edge_a", "edge_b")
ROLES: Final = ("viewer", "commenter", "approver", "operator")
EVENTS: Final = frozenset(
    name
    for name, row in FRAMES.items()
    if row.logged
    and not name.startswith(("message.", "session.", "friend.", "team.", "assignment."))
)
"""Those of chats and of teams have laws of their own, in `test_chat_law` and `test_teams`."""

ORIGIN: Final = ActionOrigin(via="test", address="")
WAIT: Final = 60
_SIGN_IN_SECONDS: Final = 600
"""Tokens are valid for longer than this and what one schedule takes."""


class OpenEnd:
    """The end of a socket that takes whatever is sent."""

    is_gone = False

    def __init__(self) -> None:
        self.sink = self

    def send(self, frames: Any) -> None:
        assert frames

    def close(self, code: int) -> None:
        assert code
        self.is_gone = True


class Machine:
    """One Edge: the devices that it joined as, and the socket of the last, if it has one."""

    def __init__(self, edge_id: str, joined: HubDevice, former: Sequence[str] = ()) -> None:
        self.edge_id = edge_id
        self.joined = joined
        self.devices = (*former, joined.device_id)
        self.opened: OpenSocket | None = None

    @property
    def device_id(self) -> str:
        return self.joined.device_id


class Work:
    """A few people, two machines of the first of them, and whatever can be done with these, at
    random; answers do not matter, because what is refused changes nothing.
    """

    def __init__(self, hub: RunningHub, seed: int) -> None:
        self.hub = hub
        self.random = random.Random(seed)
        self.people: list[HubPerson] = []
        self.machines: dict[str, Machine] = {}
        self.count = 0
        self.seen: Counter[str] = Counter()
        self.signed_in_at = 0.0

    @property
    def connections(self) -> HubConnections:
        return self.hub.hub.services.connections

    async def begin(self) -> None:
        admin = await self.hub.first_admin(NAMES[0])
        for name in NAMES[1:]:
            await self.hub.join(admin, name)
        await self.sign_in()
        for edge_id in EDGES:
            await self._join(edge_id)

    async def sign_in(self) -> None:
        """Have tokens that are valid for what comes next."""
        if not self.people or self.hub.clock.now > self.signed_in_at + _SIGN_IN_SECONDS:
            self.signed_in_at = self.hub.clock.now
            self.people = [await self.hub.sign_in(name) for name in NAMES]

    async def rest(self) -> None:
        """Wait until what was done has been written."""
        presence = self.connections._presence
        async with asyncio.timeout(WAIT):
            while presence._devices or presence._unsettled:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0)
        await self.hub.hub.links.link.tick()

    async def tour(self) -> None:
        """What leads to every kind of event, some of which chance seldom comes to."""
        ada, bo, _ = self.people
        machine = self.machines[EDGES[0]]
        await self.connect_machine(machine)
        for is_done in (True, False):
            body = {"deviceId": machine.device_id, "agentType": "demo", "prompt": "go"}
            await ada.post("/v1/agent-tasks", body, 202)
            await self.rest()
            await self.answer(machine, is_refused=False)
            await self.end_newest(machine, is_done=is_done)
        await self.connect_machine(machine)
        body = {"person": "Bo", "deviceId": machine.device_id, "role": "viewer"}
        grant = await ada.post("/v1/grants", body)
        await ada.request("DELETE", f"/v1/grants/{grant['grantId']}")
        await self.disconnect_machine(machine)
        await self._asker(machine).ask("act_tour", {"command": "make"})
        await self.see_notice(ada)
        for chance in (0.0, 0.5, 1.0):
            await self.step_runner(bo, chance)

    async def step(self) -> None:
        """One deed of somebody."""
        deeds: list[tuple[Callable[[HubPerson], Awaitable[Any]], int]] = [
            (self.connect, 4),
            (self.disconnect, 2),
            (self.beat, 3),
            (self.change_device, 2),
            (self.join_again, 1),
            (self.share, 5),
            (self.revoke_grant, 3),
            (self.give_task, 5),
            (self.cancel_task, 2),
            (self.answer_delivery, 6),
            (self.end_task, 4),
            (self.ask, 3),
            (self.resolve, 2),
            (self.decide, 3),
            (self.notice, 2),
            (self.see_notice, 3),
            (self.change_runner, 4),
        ]
        chosen = self.random.choices([deed for deed, _ in deeds], [often for _, often in deeds])
        self.hub.clock.advance(self.random.choice((0, 1, 1, 5, 40, 200)))
        await self.sign_in()
        await chosen[0](self.random.choice(self.people))
        await self.rest()

    def _machine(self) -> Machine:
        return self.machines[self.random.choice(EDGES)]

    async def _edge_device(self, machine: Machine) -> EdgeDevice | None:
        query = select(devices).where(devices.c.device_id == machine.device_id)
        async with self.hub.hub.services.database.read() as connection:
            row = (await connection.execute(query)).mappings().one()
        if row["revoked_at"] is not None:
            return None
        names = ("device_id", "person_id", "session_id", "edge_id", "kind", "name")
        return EdgeDevice(**{name: row[name] for name in names})

    async def _join(self, edge_id: str) -> None:
        earlier = self.machines.get(edge_id)
        if earlier is not None:
            await self.disconnect_machine(earlier)
        joined = await self.hub.join_device(self.people[0], edge_id)
        former = () if earlier is None else earlier.devices
        self.machines[edge_id] = Machine(edge_id, joined, former)
        body = {"name": f"on {edge_id}", "deviceId": joined.device_id, "agentType": "demo"}
        await self.people[0].post("/v1/execution-targets", body)

    async def join_again(self, _: HubPerson) -> None:
        await self._join(self.random.choice(EDGES))

    async def connect(self, _: HubPerson) -> None:
        await self.connect_machine(self._machine())

    async def connect_machine(self, machine: Machine) -> None:
        """Open a socket of a machine; one that it had is ended by that."""
        device = await self._edge_device(machine)
        if device is None:
            return
        earlier = machine.opened
        sender = cast("Any", OpenEnd())
        machine.opened = OpenSocket(device.person_id, device.session_id, device, sender)
        self.connections.add(machine.opened)
        if earlier is not None:
            self.connections.remove(earlier)
        await self.rest()
        await self.hub.hub.links.link.note_connected(device)

    async def disconnect(self, _: HubPerson) -> None:
        await self.disconnect_machine(self._machine())

    async def disconnect_machine(self, machine: Machine) -> None:
        if machine.opened is not None:
            opened, machine.opened = machine.opened, None
            self.connections.remove(opened)
            await self.rest()
            assert opened.device is not None
            await self.hub.hub.links.link.note_gone(opened.device)

    async def beat(self, _: HubPerson) -> None:
        """A machine says what it is, on its socket or for a new token."""
        machine, version = self._machine(), f"{self.random.randint(1, 3)}.0"
        agents = self.random.choice((["demo"], ["claude", "demo"]))
        device = await self._edge_device(machine)
        if machine.opened is None or device is None:
            body = {"deviceToken": machine.joined.joined["deviceToken"]}
            await self.hub.post("/v1/auth/device", {**body, "version": version, "agents": agents})
            return
        tasks = [row["taskId"] for row in await read_all(self.people[0], "/v1/agent-tasks")]
        frame = EdgeHeartbeat(
            edge_id=machine.edge_id,
            device_id=machine.device_id,
            version=version,
            agents=agents,
            tasks=tasks[:5],
        )
        await self.hub.hub.links.link.take_frame(device, "edge.heartbeat", frame)

    async def change_device(self, person: HubPerson) -> None:
        self.count += 1
        path = f"/v1/devices/{self._machine().device_id}"
        if self.random.random() < 0.3:
            await person.request("DELETE", path)
        else:
            await person.request("PATCH", path, {"name": f"laptop {self.count}"})

    async def share(self, _: HubPerson) -> None:
        machine, owner = self._machine(), self.people[0]
        body = {"person": self.random.choice(NAMES[1:]), "deviceId": machine.device_id}
        body["role"] = self.random.choice(ROLES)
        if self.random.random() < 0.4:
            targets = await read_all(owner, "/v1/execution-targets")
            own = [row["targetId"] for row in targets if row["deviceId"] == machine.device_id]
            body |= {"targetId": self.random.choice(own)} if own else {}
        await owner.request("POST", "/v1/grants", body)

    async def revoke_grant(self, person: HubPerson) -> None:
        held = await read_all(person, "/v1/grants")
        if held:
            path = f"/v1/grants/{self.random.choice(held)['grantId']}"
            await person.request("DELETE", path)

    async def give_task(self, person: HubPerson) -> None:
        where: dict[str, Any] = {"deviceId": self._machine().device_id, "agentType": "demo"}
        targets = await read_all(person, "/v1/execution-targets")
        if targets and self.random.random() < 0.5:
            where = {"targetId": self.random.choice(targets)["targetId"]}
        if len(await read_all(person, "/v1/agent-tasks")) < 60:
            times = {"expiresIn": self.random.choice((60, 3_600)), "timeout": 300}
            await person.request("POST", "/v1/agent-tasks", {**where, **times, "prompt": "go"})

    async def cancel_task(self, person: HubPerson) -> None:
        rows = await read_all(person, "/v1/agent-tasks")
        if rows:
            task = self.random.choice(rows[:5])["taskId"]
            await person.request("POST", f"/v1/agent-tasks/{task}:cancel")

    async def answer_delivery(self, _: HubPerson) -> None:
        await self.answer(self._machine(), is_refused=self.random.random() < 0.2)

    async def answer(self, machine: Machine, *, is_refused: bool) -> None:
        """A machine acknowledges, or refuses, the oldest of what it was sent."""
        device = await self._edge_device(machine)
        query = select(deliveries).where(
            deliveries.c.device_id == machine.device_id, deliveries.c.state == "sent"
        )
        async with self.hub.hub.services.database.read() as connection:
            row = (await connection.execute(query.limit(1))).mappings().first()
        if row is None or device is None:
            return
        self.count += 1
        ids = {"edge_run_id": f"run_{self.count}", "thread_id": f"thr_{self.count}"}
        fields: dict[str, Any] = {"refused": "busy", "message": "busy"} if is_refused else ids
        ack = DeliveryAck(delivery_id=row["delivery_id"], **fields)
        await self.hub.hub.links.link.take_frame(device, "delivery.ack", ack)

    async def end_task(self, _: HubPerson) -> None:
        await self.end_newest(self._machine(), is_done=self.random.random() < 0.5)

    async def end_newest(self, machine: Machine, *, is_done: bool) -> None:
        """A machine says how one of its tasks ended."""
        device = await self._edge_device(machine)
        rows = await read_all(self.people[0], "/v1/agent-tasks")
        own = [row for row in rows if row["deviceId"] in machine.devices and "edgeRunId" in row]
        if not own or device is None:
            return
        open_first = sorted(own[:5], key=lambda row: "endedAt" in row)
        task, take_frame = open_first[0]["taskId"], self.hub.hub.links.link.take_frame
        if is_done:
            done = AgentDone(task_id=task, result_summary="all", usage={"tokens": 3})
            await take_frame(device, "agent.done", done)
        else:
            error = {"code": "cancelled", "message": "stopped"}
            await take_frame(device, "agent.failed", AgentFailed(task_id=task, error=error))

    def _asker(self, machine: Machine) -> AskingDevice:
        asking = AskingDevice(self.hub.hub.services, self.people[0].person_id)
        asking.edge = msgspec.structs.replace(
            asking.edge, edge_id=machine.edge_id, device_id=machine.device_id
        )
        asking.start_anew()
        return asking

    async def ask(self, _: HubPerson) -> None:
        self.count += 1
        times = {"expiresAt": format_time(self.hub.hub.services.now() + 300_000)}
        more = times if self.random.random() < 0.5 else {}
        asking = self._asker(self._machine())
        await asking.ask(f"act_{self.count}", {"command": "make"}, **more)

    async def resolve(self, _: HubPerson) -> None:
        machine = self._machine()
        rows = await read_all(self.people[0], "/v1/approvals?status=all")
        own = [row for row in rows if row["edgeId"] == machine.edge_id][:5]
        if own:
            asking, request = self._asker(machine), self.random.choice(own)["requestId"]
            await self.random.choice((asking.resolve, asking.apply))(request)

    async def decide(self, person: HubPerson) -> None:
        rows = await read_all(person, "/v1/approvals?status=all")
        if rows:
            row = self.random.choice(rows[:5])
            path = f"/v1/approvals/{row['approvalId']}"
            body = {"decision": self.random.choice(("allow", "deny")), "argsHash": row["argsHash"]}
            await person.request("POST", f"{path}/seen")
            if self.random.random() < 0.7:
                await person.request("POST", f"{path}/decide", body)

    async def notice(self, person: HubPerson) -> None:
        await person.request("POST", "/v1/notifications/test")

    async def see_notice(self, person: HubPerson) -> None:
        rows = await read_all(person, "/v1/notifications")
        if rows:
            path = f"/v1/notifications/{self.random.choice(rows[:5])['notificationId']}"
            await person.request("POST", f"{path}/{self.random.choice(('seen', 'opened'))}", {})

    async def change_runner(self, person: HubPerson) -> None:
        await self.step_runner(person, self.random.random())

    async def step_runner(self, person: HubPerson, chance: float) -> None:
        """Take a runner of somebody a step further, as its keeper does."""
        hub = self.hub.hub.services
        rows = await read_all(person, "/v1/runners")
        held = [row for row in rows if row["state"] not in ("released", "failed")]
        if not held:
            self.count += 1
            caller = HubCaller(
                person_id=person.person_id, session_id=person.session_id, name="x", role="member"
            )
            settings = HubSettings(runners=3, runners_per_person=1)
            name = f"runner {self.count}"
            async with hub.events.change() as change:
                await runner_records.allocate(
                    hub, change, settings, caller, ORIGIN, keeper_id="test", name=name
                )
            return
        row = held[0]
        if row["state"] == "starting" and chance < 0.4:
            secret = await runner_records.renew_secret(hub, row["runnerId"])
            body = DeviceAuthorizationBody(name="x", edge_id=f"edge_{row['runnerId']}")
            await runner_records.join_runner(hub, secret, body)
        elif row["state"] != "stopping" and chance < 0.8:
            await runner_records.begin_release(hub, row["runnerId"], "idle")
        else:
            await runner_records.end_runner(hub, row["runnerId"], "failed", "exited")


IN_ONE_HUB: Final = 100
"""Schedules after which the lists of a Hub become longer than the page that a screen reads."""


async def hold_law(hub: RunningHub, schedules: int, seed: int) -> Counter[str]:
    work = Work(hub, seed)
    await work.begin()
    screens = [await load_device_screen(person) for person in work.people]
    for schedule in range(schedules):
        if schedule == 0:
            await work.tour()
        else:
            for _ in range(work.random.randint(1, 8)):
                await work.step()
        await work.rest()
        screens = [
            await _compare(work, old, person, f"seed {seed}, schedule {schedule}")
            for old, person in zip(screens, work.people, strict=True)
        ]
    return work.seen


async def _compare(work: Work, old: DeviceScreen, person: HubPerson, where: str) -> DeviceScreen:
    fresh = await load_device_screen(person)
    async with work.hub.hub.services.database.read() as connection:
        after, upto = Cursor.parse(old.as_of).seq, Cursor.parse(fresh.as_of).seq
        events = await read_events(connection, person.person_id, after, 100_000)
    for event in events:
        if event.seq <= upto:
            old.apply(event.type, msgspec.json.decode(event.payload))
            work.seen[event.type] += 1
    kept, new = (each.shown(partial=old.is_partial) for each in (old, fresh))
    differences = [
        (name, key, kept[name].get(key), new[name].get(key))
        for name in kept
        for key in kept[name].keys() | new[name].keys()
        if kept[name].get(key) != new[name].get(key)
    ]
    assert differences == [], where
    return fresh


@pytest.mark.requirement("hub.law")
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
async def test_an_old_screen_of_devices_and_later_events_are_a_new_one(tmp_path: Path):
    schedules, seen = count_trials(full=2_000, share=10), Counter[str]()
    for first in range(0, schedules, IN_ONE_HUB):
        place = tmp_path / str(first)
        place.mkdir()
        async with running_hub(place) as hub:
            seen += await hold_law(hub, min(IN_ONE_HUB, schedules - first), 17 + first)
    assert seen.keys() == EVENTS


@pytest.mark.requirement("hub.law")
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
async def test_the_law_of_devices_holds_on_postgres(tmp_path: Path, postgres: PostgresServer):
    url = await create_postgres_database(postgres)
    async with running_hub(tmp_path, database=url) as hub:
        seen = await hold_law(hub, count_trials(full=200, share=2), 18)
    assert seen.keys() == EVENTS


@pytest.mark.parametrize("lost", ["device.registered", "cloud.runner.released"])
async def test_the_law_of_devices_notices_what_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
):
    apply = DeviceScreen.apply

    def forget(self: DeviceScreen, kind: str, payload: dict[str, Any]) -> None:
        if kind != lost:
            apply(self, kind, payload)

    monkeypatch.setattr(DeviceScreen, "apply", forget)
    async with running_hub(tmp_path) as hub:
        with pytest.raises((AssertionError, KeyError)):
            await hold_law(hub, 1, 17)
