"""Sharing: the owner of a device lets somebody see it, comment, approve or operate; or does so for
one thread or one target of it.

A grant holds until its owner revokes it or its holder gives it back. Who may do what is
`may_access` of `records/grant_records.py`, which every query asks anew, so that a grant that is
revoked is over with the next request; streams that are open by it are closed, and chats of threads
that were seen by it are left.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import GrantRole
from factwire.hub.chats.chat_members import end_thread_access
from factwire.hub.device_resources import AccessGrant, GrantBody, StatePage
from factwire.hub.frames.event_log import PERSON, HubChange, audience_of, read_cursor
from factwire.hub.frames.frame_types import UNSET, DeviceKicked, GrantCreated, GrantRevoked
from factwire.hub.limits import GRANTS_PER_PERSON
from factwire.hub.people import administration
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.devices import DEVICE, emit_registered, unknown_device
from factwire.hub.records import device_records, grant_records
from factwire.hub.records.device_tables import GrantKind, devices, grants
from factwire.hub.records.grant_records import to_grant
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.link_tables import execution_targets
from factwire.serving.asgi import Problem

SubjectCheck = Callable[[HubServices, str, str], Awaitable[None]]
"""Raises `Problem` where an Edge has nothing of an id."""


async def _ensure_device(_: HubServices, edge_id: str, subject_id: str) -> None:
    if edge_id != subject_id:
        raise unknown_device()


async def _ensure_thread(hub: HubServices, edge_id: str, thread_id: str) -> None:
    if hub.mirrors is None or not await hub.mirrors.has_thread(edge_id, thread_id):
        raise Problem(404, "unknown_thread", "the mirror of this Edge has no thread with this id")


async def _ensure_target(hub: HubServices, edge_id: str, target_id: str) -> None:
    query = (
        select(execution_targets.c.target_id)
        .join(devices, devices.c.device_id == execution_targets.c.device_id)
        .where(
            execution_targets.c.target_id == target_id,
            execution_targets.c.removed_at.is_(None),
            devices.c.edge_id == edge_id,
        )
    )
    async with hub.database.read() as connection:
        if (await connection.execute(query)).first() is None:
            raise Problem(404, "unknown_target", "this device has no target with this id")


SUBJECT_CHECKS: Final[dict[GrantKind, SubjectCheck]] = {
    "device": _ensure_device,
    "thread": _ensure_thread,
    "target": _ensure_target,
}
"""What can be shared, and how it is known to be the owner's."""


async def create_grant(
    hub: HubServices, caller: HubCaller, body: GrantBody, origin: ActionOrigin
) -> AccessGrant:
    """Share something of the caller's own with somebody; the same again changes the role."""
    grantee = await _find_grantee(hub, caller, body.person)
    async with hub.database.read() as connection:
        device = await device_records.find_device(connection, caller.person_id, body.device_id)
    if device is None or device["person_id"] != caller.person_id:
        raise unknown_device()
    kind, subject_id = _subject_of(body, device["edge_id"])
    await SUBJECT_CHECKS[kind](hub, device["edge_id"], subject_id)
    async with hub.events.change() as change:
        locked = await device_records.lock_own_device(
            change.connection, caller.person_id, body.device_id
        )
        if locked is None:
            raise unknown_device()
        wanted = WantedGrant(grantee, kind, subject_id, body.role)
        return await _write_grant(change, locked, wanted, origin)


async def _find_grantee(hub: HubServices, caller: HubCaller, person: str) -> str:
    found = await administration.find_by_id(hub, person) if person.startswith("usr_") else None
    account = found or await administration.find_by_name(hub, person)
    if account.person_id == caller.person_id:
        raise Problem(409, "grant_to_self", "what is yours needs no grant")
    return account.person_id


def _subject_of(body: GrantBody, edge_id: str) -> tuple[GrantKind, str]:
    thread, target = body.thread_id, body.target_id
    if thread is not msgspec.UNSET and target is not msgspec.UNSET:
        raise Problem(400, "invalid_request", "name a thread or a target, not both")
    if thread is not msgspec.UNSET:
        return "thread", thread
    return ("device", edge_id) if target is msgspec.UNSET else ("target", target)


class WantedGrant(NamedTuple):
    """What is to be shared with whom."""

    grantee: str
    kind: GrantKind
    subject_id: str
    role: GrantRole


async def _write_grant(
    change: HubChange, device: RowMapping, wanted: WantedGrant, origin: ActionOrigin
) -> AccessGrant:
    connection, edge_id, owner = change.connection, device["edge_id"], device["person_id"]
    grantee, kind, subject_id, role = wanted
    known = await grant_records.find_current_grant(connection, grantee, edge_id, kind, subject_id)
    if known is not None and known["role"] == role:
        return await _read_grant(change.connection, known["grant_id"], owner)
    if known is None:
        await _ensure_room(change, owner)
        statement = insert(grants).values(
            grant_id=new_id("grt"),
            owner_id=owner,
            grantee_id=grantee,
            kind=kind,
            edge_id=edge_id,
            subject_id=subject_id,
            role=role,
            created_at=change.now,
        )
    else:
        statement = update(grants).where(grants.c.grant_id == known["grant_id"]).values(role=role)
    returned = await connection.execute(statement.returning(grants.c.grant_id))
    shown = await _read_grant(connection, returned.scalar_one(), owner)
    if kind == "device":
        change.join(audience_of(DEVICE, device["device_id"]), grantee)
        if known is None:
            await emit_registered(change, audience_of(PERSON, grantee), device)
    created = GrantCreated(
        grant_id=shown.grant_id,
        owner_id=owner,
        owner_name=shown.owner_name,
        user_id=grantee,
        user_name=shown.grantee_name,
        edge_id=edge_id,
        role=shown.role,
        created_at=shown.created_at,
        thread_id=shown.thread_id or UNSET,
        target_id=shown.target_id or UNSET,
    )
    for person_id in (owner, grantee):
        change.tell(person_id, "grant.created", created)
    await add_audit_entry(
        connection,
        change.now,
        "grant.created",
        origin,
        grantee,
        grantId=shown.grant_id,
        kind=kind,
        subjectId=subject_id,
        role=role,
    )
    return shown


async def _ensure_room(change: HubChange, owner: str) -> None:
    count = select(func.count()).where(grants.c.owner_id == owner, grants.c.revoked_at.is_(None))
    if (await change.connection.execute(count)).scalar_one() >= GRANTS_PER_PERSON:
        raise Problem(
            409, "too_many_grants", f"you have {GRANTS_PER_PERSON} grants; revoke one first"
        )


async def list_grants(
    hub: HubServices,
    caller: HubCaller,
    cursor: str | None,
    limit: int,
    *,
    received: bool | None = None,
) -> StatePage[AccessGrant]:
    """The grants that hold: those that the caller made, those that they have, or both."""
    async with hub.database.read() as connection:
        rows, following = await grant_records.list_grants(
            connection, caller.person_id, cursor, limit, received=received
        )
        as_of = await read_cursor(connection)
    return StatePage(items=[to_grant(row) for row in rows], next=following, as_of=as_of)


async def read_grant(hub: HubServices, caller: HubCaller, grant_id: str) -> AccessGrant:
    """A grant that the caller made or has."""
    async with hub.database.read() as connection:
        return await _read_grant(connection, grant_id, caller.person_id)


async def _read_grant(connection: AsyncConnection, grant_id: str, person_id: str) -> AccessGrant:
    row = await grant_records.find_grant(connection, grant_id, person_id)
    if row is None:
        raise _unknown_grant()
    return to_grant(row)


async def revoke_grant(
    hub: HubServices, caller: HubCaller, grant_id: str, origin: ActionOrigin
) -> None:
    """End a grant that the caller made, or give back one that they have."""
    whose = or_(grants.c.owner_id == caller.person_id, grants.c.grantee_id == caller.person_id)
    async with hub.events.change() as change:
        rows = await grant_records.revoke_grants(
            change.connection, change.now, grants.c.grant_id == grant_id, whose
        )
        if not rows:
            raise _unknown_grant()
        for row in rows:
            await _tell_revoked(change, row, origin)
            await end_thread_access(hub, change, row["grantee_id"], row["edge_id"], origin)


async def _tell_revoked(change: HubChange, row: RowMapping, origin: ActionOrigin) -> None:
    owner, grantee, edge_id = row["owner_id"], row["grantee_id"], row["edge_id"]
    if row["kind"] == "device":
        edge = await device_records.find_edge(change.connection, edge_id)
        if edge is not None:
            kicked = DeviceKicked(device_id=edge["device_id"], reason="grant_revoked")
            change.leave(audience_of(DEVICE, edge["device_id"]), grantee)
            change.tell(grantee, "device.kicked", kicked)
    revoked = GrantRevoked(
        grant_id=row["grant_id"], owner_id=owner, user_id=grantee, edge_id=edge_id
    )
    for person_id in (owner, grantee):
        change.tell(person_id, "grant.revoked", revoked)
    await add_audit_entry(
        change.connection, change.now, "grant.revoked", origin, grantee, grantId=row["grant_id"]
    )


def _unknown_grant() -> Problem:
    return Problem(404, "unknown_grant", "none of your grants has this id")
