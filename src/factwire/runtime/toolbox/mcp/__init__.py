"""MCP: servers of tools that a turn starts when it needs them, each call under the policy."""

from factwire.runtime.toolbox.mcp.names import PREFIX, Offered
from factwire.runtime.toolbox.mcp.references import MissingVariable, resolved, variables_of
from factwire.runtime.toolbox.mcp.servers import EXTRA, Servers, is_installed
from factwire.runtime.toolbox.mcp.ways import is_near

__all__ = [
    "EXTRA",
    "PREFIX",
    "MissingVariable",
    "Offered",
    "Servers",
    "is_installed",
    "is_near",
    "resolved",
    "variables_of",
]
