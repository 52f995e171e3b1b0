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
        "sources.mapped.live.approvals": "A decision is written to a live program as it is mapped.",
        "sources.mapped.live.control": "A live program is stopped by its own line, or by a signal.",
        "sources.mapped.live.ends": "A live program that fails ends its turn, and why.",
        "sources.mapped.live.settings": "A live program that cannot work so is refused at once.",
        "sources.mapped.live.turn": "A live program is given its prompt, and its session again.",
        "sources.mapped.problems": "A mapping is refused with every problem at once.",
        "sources.mapped.command": "The convert command takes a mapping, and names its problems.",
    },
)
