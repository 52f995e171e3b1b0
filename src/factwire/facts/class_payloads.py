"""Which class carries which payload: by its name, or else by its family."""

from typing import Final

from factwire.facts.edge_payloads import (
    ConversationRecord,
    ItemRecord,
    MemberRecord,
    PersistenceFailure,
    PreviewRecord,
    ProjectRecord,
    RunnerRecord,
    ThreadForkRecord,
    ThreadRecord,
)
from factwire.facts.payloads import (
    ActionDecision,
    ActionRequest,
    Artifact,
    Benchmark,
    Context,
    Cost,
    Diagnostic,
    Evidence,
    Failure,
    FileChange,
    Handoff,
    Hook,
    ModelRequest,
    Output,
    Patch,
    Payload,
    Permission,
    Process,
    Queue,
    Routing,
    RunStatus,
    Snapshot,
    StateDelta,
    Task,
    Teammate,
    TestRun,
    TextPiece,
    ToolCall,
    TurnEnd,
    TurnStart,
)
from factwire.facts.standing_payloads import PolicyTerms, SandboxTerms, TaskProfile

_BY_FAMILY: Final[dict[str, type[Payload]]] = {
    "model": TextPiece,
    "reasoning": TextPiece,
    "plan": TextPiece,
    "text": TextPiece,
    "tool": ToolCall,
    "action": ActionDecision,
    "permission": Permission,
    "sandbox": Permission,
    "policy": Permission,
    "hook": Hook,
    "queue": Queue,
    "context": Context,
    "history": Context,
    "artifact": Artifact,
    "evidence": Evidence,
    "review": Evidence,
    "task": Task,
    "job": Task,
    "subagent": Teammate,
    "worker": Teammate,
    "agent": Teammate,
    "channel": Teammate,
    "handoff": Handoff,
    "process": Process,
    "command": Process,
    "file": FileChange,
    "patch": Patch,
    "test": TestRun,
    "routing": Routing,
    "cost": Cost,
    "limit": Cost,
    "rate_limit": Cost,
    "quota": Cost,
    "metrics": Cost,
    "output": Output,
    "snapshot": Snapshot,
    "stream": Snapshot,
    "benchmark": Benchmark,
    "runtime": Diagnostic,
    "project": ProjectRecord,
    "conversation": ConversationRecord,
    "message": ItemRecord,
    "item": ItemRecord,
    "runner": RunnerRecord,
    "preview": PreviewRecord,
}

_BY_CLASS: Final[dict[str, type[Payload]]] = {
    "turn.submitted": TurnStart,
    "turn.started": TurnStart,
    "turn.completed": TurnEnd,
    "turn.failed": TurnEnd,
    "turn.canceled": TurnEnd,
    "run.status": RunStatus,
    "model.requested": ModelRequest,
    "model.failed": Failure,
    "action.required": ActionRequest,
    "action.updated": ActionRequest,
    "sandbox.applied": SandboxTerms,
    "policy.changed": PolicyTerms,
    "task.profile.resolved": TaskProfile,
    "state.delta": StateDelta,
    "conversation.member.added": MemberRecord,
    "thread.created": ThreadRecord,
    "thread.updated": ThreadRecord,
    "thread.deleted": ThreadRecord,
    "thread.forked": ThreadForkRecord,
    "run.persistence_error": PersistenceFailure,
}


def payload_types(classes: tuple[str, ...]) -> dict[str, type[Payload]]:
    """The payload type of each of `classes` that has one."""
    found: dict[str, type[Payload]] = {}
    for name in classes:
        payload = _BY_CLASS.get(name) or _BY_FAMILY.get(name.partition(".")[0])
        if payload is not None:
            found[name] = payload
    return found
