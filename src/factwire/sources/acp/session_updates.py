"""One session of an Agent Client Protocol connection, and the updates that it sends.

Chunks carry no end: a text or thought ends where something else begins, and each is a part of
its own. Usage and cost count from the beginning of the session; a turn gets its own share. Of a
second session on the same connection only one remark is made.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from factwire.facts.json_values import list_at, number_at, object_at, objects_of, text_at
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.file_changes import add_file_change, diff_texts

_MOST_COUNTED: Final = 2**53
_PLACES: Final = 9
"""Decimals of a cost; beyond them is what subtracting floats leaves behind."""
_COUNTED: Final = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
    "thoughtTokens": "reasoningTokens",
    "cachedReadTokens": "cacheReadTokens",
    "cachedWriteTokens": "cacheWriteTokens",
}
"""What the protocol counts → what facts call it."""

_COUNTS_EACH_PROMPT: Final = frozenset(
    {"@agentclientprotocol/claude-agent-acp", "@agentclientprotocol/codex-acp"}
)
"""Agents whose usage is a prompt's own, although the protocol has it count the session."""


class AcpCall(msgspec.Struct):
    """A call, as far as it was told. An update leaves unchanged what it does not name; what a call
    shows before it runs is what it would do, and no output.
    """

    status: str = "pending"
    title: str | None = None
    name: str | None = None
    content: list[dict[str, Any]] = []
    output: str = ""
    exit_code: int | None = None

    @property
    def diffs(self) -> list[dict[str, Any]]:
        return [row for row in self.content if text_at(row, "type") == "diff"]


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
        self.calls: dict[str, AcpCall] = {}
        self.closed: set[str] = set()
        self.denied: set[str] = set()
        self.commands: dict[str, str] = {}
        self.proposals: dict[str, tuple[str | None, str]] = {}
        self.exits: dict[str, dict[str, Any]] = {}
        self.used: dict[str, int] | None = {}
        self.cost: float | None = 0.0
        self.model: str | None = None
        self.counts_each_prompt = False

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
        self.calls.clear()
        self.proposals.clear()
        self.part_count = 0
        self._tell_model()

    def note_agent(self, info: dict[str, Any]) -> None:
        """Who the agent is."""
        self.counts_each_prompt = text_at(info, "name") in _COUNTS_EACH_PROMPT

    def note_model(self, offered: dict[str, Any]) -> None:
        """The model that a session works with, among what it offers."""
        models = object_at(offered.get("models")) or {}
        rows = objects_of(offered.get("configOptions"))
        chosen = [
            text_at(row, "currentValue") for row in rows if text_at(row, "category") == "model"
        ]
        model = next(iter(chosen), None) or text_at(models, "currentModelId")
        if model is not None and model != self.model:
            self.model = model
            if self.builder.is_open:
                self._tell_model()

    def _tell_model(self) -> None:
        if self.model is not None:
            self.builder.add_fact("routing.decided", {"model": self.model})

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

    def resume_session(self, session: str, usage: dict[str, Any] | None) -> None:
        """A session is taken up again whose history is known, and perhaps what it has used."""
        self.session, self.used, self.cost = session, None, None
        if usage is not None:
            self.used = {name: read_count(usage, name) or 0 for name in _COUNTED}
            self.cost = number_at(usage, "totalCostUsd")

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
            for call_id in [each for each in self.builder.tools if each in self.denied]:
                self.builder.fail_tool(call_id, "permission_denied", "the call was not allowed")

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

    def note_usage(self, result: dict[str, Any]) -> None:
        """What a prompt used: by model where the agent says so, or else its share of what the
        session has used so far.
        """
        for payload in [*_model_usage(result)] or [self._take_share(result)]:
            if payload:
                for name in _COUNTED.values():
                    if name in payload:
                        self.builder.usage[name] = self.builder.usage.get(name, 0) + payload[name]
                self.builder.add_fact("cost.recorded", payload)

    def _take_share(self, result: dict[str, Any]) -> dict[str, Any]:
        """Sums that are not larger than before count anew; of sums that count from before this
        stream, the share is not known.
        """
        usage = object_at(result.get("usage")) or {}
        sums = {name: value for name in _COUNTED if (value := read_count(usage, name)) is not None}
        if not sums:
            return {}
        before, self.used = self.used, sums
        so_far = {"agentSessionUsage": {**sums, "totalCostUsd": self.cost}}
        if self.counts_each_prompt or (before and not _have_grown(sums, before)):
            before = {}
        if before is None:
            return so_far
        share = {_COUNTED[name]: value - before.get(name, 0) for name, value in sums.items()}
        return {**share, **so_far}

    def note_cost(self, cost: dict[str, Any]) -> None:
        """What the session has cost so far, in dollars or not at all."""
        amount = number_at(cost, "amount")
        if amount is None or text_at(cost, "currency") != "USD" or not 0 <= amount <= _MOST_COUNTED:
            return
        before, self.cost = self.cost, amount
        if self.builder.is_open and before is not None and amount >= before:
            spent = self.builder.usage.get("totalCostUsd", 0) + amount - before
            self.builder.usage["totalCostUsd"] = round(spent, _PLACES)


def _have_grown(sums: dict[str, int], before: dict[str, int]) -> bool:
    grown = [value - before.get(name, 0) for name, value in sums.items()]
    return min(grown) >= 0 and max(grown) > 0


def _model_usage(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What each model was given and gave for a prompt, as Codex and Gemini state it."""
    quota = object_at((object_at(result.get("_meta")) or {}).get("quota")) or {}
    for row in objects_of(quota.get("model_usage")):
        count = object_at(row.get("token_count")) or {}
        found = {
            name: value
            for name, (camel, snake) in _QUOTA_COUNTS.items()
            if (value := read_count(count, camel)) is not None
            or (value := read_count(count, snake)) is not None
        }
        if found:
            yield {"model": text_at(row, "model"), **found}


_QUOTA_COUNTS: Final = {
    "inputTokens": ("inputTokens", "input_tokens"),
    "outputTokens": ("outputTokens", "output_tokens"),
    "totalTokens": ("totalTokens", "total_tokens"),
    "reasoningTokens": ("reasoningOutputTokens", "thoughts_tokens"),
    "cacheReadTokens": ("cachedInputTokens", "cached_tokens"),
    "cacheWriteTokens": ("cacheWriteInputTokens", "cache_write_tokens"),
}


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
    call = thread.calls.setdefault(call_id, AcpCall())
    _describe_call(thread, call_id, call, update)
    if list_at(update.get("content")) is not None:
        call.content = objects_of(update.get("content"))
        thread.note_proposals(call.content)
    call.status = text_at(update, "status") or call.status
    _take_terminal(thread, call_id, call, update)
    if call.status in _ENDS:
        thread.closed.add(call_id)
        _ENDS[call.status](thread, call_id, call, update)
    elif call.status == "in_progress":
        _add_output(thread, call_id, call, content_text(call.content))


def _describe_call(thread: AcpThread, call_id: str, call: AcpCall, update: Update) -> None:
    title, args = text_at(update, "title"), update.get("rawInput")
    known = call_id in thread.builder.tools
    thread.builder.start_tool(call_id, text_at(update, "kind"), args or None, title=title)
    news: Update = {}
    if title is not None and title != call.title:
        news, call.title = ({"title": title} if known else {}), title
    if (name := _read_name(update)) is not None and name != call.name:
        news["agentToolName"] = call.name = name
    if news:
        thread.builder.report_tool_progress(call_id, **news)


def _read_name(update: Update) -> str | None:
    """What the agent itself calls the tool; `kind` is only what sort of tool it is."""
    meta = object_at(update.get("_meta")) or {}
    claude = object_at(meta.get("claudeCode")) or {}
    return text_at(update, "name") or text_at(claude, "toolName") or text_at(meta, "toolName")


def _take_terminal(thread: AcpThread, call_id: str, call: AcpCall, update: Update) -> None:
    """The output and the end of a command that the agent runs in a terminal of its own."""
    meta = object_at(update.get("_meta")) or {}
    for name in ("terminal_output", "terminal_output_delta"):
        data = text_at(object_at(meta.get(name)) or {}, "data")
        if data:
            call.output += data
            thread.builder.add_tool_output(call_id, data)
    exited = object_at(meta.get("terminal_exit")) or {}
    if (code := read_exit_code(exited, "exit_code")) is not None:
        call.exit_code = code


def read_exit_code(holder: Update, name: str) -> int | None:
    code = holder.get(name)
    return code if type(code) is int else None


def _add_output(thread: AcpThread, call_id: str, call: AcpCall, text: str | None) -> None:
    if text is not None and text != call.output:
        delta, call.output = text.removeprefix(call.output), text
        thread.builder.add_tool_output(call_id, delta)


def content_text(content: list[Update]) -> str | None:
    texts = [text for row in content if (text := block_text(row.get("content"))) is not None]
    return "\n".join(texts) or None


def _on_completed(thread: AcpThread, call_id: str, call: AcpCall, update: Update) -> None:
    for row in call.diffs:
        _add_diff(thread, call_id, row)
    title = text_at(update, "title")
    output = _read_output(call, update)
    thread.builder.complete_tool(call_id, output, title=title, exitCode=call.exit_code)


def _on_failed(thread: AcpThread, call_id: str, call: AcpCall, update: Update) -> None:
    raw, code = object_at(update.get("rawOutput")) or {}, call.exit_code
    stated = content_text(objects_of(update.get("content"))) or text_at(raw, "error", "message")
    ended = None if code is None else f"exit code {code}"
    if call_id in thread.denied:
        category, message = "permission_denied", stated or "the call was not allowed"
    else:
        category = "tool_error" if code is None else "nonzero_exit"
        message = stated or ended or "the tool failed"
    output = _read_output(call, update)
    thread.builder.fail_tool(call_id, category, message, exitCode=code, output=output)


def _read_output(call: AcpCall, update: Update) -> Any:
    """What a call gave, as its end says it or as it came while it ran."""
    raw = update.get("rawOutput")
    if raw is not None:
        return raw
    return content_text(objects_of(update.get("content"))) or call.output or None


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
    thread.note_model(update)


def _on_info(thread: AcpThread, update: Update) -> None:
    if (title := text_at(update, "title")) is not None:
        thread.builder.add_fact("session.updated", {"title": title})


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
