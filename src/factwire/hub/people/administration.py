"""What admins and the operator do: accounts and roles, invitations, the audit log.

Somebody who is disabled is signed out everywhere at once, and their invitations are revoked with
that. There is always an admin left: the last one can neither be disabled nor become something else.
"""

import msgspec
from sqlalchemy import update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import (
    AuditEntry,
    CreatedInvitation,
    HubPage,
    Invitation,
    PersonAccount,
    PersonChange,
)
from factwire.hub.people import devices
from factwire.hub.people.accounts import (
    HubCaller,
    HubServices,
    insert_person,
    name_taken,
    new_id,
    to_created_invitation,
    unknown_person,
)
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.people.passwords import generate_password, name_key, normalize_name
from factwire.hub.records import invitation_records, people_records
from factwire.hub.records.hub_tables import Role, people
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.serving.asgi import Problem

_MILLISECONDS = 1_000


async def list_people(hub: HubServices, cursor: str | None, limit: int) -> HubPage[PersonAccount]:
    async with hub.database.read() as connection:
        return await people_records.list_people(connection, cursor, limit)


async def find_by_id(hub: HubServices, person_id: str) -> PersonAccount | None:
    async with hub.database.read() as connection:
        row = await people_records.find_person(connection, person_id)
    return None if row is None else people_records.to_account(row)


async def find_by_name(hub: HubServices, name: str) -> PersonAccount:
    """The account of a name; raises `Problem`."""
    async with hub.database.read() as connection:
        row = await people_records.find_by_name(connection, name_key(name))
    if row is None:
        raise Problem(404, "unknown_person", "nobody has this name")
    return people_records.to_account(row)


async def change_person(
    hub: HubServices, person_id: str, change: PersonChange, origin: ActionOrigin
) -> PersonAccount:
    """Change somebody's role, disable or enable them; raises `Problem`."""
    async with hub.events.change() as transaction:
        connection, now = transaction.connection, transaction.now
        admins = await people_records.lock_admins(connection)
        row = await people_records.find_person(connection, person_id)
        if row is None:
            raise unknown_person()
        values = _changed_values(row, change, now)
        loses_admin = values.get("role", "admin") != "admin" or values.get("disabled_at")
        if admins == [person_id] and loses_admin:
            raise Problem(409, "last_admin", "this is the only admin; make somebody else one first")
        if values:
            await _write_change(connection, person_id, values, origin, now)
        if values.get("disabled_at"):
            await devices.end_devices_of(transaction, person_id, origin)
        changed = await people_records.find_person(connection, person_id)
    if changed is None:
        raise unknown_person()
    return people_records.to_account(changed)


def _changed_values(row: RowMapping, change: PersonChange, now: int) -> dict[str, object]:
    """What is different from what the row has."""
    values: dict[str, object] = {}
    if change.role is not msgspec.UNSET and change.role != row["role"]:
        values["role"] = change.role
    is_disabled = row["disabled_at"] is not None
    if change.disabled is not msgspec.UNSET and change.disabled != is_disabled:
        values["disabled_at"] = now if change.disabled else None
    return values


async def _write_change(
    connection: AsyncConnection,
    person_id: str,
    values: dict[str, object],
    origin: ActionOrigin,
    now: int,
) -> None:
    await connection.execute(update(people).where(people.c.person_id == person_id).values(**values))
    if "role" in values:
        role = str(values["role"])
        await add_audit_entry(connection, now, "person.role_changed", origin, person_id, role=role)
        if role != "admin":
            # What an admin has invited must not outlast the right to invite.
            await invitation_records.revoke_invitations(connection, person_id, now)
    if values.get("disabled_at"):
        await people_records.end_sessions(connection, person_id, now)
        await invitation_records.revoke_invitations(connection, person_id, now)
        await add_audit_entry(connection, now, "person.disabled", origin, person_id)
    elif "disabled_at" in values:
        await add_audit_entry(connection, now, "person.enabled", origin, person_id)


async def add_person(
    hub: HubServices, name: str, role: Role, origin: ActionOrigin
) -> tuple[PersonAccount, str]:
    """Add an account without an invitation; the password is generated, and shown once."""
    shown, password, person_id = normalize_name(name), generate_password(), new_id("usr")
    hashed, now = await hub.passwords.hash(password), hub.now()
    try:
        async with hub.database.write() as connection:
            row = await insert_person(
                connection, person_id, shown, role=role, hashed=hashed, now=now
            )
            await add_audit_entry(connection, now, "person.added", origin, person_id, role=role)
    except IntegrityError:
        raise name_taken() from None
    return people_records.to_account(row), password


async def reset_password(hub: HubServices, person_id: str, origin: ActionOrigin) -> str:
    """Give somebody a generated password, and sign them out everywhere."""
    password = generate_password()
    hashed, now = await hub.passwords.hash(password), hub.now()
    async with hub.database.write() as connection:
        change = update(people).where(people.c.person_id == person_id)
        changed = await connection.execute(change.values(password_hash=hashed))
        if changed.rowcount != 1:
            raise unknown_person()
        ended = await people_records.end_sessions(connection, person_id, now)
        await add_audit_entry(
            connection, now, "password.reset", origin, person_id, sessionsEnded=ended
        )
    return password


async def create_invitation(
    hub: HubServices,
    role: Role,
    max_uses: int,
    seconds: int,
    origin: ActionOrigin,
    *,
    invitation_id: str | None = None,
) -> CreatedInvitation:
    """Make an invitation; an id that exists already is a repeat, and gets the same answer."""
    now, chosen = hub.now(), invitation_id or new_id("inv")
    async with hub.database.write() as connection:
        row = await invitation_records.find_invitation(connection, chosen, origin.actor_id)
        if row is None:
            await invitation_records.add_invitation(
                connection,
                invitation_id=chosen,
                token_digest=digest_of(hub.tokens.invitation_secret(chosen, now)),
                role=role,
                created_by=origin.actor_id,
                created_at=now,
                expires_at=now + seconds * _MILLISECONDS,
                max_uses=max_uses,
            )
            await add_audit_entry(
                connection, now, "invitation.created", origin, chosen, role=role, maxUses=max_uses
            )
            row = await invitation_records.find_invitation(connection, chosen, origin.actor_id)
    if row is None:
        raise _unknown_invitation()
    return to_created_invitation(hub, row)


async def list_invitations(
    hub: HubServices, owner: str | None, cursor: str | None, limit: int
) -> HubPage[Invitation]:
    """The invitations that somebody made; without an owner, everybody's."""
    async with hub.database.read() as connection:
        return await invitation_records.list_invitations(connection, owner, cursor, limit)


async def read_invitation(hub: HubServices, owner: HubCaller, invitation_id: str) -> Invitation:
    async with hub.database.read() as connection:
        row = await invitation_records.find_invitation(connection, invitation_id, owner.person_id)
    if row is None:
        raise _unknown_invitation()
    return invitation_records.to_invitation(row)


async def revoke_invitation(
    hub: HubServices, owner: str | None, invitation_id: str, origin: ActionOrigin
) -> None:
    """Let an invitation create no more accounts; without an owner, anybody's."""
    now = hub.now()
    async with hub.database.write() as connection:
        if await invitation_records.find_invitation(connection, invitation_id, owner) is None:
            raise _unknown_invitation()
        revoked = await invitation_records.revoke_invitations(
            connection, owner, now, only=invitation_id
        )
        if revoked:
            await add_audit_entry(connection, now, "invitation.revoked", origin, invitation_id)


def _unknown_invitation() -> Problem:
    return Problem(404, "unknown_invitation", "none of your invitations has this id")


async def list_audit(
    hub: HubServices, owner: str | None, cursor: str | None, limit: int
) -> HubPage[AuditEntry]:
    """What was done by somebody or to them; without an owner, everything."""
    async with hub.database.read() as connection:
        return await invitation_records.list_audit(connection, owner, cursor, limit)
