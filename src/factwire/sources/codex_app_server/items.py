"""`item/*`: what is said and done in a turn, each item from its start to its end."""

from typing import Any, Final, Protocol

from factwire.projection.reading import listed, table, word, words
from factwire.sources.codex_app_server.agents import collab_call, sub_agent_activity
from factwire.sources.codex_app_server.files import file_change
from factwire.sources.codex_app_server.session import Session, input_text, whole


class Handle(Protocol):
    """Tells one kind of item, at its start or at its end."""

    def __call__(
        self,
        session: Session,
        speaker: str | None,
        item_id: str,
        item: dict[str, Any],
        *,
        ended: bool,
    ) -> None: ...


def item_event(session: Session, method: str, params: dict[str, Any]) -> None:
    item = table(params.get("item")) or {}
    kind, item_id = word(item, "type") or "", word(item, "id") or ""
    if kind == "userMessage":
        _user_message(session, params, item, ended=method == "item/completed")
        return
    handle = _ITEMS.get(kind)
    if handle is None:
        session.tell.unknown(f"item {kind}", params)
    else:
        ended = method == "item/completed"
        handle(session, session.speaker(params), item_id, item, ended=ended)


def _user_message(
    session: Session, params: dict[str, Any], item: dict[str, Any], *, ended: bool
) -> None:
    """What a person said: the prompt of a turn that begins, or a word into one that runs."""
    text = input_text(item.get("content"))
    thread = word(params, "threadId")
    if session.pending is not None and thread in (session.thread_id, None):
        session.settle(text)
        return
    speaker = session.speaker(params)
    if ended or text is None:
        return
    if speaker is not None:
        session.tell.within(speaker, "subagent.input", {"message": text})
    elif session.greeted:
        said = {"steerId": word(item, "id"), "text": text, "status": "delivered"}
        ids = {"message_id": word(item, "id"), "control": "steer"}
        session.tell.fact("queue.changed", said, **ids)
    elif not session.prompted:
        session.tell.fact("context.attached", {"message": text})
    session.greeted = session.greeted or speaker is None


def _agent_message(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    if ended:
        text = word(item, "text") or ""
        session.tell.text_end(item_id, text, subagent_id=speaker, phase=word(item, "phase"))
    else:
        session.tell.within(speaker, "model.requested", {}, message_id=item_id)


def _reasoning(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    summary, thoughts = words(item.get("summary")), words(item.get("content"))
    if ended and summary:
        session.tell.reasoning_summary(item_id, "\n\n".join(summary), subagent_id=speaker)
    elif ended and thoughts and item_id not in session.reasoned:
        session.tell.reasoning(item_id, "\n\n".join(thoughts), subagent_id=speaker)


def _command(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    args = {"command": word(item, "command"), "cwd": word(item, "cwd")}
    session.tell.tool(item_id, "commandExecution", args, subagent_id=speaker)
    if not ended:
        return
    code, output = whole(item.get("exitCode")), word(item, "aggregatedOutput")
    said = {"exitCode": code, "durationMs": whole(item.get("durationMs"))}
    status = word(item, "status")
    if status == "completed" and code in (0, None):
        session.tell.tool_result(item_id, output, **said)
    elif status == "declined":
        declined(session, speaker, item_id, "commandExecution")
    else:
        message = f"exit code {code}" if code is not None else "the command failed"
        session.tell.tool_failed(item_id, "nonzero_exit", message, output=output, **said)


def declined(session: Session, speaker: str | None, item_id: str, name: str) -> None:
    """A call that was not allowed to run."""
    said = {"reasonCode": "declined", "toolName": name, "decision": "deny"}
    session.tell.within(speaker, "permission.denied", said, tool_call_id=item_id)
    session.tell.tool_failed(item_id, "permission_denied", "it was declined")


def _files(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    if file_change(session, speaker, item_id, item, ended=ended) == "declined":
        declined(session, speaker, item_id, "fileChange")


def _mcp(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    name = f"{word(item, 'server') or 'mcp'}.{word(item, 'tool') or 'unknown'}"
    session.tell.tool(item_id, name, item.get("arguments"), subagent_id=speaker)
    if not ended:
        return
    error, result = table(item.get("error")), table(item.get("result")) or {}
    said = {"durationMs": whole(item.get("durationMs"))}
    if error is not None or word(item, "status") == "failed" or result.get("isError") is True:
        message = word(error or {}, "message") or input_text(result.get("content")) or "it failed"
        session.tell.tool_failed(item_id, "tool_error", message, **said)
    else:
        session.tell.tool_result(item_id, result or None, **said)


def _dynamic(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    space, tool = word(item, "namespace"), word(item, "tool") or "unknown"
    name = f"{space}.{tool}" if space else tool
    session.tell.tool(item_id, name, item.get("arguments"), subagent_id=speaker)
    if not ended:
        return
    output = input_text(item.get("contentItems")) or item.get("contentItems")
    said = {"durationMs": whole(item.get("durationMs"))}
    if item.get("success") is False or word(item, "status") == "failed":
        message = input_text(item.get("contentItems")) or "the client's tool failed"
        session.tell.tool_failed(item_id, "tool_error", message, **said)
    else:
        session.tell.tool_result(item_id, output, **said)


def _simple(name: str, argument: str, result: str | None = None) -> Handle:
    """A tool whose item has one argument and at most one result."""

    def handle(
        session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
    ) -> None:
        args = {argument: item.get(argument)}
        session.tell.tool(item_id, word(item, "name") or name, args, subagent_id=speaker)
        if ended:
            session.tell.tool_result(item_id, item.get(result) if result else None)

    return handle


def _image(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    args = {"prompt": word(item, "revisedPrompt")}
    session.tell.tool(item_id, "imageGeneration", args, subagent_id=speaker)
    if not ended:
        return
    failure, path = table(item.get("failure")), word(item, "savedPath")
    if failure is not None or word(item, "status") == "failed":
        message = word(failure or {}, "message") or "no image was made"
        session.tell.tool_failed(item_id, "tool_error", message)
        return
    said = {"kind": "image", "title": word(item, "revisedPrompt") or "image", "path": path}
    session.tell.within(speaker, "artifact.created", said, artifact_id=f"image:{item_id}")
    session.tell.tool_result(item_id, summary="an image was made")


def _plan(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    if ended:
        said = {"text": word(item, "text") or "", "planId": item_id}
        session.tell.within(speaker, "plan.final", said, part_id=item_id)


def _compaction(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    del item
    said = {"compactionId": item_id}
    if not ended:
        session.tell.within(speaker, "context.compaction.started", said)
        return
    session.compacted = True
    session.tell.within(speaker, "context.compaction.completed", said)
    session.tell.within(speaker, "history.compacted", said)


def _review(event_class: str) -> Handle:
    def handle(
        session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
    ) -> None:
        if ended:
            said = {"reviewId": item_id, "summary": word(item, "review")}
            session.tell.within(speaker, event_class, said, evidence_id=f"review:{item_id}")

    return handle


def _hook_prompt(
    session: Session, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    del item_id
    text = input_text(listed(item.get("fragments")))
    if ended and text:
        session.tell.within(speaker, "context.attached", {"message": text})


_ITEMS: Final[dict[str, Handle]] = {
    "agentMessage": _agent_message,
    "reasoning": _reasoning,
    "plan": _plan,
    "commandExecution": _command,
    "fileChange": _files,
    "mcpToolCall": _mcp,
    "dynamicToolCall": _dynamic,
    "collabAgentToolCall": collab_call,
    "subAgentActivity": sub_agent_activity,
    "webSearch": _simple("webSearch", "query", "results"),
    "imageView": _simple("imageView", "path"),
    "sleep": _simple("sleep", "durationMs"),
    "functionCallOutput": _simple("functionCall", "name", "output"),
    "imageGeneration": _image,
    "contextCompaction": _compaction,
    "enteredReviewMode": _review("review.requested"),
    "exitedReviewMode": _review("review.completed"),
    "hookPrompt": _hook_prompt,
}
