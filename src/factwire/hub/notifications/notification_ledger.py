"""Notifications and their ledger: what was to be sent where, what was tried, what came of it.

A notification and all its deliveries are written in the transaction of what it is about. A delivery
is `delivered` only once the other side has acknowledged it; a screen does that when the person has
seen the notification. `claim_deliveries` hands out what is due to one process at a time, and counts
the attempt before it is made: whatever a crash leaves in hand is tried again, and the ledger says
so. A title and ids are all that travels.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import and_, func, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.frames.frame_types import NotificationNew, NotificationUpdated
from factwire.hub.limits import (
    FALLBACK_SECONDS,
    NOTIFICATION_ATTEMPTS,
    NOTIFICATION_CLAIM_SECONDS,
    NOTIFICATION_PAUSE_SECONDS,
    NOTIFICATION_PAUSE_SECONDS_MOST,
    NOTIFICATION_SECONDS,
    NOTIFICATION_TITLE_CHARACTERS,
    NOTIFICATIONS_AT_ONCE,
)
from factwire.hub.notifications.notification_resources import (
    CurrentPage,
    HubNotification,
    LedgerEntry,
    NotificationWithLedger,
)
from factwire.hub.notifications.notification_settings import (
    CHANNELS,
    NOTIFICATION_KINDS,
    QUIET_CHANNELS,
    find_quiet_end,
    read_settings,
    use_of_channel,
)
from factwire.hub.people.accounts import new_id
from factwire.hub.records.hub_tables import people, sessions
from factwire.hub.records.notification_tables import (
    Channel,
    notification_deliveries,
    notification_targets,
    notifications,
)
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time
from factwire.serving.asgi import Problem

_MILLISECONDS: Final = 1_000
_deliveries: Final = notification_deliveries.c
_OPEN: Final = ("queued", "tried")
_UNSETTLED: Final = or_(
    _deliveries.state == "queued",
    and_(_deliveries.channel == "socket", _deliveries.state == "tried"),
)
"""What waits: for its time, or for a screen that was sent it to acknowledge. Any other attempt is
settled by whoever makes it."""


class NewNotification(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is to be told. `payload` has ids alone; `subject_id` is what it is about, so
    that it can be closed with that.
    """

    kind: str
    title: str
    payload: dict[str, str]
    subject_id: str | None = None
    expires_at: int | None = None


class DueDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that is to be tried now, by whoever claimed it until `claimed_until`."""

    delivery_id: str
    notification_id: str
    person_id: str
    channel: Channel
    target_id: str
    attempts: int
    claimed_until: int
    kind: str
    title: str
    payload: dict[str, str]
    expires_at: int


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt: an acknowledgement, or a code for why there is none, and whether
    trying again may help; `retry_after` is when the other side said to.
    """

    code: str | None = None
    is_final: bool = False
    retry_after: int | None = None


async def notify(change: HubChange, person_id: str, new: NewNotification) -> str:
    """Tell a person something, by every channel that they use for it; returns its id."""
    now, notification_id = change.now, new_id("ntf")
    latest = now + NOTIFICATION_SECONDS * _MILLISECONDS
    expires = latest if new.expires_at is None else min(latest, new.expires_at)
    printable = "".join(filter(str.isprintable, new.title))
    title = printable[:NOTIFICATION_TITLE_CHARACTERS]
    await change.connection.execute(
        insert(notifications).values(
            notification_id=notification_id,
            person_id=person_id,
            kind=new.kind,
            title=title,
            payload=msgspec.json.encode(new.payload).decode(),
            subject_id=new.subject_id,
            created_at=now,
            expires_at=expires,
        )
    )
    await _queue_deliveries(change, person_id, notification_id, new.kind, expires)
    change.tell(
        person_id,
        "notification.new",
        NotificationNew(
            notification_id=notification_id,
            type=new.kind,
            payload=dict(new.payload),
            title=title,
            created_at=format_time(now),
            expires_at=format_time(expires),
        ),
    )
    return notification_id


async def _queue_deliveries(
    change: HubChange, person_id: str, notification_id: str, kind: str, expires: int
) -> None:
    connection, now = change.connection, change.now
    settings = await read_settings(connection, person_id)
    targets = await _find_usable_targets(connection, person_id, now)
    # A screen has until the end; then nobody has acknowledged.
    rows = [_to_delivery(notification_id, "socket", None, now, due_at=expires)]
    fallbacks = 0
    for channel in CHANNELS:
        use = use_of_channel(settings, kind, channel)
        found = targets.get(channel, [])
        if use == "off" or not found:
            continue
        fallbacks += use == "fallback"
        wait = fallbacks * FALLBACK_SECONDS * _MILLISECONDS if use == "fallback" else 0
        rows += [
            _to_delivery(
                notification_id,
                channel,
                target,
                now,
                due_at=now + wait,
                is_fallback=use == "fallback",
            )
            for target in found
        ]
    await connection.execute(insert(notification_deliveries), rows)


def _to_delivery(
    notification_id: str,
    channel: Channel,
    target_id: str | None,
    now: int,
    *,
    due_at: int | None,
    is_fallback: bool = False,
) -> dict[str, Any]:
    return {
        "delivery_id": new_id("ndl"),
        "notification_id": notification_id,
        "channel": channel,
        "target_id": target_id,
        "state": "queued",
        "is_fallback": is_fallback,
        "attempts": 0,
        "created_at": now,
        "due_at": due_at,
    }


async def _find_usable_targets(
    connection: AsyncConnection, person_id: str, now: int
) -> dict[str, list[str]]:
    """Where a person can be reached, by channel; not a browser that is signed out."""
    targets = notification_targets.c
    signed_in = and_(sessions.c.ended_at.is_(None), sessions.c.expires_at > now)
    query = (
        select(targets.channel, targets.target_id)
        .outerjoin(sessions, sessions.c.session_id == targets.session_id)
        .where(
            targets.person_id == person_id,
            targets.confirmed_at.is_not(None),
            or_(targets.session_id.is_(None), signed_in),
        )
        .order_by(targets.created_at, targets.target_id)
    )
    found: dict[str, list[str]] = {}
    for channel, target_id in (await connection.execute(query)).all():
        found.setdefault(channel, []).append(target_id)
    return found


async def close_notifications(change: HubChange, subject_id: str) -> None:
    """Say that there is nothing left to do about a subject: what was not sent yet is not needed."""
    query = select(notifications).where(
        notifications.c.subject_id == subject_id, notifications.c.closed_at.is_(None)
    )
    for row in (await change.connection.execute(query)).mappings().all():
        await change.connection.execute(
            update(notifications)
            .where(notifications.c.notification_id == row["notification_id"])
            .values(closed_at=change.now)
        )
        await change.connection.execute(
            update(notification_deliveries)
            .where(_deliveries.notification_id == row["notification_id"], _UNSETTLED)
            .values(state="not_needed", due_at=None, ended_at=change.now)
        )
        _tell_update(change, {**row, "closed_at": change.now})


def _tell_update(change: HubChange, row: Mapping[str, Any]) -> None:
    change.tell(
        row["person_id"],
        "notification.updated",
        NotificationUpdated(
            notification_id=row["notification_id"],
            seen_at=format_optional_time(row["seen_at"]),
            opened_at=format_optional_time(row["opened_at"]),
            closed_at=format_optional_time(row["closed_at"]),
        ),
    )


def to_notification(row: RowMapping) -> HubNotification:
    return HubNotification(
        notification_id=row["notification_id"],
        type=row["kind"],
        title=row["title"],
        payload=msgspec.json.decode(row["payload"]),
        created_at=format_time(row["created_at"]),
        expires_at=format_time(row["expires_at"]),
        seen_at=format_optional_time(row["seen_at"]),
        opened_at=format_optional_time(row["opened_at"]),
        closed_at=format_optional_time(row["closed_at"]),
    )


async def list_notifications(
    connection: AsyncConnection, person_id: str, cursor: str | None, limit: int
) -> CurrentPage[HubNotification]:
    """A person's notifications, newest first."""
    as_of = await read_cursor(connection)
    query = select(notifications).where(notifications.c.person_id == person_id)
    by = (notifications.c.created_at, notifications.c.notification_id)
    rows, following = await fetch_page(connection, query, by, cursor, limit)
    return CurrentPage(items=[to_notification(row) for row in rows], next=following, as_of=as_of)


async def read_notification(
    connection: AsyncConnection, person_id: str, notification_id: str
) -> NotificationWithLedger:
    """A notification of a person with its ledger; raises `Problem`."""
    row = await _find_notification(connection, person_id, notification_id)
    query = (
        select(notification_deliveries)
        .where(_deliveries.notification_id == notification_id)
        .order_by(_deliveries.created_at, _deliveries.delivery_id)
    )
    ledger = [_to_entry(each) for each in (await connection.execute(query)).mappings()]
    shown = msgspec.structs.asdict(to_notification(row))
    return NotificationWithLedger(**shown, ledger=ledger, as_of=await read_cursor(connection))


def _to_entry(row: RowMapping) -> LedgerEntry:
    is_waiting = row["state"] == "queued" and row["channel"] != "socket"
    return LedgerEntry(
        delivery_id=row["delivery_id"],
        channel=row["channel"],
        state=row["state"],
        attempts=row["attempts"],
        target_id=row["target_id"],
        tried_at=format_optional_time(row["tried_at"]),
        next_try_at=format_optional_time(row["due_at"] if is_waiting else None),
        delivered_at=format_optional_time(row["delivered_at"]),
        opened_at=format_optional_time(row["opened_at"]),
        ended_at=format_optional_time(row["ended_at"]),
        code=row["code"],
    )


async def _find_notification(
    connection: AsyncConnection, person_id: str, notification_id: str
) -> RowMapping:
    query = select(notifications).where(
        notifications.c.notification_id == notification_id, notifications.c.person_id == person_id
    )
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise Problem(404, "unknown_notification", "none of your notifications has this id")
    return row


class Acknowledger(msgspec.Struct, frozen=True, kw_only=True):
    """The screen of a person that acknowledges, and the channel by which they came to it."""

    person_id: str
    session_id: str
    channel: Channel


async def acknowledge(
    change: HubChange, who: Acknowledger, notification_id: str, *, opened: bool
) -> HubNotification:
    """Note that a person saw a notification, or opened it; the first time of each counts. Raises
    `Problem`.
    """
    connection, now = change.connection, change.now
    row = dict(await _find_notification(connection, who.person_id, notification_id))
    before = row["seen_at"], row["opened_at"]
    row["seen_at"] = row["seen_at"] or now
    row["opened_at"] = row["opened_at"] or (now if opened else None)
    if (row["seen_at"], row["opened_at"]) != before:
        await connection.execute(
            update(notifications)
            .where(notifications.c.notification_id == notification_id)
            .values(seen_at=row["seen_at"], opened_at=row["opened_at"])
        )
        _tell_update(change, row)
    if who.channel == "socket":
        await _acknowledge_screen(connection, who.session_id, notification_id, now, opened=opened)
    elif opened:
        await _acknowledge_target(connection, who, notification_id, now)
    await connection.execute(
        update(notification_deliveries)
        .where(
            _deliveries.notification_id == notification_id,
            _UNSETTLED,
        )
        .values(state="not_needed", due_at=None, ended_at=now)
    )
    return to_notification(row)  # pyright: ignore[reportArgumentType] - the same members


async def _acknowledge_screen(
    connection: AsyncConnection, session_id: str, notification_id: str, now: int, *, opened: bool
) -> None:
    """One row of the ledger for each screen that acknowledged; the first takes the one that
    waits.
    """
    of_screens = and_(
        _deliveries.notification_id == notification_id, _deliveries.channel == "socket"
    )
    query = select(notification_deliveries).where(of_screens)
    rows = (await connection.execute(query)).mappings().all()
    own = next((row for row in rows if row["target_id"] == session_id), None)
    free = own or next((row for row in rows if row["target_id"] is None), None)
    values: dict[str, Any] = {
        "target_id": session_id,
        "state": "opened" if opened or (own and own["opened_at"]) else "delivered",
        "delivered_at": (own and own["delivered_at"]) or now,
        "opened_at": (own and own["opened_at"]) or (now if opened else None),
        "due_at": None,
        "ended_at": now,
    }
    if free is not None:
        change = update(notification_deliveries).where(
            _deliveries.delivery_id == free["delivery_id"]
        )
        await connection.execute(change.values(**values))
        return
    row = _to_delivery(notification_id, "socket", session_id, now, due_at=None)
    await connection.execute(insert(notification_deliveries).values(**{**row, **values}))


async def _acknowledge_target(
    connection: AsyncConnection, who: Acknowledger, notification_id: str, now: int
) -> None:
    """Note that what was sent by a channel was opened; of browsers, in the one that says so."""
    targets = select(notification_targets.c.target_id).where(
        notification_targets.c.person_id == who.person_id,
        or_(
            notification_targets.c.session_id.is_(None),
            notification_targets.c.session_id == who.session_id,
        ),
    )
    await connection.execute(
        update(notification_deliveries)
        .where(
            _deliveries.notification_id == notification_id,
            _deliveries.channel == who.channel,
            _deliveries.target_id.in_(targets),
            _deliveries.state.in_(("tried", "delivered")),
        )
        .values(
            state="opened",
            opened_at=now,
            delivered_at=func.coalesce(_deliveries.delivered_at, now),
            due_at=None,
            ended_at=now,
        )
    )


async def note_screens(connection: AsyncConnection, people: Collection[str], now: int) -> None:
    """Count the attempt for what the open screens of some people are sent; they have until the end
    to acknowledge it.
    """
    if not people:
        return
    theirs = select(notifications.c.notification_id).where(
        notifications.c.person_id.in_(people),
        notifications.c.expires_at > now,
        # Nothing of any other waits; so it costs nothing how many they have had.
        notifications.c.seen_at.is_(None),
        notifications.c.closed_at.is_(None),
    )
    await connection.execute(
        update(notification_deliveries)
        .where(
            _deliveries.notification_id.in_(theirs),
            _deliveries.channel == "socket",
            _deliveries.state == "queued",
        )
        .values(state="tried", attempts=1, tried_at=now)
    )


async def claim_deliveries(connection: AsyncConnection, now: int) -> list[DueDelivery]:
    """Take in hand what is due, and settle what need not be sent; each attempt is counted here."""
    query = (
        select(notification_deliveries)
        .where(
            _deliveries.due_at <= now,
            or_(_deliveries.claimed_until.is_(None), _deliveries.claimed_until <= now),
        )
        .order_by(_deliveries.due_at, _deliveries.delivery_id)
        .limit(NOTIFICATIONS_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    due: list[DueDelivery] = []
    for row in (await connection.execute(query)).mappings().all():
        about = await _find_subject(connection, row["notification_id"])
        settled = await _settle_without_sending(connection, row, about, now)
        if settled is not None:
            change = update(notification_deliveries).where(
                _deliveries.delivery_id == row["delivery_id"]
            )
            await connection.execute(change.values(**settled))
            continue
        due.append(await _begin_attempt(connection, row, about, now))
    return due


async def _find_subject(connection: AsyncConnection, notification_id: str) -> RowMapping:
    query = (
        select(notifications, people.c.disabled_at)
        .join(people, people.c.person_id == notifications.c.person_id)
        .where(notifications.c.notification_id == notification_id)
    )
    return (await connection.execute(query)).mappings().one()


async def _settle_without_sending(
    connection: AsyncConnection, row: RowMapping, about: RowMapping, now: int
) -> dict[str, Any] | None:
    """What becomes of a delivery that is due, where it is not to be sent now."""
    ended: dict[str, Any] = {"due_at": None, "claimed_until": None, "ended_at": now}
    if about["closed_at"] or about["seen_at"] or about["disabled_at"]:
        return {"state": "not_needed", **ended}
    if about["expires_at"] <= now:
        return {"state": "expired", **ended}
    if row["channel"] in QUIET_CHANNELS:
        settings = await read_settings(connection, about["person_id"])
        later = find_quiet_end(settings.quiet_hours, about["kind"], now)
        if later is not None:
            return {"state": "queued", "due_at": later, "claimed_until": None}
    return None


async def _begin_attempt(
    connection: AsyncConnection, row: RowMapping, about: RowMapping, now: int
) -> DueDelivery:
    until = now + NOTIFICATION_CLAIM_SECONDS * _MILLISECONDS
    attempts = row["attempts"] + 1
    await connection.execute(
        update(notification_deliveries)
        .where(_deliveries.delivery_id == row["delivery_id"])
        .values(
            state="tried",
            attempts=attempts,
            tried_at=now,
            claimed_until=until,
            # Where the process dies now, another one tries it.
            due_at=until,
        )
    )
    if row["is_fallback"]:
        await connection.execute(
            update(notification_deliveries)
            .where(
                _deliveries.notification_id == row["notification_id"],
                _deliveries.channel == "socket",
                _UNSETTLED,
            )
            .values(state="fell_back", due_at=None, ended_at=now)
        )
    return DueDelivery(
        delivery_id=row["delivery_id"],
        notification_id=row["notification_id"],
        person_id=about["person_id"],
        channel=row["channel"],
        target_id=row["target_id"],
        attempts=attempts,
        claimed_until=until,
        kind=about["kind"],
        title=about["title"],
        payload=msgspec.json.decode(about["payload"]),
        expires_at=about["expires_at"],
    )


async def settle_delivery(
    connection: AsyncConnection, delivery: DueDelivery, outcome: DeliveryOutcome, now: int
) -> bool:
    """Write down what came of an attempt; false where it is in other hands by now."""
    values: dict[str, Any] = {"claimed_until": None, "code": outcome.code}
    is_final = outcome.is_final or delivery.attempts >= NOTIFICATION_ATTEMPTS
    if outcome.code is None:
        values |= {"state": "delivered", "delivered_at": now, "due_at": None, "ended_at": now}
    elif is_final:
        values |= {"state": "failed", "due_at": None, "ended_at": now}
    else:
        values |= {"state": "queued", "due_at": now + pause_before_retry(delivery, outcome)}
    change = update(notification_deliveries).where(
        _deliveries.delivery_id == delivery.delivery_id,
        _deliveries.state == "tried",
        _deliveries.claimed_until == delivery.claimed_until,
    )
    is_ours = (await connection.execute(change.values(**values))).rowcount == 1
    if is_ours and outcome.code is not None and is_final:
        await _start_fallback(connection, delivery.notification_id, now)
    return is_ours


def pause_before_retry(delivery: DueDelivery, outcome: DeliveryOutcome) -> int:
    """Milliseconds until the next attempt: what the other side asked for, or ever more."""
    doubled = NOTIFICATION_PAUSE_SECONDS * 2 ** (delivery.attempts - 1)
    wanted = max(doubled, outcome.retry_after or 0)
    return min(wanted, NOTIFICATION_PAUSE_SECONDS_MOST) * _MILLISECONDS


async def _start_fallback(connection: AsyncConnection, notification_id: str, now: int) -> None:
    """Where every other channel has failed, use the next one at once."""
    query = (
        select(_deliveries.state, _deliveries.is_fallback, _deliveries.channel)
        .where(_deliveries.notification_id == notification_id, _deliveries.channel != "socket")
        .order_by(_deliveries.due_at)
    )
    rows = (await connection.execute(query)).all()
    if any(state in (*_OPEN, "delivered") and not later for state, later, _ in rows):
        return
    waiting = [channel for state, later, channel in rows if later and state == "queued"]
    if waiting:
        await connection.execute(
            update(notification_deliveries)
            .where(
                _deliveries.notification_id == notification_id,
                _deliveries.channel == waiting[0],
                _deliveries.state == "queued",
                _deliveries.due_at > now,
            )
            .values(due_at=now)
        )


async def count_deliveries(connection: AsyncConnection) -> dict[tuple[str, str], int]:
    """How many deliveries there are, by channel and state."""
    query = select(_deliveries.channel, _deliveries.state, func.count()).group_by(
        _deliveries.channel, _deliveries.state
    )
    return {(channel, state): n for channel, state, n in (await connection.execute(query)).all()}


def urgency_of(kind: str) -> str:
    return NOTIFICATION_KINDS[kind].urgency
