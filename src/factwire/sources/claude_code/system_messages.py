"""System lines of Claude Code: its start, status, hooks, compaction, and tasks of subagents."""

from typing import Any, Final

from factwire.facts.json_values import (
    list_at,
    number_at,
    object_at,
    objects_of,
    text_at,
    texts_of,
    whole_number_at,
)
from factwire.sources.claude_code.transcript import (
    ClaudeSession,
    abandon_stream,
    add_denial,
    output_location,
    retract_lines,
)

_ENDED: Final = {
    "completed": ("subagent.completed", "task.completed"),
    "failed": ("subagent.failed", "task.failed"),
    "stopped": ("subagent.failed", "task.cancelled"),
}


def on_task_started(session: ClaudeSession, item: dict[str, Any]) -> None:
    task_id, call_id = text_at(item, "task_id") or "task", text_at(item, "tool_use_id")
    about = {
        "title": text_at(item, "description"),
        "role": text_at(item, "subagent_type"),
        "objective": text_at(item, "prompt"),
    }
    if text_at(item, "task_type") in (None, "local_agent"):
        alone = item.get("is_backgrounded") is True
        if alone:
            session.background.add(task_id)
        parent = text_at(item, "parent_task_id")
        payload = {**about, "toolCallId": call_id, "parentTaskId": parent}
        session.open_agent(task_id, call_id, payload, alone=alone or not session.builder.is_open)
    else:
        session.shells.add(task_id)
        payload = {**about, "toolCallId": call_id}
        session.builder.add_fact("task.started", payload, task_id=task_id)


def on_task_progress(session: ClaudeSession, item: dict[str, Any]) -> None:
    task_id = text_at(item, "task_id") or "task"
    payload = {
        "message": text_at(item, "summary", "description"),
        "lastToolName": text_at(item, "last_tool_name"),
        "usage": read_task_usage(item),
    }
    if task_id in session.builder.subagents:
        session.builder.add_subagent_fact(task_id, "subagent.progress", payload)
    else:
        session.builder.add_fact("task.progress", payload, task_id=task_id)


def read_task_usage(item: dict[str, Any]) -> dict[str, Any] | None:
    """What a task has used, as far as a line reports it."""
    usage = object_at(item.get("usage")) or {}
    counts = {
        "totalTokens": whole_number_at(usage, "total_tokens"),
        "toolUses": whole_number_at(usage, "tool_uses"),
        "durationMs": number_at(usage, "duration_ms"),
    }
    return {name: count for name, count in counts.items() if count is not None} or None


def on_task_updated(session: ClaudeSession, item: dict[str, Any]) -> None:
    """What changed of a task; its end is told by its notification."""
    task_id, patch = text_at(item, "task_id") or "task", object_at(item.get("patch")) or {}
    if patch.get("is_backgrounded") is True:
        session.background.add(task_id)
    status, message = text_at(patch, "status"), text_at(patch, "error", "description")
    if status == "paused":
        session.builder.add_fact("task.paused", {"message": message}, task_id=task_id)
    elif status is None and message is not None:
        session.builder.add_fact("task.updated", {"message": message}, task_id=task_id)


def on_task_notification(session: ClaudeSession, item: dict[str, Any]) -> None:
    task_id, status = text_at(item, "task_id") or "task", text_at(item, "status") or ""
    of_agent, of_task = _ENDED.get(status, _ENDED["failed"])
    kept, summary = output_location(text_at(item, "output_file")), text_at(item, "summary")
    payload: dict[str, Any] = {
        "summary": summary,
        "usage": read_task_usage(item),
        "resultRef": kept.pop("outputRef", None),
        **kept,
    }
    if of_task != "task.completed":
        payload |= {
            "failureCategory": text_at(item, "reason") or status or "failed",
            "message": summary,
        }
    if task_id in session.builder.subagents:
        session.builder.add_subagent_fact(
            task_id, "worker.notification", {"status": status, **payload}
        )
        session.builder.end_subagent(task_id, of_agent, **payload)
    elif task_id in session.shells:
        session.shells.discard(task_id)
        session.builder.add_fact(of_task, payload, task_id=task_id)
    session.background.discard(task_id)


def on_system(session: ClaudeSession, item: dict[str, Any]) -> None:
    subtype = text_at(item, "subtype") or ""
    handle = _SUBTYPES.get(subtype)
    if handle is not None:
        handle(session, item)
    elif subtype not in _QUIET:
        session.builder.warn_unknown(f"system {subtype}", item)


def _on_init(session: ClaudeSession, item: dict[str, Any]) -> None:
    """Each turn has its own; one that comes in a turn that had it already begins the next."""
    session.builder.set_ids(session_id=text_at(item, "session_id") or session.builder.thread_id)
    if not session.builder.is_open or session.initialised or session.ended:
        session.begin_next_turn()
    session.initialised = True
    session.cwd = text_at(item, "cwd") or session.cwd
    servers = objects_of(item.get("mcp_servers"))
    payload = {
        "model": text_at(item, "model"),
        "mode": text_at(item, "permissionMode"),
        "cwd": text_at(item, "cwd"),
        "version": text_at(item, "claude_code_version"),
        "sessionId": text_at(item, "session_id"),
        "tools": texts_of(item.get("tools")),
        "mcpServers": [
            {name: text_at(row, name) for name in ("name", "status")} for row in servers
        ],
    }
    session.builder.add_fact("session.updated", payload)
    names = [name for row in servers if (name := text_at(row, "name"))]
    session.builder.add_fact("tool.catalog.resolved", {"tools": payload["tools"], "servers": names})


def _on_status(session: ClaudeSession, item: dict[str, Any]) -> None:
    mode, status = text_at(item, "permissionMode"), text_at(item, "status")
    if mode is not None:
        session.builder.add_fact("policy.changed", {"mode": mode})
    if status == "compacting":
        session.builder.add_fact("context.compaction.started", {"trigger": "requested"})
    elif item.get("compact_result") == "failed":
        message = text_at(item, "compact_error") or "the context was not compacted"
        payload = {"failureCategory": "compaction_failed", "message": message}
        session.builder.add_fact("context.compaction.failed", payload)


def _on_compacted(session: ClaudeSession, item: dict[str, Any]) -> None:
    meta = object_at(item.get("compact_metadata")) or {}
    payload = {
        "trigger": text_at(meta, "trigger"),
        "tokensBefore": whole_number_at(meta, "pre_tokens"),
        "tokensAfter": whole_number_at(meta, "post_tokens"),
    }
    session.builder.add_fact("context.compaction.completed", payload)
    session.builder.add_fact("history.compacted", payload)


def _on_retry(session: ClaudeSession, item: dict[str, Any]) -> None:
    abandon_stream(session, None)
    delay, status = number_at(item, "retry_delay_ms"), item.get("error_status")
    what = text_at(item, "error") or "unknown"
    message = f"request failed ({what}), attempt {item.get('attempt')} of {item.get('max_retries')}"
    if status == 429 or what == "rate_limit":  # noqa: PLR2004 - HTTP's own number
        session.builder.add_fact("rate_limit.hit", {"retryAfterMs": delay, "message": message})
    payload = {
        "status": "retrying",
        "message": message,
        "attempt": whole_number_at(item, "attempt"),
        "maxRetries": whole_number_at(item, "max_retries"),
        "retryDelayMs": delay,
        "error": what,
    }
    session.builder.add_fact("run.status", payload)


def _on_hook_started(session: ClaudeSession, item: dict[str, Any]) -> None:
    session.builder.add_fact("hook.started", _hook_payload(item))


def _on_hook_progress(session: ClaudeSession, item: dict[str, Any]) -> None:
    session.builder.add_fact(
        "hook.progress",
        {**_hook_payload(item), **_hook_output(item), "message": text_at(item, "output")},
    )


def _on_hook_response(session: ClaudeSession, item: dict[str, Any]) -> None:
    outcome = text_at(item, "outcome")
    payload = {
        **_hook_payload(item),
        **_hook_output(item),
        "outcome": outcome,
        "exitCode": whole_number_at(item, "exit_code"),
        "message": text_at(item, "output", "stderr"),
    }
    session.builder.add_fact("hook.completed" if outcome == "success" else "hook.failed", payload)


def _hook_payload(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "hookId": text_at(item, "hook_id"),
        "hookName": text_at(item, "hook_name"),
        "hookEvent": text_at(item, "hook_event"),
    }


def _hook_output(item: dict[str, Any]) -> dict[str, Any]:
    return {"stdout": text_at(item, "stdout"), "stderr": text_at(item, "stderr")}


def _on_denied(session: ClaudeSession, item: dict[str, Any]) -> None:
    agent = text_at(item, "agent_id")
    add_denial(
        session,
        text_at(item, "tool_use_id") or "",
        text_at(item, "decision_reason_code", "decision_reason_type"),
        text_at(item, "message"),
        agent if agent in session.builder.subagents else None,
        name=text_at(item, "tool_name"),
    )


def _on_fallback(session: ClaudeSession, item: dict[str, Any]) -> None:
    """The model refused and another one was asked; what the first one said is taken back."""
    retract_lines(session, item.get("retracted_message_uuids"))
    payload = {
        "model": text_at(item, "fallback_model"),
        "reason": text_at(item, "api_refusal_category") or "refusal",
        "reasonCode": text_at(item, "trigger") or "refusal",
    }
    session.builder.add_fact("routing.fallback.applied", payload)


def _on_state(session: ClaudeSession, item: dict[str, Any]) -> None:
    states = {"requires_action": "waiting", "running": "running"}
    status = states.get(text_at(item, "state") or "")
    if status is not None and session.builder.is_open:
        session.builder.add_fact("run.status", {"status": status})


def _on_remark(session: ClaudeSession, item: dict[str, Any]) -> None:
    """A line for people that changes nothing."""
    code = text_at(item, "subtype") or "remark"
    message = text_at(item, "content", "text", "message", "error") or code
    session.builder.add_fact(
        "runtime.warning", {"code": code, "message": message, "severity": "info"}
    )


def _on_persisted(session: ClaudeSession, item: dict[str, Any]) -> None:
    for file in map(object_at, list_at(item.get("files")) or ()):
        name, file_id = text_at(file or {}, "filename"), text_at(file or {}, "file_id")
        if name and file_id:
            payload = {"kind": "file", "title": name, "status": "ready"}
            session.builder.add_fact("artifact.created", payload, artifact_id=file_id)
    for file in map(object_at, list_at(item.get("failed")) or ()):
        message = text_at(file or {}, "error") or "not persisted"
        session.builder.add_fact(
            "runtime.warning", {"code": "file_not_persisted", "message": message}
        )


_QUIET: Final = frozenset(
    {
        "background_tasks_changed",
        "commands_changed",
        "control_request_progress",
        "elicitation_complete",
        "memory_recall",
        "session_title_changed",
        "thinking_tokens",
    }
)
"""What other lines say as well, and what is only for the CLI's own screen."""

_SUBTYPES: Final = {
    "init": _on_init,
    "status": _on_status,
    "compact_boundary": _on_compacted,
    "api_retry": _on_retry,
    "hook_started": _on_hook_started,
    "hook_progress": _on_hook_progress,
    "hook_response": _on_hook_response,
    "task_started": on_task_started,
    "task_progress": on_task_progress,
    "task_updated": on_task_updated,
    "task_notification": on_task_notification,
    "permission_denied": _on_denied,
    "model_refusal_fallback": _on_fallback,
    "session_state_changed": _on_state,
    "files_persisted": _on_persisted,
    "informational": _on_remark,
    "local_command_output": _on_remark,
    "mirror_error": _on_remark,
    "notification": _on_remark,
    "plugin_install": _on_remark,
    "session_writes_lost": _on_remark,
    "worker_shutting_down": _on_remark,
}
