"""R16 for tasks: kills of a real Hub, a real Edge and both while tasks are given and done."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import select

from factwire.edge.hub_access import HubTarget, write_target
from factwire.edge.hub_frames import DeliveryAck
from factwire.edge.hub_link import HubLink
from factwire.edge.link_store import StoredFrame
from factwire.edge.startup import EdgeSettings, open_edge
from factwire.hub.hub_startup import open_services, serve
from factwire.hub.mirror.mirror_store import MirrorStore
from factwire.hub.people.accounts import invite_first_admin, register
from factwire.hub.people.devices import NewDevice, register_device
from factwire.hub.people.passwords import Passwords
from factwire.hub.records.event_tables import events
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.hub.request_rates import RequestRates
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.runtime.configuration import HubSettings
from tests.edge.edges import TOKEN, configuration_in
from tests.hub.hubs import PASSWORD, quick_passwords
from tests.hub.killed_link import KilledProcess, Ready
from tests.hub.mirrors import NOW
from tests.hub.test_mirror_faults import choose_port
from tests.hub.test_mirror_store import read_lines
from tests.trials import TRIAL_SECONDS, count_trials

pytestmark = pytest.mark.fault

ROUNDS = count_trials(full=150, share=3)
WAIT = 300
OPEN_MOST = 9
ENDS = ("done", "failed")


async def acknowledge_at_once(
    self: HubLink, delivery_id: str, frame: StoredFrame, payload: Any, perform: Any
) -> None:
    """What an Edge would do that neither stores nor does a task before it acknowledges it."""
    del frame, payload, perform
    ack = DeliveryAck(delivery_id=delivery_id, edge_run_id="run_none", thread_id="thr_none")
    await self._say("delivery.ack", ack)


async def run_edge(ready: Ready, folder: Path, eager: str = "") -> None:
    if eager:
        HubLink._do_once = acknowledge_at_once
    conf = configuration_in(folder)
    async with open_edge(conf, Path(conf.workspaces[0]), EdgeSettings(token=TOKEN)) as edge:
        ready(edge.context.edge_id)
        await asyncio.Event().wait()


async def run_hub(ready: Ready, folder: Path, port: int) -> None:
    Passwords.__init__.__defaults__ = (quick_passwords()._hasher,)

    def spend_nothing(*_: object) -> None:
        return None

    RequestRates.spend = spend_nothing  # pyright: ignore[reportAttributeAccessIssue]

    await serve(folder, HubSettings(port=port), lambda _, address: ready(address))


async def join(folder: Path, url: str, edge_id: str, agents: Sequence[str] = ("demo",)) -> str:
    """Make the first account and register the Edge, before the Hub runs; the id of the device."""
    origin = ActionOrigin(via="test", address="")
    async with open_services(folder / "hub", None, url, passwords=quick_passwords()) as hub:
        invitation = await invite_first_admin(hub, origin)
        assert invitation is not None
        person = (await register(hub, invitation.token, "Ada", PASSWORD, origin)).person
        new = NewDevice(
            person_id=person.person_id,
            person_name="Ada",
            edge_id=edge_id,
            name="laptop",
            agents=list(agents),
        )
        async with hub.events.change() as change:
            joined = await register_device(hub, change, new, origin)
    target = HubTarget(url=url, token=joined.device_token, device_id=joined.device_id)
    write_target(folder / "edge" / "data", target)
    return joined.device_id


class Client:
    """A person who gives tasks and reads them, whatever happens to the Hub meanwhile."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=10, trust_env=False)
        self._token = "none"

    async def ask(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """An answer, however often it takes to get one."""
        async with asyncio.timeout(WAIT):
            while True:
                try:
                    headers = {"authorization": f"Bearer {self._token}"}
                    if key:
                        headers["idempotency-key"] = key
                    answer = await self._http.request(method, path, json=body, headers=headers)
                    if answer.status_code == 401:
                        login = {"name": "Ada", "password": PASSWORD}
                        signed_in = await self._http.post("/v1/auth/login", json=login)
                        self._token = signed_in.json()["accessToken"]
                    elif answer.is_success:
                        return answer.json()
                    else:
                        assert answer.status_code >= 500, answer.text
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)

    async def close(self) -> None:
        await self._http.aclose()


async def kill_rounds(folder: Path, rounds: int, *, eager: bool = False) -> None:
    """Kill either end or both while tasks are given; an `eager` Edge until the first kill."""
    chance, port = Random(11), choose_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "edge").mkdir()
    edge = KilledProcess(run_edge, folder / "edge")
    edge_id = edge.name
    edge.kill()
    device_id = await join(folder, url, edge_id)
    hub, edge = (
        KilledProcess(run_hub, folder / "hub", port),
        KilledProcess(run_edge, folder / "edge", "eager" if eager else ""),
    )
    client, task_ids, ended = Client(url), list[str](), dict[str, Any]()

    async def give(key: str) -> str:
        body = {"deviceId": device_id, "agentType": "demo", "prompt": "help"}
        return (await client.ask("POST", "/v1/agent-tasks", body, key))["taskId"]

    try:
        for number in range(rounds):
            # A device gets as much as it can do between kills, because its queue has a bound.
            await wait_for_status(client, task_ids[:-OPEN_MOST], ENDS, ended)
            task_ids += [await give(f"{number}-{part}") for part in range(3)]
            await asyncio.sleep(chance.random())
            if eager:
                await wait_for_status(client, task_ids[-1:], ("delivered", "unknown"), {})
            which = ("edge", "hub", "both")[number % 3]
            if which != "edge":
                hub.kill()
            if which != "hub":
                edge.kill()
                edge = KilledProcess(run_edge, folder / "edge")
            if which != "edge":
                hub = KilledProcess(run_hub, folder / "hub", port)
        # Once a later task is done, an Edge that had forgotten one would never come back to it.
        task_ids.append(await give("last"))
        await wait_for_status(client, task_ids[-1:], ENDS, ended)
        if eager:
            tasks = [await client.ask("GET", f"/v1/agent-tasks/{each}") for each in task_ids]
            assert {task["status"] for task in tasks} <= set(ENDS), "a task never ends"
        await wait_for_status(client, task_ids, ENDS, ended)
        await compare_mirror(client, folder, edge_id, edge, hub)
    finally:
        hub.kill()
        edge.kill()
        await client.close()
    await check_ends(folder, url, task_ids, ended)


async def wait_for_status(
    client: Client, task_ids: list[str], statuses: tuple[str, ...], found: dict[str, Any]
) -> None:
    """Note tasks in `found`, until each of them has had one of these statuses."""
    async with asyncio.timeout(WAIT):
        while missing := [each for each in task_ids if each not in found]:
            for task_id in missing:
                task = await client.ask("GET", f"/v1/agent-tasks/{task_id}")
                if task["status"] in statuses:
                    found[task_id] = task
            await asyncio.sleep(0.1)


async def compare_mirror(
    client: Client, folder: Path, edge_id: str, edge: KilledProcess, hub: KilledProcess
) -> None:
    """The mirror is the Edge's journal byte for byte, once the Edge is gone and all is uploaded."""
    async with asyncio.timeout(WAIT):
        while True:
            async with SqliteJournal(f"{folder}/edge/journal.db", read_only=True) as journal:
                head = (await journal.head()).seq
            status = await client.ask("GET", f"/v1/edges/{edge_id}/mirror")
            if int(status["cursor"][-16:]) == head:
                break
            await asyncio.sleep(0.1)
    edge.kill()
    hub.kill()
    async with (
        SqliteJournal(f"{folder}/edge/journal.db") as journal,
        MirrorStore(folder / "hub" / "mirrors", lambda: NOW) as store,
        store.use(edge_id) as mirror,
    ):
        assert (await mirror.journal.verify()).ok
        lines = await read_lines(mirror.journal)
        original = await read_lines(journal)
        # The Edge was killed after the last comparison, so it may have written a little more.
        assert lines == {seq: original[seq] for seq in lines}
        assert set(original) - set(lines) <= {seq for seq in original if seq > max(lines)}


async def check_ends(folder: Path, url: str, task_ids: list[str], ended: dict[str, Any]) -> None:
    """Each task has a run of its own, and its end was told once."""
    assert (
        len({task["edgeRunId"] for task in ended.values()}) == len(task_ids) == len(set(task_ids))
    )
    query = select(events.c.payload).where(events.c.type.in_(("agent.done", "agent.failed")))
    async with (
        open_services(folder / "hub", None, url, passwords=quick_passwords()) as hub,
        hub.database.read() as connection,
    ):
        ends = [msgspec.json.decode(each) for each in (await connection.execute(query)).scalars()]
        streamed = select(events.c.payload).where(events.c.type == "agent.stream")
        shown = [
            msgspec.json.decode(each) for each in (await connection.execute(streamed)).scalars()
        ]
    assert Counter(each["task_id"] for each in ends) == Counter(task_ids)
    own = [(each["task_id"], each["id"]) for each in shown if each["event_type"] != "task.updated"]
    assert len(own) == len(set(own))


@pytest.mark.nightly
@pytest.mark.requirement("link.killed")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_kills_of_either_end_lose_double_and_strand_no_task(tmp_path: Path):
    await kill_rounds(tmp_path, ROUNDS)


@pytest.mark.requirement("link.killed")
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.asyncio
async def test_an_edge_that_acknowledges_too_early_is_found_out(tmp_path: Path):
    with pytest.raises(AssertionError, match="a task never ends"):
        await kill_rounds(tmp_path, 1, eager=True)
