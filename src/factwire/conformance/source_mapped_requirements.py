"""What mapping files promise: streams of any program, by a description that is checked first."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_MAPPED_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets, Traps",
    {
        "sources.mapped.screen": "A mapped stream shows exactly what was reviewed.",
        "sources.mapped.codex": "A mapping of Codex tells what the adapter of Codex tells.",
        "sources.mapped.cut": "A mapped stream is valid and closed wherever it is cut.",
        "sources.mapped.same-ids": "A mapped stream that is told twice gives the same facts.",
        "sources.mapped.hostile": "Odd items give valid facts by any mapping, and never an error.",
        "sources.mapped.values": "A mapping takes values by paths, constants and tables.",
        "sources.mapped.conditions": "A rule is about the items that its conditions hold for.",
        "sources.mapped.ids": "What has no id is numbered, or is the one that is open.",
        "sources.mapped.times": "A mapped time is ISO 8601 with an offset, or counted from 1970.",
        "sources.mapped.usage": "Usage is of a step, of a turn or of the thread, as mapped.",
        "sources.mapped.incomplete": "An item that lacks what its fact needs is a warning.",
        "sources.mapped.unknown": "An item that no rule is about is a warning with a ref.",
        "sources.mapped.ends": "A mapped turn ends once.",
        "sources.mapped.problems": "A mapping is refused with every problem at once.",
        "sources.mapped.command": "The convert command takes a mapping, and names its problems.",
    },
)
