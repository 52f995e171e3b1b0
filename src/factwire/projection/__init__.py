"""Projection: what facts mean on a screen, as a pure function of them.

Facts go in one at a time; a state and the changes to it come out. No input or output, no clock.
"""

from factwire.facts.json_patch import InvalidPatch, JsonDocument
from factwire.projection.changes import Changes, Operation, advance, fold_changes
from factwire.projection.diagnostics import DIAGNOSTIC_CODES, DiagnosticCode
from factwire.projection.ordering import order_facts
from factwire.projection.projection import Projection, project
from factwire.projection.read_models import (
    READ_MODEL_VERSION,
    ArtifactRef,
    EvidenceRef,
    InvalidReadModel,
    SessionSnapshot,
    TaskSnapshot,
    ThreadReadModel,
    artifact_ref,
    evidence_ref,
    read_thread_model,
    session_snapshot,
    task_snapshot,
    thread_read_model,
)
from factwire.projection.selectors import (
    ActiveProcess,
    Attention,
    GraphView,
    PendingAction,
    TeamView,
    TimelinePage,
    active_process,
    attention,
    conversation,
    graph_view,
    pending_actions,
    team_view,
    timeline_page,
    transcript,
    unconfirmed_ids,
)
from factwire.projection.state import (
    STATE_VERSION,
    ProjectionState,
    UnreadableCheckpoint,
    decode_state,
    empty_state,
    encode_state,
)
from factwire.projection.ui_messages import from_ui_messages, to_ui_messages
from factwire.projection.views import Text

__all__ = [
    "DIAGNOSTIC_CODES",
    "READ_MODEL_VERSION",
    "STATE_VERSION",
    "ActiveProcess",
    "ArtifactRef",
    "Attention",
    "Changes",
    "DiagnosticCode",
    "EvidenceRef",
    "GraphView",
    "InvalidPatch",
    "InvalidReadModel",
    "JsonDocument",
    "Operation",
    "PendingAction",
    "Projection",
    "ProjectionState",
    "SessionSnapshot",
    "TaskSnapshot",
    "TeamView",
    "Text",
    "ThreadReadModel",
    "TimelinePage",
    "UnreadableCheckpoint",
    "active_process",
    "advance",
    "artifact_ref",
    "attention",
    "conversation",
    "decode_state",
    "empty_state",
    "encode_state",
    "evidence_ref",
    "fold_changes",
    "from_ui_messages",
    "graph_view",
    "order_facts",
    "pending_actions",
    "project",
    "read_thread_model",
    "session_snapshot",
    "task_snapshot",
    "team_view",
    "thread_read_model",
    "timeline_page",
    "to_ui_messages",
    "transcript",
    "unconfirmed_ids",
]
