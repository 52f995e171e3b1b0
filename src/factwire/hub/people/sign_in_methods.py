"""The ways in which somebody can sign in, and ceremonies.

A ceremony is what has two halves: the Hub asks, and a browser comes back with an authenticator's or
a provider's answer. Between them the browser keeps the ceremony, sealed with the Hub's key: which
kind it is, for whom, until when. It is finished once, and a try that fails counts. Every secret of
it, such as a challenge, follows from the key and its id, so that the database has none.

Whoever adds or removes a way to sign in has signed in a moment ago, and nobody can remove their
last one. Sessions that were opened with what is removed end.
"""

import base64
import re
import secrets
from typing import Final, Literal

import msgspec
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import SignInMethods
from factwire.hub.limits import CEREMONY_SECONDS, METHOD_NAME_CHARACTERS, METHODS_PER_PERSON
from factwire.hub.people.accounts import (
    NO_PASSWORD,
    HubCaller,
    HubServices,
    ensure_recent,
    unknown_person,
)
from factwire.hub.records import people_records, sign_in_records
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.serving.asgi import Problem

CeremonyKind = Literal[
    "passkey.add",
    "passkey.register",
    "passkey.sign_in",
    "provider.link",
    "provider.sign_in",
]

_MILLISECONDS: Final = 1_000
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Ceremony(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was begun. `person_id` is whose passkey is made or wanted, `session_id` which session
    asks; `invitation` is the digest of a link, by which an account with a `name` is created.
    """

    ceremony_id: str
    kind: CeremonyKind
    expires_at: int
    person_id: str | None = None
    session_id: str | None = None
    provider: str | None = None
    name: str | None = None
    invitation: str | None = None


def begin_ceremony(hub: HubServices, kind: CeremonyKind, **fields: str | None) -> Ceremony:
    return Ceremony(
        ceremony_id=secrets.token_urlsafe(16),
        kind=kind,
        expires_at=hub.now() + CEREMONY_SECONDS * _MILLISECONDS,
        **fields,
    )


def seal_ceremony(hub: HubServices, ceremony: Ceremony) -> str:
    return hub.tokens.seal(f"ceremony {ceremony.kind}", msgspec.json.encode(ceremony).decode())


def _unseal_ceremony(hub: HubServices, kind: CeremonyKind, sealed: str) -> Ceremony | None:
    try:
        text = hub.tokens.unseal(f"ceremony {kind}", sealed)
    except ValueError:
        return None  # It is not even a text that could have been sealed.
    return None if text is None else msgspec.json.decode(text, type=Ceremony)


def derive_secret(hub: HubServices, ceremony: Ceremony, purpose: str) -> str:
    """A secret of a ceremony, such as its challenge: the same in both of its halves."""
    secret = hub.tokens.derive_secret(f"ceremony {purpose}", ceremony.ceremony_id)
    return base64.urlsafe_b64encode(secret).rstrip(b"=").decode()


async def finish_ceremony(
    hub: HubServices, kind: CeremonyKind, sealed: str, caller: HubCaller | None = None
) -> Ceremony:
    """The ceremony that somebody comes back with, which is over with that; raises `Problem` for one
    of another kind, another session, another time, or one that was finished before.
    """
    ceremony = _unseal_ceremony(hub, kind, sealed)
    now = hub.now()
    session_id = None if caller is None else caller.session_id
    if ceremony is None or ceremony.expires_at <= now or ceremony.session_id != session_id:
        raise ceremony_invalid()
    try:
        async with hub.database.write() as connection:
            await sign_in_records.add_finished_ceremony(
                connection, ceremony.ceremony_id, ceremony.expires_at, now
            )
    except IntegrityError:
        raise ceremony_invalid() from None
    return ceremony


def ceremony_invalid() -> Problem:
    return Problem(
        400,
        "ceremony_invalid",
        "this was begun elsewhere, too long ago or for something else, or it is finished already; "
        "begin again",
    )


def clean_label(text: str) -> str:
    """A text from elsewhere as it is shown: without controls, and of a bounded length."""
    return _CONTROLS.sub("", text).strip()[:METHOD_NAME_CHARACTERS]


async def list_methods(hub: HubServices, person_id: str) -> SignInMethods:
    async with hub.database.read() as connection:
        person = await people_records.find_person(connection, person_id)
        if person is None:
            raise unknown_person()
        passkeys = await sign_in_records.list_passkeys(connection, person_id)
        identities = await sign_in_records.list_identities(connection, person_id)
    offered = hub.providers.issuers()
    return SignInMethods(
        password=person["password_hash"] != NO_PASSWORD,
        passkeys=[sign_in_records.to_passkey(row) for row in passkeys],
        identities=[sign_in_records.to_identity(row, offered) for row in identities],
    )


async def describe_methods(hub: HubServices, person_ids: list[str]) -> dict[str, str]:
    """Person → how they sign in, in words."""
    async with hub.database.read() as connection:
        with_password = await people_records.find_with_password(connection, person_ids)
        counts = await sign_in_records.count_methods(connection, person_ids)
    described: dict[str, str] = {}
    for person_id, (passkeys, identities) in counts.items():
        words = ["password"] if person_id in with_password else []
        words += [f"{passkeys} passkey{'s' * (passkeys > 1)}"] if passkeys else []
        words += [f"{identities} provider{'s' * (identities > 1)}"] if identities else []
        described[person_id] = ", ".join(words) or "nothing"
    return described


async def lock_account(connection: AsyncConnection, caller: HubCaller, now: int) -> RowMapping:
    """The caller's account, to change how they sign in; raises `Problem`."""
    await ensure_recent(connection, caller, now)
    person = await sign_in_records.lock_person(connection, caller.person_id)
    if person is None:
        raise unknown_person()
    return person


def ensure_room(methods: list[RowMapping]) -> None:
    if len(methods) >= METHODS_PER_PERSON:
        raise Problem(
            409, "too_many_methods", f"you have {METHODS_PER_PERSON}, the maximum; remove one"
        )


async def remove_own_method(
    hub: HubServices, caller: HubCaller, method_id: str, origin: ActionOrigin
) -> None:
    """Remove a passkey or an identity of the caller."""
    now = hub.now()
    async with hub.database.write() as connection:
        person = await lock_account(connection, caller, now)
        await _remove_method(hub, connection, person, method_id, origin, keep=caller.session_id)


async def remove_method(
    hub: HubServices, person_id: str, method_id: str, origin: ActionOrigin
) -> None:
    """Remove a passkey or an identity of anybody, as the operator does."""
    async with hub.database.write() as connection:
        person = await people_records.find_person(connection, person_id)
        if person is None:
            raise unknown_person()
        await _remove_method(hub, connection, person, method_id, origin)


async def _remove_method(
    hub: HubServices,
    connection: AsyncConnection,
    person: RowMapping,
    method_id: str,
    origin: ActionOrigin,
    *,
    keep: str | None = None,
) -> None:
    owner, now = person["person_id"], hub.now()
    if not await sign_in_records.remove_method(connection, owner, method_id):
        raise Problem(404, "unknown_method", "no passkey and no identity has this id")
    if not await has_method(hub, connection, person):
        raise Problem(409, "last_method", "this is the last way to sign in; add another one first")
    ended = await people_records.end_sessions(
        connection, owner, now, keep=keep, method_id=method_id
    )
    await add_audit_entry(
        connection, now, "method.removed", origin, owner, methodId=method_id, sessionsEnded=ended
    )


async def has_method(hub: HubServices, connection: AsyncConnection, person: RowMapping) -> bool:
    """Whether somebody has any way to sign in that works at this Hub now."""
    if person["password_hash"] != NO_PASSWORD:
        return True
    owner, offered = person["person_id"], hub.providers.issuers()
    if await sign_in_records.list_passkeys(connection, owner):
        return True
    rows = await sign_in_records.list_identities(connection, owner)
    return any((row["provider"], row["issuer"]) in offered for row in rows)
