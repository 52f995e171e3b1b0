"""The outbox: what a device is to be told, kept until the device says that it has it.

A delivery is written in the transaction of whatever it is about, for one device. It is noted as
sent before it is sent, so that one of which there is no such note was never sent: this is how the
Hub knows what it can still take back by itself. It is sent only while everybody whom it is from
may still do what it does (`may_send`), so that a grant that is revoked ends what waits by it. It
goes out again, after 2 s and then twice as long each time up to 30 s, until the device acknowledges
it. After a number of times on one socket it becomes a dead letter, which people see and can send
again; one that stops a task is sent again by itself when the device reconnects. The device knows by
`delivery_id` what it had before.
"""

import math
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    FromClause,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import AgentControl, FramePayload
from factwire.facts.resources import DeliveryKind, DeliveryState, DeviceDelivery
from factwire.hub.frames.event_log import HubChange
from factwire.hub.limits import (
    DELIVERIES_AT_ONCE,
    DELIVERY_ATTEMPTS,
    DELIVERY_RETRY_SECONDS,
    DELIVERY_RETRY_SECONDS_MOST,
    DISPATCHES_IN_FLIGHT,
    RELAYS_OPEN,
)
from factwire.hub.records.approval_tables import approval_votes
from factwire.hub.records.device_records import is_of_edge
from factwire.hub.records.device_tables import devices
from factwire.hub.records.grant_records import NeededRight, may_access
from factwire.hub.records.hub_tables import people
from factwire.hub.records.link_tables import (
    OPEN_STATES,
    STOPS,
    deliveries,
)
from factwire.hub.records.people_records import format_optional_time, format_time
from factwire.serving.asgi import Problem
from factwire.serving.idempotency import DONE_STATUSES

MILLISECONDS: Final = 1_000

RIGHT_ENDED: Final = "right_ended"
"""The code of what was not sent because whoever it is from may no longer do it."""

FRAME_OF_KIND: Final[dict[DeliveryKind, str]] = {
    "dispatch": "agent.dispatch",
    "cancel": "agent.cancel",
    "timeout": "agent.timeout",
    "control": "agent.control",
    "relay": "relay.command.created",
}
"""Kind → the type of the frame that carries it."""


class NewDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """What a device is to be told; `payload` names `delivery_id` too. `request` is the digest of a
    relayed request. `right` is what the person must be allowed for as long as it waits; what stops
    something needs none.
    """

    delivery_id: str
    device_id: str
    person_id: str
    kind: DeliveryKind
    payload: FramePayload
    expires_at: int
    right: NeededRight | None
    task_id: str | None = None
    subject_id: str | None = None
    request: str | None = None

    def right_columns(self) -> dict[str, str | None]:
        right = self.right
        return {
            "needed_role": right and right.role,
            "thread_id": right and right.thread_id,
            "target_id": right and right.target_id,
        }


def to_delivery(row: RowMapping) -> DeviceDelivery:
    return DeviceDelivery(
        delivery_id=row["delivery_id"],
        device_id=row["device_id"],
        person_id=row["person_id"],
        kind=row["kind"],
        state=row["state"],
        attempts=row["attempts"],
        created_at=format_time(row["created_at"]),
        expires_at=format_time(row["expires_at"]),
        task_id=row["task_id"],
        approval_id=row["subject_id"],
        sent_at=format_optional_time(row["sent_at"]),
        ended_at=format_optional_time(row["ended_at"]),
        code=row["code"],
    )


async def add_delivery(change: HubChange, new: NewDelivery) -> None:
    """Put something into the queue of a device; raises `Problem` for a relayed request where too
    many of the person wait. Tasks are counted when they are created, and of what stops or decides
    something there is no more than there are tasks and questions.
    """
    if new.kind == "relay":
        await _ensure_relay_room(change.connection, new)
    await change.connection.execute(
        insert(deliveries).values(
            delivery_id=new.delivery_id,
            device_id=new.device_id,
            person_id=new.person_id,
            kind=new.kind,
            task_id=new.task_id,
            subject_id=new.subject_id,
            payload=msgspec.json.encode(new.payload).decode(),
            request=new.request,
            state="pending",
            attempts=0,
            created_at=change.now,
            next_at=change.now,
            expires_at=new.expires_at,
            **new.right_columns(),
        )
    )


async def repeat_relay(change: HubChange, row: RowMapping, new: NewDelivery) -> None:
    """Send a relayed request again under the id that it had. What the device is known to have done
    stays known, and what was sent to it once may have been heard; raises `Problem` like
    `add_delivery`.
    """
    await _ensure_relay_room(change.connection, new)
    is_refused = row["state"] == "acked" and read_done_status(row) is None
    await change.connection.execute(
        update(deliveries)
        .where(deliveries.c.position == row["position"])
        .values(
            payload=msgspec.json.encode(new.payload).decode(),
            request=new.request,
            **new.right_columns(),
            state="pending",
            attempts=0 if is_refused else min(row["attempts"], 1),
            next_at=change.now,
            expires_at=new.expires_at,
            ended_at=None,
            code=None,
            answer=None if is_refused else row["answer"],
            content=None,
        )
    )


def read_done_status(row: RowMapping) -> int | None:
    """The status by which a device said that it has carried out a relayed request; None where it
    refused it, or has not answered.
    """
    if row["answer"] is None:
        return None
    status: int = msgspec.json.decode(row["answer"])["status"]
    return status if status in DONE_STATUSES else None


async def _ensure_relay_room(connection: AsyncConnection, new: NewDelivery) -> None:
    waiting = select(func.count()).where(
        deliveries.c.device_id == new.device_id,
        deliveries.c.state.in_(OPEN_STATES),
        deliveries.c.kind == "relay",
        deliveries.c.person_id == new.person_id,
    )
    if (await connection.execute(waiting)).scalar_one() >= RELAYS_OPEN:
        raise Problem(
            429,
            "device_queue_full",
            f"{RELAYS_OPEN} requests of yours wait for this device; try again once it has taken "
            "some",
            headers={"retry-after": "60"},
        )


def pause_after(attempts: int) -> int:
    """Milliseconds to wait for an acknowledgement after so many attempts."""
    seconds = DELIVERY_RETRY_SECONDS * 2 ** min(attempts - 1, 10)
    return math.floor(min(seconds, DELIVERY_RETRY_SECONDS_MOST) * MILLISECONDS)


def may_send() -> ColumnElement[bool]:
    """The condition on a row of `deliveries` that whoever it is from may still do what it does: of
    a decision that takes several people, everybody whose vote it counts.
    """
    same, vote = deliveries.alias("same"), approval_votes.c
    is_vote_void = (
        select(vote.person_id)
        .join(same, same.c.subject_id == vote.approval_id)
        .where(
            same.c.position == deliveries.c.position,
            vote.counted_in == same.c.delivery_id,
            not_(_has_right(vote.person_id, same)),
        )
        .correlate(deliveries)
        .exists()
    )
    is_allowed = and_(_has_right(deliveries.c.person_id, deliveries), not_(is_vote_void))
    return or_(deliveries.c.needed_role.is_(None), is_allowed)


def _has_right(person_id: ColumnElement[str], queue: FromClause) -> ColumnElement[bool]:
    """That somebody is active and may do what a row of the queue needs."""
    row = queue.c
    edge_id = (
        select(devices.c.edge_id)
        .where(devices.c.device_id == row.device_id)
        .correlate(queue)
        .scalar_subquery()
    )
    is_active = (
        exists()
        .where(
            people.c.person_id == person_id,
            people.c.disabled_at.is_(None),
            or_(row.needed_role == "viewer", people.c.role != "viewer"),
        )
        .correlate_except(people)
    )
    is_allowed = may_access(
        person_id, row.needed_role, edge_id, thread_id=row.thread_id, target_id=row.target_id
    )
    return and_(is_active, is_allowed)


async def find_due(connection: AsyncConnection, device_id: str, now: int) -> list[RowMapping]:
    """What a device is to be sent now, in order. Tasks that it has no room for hold up further
    tasks, and nothing else.
    """
    is_open = (
        deliveries.c.device_id == device_id,
        deliveries.c.state.in_(OPEN_STATES),
        may_send(),
    )
    first_tasks = (
        select(deliveries.c.position)
        .where(*is_open, deliveries.c.kind == "dispatch")
        .order_by(deliveries.c.position)
        .limit(DISPATCHES_IN_FLIGHT)
    )
    query = (
        select(deliveries)
        .where(
            *is_open,
            deliveries.c.next_at <= now,
            or_(deliveries.c.kind != "dispatch", deliveries.c.position.in_(first_tasks)),
        )
        .order_by(deliveries.c.position)
        .limit(DELIVERIES_AT_ONCE)
    )
    return list((await connection.execute(query)).mappings())


async def find_next_time(connection: AsyncConnection, device_ids: list[str]) -> int | None:
    """When one of some devices is to be sent something again."""
    query = select(func.min(deliveries.c.next_at)).where(
        deliveries.c.device_id.in_(device_ids), deliveries.c.state.in_(OPEN_STATES)
    )
    return (await connection.execute(query)).scalar_one()


async def note_sending(
    connection: AsyncConnection, due: list[RowMapping], now: int
) -> list[RowMapping]:
    """Write down that deliveries are about to be sent; those that may be: not one that was given up
    or acknowledged meanwhile, nor one that was sent often enough.
    """
    fresh = [row for row in due if row["attempts"] < DELIVERY_ATTEMPTS]
    if not fresh:
        return []
    change = (
        update(deliveries)
        .where(
            deliveries.c.position == bindparam("of_position"),
            deliveries.c.state.in_(OPEN_STATES),
        )
        .values(
            state="sent",
            attempts=deliveries.c.attempts + 1,
            sent_at=now,
            next_at=bindparam("of_time"),
        )
    )
    noted: list[RowMapping] = []
    for row in fresh:
        values = {
            "of_position": row["position"],
            "of_time": now + pause_after(row["attempts"] + 1),
        }
        if (await connection.execute(change, values)).rowcount == 1:
            noted.append(row)
    return noted


async def defer_delivery(connection: AsyncConnection, row: RowMapping) -> None:
    """A device has answered that it will do something later: it is sent again, and does not become
    a dead letter for that.
    """
    await connection.execute(
        update(deliveries)
        .where(deliveries.c.position == row["position"], deliveries.c.attempts >= DELIVERY_ATTEMPTS)
        .values(attempts=DELIVERY_ATTEMPTS - 1)
    )


async def retry_dispatches(connection: AsyncConnection, device_id: str, now: int) -> None:
    """A device has room for a task again: send those that wait at once."""
    await connection.execute(
        update(deliveries)
        .where(
            deliveries.c.device_id == device_id,
            deliveries.c.state.in_(OPEN_STATES),
            deliveries.c.kind == "dispatch",
        )
        .values(next_at=now)
    )


async def retry_now(connection: AsyncConnection, device_id: str, now: int) -> None:
    """A device is back: send whatever it has not acknowledged at once. What was sent on a socket
    that is gone says nothing of how the device answers, so that a link that is cut again and again
    makes no dead letter; but what was sent once stays so, because it may have been heard.
    """
    once = case((deliveries.c.attempts > 1, 1), else_=deliveries.c.attempts)
    await connection.execute(
        update(deliveries)
        .where(deliveries.c.device_id == device_id, deliveries.c.state.in_(OPEN_STATES))
        .values(next_at=now, attempts=once)
    )


async def requeue_stops(
    connection: AsyncConnection, now: int, condition: ColumnElement[bool]
) -> None:
    """Send what stops tasks again after it became a dead letter: a task must not go on because its
    device was deaf for a while, and stopping it twice is stopping it once.
    """
    await connection.execute(
        update(deliveries)
        .where(condition, deliveries.c.state == "dead", deliveries.c.kind.in_(STOPS))
        .values(**_SENT_AGAIN, next_at=now)
    )


_SENT_AGAIN: Final[dict[str, Any]] = {
    "state": "pending",
    # It was sent before, and may have been heard.
    "attempts": 1,
    "ended_at": None,
    "code": None,
}


async def move_delivery(
    connection: AsyncConnection, row: RowMapping, device_id: str, now: int
) -> None:
    """Queue a delivery for the device that has replaced its own. It is the same Edge, which knows
    by the id whether it had the delivery before.
    """
    payload: str = row["payload"]
    if row["kind"] == "control":
        control = msgspec.json.decode(payload, type=AgentControl)
        moved = msgspec.structs.replace(control, edge_device_id=device_id)
        payload = msgspec.json.encode(moved).decode()
    await connection.execute(
        update(deliveries)
        .where(deliveries.c.position == row["position"])
        .values(**_SENT_AGAIN, next_at=now, device_id=device_id, payload=payload)
    )


async def find_delivery(
    connection: AsyncConnection, delivery_id: str, device_id: str
) -> RowMapping | None:
    """A delivery that a device may answer: its own, or of a device that it has replaced."""
    query = select(deliveries).where(
        deliveries.c.delivery_id == delivery_id, is_of_edge(deliveries.c.device_id, device_id)
    )
    return (await connection.execute(query)).mappings().first()


async def has_stop(connection: AsyncConnection, task_id: str) -> bool:
    """Whether the device of a task has been told to stop it, or will be."""
    query = select(deliveries.c.position).where(
        deliveries.c.task_id == task_id,
        deliveries.c.kind.in_(STOPS),
        deliveries.c.state.in_((*OPEN_STATES, "dead", "acked")),
    )
    return (await connection.execute(query.limit(1))).first() is not None


async def end_delivery(
    connection: AsyncConnection,
    row: RowMapping,
    state: DeliveryState,
    now: int,
    *,
    code: str | None = None,
    answer: Any = None,
    content: bytes | None = None,
) -> None:
    """Note what became of a delivery; what a person wrote in a relayed request is not kept, unless
    it can be sent again.
    """
    values: dict[str, Any] = {"state": state, "ended_at": now, "code": code}
    if answer is not None:
        values["answer"] = msgspec.json.encode(answer).decode()
    if content is not None:
        values["content"] = content
    if row["kind"] == "relay" and state != "dead":
        values["payload"] = "{}"
    await connection.execute(
        update(deliveries).where(deliveries.c.position == row["position"]).values(values)
    )


async def retry_delivery(change: HubChange, row: RowMapping) -> RowMapping:
    """Send a dead letter again, for as long as it was to last at first."""
    lasts = row["expires_at"] - row["created_at"]
    again = (
        update(deliveries)
        .where(deliveries.c.position == row["position"])
        .values(
            **_SENT_AGAIN,
            next_at=change.now,
            expires_at=max(row["expires_at"], change.now + lasts),
        )
        .returning(deliveries)
    )
    return (await change.connection.execute(again)).mappings().one()


async def withdraw_dispatch(connection: AsyncConnection, task_id: str, now: int) -> bool:
    """Give up the dispatch of a task; whether its device never heard of it."""
    query = select(deliveries).where(
        deliveries.c.task_id == task_id, deliveries.c.kind == "dispatch"
    )
    row = (await connection.execute(query.with_for_update())).mappings().one()
    if row["state"] in (*OPEN_STATES, "dead"):
        await end_delivery(connection, row, "expired", now, code="withdrawn")
    return row["attempts"] == 0
