"""Configuration: flags, environment, files and defaults as one value that knows its sources."""

from factwire.runtime.configuration.errors import ConfigurationError, Problem
from factwire.runtime.configuration.keys import AGENT_SETTINGS, MCP_SETTINGS, SETTINGS, Setting
from factwire.runtime.configuration.layers import PRECEDENCE, Layer, Origin, SourceKind
from factwire.runtime.configuration.loading import load_configuration
from factwire.runtime.configuration.resolution import Resolved, resolve
from factwire.runtime.configuration.settings import (
    Agent,
    Configuration,
    Limits,
    McpServer,
    PolicySettings,
    SandboxSettings,
)
from factwire.runtime.configuration.showing import Row, rows

__all__ = [
    "AGENT_SETTINGS",
    "MCP_SETTINGS",
    "PRECEDENCE",
    "SETTINGS",
    "Agent",
    "Configuration",
    "ConfigurationError",
    "Layer",
    "Limits",
    "McpServer",
    "Origin",
    "PolicySettings",
    "Problem",
    "Resolved",
    "Row",
    "SandboxSettings",
    "Setting",
    "SourceKind",
    "load_configuration",
    "resolve",
    "rows",
]
