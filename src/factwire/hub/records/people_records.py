"""Queries about people and their sessions. A query about something that has an owner names the
owner, so that somebody else's id finds nothing.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import HubPage, PersonAccount, SignInSession
from factwire.hub.limits import ENDED_SESSION_SECONDS
from factwire.hub.records.hub_tables import Role, people, sessions
from factwire.serving.asgi import Problem

_MILLISECONDS = 1_000
_PLACE_DIGITS = 16


class Place(NamedTuple):
    """Where a row stands in a list that is ordered by time."""

    at: int
    key: str


def format_time(milliseconds: int) -> str:
    """A stored time as it is shown."""
    moment = datetime.fromtimestamp(milliseconds / _MILLISECONDS, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_optional_time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_time(milliseconds)


def format_place(place: Place) -> str:
    return f"before-{place.at}-{place.key}"


def parse_place(cursor: str | None) -> Place | None:
    """Where a page goes on; raises `Problem`."""
    if cursor is None:
        return None
    before, _, rest = cursor.partition("-")
    digits, _, key = rest.partition("-")
    if before != "before" or not (digits.isascii() and digits.isdigit()):
        raise _invalid_cursor()
    if len(digits) > _PLACE_DIGITS or not key.isprintable():
        raise _invalid_cursor()
    return Place(int(digits), key)


def _invalid_cursor() -> Problem:
    return Problem(400, "cursor_invalid", "expected the `next` value of the previous page")


async def fetch_page(
    connection: AsyncConnection,
    query: Select[Any],
    by: tuple[ColumnElement[int], ColumnElement[str]],
    cursor: str | None,
    limit: int,
) -> tuple[list[RowMapping], str | None]:
    """Rows of a query, newest first by a time and a key, and the cursor of those that follow."""
    time, key = by
    place = parse_place(cursor)
    if place is not None:
        query = query.where(or_(time < place.at, and_(time == place.at, key > place.key)))
    query = query.order_by(time.desc(), key).limit(limit + 1)
    rows = list((await connection.execute(query)).mappings())
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], format_place(Place(last[time.name], last[key.name]))


def to_account(row: RowMapping) -> PersonAccount:
    return PersonAccount(
        person_id=row["person_id"],
        name=row["name"],
        role=row["role"],
        created_at=format_time(row["created_at"]),
        disabled_at=format_optional_time(row["disabled_at"]),
    )


async def list_people(
    connection: AsyncConnection, cursor: str | None, limit: int
) -> HubPage[PersonAccount]:
    by = (people.c.created_at, people.c.person_id)
    rows, following = await fetch_page(connection, select(people), by, cursor, limit)
    return HubPage(items=[to_account(row) for row in rows], next=following)


async def find_person(connection: AsyncConnection, person_id: str) -> RowMapping | None:
    query = select(people).where(people.c.person_id == person_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def find_by_name(connection: AsyncConnection, key: str) -> RowMapping | None:
    query = select(people).where(people.c.name_key == key)
    return (await connection.execute(query)).mappings().one_or_none()


async def find_with_password(connection: AsyncConnection, person_ids: list[str]) -> set[str]:
    """Those of some people who have a password."""
    query = select(people.c.person_id).where(
        people.c.person_id.in_(person_ids), people.c.password_hash != ""
    )
    return set((await connection.execute(query)).scalars())


async def is_empty(connection: AsyncConnection) -> bool:
    """Whether nobody has an account yet."""
    found = await connection.execute(select(people.c.person_id).limit(1))
    return found.first() is None


async def count_people(connection: AsyncConnection) -> dict[Role, int]:
    """How many of each role may sign in."""
    query = (
        select(people.c.role, func.count())
        .where(people.c.disabled_at.is_(None))
        .group_by(people.c.role)
    )
    return dict((await connection.execute(query)).all())


async def count_sessions(connection: AsyncConnection, now: int) -> int:
    query = select(func.count()).where(sessions.c.ended_at.is_(None), sessions.c.expires_at > now)
    return (await connection.execute(query)).scalar_one()


async def lock_admins(connection: AsyncConnection) -> list[str]:
    """The admins that may sign in; nobody else changes them until the transaction ends."""
    query = (
        select(people.c.person_id)
        .where(people.c.role == "admin", people.c.disabled_at.is_(None))
        .order_by(people.c.person_id)
        .with_for_update()
    )
    return list((await connection.execute(query)).scalars())


async def find_session_person(
    connection: AsyncConnection, person_id: str, session_id: str, now: int
) -> RowMapping | None:
    """Whose session it is, while it is open and its person may sign in; and when it was last
    used.
    """
    query = (
        select(people, sessions.c.last_used_at)
        .join(sessions, sessions.c.person_id == people.c.person_id)
        .where(
            sessions.c.session_id == session_id,
            sessions.c.person_id == person_id,
            sessions.c.ended_at.is_(None),
            sessions.c.expires_at > now,
            people.c.disabled_at.is_(None),
        )
    )
    return (await connection.execute(query)).mappings().one_or_none()


async def note_session_use(
    connection: AsyncConnection, session_id: str, before: int, now: int
) -> None:
    """Note that a session is used now, where the last note is from before a time."""
    change = update(sessions).where(
        sessions.c.session_id == session_id, sessions.c.last_used_at <= before
    )
    await connection.execute(change.values(last_used_at=now))


async def lock_session(connection: AsyncConnection, session_id: str) -> RowMapping | None:
    """A session, which nobody else changes until the transaction ends."""
    query = select(sessions).where(sessions.c.session_id == session_id).with_for_update()
    return (await connection.execute(query)).mappings().one_or_none()


async def find_session_start(connection: AsyncConnection, session_id: str) -> int | None:
    """When somebody showed who they are to open a session; None where another screen confirmed it,
    because whoever holds that one may have been misled.
    """
    query = select(sessions.c.created_at).where(
        sessions.c.session_id == session_id, sessions.c.method != "confirmation"
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def list_sessions(
    connection: AsyncConnection, owner: str, now: int, cursor: str | None, limit: int
) -> tuple[list[RowMapping], str | None]:
    """Where a person is signed in; their devices are a list of their own."""
    query = select(sessions).where(
        sessions.c.person_id == owner,
        sessions.c.device_id.is_(None),
        sessions.c.ended_at.is_(None),
        sessions.c.expires_at > now,
    )
    by = (sessions.c.created_at, sessions.c.session_id)
    return await fetch_page(connection, query, by, cursor, limit)


def to_session(row: RowMapping, current: str) -> SignInSession:
    return SignInSession(
        session_id=row["session_id"],
        created_at=format_time(row["created_at"]),
        last_used_at=format_time(row["last_used_at"]),
        expires_at=format_time(row["expires_at"]),
        address=row["address"],
        user_agent=row["user_agent"],
        method=row["method"],
        method_id=row["method_id"],
        name=row["name"],
        current=row["session_id"] == current,
    )


async def end_sessions(
    connection: AsyncConnection,
    owner: str,
    now: int,
    *,
    only: str | None = None,
    keep: str | None = None,
    method_id: str | None = None,
    devices: bool = False,
) -> int:
    """End the open sessions of a person: all, one, all but one, or those that were opened with a
    passkey or an identity; returns how many ended. Those of devices are left alone unless they are
    meant as well: they end with their device.
    """
    change = (
        update(sessions)
        .where(
            sessions.c.person_id == owner,
            sessions.c.ended_at.is_(None),
            sessions.c.expires_at > now,
        )
        .values(ended_at=now)
    )
    if not devices:
        change = change.where(sessions.c.device_id.is_(None))
    if only is not None:
        change = change.where(sessions.c.session_id == only)
    if keep is not None:
        change = change.where(sessions.c.session_id != keep)
    if method_id is not None:
        change = change.where(sessions.c.method_id == method_id)
    return (await connection.execute(change)).rowcount


async def rename_session(
    connection: AsyncConnection, owner: str, session_id: str, name: str, now: int
) -> RowMapping | None:
    """Name an open session of a person; None where they have none of this id."""
    change = (
        update(sessions)
        .where(
            sessions.c.session_id == session_id,
            sessions.c.person_id == owner,
            sessions.c.device_id.is_(None),
            sessions.c.ended_at.is_(None),
            sessions.c.expires_at > now,
        )
        .values(name=name)
        .returning(sessions)
    )
    return (await connection.execute(change)).mappings().one_or_none()


async def trim_sessions(connection: AsyncConnection, owner: str, now: int, most: int) -> None:
    """Forget sessions of a person that were over long enough for every socket of theirs to be
    closed, and end the oldest beyond a number.
    """
    own = and_(sessions.c.person_id == owner, sessions.c.device_id.is_(None))
    before = now - ENDED_SESSION_SECONDS * _MILLISECONDS
    over = or_(sessions.c.ended_at <= before, sessions.c.expires_at <= before)
    await connection.execute(delete(sessions).where(own, over))
    oldest = (
        select(sessions.c.session_id)
        .where(own, sessions.c.ended_at.is_(None))
        .order_by(sessions.c.created_at.desc(), sessions.c.session_id)
        .offset(most)
    )
    found = list((await connection.execute(oldest)).scalars())
    if found:
        change = update(sessions).where(sessions.c.session_id.in_(found)).values(ended_at=now)
        await connection.execute(change)


async def find_ended_sessions(connection: AsyncConnection, since: int, now: int) -> list[str]:
    """The sessions that ended or expired since a time."""
    query = select(sessions.c.session_id).where(
        or_(
            sessions.c.ended_at >= since,
            and_(sessions.c.expires_at >= since, sessions.c.expires_at <= now),
        )
    )
    return list((await connection.execute(query)).scalars())
