"""Codex, live, as `codex exec --json` runs it: a turn without anybody to ask.

It tells less than the app server and asks nothing: what its sandbox does not let it do, fails. The
prompt goes in by standard input, so that no list of processes shows it; the next turn goes on by
`exec resume`. It is stopped as a program is, by SIGTERM.
"""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.facts.json_values import object_at, text_at
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Decision
from factwire.runtime.structured_output import OUTPUT_SCHEMA, to_strict_schema
from factwire.sources.codex.exec_convert import SOURCE, CodexExec
from factwire.sources.codex.live import OWN_NAMES, PROGRAM, Sandbox
from factwire.sources.kit.live_agent import (
    LiveAgent,
    LiveTurn,
    TurnDriver,
    own_variables,
    read_options,
)
from factwire.sources.kit.program import JsonPipe, open_pipe
from factwire.sources.kit.stream_framing import Item
from factwire.sources.kit.turn_inputs import TextPrompt, prompt_text, read_prompt

MANIFEST: Final = CapabilityManifest(
    agent_id="codex-exec",
    title="Codex, without approvals",
    version="1",
    inputs=("text", "document", "workspace"),
    streaming=Streaming(text="no", reasoning="no", tool_args="no", tool_output="no"),
    approvals="none",
    controls=("send", "queue", "stop", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="yes",
    cost="yes",
    structured_output="yes",
)


class CodexExecOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config` overrides keys of Codex's own configuration, each value as TOML writes it."""

    command: str | None = None
    args: tuple[str, ...] = ()
    config: dict[str, str] = {}
    model: str | None = None
    sandbox: Sandbox = "workspace-write"
    env: tuple[str, ...] = ()
    raw: bool = False


class CodexExecAgent(LiveAgent):
    """Runs `codex exec` for each turn."""

    def __init__(
        self, argv: tuple[str, ...], own_names: frozenset[str], *, keep_raw: bool = False
    ) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=keep_raw)
        self._argv = argv
        self._own_names = own_names

    def make_driver(self, live: LiveTurn) -> TurnDriver:
        return CodexExecDriver(live, self._argv, self._own_names)


class CodexExecDriver(TurnDriver):
    """The work of one turn."""

    def __init__(self, live: LiveTurn, argv: tuple[str, ...], own_names: frozenset[str]) -> None:
        super().__init__(live)
        self._argv = argv
        self._own_names = own_names
        self._pipe: JsonPipe | None = None

    async def run(self) -> None:
        turn, host = self.live.turn, self.live.host
        parts = await read_prompt(turn.prompt, turn.input, host.resources.blobs, images=False)
        prompt = "\n\n".join(prompt_text(each) for each in parts if isinstance(each, TextPrompt))
        with ExitStack() as files:
            await self._follow(prompt, self._command_line(files))

    async def _follow(self, prompt: str, argv: list[str]) -> None:
        host = self.live.host
        async with open_pipe(host, argv, env={}, own_env_names=self._own_names) as pipe:
            self._pipe = pipe
            await pipe.write(prompt.encode("utf-8", "replace"))
            await pipe.close_input()
            async for item in pipe.items():
                self._note_item(item)
                await self.live.hear(item)
            self.live.converter.finish()
            self.live.pass_on()
            if self.live.builder.terminal is None and not self.live.is_stopping:
                how = pipe.describe_exit(await pipe.wait_for_exit())
                raise TurnFailed("stream_interrupted", f"Codex ended before the turn did: {how}")

    async def answer(self, question: str, decision: Decision) -> None:
        del question, decision
        raise TurnFailed("decision_not_delivered", "codex exec never asks for a decision")

    async def stop(self) -> None:
        if self._pipe is not None:
            await self._pipe.stop()

    def _command_line(self, files: ExitStack) -> list[str]:
        known, model = self.live.agent_session, text_at(self.live.turn.options, "model")
        chosen = [] if model is None else ["--model", model]
        chosen += self._schema_option(files)
        if known is None:
            return [*self._argv, *chosen, "-"]
        if isinstance(self.live.converter, CodexExec):
            # Sums of the thread count from before; which part is this turn's is not known.
            self.live.converter.used = None
        return [*self._argv, *chosen, "resume", known, "-"]

    def _schema_option(self, files: ExitStack) -> list[str]:
        """The schema of the answer, in a file that lasts as long as the turn."""
        schema = object_at(self.live.turn.options.get(OUTPUT_SCHEMA))
        if schema is None:
            return []
        cast("CodexExec", self.live.converter).wants_structure = True
        folder = files.enter_context(TemporaryDirectory(prefix="factwire-schema-"))
        file = Path(folder) / "output.schema.json"
        file.write_bytes(msgspec.json.encode(to_strict_schema(schema)))
        return ["--output-schema", str(file)]

    def _note_item(self, item: Item) -> None:
        if isinstance(item, dict) and item.get("type") == "thread.started":
            self.live.builder.set_agent_session(text_at(item, "thread_id") or "")


def agent(settings: AgentSettings) -> CodexExecAgent:
    """Codex without questions, as a configuration asks for it; raises `AgentError`."""
    options = read_options(settings, CodexExecOptions)
    model: Any = settings.model or options.model
    argv = [
        PROGRAM.require_path(options.command),
        *("exec", "--json", "--skip-git-repo-check", "--sandbox", options.sandbox),
        *(word for name, value in options.config.items() for word in ("-c", f"{name}={value}")),
        *(("--model", model) if model else ()),
        *options.args,
    ]
    names = own_variables(settings, *OWN_NAMES, *options.env)
    return CodexExecAgent(tuple(argv), names, keep_raw=options.raw)
