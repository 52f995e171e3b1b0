"""What people do with their accounts: register, sign in, refresh, sign out, change a password.

An account begins with an invitation; the link for the first admin is one. Whatever changes
something writes its line of the audit log in the same transaction. Somebody who signs in with a
wrong password, a wrong name or a disabled account gets the same answer in the same time. A refresh
token that comes again after it was replaced means that two have it, so its session ends. One
exception keeps a lost answer from ending a session: the token that was replaced last gets the same
answer again for a few seconds, as long as nobody has used what that answer contained.
"""

import math
from time import time
from typing import Any, Final

import msgspec
from sqlalchemy import insert, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from ulid import ULID

from factwire.hub.hub_resources import (
    CreatedInvitation,
    HubPage,
    PersonAccount,
    SignedIn,
    SignInSession,
)
from factwire.hub.limits import (
    ACCESS_TOKEN_SECONDS,
    FIRST_ADMIN_SECONDS,
    REFRESH_REPEAT_SECONDS,
    REFRESH_TOKEN_SECONDS,
    SESSIONS_PER_PERSON,
)
from factwire.hub.people.hub_tokens import Clock, HubTokens, digest_of
from factwire.hub.people.passwords import Passwords, check_password, name_key, normalize_name
from factwire.hub.records import invitation_records, people_records
from factwire.hub.records.hub_database import HubDatabase
from factwire.hub.records.hub_tables import ROLES, Role, people, sessions
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.serving.asgi import Problem

FIRST_ADMIN: Final = "inv_first_admin"
"""The id of the invitation for the first admin, of which there is one at a time."""

_MILLISECONDS: Final = 1_000


class HubCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends a request, by the access token that came with it."""

    person_id: str
    session_id: str
    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether somebody has a role, or one that includes it."""
        return ROLES.index(self.role) <= ROLES.index(role)


class HubServices(msgspec.Struct, frozen=True, kw_only=True):
    """What operations on accounts need; `url` is where people open the Hub."""

    database: HubDatabase
    passwords: Passwords
    tokens: HubTokens
    url: str
    clock: Clock = time

    def now(self) -> int:
        """The time as it is stored."""
        return math.floor(self.clock() * _MILLISECONDS)

    def join_link(self, token: str) -> str:
        """The link that an invitation is sent as; a fragment reaches no server and no log."""
        return f"{self.url}/join#{token}"


def new_id(prefix: str) -> str:
    return f"{prefix}_{ULID()}"


async def authenticate(hub: HubServices, token: str) -> HubCaller | None:
    """Who comes with an access token; None where it is wrong, or its session is over."""
    claims = hub.tokens.read_access(token)
    if claims is None:
        return None
    async with hub.database.read() as connection:
        row = await people_records.find_session_person(
            connection, claims.sub, claims.sid, hub.now()
        )
    if row is None:
        return None
    return HubCaller(
        person_id=claims.sub, session_id=claims.sid, name=row["name"], role=row["role"]
    )


async def invite_first_admin(hub: HubServices, origin: ActionOrigin) -> CreatedInvitation | None:
    """A fresh link for the first admin, in the place of any earlier one; None once somebody has an
    account.
    """
    now = hub.now()
    async with hub.database.write() as connection:
        if not await people_records.is_empty(connection):
            return None
        token = hub.tokens.invitation_secret(FIRST_ADMIN, now)
        await invitation_records.replace_invitation(
            connection,
            invitation_id=FIRST_ADMIN,
            token_digest=digest_of(token),
            role="admin",
            created_by=None,
            created_at=now,
            expires_at=now + FIRST_ADMIN_SECONDS * _MILLISECONDS,
            max_uses=1,
        )
        await add_audit_entry(connection, now, "invitation.created", origin, FIRST_ADMIN)
        row = await invitation_records.find_invitation(connection, FIRST_ADMIN, None)
    return None if row is None else to_created_invitation(hub, row)


def to_created_invitation(hub: HubServices, row: RowMapping) -> CreatedInvitation:
    """An invitation with its link, which follows from the key and is stored nowhere."""
    token = hub.tokens.invitation_secret(row["invitation_id"], row["created_at"])
    shown = invitation_records.to_invitation(row)
    return CreatedInvitation(
        **msgspec.structs.asdict(shown), token=token, link=hub.join_link(token)
    )


async def register(
    hub: HubServices,
    invitation: str,
    name: str,
    password: str,
    origin: ActionOrigin,
    *,
    person_id: str | None = None,
) -> SignedIn:
    """Create an account by an invitation, and sign in; a `person_id` that exists already is a
    repeat, which is signed in if it comes with the same password.
    """
    shown = normalize_name(name)
    checked = check_password(password, shown)
    digest = digest_of(invitation)
    async with hub.database.read() as connection:
        repeated = person_id and await people_records.find_person(connection, person_id)
        usable = await invitation_records.find_usable(connection, digest, hub.now())
    if repeated:
        return await sign_in(hub, repeated["name"], password, origin)
    if usable is None:
        raise _invitation_invalid()
    hashed = await hub.passwords.hash(checked)
    now, chosen = hub.now(), person_id or new_id("usr")
    try:
        async with hub.database.write() as connection:
            if not await invitation_records.use_invitation(connection, digest, now):
                raise _invitation_invalid()
            row = await insert_person(
                connection, chosen, shown, role=usable["role"], hashed=hashed, now=now
            )
            own = msgspec.structs.replace(origin, actor_id=chosen)
            invited = usable["invitation_id"]
            await add_audit_entry(
                connection, now, "person.registered", own, chosen, invitationId=invited
            )
            return await _open_session(hub, connection, row, own, now)
    except IntegrityError:
        raise name_taken() from None


async def insert_person(
    connection: AsyncConnection, person_id: str, name: str, *, role: Role, hashed: str, now: int
) -> RowMapping:
    """Add an account; raises SQLAlchemy's `IntegrityError` where its name is taken."""
    change = (
        insert(people)
        .values(
            person_id=person_id,
            name=name,
            name_key=name_key(name),
            role=role,
            password_hash=hashed,
            created_at=now,
        )
        .returning(people)
    )
    return (await connection.execute(change)).mappings().one()


def name_taken() -> Problem:
    return Problem(409, "name_taken", "somebody has this name; choose another one")


def _invitation_invalid() -> Problem:
    return Problem(
        403,
        "invitation_invalid",
        "this invitation is unknown, used, revoked or expired; ask for a new one",
    )


async def sign_in(hub: HubServices, name: str, password: str, origin: ActionOrigin) -> SignedIn:
    """Open a session for a name and its password."""
    async with hub.database.read() as connection:
        row = await people_records.find_by_name(connection, name_key(name))
    allowed = row is not None and row["disabled_at"] is None
    matches = await hub.passwords.verify(row["password_hash"] if row else None, password)
    now = hub.now()
    if row is None or not (matches and allowed):
        async with hub.database.write() as connection:
            subject = None if row is None else row["person_id"]
            await add_audit_entry(connection, now, "session.refused", origin, subject)
        raise Problem(401, "sign_in_failed", "the name or the password is wrong")
    renewed: str | None = None
    if hub.passwords.is_outdated(row["password_hash"]):
        renewed = await hub.passwords.hash(check_password(password, row["name"]))
    own = msgspec.structs.replace(origin, actor_id=row["person_id"])
    async with hub.database.write() as connection:
        # Whoever was disabled, or changed the password, while it was verified stays out.
        same = people.c.password_hash == row["password_hash"]
        change = (
            update(people)
            .where(people.c.person_id == row["person_id"], same, people.c.disabled_at.is_(None))
            .values(password_hash=renewed or row["password_hash"])
        )
        if (await connection.execute(change)).rowcount != 1:
            raise Problem(401, "sign_in_failed", "the name or the password is wrong")
        await add_audit_entry(connection, now, "session.opened", own, row["person_id"])
        return await _open_session(hub, connection, row, own, now)


async def _open_session(
    hub: HubServices, connection: AsyncConnection, row: RowMapping, origin: ActionOrigin, now: int
) -> SignedIn:
    session_id = new_id("ses")
    refresh = hub.tokens.first_refresh(session_id)
    await people_records.trim_sessions(connection, row["person_id"], now, SESSIONS_PER_PERSON - 1)
    await connection.execute(
        insert(sessions).values(
            session_id=session_id,
            person_id=row["person_id"],
            created_at=now,
            last_used_at=now,
            expires_at=now + REFRESH_TOKEN_SECONDS * _MILLISECONDS,
            token_digest=digest_of(refresh),
            rotated_at=now,
            address=origin.address,
            user_agent=origin.user_agent,
        )
    )
    return _to_signed_in(hub, row, session_id, refresh)


def _to_signed_in(hub: HubServices, row: RowMapping, session_id: str, refresh: str) -> SignedIn:
    return SignedIn(
        access_token=hub.tokens.issue_access(row["person_id"], session_id),
        expires_in=ACCESS_TOKEN_SECONDS,
        refresh_token=refresh,
        refresh_expires_in=REFRESH_TOKEN_SECONDS,
        session_id=session_id,
        person=people_records.to_account(row),
    )


async def refresh_session(hub: HubServices, token: str, origin: ActionOrigin) -> SignedIn:
    """Exchange a refresh token for the next one and an access token."""
    session_id = hub.tokens.read_refresh(token)
    if session_id is None:
        raise _refresh_invalid()
    now = hub.now()
    async with hub.database.write() as connection:
        session = await people_records.lock_session(connection, session_id)
        owner = "" if session is None else session["person_id"]
        row = await people_records.find_session_person(connection, owner, session_id, now)
        if session is None or row is None:
            raise _refresh_invalid()
        following = hub.tokens.next_refresh(token)
        if digest_of(token) == session["token_digest"]:
            await _rotate(connection, session, digest_of(following), now)
        elif not _is_repeat(session, digest_of(token), now):
            await people_records.end_sessions(connection, owner, now, only=session_id)
            await add_audit_entry(
                connection, now, "session.token_reused", origin, owner, sessionId=session_id
            )
            # Raised outside of the transaction, which would otherwise take this back.
            following = ""
    if not following:
        raise Problem(
            401,
            "refresh_token_reused",
            "this refresh token was used before, so the session was ended; sign in again",
        )
    return _to_signed_in(hub, row, session_id, following)


async def _rotate(connection: AsyncConnection, session: RowMapping, digest: str, now: int) -> None:
    await connection.execute(
        update(sessions)
        .where(sessions.c.session_id == session["session_id"])
        .values(
            token_digest=digest,
            previous_digest=session["token_digest"],
            rotated_at=now,
            last_used_at=now,
            expires_at=now + REFRESH_TOKEN_SECONDS * _MILLISECONDS,
        )
    )


def _is_repeat(session: RowMapping, digest: str, now: int) -> bool:
    """Whether it is the token that was replaced last, a moment ago: once its successor is used, it
    is no longer that.
    """
    # Either way: a clock that was set back signs nobody out.
    recent = abs(now - session["rotated_at"]) <= REFRESH_REPEAT_SECONDS * _MILLISECONDS
    return recent and digest == session["previous_digest"]


def _refresh_invalid() -> Problem:
    return Problem(
        401, "refresh_token_invalid", "the refresh token is unknown or its session is over; sign in"
    )


async def end_session(
    hub: HubServices, caller: HubCaller, session_id: str, origin: ActionOrigin
) -> None:
    """End a session of the caller's own; raises `Problem` for any other id."""
    now = hub.now()
    async with hub.database.write() as connection:
        ended = await people_records.end_sessions(
            connection, caller.person_id, now, only=session_id
        )
        if not ended:
            raise Problem(404, "unknown_session", "none of your sessions has this id")
        await add_audit_entry(
            connection, now, "session.ended", origin, caller.person_id, sessionId=session_id
        )


async def list_sessions(
    hub: HubServices, caller: HubCaller, cursor: str | None, limit: int
) -> HubPage[SignInSession]:
    """The open sessions of the caller."""
    async with hub.database.read() as connection:
        rows, following = await people_records.list_sessions(
            connection, caller.person_id, hub.now(), cursor, limit
        )
    items = [people_records.to_session(row, caller.session_id) for row in rows]
    return HubPage(items=items, next=following)


async def change_password(
    hub: HubServices, caller: HubCaller, current: str, new: str, origin: ActionOrigin
) -> None:
    """Set the caller's password and end their other sessions."""
    checked = check_password(new, caller.name)
    async with hub.database.read() as connection:
        row = await people_records.find_person(connection, caller.person_id)
    before: Any = None if row is None else row["password_hash"]
    if not await hub.passwords.verify(before, current):
        raise Problem(403, "password_wrong", "the current password is wrong")
    hashed = await hub.passwords.hash(checked)
    now = hub.now()
    async with hub.database.write() as connection:
        await _replace_hash(connection, caller.person_id, hashed, before)
        ended = await people_records.end_sessions(
            connection, caller.person_id, now, keep=caller.session_id
        )
        await add_audit_entry(
            connection, now, "password.changed", origin, caller.person_id, sessionsEnded=ended
        )


async def _replace_hash(
    connection: AsyncConnection, person_id: str, hashed: str, before: str
) -> None:
    change = (
        update(people)
        .where(people.c.person_id == person_id, people.c.password_hash == before)
        .values(password_hash=hashed)
    )
    if (await connection.execute(change)).rowcount != 1:
        raise Problem(409, "password_changed", "the password was changed meanwhile; try again")


async def read_account(hub: HubServices, caller: HubCaller, person_id: str) -> PersonAccount:
    """An account: the caller's own, or any for an admin; raises `Problem` for other ids."""
    async with hub.database.read() as connection:
        row = await people_records.find_person(connection, person_id)
    if row is None or not (caller.may("admin") or caller.person_id == person_id):
        raise unknown_person()
    return people_records.to_account(row)


def unknown_person() -> Problem:
    return Problem(404, "unknown_person", "nobody has this id")
