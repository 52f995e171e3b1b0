"""Items of a thread of Codex's app server, its subagents and errors, and what a converter
remembers between two messages.
"""

from typing import Any, Final, Protocol

from factwire.facts.json_values import (
    list_at,
    object_at,
    objects_of,
    text_at,
    texts_of,
    whole_number_at,
)
from factwire.sources.kit.fact_builder import FactBuilder, parse_epoch_seconds
from factwire.sources.kit.file_changes import add_file_change, complete_diff, diff_texts


class CodexSession:
    """One connection, as far as its lines tell."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.thread_id: str | None = None
        self.prompts: list[str] = []
        self.pending: str | None = None
        self.prompted = self.greeted = False
        self.compacted = False
        self.sent: dict[str, str] = {}
        self.requests: dict[str, tuple[str, dict[str, Any]]] = {}
        self.reasoned: set[str] = set()
        self.diffs: dict[str, str] = {}
        self.turns: dict[str, int] = {}
        self.used: dict[str, dict[str, int]] = {}
        self.total: dict[str, dict[str, int]] = {}
        self.resumed: set[str] = set()
        self.begun = False
        self.window: int | None = None
        self.context: tuple[int, int] = (0, 0)
        self.wants_structure = False
        self.answer: str | None = None

    def find_speaker(self, params: dict[str, Any]) -> str | None:
        """The subagent whose thread this is of, or none for the main one."""
        thread = text_at(params, "threadId", "conversationId")
        if self.thread_id is None:
            self.thread_id = thread
        if thread is None or thread == self.thread_id:
            self.begin_prompt()
            return None
        self.open_agent(thread)
        return thread

    def open_agent(self, thread: str, **about: Any) -> None:
        """A subagent begins to work; each time it does, in another turn of its own."""
        if thread in self.builder.subagents or thread == self.thread_id:
            return
        self.turns[thread] = self.turns.get(thread, 0) + 1
        own = f"{thread}:turn-{self.turns[thread]}"
        self.builder.start_subagent(thread, task_id=thread, turn_id=own, **about)

    def announce_agent(self, thread: str, **about: Any) -> None:
        """A subagent was created; one that worked before this arrived is not started again."""
        if thread not in self.turns:
            self.open_agent(thread, **about)

    def begin_prompt(self, prompt: str | None = None) -> None:
        """A turn that was announced begins, with the prompt that is known by now."""
        if self.pending is None:
            return
        turn, self.pending = self.pending, None
        value = self.prompts.pop(0) if self.prompts else prompt
        self.builder.begin_turn(value, turn_id=turn)
        self.prompted, self.greeted = value is not None, prompt is not None
        self.compacted = False
        self.reasoned.clear()
        self.diffs.clear()

    def set_time(self, item: dict[str, Any]) -> None:
        """The time that a notification was sent at."""
        sent = item.get("emittedAtMs")
        if type(sent) is int:
            self.builder.at = parse_epoch_seconds(sent / 1_000) or self.builder.at


def read_input_text(content: Any) -> str | None:
    """The texts of what a person gave."""
    rows = map(object_at, list_at(content) or ())
    return "\n".join(text for row in rows if row and (text := text_at(row, "text"))) or None


def read_name(value: Any) -> str | None:
    """A word, or the one key of an object: how the protocol writes its variants."""
    if isinstance(value, str):
        return value or None
    return next(iter(object_at(value) or ()), None)


_CATEGORIES: Final = {
    "contextWindowExceeded": "context_limit",
    "sessionBudgetExceeded": "budget_limit",
    "usageLimitExceeded": "rate_limited",
    "rateLimitExceeded": "rate_limited",
    "serverOverloaded": "provider_unavailable",
    "internalServerError": "provider_unavailable",
    "httpConnectionFailed": "provider_unavailable",
    "responseStreamConnectionFailed": "provider_unavailable",
    "responseStreamDisconnected": "provider_unavailable",
    "responseTooManyFailedAttempts": "provider_unavailable",
    "unauthorized": "unauthorized",
    "badRequest": "provider_error",
    "sandboxError": "sandbox_error",
    "cyberPolicy": "policy_refused",
    "misalignmentPolicyViolation": "policy_refused",
    "tooManyDenials": "permission_denied",
}
_HINTS: Final = {
    "context_limit": "Compact the thread, then retry the turn.",
    "rate_limited": "Wait until the limit resets, then retry the turn.",
    "unauthorized": "Set the key, or sign in again; then retry the turn.",
}
_STATUSES: Final = {401: "unauthorized", 403: "unauthorized", 429: "rate_limited"}
"""HTTP statuses that say more than the name of the error does."""


def failure_category(info: Any) -> str:
    """The category of an error; an HTTP status that says more than the name goes first."""
    name = read_name(info) or ""
    detail = object_at((object_at(info) or {}).get(name)) or {}
    status = detail.get("httpStatusCode")
    known = _STATUSES.get(status) if type(status) is int else None
    return known or _CATEGORIES.get(name, "provider_error")


def failure_hint(category: str) -> str | None:
    return _HINTS.get(category)


_ENDED: Final = {
    "completed": ("subagent.completed", None),
    "shutdown": ("subagent.completed", None),
    "interrupted": ("subagent.failed", "interrupted"),
    "errored": ("subagent.failed", "provider_error"),
    "failed": ("subagent.failed", "provider_error"),
    "notFound": ("subagent.failed", "not_found"),
}
"""State of an agent → what it ends with, and why it failed."""


def end_agent(session: CodexSession, thread: str, state: str, message: str | None = None) -> None:
    """A subagent is done, if this state is an end."""
    ending = _ENDED.get(state)
    if ending is not None and thread in session.builder.subagents:
        event_class, category = ending
        why = message or ("it ended: " + state if category else None)
        session.builder.end_subagent(thread, event_class, failureCategory=category, message=why)


def on_sub_agent_activity(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    del speaker
    thread, kind = text_at(item, "agentThreadId"), text_at(item, "kind") or ""
    if thread is None:
        session.builder.warn_unknown("activity without an agent", item)
    elif kind == "started":
        path = text_at(item, "agentPath")
        name = path.rpartition("/")[2] if path else None
        session.announce_agent(thread, name=name, title=path, toolCallId=item_id or None)
    elif kind == "interacted" and ended:
        session.open_agent(thread)
        session.builder.add_subagent_fact(
            thread, "subagent.progress", {"message": "it received a message"}
        )
    elif ended:
        end_agent(session, thread, kind)


def on_collab_call(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    """A call to other agents; what it says of their state is taken as it stands."""
    name, receivers = text_at(item, "tool") or "collab", texts_of(item.get("receiverThreadIds"))
    args = {"prompt": text_at(item, "prompt"), "receiverThreadIds": receivers}
    session.builder.start_tool(item_id, name, args, subagent_id=speaker)
    if not ended:
        return
    if name == "spawnAgent":
        for thread in receivers:
            about = {"objective": text_at(item, "prompt"), "toolCallId": item_id}
            session.announce_agent(thread, **about)
    if text_at(item, "status") == "failed":
        session.builder.fail_tool(item_id, "tool_error", "the call to the other agent failed")
    else:
        session.builder.complete_tool(item_id, item.get("agentsStates"))
    for thread, state in (object_at(item.get("agentsStates")) or {}).items():
        row = object_at(state) or {}
        end_agent(session, thread, text_at(row, "status") or "", text_at(row, "message"))


_CHANGES: Final = {"add": "created", "delete": "deleted", "update": "modified"}


def on_file_change(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> str | None:
    """Tell a patch; gives its status where it ended without a change."""
    changes = objects_of(item.get("changes"))
    session.builder.start_tool(item_id, "fileChange", {"changes": changes}, subagent_id=speaker)
    status = text_at(item, "status")
    if not ended or status == "declined":
        return status if ended else None
    if status != "completed":
        session.builder.fail_tool(item_id, "patch_failed", "the changes were not applied")
        return None
    for change in changes:
        _add_change(session, speaker, item_id, change)
    session.builder.complete_tool(item_id, summary=f"{len(changes)} files changed")
    return None


def _add_change(
    session: CodexSession, speaker: str | None, item_id: str, change: dict[str, Any]
) -> None:
    path, kind = text_at(change, "path") or "unknown", object_at(change.get("kind")) or {}
    what = text_at(kind, "type") or read_name(change.get("kind")) or ""
    done, moved_to = _CHANGES.get(what, "modified"), text_at(kind, "move_path")
    add_file_change(
        session.builder,
        path,
        done,
        _read_diff(path, done, text_at(change, "diff"), moved_to),
        call_id=item_id,
        subagent_id=speaker,
        movedTo=moved_to,
    )


def _read_diff(path: str, change: str, stated: str | None, moved_to: str | None) -> str | None:
    """What Codex calls the diff of a file that is new or gone is its text."""
    if change == "created":
        return diff_texts(path, None, stated or "")
    if change == "deleted":
        return diff_texts(path, stated or "", None)
    return complete_diff(path, change, stated, moved_to)


class ItemHandler(Protocol):
    """Tells one kind of item, at its start or at its end."""

    def __call__(
        self,
        session: CodexSession,
        speaker: str | None,
        item_id: str,
        item: dict[str, Any],
        *,
        ended: bool,
    ) -> None: ...


def on_item(session: CodexSession, method: str, params: dict[str, Any]) -> None:
    item = object_at(params.get("item")) or {}
    kind, item_id = text_at(item, "type") or "", text_at(item, "id") or ""
    if kind == "userMessage":
        _user_message(session, params, item, ended=method == "item/completed")
        return
    handle = _ITEMS.get(kind)
    if handle is None:
        session.builder.warn_unknown(f"item {kind}", params)
    else:
        ended = method == "item/completed"
        handle(session, session.find_speaker(params), item_id, item, ended=ended)


def _user_message(
    session: CodexSession, params: dict[str, Any], item: dict[str, Any], *, ended: bool
) -> None:
    """What a person said: the prompt of a turn that begins, or a word into one that runs."""
    text = read_input_text(item.get("content"))
    thread = text_at(params, "threadId")
    if session.pending is not None and thread in (session.thread_id, None):
        session.begin_prompt(text)
        return
    speaker = session.find_speaker(params)
    if ended or text is None:
        return
    if speaker is not None:
        session.builder.add_subagent_fact(speaker, "subagent.input", {"message": text})
    elif session.greeted:
        payload = {"steerId": text_at(item, "id"), "text": text, "status": "delivered"}
        ids = {"message_id": text_at(item, "id"), "control": "steer"}
        session.builder.add_fact("queue.changed", payload, **ids)
    elif not session.prompted:
        session.builder.add_fact("context.attached", {"message": text})
    session.greeted = session.greeted or speaker is None


def _on_agent_message(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    if ended:
        text = text_at(item, "text") or ""
        session.answer = text if speaker is None else session.answer
        session.builder.end_text(item_id, text, subagent_id=speaker, phase=text_at(item, "phase"))
    else:
        session.builder.add_subagent_fact(speaker, "model.requested", {}, message_id=item_id)


def _on_reasoning(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    summary, thoughts = texts_of(item.get("summary")), texts_of(item.get("content"))
    if ended and summary:
        session.builder.add_reasoning_summary(item_id, "\n\n".join(summary), subagent_id=speaker)
    elif ended and thoughts and item_id not in session.reasoned:
        session.builder.add_reasoning(item_id, "\n\n".join(thoughts), subagent_id=speaker)


def _on_command(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    args = {"command": text_at(item, "command"), "cwd": text_at(item, "cwd")}
    session.builder.start_tool(item_id, "commandExecution", args, subagent_id=speaker)
    if not ended:
        return
    code, output = whole_number_at(item, "exitCode"), text_at(item, "aggregatedOutput")
    payload = {"exitCode": code, "durationMs": whole_number_at(item, "durationMs")}
    status = text_at(item, "status")
    if status == "completed" and code in (0, None):
        session.builder.complete_tool(item_id, output, **payload)
    elif status == "declined":
        decline_call(session, speaker, item_id, "commandExecution")
    else:
        message = f"exit code {code}" if code is not None else "the command failed"
        session.builder.fail_tool(item_id, "nonzero_exit", message, output=output, **payload)


def decline_call(session: CodexSession, speaker: str | None, item_id: str, name: str) -> None:
    """A call that was not allowed to run."""
    payload = {"reasonCode": "declined", "toolName": name, "decision": "deny"}
    session.builder.add_subagent_fact(speaker, "permission.denied", payload, tool_call_id=item_id)
    session.builder.fail_tool(item_id, "permission_denied", "it was declined")


def _on_files(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    if on_file_change(session, speaker, item_id, item, ended=ended) == "declined":
        decline_call(session, speaker, item_id, "fileChange")


def _on_mcp(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    name = f"{text_at(item, 'server') or 'mcp'}.{text_at(item, 'tool') or 'unknown'}"
    session.builder.start_tool(item_id, name, item.get("arguments"), subagent_id=speaker)
    if not ended:
        return
    error, result = object_at(item.get("error")), object_at(item.get("result")) or {}
    payload = {"durationMs": whole_number_at(item, "durationMs")}
    if error is not None or text_at(item, "status") == "failed" or result.get("isError") is True:
        message = (
            text_at(error or {}, "message") or read_input_text(result.get("content")) or "it failed"
        )
        session.builder.fail_tool(item_id, "tool_error", message, **payload)
    else:
        session.builder.complete_tool(item_id, result or None, **payload)


def _on_dynamic(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    space, tool = text_at(item, "namespace"), text_at(item, "tool") or "unknown"
    name = f"{space}.{tool}" if space else tool
    session.builder.start_tool(item_id, name, item.get("arguments"), subagent_id=speaker)
    if not ended:
        return
    output = read_input_text(item.get("contentItems")) or item.get("contentItems")
    payload = {"durationMs": whole_number_at(item, "durationMs")}
    if item.get("success") is False or text_at(item, "status") == "failed":
        message = read_input_text(item.get("contentItems")) or "the client's tool failed"
        session.builder.fail_tool(item_id, "tool_error", message, **payload)
    else:
        session.builder.complete_tool(item_id, output, **payload)


def _make_simple_handler(name: str, argument: str, result: str | None = None) -> ItemHandler:
    """A tool whose item has one argument and at most one result."""

    def handle(
        session: CodexSession,
        speaker: str | None,
        item_id: str,
        item: dict[str, Any],
        *,
        ended: bool,
    ) -> None:
        args = {argument: item.get(argument)}
        session.builder.start_tool(
            item_id, text_at(item, "name") or name, args, subagent_id=speaker
        )
        if ended:
            session.builder.complete_tool(item_id, item.get(result) if result else None)

    return handle


def _on_image(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    args = {"prompt": text_at(item, "revisedPrompt")}
    session.builder.start_tool(item_id, "imageGeneration", args, subagent_id=speaker)
    if not ended:
        return
    failure, path = object_at(item.get("failure")), text_at(item, "savedPath")
    if failure is not None or text_at(item, "status") == "failed":
        message = text_at(failure or {}, "message") or "no image was created"
        session.builder.fail_tool(item_id, "tool_error", message)
        return
    payload = {"kind": "image", "title": text_at(item, "revisedPrompt") or "image", "path": path}
    session.builder.add_subagent_fact(
        speaker, "artifact.created", payload, artifact_id=f"image:{item_id}"
    )
    session.builder.complete_tool(item_id, summary="an image was created")


def _on_plan(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    if ended:
        payload = {"text": text_at(item, "text") or "", "planId": item_id}
        session.builder.add_subagent_fact(speaker, "plan.final", payload, part_id=item_id)


def _on_compaction(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    del item
    payload: dict[str, Any] = {"compactionId": item_id}
    used = sum(session.context)
    if not ended and used and session.window:
        payload |= {
            "tokensBefore": used,
            "tokensRemaining": max(session.window - used, 0),
            "usagePercent": round(used / session.window * 100, 2),
        }
    if not ended:
        session.builder.add_subagent_fact(speaker, "context.compaction.started", payload)
        return
    session.compacted = True
    session.builder.add_subagent_fact(speaker, "context.compaction.completed", payload)
    session.builder.add_subagent_fact(speaker, "history.compacted", payload)


def _make_review_handler(event_class: str) -> ItemHandler:
    def handle(
        session: CodexSession,
        speaker: str | None,
        item_id: str,
        item: dict[str, Any],
        *,
        ended: bool,
    ) -> None:
        if ended:
            payload = {"reviewId": item_id, "summary": text_at(item, "review")}
            session.builder.add_subagent_fact(
                speaker, event_class, payload, evidence_id=f"review:{item_id}"
            )

    return handle


def _on_hook_prompt(
    session: CodexSession, speaker: str | None, item_id: str, item: dict[str, Any], *, ended: bool
) -> None:
    del item_id
    text = read_input_text(list_at(item.get("fragments")))
    if ended and text:
        session.builder.add_subagent_fact(speaker, "context.attached", {"message": text})


_ITEMS: Final[dict[str, ItemHandler]] = {
    "agentMessage": _on_agent_message,
    "reasoning": _on_reasoning,
    "plan": _on_plan,
    "commandExecution": _on_command,
    "fileChange": _on_files,
    "mcpToolCall": _on_mcp,
    "dynamicToolCall": _on_dynamic,
    "collabAgentToolCall": on_collab_call,
    "subAgentActivity": on_sub_agent_activity,
    "webSearch": _make_simple_handler("webSearch", "query", "results"),
    "imageView": _make_simple_handler("imageView", "path"),
    "sleep": _make_simple_handler("sleep", "durationMs"),
    "functionCallOutput": _make_simple_handler("functionCall", "name", "output"),
    "imageGeneration": _on_image,
    "contextCompaction": _on_compaction,
    "enteredReviewMode": _make_review_handler("review.requested"),
    "exitedReviewMode": _make_review_handler("review.completed"),
    "hookPrompt": _on_hook_prompt,
}
