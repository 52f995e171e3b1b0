"""The words facts are made of, as closed lists of what Factwire knows.

Every list is open on the wire: a word that is not here is kept, shown and passed on, never guessed
at and never promoted to a known one.
"""

from typing import Final

UNKNOWN: Final = "unknown"

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

TURN_TERMINALS: Final = ("turn.completed", "turn.failed", "turn.canceled")

ACTION_CLOSERS: Final = (
    "action.resolved",
    "action.cancelled",
    "action.canceled",
    "action.expired",
)

LEGACY_TERMINALS: Final = (
    "done",
    "final_done",
    "cancelled",
    "turn.done",
    "turn.final_done",
    "turn.cancelled",
)

CLASS_ALIASES: Final = {
    "message.delta": "model.delta",
    "thinking.delta": "reasoning.delta",
    "runtime.status": "run.status",
    "artifact.snapshot": "artifact.changed",
}

_KIND_OF_PREFIX: Final = {
    "action": "action",
    "artifact": "draft",
    "context": "context",
    "evidence": "evidence",
    "review": "evidence",
    "model": "model",
    "message": "model",
    "reasoning": "note",
    "permission": "permission",
    "sandbox": "sandbox",
    "tool": "tool",
    "command": "tool",
    "patch": "tool",
    "test": "tool",
    "file": "tool",
    "task": "handoff",
    "subagent": "handoff",
    "handoff": "handoff",
    "worker": "handoff",
}

_STATUS_OF_SUFFIX: Final = {
    "required": "blocked",
    "started": "running",
    "delta": "running",
    "progress": "running",
    "failed": "failed",
    "result": "completed",
    "completed": "completed",
    "resolved": "completed",
}

_STATUS_OF_TERMINAL: Final = {
    "turn.completed": "completed",
    "turn.failed": "failed",
    "turn.canceled": "canceled",
}


def kind_of(event_class: str) -> str:
    """The kind a fact has when its source names only a class."""
    return _KIND_OF_PREFIX.get(event_class.partition(".")[0], "state")


def status_of(event_class: str) -> str:
    """The status a fact has when its source names only a class."""
    terminal = _STATUS_OF_TERMINAL.get(event_class)
    return terminal or _STATUS_OF_SUFFIX.get(event_class.rpartition(".")[2], "pending")
