"""Faces: whether a request is for a stream, for the REST interface or for the workbench, and who
may not have the first two.

A thread that was deleted is gone from both. Every answer to a read says the cursor that the lists
are true as of.
"""

from typing import Final
from urllib.parse import unquote

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.security import Access
from factwire.edge.security.guard import Application, Message, Receive, Scope, Send, refuse
from factwire.edge.streams import Streams
from factwire.edge.streams.app import PROJECTION
from factwire.edge.workbench import Workbench

AS_OF: Final = b"x-as-of"


class Faces:
    """An ASGI application of three."""

    def __init__(
        self,
        machine: Machine,
        streams: Streams,
        access: Access,
        rest: Application,
        workbench: Workbench,
    ) -> None:
        self._machine = machine
        self._streams = streams
        self._floods = access.floods
        self._rest = rest
        self._workbench = workbench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._rest(scope, receive, send)
        elif self._streams.owns(scope):
            await self._stream(scope, receive, send)
        elif scope["type"] == "websocket":
            problem = Problem(404, "not_found", "no stream is at this address")
            await refuse(scope, receive, send, problem, scope["state"]["trace_id"])
        elif self._workbench.owns(scope):
            await self._workbench(scope, receive, send)
        else:
            await self._rest(scope, receive, self._dated(scope, send))

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._ensure_there(scope)
            self._floods.enter_stream()
        except Problem as problem:
            await refuse(scope, receive, send, problem, scope["state"]["trace_id"])
            return
        try:
            await self._streams(scope, receive, send)
        finally:
            self._floods.leave_stream()

    def _ensure_there(self, scope: Scope) -> None:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        thread = PROJECTION.fullmatch(raw.decode("ascii", "replace"))
        if thread is not None and unquote(thread[1]) in self._machine.records.deleted:
            raise Problem(404, "unknown_thread", "no thread has this id")

    def _dated(self, scope: Scope, send: Send) -> Send:
        if scope["method"] != "GET":
            return send

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                cursor = str(self._machine.cursor).encode()
                message = {**message, "headers": [*message["headers"], (AS_OF, cursor)]}
            await send(message)

        return sent
