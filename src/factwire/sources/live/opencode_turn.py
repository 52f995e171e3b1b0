"""One turn of OpenCode: its server is started, the session taken up, and followed until it is idle.

Words that a person says meanwhile are a further message to the session. The server takes them
without saying what becomes of them, so a session that is idle ends the turn only when every message
of ours was seen on it.
"""

import asyncio
from base64 import b64encode
from contextlib import suppress
from typing import Any, Final

import msgspec

from factwire.projection.reading import table, word
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Decision, SteerTaken
from factwire.sources.framing import Item
from factwire.sources.live.agent import Work
from factwire.sources.live.attachments import Given, Words, given_to, words_of
from factwire.sources.live.judging import ruled, show
from factwire.sources.live.opencode_questions import ASKED, SETTLED, Question, question_of
from factwire.sources.live.opencode_server import OpenCodeServer, Refusal, served
from factwire.sources.live.turn import LiveTurn
from factwire.sources.opencode import OpenCode
from factwire.sources.opencode_thread import OpenCodeThread, failure_of

_NOT_FOUND: Final = 404
_HINT: Final = "Look at OpenCode's settings, and at its own log."


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How OpenCode is run: `session` and `prompt` are what its sessions are begun with, and each
    message is sent with.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    own_names: frozenset[str]
    model: str | None
    session: dict[str, Any]
    prompt: dict[str, Any]
    start_seconds: float


class OpenCodeTurn(Work):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: Setup) -> None:
        super().__init__(live)
        self._setup = setup
        self._working: asyncio.Task[None] | None = None
        self._server: OpenCodeServer | None = None
        self._session = ""
        self._sent = 0
        self._seen: set[str] = set()
        self._open: dict[str, Question] = {}
        self._is_saying = False
        self._connected = asyncio.Event()
        self._done = asyncio.Event()

    async def run(self) -> None:
        self._working = asyncio.create_task(self._work())
        try:
            await asyncio.wait({self._working})
            if not (self._working.cancelled() and self.live.is_stopping):
                self._working.result()
        finally:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    async def answer(self, question: str, decision: Decision) -> None:
        asked, server = self._open.pop(question, None), self._server
        if asked is None or server is None:
            raise TurnFailed("decision_not_delivered", "OpenCode has settled this by itself")
        try:
            await server.post(*asked.reply(decision))
        except Refusal as refusal:
            raise TurnFailed("decision_not_delivered", str(refusal)) from refusal

    async def stop(self) -> None:
        """OpenCode's own abort; where no message was sent there is nothing to abort."""
        if self._server is not None and self._sent:
            with suppress(Refusal, TurnFailed):
                # A server that is gone has stopped.
                await self._server.post(f"/session/{self._session}/abort")
        elif self._working is not None:
            self._working.cancel()

    # The session and its messages

    async def _work(self) -> None:
        turn, host, setup = self.live.turn, self.live.host, self._setup
        given = await given_to(turn.prompt, turn.input, host.means.blobs, images=True)
        async with served(
            host,
            setup.argv,
            env=setup.env,
            own_names=setup.own_names,
            start_seconds=setup.start_seconds,
        ) as server:
            listening = asyncio.create_task(self._listen(server))
            try:
                await _first(self._connected, listening)
                await self._begin(server)
                await self._send(server, given)
                self._server = server
                await self._follow(server, listening)
            except Refusal as refusal:
                raise TurnFailed("provider_error", str(refusal), _HINT) from refusal
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def _begin(self, server: OpenCodeServer) -> None:
        """Take up the session of the turn before, or begin one."""
        known = self.live.known_session
        if known is not None and await self._is_there(server, known):
            self._session = known
        else:
            info = table(await server.post("/session", self._setup.session)) or {}
            self._session = word(info, "id") or ""
            self.live.tell.session(self._session)
            self.live.pass_on()
        self._thread.root = self._session

    async def _is_there(self, server: OpenCodeServer, known: str) -> bool:
        try:
            await server.get(f"/session/{known}")
        except Refusal as refusal:
            if refusal.status != _NOT_FOUND:
                raise
            message = "the conversation before is lost to OpenCode, another begins"
            said = {"code": "session_not_continued", "message": f"{message}: {refusal.reason}"}
            self.live.tell.fact("runtime.warning", said)
            return False
        return True

    async def _send(self, server: OpenCodeServer, given: list[Given]) -> None:
        chosen = self.live.turn.options.get("model")
        model = chosen if isinstance(chosen, str) and chosen else self._setup.model
        body = {**self._setup.prompt, "parts": [_part(each) for each in given]}
        if model:
            provider, _, name = model.partition("/")
            body["model"] = {"providerID": provider, "modelID": name}
        await server.post(f"/session/{self._session}/prompt_async", body)
        self._sent += 1

    async def _follow(self, server: OpenCodeServer, listening: "asyncio.Task[None]") -> None:
        steering = asyncio.create_task(self._steer(server))
        try:
            await _first(self._done, listening)
        finally:
            steering.cancel()
            await asyncio.gather(steering, return_exceptions=True)

    # What people say meanwhile

    async def _steer(self, server: OpenCodeServer) -> None:
        host = self.live.host
        while True:
            await host.steered()
            if self._done.is_set():
                # What is not taken becomes the next turn.
                return
            self._is_saying = True
            try:
                for said in await host.take_steers():
                    await self._say(server, said)
            finally:
                self._is_saying = False
                await self._look_for_end(server)

    async def _say(self, server: OpenCodeServer, said: SteerTaken) -> None:
        blobs = self.live.host.means.blobs
        try:
            await self._send(server, await given_to(said.text, said.input, blobs, images=True))
        except (Refusal, TurnFailed) as failed:
            code = failed.code if isinstance(failed, TurnFailed) else "provider_error"
            remark = {"code": code, "message": f"not said to OpenCode: {failed}"}
            self.live.tell.fact("runtime.warning", remark)
            self.live.pass_on()

    async def _look_for_end(self, server: OpenCodeServer) -> None:
        """Whether an idle session is the end; if something was said late, it goes on."""
        tell = self.live.tell
        if tell.terminal is None or self._is_saying:
            return
        is_waiting = len(self._seen) < self._sent
        if not self.live.is_stopping and (is_waiting or await self._is_busy(server)):
            tell.begin()
        else:
            self._done.set()

    async def _is_busy(self, server: OpenCodeServer) -> bool:
        """A session that nothing was said to meanwhile is not asked."""
        if self._sent == 1:
            return False
        statuses = table(await server.get("/session/status")) or {}
        status = table(statuses.get(self._session)) or {}
        return word(status, "type") not in (None, "idle")

    # What OpenCode says

    async def _listen(self, server: OpenCodeServer) -> None:
        async for item in server.events():
            self._connected.set()
            await self._hear(server, item)

    async def _hear(self, server: OpenCodeServer, item: Item) -> None:
        kind = (word(item, "type") or "") if isinstance(item, dict) else ""
        properties = (table(item.get("properties")) or {}) if isinstance(item, dict) else {}
        if kind in ASKED and await self._is_ruled(server, kind, properties):
            return
        self._note(kind, properties)
        await self.live.hear(item)
        await self._look_for_end(server)

    def _note(self, kind: str, properties: dict[str, Any]) -> None:
        info = table(properties.get("info")) or {}
        if kind in SETTLED:
            self._open.pop(word(properties, "requestID") or "", None)
        elif kind == "message.updated" and word(info, "role") == "user":
            if word(info, "sessionID") == self._session:
                self._seen.add(word(info, "id") or "")
        elif kind == "session.error" and not self._seen and self._is_ours(properties):
            # No message, no turn: the session will not be idle after it, because it never worked.
            category, message = failure_of(table(properties.get("error")) or {})
            raise TurnFailed(category, message, _HINT)

    def _is_ours(self, properties: dict[str, Any]) -> bool:
        return word(properties, "sessionID") == self._session

    async def _is_ruled(self, server: OpenCodeServer, kind: str, properties: Any) -> bool:
        """Whether a rule answers a question; if not, it is open until somebody does."""
        live = self.live
        workspace = str(live.host.workspace.resolve())
        question = question_of(kind, properties, live.tell, workspace)
        request, speaker = question.request(), self._thread.speaker(question.session)
        answer = None
        if request is not None:
            answer = ruled(live, request, call_id=question.call_id, subagent_id=speaker)
        if answer is None:
            self._open[question.name] = question
            if request is not None:
                show(live, question.name, request)
            return False
        if question.call_id is not None:
            self._thread.calls[question.name] = question.call_id
        await server.post(*question.decided(allowed=answer))
        return True

    @property
    def _thread(self) -> OpenCodeThread:
        converter = self.live.converter
        assert isinstance(converter, OpenCode), "the source is OpenCode's"  # noqa: S101
        return converter.thread


async def _first(done: asyncio.Event, listening: "asyncio.Task[None]") -> None:
    """Wait for something that the events bring about; what ends them before is raised."""
    waiting = asyncio.create_task(done.wait())
    try:
        await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if not done.is_set():
        listening.result()


def _part(each: Given) -> dict[str, Any]:
    if isinstance(each, Words):
        return {"type": "text", "text": words_of(each)}
    url = f"data:{each.media_type};base64,{b64encode(each.data).decode()}"
    return {"type": "file", "mime": each.media_type, "url": url}
