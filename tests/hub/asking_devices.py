"""A device whose agent asks, as a Hub knows it: its row, its facts, and the queue of what is sent
to it. The queue is a table of the Hub's own database, so that it lives and dies with it.
"""

from typing import Any

import msgspec
from sqlalchemy import Column, MetaData, Table, Text, delete, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import EdgeControl
from factwire.facts import Fact, Person
from factwire.facts.resources import DecisionCard
from factwire.hub.approvals.approval_decisions import note_delivery_end
from factwire.hub.approvals.approval_follower import ApprovalFollower
from factwire.hub.approvals.approval_resources import ApprovalLinks
from factwire.hub.frames.event_log import HubChange, audience_of
from factwire.hub.mirror.mirror_followers import FollowedEdge
from factwire.hub.people.accounts import HubServices, new_id
from factwire.hub.people.devices import end_device
from factwire.hub.records.device_records import bind_edge
from factwire.hub.records.device_tables import devices, edges, grants
from factwire.hub.records.grant_records import list_viewers
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.runtime.action_cards import shown_hash
from tests.journal.contract import make_fact

queue = Table(
    "test_queue",
    MetaData(),
    Column("delivery_id", Text, primary_key=True),
    Column("device_id", Text),
    Column("approval_id", Text),
    Column("control", Text),
)

EXPIRES = "2030-01-01T00:00:00Z"


class TableOutbox:
    """Queues decisions in the transaction that makes them."""

    def __init__(self) -> None:
        self.resent: list[str] = []

    async def send_decision(
        self, change: HubChange, device_id: str, approval_id: str, control: EdgeControl
    ) -> str:
        delivery_id = new_id("dlv")
        await change.connection.execute(
            insert(queue).values(
                delivery_id=delivery_id,
                device_id=device_id,
                approval_id=approval_id,
                control=msgspec.json.encode(control).decode(),
            )
        )
        return delivery_id

    async def resend_decision(self, change: HubChange, device_id: str) -> None:
        del change
        self.resent.append(device_id)

    async def withdraw_decision(self, change: HubChange, delivery_id: str) -> None:
        await change.connection.execute(delete(queue).where(queue.c.delivery_id == delivery_id))


class DeviceMemory:
    """The cards that a device would show, by request."""

    def __init__(self) -> None:
        self.cards: dict[str, DecisionCard] = {}

    async def read_card(
        self, device_id: str, request_id: str, person: Person
    ) -> DecisionCard | None:
        assert device_id
        assert person.via == "hub"
        return self.cards.get(request_id)


class SharedDevices:
    """Everybody who may see an Edge may decide, but for those who only watch."""

    def __init__(self) -> None:
        self.watchers: set[str] = set()

    async def __call__(
        self,
        connection: AsyncConnection,
        edge_id: str,
        thread_id: str | None,
        run_id: str | None,
    ) -> frozenset[str]:
        del thread_id, run_id
        return frozenset(await list_viewers(connection, edge_id)) - self.watchers


class AskingDevice:
    """One device of a Hub, and what its agent asks."""

    def __init__(self, hub: HubServices, owner: str, name: str = "1") -> None:
        self.hub = hub
        self.owner = owner
        self.edge = FollowedEdge(
            edge_id=f"edge_{name}", device_id=f"dev_{name}", device_name="Laptop", owner_id=owner
        )
        self._numbers = 0
        self._restarts = ""

    async def join(self, *people: str) -> None:
        """Join the Hub, seen by its owner and by others."""
        async with self.hub.database.write() as connection:
            await connection.execute(
                text(
                    "CREATE TABLE IF NOT EXISTS test_queue("
                    "delivery_id text, device_id text, approval_id text, control text)"
                )
            )
        async with self.hub.events.change() as change:
            await change.connection.execute(
                insert(devices).values(
                    device_id=self.edge.device_id,
                    person_id=self.owner,
                    session_id=f"ses_{self.edge.device_id}",
                    kind="edge",
                    name="Laptop",
                    edge_id=self.edge.edge_id,
                    platform="linux",
                    version="0",
                    agents="[]",
                    created_at=0,
                    last_seen_at=0,
                    online=False,
                )
            )
            await change.connection.execute(
                insert(edges).values(
                    edge_id=self.edge.edge_id,
                    person_id=self.owner,
                    device_id=self.edge.device_id,
                    created_at=0,
                )
            )
            for person_id in people:
                await change.connection.execute(insert(grants).values(self._grant_to(person_id)))
            for person_id in (self.owner, *people):
                change.join(audience_of("device", self.edge.device_id), person_id)

    def _grant_to(self, person_id: str) -> dict[str, Any]:
        edge_id = self.edge.edge_id
        return {
            "grant_id": new_id("grt"),
            "owner_id": self.owner,
            "grantee_id": person_id,
            "kind": "device",
            "edge_id": edge_id,
            "subject_id": edge_id,
            "role": "approver",
            "created_at": 0,
        }

    async def join_again(self, name: str) -> None:
        """Be another device of the same Edge, as after it has joined again."""
        former, device_id = self.edge.device_id, f"dev_{name}"
        async with self.hub.events.change() as change:
            query = select(devices).where(devices.c.device_id == former)
            row = (await change.connection.execute(query)).mappings().one()
            if row["revoked_at"] is None:
                await end_device(change, row, "joined_again", ActionOrigin(via="test", address=""))
            values = {"device_id": device_id, "session_id": f"ses_{device_id}", "revoked_at": None}
            await change.connection.execute(insert(devices).values({**row, **values}))
            await bind_edge(change.connection, self.edge.edge_id, self.owner, device_id, change.now)
            for person_id in await list_viewers(change.connection, self.edge.edge_id):
                change.join(audience_of("device", device_id), person_id)
        self.edge = msgspec.structs.replace(self.edge, device_id=device_id)

    def start_anew(self) -> None:
        """Be the same device after a restart: its facts have ids that were never used."""
        self._restarts = new_id("r")

    def fact(self, event_class: str, action_id: str, **payload: Any) -> Fact:
        self._numbers += 1
        return make_fact(
            f"{self.edge.edge_id}-{self._restarts}-{self._numbers}",
            "thr_1",
            event_class=event_class,
            action_id=action_id,
            turn_id="trn_1",
            run_id="run_1",
            payload=payload,
        )

    def request(self, action_id: str, args: Any = None, **payload: Any) -> Fact:
        """A request that shows what it asks, whole."""
        shown, args_hash = shown_hash("Run it?", args)
        fields = {"prompt": "Run it?", "shown": shown, "argsHash": args_hash, "expiresAt": EXPIRES}
        return self.fact("action.required", action_id, **{**fields, **payload})

    async def upload(self, *facts: Fact) -> None:
        """Facts as a follower of the mirror gets them."""
        follower = ApprovalFollower(self.hub.approvals.deciders, self.hub.approvals.required)
        async with self.hub.events.change() as change:
            await follower.take_facts(change, self.edge, list(enumerate(facts, 1)))

    async def ask(self, action_id: str, args: Any = None, **payload: Any) -> None:
        await self.upload(self.request(action_id, args, **payload))

    async def queued(self) -> list[tuple[str, EdgeControl]]:
        """What waits for the device, or was sent to it."""
        async with self.hub.database.read() as connection:
            query = select(queue.c.delivery_id, queue.c.control).where(
                queue.c.device_id == self.edge.device_id
            )
            rows = (await connection.execute(query)).all()
        return [
            (delivery_id, msgspec.json.decode(control, type=EdgeControl))
            for delivery_id, control in rows
        ]

    async def acknowledge(self, delivery_id: str, refused: str | None = None) -> None:
        """Say, as the device does, that it has a delivery on disk, or why it refuses it."""
        async with self.hub.events.change() as change:
            await note_delivery_end(change, delivery_id, refused)

    async def resolve(self, action_id: str, decision: str = "approved", **payload: Any) -> None:
        await self.upload(
            self.fact("action.resolved", action_id, decision=decision, applied=False, **payload)
        )

    async def apply(self, action_id: str, decision: str = "approved") -> None:
        await self.upload(self.fact("action.updated", action_id, decision=decision, applied=True))


def links(outbox: TableOutbox | None = None) -> ApprovalLinks:
    return ApprovalLinks(
        deciders=SharedDevices(), outbox=outbox or TableOutbox(), cards=DeviceMemory()
    )
