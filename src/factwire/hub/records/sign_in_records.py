"""Queries about passkeys and identities at providers, each of which belongs to one person and names
them; and about ceremonies, each of which is finished once.
"""

from typing import Any

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import Passkey, ProviderIdentity
from factwire.hub.limits import METHODS_PER_PERSON
from factwire.hub.records.hub_tables import people
from factwire.hub.records.people_records import format_optional_time, format_time
from factwire.hub.records.sign_in_tables import finished_ceremonies, identities, passkeys


async def add_finished_ceremony(
    connection: AsyncConnection, ceremony_id: str, expires_at: int, now: int
) -> None:
    """Remember that a ceremony is over, until it would have expired; raises SQLAlchemy's
    `IntegrityError` where it is already.
    """
    old = delete(finished_ceremonies).where(finished_ceremonies.c.expires_at <= now)
    await connection.execute(old)
    values = {"ceremony_id": ceremony_id, "expires_at": expires_at}
    await connection.execute(insert(finished_ceremonies).values(values))


async def lock_person(connection: AsyncConnection, person_id: str) -> RowMapping | None:
    """Somebody who may sign in; nobody else changes their account until the transaction ends."""
    query = (
        select(people)
        .where(people.c.person_id == person_id, people.c.disabled_at.is_(None))
        .with_for_update()
    )
    return (await connection.execute(query)).mappings().one_or_none()


def to_passkey(row: RowMapping) -> Passkey:
    return Passkey(
        passkey_id=row["passkey_id"],
        name=row["name"],
        synced=row["synced"],
        created_at=format_time(row["created_at"]),
        last_used_at=format_optional_time(row["last_used_at"]),
    )


def to_identity(row: RowMapping, offered: frozenset[tuple[str, str]]) -> ProviderIdentity:
    return ProviderIdentity(
        identity_id=row["identity_id"],
        provider=row["provider"],
        issuer=row["issuer"],
        label=row["label"],
        offered=(row["provider"], row["issuer"]) in offered,
        created_at=format_time(row["created_at"]),
        last_used_at=format_optional_time(row["last_used_at"]),
    )


async def list_passkeys(connection: AsyncConnection, owner: str) -> list[RowMapping]:
    query = select(passkeys).where(passkeys.c.person_id == owner)
    ordered = query.order_by(passkeys.c.created_at, passkeys.c.passkey_id)
    return list((await connection.execute(ordered.limit(METHODS_PER_PERSON))).mappings())


async def list_identities(connection: AsyncConnection, owner: str) -> list[RowMapping]:
    query = select(identities).where(identities.c.person_id == owner)
    ordered = query.order_by(identities.c.created_at, identities.c.identity_id)
    return list((await connection.execute(ordered.limit(METHODS_PER_PERSON))).mappings())


async def count_methods(
    connection: AsyncConnection, person_ids: list[str]
) -> dict[str, tuple[int, int]]:
    """Person → how many passkeys and identities they have."""
    counts: list[dict[str, int]] = []
    for table in (passkeys, identities):
        query = (
            select(table.c.person_id, func.count())
            .where(table.c.person_id.in_(person_ids))
            .group_by(table.c.person_id)
        )
        counts.append({row[0]: row[1] for row in await connection.execute(query)})
    return {each: (counts[0].get(each, 0), counts[1].get(each, 0)) for each in person_ids}


async def add_passkey(connection: AsyncConnection, **values: Any) -> RowMapping:
    """Add a passkey; raises SQLAlchemy's `IntegrityError` where somebody has it already."""
    change = insert(passkeys).values(**values).returning(passkeys)
    return (await connection.execute(change)).mappings().one()


async def find_passkey(connection: AsyncConnection, credential_id: str) -> RowMapping | None:
    """The passkey that an authenticator names, of somebody who may sign in."""
    query = (
        select(passkeys)
        .join(people, people.c.person_id == passkeys.c.person_id)
        .where(passkeys.c.credential_id == credential_id, people.c.disabled_at.is_(None))
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def count_passkey_use(
    connection: AsyncConnection, passkey_id: str, sign_count: int, now: int
) -> bool:
    """Note a use; false where the authenticator has counted fewer uses than we have seen. One that
    does not count always says 0.
    """
    change = (
        update(passkeys)
        .where(passkeys.c.passkey_id == passkey_id, _is_further(sign_count))
        .values(sign_count=sign_count, last_used_at=now)
    )
    return (await connection.execute(change)).rowcount == 1


def _is_further(sign_count: int) -> ColumnElement[bool]:
    seen = passkeys.c.sign_count
    return seen < sign_count if sign_count else seen == 0


async def rename_passkey(
    connection: AsyncConnection, owner: str, passkey_id: str, name: str
) -> RowMapping | None:
    change = (
        update(passkeys)
        .where(passkeys.c.person_id == owner, passkeys.c.passkey_id == passkey_id)
        .values(name=name)
        .returning(passkeys)
    )
    return (await connection.execute(change)).mappings().one_or_none()


async def remove_method(connection: AsyncConnection, owner: str, method_id: str) -> bool:
    """Remove a passkey or an identity of somebody; false where they have none with that id."""
    for table, key in ((passkeys, passkeys.c.passkey_id), (identities, identities.c.identity_id)):
        change = delete(table).where(table.c.person_id == owner, key == method_id)
        if (await connection.execute(change)).rowcount:
            return True
    return False


async def add_identity(connection: AsyncConnection, **values: Any) -> RowMapping:
    """Add an identity; raises SQLAlchemy's `IntegrityError` where an account has it already."""
    change = insert(identities).values(**values).returning(identities)
    return (await connection.execute(change)).mappings().one()


async def find_identity(
    connection: AsyncConnection, issuer: str, subject: str
) -> RowMapping | None:
    """The identity that a provider names, whoever has it."""
    query = select(identities).where(identities.c.issuer == issuer, identities.c.subject == subject)
    return (await connection.execute(query)).mappings().one_or_none()


async def note_identity_use(
    connection: AsyncConnection, identity_id: str, label: str, now: int
) -> None:
    await connection.execute(
        update(identities)
        .where(identities.c.identity_id == identity_id)
        .values(last_used_at=now, label=label)
    )
