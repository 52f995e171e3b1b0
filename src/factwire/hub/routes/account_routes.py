"""Signing in and out, and what people do with their own account."""

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.hub.device_resources import SessionChange
from factwire.hub.hub_resources import (
    HubPage,
    Login,
    PasswordChange,
    PersonAccount,
    Refresh,
    Registration,
    SignedIn,
    SignInSession,
)
from factwire.hub.limits import LOGINS_PER_MINUTE, REGISTRATIONS_PER_MINUTE
from factwire.hub.people import accounts
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.request_rates import Rate
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    id_from_key,
    origin_of,
    services_of,
)
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit


@post("/v1/auth/register", status_code=HTTP_201_CREATED, tags=["auth"])
async def register(request: HubRequest, data: JSONBody[Registration]) -> SignedIn:
    """Create an account with the token of an invitation, and sign in."""
    return await accounts.register(
        services_of(request),
        data.token,
        data.name,
        data.password,
        origin_of(request),
        person_id=id_from_key(request, "usr", digest_of(f"{data.token} {data.name}")),
    )


@post("/v1/auth/login", status_code=HTTP_200_OK, tags=["auth"])
async def login(request: HubRequest, data: JSONBody[Login]) -> SignedIn:
    """Sign in with a name and a password."""
    return await accounts.sign_in(
        services_of(request), data.name, data.password, origin_of(request)
    )


@post("/v1/auth/refresh", status_code=HTTP_200_OK, tags=["auth"])
async def refresh(request: HubRequest, data: JSONBody[Refresh]) -> SignedIn:
    """Exchange a refresh token for the next pair of tokens. A token that comes again after it was
    replaced ends its session; only a repeat within a few seconds gets the same answer again.
    """
    return await accounts.refresh_session(
        services_of(request), data.refresh_token, origin_of(request)
    )


@post("/v1/auth/logout", status_code=HTTP_204_NO_CONTENT, tags=["auth"])
async def logout(request: HubRequest) -> None:
    """End the session that asks."""
    caller = caller_of(request)
    await accounts.end_session(services_of(request), caller, caller.session_id, origin_of(request))


@get("/v1/me", tags=["me"])
async def read_me(request: HubRequest) -> PersonAccount:
    """Get your own account."""
    caller = caller_of(request)
    return await accounts.read_account(services_of(request), caller, caller.person_id)


@post("/v1/me/password", status_code=HTTP_204_NO_CONTENT, tags=["me"])
async def change_password(request: HubRequest, data: JSONBody[PasswordChange]) -> None:
    """Change your password; your other sessions are ended."""
    await accounts.change_password(
        services_of(request),
        caller_of(request),
        data.current_password,
        data.new_password,
        origin_of(request),
    )


@get("/v1/me/sessions", tags=["me"])
async def list_sessions(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[SignInSession]:
    """List where you are signed in, newest first."""
    return await accounts.list_sessions(services_of(request), caller_of(request), after, limit)


@delete("/v1/me/sessions/{session_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["me"])
async def end_session(request: HubRequest, session_id: FromPath[str]) -> None:
    """End one of your sessions."""
    await accounts.end_session(
        services_of(request), caller_of(request), clean_id(session_id), origin_of(request)
    )


@patch("/v1/me/sessions/{session_id:str}", tags=["me"])
async def change_session(
    request: HubRequest, session_id: FromPath[str], data: JSONBody[SessionChange]
) -> SignInSession:
    """Name one of your sessions."""
    return await accounts.rename_session(
        services_of(request), caller_of(request), clean_id(session_id), data.name
    )


GROUP = RouteGroup(
    handlers=[
        register,
        login,
        refresh,
        logout,
        read_me,
        change_password,
        list_sessions,
        change_session,
        end_session,
    ],
    access={
        "viewer": """
            POST /v1/auth/logout
            GET /v1/me
            POST /v1/me/password
            GET /v1/me/sessions
            PATCH /v1/me/sessions/{session_id}
            DELETE /v1/me/sessions/{session_id}
        """
    },
    open_routes=frozenset(
        {
            ("POST", "/v1/auth/register"),
            ("POST", "/v1/auth/login"),
            ("POST", "/v1/auth/refresh"),
        }
    ),
    rates={
        "POST /v1/auth/register": Rate("register", REGISTRATIONS_PER_MINUTE),
        "POST /v1/auth/login": Rate("login", LOGINS_PER_MINUTE),
        "POST /v1/auth/refresh": Rate("refresh", LOGINS_PER_MINUTE),
        "POST /v1/me/password": Rate("password", LOGINS_PER_MINUTE),
    },
    codes={
        "invitation_invalid": "the invitation is unknown, used, revoked or expired",
        "name_taken": "somebody has this name",
        "name_unusable": "the name is empty, too long or not printable",
        "password_changed": "the password was changed by another request meanwhile",
        "password_weak": "the password is too short, too long or too easy to guess",
        "password_wrong": "the current password is wrong",
        "refresh_token_invalid": "the refresh token is unknown, or its session is over",
        "refresh_token_reused": "the refresh token was used before; its session was ended",
        "sign_in_failed": "the name or the password is wrong, or the account is disabled",
        "unknown_session": "none of your sessions has this id",
    },
    listed={"SignInSessionPage": "sessionId"},
)
