"""What can be set of Claude Code, and the command line and environment that come of it.

Keys pass by name and stand in no argument. Where the session of the turn before is known, it is
named, so that the conversation goes on.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from factwire.runtime.configuration import Agent
from factwire.sources.live.claude_code.limits import BACKGROUND_SECONDS
from factwire.sources.live.limits import START_SECONDS
from factwire.sources.live.programs import Program
from factwire.sources.live.settings import names_of, options_of

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
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CONFIG_DIR",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
)
"""Variables that are Claude Code's own; what a cloud needs besides is named by `env`."""

_SPEAKS: Final = (
    *("-p", "--verbose"),
    *("--input-format", "stream-json"),
    *("--output-format", "stream-json"),
    *("--permission-prompt-tool", "stdio"),
    "--include-partial-messages",
    "--include-hook-events",
    "--forward-subagent-text",
)
_TELLS_STATE: Final = {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
"""Has it say when no further answer is to be expected."""

PermissionMode = Literal[
    "acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"
]


def packaged() -> Path | None:
    """The program inside PyPI's claude-agent-sdk, which is not imported for it."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "_bundled"
    return next(
        (path for name in ("claude", "claude.exe") if (path := folder / name).exists()), None
    )


PROGRAM: Final = Program(
    title="Claude Code",
    name="claude",
    install="pip install 'factwire[claude-code]', or npm install -g @anthropic-ai/claude-code",
    packaged=packaged,
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


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How Claude Code is run."""

    program: str
    options: ClaudeCodeOptions
    own_names: frozenset[str]
    env: dict[str, str]

    def argv(self, *, model: str | None = None, session: str | None = None) -> tuple[str, ...]:
        """The command line of a turn; `model` is what the turn itself asks for."""
        mode, wanted = self.options.permission_mode, model or self.options.model
        chosen = [
            *(("--model", wanted) if wanted else ()),
            *(("--permission-mode", mode) if mode not in (None, "default") else ()),
            *((f"--resume={session}",) if session else ()),
        ]
        return (self.program, *_SPEAKS, *chosen, *self.options.args)


def setup_of(settings: Agent) -> Setup:
    """What a configuration asks for; raises `AgentError`."""
    options = options_of(msgspec.structs.replace(settings, base_url=None), ClaudeCodeOptions)
    if settings.model is not None:
        options = msgspec.structs.replace(options, model=settings.model)
    return Setup(
        program=PROGRAM.found(options.command),
        options=options,
        own_names=names_of(settings, *OWN_NAMES, *options.env),
        env={**_TELLS_STATE, **_endpoint(settings)},
    )


def _endpoint(settings: Agent) -> dict[str, str]:
    """Where its model is, and the key to it under the name that Claude Code knows."""
    key = os.environ.get(settings.api_key_env or "")
    return {
        **({"ANTHROPIC_BASE_URL": settings.base_url} if settings.base_url else {}),
        **({"ANTHROPIC_API_KEY": key} if key else {}),
    }
