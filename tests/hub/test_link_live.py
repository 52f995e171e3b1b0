"""A real Edge linked to a real Hub: tasks, decisions, cancelling and relayed requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import delete, func, select

from factwire.cli.doctor_command import check_hub
from factwire.edge import link_store
from factwire.edge.hub_access import HubTarget, read_target, remove_target, write_target
from factwire.edge.hub_link import SOCKET_TASK
from factwire.edge.link_store import LINK_FILE
from factwire.edge.link_work import EdgeWork
from factwire.edge.operations import run_operations
from factwire.hub.limits import END_WAIT_SECONDS
from factwire.hub.link import deliveries as link_deliveries
from factwire.hub.link import edge_link
from factwire.hub.link.task_streams import RUN_END_EVENTS
from factwire.hub.mirror import mirror_app
from factwire.hub.mirror.mirror_store import EdgeMirror
from factwire.hub.people.devices import NewDevice, register_device
from factwire.hub.records.event_tables import events as hub_events
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.records.link_tables import deliveries
from factwire.runtime.configuration import Configuration
from tests.edge.edges import RunningEdge, running_edge
from tests.hub.chat_people import befriend, code_of, create_group, say
from tests.hub.hubs import HubPerson
from tests.hub.sent_decisions import NewDecision, send_decision
from tests.hub.served_hubs import WAIT, HubClient, ServedHub, served_hub
from tests.hub.test_mirror_store import make_turn

pytestmark = pytest.mark.asyncio(loop_scope="module")


class LinkedEdge:
    """An Edge that has joined, its owner, and the Hub."""

    def __init__(self, hub: ServedHub, edge: RunningEdge, ada: HubPerson, bo: HubPerson) -> None:
        self.hub = hub
        self.edge = edge
        self.ada = ada
        self.bo = bo
        self.device_id = ""

    @property
    def path(self) -> str:
        """Where the Hub has this Edge."""
        return f"/v1/edges/{self.edge.machine.edge_id}"

    async def join(self) -> None:
        """Register the device, and write down at the Edge that it has joined."""
        services = self.hub.hub.services
        new = NewDevice(
            person_id=self.ada.person_id,
            person_name="Ada",
            edge_id=self.edge.machine.edge_id,
            name="laptop",
            agents=["demo", "shell"],
        )
        async with services.events.change() as change:
            joined = await register_device(
                services, change, new, ActionOrigin(via="test", address="")
            )
        self.device_id = joined.device_id
        target = HubTarget(
            url=f"http://127.0.0.1:{self.hub.port}",
            token=joined.device_token,
            device_id=joined.device_id,
        )
        write_target(self.edge.machine.data, target)
        await self.wait_for_link()

    async def wait_for_link(self, *, connected: bool = True) -> None:
        services = self.hub.hub.services
        await wait_until(lambda: services.connections.is_connected(self.device_id) == connected)

    async def dispatch(self, prompt: str, **more: Any) -> dict[str, Any]:
        body = {"deviceId": self.device_id, "agentType": "demo", "prompt": prompt, **more}
        return await self.ada.post("/v1/agent-tasks", body, 202)

    async def wait_for(self, task_id: str, *statuses: str) -> dict[str, Any]:
        """A task once it has one of these statuses."""
        async with asyncio.timeout(WAIT):
            while True:
                task = await self.ada.get(f"/v1/agent-tasks/{task_id}")
                if task["status"] in statuses:
                    return task
                assert task["status"] not in ("done", "failed", "cancelled", "expired"), task
                await asyncio.sleep(0.05)

    async def wait_for_approval(self, task_id: str) -> dict[str, Any]:
        """What a task asks, as the mirror shows it."""
        async with asyncio.timeout(WAIT):
            while True:
                answer = await self.ada.request("GET", f"/v1/agent-tasks/{task_id}/approvals")
                if answer.status_code == 200 and answer.json()["items"]:
                    return answer.json()["items"][0]
                await asyncio.sleep(0.05)


async def wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT):
        while True:
            if holds():
                return
            await asyncio.sleep(0.02)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def linked(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[LinkedEdge]:
    folder: Path = tmp_path_factory.mktemp("linked")
    async with served_hub(folder) as hub, running_edge(folder) as edge:
        ada = await hub.first_admin()
        linked = LinkedEdge(hub, edge, ada, await hub.join(ada, "Bo"))
        await linked.join()
        yield linked


async def read_until(client: HubClient, task_id: str, last: str) -> list[dict[str, Any]]:
    """The frames about a task up to one of a type."""
    while True:
        frame = await client.next()
        if frame["type"] == last and frame["payload"]["task_id"] == task_id:
            return [each for each in client.frames if each["payload"].get("task_id") == task_id]


@pytest.mark.requirement("link.dispatch")
async def test_a_task_runs_on_its_device_and_is_told_as_the_edge_tells_it(linked: LinkedEdge):
    async with linked.hub.screen(linked.ada) as screen:
        task = await linked.dispatch("help")
        assert task["status"] == "queued"
        done = await linked.wait_for(task["taskId"], "done")
        frames = await read_until(screen, task["taskId"], "agent.done")
        streamed = [each["payload"] for each in frames if each["type"] == "agent.stream"]
        events = await linked.edge.get(f"/v1/runs/{done['edgeRunId']}/events")
        assert RUN_END_EVENTS & {each["event_type"] for each in streamed}
        # What sums up a run may be written after its end.
        while events["items"][-1]["id"] not in {each["id"] for each in streamed}:
            streamed.append((await screen.next("agent.stream"))["payload"])
    run = await linked.edge.get(f"/v1/runs/{done['edgeRunId']}")
    assert (run["prompt"], run["threadId"]) == ("help", done["threadId"])
    assert run["by"] == {
        "name": "Ada",
        "via": "hub",
        "userId": linked.ada.person_id,
        "deviceId": linked.ada.session_id,
    }
    assert done["resultSummary"]
    own = [each for each in streamed if each["event_type"] != "task.updated"]
    assert [(each["event_seq"], each["event_type"], each["payload"]) for each in own] == [
        (each["seq"], each["type"], each["payload"]) for each in events["items"]
    ]
    page = await linked.ada.get(f"/v1/agent-tasks/{task['taskId']}/events")
    assert [(each["id"], each["eventSeq"]) for each in page["items"]] == [
        (each["id"], each["seq"]) for each in events["items"]
    ]
    after = page["items"][1]["eventSeq"]
    rest = await linked.ada.get(
        f"/v1/agent-tasks/{task['taskId']}/events?after_seq={after}&limit=1"
    )
    assert [each["id"] for each in rest["items"]] == [page["items"][2]["id"]]
    # What the task before it used in the same thread is none of what a task used.
    again = await linked.dispatch("help", threadId=done["threadId"])
    assert done["usage"]["records"] == 1
    assert (await linked.wait_for(again["taskId"], "done"))["usage"] == done["usage"]


@pytest.mark.requirement("link.end-order")
@pytest.mark.parametrize("comes", [True, False])
async def test_an_end_waits_for_what_the_mirror_has_of_its_run_and_not_for_ever(
    linked: LinkedEdge, comes: bool, monkeypatch: pytest.MonkeyPatch
):
    streams, gate = linked.hub.hub.links.streams, asyncio.Event()
    find_open_streams = streams._find_open_streams

    async def find_later(edge_id: str) -> list[Any]:
        await gate.wait()
        return await find_open_streams(edge_id)

    monkeypatch.setattr(streams, "_find_open_streams", find_later)
    async with linked.hub.screen(linked.ada) as screen:
        task_id = (await linked.dispatch("help"))["taskId"]
        await linked.wait_for(task_id, "done")
        assert await list_ends(linked, task_id) == []
        if comes:
            gate.set()
        else:
            linked.hub.clock.advance(END_WAIT_SECONDS)
        frames = await read_until(screen, task_id, "agent.done")
        event_types = {each["payload"].get("event_type") for each in frames}
        assert bool(RUN_END_EVENTS & event_types) is comes
        gate.set()
        while not comes and not RUN_END_EVENTS & event_types:
            event_types.add((await screen.next("agent.stream"))["payload"]["event_type"])
    linked.hub.clock.advance(END_WAIT_SECONDS)
    await linked.hub.hub.links.link.tick()
    assert await list_ends(linked, task_id) == ["agent.done"]


async def list_ends(linked: LinkedEdge, task_id: str) -> list[str]:
    """The ends of a task that were emitted."""
    ends = select(hub_events.c.type, hub_events.c.payload).where(
        hub_events.c.type.in_(("agent.done", "agent.failed"))
    )
    async with linked.hub.hub.services.database.read() as connection:
        found = (await connection.execute(ends)).all()
    return [type_ for type_, text in found if msgspec.json.decode(text)["task_id"] == task_id]


@pytest.mark.requirement("link.dispatch")
async def test_a_run_is_told_that_became_known_during_a_look_for_runs(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    streams, looks = linked.hub.hub.links.streams, list[str]()
    edge_id = linked.edge.machine.edge_id

    async def find_nothing_and_ask_again(edge_id: str) -> list[Any]:
        looks.append(edge_id)
        if len(looks) == 1:
            streams.follow(edge_id)
        return []

    monkeypatch.setattr(streams, "_find_open_streams", find_nothing_and_ask_again)
    streams.follow(edge_id)
    await asyncio.wait_for(streams._followers[edge_id], WAIT)
    assert len(looks) >= 2


@pytest.mark.requirement("link.dispatch")
async def test_an_edge_looks_again_for_what_ended_while_it_looked(linked: LinkedEdge):
    machine = linked.edge.machine
    looks = EdgeWork(machine, _answer_nothing, _name_nothing).follow_ends()
    async with asyncio.timeout(WAIT):
        await anext(looks)
        # The first look is not over yet.
        await machine.feed.wait_for((await machine.journal.append(make_turn(1, 1))).cursor.seq)
        await anext(looks)


async def _answer_nothing(*_: object) -> None:
    raise NotImplementedError


def _name_nothing(_: object) -> str:
    raise NotImplementedError


@pytest.mark.requirement("link.stale-state")
async def test_an_old_list_and_the_events_after_it_are_the_new_list(linked: LinkedEdge):
    before = await linked.ada.get("/v1/agent-tasks")
    async with linked.hub.screen(linked.ada, cursor=before["asOf"]) as screen:
        task = await linked.dispatch("help")
        await linked.wait_for(task["taskId"], "done")
        after = await linked.ada.get("/v1/agent-tasks")
        rows = {each["taskId"]: each for each in before["items"]}
        while rows.get(task["taskId"], {}).get("status") != "done":
            frame = (await screen.next("agent.stream"))["payload"]
            if frame["event_type"] == "task.updated":
                rows[frame["task_id"]] = frame["payload"]
    assert rows == {each["taskId"]: each for each in after["items"]}


@pytest.mark.requirement("link.control")
async def test_a_decision_reaches_the_agent_that_asked_and_is_acknowledged_once_it_is_on_disk(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    task = await linked.dispatch("approve")
    approval = await linked.wait_for_approval(task["taskId"])
    answers: list[Any] = []

    async def note(_: Any, row: Any, ack: Any) -> None:
        answers.append((row["subject_id"], ack))

    links = linked.hub.hub.links
    links.link.on_decision.append(note)
    wrong = await decide(linked, approval, args_hash="sha256:" + "0" * 64)
    assert (wrong["state"], wrong["code"]) == ("refused", "approval_changed")
    with monkeypatch.context() as patch:
        # Nobody looks at what becomes of it before it is acknowledged.
        patch.setattr(run_operations, "find_approval", _answer_nothing)
        accepted = await decide(linked, approval, args_hash=approval["argsHash"])
    assert accepted["state"] == "acked"
    again = await decide(linked, approval, decision="deny", args_hash=approval["argsHash"])
    assert (again["state"], again["code"]) == ("refused", "approval_decided")
    links.link.on_decision.remove(note)
    assert [subject for subject, _ in answers] == [approval["approvalId"]] * 3
    await linked.edge.allow_all(approval["runId"])
    await linked.wait_for(task["taskId"], "done")
    row = await linked.edge.get(f"/v1/approvals/{approval['approvalId']}")
    assert row["decidedBy"] == {
        "name": "Ada",
        "via": "hub",
        "userId": linked.ada.person_id,
        "deviceId": "ses_phone",
    }


@pytest.mark.requirement("link.joined-again")
@pytest.mark.requirement("hub.approvals.joined-again")
async def test_a_task_goes_on_and_is_decided_after_its_edge_has_joined_again(linked: LinkedEdge):
    ada, former = linked.ada, linked.device_id
    task = await linked.dispatch("approve")
    approval = await linked.wait_for_approval(task["taskId"])
    await linked.join()
    assert linked.device_id != former
    async with asyncio.timeout(WAIT):
        while True:
            rows = (await ada.get("/v1/approvals"))["items"]
            found = [each for each in rows if each["requestId"] == approval["approvalId"]]
            if found:
                break
            await asyncio.sleep(0.05)
    assert found[0]["deviceId"] in (former, linked.device_id)
    body = {"decision": "allow", "argsHash": found[0]["argsHash"]}
    path = f"/v1/approvals/{found[0]['approvalId']}"
    await ada.post(f"{path}/decide", body, status=200)
    async with asyncio.timeout(WAIT):
        while (await ada.get(path))["state"] != "applied":  # noqa: ASYNC110 - as clients do
            await asyncio.sleep(0.05)
    await linked.edge.allow_all(approval["runId"])
    done = await linked.wait_for(task["taskId"], "done")
    assert (done["deviceId"], done["edgeRunId"]) == (former, approval["runId"])


async def decide(linked: LinkedEdge, approval: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What became of a decision."""
    services = linked.hub.hub.services
    values: dict[str, Any] = {"decision": "allow", **more}
    async with services.events.change() as change:
        delivery_id = await send_decision(
            change,
            NewDecision(
                person_id=linked.ada.person_id,
                device_id=linked.device_id,
                run_id=approval["runId"],
                approval_id=approval["approvalId"],
                screen_id="ses_phone",
                **values,
            ),
        )
    loop = asyncio.get_running_loop()
    row = await linked.hub.hub.links.link.wait_for_answer(delivery_id, loop.time() + WAIT)
    return dict(row)


@pytest.mark.requirement("link.cancel")
async def test_cancelling_a_task_stops_its_run(linked: LinkedEdge):
    task = await linked.dispatch("approve")
    await linked.wait_for_approval(task["taskId"])
    stopping = await linked.ada.post(f"/v1/agent-tasks/{task['taskId']}:cancel", None, 202)
    assert stopping["closing"] == "cancel"
    ended = await linked.wait_for(task["taskId"], "cancelled")
    run = await linked.edge.get(f"/v1/runs/{ended['edgeRunId']}")
    assert run["status"] == "cancelled"
    assert run["cancelledBy"]["userId"] == linked.ada.person_id
    again = await linked.ada.post(f"/v1/agent-tasks/{task['taskId']}:cancel", None, 202)
    assert again == ended


@pytest.mark.requirement("link.retries")
async def test_a_dead_letter_that_is_sent_again_is_done(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        for module in (edge_link, link_deliveries):
            patch.setattr(module, "DELIVERY_ATTEMPTS", 0)
        task_id = (await linked.dispatch("help"))["taskId"]
        await linked.wait_for(task_id, "dead")
    [letter] = (await linked.ada.get("/v1/dead-letters"))["items"]
    assert (letter["taskId"], letter["code"]) == (task_id, "not_acknowledged")
    path = f"/v1/dead-letters/{letter['deliveryId']}:retry"
    again = await linked.ada.post(path, None, 200)
    assert (again["state"], again["attempts"]) == ("pending", 1)
    await linked.wait_for(task_id, "done")
    assert (await linked.ada.get("/v1/dead-letters"))["items"] == []
    gone = await linked.ada.request("POST", path)
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_delivery")


@pytest.mark.requirement("link.refusals")
async def test_what_no_device_can_do_is_refused_at_once(linked: LinkedEdge):
    async def refused(body: dict[str, Any], person: HubPerson = linked.ada) -> tuple[int, str]:
        answer = await person.request("POST", "/v1/agent-tasks", body)
        return answer.status_code, answer.json()["code"]

    whole = {"deviceId": linked.device_id, "agentType": "demo", "prompt": "help"}
    assert await refused({**whole, "agentType": "nobody"}) == (409, "agent_not_offered")
    assert await refused({**whole, "prompt": " \n"}) == (400, "prompt_empty")
    assert await refused({**whole, "deviceId": "dev_none"}) == (404, "unknown_device")
    assert await refused(whole, linked.bo) == (404, "unknown_device")
    assert await refused({**whole, "targetId": "tgt_1"}) == (400, "invalid_request")
    unknown = await linked.dispatch("help", threadId="thr_none")
    failed = await linked.wait_for(unknown["taskId"], "failed")
    assert failed["error"]["code"] == "unknown_thread"


@pytest.mark.requirement("link.relay")
async def test_a_request_that_needs_the_device_is_answered_by_the_device(linked: LinkedEdge):
    thread = await linked.ada.post(f"{linked.path}/threads", {"title": "By way of the Hub"})
    body = {"text": "help", "agentId": "demo"}
    message = await linked.ada.post(
        f"{linked.path}/threads/{thread['threadId']}/messages", body, 202
    )
    run_id = message["run"]["runId"] if "run" in message else message["runId"]
    run = await linked.edge.run_until(run_id)
    assert run["by"]["userId"] == linked.ada.person_id
    assert run["by"]["via"] == "hub"
    agents = await linked.ada.get(f"{linked.path}/agents")
    assert {"demo", "shell"} <= {each["agentId"] for each in agents["items"]}
    missing = await linked.ada.request("POST", f"{linked.path}/runs/run_none:cancel")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_run")
    unread = await linked.ada.request("POST", f"{linked.path}/threads", {"titel": "x"})
    assert (unread.status_code, unread.json()["code"]) == (400, "invalid_request")
    gone = await linked.ada.request("DELETE", f"{linked.path}/threads/{thread['threadId']}")
    assert gone.status_code == 204


@pytest.mark.requirement("link.shown")
async def test_a_command_is_answered_once_the_mirror_shows_what_it_did(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    # Whoever waits for what never comes is answered after this, and not before.
    monkeypatch.setattr(mirror_app, "MIRRORED_SECONDS", 10 * WAIT)
    path, take_chain, uploads = f"{linked.path}/threads", EdgeMirror.take_chain, asyncio.Event()

    async def take_later(mirror: EdgeMirror, *upload: Any) -> Any:
        await uploads.wait()
        return await take_chain(mirror, *upload)

    monkeypatch.setattr(EdgeMirror, "take_chain", take_later)
    async with asyncio.timeout(WAIT):
        database, done = linked.hub.hub.services.database, deliveries.c.state == "acked"
        query = select(func.count()).select_from(deliveries).where(done)
        async with database.read() as connection:
            before = found = (await connection.execute(query)).scalar_one()
        command = asyncio.create_task(linked.ada.post(path, {"title": "shown"}))
        while found == before:
            await asyncio.sleep(0.02)
            async with database.read() as connection:
                found = (await connection.execute(query)).scalar_one()
        # The device has done it, and other requests are answered.
        rows = await linked.ada.get(path)
        assert "shown" not in [row.get("title") for row in rows["items"]]
        assert not command.done()
        uploads.set()
        thread = await command
        # What a mirror is not given is not waited for.
        hidden = await linked.ada.post(path, {"title": "x", "private": True})
    assert (await linked.ada.get(f"{path}/{thread['threadId']}"))["title"] == "shown"
    await linked.ada.get(f"{path}/{hidden['threadId']}", status=404)


@pytest.mark.requirement("link.relay")
async def test_a_repeated_request_is_done_once(linked: LinkedEdge):
    async def create() -> dict[str, Any]:
        return await linked.ada.post(
            f"{linked.path}/threads", {"title": "once"}, idempotency_key="one-key"
        )

    first = await create()
    assert await create() == first
    page = await linked.edge.get("/v1/threads")
    assert [each.get("title") for each in page["items"]].count("once") == 1


async def drop_contents(linked: LinkedEdge, patch: pytest.MonkeyPatch) -> None:
    """Have the Hub drop what devices answered, as it does after a while."""
    kept = select(func.count()).select_from(deliveries).where(deliveries.c.content.is_not(None))
    with patch.context() as soon:
        soon.setattr(edge_link, "RELAY_ANSWERS_SECONDS", 0)
        linked.hub.clock.advance(2)
        async with asyncio.timeout(WAIT):
            while True:
                async with linked.hub.hub.services.database.read() as connection:
                    if (await connection.execute(kept)).scalar_one() == 0:
                        return
                await asyncio.sleep(0.05)


async def forget_deliveries(linked: LinkedEdge) -> None:
    """Have the Hub remove what it knows of relayed requests, as it does after some weeks."""
    async with linked.hub.hub.services.database.write() as connection:
        await connection.execute(delete(deliveries).where(deliveries.c.kind == "relay"))


class KeyedRequests:
    """Threads that somebody creates by way of the Hub, all under one key."""

    def __init__(self, linked: LinkedEdge, key: str) -> None:
        self._linked = linked
        self._key = key

    async def create(self, title: str, **more: Any) -> tuple[int, Any]:
        answer = await self._linked.ada.request(
            "POST",
            f"{self._linked.path}/threads",
            {"title": title, **more},
            idempotency_key=self._key,
        )
        body, replayed = answer.json(), answer.headers.get("idempotency-replayed")
        if answer.status_code != 201:
            return answer.status_code, body["code"]
        return 201, (body["threadId"], replayed)

    async def count(self, title: str) -> int:
        """How many threads of this title the Edge has."""
        page = await self._linked.edge.get("/v1/threads")
        return [each.get("title") for each in page["items"]].count(title)


@pytest.mark.requirement("link.relay-repeats")
async def test_a_repeat_gets_the_answer_again_however_late_it_comes(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    requests = KeyedRequests(linked, "late")
    status, (thread_id, replayed) = await requests.create("late")
    assert (status, replayed) == (201, None)
    again = (201, (thread_id, "true"))
    assert await requests.create("late") == again
    await drop_contents(linked, monkeypatch)
    assert await requests.create("late") == again
    await forget_deliveries(linked)
    assert (await requests.create("late"))[1][0] == thread_id
    assert await requests.count("late") == 1


@pytest.mark.requirement("link.relay-repeats")
async def test_another_request_under_a_used_key_is_refused(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    requests = KeyedRequests(linked, "reused")
    _, (thread_id, _) = await requests.create("first")
    reused = (422, "idempotency_key_reused")
    assert await requests.create("second") == reused
    await drop_contents(linked, monkeypatch)
    assert await requests.create("second") == reused
    # The device knows what it was even when the Hub has forgotten it.
    await forget_deliveries(linked)
    assert await requests.create("second") == reused
    assert (await requests.create("first"))[1][0] == thread_id
    assert (await requests.count("first"), await requests.count("second")) == (1, 0)


@pytest.mark.requirement("link.relay-repeats")
async def test_a_request_that_the_device_refused_can_be_corrected_under_its_key(
    linked: LinkedEdge,
):
    requests = KeyedRequests(linked, "corrected")
    assert await requests.create("right", titel="wrong") == (400, "invalid_request")
    assert await requests.create("right", titel="wrong") == (400, "invalid_request")
    assert (await requests.create("right"))[0] == 201
    assert await requests.count("right") == 1


@pytest.mark.requirement("link.relay-repeats")
async def test_a_repeat_whose_answer_nobody_keeps_is_told_that_it_was_done(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(link_store, "LINK_ANSWERS_BYTES", 0)
    requests = KeyedRequests(linked, "unkept")
    assert (await requests.create("unkept"))[0] == 201
    await drop_contents(linked, monkeypatch)
    expired = (410, "answer_expired")
    assert await requests.create("unkept") == expired
    await forget_deliveries(linked)
    assert await requests.create("unkept") == expired
    assert await requests.count("unkept") == 1


@pytest.mark.requirement("link.relay-repeats")
async def test_a_repeat_is_answered_while_the_device_is_away(
    linked: LinkedEdge, monkeypatch: pytest.MonkeyPatch
):
    requests = KeyedRequests(linked, "away")
    _, (thread_id, _) = await requests.create("away")
    async with unlinked(linked):
        await wait_until_offline(linked)
        assert await requests.create("away") == (201, (thread_id, "true"))
        assert await requests.create("other") == (422, "idempotency_key_reused")
        await drop_contents(linked, monkeypatch)
        assert await requests.create("away") == (410, "answer_expired")
    assert await requests.create("away") == (201, (thread_id, "true"))


@pytest.mark.requirement("link.answers-bounded")
async def test_what_only_reads_is_not_stored_at_the_device(linked: LinkedEdge):
    def count_stored() -> int:
        database: Any = apsw.Connection(str(linked.edge.machine.data / LINK_FILE))
        try:
            return int(database.execute("SELECT count(*) FROM deliveries").get)
        finally:
            database.close()

    before = count_stored()
    for _ in range(2):
        answer = await linked.ada.request("GET", f"{linked.path}/agents", idempotency_key="reads")
        assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False)
    assert count_stored() == before


@pytest.mark.requirement("link.relay-closed")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/tokens", None),
        ("POST", "/tokens", {"name": "x", "scopes": ["admin"]}),
        ("DELETE", "/tokens/tok_1", None),
        ("POST", "/tickets", {}),
        ("POST", "/facts", []),
        ("GET", "/retention", None),
        ("POST", "/retention/runs", {}),
        ("GET", "/metrics", None),
    ],
)
async def test_a_hub_passes_on_nothing_that_would_open_the_edge(
    linked: LinkedEdge, method: str, path: str, body: Any
):
    answer = await linked.ada.request(method, linked.path + path, body)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_relayed")


@pytest.mark.requirement("link.relay")
async def test_an_answer_that_no_frame_can_carry_comes_whole(linked: LinkedEdge):
    run = await linked.edge.start("echo x; seq 1 20000", agent="shell")
    await linked.edge.allow_all(run["runId"])
    log = await linked.edge.http.get(f"/v1/runs/{run['runId']}/logs")
    assert len(log.content) > 64 * 1024
    relayed = await linked.ada.request("GET", f"{linked.path}/runs/{run['runId']}/logs")
    assert (relayed.status_code, relayed.content) == (200, log.content)
    assert relayed.headers["x-next-offset"] == log.headers["x-next-offset"]


@pytest.mark.requirement("link.grants")
async def test_what_is_shared_decides_what_is_relayed(linked: LinkedEdge):
    bo, path = linked.bo, linked.path
    thread = await linked.ada.post(f"{path}/threads", {"title": "shared"})
    messages = f"{path}/threads/{thread['threadId']}/messages"
    say = {"text": "help", "agentId": "demo"}

    async def ask(method: str, where: str, body: Any = None) -> tuple[int, str | None]:
        answer = await bo.request(method, where, body)
        return answer.status_code, answer.json().get("code") if answer.content else None

    assert await ask("POST", messages, say) == (404, "unknown_edge")
    for role, expected in {
        "viewer": (200, 403, 404, 403),
        # A message to a thread starts a run.
        "commenter": (200, 403, 404, 403),
        "approver": (200, 403, 404, 403),
        "operator": (200, 202, 404, 201),
    }.items():
        grant = {"person": bo.person_id, "deviceId": linked.device_id, "role": role}
        await linked.ada.post("/v1/grants", grant)
        decision = {"runId": "run_x", "requestId": "act_x", "decision": "allow", "argsHash": "x"}
        found = (
            (await ask("GET", f"{path}/agents"))[0],
            (await ask("POST", messages, say))[0],
            (await ask("POST", f"{path}/permissions/decide", decision))[0],
            (await ask("POST", f"{path}/threads", {"title": "by Bo"}))[0],
        )
        assert found == expected, role
    body = {"deviceId": linked.device_id, "agentType": "demo", "prompt": "help"}
    task = await bo.post("/v1/agent-tasks", body, 202)
    assert (await linked.wait_for(task["taskId"], "done"))["personId"] == bo.person_id


@asynccontextmanager
async def unlinked(linked: LinkedEdge) -> AsyncGenerator[None]:
    """The device without its socket for a while."""
    data = linked.edge.machine.data
    kept = (data / "hub.json").read_bytes()
    remove_target(data)
    await linked.wait_for_link(connected=False)
    try:
        yield
    finally:
        (data / "hub.json").write_bytes(kept)
        (data / "hub.json").chmod(0o600)
        await linked.wait_for_link()


@pytest.mark.requirement("link.replaced")
async def test_an_edge_that_a_copy_of_it_has_replaced_does_not_connect_again(linked: LinkedEdge):
    target = read_target(linked.edge.machine.data)
    assert target is not None
    body = {"deviceToken": target.token}
    token = (await linked.hub.http.post("/v1/auth/device", json=body)).json()["accessToken"]

    async def wait_for_trouble(text: str) -> None:
        async with asyncio.timeout(WAIT):
            while True:
                details = (await linked.edge.get("/v1/health"))["details"]
                if bool(text) == ("hubTrouble" in details):
                    assert text in details.get("hubTrouble", "")
                    return
                await asyncio.sleep(0.05)

    async with linked.hub.open(token, direction="hub_to_edge") as copy:
        assert (await copy.next())["type"] == "auth.ok"
        await wait_for_trouble("a copy of this data folder")
        assert ("fail", "hub link") in await find_findings(linked)
        assert not [each for each in asyncio.all_tasks() if each.get_name() == SOCKET_TASK]
        task = await linked.dispatch("help")
        assert (await copy.next("agent.dispatch"))["payload"]["task_id"] == task["taskId"]
    async with unlinked(linked):
        pass
    await wait_for_trouble("")
    assert "hub link" not in [name for _, name in await find_findings(linked)]
    await linked.wait_for(task["taskId"], "done")


async def find_findings(linked: LinkedEdge) -> list[tuple[str, str]]:
    """What `factwire doctor` says of the Hub, on the machine of an Edge."""
    data = linked.edge.machine.data
    settings = Configuration(data=str(data), journal=f"sqlite:{data / 'journal.db'}")
    return [(each.status, each.name) for each in await check_hub(settings)]


async def wait_until_offline(linked: LinkedEdge) -> None:
    """Wait until the Hub shows that the device is away."""
    async with asyncio.timeout(WAIT):
        while True:
            rows = await linked.ada.get("/v1/devices")
            if not rows["items"][0].get("online", False):
                return
            await asyncio.sleep(0.05)


@pytest.mark.requirement("link.offline")
async def test_what_is_asked_of_a_device_that_is_away_waits_only_where_that_was_wanted(
    linked: LinkedEdge,
):
    services = linked.hub.hub.services
    async with unlinked(linked):
        await wait_until_offline(linked)
        refused = await linked.ada.request("POST", f"{linked.path}/threads", {"title": "a"})
        assert (refused.status_code, refused.json()["code"]) == (409, "device_offline")
        waits = await linked.ada.request(
            "POST", f"{linked.path}/threads", {"title": "later"}, prefer="respond-async"
        )
        assert (waits.status_code, waits.json()["state"]) == (202, "pending")
        place = waits.headers["location"]
        pending = await linked.ada.request("GET", place)
        assert (pending.status_code, pending.json()) == (202, waits.json())
        for path in (place, place.removesuffix("/answer")):
            other = await linked.bo.request("GET", path)
            assert (other.status_code, other.json()["code"]) == (404, "unknown_delivery")
        task = await linked.dispatch("help")
        queue = await linked.ada.get(f"/v1/devices/{linked.device_id}/deliveries")
        [task_delivery] = [
            each["deliveryId"] for each in queue["items"] if each["kind"] == "dispatch"
        ]
        assert [each["kind"] for each in queue["items"]] == ["dispatch", "relay"] or {
            each["kind"] for each in queue["items"]
        } == {"dispatch", "relay"}
        assert (await linked.ada.get(f"/v1/agent-tasks/{task['taskId']}"))["status"] == "queued"
        assert (linked.edge.machine.data / LINK_FILE).exists()
    await linked.wait_for(task["taskId"], "done")
    query = select(deliveries.c.state, deliveries.c.payload).where(
        deliveries.c.delivery_id == waits.json()["deliveryId"]
    )
    async with asyncio.timeout(WAIT):
        while True:
            async with services.database.read() as connection:
                state, payload = (await connection.execute(query)).one()
            if state == "acked":
                break
            await asyncio.sleep(0.05)
    # What somebody wrote is not kept once it was passed on.
    assert payload == "{}"
    titles = [each.get("title") for each in (await linked.edge.get("/v1/threads"))["items"]]
    assert ("later" in titles, "a" in titles) == (True, False)
    answered = await linked.ada.request("GET", place)
    assert (answered.status_code, answered.json()["title"]) == (201, "later")
    assert (await linked.ada.get(place.removesuffix("/answer")))["state"] == "acked"
    own = await linked.ada.request("GET", f"/v1/deliveries/{task_delivery}/answer")
    assert (own.status_code, own.json()["code"]) == (404, "unknown_delivery")


@pytest.mark.requirement("link.targets")
async def test_a_grant_on_a_target_is_none_on_its_device(linked: LinkedEdge):
    ada, device = linked.ada, {"deviceId": linked.device_id}
    ivo = await linked.hub.join(ada, "Ivo")
    docs = linked.edge.machine.runtime.workspace / "docs"
    docs.mkdir()
    fixed = {"agentType": "demo", "workDir": str(docs)}
    target = await ada.post("/v1/execution-targets", {**device, **fixed, "name": "docs"})
    place = {"targetId": target["targetId"]}
    share = {"person": "Ivo", "role": "operator", **device}
    grant = await ada.post("/v1/grants", {**share, **place})

    async def give(person: HubPerson, **more: Any) -> str:
        body = {**place, "prompt": "help", **more}
        answer = await person.request("POST", "/v1/agent-tasks", body)
        return answer.json().get("code") or answer.json()["taskId"]

    others = {
        "agentType": "shell",
        "workDir": str(docs.parent),
        "projectId": "prj_1",
        "threadId": "thr_elsewhere",
        "modelParams": {"model": "dear"},
    }
    for name, value in others.items():
        assert await give(ivo, **{name: value}) == "target_mismatch"
    done = await linked.wait_for(await give(ivo, **fixed), "done")
    assert (await linked.edge.run_until(done["edgeRunId"]))["workDir"] == str(docs)
    assert (await give(ivo, threadId=done["threadId"])).startswith("tsk_")
    # Whose device it is may choose what is open, and go on with any thread.
    assert await give(ada, agentType="shell") == "target_mismatch"
    chosen = await give(ada, projectId="prj_1", threadId="thr_elsewhere", modelParams={"pace": 0})
    assert chosen.startswith("tsk_")
    assert (await give(ivo, modelParams={})).startswith("tsk_")
    # In a chat it is the same target.
    await befriend(ada, ivo)
    chat = await create_group(ada, [ivo])
    agent = {**device, **place, "agentType": "demo", "name": "Docs"}
    path = f"/v1/chats/{chat}/agents"
    assert await code_of(ivo, "POST", path, {**agent, "agentType": "shell"}) == (
        403,
        "target_mismatch",
    )
    await ivo.post(path, agent)
    [mentioned_task] = (await say(ivo, chat, "@Docs help"))["content"]["tasks"]
    query = select(deliveries.c.payload).where(deliveries.c.task_id == mentioned_task["task"])
    async with linked.hub.hub.services.database.read() as connection:
        sent = msgspec.json.decode((await connection.execute(query)).scalar_one())
    assert (sent["agent_type"], sent["work_dir"]) == ("demo", str(docs))
    # Nor is a target that somebody made and has kept a way back to the device.
    await ivo.request("DELETE", f"/v1/grants/{grant['grantId']}")
    grant = await ada.post("/v1/grants", share)
    own = await ivo.post("/v1/execution-targets", {**device, **fixed, "name": "own"})
    place = {"targetId": own["targetId"]}
    await ada.post("/v1/grants", {**share, **place})
    await ada.request("DELETE", f"/v1/grants/{grant['grantId']}")
    change = {"workDir": str(docs.parent)}
    mine = f"/v1/execution-targets/{own['targetId']}"
    assert await code_of(ivo, "PATCH", mine, change) == (404, "unknown_device")
    assert await give(ivo, **change) == "target_mismatch"


@pytest.mark.requirement("link.target-names")
async def test_the_name_of_a_target_is_checked_like_that_of_a_device(linked: LinkedEdge):
    ada, path = linked.ada, "/v1/execution-targets"
    target = await ada.post(path, {"name": " Docs\u00a0", "deviceId": linked.device_id})
    assert target["name"] == "Docs"
    own = f"{path}/{target['targetId']}"
    for name, code in {
        "": "invalid_request",
        "x" * 65: "invalid_request",
        " \t": "name_unusable",
        "a\nb": "name_unusable",
        "\u202egpj.exe": "name_unusable",
        "bell\u0007": "name_unusable",
    }.items():
        body = {"name": name, "deviceId": linked.device_id}
        assert await code_of(ada, "POST", path, body) == (400, code)
        assert await code_of(ada, "PATCH", own, {"name": name}) == (400, code)
    renamed = await ada.request("PATCH", own, {"name": " Handbook "})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "Handbook")
    assert (await ada.request("DELETE", own)).status_code == 204


@pytest.mark.requirement("link.owners")
async def test_what_belongs_to_somebody_elses_device_is_not_found(linked: LinkedEdge):
    eve = await linked.hub.join(linked.ada, "Eve")
    target = await linked.ada.post(
        "/v1/execution-targets",
        {"name": "notes", "deviceId": linked.device_id, "agentType": "demo"},
    )
    task = await linked.ada.post(
        "/v1/agent-tasks", {"targetId": target["targetId"], "prompt": "help"}, 202
    )
    await linked.wait_for(task["taskId"], "done")
    own, mine = f"/v1/agent-tasks/{task['taskId']}", f"/v1/execution-targets/{target['targetId']}"
    requests: tuple[tuple[str, str, Any], ...] = (
        ("GET", own, None),
        ("GET", f"{own}/events", None),
        ("GET", f"{own}/approvals", None),
        ("POST", f"{own}:cancel", None),
        ("GET", mine, None),
        ("PATCH", mine, {"name": "hers"}),
        ("DELETE", mine, None),
        ("POST", "/v1/agent-tasks", {"targetId": target["targetId"], "prompt": "help"}),
        ("POST", "/v1/execution-targets", {"name": "x", "deviceId": linked.device_id}),
        ("GET", f"/v1/devices/{linked.device_id}/deliveries", None),
        ("POST", "/v1/dead-letters/dlv_none:retry", None),
        ("GET", f"{linked.path}/agents", None),
        ("POST", f"{linked.path}/threads", {"title": "hers"}),
    )
    for method, path, body in requests:
        answer = await eve.request(method, path, body)
        assert answer.status_code == 404, (method, path, answer.text)
    for path in ("/v1/agent-tasks", "/v1/execution-targets", "/v1/dead-letters"):
        assert (await eve.get(path))["items"] == []
    uploaded: dict[str, Any] = {"status": 200, "headers": {}, "content": ""}
    forged = await linked.ada.request("PUT", "/v1/deliveries/dlv_none/answer", uploaded)
    assert (forged.status_code, forged.json()["code"]) == (403, "device_only")
    changed = await linked.ada.request("PATCH", mine, {"name": "logbook", "agentType": None})
    assert changed.json() == {
        key: value for key, value in {**target, "name": "logbook"}.items() if key != "agentType"
    }
    assert (await linked.ada.request("DELETE", mine)).status_code == 204
    assert (await linked.ada.request("GET", mine)).status_code == 404
