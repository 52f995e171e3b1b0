"""What the workbench promises of the past of a thread, and of what lies behind its panels."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

WORKBENCH_TIME_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.travel": "Any moment is reached by pointer, key or link, and every panel "
            "shows it.",
            "workbench.travel-reading": "In the past nothing can be said or decided, and the page "
            "says so.",
            "workbench.travel-cost": "A move across a thread waits for one moment at a time, and "
            "long threads are drawn in part.",
            "workbench.travel-play": "A thread is played and paused at a pace that is chosen.",
            "workbench.travel-fork": "A new thread begins at any moment of another.",
            "workbench.remarks": "Remarks come with their code and what it means, and they and "
            "repairs lead to their facts.",
            "workbench.figures": "Times and costs are those of facts; what none tells is unknown.",
            "workbench.raw-facts": "Facts are found by class, id and words, and exported as found.",
        },
    ),
)
