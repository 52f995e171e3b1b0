"""The OpenAI Agents SDK: stream events, with the Responses API's events in them, as facts, and
as the lines that a recorder writes of them.
"""

from typing import Any, Final

from factwire.facts.json_values import list_at, number_at, object_at, text_at
from factwire.sources.kit.fact_builder import FactBuilder, parse_epoch_seconds
from factwire.sources.kit.recorded_runs import (
    LINES,
    RecordedRun,
    note_usage,
    parse_arguments,
    read_index,
    read_text,
)
from factwire.sources.kit.sdk_values import to_json
from factwire.sources.source_registry import Source

_NO_ID: Final = "__fake_id__"
"""What the SDK calls each item of a model that names none."""


class ResponsesConverter:
    """Tells the responses of a run. `spoken` counts messages that were told and that the SDK will
    hand over once more as items; `called` has the calls that are known.
    """

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.count = 0
        self.calls: dict[int, str] = {}
        self.called: set[str] = set()
        self.spoken = 0

    def take(self, event: dict[str, Any]) -> None:
        data = object_at(event.get("data")) or {}
        kind = text_at(data, "type") or ""
        handle = _RAW.get(kind) or (_add_progress if _is_of_a_call(kind) else None)
        if handle is None:
            self.builder.warn_unknown(f"response event {kind}", event)
        else:
            handle(self, data)

    def name_item(self, data: dict[str, Any], item_id: str | None) -> str:
        """The id of an item of a response, or one made of where it stands."""
        if item_id is not None and item_id != _NO_ID:
            return item_id
        if not self.builder.is_open:
            self.builder.begin_turn()
        return f"{self.builder.turn_id}:response-{self.count}:{_read_place(data)}"


def _on_created(model: ResponsesConverter, data: dict[str, Any]) -> None:
    response = object_at(data.get("response")) or {}
    model.count += 1
    model.calls, model.spoken = {}, 0
    model.builder.at = parse_epoch_seconds(number_at(response, "created_at")) or model.builder.at
    model.builder.add_fact("model.requested", {"model": text_at(response, "model")})


def _on_ended(model: ResponsesConverter, data: dict[str, Any]) -> None:
    """A response is over, which is not the end of the run; usage adds up over its responses."""
    response = object_at(data.get("response")) or {}
    note_usage(model.builder, response.get("usage"))
    if data.get("type") == "response.incomplete":
        reason = text_at(object_at(response.get("incomplete_details")) or {}, "reason") or "unknown"
        model.builder.warn("response_incomplete", f"the response stopped early: {reason}", data)


def _on_model_failed(model: ResponsesConverter, data: dict[str, Any]) -> None:
    response = object_at(data.get("response")) or data
    error = object_at(response.get("error")) or response
    payload = {
        "failureCategory": "provider_error",
        "message": text_at(error, "message") or "the model failed",
        "code": text_at(error, "code"),
    }
    model.builder.add_fact("model.failed", {key: value for key, value in payload.items() if value})


def _on_text(model: ResponsesConverter, data: dict[str, Any]) -> None:
    delta = text_at(data, "delta")
    if delta:
        model.builder.add_text(model.name_item(data, text_at(data, "item_id")), delta)


def _on_reasoning(model: ResponsesConverter, data: dict[str, Any]) -> None:
    delta = text_at(data, "delta")
    if delta:
        model.builder.add_reasoning(model.name_item(data, text_at(data, "item_id")), delta)


def _on_args(model: ResponsesConverter, data: dict[str, Any]) -> None:
    delta, call_id = text_at(data, "delta"), _call_of(model, data)
    if delta and call_id:
        model.builder.add_tool_args(call_id, delta)


def _add_progress(model: ResponsesConverter, data: dict[str, Any]) -> None:
    call_id = _call_of(model, data)
    if call_id in model.builder.tools:
        model.builder.report_tool_progress(
            call_id, state=(text_at(data, "type") or "").rpartition(".")[2]
        )


def _on_citation(model: ResponsesConverter, data: dict[str, Any]) -> None:
    annotation = object_at(data.get("annotation")) or {}
    message_id = model.name_item(data, text_at(data, "item_id"))
    place = read_index(data, "annotation_index")
    payload = {
        "kind": "citation",
        "title": text_at(annotation, "title", "filename"),
        "url": text_at(annotation, "url"),
    }
    evidence_id = f"{message_id}:citation-{place}"
    model.builder.add_fact(
        "evidence.changed",
        {key: value for key, value in payload.items() if value},
        evidence_id=evidence_id,
        message_id=message_id,
    )


def _on_item(model: ResponsesConverter, data: dict[str, Any]) -> None:
    item = object_at(data.get("item")) or {}
    kind = text_at(item, "type") or ""
    done = data.get("type") == "response.output_item.done"
    if kind == "message":
        _message_item(model, data, item, done=done)
    elif kind == "reasoning":
        _reasoning_item(model, data, item, done=done)
    elif kind.endswith("_call"):
        _call_item(model, data, item, done=done)
    elif done:
        _odd_item(model, item)


def _message_item(
    model: ResponsesConverter, data: dict[str, Any], item: dict[str, Any], *, done: bool
) -> None:
    if done:
        model.spoken += 1
        model.builder.end_text(
            model.name_item(data, text_at(item, "id")), read_text(item.get("content"))
        )


def _reasoning_item(
    model: ResponsesConverter, data: dict[str, Any], item: dict[str, Any], *, done: bool
) -> None:
    if not done:
        return
    message_id, summary = model.name_item(data, text_at(item, "id")), read_text(item.get("summary"))
    if summary:
        model.builder.add_reasoning_summary(message_id, summary)
    else:
        model.builder.add_fact("reasoning.completed", {}, message_id=message_id)


def _call_item(
    model: ResponsesConverter, data: dict[str, Any], item: dict[str, Any], *, done: bool
) -> None:
    """A call. One without a call id runs at the provider, and has ended when its item has."""
    call_id = read_call_id(item) or model.name_item(data, None)
    model.calls[_read_place(data)] = call_id
    if done or call_id not in model.builder.tools:
        args = parse_arguments(item.get("arguments") or item.get("input") or item.get("action"))
        model.builder.start_tool(
            call_id, text_at(item, "name") or text_at(item, "type"), args if done else None
        )
    model.called.add(call_id)
    if done and not text_at(item, "call_id"):
        end_hosted(model, call_id, item)


def end_hosted(model: ResponsesConverter, call_id: str, item: dict[str, Any]) -> None:
    error = item.get("error")
    if error or text_at(item, "status") == "failed":
        message = error if isinstance(error, str) else text_at(object_at(error) or {}, "message")
        model.builder.fail_tool(call_id, "tool_error", message or "the call failed")
    else:
        model.builder.complete_tool(call_id, item.get("output") or item.get("results"))


def _odd_item(model: ResponsesConverter, item: dict[str, Any]) -> None:
    kind = text_at(item, "type") or ""
    if kind == "compaction":
        model.builder.add_fact("history.compacted", {})
    elif kind not in _TOLD_AS_RUN_ITEMS:
        model.builder.warn_unknown(f"output item {kind}", item)


def _ignore_event(model: ResponsesConverter, item: dict[str, Any]) -> None:
    """Says nothing that another event does not say."""
    del model, item


def read_call_id(raw: dict[str, Any]) -> str | None:
    own = text_at(raw, "id")
    return text_at(raw, "call_id") or (own if own != _NO_ID else None)


def _read_place(data: dict[str, Any]) -> int:
    return read_index(data, "output_index")


def _call_of(model: ResponsesConverter, data: dict[str, Any]) -> str:
    return model.calls.get(_read_place(data)) or ""


def _is_of_a_call(kind: str) -> bool:
    """`response.web_search_call.searching` and its like."""
    subject, _, state = kind.removeprefix("response.").partition(".")
    return bool(state) and subject.endswith(("_call", "_list_tools"))


_RAW: Final = {
    "response.created": _on_created,
    "response.queued": _ignore_event,
    "response.in_progress": _ignore_event,
    "response.completed": _on_ended,
    "response.incomplete": _on_ended,
    "response.failed": _on_model_failed,
    "error": _on_model_failed,
    "response.output_item.added": _on_item,
    "response.output_item.done": _on_item,
    "response.content_part.added": _ignore_event,
    "response.content_part.done": _ignore_event,
    "response.output_text.delta": _on_text,
    "response.output_text.done": _ignore_event,
    "response.output_text.annotation.added": _on_citation,
    "response.refusal.delta": _on_text,
    "response.refusal.done": _ignore_event,
    "response.reasoning_summary_part.added": _ignore_event,
    "response.reasoning_summary_part.done": _ignore_event,
    "response.reasoning_summary_text.delta": _on_reasoning,
    "response.reasoning_summary_text.done": _ignore_event,
    "response.reasoning_text.delta": _on_reasoning,
    "response.reasoning_text.done": _ignore_event,
    "response.function_call_arguments.delta": _on_args,
    "response.function_call_arguments.done": _ignore_event,
    "response.custom_tool_call_input.delta": _on_args,
    "response.custom_tool_call_input.done": _ignore_event,
    "response.mcp_call_arguments.delta": _on_args,
    "response.mcp_call_arguments.done": _ignore_event,
    "response.code_interpreter_call_code.delta": _on_args,
    "response.code_interpreter_call_code.done": _ignore_event,
}
_TOLD_AS_RUN_ITEMS: Final = ("mcp_approval_request", "mcp_list_tools", "tool_search_output")
"""Output items that the SDK hands over as run items, where they are told."""


class OpenAiAgents:
    """Converts the runs of one recording."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.run = RecordedRun(builder, self.ask_person, self.close_agent)
        self.model = ResponsesConverter(builder)

    def take(self, item: dict[str, Any]) -> None:
        if self.run.take(item):
            return
        kind = text_at(item, "type") or ""
        handle = _EVENTS.get(kind)
        if handle is None:
            self.builder.warn_unknown(kind, item)
        else:
            handle(self, item)

    def finish(self) -> None:
        self.run.finish()

    def close_agent(self, outcome: str) -> None:
        """Ids of calls are known within their run."""
        del outcome
        self.model.called.clear()

    def ask_person(self, item: dict[str, Any]) -> None:
        """A call waits for a person."""
        raw = _raw_item(item)
        call_id, name = (
            read_call_id(raw) or "call",
            text_at(item, "tool_name") or text_at(raw, "name"),
        )
        args = parse_arguments(raw.get("arguments"))
        self.builder.start_tool(call_id, name, args)
        payload = {"actionType": "tool_approval", "toolName": name, "args": args}
        self.builder.require_action(call_id, payload, tool_call_id=call_id)


def _on_agent(sdk: OpenAiAgents, event: dict[str, Any]) -> None:
    sdk.builder.set_ids(
        agent_id=text_at(object_at(event.get("new_agent")) or {}, "name") or sdk.builder.source
    )


def _on_response(sdk: OpenAiAgents, event: dict[str, Any]) -> None:
    sdk.model.take(event)


def _on_run_item(sdk: OpenAiAgents, event: dict[str, Any]) -> None:
    name = text_at(event, "name") or ""
    handle = _RUN_ITEMS.get(name)
    if handle is None:
        sdk.builder.warn_unknown(f"run item {name}", event)
    else:
        handle(sdk, object_at(event.get("item")) or {})


def _on_message_created(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    """News only where the raw events were not recorded."""
    if sdk.model.spoken:
        sdk.model.spoken -= 1
        return
    raw = _raw_item(item)
    sdk.model.count += 1
    sdk.builder.end_text(sdk.model.name_item({}, text_at(raw, "id")), read_text(raw.get("content")))


def _on_tool_called(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    call_id = read_call_id(raw) or "call"
    if call_id not in sdk.model.called:
        sdk.model.called.add(call_id)
        name = text_at(raw, "name") or text_at(item, "tool_name") or text_at(raw, "type")
        sdk.builder.start_tool(
            call_id, name, parse_arguments(raw.get("arguments")), title=text_at(item, "title")
        )
        if not text_at(raw, "call_id"):
            end_hosted(sdk.model, call_id, raw)


def _on_tool_output(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    call_id, output = read_call_id(raw) or "call", item.get("output", raw.get("output"))
    if call_id in sdk.run.denied:
        sdk.builder.fail_tool(call_id, "permission_denied", "the call was not approved")
    else:
        sdk.builder.resolve_action(call_id, "unknown")
        sdk.builder.complete_tool(call_id, output)


def _on_handoff_requested(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    _on_tool_called(sdk, item)
    payload = {"fromAgent": _agent_name(item, "agent")}
    sdk.builder.add_fact("handoff.requested", payload, handoff_id=read_call_id(raw) or "handoff")


def _on_handoff_done(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    call_id = read_call_id(_raw_item(item)) or "handoff"
    source, target = _agent_name(item, "source_agent"), _agent_name(item, "target_agent")
    payload = {"fromAgent": source, "toAgent": target}
    sdk.builder.add_fact("handoff.accepted", payload, handoff_id=call_id)
    if call_id in sdk.builder.tools:
        sdk.builder.complete_tool(call_id, {"agent": target})
    sdk.builder.add_fact("handoff.completed", payload, handoff_id=call_id)


def _on_mcp_ask(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    name = f"{text_at(raw, 'server_label') or 'mcp'}.{text_at(raw, 'name') or 'unknown'}"
    payload = {
        "actionType": "tool_approval",
        "toolName": name,
        "args": parse_arguments(raw.get("arguments")),
    }
    sdk.builder.require_action(text_at(raw, "id") or "mcp", payload)


def _on_mcp_answer(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    decision = "approved" if raw.get("approve") is True else "denied"
    action_id = text_at(raw, "approval_request_id") or "mcp"
    sdk.builder.resolve_action(action_id, decision, reason=text_at(raw, "reason"))


def _on_mcp_tools(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    tools = [
        text_at(tool, "name") for tool in map(object_at, list_at(raw.get("tools")) or ()) if tool
    ]
    payload = {"server": text_at(raw, "server_label"), "tools": [name for name in tools if name]}
    sdk.builder.add_fact("tool.catalog.resolved", payload)


def _ignore_item(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    """Says nothing that another event does not say."""
    del sdk, item


def _raw_item(item: dict[str, Any]) -> dict[str, Any]:
    return object_at(item.get("raw_item")) or {}


def _agent_name(item: dict[str, Any], field: str) -> str:
    return text_at(object_at(item.get(field)) or {}, "name") or "unknown"


_EVENTS: Final = {
    "agent_updated_stream_event": _on_agent,
    "raw_response_event": _on_response,
    "run_item_stream_event": _on_run_item,
}
_RUN_ITEMS: Final = {
    "message_output_created": _on_message_created,
    "reasoning_item_created": _ignore_item,
    "tool_called": _on_tool_called,
    "tool_output": _on_tool_output,
    "tool_search_called": _on_tool_called,
    "tool_search_output_created": _on_tool_output,
    "handoff_requested": _on_handoff_requested,
    "handoff_occured": _on_handoff_done,
    "mcp_approval_requested": _on_mcp_ask,
    "mcp_approval_response": _on_mcp_answer,
    "mcp_list_tools": _on_mcp_tools,
}

SOURCE: Final = Source(
    name="openai-agents",
    title="OpenAI Agents SDK",
    framing="lines",
    versions="0.24",
    converter=OpenAiAgents,
    maps={
        **LINES,
        "response.created": "model.requested",
        "response.completed": "the turn's usage, summed",
        "response.failed, error": "model.failed",
        "response.output_text.*, message": "model.delta, model.completed",
        "response.reasoning_*": "reasoning.delta, reasoning.summary",
        "response.output_item.* of a call": "tool.started, tool.args.delta, tool.args",
        "response.output_text.annotation.added": "evidence.changed",
        "tool_output": "tool.result; tool.failed after a denial",
        "handoff_requested, handoff_occured": "handoff.requested, handoff.accepted, "
        "handoff.completed",
        "agent_updated_stream_event": "the agentId of what follows",
        "mcp_approval_*": "action.required, action.resolved",
        "mcp_list_tools": "tool.catalog.resolved",
    },
    lacks=(
        "failed tools",
        "what an agent that is used as a tool does",
        "ids of events",
    ),
)


_FIELDS: Final = ("type", "output", "title", "description", "tool_name")
_AGENTS: Final = ("agent", "source_agent", "target_agent")


def event_line(event: Any) -> dict[str, Any]:
    """One event of `stream_events()`."""
    kind = getattr(event, "type", None)
    if kind == "raw_response_event":
        return {"type": kind, "data": dump_model(event.data)}
    if kind == "agent_updated_stream_event":
        return {"type": kind, "new_agent": _agent_name_line(event.new_agent)}
    if kind == "run_item_stream_event":
        return {"type": kind, "name": event.name, "item": item_line(event.item)}
    return {"type": to_json(kind), "event": to_json(event)}


def item_line(item: Any) -> dict[str, Any]:
    """An item of a run: something said, called, handed over or waited for."""
    payload = {name: to_json(getattr(item, name, None)) for name in _FIELDS}
    agents = {
        name: _agent_name_line(getattr(item, name)) for name in _AGENTS if hasattr(item, name)
    }
    known = {name: value for name, value in payload.items() if value is not None}
    return {**known, **agents, "raw_item": dump_model(item.raw_item)}


def completion_line(output: object) -> dict[str, Any]:
    return {"type": "run.completed", "final_output": to_json(output)}


def interruption_line(items: list[Any]) -> dict[str, Any]:
    return {"type": "run.interrupted", "interruptions": [item_line(item) for item in items]}


def read_call(item: Any) -> tuple[str, str, Any]:
    """The id, the tool and the arguments of a call that waits for approval."""
    raw = dump_model(item.raw_item)
    call_id = raw.get("call_id") or raw.get("id") or "call"
    return str(call_id), str(item.tool_name or raw.get("name")), raw.get("arguments")


def dump_model(value: Any) -> dict[str, Any]:
    """A model of the API without what it leaves open."""
    payload = object_at(to_json(value)) or {}
    return {name: each for name, each in payload.items() if each is not None}


def _agent_name_line(agent: Any) -> dict[str, Any]:
    return {"name": to_json(getattr(agent, "name", None))}
