"""What a Hub forgets, as one table of rules, each with the rows that it may take.

What expired for good goes at once; what has ended goes after the days of `hub.record_days`. Nothing
goes that somebody waits for: an open delivery, a dead letter, the deliveries of a task that is not
over, a notification that a channel is still to try, an approval that can be decided. What tells a
repeat from something new stays: tasks, for the keys of requests, and of an approval its ids, so
that facts that are read again ask nothing anew. The log of who did what stays, too.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Table, and_, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import TASK_ENDS
from factwire.hub.approvals.approval_states import LOST
from factwire.hub.limits import RECORD_RETENTION_SECONDS, RECORDS_REMOVED_AT_ONCE
from factwire.hub.records.approval_tables import approval_screens, approval_votes, approvals
from factwire.hub.records.device_tables import device_authorizations, pairings
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.hub.records.hub_tables import socket_tickets
from factwire.hub.records.link_tables import agent_tasks, deliveries
from factwire.hub.records.notification_tables import notification_deliveries, notifications
from factwire.hub.records.sign_in_tables import finished_ceremonies
from factwire.serving.logs import logger

_DAY: Final = 24 * 3_600_000
_log: Final = logger("factwire.hub.retention")


class RetentionRule(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a table that may go: `is_over` says which by now and by the time that ended things
    are kept since. Rows of `parts` go with them, by the key of the table. `clears` are columns to
    empty instead, where the row itself has to stay.
    """

    table: Table
    is_over: Callable[[int, int], ColumnElement[bool]]
    parts: tuple[Table, ...] = ()
    clears: tuple[str, ...] = ()


def _expires(table: Table) -> RetentionRule:
    return RetentionRule(table=table, is_over=lambda now, _: table.c.expires_at <= now)


def _is_delivery_over(_: int, since: int) -> ColumnElement[bool]:
    open_task = exists(
        select(agent_tasks.c.task_id).where(
            agent_tasks.c.task_id == deliveries.c.task_id, agent_tasks.c.status.not_in(TASK_ENDS)
        )
    )
    is_ended = deliveries.c.state.in_(("acked", "refused", "expired"))
    return and_(is_ended, deliveries.c.ended_at <= since, ~open_task)


def _is_notification_over(now: int, since: int) -> ColumnElement[bool]:
    is_due = exists(
        select(notification_deliveries.c.delivery_id).where(
            notification_deliveries.c.notification_id == notifications.c.notification_id,
            notification_deliveries.c.due_at.is_not(None),
        )
    )
    is_done = or_(notifications.c.closed_at.is_not(None), notifications.c.expires_at <= now)
    return and_(is_done, notifications.c.created_at <= since, ~is_due)


def _is_approval_over(_: int, since: int) -> ColumnElement[bool]:
    # One whose decision was lost can be decided again while its device asks.
    is_final = or_(approvals.c.code.is_(None), approvals.c.code.not_in(LOST))
    return and_(approvals.c.ended_at <= since, approvals.c.removed_at.is_(None), is_final)


RULES: Final[dict[str, RetentionRule]] = {
    "socket_tickets": _expires(socket_tickets),
    "pairings": _expires(pairings),
    "device_authorizations": _expires(device_authorizations),
    "finished_ceremonies": _expires(finished_ceremonies),
    "deliveries": RetentionRule(table=deliveries, is_over=_is_delivery_over),
    "notifications": RetentionRule(
        table=notifications, is_over=_is_notification_over, parts=(notification_deliveries,)
    ),
    "approvals": RetentionRule(
        table=approvals,
        is_over=_is_approval_over,
        parts=(approval_votes, approval_screens),
        clears=("summary", "shown", "reason", "decided_by"),
    ),
}
"""Table → what of it may go."""


async def remove_old_records(database: HubDatabase, now: int, days: float) -> dict[str, int]:
    """Take from every table what may go, at most so many rows of each; returns how many they were.
    Each table is a short transaction of its own, and none where there is nothing to take.
    """
    since, removed = now - math.floor(days * _DAY), dict[str, int]()
    for name, rule in RULES.items():
        (key,) = rule.table.primary_key.columns
        query = select(key).where(rule.is_over(now, since)).limit(RECORDS_REMOVED_AT_ONCE)
        async with database.read() as connection:
            keys = list((await connection.execute(query)).scalars())
        if keys:
            async with database.write() as connection:
                removed[name] = await _remove(connection, rule, key.in_(keys), now, since)
    return removed


async def _remove(
    connection: AsyncConnection,
    rule: RetentionRule,
    is_found: ColumnElement[bool],
    now: int,
    since: int,
) -> int:
    # What was found may have been taken up again since.
    (key,) = rule.table.primary_key.columns
    chosen = select(key).where(is_found, rule.is_over(now, since)).with_for_update()
    keys = list((await connection.execute(chosen)).scalars())
    for part in rule.parts:
        await connection.execute(delete(part).where(part.c[key.name].in_(keys)))
    values: dict[str, Any] = {"removed_at": now, **dict.fromkeys(rule.clears)}
    statement = update(rule.table).values(**values) if rule.clears else delete(rule.table)
    await connection.execute(statement.where(key.in_(keys)))
    return len(keys)


@asynccontextmanager
async def run_retention(
    database: HubDatabase, now: Callable[[], int], days: float
) -> AsyncGenerator[None]:
    """Remove what is old for as long as the block lasts."""
    task = asyncio.create_task(_remove_often(database, now, days), name="factwire-hub-retention")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _remove_often(database: HubDatabase, now: Callable[[], int], days: float) -> None:
    while True:
        removed: dict[str, int] = {}
        try:
            removed = await remove_old_records(database, now(), days)
        except RecordsUnavailable as error:
            _log.warning("records_not_removed", detail=str(error))
        if removed:
            _log.info("records_removed", **removed)
        if max(removed.values(), default=0) < RECORDS_REMOVED_AT_ONCE:
            await asyncio.sleep(RECORD_RETENTION_SECONDS)
