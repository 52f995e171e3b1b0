"""Chunks of LangGraph as the lines that a recorder writes of them.

A task carries the whole state that it begins with and ends with. That says nothing new, and would
make each step cost as much as everything before it, so it is left out.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from factwire.projection.reading import listed, table
from factwire.sources.live.sdk_values import plain

MODES: Final = ("updates", "messages", "tasks", "custom")
"""What is needed to tell all that a graph does."""

_ENDED: Final = ("result", "error")
_TYPES: Final = {"assistant": "ai", "user": "human"}


def chunk_line(namespace: Iterable[str], mode: str, data: Any) -> dict[str, Any]:
    """One chunk of a stream with several modes and subgraphs."""
    told = _task(data) if mode == "tasks" else plain(data)
    return {"ns": list(namespace), "mode": mode, "data": told}


def started_line(given: object) -> dict[str, Any]:
    """The input of a graph; its messages as messages, however they were written."""
    told = plain(given)
    state = table(told)
    if state is not None and "messages" in state:
        told = {**state, "messages": messages_of(state["messages"])}
    return {"type": "run.started", "input": told}


def messages_of(written: object) -> list[Any]:
    """Messages in the short forms that LangChain takes, written out: `("user", "…")`, a text, or
    `{"role": …}`.
    """
    many = listed(written)
    return [_message(each) for each in ([written] if many is None or _is_pair(many) else many)]


def _message(written: object) -> Any:
    pair = listed(written)
    if pair is not None and _is_pair(pair):
        written = {"role": pair[0], "content": pair[1]}
    elif isinstance(written, str):
        written = {"role": "user", "content": written}
    message = table(written)
    if message is None or "type" in message:
        return written
    role = message.get("role")
    return {**message, "type": _TYPES.get(role, role) if isinstance(role, str) else None}


def _is_pair(value: Sequence[object]) -> bool:
    return len(value) == len(("role", "content")) and all(isinstance(each, str) for each in value)


def interrupted_line(interrupts: Iterable[Any]) -> dict[str, Any]:
    return {"type": "run.interrupted", "interruptions": [plain(each) for each in interrupts]}


def completed_line(output: object = None) -> dict[str, Any]:
    told = {} if output is None else {"final_output": plain(output)}
    return {"type": "run.completed", **told}


def _task(data: object) -> dict[str, Any]:
    given = table(data) or {}
    names = ("id", "name", "error", "interrupts")
    task = {name: plain(given[name]) for name in names if name in given}
    return {**task, "result": {}} if any(name in given for name in _ENDED) else task
