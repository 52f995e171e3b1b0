"""Claude Code as a program that the runtime runs, over its control protocol.

One process a turn, resumed by its session. It must greet, take up what it was sent and answer
in time; what works in the background is waited for, within bounds.
"""

import asyncio
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at, text_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.runtime.provider import Decision, DeliveredSteer
from factwire.runtime.structured_output import OUTPUT_SCHEMA
from factwire.sources.claude_code import permission_requests
from factwire.sources.claude_code.convert import SOURCE, ClaudeCode
from factwire.sources.claude_code.permission_requests import BACKGROUND_SECONDS, ToolCallPolicy
from factwire.sources.claude_code.session_usage import SessionUsage
from factwire.sources.claude_code.transcript import ClaudeSession
from factwire.sources.kit.limits import FAREWELL_SECONDS, START_SECONDS
from factwire.sources.kit.live_agent import (
    LiveAgent,
    LiveTurn,
    TurnDriver,
    own_variables,
    read_options,
)
from factwire.sources.kit.program import AgentProgram, JsonPipe, open_pipe
from factwire.sources.kit.stream_framing import Item
from factwire.sources.kit.turn_inputs import read_sdk_prompt

OWN_NAMES: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_MODEL",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CONFIG_DIR",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
)
"""Variables that are Claude Code's own; what a cloud needs besides is named by `env`."""

_PROTOCOL_FLAGS: Final = (
    *("-p", "--verbose"),
    *("--input-format", "stream-json"),
    *("--output-format", "stream-json"),
    *("--permission-prompt-tool", "stdio"),
    "--include-partial-messages",
    "--include-hook-events",
    "--forward-subagent-text",
    "--enable-auth-status",
)
_TELLS_STATE: Final = {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
"""Has it say when no further answer is to be expected."""

PermissionMode = Literal[
    "acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"
]


def find_packaged() -> Path | None:
    """The program inside PyPI's claude-agent-sdk, which is not imported for it."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "_bundled"
    return next(
        (path for name in ("claude", "claude.exe") if (path := folder / name).exists()), None
    )


PROGRAM: Final = AgentProgram(
    title="Claude Code",
    name="claude",
    install="pip install 'factwire[claude-code]', or npm install -g @anthropic-ai/claude-code",
    packaged=find_packaged,
)


class ClaudeCodeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command` is the program, `args` are further arguments, `env` names further variables of ours
    that it gets. `background_seconds` is how long commands in the background are waited for.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: PermissionMode | None = None
    env: tuple[str, ...] = ()
    background_seconds: Annotated[float, msgspec.Meta(ge=0)] = BACKGROUND_SECONDS
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = START_SECONDS
    raw: bool = False


class ClaudeCodeSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How Claude Code is run."""

    program: str
    options: ClaudeCodeOptions
    own_names: frozenset[str]
    env: dict[str, str]

    def to_argv(
        self, *, model: str | None = None, schema: object = None, session: str | None = None
    ) -> tuple[str, ...]:
        """The command line of a turn; `model` is what the turn itself asks for, `schema` that of
        the structured output that it wants.
        """
        mode, wanted = self.options.permission_mode, model or self.options.model
        chosen = [
            *(("--model", wanted) if wanted else ()),
            *(("--permission-mode", mode) if mode not in (None, "default") else ()),
            *(("--json-schema", msgspec.json.encode(schema).decode()) if schema else ()),
            *((f"--resume={session}",) if session else ()),
        ]
        return (self.program, *_PROTOCOL_FLAGS, *chosen, *self.options.args)


def read_setup(settings: AgentSettings) -> ClaudeCodeSetup:
    """What a configuration asks for; raises `AgentError`."""
    options = read_options(msgspec.structs.replace(settings, base_url=None), ClaudeCodeOptions)
    if settings.model is not None:
        options = msgspec.structs.replace(options, model=settings.model)
    return ClaudeCodeSetup(
        program=PROGRAM.require_path(options.command),
        options=options,
        own_names=own_variables(settings, *OWN_NAMES, *options.env),
        env={**_TELLS_STATE, **_endpoint_variables(settings)},
    )


def _endpoint_variables(settings: AgentSettings) -> dict[str, str]:
    """Where its model is, and the key to it under the name that Claude Code knows."""
    key = os.environ.get(settings.api_key_env or "")
    return {
        **({"ANTHROPIC_BASE_URL": settings.base_url} if settings.base_url else {}),
        **({"ANTHROPIC_API_KEY": key} if key else {}),
    }


_HOLDS: Final = ("hooks_applied", "hook_on_failure_supported")
"""What it says of itself where nothing is done without the word of the host's hook."""


class TurnProgress:
    """Of one process. `is_ready` means that it has begun to listen, `is_held` that it does nothing
    before the policy has spoken.
    """

    def __init__(self, session: ClaudeSession) -> None:
        self.is_ready = False
        self.is_held = False
        self.refused: str | None = None
        self.session_id: str | None = None
        self._session = session
        self._first_request: str | None = None
        self._state: str | None = None
        self._has_answered = False
        self._owed: set[str] = set()
        self._confirms = False

    def note_greeting(self, line: dict[str, Any]) -> None:
        """It was asked to begin."""
        self._first_request = line["request_id"]

    def note_prompt(self, line: dict[str, Any]) -> None:
        """It was told something."""
        self._owed.add(line["uuid"])

    @property
    def has_answered(self) -> bool:
        return self._has_answered

    @property
    def is_idle(self) -> bool:
        """Whether no further answer is to be expected, but for what runs in the background."""
        if self._state is None:
            return self._has_answered and not self._session.background
        owes = self._confirms and self._owed
        return self._has_answered and self._state == "idle" and not owes

    @property
    def is_over(self) -> bool:
        return self.is_idle and not self._session.shells

    def is_lost(self, item: Any) -> bool:
        """Whether this says that there is no such conversation to go on with: a failure before
        anything was begun.
        """
        payload = object_at(item) or {}
        failed = text_at(payload, "type") == "result" and payload.get("is_error") is True
        return failed and not self.is_ready

    def note_item(self, item: dict[str, Any]) -> None:
        kind, subtype = text_at(item, "type"), text_at(item, "subtype")
        if kind == "result":
            self._has_answered = True
        elif kind == "control_response":
            self._note_response(object_at(item.get("response")) or {})
        elif kind == "command_lifecycle":
            self._confirms = True
            if text_at(item, "state") != "queued":
                self._owed.discard(text_at(item, "command_uuid") or "")
        elif kind == "system" and subtype == "session_state_changed":
            self._state = text_at(item, "state")
        elif kind == "system" and subtype == "init":
            self.is_ready = True
            self.session_id = text_at(item, "session_id")

    def _note_response(self, response: dict[str, Any]) -> None:
        if text_at(response, "request_id") == self._first_request:
            payload = object_at(response.get("response")) or {}
            self.is_ready = True
            self.is_held = all(payload.get(name) is True for name in _HOLDS)
            self.refused = text_at(response, "error")


_HINT: Final = "Check its output, or run `claude doctor`; then retry the turn."
_ASKS_PEOPLE: Final = frozenset({"can_use_tool", "elicitation"})


class ClaudeCodeDriver(TurnDriver):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: ClaudeCodeSetup) -> None:
        super().__init__(live)
        self._setup = setup
        self._session = cast("ClaudeCode", live.converter).session
        self._calls = ToolCallPolicy(live, self._session)
        self._progress = TurnProgress(self._session)
        self._pipe: JsonPipe | None = None
        self._saying = asyncio.Lock()
        self._is_parting = False
        self._known_as = live.agent_session

    async def run(self) -> None:
        prompt = permission_requests.prompt_line(await read_sdk_prompt(self.live.turn))
        if self._known_as is None or not await self._run_conversation(prompt, self._known_as):
            await self._run_conversation(prompt, None)

    async def answer(self, question: str, decision: Decision) -> None:
        request, pipe = self._session.requests.get(question), self._pipe
        if request is None or pipe is None:
            message = "Claude Code is no longer waiting for this decision"
            raise TurnFailed("decision_not_delivered", message)
        line = permission_requests.response_line(
            question, permission_requests.decision_output(request, decision)
        )
        # Before it is written: what comes of it must not be heard first.
        self.live.take(line)
        await pipe.send(line)

    async def stop(self) -> None:
        """Claude Code's own interrupt; where there is no answer to interrupt, it is ended."""
        pipe = self._pipe
        if pipe is None:
            return
        if not self._progress.is_ready or self.live.builder.terminal is not None:
            await pipe.stop()
            return
        line = permission_requests.request_line("interrupt")
        self.live.take(line)
        with suppress(InputClosed):
            await pipe.send(line)

    # The process

    async def _run_conversation(
        self, prompt: permission_requests.InputLine, session: str | None
    ) -> bool:
        """Hold the turn, as a part of a conversation if one is named; False where that one is
        not there any more.
        """
        setup, host = self._setup, self.live.host
        known = SessionUsage.restore(self.live.agent_session_usage)
        self._session.usage = SessionUsage() if session is None else known
        options = self.live.turn.options
        model, schema = text_at(options, "model"), object_at(options.get(OUTPUT_SCHEMA))
        argv = setup.to_argv(model=model, schema=schema, session=session)
        names = setup.own_names
        async with open_pipe(host, argv, env=setup.env, own_env_names=names) as pipe:
            self._pipe = pipe
            await self._send_greeting(pipe, prompt)
            steering = asyncio.create_task(self._steer(pipe))
            try:
                if not await self._listen(pipe, resumed=session is not None):
                    self._warn("session_not_continued", "Claude lost the previous conversation")
                    return False
            finally:
                await _cancel_task(steering)
        return True

    async def _send_greeting(self, pipe: JsonPipe, prompt: permission_requests.InputLine) -> None:
        first = permission_requests.initialize_line()
        self._progress.note_greeting(first)
        self._progress.note_prompt(prompt)
        with suppress(InputClosed):
            # A program that hears nothing has ended, or soon will; that tells more.
            await pipe.send(first)
            await pipe.send(prompt)

    async def _listen(self, pipe: JsonPipe, *, resumed: bool) -> bool:
        """Hear all that it says; False where it has no such conversation."""
        phase = "starting"
        try:
            async with asyncio.timeout(self._setup.options.start_seconds) as deadline:
                async for item in pipe.items():
                    if resumed and self._progress.is_lost(item):
                        return False
                    await self._hear(pipe, item)
                    if phase != (phase := self._current_phase()):
                        deadline.reschedule(self._seconds_left(phase))
                code = await pipe.wait_for_exit()
        except TimeoutError:
            self._silence_failure(phase)
            return True
        if self.live.builder.terminal is None and not self.live.is_stopping:
            message = f"Claude Code ended before the turn did: {pipe.describe_exit(code)}"
            raise TurnFailed("stream_interrupted", message, _HINT)
        return True

    def _current_phase(self) -> str:
        if self._is_parting:
            return "parting"
        if not self._progress.is_ready:
            return "starting"
        return "background" if self._progress.is_idle else "working"

    def _seconds_left(self, phase: str) -> float | None:
        """When a phase has to be over; an answer takes the time that a turn may take."""
        options = self._setup.options
        seconds = {"background": options.background_seconds, "parting": FAREWELL_SECONDS}.get(phase)
        return None if seconds is None else asyncio.get_running_loop().time() + seconds

    def _silence_failure(self, phase: str) -> None:
        """Time is up: what is not over is ended with the process."""
        if phase == "starting":
            seconds = self._setup.options.start_seconds
            message = f"Claude Code was not ready for the turn within {seconds:g} s"
            raise TurnFailed("agent_silent", message, _HINT)
        for task_id in sorted(self._session.shells):
            payload = {"reason": "timeout", "message": "the turn no longer waited for it"}
            self.live.builder.add_fact("task.cancelled", payload, task_id=task_id)
        self._session.shells.clear()
        self.live.pass_on()

    # What it says

    async def _hear(self, pipe: JsonPipe, item: Item) -> None:
        if not isinstance(item, dict):
            await self.live.hear(item)
            return
        self._progress.note_item(item)
        self._check_session()
        if text_at(item, "type") == "control_request":
            await self._take_request(pipe, item)
        elif item.get("sdk_host_only") is not True:
            self._remember_session()
            await self.live.hear(item)
        if self._is_done():
            await self._close_process(pipe)

    def _check_session(self) -> None:
        """Nothing is begun with a process that would not listen, or not to the policy."""
        progress = self._progress
        if progress.refused is not None:
            raise TurnFailed("provider_error", progress.refused, _HINT)
        if progress.is_ready and not progress.is_held and self._calls.needs_hook:
            message = (
                "this version of Claude Code does not ask before each call, so rules could not "
                "be enforced"
            )
            raise TurnFailed("policy_not_enforced", message, "Update Claude Code.")

    async def _take_request(self, pipe: JsonPipe, item: dict[str, Any]) -> None:
        """A question is answered by a rule, or else told; what is no question is refused."""
        request, request_id = (
            object_at(item.get("request")) or {},
            text_at(item, "request_id") or "",
        )
        answer = self._calls.answer(request)
        if answer is not None:
            await pipe.send(permission_requests.response_line(request_id, answer))
            return
        await self.live.hear(item)
        if text_at(request, "subtype") not in _ASKS_PEOPLE:
            refused = f"{text_at(request, 'subtype')} is not supported"
            await pipe.send(permission_requests.refusal_line(request_id, refused))

    def _remember_session(self) -> None:
        name = self._progress.session_id
        if name is not None and name != self._known_as:
            self._known_as = name
            self.live.builder.set_agent_session(name)

    def _is_done(self) -> bool:
        stopped = self.live.is_stopping and self._progress.has_answered
        return not self._is_parting and (stopped or self._progress.is_over)

    async def _close_process(self, pipe: JsonPipe) -> None:
        """Say that nothing more comes, unless a person has said something just now."""
        async with self._saying:
            if self._is_done():
                self._is_parting = True
                await pipe.close_input()

    # What people say meanwhile

    async def _steer(self, pipe: JsonPipe) -> None:
        while True:
            await self.live.host.wait_for_steer()
            async with self._saying:
                if self._is_parting:
                    # What is not taken becomes the next turn.
                    return
                for steer in await self.live.host.take_steers():
                    await self._send_prompt(pipe, steer)

    async def _send_prompt(self, pipe: JsonPipe, steer: DeliveredSteer) -> None:
        turn = msgspec.structs.replace(self.live.turn, prompt=steer.text, input=steer.input)
        try:
            line = permission_requests.prompt_line(await read_sdk_prompt(turn))
        except TurnFailed as failed:
            self._warn(failed.code, f"not delivered to Claude Code: {failed}")
            return
        self._progress.note_prompt(line)
        with suppress(InputClosed):
            # It has ended, and so does the turn, with the reason.
            await pipe.send(line)

    def _warn(self, code: str, message: str) -> None:
        self.live.builder.add_fact("runtime.warning", {"code": code, "message": message})
        self.live.pass_on()


async def _cancel_task(task: "asyncio.Task[None]") -> None:
    """End a task; what it raised by itself is raised here."""
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


MANIFEST: Final = CapabilityManifest(
    agent_id="claude-code",
    title="Claude Code",
    version="1",
    inputs=("text", "image", "document", "workspace"),
    streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
    approvals="inline",
    action_types=("tool_approval", "structured_input", "plan_decision"),
    controls=("send", "queue", "steer", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="yes",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="yes",
    sandbox="unknown",
    cost="yes",
    structured_output="yes",
)


class ClaudeCodeAgent(LiveAgent):
    """Runs Claude Code; each turn is a process of it."""

    def __init__(self, setup: ClaudeCodeSetup) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=setup.options.raw)
        self._setup = setup

    def make_driver(self, live: LiveTurn) -> TurnDriver:
        return ClaudeCodeDriver(live, self._setup)


def agent(settings: AgentSettings) -> ClaudeCodeAgent:
    """Claude Code as a configuration asks for it; raises `AgentError`."""
    return ClaudeCodeAgent(read_setup(settings))
