"""Agents: those that come with Factwire, and how others are found."""

from factwire.runtime.agents.demo_agent import DemoAgent, DemoOptions
from factwire.runtime.agents.openai_agent import OpenAIAgent, OpenAIOptions
from factwire.runtime.agents.registry import (
    BUILT_INS,
    GROUP,
    WRAPPERS,
    AgentRegistry,
    Make,
    Wrap,
    register,
)
from factwire.runtime.agents.shell_agent import ShellAgent
from factwire.runtime.errors import (
    AgentError,
    BrokenEntryPoint,
    InvalidAgent,
    MissingAgentExtra,
    NameTaken,
    UnknownKind,
)
from factwire.runtime.toolbox.tool_calls import Pending, find_pending_call

__all__ = [
    "BUILT_INS",
    "GROUP",
    "WRAPPERS",
    "AgentError",
    "AgentRegistry",
    "BrokenEntryPoint",
    "DemoAgent",
    "DemoOptions",
    "InvalidAgent",
    "Make",
    "MissingAgentExtra",
    "NameTaken",
    "OpenAIAgent",
    "OpenAIOptions",
    "Pending",
    "ShellAgent",
    "UnknownKind",
    "Wrap",
    "find_pending_call",
    "register",
]
