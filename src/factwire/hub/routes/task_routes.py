"""Tasks of agents, the targets that they are given to, and the queues of devices."""

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, delete, get, patch, post, put
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import (
    HTTP_200_OK,
    HTTP_201_CREATED,
    HTTP_202_ACCEPTED,
    HTTP_204_NO_CONTENT,
)
from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import RelayAnswer
from factwire.edge.routes.run_routes import WaitSeconds
from factwire.facts.resources import (
    TASK_ENDS,
    AgentTask,
    Approval,
    DeviceDelivery,
    Page,
    TaskStatus,
)
from factwire.hub.approvals.approval_decisions import retry_decision
from factwire.hub.device_resources import DeviceName, StatePage
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.hub_resources import HubBody, HubPage, HubResource
from factwire.hub.limits import (
    APPROVERS_MOST,
    TASK_NAME_CHARACTERS,
    TASK_PARAMS_BYTES,
    TASK_PATH_CHARACTERS,
    TASK_POLL_SECONDS,
    TASK_PROMPT_CHARACTERS,
    TASK_SECONDS,
    TASK_SECONDS_MOST,
    TASK_WAIT_SECONDS,
    TASK_WAIT_SECONDS_MOST,
)
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.link.agent_tasks import NewTask, may_use_device
from factwire.hub.link.deliveries import may_send, retry_delivery, to_delivery
from factwire.hub.link.relay import RELAY_PROBLEM_CODES, read_answer
from factwire.hub.link.task_streams import TaskEventPage
from factwire.hub.mirror.mirror_store import UnknownEdge
from factwire.hub.people.accounts import new_id
from factwire.hub.people.passwords import normalize_name
from factwire.hub.records.device_tables import devices
from factwire.hub.records.invitation_records import add_audit_entry
from factwire.hub.records.link_tables import OPEN_STATES, agent_tasks, deliveries, execution_targets
from factwire.hub.records.people_records import fetch_page, format_time
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    link_of,
    origin_of,
    runners_of,
    services_of,
)
from factwire.serving.asgi import Problem
from factwire.serving.limits import PAGE_ITEMS, PAGE_ITEMS_MOST
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit
from factwire.serving.rest import declare_bytes

TargetKind = Literal["device", "runner"]

_Approvals = Annotated[int, msgspec.Meta(ge=1, le=APPROVERS_MOST)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=TASK_NAME_CHARACTERS)]
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=TASK_PATH_CHARACTERS)]
_Prompt = Annotated[str, msgspec.Meta(max_length=TASK_PROMPT_CHARACTERS)]
_Unset = msgspec.UnsetType


class TaskBody(HubBody, frozen=True, kw_only=True):
    """Work for an agent: on a device, or on a target, which is a device or a runner, and what else
    it has. `expiresIn` is how long it waits for the device, `timeout` how long it may take, both in
    seconds.
    """

    prompt: _Prompt
    device_id: _Name | None = None
    target_id: _Name | None = None
    agent_type: _Name | None = None
    thread_id: _Name | None = None
    project_id: _Name | None = None
    work_dir: _Path | None = None
    model_params: dict[str, Any] | None = None
    expires_in: Annotated[int, msgspec.Meta(ge=1, le=TASK_WAIT_SECONDS_MOST)] = TASK_WAIT_SECONDS
    timeout: Annotated[int, msgspec.Meta(ge=1, le=TASK_SECONDS_MOST)] = TASK_SECONDS

    def __post_init__(self) -> None:
        if (self.device_id is None) == (self.target_id is None):
            raise ValueError("name either deviceId or targetId")
        if len(msgspec.json.encode(self.model_params)) > TASK_PARAMS_BYTES:
            raise ValueError(f"modelParams must have at most {TASK_PARAMS_BYTES} bytes")


class TargetBody(HubBody, frozen=True, kw_only=True):
    """A device, or a runner that the Hub starts for you when there is a task. Several people must
    allow what its tasks ask if `approvalsRequired` says so, or the device or the Hub does.
    """

    name: DeviceName
    kind: TargetKind = "device"
    device_id: _Name | None = None
    agent_type: _Name | None = None
    project_id: _Name | None = None
    work_dir: _Path | None = None
    approvals_required: _Approvals | None = None

    def __post_init__(self) -> None:
        if (self.device_id is None) == (self.kind == "device"):
            raise ValueError("name deviceId for a device, and none for a runner")


class TargetChange(HubBody, frozen=True, kw_only=True):
    """The device of a target stays as it is; another device is another target."""

    name: DeviceName | _Unset = msgspec.UNSET
    agent_type: _Name | _Unset | None = msgspec.UNSET
    project_id: _Name | _Unset | None = msgspec.UNSET
    work_dir: _Path | _Unset | None = msgspec.UNSET
    approvals_required: _Approvals | _Unset | None = msgspec.UNSET


class ExecutionTarget(HubResource, frozen=True, kw_only=True):
    """A device, or a runner of whoever made it, with what tasks on it have in common."""

    target_id: str
    name: str
    kind: TargetKind
    person_id: str
    created_at: str
    device_id: str | None = None
    approvals_required: int | None = None
    agent_type: str | None = None
    project_id: str | None = None
    work_dir: str | None = None


def _to_target(row: RowMapping) -> ExecutionTarget:
    return ExecutionTarget(
        target_id=row["target_id"],
        name=row["name"],
        kind="runner" if row["device_id"] is None else "device",
        device_id=row["device_id"],
        approvals_required=row["approvals_required"],
        person_id=row["person_id"],
        created_at=format_time(row["created_at"]),
        agent_type=row["agent_type"],
        project_id=row["project_id"],
        work_dir=row["work_dir"],
    )


@get("/v1/agent-tasks", tags=["agent tasks"])
async def list_agent_tasks(
    request: HubRequest,
    device_id: Annotated[str | None, QueryParameter(name="deviceId")] = None,
    status: FromQuery[TaskStatus | None] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> StatePage[AgentTask]:
    """List the tasks of devices, threads and targets that you may see; newest first."""
    query = tasks.select_tasks(caller_of(request).person_id, "viewer")
    if device_id is not None:
        query = query.where(agent_tasks.c.device_id == clean_id(device_id))
    if status is not None:
        query = query.where(agent_tasks.c.status == status)
    async with services_of(request).database.read() as connection:
        order = (agent_tasks.c.created_at, agent_tasks.c.task_id)
        rows, following = await fetch_page(connection, query, order, after, limit)
        as_of = await read_cursor(connection)
    return StatePage(items=[tasks.to_task(row) for row in rows], next=following, as_of=as_of)


@post("/v1/agent-tasks", status_code=HTTP_202_ACCEPTED, tags=["agent tasks"])
async def create_agent_task(request: HubRequest, data: JSONBody[TaskBody]) -> AgentTask:
    """Give a task to an agent on one device. It waits for that device, and for no other. A target
    that is a runner names a device by this: a runner of yours, which is started if you have none.
    """
    caller, task_id = caller_of(request), id_from_key(request, "tsk")
    async with services_of(request).events.change() as change:
        target = await _find_task_target(change.connection, caller.person_id, data)
        device_id = data.device_id or target["device_id"]
        if device_id is None:
            device_id = await _find_runner_device(request, change, task_id, target["name"])
        new = NewTask(
            task_id=task_id,
            person_id=caller.person_id,
            screen_id=caller.session_id,
            device_id=clean_id(device_id),
            target_id=target.get("target_id"),
            agent_type=data.agent_type,
            prompt=data.prompt,
            thread_id=data.thread_id,
            project_id=data.project_id,
            work_dir=data.work_dir,
            model_params=data.model_params,
            wait_seconds=data.expires_in,
            timeout_seconds=data.timeout,
        )
        task = await tasks.create_task(change, new, origin_of(request))
    runners_of(request).wake()
    return task


async def _find_runner_device(
    request: HubRequest, change: HubChange, task_id: str | None, name: str
) -> str:
    """The device of a runner for a task; one that is asked for again has its runner."""
    caller = caller_of(request)
    known = select(agent_tasks.c.device_id).where(
        agent_tasks.c.task_id == task_id, agent_tasks.c.person_id == caller.person_id
    )
    device_id: str | None = (await change.connection.execute(known)).scalar_one_or_none()
    if device_id is None:
        runner = await runners_of(request).acquire(change, caller, name, origin_of(request))
        device_id = runner.device_id or ""
    return device_id


async def _find_task_target(
    connection: AsyncConnection, person_id: str, data: TaskBody
) -> dict[str, Any]:
    if data.target_id is None:
        return {}
    return dict(
        await tasks.find_target(connection, person_id, clean_id(data.target_id), "operator")
    )


@get("/v1/agent-tasks/{task_id:str}", tags=["agent tasks"])
async def read_agent_task(
    request: HubRequest, task_id: FromPath[str], wait: WaitSeconds = 0
) -> AgentTask:
    """Get a task; with `wait`, as soon as it has ended."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while True:
        row = await _read_task(request, task_id)
        if row["status"] in TASK_ENDS or loop.time() >= until:
            return tasks.to_task(row)
        # Its end may come to another process, so the database is asked.
        await asyncio.sleep(min(TASK_POLL_SECONDS, until - loop.time()))


async def _read_task(request: HubRequest, task_id: str) -> RowMapping:
    async with services_of(request).database.read() as connection:
        return await tasks.find_task(connection, caller_of(request).person_id, clean_id(task_id))


async def _find_run(request: HubRequest, task_id: str) -> tuple[str, str]:
    """The Edge and the run of a task; raises `Problem`."""
    row = await _read_task(request, task_id)
    query = select(devices.c.edge_id).where(devices.c.device_id == row["device_id"])
    async with services_of(request).database.read() as connection:
        edge_id: str = (await connection.execute(query)).scalar_one()
    if row["edge_run_id"] is None:
        raise _not_begun()
    return edge_id, row["edge_run_id"]


def _not_begun() -> Problem:
    return Problem(409, "task_not_begun", "the device has not begun this task, or not reported it")


@get("/v1/agent-tasks/{task_id:str}/events", tags=["agent tasks"])
async def read_task_events(
    request: HubRequest,
    task_id: FromPath[str],
    after_seq: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MOST)] = PAGE_ITEMS,
) -> TaskEventPage:
    """List what the agent of a task did, oldest first, as far as the mirror of its Edge is."""
    edge_id, run_id = await _find_run(request, task_id)
    try:
        return await link_of(request).streams.read_events(edge_id, run_id, after_seq, limit)
    except UnknownEdge as error:
        raise _not_begun() from error


@get("/v1/agent-tasks/{task_id:str}/approvals", tags=["agent tasks"])
async def list_task_approvals(request: HubRequest, task_id: FromPath[str]) -> Page[Approval]:
    """List what the agent of a task asked, newest first, as far as the mirror of its Edge is."""
    edge_id, run_id = await _find_run(request, task_id)
    try:
        return await link_of(request).streams.list_approvals(edge_id, run_id)
    except UnknownEdge as error:
        raise _not_begun() from error


@post("/v1/agent-tasks/{task_id:str}/:cancel", status_code=HTTP_202_ACCEPTED, tags=["agent tasks"])
async def cancel_agent_task(request: HubRequest, task_id: FromPath[str]) -> AgentTask:
    """Cancel a task: at once while its device has not heard of it, else through the device."""
    caller = caller_of(request)
    async with services_of(request).events.change() as change:
        return await tasks.cancel_task(
            change, caller.person_id, clean_id(task_id), origin_of(request), caller.session_id
        )


@get("/v1/execution-targets", tags=["execution targets"])
async def list_execution_targets(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[ExecutionTarget]:
    """List your targets, and those that are shared with you; newest first."""
    target = execution_targets.c
    query = tasks.select_targets(caller_of(request).person_id, "viewer")
    async with services_of(request).database.read() as connection:
        order = (target.created_at, target.target_id)
        rows, following = await fetch_page(connection, query, order, after, limit)
    return HubPage(items=[_to_target(row) for row in rows], next=following)


@post("/v1/execution-targets", status_code=HTTP_201_CREATED, tags=["execution targets"])
async def create_execution_target(
    request: HubRequest, data: JSONBody[TargetBody]
) -> ExecutionTarget:
    """Create a target: a device or a runner under a name, with an agent, a project or a folder."""
    hub, person_id = services_of(request), caller_of(request).person_id
    target_id = id_from_key(request, "tgt") or new_id("tgt")
    own = select(execution_targets).where(
        execution_targets.c.target_id == target_id, execution_targets.c.person_id == person_id
    )
    async with hub.database.write() as connection:
        known = (await connection.execute(own)).mappings().first()
        if known is not None:
            return _to_target(known)
        if data.device_id is not None:
            await tasks.find_device(connection, person_id, clean_id(data.device_id), "operator")
        values = {**msgspec.structs.asdict(data), "target_id": target_id, "person_id": person_id}
        values["name"] = normalize_name(data.name)
        del values["kind"]
        await connection.execute(insert(execution_targets).values(**values, created_at=hub.now()))
        await _audit_target(request, connection, "target.created", target_id)
        return _to_target((await connection.execute(own)).mappings().one())


async def _audit_target(
    request: HubRequest, connection: AsyncConnection, action: str, target_id: str
) -> None:
    now = services_of(request).now()
    await add_audit_entry(connection, now, action, origin_of(request), target_id)


async def _find_own_target(
    connection: AsyncConnection, person_id: str, target_id: str
) -> RowMapping:
    row = await tasks.find_target(connection, person_id, target_id)
    if row["person_id"] != person_id:
        raise Problem(403, "insufficient_grant", "only who made a target may change it")
    return row


@get("/v1/execution-targets/{target_id:str}", tags=["execution targets"])
async def read_execution_target(request: HubRequest, target_id: FromPath[str]) -> ExecutionTarget:
    """Get a target."""
    async with services_of(request).database.read() as connection:
        person_id = caller_of(request).person_id
        return _to_target(await tasks.find_target(connection, person_id, clean_id(target_id)))


@patch("/v1/execution-targets/{target_id:str}", tags=["execution targets"])
async def change_execution_target(
    request: HubRequest, target_id: FromPath[str], data: JSONBody[TargetChange]
) -> ExecutionTarget:
    """Change one of your targets; tasks that were given before stay as they are."""
    person_id = caller_of(request).person_id
    fields = msgspec.structs.asdict(data)
    values = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    if data.name is not msgspec.UNSET:
        values["name"] = normalize_name(data.name)
    async with services_of(request).database.write() as connection:
        row = await _find_own_target(connection, person_id, clean_id(target_id))
        if row["device_id"] is not None:
            # Else who made it, and has it shared with them alone, could widen it to the device.
            await tasks.find_device(connection, person_id, row["device_id"], "operator")
        own = execution_targets.c.target_id == row["target_id"]
        if values:
            await connection.execute(update(execution_targets).where(own).values(**values))
            await _audit_target(request, connection, "target.changed", row["target_id"])
        return _to_target(await tasks.find_target(connection, person_id, row["target_id"]))


@delete(
    "/v1/execution-targets/{target_id:str}",
    status_code=HTTP_204_NO_CONTENT,
    tags=["execution targets"],
)
async def remove_execution_target(request: HubRequest, target_id: FromPath[str]) -> None:
    """Remove one of your targets; tasks that were given before stay as they are."""
    hub, person_id = services_of(request), caller_of(request).person_id
    async with hub.database.write() as connection:
        row = await _find_own_target(connection, person_id, clean_id(target_id))
        own = execution_targets.c.target_id == row["target_id"]
        change = update(execution_targets).where(own).values(removed_at=hub.now())
        await connection.execute(change)
        await _audit_target(request, connection, "target.removed", row["target_id"])


@get("/v1/devices/{device_id:str}/deliveries", tags=["deliveries"])
async def list_device_deliveries(
    request: HubRequest,
    device_id: FromPath[str],
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> HubPage[DeviceDelivery]:
    """List what waits for a device, newest first."""
    async with services_of(request).database.read() as connection:
        person_id = caller_of(request).person_id
        device = await tasks.find_device(connection, person_id, clean_id(device_id), "operator")
        query = select(deliveries).where(
            deliveries.c.device_id == device["device_id"], deliveries.c.state.in_(OPEN_STATES)
        )
        order = (deliveries.c.created_at, deliveries.c.delivery_id)
        rows, following = await fetch_page(connection, query, order, after, limit)
    return HubPage(items=[to_delivery(row) for row in rows], next=following)


@get("/v1/dead-letters", tags=["deliveries"])
async def list_dead_letters(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[DeviceDelivery]:
    """List what devices of yours did not acknowledge, newest first."""
    query = _select_dead(caller_of(request).person_id)
    async with services_of(request).database.read() as connection:
        order = (deliveries.c.created_at, deliveries.c.delivery_id)
        rows, following = await fetch_page(connection, query, order, after, limit)
    return HubPage(items=[to_delivery(row) for row in rows], next=following)


def _select_dead(person_id: str) -> Any:
    return (
        select(deliveries)
        .join(devices, devices.c.device_id == deliveries.c.device_id)
        .where(deliveries.c.state == "dead", may_use_device(person_id, "operator"))
    )


@post("/v1/dead-letters/{delivery_id:str}/:retry", status_code=HTTP_200_OK, tags=["deliveries"])
async def retry_dead_letter(request: HubRequest, delivery_id: FromPath[str]) -> DeviceDelivery:
    """Send something again that a device did not acknowledge; the device does it once at most."""
    person_id, chosen = caller_of(request).person_id, clean_id(delivery_id)
    query = _select_dead(person_id).where(deliveries.c.delivery_id == chosen)
    async with services_of(request).events.change() as change:
        row = (await change.connection.execute(query)).mappings().first()
        if row is None:
            raise Problem(404, "unknown_delivery", "no dead letter of yours has this id")
        sent = await retry_delivery(change, row)
        await tasks.requeue_task(change, row["task_id"])
        await retry_decision(change, chosen)
        await add_audit_entry(
            change.connection,
            change.now,
            "delivery.retried",
            origin_of(request),
            chosen,
            deviceId=row["device_id"],
        )
        return to_delivery(sent)


@get("/v1/deliveries/{delivery_id:str}", tags=["deliveries"])
async def read_delivery(request: HubRequest, delivery_id: FromPath[str]) -> DeviceDelivery:
    """Get something that you sent to a device, and what became of it."""
    return to_delivery(await _find_own_delivery(request, delivery_id))


@get(
    "/v1/deliveries/{delivery_id:str}/answer",
    tags=["deliveries"],
    opt=declare_bytes(),
)
async def read_delivery_answer(request: HubRequest, delivery_id: FromPath[str]) -> Response[bytes]:
    """Get the answer of a device to a request of yours that waited for it, with the status and the
    content that the device answered; 202 with the delivery until then. It is kept for 10 minutes,
    for as long as you may ask the device for it.
    """
    row = await _find_own_delivery(request, delivery_id, deliveries.c.kind == "relay", may_send())
    answer = read_answer(row)
    headers = {"content-type": "application/json", **answer.headers}
    media_type = headers.pop("content-type")
    return Response(
        answer.content, status_code=answer.status, headers=headers, media_type=media_type
    )


async def _find_own_delivery(
    request: HubRequest, delivery_id: str, *conditions: ColumnElement[bool]
) -> RowMapping:
    query = select(deliveries).where(
        deliveries.c.delivery_id == clean_id(delivery_id),
        deliveries.c.person_id == caller_of(request).person_id,
        *conditions,
    )
    async with services_of(request).database.read() as connection:
        row = (await connection.execute(query)).mappings().first()
    if row is None:
        raise _unknown_delivery()
    return row


def _unknown_delivery() -> Problem:
    return Problem(404, "unknown_delivery", "no delivery of yours has this id")


class UploadedAnswer(HubBody, frozen=True, kw_only=True):
    """A device's answer to a relayed request; `content` is in base64."""

    status: Annotated[int, msgspec.Meta(ge=100, le=599)]
    headers: dict[str, str]
    content: bytes


@put(
    "/v1/deliveries/{delivery_id:str}/answer",
    status_code=HTTP_204_NO_CONTENT,
    tags=["deliveries"],
)
async def take_delivery_answer(
    request: HubRequest, delivery_id: FromPath[str], data: JSONBody[UploadedAnswer]
) -> None:
    """Upload the answer to a relayed request; for the device that was asked."""
    device_id = caller_of(request).device_id or "-"
    answer = RelayAnswer(status=data.status, headers=data.headers, content=data.content)
    if not await link_of(request).link.take_answer(device_id, clean_id(delivery_id), answer):
        raise Problem(404, "unknown_delivery", "this device has no delivery with this id")


GROUP = RouteGroup(
    handlers=[
        list_agent_tasks,
        create_agent_task,
        read_agent_task,
        read_task_events,
        list_task_approvals,
        cancel_agent_task,
        list_execution_targets,
        create_execution_target,
        read_execution_target,
        change_execution_target,
        remove_execution_target,
        list_device_deliveries,
        list_dead_letters,
        retry_dead_letter,
        read_delivery,
        read_delivery_answer,
        take_delivery_answer,
    ],
    access={
        "viewer": """
            GET /v1/agent-tasks
            GET /v1/agent-tasks/{task_id}
            GET /v1/agent-tasks/{task_id}/events
            GET /v1/agent-tasks/{task_id}/approvals
            GET /v1/execution-targets
            GET /v1/execution-targets/{target_id}
            GET /v1/devices/{device_id}/deliveries
            GET /v1/dead-letters
            GET /v1/deliveries/{delivery_id}
            GET /v1/deliveries/{delivery_id}/answer
        """,
        "member": """
            POST /v1/agent-tasks
            POST /v1/agent-tasks/{task_id}:cancel
            POST /v1/execution-targets
            PATCH /v1/execution-targets/{target_id}
            DELETE /v1/execution-targets/{target_id}
            POST /v1/dead-letters/{delivery_id}:retry
        """,
        "device": """
            PUT /v1/deliveries/{delivery_id}/answer
        """,
    },
    codes={
        "agent_not_offered": "the device does not offer this agent",
        "agent_required": "no agent was named, and the target has none",
        **RELAY_PROBLEM_CODES,
        "device_queue_full": "too much waits for the device",
        "prompt_empty": "the prompt of a task is empty",
        "target_mismatch": "the agent, project, folder or thread is not one of the target, or the "
        "model parameters are not yours to choose",
        "task_ended": "the task has ended",
        "task_not_begun": "the device has not begun the task, or not reported it yet",
        "unknown_delivery": "no delivery, or none of yours, has this id",
        "unknown_device": "no device, or none that you may use so, has this id",
        "unknown_target": "no target, or none that you may use so, has this id",
        "unknown_task": "no task, or none that you may see, has this id",
    },
    ids={
        "AgentTask": "taskId",
        "ExecutionTarget": "targetId",
    },
    listed={
        "AgentTaskPage": "taskId",
        "ExecutionTargetPage": "targetId",
        "DeviceDeliveryPage": "deliveryId",
    },
)
