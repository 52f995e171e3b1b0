"""A program that a mapping file describes, run by the runtime: lines out, lines in.

What the mapping cannot say, the agent does not offer; its manifest is made from the mapping.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.capabilities import Answer
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.processes import InputClosed
from factwire.runtime.provider import Decision
from factwire.sources.kit.limits import FAREWELL_SECONDS
from factwire.sources.kit.live_agent import (
    LiveAgent,
    LiveTurn,
    TurnDriver,
    own_variables,
    read_options,
)
from factwire.sources.kit.program import AgentProgram, JsonPipe, open_pipe
from factwire.sources.kit.stream_framing import Item
from factwire.sources.kit.turn_inputs import TextPrompt, prompt_text, read_prompt
from factwire.sources.mapped import AgentMapping, MappingError, read_mapping
from factwire.sources.mapped.convert import MappedInputs, make_mapped_source

PROMPT: Final = "{prompt}"
SESSION: Final = "{session}"

_HINT: Final = "Check the output of the program, then retry the turn."


class MappedSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is run; `resume` is its command line where a session is known."""

    title: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    own_names: frozenset[str]
    inputs: MappedInputs
    tells_ends: bool


class MappedDriver(TurnDriver):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, setup: MappedSetup) -> None:
        super().__init__(live)
        self._setup = setup
        self._pipe: JsonPipe | None = None
        self._session = live.agent_session
        self._questions: dict[str, Item] = {}

    async def run(self) -> None:
        turn, host, setup = self.live.turn, self.live.host, self._setup
        parts = await read_prompt(turn.prompt, turn.input, host.resources.blobs, images=False)
        prompt = "\n\n".join(prompt_text(each) for each in parts if isinstance(each, TextPrompt))
        line = setup.resume if setup.resume and self._session else setup.command
        argv = [self._fill_argument(word, prompt) for word in line]
        async with open_pipe(host, argv, env={}, own_env_names=setup.own_names) as pipe:
            self._pipe = pipe
            # Beside the reading: a program may speak before it listens.
            builder = asyncio.create_task(
                self._send_prompt(pipe, prompt, by_argument=PROMPT in line)
            )
            try:
                await self._follow(pipe)
            finally:
                builder.cancel()
                await asyncio.gather(builder, return_exceptions=True)
            await self._end_input(pipe)

    async def answer(self, question: str, decision: Decision) -> None:
        line, pipe = self._setup.inputs.answer, self._pipe
        if line is None or pipe is None:
            message = "the mapping does not define how to answer this program (stdin.answer)"
            raise TurnFailed("decision_not_delivered", message)
        payload = {
            "actionId": question,
            "allowed": decision.allowed,
            "decision": decision.decision,
            "reason": decision.reason,
            "response": decision.response,
            "item": self._questions.pop(question, None),
        }
        self.live.builder.resolve_action(question, decision.decision)
        await pipe.send(line(payload, None))

    async def stop(self) -> None:
        """The program's own way, if it has one; else as any program is stopped."""
        line, pipe = self._setup.inputs.stop, self._pipe
        if pipe is None:
            return
        if line is None:
            await pipe.stop()
            return
        with suppress(InputClosed):
            await pipe.send(line({"session": self._session}, None))

    def _fill_argument(self, word: str, prompt: str) -> str:
        if word == PROMPT:
            # What a person says is never an option of the program's.
            return f" {prompt}" if prompt.startswith("-") else prompt
        return (self._session or "") if word == SESSION else word

    async def _send_prompt(self, pipe: JsonPipe, prompt: str, *, by_argument: bool) -> None:
        inputs = self._setup.inputs
        with suppress(InputClosed):
            # A program that does not listen may still answer; how it ends tells more.
            if inputs.prompt is not None:
                turn = self.live.turn
                payload = {"prompt": prompt, "session": self._session, "turnId": turn.turn_id}
                await pipe.send(inputs.prompt(payload, None))
            elif not by_argument:
                await pipe.write(prompt.encode("utf-8", "replace"))
            if not inputs.stays_open:
                await pipe.close_input()

    async def _follow(self, pipe: JsonPipe) -> None:
        async for item in pipe.items():
            before = set(self.live.builder.actions)
            await self.live.hear(item)
            self._note_item(item, before)
            if self.live.builder.terminal is not None and self._setup.inputs.stays_open:
                # It waits for more, of which there is none.
                await self._close_process(pipe)
                return

    def _note_item(self, item: Item, before: set[str]) -> None:
        """Which item asked what, and what the program calls this thread."""
        builder = self.live.builder
        for question in builder.actions.keys() - before:
            self._questions[question] = item
        session: Any = builder.own_ids.get("session_id")
        if session and session != self._session:
            self._session = session
            builder.set_agent_session(session)
            self.live.pass_on()

    async def _close_process(self, pipe: JsonPipe) -> None:
        """Let the program end by itself for a moment: it may have something to save."""
        await pipe.close_input()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await pipe.wait_for_exit()

    async def _end_input(self, pipe: JsonPipe) -> None:
        live, setup = self.live, self._setup
        if live.builder.terminal is not None or live.is_stopping:
            return
        code = await pipe.wait_for_exit()
        if code.exit_code == 0 and not setup.tells_ends:
            live.builder.complete_turn()
            return
        category = "stream_interrupted" if code.exit_code == 0 else "nonzero_exit"
        message = f"{setup.title} ended before the turn did: {pipe.describe_exit(code)}"
        raise TurnFailed(category, message, _HINT)


MANIFEST: Final = CapabilityManifest(
    agent_id="mapped",
    title="Any program, with a mapping file",
    version="1",
    inputs=("text", "document", "workspace"),
    controls=("send", "queue", "stop", "retry"),
    topologies=("solo_run",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    evidence="no",
    sandbox="no",
    structured_output="no",
)
"""What holds for every program; a mapping adds the rest."""

_ASKS: Final = "action.required"


class MappedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command` is the program and its arguments, `resume` the same for a thread that the program
    knows; `mapping` is the file that says what its lines mean.
    """

    command: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    mapping: str = ""
    env: tuple[str, ...] = ()
    raw: bool = False


class MappedAgent(LiveAgent):
    """Runs one program; each turn is a process of it."""

    def __init__(
        self, mapping: AgentMapping, setup: MappedSetup, *, keep_raw: bool = False
    ) -> None:
        super().__init__(make_mapped_source(mapping), make_manifest(mapping), keep_raw=keep_raw)
        self._setup = setup

    def make_driver(self, live: LiveTurn) -> TurnDriver:
        return MappedDriver(live, self._setup)


def agent(settings: AgentSettings) -> MappedAgent:
    """The program that a configuration names; raises `AgentError`."""
    options = read_options(settings, MappedOptions)
    if settings.model is not None:
        raise InvalidAgent(
            "a mapped program does not accept a model; put it into the option command"
        )
    mapping = _read_mapping_file(options.mapping)
    _check_lines(options, mapping)
    setup = MappedSetup(
        title=mapping.title,
        command=_find_placeholders(options.command),
        resume=_find_placeholders(options.resume),
        own_names=own_variables(settings, *options.env),
        inputs=mapping.inputs,
        tells_ends=any(rule.becomes in TURN_TERMINALS for rule in mapping.rules),
    )
    return MappedAgent(mapping, setup, keep_raw=options.raw)


def make_manifest(mapping: AgentMapping) -> CapabilityManifest:
    """What a program can do, as far as its mapping has rules for it."""
    payload = {rule.becomes for rule in mapping.rules}

    def has(*classes: str) -> Answer:
        return "yes" if payload & set(classes) else "no"

    asks = _ASKS in payload and mapping.inputs.answer is not None
    decisions = ("approve", "reject", "answer") if asks else ()
    team = ("coordinator_team",) if "subagent.started" in payload else ()
    return msgspec.structs.replace(
        MANIFEST,
        agent_id=mapping.name,
        title=mapping.title,
        streaming=Streaming(
            text=has("model.delta"),
            reasoning=has("reasoning.delta"),
            tool_args=has("tool.args.delta"),
            tool_output=has("tool.output.delta"),
        ),
        approvals="inline" if asks else "none",
        controls=(*MANIFEST.controls, *decisions),
        topologies=(*MANIFEST.topologies, *team),
        subagents=has("subagent.started"),
        artifacts=has("artifact.changed", "artifact.diff.ready", "file.changed"),
        cost=has("usage"),
    )


def _read_mapping_file(name: str) -> AgentMapping:
    if not name:
        raise InvalidAgent("mapped needs the option mapping, a file such as tidy.toml")
    try:
        mapping = read_mapping(Path(name).read_bytes(), name)
    except OSError as error:
        raise InvalidAgent(f"the mapping {name} cannot be read: {error.strerror}") from error
    except MappingError as error:
        raise InvalidAgent(str(error)) from error
    if mapping.framing != "lines":
        raise InvalidAgent(
            f"{name}: the output of a program is read line by line, got framing {mapping.framing!r}"
        )
    return mapping


def _check_lines(options: MappedOptions, mapping: AgentMapping) -> None:
    """Whether the prompt arrives, and the session where there is one."""
    if not options.command:
        raise InvalidAgent('mapped needs the option command, such as ["tidy", "--json"]')
    if SESSION in options.command or (options.resume and SESSION not in options.resume):
        raise InvalidAgent(f"{SESSION} belongs in the option resume, not in command")
    for line in filter(None, (options.command, options.resume)):
        lines = (PROMPT in line) + (mapping.inputs.prompt is not None)
        if lines == 2:  # noqa: PLR2004 - both
            raise InvalidAgent(f"the prompt is passed twice: by {PROMPT} and by stdin.prompt")
        if not lines and mapping.inputs.stays_open:
            raise InvalidAgent(
                f"the prompt needs {PROMPT} in the command or stdin.prompt in the mapping: an "
                "input that stays open for answers cannot end with the prompt"
            )
        for word in line:
            if word not in (PROMPT, SESSION) and (PROMPT in word or SESSION in word):
                raise InvalidAgent(
                    f"{PROMPT} and {SESSION} must be separate arguments, got {word!r}"
                )


def _find_placeholders(line: tuple[str, ...]) -> tuple[str, ...]:
    if not line:
        return ()
    name, *rest = line
    program = AgentProgram(
        title=name, name=name, install=f"see the installation instructions of {name}"
    )
    return (program.require_path(), *rest)
