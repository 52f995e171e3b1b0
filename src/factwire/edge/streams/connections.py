"""Connections: how a sink is made of a request, and how its reader is listened to.

A reader of a stream has nothing to say. On a socket any message of its ends the stream; on an event
stream only its leaving counts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from factwire.edge.limits import PING_SECONDS
from factwire.edge.streams import http_protocol, socket_protocol
from factwire.edge.streams.asgi import Receive, Scope, Send, extension
from factwire.edge.streams.closing import UNASKED, Closing
from factwire.edge.streams.frames import COMMENT, Messages
from factwire.edge.streams.pumped_sink import PumpedSink
from factwire.edge.streams.sink import Sink

Enter = Callable[[Sink], Awaitable[None]]
"""Brings a reader to a live stream, or closes its sink."""

_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


async def serve_socket(scope: Scope, receive: Receive, send: Send, enter: Enter) -> None:
    """Accept a WebSocket and stay until its reader has gone."""
    await send({"type": "websocket.accept"})
    writer: Sink | None = extension(scope, socket_protocol.EXTENSION)
    if writer is None:
        await _serve_messages(receive, send, enter)
        return
    try:
        await enter(writer)
        await _listen(receive, writer)
    finally:
        writer.lost()


async def _serve_messages(receive: Receive, send: Send, enter: Enter) -> None:
    """The same over ordinary messages, for any server."""
    messages = Messages()

    async def deliver(frames: bytes) -> None:
        for message in messages.feed(frames):
            await send({"type": "websocket.send", "text": message.decode()})

    async def finish(closing: Closing) -> None:
        await send({"type": "websocket.close", "code": closing.code, "reason": closing.reason})

    await _pump(PumpedSink(deliver, finish), enter, receive)


async def serve_events(scope: Scope, receive: Receive, send: Send, enter: Enter) -> None:
    """Answer with server-sent events and stay until the reader has gone."""

    async def deliver(frames: bytes) -> None:
        await send({"type": "http.response.body", "body": frames, "more_body": True})

    async def finish(_: Closing) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def enter_and_beat(sink: Sink) -> None:
        await enter(sink)
        # Only now: a comment must not stand inside of a snapshot that goes out in pieces.
        beats.append(asyncio.create_task(_beat(sink), name="factwire-heartbeat"))

    beats: list[asyncio.Task[None]] = []
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    try:
        took_all = await _pump(PumpedSink(deliver, finish), enter_and_beat, receive)
    finally:
        for task in beats:
            task.cancel()
    cut = extension(scope, http_protocol.EXTENSION)
    if not took_all and cut is not None:
        cut()


async def _pump(sink: PumpedSink, enter: Enter, receive: Receive) -> bool:
    listening = asyncio.create_task(_listen(receive, sink), name="factwire-listen")
    try:
        await enter(sink)
        return await sink.ended()
    finally:
        sink.lost()
        listening.cancel()
        await asyncio.wait((listening,))


async def _listen(receive: Receive, sink: Sink) -> None:
    """Return when the reader has left or said what it must not."""
    while True:
        message = await receive()
        if message["type"] in ("websocket.disconnect", "http.disconnect"):
            sink.lost()
            return
        if message["type"] == "websocket.receive":
            sink.close(UNASKED)


async def _beat(sink: Sink) -> None:
    while not sink.is_gone:
        await asyncio.sleep(PING_SECONDS)
        sink.write(COMMENT)
