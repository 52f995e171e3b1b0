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
        "sources.acp.live.turn": "A turn goes on with its session, or says that it cannot.",
        "sources.acp.live.approvals": "A decision is the option that says the same.",
        "sources.acp.live.policy": "A rule answers the agent before a person is asked.",
        "sources.acp.live.files": "Files are those of the workspace, under the policy.",
        "sources.acp.live.control": "A turn is cancelled with its questions, or else killed.",
        "sources.acp.live.inputs": "An agent is given what it says it can take.",
        "sources.acp.live.failures": "An agent that fails ends the turn, and says why.",
        "sources.acp.live.settings": "Settings that make no sense are refused.",
        "sources.acp.signals": "Plans, modes and cancels are told; unheard updates are warnings.",
    },
)
