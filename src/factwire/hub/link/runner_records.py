"""What becomes of a runner, each step in one transaction with the event that tells its owner:
allocated, joined, stopping, and released or failed.

A runner joins with a secret that its Hub made for it, once and soon after its command was started;
no person's code is involved. Its device ends with it, and so do its tasks.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.facts.resources import TASK_ENDS
from factwire.hub.device_resources import DeviceAuthorizationBody, JoinedDevice, StatePage
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.frames.frame_types import (
    CloudRunnerAllocated,
    CloudRunnerReleased,
    CloudRunnerStopping,
)
from factwire.hub.hub_resources import HubResource
from factwire.hub.limits import RUNNER_JOIN_SECONDS
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.people import devices
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.devices import NewDevice
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.records import device_records, people_records
from factwire.hub.records.device_tables import RUNNER_ENDS, RUNNER_OPEN, RunnerState, runners
from factwire.hub.records.event_tables import event_counter
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.link_tables import agent_tasks
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time
from factwire.runtime.configuration import HubSettings
from factwire.serving.asgi import Problem

_MILLISECONDS: Final = 1_000
_SYSTEM: Final = ActionOrigin(via="runner", address="")


class CloudRunner(HubResource, frozen=True, kw_only=True):
    """An Edge that the Hub has started for you. Tasks for its `deviceId` wait until it is online;
    `reason` is why it ends or ended.
    """

    runner_id: str
    name: str
    state: RunnerState
    created_at: str
    active_at: str
    device_id: str | None = None
    reason: str | None = None
    ended_at: str | None = None


def to_runner(row: RowMapping) -> CloudRunner:
    return CloudRunner(
        runner_id=row["runner_id"],
        name=row["name"],
        state=row["state"],
        created_at=format_time(row["created_at"]),
        active_at=format_time(row["active_at"]),
        device_id=row["device_id"],
        reason=row["reason"],
        ended_at=format_optional_time(row["ended_at"]),
    )


async def list_runners(
    hub: HubServices, owner: str, cursor: str | None, limit: int
) -> StatePage[CloudRunner]:
    query = select(runners).where(runners.c.person_id == owner)
    async with hub.database.read() as connection:
        rows, following = await fetch_page(
            connection, query, (runners.c.created_at, runners.c.runner_id), cursor, limit
        )
        as_of = await read_cursor(connection)
    return StatePage(items=[to_runner(row) for row in rows], next=following, as_of=as_of)


async def read_runner(hub: HubServices, owner: str, runner_id: str) -> CloudRunner:
    async with hub.database.read() as connection:
        row = await find_runner(connection, runner_id, owner)
    if row is None:
        raise unknown_runner()
    return to_runner(row)


async def find_runner(
    connection: AsyncConnection, runner_id: str, owner: str | None = None
) -> RowMapping | None:
    """A runner of an owner; without one, anybody's, as its keeper may see it."""
    query = select(runners).where(runners.c.runner_id == runner_id)
    if owner is not None:
        query = query.where(runners.c.person_id == owner)
    return (await connection.execute(query)).mappings().one_or_none()


async def list_kept(connection: AsyncConnection, keeper_id: str) -> list[RowMapping]:
    """The runners of a data folder that have not ended."""
    query = select(runners).where(runners.c.keeper_id == keeper_id, _is_open())
    return list((await connection.execute(query.order_by(runners.c.created_at))).mappings())


def _is_open() -> ColumnElement[bool]:
    return runners.c.state.in_(RUNNER_OPEN)


async def allocate(
    hub: HubServices,
    change: HubChange,
    settings: HubSettings,
    caller: HubCaller,
    origin: ActionOrigin,
    *,
    keeper_id: str,
    name: str,
    runner_id: str | None = None,
) -> CloudRunner:
    """Note a runner for the caller, with the device that it will be, so that tasks can wait for it;
    a `runner_id` that exists already is a repeat. Raises `Problem`.
    """
    chosen = runner_id or new_id("run")
    # Whoever holds the counter is the only one who counts.
    await change.connection.execute(select(event_counter).with_for_update())
    row = await find_runner(change.connection, chosen, caller.person_id)
    if row is not None:
        return to_runner(row)
    await _ensure_room(change.connection, settings, caller.person_id)
    device = NewDevice(
        person_id=caller.person_id,
        person_name=caller.name,
        # Its Edge has an id once it has joined; this one is no Edge's.
        edge_id=chosen,
        name=name,
        kind="runner",
    )
    joined = await devices.register_device(hub, change, device, origin)
    values: dict[str, Any] = {
        "runner_id": chosen,
        "person_id": caller.person_id,
        "keeper_id": keeper_id,
        "name": name,
        "state": "starting",
        "device_id": joined.device_id,
        "created_at": change.now,
        "started_at": change.now,
        "active_at": change.now,
    }
    added = insert(runners).values(values).returning(runners)
    row = (await change.connection.execute(added)).mappings().one()
    _tell_runner(change, row, "allocated", "requested")
    await add_audit_entry(
        change.connection,
        change.now,
        "runner.allocated",
        origin,
        caller.person_id,
        runnerId=chosen,
    )
    return to_runner(row)


async def find_usable(change: HubChange, owner: str) -> CloudRunner | None:
    """A runner of an owner that tasks can be given to, and that is not idle by this; those that
    have joined first.
    """
    query = (
        select(runners.c.runner_id)
        .where(runners.c.person_id == owner, runners.c.state.in_(("starting", "online")))
        .order_by(runners.c.state, runners.c.created_at)
    )
    for runner_id in (await change.connection.execute(query)).scalars().all():
        taken = (
            update(runners)
            .where(runners.c.runner_id == runner_id, runners.c.state.in_(("starting", "online")))
            .values(active_at=change.now)
            .returning(runners)
        )
        row = (await change.connection.execute(taken)).mappings().one_or_none()
        if row is not None:
            return to_runner(row)
    return None


async def _ensure_room(connection: AsyncConnection, settings: HubSettings, person_id: str) -> None:
    if not settings.runners:
        raise Problem(
            409, "runners_off", "this Hub starts no runners; its operator sets hub.runners"
        )
    count = select(func.count()).where(_is_open())
    own = count.where(runners.c.person_id == person_id)
    if (await connection.execute(own)).scalar_one() >= settings.runners_per_person:
        raise Problem(
            409,
            "runner_quota",
            f"you have {settings.runners_per_person} runners, the maximum; release one first",
        )
    if (await connection.execute(count)).scalar_one() >= settings.runners:
        raise Problem(
            409, "runners_busy", f"all {settings.runners} runners of this Hub are in use; try later"
        )


_EVENTS: Final[dict[str, type[CloudRunnerAllocated]]] = {
    "allocated": CloudRunnerAllocated,
    "stopping": CloudRunnerStopping,
    "released": CloudRunnerReleased,
}
"""What is told of a runner → the payload of that."""


def _tell_runner(change: HubChange, row: RowMapping, what: str, reason: str) -> None:
    payload = _EVENTS[what](
        runner_id=row["runner_id"],
        device_id=row["device_id"],
        reason=reason,
        runner=msgspec.to_builtins(to_runner(row)),
    )
    change.tell(row["person_id"], f"cloud.runner.{what}", payload)


async def renew_secret(hub: HubServices, runner_id: str) -> str:
    """A new secret for a runner to join with, in the place of any before."""
    secret = hub.tokens.new_code()
    async with hub.database.write() as connection:
        await connection.execute(
            update(runners)
            .where(runners.c.runner_id == runner_id, runners.c.state == "starting")
            .values(secret_digest=digest_of(secret), started_at=hub.now())
        )
    return secret


async def join_runner(hub: HubServices, secret: str, body: DeviceAuthorizationBody) -> JoinedDevice:
    """Make a device of what has the secret of a runner; raises `Problem`."""
    oldest = hub.now() - RUNNER_JOIN_SECONDS * _MILLISECONDS
    async with hub.events.change() as change:
        taken = (
            update(runners)
            .where(
                runners.c.secret_digest == digest_of(secret),
                runners.c.state == "starting",
                runners.c.started_at > oldest,
            )
            .values(secret_digest=None)
            .returning(runners)
        )
        row = (await change.connection.execute(taken)).mappings().one_or_none()
        person = None
        if row is not None:
            person = await people_records.find_person(change.connection, row["person_id"])
        if row is None or person is None or person["disabled_at"] is not None:
            raise Problem(401, "runner_secret_invalid", "the secret is unknown, used or expired")
        if body.edge_id is msgspec.UNSET:
            raise Problem(400, "invalid_request", "a runner names the id of its Edge")
        new = NewDevice(
            person_id=row["person_id"],
            person_name=person["name"],
            edge_id=body.edge_id,
            name=row["name"],
            platform=body.platform,
            version=body.version,
            agents=body.agents,
            kind="runner",
        )
        joined = await devices.adopt_device(hub, change, row["device_id"], new)
        online = (
            update(runners)
            .where(runners.c.runner_id == row["runner_id"])
            .values(state="online", active_at=change.now)
            .returning(runners)
        )
        row = (await change.connection.execute(online)).mappings().one()
        _tell_runner(change, row, "allocated", "joined")
    return joined


async def begin_release(
    hub: HubServices,
    runner_id: str,
    reason: str,
    origin: ActionOrigin = _SYSTEM,
    *,
    owner: str | None = None,
    idle_since: int | None = None,
) -> bool:
    """Have a runner end, unless it was used after `idle_since`; whoever keeps it stops its process.
    Returns whether it is to be stopped; raises `Problem` for one that the owner does not have.
    """
    async with hub.events.change() as change:
        row = await find_runner(change.connection, runner_id, owner)
        if row is None:
            raise unknown_runner()
        ending = (
            update(runners)
            .where(runners.c.runner_id == runner_id, runners.c.state.in_(("starting", "online")))
            .values(state="stopping", reason=reason, secret_digest=None)
            .returning(runners)
        )
        if idle_since is not None:
            ending = ending.where(
                runners.c.active_at <= idle_since, runners.c.device_id.not_in(_select_busy())
            )
        stopping = (await change.connection.execute(ending)).mappings().one_or_none()
        if stopping is not None:
            _tell_runner(change, stopping, "stopping", reason)
            await add_audit_entry(
                change.connection,
                change.now,
                "runner.released",
                origin,
                row["person_id"],
                runnerId=runner_id,
                reason=reason,
            )
    return stopping is not None or row["state"] == "stopping"


async def end_runner(hub: HubServices, runner_id: str, state: RunnerState, reason: str) -> None:
    """Note that the process of a runner is gone for good: its device ends, and its owner is told.
    One that was asked to stop keeps the reason for that.
    """
    async with hub.events.change() as change:
        row = await find_runner(change.connection, runner_id)
        if row is None or row["state"] in RUNNER_ENDS:
            return
        if row["state"] == "stopping":
            state, reason = "released", row["reason"]
        ended = (
            update(runners)
            .where(runners.c.runner_id == runner_id)
            .values(state=state, reason=reason, secret_digest=None, ended_at=change.now)
            .returning(runners)
        )
        row = (await change.connection.execute(ended)).mappings().one()
        if row["device_id"] is not None:
            device = await device_records.lock_own_device(change.connection, None, row["device_id"])
            if device is not None:
                await devices.end_device(change, device, reason, _SYSTEM)
            await _end_tasks(change, row["device_id"])
        _tell_runner(change, row, "released", reason)


async def _end_tasks(change: HubChange, device_id: str) -> None:
    """End what a runner was given: its Edge is gone for good, and nobody else knows how it went."""
    query = select(agent_tasks).where(
        agent_tasks.c.device_id == device_id, agent_tasks.c.status.not_in(TASK_ENDS)
    )
    for task in (await change.connection.execute(query)).mappings().all():
        if task["closing"] is not None:
            await tasks.close_unconfirmed(change, task, "device_revoked")
        else:
            detail = "the runner ended before it said what became of this task"
            await tasks.fail_task(change, task, "device_revoked", detail)


def _select_busy() -> Any:
    """The devices that have something to do."""
    return select(agent_tasks.c.device_id).where(
        agent_tasks.c.status.in_(("queued", "delivered", "running", "unknown"))
    )


async def note_activity(hub: HubServices, keeper_id: str) -> list[RowMapping]:
    """The runners of a data folder that have not ended, having noted which of them have a task."""
    now = hub.now()
    async with hub.database.write() as connection:
        await connection.execute(
            update(runners)
            .where(
                runners.c.keeper_id == keeper_id,
                runners.c.device_id.in_(_select_busy()),
                _is_open(),
            )
            .values(active_at=now)
        )
        return await list_kept(connection, keeper_id)


async def is_revoked(hub: HubServices, device_id: str) -> bool:
    """Whether the device of a runner was revoked meanwhile."""
    async with hub.database.read() as connection:
        return await device_records.lock_own_device(connection, None, device_id) is None


def unknown_runner() -> Problem:
    return Problem(404, "unknown_runner", "none of your runners has this id")
