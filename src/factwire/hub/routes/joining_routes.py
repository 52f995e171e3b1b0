"""How machines, terminals and phones come to a Hub: they ask, and a person who is signed in
confirms.
"""

from typing import Final, cast

from litestar import get, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED

from factwire.hub.device_resources import (
    AuthorizationDecision,
    AuthorizationRequest,
    ClaimedPairing,
    CreatedPairing,
    DeviceAccess,
    DeviceAuthorization,
    DeviceAuthorizationBody,
    DevicePoll,
    DevicePollForm,
    DeviceTokenBody,
    JoinedDevice,
    Pairing,
    PairingClaim,
)
from factwire.hub.hub_resources import SignedIn
from factwire.hub.limits import (
    AUTHORIZATIONS_PER_MINUTE,
    CODE_TRIES_PER_MINUTE,
    DEVICE_EXCHANGES_PER_MINUTE,
    POLLS_PER_MINUTE,
)
from factwire.hub.people import devices, joining
from factwire.hub.request_rates import Rate
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    origin_of,
    services_of,
)
from factwire.serving.asgi import Problem
from factwire.serving.rest import FORM_MEDIA_TYPE, declare_body, decode_form, decode_raw_body


@post("/v1/device-authorizations", status_code=HTTP_201_CREATED, tags=["joining"])
async def begin_authorization(
    request: HubRequest, data: JSONBody[DeviceAuthorizationBody]
) -> DeviceAuthorization:
    """Ask to join as an Edge or, without an `edgeId`, to be signed in at a terminal (RFC 8628).
    Show the user code to a person, and poll with the device code until they have decided.
    """
    return await joining.begin_authorization(services_of(request), data, origin_of(request))


@get("/v1/device-authorizations/{user_code:str}", tags=["joining"])
async def read_authorization(request: HubRequest, user_code: FromPath[str]) -> AuthorizationRequest:
    """Get what asks under a user code: from which address, and since when."""
    return await joining.read_authorization(services_of(request), caller_of(request), user_code)


@post(
    "/v1/device-authorizations/{user_code:str}/decision",
    status_code=HTTP_200_OK,
    tags=["joining"],
)
async def decide_authorization(
    request: HubRequest, user_code: FromPath[str], data: JSONBody[AuthorizationDecision]
) -> AuthorizationRequest:
    """Confirm or refuse what asks under a user code. What is confirmed belongs to you."""
    return await joining.decide_authorization(
        services_of(request), caller_of(request), user_code, data.decision, origin_of(request)
    )


DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
POLL_ROUTES: Final = frozenset({"POST /v1/auth/device-token", "POST /v1/auth/session-token"})
_POLL_BODY: Final = declare_body(
    json=(DevicePoll, {"json": {"value": {"deviceCode": "code"}}}),
    form=(
        DevicePollForm,
        {"form": {"value": {"grant_type": DEVICE_GRANT, "device_code": "code"}}},
    ),
)


async def _read_device_code(request: HubRequest) -> str:
    """The code of a poll, as JSON or as the form of RFC 8628; raises `Problem`."""
    body = await request.body()
    if request.content_type[0] != FORM_MEDIA_TYPE:
        return cast("DevicePoll", decode_raw_body(body or b"null", DevicePoll)).device_code
    try:
        form: DevicePollForm = decode_form(body, DevicePollForm)
    except Problem as problem:
        # Clients of the RFC look for the code here.
        problem.members["error"] = problem.code
        raise
    if form.grant_type != DEVICE_GRANT:
        problem = Problem(400, "unsupported_grant_type", f"expected {DEVICE_GRANT}")
        problem.members["error"] = problem.code
        raise problem
    return form.device_code


@post("/v1/auth/device-token", status_code=HTTP_200_OK, tags=["joining"], opt=_POLL_BODY)
async def collect_device(request: HubRequest) -> JoinedDevice:
    """Collect the token of a device that was confirmed; it is made now, and given once. Until then
    the answer is 400, with the `error` of RFC 8628.
    """
    code = await _read_device_code(request)
    return await joining.collect_device(services_of(request), code, origin_of(request))


@post("/v1/auth/session-token", status_code=HTTP_200_OK, tags=["joining"], opt=_POLL_BODY)
async def collect_session(request: HubRequest) -> SignedIn:
    """Collect the session of a terminal or a phone that was confirmed; it is opened now, and given
    once. Until then the answer is 400, with the `error` of RFC 8628.
    """
    code = await _read_device_code(request)
    return await joining.collect_session(services_of(request), code, origin_of(request))


@post("/v1/auth/device", status_code=HTTP_200_OK, tags=["joining"])
async def exchange_device_token(
    request: HubRequest, data: JSONBody[DeviceTokenBody]
) -> DeviceAccess:
    """Exchange the token of a device for an access token."""
    return await devices.exchange_token(services_of(request), data)


@post("/v1/me/pairings", status_code=HTTP_201_CREATED, tags=["joining"])
async def create_pairing(request: HubRequest) -> CreatedPairing:
    """Create a code for a phone to scan from this screen. It lets the phone ask, and you confirm
    here; the code alone opens nothing.
    """
    return await joining.create_pairing(
        services_of(request), caller_of(request), origin_of(request)
    )


@get("/v1/me/pairings/{pairing_id:str}", tags=["joining"])
async def read_pairing(request: HubRequest, pairing_id: FromPath[str]) -> Pairing:
    """Get one of your pairings, and what has scanned its code."""
    return await joining.read_pairing(
        services_of(request), caller_of(request), clean_id(pairing_id)
    )


@post("/v1/me/pairings/{pairing_id:str}/decision", status_code=HTTP_200_OK, tags=["joining"])
async def decide_pairing(
    request: HubRequest, pairing_id: FromPath[str], data: JSONBody[AuthorizationDecision]
) -> Pairing:
    """Confirm or refuse what has scanned the code of one of your pairings."""
    return await joining.decide_pairing(
        services_of(request),
        caller_of(request),
        clean_id(pairing_id),
        data.decision,
        origin_of(request),
    )


@post("/v1/auth/pairing", status_code=HTTP_200_OK, tags=["joining"])
async def claim_pairing(request: HubRequest, data: JSONBody[PairingClaim]) -> ClaimedPairing:
    """Ask to be signed in by a code that was scanned from a signed-in screen. The first who asks is
    the only one.
    """
    return await joining.claim_pairing(services_of(request), data, origin_of(request))


_TRIES = Rate("code-by-address", CODE_TRIES_PER_MINUTE)

GROUP = RouteGroup(
    handlers=[
        begin_authorization,
        read_authorization,
        decide_authorization,
        collect_device,
        collect_session,
        exchange_device_token,
        create_pairing,
        read_pairing,
        decide_pairing,
        claim_pairing,
    ],
    access={
        "viewer": """
            GET /v1/device-authorizations/{user_code}
            POST /v1/device-authorizations/{user_code}/decision
            POST /v1/me/pairings
            GET /v1/me/pairings/{pairing_id}
            POST /v1/me/pairings/{pairing_id}/decision
        """,
    },
    open_routes=frozenset(
        {
            ("POST", "/v1/device-authorizations"),
            ("POST", "/v1/auth/device-token"),
            ("POST", "/v1/auth/session-token"),
            ("POST", "/v1/auth/device"),
            ("POST", "/v1/auth/pairing"),
        }
    ),
    rates={
        "POST /v1/device-authorizations": Rate("authorization", AUTHORIZATIONS_PER_MINUTE),
        "GET /v1/device-authorizations/{user_code}": _TRIES,
        "POST /v1/device-authorizations/{user_code}/decision": _TRIES,
        "POST /v1/auth/device-token": Rate("poll", POLLS_PER_MINUTE),
        "POST /v1/auth/session-token": Rate("poll", POLLS_PER_MINUTE),
        "POST /v1/auth/device": Rate("device", DEVICE_EXCHANGES_PER_MINUTE),
        "POST /v1/auth/pairing": _TRIES,
    },
    codes={
        "access_denied": "whoever looked at the request refused it, or may no longer sign in",
        "already_decided": "the opposite was decided before",
        "authorization_pending": "nobody has decided yet; poll again after the interval",
        "device_token_invalid": "the device's token is unknown, or the device was revoked",
        "edge_taken": "the Edge is somebody else's, or a runner names one that has joined",
        "expired_token": "the code is unknown, used or expired",
        "pairing_unclaimed": "nothing has scanned the code yet",
        "slow_down": "polls come too often; `interval` is the new pause in seconds",
        "too_many_devices": "the person has as many devices as one may have",
        "unsupported_grant_type": "the form names another `grant_type` than that of RFC 8628",
        "unknown_code": "nothing asks under the code",
        "unknown_pairing": "none of your pairings has this id",
    },
    ids={"CreatedPairing": "pairingId"},
)
