"""`HubMirrors`: the mirrors of a Hub for those who may have them.

An upload is the device's alone that has joined as the Edge. Reading is for the owner of the Edge
and for those it, or one of its threads, is shared with; that is looked up with each request. A
stream that is open when its session ends or its grant is revoked is closed within a second, in
whatever process of the Hub that happened.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from factwire.edge.edge_app import build_openapi as build_edge_openapi
from factwire.edge.hub_frames import MIRRORED_ROUTES
from factwire.edge.hub_upload import CHAIN_MEDIA_TYPE
from factwire.hub.hub_guard import CALLER, RouteAccess
from factwire.hub.limits import (
    ACCESS_CHECK_SECONDS,
    BLOB_BYTES,
    POSITION_SECONDS,
    UPLOAD_BODY_SECONDS,
    UPLOADS_PER_MINUTE,
)
from factwire.hub.mirror.mirror_app import (
    UPLOAD_BYTES_MOST,
    DecisionTaker,
    DeviceRelay,
    MirrorAccess,
    MirrorApp,
    Purpose,
    purpose_of,
    split_path,
    unknown_edge,
)
from factwire.hub.mirror.mirror_store import MirrorStore, UnknownEdge
from factwire.hub.mirror.mirrored_edge import MirroredEdge
from factwire.hub.people.accounts import HubCaller
from factwire.hub.records import device_records, grant_records, people_records
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.hub.request_rates import Rate
from factwire.hub.teams.team_records import TEAM_JOURNAL, list_run_ids
from factwire.serving.asgi import Problem, Receive, Scope, Send
from factwire.serving.guard import BodyRule
from factwire.serving.logs import logger
from factwire.serving.openapi import public_path

MIRRORS_FOLDER: Final = "mirrors"
UPLOAD_RATE: Final = Rate("upload", UPLOADS_PER_MINUTE)

_UPLOAD_KINDS: Final = (CHAIN_MEDIA_TYPE.encode(), b"application/json")
_CHAIN_BODY: Final = BodyRule(
    most=UPLOAD_BYTES_MOST, kinds=_UPLOAD_KINDS, seconds=UPLOAD_BODY_SECONDS
)
_BLOB_BODY: Final = BodyRule(most=BLOB_BYTES, kinds=_UPLOAD_KINDS, seconds=UPLOAD_BODY_SECONDS)
_OVERLAP: Final = 5_000
"""Milliseconds that clocks of the processes of one Hub may differ."""

_log: Final = logger("factwire.hub")


class OpenReading(msgspec.Struct, frozen=True):
    """A request that is being answered from a mirror."""

    session_id: str
    person_id: str
    edge_id: str


class HubMirrors:
    """An ASGI application for what is below `/v1/edges/{edgeId}`, behind the guard of a Hub; an
    async context manager. `on_upload` is told of each Edge whose mirror grew, and how far it is.
    """

    def __init__(self, folder: Path, database: HubDatabase, now: Callable[[], int]) -> None:
        self.store = MirrorStore(folder / MIRRORS_FOLDER, _format_now)
        self.on_upload: list[Callable[[str, str], None]] = []
        self._database = database
        self._now = now
        self._app = MirrorApp(self.store, self._authorize, self._note_upload)
        self._positions: dict[str, tuple[str, int]] = {}
        self._readings: Counter[OpenReading] = Counter()
        self._reading = asyncio.Event()
        self._uploading = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.store.__aenter__()
        self._tasks = [
            asyncio.create_task(self._watch_access(), name="factwire-mirror-access"),
            asyncio.create_task(self._keep_positions(), name="factwire-mirror-positions"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(RecordsUnavailable):
            await self._write_positions()
        await self.store.__aexit__(*_)

    def relay_through(self, relay: DeviceRelay) -> None:
        """Pass on to devices what only they can do."""
        self._app.relay = relay

    def decide_by(self, decide: DecisionTaker) -> None:
        """Have decisions taken that come to the address of an Edge."""
        self._app.decide = decide

    def owns(self, scope: Scope) -> bool:
        """Whether a request is about one Edge."""
        return self._app.owns(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def has_thread(self, edge_id: str, thread_id: str) -> bool:
        """Whether the mirror of an Edge has facts of a thread."""
        try:
            async with self.store.use(edge_id) as mirror:
                return await mirror.journal.thread(thread_id) is not None
        except UnknownEdge:
            return False

    @asynccontextmanager
    async def _authorize(
        self, scope: Scope, edge_id: str, purpose: Purpose
    ) -> AsyncGenerator[MirrorAccess]:
        caller: HubCaller = scope["state"][CALLER]
        if purpose == "upload":
            await self._ensure_uploader(caller, edge_id)
            yield MirrorAccess(stream_key=caller.session_id)
            return
        reading = OpenReading(caller.session_id, caller.person_id, edge_id)
        # Before the lookup: what is revoked right after it finds this reading.
        self._readings[reading] += 1
        self._reading.set()
        try:
            yield await self._find_access(caller, edge_id)
        finally:
            self._readings[reading] -= 1
            if not self._readings[reading]:
                del self._readings[reading]

    async def _ensure_uploader(self, caller: HubCaller, edge_id: str) -> None:
        async with self._database.read() as connection:
            own = await device_records.find_device_edge(connection, caller.device_id or "-")
        if own != edge_id:
            raise unknown_edge()

    async def _find_access(self, caller: HubCaller, edge_id: str) -> MirrorAccess:
        async with self._database.read() as connection:
            if edge_id == TEAM_JOURNAL:
                runs = await list_run_ids(connection, caller.person_id)
                reach = grant_records.EdgeReach(is_whole=False, threads=runs) if runs else None
            else:
                reach = await grant_records.find_reach(connection, caller.person_id, edge_id)
        if reach is None:
            raise unknown_edge()
        threads = None if reach.is_whole else reach.threads
        return MirrorAccess(stream_key=caller.session_id, threads=threads)

    def _note_upload(self, edge_id: str, cursor: str) -> None:
        self._positions[edge_id] = (cursor, self._now())
        self._uploading.set()
        for tell in self.on_upload:
            tell(edge_id, cursor)

    async def _keep_positions(self) -> None:
        """Write down how far mirrors are, all at once: no upload waits for it."""
        while True:
            await self._uploading.wait()
            self._uploading.clear()
            try:
                await self._write_positions()
            except RecordsUnavailable as error:
                _log.warning("records_unavailable", detail=str(error))
                self._uploading.set()
            await asyncio.sleep(POSITION_SECONDS)

    async def _write_positions(self) -> None:
        positions = dict(self._positions)
        if not positions:
            return
        async with self._database.write() as connection:
            await device_records.note_positions(connection, positions)
        for edge_id, position in positions.items():
            if self._positions.get(edge_id) == position:
                del self._positions[edge_id]

    async def _watch_access(self) -> None:
        """Close the streams of those whose session or grant is over."""
        while True:
            await self._reading.wait()
            if not self._readings:
                self._reading.clear()
                continue
            try:
                await self._close_ended()
            except RecordsUnavailable as error:
                _log.warning("records_unavailable", detail=str(error))
            await asyncio.sleep(ACCESS_CHECK_SECONDS)

    async def _close_ended(self) -> None:
        now = self._now()
        since = now - _OVERLAP
        async with self._database.read() as connection:
            ended = set(await people_records.find_ended_sessions(connection, since, now))
            revoked = set(await grant_records.find_revoked_grants(connection, since))
        for reading in tuple(self._readings):
            if reading.session_id in ended or (reading.person_id, reading.edge_id) in revoked:
                await self._close_streams(reading)

    async def _close_streams(self, reading: OpenReading) -> None:
        with suppress(UnknownEdge):
            async with self.store.use(reading.edge_id) as mirror:
                if isinstance(mirror.reader, MirroredEdge):
                    mirror.reader.close_streams(reading.session_id)


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_ACCESS: Final[dict[Purpose | None, RouteAccess]] = {"upload": "device", "read": "viewer"}


def access_of(scope: Scope) -> RouteAccess | None:
    """Who may send a request about one Edge; what of it, the query says. None for any other."""
    return _ACCESS.get(_purpose_of(scope))


def rates_of(scope: Scope) -> tuple[Rate, ...] | None:
    """How often uploads may come; None for other requests, whose limit is that of every one."""
    return (UPLOAD_RATE,) if _purpose_of(scope) == "upload" else None


def body_rule_of(scope: Scope) -> BodyRule | None:
    """What the body of an upload may be; None for any other request."""
    if _purpose_of(scope) != "upload":
        return None
    return _BLOB_BODY if scope.get("method") == "PUT" else _CHAIN_BODY


def _purpose_of(scope: Scope) -> Purpose | None:
    try:
        return purpose_of(split_path(scope)[1])
    except Problem:
        return None


def describe_reading(document: dict[str, Any]) -> None:
    """Add to the OpenAPI document of a Hub what is read from mirrors: the routes of an Edge."""
    edge = build_edge_openapi()
    renamed = _add_schemas(document["components"]["schemas"], edge["components"]["schemas"])
    for template in sorted(MIRRORED_ROUTES):
        path = public_path(template.replace("}", ":str}"))
        operation = _rename_refs(edge["paths"][path]["get"], renamed)
        name: str = operation["operationId"]
        edge_id = {
            "name": "edgeId",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
        }
        operation |= {
            "operationId": f"mirror{name[0].upper()}{name[1:]}",
            "tags": ["mirrors"],
            "parameters": [edge_id, *operation["parameters"]],
        }
        operation["responses"].setdefault("404", operation["responses"]["401"])
        operation["responses"].setdefault("429", operation["responses"]["401"])
        document["paths"][f"/v1/edges/{{edgeId}}{path.removeprefix('/v1')}"] = {"get": operation}
    document["paths"] = dict(sorted(document["paths"].items()))


def _add_schemas(own: dict[str, Any], added: dict[str, Any]) -> dict[str, str]:
    """Add schemas to others; returns the new names of those whose name means something else."""
    renamed = {name: f"Edge{name}" for name in added if name in own and own[name] != added[name]}
    for name, schema in added.items():
        own[renamed.get(name, name)] = _rename_refs(schema, renamed)
    return renamed


def _rename_refs(value: Any, renamed: dict[str, str]) -> Any:
    """Some JSON whose refs have the new names."""
    text = msgspec.json.encode(value).decode()
    for name, new in renamed.items():
        text = text.replace(f'"#/components/schemas/{name}"', f'"#/components/schemas/{new}"')
    return msgspec.json.decode(text)
