"""Agents: those that come with Factwire, and how others are found."""

from factwire.runtime.agents.demo import DemoAgent, DemoOptions
from factwire.runtime.agents.errors import (
    AgentError,
    BrokenEntryPoint,
    InvalidAgent,
    MissingExtra,
    NameTaken,
    UnknownKind,
)
from factwire.runtime.agents.making import Make, Wrap
from factwire.runtime.agents.openai import OpenAIAgent, OpenAIOptions
from factwire.runtime.agents.pending import Pending, pending_call
from factwire.runtime.agents.registry import BUILT_INS, GROUP, WRAPPERS, Registered, register
from factwire.runtime.agents.shell import ShellAgent

__all__ = [
    "BUILT_INS",
    "GROUP",
    "WRAPPERS",
    "AgentError",
    "BrokenEntryPoint",
    "DemoAgent",
    "DemoOptions",
    "InvalidAgent",
    "Make",
    "MissingExtra",
    "NameTaken",
    "OpenAIAgent",
    "OpenAIOptions",
    "Pending",
    "Registered",
    "ShellAgent",
    "UnknownKind",
    "Wrap",
    "pending_call",
    "register",
]
