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
    },
)
