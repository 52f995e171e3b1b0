"""One session of an Agent Client Protocol connection, and the updates that it sends.

Chunks carry no end: a text or thought ends where something else begins, and each is a part of
its own. Usage and cost count from the beginning of the session; a turn gets its own share. Of a
second session on the same connection only one remark is made.
"""

from typing import Any, Final

import msgspec

from factwire.facts.json_values import list_at, number_at, object_at, objects_of, text_at
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.file_changes import add_file_change, diff_texts

_MOST_COUNTED: Final = 2**53
_PLACES: Final = 9
"""Decimals of a cost; beyond them is what subtracting floats leaves behind."""
_COUNTED: Final = ("inputTokens", "outputTokens", "totalTokens")


class OpenPart(msgspec.Struct, frozen=True):
    """Text or thought that is being written."""

    kind: str
    message_id: str
    part_id: str


class AcpThread:
    """The books of one session."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.session: str | None = None
        self.others: set[str] = set()
        self.loading: list[dict[str, Any]] | None = None
        self.part: OpenPart | None = None
        self.part_count = 0
        self.titles: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.closed: set[str] = set()
        self.denied: set[str] = set()
        self.commands: dict[str, str] = {}
        self.proposals: dict[str, tuple[str | None, str]] = {}
        self.exits: dict[str, dict[str, Any]] = {}
        self.used: dict[str, int] | None = {}
        self.cost: float | None = 0.0

    def note_proposals(self, content: list[dict[str, Any]]) -> None:
        """Remember the diffs that a call comes with: a file that is then written has no other."""
        for row in content:
            path, after = text_at(row, "path"), row.get("newText")
            if text_at(row, "type") == "diff" and path and isinstance(after, str):
                before = row.get("oldText")
                self.proposals[path] = (before if isinstance(before, str) else None, after)

    def is_followed(self, params: dict[str, Any], item: dict[str, Any]) -> bool:
        """Whether something is of the session that this thread is; the first named one is."""
        session = text_at(params, "sessionId")
        if session is None or session == self.session:
            return True
        if self.session is None:
            self.session = session
            self.builder.set_ids(session_id=session)
            return True
        if session not in self.others:
            self.others.add(session)
            self.builder.warn("other_session", "a second session is on the stream; left out", item)
        return False

    # Turns

    def begin_turn(self, prompt: str | None) -> None:
        """A prompt; one that is unanswered still was left without an end."""
        self._close_open_work()
        self.end_loading()
        self.builder.begin_turn(prompt)
        self.closed.clear()
        self.denied.clear()
        self.outputs.clear()
        self.titles.clear()
        self.proposals.clear()
        self.part_count = 0

    def end_turn(self, stop_reason: str | None) -> None:
        """A prompt is answered."""
        self._close_open_work()
        category, message = _STOPS.get(stop_reason or "", (None, ""))
        if stop_reason == "cancelled":
            self.builder.cancel_turn("requested")
        elif category is not None:
            self.builder.fail_turn(category, message, stopReason=stop_reason)
        else:
            self.builder.complete_turn(stopReason=stop_reason)

    def fail_turn(self, category: str, message: str, **extra_fields: Any) -> None:
        self._close_open_work()
        self.builder.fail_turn(category, message, **extra_fields)

    def begin_loading(self) -> None:
        """A session is taken up again; what it has used before is not known."""
        self.loading, self.used, self.cost = [], None, None

    def resume_session(self, session: str) -> None:
        """A session is taken up again whose history is known."""
        self.session, self.used, self.cost = session, None, None

    def end_loading(self) -> None:
        """The history of a session that was taken up again is whole."""
        rows, self.loading = self.loading, None
        if rows:
            self.builder.add_fact("history.window.loaded", {"messages": rows})

    def close_commands(self) -> None:
        """Commands that run in a terminal of the client end with their turn, as far as is known."""
        for command_id in list(self.commands):
            self.end_command(command_id, {"status": "interrupted"})

    def end_command(self, command_id: str, payload: dict[str, Any]) -> None:
        """A command has ended: as was said before, or as is said now."""
        known = self.exits.pop(command_id, payload)
        if self.commands.pop(command_id, None) is not None:
            self.builder.add_fact("command.exited", {"commandId": command_id, **known})

    def _close_open_work(self) -> None:
        if self.builder.is_open:
            self.end_part()
            self.close_commands()

    # Text

    def add_chunk(self, kind: str, message_id: str | None, delta: str) -> None:
        """The next piece of text or thought."""
        known = self.part
        if known is None or known.kind != kind or message_id not in (None, known.message_id):
            self.end_part()
            self.part_count += 1
            named = message_id or f"{kind}-{self.part_count}"
            self.part = known = OpenPart(kind, named, f"{named}:{self.part_count}")
        builder = self.builder.add_text if kind == "text" else self.builder.add_reasoning
        builder(known.message_id, delta, part_id=known.part_id)

    def end_part(self) -> None:
        """Something else begins."""
        known, self.part = self.part, None
        if known is None:
            return
        if known.kind == "text":
            self.builder.end_text(known.message_id, part_id=known.part_id)
        else:
            ids = {"message_id": known.message_id, "part_id": known.part_id}
            self.builder.add_fact("reasoning.completed", {}, **ids)

    # Costs

    def note_usage(self, usage: dict[str, Any]) -> None:
        """Tokens of the session so far; a sum that is smaller than before is no sum of all, and
        of one that counts from before this stream the share is not known.
        """
        sums = {name: value for name in _COUNTED if (value := read_count(usage, name)) is not None}
        if not sums:
            return
        before, self.used = self.used, sums
        if before is None:
            return
        if any(value < before.get(name, 0) for name, value in sums.items()):
            before = {}
        payload = {name: value - before.get(name, 0) for name, value in sums.items()}
        self.builder.usage.update(payload)
        self.builder.add_fact("cost.recorded", payload)

    def note_cost(self, cost: dict[str, Any]) -> None:
        """What the session has cost so far, in dollars or not at all."""
        amount = number_at(cost, "amount")
        if amount is None or text_at(cost, "currency") != "USD" or not 0 <= amount <= _MOST_COUNTED:
            return
        before, self.cost = self.cost, amount
        if self.builder.is_open and before is not None and amount >= before:
            spent = self.builder.usage.get("totalCostUsd", 0) + amount - before
            self.builder.usage["totalCostUsd"] = round(spent, _PLACES)


def read_count(holder: dict[str, Any], name: str) -> int | None:
    """A whole number that can count something."""
    value = holder.get(name)
    return value if type(value) is int and 0 <= value <= _MOST_COUNTED else None


def block_text(block: Any) -> str | None:
    """The text of a content block, if it is one of text."""
    holder = object_at(block) or {}
    return text_at(holder, "text") if text_at(holder, "type") == "text" else None


_STOPS: Final = {
    "max_tokens": ("output_too_long", "the model reached its limit of tokens"),
    "max_turn_requests": ("turn_limit_reached", "the agent reached its limit of requests"),
    "refusal": ("refused", "the agent refused to go on"),
}


Update = dict[str, Any]


def take_update(thread: AcpThread, params: Update, item: Update) -> None:
    update = object_at(params.get("update")) or {}
    kind = text_at(update, "sessionUpdate") or ""
    handle = _UPDATES.get(kind)
    if handle is None:
        thread.builder.warn_unknown(f"update {kind}", item)
    elif thread.loading is not None:
        _recall(thread, kind, update)
    else:
        handle(thread, update)


def _recall(thread: AcpThread, kind: str, update: Update) -> None:
    """A session that is loaded tells its history again: what was said, in whole messages."""
    role = _ROLES.get(kind)
    text = block_text(update.get("content"))
    rows = thread.loading
    if role is None or text is None or rows is None:
        return
    message_id = text_at(update, "messageId")
    last = rows[-1] if rows else {}
    if last.get("role") == role and message_id in (None, last.get("messageId")):
        last["text"] += text
    else:
        named = message_id or f"history-{len(rows) + 1}"
        rows.append({"messageId": named, "role": role, "text": text})


def _on_said(thread: AcpThread, update: Update) -> None:
    _add_chunk(thread, update, "text")


def _on_thought(thread: AcpThread, update: Update) -> None:
    _add_chunk(thread, update, "reasoning")


def _add_chunk(thread: AcpThread, update: Update, kind: str) -> None:
    text = block_text(update.get("content"))
    if text is not None:
        thread.add_chunk(kind, text_at(update, "messageId"), text)
        return
    block = object_at(update.get("content")) or {}
    if text_at(block, "type") in (None, "text"):
        return
    ref = thread.builder.keep(msgspec.json.encode(block))
    payload = {
        "kind": text_at(block, "type"),
        "title": text_at(block, "title", "name"),
        "mediaType": text_at(block, "mimeType"),
        "contentRef": ref,
    }
    artifact = f"content:{ref.rpartition(':')[2][:16]}"
    thread.builder.add_fact("artifact.changed", payload, artifact_id=artifact)


def _on_echo(thread: AcpThread, update: Update) -> None:
    """What the user said, which the prompt has told already."""
    del thread, update


def take_call(thread: AcpThread, update: Update) -> None:
    """tool_call and tool_call_update, which may also be the first that is heard of a call."""
    call_id = text_at(update, "toolCallId") or "call"
    if call_id in thread.closed:
        return
    thread.end_part()
    _describe_call(thread, call_id, update)
    content = objects_of(update.get("content"))
    thread.note_proposals(content)
    ended = text_at(update, "status") in _ENDS
    if not ended:
        _add_output(thread, call_id, _content_text(content))
        return
    thread.closed.add(call_id)
    _ENDS[text_at(update, "status") or ""](thread, call_id, update, content)


def _describe_call(thread: AcpThread, call_id: str, update: Update) -> None:
    title, args = text_at(update, "title"), update.get("rawInput")
    known = call_id in thread.builder.tools
    thread.builder.start_tool(call_id, text_at(update, "kind"), args or None, title=title)
    if known and title is not None and title != thread.titles.get(call_id):
        thread.builder.report_tool_progress(call_id, title=title)
    if title is not None:
        thread.titles[call_id] = title


def _add_output(thread: AcpThread, call_id: str, text: str | None) -> None:
    written = thread.outputs.get(call_id, "")
    if text is not None and text != written:
        thread.outputs[call_id] = text
        thread.builder.add_tool_output(call_id, text.removeprefix(written))


def _content_text(content: list[Update]) -> str | None:
    texts = [text for row in content if (text := block_text(row.get("content"))) is not None]
    return "\n".join(texts) or None


def _on_completed(thread: AcpThread, call_id: str, update: Update, content: list[Update]) -> None:
    for row in content:
        if text_at(row, "type") == "diff":
            _add_diff(thread, call_id, row)
    raw = update.get("rawOutput")
    output = raw if raw is not None else _content_text(content) or thread.outputs.get(call_id)
    thread.builder.complete_tool(call_id, output, title=text_at(update, "title"))


def _on_failed(thread: AcpThread, call_id: str, update: Update, content: list[Update]) -> None:
    raw = object_at(update.get("rawOutput")) or {}
    message = _content_text(content) or text_at(raw, "error", "message") or "the tool failed"
    category = "permission_denied" if call_id in thread.denied else "tool_error"
    thread.builder.fail_tool(call_id, category, message)


def _add_diff(thread: AcpThread, call_id: str, diff: Update) -> None:
    path, before = text_at(diff, "path") or "unknown", diff.get("oldText")
    after, is_known = diff.get("newText"), isinstance(before, str)
    change = "modified" if is_known else "created"
    stated = None
    if isinstance(after, str):
        stated = diff_texts(path, before if is_known else None, after)
    add_file_change(thread.builder, path, change, stated, call_id=call_id)


def _on_plan(thread: AcpThread, update: Update) -> None:
    """The whole plan each time; it is final when nothing on it is left to do."""
    plan = object_at(update.get("plan")) or update
    rows = objects_of(plan.get("entries"))
    lines = [
        f"[{'x' if text_at(row, 'status') == 'completed' else ' '}] {text_at(row, 'content') or ''}"
        for row in rows
    ]
    plan_id = text_at(plan, "planId") or "plan"
    text = "\n".join(lines) or text_at(plan, "content", "uri") or ""
    done = bool(rows) and all(text_at(row, "status") == "completed" for row in rows)
    payload = {"text": text, "planId": plan_id, "steps": rows or None}
    thread.builder.add_fact("plan.final" if done else "plan.delta", payload, part_id=plan_id)


def _on_commands(thread: AcpThread, update: Update) -> None:
    rows = map(object_at, list_at(update.get("availableCommands")) or ())
    names = [name for row in rows if row and (name := text_at(row, "name"))]
    thread.builder.add_fact("session.updated", {"commands": names})


def _on_mode(thread: AcpThread, update: Update) -> None:
    thread.builder.add_fact("session.updated", {"mode": text_at(update, "currentModeId")})


def _on_options(thread: AcpThread, update: Update) -> None:
    rows = map(object_at, list_at(update.get("configOptions")) or ())
    chosen = {
        name: text_at(row, "currentValue") for row in rows if row and (name := text_at(row, "id"))
    }
    thread.builder.add_fact("session.updated", {"options": chosen})


def _on_info(thread: AcpThread, update: Update) -> None:
    thread.builder.add_fact("session.updated", {"title": text_at(update, "title")})


def _on_usage(thread: AcpThread, update: Update) -> None:
    payload = {
        "name": "context",
        "used": read_count(update, "used"),
        "limit": read_count(update, "size"),
    }
    thread.builder.add_fact("limit.changed", payload)
    thread.note_cost(object_at(update.get("cost")) or {})


_ENDS: Final = {"completed": _on_completed, "failed": _on_failed}
_ROLES: Final = {"user_message_chunk": "user", "agent_message_chunk": "assistant"}
_UPDATES: Final = {
    "user_message_chunk": _on_echo,
    "agent_message_chunk": _on_said,
    "agent_thought_chunk": _on_thought,
    "tool_call": take_call,
    "tool_call_update": take_call,
    "plan": _on_plan,
    "plan_update": _on_plan,
    "plan_removed": _on_plan,
    "available_commands_update": _on_commands,
    "current_mode_update": _on_mode,
    "config_option_update": _on_options,
    "session_info_update": _on_info,
    "usage_update": _on_usage,
}
