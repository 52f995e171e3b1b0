"""Events of the Responses API, as the OpenAI Agents SDK passes them on.

They tell the words and the calls while the model makes them. There is one `response.completed` for
each call of the model, so nothing here ends a turn. Models behind the chat API give every item the
same id; such items are named by their response and their place in it.
"""

from typing import Any, Final

from factwire.projection.reading import number, table, word
from factwire.sources.moments import moment_of_seconds
from factwire.sources.recorded_runs import note_usage, parsed, place_of, text_of
from factwire.sources.telling import Telling

_NO_ID: Final = "__fake_id__"
"""What the SDK calls each item of a model that names none."""


class Responses:
    """Tells the responses of a run. `spoken` counts messages that were told and that the SDK will
    hand over once more as items; `called` has the calls that are known.
    """

    def __init__(self, telling: Telling) -> None:
        self.tell = telling
        self.count = 0
        self.calls: dict[int, str] = {}
        self.called: set[str] = set()
        self.spoken = 0

    def take(self, event: dict[str, Any]) -> None:
        data = table(event.get("data")) or {}
        kind = word(data, "type") or ""
        handle = _RAW.get(kind) or (_progress if _is_of_a_call(kind) else None)
        if handle is None:
            self.tell.unknown(f"response event {kind}", event)
        else:
            handle(self, data)

    def name(self, data: dict[str, Any], item_id: str | None) -> str:
        """The id of an item of a response, or one made of where it stands."""
        if item_id is not None and item_id != _NO_ID:
            return item_id
        if not self.tell.is_open:
            self.tell.begin()
        return f"{self.tell.turn_id}:response-{self.count}:{_place(data)}"


def _created(model: Responses, data: dict[str, Any]) -> None:
    response = table(data.get("response")) or {}
    model.count += 1
    model.calls, model.spoken = {}, 0
    model.tell.at = moment_of_seconds(number(response, "created_at")) or model.tell.at
    model.tell.fact("model.requested", {"model": word(response, "model")})


def _ended(model: Responses, data: dict[str, Any]) -> None:
    """A response is over, which is not the end of the run; usage adds up over its responses."""
    response = table(data.get("response")) or {}
    note_usage(model.tell, response.get("usage"))
    if data.get("type") == "response.incomplete":
        reason = word(table(response.get("incomplete_details")) or {}, "reason") or "unknown"
        model.tell.warn("response_incomplete", f"the response stopped early: {reason}", data)


def _model_failed(model: Responses, data: dict[str, Any]) -> None:
    response = table(data.get("response")) or data
    error = table(response.get("error")) or response
    said = {
        "failureCategory": "provider_error",
        "message": word(error, "message") or "the model failed",
        "code": word(error, "code"),
    }
    model.tell.fact("model.failed", {key: value for key, value in said.items() if value})


def _text(model: Responses, data: dict[str, Any]) -> None:
    delta = word(data, "delta")
    if delta:
        model.tell.text(model.name(data, word(data, "item_id")), delta)


def _reasoning(model: Responses, data: dict[str, Any]) -> None:
    delta = word(data, "delta")
    if delta:
        model.tell.reasoning(model.name(data, word(data, "item_id")), delta)


def _args(model: Responses, data: dict[str, Any]) -> None:
    delta, call_id = word(data, "delta"), _call_of(model, data)
    if delta and call_id:
        model.tell.tool_args(call_id, delta)


def _progress(model: Responses, data: dict[str, Any]) -> None:
    call_id = _call_of(model, data)
    if call_id in model.tell.tools:
        model.tell.tool_progress(call_id, state=(word(data, "type") or "").rpartition(".")[2])


def _citation(model: Responses, data: dict[str, Any]) -> None:
    annotation = table(data.get("annotation")) or {}
    message_id = model.name(data, word(data, "item_id"))
    place = place_of(data, "annotation_index")
    said = {
        "kind": "citation",
        "title": word(annotation, "title", "filename"),
        "url": word(annotation, "url"),
    }
    evidence_id = f"{message_id}:citation-{place}"
    model.tell.fact(
        "evidence.changed",
        {key: value for key, value in said.items() if value},
        evidence_id=evidence_id,
        message_id=message_id,
    )


def _item(model: Responses, data: dict[str, Any]) -> None:
    item = table(data.get("item")) or {}
    kind = word(item, "type") or ""
    done = data.get("type") == "response.output_item.done"
    if kind == "message":
        _message_item(model, data, item, done=done)
    elif kind == "reasoning":
        _reasoning_item(model, data, item, done=done)
    elif kind.endswith("_call"):
        _call_item(model, data, item, done=done)
    elif done:
        _odd_item(model, item)


def _message_item(
    model: Responses, data: dict[str, Any], item: dict[str, Any], *, done: bool
) -> None:
    if done:
        model.spoken += 1
        model.tell.text_end(model.name(data, word(item, "id")), text_of(item.get("content")))


def _reasoning_item(
    model: Responses, data: dict[str, Any], item: dict[str, Any], *, done: bool
) -> None:
    if not done:
        return
    message_id, summary = model.name(data, word(item, "id")), text_of(item.get("summary"))
    if summary:
        model.tell.reasoning_summary(message_id, summary)
    else:
        model.tell.fact("reasoning.completed", {}, message_id=message_id)


def _call_item(model: Responses, data: dict[str, Any], item: dict[str, Any], *, done: bool) -> None:
    """A call. One without a call id runs at the provider, and has ended when its item has."""
    call_id = call_id_of(item) or model.name(data, None)
    model.calls[_place(data)] = call_id
    if done or call_id not in model.tell.tools:
        args = parsed(item.get("arguments") or item.get("input") or item.get("action"))
        model.tell.tool(call_id, word(item, "name") or word(item, "type"), args if done else None)
    model.called.add(call_id)
    if done and not word(item, "call_id"):
        end_hosted(model, call_id, item)


def end_hosted(model: Responses, call_id: str, item: dict[str, Any]) -> None:
    error = item.get("error")
    if error or word(item, "status") == "failed":
        message = error if isinstance(error, str) else word(table(error) or {}, "message")
        model.tell.tool_failed(call_id, "tool_error", message or "the call failed")
    else:
        model.tell.tool_result(call_id, item.get("output") or item.get("results"))


def _odd_item(model: Responses, item: dict[str, Any]) -> None:
    kind = word(item, "type") or ""
    if kind == "compaction":
        model.tell.fact("history.compacted", {})
    elif kind not in _TOLD_AS_RUN_ITEMS:
        model.tell.unknown(f"output item {kind}", item)


def _quiet(model: Responses, item: dict[str, Any]) -> None:
    """Says nothing that another event does not say."""
    del model, item


def call_id_of(raw: dict[str, Any]) -> str | None:
    own = word(raw, "id")
    return word(raw, "call_id") or (own if own != _NO_ID else None)


def _place(data: dict[str, Any]) -> int:
    return place_of(data, "output_index")


def _call_of(model: Responses, data: dict[str, Any]) -> str:
    return model.calls.get(_place(data)) or ""


def _is_of_a_call(kind: str) -> bool:
    """`response.web_search_call.searching` and its like."""
    subject, _, state = kind.removeprefix("response.").partition(".")
    return bool(state) and subject.endswith(("_call", "_list_tools"))


_RAW: Final = {
    "response.created": _created,
    "response.queued": _quiet,
    "response.in_progress": _quiet,
    "response.completed": _ended,
    "response.incomplete": _ended,
    "response.failed": _model_failed,
    "error": _model_failed,
    "response.output_item.added": _item,
    "response.output_item.done": _item,
    "response.content_part.added": _quiet,
    "response.content_part.done": _quiet,
    "response.output_text.delta": _text,
    "response.output_text.done": _quiet,
    "response.output_text.annotation.added": _citation,
    "response.refusal.delta": _text,
    "response.refusal.done": _quiet,
    "response.reasoning_summary_part.added": _quiet,
    "response.reasoning_summary_part.done": _quiet,
    "response.reasoning_summary_text.delta": _reasoning,
    "response.reasoning_summary_text.done": _quiet,
    "response.reasoning_text.delta": _reasoning,
    "response.reasoning_text.done": _quiet,
    "response.function_call_arguments.delta": _args,
    "response.function_call_arguments.done": _quiet,
    "response.custom_tool_call_input.delta": _args,
    "response.custom_tool_call_input.done": _quiet,
    "response.mcp_call_arguments.delta": _args,
    "response.mcp_call_arguments.done": _quiet,
    "response.code_interpreter_call_code.delta": _args,
    "response.code_interpreter_call_code.done": _quiet,
}
_TOLD_AS_RUN_ITEMS: Final = ("mcp_approval_request", "mcp_list_tools", "tool_search_output")
"""Output items that the SDK hands over as run items, where they are told."""
