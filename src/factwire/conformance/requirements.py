"""Every behaviour that Factwire claims, by id; its level, and why a run may be unable to judge it.

A test carries the id of what it proves (`@pytest.mark.requirement("…")`); a test of this table
checks both directions. One module an area; a new area is one import and one line here.
"""

from typing import Final

from factwire.conformance.case import Level
from factwire.conformance.cli_requirements import CLI_REQUIREMENTS, CLIENT_REQUIREMENTS
from factwire.conformance.edge_requirements import (
    EDGE_ACCESS_REQUIREMENTS,
    EDGE_ATTACK_REQUIREMENTS,
    EDGE_CONTROL_REQUIREMENTS,
    EDGE_EVENT_REQUIREMENTS,
    EDGE_FAULT_REQUIREMENTS,
    EDGE_OBSERVING_REQUIREMENTS,
    EDGE_PREVIEW_REQUIREMENTS,
    EDGE_REST_REQUIREMENTS,
    EDGE_SECURITY_REQUIREMENTS,
    EDGE_STREAM_REQUIREMENTS,
)
from factwire.conformance.facts_requirements import FACTS_REQUIREMENTS, LIFECYCLE_REQUIREMENTS
from factwire.conformance.hub_requirements import (
    CHAT_REQUIREMENTS,
    HUB_APPROVAL_REQUIREMENTS,
    HUB_REQUIREMENTS,
    LINK_REQUIREMENTS,
    MIRROR_REQUIREMENTS,
    TEAM_REQUIREMENTS,
)
from factwire.conformance.journal_requirements import (
    COMPARISON_REQUIREMENTS,
    EVIDENCE_REQUIREMENTS,
    JOURNAL_REQUIREMENTS,
)
from factwire.conformance.projection_requirements import (
    PROJECTION_REQUIREMENTS,
    PROJECTION_RULE_REQUIREMENTS,
)
from factwire.conformance.runtime_requirements import (
    AGENT_REQUIREMENTS,
    MCP_REQUIREMENTS,
    OPENAI_AGENT_REQUIREMENTS,
    PROCESS_REQUIREMENTS,
    RUNTIME_REQUIREMENTS,
    STEERING_REQUIREMENTS,
    TURN_REQUIREMENTS,
)
from factwire.conformance.source_requirements import (
    CLAUDE_CODE_REQUIREMENTS,
    CODEX_REQUIREMENTS,
    OUTLET_REQUIREMENTS,
    SOURCE_ACP_REQUIREMENTS,
    SOURCE_LIVE_REQUIREMENTS,
    SOURCE_LIVE_SDK_REQUIREMENTS,
    SOURCE_MAPPED_REQUIREMENTS,
    SOURCE_OPENCODE_REQUIREMENTS,
    SOURCE_REMOTE_REQUIREMENTS,
    SOURCE_REQUIREMENTS,
    SOURCE_SDK_REQUIREMENTS,
)
from factwire.conformance.suite_requirements import (
    ENGINE_REQUIREMENTS,
    SEED_REQUIREMENTS,
    Requirement,
)
from factwire.conformance.workbench_requirements import (
    WORKBENCH_QUALITY_REQUIREMENTS,
    WORKBENCH_REQUIREMENTS,
    WORKBENCH_TEAM_REQUIREMENTS,
    WORKBENCH_THINGS_REQUIREMENTS,
    WORKBENCH_TIME_REQUIREMENTS,
)

_AREAS: Final = (
    FACTS_REQUIREMENTS,
    LIFECYCLE_REQUIREMENTS,
    JOURNAL_REQUIREMENTS,
    PROJECTION_REQUIREMENTS,
    PROJECTION_RULE_REQUIREMENTS,
    RUNTIME_REQUIREMENTS,
    TURN_REQUIREMENTS,
    STEERING_REQUIREMENTS,
    PROCESS_REQUIREMENTS,
    AGENT_REQUIREMENTS,
    OPENAI_AGENT_REQUIREMENTS,
    MCP_REQUIREMENTS,
    CLI_REQUIREMENTS,
    CLIENT_REQUIREMENTS,
    EDGE_EVENT_REQUIREMENTS,
    EDGE_CONTROL_REQUIREMENTS,
    EDGE_OBSERVING_REQUIREMENTS,
    EDGE_FAULT_REQUIREMENTS,
    EDGE_REST_REQUIREMENTS,
    EDGE_PREVIEW_REQUIREMENTS,
    EDGE_SECURITY_REQUIREMENTS,
    EDGE_ACCESS_REQUIREMENTS,
    EDGE_ATTACK_REQUIREMENTS,
    EDGE_STREAM_REQUIREMENTS,
    WORKBENCH_REQUIREMENTS,
    WORKBENCH_QUALITY_REQUIREMENTS,
    WORKBENCH_TEAM_REQUIREMENTS,
    WORKBENCH_THINGS_REQUIREMENTS,
    WORKBENCH_TIME_REQUIREMENTS,
    COMPARISON_REQUIREMENTS,
    EVIDENCE_REQUIREMENTS,
    SEED_REQUIREMENTS,
    SOURCE_ACP_REQUIREMENTS,
    SOURCE_OPENCODE_REQUIREMENTS,
    SOURCE_REQUIREMENTS,
    SOURCE_LIVE_REQUIREMENTS,
    SOURCE_LIVE_SDK_REQUIREMENTS,
    CLAUDE_CODE_REQUIREMENTS,
    CODEX_REQUIREMENTS,
    SOURCE_SDK_REQUIREMENTS,
    SOURCE_MAPPED_REQUIREMENTS,
    OUTLET_REQUIREMENTS,
    SOURCE_REMOTE_REQUIREMENTS,
    ENGINE_REQUIREMENTS,
    CHAT_REQUIREMENTS,
    HUB_APPROVAL_REQUIREMENTS,
    HUB_REQUIREMENTS,
    TEAM_REQUIREMENTS,
    LINK_REQUIREMENTS,
    MIRROR_REQUIREMENTS,
)

REQUIREMENTS: Final[dict[str, Requirement]] = {
    requirement.id: requirement for area in _AREAS for requirement in area
}

KNOWN_GAPS: Final[dict[str, str]] = {}
"""Id of a requirement that does not hold yet, or that nothing proves yet → the reason."""

_LEVEL_BY_AREA: Final[dict[Level, tuple[str, ...]]] = {
    "facts": (
        *("stream", "facts", "vocabulary", "classification", "payloads", "ui", "needs"),
        *("validation", "fixtures", "sequences", "redaction", "spill", "intake", "refs"),
        *("resume", "capabilities", "schemas", "inputs", "fuzz", "lifecycle", "reading"),
    ),
    "projection": ("screen", "projection", "seed", "comparison", "evidence", "outlets"),
    "runtime": (
        *("provider", "runtime", "journal", "sources", "cli", "client", "edge", "workbench"),
        *("conformance", "hub", "teams", "link", "mirror"),
    ),
    "supervisor": ("supervisor",),
}
"""Level → the first words of its requirements."""

LEVEL_OF_AREA: Final[dict[str, Level]] = {
    area: level for level, areas in _LEVEL_BY_AREA.items() for area in areas
}


def level_of(name: str) -> Level:
    """The level that a requirement belongs to; one of nobody's area is the runtime's."""
    return LEVEL_OF_AREA.get(name.partition(".")[0], "runtime")


NOT_JUDGEABLE: Final[dict[str, str]] = {
    "edge": "needs a running server; tests/edge proves it",
    "mirror": "needs running servers; tests/hub proves it",
    "link": "needs running servers; tests/hub proves it",
    "hub": "needs a running server; tests/hub proves it",
    "teams": "needs running servers; tests/hub proves it",
    "client": "needs a running server; tests/client proves it",
    "workbench": "needs a browser; tests/workbench proves it",
    "cli": "needs a terminal and processes of its own; tests/cli proves it",
    "sources": "needs recordings of outside agents, or the agents; tests/sources and tests/agents "
    "prove it",
    "outlets": "needs the packages of other protocols; tests/outlets proves it",
    "journal": "needs databases, crashes and restarts; tests/journal proves it",
    "evidence": "needs journals, keys and files; tests/evidence proves it",
    "comparison": "needs runs to compare; tests/evidence proves it",
    "runtime": "needs programs, restarts and failures on purpose; tests/runtime proves it",
    "projection": "needs more streams than the package contains; tests/projection proves it",
    "schemas": "needs the files of the repository; tests/facts proves it",
    "fuzz": "needs a long series of random inputs; tests/facts proves it",
    "spill": "needs a store for blobs; tests/facts proves it",
    "seed": "needs the seeds and the scripts of the fixtures; tests/conformance proves it",
    "conformance": "is about a run itself, which cannot judge itself; tests/conformance proves it",
}
"""First word of a requirement → why no black-box run can judge it, and what proves it instead."""
