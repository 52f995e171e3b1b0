"""Queries about invitations and the audit log. An invitation belongs to who made it; one without
an owner was made on the Hub's own machine, and only there is it listed.
"""

from typing import Any

import msgspec
from sqlalchemy import insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import AuditEntry, HubPage, Invitation
from factwire.hub.records.hub_tables import audit_log, invitations
from factwire.hub.records.people_records import (
    Place,
    fetch_page,
    format_optional_time,
    format_place,
    format_time,
    parse_place,
)


class ActionOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Who does something, by what means, and from where."""

    actor_id: str | None = None
    via: str
    address: str
    user_agent: str = ""


def to_invitation(row: RowMapping) -> Invitation:
    return Invitation(
        invitation_id=row["invitation_id"],
        role=row["role"],
        created_at=format_time(row["created_at"]),
        expires_at=format_time(row["expires_at"]),
        max_uses=row["max_uses"],
        uses=row["uses"],
        created_by=row["created_by"],
        revoked_at=format_optional_time(row["revoked_at"]),
    )


async def add_invitation(connection: AsyncConnection, **values: Any) -> None:
    await connection.execute(insert(invitations).values(uses=0, **values))


async def replace_invitation(connection: AsyncConnection, **values: Any) -> None:
    """Put an invitation in the place of one with its id, whose link is void then."""
    change = (
        update(invitations)
        .where(invitations.c.invitation_id == values["invitation_id"])
        .values(uses=0, revoked_at=None, **values)
    )
    if (await connection.execute(change)).rowcount == 0:
        await add_invitation(connection, **values)


async def find_invitation(
    connection: AsyncConnection, invitation_id: str, owner: str | None
) -> RowMapping | None:
    """An invitation of an owner; without one, anybody's, as on the Hub's own machine."""
    query = select(invitations).where(invitations.c.invitation_id == invitation_id)
    if owner is not None:
        query = query.where(invitations.c.created_by == owner)
    return (await connection.execute(query)).mappings().one_or_none()


async def list_invitations(
    connection: AsyncConnection, owner: str | None, cursor: str | None, limit: int
) -> HubPage[Invitation]:
    query = select(invitations)
    if owner is not None:
        query = query.where(invitations.c.created_by == owner)
    by = (invitations.c.created_at, invitations.c.invitation_id)
    rows, following = await fetch_page(connection, query, by, cursor, limit)
    return HubPage(items=[to_invitation(row) for row in rows], next=following)


async def find_usable(connection: AsyncConnection, digest: str, now: int) -> RowMapping | None:
    """The invitation behind a link that still creates accounts."""
    query = select(invitations).where(*_is_usable(digest, now))
    return (await connection.execute(query)).mappings().one_or_none()


async def use_invitation(connection: AsyncConnection, digest: str, now: int) -> bool:
    """Count a use; false where none is left. Of two at once, only one gets the last use."""
    change = update(invitations).where(*_is_usable(digest, now)).values(uses=invitations.c.uses + 1)
    return (await connection.execute(change)).rowcount == 1


def _is_usable(digest: str, now: int) -> tuple[Any, ...]:
    return (
        invitations.c.token_digest == digest,
        invitations.c.revoked_at.is_(None),
        invitations.c.expires_at > now,
        invitations.c.uses < invitations.c.max_uses,
    )


async def revoke_invitations(
    connection: AsyncConnection, owner: str | None, now: int, *, only: str | None = None
) -> int:
    """Revoke the invitations of an owner, or one of them; returns how many were not yet."""
    change = update(invitations).where(invitations.c.revoked_at.is_(None)).values(revoked_at=now)
    if owner is not None:
        change = change.where(invitations.c.created_by == owner)
    if only is not None:
        change = change.where(invitations.c.invitation_id == only)
    return (await connection.execute(change)).rowcount


async def add_audit_entry(
    connection: AsyncConnection,
    at: int,
    action: str,
    origin: ActionOrigin,
    subject_id: str | None = None,
    **details: str | int | bool,
) -> None:
    """Write down what is done, in the transaction that does it. Details hold no secret and no text
    that somebody typed.
    """
    await connection.execute(
        insert(audit_log).values(
            at=at,
            action=action,
            actor_id=origin.actor_id,
            subject_id=subject_id,
            via=origin.via,
            address=origin.address,
            details=msgspec.json.encode(details).decode(),
        )
    )


async def list_audit(
    connection: AsyncConnection, owner: str | None, cursor: str | None, limit: int
) -> HubPage[AuditEntry]:
    """What was done by a person or to them; without an owner, everything."""
    query = select(audit_log)
    if owner is not None:
        query = query.where(or_(audit_log.c.actor_id == owner, audit_log.c.subject_id == owner))
    place = parse_place(cursor)
    if place is not None:
        query = query.where(audit_log.c.seq < place.at)
    query = query.order_by(audit_log.c.seq.desc()).limit(limit + 1)
    rows = list((await connection.execute(query)).mappings())
    more = len(rows) > limit
    following = format_place(Place(rows[limit - 1]["seq"], "")) if more else None
    return HubPage(items=[_to_entry(row) for row in rows[:limit]], next=following)


def _to_entry(row: RowMapping) -> AuditEntry:
    return AuditEntry(
        seq=row["seq"],
        at=format_time(row["at"]),
        action=row["action"],
        via=row["via"],
        address=row["address"],
        actor_id=row["actor_id"],
        subject_id=row["subject_id"],
        details=msgspec.json.decode(row["details"]),
    )
