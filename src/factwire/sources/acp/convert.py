"""The Agent Client Protocol: both directions of a connection as facts.

Prompts are turns. What the agent requests of its client (permissions, input, files, terminals)
is answered in the other direction, under the id of the request.
"""

from typing import Any, Final

from factwire.facts.json_values import list_at, object_at, objects_of, text_at, texts_of
from factwire.sources.acp.session_updates import (
    AcpThread,
    block_text,
    content_text,
    read_exit_code,
    take_call,
    take_update,
)
from factwire.sources.kit.fact_builder import FactBuilder, OpenTool
from factwire.sources.kit.file_changes import add_file_change, diff_texts
from factwire.sources.source_registry import Source

Params = dict[str, Any]

_KINDS: Final = {
    "allow_once": "approved",
    "allow_always": "approved",
    "reject_once": "denied",
    "reject_always": "denied",
}


def ask_permission(thread: AcpThread, action_id: str, params: Params) -> None:
    """A call that nobody heard of yet begins with the question."""
    call = object_at(params.get("toolCall")) or {}
    call_id = text_at(call, "toolCallId") or "call"
    thread.note_proposals(objects_of(call.get("content")))
    if call_id not in thread.builder.tools and call_id not in thread.closed:
        take_call(thread, {**call, "status": "pending"})
    earlier = thread.calls.get(call_id)
    title = text_at(call, "title") or (earlier.title if earlier is not None else None)
    known = thread.builder.tools.get(call_id)
    payload = {
        "actionType": "tool_approval",
        "prompt": f"Allow {title}?" if title else "Allow this call?",
        "toolName": known.name if known is not None else None,
        "args": _describe_call(call, known),
        "detail": content_text(objects_of(call.get("content"))),
        "options": [
            {
                "id": text_at(row, "optionId"),
                "label": text_at(row, "name"),
                "kind": text_at(row, "kind"),
            }
            for row in _answer_options(params)
        ],
    }
    thread.builder.require_action(action_id, payload, tool_call_id=call_id)


def _describe_call(call: Params, known: OpenTool | None) -> Params | None:
    """Exactly what would be done: the input of the call, and the diffs that it comes with."""
    before = object_at(known.args) if known is not None else None
    rows = objects_of(call.get("content"))
    diffs = [row for row in rows if text_at(row, "type") == "diff"]
    changes = {"changes": diffs} if diffs else {}
    return {**(before or {}), **(object_at(call.get("rawInput")) or {}), **changes} or None


def ask_input(thread: AcpThread, action_id: str, params: Params) -> None:
    payload = {
        "actionType": "structured_input",
        "prompt": text_at(params, "message") or "the agent has a question",
        "responseSchema": object_at(params.get("requestedSchema")),
        "url": text_at(params, "url"),
    }
    thread.builder.require_action(action_id, payload, tool_call_id=text_at(params, "toolCallId"))


def answer_permission(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    outcome = object_at(result.get("outcome")) or {}
    chosen = text_at(outcome, "optionId")
    kinds = [
        text_at(row, "kind")
        for row in _answer_options(params)
        if text_at(row, "optionId") == chosen
    ]
    decision = _KINDS.get(kinds[0] or "") if kinds else None
    if text_at(outcome, "outcome") != "selected" or decision is None:
        thread.builder.cancel_action(action_id, "cancelled" if chosen is None else "not an option")
        return
    if decision == "denied":
        call = object_at(params.get("toolCall")) or {}
        thread.denied.add(text_at(call, "toolCallId") or "call")
    thread.builder.resolve_action(action_id, decision, response=chosen)


def answer_input(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del params
    action = text_at(result, "action")
    if action == "accept":
        thread.builder.resolve_action(
            action_id, "answered", response=object_at(result.get("content"))
        )
    elif action == "decline":
        thread.builder.resolve_action(action_id, "denied")
    else:
        thread.builder.cancel_action(action_id, "cancelled")


def on_file_read(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del action_id, result
    thread.builder.add_fact("file.read", {"path": text_at(params, "path") or "unknown"})


def on_file_written(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del action_id, result
    path = text_at(params, "path") or "unknown"
    before, after = thread.proposals.get(path, (None, None))
    is_proposed = after is not None and after == params.get("content")
    diff = diff_texts(path, before, after) if is_proposed else None
    add_file_change(thread.builder, path, "modified", diff)


def on_command_started(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del action_id
    command_id = text_at(result, "terminalId") or "terminal"
    if command_id in thread.commands:
        return
    line = " ".join([text_at(params, "command") or "", *texts_of(list_at(params.get("args")))])
    payload = {"commandId": command_id, "command": line, "cwd": text_at(params, "cwd")}
    thread.builder.add_fact("command.started", payload)
    thread.commands[command_id] = ""


def on_command_output(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    """All the output so far, kept behind a ref; and perhaps the end."""
    del action_id
    command_id, output = text_at(params, "terminalId") or "terminal", text_at(result, "output")
    written = thread.commands.get(command_id)
    if written is not None and output is not None and output != written:
        thread.commands[command_id] = output
        ref = thread.builder.keep(output.encode("utf-8", "replace"))
        payload = {"commandId": command_id, "outputRef": ref}
        thread.builder.add_fact("command.output", payload, ref_ids=(ref,))
    status = object_at(result.get("exitStatus"))
    if status is not None or command_id in thread.exits:
        thread.end_command(command_id, _exit_payload(status or {}))


def on_command_ended(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    """The output is often asked for only now, and a command has none after its end."""
    del action_id
    command_id = text_at(params, "terminalId") or "terminal"
    if thread.commands.get(command_id):
        thread.end_command(command_id, _exit_payload(result))
    elif command_id in thread.commands:
        thread.exits[command_id] = _exit_payload(result)


def on_terminal_released(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    """terminal/kill, terminal/release: whatever ran there does no more."""
    del action_id, result
    thread.end_command(text_at(params, "terminalId") or "terminal", {"status": "killed"})


def _exit_payload(status: Params) -> Params:
    code, signal = read_exit_code(status, "exitCode"), text_at(status, "signal")
    return {"status": "exited", "signal": signal, "exitCode": code}


def _answer_options(params: Params) -> list[Params]:
    return objects_of(params.get("options"))


ASKS: Final = {
    "session/request_permission": ask_permission,
    "elicitation/create": ask_input,
}
ANSWERS: Final = {
    "session/request_permission": answer_permission,
    "elicitation/create": answer_input,
    "fs/read_text_file": on_file_read,
    "fs/write_text_file": on_file_written,
    "terminal/create": on_command_started,
    "terminal/output": on_command_output,
    "terminal/wait_for_exit": on_command_ended,
    "terminal/kill": on_terminal_released,
    "terminal/release": on_terminal_released,
}


Message = dict[str, Any]
Request = tuple[str, Message]

_AUTHENTICATION: Final = -32000
_CANCELLED: Final = -32800
_LOADS: Final = ("session/load", "session/resume")
_OFFERS: Final = ("session/new", *_LOADS, "session/set_config_option")
_QUIET: Final = frozenset({"$/cancel_request", "elicitation/complete"})
_CLIENTS: Final = frozenset(
    {
        "authenticate",
        "initialize",
        "logout",
        "session/close",
        "session/delete",
        "session/fork",
        "session/list",
        "session/load",
        "session/new",
        "session/prompt",
        "session/resume",
        "session/set_config_option",
        "session/set_mode",
        "session/set_model",
    }
)
_OPEN_REQUESTS: Final = 10_000
"""Requests without a response that are remembered; a client that never answers costs no more."""


class Acp:
    """Converts one connection, as far as it is of one session."""

    def __init__(self, builder: FactBuilder) -> None:
        self.thread = AcpThread(builder)
        self.of_client: dict[str, Request] = {}
        self.of_agent: dict[str, Request] = {}

    def take(self, item: Message) -> None:
        method, params = text_at(item, "method"), object_at(item.get("params")) or {}
        if method is None:
            self._take_response(item)
        elif item.get("id") is not None:
            self._take_request(method, params, item)
        else:
            self._take_notification(method, params, item)

    def finish(self) -> None:
        """A connection that closes before a prompt is answered was cut off."""
        if self.thread.builder.is_open:
            self.thread.close_commands()

    def _take_notification(self, method: str, params: Message, item: Message) -> None:
        if method in _QUIET or method.startswith("_"):
            return
        handle = _NOTIFICATIONS.get(method)
        if handle is None:
            self.thread.builder.warn_unknown(method, item)
        elif self.thread.is_followed(params, item):
            handle(self.thread, params, item)

    def _take_request(self, method: str, params: Message, item: Message) -> None:
        is_agents = method in ANSWERS
        if not is_agents and method not in _CLIENTS and not method.startswith("_"):
            self.thread.builder.warn_unknown(method, item)
            return
        if not self.thread.is_followed(params, item):
            return
        side = self.of_agent if is_agents else self.of_client
        if len(side) < _OPEN_REQUESTS:
            side[_request_key(item)] = (method, params)
        if method in ASKS:
            ASKS[method](self.thread, _action_id(item), params)
        elif method == "session/prompt":
            _begin_prompt(self.thread, params)
        elif method in _LOADS:
            self.thread.begin_loading()

    def _take_response(self, item: Message) -> None:
        result = object_at(item.get("result")) or {}
        if "result" not in item and "error" not in item:
            self.thread.builder.warn_unknown("message", item)
            return
        agents = self.of_agent.get(_request_key(item))
        clients = self.of_client.get(_request_key(item))
        if text_at(result, "stopReason") is not None or agents is None:
            self.of_client.pop(_request_key(item), None)
            self._take_answer_of_agent(clients, result, item)
        else:
            self.of_agent.pop(_request_key(item), None)
            self._take_answer_of_client(agents, result, item)

    def _take_answer_of_agent(
        self, request: Request | None, result: Message, item: Message
    ) -> None:
        """What the agent answers to its client."""
        method = request[0] if request is not None else None
        error = object_at(item.get("error"))
        if method in _LOADS:
            self.thread.end_loading()
        if method == "session/prompt" or text_at(result, "stopReason") is not None:
            self._end(result, error)
        elif error is not None and (request is not None or not self.thread.others):
            _fail_prompt(self.thread, method or "a request", error)
        elif method == "initialize":
            self.thread.note_agent(object_at(result.get("agentInfo")) or {})
        elif method in _OFFERS:
            if method == "session/new":
                self.thread.is_followed(result, item)
            self.thread.note_model(result)

    def _take_answer_of_client(self, request: Request, result: Message, item: Message) -> None:
        method, params = request
        error = object_at(item.get("error"))
        if error is None:
            ANSWERS[method](self.thread, _action_id(item), params, result)
            return
        self.thread.builder.cancel_action(_action_id(item), "the client answered with an error")
        _fail_prompt(self.thread, method, error)

    def _end(self, result: Message, error: Message | None) -> None:
        thread = self.thread
        if not thread.builder.is_open:
            return
        if error is None:
            thread.note_usage(result)
            thread.end_turn(text_at(result, "stopReason"))
            return
        code, message = error.get("code"), text_at(error, "message") or "the agent failed"
        if code == _CANCELLED:
            thread.end_turn("cancelled")
        else:
            category = "unauthorized" if code == _AUTHENTICATION else "provider_error"
            error_code = code if type(code) is int else None
            thread.fail_turn(category, message, code=error_code, errorData=error.get("data"))


def _begin_prompt(thread: AcpThread, params: Message) -> None:
    blocks = list_at(params.get("prompt")) or []
    texts = [text for block in blocks if (text := block_text(block)) is not None]
    thread.begin_turn("\n".join(texts) or None)
    for block in map(object_at, blocks):
        if block and block_text(block) is None:
            resource = object_at(block.get("resource")) or block
            payload = {
                "kind": text_at(block, "type"),
                "title": text_at(block, "name", "title") or text_at(resource, "uri"),
                "mediaType": text_at(resource, "mimeType"),
            }
            thread.builder.add_fact("context.attached", payload)


def _on_cancel(thread: AcpThread, params: Message, item: Message) -> None:
    """That it shall stop; that it has is said by the response to the prompt."""
    del params, item
    if thread.builder.is_open:
        thread.builder.add_fact("run.status", {"status": "cancelling"})


def _fail_prompt(thread: AcpThread, method: str, error: Message) -> None:
    payload = {
        "code": "request_failed",
        "message": f"{method}: {text_at(error, 'message') or 'failed'}",
        "errorData": error.get("data"),
    }
    thread.builder.add_fact("runtime.warning", payload)


def _request_key(item: Message) -> str:
    """An id as a key; a number and its digits are different ids."""
    return repr(item.get("id"))


def _action_id(item: Message) -> str:
    return f"request:{item.get('id')}"


_NOTIFICATIONS: Final = {"session/update": take_update, "session/cancel": _on_cancel}

SOURCE: Final = Source(
    name="acp",
    title="Agent Client Protocol",
    framing="lines",
    versions="1 (OpenCode 1.18, Python SDK 0.12)",
    converter=Acp,
    maps={
        "session/prompt": "turn.submitted, turn.started; context.attached",
        "stopReason end_turn": "turn.completed",
        "stopReason max_tokens, max_turn_requests, refusal; an error": "turn.failed",
        "stopReason cancelled": "turn.canceled",
        "session/cancel": "run.status",
        "agent_message_chunk": "model.delta, model.completed; artifact.changed",
        "agent_thought_chunk": "reasoning.delta, reasoning.completed",
        "user_message_chunk": "nothing: already in the prompt",
        "tool_call, tool_call_update": "tool.*",
        "diff of a completed call": "file.changed",
        "plan, plan_update, plan_removed": "plan.delta, plan.final",
        "usage_update": "limit.changed, and the cost at the end of the turn",
        "usage of a response": "cost.recorded, metrics.changed",
        "available_commands, current_mode, config_option, session_info": "session.updated",
        "session/request_permission": "action.required, action.resolved or action.cancelled",
        "elicitation/create": "action.required, action.resolved or action.cancelled",
        "fs/read_text_file, fs/write_text_file": "file.read, file.changed",
        "terminal/*": "command.started, command.output, command.exited",
        "session/load, session/resume": "history.window.loaded",
        "an error to another request": "runtime.warning",
    },
    lacks=("times", "names of tools", "subagents", "who decided", "exit codes of tools"),
)
