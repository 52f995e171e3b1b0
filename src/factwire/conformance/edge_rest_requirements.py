"""What the REST interface of an Edge promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_REST_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Commands, Runs",
    {
        "edge.rest.runs": "A run is accepted at once, and its end is told by facts and lists.",
        "edge.rest.approvals": "An approval is decided once, for its run, on what was shown.",
        "edge.rest.standing": "The rule of an always is told before it is granted, or why none is.",
        "edge.rest.cancel": "A run is cancelled once; it can be tried again as a new one.",
        "edge.rest.queue": "A second run on a thread waits in a queue that can be changed.",
        "edge.rest.limits": "As many runs as may are active; one more is refused and leaves "
        "nothing.",
        "edge.rest.idempotency": "A POST under one key is done once, after a restart too.",
        "edge.rest.threads": "Threads are made, named, archived, forked and deleted.",
        "edge.rest.projects": "A project's folder lies in a workspace, and its runs work there.",
        "edge.rest.snapshot-cursor": "Every snapshot says the cursor from which events go on.",
        "edge.rest.outside-facts": "Facts from outside are checked, redacted, atomic, idempotent.",
        "edge.rest.evidence": "A thread's evidence pack is made, fetched and verified.",
        "edge.rest.evidence.progress": "While a pack is made, it is told how far it is.",
        "edge.rest.artifacts": "Artifacts and blobs are attachments, by id and never by path.",
        "edge.rest.time-travel": "A thread's state can be read as of any cursor.",
        "edge.rest.problems": "Whatever is refused is told by a stable code and a trace id.",
        "edge.records.belonging": "What a fact says changes rows of its own thread alone.",
        "edge.records.pure": "Lists follow from facts alone, and go on from where they were saved.",
        "edge.recovery": "Approvals and queued runs of a former run of the server stay.",
    },
)
