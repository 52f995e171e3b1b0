"""OpenCode's server events as facts: those of today, and those of its next generation.

Both may stand in one stream; an event of the next generation speaks of messages and parts that
the older ones may repeat, and each is built once.
"""

from typing import Any, Final

from factwire.facts.json_values import list_at, number_at, object_at, objects_of, text_at, texts_of
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.opencode.message_parts import (
    OpenCodeThread,
    add_reasoning_delta,
    add_retry,
    add_text_delta,
    add_usage,
    complete_text,
    end_compaction,
    end_reasoning,
    format_milliseconds,
    read_count,
    read_failure,
    read_row_diff,
    start_compaction,
    take_delta,
    take_part,
    take_removed,
)
from factwire.sources.source_registry import Source

Event = dict[str, Any]


def take_next(thread: OpenCodeThread, kind: str, properties: Event, item: Event) -> None:
    """One event, by its name behind `session.next.`."""
    if kind in _NEXT_FRAMES:
        return
    handle = _NEXT_EVENTS.get(kind)
    if handle is None:
        thread.builder.warn_unknown(f"session.next.{kind}", item)
        return
    session = text_at(properties, "sessionID")
    if kind == "prompted":
        _on_prompted(thread, properties, None)
    elif thread.is_answer(_message_id(properties), session):
        handle(thread, properties, thread.find_speaker(session))


def _on_prompted(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    session, message_id = text_at(event, "sessionID"), _message_id(event)
    text = text_at(object_at(event.get("prompt")) or {}, "text")
    was_begun = thread.begun
    thread.note_prompt(session, message_id)
    if thread.find_speaker(session):
        return
    if was_begun:
        payload = {"control": "steer", "steerId": message_id, "text": text, "status": "delivered"}
        thread.builder.add_fact("queue.changed", payload, control="steer")
    else:
        thread.ensure_turn(text)


def _on_step_started(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    model = object_at(event.get("model")) or {}
    payload = {"model": text_at(model, "id"), "provider": text_at(model, "providerID")}
    thread.builder.add_subagent_fact(speaker, "model.requested", payload)


def _on_step_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    add_usage(thread, event, speaker)
    if speaker is None:
        thread.finish = text_at(event, "finish") or thread.finish


def _on_step_failed(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    error = object_at(event.get("error")) or {}
    thread.errors[text_at(event, "sessionID")] = {"name": text_at(error, "type"), "data": error}


def _on_text(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    delta = text_at(event, "delta")
    if delta and _part_id(event) not in thread.closed:
        add_text_delta(thread, _message_id(event), _part_id(event), delta, speaker)


def _on_text_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    complete_text(
        thread, _message_id(event), _part_id(event), text_at(event, "text") or "", speaker
    )


def _on_reasoning(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    delta = text_at(event, "delta")
    if delta:
        add_reasoning_delta(thread, _message_id(event), _part_id(event), delta, speaker)


def _on_reasoning_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    end_reasoning(thread, _message_id(event), _part_id(event), speaker)


def _on_tool(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    if _call_id(event) not in thread.closed:
        args = object_at(event.get("input"))
        thread.builder.start_tool(
            _call_id(event), text_at(event, "tool", "name"), args, subagent_id=speaker
        )


def _on_tool_input(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    delta = text_at(event, "delta")
    if delta and _call_id(event) in thread.builder.tools:
        thread.builder.add_tool_args(_call_id(event), delta)


def _on_tool_progress(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    if _call_id(event) in thread.builder.tools:
        output = object_at(event.get("structured"))
        thread.builder.report_tool_progress(
            _call_id(event), output=output, message=_read_content(event)
        )


def _on_tool_success(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    _on_tool(thread, event, speaker)
    structured = object_at(event.get("structured")) or None
    _close_call(thread, event)
    thread.builder.complete_tool(_call_id(event), _read_content(event) or structured)


def _on_tool_failed(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    _on_tool(thread, event, speaker)
    message = text_at(object_at(event.get("error")) or {}, "message") or "the tool failed"
    category = "permission_denied" if _call_id(event) in thread.denied else "tool_error"
    _close_call(thread, event)
    thread.builder.fail_tool(_call_id(event), category, message)


def _close_call(thread: OpenCodeThread, event: Event) -> None:
    thread.closed[_call_id(event)] = ""


def _on_shell(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    args = {"command": text_at(event, "command")}
    thread.builder.start_tool(_call_id(event), "shell", args, subagent_id=speaker)


def _on_shell_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    thread.builder.complete_tool(_call_id(event), text_at(event, "output"))


def _on_retried(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    add_retry(thread, event, object_at(event.get("error")) or {}, speaker)


def _on_compacting(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    start_compaction(thread, _message_id(event), auto=text_at(event, "reason") == "auto")


def _on_next_compacted(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    end_compaction(thread, text_at(event, "text"))


def _read_content(event: Event) -> str | None:
    """The text among what a tool gives."""
    rows = objects_of(event.get("content"))
    return "\n".join(text for row in rows if (text := text_at(row, "text"))) or None


def _message_id(event: Event) -> str:
    return text_at(event, "assistantMessageID", "messageID") or "message"


def _part_id(event: Event) -> str:
    return text_at(event, "textID", "reasoningID") or _message_id(event)


def _call_id(event: Event) -> str:
    return text_at(event, "callID") or "call"


_NEXT_FRAMES: Final = frozenset(
    {
        "prompt.admitted",
        "context.updated",
        "synthetic",
        "text.started",
        "reasoning.started",
        "tool.input.ended",
        "compaction.delta",
    }
)
_NEXT_EVENTS: Final = {
    "prompted": _on_prompted,
    "step.started": _on_step_started,
    "step.ended": _on_step_ended,
    "step.failed": _on_step_failed,
    "text.delta": _on_text,
    "text.ended": _on_text_ended,
    "reasoning.delta": _on_reasoning,
    "reasoning.ended": _on_reasoning_ended,
    "tool.input.started": _on_tool,
    "tool.input.delta": _on_tool_input,
    "tool.called": _on_tool,
    "tool.progress": _on_tool_progress,
    "tool.success": _on_tool_success,
    "tool.failed": _on_tool_failed,
    "shell.started": _on_shell,
    "shell.ended": _on_shell_ended,
    "retried": _on_retried,
    "compaction.started": _on_compacting,
    "compaction.ended": _on_next_compacted,
}


_NEXT: Final = "session.next."
_IN_PARTS: Final = ("message.part.updated", "message.part.delta")
_APART: Final = frozenset(
    {
        "catalog",
        "command",
        "global",
        "installation",
        "integration",
        "lsp",
        "mcp",
        "models-dev",
        "plugin",
        "project",
        "pty",
        "reference",
        "server",
        "tui",
        "vcs",
        "workspace",
        "worktree",
    }
)
_REPLIES: Final = {"once": "approved", "always": "approved", "reject": "denied"}
_OPTIONS: Final = (
    {"id": "once", "label": "Allow once"},
    {"id": "always", "label": "Always allow"},
    {"id": "reject", "label": "Reject"},
)


class OpenCode:
    """Converts the events of one server, as far as they are of one conversation."""

    def __init__(self, builder: FactBuilder) -> None:
        self.thread = OpenCodeThread(builder)

    def take(self, item: Event) -> None:
        kind = text_at(item, "type") or ""
        properties = object_at(item.get("properties")) or object_at(item.get("data")) or {}
        self.thread.set_time(properties)
        known = _SERVER.get(kind)
        if known is not None:
            known(self.thread, properties)
        elif kind.startswith(_NEXT) or kind in _SERVER_EVENTS:
            self._take_of_session(kind, properties, item)
        elif kind.partition(".")[0] not in _APART:
            self.thread.builder.warn_unknown(kind, item)

    def _take_of_session(self, kind: str, properties: Event, item: Event) -> None:
        """The same words come as parts and as `session.next`, on servers that send both: those
        that come first are told.
        """
        style = "next" if kind.startswith(_NEXT) else "parts" if kind in _IN_PARTS else None
        if style is not None:
            self.thread.style = self.thread.style or style
            if self.thread.style != style:
                return
        if not self.thread.is_followed(text_at(properties, "sessionID"), item):
            return
        if style == "next":
            take_next(self.thread, kind.removeprefix(_NEXT), properties, item)
        else:
            _SERVER_EVENTS[kind](self.thread, properties, item)

    def finish(self) -> None:
        """A stream that ends before its session is idle was cut off."""


def _on_session(thread: OpenCodeThread, properties: Event) -> None:
    thread.note_session(object_at(properties.get("info")) or {})


def _on_edited(thread: OpenCodeThread, properties: Event) -> None:
    """A tool has written a file; outside of a turn it was somebody else."""
    path = text_at(properties, "file")
    if path is not None and thread.begun:
        payload = {"path": path, "change": "modified"}
        thread.builder.add_fact("file.changed", payload, artifact_id=f"file:{path}")


def _on_watched(thread: OpenCodeThread, properties: Event) -> None:
    """That a file is another now, whoever did it."""
    del thread, properties


def _on_deleted(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    session = text_at(properties, "sessionID")
    data = {"message": "the session was deleted"}
    thread.errors.setdefault(session, {"name": "SessionDeleted", "data": data})
    thread.end_session(session)


def _on_message(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    info = object_at(properties.get("info")) or {}
    session = text_at(info, "sessionID") or text_at(properties, "sessionID")
    message_id = text_at(info, "id") or "message"
    if text_at(info, "role") == "user":
        thread.note_prompt(session, message_id)
    elif message_id not in thread.users:
        _take_assistant(thread, info, message_id, session)


def _take_assistant(
    thread: OpenCodeThread, info: Event, message_id: str, session: str | None
) -> None:
    is_new = message_id not in thread.messages
    if not thread.is_answer(message_id, session):
        return
    error = object_at(info.get("error"))
    if error is not None:
        thread.errors[session] = error
    if info.get("summary") is True:
        thread.summaries.add(message_id)
    elif is_new:
        payload = {"model": text_at(info, "modelID"), "provider": text_at(info, "providerID")}
        thread.builder.add_subagent_fact(thread.find_speaker(session), "model.requested", payload)


def _on_status(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    status = object_at(properties.get("status")) or {}
    kind = text_at(status, "type")
    if kind == "idle":
        _on_idle(thread, properties, item)
    elif kind == "retry":
        thread.ensure_turn()
        moment = number_at(status, "next")
        payload = {
            "status": "retrying",
            "message": text_at(status, "message"),
            "attempt": read_count(status, "attempt"),
            "retryAt": format_milliseconds(moment) if moment is not None else None,
        }
        thread.retrying = True
        thread.builder.add_subagent_fact(_find_speaker(thread, properties), "run.status", payload)
    elif thread.retrying:
        thread.retrying = False
        thread.builder.add_fact("run.status", {"status": "running"})


def _on_idle(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    thread.end_session(text_at(properties, "sessionID"))


def _on_error(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    error = object_at(properties.get("error")) or {}
    session = text_at(properties, "sessionID")
    if session is not None and (thread.begun or thread.waiting is not None):
        thread.errors[session] = error
        return
    category, message = read_failure(error)
    if session is None:
        thread.builder.add_fact("runtime.error", {"code": category, "message": message})


def _on_diff(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    """What the session has changed so far, against how it found things."""
    del item
    rows = objects_of(properties.get("diff"))
    if not rows:
        return
    payload = {
        "kind": "diff",
        "diff": "".join(diff for row in rows if (diff := read_row_diff(row))) or None,
        "files": [text_at(row, "file") for row in rows],
    }
    artifact = f"diff:{text_at(properties, 'sessionID') or 'session'}"
    thread.builder.add_fact("artifact.diff.ready", payload, artifact_id=artifact)


def _on_compacted(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del properties, item
    summary = [
        text for name in sorted(thread.summaries) if (text := thread.last_texts.pop(name, None))
    ]
    thread.summaries.clear()
    end_compaction(thread, "\n".join(summary) or None)


def _on_permission(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    name = text_at(properties, "permission", "action") or "tool"
    patterns = texts_of(list_at(properties.get("patterns")) or list_at(properties.get("resources")))
    call = _call_args(thread, properties)
    args = object_at(properties.get("metadata")) or call
    command, diff = text_at(args, "command"), text_at(args, "diff")
    about = command or text_at(args, "filepath") or ", ".join(patterns)
    payload = {
        "actionType": "tool_approval",
        "prompt": f"Allow {name}: {about}" if about else f"Allow {name}?",
        "toolName": name,
        "args": args or None,
        "command": command,
        "cwd": (text_at(call, "workdir") or thread.folder) if command else None,
        "options": list(_OPTIONS),
    }
    asker = object_at(properties.get("tool")) or {}
    if diff is not None and (call_id := text_at(asker, "callID")) is not None:
        thread.proposed_diffs[call_id] = diff
    _ask(thread, properties, payload)


def _call_args(thread: OpenCodeThread, properties: Event) -> Event:
    """With what the tool is called that a request is about; not every request repeats it."""
    about = object_at(properties.get("tool")) or object_at(properties.get("source")) or {}
    tool = thread.builder.tools.get(text_at(about, "callID") or "")
    return (object_at(tool.args) if tool is not None else None) or {}


def _on_question(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    questions = objects_of(properties.get("questions"))
    prompts = [text for each in questions if (text := text_at(each, "question"))]
    payload: Event = {
        "actionType": "structured_input",
        "prompt": "\n".join(prompts) or "OpenCode has a question",
        "questions": questions,
    }
    if len(questions) == 1:
        payload["options"] = list_at(questions[0].get("options"))
    _ask(thread, properties, payload)


def _ask(thread: OpenCodeThread, properties: Event, payload: Event) -> None:
    thread.ensure_turn()
    action = text_at(properties, "id") or "request"
    tool = object_at(properties.get("tool")) or object_at(properties.get("source")) or {}
    call_id = text_at(tool, "callID")
    if call_id is not None:
        thread.calls[action] = call_id
    speaker = _find_speaker(thread, properties)
    thread.builder.require_action(action, payload, tool_call_id=call_id, subagent_id=speaker)


def _on_permission_replied(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    reply = text_at(properties, "reply") or ""
    decision = _REPLIES.get(reply)
    if decision is None:
        thread.builder.warn_unknown(f"reply {reply}", item)
    else:
        _answer(thread, properties, decision, response=reply)


def _on_question_replied(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    _answer(thread, properties, "answered", response=list_at(properties.get("answers")))


def _on_question_rejected(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    _answer(thread, properties, "denied", reason="dismissed")


def _answer(thread: OpenCodeThread, properties: Event, decision: str, **extra_fields: Any) -> None:
    action = text_at(properties, "requestID") or "request"
    call_id = thread.calls.pop(action, None)
    if decision == "denied" and call_id is not None:
        thread.denied.add(call_id)
    thread.builder.resolve_action(action, decision, **extra_fields)


def _todo_line(step: dict[str, Any]) -> str:
    mark = "x" if text_at(step, "status") == "completed" else " "
    return f"[{mark}] {text_at(step, 'content') or ''}"


def _on_todo(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    """The whole list each time; it is final when nothing on it is left to do."""
    del item
    steps = objects_of(properties.get("todos"))
    thread.ensure_turn()
    done = all(text_at(step, "status") in ("completed", "cancelled") for step in steps)
    text = "\n".join(map(_todo_line, steps))
    plan = f"todo:{text_at(properties, 'sessionID') or 'session'}"
    payload = {"text": text, "planId": plan, "steps": steps}
    event_class = "plan.final" if done else "plan.delta"
    thread.builder.add_subagent_fact(
        _find_speaker(thread, properties), event_class, payload, part_id=plan
    )


def _find_speaker(thread: OpenCodeThread, properties: Event) -> str | None:
    return thread.find_speaker(text_at(properties, "sessionID"))


_SERVER: Final = {
    "session.created": _on_session,
    "session.updated": _on_session,
    "file.edited": _on_edited,
    "file.watcher.updated": _on_watched,
}
_SERVER_EVENTS: Final = {
    "session.deleted": _on_deleted,
    "session.status": _on_status,
    "session.idle": _on_idle,
    "session.error": _on_error,
    "session.diff": _on_diff,
    "session.compacted": _on_compacted,
    "message.updated": _on_message,
    "message.removed": take_removed,
    "message.part.updated": take_part,
    "message.part.delta": take_delta,
    "message.part.removed": take_removed,
    "permission.asked": _on_permission,
    "permission.v2.asked": _on_permission,
    "permission.replied": _on_permission_replied,
    "permission.v2.replied": _on_permission_replied,
    "question.asked": _on_question,
    "question.v2.asked": _on_question,
    "question.replied": _on_question_replied,
    "question.v2.replied": _on_question_replied,
    "question.rejected": _on_question_rejected,
    "question.v2.rejected": _on_question_rejected,
    "todo.updated": _on_todo,
}

SOURCE: Final = Source(
    name="opencode",
    title="OpenCode (/event)",
    framing="events",
    versions="1.18",
    converter=OpenCode,
    maps={
        "message.updated of the user, its text part": "turn.submitted, turn.started",
        "text part of the user during a turn": "queue.changed (steer)",
        "other parts of the user": "context.attached",
        "message.updated of the assistant": "model.requested",
        "text part, message.part.delta": "model.delta, model.completed",
        "reasoning part": "reasoning.delta, reasoning.completed",
        "tool part": "tool.started, tool.args, tool.output.delta, tool.result or tool.failed",
        "tool part with a file diff": "file.changed",
        "step-finish part": "cost.recorded, and the sum at the end of the turn",
        "patch part": "patch.started, patch.applied",
        "file part": "artifact.changed",
        "retry part": "rate_limit.hit or runtime.warning",
        "message.removed, message.part.removed": "messages.snapshot",
        "permission.asked, permission.replied": "action.required, action.resolved",
        "question.asked, question.replied, question.rejected": "action.required, action.resolved",
        "todo.updated": "plan.delta, plan.final",
        "file.edited": "file.changed",
        "session.diff": "artifact.diff.ready",
        "session.created with a parent": "task.created, subagent.started",
        "session.status (retry)": "run.status",
        "compaction part, session.compacted": "context.compaction.*, history.compacted",
        "session.error": "turn.failed or turn.canceled, when the session is idle",
        "session.idle, session.status (idle)": "turn.*; of a subagent subagent.*, task.*",
        "session.next.*": "as the parts, where a server sends no parts",
        "server, plugin, pty, lsp, mcp, vcs, tui, file.watcher …": "nothing: not part of a turn",
    },
    lacks=("exit codes other than bash's", "who decided", "pieces of a tool's arguments"),
)
