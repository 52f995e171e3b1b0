"""What every outside agent promises while the runtime runs it."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

SOURCE_LIVE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "sources.md Targets",
    {
        "sources.live.same-facts": "A live turn becomes what its recording would become.",
        "sources.live.names": "Names that a source uses again are new on the thread.",
        "sources.live.decisions": "A decision reaches the agent that asked, as it was made.",
        "sources.live.cut": "An agent that dies or goes silent fails its turn, and says why.",
        "sources.live.cancel": "A cancelled turn leaves no program and nothing open.",
        "sources.live.entry-points": "Every agent and wrapper of the package loads without an SDK, "
        "with a sound manifest.",
        "sources.live.loopback": "With the settings that its page names, an agent reaches for "
        "nothing but its model.",
        "sources.live.command-line": "A real agent is run, answered from another terminal and "
        "continued by the command alone, here and over an Edge.",
        "sources.live.big": "What is too big for a fact leaves a live agent as a ref, redacted.",
        "sources.live.raw": "What is not known is named, and kept only on request, redacted.",
    },
)
