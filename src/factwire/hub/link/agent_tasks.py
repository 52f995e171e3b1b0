"""Tasks: work that somebody gives to an agent on one device, from the request to its end.

The device of a task never changes. A task is queued until its device has it, and then it is what
its Edge says. The Hub closes a task at once only where the Edge cannot have begun it; everything
else it asks the Edge to stop, and the Edge's answer decides. Where none comes in a day, the Hub
closes the task with the reason, and what the Edge says later still counts. So every task ends.
`_MOVES` is the table of what may follow what. Every change of the row is told, in its transaction,
to everybody who may see the device, as an `agent.stream` event `task.updated` with the whole row.

An Edge that joins again is another device and the same Edge: it says how its former tasks ended,
and is asked to stop them. What its former device never got, it does not get.

A task on a target has the target's agent, project and folder. Only who may operate the whole device
chooses what a target leaves open, since a grant on a target is not one on its device.

Who may see, cancel or give a task is whoever may do so with its device, its thread or its target
now; that they gave it once is no right to what comes of it.

`create_task` is for other parts of a Hub, inside of a transaction of theirs.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Select, func, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import (
    UNSET,
    AgentCancel,
    AgentDispatch,
    AgentDone,
    AgentFailed,
    AgentTimeout,
    DispatchWorktree,
)
from factwire.facts.resources import (
    TASK_ENDS,
    AgentTask,
    GrantRole,
    TaskChanges,
    TaskClosing,
    TaskStatus,
)
from factwire.hub.frames.event_log import HubChange, audience_of
from factwire.hub.frames.frame_types import AgentStream
from factwire.hub.limits import (
    END_WAIT_SECONDS,
    STOP_SECONDS_MOST,
    STREAM_LOST_SECONDS,
    TASK_SECONDS,
    TASK_WAIT_SECONDS,
    TASKS_QUEUED,
)
from factwire.hub.link.deliveries import (
    MILLISECONDS,
    NewDelivery,
    add_delivery,
    requeue_stops,
    withdraw_dispatch,
)
from factwire.hub.people.accounts import new_id
from factwire.hub.people.devices import find_device_audiences, unknown_device
from factwire.hub.records.device_records import (
    find_current_device,
    is_of_edge,
    select_edge_id,
)
from factwire.hub.records.device_tables import devices
from factwire.hub.records.grant_records import NeededRight, may_access
from factwire.hub.records.hub_tables import people
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.link_tables import agent_tasks, deliveries, execution_targets
from factwire.hub.records.people_records import format_optional_time, format_time
from factwire.hub.teams.assignment_outcomes import note_route, note_task
from factwire.serving.asgi import Problem

CHAT: Final = "chat"
TASK_UPDATED: Final = "task.updated"

AgentMessages = Callable[[HubChange, "AgentTask", str, bool], Awaitable[None]]
"""Keeps the one message of a task's chat current: the text so far, and whether that is all."""


CLOSED_AS: Final[dict[TaskClosing, TaskStatus]] = {
    "cancel": "cancelled",
    "timeout": "timed_out",
    "expire": "expired",
}
"""Why a task was to stop → how it ends if its Edge has not begun it, or was stopped by that."""

_OPEN: Final = frozenset[TaskStatus]({"queued", "delivered", "running", "unknown", "dead"})
_MOVES: Final[dict[TaskStatus, frozenset[TaskStatus]]] = {
    "queued": _OPEN | set(TASK_ENDS),
    "delivered": frozenset({"running", "unknown", *TASK_ENDS}),
    "running": frozenset({"unknown", *TASK_ENDS}),
    "unknown": frozenset({"delivered", "running", *TASK_ENDS}),
    # A dead letter can be sent again, and a device that never acknowledged may have heard it.
    "dead": _OPEN | set(TASK_ENDS),
}


STREAM_OPEN: Final = 2**53
"""The time until which a run is followed that has not ended."""

_UNCONFIRMED: Final[dict[str, str]] = {
    "stop_unconfirmed": "the device was asked to stop this task and has not said what became of it",
    "device_revoked": "the device was revoked before it said what became of this task",
}
"""Why the Hub closes a task that its Edge may have begun → what people are told."""


def is_unconfirmed(row: RowMapping) -> bool:
    """Whether the Hub has closed a task without the word of its Edge, which may come later."""
    error = _read_json(row["error"]) or {}
    return row["status"] in CLOSED_AS.values() and error.get("code") in _UNCONFIRMED


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for; `screen_id` is the session of theirs that asks. Without
    `agent_instance_id`, the agent is known by its device and its name. What its target has need not
    be named.
    """

    person_id: str
    device_id: str
    prompt: str
    agent_type: str | None = None
    task_id: str | None = None
    target_id: str | None = None
    screen_id: str | None = None
    session_id: str | None = None
    agent_instance_id: str | None = None
    trigger_message_id: str | None = None
    display_name: str | None = None
    model_params: dict[str, Any] | None = None
    thread_id: str | None = None
    project_id: str | None = None
    work_dir: str | None = None
    team: dict[str, str] | None = None
    worktree: DispatchWorktree | None = None
    wait_seconds: int = TASK_WAIT_SECONDS
    timeout_seconds: int = TASK_SECONDS


def may_use_device(
    person_id: str,
    role: GrantRole,
    *,
    thread_id: ColumnElement[str] | str | None = None,
    target_id: ColumnElement[str] | str | None = None,
) -> ColumnElement[bool]:
    """The condition on a row of `devices` that somebody may do with it what a role allows, or with
    a thread or a target of it.
    """
    return may_access(person_id, role, devices.c.edge_id, thread_id=thread_id, target_id=target_id)


async def find_device(
    connection: AsyncConnection,
    person_id: str,
    device_id: str,
    role: GrantRole,
    *,
    thread_id: str | None = None,
    target_id: str | None = None,
) -> RowMapping:
    """A device that somebody may use so, or a thread or a target of it; raises `Problem`, the same
    for one that does not exist.
    """
    query = select(devices).where(
        devices.c.device_id == device_id,
        devices.c.revoked_at.is_(None),
        may_use_device(person_id, role, thread_id=thread_id, target_id=target_id),
    )
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        raise unknown_device()
    return row


def select_targets(person_id: str, role: GrantRole) -> Select[Any]:
    """Targets that somebody made, or that are shared with them so."""
    target = execution_targets.c
    shared = may_use_device(person_id, role, target_id=target.target_id)
    return (
        select(execution_targets)
        .outerjoin(devices, devices.c.device_id == target.device_id)
        .where(target.removed_at.is_(None), or_(target.person_id == person_id, shared))
    )


async def find_target(
    connection: AsyncConnection, person_id: str, target_id: str, role: GrantRole = "viewer"
) -> RowMapping:
    """A target that somebody may use so; raises `Problem`."""
    query = select_targets(person_id, role).where(execution_targets.c.target_id == target_id)
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        raise _unknown_target()
    return row


def _unknown_target() -> Problem:
    return Problem(404, "unknown_target", "no target that you may use so has this id")


_TARGET_FIELDS: Final = {"agent_type": "agent", "project_id": "project", "work_dir": "folder"}


async def apply_target(connection: AsyncConnection, new: NewTask) -> NewTask:
    """A task with what its target has; raises `Problem` for what the target does not allow."""
    if new.target_id is None:
        return new
    target = await find_target(connection, new.person_id, new.target_id, "operator")
    # One of a runner has no device of its own.
    if target["device_id"] not in (None, new.device_id):
        raise _unknown_target()
    has_device = await _operates_device(connection, new)
    choices: dict[str, str | None] = {}
    for name, word in _TARGET_FIELDS.items():
        value, target_value = getattr(new, name), target[name]
        is_open = target_value is None and has_device
        if value is not None and value != target_value and not is_open:
            raise _target_mismatch(f"the {word} of a task on this target is the target's alone")
        choices[name] = value if is_open else target_value
    if new.model_params and not has_device:
        raise _target_mismatch("only who may operate the whole device chooses model parameters")
    if new.thread_id is not None and not has_device:
        begun = select(agent_tasks.c.task_id).where(
            agent_tasks.c.person_id == new.person_id,
            agent_tasks.c.device_id == new.device_id,
            agent_tasks.c.target_id == new.target_id,
            agent_tasks.c.thread_id == new.thread_id,
        )
        if (await connection.execute(begun)).first() is None:
            raise _target_mismatch("you have not begun this thread through the target")
    return msgspec.structs.replace(new, **choices)


def _target_mismatch(detail: str) -> Problem:
    return Problem(403, "target_mismatch", detail)


def select_tasks(person_id: str, role: GrantRole) -> Select[Any]:
    """Tasks whose device, thread or target somebody may use so."""
    task = agent_tasks.c
    usable = may_use_device(person_id, role, thread_id=task.thread_id, target_id=task.target_id)
    return select(agent_tasks).join(devices, devices.c.device_id == task.device_id).where(usable)


async def find_task(
    connection: AsyncConnection, person_id: str, task_id: str, role: GrantRole = "viewer"
) -> RowMapping:
    """A task that somebody may see; raises `Problem`."""
    query = select_tasks(person_id, role).where(agent_tasks.c.task_id == task_id)
    row = (await connection.execute(query)).mappings().first()
    if row is None:
        raise Problem(404, "unknown_task", "no task that you may see has this id")
    return row


def to_task(row: RowMapping) -> AgentTask:
    return AgentTask(
        task_id=row["task_id"],
        person_id=row["person_id"],
        device_id=row["device_id"],
        agent_type=row["agent_type"],
        prompt=row["prompt"],
        status=row["status"],
        created_at=format_time(row["created_at"]),
        updated_at=format_time(row["updated_at"]),
        expires_at=format_time(row["expires_at"]),
        timeout_seconds=row["timeout_seconds"],
        target_id=row["target_id"],
        session_id=row["session_id"],
        agent_instance_id=row["agent_instance_id"],
        edge_run_id=row["edge_run_id"],
        thread_id=row["thread_id"],
        closing=row["closing"],
        result_summary=row["result_summary"],
        usage=_read_json(row["usage"]),
        error=_read_json(row["error"]),
        changes=None if row["changes"] is None else _CHANGES.decode(row["changes"]),
        delivered_at=format_optional_time(row["delivered_at"]),
        ended_at=format_optional_time(row["ended_at"]),
    )


_CHANGES: Final = msgspec.json.Decoder(TaskChanges)


def _read_json(text: str | None) -> dict[str, Any] | None:
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


async def find_audiences(change: HubChange, row: RowMapping) -> list[str]:
    """Who is told what its agent does: its chat, else everybody who may see the task."""
    if row["session_id"] is not None:
        return [audience_of(CHAT, row["session_id"])]
    return await _find_viewers(change, row)


async def _find_viewers(change: HubChange, row: RowMapping) -> list[str]:
    """Everybody who may see a task: those who see its device, its thread or its target."""
    query = select(devices).where(devices.c.device_id == row["device_id"])
    device = (await change.connection.execute(query)).mappings().one()
    right = NeededRight(role="viewer", thread_id=row["thread_id"], target_id=row["target_id"])
    return await find_device_audiences(change.connection, device, right)


async def create_task(change: HubChange, new: NewTask, origin: ActionOrigin) -> AgentTask:
    """Queue a task for its device; one with this id already is the one that was asked for before.
    Raises `Problem`.
    """
    task_id = new.task_id or new_id("tsk")
    known = select(agent_tasks).where(
        agent_tasks.c.task_id == task_id, agent_tasks.c.person_id == new.person_id
    )
    repeated = (await change.connection.execute(known)).mappings().first()
    if repeated is not None:
        return to_task(repeated)
    new = await apply_target(change.connection, new)
    if new.agent_type is None:
        raise Problem(400, "agent_required", "name an agent: the target has none")
    device = await find_device(
        change.connection,
        new.person_id,
        new.device_id,
        "operator",
        thread_id=new.thread_id,
        target_id=new.target_id,
    )
    await _ensure_own_choices(change.connection, new)
    offered = msgspec.json.decode(device["agents"], type=list[str])
    # What a runner offers is known once it has joined; until then, its Edge answers.
    is_unknown = device["kind"] == "runner" and not offered
    if not is_unknown and new.agent_type not in offered:
        raise Problem(
            409, "agent_not_offered", f"this device does not offer the agent {new.agent_type!r}"
        )
    if not new.prompt.strip():
        raise Problem(400, "prompt_empty", "say what the agent is to do: the prompt is empty")
    await _ensure_room(change.connection, new.device_id)
    agent = new.agent_instance_id or f"{new.device_id}/{new.agent_type}"
    expires = change.now + new.wait_seconds * MILLISECONDS
    await change.connection.execute(
        insert(agent_tasks).values(
            task_id=task_id,
            person_id=new.person_id,
            device_id=new.device_id,
            target_id=new.target_id,
            session_id=new.session_id,
            agent_instance_id=agent,
            trigger_message_id=new.trigger_message_id,
            agent_type=new.agent_type,
            prompt=new.prompt,
            team=None if new.team is None else msgspec.json.encode(new.team).decode(),
            status="queued",
            thread_id=new.thread_id,
            stream_seq=0,
            timeout_seconds=new.timeout_seconds,
            created_at=change.now,
            updated_at=change.now,
            expires_at=expires,
        )
    )
    delivery_id = new_id("dlv")
    dispatch = AgentDispatch(
        task_id=task_id,
        delivery_id=delivery_id,
        agent_instance_id=agent,
        agent_type=new.agent_type,
        session_id=new.session_id or "",
        prompt=new.prompt,
        trigger_message_id=new.trigger_message_id or "",
        trigger_user_id=new.person_id,
        display_name=new.display_name or new.agent_type,
        edge_device_id=new.device_id,
        person=await describe_person(change.connection, new.person_id, new.screen_id),
        model_params=new.model_params if new.model_params is not None else UNSET,
        target_id=new.target_id or UNSET,
        thread_id=new.thread_id or UNSET,
        project_id=new.project_id or UNSET,
        work_dir=new.work_dir or UNSET,
        worktree=new.worktree or UNSET,
        **(new.team or {}),
    )
    await add_delivery(
        change,
        NewDelivery(
            delivery_id=delivery_id,
            device_id=new.device_id,
            person_id=new.person_id,
            kind="dispatch",
            payload=dispatch,
            right=NeededRight(role="operator", thread_id=new.thread_id, target_id=new.target_id),
            task_id=task_id,
            # It is given up with its task, which knows whether the device may have heard of it.
            expires_at=expires + STOP_SECONDS_MOST * MILLISECONDS,
        ),
    )
    await _audit(
        change, "task.created", origin, task_id, deviceId=new.device_id, agentType=new.agent_type
    )
    return await publish_task(change, task_id)


async def _audit(
    change: HubChange, action: str, origin: ActionOrigin, task_id: str, **details: str
) -> None:
    await add_audit_entry(change.connection, change.now, action, origin, task_id, **details)


async def _ensure_own_choices(connection: AsyncConnection, new: NewTask) -> None:
    """Raises `Problem` where somebody who may operate a thread alone chooses for the device."""
    is_choosing = new.project_id or new.work_dir or new.model_params
    if new.target_id is not None or new.thread_id is None or not is_choosing:
        return
    if not await _operates_device(connection, new):
        raise Problem(
            403,
            "insufficient_grant",
            "only who may operate the whole device chooses a project, a folder or model parameters",
        )


async def _operates_device(connection: AsyncConnection, new: NewTask) -> bool:
    operated = select(devices.c.device_id).where(
        devices.c.device_id == new.device_id, may_use_device(new.person_id, "operator")
    )
    return (await connection.execute(operated)).first() is not None


async def _ensure_room(connection: AsyncConnection, device_id: str) -> None:
    query = select(func.count()).where(
        agent_tasks.c.device_id == device_id, agent_tasks.c.status == "queued"
    )
    if (await connection.execute(query)).scalar_one() >= TASKS_QUEUED:
        raise Problem(
            429,
            "device_queue_full",
            f"{TASKS_QUEUED} tasks wait for this device; cancel some, or wait until it is back",
            headers={"retry-after": "60"},
        )


async def describe_person(
    connection: AsyncConnection, person_id: str, screen_id: str | None = None
) -> dict[str, Any]:
    """Somebody, as the facts of an Edge name them."""
    query = select(people.c.name).where(people.c.person_id == person_id)
    name: str = (await connection.execute(query)).scalar_one()
    person = {"name": name, "via": "hub", "userId": person_id}
    return person if screen_id is None else {**person, "deviceId": screen_id}


async def publish_task(change: HubChange, task_id: str) -> AgentTask:
    """Tell those who may see a task how it is now."""
    query = select(agent_tasks).where(agent_tasks.c.task_id == task_id)
    row = (await change.connection.execute(query)).mappings().one()
    task = to_task(row)
    updated = AgentStream(
        id=new_id("evt"),
        task_id=task_id,
        edge_run_id=row["edge_run_id"] or "",
        session_id=row["session_id"] or "",
        agent_instance_id=row["agent_instance_id"],
        event_seq=row["stream_seq"],
        event_type=TASK_UPDATED,
        payload=msgspec.to_builtins(task),
        created_at=format_time(change.now),
    )
    for audience in await _find_viewers(change, row):
        change.emit(audience, "agent.stream", updated)
    return task


async def move_task(
    change: HubChange, row: RowMapping, status: TaskStatus, **values: Any
) -> AgentTask | None:
    """Give a task another status, unless it has come further than that; None then."""
    moves = frozenset(TASK_ENDS) if is_unconfirmed(row) else _MOVES.get(row["status"], frozenset())
    if status not in moves:
        return None
    ended = change.now if status in TASK_ENDS else None
    if values.get("edge_run_id", row["edge_run_id"]) is not None:
        until = row["stream_until"] or STREAM_OPEN
        lost = change.now + STREAM_LOST_SECONDS * MILLISECONDS
        values["stream_until"] = until if ended is None else min(until, lost)
    done = await change.connection.execute(
        update(agent_tasks)
        .where(
            agent_tasks.c.task_id == row["task_id"],
            agent_tasks.c.status == row["status"],
        )
        .values(status=status, updated_at=change.now, ended_at=ended, **values)
    )
    if done.rowcount != 1:
        return None
    task = await publish_task(change, row["task_id"])
    await note_task(change, row, task)
    return task


async def cancel_task(
    change: HubChange,
    person_id: str,
    task_id: str,
    origin: ActionOrigin,
    screen_id: str | None = None,
) -> AgentTask:
    """Stop a task, or never begin it. The same again is sent again, if its device did not
    acknowledge it. Raises `Problem`.
    """
    row = await find_task(change.connection, person_id, task_id, "operator")
    if row["status"] in TASK_ENDS:
        if row["status"] == "cancelled":
            return to_task(row)
        raise Problem(409, "task_ended", f"the task is already {row['status']}")
    if row["closing"] == "cancel":
        await requeue_stops(change.connection, change.now, deliveries.c.task_id == task_id)
        return to_task(row)
    by = await describe_person(change.connection, person_id, screen_id)
    await _audit(change, "task.cancelled", origin, task_id, deviceId=row["device_id"])
    return await stop_task(change, row, "cancel", by, person_id)


async def stop_task(
    change: HubChange,
    row: RowMapping,
    why: TaskClosing,
    by: dict[str, Any] | None = None,
    person_id: str | None = None,
) -> AgentTask:
    """Close a task of which its device has not heard, or have the device stop it."""
    task_id: str = row["task_id"]
    is_dispatched = row["delivered_at"] is not None
    if not is_dispatched and await withdraw_dispatch(change.connection, task_id, change.now):
        closed = await move_task(change, row, CLOSED_AS[why], closing=why)
        return closed or to_task(row)
    await change.connection.execute(
        update(agent_tasks)
        .where(agent_tasks.c.task_id == task_id)
        .values(
            closing=why,
            closing_at=func.coalesce(agent_tasks.c.closing_at, change.now),
            updated_at=change.now,
        )
    )
    await send_stop(change, row, why, by, person_id)
    return await publish_task(change, task_id)


async def send_stop(
    change: HubChange,
    row: RowMapping,
    why: TaskClosing,
    by: dict[str, Any] | None = None,
    person_id: str | None = None,
) -> None:
    """Have the Edge of a task stop it, as the device that it is now."""
    task_id, delivery_id = row["task_id"], new_id("dlv")
    device = await find_current_device(change.connection, select_edge_id(row["device_id"]))
    payload = (
        AgentTimeout(task_id=task_id, delivery_id=delivery_id)
        if why == "timeout"
        else AgentCancel(task_id=task_id, delivery_id=delivery_id, person=by or UNSET)
    )
    await add_delivery(
        change,
        NewDelivery(
            delivery_id=delivery_id,
            device_id=row["device_id"] if device is None else device["device_id"],
            person_id=person_id or row["person_id"],
            kind="timeout" if why == "timeout" else "cancel",
            payload=payload,
            right=None,
            task_id=task_id,
            expires_at=change.now + STOP_SECONDS_MOST * MILLISECONDS,
        ),
    )


async def requeue_task(change: HubChange, task_id: str | None) -> None:
    """Have a task that was given up as a dead letter wait for its device again."""
    query = select(agent_tasks).where(
        agent_tasks.c.task_id == task_id, agent_tasks.c.status == "dead"
    )
    row = (await change.connection.execute(query)).mappings().first()
    if row is not None:
        await move_task(change, row, "queued")


async def close_unbegun(change: HubChange, row: RowMapping, code: str) -> None:
    """Close a task that was to stop, and of which its device knows nothing."""
    closing: TaskClosing = row["closing"] or "cancel"
    error = {"code": code, "message": "the device has no run of this task"}
    await move_task(change, row, CLOSED_AS[closing], error=_to_json(error))


async def close_unconfirmed(change: HubChange, row: RowMapping, code: str) -> None:
    """Close a task that was to stop, and of which its device has said nothing since."""
    if row["status"] not in TASK_ENDS:
        error = {"code": code, "message": _UNCONFIRMED[code]}
        closing: TaskClosing = row["closing"] or "cancel"
        await move_task(change, row, CLOSED_AS[closing], error=_to_json(error))


async def take_end(
    change: HubChange, device_id: str, end: AgentDone | AgentFailed, *, has_mirror: bool = False
) -> AgentTask | None:
    """Close a task by what its Edge says; None where it is closed already, or not of this Edge. The
    same again changes nothing. Where a mirror may bring more of the run, the frame of the end waits
    for that, in the row.
    """
    query = select(agent_tasks).where(
        agent_tasks.c.task_id == end.task_id, is_of_edge(agent_tasks.c.device_id, device_id)
    )
    row = (await change.connection.execute(query)).mappings().first()
    if row is None:
        return None
    # An end may come before the acknowledgement of the task, which a kill can delay.
    changed = {
        "edge_run_id": row["edge_run_id"] if end.edge_run_id is UNSET else end.edge_run_id,
        "thread_id": row["thread_id"] if end.thread_id is UNSET else end.thread_id,
        **_read_changes(end),
    }
    if isinstance(end, AgentDone):
        if end.route_decision is not UNSET:
            await note_route(change, end.task_id, end.route_decision)
        moved = await move_task(
            change,
            row,
            "done",
            **changed,
            result_summary=end.result_summary,
            usage=_to_json(end.usage),
            error=None,
        )
    else:
        moved = await move_task(
            change,
            row,
            _status_of_error(end.error),
            **changed,
            usage=None if end.usage is UNSET else _to_json(end.usage),
            error=_to_json(end.error),
        )
    if moved is None:
        return None
    end = msgspec.structs.replace(end, diff=UNSET)
    frame = _HeldEnd(done=end) if isinstance(end, AgentDone) else _HeldEnd(failed=end)
    due = change.now + END_WAIT_SECONDS * MILLISECONDS
    own = agent_tasks.c.task_id == end.task_id
    await change.connection.execute(
        update(agent_tasks).where(own).values(end_frame=_to_json(frame), end_due_at=due)
    )
    follows = select(agent_tasks.c.task_id).where(own, agent_tasks.c.stream_until > change.now)
    if not has_mirror or (await change.connection.execute(follows)).first() is None:
        await emit_end(change, end.task_id)
    return moved


def _read_changes(end: AgentDone | AgentFailed) -> dict[str, str]:
    """What the row of a task has of what it changed."""
    found = {} if end.changes is UNSET else {"changes": _to_json(end.changes)}
    return found if end.diff is UNSET else {**found, "diff": end.diff}


class _HeldEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The frame of an end, in the row of its task."""

    done: AgentDone | None = None
    failed: AgentFailed | None = None


async def emit_end(change: HubChange, task_id: str) -> None:
    """Emit the end of a task that waits in its row, once."""
    query = select(agent_tasks).where(agent_tasks.c.task_id == task_id).with_for_update()
    row = (await change.connection.execute(query)).mappings().one()
    if row["end_frame"] is None:
        return
    held = msgspec.json.decode(row["end_frame"], type=_HeldEnd)
    await change.connection.execute(
        update(agent_tasks)
        .where(agent_tasks.c.task_id == task_id)
        .values(end_frame=None, end_due_at=None)
    )
    for audience in await find_audiences(change, row):
        if held.done is not None:
            change.emit(audience, "agent.done", held.done)
        if held.failed is not None:
            change.emit(audience, "agent.failed", held.failed)


_ERROR_STATUSES: Final[dict[str, TaskStatus]] = {
    "cancelled": "cancelled",
    "timed_out": "timed_out",
}


def _status_of_error(error: dict[str, Any]) -> TaskStatus:
    return _ERROR_STATUSES.get(str(error.get("code")), "failed")


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def fail_task(change: HubChange, row: RowMapping, code: str, message: str) -> None:
    """Close a task that its Edge refused."""
    error = {"code": code, "message": message}
    if await move_task(change, row, "failed", error=_to_json(error)) is not None:
        failed = AgentFailed(task_id=row["task_id"], error=error)
        for audience in await find_audiences(change, row):
            change.emit(audience, "agent.failed", failed)
