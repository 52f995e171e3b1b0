"""Configuration: flags, environment, files and defaults as one value that knows its sources."""

from factwire.runtime.configuration.configuration import (
    AGENT_SETTINGS,
    MCP_SETTINGS,
    SETTINGS,
    AgentSettings,
    Configuration,
    Limits,
    McpServer,
    PolicySettings,
    RetentionSettings,
    SandboxSettings,
    Setting,
)
from factwire.runtime.configuration.layers import (
    PRECEDENCE,
    ConfigurationError,
    ConfigurationProblem,
    Layer,
    Origin,
    SourceKind,
)
from factwire.runtime.configuration.resolution import (
    ResolvedConfiguration,
    SettingRow,
    list_setting_rows,
    load_configuration,
    resolve,
)

__all__ = [
    "AGENT_SETTINGS",
    "MCP_SETTINGS",
    "PRECEDENCE",
    "SETTINGS",
    "AgentSettings",
    "Configuration",
    "ConfigurationError",
    "ConfigurationProblem",
    "Layer",
    "Limits",
    "McpServer",
    "Origin",
    "PolicySettings",
    "ResolvedConfiguration",
    "RetentionSettings",
    "SandboxSettings",
    "Setting",
    "SettingRow",
    "SourceKind",
    "list_setting_rows",
    "load_configuration",
    "resolve",
]
