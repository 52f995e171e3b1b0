"""Structured parts of A2A messages and artifacts: what a remote agent did besides speaking.

A2A has no word for a call of a tool or for usage; Google's ADK puts them into `data` parts and
metadata whose names begin with `adk_`. Data that nobody knows is kept as an artifact.
"""

from typing import Any, Final

import msgspec

from factwire.facts.json_values import object_at, objects_of, text_at, whole_number_at
from factwire.sources.kit.fact_builder import FactBuilder

_CALLS: Final = frozenset({"function_call", "tool_call"})
_RESULTS: Final = frozenset({"function_response", "tool_response"})

_COUNTS: Final = {
    "inputTokens": ("promptTokenCount", "prompt_token_count"),
    "outputTokens": ("candidatesTokenCount", "candidates_token_count"),
    "totalTokens": ("totalTokenCount", "total_token_count"),
    "reasoningTokens": ("thoughtsTokenCount", "thoughts_token_count"),
    "cacheReadTokens": ("cachedContentTokenCount", "cached_content_token_count"),
}


class DataParts:
    """The structured parts of one turn; what is sent again, in a message and in the artifact of it,
    is told once.
    """

    def __init__(self, builder: FactBuilder) -> None:
        self._builder = builder
        self._called: set[str] = set()
        self._counted: set[str] = set()

    def reset(self) -> None:
        """Another turn begins."""
        self._called.clear()
        self._counted.clear()

    def take_calls(self, task_id: str | None, parts: object) -> list[dict[str, Any]]:
        """Tell the calls and results among parts; the other parts with data are returned."""
        others: list[dict[str, Any]] = []
        for part in objects_of(parts):
            data = object_at(part.get("data"))
            kind = part_type(part)
            if data is not None and kind in _CALLS:
                self._start_call(task_id, data)
            elif data is not None and kind in _RESULTS:
                self._end_call(task_id, data)
            elif part.get("data") is not None:
                others.append(part)
        return others

    def keep_data(self, task_id: str | None, parts: list[dict[str, Any]]) -> None:
        """Data in a message, which nobody would see otherwise."""
        for part in parts:
            ref = self._builder.keep(msgspec.json.encode(part["data"]))
            payload = {"kind": "data", "title": part_type(part) or "data", "contentRef": ref}
            artifact_id = f"data:{ref.rpartition(':')[2][:16]}"
            ids = {"artifact_id": artifact_id, "ref_ids": (ref,)}
            self._builder.add_subagent_fact(task_id, "artifact.changed", payload, **ids)

    def take_usage(self, task_id: str | None, holder: dict[str, Any]) -> None:
        """What a request to the model used; pieces of an answer repeat it."""
        metadata = object_at(holder.get("metadata")) or {}
        usage = object_at(metadata.get("adk_usage_metadata")) or {}
        event = text_at(metadata, "adk_event_id")
        payload = {
            name: count
            for name, names in _COUNTS.items()
            if (count := whole_number_at(usage, *names)) is not None
        }
        if not payload or metadata.get("adk_partial") is True or event in self._counted:
            return
        if event is not None:
            self._counted.add(event)
        self._builder.add_subagent_fact(task_id, "cost.recorded", payload)

    def _start_call(self, task_id: str | None, data: dict[str, Any]) -> None:
        call_id = text_at(data, "id") or text_at(data, "name") or "call"
        if call_id not in self._called:
            self._called.add(call_id)
            name, args = text_at(data, "name"), data.get("args")
            self._builder.start_tool(call_id, name, args, subagent_id=task_id)

    def _end_call(self, task_id: str | None, data: dict[str, Any]) -> None:
        self._start_call(task_id, data)
        call_id = text_at(data, "id") or text_at(data, "name") or "call"
        if call_id in self._builder.tools:
            self._builder.complete_tool(call_id, data.get("response"))


def part_type(part: dict[str, Any]) -> str | None:
    """What ADK says that a part is."""
    return text_at(object_at(part.get("metadata")) or {}, "adk_type")


def is_thought(part: dict[str, Any]) -> bool:
    return (object_at(part.get("metadata")) or {}).get("adk_thought") is True
