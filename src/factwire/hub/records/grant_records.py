"""Who may see and do what with an Edge, its threads and its targets: one condition for every query.

`may_access` is that condition. An Edge is its owner's; what of it is shared, with whom and for what
is a grant. A grant on the device covers all of its Edge, one on a thread or a target that alone.
Queries of other modules put the condition into their `where`, so that there is no check that could
be forgotten, and what is nobody's of theirs is not found.
"""

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, case, exists, or_, select, union_all, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import GrantRole
from factwire.hub.device_resources import AccessGrant
from factwire.hub.records.device_tables import GRANT_ROLES, GrantKind, edges, grants
from factwire.hub.records.hub_tables import people
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time

_Id = ColumnElement[str] | str


class NeededRight(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody must be allowed with an Edge, or with a thread or a target of it."""

    role: GrantRole
    thread_id: str | None = None
    target_id: str | None = None


def rank_of(role: ColumnElement[str]) -> ColumnElement[int]:
    """A number for a role in a query; one that allows more has a lower one."""
    return case({name: at for at, name in enumerate(GRANT_ROLES)}, value=role)


def _includes(role: ColumnElement[str], needed: ColumnElement[str] | GrantRole) -> Any:
    """That a role allows what another does."""
    if isinstance(needed, ColumnElement):
        return rank_of(role) <= rank_of(needed)
    return role.in_(GRANT_ROLES[: GRANT_ROLES.index(needed) + 1])


def may_access(
    person_id: _Id,
    needed: ColumnElement[str] | GrantRole,
    edge_id: ColumnElement[str],
    *,
    thread_id: _Id | None = None,
    target_id: _Id | None = None,
) -> ColumnElement[bool]:
    """That somebody may do with an Edge what a role allows: as its owner, by a grant for all of it
    or, where a thread or a target is named, by one for that. Ids and the role may be columns of a
    query. What is theirs is looked up by the person, so that it costs nothing how much others have;
    where each row has its own person, by the Edge, so that it costs nothing how much is theirs.
    """
    # Under names of their own, so that a query about the same tables can have the condition.
    owned, held = edges.alias("owned").c, grants.alias("held").c
    covers = [held.kind == "device"]
    if thread_id is not None:
        covers.append(and_(held.kind == "thread", held.subject_id == thread_id))
    if target_id is not None:
        covers.append(and_(held.kind == "target", held.subject_id == target_id))
    granted = select(held.edge_id).where(
        held.grantee_id == person_id,
        held.revoked_at.is_(None),
        _includes(held.role, needed),
        or_(*covers),
    )
    own = select(owned.edge_id).where(owned.person_id == person_id)
    if isinstance(person_id, ColumnElement):
        found = own.where(owned.edge_id == edge_id), granted.where(held.edge_id == edge_id)
        return or_(*map(exists, found))
    return edge_id.in_(union_all(own, granted))


class EdgeReach(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an Edge somebody may use so: all of it, or some threads."""

    is_whole: bool
    threads: frozenset[str] = frozenset()


async def find_reach(
    connection: AsyncConnection, person_id: str, edge_id: str, needed: GrantRole = "viewer"
) -> EdgeReach | None:
    """What of an Edge somebody may use as a role allows; None where that is nothing."""
    query = select(edges.c.edge_id).where(
        edges.c.edge_id == edge_id, may_access(person_id, needed, edges.c.edge_id)
    )
    if (await connection.execute(query)).first() is not None:
        return EdgeReach(is_whole=True)
    shared = select(grants.c.subject_id).where(
        grants.c.grantee_id == person_id,
        grants.c.edge_id == edge_id,
        grants.c.kind == "thread",
        grants.c.revoked_at.is_(None),
        _includes(grants.c.role, needed),
    )
    threads = frozenset((await connection.execute(shared)).scalars())
    return EdgeReach(is_whole=False, threads=threads) if threads else None


async def list_viewers(connection: AsyncConnection, edge_id: str) -> list[str]:
    """Everybody who may see a device: the owner of its Edge, and those it is shared with."""
    return sorted(await list_holders(connection, edge_id, NeededRight(role="viewer")))


async def list_holders(
    connection: AsyncConnection, edge_id: str, right: NeededRight
) -> frozenset[str]:
    """Everybody for whom `may_access` holds."""
    covers = [grants.c.kind == "device"]
    for kind, subject_id in (("thread", right.thread_id), ("target", right.target_id)):
        if subject_id is not None:
            covers.append(and_(grants.c.kind == kind, grants.c.subject_id == subject_id))
    owner = select(edges.c.person_id).where(edges.c.edge_id == edge_id)
    shared = select(grants.c.grantee_id).where(
        grants.c.edge_id == edge_id,
        grants.c.revoked_at.is_(None),
        _includes(grants.c.role, right.role),
        or_(*covers),
    )
    return frozenset((await connection.execute(owner.union(shared))).scalars())


def _select_named() -> Select[Any]:
    """Grants with the names of who made them and who has them."""
    owner, grantee = people.alias("owner"), people.alias("grantee")
    return (
        select(grants, owner.c.name.label("owner_name"), grantee.c.name.label("grantee_name"))
        .join(owner, owner.c.person_id == grants.c.owner_id)
        .join(grantee, grantee.c.person_id == grants.c.grantee_id)
    )


async def find_grant(
    connection: AsyncConnection, grant_id: str, person_id: str
) -> RowMapping | None:
    """A grant that holds and that somebody made or has."""
    query = _select_named().where(
        grants.c.grant_id == grant_id,
        or_(grants.c.owner_id == person_id, grants.c.grantee_id == person_id),
        grants.c.revoked_at.is_(None),
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def find_current_grant(
    connection: AsyncConnection, grantee: str, edge_id: str, kind: GrantKind, subject_id: str
) -> RowMapping | None:
    """The grant by which something is shared with somebody now."""
    query = select(grants).where(
        grants.c.grantee_id == grantee,
        grants.c.edge_id == edge_id,
        grants.c.kind == kind,
        grants.c.subject_id == subject_id,
        grants.c.revoked_at.is_(None),
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def list_grants(
    connection: AsyncConnection,
    person_id: str,
    cursor: str | None,
    limit: int,
    *,
    received: bool | None = None,
) -> tuple[list[RowMapping], str | None]:
    """Grants that hold: those that somebody made, those that they have, or both."""
    made, had = grants.c.owner_id == person_id, grants.c.grantee_id == person_id
    whose = {None: or_(made, had), False: made, True: had}[received]
    query = _select_named().where(whose, grants.c.revoked_at.is_(None))
    return await fetch_page(
        connection, query, (grants.c.created_at, grants.c.grant_id), cursor, limit
    )


async def revoke_grants(
    connection: AsyncConnection, now: int, *conditions: ColumnElement[bool]
) -> list[RowMapping]:
    """Revoke the grants for which all conditions hold; returns those that were not revoked yet."""
    change = (
        update(grants)
        .where(grants.c.revoked_at.is_(None), *conditions)
        .values(revoked_at=now)
        .returning(grants)
    )
    return list((await connection.execute(change)).mappings())


async def find_revoked_grants(connection: AsyncConnection, since: int) -> list[tuple[str, str]]:
    """Who lost a grant on which Edge since a time; by this, open streams are found and closed."""
    query = select(grants.c.grantee_id, grants.c.edge_id).where(grants.c.revoked_at >= since)
    return [(person, edge) for person, edge in (await connection.execute(query)).all()]


def to_grant(row: RowMapping) -> AccessGrant:
    values: dict[str, Any] = {
        name: row[name]
        for name in (
            *("grant_id", "owner_id", "owner_name", "grantee_id", "grantee_name", "kind"),
            *("edge_id", "role"),
        )
    }
    return AccessGrant(
        **values,
        thread_id=row["subject_id"] if row["kind"] == "thread" else None,
        target_id=row["subject_id"] if row["kind"] == "target" else None,
        created_at=format_time(row["created_at"]),
        revoked_at=format_optional_time(row["revoked_at"]),
    )
