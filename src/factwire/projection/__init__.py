"""Projection: what facts mean on a screen, as a pure function of them.

Facts go in one at a time; a state and the changes to it come out. No input or output, no clock.
"""

from factwire.projection.ai_sdk import from_ui_messages, to_ui_messages
from factwire.projection.changes import Changes, Operation, advance, folded
from factwire.projection.checkpoints import UnreadableCheckpoint
from factwire.projection.diagnostics import DIAGNOSTIC_CODES, DiagnosticCode
from factwire.projection.json_patch import Document, PatchFailed
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
    unconfirmed,
)
from factwire.projection.state import (
    STATE_VERSION,
    ProjectionState,
    decode_state,
    empty_state,
    encode_state,
)
from factwire.projection.text import Text

__all__ = [
    "DIAGNOSTIC_CODES",
    "READ_MODEL_VERSION",
    "STATE_VERSION",
    "ActiveProcess",
    "ArtifactRef",
    "Attention",
    "Changes",
    "DiagnosticCode",
    "Document",
    "EvidenceRef",
    "GraphView",
    "InvalidReadModel",
    "Operation",
    "PatchFailed",
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
    "folded",
    "from_ui_messages",
    "graph_view",
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
    "unconfirmed",
]
