"""LangGraph: `stream()` of a graph, each chunk as `{ns, mode, data}`.

A node may run many times, so a task's id is its identity and a name is only its title. A namespace
is the way to a subgraph, `node:task` after `node:task`; what comes from inside is told of the agent
that works on that task. A chunk says whatever its mode says, so the same thing arrives more than
once where several modes were recorded, and is told once. The stream has no end of its own.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word, words
from factwire.sources.langchain_messages import Messages
from factwire.sources.recorded_runs import LINES, RecordedRun
from factwire.sources.source import Source
from factwire.sources.telling import Telling

_INTERRUPT: Final = "__interrupt__"
_CUT: Final = {"failureCategory": "interrupted", "message": "the run ended first"}


class LangGraph:
    """Converts the runs of one recording."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.run = RecordedRun(telling, self.ask, self.close)
        self.messages = Messages(telling)
        self.tasks: dict[str, str | None] = {}

    def take(self, item: dict[str, Any]) -> None:
        if self.run.take(item):
            return
        mode, data = word(item, "mode") or "", item.get("data")
        if mode == "debug":
            mode, data = _debugged(table(data) or {})
        handle = _MODES.get(mode)
        if handle is None:
            self.tell.unknown(f"mode {mode}", item)
            return
        handle(self, self.speaker(words(item.get("ns"))), data)

    def finish(self) -> None:
        self.run.finish()

    def speaker(self, namespace: list[str]) -> str | None:
        """The subagent of a namespace; each level of it begins when it is first seen."""
        parent = None
        for level in namespace:
            node, _, task_id = level.partition(":")
            task_id = task_id or node
            if task_id not in self.tell.subagents:
                self._begin_subgraph(task_id, node, parent)
            parent = task_id
        return parent

    def _begin_subgraph(self, task_id: str, node: str, parent: str | None) -> None:
        self.tell.subagent(task_id, task_id=task_id, title=node, name=node, parentTaskId=parent)
        self.tasks.pop(task_id, None)
        said = {"title": node}
        self.tell.fact("task.started", said, task_id=task_id, subagent_id=task_id)

    def ask(self, interrupt: dict[str, Any], subagent_id: str | None = None) -> None:
        """A node waits for a value; whatever it gave along is for whoever answers."""
        value = interrupt.get("value")
        said = {
            "actionType": _action_type(value),
            "prompt": value if isinstance(value, str) else None,
            "request": None if isinstance(value, str) else value,
            "responseSchema": table(interrupt.get("response_schema")),
        }
        self.tell.ask(word(interrupt, "id") or "interrupt", said, subagent_id=subagent_id)

    def close(self, outcome: str) -> None:
        """Tasks that are open when their turn ends, ended as it did."""
        if not self.tell.is_open or self.run.is_waiting:
            self.tasks.clear()
            return
        said = {} if outcome == "completed" else _CUT
        for subagent_id in reversed(list(self.tell.subagents)):
            self.tell.subagent_end(subagent_id, f"subagent.{outcome}", **said)
        for task_id in list(self.tasks):
            self.end_task(task_id, outcome, **said)

    def end_task(self, task_id: str, outcome: str, **said: Any) -> None:
        """A task is over, and so is the subgraph that worked on it."""
        if task_id in self.tell.subagents:
            self.tell.subagent_end(task_id, f"subagent.{outcome}", **said)
        elif task_id in self.tasks:
            speaker = self.tasks.pop(task_id)
            self.tell.fact(f"task.{outcome}", said, task_id=task_id, subagent_id=speaker)


def _action_type(value: object) -> str:
    """LangChain's middleware for people in the loop asks about calls; anybody else wants a value
    whose meaning only the application knows.
    """
    asks = "action_requests" in (table(value) or {})
    return "tool_approval" if asks else "structured_input"


def _tasks(graph: LangGraph, speaker: str | None, data: object) -> None:
    task = table(data) or {}
    task_id, name = word(task, "id") or "task", word(task, "name")
    if "result" not in task and "error" not in task:
        _task_started(graph, speaker, task_id, name)
        return
    interrupts = [each for each in map(table, listed(task.get("interrupts")) or ()) if each]
    error = task.get("error")
    for interrupt in interrupts:
        graph.ask(interrupt, speaker)
    if error:
        message = error if isinstance(error, str) else "the node failed"
        graph.end_task(task_id, "failed", failureCategory="node_error", message=message)
    elif interrupts:
        said = {"title": name, "reason": "input"}
        graph.tell.fact("task.waiting", said, task_id=task_id, subagent_id=speaker)
    else:
        graph.end_task(task_id, "completed")


def _task_started(graph: LangGraph, speaker: str | None, task_id: str, name: str | None) -> None:
    """A task that is known and starts once more goes on after an interrupt."""
    known = task_id in graph.tasks or task_id in graph.tell.subagents
    said = {"title": name, "parentTaskId": speaker}
    if not known:
        graph.tasks[task_id] = speaker
    event_class = "task.resumed" if known else "task.started"
    graph.tell.fact(
        event_class,
        {key: value for key, value in said.items() if value},
        task_id=task_id,
        subagent_id=speaker,
    )


def _updates(graph: LangGraph, speaker: str | None, data: object) -> None:
    for node, update in (table(data) or {}).items():
        if node == _INTERRUPT:
            for interrupt in map(table, listed(update) or ()):
                graph.ask(interrupt or {}, speaker)
        else:
            said = {"status": "running", "phase": node}
            graph.tell.fact("run.status", said, subagent_id=speaker)
            _stored(graph, speaker, update)


def _stored(graph: LangGraph, speaker: str | None, update: object) -> None:
    """Messages that a node wrote into the state; they are news where none were streamed."""
    for written in map(table, listed(update) or [update]):
        held = (written or {}).get("messages")
        for message in map(table, listed(held) or [held]):
            if message:
                graph.messages.take(message, speaker)


def _messages(graph: LangGraph, speaker: str | None, data: object) -> None:
    message = table(next(iter(listed(data) or ()), None))
    if message is None:
        graph.tell.unknown("a message that is none", data)
    else:
        graph.messages.take(message, speaker)


def _values(graph: LangGraph, speaker: str | None, data: object) -> None:
    """The state of the graph; a subgraph's is its own affair."""
    if speaker is None:
        state = {key: value for key, value in (table(data) or {}).items() if key != _INTERRUPT}
        graph.tell.fact("state.snapshot", {"state": state})


def _checkpoint(graph: LangGraph, speaker: str | None, data: object) -> None:
    checkpoint = table(data) or {}
    config = table((table(checkpoint.get("config")) or {}).get("configurable")) or {}
    metadata = table(checkpoint.get("metadata")) or {}
    said = {
        "status": "running",
        "checkpointId": word(config, "checkpoint_id"),
        "source": word(metadata, "source"),
        "step": metadata.get("step"),
    }
    known = {key: value for key, value in said.items() if value is not None}
    graph.tell.fact("run.status", known, subagent_id=speaker)


def _custom(graph: LangGraph, speaker: str | None, data: object) -> None:
    """Whatever a node writes; nobody but the application knows what it means."""
    del speaker
    graph.tell.warn("raw_event", "a node wrote something of its own", data)


def _debugged(data: dict[str, Any]) -> tuple[str, object]:
    """A chunk of the debug mode, as the mode that says the same."""
    return _DEBUG.get(word(data, "type") or "", "debug"), data.get("payload")


_DEBUG: Final = {"task": "tasks", "task_result": "tasks", "checkpoint": "checkpoints"}
_MODES: Final = {
    "updates": _updates,
    "messages": _messages,
    "tasks": _tasks,
    "checkpoints": _checkpoint,
    "values": _values,
    "custom": _custom,
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
