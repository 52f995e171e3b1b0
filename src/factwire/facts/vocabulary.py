"""The words facts are made of, as closed lists of what Factwire knows.

Every list is open on the wire: a word that is not here is kept, shown and passed on, never guessed
at and never promoted to a known one.
"""

from typing import Final, Literal

UNKNOWN: Final = "unknown"

Shape = Literal["facts", "runtime-event", "ui"]
AnyShape = Literal["auto", "facts", "runtime-event", "ui"]

SHAPES: Final[tuple[Shape, ...]] = ("facts", "runtime-event", "ui")

KINDS: Final = (
    "context",
    "source",
    "skill",
    "tool",
    "permission",
    "sandbox",
    "state",
    "model",
    "draft",
    "handoff",
    "action",
    "evidence",
    "note",
)

STATUSES: Final = ("pending", "running", "completed", "blocked", "canceled", "failed")

OWNERS: Final = (
    "runtime",
    "model",
    "tool",
    "action",
    "artifact",
    "evidence",
    "context",
    "policy",
    "task",
    "session",
    "diagnostics",
    "ui_projection",
    "agent",
    "team",
    UNKNOWN,
)

SCOPES: Final = (
    "application",
    "workspace",
    "team",
    "session",
    "thread",
    "run",
    "turn",
    "message",
    "part",
    "task",
    "agent",
    "tool_call",
    "action_request",
    "artifact",
    "evidence",
    UNKNOWN,
)

PHASES: Final = (
    "draft",
    "submitted",
    "accepted",
    "routing",
    "preparing",
    "planning",
    "reasoning",
    "acting",
    "waiting",
    "reviewing",
    "producing",
    "reconciling",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
    "archived",
    "hydrating",
    UNKNOWN,
)

SURFACES: Final = (
    "composer",
    "conversation",
    "inline_process",
    "runtime_status",
    "tool_ui",
    "hitl",
    "task_capsule",
    "artifact_workspace",
    "timeline_evidence",
    "session_tabs",
    "diagnostics",
    "team_roster",
    "work_board",
    "delegation_graph",
    "handoff_lane",
    "worker_notifications",
    "review_lane",
    "teammate_transcript",
    "background_teammate",
    "remote_teammate",
    "team_policy",
    "custom",
    UNKNOWN,
)

PERSISTENCE: Final = (
    "ephemeral_live",
    "transcript",
    "snapshot",
    "archive",
    "artifact_store",
    "evidence_pack",
    "diagnostics_log",
    "ui_local",
    UNKNOWN,
)

CONTROLS: Final = (
    "send",
    "queue",
    "steer",
    "interrupt",
    "delegate",
    "assign",
    "continue_agent",
    "wait",
    "stop",
    "close",
    "request_review",
    "approve",
    "reject",
    "answer",
    "edit",
    "retry",
    "rollback",
    "export",
    "open_detail",
    "remove",
    "none",
)

TOPOLOGIES: Final = (
    "solo_run",
    "coordinator_team",
    "parallel_workers",
    "specialist_handoff",
    "review_team",
    "human_agent_board",
    "background_teammate",
    "remote_teammate",
    UNKNOWN,
)

RUNTIME_ENTITIES: Final = (
    "agent_turn",
    "subagent_turn",
    "automation_job",
    "external_task",
    "work_item",
    UNKNOWN,
)

ACTION_TYPES: Final = (
    "tool_approval",
    "plan_decision",
    "teammate_plan_decision",
    "structured_input",
    "clarification",
    "permission_grant",
    "delegated_permission",
    "credential_request",
    "artifact_review",
    "cost_confirmation",
    "policy_waiver",
)

TOOL_STATES: Final = (
    "input-streaming",
    "input-available",
    "running",
    "progress",
    "output-available",
    "output-error",
    "cancelled",
)

TASK_STATES: Final = (
    "draft",
    "accepted",
    "queued",
    "preparing",
    "running",
    "waiting_input",
    "waiting_permission",
    "waiting_resource",
    "blocked",
    "paused",
    "retrying",
    "cancelling",
    "cancelled",
    "timed_out",
    "failed",
    "lost",
    "completed",
    "archived",
    "stale",
    UNKNOWN,
)

EVIDENCE_KINDS: Final = ("trace", "replay", "review", "verification", "audit", "benchmark")

LEGACY_TERMINALS: Final = (
    "done",
    "final_done",
    "cancelled",
    "turn.done",
    "turn.final_done",
    "turn.cancelled",
)
