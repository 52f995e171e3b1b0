"""`TaskStreams`: what the agents of tasks do, read off the mirrors of their Edges.

The journal that an Edge uploads is the only transport of what its agents do. While an Edge has
tasks whose runs are not over, its mirror is followed; every event of such a run is told once, as
the Edge's own events say it, with the seq of its fact. How far a run was told is written with the
events, so neither a kill nor a second process tells anything twice or leaves anything out. The end
of a task waits in its row until the mirror has the end of the run, and all before it was told.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec
from sqlalchemy import Select, select, update
from sqlalchemy.engine import RowMapping

from factwire.edge.edge_context import EdgeContext
from factwire.edge.events import build_envelope
from factwire.facts.resources import RUN_ENDS, TASK_ENDS, Approval, Page
from factwire.hub.frames.event_log import EventLog, HubChange
from factwire.hub.frames.frame_types import AgentStream
from factwire.hub.hub_resources import HubResource
from factwire.hub.limits import (
    STREAM_EVENTS,
    STREAM_LATE_SECONDS,
    STREAM_PAYLOAD_BYTES,
    TASK_ANSWER_CHARACTERS,
)
from factwire.hub.link import agent_tasks as tasks
from factwire.hub.link.deliveries import MILLISECONDS
from factwire.hub.mirror.mirror_app import find_faces
from factwire.hub.mirror.mirror_store import MirrorStore, UnknownEdge
from factwire.hub.records.device_tables import devices
from factwire.hub.records.hub_database import HubDatabase, RecordsUnavailable
from factwire.hub.records.link_tables import agent_tasks
from factwire.journal import Cursor, Filter, JournalError
from factwire.serving.envelopes import Envelope
from factwire.serving.limits import LIST_ITEMS_MOST
from factwire.serving.logs import logger
from factwire.serving.paging import build_page
from factwire.serving.streams import FeedStopped
from factwire.serving.streams.catch_up import MessagePage, read_message_page
from factwire.serving.streams.frame_encoder import FrameEncoder, Selection

RUN_END_EVENTS: Final = frozenset({"run.finished", "run.failed", "run.cancelled"})
"""Events by which a run ends; what sums it up may follow."""

_RETRY_SECONDS: Final = 1.0

_log: Final = logger("factwire.hub.link")
_ENVELOPE: Final = msgspec.json.Decoder(Envelope)


class TaskEvent(HubResource, frozen=True, kw_only=True):
    """One event of a task's run; `eventSeq` is the seq of its fact in the Edge's journal."""

    id: str
    event_seq: int
    event_type: str
    payload: Any
    created_at: str


class TaskEventPage(HubResource, frozen=True, kw_only=True):
    """Events of a task's run, oldest first; `next` is the `after_seq` of the page that follows."""

    items: list[TaskEvent]
    as_of: str
    next: int | None = None


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The message that an agent is writing, or wrote last."""

    message_id: str
    text: str


class TaskStreams:
    """Follows the mirrors of devices that have tasks under way."""

    def __init__(
        self,
        database: HubDatabase,
        events: EventLog,
        mirrors: MirrorStore,
        *,
        clock: Callable[[], float],
        messages: tasks.AgentMessages | None = None,
    ) -> None:
        self._database = database
        self._events = events
        self._mirrors = mirrors
        self._clock = clock
        self._messages = messages
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._wakes: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Follow for as long as the block lasts."""
        try:
            yield
        finally:
            followers = list(self._followers.values())
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*followers, return_exceptions=True)

    def follow(self, edge_id: str) -> None:
        """Look for what there is to tell of an Edge's tasks, now and as the mirror grows."""
        self._wakes.setdefault(edge_id, asyncio.Event()).set()
        if edge_id not in self._followers:
            follower = asyncio.create_task(
                self._follow(edge_id), name=f"factwire-hub-follow-{edge_id}"
            )
            self._followers[edge_id] = follower

    async def read_end(self, edge_id: str) -> int:
        """The last seq that the mirror of an Edge has on disk; 0 where there is no mirror."""
        try:
            async with self._mirrors.use(edge_id) as mirror:
                return (await mirror.journal.head()).seq
        except UnknownEdge:
            return 0

    async def read_events(self, edge_id: str, run_id: str, after: int, limit: int) -> TaskEventPage:
        """Events of a run after a seq; raises `UnknownEdge`."""
        async with self._mirrors.use(edge_id) as mirror:
            edge = (await find_faces(mirror)).context
            found = await _read_run(edge, run_id, after, limit)
        items = [_to_event(_ENVELOPE.decode(text)) for text in found.texts]
        following = found.cursor.seq if found.more else None
        return TaskEventPage(items=items, as_of=str(found.cursor), next=following)

    async def list_approvals(self, edge_id: str, run_id: str) -> Page[Approval]:
        """What a run asks or asked, as its Edge lists it; raises `UnknownEdge`."""
        async with self._mirrors.use(edge_id) as mirror:
            edge = (await find_faces(mirror)).context
            return build_page(
                edge.cursor, edge.records.approvals, None, LIST_ITEMS_MOST, run_id=run_id
            )

    async def _follow(self, edge_id: str) -> None:
        wake = self._wakes[edge_id]
        try:
            # Whoever asks while a look is under way may know of more than that look saw.
            while wake.is_set():
                await self._emit_new_events(edge_id, wake)
        finally:
            del self._followers[edge_id]

    async def _emit_new_events(self, edge_id: str, wake: asyncio.Event) -> None:
        wake.clear()
        try:
            async with self._mirrors.use(edge_id) as mirror:
                edge = (await find_faces(mirror)).context
                await self._tell_runs(edge, wake)
        except UnknownEdge:
            # The first upload leads here again.
            return
        except (FeedStopped, JournalError, RecordsUnavailable) as error:
            _log.info("task_stream_interrupted", edge=edge_id, detail=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
            wake.set()
        except Exception:  # noqa: BLE001 - logged; the next heartbeat, or upload, leads here again
            _log.exception("task_stream_failed", edge=edge_id)

    async def _tell_runs(self, edge: EdgeContext, wake: asyncio.Event) -> None:
        """Tell what comes until there is no run to tell of; raises `FeedStopped`."""
        reached: dict[str, int] = {}
        while True:
            seq = edge.feed.cursor.seq
            rows = await self._find_open_streams(edge.edge_id)
            if not rows:
                return
            for row in rows:
                known = reached.get(row["task_id"], 0)
                reached[row["task_id"]] = await self._tell_run(edge, row, known)
            grown = asyncio.ensure_future(edge.feed.wait_for(seq + 1))
            woken = asyncio.ensure_future(wake.wait())
            try:
                await asyncio.wait({grown, woken}, return_when=asyncio.FIRST_COMPLETED)
                if grown.done():
                    grown.result()
            finally:
                for each in (grown, woken):
                    each.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.gather(grown, woken, return_exceptions=True)
            wake.clear()

    async def _find_open_streams(self, edge_id: str) -> list[RowMapping]:
        query = select_open_streams(edge_id, math.floor(self._clock() * MILLISECONDS))
        async with self._database.read() as connection:
            return list((await connection.execute(query)).mappings())

    async def _tell_run(self, edge: EdgeContext, row: RowMapping, reached: int) -> int:
        """Tell what is new of a run after the seq that was reached; the one that is now."""
        epoch, after = edge.feed.cursor.epoch, max(reached, row["stream_seq"])
        if row["stream_epoch"] not in (None, epoch):
            # Another journal has other seqs; what was told of the one before stays as it is.
            after = reached
        run = edge.records.runs.get(row["edge_run_id"])
        # Noted before the events are read, so that the end of the run is among them.
        has_ended = run is not None and run.status in RUN_ENDS
        while True:
            page = await _read_run(edge, row["edge_run_id"], after, STREAM_EVENTS)
            if page.texts:
                envelopes = [_ENVELOPE.decode(text) for text in page.texts]
                if not await self._write(row["task_id"], epoch, after, page, envelopes):
                    return after
            after = page.cursor.seq
            if not page.more:
                break
        if has_ended and row["end_frame"] is not None:
            async with self._events.change() as change:
                await tasks.emit_end(change, row["task_id"])
        return after

    async def _write(
        self,
        task_id: str,
        epoch: str,
        after: int,
        page: MessagePage,
        envelopes: list[Envelope],
    ) -> bool:
        """Tell some events, unless another process has; whether it was done here."""
        async with self._events.change() as change:
            query = select(agent_tasks).where(agent_tasks.c.task_id == task_id).with_for_update()
            row = (await change.connection.execute(query)).mappings().one()
            if row["stream_epoch"] == epoch and row["stream_seq"] > after:
                return False
            audiences = await tasks.find_audiences(change, row)
            for envelope in envelopes:
                frame = _to_frame(row, envelope)
                for audience in audiences:
                    change.emit(audience, "agent.stream", frame)
            before = _read_answer(row)
            answer = _extend_answer(before, envelopes)
            until = row["stream_until"]
            if any(each.type in RUN_END_EVENTS for each in envelopes):
                until = min(until, change.now + STREAM_LATE_SECONDS * MILLISECONDS)
            await change.connection.execute(
                update(agent_tasks)
                .where(agent_tasks.c.task_id == task_id)
                .values(
                    stream_epoch=epoch,
                    stream_seq=page.cursor.seq,
                    stream_until=until,
                    answer=None if answer is None else msgspec.json.encode(answer).decode(),
                    heard_at=change.now,
                )
            )
            if row["status"] in ("delivered", "unknown"):
                await tasks.move_task(change, row, "running")
            if answer is not None and answer != before:
                await self._show(change, row, answer.text)
        return True

    async def _show(self, change: HubChange, row: RowMapping, text: str) -> None:
        """Keep the message of the chat current; the end of a task writes the last of it."""
        if self._messages is None or row["session_id"] is None or row["status"] in TASK_ENDS:
            return
        await self._messages(change, tasks.to_task(row), text, False)  # noqa: FBT003


def select_open_streams(edge_id: str, now: int) -> Select[Any]:
    """The tasks of an Edge of whose runs more may come."""
    return (
        select(agent_tasks)
        .join(devices, devices.c.device_id == agent_tasks.c.device_id)
        .where(devices.c.edge_id == edge_id, agent_tasks.c.stream_until > now)
    )


async def _read_run(edge: EdgeContext, run_id: str, after: int, limit: int) -> MessagePage:
    run = edge.records.runs.get(run_id)
    # Nothing of a run is before its first fact.
    start = max(after, run.seq - 1 if run is not None else 0)
    encoder = FrameEncoder(
        Selection(face="events", filter=Filter(run=run_id)),
        envelope_of=partial(build_envelope, edge_id=edge.edge_id, place_of=edge.place_of),
        place_of=edge.place_of,
        threads_of=edge.threads_of,
    )
    cursor = Cursor(edge.feed.cursor.epoch, start) if start else None
    return await read_message_page(edge.journal, encoder, cursor, limit)


def _to_event(envelope: Envelope) -> TaskEvent:
    return TaskEvent(
        id=envelope.id,
        event_seq=envelope.seq,
        event_type=envelope.type,
        payload=envelope.payload,
        created_at=envelope.sent_at,
    )


def _to_frame(row: RowMapping, envelope: Envelope) -> AgentStream:
    payload: dict[str, Any] = envelope.payload
    size = len(msgspec.json.encode(payload))
    if size > STREAM_PAYLOAD_BYTES:
        # The page of the task's events has it whole.
        payload = {"omittedBytes": size}
    return AgentStream(
        id=envelope.id,
        task_id=row["task_id"],
        edge_run_id=row["edge_run_id"],
        session_id=row["session_id"] or "",
        agent_instance_id=row["agent_instance_id"],
        event_seq=envelope.seq,
        event_type=envelope.type,
        payload=payload,
        created_at=envelope.sent_at,
    )


def _read_answer(row: RowMapping) -> _Answer | None:
    return None if row["answer"] is None else msgspec.json.decode(row["answer"], type=_Answer)


def _extend_answer(answer: _Answer | None, envelopes: list[Envelope]) -> _Answer | None:
    """The agent's own message after some events: a delta adds, a block is the whole text so far."""
    for envelope in envelopes:
        payload: dict[str, Any] = envelope.payload
        grows = envelope.type == "run.agent.text_delta"
        if not (grows or envelope.type == "run.agent.text_block") or payload.get("subagentId"):
            continue
        message_id, text = str(payload["messageId"]), str(payload["content"])
        if grows and answer is not None and answer.message_id == message_id:
            text = answer.text + text
        answer = _Answer(message_id=message_id, text=text[:TASK_ANSWER_CHARACTERS])
    return answer
