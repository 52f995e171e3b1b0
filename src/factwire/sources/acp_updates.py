"""`session/update`: what an agent tells its client while it works.

A call's content is replaced whole each time, so that only what is new of its text is told. Diffs
stand when their call is completed; before that they are a proposal. A tool has no name in the
protocol: its kind stands for it, and its title is what a person reads.
"""

from typing import Any, Final

import msgspec

from factwire.projection.reading import listed, table, word
from factwire.sources.acp_thread import AcpThread, count, text_of

Update = dict[str, Any]


def take_update(thread: AcpThread, params: Update, item: Update) -> None:
    update = table(params.get("update")) or {}
    kind = word(update, "sessionUpdate") or ""
    handle = _UPDATES.get(kind)
    if handle is None:
        thread.tell.unknown(f"update {kind}", item)
    elif thread.loading is not None:
        _recall(thread, kind, update)
    else:
        handle(thread, update)


def _recall(thread: AcpThread, kind: str, update: Update) -> None:
    """A session that is loaded tells its history again: what was said, in whole messages."""
    role = _ROLES.get(kind)
    text = text_of(update.get("content"))
    rows = thread.loading
    if role is None or text is None or rows is None:
        return
    message_id = word(update, "messageId")
    last = rows[-1] if rows else {}
    if last.get("role") == role and message_id in (None, last.get("messageId")):
        last["text"] += text
    else:
        named = message_id or f"history-{len(rows) + 1}"
        rows.append({"messageId": named, "role": role, "text": text})


def _said(thread: AcpThread, update: Update) -> None:
    _chunk(thread, update, "text")


def _thought(thread: AcpThread, update: Update) -> None:
    _chunk(thread, update, "reasoning")


def _chunk(thread: AcpThread, update: Update, kind: str) -> None:
    text = text_of(update.get("content"))
    if text is not None:
        thread.write(kind, word(update, "messageId"), text)
        return
    block = table(update.get("content")) or {}
    if word(block, "type") in (None, "text"):
        return
    ref = thread.tell.keep(msgspec.json.encode(block))
    said = {
        "kind": word(block, "type"),
        "title": word(block, "title", "name"),
        "mediaType": word(block, "mimeType"),
        "contentRef": ref,
    }
    artifact = f"content:{ref.rpartition(':')[2][:16]}"
    thread.tell.fact("artifact.changed", said, artifact_id=artifact)


def _echo(thread: AcpThread, update: Update) -> None:
    """What the user said, which the prompt has told already."""
    del thread, update


def take_call(thread: AcpThread, update: Update) -> None:
    """tool_call and tool_call_update, which may also be the first that is heard of a call."""
    call_id = word(update, "toolCallId") or "call"
    if call_id in thread.closed:
        return
    thread.end_stretch()
    _describe(thread, call_id, update)
    content = [row for row in map(table, listed(update.get("content")) or ()) if row]
    ended = word(update, "status") in _ENDS
    if not ended:
        _grow(thread, call_id, _text(content))
        return
    thread.closed.add(call_id)
    _ENDS[word(update, "status") or ""](thread, call_id, update, content)


def _describe(thread: AcpThread, call_id: str, update: Update) -> None:
    title, args = word(update, "title"), update.get("rawInput")
    known = call_id in thread.tell.tools
    thread.tell.tool(call_id, word(update, "kind"), args or None, title=title)
    if known and title is not None and title != thread.titles.get(call_id):
        thread.tell.tool_progress(call_id, title=title)
    if title is not None:
        thread.titles[call_id] = title


def _grow(thread: AcpThread, call_id: str, text: str | None) -> None:
    told = thread.outputs.get(call_id, "")
    if text is not None and text != told:
        thread.outputs[call_id] = text
        thread.tell.tool_output(call_id, text.removeprefix(told))


def _text(content: list[Update]) -> str | None:
    texts = [text for row in content if (text := text_of(row.get("content"))) is not None]
    return "\n".join(texts) or None


def _completed(thread: AcpThread, call_id: str, update: Update, content: list[Update]) -> None:
    for row in content:
        if word(row, "type") == "diff":
            _changed(thread, call_id, row)
    raw = update.get("rawOutput")
    output = raw if raw is not None else _text(content) or thread.outputs.get(call_id)
    thread.tell.tool_result(call_id, output, title=word(update, "title"))


def _failed(thread: AcpThread, call_id: str, update: Update, content: list[Update]) -> None:
    raw = table(update.get("rawOutput")) or {}
    message = _text(content) or word(raw, "error", "message") or "the tool failed"
    category = "permission_denied" if call_id in thread.denied else "tool_error"
    thread.tell.tool_failed(call_id, category, message)


def _changed(thread: AcpThread, call_id: str, diff: Update) -> None:
    path = word(diff, "path") or "unknown"
    said = {
        "path": path,
        "change": "modified" if isinstance(diff.get("oldText"), str) else "created",
        "diffRef": thread.tell.keep(msgspec.json.encode(diff)),
    }
    thread.tell.fact("file.changed", said, tool_call_id=call_id, artifact_id=f"file:{path}")


def _plan(thread: AcpThread, update: Update) -> None:
    """The whole plan each time; it is final when nothing on it is left to do."""
    plan = table(update.get("plan")) or update
    rows = [row for row in map(table, listed(plan.get("entries")) or ()) if row]
    lines = [
        f"[{'x' if word(row, 'status') == 'completed' else ' '}] {word(row, 'content') or ''}"
        for row in rows
    ]
    plan_id = word(plan, "planId") or "plan"
    text = "\n".join(lines) or word(plan, "content", "uri") or ""
    done = bool(rows) and all(word(row, "status") == "completed" for row in rows)
    said = {"text": text, "planId": plan_id, "steps": rows or None}
    thread.tell.fact("plan.final" if done else "plan.delta", said, part_id=plan_id)


def _commands(thread: AcpThread, update: Update) -> None:
    rows = map(table, listed(update.get("availableCommands")) or ())
    names = [name for row in rows if row and (name := word(row, "name"))]
    thread.tell.fact("session.updated", {"commands": names})


def _mode(thread: AcpThread, update: Update) -> None:
    thread.tell.fact("session.updated", {"mode": word(update, "currentModeId")})


def _options(thread: AcpThread, update: Update) -> None:
    rows = map(table, listed(update.get("configOptions")) or ())
    chosen = {name: word(row, "currentValue") for row in rows if row and (name := word(row, "id"))}
    thread.tell.fact("session.updated", {"options": chosen})


def _info(thread: AcpThread, update: Update) -> None:
    thread.tell.fact("session.updated", {"title": word(update, "title")})


def _usage(thread: AcpThread, update: Update) -> None:
    said = {"name": "context", "used": count(update, "used"), "limit": count(update, "size")}
    thread.tell.fact("limit.changed", said)
    thread.note_cost(table(update.get("cost")) or {})


_ENDS: Final = {"completed": _completed, "failed": _failed}
_ROLES: Final = {"user_message_chunk": "user", "agent_message_chunk": "assistant"}
_UPDATES: Final = {
    "user_message_chunk": _echo,
    "agent_message_chunk": _said,
    "agent_thought_chunk": _thought,
    "tool_call": take_call,
    "tool_call_update": take_call,
    "plan": _plan,
    "plan_update": _plan,
    "plan_removed": _plan,
    "available_commands_update": _commands,
    "current_mode_update": _mode,
    "config_option_update": _options,
    "session_info_update": _info,
    "usage_update": _usage,
}
