"""Friends and friend requests."""

from typing import Annotated

from litestar import delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.hub.chat_resources import (
    FoundPerson,
    Friend,
    FriendRequestBody,
    PendingFriendRequest,
)
from factwire.hub.chats import contacts
from factwire.hub.device_resources import StatePage
from factwire.hub.hub_resources import HubPage
from factwire.hub.limits import FRIEND_REQUESTS_PER_MINUTE, LOOKUPS_PER_MINUTE
from factwire.hub.request_rates import Rate
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    origin_of,
    services_of,
)
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit

_LOOKUP = Rate("lookup", LOOKUPS_PER_MINUTE)
_ASKING = Rate("friend request", FRIEND_REQUESTS_PER_MINUTE)


@get("/v1/contacts", tags=["contacts"])
async def list_friends(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> StatePage[Friend]:
    """List your friends, newest first."""
    return await contacts.list_friends(services_of(request), caller_of(request), after, limit)


@get("/v1/contacts/lookup", tags=["contacts"])
async def look_up_person(
    request: HubRequest,
    name: Annotated[str, QueryParameter(description="The exact name, in any case.")],
) -> HubPage[FoundPerson]:
    """Find somebody by their exact name: one person or none. Nobody can list people, and lookups
    are limited.
    """
    hub = services_of(request)
    hub.rates.spend(_LOOKUP, caller_of(request).person_id)
    return await contacts.look_up(hub, name)


@delete("/v1/contacts/{person_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["contacts"])
async def remove_friend(request: HubRequest, person_id: FromPath[str]) -> None:
    """Remove a friend. The private chat stays to be read, and nobody can write to it."""
    await contacts.remove_friend(
        services_of(request), caller_of(request), clean_id(person_id), origin_of(request)
    )


@get("/v1/friend-requests", tags=["contacts"])
async def list_friend_requests(
    request: HubRequest,
    direction: FromQuery[contacts.RequestDirection] = "in",
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
) -> StatePage[PendingFriendRequest]:
    """List requests to you (`in`) or from you (`out`) that wait for an answer, newest first."""
    return await contacts.list_requests(
        services_of(request), caller_of(request), direction, after, limit
    )


@post("/v1/friend-requests", status_code=HTTP_201_CREATED, tags=["contacts"])
async def send_friend_request(
    request: HubRequest, data: JSONBody[FriendRequestBody]
) -> PendingFriendRequest:
    """Ask somebody to be your friend. Asking again while the request waits changes nothing."""
    hub, caller = services_of(request), caller_of(request)
    hub.rates.spend(_ASKING, caller.person_id)
    return await contacts.send_request(hub, caller, clean_id(data.person_id), data.message)


@post("/v1/friend-requests/{request_id:str}/accept", status_code=HTTP_200_OK, tags=["contacts"])
async def accept_friend_request(request: HubRequest, request_id: FromPath[str]) -> Friend:
    """Accept a request to you."""
    return await contacts.accept_request(
        services_of(request), caller_of(request), clean_id(request_id), origin_of(request)
    )


@delete("/v1/friend-requests/{request_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["contacts"])
async def end_friend_request(request: HubRequest, request_id: FromPath[str]) -> None:
    """Refuse a request to you, or withdraw one of yours."""
    await contacts.end_request(services_of(request), caller_of(request), clean_id(request_id))


GROUP = RouteGroup(
    handlers=[
        list_friends,
        look_up_person,
        remove_friend,
        list_friend_requests,
        send_friend_request,
        accept_friend_request,
        end_friend_request,
    ],
    access={
        "viewer": """
            GET /v1/contacts
            DELETE /v1/contacts/{person_id}
            GET /v1/friend-requests
            POST /v1/friend-requests/{request_id}/accept
            DELETE /v1/friend-requests/{request_id}
        """,
        "member": """
            GET /v1/contacts/lookup
            POST /v1/friend-requests
        """,
    },
    codes={
        "already_friends": "the two are friends already",
        "request_waiting": "the other person has asked first; accept their request",
        "too_many_friend_requests": "too many requests of the person wait for an answer",
        "too_many_friends": "one of the two has too many friends",
        "unknown_friend": "no friend of the person has this id",
        "unknown_friend_request": "no request of the person or to them has this id",
    },
    ids={"PendingFriendRequest": "requestId"},
    listed={"PendingFriendRequestPage": "requestId"},
)
