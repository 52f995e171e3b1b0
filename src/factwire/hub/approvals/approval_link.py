"""Approvals over the link: decisions in the queue of a device, and cards from its memory.

A decision goes to exactly the Edge that asked, as the device that it is now, at least once and
under one id, by the deliveries of the link; what the device answers is written in the transaction
that ends the delivery. A card is read through the relay, in the name of the person who wants to
decide. A decision that is sent to the address of an Edge is one of these, too: it counts as one
person's, and no more.
"""

import asyncio
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec
from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.edge_app import PROBLEM_CODES
from factwire.edge.hub_frames import UNSET, DeliveryAck, EdgeControl, RelayCommandCreated
from factwire.edge.routes.api_types import DecisionBody
from factwire.facts import Person
from factwire.facts.resources import DecisionCard
from factwire.hub.approvals.approval_decisions import (
    decide,
    note_decision_lost,
    note_delivery_end,
)
from factwire.hub.approvals.approval_records import (
    ApprovalRow,
    announce_run,
    find_by_id,
    find_right,
    find_visible,
    find_visible_request,
    unknown_approval,
)
from factwire.hub.approvals.approval_resources import DecideBody
from factwire.hub.frames.event_log import EventLog, HubChange
from factwire.hub.frames.frame_types import AgentControl
from factwire.hub.hub_guard import CALLER, ORIGIN
from factwire.hub.limits import (
    CARD_SECONDS,
    DECISION_SECONDS,
    MIRRORED_SECONDS,
    RELAY_SECONDS,
)
from factwire.hub.link.deliveries import MILLISECONDS, NewDelivery, add_delivery, retry_now
from factwire.hub.link.edge_link import DeviceSockets, EdgeLink
from factwire.hub.link.relay import read_relayed_body
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.records.approval_tables import approvals
from factwire.hub.records.device_records import find_current_device, select_edge_id
from factwire.hub.records.device_tables import devices
from factwire.hub.records.link_tables import OPEN_STATES, agent_tasks, deliveries
from factwire.serving.asgi import Problem, Receive, Scope

_OK: Final = 200
_POLL_SECONDS: Final = 0.05


class LinkOutbox:
    """Puts decisions into the queue of a device; a `DecisionOutbox`."""

    async def send_decision(
        self, change: HubChange, device_id: str, approval_id: str, control: EdgeControl
    ) -> str:
        """Queue a decision; returns the id of its delivery."""
        delivery_id = new_id("dlv")
        row = await find_by_id(change.connection, approval_id)
        if row is None:
            raise unknown_approval()
        decided_by = {} if control.decided_by is UNSET else control.decided_by
        await add_delivery(
            change,
            NewDelivery(
                delivery_id=delivery_id,
                device_id=device_id,
                person_id=str(decided_by.get("userId")),
                kind="control",
                payload=AgentControl(
                    kind="permission.decide",
                    delivery_id=delivery_id,
                    edge_device_id=device_id,
                    edge_control=control,
                    approval_id=approval_id,
                    **await _find_task_ids(change.connection, row),
                ),
                right=await find_right(change.connection, row, "approver"),
                subject_id=approval_id,
                expires_at=change.now + DECISION_SECONDS * MILLISECONDS,
            ),
        )
        return delivery_id

    async def resend_decision(self, change: HubChange, device_id: str) -> None:
        """Send what a device has not acknowledged yet at once."""
        await retry_now(change.connection, device_id, change.now)

    async def withdraw_decision(self, change: HubChange, delivery_id: str) -> None:
        """Send a decision no more: another takes its place, or it is too late for it."""
        is_open = deliveries.c.state.in_((*OPEN_STATES, "dead"))
        await change.connection.execute(
            update(deliveries)
            .where(deliveries.c.delivery_id == delivery_id, is_open)
            .values(state="expired", code="withdrawn", ended_at=change.now)
        )


async def _find_task_ids(connection: AsyncConnection, row: ApprovalRow) -> dict[str, str]:
    """The ids of the task whose run asks, by which a device knows what a decision is about."""
    task = agent_tasks.c
    query = (
        select(task.task_id, task.target_id, task.team)
        .join(devices, devices.c.device_id == task.device_id)
        .where(task.edge_run_id == row["run_id"], devices.c.edge_id == row["edge_id"])
    )
    found = (await connection.execute(query)).first()
    if found is None:
        return {}
    task_id, target_id, team_text = found
    team = {} if team_text is None else msgspec.json.decode(team_text, type=dict[str, str])
    ids = {
        "agent_task_id": task_id,
        "target_id": target_id,
        "team_id": team.get("team_id"),
        "team_run_id": team.get("team_run_id"),
        "member_id": team.get("team_member_id"),
    }
    return {name: value for name, value in ids.items() if value is not None}


async def note_acknowledgement(change: HubChange, delivery: RowMapping, ack: DeliveryAck) -> None:
    """Write what a device answered to a decision; a listener of the link."""
    refused = None if ack.refused is UNSET else ack.refused
    await note_delivery_end(change, delivery["delivery_id"], refused)


async def note_loss(change: HubChange, delivery: RowMapping, code: str) -> None:
    """Write that a decision did not reach its device; a listener of the link."""
    await note_decision_lost(change, delivery["delivery_id"], code)


async def note_begun(change: HubChange, task: RowMapping, run_id: str) -> None:
    """Have those see what a run asks who may do so by the target of its task, if it has asked
    before its task was known; a listener of the link.
    """
    edge_id = (await change.connection.execute(select(select_edge_id(task["device_id"])))).scalar()
    if task["target_id"] is not None and edge_id is not None:
        await announce_run(change, edge_id, run_id)


class RelayedCards:
    """Reads cards through the relay; a `CardReader`."""

    def __init__(self, events: EventLog, link: EdgeLink, sockets: DeviceSockets) -> None:
        self._events = events
        self._link = link
        self._sockets = sockets

    async def read_card(
        self, device_id: str, request_id: str, person: Person
    ) -> DecisionCard | None:
        """The card that a device shows; None where it is not connected or does not answer."""
        if not self._sockets.is_connected(device_id):
            return None
        delivery_id = new_id("dlv")
        command = RelayCommandCreated(
            command_id=delivery_id,
            delivery_id=delivery_id,
            method="GET",
            path=f"/v1/approvals/{quote(request_id, safe='~')}/card",
            person=msgspec.to_builtins(person),
            scopes=["read", "decide"],
        )
        query = select(approvals).where(
            approvals.c.edge_id == select_edge_id(device_id), approvals.c.request_id == request_id
        )
        async with self._events.change() as change:
            row = (await change.connection.execute(query)).mappings().one()
            await add_delivery(
                change,
                NewDelivery(
                    delivery_id=delivery_id,
                    device_id=device_id,
                    person_id=person.user_id or "",
                    kind="relay",
                    payload=command,
                    right=await find_right(change.connection, row, "viewer"),
                    expires_at=change.now + CARD_SECONDS * MILLISECONDS,
                ),
            )
        until = asyncio.get_running_loop().time() + CARD_SECONDS
        row = await self._link.wait_for_answer(delivery_id, until)
        return _read_answer(row)


class EdgeDecisions:
    """Takes decisions at the address that an Edge has for them; a `DecisionTaker`."""

    def __init__(self, hub: HubServices, link: EdgeLink) -> None:
        self._hub = hub
        self._link = link

    async def __call__(
        self, scope: Scope, receive: Receive, edge_id: str, is_known: Callable[[str], bool]
    ) -> tuple[str, int]:
        """Decide what an agent asks. Return once its device has the decision, or is away, or more
        people must allow it; raises `Problem`.
        """
        wanted = _decode_decision(await read_relayed_body(receive))
        caller: HubCaller = scope["state"][CALLER]
        if not caller.may("member"):
            raise Problem(
                403, "insufficient_role", f"this needs the role member; yours is {caller.role}"
            )
        approval_id = await self._find_approval(caller, edge_id, wanted.request_id, is_known)
        body = DecideBody(
            decision=wanted.decision, args_hash=wanted.args_hash, reason=wanted.reason
        )
        approval = await decide(self._hub, caller, approval_id, body, scope["state"][ORIGIN])
        state: str = approval.state
        if state == "decided":
            state = await self._wait_for_device(caller, approval_id)
        return wanted.request_id, MIRRORED_SECONDS if state in ("sent", "applied") else 0

    async def _find_approval(
        self, caller: HubCaller, edge_id: str, request_id: str, is_known: Callable[[str], bool]
    ) -> str:
        """The approval of a request; what the mirror shows may be among them a moment later."""
        loop = asyncio.get_running_loop()
        until = loop.time() + MIRRORED_SECONDS
        while True:
            async with self._hub.database.read() as connection:
                row = await find_visible_request(connection, caller.person_id, edge_id, request_id)
            if row is not None:
                return row["approval_id"]
            if not is_known(request_id) or loop.time() >= until:
                raise unknown_approval()
            await asyncio.sleep(_POLL_SECONDS)

    async def _wait_for_device(self, caller: HubCaller, approval_id: str) -> str:
        """The state of an approval once its device has the decision, or is away."""
        async with self._hub.database.read() as connection:
            row = await find_visible(connection, caller.person_id, approval_id)
            device = await find_current_device(connection, row["edge_id"])
        if device is None or not self._hub.connections.is_connected(device["device_id"]):
            return row["state"]
        until = asyncio.get_running_loop().time() + RELAY_SECONDS
        await self._link.wait_for_answer(row["delivery_id"], until)
        async with self._hub.database.read() as connection:
            row = await find_visible(connection, caller.person_id, approval_id)
        if row["code"] is not None:
            # What a device calls it is passed on only where an Edge may call it so.
            code = row["code"] if row["code"] in PROBLEM_CODES else "approval_closed"
            raise Problem(409, code, "the device did not take the decision; read it again")
        return row["state"]


def _decode_decision(content: bytes) -> DecisionBody:
    try:
        wanted = msgspec.json.decode(content, type=DecisionBody)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Problem(400, "invalid_request", f"the decision cannot be read: {error}") from error
    if wanted.always is not None or wanted.response is not None:
        detail = "a Hub takes decisions for once; ask the Edge itself for a rule, or to answer"
        raise Problem(403, "not_relayed", detail)
    return wanted


def _read_answer(row: RowMapping) -> DecisionCard | None:
    if row["state"] != "acked" or not row["content"]:
        return None
    answer = msgspec.json.decode(row["answer"])
    if answer["status"] != _OK:
        return None
    return msgspec.json.decode(row["content"], type=DecisionCard)
