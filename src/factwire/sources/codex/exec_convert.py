"""Codex, as `codex exec --json` prints it: one object a line, an item at a time.

It tells less than the app server does: no deltas, no approvals, no reasoning but summaries. Usage
is cumulative over the thread. An `error` item is a remark and not the end; the end of a turn is
`turn.completed` or `turn.failed`, and a bare `error` is why a turn failed that nothing else ends.
"""

from typing import Any, Final

import msgspec

from factwire.facts.json_values import object_at, objects_of, text_at, texts_of
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.source_registry import Source

_CHANGES: Final = {"add": "created", "delete": "deleted", "update": "modified"}
_ENDED_AGENTS: Final = {
    "completed": "subagent.completed",
    "shutdown": "subagent.completed",
    "interrupted": "subagent.failed",
    "errored": "subagent.failed",
    "not_found": "subagent.failed",
}


class CodexExec:
    """Converts one thread. Where `wants_structure`, its answer is JSON by a schema."""

    def __init__(self, builder: FactBuilder) -> None:
        self.builder = builder
        self.used: dict[str, int] | None = {}
        self.error: str | None = None
        self.wants_structure = False
        self.answer: str | None = None

    def take(self, item: dict[str, Any]) -> None:
        kind = text_at(item, "type") or ""
        handle = _EVENTS.get(kind)
        if handle is None:
            self.builder.warn_unknown(kind, item)
        else:
            handle(self, item)

    def finish(self) -> None:
        """A turn that ends with an error and without a word about itself has failed by it."""
        error, self.error = self.error, None
        if error is not None and self.builder.is_open:
            self.builder.fail_turn("provider_error", error)


def read_structure(answer: str | None) -> Any:
    """The last answer of a turn that was given a schema for it: that is JSON, and no prose."""
    try:
        return None if answer is None else msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return None


def _on_thread(codex: "CodexExec", item: dict[str, Any]) -> None:
    codex.builder.set_ids(session_id=text_at(item, "thread_id"))


def _on_turn(codex: "CodexExec", item: dict[str, Any]) -> None:
    del item
    codex.error = None
    codex.builder.begin_turn()


def _on_turn_completed(codex: "CodexExec", item: dict[str, Any]) -> None:
    _note_usage(codex, object_at(item.get("usage")) or {})
    codex.error = None
    structure = read_structure(codex.answer) if codex.wants_structure else None
    codex.builder.complete_turn(structuredOutput=structure)


def _on_turn_failed(codex: "CodexExec", item: dict[str, Any]) -> None:
    error, codex.error = object_at(item.get("error")) or {}, None
    codex.builder.fail_turn("provider_error", text_at(error, "message") or "Codex failed")


def _on_error(codex: "CodexExec", item: dict[str, Any]) -> None:
    codex.error = text_at(item, "message") or "Codex stopped with an error"
    codex.builder.add_fact("runtime.error", {"code": "provider_error", "message": codex.error})


def _note_usage(codex: "CodexExec", usage: dict[str, Any]) -> None:
    """What this turn used: the sum so far, less the sum before it, if that is known."""
    sums = {name: value for name, value in usage.items() if type(value) is int}
    before, codex.used = codex.used, sums
    if before is None:
        return
    spent = {name: value - before.get(name, 0) for name, value in sums.items()}
    codex.builder.usage = {
        "inputTokens": spent.get("input_tokens", 0),
        "outputTokens": spent.get("output_tokens", 0),
    }


def _on_item(codex: "CodexExec", event: dict[str, Any]) -> None:
    item = object_at(event.get("item")) or {}
    kind, item_id = text_at(item, "type") or "", text_at(item, "id") or ""
    ended = event.get("type") == "item.completed"
    handle = _ITEMS.get(kind)
    if handle is None:
        codex.builder.warn_unknown(f"item {kind}", event)
    else:
        handle(codex, item_id, item, ended=ended)


def _on_message(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    if ended:
        codex.answer = text_at(item, "text") or ""
        codex.builder.end_text(item_id, codex.answer)


def _on_reasoning(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    if ended:
        codex.builder.add_reasoning_summary(item_id, text_at(item, "text") or "")


def _on_command(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    command = text_at(item, "command")
    codex.builder.start_tool(item_id, "command_execution", {"command": command})
    if not ended:
        return
    output, exit_code = text_at(item, "aggregated_output"), item.get("exit_code")
    code = exit_code if type(exit_code) is int else None
    if text_at(item, "status") == "completed" and code in (0, None):
        codex.builder.complete_tool(item_id, output, exitCode=code)
    else:
        category = "permission_denied" if text_at(item, "status") == "declined" else "nonzero_exit"
        codex.builder.fail_tool(
            item_id, category, f"exit code {code}", exitCode=code, output=output
        )


def _on_files(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    changes = objects_of(item.get("changes"))
    codex.builder.start_tool(item_id, "file_change", {"changes": changes})
    if not ended:
        return
    if text_at(item, "status") != "completed":
        codex.builder.fail_tool(item_id, "patch_failed", "the changes were not applied")
        return
    for change in changes:
        path = text_at(change, "path") or "unknown"
        payload = {"path": path, "change": _CHANGES.get(text_at(change, "kind") or "", "modified")}
        codex.builder.add_fact(
            "file.changed", payload, tool_call_id=item_id, artifact_id=f"file:{path}"
        )
    codex.builder.complete_tool(item_id, summary=f"{len(changes)} files changed")


def _on_mcp(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    name = f"{text_at(item, 'server') or 'mcp'}.{text_at(item, 'tool') or 'unknown'}"
    codex.builder.start_tool(item_id, name, item.get("arguments"))
    if not ended:
        return
    error = object_at(item.get("error"))
    if error is not None or text_at(item, "status") == "failed":
        codex.builder.fail_tool(item_id, "tool_error", text_at(error or {}, "message") or "failed")
    else:
        codex.builder.complete_tool(item_id, item.get("result"))


def _on_search(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    codex.builder.start_tool(item_id, "web_search", {"query": text_at(item, "query")})
    if ended:
        codex.builder.complete_tool(item_id)


def _on_todo(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    steps = objects_of(item.get("items"))
    event_class = "plan.final" if ended else "plan.delta"
    text = "\n".join(
        f"[{'x' if step.get('completed') else ' '}] {text_at(step, 'text') or ''}" for step in steps
    )
    codex.builder.add_fact(event_class, {"text": text, "planId": item_id}, part_id=item_id)


def _on_remark(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    if ended:
        message = text_at(item, "message") or "Codex sent a notice"
        codex.builder.add_fact("runtime.warning", {"code": item_id, "message": message})


def _on_collab(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    """A call to other agents, who work on threads of their own that are not printed."""
    name, threads = text_at(item, "tool") or "collab", texts_of(item.get("receiver_thread_ids"))
    codex.builder.start_tool(
        item_id, name, {"prompt": text_at(item, "prompt"), "receiverThreadIds": threads}
    )
    if not ended:
        return
    if name == "spawn_agent":
        for thread in threads:
            about = {"objective": text_at(item, "prompt"), "toolCallId": item_id}
            codex.builder.start_subagent(thread, task_id=thread, **about)
    if text_at(item, "status") == "failed":
        codex.builder.fail_tool(item_id, "tool_error", "the call to the other agent failed")
    else:
        codex.builder.complete_tool(item_id, item.get("agents_states"))
    for thread, state in (object_at(item.get("agents_states")) or {}).items():
        ending = _ENDED_AGENTS.get(text_at(object_at(state) or {}, "status") or "")
        if ending is not None:
            message = text_at(object_at(state) or {}, "message")
            codex.builder.end_subagent(thread, ending, message=message)


_EVENTS: Final = {
    "thread.started": _on_thread,
    "turn.started": _on_turn,
    "turn.completed": _on_turn_completed,
    "turn.failed": _on_turn_failed,
    "error": _on_error,
    "item.started": _on_item,
    "item.updated": _on_item,
    "item.completed": _on_item,
}
_ITEMS: Final = {
    "agent_message": _on_message,
    "reasoning": _on_reasoning,
    "command_execution": _on_command,
    "file_change": _on_files,
    "mcp_tool_call": _on_mcp,
    "web_search": _on_search,
    "todo_list": _on_todo,
    "error": _on_remark,
    "collab_tool_call": _on_collab,
}

SOURCE: Final = Source(
    name="codex-exec",
    title="Codex (exec --json)",
    framing="lines",
    versions="0.163",
    converter=CodexExec,
    maps={
        "thread.started": "ids",
        "turn.started": "turn.submitted, turn.started",
        "turn.completed": "metrics.changed, turn.completed",
        "turn.failed": "turn.failed",
        "error": "runtime.error, turn.failed where nothing else ends the turn",
        "agent_message": "model.completed",
        "reasoning": "reasoning.summary",
        "command_execution": "tool.started, tool.result or tool.failed",
        "file_change": "tool.*, file.changed",
        "mcp_tool_call, web_search": "tool.*",
        "collab_tool_call": "tool.*, subagent.*",
        "todo_list": "plan.delta, plan.final",
        "error item": "runtime.warning",
    },
    lacks=("text deltas", "approvals", "diffs", "times", "the prompt"),
)
