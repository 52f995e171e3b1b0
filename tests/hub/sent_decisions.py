"""Decisions that go straight into the queue of a device, for tests of what it makes of them."""

from typing import Literal

import msgspec

from factwire.edge.hub_frames import AgentControl, EdgeControl
from factwire.hub.frames.event_log import HubChange
from factwire.hub.limits import DECISION_SECONDS
from factwire.hub.link.agent_tasks import describe_person
from factwire.hub.link.deliveries import MILLISECONDS, NewDelivery, add_delivery
from factwire.hub.people.accounts import new_id
from factwire.hub.records.grant_records import NeededRight


class NewDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that a device gets without an approval at the Hub."""

    person_id: str
    device_id: str
    run_id: str
    approval_id: str
    decision: Literal["allow", "deny"]
    args_hash: str
    reason: str | None = None
    screen_id: str | None = None


async def send_decision(change: HubChange, new: NewDecision) -> str:
    """Queue a decision for a device; the id of the delivery."""
    delivery_id = new_id("dlv")
    control = AgentControl(
        kind="permission.decide",
        delivery_id=delivery_id,
        edge_device_id=new.device_id,
        edge_control=EdgeControl(
            run_id=new.run_id,
            request_id=new.approval_id,
            decision=new.decision,
            reason=new.reason,
            args_hash=new.args_hash,
            decided_by=await describe_person(change.connection, new.person_id, new.screen_id),
        ),
        approval_id=new.approval_id,
    )
    await add_delivery(
        change,
        NewDelivery(
            delivery_id=delivery_id,
            device_id=new.device_id,
            person_id=new.person_id,
            kind="control",
            payload=control,
            right=NeededRight(role="approver"),
            subject_id=new.approval_id,
            expires_at=change.now + DECISION_SECONDS * MILLISECONDS,
        ),
    )
    return delivery_id
