"""What the converter of Claude Code promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

CLAUDE_CODE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Claude Code",
    {
        "sources.claude-code.parts": "Each text of an API message is a part, streamed or not.",
        "sources.claude-code.turns": "Each result ends one turn; a process may hold several.",
        "sources.claude-code.ends": "A result ends as it says: done, failed, or stopped.",
        "sources.claude-code.background": "A background subagent outlives its turn, unmixed.",
        "sources.claude-code.approvals": "Questions are closed by answer, withdrawal or end.",
        "sources.claude-code.retraction": "What a later line takes back is taken back.",
        "sources.claude-code.retry": "What a repeated request had streamed is taken back.",
        "sources.claude-code.results": "A tool result says if it ran, and names files and refs.",
        "sources.claude-code.remarks": "Limits, hooks, errors and remarks never become text.",
        "sources.claude-code.queue": "A prompt in a running turn waits for the next.",
    },
)
