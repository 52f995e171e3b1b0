"""AG-UI: the events of runs as facts, with what our own outlet adds to them read back."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from factwire.facts import UnreadableInput, decode_json
from factwire.facts.json_values import list_at, number_at, object_at, objects_of, text_at, texts_of
from factwire.sources.kit.fact_builder import FactBuilder, add_outlet_note
from factwire.sources.source_registry import Source


def resume_run(
    agui: "AgUi", item: dict[str, Any], value: dict[str, Any], waited: str | None
) -> bool:
    """Whether a run goes on with the one that waits; its answers are told."""
    answers = objects_of(value.get("resume"))
    for entry in answers:
        _on_answer(agui, entry)
    return bool(answers) or (waited is not None and text_at(item, "parentRunId") == waited)


def _on_answer(agui: "AgUi", entry: dict[str, Any]) -> None:
    action, payload = text_at(entry, "interruptId") or "interrupt", entry.get("payload")
    if text_at(entry, "status") == "cancelled":
        details = object_at(payload) or {}
        has_expired = text_at(details, "outcome") == "expired"
        reason = text_at(details, "reason") or "cancelled"
        agui.builder.cancel_action(action, reason, has_expired=has_expired)
        return
    fields = object_at(payload) or {}
    approved = fields.get("approved")
    plain = {True: "approved", False: "denied"}[approved] if isinstance(approved, bool) else None
    response = fields.get("response") if text_at(fields, "decision") else payload
    decision = text_at(fields, "decision") or plain or "answered"
    if approved is False:
        agui.denied.add(agui.open_actions.pop(action, None))
    agui.builder.resolve_action(
        action, decision, reason=text_at(fields, "reason"), response=response
    )


def ask_person(agui: "AgUi", interrupt: dict[str, Any]) -> None:
    details = read_own_fields(interrupt)
    assumed = "tool_approval" if text_at(interrupt, "toolCallId") else "structured_input"
    payload = {
        "actionType": text_at(details, "actionType") or assumed,
        "toolName": text_at(details, "toolName"),
        "args": details.get("args"),
        "options": list_at(details.get("options")),
        "prompt": text_at(interrupt, "message") or text_at(interrupt, "reason"),
        "responseSchema": object_at(interrupt.get("responseSchema")),
        "expiresAt": text_at(interrupt, "expiresAt"),
    }
    action = text_at(interrupt, "id") or "interrupt"
    ids = {
        "tool_call_id": text_at(interrupt, "toolCallId"),
        "subagent_id": agui.find_speaker(interrupt),
    }
    agui.open_actions[action] = ids["tool_call_id"]
    agui.builder.require_action(action, payload, **ids)


def own_event(agui: "AgUi", item: dict[str, Any]) -> bool:
    """Tell a `CUSTOM` event if it is one of our outlet's."""
    name, value = text_at(item, "name") or "", object_at(item.get("value"))
    if value is None or not name.startswith(OURS):
        return False
    _CUSTOMS.get(name.removeprefix(OURS), _on_note)(agui, value)
    return True


def _on_note(agui: "AgUi", value: dict[str, Any]) -> None:
    add_outlet_note(agui.builder, value)


def _on_retraction(agui: "AgUi", value: dict[str, Any]) -> None:
    gone = texts_of(value.get("messageIds"))
    if gone:
        agui.builder.retract_messages(*gone)


def _on_other_args(agui: "AgUi", value: dict[str, Any]) -> None:
    agui.builder.start_tool(_call_id(value), None, value.get("args"))


def _on_call_news(agui: "AgUi", value: dict[str, Any]) -> None:
    delta = text_at(value, "delta")
    if _call_id(value) in agui.builder.tools and delta is not None:
        agui.builder.add_tool_output(_call_id(value), delta, text_at(value, "stream"))


def read_own_fields(item: dict[str, Any]) -> dict[str, Any]:
    """What our outlet has said beside the protocol."""
    return object_at((object_at(item.get("metadata")) or {}).get("factwire")) or {}


def _call_id(value: dict[str, Any]) -> str:
    return text_at(value, "toolCallId") or "call"


OURS: Final = "factwire."
_CUSTOMS: Final = {
    "answer": _on_answer,
    "args": _on_other_args,
    "call-news": _on_call_news,
    "retraction": _on_retraction,
}


class AgUi:
    """Converts the events of one thread."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.args: dict[str, list[str]] = {}
        self.chunked: str | None = None
        self.run_id: str | None = None
        self.is_waiting = False
        self.is_aside = False
        self.called: dict[str, str] = {}
        self.open_actions: dict[str, str | None] = {}
        self.denied: set[str | None] = set()

    def take(self, item: dict[str, Any]) -> None:
        kind = text_at(item, "type") or ""
        moment = number_at(item, "timestamp")
        if moment is not None:
            self.builder.at = _format_time(moment) or self.builder.at
        handle = _EVENTS.get(kind)
        if handle is None:
            self.builder.warn_unknown(kind, item)
            return
        if kind != "RUN_STARTED" and not (self.builder.is_open or self.is_aside):
            self.builder.begin_turn()
        handle(self, item)

    def find_speaker(self, item: dict[str, Any]) -> str | None:
        """Whose an event is; our outlet says when it calls a subagent by another name."""
        tag = text_at(item, "subagentRunId")
        return self.called.get(tag, tag) if tag is not None else None

    def finish(self) -> None:
        """A stream without an end of its run was cut off; one that ends with a question was not."""
        if self.is_waiting:
            self.is_waiting = False
            self.builder.complete_turn(stopReason="interrupt")


def _on_run_started(agui: AgUi, item: dict[str, Any]) -> None:
    value = object_at(item.get("input")) or {}
    waited, agui.run_id = agui.run_id, text_at(item, "runId")
    if agui.is_waiting and resume_run(agui, item, value, waited):
        agui.is_waiting = False
        return
    agui.finish()
    agui.is_aside = read_own_fields(item).get("isAside") is True
    if agui.is_aside:
        return
    prompt = None
    for message in map(object_at, list_at(value.get("messages")) or ()):
        if message and text_at(message, "role") == "user":
            prompt = text_at(message, "content") or prompt
    agui.builder.begin_turn(prompt, turn_id=text_at(item, "runId"))
    _note_parent(agui, item)


def _note_parent(agui: AgUi, item: dict[str, Any]) -> None:
    parent = text_at(item, "parentRunId")
    if parent is not None:
        agui.builder.add_fact("run.status", {"status": "running", "parentRunId": parent})


def _on_run_finished(agui: AgUi, item: dict[str, Any]) -> None:
    outcome = object_at(item.get("outcome")) or {}
    agui.is_aside = False
    _note_usage(agui, item)
    kind = text_at(outcome, "type")
    if kind == "interrupt":
        for interrupt in map(object_at, list_at(outcome.get("interrupts")) or ()):
            ask_person(agui, interrupt or {})
        agui.is_waiting = True
        return
    agui.open_actions, agui.denied = {}, set()
    if kind == "cancelled":
        agui.builder.cancel_turn(text_at(read_own_fields(item), "reason") or "cancelled")
        return
    agui.builder.complete_turn(structuredOutput=item.get("result"))


def _on_run_error(agui: AgUi, item: dict[str, Any]) -> None:
    _note_usage(agui, item)
    code = text_at(item, "code")
    own = read_own_fields(item)
    category = text_at(own, "failureCategory") or "provider_error"
    message, hint = text_at(item, "message") or "the run failed", text_at(own, "recoveryHint")
    agui.builder.fail_turn(category, message, hint, code=code)


def _note_usage(agui: AgUi, item: dict[str, Any]) -> None:
    for usage in map(object_at, list_at(item.get("usage")) or ()):
        counts = (
            {name: usage[name] for name in _COUNTS if _is_count(usage.get(name))} if usage else {}
        )
        if counts:
            names = {name: text_at(usage or {}, name) for name in ("model", "provider")}
            agui.builder.add_fact("cost.recorded", {**counts, **names})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _on_step(agui: AgUi, item: dict[str, Any]) -> None:
    name = text_at(item, "stepName") or "step"
    started = item.get("type") == "STEP_STARTED"
    agui.builder.set_ids(step_id=name if started else None)
    payload = {"status": "running", "phase": name, "step": "started" if started else "finished"}
    agui.builder.add_fact("run.status", payload)


def _on_text_start(agui: AgUi, item: dict[str, Any]) -> None:
    """A message begins with its first words."""
    del agui, item


def _on_text(agui: AgUi, item: dict[str, Any]) -> None:
    delta = text_at(item, "delta")
    if delta:
        agui.builder.add_text(_message_id(item), delta, subagent_id=agui.find_speaker(item))


def _on_text_end(agui: AgUi, item: dict[str, Any]) -> None:
    agui.builder.end_text(_message_id(item), subagent_id=agui.find_speaker(item))


def _on_text_chunk(agui: AgUi, item: dict[str, Any]) -> None:
    """A piece that opens its message by itself; another message closes the one before."""
    message_id = text_at(item, "messageId") or agui.chunked or "message"
    if agui.chunked not in (None, message_id) and agui.chunked in agui.builder.messages:
        agui.builder.end_text(agui.chunked)
    agui.chunked = message_id
    agui.builder.add_text(
        message_id, text_at(item, "delta") or "", subagent_id=agui.find_speaker(item)
    )


def _on_tool_start(agui: AgUi, item: dict[str, Any]) -> None:
    agui.args[_call(item)] = []
    agui.builder.start_tool(
        _call(item), text_at(item, "toolCallName"), subagent_id=agui.find_speaker(item)
    )


def _on_tool_args(agui: AgUi, item: dict[str, Any]) -> None:
    delta = text_at(item, "delta") or ""
    agui.args.setdefault(_call(item), []).append(delta)
    agui.builder.add_tool_args(_call(item), delta)


def _on_tool_chunk(agui: AgUi, item: dict[str, Any]) -> None:
    if _call(item) not in agui.builder.tools:
        _on_tool_start(agui, item)
    if text_at(item, "delta"):
        _on_tool_args(agui, item)


def _on_tool_end(agui: AgUi, item: dict[str, Any]) -> None:
    """The arguments are whole; the result comes later, and may come from elsewhere."""
    text = "".join(agui.args.pop(_call(item), ()))
    try:
        args: object = decode_json(text) if text else None
    except UnreadableInput:
        args = text
    agui.builder.start_tool(_call(item), None, args)


def _on_tool_result(agui: AgUi, item: dict[str, Any]) -> None:
    """A result; that it is a failure, or no text, is only known where our outlet has said so, or
    where the call was denied before.
    """
    own, content = read_own_fields(item), item.get("content")
    denied = "permission_denied" if _call(item) in agui.denied else None
    category = text_at(own, "failureCategory") or denied
    if category is not None:
        agui.builder.fail_tool(_call(item), category, text_at(item, "content") or category)
        return
    decode = _ENCODINGS.get(text_at(own, "encoding") or "")
    agui.builder.complete_tool(_call(item), decode(content) if decode else content)


def _ignore_event(content: object) -> None:
    del content


def _on_decoded(content: object) -> object:
    try:
        return decode_json(content) if isinstance(content, str) else content
    except UnreadableInput:
        return content


def _on_reasoning(agui: AgUi, item: dict[str, Any]) -> None:
    delta = text_at(item, "delta")
    if delta:
        agui.builder.add_reasoning(_message_id(item), delta, subagent_id=agui.find_speaker(item))


def _on_reasoning_end(agui: AgUi, item: dict[str, Any]) -> None:
    agui.builder.add_fact("reasoning.completed", {}, message_id=_message_id(item))


def _on_encrypted(agui: AgUi, item: dict[str, Any]) -> None:
    value = text_at(item, "encryptedValue") or ""
    ref = agui.builder.keep(value.encode("utf-8", "replace"))
    entity = text_at(item, "entityId") or "reasoning"
    agui.builder.add_fact("reasoning.summary", {"encryptedRef": ref}, message_id=entity)


def _on_state(agui: AgUi, item: dict[str, Any]) -> None:
    agui.builder.add_fact("state.snapshot", {"state": object_at(item.get("snapshot")) or {}})


def _on_state_delta(agui: AgUi, item: dict[str, Any]) -> None:
    patch = [
        {
            **operation,
            **{
                name: f"/shared{text_at(operation, name) or ''}"
                for name in _operation_paths(operation)
            },
        }
        for operation in map(object_at, list_at(item.get("delta")) or ())
        if operation
    ]
    agui.builder.add_fact("state.delta", {"patch": patch})


def _operation_paths(operation: dict[str, Any]) -> tuple[str, ...]:
    return ("path", "from") if "from" in operation else ("path",)


def _on_messages(agui: AgUi, item: dict[str, Any]) -> None:
    rows = [
        {
            "messageId": text_at(row, "id"),
            "role": text_at(row, "role"),
            "text": text_at(row, "content"),
        }
        for row in map(object_at, list_at(item.get("messages")) or ())
        if row and text_at(row, "role") in ("user", "assistant")
    ]
    agui.builder.add_fact("messages.snapshot", {"messages": rows})


def _on_activity(agui: AgUi, item: dict[str, Any]) -> None:
    content = object_at(item.get("content"))
    if content and (text_at(item, "activityType") or "").startswith(OURS):
        add_outlet_note(agui.builder, content)
        return
    payload = {
        "kind": text_at(item, "activityType") or "activity",
        "data": item.get("content"),
        "patch": list_at(item.get("patch")),
    }
    agui.builder.add_fact("artifact.changed", payload, artifact_id=_message_id(item))


def _on_subagent(agui: AgUi, item: dict[str, Any]) -> None:
    name, known = text_at(item, "subagentRunId"), text_at(read_own_fields(item), "subagentId")
    if name is not None and known is not None:
        agui.called[name] = known
    agui.builder.start_subagent(
        agui.find_speaker(item) or "subagent",
        title=text_at(item, "name"),
        objective=text_at(item, "description"),
        parentTaskId=text_at(item, "parentSubagentRunId"),
        turn_id=text_at(read_own_fields(item), "turnId"),
    )


def _on_subagent_finished(agui: AgUi, item: dict[str, Any]) -> None:
    """One that is suspended goes on in a later run."""
    if text_at(object_at(item.get("outcome")) or {}, "type") == "suspended":
        return
    name = agui.find_speaker(item) or "subagent"
    agui.builder.end_subagent(name, "subagent.completed", output=item.get("result"))


def _on_subagent_error(agui: AgUi, item: dict[str, Any]) -> None:
    message, code = text_at(item, "message") or "the subagent failed", text_at(item, "code")
    name = agui.find_speaker(item) or "subagent"
    category = code or "subagent_error"
    agui.builder.end_subagent(name, "subagent.failed", failureCategory=category, message=message)


def _on_custom(agui: AgUi, item: dict[str, Any]) -> None:
    if not own_event(agui, item):
        _on_raw(agui, item)


def _on_raw(agui: AgUi, item: dict[str, Any]) -> None:
    agui.builder.warn("raw_event", f"an event of {text_at(item, 'source') or 'the source'}", item)


def _message_id(item: dict[str, Any]) -> str:
    return text_at(item, "messageId") or "message"


def _call(item: dict[str, Any]) -> str:
    return text_at(item, "toolCallId") or "call"


def _format_time(milliseconds: float) -> str | None:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_COUNTS: Final = (
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "reasoningTokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
)
_ENCODINGS: Final[dict[str, Callable[[object], object]]] = {
    "json": _on_decoded,
    "none": _ignore_event,
}
_EVENTS: Final = {
    "RUN_STARTED": _on_run_started,
    "RUN_FINISHED": _on_run_finished,
    "RUN_ERROR": _on_run_error,
    "STEP_STARTED": _on_step,
    "STEP_FINISHED": _on_step,
    "TEXT_MESSAGE_START": _on_text_start,
    "TEXT_MESSAGE_CONTENT": _on_text,
    "TEXT_MESSAGE_END": _on_text_end,
    "TEXT_MESSAGE_CHUNK": _on_text_chunk,
    "TOOL_CALL_START": _on_tool_start,
    "TOOL_CALL_ARGS": _on_tool_args,
    "TOOL_CALL_END": _on_tool_end,
    "TOOL_CALL_CHUNK": _on_tool_chunk,
    "TOOL_CALL_RESULT": _on_tool_result,
    "REASONING_START": _on_text_start,
    "REASONING_END": _on_text_start,
    "REASONING_MESSAGE_START": _on_text_start,
    "REASONING_MESSAGE_CONTENT": _on_reasoning,
    "REASONING_MESSAGE_CHUNK": _on_reasoning,
    "REASONING_MESSAGE_END": _on_reasoning_end,
    "REASONING_ENCRYPTED_VALUE": _on_encrypted,
    "STATE_SNAPSHOT": _on_state,
    "STATE_DELTA": _on_state_delta,
    "MESSAGES_SNAPSHOT": _on_messages,
    "ACTIVITY_SNAPSHOT": _on_activity,
    "ACTIVITY_DELTA": _on_activity,
    "SUBAGENT_STARTED": _on_subagent,
    "SUBAGENT_FINISHED": _on_subagent_finished,
    "SUBAGENT_ERROR": _on_subagent_error,
    "RAW": _on_raw,
    "CUSTOM": _on_custom,
}

SOURCE: Final = Source(
    name="ag-ui",
    title="AG-UI",
    framing="events",
    versions="1.0",
    converter=AgUi,
    maps={
        "RUN_STARTED, RUN_FINISHED, RUN_ERROR": "turn.*",
        "RUN_FINISHED with interrupts": "action.required",
        "RUN_STARTED that resumes": "action.resolved, action.cancelled, in the same turn",
        "STEP_*": "run.status, and the stepId of what is between them",
        "TEXT_MESSAGE_*": "model.delta, model.completed",
        "TOOL_CALL_*": "tool.started, tool.args.delta, tool.args, tool.result",
        "REASONING_*": "reasoning.delta, reasoning.completed, reasoning.summary",
        "STATE_SNAPSHOT, STATE_DELTA": "state.snapshot, state.delta",
        "MESSAGES_SNAPSHOT": "messages.snapshot",
        "ACTIVITY_*": "artifact.changed",
        "SUBAGENT_*": "task.created, subagent.*, task.completed or task.failed",
        "RAW, CUSTOM": "runtime.warning with a ref",
    },
    lacks=("failed tools", "decisions where a run does not repeat its input"),
)
