"""Queries about devices, the Edges they joined with, and what asks to join. A device is found for
those alone who may see it.
"""

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, delete, func, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import Device, MirrorPosition
from factwire.hub.device_resources import AuthorizationRequest, MirroredEdgeSummary
from factwire.hub.records.approval_tables import edge_rules
from factwire.hub.records.device_tables import (
    device_authorizations,
    devices,
    edges,
    grants,
    pairings,
)
from factwire.hub.records.grant_records import may_access, rank_of
from factwire.hub.records.hub_tables import sessions
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time


def _role_of(person_id: str, edge_id: ColumnElement[str]) -> ColumnElement[str | None]:
    """By which role somebody sees an Edge that is not their own."""
    shared = grants.alias("shared")
    return (
        select(shared.c.role)
        .where(
            shared.c.grantee_id == person_id,
            shared.c.edge_id == edge_id,
            shared.c.kind == "device",
            shared.c.revoked_at.is_(None),
        )
        .order_by(rank_of(shared.c.role))
        .limit(1)
        .scalar_subquery()
    )


def _select_devices(viewer: str) -> Select[Any]:
    role = _role_of(viewer, devices.c.edge_id).label("role")
    return (
        select(devices, edges.c.cursor, edges.c.uploaded_at, edges.c.device_id.label("now"), role)
        .join(edges, edges.c.edge_id == devices.c.edge_id)
        .where(devices.c.revoked_at.is_(None), may_access(viewer, "viewer", devices.c.edge_id))
    )


async def list_devices(
    connection: AsyncConnection, viewer: str, cursor: str | None, limit: int
) -> tuple[list[RowMapping], str | None]:
    """The devices that somebody may see and that are not revoked."""
    by = (devices.c.created_at, devices.c.device_id)
    return await fetch_page(connection, _select_devices(viewer), by, cursor, limit)


async def find_device(
    connection: AsyncConnection, viewer: str, device_id: str
) -> RowMapping | None:
    """A device that somebody may see, and that is not revoked."""
    query = _select_devices(viewer).where(devices.c.device_id == device_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def lock_own_device(
    connection: AsyncConnection, owner: str | None, device_id: str
) -> RowMapping | None:
    """A device of an owner that is not revoked; without an owner, anybody's, as on the Hub's own
    machine. Nobody else changes it until the transaction ends.
    """
    query = select(devices).where(devices.c.device_id == device_id, devices.c.revoked_at.is_(None))
    if owner is not None:
        query = query.where(devices.c.person_id == owner)
    return (await connection.execute(query.with_for_update())).mappings().one_or_none()


async def list_all_devices(
    connection: AsyncConnection, cursor: str | None, limit: int
) -> tuple[list[RowMapping], str | None]:
    """Everybody's devices, as on the Hub's own machine, the revoked ones too."""
    query = select(devices, edges.c.cursor, edges.c.uploaded_at, edges.c.device_id.label("now"))
    query = query.join(edges, edges.c.edge_id == devices.c.edge_id)
    by = (devices.c.created_at, devices.c.device_id)
    return await fetch_page(connection, query, by, cursor, limit)


async def list_own_devices(connection: AsyncConnection, owner: str) -> list[RowMapping]:
    """The devices of a person that are not revoked."""
    query = select(devices).where(devices.c.person_id == owner, devices.c.revoked_at.is_(None))
    return list((await connection.execute(query)).mappings())


async def find_device_edge(connection: AsyncConnection, device_id: str) -> str | None:
    """The Edge that a device uploads for, while it is not revoked or replaced."""
    query = (
        select(edges.c.edge_id)
        .join(devices, devices.c.device_id == edges.c.device_id)
        .where(devices.c.device_id == device_id, devices.c.revoked_at.is_(None))
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def find_current_device(
    connection: AsyncConnection, edge_id: ColumnElement[str] | str
) -> RowMapping | None:
    """The device that an Edge has joined as, unless that is revoked."""
    query = (
        select(devices)
        .join(edges, edges.c.device_id == devices.c.device_id)
        .where(edges.c.edge_id == edge_id, devices.c.revoked_at.is_(None))
    )
    return (await connection.execute(query)).mappings().one_or_none()


def select_edge_id(device_id: str) -> ColumnElement[str]:
    """The Edge of a device, for a condition of a query."""
    of = devices.alias("of").c
    return select(of.edge_id).where(of.device_id == device_id).scalar_subquery()


def is_of_edge(column: ColumnElement[str], device_id: str) -> ColumnElement[bool]:
    """That something is a device's own, or of a device that it has replaced: the same Edge joined
    as both, each time confirmed by its owner. A device that was replaced has its own alone.
    """
    former = devices.alias("former")
    replaced = (
        select(former.c.device_id)
        .join(edges, edges.c.edge_id == former.c.edge_id)
        .where(edges.c.edge_id == select_edge_id(device_id), edges.c.device_id == device_id)
    )
    return or_(column == device_id, column.in_(replaced))


async def find_edge(connection: AsyncConnection, edge_id: str) -> RowMapping | None:
    query = select(edges).where(edges.c.edge_id == edge_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def list_edges(
    connection: AsyncConnection, viewer: str, cursor: str | None, limit: int
) -> tuple[list[RowMapping], str | None]:
    """The Edges all of which somebody may read."""
    role = _role_of(viewer, edges.c.edge_id).label("role")
    query = (
        select(edges, devices.c.name, devices.c.online, role)
        .join(devices, devices.c.device_id == edges.c.device_id)
        .where(may_access(viewer, "viewer", edges.c.edge_id))
    )
    by = (edges.c.created_at, edges.c.edge_id)
    return await fetch_page(connection, query, by, cursor, limit)


async def bind_edge(
    connection: AsyncConnection, edge_id: str, owner: str, device_id: str, now: int
) -> None:
    """Make a device the one of an Edge, new or of the same owner; of two owners at once, the
    second gets SQLAlchemy's `IntegrityError`.
    """
    change = (
        update(edges)
        .where(edges.c.edge_id == edge_id, edges.c.person_id == owner)
        .values(device_id=device_id)
    )
    if (await connection.execute(change)).rowcount == 0:
        await connection.execute(
            insert(edges).values(
                edge_id=edge_id, person_id=owner, device_id=device_id, created_at=now
            )
        )


async def replace_edge(connection: AsyncConnection, former: str, edge_id: str) -> None:
    """Forget an Edge that no machine ever was; what was shared of it is shared of another, and what
    it must ask, another must.
    """
    await connection.execute(
        update(grants)
        .where(grants.c.edge_id == former, grants.c.kind == "device")
        .values(edge_id=edge_id, subject_id=edge_id)
    )
    await connection.execute(
        update(grants).where(grants.c.edge_id == former).values(edge_id=edge_id)
    )
    await connection.execute(
        update(edge_rules).where(edge_rules.c.edge_id == former).values(edge_id=edge_id)
    )
    await connection.execute(delete(edges).where(edges.c.edge_id == former))


async def end_device(connection: AsyncConnection, device: RowMapping, now: int) -> None:
    """Revoke a device, and end its session."""
    await connection.execute(
        update(devices)
        .where(devices.c.device_id == device["device_id"])
        .values(revoked_at=now, online=False)
    )
    await connection.execute(
        update(sessions)
        .where(sessions.c.session_id == device["session_id"], sessions.c.ended_at.is_(None))
        .values(ended_at=now)
    )


async def find_device_session(
    connection: AsyncConnection, device_id: str, digest: str, now: int
) -> RowMapping | None:
    """The device that a token belongs to, while its session is open."""
    query = (
        select(devices)
        .join(sessions, sessions.c.session_id == devices.c.session_id)
        .where(
            devices.c.device_id == device_id,
            devices.c.revoked_at.is_(None),
            sessions.c.token_digest == digest,
            sessions.c.ended_at.is_(None),
            sessions.c.expires_at > now,
        )
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def note_positions(
    connection: AsyncConnection, positions: dict[str, tuple[str, int]]
) -> None:
    """Write down how far mirrors are, by the ids of their Edges: a cursor, and when."""
    for edge_id, (cursor, at) in positions.items():
        await connection.execute(
            update(edges).where(edges.c.edge_id == edge_id).values(cursor=cursor, uploaded_at=at)
        )
        device = select(edges.c.device_id).where(edges.c.edge_id == edge_id).scalar_subquery()
        await connection.execute(
            update(devices)
            .where(devices.c.device_id == device, devices.c.last_seen_at < at)
            .values(last_seen_at=at)
        )


async def add_authorization(
    connection: AsyncConnection, now: int, most: int, **values: Any
) -> bool:
    """Note what asks to join, in the place of what asked before and is over; false where as many
    ask as may.
    """
    table = device_authorizations
    await connection.execute(delete(table).where(table.c.expires_at <= now))
    await connection.execute(delete(pairings).where(pairings.c.expires_at <= now))
    count = select(func.count()).select_from(table)
    if (await connection.execute(count)).scalar_one() >= most:
        return False
    await connection.execute(insert(table).values(created_at=now, **values))
    return True


async def find_asking(
    connection: AsyncConnection, code_digest: str, person_id: str, now: int, *, lock: bool = False
) -> RowMapping | None:
    """What asks under a code that somebody typed, as long as nobody else has decided about it."""
    table = device_authorizations
    query = select(table).where(
        table.c.user_code_digest == code_digest,
        table.c.expires_at > now,
        table.c.collected_at.is_(None),
        or_(table.c.person_id.is_(None), table.c.person_id == person_id),
    )
    query = query.with_for_update() if lock else query
    return (await connection.execute(query)).mappings().one_or_none()


async def lock_authorization(connection: AsyncConnection, digest: str) -> RowMapping | None:
    """What polls with a code; nobody else changes it until the transaction ends."""
    table = device_authorizations
    query = select(table).where(table.c.device_code_digest == digest).with_for_update()
    return (await connection.execute(query)).mappings().one_or_none()


async def change_authorization(connection: AsyncConnection, digest: str, **values: Any) -> None:
    table = device_authorizations
    change = update(table).where(table.c.device_code_digest == digest).values(**values)
    await connection.execute(change)


def _to_position(row: RowMapping) -> MirrorPosition | None:
    if row["cursor"] is None:
        return None
    return MirrorPosition(cursor=row["cursor"], uploaded_at=format_time(row["uploaded_at"]))


def to_device(row: RowMapping, viewer: str | None = None) -> Device:
    """A device as somebody sees it; the mirror is that of the device which joined last."""
    values: dict[str, Any] = {
        name: row[name]
        for name in ("device_id", "kind", "name", "edge_id", "platform", "version", "online")
    }
    own = viewer is None or row["person_id"] == viewer
    return Device(
        **values,
        owner_id=row["person_id"],
        agents=msgspec.json.decode(row["agents"]),
        created_at=format_time(row["created_at"]),
        last_seen_at=format_time(row["last_seen_at"]),
        role=None if own else row["role"],
        mirror=_to_position(row) if row["now"] == row["device_id"] else None,
        revoked_at=format_optional_time(row["revoked_at"]),
    )


def to_edge_summary(row: RowMapping, viewer: str) -> MirroredEdgeSummary:
    return MirroredEdgeSummary(
        edge_id=row["edge_id"],
        owner_id=row["person_id"],
        device_id=row["device_id"],
        device_name=row["name"],
        online=row["online"],
        created_at=format_time(row["created_at"]),
        role=None if row["person_id"] == viewer else row["role"],
        mirror=_to_position(row),
    )


def to_request(row: RowMapping, replaces: str | None = None) -> AuthorizationRequest:
    """What asks, as a person sees it before they decide."""
    values: dict[str, Any] = {
        name: row[name]
        for name in ("kind", "name", "platform", "version", "address", "user_agent", "decision")
    }
    return AuthorizationRequest(
        **values,
        edge_id=row["edge_id"] or None,
        agents=msgspec.json.decode(row["agents"]),
        created_at=format_time(row["created_at"]),
        expires_at=format_time(row["expires_at"]),
        replaces=replaces,
    )
