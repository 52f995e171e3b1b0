"""Codex, live: `codex app-server` for each turn, on the thread that Codex keeps.

It is the whole protocol: text in pieces, approvals both ways, plans, diffs, subagents, words into
a turn that runs. Codex holds its commands in a sandbox of its own and asks when something is to
leave that; what it asks reaches a person, unless a rule of Factwire's policy answers.
"""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.runtime.configuration import Agent
from factwire.sources.codex_app_server import SOURCE
from factwire.sources.live.agent import LiveAgent, Work
from factwire.sources.live.codex_turn import CodexTurn, Setup
from factwire.sources.live.limits import START_SECONDS
from factwire.sources.live.programs import Program
from factwire.sources.live.settings import names_of, options_of
from factwire.sources.live.turn import LiveTurn

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


def packaged() -> Path | None:
    """The program inside PyPI's openai-codex-cli-bin."""
    try:
        found: Path = import_module("codex_cli_bin").bundled_codex_path()
    except (ImportError, FileNotFoundError):
        return None
    return found


PROGRAM: Final = Program(
    title="Codex",
    name="codex",
    install="pip install 'factwire[codex]', or npm install -g @openai/codex",
    packaged=packaged,
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


class Codex(LiveAgent):
    """Runs Codex; each turn is a process of it."""

    def __init__(self, setup: Setup, *, keep_raw: bool = False) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=keep_raw)
        self._setup = setup

    def work(self, live: LiveTurn) -> Work:
        return CodexTurn(live, self._setup)


def agent(settings: Agent) -> Codex:
    """Codex as a configuration asks for it; raises `AgentError`."""
    options = options_of(settings, CodexOptions)
    program = PROGRAM.found(options.command)
    thread = {
        "approvalPolicy": options.approvals,
        "sandbox": options.sandbox,
        "model": settings.model or options.model,
        "config": options.config or None,
        "developerInstructions": options.instructions,
    }
    setup = Setup(
        argv=(program, "app-server", *options.args),
        own_names=names_of(settings, *OWN_NAMES, *options.env),
        thread={name: value for name, value in thread.items() if value is not None},
        turn={"effort": options.effort} if options.effort else {},
        start_seconds=options.start_seconds,
    )
    return Codex(setup, keep_raw=options.raw)
