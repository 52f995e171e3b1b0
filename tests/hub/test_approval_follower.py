"""Approvals of a real agent on a real Edge, read off its mirror; each fact is taken once."""

import asyncio
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert, select

from factwire.edge.hub_access import HubTarget
from factwire.edge.startup import EdgeSettings
from factwire.facts import Fact
from factwire.hub.approvals.approval_follower import ApprovalFollower
from factwire.hub.frames.event_log import HubChange
from factwire.hub.mirror.mirror_followers import FollowedEdge, MirrorFollowers
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.records.device_tables import follower_positions
from factwire.hub.records.hub_tables import sessions
from tests.edge.edges import TOKEN, running_edge
from tests.hub.asking_devices import AskingDevice, links
from tests.hub.hubs import HubPerson, RunningHub, running_hub
from tests.hub.mirrors import WAIT_SECONDS, RunningMirror, running_mirror
from tests.hub.served_hubs import DAY, ServedHub, served_hub

pytestmark = pytest.mark.asyncio

NAME = "01K00000000000000000000000"
"""What the id of a device has behind its prefix."""


def follow(hub: RunningHub, mirror: RunningMirror, *followers: Any) -> MirrorFollowers:
    services = hub.hub.services
    found = followers or (ApprovalFollower(services.approvals.deciders),)
    return MirrorFollowers(mirror.store, services.database, services.events, found)


async def join_edge(
    hub: RunningHub, owner: HubPerson, edge_id: str, name: str = "1"
) -> AskingDevice:
    device = AskingDevice(hub.hub.services, owner.person_id, name)
    device.edge = msgspec.structs.replace(device.edge, edge_id=edge_id)
    await device.join()
    return device


async def wait_for_state(person: HubPerson, state: str) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            rows = (await person.get("/v1/approvals?status=all"))["items"]
            if rows and rows[0]["state"] == state:
                return rows[0]
            await asyncio.sleep(0.05)


async def wait_for_card(person: HubPerson, path: str) -> dict[str, Any]:
    """The card with its exact text: facts of a device may come before its socket does."""
    async with asyncio.timeout(WAIT_SECONDS):
        while "shown" not in (card := (await person.get(path))["card"]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return card


async def join_for_real(hub: ServedHub, owner: HubPerson, edge_id: str) -> HubTarget:
    """A device that has joined, and the token by which its Edge comes."""
    device = await join_edge(hub, owner, edge_id, NAME)
    services = hub.hub.services
    token = services.tokens.new_device_token(device.edge.device_id)
    async with services.database.write() as connection:
        await connection.execute(
            insert(sessions).values(
                session_id=f"ses_{device.edge.device_id}",
                person_id=owner.person_id,
                created_at=services.now(),
                last_used_at=services.now(),
                expires_at=services.now() + DAY,
                token_digest=digest_of(token),
                rotated_at=services.now(),
                address="",
                user_agent="",
                device_id=device.edge.device_id,
            )
        )
    return HubTarget(url=str(hub.http.base_url).rstrip("/"), token=token)


@pytest.mark.requirement("hub.approvals.steps")
@pytest.mark.requirement("hub.approvals.several")
@pytest.mark.requirement("hub.approvals.exact")
async def test_decisions_at_the_hub_let_the_agent_go_on_and_its_facts_name_the_people(
    tmp_path: Path,
):
    """A real agent, a real Edge and a real link: the request has a secret, so that its exact text
    comes from the memory of the device.
    """
    folder = tmp_path / "edge"
    folder.mkdir()
    async with running_edge(folder) as edge:
        edge_id = edge.machine.edge_id
    async with served_hub(tmp_path) as hub:
        ada = await hub.first_admin()
        bo = await hub.join(ada, "Bo")
        eve = await hub.join(ada, "Eve")
        target = await join_for_real(hub, ada, edge_id)
        for name, role in (("Bo", "approver"), ("Eve", "viewer")):
            await ada.post("/v1/grants", {"person": name, "role": role, "deviceId": f"dev_{NAME}"})
        await ada.request("PUT", f"/v1/devices/dev_{NAME}/approval-rule", {"required": 2})
        async with running_edge(folder, settings=EdgeSettings(token=TOKEN, hub=target)) as edge:
            secret = "ghp_" + "a1B2c3D4e5F6" * 3
            command = f"API_TOKEN={secret} touch made-by-the-agent"
            run = await edge.start(command, agent="shell")
            there = await edge.wait_for_approval(run["runId"])
            approval = await wait_for_state(ada, "asked")
            assert (approval["requestId"], approval["argsHash"], approval["runId"]) == (
                there["approvalId"],
                there["argsHash"],
                run["runId"],
            )
            path = f"/v1/approvals/{approval['approvalId']}"
            card = await wait_for_card(bo, path)
            own = await edge.get(f"/v1/approvals/{there['approvalId']}/card")
            assert (card["shown"], card["argsHash"]) == (own["shown"], own["argsHash"])
            # The recorded text is redacted, so that this one came through the link, masked.
            assert (card["masks"], secret in card["shown"]) == (1, False)
            body = {"decision": "allow", "argsHash": card["argsHash"]}
            # At the Edge's own address, too, one person decides for one.
            direct = {**body, "runId": run["runId"], "requestId": there["approvalId"]}
            at_edge = f"/v1/edges/{edge_id}/permissions/decide"
            assert (await ada.post(at_edge, direct, status=200))["status"] == "pending"
            always = await ada.post(at_edge, {**direct, "always": "thread"}, status=403)
            assert always["code"] == "not_relayed"
            watching = await eve.post(f"{path}/decide", body, status=403)
            assert watching["code"] == "not_an_approver"
            assert (await bo.post(at_edge, direct, status=200))["status"] == "approved"
            assert (await edge.run_until(run["runId"]))["status"] == "finished"
            applied = await wait_for_state(ada, "applied")
            row = await edge.get(f"/v1/approvals/{there['approvalId']}")
            made = await edge.post("/v1/evidence", {"threadId": run["threadId"]}, status=201)
            answer = await edge.http.get(f"/v1/evidence/{made['evidenceId']}/content")
    assert row["decidedBy"] == applied["decidedBy"]
    assert row["decidedBy"] == {
        **describe(bo, "Bo"),
        "togetherWith": [describe(ada, "Ada")],
    }
    with zipfile.ZipFile(io.BytesIO(answer.content)) as pack:
        content = b"".join(map(pack.read, pack.namelist()))
    assert ada.person_id.encode() in content
    assert bo.person_id.encode() in content


def describe(person: HubPerson, name: str) -> dict[str, str]:
    return {
        "name": name,
        "via": "hub",
        "userId": person.person_id,
        "deviceId": person.session_id,
    }


class NotingFollower:
    """Takes the ids of all facts; dies in the middle of the batch that a test names."""

    name = "noting"
    classes = ("turn", "action", "model")

    def __init__(self) -> None:
        self.taken: list[tuple[int, str]] = []
        self.dies = False

    async def take_facts(
        self, change: HubChange, edge: FollowedEdge, facts: Sequence[tuple[int, Fact]]
    ) -> None:
        assert edge.device_id == "dev_1"
        assert change.connection is not None
        if self.dies:
            raise ZeroDivisionError
        self.taken += [(seq, fact.id) for seq, fact in facts]


@pytest.mark.requirement("hub.followers")
async def test_each_fact_of_a_mirror_is_taken_once_also_after_a_failure(tmp_path: Path):
    folder = tmp_path / "edge"
    folder.mkdir()
    noting = NotingFollower()
    async with (
        running_hub(tmp_path, approvals=links()) as hub,
        running_mirror(tmp_path / "mirrors") as mirror,
        running_edge(folder, settings=EdgeSettings(token=TOKEN, hub=mirror.target)) as edge,
    ):
        ada = await hub.first_admin()
        edge_id = edge.machine.edge_id
        await edge.allow_all((await edge.start("first"))["runId"])
        await mirror.wait_for(edge_id, (await edge.machine.journal.head()).seq)
        followers = follow(hub, mirror, noting)
        # Whose Edge it is must be known first.
        await followers.catch_up(edge_id)
        assert noting.taken == []
        await join_edge(hub, ada, edge_id)
        noting.dies = True
        with pytest.raises(ZeroDivisionError):
            await followers.catch_up(edge_id)
        noting.dies = False
        await followers.catch_up(edge_id)
        await followers.catch_up(edge_id)
        await edge.allow_all((await edge.start("second"))["runId"])
        head = (await edge.machine.journal.head()).seq
        await mirror.wait_for(edge_id, head)
        # Another process goes on where the first one was.
        await follow(hub, mirror, noting).catch_up(edge_id)
        async with mirror.store.use(edge_id) as mirrored:
            wanted = [
                (seq, fact.id)
                async for batch in mirrored.journal.read()
                for seq, fact in batch.facts()
                if (fact.event_class or "").partition(".")[0] in noting.classes
            ]
        assert noting.taken == wanted
        async with hub.hub.services.database.read() as connection:
            seq = (await connection.execute(select(follower_positions.c.seq))).scalar_one()
        assert seq == head
