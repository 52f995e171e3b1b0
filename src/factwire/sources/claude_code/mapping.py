"""What each thing that the source emits becomes, as a table for people."""

from typing import Final

from factwire.sources.claude_code.converter import ClaudeCode
from factwire.sources.source import Source

SOURCE: Final = Source(
    name="claude-code",
    title="Claude Code",
    framing="lines",
    versions="2.1.325",
    converter=ClaudeCode,
    maps={
        "user (from the host)": "turn.submitted, turn.started, or queue.changed",
        "system init": "turn.started, session.updated, tool.catalog.resolved",
        "system status": "policy.changed, context.compaction.started or failed",
        "system compact_boundary": "context.compaction.completed, history.compacted",
        "system api_retry": "rate_limit.hit, run.status, messages.snapshot",
        "system hook_started, hook_progress, hook_response": "hook.*",
        "system task_*": "subagent.*, task.*, worker.notification",
        "system permission_denied": "permission.denied",
        "system model_refusal_fallback": "routing.fallback.applied, messages.snapshot",
        "system session_state_changed": "run.status",
        "system files_persisted": "artifact.created",
        "system informational, notification, local_command_output, …": "runtime.warning",
        "assistant text": "model.requested, model.completed, evidence.changed",
        "assistant thinking": "reasoning.delta",
        "assistant tool_use": "tool.started, tool.args",
        "assistant supersedes": "messages.snapshot",
        "assistant is_api_error_message": "runtime.error",
        "user tool_result": "tool.result or tool.failed, file.read, file.changed",
        "user text (synthetic)": "context.attached, subagent.input",
        "stream_event": "model.delta, reasoning.delta, tool.started, tool.args.delta",
        "control_request can_use_tool": "permission.requested, action.required, plan.final",
        "control_request elicitation": "action.required",
        "control_request hook_callback": "hook.started, hook.completed or hook.failed",
        "control_request interrupt": "run.status",
        "control_request set_permission_mode, set_model": "policy.changed, routing.decided",
        "control_response": "action.resolved, permission.resolved, tool.args",
        "control_cancel_request": "action.cancelled",
        "tool_progress, tool_use_summary": "tool.progress, run.status",
        "rate_limit_event": "limit.changed or rate_limit.hit",
        "auth_status, conversation_reset": "runtime.error, session.updated",
        "result": "cost.recorded, metrics.changed, turn.completed, turn.failed or turn.canceled",
    },
    lacks=("exit codes", "output deltas", "the prompt, unless the host's lines are recorded"),
)
