"""Codex, as `codex exec --json` prints it: one object a line, an item at a time.

It tells less than the app server does: no deltas, no approvals, no reasoning but summaries. Usage
is cumulative over the thread. An `error` item is a remark and not the end; the end of a turn is
`turn.completed` or `turn.failed`, and a bare `error` is why a turn failed that nothing else ends.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word, words
from factwire.sources.source import Source
from factwire.sources.telling import Telling

_CHANGES: Final = {"add": "created", "delete": "deleted", "update": "modified"}
_ENDED_AGENTS: Final = {
    "completed": "subagent.completed",
    "shutdown": "subagent.completed",
    "interrupted": "subagent.failed",
    "errored": "subagent.failed",
    "not_found": "subagent.failed",
}


class CodexExec:
    """Converts one thread."""

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.used: dict[str, int] | None = {}
        self.error: str | None = None

    def take(self, item: dict[str, Any]) -> None:
        kind = word(item, "type") or ""
        handle = _EVENTS.get(kind)
        if handle is None:
            self.tell.unknown(kind, item)
        else:
            handle(self, item)

    def finish(self) -> None:
        """A turn that ends with an error and without a word about itself has failed by it."""
        error, self.error = self.error, None
        if error is not None and self.tell.is_open:
            self.tell.fail("provider_error", error)


def _thread(codex: "CodexExec", item: dict[str, Any]) -> None:
    codex.tell.known(session_id=word(item, "thread_id"))


def _turn(codex: "CodexExec", item: dict[str, Any]) -> None:
    del item
    codex.error = None
    codex.tell.begin()


def _turn_completed(codex: "CodexExec", item: dict[str, Any]) -> None:
    _note_usage(codex, table(item.get("usage")) or {})
    codex.error = None
    codex.tell.complete()


def _turn_failed(codex: "CodexExec", item: dict[str, Any]) -> None:
    error, codex.error = table(item.get("error")) or {}, None
    codex.tell.fail("provider_error", word(error, "message") or "Codex failed")


def _error(codex: "CodexExec", item: dict[str, Any]) -> None:
    codex.error = word(item, "message") or "Codex stopped with an error"
    codex.tell.fact("runtime.error", {"code": "provider_error", "message": codex.error})


def _note_usage(codex: "CodexExec", usage: dict[str, Any]) -> None:
    """What this turn used: the sum so far, less the sum before it, if that is known."""
    sums = {name: value for name, value in usage.items() if type(value) is int}
    before, codex.used = codex.used, sums
    if before is None:
        return
    spent = {name: value - before.get(name, 0) for name, value in sums.items()}
    codex.tell.usage = {
        "inputTokens": spent.get("input_tokens", 0),
        "outputTokens": spent.get("output_tokens", 0),
    }


def _item(codex: "CodexExec", event: dict[str, Any]) -> None:
    item = table(event.get("item")) or {}
    kind, item_id = word(item, "type") or "", word(item, "id") or ""
    ended = event.get("type") == "item.completed"
    handle = _ITEMS.get(kind)
    if handle is None:
        codex.tell.unknown(f"item {kind}", event)
    else:
        handle(codex, item_id, item, ended=ended)


def _message(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    if ended:
        codex.tell.text_end(item_id, word(item, "text") or "")


def _reasoning(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    if ended:
        codex.tell.reasoning_summary(item_id, word(item, "text") or "")


def _command(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    command = word(item, "command")
    codex.tell.tool(item_id, "command_execution", {"command": command})
    if not ended:
        return
    output, given = word(item, "aggregated_output"), item.get("exit_code")
    code = given if type(given) is int else None
    if word(item, "status") == "completed" and code in (0, None):
        codex.tell.tool_result(item_id, output, exitCode=code)
    else:
        category = "permission_denied" if word(item, "status") == "declined" else "nonzero_exit"
        codex.tell.tool_failed(item_id, category, f"exit code {code}", exitCode=code, output=output)


def _files(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    changes = [each for each in map(table, listed(item.get("changes")) or ()) if each]
    codex.tell.tool(item_id, "file_change", {"changes": changes})
    if not ended:
        return
    if word(item, "status") != "completed":
        codex.tell.tool_failed(item_id, "patch_failed", "the changes were not applied")
        return
    for change in changes:
        path = word(change, "path") or "unknown"
        said = {"path": path, "change": _CHANGES.get(word(change, "kind") or "", "modified")}
        codex.tell.fact("file.changed", said, tool_call_id=item_id, artifact_id=f"file:{path}")
    codex.tell.tool_result(item_id, summary=f"{len(changes)} files changed")


def _mcp(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    name = f"{word(item, 'server') or 'mcp'}.{word(item, 'tool') or 'unknown'}"
    codex.tell.tool(item_id, name, item.get("arguments"))
    if not ended:
        return
    error = table(item.get("error"))
    if error is not None or word(item, "status") == "failed":
        codex.tell.tool_failed(item_id, "tool_error", word(error or {}, "message") or "failed")
    else:
        codex.tell.tool_result(item_id, item.get("result"))


def _search(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    codex.tell.tool(item_id, "web_search", {"query": word(item, "query")})
    if ended:
        codex.tell.tool_result(item_id)


def _todo(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    steps = [each for each in map(table, listed(item.get("items")) or ()) if each]
    event_class = "plan.final" if ended else "plan.delta"
    text = "\n".join(
        f"[{'x' if step.get('completed') else ' '}] {word(step, 'text') or ''}" for step in steps
    )
    codex.tell.fact(event_class, {"text": text, "planId": item_id}, part_id=item_id)


def _remark(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    if ended:
        message = word(item, "message") or "Codex remarked something"
        codex.tell.fact("runtime.warning", {"code": item_id, "message": message})


def _collab(codex: "CodexExec", item_id: str, item: dict[str, Any], *, ended: bool) -> None:
    """A call to other agents, who work on threads of their own that are not printed."""
    name, threads = word(item, "tool") or "collab", words(item.get("receiver_thread_ids"))
    codex.tell.tool(item_id, name, {"prompt": word(item, "prompt"), "receiverThreadIds": threads})
    if not ended:
        return
    if name == "spawn_agent":
        for thread in threads:
            about = {"objective": word(item, "prompt"), "toolCallId": item_id}
            codex.tell.subagent(thread, task_id=thread, **about)
    if word(item, "status") == "failed":
        codex.tell.tool_failed(item_id, "tool_error", "the call to the other agent failed")
    else:
        codex.tell.tool_result(item_id, item.get("agents_states"))
    for thread, state in (table(item.get("agents_states")) or {}).items():
        ending = _ENDED_AGENTS.get(word(table(state) or {}, "status") or "")
        if ending is not None:
            message = word(table(state) or {}, "message")
            codex.tell.subagent_end(thread, ending, message=message)


_EVENTS: Final = {
    "thread.started": _thread,
    "turn.started": _turn,
    "turn.completed": _turn_completed,
    "turn.failed": _turn_failed,
    "error": _error,
    "item.started": _item,
    "item.updated": _item,
    "item.completed": _item,
}
_ITEMS: Final = {
    "agent_message": _message,
    "reasoning": _reasoning,
    "command_execution": _command,
    "file_change": _files,
    "mcp_tool_call": _mcp,
    "web_search": _search,
    "todo_list": _todo,
    "error": _remark,
    "collab_tool_call": _collab,
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
