"""OpenCode, live: `opencode serve` for each turn, on the session that OpenCode keeps.

It has no sandbox, and by itself it asks about little: what it does, it does with the rights of
whoever runs it. So it is told to ask before it runs, edits or fetches, unless somebody wants it
otherwise; what it asks reaches a person, if no rule of Factwire's policy answers.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.runtime.agents import InvalidAgent
from factwire.runtime.configuration import Agent
from factwire.sources.live.agent import LiveAgent, Work
from factwire.sources.live.limits import START_SECONDS
from factwire.sources.live.opencode_turn import OpenCodeTurn, Setup
from factwire.sources.live.programs import Program
from factwire.sources.live.settings import names_of, options_of
from factwire.sources.live.turn import LiveTurn
from factwire.sources.opencode import SOURCE

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

Action = Literal["allow", "ask", "deny"]
Permission = dict[str, Action | dict[str, Action]]
"""A name of OpenCode's, or a pattern of names → what it does about it, or about each pattern."""

ASKS: Final[Permission] = {"bash": "ask", "edit": "ask", "webfetch": "ask"}
"""What OpenCode has to ask about, if nothing else is said."""

PROGRAM: Final = Program(title="OpenCode", name="opencode", install="npm install -g opencode-ai")

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
)


class OpenCodeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`agent` and `variant` are names of OpenCode's; `config` overrides keys of its own
    configuration, and `permission` those that say when it asks; `env` names further variables of
    ours that it gets.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    config: dict[str, Any] = {}
    permission: Permission = msgspec.field(default_factory=lambda: dict(ASKS))
    model: str | None = None
    agent: str | None = None
    variant: str | None = None
    instructions: str | None = None
    env: tuple[str, ...] = ()
    start_seconds: Annotated[float, msgspec.Meta(gt=0)] = START_SECONDS
    raw: bool = False


class OpenCodeAgent(LiveAgent):
    """Runs OpenCode; each turn is a server of its own."""

    def __init__(self, setup: Setup, *, keep_raw: bool = False) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=keep_raw)
        self._setup = setup

    def work(self, live: LiveTurn) -> Work:
        return OpenCodeTurn(live, self._setup)


def agent(settings: Agent) -> OpenCodeAgent:
    """OpenCode as a configuration asks for it; raises `AgentError`."""
    options = options_of(settings, OpenCodeOptions)
    program = PROGRAM.found(options.command)
    prompt = {
        "agent": options.agent,
        "variant": options.variant,
        "system": options.instructions,
    }
    given = {
        "OPENCODE_CONFIG_CONTENT": options.config,
        "OPENCODE_PERMISSION": options.permission,
    }
    setup = Setup(
        argv=(program, "serve", "--hostname", "127.0.0.1", "--port", "0", *options.args),
        env={name: msgspec.json.encode(each).decode() for name, each in given.items() if each},
        own_names=names_of(settings, *OWN_NAMES, *options.env),
        model=_model(settings.model or options.model),
        session={"permission": _rules(options.permission)} if options.permission else {},
        prompt={name: value for name, value in prompt.items() if value is not None},
        start_seconds=options.start_seconds,
    )
    return OpenCodeAgent(setup, keep_raw=options.raw)


def _rules(permission: Permission) -> list[dict[str, str]]:
    """The same as a session has it: there it counts for more than any setting, whereas the session
    of a subagent takes it from the settings.
    """
    rows: list[dict[str, str]] = []
    for name, given in permission.items():
        patterns = given if isinstance(given, dict) else {"*": given}
        rows += [
            {"permission": name, "pattern": pattern, "action": action}
            for pattern, action in patterns.items()
        ]
    return rows


def _model(name: str | None) -> str | None:
    provider, _, model = (name or "").partition("/")
    if name is not None and not (provider and model):
        raise InvalidAgent(f"expected a model as provider/model, got {name!r}")
    return name
