"""What the adapters of agent SDKs and of remote agents promise about recorded streams."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_SDK_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets, Traps",
    {
        "sources.recorded-runs.ends": "A recorded run ends as its recorder says, or was cut off.",
        "sources.recorded-runs.decisions": "A run that waits goes on with what was decided.",
        "sources.recorded-runs.undecided": "A run left at its question ended with an interrupt.",
        "sources.recorded-runs.times": "A time is stated in UTC, and one that is none is left out.",
        "sources.openai-agents.usage": "Usage adds up over the responses of a run.",
        "sources.openai-agents.same-id": "Items that share an id are told apart by their place.",
        "sources.openai-agents.items-only": "Run items alone tell the words and the calls.",
        "sources.openai-agents.handoff": "A handoff names both agents and changes who speaks.",
        "sources.openai-agents.hosted": "A call that the provider carries out ends with its item.",
        "sources.openai-agents.mcp": "An MCP approval is asked and answered.",
        "sources.openai-agents.unknown": "Events that are not known are warnings with a ref.",
        "sources.langgraph.identity": "A node that runs twice is two tasks.",
        "sources.langgraph.subgraphs": "What a subgraph says stands in its own transcript.",
        "sources.langgraph.modes": "What several modes say is told once.",
        "sources.langgraph.failed-tool": "A tool message with an error is a failed call.",
        "sources.pydantic-ai.outcomes": "A result is told as its outcome says.",
        "sources.pydantic-ai.deferred": "Deferred calls are asked, and a handler's ruling is told.",
        "sources.pydantic-ai.places": "Parts of another response are other messages.",
        "sources.a2a.states": "A remote task ends its turn as its state says.",
        "sources.a2a.teammate": "A remote agent is a teammate with a transcript of its own.",
        "sources.a2a.artifacts": "The pieces of an artifact are one content.",
    },
)
