"""Data parts of our own in an AI SDK stream, as the outlet writes them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from factwire.projection.reading import table, word, words
from factwire.sources.own_notes import retell

if TYPE_CHECKING:
    from factwire.sources.ai_sdk import AiSdk

PREFIX: Final = "data-factwire-"


def own_part(sdk: "AiSdk", item: dict[str, Any]) -> None:
    """Tell a part of ours."""
    sdk.begin()
    said = table(item.get("data")) or {}
    _PARTS.get((word(item, "type") or "").removeprefix(PREFIX), _note)(sdk, said)


def _note(sdk: "AiSdk", said: dict[str, Any]) -> None:
    retell(sdk.tell, said)


def _call(sdk: "AiSdk", said: dict[str, Any]) -> None:
    """What a chunk cannot say of a call: whose it is, and why it failed."""
    sdk.calls[word(said, "toolCallId") or ""] = said


def _call_news(sdk: "AiSdk", said: dict[str, Any]) -> None:
    call_id, delta = word(said, "toolCallId"), word(said, "delta")
    if call_id in sdk.tell.tools and delta is not None:
        sdk.tell.tool_output(call_id, delta, word(said, "stream"))


def _failure(sdk: "AiSdk", said: dict[str, Any]) -> None:
    sdk.failure = word(said, "failureCategory")


def _action(sdk: "AiSdk", said: dict[str, Any]) -> None:
    action_id, status = word(said, "actionId") or "", word(said, "status")
    if status == "required":
        told = {name: word(said, name) for name in ("actionType", "prompt", "expiresAt")}
        given = {"responseSchema": table(said.get("responseSchema")), "args": said.get("args")}
        ids = {"tool_call_id": word(said, "toolCallId"), "subagent_id": word(said, "subagentId")}
        sdk.tell.ask(action_id, {**told, **given}, **ids)
    elif status == "resolved":
        answer = {"reason": word(said, "reason"), "response": said.get("response")}
        sdk.tell.answered(action_id, word(said, "decision") or "unknown", **answer)
    else:
        sdk.tell.withdrawn(action_id, word(said, "reason") or "withdrawn")


def _retraction(sdk: "AiSdk", said: dict[str, Any]) -> None:
    gone = words(said.get("messageIds"))
    if gone:
        sdk.tell.retract(*gone)


def _subagent(sdk: "AiSdk", said: dict[str, Any]) -> None:
    subagent_id, status = word(said, "subagentId") or "", word(said, "status")
    told = {name: word(said, name) for name in ("title", "role", "name", "summary", "message")}
    if status == "started":
        about = {**told, "objective": word(said, "objective")}
        ids = {"task_id": word(said, "taskId"), "turn_id": word(said, "turnId")}
        sdk.tell.subagent(subagent_id, **ids, **about)
    elif status == "failed":
        category = word(said, "failureCategory") or "subagent_error"
        sdk.tell.subagent_end(subagent_id, "subagent.failed", failureCategory=category, **told)
    else:
        sdk.tell.subagent_end(subagent_id, "subagent.completed", **told)


def _subagent_delta(sdk: "AiSdk", said: dict[str, Any]) -> None:
    message_id, delta = word(said, "messageId") or "message", word(said, "delta") or ""
    sdk.tell.text(message_id, delta, subagent_id=word(said, "subagentId"))


def _subagent_text(sdk: "AiSdk", said: dict[str, Any]) -> None:
    message_id, text = word(said, "messageId") or "message", word(said, "text") or ""
    sdk.tell.text_end(message_id, text, subagent_id=word(said, "subagentId"))


_PARTS: Final[dict[str, Callable[["AiSdk", dict[str, Any]], None]]] = {
    "action": _action,
    "call": _call,
    "call-news": _call_news,
    "failure": _failure,
    "retraction": _retraction,
    "subagent": _subagent,
    "subagent-delta": _subagent_delta,
    "subagent-text": _subagent_text,
}
