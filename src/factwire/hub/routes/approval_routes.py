"""Approvals: what agents on devices ask, and deciding it from anywhere."""

from typing import Literal

from litestar import get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.status_codes import HTTP_200_OK

from factwire.facts.resources import ApprovalWithCard, HubApproval
from factwire.hub.approvals import approval_decisions, approval_records
from factwire.hub.approvals.approval_resources import ApprovalRule, DecideBody
from factwire.hub.notifications.notification_resources import CurrentPage
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    origin_of,
    services_of,
)
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit


@get("/v1/approvals", tags=["approvals"])
async def list_approvals(
    request: HubRequest,
    status: FromQuery[Literal["waiting", "all"]] = "waiting",
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> CurrentPage[HubApproval]:
    """List what agents ask on devices that you may see, newest first: what waits for a decision, or
    all. With the events after `asOf`, the list stays true.
    """
    async with services_of(request).database.read() as connection:
        return await approval_records.list_approvals(
            connection, caller_of(request).person_id, after, limit, waiting=status == "waiting"
        )


@get("/v1/approvals/{approval_id:str}", tags=["approvals"])
async def read_approval(request: HubRequest, approval_id: FromPath[str]) -> ApprovalWithCard:
    """Get an approval with its card: exactly what is to be decided, and the hash that a decision is
    bound to. Where it cannot be shown exactly, the card says why, and only `deny` is possible.
    """
    return await approval_decisions.read_approval(
        services_of(request), caller_of(request), clean_id(approval_id)
    )


@post("/v1/approvals/{approval_id:str}/decide", status_code=HTTP_200_OK, tags=["approvals"])
async def decide_approval(
    request: HubRequest, approval_id: FromPath[str], data: JSONBody[DecideBody]
) -> HubApproval:
    """Decide an approval. The answer says how far the decision is: *decided* is not yet *applied*.
    The same decision again is sent again; the opposite is refused.
    """
    return await approval_decisions.decide(
        services_of(request),
        caller_of(request),
        clean_id(approval_id),
        data,
        origin_of(request),
    )


@post("/v1/approvals/{approval_id:str}/seen", status_code=HTTP_200_OK, tags=["approvals"])
async def see_approval(request: HubRequest, approval_id: FromPath[str]) -> HubApproval:
    """Acknowledge that an approval was seen on this screen."""
    return await approval_decisions.mark_seen(
        services_of(request), caller_of(request), clean_id(approval_id)
    )


@get("/v1/devices/{device_id:str}/approval-rule", tags=["approvals"])
async def read_approval_rule(request: HubRequest, device_id: FromPath[str]) -> ApprovalRule:
    """Get how many people must allow what agents ask on a device of yours."""
    return await approval_decisions.read_rule(
        services_of(request), caller_of(request), clean_id(device_id)
    )


@put("/v1/devices/{device_id:str}/approval-rule", tags=["approvals"])
async def change_approval_rule(
    request: HubRequest, device_id: FromPath[str], data: JSONBody[ApprovalRule]
) -> ApprovalRule:
    """Set how many people must allow what agents ask from now on; one who denies is enough."""
    return await approval_decisions.change_rule(
        services_of(request), caller_of(request), clean_id(device_id), data, origin_of(request)
    )


GROUP = RouteGroup(
    handlers=[
        list_approvals,
        read_approval,
        decide_approval,
        see_approval,
        read_approval_rule,
        change_approval_rule,
    ],
    access={
        "viewer": """
            GET /v1/approvals
            GET /v1/approvals/{approval_id}
            POST /v1/approvals/{approval_id}/seen
            GET /v1/devices/{device_id}/approval-rule
        """,
        "member": """
            POST /v1/approvals/{approval_id}/decide
            PUT /v1/devices/{device_id}/approval-rule
        """,
    },
    codes={
        "approval_changed": "the request is not the one whose hash was sent; read it again",
        "approval_closed": "the approval has expired or was withdrawn or refused",
        "approval_decided": "the approval was decided otherwise",
        "approval_expired": "the approval has expired",
        "approval_not_shown": "the request cannot be shown exactly, and can only be denied",
        "device_revoked": "the device was revoked, and its Edge has not joined again",
        "link_closed": "this Hub has no link to its devices",
        "not_an_approver": "you may see the approval, but not decide it",
        "unknown_approval": "no approval that you may see has this id",
        "unknown_device": "none of your devices has this id",
    },
    ids={"ApprovalWithCard": "approvalId"},
    listed={"HubApprovalPage": "approvalId"},
)
