"""Signing in with an identity provider: the authorization code flow with PKCE, and linking.

An identity is an issuer and a subject, and belongs to one account. An e-mail address, a name or any
other claim finds no account: whoever has an account links an identity to it while signed in. Which
role somebody has is the Hub's alone; claims can only keep people out.

State, nonce and the secret of PKCE follow from the ceremony, which the browser that began keeps. An
answer that another browser brings, with somebody else's code in it, has no ceremony that fits; one
of another provider has another address, another name and another issuer.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

import msgspec
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import (
    ProviderAnswer,
    ProviderCeremony,
    ProviderIdentity,
    SignedIn,
)
from factwire.hub.limits import PERSON_NAME_CHARACTERS, PROVIDER_NAME_TRIES
from factwire.hub.people.accounts import (
    NO_PASSWORD,
    HubCaller,
    HubServices,
    SignInMethod,
    ensure_recent,
    insert_invited,
    insert_person,
    invitation_invalid,
    name_taken,
    new_id,
    open_session,
)
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.people.identity_providers import (
    IdentityProvider,
    VerifiedIdentity,
    provider_refused,
)
from factwire.hub.people.passwords import name_key, normalize_name
from factwire.hub.people.sign_in_methods import (
    Ceremony,
    CeremonyKind,
    begin_ceremony,
    ceremony_invalid,
    clean_label,
    derive_secret,
    ensure_room,
    finish_ceremony,
    lock_account,
    seal_ceremony,
)
from factwire.hub.records import invitation_records, people_records, sign_in_records
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.serving.asgi import Problem

PAGE: str = "/sign-in"
"""Where the provider sends people back to, below which each provider has an address."""


async def begin_sign_in(
    hub: HubServices, provider: str, invitation: str | None, name: str | None
) -> ProviderCeremony:
    """Where to sign in at a provider; with an invitation, to create an account."""
    chosen, digest = hub.providers.find(provider), None
    if invitation is not None:
        digest = digest_of(invitation)
        async with hub.database.read() as connection:
            usable = await invitation_records.find_usable(connection, digest, hub.now())
        if usable is None:
            raise invitation_invalid()
    shown = None if name is None else normalize_name(name)
    ceremony = begin_ceremony(
        hub, "provider.sign_in", provider=chosen.name, invitation=digest, name=shown
    )
    return await _to_answer(hub, chosen, ceremony)


async def begin_linking(hub: HubServices, caller: HubCaller, provider: str) -> ProviderCeremony:
    """Where to sign in at a provider for the account of the caller."""
    chosen = hub.providers.find(provider)
    async with hub.database.read() as connection:
        await ensure_recent(connection, caller, hub.now())
    ceremony = begin_ceremony(
        hub, "provider.link", provider=chosen.name, session_id=caller.session_id
    )
    return await _to_answer(hub, chosen, ceremony)


async def _to_answer(
    hub: HubServices, provider: IdentityProvider, ceremony: Ceremony
) -> ProviderCeremony:
    verifier = derive_secret(hub, ceremony, "verifier")
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    url = await provider.authorization_url(
        redirect_uri=_redirect_uri(hub, provider),
        state=derive_secret(hub, ceremony, "state"),
        nonce=derive_secret(hub, ceremony, "nonce"),
        code_challenge=challenge,
        code_challenge_method="S256",
    )
    return ProviderCeremony(ceremony=seal_ceremony(hub, ceremony), authorization_url=url)


def _redirect_uri(hub: HubServices, provider: IdentityProvider) -> str:
    return f"{hub.url}{PAGE}/{provider.name}"


async def _verify_answer(
    hub: HubServices, kind: CeremonyKind, answer: ProviderAnswer, caller: HubCaller | None
) -> tuple[Ceremony, IdentityProvider, VerifiedIdentity]:
    """Who came back from which provider; raises `Problem`."""
    ceremony = await finish_ceremony(hub, kind, answer.ceremony, caller)
    expected = derive_secret(hub, ceremony, "state")
    if not hmac.compare_digest(expected.encode(), answer.state.encode("utf-8", "replace")):
        raise ceremony_invalid()
    if ceremony.provider != answer.provider:
        raise Problem(401, "issuer_mismatch", "the answer is not from the provider that was asked")
    provider = hub.providers.find(answer.provider)
    await provider.ensure_issuer(answer.iss)
    if answer.error is not None or not answer.code:
        raise provider_refused()
    token = await provider.exchange_code(
        answer.code, _redirect_uri(hub, provider), derive_secret(hub, ceremony, "verifier")
    )
    identity = await provider.verify_token(token, derive_secret(hub, ceremony, "nonce"))
    _ensure_admitted(provider, identity.claims)
    return ceremony, provider, identity


def _ensure_admitted(provider: IdentityProvider, claims: Mapping[str, Any]) -> None:
    """Require the domain and the group that the operator lets in."""
    settings = provider.settings
    if settings.domains and _email_domain(claims) not in {*map(str.lower, settings.domains)}:
        raise _not_admitted("a verified e-mail address of another domain")
    if settings.groups and not _text_list(claims.get(settings.groups_claim)) & {*settings.groups}:
        raise _not_admitted("membership in another group")


def _email_domain(claims: Mapping[str, Any]) -> str | None:
    email = claims.get("email")
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        return None
    return email.rpartition("@")[2].lower()


def _text_list(value: Any) -> set[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return {each for each in items if isinstance(each, str)}


def _not_admitted(wanted: str) -> Problem:
    return Problem(403, "identity_not_admitted", f"this Hub requires {wanted} at that provider")


async def sign_in_with_provider(
    hub: HubServices, answer: ProviderAnswer, origin: ActionOrigin
) -> SignedIn:
    """Open a session for the account of an identity, or create the account first."""
    try:
        ceremony, provider, identity = await _verify_answer(hub, "provider.sign_in", answer, None)
    except Problem as problem:
        await _note_refusal(hub, origin, problem.code)
        raise
    async with hub.database.read() as connection:
        known = await sign_in_records.find_identity(connection, identity.issuer, identity.subject)
    creates = ceremony.invitation is not None or provider.settings.accounts == "create"
    if known is None and not creates:
        await _note_refusal(hub, origin, "identity_unknown")
        raise Problem(
            403,
            "identity_unknown",
            "no account has this identity; sign in by other means and link it, or ask for an "
            "invitation",
        )
    if known is None:
        return await _create_account(hub, ceremony, provider, identity, origin)
    if ceremony.invitation is not None:
        raise _identity_taken()
    return await _open_known(hub, known, identity, origin)


async def _open_known(
    hub: HubServices, known: RowMapping, identity: VerifiedIdentity, origin: ActionOrigin
) -> SignedIn:
    now, owner = hub.now(), known["person_id"]
    own = msgspec.structs.replace(origin, actor_id=owner)
    async with hub.database.write() as connection:
        person = await sign_in_records.lock_person(connection, owner)
        again = await sign_in_records.find_identity(connection, identity.issuer, identity.subject)
        # Whoever was disabled, or unlinked this identity, meanwhile stays out.
        if person is not None and again is not None and again["person_id"] == owner:
            method = SignInMethod("provider", known["identity_id"])
            label = _to_label(identity)
            await sign_in_records.note_identity_use(connection, known["identity_id"], label, now)
            await add_audit_entry(connection, now, "session.opened", own, owner, method="provider")
            return await open_session(hub, connection, person, own, method)
    await _note_refusal(hub, origin, "sign_in_failed", owner)
    raise Problem(401, "sign_in_failed", "no account accepts this identity")


async def _note_refusal(
    hub: HubServices, origin: ActionOrigin, code: str, owner: str | None = None
) -> None:
    async with hub.database.write() as connection:
        await add_audit_entry(
            connection, hub.now(), "session.refused", origin, owner, method="provider", code=code
        )


async def _create_account(
    hub: HubServices,
    ceremony: Ceremony,
    provider: IdentityProvider,
    identity: VerifiedIdentity,
    origin: ActionOrigin,
) -> SignedIn:
    now, person_id = hub.now(), new_id("usr")
    own = msgspec.structs.replace(origin, actor_id=person_id)
    try:
        async with hub.database.write() as connection:
            name = await _choose_name(connection, ceremony.name, provider, identity.claims)
            person = await _insert_account(
                connection, ceremony, provider, name, origin=own, now=now
            )
            row = await _insert_identity(connection, person_id, provider, identity, now)
            method = SignInMethod("provider", row["identity_id"])
            return await open_session(hub, connection, person, own, method)
    except IntegrityError:
        # Of two that came at once, one has the name or the identity now.
        raise name_taken() from None


async def _insert_account(
    connection: AsyncConnection,
    ceremony: Ceremony,
    provider: IdentityProvider,
    name: str,
    *,
    origin: ActionOrigin,
    now: int,
) -> RowMapping:
    person_id = origin.actor_id or ""
    if ceremony.invitation is not None:
        return await insert_invited(
            connection,
            ceremony.invitation,
            person_id,
            name,
            hashed=NO_PASSWORD,
            origin=origin,
            now=now,
        )
    role = provider.settings.role
    row = await insert_person(connection, person_id, name, role=role, hashed=NO_PASSWORD, now=now)
    await add_audit_entry(
        connection, now, "person.registered", origin, person_id, provider=provider.name, role=role
    )
    return row


async def _choose_name(
    connection: AsyncConnection,
    wanted: str | None,
    provider: IdentityProvider,
    claims: Mapping[str, Any],
) -> str:
    """The name that somebody chose, else the one at the provider with a number where it is taken:
    a name is a name, and makes nobody somebody else.
    """
    if wanted is not None:
        return wanted
    texts = [claims.get(each) for each in ("preferred_username", "name")]
    found = [clean_label(each) for each in texts if isinstance(each, str)]
    base = next((each for each in found if name_key(each)), f"{provider.name} user")
    base = base[: PERSON_NAME_CHARACTERS - 4]
    for number in range(1, PROVIDER_NAME_TRIES + 1):
        name = normalize_name(base if number == 1 else f"{base} {number}")
        if await people_records.find_by_name(connection, name_key(name)) is None:
            return name
    raise name_taken()


async def _insert_identity(
    connection: AsyncConnection,
    person_id: str,
    provider: IdentityProvider,
    identity: VerifiedIdentity,
    now: int,
) -> RowMapping:
    return await sign_in_records.add_identity(
        connection,
        identity_id=new_id("idn"),
        person_id=person_id,
        provider=provider.name,
        issuer=identity.issuer,
        subject=identity.subject,
        label=_to_label(identity),
        created_at=now,
    )


def _to_label(identity: VerifiedIdentity) -> str:
    texts = [identity.claims.get(each) for each in ("email", "preferred_username", "name")]
    found = [clean_label(each) for each in texts if isinstance(each, str)]
    return next((each for each in found if each), clean_label(identity.subject))


async def link_identity(
    hub: HubServices, caller: HubCaller, answer: ProviderAnswer, origin: ActionOrigin
) -> ProviderIdentity:
    """Let the caller sign in with an identity from now on."""
    _, provider, identity = await _verify_answer(hub, "provider.link", answer, caller)
    now = hub.now()
    try:
        async with hub.database.write() as connection:
            await lock_account(connection, caller, now)
            ensure_room(await sign_in_records.list_identities(connection, caller.person_id))
            row = await _insert_identity(connection, caller.person_id, provider, identity, now)
            await add_audit_entry(
                connection,
                now,
                "method.added",
                origin,
                caller.person_id,
                method="provider",
                methodId=row["identity_id"],
            )
    except IntegrityError:
        raise _identity_taken() from None
    return sign_in_records.to_identity(row, hub.providers.issuers())


def _identity_taken() -> Problem:
    return Problem(409, "identity_taken", "an account has this identity already")
