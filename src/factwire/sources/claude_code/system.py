"""`system` lines: the session itself, hooks, compaction, retries, and remarks for people."""

from typing import Any, Final

from factwire.projection.reading import listed, number, table, word, words
from factwire.sources.claude_code.messages import take_back
from factwire.sources.claude_code.results import deny
from factwire.sources.claude_code.session import Session
from factwire.sources.claude_code.streaming import abandon
from factwire.sources.claude_code.tasks import (
    task_notification,
    task_progress,
    task_started,
    task_updated,
)


def system(session: Session, item: dict[str, Any]) -> None:
    subtype = word(item, "subtype") or ""
    handle = _SUBTYPES.get(subtype)
    if handle is not None:
        handle(session, item)
    elif subtype not in _QUIET:
        session.tell.unknown(f"system {subtype}", item)


def _init(session: Session, item: dict[str, Any]) -> None:
    """Each turn has its own; one that comes in a turn that had it already begins the next."""
    session.tell.known(session_id=word(item, "session_id") or session.tell.thread_id)
    if not session.tell.is_open or session.initialised or session.ended:
        session.go_on()
    session.initialised = True
    session.cwd = word(item, "cwd") or session.cwd
    said = {
        "model": word(item, "model"),
        "mode": word(item, "permissionMode"),
        "cwd": word(item, "cwd"),
        "version": word(item, "claude_code_version"),
    }
    session.tell.fact("session.updated", said)
    servers = [
        word(row, "name") for row in map(table, listed(item.get("mcp_servers")) or ()) if row
    ]
    catalog = {"tools": words(item.get("tools")), "servers": [name for name in servers if name]}
    session.tell.fact("tool.catalog.resolved", catalog)


def _status(session: Session, item: dict[str, Any]) -> None:
    mode, status = word(item, "permissionMode"), word(item, "status")
    if mode is not None:
        session.tell.fact("policy.changed", {"mode": mode})
    if status == "compacting":
        session.tell.fact("context.compaction.started", {"trigger": "requested"})
    elif item.get("compact_result") == "failed":
        message = word(item, "compact_error") or "the context was not compacted"
        said = {"failureCategory": "compaction_failed", "message": message}
        session.tell.fact("context.compaction.failed", said)


def _compacted(session: Session, item: dict[str, Any]) -> None:
    meta = table(item.get("compact_metadata")) or {}
    said = {
        "trigger": word(meta, "trigger"),
        "tokensBefore": _count(meta, "pre_tokens"),
        "tokensAfter": _count(meta, "post_tokens"),
    }
    session.tell.fact("context.compaction.completed", said)
    session.tell.fact("history.compacted", said)


def _retry(session: Session, item: dict[str, Any]) -> None:
    abandon(session, None)
    delay, status = number(item, "retry_delay_ms"), item.get("error_status")
    what = word(item, "error") or "unknown"
    message = f"request failed ({what}), attempt {item.get('attempt')} of {item.get('max_retries')}"
    if status == 429 or what == "rate_limit":  # noqa: PLR2004 - HTTP's own number
        session.tell.fact("rate_limit.hit", {"retryAfterMs": delay, "message": message})
    session.tell.fact("run.status", {"status": "retrying", "message": message})


def _hook_started(session: Session, item: dict[str, Any]) -> None:
    session.tell.fact("hook.started", _hook(item))


def _hook_progress(session: Session, item: dict[str, Any]) -> None:
    session.tell.fact("hook.progress", {**_hook(item), "message": word(item, "output")})


def _hook_response(session: Session, item: dict[str, Any]) -> None:
    outcome = word(item, "outcome")
    said = {
        **_hook(item),
        "outcome": outcome,
        "exitCode": _count(item, "exit_code"),
        "message": word(item, "output", "stderr"),
    }
    session.tell.fact("hook.completed" if outcome == "success" else "hook.failed", said)


def _hook(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "hookId": word(item, "hook_id"),
        "hookName": word(item, "hook_name"),
        "hookEvent": word(item, "hook_event"),
    }


def _denied(session: Session, item: dict[str, Any]) -> None:
    agent = word(item, "agent_id")
    deny(
        session,
        word(item, "tool_use_id") or "",
        word(item, "decision_reason_code", "decision_reason_type"),
        word(item, "message"),
        agent if agent in session.tell.subagents else None,
        name=word(item, "tool_name"),
    )


def _fallback(session: Session, item: dict[str, Any]) -> None:
    """The model refused and another one was asked; what the first one said is taken back."""
    take_back(session, item.get("retracted_message_uuids"))
    said = {
        "model": word(item, "fallback_model"),
        "reason": word(item, "api_refusal_category") or "refusal",
        "reasonCode": word(item, "trigger") or "refusal",
    }
    session.tell.fact("routing.fallback.applied", said)


def _state(session: Session, item: dict[str, Any]) -> None:
    states = {"requires_action": "waiting", "running": "running"}
    status = states.get(word(item, "state") or "")
    if status is not None and session.tell.is_open:
        session.tell.fact("run.status", {"status": status})


def _remark(session: Session, item: dict[str, Any]) -> None:
    """A line for people that changes nothing."""
    code = word(item, "subtype") or "remark"
    message = word(item, "content", "text", "message", "error") or code
    session.tell.fact("runtime.warning", {"code": code, "message": message, "severity": "info"})


def _persisted(session: Session, item: dict[str, Any]) -> None:
    for file in map(table, listed(item.get("files")) or ()):
        name, file_id = word(file or {}, "filename"), word(file or {}, "file_id")
        if name and file_id:
            said = {"kind": "file", "title": name, "status": "ready"}
            session.tell.fact("artifact.created", said, artifact_id=file_id)
    for file in map(table, listed(item.get("failed")) or ()):
        message = word(file or {}, "error") or "not persisted"
        session.tell.fact("runtime.warning", {"code": "file_not_persisted", "message": message})


def _count(item: dict[str, Any], name: str) -> int | None:
    value = item.get(name)
    return value if type(value) is int else None


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
    "init": _init,
    "status": _status,
    "compact_boundary": _compacted,
    "api_retry": _retry,
    "hook_started": _hook_started,
    "hook_progress": _hook_progress,
    "hook_response": _hook_response,
    "task_started": task_started,
    "task_progress": task_progress,
    "task_updated": task_updated,
    "task_notification": task_notification,
    "permission_denied": _denied,
    "model_refusal_fallback": _fallback,
    "session_state_changed": _state,
    "files_persisted": _persisted,
    "informational": _remark,
    "local_command_output": _remark,
    "mirror_error": _remark,
    "notification": _remark,
    "plugin_install": _remark,
    "session_writes_lost": _remark,
    "worker_shutting_down": _remark,
}
