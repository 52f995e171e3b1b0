"""Runners: Edges that the Hub starts for somebody."""

from litestar import delete, get, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_200_OK, HTTP_202_ACCEPTED

from factwire.hub.device_resources import (
    DeviceAuthorizationBody,
    DeviceName,
    JoinedDevice,
    StatePage,
)
from factwire.hub.hub_resources import HubBody, Secret
from factwire.hub.limits import LOGINS_PER_MINUTE
from factwire.hub.link import runner_records
from factwire.hub.link.runner_records import CloudRunner
from factwire.hub.request_rates import Rate
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    origin_of,
    runners_of,
    services_of,
)
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit


class RunnerBody(HubBody, frozen=True, kw_only=True):
    """What to call a runner."""

    name: DeviceName = "Runner"


class RunnerJoin(HubBody, frozen=True, kw_only=True):
    """The secret of a runner, and what its Edge is."""

    secret: Secret
    device: DeviceAuthorizationBody


@get("/v1/runners", tags=["runners"])
async def list_runners(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[CloudRunner]:
    """List your runners, also those that have ended, newest first."""
    owner = caller_of(request).person_id
    return await runner_records.list_runners(services_of(request), owner, after, limit)


@post("/v1/runners", status_code=HTTP_202_ACCEPTED, tags=["runners"])
async def allocate_runner(request: HubRequest, data: JSONBody[RunnerBody]) -> CloudRunner:
    """Have the Hub start a runner for you. It is yours like a device that you joined yourself, and
    online once its Edge has joined.
    """
    return await runners_of(request).allocate(
        caller_of(request), data.name, origin_of(request), id_from_key(request, "run")
    )


@get("/v1/runners/{runner_id:str}", tags=["runners"])
async def read_runner(request: HubRequest, runner_id: FromPath[str]) -> CloudRunner:
    """Get one of your runners."""
    owner = caller_of(request).person_id
    return await runner_records.read_runner(services_of(request), owner, clean_id(runner_id))


@delete("/v1/runners/{runner_id:str}", status_code=HTTP_200_OK, tags=["runners"])
async def release_runner(request: HubRequest, runner_id: FromPath[str]) -> CloudRunner:
    """Release one of your runners: its process is stopped, its folder removed and its device
    revoked. What was mirrored stays readable.
    """
    caller, chosen = caller_of(request), clean_id(runner_id)
    await runners_of(request).release(caller, chosen, origin_of(request))
    return await runner_records.read_runner(services_of(request), caller.person_id, chosen)


@post("/v1/auth/runner", status_code=HTTP_200_OK, tags=["runners"])
async def join_runner(request: HubRequest, data: JSONBody[RunnerJoin]) -> JoinedDevice:
    """Join as a runner, with the secret that its command was started with. It works once."""
    return await runner_records.join_runner(services_of(request), data.secret, data.device)


GROUP = RouteGroup(
    handlers=[list_runners, allocate_runner, read_runner, release_runner, join_runner],
    access={
        "viewer": """
            GET /v1/runners
            GET /v1/runners/{runner_id}
        """,
        "member": """
            POST /v1/runners
            DELETE /v1/runners/{runner_id}
        """,
    },
    open_routes=frozenset({("POST", "/v1/auth/runner")}),
    rates={"POST /v1/auth/runner": Rate("runner", LOGINS_PER_MINUTE)},
    codes={
        "runner_quota": "you have the maximum number of runners",
        "runner_secret_invalid": "the secret of a runner is unknown, used or expired",
        "runners_busy": "all runners of the Hub are in use",
        "runners_off": "the Hub starts no runners",
        "unknown_runner": "none of your runners has this id",
    },
    ids={"CloudRunner": "runnerId"},
    listed={"CloudRunnerPage": "runnerId"},
)
