"""Where a command works: the configuration that holds there, and the folder that agents may use.

A folder that is named on the command line is allowed by that; the current one is, too, unless the
configuration lists others.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from factwire.cli.targets import journal_url, load_settings
from factwire.cli.terminal import CliError, terminal_safe
from factwire.runtime.configuration import (
    AgentSettings,
    Configuration,
)

if TYPE_CHECKING:
    from factwire.runtime.configuration import PolicySettings


class CommandContext(msgspec.Struct, frozen=True, kw_only=True):
    """`workspace` is a real, absolute path."""

    configuration: Configuration
    workspace: Path
    journal_flag: str = ""
    """What other commands are to be given, so that they mean the same journal."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that a command line adds to the configured ones."""

    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()


class AgentFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line sets for the agent that it names, over what the configuration says.

    A name `module:name` that is not configured is an agent as it stands. Only whoever types it
    decides that code is loaded: no file, no fact and no request names one this way, and only for
    it are modules of the current folder found.
    """

    name: str
    model: str | None = None
    base_url: str | None = None

    def add_agent(self, configured: Configuration) -> Configuration:
        """The configuration with the agent in it, if it is one that the command line names."""
        if ":" not in self.name or self.name in configured.agents:
            return configured
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        agent = AgentSettings(kind=self.name, model=self.model, base_url=self.base_url)
        return msgspec.structs.replace(configured, agents={**configured.agents, self.name: agent})

    def flags_over(self, configured: Configuration) -> list[tuple[str, str]]:
        """The flags; an agent that is not configured is one of the kind that its name says."""
        if ":" in self.name and self.name not in configured.agents:
            return []
        values = {"model": self.model, "base_url": self.base_url}
        flags = [(f"agents.{self.name}.{key}", value) for key, value in values.items() if value]
        if flags and self.name not in configured.agents:
            flags.append((f"agents.{self.name}.kind", self.name))
        return flags


def load_context(
    *,
    journal: str | None = None,
    workspace: Path | None = None,
    mode: str | None = None,
    sandbox: str | None = None,
    rules: Rules | None = None,
    agent: AgentFlags | None = None,
) -> CommandContext:
    """The place that options and configuration come to."""
    folder = _resolve_folder(workspace)
    flags = [("journal", journal_url(journal))] if journal else []
    flags += [("policy.mode", mode)] if mode else []
    flags += [("sandbox.mode", sandbox)] if sandbox else []
    loaded = load_settings(folder, flags).configuration
    if agent is not None and (more := agent.flags_over(loaded)):
        loaded = load_settings(folder, [*flags, *more]).configuration
    loaded = loaded if agent is None else agent.add_agent(loaded)
    if workspace is None and loaded.workspaces:
        _require_allowed(folder, loaded.workspaces)
    configuration = msgspec.structs.replace(
        loaded,
        workspaces=(str(folder),),
        policy=_add_rules(loaded.policy, rules or Rules()),
    )
    return CommandContext(
        configuration=configuration, workspace=folder, journal_flag=_journal_flag(journal)
    )


def _journal_flag(url: str | None) -> str:
    """The option, good from any folder. The URL of a server may hold a password: not repeated."""
    if url is None:
        return ""
    scheme, _, rest = journal_url(url).partition(":")
    path = os.path.abspath(rest.partition("?")[0])  # noqa: PTH100 - a link stays as it was named
    return f" --journal {shlex.quote(path)}" if scheme == "sqlite" else " --journal URL"


def _resolve_folder(path: Path | None) -> Path:
    folder = (path or Path.cwd()).resolve()
    if not folder.is_dir():
        raise CliError(f"workspace_missing: folder not found: {terminal_safe(str(folder))}")
    return folder


def _require_allowed(folder: Path, allowed: Sequence[str]) -> None:
    if not any(folder.is_relative_to(os.path.realpath(each)) for each in allowed):
        raise CliError(
            f"workspace_not_allowed: {terminal_safe(str(folder))} is not in any of the "
            "configured workspaces; change to one, or add this one with --workspace"
        )


def _add_rules(settings: "PolicySettings", rules: Rules) -> "PolicySettings":
    from factwire.runtime.policy import RuleError

    settings = msgspec.structs.replace(
        settings,
        allow=(*settings.allow, *rules.allow),
        ask=(*settings.ask, *rules.ask),
        deny=(*settings.deny, *rules.deny),
    )
    try:
        settings.policy()
    except RuleError as error:
        raise CliError(f"rule_invalid: {terminal_safe(str(error))}") from error
    return settings
