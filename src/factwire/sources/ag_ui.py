"""AG-UI events of 1.0: runs, messages, tools, reasoning, subagents, interrupts, shared state.

An interrupt ends a run, and a run that goes on with it (it has the answers, or names the one that
waits as its parent) stands in the same turn. Where no such run follows, the turn ended there, as
asked and not answered. State deltas are patches of the application's own state.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from factwire.facts import UnreadableInput, decode_json
from factwire.projection.reading import listed, number, table, word
from factwire.sources.ag_ui_runs import OURS, ask, goes_on, ours, own_event
from factwire.sources.own_notes import retell
from factwire.sources.source import Source
from factwire.sources.telling import Telling


class AgUi:
    """Converts the events of one thread."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.args: dict[str, list[str]] = {}
        self.chunked: str | None = None
        self.run_id: str | None = None
        self.is_waiting = False
        self.is_aside = False
        self.called: dict[str, str] = {}
        self.asked: dict[str, str | None] = {}
        self.denied: set[str | None] = set()

    def take(self, item: dict[str, Any]) -> None:
        kind = word(item, "type") or ""
        moment = number(item, "timestamp")
        if moment is not None:
            self.tell.at = _time(moment) or self.tell.at
        handle = _EVENTS.get(kind)
        if handle is None:
            self.tell.unknown(kind, item)
            return
        if kind != "RUN_STARTED" and not (self.tell.is_open or self.is_aside):
            self.tell.begin()
        handle(self, item)

    def speaker(self, item: dict[str, Any]) -> str | None:
        """Whose an event is; our outlet says when it calls a subagent by another name."""
        tag = word(item, "subagentRunId")
        return self.called.get(tag, tag) if tag is not None else None

    def finish(self) -> None:
        """A stream without an end of its run was cut off; one that ends with a question was not."""
        if self.is_waiting:
            self.is_waiting = False
            self.tell.complete(stopReason="interrupt")


def _run_started(agui: AgUi, item: dict[str, Any]) -> None:
    given = table(item.get("input")) or {}
    waited, agui.run_id = agui.run_id, word(item, "runId")
    if agui.is_waiting and goes_on(agui, item, given, waited):
        agui.is_waiting = False
        return
    agui.finish()
    agui.is_aside = ours(item).get("isAside") is True
    if agui.is_aside:
        return
    prompt = None
    for message in map(table, listed(given.get("messages")) or ()):
        if message and word(message, "role") == "user":
            prompt = word(message, "content") or prompt
    agui.tell.begin(prompt, turn_id=word(item, "runId"))
    _note_parent(agui, item)


def _note_parent(agui: AgUi, item: dict[str, Any]) -> None:
    parent = word(item, "parentRunId")
    if parent is not None:
        agui.tell.fact("run.status", {"status": "running", "parentRunId": parent})


def _run_finished(agui: AgUi, item: dict[str, Any]) -> None:
    outcome = table(item.get("outcome")) or {}
    agui.is_aside = False
    _note_usage(agui, item)
    kind = word(outcome, "type")
    if kind == "interrupt":
        for interrupt in map(table, listed(outcome.get("interrupts")) or ()):
            ask(agui, interrupt or {})
        agui.is_waiting = True
        return
    agui.asked, agui.denied = {}, set()
    if kind == "cancelled":
        agui.tell.cancel("cancelled")
        return
    agui.tell.complete(structuredOutput=item.get("result"))


def _run_error(agui: AgUi, item: dict[str, Any]) -> None:
    _note_usage(agui, item)
    code = word(item, "code")
    category = word(ours(item), "failureCategory") or "provider_error"
    agui.tell.fail(category, word(item, "message") or "the run failed", code=code)


def _note_usage(agui: AgUi, item: dict[str, Any]) -> None:
    for usage in map(table, listed(item.get("usage")) or ()):
        counts = (
            {name: usage[name] for name in _COUNTS if _is_count(usage.get(name))} if usage else {}
        )
        if counts:
            names = {name: word(usage or {}, name) for name in ("model", "provider")}
            agui.tell.fact("cost.recorded", {**counts, **names})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _step(agui: AgUi, item: dict[str, Any]) -> None:
    name = word(item, "stepName") or "step"
    started = item.get("type") == "STEP_STARTED"
    agui.tell.known(step_id=name if started else None)
    said = {"status": "running", "phase": name, "step": "started" if started else "finished"}
    agui.tell.fact("run.status", said)


def _text_start(agui: AgUi, item: dict[str, Any]) -> None:
    """A message begins with its first words."""
    del agui, item


def _text(agui: AgUi, item: dict[str, Any]) -> None:
    delta = word(item, "delta")
    if delta:
        agui.tell.text(_message(item), delta, subagent_id=agui.speaker(item))


def _text_end(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.text_end(_message(item), subagent_id=agui.speaker(item))


def _text_chunk(agui: AgUi, item: dict[str, Any]) -> None:
    """A piece that opens its message by itself; another message closes the one before."""
    message_id = word(item, "messageId") or agui.chunked or "message"
    if agui.chunked not in (None, message_id) and agui.chunked in agui.tell.messages:
        agui.tell.text_end(agui.chunked)
    agui.chunked = message_id
    agui.tell.text(message_id, word(item, "delta") or "", subagent_id=agui.speaker(item))


def _tool_start(agui: AgUi, item: dict[str, Any]) -> None:
    agui.args[_call(item)] = []
    agui.tell.tool(_call(item), word(item, "toolCallName"), subagent_id=agui.speaker(item))


def _tool_args(agui: AgUi, item: dict[str, Any]) -> None:
    delta = word(item, "delta") or ""
    agui.args.setdefault(_call(item), []).append(delta)
    agui.tell.tool_args(_call(item), delta)


def _tool_chunk(agui: AgUi, item: dict[str, Any]) -> None:
    if _call(item) not in agui.tell.tools:
        _tool_start(agui, item)
    if word(item, "delta"):
        _tool_args(agui, item)


def _tool_end(agui: AgUi, item: dict[str, Any]) -> None:
    """The arguments are whole; the result comes later, and may come from elsewhere."""
    text = "".join(agui.args.pop(_call(item), ()))
    try:
        args: object = decode_json(text) if text else None
    except UnreadableInput:
        args = text
    agui.tell.tool(_call(item), None, args)


def _tool_result(agui: AgUi, item: dict[str, Any]) -> None:
    """A result; that it is a failure, or no text, is only known where our outlet has said so, or
    where the call was denied before.
    """
    own, content = ours(item), item.get("content")
    denied = "permission_denied" if _call(item) in agui.denied else None
    category = word(own, "failureCategory") or denied
    if category is not None:
        agui.tell.tool_failed(_call(item), category, word(item, "content") or category)
        return
    decode = _ENCODINGS.get(word(own, "encoding") or "")
    agui.tell.tool_result(_call(item), decode(content) if decode else content)


def _nothing(content: object) -> None:
    del content


def _decoded(content: object) -> object:
    try:
        return decode_json(content) if isinstance(content, str) else content
    except UnreadableInput:
        return content


def _reasoning(agui: AgUi, item: dict[str, Any]) -> None:
    delta = word(item, "delta")
    if delta:
        agui.tell.reasoning(_message(item), delta, subagent_id=agui.speaker(item))


def _reasoning_end(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.fact("reasoning.completed", {}, message_id=_message(item))


def _encrypted(agui: AgUi, item: dict[str, Any]) -> None:
    value = word(item, "encryptedValue") or ""
    ref = agui.tell.keep(value.encode("utf-8", "replace"))
    entity = word(item, "entityId") or "reasoning"
    agui.tell.fact("reasoning.summary", {"encryptedRef": ref}, message_id=entity)


def _state(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.fact("state.snapshot", {"state": table(item.get("snapshot")) or {}})


def _state_delta(agui: AgUi, item: dict[str, Any]) -> None:
    patch = [
        {
            **operation,
            **{name: f"/shared{word(operation, name) or ''}" for name in _paths(operation)},
        }
        for operation in map(table, listed(item.get("delta")) or ())
        if operation
    ]
    agui.tell.fact("state.delta", {"patch": patch})


def _paths(operation: dict[str, Any]) -> tuple[str, ...]:
    return ("path", "from") if "from" in operation else ("path",)


def _messages(agui: AgUi, item: dict[str, Any]) -> None:
    rows = [
        {"messageId": word(row, "id"), "role": word(row, "role"), "text": word(row, "content")}
        for row in map(table, listed(item.get("messages")) or ())
        if row and word(row, "role") in ("user", "assistant")
    ]
    agui.tell.fact("messages.snapshot", {"messages": rows})


def _activity(agui: AgUi, item: dict[str, Any]) -> None:
    content = table(item.get("content"))
    if content and (word(item, "activityType") or "").startswith(OURS):
        retell(agui.tell, content)
        return
    said = {
        "kind": word(item, "activityType") or "activity",
        "data": item.get("content"),
        "patch": listed(item.get("patch")),
    }
    agui.tell.fact("artifact.changed", said, artifact_id=_message(item))


def _subagent(agui: AgUi, item: dict[str, Any]) -> None:
    name, known = word(item, "subagentRunId"), word(ours(item), "subagentId")
    if name is not None and known is not None:
        agui.called[name] = known
    agui.tell.subagent(
        agui.speaker(item) or "subagent",
        title=word(item, "name"),
        objective=word(item, "description"),
        parentTaskId=word(item, "parentSubagentRunId"),
        turn_id=word(ours(item), "turnId"),
    )


def _subagent_finished(agui: AgUi, item: dict[str, Any]) -> None:
    """One that is suspended goes on in a later run."""
    if word(table(item.get("outcome")) or {}, "type") == "suspended":
        return
    name = agui.speaker(item) or "subagent"
    agui.tell.subagent_end(name, "subagent.completed", output=item.get("result"))


def _subagent_error(agui: AgUi, item: dict[str, Any]) -> None:
    message, code = word(item, "message") or "the subagent failed", word(item, "code")
    name = agui.speaker(item) or "subagent"
    category = code or "subagent_error"
    agui.tell.subagent_end(name, "subagent.failed", failureCategory=category, message=message)


def _custom(agui: AgUi, item: dict[str, Any]) -> None:
    if not own_event(agui, item):
        _raw(agui, item)


def _raw(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.warn("raw_event", f"an event of {word(item, 'source') or 'the source'}", item)


def _message(item: dict[str, Any]) -> str:
    return word(item, "messageId") or "message"


def _call(item: dict[str, Any]) -> str:
    return word(item, "toolCallId") or "call"


def _time(milliseconds: float) -> str | None:
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
_ENCODINGS: Final[dict[str, Callable[[object], object]]] = {"json": _decoded, "none": _nothing}
_EVENTS: Final = {
    "RUN_STARTED": _run_started,
    "RUN_FINISHED": _run_finished,
    "RUN_ERROR": _run_error,
    "STEP_STARTED": _step,
    "STEP_FINISHED": _step,
    "TEXT_MESSAGE_START": _text_start,
    "TEXT_MESSAGE_CONTENT": _text,
    "TEXT_MESSAGE_END": _text_end,
    "TEXT_MESSAGE_CHUNK": _text_chunk,
    "TOOL_CALL_START": _tool_start,
    "TOOL_CALL_ARGS": _tool_args,
    "TOOL_CALL_END": _tool_end,
    "TOOL_CALL_CHUNK": _tool_chunk,
    "TOOL_CALL_RESULT": _tool_result,
    "REASONING_START": _text_start,
    "REASONING_END": _text_start,
    "REASONING_MESSAGE_START": _text_start,
    "REASONING_MESSAGE_CONTENT": _reasoning,
    "REASONING_MESSAGE_CHUNK": _reasoning,
    "REASONING_MESSAGE_END": _reasoning_end,
    "REASONING_ENCRYPTED_VALUE": _encrypted,
    "STATE_SNAPSHOT": _state,
    "STATE_DELTA": _state_delta,
    "MESSAGES_SNAPSHOT": _messages,
    "ACTIVITY_SNAPSHOT": _activity,
    "ACTIVITY_DELTA": _activity,
    "SUBAGENT_STARTED": _subagent,
    "SUBAGENT_FINISHED": _subagent_finished,
    "SUBAGENT_ERROR": _subagent_error,
    "RAW": _raw,
    "CUSTOM": _custom,
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
