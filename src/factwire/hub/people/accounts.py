"""What people do with their accounts: register, sign in, refresh, sign out, change a password.

An account begins with an invitation; the link for the first admin is one. Whatever changes
something writes its line of the audit log in the same transaction. Somebody who signs in with a
wrong password, a wrong name or a disabled account gets the same answer in the same time. A refresh
token that comes again after it was replaced means that two have it, so its session ends. One
exception keeps a lost answer from ending a session: the token that was replaced last gets the same
answer again for a few seconds, as long as nobody has used what that answer contained.
"""

import math
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import insert, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from ulid import ULID

from factwire.hub.approvals.approval_resources import ApprovalLinks
from factwire.hub.chats.chat_links import ChatLinks
from factwire.hub.frames.event_log import EventLog
from factwire.hub.frames.hub_connections import HubConnections
from factwire.hub.hub_resources import (
    CreatedInvitation,
    HubPage,
    MethodKind,
    PersonAccount,
    SignedIn,
    SignInSession,
)
from factwire.hub.limits import (
    ACCESS_TOKEN_SECONDS,
    FIRST_ADMIN_SECONDS,
    RECENT_SIGN_IN_SECONDS,
    REFRESH_REPEAT_SECONDS,
    REFRESH_TOKEN_SECONDS,
    SESSION_USE_SECONDS,
    SESSIONS_PER_PERSON,
)
from factwire.hub.notifications.channel_senders import ChannelSenders
from factwire.hub.people.hub_tokens import Clock, HubTokens, digest_of
from factwire.hub.people.identity_providers import IdentityProviders
from factwire.hub.people.passwords import Passwords, check_password, name_key, normalize_name
from factwire.hub.records import invitation_records, people_records
from factwire.hub.records.hub_database import HubDatabase
from factwire.hub.records.hub_tables import ROLES, Role, people, sessions
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.request_rates import RequestRates
from factwire.journal.blobs import BlobStore
from factwire.serving.asgi import Problem

if TYPE_CHECKING:
    from factwire.hub.mirror.hub_mirrors import HubMirrors

FIRST_ADMIN: Final = "inv_first_admin"
"""The id of the invitation for the first admin, of which there is one at a time."""

_MILLISECONDS: Final = 1_000


class HubCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends a request, by the access token that came with it: a person, or one of their
    devices, which may do only what is the device's own.
    """

    person_id: str
    session_id: str
    name: str
    role: Role
    device_id: str | None = None
    last_used_at: int = 0

    def may(self, role: Role) -> bool:
        """Whether somebody has a role, or one that includes it."""
        return ROLES.index(self.role) <= ROLES.index(role)


class SignInMethod(msgspec.Struct, frozen=True):
    """How somebody showed who they are; `method_id` is the passkey or the identity."""

    kind: MethodKind
    method_id: str | None = None


PASSWORD_METHOD: Final = SignInMethod("password")
CONFIRMATION_METHOD: Final = SignInMethod("confirmation")

NO_PASSWORD: Final = ""
"""What stands in the place of a hash where an account has no password."""


class HubServices(msgspec.Struct, frozen=True, kw_only=True):
    """What operations of a Hub need; `url` is where people open it, `attachments` where files of
    chats are, and `chat_links` what chats use of other parts. Where no server runs, as for commands
    on its database, there are no mirrors and no senders.
    """

    database: HubDatabase
    passwords: Passwords
    tokens: HubTokens
    events: EventLog
    connections: HubConnections
    url: str
    approvals: ApprovalLinks
    attachments: BlobStore
    providers: IdentityProviders = IdentityProviders()
    chat_links: ChatLinks | None = None
    senders: ChannelSenders | None = None
    clock: Clock = time
    rates: RequestRates = msgspec.field(default_factory=lambda: RequestRates(monotonic))
    mirrors: "HubMirrors | None" = None

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
    now = hub.now()
    async with hub.database.read() as connection:
        caller = await find_caller(connection, claims.sub, claims.sid, now, claims.did)
    before = now - SESSION_USE_SECONDS * _MILLISECONDS
    if caller is not None and caller.device_id is None and caller.last_used_at <= before:
        async with hub.database.write() as connection:
            await people_records.note_session_use(connection, caller.session_id, before, now)
    return caller


async def find_caller(
    connection: AsyncConnection,
    person_id: str,
    session_id: str,
    now: int,
    device_id: str | None = None,
) -> HubCaller | None:
    """Who a session's requests are from; None where it is over."""
    row = await people_records.find_session_person(connection, person_id, session_id, now)
    if row is None:
        return None
    return HubCaller(
        person_id=person_id,
        session_id=session_id,
        name=row["name"],
        role=row["role"],
        device_id=device_id,
        last_used_at=row["last_used_at"],
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
        raise invitation_invalid()
    hashed = await hub.passwords.hash(checked)
    now, chosen = hub.now(), person_id or new_id("usr")
    own = msgspec.structs.replace(origin, actor_id=chosen)
    try:
        async with hub.database.write() as connection:
            row = await insert_invited(
                connection, digest, chosen, shown, hashed=hashed, origin=own, now=now
            )
            return await open_session(hub, connection, row, own, PASSWORD_METHOD)
    except IntegrityError:
        raise name_taken() from None


async def insert_invited(
    connection: AsyncConnection,
    digest: str,
    person_id: str,
    name: str,
    *,
    hashed: str,
    origin: ActionOrigin,
    now: int,
) -> RowMapping:
    """Add an account by an invitation, whose role it gets; raises `Problem`, or SQLAlchemy's
    `IntegrityError` where its name is taken.
    """
    usable = await invitation_records.find_usable(connection, digest, now)
    if usable is None or not await invitation_records.use_invitation(connection, digest, now):
        raise invitation_invalid()
    row = await insert_person(
        connection, person_id, name, role=usable["role"], hashed=hashed, now=now
    )
    invited = usable["invitation_id"]
    await add_audit_entry(
        connection, now, "person.registered", origin, person_id, invitationId=invited
    )
    return row


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


def invitation_invalid() -> Problem:
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
    stored = None if row is None else row["password_hash"]
    matches = await hub.passwords.verify(stored or None, password)
    now = hub.now()
    if row is None or not (matches and allowed):
        async with hub.database.write() as connection:
            subject = None if row is None else row["person_id"]
            await add_audit_entry(
                connection, now, "session.refused", origin, subject, method="password"
            )
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
        await add_audit_entry(
            connection, now, "session.opened", own, row["person_id"], method="password"
        )
        return await open_session(hub, connection, row, own, PASSWORD_METHOD)


async def open_session(
    hub: HubServices,
    connection: AsyncConnection,
    row: RowMapping,
    origin: ActionOrigin,
    method: SignInMethod,
    *,
    name: str | None = None,
) -> SignedIn:
    """Sign a person in who has shown who they are, at the place that an origin says; its line of
    the audit log is the caller's.
    """
    session_id, now = new_id("ses"), hub.now()
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
            method=method.kind,
            method_id=method.method_id,
            name=name,
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
        if session is None or row is None or session["device_id"] is not None:
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


async def rename_session(
    hub: HubServices, caller: HubCaller, session_id: str, name: str
) -> SignInSession:
    """Give a session of the caller's own a name; raises `Problem` for any other id."""
    shown = normalize_name(name)
    async with hub.database.write() as connection:
        row = await people_records.rename_session(
            connection, caller.person_id, session_id, shown, hub.now()
        )
    if row is None:
        raise Problem(404, "unknown_session", "none of your sessions has this id")
    return people_records.to_session(row, caller.session_id)


async def change_password(
    hub: HubServices, caller: HubCaller, current: str | None, new: str, origin: ActionOrigin
) -> None:
    """Set the caller's password and end their other sessions. Who has none yet needs to have signed
    in a moment ago.
    """
    checked = check_password(new, caller.name)
    async with hub.database.read() as connection:
        row = await people_records.find_person(connection, caller.person_id)
        before: Any = None if row is None else row["password_hash"]
        if before == NO_PASSWORD:
            await ensure_recent(connection, caller, hub.now())
    if before != NO_PASSWORD and not await hub.passwords.verify(before, current or ""):
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


async def ensure_recent(connection: AsyncConnection, caller: HubCaller, now: int) -> None:
    """Require that the caller signed in a moment ago: whoever found an open screen, or a token,
    must not give themselves a way to come back.
    """
    opened = await people_records.find_session_start(connection, caller.session_id)
    if opened is None or abs(now - opened) > RECENT_SIGN_IN_SECONDS * _MILLISECONDS:
        raise Problem(
            403,
            "sign_in_again",
            f"this needs a session of at most {RECENT_SIGN_IN_SECONDS // 60} minutes; sign in "
            "again, and repeat it",
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
