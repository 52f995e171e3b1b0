"""What the REST interface says about approvals, and the seams to the devices that ask."""

from collections.abc import Awaitable
from typing import Annotated, Any, Protocol

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import EdgeControl
from factwire.facts import Person
from factwire.facts.resources import DecisionCard, HubApproval, HumanDecision
from factwire.hub.frames.event_log import HubChange
from factwire.hub.hub_resources import HubBody
from factwire.hub.limits import APPROVAL_REASON_CHARACTERS, APPROVERS_MOST

_HASH_CHARACTERS = 128


class DecideBody(HubBody, frozen=True, kw_only=True):
    """A decision about exactly what was shown, by the hash on its card."""

    decision: HumanDecision
    args_hash: Annotated[str, msgspec.Meta(min_length=1, max_length=_HASH_CHARACTERS)]
    reason: Annotated[str, msgspec.Meta(max_length=APPROVAL_REASON_CHARACTERS)] | None = None


class ApprovalRule(HubBody, frozen=True, kw_only=True):
    """How many different people must allow something on a device; one who denies is enough."""

    required: Annotated[int, msgspec.Meta(ge=1, le=APPROVERS_MOST)] = 1


class Deciders(Protocol):
    """Who may decide what an Edge asks: its owner, and whom a grant makes an approver or an
    operator of the device, of the thread, or of the target of the run's task.
    """

    def __call__(
        self,
        connection: AsyncConnection,
        edge_id: str,
        thread_id: str | None,
        run_id: str | None,
    ) -> Awaitable[frozenset[str]]: ...


class DecisionOutbox(Protocol):
    """The queue of a device, which the link empties: at least once, to that device alone."""

    async def send_decision(
        self, change: HubChange, device_id: str, approval_id: str, control: EdgeControl
    ) -> str:
        """Queue a decision in a transaction; returns the id of its delivery. Who has it asks
        `approval_decisions.note_delivery_end` to write what came of it.
        """
        ...

    async def resend_decision(self, change: HubChange, device_id: str) -> None:
        """Send what a device has not acknowledged yet at once."""
        ...

    async def withdraw_decision(self, change: HubChange, delivery_id: str) -> None:
        """Send a decision no more: another takes its place, or it is too late for it."""
        ...


class CardReader(Protocol):
    """Reads the card of a request from the memory of its device, through the relay."""

    async def read_card(
        self, device_id: str, request_id: str, person: Person
    ) -> DecisionCard | None:
        """The card; None where the device does not answer."""
        ...


class ApprovalLinks(msgspec.Struct, frozen=True, kw_only=True):
    """What approvals need of other parts of the Hub; `required` is how many people must allow
    something at least.
    """

    deciders: Deciders
    required: int = 1
    outbox: DecisionOutbox | None = None
    cards: CardReader | None = None


def to_wire(approval: HubApproval) -> dict[str, Any]:
    """An approval as a frame has it: what the list says."""
    return msgspec.to_builtins(approval)
