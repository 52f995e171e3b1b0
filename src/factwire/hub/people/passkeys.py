"""Passkeys: made by somebody who is signed in or invited, and used to sign in.

Every passkey is discoverable, so signing in names nobody, and the Hub tells nobody which passkeys a
name has. The authenticator verifies its user (a fingerprint, a PIN) each time. The Hub's public
address is the origin, and its host name what passkeys are bound to. Where an authenticator counts
its uses, a count that does not grow means that there are two of it, and both stay out.
"""

import ipaddress
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from sqlalchemy.exc import IntegrityError
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.authentication.verify_authentication_response import VerifiedAuthentication
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json_dict
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from webauthn.registration.verify_registration_response import VerifiedRegistration

from factwire.hub.hub_resources import Passkey, PasskeyCeremony, SignedIn
from factwire.hub.limits import CEREMONY_SECONDS, CREDENTIAL_CHARACTERS
from factwire.hub.people.accounts import (
    NO_PASSWORD,
    HubCaller,
    HubServices,
    SignInMethod,
    ensure_recent,
    insert_invited,
    invitation_invalid,
    name_taken,
    new_id,
    open_session,
)
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.people.passwords import name_key, normalize_name
from factwire.hub.people.sign_in_methods import (
    Ceremony,
    begin_ceremony,
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

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MILLISECONDS: Final = 1_000
_NOBODY: Final = "-"

# What the library lets through of an answer that is no answer of an authenticator.
_UNREADABLE: Final = (WebAuthnException, ValueError, TypeError, KeyError, IndexError)


def has_passkeys(hub: HubServices) -> bool:
    """Whether people can use passkeys here: browsers bind them to a name, never to a number."""
    try:
        ipaddress.ip_address(urlsplit(hub.url).hostname or "")
    except ValueError:
        return True
    return False


def _relying_party(hub: HubServices) -> tuple[str, str]:
    """The host name that passkeys are bound to, and the origin of the Hub's pages."""
    if not has_passkeys(hub):
        raise Problem(
            409,
            "passkeys_unavailable",
            "passkeys need a Hub that people open by a name; set hub.url, for example to "
            "http://localhost:8788",
        )
    url = urlsplit(hub.url)
    host, port = url.hostname or "", url.port
    shown = "" if port is None or port == _DEFAULT_PORTS.get(url.scheme) else f":{port}"
    return host, f"{url.scheme}://{host}{shown}"


def _challenge(hub: HubServices, ceremony: Ceremony) -> bytes:
    return derive_secret(hub, ceremony, "challenge").encode()


async def begin_adding(hub: HubServices, caller: HubCaller) -> PasskeyCeremony:
    """Ask for a new passkey of the caller."""
    async with hub.database.read() as connection:
        await ensure_recent(connection, caller, hub.now())
        rows = await sign_in_records.list_passkeys(connection, caller.person_id)
    ensure_room(rows)
    ceremony = begin_ceremony(
        hub, "passkey.add", person_id=caller.person_id, session_id=caller.session_id
    )
    existing = [row["credential_id"] for row in rows]
    return _ask_for_new(hub, ceremony, caller.person_id, caller.name, existing)


async def begin_registration(hub: HubServices, invitation: str, name: str) -> PasskeyCeremony:
    """Ask for the first passkey of somebody who is invited."""
    shown, digest = normalize_name(name), digest_of(invitation)
    async with hub.database.read() as connection:
        usable = await invitation_records.find_usable(connection, digest, hub.now())
        taken = await people_records.find_by_name(connection, name_key(shown))
    if usable is None:
        raise invitation_invalid()
    if taken is not None:
        raise name_taken()
    person_id = new_id("usr")
    ceremony = begin_ceremony(
        hub, "passkey.register", person_id=person_id, name=shown, invitation=digest
    )
    return _ask_for_new(hub, ceremony, person_id, shown, [])


def _ask_for_new(
    hub: HubServices, ceremony: Ceremony, person_id: str, name: str, existing: list[str]
) -> PasskeyCeremony:
    host, _ = _relying_party(hub)
    options = generate_registration_options(
        rp_id=host,
        rp_name=f"Factwire Hub at {host}",
        user_id=person_id.encode(),
        user_name=name,
        challenge=_challenge(hub, ceremony),
        timeout=CEREMONY_SECONDS * _MILLISECONDS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[
            PublicKeyCredentialDescriptor(id=base64url_to_bytes(each)) for each in existing
        ],
    )
    return PasskeyCeremony(
        ceremony=seal_ceremony(hub, ceremony), public_key=options_to_json_dict(options)
    )


async def add_passkey(
    hub: HubServices,
    caller: HubCaller,
    sealed: str,
    credential: dict[str, Any],
    *,
    name: str,
    origin: ActionOrigin,
) -> Passkey:
    """Take a new passkey of the caller."""
    ceremony = await finish_ceremony(hub, "passkey.add", sealed, caller)
    verified, now = _verify_new(hub, ceremony, credential), hub.now()
    values = _to_values(verified, name, caller.person_id, now)
    try:
        async with hub.database.write() as connection:
            await lock_account(connection, caller, now)
            ensure_room(await sign_in_records.list_passkeys(connection, caller.person_id))
            row = await sign_in_records.add_passkey(connection, **values)
            await add_audit_entry(
                connection,
                now,
                "method.added",
                origin,
                caller.person_id,
                method="passkey",
                methodId=row["passkey_id"],
            )
    except IntegrityError:
        raise _passkey_taken() from None
    return sign_in_records.to_passkey(row)


async def register_with_passkey(
    hub: HubServices,
    sealed: str,
    credential: dict[str, Any],
    passkey_name: str,
    origin: ActionOrigin,
) -> SignedIn:
    """Create an account that has a passkey and no password, and sign in."""
    ceremony = await finish_ceremony(hub, "passkey.register", sealed)
    person_id, name = ceremony.person_id or "", ceremony.name or ""
    verified, now = _verify_new(hub, ceremony, credential), hub.now()
    own = msgspec.structs.replace(origin, actor_id=person_id)
    try:
        async with hub.database.write() as connection:
            person = await insert_invited(
                connection,
                ceremony.invitation or "",
                person_id,
                name,
                hashed=NO_PASSWORD,
                origin=own,
                now=now,
            )
            row = await sign_in_records.add_passkey(
                connection, **_to_values(verified, passkey_name, person_id, now)
            )
            method = SignInMethod("passkey", row["passkey_id"])
            return await open_session(hub, connection, person, own, method)
    except IntegrityError:
        raise name_taken() from None


def _verify_new(
    hub: HubServices, ceremony: Ceremony, credential: dict[str, Any]
) -> VerifiedRegistration:
    host, page = _relying_party(hub)
    _ensure_bounded(credential)
    try:
        return verify_registration_response(
            credential=credential,
            expected_challenge=_challenge(hub, ceremony),
            expected_rp_id=host,
            expected_origin=page,
            require_user_verification=True,
        )
    except _UNREADABLE as error:
        raise Problem(
            400,
            "passkey_refused",
            "the passkey does not prove that it was made for this Hub, now, and with its user "
            "verified",
        ) from error


def _to_values(
    verified: VerifiedRegistration, name: str, person_id: str, now: int
) -> dict[str, Any]:
    return {
        "passkey_id": new_id("pky"),
        "person_id": person_id,
        "credential_id": bytes_to_base64url(verified.credential_id),
        "public_key": bytes_to_base64url(verified.credential_public_key),
        "sign_count": verified.sign_count,
        "synced": verified.credential_device_type == CredentialDeviceType.MULTI_DEVICE,
        "name": clean_label(name) or "Passkey",
        "created_at": now,
    }


def begin_sign_in(hub: HubServices, name: str | None) -> PasskeyCeremony:
    """Ask for a passkey: anybody's, or that of a name. The answer is the same whether somebody has
    the name or not.
    """
    host, _ = _relying_party(hub)
    ceremony = begin_ceremony(hub, "passkey.sign_in", name=name)
    options = generate_authentication_options(
        rp_id=host,
        challenge=_challenge(hub, ceremony),
        timeout=CEREMONY_SECONDS * _MILLISECONDS,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return PasskeyCeremony(
        ceremony=seal_ceremony(hub, ceremony), public_key=options_to_json_dict(options)
    )


async def sign_in_with_passkey(
    hub: HubServices, sealed: str, credential: dict[str, Any], origin: ActionOrigin
) -> SignedIn:
    """Open a session for whoever has a passkey."""
    ceremony = await finish_ceremony(hub, "passkey.sign_in", sealed)
    _ensure_bounded(credential)
    named = credential.get("id")
    async with hub.database.read() as connection:
        row = await sign_in_records.find_passkey(
            connection, named if isinstance(named, str) and named.isascii() else _NOBODY
        )
    verified = None
    if row is not None:
        verified = _verify_use(hub, ceremony, credential, row["public_key"], row["person_id"])
    now, person_id = hub.now(), None if row is None else row["person_id"]
    own = msgspec.structs.replace(origin, actor_id=person_id)
    refusal: Problem = _sign_in_failed()
    async with hub.database.write() as connection:
        if row is not None and verified is not None:
            person = await sign_in_records.lock_person(connection, row["person_id"])
            if person is not None and _is_named(ceremony, person["name_key"]):
                if await sign_in_records.count_passkey_use(
                    connection, row["passkey_id"], verified.new_sign_count, now
                ):
                    method = SignInMethod("passkey", row["passkey_id"])
                    await add_audit_entry(
                        connection, now, "session.opened", own, person_id, method="passkey"
                    )
                    return await open_session(hub, connection, person, own, method)
                refusal = _passkey_cloned()
        await add_audit_entry(
            connection, now, "session.refused", origin, person_id, method="passkey"
        )
    raise refusal


def _is_named(ceremony: Ceremony, key: str) -> bool:
    return ceremony.name is None or name_key(ceremony.name) == key


def _verify_use(
    hub: HubServices,
    ceremony: Ceremony,
    credential: dict[str, Any],
    public_key: str,
    person_id: str,
) -> VerifiedAuthentication | None:
    host, page = _relying_party(hub)
    try:
        handle = credential["response"].get("userHandle")
        if handle is not None and base64url_to_bytes(handle) != person_id.encode():
            return None
        return verify_authentication_response(
            credential=credential,
            expected_challenge=_challenge(hub, ceremony),
            expected_rp_id=host,
            expected_origin=page,
            credential_public_key=base64url_to_bytes(public_key),
            # The library would compare counts before it has verified the signature.
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except (*_UNREADABLE, AttributeError):
        return None


def _ensure_bounded(credential: dict[str, Any]) -> None:
    if len(msgspec.json.encode(credential)) > CREDENTIAL_CHARACTERS:
        raise Problem(400, "passkey_refused", "the answer of the authenticator is too long")


def _sign_in_failed() -> Problem:
    return Problem(401, "sign_in_failed", "no account accepts this passkey")


def _passkey_cloned() -> Problem:
    return Problem(
        401,
        "passkey_cloned",
        "the authenticator counted fewer uses than were seen, so there may be a copy of it; sign "
        "in by other means, and remove this passkey",
    )


def _passkey_taken() -> Problem:
    return Problem(409, "passkey_taken", "an account has this passkey already")


async def rename_passkey(
    hub: HubServices, caller: HubCaller, passkey_id: str, name: str, origin: ActionOrigin
) -> Passkey:
    now = hub.now()
    async with hub.database.write() as connection:
        row = await sign_in_records.rename_passkey(
            connection, caller.person_id, passkey_id, clean_label(name) or "Passkey"
        )
        if row is None:
            raise Problem(404, "unknown_method", "none of your passkeys has this id")
        await add_audit_entry(
            connection, now, "method.renamed", origin, caller.person_id, methodId=passkey_id
        )
    return sign_in_records.to_passkey(row)
