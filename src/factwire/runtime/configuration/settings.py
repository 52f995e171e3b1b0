"""The configuration, typed: what each value means and what it is when nobody says otherwise."""

from typing import Any, Final, Literal

import msgspec

from factwire.runtime.limits import ACTIVE_TURNS, APPROVAL_SECONDS, TURN_SECONDS
from factwire.runtime.policy import Mode, Policy
from factwire.runtime.retry_policy import RetryPolicy

SandboxMode = Literal["off", "prefer", "require"]

SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = ("off", "prefer", "require")

OUTPUT_BYTES: Final = 1024 * 1024
"""Output of one run that stays in facts; the rest goes to a blob."""

MCP_SECONDS: Final = 120.0
"""How long one call of a server's tool may take, if nobody says otherwise."""

MCP_START_SECONDS: Final = 30.0
"""How long a server may take until it can be used; some are fetched when they are started."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent. `kind` is a kind that Factwire knows, or an entry point `module:name`; the key to
    a model stands in the environment variable `api_key_env`, never in a file.
    """

    kind: str
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    retry: RetryPolicy | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server of tools: a program by its `command`, or a `url`. Values of `env` and `headers`
    refer to variables as `${NAME}`. `network`, `readable` and `writable` are what the sandbox
    leaves to the program beside what it leaves to all.
    """

    command: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    allow_tools: tuple[str, ...] = ("*",)
    deny_tools: tuple[str, ...] = ()
    seconds: float = MCP_SECONDS
    start_seconds: float = MCP_START_SECONDS
    network: bool | None = None
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The mode, and rules as text; `policy()` is what evaluates them."""

    mode: Mode = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def policy(self) -> Policy:
        return Policy.of(self.mode, allow=self.allow, ask=self.ask, deny=self.deny)


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`prefer` uses a sandbox where there is one, `require` refuses to run without."""

    mode: SandboxMode = "prefer"
    network: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    turn_seconds: float = TURN_SECONDS
    output_bytes: int = OUTPUT_BYTES
    approval_seconds: float = APPROVAL_SECONDS
    concurrent_runs: int = ACTIVE_TURNS


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. Paths are absolute; an empty list of workspaces allows none."""

    journal: str
    data: str
    workspaces: tuple[str, ...] = ()
    worktree: bool = False
    agent: str | None = None
    agents: dict[str, Agent] = msgspec.field(default_factory=dict[str, Agent])
    mcp: dict[str, McpServer] = msgspec.field(default_factory=dict[str, McpServer])
    policy: PolicySettings = PolicySettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
