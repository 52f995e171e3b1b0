"""One turn of an agent of the Agent Client Protocol: a session, a prompt, and its answer.

The session of the turn before is taken up again, by `session/resume` where the agent knows it, or
else by `session/load`, whose history the thread has already and which is therefore not told.
"""

import asyncio
from base64 import b64encode
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.runtime.provider import Decision
from factwire.runtime.toolbox.outcomes import ToolRefused
from factwire.sources.acp import Acp
from factwire.sources.framing import Item
from factwire.sources.live.acp_files import READ, WRITE, AcpFiles
from factwire.sources.live.acp_questions import (
    CANCELLED,
    ELICITATION,
    PERMISSION,
    Params,
    Question,
    question_of,
)
from factwire.sources.live.agent import Work
from factwire.sources.live.attachments import Given, Words, given_to, words_of
from factwire.sources.live.json_rpc import JsonRpc, Refused
from factwire.sources.live.judging import ruled, show
from factwire.sources.live.pipe import JsonPipe, opened_pipe
from factwire.sources.live.turn import LiveTurn

VERSION: Final = 1

_CLIENT: Final[Params] = {
    "protocolVersion": VERSION,
    "clientCapabilities": {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": False,
        "elicitation": {"form": {}},
    },
    "clientInfo": {"name": "factwire", "title": "Factwire", "version": "1"},
}
_HEAD: Final = {"jsonrpc": "2.0"}
_SIGN_IN: Final = -32000
_NOT_FOUND: Final = -32002
_FAILED: Final = -32603
_HINT: Final = "Look at the agent's own settings."


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is run, and what is chosen of what it offers."""

    argv: tuple[str, ...]
    title: str
    own_names: frozenset[str]
    mode: str | None
    model: str | None
    config: dict[str, str]
    sign_in: str | None
    start_seconds: float


class AcpTurn(Work):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: Setup) -> None:
        super().__init__(live)
        self._setup = setup
        self._files = AcpFiles(live)
        self._pipe: JsonPipe | None = None
        self._rpc: JsonRpc | None = None
        self._session = ""
        self._is_loading = False
        self._open: dict[str, Question] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        host, setup = self.live.host, self._setup
        names = setup.own_names
        async with opened_pipe(host, setup.argv, env={}, own_env_names=names) as pipe:
            self._pipe = pipe
            rpc = self._rpc = JsonRpc(pipe, self.live, setup.title, _HEAD)
            async with rpc.listening(self._hear):
                try:
                    await self._converse(rpc)
                finally:
                    await self._leave()

    async def answer(self, question: str, decision: Decision) -> None:
        asked, rpc = self._open.pop(question, None), self._rpc
        if asked is None or rpc is None:
            raise TurnFailed("decision_not_delivered", "the agent does not wait for it any more")
        result = asked.result(decision)
        if decision.allowed and asked.method == PERMISSION and result != CANCELLED:
            self._files.allowed.update(asked.paths)
        await rpc.answer(asked.number, result)
        if decision.allowed and result == CANCELLED:
            raise TurnFailed("decision_not_delivered", "the agent offers no way to say yes")

    async def stop(self) -> None:
        """Questions are answered as cancelled, as the protocol wants it, then the prompt is."""
        if self._rpc is None or not self._session:
            if self._pipe is not None:
                await self._pipe.stop()
            return
        with suppress(InputClosed):
            for question in [self._open.pop(key) for key in list(self._open)]:
                is_input = question.method == ELICITATION
                result = {"action": "cancel"} if is_input else CANCELLED
                await self._rpc.answer(question.number, result)
            await self._rpc.notify("session/cancel", {"sessionId": self._session})

    # The session and its prompt

    async def _converse(self, rpc: JsonRpc) -> None:
        try:
            async with asyncio.timeout(self._setup.start_seconds):
                able = await self._greet(rpc)
                prompt = await self._prompt(able)
                self._session = await self._begin(rpc, able)
        except TimeoutError as error:
            seconds = self._setup.start_seconds
            message = f"{self._setup.title} was not ready for the turn in {seconds:g} s"
            raise TurnFailed("agent_silent", message, _HINT) from error
        except Refused as refused:
            raise self._told(refused) from refused
        if self.live.is_stopping:
            return
        with suppress(Refused):
            # What the error means, the converter has told.
            await rpc.call("session/prompt", {"sessionId": self._session, "prompt": prompt})

    async def _greet(self, rpc: JsonRpc) -> Params:
        """What the agent is able to do; raises `TurnFailed` for another version."""
        result = await rpc.call("initialize", _CLIENT)
        if result.get("protocolVersion") != VERSION:
            spoken = result.get("protocolVersion")
            message = f"expected version {VERSION} of the protocol, the agent speaks {spoken!r}"
            raise TurnFailed("unsupported_version", message, "Install a version that speaks it.")
        if self._setup.sign_in is not None:
            await rpc.call("authenticate", {"methodId": self._setup.sign_in})
        return table(result.get("agentCapabilities")) or {}

    async def _begin(self, rpc: JsonRpc, able: Params) -> str:
        """The session of the turn before, or a new one."""
        place: Params = {"cwd": str(self.live.host.workspace), "mcpServers": []}
        known = self.live.known_session
        if known is not None and (offered := await self._resumed(rpc, able, known, place)):
            await self._choose(rpc, known, offered)
            return known
        offered = await rpc.call("session/new", place)
        session = word(offered, "sessionId") or ""
        self.live.tell.session(session)
        self.live.pass_on()
        await self._choose(rpc, session, offered)
        return session

    async def _resumed(
        self, rpc: JsonRpc, able: Params, known: str, place: Params
    ) -> Params | None:
        """What a session offers that goes on; None where it cannot."""
        resumes = (table(able.get("sessionCapabilities")) or {}).get("resume") is not None
        if not resumes and able.get("loadSession") is not True:
            self._warn("the agent cannot take up a session again")
            return None
        self._is_loading = True
        try:
            method = "session/resume" if resumes else "session/load"
            offered = await rpc.call(method, {"sessionId": known, **place}, told=False)
        except Refused as refused:
            self._warn(refused.reason)
            return None
        finally:
            self._is_loading = False
        if isinstance(self.live.converter, Acp):
            self.live.converter.thread.goes_on(known)
        return {"sessionId": known, **offered}

    async def _choose(self, rpc: JsonRpc, session: str, offered: Params) -> None:
        """Set what was chosen of what the session offers."""
        given, setup = self.live.turn.options, self._setup
        mode, model = given.get("mode", setup.mode), given.get("model", setup.model)
        chosen = dict(setup.config)
        rows = [row for row in map(table, listed(offered.get("configOptions")) or ()) if row]
        of_model = [word(row, "id") for row in rows if word(row, "category") == "model"]
        if model is not None and of_model:
            chosen[of_model[0] or "model"] = str(model)
        elif model is not None:
            await rpc.call("session/set_model", {"sessionId": session, "modelId": model})
        if mode is not None:
            await rpc.call("session/set_mode", {"sessionId": session, "modeId": mode})
        for name, value in chosen.items():
            wanted = {"sessionId": session, "configId": name, "value": value}
            await rpc.call("session/set_config_option", wanted)

    async def _prompt(self, able: Params) -> list[Params]:
        takes = table(able.get("promptCapabilities")) or {}
        turn, blobs = self.live.turn, self.live.host.means.blobs
        images = takes.get("image") is True
        given = await given_to(turn.prompt, turn.input, blobs, images=images)
        embeds = takes.get("embeddedContext") is True
        return [_block(each, embeds=embeds) for each in given]

    def _warn(self, why: str) -> None:
        message = f"the conversation before is lost to the agent, another begins: {why}"
        said = {"code": "session_not_continued", "message": message}
        self.live.tell.fact("runtime.warning", said)
        self.live.pass_on()

    def _told(self, refused: Refused) -> TurnFailed:
        if refused.number == _SIGN_IN:
            hint = "Sign in with the agent's own program, or set the option sign_in."
            return TurnFailed("unauthorized", str(refused), hint)
        return TurnFailed("provider_error", str(refused), _HINT)

    # What the agent says and asks

    async def _hear(self, item: Item) -> None:
        method = word(item, "method") if isinstance(item, dict) else None
        if isinstance(item, dict) and method is not None and item.get("id") is not None:
            await self._asked(item, method)
        elif not (self._is_loading and method == "session/update"):
            await self.live.hear(item)

    async def _asked(self, item: Params, method: str) -> None:
        assert self._rpc is not None, "it is listened to"  # noqa: S101 - narrows the type
        if method in (PERMISSION, ELICITATION):
            await self._question(self._rpc, item)
            return
        await self.live.hear(item)
        if method in (READ, WRITE):
            self._serve(self._file(self._rpc, item, method))
        else:
            await self._rpc.refuse(item.get("id"), f"{method} is not offered")

    async def _question(self, rpc: JsonRpc, item: Params) -> None:
        live = self.live
        question = question_of(item, live.tell, str(live.host.workspace.resolve()))
        request = question.request()
        answer = None if request is None else ruled(live, request, call_id=question.call_id)
        if answer is None:
            key = f"request:{question.number}"
            if request is not None and question.is_whole:
                show(live, key, request)
            self._open[key] = question
            await live.hear(item)
            return
        if answer:
            self._files.allowed.update(question.paths)
        elif isinstance(live.converter, Acp):
            live.converter.thread.denied.add(question.call_id or "call")
        await rpc.answer(question.number, question.decided(allowed=answer), told=False)

    async def _file(self, rpc: JsonRpc, item: Params, method: str) -> None:
        number, params = item.get("id"), table(item.get("params")) or {}
        with suppress(InputClosed):
            try:
                await rpc.answer(number, await self._files.serve(method, params))
            except ToolRefused as refusal:
                code = _NOT_FOUND if refusal.category == "not_found" else _FAILED
                await rpc.refuse(number, str(refusal), code)

    def _serve(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside what the agent says: a person may have to be asked first."""
        task = asyncio.create_task(work)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _leave(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


def _block(each: Given, *, embeds: bool) -> Params:
    if not isinstance(each, Words):
        data = b64encode(each.data).decode()
        return {"type": "image", "data": data, "mimeType": each.media_type}
    if each.name is None or not embeds:
        return {"type": "text", "text": words_of(each)}
    resource = {"uri": f"attachment:{each.name}", "mimeType": each.media_type, "text": each.text}
    return {"type": "resource", "resource": resource}
