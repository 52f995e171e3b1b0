"""OpenCode, as `opencode serve` sends it on `/event`: the state of sessions, messages and parts.

A session says that it is idle when a turn is over, also after an error and after an abort, which
come before it by themselves: an error is remembered, and the idle session ends the turn with it.
Events about the server (plugins, terminals, watchers) are known and say nothing about a turn.
"""

from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, number, table, word, words
from factwire.sources.opencode_next import take_next
from factwire.sources.opencode_parts import (
    count,
    end_compaction,
    take_delta,
    take_part,
    take_removed,
)
from factwire.sources.opencode_thread import OpenCodeThread, failure_of, rfc3339
from factwire.sources.source import Source
from factwire.sources.telling import Telling

Event = dict[str, Any]

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

    def __init__(self, telling: Telling) -> None:
        self.thread = OpenCodeThread(telling)

    def take(self, item: Event) -> None:
        kind = word(item, "type") or ""
        properties = table(item.get("properties")) or table(item.get("data")) or {}
        self.thread.tick(properties)
        known = _SERVER.get(kind)
        if known is not None:
            known(self.thread, properties)
        elif kind.startswith(_NEXT) or kind in _EVENTS:
            self._take_of_session(kind, properties, item)
        elif kind.partition(".")[0] not in _APART:
            self.thread.tell.unknown(kind, item)

    def _take_of_session(self, kind: str, properties: Event, item: Event) -> None:
        """The same words come as parts and as `session.next`, on servers that send both: those
        that come first are told.
        """
        style = "next" if kind.startswith(_NEXT) else "parts" if kind in _IN_PARTS else None
        if style is not None:
            self.thread.style = self.thread.style or style
            if self.thread.style != style:
                return
        if not self.thread.follows(word(properties, "sessionID"), item):
            return
        if style == "next":
            take_next(self.thread, kind.removeprefix(_NEXT), properties, item)
        else:
            _EVENTS[kind](self.thread, properties, item)

    def finish(self) -> None:
        """A stream that ends before its session is idle was cut off."""


def _session(thread: OpenCodeThread, properties: Event) -> None:
    thread.note_session(table(properties.get("info")) or {})


def _edited(thread: OpenCodeThread, properties: Event) -> None:
    """A tool has written a file; outside of a turn it was somebody else."""
    path = word(properties, "file")
    if path is not None and thread.begun:
        said = {"path": path, "change": "modified"}
        thread.tell.fact("file.changed", said, artifact_id=f"file:{path}")


def _watched(thread: OpenCodeThread, properties: Event) -> None:
    """That a file is another now, whoever did it."""
    del thread, properties


def _deleted(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    session = word(properties, "sessionID")
    data = {"message": "the session was deleted"}
    thread.errors.setdefault(session, {"name": "SessionDeleted", "data": data})
    thread.end(session)


def _message(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    info = table(properties.get("info")) or {}
    session = word(info, "sessionID") or word(properties, "sessionID")
    message_id = word(info, "id") or "message"
    if word(info, "role") == "user":
        thread.asked(session, message_id)
    elif message_id not in thread.users:
        _assistant(thread, info, message_id, session)


def _assistant(thread: OpenCodeThread, info: Event, message_id: str, session: str | None) -> None:
    is_new = message_id not in thread.messages
    if not thread.answers(message_id, session):
        return
    error = table(info.get("error"))
    if error is not None:
        thread.errors[session] = error
    if info.get("summary") is True:
        thread.summaries.add(message_id)
    elif is_new:
        said = {"model": word(info, "modelID"), "provider": word(info, "providerID")}
        thread.tell.within(thread.speaker(session), "model.requested", said)


def _status(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    status = table(properties.get("status")) or {}
    kind = word(status, "type")
    if kind == "idle":
        _idle(thread, properties, item)
    elif kind == "retry":
        thread.ensure()
        moment = number(status, "next")
        said = {
            "status": "retrying",
            "message": word(status, "message"),
            "attempt": count(status, "attempt"),
            "retryAt": rfc3339(moment) if moment is not None else None,
        }
        thread.retrying = True
        thread.tell.within(_speaker(thread, properties), "run.status", said)
    elif thread.retrying:
        thread.retrying = False
        thread.tell.fact("run.status", {"status": "running"})


def _idle(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    thread.end(word(properties, "sessionID"))


def _error(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    error = table(properties.get("error")) or {}
    session = word(properties, "sessionID")
    if session is not None and (thread.begun or thread.waiting is not None):
        thread.errors[session] = error
        return
    category, message = failure_of(error)
    if session is None:
        thread.tell.fact("runtime.error", {"code": category, "message": message})


def _diff(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    """What the session has changed so far, against how it found things."""
    del item
    rows = [row for row in map(table, listed(properties.get("diff")) or ()) if row]
    if not rows:
        return
    said = {
        "kind": "diff",
        "diffRef": thread.tell.keep(msgspec.json.encode(rows)),
        "files": [word(row, "file") for row in rows],
    }
    artifact = f"diff:{word(properties, 'sessionID') or 'session'}"
    thread.tell.fact("artifact.diff.ready", said, artifact_id=artifact)


def _compacted(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del properties, item
    summary = [text for name in sorted(thread.summaries) if (text := thread.said.pop(name, None))]
    thread.summaries.clear()
    end_compaction(thread, "\n".join(summary) or None)


def _permission(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    name = word(properties, "permission", "action") or "tool"
    patterns = words(listed(properties.get("patterns")) or listed(properties.get("resources")))
    call = _call_args(thread, properties)
    args = table(properties.get("metadata")) or call
    command = word(args, "command")
    about = command or word(args, "filepath") or ", ".join(patterns)
    said = {
        "actionType": "tool_approval",
        "prompt": f"Allow {name}: {about}" if about else f"Allow {name}?",
        "toolName": name,
        "args": args or None,
        "command": command,
        "cwd": (word(call, "workdir") or thread.folder) if command else None,
        "options": list(_OPTIONS),
    }
    _ask(thread, properties, said)


def _call_args(thread: OpenCodeThread, properties: Event) -> Event:
    """With what the tool is called that a request is about; not every request repeats it."""
    about = table(properties.get("tool")) or table(properties.get("source")) or {}
    tool = thread.tell.tools.get(word(about, "callID") or "")
    return (table(tool.args) if tool is not None else None) or {}


def _question(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    questions = [each for each in map(table, listed(properties.get("questions")) or ()) if each]
    prompts = [text for each in questions if (text := word(each, "question"))]
    said: Event = {
        "actionType": "structured_input",
        "prompt": "\n".join(prompts) or "OpenCode asks something",
        "questions": questions,
    }
    if len(questions) == 1:
        said["options"] = listed(questions[0].get("options"))
    _ask(thread, properties, said)


def _ask(thread: OpenCodeThread, properties: Event, said: Event) -> None:
    thread.ensure()
    action = word(properties, "id") or "request"
    tool = table(properties.get("tool")) or table(properties.get("source")) or {}
    call_id = word(tool, "callID")
    if call_id is not None:
        thread.calls[action] = call_id
    speaker = _speaker(thread, properties)
    thread.tell.ask(action, said, tool_call_id=call_id, subagent_id=speaker)


def _permission_replied(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    reply = word(properties, "reply") or ""
    decision = _REPLIES.get(reply)
    if decision is None:
        thread.tell.unknown(f"reply {reply}", item)
    else:
        _answer(thread, properties, decision, response=reply)


def _question_replied(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    _answer(thread, properties, "answered", response=listed(properties.get("answers")))


def _question_rejected(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    del item
    _answer(thread, properties, "denied", reason="dismissed")


def _answer(thread: OpenCodeThread, properties: Event, decision: str, **said: Any) -> None:
    action = word(properties, "requestID") or "request"
    call_id = thread.calls.pop(action, None)
    if decision == "denied" and call_id is not None:
        thread.denied.add(call_id)
    thread.tell.answered(action, decision, **said)


def _todo(thread: OpenCodeThread, properties: Event, item: Event) -> None:
    """The whole list each time; it is final when nothing on it is left to do."""
    del item
    steps = [step for step in map(table, listed(properties.get("todos")) or ()) if step]
    thread.ensure()
    done = all(word(step, "status") in ("completed", "cancelled") for step in steps)
    text = "\n".join(
        f"[{'x' if word(step, 'status') == 'completed' else ' '}] {word(step, 'content') or ''}"
        for step in steps
    )
    plan = f"todo:{word(properties, 'sessionID') or 'session'}"
    said = {"text": text, "planId": plan, "steps": steps}
    event_class = "plan.final" if done else "plan.delta"
    thread.tell.within(_speaker(thread, properties), event_class, said, part_id=plan)


def _speaker(thread: OpenCodeThread, properties: Event) -> str | None:
    return thread.speaker(word(properties, "sessionID"))


_SERVER: Final = {
    "session.created": _session,
    "session.updated": _session,
    "file.edited": _edited,
    "file.watcher.updated": _watched,
}
_EVENTS: Final = {
    "session.deleted": _deleted,
    "session.status": _status,
    "session.idle": _idle,
    "session.error": _error,
    "session.diff": _diff,
    "session.compacted": _compacted,
    "message.updated": _message,
    "message.removed": take_removed,
    "message.part.updated": take_part,
    "message.part.delta": take_delta,
    "message.part.removed": take_removed,
    "permission.asked": _permission,
    "permission.v2.asked": _permission,
    "permission.replied": _permission_replied,
    "permission.v2.replied": _permission_replied,
    "question.asked": _question,
    "question.v2.asked": _question,
    "question.replied": _question_replied,
    "question.v2.replied": _question_replied,
    "question.rejected": _question_rejected,
    "question.v2.rejected": _question_rejected,
    "todo.updated": _todo,
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
        "server, plugin, pty, lsp, mcp, vcs, tui, file.watcher …": "nothing: not of a turn",
    },
    lacks=("exit codes other than bash's", "who decided", "pieces of a tool's arguments"),
)
