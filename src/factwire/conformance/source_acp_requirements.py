"""What the adapter of the Agent Client Protocol promises, beyond what all do."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_ACP_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md ACP",
    {
        "sources.acp.ids": "A response finds its request, though both sides count from 0.",
        "sources.acp.text": "Chunks become whole messages, and history is no new turn.",
        "sources.acp.tools": "Calls, diffs and terminals are told once, when they are true.",
        "sources.acp.approvals": "A question is decided as the kind of the chosen option says.",
        "sources.acp.ends": "A turn ends as the response to its prompt says.",
        "sources.acp.costs": "A turn is told its share of what the session has used.",
        "sources.acp.signals": "Plans, modes and cancels are told; unheard updates are warnings.",
    },
)
