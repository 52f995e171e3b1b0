"""Claude Code, as `claude -p --output-format stream-json --verbose` prints it.

With `--include-partial-messages` there are pieces; with the host's side of the pipe in the
recording, prompts and decisions too. A process may hold several turns.
"""

from factwire.sources.claude_code.mapping import SOURCE

__all__ = ["SOURCE"]
