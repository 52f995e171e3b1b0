"""What a Hub forgets of what has ended, on SQLite and PostgreSQL, and what it never forgets."""

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, select, update

from factwire.edge.hub_frames import AgentDone, DeliveryAck
from factwire.hub.approvals.approval_resources import ApprovalLinks
from factwire.hub.link.agent_tasks import NewTask, create_task
from factwire.hub.record_retention import RULES, remove_old_records
from factwire.hub.records.approval_tables import approval_votes, approvals
from factwire.hub.records.device_tables import devices
from factwire.hub.records.link_tables import agent_tasks, deliveries
from tests.hub.asking_devices import DeviceMemory, SharedDevices
from tests.hub.hubs import running_hub
from tests.hub.linked_devices import ORIGIN, Device
from tests.hub.test_approvals import Scene, build_scene
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio

DAY = 24 * 3_600_000


async def acknowledge(scene: Scene) -> None:
    """Have the device acknowledge everything that waits for it."""
    hub = scene.hub.hub
    async with hub.services.database.read() as connection:
        waiting = (await connection.execute(select(deliveries.c.delivery_id))).scalars().all()
    for delivery_id in waiting:
        ack = DeliveryAck(delivery_id=delivery_id, edge_run_id="run_1", thread_id="thr_1")
        await hub.links.link.take_frame(Device(device_id="dev_1"), "delivery.ack", ack)


async def give_task(scene: Scene) -> str:
    services = scene.hub.hub.services
    new = NewTask(
        person_id=scene.ada.person_id, device_id="dev_1", agent_type="demo", prompt="go on"
    )
    async with services.database.write() as connection:
        await connection.execute(update(devices).values(agents='["demo"]'))
    async with services.events.change() as change:
        return (await create_task(change, new, ORIGIN)).task_id


async def count(scene: Scene, table: Any, *conditions: Any) -> int:
    query = select(func.count()).select_from(table).where(*conditions)
    async with scene.hub.hub.services.database.read() as connection:
        return (await connection.execute(query)).scalar_one()


class RetentionContract:
    @pytest.mark.requirement("hub.retention")
    async def test_what_has_ended_goes_and_what_is_pending_or_tells_repeats_stays(
        self, url: str, tmp_path: Path
    ):
        found = ApprovalLinks(deciders=SharedDevices(), cards=DeviceMemory())
        async with running_hub(tmp_path, database=url, approvals=found) as hub:
            scene = await build_scene(hub, found)
            ada, device, services = scene.ada, scene.device, hub.hub.services
            question = device.request("act_1")
            await device.upload(question)
            [applied] = (await ada.get("/v1/approvals"))["items"]
            await scene.decide(ada, applied)
            task_id = await give_task(scene)
            await acknowledge(scene)
            await device.resolve("act_1")
            await device.apply("act_1")
            pending = await scene.ask("act_2")
            await scene.decide(ada, pending)
            waiting = await scene.ask("act_3")
            await ada.post("/client/ws-ticket")
            await hub.ask_to_join("edge_9")

            async def remove(days: int) -> dict[str, int]:
                return await remove_old_records(services.database, services.now() + days * DAY, 90)

            assert await remove(0) == {}
            # What was valid for minutes goes at once, what has ended after its days.
            assert await remove(1) == {"socket_tickets": 1, "device_authorizations": 1}
            # The notifications of the third are still to be tried by the screens of two people.
            assert await remove(91) == {"deliveries": 1, "notifications": 4, "approvals": 1}
            assert await remove(91) == {}
            # The decision that the device never had, and the dispatch of a task that is not over.
            assert await count(scene, deliveries) == 2
            left = (await ada.get("/v1/approvals?status=all"))["items"]
            assert {each["approvalId"]: each["state"] for each in left} == {
                pending["approvalId"]: "decided",
                waiting["approvalId"]: "asked",
            }
            gone = await ada.request("GET", f"/v1/approvals/{applied['approvalId']}")
            assert gone.json()["code"] == "unknown_approval"
            own = approvals.c.approval_id == applied["approvalId"]
            assert await count(scene, approvals, own, approvals.c.shown.is_not(None)) == 0
            assert await count(scene, approval_votes) == 1
            # The mirror is read again: this was asked before.
            await device.upload(question)
            assert len((await ada.get("/v1/notifications"))["items"]) == 1
            end = AgentDone(task_id=task_id, result_summary="done", usage={})
            await hub.hub.links.link.take_frame(Device(device_id="dev_1"), "agent.done", end)
            assert await remove(91) == {"deliveries": 1}
            assert await count(scene, agent_tasks) == 1
            # A new question under its id is a new one.
            await device.ask("act_1")
            assert len((await ada.get("/v1/approvals"))["items"]) == 2

    @pytest.mark.requirement("hub.retention")
    async def test_a_long_past_is_removed_in_parts(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("factwire.hub.record_retention.RECORDS_REMOVED_AT_ONCE", 2)
        async with running_hub(tmp_path, database=url) as hub:
            ada = await hub.first_admin()
            for _ in range(3):
                await ada.post("/client/ws-ticket")
            services = hub.hub.services
            later = services.now() + DAY
            assert [await remove_old_records(services.database, later, 90) for _ in range(3)] == [
                {"socket_tickets": 2},
                {"socket_tickets": 1},
                {},
            ]


class TestOnSqlite(RetentionContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'hub.db'}"

    @pytest.mark.requirement("hub.retention")
    async def test_a_rule_that_forgot_what_is_open_would_lose_it(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        rule = type(RULES["deliveries"])(
            table=deliveries, is_over=lambda _, since: deliveries.c.created_at <= since
        )
        monkeypatch.setitem(RULES, "deliveries", rule)
        found = ApprovalLinks(deciders=SharedDevices(), cards=DeviceMemory())
        async with running_hub(tmp_path, database=url, approvals=found) as hub:
            scene = await build_scene(hub, found)
            await scene.decide(scene.ada, await scene.ask())
            services = hub.hub.services
            await remove_old_records(services.database, services.now() + 91 * DAY, 90)
            assert await count(scene, deliveries) == 0


class TestOnPostgres(RetentionContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)
