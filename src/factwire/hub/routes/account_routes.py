"""Signing in and out, and what people do with their own account."""

from typing import Any

from litestar import delete, get, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

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
from factwire.hub.people import accounts
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.routes.hub_requests import (
    HubRequest,
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


ROUTES: list[Any] = [
    register,
    login,
    refresh,
    logout,
    read_me,
    change_password,
    list_sessions,
    end_session,
]
