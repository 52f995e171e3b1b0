"""What the workbench promises of its graph and its team."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

WORKBENCH_TEAM_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.graph.stated": "The graph draws nodes and edges that facts state, and "
            "opens each.",
            "workbench.graph.steady": "Nodes that come move none that are there.",
            "workbench.graph.keyboard": "Keys lead to neighbours, open, fold and zoom.",
            "workbench.graph.words": "An outline says in words what the graph draws.",
            "workbench.graph.many": "Of thousands of nodes, those on screen alone are drawn.",
            "workbench.graph.moment": "At a moment of the past, the graph is as it was then.",
            "workbench.team.surfaces": "Members, work, handoffs and reviews are those of the "
            "projection; where there are none, the page says so.",
            "workbench.team.transcript": "A teammate opens with a transcript of its own.",
        },
    ),
    *requirements(
        "seed 002, acceptance 9 and 10",
        {
            "workbench.team.reports": "A worker's report is told apart from what people say.",
            "workbench.team.requests": "A teammate's request names it, and is answered with the "
            "card that every request has.",
        },
    ),
)
