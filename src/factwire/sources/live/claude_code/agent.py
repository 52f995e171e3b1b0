"""Claude Code as the runtime sees it: what it offers, and a process for each turn."""

from typing import Final

from factwire.facts import CapabilityManifest, Streaming
from factwire.runtime.configuration import Agent
from factwire.sources.claude_code import SOURCE
from factwire.sources.live.agent import LiveAgent, Work
from factwire.sources.live.claude_code.options import Setup, setup_of
from factwire.sources.live.claude_code.turn import ClaudeCodeTurn
from factwire.sources.live.turn import LiveTurn

MANIFEST: Final = CapabilityManifest(
    agent_id="claude-code",
    title="Claude Code",
    version="1",
    inputs=("text", "image", "document", "workspace"),
    streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
    approvals="inline",
    action_types=("tool_approval", "structured_input", "plan_decision"),
    controls=("send", "queue", "steer", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="yes",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="yes",
    sandbox="unknown",
    cost="yes",
)


class ClaudeCodeAgent(LiveAgent):
    """Runs Claude Code; each turn is a process of it."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(SOURCE, MANIFEST, keep_raw=setup.options.raw)
        self._setup = setup

    def work(self, live: LiveTurn) -> Work:
        return ClaudeCodeTurn(live, self._setup)


def agent(settings: Agent) -> ClaudeCodeAgent:
    """Claude Code as a configuration asks for it; raises `AgentError`."""
    return ClaudeCodeAgent(setup_of(settings))
