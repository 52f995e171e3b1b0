"""`MirroredEdge`: what an Edge serves to read, served from its mirror by the Edge's own routes.

Lists, states, pages, streams and content come from the same code as at the Edge, over the mirrored
journal, so that they show the same and take the same cursors, also while the Edge is off. Whatever
needs the device itself, every command among it, is refused with a code that says so.
"""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, unquote

from litestar.datastructures import State

from factwire.edge.edge_app import (
    VERBS,
    add_cursor_header,
    build_litestar,
    ensure_not_deleted,
)
from factwire.edge.edge_context import EdgeContext
from factwire.edge.events import build_envelope
from factwire.edge.events.event_types import types_of_view
from factwire.edge.hub_frames import MIRRORED_ROUTES
from factwire.edge.operations.outside_intakes import OutsideIntakes
from factwire.edge.operations.retention_operations import EdgeRetention
from factwire.edge.preview_server import PreviewRegistry
from factwire.edge.records import RecordStore, read_records
from factwire.hub.mirror.mirror_store import EdgeMirror
from factwire.journal import Cursor, Filter
from factwire.journal.atomic_files import make_private_folder
from factwire.journal.blobs.blob_store import find_refs, run_disk_work
from factwire.runtime import Mint, Runtime
from factwire.runtime.agents.registry import AgentRegistry
from factwire.runtime.configuration import RetentionSettings
from factwire.serving.access_control import HostPolicy
from factwire.serving.asgi import Application, Problem, Receive, Scope, Send, refuse
from factwire.serving.envelopes import Scope as EventScope
from factwire.serving.request_observing import UNMATCHED, RouteTemplates
from factwire.serving.rest import compile_verbs, to_routable_scope
from factwire.serving.streams import JournalFeed, Streams

SERVER_NAME: Final = "Hub"

_LISTS: Final = frozenset({"runs", "approvals", "artifacts", "tasks", "evidence", "previews"})
"""The lists of what belongs to threads."""

_FACES: Final = frozenset({"events", "facts"})
_VERBS: Final = compile_verbs(VERBS)
_STOP_SECONDS: Final = 2.5
_WITHHELD_SECONDS: Final = 0.05


class MirroredEdge:
    """The reading faces of one mirror, as an ASGI application under the Edge's own paths."""

    def __init__(
        self, edge: EdgeContext, streams: Streams, rest: Application, templates: RouteTemplates
    ) -> None:
        self.context = edge
        self._streams = streams
        self._rest = rest
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._streams.owns(scope):
                ensure_not_deleted(self.context, scope)
                await self._streams(scope, receive, send)
                return
            routed = to_routable_scope(scope, _VERBS)
            self._ensure_mirrored(routed)
        except Problem as problem:
            await refuse(scope, receive, send, problem)
            return
        await self._rest(routed, receive, add_cursor_header(self.context, scope, send))

    async def ensure_within(self, scope: Scope, threads: frozenset[str]) -> None:
        """Raise `Problem` for a request that is about more than these threads."""
        raw: bytes = scope["raw_path"]
        kind, *ids = [unquote(part) for part in raw.decode("ascii", "replace").split("/")[2:]]
        if kind == "threads":
            within = bool(ids) and ids[0] in threads
        elif kind == "blobs":
            within = bool(ids) and await self._names_content(threads, ids[0])
        elif ids:
            rows: Any = getattr(self.context.records, kind) if kind in _LISTS else {}
            row = rows.get(ids[0])
            within = row is not None and row.thread_id in threads
        else:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            named = query.get("threadId", [])
            within = kind in _LISTS | _FACES and len(named) == 1 and named[0] in threads
        if not within:
            raise Problem(404, "not_found", "there is nothing at this address")

    async def _names_content(self, threads: frozenset[str], ref: str) -> bool:
        """Whether a fact of these threads refers to some content."""
        for thread_id in threads:
            async for batch in self.context.journal.read(filter=Filter(thread=thread_id)):
                if ref in find_refs(batch.data):
                    return True
        return False

    def has_approval(self, approval_id: str) -> bool:
        """Whether an agent of this Edge asked under an id."""
        return approval_id in self.context.records.approvals

    async def wait_for(self, cursor: Cursor) -> None:
        """Return once what is read here includes all up to a place; raises `FeedStopped`."""
        feed, journal = self.context.feed, self.context.journal
        if cursor.epoch != feed.cursor.epoch:
            return
        while feed.cursor.seq < cursor.seq:
            # What is withheld has a place, and is never handed out.
            if (await journal.head()).seq >= cursor.seq and not await self._is_behind():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_WITHHELD_SECONDS):
                    await feed.wait_for(cursor.seq)

    async def _is_behind(self) -> bool:
        """Whether there are facts that were not handed out yet."""
        async for batch in self.context.journal.read(self.context.feed.cursor):
            if batch.seqs:
                return True
        return False

    def close_streams(self, key: str) -> None:
        """End the streams of one reader."""
        self._streams.close_token(key)

    async def close(self) -> None:
        """End the streams and save the lists."""
        await self._streams.close(_STOP_SECONDS)
        await self.context.feed.close()
        await self.context.record_store.close()

    def _ensure_mirrored(self, scope: Scope) -> None:
        template = self._templates.match_parts(filter(None, scope["path"].split("/")))
        if scope["type"] == "websocket" or template == UNMATCHED:
            raise Problem(404, "not_found", "there is nothing at this address")
        if scope["method"] not in ("GET", "HEAD") or template not in MIRRORED_ROUTES:
            raise Problem(
                409,
                "device_required",
                "only the device itself can do this, and it is not connected to this Hub",
            )


async def open_mirrored_edge(mirror: EdgeMirror) -> MirroredEdge:
    """The reading faces of a mirror, with lists that follow it."""
    journal = mirror.journal
    data = mirror.folder / f"{mirror.file}.lists"
    await run_disk_work(make_private_folder, data)
    records, cursor = await read_records(journal, data)
    feed = JournalFeed(journal, after=cursor)
    record_store = RecordStore(records, feed)
    await feed.__aenter__()
    edge = _build_context(mirror, feed, record_store, data)
    streams = Streams(
        feed,
        server_name=SERVER_NAME,
        log_name="factwire.hub.streams",
        scope=EventScope(edge_id=mirror.edge_id),
        envelope_of=partial(build_envelope, edge_id=mirror.edge_id, place_of=edge.place_of),
        place_of=edge.place_of,
        threads_of=edge.threads_of,
        types_of=types_of_view,
    )
    retention = EdgeRetention(edge, streams.readers.projections, RetentionSettings())
    rest = build_litestar(State({"machine": edge, "retention": retention, "streams": streams}))
    templates = RouteTemplates(route.path_format for route in rest.routes)
    return MirroredEdge(edge, streams, cast("Application", rest), templates)


def _build_context(
    mirror: EdgeMirror, feed: JournalFeed, record_store: RecordStore, data: Path
) -> EdgeContext:
    """An Edge that runs nothing: its runtime is never started, so that it only reads."""
    runtime = Runtime(
        mirror.journal, mirror.blobs, {}, workspace=data, mint=Mint(mirror.runtime_id)
    )
    return EdgeContext(
        edge_id=mirror.edge_id,
        journal=mirror.journal,
        blobs=mirror.blobs,
        runtime=runtime,
        registered=AgentRegistry({}, {}, (), {}),
        feed=feed,
        record_store=record_store,
        data=data,
        previews=PreviewRegistry("127.0.0.1", HostPolicy.build("127.0.0.1", (), ())),
        worktrees=data,
        intakes=OutsideIntakes(mirror.journal, data),
    )
