"""Devices that have joined, the Edges that are mirrored, and with whom they are shared."""

from typing import Annotated

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.facts.resources import Device
from factwire.hub.device_resources import (
    AccessGrant,
    DeviceChange,
    GrantBody,
    MirroredEdgeSummary,
    StatePage,
)
from factwire.hub.people import devices, grants
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    origin_of,
    services_of,
)
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit

Received = Annotated[
    bool | None,
    QueryParameter(description="Only grants that you have (true), or that you made (false)."),
]


@get("/v1/devices", tags=["devices"])
async def list_devices(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[Device]:
    """List your devices and those that are shared with you, newest first."""
    return await devices.list_devices(services_of(request), caller_of(request), after, limit)


@get("/v1/devices/{device_id:str}", tags=["devices"])
async def read_device(request: HubRequest, device_id: FromPath[str]) -> Device:
    """Get a device: when it was last seen, its version, its agents, how far its mirror is."""
    return await devices.read_device(services_of(request), caller_of(request), clean_id(device_id))


@patch("/v1/devices/{device_id:str}", tags=["devices"])
async def change_device(
    request: HubRequest, device_id: FromPath[str], data: JSONBody[DeviceChange]
) -> Device:
    """Rename one of your devices."""
    return await devices.rename_device(
        services_of(request),
        caller_of(request),
        clean_id(device_id),
        data.name,
        origin_of(request),
    )


@delete("/v1/devices/{device_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["devices"])
async def revoke_device(request: HubRequest, device_id: FromPath[str]) -> None:
    """Revoke one of your devices: its token is void at once. What was mirrored stays readable."""
    await devices.revoke_device(
        services_of(request),
        caller_of(request).person_id,
        clean_id(device_id),
        origin_of(request),
    )


@post("/v1/device/leave", status_code=HTTP_204_NO_CONTENT, tags=["devices"])
async def leave(request: HubRequest) -> None:
    """Leave the Hub, as the device that sends this."""
    caller = caller_of(request)
    await devices.revoke_device(
        services_of(request),
        caller.person_id,
        caller.device_id or "-",
        origin_of(request),
        reason="left",
    )


@get("/v1/edges", tags=["edges"])
async def list_edges(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[MirroredEdgeSummary]:
    """List the Edges that you may read, newest first, with how far their mirrors are."""
    return await devices.list_edges(services_of(request), caller_of(request), after, limit)


@get("/v1/grants", tags=["grants"])
async def list_grants(
    request: HubRequest,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
    received: Received = None,
) -> StatePage[AccessGrant]:
    """List the grants that you made and those that you have, newest first."""
    return await grants.list_grants(
        services_of(request), caller_of(request), after, limit, received=received
    )


@post("/v1/grants", status_code=HTTP_201_CREATED, tags=["grants"])
async def create_grant(request: HubRequest, data: JSONBody[GrantBody]) -> AccessGrant:
    """Share one of your devices, or one thread or target of it, with somebody. The same again
    changes the role.
    """
    return await grants.create_grant(
        services_of(request), caller_of(request), data, origin_of(request)
    )


@get("/v1/grants/{grant_id:str}", tags=["grants"])
async def read_grant(request: HubRequest, grant_id: FromPath[str]) -> AccessGrant:
    """Get a grant that you made or have."""
    return await grants.read_grant(services_of(request), caller_of(request), clean_id(grant_id))


@delete("/v1/grants/{grant_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["grants"])
async def revoke_grant(request: HubRequest, grant_id: FromPath[str]) -> None:
    """Revoke a grant that you made, or give back one that you have."""
    await grants.revoke_grant(
        services_of(request), caller_of(request), clean_id(grant_id), origin_of(request)
    )


GROUP = RouteGroup(
    handlers=[
        list_devices,
        read_device,
        change_device,
        revoke_device,
        leave,
        list_edges,
        list_grants,
        create_grant,
        read_grant,
        revoke_grant,
    ],
    access={
        "viewer": """
            GET /v1/devices
            GET /v1/devices/{device_id}
            PATCH /v1/devices/{device_id}
            DELETE /v1/devices/{device_id}
            GET /v1/edges
            GET /v1/grants
            GET /v1/grants/{grant_id}
            DELETE /v1/grants/{grant_id}
        """,
        "member": "POST /v1/grants",
        "device": "POST /v1/device/leave",
    },
    codes={
        "grant_to_self": "the grant would be to yourself",
        "too_many_grants": "the person has as many grants as one may have",
        "unknown_device": "none of the devices that you may see, or change, has this id",
        "unknown_grant": "none of your grants has this id",
        "unknown_target": "the device has no target with this id",
    },
    ids={"AccessGrant": "grantId"},
    listed={
        "DevicePage": "deviceId",
        "MirroredEdgeSummaryPage": "edgeId",
        "AccessGrantPage": "grantId",
    },
)
