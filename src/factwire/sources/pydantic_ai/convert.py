"""Pydantic AI: the events of a run as facts, and as the lines that a recorder writes of them.

Parts of a message are numbered in it; a call that waits for a person, or for whoever carries it
out, ends the run, and the next one goes on with what was decided.
"""

from typing import Any, Final

from factwire.facts.json_values import list_at, object_at, text_at
from factwire.sources.kit.fact_builder import FactBuilder, parse_iso_time
from factwire.sources.kit.recorded_runs import LINES, RecordedRun, parse_arguments, read_index
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.source_registry import Source

_DENIED: Final = "tool-denied"


class PydanticAi:
    """Converts the runs of one recording."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.run = RecordedRun(builder, self.ask_person)
        self.responses = 0
        self.places: set[int] = set()

    def take(self, item: dict[str, Any]) -> None:
        if self.run.take(item):
            return
        kind = text_at(item, "event_kind") or ""
        handle = _EVENTS.get(kind)
        if handle is None:
            self.builder.warn_unknown(kind or "an item without event_kind", item)
        else:
            handle(self, item)

    def finish(self) -> None:
        self.run.finish()

    def ask_person(self, call: dict[str, Any]) -> None:
        """A call waits: for a person, or for whoever carries it out."""
        call_id, name = _call(call), text_at(call, "tool_name")
        args = parse_arguments(call.get("args"))
        self.builder.start_tool(call_id, name, args)
        action = "structured_input" if text_at(call, "kind") == "external" else "tool_approval"
        payload = {"actionType": action, "toolName": name, "args": args}
        self.builder.require_action(call_id, payload, tool_call_id=call_id)

    def part_id(self, item: dict[str, Any]) -> str:
        """The id of the part that stands there."""
        index = read_index(item, "index")
        if not self.builder.is_open:
            self.builder.begin_turn()
        return f"{self.builder.turn_id}:response-{self.responses}:{index}"


def _on_part_start(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """A part begins; where one stood there before, this is another response."""
    index = read_index(item, "index")
    if not sdk.places or index in sdk.places:
        sdk.responses += 1
        sdk.places.clear()
        sdk.builder.add_fact("model.requested")
    sdk.places.add(index)
    part = object_at(item.get("part")) or {}
    kind = text_at(part, "part_kind") or ""
    handle = _PARTS.get(kind)
    if handle is None:
        sdk.builder.warn_unknown(f"part {kind}", item)
    else:
        handle(sdk, item, part)


def _on_text_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    content = text_at(part, "content")
    if content:
        sdk.builder.add_text(sdk.part_id(item), content)


def _on_thinking_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    content = text_at(part, "content")
    if content:
        sdk.builder.add_reasoning(sdk.part_id(item), content)


def _on_call_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    del item
    sdk.builder.start_tool(_call(part), text_at(part, "tool_name"))
    first = text_at(part, "args")
    if first:
        sdk.builder.add_tool_args(_call(part), first)


def _on_return_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    """A call that the provider carried out."""
    del item
    _end_call(sdk, part)


def _on_file_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    content = object_at(part.get("content")) or {}
    ref = sdk.builder.keep((text_at(content, "data") or "").encode("utf-8", "replace"))
    payload = {
        "kind": "file",
        "mediaType": text_at(content, "media_type") or "application/octet-stream",
    }
    sdk.builder.add_fact("artifact.changed", payload, artifact_id=sdk.part_id(item), ref_ids=(ref,))


def _on_compaction_part(sdk: PydanticAi, item: dict[str, Any], part: dict[str, Any]) -> None:
    del item, part
    sdk.builder.add_fact("history.compacted")


def _on_part_delta(sdk: PydanticAi, item: dict[str, Any]) -> None:
    delta = object_at(item.get("delta")) or {}
    kind, content = text_at(delta, "part_delta_kind"), text_at(delta, "content_delta")
    if kind == "text" and content:
        sdk.builder.add_text(sdk.part_id(item), content)
    elif kind == "thinking" and content:
        sdk.builder.add_reasoning(sdk.part_id(item), content)
    elif kind == "tool_call" and text_at(delta, "args_delta"):
        sdk.builder.add_tool_args(_call(delta), text_at(delta, "args_delta") or "")


def _on_part_end(sdk: PydanticAi, item: dict[str, Any]) -> None:
    part = object_at(item.get("part")) or {}
    kind = text_at(part, "part_kind") or ""
    if kind == "text":
        sdk.builder.end_text(sdk.part_id(item), text_at(part, "content") or "")
    elif kind == "thinking":
        sdk.builder.add_fact("reasoning.completed", {}, message_id=sdk.part_id(item))
    elif kind in ("tool-call", "builtin-tool-call"):
        sdk.builder.start_tool(
            _call(part), text_at(part, "tool_name"), parse_arguments(part.get("args"))
        )


def _on_tool_call(sdk: PydanticAi, item: dict[str, Any]) -> None:
    part = object_at(item.get("part")) or {}
    sdk.builder.start_tool(
        _call(part), text_at(part, "tool_name"), parse_arguments(part.get("args"))
    )


def _on_tool_result(sdk: PydanticAi, item: dict[str, Any]) -> None:
    _end_call(sdk, object_at(item.get("part")) or object_at(item.get("result")) or {})


def _end_call(sdk: PydanticAi, part: dict[str, Any]) -> None:
    """How a call came out; a result without an outcome is that of a call that succeeded."""
    call_id, content = _call(part), part.get("content")
    sdk.builder.at = parse_iso_time(text_at(part, "timestamp")) or sdk.builder.at
    sdk.builder.start_tool(call_id, text_at(part, "tool_name"))
    outcome = text_at(part, "outcome") or ""
    if text_at(part, "part_kind") == "retry-prompt":
        outcome = "retried"
    denied = outcome == "denied" or call_id in sdk.run.denied
    sdk.builder.resolve_action(call_id, "denied" if denied else "unknown")
    category = "permission_denied" if denied else _FAILURES.get(outcome)
    if category is None:
        sdk.builder.complete_tool(call_id, content)
    else:
        message = content if isinstance(content, str) and content else f"the call was {outcome}"
        sdk.builder.fail_tool(call_id, category, message)


def _on_deferred(sdk: PydanticAi, item: dict[str, Any]) -> None:
    requests = object_at(item.get("requests")) or {}
    for kind, name in (("approval", "approvals"), ("external", "calls")):
        for call in map(object_at, list_at(requests.get(name)) or ()):
            sdk.ask_person({**(call or {}), "kind": kind})


def _on_decided(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """What a handler decided while the run went on."""
    results = object_at(item.get("results")) or {}
    for call_id, verdict in (object_at(results.get("approvals")) or {}).items():
        ruling = object_at(verdict) or {}
        denied = verdict is False or text_at(ruling, "kind") == _DENIED
        sdk.builder.resolve_action(
            call_id, "denied" if denied else "approved", reason=text_at(ruling, "message")
        )
    for call_id in object_at(results.get("calls")) or {}:
        sdk.builder.resolve_action(call_id, "answered")


def _on_enqueued(sdk: PydanticAi, item: dict[str, Any]) -> None:
    enqueue_id = text_at(item, "enqueue_id") or "enqueued"
    sdk.builder.add_fact("queue.changed", {"kind": "steer", "queuedTurnId": enqueue_id})


def _on_raw(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """Whatever an application or a capability sends; only they know what it means."""
    name = text_at(item, "name", "kind", "event_kind")
    sdk.builder.warn("raw_event", f"a custom event: {name}", item)


def _ignore_event(sdk: PydanticAi, item: dict[str, Any]) -> None:
    """Says nothing about what was done."""
    del sdk, item


def _call(part: dict[str, Any]) -> str:
    return text_at(part, "tool_call_id") or "call"


_FAILURES: Final = {"failed": "tool_error", "retried": "retry", "interrupted": "interrupted"}
_PARTS: Final = {
    "text": _on_text_part,
    "thinking": _on_thinking_part,
    "tool-call": _on_call_part,
    "builtin-tool-call": _on_call_part,
    "builtin-tool-return": _on_return_part,
    "file": _on_file_part,
    "compaction": _on_compaction_part,
}
_EVENTS: Final = {
    "part_start": _on_part_start,
    "part_delta": _on_part_delta,
    "part_end": _on_part_end,
    "final_result": _ignore_event,
    "function_tool_call": _on_tool_call,
    "function_tool_result": _on_tool_result,
    "output_tool_call": _on_tool_call,
    "output_tool_result": _on_tool_result,
    "deferred_tool_requests": _on_deferred,
    "deferred_tool_results": _on_decided,
    "enqueued_messages": _on_enqueued,
    "tool_availability_delta": _ignore_event,
    "capability_load_delta": _ignore_event,
    "model_settings_delta": _ignore_event,
    "custom": _on_raw,
    "capability": _on_raw,
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
        "function_tool_call, output_tool_call": "tool.started, if no part announced it",
        "function_tool_result, output_tool_result": "tool.result, tool.failed",
        "deferred_tool_requests": "action.required",
        "deferred_tool_results": "action.resolved",
        "enqueued_messages": "queue.changed (steer)",
        "custom, capability": "runtime.warning with a ref",
        "final_result, *_delta of tools, capabilities and settings": "nothing",
    },
    lacks=("times of anything but results", "ids of messages", "the model's name", "subagents"),
)


def event_line(event: object) -> dict[str, Any]:
    """One event of a run. Events are dataclasses that hold nothing but what they say."""
    return object_at(to_json(event)) or {}


def closing_line(result: Any) -> dict[str, Any]:
    """How a run ended: with an output, or with calls that somebody else has to see to."""
    output, used = result.output, result.usage
    usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    if type(output).__name__ != "DeferredToolRequests":
        return {"type": "run.completed", "final_output": to_json(output), "usage": usage}
    interruptions = [
        call_line(kind, call)
        for kind, calls in (("approval", output.approvals), ("external", output.calls))
        for call in calls
    ]
    return {"type": "run.interrupted", "interruptions": interruptions, "usage": usage}


def call_line(kind: str, call: Any) -> dict[str, Any]:
    """A call that waits for a person (`approval`), or for whoever carries it out (`external`)."""
    return {
        "kind": kind,
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "args": to_json(call.args),
    }
