"""What a grant allows, and that it is over when it ends: attacks that are refused, and succeed once
their protection is switched off, and what those may do who have a grant.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert, or_, select, true

from factwire.hub.frames.event_log import read_events
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.link import deliveries as delivery_queue
from factwire.hub.link import edge_link, relay
from factwire.hub.link.agent_tasks import may_use_device
from factwire.hub.people.accounts import new_id
from factwire.hub.records.device_tables import devices, grants
from factwire.hub.records.link_tables import agent_tasks, deliveries
from factwire.hub.routes import task_routes
from factwire.journal import Cursor
from tests.hub.asking_devices import AskingDevice
from tests.hub.chat_people import befriend, code_of, create_group, say
from tests.hub.hubs import HubDevice, HubPerson, RunningHub, running_hub
from tests.hub.test_hub_attacks import Attack
from tests.hub.test_hub_law import Machine, Work

pytestmark = pytest.mark.asyncio

Patch = pytest.MonkeyPatch
EDGE = "edge_1"
THREAD = "thr_1"


class Shared:
    """A device of Ada's, which is away, and Bo, with whom she shares it or a part of it."""

    def __init__(self, hub: RunningHub, ada: HubPerson, bo: HubPerson, device: HubDevice) -> None:
        self.hub = hub
        self.ada = ada
        self.bo = bo
        self.device_id = device.device_id
        self.machine = Machine(EDGE, device)

    async def share(self, role: str, person: str = "Bo", **more: str) -> str:
        body = {"person": person, "role": role, "deviceId": self.device_id, **more}
        return (await self.ada.post("/v1/grants", body))["grantId"]

    async def share_thread(self, role: str) -> None:
        """As a grant for a thread that the mirror has."""
        values = {"grant_id": new_id("grt"), "kind": "thread", "subject_id": THREAD, "role": role}
        people = {"owner_id": self.ada.person_id, "grantee_id": self.bo.person_id}
        async with self.hub.hub.services.database.write() as connection:
            row = {**values, **people, "edge_id": EDGE, "created_at": 0}
            await connection.execute(insert(grants).values(row))

    async def revoke(self, grant_id: str) -> None:
        answer = await self.ada.request("DELETE", f"/v1/grants/{grant_id}")
        assert answer.status_code == 204

    async def give(self, person: HubPerson, **more: Any) -> tuple[int, str]:
        body = {"deviceId": self.device_id, "agentType": "demo", "prompt": "go", **more}
        answer = await person.request("POST", "/v1/agent-tasks", body)
        found = answer.json()
        return answer.status_code, found.get("code") or found["taskId"]

    async def ask(self, action_id: str = "act_1", run_id: str = "run_1") -> dict[str, Any]:
        """Have an agent of the device ask something."""
        asking = AskingDevice(self.hub.hub.services, self.ada.person_id)
        asking.edge = msgspec.structs.replace(asking.edge, device_id=self.device_id)
        request = asking.request(action_id, {"command": "make"})
        await asking.upload(msgspec.structs.replace(request, run_id=run_id))
        rows = (await self.ada.get("/v1/approvals"))["items"]
        return next(row for row in rows if row["requestId"] == action_id)

    async def decide(self, person: HubPerson, approval: dict[str, Any]) -> tuple[int, str]:
        body = {"decision": "allow", "argsHash": approval["argsHash"]}
        path = f"/v1/approvals/{approval['approvalId']}/decide"
        answer = await person.request("POST", path, body)
        return answer.status_code, answer.json().get("code") or answer.json()["state"]

    async def begin(self, task_id: str, run_id: str, thread_id: str) -> None:
        """Have the device come, and say that it has begun a task."""
        work = Work(self.hub, 0)
        await work.connect_machine(self.machine)
        device = await work._edge_device(self.machine)
        [row] = await self.deliveries(deliveries.c.task_id == task_id)
        ack = edge_link.DeliveryAck(
            delivery_id=row["delivery_id"], edge_run_id=run_id, thread_id=thread_id
        )
        assert device is not None
        await self.hub.hub.links.link.take_frame(device, "delivery.ack", ack)

    async def connect(self) -> None:
        """Have the device come, and a second pass."""
        await Work(self.hub, 0).connect_machine(self.machine)
        self.hub.clock.advance(1)
        await self.hub.hub.links.link.tick()

    async def deliveries(self, *conditions: Any) -> list[Any]:
        query = select(deliveries).where(*conditions).order_by(deliveries.c.position)
        async with self.hub.hub.services.database.read() as connection:
            return list((await connection.execute(query)).mappings())

    async def list_actions(self) -> list[str]:
        rows = (await self.ada.get("/v1/audit?limit=200"))["items"]
        return [row["action"] for row in reversed(rows)]


async def read_told(hub: RunningHub, person: HubPerson, as_of: str) -> list[tuple[str, Any]]:
    """What somebody was told after a cursor."""
    async with hub.hub.services.database.read() as connection:
        found = await read_events(connection, person.person_id, Cursor.parse(as_of).seq, 1_000)
    return [(event.type, msgspec.json.decode(event.payload)) for event in found]


async def set_up(hub: RunningHub) -> Shared:
    ada = await hub.first_admin()
    bo = await hub.join(ada, "Bo")
    return Shared(hub, ada, bo, await hub.join_device(ada, EDGE))


async def _queue_work(shared: Shared) -> tuple[str, dict[str, Any]]:
    """A task, a decision and a relayed request of Bo's, while the device is away."""
    _, task_id = await shared.give(shared.bo)
    approval = await shared.ask()
    assert await shared.decide(shared.bo, approval) == (200, "decided")
    path = f"/v1/edges/{EDGE}/threads"
    await shared.bo.post(path, {"title": "x"}, 202, prefer="respond-async")
    return task_id, approval


async def _expect_unsent(shared: Shared, task_id: str, approval: dict[str, Any]) -> None:
    at = (await shared.ada.get("/v1/agent-tasks"))["asOf"]
    await shared.connect()
    found = [(row["kind"], row["attempts"], row["code"]) for row in await shared.deliveries()]
    kinds = ("dispatch", "control", "relay")
    assert found == [(kind, 0, "right_ended") for kind in kinds]
    task = await shared.ada.get(f"/v1/agent-tasks/{task_id}")
    assert (task["status"], task["error"]["code"]) == ("failed", "right_ended")
    events = await read_told(shared.hub, shared.ada, at)
    assert {"agent.failed", "approval.updated"} <= {kind for kind, _ in events}
    # Others decide instead.
    path = f"/v1/approvals/{approval['approvalId']}"
    row = await shared.ada.get(path)
    assert (row["state"], row["code"], row["mayDecide"]) == ("refused", "right_ended", True)
    assert await shared.decide(shared.ada, approval) == (200, "decided")


async def have_work_done_after_the_grant_was_revoked(hub: RunningHub) -> None:
    shared = await set_up(hub)
    grant_id = await shared.share("operator")
    queued = await _queue_work(shared)
    await shared.revoke(grant_id)
    await _expect_unsent(shared, *queued)


async def have_work_done_after_the_grant_became_less(hub: RunningHub) -> None:
    shared = await set_up(hub)
    await shared.share("operator")
    queued = await _queue_work(shared)
    await shared.share("commenter")
    await _expect_unsent(shared, *queued)


async def have_work_done_by_somebody_who_was_disabled(hub: RunningHub) -> None:
    shared = await set_up(hub)
    await shared.share("operator")
    queued = await _queue_work(shared)
    await shared.ada.request("PATCH", f"/v1/people/{shared.bo.person_id}", {"disabled": True})
    await _expect_unsent(shared, *queued)


async def have_work_done_by_somebody_who_only_reads(hub: RunningHub) -> None:
    shared = await set_up(hub)
    await shared.share("operator")
    queued = await _queue_work(shared)
    await shared.ada.request("PATCH", f"/v1/people/{shared.bo.person_id}", {"role": "viewer"})
    await _expect_unsent(shared, *queued)


async def _decide_by_two(shared: Shared) -> tuple[str, HubPerson, dict[str, Any]]:
    """Something that needs two people, allowed by Bo and then Cy while the device is away."""
    cy = await shared.hub.join(shared.ada, "Cy")
    path = f"/v1/devices/{shared.device_id}/approval-rule"
    await shared.ada.request("PUT", path, {"required": 2})
    grant_id = await shared.share("approver")
    await shared.share("approver", "Cy")
    approval = await shared.ask()
    assert await shared.decide(shared.bo, approval) == (200, "seen")
    assert await shared.decide(cy, approval) == (200, "decided")
    return grant_id, cy, approval


async def _expect_a_vote_less(shared: Shared, cy: HubPerson, approval: dict[str, Any]) -> None:
    await shared.connect()
    [row] = await shared.deliveries()
    assert (row["attempts"], row["code"]) == (0, "right_ended")
    shown = await cy.get(f"/v1/approvals/{approval['approvalId']}")
    assert (shown["state"], shown["code"]) == ("refused", "right_ended")
    # The vote of who may still decide counts, so that one more is enough.
    assert [vote["personId"] for vote in shown["votes"]] == [cy.person_id]
    titles = [row["title"] for row in (await cy.get("/v1/notifications"))["items"]]
    assert any(title.endswith("is waiting for a decision again") for title in titles)
    assert await shared.decide(shared.ada, approval) == (200, "decided")
    shared.hub.clock.advance(1)
    await shared.hub.hub.links.link.tick()
    [_, sent] = await shared.deliveries()
    by = msgspec.json.decode(sent["payload"])["edge_control"]["decidedBy"]
    named = [by["userId"], *(each["userId"] for each in by["togetherWith"])]
    assert (sent["state"], named) == ("sent", [shared.ada.person_id, cy.person_id])


async def have_a_vote_count_after_the_grant_was_revoked(hub: RunningHub) -> None:
    shared = await set_up(hub)
    grant_id, cy, approval = await _decide_by_two(shared)
    await shared.revoke(grant_id)
    await _expect_a_vote_less(shared, cy, approval)


async def have_a_vote_count_of_somebody_who_only_reads(hub: RunningHub) -> None:
    shared = await set_up(hub)
    _, cy, approval = await _decide_by_two(shared)
    await shared.ada.request("PATCH", f"/v1/people/{shared.bo.person_id}", {"role": "viewer"})
    await _expect_a_vote_less(shared, cy, approval)


async def read_an_answer_after_the_grant_was_revoked(hub: RunningHub) -> None:
    shared = await set_up(hub)
    grant_id = await shared.share("viewer")
    request = await shared.bo.request(
        "GET", f"/v1/edges/{EDGE}/agents", None, prefer="respond-async"
    )
    assert request.status_code == 202
    answer = edge_link.RelayAnswer(status=200, headers={}, content=b"{}")
    delivery_id = request.json()["deliveryId"]
    assert await hub.hub.links.link.take_answer(shared.device_id, delivery_id, answer)
    path = request.headers["location"]
    assert (await shared.bo.request("GET", path)).status_code == 200
    await shared.revoke(grant_id)
    assert (await shared.bo.request("GET", path)).status_code == 404


async def follow_ones_task_after_the_grant_was_revoked(hub: RunningHub) -> None:
    shared = await set_up(hub)
    grant_id = await shared.share("operator")
    _, task_id = await shared.give(shared.bo)
    await shared.begin(task_id, "run_9", "thr_9")
    path = f"/v1/agent-tasks/{task_id}"
    assert (await shared.bo.get(path))["status"] == "delivered"
    await shared.revoke(grant_id)
    for method, where in (
        ("GET", path),
        ("GET", f"{path}/events"),
        ("GET", f"{path}/approvals"),
        ("POST", f"{path}:cancel"),
    ):
        assert (await shared.bo.request(method, where)).status_code == 404
    page = await shared.bo.get("/v1/agent-tasks")
    assert page["items"] == []
    await shared.ada.post(f"{path}:cancel", None, 202)
    events = await read_told(hub, shared.bo, page["asOf"])
    assert "agent.stream" not in {kind for kind, _ in events}


async def start_a_run_by_a_comment(hub: RunningHub) -> None:
    shared = await set_up(hub)
    body = {"text": "id > /tmp/x", "agentId": "shell"}
    path = f"/v1/edges/{EDGE}/threads/{THREAD}/messages"
    await shared.share_thread("commenter")
    for role in ("commenter", "approver"):
        assert await code_of(shared.bo, "POST", path, body) == (403, "insufficient_grant")
        await shared.share(role)
    assert await code_of(shared.bo, "POST", path, body) == (403, "insufficient_grant")
    blob = f"/v1/edges/{EDGE}/blobs"
    assert await code_of(shared.bo, "POST", blob, {"content": ""}) == (403, "insufficient_grant")


async def choose_for_the_device_of_a_thread(hub: RunningHub) -> None:
    shared = await set_up(hub)
    await shared.share_thread("operator")
    for more in ({"workDir": "/"}, {"projectId": "prj_1"}, {"modelParams": {"model": "dear"}}):
        found = await shared.give(shared.bo, threadId=THREAD, **more)
        assert found == (403, "insufficient_grant")


def _send_all(patch: Patch) -> None:
    for module in (delivery_queue, edge_link):
        patch.setattr(module, "may_send", true)


def _ask_the_last_alone(patch: Patch) -> None:
    def may_send() -> Any:
        return delivery_queue._has_right(deliveries.c.person_id, deliveries)

    for module in (delivery_queue, edge_link):
        patch.setattr(module, "may_send", may_send)


def _show_answers(patch: Patch) -> None:
    patch.setattr(task_routes, "may_send", true)


def _show_ones_own(patch: Patch) -> None:
    def select_tasks(person_id: str, role: Any) -> Any:
        usable = select(devices.c.device_id).where(may_use_device(person_id, role))
        own = agent_tasks.c.person_id == person_id
        return select(agent_tasks).where(or_(own, agent_tasks.c.device_id.in_(usable)))

    patch.setattr(tasks, "select_tasks", select_tasks)


def _relay_comments(patch: Patch) -> None:
    patch.setitem(relay.RELAY_ROLES, "POST /v1/threads/{thread_id}/messages", "commenter")
    patch.setitem(relay._SCOPES_OF_ROLES, "commenter", ["read", "run"])


def _let_choose(patch: Patch) -> None:
    async def let(*_: object) -> None: ...

    patch.setattr(tasks, "_ensure_own_choices", let)


ATTACKS = {
    "work after revocation": Attack(have_work_done_after_the_grant_was_revoked, _send_all),
    "work after a lesser grant": Attack(have_work_done_after_the_grant_became_less, _send_all),
    "work of a disabled person": Attack(have_work_done_by_somebody_who_was_disabled, _send_all),
    "work of a viewer": Attack(have_work_done_by_somebody_who_only_reads, _send_all),
    "vote after revocation": Attack(
        have_a_vote_count_after_the_grant_was_revoked, _ask_the_last_alone
    ),
    "vote of a viewer": Attack(have_a_vote_count_of_somebody_who_only_reads, _ask_the_last_alone),
    "answer after revocation": Attack(read_an_answer_after_the_grant_was_revoked, _show_answers),
    "task after revocation": Attack(follow_ones_task_after_the_grant_was_revoked, _show_ones_own),
    "run by a comment": Attack(start_a_run_by_a_comment, _relay_comments),
    "folder of a device": Attack(choose_for_the_device_of_a_thread, _let_choose),
}


@pytest.mark.requirement("link.rights")
@pytest.mark.requirement("link.grants")
@pytest.mark.parametrize("name", ATTACKS)
async def test_a_right_that_nobody_has_is_of_no_use(tmp_path: Path, name: str):
    async with running_hub(tmp_path) as hub:
        await ATTACKS[name].run(hub)


@pytest.mark.parametrize("name", ATTACKS)
async def test_it_is_of_use_without_its_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    ATTACKS[name].switch_off(monkeypatch)
    async with running_hub(tmp_path) as hub:
        with pytest.raises(AssertionError):
            await ATTACKS[name].run(hub)


@pytest.mark.requirement("link.rights")
async def test_a_task_that_its_device_may_have_heard_of_is_stopped_there(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        grant_id = await shared.share("operator")
        _, task_id = await shared.give(shared.bo)
        await shared.connect()
        await shared.revoke(grant_id)
        hub.clock.advance(1)
        await hub.hub.links.link.tick()
        found = await shared.deliveries(deliveries.c.task_id == task_id)
        states = [(row["kind"], row["state"], row["code"]) for row in found]
        assert states == [("dispatch", "expired", "right_ended"), ("cancel", "sent", None)]
        task = await shared.ada.get(f"/v1/agent-tasks/{task_id}")
        assert (task["status"], task["closing"]) == ("queued", "cancel")


@pytest.mark.requirement("link.grants")
async def test_an_operator_of_a_thread_starts_work_in_it_and_sees_it(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        bo, path = shared.bo, f"/v1/edges/{EDGE}"
        run = {"agentId": "demo", "prompt": "go", "threadId": THREAD}
        assert await code_of(bo, "POST", f"{path}/runs", run) == (404, "unknown_edge")
        await shared.share_thread("operator")
        # It is as far as the device, which is away.
        assert await code_of(bo, "POST", f"{path}/runs", run) == (409, "device_offline")
        blob = {"content": ""}
        assert await code_of(bo, "POST", f"{path}/blobs", blob) == (409, "device_offline")
        folder = {**run, "workDir": "/"}
        assert await code_of(bo, "POST", f"{path}/runs", folder) == (403, "insufficient_grant")
        for other in ({**run, "threadId": "thr_2"}, {"agentId": "demo", "prompt": "go"}):
            assert await code_of(bo, "POST", f"{path}/runs", other) == (404, "unknown_edge")
        status, task_id = await shared.give(bo, threadId=THREAD)
        assert (status, await shared.give(bo)) == (202, (404, "unknown_device"))
        assert await shared.give(bo, threadId="thr_2") == (404, "unknown_device")
        assert [row["taskId"] for row in (await bo.get("/v1/agent-tasks"))["items"]] == [task_id]
        # What others do in it is seen, too.
        _, other = await shared.give(shared.ada, threadId=THREAD)
        await shared.give(shared.ada)
        listed = [row["taskId"] for row in (await bo.get("/v1/agent-tasks"))["items"]]
        assert sorted(listed) == sorted((task_id, other))


@pytest.mark.requirement("hub.approvals.targets")
@pytest.mark.parametrize("is_known", [True, False])
async def test_operators_of_a_target_decide_what_its_tasks_ask(tmp_path: Path, *, is_known: bool):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        bo = shared.bo
        body = {"name": "docs", "deviceId": shared.device_id, "agentType": "demo"}
        target_id = (await shared.ada.post("/v1/execution-targets", body))["targetId"]
        await shared.share("operator", targetId=target_id)
        task = {"targetId": target_id, "prompt": "go"}
        task_id = (await bo.post("/v1/agent-tasks", task, 202))["taskId"]
        at = (await bo.get("/v1/approvals"))["asOf"]
        other = await shared.ask("act_other", "run_other")
        if is_known:
            await shared.begin(task_id, "run_9", "thr_9")
        approval = await shared.ask("act_own", "run_9")
        if not is_known:
            assert (await bo.get("/v1/approvals"))["items"] == []
            await shared.begin(task_id, "run_9", "thr_9")
        rows = (await bo.get("/v1/approvals"))["items"]
        assert [row["approvalId"] for row in rows] == [approval["approvalId"]]
        events = await read_told(hub, bo, at)
        updates = [payload for kind, payload in events if kind == "approval.updated"]
        assert {each["approval_id"] for each in updates} == {approval["approvalId"]}
        assert await shared.decide(bo, other) == (404, "unknown_approval")
        assert await shared.decide(bo, approval) == (200, "decided")
        [sent] = await shared.deliveries(deliveries.c.kind == "control")
        control = msgspec.json.decode(sent["payload"])
        assert (control["agent_task_id"], control["target_id"]) == (task_id, target_id)


@pytest.mark.requirement("hub.approvals.kept")
async def test_approvals_of_a_device_that_was_revoked_stay(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        approval = await shared.ask()
        await shared.ada.request("DELETE", f"/v1/devices/{shared.device_id}")
        rows = (await shared.ada.get("/v1/approvals?status=all"))["items"]
        assert [row["approvalId"] for row in rows] == [approval["approvalId"]]
        # Nobody waits for it, and nobody can decide it.
        assert (await shared.ada.get("/v1/approvals?status=waiting"))["items"] == []
        shown = await shared.ada.get(f"/v1/approvals/{approval['approvalId']}")
        assert not shown["mayDecide"]
        assert await shared.decide(shared.ada, approval) == (409, "device_revoked")


@pytest.mark.requirement("hub.audit")
async def test_work_of_agents_is_in_the_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(edge_link, "DELIVERY_ATTEMPTS", 0)
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        ada, before = shared.ada, len(await shared.list_actions())
        target = {"name": "docs", "deviceId": shared.device_id}
        path = "/v1/execution-targets"
        target_id = (await ada.post(path, target, idempotency_key="k"))["targetId"]
        await ada.post(path, target, idempotency_key="k")
        await ada.request("PATCH", f"{path}/{target_id}", {"name": "handbook"})
        await ada.request("DELETE", f"{path}/{target_id}")
        _, task_id = await shared.give(ada)
        await shared.connect()
        [letter] = (await ada.get("/v1/dead-letters"))["items"]
        await ada.post(f"/v1/dead-letters/{letter['deliveryId']}:retry", None, 200)
        for _ in range(2):
            await ada.post(f"/v1/agent-tasks/{task_id}:cancel", None, 202)
        await Work(hub, 0).disconnect_machine(shared.machine)
        thread = {"title": "x"}
        async_key = {"prefer": "respond-async", "idempotency_key": "k"}
        for _ in range(2):
            await ada.post(f"/v1/edges/{EDGE}/threads", thread, 202, **async_key)
        await ada.request("GET", f"/v1/edges/{EDGE}/agents", None, prefer="respond-async")
        assert (await shared.list_actions())[before:] == [
            "target.created",
            "target.changed",
            "target.removed",
            "task.created",
            "delivery.retried",
            "task.cancelled",
            "edge.command",
        ]


@pytest.mark.requirement("hub.chats.agents")
async def test_an_agent_of_a_revoked_device_leaves_its_chats(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        ada, bo = shared.ada, shared.bo
        await befriend(ada, bo)
        chat = await create_group(ada, [bo])
        body = {"deviceId": shared.device_id, "agentType": "demo", "name": "Demo"}
        agent = await ada.post(f"/v1/chats/{chat}/agents", body)
        refused = await say(bo, chat, "@Demo help", status=403)
        assert (refused["code"], "@Demo" in refused["detail"]) == ("agent_not_operated", True)
        at = (await bo.get("/v1/chats"))["asOf"]
        await ada.request("DELETE", f"/v1/devices/{shared.device_id}")
        members = (await bo.get(f"/v1/chats/{chat}/members"))["items"]
        assert {row["memberId"] for row in members} == {ada.person_id, bo.person_id}
        events = await read_told(hub, bo, at)
        left = [payload for kind, payload in events if kind == "session.member_left"]
        assert [each["member_id"] for each in left] == [agent["memberId"]]
        assert "tasks" not in (await say(bo, chat, "@Demo is gone"))["content"]


@pytest.mark.requirement("hub.chats.friends")
@pytest.mark.parametrize("answer", ["accept", "refuse"])
async def test_a_viewer_answers_a_friend_request(tmp_path: Path, answer: str):
    async with running_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        eve = await hub.join(ada, "Eve", "viewer")
        await ada.post("/v1/friend-requests", {"personId": eve.person_id})
        [request] = (await eve.get("/v1/friend-requests"))["items"]
        path = f"/v1/friend-requests/{request['requestId']}"
        answers: dict[str, Callable[[], Any]] = {
            "accept": lambda: eve.request("POST", f"{path}/accept"),
            "refuse": lambda: eve.request("DELETE", path),
        }
        assert (await answers[answer]()).status_code in (200, 204)
        friends = (await eve.get("/v1/contacts"))["items"]
        assert len(friends) == (answer == "accept")
        if friends:
            gone = await eve.request("DELETE", f"/v1/contacts/{ada.person_id}")
            assert gone.status_code == 204


@pytest.mark.requirement("hub.grants")
async def test_a_grant_names_who_made_it_and_who_has_it(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        at = (await shared.bo.get("/v1/grants"))["asOf"]
        await shared.share("viewer")
        [row] = (await shared.bo.get("/v1/grants"))["items"]
        assert (row["ownerName"], row["granteeName"]) == ("Ada", "Bo")
        assert await shared.ada.get(f"/v1/grants/{row['grantId']}") == row
        events = await read_told(hub, shared.bo, at)
        [made] = [payload for kind, payload in events if kind == "grant.created"]
        assert (made["owner_name"], made["user_name"]) == ("Ada", "Bo")


@pytest.mark.requirement("hub.joining")
@pytest.mark.parametrize("is_revoked", [False, True])
async def test_an_edge_that_joins_again_is_still_in_chats_and_targets(
    tmp_path: Path, *, is_revoked: bool
):
    async with running_hub(tmp_path) as hub:
        shared = await set_up(hub)
        ada, former = shared.ada, shared.device_id
        chat = await create_group(ada, [])
        body = {"deviceId": former, "agentType": "demo", "name": "Demo"}
        agent = await ada.post(f"/v1/chats/{chat}/agents", body)
        target = {"name": "docs", "deviceId": former, "agentType": "demo"}
        target_id = (await ada.post("/v1/execution-targets", target))["targetId"]
        at = (await ada.get("/v1/chats"))["asOf"]
        if is_revoked:
            await ada.request("DELETE", f"/v1/devices/{former}")
        device_id = (await hub.join_device(ada, EDGE)).device_id
        task = await ada.post("/v1/agent-tasks", {"targetId": target_id, "prompt": "go"}, 202)
        assert task["deviceId"] == device_id
        members = (await ada.get(f"/v1/chats/{chat}/members"))["items"]
        events = dict(await read_told(hub, ada, at))
        assert ("session.member_left" in events) is is_revoked
        if is_revoked:
            assert [row["memberId"] for row in members] == [ada.person_id]
            return
        assert {row["memberId"]: row.get("deviceId") for row in members} == {
            ada.person_id: None,
            agent["memberId"]: device_id,
        }
        assert events["session.member_joined"]["device_id"] == device_id
        message = await say(ada, chat, "@Demo help")
        [mention] = message["content"]["tasks"]
        found = await ada.get(f"/v1/agent-tasks/{mention['task']}")
        assert (mention["member"], found["deviceId"]) == (agent["memberId"], device_id)
