"""Queries about approvals. They are an Edge's, whichever device it has joined as: whoever may see
the Edge now sees what its agents ask, and gets the events; another Edge's approval is not found.

`advance` is the only way from one state to another: it asks the table, writes the row and tells the
audience, in the caller's transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts import Person, to_person
from factwire.facts.resources import ApprovalScreen, ApprovalVote, GrantRole, HubApproval
from factwire.hub.approvals.approval_resources import to_wire
from factwire.hub.approvals.approval_states import (
    ENDED,
    EXPIRING,
    LOST,
    STATE_TIMES,
    WAITING,
    ApprovalStep,
    can_decide,
    find_next_state,
    is_lost,
    is_overdue,
)
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.frames.frame_types import ApprovalUpdated
from factwire.hub.notifications.notification_ledger import close_notifications
from factwire.hub.notifications.notification_resources import CurrentPage
from factwire.hub.people.devices import find_device_audiences
from factwire.hub.records.approval_tables import (
    approval_screens,
    approval_votes,
    approvals,
    edge_rules,
)
from factwire.hub.records.device_tables import devices, edges
from factwire.hub.records.grant_records import NeededRight, list_holders, may_access
from factwire.hub.records.link_tables import agent_tasks, execution_targets
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time
from factwire.serving.asgi import Problem

_Id = ColumnElement[str] | str

ApprovalRow = dict[str, Any]
"""The row of an approval, by columns."""

_columns: Final = approvals.c


def _select_target(edge_id: _Id, run_id: _Id | None) -> Select[Any]:
    """The target of the task by which an Edge does a run."""
    of = devices.alias("of_task")
    return (
        select(agent_tasks.c.target_id)
        .join(of, of.c.device_id == agent_tasks.c.device_id)
        .where(agent_tasks.c.edge_run_id == run_id, of.c.edge_id == edge_id)
        .limit(1)
    )


def _is_visible(person_id: str) -> ColumnElement[bool]:
    """Whether somebody may see the Edge that asked, or the thread or target about which it did."""
    target = _select_target(_columns.edge_id, _columns.run_id).correlate(approvals)
    return and_(
        _columns.removed_at.is_(None),
        may_access(
            person_id,
            "viewer",
            _columns.edge_id,
            thread_id=_columns.thread_id,
            target_id=target.scalar_subquery(),
        ),
    )


async def find_right(
    connection: AsyncConnection, row: Mapping[str, Any] | RowMapping, role: GrantRole
) -> NeededRight:
    """What somebody must be allowed to see an approval, or to decide it."""
    query = _select_target(row["edge_id"], row["run_id"])
    target_id: str | None = (await connection.execute(query)).scalar_one_or_none()
    return NeededRight(role=role, thread_id=row["thread_id"], target_id=target_id)


async def find_visible(
    connection: AsyncConnection, person_id: str, approval_id: str, *, lock: bool = False
) -> ApprovalRow:
    """An approval that a person may see; raises `Problem`."""
    query = select(approvals).where(_columns.approval_id == approval_id, _is_visible(person_id))
    if lock:
        query = query.with_for_update()
    row = await _fetch_one(connection, query)
    if row is None:
        raise unknown_approval()
    return row


async def find_visible_request(
    connection: AsyncConnection, person_id: str, edge_id: str, request_id: str
) -> ApprovalRow | None:
    """What was asked under an id of an Edge's, where a person may see it."""
    query = select(approvals).where(
        _columns.edge_id == edge_id, _columns.request_id == request_id, _is_visible(person_id)
    )
    return await _fetch_one(connection, query)


def unknown_approval() -> Problem:
    return Problem(404, "unknown_approval", "no approval that you may see has this id")


async def _fetch_one(connection: AsyncConnection, query: Select[Any]) -> ApprovalRow | None:
    row = (await connection.execute(query)).mappings().one_or_none()
    return None if row is None else {column.name: row[column.name] for column in _columns}


async def find_by_delivery(connection: AsyncConnection, delivery_id: str) -> ApprovalRow | None:
    query = select(approvals).where(_columns.delivery_id == delivery_id).with_for_update()
    return await _fetch_one(connection, query)


async def find_by_request(
    connection: AsyncConnection, edge_id: str, request_id: str
) -> ApprovalRow | None:
    query = (
        select(approvals)
        .where(_columns.edge_id == edge_id, _columns.request_id == request_id)
        .with_for_update()
    )
    return await _fetch_one(connection, query)


async def find_by_id(connection: AsyncConnection, approval_id: str) -> ApprovalRow | None:
    query = select(approvals).where(_columns.approval_id == approval_id).with_for_update()
    return await _fetch_one(connection, query)


def select_open_overdue(now: int) -> Select[Any]:
    """Approvals that nobody has decided in time, or whose decision is still on its way."""
    return select(approvals).where(_columns.state.in_(EXPIRING), _columns.expires_at <= now)


def select_lost_overdue(now: int) -> Select[Any]:
    """Approvals whose decision was lost, and that nobody has decided again in time."""
    return select(approvals).where(_columns.code.in_(tuple(LOST)), _columns.expires_at <= now)


async def list_approvals(
    connection: AsyncConnection,
    person_id: str,
    cursor: str | None,
    limit: int,
    *,
    waiting: bool,
) -> CurrentPage[HubApproval]:
    """What a person may see, newest first; all, or what waits for a decision of an Edge that can be
    sent one.
    """
    as_of = await read_cursor(connection)
    query = select(approvals).where(_is_visible(person_id))
    if waiting:
        lost = [
            and_(_columns.state == state, _columns.code == code) for code, state in LOST.items()
        ]
        joined = exists().where(
            edges.c.edge_id == _columns.edge_id,
            devices.c.device_id == edges.c.device_id,
            devices.c.revoked_at.is_(None),
        )
        query = query.where(or_(_columns.state.in_(WAITING), *lost), joined)
    by = (_columns.asked_at, _columns.approval_id)
    rows, following = await fetch_page(connection, query, by, cursor, limit)
    items = await read_whole(connection, [dict(row) for row in rows])
    return CurrentPage(items=items, next=following, as_of=as_of)


async def read_whole(connection: AsyncConnection, rows: Sequence[ApprovalRow]) -> list[HubApproval]:
    """Approvals with their votes and screens."""
    ids = [row["approval_id"] for row in rows]
    votes = await _group_rows(connection, approval_votes, ids, approval_votes.c.at)
    screens = await _group_rows(connection, approval_screens, ids, approval_screens.c.delivered_at)
    return [
        to_approval(row, votes.get(row["approval_id"], []), screens.get(row["approval_id"], []))
        for row in rows
    ]


async def _group_rows(
    connection: AsyncConnection, table: Any, ids: list[str], order: Any
) -> dict[str, list[RowMapping]]:
    query = (
        select(table)
        .where(table.c.approval_id.in_(ids))
        .order_by(order, *table.primary_key.columns)
    )
    found: dict[str, list[RowMapping]] = {}
    for row in (await connection.execute(query)).mappings():
        found.setdefault(row["approval_id"], []).append(row)
    return found


_TIMES: Final = tuple(
    f"{name}_at" for name in ("expires", "delivered", "seen", "decided", "sent", "applied", "ended")
)
_SAME: Final = (
    *("approval_id", "device_id", "edge_id", "request_id", "state", "kind", "risk_level"),
    *("args_hash", "required", "thread_id", "run_id", "tool_name", "summary", "decision"),
    *("reason", "code"),
)
"""Columns that are shown as they are."""


def to_approval(
    row: ApprovalRow, votes: Sequence[RowMapping], screens: Sequence[RowMapping]
) -> HubApproval:
    decided_by = row["decided_by"]
    same: dict[str, Any] = {name: row[name] for name in _SAME}
    times: dict[str, Any] = {name: format_optional_time(row[name]) for name in _TIMES}
    return HubApproval(
        **same,
        **times,
        asked_at=format_time(row["asked_at"]),
        decided_by=None if decided_by is None else to_person(msgspec.json.decode(decided_by)),
        votes=[
            ApprovalVote(
                person_id=vote["person_id"],
                decision=vote["decision"],
                session_id=vote["session_id"],
                at=format_time(vote["at"]),
                reason=vote["reason"],
            )
            for vote in votes
        ],
        screens=[
            ApprovalScreen(
                person_id=screen["person_id"],
                channel=screen["channel"],
                target_id=screen["target_id"],
                delivered_at=format_time(screen["delivered_at"]),
                seen_at=format_optional_time(screen["seen_at"]),
            )
            for screen in screens
        ],
    )


async def advance(
    change: HubChange, row: ApprovalRow, step: ApprovalStep, **values: Any
) -> ApprovalRow | None:
    """Take a step of an approval, if the table has it: the row as it is then, else None."""
    state = find_next_state(row["state"], step, row["code"])
    if state is None:
        return None
    if is_lost(row["state"], row["code"]) or is_overdue(row["state"], row["code"]):
        values = {"code": None, **values}
    moved = {**row, "state": state, **values}
    column = STATE_TIMES.get(state)
    if column is not None and moved[column] is None:
        moved[column] = change.now
    moved["ended_at"] = change.now if state in ENDED else None
    return await save(change, row, moved)


async def save(change: HubChange, row: ApprovalRow, moved: ApprovalRow) -> ApprovalRow:
    """Write what changed of an approval, and tell those who may see it."""
    values = {name: value for name, value in moved.items() if row[name] != value}
    if values:
        statement = update(approvals).where(_columns.approval_id == row["approval_id"])
        await change.connection.execute(statement.values(**values))
    if can_decide(row["state"], row["code"]) and not can_decide(moved["state"], moved["code"]):
        await close_notifications(change, row["approval_id"])
    await announce(change, moved)
    return moved


async def announce(change: HubChange, row: ApprovalRow) -> None:
    """Tell those who may see an approval how it is now."""
    whole = (await read_whole(change.connection, [row]))[0]
    update_frame = ApprovalUpdated(
        approval_id=whole.approval_id,
        device_id=whole.device_id,
        state=whole.state,
        approval=to_wire(whole),
    )
    query = (
        select(devices)
        .join(edges, edges.c.device_id == devices.c.device_id)
        .where(edges.c.edge_id == row["edge_id"])
    )
    device = (await change.connection.execute(query)).mappings().one()
    right = await find_right(change.connection, row, "viewer")
    for audience in await find_device_audiences(change.connection, device, right):
        change.emit(audience, "approval.updated", update_frame)


async def announce_run(change: HubChange, edge_id: str, run_id: str) -> None:
    """Publish how everything that a run has asked is now, to those who may see it."""
    query = select(approvals).where(
        _columns.edge_id == edge_id, _columns.run_id == run_id, _columns.removed_at.is_(None)
    )
    for row in (await change.connection.execute(query)).mappings().all():
        await announce(change, dict(row))


async def note_screen(
    change: HubChange,
    row: ApprovalRow,
    person_id: str,
    channel: str,
    target_id: str,
    *,
    seen: bool,
) -> None:
    """Note that an approval reached a screen, or was seen on it; the first time of each counts."""
    key = {
        "approval_id": row["approval_id"],
        "person_id": person_id,
        "channel": channel,
        "target_id": target_id,
    }
    conditions = [approval_screens.c[name] == value for name, value in key.items()]
    known = (
        (await change.connection.execute(select(approval_screens).where(*conditions)))
        .mappings()
        .one_or_none()
    )
    if known is not None and (known["seen_at"] is not None or not seen):
        return
    seen_at = change.now if seen else None
    if known is None:
        values = {**key, "delivered_at": change.now, "seen_at": seen_at}
        await change.connection.execute(insert(approval_screens).values(**values))
    else:
        seen_change = update(approval_screens).where(*conditions).values(seen_at=seen_at)
        await change.connection.execute(seen_change)
    delivered = await advance(change, row, "deliver")
    current = delivered or row
    if seen:
        values = {} if current["delivered_at"] else {"delivered_at": change.now}
        moved = await advance(change, current, "see", **values)
        delivered = moved or delivered
    if delivered is None:
        await announce(change, current)


async def find_rule(connection: AsyncConnection, edge_id: str) -> int:
    """How many people must allow what an Edge asks, by the rule of its owner."""
    query = select(edge_rules.c.required).where(edge_rules.c.edge_id == edge_id)
    return (await connection.execute(query)).scalar_one_or_none() or 1


def select_target_rule(edge_id: str, run_id: str) -> Select[Any]:
    """How many people must allow what a run of an Edge asks, by the target of its task."""
    return (
        select(execution_targets.c.approvals_required)
        .join(agent_tasks, agent_tasks.c.target_id == execution_targets.c.target_id)
        .join(devices, devices.c.device_id == agent_tasks.c.device_id)
        .where(agent_tasks.c.edge_run_id == run_id, devices.c.edge_id == edge_id)
    )


async def find_required(
    connection: AsyncConnection, edge_id: str, run_id: str | None, least: int
) -> int:
    """How many people must allow what a run asks: the most that the Hub, the rule of the device and
    the target of its task ask for, so that no one of them undoes another.
    """
    rules = [least, await find_rule(connection, edge_id)]
    if run_id is not None:
        found = (await connection.execute(select_target_rule(edge_id, run_id))).scalars()
        rules += [each for each in found if each is not None]
    return max(rules)


async def find_deciders(
    connection: AsyncConnection, edge_id: str, thread_id: str | None, run_id: str | None
) -> frozenset[str]:
    """Who may decide what an Edge asks: its owner, and whom a grant for the device, the thread or
    the target of the run's task makes an approver or an operator.
    """
    place = {"edge_id": edge_id, "thread_id": thread_id, "run_id": run_id}
    return await list_holders(connection, edge_id, await find_right(connection, place, "approver"))


async def count_approvals(connection: AsyncConnection) -> dict[str, int]:
    """How many approvals there are in each state."""
    query = select(_columns.state, func.count()).group_by(_columns.state)
    return dict((await connection.execute(query)).all())


def encode_person(person: Person | None) -> str | None:
    return None if person is None else msgspec.json.encode(person).decode()
