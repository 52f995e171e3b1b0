"""What the adapter of OpenCode promises, beyond what all do."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_OPENCODE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md OpenCode",
    {
        "sources.opencode.sessions": "One session is the thread; those below it are subagents.",
        "sources.opencode.ends": "An idle session ends a turn, as the error before it says.",
        "sources.opencode.turns": "A user's message is a turn; one during a turn steers it.",
        "sources.opencode.tools": "A tool ends as its state says, and asks before it if it must.",
        "sources.opencode.retractions": "Messages and parts that are removed are taken back.",
        "sources.opencode.signals": "Retries, plans and diffs are told; the server's talk is not.",
        "sources.opencode.live.approvals": "A decision reaches a live OpenCode, a no with why.",
        "sources.opencode.live.control": "A live OpenCode is steered, aborted, and killed if deaf.",
        "sources.opencode.live.failures": "A live OpenCode that fails ends its turn, and why.",
        "sources.opencode.live.policy": "A rule answers a live OpenCode before a person is asked.",
        "sources.opencode.live.server": "Nobody else reaches the server of a live OpenCode.",
        "sources.opencode.live.turn": "A live OpenCode answers, and goes on with its session.",
        "sources.opencode.next": "Events of session.next come to the same screen, never twice.",
    },
)
