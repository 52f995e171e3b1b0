"""What agents promise that work elsewhere and are spoken to over HTTP."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_REMOTE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets; edge.md",
    {
        "sources.remote.turns": "A remote agent is heard, and knows what was said before.",
        "sources.remote.answers": "What a person decides reaches the remote agent that asked.",
        "sources.remote.cancel": "A cancelled turn hangs up, and leaves nothing open.",
        "sources.remote.failures": "A refusal or a cut fails the turn, says why and no secret.",
        "sources.remote.settings": "Settings that cannot be right are refused; secrets are refs.",
        "sources.remote.events": "Events are read however they are cut, in bounded memory.",
    },
)
