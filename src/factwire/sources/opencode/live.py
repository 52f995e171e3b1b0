"""OpenCode's own server as a program that the runtime runs, spoken to over HTTP on loopback.

One server a turn, behind a password that nobody else knows. A session of an earlier turn goes
on; what OpenCode asks is answered by the policy or by a person.
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Annotated, Any, Final, Literal

import httpx
import msgspec

from factwire.facts import CapabilityManifest, Streaming, redact_text
from factwire.facts.json_values import object_at, text_at
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Decision, DeliveredSteer, Host
from factwire.sources.kit.limits import (
    FAREWELL_SECONDS,
    HEARTBEAT_SECONDS,
    REFUSAL_CHARACTERS,
    START_SECONDS,
)
from factwire.sources.kit.live_agent import (
    LiveAgent,
    LiveTurn,
    TurnDriver,
    own_variables,
    read_options,
)
from factwire.sources.kit.policy_check import check_policy, show_tool_request
from factwire.sources.kit.program import AgentProgram, JsonPipe, open_pipe
from factwire.sources.kit.stream_framing import EventReader, Item, Unreadable
from factwire.sources.kit.turn_inputs import PromptPart, TextPrompt, prompt_text, read_prompt
from factwire.sources.opencode.convert import SOURCE, OpenCode
from factwire.sources.opencode.message_parts import OpenCodeThread, read_failure
from factwire.sources.opencode.permission_requests import (
    ASKED,
    SETTLED,
    OpenCodeQuestion,
    read_question,
)

_USER: Final = "opencode"
_PASSWORD: Final = "OPENCODE_SERVER_PASSWORD"  # noqa: S105 - the name of a variable
_LISTENS: Final = re.compile(rb"listening on (http://127\.0\.0\.1:\d+)")
_SERVER_HINT: Final = "Check its output and OpenCode's own log, then retry the turn."


class OpenCodeRefused(Exception):
    """The server did not do what it was asked; `status` is HTTP's."""

    def __init__(self, path: str, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason or "no reason was given"
        super().__init__(f"{path}: {status}, {self.reason}")


class OpenCodeServer:
    """One server that runs."""

    def __init__(self, pipe: JsonPipe, client: httpx.AsyncClient) -> None:
        self._pipe = pipe
        self._client = client

    async def get(self, path: str) -> Any:
        """Raises `Refusal`, or `TurnFailed` where nobody answers."""
        return await self._call("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Raises `Refusal`, or `TurnFailed` where nobody answers."""
        return await self._call("POST", path, body)

    async def read_events(self) -> AsyncIterator[Item]:
        """What the server tells, without an end; raises `TurnFailed` where it has one."""
        reader = EventReader()
        timeout = httpx.Timeout(START_SECONDS, read=HEARTBEAT_SECONDS)
        try:
            async with self._client.stream("GET", "/event", timeout=timeout) as response:
                if not response.is_success:
                    raise OpenCodeRefused(
                        "/event", response.status_code, _read_reason(await response.aread())
                    )
                async for data in response.aiter_bytes():
                    for item in reader.feed(data):
                        yield item
        except httpx.TimeoutException as error:
            message = f"OpenCode sent nothing for {HEARTBEAT_SECONDS:g} s"
            raise TurnFailed("agent_silent", message, _SERVER_HINT) from error
        except httpx.TransportError as error:
            raise await self._gone_failure(error) from error
        raise await self._gone_failure()

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        arguments: dict[str, Any] = {}
        if body is not None:
            arguments["content"] = msgspec.json.encode(body)
            arguments["headers"] = {"Content-Type": "application/json"}
        try:
            response = await self._client.request(method, path, **arguments)
        except httpx.TransportError as error:
            raise await self._gone_failure(error) from error
        if not response.is_success:
            raise OpenCodeRefused(path, response.status_code, _read_reason(response.content))
        return _decode(response.content)

    async def _gone_failure(self, error: Exception | None = None) -> TurnFailed:
        """Why the server is not heard any more: mostly, it has ended."""
        how = f"its stream was interrupted: {error}" if error is not None else "its stream ended"
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                how = self._pipe.describe_exit(await self._pipe.wait_for_exit())
        message = f"OpenCode ended before the turn did: {how}"
        return TurnFailed("stream_interrupted", message, _SERVER_HINT)


@asynccontextmanager
async def start_server(
    host: Host,
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str],
    own_names: frozenset[str],
    start_seconds: float,
) -> AsyncGenerator[OpenCodeServer]:
    """A server in the workspace of a turn, for as long as the context lasts; raises
    `TurnFailed`.
    """
    # What OpenCode runs can see it; so it has the form of a token of ours, which no fact repeats.
    password = f"fwt_{token_hex(32)}"
    variables, names = {**env, _PASSWORD: password}, own_names | {_PASSWORD}
    async with open_pipe(host, argv, env=variables, own_env_names=names) as pipe:
        listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        reading = asyncio.create_task(_read_address(pipe, listens))
        try:
            url = await _in_time(listens, start_seconds)
            folder = {"directory": str(host.workspace.resolve())}
            async with httpx.AsyncClient(
                base_url=url,
                auth=(_USER, password),
                params=folder,
                timeout=START_SECONDS,
                trust_env=False,
            ) as client:
                yield OpenCodeServer(pipe, client)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read_address(pipe: JsonPipe, listens: "asyncio.Future[str]") -> None:
    """Read all that the server prints, so that it never waits for a reader."""
    async for item in pipe.items():
        found = _LISTENS.search(item.data) if isinstance(item, Unreadable) else None
        if found is not None and not listens.done():
            listens.set_result(found[1].decode())
    if not listens.done():
        how = pipe.describe_exit(await pipe.wait_for_exit())
        message = f"OpenCode ended before it was ready: {how}"
        listens.set_exception(TurnFailed("stream_interrupted", message, _SERVER_HINT))


async def _in_time(listens: "asyncio.Future[str]", seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return await listens
    except TimeoutError as error:
        message = f"OpenCode was not ready for the turn within {seconds:g} s"
        raise TurnFailed("agent_silent", message, _SERVER_HINT) from error


def _read_reason(content: bytes) -> str:
    """What a refusal says, in OpenCode's own two forms or any other."""
    payload = object_at(_decode(content)) or {}
    inner = object_at(payload.get("data")) or payload
    text = text_at(inner, "message") or content.decode("utf-8", "replace")
    return redact_text(text.strip()[:REFUSAL_CHARACTERS])[0]


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None


_NOT_FOUND: Final = 404
_HINT: Final = "Check OpenCode's settings and its own log."


class OpenCodeSetup(msgspec.Struct, frozen=True, kw_only=True):
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


class OpenCodeDriver(TurnDriver):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: OpenCodeSetup) -> None:
        super().__init__(live)
        self._setup = setup
        self._working: asyncio.Task[None] | None = None
        self._server: OpenCodeServer | None = None
        self._session = ""
        self._sent = 0
        self._seen: set[str] = set()
        self._open: dict[str, OpenCodeQuestion] = {}
        self._is_saying = False
        self._connected = asyncio.Event()
        self._done = asyncio.Event()

    async def run(self) -> None:
        self._working = asyncio.create_task(self._run_session())
        try:
            await asyncio.wait({self._working})
            if not (self._working.cancelled() and self.live.is_stopping):
                self._working.result()
        finally:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    async def answer(self, question: str, decision: Decision) -> None:
        open_question, server = self._open.pop(question, None), self._server
        if open_question is None or server is None:
            raise TurnFailed("decision_not_delivered", "OpenCode has already resolved this itself")
        try:
            await server.post(*open_question.to_reply(decision))
        except OpenCodeRefused as refusal:
            raise TurnFailed("decision_not_delivered", str(refusal)) from refusal

    async def stop(self) -> None:
        """OpenCode's own abort; where no message was sent there is nothing to abort."""
        if self._server is not None and self._sent:
            with suppress(OpenCodeRefused, TurnFailed):
                # A server that is gone has stopped.
                await self._server.post(f"/session/{self._session}/abort")
        elif self._working is not None:
            self._working.cancel()

    # The session and its messages

    async def _run_session(self) -> None:
        turn, host, setup = self.live.turn, self.live.host, self._setup
        prompt = await read_prompt(turn.prompt, turn.input, host.resources.blobs, images=True)
        async with start_server(
            host,
            setup.argv,
            env=setup.env,
            own_names=setup.own_names,
            start_seconds=setup.start_seconds,
        ) as server:
            listening = asyncio.create_task(self._read_events(server))
            try:
                await _wait_first(self._connected, listening)
                await self._begin_session(server)
                await self._send(server, prompt)
                self._server = server
                await self._follow(server, listening)
            except OpenCodeRefused as refusal:
                raise TurnFailed("provider_error", str(refusal), _HINT) from refusal
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def _begin_session(self, server: OpenCodeServer) -> None:
        """Take up the session of the turn before, or begin one."""
        known = self.live.agent_session
        if known is not None and await self._is_there(server, known):
            self._session = known
        else:
            info = object_at(await server.post("/session", self._setup.session)) or {}
            self._session = text_at(info, "id") or ""
            self.live.builder.set_agent_session(self._session)
            self.live.pass_on()
        self._thread.root = self._session

    async def _is_there(self, server: OpenCodeServer, known: str) -> bool:
        try:
            await server.get(f"/session/{known}")
        except OpenCodeRefused as refusal:
            if refusal.status != _NOT_FOUND:
                raise
            message = "OpenCode lost the previous conversation, so a new one begins"
            payload = {"code": "session_not_continued", "message": f"{message}: {refusal.reason}"}
            self.live.builder.add_fact("runtime.warning", payload)
            return False
        return True

    async def _send(self, server: OpenCodeServer, prompt: list[PromptPart]) -> None:
        chosen = self.live.turn.options.get("model")
        model = chosen if isinstance(chosen, str) and chosen else self._setup.model
        body = {**self._setup.prompt, "parts": [_to_part(each) for each in prompt]}
        if model:
            provider, _, name = model.partition("/")
            body["model"] = {"providerID": provider, "modelID": name}
        await server.post(f"/session/{self._session}/prompt_async", body)
        self._sent += 1

    async def _follow(self, server: OpenCodeServer, listening: "asyncio.Task[None]") -> None:
        steering = asyncio.create_task(self._steer(server))
        try:
            await _wait_first(self._done, listening)
        finally:
            steering.cancel()
            await asyncio.gather(steering, return_exceptions=True)

    # What people say meanwhile

    async def _steer(self, server: OpenCodeServer) -> None:
        host = self.live.host
        while True:
            await host.wait_for_steer()
            if self._done.is_set():
                # What is not taken becomes the next turn.
                return
            self._is_saying = True
            try:
                for steer in await host.take_steers():
                    await self._send_prompt(server, steer)
            finally:
                self._is_saying = False
                await self._look_for_end(server)

    async def _send_prompt(self, server: OpenCodeServer, steer: DeliveredSteer) -> None:
        blobs = self.live.host.resources.blobs
        try:
            await self._send(server, await read_prompt(steer.text, steer.input, blobs, images=True))
        except (OpenCodeRefused, TurnFailed) as failed:
            code = failed.code if isinstance(failed, TurnFailed) else "provider_error"
            remark = {"code": code, "message": f"not delivered to OpenCode: {failed}"}
            self.live.builder.add_fact("runtime.warning", remark)
            self.live.pass_on()

    async def _look_for_end(self, server: OpenCodeServer) -> None:
        """Whether an idle session is the end; if something was said late, it goes on."""
        builder = self.live.builder
        if builder.terminal is None or self._is_saying:
            return
        is_waiting = len(self._seen) < self._sent
        if not self.live.is_stopping and (is_waiting or await self._is_busy(server)):
            builder.begin_turn()
        else:
            self._done.set()

    async def _is_busy(self, server: OpenCodeServer) -> bool:
        """A session that nothing was said to meanwhile is not asked."""
        if self._sent == 1:
            return False
        statuses = object_at(await server.get("/session/status")) or {}
        status = object_at(statuses.get(self._session)) or {}
        return text_at(status, "type") not in (None, "idle")

    # What OpenCode says

    async def _read_events(self, server: OpenCodeServer) -> None:
        async for item in server.read_events():
            self._connected.set()
            await self._hear(server, item)

    async def _hear(self, server: OpenCodeServer, item: Item) -> None:
        kind = (text_at(item, "type") or "") if isinstance(item, dict) else ""
        properties = (object_at(item.get("properties")) or {}) if isinstance(item, dict) else {}
        if kind in ASKED and await self._is_ruled(server, kind, properties):
            return
        self._note_event(kind, properties)
        await self.live.hear(item)
        await self._look_for_end(server)

    def _note_event(self, kind: str, properties: dict[str, Any]) -> None:
        info = object_at(properties.get("info")) or {}
        if kind in SETTLED:
            self._open.pop(text_at(properties, "requestID") or "", None)
        elif kind == "message.updated" and text_at(info, "role") == "user":
            if text_at(info, "sessionID") == self._session:
                self._seen.add(text_at(info, "id") or "")
        elif kind == "session.error" and not self._seen and self._is_ours(properties):
            # No message, no turn: the session will not be idle after it, because it never worked.
            category, message = read_failure(object_at(properties.get("error")) or {})
            raise TurnFailed(category, message, _HINT)

    def _is_ours(self, properties: dict[str, Any]) -> bool:
        return text_at(properties, "sessionID") == self._session

    async def _is_ruled(self, server: OpenCodeServer, kind: str, properties: Any) -> bool:
        """Whether a rule answers a question; if not, it is open until somebody does."""
        live = self.live
        workspace = str(live.host.workspace.resolve())
        question = read_question(kind, properties, live.builder, workspace)
        request, speaker = question.to_request(), self._thread.find_speaker(question.session)
        answer = None
        if request is not None:
            answer = check_policy(live, request, call_id=question.call_id, subagent_id=speaker)
        if answer is None:
            self._open[question.name] = question
            if request is not None:
                show_tool_request(live, question.name, request)
            return False
        if question.call_id is not None:
            self._thread.calls[question.name] = question.call_id
        await server.post(*question.policy_reply(allowed=answer))
        return True

    @property
    def _thread(self) -> OpenCodeThread:
        converter = self.live.converter
        assert isinstance(converter, OpenCode), "the converter is OpenCode's"  # noqa: S101
        return converter.thread


async def _wait_first(done: asyncio.Event, listening: "asyncio.Task[None]") -> None:
    """Wait for something that the events bring about; what ends them before is raised."""
    waiting = asyncio.create_task(done.wait())
    try:
        await asyncio.wait({waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if not done.is_set():
        listening.result()


def _to_part(each: PromptPart) -> dict[str, Any]:
    if isinstance(each, TextPrompt):
        return {"type": "text", "text": prompt_text(each)}
    url = f"data:{each.media_type};base64,{b64encode(each.data).decode()}"
    return {"type": "file", "mime": each.media_type, "url": url}


OWN_NAMES: Final = (
    "OPENCODE_API_KEY",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_DISABLE_AUTOCOMPACT",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_ENABLE_QUESTION_TOOL",
    "OPENCODE_MODELS_URL",
    "OPENCODE_PERMISSION",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
"""Variables that are OpenCode's own. Those that hold keys of model providers are not: there are
dozens, and none of them is handed over unless it is named."""

PermissionAction = Literal["allow", "ask", "deny"]
PermissionSetting = dict[str, PermissionAction | dict[str, PermissionAction]]
"""A name of OpenCode's, or a pattern of names → what it does about it, or about each pattern."""

ASKS: Final[PermissionSetting] = {"bash": "ask", "edit": "ask", "webfetch": "ask"}
"""What OpenCode has to ask about, if nothing else is said."""

PROGRAM: Final = AgentProgram(
    title="OpenCode", name="opencode", install="npm install -g opencode-ai"
)

MANIFEST: Final = CapabilityManifest(
    agent_id="opencode",
    title="OpenCode",
    version="1",
    inputs=("text", "image", "document", "workspace"),
    streaming=Streaming(text="yes", reasoning="yes", tool_args="no", tool_output="yes"),
    approvals="inline",
    action_types=("tool_approval", "structured_input"),
    controls=("send", "queue", "steer", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="yes",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="no",
    cost="yes",
    structured_output="no",
)


class OpenCodeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`agent` and `variant` are names of OpenCode's; `config` overrides keys of its own
    configuration, and `permission` those that say when it asks; `env` names further variables of
    ours that it gets.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    config: dict[str, Any] = {}
    permission: PermissionSetting = msgspec.field(default_factory=lambda: dict(ASKS))
    model: str | None = None
    agent: str | None = None
    variant: str | None = None
    instructions: str | None = None
    env: tuple[str, ...] = ()
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = START_SECONDS
    raw: bool = False


class OpenCodeAgent(LiveAgent):
    """Runs OpenCode; each turn is a server of its own."""

    def __init__(self, setup: OpenCodeSetup, *, keep_raw: bool = False) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=keep_raw)
        self._setup = setup

    def make_driver(self, live: LiveTurn) -> TurnDriver:
        return OpenCodeDriver(live, self._setup)


def agent(settings: AgentSettings) -> OpenCodeAgent:
    """OpenCode as a configuration asks for it; raises `AgentError`."""
    options = read_options(settings, OpenCodeOptions)
    program = PROGRAM.require_path(options.command)
    prompt = {
        "agent": options.agent,
        "variant": options.variant,
        "system": options.instructions,
    }
    settings_by_name = {
        "OPENCODE_CONFIG_CONTENT": options.config,
        "OPENCODE_PERMISSION": options.permission,
    }
    setup = OpenCodeSetup(
        argv=(program, "serve", "--hostname", "127.0.0.1", "--port", "0", *options.args),
        env={
            name: msgspec.json.encode(each).decode()
            for name, each in settings_by_name.items()
            if each
        },
        own_names=own_variables(settings, *OWN_NAMES, *options.env),
        model=_check_model(settings.model or options.model),
        session={"permission": _to_rules(options.permission)} if options.permission else {},
        prompt={name: value for name, value in prompt.items() if value is not None},
        start_seconds=options.start_seconds,
    )
    return OpenCodeAgent(setup, keep_raw=options.raw)


def _to_rules(permission: PermissionSetting) -> list[dict[str, str]]:
    """The same as a session has it: there it counts for more than any setting, whereas the session
    of a subagent takes it from the settings.
    """
    rows: list[dict[str, str]] = []
    for name, setting in permission.items():
        patterns = setting if isinstance(setting, dict) else {"*": setting}
        rows += [
            {"permission": name, "pattern": pattern, "action": action}
            for pattern, action in patterns.items()
        ]
    return rows


def _check_model(name: str | None) -> str | None:
    provider, _, model = (name or "").partition("/")
    if name is not None and not (provider and model):
        raise InvalidAgent(f"expected a model as provider/model, got {name!r}")
    return name
