"""What an item can become, where somebody has to keep the books: turns, texts, calls, decisions,
teammates, usage.

A verb has the name of the fact that it tells. What the mapping gives no id for is numbered when it
begins, and is the one that is open when it goes on or ends.
"""

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from factwire.sources.telling import Telling

Ids = dict[str, str]
Said = dict[str, Any]


class Teller(Protocol):
    """What verbs know of the converter that they work for."""

    tell: Telling
    has_begun: bool
    reasoning: tuple[str | None, str] | None
    sums: dict[str, float]

    def number(self, family: str) -> str:
        """The next id of a family that the stream gives none for."""
        ...


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """How an item is told: which ids and fields it takes, which of those it needs, and whether
    other fields may stand beside them.
    """

    tell: Callable[[Teller, Ids, Said], None]
    ids: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    takes_extra: bool = False


def _begin(teller: Teller, ids: Ids, said: Said) -> None:
    teller.has_begun = True
    teller.tell.begin(said.pop("prompt", None), turn_id=ids.get("turnId"), **said)


def _complete(teller: Teller, _: Ids, said: Said) -> None:
    teller.tell.complete(**said)


def _fail(teller: Teller, _: Ids, said: Said) -> None:
    """A failure before any turn is that of the first; one after a turn ends nothing twice."""
    tell = teller.tell
    category = said.pop("failureCategory", "provider_error")
    message, hint = said.pop("message", "the agent failed"), said.pop("recoveryHint", None)
    if not tell.is_open and teller.has_begun:
        tell.fact("runtime.error", {"code": category, "message": message, "recoveryHint": hint})
        return
    if not tell.is_open:
        _begin(teller, {}, {})
    tell.fail(category, message, hint, **said)


def _cancel(teller: Teller, _: Ids, said: Said) -> None:
    teller.tell.cancel(said.pop("reason", "requested"), **said)


def _text(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.text(_message(teller, ids), said["delta"], **_within(ids))


def _text_end(teller: Teller, ids: Ids, said: Said) -> None:
    text = said.pop("text", None)
    teller.tell.text_end(_message(teller, ids), text, **_within(ids), **said)


def _reasoning(teller: Teller, ids: Ids, said: Said) -> None:
    """Reasoning that has no id of its own stands in the message that it leads to."""
    message = _message(teller, ids)
    teller.reasoning = (ids.get("subagentId"), message)
    teller.tell.reasoning(message, said["delta"], **_within(ids))


def _summary(teller: Teller, ids: Ids, said: Said) -> None:
    message = _message(teller, ids)
    teller.reasoning = (ids.get("subagentId"), message)
    teller.tell.reasoning_summary(message, said["summary"], **_within(ids))


def _tool(teller: Teller, ids: Ids, said: Said) -> None:
    call = ids.get("toolCallId") or teller.number("tool")
    who = ids.get("subagentId")
    of = {"subagent_id": who} if who else {}
    teller.tell.tool(call, said.get("toolName"), said.get("args"), title=said.get("title"), **of)


def _tool_args(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.tool_args(_call(teller, ids), said["delta"])


def _tool_output(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.tool_output(_call(teller, ids), said["delta"], said.get("stream"))


def _tool_progress(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.tool_progress(_call(teller, ids), **said)


def _tool_result(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.tool_result(_call(teller, ids), said.pop("output", None), **said)


def _tool_failed(teller: Teller, ids: Ids, said: Said) -> None:
    category = said.pop("failureCategory", "tool_error")
    message = said.pop("message", "the tool failed")
    teller.tell.tool_failed(_call(teller, ids), category, message, **said)


def _ask(teller: Teller, ids: Ids, said: Said) -> None:
    action = ids.get("actionId") or teller.number("action")
    given = {"tool_call_id": ids.get("toolCallId"), "subagent_id": ids.get("subagentId")}
    teller.tell.ask(action, said, **{name: value for name, value in given.items() if value})


def _answered(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.answered(_action(teller, ids), said.pop("decision"), **said)


def _withdrawn(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.withdrawn(_action(teller, ids), said.get("reason") or "withdrawn")


def _subagent(teller: Teller, ids: Ids, said: Said) -> None:
    who = ids.get("subagentId") or teller.number("subagent")
    teller.tell.subagent(who, task_id=ids.get("taskId"), **said)


def _subagent_completed(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.subagent_end(_teammate(teller, ids), "subagent.completed", **said)


def _subagent_failed(teller: Teller, ids: Ids, said: Said) -> None:
    teller.tell.subagent_end(_teammate(teller, ids), "subagent.failed", **said)


def _known(teller: Teller, ids: Ids, _: Said) -> None:
    teller.tell.known(**{_SCOPE[name]: value for name, value in ids.items()})


def _ignore(teller: Teller, ids: Ids, said: Said) -> None:
    del teller, ids, said


def _usage(teller: Teller, _: Ids, said: Said) -> None:
    """What a turn has used so far, as the stream says it now."""
    _note(teller, said)


def _usage_more(teller: Teller, _: Ids, said: Said) -> None:
    """What one step has used; steps add up over a turn."""
    used = teller.tell.usage
    _note(teller, {name: used.get(name, 0) + value for name, value in said.items()})


def _usage_of_thread(teller: Teller, _: Ids, said: Said) -> None:
    """The sum over the thread: a turn used what was not there when the last one was told. A sum
    that is less than before was begun anew.
    """
    before = {name: teller.sums.get(name, 0) for name in said}
    spent = {
        name: value - before[name] if value >= before[name] else value
        for name, value in said.items()
    }
    teller.sums.update(said)
    _usage_more(teller, {}, spent)


def _note(teller: Teller, counts: Said) -> None:
    sound = {name: value for name, value in counts.items() if math.isfinite(value)}
    if teller.tell.is_open:
        teller.tell.usage.update(sound)
    elif sound:
        teller.tell.fact("metrics.changed", sound)


def _message(teller: Teller, ids: Ids) -> str:
    """The message a text belongs to: the one named, the one that is open, the one that was reasoned
    about, or the next.
    """
    given, part, who = ids.get("messageId"), ids.get("partId"), ids.get("subagentId")
    if given:
        return given
    for message in reversed(teller.tell.messages.values()):
        if message.scope.subagent_id == who and part in (None, message.part_id):
            return message.message_id
    if teller.reasoning is not None and teller.reasoning[0] == who:
        return teller.reasoning[1]
    return teller.number("message")


def _within(ids: Ids) -> dict[str, Any]:
    return {"part_id": ids.get("partId"), "subagent_id": ids.get("subagentId")}


def _call(teller: Teller, ids: Ids) -> str:
    return ids.get("toolCallId") or _latest(teller.tell.tools) or teller.number("tool")


def _action(teller: Teller, ids: Ids) -> str:
    return ids.get("actionId") or _latest(teller.tell.actions) or ""


def _teammate(teller: Teller, ids: Ids) -> str:
    return ids.get("subagentId") or _latest(teller.tell.subagents) or ""


def _latest(things: dict[str, Any]) -> str | None:
    return next(reversed(things), None)


_SCOPE: Final = {
    "sessionId": "session_id",
    "agentId": "agent_id",
    "projectId": "project_id",
    "parentThreadId": "parent_thread_id",
    "traceId": "trace_id",
}
_SPOKEN: Final = ("messageId", "partId", "subagentId")
_COUNTS: Final = ("inputTokens", "outputTokens", "totalTokens", "totalCostUsd")
_ENDED: Final = ("durationMs", "reason")
_FAILED: Final = ("failureCategory", "message", "recoveryHint")
_MATE: Final = ("role", "title", "name", "objective", "summary", "message")

USAGE: Final = {"turn": _usage, "step": _usage_more, "thread": _usage_of_thread}
"""What counts of usage are about → how they are told."""

VERBS: Final[dict[str, Verb]] = {
    "ignore": Verb(tell=_ignore),
    "ids": Verb(tell=_known, ids=tuple(_SCOPE)),
    "usage": Verb(tell=_usage, fields=_COUNTS),
    "turn.started": Verb(tell=_begin, ids=("turnId",), fields=("prompt",), takes_extra=True),
    "turn.completed": Verb(tell=_complete, fields=(*_ENDED, "message"), takes_extra=True),
    "turn.failed": Verb(tell=_fail, fields=(*_ENDED, *_FAILED), takes_extra=True),
    "turn.canceled": Verb(tell=_cancel, fields=(*_ENDED, "message"), takes_extra=True),
    "model.delta": Verb(tell=_text, ids=_SPOKEN, fields=("delta",), needs=("delta",)),
    "model.completed": Verb(
        tell=_text_end, ids=_SPOKEN, fields=("text", "model", "finishReason"), takes_extra=True
    ),
    "reasoning.delta": Verb(tell=_reasoning, ids=_SPOKEN, fields=("delta",), needs=("delta",)),
    "reasoning.summary": Verb(tell=_summary, ids=_SPOKEN, fields=("summary",), needs=("summary",)),
    "tool.started": Verb(
        tell=_tool, ids=("toolCallId", "subagentId"), fields=("toolName", "args", "title")
    ),
    "tool.args.delta": Verb(
        tell=_tool_args, ids=("toolCallId",), fields=("delta",), needs=("delta",)
    ),
    "tool.output.delta": Verb(
        tell=_tool_output, ids=("toolCallId",), fields=("delta", "stream"), needs=("delta",)
    ),
    "tool.progress": Verb(
        tell=_tool_progress,
        ids=("toolCallId",),
        fields=("message", "progress", "total"),
        takes_extra=True,
    ),
    "tool.result": Verb(
        tell=_tool_result,
        ids=("toolCallId",),
        fields=("output", "summary", "exitCode", "durationMs"),
        takes_extra=True,
    ),
    "tool.failed": Verb(
        tell=_tool_failed,
        ids=("toolCallId",),
        fields=(*_FAILED, "output", "summary", "exitCode", "durationMs"),
        takes_extra=True,
    ),
    "action.required": Verb(
        tell=_ask,
        ids=("actionId", "toolCallId", "subagentId"),
        fields=(
            *("actionType", "severity", "prompt", "argsHash", "expiresAt"),
            *("requestedBy", "options", "responseSchema"),
        ),
        takes_extra=True,
    ),
    "action.resolved": Verb(
        tell=_answered,
        ids=("actionId",),
        fields=("decision", "reason", "decidedBy", "applied", "response"),
        needs=("decision",),
        takes_extra=True,
    ),
    "action.cancelled": Verb(tell=_withdrawn, ids=("actionId",), fields=("reason",)),
    "subagent.started": Verb(
        tell=_subagent, ids=("subagentId", "taskId"), fields=_MATE, takes_extra=True
    ),
    "subagent.completed": Verb(
        tell=_subagent_completed, ids=("subagentId",), fields=_MATE, takes_extra=True
    ),
    "subagent.failed": Verb(
        tell=_subagent_failed,
        ids=("subagentId",),
        fields=(*_MATE, "failureCategory"),
        takes_extra=True,
    ),
}
"""What has a verb of its own; the other classes are told as they are."""

NEWS: Final = frozenset(
    {
        *("turn.started", "turn.completed", "turn.failed", "turn.canceled"),
        *("model.delta", "model.completed", "tool.started"),
    }
)
"""Verbs after which reasoning is about something else."""

RESERVED: Final = frozenset(
    {
        *("self", "said", "category", "decision", "delta", "hint", "message"),
        *("output", "preview", "prompt", "reason", "text"),
    }
)
"""Names that no extra field may have: they stand for something of a telling's or an intake's."""
