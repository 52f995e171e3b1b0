"""What the workbench promises of approvals, artifacts and evidence."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

WORKBENCH_THINGS_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "docs/workbench.md",
    {
        "workbench.approvals.everywhere": "What is decided in one browser is decided in all, and a "
        "card says so once a fact does.",
        "workbench.approvals.shown": "A card shows exactly what would be done, who asks, where, "
        "and by which rule.",
        "workbench.approvals.rule": "The rule of an always is on screen before it is granted, and "
        "without one nothing is offered.",
        "workbench.approvals.form": "A question is a form of its schema, and its answer has the "
        "types that the schema asks for.",
        "workbench.approvals.changed": "What changes under a reader's eyes must be read again "
        "before it can be decided.",
        "workbench.approvals.attention": "How much waits is in the title and on the icon; a "
        "notification names the thread and no more.",
        "workbench.artifacts.versions": "Versions of an artifact are shown, compared and saved.",
        "workbench.artifacts.unknown": "Content of an unknown kind is never rendered.",
        "workbench.artifacts.preview": "A page is shown from an origin of its own, on request.",
        "workbench.evidence.verdicts": "A verdict is what a fact says, else unknown.",
        "workbench.evidence.packs": "A pack is made, verified and saved.",
    },
)
