"""Clients are told over their sockets what others do: each frame, from the request that leads to it
to the socket that gets it.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio

from factwire.hub.people.devices import NewDevice, register_device
from factwire.hub.records.invitation_records import ActionOrigin
from tests.hub.chat_people import befriend, create_group, say
from tests.hub.hubs import HubPerson
from tests.hub.sent_decisions import NewDecision, send_decision
from tests.hub.served_hubs import HubClient, HubDevice, ServedHub, served_hub

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.requirement("hub.socket.frames"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServedHub]:
    async with served_hub(tmp_path_factory.mktemp("hub")) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(hub: ServedHub) -> HubPerson:
    return await hub.first_admin()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bo(hub: ServedHub, ada: HubPerson) -> HubPerson:
    return await hub.join(ada, "Bo")


async def do(person: HubPerson, method: str, path: str, body: Any = None) -> Any:
    answer = await person.request(method, path, body)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def test_a_friend_is_told_what_happens_in_chats(
    hub: ServedHub, ada: HubPerson, bo: HubPerson
):
    async with hub.screen(bo) as screen:
        request = await do(ada, "POST", "/v1/friend-requests", {"personId": bo.person_id})
        assert (await screen.next("friend.request"))["payload"]["from_user_id"] == ada.person_id
        await do(ada, "DELETE", f"/v1/friend-requests/{request['requestId']}")
        await screen.next("friend.request_ended")
        await befriend(ada, bo)
        await screen.next("friend.accepted")
        chat = await create_group(ada, [bo])
        assert (await screen.next("session.created"))["payload"]["session_id"] == chat
        path = f"/v1/chats/{chat}"
        sent = await say(ada, chat, "hello")
        message = f"{path}/messages/{sent['messageId']}"
        shown = (await screen.next("message.new"))["payload"]
        assert (shown["message_id"], shown["content"]["text"]) == (sent["messageId"], "hello")
        await do(ada, "PATCH", message, {"text": "hello again"})
        assert (await screen.next("message.edited"))["payload"]["content"]["text"] == "hello again"
        await do(ada, "POST", f"{message}/pin")
        await screen.next("message.pin")
        await do(ada, "DELETE", f"{message}/pin")
        await screen.next("message.unpin")
        await do(ada, "POST", f"{message}/reactions", {"emoji": "👍"})
        await screen.next("message.reaction")
        await do(bo, "POST", f"{path}/read", {"seqId": 1})
        await screen.next("message.read")
        await do(ada, "DELETE", message)
        await screen.next("message.recall")
        await do(ada, "PATCH", path, {"name": "Other"})
        assert (await screen.next("session.info_updated"))["payload"]["changes"]["name"] == "Other"
        cy = await hub.join(ada, "Cy")
        await befriend(ada, cy)
        await do(ada, "POST", f"{path}/members", {"personIds": [cy.person_id]})
        assert (await screen.next("session.member_joined"))["payload"]["member_id"] == cy.person_id
        await do(cy, "POST", f"{path}/leave")
        await screen.next("session.member_left")
        await do(ada, "DELETE", path)
        await screen.next("session.dissolved")
        await do(ada, "DELETE", f"/v1/contacts/{bo.person_id}")
        await screen.next("friend.removed")


class Scene:
    """A device of Ada's with its socket, and a screen of hers."""

    def __init__(
        self, hub: ServedHub, ada: HubPerson, device: HubDevice, edge: HubClient, screen: HubClient
    ) -> None:
        self.hub = hub
        self.ada = ada
        self.device = device
        self.edge = edge
        self.screen = screen

    async def dispatch(self, **more: Any) -> str:
        """A task that the device has, and works on."""
        body = {"deviceId": self.device.device_id, "agentType": "demo", "prompt": "go", **more}
        task_id = (await self.ada.post("/v1/agent-tasks", body, 202))["taskId"]
        frame = (await self.edge.next("agent.dispatch"))["payload"]
        assert (frame["task_id"], frame["edge_device_id"]) == (task_id, self.device.device_id)
        await self.edge.send(
            "delivery.ack",
            delivery_id=frame["delivery_id"],
            edge_run_id=f"run_{task_id}",
            thread_id=f"thr_{task_id}",
        )
        # Frames of a device are taken one after another.
        await self.synchronize()
        return task_id

    async def synchronize(self) -> None:
        """Have the Hub answer, after all that the device sent before."""
        about = {"producer": "edge_1", "epoch": "0" * 16}
        await self.edge.send("sync.event.uploaded", **about, fromSeq=1, toSeq=2)
        assert (await self.edge.next("sync.ack"))["payload"] == {"ackedSeq": 0}

    async def pass_time(self, seconds: float) -> None:
        self.hub.clock.advance(seconds)
        await self.hub.hub.links.link.tick()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(hub: ServedHub, ada: HubPerson) -> AsyncGenerator[Scene]:
    services = hub.hub.services
    new = NewDevice(
        person_id=ada.person_id, person_name="Ada", edge_id="edge_1", name="laptop", agents=["demo"]
    )
    async with hub.screen(ada) as screen:
        async with services.events.change() as change:
            origin = ActionOrigin(via="test", address="")
            joined = await register_device(services, change, new, origin)
        body = {"deviceToken": joined.device_token}
        access = (await hub.post("/v1/auth/device", body)).json()
        device = HubDevice(joined.device_id, "edge_1", access["accessToken"], "")
        async with hub.edge(device) as edge:
            yield Scene(hub, ada, device, edge, screen)


async def test_people_are_told_of_devices_and_of_what_is_shared(scene: Scene, bo: HubPerson):
    ids = {"device_id": scene.device.device_id}
    registered = (await scene.screen.next("device.registered"))["payload"]
    assert ids.items() <= registered.items()
    assert ids.items() <= (await scene.screen.next("edge.registered"))["payload"].items()
    async with scene.hub.screen(bo) as other:
        body = {"person": "Bo", "role": "viewer", "deviceId": scene.device.device_id}
        grant = await do(scene.ada, "POST", "/v1/grants", body)
        await other.next("grant.created")
        await do(scene.ada, "DELETE", f"/v1/grants/{grant['grantId']}")
        await other.next("grant.revoked")


async def test_a_device_gets_tasks_and_tells_how_they_ended(scene: Scene):
    done = await scene.dispatch()
    await scene.edge.send("agent.done", task_id=done, result_summary="all of it", usage={})
    assert (await scene.edge.next("end.ack"))["payload"] == {"task_id": done}
    assert (await scene.screen.next("agent.done"))["payload"]["result_summary"] == "all of it"
    failed = await scene.dispatch()
    await scene.edge.send("agent.failed", task_id=failed, error={"message": "no"})
    assert (await scene.edge.next("end.ack"))["payload"] == {"task_id": failed}
    assert (await scene.screen.next("agent.failed"))["payload"]["task_id"] == failed


async def test_a_device_is_told_to_stop_and_what_was_decided(scene: Scene):
    task = await scene.dispatch()
    await scene.ada.post(f"/v1/agent-tasks/{task}:cancel", None, 202)
    assert (await scene.edge.next("agent.cancel"))["payload"]["task_id"] == task
    late = await scene.dispatch(timeout=60)
    await scene.pass_time(61)
    assert (await scene.edge.next("agent.timeout"))["payload"]["task_id"] == late
    async with scene.hub.hub.services.events.change() as change:
        decision = NewDecision(
            person_id=scene.ada.person_id,
            device_id=scene.device.device_id,
            run_id="run_1",
            approval_id="apr_1",
            screen_id="ses_1",
            decision="allow",
            args_hash="sha256:" + "0" * 64,
        )
        await send_decision(change, decision)
    control = (await scene.edge.next("agent.control"))["payload"]
    assert control["edge_device_id"] == scene.device.device_id
    assert control["edge_control"]["requestId"] == "apr_1"


async def test_a_device_answers_what_is_relayed_and_says_that_it_is_well(scene: Scene):
    await scene.edge.send(
        "edge.heartbeat",
        edge_id="edge_1",
        device_id=scene.device.device_id,
        version="2.0",
        agents=["demo"],
    )
    await scene.synchronize()
    asking = asyncio.create_task(scene.ada.get("/v1/edges/edge_1/agents"))
    request = (await scene.edge.next("relay.command.created"))["payload"]
    assert (request["method"], request["path"]) == ("GET", "/v1/agents")
    await scene.edge.send(
        "relay.command.acknowledged",
        commandId=request["commandId"],
        status=200,
        headers={"content-type": "application/json"},
        body={"items": []},
    )
    assert await asking == {"items": []}
    row = await scene.ada.get(f"/v1/devices/{scene.device.device_id}")
    assert row["version"] == "2.0"
