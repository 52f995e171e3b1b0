"""What the converter of Claude Code promises, and what Claude Code does live."""

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
        "sources.claude-code.live.session": "A turn goes on with the session of the last.",
        "sources.claude-code.live.asks": "People decide what it asks, seeing exactly what is done.",
        "sources.claude-code.live.questions": "Questions and plans are answered in its form.",
        "sources.claude-code.live.rules": "A rule holds whatever its own settings would allow.",
        "sources.claude-code.live.always": "What a person allowed always is asked of nobody again.",
        "sources.claude-code.live.end": "A turn ends when no further answer is to come.",
        "sources.claude-code.live.steer": "What is said into a turn is answered within it.",
        "sources.claude-code.live.stop": "A stop is its own interrupt, and certain.",
        "sources.claude-code.live.failures": "A process that fails fails its turn with its words.",
        "sources.claude-code.live.environment": "Keys pass by name, what is not its own does not.",
        "sources.claude-code.live.setup": "What cannot be set is refused, what is missing named.",
    },
)
