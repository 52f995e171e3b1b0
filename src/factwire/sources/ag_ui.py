"""AG-UI events of 1.0: runs, messages, tools, reasoning, subagents, interrupts, shared state.

An interrupt ends a run and is answered by the next one, so an action stays open from one turn to
the other in the protocol; here it is closed with its turn, as asked and not yet answered, and asked
again by whoever resumes. State deltas are patches of the application's own state.
"""

from datetime import UTC, datetime
from typing import Any, Final

from factwire.facts import UnreadableInput, decode_json
from factwire.projection.reading import listed, number, table, word
from factwire.sources.source import Source
from factwire.sources.telling import Telling


class AgUi:
    """Converts the events of one thread."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.args: dict[str, list[str]] = {}
        self.chunked: str | None = None

    def take(self, item: dict[str, Any]) -> None:
        kind = word(item, "type") or ""
        moment = number(item, "timestamp")
        if moment is not None:
            self.tell.at = _time(moment) or self.tell.at
        handle = _EVENTS.get(kind)
        if handle is None:
            self.tell.unknown(kind, item)
            return
        if kind != "RUN_STARTED" and not self.tell.is_open:
            self.tell.begin()
        handle(self, item)

    def finish(self) -> None:
        """A stream without an end of its run was cut off."""


def _run_started(agui: AgUi, item: dict[str, Any]) -> None:
    given = table(item.get("input")) or {}
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
    _note_usage(agui, item)
    kind = word(outcome, "type")
    if kind == "cancelled":
        agui.tell.cancel("cancelled")
        return
    if kind == "interrupt":
        for interrupt in map(table, listed(outcome.get("interrupts")) or ()):
            _ask(agui, interrupt or {})
        agui.tell.complete(stopReason="interrupt")
        return
    agui.tell.complete(structuredOutput=item.get("result"))


def _ask(agui: AgUi, interrupt: dict[str, Any]) -> None:
    said = {
        "actionType": "tool_approval" if word(interrupt, "toolCallId") else "structured_input",
        "prompt": word(interrupt, "message") or word(interrupt, "reason"),
        "responseSchema": table(interrupt.get("responseSchema")),
        "expiresAt": word(interrupt, "expiresAt"),
    }
    action = word(interrupt, "id") or "interrupt"
    agui.tell.ask(action, said, tool_call_id=word(interrupt, "toolCallId"))


def _run_error(agui: AgUi, item: dict[str, Any]) -> None:
    _note_usage(agui, item)
    code = word(item, "code")
    agui.tell.fail("provider_error", word(item, "message") or "the run failed", code=code)


def _note_usage(agui: AgUi, item: dict[str, Any]) -> None:
    for usage in map(table, listed(item.get("usage")) or ()):
        if usage:
            agui.tell.fact("cost.recorded", usage)


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
        agui.tell.text(_message(item), delta, subagent_id=_speaker(item))


def _text_end(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.text_end(_message(item), subagent_id=_speaker(item))


def _text_chunk(agui: AgUi, item: dict[str, Any]) -> None:
    """A piece that opens its message by itself; another message closes the one before."""
    message_id = word(item, "messageId") or agui.chunked or "message"
    if agui.chunked not in (None, message_id) and agui.chunked in agui.tell.messages:
        agui.tell.text_end(agui.chunked)
    agui.chunked = message_id
    agui.tell.text(message_id, word(item, "delta") or "", subagent_id=_speaker(item))


def _tool_start(agui: AgUi, item: dict[str, Any]) -> None:
    agui.args[_call(item)] = []
    agui.tell.tool(_call(item), word(item, "toolCallName"), subagent_id=_speaker(item))


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
    agui.tell.tool_result(_call(item), item.get("content"))


def _reasoning(agui: AgUi, item: dict[str, Any]) -> None:
    delta = word(item, "delta")
    if delta:
        agui.tell.reasoning(_message(item), delta, subagent_id=_speaker(item))


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
        {**operation, "path": f"/shared{word(operation, 'path') or ''}"}
        for operation in map(table, listed(item.get("delta")) or ())
        if operation
    ]
    agui.tell.fact("state.delta", {"patch": patch})


def _messages(agui: AgUi, item: dict[str, Any]) -> None:
    rows = [
        {"messageId": word(row, "id"), "role": word(row, "role"), "text": word(row, "content")}
        for row in map(table, listed(item.get("messages")) or ())
        if row and word(row, "role") in ("user", "assistant")
    ]
    agui.tell.fact("messages.snapshot", {"messages": rows})


def _activity(agui: AgUi, item: dict[str, Any]) -> None:
    said = {
        "kind": word(item, "activityType") or "activity",
        "data": item.get("content"),
        "patch": listed(item.get("patch")),
    }
    agui.tell.fact("artifact.changed", said, artifact_id=_message(item))


def _subagent(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.subagent(
        word(item, "subagentRunId") or "subagent",
        title=word(item, "name"),
        objective=word(item, "description"),
        parentTaskId=word(item, "parentSubagentRunId"),
    )


def _subagent_finished(agui: AgUi, item: dict[str, Any]) -> None:
    name = word(item, "subagentRunId") or "subagent"
    agui.tell.subagent_end(name, "subagent.completed", output=item.get("result"))


def _subagent_error(agui: AgUi, item: dict[str, Any]) -> None:
    message = word(item, "message") or "the subagent failed"
    name = word(item, "subagentRunId") or "subagent"
    agui.tell.subagent_end(
        name, "subagent.failed", failureCategory="subagent_error", message=message
    )


def _raw(agui: AgUi, item: dict[str, Any]) -> None:
    agui.tell.warn("raw_event", f"an event of {word(item, 'source') or 'the source'}", item)


def _message(item: dict[str, Any]) -> str:
    return word(item, "messageId") or "message"


def _call(item: dict[str, Any]) -> str:
    return word(item, "toolCallId") or "call"


def _speaker(item: dict[str, Any]) -> str | None:
    return word(item, "subagentRunId")


def _time(milliseconds: float) -> str | None:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    "CUSTOM": _raw,
}

SOURCE: Final = Source(
    name="ag-ui",
    title="AG-UI",
    framing="events",
    versions="1.0",
    converter=AgUi,
    maps={
        "RUN_STARTED, RUN_FINISHED, RUN_ERROR": "turn.*",
        "RUN_FINISHED with interrupts": "action.required, closed with the turn",
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
    lacks=("failed tools", "decisions (they come with the next run's input)"),
)
