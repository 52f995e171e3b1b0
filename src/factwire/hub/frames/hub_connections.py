"""`HubConnections`: the open sockets of this process, and who of them is online.

A person has several sockets, a device one: a newer one of the same device ends the older, in
whatever process that is. A socket is closed soon after its session has ended. That a screen or a
device came or went is an event; many of them at once are one transaction, so that a storm of
reconnects is not a storm of writes. A device whose Hub was killed counts as gone when it was not
seen for a while.
"""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, Literal

import msgspec
from sqlalchemy import select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection
from ulid import ULID

from factwire.edge.hub_frames import REPLACED_CODE
from factwire.facts.resources import DeviceKind
from factwire.hub.frames.event_log import (
    EventLog,
    HubChange,
    HubEvent,
    audience_of,
    remove_old_events,
)
from factwire.hub.frames.frame_types import (
    DeviceKicked,
    DevicePresence,
    EdgePresence,
    FramePayload,
)
from factwire.hub.frames.live_events import FrameSender, LiveEvents, wait_or_timeout
from factwire.hub.frames.socket_frames import encode_single
from factwire.hub.limits import (
    DEVICE_LOST_SECONDS,
    DEVICE_SEEN_SECONDS,
    ENDED_OVERLAP_SECONDS,
    EVENT_RETENTION_SECONDS,
    EVENTS_REMOVED_AT_ONCE,
    LOOK_SECONDS,
    SOCKETS_PER_PERSON,
)
from factwire.hub.records.device_tables import devices
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.hub.records.people_records import find_ended_sessions
from factwire.serving.asgi import Problem
from factwire.serving.limits import STOP_SECONDS
from factwire.serving.logs import logger
from factwire.serving.streams.stream_sinks import RESTART, REVOKED, CloseReason

DEVICE: Final = "device"
"""The kind of audience that everybody is who may see a device."""

REPLACED: Final = CloseReason(REPLACED_CODE, "another connection of this device", reconnect=False)

_MILLISECONDS: Final = 1_000
_DAY: Final = 24 * 3_600 * _MILLISECONDS
_ONLINE: Final = "edge.online"
_NOTIFICATION: Final = "notification.new"

_log: Final = logger("factwire.hub.sockets")


class EdgeDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device with an open socket, and whose it is."""

    device_id: str
    person_id: str
    session_id: str
    edge_id: str
    kind: DeviceKind
    name: str


EdgeHook = Callable[[EdgeDevice], Awaitable[None]]
EdgeFrameHandler = Callable[[EdgeDevice, str, FramePayload], Awaitable[None]]


class OpenSocket:
    """One socket; `device` is None for a person's screen."""

    __slots__ = ("connection_id", "device", "is_noted", "person_id", "sender", "session_id")

    def __init__(
        self, person_id: str, session_id: str, device: EdgeDevice | None, sender: FrameSender
    ) -> None:
        self.connection_id = f"con_{ULID()}"
        self.person_id = person_id
        self.session_id = session_id
        self.device = device
        self.sender = sender
        self.is_noted = False
        """Whether the records have had it as the socket of its device."""


class HubConnections:
    """The sockets of a process. Whoever speaks with devices adds handlers to the three lists; they
    are called one after another, for each device in the order of its frames.
    """

    def __init__(self, database: HubDatabase, log: EventLog, clock: Callable[[], float]) -> None:
        self.live = LiveEvents(database, log)
        self.on_edge_frame: list[EdgeFrameHandler] = []
        self.on_edge_connected: list[EdgeHook] = []
        self.on_edge_gone: list[EdgeHook] = []
        self.is_stopping = False
        self._database = database
        self._log = log
        self._clock = clock
        self._sockets: dict[OpenSocket, None] = {}
        self._by_session: dict[str, dict[OpenSocket, None]] = {}
        self._by_device: dict[str, OpenSocket] = {}
        self._screens: Counter[str] = Counter()
        self.notified: set[str] = set()
        """People whose screens here were sent notifications, for the sender to write down."""
        self._presence = _PresenceWriter(log)
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._checks: set[asyncio.Task[None]] = set()

    @property
    def screen_count(self) -> int:
        """Sockets of people's screens that are open."""
        return self._screens.total()

    @property
    def device_count(self) -> int:
        """Devices that are connected."""
        return len(self._by_device)

    def is_connected(self, device_id: str) -> bool:
        """Whether a device has an open socket in this process."""
        return device_id in self._by_device

    def send_to_device(self, device_id: str, type_: str, payload: FramePayload) -> bool:
        """Pass a frame on to a device; False where it has no open socket in this process. That it
        was passed on does not say that it arrived.
        """
        frames = encode_single(type_, payload, "hub_to_edge")
        found = self._by_device.get(device_id)
        if found is None or found.sender.sink.is_gone:
            return False
        found.sender.send(frames)
        return True

    @contextmanager
    def reserve_screen(self, person_id: str) -> Generator[None]:
        """A place for a screen of somebody's while the block lasts; raises `Problem` where they
        have too many.
        """
        if self._screens[person_id] >= SOCKETS_PER_PERSON:
            raise Problem(
                429,
                "too_many_sockets",
                f"{SOCKETS_PER_PERSON} sockets of yours are open; close one",
                headers={"retry-after": "5"},
            )
        self._screens[person_id] += 1
        try:
            yield
        finally:
            self._screens[person_id] -= 1
            if not self._screens[person_id]:
                del self._screens[person_id]

    def add(self, opened: OpenSocket) -> None:
        """Count a socket in; an earlier one of the same device is ended."""
        self._sockets[opened] = None
        self._nobody.clear()
        self._by_session.setdefault(opened.session_id, {})[opened] = None
        if opened.device is None:
            self._presence.note_screen(opened, is_online=True)
            self.notified.add(opened.person_id)
            return
        earlier = self._by_device.get(opened.device.device_id)
        self._by_device[opened.device.device_id] = opened
        if earlier is not None and not earlier.sender.sink.is_gone:
            self._kick(earlier, opened.device)
        self._presence.note_device(opened.device, opened, "online")

    def remove(self, opened: OpenSocket) -> None:
        """Count a socket out."""
        del self._sockets[opened]
        if not self._sockets:
            self._nobody.set()
        same_session = self._by_session[opened.session_id]
        del same_session[opened]
        if not same_session:
            del self._by_session[opened.session_id]
        if opened.device is not None:
            if self._by_device.get(opened.device.device_id) is opened:
                del self._by_device[opened.device.device_id]
            self._presence.note_device(opened.device, opened, "offline")
            return
        if not same_session:
            self._presence.note_screen(opened, is_online=False)

    def _kick(self, opened: OpenSocket, device: EdgeDevice) -> None:
        frame = encode_single("device.kicked", _to_kicked(device), "hub_to_edge")
        opened.sender.send(frame)
        opened.sender.close(REPLACED)
        self._presence.note_device(device, opened, "kicked")

    @asynccontextmanager
    async def run(self, *, event_days: float) -> AsyncGenerator[None]:
        """Pass on events, and watch over sessions and devices, for as long as the block lasts;
        events that are older are removed.
        """
        stop = asyncio.Event()
        self.live.on_event.append(self._see_event)
        tasks = [
            asyncio.create_task(self._watch_sessions(stop), name="factwire-hub-sessions"),
            asyncio.create_task(self._watch_devices(stop), name="factwire-hub-devices"),
            asyncio.create_task(self._presence.run(stop), name="factwire-hub-presence"),
            asyncio.create_task(self._remove_events(stop, event_days), name="factwire-hub-events"),
        ]
        try:
            async with self.live.run():
                yield
        finally:
            await self.close()
            stop.set()
            self._presence.changed.set()
            await asyncio.gather(*tasks)

    async def close(self, seconds: float = STOP_SECONDS / 2) -> None:
        """End every socket; nobody is admitted from now on. Returns when all have gone, or after
        so many seconds.
        """
        self.is_stopping = True
        for opened in tuple(self._sockets):
            opened.sender.close(RESTART)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nobody.wait()

    async def _watch_sessions(self, stop: asyncio.Event) -> None:
        since = self._now()
        while not stop.is_set():
            now = self._now()
            try:
                async with self._database.read() as connection:
                    ended = await find_ended_sessions(
                        connection, since - ENDED_OVERLAP_SECONDS * _MILLISECONDS, now
                    )
                since = now
            except RecordsUnavailable as error:
                _log.warning("sessions_unavailable", detail=str(error))
                ended = []
            for session_id in ended:
                for opened in tuple(self._by_session.get(session_id, ())):
                    opened.sender.close(REVOKED)
            await wait_or_timeout(stop, LOOK_SECONDS)

    async def _watch_devices(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.note_devices()
            except RecordsUnavailable as error:
                _log.warning("devices_unavailable", detail=str(error))
            await wait_or_timeout(stop, DEVICE_SEEN_SECONDS)

    async def note_devices(self) -> None:
        """Write down that devices are here, and that others, of which nobody wrote so, are gone."""
        own = [opened.connection_id for opened in self._by_device.values()]
        lost_before = self._now() - DEVICE_LOST_SECONDS * _MILLISECONDS
        lost = select(devices).where(devices.c.online, devices.c.last_seen_at < lost_before)
        async with self._database.read() as connection:
            found = (await connection.execute(lost)).first() is not None
        if not (own or found):
            return
        async with self._log.change() as change:
            seen = update(devices).where(devices.c.connection_id.in_(own))
            await change.connection.execute(seen.values(last_seen_at=self._now()))
            for row in (await change.connection.execute(lost)).mappings().all():
                await _write_gone(change, to_edge_device(row), row["connection_id"])

    async def _remove_events(self, stop: asyncio.Event, days: float) -> None:
        while not stop.is_set():
            before = self._now() - math.floor(days * _DAY)
            removed = 0
            try:
                removed = await remove_old_events(self._database, before, EVENTS_REMOVED_AT_ONCE)
            except RecordsUnavailable as error:
                _log.warning("events_not_removed", detail=str(error))
            if not removed:
                await wait_or_timeout(stop, EVENT_RETENTION_SECONDS)

    def _see_event(self, event: HubEvent) -> None:
        """Note who is notified here, and look whether a device that is connected here has
        connected elsewhere since.
        """
        subject = event.audience.partition(":")[2]
        if event.type == _NOTIFICATION and subject in self._screens:
            self.notified.add(subject)
        if event.type != _ONLINE:
            return
        opened = self._by_device.get(subject)
        if opened is not None and opened.device is not None:
            checking = self._check_fence(opened, opened.device)
            task = asyncio.create_task(checking, name="factwire-hub-fence")
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    async def _check_fence(self, opened: OpenSocket, device: EdgeDevice) -> None:
        query = select(devices.c.connection_id).where(devices.c.device_id == device.device_id)
        # Where the database does not answer, the newer socket's next event leads here again.
        with suppress(RecordsUnavailable):
            async with self._database.read() as connection:
                current = (await connection.execute(query)).scalar_one_or_none()
            replaced = current is not None and current != opened.connection_id
            if replaced and opened.is_noted and opened in self._sockets:
                self._kick(opened, device)

    def _now(self) -> int:
        return math.floor(self._clock() * _MILLISECONDS)


def to_edge_device(row: RowMapping) -> EdgeDevice:
    return EdgeDevice(
        device_id=row["device_id"],
        person_id=row["person_id"],
        session_id=row["session_id"],
        edge_id=row["edge_id"],
        kind=row["kind"],
        name=row["name"],
    )


async def find_edge_device(
    connection: AsyncConnection, device_id: str, person_id: str
) -> EdgeDevice | None:
    """A person's device that has joined and was not revoked."""
    query = select(devices).where(
        devices.c.device_id == device_id,
        devices.c.person_id == person_id,
        devices.c.revoked_at.is_(None),
    )
    row = (await connection.execute(query)).mappings().one_or_none()
    return None if row is None else to_edge_device(row)


_DeviceChange = Literal["online", "offline", "kicked"]


class _DeviceNote(msgspec.Struct, frozen=True):
    device: EdgeDevice
    opened: OpenSocket
    what: _DeviceChange


class _PresenceWriter:
    """Writes who came and who went, all that gathered in one transaction. A screen that went and
    came back meanwhile did neither.
    """

    def __init__(self, log: EventLog) -> None:
        self.changed = asyncio.Event()
        self._log = log
        self._devices: list[_DeviceNote] = []
        self._open: set[str] = set()
        self._shown: set[str] = set()
        self._unsettled: dict[str, str] = {}

    def note_device(self, device: EdgeDevice, opened: OpenSocket, what: _DeviceChange) -> None:
        self._devices.append(_DeviceNote(device, opened, what))
        self.changed.set()

    def note_screen(self, opened: OpenSocket, *, is_online: bool) -> None:
        (self._open.add if is_online else self._open.discard)(opened.session_id)
        self._unsettled[opened.session_id] = opened.person_id
        self.changed.set()

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set() or self._devices or self._unsettled:
            await self.changed.wait()
            self.changed.clear()
            try:
                await self._write()
            except RecordsUnavailable as error:
                _log.warning("presence_unavailable", detail=str(error))
                if stop.is_set():
                    return
                await wait_or_timeout(stop, LOOK_SECONDS)
                self.changed.set()

    async def _write(self) -> None:
        noted, screens = tuple(self._devices), dict(self._unsettled)
        changed = {each for each in screens if (each in self._open) != (each in self._shown)}
        if noted or changed:
            async with self._log.change() as change:
                for note in noted:
                    await _write_device(change, note)
                for session_id in changed:
                    self._tell_screen(change, session_id, screens[session_id])
            self._shown ^= changed
        del self._devices[: len(noted)]
        for note in noted:
            note.opened.is_noted = True
        for session_id in screens:
            if (session_id in self._open) == (session_id in self._shown):
                self._unsettled.pop(session_id, None)
            else:
                self.changed.set()

    def _tell_screen(self, change: HubChange, session_id: str, person_id: str) -> None:
        presence = DevicePresence(user_id=person_id, device_id=session_id, device_type="screen")
        came = session_id not in self._shown
        change.tell(person_id, "device.online" if came else "device.offline", presence)


def _to_kicked(device: EdgeDevice) -> DeviceKicked:
    return DeviceKicked(device_id=device.device_id, reason="replaced")


async def _write_device(change: HubChange, note: _DeviceNote) -> None:
    device, connection_id = note.device, note.opened.connection_id
    if note.what == "kicked":
        change.emit(audience_of(DEVICE, device.device_id), "device.kicked", _to_kicked(device))
        return
    if note.what == "offline":
        await _write_gone(change, device, connection_id)
        return
    here = update(devices).where(devices.c.device_id == device.device_id)
    values = {"online": True, "connection_id": connection_id, "last_seen_at": change.now}
    await change.connection.execute(here.values(values))
    _tell_device(change, device, "online")


async def _write_gone(change: HubChange, device: EdgeDevice, connection_id: str | None) -> None:
    """Mark a device as gone, unless it has connected again since."""
    here = update(devices).where(
        devices.c.device_id == device.device_id, devices.c.connection_id == connection_id
    )
    values = {"online": False, "connection_id": None}
    if (await change.connection.execute(here.values(values))).rowcount:
        _tell_device(change, device, "offline")


def _tell_device(change: HubChange, device: EdgeDevice, what: Literal["online", "offline"]) -> None:
    audience = audience_of(DEVICE, device.device_id)
    presence = DevicePresence(
        user_id=device.person_id, device_id=device.device_id, device_type=device.kind
    )
    change.emit(audience, f"device.{what}", presence)
    edge = EdgePresence(edge_id=device.edge_id, device_id=device.device_id)
    change.emit(audience, f"edge.{what}", edge)
