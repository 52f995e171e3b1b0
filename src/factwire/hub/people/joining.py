"""Joining: a machine or a screen asks, a person who is signed in confirms, and a token is made when
it is collected.

An Edge, or a terminal, shows a short code (RFC 8628); the person who types it sees what asks, from
where and since when, and confirms or refuses. A phone scans a code from a signed-in screen instead;
that code lets it ask, and nothing else: the screen shows what asked, and the person confirms there.
A code is good once and for five minutes. How often codes can be tried is bounded for each person,
each address and each code, and what asks is nobody's until somebody has decided about it.
"""

import io
import secrets
from typing import Any, Final, Literal

import msgspec
import segno
from sqlalchemy import insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.device_resources import (
    AuthorizationRequest,
    ClaimedPairing,
    CreatedPairing,
    DeviceAuthorization,
    DeviceAuthorizationBody,
    JoinedDevice,
    Pairing,
    PairingClaim,
    PairingState,
)
from factwire.hub.hub_resources import SignedIn
from factwire.hub.limits import (
    AUTHORIZATION_SECONDS,
    AUTHORIZATIONS_OPEN,
    CODE_TRIES_PER_MINUTE,
    PAIRINGS_PER_PERSON,
    POLL_GRACE_SECONDS,
    POLL_SECONDS,
    SLOW_DOWN_SECONDS,
    USER_CODE_CHARACTERS,
    USER_CODE_LETTERS,
)
from factwire.hub.people import accounts, devices
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.devices import NewDevice
from factwire.hub.people.hub_tokens import digest_of
from factwire.hub.people.passwords import normalize_name
from factwire.hub.records import device_records, people_records
from factwire.hub.records.device_tables import (
    AuthorizationKind,
    Decision,
    device_authorizations,
    pairings,
)
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.people_records import format_time
from factwire.hub.request_rates import Rate
from factwire.serving.asgi import Problem

BY_PERSON: Final = Rate("code-by-person", CODE_TRIES_PER_MINUTE)
BY_CODE: Final = Rate("code-by-code", CODE_TRIES_PER_MINUTE)

DeviceError = Literal["access_denied", "authorization_pending", "expired_token", "slow_down"]
"""Why a poll has no token yet, or never, in the words of RFC 8628."""

_MILLISECONDS: Final = 1_000
_ACTIONS: Final = {"confirm": "authorization.confirmed", "refuse": "authorization.refused"}
_HALF: Final = USER_CODE_CHARACTERS // 2


def new_user_code() -> str:
    """Letters for a person to type, in two halves."""
    letters = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_CHARACTERS))
    return f"{letters[:_HALF]}-{letters[_HALF:]}"


def clean_user_code(code: str) -> str:
    """A code as it was made, however it was typed."""
    letters = "".join(each for each in code.upper() if each in USER_CODE_LETTERS)
    return f"{letters[:_HALF]}-{letters[_HALF:]}"


async def begin_authorization(
    hub: HubServices, body: DeviceAuthorizationBody, origin: ActionOrigin
) -> DeviceAuthorization:
    """Note what asks, and give it its codes."""
    device_code, user_code = hub.tokens.new_code(), new_user_code()
    edge_id = "" if body.edge_id is msgspec.UNSET else body.edge_id
    async with hub.database.write() as connection:
        await _add_asking(
            hub,
            connection,
            origin,
            device_code,
            user_code,
            kind="edge" if edge_id else "screen",
            body=body,
            edge_id=edge_id,
        )
    page = f"{hub.url}/device"
    return DeviceAuthorization(
        device_code=device_code,
        user_code=user_code,
        verification_uri=page,
        verification_uri_complete=f"{page}#{user_code}",
        expires_in=AUTHORIZATION_SECONDS,
        interval=POLL_SECONDS,
    )


async def _add_asking(
    hub: HubServices,
    connection: AsyncConnection,
    origin: ActionOrigin,
    device_code: str,
    user_code: str,
    *,
    kind: AuthorizationKind,
    body: DeviceAuthorizationBody,
    edge_id: str = "",
    person_id: str | None = None,
) -> None:
    now = hub.now()
    added = await device_records.add_authorization(
        connection,
        now,
        AUTHORIZATIONS_OPEN,
        device_code_digest=digest_of(device_code),
        user_code_digest=hub.tokens.digest_user_code(user_code),
        kind=kind,
        edge_id=edge_id,
        name=normalize_name(body.name),
        platform=_printable(body.platform),
        version=_printable(body.version),
        agents=msgspec.json.encode([_printable(agent) for agent in body.agents]).decode(),
        address=origin.address,
        user_agent=origin.user_agent,
        expires_at=now + AUTHORIZATION_SECONDS * _MILLISECONDS,
        interval_seconds=POLL_SECONDS,
        person_id=person_id,
    )
    if not added:
        raise Problem(
            429,
            "too_many_requests",
            "too many devices ask to join this Hub at the moment; try again in a minute",
            headers={"retry-after": "60"},
        )


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))


def _count_try(hub: HubServices, caller: HubCaller, digest: str) -> None:
    hub.rates.spend(BY_PERSON, caller.person_id)
    hub.rates.spend(BY_CODE, digest)


async def read_authorization(
    hub: HubServices, caller: HubCaller, user_code: str
) -> AuthorizationRequest:
    """What asks under a code that somebody typed."""
    digest = hub.tokens.digest_user_code(clean_user_code(user_code))
    _count_try(hub, caller, digest)
    async with hub.database.read() as connection:
        row = await device_records.find_asking(connection, digest, caller.person_id, hub.now())
        if row is None:
            raise _unknown_code()
        replaces = await _find_replaced(connection, row, caller.person_id)
    return device_records.to_request(row, replaces)


async def _find_replaced(
    connection: AsyncConnection, row: RowMapping, person_id: str
) -> str | None:
    if row["kind"] != "edge":
        return None
    return await devices.ensure_edge_free(connection, row["edge_id"], person_id)


async def decide_authorization(
    hub: HubServices, caller: HubCaller, user_code: str, decision: Decision, origin: ActionOrigin
) -> AuthorizationRequest:
    """Confirm or refuse what asks under a code; the first decision stays."""
    digest = hub.tokens.digest_user_code(clean_user_code(user_code))
    _count_try(hub, caller, digest)
    async with hub.database.write() as connection:
        row = await device_records.find_asking(
            connection, digest, caller.person_id, hub.now(), lock=True
        )
        if row is None:
            raise _unknown_code()
        if row["kind"] == "edge" and not caller.may("member"):
            raise Problem(
                403, "insufficient_role", f"this needs the role member; yours is {caller.role}"
            )
        replaces = await _find_replaced(connection, row, caller.person_id)
        await _decide(hub, connection, row, decision, origin)
        shown = device_records.to_request(row, replaces)
    return msgspec.structs.replace(shown, decision=decision)


async def _decide(
    hub: HubServices,
    connection: AsyncConnection,
    row: RowMapping,
    decision: Decision,
    origin: ActionOrigin,
) -> None:
    if row["decision"] == decision:
        return
    if row["decision"] is not None:
        raise Problem(409, "already_decided", "you have decided the opposite before")
    await device_records.change_authorization(
        connection, row["device_code_digest"], decision=decision, person_id=origin.actor_id
    )
    await add_audit_entry(
        connection,
        hub.now(),
        _ACTIONS[decision],
        origin,
        origin.actor_id,
        kind=row["kind"],
        name=row["name"],
        askedFrom=row["address"],
    )


def _unknown_code() -> Problem:
    return Problem(404, "unknown_code", "nothing asks under this code; it may have expired")


async def collect_device(hub: HubServices, device_code: str, origin: ActionOrigin) -> JoinedDevice:
    """The token of a device that was confirmed, made now and given once; raises `Problem` with the
    errors of RFC 8628.
    """
    async with hub.events.change() as change:
        row = await _take_asking(hub, change.connection, device_code, "edge")
        if isinstance(row, Problem):
            problem = row
        else:
            person = await _find_person(change.connection, row)
            new = NewDevice(
                person_id=person["person_id"],
                person_name=person["name"],
                edge_id=row["edge_id"],
                name=row["name"],
                platform=row["platform"],
                version=row["version"],
                agents=msgspec.json.decode(row["agents"]),
            )
            own = msgspec.structs.replace(origin, actor_id=person["person_id"])
            return await devices.register_device(hub, change, new, own)
    # Raised outside of the transaction, which would otherwise forget that the device polled.
    raise problem


async def collect_session(hub: HubServices, device_code: str, origin: ActionOrigin) -> SignedIn:
    """The session of a screen or a terminal that was confirmed, opened now and given once."""
    async with hub.database.write() as connection:
        row = await _take_asking(hub, connection, device_code, "screen")
        if isinstance(row, Problem):
            problem = row
        else:
            person, now = await _find_person(connection, row), hub.now()
            own = msgspec.structs.replace(origin, actor_id=person["person_id"])
            await add_audit_entry(
                connection, now, "session.opened", own, person["person_id"], by="confirmation"
            )
            return await accounts.open_session(
                hub, connection, person, own, accounts.CONFIRMATION_METHOD, name=row["name"]
            )
    raise problem


async def _find_person(connection: AsyncConnection, row: RowMapping) -> RowMapping:
    """Who confirmed; raises `Problem` where they may no longer sign in."""
    person = await people_records.find_person(connection, row["person_id"])
    if person is None or person["disabled_at"] is not None:
        raise _device_error("access_denied", "whoever confirmed may no longer sign in")
    return person


async def _take_asking(
    hub: HubServices, connection: AsyncConnection, device_code: str, kind: AuthorizationKind
) -> RowMapping | Problem:
    """What was confirmed and is collected with this; the problem where it is not to be had, or not
    yet.
    """
    now, digest = hub.now(), digest_of(device_code)
    row = await device_records.lock_authorization(connection, digest)
    if row is None or row["kind"] != kind or row["collected_at"] or row["expires_at"] <= now:
        return _device_error("expired_token", "the code is unknown, used or expired; begin again")
    if row["decision"] == "confirm":
        await device_records.change_authorization(connection, digest, collected_at=now)
        return row
    if row["decision"] == "refuse":
        return _device_error("access_denied", "this was refused")
    interval = row["interval_seconds"]
    soonest = (row["polled_at"] or 0) + (interval - POLL_GRACE_SECONDS) * _MILLISECONDS
    is_early = now < soonest
    if is_early:
        interval += SLOW_DOWN_SECONDS
    await device_records.change_authorization(
        connection, digest, polled_at=now, interval_seconds=interval
    )
    if is_early:
        return _device_error("slow_down", f"poll every {interval} s at most", interval=interval)
    return _device_error("authorization_pending", "nobody has confirmed this yet; ask again")


def _device_error(code: DeviceError, detail: str, **members: Any) -> Problem:
    return Problem(400, code, detail, error=code, **members)


async def create_pairing(
    hub: HubServices, caller: HubCaller, origin: ActionOrigin
) -> CreatedPairing:
    """A code for another screen of the caller's, to be shown on this one."""
    pairing_id, code, now = new_id("pair"), hub.tokens.new_code(), hub.now()
    async with hub.database.write() as connection:
        await _trim_pairings(connection, caller.person_id, now)
        statement = (
            insert(pairings)
            .values(
                pairing_id=pairing_id,
                person_id=caller.person_id,
                session_id=caller.session_id,
                code_digest=digest_of(code),
                created_at=now,
                expires_at=now + AUTHORIZATION_SECONDS * _MILLISECONDS,
            )
            .returning(pairings)
        )
        row = (await connection.execute(statement)).mappings().one()
        await add_audit_entry(
            connection, now, "pairing.created", origin, caller.person_id, pairingId=pairing_id
        )
    link = f"{hub.url}/pair#{code}"
    shown = _to_pairing(row, None)
    return CreatedPairing(**msgspec.structs.asdict(shown), code=code, link=link, qr=draw_svg(link))


async def _trim_pairings(connection: AsyncConnection, owner: str, now: int) -> None:
    oldest = (
        select(pairings.c.pairing_id)
        .where(pairings.c.person_id == owner, pairings.c.expires_at > now)
        .order_by(pairings.c.created_at.desc(), pairings.c.pairing_id)
        .offset(PAIRINGS_PER_PERSON - 1)
    )
    found = list((await connection.execute(oldest)).scalars())
    if found:
        change = update(pairings).where(pairings.c.pairing_id.in_(found)).values(expires_at=now)
        await connection.execute(change)


def draw_svg(text: str) -> str:
    """A QR code as an SVG image that needs no style of its own."""
    image = io.BytesIO()
    segno.make(text, error="m", micro=False).save(
        image, kind="svg", scale=6, xmldecl=False, svgns=True, nl=False
    )
    return image.getvalue().decode()


async def claim_pairing(
    hub: HubServices, claim: PairingClaim, origin: ActionOrigin
) -> ClaimedPairing:
    """Ask to be signed in by a code from a signed-in screen; the first who does is the only one."""
    device_code, now = hub.tokens.new_code(), hub.now()
    name = "Phone" if claim.name is msgspec.UNSET else claim.name
    async with hub.database.write() as connection:
        taking = (
            update(pairings)
            .where(
                pairings.c.code_digest == digest_of(claim.code),
                pairings.c.expires_at > now,
                pairings.c.device_code_digest.is_(None),
            )
            .values(device_code_digest=digest_of(device_code))
            .returning(pairings)
        )
        row = (await connection.execute(taking)).mappings().one_or_none()
        # Who signed out at the screen that shows the code wants nobody to come in by it.
        session = row and await people_records.find_session_person(
            connection, row["person_id"], row["session_id"], now
        )
        if row is None or session is None:
            raise Problem(404, "unknown_code", "this code is unknown, used or expired")
        await _add_asking(
            hub,
            connection,
            origin,
            device_code,
            # Nobody types this one: only the pairing's own screen can confirm.
            hub.tokens.new_code(),
            kind="screen",
            body=DeviceAuthorizationBody(name=name),
            person_id=row["person_id"],
        )
    return ClaimedPairing(
        device_code=device_code, expires_in=AUTHORIZATION_SECONDS, interval=POLL_SECONDS
    )


async def read_pairing(hub: HubServices, caller: HubCaller, pairing_id: str) -> Pairing:
    """A pairing of the caller's, and what claimed it."""
    async with hub.database.read() as connection:
        row, claim = await _find_pairing(connection, caller, pairing_id, hub.now())
    return _to_pairing(row, claim)


async def decide_pairing(
    hub: HubServices, caller: HubCaller, pairing_id: str, decision: Decision, origin: ActionOrigin
) -> Pairing:
    """Confirm or refuse what claimed a pairing of the caller's."""
    async with hub.database.write() as connection:
        row, claim = await _find_pairing(connection, caller, pairing_id, hub.now(), lock=True)
        if claim is None:
            raise Problem(409, "pairing_unclaimed", "nothing has scanned this code yet")
        await _decide(hub, connection, claim, decision, origin)
        row, claim = await _find_pairing(connection, caller, pairing_id, hub.now())
    return _to_pairing(row, claim)


async def _find_pairing(
    connection: AsyncConnection,
    caller: HubCaller,
    pairing_id: str,
    now: int,
    *,
    lock: bool = False,
) -> tuple[RowMapping, RowMapping | None]:
    query = select(pairings).where(
        pairings.c.pairing_id == pairing_id,
        pairings.c.person_id == caller.person_id,
        pairings.c.expires_at > now,
    )
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise Problem(404, "unknown_pairing", "none of your pairings has this id")
    asking = device_authorizations
    claimed = select(asking).where(
        asking.c.device_code_digest == row["device_code_digest"],
        asking.c.person_id == caller.person_id,
    )
    found = await connection.execute(claimed.with_for_update() if lock else claimed)
    return row, found.mappings().one_or_none()


def _to_pairing(row: RowMapping, claim: RowMapping | None) -> Pairing:
    state: PairingState = "open"
    if claim is not None:
        decided: dict[str | None, PairingState] = {
            None: "claimed",
            "confirm": "confirmed",
            "refuse": "refused",
        }
        state = "collected" if claim["collected_at"] else decided[claim["decision"]]
    return Pairing(
        pairing_id=row["pairing_id"],
        state=state,
        created_at=format_time(row["created_at"]),
        expires_at=format_time(row["expires_at"]),
        claim=None if claim is None else device_records.to_request(claim),
    )
