"""The Agent Client Protocol: JSON-RPC lines between an editor and an agent, both ways in one file.

Each side numbers its own requests, so that an id alone says nothing: a response belongs to the
request of either side that fits what it holds. A prompt is a turn and its response is the end; a
response with a stop reason is that of a prompt, also where only the agent's lines were recorded.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word
from factwire.sources.acp_requests import ANSWERS, ASKS
from factwire.sources.acp_thread import AcpThread, text_of
from factwire.sources.acp_updates import take_update
from factwire.sources.source import Source
from factwire.sources.telling import Telling

Message = dict[str, Any]
Request = tuple[str, Message]

_AUTHENTICATION: Final = -32000
_CANCELLED: Final = -32800
_LOADS: Final = ("session/load", "session/resume")
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

    def __init__(self, telling: Telling) -> None:
        self.thread = AcpThread(telling)
        self.of_client: dict[str, Request] = {}
        self.of_agent: dict[str, Request] = {}

    def take(self, item: Message) -> None:
        method, params = word(item, "method"), table(item.get("params")) or {}
        if method is None:
            self._take_response(item)
        elif item.get("id") is not None:
            self._take_request(method, params, item)
        else:
            self._take_notification(method, params, item)

    def finish(self) -> None:
        """A connection that closes before a prompt is answered was cut off."""
        if self.thread.tell.is_open:
            self.thread.close_commands()

    def _take_notification(self, method: str, params: Message, item: Message) -> None:
        if method in _QUIET or method.startswith("_"):
            return
        handle = _NOTIFICATIONS.get(method)
        if handle is None:
            self.thread.tell.unknown(method, item)
        elif self.thread.follows(params, item):
            handle(self.thread, params, item)

    def _take_request(self, method: str, params: Message, item: Message) -> None:
        is_agents = method in ANSWERS
        if not is_agents and method not in _CLIENTS and not method.startswith("_"):
            self.thread.tell.unknown(method, item)
            return
        if not self.thread.follows(params, item):
            return
        side = self.of_agent if is_agents else self.of_client
        if len(side) < _OPEN_REQUESTS:
            side[_key(item)] = (method, params)
        if method in ASKS:
            ASKS[method](self.thread, _action(item), params)
        elif method == "session/prompt":
            _prompt(self.thread, params)
        elif method in _LOADS:
            self.thread.recall()

    def _take_response(self, item: Message) -> None:
        result = table(item.get("result")) or {}
        if "result" not in item and "error" not in item:
            self.thread.tell.unknown("message", item)
            return
        agents = self.of_agent.get(_key(item))
        clients = self.of_client.get(_key(item))
        if word(result, "stopReason") is not None or agents is None:
            self.of_client.pop(_key(item), None)
            self._take_answer_of_agent(clients, result, item)
        else:
            self.of_agent.pop(_key(item), None)
            self._take_answer_of_client(agents, result, item)

    def _take_answer_of_agent(
        self, request: Request | None, result: Message, item: Message
    ) -> None:
        """What the agent answers to its client."""
        method = request[0] if request is not None else None
        error = table(item.get("error"))
        if method in _LOADS:
            self.thread.recalled()
        if method == "session/prompt" or word(result, "stopReason") is not None:
            self._end(result, error)
        elif error is not None and (request is not None or not self.thread.others):
            _refused(self.thread, method or "a request", error)
        elif method == "session/new":
            self.thread.follows(result, item)

    def _take_answer_of_client(self, request: Request, result: Message, item: Message) -> None:
        method, params = request
        error = table(item.get("error"))
        if error is None:
            ANSWERS[method](self.thread, _action(item), params, result)
            return
        self.thread.tell.withdrawn(_action(item), "the client answered with an error")
        _refused(self.thread, method, error)

    def _end(self, result: Message, error: Message | None) -> None:
        thread = self.thread
        if not thread.tell.is_open:
            return
        if error is None:
            thread.note_usage(table(result.get("usage")) or {})
            thread.end(word(result, "stopReason"))
            return
        code, message = error.get("code"), word(error, "message") or "the agent failed"
        if code == _CANCELLED:
            thread.end("cancelled")
        else:
            category = "unauthorized" if code == _AUTHENTICATION else "provider_error"
            told = code if type(code) is int else None
            thread.fail(category, message, code=told)


def _prompt(thread: AcpThread, params: Message) -> None:
    blocks = listed(params.get("prompt")) or []
    texts = [text for block in blocks if (text := text_of(block)) is not None]
    thread.begin("\n".join(texts) or None)
    for block in map(table, blocks):
        if block and text_of(block) is None:
            resource = table(block.get("resource")) or block
            said = {
                "kind": word(block, "type"),
                "title": word(block, "name", "title") or word(resource, "uri"),
                "mediaType": word(resource, "mimeType"),
            }
            thread.tell.fact("context.attached", said)


def _cancel(thread: AcpThread, params: Message, item: Message) -> None:
    """That it shall stop; that it has is said by the response to the prompt."""
    del params, item
    if thread.tell.is_open:
        thread.tell.fact("run.status", {"status": "cancelling"})


def _refused(thread: AcpThread, method: str, error: Message) -> None:
    message = f"{method}: {word(error, 'message') or 'failed'}"
    thread.tell.fact("runtime.warning", {"code": "request_failed", "message": message})


def _key(item: Message) -> str:
    """An id as a key; a number and its digits are different ids."""
    return repr(item.get("id"))


def _action(item: Message) -> str:
    return f"request:{item.get('id')}"


_NOTIFICATIONS: Final = {"session/update": take_update, "session/cancel": _cancel}

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
        "user_message_chunk": "nothing: the prompt has told it",
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
