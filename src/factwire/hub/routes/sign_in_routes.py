"""Signing in with passkeys and identity providers, and the ways that somebody has."""

from typing import Any

from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import (
    HTTP_200_OK,
    HTTP_201_CREATED,
    HTTP_204_NO_CONTENT,
    HTTP_502_BAD_GATEWAY,
)

from factwire.hub.hub_resources import (
    NewPasskey,
    OfferedMethods,
    OfferedProvider,
    Passkey,
    PasskeyCeremony,
    PasskeyChange,
    PasskeyLogin,
    PasskeyRegistrationStart,
    PasskeyStart,
    ProviderAnswer,
    ProviderCeremony,
    ProviderIdentity,
    ProviderStart,
    SignedIn,
    SignInMethods,
)
from factwire.hub.limits import LOGINS_PER_MINUTE, REGISTRATIONS_PER_MINUTE
from factwire.hub.people import passkeys, provider_sign_in, sign_in_methods
from factwire.hub.request_rates import Rate
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    origin_of,
    services_of,
)
from factwire.serving.rest import ALSO

_ASKS_PROVIDER: dict[str, Any] = {ALSO: (HTTP_502_BAD_GATEWAY,)}


@get("/v1/auth/methods", tags=["auth"])
async def list_offered_methods(request: HubRequest) -> OfferedMethods:
    """Get how people can sign in at this Hub, beside a name and a password."""
    hub = services_of(request)
    return OfferedMethods(
        passkeys=passkeys.has_passkeys(hub),
        providers=[
            OfferedProvider(
                provider=each.name, title=each.title, creates=each.settings.accounts == "create"
            )
            for each in hub.providers
        ],
    )


@post("/v1/auth/passkeys/login/start", status_code=HTTP_200_OK, tags=["auth"])
async def begin_passkey_login(request: HubRequest, data: JSONBody[PasskeyStart]) -> PasskeyCeremony:
    """Begin to sign in with a passkey: anybody's, or that of a name."""
    return passkeys.begin_sign_in(services_of(request), data.name)


@post("/v1/auth/passkeys/login", status_code=HTTP_200_OK, tags=["auth"])
async def login_with_passkey(request: HubRequest, data: JSONBody[PasskeyLogin]) -> SignedIn:
    """Sign in with a passkey."""
    return await passkeys.sign_in_with_passkey(
        services_of(request), data.ceremony, data.credential, origin_of(request)
    )


@post("/v1/auth/passkeys/register/start", status_code=HTTP_200_OK, tags=["auth"])
async def begin_passkey_registration(
    request: HubRequest, data: JSONBody[PasskeyRegistrationStart]
) -> PasskeyCeremony:
    """Begin to create an account that has a passkey and no password."""
    return await passkeys.begin_registration(services_of(request), data.token, data.name)


@post("/v1/auth/passkeys/register", status_code=HTTP_201_CREATED, tags=["auth"])
async def register_with_passkey(request: HubRequest, data: JSONBody[NewPasskey]) -> SignedIn:
    """Create an account that has a passkey and no password, and sign in."""
    return await passkeys.register_with_passkey(
        services_of(request), data.ceremony, data.credential, data.passkey_name, origin_of(request)
    )


@post("/v1/auth/providers/start", status_code=HTTP_200_OK, tags=["auth"], opt=_ASKS_PROVIDER)
async def begin_provider_login(
    request: HubRequest, data: JSONBody[ProviderStart]
) -> ProviderCeremony:
    """Begin to sign in with an identity provider or, with the token of an invitation, to create an
    account by it.
    """
    return await provider_sign_in.begin_sign_in(
        services_of(request), data.provider, data.token, data.name
    )


@post("/v1/auth/providers/login", status_code=HTTP_200_OK, tags=["auth"], opt=_ASKS_PROVIDER)
async def login_with_provider(request: HubRequest, data: JSONBody[ProviderAnswer]) -> SignedIn:
    """Sign in with what an identity provider answered."""
    return await provider_sign_in.sign_in_with_provider(
        services_of(request), data, origin_of(request)
    )


@get("/v1/me/methods", tags=["me"])
async def list_methods(request: HubRequest) -> SignInMethods:
    """Get the ways in which you can sign in."""
    return await sign_in_methods.list_methods(services_of(request), caller_of(request).person_id)


@post("/v1/me/passkeys/start", status_code=HTTP_200_OK, tags=["me"])
async def begin_passkey(request: HubRequest) -> PasskeyCeremony:
    """Begin to add a passkey; you must have signed in a moment ago."""
    return await passkeys.begin_adding(services_of(request), caller_of(request))


@post("/v1/me/passkeys", status_code=HTTP_201_CREATED, tags=["me"])
async def add_passkey(request: HubRequest, data: JSONBody[NewPasskey]) -> Passkey:
    """Add a passkey."""
    return await passkeys.add_passkey(
        services_of(request),
        caller_of(request),
        data.ceremony,
        data.credential,
        name=data.passkey_name,
        origin=origin_of(request),
    )


@patch("/v1/me/passkeys/{passkey_id:str}", tags=["me"])
async def rename_passkey(
    request: HubRequest, passkey_id: FromPath[str], data: JSONBody[PasskeyChange]
) -> Passkey:
    """Change the name of one of your passkeys."""
    return await passkeys.rename_passkey(
        services_of(request),
        caller_of(request),
        clean_id(passkey_id),
        data.name,
        origin_of(request),
    )


@post("/v1/me/identities/start", status_code=HTTP_200_OK, tags=["me"], opt=_ASKS_PROVIDER)
async def begin_identity(request: HubRequest, data: JSONBody[ProviderStart]) -> ProviderCeremony:
    """Begin to link an identity at a provider; you must have signed in a moment ago."""
    return await provider_sign_in.begin_linking(
        services_of(request), caller_of(request), data.provider
    )


@post("/v1/me/identities", status_code=HTTP_201_CREATED, tags=["me"], opt=_ASKS_PROVIDER)
async def link_identity(request: HubRequest, data: JSONBody[ProviderAnswer]) -> ProviderIdentity:
    """Link an identity at a provider to your account, by what the provider answered."""
    return await provider_sign_in.link_identity(
        services_of(request), caller_of(request), data, origin_of(request)
    )


@delete("/v1/me/methods/{method_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["me"])
async def remove_method(request: HubRequest, method_id: FromPath[str]) -> None:
    """Remove one of your passkeys or identities; other sessions that were opened with it end. You
    must have signed in a moment ago, and your last way to sign in stays.
    """
    await sign_in_methods.remove_own_method(
        services_of(request), caller_of(request), clean_id(method_id), origin_of(request)
    )


_LOGIN = Rate("login", LOGINS_PER_MINUTE)
_METHODS = Rate("methods", LOGINS_PER_MINUTE)

GROUP = RouteGroup(
    handlers=[
        list_offered_methods,
        begin_passkey_login,
        login_with_passkey,
        begin_passkey_registration,
        register_with_passkey,
        begin_provider_login,
        login_with_provider,
        list_methods,
        begin_passkey,
        add_passkey,
        rename_passkey,
        begin_identity,
        link_identity,
        remove_method,
    ],
    access={
        "viewer": """
            GET /v1/me/methods
            POST /v1/me/passkeys/start
            POST /v1/me/passkeys
            PATCH /v1/me/passkeys/{passkey_id}
            POST /v1/me/identities/start
            POST /v1/me/identities
            DELETE /v1/me/methods/{method_id}
        """
    },
    open_routes=frozenset(
        {
            ("GET", "/v1/auth/methods"),
            ("HEAD", "/v1/auth/methods"),
            ("POST", "/v1/auth/passkeys/login/start"),
            ("POST", "/v1/auth/passkeys/login"),
            ("POST", "/v1/auth/passkeys/register/start"),
            ("POST", "/v1/auth/passkeys/register"),
            ("POST", "/v1/auth/providers/start"),
            ("POST", "/v1/auth/providers/login"),
        }
    ),
    rates={
        "POST /v1/auth/passkeys/login/start": Rate("login start", LOGINS_PER_MINUTE),
        "POST /v1/auth/passkeys/login": _LOGIN,
        "POST /v1/auth/passkeys/register/start": Rate("register start", LOGINS_PER_MINUTE),
        "POST /v1/auth/passkeys/register": Rate("register", REGISTRATIONS_PER_MINUTE),
        "POST /v1/auth/providers/start": Rate("login start", LOGINS_PER_MINUTE),
        "POST /v1/auth/providers/login": _LOGIN,
        "POST /v1/me/passkeys/start": _METHODS,
        "POST /v1/me/passkeys": _METHODS,
        "POST /v1/me/identities/start": _METHODS,
        "POST /v1/me/identities": _METHODS,
        "DELETE /v1/me/methods/{method_id}": _METHODS,
    },
    codes={
        "ceremony_invalid": "signing in was begun elsewhere, for something else or too long ago, "
        "or is finished already",
        "identity_not_admitted": "the provider does not say what the operator requires of people",
        "identity_taken": "an account has this identity already",
        "identity_token_invalid": "the provider's token is not valid for this sign-in",
        "identity_unknown": "no account has this identity, and the provider creates none",
        "issuer_mismatch": "an answer came from another provider than the one that was asked",
        "last_method": "the last way to sign in cannot be removed",
        "passkey_cloned": "an authenticator counted fewer uses than were seen, so there may be a "
        "copy of it",
        "passkey_refused": "a new passkey does not prove that it was made for this Hub, now, with "
        "its user verified",
        "passkey_taken": "an account has this passkey already",
        "passkeys_unavailable": "the Hub is opened by the number of an address, to which browsers "
        "bind no passkeys",
        "provider_refused": "the provider did not confirm the sign-in",
        "provider_unavailable": "the provider does not answer, or not as it should",
        "sign_in_again": "the session is too old for a change of how to sign in",
        "too_many_methods": "the account has the maximum number of passkeys or identities",
        "unknown_method": "you have no passkey and no identity with this id",
        "unknown_provider": "the Hub has no identity provider of this name",
    },
)
