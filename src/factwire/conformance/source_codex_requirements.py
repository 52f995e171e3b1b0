"""What the converters of Codex promise, exec and app server."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

CODEX_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Codex",
    {
        "sources.codex-exec.errors": "An error ends a turn only where nothing else does.",
        "sources.codex-exec.usage": "A turn's usage is what it used, not the thread's sum.",
        "sources.codex-exec.agents": "Agents that a call names are told with their end.",
        "sources.codex-app-server.answers": "An answer belongs to the side that asked.",
        "sources.codex-app-server.unknown-decision": "A settled request unanswered is unknown.",
        "sources.codex-app-server.prompts": "The prompt is the turn's; a later one steers it.",
        "sources.codex-app-server.agents": "Another thread is a subagent with its own turn.",
        "sources.codex-app-server.retry": "What a repeated request had streamed is taken back.",
        "sources.codex-app-server.errors": "Errors become categories of ours.",
        "sources.codex-app-server.items": "Items that recordings lack become what they should.",
        "sources.codex-exec.live.turn": "A turn asks nobody and goes on with Codex's thread.",
        "sources.codex-exec.live.failures": "A process that fails ends the turn, and says why.",
        "sources.codex-app-server.live.turn": "A turn goes on with the thread that Codex keeps.",
        "sources.codex-app-server.live.approvals": "A decision reaches Codex as what it is.",
        "sources.codex-app-server.live.policy": "A rule answers Codex before a person is asked.",
        "sources.codex-app-server.live.control": "A turn can be steered, stopped, and killed.",
        "sources.codex-app-server.live.agents": "A turn lasts as long as its subagents work.",
        "sources.codex-app-server.live.inputs": "Images and texts are given, others refused.",
        "sources.codex-app-server.live.failures": "A process that fails ends the turn with why.",
        "sources.codex-app-server.live.settings": "Settings that make no sense are refused.",
        "sources.codex-app-server.usage": "A turn's usage is what it used, not the thread's sum.",
    },
)
