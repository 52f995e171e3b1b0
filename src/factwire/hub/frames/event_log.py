"""`EventLog`: what people are told, written once with what it is about, and read in one order.

`change` opens a transaction and collects events, joinings and leavings; they get their numbers when
the block ends, as the last thing before the commit, so that the order of numbers is the order of
commits. `read_events` gives a person's events after a number. Live and later, they are the same:
an event is somebody's if they were in its audience at its number.

Wherever a list is read together with `read_cursor`, in one transaction, the list plus the events
after that cursor is what a new reading would give. What was taken back is taken back here too: an
event whose content is withdrawn keeps its number and loses its content.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from sqlalchemy import Select, and_, delete, func, insert, or_, select, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.frames.frame_types import FRAMES, FramePayload
from factwire.hub.records.event_tables import audience_members, event_counter, events
from factwire.hub.records.hub_database import HubDatabase
from factwire.journal import Cursor
from factwire.journal.cursor import Bounds

_MILLISECONDS: Final = 1_000

PERSON: Final = "person"
"""The kind of audience that one person is; `audience_of` names it."""


def audience_of(kind: str, key: str) -> str:
    """The name of an audience, such as `person:usr_…`, `chat:ses_…` or `device:dev_…`."""
    return f"{kind}:{key}"


class HubEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of the log; `payload` is JSON as it travels."""

    seq: int
    audience: str
    type: str
    payload: bytes
    created_at: int


class Membership(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """That a person's are the events of an audience after one number, up to another."""

    audience: str
    person_id: str
    from_seq: int
    until_seq: int | None = None

    def covers(self, seq: int) -> bool:
        return self.from_seq < seq and (self.until_seq is None or seq <= self.until_seq)


class _Join(msgspec.Struct, frozen=True):
    audience: str
    person_id: str


class _Leave(msgspec.Struct, frozen=True):
    audience: str
    person_id: str


class _Emission(msgspec.Struct, frozen=True):
    audience: str
    type: str
    payload: FramePayload
    subject: str | None


class HubChange:
    """A transaction that people are told about; events are theirs in the order of these calls."""

    def __init__(self, connection: AsyncConnection, now: int) -> None:
        self.connection = connection
        self.now = now
        self._steps: list[_Emission | _Join | _Leave] = []

    def emit(
        self, audience: str, type_: str, payload: FramePayload, *, subject: str | None = None
    ) -> None:
        """Tell everybody in an audience something, once this is committed; by its `subject`, it can
        be found again to be replaced.
        """
        row = FRAMES[type_]
        if not row.logged or not isinstance(payload, row.payload):
            raise TypeError(f"{type_} is not an event with {type(payload).__name__}")
        self._steps.append(_Emission(audience, type_, payload, subject))

    def tell(self, person_id: str, type_: str, payload: FramePayload) -> None:
        """Tell one person something."""
        self.emit(audience_of(PERSON, person_id), type_, payload)

    def join(self, audience: str, person_id: str) -> None:
        """Make what an audience is told from here on somebody's; twice is once."""
        self._steps.append(_Join(audience, person_id))

    def leave(self, audience: str, person_id: str) -> None:
        """Make nothing that an audience is told from here on somebody's."""
        self._steps.append(_Leave(audience, person_id))

    async def drop_events(self, subject: str, type_: str) -> None:
        """Forget earlier events about a subject, where later ones say all that they said."""
        earlier = events.c.subject == subject, events.c.type == type_
        await self.connection.execute(delete(events).where(*earlier))

    async def replace_events(self, subject: str, type_: str, payload: FramePayload) -> None:
        """Have earlier events about a subject say something else to whoever reads them later."""
        earlier = events.c.subject == subject, events.c.type == type_
        text = msgspec.json.encode(payload).decode()
        await self.connection.execute(update(events).where(*earlier).values(payload=text))

    async def flush(self) -> int | None:
        """Write what was collected; the number of the last of it, None where there was nothing."""
        if not self._steps:
            return None
        change = (
            update(event_counter)
            .values(seq=event_counter.c.seq + len(self._steps))
            .returning(event_counter.c.seq)
        )
        last: int = (await self.connection.execute(change)).scalar_one()
        seq = last - len(self._steps)
        rows: list[dict[str, Any]] = []
        for step in self._steps:
            seq += 1
            match step:
                case _Emission(audience, type_, payload, subject):
                    rows.append(
                        {
                            "seq": seq,
                            "audience": audience,
                            "type": type_,
                            "payload": msgspec.json.encode(payload).decode(),
                            "created_at": self.now,
                            "subject": subject,
                        }
                    )
                case _Join(audience, person_id):
                    await self._insert_member(audience, person_id, seq)
                case _Leave(audience, person_id):
                    await self._end_member(audience, person_id, seq)
        if rows:
            await self.connection.execute(insert(events), rows)
        self._steps.clear()
        return last

    async def _insert_member(self, audience: str, person_id: str, seq: int) -> None:
        present = select(audience_members.c.from_seq).where(
            audience_members.c.audience == audience,
            audience_members.c.person_id == person_id,
            audience_members.c.until_seq.is_(None),
        )
        if (await self.connection.execute(present)).first() is None:
            await self.connection.execute(
                insert(audience_members).values(
                    audience=audience, person_id=person_id, from_seq=seq
                )
            )

    async def _end_member(self, audience: str, person_id: str, seq: int) -> None:
        await self.connection.execute(
            update(audience_members)
            .where(
                audience_members.c.audience == audience,
                audience_members.c.person_id == person_id,
                audience_members.c.until_seq.is_(None),
            )
            .values(until_seq=seq)
        )


class EventLog:
    """The log of one Hub; `changed` is set whenever something was committed in this process, and
    whoever is in `on_commit` is called.
    """

    def __init__(self, database: HubDatabase, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self.changed = asyncio.Event()
        self.on_commit: list[Callable[[], None]] = []

    @asynccontextmanager
    async def change(self) -> AsyncGenerator[HubChange]:
        """A transaction whose events are durable, and on their way, once its block has ended."""
        async with self._database.write() as connection:
            change = HubChange(connection, math.floor(self._clock() * _MILLISECONDS))
            yield change
            await change.flush()
        self.changed.set()
        for listener in self.on_commit:
            listener()


async def remove_old_events(database: HubDatabase, before: int, limit: int) -> int:
    """Remove events from before a time, at most so many of them at once, and what was written
    before those; returns how many that were. A cursor from before them has expired then.
    """
    oldest = select(events.c.seq).where(events.c.created_at < before)
    oldest = oldest.order_by(events.c.created_at).limit(limit)
    async with database.write() as connection:
        last = select(func.max(oldest.subquery().c.seq))
        floor: int | None = (await connection.execute(last)).scalar_one()
        if floor is None:
            return 0
        removed = await connection.execute(delete(events).where(events.c.seq <= floor))
        await connection.execute(
            delete(audience_members).where(audience_members.c.until_seq <= floor)
        )
        await connection.execute(update(event_counter).values(floor=floor))
        return removed.rowcount


async def read_bounds(connection: AsyncConnection) -> Bounds:
    """How far the log goes, and from where it can be read."""
    row = (await connection.execute(select(event_counter))).mappings().one()
    return Bounds(epoch=row["epoch"], head=row["seq"], floor=row["floor"], oldest=row["floor"])


async def read_cursor(connection: AsyncConnection) -> str:
    """Where the log is now; what is read in the same transaction is true as of it."""
    bounds = await read_bounds(connection)
    return str(Cursor(bounds.epoch, bounds.head))


async def read_events(
    connection: AsyncConnection, person_id: str, after: int, limit: int
) -> list[HubEvent]:
    """A person's events after a number, in order, at most so many."""
    own = _select_events(after, limit).where(events.c.audience == audience_of(PERSON, person_id))
    member = audience_members
    shared = (
        _select_events(after, limit)
        .join(member, member.c.audience == events.c.audience)
        .where(
            member.c.person_id == person_id,
            or_(member.c.until_seq.is_(None), member.c.until_seq > after),
            events.c.seq > member.c.from_seq,
            or_(member.c.until_seq.is_(None), events.c.seq <= member.c.until_seq),
        )
    )
    both = union_all(select(own.subquery()), select(shared.subquery())).subquery()
    query = select(both).order_by(both.c.seq).limit(limit)
    return _to_events((await connection.execute(query)).all())


async def read_all_events(
    connection: AsyncConnection, after: int, upto: int, limit: int
) -> list[HubEvent]:
    """Everybody's events after a number, in order."""
    query = _select_events(after, limit).where(events.c.seq <= upto)
    return _to_events((await connection.execute(query)).all())


async def read_memberships(connection: AsyncConnection, person_id: str) -> list[Membership]:
    """The audiences that a person is in now."""
    query = select(audience_members).where(
        audience_members.c.person_id == person_id, audience_members.c.until_seq.is_(None)
    )
    return await _fetch_memberships(connection, query)


async def read_membership_changes(
    connection: AsyncConnection, after: int, upto: int
) -> list[Membership]:
    """Who joined or left an audience after a number and up to another."""
    member = audience_members.c
    query = select(audience_members).where(
        or_(
            and_(member.from_seq > after, member.from_seq <= upto),
            and_(member.until_seq > after, member.until_seq <= upto),
        )
    )
    return await _fetch_memberships(connection, query)


_EVENT_COLUMNS: Final = tuple(events.c[name] for name in HubEvent.__struct_fields__)


def _select_events(after: int, limit: int) -> Select[Any]:
    return select(*_EVENT_COLUMNS).where(events.c.seq > after).order_by(events.c.seq).limit(limit)


def _to_events(rows: Sequence[Any]) -> list[HubEvent]:
    return [
        HubEvent(seq=seq, audience=audience, type=type_, payload=payload.encode(), created_at=at)
        for seq, audience, type_, payload, at in rows
    ]


async def _fetch_memberships(connection: AsyncConnection, query: Select[Any]) -> list[Membership]:
    rows = (await connection.execute(query)).mappings()
    return [Membership(**row) for row in rows]
