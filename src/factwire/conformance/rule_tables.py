"""Tables of small facts and streams with the issues that each of them has.

They are written by hand, from the contract; `rule_checks` compares them with what Factwire finds.
"""

from collections.abc import Mapping
from typing import Any, Final

from factwire.conformance.case import Wire
from factwire.facts import kind_of, status_of

SECRET: Final = "sk-ant-api03-" + "aB3dE5fG7h" * 9 + "AA"
LARGE_TEXT: Final = "x" * 33_000


def build_event(event_class: str, place: int = 1, **fields: Any) -> Wire:
    """A fact of a class that has everything but what the class itself needs."""
    return {
        "id": f"rule-{place}",
        "kind": kind_of(event_class),
        "status": status_of(event_class),
        "title": event_class,
        "createdAt": "2026-06-10T09:00:00Z",
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "edge-local",
        "sequence": place,
        "eventClass": event_class,
        "threadId": "thr_1",
        "turnId": "trn_1",
        **fields,
    }


SUBJECTS: Final[Mapping[str, Wire]] = {
    "tool": {"toolCallId": "x1"},
    "patch": {"payload": {"patchId": "x1", "failureCategory": "conflict"}},
    "command": {"payload": {"commandId": "x1", "exitCode": 0, "outputRef": "output:1"}},
    "test": {"payload": {"testRunId": "x1", "result": "passed"}},
    "action": {"actionId": "x1"},
}

LIFECYCLE_STREAMS: Final[Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]] = {
    "tool_result_without_start": (
        (("tool.result",), ("tool_result_without_start",)),
        (("tool.started", "tool.result"), ()),
    ),
    "tool_failed_without_start": (
        (("tool.failed",), ("tool_failed_without_start",)),
        (("tool.started", "tool.failed"), ()),
    ),
    "patch_terminal_without_start": (
        (("patch.applied",), ("patch_terminal_without_start",)),
        (("patch.failed",), ("patch_terminal_without_start",)),
        (("patch.started", "patch.applied"), ()),
    ),
    "command_output_without_start": (
        (("command.output",), ("command_output_without_start",)),
        (("command.started", "command.output", "command.exited"), ()),
    ),
    "command_exited_without_start": (
        (("command.exited",), ("command_exited_without_start",)),
        (("command.started", "command.exited"), ()),
    ),
    "test_completed_without_start": (
        (("test.completed",), ("test_completed_without_start",)),
        (("test.started", "test.completed"), ()),
    ),
    "action_resolved_without_request": (
        (("action.resolved",), ("action_resolved_without_request",)),
        (("action.expired",), ("action_resolved_without_request",)),
        (("action.required", "action.resolved"), ()),
    ),
    "tool_started_already_active": (
        (("tool.started", "tool.started"), ("tool_started_already_active",)),
    ),
    "patch_started_already_active": (
        (("patch.started", "patch.started"), ("patch_started_already_active",)),
    ),
    "command_started_already_active": (
        (("command.started", "command.started"), ("command_started_already_active",)),
    ),
    "test_started_already_active": (
        (("test.started", "test.started"), ("test_started_already_active",)),
    ),
    "action_required_already_active": (
        (("action.required", "action.required"), ("action_required_already_active",)),
    ),
    "tool_unclosed_at_turn_end": (
        (("tool.started", "turn.completed"), ("tool_unclosed_at_turn_end",)),
    ),
    "patch_unclosed_at_turn_end": (
        (("patch.started", "turn.failed"), ("patch_unclosed_at_turn_end",)),
    ),
    "command_unclosed_at_turn_end": (
        (("command.started", "turn.completed"), ("command_unclosed_at_turn_end",)),
    ),
    "test_unclosed_at_turn_end": (
        (("test.started", "turn.completed"), ("test_unclosed_at_turn_end",)),
    ),
    "action_unresolved_at_turn_end": (
        (("action.required", "turn.completed"), ("action_unresolved_at_turn_end",)),
    ),
    "execution_after_turn_terminal": (
        (("turn.completed", "model.delta"), ("execution_after_turn_terminal",)),
        (("turn.completed", "context.resolved"), ("execution_after_turn_terminal",)),
    ),
    "turn_terminal_repeated": (
        (("turn.completed", "turn.completed"), ("turn_terminal_repeated",)),
        (("turn.completed", "turn.failed"), ("turn_terminal_repeated",)),
    ),
    "unclosed-order": (
        (
            (
                *("action.required", "test.started", "command.started", "patch.started"),
                *("tool.started", "turn.completed"),
            ),
            (
                *("tool_unclosed_at_turn_end", "patch_unclosed_at_turn_end"),
                *("command_unclosed_at_turn_end", "test_unclosed_at_turn_end"),
                "action_unresolved_at_turn_end",
            ),
        ),
    ),
    "reopen": ((("tool.started", "tool.result", "tool.started", "tool.failed"), ()),),
    "after-terminal": (
        (
            (
                *("turn.completed", "snapshot.updated", "state.delta", "artifact.changed"),
                *("evidence.changed", "session.updated"),
            ),
            (),
        ),
    ),
    "incompleteness": ((("turn.started", "tool.started", "action.required"), ()),),
}
"""Rule of the lifecycle → streams by class, each with the violations that it has."""


REQUIRED_IDS: Final[Mapping[str, tuple[tuple[str, Wire, Wire], ...]]] = {
    "tool": (
        ("tool.started", {"toolCallId": "c"}, {}),
        ("tool.result", {"payload": {"tool_call_id": "c"}}, {"toolCallId": ""}),
    ),
    "action": (
        ("action.required", {"actionId": "a"}, {}),
        ("action.resolved", {"payload": {"requestId": "a"}}, {}),
    ),
    "artifact": (
        ("artifact.created", {"artifactId": "a"}, {}),
        ("artifact.changed", {"artifactRefs": ["a"]}, {"artifactRefs": []}),
    ),
    "evidence": (
        ("evidence.changed", {"evidenceId": "e"}, {}),
        ("evidence.exported", {"evidenceRefs": ["e"]}, {"evidenceRefs": []}),
    ),
    "review": (
        ("review.requested", {"reviewId": "r", "evidenceId": "e"}, {"evidenceId": "e"}),
        ("review.completed", {"reviewId": "r", "evidenceRefs": ["e"]}, {"reviewId": "r"}),
    ),
    "file-read": (("file.read", {"payload": {"path": "a"}}, {}),),
    "file-changed": (
        (
            "file.changed",
            {"artifactId": "a", "payload": {"path": "a"}},
            {"payload": {"path": "a"}},
        ),
    ),
    "patch": (
        ("patch.started", {"payload": {"patchId": "p"}}, {}),
        (
            "patch.failed",
            {"toolCallId": "c", "payload": {"failureCategory": "conflict"}},
            {"toolCallId": "c"},
        ),
    ),
    "command": (
        ("command.started", {"payload": {"commandId": "c"}}, {}),
        ("command.output", {"toolCallId": "c", "refIds": ["output:1"]}, {"toolCallId": "c"}),
        ("command.exited", {"toolCallId": "c", "payload": {"exitCode": 0}}, {"toolCallId": "c"}),
    ),
    "test": (
        ("test.started", {"payload": {"testRunId": "t"}}, {}),
        ("test.completed", {"toolCallId": "c", "payload": {"result": "ok"}}, {"toolCallId": "c"}),
    ),
    "reason-code": (
        ("sandbox.blocked", {"payload": {"reasonCode": "network"}}, {}),
        ("permission.denied", {"payload": {"reasonCode": "policy"}}, {}),
    ),
    "task": (
        ("task.started", {"taskId": "t"}, {}),
        ("task.attempt.started", {"taskId": "t", "attemptId": "a"}, {"taskId": "t"}),
    ),
    "subagent": (("subagent.started", {"subagentId": "s", "taskId": "t"}, {"subagentId": "s"}),),
    "handoff": (
        ("handoff.requested", {"handoffId": "h"}, {}),
        ("handoff.accepted", {"payload": {"handoffId": "h"}}, {}),
    ),
}
"""What classes need → class, fields that have it, fields that do not."""


def build_runtime_event(event_class: str, **fields: Any) -> Wire:
    return {
        "schemaVersion": "v1",
        "runtimeId": "r",
        "sessionId": "s",
        "eventId": "e1",
        "timestamp": "2026-06-10T09:00:00Z",
        "sequence": 0,
        "type": event_class,
        "payload": {},
        **fields,
    }


def without_field(value: Wire, name: str) -> Wire:
    return {key: item for key, item in value.items() if key != name}


FACT_ISSUES: Final[Mapping[str, tuple[tuple[Wire, tuple[str, ...]], ...]]] = {
    "validation.schema_mismatch": (
        (without_field(build_event("run.status"), "title"), ("schema_mismatch",)),
        (build_event("run.status", title=7), ("schema_mismatch",)),
        (build_event("run.status"), ()),
    ),
    "facts.legacy-terminals": tuple(
        (build_event("run.status", eventClass=name), ("schema_mismatch",))
        for name in ("done", "final_done", "cancelled", "turn.done", "turn.cancelled")
    ),
    "validation.missing_scope_id": ((build_event("tool.started"), ("missing_scope_id",)),),
    "validation.timestamp": (
        (build_event("run.status", createdAt="yesterday"), ("schema_mismatch",)),
    ),
    "validation.secret_leak_risk": (
        (build_event("run.status", payload={"a": [{"apiKey": "x9"}]}), ("secret_leak_risk",)),
        (build_event("run.status", payload={"note": SECRET}), ("secret_leak_risk",)),
        (build_event("run.status", payload={"totalTokens": 9}), ()),
    ),
    "validation.large_payload_inline": (
        (build_event("run.status", payload={"text": LARGE_TEXT}), ("large_payload_inline",)),
    ),
    "validation.unknown_event_type": ((build_event("garden.watered"), ("unknown_event_type",)),),
    "validation.refs": (
        (build_event("run.status", refIds=["/etc/passwd"]), ("schema_mismatch",)),
        (build_event("run.status", refIds=["output:1"]), ()),
    ),
}
"""Requirement → facts, each with the codes of its issues."""


GapRepair = tuple[int, str, str, dict[str, Any]]
"""Sequence, thread and class of a fact, with its payload."""

_WHOLE_REPAIR: Final[tuple[str, dict[str, Any]]] = (
    "snapshot.repaired",
    {"toSequence": 5, "messages": []},
)
_PARTIAL_REPAIR: Final[tuple[str, dict[str, Any]]] = (
    "snapshot.repaired",
    {"toSequence": 3, "messages": []},
)

GAP_STREAMS: Final[
    Mapping[str, tuple[tuple[tuple[tuple[int, str, str] | GapRepair, ...], int], ...]]
] = {
    "validation.sequence_gap": (
        (((1, "a", ""), (3, "a", "")), 1),
        (((1, "a", ""), (2, "a", "")), 0),
    ),
    "sequences.start-anywhere": ((((41, "a", ""), (42, "a", "")), 0),),
    "sequences.per-thread": ((((1, "a", ""), (1, "b", ""), (2, "a", ""), (2, "b", "")), 0),),
    "sequences.unnamed-thread": ((((1, "a", ""), (2, "", ""), (3, "a", "")), 0),),
    "sequences.repaired": (
        (((1, "a", ""), (5, "a", ""), (6, "a", *_WHOLE_REPAIR)), 0),
        (((1, "a", ""), (5, "a", ""), (6, "a", *_PARTIAL_REPAIR)), 1),
        (((1, "a", ""), (5, "a", ""), (6, "a", "stream.repair.completed")), 1),
        (((1, "a", ""), (2, "a", *_WHOLE_REPAIR), (5, "a", "")), 1),
    ),
}
"""Requirement → streams by sequence, thread, class and payload, each with its number of gaps."""


CLASS_ALIASES: Final = {
    "message.delta": "model.delta",
    "thinking.delta": "reasoning.delta",
    "runtime.status": "run.status",
    "artifact.snapshot": "artifact.changed",
}


DEFAULT_KINDS: Final = {
    "action.required": "action",
    "artifact.changed": "draft",
    "context.resolved": "context",
    "review.requested": "evidence",
    "model.delta": "model",
    "reasoning.delta": "note",
    "permission.denied": "permission",
    "sandbox.blocked": "sandbox",
    "patch.applied": "tool",
    "subagent.started": "handoff",
    "session.updated": "state",
}
DEFAULT_STATUSES: Final = {
    "action.required": "blocked",
    "tool.started": "running",
    "model.delta": "running",
    "tool.failed": "failed",
    "tool.result": "completed",
    "action.resolved": "completed",
    "turn.canceled": "canceled",
}
