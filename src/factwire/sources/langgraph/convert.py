"""LangGraph: the chunks of a graph's stream, with its messages, as facts, and as the lines that
a recorder writes of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from factwire.facts.json_values import list_at, object_at, objects_of, text_at, texts_of
from factwire.sources.kit.fact_builder import FactBuilder
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


class LangChainMessages:
    """Tells messages; `whole_ids` has those that are whole, `calls` the pieces of open calls."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.whole_ids: set[str] = set()
        self.calls: dict[tuple[str, int], tuple[str, list[str]]] = {}

    def take(self, message: dict[str, Any], subagent_id: str | None) -> None:
        """Tell a message or a chunk; what a person or a system prompt says is no news."""
        handle = _KINDS.get(text_at(message, "type") or "")
        if handle is not None:
            handle(self, message, subagent_id)


def _on_chunk(messages: LangChainMessages, chunk: dict[str, Any], subagent_id: str | None) -> None:
    message_id = text_at(chunk, "id") or "message"
    for block in map(object_at, list_at(chunk.get("content")) or ()):
        if block and text_at(block, "type") in _REASONING:
            delta = text_at(block, "reasoning", "thinking", "text") or ""
            messages.builder.add_reasoning(message_id, delta, subagent_id=subagent_id)
    delta = _message_text(chunk)
    if delta:
        messages.builder.add_text(message_id, delta, subagent_id=subagent_id)
    for call in map(object_at, list_at(chunk.get("tool_call_chunks")) or ()):
        _call_chunk(messages, message_id, call or {}, subagent_id)
    note_usage(messages.builder, chunk.get("usage_metadata"))
    if text_at(chunk, "chunk_position") == "last":
        _end_message(messages, message_id)


def _call_chunk(
    messages: LangChainMessages, message_id: str, call: dict[str, Any], subagent_id: str | None
) -> None:
    """A piece of a call; only the first has its id."""
    key = (message_id, read_index(call, "index"))
    call_id = text_at(call, "id")
    if call_id is not None:
        messages.calls[key] = (call_id, [])
        messages.builder.start_tool(call_id, text_at(call, "name"), subagent_id=subagent_id)
    known, delta = messages.calls.get(key), text_at(call, "args")
    if known is not None and delta:
        known[1].append(delta)
        messages.builder.add_tool_args(known[0], delta)


def _end_message(messages: LangChainMessages, message_id: str) -> None:
    messages.whole_ids.add(message_id)
    if message_id in messages.builder.messages:
        messages.builder.end_text(message_id)
    for key in [key for key in messages.calls if key[0] == message_id]:
        call_id, pieces = messages.calls.pop(key)
        if call_id in messages.builder.tools:
            messages.builder.start_tool(call_id, None, parse_arguments("".join(pieces)))


def _on_whole(
    messages: LangChainMessages, message: dict[str, Any], subagent_id: str | None
) -> None:
    message_id = text_at(message, "id") or "message"
    if message_id in messages.whole_ids:
        return
    is_news = message_id not in messages.builder.messages
    _end_message(messages, message_id)
    text = _message_text(message)
    if is_news:
        note_usage(messages.builder, message.get("usage_metadata"))
        if text:
            messages.builder.end_text(message_id, text, subagent_id=subagent_id)
    for call in map(object_at, list_at(message.get("tool_calls")) or ()):
        call_id = text_at(call or {}, "id")
        if call and call_id:
            messages.builder.start_tool(
                call_id, text_at(call, "name"), call.get("args"), subagent_id=subagent_id
            )


def _on_tool(messages: LangChainMessages, message: dict[str, Any], subagent_id: str | None) -> None:
    del subagent_id
    message_id, call_id = text_at(message, "id"), text_at(message, "tool_call_id") or "call"
    name = message_id or f"{call_id}:result"
    if name in messages.whole_ids:
        return
    messages.whole_ids.add(name)
    messages.builder.start_tool(call_id, text_at(message, "name"))
    if text_at(message, "status") == "error":
        reason = read_text(message.get("content")) or "the tool failed"
        messages.builder.fail_tool(call_id, "tool_error", reason)
    else:
        messages.builder.complete_tool(call_id, message.get("content"))


def _message_text(message: dict[str, Any]) -> str:
    """The text of a message, without its reasoning."""
    content = message.get("content")
    blocks = list_at(content)
    if blocks is None:
        return read_text(content)
    spoken = [
        block for block in blocks if text_at(object_at(block) or {}, "type") not in _REASONING
    ]
    return read_text(spoken)


_REASONING: Final = ("reasoning", "thinking")
_KINDS: Final = {"AIMessageChunk": _on_chunk, "ai": _on_whole, "tool": _on_tool}


_INTERRUPT: Final = "__interrupt__"
_CUT: Final = {"failureCategory": "interrupted", "message": "the run ended first"}


class LangGraph:
    """Converts the runs of one recording."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.run = RecordedRun(builder, self.ask_person, self.close_tasks)
        self.messages = LangChainMessages(builder)
        self.tasks: dict[str, str | None] = {}

    def take(self, item: dict[str, Any]) -> None:
        if self.run.take(item):
            return
        mode, data = text_at(item, "mode") or "", item.get("data")
        if mode == "debug":
            mode, data = _read_debug_event(object_at(data) or {})
        handle = _MODES.get(mode)
        if handle is None:
            self.builder.warn_unknown(f"mode {mode}", item)
            return
        handle(self, self.find_speaker(texts_of(item.get("ns")), data), data)

    def finish(self) -> None:
        self.run.finish()

    def find_speaker(self, namespace: list[str], data: object) -> str | None:
        """The subagent of a namespace; each level of it begins when it is first seen. The innermost
        is called as the agent that speaks there, where LangChain names it, or else as its node.
        """
        parent = None
        for level in namespace:
            node, _, task_id = level.partition(":")
            task_id = task_id or node
            if task_id not in self.builder.subagents:
                agent = _read_agent_name(data) if level == namespace[-1] else None
                self._begin_subgraph(task_id, agent or node, parent)
            parent = task_id
        return parent

    def _begin_subgraph(self, task_id: str, name: str, parent: str | None) -> None:
        self.builder.start_subagent(
            task_id, task_id=task_id, title=name, name=name, parentTaskId=parent
        )
        self.tasks.pop(task_id, None)
        payload = {"title": name}
        self.builder.add_fact("task.started", payload, task_id=task_id, subagent_id=task_id)

    def ask_person(self, interrupt: dict[str, Any], subagent_id: str | None = None) -> None:
        """A node waits for a value; whatever it gave along is for whoever answers."""
        value = interrupt.get("value")
        payload = {
            "actionType": _action_type(value),
            "prompt": value if isinstance(value, str) else None,
            "request": None if isinstance(value, str) else value,
            "responseSchema": object_at(interrupt.get("response_schema")),
        }
        self.builder.require_action(
            text_at(interrupt, "id") or "interrupt", payload, subagent_id=subagent_id
        )

    def close_tasks(self, outcome: str) -> None:
        """Tasks that are open when their turn ends, ended as it did."""
        if not self.builder.is_open or self.run.is_waiting:
            self.tasks.clear()
            return
        payload = {} if outcome == "completed" else _CUT
        for subagent_id in reversed(list(self.builder.subagents)):
            self.builder.end_subagent(subagent_id, f"subagent.{outcome}", **payload)
        for task_id in list(self.tasks):
            self.end_task(task_id, outcome, **payload)

    def end_task(self, task_id: str, outcome: str, **extra_fields: Any) -> None:
        """A task is over, and so is the subgraph that worked on it."""
        if task_id in self.builder.subagents:
            self.builder.end_subagent(task_id, f"subagent.{outcome}", **extra_fields)
        elif task_id in self.tasks:
            speaker = self.tasks.pop(task_id)
            self.builder.add_fact(
                f"task.{outcome}", extra_fields, task_id=task_id, subagent_id=speaker
            )


def _read_agent_name(data: object) -> str | None:
    """The name that an agent was created with, as tasks and messages of it have it."""
    holder = object_at(data)
    rows = list_at(data) or ()
    metadata = (
        holder.get("metadata") if holder is not None else (rows[1] if len(rows) > 1 else None)
    )
    return text_at(object_at(metadata) or {}, _AGENT_NAME)


_AGENT_NAME: Final = "lc_agent_name"


def _action_type(value: object) -> str:
    """LangChain's middleware for people in the loop asks about calls; anybody else wants a value
    whose meaning only the application knows.
    """
    asks = "action_requests" in (object_at(value) or {})
    return "tool_approval" if asks else "structured_input"


def _on_tasks(graph: LangGraph, speaker: str | None, data: object) -> None:
    task = object_at(data) or {}
    task_id, name = text_at(task, "id") or "task", text_at(task, "name")
    if "result" not in task and "error" not in task:
        _task_started(graph, speaker, task_id, name)
        return
    interrupts = objects_of(task.get("interrupts"))
    error = task.get("error")
    for interrupt in interrupts:
        graph.ask_person(interrupt, speaker)
    if error:
        message = error if isinstance(error, str) else "the node failed"
        graph.end_task(task_id, "failed", failureCategory="node_error", message=message)
    elif interrupts:
        payload = {"title": name, "reason": "input"}
        graph.builder.add_fact("task.waiting", payload, task_id=task_id, subagent_id=speaker)
    else:
        graph.end_task(task_id, "completed")


def _task_started(graph: LangGraph, speaker: str | None, task_id: str, name: str | None) -> None:
    """A task that is known and starts once more goes on after an interrupt."""
    known = task_id in graph.tasks or task_id in graph.builder.subagents
    payload = {"title": name, "parentTaskId": speaker}
    if not known:
        graph.tasks[task_id] = speaker
    event_class = "task.resumed" if known else "task.started"
    graph.builder.add_fact(
        event_class,
        {key: value for key, value in payload.items() if value},
        task_id=task_id,
        subagent_id=speaker,
    )


def _on_updates(graph: LangGraph, speaker: str | None, data: object) -> None:
    for node, update in (object_at(data) or {}).items():
        if node == _INTERRUPT:
            for interrupt in map(object_at, list_at(update) or ()):
                graph.ask_person(interrupt or {}, speaker)
        else:
            payload = {"status": "running", "phase": node}
            graph.builder.add_fact("run.status", payload, subagent_id=speaker)
            _add_written(graph, speaker, update)


def _add_written(graph: LangGraph, speaker: str | None, update: object) -> None:
    """Messages that a node wrote into the state; they are news where none were streamed."""
    for written in map(object_at, list_at(update) or [update]):
        held = (written or {}).get("messages")
        for message in map(object_at, list_at(held) or [held]):
            if message:
                graph.messages.take(message, speaker)


def _on_messages(graph: LangGraph, speaker: str | None, data: object) -> None:
    message = object_at(next(iter(list_at(data) or ()), None))
    if message is None:
        graph.builder.warn_unknown("an invalid message", data)
    else:
        graph.messages.take(message, speaker)


def _on_values(graph: LangGraph, speaker: str | None, data: object) -> None:
    """The state of the graph; a subgraph's is its own affair."""
    if speaker is None:
        state = {key: value for key, value in (object_at(data) or {}).items() if key != _INTERRUPT}
        graph.builder.add_fact("state.snapshot", {"state": state})


def _on_checkpoint(graph: LangGraph, speaker: str | None, data: object) -> None:
    checkpoint = object_at(data) or {}
    config = object_at((object_at(checkpoint.get("config")) or {}).get("configurable")) or {}
    metadata = object_at(checkpoint.get("metadata")) or {}
    payload = {
        "status": "running",
        "checkpointId": text_at(config, "checkpoint_id"),
        "source": text_at(metadata, "source"),
        "step": metadata.get("step"),
    }
    known = {key: value for key, value in payload.items() if value is not None}
    graph.builder.add_fact("run.status", known, subagent_id=speaker)


def _on_custom(graph: LangGraph, speaker: str | None, data: object) -> None:
    """Whatever a node writes; nobody but the application knows what it means."""
    del speaker
    graph.builder.warn("raw_event", "a node wrote custom data", data)


def _read_debug_event(data: dict[str, Any]) -> tuple[str, object]:
    """A chunk of the debug mode, as the mode that says the same."""
    return _DEBUG.get(text_at(data, "type") or "", "debug"), data.get("payload")


_DEBUG: Final = {"task": "tasks", "task_result": "tasks", "checkpoint": "checkpoints"}
_MODES: Final = {
    "updates": _on_updates,
    "messages": _on_messages,
    "tasks": _on_tasks,
    "checkpoints": _on_checkpoint,
    "values": _on_values,
    "custom": _on_custom,
}

SOURCE: Final = Source(
    name="langgraph",
    title="LangGraph",
    framing="lines",
    versions="1.2",
    converter=LangGraph,
    maps={
        **LINES,
        "tasks": "task.started, task.resumed, task.waiting, task.completed, task.failed",
        "a namespace": "task.created, subagent.*, and the subagentId of what is in it",
        "messages": "model.*, reasoning.delta, tool.*",
        "updates": "run.status; messages that were not streamed",
        "updates with an interrupt": "action.required",
        "values": "state.snapshot",
        "checkpoints": "run.status with the checkpoint's id",
        "debug": "as tasks and checkpoints",
        "custom": "runtime.warning with a ref",
    },
    lacks=("times", "the values of subgraphs", "which tool an interrupt is about"),
)


STREAM_MODES: Final = ("updates", "messages", "tasks", "custom")
"""What is needed to tell all that a graph does."""

_ENDED: Final = ("result", "error")
_TYPES: Final = {"assistant": "ai", "user": "human"}


def chunk_line(namespace: Iterable[str], mode: str, data: Any) -> dict[str, Any]:
    """One chunk of a stream with several modes and subgraphs."""
    content = _to_task(data) if mode == "tasks" else to_json(data)
    return {"ns": list(namespace), "mode": mode, "data": content}


def start_line(start: object) -> dict[str, Any]:
    """The input of a graph; its messages as messages, however they were written."""
    content = to_json(start)
    state = object_at(content)
    if state is not None and "messages" in state:
        content = {**state, "messages": messages_of(state["messages"])}
    return {"type": "run.started", "input": content}


def messages_of(written: object) -> list[Any]:
    """Messages in the short forms that LangChain takes, written out: `("user", "…")`, a text, or
    `{"role": …}`.
    """
    many = list_at(written)
    return [_to_message(each) for each in ([written] if many is None or _is_pair(many) else many)]


def _to_message(written: object) -> Any:
    pair = list_at(written)
    if pair is not None and _is_pair(pair):
        written = {"role": pair[0], "content": pair[1]}
    elif isinstance(written, str):
        written = {"role": "user", "content": written}
    message = object_at(written)
    if message is None or "type" in message:
        return written
    role = message.get("role")
    return {**message, "type": _TYPES.get(role, role) if isinstance(role, str) else None}


def _is_pair(value: Sequence[object]) -> bool:
    return len(value) == len(("role", "content")) and all(isinstance(each, str) for each in value)


def interruption_line(interrupts: Iterable[Any]) -> dict[str, Any]:
    return {"type": "run.interrupted", "interruptions": [to_json(each) for each in interrupts]}


def completion_line(output: object = None) -> dict[str, Any]:
    payload = {} if output is None else {"final_output": to_json(output)}
    return {"type": "run.completed", **payload}


def _to_task(data: object) -> dict[str, Any]:
    value = object_at(data) or {}
    names = ("id", "name", "error", "interrupts")
    task = {name: to_json(value[name]) for name in names if name in value}
    if (agent := _read_agent_name(value)) is not None:
        task["metadata"] = {_AGENT_NAME: agent}
    return {**task, "result": {}} if any(name in value for name in _ENDED) else task
