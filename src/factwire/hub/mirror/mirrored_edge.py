"""`MirroredEdge`: what an Edge serves to read, served from its mirror by the Edge's own routes.

Lists, states, pages, streams and content come from the same code as at the Edge, over the mirrored
journal, so that they show the same and take the same cursors, also while the Edge is off. Whatever
needs the device itself, every command among it, is refused with a code that says so.
"""

from functools import partial
from pathlib import Path
from typing import Final, cast

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
from factwire.edge.operations.outside_intakes import OutsideIntakes
from factwire.edge.operations.retention_operations import EdgeRetention
from factwire.edge.preview_server import PreviewRegistry
from factwire.edge.records import RecordStore, read_records
from factwire.hub.mirror.mirror_store import EdgeMirror
from factwire.journal.atomic_files import make_private_folder
from factwire.journal.blobs.blob_store import run_disk_work
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

MIRRORED_ROUTES: Final = frozenset(
    f"/v1/{path.strip()}"
    for path in """
        projects
        projects/{project_id}
        conversations
        conversations/{conversation_id}
        threads
        threads/{thread_id}
        threads/{thread_id}/items
        threads/{thread_id}/items/{item_id}
        threads/{thread_id}/projection
        threads/{thread_id}/read-model
        threads/{thread_id}/queue
        runs
        runs/{run_id}
        runs/{run_id}/events
        runs/{run_id}/processes
        approvals
        approvals/{approval_id}
        events
        facts
        artifacts
        artifacts/{artifact_id}
        artifacts/{artifact_id}/content
        blobs/{ref}
        tasks
        tasks/{task_id}
        evidence
        evidence/{evidence_id}
        evidence/{evidence_id}/content
        previews
        previews/{preview_id}
    """.strip().splitlines()
)
"""What is read from the journal and the blobs alone; the rest needs the device."""

_VERBS: Final = compile_verbs(VERBS)
_STOP_SECONDS: Final = 2.5


class MirroredEdge:
    """The reading faces of one mirror, as an ASGI application under the Edge's own paths."""

    def __init__(
        self, edge: EdgeContext, streams: Streams, rest: Application, templates: RouteTemplates
    ) -> None:
        self._edge = edge
        self._streams = streams
        self._rest = rest
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._streams.owns(scope):
                ensure_not_deleted(self._edge, scope)
                await self._streams(scope, receive, send)
                return
            routed = to_routable_scope(scope, _VERBS)
            self._ensure_mirrored(routed)
        except Problem as problem:
            await refuse(scope, receive, send, problem)
            return
        await self._rest(routed, receive, add_cursor_header(self._edge, scope, send))

    async def close(self) -> None:
        """End the streams and save the lists."""
        await self._streams.close(_STOP_SECONDS)
        await self._edge.feed.close()
        await self._edge.record_store.close()

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
