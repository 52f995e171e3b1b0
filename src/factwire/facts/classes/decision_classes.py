"""Classes of decisions: what a person is asked, what a policy allows, hooks and the queue."""

from typing import Final

from factwire.facts.classes.payloads import (
    ActionDecisionPayload,
    ActionRequestPayload,
    HookPayload,
    PermissionPayload,
    PolicyTermsPayload,
    QueuePayload,
    SandboxTermsPayload,
)
from factwire.facts.classes.required_fields import ACTION, REASON_CODE
from factwire.facts.classes.specification import Family, closes, opens, row

FAMILIES: Final = (
    Family("action", kind="action", payload=ActionDecisionPayload, requires=(ACTION,), is_execution=True),
    Family("permission", kind="permission", payload=PermissionPayload, is_execution=True, names_turn=True),
    Family("sandbox", kind="sandbox", payload=PermissionPayload, is_execution=True, names_turn=True),
    Family("policy", payload=PermissionPayload),
    Family("hook", payload=HookPayload),
    Family("queue", payload=QueuePayload),
)  # fmt: skip

CLASSES: Final = (
    row("action.required", "action action_request waiting hitl transcript", "action.required",
        payload=ActionRequestPayload, move=opens("action", "action_required_already_active")),
    row("action.updated", "action action_request waiting hitl transcript", "action.required",
        payload=ActionRequestPayload),
    row("action.resolved", "action action_request completed hitl transcript", "action.resolved",
        move=closes("action", "action_resolved_without_request")),
    row("action.cancelled", "action action_request cancelled hitl transcript", "action.resolved",
        move=closes("action", "action_resolved_without_request")),
    row("action.canceled", "action action_request cancelled hitl transcript", "action.resolved",
        move=closes("action", "action_resolved_without_request")),
    row("action.expired", "action action_request cancelled hitl transcript", "action.resolved",
        move=closes("action", "action_resolved_without_request")),
    row("permission.evaluated", "policy turn acting runtime_status transcript", "permission.changed"),
    row("permission.requested", "policy turn waiting hitl transcript", "permission.changed"),
    row("permission.resolved", "policy turn completed hitl transcript", "permission.changed"),
    row("permission.denied", "policy turn failed hitl transcript", "permission.changed",
        requires=(REASON_CODE,)),
    row("sandbox.applied", "policy turn preparing diagnostics diagnostics_log", "permission.changed",
        payload=SandboxTermsPayload),
    row("sandbox.blocked", "policy turn failed diagnostics diagnostics_log", "permission.changed",
        requires=(REASON_CODE,)),
    row("sandbox.violation", "policy turn failed diagnostics diagnostics_log", "permission.changed"),
    row("policy.changed", "policy workspace unknown runtime_status snapshot", "permission.changed",
        payload=PolicyTermsPayload),
    row("hook.started", "runtime run acting inline_process ephemeral_live", "run.status"),
    row("hook.progress", "runtime run acting inline_process ephemeral_live", "run.status"),
    row("hook.completed", "runtime run acting inline_process transcript", "run.status"),
    row("hook.failed", "runtime run failed diagnostics diagnostics_log", "diagnostic.changed"),
    row("queue.changed", "runtime thread unknown task_capsule snapshot", "queue.changed"),
)  # fmt: skip
