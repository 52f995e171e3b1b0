"""`HubSocket`: `GET /client/ws` as one ASGI application, and what a client may say on it.

Who somebody is was found out before the upgrade. The first frame is `auth.ok`, or an `error` where
the cursor cannot be resumed from. A person's socket may say that they are typing; a device's may
send the frames of the table that are a device's. Whatever else comes is answered with an `error`
and a stable code, and too much of it ends the socket; nothing that a client sends reaches further
than its own socket.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final
from urllib.parse import parse_qs

import msgspec

from factwire.hub.frames.event_log import audience_of
from factwire.hub.frames.frame_types import (
    FRAMES,
    REQUESTS,
    AuthFail,
    AuthOk,
    FrameError,
    FramePayload,
    Typing,
    TypingRequest,
)
from factwire.hub.frames.hub_connections import (
    REPLACED,
    EdgeDevice,
    OpenSocket,
    find_edge_device,
)
from factwire.hub.frames.live_events import FrameSender
from factwire.hub.frames.socket_frames import FrameBatch, encode_single
from factwire.hub.hub_guard import CALLER
from factwire.hub.limits import (
    DEVICE_FRAMES_AT_ONCE,
    DEVICE_FRAMES_PER_SECOND,
    FRAMES_AT_ONCE,
    FRAMES_PER_SECOND,
    TYPING_AT_ONCE,
    TYPING_PER_SECOND,
)
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.hub_database import RecordsUnavailable
from factwire.journal import CursorError
from factwire.serving.asgi import Message, Problem, Receive, Scope, Send, refuse, scope_trace_id
from factwire.serving.limits import CLIENT_FRAME_BYTES
from factwire.serving.logs import logger
from factwire.serving.streams.stream_app import serve_socket
from factwire.serving.streams.stream_query import close_reason_of
from factwire.serving.streams.stream_sinks import (
    CLOSE_NAMES,
    CURSOR_EXPIRED,
    FAULT,
    TOO_BIG,
    UNASKED,
    UNAVAILABLE,
    CloseReason,
    StreamSink,
)

SOCKET_PATH: Final = "/client/ws"
CHAT: Final = "chat"
"""The kind of audience that the members of a chat are."""

FLOOD: Final = CloseReason(4429, "too many frames", reconnect=False)
NO_RECORDS: Final = CloseReason(1013, "database unavailable, try again", reconnect=True)

HUB_CLOSE_NAMES: Final[dict[CloseReason | None, str]] = {
    **{
        closing: name
        for closing, name in CLOSE_NAMES.items()
        if closing not in (UNASKED, UNAVAILABLE)
    },
    FLOOD: "flood",
    NO_RECORDS: "no_records",
    REPLACED: "replaced",
}
"""Why a socket ends, in one word; None is a client that left by itself."""

FRAME_ERROR_CODES: Final[dict[str, str]] = {
    "cursor_expired": "the events after the cursor have been removed; read a snapshot and resume "
    "from its `asOf`",
    "cursor_invalid": "the cursor is not one of this Hub; read a snapshot and resume from its "
    "`asOf`",
    "frame_invalid": "a frame is not JSON text of the form `{type, payload}`, or its payload is "
    "not what its type needs",
    "frame_unknown": "a client of this kind sends no frames of the type",
    "too_many_frames": "frames come faster than the limit; this one was ignored",
    "unknown_chat": "there is no chat with this id in which you are",
}
"""Code → why a socket sends the frame `error`."""

_log: Final = logger("factwire.hub.sockets")


class _ClientFrame(msgspec.Struct, frozen=True):
    """A frame as it comes; other members mean nothing."""

    type: str
    payload: msgspec.Raw = msgspec.Raw(b"{}")


_decode_frame: Final = msgspec.json.Decoder(_ClientFrame).decode
_FROM_EDGE: Final[dict[str, type[FramePayload]]] = {
    name: row.payload for name, row in FRAMES.items() if "edge_to_hub" in row.directions
}


class FrameRefused(Exception):
    """A frame is answered with an error; `code` is one of `FRAME_ERROR_CODES`."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def decode_client_frame(
    message: Message, known: dict[str, type[FramePayload]]
) -> tuple[str, FramePayload]:
    """The type and the payload of what a client sent; raises `FrameRefused`."""
    text = message.get("text")
    if text is None:
        raise FrameRefused("frame_invalid", "expected JSON text, got binary data")
    try:
        frame = _decode_frame(text)
        payload = known.get(frame.type)
        if payload is None:
            raise FrameRefused("frame_unknown", f"{frame.type[:80]!r} is no frame of yours")
        return frame.type, msgspec.json.decode(frame.payload, type=payload)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise FrameRefused("frame_invalid", f"the frame cannot be read: {error}") from None


class FrameRate:
    """A token bucket for the frames of one socket."""

    def __init__(self, per_second: float, at_once: int, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._clock = clock
        self._tokens = float(at_once)
        self._at = clock()

    def wait_seconds(self) -> float:
        """Seconds until there is a token; 0 takes one."""
        now = self._clock()
        self._tokens = min(self._at_once, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._per_second
        self._tokens -= 1
        return 0.0


class HubSocket:
    """The sockets of a Hub; `owns` says which requests are for it. `clock` counts frames."""

    def __init__(self, hub: HubServices, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._clock = clock

    def owns(self, scope: Scope) -> bool:
        return scope["type"] == "websocket" and scope["path"] == SOCKET_PATH

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: HubCaller = scope["state"][CALLER]
        with ExitStack() as stack:
            try:
                device = await self._admit(caller, stack)
            except Problem as problem:
                await refuse(scope, receive, send, problem)
                return
            session = _SocketSession(self._hub, caller, device, _read_cursor(scope), self._clock)
            await receive()
            trace_id = scope_trace_id(scope)
            _log.info("socket_opened", kind=session.kind, trace_id=trace_id)
            try:
                await serve_socket(scope, receive, send, session.enter, session.take)
            finally:
                await session.leave()
                reason = session.reason
                _log.info("socket_closed", kind=session.kind, reason=reason, trace_id=trace_id)

    async def _admit(self, caller: HubCaller, stack: ExitStack) -> EdgeDevice | None:
        """The device that a socket is of; raises `Problem`. What it takes up is given back with the
        stack.
        """
        if self._hub.connections.is_stopping:
            detail = "this Hub is stopping; try again in a moment"
            raise Problem(503, "streams_stopping", detail, headers={"retry-after": "1"})
        if caller.device_id is None:
            stack.enter_context(self._hub.connections.reserve_screen(caller.person_id))
            return None
        try:
            async with self._hub.database.read() as connection:
                device = await find_edge_device(connection, caller.device_id, caller.person_id)
        except RecordsUnavailable as error:
            detail = "the database does not answer; try again"
            raise Problem(503, "records_unavailable", detail) from error
        if device is None:
            raise Problem(401, "unauthenticated", "this device is not, or no longer, joined")
        return device


def _read_cursor(scope: Scope) -> str | None:
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return query["cursor"][0] if "cursor" in query else None


class _SocketSession:
    """One socket from its upgrade to its end."""

    def __init__(
        self,
        hub: HubServices,
        caller: HubCaller,
        device: EdgeDevice | None,
        cursor: str | None,
        clock: Callable[[], float],
    ) -> None:
        self._hub = hub
        self._caller = caller
        self._device = device
        self._cursor = cursor
        self._opened: OpenSocket | None = None
        self._refused = 0
        self._is_announced = False
        self._typing_rate = FrameRate(TYPING_PER_SECOND, TYPING_AT_ONCE, clock)
        if device is None:
            self._rate = FrameRate(FRAMES_PER_SECOND, FRAMES_AT_ONCE, clock)
        else:
            self._rate = FrameRate(DEVICE_FRAMES_PER_SECOND, DEVICE_FRAMES_AT_ONCE, clock)

    @property
    def kind(self) -> str:
        """What the client is, for the log."""
        return "screen" if self._device is None else self._device.kind

    @property
    def reason(self) -> str:
        """Why it ended, in a word."""
        return HUB_CLOSE_NAMES[None if self._opened is None else self._opened.sender.sink.ended_by]

    async def enter(self, sink: StreamSink) -> None:
        """Greet a client and bring it to what it reads, or close it."""
        caller, sender = self._caller, FrameSender(sink)
        self._opened = OpenSocket(caller.person_id, caller.session_id, self._device, sender)
        self._hub.connections.add(self._opened)
        try:
            if self._device is None:
                live = self._hub.connections.live
                await live.enter(caller.person_id, sender, self._cursor, self._build_auth_ok)
            else:
                sender.send(self._build_auth_ok(self._hub.connections.live.cursor))
                self._is_announced = True
                for hook in self._hub.connections.on_edge_connected:
                    await hook(self._device)
        except CursorError as error:
            self._end_for_cursor(sender, error)
        except RecordsUnavailable:
            sender.close(NO_RECORDS)
        except Exception:
            sender.close(FAULT)
            raise

    def _build_auth_ok(self, cursor: str) -> FrameBatch:
        caller = self._caller
        device_id = caller.device_id or caller.session_id
        greeting = AuthOk(user_id=caller.person_id, device_id=device_id, cursor=cursor)
        return encode_single("auth.ok", greeting, "hub_to_client")

    def _end_for_cursor(self, sender: FrameSender, error: CursorError) -> None:
        closing = close_reason_of(error)
        code = "cursor_expired" if closing is CURSOR_EXPIRED else "cursor_invalid"
        problem = FrameError(code=code, message=FRAME_ERROR_CODES[code], snapshotRequired=True)
        sender.write(encode_single("error", problem, "hub_to_client"))
        sender.sink.close(closing)

    async def leave(self) -> None:
        """Forget a socket that has ended."""
        opened, connections = self._opened, self._hub.connections
        if opened is None:
            return
        connections.live.leave(opened.person_id, opened.sender)
        connections.remove(opened)
        device = self._device
        if device is None or not self._is_announced or connections.is_connected(device.device_id):
            return
        for hook in connections.on_edge_gone:
            await hook(device)

    async def take(self, sink: StreamSink, message: Message) -> None:
        """Do what a client asks for, or say why not."""
        opened = self._opened
        if opened is None or sink.is_gone:
            return
        if len(message.get("text") or message.get("bytes") or "") > CLIENT_FRAME_BYTES:
            opened.sender.close(TOO_BIG)
            return
        try:
            await self._spend_frame()
            if self._device is None:
                self._take_request(opened, message)
            else:
                await self._take_edge_frame(self._device, message)
        except FrameRefused as refused:
            self._refuse_frame(opened.sender, refused.code, str(refused))
        except Problem as problem:
            self._refuse_frame(opened.sender, problem.code, problem.detail)
        except RecordsUnavailable:
            opened.sender.close(NO_RECORDS)
        except Exception:  # noqa: BLE001 - logged; what one client sends ends its own socket alone
            _log.exception("frame_failed")
            opened.sender.close(FAULT)

    async def _spend_frame(self) -> None:
        seconds = self._rate.wait_seconds()
        if not seconds:
            self._refused = 0
        elif self._device is None:
            self._refused += 1
            detail = f"at most {FRAMES_PER_SECOND} frames a second"
            raise FrameRefused("too_many_frames", detail)
        while seconds:
            # Nothing more is read of the device meanwhile.
            await asyncio.sleep(seconds)
            seconds = self._rate.wait_seconds()

    def _take_request(self, opened: OpenSocket, message: Message) -> None:
        _, payload = decode_client_frame(message, REQUESTS)
        if isinstance(payload, TypingRequest):
            self._take_typing(opened, payload.session_id)
            return
        failed = AuthFail(reason="this socket is signed in since it was opened")
        opened.sender.send(encode_single("auth.fail", failed, "hub_to_client"))

    def _take_typing(self, opened: OpenSocket, session_id: str) -> None:
        if self._typing_rate.wait_seconds():
            return
        typing = Typing(session_id=session_id, user_id=opened.person_id)
        known = self._hub.connections.live.send_to_audience(
            audience_of(CHAT, session_id),
            encode_single("typing", typing, "hub_to_client"),
            sender=opened.sender,
            person_id=opened.person_id,
        )
        if not known:
            raise FrameRefused("unknown_chat", "no chat of yours has this id")

    async def _take_edge_frame(self, device: EdgeDevice, message: Message) -> None:
        type_, payload = decode_client_frame(message, _FROM_EDGE)
        for handle in self._hub.connections.on_edge_frame:
            await handle(device, type_, payload)

    def _refuse_frame(self, sender: FrameSender, code: str, text: str) -> None:
        error = FrameError(code=code, message=text[:_MESSAGE_CHARACTERS])
        sender.send(encode_single("error", error, "hub_to_client"))
        if self._refused > FRAMES_AT_ONCE:
            sender.close(FLOOD)


_MESSAGE_CHARACTERS: Final = 500
