"""What an Edge lets those see who run it, and what it keeps even from them."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_OBSERVING_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge, Observability",
    {
        "edge.observing.metrics": "Requests, streams, journal, runs, approvals and the process are "
        "told to Prometheus, by one registry an Edge.",
        "edge.observing.bounded": "No id, path or method that somebody sends makes a series.",
        "edge.observing.one-trace": "A request, its run and what the run did are one trace: that "
        "of the run's envelopes.",
        "edge.observing.kept-trace": "A turn's facts carry the trace of who asked for it, also "
        "after a wait and a restart.",
        "edge.observing.spans": "Spans have the facts' times and no text of anybody's; without a "
        "collector there are none.",
        "edge.observing.logs": "Each request, stream, start, stop and recovery is one line, as "
        "JSON or as text, and so are warnings of libraries.",
        "edge.observing.no-secrets": "No token, ticket, query, header, path, body or secret in an "
        "error is logged.",
        "edge.observing.health": "A stranger learns that an Edge is well; who shows the token "
        "learns how it is.",
    },
)
