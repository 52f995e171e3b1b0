"""Facts to test with: complete for their class unless a test takes something away."""

from typing import Any

from factwire.facts.classes.class_tables import status_of
from factwire.facts.fact import Fact
from factwire.facts.shapes import read_fact

EXTRA_IDS = {
    "sessionId": "session_1",
    "threadId": "thread_1",
    "runId": "run_1",
    "turnId": "turn_1",
    "attemptId": "attempt_1",
    "messageId": "message_1",
    "taskId": "task_1",
    "subagentId": "subagent_1",
    "toolCallId": "call_1",
    "actionId": "action_1",
    "artifactId": "artifact_1",
    "evidenceId": "evidence_1",
    "handoffId": "handoff_1",
    "reviewId": "review_1",
    "jobId": "job_1",
    "projectId": "project_1",
    "conversationId": "conversation_1",
    "itemId": "item_1",
}
"""Every id that some class needs."""

FULL_PAYLOADS: dict[str, dict[str, Any]] = {
    "file.read": {"path": "src/main.py"},
    "file.changed": {"path": "src/main.py"},
    "patch.failed": {"failureCategory": "conflict"},
    "command.exited": {"exitCode": 0},
    "test.completed": {"result": "passed"},
    "sandbox.blocked": {"reasonCode": "network_denied"},
    "permission.denied": {"reasonCode": "policy"},
    "conversation.member.added": {"memberId": "member_1"},
    "thread.forked": {"parentThreadId": "thread_0"},
    "runner.online": {"runnerId": "runner_1"},
    "runner.offline": {"runnerId": "runner_1"},
    "preview.ready": {"previewId": "preview_1"},
    "preview.stopped": {"previewId": "preview_1"},
}


def wire(event_class: str = "run.status", sequence: int = 1, /, **fields: Any) -> dict[str, Any]:
    """A minimal fact in shape A, without any id beyond its own."""
    return {
        "id": f"fact_{sequence}",
        "kind": "state",
        "status": status_of(event_class),
        "title": "A fact",
        "createdAt": "2026-06-10T00:00:00.000Z",
        "schemaVersion": "lime-runtime-event/v0.1",
        "runtimeId": "app-server",
        "sequence": sequence,
        "eventClass": event_class,
        **fields,
    }


def runtime_event(event_class: str, sequence: int = 1, /, **fields: Any) -> dict[str, Any]:
    """A minimal fact in shape B."""
    return {
        "schemaVersion": "lime-runtime-event/v0.1",
        "runtimeId": "app-server",
        "sessionId": "session_1",
        "eventId": f"fact_{sequence}",
        "timestamp": "2026-06-10T00:00:00.000Z",
        "sequence": sequence,
        "type": event_class,
        "payload": {},
        **fields,
    }


def complete(event_class: str, sequence: int = 1, /, **fields: Any) -> dict[str, Any]:
    """A fact in shape A that carries everything its class needs."""
    payload = {**FULL_PAYLOADS.get(event_class, {}), **fields.pop("payload", {})}
    refs = {"refIds": ["ref_1"]} if event_class == "command.output" else {}
    return wire(event_class, sequence, **{**EXTRA_IDS, "payload": payload, **refs, **fields})


def fact(event_class: str = "run.status", sequence: int = 1, /, **fields: Any) -> Fact:
    """The typed fact of `wire`."""
    return read_fact(wire(event_class, sequence, **fields), "facts")


def full_fact(event_class: str, sequence: int = 1, /, **fields: Any) -> Fact:
    """The typed fact of `complete`."""
    return read_fact(complete(event_class, sequence, **fields), "facts")


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same object, minus some fields."""
    return {key: item for key, item in value.items() if key not in names}
