"""Every behaviour that Factwire claims, by id.

A test carries the id of what it proves (`@pytest.mark.requirement("…")`); a test of this table
checks both directions. One module an area; a new area is one import and one line here.
"""

from typing import Final

from factwire.conformance.agent_requirements import AGENT_REQUIREMENTS
from factwire.conformance.cli_requirements import CLI_REQUIREMENTS
from factwire.conformance.client_requirements import CLIENT_REQUIREMENTS
from factwire.conformance.comparison_requirements import COMPARISON_REQUIREMENTS
from factwire.conformance.edge_attack_requirements import EDGE_ATTACK_REQUIREMENTS
from factwire.conformance.edge_event_requirements import EDGE_EVENT_REQUIREMENTS
from factwire.conformance.edge_fault_requirements import EDGE_FAULT_REQUIREMENTS
from factwire.conformance.edge_observing_requirements import EDGE_OBSERVING_REQUIREMENTS
from factwire.conformance.edge_preview_requirements import EDGE_PREVIEW_REQUIREMENTS
from factwire.conformance.edge_rest_requirements import EDGE_REST_REQUIREMENTS
from factwire.conformance.edge_security_requirements import EDGE_SECURITY_REQUIREMENTS
from factwire.conformance.edge_stream_requirements import EDGE_STREAM_REQUIREMENTS
from factwire.conformance.engine_requirements import ENGINE_REQUIREMENTS
from factwire.conformance.evidence_requirements import EVIDENCE_REQUIREMENTS
from factwire.conformance.facts_requirements import FACTS_REQUIREMENTS
from factwire.conformance.journal_requirements import JOURNAL_REQUIREMENTS
from factwire.conformance.lifecycle_requirements import LIFECYCLE_REQUIREMENTS
from factwire.conformance.mcp_requirements import MCP_REQUIREMENTS
from factwire.conformance.openai_agent_requirements import OPENAI_AGENT_REQUIREMENTS
from factwire.conformance.outlet_requirements import OUTLET_REQUIREMENTS
from factwire.conformance.process_requirements import PROCESS_REQUIREMENTS
from factwire.conformance.projection_requirements import PROJECTION_REQUIREMENTS
from factwire.conformance.projection_rule_requirements import PROJECTION_RULE_REQUIREMENTS
from factwire.conformance.requirement import Requirement
from factwire.conformance.runtime_requirements import RUNTIME_REQUIREMENTS
from factwire.conformance.seed_requirements import SEED_REQUIREMENTS
from factwire.conformance.source_acp_requirements import SOURCE_ACP_REQUIREMENTS
from factwire.conformance.source_claude_code_requirements import CLAUDE_CODE_REQUIREMENTS
from factwire.conformance.source_codex_requirements import CODEX_REQUIREMENTS
from factwire.conformance.source_live_requirements import SOURCE_LIVE_REQUIREMENTS
from factwire.conformance.source_live_sdk_requirements import SOURCE_LIVE_SDK_REQUIREMENTS
from factwire.conformance.source_mapped_requirements import SOURCE_MAPPED_REQUIREMENTS
from factwire.conformance.source_opencode_requirements import SOURCE_OPENCODE_REQUIREMENTS
from factwire.conformance.source_remote_requirements import SOURCE_REMOTE_REQUIREMENTS
from factwire.conformance.source_requirements import SOURCE_REQUIREMENTS
from factwire.conformance.source_sdk_requirements import SOURCE_SDK_REQUIREMENTS
from factwire.conformance.steering_requirements import STEERING_REQUIREMENTS
from factwire.conformance.turn_requirements import TURN_REQUIREMENTS
from factwire.conformance.workbench_quality_requirements import WORKBENCH_QUALITY_REQUIREMENTS
from factwire.conformance.workbench_requirements import WORKBENCH_REQUIREMENTS
from factwire.conformance.workbench_team_requirements import WORKBENCH_TEAM_REQUIREMENTS
from factwire.conformance.workbench_things_requirements import WORKBENCH_THINGS_REQUIREMENTS
from factwire.conformance.workbench_time_requirements import WORKBENCH_TIME_REQUIREMENTS

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
    EDGE_OBSERVING_REQUIREMENTS,
    EDGE_FAULT_REQUIREMENTS,
    EDGE_REST_REQUIREMENTS,
    EDGE_PREVIEW_REQUIREMENTS,
    EDGE_SECURITY_REQUIREMENTS,
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
)

REQUIREMENTS: Final[dict[str, Requirement]] = {
    requirement.id: requirement for area in _AREAS for requirement in area
}

KNOWN_GAPS: Final[dict[str, str]] = {}
"""Id of a requirement that does not hold yet, or that nothing proves yet → the reason."""
