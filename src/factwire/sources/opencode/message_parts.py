"""Parts of OpenCode's messages as facts, and the session that a thread is.

Parts are sent again each time that they change; only what is new is added. Sessions of
subagents name their parent; what has ended is told apart from what was cut off.
"""

from datetime import UTC, datetime
from typing import Any, Final

from factwire.facts.json_values import list_at, number_at, object_at, text_at, texts_of
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.file_changes import add_file_change, complete_diff, diff_texts

_CATEGORIES: Final = {
    "ProviderAuthError": "unauthorized",
    "MessageOutputLengthError": "output_too_long",
    "StructuredOutputError": "invalid_output",
    "ContextOverflowError": "context_overflow",
    "ContentFilterError": "content_filtered",
}
_STATUSES: Final[dict[float, str]] = {
    400: "invalid_request",
    401: "unauthorized",
    403: "unauthorized",
    429: "rate_limited",
}
"""What a model's server answered → what that means."""

_SERVER_ERRORS: Final = 500


class OpenCodeThread:
    """The books of one conversation; what one turn needs goes with its end."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.moment = 0.0
        self.root: str | None = None
        self.folder: str | None = None
        self.titles: dict[str, str | None] = {}
        self.others: set[str] = set()
        self.style: str | None = None
        self.users: set[str] = set()
        self.waiting: str | None = None
        self.begun = False
        self.held: list[dict[str, Any]] = []
        self.messages: dict[str, str | None] = {}
        self.over: dict[str | None, set[str]] = {}
        self.parts: dict[str, list[str]] = {}
        self.errors: dict[str | None, dict[str, Any]] = {}
        self.last_texts: dict[str | None, str] = {}
        self.finish: str | None = None
        self.compaction: str | None = None
        self.summaries: set[str] = set()
        self._forget_old()

    def _forget_old(self) -> None:
        """Drop what only one turn needs."""
        self.kinds: dict[str, tuple[str, str]] = {}
        self.closed: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.proposed_diffs: dict[str, str] = {}
        self.reasoned: dict[str, int] = {}
        self.calls: dict[str, str] = {}
        self.denied: set[str] = set()
        self.finish = None
        self.retrying = False

    # Sessions

    def is_followed(self, session: str | None, item: dict[str, Any]) -> bool:
        """Whether a session is part of this conversation."""
        if session is None or session == self.root or session in self.titles:
            return True
        if self.root is None:
            self.root = session
            self.builder.set_ids(session_id=session)
            return True
        if session not in self.others:
            self.others.add(session)
            self.builder.warn("other_session", "a second session is on the stream; left out", item)
        return False

    def note_session(self, info: dict[str, Any]) -> None:
        """A session below this one is a subagent."""
        self.folder = text_at(info, "directory") or self.folder
        session, parent = text_at(info, "id"), text_at(info, "parentID")
        if session is None or parent is None or session in (self.root, *self.titles):
            return
        if self.root is None:
            self.root = parent
            self.builder.set_ids(session_id=parent)
        if parent == self.root or parent in self.titles:
            self.add_child(session, parent, text_at(info, "title"))

    def add_child(self, session: str, parent: str, title: str | None) -> None:
        """A subagent starts to work."""
        self.ensure_turn()
        self.titles[session] = title or self.titles.get(session)
        above = f"{parent}:task" if parent in self.builder.subagents else None
        self.builder.start_subagent(session, title=self.titles[session], parentTaskId=above)

    def find_speaker(self, session: str | None) -> str | None:
        """The subagent that a session is, if it is one."""
        return session if session in self.titles else None

    # Turns

    def note_prompt(self, session: str | None, message_id: str) -> None:
        """A message of the user's, or of whoever sends a subagent off."""
        if message_id in self.users:
            return
        self.users.add(message_id)
        if session is not None and session in self.titles:
            self.add_child(session, self.root or "", None)
        elif not self.begun:
            self.waiting = message_id

    def ensure_turn(self, prompt: str | None = None) -> None:
        """Everything is done in a turn: that of the message that waits, or one without."""
        if self.begun:
            return
        self.begun = True
        self.builder.begin_turn(prompt, turn_id=self.waiting)
        self.waiting = None
        held, self.held = self.held, []
        for part in held:
            self.add_attachment(part)

    def add_attachment(self, part: dict[str, Any]) -> None:
        """What came with a message of the user's."""
        payload = {
            "kind": text_at(part, "type"),
            "title": text_at(part, "filename", "name", "description"),
            "mediaType": text_at(part, "mime"),
        }
        self.builder.add_fact("context.attached", payload)

    def is_answer(self, message_id: str, session: str | None) -> bool:
        """Whether a message is of a turn that goes on; one that is new is."""
        if message_id in self.over.get(session, ()):
            return False
        self.ensure_turn()
        self.messages.setdefault(message_id, session)
        return True

    def end_session(self, session: str | None) -> None:
        """A session has nothing more to do."""
        error = self.errors.pop(session, None)
        ended = {each for each, of in self.messages.items() if of == session}
        if ended:
            self.over[session] = ended
            self.messages = {m: s for m, s in self.messages.items() if m not in ended}
        if session is not None and session in self.titles:
            self._end_child(session, error)
        elif self.begun or self.waiting is not None:
            self.ensure_turn()
            self._end_turn(error)

    def _end_child(self, session: str, error: dict[str, Any] | None) -> None:
        output = self.last_texts.pop(session, None)
        if error is None:
            self.builder.end_subagent(session, "subagent.completed", output=output)
            return
        category, message = read_failure(error)
        self.builder.end_subagent(
            session, "subagent.failed", failureCategory=category, message=message
        )

    def _end_turn(self, error: dict[str, Any] | None) -> None:
        if self.compaction is not None:
            payload = {"compactionId": self.compaction, "failureCategory": "interrupted"}
            self.builder.add_fact("context.compaction.failed", payload)
            self.compaction = None
        if error is None:
            self.builder.complete_turn(stopReason=self.finish)
        elif text_at(error, "name") == "MessageAbortedError":
            self.builder.cancel_turn("aborted")
        else:
            category, message = read_failure(error)
            self.builder.fail_turn(category, message, code=text_at(error, "name"))
        self.begun = False
        self.last_texts.clear()
        self._forget_old()

    def set_time(self, properties: dict[str, Any]) -> None:
        """The time that an event tells; it never goes back."""
        moment = number_at(properties, "time", "timestamp")
        if moment is None:
            times = object_at((object_at(properties.get("info")) or {}).get("time")) or {}
            moment = number_at(times, "completed", "updated", "created")
        if moment is not None and moment > self.moment:
            at = format_milliseconds(moment)
            if at is not None:
                self.moment, self.builder.at = moment, at


def read_failure(error: dict[str, Any]) -> tuple[str, str]:
    """The category of a named error, and its words."""
    name, data = text_at(error, "name") or "", object_at(error.get("data")) or {}
    message = text_at(data, "message") or name or "OpenCode failed"
    status = number_at(data, "statusCode")
    known = _CATEGORIES.get(name) or _STATUSES.get(status or 0)
    if known is None and status is not None and status >= _SERVER_ERRORS:
        known = "provider_unavailable"
    return known or "provider_error", message


def format_milliseconds(milliseconds: float) -> str | None:
    """A moment as facts state it; none, if there is no such moment."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Part = dict[str, Any]

_MOST_TOKENS: Final = 2**53
_MOST_COST: Final = 1e12


def take_part(thread: OpenCodeThread, properties: dict[str, Any], item: dict[str, Any]) -> None:
    """message.part.updated: a part as it is now."""
    part = object_at(properties.get("part")) or {}
    message_id = text_at(part, "messageID") or "message"
    session = text_at(part, "sessionID") or text_at(properties, "sessionID")
    if message_id in thread.users:
        _take_user_part(thread, part, message_id, session)
        return
    if not thread.is_answer(message_id, session):
        return
    kind = text_at(part, "type") or ""
    handle = _PARTS.get(kind)
    if handle is None:
        thread.builder.warn_unknown(f"part {kind}", item)
    else:
        handle(thread, part, thread.find_speaker(session))


def take_delta(thread: OpenCodeThread, properties: dict[str, Any], item: dict[str, Any]) -> None:
    """message.part.delta: the next piece of a field of a part."""
    del item
    message_id = text_at(properties, "messageID") or "message"
    session, delta = text_at(properties, "sessionID"), text_at(properties, "delta")
    if not delta or message_id in thread.summaries or not thread.is_answer(message_id, session):
        return
    part_id = text_at(properties, "partID") or "part"
    kind, call_id = thread.kinds.get(part_id, ("text", ""))
    if kind == "tool":
        if call_id in thread.builder.tools:
            thread.builder.add_tool_args(call_id, delta)
    elif kind == "reasoning":
        add_reasoning_delta(thread, message_id, part_id, delta, thread.find_speaker(session))
    elif part_id not in thread.closed:
        add_text_delta(thread, message_id, part_id, delta, thread.find_speaker(session))


def take_removed(thread: OpenCodeThread, properties: dict[str, Any], item: dict[str, Any]) -> None:
    """message.removed, message.part.removed: what was said is taken back."""
    message_id, part_id = (
        text_at(properties, "messageID") or "message",
        text_at(properties, "partID"),
    )
    parts = thread.parts.get(message_id, [])
    if part_id is None:
        thread.parts.pop(message_id, None)
        thread.builder.retract_messages(message_id, f"{message_id}:user")
    elif part_id in parts:
        parts.remove(part_id)
        _retract_message(thread, message_id, part_id, item, is_last=not parts)


def _retract_message(
    thread: OpenCodeThread, message_id: str, part_id: str, item: Part, *, is_last: bool
) -> None:
    """One part of a message: with the last of them goes the message."""
    if is_last:
        thread.builder.retract_messages(message_id)
    elif thread.begun:
        thread.builder.end_text(message_id, "", part_id=part_id)
    else:
        thread.builder.warn("part_removed", "a part was removed after its turn had ended", item)


def add_text_delta(
    thread: OpenCodeThread, message_id: str, part_id: str, delta: str, speaker: str | None
) -> None:
    """The next piece of an answer."""
    _note_part(thread, message_id, part_id)
    thread.builder.add_text(message_id, delta, part_id=part_id, subagent_id=speaker)


def complete_text(
    thread: OpenCodeThread, message_id: str, part_id: str, text: str, speaker: str | None
) -> None:
    """An answer as it stands; told again only if it is another."""
    if thread.closed.get(part_id) == text:
        return
    thread.closed[part_id] = text
    thread.last_texts[speaker] = text
    _note_part(thread, message_id, part_id)
    thread.builder.end_text(message_id, text, part_id=part_id, subagent_id=speaker)


def add_reasoning_delta(
    thread: OpenCodeThread, message_id: str, part_id: str, delta: str, speaker: str | None
) -> None:
    """The next piece of reasoning."""
    thread.reasoned[part_id] = thread.reasoned.get(part_id, 0) + len(delta)
    thread.builder.add_reasoning(message_id, delta, part_id=part_id, subagent_id=speaker)


def end_reasoning(
    thread: OpenCodeThread, message_id: str, part_id: str, speaker: str | None
) -> None:
    """Reasoning is over, once."""
    if part_id not in thread.closed:
        thread.closed[part_id] = ""
        ids = {"message_id": message_id, "part_id": part_id}
        thread.builder.add_subagent_fact(speaker, "reasoning.completed", {}, **ids)


def _note_part(thread: OpenCodeThread, message_id: str, part_id: str) -> None:
    known = thread.parts.setdefault(message_id, [])
    if part_id not in known:
        known.append(part_id)


def _take_user_part(
    thread: OpenCodeThread, part: Part, message_id: str, session: str | None
) -> None:
    """The words that begin a turn; during one, they steer it."""
    kind, text = text_at(part, "type"), text_at(part, "text", "prompt")
    if kind == "compaction":
        thread.ensure_turn()
        start_compaction(thread, text_at(part, "id"), auto=part.get("auto") is True)
    elif (
        thread.find_speaker(session) or part.get("synthetic") is True or part.get("ignored") is True
    ):
        return
    elif kind not in ("text", "subtask"):
        if thread.begun:
            thread.add_attachment(part)
        else:
            thread.held.append(part)
    elif message_id == thread.waiting:
        thread.ensure_turn(text)
    elif message_id != thread.builder.turn_id and thread.begun:
        payload = {"control": "steer", "steerId": message_id, "text": text, "status": "delivered"}
        thread.builder.add_fact("queue.changed", payload, control="steer")


def _on_text(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    part_id, text = text_at(part, "id") or "part", text_at(part, "text") or ""
    message_id = text_at(part, "messageID") or "message"
    if message_id in thread.summaries:
        thread.last_texts[message_id] = text
    elif _has_ended(part):
        complete_text(thread, message_id, part_id, text, speaker)
    elif part_id not in thread.closed:
        message = thread.builder.messages.get(part_id)
        written = "".join(message.pieces) if message is not None else ""
        if len(text) > len(written) and text.startswith(written):
            add_text_delta(thread, message_id, part_id, text[len(written) :], speaker)


def _on_reasoning(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    part_id, text = text_at(part, "id") or "part", text_at(part, "text") or ""
    message_id = text_at(part, "messageID") or "message"
    thread.kinds[part_id] = ("reasoning", "")
    if message_id in thread.summaries:
        return
    written = thread.reasoned.get(part_id, 0)
    if len(text) > written:
        add_reasoning_delta(thread, message_id, part_id, text[written:], speaker)
    if _has_ended(part):
        end_reasoning(thread, message_id, part_id, speaker)


def _has_ended(part: Part) -> bool:
    return number_at(object_at(part.get("time")) or {}, "end") is not None


def _on_tool(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    call_id, name = text_at(part, "callID", "id") or "call", text_at(part, "tool")
    state = object_at(part.get("state")) or {}
    if (
        call_id in thread.closed
        or number_at(object_at(state.get("time")) or {}, "compacted") is not None
    ):
        return
    thread.kinds[text_at(part, "id") or "part"] = ("tool", call_id)
    args = object_at(state.get("input")) or None
    thread.builder.start_tool(
        call_id, name, args, title=text_at(state, "title"), subagent_id=speaker
    )
    metadata = object_at(state.get("metadata")) or {}
    child, parent = text_at(metadata, "sessionId"), text_at(metadata, "parentSessionId")
    if child and parent and child not in (thread.root, *thread.titles):
        thread.add_child(child, parent, text_at(state, "title"))
    handle = _STATES.get(text_at(state, "status") or "")
    if handle is not None:
        handle(thread, call_id, name, state)


def _on_running(thread: OpenCodeThread, call_id: str, name: str | None, state: Part) -> None:
    """Output grows; what is new of it is told, and when it begins anew, all of it."""
    del name
    output = text_at(object_at(state.get("metadata")) or {}, "output")
    written = thread.outputs.get(call_id, "")
    if output is None or output == written:
        return
    thread.outputs[call_id] = output
    fresh = output.removeprefix(written)
    thread.builder.add_tool_output(call_id, fresh)


def _on_completed(thread: OpenCodeThread, call_id: str, name: str | None, state: Part) -> None:
    metadata = object_at(state.get("metadata")) or {}
    output, code = text_at(state, "output"), metadata.get("exit")
    if name == "invalid":
        message = text_at(object_at(state.get("input")) or {}, "error") or "the call is not valid"
        thread.builder.fail_tool(call_id, "invalid_input", message)
    elif type(code) is int and code != 0:
        failed = f"exit code {code}"
        thread.builder.fail_tool(call_id, "nonzero_exit", failed, exitCode=code, output=output)
    else:
        _note_change(thread, call_id, state, metadata)
        exit_code = code if type(code) is int else None
        title = text_at(state, "title")
        thread.builder.complete_tool(call_id, output, title=title, exitCode=exit_code)
    thread.closed[call_id] = ""


def _on_failed(thread: OpenCodeThread, call_id: str, name: str | None, state: Part) -> None:
    del name
    category = "permission_denied" if call_id in thread.denied else "tool_error"
    thread.builder.fail_tool(call_id, category, text_at(state, "error") or "the tool failed")
    thread.closed[call_id] = ""


def _note_change(thread: OpenCodeThread, call_id: str, state: Part, metadata: Part) -> None:
    """The file that a call has changed: its diff, or else the one that was asked about, or the
    text of a file that was not there before.
    """
    row = object_at(metadata.get("filediff")) or {}
    proposed = thread.proposed_diffs.pop(call_id, None)
    is_new = metadata.get("exists") is False
    path = text_at(row, "file") or (text_at(metadata, "filepath") if proposed or is_new else None)
    if path is None:
        return
    change, content = "created" if is_new else "modified", (object_at(state.get("input")) or {})
    diff = read_row_diff(row) or text_at(metadata, "diff") or proposed
    if diff is None and is_new and (text := text_at(content, "content")):
        diff = diff_texts(path, None, text)
    add_file_change(thread.builder, path, change, diff, call_id=call_id)


def read_row_diff(row: Part) -> str | None:
    """The diff in a row about a file: as a patch, or as its texts before and after."""
    path, patch = text_at(row, "file") or "unknown", text_at(row, "patch")
    if patch is not None:
        return complete_diff(path, "modified", patch)
    before, after = row.get("before"), row.get("after")
    if isinstance(before, str) and isinstance(after, str):
        return diff_texts(path, before, after)
    return None


def _on_step_finish(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    add_usage(thread, part, speaker)
    if speaker is None:
        thread.finish = text_at(part, "reason") or thread.finish


def add_usage(thread: OpenCodeThread, step: Part, speaker: str | None) -> None:
    """What a step has cost; a turn costs the sum of its steps, its subagents' among them."""
    tokens = object_at(step.get("tokens")) or {}
    cache = object_at(tokens.get("cache")) or {}
    cost = number_at(step, "cost")
    payload: dict[str, Any] = {
        "inputTokens": read_count(tokens, "input"),
        "outputTokens": read_count(tokens, "output"),
        "reasoningTokens": read_count(tokens, "reasoning"),
        "cacheReadTokens": read_count(cache, "read"),
        "cacheWriteTokens": read_count(cache, "write"),
        "totalCostUsd": cost if cost is not None and 0 <= cost <= _MOST_COST else None,
    }
    thread.builder.add_subagent_fact(speaker, "cost.recorded", payload)
    usage = thread.builder.usage
    for name in ("inputTokens", "outputTokens", "totalCostUsd"):
        usage[name] = usage.get(name, 0) + (payload[name] or 0)


def read_count(holder: Part, name: str) -> int | None:
    """A whole number that can count something."""
    value = holder.get(name)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _on_patch(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    """The changes of a step, which stand already."""
    patch = text_at(part, "hash") or text_at(part, "id") or "patch"
    payload = {"patchId": patch, "paths": texts_of(list_at(part.get("files")))}
    thread.builder.add_subagent_fact(speaker, "patch.started", payload)
    thread.builder.add_subagent_fact(speaker, "patch.applied", payload)


def _on_file(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    ref = thread.builder.keep((text_at(part, "url") or "").encode("utf-8", "replace"))
    payload = {
        "kind": "file",
        "title": text_at(part, "filename"),
        "mediaType": text_at(part, "mime"),
        "contentRef": ref,
    }
    artifact = text_at(part, "id") or "file"
    thread.builder.add_subagent_fact(speaker, "artifact.changed", payload, artifact_id=artifact)


def _on_retry(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    add_retry(
        thread, part, object_at((object_at(part.get("error")) or {}).get("data")) or {}, speaker
    )


def add_retry(thread: OpenCodeThread, item: Part, error: Part, speaker: str | None) -> None:
    """A request that failed is made again."""
    limited = number_at(error, "statusCode") == 429  # noqa: PLR2004 - HTTP's own number
    payload = {
        "code": "provider_retry",
        "message": text_at(error, "message") or "the request is retried",
        "attempt": read_count(item, "attempt"),
    }
    event_class = "rate_limit.hit" if limited else "runtime.warning"
    thread.builder.add_subagent_fact(speaker, event_class, payload)


def start_compaction(thread: OpenCodeThread, name: str | None, *, auto: bool) -> None:
    thread.compaction = name or "compaction"
    payload = {"compactionId": thread.compaction, "trigger": "auto" if auto else "manual"}
    thread.builder.add_fact("context.compaction.started", payload)


def end_compaction(thread: OpenCodeThread, summary: str | None) -> None:
    payload = {"compactionId": thread.compaction, "summary": summary}
    thread.compaction = None
    if thread.begun:
        thread.builder.add_fact("context.compaction.completed", payload)
    thread.builder.add_fact("history.compacted", payload)


def _ignore_event(thread: OpenCodeThread, part: Part, speaker: str | None) -> None:
    """A part that only frames others."""
    del thread, part, speaker


_STATES: Final = {"running": _on_running, "completed": _on_completed, "error": _on_failed}
_PARTS: Final = {
    "text": _on_text,
    "reasoning": _on_reasoning,
    "tool": _on_tool,
    "step-start": _ignore_event,
    "step-finish": _on_step_finish,
    "snapshot": _ignore_event,
    "patch": _on_patch,
    "file": _on_file,
    "agent": _ignore_event,
    "subtask": _ignore_event,
    "retry": _on_retry,
    "compaction": _ignore_event,
}
