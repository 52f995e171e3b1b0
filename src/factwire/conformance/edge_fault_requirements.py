"""What holds of an Edge when something breaks under it."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_FAULT_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "guarantees.md R1, R3, R14, R15; edge.md Runs",
    {
        "edge.faults.kill": "A killed Edge has lost nothing it acknowledged; readers converge, "
        "runs are closed and reaped, queued runs start, approvals wait.",
        "edge.faults.stop": "A stop under load loses no answer, closes streams with 1012 and is "
        "over within five seconds.",
        "edge.faults.disk": "A disk that refuses is told by a code and by run.persistence_error; "
        "reads go on, and no restart is needed.",
        "edge.faults.servers": "A journal's server that dies makes the Edge degraded; once it is "
        "back, all goes on exactly.",
        "edge.faults.start": "An Edge that cannot start says why with exit code 2; damaged lists "
        "are made anew.",
    },
)
