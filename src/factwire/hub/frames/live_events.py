"""`LiveEvents`: reads the log of events once for a process, and passes each on to whom it is for.

One task reads events and changes of membership in the order of their numbers, also those that
another process wrote. Somebody is in an audience for an interval of numbers, so an event finds its
readers by its own number, whatever was known first. A socket that resumes reads its part from the
database while what is new is kept for it, and then goes on from exactly there. A reader that takes
nothing keeps references to frames that all others had, up to a limit; then it is closed and may
resume. Nobody waits for anybody.
"""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec

from factwire.hub.frames.event_log import (
    PERSON,
    EventLog,
    HubEvent,
    Membership,
    read_all_events,
    read_bounds,
    read_events,
    read_membership_changes,
    read_memberships,
)
from factwire.hub.frames.socket_frames import Frame, FrameBatch, encode_event
from factwire.hub.limits import EVENTS_AT_ONCE, LOOK_SECONDS
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.journal import Cursor
from factwire.journal.cursor import Bounds, check_cursor
from factwire.serving.limits import CATCH_UP_ROUNDS, UNSENT_BYTES
from factwire.serving.logs import logger
from factwire.serving.streams.catch_up import PacedWriter
from factwire.serving.streams.stream_sinks import FAULT, SLOW, CloseReason, StreamSink

_log: Final = logger("factwire.hub.sockets")


class FrameSender:
    """The way to one socket: numbers what is sent, and keeps what the reader has no room for."""

    __slots__ = (
        "_after",
        "_held",
        "_held_bytes",
        "_is_held",
        "_is_level",
        "_limit",
        "is_overrun",
        "sent",
        "sink",
    )

    def __init__(self, sink: StreamSink, *, limit: int = UNSENT_BYTES) -> None:
        self.sink = sink
        self.sent = 0
        self.is_overrun = False
        self._limit = limit
        self._after = 0
        self._is_held = False
        self._held: deque[FrameBatch] = deque()
        self._held_bytes = 0
        # Whether frames can be written as they come: the one question for nearly all of them.
        self._is_level = not (sink.is_blocked or sink.is_gone)
        # Numbered frames are one reader's own. So that none of them wait in memory, each is passed
        # on while it is written, and what there is no room for is kept as what all readers share.
        sink.limit_unsent(0)
        sink.watch(self)

    def send(self, batch: FrameBatch) -> None:
        """Write frames now, or as soon as there is room."""
        if self._is_level and batch.begin > self._after:
            first = self.sent + 1
            self.sent += batch.count
            self.sink.write(batch.number(first))
            return
        if self.sink.is_gone or self.is_overrun:
            return
        if 0 < batch.begin <= self._after:
            rest = batch.after(self._after)
            if rest is None:
                return
            batch = rest
        if self._has_room:
            self.write(batch)
            return
        self._held.append(batch)
        self._held_bytes += batch.size
        if self._held_bytes + self.sink.unsent > self._limit:
            self._held.clear()
            self._held_bytes = 0
            if self._is_held:
                self.is_overrun = True
            else:
                self.sink.close(SLOW)

    def write(self, batch: FrameBatch) -> None:
        """Write frames before all that is kept."""
        first = self.sent + 1
        self.sent += batch.count
        self.sink.write(batch.number(first))

    def hold(self) -> None:
        """Keep what is sent, from nothing, until `release`."""
        self._held.clear()
        self._held_bytes = 0
        self._is_level = False
        self._is_held, self.is_overrun = True, False

    def release(self, after: int) -> None:
        """Go on with what was kept and what comes, without the events up to a number: live events
        may be behind what was read.
        """
        self._after = after
        kept = [batch.after(after) for batch in self._held]
        self._held = deque(batch for batch in kept if batch is not None)
        self._held_bytes = sum(batch.size for batch in self._held)
        self._is_held = False
        self.sink.watch(self)
        self.on_resumed()

    def close(self, closing: CloseReason) -> None:
        """End the socket, after what was kept for a reader that is slow; a reader that is catching
        up lacks what comes before that, and reads all of it when it resumes.
        """
        while self._held and not (self._is_held or self.sink.is_gone):
            self.write(self._held.popleft())
        self.sink.close(closing)

    def on_blocked(self) -> None:
        """What is sent is kept from here on."""
        self._is_level = False

    def on_resumed(self) -> None:
        while self._held and self._has_room:
            batch = self._held.popleft()
            self._held_bytes -= batch.size
            self.write(batch)
        self._is_level = self._has_room

    @property
    def _has_room(self) -> bool:
        return not (self._is_held or self.sink.is_blocked or self.sink.is_gone)

    def on_gone(self) -> None:
        self._is_level = False
        self._held.clear()
        self._held_bytes = 0


class _Person:
    """Somebody with open sockets, and the audiences that they are in."""

    __slots__ = ("audiences", "is_loaded", "loading", "person_id", "senders")

    def __init__(self, person_id: str) -> None:
        self.person_id = person_id
        self.senders: tuple[FrameSender, ...] = ()
        self.audiences: dict[str, dict[int, int | None]] = {}
        self.loading = asyncio.Lock()
        self.is_loaded = False

    def add(self, membership: Membership) -> None:
        """Take in an interval; one that is known may have ended since."""
        intervals = self.audiences.setdefault(membership.audience, {})
        known = intervals.get(membership.from_seq)
        intervals[membership.from_seq] = membership.until_seq if known is None else known

    def find_begin(self, audience: str) -> int:
        """The number after which all events of an audience are theirs; none is, where they left it
        or have been in it before.
        """
        intervals = self.audiences[audience]
        return next(iter(intervals)) if [*intervals.values()] == [None] else sys.maxsize

    def select(self, audience: str, events: list[HubEvent], positions: list[int]) -> list[int]:
        """The positions of those events of an audience that are theirs."""
        intervals = self.audiences[audience]
        return [
            each
            for each in positions
            if any(
                begin < events[each].seq and (end is None or events[each].seq <= end)
                for begin, end in intervals.items()
            )
        ]

    def is_in(self, audience: str) -> bool:
        return None in self.audiences.get(audience, {}).values()


class _Tick(msgspec.Struct, frozen=True):
    bounds: Bounds
    upto: int
    events: list[HubEvent]
    changes: list[Membership]


class LiveEvents:
    """The readers of a process; `seq` is the number up to which they were told everything."""

    def __init__(self, database: HubDatabase, log: EventLog) -> None:
        self.seq = 0
        self.epoch = ""
        self.on_event: list[Callable[[HubEvent], None]] = []
        self._database = database
        self._log = log
        self._people: dict[str, _Person] = {}
        self._by_audience: dict[str, dict[_Person, int]] = {}
        """Readers of an audience, each with where it begins to be theirs without exception."""
        self._stopping = False

    @property
    def cursor(self) -> str:
        """Where live events are."""
        return str(Cursor(self.epoch, self.seq))

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Read the log from its end on, for as long as the block lasts."""
        async with self._database.read() as connection:
            bounds = await read_bounds(connection)
        self.epoch, self.seq = bounds.epoch, bounds.head
        task = asyncio.create_task(self._run(), name="factwire-hub-live")
        try:
            yield
        finally:
            self._stopping = True
            self._log.changed.set()
            await task

    async def _run(self) -> None:
        while not self._stopping:
            self._log.changed.clear()
            try:
                more = await self._advance()
            except RecordsUnavailable as error:
                _log.warning("events_unavailable", detail=str(error))
                more = False
            except Exception:  # noqa: BLE001 - logged, and the task must go on
                # Whoever reads resumes from its cursor, where nothing of this tick is missing.
                _log.exception("events_failed")
                self._close_all(FAULT)
                more = False
            if not more and not self._stopping:
                await wait_or_timeout(self._log.changed, LOOK_SECONDS)

    async def _advance(self) -> bool:
        """Pass on what is new; whether there may be more."""
        tick = await self._read_tick()
        if tick is None:
            return False
        self._take_changes(tick.changes)
        self.pass_on(tick.events)
        self.seq = tick.upto
        self._forget_ended(tick.changes)
        return self.seq < tick.bounds.head

    async def _read_tick(self) -> _Tick | None:
        async with self._database.read() as connection:
            bounds = await read_bounds(connection)
            if bounds.head <= self.seq:
                return None
            found = await read_all_events(connection, self.seq, bounds.head, EVENTS_AT_ONCE)
            upto = found[-1].seq if len(found) == EVENTS_AT_ONCE else bounds.head
            changes = await read_membership_changes(connection, self.seq, upto)
        return _Tick(bounds, upto, found, changes)

    def _take_changes(self, changes: Iterable[Membership]) -> None:
        for change in changes:
            person = self._people.get(change.person_id)
            if person is not None:
                self._add_membership(person, change)

    def _add_membership(self, person: _Person, membership: Membership) -> None:
        person.add(membership)
        begin = person.find_begin(membership.audience)
        self._by_audience.setdefault(membership.audience, {})[person] = begin

    def _forget_ended(self, changes: Iterable[Membership]) -> None:
        """Let go of intervals that no event can be in any more; while somebody's are being read,
        what is read may be older and say that such a one goes on.
        """
        for change in changes:
            person = self._people.get(change.person_id)
            if person is not None and person.is_loaded:
                self._prune(person, change.audience)

    def _prune(self, person: _Person, audience: str) -> None:
        intervals = person.audiences.get(audience, {})
        for begin, end in tuple(intervals.items()):
            if end is not None and end <= self.seq:
                del intervals[begin]
        if not intervals:
            self._forget_audience(person, audience)
        elif person in self._by_audience.get(audience, {}):
            self._by_audience[audience][person] = person.find_begin(audience)

    def _forget_audience(self, person: _Person, audience: str) -> None:
        person.audiences.pop(audience, None)
        readers = self._by_audience.get(audience)
        if readers is not None:
            readers.pop(person, None)
            if not readers:
                del self._by_audience[audience]

    def pass_on(self, events: list[HubEvent]) -> None:
        """Send events to whom they are for, each once; all of a reader are one write."""
        frames: dict[int, Frame] = {}
        batches: dict[int, FrameBatch] = {}
        for person, positions in self._choose_readers(events).items():
            batch = batches.get(id(positions))
            if batch is None:
                for each in positions:
                    if each not in frames:
                        frames[each] = encode_event(self.epoch, events[each])
                seqs = [events[each].seq for each in positions]
                batch = FrameBatch(seqs, [frames[each] for each in positions])
                batches[id(positions)] = batch
            for sender in person.senders:
                sender.send(batch)
        for hook in self.on_event:
            for event in events:
                hook(event)

    def _choose_readers(self, events: list[HubEvent]) -> dict[_Person, list[int]]:
        """Whoever gets some of the events, and the positions of those: one and the same list for
        all who are in the same audiences.
        """
        by_audience: dict[str, list[int]] = {}
        for position, event in enumerate(events):
            by_audience.setdefault(event.audience, []).append(position)
        chosen: dict[_Person, list[int]] = {}
        merged: dict[tuple[int, int], list[int]] = {}
        for audience, positions in by_audience.items():
            found = self._find_readers(audience, events, positions)
            for person in found.keys() & chosen.keys():
                pair = id(chosen[person]), id(found[person])
                if pair not in merged:
                    merged[pair] = sorted(chosen[person] + found[person])
                found[person] = merged[pair]
            chosen |= found
        return chosen

    def _find_readers(
        self, audience: str, events: list[HubEvent], positions: list[int]
    ) -> dict[_Person, list[int]]:
        """Who is in an audience, each with the positions of those events that are theirs."""
        kind, _, key = audience.partition(":")
        if kind == PERSON:
            person = self._people.get(key)
            return {} if person is None else {person: positions}
        first, readers = events[positions[0]].seq, self._by_audience.get(audience, {})
        found = {person: positions for person, begin in readers.items() if begin < first}
        if len(found) < len(readers):
            for person in readers.keys() - found.keys():
                if own := person.select(audience, events, positions):
                    found[person] = own
        return found

    def send_to_audience(
        self, audience: str, batch: FrameBatch, *, sender: FrameSender, person_id: str
    ) -> bool:
        """Pass on what is told once and kept nowhere, but for one socket; whether its person is in
        the audience.
        """
        person = self._people.get(person_id)
        if person is None or not person.is_in(audience):
            return False
        for each in self._by_audience.get(audience, {}):
            if each.is_in(audience):
                for other in each.senders:
                    if other is not sender:
                        other.send(batch)
        return True

    async def enter(
        self,
        person_id: str,
        sender: FrameSender,
        after: str | None,
        greet: Callable[[str], FrameBatch],
    ) -> None:
        """Have a socket read a person's events, from a cursor on or from the end of the log as it
        is now; `greet` makes the first frame, of the cursor where they begin. Raises `CursorError`
        where nothing was sent because the cursor cannot be resumed from, and `CursorExpired` where
        it cannot any more.
        """
        await self._count_among(person_id, sender)
        cursor = await self._read_end() if after is None else Cursor.parse(after)
        await self._catch_up(person_id, sender, cursor, greet)

    async def _read_end(self) -> Cursor:
        """The end of the log, which the live events of this process may be behind."""
        async with self._database.read() as connection:
            bounds = await read_bounds(connection)
        return Cursor(bounds.epoch, bounds.head)

    async def _catch_up(
        self,
        person_id: str,
        sender: FrameSender,
        cursor: Cursor,
        greet: Callable[[str], FrameBatch],
    ) -> None:
        flow = PacedWriter(sender.sink)
        for _ in range(CATCH_UP_ROUNDS):
            sender.hold()
            more = True
            while more:
                events, bounds = await self._read_page(person_id, cursor)
                if not sender.sent:
                    sender.write(greet(str(cursor)))
                if events:
                    frames = [encode_event(bounds.epoch, event) for event in events]
                    sender.write(FrameBatch([event.seq for event in events], frames))
                if not await flow.wait_for_room():
                    return
                more = len(events) == EVENTS_AT_ONCE
                cursor = Cursor(cursor.epoch, events[-1].seq if more else bounds.head)
            if not sender.is_overrun:
                sender.release(cursor.seq)
                return
        sender.close(SLOW)

    async def _read_page(self, person_id: str, cursor: Cursor) -> tuple[list[HubEvent], Bounds]:
        """Events after a cursor, which is looked at each time: what it needs may be removed."""
        async with self._database.read() as connection:
            bounds = await read_bounds(connection)
            seq = check_cursor(cursor, bounds)
            return await read_events(connection, person_id, seq, EVENTS_AT_ONCE), bounds

    async def _count_among(self, person_id: str, sender: FrameSender) -> None:
        person = self._people.get(person_id)
        if person is None:
            person = self._people[person_id] = _Person(person_id)
        person.senders += (sender,)
        sender.hold()
        async with person.loading:
            if not person.is_loaded:
                await self._load(person)

    async def _load(self, person: _Person) -> None:
        async with self._database.read() as connection:
            found = await read_memberships(connection, person.person_id)
        for membership in found:
            self._add_membership(person, membership)
        person.is_loaded = True
        for audience in tuple(person.audiences):
            self._prune(person, audience)

    def leave(self, person_id: str, sender: FrameSender) -> None:
        person = self._people.get(person_id)
        if person is None:
            return
        person.senders = tuple(each for each in person.senders if each is not sender)
        if not person.senders:
            del self._people[person_id]
            for audience in tuple(person.audiences):
                self._forget_audience(person, audience)

    def _close_all(self, closing: CloseReason) -> None:
        for person in tuple(self._people.values()):
            for sender in person.senders:
                sender.close(closing)


async def wait_or_timeout(event: asyncio.Event, seconds: float) -> None:
    """Wait for something that happens, or for so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
