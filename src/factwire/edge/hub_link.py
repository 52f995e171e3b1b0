"""`HubLink`: an Edge's side of the link to its Hub; the Edge connects, never the Hub.

Whatever the Hub sends is done once, however often it comes: a delivery is stored before it is
begun, its outcome before it is acknowledged, and what it creates has ids that follow from its own,
so that a kill at any moment leaves nothing that would be done twice. How a task ended is derived
from the facts of its run, stored, and sent until the Hub has it. While the Hub is away the Edge
works on.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from factwire import __version__
from factwire.edge.edge_context import HubState
from factwire.edge.hub_access import HubTarget
from factwire.edge.hub_frames import (
    REPLACED_CODE,
    UNSET,
    AgentCancel,
    AgentControl,
    AgentDispatch,
    AgentDone,
    AgentFailed,
    AgentTimeout,
    DeliveryAck,
    EdgeHeartbeat,
    EndAck,
    FramePayload,
    RelayAnswer,
    RelayCommandAcknowledged,
    RelayCommandCreated,
    SyncAck,
    SyncUploaded,
    Unset,
)
from factwire.edge.limits import (
    LINK_ANSWER_BYTES,
    LINK_DIFF_BYTES,
    LINK_FRAME_BYTES,
    LINK_HEARTBEAT_SECONDS,
    LINK_PAUSE_SECONDS,
    LINK_PAUSE_SECONDS_MOST,
    LINK_RESEND_SECONDS,
    LINK_STEADY_SECONDS,
)
from factwire.edge.link_store import LinkStore, StoredFrame, StoredTask
from factwire.facts import Person, to_person
from factwire.facts.resources import TaskChanges
from factwire.journal import JournalError
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.serving.asgi import PROBLEM_MEDIA_TYPE, Problem, new_trace_id, to_document
from factwire.serving.idempotency import DONE_STATUSES, key_reused
from factwire.serving.logs import logger

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

Send = Callable[[str, FramePayload], Awaitable[None]]


class LinkTokens(Protocol):
    """Access tokens that the Hub takes; raises `HubRefused` or `HubUnreachable` without one."""

    async def token(self) -> str:
        """One that is valid."""
        ...

    def forget(self, token: str) -> None:
        """Have one replaced that the Hub no longer takes."""
        ...


LINK_PATH: Final = "/client/ws"
SOCKET_TASK: Final = "factwire-hub-socket"
_DISPATCH: Final = "agent.dispatch"
TASK_CANCELLED: Final = "task_cancelled"
UNKNOWN_TASK: Final = "unknown_task"

_TRANSIENT: Final = frozenset({429, 503})
"""Statuses of refusals that may be over when the Hub sends the delivery again."""

_FRAME_SPARE_BYTES: Final = 1_024
"""Bytes of a frame that are left for its type and its names."""

_JSON_TYPES: Final = ("application/json", PROBLEM_MEDIA_TYPE)
_log: Final = logger("factwire.edge.hub")


class LinkedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run of a task."""

    run_id: str
    thread_id: str
    worktree: bool = False
    """Whether it was to have one of its own, so that its end tells what it changed."""


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended; without an error it finished. `route` is what it decided as a supervisor,
    and `diff` the beginning of that of its `changes`, where these were asked for.
    """

    summary: str
    usage: dict[str, Any]
    error: dict[str, Any] | None = None
    route: dict[str, Any] | None = None
    changes: TaskChanges | None = None
    diff: str = ""


class LinkWork(Protocol):
    """What an Edge does for its Hub; each of these raises `Problem` for what it refuses."""

    edge_id: str

    def list_agents(self) -> list[str]:
        """The agents that the Edge offers."""
        ...

    async def start(self, dispatch: AgentDispatch, by: Person) -> LinkedRun:
        """Start the run of a task; the same dispatch again is the same run."""
        ...

    def find(self, delivery_id: str) -> LinkedRun | None:
        """The run that a dispatch has started."""
        ...

    async def stop(self, run_id: str, reason: str, by: Person) -> None:
        """Stop a run; one that has ended stays as it is."""
        ...

    async def decide(self, control: AgentControl, by: Person) -> None:
        """Decide an approval; the decision is on disk then."""
        ...

    async def relay(self, command: RelayCommandCreated, by: Person) -> RelayAnswer:
        """What the Edge's own interface answers."""
        ...

    async def read_end(self, run: LinkedRun) -> RunEnd | None:
        """How a run ended; None while it has not."""
        ...

    def follow_ends(self) -> AsyncIterator[None]:
        """Yields at once, and again whenever a run may have ended since it last did."""
        ...


Upload = Callable[[str, RelayAnswer], Awaitable[None]]
"""Brings an answer to the Hub that is too large for a frame."""


class HubLink:
    """What an Edge and its Hub say to each other, on whatever socket there is; `sleep` is for tests
    with their own.
    """

    def __init__(
        self,
        work: LinkWork,
        store: LinkStore,
        upload: Upload,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.acked_seq = 0
        self._work = work
        self._store = store
        self._device_id = ""
        self._upload = upload
        self._sleep = sleep
        self._send: Send | None = None
        self._working: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._handlers: dict[str, tuple[type[Any], Callable[[Any], Awaitable[_Outcome | None]]]] = {
            _DISPATCH: (AgentDispatch, self._dispatch),
            "agent.cancel": (AgentCancel, self._cancel),
            "agent.timeout": (AgentTimeout, self._time_out),
            "agent.control": (AgentControl, self._decide),
            "relay.command.created": (RelayCommandCreated, self._relay),
        }

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Finish what a former process began, and watch the runs of tasks, while the block lasts.
        Relayed requests and decisions are left to the Hub, which knows whether they still hold.
        """
        for stored in await self._store.list_unfinished(_DISPATCH):
            self._begin(self._take_delivery(stored.frame.type, stored.frame.payload))
        self._begin(self._watch_ends())
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: "Any") -> None:
        task = asyncio.create_task(work, name="factwire-hub-link")
        self._tasks.add(task)
        task.add_done_callback(self._note_done)

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # The Hub sends again what was not acknowledged.
            _log.warning("hub_frame_failed", detail=_describe(error))

    async def connect(self, send: Send, device_id: str) -> None:
        """Speak on a new socket: say what this Edge is, which tasks it has, and every end that the
        Hub has not got.
        """
        self._send, self._device_id = send, device_id
        # After this Edge has joined again, the Hub does not ask the new device about them.
        for reply in await self._store.list_open_replies(_DISPATCH):
            await self._answer(reply)
        await self.send_heartbeat()
        await self.send_ends()

    def disconnect(self, send: Send) -> None:
        """The socket is gone, unless a newer one is there."""
        if self._send is send:
            self._send = None

    async def send_heartbeat(self) -> None:
        open_tasks = await self._store.list_open_tasks()
        await self._say(
            "edge.heartbeat",
            EdgeHeartbeat(
                edge_id=self._work.edge_id,
                device_id=self._device_id,
                version=__version__,
                agents=self._work.list_agents(),
                tasks=[task.task_id for task in open_tasks],
            ),
        )

    async def send_ends(self) -> None:
        """Send every end again that the Hub has not acknowledged."""
        for frame in await self._store.list_ends():
            payload = msgspec.json.decode(frame.payload, type=_END_PAYLOADS[frame.type])
            await self._say(frame.type, payload)

    async def tell_uploaded(self, epoch: str, first: int, last: int) -> None:
        """Say that the Hub has stored facts."""
        upload = SyncUploaded(producer=self._work.edge_id, epoch=epoch, from_seq=first, to_seq=last)
        await self._say("sync.event.uploaded", upload)

    async def _say(self, type_: str, payload: FramePayload) -> None:
        send = self._send
        if send is not None:
            await send(type_, payload)

    def take_frame(self, type_: str, payload: bytes) -> None:
        """Take in what the Hub says; what takes a while is done beside."""
        if type_ in self._handlers:
            self._begin(self._take_delivery(type_, payload))
        elif type_ == "end.ack":
            ack = msgspec.json.decode(payload, type=EndAck)
            self._begin(self._store.remove_end(ack.task_id))
        elif type_ == "sync.ack":
            acked = msgspec.json.decode(payload, type=SyncAck)
            self.acked_seq = max(self.acked_seq, acked.acked_seq)

    async def _take_delivery(self, type_: str, raw: bytes) -> None:
        kind, perform = self._handlers[type_]
        payload = msgspec.json.decode(raw, type=kind)
        delivery_id: str = payload.delivery_id
        if delivery_id in self._working:
            return
        self._working.add(delivery_id)
        try:
            if isinstance(payload, RelayCommandCreated) and payload.is_read:
                await self._answer_read(payload)
                return
            await self._do_once(delivery_id, StoredFrame(type=type_, payload=raw), payload, perform)
        finally:
            self._working.discard(delivery_id)

    async def _answer_read(self, command: RelayCommandCreated) -> None:
        """Answer what changes nothing; it is neither stored nor done once only."""
        outcome = await self._relay(command)
        if outcome is None:
            await self._put_off(command.delivery_id)
        else:
            await self._say(outcome.type, outcome.payload)

    async def _put_off(self, delivery_id: str) -> None:
        """Have the Hub send something again, which may be done then."""
        await self._say("delivery.ack", DeliveryAck(delivery_id=delivery_id, later=True))

    async def _do_once(
        self,
        delivery_id: str,
        frame: StoredFrame,
        payload: Any,
        perform: "Callable[[Any], Awaitable[_Outcome | None]]",
    ) -> None:
        known = await self._store.find_delivery(delivery_id)
        request = payload.digest() if isinstance(payload, RelayCommandCreated) else None
        if known is not None and known.request not in (None, request):
            await self._say(_RELAYED, _refuse_other_request(delivery_id))
            return
        if known is not None and known.reply is not None:
            await self._answer(known.reply)
            return
        if known is None:
            task_id: str | None = getattr(payload, "task_id", None)
            # Only what is begun again after a kill is needed whole.
            kept = frame if frame.type == _DISPATCH else StoredFrame(type=frame.type, payload=b"")
            await self._store.add_delivery(delivery_id, kept, task_id, request)
        outcome = await perform(payload)
        if outcome is None:
            await self._put_off(delivery_id)
            return
        await self._store_outcome(delivery_id, outcome)
        await self._say(outcome.type, outcome.payload)
        if outcome.task is not None:
            # Its run may have ended before it was stored as that of a task.
            await self._store_end(outcome.task)
            await self.send_heartbeat()

    async def _store_outcome(self, delivery_id: str, outcome: "_Outcome") -> None:
        if outcome.is_undone:
            await self._store.remove_delivery(delivery_id)
            return
        reply = _to_stored(outcome.type, outcome.payload)
        lasting = reply if outcome.lasting is None else _to_stored(outcome.type, outcome.lasting)
        answer = reply if outcome.keeps_answer else None
        await self._store.finish_delivery(delivery_id, lasting, outcome.task, answer)

    async def _answer(self, reply: StoredFrame) -> None:
        payload = msgspec.json.decode(reply.payload, type=_REPLY_PAYLOADS[reply.type])
        await self._say(reply.type, payload)

    def _lock_of(self, task_id: str) -> asyncio.Lock:
        # As many as there are tasks in one life of this Edge; each is small.
        return self._locks.setdefault(task_id, asyncio.Lock())

    def _is_meant(self, device_id: str) -> bool:
        """Whether something is for this device; before the first connection, it was stored as
        such.
        """
        return self._device_id in ("", device_id)

    async def _dispatch(self, dispatch: AgentDispatch) -> "_Outcome | None":
        async with self._lock_of(dispatch.task_id):
            known = await self._store.find_task(dispatch.task_id)
            if known is not None and known.run_id is None:
                return _refuse(dispatch.delivery_id, TASK_CANCELLED, "the task was stopped before")
            is_begun = self._work.find(dispatch.delivery_id) is not None
            # One that was begun before this Edge joined again is its own all the same.
            if not (is_begun or self._is_meant(dispatch.edge_device_id)):
                return _refuse(dispatch.delivery_id, "wrong_device", "this is another device")
            try:
                run = await self._work.start(dispatch, _read_person(dispatch.person))
            except Problem as problem:
                return _refuse_problem(dispatch.delivery_id, problem)
            except JournalError as error:
                _log.warning("hub_dispatch_failed", task_id=dispatch.task_id, detail=str(error))
                return None
        return _Outcome(
            type="delivery.ack",
            payload=DeliveryAck(
                delivery_id=dispatch.delivery_id, edge_run_id=run.run_id, thread_id=run.thread_id
            ),
            task=StoredTask(
                task_id=dispatch.task_id,
                run_id=run.run_id,
                thread_id=run.thread_id,
                closing=None,
                ended=False,
                worktree=dispatch.worktree is not UNSET,
            ),
        )

    async def _cancel(self, cancel: AgentCancel) -> "_Outcome | None":
        person = {} if cancel.person is UNSET else cancel.person
        return await self._stop(cancel.task_id, cancel.delivery_id, "cancelled", person)

    async def _time_out(self, late: AgentTimeout) -> "_Outcome | None":
        return await self._stop(late.task_id, late.delivery_id, "timed_out", {})

    async def _stop(
        self, task_id: str, delivery_id: str, why: str, person: dict[str, Any]
    ) -> "_Outcome | None":
        async with self._lock_of(task_id):
            known = await self._store.find_task(task_id) or await self._adopt_run(task_id)
            if known is None or known.run_id is None:
                stopped = StoredTask(
                    task_id=task_id, run_id=None, thread_id=None, closing=why, ended=True
                )
                refused = _refuse(delivery_id, UNKNOWN_TASK, "this device has no run of the task")
                return msgspec.structs.replace(refused, task=stopped)
            if not known.ended:
                try:
                    await self._work.stop(known.run_id, why, _read_person(person))
                except (Problem, JournalError) as error:
                    _log.warning("hub_stop_failed", task_id=task_id, detail=str(error))
                    return None
        ack = DeliveryAck(
            delivery_id=delivery_id,
            edge_run_id=known.run_id,
            thread_id=known.thread_id or UNSET,
        )
        closing = msgspec.structs.replace(known, closing=why)
        return _Outcome(type="delivery.ack", payload=ack, task=closing)

    async def _adopt_run(self, task_id: str) -> StoredTask | None:
        """The run of a task that was killed between its start and the note of it."""
        stored = await self._store.find_unfinished(_DISPATCH, task_id)
        run = None if stored is None else self._work.find(stored.delivery_id)
        if stored is None or run is None:
            return None
        dispatch = msgspec.json.decode(stored.frame.payload, type=AgentDispatch)
        return StoredTask(
            task_id=task_id,
            run_id=run.run_id,
            thread_id=run.thread_id,
            closing=None,
            ended=False,
            worktree=dispatch.worktree is not UNSET,
        )

    async def _decide(self, control: AgentControl) -> "_Outcome | None":
        decided_by = control.edge_control.decided_by
        person = {} if decided_by is UNSET else decided_by
        if not self._is_meant(control.edge_device_id):
            return _refuse(control.delivery_id, "wrong_device", "this is another device")
        try:
            await self._work.decide(control, _read_person(person))
        except Problem as problem:
            return _refuse_problem(control.delivery_id, problem)
        except JournalError as error:
            _log.warning("hub_decision_failed", detail=str(error))
            return None
        ack = DeliveryAck(delivery_id=control.delivery_id)
        return _Outcome(type="delivery.ack", payload=ack)

    async def _relay(self, command: RelayCommandCreated) -> "_Outcome | None":
        answer = await self._work.relay(command, _read_person(command.person))
        content_type = answer.headers.get("content-type", "")
        is_json = content_type.startswith(_JSON_TYPES) or not answer.content
        is_framed = is_json and len(answer.content) <= LINK_ANSWER_BYTES
        if not is_framed:
            try:
                await self._upload(command.delivery_id, answer)
            except UploadFailed as error:
                _log.warning("hub_answer_failed", detail=str(error))
                return None
        is_body = is_framed and bool(answer.content)
        payload = RelayCommandAcknowledged(
            command_id=command.command_id,
            status=answer.status,
            headers=answer.headers if is_framed else {},
            body=msgspec.json.decode(answer.content) if is_body else None,
            uploaded=not is_framed,
        )
        lasting = RelayCommandAcknowledged(
            command_id=command.command_id, status=answer.status, expired=True
        )
        return _Outcome(
            type=_RELAYED,
            payload=payload,
            lasting=lasting,
            keeps_answer=is_framed,
            is_undone=answer.status not in DONE_STATUSES,
        )

    async def _watch_ends(self) -> None:
        """Store and send the ends of tasks as the facts of their runs tell them; what fails is
        tried again after a pause.
        """
        pause = 0.0
        while True:
            try:
                async for _ in self._work.follow_ends():
                    await self._store_ends()
                    pause = 0.0
            except Exception as error:  # noqa: BLE001 - logged, and tried again
                _log.warning("hub_ends_failed", detail=_describe(error))
            else:
                return
            pause = _lengthen(pause)
            await self._sleep(pause)

    async def _store_ends(self) -> None:
        """Store and send what has ended; what fails for one task does not keep back the others."""
        failure: Exception | None = None
        for task in await self._store.list_open_tasks():
            try:
                await self._store_end(task)
            except Exception as error:  # noqa: BLE001 - raised once the others have had their turn
                failure = error
        if failure is not None:
            raise failure

    async def _store_end(self, task: StoredTask) -> None:
        """Store and send the end of a task, if its run has ended and that is not stored yet."""
        if task.run_id is None or task.ended:
            return
        run = LinkedRun(run_id=task.run_id, thread_id=task.thread_id or "", worktree=task.worktree)
        end = await self._work.read_end(run)
        if end is not None:
            type_, payload = _build_end(task, end)
            stored = StoredFrame(type=type_, payload=msgspec.json.encode(payload))
            await self._store.add_end(task.task_id, stored)
            await self._say(type_, payload)


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the Hub is answered, and what is now known of a task. `lasting` is what is kept of an
    answer for ever; with `keeps_answer`, the answer itself is for a while. What is undone was
    refused, and may be done when it comes again.
    """

    type: str
    payload: FramePayload
    task: StoredTask | None = None
    lasting: FramePayload | None = None
    keeps_answer: bool = False
    is_undone: bool = False


class UploadFailed(Exception):
    """An answer did not reach the Hub."""


_RELAYED: Final = "relay.command.acknowledged"
_REPLY_PAYLOADS: Final[dict[str, type[FramePayload]]] = {
    "delivery.ack": DeliveryAck,
    _RELAYED: RelayCommandAcknowledged,
}
_END_PAYLOADS: Final[dict[str, type[FramePayload]]] = {
    "agent.done": AgentDone,
    "agent.failed": AgentFailed,
}


def _lengthen(pause: float) -> float:
    """The pause after one that did not help."""
    return min(LINK_PAUSE_SECONDS_MOST, 2 * pause or LINK_PAUSE_SECONDS)


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _read_person(person: dict[str, Any]) -> Person:
    """Who asks by way of the Hub; the Hub itself, where it does."""
    return to_person({**person, "via": "hub"}) or Person(name="Hub", via="hub")


def _to_stored(type_: str, payload: FramePayload) -> StoredFrame:
    return StoredFrame(type=type_, payload=msgspec.json.encode(payload))


def _refuse_other_request(delivery_id: str) -> RelayCommandAcknowledged:
    problem = key_reused()
    return RelayCommandAcknowledged(
        command_id=delivery_id,
        status=problem.status,
        headers={"content-type": PROBLEM_MEDIA_TYPE},
        body=to_document(problem, new_trace_id()),
    )


def _refuse(delivery_id: str, code: str, message: str) -> _Outcome:
    ack = DeliveryAck(delivery_id=delivery_id, refused=code, message=message)
    return _Outcome(type="delivery.ack", payload=ack)


def _refuse_problem(delivery_id: str, problem: Problem) -> _Outcome | None:
    if problem.status in _TRANSIENT:
        return None
    return _refuse(delivery_id, problem.code, str(problem))


def _build_end(task: StoredTask, end: RunEnd) -> tuple[str, AgentDone | AgentFailed]:
    about: dict[str, Any] = {
        "task_id": task.task_id,
        "edge_run_id": task.run_id or UNSET,
        "thread_id": task.thread_id or UNSET,
    }
    if end.changes is not None:
        about["changes"] = end.changes
    if end.error is None:
        done = AgentDone(
            **about,
            result_summary=end.summary,
            usage=end.usage,
            route_decision=UNSET if end.route is None else end.route,
        )
        return "agent.done", msgspec.structs.replace(done, diff=_fit_diff(end, done))
    error = end.error
    if error.get("code") == "cancelled" and task.closing is not None:
        error = {**error, "code": task.closing}
    failed = AgentFailed(**about, error=error, usage=end.usage)
    return "agent.failed", msgspec.structs.replace(failed, diff=_fit_diff(end, failed))


def _fit_diff(end: RunEnd, frame: FramePayload) -> str | Unset:
    """As much of a diff as a frame has room for."""
    taken = len(msgspec.json.encode(frame)) + _FRAME_SPARE_BYTES
    return cut_encoded(end.diff, min(LINK_DIFF_BYTES, LINK_FRAME_BYTES - taken)) or UNSET


def cut_encoded(text: str, room: int) -> str:
    """The beginning of a text that has no more than so many bytes as JSON."""
    while text and (size := len(msgspec.json.encode(text))) > room:
        text = text[: len(text) * max(room, 0) // size]
    return text


class _Frame(msgspec.Struct):
    type: str
    payload: msgspec.Raw = msgspec.Raw(b"{}")


class _Accepted(msgspec.Struct):
    device_id: str


class _SentFrame(msgspec.Struct):
    type: str
    payload: FramePayload


class LinkSocket:
    """Keeps a socket to the Hub open for as long as `run` lasts, or until another socket of this
    device has replaced it: that of a copy of this Edge, and two that replace each other in turn
    would both be of no use. `state` shows what is wrong, and `note_trouble` is called with it;
    `sleep` and `chance` are for tests with their own.
    """

    def __init__(
        self,
        link: HubLink,
        target: HubTarget,
        tokens: LinkTokens,
        *,
        state: HubState | None = None,
        note_trouble: Callable[[str | None], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.state = state or HubState()
        self._on_trouble = note_trouble
        self._link = link
        self._target = target
        self._tokens = tokens
        self._sleep = sleep
        self._chance = chance

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self._run(), name=SOCKET_TASK)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._set_trouble(None)

    async def _run(self) -> None:
        loop, pause = asyncio.get_running_loop(), 0.0
        while True:
            began = loop.time()
            if await self._try_socket() == REPLACED_CODE:
                _log.error("hub_link_replaced", hub=self._target.url, detail=_REPLACED)
                await self._set_trouble(_REPLACED)
                return
            lasted = loop.time() - began
            pause = _lengthen(0.0 if lasted > LINK_STEADY_SECONDS else pause)
            await self._sleep(pause * (1 + self._chance()) / 2)

    async def _try_socket(self) -> int | None:
        """Speak on one socket until it ends; the code with which the Hub closed it."""
        # Here, because an Edge without a Hub should not load it.
        from websockets.asyncio.client import connect  # noqa: PLC0415
        from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: PLC0415

        address = self._target.url.replace("http", "ws", 1).rstrip("/") + LINK_PATH
        token = ""
        try:
            token = await self._tokens.token()
            async with connect(
                address,
                additional_headers={"authorization": f"Bearer {token}"},
                max_size=2 * LINK_FRAME_BYTES,
                compression=None,
                proxy=None,
                logger=_socket_log,
            ) as socket:
                await self._speak(socket)
        except Exception as error:  # noqa: BLE001 - logged; whatever it was, the next may last
            if isinstance(error, InvalidStatus):
                # The session may be over, or the key of the Hub another one.
                self._tokens.forget(token)
            await self._note_trouble(_describe(error))
            if isinstance(error, ConnectionClosed) and error.rcvd is not None:
                return error.rcvd.code
        return None

    async def _speak(self, socket: "ClientConnection") -> None:
        async def send(type_: str, payload: FramePayload) -> None:
            from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

            # What is lost with a socket is said again on the next.
            with suppress(ConnectionClosed):
                await socket.send(msgspec.json.encode(_SentFrame(type_, payload)).decode())

        beating: asyncio.Task[None] | None = None
        try:
            async for message in socket:
                frame = msgspec.json.decode(message, type=_Frame)
                if frame.type == "auth.ok":
                    await self._note_success()
                    accepted = msgspec.json.decode(frame.payload, type=_Accepted)
                    await self._link.connect(send, accepted.device_id)
                    beating = asyncio.create_task(self._beat(), name="factwire-hub-heartbeat")
                else:
                    self._link.take_frame(frame.type, bytes(frame.payload))
        finally:
            self._link.disconnect(send)
            if beating is not None:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        resend_at = loop.time() + LINK_RESEND_SECONDS
        while True:
            await self._sleep(LINK_HEARTBEAT_SECONDS)
            try:
                await self._link.send_heartbeat()
                if loop.time() >= resend_at:
                    await self._link.send_ends()
                    resend_at = loop.time() + LINK_RESEND_SECONDS
            except Exception as error:  # noqa: BLE001 - logged, and the next one is due soon
                _log.warning("hub_heartbeat_failed", detail=_describe(error))

    async def _note_trouble(self, trouble: str) -> None:
        if trouble != self.state.trouble:
            _log.warning("hub_link_lost", hub=self._target.url, detail=trouble)
            await self._set_trouble(trouble)

    async def _note_success(self) -> None:
        _log.info("hub_link_open", hub=self._target.url)
        await self._set_trouble(None)

    async def _set_trouble(self, trouble: str | None) -> None:
        self.state.trouble = trouble
        try:
            await run_disk_work(self._on_trouble, trouble)
        except OSError as error:
            # The link goes on without the note, which is for `factwire doctor` alone.
            _log.warning("hub_link_state_unwritable", detail=str(error))


_REPLACED: Final = (
    "another Edge has connected to the Hub as this device, such as one with a copy of this data "
    "folder; stop it, then restart this one, or let one of them leave and join again"
)


_socket_log: Final = logging.getLogger("factwire.edge.hub.socket")
"""Where the sockets' library writes; its details are left out, because they show the token."""

_socket_log.addFilter(lambda record: record.levelno > logging.DEBUG)
