"""Any agent of the Agent Client Protocol, live: a program that is given by its command line.

Factwire is the editor of the protocol. It offers files of the workspace, under the policy, and
questions to people; terminals it does not offer, so that an agent runs its commands itself and
asks for leave by `session/request_permission`.
"""

from typing import Annotated, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import Agent
from factwire.sources.acp import SOURCE
from factwire.sources.live.acp_turn import AcpTurn, Setup
from factwire.sources.live.agent import LiveAgent, Work
from factwire.sources.live.limits import START_SECONDS
from factwire.sources.live.programs import Program
from factwire.sources.live.settings import names_of, options_of
from factwire.sources.live.turn import LiveTurn

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
)


class AcpOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`command` is the program and its arguments. `mode`, `model` and `config` are chosen of what
    the agent offers; `sign_in` is the id of the way in which it is to authenticate; `env` names
    further variables of ours that it gets.
    """

    command: tuple[str, ...] = ()
    title: str | None = None
    mode: str | None = None
    model: str | None = None
    config: dict[str, str] = {}
    sign_in: str | None = None
    env: tuple[str, ...] = ()
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = START_SECONDS
    raw: bool = False


class AcpAgent(LiveAgent):
    """Runs one program of the protocol; each turn is a process of it."""

    def __init__(self, setup: Setup, *, keep_raw: bool = False) -> None:
        manifest = msgspec.structs.replace(MANIFEST, title=setup.title)
        super().__init__(SOURCE, manifest, keep_raw=keep_raw)
        self._setup = setup

    def work(self, live: LiveTurn) -> Work:
        return AcpTurn(live, self._setup)


def agent(settings: Agent) -> AcpAgent:
    """The agent that a configuration names; raises `AgentError`."""
    options = options_of(settings, AcpOptions)
    if not options.command:
        raise InvalidAgent('acp needs the option command, such as ["opencode", "acp"]')
    name, *rest = options.command
    program = Program(title=name, name=name, install=f"see how {name} is installed")
    setup = Setup(
        argv=(program.found(), *rest),
        title=options.title or f"{name}, by the Agent Client Protocol",
        own_names=names_of(settings, *OWN_NAMES, *options.env),
        mode=options.mode,
        model=settings.model or options.model,
        config=options.config,
        sign_in=options.sign_in,
        start_seconds=options.start_seconds,
    )
    return AcpAgent(setup, keep_raw=options.raw)
