"""Events of the OpenAI Agents SDK as the lines that a recorder writes of them.

The SDK's events are objects; they are read by their attributes, so that whoever writes lines need
not import the SDK.
"""

from typing import Any, Final

from factwire.projection.reading import table
from factwire.sources.live.sdk_values import plain

_FIELDS: Final = ("type", "output", "title", "description", "tool_name")
_AGENTS: Final = ("agent", "source_agent", "target_agent")


def event_line(event: Any) -> dict[str, Any]:
    """One event of `stream_events()`."""
    kind = getattr(event, "type", None)
    if kind == "raw_response_event":
        return {"type": kind, "data": dumped(event.data)}
    if kind == "agent_updated_stream_event":
        return {"type": kind, "new_agent": _named(event.new_agent)}
    if kind == "run_item_stream_event":
        return {"type": kind, "name": event.name, "item": item_line(event.item)}
    return {"type": plain(kind), "event": plain(event)}


def item_line(item: Any) -> dict[str, Any]:
    """An item of a run: something said, called, handed over or waited for."""
    said = {name: plain(getattr(item, name, None)) for name in _FIELDS}
    agents = {name: _named(getattr(item, name)) for name in _AGENTS if hasattr(item, name)}
    known = {name: value for name, value in said.items() if value is not None}
    return {**known, **agents, "raw_item": dumped(item.raw_item)}


def completed_line(output: object) -> dict[str, Any]:
    return {"type": "run.completed", "final_output": plain(output)}


def interrupted_line(items: list[Any]) -> dict[str, Any]:
    return {"type": "run.interrupted", "interruptions": [item_line(item) for item in items]}


def call_of(item: Any) -> tuple[str, str, Any]:
    """The id, the tool and the arguments of a call that waits for approval."""
    raw = dumped(item.raw_item)
    call_id = raw.get("call_id") or raw.get("id") or "call"
    return str(call_id), str(item.tool_name or raw.get("name")), raw.get("arguments")


def dumped(value: Any) -> dict[str, Any]:
    """A model of the API without what it leaves open."""
    told = table(plain(value)) or {}
    return {name: each for name, each in told.items() if each is not None}


def _named(agent: Any) -> dict[str, Any]:
    return {"name": plain(getattr(agent, "name", None))}
