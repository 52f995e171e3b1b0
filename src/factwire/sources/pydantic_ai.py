"""Pydantic AI: the events of a run, each as the SDK's own type adapter writes it.

Parts of a response have a place and no id, so they are named by the response and the place. Calls
have ids, and their results say how they came out. What a run defers to a person or to somebody else
ends it, and the next run goes on with what was decided; the stream itself has no end.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.moments import moment_of_text
from factwire.sources.recorded_runs import LINES, RecordedRun, parsed, place_of
from factwire.sources.source import Source
from factwire.sources.telling import Telling

_DENIED: Final = "tool-denied"


class PydanticAi:
    """Converts the runs of one recording."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.run = RecordedRun(telling, self.ask)
        self.responses = 0
        self.places: set[int] = set()

    def take(self, item: dict[str, Any]) -> None:
        if self.run.take(item):
            return
        kind = word(item, "event_kind") or ""
        handle = _EVENTS.get(kind)
        if handle is None:
            self.tell.unknown(kind or "an item without event_kind", item)
        else:
            handle(self, item)

    def finish(self) -> None:
        self.run.finish()

    def ask(self, call: dict[str, Any]) -> None:
        """A call waits: for a person, or for whoever carries it out."""
        call_id, name = _call(call), word(call, "tool_name")
        args = parsed(call.get("args"))
        self.tell.tool(call_id, name, args)
        action = "structured_input" if word(call, "kind") == "external" else "tool_approval"
        said = {"actionType": action, "toolName": name, "args": args}
        self.tell.ask(call_id, said, tool_call_id=call_id)

    def place(self, item: dict[str, Any]) -> str:
        """The id of the part that stands there."""
        index = place_of(item, "index")
        if not self.tell.is_open:
            self.tell.begin()
        return f"{self.tell.turn_id}:response-{self.responses}:{index}"


def _part_start(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """A part begins; where one stood there before, this is another response."""
    index = place_of(item, "index")
    if not sdk.places or index in sdk.places:
        sdk.responses += 1
        sdk.places.clear()
        sdk.tell.fact("model.requested")
    sdk.places.add(index)
    part = table(item.get("part")) or {}
    kind = word(part, "part_kind") or ""
    handle = _PARTS.get(kind)
    if handle is None:
        sdk.tell.unknown(f"part {kind}", item)
    else:
        handle(sdk, item, part)


def _text_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    content = word(part, "content")
    if content:
        sdk.tell.text(sdk.place(item), content)


def _thinking_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    content = word(part, "content")
    if content:
        sdk.tell.reasoning(sdk.place(item), content)


def _call_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    del item
    sdk.tell.tool(_call(part), word(part, "tool_name"))
    first = word(part, "args")
    if first:
        sdk.tell.tool_args(_call(part), first)


def _return_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    """A call that the provider carried out."""
    del item
    _end_call(sdk, part)


def _file_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    content = table(part.get("content")) or {}
    ref = sdk.tell.keep((word(content, "data") or "").encode("utf-8", "replace"))
    said = {"kind": "file", "mediaType": word(content, "media_type") or "application/octet-stream"}
    sdk.tell.fact("artifact.changed", said, artifact_id=sdk.place(item), ref_ids=(ref,))


def _compaction_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    del item, part
    sdk.tell.fact("history.compacted")


def _part_delta(sdk: PydanticAi, item: dict[str, Any]) -> None:
    delta = table(item.get("delta")) or {}
    kind, content = word(delta, "part_delta_kind"), word(delta, "content_delta")
    if kind == "text" and content:
        sdk.tell.text(sdk.place(item), content)
    elif kind == "thinking" and content:
        sdk.tell.reasoning(sdk.place(item), content)
    elif kind == "tool_call" and word(delta, "args_delta"):
        sdk.tell.tool_args(_call(delta), word(delta, "args_delta") or "")


def _part_end(sdk: PydanticAi, item: dict[str, Any]) -> None:
    part = table(item.get("part")) or {}
    kind = word(part, "part_kind") or ""
    if kind == "text":
        sdk.tell.text_end(sdk.place(item), word(part, "content") or "")
    elif kind == "thinking":
        sdk.tell.fact("reasoning.completed", {}, message_id=sdk.place(item))
    elif kind in ("tool-call", "builtin-tool-call"):
        sdk.tell.tool(_call(part), word(part, "tool_name"), parsed(part.get("args")))


def _tool_call(sdk: PydanticAi, item: dict[str, Any]) -> None:
    part = table(item.get("part")) or {}
    sdk.tell.tool(_call(part), word(part, "tool_name"), parsed(part.get("args")))


def _tool_result(sdk: PydanticAi, item: dict[str, Any]) -> None:
    _end_call(sdk, table(item.get("part")) or table(item.get("result")) or {})


def _end_call(sdk: PydanticAi, part: dict[str, Any]) -> None:
    """How a call came out; a result without an outcome is that of a call that succeeded."""
    call_id, content = _call(part), part.get("content")
    sdk.tell.at = moment_of_text(word(part, "timestamp")) or sdk.tell.at
    sdk.tell.tool(call_id, word(part, "tool_name"))
    outcome = word(part, "outcome") or ""
    if word(part, "part_kind") == "retry-prompt":
        outcome = "retried"
    denied = outcome == "denied" or call_id in sdk.run.denied
    sdk.tell.answered(call_id, "denied" if denied else "unknown")
    category = "permission_denied" if denied else _FAILURES.get(outcome)
    if category is None:
        sdk.tell.tool_result(call_id, content)
    else:
        message = content if isinstance(content, str) and content else f"the call was {outcome}"
        sdk.tell.tool_failed(call_id, category, message)


def _deferred(sdk: PydanticAi, item: dict[str, Any]) -> None:
    requests = table(item.get("requests")) or {}
    for kind, name in (("approval", "approvals"), ("external", "calls")):
        for call in map(table, listed(requests.get(name)) or ()):
            sdk.ask({**(call or {}), "kind": kind})


def _decided(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """What a handler decided while the run went on."""
    results = table(item.get("results")) or {}
    for call_id, verdict in (table(results.get("approvals")) or {}).items():
        ruling = table(verdict) or {}
        denied = verdict is False or word(ruling, "kind") == _DENIED
        sdk.tell.answered(
            call_id, "denied" if denied else "approved", reason=word(ruling, "message")
        )
    for call_id in table(results.get("calls")) or {}:
        sdk.tell.answered(call_id, "answered")


def _enqueued(sdk: PydanticAi, item: dict[str, Any]) -> None:
    enqueue_id = word(item, "enqueue_id") or "enqueued"
    sdk.tell.fact("queue.changed", {"kind": "steer", "queuedTurnId": enqueue_id})


def _raw(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """Whatever an application or a capability sends; only they know what it means."""
    name = word(item, "name", "kind", "event_kind")
    sdk.tell.warn("raw_event", f"an event of its own: {name}", item)


def _quiet(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """Says nothing about what was done."""
    del sdk, item


def _call(part: dict[str, Any]) -> str:
    return word(part, "tool_call_id") or "call"


_FAILURES: Final = {"failed": "tool_error", "retried": "retry", "interrupted": "interrupted"}
_PARTS: Final = {
    "text": _text_part,
    "thinking": _thinking_part,
    "tool-call": _call_part,
    "builtin-tool-call": _call_part,
    "builtin-tool-return": _return_part,
    "file": _file_part,
    "compaction": _compaction_part,
}
_EVENTS: Final = {
    "part_start": _part_start,
    "part_delta": _part_delta,
    "part_end": _part_end,
    "final_result": _quiet,
    "function_tool_call": _tool_call,
    "function_tool_result": _tool_result,
    "output_tool_call": _tool_call,
    "output_tool_result": _tool_result,
    "deferred_tool_requests": _deferred,
    "deferred_tool_results": _decided,
    "enqueued_messages": _enqueued,
    "tool_availability_delta": _quiet,
    "capability_load_delta": _quiet,
    "model_settings_delta": _quiet,
    "custom": _raw,
    "capability": _raw,
}

SOURCE: Final = Source(
    name="pydantic-ai",
    title="Pydantic AI",
    framing="lines",
    versions="2.66",
    converter=PydanticAi,
    maps={
        **LINES,
        "part_start, part_delta, part_end of a text": "model.delta, model.completed",
        "part_* of thinking": "reasoning.delta, reasoning.completed",
        "part_* of a call": "tool.started, tool.args.delta, tool.args",
        "part_* of a file": "artifact.changed",
        "function_tool_call, output_tool_call": "tool.started, where no part told it",
        "function_tool_result, output_tool_result": "tool.result, tool.failed",
        "deferred_tool_requests": "action.required",
        "deferred_tool_results": "action.resolved",
        "enqueued_messages": "queue.changed (steer)",
        "custom, capability": "runtime.warning with a ref",
        "final_result, *_delta of tools, capabilities and settings": "nothing",
    },
    lacks=("times of anything but results", "ids of messages", "the model's name", "subagents"),
)
