"""What keeps strangers out of an Edge."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

EDGE_SECURITY_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "edge.md Who may talk to it; guarantees.md S1, S2, S3, S7, S8, S14, S15",
    {
        "edge.security.default-deny": "No route answers without the token but those on one list.",
        "edge.security.hosts": "Only known host names are answered.",
        "edge.security.origins": "Pages of other origins may not talk here, even with the token.",
        "edge.security.tickets": "A ticket opens one stream, once, soon; tokens stand in no URL.",
        "edge.security.no-secret-kept": "No token or ticket is in the database, data or log.",
        "edge.security.identity": "Identity, ids and numbers are the server's to say.",
        "edge.security.approvals": "An approval is forged, crossed, replayed or late in vain.",
        "edge.security.insecure-start": "An Edge that would not be safe does not start, and says "
        "why.",
    },
)
