"""One turn of Codex: the server is started, its thread taken up, and followed to the turn's end.

Words that a person says meanwhile go into the turn; where Codex has just ended it, they begin the
next one in the same server, because they were told as delivered. Agents that Codex has set to work
are waited for.
"""

import asyncio
from base64 import b64encode
from contextlib import suppress
from typing import Any, Final

import msgspec

from factwire.projection.reading import table, word
from factwire.runtime.errors import TurnFailed
from factwire.runtime.policy import Request
from factwire.runtime.provider import Decision, SteerTaken
from factwire.sources.framing import Item
from factwire.sources.live.agent import Work
from factwire.sources.live.attachments import Given, Picture, Words, given_to, words_of
from factwire.sources.live.codex_questions import Question, question_of
from factwire.sources.live.json_rpc import JsonRpc, Refused
from factwire.sources.live.judging import ruled, show
from factwire.sources.live.pipe import JsonPipe, opened_pipe
from factwire.sources.live.turn import LiveTurn

_CLIENT: Final = {"name": "factwire", "title": "Factwire", "version": "1"}
_HINT: Final = "Look at Codex's settings, or run `codex doctor`."


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How Codex is run: `thread` and `turn` are what its thread and turns are begun with."""

    argv: tuple[str, ...]
    own_names: frozenset[str]
    thread: dict[str, Any]
    turn: dict[str, Any]
    start_seconds: float


class CodexTurn(Work):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: Setup) -> None:
        super().__init__(live)
        self._setup = setup
        self._pipe: JsonPipe | None = None
        self._rpc: JsonRpc | None = None
        self._thread = self._turn = ""
        self._open: dict[str, Question] = {}
        self._is_saying = False
        self._done = asyncio.Event()

    async def run(self) -> None:
        turn, host = self.live.turn, self.live.host
        given = await given_to(turn.prompt, turn.input, host.means.blobs, images=True)
        names = self._setup.own_names
        async with opened_pipe(host, self._setup.argv, env={}, own_env_names=names) as pipe:
            self._pipe = pipe
            async with JsonRpc(pipe, self.live, "Codex").listening(self._hear) as rpc:
                self._rpc = rpc
                try:
                    async with asyncio.timeout(self._setup.start_seconds):
                        await self._begin(rpc)
                        await self._start(rpc, given)
                except TimeoutError as error:
                    raise _silent(self._setup.start_seconds) from error
                except Refused as refused:
                    raise TurnFailed("provider_error", str(refused), _HINT) from refused
                await self._follow(rpc)

    async def answer(self, question: str, decision: Decision) -> None:
        asked, rpc = self._open.pop(question, None), self._rpc
        if asked is None or rpc is None:
            raise TurnFailed("decision_not_delivered", "Codex has settled this by itself")
        await rpc.answer(asked.number, asked.result(decision))
        if not decision.allowed and decision.decided_by is not None and decision.reason:
            await self._explain(rpc, decision.reason)

    async def stop(self) -> None:
        """Codex's own interrupt; a server that has no turn to interrupt is ended."""
        if self._rpc is None or not self._turn or self.live.tell.terminal is not None:
            if self._pipe is not None:
                await self._pipe.stop()
            return
        params = {"threadId": self._thread, "turnId": self._turn}
        with suppress(Refused):
            await self._rpc.call("turn/interrupt", params)

    # The thread and its turn

    async def _begin(self, rpc: JsonRpc) -> None:
        """Take up the thread of the turn before, or begin one."""
        capabilities = {"experimentalApi": True}
        await rpc.call("initialize", {"clientInfo": _CLIENT, "capabilities": capabilities})
        await rpc.notify("initialized")
        known = self.live.known_session
        if known is not None and await self._resumed(rpc, known):
            return
        result = await rpc.call("thread/start", self._wanted())
        self._thread = word(table(result.get("thread")) or {}, "id") or ""
        self.live.tell.session(self._thread)
        self.live.pass_on()

    async def _resumed(self, rpc: JsonRpc, known: str) -> bool:
        wanted = {**self._wanted(), "threadId": known, "excludeTurns": True}
        try:
            await rpc.call("thread/resume", wanted)
        except Refused as refused:
            message = f"the conversation before is lost to Codex, another begins: {refused.reason}"
            said = {"code": "session_not_continued", "message": message}
            self.live.tell.fact("runtime.warning", said)
            return False
        self._thread = known
        return True

    def _wanted(self) -> dict[str, Any]:
        model = self.live.turn.options.get("model")
        own = {"model": model} if isinstance(model, str) and model else {}
        return {"cwd": str(self.live.host.workspace), **self._setup.thread, **own}

    async def _start(self, rpc: JsonRpc, given: list[Given]) -> None:
        wanted = {"threadId": self._thread, "input": _input(given), **self._setup.turn}
        result = await rpc.call("turn/start", wanted)
        self._turn = word(table(result.get("turn")) or {}, "id") or self._turn

    async def _follow(self, rpc: JsonRpc) -> None:
        """Up to the end of the turn, and of whoever works beside it."""
        steering = asyncio.create_task(self._steer(rpc))
        try:
            await rpc.until(self._done)
        finally:
            steering.cancel()
            await asyncio.gather(steering, return_exceptions=True)

    def _look_for_end(self) -> None:
        live = self.live
        ended = live.tell.terminal is not None and not self._is_saying
        if ended and (live.is_stopping or not live.tell.is_alone):
            self._done.set()

    # What people say meanwhile

    async def _steer(self, rpc: JsonRpc) -> None:
        host = self.live.host
        while True:
            await host.steered()
            if self._done.is_set():
                # What is not taken becomes the next turn.
                return
            self._is_saying = True
            try:
                for said in await host.take_steers():
                    await self._say(rpc, said)
            finally:
                self._is_saying = False
                self._look_for_end()

    async def _say(self, rpc: JsonRpc, said: SteerTaken) -> None:
        blobs = self.live.host.means.blobs
        try:
            given = await given_to(said.text, said.input, blobs, images=True)
        except TurnFailed as failed:
            remark = {"code": failed.code, "message": f"not said to Codex: {failed}"}
            self.live.tell.fact("runtime.warning", remark)
            self.live.pass_on()
            return
        wanted = {"threadId": self._thread, "expectedTurnId": self._turn, "input": _input(given)}
        try:
            await rpc.call("turn/steer", {**wanted, "clientUserMessageId": said.steer_id})
        except Refused:
            self.live.tell.begin()
            await self._start(rpc, given)

    async def _explain(self, rpc: JsonRpc, reason: str) -> None:
        """Why somebody said no, which an answer has no place for."""
        words = [{"type": "text", "text": reason}]
        wanted = {"threadId": self._thread, "expectedTurnId": self._turn, "input": words}
        with suppress(Refused):
            # A turn that is over needs no reason.
            await rpc.call("turn/steer", wanted, told=False)

    # What Codex says

    async def _hear(self, item: Item) -> None:
        method = word(item, "method") if isinstance(item, dict) else None
        if isinstance(item, dict) and method is not None and "id" in item:
            await self._asked(item)
            return
        if isinstance(item, dict) and method is not None:
            self._note(method, table(item.get("params")) or {})
        await self.live.hear(item)
        self._look_for_end()

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "turn/started" and word(params, "threadId") == self._thread:
            self._turn = word(table(params.get("turn")) or {}, "id") or self._turn
        elif method == "serverRequest/resolved":
            key = f"request-{params.get('requestId')}"
            if self._open.pop(key, None) is not None:
                self.live.tell.withdrawn(key, "Codex has settled it by itself")

    async def _asked(self, item: dict[str, Any]) -> None:
        """A question is answered by a rule, or else told; what is no question is refused."""
        live, rpc = self.live, self._rpc
        question = question_of(item, live.tell, str(live.host.workspace.resolve()))
        request, key = question.request(), f"request-{question.number}"
        answer = None if request is None else self._ruled(question, request)
        if rpc is not None and answer is not None:
            await rpc.answer(question.number, question.decided(allowed=answer), told=False)
            return
        if request is not None and question.is_whole:
            show(live, key, request)
        self._open[key] = question
        await live.hear(item)
        if rpc is not None and not question.is_known:
            del self._open[key]
            await rpc.refuse(question.number, f"{question.method} is not offered")

    def _ruled(self, question: Question, request: Request) -> bool | None:
        """What a rule says, if one does."""
        thread = word(question.params, "threadId")
        other = None if thread == self._thread else thread
        return ruled(self.live, request, call_id=question.call_id, subagent_id=other)


def _input(given: list[Given]) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": words_of(each)}
        if isinstance(each, Words)
        else {"type": "image", "url": _url(each)}
        for each in given
    ]


def _url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"


def _silent(seconds: float) -> TurnFailed:
    return TurnFailed("agent_silent", f"Codex was not ready for the turn in {seconds:g} s", _HINT)
