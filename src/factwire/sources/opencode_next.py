"""`session.next.*`: what newer OpenCode servers write down of a session, one event a change.

The same acts as in parts, under other names; they are told through the same functions, so that a
stream of either kind comes to the same facts.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.opencode_parts import (
    end_compaction,
    reason,
    reason_end,
    retry,
    say,
    say_whole,
    spend,
    start_compaction,
)
from factwire.sources.opencode_thread import OpenCodeThread

Event = dict[str, Any]


def take_next(thread: OpenCodeThread, kind: str, properties: Event, item: Event) -> None:
    """One event, by its name behind `session.next.`."""
    if kind in _FRAMES:
        return
    handle = _EVENTS.get(kind)
    if handle is None:
        thread.tell.unknown(f"session.next.{kind}", item)
        return
    session = word(properties, "sessionID")
    if kind == "prompted":
        _prompted(thread, properties, None)
    elif thread.answers(_message(properties), session):
        handle(thread, properties, thread.speaker(session))


def _prompted(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    session, message_id = word(event, "sessionID"), _message(event)
    text = word(table(event.get("prompt")) or {}, "text")
    was_begun = thread.begun
    thread.asked(session, message_id)
    if thread.speaker(session):
        return
    if was_begun:
        said = {"control": "steer", "steerId": message_id, "text": text, "status": "delivered"}
        thread.tell.fact("queue.changed", said, control="steer")
    else:
        thread.ensure(text)


def _step_started(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    model = table(event.get("model")) or {}
    said = {"model": word(model, "id"), "provider": word(model, "providerID")}
    thread.tell.within(speaker, "model.requested", said)


def _step_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    spend(thread, event, speaker)
    if speaker is None:
        thread.finish = word(event, "finish") or thread.finish


def _step_failed(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    error = table(event.get("error")) or {}
    thread.errors[word(event, "sessionID")] = {"name": word(error, "type"), "data": error}


def _text(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    delta = word(event, "delta")
    if delta and _part(event) not in thread.closed:
        say(thread, _message(event), _part(event), delta, speaker)


def _text_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    say_whole(thread, _message(event), _part(event), word(event, "text") or "", speaker)


def _reasoning(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    delta = word(event, "delta")
    if delta:
        reason(thread, _message(event), _part(event), delta, speaker)


def _reasoning_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    reason_end(thread, _message(event), _part(event), speaker)


def _tool(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    if _call(event) not in thread.closed:
        args = table(event.get("input"))
        thread.tell.tool(_call(event), word(event, "tool", "name"), args, subagent_id=speaker)


def _tool_input(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    delta = word(event, "delta")
    if delta and _call(event) in thread.tell.tools:
        thread.tell.tool_args(_call(event), delta)


def _tool_progress(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    if _call(event) in thread.tell.tools:
        output = table(event.get("structured"))
        thread.tell.tool_progress(_call(event), output=output, message=_content(event))


def _tool_success(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    _tool(thread, event, speaker)
    structured = table(event.get("structured")) or None
    _close(thread, event)
    thread.tell.tool_result(_call(event), _content(event) or structured)


def _tool_failed(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    _tool(thread, event, speaker)
    message = word(table(event.get("error")) or {}, "message") or "the tool failed"
    category = "permission_denied" if _call(event) in thread.denied else "tool_error"
    _close(thread, event)
    thread.tell.tool_failed(_call(event), category, message)


def _close(thread: OpenCodeThread, event: Event) -> None:
    thread.closed[_call(event)] = ""


def _shell(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    args = {"command": word(event, "command")}
    thread.tell.tool(_call(event), "shell", args, subagent_id=speaker)


def _shell_ended(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    thread.tell.tool_result(_call(event), word(event, "output"))


def _retried(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    retry(thread, event, table(event.get("error")) or {}, speaker)


def _compacting(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    start_compaction(thread, _message(event), auto=word(event, "reason") == "auto")


def _compacted(thread: OpenCodeThread, event: Event, speaker: str | None) -> None:
    del speaker
    end_compaction(thread, word(event, "text"))


def _content(event: Event) -> str | None:
    """The text among what a tool gives."""
    rows = [row for row in map(table, listed(event.get("content")) or ()) if row]
    return "\n".join(text for row in rows if (text := word(row, "text"))) or None


def _message(event: Event) -> str:
    return word(event, "assistantMessageID", "messageID") or "message"


def _part(event: Event) -> str:
    return word(event, "textID", "reasoningID") or _message(event)


def _call(event: Event) -> str:
    return word(event, "callID") or "call"


_FRAMES: Final = frozenset(
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
_EVENTS: Final = {
    "prompted": _prompted,
    "step.started": _step_started,
    "step.ended": _step_ended,
    "step.failed": _step_failed,
    "text.delta": _text,
    "text.ended": _text_ended,
    "reasoning.delta": _reasoning,
    "reasoning.ended": _reasoning_ended,
    "tool.input.started": _tool,
    "tool.input.delta": _tool_input,
    "tool.called": _tool,
    "tool.progress": _tool_progress,
    "tool.success": _tool_success,
    "tool.failed": _tool_failed,
    "shell.started": _shell,
    "shell.ended": _shell_ended,
    "retried": _retried,
    "compaction.started": _compacting,
    "compaction.ended": _compacted,
}
