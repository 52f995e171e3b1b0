"""`NotificationSender`: takes what is due off the ledger, sends it, and writes down what came.

The ledger is the queue. An attempt is counted in one transaction, made outside of any, and settled
in another; a process that dies in between leaves a claim that runs out, and the attempt is made
again. The other side knows a repeat by the id of the notification. A target that exists no more is
forgotten.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from sqlalchemy.engine import RowMapping

from factwire.hub.frames.event_log import HubChange
from factwire.hub.limits import SENDER_POLL_SECONDS
from factwire.hub.notifications.channel_senders import (
    ChannelSenders,
    OutgoingNotification,
    PushTarget,
    SendOutcome,
)
from factwire.hub.notifications.notification_ledger import (
    DeliveryOutcome,
    DueDelivery,
    claim_deliveries,
    note_screens,
    settle_delivery,
    urgency_of,
)
from factwire.hub.notifications.notification_targets import (
    drop_target,
    find_target,
    open_target,
    webhook_secret,
)
from factwire.hub.people.accounts import HubServices
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.serving.logs import logger

_MILLISECONDS: Final = 1_000
_log: Final = logger("factwire.hub.notifications")

NoteDelivery = Callable[[HubChange, DueDelivery], Awaitable[None]]
"""Writes what it means for its subject that a delivery was acknowledged."""


class NotificationSender:
    """Sends for one process of a Hub; any number of processes share the queue."""

    def __init__(
        self, hub: HubServices, senders: ChannelSenders, note_delivery: NoteDelivery
    ) -> None:
        self._hub = hub
        self._senders = senders
        self._note_delivery = note_delivery
        self._passing = asyncio.Lock()

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Send for as long as the block lasts."""
        task = asyncio.create_task(self._run(), name="factwire-hub-notifications")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                sent = await self.send_due()
            except RecordsUnavailable as error:
                _log.warning("notifications_not_sent", detail=str(error))
                sent = 0
            if not sent:
                await asyncio.sleep(SENDER_POLL_SECONDS)

    async def send_due(self) -> int:
        """Send what is due now, a bounded number at once; returns how many were tried."""
        async with self._passing:
            due = await self._claim()
            await asyncio.gather(*map(self._attempt, due))
            return len(due)

    async def _claim(self) -> list[DueDelivery]:
        connections = self._hub.connections
        notified, connections.notified = connections.notified, set()
        try:
            async with self._hub.database.write() as connection:
                await note_screens(connection, notified, self._hub.now())
                return await claim_deliveries(connection, self._hub.now())
        except RecordsUnavailable:
            connections.notified |= notified
            raise

    async def _attempt(self, delivery: DueDelivery) -> None:
        outcome = await self._send(delivery)
        async with self._hub.events.change() as change:
            settled = await settle_delivery(
                change.connection,
                delivery,
                DeliveryOutcome(
                    code=outcome.code, is_final=outcome.is_final, retry_after=outcome.retry_after
                ),
                change.now,
            )
            if outcome.is_gone:
                await drop_target(change.connection, delivery.target_id)
            if settled and outcome.code is None:
                await self._note_delivery(change, delivery)
        _log.info(
            "notification_tried",
            delivery=delivery.delivery_id,
            channel=delivery.channel,
            attempt=delivery.attempts,
            code=outcome.code or "delivered",
        )

    async def _send(self, delivery: DueDelivery) -> SendOutcome:
        now = self._hub.now()
        async with self._hub.database.read() as connection:
            row = await find_target(connection, delivery.target_id)
        if row is None:
            return SendOutcome(code="target_gone", is_final=True)
        address = open_target(self._hub.tokens, row)
        if address is None:
            return SendOutcome(code="target_unreadable", is_final=True)
        message = OutgoingNotification(
            notification_id=delivery.notification_id,
            type=delivery.kind,
            title=delivery.title,
            urgency=urgency_of(delivery.kind),
            seconds_left=max(0, (delivery.expires_at - now) // _MILLISECONDS),
        )
        return await self._send_by_channel(row, address, message, now)

    async def _send_by_channel(
        self, row: RowMapping, address: str, message: OutgoingNotification, now: int
    ) -> SendOutcome:
        if row["channel"] == "web_push":
            target = msgspec.json.decode(address, type=PushTarget)
            return await self._senders.push(target, message, now)
        if row["channel"] == "webhook":
            secret = webhook_secret(self._hub.tokens, row["target_id"])
            return await self._senders.call_webhook(address, secret, message, now)
        return await self._senders.send_notice(address, message, now)
