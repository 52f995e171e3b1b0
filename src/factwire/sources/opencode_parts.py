"""The parts of OpenCode's messages: text, reasoning, tools and what a step has cost.

A part is sent again whole each time it changes, and in pieces between; both may tell the same
words, so that only what is new of them is told. A tool that answers with another exit code than 0
has failed, as it has elsewhere, and so has `invalid`, which stands for a call that cannot be.
"""

from typing import Any, Final

from factwire.projection.reading import listed, number, table, word, words
from factwire.sources.opencode_thread import OpenCodeThread

Part = dict[str, Any]

_MOST_TOKENS: Final = 2**53
_MOST_COST: Final = 1e12


def take_part(thread: OpenCodeThread, properties: dict[str, Any], item: dict[str, Any]) -> None:
    """message.part.updated: a part as it is now."""
    part = table(properties.get("part")) or {}
    message_id = word(part, "messageID") or "message"
    session = word(part, "sessionID") or word(properties, "sessionID")
    if message_id in thread.users:
        _of_user(thread, part, message_id, session)
        return
    if not thread.answers(message_id, session):
        return
    kind = word(part, "type") or ""
    handle = _PARTS.get(kind)
    if handle is None:
        thread.tell.unknown(f"part {kind}", item)
    else:
        handle(thread, part, thread.speaker(session))


def take_delta(thread: OpenCodeThread, properties: dict[str, Any], item: dict[str, Any]) -> None:
    """message.part.delta: the next piece of a field of a part."""
    del item
    message_id = word(properties, "messageID") or "message"
    session, delta = word(properties, "sessionID"), word(properties, "delta")
    if not delta or message_id in thread.summaries or not thread.answers(message_id, session):
        return
    part_id = word(properties, "partID") or "part"
    kind, call_id = thread.kinds.get(part_id, ("text", ""))
    if kind == "tool":
        if call_id in thread.tell.tools:
            thread.tell.tool_args(call_id, delta)
    elif kind == "reasoning":
        reason(thread, message_id, part_id, delta, thread.speaker(session))
    elif part_id not in thread.closed:
        say(thread, message_id, part_id, delta, thread.speaker(session))


def take_removed(thread: OpenCodeThread, properties: dict[str, Any], item: dict[str, Any]) -> None:
    """message.removed, message.part.removed: what was said is taken back."""
    message_id, part_id = word(properties, "messageID") or "message", word(properties, "partID")
    parts = thread.parts.get(message_id, [])
    if part_id is None:
        thread.parts.pop(message_id, None)
        thread.tell.retract(message_id, f"{message_id}:user")
    elif part_id in parts:
        parts.remove(part_id)
        _take_back(thread, message_id, part_id, item, is_last=not parts)


def _take_back(
    thread: OpenCodeThread, message_id: str, part_id: str, item: Part, *, is_last: bool
) -> None:
    """One part of a message: with the last of them goes the message."""
    if is_last:
        thread.tell.retract(message_id)
    elif thread.begun:
        thread.tell.text_end(message_id, "", part_id=part_id)
    else:
        thread.tell.warn("part_removed", "a part was removed after its turn had ended", item)


def say(
    thread: OpenCodeThread, message_id: str, part_id: str, delta: str, speaker: str | None
) -> None:
    """The next piece of an answer."""
    _note_part(thread, message_id, part_id)
    thread.tell.text(message_id, delta, part_id=part_id, subagent_id=speaker)


def say_whole(
    thread: OpenCodeThread, message_id: str, part_id: str, text: str, speaker: str | None
) -> None:
    """An answer as it stands; told again only if it is another."""
    if thread.closed.get(part_id) == text:
        return
    thread.closed[part_id] = text
    thread.said[speaker] = text
    _note_part(thread, message_id, part_id)
    thread.tell.text_end(message_id, text, part_id=part_id, subagent_id=speaker)


def reason(
    thread: OpenCodeThread, message_id: str, part_id: str, delta: str, speaker: str | None
) -> None:
    """The next piece of reasoning."""
    thread.reasoned[part_id] = thread.reasoned.get(part_id, 0) + len(delta)
    thread.tell.reasoning(message_id, delta, part_id=part_id, subagent_id=speaker)


def reason_end(thread: OpenCodeThread, message_id: str, part_id: str, speaker: str | None) -> None:
    """Reasoning is over, once."""
    if part_id not in thread.closed:
        thread.closed[part_id] = ""
        ids = {"message_id": message_id, "part_id": part_id}
        thread.tell.within(speaker, "reasoning.completed", {}, **ids)


def _note_part(thread: OpenCodeThread, message_id: str, part_id: str) -> None:
    known = thread.parts.setdefault(message_id, [])
    if part_id not in known:
        known.append(part_id)


def _of_user(thread: OpenCodeThread, part: Part, message_id: str, session: str | None) -> None:
    """The words that begin a turn; during one, they steer it."""
    kind, text = word(part, "type"), word(part, "text", "prompt")
    if kind == "compaction":
        thread.ensure()
        start_compaction(thread, word(part, "id"), auto=part.get("auto") is True)
    elif thread.speaker(session) or part.get("synthetic") is True or part.get("ignored") is True:
        return
    elif kind not in ("text", "subtask"):
        if thread.begun:
            thread.attach(part)
        else:
            thread.held.append(part)
    elif message_id == thread.waiting:
        thread.ensure(text)
    elif message_id != thread.tell.turn_id and thread.begun:
        said = {"control": "steer", "steerId": message_id, "text": text, "status": "delivered"}
        thread.tell.fact("queue.changed", said, control="steer")


def _text(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    part_id, text = word(part, "id") or "part", word(part, "text") or ""
    message_id = word(part, "messageID") or "message"
    if message_id in thread.summaries:
        thread.said[message_id] = text
    elif _has_ended(part):
        say_whole(thread, message_id, part_id, text, speaker)
    elif part_id not in thread.closed:
        message = thread.tell.messages.get(part_id)
        told = "".join(message.pieces) if message is not None else ""
        if len(text) > len(told) and text.startswith(told):
            say(thread, message_id, part_id, text[len(told) :], speaker)


def _reasoning(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    part_id, text = word(part, "id") or "part", word(part, "text") or ""
    message_id = word(part, "messageID") or "message"
    thread.kinds[part_id] = ("reasoning", "")
    if message_id in thread.summaries:
        return
    told = thread.reasoned.get(part_id, 0)
    if len(text) > told:
        reason(thread, message_id, part_id, text[told:], speaker)
    if _has_ended(part):
        reason_end(thread, message_id, part_id, speaker)


def _has_ended(part: Part) -> bool:
    return number(table(part.get("time")) or {}, "end") is not None


def _tool(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    call_id, name = word(part, "callID", "id") or "call", word(part, "tool")
    state = table(part.get("state")) or {}
    if call_id in thread.closed or number(table(state.get("time")) or {}, "compacted") is not None:
        return
    thread.kinds[word(part, "id") or "part"] = ("tool", call_id)
    args = table(state.get("input")) or None
    thread.tell.tool(call_id, name, args, title=word(state, "title"), subagent_id=speaker)
    metadata = table(state.get("metadata")) or {}
    child, parent = word(metadata, "sessionId"), word(metadata, "parentSessionId")
    if child and parent and child not in (thread.root, *thread.titles):
        thread.child(child, parent, word(state, "title"))
    handle = _STATES.get(word(state, "status") or "")
    if handle is not None:
        handle(thread, call_id, name, state)


def _running(thread: OpenCodeThread, call_id: str, name: str | None, state: Part) -> None:
    """Output grows; what is new of it is told, and when it begins anew, all of it."""
    del name
    output = word(table(state.get("metadata")) or {}, "output")
    told = thread.outputs.get(call_id, "")
    if output is None or output == told:
        return
    thread.outputs[call_id] = output
    fresh = output.removeprefix(told)
    thread.tell.tool_output(call_id, fresh)


def _completed(thread: OpenCodeThread, call_id: str, name: str | None, state: Part) -> None:
    metadata = table(state.get("metadata")) or {}
    output, code = word(state, "output"), metadata.get("exit")
    if name == "invalid":
        message = word(table(state.get("input")) or {}, "error") or "the call is not valid"
        thread.tell.tool_failed(call_id, "invalid_input", message)
    elif type(code) is int and code != 0:
        failed = f"exit code {code}"
        thread.tell.tool_failed(call_id, "nonzero_exit", failed, exitCode=code, output=output)
    else:
        _note_change(thread, call_id, table(metadata.get("filediff")) or {})
        exit_code = code if type(code) is int else None
        title = word(state, "title")
        thread.tell.tool_result(call_id, output, title=title, exitCode=exit_code)
    thread.closed[call_id] = ""


def _failed(thread: OpenCodeThread, call_id: str, name: str | None, state: Part) -> None:
    del name
    category = "permission_denied" if call_id in thread.denied else "tool_error"
    thread.tell.tool_failed(call_id, category, word(state, "error") or "the tool failed")
    thread.closed[call_id] = ""


def _note_change(thread: OpenCodeThread, call_id: str, change: Part) -> None:
    path = word(change, "file")
    if path is None:
        return
    said = {
        "path": path,
        "change": "modified",
        "diff": word(change, "patch"),
        "addedLines": count(change, "additions"),
        "removedLines": count(change, "deletions"),
    }
    thread.tell.fact("file.changed", said, tool_call_id=call_id, artifact_id=f"file:{path}")


def _step_finish(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    spend(thread, part, speaker)
    if speaker is None:
        thread.finish = word(part, "reason") or thread.finish


def spend(thread: OpenCodeThread, step: Part, speaker: str | None) -> None:
    """What a step has cost; a turn costs the sum of its steps, its subagents' among them."""
    tokens = table(step.get("tokens")) or {}
    cache = table(tokens.get("cache")) or {}
    cost = number(step, "cost")
    said: dict[str, Any] = {
        "inputTokens": count(tokens, "input"),
        "outputTokens": count(tokens, "output"),
        "reasoningTokens": count(tokens, "reasoning"),
        "cacheReadTokens": count(cache, "read"),
        "cacheWriteTokens": count(cache, "write"),
        "totalCostUsd": cost if cost is not None and 0 <= cost <= _MOST_COST else None,
    }
    thread.tell.within(speaker, "cost.recorded", said)
    usage = thread.tell.usage
    for name in ("inputTokens", "outputTokens", "totalCostUsd"):
        usage[name] = usage.get(name, 0) + (said[name] or 0)


def count(holder: Part, name: str) -> int | None:
    """A whole number that can count something."""
    value = holder.get(name)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _patch(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    """The changes of a step, which stand already."""
    patch = word(part, "hash") or word(part, "id") or "patch"
    said = {"patchId": patch, "paths": words(listed(part.get("files")))}
    thread.tell.within(speaker, "patch.started", said)
    thread.tell.within(speaker, "patch.applied", said)


def _file(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    ref = thread.tell.keep((word(part, "url") or "").encode("utf-8", "replace"))
    said = {
        "kind": "file",
        "title": word(part, "filename"),
        "mediaType": word(part, "mime"),
        "contentRef": ref,
    }
    artifact = word(part, "id") or "file"
    thread.tell.within(speaker, "artifact.changed", said, artifact_id=artifact)


def _retry(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    retry(thread, part, table((table(part.get("error")) or {}).get("data")) or {}, speaker)


def retry(thread: OpenCodeThread, item: Part, error: Part, speaker: str | None) -> None:
    """A request that failed is made again."""
    limited = number(error, "statusCode") == 429  # noqa: PLR2004 - HTTP's own number
    said = {
        "code": "provider_retry",
        "message": word(error, "message") or "the request is made again",
        "attempt": count(item, "attempt"),
    }
    event_class = "rate_limit.hit" if limited else "runtime.warning"
    thread.tell.within(speaker, event_class, said)


def start_compaction(thread: OpenCodeThread, name: str | None, *, auto: bool) -> None:
    thread.compaction = name or "compaction"
    said = {"compactionId": thread.compaction, "trigger": "auto" if auto else "manual"}
    thread.tell.fact("context.compaction.started", said)


def end_compaction(thread: OpenCodeThread, summary: str | None) -> None:
    said = {"compactionId": thread.compaction, "summary": summary}
    thread.compaction = None
    if thread.begun:
        thread.tell.fact("context.compaction.completed", said)
    thread.tell.fact("history.compacted", said)


def _nothing(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    """A part that only frames others."""
    del thread, part, speaker


_STATES: Final = {"running": _running, "completed": _completed, "error": _failed}
_PARTS: Final = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "step-start": _nothing,
    "step-finish": _step_finish,
    "snapshot": _nothing,
    "patch": _patch,
    "file": _file,
    "agent": _nothing,
    "subtask": _nothing,
    "retry": _retry,
    "compaction": _nothing,
}
