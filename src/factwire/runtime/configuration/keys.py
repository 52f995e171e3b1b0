"""Every setting by its key: how it is read, and what it is for. One row a setting.

A key's variable is its name in capitals, with `_` for dots, behind `FACTWIRE_`. Agents and servers
have names, so their settings are given in files and by flags alone.
"""

from difflib import get_close_matches
from typing import Final

import msgspec

from factwire.runtime.configuration import mcp_values, values
from factwire.runtime.configuration.values import Reader

PREFIX: Final = "FACTWIRE_"

OTHER_VARIABLES: Final = frozenset({"FACTWIRE_EDGE", "FACTWIRE_LOG_LEVEL", "FACTWIRE_TOKEN"})
"""Variables that are no settings: which Edge to ask, its token, and how much one logs."""


class Setting(msgspec.Struct, frozen=True):
    """One setting. `gathers` is whether lists of all sources add up: nobody can take back what
    somebody else forbids.
    """

    key: str
    read: Reader
    sentence: str
    gathers: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.key.upper().replace(".", "_")


_ROWS: Final = (
    Setting("journal", values.journal, "URL of the journal."),
    Setting("data", values.path, "Folder for what is kept."),
    Setting("workspaces", values.paths, "Folders that agents may work in; none is the default."),
    Setting("worktree", values.boolean, "Whether each run of an Edge gets a git worktree."),
    Setting("agent", values.text, "The agent to use when none is named."),
    Setting("policy.mode", values.mode, "What is decided where no rule does."),
    Setting("policy.allow", values.rules, "Rules that allow."),
    Setting("policy.ask", values.rules, "Rules that ask; all sources add up.", gathers=True),
    Setting("policy.deny", values.rules, "Rules that deny; all sources add up.", gathers=True),
    Setting("sandbox.mode", values.sandbox_mode, "Whether commands run in a sandbox."),
    Setting("sandbox.network", values.boolean, "Whether the sandbox has a network."),
    Setting("limits.turn_seconds", values.seconds, "How long a turn may take."),
    Setting("limits.output_bytes", values.whole, "Output of a run that stays in facts."),
    Setting("limits.approval_seconds", values.seconds, "When an open approval is denied."),
    Setting("limits.concurrent_runs", values.whole, "Runs at the same time."),
    Setting("retry.attempts", values.attempts, "How often a turn is tried in all."),
    Setting("retry.delay_seconds", values.seconds, "How long the first wait in between is."),
    Setting("retry.factor", values.factor, "How much longer each wait is than the one before."),
    Setting("retry.categories", values.categories, "Failures after which a turn is tried again."),
    Setting("retry.repeat_effects", values.boolean, "Also after it may have changed something."),
)

SETTINGS: Final[dict[str, Setting]] = {row.key: row for row in _ROWS}

AGENT_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        Setting("kind", values.kind, "A known kind, or an entry point `module:name`."),
        Setting("model", values.text, "The model."),
        Setting("base_url", values.http_url, "Where the model is served."),
        Setting("api_key_env", values.variable, "The variable that holds the key."),
        Setting("retry", values.retry, "How this agent is tried again, as a table."),
        Setting("options", values.options, "Whatever else the agent takes."),
    )
}

MCP_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in (
        Setting("command", mcp_values.command, "The program to run, and its arguments."),
        Setting("env", mcp_values.environment, "Variables for it; ${NAME} refers to yours."),
        Setting("url", values.http_url, "Where it is served, instead of a command."),
        Setting("headers", mcp_values.headers, "Headers for it; ${NAME} refers to a variable."),
        Setting("allow_tools", mcp_values.globs, "Tools that are offered; all is the default."),
        Setting("deny_tools", mcp_values.globs, "Tools that are not."),
        Setting("seconds", values.seconds, "How long a call may take."),
        Setting("start_seconds", values.seconds, "How long it may take to start."),
        Setting("network", values.boolean, "Whether its sandbox has a network."),
        Setting("readable", values.paths, "Folders that its sandbox shows besides."),
        Setting("writable", values.paths, "Folders that it may write besides."),
    )
}

NAMED: Final = {"agents": AGENT_SETTINGS, "mcp": MCP_SETTINGS}
"""Tables of things that have names → the settings of each of them."""

VARIABLES: Final[dict[str, str]] = {row.variable: row.key for row in _ROWS}
"""Variable → key."""

_HINTS: Final = {
    "api_key": "put the key into an environment variable and its name into api_key_env",
    "entry_point": "write it as kind = 'module:name'",
}

_NAME_HINT: Final = "a server's name has small letters, digits and hyphens, at most 32"


def setting_of(key: str) -> Setting | None:
    """The setting that a key names; `agents.NAME.model` and its like included."""
    if key in SETTINGS:
        return SETTINGS[key]
    table, _, rest = key.partition(".")
    name, _, last = rest.partition(".")
    is_named = table in NAMED and name and (table != "mcp" or is_server_name(name))
    return NAMED[table].get(last) if is_named else None


def is_server_name(name: str) -> bool:
    return mcp_values.SERVER_NAME.fullmatch(name) is not None and "--" not in name


def is_group(key: str) -> bool:
    """Whether a key names a table of settings."""
    parts = key.split(".")
    if parts[0] in NAMED:
        return len(parts) <= 2  # noqa: PLR2004
    return any(known.startswith(f"{key}.") for known in SETTINGS)


def hint_for(key: str) -> str:
    """What may have been meant by a key that there is not."""
    before, _, last = key.rpartition(".")
    if last in _HINTS and before.startswith("agents."):
        return _HINTS[last]
    table, _, name = before.partition(".")
    if table == "mcp" and name and not is_server_name(name):
        return _NAME_HINT
    named = NAMED.get(table, {}) if name and "." not in name else {}
    known = [f"{before}.{each}" for each in named] if named else [*SETTINGS, *NAMED]
    close = get_close_matches(key, known, 1) or [
        each for each in known if each.rpartition(".")[2] == last
    ]
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


def variable_hint(name: str) -> str:
    close = get_close_matches(name, VARIABLES, 1)
    return f"did you mean {close[0]}?" if close else "`factwire config` lists all settings"
