"""What the workbench promises, and the Edge that serves it."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

WORKBENCH_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *requirements(
        "docs/workbench.md",
        {
            "workbench.page": "The page is served without a token, at its own addresses alone.",
            "workbench.files": "What is named after its content is kept for ever, all else asked "
            "for anew; what compresses is sent so.",
            "workbench.bounds": "No address leads out of the built files or takes one from REST.",
            "workbench.unbuilt": "Without built files, a page says what to do.",
            "workbench.built": "The built files are small, and name no other place.",
            "workbench.entrance": "One click signs in; the token is in no address that is sent.",
            "workbench.types": "The page's types are those of the contracts.",
            "workbench.search": "Threads are found by words of their title.",
            "workbench.upload": "An attachment is stored, and named by its ref in a message.",
            "workbench.moment": "A thread is read, and forked, as it was at any of its events.",
            "workbench.sign-in": "Without a token the page asks for one, and shows nothing else.",
        },
    ),
    *requirements(
        "guarantees.md S2",
        {
            "workbench.guard": "Foreign hosts, frames and pages get nothing; a link does.",
        },
    ),
    *requirements(
        "guarantees.md S9",
        {
            "workbench.policy": "The page runs its own files and talks to its own Edge alone.",
            "workbench.xss": "Nothing that an agent wrote becomes markup, script or a request.",
        },
    ),
)
