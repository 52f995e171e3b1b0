"""What the adapters of outside agents promise about recorded streams."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets, Traps",
    {
        "sources.recordings.valid": "A recorded stream becomes valid facts, every turn ended.",
        "sources.recordings.screen": "A recorded stream shows exactly what was reviewed.",
        "sources.recordings.same-ids": "A stream that is told twice gives the same facts.",
        "sources.recordings.hostile": "Odd items give valid facts, and never an error.",
        "sources.recordings.cut": "A stream cut at any line is valid and says that it was cut.",
        "sources.ai-sdk.resume": "A resumed AI SDK stream tells nothing twice.",
        "sources.ai-sdk.reset-step": "A reset step takes back what it said.",
        "sources.ai-sdk.approvals": "AI SDK approvals are asked, answered and followed.",
        "sources.ai-sdk.ends": "An AI SDK stream ends as it says, or was cut off.",
        "sources.ai-sdk.parts": "Files, sources and data are things, never text.",
        "sources.ag-ui.interrupts": "An AG-UI interrupt asks a person and ends its run.",
        "sources.ag-ui.subagents": "An AG-UI subagent speaks for itself.",
        "sources.ag-ui.state": "AG-UI state deltas patch the shared state.",
        "sources.ag-ui.ends": "An AG-UI run ends as it says, or was cut off.",
    },
)
