"""Runners as real processes: started, joined, used up, killed, and left behind by no one."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import insert, select, update

from factwire.hub.frames.event_log import read_events
from factwire.hub.link import runner_keeper, runner_records
from factwire.hub.link.runner_keeper import FOLDER, LOG_FILE, OLD_LOG_FILE
from factwire.hub.records.device_tables import runners
from factwire.hub.records.link_tables import agent_tasks
from factwire.runtime.processes.process_reaper import RecordFolder, find_entry
from tests.hub.hub_process import HubProcess, hub_process
from tests.hub.hubs import PASSWORD, HubPerson, RunningHub, running_hub
from tests.hub.served_hubs import served_hub

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.runners")]

WAIT = 120
"""Seconds after which a wait in these tests counts as lost."""

WAITING = ("sh", "-c", 'printenv | grep ^FACTWIRE > "$FACTWIRE_DATA/variables"; exec sleep 600')
"""A command that notes what it gets, and never joins by itself."""


async def wait_until(holds: Callable[[], Awaitable[Any]]) -> Any:
    """What a question answers once it is not false any more."""
    async with asyncio.timeout(WAIT):
        while True:
            if found := await holds():
                return found
            await asyncio.sleep(0.05)


async def wait_for_state(person: HubPerson, runner_id: str, *states: str) -> Any:
    async def holds() -> Any:
        row = await person.get(f"/v1/runners/{runner_id}")
        return row if row["state"] in states else None

    return await wait_until(holds)


async def allocate(person: HubPerson, status: int = 202) -> Any:
    return await person.post("/v1/runners", {"name": "Cloud"}, status)


def pid_of(folder: Path, runner_id: str) -> int | None:
    """The process of a runner, by the record that the Hub keeps."""
    records = RecordFolder(folder / "hub" / FOLDER / "kept" / "processes")
    return next((each.pid for each in records.records() if each.process_id == runner_id), None)


def is_alive(pid: int) -> bool:
    entry = find_entry(pid)
    return entry is not None and entry.alive


async def read_variables(folder: Path, runner_id: str) -> dict[str, str]:
    """What the command of a runner got."""
    path = folder / "hub" / FOLDER / runner_id / "data" / "variables"

    async def holds() -> dict[str, str]:
        lines = path.read_text().splitlines() if path.exists() else []
        found = dict(line.split("=", 1) for line in lines)
        return found if "FACTWIRE_RUNNER_SECRET" in found else {}

    return await wait_until(holds)


async def join(hub: RunningHub, secret: str, edge_id: str = "edge_1") -> httpx.Response:
    device = {"name": "x", "edgeId": edge_id, "agents": ["claude-code"]}
    return await hub.post("/v1/auth/runner", {"secret": secret, "device": device})


async def events_of(hub: RunningHub, person: HubPerson) -> list[tuple[str, str]]:
    async with hub.hub.services.database.read() as connection:
        found = await read_events(connection, person.person_id, 0, 100)
    return [
        (each.type, msgspec.json.decode(each.payload)["reason"])
        for each in found
        if each.type.startswith("cloud.runner")
    ]


@pytest.mark.fault
@pytest.mark.requirement("hub.runners.targets")
async def test_a_task_is_done_on_a_runner_that_is_started_for_it_and_released(tmp_path: Path):
    """The default command: `factwire edge` on this machine, with the demo agent."""
    async with served_hub(tmp_path, runners=1) as hub:
        ada = await hub.first_admin()
        body = {"name": "Cloud", "kind": "runner", "agentType": "demo"}
        target = await ada.post("/v1/execution-targets", body)
        assert (target["kind"], "deviceId" in target) == ("runner", False)
        async with hub.screen(ada) as screen:
            task = await ada.post(
                "/v1/agent-tasks", {"targetId": target["targetId"], "prompt": "help"}, 202
            )
            device_id = task["deviceId"]
            [made] = (await ada.get("/v1/runners"))["items"]
            first, second = await screen.take("cloud.runner.allocated", 2)
            payloads = [each["payload"] for each in (first, second)]
            assert {each["runnerId"] for each in payloads} == {made["runnerId"]}
            assert [(each["deviceId"], each["reason"]) for each in payloads] == [
                (device_id, "requested"),
                (device_id, "joined"),
            ]
            assert [each["runner"]["state"] for each in payloads] == ["starting", "online"]
            row = await ada.get(f"/v1/devices/{device_id}")
            assert (row["kind"], row["name"]) == ("runner", "Cloud")
            done = await screen.next("agent.done")
            assert done["payload"]["task_id"] == task["taskId"]
            pid = pid_of(tmp_path, made["runnerId"])
            assert pid is not None
            released = await ada.request("DELETE", f"/v1/runners/{made['runnerId']}")
            assert released.status_code == 200, released.text
            for name in ("cloud.runner.stopping", "cloud.runner.released"):
                runner = (await screen.next(name))["payload"]["runner"]
                assert (runner["state"], runner["reason"]) == (name[13:], "requested")
        ended = await ada.get(f"/v1/agent-tasks/{task['taskId']}")
        assert (ended["status"], bool(ended["resultSummary"])) == ("done", True)
        assert not is_alive(pid)
        assert not (tmp_path / "hub" / FOLDER / made["runnerId"]).exists()
        assert (await ada.request("GET", f"/v1/devices/{device_id}")).status_code == 404
        [row] = (await ada.get("/v1/runners"))["items"]
        assert (row["state"], row["reason"]) == ("released", "requested")


@pytest.mark.fault
async def test_a_killed_runner_comes_back_as_the_same_device(tmp_path: Path):
    async with served_hub(tmp_path, runners=1) as hub:
        ada = await hub.first_admin()
        async with hub.screen(ada) as screen:
            runner_id = (await allocate(ada))["runnerId"]
            await screen.next("edge.online")
            device_id = (await ada.get(f"/v1/runners/{runner_id}"))["deviceId"]
            pid = pid_of(tmp_path, runner_id)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await screen.next("edge.offline")
            again = await screen.next("edge.online")
            assert again["payload"]["device_id"] == device_id
        assert pid_of(tmp_path, runner_id) not in (None, pid)
        assert (await ada.get(f"/v1/runners/{runner_id}"))["state"] == "online"


async def sign_in(hub: HubProcess, token: str | None) -> dict[str, str]:
    path = "login" if token is None else "register"
    body = {"name": "Ada", "password": PASSWORD} | ({} if token is None else {"token": token})
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT) as http:
        answer = (await http.post(f"{hub.url}/v1/auth/{path}", json=body)).json()
    return {"authorization": f"Bearer {answer['accessToken']}"}


@pytest.mark.fault
async def test_a_killed_hub_leaves_no_orphan_and_its_runner_comes_back(tmp_path: Path):
    async def online(hub: HubProcess, headers: dict[str, str]) -> Any:
        async def holds() -> Any:
            [row] = (await http.get(f"{hub.url}/v1/runners", headers=headers)).json()["items"]
            path = f"{hub.url}/v1/devices/{row.get('deviceId')}"
            device = (await http.get(path, headers=headers)).json()
            return row if device.get("online") else None

        return await wait_until(holds)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT) as http:
        with hub_process(tmp_path, runners_at=port) as hub:
            headers = await sign_in(hub, hub.first_token)
            await http.post(f"{hub.url}/v1/runners", json={}, headers=headers)
            before = await online(hub, headers)
            pid = pid_of(tmp_path, before["runnerId"])
            assert pid is not None
            hub.kill()
            assert is_alive(pid)
        with hub_process(tmp_path, runners_at=port) as hub:
            assert not is_alive(pid)
            headers = await sign_in(hub, None)
            after = await online(hub, headers)
            assert (after["runnerId"], after["deviceId"]) == (
                before["runnerId"],
                before["deviceId"],
            )
            current = pid_of(tmp_path, after["runnerId"])
            assert current not in (None, pid)
            assert hub.failures() == []
        # A Hub that is stopped takes its runners with it.
        assert current is not None
        assert not is_alive(current)


async def test_an_idle_runner_is_stopped_and_a_busy_one_is_not(tmp_path: Path):
    async with running_hub(tmp_path, runners=1, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        runner_id = (await allocate(ada))["runnerId"]
        variables = await read_variables(tmp_path, runner_id)
        joined = (await join(hub, variables["FACTWIRE_RUNNER_SECRET"])).json()
        values = {
            "task_id": "task_1",
            "person_id": ada.person_id,
            "device_id": joined["deviceId"],
            "agent_instance_id": "x",
            "agent_type": "x",
            "prompt": "x",
            "status": "running",
            "stream_seq": 0,
            "timeout_seconds": 10**6,
            "created_at": 0,
            "updated_at": 0,
            "expires_at": 10**15,
        }
        async with hub.hub.services.database.write() as connection:
            await connection.execute(insert(agent_tasks).values(values))
        hub.clock.advance(901)
        ada = await hub.sign_in("Ada")
        await hub.hub.runners.tick()
        assert (await ada.get(f"/v1/runners/{runner_id}"))["state"] == "online"
        async with hub.hub.services.database.write() as connection:
            await connection.execute(update(agent_tasks).values(status="done"))
        hub.clock.advance(899)
        await hub.hub.runners.tick()
        assert (await ada.get(f"/v1/runners/{runner_id}"))["state"] == "online"
        hub.clock.advance(1)
        ada = await hub.sign_in("Ada")
        await hub.hub.runners.tick()
        ended = await wait_for_state(ada, runner_id, "released")
        assert ended["reason"] == "idle"
        assert await events_of(hub, ada) == [
            ("cloud.runner.allocated", "requested"),
            ("cloud.runner.allocated", "joined"),
            ("cloud.runner.stopping", "idle"),
            ("cloud.runner.released", "idle"),
        ]


@pytest.mark.requirement("hub.runners.targets")
async def test_tasks_for_a_runner_share_one_until_it_ends(tmp_path: Path):
    async with running_hub(tmp_path, runners=2, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        targets = "/v1/execution-targets"
        target = await ada.post(targets, {"name": "Cloud", "kind": "runner"})
        path, body = "/v1/agent-tasks", {"targetId": target["targetId"], "agentType": "demo"}

        async def give(person: HubPerson, status: int = 202, **headers: str) -> Any:
            return await person.post(path, {**body, "prompt": "go on"}, status, **headers)

        one, two = await give(ada), await give(ada)
        assert one["deviceId"] == two["deviceId"]
        assert (one["status"], one["taskId"] != two["taskId"]) == ("queued", True)
        # It is a runner of whoever made the target, and nobody else's.
        assert (await give(bo, 404))["code"] == "unknown_target"
        for wrong in ({"kind": "device"}, {"kind": "runner", "deviceId": one["deviceId"]}):
            refused = await ada.request("POST", targets, {"name": "x", **wrong})
            assert refused.json()["code"] == "invalid_request"
        [runner] = (await ada.get("/v1/runners"))["items"]
        secret = (await read_variables(tmp_path, runner["runnerId"]))["FACTWIRE_RUNNER_SECRET"]
        joined = (await join(hub, secret)).json()
        # The device that tasks wait for is the one that joins.
        assert joined["deviceId"] == one["deviceId"]
        device = await ada.get(f"/v1/devices/{one['deviceId']}")
        assert (device["edgeId"], device["agents"]) == ("edge_1", ["claude-code"])
        assert (await give(ada, 409))["code"] == "agent_not_offered"
        keyed: dict[str, Any] = {"idempotency_key": "once"}
        body["agentType"] = "claude-code"
        three = await give(ada, **keyed)
        async with hub.hub.services.database.write() as connection:
            begun = {"status": "running", "edge_run_id": "run_1", "delivered_at": 1, "heard_at": 1}
            for task, more in ((two, {}), (three, {"closing": "cancel"})):
                own = agent_tasks.c.task_id == task["taskId"]
                await connection.execute(update(agent_tasks).where(own).values(**begun, **more))
        await ada.request("DELETE", f"/v1/runners/{runner['runnerId']}")
        await wait_for_state(ada, runner["runnerId"], "released")
        # What it had begun ends with it too, at once: its Edge never comes back.
        for task, status in ((two, "failed"), (three, "cancelled")):
            ended = await ada.get(f"{path}/{task['taskId']}")
            assert (ended["status"], ended["error"]["code"]) == (status, "device_revoked")
        assert (await give(ada, **keyed))["taskId"] == three["taskId"]
        hub.clock.advance(2)
        await hub.hub.links.link.tick()
        # A task that its runner never had ends with it; the next one has another runner.
        ended = await ada.get(f"{path}/{one['taskId']}")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "device_revoked")
        assert (await give(ada))["deviceId"] != one["deviceId"]


async def test_runners_are_bounded_for_each_person_and_in_all(tmp_path: Path):
    async with running_hub(tmp_path, runners=2, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        bo, eve = await hub.join(ada, "Bo"), await hub.join(ada, "Eve")
        viewer = await hub.join(ada, "Vi", "viewer")
        one = await allocate(ada)
        assert (await allocate(ada, 409))["code"] == "runner_quota"
        await allocate(bo)
        assert (await allocate(eve, 409))["code"] == "runners_busy"
        assert (await allocate(viewer, 403))["code"] == "insufficient_role"
        path = f"/v1/runners/{one['runnerId']}"
        for method in ("GET", "DELETE"):
            assert (await bo.request(method, path)).json()["code"] == "unknown_runner"
        repeated = {"idempotency_key": "again"}
        await ada.request("DELETE", path)
        await wait_for_state(ada, one["runnerId"], "released")
        two = await ada.post("/v1/runners", {}, 202, **repeated)
        same = await ada.post("/v1/runners", {}, 202, **repeated)
        assert two["runnerId"] == same["runnerId"] != one["runnerId"]
        answers = await asyncio.gather(*(eve.request("POST", "/v1/runners", {}) for _ in range(5)))
        assert {each.json()["code"] for each in answers} <= {"runners_busy"}
    async with running_hub(tmp_path / "other") as hub:
        ada = await hub.first_admin()
        assert (await allocate(ada, 409))["code"] == "runners_off"
        assert not (tmp_path / "other" / "hub" / FOLDER).exists()


@pytest.mark.parametrize("command", [("false",), ("sh", "-c", "exit 3"), ("no-such-program",)])
async def test_a_command_that_fails_is_told_and_leaves_nothing(
    tmp_path: Path, command: tuple[str, ...]
):
    async with running_hub(tmp_path, runners=1, runner_command=command) as hub:
        ada = await hub.first_admin()
        runner_id = (await allocate(ada))["runnerId"]
        row = await wait_for_state(ada, runner_id, "failed")
        assert row["reason"] == "command_failed"
        assert ("cloud.runner.released", "command_failed") in await events_of(hub, ada)
        assert not (tmp_path / "hub" / FOLDER / runner_id).exists()
        # What has failed takes nobody's place.
        await allocate(ada)


async def test_a_command_gets_what_it_needs_and_no_setting_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FACTWIRE_HUB_DATABASE", "postgres://secret@host/x")
    monkeypatch.setenv("MODEL_KEY", "for the agent")
    monkeypatch.setenv("OTHER_KEY", "for nobody")
    command = ("sh", "-c", 'printenv > "$FACTWIRE_DATA/variables"; exec sleep 600')
    settings: dict[str, Any] = {"runner_command": command, "runner_env": ("MODEL_KEY",)}
    async with running_hub(tmp_path, runners=1, **settings) as hub:
        runner_id = (await allocate(await hub.first_admin()))["runnerId"]
        variables = await read_variables(tmp_path, runner_id)
        own = {name: text for name, text in variables.items() if name.startswith("FACTWIRE")}
        place = tmp_path / "hub" / FOLDER / runner_id
        assert own == {
            "FACTWIRE_HUB_URL": hub.hub.services.url,
            "FACTWIRE_RUNNER_ID": runner_id,
            "FACTWIRE_RUNNER_SECRET": own["FACTWIRE_RUNNER_SECRET"],
            "FACTWIRE_DATA": str(place / "data"),
            "FACTWIRE_WORKSPACES": str(place / "work"),
            "FACTWIRE_PROCESS": runner_id,
        }
        assert (variables.get("MODEL_KEY"), "OTHER_KEY" in variables) == ("for the agent", False)
        assert place.stat().st_mode & 0o777 == 0o700


async def join_twice(hub: RunningHub, ada: HubPerson, secret: str) -> str:
    del ada
    assert (await join(hub, secret)).status_code == 200
    return (await join(hub, secret, "edge_2")).json().get("code", "in")


async def join_late(hub: RunningHub, ada: HubPerson, secret: str) -> str:
    del ada
    hub.clock.advance(121)
    return (await join(hub, secret)).json().get("code", "in")


async def join_after_release(hub: RunningHub, ada: HubPerson, secret: str) -> str:
    [row] = (await ada.get("/v1/runners"))["items"]
    await runner_records.begin_release(hub.hub.services, row["runnerId"], "requested")
    return (await join(hub, secret)).json().get("code", "in")


async def join_as_somebody_disabled(hub: RunningHub, ada: HubPerson, secret: str) -> str:
    bo = await hub.join(ada, "Bo", "admin")
    await bo.request("PATCH", f"/v1/people/{ada.person_id}", {"disabled": True})
    return (await join(hub, secret)).json().get("code", "in")


async def join_with_another_secret(hub: RunningHub, ada: HubPerson, secret: str) -> str:
    del ada
    return (await join(hub, secret[:-4] + "AAAA")).json().get("code", "in")


ATTACKS = [
    join_twice,
    join_late,
    join_after_release,
    join_as_somebody_disabled,
    join_with_another_secret,
]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_the_secret_of_a_runner_works_once_in_time_and_for_it_alone(
    tmp_path: Path, attack: Callable[[RunningHub, HubPerson, str], Awaitable[str]]
):
    async with running_hub(tmp_path, runners=1, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        runner_id = (await allocate(ada))["runnerId"]
        variables = await read_variables(tmp_path, runner_id)
        secret = variables["FACTWIRE_RUNNER_SECRET"]
        async with hub.hub.services.database.read() as connection:
            kept = (await connection.execute(select(runners.c.secret_digest))).scalars().all()
        assert secret not in kept
        assert await attack(hub, ada, secret) == "runner_secret_invalid"


async def test_a_runner_does_not_become_an_edge_that_has_joined(tmp_path: Path):
    async with running_hub(tmp_path, runners=1, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        laptop = await hub.join_device(ada, "edge_laptop")
        runner_id = (await allocate(ada))["runnerId"]
        secret = (await read_variables(tmp_path, runner_id))["FACTWIRE_RUNNER_SECRET"]
        taken = await join(hub, secret, "edge_laptop")
        assert (taken.status_code, taken.json()["code"]) == (409, "edge_taken")
        # The laptop is what it was, and the secret is still good for an Edge of its own.
        assert (await laptop.exchange()).status_code == 200
        assert (await join(hub, secret)).status_code == 200


async def test_a_late_secret_would_work_without_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runner_records, "RUNNER_JOIN_SECONDS", 10**6)
    async with running_hub(tmp_path, runners=1, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        variables = await read_variables(tmp_path, (await allocate(ada))["runnerId"])
        assert await join_late(hub, ada, variables["FACTWIRE_RUNNER_SECRET"]) == "in"


async def test_what_never_joins_or_is_revoked_is_stopped(tmp_path: Path):
    async with running_hub(tmp_path, runners=1, runner_command=WAITING) as hub:
        ada = await hub.first_admin()
        late = (await allocate(ada))["runnerId"]
        await read_variables(tmp_path, late)
        pid = pid_of(tmp_path, late)
        assert pid is not None
        hub.clock.advance(120)
        await hub.hub.runners.tick()
        assert (await wait_for_state(ada, late, "released"))["reason"] == "join_timeout"
        assert not is_alive(pid)
        revoked = (await allocate(ada))["runnerId"]
        variables = await read_variables(tmp_path, revoked)
        joined = (await join(hub, variables["FACTWIRE_RUNNER_SECRET"])).json()
        await ada.request("DELETE", f"/v1/devices/{joined['deviceId']}")
        await hub.hub.runners.tick()
        assert (await wait_for_state(ada, revoked, "released"))["reason"] == "device_revoked"


async def test_output_of_a_runner_is_kept_up_to_a_bound_and_without_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runner_keeper, "RUNNER_LOG_BYTES", 10_000)
    program = (
        "import os; print('x' * 50_000, os.environ['FACTWIRE_RUNNER_SECRET'], flush=True); "
        "open(os.environ['FACTWIRE_DATA'] + '/done', 'w').close(); import time; time.sleep(600)"
    )
    command = (sys.executable, "-c", program)
    async with running_hub(tmp_path, runners=1, runner_command=command) as hub:
        runner_id = (await allocate(await hub.first_admin()))["runnerId"]
        place = tmp_path / "hub" / FOLDER / runner_id

        async def is_written() -> bool:
            log = place / LOG_FILE
            return (place / "data" / "done").exists() and log.exists() and "[sec" in log.read_text()

        await wait_until(is_written)
        logs = [place / LOG_FILE, place / OLD_LOG_FILE]
        assert sum(each.stat().st_size for each in logs if each.exists()) <= 20_000
        assert all("fwt_" not in each.read_text() for each in logs if each.exists())
