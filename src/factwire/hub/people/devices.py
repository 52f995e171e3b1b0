"""What people do with their devices, and what devices do: join, be seen, be renamed, be revoked.

A device is registered once somebody has confirmed it. Its token is made then, shown once and kept
as a digest; it is good for nothing but access tokens, which end with its session. Joining again as
the same Edge replaces the device that did before, in chats and targets too. Whoever may see a
device is in its audience, from when it is registered or shared until it is revoked or no longer
shared.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import Device, DeviceKind
from factwire.hub.chats.chat_members import end_agents_of, move_agents
from factwire.hub.device_resources import (
    DeviceAccess,
    DeviceTokenBody,
    JoinedDevice,
    MirroredEdgeSummary,
    StatePage,
)
from factwire.hub.frames.event_log import PERSON, HubChange, audience_of, read_cursor
from factwire.hub.frames.frame_types import DeviceKicked, DeviceRegistered, EdgeRegistered
from factwire.hub.hub_resources import HubPage
from factwire.hub.limits import (
    ACCESS_TOKEN_SECONDS,
    DEVICE_SESSION_SECONDS,
    DEVICES_PER_PERSON,
)
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.hub_tokens import device_in, digest_of
from factwire.hub.people.passwords import normalize_name
from factwire.hub.records import device_records, grant_records
from factwire.hub.records.device_tables import devices
from factwire.hub.records.hub_tables import sessions
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.link_tables import execution_targets
from factwire.hub.records.people_records import format_time
from factwire.serving.asgi import Problem

DEVICE: Final = "device"
"""The kind of audience that those are who may see a device."""

_MILLISECONDS: Final = 1_000


class NewDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that is about to be registered for somebody."""

    person_id: str
    person_name: str
    edge_id: str
    name: str
    platform: str = ""
    version: str = ""
    agents: list[str] = msgspec.field(default_factory=list[str])
    kind: DeviceKind = "edge"


async def register_device(
    hub: HubServices, change: HubChange, new: NewDevice, origin: ActionOrigin
) -> JoinedDevice:
    """Register a machine in the place of the one that was this Edge before; the answer alone has
    its token. Raises `Problem` where the Edge is somebody else's.
    """
    now, device_id, session_id = change.now, new_id("dev"), new_id("ses")
    token = hub.tokens.new_device_token(device_id)
    await ensure_edge_free(change.connection, new.edge_id, new.person_id)
    await _ensure_room(change.connection, new)
    await change.connection.execute(
        insert(sessions).values(
            session_id=session_id,
            person_id=new.person_id,
            created_at=now,
            last_used_at=now,
            expires_at=now + DEVICE_SESSION_SECONDS * _MILLISECONDS,
            token_digest=digest_of(token),
            rotated_at=now,
            address=origin.address,
            user_agent=origin.user_agent,
            device_id=device_id,
        )
    )
    row = await _insert_device(change, new, device_id, session_id)
    await _replace_former(change, new, device_id, origin)
    try:
        await device_records.bind_edge(
            change.connection, new.edge_id, new.person_id, device_id, now
        )
    except IntegrityError:
        raise _edge_taken() from None
    await add_audit_entry(
        change.connection,
        now,
        "device.registered",
        origin,
        new.person_id,
        deviceId=device_id,
        edgeId=new.edge_id,
    )
    for person_id in await grant_records.list_viewers(change.connection, new.edge_id):
        change.join(audience_of(DEVICE, device_id), person_id)
    await emit_registered(change, audience_of(DEVICE, device_id), row)
    return JoinedDevice(
        device_id=device_id,
        device_token=token,
        edge_id=new.edge_id,
        name=new.name,
        person_name=new.person_name,
    )


async def adopt_device(
    hub: HubServices, change: HubChange, device_id: str, new: NewDevice
) -> JoinedDevice:
    """Have a machine be a device that was registered for it, before its Edge was known; the answer
    alone has its token. Raises `Problem` where the Edge has joined before: nobody has confirmed
    that this machine is that Edge, whose tasks and approvals it would have.
    """
    connection, now = change.connection, change.now
    device = await device_records.lock_own_device(connection, new.person_id, device_id)
    if device is None:
        raise unknown_device()
    if await ensure_edge_free(connection, new.edge_id, new.person_id) is not None:
        raise _edge_taken()
    try:
        await device_records.bind_edge(
            connection, new.edge_id, new.person_id, device_id, change.now
        )
    except IntegrityError:
        raise _edge_taken() from None
    await device_records.replace_edge(connection, device["edge_id"], new.edge_id)
    token = hub.tokens.new_device_token(device_id)
    own = sessions.c.session_id == device["session_id"]
    await connection.execute(update(sessions).where(own).values(token_digest=digest_of(token)))
    statement = (
        update(devices)
        .where(devices.c.device_id == device_id)
        .values(
            edge_id=new.edge_id,
            platform=new.platform,
            version=new.version,
            agents=msgspec.json.encode(new.agents).decode(),
            last_seen_at=now,
        )
        .returning(devices)
    )
    row = (await connection.execute(statement)).mappings().one()
    await emit_registered(change, audience_of(DEVICE, device_id), row)
    return JoinedDevice(
        device_id=device_id,
        device_token=token,
        edge_id=new.edge_id,
        name=row["name"],
        person_name=new.person_name,
    )


async def ensure_edge_free(connection: AsyncConnection, edge_id: str, person_id: str) -> str | None:
    """The device that has joined as an Edge of a person; raises `Problem` where the Edge is
    somebody else's.
    """
    known = await device_records.find_edge(connection, edge_id)
    if known is not None and known["person_id"] != person_id:
        raise _edge_taken()
    return None if known is None else known["device_id"]


def _edge_taken() -> Problem:
    return Problem(
        409,
        "edge_taken",
        "this Edge has joined this Hub before, or for somebody else; join with another data folder",
    )


async def _ensure_room(connection: AsyncConnection, new: NewDevice) -> None:
    count = select(func.count()).where(
        devices.c.person_id == new.person_id,
        devices.c.revoked_at.is_(None),
        devices.c.edge_id != new.edge_id,
    )
    if (await connection.execute(count)).scalar_one() >= DEVICES_PER_PERSON:
        raise Problem(
            409,
            "too_many_devices",
            f"you have {DEVICES_PER_PERSON} devices; revoke one that you no longer use",
        )


async def _insert_device(
    change: HubChange, new: NewDevice, device_id: str, session_id: str
) -> RowMapping:
    values: dict[str, Any] = {
        name: getattr(new, name)
        for name in ("person_id", "kind", "name", "edge_id", "platform", "version")
    }
    statement = (
        insert(devices)
        .values(
            **values,
            device_id=device_id,
            session_id=session_id,
            agents=msgspec.json.encode(new.agents).decode(),
            created_at=change.now,
            last_seen_at=change.now,
            online=False,
        )
        .returning(devices)
    )
    return (await change.connection.execute(statement)).mappings().one()


async def _replace_former(
    change: HubChange, new: NewDevice, device_id: str, origin: ActionOrigin
) -> None:
    """End the device that an Edge was before, and have the new one in its place: in the chats of
    its agents, and in targets.
    """
    known = await device_records.find_edge(change.connection, new.edge_id)
    if known is None:
        return
    former = await device_records.lock_own_device(
        change.connection, new.person_id, known["device_id"]
    )
    if former is not None:
        await move_agents(change, former["device_id"], device_id)
        await end_device(change, former, "joined_again", origin)
    # Also those of a device that was revoked before its Edge joined again.
    of_edge = select(devices.c.device_id).where(devices.c.edge_id == new.edge_id)
    await change.connection.execute(
        update(execution_targets)
        .where(execution_targets.c.device_id.in_(of_edge))
        .values(device_id=device_id)
    )


async def emit_registered(change: HubChange, audience: str, device: RowMapping) -> None:
    """Tell an audience of a device: that it is there, or what it is now."""
    same: dict[str, Any] = {
        name: device[name]
        for name in ("device_id", "name", "edge_id", "platform", "version", "online")
    }
    change.emit(
        audience,
        "device.registered",
        DeviceRegistered(
            **same,
            user_id=device["person_id"],
            device_type=device["kind"],
            agents=msgspec.json.decode(device["agents"]),
            created_at=format_time(device["created_at"]),
        ),
    )
    edge = await device_records.find_edge(change.connection, device["edge_id"])
    if edge is not None:
        change.emit(
            audience,
            "edge.registered",
            EdgeRegistered(
                edge_id=device["edge_id"],
                device_id=device["device_id"],
                user_id=device["person_id"],
                created_at=format_time(edge["created_at"]),
            ),
        )


async def note_seen(
    change: HubChange,
    device_id: str,
    *,
    version: str | msgspec.UnsetType,
    agents: list[str] | msgspec.UnsetType,
) -> None:
    """Write down that a device was heard of, and what it says that it is; others are told of what
    is new in that.
    """
    values: dict[str, Any] = {}
    if version is not msgspec.UNSET:
        values["version"] = version
    if agents is not msgspec.UNSET:
        values["agents"] = msgspec.json.encode(agents).decode()
    before = (await change.connection.execute(_select_device(device_id))).mappings().one()
    seen = (
        update(devices)
        .where(devices.c.device_id == device_id)
        .values(last_seen_at=change.now, **values)
        .returning(devices)
    )
    row = (await change.connection.execute(seen)).mappings().one()
    if any(before[name] != value for name, value in values.items()):
        await emit_registered(change, audience_of(DEVICE, device_id), row)


def _select_device(device_id: str) -> Select[Any]:
    return select(devices).where(devices.c.device_id == device_id).with_for_update()


async def find_device_audiences(
    connection: AsyncConnection, device: RowMapping, right: grant_records.NeededRight
) -> list[str]:
    """Who may see a device, or a thread or target of it: the audience of the device, and each who
    is not in it. That of a device that was revoked is dissolved.
    """
    holders = await grant_records.list_holders(connection, device["edge_id"], right)
    if device["revoked_at"] is not None:
        return [audience_of(PERSON, person_id) for person_id in sorted(holders)]
    others = holders - set(await grant_records.list_viewers(connection, device["edge_id"]))
    own = [audience_of(DEVICE, device["device_id"])]
    return own + [audience_of(PERSON, person_id) for person_id in sorted(others)]


async def end_device(
    change: HubChange, device: RowMapping, reason: str, origin: ActionOrigin
) -> None:
    """Revoke a device: its token and its sockets end, the agents that it still has leave their
    chats, and its audience is told and dissolved.
    """
    await device_records.end_device(change.connection, device, change.now)
    device_id = device["device_id"]
    audience = audience_of(DEVICE, device_id)
    change.emit(audience, "device.kicked", DeviceKicked(device_id=device_id, reason=reason))
    for person_id in await grant_records.list_viewers(change.connection, device["edge_id"]):
        change.leave(audience, person_id)
    await end_agents_of(change, device_id, origin)
    await add_audit_entry(
        change.connection,
        change.now,
        "device.revoked",
        origin,
        device["person_id"],
        deviceId=device_id,
        reason=reason,
    )


async def end_devices_of(change: HubChange, person_id: str, origin: ActionOrigin) -> None:
    """Revoke all devices of a person."""
    for device in await device_records.list_own_devices(change.connection, person_id):
        await end_device(change, device, "disabled", origin)


async def exchange_token(hub: HubServices, body: DeviceTokenBody) -> DeviceAccess:
    """An access token for the token of a device, which is seen with that."""
    token = body.device_token
    async with hub.events.change() as change:
        device = await device_records.find_device_session(
            change.connection, device_in(token), digest_of(token), change.now
        )
        if device is None:
            raise Problem(
                401,
                "device_token_invalid",
                "the token is unknown, or its device was revoked; join again",
            )
        await note_seen(change, device["device_id"], version=body.version, agents=body.agents)
        until = change.now + DEVICE_SESSION_SECONDS * _MILLISECONDS
        await change.connection.execute(
            update(sessions)
            .where(sessions.c.session_id == device["session_id"])
            .values(last_used_at=change.now, expires_at=until)
        )
    return DeviceAccess(
        access_token=hub.tokens.issue_access(
            device["person_id"], device["session_id"], device["device_id"]
        ),
        expires_in=ACCESS_TOKEN_SECONDS,
        device_id=device["device_id"],
        edge_id=device["edge_id"],
    )


async def list_devices(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> StatePage[Device]:
    """The devices that somebody may see: their own, and those that are shared with them."""
    async with hub.database.read() as connection:
        rows, following = await device_records.list_devices(
            connection, caller.person_id, cursor, limit
        )
        as_of = await read_cursor(connection)
    items = [device_records.to_device(row, caller.person_id) for row in rows]
    return StatePage(items=items, next=following, as_of=as_of)


async def list_all_devices(hub: HubServices, cursor: str | None, limit: int) -> HubPage[Device]:
    """Everybody's devices, for the operator."""
    async with hub.database.read() as connection:
        rows, following = await device_records.list_all_devices(connection, cursor, limit)
    return HubPage(items=[device_records.to_device(row) for row in rows], next=following)


async def list_edges(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> StatePage[MirroredEdgeSummary]:
    """The Edges all of which somebody may read."""
    async with hub.database.read() as connection:
        rows, following = await device_records.list_edges(
            connection, caller.person_id, cursor, limit
        )
        as_of = await read_cursor(connection)
    items = [device_records.to_edge_summary(row, caller.person_id) for row in rows]
    return StatePage(items=items, next=following, as_of=as_of)


async def read_device(hub: HubServices, caller: HubCaller, device_id: str) -> Device:
    async with hub.database.read() as connection:
        row = await device_records.find_device(connection, caller.person_id, device_id)
    if row is None:
        raise unknown_device()
    return device_records.to_device(row, caller.person_id)


async def rename_device(
    hub: HubServices, caller: HubCaller, device_id: str, name: str, origin: ActionOrigin
) -> Device:
    """Call a device of the caller's own something else."""
    shown = normalize_name(name)
    async with hub.events.change() as change:
        device = await device_records.lock_own_device(
            change.connection, caller.person_id, device_id
        )
        if device is None:
            raise unknown_device()
        renamed = (
            update(devices)
            .where(devices.c.device_id == device_id)
            .values(name=shown)
            .returning(devices)
        )
        row = (await change.connection.execute(renamed)).mappings().one()
        await emit_registered(change, audience_of(DEVICE, device_id), row)
        await add_audit_entry(
            change.connection,
            change.now,
            "device.renamed",
            origin,
            caller.person_id,
            deviceId=device_id,
        )
    return await read_device(hub, caller, device_id)


async def revoke_device(
    hub: HubServices,
    owner: str | None,
    device_id: str,
    origin: ActionOrigin,
    *,
    reason: str = "revoked",
) -> None:
    """Revoke a device of an owner; without one, anybody's, as the operator may."""
    async with hub.events.change() as change:
        device = await device_records.lock_own_device(change.connection, owner, device_id)
        if device is None:
            raise unknown_device()
        await end_device(change, device, reason, origin)


def unknown_device() -> Problem:
    return Problem(404, "unknown_device", "none of your devices has this id")
