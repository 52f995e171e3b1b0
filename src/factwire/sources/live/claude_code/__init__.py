"""Claude Code, live: `claude -p` for each turn, over its control protocol, on its own session.

Claude Code decides by its own settings what it does without asking. Each call of a tool is shown to
Factwire's policy before that, so that what a rule denies is not done whatever those settings say;
what Claude Code asks reaches a person, unless a rule answers.
"""

from factwire.sources.live.claude_code.agent import MANIFEST, ClaudeCodeAgent, agent
from factwire.sources.live.claude_code.options import PROGRAM, ClaudeCodeOptions

__all__ = ["MANIFEST", "PROGRAM", "ClaudeCodeAgent", "ClaudeCodeOptions", "agent"]
