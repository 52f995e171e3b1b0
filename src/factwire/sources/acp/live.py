"""Agents that speak the Agent Client Protocol, run as a program: one session a thread.

A session of an earlier turn is resumed or loaded where the agent can; what a turn asks is
answered by the policy or by a person, and stopping is asked for before it is forced.
"""

import asyncio
from base64 import b64encode
from collections.abc import Coroutine
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at, objects_of, text_at
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.runtime.provider import Decision
from factwire.runtime.toolbox.tool_calls import ToolRefused
from factwire.sources.acp.convert import SOURCE, Acp
from factwire.sources.acp.permission_requests import (
    CANCELLED,
    ELICITATION,
    PERMISSION,
    READ,
    WRITE,
    AcpFiles,
    AcpQuestion,
    Params,
    read_question,
)
from factwire.sources.kit.limits import START_SECONDS
from factwire.sources.kit.live_agent import (
    LiveAgent,
    LiveTurn,
    TurnDriver,
    own_variables,
    read_options,
)
from factwire.sources.kit.policy_check import check_policy, show_tool_request
from factwire.sources.kit.program import AgentProgram, JsonPipe, JsonRpc, RpcRefused, open_pipe
from factwire.sources.kit.stream_framing import Item
from factwire.sources.kit.turn_inputs import PromptPart, TextPrompt, prompt_text, read_prompt

VERSION: Final = 1

_SHOWS_TERMINALS: Final = {"terminal_output": True, "terminal_output_delta": True}
"""Has agents send what commands print in terminals of their own, by a convention of editors."""


def _describe_client(*, offers_files: bool) -> Params:
    return {
        "protocolVersion": VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": offers_files, "writeTextFile": offers_files},
            "terminal": False,
            "elicitation": {"form": {}},
            "_meta": _SHOWS_TERMINALS,
        },
        "clientInfo": {"name": "factwire", "title": "Factwire", "version": "1"},
    }


_HEAD: Final = {"jsonrpc": "2.0"}
_SIGN_IN: Final = -32000
_NOT_FOUND: Final = -32002
_FAILED: Final = -32603
_HINT: Final = "Check the agent's own settings."


class AcpSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is run, and what is chosen of what it offers."""

    argv: tuple[str, ...]
    title: str
    own_names: frozenset[str]
    mode: str | None
    model: str | None
    config: dict[str, str]
    sign_in: str | None
    start_seconds: float
    offers_files: bool


class AcpDriver(TurnDriver):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: AcpSetup) -> None:
        super().__init__(live)
        self._setup = setup
        self._files = AcpFiles(live)
        self._pipe: JsonPipe | None = None
        self._rpc: JsonRpc | None = None
        self._session = ""
        self._is_loading = False
        self._open: dict[str, AcpQuestion] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        host, setup = self.live.host, self._setup
        names = setup.own_names
        async with open_pipe(host, setup.argv, env={}, own_env_names=names) as pipe:
            self._pipe = pipe
            rpc = self._rpc = JsonRpc(pipe, self.live, setup.title, _HEAD)
            async with rpc.listen(self._hear):
                try:
                    await self._run_session(rpc)
                finally:
                    await self._stop_waiting()

    async def answer(self, question: str, decision: Decision) -> None:
        open_question, rpc = self._open.pop(question, None), self._rpc
        if open_question is None or rpc is None:
            raise TurnFailed("decision_not_delivered", "the agent is no longer waiting for it")
        result = open_question.to_result(decision)
        if decision.allowed and open_question.method == PERMISSION and result != CANCELLED:
            self._files.allow_edits(open_question.edits)
        await rpc.answer(open_question.number, result)
        if decision.allowed and result == CANCELLED:
            raise TurnFailed("decision_not_delivered", "the agent offers no option to approve")

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

    async def _run_session(self, rpc: JsonRpc) -> None:
        try:
            async with asyncio.timeout(self._setup.start_seconds):
                able = await self._initialize(rpc)
                prompt = await self._read_prompt(able)
                self._session = await self._begin_session(rpc, able)
        except TimeoutError as error:
            seconds = self._setup.start_seconds
            message = f"{self._setup.title} was not ready for the turn within {seconds:g} s"
            raise TurnFailed("agent_silent", message, _HINT) from error
        except RpcRefused as refused:
            raise self._to_failure(refused) from refused
        if self.live.is_stopping:
            return
        with suppress(RpcRefused):
            # What the error means, the converter has told.
            await rpc.call("session/prompt", {"sessionId": self._session, "prompt": prompt})

    async def _initialize(self, rpc: JsonRpc) -> Params:
        """What the agent is able to do; raises `TurnFailed` for another version."""
        result = await rpc.call(
            "initialize", _describe_client(offers_files=self._setup.offers_files)
        )
        if result.get("protocolVersion") != VERSION:
            spoken = result.get("protocolVersion")
            message = f"expected version {VERSION} of the protocol, but the agent uses {spoken!r}"
            raise TurnFailed("unsupported_version", message, "Install a version that supports it.")
        if self._setup.sign_in is not None:
            await rpc.call("authenticate", {"methodId": self._setup.sign_in})
        return object_at(result.get("agentCapabilities")) or {}

    async def _begin_session(self, rpc: JsonRpc, able: Params) -> str:
        """The session of the turn before, or a new one."""
        place: Params = {"cwd": str(self.live.host.workspace), "mcpServers": []}
        known = self.live.agent_session
        if known is not None and (offered := await self._resume_session(rpc, able, known, place)):
            await self._choose_model(rpc, known, offered)
            return known
        offered = await rpc.call("session/new", place)
        session = text_at(offered, "sessionId") or ""
        self.live.builder.set_agent_session(session)
        self.live.pass_on()
        await self._choose_model(rpc, session, offered)
        return session

    async def _resume_session(
        self, rpc: JsonRpc, able: Params, known: str, place: Params
    ) -> Params | None:
        """What a session offers that goes on; None where it cannot."""
        resumes = (object_at(able.get("sessionCapabilities")) or {}).get("resume") is not None
        if not resumes and able.get("loadSession") is not True:
            self._warn("the agent cannot resume sessions")
            return None
        self._is_loading = True
        try:
            method = "session/resume" if resumes else "session/load"
            offered = await rpc.call(method, {"sessionId": known, **place}, recorded=False)
        except RpcRefused as refused:
            self._warn(refused.reason)
            return None
        finally:
            self._is_loading = False
        if isinstance(self.live.converter, Acp):
            thread = self.live.converter.thread
            thread.resume_session(known, self.live.agent_session_usage)
            thread.note_model(offered)
        return {"sessionId": known, **offered}

    async def _choose_model(self, rpc: JsonRpc, session: str, offered: Params) -> None:
        """Set what was chosen of what the session offers."""
        options, setup = self.live.turn.options, self._setup
        mode, model = options.get("mode", setup.mode), options.get("model", setup.model)
        chosen = dict(setup.config)
        rows = objects_of(offered.get("configOptions"))
        of_model = [text_at(row, "id") for row in rows if text_at(row, "category") == "model"]
        if model is not None and of_model:
            chosen[of_model[0] or "model"] = str(model)
        elif model is not None:
            await rpc.call("session/set_model", {"sessionId": session, "modelId": model})
        if mode is not None:
            await rpc.call("session/set_mode", {"sessionId": session, "modeId": mode})
        for name, value in chosen.items():
            wanted = {"sessionId": session, "configId": name, "value": value}
            await rpc.call("session/set_config_option", wanted)

    async def _read_prompt(self, able: Params) -> list[Params]:
        takes = object_at(able.get("promptCapabilities")) or {}
        turn, blobs = self.live.turn, self.live.host.resources.blobs
        images = takes.get("image") is True
        prompt = await read_prompt(turn.prompt, turn.input, blobs, images=images)
        embeds = takes.get("embeddedContext") is True
        return [_to_block(each, embeds=embeds) for each in prompt]

    def _warn(self, why: str) -> None:
        message = f"the agent lost the previous conversation, so a new one begins: {why}"
        payload = {"code": "session_not_continued", "message": message}
        self.live.builder.add_fact("runtime.warning", payload)
        self.live.pass_on()

    def _to_failure(self, refused: RpcRefused) -> TurnFailed:
        if refused.number == _SIGN_IN:
            hint = "Sign in with the agent's own program, or set the option sign_in."
            return TurnFailed("unauthorized", str(refused), hint)
        return TurnFailed("provider_error", str(refused), _HINT)

    # What the agent says and asks

    async def _hear(self, item: Item) -> None:
        method = text_at(item, "method") if isinstance(item, dict) else None
        if isinstance(item, dict) and method is not None and item.get("id") is not None:
            await self._take_request(item, method)
        elif not (self._is_loading and method == "session/update"):
            await self.live.hear(item)

    async def _take_request(self, item: Params, method: str) -> None:
        assert self._rpc is not None, "the connection is open"  # noqa: S101 - narrows the type
        if method in (PERMISSION, ELICITATION):
            await self._take_question(self._rpc, item)
            return
        await self.live.hear(item)
        if method in (READ, WRITE) and self._setup.offers_files:
            self._serve(self._take_file_request(self._rpc, item, method))
        else:
            await self._rpc.refuse(item.get("id"), f"{method} is not supported")

    async def _take_question(self, rpc: JsonRpc, item: Params) -> None:
        live = self.live
        question = read_question(item, live.builder, str(live.host.workspace.resolve()))
        request = question.to_request()
        answer = None if request is None else check_policy(live, request, call_id=question.call_id)
        if answer is None:
            key = f"request:{question.number}"
            if request is not None and question.is_whole:
                show_tool_request(live, key, request)
            self._open[key] = question
            await live.hear(item)
            return
        if answer:
            self._files.allow_edits(question.edits)
        elif isinstance(live.converter, Acp):
            live.converter.thread.denied.add(question.call_id or "call")
        await rpc.answer(question.number, question.policy_result(allowed=answer), recorded=False)

    async def _take_file_request(self, rpc: JsonRpc, item: Params, method: str) -> None:
        number, params = item.get("id"), object_at(item.get("params")) or {}
        with suppress(InputClosed):
            try:
                await rpc.answer(number, await self._files.serve(method, params))
            except ToolRefused as refusal:
                if refusal.category == "not_found":
                    # The words by which agents tell a new file from one that they may not read.
                    path = text_at(params, "path")
                    message, more = f"Resource not found: {path}", {"data": {"uri": path}}
                    await rpc.refuse(number, message, _NOT_FOUND, **more)
                else:
                    await rpc.refuse(number, str(refusal), _FAILED)

    def _serve(self, work: Coroutine[Any, Any, None]) -> None:
        """Beside what the agent says: a person may have to be asked first."""
        task = asyncio.create_task(work)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _stop_waiting(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


def _to_block(each: PromptPart, *, embeds: bool) -> Params:
    if not isinstance(each, TextPrompt):
        data = b64encode(each.data).decode()
        return {"type": "image", "data": data, "mimeType": each.media_type}
    if each.name is None or not embeds:
        return {"type": "text", "text": prompt_text(each)}
    resource = {"uri": f"attachment:{each.name}", "mimeType": each.media_type, "text": each.text}
    return {"type": "resource", "resource": resource}


OWN_NAMES: Final = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables that say where a program's own files are."""

MANIFEST: Final = CapabilityManifest(
    agent_id="acp",
    title="Agent Client Protocol",
    version="1",
    inputs=("text", "image", "document", "workspace"),
    streaming=Streaming(text="yes", reasoning="yes", tool_args="no", tool_output="yes"),
    approvals="inline",
    action_types=("tool_approval", "structured_input"),
    controls=("send", "queue", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    artifacts="yes",
    evidence="no",
    sandbox="no",
    structured_output="no",
)


class AcpOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command` is the program and its arguments. `mode`, `model` and `config` are chosen of what
    the agent offers; `sign_in` is the id of the way in which it is to authenticate; `env` names
    further variables of ours that it gets. Without `offers_files` it reads and writes files itself,
    and not through Factwire.
    """

    command: tuple[str, ...] = ()
    title: str | None = None
    mode: str | None = None
    model: str | None = None
    config: dict[str, str] = {}
    sign_in: str | None = None
    env: tuple[str, ...] = ()
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = START_SECONDS
    offers_files: bool = True
    raw: bool = False


class AcpAgent(LiveAgent):
    """Runs one program of the protocol; each turn is a process of it."""

    def __init__(self, setup: AcpSetup, *, keep_raw: bool = False) -> None:
        manifest = msgspec.structs.replace(MANIFEST, title=setup.title)
        super().__init__(SOURCE, manifest, keep_raw=keep_raw)
        self._setup = setup

    def make_driver(self, live: LiveTurn) -> TurnDriver:
        return AcpDriver(live, self._setup)


def agent(settings: AgentSettings) -> AcpAgent:
    """The agent that a configuration names; raises `AgentError`."""
    options = read_options(settings, AcpOptions)
    if not options.command:
        raise InvalidAgent('acp needs the option command, such as ["opencode", "acp"]')
    name, *rest = options.command
    program = AgentProgram(
        title=name, name=name, install=f"see the installation instructions of {name}"
    )
    setup = AcpSetup(
        argv=(program.require_path(), *rest),
        title=options.title or f"{name}, over the Agent Client Protocol",
        own_names=own_variables(settings, *OWN_NAMES, *options.env),
        mode=options.mode,
        model=settings.model or options.model,
        config=options.config,
        sign_in=options.sign_in,
        start_seconds=options.start_seconds,
        offers_files=options.offers_files,
    )
    return AcpAgent(setup, keep_raw=options.raw)
