"""Codex's app server as a program that the runtime runs: one process a turn, one thread each.

A thread of an earlier turn is resumed. What Codex asks is answered by the policy or by a
person; a person may steer the turn while it runs.
"""

import asyncio
from base64 import b64encode
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at, text_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.policy import PolicyRequest
from factwire.runtime.provider import Decision, DeliveredSteer
from factwire.runtime.structured_output import OUTPUT_SCHEMA, to_strict_schema
from factwire.sources.codex.convert import SOURCE
from factwire.sources.codex.permission_requests import CodexQuestion, read_question
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
from factwire.sources.kit.turn_inputs import (
    ImagePrompt,
    PromptPart,
    TextPrompt,
    prompt_text,
    read_prompt,
)

_CLIENT: Final = {"name": "factwire", "title": "Factwire", "version": "1"}
_HINT: Final = "Check Codex's settings, or run `codex doctor`."


class CodexSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How Codex is run: `thread` and `turn` are what its thread and turns are begun with."""

    argv: tuple[str, ...]
    own_names: frozenset[str]
    thread: dict[str, Any]
    turn: dict[str, Any]
    start_seconds: float


class CodexDriver(TurnDriver):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: CodexSetup) -> None:
        super().__init__(live)
        self._setup = setup
        self._pipe: JsonPipe | None = None
        self._rpc: JsonRpc | None = None
        self._thread = self._turn = ""
        self._open: dict[str, CodexQuestion] = {}
        self._is_saying = False
        self._done = asyncio.Event()

    async def run(self) -> None:
        turn, host = self.live.turn, self.live.host
        prompt = await read_prompt(turn.prompt, turn.input, host.resources.blobs, images=True)
        names = self._setup.own_names
        async with open_pipe(host, self._setup.argv, env={}, own_env_names=names) as pipe:
            self._pipe = pipe
            async with JsonRpc(pipe, self.live, "Codex").listen(self._hear) as rpc:
                self._rpc = rpc
                try:
                    async with asyncio.timeout(self._setup.start_seconds):
                        await self._begin_thread(rpc)
                        await self._start_turn(rpc, prompt)
                except TimeoutError as error:
                    raise _silence_failure(self._setup.start_seconds) from error
                except RpcRefused as refused:
                    raise TurnFailed("provider_error", str(refused), _HINT) from refused
                await self._follow(rpc)

    async def answer(self, question: str, decision: Decision) -> None:
        open_question, rpc = self._open.pop(question, None), self._rpc
        if open_question is None or rpc is None:
            raise TurnFailed("decision_not_delivered", "Codex has already resolved this itself")
        await rpc.answer(open_question.number, open_question.to_result(decision))
        if not decision.allowed and decision.decided_by is not None and decision.reason:
            await self._send_reason(rpc, decision.reason)

    async def stop(self) -> None:
        """Codex's own interrupt; a server that has no turn to interrupt is ended."""
        if self._rpc is None or not self._turn or self.live.builder.terminal is not None:
            if self._pipe is not None:
                await self._pipe.stop()
            return
        params = {"threadId": self._thread, "turnId": self._turn}
        with suppress(RpcRefused):
            await self._rpc.call("turn/interrupt", params)

    # The thread and its turn

    async def _begin_thread(self, rpc: JsonRpc) -> None:
        """Take up the thread of the turn before, or begin one."""
        capabilities = {"experimentalApi": True}
        await rpc.call("initialize", {"clientInfo": _CLIENT, "capabilities": capabilities})
        await rpc.notify("initialized")
        known = self.live.agent_session
        if known is not None and await self._resume_thread(rpc, known):
            return
        result = await rpc.call("thread/start", self._thread_settings())
        self._thread = text_at(object_at(result.get("thread")) or {}, "id") or ""
        self.live.builder.set_agent_session(self._thread)
        self.live.pass_on()

    async def _resume_thread(self, rpc: JsonRpc, known: str) -> bool:
        wanted = {**self._thread_settings(), "threadId": known, "excludeTurns": True}
        try:
            await rpc.call("thread/resume", wanted)
        except RpcRefused as refused:
            message = f"Codex lost the previous conversation, so a new one begins: {refused.reason}"
            payload = {"code": "session_not_continued", "message": message}
            self.live.builder.add_fact("runtime.warning", payload)
            return False
        self._thread = known
        return True

    def _thread_settings(self) -> dict[str, Any]:
        model = text_at(self.live.turn.options, "model")
        own = {} if model is None else {"model": model}
        return {"cwd": str(self.live.host.workspace), **self._setup.thread, **own}

    async def _start_turn(self, rpc: JsonRpc, prompt: list[PromptPart]) -> None:
        schema = object_at(self.live.turn.options.get(OUTPUT_SCHEMA))
        own = {} if schema is None else {OUTPUT_SCHEMA: to_strict_schema(schema)}
        wanted = {"threadId": self._thread, "input": _to_input(prompt), **self._setup.turn, **own}
        result = await rpc.call("turn/start", wanted)
        self._turn = text_at(object_at(result.get("turn")) or {}, "id") or self._turn

    async def _follow(self, rpc: JsonRpc) -> None:
        """Up to the end of the turn, and of whoever works beside it."""
        steering = asyncio.create_task(self._steer(rpc))
        try:
            await rpc.wait_until(self._done)
        finally:
            steering.cancel()
            await asyncio.gather(steering, return_exceptions=True)

    def _look_for_end(self) -> None:
        live = self.live
        ended = live.builder.terminal is not None and not self._is_saying
        if ended and (live.is_stopping or not live.builder.has_background_work):
            self._done.set()

    # What people say meanwhile

    async def _steer(self, rpc: JsonRpc) -> None:
        host = self.live.host
        while True:
            await host.wait_for_steer()
            if self._done.is_set():
                # What is not taken becomes the next turn.
                return
            self._is_saying = True
            try:
                for steer in await host.take_steers():
                    await self._send_prompt(rpc, steer)
            finally:
                self._is_saying = False
                self._look_for_end()

    async def _send_prompt(self, rpc: JsonRpc, steer: DeliveredSteer) -> None:
        blobs = self.live.host.resources.blobs
        try:
            prompt = await read_prompt(steer.text, steer.input, blobs, images=True)
        except TurnFailed as failed:
            remark = {"code": failed.code, "message": f"not delivered to Codex: {failed}"}
            self.live.builder.add_fact("runtime.warning", remark)
            self.live.pass_on()
            return
        wanted = {
            "threadId": self._thread,
            "expectedTurnId": self._turn,
            "input": _to_input(prompt),
        }
        try:
            await rpc.call("turn/steer", {**wanted, "clientUserMessageId": steer.steer_id})
        except RpcRefused:
            self.live.builder.begin_turn()
            await self._start_turn(rpc, prompt)

    async def _send_reason(self, rpc: JsonRpc, reason: str) -> None:
        """Why somebody said no, which an answer has no place for."""
        words = [{"type": "text", "text": reason}]
        wanted = {"threadId": self._thread, "expectedTurnId": self._turn, "input": words}
        with suppress(RpcRefused):
            # A turn that is over needs no reason.
            await rpc.call("turn/steer", wanted, recorded=False)

    # What Codex says

    async def _hear(self, item: Item) -> None:
        method = text_at(item, "method") if isinstance(item, dict) else None
        if isinstance(item, dict) and method is not None and "id" in item:
            await self._take_request(item)
            return
        if isinstance(item, dict) and method is not None:
            self._note_notification(method, object_at(item.get("params")) or {})
        await self.live.hear(item)
        self._look_for_end()

    def _note_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "turn/started" and text_at(params, "threadId") == self._thread:
            self._turn = text_at(object_at(params.get("turn")) or {}, "id") or self._turn
        elif method == "serverRequest/resolved":
            key = f"request-{params.get('requestId')}"
            if self._open.pop(key, None) is not None:
                self.live.builder.cancel_action(key, "Codex has already resolved it itself")

    async def _take_request(self, item: dict[str, Any]) -> None:
        """A question is answered by a rule, or else told; what is no question is refused."""
        live, rpc = self.live, self._rpc
        question = read_question(item, live.builder, str(live.host.workspace.resolve()))
        request, key = question.to_request(), f"request-{question.number}"
        answer = None if request is None else self._check_policy(question, request)
        if rpc is not None and answer is not None:
            await rpc.answer(
                question.number, question.policy_result(allowed=answer), recorded=False
            )
            return
        if request is not None and question.is_whole:
            show_tool_request(live, key, request)
        self._open[key] = question
        await live.hear(item)
        if rpc is not None and not question.is_known:
            del self._open[key]
            await rpc.refuse(question.number, f"{question.method} is not supported")

    def _check_policy(self, question: CodexQuestion, request: PolicyRequest) -> bool | None:
        """What a rule says, if one does."""
        thread = text_at(question.params, "threadId")
        other = None if thread == self._thread else thread
        return check_policy(self.live, request, call_id=question.call_id, subagent_id=other)


def _to_input(prompt: list[PromptPart]) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": prompt_text(each)}
        if isinstance(each, TextPrompt)
        else {"type": "image", "url": _to_data_url(each)}
        for each in prompt
    ]


def _to_data_url(picture: ImagePrompt) -> str:
    return f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"


def _silence_failure(seconds: float) -> TurnFailed:
    return TurnFailed(
        "agent_silent", f"Codex was not ready for the turn within {seconds:g} s", _HINT
    )


OWN_NAMES: Final = (
    "CODEX_API_KEY",
    "CODEX_CA_CERTIFICATE",
    "CODEX_HOME",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
)
"""Variables that are Codex's own."""

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
Approvals = Literal["untrusted", "on-request", "never"]


def find_packaged() -> Path | None:
    """The program inside PyPI's openai-codex-cli-bin."""
    try:
        found: Path = import_module("codex_cli_bin").bundled_codex_path()
    except (ImportError, FileNotFoundError):
        return None
    return found


PROGRAM: Final = AgentProgram(
    title="Codex",
    name="codex",
    install="pip install 'factwire[codex]', or npm install -g @openai/codex",
    packaged=find_packaged,
)

MANIFEST: Final = CapabilityManifest(
    agent_id="codex",
    title="Codex",
    version="1",
    inputs=("text", "image", "document", "workspace"),
    streaming=Streaming(text="yes", reasoning="yes", tool_args="no", tool_output="yes"),
    approvals="inline",
    action_types=("tool_approval", "permission_grant", "structured_input"),
    controls=("send", "queue", "steer", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="yes",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="yes",
    cost="yes",
    structured_output="yes",
)


class CodexOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config` overrides keys of Codex's own configuration; `env` names further variables of ours
    that it gets.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    config: dict[str, Any] = {}
    model: str | None = None
    effort: str | None = None
    instructions: str | None = None
    sandbox: Sandbox = "workspace-write"
    approvals: Approvals = "on-request"
    env: tuple[str, ...] = ()
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = START_SECONDS
    raw: bool = False


class CodexAgent(LiveAgent):
    """Runs Codex; each turn is a process of it."""

    def __init__(self, setup: CodexSetup, *, keep_raw: bool = False) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=keep_raw)
        self._setup = setup

    def make_driver(self, live: LiveTurn) -> TurnDriver:
        return CodexDriver(live, self._setup)


def agent(settings: AgentSettings) -> CodexAgent:
    """Codex as a configuration asks for it; raises `AgentError`."""
    options = read_options(settings, CodexOptions)
    program = PROGRAM.require_path(options.command)
    thread = {
        "approvalPolicy": options.approvals,
        "sandbox": options.sandbox,
        "model": settings.model or options.model,
        "config": options.config or None,
        "developerInstructions": options.instructions,
    }
    setup = CodexSetup(
        argv=(program, "app-server", *options.args),
        own_names=own_variables(settings, *OWN_NAMES, *options.env),
        thread={name: value for name, value in thread.items() if value is not None},
        turn={"effort": options.effort} if options.effort else {},
        start_seconds=options.start_seconds,
    )
    return CodexAgent(setup, keep_raw=options.raw)
