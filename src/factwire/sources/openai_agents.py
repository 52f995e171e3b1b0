"""The OpenAI Agents SDK: `stream_events()` of a run, each event as one object.

Raw events tell the words and the calls as the model makes them, run items what the SDK did with
them; whichever comes second is recognised. The stream has no end of its own, so the recorder writes
one. A handoff changes who speaks, and its call is a tool like any other.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.openai_responses import Responses, call_id_of, end_hosted
from factwire.sources.recorded_runs import LINES, RecordedRun, parsed, text_of
from factwire.sources.source import Source
from factwire.sources.telling import Telling


class OpenAiAgents:
    """Converts the runs of one recording."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.run = RecordedRun(telling, self.ask, self.close)
        self.model = Responses(telling)

    def take(self, item: dict[str, Any]) -> None:
        if self.run.take(item):
            return
        kind = word(item, "type") or ""
        handle = _EVENTS.get(kind)
        if handle is None:
            self.tell.unknown(kind, item)
        else:
            handle(self, item)

    def finish(self) -> None:
        self.run.finish()

    def close(self, outcome: str) -> None:
        """Ids of calls are known within their run."""
        del outcome
        self.model.called.clear()

    def ask(self, item: dict[str, Any]) -> None:
        """A call waits for a person."""
        raw = _raw_item(item)
        call_id, name = call_id_of(raw) or "call", word(item, "tool_name") or word(raw, "name")
        args = parsed(raw.get("arguments"))
        self.tell.tool(call_id, name, args)
        said = {"actionType": "tool_approval", "toolName": name, "args": args}
        self.tell.ask(call_id, said, tool_call_id=call_id)


def _agent(sdk: OpenAiAgents, event: dict[str, Any]) -> None:
    sdk.tell.known(agent_id=word(table(event.get("new_agent")) or {}, "name") or sdk.tell.source)


def _response(sdk: OpenAiAgents, event: dict[str, Any]) -> None:
    sdk.model.take(event)


def _run_item(sdk: OpenAiAgents, event: dict[str, Any]) -> None:
    name = word(event, "name") or ""
    handle = _RUN_ITEMS.get(name)
    if handle is None:
        sdk.tell.unknown(f"run item {name}", event)
    else:
        handle(sdk, table(event.get("item")) or {})


def _message_created(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    """News only where the raw events were not recorded."""
    if sdk.model.spoken:
        sdk.model.spoken -= 1
        return
    raw = _raw_item(item)
    sdk.model.count += 1
    sdk.tell.text_end(sdk.model.name({}, word(raw, "id")), text_of(raw.get("content")))


def _tool_called(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    call_id = call_id_of(raw) or "call"
    if call_id not in sdk.model.called:
        sdk.model.called.add(call_id)
        name = word(raw, "name") or word(item, "tool_name") or word(raw, "type")
        sdk.tell.tool(call_id, name, parsed(raw.get("arguments")), title=word(item, "title"))
        if not word(raw, "call_id"):
            end_hosted(sdk.model, call_id, raw)


def _tool_output(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    call_id, output = call_id_of(raw) or "call", item.get("output", raw.get("output"))
    if call_id in sdk.run.denied:
        sdk.tell.tool_failed(call_id, "permission_denied", "the call was not approved")
    else:
        sdk.tell.answered(call_id, "unknown")
        sdk.tell.tool_result(call_id, output)


def _handoff_requested(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    _tool_called(sdk, item)
    said = {"fromAgent": _agent_name(item, "agent")}
    sdk.tell.fact("handoff.requested", said, handoff_id=call_id_of(raw) or "handoff")


def _handoff_done(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    call_id = call_id_of(_raw_item(item)) or "handoff"
    source, target = _agent_name(item, "source_agent"), _agent_name(item, "target_agent")
    said = {"fromAgent": source, "toAgent": target}
    sdk.tell.fact("handoff.accepted", said, handoff_id=call_id)
    if call_id in sdk.tell.tools:
        sdk.tell.tool_result(call_id, {"agent": target})
    sdk.tell.fact("handoff.completed", said, handoff_id=call_id)


def _mcp_ask(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    name = f"{word(raw, 'server_label') or 'mcp'}.{word(raw, 'name') or 'unknown'}"
    said = {
        "actionType": "tool_approval",
        "toolName": name,
        "args": parsed(raw.get("arguments")),
    }
    sdk.tell.ask(word(raw, "id") or "mcp", said)


def _mcp_answer(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    decision = "approved" if raw.get("approve") is True else "denied"
    action_id = word(raw, "approval_request_id") or "mcp"
    sdk.tell.answered(action_id, decision, reason=word(raw, "reason"))


def _mcp_tools(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    raw = _raw_item(item)
    tools = [word(tool, "name") for tool in map(table, listed(raw.get("tools")) or ()) if tool]
    said = {"server": word(raw, "server_label"), "tools": [name for name in tools if name]}
    sdk.tell.fact("tool.catalog.resolved", said)


def _quiet(sdk: OpenAiAgents, item: dict[str, Any]) -> None:
    """Says nothing that another event does not say."""
    del sdk, item


def _raw_item(item: dict[str, Any]) -> dict[str, Any]:
    return table(item.get("raw_item")) or {}


def _agent_name(item: dict[str, Any], field: str) -> str:
    return word(table(item.get(field)) or {}, "name") or "unknown"


_EVENTS: Final = {
    "agent_updated_stream_event": _agent,
    "raw_response_event": _response,
    "run_item_stream_event": _run_item,
}
_RUN_ITEMS: Final = {
    "message_output_created": _message_created,
    "reasoning_item_created": _quiet,
    "tool_called": _tool_called,
    "tool_output": _tool_output,
    "tool_search_called": _tool_called,
    "tool_search_output_created": _tool_output,
    "handoff_requested": _handoff_requested,
    "handoff_occured": _handoff_done,
    "mcp_approval_requested": _mcp_ask,
    "mcp_approval_response": _mcp_answer,
    "mcp_list_tools": _mcp_tools,
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
    lacks=("failed tools", "what an agent does that is used as a tool", "ids of events"),
)
