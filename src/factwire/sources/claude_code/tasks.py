"""`task_*`: subagents and background shells, from their start to the word that they are done.

A subagent in the background goes on when the turn that started it is over, so its facts stand in a
turn of their own; a shell in the background is a task and nobody's turn.
"""

from typing import Any, Final

from factwire.projection.reading import table, word
from factwire.sources.claude_code.session import Session, kept_at

_ENDED: Final = {
    "completed": ("subagent.completed", "task.completed"),
    "failed": ("subagent.failed", "task.failed"),
    "stopped": ("subagent.failed", "task.cancelled"),
}


def task_started(session: Session, item: dict[str, Any]) -> None:
    task_id, call_id = word(item, "task_id") or "task", word(item, "tool_use_id")
    about = {
        "title": word(item, "description"),
        "role": word(item, "subagent_type"),
        "objective": word(item, "prompt"),
    }
    if word(item, "task_type") in (None, "local_agent"):
        alone = item.get("is_backgrounded") is True
        if alone:
            session.background.add(task_id)
        parent = word(item, "parent_task_id")
        told = {**about, "toolCallId": call_id, "parentTaskId": parent}
        session.open_agent(task_id, call_id, told, alone=alone or not session.tell.is_open)
    else:
        session.shells.add(task_id)
        told = {**about, "toolCallId": call_id}
        session.tell.fact("task.started", told, task_id=task_id)


def task_progress(session: Session, item: dict[str, Any]) -> None:
    task_id = word(item, "task_id") or "task"
    message = word(item, "summary", "description")
    if task_id in session.tell.subagents:
        session.tell.within(task_id, "subagent.progress", {"message": message})
    else:
        session.tell.fact("task.progress", {"message": message}, task_id=task_id)


def task_updated(session: Session, item: dict[str, Any]) -> None:
    """What changed of a task; its end is told by its notification."""
    task_id, patch = word(item, "task_id") or "task", table(item.get("patch")) or {}
    if patch.get("is_backgrounded") is True:
        session.background.add(task_id)
    status, message = word(patch, "status"), word(patch, "error", "description")
    if status == "paused":
        session.tell.fact("task.paused", {"message": message}, task_id=task_id)
    elif status is None and message is not None:
        session.tell.fact("task.updated", {"message": message}, task_id=task_id)


def task_notification(session: Session, item: dict[str, Any]) -> None:
    task_id, status = word(item, "task_id") or "task", word(item, "status") or ""
    of_agent, of_task = _ENDED.get(status, _ENDED["failed"])
    kept, summary = kept_at(word(item, "output_file")), word(item, "summary")
    said: dict[str, Any] = {"summary": summary, "resultRef": kept.pop("outputRef", None), **kept}
    if of_task != "task.completed":
        said |= {"failureCategory": word(item, "reason") or status or "failed", "message": summary}
    if task_id in session.tell.subagents:
        session.tell.within(task_id, "worker.notification", {"status": status, **said})
        session.tell.subagent_end(task_id, of_agent, **said)
    elif task_id in session.shells:
        session.shells.discard(task_id)
        session.tell.fact(of_task, said, task_id=task_id)
    session.background.discard(task_id)
