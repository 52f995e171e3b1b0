"""Approvals from anywhere: decided once, by somebody who may, about exactly what was shown; and
*decided* is not *applied*.
"""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import select, update

from factwire.edge.hub_frames import AgentControl, DeliveryAck
from factwire.facts.resources import DecisionCard
from factwire.hub.approvals import approval_decisions
from factwire.hub.approvals.approval_resources import ApprovalLinks
from factwire.hub.frames.event_log import read_events
from factwire.hub.limits import DECISION_SECONDS
from factwire.hub.link import deliveries, edge_link
from factwire.hub.link.agent_tasks import NewTask, create_task
from factwire.hub.records.device_tables import devices
from factwire.hub.records.link_tables import agent_tasks
from factwire.hub.records.link_tables import deliveries as delivery_table
from factwire.hub.records.people_records import format_time
from factwire.hub.routes import approval_routes, notification_routes
from factwire.journal import Cursor
from tests.hub.asking_devices import AskingDevice, DeviceMemory, SharedDevices, TableOutbox, links
from tests.hub.hubs import HubPerson, RunningHub, running_hub
from tests.hub.linked_devices import ORIGIN, Device
from tests.hub.test_hub_openapi import BODIES, things_of
from tests.hub.test_hub_records import create_postgres_database
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = pytest.mark.asyncio


class Scene(NamedTuple):
    """A device of Ada's that Bo may decide for, too, and Eve has nothing to do with."""

    hub: RunningHub
    device: AskingDevice
    ada: HubPerson
    bo: HubPerson
    eve: HubPerson
    links: ApprovalLinks

    async def ask(self, action_id: str = "act_1", args: Any = None, **payload: Any) -> Any:
        await self.device.ask(action_id, args, **payload)
        rows = (await self.ada.get("/v1/approvals"))["items"]
        return next(row for row in rows if row["requestId"] == action_id)

    async def decide(
        self, person: HubPerson, approval: Any, decision: str = "allow", status: int = 200
    ) -> Any:
        body = {"decision": decision, "argsHash": approval["argsHash"]}
        path = f"/v1/approvals/{approval['approvalId']}/decide"
        return await person.post(path, body, status=status)

    async def read(self, approval: Any) -> Any:
        return await self.ada.get(f"/v1/approvals/{approval['approvalId']}")


async def build_scene(hub: RunningHub, found: ApprovalLinks) -> Scene:
    ada = await hub.first_admin()
    bo, eve = await hub.join(ada, "Bo"), await hub.join(ada, "Eve", "admin")
    device = AskingDevice(hub.hub.services, ada.person_id)
    await device.join(bo.person_id)
    return Scene(hub, device, ada, bo, eve, found)


@pytest_asyncio.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[Scene]:
    found = links()
    async with running_hub(tmp_path, approvals=found) as hub:
        yield await build_scene(hub, found)


class ApprovalContract:
    """The way of one approval, on both databases."""

    @pytest.mark.requirement("hub.approvals.steps")
    async def test_an_approval_goes_from_asked_to_applied_with_its_times_and_actors(
        self, url: str, tmp_path: Path
    ):
        found = links()
        async with running_hub(tmp_path, database=url, approvals=found) as hub:
            scene = await build_scene(hub, found)
            approval = await scene.ask(args={"command": "make"})
            assert (approval["state"], approval["required"]) == ("asked", 1)
            for person in (scene.ada, scene.bo):
                notice = (await person.get("/v1/notifications"))["items"][0]
                assert notice["payload"] == {
                    "approvalId": approval["approvalId"],
                    "deviceId": "dev_1",
                }
                assert "make" not in msgspec.json.encode(notice).decode()
            hub.clock.advance(1)
            seen = f"/v1/notifications/{notice['notificationId']}/seen"
            await scene.bo.post(seen, {}, status=200)
            shown = await scene.read(approval)
            assert (shown["state"], shown["screens"][0]["targetId"]) == (
                "seen",
                scene.bo.session_id,
            )
            assert shown["card"]["shown"].endswith('"command": "make"\n}')
            hub.clock.advance(1)
            decided = await scene.decide(scene.bo, approval)
            # The device is off: it is decided, and nothing claims more.
            assert (decided["state"], "sentAt" in decided) == ("decided", False)
            ((delivery_id, control),) = await scene.device.queued()
            assert (control.decision, control.request_id, control.run_id) == (
                "allow",
                "act_1",
                "run_1",
            )
            assert control.decided_by == {
                "name": "Bo",
                "via": "hub",
                "userId": scene.bo.person_id,
                "deviceId": scene.bo.session_id,
            }
            await scene.device.acknowledge(delivery_id)
            assert (await scene.read(approval))["state"] == "sent"
            await scene.device.resolve("act_1")
            await scene.device.apply("act_1")
            applied = await scene.read(approval)
            assert (applied["state"], applied["decidedBy"]["name"]) == ("applied", "Bo")
            times = ("askedAt", "deliveredAt", "seenAt", "decidedAt", "sentAt", "appliedAt")
            # The clock of the device is behind that of the Hub.
            assert applied["appliedAt"] == applied["sentAt"]
            assert sorted(times, key=applied.__getitem__) == list(times)
            assert (await scene.ada.get("/v1/approvals"))["items"] == []
            everything = await scene.ada.get("/v1/approvals?status=all")
            assert [row["state"] for row in everything["items"]] == ["applied"]
            notice = (await scene.ada.get("/v1/notifications"))["items"][0]
            assert "closedAt" in notice


class TestApprovalOnSqlite(ApprovalContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'hub.db'}"


class TestApprovalOnPostgres(ApprovalContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)


@pytest.mark.requirement("hub.approvals.once")
async def test_the_first_decision_holds_the_same_is_sent_again_the_opposite_is_refused(
    scene: Scene,
):
    approval = await scene.ask()
    await scene.decide(scene.bo, approval, "deny")
    again = await scene.decide(scene.ada, approval, "deny")
    assert again["decidedBy"]["name"] == "Bo"
    ((delivery_id, control),) = await scene.device.queued()
    outbox = scene.links.outbox
    assert isinstance(outbox, TableOutbox)
    assert (control.decision, outbox.resent) == ("deny", ["dev_1"])
    refused = await scene.decide(scene.ada, approval, "allow", 409)
    assert refused["code"] == "approval_decided"
    await scene.device.acknowledge(delivery_id)
    await scene.decide(scene.ada, approval, "deny")
    # What the device has is not sent again.
    assert outbox.resent == ["dev_1"]
    assert (await scene.decide(scene.ada, approval, "allow", 409))["code"] == "approval_decided"


@pytest.mark.requirement("hub.approvals.attacks")
async def test_forged_replayed_and_late_decisions_are_refused(scene: Scene):
    shared = scene.links.deciders
    assert isinstance(shared, SharedDevices)
    approval = await scene.ask(args={"command": "make"})
    other = {**approval, "argsHash": "sha256:" + "0" * 64}
    assert (await scene.decide(scene.ada, other, status=409))["code"] == "approval_changed"
    # Somebody else's approval is nobody's, even for an admin; who only watches may not decide.
    unknown = await scene.decide(scene.eve, approval, status=404)
    assert unknown["code"] == "unknown_approval"
    shared.watchers.add(scene.bo.person_id)
    assert (await scene.decide(scene.bo, approval, status=403))["code"] == "not_an_approver"
    assert not (await scene.bo.get(f"/v1/approvals/{approval['approvalId']}"))["mayDecide"]
    # A hash of what was asked before is of something else.
    await scene.device.upload(
        msgspec.structs.replace(
            scene.device.request("act_1", {"command": "rm -rf /"}), event_class="action.updated"
        )
    )
    assert (await scene.decide(scene.ada, approval, status=409))["code"] == "approval_changed"
    # One of another approval is of something else, too.
    second = await scene.ask("act_2", {"command": "ls"})
    mixed = {**second, "argsHash": approval["argsHash"]}
    assert (await scene.decide(scene.ada, mixed, status=409))["code"] == "approval_changed"
    for body in (
        {"decision": "allow"},
        {"decision": "maybe", "argsHash": second["argsHash"]},
        {"decision": "allow", "argsHash": second["argsHash"], "decidedBy": {"name": "Bo"}},
    ):
        path = f"/v1/approvals/{second['approvalId']}/decide"
        assert (await scene.ada.request("POST", path, body)).status_code == 400
    late = await scene.ask("act_3", expiresAt="2026-09-21T14:13:19Z")
    assert (await scene.decide(scene.ada, late, status=410))["code"] == "approval_expired"
    await scene.device.upload(scene.device.fact("action.cancelled", "act_2"))
    assert (await scene.decide(scene.ada, second, status=409))["code"] == "approval_closed"
    assert await scene.device.queued() == []


@pytest.mark.requirement("hub.approvals.attacks")
async def test_without_its_checks_a_forged_decision_would_pass(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    def let_pass(*_: Any) -> None: ...

    monkeypatch.setattr(approval_decisions, "ensure_open", let_pass)
    approval = await scene.ask()
    forged = {**approval, "argsHash": "sha256:" + "0" * 64}
    assert (await scene.decide(scene.ada, forged, "deny"))["state"] == "decided"


@pytest.mark.requirement("hub.approvals.exact")
async def test_what_cannot_be_shown_exactly_can_only_be_denied(scene: Scene):
    memory = scene.links.cards
    assert isinstance(memory, DeviceMemory)
    # A text of which redaction took something does not have the hash of the request.
    hidden = await scene.ask("act_1", {"command": "deploy"}, shown="Run it?\n[REDACTED]")
    card = (await scene.read(hidden))["card"]
    assert "shown" not in card
    assert "deny" in card["reason"]
    refused = await scene.decide(scene.ada, hidden, status=409)
    assert refused["code"] == "approval_not_shown"
    # The device has it in memory: it shows it, and then it can be allowed.
    exact = DecisionCard(request_id="act_1", args_hash=hidden["argsHash"], shown="TOKEN=⟦masked⟧")
    memory.cards["act_1"] = msgspec.structs.replace(exact, args_hash="sha256:other")
    assert (await scene.decide(scene.ada, hidden, status=409))["code"] == "approval_not_shown"
    memory.cards["act_1"] = exact
    assert (await scene.read(hidden))["card"]["shown"] == "TOKEN=⟦masked⟧"
    assert (await scene.decide(scene.ada, hidden))["state"] == "decided"
    gone = await scene.ask("act_2", {"command": "deploy"}, shown="[REDACTED]")
    assert (await scene.decide(scene.ada, gone, "deny"))["decision"] == "deny"


@pytest.mark.requirement("hub.approvals.several")
async def test_several_people_must_allow_and_one_who_denies_is_enough(scene: Scene):
    path = "/v1/devices/dev_1/approval-rule"
    changed = await scene.ada.request("PUT", path, {"required": 2})
    assert changed.json() == await scene.ada.get(path) == {"required": 2}
    assert (await scene.bo.request("GET", path)).status_code == 404
    approval = await scene.ask()
    first = await scene.decide(scene.ada, approval)
    # The same person twice is one person.
    again = await scene.decide(scene.ada, approval)
    assert (first["state"], again["state"], len(again["votes"])) == ("seen", "seen", 1)
    assert await scene.device.queued() == []
    both = await scene.decide(scene.bo, approval)
    assert both["state"] == "decided"
    ((_, control),) = await scene.device.queued()
    assert isinstance(control.decided_by, dict)
    assert control.decided_by["name"] == "Bo"
    assert [person["name"] for person in control.decided_by["togetherWith"]] == ["Ada"]
    denied = await scene.ask("act_2")
    await scene.decide(scene.ada, denied)
    over = await scene.decide(scene.bo, denied, "deny")
    assert (over["state"], over["decision"], over["decidedBy"]["name"]) == (
        "decided",
        "deny",
        "Bo",
    )


@pytest.mark.requirement("hub.approvals.several")
async def test_the_hub_the_device_and_the_target_ask_for_the_most_of_approvers(tmp_path: Path):
    found = msgspec.structs.replace(links(), required=2)
    async with running_hub(tmp_path, approvals=found) as hub:
        scene = await build_scene(hub, found)
        ada, services = scene.ada, hub.hub.services
        await ada.request("PUT", "/v1/devices/dev_1/approval-rule", {"required": 1})
        # A device does not undo what the Hub asks for.
        assert (await scene.ask())["required"] == 2
        body = {"name": "Prod", "deviceId": "dev_1", "approvalsRequired": 3}
        target = await ada.post("/v1/execution-targets", body)
        new = NewTask(
            person_id=ada.person_id,
            device_id="dev_1",
            target_id=target["targetId"],
            agent_type="demo",
            prompt="deploy",
        )
        async with services.database.write() as connection:
            await connection.execute(update(devices).values(agents='["demo"]'))
        async with services.events.change() as change:
            await create_task(change, new, ORIGIN)
        early = await scene.ask("act_2")
        async with services.database.write() as connection:
            await connection.execute(update(agent_tasks).values(edge_run_id="run_1"))
        assert (early["required"], (await scene.ask("act_3"))["required"]) == (2, 3)
        # Whoever gave the task counts like everybody else, and once.
        for _ in range(2):
            shown = await scene.decide(ada, early)
            assert (shown["state"], len(shown["votes"])) == ("seen", 1)
        # The task of a run may become known after its question.
        both = await scene.decide(scene.bo, early)
        assert (both["state"], both["required"], len(both["votes"])) == ("seen", 3, 2)


@pytest.mark.requirement("hub.approvals.several")
async def test_a_vote_counts_no_more_once_the_request_or_the_right_is_another(scene: Scene):
    shared = scene.links.deciders
    assert isinstance(shared, SharedDevices)
    await scene.ada.request("PUT", "/v1/devices/dev_1/approval-rule", {"required": 2})
    approval = await scene.ask(args=1)
    await scene.decide(scene.ada, approval)
    changed = scene.device.request("act_1", 2)
    await scene.device.upload(msgspec.structs.replace(changed, event_class="action.updated"))
    asked_again = await scene.read(approval)
    assert (asked_again["state"], asked_again["votes"]) == ("asked", [])
    await scene.decide(scene.bo, asked_again)
    shared.watchers.add(scene.bo.person_id)
    assert (await scene.decide(scene.ada, asked_again))["state"] == "seen"
    assert await scene.device.queued() == []


@pytest.mark.requirement("hub.approvals.steps")
@pytest.mark.parametrize(
    ("refused", "state"),
    [
        ("approval_decided", "refused"),
        ("approval_expired", "expired"),
        ("unknown_approval", "refused"),
        ("approval_changed", "asked"),
        ("approval_not_shown", "asked"),
    ],
)
async def test_a_decision_that_the_device_refuses_is_not_shown_as_applied(
    scene: Scene, refused: str, state: str
):
    approval = await scene.ask()
    await scene.decide(scene.ada, approval)
    ((delivery_id, _),) = await scene.device.queued()
    await scene.device.acknowledge(delivery_id, refused)
    await scene.device.acknowledge(delivery_id)
    shown = await scene.read(approval)
    assert (shown["state"], shown["code"]) == (state, refused)
    assert "appliedAt" not in shown


@pytest.mark.requirement("hub.approvals.lost")
async def test_a_decision_that_does_not_reach_its_device_is_made_or_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = ApprovalLinks(deciders=SharedDevices(), cards=DeviceMemory())
    async with running_hub(tmp_path, approvals=found) as hub:
        scene = await build_scene(hub, found)
        ada, link = scene.ada, hub.hub.links.link

        async def state_of(approval: Any) -> tuple[str, str | None]:
            shown = await scene.read(approval)
            return shown["state"], shown.get("code")

        async def make_dead_letter() -> Any:
            with monkeypatch.context() as patch:
                for module in (edge_link, deliveries):
                    patch.setattr(module, "DELIVERY_ATTEMPTS", 0)
                await link._send_queue("dev_1")
            [letter] = (await ada.get("/v1/dead-letters"))["items"]
            return letter

        approval = await scene.ask()
        before = await ada.get("/v1/approvals?status=all")
        await scene.decide(ada, approval)
        hub.clock.advance(1)
        letter = await make_dead_letter()
        assert await state_of(approval) == ("refused", "not_acknowledged")
        waiting = await ada.get("/v1/approvals?status=waiting")
        assert [each["decision"] for each in waiting["items"]] == ["allow"]
        notice = (await ada.get("/v1/notifications"))["items"][0]
        assert notice["title"] == "Your decision did not reach Laptop"
        retried = await ada.post(f"/v1/dead-letters/{letter['deliveryId']}:retry", None, 200)
        assert (retried["state"], retried["attempts"]) == ("pending", 1)
        assert await state_of(approval) == ("decided", None)
        assert (await scene.decide(ada, approval, "deny", 409))["code"] == "approval_decided"
        letter = await make_dead_letter()
        # The device asks still, so people decide again, otherwise if they like.
        assert (await scene.decide(scene.bo, approval, "deny"))["state"] == "decided"
        gone = await ada.request("POST", f"/v1/dead-letters/{letter['deliveryId']}:retry")
        assert gone.json()["code"] == "unknown_delivery"
        # Nothing that is said of the first decision is about this one.
        await scene.device.acknowledge(letter["deliveryId"])
        assert await state_of(approval) == ("decided", None)
        assert await replay(scene, ada, before) == by_id(await ada.get("/v1/approvals?status=all"))
        hub.clock.advance(DECISION_SECONDS + 1)
        scene = scene._replace(ada=await hub.sign_in("Ada"))
        await link.tick()
        assert await state_of(approval) == ("expired", "delivery_expired")
        # The device had it after all: its facts say so.
        await scene.device.resolve("act_1", "denied")
        assert await state_of(approval) == ("sent", None)


@pytest.mark.requirement("hub.approvals.joined-again")
async def test_what_an_edge_asked_is_seen_and_decided_after_it_has_joined_again(scene: Scene):
    approval = await scene.ask()
    before = await scene.bo.get("/v1/approvals?status=all")
    await scene.device.join_again("2")
    for person in (scene.ada, scene.bo):
        assert by_id(await person.get("/v1/approvals")).keys() == {approval["approvalId"]}
    unknown = await scene.decide(scene.eve, approval, status=404)
    assert unknown["code"] == "unknown_approval"
    # It goes to the device that the Edge is now.
    assert (await scene.decide(scene.bo, approval))["state"] == "decided"
    assert scene.device.edge.device_id == "dev_2"
    ((delivery_id, _),) = await scene.device.queued()
    await scene.decide(scene.ada, approval)
    outbox = scene.links.outbox
    assert isinstance(outbox, TableOutbox)
    assert outbox.resent == ["dev_2"]
    await scene.device.acknowledge(delivery_id)
    await scene.device.resolve("act_1")
    await scene.device.apply("act_1")
    assert (await scene.read(approval))["state"] == "applied"
    fresh = await scene.bo.get("/v1/approvals?status=all")
    assert await replay(scene, scene.bo, before) == by_id(fresh)


@pytest.mark.requirement("hub.approvals.joined-again")
@pytest.mark.requirement("link.control")
async def test_a_decision_for_the_former_device_goes_on_to_the_new_one(tmp_path: Path):
    found = ApprovalLinks(deciders=SharedDevices(), cards=DeviceMemory())
    async with running_hub(tmp_path, approvals=found) as hub:
        scene = await build_scene(hub, found)
        link, services = hub.hub.links.link, hub.hub.services
        approval = await scene.ask()
        await scene.decide(scene.ada, approval)
        await scene.device.join_again("2")
        hub.clock.advance(1)
        await link.tick()
        assert (await scene.read(approval))["state"] == "decided"
        async with services.database.read() as connection:
            query = select(delivery_table).where(delivery_table.c.kind == "control")
            row = (await connection.execute(query)).mappings().one()
        control = msgspec.json.decode(row["payload"], type=AgentControl)
        assert (row["device_id"], row["state"], control.edge_device_id) == (
            "dev_2",
            "pending",
            "dev_2",
        )
        ack = DeliveryAck(delivery_id=row["delivery_id"])
        await link.take_frame(Device(device_id="dev_2"), "delivery.ack", ack)
        assert (await scene.read(approval))["state"] == "sent"


@pytest.mark.requirement("hub.approvals.joined-again")
async def test_what_is_decided_for_an_edge_that_has_left_is_decided_once_it_is_back(
    tmp_path: Path,
):
    found = ApprovalLinks(deciders=SharedDevices(), cards=DeviceMemory())
    async with running_hub(tmp_path, approvals=found) as hub:
        scene = await build_scene(hub, found)
        decided, waiting = await scene.ask("act_1"), await scene.ask("act_2")
        await scene.decide(scene.ada, decided)
        before = await scene.bo.get("/v1/approvals?status=all")
        assert (await scene.ada.request("DELETE", "/v1/devices/dev_1")).status_code == 204
        hub.clock.advance(1)
        await hub.hub.links.link.tick()
        shown = await scene.read(decided)
        assert (shown["state"], shown["code"], shown["mayDecide"]) == (
            "refused",
            "device_revoked",
            False,
        )
        # Everybody sees what became of it, and nobody can be asked to decide.
        fresh = await scene.bo.get("/v1/approvals?status=all")
        assert await replay(scene, scene.bo, before) == by_id(fresh)
        assert (await scene.ada.get("/v1/approvals"))["items"] == []
        refused = await scene.decide(scene.ada, waiting, status=409)
        assert refused["code"] == "device_revoked"
        await scene.device.join_again("2")
        assert by_id(await scene.ada.get("/v1/approvals")).keys() == by_id(fresh).keys()
        for approval in (decided, waiting):
            assert (await scene.decide(scene.ada, approval, "deny"))["state"] == "decided"


@pytest.mark.requirement("hub.approvals.joined-again")
@pytest.mark.requirement("hub.approvals.several")
async def test_joining_again_undoes_no_rule_for_several_people(scene: Scene):
    ada, services = scene.ada, scene.hub.hub.services
    await ada.request("PUT", "/v1/devices/dev_1/approval-rule", {"required": 2})
    body = {"name": "Prod", "deviceId": "dev_1", "approvalsRequired": 3}
    target = await ada.post("/v1/execution-targets", body)
    new = NewTask(
        person_id=ada.person_id,
        device_id="dev_1",
        target_id=target["targetId"],
        agent_type="demo",
        prompt="deploy",
    )
    async with services.database.write() as connection:
        await connection.execute(update(devices).values(agents='["demo"]'))
    async with services.events.change() as change:
        await create_task(change, new, ORIGIN)
        await change.connection.execute(update(agent_tasks).values(edge_run_id="run_1"))
    await scene.device.join_again("2")
    assert await ada.get("/v1/devices/dev_2/approval-rule") == {"required": 2}
    assert (await scene.ask())["required"] == 3


def in_seconds(scene: Scene, seconds: int) -> str:
    """A time, as a fact says when its request expires."""
    return format_time(scene.hub.hub.services.now() + seconds * 1_000)


async def pass_time(scene: Scene, seconds: int) -> None:
    scene.hub.clock.advance(seconds)
    await scene.hub.hub.links.link.tick()


@pytest.mark.requirement("hub.approvals.expiry")
async def test_an_approval_of_a_device_that_never_returns_expires_by_the_clock_of_the_hub(
    scene: Scene,
):
    approval = await scene.ask(expiresAt=in_seconds(scene, 60))
    other = await scene.ask("act_2", expiresAt=in_seconds(scene, 3_600))
    before = await scene.bo.get("/v1/approvals?status=all")
    notifications_of_ada = await scene.bo.get("/v1/notifications")
    await pass_time(scene, 59)
    assert (await scene.read(approval))["state"] == "asked"
    await pass_time(scene, 1)
    shown = await scene.read(approval)
    assert (shown["state"], shown["code"], "endedAt" in shown) == ("expired", "overdue", True)
    waiting = await scene.ada.get("/v1/approvals")
    assert by_id(waiting).keys() == {other["approvalId"]}
    assert (await scene.decide(scene.ada, approval, status=410))["code"] == "approval_expired"
    fresh = await scene.bo.get("/v1/approvals?status=all")
    assert await replay(scene, scene.bo, before) == by_id(fresh)
    new = await scene.bo.get("/v1/notifications")
    assert await replay(scene, scene.bo, notifications_of_ada) == by_id(new)
    closed = [each for each in new["items"] if "closedAt" in each]
    assert [each["payload"]["approvalId"] for each in closed] == [approval["approvalId"]]


@pytest.mark.requirement("hub.approvals.expiry")
@pytest.mark.parametrize(
    ("event_class", "payload", "expected"),
    [
        ("action.resolved", {"decision": "denied", "applied": False}, ("sent", None, "deny")),
        ("action.expired", {}, ("expired", None, None)),
        ("action.cancelled", {}, ("withdrawn", None, None)),
    ],
)
async def test_what_the_device_says_of_what_expired_at_the_hub_is_what_happened(
    scene: Scene, event_class: str, payload: dict[str, Any], expected: tuple[str | None, ...]
):
    approval = await scene.ask(expiresAt=in_seconds(scene, 60))
    await pass_time(scene, 61)
    assert (await scene.read(approval))["code"] == "overdue"
    await scene.device.upload(scene.device.fact(event_class, "act_1", **payload))
    shown = await scene.read(approval)
    assert (shown["state"], shown.get("code"), shown.get("decision")) == expected
    await scene.device.apply("act_1", "denied")
    shown = await scene.read(approval)
    assert (shown["state"] == "applied") == (event_class == "action.resolved")


@pytest.mark.requirement("hub.approvals.expiry")
async def test_a_device_that_asks_for_longer_is_answered_for_longer(scene: Scene):
    approval = await scene.ask(expiresAt=in_seconds(scene, 60))
    decided = await scene.ask("act_2", expiresAt=in_seconds(scene, 60))
    await scene.decide(scene.ada, decided)

    async def ask_longer(action_id: str) -> None:
        fact = scene.device.request(action_id, expiresAt=in_seconds(scene, 600))
        await scene.device.upload(msgspec.structs.replace(fact, event_class="action.updated"))

    await ask_longer("act_2")
    await pass_time(scene, 61)
    assert (await scene.read(approval))["code"] == "overdue"
    assert (await scene.read(decided))["state"] == "decided"
    await ask_longer("act_1")
    shown = await scene.read(approval)
    assert (shown["state"], shown.get("code")) == ("asked", None)
    assert (await scene.decide(scene.bo, approval))["state"] == "decided"


@pytest.mark.requirement("hub.approvals.expiry")
async def test_a_decision_that_is_not_there_in_time_expires_and_those_who_made_it_are_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = ApprovalLinks(deciders=SharedDevices(), cards=DeviceMemory())
    async with running_hub(tmp_path, approvals=found) as hub:
        scene = await build_scene(hub, found)
        ada, link, times = scene.ada, hub.hub.links.link, in_seconds(scene, 60)
        lost = await scene.ask("act_1", expiresAt=times)
        await scene.decide(ada, lost)
        with monkeypatch.context() as patch:
            for module in (edge_link, deliveries):
                patch.setattr(module, "DELIVERY_ATTEMPTS", 0)
            await link._send_queue("dev_1")
        approval = await scene.ask("act_2", expiresAt=times)
        await scene.decide(ada, approval)
        waiting = (await ada.get("/v1/devices/dev_1/deliveries"))["items"]
        await pass_time(scene, 60)
        for each in (lost, approval):
            shown = await scene.read(each)
            assert (shown["state"], shown["code"], shown["decision"]) == (
                "expired",
                "overdue",
                "allow",
            )
        titles = [each["title"] for each in (await ada.get("/v1/notifications"))["items"]]
        assert titles[0] == "Your decision did not reach Laptop in time"
        # Neither is sent any more, by the Hub or by anybody.
        assert (await ada.get("/v1/devices/dev_1/deliveries"))["items"] == []
        assert (await ada.get("/v1/dead-letters"))["items"] == []
        # The device had it in time, and could not say so.
        ack = DeliveryAck(delivery_id=waiting[0]["deliveryId"])
        await link.take_frame(Device(device_id="dev_1"), "delivery.ack", ack)
        assert (await scene.read(approval))["state"] == "sent"


@pytest.mark.requirement("hub.approvals.steps")
async def test_what_somebody_decided_at_the_device_is_shown_as_theirs(scene: Scene):
    approval = await scene.ask()
    await scene.device.resolve("act_1", "denied", decidedBy={"name": "Grace", "via": "workbench"})
    shown = await scene.read(approval)
    assert (shown["state"], shown["decision"], shown["decidedBy"]["name"]) == (
        "sent",
        "deny",
        "Grace",
    )
    assert (await scene.decide(scene.ada, approval, status=409))["code"] == "approval_decided"
    other = await scene.ask("act_2")
    await scene.decide(scene.ada, other)
    await scene.device.resolve("act_2", "denied", decidedBy="Grace")
    assert (await scene.read(other))["state"] == "refused"


@pytest.mark.requirement("hub.approvals.steps")
async def test_facts_that_are_read_again_ask_nothing_anew(scene: Scene):
    question = scene.device.request("act_1")
    answer = scene.device.fact("action.resolved", "act_1", decision="approved", applied=False)
    await scene.device.upload(question, answer)
    # Closed in the same breath, as a standing rule does: nobody is disturbed.
    assert (await scene.ada.get("/v1/notifications"))["items"] == []
    await scene.device.upload(question)
    await scene.device.upload(answer)
    everything = (await scene.ada.get("/v1/approvals?status=all"))["items"]
    assert [(row["state"], row["decision"]) for row in everything] == [("sent", "allow")]
    # Two threads that ask under one id are two requests, named as in the Edge's own lists.
    twin = msgspec.structs.replace(scene.device.request("act_1"), thread_id="thr_2")
    await scene.device.upload(twin)
    rows = (await scene.ada.get("/v1/approvals"))["items"]
    assert [row["requestId"] for row in rows] == ["thr_2~act_1"]


@pytest.mark.requirement("hub.approvals.events")
async def test_a_list_and_the_events_after_it_are_what_is_read_anew(scene: Scene):
    approval = await scene.ask()
    path = "/v1/approvals?status=all"
    old_approvals, old_told = await scene.bo.get(path), await scene.bo.get("/v1/notifications")
    await scene.ask("act_2")
    await scene.decide(scene.ada, approval)
    ((delivery_id, _),) = await scene.device.queued()
    await scene.device.acknowledge(delivery_id)
    await scene.device.resolve("act_1")
    await scene.device.apply("act_1")
    await scene.device.upload(scene.device.fact("action.expired", "act_2"))
    new_approvals, new_told = await scene.bo.get(path), await scene.bo.get("/v1/notifications")
    assert await replay(scene, scene.bo, old_approvals) == by_id(new_approvals)
    assert await replay(scene, scene.bo, old_told) == by_id(new_told)


def by_id(page: Any) -> dict[str, Any]:
    return {row.get("approvalId") or row["notificationId"]: row for row in page["items"]}


NAMES = {"seen_at": "seenAt", "opened_at": "openedAt", "closed_at": "closedAt"}


async def replay(scene: Scene, person: HubPerson, page: Any) -> dict[str, Any]:
    """A list, brought up to date by the events after it, as a screen does it."""
    rows, is_told = by_id(page), "notificationId" in (page["items"] or [{}])[0]
    async with scene.hub.hub.services.database.read() as connection:
        after = Cursor.parse(page["asOf"]).seq
        events = await read_events(connection, person.person_id, after, 1_000)
    for event in events:
        payload = msgspec.json.decode(event.payload)
        if event.type == "approval.updated" and not is_told:
            rows[payload["approval_id"]] = payload["approval"]
        elif event.type == "notification.new" and is_told:
            rows[payload["notification_id"]] = {
                "notificationId": payload["notification_id"],
                "type": payload["type"],
                "title": payload["title"],
                "payload": payload["payload"],
                "createdAt": payload["created_at"],
                "expiresAt": payload["expires_at"],
            }
        elif event.type == "notification.updated" and is_told:
            changed = {NAMES[name]: value for name, value in payload.items() if name in NAMES}
            known = {name: value for name, value in changed.items() if value is not None}
            rows[payload["notification_id"]] |= known
    return rows


@pytest.mark.requirement("hub.owners")
async def test_notifications_targets_and_approvals_of_somebody_else_are_not_found(tmp_path: Path):
    """S6 for these routes: an admin with other people's ids learns as much as with no id."""
    groups = (notification_routes.GROUP, approval_routes.GROUP)
    routes = [route for group in groups for route in group.access_by_route() if "{" in route]
    bodies: dict[str, Any] = {
        "decide": BODIES["decideApproval"],
        "confirm": BODIES["confirmMailAddress"],
        "approval-rule": BODIES["changeApprovalRule"],
        "opened": {},
    }
    async with running_hub(tmp_path, approvals=links()) as hub:
        ada = await hub.first_admin()
        bo, ids = await things_of(hub, ada, "Bo")
        for route in routes:
            method, _, template = route.partition(" ")
            named = re.sub(r"_(\w)", lambda found: found[1].upper(), template)
            body = bodies.get(template.rpartition("/")[2], {})
            theirs = await ada.request(method, named.format(**ids), body)
            nobodys = await ada.request(method, re.sub(r"\{\w+\}", "x", named), body)
            assert theirs.status_code == nobodys.status_code == 404, (route, theirs.text)
            assert theirs.json()["code"] == nobodys.json()["code"]
        own = await bo.request("GET", f"/v1/approvals/{ids['approvalId']}")
        assert (len(routes), own.status_code) == (12, 200)
